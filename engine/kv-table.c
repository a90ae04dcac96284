/* kv-table.c - the page lists of one timeline: entry e of a stream lies in page e / P of its list.
 * Not here: moving entries (the backend compacts) and moving pages (kv-pool.c).
 * Between reserve and commit a stream owns pages that hold no live entry yet; set_lengths gives
 * them back when the step failed. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/kv-pool-internal.h"

#include <assert.h>

ks_status
ks_kv_table_new(ks_kv_pool *pool, ks_kv_table **out, ks_error *err)
{
  const uint32_t n_stream = pool->layout.n_layer * pool->layout.n_kv_head;
  ks_kv_table *table = ks_mem_new(pool->alloc, KS_MEM_HOST, 1, sizeof(*table));

  if (table != NULL)
    table->streams = ks_mem_new(pool->alloc, KS_MEM_HOST, n_stream, sizeof(*table->streams));
  if (table == NULL || table->streams == NULL) {
    ks_mem_free(table);
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for the page lists");
  }
  table->n_stream = n_stream;
  table->pool = pool;
  table->next = pool->tables;
  if (table->next != NULL)
    table->next->prev = table;
  pool->tables = table;
  *out = table;
  return KS_OK;
}

/* Gives back the pages behind the first n of a stream, the last one first. */
static void
release_behind(ks_kv_table *table, ks_kv_stream *stream, uint32_t n)
{
  while (stream->n_page > n) {
    ks_kv_pool_give(table->pool, stream->pages[--stream->n_page]);
    table->n_page--;
  }
}

void
ks_kv_table_free(ks_kv_table *table)
{
  if (table == NULL)
    return;
  for (uint32_t s = 0; s < table->n_stream; s++) {
    release_behind(table, &table->streams[s], 0);
    ks_mem_free(table->streams[s].pages);
  }
  if (table->prev != NULL)
    table->prev->next = table->next;
  else
    table->pool->tables = table->next;
  if (table->next != NULL)
    table->next->prev = table->prev;
  ks_mem_free(table->streams);
  ks_mem_free(table);
}

ks_kv_pool *
ks_kv_table_get_pool(const ks_kv_table *table)
{
  return table->pool;
}

ks_kv_view
ks_kv_table_get_view(const ks_kv_table *table)
{
  const ks_kv_view view = {
      .base = table->pool->base, .layout = &table->pool->layout, .streams = table->streams};

  return view;
}

uint32_t
ks_kv_table_get_n_stream(const ks_kv_table *table)
{
  return table->n_stream;
}

uint64_t
ks_kv_table_get_n_entries(const ks_kv_table *table)
{
  return table->n_entry;
}

uint32_t
ks_kv_table_get_n_pages(const ks_kv_table *table)
{
  return table->n_page;
}

/* Pages that a stream lacks for n_new more entries. */
static uint64_t
count_lacking(const ks_kv_table *table, const ks_kv_stream *stream, uint32_t n_new)
{
  const uint64_t p = table->pool->layout.page_entries;
  const uint64_t n_page = ((uint64_t)stream->n_entry + n_new + p - 1) / p;

  return n_page > stream->n_page ? n_page - stream->n_page : 0;
}

uint32_t
ks_kv_table_count_needed(const ks_kv_table *table, uint32_t n_new)
{
  uint64_t n = 0;

  for (uint32_t s = 0; s < table->n_stream; s++)
    n += count_lacking(table, &table->streams[s], n_new);
  return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Room in the page list of a stream, doubled so that growing stays cheap. */
static ks_status
grow_list(ks_kv_table *table, ks_kv_stream *stream, uint32_t n_new, ks_error *err)
{
  const uint64_t need = stream->n_page + count_lacking(table, stream, n_new);
  uint64_t capacity = stream->page_capacity == 0 ? 4 : stream->page_capacity;
  uint32_t *pages;

  if (need <= stream->page_capacity)
    return KS_OK;
  while (capacity < need)
    capacity *= 2;
  pages = ks_mem_resize(table->pool->alloc, KS_MEM_HOST, stream->pages, (size_t)capacity,
                        sizeof(*pages));
  if (pages == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for the page lists");
  stream->pages = pages;
  stream->page_capacity = (uint32_t)capacity;
  return KS_OK;
}

static void
take_lacking(ks_kv_table *table, ks_kv_stream *stream, uint32_t n_new)
{
  for (uint64_t n = count_lacking(table, stream, n_new); n > 0; n--) {
    stream->pages[stream->n_page++] = ks_kv_pool_take(table->pool);
    table->n_page++;
  }
}

static ks_status
make_free(ks_kv_pool *pool, uint64_t need, ks_error *err)
{
  if (need <= pool->budget_pages - pool->used_pages)
    return ks_kv_pool_make_free(pool, (uint32_t)need, err);
  return ks_fail(err, KS_ERR_BUDGET,
                 "%llu more pages are needed; %u of %u pages of the memory budget are free",
                 (unsigned long long)need, pool->budget_pages - pool->used_pages,
                 pool->budget_pages);
}

ks_status
ks_kv_table_reserve(ks_kv_table *table, uint32_t n_new, ks_error *err)
{
  ks_status st = make_free(table->pool, ks_kv_table_count_needed(table, n_new), err);

  for (uint32_t s = 0; s < table->n_stream && st == KS_OK; s++)
    st = grow_list(table, &table->streams[s], n_new, err);
  for (uint32_t s = 0; s < table->n_stream && st == KS_OK; s++)
    take_lacking(table, &table->streams[s], n_new);
  return st;
}

ks_status
ks_kv_table_fill(ks_kv_table *table, const uint32_t *n_entry, ks_error *err)
{
  uint64_t need = 0;
  ks_status st;

  assert(table->n_page == 0);
  for (uint32_t s = 0; s < table->n_stream; s++)
    need += count_lacking(table, &table->streams[s], n_entry[s]);
  st = make_free(table->pool, need, err);
  for (uint32_t s = 0; s < table->n_stream && st == KS_OK; s++)
    st = grow_list(table, &table->streams[s], n_entry[s], err);
  for (uint32_t s = 0; s < table->n_stream && st == KS_OK; s++) {
    take_lacking(table, &table->streams[s], n_entry[s]);
    table->streams[s].n_entry = n_entry[s];
    table->n_entry += n_entry[s];
  }
  return st;
}

void
ks_kv_table_commit(ks_kv_table *table, uint32_t n_new)
{
  for (uint32_t s = 0; s < table->n_stream; s++) {
    ks_kv_stream *stream = &table->streams[s];

    stream->n_entry += n_new;
    assert(stream->n_entry <= (uint64_t)stream->n_page * table->pool->layout.page_entries);
  }
  table->n_entry += (uint64_t)table->n_stream * n_new;
}

void
ks_kv_table_commit_growth(ks_kv_table *table, const ks_pass_growth *growth)
{
  for (uint32_t s = 0; s < table->n_stream; s++) {
    ks_kv_stream *stream = &table->streams[s];
    const uint32_t n = ks_pass_growth_get(growth, s / table->pool->layout.n_kv_head);

    stream->n_entry += n;
    assert(stream->n_entry <= (uint64_t)stream->n_page * table->pool->layout.page_entries);
    table->n_entry += n;
  }
  ks_kv_table_set_lengths(table, NULL);
}

void
ks_kv_table_set_lengths(ks_kv_table *table, const uint32_t *n_entry)
{
  const uint32_t p = table->pool->layout.page_entries;

  for (uint32_t s = 0; s < table->n_stream; s++) {
    ks_kv_stream *stream = &table->streams[s];

    if (n_entry != NULL) {
      assert(n_entry[s] <= stream->n_entry);
      table->n_entry -= stream->n_entry - n_entry[s];
      stream->n_entry = n_entry[s];
    }
    release_behind(table, stream, (uint32_t)(((uint64_t)stream->n_entry + p - 1) / p));
  }
}

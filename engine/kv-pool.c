/* kv-pool.c - pages under one byte budget, on one reserved range of device memory.
 * The backed part of the range is always a prefix: growing commits the next slab, shrinking moves
 * the pages behind the new end into free pages before it and drops the rest, so that memory goes
 * back to the system at once. Invariants: kv-pool.h; ks_kv_pool_check verifies them.  Source:
 * docs/adr/0004-page-layout.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/kv-pool.h"

#include "engine/budget.h"
#include "engine/kv-pool-internal.h"

#include <assert.h>
#include <string.h>

#define COMMIT_UNIT ((size_t)KS_KV_UNIT_BYTES) /* the backends' granularity */
#define SLAB_LARGE ((size_t)2 << 20)           /* slabs of a pool of the usual size: a huge page */
#define SLAB_LARGE_FROM ((size_t)16 << 20)

static size_t
round_up(size_t value, size_t unit)
{
  return (value + unit - 1) / unit * unit;
}

ks_status
ks_kv_layout_init(ks_kv_layout *layout, ks_error *err)
{
  const uint32_t p = layout->page_entries;
  size_t k_row, v_row, end;

  if (p == 0 || (p & (p - 1)) != 0 || p > 4096)
    return ks_fail(err, KS_ERR_ARG, "a page cannot hold %u entries; use a power of two", p);
  if (layout->n_layer == 0 || layout->n_kv_head == 0 || layout->k_dim == 0 || layout->v_dim == 0)
    return ks_fail(err, KS_ERR_ARG, "a page layout needs layers, KV heads and head sizes");
  if (layout->kv_dtype != KS_DTYPE_F32 && layout->kv_dtype != KS_DTYPE_F16 &&
      layout->kv_dtype != KS_DTYPE_Q8_0)
    return ks_fail(err, KS_ERR_UNSUPPORTED, "keys and values can be f32, f16 or q8_0 only");
  if (!ks_dtype_row_bytes(layout->kv_dtype, layout->k_dim, &k_row) ||
      !ks_dtype_row_bytes(layout->kv_dtype, layout->v_dim, &v_row))
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "q8_0 keys and values need a head size that is a multiple of 32, not %u and %u",
                   layout->k_dim, layout->v_dim);
  if (k_row > UINT32_MAX / 8 || v_row > UINT32_MAX / 8 || layout->n_aux > 64 ||
      (uint64_t)layout->n_layer * layout->n_kv_head > 1u << 24)
    return ks_fail(err, KS_ERR_ARG, "the page layout is too large");
  layout->k_row_bytes = k_row;
  layout->v_row_bytes = v_row;
  layout->v_offset = round_up(p * k_row, 16);
  layout->log_beta_offset = round_up(layout->v_offset + p * v_row, 16);
  layout->pos_offset = layout->log_beta_offset + round_up(p * sizeof(float), 16);
  layout->aux_offset = layout->pos_offset + round_up(p * sizeof(uint32_t), 16);
  end = layout->aux_offset + p * sizeof(float) * layout->n_aux;
  layout->page_bytes = round_up(end, 64);
  return KS_OK;
}

/* Pages that lie wholly inside the first n_bytes of the range. */
static uint32_t
pages_inside(const ks_kv_pool *pool, size_t n_bytes)
{
  return (uint32_t)(n_bytes / pool->layout.page_bytes);
}

static uint32_t
slab_of(const ks_kv_pool *pool, uint32_t page)
{
  return (uint32_t)(((page + (size_t)1) * pool->layout.page_bytes - 1) / pool->slab_bytes);
}

/* Bytes that n pages need, as the range is committed. */
static size_t
bytes_for(const ks_kv_pool *pool, uint32_t n_page)
{
  return round_up(n_page * pool->layout.page_bytes, COMMIT_UNIT);
}

static ks_status
init_range(ks_kv_pool *pool, uint64_t max_bytes, ks_error *err)
{
  size_t n_slab;

  if (max_bytes > SIZE_MAX / 2 || max_bytes / pool->layout.page_bytes >= KS_NO_PAGE)
    return ks_fail(err, KS_ERR_ARG, "a pool of %llu bytes cannot be addressed; use larger pages",
                   (unsigned long long)max_bytes);
  pool->slab_bytes = max_bytes >= SLAB_LARGE_FROM ? SLAB_LARGE : COMMIT_UNIT;
  pool->range_bytes = round_up((size_t)max_bytes, pool->slab_bytes);
  n_slab = pool->range_bytes / pool->slab_bytes;
  pool->free_head = ks_mem_new(pool->alloc, KS_MEM_HOST, n_slab, sizeof(*pool->free_head));
  if (pool->free_head == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for the page tables");
  pool->n_slab = pool->low_slab = (uint32_t)n_slab;
  for (size_t i = 0; i < n_slab; i++)
    pool->free_head[i] = KS_NO_PAGE;
  return pool->be->t->range_new(pool->be->dev, pool->range_bytes, &pool->base, err);
}

ks_status
ks_kv_pool_new(ks_alloc *a, ks_backend *be, const ks_kv_layout *layout, uint64_t budget_bytes,
               uint64_t max_bytes, ks_kv_pool **out, ks_error *err)
{
  const uint64_t smallest = (uint64_t)layout->n_layer * layout->n_kv_head * layout->page_bytes;
  ks_kv_pool *pool;
  ks_status st;

  assert(layout->page_bytes != 0); /* ks_kv_layout_init was called */
  if (budget_bytes < smallest)
    return ks_fail(err, KS_ERR_BUDGET,
                   "%llu bytes hold less than one page per stream; give at least %llu bytes",
                   (unsigned long long)budget_bytes, (unsigned long long)smallest);
  if (max_bytes < budget_bytes)
    max_bytes = budget_bytes;
  pool = ks_mem_new(a, KS_MEM_HOST, 1, sizeof(*pool));
  if (pool == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for the page pool");
  pool->alloc = a;
  pool->be = be;
  pool->layout = *layout;
  st = init_range(pool, max_bytes, err);
  if (st != KS_OK) {
    ks_kv_pool_free(pool);
    return st;
  }
  pool->budget_bytes = budget_bytes;
  pool->budget_pages = pages_inside(pool, (size_t)budget_bytes);
  *out = pool;
  return KS_OK;
}

/* Gives the range behind n_bytes back to the system; no page there is in use. */
static void
drop_behind(ks_kv_pool *pool, size_t n_bytes)
{
  const uint32_t n_page = pages_inside(pool, n_bytes);

  for (uint32_t s = (uint32_t)(n_bytes / pool->slab_bytes); s < pool->n_slab; s++) {
    uint32_t *link = &pool->free_head[s];

    while (*link != KS_NO_PAGE) {
      if (*link >= n_page)
        *link = pool->next_free[*link];
      else
        link = &pool->next_free[*link];
    }
  }
  if (pool->committed_bytes > n_bytes) {
    pool->be->t->range_drop(pool->be->dev, pool->base, n_bytes, pool->committed_bytes - n_bytes);
    pool->committed_bytes = n_bytes;
    pool->n_page = n_page;
  }
}

void
ks_kv_pool_free(ks_kv_pool *pool)
{
  if (pool == NULL)
    return;
  assert(pool->tables == NULL);
  if (pool->base != 0) {
    drop_behind(pool, 0);
    pool->be->t->range_free(pool->be->dev, pool->base, pool->range_bytes);
  }
  ks_mem_free(pool->next_free);
  ks_mem_free(pool->mark);
  ks_mem_free(pool->free_head);
  ks_mem_free(pool);
}

const ks_kv_layout *
ks_kv_pool_get_layout(const ks_kv_pool *pool)
{
  return &pool->layout;
}

ks_backend *
ks_kv_pool_get_backend(const ks_kv_pool *pool)
{
  return pool->be;
}

uint32_t
ks_kv_pool_get_budget_pages(const ks_kv_pool *pool)
{
  return pool->budget_pages;
}

uint32_t
ks_kv_pool_get_used_pages(const ks_kv_pool *pool)
{
  return pool->used_pages;
}

uint64_t
ks_kv_pool_get_budget_bytes(const ks_kv_pool *pool)
{
  return pool->budget_bytes;
}

uint64_t
ks_kv_pool_get_committed_bytes(const ks_kv_pool *pool)
{
  return pool->committed_bytes;
}

/* Room in the per-page arrays, doubled so that growing stays cheap. */
static ks_status
grow_arrays(ks_kv_pool *pool, uint32_t n_page, ks_error *err)
{
  uint64_t capacity = pool->page_capacity == 0 ? 256 : pool->page_capacity;
  uint32_t *next_free;
  uint8_t *mark;

  if (n_page <= pool->page_capacity)
    return KS_OK;
  while (capacity < n_page)
    capacity *= 2;
  next_free = ks_mem_resize(pool->alloc, KS_MEM_HOST, pool->next_free, (size_t)capacity,
                            sizeof(*next_free));
  if (next_free != NULL)
    pool->next_free = next_free;
  mark = ks_mem_resize(pool->alloc, KS_MEM_HOST, pool->mark, (size_t)capacity, sizeof(*mark));
  if (mark != NULL)
    pool->mark = mark;
  if (next_free == NULL || mark == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for the page tables");
  pool->page_capacity = (uint32_t)capacity;
  return KS_OK;
}

/* Commits up to the end of the next slab, or of the budget.  The backend counts the bytes. */
static ks_status
commit_slab(ks_kv_pool *pool, ks_error *err)
{
  const size_t begin = pool->committed_bytes, limit = bytes_for(pool, pool->budget_pages);
  size_t end = round_up(begin + 1, pool->slab_bytes);
  uint32_t n_page;
  ks_status st;

  if (end > limit)
    end = limit;
  assert(end > begin && end <= pool->range_bytes);
  n_page = pages_inside(pool, end);
  st = grow_arrays(pool, n_page, err);
  if (st != KS_OK)
    return st;
  st = pool->be->t->range_commit(pool->be->dev, pool->base, begin, end - begin, err);
  if (st != KS_OK)
    return st;
  pool->committed_bytes = end;
  for (uint32_t page = n_page; page-- > pool->n_page;) { /* the lowest page comes to the top */
    uint32_t *head = &pool->free_head[slab_of(pool, page)];

    pool->next_free[page] = *head;
    *head = page;
  }
  if (n_page > pool->n_page && slab_of(pool, pool->n_page) < pool->low_slab)
    pool->low_slab = slab_of(pool, pool->n_page);
  pool->n_page = n_page;
  return KS_OK;
}

ks_status
ks_kv_pool_make_free(ks_kv_pool *pool, uint32_t n, ks_error *err)
{
  while (pool->n_page - pool->used_pages < n) {
    ks_status st = commit_slab(pool, err);

    if (st != KS_OK)
      return st;
  }
  return KS_OK;
}

uint32_t
ks_kv_pool_take(ks_kv_pool *pool)
{
  uint32_t page;

  while (pool->low_slab < pool->n_slab && pool->free_head[pool->low_slab] == KS_NO_PAGE)
    pool->low_slab++;
  assert(pool->low_slab < pool->n_slab);
  page = pool->free_head[pool->low_slab];
  pool->free_head[pool->low_slab] = pool->next_free[page];
  pool->used_pages++;
  return page;
}

void
ks_kv_pool_give(ks_kv_pool *pool, uint32_t page)
{
  const uint32_t slab = slab_of(pool, page);

  assert(page < pool->n_page && pool->used_pages > 0);
  pool->next_free[page] = pool->free_head[slab];
  pool->free_head[slab] = page;
  if (slab < pool->low_slab)
    pool->low_slab = slab;
  pool->used_pages--;
}

/* Takes the first free page before n_page; there is one.  Only the slab that the new end cuts
 * through holds free pages of both sides. */
static uint32_t
take_before(ks_kv_pool *pool, uint32_t n_page)
{
  for (uint32_t s = pool->low_slab; s < pool->n_slab; s++) {
    uint32_t *link = &pool->free_head[s];
    uint32_t page;

    while (*link != KS_NO_PAGE && *link >= n_page)
      link = &pool->next_free[*link];
    if (*link == KS_NO_PAGE)
      continue;
    page = *link;
    *link = pool->next_free[page];
    pool->used_pages++;
    return page;
  }
  assert(false);
  return KS_NO_PAGE;
}

/* Moves every page of one stream that lies at or behind n_page before it. */
static ks_status
move_stream(ks_kv_pool *pool, const ks_kv_view *view, ks_kv_stream *stream, uint32_t n_page,
            ks_error *err)
{
  for (uint32_t i = 0; i < stream->n_page; i++) {
    const uint32_t src = stream->pages[i];
    uint32_t dst;
    ks_status st;

    if (src < n_page)
      continue;
    dst = take_before(pool, n_page);
    st = pool->be->t->kv_move_page(pool->be->dev, view, dst, src, err);
    ks_kv_pool_give(pool, st == KS_OK ? src : dst);
    if (st != KS_OK)
      return st;
    stream->pages[i] = dst;
  }
  return KS_OK;
}

/* Brings all pages to the front and keeps n_bytes of the range committed; they have room there. */
static ks_status
pack(ks_kv_pool *pool, size_t n_bytes, ks_error *err)
{
  const uint32_t n_page = pages_inside(pool, n_bytes);

  if (n_bytes >= pool->committed_bytes)
    return KS_OK;
  assert(pool->used_pages <= n_page);
  for (ks_kv_table *table = pool->tables; table != NULL; table = table->next) {
    const ks_kv_view view = ks_kv_table_get_view(table);

    for (uint32_t s = 0; s < table->n_stream; s++) {
      ks_status st = move_stream(pool, &view, &table->streams[s], n_page, err);

      if (st != KS_OK)
        return st;
    }
  }
  drop_behind(pool, n_bytes);
  return KS_OK;
}

static ks_status
fail_large(const ks_kv_pool *pool, ks_error *err)
{
  char most[KS_BUDGET_TEXT_BYTES];

  ks_budget_format_bytes(pool->range_bytes, KS_BUDGET_DOWN, most);
  return ks_fail(err, KS_ERR_ARG, "keys and values can take %s at most here; set a smaller budget",
                 most);
}

ks_status
ks_kv_pool_set_budget(ks_kv_pool *pool, uint64_t budget_bytes, ks_error *err)
{
  uint32_t n_page;
  ks_status st;

  if (budget_bytes > pool->range_bytes)
    return fail_large(pool, err);
  n_page = pages_inside(pool, (size_t)budget_bytes);
  if (n_page < pool->used_pages || n_page < pool->layout.n_layer * pool->layout.n_kv_head)
    return ks_fail(err, KS_ERR_BUDGET,
                   "%llu bytes hold %u pages; %u are in use and %u is the least that works",
                   (unsigned long long)budget_bytes, n_page, pool->used_pages,
                   pool->layout.n_layer * pool->layout.n_kv_head);
  st = pack(pool, bytes_for(pool, n_page), err);
  if (st != KS_OK)
    return st;
  pool->budget_bytes = budget_bytes;
  pool->budget_pages = n_page;
  assert(pool->committed_bytes <= bytes_for(pool, n_page));
  return KS_OK;
}

void
ks_kv_pool_trim(ks_kv_pool *pool)
{
  const size_t n_bytes = bytes_for(pool, pool->used_pages);
  const ks_status st = pack(pool, n_bytes, NULL);

  (void)st; /* a page that could not be moved stays where it is: nothing is lost but the room */
}

/* Marks the pages of one table as owned; false for a page out of range or owned twice. */
static bool
mark_table(const ks_kv_pool *pool, const ks_kv_table *table, uint32_t *n_used)
{
  const uint32_t p = pool->layout.page_entries;
  uint64_t n_entry = 0;
  uint32_t n_page = 0;

  for (uint32_t s = 0; s < table->n_stream; s++) {
    const ks_kv_stream *stream = &table->streams[s];

    if (stream->n_page > stream->page_capacity || stream->n_entry > (uint64_t)stream->n_page * p)
      return false;
    for (uint32_t i = 0; i < stream->n_page; i++) {
      const uint32_t page = stream->pages[i];

      if (page >= pool->n_page || pool->mark[page] != 0)
        return false;
      pool->mark[page] = 1;
    }
    n_entry += stream->n_entry;
    n_page += stream->n_page;
  }
  *n_used += n_page;
  return n_entry == table->n_entry && n_page == table->n_page && table->pool == pool;
}

bool
ks_kv_pool_check(const ks_kv_pool *pool)
{
  uint32_t n_used = 0, n_free = 0;

  if (pool->used_pages > pool->budget_pages || pool->n_page > pool->page_capacity ||
      pool->n_page != pages_inside(pool, pool->committed_bytes) ||
      pool->committed_bytes > bytes_for(pool, pool->budget_pages) ||
      pool->committed_bytes > pool->range_bytes)
    return false;
  if (pool->n_page > 0)
    memset(pool->mark, 0, pool->n_page);
  for (const ks_kv_table *table = pool->tables; table != NULL; table = table->next)
    if (!mark_table(pool, table, &n_used))
      return false;
  for (uint32_t s = 0; s < pool->n_slab; s++)
    for (uint32_t page = pool->free_head[s]; page != KS_NO_PAGE; page = pool->next_free[page]) {
      if (page >= pool->n_page || pool->mark[page] != 0 || slab_of(pool, page) != s ||
          s < pool->low_slab)
        return false;
      pool->mark[page] = 1;
      n_free++;
    }
  return n_used == pool->used_pages && n_used + n_free == pool->n_page;
}

uint64_t
ks_kv_entries_for_pages(const ks_kv_layout *layout, uint64_t n_page, uint32_t chunk)
{
  const uint64_t n_stream = (uint64_t)layout->n_layer * layout->n_kv_head;
  const uint64_t room = n_stream * ((uint64_t)chunk + layout->page_entries - 1);

  return n_page * layout->page_entries > room ? n_page * layout->page_entries - room : 0;
}

uint64_t
ks_kv_pages_for_entries(const ks_kv_layout *layout, uint64_t n_entry, uint32_t chunk)
{
  const uint64_t n_stream = (uint64_t)layout->n_layer * layout->n_kv_head;
  const uint64_t room = n_stream * ((uint64_t)chunk + layout->page_entries - 1);

  return (n_entry + room + layout->page_entries - 1) / layout->page_entries;
}

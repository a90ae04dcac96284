/* snapshot.c - writing a snapshot: see snapshot.h; reading is in snapshot-read.c.
 * A stream is fetched from the device page by page and given out plane after plane, so that the
 * file does not depend on the size of a page. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/snapshot.h"

#include "engine/snapshot-internal.h"
#include "engine/timeline-internal.h"

#include <assert.h>
#include <string.h>

typedef struct writer {
  ks_crc32c crc;
  uint32_t sum;
  uint64_t n_put;
  ks_snapshot_sink sink;
  void *user;
  bool failed;
} writer;

static void
put(writer *w, const void *data, size_t n_bytes)
{
  if (w->failed || n_bytes == 0)
    return;
  w->sum = ks_crc32c_add(&w->crc, w->sum, data, n_bytes);
  w->n_put += n_bytes;
  w->failed = !w->sink(w->user, data, n_bytes);
}

static void
put_u32(writer *w, uint32_t value)
{
  const unsigned char bytes[4] = {(unsigned char)value, (unsigned char)(value >> 8),
                                  (unsigned char)(value >> 16), (unsigned char)(value >> 24)};

  put(w, bytes, sizeof(bytes));
}

static void
put_u64(writer *w, uint64_t value)
{
  put_u32(w, (uint32_t)value);
  put_u32(w, (uint32_t)(value >> 32));
}

static void
put_sum(writer *w)
{
  const uint32_t sum = w->sum;

  put_u32(w, sum);
  w->sum = 0;
}

static void
begin_section(writer *w, ks_snapshot_section kind, uint64_t n_bytes)
{
  put_u32(w, (uint32_t)kind);
  put_u64(w, n_bytes);
}

/* A section that lies in one piece. */
static void
put_section(writer *w, ks_snapshot_section kind, const void *data, size_t n_bytes)
{
  begin_section(w, kind, n_bytes);
  put(w, data, n_bytes);
  put_sum(w);
}

static uint64_t
entry_bytes(const ks_kv_layout *layout)
{
  return layout->k_row_bytes + layout->v_row_bytes + sizeof(float) + sizeof(uint32_t) +
         (uint64_t)layout->n_aux * sizeof(float);
}

static size_t
count_logits(ks_timeline *tl, const ks_snapshot_params *params)
{
  return params->with_logits && ks_timeline_get_logits(tl) != NULL ? tl->shape->n_vocab : 0;
}

uint64_t
ks_snapshot_count_bytes(ks_timeline *tl, const ks_snapshot_params *params)
{
  const ks_kv_layout *layout = ks_kv_pool_get_layout(tl->params.pool);

  return KS_SNAPSHOT_HEAD_BYTES + (KS_SECTION_END - 1) * (uint64_t)KS_SNAPSHOT_FRAME_BYTES +
         KS_SNAPSHOT_LAYOUT_BYTES + KS_SNAPSHOT_STATE_BYTES +
         (uint64_t)tl->seen * KS_SNAPSHOT_TOKEN_BYTES +
         (uint64_t)tl->n_pin * KS_SNAPSHOT_PIN_BYTES +
         (uint64_t)tl->n_picture * KS_SNAPSHOT_PICTURE_BYTES +
         (uint64_t)tl->n_stream * sizeof(uint32_t) +
         ks_kv_table_get_n_entries(tl->table) * entry_bytes(layout) +
         ks_evict_count_query_bytes(tl->evict, layout) + count_logits(tl, params) * sizeof(float) +
         params->n_notes;
}

static void
put_head(writer *w, const ks_snapshot_label *label, uint64_t n_bytes)
{
  const uint32_t order = KS_SNAPSHOT_ORDER;

  put(w, KS_SNAPSHOT_MAGIC, 8);
  put_u32(w, KS_SNAPSHOT_VERSION);
  put(w, &order, sizeof(order));
  put_u64(w, n_bytes);
  put(w, label->weights, sizeof(label->weights));
  put(w, label->content, sizeof(label->content));
  put_sum(w);
}

static void
put_layout(writer *w, const ks_kv_layout *layout)
{
  begin_section(w, KS_SECTION_LAYOUT, KS_SNAPSHOT_LAYOUT_BYTES);
  put_u32(w, layout->n_layer);
  put_u32(w, layout->n_kv_head);
  put_u32(w, layout->k_dim);
  put_u32(w, layout->v_dim);
  put_u32(w, (uint32_t)layout->kv_dtype);
  put_u32(w, layout->n_aux);
  put_sum(w);
}

static void
put_state(writer *w, const ks_timeline *tl, const ks_snapshot_params *params)
{
  begin_section(w, KS_SECTION_STATE, KS_SNAPSHOT_STATE_BYTES);
  put_u32(w, tl->seen);
  put_u32(w, (uint32_t)tl->rope_next);
  put_u32(w, tl->turn);
  put_u32(w, tl->attachment);
  put_u32(w, tl->shape->n_vocab);
  put_u32(w, tl->n_remap);
  put_u32(w, (uint32_t)tl->remap_from);
  put_u32(w, tl->since_evict);
  put_u64(w, tl->n_evicted);
  put_u64(w, tl->n_eviction_runs);
  put_u64(w, tl->least_keep);
  put_u64(w, params->rng[0]);
  put_u64(w, params->rng[1]);
  put_sum(w);
}

/* Whole grids: where tokens of a picture were left out, those that came do not tell. */
static void
put_pictures(writer *w, const ks_timeline *tl)
{
  begin_section(w, KS_SECTION_PICTURES, (uint64_t)tl->n_picture * KS_SNAPSHOT_PICTURE_BYTES);
  for (uint32_t i = 0; i < tl->n_picture; i++) {
    put_u32(w, tl->pictures[i].grid_rows);
    put_u32(w, tl->pictures[i].grid_cols);
    put_u32(w, tl->pictures[i].overview_rows);
    put_u32(w, tl->pictures[i].overview_cols);
  }
  put_sum(w);
}

/* Gives out one plane of a stream whose pages lie behind each other in pages. */
static void
put_plane(writer *w, const ks_kv_layout *layout, const unsigned char *pages, uint32_t n_entry,
          size_t offset, size_t row_bytes)
{
  for (uint32_t e = 0; e < n_entry; e += layout->page_entries) {
    const uint32_t left = n_entry - e,
                   n = left < layout->page_entries ? left : layout->page_entries;

    put(w, pages + (e / layout->page_entries) * layout->page_bytes + offset, n * row_bytes);
  }
}

static ks_status
put_stream(writer *w, const ks_backend *be, const ks_kv_view *view, const ks_kv_stream *stream,
           unsigned char *pages, ks_error *err)
{
  const ks_kv_layout *layout = view->layout;
  const uint32_t p = layout->page_entries, n_page = (stream->n_entry + p - 1) / p;

  for (uint32_t i = 0; i < n_page; i++) {
    const ks_status st = be->t->download(be->dev, pages + i * layout->page_bytes,
                                         view->base + stream->pages[i] * layout->page_bytes,
                                         layout->page_bytes, err);

    if (st != KS_OK)
      return st;
  }
  put_plane(w, layout, pages, stream->n_entry, 0, layout->k_row_bytes);
  put_plane(w, layout, pages, stream->n_entry, layout->v_offset, layout->v_row_bytes);
  put_plane(w, layout, pages, stream->n_entry, layout->log_beta_offset, sizeof(float));
  put_plane(w, layout, pages, stream->n_entry, layout->pos_offset, sizeof(uint32_t));
  for (uint32_t j = 0; j < layout->n_aux; j++)
    put_plane(w, layout, pages, stream->n_entry, layout->aux_offset + (size_t)j * p * sizeof(float),
              sizeof(float));
  return KS_OK;
}

/* Lengths of all streams, then their planes. */
static ks_status
put_streams(writer *w, const ks_timeline *tl, ks_error *err)
{
  const ks_kv_view view = ks_kv_table_get_view(tl->table);
  const ks_backend *be = ks_kv_pool_get_backend(tl->params.pool);
  unsigned char *pages;
  uint32_t most = 0;
  ks_status st = KS_OK;

  begin_section(w, KS_SECTION_LENGTHS, (uint64_t)tl->n_stream * sizeof(uint32_t));
  for (uint32_t s = 0; s < tl->n_stream; s++) {
    most = view.streams[s].n_page > most ? view.streams[s].n_page : most;
    put_u32(w, view.streams[s].n_entry);
  }
  put_sum(w);
  pages = ks_mem_new(tl->alloc, KS_MEM_HOST, most, view.layout->page_bytes);
  if (pages == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory to keep a conversation");
  begin_section(w, KS_SECTION_STREAMS,
                ks_kv_table_get_n_entries(tl->table) * entry_bytes(view.layout));
  for (uint32_t s = 0; s < tl->n_stream && st == KS_OK && !w->failed; s++)
    st = put_stream(w, be, &view, &view.streams[s], pages, err);
  put_sum(w);
  ks_mem_free(pages);
  return st;
}

/* Those that a policy has noted of the last tokens. */
static ks_status
put_queries(writer *w, const ks_timeline *tl, ks_error *err)
{
  const ks_kv_layout *layout = ks_kv_pool_get_layout(tl->params.pool);
  const uint64_t n_bytes = ks_evict_count_query_bytes(tl->evict, layout);
  unsigned char *data = ks_mem_new(tl->alloc, KS_MEM_HOST, (size_t)n_bytes, 1);
  ks_status st;

  if (data == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory to keep a conversation");
  st = ks_evict_save_queries(tl->evict, layout, data, err);
  if (st == KS_OK)
    put_section(w, KS_SECTION_QUERIES, data, (size_t)n_bytes);
  ks_mem_free(data);
  return st;
}

static ks_status
put_all(writer *w, ks_timeline *tl, const ks_snapshot_params *params, ks_error *err)
{
  const size_t n_logit = count_logits(tl, params);
  ks_status st;

  put_head(w, &params->label, ks_snapshot_count_bytes(tl, params));
  put_layout(w, ks_kv_pool_get_layout(tl->params.pool));
  put_state(w, tl, params);
  put_section(w, KS_SECTION_TOKENS, tl->tokens, tl->seen * sizeof(*tl->tokens));
  put_section(w, KS_SECTION_PINS, tl->pins, tl->n_pin * sizeof(*tl->pins));
  put_pictures(w, tl);
  st = put_streams(w, tl, err);
  if (st == KS_OK)
    st = put_queries(w, tl, err);
  put_section(w, KS_SECTION_LOGITS, tl->logits, n_logit * sizeof(*tl->logits));
  put_section(w, KS_SECTION_NOTES, params->notes, params->n_notes);
  return st;
}

ks_status
ks_snapshot_write(ks_timeline *tl, const ks_snapshot_params *params, ks_snapshot_sink sink,
                  void *user, ks_error *err)
{
  writer *w = ks_mem_new(tl->alloc, KS_MEM_HOST, 1, sizeof(*w));
  ks_status st;

  if (w == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory to keep a conversation");
  ks_crc32c_init(&w->crc);
  w->sink = sink;
  w->user = user;
  st = put_all(w, tl, params, err);
  if (st == KS_OK && w->failed)
    st = ks_fail(err, KS_ERR_IO, "the state of the conversation could not be kept");
  assert(st != KS_OK || w->n_put == ks_snapshot_count_bytes(tl, params));
  ks_mem_free(w);
  return st;
}

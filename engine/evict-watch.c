/* evict-watch.c - what policies that judge by attention note of the passes, and what they make of
 * it. The queries of the last tokens are kept, layer by layer, in a ring of as many slots as the
 * window has; when something is to be forgotten, their attention over the entries of that moment is
 * computed once.  Ordinary passes cost no more than a copy of some rows, whatever their length.
 * H2O, which counts all queries, has its passes add what every entry receives to an aux plane
 * instead. Invariant: a slot's query is that of the token that slot_pos names. Source:
 * docs/method.md, section 6. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/evict-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void
ks_evict_set_heads(ks_evict *evict, uint32_t n_head, float attn_scale)
{
  evict->n_head = n_head;
  evict->attn_scale = attn_scale;
}

void
ks_evict_forget_queries(ks_evict *evict)
{
  for (uint32_t i = 0; i < evict->ring.n_slot; i++)
    evict->ring.slot_pos[i] = KS_NO_POS;
}

uint32_t
ks_evict_count_queries(const ks_evict *evict)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < evict->ring.n_slot; i++)
    n += evict->ring.slot_pos[i] != KS_NO_POS;
  return n;
}

static void
free_dev(ks_evict *evict, ks_dptr *p)
{
  if (*p != 0)
    evict->be->t->mem_free(evict->be->dev, *p);
  *p = 0;
}

static void
free_ring(ks_evict *evict)
{
  ks_query_ring *ring = &evict->ring;

  free_dev(evict, &ring->queries);
  free_dev(evict, &ring->bounds);
  free_dev(evict, &ring->out);
  ks_mem_free(ring->slot_pos);
  ks_mem_free(ring->slot_last);
  ks_mem_free(ring->host);
  memset(ring, 0, sizeof(*ring));
}

void
ks_evict_free_lines(ks_evict *evict)
{
  free_dev(evict, &evict->unit_keys);
  free_dev(evict, &evict->alike);
  ks_mem_free(evict->line);
  ks_mem_free(evict->alike_host);
  ks_mem_free(evict->alike_column);
  evict->line = evict->alike_host = NULL;
  evict->alike_column = NULL;
  evict->line_capacity = 0;
}

void
ks_evict_free_watch(ks_evict *evict)
{
  free_ring(evict);
  ks_evict_free_lines(evict);
}

static ks_status
new_dev(ks_evict *evict, uint64_t n, size_t size, ks_dptr *out, ks_error *err)
{
  size_t n_bytes;

  if (n > SIZE_MAX || !ks_mul_size((size_t)n, size, &n_bytes))
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory to watch attention");
  return evict->be->t->mem_new(evict->be->dev, KS_MEM_SCRATCH, n_bytes, out, err);
}

/* Floats of the queries, the bounds and the unused result. */
static uint64_t
count_ring_numbers(const ks_kv_layout *layout, uint32_t n_head, uint32_t n_slot)
{
  const uint64_t queries = (uint64_t)layout->n_layer * n_head * layout->k_dim;

  return n_slot * (queries + layout->n_layer + 1 + (uint64_t)n_head * layout->v_dim);
}

ks_status
ks_evict_reserve_watch(ks_evict *evict, const ks_kv_layout *layout, ks_error *err)
{
  ks_query_ring *ring = &evict->ring;
  const uint32_t n_slot = evict->ops->has_window ? evict->params.window : 0;
  const uint64_t n_bound = (uint64_t)n_slot * (layout->n_layer + 1);
  ks_status st;

  if (ring->n_slot == n_slot)
    return KS_OK;
  free_ring(evict);
  if (n_slot == 0)
    return KS_OK;
  st = new_dev(evict, (uint64_t)layout->n_layer * n_slot * evict->n_head,
               layout->k_dim * sizeof(float), &ring->queries, err);
  if (st == KS_OK)
    st = new_dev(evict, n_bound, sizeof(uint32_t), &ring->bounds, err);
  if (st == KS_OK)
    st = new_dev(evict, (uint64_t)n_slot * evict->n_head, layout->v_dim * sizeof(float), &ring->out,
                 err);
  ring->slot_pos = ks_mem_new(evict->alloc, KS_MEM_HOST, n_slot, sizeof(uint32_t));
  ring->slot_last = ks_mem_new(evict->alloc, KS_MEM_HOST, n_slot, sizeof(uint32_t));
  ring->host = ks_mem_new(evict->alloc, KS_MEM_HOST, (size_t)n_bound, sizeof(uint32_t));
  if (st == KS_OK && (ring->slot_pos == NULL || ring->slot_last == NULL || ring->host == NULL))
    st = ks_fail(err, KS_ERR_NOMEM, "not enough memory to watch attention");
  if (st != KS_OK) {
    free_ring(evict);
    return st;
  }
  ring->n_slot = n_slot;
  ks_evict_forget_queries(evict);
  return KS_OK;
}

/* ---- for snapshots: [n_slot] of whom, [n_slot] what they saw, then the queries as they lie ----
 */

static uint64_t
count_bytes(const ks_evict *evict, const ks_kv_layout *layout, uint32_t n_slot)
{
  return n_slot * (2 * sizeof(uint32_t) +
                   (uint64_t)layout->n_layer * evict->n_head * layout->k_dim * sizeof(float));
}

uint64_t
ks_evict_count_query_bytes(const ks_evict *evict, const ks_kv_layout *layout)
{
  return ks_evict_count_queries(evict) > 0 ? count_bytes(evict, layout, evict->ring.n_slot) : 0;
}

ks_status
ks_evict_save_queries(const ks_evict *evict, const ks_kv_layout *layout, unsigned char *out,
                      ks_error *err)
{
  const ks_query_ring *ring = &evict->ring;
  const size_t n_slot_bytes = ring->n_slot * sizeof(uint32_t);

  if (ks_evict_count_queries(evict) == 0)
    return KS_OK;
  memcpy(out, ring->slot_pos, n_slot_bytes);
  memcpy(out + n_slot_bytes, ring->slot_last, n_slot_bytes);
  return evict->be->t->download(evict->be->dev, out + 2 * n_slot_bytes, ring->queries,
                                (size_t)count_bytes(evict, layout, ring->n_slot) - 2 * n_slot_bytes,
                                err);
}

/* A slot's query is that of the token that belongs there, and finite. */
static bool
are_queries_sound(const uint32_t *slot_pos, uint32_t n_slot, uint32_t seen,
                  const unsigned char *queries, size_t n_bytes)
{
  for (uint32_t i = 0; i < n_slot; i++)
    if (slot_pos[i] != KS_NO_POS && (slot_pos[i] >= seen || slot_pos[i] % n_slot != i))
      return false;
  for (size_t i = 0; i < n_bytes; i += sizeof(float)) {
    float value;

    memcpy(&value, queries + i, sizeof(value));
    if (!isfinite(value))
      return false;
  }
  return true;
}

ks_status
ks_evict_load_queries(ks_evict *evict, const ks_kv_layout *layout, const unsigned char *data,
                      size_t n_bytes, uint32_t seen, ks_error *err)
{
  ks_query_ring *ring = &evict->ring;
  size_t n_slot_bytes;
  ks_status st = ks_evict_reserve_watch(evict, layout, err);

  if (st != KS_OK)
    return st;
  ks_evict_forget_queries(evict);
  if (n_bytes == 0 || n_bytes != count_bytes(evict, layout, ring->n_slot))
    return KS_OK;
  n_slot_bytes = ring->n_slot * sizeof(uint32_t);
  memcpy(ring->slot_pos, data, n_slot_bytes);
  memcpy(ring->slot_last, data + n_slot_bytes, n_slot_bytes);
  if (!are_queries_sound(ring->slot_pos, ring->n_slot, seen, data + 2 * n_slot_bytes,
                         n_bytes - 2 * n_slot_bytes))
    st = ks_fail(err, KS_ERR_FORMAT, "kept queries cannot be");
  else
    st = evict->be->t->upload(evict->be->dev, ring->queries, data + 2 * n_slot_bytes,
                              n_bytes - 2 * n_slot_bytes, err);
  if (st != KS_OK)
    ks_evict_forget_queries(evict);
  return st;
}

/* ---- passes ---- */

ks_status
ks_evict_begin_pass(ks_evict *evict, const ks_kv_table *table, uint32_t pos0, uint32_t n_tok,
                    ks_pass_watch *out, ks_error *err)
{
  const ks_kv_layout *layout = ks_kv_table_get_view(table).layout;
  ks_query_ring *ring = &evict->ring;
  ks_pass_watch watch = {0};
  ks_status st = ks_evict_reserve_watch(evict, layout, err);

  if (st == KS_OK && evict->ops->n_aux > 0)
    st = ks_evict_reserve(
        evict, table,
        ks_kv_table_get_n_entries(table) + (uint64_t)ks_kv_table_get_n_stream(table) * n_tok, err);
  if (st != KS_OK)
    return st;
  watch.queries = ring->queries;
  watch.n_slot = ring->n_slot;
  watch.mass = evict->ops->n_aux > 0 ? evict->scores : 0;
  /* What the pass writes over is lost, also when it fails. */
  for (uint32_t i = 0; i < n_tok && i < ring->n_slot; i++)
    ring->slot_pos[(pos0 + n_tok - 1 - i) % ring->n_slot] = KS_NO_POS;
  evict->growth = (ks_pass_growth){.n = n_tok, .thin_from = UINT32_MAX};
  *out = watch;
  return KS_OK;
}

void
ks_evict_set_growth(ks_evict *evict, const ks_pass_growth *growth)
{
  evict->growth = *growth;
}

/* Adds what the pass left in the scores to the entries, those of the pass included. */
static ks_status
add_pass_mass(ks_evict *evict, const ks_kv_view *view, ks_error *err)
{
  const ks_backend *be = evict->be;
  const uint32_t n_head = view->layout->n_kv_head;
  uint64_t *offset = ks_mem_new(evict->alloc, KS_MEM_HOST, n_head, sizeof(*offset)), at = 0;
  ks_status st;

  if (offset == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory to watch attention");
  st = be->t->step_begin(be->dev, err);
  if (st != KS_OK)
    goto out;
  for (uint32_t l = 0; st == KS_OK && l < view->layout->n_layer; l++) {
    const uint32_t n_new = ks_pass_growth_get(&evict->growth, l);
    const ks_op_kv_add_mass op = {
        .kv = *view, .layer = l, .n_new = n_new, .mass = evict->scores, .mass_offset = offset};

    for (uint32_t h = 0; h < n_head; h++) {
      offset[h] = at;
      at += (uint64_t)view->streams[l * n_head + h].n_entry + n_new;
    }
    st = be->t->kv_add_mass(be->dev, &op);
  }
  if (st == KS_OK) {
    st = be->t->step_end(be->dev, NULL, NULL, err);
  } else {
    be->t->step_abort(be->dev);
    st = ks_fail(err, st, "the device could not take the attention of a pass");
  }
out:
  ks_mem_free(offset);
  return st;
}

ks_status
ks_evict_end_pass(ks_evict *evict, const ks_kv_table *table, uint32_t pos0, uint32_t n_tok,
                  const uint32_t *last, ks_error *err)
{
  const ks_kv_view view = ks_kv_table_get_view(table);
  ks_query_ring *ring = &evict->ring;
  ks_status st = KS_OK;

  if (evict->ops->n_aux > 0)
    st = add_pass_mass(evict, &view, err);
  for (uint32_t i = 0; st == KS_OK && i < n_tok && i < ring->n_slot; i++) {
    const uint32_t row = n_tok - 1 - i, slot = (pos0 + row) % ring->n_slot;

    ring->slot_pos[slot] = pos0 + row;
    ring->slot_last[slot] = last[row];
  }
  return st;
}

/* The bounds of what every query sees: of a layer with a window no more than the newest query. */
static ks_status
upload_bounds(ks_evict *evict, const ks_kv_layout *layout, const uint32_t *live_from, ks_error *err)
{
  ks_query_ring *ring = &evict->ring;
  const uint32_t n_slot = ring->n_slot, n_layer = layout->n_layer;

  for (uint32_t i = 0; i < n_slot; i++) {
    const bool is_empty = ring->slot_pos[i] == KS_NO_POS;

    for (uint32_t l = 0; l < n_layer; l++)
      ring->host[l * n_slot + i] = is_empty ? UINT32_MAX : live_from[l];
    ring->host[n_layer * n_slot + i] = is_empty ? 0 : ring->slot_last[i];
  }
  return evict->be->t->upload(evict->be->dev, ring->bounds, ring->host,
                              (size_t)(n_layer + 1) * n_slot * sizeof(uint32_t), err);
}

/* One layer's attention; offset is the place of its first stream in the scores, which *n_entry more
 * follow. */
static ks_status
record_layer(ks_evict *evict, const ks_kv_view *view, uint32_t layer, uint64_t offset,
             uint64_t *mass_offset, uint64_t *n_entry)
{
  const ks_query_ring *ring = &evict->ring;
  const ks_kv_layout *layout = view->layout;
  const size_t bound_bytes = ring->n_slot * sizeof(uint32_t);
  const size_t layer_bytes = (size_t)ring->n_slot * evict->n_head * layout->k_dim * sizeof(float);
  const ks_op_attention op = {.kv = *view,
                              .layer = layer,
                              .n_tok = ring->n_slot,
                              .n_head = evict->n_head,
                              .q = ring->queries + layer * layer_bytes,
                              .out = ring->out,
                              .first = ring->bounds + layer * bound_bytes,
                              .last = ring->bounds + layout->n_layer * bound_bytes,
                              .scale = evict->attn_scale,
                              .mass = evict->scores,
                              .mass_offset = mass_offset,
                              .mass_window = ring->n_slot};
  uint64_t n = 0;

  for (uint32_t h = 0; h < layout->n_kv_head; h++) {
    mass_offset[h] = offset + n;
    n += view->streams[layer * layout->n_kv_head + h].n_entry;
  }
  *n_entry = n;
  return n > 0 ? evict->be->t->attention(evict->be->dev, &op) : KS_OK;
}

ks_status
ks_evict_sum_attention(ks_evict *evict, const ks_kv_view *view, const uint32_t *live_from,
                       ks_error *err)
{
  const ks_backend *be = evict->be;
  const uint32_t n_layer = view->layout->n_layer;
  uint64_t *mass_offset, offset = 0, n_entry = 0;
  ks_status st;

  for (uint32_t s = 0; s < evict->n_stream; s++)
    n_entry += view->streams[s].n_entry;
  if (evict->ring.n_slot == 0 || ks_evict_count_queries(evict) == 0) {
    memset(evict->host_scores, 0, (size_t)n_entry * sizeof(float));
    return be->t->upload(be->dev, evict->scores, evict->host_scores,
                         (size_t)n_entry * sizeof(float), err);
  }
  mass_offset = ks_mem_new(evict->alloc, KS_MEM_HOST, view->layout->n_kv_head, sizeof(uint64_t));
  if (mass_offset == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory to watch attention");
  st = upload_bounds(evict, view->layout, live_from, err);
  if (st == KS_OK)
    st = be->t->step_begin(be->dev, err);
  if (st != KS_OK)
    goto out;
  for (uint32_t l = 0; st == KS_OK && l < n_layer; l++) {
    st = record_layer(evict, view, l, offset, mass_offset, &n_entry);
    offset += n_entry;
  }
  if (st == KS_OK) {
    st = be->t->step_end(be->dev, NULL, NULL, err);
  } else {
    be->t->step_abort(be->dev);
    st = ks_fail(err, st, "the device could not take the attention of the last queries");
  }
out:
  ks_mem_free(mass_offset);
  return st;
}

ks_status
ks_evict_reserve_lines(ks_evict *evict, const ks_kv_layout *layout, uint32_t n_entry, ks_error *err)
{
  const bool compares = evict->ops->compares_keys;
  const uint32_t capacity = n_entry + n_entry / 4 + 64;
  ks_status st = KS_OK;

  if (!evict->ops->has_window ||
      (n_entry <= evict->line_capacity && (!compares || evict->unit_keys != 0)))
    return KS_OK;
  ks_evict_free_lines(evict);
  evict->line = ks_mem_new(evict->alloc, KS_MEM_HOST, capacity, sizeof(float));
  if (compares) {
    st = new_dev(evict, capacity, layout->k_dim * sizeof(float), &evict->unit_keys, err);
    if (st == KS_OK)
      st = new_dev(evict, capacity, KS_ALIKE_ROWS * sizeof(float), &evict->alike, err);
    evict->alike_host =
        ks_mem_new(evict->alloc, KS_MEM_SCRATCH, capacity, KS_ALIKE_ROWS * sizeof(float));
    evict->alike_column = ks_mem_new(evict->alloc, KS_MEM_HOST, capacity, sizeof(double));
  }
  if (st == KS_OK && (evict->line == NULL ||
                      (compares && (evict->alike_host == NULL || evict->alike_column == NULL))))
    st = ks_fail(err, KS_ERR_NOMEM, "not enough memory to rank a stream of %u entries", n_entry);
  if (st != KS_OK)
    ks_evict_free_lines(evict);
  else
    evict->line_capacity = capacity;
  return st;
}

/* Streams of unequal length: none is thought to have more than twice its share, but for what a pass
 * adds.  The counts of H2O are in its pages. */
uint64_t
ks_evict_count_watch_bytes(const ks_evict_params *params, const ks_kv_layout *layout,
                           uint32_t n_head, uint64_t n_keep, uint32_t n_tok)
{
  const ks_policy_ops *ops = ks_policy_get_ops(params->policy);
  const uint64_t n_stream = (uint64_t)layout->n_layer * layout->n_kv_head;
  const uint64_t longest = 2 * (n_keep / n_stream) + n_tok;
  uint64_t n_bytes = 0;

  if (ops->has_window)
    n_bytes += count_ring_numbers(layout, n_head, params->window) * sizeof(float);
  if (ops->compares_keys)
    n_bytes += (longest * 5 / 4 + 64) * (layout->k_dim + 2 * KS_ALIKE_ROWS) * sizeof(float);
  return n_bytes;
}

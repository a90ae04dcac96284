/* vision-block.c - one block of a vision tower over all rows of a picture.
 * Blocks whose rows see each other inside a tile (windows; a picture that is one tile) run tile by
 * tile from the norm to the feed-forward.  Others see the whole picture: keys and values of a group
 * of heads are appended tile by tile to pages, then the queries of every tile read them.  With all
 * heads in one group the residual stream is changed at once; with several, attention is kept until
 * the last group is through, because the norms read the stream as it was.
 * Source: docs/method.md, section 10; docs/adr/0017-vision-scratch.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-internal.h"

#include <math.h>

/* A tile while it is recorded. */
typedef struct tile {
  uint32_t index, first, n;
  ks_dptr x; /* its rows as f32 */
} tile;

static tile
tile_get(const ks_vision_pass *p, uint32_t index)
{
  const uint32_t first = p->rows.tiles[index];

  return (tile){.index = index, .first = first, .n = p->rows.tiles[index + 1] - first};
}

static uint32_t
head_dim(const ks_vision_pass *p)
{
  return p->vision->shape.n_embd / p->vision->shape.n_head;
}

static float
attention_scale(const ks_vision_pass *p)
{
  return 1.0f / sqrtf((float)head_dim(p));
}

/* Columns of the heads of group g. */
static ks_weight
group_rows(const ks_vision_pass *p, const ks_weight *w, uint32_t g)
{
  const uint32_t n = p->mem.group * head_dim(p);
  ks_weight part = *w;

  part.data += (ks_dptr)g * n * w->row_bytes;
  part.n_out = n;
  return part;
}

static ks_dptr
group_bias(const ks_vision_pass *p, ks_dptr bias, uint32_t g)
{
  return bias != 0 ? bias + (ks_dptr)g * p->mem.group * head_dim(p) * sizeof(float) : 0;
}

/* Turns n_head heads of q and k of a tile's rows, either of which may be 0. */
static ks_status
record_rotation(ks_vision_pass *p, const tile *t, ks_dptr q, ks_dptr k, uint32_t n_head)
{
  const ks_vision *v = p->vision;
  const ks_op_rope op = {.q = q,
                         .k = k,
                         .n_tok = t->n,
                         .n_head = n_head,
                         .n_kv_head = n_head,
                         .head_dim = head_dim(p),
                         .n_rot = head_dim(p),
                         .pos = p->dev + p->mem.pos + (ks_dptr)t->first * 3 * sizeof(int32_t),
                         .inv_freq = v->inv_freq,
                         .axis = v->axis,
                         .mscale = 1.0f,
                         .neox = true};

  return v->has_rope ? v->be->t->rope(v->be->dev, &op) : KS_OK;
}

/* x += feed-forward of the norm of x, a part of the tile at a time. */
static ks_status
record_ffn(ks_vision_pass *p, const ks_vision_block *b, const tile *t)
{
  const ks_vision *v = p->vision;
  const ks_dptr row_bytes = (ks_dptr)v->shape.n_embd * sizeof(float);
  const ks_dptr f = p->dev + p->mem.work;
  ks_status st = KS_OK;

  for (uint32_t at = 0, n; st == KS_OK && at < t->n; at += n) {
    const ks_dptr x = t->x + at * row_bytes, h = p->dev + p->mem.h + at * row_bytes;
    ks_op_linear up = {.n_w = 1, .w = {b->w_up}, .bias = {b->b_up}, .x = h, .y = {f}};

    n = t->n - at < v->tile_rows ? t->n - at : v->tile_rows;
    up.n_tok = n;
    up.act = v->act;
    up.epilogue = KS_EPI_STORE;
    if (b->w_gate.data != 0) {
      up.n_w = 2;
      up.w[0] = b->w_gate;
      up.w[1] = b->w_up;
      up.bias[0] = b->b_gate;
      up.bias[1] = b->b_up;
      up.epilogue = KS_EPI_ACT_MUL;
    }
    st = ks_vision_pass_norm(p, &b->ln2, v->is_rms, x, h, n, v->shape.n_embd);
    if (st == KS_OK)
      st = v->be->t->linear(v->be->dev, &up);
    if (st == KS_OK)
      st = ks_vision_pass_linear(p, &b->w_down, b->b_down, f, x, n, KS_EPI_ADD, KS_ACT_NONE);
  }
  return st;
}

/* Attention of the tile's rows has been made: the output matrix, the feed-forward, the end. */
static ks_status
record_rest(ks_vision_pass *p, const ks_vision_block *b, const tile *t)
{
  ks_status st = ks_vision_pass_linear(p, &b->wo, b->bo, p->dev + p->mem.att, t->x, t->n,
                                       KS_EPI_ADD, KS_ACT_NONE);

  if (st == KS_OK)
    st = record_ffn(p, b, t);
  return st == KS_OK ? ks_vision_pass_put(p, t->first, t->n) : st;
}

/* The tile's rows, normed into h. */
static ks_status
record_entry(ks_vision_pass *p, const ks_vision_block *b, tile *t)
{
  const ks_vision *v = p->vision;
  ks_status st = ks_vision_pass_take(p, t->first, t->n, &t->x);

  return st == KS_OK ? ks_vision_pass_norm(p, &b->ln1, v->is_rms, t->x, p->dev + p->mem.h, t->n,
                                           v->shape.n_embd)
                     : st;
}

/* Rows that see each other, relative to the tile: its windows, or all of it. */
static uint32_t
fill_segments(ks_vision_pass *p, const tile *t, bool whole)
{
  const ks_vision_rows *r = &p->rows;
  uint32_t n = 0;

  p->segments[0] = 0;
  if (whole || r->segs == NULL)
    p->segments[++n] = t->n;
  else
    for (uint32_t i = r->tile_segs[t->index]; i < r->tile_segs[t->index + 1]; i++)
      p->segments[++n] = r->segs[i + 1] - t->first;
  return n;
}

/* A step of the backend is over: how far the whole is. */
static ks_status
end_step(ks_vision_pass *p, ks_status st)
{
  st = ks_vision_pass_end(p, st);
  if (st == KS_OK && p->hooks->progress != NULL)
    p->hooks->progress(p->hooks->user, ++p->n_done, p->n_step);
  return st;
}

/* Attention of a tile whose rows see each other; received 0 = not wanted. */
static ks_status
record_segments(ks_vision_pass *p, const ks_vision_block *b, tile *t, bool whole, ks_dptr received)
{
  const ks_vision *v = p->vision;
  const ks_vision_memory *m = &p->mem;
  ks_op_linear qkv = {.n_w = 3,
                      .w = {b->wq, b->wk, b->wv},
                      .bias = {b->bq, b->bk, b->bv},
                      .x = p->dev + m->h,
                      .y = {p->dev + m->q, p->dev + m->k, p->dev + m->v},
                      .n_tok = t->n,
                      .epilogue = KS_EPI_STORE,
                      .act = KS_ACT_NONE};
  ks_op_attn_segments attention = {.q = p->dev + m->q,
                                   .k = p->dev + m->k,
                                   .v = p->dev + m->v,
                                   .out = p->dev + m->att,
                                   .n_row = t->n,
                                   .n_head = v->shape.n_head,
                                   .head_dim = head_dim(p),
                                   .seg = p->segments,
                                   .scale = attention_scale(p),
                                   .received = received};
  ks_status st = record_entry(p, b, t);

  attention.n_seg = fill_segments(p, t, whole);
  if (st == KS_OK)
    st = v->be->t->linear(v->be->dev, &qkv);
  if (st == KS_OK)
    st = record_rotation(p, t, p->dev + m->q, p->dev + m->k, v->shape.n_head);
  return st == KS_OK ? v->be->t->attn_segments(v->be->dev, &attention) : st;
}

static ks_status
record_local(ks_vision_pass *p, const ks_vision_block *b, tile *t, bool whole)
{
  ks_status st = record_segments(p, b, t, whole, 0);

  return st == KS_OK ? record_rest(p, b, t) : st;
}

/* The same, with a look at attention and keys in between; one step has been begun. */
static ks_status
run_noted(ks_vision_pass *p, const ks_vision_block *b, tile *t, bool whole)
{
  const ks_dptr received = p->vision->has_class ? 0 : p->zip.mass;
  ks_status st = ks_vision_pass_end(p, record_segments(p, b, t, whole, received));

  if (st == KS_OK)
    st = ks_vision_zip_note_tile(p, t->first, t->n);
  if (st == KS_OK)
    st = ks_vision_pass_begin(p);
  return st == KS_OK ? end_step(p, record_rest(p, b, t)) : st;
}

/* --- blocks that see the whole picture --- */

static ks_kv_view
get_view(const ks_vision_pass *p)
{
  return (ks_kv_view){.base = p->dev + p->mem.kv, .layout = &p->mem.layout, .streams = p->streams};
}

/* Keys and values of group g of the tile's rows, appended to the pages. */
static ks_status
record_keys(ks_vision_pass *p, const ks_vision_block *b, tile *t, uint32_t g)
{
  const ks_vision *v = p->vision;
  const ks_vision_memory *m = &p->mem;
  const ks_op_linear kv = {.n_w = 2,
                           .w = {group_rows(p, &b->wk, g), group_rows(p, &b->wv, g)},
                           .bias = {group_bias(p, b->bk, g), group_bias(p, b->bv, g)},
                           .x = p->dev + m->h,
                           .y = {p->dev + m->k, p->dev + m->v},
                           .n_tok = t->n,
                           .epilogue = KS_EPI_STORE,
                           .act = KS_ACT_NONE};
  const ks_op_kv_append append = {
      .kv = get_view(p), .n_tok = t->n, .pos0 = t->first, .k = p->dev + m->k, .v = p->dev + m->v};
  ks_status st = record_entry(p, b, t);

  if (st == KS_OK)
    st = v->be->t->linear(v->be->dev, &kv);
  if (st == KS_OK)
    st = record_rotation(p, t, 0, p->dev + m->k, m->group);
  return st == KS_OK ? v->be->t->kv_append(v->be->dev, &append) : st;
}

/* Queries of group g of the tile's rows read the pages; out [n, group, head_dim] is att. */
static ks_status
record_queries(ks_vision_pass *p, const ks_vision_block *b, tile *t, uint32_t g, bool noted)
{
  const ks_vision *v = p->vision;
  const ks_vision_memory *m = &p->mem;
  const ks_weight wq = group_rows(p, &b->wq, g);
  const ks_op_attention attention = {.kv = get_view(p),
                                     .n_tok = t->n,
                                     .n_head = m->group,
                                     .q = p->dev + m->q,
                                     .out = p->dev + m->att,
                                     .first = p->dev + m->first,
                                     .last = p->dev + m->last,
                                     .scale = attention_scale(p),
                                     .mass = noted ? p->zip.mass : 0,
                                     .mass_offset = p->zip.mass_offset,
                                     .mass_window = t->n};
  ks_status st = record_entry(p, b, t);

  if (st == KS_OK)
    st = ks_vision_pass_linear(p, &wq, group_bias(p, b->bq, g), p->dev + m->h, p->dev + m->q, t->n,
                               KS_EPI_STORE, KS_ACT_NONE);
  if (st == KS_OK)
    st = record_rotation(p, t, p->dev + m->q, 0, m->group);
  return st == KS_OK ? v->be->t->attention(v->be->dev, &attention) : st;
}

/* Keeps the attention of group g of the tile's rows in its columns of the plane o. */
static ks_status
record_keep(ks_vision_pass *p, const tile *t, uint32_t g)
{
  const ks_vision *v = p->vision;
  const ks_vision_memory *m = &p->mem;
  const uint32_t n_col = m->group * head_dim(p);
  size_t col_bytes = 0;
  ks_op_store_rows op = {.src = p->dev + m->att,
                         .dtype = m->o_dtype,
                         .out_row_bytes = m->o_row_bytes,
                         .n_row = t->n,
                         .n_col = n_col,
                         .scale = 1.0f};

  if (!ks_dtype_row_bytes(m->o_dtype, (uint64_t)g * n_col, &col_bytes))
    return KS_ERR_ARG;
  op.out = p->dev + m->o + (ks_dptr)t->first * m->o_row_bytes + col_bytes;
  return v->be->t->store_rows(v->be->dev, &op);
}

/* The kept attention of all heads of the tile's rows, then the rest of the block. */
static ks_status
record_kept(ks_vision_pass *p, const ks_vision_block *b, tile *t)
{
  const ks_vision *v = p->vision;
  const ks_vision_memory *m = &p->mem;
  const ks_op_gather_rows op = {
      .table = {.data = p->dev + m->o + (ks_dptr)t->first * m->o_row_bytes,
                .dtype = m->o_dtype,
                .n_in = v->shape.n_embd,
                .n_out = t->n,
                .row_bytes = m->o_row_bytes},
      .ids = p->dev + m->ids,
      .out = p->dev + m->att,
      .n_tok = t->n,
      .scale = 1.0f};
  ks_status st = ks_vision_pass_take(p, t->first, t->n, &t->x);

  if (st == KS_OK)
    st = v->be->t->gather_rows(v->be->dev, &op);
  return st == KS_OK ? record_rest(p, b, t) : st;
}

static ks_status
run_group(ks_vision_pass *p, const ks_vision_block *b, uint32_t g, bool noted)
{
  const bool all = p->mem.group == p->vision->shape.n_head;
  ks_status st = KS_OK;

  for (uint32_t h = 0; h < p->mem.group; h++)
    p->streams[h].n_entry = 0;
  for (uint32_t i = 0; st == KS_OK && i < p->rows.n_tile; i++) {
    tile t = tile_get(p, i);

    st = ks_vision_pass_begin(p);
    if (st == KS_OK)
      st = end_step(p, record_keys(p, b, &t, g));
    if (st == KS_OK && noted)
      st = ks_vision_zip_note_keys(p, t.first, t.n);
    for (uint32_t h = 0; h < p->mem.group; h++)
      p->streams[h].n_entry += t.n;
  }
  for (uint32_t i = 0; st == KS_OK && i < p->rows.n_tile; i++) {
    tile t = tile_get(p, i);

    if ((st = ks_vision_pass_begin(p)) != KS_OK)
      return st;
    st = record_queries(p, b, &t, g, noted);
    if (st == KS_OK)
      st = all ? record_rest(p, b, &t) : record_keep(p, &t, g);
    st = end_step(p, st);
    if (st == KS_OK && noted)
      st = ks_vision_zip_note_mass(p);
  }
  return st;
}

static bool
is_whole(const ks_vision *v, uint32_t layer)
{
  return v->window == 0 || (layer + 1) % v->wa_pattern == 0;
}

uint32_t
ks_vision_pass_count_steps(const ks_vision_pass *p, uint32_t layer)
{
  const uint32_t n_group = p->vision->shape.n_head / p->mem.group, n_tile = p->rows.n_tile;

  if (!is_whole(p->vision, layer) || n_tile == 1)
    return n_tile;
  return 2 * n_tile * n_group + (n_group > 1 ? n_tile : 0);
}

ks_status
ks_vision_pass_block(ks_vision_pass *p, uint32_t layer)
{
  const ks_vision *v = p->vision;
  const ks_vision_block *b = &v->blocks[layer];
  const bool whole = is_whole(v, layer);
  const uint32_t n_group = v->shape.n_head / p->mem.group;
  const bool grouped = whole && p->rows.n_tile > 1, noted = ks_vision_zip_wants(p, layer);
  ks_status st = KS_OK;

  for (uint32_t g = 0; st == KS_OK && grouped && g < n_group; g++)
    st = run_group(p, b, g, noted);
  if (grouped && n_group == 1)
    return st;
  for (uint32_t i = 0; st == KS_OK && i < p->rows.n_tile; i++) {
    tile t = tile_get(p, i);

    if ((st = ks_vision_pass_begin(p)) != KS_OK)
      return st;
    if (noted && !grouped)
      st = run_noted(p, b, &t, whole);
    else
      st = end_step(p, grouped ? record_kept(p, b, &t) : record_local(p, b, &t, whole));
  }
  return st;
}

/* cpu-attention.c - softmax attention over paged streams of different lengths.
 * Entries of a stream are ordered by pos, so what a query sees is one range of indices.
 * Few query rows (decoding): the blocks of all streams of the layer form one list that is cut into
 * pieces of equal size, whatever the lengths; every piece of a stream leaves its own result, and
 * the results are combined.  Keys and values are read in place, once for the heads of a group
 * (q8_0 in fast mode as whole numbers: cpu-attention-codes.c); for the mass the weights are kept
 * and summed up when the maxima are known.  Many query rows (prefill): a tile of rows of one group
 * meets blocks of keys unpacked to f32; tiles are handed out dynamically, the last ones (which see
 * most) first; the mass is a second pass over the keys. Source: docs/method.md, section 5. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-attention-internal.h"
#include "engine/cpu-share-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define FEW_ROWS 12u         /* up to here unpacking a block costs more than it saves */
#define PREFETCH_BYTES 3072u /* asked for so far ahead of use */
#define PIECES 4u /* of decode's work a member: cores of different speed take different numbers */
#define MIN_ROWS 24u /* tiles are not made smaller than this for the sake of balance */

/* Sizes of one call, the same on every member. */
typedef struct attn_shape {
  const ks_cpu_ctx *ctx;
  const ks_op_attention *op;
  const ks_cpu_vec_fns *vec;
  const ks_cpu_codes_fns *codes; /* few rows in whole numbers; NULL = in f32 */
  ks_kv_kind kind;
  uint32_t n_kv_head, group;
  uint32_t n_row;    /* query rows of a KV head: n_tok * group, token-major */
  uint32_t tile_tok; /* tokens of a tile, 0: the few-rows path */
  uint32_t window;   /* queries that count for the mass */
  uint32_t n_member;
  /* Few rows: blocks of all streams, cut into pieces. */
  size_t n_block;
  uint32_t n_piece;
} attn_shape;

/* Maximum and 1 / sum of the rows that count for the mass, [n_kv_head, window * group] each. */
typedef struct attn_norms {
  float *max, *inv_sum;
} attn_norms;

static size_t
count_blocks(const ks_op_attention *op, uint32_t h)
{
  const size_t stream = (size_t)op->layer * op->kv.layout->n_kv_head + h;

  return (op->kv.streams[stream].n_entry + (size_t)op->n_new + KS_ATTN_KEYS - 1) / KS_ATTN_KEYS;
}

static uint32_t
max_pieces(uint32_t n_member)
{
  return n_member > 1 ? PIECES * n_member : 1;
}

static attn_shape
shape_get(const ks_cpu_ctx *ctx, const ks_op_attention *op, uint32_t n_member)
{
  attn_shape shape = {.ctx = ctx, .op = op, .vec = ctx->vec, .n_member = n_member};

  shape.kind = ks_kv_kind_get(op->kv.layout->kv_dtype);
  shape.codes = ks_attn_codes_get(ctx, op->kv.layout);
  shape.n_kv_head = op->kv.layout->n_kv_head;
  shape.group = op->n_head / shape.n_kv_head;
  shape.n_row = op->n_tok * shape.group;
  if (op->mass != 0)
    shape.window = op->mass_window < op->n_tok ? op->mass_window : op->n_tok;
  /* A pass may be measured before there are streams. */
  for (uint32_t h = 0; h < shape.n_kv_head && op->kv.streams != NULL; h++)
    shape.n_block += count_blocks(op, h);
  shape.n_piece =
      shape.n_block < max_pieces(n_member) ? (uint32_t)shape.n_block : max_pieces(n_member);
  if (op->n_tok <= 2 || shape.n_row <= FEW_ROWS)
    return shape;
  shape.tile_tok = shape.group < KS_ATTN_ROWS ? KS_ATTN_ROWS / shape.group : 1;
  while (shape.tile_tok * shape.group > MIN_ROWS && shape.tile_tok > 1 &&
         (op->n_tok + shape.tile_tok - 1) / shape.tile_tok * shape.n_kv_head < 3 * n_member)
    shape.tile_tok = (shape.tile_tok + 1) / 2;
  return shape;
}

/* Rows of the largest tile of either path and of the mass pass. */
static size_t
shape_max_row(const attn_shape *shape)
{
  const size_t mass_rows = (size_t)shape->window * shape->group;
  size_t rows = shape->tile_tok == 0 ? shape->n_row : (size_t)shape->tile_tok * shape->group;

  if (mass_rows > rows)
    rows = mass_rows < KS_ATTN_ROWS ? mass_rows : KS_ATTN_ROWS > rows ? KS_ATTN_ROWS : rows;
  return rows;
}

static size_t
norms_bytes(const attn_shape *shape)
{
  const size_t n = 2 * (size_t)shape->n_kv_head * shape->window * shape->group * sizeof(float);

  return (n + 63) / 64 * 64;
}

static attn_norms
norms_get(const attn_shape *shape)
{
  attn_norms norms;

  norms.max = (float *)(void *)shape->ctx->shared;
  norms.inv_sum = norms.max + (size_t)shape->n_kv_head * shape->window * shape->group;
  return norms;
}

/* Results of the pieces: a piece and a stream that meet have slot piece + stream, which no other
 * pair has, as both only grow from one meeting to the next.  Room for as many pieces as there may
 * ever be, so that a longer stream needs no more. */
static size_t
results_bytes(const attn_shape *shape)
{
  return ((size_t)max_pieces(shape->n_member) + shape->n_kv_head) *
         ks_attn_result_bytes(shape->n_row, shape->op->kv.layout->v_dim);
}

/* Weights of a block as softmax left them, [n_row, KS_ATTN_KEYS], and the maxima that they stand
 * under, [n_row]: kept when the mass is wanted, so that keys are read once. */
static size_t
weights_floats(const attn_shape *shape)
{
  return ((size_t)shape->n_row * (KS_ATTN_KEYS + 1) + 15) / 16 * 16;
}

static size_t
weights_bytes(const attn_shape *shape)
{
  return shape->window > 0 ? shape->n_block * weights_floats(shape) * sizeof(float) : 0;
}

void
ks_cpu_attention_need(const ks_cpu_ctx *ctx, const ks_op_attention *op, ks_cpu_need *need)
{
  const attn_shape shape = shape_get(ctx, op, ks_threads_get_n(ctx->threads));
  const ks_kv_layout *layout = op->kv.layout;

  need->member_bytes = ks_attn_tile_bytes(shape_max_row(&shape), layout->k_dim, layout->v_dim);
  need->shared_bytes = norms_bytes(&shape);
  if (shape.tile_tok == 0)
    need->shared_bytes += results_bytes(&shape) + weights_bytes(&shape);
}

/* First entry of n whose pos is at least value. */
static uint32_t
find_pos(const ks_cpu_stream *s, uint32_t n, uint32_t value)
{
  uint32_t lo = 0, hi = n;

  if (n == 0 || value == 0 || ks_cpu_pos_get(s, 0) >= value)
    return 0;
  if (ks_cpu_pos_get(s, n - 1) < value)
    return n;
  while (lo < hi) {
    const uint32_t mid = lo + (hi - lo) / 2;

    if (ks_cpu_pos_get(s, mid) < value)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

/* The visible range of every row of a tile that starts at token t0; *lo, *hi get the union. */
static void
fill_ranges(ks_attn_tile *tile, const attn_shape *shape, const ks_cpu_stream *stream, uint32_t t0,
            uint32_t *lo, uint32_t *hi)
{
  const uint32_t *first = ks_cpu_ptr(shape->op->first), *last = ks_cpu_ptr(shape->op->last);
  const uint32_t n = stream->n_entry + shape->op->n_new;

  *lo = UINT32_MAX;
  *hi = 0;
  for (size_t r = 0; r < tile->n_row; r++) {
    const uint32_t t = t0 + (uint32_t)r / shape->group;

    if (r % shape->group != 0) {
      tile->lo[r] = tile->lo[r - 1];
      tile->hi[r] = tile->hi[r - 1];
      continue;
    }
    tile->lo[r] = find_pos(stream, n, first[t]);
    tile->hi[r] = last[t] == UINT32_MAX ? n : find_pos(stream, n, last[t] + 1);
    if (tile->lo[r] >= tile->hi[r])
      tile->lo[r] = tile->hi[r] = 0;
    else if (tile->lo[r] < *lo)
      *lo = tile->lo[r];
    if (tile->hi[r] > *hi)
      *hi = tile->hi[r];
  }
  if (*lo > *hi)
    *lo = *hi;
}

/* Loads the queries of KV head h from row r0 on (rows are token-major) into the tile's n_row rows.
 */
static void
load_queries(ks_attn_tile *tile, const attn_shape *shape, uint32_t h, uint32_t r0)
{
  const ks_op_attention *op = shape->op;
  const float *q = ks_cpu_ptr(op->q);

  for (size_t r = 0; r < tile->n_row; r++) {
    const size_t t = (r0 + r) / shape->group, head = h * shape->group + (r0 + r) % shape->group;

    ks_attn_tile_set_query(tile, r, q + (t * op->n_head + head) * tile->k_dim, op->scale);
  }
}

static void
unpack_block(ks_attn_tile *tile, const attn_shape *shape, const ks_cpu_stream *stream,
             uint32_t first, uint32_t n, bool values)
{
  const size_t dim = values ? tile->v_dim : tile->k_dim;
  const size_t stride = values ? tile->v_pad : tile->k_pad;
  const size_t row_bytes = values ? stream->layout->v_row_bytes : stream->layout->k_row_bytes;
  float *to = tile->block;

  for (uint32_t e = 0; e < n;) {
    const ks_cpu_slots slots = ks_cpu_slots_get(stream, first + e, n - e);
    const unsigned char *from = values ? slots.v : slots.k;

    for (uint32_t i = 0; i < slots.n; i++, to += stride, from += row_bytes)
      shape->vec->unpack[shape->kind](to, from, dim);
    e += slots.n;
  }
}

/* Keeps maximum and 1 / sum of row (of KV head h) for the mass pass. */
static void
store_norm(const attn_shape *shape, uint32_t h, uint32_t row, float max, float sum)
{
  const attn_norms norms = norms_get(shape);
  const uint32_t n_window = shape->window * shape->group, first = shape->n_row - n_window;

  if (row < first)
    return;
  norms.max[(size_t)h * n_window + row - first] = max;
  norms.inv_sum[(size_t)h * n_window + row - first] = sum > 0.0F ? 1.0F / sum : 0.0F;
}

static float *
out_row(const attn_shape *shape, uint32_t h, uint32_t row)
{
  const size_t t = row / shape->group, head = h * shape->group + row % shape->group;

  return (float *)ks_cpu_ptr(shape->op->out) +
         (t * shape->op->n_head + head) * shape->op->kv.layout->v_dim;
}

/* ---- few rows ---- */

static void *
result_get(const attn_shape *shape, uint32_t piece, uint32_t h)
{
  const size_t bytes = ks_attn_result_bytes(shape->n_row, shape->op->kv.layout->v_dim);

  return shape->ctx->shared + norms_bytes(shape) + ((size_t)piece + h) * bytes;
}

/* Weights of one block of the list. */
static float *
weights_get(const attn_shape *shape, size_t block)
{
  unsigned char *at = shape->ctx->shared + norms_bytes(shape) + results_bytes(shape);

  return (float *)(void *)at + block * weights_floats(shape);
}

/* Keys or values from entry on: what lies there is wanted soon. */
static const unsigned char *
plane_at(const ks_cpu_stream *stream, uint32_t entry, bool values)
{
  const ks_cpu_slots slots = ks_cpu_slots_get(stream, entry, 1);

  return values ? slots.v : slots.k;
}

/* What is read when PREFETCH_BYTES more have been read behind entry e of the keys or values of a
 * block; behind its keys come its values, and behind those the keys of the next block, up to stop.
 * NULL at the end. */
static const unsigned char *
ahead_of(const ks_cpu_stream *stream, uint32_t first, uint32_t n, uint32_t e, bool values,
         uint32_t stop)
{
  const ks_kv_layout *layout = stream->layout;
  const size_t run_bytes = layout->page_entries * layout->k_row_bytes;
  const uint32_t n_run = (uint32_t)((PREFETCH_BYTES + run_bytes - 1) / run_bytes);
  const uint32_t ahead = e + n_run * layout->page_entries;

  if (ahead < n)
    return plane_at(stream, first + ahead, values);
  if (!values && ahead < 2 * n)
    return plane_at(stream, first + ahead - n, true);
  if (values && first + ahead < stop)
    return plane_at(stream, first + ahead, false);
  return NULL;
}

/* One block of at most KS_ATTN_KEYS entries, read where it lies; more blocks follow up to stop. */
static void
attend_in_place(ks_attn_tile *tile, const attn_shape *shape, const ks_cpu_stream *stream,
                uint32_t first, uint32_t n, uint32_t stop)
{
  const ks_kv_layout *layout = stream->layout;

  for (uint32_t e = 0; e < n;) {
    const ks_cpu_slots slots = ks_cpu_slots_get(stream, first + e, n - e);
    const ks_cpu_rows rows = {slots.k, layout->k_row_bytes, slots.n,
                              ahead_of(stream, first, n, e, false, stop)};

    shape->vec->qk[shape->kind](tile->s + e, KS_ATTN_KEYS, tile->q, tile->k_pad, tile->n_row, rows,
                                tile->k_dim);
    e += slots.n;
  }
  ks_attn_tile_softmax(tile, shape->vec, first, n);
  for (uint32_t e = 0; e < n;) {
    const ks_cpu_slots slots = ks_cpu_slots_get(stream, first + e, n - e);
    const ks_cpu_rows rows = {slots.v, layout->v_row_bytes, slots.n,
                              ahead_of(stream, first, n, e, true, stop)};

    shape->vec->pv[shape->kind](tile->acc, tile->v_pad, tile->s + e, KS_ATTN_KEYS, tile->n_row,
                                rows, tile->v_dim);
    e += slots.n;
  }
}

/* The block that follows block b of stream h in the list of all. */
static ks_attn_place
place_behind(const attn_shape *shape, uint32_t h, size_t b)
{
  const ks_op_attention *op = shape->op;
  ks_attn_place place = {0};

  for (b++; h < shape->n_kv_head && b >= count_blocks(op, h); b = 0)
    h++;
  if (h == shape->n_kv_head)
    return place;
  place.stream = ks_cpu_stream_get(&op->kv, op->layer * shape->n_kv_head + h);
  place.first = (uint32_t)(b * KS_ATTN_KEYS);
  place.n = place.stream.n_entry + op->n_new - place.first;
  place.n = place.n < KS_ATTN_KEYS ? place.n : KS_ATTN_KEYS;
  return place;
}

/* Makes the kept weights of a block of which n keys were seen complete. */
static void
close_weights(ks_attn_tile *tile, bool seen, uint32_t n)
{
  for (size_t r = 0; r < tile->n_row; r++) {
    tile->s[tile->n_row * KS_ATTN_KEYS + r] = seen ? tile->max[r] : -INFINITY;
    if (seen)
      memset(tile->s + r * KS_ATTN_KEYS + n, 0, (KS_ATTN_KEYS - n) * sizeof *tile->s);
  }
}

/* Blocks from .. to - 1 of stream h, whose block 0 is number `at` of the list.  Blocks are counted
 * from entry 0 of a stream whatever is visible, so that all members agree without a search. */
static void
attend_blocks(ks_attn_tile *tile, const attn_shape *shape, uint32_t h, size_t at, size_t from,
              size_t to)
{
  const ks_op_attention *op = shape->op;
  const ks_cpu_stream stream = ks_cpu_stream_get(&op->kv, op->layer * shape->n_kv_head + h);
  ks_attn_walk walk;
  uint32_t lo, hi, stop;

  walk.at = 0;
  walk.ready = false;
  ks_attn_tile_reset(tile);
  load_queries(tile, shape, h, 0);
  if (shape->codes != NULL)
    ks_attn_tile_set_codes(tile, shape->codes);
  fill_ranges(tile, shape, &stream, 0, &lo, &hi);
  stop = to * KS_ATTN_KEYS < hi ? (uint32_t)(to * KS_ATTN_KEYS) : hi;
  for (size_t b = from; b < to; b++) {
    const uint32_t first = (uint32_t)(b * KS_ATTN_KEYS);
    const uint32_t n = stop - first < KS_ATTN_KEYS ? stop - first : KS_ATTN_KEYS;
    const bool seen = first < stop && first + KS_ATTN_KEYS > lo;

    if (shape->window > 0)
      tile->s = weights_get(shape, at + b);
    if (seen && shape->codes != NULL) {
      const ks_attn_place here = {stream, first, n}, next = place_behind(shape, h, b);

      ks_attn_tile_add_codes(tile, shape->vec, shape->codes, &walk, &here, &next);
    } else if (seen) {
      attend_in_place(tile, shape, &stream, first, n, stop);
    }
    if (shape->window > 0)
      close_weights(tile, seen, n);
  }
}

/* Blocks of all streams form one list; pieces of it are handed out as members become free.  What a
 * piece leaves does not depend on who worked on it. */
static void
attend_few(const attn_shape *shape, uint32_t member)
{
  const ks_op_attention *op = shape->op;
  ks_cpu_share share = ks_cpu_share_begin(shape->n_piece, member, shape->n_member);
  ks_attn_tile tile;
  size_t piece;

  ks_attn_tile_init(&tile, ks_cpu_scratch(shape->ctx, member), shape_max_row(shape),
                    op->kv.layout->k_dim, op->kv.layout->v_dim);
  tile.n_row = shape->n_row;
  while (ks_cpu_share_next(shape->ctx, &share, &piece)) {
    size_t begin, end, at = 0;

    ks_cpu_slice(shape->n_block, (uint32_t)piece, shape->n_piece, &begin, &end);
    for (uint32_t h = 0; h < shape->n_kv_head && at < end; h++) {
      const size_t n = count_blocks(op, h);

      if (begin < at + n) {
        ks_attn_tile_set_result(&tile, result_get(shape, (uint32_t)piece, h), shape->n_row);
        attend_blocks(&tile, shape, h, at, begin > at ? begin - at : 0,
                      end < at + n ? end - at : n);
      }
      at += n;
    }
  }
}

void
ks_cpu_attention_ask_ahead(const ks_cpu_ctx *ctx, const ks_op_attention *op, uint32_t member,
                           uint32_t n_member)
{
  const attn_shape shape = shape_get(ctx, op, n_member);
  const ks_cpu_share share = ks_cpu_share_begin(shape.n_piece, member, n_member);
  size_t begin, end, at = 0;

  if (shape.tile_tok != 0 || share.at == share.end)
    return;
  ks_cpu_slice(shape.n_block, (uint32_t)share.at, shape.n_piece, &begin, &end);
  for (uint32_t h = 0; h < shape.n_kv_head; h++) {
    const ks_cpu_stream stream = ks_cpu_stream_get(&op->kv, op->layer * shape.n_kv_head + h);
    const size_t n = count_blocks(op, h);

    if (begin >= at + n) {
      at += n;
      continue;
    }
    for (uint32_t e = (uint32_t)(begin - at) * KS_ATTN_KEYS, left = 2;
         e < stream.n_entry && left > 0; e += op->kv.layout->page_entries, left--)
      ks_cpu_ask_ahead(plane_at(&stream, e, false),
                       op->kv.layout->page_entries * op->kv.layout->k_row_bytes);
    return;
  }
}

/* The piece that holds a block. */
static uint32_t
piece_of(const attn_shape *shape, size_t block)
{
  return (uint32_t)(((block + 1) * shape->n_piece - 1) / shape->n_block);
}

/* Adds up the results that the pieces left for one row. */
static void
combine_row(const attn_shape *shape, uint32_t h, uint32_t row)
{
  const size_t v_dim = shape->op->kv.layout->v_dim, v_pad = ks_cpu_pad(v_dim);
  const size_t n = count_blocks(shape->op, h), rows_end = shape->n_row * v_pad;
  float *out = out_row(shape, h, row);
  float max = -INFINITY, sum = 0.0F;
  uint32_t first = 0, last = 0;
  size_t at = 0;

  for (uint32_t i = 0; i < h; i++)
    at += count_blocks(shape->op, i);
  memset(out, 0, v_dim * sizeof *out);
  if (n > 0) {
    first = piece_of(shape, at);
    last = piece_of(shape, at + n - 1) + 1;
  }
  for (uint32_t p = first; p < last; p++)
    max = fmaxf(max, ((const float *)result_get(shape, p, h))[rows_end + row]);
  for (uint32_t p = first; p < last; p++) {
    const float *acc = result_get(shape, p, h);
    const float *part = acc + rows_end;
    float factor;

    if (!(part[row] > -INFINITY))
      continue;
    factor = part[row] == max ? 1.0F : expf(part[row] - max);
    sum += part[shape->n_row + row] * factor;
    shape->vec->add_scaled(out, acc + row * v_pad, v_dim, factor);
  }
  shape->vec->scale(out, v_dim, sum > 0.0F ? 1.0F / sum : 0.0F);
  store_norm(shape, h, row, max, sum);
}

/* Mass of one block from its weights: each row's are brought to the final maximum and sum. */
static void
sum_weights(const attn_shape *shape, uint32_t h, uint32_t b, size_t block)
{
  const ks_op_attention *op = shape->op;
  const attn_norms norms = norms_get(shape);
  const float *weights = weights_get(shape, block);
  const float *max = weights + (size_t)shape->n_row * KS_ATTN_KEYS;
  const size_t n_window = (size_t)shape->window * shape->group, base = h * n_window;
  const size_t n_entry = op->kv.streams[op->layer * shape->n_kv_head + h].n_entry + op->n_new;
  const size_t first = (size_t)b * KS_ATTN_KEYS;
  const size_t n = n_entry - first < KS_ATTN_KEYS ? n_entry - first : KS_ATTN_KEYS;
  float *mass = (float *)ks_cpu_ptr(op->mass) + op->mass_offset[h] + first;

  memset(mass, 0, n * sizeof *mass);
  for (size_t w = 0; w < n_window; w++) {
    const size_t row = shape->n_row - n_window + w;

    if (max[row] > -INFINITY && norms.inv_sum[base + w] > 0.0F)
      shape->vec->add_scaled(mass, weights + row * KS_ATTN_KEYS, n,
                             expf(max[row] - norms.max[base + w]) * norms.inv_sum[base + w]);
  }
}

/* This member's equal part of the blocks: little work, all of one size. */
static void
mass_of_few(const attn_shape *shape, uint32_t member)
{
  size_t begin, end, at = 0;

  ks_cpu_slice(shape->n_block, member, shape->n_member, &begin, &end);
  for (uint32_t h = 0; h < shape->n_kv_head; h++) {
    const size_t n = count_blocks(shape->op, h);

    for (size_t i = begin > at ? begin : at; i < end && i < at + n; i++)
      sum_weights(shape, h, (uint32_t)(i - at), i);
    at += n;
  }
}

/* ---- many rows ---- */

static void
attend_tile(ks_attn_tile *tile, const attn_shape *shape, uint32_t member, uint32_t h, uint32_t t0,
            uint32_t n_tok)
{
  const ks_op_attention *op = shape->op;
  const ks_cpu_stream stream = ks_cpu_stream_get(&op->kv, op->layer * shape->n_kv_head + h);
  uint32_t lo, hi;

  tile->n_row = (size_t)n_tok * shape->group;
  load_queries(tile, shape, h, t0 * shape->group);
  fill_ranges(tile, shape, &stream, t0, &lo, &hi);
  ks_attn_tile_reset(tile);
  for (uint32_t e = lo; e < hi && !ks_cpu_poll(shape->ctx, member); e += KS_ATTN_KEYS) {
    const uint32_t n = hi - e < KS_ATTN_KEYS ? hi - e : KS_ATTN_KEYS;

    unpack_block(tile, shape, &stream, e, n, false);
    ks_attn_tile_score(tile, shape->vec, n);
    ks_attn_tile_softmax(tile, shape->vec, e, n);
    unpack_block(tile, shape, &stream, e, n, true);
    ks_attn_tile_add_values(tile, shape->vec, n);
  }
  for (uint32_t r = 0; r < tile->n_row; r++) {
    const uint32_t row = t0 * shape->group + r;

    ks_attn_tile_get_row(tile, shape->vec, r, out_row(shape, h, row));
    store_norm(shape, h, row, tile->max[r], tile->sum[r]);
  }
}

static void
attend_many(const attn_shape *shape, uint32_t member)
{
  const ks_op_attention *op = shape->op;
  const uint32_t n_tile = (op->n_tok + shape->tile_tok - 1) / shape->tile_tok;
  const uint32_t n_item = n_tile * shape->n_kv_head;
  ks_attn_tile tile;

  ks_attn_tile_init(&tile, ks_cpu_scratch(shape->ctx, member), shape_max_row(shape),
                    op->kv.layout->k_dim, op->kv.layout->v_dim);
  for (uint32_t i = ks_cpu_take(shape->ctx); i < n_item; i = ks_cpu_take(shape->ctx)) {
    const uint32_t t0 = (n_tile - 1 - i / shape->n_kv_head) * shape->tile_tok;
    const uint32_t left = op->n_tok - t0;

    attend_tile(&tile, shape, member, i % shape->n_kv_head, t0,
                left < shape->tile_tok ? left : shape->tile_tok);
  }
}

/* ---- mass ---- */

/* Adds the rows of the tile (r0 on inside the window) to the mass of the block in keys_t. */
static void
add_mass(ks_attn_tile *tile, const attn_shape *shape, uint32_t h, uint32_t r0, uint32_t first,
         uint32_t n, float *mass)
{
  const attn_norms norms = norms_get(shape);
  const size_t base = (size_t)h * shape->window * shape->group + r0;

  for (size_t r = 0; r < tile->n_row; r++) {
    float *s = tile->s + r * KS_ATTN_KEYS;
    uint32_t begin, end;

    ks_attn_clip(tile->lo[r], tile->hi[r], first, n, &begin, &end);
    if (begin == end)
      continue;
    shape->vec->exp_sum(s + begin, end - begin, norms.max[base + r]);
    shape->vec->add_scaled(mass + begin, s + begin, end - begin, norms.inv_sum[base + r]);
  }
}

/* Mass of one block of keys of KV head h: all window rows, a tile of them at a time. */
static void
mass_block(ks_attn_tile *tile, const attn_shape *shape, uint32_t h, uint32_t first)
{
  const ks_op_attention *op = shape->op;
  const ks_cpu_stream stream = ks_cpu_stream_get(&op->kv, op->layer * shape->n_kv_head + h);
  const uint32_t n_entry = stream.n_entry + op->n_new;
  const uint32_t n = n_entry - first < KS_ATTN_KEYS ? n_entry - first : KS_ATTN_KEYS;
  const uint32_t group = shape->group;
  const uint32_t step = (uint32_t)(shape_max_row(shape) / group);
  float *mass = (float *)ks_cpu_ptr(op->mass) + op->mass_offset[h] + first;
  uint32_t lo, hi;

  memset(mass, 0, n * sizeof *mass);
  unpack_block(tile, shape, &stream, first, n, false);
  for (uint32_t w = 0; w < shape->window; w += step) {
    const uint32_t n_tok = shape->window - w < step ? shape->window - w : step;
    const uint32_t t0 = op->n_tok - shape->window + w;

    tile->n_row = (size_t)n_tok * group;
    load_queries(tile, shape, h, t0 * group);
    fill_ranges(tile, shape, &stream, t0, &lo, &hi);
    ks_attn_tile_score(tile, shape->vec, n);
    add_mass(tile, shape, h, w * group, first, n, mass);
  }
}

static void
attend_mass(const attn_shape *shape, uint32_t member)
{
  const ks_op_attention *op = shape->op;
  size_t before = 0;
  uint32_t h = 0;
  ks_attn_tile tile;

  ks_attn_tile_init(&tile, ks_cpu_scratch(shape->ctx, member), shape_max_row(shape),
                    op->kv.layout->k_dim, op->kv.layout->v_dim);
  for (;;) {
    const size_t i = ks_cpu_take(shape->ctx);

    for (; h < shape->n_kv_head; h++) {
      const size_t n = count_blocks(op, h);

      if (i < before + n)
        break;
      before += n;
    }
    if (h == shape->n_kv_head || ks_cpu_poll(shape->ctx, member))
      return;
    mass_block(&tile, shape, h, (uint32_t)(i - before) * KS_ATTN_KEYS);
  }
}

void
ks_cpu_attention(const ks_cpu_ctx *ctx, const ks_op_attention *op, uint32_t member,
                 uint32_t n_member)
{
  const attn_shape shape = shape_get(ctx, op, n_member);

  assert(op->n_head % shape.n_kv_head == 0);
  if (op->n_tok == 0)
    return;
  if (shape.tile_tok == 0) {
    size_t begin, end;

    attend_few(&shape, member);
    ks_threads_barrier(ctx->threads);
    ks_cpu_slice((size_t)shape.n_kv_head * shape.n_row, member, n_member, &begin, &end);
    for (size_t i = begin; i < end; i++)
      combine_row(&shape, (uint32_t)(i / shape.n_row), (uint32_t)(i % shape.n_row));
  } else {
    attend_many(&shape, member);
  }
  if (op->mass == 0)
    return;
  ks_cpu_next_phase(ctx, member);
  if (shape.tile_tok == 0)
    mass_of_few(&shape, member);
  else
    attend_mass(&shape, member);
}

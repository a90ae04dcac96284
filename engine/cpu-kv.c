/* cpu-kv.c - writing, moving and reading entries of the paged store.
 * Entries of a stream keep their order (ascending pos) through every operation here. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-kv-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void
ks_cpu_kv_append(const ks_cpu_ctx *ctx, const ks_op_kv_append *op, uint32_t member,
                 uint32_t n_member)
{
  const ks_kv_layout *layout = op->kv.layout;
  const uint32_t n_head = layout->n_kv_head;
  const ks_kv_kind kind = ks_kv_kind_get(layout->kv_dtype);
  const size_t k_stride = op->k_stride != 0 ? op->k_stride : (size_t)n_head * layout->k_dim;
  const size_t v_stride = op->v_stride != 0 ? op->v_stride : (size_t)n_head * layout->v_dim;
  const float *k = ks_cpu_ptr(op->k), *v = ks_cpu_ptr(op->v), *log_beta = ks_cpu_ptr(op->log_beta);
  const uint32_t *pos = ks_cpu_ptr(op->pos);
  size_t begin, end;

  ks_cpu_slice((size_t)op->n_tok * n_head, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++) {
    const size_t t = i / n_head, h = i % n_head;
    const ks_cpu_stream stream = ks_cpu_stream_get(&op->kv, op->layer * n_head + (uint32_t)h);
    const ks_cpu_slots slot = ks_cpu_slots_get(&stream, stream.n_entry + (uint32_t)t, 1);

    ctx->vec->pack[kind](slot.k, k + t * k_stride + h * layout->k_dim, layout->k_dim);
    ctx->vec->pack[kind](slot.v, v + t * v_stride + h * layout->v_dim, layout->v_dim);
    *slot.log_beta = log_beta != NULL ? log_beta[i] : 0.0F;
    *slot.pos = pos != NULL ? pos[t] : op->pos0 + (uint32_t)t;
    for (uint32_t j = 0; j < layout->n_aux; j++)
      slot.aux[(size_t)j * layout->page_entries] = 0.0F;
  }
}

/* Moves n entries from src down to dst (< src); the ranges may overlap, as in memmove. */
static void
move_entries(const ks_cpu_stream *s, uint32_t dst, uint32_t src, uint32_t n)
{
  const ks_kv_layout *layout = s->layout;

  while (n > 0) {
    const ks_cpu_slots from = ks_cpu_slots_get(s, src, n), to = ks_cpu_slots_get(s, dst, from.n);

    memmove(to.k, from.k, to.n * layout->k_row_bytes);
    memmove(to.v, from.v, to.n * layout->v_row_bytes);
    memmove(to.log_beta, from.log_beta, to.n * sizeof(*to.log_beta));
    memmove(to.pos, from.pos, to.n * sizeof(*to.pos));
    for (size_t j = 0; j < layout->n_aux; j++)
      memmove(to.aux + j * layout->page_entries, from.aux + j * layout->page_entries,
              to.n * sizeof(*to.aux));
    dst += to.n;
    src += to.n;
    n -= to.n;
  }
}

static void
compact_stream(const ks_cpu_stream *s, const uint8_t *keep)
{
  uint32_t n_kept = 0, e = 0;

  while (e < s->n_entry) {
    uint32_t first;

    while (e < s->n_entry && keep[e] == 0)
      e++;
    first = e;
    while (e < s->n_entry && keep[e] != 0)
      e++;
    if (first != n_kept)
      move_entries(s, n_kept, first, e - first);
    n_kept += e - first;
  }
}

void
ks_cpu_kv_compact_need(const ks_cpu_ctx *ctx, const ks_op_kv_compact *op, ks_cpu_need *need)
{
  (void)ctx;
  (void)op;
  (void)need; /* in place */
}

/* Streams are handed out one by one: their lengths differ by a factor of 30 and more. */
void
ks_cpu_kv_compact(const ks_cpu_ctx *ctx, const ks_op_kv_compact *op, uint32_t member,
                  uint32_t n_member)
{
  const uint8_t *keep = ks_cpu_ptr(op->keep);
  const uint32_t n_stream = ks_cpu_n_stream(&op->kv);
  size_t offset = 0;
  uint32_t at = 0;

  (void)member;
  (void)n_member;
  for (uint32_t s = ks_cpu_take(ctx); s < n_stream; s = ks_cpu_take(ctx)) {
    ks_cpu_stream stream;

    for (; at < s; at++)
      offset += op->kv.streams[at].n_entry;
    stream = ks_cpu_stream_get(&op->kv, s);
    compact_stream(&stream, keep + offset);
  }
}

/* Members take equal parts of every head's entries. */
void
ks_cpu_kv_add_mass(const ks_cpu_ctx *ctx, const ks_op_kv_add_mass *op, uint32_t member,
                   uint32_t n_member)
{
  const uint32_t n_head = op->kv.layout->n_kv_head;

  (void)ctx;
  for (uint32_t h = 0; h < n_head; h++) {
    const ks_cpu_stream stream = ks_cpu_stream_get(&op->kv, op->layer * n_head + h);
    const float *mass = (const float *)ks_cpu_ptr(op->mass) + op->mass_offset[h];
    size_t begin, end;

    ks_cpu_slice((size_t)stream.n_entry + op->n_new, member, n_member, &begin, &end);
    while (begin < end) {
      const ks_cpu_slots slots =
          ks_cpu_slots_get(&stream, (uint32_t)begin, (uint32_t)(end - begin));

      for (uint32_t i = 0; i < slots.n; i++)
        slots.aux[i] += mass[begin + i];
      begin += slots.n;
    }
  }
}

ks_status
ks_cpu_kv_read(ks_dev *dev, const ks_kv_view *kv, uint32_t stream, uint32_t begin, uint32_t end,
               float *k, float *v, float *log_beta, uint32_t *pos, float *aux, ks_error *err)
{
  const ks_kv_layout *layout = kv->layout;
  const ks_cpu_vec_fns *vec = ks_cpu_get_ctx(dev)->vec;
  const ks_kv_kind kind = ks_kv_kind_get(layout->kv_dtype);
  ks_cpu_stream s;

  if (stream >= ks_cpu_n_stream(kv) || begin > end || end > kv->streams[stream].n_entry)
    return ks_fail(err, KS_ERR_ARG, "stream %u has no entries %u to %u", stream, begin, end);
  s = ks_cpu_stream_get(kv, stream);
  for (uint32_t e = begin; e < end; e++) {
    const ks_cpu_slots slot = ks_cpu_slots_get(&s, e, 1);
    const size_t i = e - begin;

    if (k != NULL)
      vec->unpack[kind](k + i * layout->k_dim, slot.k, layout->k_dim);
    if (v != NULL)
      vec->unpack[kind](v + i * layout->v_dim, slot.v, layout->v_dim);
    if (log_beta != NULL)
      log_beta[i] = *slot.log_beta;
    if (pos != NULL)
      pos[i] = *slot.pos;
    /* aux [n_aux, end - begin], plane after plane as in a page */
    for (size_t j = 0; aux != NULL && j < layout->n_aux; j++)
      aux[j * (end - begin) + i] = slot.aux[j * layout->page_entries];
  }
  return KS_OK;
}

ks_status
ks_cpu_kv_move_page(ks_dev *dev, const ks_kv_view *kv, uint32_t dst_page, uint32_t src_page,
                    ks_error *err)
{
  unsigned char *base = ks_cpu_ptr(kv->base);
  const size_t page_bytes = kv->layout->page_bytes;

  (void)dev;
  (void)err;
  if (dst_page != src_page)
    memcpy(base + dst_page * page_bytes, base + src_page * page_bytes, page_bytes);
  return KS_OK;
}

/* vision-bind.c - tensors of an mmproj file become weights of the backend.
 * Matrices and f32 vectors stay where they are mapped; other vectors become small f32 copies, and
 * so do Gemma 3's projection, which is stored the other way round, and positions, which the host
 * reads.  Old files swap the names of the two feed-forward matrices: their shapes decide.
 * A tensor that the family does not use is refused by name, as the numbers would be wrong without
 * a word.  Source: docs/formats/mmproj.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/quant.h"
#include "engine/vision-internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 96
#define N_COPIES 4u /* beside the tensors: frequencies, axes, Gemma's projection, and room */

typedef struct binder {
  ks_vision *v;
  ks_error *err;
  const char *prefix; /* of the names: "v.blk.3." or "" */
} binder;

static const ks_gguf_tensor *
find(const binder *b, const char *part)
{
  char name[2 * NAME_BYTES];

  snprintf(name, sizeof name, "%s%s", b->prefix, part);
  return ks_gguf_find_tensor(b->v->gguf, name);
}

static void
remember(ks_vision *v, ks_dptr data, size_t n_bytes, bool is_copy)
{
  assert(v->n_bound < v->bound_capacity);
  v->bound[v->n_bound++] = (ks_vision_bound){data, n_bytes, is_copy};
  v->weight_bytes += n_bytes;
}

static ks_status
upload_copy(const binder *b, const void *host, size_t n_bytes, ks_dptr *out)
{
  ks_vision *v = b->v;
  ks_dptr p = 0;
  ks_status st = v->be->t->mem_new(v->be->dev, KS_MEM_WEIGHTS, n_bytes, &p, b->err);

  if (st != KS_OK)
    return st;
  st = v->be->t->upload(v->be->dev, p, host, n_bytes, b->err);
  if (st != KS_OK) {
    v->be->t->mem_free(v->be->dev, p);
    return st;
  }
  remember(v, p, n_bytes, true);
  *out = p;
  return KS_OK;
}

static ks_status
bind_in_place(const binder *b, const ks_gguf_tensor *t, ks_dptr *out)
{
  ks_vision *v = b->v;
  ks_status st = v->be->t->weight_bind(v->be->dev, t->data, t->n_bytes, out, b->err);

  if (st == KS_OK)
    remember(v, *out, t->n_bytes, false);
  return st;
}

static uint64_t
count_elements(const ks_gguf_tensor *t)
{
  return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; /* checked when the file was opened */
}

static ks_status
fail_shape(const binder *b, const ks_gguf_tensor *t, uint64_t n_in, uint64_t n_out)
{
  return ks_fail(b->err, KS_ERR_FORMAT, "the tensor %s is %llu x %llu instead of %llu x %llu",
                 t->name, (unsigned long long)t->ne[0],
                 (unsigned long long)(t->ne[0] > 0 ? count_elements(t) / t->ne[0] : 0),
                 (unsigned long long)n_in, (unsigned long long)n_out);
}

/* Elements as f32 on the host: *out_own is memory to free, or NULL where the mapping serves. */
static ks_status
read_f32(const binder *b, const ks_gguf_tensor *t, const float **out, float **out_own)
{
  const uint64_t n = count_elements(t);
  float *copy;

  *out_own = NULL;
  if (t->dtype == KS_DTYPE_F32 && (uintptr_t)t->data % sizeof(float) == 0) {
    *out = (const float *)(const void *)t->data;
    return KS_OK;
  }
  if (t->dtype == KS_DTYPE_I32)
    return ks_fail(b->err, KS_ERR_UNSUPPORTED, "the tensor %s holds integers", t->name);
  copy = n <= SIZE_MAX ? ks_mem_new(b->v->alloc, KS_MEM_VISION, (size_t)n, sizeof *copy) : NULL;
  if (copy == NULL)
    return ks_fail(b->err, KS_ERR_NOMEM, "no memory for the tensor %s", t->name);
  ks_dequantise_row(t->dtype, t->data, copy, (size_t)n);
  *out = *out_own = copy;
  return KS_OK;
}

/* A matrix of n_out rows of n_in elements, however many dimensions the file gives them. */
static ks_status
bind_tensor(const binder *b, const ks_gguf_tensor *t, uint64_t n_in, uint64_t n_out, ks_weight *out)
{
  const ks_backend *be = b->v->be;
  size_t row_bytes;
  ks_dptr data = 0;
  ks_status st;

  if (count_elements(t) != n_in * n_out || (t->ne[0] != n_in && t->ne[3] != n_out))
    return fail_shape(b, t, n_in, n_out);
  if (!be->t->supports_weight(be->dev, t->dtype) || !ks_dtype_row_bytes(t->dtype, n_in, &row_bytes))
    return ks_fail(b->err, KS_ERR_UNSUPPORTED,
                   "the tensor %s has a type that %s cannot multiply in rows of %llu", t->name,
                   be->t->name, (unsigned long long)n_in);
  if ((uintptr_t)t->data % sizeof(float) != 0)
    return ks_fail(b->err, KS_ERR_UNSUPPORTED, "the tensor %s is not aligned to 4 bytes", t->name);
  st = bind_in_place(b, t, &data);
  if (st == KS_OK)
    *out = (ks_weight){.data = data,
                       .dtype = t->dtype,
                       .n_in = (uint32_t)n_in,
                       .n_out = (uint32_t)n_out,
                       .row_bytes = row_bytes};
  return st;
}

static ks_status
bind_matrix(const binder *b, const char *part, uint32_t n_in, uint32_t n_out, ks_weight *out)
{
  const ks_gguf_tensor *t = find(b, part);

  if (t == NULL)
    return ks_fail(b->err, KS_ERR_FORMAT, "the tensor %s%s is missing", b->prefix, part);
  return bind_tensor(b, t, n_in, n_out, out);
}

static ks_status
bind_vector(const binder *b, const char *part, uint32_t n, bool required, ks_dptr *out)
{
  const ks_gguf_tensor *t = find(b, part);
  const float *host;
  float *own;
  ks_status st;

  if (t == NULL && !required)
    return KS_OK;
  if (t == NULL)
    return ks_fail(b->err, KS_ERR_FORMAT, "the tensor %s%s is missing", b->prefix, part);
  if (count_elements(t) != n)
    return fail_shape(b, t, n, 1);
  if ((st = read_f32(b, t, &host, &own)) != KS_OK)
    return st;
  st = own == NULL ? bind_in_place(b, t, out) : upload_copy(b, own, n * sizeof *own, out);
  ks_mem_free(own);
  return st;
}

/* part.weight, and part.bias where there is one. */
static ks_status
bind_norm(const binder *b, const char *part, uint32_t n, bool required, ks_vision_norm *out)
{
  char name[NAME_BYTES];
  ks_status st;

  snprintf(name, sizeof name, "%s.weight", part);
  if ((st = bind_vector(b, name, n, required, &out->w)) != KS_OK)
    return st;
  snprintf(name, sizeof name, "%s.bias", part);
  return bind_vector(b, name, n, false, &out->b);
}

static ks_status
bind_layer(const binder *b, const char *part, uint32_t n_in, uint32_t n_out, ks_weight *w,
           ks_dptr *bias)
{
  char name[NAME_BYTES];
  ks_status st;

  snprintf(name, sizeof name, "%s.weight", part);
  if ((st = bind_matrix(b, name, n_in, n_out, w)) != KS_OK)
    return st;
  snprintf(name, sizeof name, "%s.bias", part);
  return bind_vector(b, name, n_out, false, bias);
}

static ks_weight
take_rows(const ks_weight *w, uint32_t begin, uint32_t n)
{
  ks_weight part = *w;

  part.data += (ks_dptr)begin * w->row_bytes;
  part.n_out = n;
  return part;
}

static ks_status
bind_attention(const binder *b, ks_vision_block *block)
{
  const uint32_t d = b->v->shape.n_embd;
  const ks_dptr part_bytes = (ks_dptr)d * sizeof(float);
  ks_weight w = {0};
  ks_dptr bias = 0;
  ks_status st;

  if (find(b, "attn_qkv.weight") != NULL) {
    if ((st = bind_layer(b, "attn_qkv", d, 3 * d, &w, &bias)) != KS_OK)
      return st;
    block->wq = take_rows(&w, 0, d);
    block->wk = take_rows(&w, d, d);
    block->wv = take_rows(&w, 2 * d, d);
    block->bq = bias;
    block->bk = bias != 0 ? bias + part_bytes : 0;
    block->bv = bias != 0 ? bias + 2 * part_bytes : 0;
  } else if ((st = bind_layer(b, "attn_q", d, d, &block->wq, &block->bq)) != KS_OK ||
             (st = bind_layer(b, "attn_k", d, d, &block->wk, &block->bk)) != KS_OK ||
             (st = bind_layer(b, "attn_v", d, d, &block->wv, &block->bv)) != KS_OK)
    return st;
  return bind_layer(b, "attn_out", d, d, &block->wo, &block->bo);
}

/* The first matrix is the one that reads n_embd numbers; with n_ff == n_embd the names say it. */
static ks_status
bind_ffn(const binder *b, ks_vision_block *block)
{
  const uint32_t d = b->v->shape.n_embd;
  const ks_gguf_tensor *up = find(b, "ffn_up.weight"), *down = find(b, "ffn_down.weight");
  const bool swapped = up != NULL && down != NULL && up->ne[0] != d && down->ne[0] == d;
  const char *first = swapped ? "ffn_down" : "ffn_up", *second = swapped ? "ffn_up" : "ffn_down";
  const ks_gguf_tensor *t = swapped ? down : up;
  uint32_t n_ff;
  ks_status st;

  if (t == NULL || down == NULL)
    return ks_fail(b->err, KS_ERR_FORMAT, "the tensors %sffn_up and ffn_down are missing",
                   b->prefix);
  if (t->ne[1] == 0 || t->ne[1] > 1u << 20)
    return fail_shape(b, t, d, b->v->shape.n_ff);
  n_ff = (uint32_t)t->ne[1];
  if (n_ff > b->v->shape.n_ff)
    b->v->shape.n_ff = n_ff;
  if (find(b, "ffn_gate.weight") != NULL &&
      (st = bind_layer(b, "ffn_gate", d, n_ff, &block->w_gate, &block->b_gate)) != KS_OK)
    return st;
  if ((st = bind_layer(b, first, d, n_ff, &block->w_up, &block->b_up)) != KS_OK)
    return st;
  return bind_layer(b, second, n_ff, d, &block->w_down, &block->b_down);
}

static ks_status
bind_blocks(ks_vision *v, ks_error *err)
{
  char prefix[NAME_BYTES];
  const binder b = {v, err, prefix};
  ks_status st = KS_OK;

  v->blocks = ks_mem_new(v->alloc, KS_MEM_HOST, v->shape.n_layer, sizeof *v->blocks);
  if (v->blocks == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for %u blocks", v->shape.n_layer);
  for (uint32_t i = 0; st == KS_OK && i < v->shape.n_layer; i++) {
    ks_vision_block *block = &v->blocks[i];

    snprintf(prefix, sizeof prefix, "v.blk.%u.", i);
    if ((st = bind_norm(&b, "ln1", v->shape.n_embd, true, &block->ln1)) == KS_OK &&
        (st = bind_norm(&b, "ln2", v->shape.n_embd, true, &block->ln2)) == KS_OK &&
        (st = bind_attention(&b, block)) == KS_OK)
      st = bind_ffn(&b, block);
  }
  return st;
}

/* A tensor that the host reads: mapped bytes count as weights, as bound ones do. */
static ks_status
bind_host(const binder *b, const ks_gguf_tensor *t, const float **out, float **out_own)
{
  ks_vision *v = b->v;
  ks_status st = read_f32(b, t, out, out_own);

  if (st != KS_OK)
    return st;
  v->weight_bytes += count_elements(t) * sizeof(float);
  if (*out_own != NULL)
    return KS_OK;
  if (ks_alloc_charge(v->alloc, KS_MEM_WEIGHTS, t->n_bytes) != KS_OK)
    return ks_fail(b->err, KS_ERR_NOMEM, "no room for the tensor %s", t->name);
  v->host_bytes += t->n_bytes;
  return KS_OK;
}

/* Positions of the rows, and the class token that LLaVA puts first. */
static ks_status
bind_positions(const binder *b)
{
  ks_vision *v = b->v;
  const ks_vision_shape *s = &v->shape;
  const ks_gguf_tensor *t = find(b, "v.position_embd.weight"), *class_row = find(b, "v.class_embd");
  const uint32_t side = s->prep.patch > 0 ? s->prep.tile / s->prep.patch : 0;
  uint64_t wanted = (uint64_t)side * side + (v->has_class ? 1 : 0), n;
  ks_status st;

  if (v->has_rope && !v->interpolates)
    return KS_OK;
  if (t == NULL || (v->has_class && class_row == NULL))
    return ks_fail(b->err, KS_ERR_FORMAT, "the tensor %s is missing",
                   t == NULL ? "v.position_embd.weight" : "v.class_embd");
  n = t->ne[1];
  if (v->interpolates) {
    const uint64_t root = (uint64_t)sqrt((double)n);

    wanted = root * root;
  }
  if (t->ne[0] != s->n_embd || n != wanted || n == 0 || n > UINT32_MAX || t->ne[2] != 1)
    return fail_shape(b, t, s->n_embd, wanted);
  v->n_position = (uint32_t)n;
  if ((st = bind_host(b, t, &v->positions, &v->own_positions)) != KS_OK || !v->has_class)
    return st;
  if (count_elements(class_row) != s->n_embd)
    return fail_shape(b, class_row, s->n_embd, 1);
  return bind_host(b, class_row, &v->class_row, &v->own_class);
}

static ks_status
bind_entry(const binder *b)
{
  ks_vision *v = b->v;
  const ks_vision_shape *s = &v->shape;
  const uint32_t n_in = 3 * s->prep.patch * s->prep.patch;
  const bool pairs = v->has_rope;
  ks_status st;

  if ((st = bind_matrix(b, "v.patch_embd.weight", n_in, s->n_embd, &v->patch[0])) != KS_OK ||
      (pairs &&
       (st = bind_matrix(b, "v.patch_embd.weight.1", n_in, s->n_embd, &v->patch[1])) != KS_OK) ||
      (st = bind_vector(b, "v.patch_embd.bias", s->n_embd, false, &v->patch_bias)) != KS_OK ||
      (st = bind_positions(b)) != KS_OK)
    return st;
  if (s->family == KS_VISION_LLAVA)
    return bind_norm(b, "v.pre_ln", s->n_embd, true, &v->pre_ln);
  return bind_norm(b, "v.post_ln", s->n_embd, true, &v->post_ln);
}

/* Gemma 3 stores the projection as [n_embd, n_out] rows: turned round once. */
static ks_status
bind_turned(const binder *b, const char *part, ks_weight *out)
{
  ks_vision *v = b->v;
  const ks_gguf_tensor *t = find(b, part);
  const uint32_t n_in = v->shape.n_embd;
  uint32_t n_out;
  const float *rows;
  float *own, *turned;
  ks_status st;

  if (t == NULL)
    return ks_fail(b->err, KS_ERR_FORMAT, "the tensor %s is missing", part);
  if (t->ne[1] != n_in || t->ne[0] == 0 || t->ne[0] > 1u << 20 || t->ne[2] != 1)
    return fail_shape(b, t, t->ne[0], n_in);
  n_out = v->shape.n_out = (uint32_t)t->ne[0];
  if ((st = read_f32(b, t, &rows, &own)) != KS_OK)
    return st;
  turned = ks_mem_new(v->alloc, KS_MEM_VISION, (size_t)n_in * n_out, sizeof *turned);
  if (turned == NULL) {
    ks_mem_free(own);
    return ks_fail(b->err, KS_ERR_NOMEM, "no memory to turn the tensor %s", part);
  }
  for (size_t i = 0; i < n_in; i++)
    for (size_t o = 0; o < n_out; o++)
      turned[o * n_in + i] = rows[i * n_out + o];
  ks_mem_free(own);
  *out = (ks_weight){
      .dtype = KS_DTYPE_F32, .n_in = n_in, .n_out = n_out, .row_bytes = n_in * sizeof *turned};
  st = upload_copy(b, turned, (size_t)n_in * n_out * sizeof *turned, &out->data);
  ks_mem_free(turned);
  return st;
}

const char *
ks_vision_projector_tensor(ks_vision_family family)
{
  switch (family) {
  case KS_VISION_IDEFICS3:
    return "mm.model.fc.weight";
  case KS_VISION_GEMMA3:
    return "mm.input_projection.weight";
  default:
    return "mm.2.weight";
  }
}

static ks_status
bind_projector(const binder *b)
{
  ks_vision *v = b->v;
  ks_vision_shape *s = &v->shape;
  ks_vision_merger *m = &v->projector;
  const char *last = ks_vision_projector_tensor(s->family);
  const ks_gguf_tensor *first = find(b, "mm.0.weight"), *t = find(b, last);
  const uint64_t n_in = (uint64_t)s->n_embd * s->prep.merge * s->prep.merge;
  ks_status st;

  if (t == NULL)
    return ks_fail(b->err, KS_ERR_FORMAT, "the tensor %s is missing", last);
  if (s->family == KS_VISION_GEMMA3) {
    st = bind_norm(b, "mm.soft_emb_norm", s->n_embd, true, &v->pooled_norm);
    return st == KS_OK ? bind_turned(b, last, &m->w0) : st;
  }
  if (n_in > 1u << 20 || t->ne[1] == 0 || t->ne[1] > 1u << 20)
    return fail_shape(b, t, n_in, s->n_out);
  s->n_out = (uint32_t)t->ne[1];
  if (s->family == KS_VISION_IDEFICS3)
    return bind_layer(b, "mm.model.fc", (uint32_t)n_in, s->n_out, &m->w0, &m->b0);
  if (first == NULL)
    return ks_fail(b->err, KS_ERR_FORMAT, "the tensor mm.0.weight is missing");
  if (first->ne[1] == 0 || first->ne[1] > 1u << 20)
    return fail_shape(b, first, n_in, t->ne[0]);
  st = bind_layer(b, "mm.0", (uint32_t)n_in, (uint32_t)first->ne[1], &m->w0, &m->b0);
  return st == KS_OK ? bind_layer(b, "mm.2", m->w0.n_out, s->n_out, &m->w1, &m->b1) : st;
}

static ks_status
bind_deepstack(ks_vision *v, ks_error *err)
{
  char prefix[NAME_BYTES];
  const binder b = {v, err, prefix};
  const uint32_t n = v->shape.n_embd * v->shape.prep.merge * v->shape.prep.merge;
  ks_status st = KS_OK;

  for (uint32_t i = 0; st == KS_OK && i < v->shape.n_layer; i++) {
    ks_vision_deep *deep = &v->deep[v->shape.n_deep];
    ks_vision_merger *m = &deep->merger;
    const ks_gguf_tensor *first;

    snprintf(prefix, sizeof prefix, "v.deepstack.%u.", i);
    if (v->shape.family != KS_VISION_QWEN3VL || (first = find(&b, "fc1.weight")) == NULL)
      continue;
    if (v->shape.n_deep == KS_VISION_MAX_DEEP || first->ne[1] == 0 || first->ne[1] > 1u << 20)
      return fail_shape(&b, first, n, n);
    deep->layer = i;
    v->shape.n_deep++;
    if ((st = bind_norm(&b, "norm", n, true, &m->norm)) == KS_OK &&
        (st = bind_layer(&b, "fc1", n, (uint32_t)first->ne[1], &m->w0, &m->b0)) == KS_OK)
      st = bind_layer(&b, "fc2", m->w0.n_out, v->shape.n_out, &m->w1, &m->b1);
  }
  return st;
}

/* Pairs (i, i + half of the head): the first half of them turns by the row, the rest by the
 * column, each with the frequencies 10000^(-k / quarter). */
static ks_status
bind_rotation(const binder *b)
{
  ks_vision *v = b->v;
  const uint32_t half = v->shape.n_embd / v->shape.n_head / 2, quarter = half / 2;
  float freq[512]; /* heads are at most 1024 wide */
  uint8_t axis[512];
  ks_status st;

  if (!v->has_rope)
    return KS_OK;
  assert(half <= 512);
  for (uint32_t i = 0; i < half; i++) {
    freq[i] = (float)pow(10000.0, -(double)(i % quarter) / quarter);
    axis[i] = i < quarter ? 1 : 2;
  }
  st = upload_copy(b, freq, half * sizeof *freq, &v->inv_freq);
  return st == KS_OK ? upload_copy(b, axis, half, &v->axis) : st;
}

/* What follows the number of a block or of a deepstack level. */
static bool
is_known_part(const char *part)
{
  static const char *const parts[] = {"ln1",      "ln2",      "attn_q", "attn_k",   "attn_v",
                                      "attn_qkv", "attn_out", "ffn_up", "ffn_down", "ffn_gate",
                                      "norm",     "fc1",      "fc2",    NULL};
  const char *dot = strrchr(part, '.');

  if (dot == NULL || (strcmp(dot, ".weight") != 0 && strcmp(dot, ".bias") != 0))
    return false;
  for (size_t i = 0; parts[i] != NULL; i++)
    if (strlen(parts[i]) == (size_t)(dot - part) && strncmp(part, parts[i], strlen(parts[i])) == 0)
      return true;
  return false;
}

/* LLaVA files keep the last norm and blocks behind the features, which nothing reads. */
static bool
is_known(const char *name)
{
  static const char *const global[] = {"v.patch_embd.weight",
                                       "v.patch_embd.weight.1",
                                       "v.patch_embd.bias",
                                       "v.class_embd",
                                       "v.position_embd.weight",
                                       "v.pre_ln.weight",
                                       "v.pre_ln.bias",
                                       "v.post_ln.weight",
                                       "v.post_ln.bias",
                                       "mm.0.weight",
                                       "mm.0.bias",
                                       "mm.2.weight",
                                       "mm.2.bias",
                                       "mm.model.fc.weight",
                                       "mm.model.fc.bias",
                                       "mm.soft_emb_norm.weight",
                                       "mm.input_projection.weight",
                                       NULL};
  static const char *const numbered[] = {"v.blk.", "v.deepstack.", NULL};
  char *end = NULL;

  for (size_t i = 0; global[i] != NULL; i++)
    if (strcmp(name, global[i]) == 0)
      return true;
  for (size_t i = 0; numbered[i] != NULL; i++) {
    const size_t n = strlen(numbered[i]);

    if (strncmp(name, numbered[i], n) != 0 || name[n] < '0' || name[n] > '9')
      continue;
    (void)strtoul(name + n, &end, 10);
    return *end == '.' && is_known_part(end + 1);
  }
  return false;
}

ks_status
ks_vision_bind(ks_vision *v, ks_error *err)
{
  const binder b = {v, err, ""};
  const size_t n_tensor = ks_gguf_get_n_tensors(v->gguf);
  ks_status st;

  for (size_t i = 0; i < n_tensor; i++)
    if (!is_known(ks_gguf_get_tensor(v->gguf, i)->name))
      return ks_fail(err, KS_ERR_UNSUPPORTED,
                     "the tensor %s belongs to no vision tower that this program can run",
                     ks_gguf_get_tensor(v->gguf, i)->name);
  v->bound_capacity = n_tensor + N_COPIES;
  v->bound = ks_mem_new(v->alloc, KS_MEM_HOST, v->bound_capacity, sizeof *v->bound);
  if (v->bound == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for a list of %zu tensors", n_tensor);
  if ((st = bind_entry(&b)) != KS_OK || (st = bind_blocks(v, err)) != KS_OK ||
      (st = bind_projector(&b)) != KS_OK || (st = bind_deepstack(v, err)) != KS_OK)
    return st;
  return bind_rotation(&b);
}

void
ks_vision_unbind(ks_vision *v)
{
  while (v->n_bound > 0) {
    const ks_vision_bound *bound = &v->bound[--v->n_bound];

    if (bound->is_copy)
      v->be->t->mem_free(v->be->dev, bound->data);
    else
      v->be->t->weight_unbind(v->be->dev, bound->data, bound->n_bytes);
  }
  ks_alloc_uncharge(v->alloc, KS_MEM_WEIGHTS, v->host_bytes);
  ks_mem_free(v->bound);
  ks_mem_free(v->own_positions);
  ks_mem_free(v->own_class);
  ks_mem_free(v->blocks);
}

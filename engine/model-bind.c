/* model-bind.c - tensors of the file become weights of the backend.
 * Matrices stay where they are mapped.  Vectors (norms, biases) are f32 for the kernels: those
 * stored otherwise become small copies.  Fused matrices (q, k, v; gate, up) become views of their
 * rows, so the graph knows one form only. Every tensor of the file must be one that the
 * architecture uses, else the numbers would be wrong without a word: anything unknown is refused by
 * name.  Source: docs/formats/gguf.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/model-internal.h"
#include "engine/quant.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64
#define N_ROPE_TABLES 4 /* frequencies and axes, global and local */

typedef struct binder {
  ks_model *m;
  ks_error *err;
  uint32_t layer;
} binder;

static ks_status
remember(ks_model *m, ks_dptr data, size_t n_bytes, bool is_copy)
{
  assert(m->n_bound < m->bound_capacity);
  m->bound[m->n_bound++] = (ks_bound){.data = data, .n_bytes = n_bytes, .is_copy = is_copy};
  m->weight_bytes += n_bytes;
  return KS_OK;
}

/* Host bytes into device memory of the model. */
static ks_status
upload_copy(ks_model *m, const void *host, size_t n_bytes, ks_dptr *out, ks_error *err)
{
  const ks_backend *be = m->be;
  ks_dptr p = 0;
  ks_status st = be->t->mem_new(be->dev, KS_MEM_WEIGHTS, n_bytes, &p, err);

  if (st != KS_OK)
    return st;
  st = be->t->upload(be->dev, p, host, n_bytes, err);
  if (st != KS_OK) {
    be->t->mem_free(be->dev, p);
    return st;
  }
  *out = p;
  return remember(m, p, n_bytes, true);
}

static ks_status
bind_in_place(ks_model *m, const ks_gguf_tensor *t, ks_dptr *out, ks_error *err)
{
  const ks_backend *be = m->be;
  ks_dptr p = 0;
  ks_status st = be->t->weight_bind(be->dev, t->data, t->n_bytes, &p, err);

  if (st != KS_OK)
    return st;
  *out = p;
  return remember(m, p, t->n_bytes, false);
}

static void
layer_name(char name[NAME_BYTES], uint32_t layer, const char *part, const char *kind)
{
  snprintf(name, NAME_BYTES, "blk.%u.%s.%s", layer, part, kind);
}

/* Finds name with exactly these sizes.  *out is NULL when it is absent and not required. */
static ks_status
find_shaped(const ks_model *m, const char *name, uint64_t n_in, uint64_t n_out, bool required,
            const ks_gguf_tensor **out, ks_error *err)
{
  const ks_gguf_tensor *t = ks_gguf_find_tensor(m->gguf, name);

  if (t == NULL && required)
    return ks_fail(err, KS_ERR_FORMAT, "the tensor %s is missing", name);
  if (t != NULL && (t->ne[0] != n_in || t->ne[1] != n_out || t->ne[2] != 1 || t->ne[3] != 1))
    return ks_fail(err, KS_ERR_FORMAT, "the tensor %s is %llu x %llu instead of %llu x %llu", name,
                   (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
                   (unsigned long long)n_in, (unsigned long long)n_out);
  *out = t;
  return KS_OK;
}

static ks_status
bind_matrix(ks_model *m, const char *name, uint32_t n_in, uint32_t n_out, bool required,
            ks_weight *out, ks_error *err)
{
  const ks_gguf_tensor *t;
  ks_dptr data = 0;
  ks_status st = find_shaped(m, name, n_in, n_out, required, &t, err);

  if (st != KS_OK || t == NULL)
    return st;
  if (!m->be->t->supports_weight(m->be->dev, t->dtype)) {
    const ks_dtype_info *info = ks_dtype_get_info(t->dtype);

    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "the tensor %s has the type %s, which %s cannot multiply", name,
                   info != NULL ? info->name : "?", m->be->t->name);
  }
  if ((uintptr_t)t->data % sizeof(float) != 0)
    return ks_fail(err, KS_ERR_UNSUPPORTED, "the tensor %s is not aligned to 4 bytes", name);
  st = bind_in_place(m, t, &data, err);
  if (st == KS_OK)
    *out = (ks_weight){
        .data = data, .dtype = t->dtype, .n_in = n_in, .n_out = n_out, .row_bytes = t->row_bytes};
  return st;
}

/* Rows begin .. begin + n - 1 of a fused matrix. */
static ks_weight
weight_rows(const ks_weight *w, uint32_t begin, uint32_t n)
{
  ks_weight part = *w;

  part.data += (ks_dptr)begin * w->row_bytes;
  part.n_out = n;
  return part;
}

/* The tensor as f32 on the host: *out_own is memory to free, or NULL when the mapping serves. */
static ks_status
vector_as_f32(ks_model *m, const ks_gguf_tensor *t, const float **out, float **out_own,
              ks_error *err)
{
  float *copy;

  if (t->dtype == KS_DTYPE_F32 && (uintptr_t)t->data % sizeof(float) == 0) {
    *out = (const float *)(const void *)t->data;
    *out_own = NULL;
    return KS_OK;
  }
  if (t->dtype == KS_DTYPE_I32)
    return ks_fail(err, KS_ERR_UNSUPPORTED, "the tensor %s holds integers", t->name);
  copy = ks_mem_new(m->alloc, KS_MEM_HOST, t->ne[0], sizeof *copy);
  if (copy == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the tensor %s", t->name);
  ks_dequantise_row(t->dtype, t->data, copy, t->ne[0]);
  *out = *out_own = copy;
  return KS_OK;
}

static ks_status
bind_vector(ks_model *m, const char *name, uint32_t n, bool required, ks_dptr *out, ks_error *err)
{
  const ks_gguf_tensor *t;
  const float *host;
  float *own;
  ks_status st = find_shaped(m, name, n, 1, required, &t, err);

  if (st != KS_OK || t == NULL)
    return st;
  st = vector_as_f32(m, t, &host, &own, err);
  if (st != KS_OK)
    return st;
  st = own == NULL ? bind_in_place(m, t, out, err)
                   : upload_copy(m, own, (size_t)n * sizeof *own, out, err);
  ks_mem_free(own);
  return st;
}

static ks_status
layer_matrix(const binder *b, const char *part, uint32_t n_in, uint32_t n_out, ks_weight *out)
{
  char name[NAME_BYTES];

  layer_name(name, b->layer, part, "weight");
  return bind_matrix(b->m, name, n_in, n_out, true, out, b->err);
}

static ks_status
layer_bias(const binder *b, const char *part, uint32_t n, ks_dptr *out)
{
  char name[NAME_BYTES];

  layer_name(name, b->layer, part, "bias");
  return bind_vector(b->m, name, n, false, out, b->err);
}

static ks_status
layer_norm_weight(const binder *b, const char *part, uint32_t n, ks_dptr *out)
{
  char name[NAME_BYTES];

  layer_name(name, b->layer, part, "weight");
  return bind_vector(b->m, name, n, true, out, b->err);
}

static bool
layer_has(const binder *b, const char *part)
{
  char name[NAME_BYTES];

  layer_name(name, b->layer, part, "weight");
  return ks_gguf_find_tensor(b->m->gguf, name) != NULL;
}

static ks_status
bind_fused_qkv(const binder *b, ks_layer *layer, uint32_t n_q, uint32_t n_k, uint32_t n_v)
{
  ks_weight w = {0};
  ks_dptr bias = 0;
  ks_status st = layer_matrix(b, "attn_qkv", b->m->shape.n_embd, n_q + n_k + n_v, &w);

  if (st == KS_OK)
    st = layer_bias(b, "attn_qkv", n_q + n_k + n_v, &bias);
  if (st != KS_OK)
    return st;
  layer->wq = weight_rows(&w, 0, n_q);
  layer->wk = weight_rows(&w, n_q, n_k);
  layer->wv = weight_rows(&w, n_q + n_k, n_v);
  if (bias != 0) {
    layer->bq = bias;
    layer->bk = bias + (ks_dptr)n_q * sizeof(float);
    layer->bv = layer->bk + (ks_dptr)n_k * sizeof(float);
  }
  return KS_OK;
}

static ks_status
bind_attention(const binder *b, ks_layer *layer)
{
  const ks_model_shape *s = &b->m->shape;
  uint32_t n_q = s->n_head * s->k_dim, n_k = s->n_kv_head * s->k_dim, n_v = s->n_kv_head * s->v_dim;
  ks_status st;

  if ((st = layer_norm_weight(b, "attn_norm", s->n_embd, &layer->attn_norm)) != KS_OK)
    return st;
  if (layer_has(b, "attn_qkv")) {
    if ((st = bind_fused_qkv(b, layer, n_q, n_k, n_v)) != KS_OK)
      return st;
  } else if ((st = layer_matrix(b, "attn_q", s->n_embd, n_q, &layer->wq)) != KS_OK ||
             (st = layer_matrix(b, "attn_k", s->n_embd, n_k, &layer->wk)) != KS_OK ||
             (st = layer_matrix(b, "attn_v", s->n_embd, n_v, &layer->wv)) != KS_OK ||
             (st = layer_bias(b, "attn_q", n_q, &layer->bq)) != KS_OK ||
             (st = layer_bias(b, "attn_k", n_k, &layer->bk)) != KS_OK ||
             (st = layer_bias(b, "attn_v", n_v, &layer->bv)) != KS_OK)
    return st;
  if (b->m->hparams.has_qk_norm &&
      ((st = layer_norm_weight(b, "attn_q_norm", s->k_dim, &layer->q_norm)) != KS_OK ||
       (st = layer_norm_weight(b, "attn_k_norm", s->k_dim, &layer->k_norm)) != KS_OK))
    return st;
  if ((st = layer_matrix(b, "attn_output", s->n_head * s->v_dim, s->n_embd, &layer->wo)) != KS_OK)
    return st;
  if ((st = layer_bias(b, "attn_output", s->n_embd, &layer->bo)) != KS_OK)
    return st;
  if (!b->m->hparams.has_post_norm)
    return KS_OK;
  return layer_norm_weight(b, "post_attention_norm", s->n_embd, &layer->post_attn_norm);
}

/* One matrix with the gate's rows first, then the rows that it multiplies. */
static ks_status
bind_fused_ffn(const binder *b, ks_layer *layer, uint32_t n_ff)
{
  ks_weight w = {0};
  ks_dptr bias = 0;
  ks_status st = layer_matrix(b, "ffn_up", b->m->shape.n_embd, 2 * n_ff, &w);

  if (st == KS_OK)
    st = layer_bias(b, "ffn_up", 2 * n_ff, &bias);
  if (st != KS_OK)
    return st;
  layer->w_gate = weight_rows(&w, 0, n_ff);
  layer->w_up = weight_rows(&w, n_ff, n_ff);
  if (bias != 0) {
    layer->b_gate = bias;
    layer->b_up = bias + (ks_dptr)n_ff * sizeof(float);
  }
  return KS_OK;
}

static ks_status
bind_ffn(const binder *b, ks_layer *layer)
{
  const ks_model_shape *s = &b->m->shape;
  uint32_t n_ff = 0;
  ks_status st = ks_model_key_u32(b->m, "feed_forward_length", b->layer, true, &n_ff, b->err);

  if (st != KS_OK || (st = layer_norm_weight(b, "ffn_norm", s->n_embd, &layer->ffn_norm)) != KS_OK)
    return st;
  if (b->m->hparams.has_fused_ffn && !layer_has(b, "ffn_gate")) {
    if ((st = bind_fused_ffn(b, layer, n_ff)) != KS_OK)
      return st;
  } else if ((st = layer_matrix(b, "ffn_gate", s->n_embd, n_ff, &layer->w_gate)) != KS_OK ||
             (st = layer_matrix(b, "ffn_up", s->n_embd, n_ff, &layer->w_up)) != KS_OK ||
             (st = layer_bias(b, "ffn_gate", n_ff, &layer->b_gate)) != KS_OK ||
             (st = layer_bias(b, "ffn_up", n_ff, &layer->b_up)) != KS_OK)
    return st;
  if ((st = layer_matrix(b, "ffn_down", n_ff, s->n_embd, &layer->w_down)) != KS_OK ||
      (st = layer_bias(b, "ffn_down", s->n_embd, &layer->b_down)) != KS_OK)
    return st;
  if (!b->m->hparams.has_post_norm)
    return KS_OK;
  return layer_norm_weight(b, "post_ffw_norm", s->n_embd, &layer->post_ffn_norm);
}

static ks_status
bind_vocabulary(ks_model *m, ks_error *err)
{
  ks_model_shape *s = &m->shape;
  const ks_gguf_tensor *t = ks_gguf_find_tensor(m->gguf, "token_embd.weight");
  ks_status st;

  if (t == NULL)
    return ks_fail(err, KS_ERR_FORMAT, "the tensor token_embd.weight is missing");
  s->n_vocab = ks_tokenizer_get_n_vocab(m->tokenizer);
  st = bind_matrix(m, "token_embd.weight", s->n_embd, s->n_vocab, true, &m->embd, err);
  if (st != KS_OK)
    return st;
  m->output = m->embd;
  if ((st = bind_matrix(m, "output.weight", s->n_embd, s->n_vocab, false, &m->output, err)) !=
      KS_OK)
    return st;
  m->output.is_output = true;
  return bind_vector(m, "output_norm.weight", s->n_embd, true, &m->output_norm, err);
}

/* Divisors of the frequencies: llama 3's list, or the longrope list for the configured context. */
static ks_status
read_divisors(ks_model *m, uint32_t n_ctx, const float **out, float **out_own, ks_error *err)
{
  const ks_rope_params *r = &m->hparams.rope;
  bool is_long = n_ctx > r->n_ctx_orig;
  const char *name = r->scaling != KS_ROPE_LONGROPE ? "rope_freqs.weight"
                     : is_long                      ? "rope_factors_long.weight"
                                                    : "rope_factors_short.weight";
  const ks_gguf_tensor *t;
  ks_status st = find_shaped(m, name, r->n_rot / 2, 1, r->scaling == KS_ROPE_LONGROPE, &t, err);

  *out = NULL;
  *out_own = NULL;
  if (st != KS_OK || t == NULL)
    return st;
  if ((st = vector_as_f32(m, t, out, out_own, err)) != KS_OK)
    return st;
  for (uint32_t i = 0; i < r->n_rot / 2; i++)
    if (!((*out)[i] > 0.0f)) {
      ks_mem_free(*out_own);
      return ks_fail(err, KS_ERR_FORMAT, "the tensor %s holds a divisor that is not positive",
                     name);
    }
  return KS_OK;
}

static ks_status
bind_rope_shape(ks_model *m, const ks_rope_params *r, ks_rope_shape *out, ks_error *err)
{
  float inv_freq[512]; /* heads are at most 1024 wide */
  uint8_t axis[512];
  uint32_t n_freq = r->n_rot / 2;
  ks_status st;

  assert(n_freq <= 512);
  ks_rope_frequencies(r, inv_freq, &out->mscale);
  out->n_rot = r->n_rot;
  out->mscale *= m->hparams.rope_attn_multiplier;
  st = upload_copy(m, inv_freq, n_freq * sizeof *inv_freq, &out->inv_freq, err);
  if (st != KS_OK || !m->hparams.has_sections)
    return st;
  if (m->hparams.interleaved)
    ks_rope_axes_interleaved(m->hparams.sections, n_freq, axis);
  else
    ks_rope_axes_blocks(m->hparams.sections, n_freq, axis);
  return upload_copy(m, axis, n_freq, &out->axis, err);
}

static ks_status
bind_rope(ks_model *m, uint32_t n_ctx, ks_error *err)
{
  ks_rope_params r = m->hparams.rope;
  float *own = NULL;
  ks_status st = read_divisors(m, n_ctx, &r.freq_factors, &own, err);

  if (st == KS_OK)
    st = bind_rope_shape(m, &r, &m->shape.rope, err);
  ks_mem_free(own);
  if (st != KS_OK)
    return st;
  if (m->shape.arch == KS_ARCH_GEMMA3 && m->shape.window > 0)
    return bind_rope_shape(m, &m->hparams.rope_local, &m->shape.rope_local, err);
  m->shape.rope_local = m->shape.rope;
  return KS_OK;
}

static bool
is_in(const char *const *list, const char *text)
{
  for (; *list != NULL; list++)
    if (strcmp(*list, text) == 0)
      return true;
  return false;
}

/* What follows "blk.N." is a tensor that this architecture uses, or one that changes nothing. */
static bool
is_known_part(const ks_model *m, const char *part)
{
  static const char *const common[] = {
      "attn_norm.weight",   "attn_q.weight",        "attn_k.weight",
      "attn_v.weight",      "attn_q.bias",          "attn_k.bias",
      "attn_v.bias",        "attn_qkv.weight",      "attn_qkv.bias",
      "attn_output.weight", "attn_output.bias",     "ffn_norm.weight",
      "ffn_gate.weight",    "ffn_gate.bias",        "ffn_up.weight",
      "ffn_up.bias",        "ffn_down.weight",      "ffn_down.bias",
      "attn_rot_embd",      "attn_rot_embd.weight", NULL};
  static const char *const qk[] = {"attn_q_norm.weight", "attn_k_norm.weight", NULL};
  static const char *const post[] = {"post_attention_norm.weight", "post_ffw_norm.weight", NULL};

  return is_in(common, part) || (m->hparams.has_qk_norm && is_in(qk, part)) ||
         (m->hparams.has_post_norm && is_in(post, part));
}

static ks_status
check_known(const ks_model *m, const char *name, ks_error *err)
{
  static const char *const global[] = {"token_embd.weight",
                                       "output.weight",
                                       "output_norm.weight",
                                       "rope_freqs.weight",
                                       "rope_factors_long.weight",
                                       "rope_factors_short.weight",
                                       NULL};
  char *end = NULL;

  if (is_in(global, name))
    return KS_OK;
  if (strncmp(name, "blk.", 4) == 0 && name[4] >= '0' && name[4] <= '9') {
    unsigned long layer = strtoul(name + 4, &end, 10);

    if (*end == '.' && layer < m->shape.n_layer && is_known_part(m, end + 1))
      return KS_OK;
  }
  if (strstr(name, "_exps") != NULL || strstr(name, "ffn_gate_inp") != NULL)
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "the tensor %s belongs to a mixture of experts, which this program cannot run",
                   name);
  return ks_fail(err, KS_ERR_UNSUPPORTED, "the tensor %s is not known in the architecture %s", name,
                 m->hparams.arch_name);
}

ks_status
ks_model_bind(ks_model *m, uint32_t n_ctx, ks_error *err)
{
  size_t n_tensor = ks_gguf_get_n_tensors(m->gguf);
  ks_status st = KS_OK;

  for (size_t i = 0; st == KS_OK && i < n_tensor; i++)
    st = check_known(m, ks_gguf_get_tensor(m->gguf, i)->name, err);
  if (st != KS_OK)
    return st;
  m->bound_capacity = n_tensor + N_ROPE_TABLES;
  m->bound = ks_mem_new(m->alloc, KS_MEM_HOST, m->bound_capacity, sizeof *m->bound);
  if (m->bound == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for a list of %zu tensors", n_tensor);
  if ((st = bind_vocabulary(m, err)) != KS_OK || (st = bind_rope(m, n_ctx, err)) != KS_OK)
    return st;
  for (uint32_t i = 0; i < m->shape.n_layer; i++) {
    binder b = {.m = m, .err = err, .layer = i};

    if ((st = bind_attention(&b, &m->layers[i])) != KS_OK ||
        (st = bind_ffn(&b, &m->layers[i])) != KS_OK)
      return st;
  }
  return KS_OK;
}

void
ks_model_unbind(ks_model *m)
{
  while (m->n_bound > 0) {
    const ks_bound *b = &m->bound[--m->n_bound];

    if (b->is_copy)
      m->be->t->mem_free(m->be->dev, b->data);
    else
      m->be->t->weight_unbind(m->be->dev, b->data, b->n_bytes);
  }
  ks_mem_free(m->bound);
  m->bound = NULL;
}

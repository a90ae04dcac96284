/* model-shape.c - from metadata keys to the shape of the model.
 * Every number is checked here or against a tensor in model-bind.c before it sizes anything.
 * Keys that one file stores once and another per layer are read in both forms; head counts that
 * really differ between layers are refused.  Source: docs/formats/gguf.md, docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/model-internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_WIDTH (1u << 24) /* n_embd, n_ff */
#define MAX_HEADS 4096u
#define MAX_HEAD_DIM 1024u
#define KEY_BYTES 96

typedef struct arch_info {
  const char *name;
  ks_arch arch;
  bool neox, qk_norm, post_norm, fused_ffn, sections, interleaved;
  ks_act act;
} arch_info;

static const arch_info archs[] = {
    {.name = "llama", .arch = KS_ARCH_LLAMA, .act = KS_ACT_SILU},
    {.name = "qwen2", .arch = KS_ARCH_QWEN2, .neox = true, .act = KS_ACT_SILU},
    {.name = "qwen3", .arch = KS_ARCH_QWEN3, .neox = true, .qk_norm = true, .act = KS_ACT_SILU},
    {.name = "gemma3",
     .arch = KS_ARCH_GEMMA3,
     .neox = true,
     .qk_norm = true,
     .post_norm = true,
     .act = KS_ACT_GELU_TANH},
    {.name = "phi3", .arch = KS_ARCH_PHI3, .neox = true, .fused_ffn = true, .act = KS_ACT_SILU},
    {.name = "qwen2vl",
     .arch = KS_ARCH_QWEN2VL,
     .neox = true,
     .sections = true,
     .act = KS_ACT_SILU},
    {.name = "qwen3vl",
     .arch = KS_ARCH_QWEN3VL,
     .neox = true,
     .qk_norm = true,
     .sections = true,
     .interleaved = true,
     .act = KS_ACT_SILU},
};

static const ks_gguf_key *
find_key(const ks_model *m, const char *suffix, char name[KEY_BYTES])
{
  snprintf(name, KEY_BYTES, "%s.%s", m->hparams.arch_name, suffix);
  return ks_gguf_find_key(m->gguf, name);
}

ks_status
ks_model_key_u32(const ks_model *m, const char *suffix, uint32_t layer, bool required,
                 uint32_t *out, ks_error *err)
{
  char name[KEY_BYTES];
  const ks_gguf_key *key = find_key(m, suffix, name);
  int64_t value;

  if (key == NULL)
    return required ? ks_fail(err, KS_ERR_FORMAT, "the key %s is missing", name) : KS_OK;
  if (key->type != KS_GGUF_ARRAY) {
    if (!ks_gguf_get_u32(m->gguf, name, out))
      return ks_fail(err, KS_ERR_FORMAT, "the key %s is no integer of 32 bits", name);
    return KS_OK;
  }
  if (!ks_gguf_key_get_i64(key, layer, &value) || value < 0 || value > UINT32_MAX)
    return ks_fail(err, KS_ERR_FORMAT, "the key %s has no value for layer %u", name, layer);
  *out = (uint32_t)value;
  return KS_OK;
}

/* Absent: *out untouched. */
static ks_status
key_f32(const ks_model *m, const char *suffix, float *out, ks_error *err)
{
  char name[KEY_BYTES];
  float value;

  if (find_key(m, suffix, name) == NULL)
    return KS_OK;
  if (!ks_gguf_get_f32(m->gguf, name, &value) || !isfinite(value))
    return ks_fail(err, KS_ERR_FORMAT, "the key %s is no finite number", name);
  *out = value;
  return KS_OK;
}

/* A count that must be the same in every layer. */
static ks_status
key_same(const ks_model *m, const char *suffix, bool required, uint32_t *out, ks_error *err)
{
  uint32_t value = *out;
  ks_status st = ks_model_key_u32(m, suffix, 0, required, &value, err);

  for (uint32_t i = 1; st == KS_OK && i < m->shape.n_layer; i++) {
    uint32_t other = value;

    st = ks_model_key_u32(m, suffix, i, required, &other, err);
    if (st == KS_OK && other != value)
      return ks_fail(err, KS_ERR_UNSUPPORTED,
                     "%s.%s differs between layers (%u and %u), which this program cannot run",
                     m->hparams.arch_name, suffix, value, other);
  }
  if (st == KS_OK)
    *out = value;
  return st;
}

static ks_status
check_range(const ks_model *m, const char *suffix, uint32_t value, uint32_t min, uint32_t max,
            ks_error *err)
{
  if (value >= min && value <= max)
    return KS_OK;
  return ks_fail(err, KS_ERR_FORMAT, "%s.%s is %u, which is not between %u and %u",
                 m->hparams.arch_name, suffix, value, min, max);
}

static ks_status
read_arch(ks_model *m, ks_error *err)
{
  ks_gguf_str s;
  const arch_info *a = NULL;

  if (!ks_gguf_get_str(m->gguf, "general.architecture", &s))
    return ks_fail(err, KS_ERR_FORMAT, "the key general.architecture is missing");
  for (size_t i = 0; i < sizeof archs / sizeof archs[0] && a == NULL; i++)
    if (ks_gguf_str_equal(s, archs[i].name))
      a = &archs[i];
  if (a == NULL && ks_gguf_str_equal(s, "clip"))
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "this is the vision part of a model (mmproj): give the language model, and this "
                   "file with --mmproj");
  if (a == NULL)
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "the architecture \"%.*s\" is not supported; supported are llama, qwen2, qwen3, "
                   "gemma3, phi3, qwen2vl and qwen3vl",
                   (int)(s.n_bytes < 64 ? s.n_bytes : 64), s.data);
  snprintf(m->hparams.arch_name, sizeof m->hparams.arch_name, "%s", a->name);
  m->shape.arch = a->arch;
  m->shape.act = a->act;
  m->shape.rope.neox = m->shape.rope_local.neox = a->neox;
  m->hparams.has_qk_norm = a->qk_norm;
  m->hparams.has_post_norm = a->post_norm;
  m->hparams.has_fused_ffn = a->fused_ffn;
  m->hparams.has_sections = a->sections;
  m->hparams.interleaved = a->interleaved;
  return KS_OK;
}

static ks_status
read_sizes(ks_model *m, ks_error *err)
{
  ks_model_shape *s = &m->shape;
  uint32_t n_expert = 0;
  ks_status st;

  if ((st = ks_model_key_u32(m, "embedding_length", 0, true, &s->n_embd, err)) != KS_OK ||
      (st = ks_model_key_u32(m, "block_count", 0, true, &s->n_layer, err)) != KS_OK ||
      (st = ks_model_key_u32(m, "context_length", 0, true, &s->n_ctx_train, err)) != KS_OK ||
      (st = ks_model_key_u32(m, "expert_count", 0, false, &n_expert, err)) != KS_OK ||
      (st = check_range(m, "embedding_length", s->n_embd, 1, MAX_WIDTH, err)) != KS_OK ||
      (st = check_range(m, "context_length", s->n_ctx_train, 1, INT32_MAX, err)) != KS_OK)
    return st;
  if (n_expert > 0)
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "the model is a mixture of %u experts, which this program cannot run", n_expert);
  /* Every layer owns several tensors, so the file bounds the count. */
  if (s->n_layer == 0 || s->n_layer > ks_gguf_get_n_tensors(m->gguf) || s->n_layer > 4096)
    return ks_fail(err, KS_ERR_FORMAT, "%s.block_count is %u, which does not fit %zu tensors",
                   m->hparams.arch_name, s->n_layer, ks_gguf_get_n_tensors(m->gguf));
  for (uint32_t i = 0; i < s->n_layer; i++) {
    uint32_t n_ff = 0;

    if ((st = ks_model_key_u32(m, "feed_forward_length", i, true, &n_ff, err)) != KS_OK ||
        (st = check_range(m, "feed_forward_length", n_ff, 1, MAX_WIDTH, err)) != KS_OK)
      return st;
    s->n_ff = n_ff > s->n_ff ? n_ff : s->n_ff;
  }
  return KS_OK;
}

/* A picture's features go to the rows of all tokens: those of the last layer are picked. */
static ks_status
read_deepstack(ks_model *m, ks_error *err)
{
  ks_model_shape *s = &m->shape;
  ks_status st;

  if (s->arch != KS_ARCH_QWEN3VL)
    return KS_OK;
  st = ks_model_key_u32(m, "n_deepstack_layers", 0, false, &s->n_deep, err);
  if (st == KS_OK && s->n_deep >= s->n_layer)
    return ks_fail(err, KS_ERR_FORMAT, "%s.n_deepstack_layers is %u with %u layers",
                   m->hparams.arch_name, s->n_deep, s->n_layer);
  return st;
}

static ks_status
read_heads(ks_model *m, ks_error *err)
{
  ks_model_shape *s = &m->shape;
  ks_status st;

  if ((st = key_same(m, "attention.head_count", true, &s->n_head, err)) != KS_OK ||
      (st = check_range(m, "attention.head_count", s->n_head, 1, MAX_HEADS, err)) != KS_OK)
    return st;
  s->n_kv_head = s->n_head;
  s->k_dim = s->v_dim = s->n_embd / s->n_head;
  if ((st = key_same(m, "attention.head_count_kv", false, &s->n_kv_head, err)) != KS_OK ||
      (st = key_same(m, "attention.key_length", false, &s->k_dim, err)) != KS_OK ||
      (st = key_same(m, "attention.value_length", false, &s->v_dim, err)) != KS_OK ||
      (st = check_range(m, "attention.head_count_kv", s->n_kv_head, 1, s->n_head, err)) != KS_OK ||
      (st = check_range(m, "attention.key_length", s->k_dim, 1, MAX_HEAD_DIM, err)) != KS_OK ||
      (st = check_range(m, "attention.value_length", s->v_dim, 1, MAX_HEAD_DIM, err)) != KS_OK)
    return st;
  if (s->n_head % s->n_kv_head != 0)
    return ks_fail(err, KS_ERR_FORMAT, "%u query heads cannot share %u KV heads evenly", s->n_head,
                   s->n_kv_head);
  return KS_OK;
}

static ks_status
read_scales(ks_model *m, ks_error *err)
{
  ks_model_shape *s = &m->shape;
  bool is_gemma = s->arch == KS_ARCH_GEMMA3;
  /* Gemma 3 of 27 billion parameters scales by the width per head instead of the head's size. */
  uint32_t dim = is_gemma && s->n_layer == 62 ? s->n_embd / s->n_head : s->k_dim;
  ks_status st;

  s->rms_eps = -1.0f;
  s->attn_scale = 0.0f;
  s->embd_scale = is_gemma ? sqrtf((float)s->n_embd) : 1.0f;
  if ((st = key_f32(m, "attention.layer_norm_rms_epsilon", &s->rms_eps, err)) != KS_OK ||
      (st = key_f32(m, "attention.scale", &s->attn_scale, err)) != KS_OK)
    return st;
  if (is_gemma && (st = key_f32(m, "final_logit_softcapping", &s->final_softcap, err)) != KS_OK)
    return st;
  if (s->rms_eps < 0.0f || s->final_softcap < 0.0f)
    return ks_fail(err, KS_ERR_FORMAT, "the key %s.%s is missing or negative", m->hparams.arch_name,
                   s->rms_eps < 0.0f ? "attention.layer_norm_rms_epsilon"
                                     : "final_logit_softcapping");
  if (s->attn_scale == 0.0f)
    s->attn_scale = 1.0f / sqrtf((float)dim);
  return KS_OK;
}

static ks_status
read_scaling_type(ks_model *m, ks_error *err)
{
  static const char *const names[] = {"none", "linear", "yarn", "longrope"};
  char name[KEY_BYTES];
  ks_gguf_str s;

  m->hparams.rope.scaling = KS_ROPE_LINEAR;
  if (find_key(m, "rope.scaling.type", name) == NULL)
    return KS_OK;
  if (!ks_gguf_get_str(m->gguf, name, &s))
    return ks_fail(err, KS_ERR_FORMAT, "the key %s is no text", name);
  for (int i = 0; i < 4; i++)
    if (ks_gguf_str_equal(s, names[i])) {
      m->hparams.rope.scaling = (ks_rope_scaling)i;
      return KS_OK;
    }
  return ks_fail(err, KS_ERR_UNSUPPORTED, "the rope scaling type \"%.*s\" is not supported",
                 (int)(s.n_bytes < 64 ? s.n_bytes : 64), s.data);
}

/* YaRN's own keys.  A stored attention factor replaces the default, as in the original models. */
static ks_status
read_yarn(ks_model *m, ks_rope_params *r, ks_error *err)
{
  float log_mul = 0.0f, own = 0.0f;
  ks_status st;

  r->yarn_ext_factor = r->yarn_beta_slow = 1.0f;
  r->yarn_beta_fast = 32.0f;
  if ((st = key_f32(m, "rope.scaling.yarn_ext_factor", &r->yarn_ext_factor, err)) != KS_OK ||
      (st = key_f32(m, "rope.scaling.yarn_beta_fast", &r->yarn_beta_fast, err)) != KS_OK ||
      (st = key_f32(m, "rope.scaling.yarn_beta_slow", &r->yarn_beta_slow, err)) != KS_OK ||
      (st = key_f32(m, "rope.scaling.yarn_log_multiplier", &log_mul, err)) != KS_OK ||
      (st = key_f32(m, "rope.scaling.yarn_attn_factor", &own, err)) != KS_OK)
    return st;
  if (log_mul != 0.0f)
    return ks_fail(err, KS_ERR_UNSUPPORTED, "%s.rope.scaling.yarn_log_multiplier is not supported",
                   m->hparams.arch_name);
  if (r->yarn_beta_fast <= 0.0f || r->yarn_beta_slow <= 0.0f || r->base <= 1.0f)
    return ks_fail(err, KS_ERR_FORMAT, "the YaRN numbers of %s.rope make no ramp",
                   m->hparams.arch_name);
  r->attn_factor = own;
  return KS_OK;
}

static ks_status
read_sections(ks_model *m, ks_error *err)
{
  char name[KEY_BYTES];
  const ks_gguf_key *key = find_key(m, "rope.dimension_sections", name);
  uint32_t sum = 0;

  if (key == NULL || key->type != KS_GGUF_ARRAY || key->n_elem < 3)
    return ks_fail(err, KS_ERR_FORMAT, "the key %s with three or four numbers is missing", name);
  for (uint32_t i = 0; i < 4 && i < key->n_elem; i++) {
    int64_t value;

    if (!ks_gguf_key_get_i64(key, i, &value) || value < 0 || value > MAX_HEAD_DIM)
      return ks_fail(err, KS_ERR_FORMAT, "the key %s holds a wrong number", name);
    if (i == 3 && value != 0)
      return ks_fail(err, KS_ERR_UNSUPPORTED, "%s has a fourth axis, which is not supported", name);
    if (i < 3) {
      m->hparams.sections[i] = (uint32_t)value;
      sum += (uint32_t)value;
    }
  }
  if (sum != m->hparams.rope.n_rot / 2)
    return ks_fail(err, KS_ERR_FORMAT, "%s adds up to %u, not to %u frequencies", name, sum,
                   m->hparams.rope.n_rot / 2);
  return KS_OK;
}

static ks_status
check_rope(const ks_model *m, const ks_rope_params *r, ks_error *err)
{
  if (r->n_rot == 0 || r->n_rot % 2 != 0 || r->n_rot > m->shape.k_dim)
    return ks_fail(err, KS_ERR_FORMAT, "%s.rope.dimension_count is %u with heads of %u",
                   m->hparams.arch_name, r->n_rot, m->shape.k_dim);
  if (r->base <= 0.0f || r->factor <= 0.0f)
    return ks_fail(err, KS_ERR_FORMAT, "a rope base or factor of %s is not positive",
                   m->hparams.arch_name);
  if (r->n_ctx_orig == 0 || (r->scaling == KS_ROPE_LONGROPE && r->n_ctx_orig < 2))
    return ks_fail(err, KS_ERR_FORMAT, "%s.rope.scaling.original_context_length is %u",
                   m->hparams.arch_name, r->n_ctx_orig);
  return KS_OK;
}

static ks_status
read_rope(ks_model *m, ks_error *err)
{
  ks_rope_params *r = &m->hparams.rope;
  float factor = 0.0f, attn_factor = 0.0f;
  ks_status st;

  *r = (ks_rope_params){.n_rot = m->shape.k_dim, .base = 10000.0f};
  r->n_ctx_orig = m->shape.n_ctx_train;
  if ((st = ks_model_key_u32(m, "rope.dimension_count", 0, false, &r->n_rot, err)) != KS_OK ||
      (st = key_f32(m, "rope.freq_base", &r->base, err)) != KS_OK ||
      (st = key_f32(m, "rope.scale_linear", &factor, err)) != KS_OK ||
      (st = key_f32(m, "rope.scaling.factor", &factor, err)) != KS_OK ||
      (st = key_f32(m, "rope.scaling.attn_factor", &attn_factor, err)) != KS_OK ||
      (st = ks_model_key_u32(m, "rope.scaling.original_context_length", 0, false, &r->n_ctx_orig,
                             err)) != KS_OK ||
      (st = read_scaling_type(m, err)) != KS_OK)
    return st;
  /* The list of divisors makes it longrope, also where a converter left the type out. */
  if (ks_gguf_find_tensor(m->gguf, "rope_factors_long.weight") != NULL)
    r->scaling = KS_ROPE_LONGROPE;
  if (factor == 0.0f)
    factor = r->scaling == KS_ROPE_LONGROPE && r->n_ctx_orig > 0
                 ? (float)((double)m->shape.n_ctx_train / r->n_ctx_orig)
                 : 1.0f;
  r->factor = factor;
  if (r->scaling == KS_ROPE_YARN && (st = read_yarn(m, r, err)) != KS_OK)
    return st;
  m->hparams.rope_attn_multiplier = 1.0f;
  if (r->scaling == KS_ROPE_LONGROPE)
    r->attn_factor = attn_factor;
  else if (attn_factor != 0.0f)
    m->hparams.rope_attn_multiplier = attn_factor;
  if ((st = check_rope(m, r, err)) != KS_OK)
    return st;
  return m->hparams.has_sections ? read_sections(m, err) : KS_OK;
}

/* Whether layer i sees a window only: the file's list or period, else every sixth layer sees all.
 */
static ks_status
read_is_local(const ks_model *m, uint32_t i, bool *out, ks_error *err)
{
  char name[KEY_BYTES];
  const ks_gguf_key *key = find_key(m, "attention.sliding_window_pattern", name);
  uint32_t period = 6, flag = 0;
  ks_status st;

  if (key != NULL && key->type == KS_GGUF_ARRAY && key->elem_type == KS_GGUF_BOOL) {
    if (i >= key->n_elem || i >= key->n_value_bytes)
      return ks_fail(err, KS_ERR_FORMAT, "the key %s has no value for layer %u", name, i);
    *out = key->value[i] != 0;
    return KS_OK;
  }
  if (key != NULL && key->type == KS_GGUF_ARRAY) {
    st = ks_model_key_u32(m, "attention.sliding_window_pattern", i, true, &flag, err);
    if (st == KS_OK)
      *out = flag != 0;
    return st;
  }
  st = ks_model_key_u32(m, "attention.sliding_window_pattern", i, false, &period, err);
  if (st == KS_OK)
    *out = period == 0 || i % period + 1 < period;
  return st;
}

static ks_status
read_windows(ks_model *m, ks_error *err)
{
  ks_model_shape *s = &m->shape;
  ks_rope_params *local = &m->hparams.rope_local;
  ks_status st;

  *local = m->hparams.rope;
  if (s->arch != KS_ARCH_GEMMA3 && s->arch != KS_ARCH_PHI3)
    return KS_OK;
  if ((st = ks_model_key_u32(m, "attention.sliding_window", 0, false, &s->window, err)) != KS_OK)
    return st;
  if (s->window >= s->n_ctx_train)
    s->window = 0; /* never felt */
  if (s->window == 0)
    return KS_OK;
  for (uint32_t i = 0; i < s->n_layer; i++) {
    bool is_local = true; /* phi3: all layers */

    if (s->arch == KS_ARCH_GEMMA3 && (st = read_is_local(m, i, &is_local, err)) != KS_OK)
      return st;
    m->layers[i].is_local = is_local;
  }
  if (s->arch == KS_ARCH_PHI3)
    return KS_OK;
  /* Local layers of Gemma 3 turn by a base of their own and are never stretched. */
  *local = (ks_rope_params){.n_rot = m->hparams.rope.n_rot, .base = 10000.0f, .factor = 1.0f};
  local->n_ctx_orig = s->n_ctx_train;
  if ((st = key_f32(m, "rope.freq_base_swa", &local->base, err)) != KS_OK)
    return st;
  return check_rope(m, local, err);
}

ks_status
ks_model_read_shape(ks_model *m, ks_error *err)
{
  ks_status st;

  if ((st = read_arch(m, err)) != KS_OK || (st = read_sizes(m, err)) != KS_OK ||
      (st = read_heads(m, err)) != KS_OK || (st = read_scales(m, err)) != KS_OK ||
      (st = read_rope(m, err)) != KS_OK || (st = read_deepstack(m, err)) != KS_OK)
    return st;
  m->layers = ks_mem_new(m->alloc, KS_MEM_HOST, m->shape.n_layer, sizeof *m->layers);
  if (m->layers == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for %u layers", m->shape.n_layer);
  return read_windows(m, err);
}

/* vision-shape.c - from the keys of an mmproj file to the shape of its tower.
 * Sizes that tensors state as well (feed-forward, output) are taken from them in vision-bind.c, as
 * old files hold placeholders here.  Source: docs/formats/mmproj.md, docs/method.md, section 10. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-internal.h"

#include <math.h>

#define MAX_WIDTH (1u << 16)
#define MAX_HEAD_DIM 1024u
#define CLIP_L_BLOCKS 24u

static ks_status
read_u32(const ks_gguf *g, const char *name, uint32_t min, uint32_t max, uint32_t *out,
         ks_error *err)
{
  if (ks_gguf_find_key(g, name) == NULL)
    return ks_fail(err, KS_ERR_FORMAT, "the key %s is missing", name);
  if (!ks_gguf_get_u32(g, name, out) || *out < min || *out > max)
    return ks_fail(err, KS_ERR_FORMAT, "the key %s is no number from %u to %u", name, min, max);
  return KS_OK;
}

/* Blocks that the family's features come from.  LLaVA reads the output of a block in the middle:
 * its number is in the file, else the last block but one of CLIP-L, which is the last one in files
 * that were cut to what is needed. */
static ks_status
read_n_layer(ks_vision *v, ks_error *err)
{
  static const char name[] = "clip.vision.feature_layer";
  const ks_gguf_key *key = ks_gguf_find_key(v->gguf, name);
  ks_vision_shape *s = &v->shape;
  const size_t n_tensor = ks_gguf_get_n_tensors(v->gguf);
  int64_t layer;
  ks_status st = read_u32(v->gguf, "clip.vision.block_count", 1, 4096, &s->n_layer, err);

  if (st != KS_OK)
    return st;
  if (s->n_layer > n_tensor)
    return ks_fail(err, KS_ERR_FORMAT, "clip.vision.block_count is %u, but there are %zu tensors",
                   s->n_layer, n_tensor);
  if (s->family != KS_VISION_LLAVA)
    return KS_OK;
  if (key == NULL) {
    s->n_layer -= s->n_layer == CLIP_L_BLOCKS;
    return KS_OK;
  }
  if (key->n_elem != 1)
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "%s names %llu blocks; this program can read the output of one", name,
                   (unsigned long long)key->n_elem);
  if (!ks_gguf_key_get_i64(key, 0, &layer) || layer < 1 || layer > s->n_layer)
    return ks_fail(err, KS_ERR_FORMAT, "%s is no number from 1 to %u", name, s->n_layer);
  s->n_layer = (uint32_t)layer;
  return KS_OK;
}

static ks_status
read_windows(ks_vision *v, ks_error *err)
{
  const ks_vision_prep *prep = &v->shape.prep;
  uint32_t pixels = 112;
  ks_status st;

  v->wa_pattern = 1;
  if (v->shape.family != KS_VISION_QWEN25VL)
    return KS_OK;
  st = read_u32(v->gguf, "clip.vision.n_wa_pattern", 1, 4096, &v->wa_pattern, err);
  if (st == KS_OK && ks_gguf_find_key(v->gguf, "clip.vision.window_size") != NULL)
    st = read_u32(v->gguf, "clip.vision.window_size", 1, 4096, &pixels, err);
  if (st != KS_OK)
    return st;
  v->window = pixels / prep->patch / prep->merge;
  if (v->window == 0)
    return ks_fail(err, KS_ERR_FORMAT, "a window of %u pixels is smaller than a token", pixels);
  return KS_OK;
}

static void
read_activation(ks_vision *v)
{
  bool gelu = false, silu = false;

  if (!ks_gguf_get_bool(v->gguf, "clip.use_gelu", &gelu))
    gelu = false;
  if (!ks_gguf_get_bool(v->gguf, "clip.use_silu", &silu))
    silu = false;
  v->act = gelu ? KS_ACT_GELU_TANH : silu ? KS_ACT_SILU : KS_ACT_GELU_QUICK;
}

ks_status
ks_vision_read_shape(ks_vision *v, ks_error *err)
{
  ks_vision_shape *s = &v->shape;
  const bool is_qwen = s->family == KS_VISION_QWEN2VL || s->family == KS_VISION_QWEN25VL ||
                       s->family == KS_VISION_QWEN3VL;
  ks_status st;

  if ((st = read_u32(v->gguf, "clip.vision.embedding_length", 1, MAX_WIDTH, &s->n_embd, err)) !=
          KS_OK ||
      (st = read_u32(v->gguf, "clip.vision.attention.head_count", 1, 1024, &s->n_head, err)) !=
          KS_OK ||
      (st = read_n_layer(v, err)) != KS_OK || (st = read_windows(v, err)) != KS_OK)
    return st;
  if (s->n_embd % s->n_head != 0 || s->n_embd / s->n_head > MAX_HEAD_DIM)
    return ks_fail(err, KS_ERR_FORMAT, "a tower %u wide cannot have %u heads", s->n_embd,
                   s->n_head);
  if (is_qwen && s->n_embd / s->n_head % 4 != 0)
    return ks_fail(err, KS_ERR_FORMAT, "heads of %u numbers cannot be rotated in two dimensions",
                   s->n_embd / s->n_head);
  v->eps = 1e-6f;
  if (ks_gguf_find_key(v->gguf, "clip.vision.attention.layer_norm_epsilon") != NULL &&
      (!ks_gguf_get_f32(v->gguf, "clip.vision.attention.layer_norm_epsilon", &v->eps) ||
       !(v->eps > 0) || !isfinite(v->eps)))
    return ks_fail(err, KS_ERR_FORMAT,
                   "the key clip.vision.attention.layer_norm_epsilon is no positive number");
  read_activation(v);
  v->is_rms = s->family == KS_VISION_QWEN25VL;
  v->has_rope = is_qwen;
  v->has_class = s->family == KS_VISION_LLAVA;
  v->interpolates = s->family == KS_VISION_QWEN3VL;
  return KS_OK;
}

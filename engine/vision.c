/* vision.c - opening, owning and pairing a vision tower.
 * The file stays mapped as long as the tower lives: on the CPU the weights are its bytes.
 * Source: docs/formats/mmproj.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define KEY_BYTES 96
#define WHOLE_ROWS 1280u
#define TILE_ROWS 512u

/* What a family's language model is, and the tokens that frame its pictures. */
typedef struct family_info {
  const char *name, *arch;
  const char *tokens[2];
} family_info;

static const family_info families[KS_N_VISION_FAMILY] = {
    [KS_VISION_IDEFICS3] = {"Idefics3", "llama", {"<fake_token_around_image>", "<global-img>"}},
    [KS_VISION_LLAVA] = {"LLaVA", "llama", {NULL, NULL}},
    [KS_VISION_GEMMA3] = {"Gemma 3", "gemma3", {"<start_of_image>", "<end_of_image>"}},
    [KS_VISION_QWEN2VL] = {"Qwen2-VL", "qwen2vl", {"<|vision_start|>", "<|vision_end|>"}},
    [KS_VISION_QWEN25VL] = {"Qwen2.5-VL", "qwen2vl", {"<|vision_start|>", "<|vision_end|>"}},
    [KS_VISION_QWEN3VL] = {"Qwen3-VL", "qwen3vl", {"<|vision_start|>", "<|vision_end|>"}},
};

ks_status
ks_vision_open(ks_alloc *a, const char *path, ks_backend *be, ks_vision **out, ks_error *err)
{
  ks_gguf *g = NULL;
  ks_status st = ks_gguf_open(a, path, &g, err);

  return st == KS_OK ? ks_vision_open_gguf(a, g, be, out, err) : st;
}

static ks_status
load(ks_vision *v, ks_error *err)
{
  ks_status st = ks_vision_prep_read(v->gguf, &v->shape.prep, err);

  if (st != KS_OK)
    return st;
  v->shape.family = v->shape.prep.family;
  if ((st = ks_vision_read_shape(v, err)) != KS_OK || (st = ks_vision_bind(v, err)) != KS_OK)
    return st;
  return ks_gguf_check_alive(v->gguf, err);
}

ks_status
ks_vision_open_gguf(ks_alloc *a, ks_gguf *take_gguf, ks_backend *be, ks_vision **out, ks_error *err)
{
  ks_vision *v = ks_mem_new(a, KS_MEM_HOST, 1, sizeof *v);
  ks_status st;

  if (v == NULL) {
    ks_gguf_close(take_gguf);
    return ks_fail(err, KS_ERR_NOMEM, "no memory for a vision tower");
  }
  v->alloc = a;
  v->be = be;
  v->gguf = take_gguf;
  v->scratch_limit = KS_VISION_SCRATCH_BYTES;
  v->whole_rows = WHOLE_ROWS;
  v->tile_rows = TILE_ROWS;
  st = load(v, err);
  if (st != KS_OK) {
    ks_vision_close(v);
    return st;
  }
  *out = v;
  return KS_OK;
}

void
ks_vision_close(ks_vision *vision)
{
  if (vision == NULL)
    return;
  ks_vision_unbind(vision);
  ks_gguf_close(vision->gguf);
  ks_mem_free(vision);
}

const ks_vision_shape *
ks_vision_get_shape(const ks_vision *vision)
{
  return &vision->shape;
}

uint64_t
ks_vision_get_weight_bytes(const ks_vision *vision)
{
  return vision->weight_bytes;
}

void
ks_vision_set_scratch_limit(ks_vision *vision, uint64_t n_bytes)
{
  vision->scratch_limit = n_bytes != 0 ? n_bytes : KS_VISION_SCRATCH_BYTES;
}

void
ks_vision_set_zip(ks_vision *vision, const ks_vision_zip *zip)
{
  vision->zip = *zip;
}

uint32_t
ks_vision_get_rounding(const ks_vision *vision, const ks_vision_plan *plan)
{
  ks_vision_memory m;

  return ks_vision_memory_init(&m, vision, plan, NULL) == KS_OK ? m.rounding : 0;
}

uint64_t
ks_vision_count_scratch_bytes(const ks_vision *vision, const ks_vision_plan *plan)
{
  ks_vision_memory m;

  if (ks_vision_memory_init(&m, vision, plan, NULL) != KS_OK)
    return UINT64_MAX;
  return (uint64_t)m.device_bytes + m.host_bytes + ks_vision_rows_count_bytes(vision, plan) +
         ks_vision_zip_count_bytes(vision, plan, m.group);
}

/* --- pairing --- */

static bool
has_token(const ks_gguf *g, const char *text)
{
  const ks_gguf_key *key = ks_gguf_find_key(g, "tokenizer.ggml.tokens");
  size_t cursor = 0;
  ks_gguf_str s;

  if (key == NULL)
    return false;
  for (uint64_t i = 0; i < key->n_elem && ks_gguf_key_next_str(key, &cursor, &s); i++)
    if (ks_gguf_str_equal(s, text))
      return true;
  return false;
}

static uint32_t
count_deepstack(const ks_gguf *mmproj)
{
  const size_t n = ks_gguf_get_n_tensors(mmproj);
  uint32_t n_deep = 0;

  for (size_t i = 0; i < n; i++) {
    const char *name = ks_gguf_get_tensor(mmproj, i)->name;

    n_deep += strncmp(name, "v.deepstack.", 12) == 0 && strstr(name, ".fc1.weight") != NULL;
  }
  return n_deep;
}

static ks_status
check_sizes(const ks_gguf *mmproj, const ks_gguf *model, ks_vision_family family, ks_error *err)
{
  const char *arch = families[family].arch, *tensor = ks_vision_projector_tensor(family);
  const ks_gguf_tensor *t = ks_gguf_find_tensor(mmproj, tensor);
  uint32_t n_embd = 0, n_deep = 0;
  char key[KEY_BYTES];
  uint64_t n_out;

  if (t == NULL)
    return ks_fail(err, KS_ERR_FORMAT, "the tensor %s is missing", tensor);
  n_out = t->ne[family == KS_VISION_GEMMA3 ? 0 : 1];
  snprintf(key, sizeof key, "%s.embedding_length", arch);
  if (!ks_gguf_get_u32(model, key, &n_embd))
    return ks_fail(err, KS_ERR_FORMAT, "the key %s is missing", key);
  if (n_out != n_embd)
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "the vision file makes embeddings %llu wide, the language model is %u wide: use "
                   "the vision file that belongs to this model",
                   (unsigned long long)n_out, n_embd);
  if (family != KS_VISION_QWEN3VL)
    return KS_OK;
  snprintf(key, sizeof key, "%s.n_deepstack_layers", arch);
  if (!ks_gguf_get_u32(model, key, &n_deep))
    n_deep = 0;
  if (n_deep != count_deepstack(mmproj))
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "the vision file adds to %u layers, the language model expects %u: use the "
                   "vision file that belongs to this model",
                   count_deepstack(mmproj), n_deep);
  return KS_OK;
}

ks_status
ks_vision_check_files(const ks_gguf *mmproj, const ks_gguf *model, ks_error *err)
{
  ks_vision_prep prep;
  const family_info *f;
  ks_gguf_str arch;
  ks_status st = ks_vision_prep_read(mmproj, &prep, err);

  if (st != KS_OK)
    return st;
  f = &families[prep.family];
  if (!ks_gguf_get_str(model, "general.architecture", &arch))
    return ks_fail(err, KS_ERR_FORMAT, "the key general.architecture is missing");
  if (!ks_gguf_str_equal(arch, f->arch))
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "the vision file is made for %s, whose language model is of the architecture "
                   "%s, not %.*s: use the vision file that belongs to this model",
                   f->name, f->arch, (int)(arch.n_bytes < 64 ? arch.n_bytes : 64), arch.data);
  if ((st = check_sizes(mmproj, model, prep.family, err)) != KS_OK)
    return st;
  for (size_t i = 0; i < 2; i++)
    if (f->tokens[i] != NULL && !has_token(model, f->tokens[i]))
      return ks_fail(err, KS_ERR_UNSUPPORTED,
                     "the language model has no token %s, which frames the pictures of %s: use a "
                     "language model that was trained with pictures",
                     f->tokens[i], f->name);
  return KS_OK;
}

ks_status
ks_vision_check_fit(const ks_vision *vision, const ks_model *model, ks_error *err)
{
  return ks_vision_check_files(vision->gguf, ks_model_get_gguf(model), err);
}

/* --- embeddings --- */

void
ks_vision_embeds_clear(ks_vision_embeds *embeds)
{
  ks_mem_free(embeds->data);
  ks_mem_free(embeds->places);
  *embeds = (ks_vision_embeds){0};
}

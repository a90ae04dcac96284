/* model.c - opening, owning and closing a language model.
 * The file stays mapped as long as the model lives: on the CPU the weights are its bytes.
 * Source: docs/formats/gguf.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/graph-internal.h"
#include "engine/model-internal.h"

#include <assert.h>

ks_status
ks_model_open(ks_alloc *a, const char *path, const ks_model_params *params, ks_model **out,
              ks_error *err)
{
  ks_gguf *g = NULL;
  ks_status st = ks_gguf_open(a, path, &g, err);

  return st == KS_OK ? ks_model_open_gguf(a, g, params, out, err) : st;
}

static ks_status
load(ks_model *m, uint32_t n_ctx, ks_error *err)
{
  ks_status st = ks_model_read_shape(m, err);

  if (st != KS_OK || (st = ks_tokenizer_new(m->alloc, m->gguf, &m->tokenizer, err)) != KS_OK)
    return st;
  m->chat_template = ks_chat_template_detect(m->gguf, &m->chat_is_fallback);
  st = ks_model_bind(m, n_ctx != 0 ? n_ctx : m->shape.n_ctx_train, err);
  return st == KS_OK ? ks_gguf_check_alive(m->gguf, err) : st;
}

ks_status
ks_model_open_gguf(ks_alloc *a, ks_gguf *take_gguf, const ks_model_params *params, ks_model **out,
                   ks_error *err)
{
  ks_model *m = ks_mem_new(a, KS_MEM_HOST, 1, sizeof *m);
  ks_status st;

  assert(params->be != NULL);
  if (m == NULL) {
    ks_gguf_close(take_gguf);
    return ks_fail(err, KS_ERR_NOMEM, "no memory for a model");
  }
  m->alloc = a;
  m->be = params->be;
  m->gguf = take_gguf;
  st = load(m, params->n_ctx, err);
  if (st == KS_OK && params->repack_room > 0) {
    ks_model_repack(m, params->repack_room, NULL, NULL);
    st = ks_gguf_check_alive(m->gguf, err);
  }
  if (st != KS_OK) {
    ks_model_close(m);
    return st;
  }
  *out = m;
  return KS_OK;
}

void
ks_model_close(ks_model *model)
{
  if (model == NULL)
    return;
  ks_model_drop_repacked(model);
  ks_model_unbind(model);
  ks_mem_free(model->layers);
  ks_tokenizer_free(model->tokenizer);
  ks_gguf_close(model->gguf);
  ks_mem_free(model);
}

const ks_model_shape *
ks_model_get_shape(const ks_model *model)
{
  return &model->shape;
}

const ks_layer *
ks_model_get_layer(const ks_model *model, uint32_t layer)
{
  assert(layer < model->shape.n_layer);
  return &model->layers[layer];
}

const ks_weight *
ks_model_get_embd(const ks_model *model)
{
  return &model->embd;
}

const ks_weight *
ks_model_get_output(const ks_model *model)
{
  return &model->output;
}

ks_dptr
ks_model_get_output_norm(const ks_model *model)
{
  return model->output_norm;
}

const ks_tokenizer *
ks_model_get_tokenizer(const ks_model *model)
{
  return model->tokenizer;
}

const ks_gguf *
ks_model_get_gguf(const ks_model *model)
{
  return model->gguf;
}

ks_backend *
ks_model_get_backend(const ks_model *model)
{
  return model->be;
}

const ks_chat_template *
ks_model_get_chat_template(const ks_model *model, bool *out_is_fallback)
{
  if (out_is_fallback != NULL)
    *out_is_fallback = model->chat_is_fallback;
  return model->chat_template;
}

const char *
ks_model_get_arch_name(const ks_model *model)
{
  return model->hparams.arch_name;
}

uint64_t
ks_model_get_weight_bytes(const ks_model *model)
{
  return model->weight_bytes;
}

uint64_t
ks_model_get_repacked_bytes(const ks_model *model)
{
  return model->repacked_bytes;
}

uint64_t
ks_model_get_scratch_bytes(const ks_model *model, uint32_t n_tok, uint32_t n_row)
{
  ks_graph_layout layout;

  if (!ks_graph_layout_init(&layout, &model->shape, NULL, n_tok, n_row))
    return UINT64_MAX;
  return (uint64_t)layout.device_bytes + layout.host_bytes;
}

ks_status
ks_model_check_alive(const ks_model *model, ks_error *err)
{
  return ks_gguf_check_alive(model->gguf, err);
}

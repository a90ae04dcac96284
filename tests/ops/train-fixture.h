/* train-fixture.h - a tiny model of any architecture and a trainer of its gate, for tests. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/adamw.h"
#include "engine/train-internal.h"

#include "tests/unit/tiny-model.h"

enum { TR_TOK = 24, TR_GATE = 8, TR_WINDOW = 7 };

typedef struct tr_fixture {
  ks_alloc *alloc;
  ks_backend be;
  unsigned char *bytes;
  ks_model *model;
  ks_trainer *trainer;
  ks_train_params params;
  ks_train_batch batch;
  ks_token ids[TR_TOK];
  float weights[TR_TOK];
} tr_fixture;

static inline void
tr_add_window(ks_gguf_writer *w)
{
  ks_gguf_writer_add_u32(w, "gemma3.attention.sliding_window", TR_WINDOW);
  ks_gguf_writer_add_u32(w, "gemma3.attention.sliding_window_pattern", 2);
  ks_gguf_writer_add_f32(w, "gemma3.final_logit_softcapping", 5.0f);
}

static inline void
tr_add_deep(ks_gguf_writer *w)
{
  ks_gguf_writer_add_u32(w, "qwen3vl.n_deepstack_layers", 1);
}

/* Settings that a tiny model can show: everything counts, nothing is decayed away. */
static inline ks_train_params
tr_params(ks_train_stage_kind kind, uint32_t n_step)
{
  ks_train_params params;

  ks_train_params_init(&params);
  params.max_tok = TR_TOK;
  params.max_visual = TR_TOK;
  params.n_gate = TR_GATE;
  params.bias_init = 1.5F;
  params.n_entry = 4;
  params.n_stage = 1;
  params.stages[0] = (ks_train_stage){
      .kind = kind, .n_step = n_step, .n_warm_up = 1, .rate = 1e-2F, .final_part = 0.1F};
  return params;
}

static inline void
tr_open(tr_fixture *f, const char *arch, bool bias)
{
  tiny_spec spec = {.arch = arch, .bias = bias};
  ks_dev_params dev = {.n_thread = 2};
  ks_error err;
  size_t n_bytes;

  memset(f, 0, sizeof *f);
  spec.add_keys = strcmp(arch, "gemma3") == 0    ? tr_add_window
                  : strcmp(arch, "qwen3vl") == 0 ? tr_add_deep
                                                 : NULL;
  f->alloc = dev.alloc = ks_alloc_new();
  KS_ASSERT_OK(ks_backend_open("cpu", &dev, &f->be, NULL));
  f->bytes = tiny_new_bytes(f->alloc, &spec, &n_bytes);
  if (tiny_open(f->alloc, &f->be, f->bytes, n_bytes, 0, &f->model, &err) != KS_OK)
    KS_FAIL("%s: %s", arch, err.text);
  for (uint32_t i = 0; i < TR_TOK; i++) {
    f->ids[i] = (ks_token)(i * 37 % 250);
    f->weights[i] = 0.25F * (float)(i % 4); /* some count nothing */
  }
  f->batch = (ks_train_batch){.n_tok = TR_TOK, .ids = f->ids, .weights = f->weights};
  f->params = tr_params(KS_TRAIN_METHOD, 100);
}

static inline void
tr_start(tr_fixture *f)
{
  ks_error err = {.text = ""};

  ks_trainer_free(f->trainer);
  f->trainer = NULL;
  if (ks_trainer_new(f->alloc, f->model, NULL, &f->params, &f->trainer, &err) != KS_OK)
    KS_FAIL("%s", err.text);
}

static inline ks_train_stats
tr_step(tr_fixture *f)
{
  ks_train_stats stats;
  ks_error err = {.text = ""};

  if (ks_trainer_step(f->trainer, &f->batch, NULL, NULL, &stats, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  return stats;
}

static inline ks_train_stats
tr_measure(tr_fixture *f, ks_train_stage_kind kind)
{
  ks_train_stats stats;

  KS_ASSERT_OK(ks_trainer_measure(f->trainer, kind, &f->batch, NULL, NULL, &stats, NULL));
  return stats;
}

static inline void
tr_close(tr_fixture *f)
{
  ks_trainer_free(f->trainer);
  ks_model_close(f->model);
  ks_mem_free(f->bytes);
  ks_backend_close(&f->be);
  ks_alloc_free(f->alloc);
}

/* speed-train.c - steps of gate training on a real model, timed one by one.
 * Usage: speed-train MODEL THREADS TOKENS local|method STEPS [KEEP_MIB, default 512]
 * Token ids are pseudo-random: the work does not depend on them.  A line for each step: seconds,
 * loss, KL, cross-entropy or mismatch, capacity, mean retention; then the memory stated and taken.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct side {
  ks_alloc *alloc;
  ks_backend be;
  ks_model *model;
  ks_trainer *trainer;
  ks_error err;
} side;

static ks_token *
make_ids(uint32_t n, uint32_t n_vocab)
{
  ks_token *ids = malloc(n * sizeof *ids);
  uint32_t state = 1;

  for (uint32_t i = 0; ids != NULL && i < n; i++) {
    state = state * 1664525u + 1013904223u;
    ids[i] = (ks_token)((state >> 8) % n_vocab);
  }
  return ids;
}

static ks_status
run(side *s, char **argv)
{
  const uint32_t n_tok = (uint32_t)strtoul(argv[3], NULL, 10);
  const uint32_t n_step = (uint32_t)strtoul(argv[5], NULL, 10);
  const ks_dev_params dev = {.alloc = s->alloc, .n_thread = (uint32_t)strtoul(argv[2], NULL, 10)};
  const ks_model_params model = {.be = &s->be};
  ks_train_params params;
  ks_token *ids;
  ks_status st = ks_backend_open("cpu", &dev, &s->be, &s->err);

  if (st == KS_OK)
    st = ks_model_open(s->alloc, argv[1], &model, &s->model, &s->err);
  if (st != KS_OK)
    return st;
  ks_train_params_init(&params);
  params.max_tok = n_tok;
  params.n_stage = 1;
  params.stages[0] = params.stages[strcmp(argv[4], "local") == 0 ? 0 : 1];
  params.stages[0].n_step = n_step;
  if (argv[6] != NULL)
    params.keep_bytes = strtoull(argv[6], NULL, 10) << 20;
  st = ks_trainer_new(s->alloc, s->model, NULL, &params, &s->trainer, &s->err);
  ids = make_ids(n_tok, ks_model_get_shape(s->model)->n_vocab);
  for (uint32_t i = 0; st == KS_OK && ids != NULL && i < n_step; i++) {
    const ks_train_batch batch = {.n_tok = n_tok, .ids = ids};
    ks_train_stats stats;

    st = ks_trainer_step(s->trainer, &batch, NULL, NULL, &stats, &s->err);
    if (st == KS_OK)
      printf("%.3f s  loss %.5f  kl %.5f  ce %.5f  local %.5f  capacity %.5f  retention %.4f\n",
             stats.seconds, (double)stats.loss, (double)stats.kl, (double)stats.ce,
             (double)stats.local, (double)stats.capacity, (double)stats.mean_retention);
    fflush(stdout);
  }
  if (st == KS_OK)
    printf("stated %.1f MiB, scratch at most %.1f MiB\n",
           (double)ks_trainer_get_bytes(s->trainer) / 1048576.0,
           (double)ks_alloc_get_peak_bytes(s->alloc, KS_MEM_SCRATCH) / 1048576.0);
  free(ids);
  return st;
}

int
main(int argc, char **argv)
{
  side s = {.alloc = NULL};
  ks_status st;

  if (argc < 6) {
    fprintf(stderr, "usage: speed-train MODEL THREADS TOKENS local|method STEPS [KEEP_MIB]\n");
    return 2;
  }
  s.alloc = ks_alloc_new();
  st = run(&s, argv);
  if (st != KS_OK)
    fprintf(stderr, "%s\n", s.err.text);
  ks_trainer_free(s.trainer);
  ks_model_close(s.model);
  ks_backend_close(&s.be);
  ks_alloc_free(s.alloc);
  return st != KS_OK;
}

/* speed-train.c - steps of gate training on a real model, timed one by one.
 * Usage: speed-train MODEL THREADS TOKENS local|method [KEEP_MIB, default 512]
 * One step warms everything and its losses go to standard error; then a line with a number of steps
 * is answered with their seconds, until the input ends (compare-train.py).  At the end the memory
 * stated and taken.  Token ids are pseudo-random: the work does not depend on them. */
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
open_trainer(side *s, char **argv)
{
  const ks_dev_params dev = {.alloc = s->alloc, .n_thread = (uint32_t)strtoul(argv[2], NULL, 10)};
  const ks_model_params model = {.be = &s->be};
  ks_train_params params;
  ks_status st = ks_backend_open("cpu", &dev, &s->be, &s->err);

  if (st == KS_OK)
    st = ks_model_open(s->alloc, argv[1], &model, &s->model, &s->err);
  if (st != KS_OK)
    return st;
  ks_train_params_init(&params);
  params.max_tok = (uint32_t)strtoul(argv[3], NULL, 10);
  params.n_stage = 1;
  params.stages[0] = params.stages[strcmp(argv[4], "local") == 0 ? 0 : 1];
  params.stages[0].n_step = 100000;
  if (argv[5] != NULL)
    params.keep_bytes = strtoull(argv[5], NULL, 10) << 20;
  return ks_trainer_new(s->alloc, s->model, NULL, &params, &s->trainer, &s->err);
}

static ks_status
run(side *s, const ks_train_batch *batch)
{
  ks_train_stats stats;
  ks_status st = ks_trainer_step(s->trainer, batch, NULL, NULL, &stats, &s->err);
  char line[64];

  if (st != KS_OK)
    return st;
  fprintf(stderr, "loss %.5f  kl %.5f  ce %.5f  local %.5f  capacity %.5f  retention %.4f\n",
          (double)stats.loss, (double)stats.kl, (double)stats.ce, (double)stats.local,
          (double)stats.capacity, (double)stats.mean_retention);
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    for (unsigned long i = strtoul(line, NULL, 10); i > 0; i--) {
      st = ks_trainer_step(s->trainer, batch, NULL, NULL, &stats, &s->err);
      if (st != KS_OK)
        return st;
      printf("%.4f%c", stats.seconds, i > 1 ? ' ' : '\n');
    }
    fflush(stdout);
  }
  fprintf(stderr, "stated %.1f MiB, scratch at most %.1f MiB\n",
          (double)ks_trainer_get_bytes(s->trainer) / 1048576.0,
          (double)ks_alloc_get_peak_bytes(s->alloc, KS_MEM_SCRATCH) / 1048576.0);
  return KS_OK;
}

int
main(int argc, char **argv)
{
  side s = {.alloc = NULL};
  ks_token *ids = NULL;
  ks_status st;

  if (argc < 5) {
    fprintf(stderr, "usage: speed-train MODEL THREADS TOKENS local|method [KEEP_MIB]\n");
    return 2;
  }
  s.alloc = ks_alloc_new();
  st = open_trainer(&s, argv);
  if (st == KS_OK) {
    const uint32_t n_tok = (uint32_t)strtoul(argv[3], NULL, 10);

    ids = make_ids(n_tok, ks_model_get_shape(s.model)->n_vocab);
    st = ids != NULL ? run(&s, &(ks_train_batch){.n_tok = n_tok, .ids = ids}) : KS_ERR_NOMEM;
  }
  if (st != KS_OK)
    fprintf(stderr, "%s\n", s.err.text);
  free(ids);
  ks_trainer_free(s.trainer);
  ks_model_close(s.model);
  ks_backend_close(&s.be);
  ks_alloc_free(s.alloc);
  return st != KS_OK;
}

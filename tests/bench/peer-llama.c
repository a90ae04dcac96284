/* peer-llama.c - the peer's side of the speed measurement: llama.cpp behind speed-server.h.
 * Usage: peer-llama MODEL THREADS CONTEXT FLASH(0|1) KV(f16|f32|q8_0) REPACK(0|1)
 * REPACK: weights in the types that its kernels prefer, where it has one for the file's type.
 * Built by build-peer.sh, never part of the project's own build or tests. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/speed-server.h"

#include <llama.h>

typedef struct peer {
  struct llama_context *ctx;
  int32_t n_vocab;
} peer;

static void
quiet(enum ggml_log_level level, const char *text, void *user)
{
  (void)user;
  if (level == GGML_LOG_LEVEL_ERROR)
    fputs(text, stderr);
}

static const char *
peer_clear(void *user)
{
  llama_memory_clear(llama_get_memory(((peer *)user)->ctx), true);
  return NULL;
}

/* Batches of 512, as its own tools use. */
static const char *
peer_eval(void *user, const int32_t *ids, int32_t n)
{
  peer *p = user;

  for (int32_t i = 0; i < n; i += 512) {
    int32_t m = n - i < 512 ? n - i : 512;

    if (llama_decode(p->ctx, llama_batch_get_one((llama_token *)(ids + i), m)) != 0)
      return "llama_decode failed";
  }
  llama_synchronize(p->ctx);
  return NULL;
}

static int32_t
peer_choose(void *user)
{
  peer *p = user;

  return speed_argmax(llama_get_logits_ith(p->ctx, -1), p->n_vocab);
}

static const char *
peer_decode(void *user, int32_t id, int32_t *out_next)
{
  peer *p = user;
  llama_token token = id;

  if (llama_decode(p->ctx, llama_batch_get_one(&token, 1)) != 0)
    return "llama_decode failed";
  *out_next = peer_choose(p);
  return NULL;
}

static const char *
peer_rewind(void *user, int32_t n)
{
  llama_memory_t memory = llama_get_memory(((peer *)user)->ctx);

  return llama_memory_seq_rm(memory, 0, n, -1) ? NULL : "its cache cannot go back";
}

static const char *
peer_threads(void *user, int32_t n)
{
  llama_set_n_threads(((peer *)user)->ctx, n, n);
  return NULL;
}

static struct llama_context_params
context_params(char **argv)
{
  struct llama_context_params cp = llama_context_default_params();

  cp.n_ctx = (uint32_t)strtoul(argv[3], NULL, 10);
  cp.n_batch = 512;
  cp.n_ubatch = 512;
  cp.n_threads = cp.n_threads_batch = (int32_t)strtol(argv[2], NULL, 10);
  cp.flash_attn_type =
      argv[4][0] == '1' ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  cp.type_k = cp.type_v = strcmp(argv[5], "f32") == 0    ? GGML_TYPE_F32
                          : strcmp(argv[5], "q8_0") == 0 ? GGML_TYPE_Q8_0
                                                         : GGML_TYPE_F16;
  cp.swa_full = false; /* as its own tools do: layers with a window keep no more than it */
  cp.no_perf = true;
  return cp;
}

int
main(int argc, char **argv)
{
  struct llama_model_params mp = llama_model_default_params();
  struct llama_model *model;
  peer p = {NULL, 0};
  speed_ops ops = {.user = &p,
                   .clear = peer_clear,
                   .eval = peer_eval,
                   .decode = peer_decode,
                   .choose = peer_choose,
                   .rewind = peer_rewind,
                   .threads = peer_threads};

  if (argc != 7) {
    fprintf(stderr, "usage: peer-llama MODEL THREADS CONTEXT FLASH KV REPACK\n");
    return 2;
  }
  llama_log_set(quiet, NULL);
  llama_backend_init();
  mp.use_extra_bufts = argv[6][0] == '1';
  model = llama_model_load_from_file(argv[1], mp);
  if (model == NULL)
    return 1;
  p.ctx = llama_init_from_model(model, context_params(argv));
  if (p.ctx == NULL)
    return 1;
  ops.n_vocab = p.n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
  return speed_serve(&ops);
}

/* guard-steps.c - steps of the engine marked for callgrind, which counts their instructions.
 * Usage: guard-steps shape|MODEL.gguf exact|fast       (under valgrind, see guard.py)
 * One thread, AVX2, KV f16, weights repacked.  "shape" is a model made here with the widths of the
 * default model, its block types, one layer and a small vocabulary (valgrind takes a helper call
 * for each product and sum in one).  Marked are: the second chunk of 32 tokens of a prompt, a step
 * of decode behind it, and nine steps of decode under a budget of 64 entries a stream, an eviction
 * included; for "shape" also, with a gate made here and 512 entries a stream, a step of decode and
 * the eviction that follows every 32nd, and a token picked from 49,152 logits.
 * Exit: 0 done, 77 this machine or build cannot (no AVX2, no valgrind header), 1 an error. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/budget.h"
#include "engine/gguf-write.h"
#include "engine/safetensors.h"
#include "engine/sampler.h"
#include "engine/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef KS_HAVE_CALLGRIND
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#endif

enum {
  SHAPE_EMBD = 576,
  SHAPE_FF = 1536,
  SHAPE_KV = 192,
  SHAPE_LAYER = 1,
  SHAPE_VOCAB = 4096,
  CHUNK = 32,
  CONTEXT = 96, /* before decode with evictions */
  ENTRIES = 64,
  BUFFER = 8,
  N_DECODE = BUFFER + 1,
  GATE_WIDTH = 64,
  SHARE_ENTRIES = 512,
  SHARE_BUFFER = 32, /* that of sessions */
  PICK_VOCAB = 49152,
  HEAD_K = 40 /* of a draw with the default settings */
};

typedef struct guard {
  ks_alloc *alloc;
  ks_backend be;
  ks_gguf_writer *writer;
  unsigned char *bytes, *blocks; /* of the made model */
  ks_model *model;
  ks_gate *gate;
  ks_kv_layout layout;
  ks_kv_pool *pool;
  ks_timeline *tl;
  ks_error err;
} guard;

/* --- the made model --- */

/* Blocks of Q4_1 and Q8_0 alike: pseudo-random bytes with small scales in front. */
static void
fill_blocks(ks_dtype dtype, unsigned char *dst, size_t n_bytes)
{
  const ks_dtype_info *info = ks_dtype_get_info((uint32_t)dtype);
  const uint16_t d = ks_f16_from_f32(dtype == KS_DTYPE_Q4_1 ? 0.01f : 0.001f);
  const uint16_t m = ks_f16_from_f32(-0.075f);
  uint32_t state = 12345;

  for (size_t i = 0; i < n_bytes; i++) {
    state = state * 1664525u + 1013904223u;
    dst[i] = (unsigned char)(state >> 24);
  }
  for (size_t i = 0; i < n_bytes; i += info->block_bytes) {
    memcpy(dst + i, &d, sizeof d);
    if (dtype == KS_DTYPE_Q4_1)
      memcpy(dst + i + 2, &m, sizeof m);
  }
}

static void
add_matrix(guard *g, const char *name, ks_dtype dtype, uint64_t n_in, uint64_t n_out)
{
  const uint64_t ne[2] = {n_in, n_out};
  size_t row_bytes;

  if (!ks_dtype_row_bytes(dtype, n_in, &row_bytes))
    return; /* the model then lacks a tensor and says so */
  fill_blocks(dtype, g->blocks, row_bytes * n_out);
  ks_gguf_writer_add_tensor(g->writer, name, dtype, 2, ne, g->blocks);
  g->blocks += row_bytes * n_out;
}

static void
add_layer(guard *g, uint32_t layer, const float *ones)
{
  static const struct {
    const char *name;
    uint32_t n_in, n_out;
  } parts[] = {{"attn_q", SHAPE_EMBD, SHAPE_EMBD}, {"attn_k", SHAPE_EMBD, SHAPE_KV},
               {"attn_v", SHAPE_EMBD, SHAPE_KV},   {"attn_output", SHAPE_EMBD, SHAPE_EMBD},
               {"ffn_gate", SHAPE_EMBD, SHAPE_FF}, {"ffn_up", SHAPE_EMBD, SHAPE_FF},
               {"ffn_down", SHAPE_FF, SHAPE_EMBD}};
  static const char *const norms[] = {"attn_norm", "ffn_norm"};
  const uint64_t n_embd = SHAPE_EMBD;
  char name[64];

  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    snprintf(name, sizeof name, "blk.%u.%s.weight", layer, parts[i].name);
    add_matrix(g, name, KS_DTYPE_Q4_1, parts[i].n_in, parts[i].n_out);
  }
  for (size_t i = 0; i < sizeof norms / sizeof norms[0]; i++) {
    snprintf(name, sizeof name, "blk.%u.%s.weight", layer, norms[i]);
    ks_gguf_writer_add_tensor(g->writer, name, KS_DTYPE_F32, 1, &n_embd, ones);
  }
}

/* Tokens named by their number: enough for a model that is given ids. */
static ks_status
add_vocabulary(guard *g)
{
  char(*texts)[12] = calloc(SHAPE_VOCAB, sizeof *texts);
  const char **list = calloc(SHAPE_VOCAB, sizeof *list);
  int32_t *types = calloc(SHAPE_VOCAB, sizeof *types);
  bool ok = texts != NULL && list != NULL && types != NULL;

  for (int i = 0; ok && i < SHAPE_VOCAB; i++) {
    snprintf(texts[i], sizeof *texts, "t%d", i);
    list[i] = texts[i];
    types[i] = 1;
  }
  if (ok) {
    ks_gguf_writer_add_str(g->writer, "tokenizer.ggml.model", "gpt2");
    ks_gguf_writer_add_str(g->writer, "tokenizer.ggml.pre", "smollm");
    ks_gguf_writer_add_str_array(g->writer, "tokenizer.ggml.tokens", list, SHAPE_VOCAB);
    ks_gguf_writer_add_array(g->writer, "tokenizer.ggml.token_type", KS_GGUF_I32, types,
                             SHAPE_VOCAB);
    ks_gguf_writer_add_str_array(g->writer, "tokenizer.ggml.merges", NULL, 0);
  }
  free(types);
  free(list);
  free(texts);
  return ok ? KS_OK : ks_fail(&g->err, KS_ERR_NOMEM, "no memory for a vocabulary");
}

static ks_status
make_shape(guard *g, ks_gguf **out)
{
  const uint64_t n_embd = SHAPE_EMBD;
  unsigned char *blocks = malloc((size_t)64 << 20);
  float *ones = malloc(SHAPE_EMBD * sizeof *ones);
  size_t n_bytes = 0;
  ks_status st;

  g->writer = ks_gguf_writer_new(g->alloc, 0);
  if (blocks == NULL || ones == NULL || g->writer == NULL) {
    free(ones);
    free(blocks);
    return ks_fail(&g->err, KS_ERR_NOMEM, "no memory for a model");
  }
  g->blocks = blocks;
  for (int i = 0; i < SHAPE_EMBD; i++)
    ones[i] = 1;
  ks_gguf_writer_add_str(g->writer, "general.architecture", "llama");
  ks_gguf_writer_add_u32(g->writer, "llama.context_length", 8192);
  ks_gguf_writer_add_u32(g->writer, "llama.embedding_length", SHAPE_EMBD);
  ks_gguf_writer_add_u32(g->writer, "llama.block_count", SHAPE_LAYER);
  ks_gguf_writer_add_u32(g->writer, "llama.feed_forward_length", SHAPE_FF);
  ks_gguf_writer_add_u32(g->writer, "llama.attention.head_count", SHAPE_EMBD / 64);
  ks_gguf_writer_add_u32(g->writer, "llama.attention.head_count_kv", SHAPE_KV / 64);
  ks_gguf_writer_add_f32(g->writer, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
  st = add_vocabulary(g);
  add_matrix(g, "token_embd.weight", KS_DTYPE_Q8_0, SHAPE_EMBD, SHAPE_VOCAB);
  for (uint32_t i = 0; i < SHAPE_LAYER; i++)
    add_layer(g, i, ones);
  ks_gguf_writer_add_tensor(g->writer, "output_norm.weight", KS_DTYPE_F32, 1, &n_embd, ones);
  if (st == KS_OK)
    st = ks_gguf_writer_get_bytes(g->writer, &g->bytes, &n_bytes, &g->err);
  free(ones);
  free(blocks);
  return st == KS_OK ? ks_gguf_open_bytes(g->alloc, g->bytes, n_bytes, out, &g->err) : st;
}

/* A gate of pseudo-random weights, through a file of its own folder. */
static ks_status
open_gate(guard *g)
{
  static const struct {
    const char *name;
    uint64_t shape[2];
  } parts[] = {{"linear1.weight", {GATE_WIDTH, SHAPE_EMBD}},    {"linear1.bias", {GATE_WIDTH}},
               {"linear2.weight", {GATE_WIDTH, GATE_WIDTH}},    {"linear2.bias", {GATE_WIDTH}},
               {"linear3.weight", {SHAPE_KV / 64, GATE_WIDTH}}, {"bias", {SHAPE_KV / 64}}};
  static float values[GATE_WIDTH * SHAPE_EMBD];
  ks_st_tensor tensors[sizeof parts / sizeof parts[0]];
  char names[sizeof parts / sizeof parts[0]][80], folder[] = "guard-gate-XXXXXX", path[64];
  ks_status st;

  for (uint32_t i = 0; i < GATE_WIDTH * SHAPE_EMBD; i++)
    values[i] = 0.002f * (float)(i * 31 % 97) - 0.1f;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    const uint64_t n_row = parts[i].shape[0], n_col = parts[i].shape[1];

    snprintf(names[i], sizeof names[i], "model.layers.0.self_attn.retention_gate.%s",
             parts[i].name);
    tensors[i] = (ks_st_tensor){.name = names[i],
                                .dtype = KS_DTYPE_F32,
                                .n_dims = n_col > 0 ? 2 : 1,
                                .shape = {n_row, n_col},
                                .data = (const unsigned char *)values,
                                .n_bytes = n_row * (n_col > 0 ? n_col : 1) * sizeof *values};
  }
  if (mkdtemp(folder) == NULL)
    return ks_fail(&g->err, KS_ERR_IO, "no folder for a gate can be made here");
  snprintf(path, sizeof path, "%s/g.safetensors", folder);
  st = ks_safetensors_write(g->alloc, path, tensors, sizeof parts / sizeof parts[0], NULL, &g->err);
  if (st == KS_OK)
    st = ks_gate_open(g->alloc, path, g->model, &g->gate, &g->err);
  unlink(path);
  rmdir(folder);
  return st;
}

/* --- steps --- */

static ks_status
open_model(guard *g, const char *what, ks_compute_mode mode)
{
  const ks_dev_params dev = {.alloc = g->alloc, .n_thread = 1, .mode = mode, .isa = "avx2"};
  ks_model_params params = {.be = &g->be, .repack_room = UINT64_MAX};
  ks_gguf *gguf = NULL;
  ks_status st = ks_backend_open("cpu", &dev, &g->be, &g->err);

  if (st == KS_OK)
    st = strcmp(what, "shape") == 0 ? make_shape(g, &gguf)
                                    : ks_gguf_open(g->alloc, what, &gguf, &g->err);
  return st == KS_OK ? ks_model_open_gguf(g->alloc, gguf, &params, &g->model, &g->err) : st;
}

/* A timeline over at most m entries a stream, buffer more between two evictions; 0 = everything is
 * kept. */
static ks_status
open_timeline(guard *g, uint64_t m, uint32_t buffer)
{
  const ks_model_shape *shape = ks_model_get_shape(g->model);
  const ks_budget_request request = {.entries = m != 0 ? m : 2 * CONTEXT};
  ks_timeline_params params;
  ks_budget_plan plan;

  ks_timeline_free(g->tl);
  g->tl = NULL;
  ks_kv_pool_free(g->pool);
  g->pool = NULL;
  g->layout = (ks_kv_layout){.n_layer = shape->n_layer,
                             .n_kv_head = shape->n_kv_head,
                             .k_dim = shape->k_dim,
                             .v_dim = shape->v_dim,
                             .page_entries = 16,
                             .kv_dtype = KS_DTYPE_F16};
  if (ks_kv_layout_init(&g->layout, &g->err) != KS_OK ||
      ks_budget_make_plan(g->model, NULL, &g->layout, &request, CHUNK, buffer, &plan, &g->err) !=
          KS_OK ||
      ks_kv_pool_new(g->alloc, &g->be, &g->layout, plan.kv_bytes, plan.kv_bytes, &g->pool,
                     &g->err) != KS_OK)
    return g->err.status;
  params = ks_timeline_default_params(g->model, g->gate, g->pool);
  params.chunk = CHUNK;
  params.buffer = plan.buffer;
  params.n_keep = m != 0 ? plan.n_keep : 0;
  if (m == 0)
    params.evict = ks_evict_default_params(KS_POLICY_FULL);
  return ks_timeline_new(g->alloc, &params, &g->tl, &g->err);
}

/* n tokens in one call (a prompt) or one by one (decode, for a draw as sessions make it). */
static ks_status
eval(guard *g, uint32_t n, bool one_by_one)
{
  const uint32_t n_vocab = ks_model_get_shape(g->model)->n_vocab;
  ks_token ids[SHARE_ENTRIES];
  int32_t best_ids[HEAD_K];
  float best[HEAD_K];
  const ks_head_request head = {.k = HEAD_K, .out_ids = best_ids, .out_logits = best};
  const ks_timeline_hooks hooks = {.head = &head};
  ks_status st = KS_OK;

  for (uint32_t i = 0; i < n; i++)
    ids[i] = (ks_token)((i * 7919u + 13) % n_vocab);
  if (!one_by_one)
    return ks_timeline_eval(g->tl, ids, n, NULL, &g->err);
  for (uint32_t i = 0; i < n && st == KS_OK; i++)
    st = ks_timeline_eval(g->tl, &ids[i], 1, &hooks, &g->err);
  return st;
}

static ks_status
eval_counted(guard *g, const char *name, uint32_t n, bool one_by_one)
{
  ks_status st;

  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
  st = eval(g, n, one_by_one);
  CALLGRIND_DUMP_STATS_AT(name);
  CALLGRIND_STOP_INSTRUMENTATION;
  return st;
}

/* The tokens between two evictions, the last of them "full", and an eviction, "select"; counted the
 * second time. */
static ks_status
count_eviction(guard *g)
{
  ks_status st = open_gate(g);

  if (st == KS_OK)
    st = open_timeline(g, SHARE_ENTRIES, SHARE_BUFFER);
  if (st == KS_OK)
    st = eval(g, SHARE_ENTRIES, false);
  for (int round = 0; round < 2 && st == KS_OK; round++) {
    if ((st = eval(g, SHARE_BUFFER - 2, true)) != KS_OK ||
        (st = round == 0 ? eval(g, 1, true) : eval_counted(g, "full", 1, true)) != KS_OK)
      break;
    if (round == 1)
      CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    st = ks_timeline_evict(g->tl, NULL, &g->err);
  }
  CALLGRIND_DUMP_STATS_AT("select");
  CALLGRIND_STOP_INSTRUMENTATION;
  return st;
}

/* A draw from the best 40 of a large vocabulary. */
static ks_status
count_pick(guard *g)
{
  ks_sampler_params params = ks_sampler_default_params();
  float *logits = malloc(PICK_VOCAB * sizeof *logits);
  ks_sampler *sampler = NULL;
  uint32_t state = 12345;
  ks_status st;

  if (logits == NULL)
    return ks_fail(&g->err, KS_ERR_NOMEM, "no memory for logits");
  for (uint32_t i = 0; i < PICK_VOCAB; i++) {
    state = state * 1664525u + 1013904223u;
    logits[i] = (float)(state >> 8) * (20.0f / (1 << 24)) - 10.0f;
  }
  params.temperature = 0.8f;
  params.top_k = 40;
  params.top_p = 0.95f;
  st = ks_sampler_new(g->alloc, &params, PICK_VOCAB, &sampler, &g->err);
  if (st == KS_OK) {
    (void)ks_sampler_pick(sampler, logits);
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    (void)ks_sampler_pick(sampler, logits);
    CALLGRIND_DUMP_STATS_AT("pick");
    CALLGRIND_STOP_INSTRUMENTATION;
  }
  ks_sampler_free(sampler);
  free(logits);
  return st;
}

/* Each step runs uncounted before, so that no first use of memory is in the counts. */
static ks_status
count_steps(guard *g)
{
  ks_status st = open_timeline(g, 0, BUFFER);

  if (st != KS_OK || (st = eval(g, CHUNK, false)) != KS_OK ||
      (st = eval_counted(g, "prefill", CHUNK, false)) != KS_OK ||
      (st = eval(g, 1, true)) != KS_OK || (st = eval_counted(g, "decode", 1, true)) != KS_OK ||
      (st = open_timeline(g, ENTRIES, BUFFER)) != KS_OK ||
      (st = eval(g, CONTEXT, false)) != KS_OK || (st = eval(g, N_DECODE, true)) != KS_OK)
    return st;
  return eval_counted(g, "evict", N_DECODE, true);
}

static void
guard_done(guard *g)
{
  ks_timeline_free(g->tl);
  ks_kv_pool_free(g->pool);
  ks_gate_free(g->gate);
  ks_model_close(g->model);
  ks_mem_free(g->bytes);
  ks_gguf_writer_free(g->writer);
  ks_backend_close(&g->be);
  ks_alloc_free(g->alloc);
}

int
main(int argc, char **argv)
{
  guard g = {.alloc = ks_alloc_new()};
  int rc = 1;

  if (argc != 3 || g.alloc == NULL) {
    fprintf(stderr, "usage: guard-steps shape|MODEL.gguf exact|fast\n");
  } else {
    ks_compute_mode mode = strcmp(argv[2], "fast") == 0 ? KS_COMPUTE_FAST : KS_COMPUTE_EXACT;
    ks_status st = open_model(&g, argv[1], mode);

    if (st == KS_OK)
      st = count_steps(&g);
    if (st == KS_OK && strcmp(argv[1], "shape") == 0 && (st = count_eviction(&g)) == KS_OK)
      st = count_pick(&g);
    if (st != KS_OK)
      fprintf(stderr, "guard-steps: %s\n", g.err.text);
    rc = st == KS_OK ? 0 : st == KS_ERR_UNSUPPORTED ? 77 : 1;
  }
#ifndef KS_HAVE_CALLGRIND
  rc = rc == 0 ? 77 : rc;
#endif
  guard_done(&g);
  return rc;
}

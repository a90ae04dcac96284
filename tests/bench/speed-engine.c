/* speed-engine.c - the engine's side of the speed measurement behind speed-server.h.
 * Usage: speed-engine MODEL THREADS KV(f16|f32|q8_0) ENTRIES(0 = keep everything) GATE|- CONTEXT
 * MODE ENTRIES is M, the average per stream; then the gate file (or, with "-", the policy for
 * models without one) decides what stays.  CONTEXT bounds the full cache in tokens.  MODE: exact |
 * fast. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/budget.h"
#include "engine/timeline.h"
#include "tests/bench/speed-server.h"
#include "tests/ks-clock.h"

/* Tokens decoded one by one, and the processor time that they took. */
typedef struct cost {
  uint64_t n_tok;
  double seconds;
} cost;

typedef struct side {
  ks_alloc *alloc;
  ks_backend be;
  ks_model *model;
  ks_gate *gate;
  ks_kv_pool *pool;
  ks_timeline *tl;
  ks_error err;
  int32_t n_vocab;
  double load_ms;       /* of opening the model, repacking included */
  cost plain, evicting; /* without and with an eviction behind them */
} side;

static const char *
side_clear(void *user)
{
  ks_timeline_reset(((side *)user)->tl);
  return NULL;
}

static const char *
side_eval(void *user, const int32_t *ids, int32_t n)
{
  side *s = user;

  return ks_timeline_eval(s->tl, ids, (uint32_t)n, NULL, &s->err) == KS_OK ? NULL : s->err.text;
}

static int32_t
side_choose(void *user)
{
  side *s = user;

  return speed_argmax(ks_timeline_get_logits(s->tl), s->n_vocab);
}

static uint64_t
side_count_evictions(const side *s)
{
  ks_kv_stats stats;

  ks_timeline_get_stats(s->tl, &stats);
  return stats.n_eviction_runs;
}

static const char *
side_decode(void *user, int32_t id, int32_t *out_next)
{
  side *s = user;
  const uint64_t n_run = side_count_evictions(s);
  const double start = ks_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  float logit;
  /* What a conversation at temperature 0 asks for (sampler.h), the same choice as side_choose. */
  ks_head_request head = {.k = 1, .out_ids = out_next, .out_logits = &logit};
  const ks_timeline_hooks hooks = {.head = &head};
  cost *c;

  if (ks_timeline_eval(s->tl, &id, 1, &hooks, &s->err) != KS_OK)
    return s->err.text;
  c = side_count_evictions(s) > n_run ? &s->evicting : &s->plain;
  c->n_tok++;
  c->seconds += ks_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
  return NULL;
}

static const char *
side_tokens(void *user, char *text)
{
  side *s = user;
  ks_token_list list;

  ks_token_list_init(&list, s->alloc);
  text += strspn(text, " ");
  if (ks_tokenizer_encode(ks_model_get_tokenizer(s->model), text, strlen(text),
                          KS_ENCODE_ADD_SPECIAL, &list, &s->err) != KS_OK)
    return s->err.text;
  printf("{\"ids\": [");
  for (size_t i = 0; i < list.n; i++)
    printf("%s%d", i > 0 ? ", " : "", list.ids[i]);
  printf("]}\n");
  ks_token_list_done(&list);
  return NULL;
}

/* Multiplications and bytes of the matrices that one token passes through, from the file's own
 * blocks. */
static void
count_weight(const ks_weight *w, double *n_mul, double *n_bytes)
{
  if (w->data == 0)
    return;
  *n_mul += (double)w->n_in * w->n_out;
  *n_bytes += (double)w->row_bytes * w->n_out;
}

static const char *
side_info(void *user)
{
  side *s = user;
  const ks_model_shape *shape = ks_model_get_shape(s->model);
  double layer_mul = 0, layer_bytes = 0, head_mul = 0, head_bytes = 0;

  for (uint32_t i = 0; i < shape->n_layer; i++) {
    const ks_layer *l = ks_model_get_layer(s->model, i);
    const ks_weight *all[] = {&l->wq, &l->wk, &l->wv, &l->wo, &l->w_gate, &l->w_up, &l->w_down};

    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
      count_weight(all[k], &layer_mul, &layer_bytes);
  }
  count_weight(ks_model_get_output(s->model), &head_mul, &head_bytes);
  printf("{\"layer_mul\": %.0f, \"layer_bytes\": %.0f, \"head_mul\": %.0f, \"head_bytes\": %.0f, "
         "\"weight_bytes\": %llu, \"repacked_bytes\": %llu, \"load_ms\": %.1f, \"plain_tokens\": "
         "%llu, "
         "\"plain_cpu_s\": %.6f, \"evicting_tokens\": %llu, \"evicting_cpu_s\": %.6f}\n",
         layer_mul, layer_bytes, head_mul, head_bytes,
         (unsigned long long)ks_model_get_weight_bytes(s->model),
         (unsigned long long)ks_model_get_repacked_bytes(s->model), s->load_ms,
         (unsigned long long)s->plain.n_tok, s->plain.seconds,
         (unsigned long long)s->evicting.n_tok, s->evicting.seconds);
  return NULL;
}

/* Pool and timeline for m entries a stream, or for the whole context. */
static ks_status
side_open_timeline(side *s, const char *kv_name, uint64_t m, uint64_t n_ctx)
{
  const ks_model_shape *shape = ks_model_get_shape(s->model);
  ks_kv_layout layout = {.n_layer = shape->n_layer,
                         .n_kv_head = shape->n_kv_head,
                         .k_dim = shape->k_dim,
                         .v_dim = shape->v_dim,
                         .page_entries = 16};
  ks_budget_request request = {.entries = m != 0 ? m : n_ctx};
  ks_budget_plan plan;
  ks_timeline_params params;

  if (!ks_dtype_parse(kv_name, &layout.kv_dtype))
    return ks_fail(&s->err, KS_ERR_ARG, "KV type %s is unknown", kv_name);
  if (ks_kv_layout_init(&layout, &s->err) != KS_OK ||
      ks_budget_make_plan(s->model, NULL, &layout, &request, 512, 32, &plan, &s->err) != KS_OK ||
      ks_kv_pool_new(s->alloc, &s->be, &layout, plan.kv_bytes, plan.kv_bytes, &s->pool, &s->err) !=
          KS_OK)
    return s->err.status;
  params = ks_timeline_default_params(s->model, s->gate, s->pool);
  params.chunk = plan.chunk;
  params.buffer = plan.buffer;
  if (m == 0)
    params.evict = ks_evict_default_params(KS_POLICY_FULL);
  else
    params.n_keep = plan.n_keep;
  return ks_timeline_new(s->alloc, &params, &s->tl, &s->err);
}

static ks_status
side_open(side *s, char **argv)
{
  ks_dev_params dev = {.n_thread = (uint32_t)strtoul(argv[2], NULL, 10),
                       .mode = strcmp(argv[7], "fast") == 0 ? KS_COMPUTE_FAST : KS_COMPUTE_EXACT};
  ks_model_params mp = {.be = &s->be, .repack_room = UINT64_MAX};

  s->alloc = ks_alloc_new();
  if (s->alloc == NULL)
    return ks_fail(&s->err, KS_ERR_NOMEM, "no memory");
  dev.alloc = s->alloc;
  if (ks_backend_open("cpu", &dev, &s->be, &s->err) != KS_OK)
    return s->err.status;
  s->load_ms = -speed_now_ms();
  if (ks_model_open(s->alloc, argv[1], &mp, &s->model, &s->err) != KS_OK)
    return s->err.status;
  s->load_ms += speed_now_ms();
  if (strcmp(argv[5], "-") != 0 &&
      ks_gate_open(s->alloc, argv[5], s->model, &s->gate, &s->err) != KS_OK)
    return s->err.status;
  s->n_vocab = (int32_t)ks_model_get_shape(s->model)->n_vocab;
  return side_open_timeline(s, argv[3], strtoull(argv[4], NULL, 10), strtoull(argv[6], NULL, 10));
}

static void
side_close(side *s)
{
  ks_timeline_free(s->tl);
  ks_kv_pool_free(s->pool);
  ks_gate_free(s->gate);
  ks_model_close(s->model);
  ks_backend_close(&s->be);
  ks_alloc_free(s->alloc);
}

int
main(int argc, char **argv)
{
  side s = {0};
  speed_ops ops = {.user = &s,
                   .clear = side_clear,
                   .eval = side_eval,
                   .decode = side_decode,
                   .choose = side_choose,
                   .tokens = side_tokens,
                   .info = side_info};
  int rc = 1;

  if (argc != 8) {
    fprintf(stderr, "usage: speed-engine MODEL THREADS KV ENTRIES GATE|- CONTEXT exact|fast\n");
    return 2;
  }
  if (side_open(&s, argv) == KS_OK) {
    ops.n_vocab = s.n_vocab;
    rc = speed_serve(&ops);
  } else {
    fprintf(stderr, "%s\n", s.err.text);
  }
  side_close(&s);
  return rc;
}

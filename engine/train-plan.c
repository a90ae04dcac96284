/* train-plan.c - where everything of a trainer lies: the gate's numbers, device and host buffers.
 * The same walk counts and places, so that what is stated is what is taken.
 * Threads: pure functions.  Source: docs/method.md, section 12. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/train-internal.h"

#define ALIGN ((size_t)64)
#define BLOCK_BYTES ((size_t)64 << 20) /* of logits, teacher's and student's */
#define BLOCK_LEAST ((size_t)16)
#define BLOCK_MOST ((size_t)256)
#define TENSOR_ALIGN ((size_t)16) /* floats */

/* --- the gate --- */

static uint32_t
part_rows(const ks_train_gate *g, ks_train_part part)
{
  switch (part) {
  case KS_TRAIN_W1:
  case KS_TRAIN_B1:
    return g->n_gate;
  case KS_TRAIN_W2:
  case KS_TRAIN_B2:
    return g->is_local ? 0 : g->n_gate;
  default:
    return g->n_kv_head;
  }
}

static uint32_t
part_cols(const ks_train_gate *g, ks_train_part part)
{
  switch (part) {
  case KS_TRAIN_W1:
    return g->n_embd;
  case KS_TRAIN_W2:
  case KS_TRAIN_W3:
    return g->n_gate;
  default:
    return 0;
  }
}

static size_t
part_size(const ks_train_gate *g, ks_train_part part)
{
  const size_t n_col = part_cols(g, part);
  const size_t n = part_rows(g, part) * (n_col > 0 ? n_col : 1); /* widths are at most 2^16 */

  return (n + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
}

/* Numbers of parts begin .. end - 1 of a layer. */
static size_t
parts_size(const ks_train_gate *g, ks_train_part begin, ks_train_part end)
{
  size_t n = 0;

  for (int part = (int)begin; part < (int)end; part++)
    n += part_size(g, (ks_train_part)part);
  return n;
}

ks_train_tensor
ks_train_find(const ks_train_gate *g, uint32_t layer, ks_train_part part)
{
  const ks_train_part n_own = g->is_tied ? KS_TRAIN_W3 : KS_TRAIN_N_PART;
  const size_t own = parts_size(g, KS_TRAIN_W1, n_own);
  const bool is_shared = part >= n_own;
  ks_train_tensor t = {.n_row = part_rows(g, part), .n_col = part_cols(g, part)};

  t.at =
      own * (is_shared ? g->n_layer : layer) + parts_size(g, is_shared ? n_own : KS_TRAIN_W1, part);
  return t;
}

ks_train_gate
ks_train_gate_of(const ks_model *model, const ks_gate *gate, const ks_train_params *params)
{
  const ks_model_shape *s = ks_model_get_shape(model);
  ks_train_gate g = {.n_layer = s->n_layer,
                     .n_embd = s->n_embd,
                     .n_kv_head = s->n_kv_head,
                     .n_gate = gate != NULL ? ks_gate_get_width(gate) : params->n_gate,
                     .is_local = gate != NULL ? ks_gate_is_local(gate) : params->is_local,
                     .act = gate != NULL ? ks_gate_get_act(gate) : s->act};
  size_t n;

  g.is_tied = !g.is_local && (gate != NULL ? ks_gate_is_tied(gate) : params->is_tied);
  n = parts_size(&g, KS_TRAIN_W1, g.is_tied ? KS_TRAIN_W3 : KS_TRAIN_N_PART);
  if (!ks_mul_size(n, g.n_layer, &g.n_param) ||
      !ks_add_size(g.n_param, g.is_tied ? parts_size(&g, KS_TRAIN_W3, KS_TRAIN_N_PART) : 0,
                   &g.n_param))
    g.n_param = SIZE_MAX;
  return g;
}

/* --- buffers --- */

typedef struct placer {
  uint64_t base;
  size_t at;
  bool ok;
} placer;

/* Room for a * b elements of size bytes. */
static uint64_t
take(placer *p, size_t a, size_t b, size_t size)
{
  const uint64_t here = p->base + p->at;
  size_t n = 0;

  p->ok = p->ok && ks_mul_size(a, b, &n) && ks_mul_size(n, size, &n) && ks_add_size(p->at, n, &n) &&
          ks_add_size(n, ALIGN - 1, &n);
  if (p->ok)
    p->at = n / ALIGN * ALIGN;
  return here;
}

static void *
take_host(placer *p, size_t a, size_t b, size_t size)
{
  const uint64_t here = take(p, a, b, size);

  return p->base != 0 ? (void *)(uintptr_t)here : NULL;
}

static ks_train_acts
take_acts(placer *p, const ks_model_shape *s, const ks_layer *layer, size_t n)
{
  ks_train_acts acts;

  acts.q = take(p, n, (size_t)s->n_head * s->k_dim, 4);
  acts.k = take(p, n, (size_t)s->n_kv_head * s->k_dim, 4);
  acts.v = take(p, n, (size_t)s->n_kv_head * s->v_dim, 4);
  acts.q_raw = layer->q_norm != 0 ? take(p, n, (size_t)s->n_head * s->k_dim, 4) : acts.q;
  acts.k_raw = layer->k_norm != 0 ? take(p, n, (size_t)s->n_kv_head * s->k_dim, 4) : acts.k;
  acts.att = take(p, n, (size_t)s->n_head * s->v_dim, 4);
  acts.lse = take(p, n, s->n_head, 4);
  acts.x_mid = take(p, n, s->n_embd, 4);
  acts.a = take(p, n, s->n_ff, 4);
  acts.b = take(p, n, s->n_ff, 4);
  acts.y_att = layer->post_attn_norm != 0 ? take(p, n, s->n_embd, 4) : 0;
  acts.y_ffn = layer->post_ffn_norm != 0 ? take(p, n, s->n_embd, 4) : 0;
  return acts;
}

static void
place_inputs(placer *p, const ks_model_shape *s, const ks_train_params *params, ks_train_dev *d)
{
  const size_t n = params->max_tok;

  d->ids = take(p, n, 1, 4);
  d->pos = take(p, n, 3, 4);
  d->last = take(p, n, 1, 4);
  d->row_last = take(p, n, 1, 4);
  d->rows = take(p, n, 1, 4);
  d->target = take(p, n, 1, 4);
  for (int i = 0; i < 2; i++) {
    d->first[i] = take(p, n, 1, 4);
    d->row_first[i] = take(p, n, 1, 4);
    d->weight[i] = take(p, n, 1, 4);
    d->loss[i] = take(p, n, 1, 4);
  }
  d->deep = take(p, (size_t)s->n_deep * params->max_visual, s->n_embd, 4);
  d->deep_rows = take(p, params->max_visual, 1, 4);
}

/* Gradients on their way through a layer, and the output matrix's logits: METHOD only. */
static void
place_method(placer *p, const ks_model_shape *s, size_t n, size_t block_row, ks_train_dev *d)
{
  d->dx = take(p, n, s->n_embd, 4);
  d->dh = take(p, n, s->n_embd, 4);
  d->dk = take(p, n, (size_t)s->n_kv_head * s->k_dim, 4);
  d->dv = take(p, n, (size_t)s->n_kv_head * s->v_dim, 4);
  d->p = take(p, block_row, s->n_vocab, 4);
  d->q = take(p, block_row, s->n_vocab, 4);
}

static void
place_device(placer *p, const ks_model_shape *s, const ks_train_gate *g,
             const ks_train_params *params, uint32_t block_row, ks_train_dev *d)
{
  const size_t n = params->max_tok, n_stream = (size_t)s->n_layer * s->n_kv_head;
  const size_t n_size = params->capacity_per_stream ? n_stream : 1;

  place_inputs(p, s, params, d);
  d->params = take(p, g->n_param, 1, 4);
  d->grad = take(p, g->n_param, 1, 4);
  d->x = take(p, (size_t)s->n_layer + 1, n * s->n_embd, 4);
  d->h = take(p, n, s->n_embd, 4);
  d->f = take(p, n, s->n_ff, 4);
  d->work = take(p, ks_gate_back_get_n_work(n, g->n_gate, s->n_kv_head), 1, 4);
  d->log_beta = take(p, n, n_stream, 4);
  d->d_log_beta = take(p, n, n_stream, 4);
  d->size = take(p, n, n_size, 4);
  d->d_size = take(p, n, n_size, 4);
  d->t_rows = take(p, n, s->n_embd, 4);
  d->s_rows = take(p, n, s->n_embd, 4);
  d->s_raw = take(p, n, s->n_embd, 4);
  d->d_rows = take(p, n, s->n_embd, 4);
  d->dq = take(p, n, (size_t)s->n_head * s->k_dim, 4);
  d->d_att = take(p, n, (size_t)s->n_head * s->v_dim, 4);
  if (block_row > 0)
    place_method(p, s, n, block_row, d);
}

static void
place_host(placer *p, const ks_model_shape *s, const ks_train_gate *g,
           const ks_train_params *params, ks_train_host *h)
{
  const size_t n = params->max_tok, n_stream = (size_t)s->n_layer * s->n_kv_head;
  const size_t n_size = params->capacity_per_stream ? n_stream : 1;

  h->acts = take_host(p, s->n_layer, 1, sizeof *h->acts);
  h->pos = take_host(p, n, 3, 4);
  h->rows = take_host(p, n, 1, 4);
  h->target = take_host(p, n, 1, 4);
  h->deep_rows = take_host(p, params->max_visual, 1, 4);
  h->last = take_host(p, n, 1, 4);
  h->row_last = take_host(p, n, 1, 4);
  h->doc = take_host(p, n, 1, 4);
  h->token_weight = take_host(p, n, 1, 4);
  h->share = take_host(p, n, 1, 4);
  for (int i = 0; i < 2; i++) {
    h->first[i] = take_host(p, n, 1, 4);
    h->row_first[i] = take_host(p, n, 1, 4);
    h->weight[i] = take_host(p, n, 1, 4);
    h->loss[i] = take_host(p, n, 1, 4);
  }
  h->size = take_host(p, n, n_size, 4);
  h->d_size = take_host(p, n, n_size, 4);
  h->log_beta = take_host(p, n, n_stream, 4);
  h->params = take_host(p, g->n_param, 1, 4);
  h->grad = take_host(p, g->n_param, 1, 4);
  h->m = take_host(p, g->n_param, 1, 4);
  h->v = take_host(p, g->n_param, 1, 4);
}

static bool
has_method(const ks_train_params *params)
{
  for (uint32_t i = 0; i < params->n_stage; i++)
    if (params->stages[i].kind == KS_TRAIN_METHOD)
      return true;
  return false;
}

static uint32_t
count_block_rows(const ks_model_shape *s, const ks_train_params *params)
{
  size_t n = BLOCK_BYTES / (2 * sizeof(float) * s->n_vocab);

  n = n > BLOCK_MOST ? BLOCK_MOST : n < BLOCK_LEAST ? BLOCK_LEAST : n / BLOCK_LEAST * BLOCK_LEAST;
  n = n < params->max_tok ? n : params->max_tok;
  return has_method(params) ? (uint32_t)n : 0;
}

/* Layers whose activations fit into the room, from the last one down; *p moves behind them. */
static uint32_t
place_kept(placer *p, const ks_model *model, const ks_train_params *params, ks_train_acts *acts)
{
  const ks_model_shape *s = ks_model_get_shape(model);
  const size_t begin = p->at;
  uint32_t n = 0;

  while (n < s->n_layer) {
    const uint32_t index = s->n_layer - 1 - n;
    const size_t before = p->at;
    const ks_train_acts own = take_acts(p, s, ks_model_get_layer(model, index), params->max_tok);

    if (p->at - begin > params->keep_bytes) {
      p->at = before;
      break;
    }
    if (acts != NULL)
      acts[index] = own;
    n++;
  }
  return n;
}

bool
ks_train_place(const ks_model *model, const ks_train_gate *gate, const ks_train_params *params,
               ks_dptr dev_base, void *host_base, ks_train_dev *dev, ks_train_host *host,
               ks_train_plan *out)
{
  const ks_model_shape *s = ks_model_get_shape(model);
  placer d = {.base = dev_base, .ok = gate->n_param != SIZE_MAX};
  placer h = {.base = (uintptr_t)host_base, .ok = d.ok};
  ks_train_plan plan = {.block_row = count_block_rows(s, params)};

  place_host(&h, s, gate, params, host);
  place_device(&d, s, gate, params, plan.block_row, dev);
  dev->shared = take_acts(&d, s, ks_model_get_layer(model, 0), params->max_tok);
  if (plan.block_row > 0 && d.ok)
    plan.n_kept = place_kept(&d, model, params, host->acts);
  for (uint32_t i = 0; host->acts != NULL && i + plan.n_kept < s->n_layer; i++)
    host->acts[i] = dev->shared;
  plan.dev_bytes = d.at;
  plan.host_bytes = h.at;
  if (d.ok && h.ok)
    *out = plan;
  return d.ok && h.ok;
}

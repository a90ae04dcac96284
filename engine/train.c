/* train.c - a trainer's life: settings, memory, stages, and one step from batch to new gate.
 * The host's row of numbers is the gate; the device's copy is written at the start of every step
 * and only read there, so a step that fails anywhere changes nothing.
 * Invariant: params, moments and step change together, at the end of a step that succeeded.
 * Threads: engine thread.  Source: docs/method.md, section 12. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/train-internal.h"

#include "engine/adamw.h"
#include "engine/threads.h"

#include <math.h>
#include <string.h>

#define MAX_GATE 65536u

void
ks_train_params_init(ks_train_params *params)
{
  *params = (ks_train_params){
      .max_tok = 512,
      .keep_bytes = (uint64_t)512 << 20,
      .is_tied = true,
      .n_gate = 64,
      .bias_init = 6.0F,
      .seed = 1,
      .kl_weight = 0.5F,
      .ce_weight = 0.5F,
      .local_weight = 1.0F,
      .capacity_weight = 1.0F,
      .n_entry = 32,
      .capacity = KS_TRAIN_CAPACITY_NEXT,
      .stages = {{KS_TRAIN_LOCAL, 170, 5, 3e-3F, 0.05F}, {KS_TRAIN_METHOD, 90, 5, 1.5e-3F, 0.05F}},
      .n_stage = 2,
      .beta1 = 0.9F,
      .beta2 = 0.98F,
      .eps = 1e-8F,
      .weight_decay = 1e-6F,
      .clip = 1.0F};
}

/* --- settings --- */

static bool
is_from_0(float x)
{
  return x >= 0.0F && isfinite(x);
}

static ks_status
check_stages(const ks_train_params *params, ks_error *err)
{
  uint64_t n_step = 0;

  if (params->n_stage == 0 || params->n_stage > KS_TRAIN_MAX_STAGE)
    return ks_fail(err, KS_ERR_ARG, "a training has 1 to %u stages, not %u", KS_TRAIN_MAX_STAGE,
                   params->n_stage);
  for (uint32_t i = 0; i < params->n_stage; i++) {
    const ks_train_stage *stage = &params->stages[i];

    if (stage->n_step == 0 || !is_from_0(stage->rate) || !is_from_0(stage->final_part))
      return ks_fail(err, KS_ERR_ARG, "stage %u needs steps and a learning rate from 0 up", i + 1);
    n_step += stage->n_step;
  }
  if (n_step > INT32_MAX)
    return ks_fail(err, KS_ERR_ARG, "a training of more than %d steps is impossible", INT32_MAX);
  return KS_OK;
}

static ks_status
check_params(const ks_train_params *params, const ks_train_gate *gate, ks_error *err)
{
  const float from_0[] = {params->kl_weight,       params->ce_weight,    params->local_weight,
                          params->capacity_weight, params->weight_decay, params->clip,
                          params->init_std};

  for (size_t i = 0; i < sizeof from_0 / sizeof from_0[0]; i++)
    if (!is_from_0(from_0[i]))
      return ks_fail(err, KS_ERR_ARG,
                     "weights of the loss, decay, clip and spread are numbers from 0 up");
  if (params->max_tok < 2 || params->max_tok > INT32_MAX / 4)
    return ks_fail(err, KS_ERR_ARG, "a batch of %u tokens is impossible", params->max_tok);
  if (gate->n_gate == 0 || gate->n_gate > MAX_GATE)
    return ks_fail(err, KS_ERR_ARG, "a gate is 1 to %u wide, not %u", MAX_GATE, gate->n_gate);
  if (params->n_entry == 0)
    return ks_fail(err, KS_ERR_ARG, "a gate is taught for at least one entry a stream");
  if (!(params->beta1 >= 0.0F && params->beta1 < 1.0F && params->beta2 >= 0.0F &&
        params->beta2 < 1.0F && params->eps > 0.0F && isfinite(params->bias_init)))
    return ks_fail(err, KS_ERR_ARG, "the optimiser needs betas in [0, 1), eps above 0");
  return check_stages(params, err);
}

/* --- life --- */

uint64_t
ks_trainer_count_bytes(const ks_model *model, const ks_gate *gate, const ks_train_params *params)
{
  const ks_train_gate g = ks_train_gate_of(model, gate, params);
  ks_train_dev dev;
  ks_train_host host;
  ks_train_plan plan;

  if (!ks_train_place(model, &g, params, 0, NULL, &dev, &host, &plan))
    return UINT64_MAX;
  return plan.dev_bytes + plan.host_bytes + sizeof(ks_trainer);
}

/* The numbers of a gate that is there. */
static ks_status
read_gate(ks_trainer *tr, const ks_gate *gate, ks_error *err)
{
  ks_status st = KS_OK;

  for (uint32_t l = 0; l < tr->gate.n_layer; l++) {
    const ks_gate_layer *layer = ks_gate_get_layer(gate, l);
    const ks_dptr from[KS_TRAIN_N_PART] = {layer->w1.data, layer->b1,      layer->w2.data,
                                           layer->b2,      layer->w3.data, layer->b3};

    for (int part = 0; st == KS_OK && part < KS_TRAIN_N_PART; part++) {
      const ks_train_tensor t = ks_train_find(&tr->gate, l, (ks_train_part)part);
      const size_t n = (size_t)t.n_row * (t.n_col > 0 ? t.n_col : 1);

      if (n > 0)
        st = tr->be->t->download(tr->be->dev, tr->host.params + t.at, from[part], n * sizeof(float),
                                 err);
    }
  }
  return st;
}

static ks_status
fail_memory(const ks_trainer *tr, ks_error *err)
{
  const uint64_t n_bytes = tr->plan.dev_bytes + tr->plan.host_bytes;

  return ks_fail(err, KS_ERR_NOMEM,
                 "training with sequences of %u tokens takes %llu MiB beside the model, which are "
                 "not there: take shorter ones or close other programs",
                 tr->params.max_tok, (unsigned long long)(n_bytes >> 20) + 1);
}

static ks_status
take_memory(ks_trainer *tr, ks_error *err)
{
  ks_status st;

  if (!ks_train_place(tr->model, &tr->gate, &tr->params, 0, NULL, &tr->dev, &tr->host, &tr->plan))
    return ks_fail(err, KS_ERR_NOMEM, "the buffers for %u tokens do not fit", tr->params.max_tok);
  tr->host_base = ks_mem_new(tr->alloc, KS_MEM_SCRATCH, 1, tr->plan.host_bytes);
  if (tr->host_base == NULL)
    return fail_memory(tr, err);
  st = tr->be->t->mem_new(tr->be->dev, KS_MEM_SCRATCH, tr->plan.dev_bytes, &tr->dev_base, err);
  return st == KS_ERR_NOMEM ? fail_memory(tr, err) : st;
}

ks_status
ks_trainer_new(ks_alloc *a, const ks_model *model, const ks_gate *gate,
               const ks_train_params *params, ks_trainer **out, ks_error *err)
{
  ks_backend *be = ks_model_get_backend(model);
  const ks_train_gate shape = ks_train_gate_of(model, gate, params);
  ks_status st = check_params(params, &shape, err);
  ks_trainer *tr;

  if (st != KS_OK)
    return st;
  if (be->t->train == NULL)
    return ks_fail(err, KS_ERR_UNSUPPORTED, "the device %s cannot train: use the CPU", be->t->name);
  tr = ks_mem_new(a, KS_MEM_HOST, 1, sizeof *tr);
  if (tr == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for a trainer");
  tr->alloc = a;
  tr->model = model;
  tr->be = be;
  tr->params = *params;
  tr->gate = shape;
  st = take_memory(tr, err);
  if (st == KS_OK && !ks_train_place(model, &tr->gate, params, tr->dev_base, tr->host_base,
                                     &tr->dev, &tr->host, &tr->plan))
    st = ks_fail(err, KS_ERR_NOMEM, "the buffers for %u tokens do not fit", params->max_tok);
  if (st == KS_OK && gate != NULL)
    st = read_gate(tr, gate, err);
  else if (st == KS_OK)
    ks_train_init_gate(&tr->gate, params, tr->host.params);
  if (st != KS_OK)
    ks_trainer_free(tr);
  else
    *out = tr;
  return st;
}

void
ks_trainer_free(ks_trainer *trainer)
{
  if (trainer == NULL)
    return;
  if (trainer->dev_base != 0)
    trainer->be->t->mem_free(trainer->be->dev, trainer->dev_base);
  ks_mem_free(trainer->host_base);
  ks_mem_free(trainer);
}

/* --- one pass over a batch --- */

/* Device steps of a stage. */
static ks_status
run_recorded(ks_train_pass *p, void (*record)(ks_train_pass *p), ks_stop_fn stop, void *user,
             ks_error *err)
{
  ks_status st = p->t->step_begin(p->dev, err);

  if (st != KS_OK)
    return st;
  record(p);
  if (p->st != KS_OK) {
    p->t->step_abort(p->dev);
    return ks_fail(err, p->st, "the step of the training could not be recorded: %s",
                   ks_status_name(p->st));
  }
  return p->t->step_end(p->dev, stop, user, err);
}

static ks_status
download_losses(ks_train_pass *p, ks_train_stage_kind kind, ks_error *err)
{
  const ks_trainer *tr = p->tr;
  const size_t n_row = p->n_row * sizeof(float), n_tok = p->n_tok * sizeof(float);
  const size_t n_stream = (size_t)p->s->n_layer * p->s->n_kv_head;
  const size_t n_size = n_tok * (tr->params.capacity_per_stream ? n_stream : 1);
  ks_status st = p->t->download(p->dev, tr->host.loss[0], p->d->loss[0], n_row, err);

  if (st == KS_OK && kind == KS_TRAIN_METHOD)
    st = p->t->download(p->dev, tr->host.loss[1], p->d->loss[1], n_row, err);
  if (st == KS_OK)
    st = p->t->download(p->dev, tr->host.size, p->d->size, n_size, err);
  if (st == KS_OK)
    st = p->t->download(p->dev, tr->host.log_beta, p->d->log_beta, n_tok * n_stream, err);
  return st;
}

static double
share_of(const ks_train_pass *p, const float *loss)
{
  double sum = 0.0;

  for (uint32_t i = 0; i < p->n_row; i++)
    sum += (double)p->tr->host.share[i] * (double)loss[i];
  return sum;
}

/* Losses of the batch, and the gradient of the soft size in host.d_size. */
static void
make_stats(ks_train_pass *p, ks_train_stage_kind kind, ks_train_stats *s)
{
  const ks_trainer *tr = p->tr;
  const ks_train_params *params = &tr->params;
  const uint32_t n_stream = p->s->n_layer * p->s->n_kv_head;
  const bool apart = params->capacity_per_stream;
  const size_t n_size = (size_t)p->n_tok * (apart ? n_stream : 1);
  const size_t n_beta = (size_t)p->n_tok * n_stream;
  const double capacity = ks_train_capacity_term(
      params, tr->host.size, tr->host.doc, apart ? p->s->n_layer : 1, p->n_tok,
      apart ? p->s->n_kv_head : 1, apart ? 1 : n_stream, tr->host.d_size);
  double size = 0.0, beta = 0.0, loss = (double)params->capacity_weight * capacity;

  for (size_t i = 0; i < n_size; i++)
    size += (double)tr->host.size[i];
  for (size_t i = 0; i < n_beta; i++)
    beta += exp((double)tr->host.log_beta[i]);
  s->kind = kind;
  s->capacity = (float)capacity;
  s->n_entry_soft = (float)(size / (double)n_beta);
  s->mean_retention = (float)(beta / (double)n_beta);
  s->n_tok = p->n_tok;
  if (kind == KS_TRAIN_METHOD) {
    s->kl = (float)share_of(p, tr->host.loss[0]);
    s->ce = (float)share_of(p, tr->host.loss[1]);
    loss += (double)params->kl_weight * (double)s->kl + (double)params->ce_weight * (double)s->ce;
  } else {
    s->local = (float)share_of(p, tr->host.loss[0]);
    loss += (double)params->local_weight * (double)s->local;
  }
  s->loss = (float)loss;
}

/* From the losses back to host.grad. */
static ks_status
run_back(ks_train_pass *p, ks_train_stage_kind kind, ks_stop_fn stop, void *user,
         ks_train_stats *stats, ks_error *err)
{
  const ks_trainer *tr = p->tr;
  const size_t n_stream = (size_t)p->s->n_layer * p->s->n_kv_head;
  const size_t n_size = p->n_tok * (tr->params.capacity_per_stream ? n_stream : 1);
  ks_status st = p->t->upload(p->dev, p->d->d_size, tr->host.d_size, n_size * sizeof(float), err);

  if (st == KS_OK)
    st = run_recorded(p, kind == KS_TRAIN_METHOD ? ks_train_method_back : ks_train_local_back, stop,
                      user, err);
  if (st == KS_OK)
    st = p->t->download(p->dev, tr->host.grad, p->d->grad, tr->gate.n_param * sizeof(float), err);
  if (st != KS_OK)
    return st;
  stats->grad_norm = (float)ks_adamw_norm(tr->host.grad, tr->gate.n_param);
  if (!isfinite(stats->grad_norm))
    return ks_fail(err, KS_ERR_FORMAT, "the gradient is no number: try a lower learning rate");
  return KS_OK;
}

static ks_status
run_batch(ks_trainer *tr, ks_train_stage_kind kind, const ks_train_batch *batch, bool want_grad,
          ks_stop_fn stop, void *user, ks_train_stats *out, ks_error *err)
{
  const ks_backend *be = tr->be;
  ks_train_pass p = {.tr = tr,
                     .s = ks_model_get_shape(tr->model),
                     .t = be->t,
                     .tt = be->t->train,
                     .dev = be->dev,
                     .d = &tr->dev,
                     .batch = batch,
                     .n_tok = batch->n_tok,
                     .want_grad = want_grad};
  const uint64_t begin = ks_now_ns();
  ks_train_stats stats = {.step = tr->step, .n_step = ks_trainer_get_n_step(tr)};
  ks_status st = ks_train_input(&p, kind, &stats.n_counted, err);

  if (st == KS_OK)
    st =
        run_recorded(&p, kind == KS_TRAIN_METHOD ? ks_train_method_forward : ks_train_local_forward,
                     stop, user, err);
  if (st == KS_OK)
    st = download_losses(&p, kind, err);
  if (st == KS_OK)
    st = ks_model_check_alive(tr->model, err);
  if (st != KS_OK)
    return st;
  make_stats(&p, kind, &stats);
  if (!isfinite(stats.loss))
    return ks_fail(err, KS_ERR_FORMAT, "the loss is no number: try a lower learning rate");
  if (want_grad && (st = run_back(&p, kind, stop, user, &stats, err)) != KS_OK)
    return st;
  if (want_grad && (st = ks_model_check_alive(tr->model, err)) != KS_OK)
    return st;
  stats.seconds = 1e-9 * (double)(ks_now_ns() - begin);
  *out = stats;
  return KS_OK;
}

/* --- the optimiser --- */

/* The stage of the next step (of the last one when all are done) and its steps done. */
static const ks_train_stage *
find_stage(const ks_trainer *tr, uint32_t *out_done)
{
  uint32_t done = tr->step, i = 0;

  while (i + 1 < tr->params.n_stage && done >= tr->params.stages[i].n_step)
    done -= tr->params.stages[i++].n_step;
  *out_done = done;
  return &tr->params.stages[i];
}

static void
update(ks_trainer *tr, float rate, uint32_t step_of_stage, double norm)
{
  const ks_train_params *params = &tr->params;
  ks_adamw how = {.rate = rate,
                  .beta1 = params->beta1,
                  .beta2 = params->beta2,
                  .eps = params->eps,
                  .scale = ks_adamw_clip_scale(norm, params->clip),
                  .step = step_of_stage + 1};
  const ks_train_host *h = &tr->host;

  if (step_of_stage == 0) {
    memset(h->m, 0, tr->gate.n_param * sizeof *h->m);
    memset(h->v, 0, tr->gate.n_param * sizeof *h->v);
  }
  for (uint32_t l = 0; l < tr->gate.n_layer; l++)
    for (int part = 0; part < KS_TRAIN_N_PART; part++) {
      const ks_train_tensor t = ks_train_find(&tr->gate, l, (ks_train_part)part);
      const size_t n = (size_t)t.n_row * (t.n_col > 0 ? t.n_col : 1);
      const bool is_shared = tr->gate.is_tied && part >= KS_TRAIN_W3;

      how.weight_decay = t.n_col > 0 ? params->weight_decay : 0.0F;
      if (!is_shared || l == 0)
        ks_adamw_step(&how, h->params + t.at, h->grad + t.at, h->m + t.at, h->v + t.at, n);
    }
}

ks_status
ks_trainer_step(ks_trainer *trainer, const ks_train_batch *batch, ks_stop_fn stop, void *user,
                ks_train_stats *out, ks_error *err)
{
  uint32_t done = 0;
  const ks_train_stage *stage = find_stage(trainer, &done);
  ks_train_stats stats;
  ks_status st;

  if (trainer->step >= ks_trainer_get_n_step(trainer))
    return ks_fail(err, KS_ERR_ARG, "all %u steps of the training are done", trainer->step);
  st = run_batch(trainer, stage->kind, batch, true, stop, user, &stats, err);
  if (st != KS_OK)
    return st;
  stats.rate = ks_adamw_rate(stage->rate, stage->final_part, stage->n_warm_up, stage->n_step, done);
  update(trainer, stats.rate, done, (double)stats.grad_norm);
  stats.step = ++trainer->step;
  *out = stats;
  return KS_OK;
}

ks_status
ks_trainer_measure(ks_trainer *trainer, ks_train_stage_kind kind, const ks_train_batch *batch,
                   ks_stop_fn stop, void *user, ks_train_stats *out, ks_error *err)
{
  if (kind == KS_TRAIN_METHOD && trainer->plan.block_row == 0)
    return ks_fail(err, KS_ERR_ARG, "this training has no stage with the loss of the method");
  return run_batch(trainer, kind, batch, false, stop, user, out, err);
}

/* --- answers --- */

uint64_t
ks_trainer_get_bytes(const ks_trainer *trainer)
{
  return trainer->plan.dev_bytes + trainer->plan.host_bytes + sizeof *trainer;
}

uint32_t
ks_trainer_get_step(const ks_trainer *trainer)
{
  return trainer->step;
}

uint32_t
ks_trainer_get_n_step(const ks_trainer *trainer)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < trainer->params.n_stage; i++)
    n += trainer->params.stages[i].n_step;
  return n;
}

ks_train_stage_kind
ks_trainer_get_kind(const ks_trainer *trainer)
{
  uint32_t done = 0;

  return find_stage(trainer, &done)->kind;
}

size_t
ks_trainer_get_n_param(const ks_trainer *trainer)
{
  return trainer->gate.n_param;
}

const float *
ks_trainer_get_params(const ks_trainer *trainer)
{
  return trainer->host.params;
}

const float *
ks_trainer_get_gradient(const ks_trainer *trainer)
{
  return trainer->host.grad;
}

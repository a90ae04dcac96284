/* train-state.c - the gate's start values, and what leaves the trainer: its state as bytes, and the
 * gate as a file.
 * State, little-endian: magic, the facts that must match (struct facts below), steps done, then
 * parameters and both moments as f32, then a sum of it all (FNV-1a).
 * Threads: engine thread.  Source: docs/method.md, section 12; docs/formats/gate.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/safetensors.h"
#include "engine/train-internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES 96u
#define MAX_METADATA 32u
#define FNV_START 0xCBF29CE484222325u
#define FNV_PRIME 0x100000001B3u

/* --- start values --- */

static float
random_normal(uint64_t *state)
{
  const double pi = 3.14159265358979323846;
  const double a = 1.0 - ks_train_random(state), b = ks_train_random(state);

  return (float)(sqrt(-2.0 * log(a)) * cos(2.0 * pi * b));
}

/* Weights are normal; hidden biases are 0, the last one says how long everything is kept. */
void
ks_train_init_gate(const ks_train_gate *gate, const ks_train_params *params, float *row)
{
  uint64_t state = params->seed;

  for (uint32_t l = 0; l < gate->n_layer; l++)
    for (int part = 0; part < KS_TRAIN_N_PART; part++) {
      const ks_train_tensor t = ks_train_find(gate, l, (ks_train_part)part);
      const size_t n = (size_t)t.n_row * t.n_col;
      const float std =
          params->init_std > 0.0F ? params->init_std : (float)(1.0 / sqrt((double)t.n_col));

      for (size_t i = 0; i < n; i++)
        row[t.at + i] = std * random_normal(&state);
      for (uint32_t i = 0; part == KS_TRAIN_B3 && i < t.n_row; i++)
        row[t.at + i] = params->bias_init;
    }
}

/* --- the gate as a file --- */

static const char *
part_name(const ks_train_gate *gate, ks_train_part part)
{
  static const char *const names[KS_TRAIN_N_PART] = {
      "linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias", "linear3.weight", "bias"};

  return gate->is_local && part == KS_TRAIN_W3 ? "linear2.weight" : names[part];
}

/* All tensors of the gate in file order; names (NAME_BYTES each) are written to names. */
static size_t
list_tensors(const ks_trainer *tr, ks_st_tensor *out, char *names)
{
  size_t n = 0;

  for (uint32_t l = 0; l < tr->gate.n_layer; l++)
    for (int part = 0; part < KS_TRAIN_N_PART; part++) {
      const ks_train_tensor t = ks_train_find(&tr->gate, l, (ks_train_part)part);
      char *name = names + n * NAME_BYTES;

      if (t.n_row == 0)
        continue;
      snprintf(name, NAME_BYTES, "model.layers.%u.self_attn.retention_gate.%s", l,
               part_name(&tr->gate, (ks_train_part)part));
      out[n++] =
          (ks_st_tensor){.name = name,
                         .dtype = KS_DTYPE_F32,
                         .n_dims = t.n_col > 0 ? 2 : 1,
                         .shape = {t.n_row, t.n_col},
                         .data = (const unsigned char *)(tr->host.params + t.at),
                         .n_bytes = (size_t)t.n_row * (t.n_col > 0 ? t.n_col : 1) * sizeof(float)};
    }
  return n;
}

ks_status
ks_trainer_write_gate(const ks_trainer *tr, const char *path, const char *const *metadata,
                      ks_error *err)
{
  const size_t n_most = (size_t)tr->gate.n_layer * KS_TRAIN_N_PART;
  ks_st_tensor *tensors = ks_mem_new(tr->alloc, KS_MEM_HOST, n_most, sizeof *tensors);
  char *names = ks_mem_new(tr->alloc, KS_MEM_HOST, n_most, NAME_BYTES);
  char sizes[3][16];
  const char *all[2 * (MAX_METADATA + 4) + 1] = {"format", "keepsake-gate-1", "L", sizes[0],
                                                 "H",      sizes[1],          "D", sizes[2]};
  ks_status st;

  snprintf(sizes[0], sizeof sizes[0], "%u", tr->gate.n_layer);
  snprintf(sizes[1], sizeof sizes[1], "%u", tr->gate.n_kv_head);
  snprintf(sizes[2], sizeof sizes[2], "%u", tr->gate.n_embd);
  for (size_t i = 0; metadata != NULL && metadata[i] != NULL && i < 2 * (size_t)MAX_METADATA; i++)
    all[8 + i] = metadata[i];
  if (tensors == NULL || names == NULL)
    st = ks_fail(err, KS_ERR_NOMEM, "no memory to write %s", path);
  else
    st = ks_safetensors_write(tr->alloc, path, tensors, list_tensors(tr, tensors, names), all, err);
  ks_mem_free(names);
  ks_mem_free(tensors);
  return st;
}

/* --- state --- */

/* What must be the same for a run to go on. */
typedef struct facts {
  char magic[8];
  uint32_t n_layer, n_embd, n_kv_head, n_gate;
  uint32_t is_local, is_tied, act, step;
  uint64_t n_param, settings;
} facts;

static uint64_t
sum_bytes(uint64_t sum, const void *data, size_t n_bytes)
{
  const unsigned char *at = data;

  for (size_t i = 0; i < n_bytes; i++)
    sum = (sum ^ at[i]) * FNV_PRIME;
  return sum;
}

/* Settings that decide how the run goes on; not the sizes of buffers. */
static uint64_t
sum_settings(const ks_train_params *params)
{
  const float numbers[] = {
      params->kl_weight, params->ce_weight, params->local_weight, params->capacity_weight,
      params->beta1,     params->beta2,     params->eps,          params->weight_decay,
      params->clip};
  const uint32_t counts[] = {params->n_entry, (uint32_t)params->capacity_per_stream,
                             (uint32_t)params->capacity, params->n_local_row, params->n_stage};
  uint64_t sum = sum_bytes(FNV_START, numbers, sizeof numbers);

  sum = sum_bytes(sum, counts, sizeof counts);
  sum = sum_bytes(sum, &params->seed, sizeof params->seed);
  for (uint32_t i = 0; i < params->n_stage; i++) {
    const ks_train_stage *stage = &params->stages[i];
    const uint32_t steps[] = {(uint32_t)stage->kind, stage->n_step, stage->n_warm_up};
    const float rates[] = {stage->rate, stage->final_part};

    sum = sum_bytes(sum, steps, sizeof steps);
    sum = sum_bytes(sum, rates, sizeof rates);
  }
  return sum;
}

static facts
make_facts(const ks_trainer *tr)
{
  facts f;

  memset(&f, 0, sizeof f);
  memcpy(f.magic, "KSTRAIN1", sizeof f.magic);
  f.n_layer = tr->gate.n_layer;
  f.n_embd = tr->gate.n_embd;
  f.n_kv_head = tr->gate.n_kv_head;
  f.n_gate = tr->gate.n_gate;
  f.is_local = tr->gate.is_local;
  f.is_tied = tr->gate.is_tied;
  f.act = (uint32_t)tr->gate.act;
  f.step = tr->step;
  f.n_param = tr->gate.n_param;
  f.settings = sum_settings(&tr->params);
  return f;
}

uint64_t
ks_trainer_get_state_bytes(const ks_trainer *tr)
{
  return sizeof(facts) + 3 * tr->gate.n_param * sizeof(float) + sizeof(uint64_t);
}

ks_status
ks_trainer_save(const ks_trainer *tr, ks_train_write_fn write, void *user, ks_error *err)
{
  const facts f = make_facts(tr);
  const size_t n = tr->gate.n_param * sizeof(float);
  const float *const rows[] = {tr->host.params, tr->host.m, tr->host.v};
  uint64_t sum = sum_bytes(FNV_START, &f, sizeof f);
  bool ok = write(user, &f, sizeof f);

  for (size_t i = 0; ok && i < 3; i++) {
    sum = sum_bytes(sum, rows[i], n);
    ok = write(user, rows[i], n);
  }
  if (!ok || !write(user, &sum, sizeof sum))
    return ks_fail(err, KS_ERR_IO, "the state of the training could not be written");
  return KS_OK;
}

static ks_status
check_state(const ks_trainer *tr, const void *data, size_t n_bytes, facts *out, ks_error *err)
{
  const facts want = make_facts(tr);
  uint64_t sum;
  uint32_t step;

  if (n_bytes < sizeof *out)
    return ks_fail(err, KS_ERR_FORMAT, "the state of the training ends early: start anew");
  memcpy(out, data, sizeof *out);
  if (memcmp(out->magic, want.magic, 7) != 0)
    return ks_fail(err, KS_ERR_FORMAT, "this is no state of a training");
  if (out->magic[7] != want.magic[7])
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "the state of the training has the format \"%c\"; update Keepsake",
                   out->magic[7]);
  step = out->step;
  out->step = want.step;
  if (memcmp(out, &want, sizeof want) != 0)
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "the state is of a training with another model, gate or settings");
  out->step = step;
  if (n_bytes != ks_trainer_get_state_bytes(tr))
    return ks_fail(err, KS_ERR_FORMAT, "the state of the training ends early: start anew");
  memcpy(&sum, (const unsigned char *)data + n_bytes - sizeof sum, sizeof sum);
  if (sum != sum_bytes(FNV_START, data, n_bytes - sizeof sum) || step > ks_trainer_get_n_step(tr))
    return ks_fail(err, KS_ERR_FORMAT, "the state of the training is damaged: start anew");
  return KS_OK;
}

ks_status
ks_trainer_load(ks_trainer *tr, const void *data, size_t n_bytes, ks_error *err)
{
  const size_t n = tr->gate.n_param * sizeof(float);
  const unsigned char *at = data;
  facts f;
  ks_status st = check_state(tr, data, n_bytes, &f, err);

  if (st != KS_OK)
    return st;
  at += sizeof f;
  memcpy(tr->host.params, at, n);
  memcpy(tr->host.m, at + n, n);
  memcpy(tr->host.v, at + 2 * n, n);
  tr->step = f.step;
  return KS_OK;
}

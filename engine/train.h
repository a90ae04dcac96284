/* train.h - teaching a retention gate what to keep: the base model stays as it is (quantised
 * weights are used as they lie in the file), only the gate gets gradients.
 * A trainer goes through its stages by itself, one batch a step: LOCAL matches the attention output
 * of every layer without a backward pass through the network, METHOD is the loss of the method (KL
 * to the model without eviction, next token, capacity).  All memory is taken when it is made.
 * Threads: the engine thread that drives the model's device; nothing else may run on it meanwhile.
 * Source: docs/method.md, section 12. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/graph.h"

KS_BEGIN_DECLS

typedef enum ks_train_stage_kind { KS_TRAIN_LOCAL, KS_TRAIN_METHOD } ks_train_stage_kind;

/* What the soft size above the budget is divided by, t counted from 0 in each document. */
typedef enum ks_train_capacity {
  KS_TRAIN_CAPACITY_NEXT,      /* max(1, streams * (t + 1) - K), mean over the t above K */
  KS_TRAIN_CAPACITY_REFERENCE, /* max(1, streams * t - K), mean over the t above K */
  KS_TRAIN_CAPACITY_PAPER      /* streams * (t + 1), mean over all t */
} ks_train_capacity;

/* One run through the learning rate's schedule: a linear rise over n_warm_up steps, then a cosine
 * that falls from rate to rate * final_part at the stage's last step. */
typedef struct ks_train_stage {
  ks_train_stage_kind kind;
  uint32_t n_step, n_warm_up;
  float rate, final_part;
} ks_train_stage;

#define KS_TRAIN_MAX_STAGE 4u

typedef struct ks_train_params {
  uint32_t max_tok;    /* longest batch, in tokens; memory grows with it */
  uint32_t max_visual; /* most visual tokens of a batch; matters for models with deep features */
  uint64_t keep_bytes; /* room for activations that METHOD keeps for the way back; those of layers
                          that do not fit are made anew there, which costs time */

  /* The gate, where a fresh one is made. */
  bool is_local;   /* two layers, nothing shared (TrimKV); else three */
  bool is_tied;    /* last matrix and bias shared by all layers; false with is_local */
  uint32_t n_gate; /* inner width */
  float bias_init; /* of the last layer */
  float init_std;  /* of the weights; 0 = 1 / sqrt(fan-in) */
  uint64_t seed;   /* of start values and of sampled rows */

  /* The loss: kl_weight * KL + ce_weight * CE (METHOD) or local_weight * mismatch (LOCAL), plus
   * capacity_weight * capacity. */
  float kl_weight, ce_weight, local_weight, capacity_weight;
  uint32_t n_entry;           /* M: entries a stream that the capacity term aims at */
  bool capacity_per_stream;   /* one size and one M for each stream, instead of one for all */
  ks_train_capacity capacity; /* how it is normalised */
  uint32_t n_local_row; /* LOCAL: query rows looked at in a batch; 0 = all that carry weight */

  ks_train_stage stages[KS_TRAIN_MAX_STAGE];
  uint32_t n_stage;

  /* AdamW. */
  float beta1, beta2, eps, weight_decay; /* decay of matrices, not of biases */
  float clip;                            /* largest norm of the gradient; 0 = none */
} ks_train_params;

/* The recipe of docs/gates.md for a small model: tied, 64 wide, M = 32, 170 LOCAL steps at 3e-3 and
 * 90 METHOD steps at 1.5e-3, 512 tokens. */
void ks_train_params_init(ks_train_params *params);

/* One or more documents, one behind the other. */
typedef struct ks_train_batch {
  uint32_t n_tok;
  const ks_token *ids;            /* [n_tok]; KS_TOKEN_NONE in the rows of visuals, only there */
  const uint32_t *doc_starts;     /* [n_doc] rising, the first is 0; NULL = one document */
  uint32_t n_doc;                 /* with doc_starts */
  const float *weights;           /* [n_tok] >= 0: how much it counts that token t is foretold; the
                                     first token of a document and visual rows count nothing.
                                     NULL = 1 for every token */
  const ks_graph_visual *visuals; /* [n_visual], in order of rows */
  uint32_t n_visual;
  const int32_t *rope_pos;     /* [3, n_tok]; NULL = running from 0 in each document */
  const uint32_t *visual_last; /* [n_tok] last visible index of each row where a view is seen both
                                  ways (Gemma 3); NULL = every row's own */
} ks_train_batch;

typedef struct ks_train_stats {
  ks_train_stage_kind kind;
  uint32_t step, n_step;     /* steps done in all stages with this one; of how many */
  float loss;                /* what was minimised */
  float kl, ce;              /* METHOD: weighted means over the tokens that count, in nats */
  float local;               /* LOCAL: mean over rows of |difference|^2 / |residual|^2, over layers
                                summed */
  float capacity;            /* the term, before its weight */
  float n_entry_soft;        /* mean over the tokens of the soft size, in entries a stream */
  float mean_retention;      /* mean beta over all streams and tokens */
  float grad_norm;           /* before clipping */
  float rate;                /* learning rate of this step */
  uint32_t n_tok, n_counted; /* tokens of the batch; of those that count in the loss */
  double seconds;
} ks_train_stats;

typedef struct ks_trainer ks_trainer;

/* Device and host bytes that a trainer takes, without what the device takes for its steps; exact.
 * UINT64_MAX when they overflow.  gate may be NULL (a fresh one). */
uint64_t ks_trainer_count_bytes(const ks_model *model, const ks_gate *gate,
                                const ks_train_params *params);
/* Takes all memory.  gate: start values (its kind and width replace those of params), or NULL for a
 * fresh gate.  model and its device are borrowed and outlive the trainer; gate is only read here.
 * KS_ERR_UNSUPPORTED: the device does not train; KS_ERR_ARG: settings that make no sense, named. */
KS_CHECK ks_status ks_trainer_new(ks_alloc *a, const ks_model *model, const ks_gate *gate,
                                  const ks_train_params *params, ks_trainer **out, ks_error *err);
void ks_trainer_free(ks_trainer *trainer); /* NULL is allowed */
/* The same bytes, of this trainer. */
uint64_t ks_trainer_get_bytes(const ks_trainer *trainer);

/* One batch: losses, gradient, update of the gate.  stop may be NULL.  On any failure (cancel,
 * KS_ERR_CANCELLED; a batch that is too long or holds a wrong token, KS_ERR_ARG; a loss that is no
 * number, KS_ERR_FORMAT; a model file that went away, KS_ERR_IO) the gate and the state stay those
 * of the step before.  KS_ERR_ARG as well when all stages are over. */
KS_CHECK ks_status ks_trainer_step(ks_trainer *trainer, const ks_train_batch *batch,
                                   ks_stop_fn stop, void *user, ks_train_stats *out, ks_error *err);
/* The losses of the METHOD stage (or LOCAL) on a batch, without a gradient or an update. */
KS_CHECK ks_status ks_trainer_measure(ks_trainer *trainer, ks_train_stage_kind kind,
                                      const ks_train_batch *batch, ks_stop_fn stop, void *user,
                                      ks_train_stats *out, ks_error *err);
uint32_t ks_trainer_get_step(const ks_trainer *trainer);   /* steps done */
uint32_t ks_trainer_get_n_step(const ks_trainer *trainer); /* of all stages */
/* The kind of the next step; of the last one when all are done. */
ks_train_stage_kind ks_trainer_get_kind(const ks_trainer *trainer);

/* Writes the gate as it is now: docs/formats/gate.md, metadata format, L, H, D and those of the
 * caller (key, value, ..., NULL; may be NULL; "base" names the model). */
KS_CHECK ks_status ks_trainer_write_gate(const ks_trainer *trainer, const char *path,
                                         const char *const *metadata, ks_error *err);

/* Everything that the next step depends on: gate, moments, number of steps.  The caller gives the
 * same model and settings to ks_trainer_new and the same batches from there on: the run continues
 * as if it had not stopped. */
typedef bool (*ks_train_write_fn)(void *user, const void *data, size_t n_bytes); /* false: failed */
uint64_t ks_trainer_get_state_bytes(const ks_trainer *trainer);
KS_CHECK ks_status ks_trainer_save(const ks_trainer *trainer, ks_train_write_fn write, void *user,
                                   ks_error *err);
/* KS_ERR_FORMAT: damaged or cut; KS_ERR_UNSUPPORTED: of another model, gate or schedule, or of a
 * newer format.  The trainer is as before then. */
KS_CHECK ks_status ks_trainer_load(ks_trainer *trainer, const void *data, size_t n_bytes,
                                   ks_error *err);

/* For checks: all numbers of the gate in one row, and the gradient of the last step before it was
 * clipped.  Order: per layer w1, b1, w2, b2, and w3, b3 (behind all layers when tied), each padded
 * with zeros to a multiple of 16 numbers.  Valid until the next call on the trainer. */
size_t ks_trainer_get_n_param(const ks_trainer *trainer);
const float *ks_trainer_get_params(const ks_trainer *trainer);
const float *ks_trainer_get_gradient(const ks_trainer *trainer);

KS_END_DECLS

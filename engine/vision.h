/* vision.h - a vision tower with its projector: pictures in, embeddings for a language model out.
 * Weights come from an mmproj GGUF beside the language model's and are bound to a backend.  The
 * tower runs in tiles of rows: its scratch grows linearly with the patches.
 * Threads: engine thread; immutable after loading.  Source: docs/method.md (vision). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/model.h"
#include "engine/vision-prep.h"
#include "engine/vision-prune.h"

KS_BEGIN_DECLS

typedef struct ks_vision ks_vision;

typedef struct ks_vision_shape {
  ks_vision_family family;
  uint32_t n_embd, n_ff, n_layer, n_head; /* of the tower */
  uint32_t n_out;                         /* width of an embedding: the language model's n_embd */
  uint32_t n_deep;                        /* deepstack chunks beside it */
  ks_vision_prep prep;
} ks_vision_shape;

/* A cut file, a missing tensor, a wrong shape: KS_ERR_FORMAT naming it; another projector:
 * KS_ERR_UNSUPPORTED naming it. */
KS_CHECK ks_status ks_vision_open(ks_alloc *a, const char *path, ks_backend *be, ks_vision **out,
                                  ks_error *err);
/* The same on an opened file, taken over (closed on failure too). */
KS_CHECK ks_status ks_vision_open_gguf(ks_alloc *a, ks_gguf *take_gguf, ks_backend *be,
                                       ks_vision **out, ks_error *err);
void ks_vision_close(ks_vision *vision); /* NULL is allowed */
const ks_vision_shape *ks_vision_get_shape(const ks_vision *vision);
uint64_t ks_vision_get_weight_bytes(const ks_vision *vision);
/* Whether the embeddings are made for this model: width, deepstack, family and architecture; and
 * whether its vocabulary has the family's picture tokens.  KS_ERR_UNSUPPORTED says what does not
 * fit. */
KS_CHECK ks_status ks_vision_check_fit(const ks_vision *vision, const ks_model *model,
                                       ks_error *err);
/* The same from the two files' keys alone, for pairing without loading weights. */
KS_CHECK ks_status ks_vision_check_files(const ks_gguf *mmproj, const ks_gguf *model,
                                         ks_error *err);
/* Most bytes that encoding takes by itself; 0 = KS_VISION_SCRATCH_BYTES.  A picture that would take
 * more is worked on with rows of half precision and few heads at a time (docs/adr/0017). */
#define KS_VISION_SCRATCH_BYTES ((uint64_t)292 << 20)
void ks_vision_set_scratch_limit(ks_vision *vision, uint64_t n_bytes);
/* How a picture of this plan is rounded under that limit, 0 to KS_VISION_N_ROUNDING - 1: 0 = not at
 * all.  On one device the same number gives the same bits, whatever the limit. */
#define KS_VISION_N_ROUNDING 7u
uint32_t ks_vision_get_rounding(const ks_vision *vision, const ks_vision_plan *plan);
/* Fewer tokens of every view from now on; zeros = all.  Before ks_vision_prepare. */
void ks_vision_set_zip(ks_vision *vision, const ks_vision_zip *zip);
/* Tokens of each view of a plan that are left then. */
uint32_t ks_vision_count_view_tok(const ks_vision *vision, const ks_vision_plan *plan);
/* Device and host bytes that encoding takes at most at once, without weights, result and the
 * device's own workspace. */
uint64_t ks_vision_count_scratch_bytes(const ks_vision *vision, const ks_vision_plan *plan);

/* Records what the largest pictures take and runs nothing: the device then has what it needs for
 * the tower's operations (ks_dev_info.own_bytes), pictures take nothing more of it. */
KS_CHECK ks_status ks_vision_prepare(ks_vision *vision, const ks_vision_limits *limits,
                                     ks_error *err);

/* Embeddings of one picture. */
typedef struct ks_vision_embeds {
  ks_vision_plan plan;
  uint32_t n_tok, n_embd, n_deep; /* n_tok: that are left, as many of each view */
  float *data; /* [1 + n_deep, n_tok, n_embd]: embedding, then the deepstack chunks; views one after
                  the other, the tokens of each in raster order */
  uint32_t *places; /* [n_tok] NULL = all are there; else where each stands in its view's raster,
                       which is then not their order */
} ks_vision_embeds;

/* For checks and `inspect vision`: rows of the tower's output (as the family's projector reads
 * them) of one view, in the order of ks_vision_patch_place. */
typedef void (*ks_vision_tap_fn)(void *user, uint32_t view, const float *rows, uint32_t n_row,
                                 uint32_t n_col);
typedef struct ks_vision_hooks {
  ks_stop_fn stop; /* polled at least every 50 ms; true = KS_ERR_CANCELLED */
  /* After each tile of rows of each layer, so that a large picture moves as well; NULL = none. */
  void (*progress)(void *user, uint32_t n_done, uint32_t n_total);
  ks_vision_tap_fn tap; /* NULL = none */
  void *user;
} ks_vision_hooks;

/* Encodes in.  out->data is the caller's (ks_vision_embeds_clear). */
KS_CHECK ks_status ks_vision_encode(ks_vision *vision, const ks_vision_input *in,
                                    const ks_vision_hooks *hooks, ks_vision_embeds *out,
                                    ks_error *err);
void ks_vision_embeds_clear(ks_vision_embeds *embeds); /* a zeroed one is allowed */

KS_END_DECLS

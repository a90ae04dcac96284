/* sampler.h - seeded chain that picks the next token from logits, and stop-string matching.
 * Order: repetition penalty, greedy if temperature is 0, else temperature, top-k, top-p, min-p,
 * draw. Same seed, same logits, same ids on every machine (PCG64, no libm in the draw's decisions
 * beyond exp). Threads: a sampler belongs to one thread.  Source: docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/head-request.h"
#include "engine/tokenizer.h"

KS_BEGIN_DECLS

typedef struct ks_sampler_params {
  float temperature;    /* 0 = greedy */
  uint32_t top_k;       /* 0 = off */
  float top_p;          /* 1 = off */
  float min_p;          /* 0 = off */
  float repeat_penalty; /* 1 = off; positive logits divided, negative ones multiplied */
  uint32_t repeat_last; /* how many of the last tokens are penalised */
  uint64_t seed;
} ks_sampler_params;

typedef struct ks_sampler ks_sampler;

ks_sampler_params ks_sampler_default_params(void);
/* KS_ERR_ARG names the parameter that is out of range. */
KS_CHECK ks_status ks_sampler_new(ks_alloc *a, const ks_sampler_params *params, uint32_t n_vocab,
                                  ks_sampler **out, ks_error *err);
void ks_sampler_free(ks_sampler *s); /* NULL is allowed */
/* Picks from logits [n_vocab] (untouched).  NaN counts as minus infinity.  Does not allocate. */
ks_token ks_sampler_pick(ks_sampler *s, const float *logits);
/* What the pass over token next must tell so that ks_sampler_pick_wanted can pick as
 * ks_sampler_pick would from all logits; the arrays are the sampler's.  False when the whole row is
 * needed: top-k off or too large, or a long penalty. */
bool ks_sampler_want(ks_sampler *s, ks_token next, ks_head_request *out);
/* Picks from what the last request was told; next may have been accepted since, nothing else. */
ks_token ks_sampler_pick_wanted(ks_sampler *s);
/* Tells the sampler which token became part of the text (prompt tokens too, if they should count).
 */
void ks_sampler_accept(ks_sampler *s, ks_token id);
void ks_sampler_reset(ks_sampler *s, uint64_t seed);
/* Where its draws stand, to go on from there later; set leaves what was accepted alone. */
void ks_sampler_get_state(const ks_sampler *s, uint64_t out_state[2]);
void ks_sampler_set_state(ks_sampler *s, const uint64_t state[2]);

/* Turns pieces into text that is safe to show: holds back an unfinished UTF-8 sequence and anything
 * that may be the beginning of a stop string. */
typedef struct ks_text_stream ks_text_stream;
/* stops: n NUL-terminated strings, copied; may be 0. */
KS_CHECK ks_status ks_text_stream_new(ks_alloc *a, const char *const *stops, size_t n,
                                      ks_text_stream **out, ks_error *err);
void ks_text_stream_free(ks_text_stream *stream);
/* Adds a piece.  *out_text is valid until the next call; *out_stopped tells that a stop string was
 * met (its text and everything behind it is dropped). */
KS_CHECK ks_status ks_text_stream_push(ks_text_stream *stream, const char *piece, size_t n,
                                       const char **out_text, size_t *out_n, bool *out_stopped,
                                       ks_error *err);
/* What is held back now: pushed into a new stream with the same stop strings it is so again. */
const char *ks_text_stream_get_held(const ks_text_stream *stream, size_t *out_n);
/* What was held back, at the end of an answer; broken bytes come out as U+FFFD. */
KS_CHECK ks_status ks_text_stream_finish(ks_text_stream *stream, const char **out_text,
                                         size_t *out_n, ks_error *err);

KS_END_DECLS

/* ks-answer.h - how an answer is asked for and what came of it.
 * Plain values.  Threads: a copy belongs to its holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/sampler.h"

#include <glib.h>

G_BEGIN_DECLS

typedef struct KsAnswerOptions {
  ks_sampler_params sampler;
  guint max_tokens;      /* longest piece of answer, then it may be continued */
  char **stops;          /* NULL-terminated stop strings, or NULL */
  gboolean may_continue; /* hold back an unfinished character at the limit for the continuation */
} KsAnswerOptions;

KsAnswerOptions *ks_answer_options_new (void);
KsAnswerOptions *ks_answer_options_copy (const KsAnswerOptions *options);
void ks_answer_options_free (KsAnswerOptions *options); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsAnswerOptions, ks_answer_options_free)

typedef enum {
  KS_ANSWER_NONE,      /* nothing was generated: reading failed or was cancelled */
  KS_ANSWER_END,       /* the model ended it */
  KS_ANSWER_LIMIT,     /* max_tokens; can be continued */
  KS_ANSWER_STOP,      /* a stop string */
  KS_ANSWER_CANCELLED, /* can be continued */
  KS_ANSWER_FAILED     /* an error broke it off */
} KsAnswerEnd;

typedef struct {
  KsAnswerEnd end;
  guint n_prompt, n_answer;  /* tokens read and generated for this answer */
  double prompt_s, answer_s; /* seconds */
} KsAnswerInfo;

/* "end", "limit", ... */
const char *ks_answer_end_get_name (KsAnswerEnd end);

G_END_DECLS

/* ks-answer.c - see ks-answer.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-answer.h"

KsAnswerOptions *
ks_answer_options_new (void)
{
  KsAnswerOptions *options = g_new0 (KsAnswerOptions, 1);

  options->sampler = ks_sampler_default_params ();
  options->max_tokens = 512;
  return options;
}

KsAnswerOptions *
ks_answer_options_copy (const KsAnswerOptions *options)
{
  KsAnswerOptions *copy;

  g_return_val_if_fail (options != NULL, NULL);
  copy = g_memdup2 (options, sizeof *options);
  copy->stops = g_strdupv (options->stops);
  return copy;
}

void
ks_answer_options_free (KsAnswerOptions *options)
{
  if (options == NULL)
    return;
  g_strfreev (options->stops);
  g_free (options);
}

const char *
ks_answer_end_get_name (KsAnswerEnd end)
{
  switch (end) {
  case KS_ANSWER_END:
    return "end";
  case KS_ANSWER_LIMIT:
    return "limit";
  case KS_ANSWER_STOP:
    return "stop";
  case KS_ANSWER_CANCELLED:
    return "cancelled";
  case KS_ANSWER_FAILED:
    return "failed";
  default:
    return "none";
  }
}

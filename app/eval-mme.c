/* eval-mme.c - MME scoring; see eval-mme.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-mme.h"

#include "app/eval-text.h"

#include <string.h>

const char *const ks_eval_mme_tasks[KS_EVAL_MME_N_TASKS] = {
    "existence",
    "count",
    "position",
    "color",
    "posters",
    "celebrity",
    "scene",
    "landmark",
    "artwork",
    "OCR",
    "commonsense_reasoning",
    "numerical_calculation",
    "text_translation",
    "code_reasoning",
};

const char *
ks_eval_mme_answer_name (KsEvalMmeAnswer answer)
{
  return answer == KS_EVAL_MME_YES ? "yes" : answer == KS_EVAL_MME_NO ? "no" : "other";
}

/* A whole "yes" or "no" starts with itself, so looking at the first four code points covers it. */
static KsEvalMmeAnswer
parse_start (const char *text)
{
  const char *end = text;
  g_autofree char *start = NULL;

  for (guint i = 0; i < 4 && *end != '\0'; i++)
    end = g_utf8_next_char (end);
  start = g_strndup (text, (gsize)(end - text));
  if (strstr (start, "yes") != NULL)
    return KS_EVAL_MME_YES;
  return strstr (start, "no") != NULL ? KS_EVAL_MME_NO : KS_EVAL_MME_OTHER;
}

KsEvalMmeAnswer
ks_eval_mme_parse (const char *prediction, gboolean harness)
{
  g_autoptr (GString) valid = ks_eval_text_new (prediction);
  g_autoptr (GString) text = ks_eval_text_lower (valid->str);

  if (!harness) {
    for (gsize i = 0; i < text->len; i++)
      if (strchr ("\r\n\t", text->str[i]) != NULL)
        text->str[i] = ' ';
    return parse_start (text->str);
  }
  ks_eval_text_strip (text);
  ks_eval_text_replace (text, ".", "");
  if (g_utf8_strlen (text->str, -1) == 1)
    return text->str[0] == 'y'   ? KS_EVAL_MME_YES
           : text->str[0] == 'n' ? KS_EVAL_MME_NO
                                 : KS_EVAL_MME_OTHER;
  return parse_start (text->str);
}

gboolean
ks_eval_mme_is_correct (const char *prediction, const char *reference, gboolean harness)
{
  g_autoptr (GString) want = ks_eval_text_lower (reference);

  ks_eval_text_strip (want);
  return strcmp (ks_eval_mme_answer_name (ks_eval_mme_parse (prediction, harness)), want->str) ==
             0 &&
         strcmp (want->str, "other") != 0;
}

/* accuracy + share of images with both questions right, in percent each. */
static double
score_task (const KsEvalMmeItem *items, gsize n, const char *task, gboolean harness)
{
  g_autoptr (GHashTable) wrong =
      g_hash_table_new (g_str_hash, g_str_equal); /* image -> any wrong? */
  GHashTableIter iter;
  gpointer any_wrong;
  guint n_items = 0, n_correct = 0, n_whole = 0;

  for (gsize i = 0; i < n; i++) {
    gboolean ok, was_wrong;

    if (strcmp (items[i].category, task) != 0)
      continue;
    ok = ks_eval_mme_is_correct (items[i].prediction, items[i].reference, harness);
    was_wrong = GPOINTER_TO_INT (g_hash_table_lookup (wrong, items[i].image));
    g_hash_table_insert (wrong, (gpointer)items[i].image, GINT_TO_POINTER (was_wrong || !ok));
    n_items++;
    n_correct += ok;
  }
  if (n_items == 0)
    return -1.0;
  g_hash_table_iter_init (&iter, wrong);
  while (g_hash_table_iter_next (&iter, NULL, &any_wrong))
    n_whole += !GPOINTER_TO_INT (any_wrong);
  return 100.0 * n_correct / n_items + 100.0 * n_whole / g_hash_table_size (wrong);
}

gboolean
ks_eval_mme_aggregate (const KsEvalMmeItem *items, gsize n, gboolean harness,
                       double out_tasks[KS_EVAL_MME_N_TASKS], double *out_perception,
                       double *out_cognition, char **out_problem)
{
  double scores[KS_EVAL_MME_N_TASKS], sums[2] = {0.0, 0.0};

  for (gsize i = 0; i < n; i++) {
    gboolean known = FALSE;

    for (guint t = 0; t < KS_EVAL_MME_N_TASKS; t++)
      known = known || strcmp (items[i].category, ks_eval_mme_tasks[t]) == 0;
    if (!known) {
      *out_problem = g_strdup_printf ("MME has no subtask called %s", items[i].category);
      return FALSE;
    }
  }
  for (guint t = 0; t < KS_EVAL_MME_N_TASKS; t++) {
    scores[t] = score_task (items, n, ks_eval_mme_tasks[t], harness);
    if (scores[t] < 0.0) {
      *out_problem =
          g_strdup_printf ("the results hold no item of the subtask %s", ks_eval_mme_tasks[t]);
      return FALSE;
    }
    sums[t >= KS_EVAL_MME_N_PERCEPTION] += scores[t];
  }
  memcpy (out_tasks, scores, sizeof scores);
  *out_perception = sums[0];
  *out_cognition = sums[1];
  return TRUE;
}

/* eval-score.c - see eval-score.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-score.h"

#include "app/eval-aime.h"
#include "app/eval-mathvision.h"
#include "app/eval-mme.h"
#include "app/eval-overlap.h"
#include "app/eval-synth.h"
#include "app/eval-textvqa.h"
#include "app/eval-visual.h"
#include "app/ks-error.h"

#include <math.h>
#include <string.h>

typedef struct {
  const KsEvalRow *row;
  const char *text; /* the prediction as the scorer reads it */
  KsEvalScorer scorer;
  GArray *scores;       /* of KsEvalScore: the result */
  GHashTable *pictures; /* MME: cell and picture -> Pair */
} Scoring;

typedef struct {
  guint n, n_right;
} Pair;

static void
add_score (Scoring *scoring, const char *metric, double value)
{
  const KsEvalRow *row = scoring->row;
  KsEvalScore score = {.cell = row->cell,
                       .bench = row->bench,
                       .part = row->part,
                       .metric = g_intern_string (metric),
                       .id = row->id,
                       .group = row->group != NULL ? row->group : row->id,
                       .turn = row->turn,
                       .value = value};

  g_array_append_val (scoring->scores, score);
}

static gboolean
fail (const Scoring *scoring, const char *what, GError **error)
{
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "the row of item %s of %s %s",
               scoring->row->id, scoring->row->bench, what);
  return FALSE;
}

static gboolean
score_textvqa (Scoring *scoring, GError **error)
{
  char **expect = scoring->row->expect;
  double value =
      ks_eval_textvqa_score (scoring->text, (const char *const *)expect, g_strv_length (expect));

  if (value < 0)
    return fail (scoring, "does not have ten references", error);
  add_score (scoring, "accuracy", value);
  return TRUE;
}

static gboolean
score_mme (Scoring *scoring, GError **error)
{
  const KsEvalRow *row = scoring->row;
  gboolean right =
      ks_eval_mme_is_correct (scoring->text, row->expect[0], scoring->scorer == KS_EVAL_HARNESS);
  g_autofree char *key = ks_eval_cell_make_key (&row->cell), *name = NULL;
  Pair *pair;

  add_score (scoring, "accuracy", right);
  if (row->group == NULL)
    return fail (scoring, "does not say which picture it is about", error);
  name = g_strdup_printf ("%s\n%s", key, row->group);
  pair = g_hash_table_lookup (scoring->pictures, name);
  if (pair == NULL) {
    pair = g_new0 (Pair, 1);
    g_hash_table_insert (scoring->pictures, g_steal_pointer (&name), pair);
  }
  pair->n++;
  pair->n_right += right;
  if (pair->n == 2)
    add_score (scoring, "pair", pair->n_right == 2);
  return TRUE;
}

/* The reply goes to its scorer as it is: that one has a harness mode of its own. */
static gboolean
score_mathvision (Scoring *scoring, GError **error)
{
  static const char *const none[] = {NULL};
  const KsEvalRow *row = scoring->row;
  const char *const *options = row->options != NULL ? (const char *const *)row->options : none;

  add_score (scoring, "accuracy",
             ks_eval_mathvision_is_correct (row->prediction, row->expect[0], options,
                                            scoring->scorer == KS_EVAL_HARNESS));
  return TRUE;
}

static gboolean
score_aime (Scoring *scoring, GError **error)
{
  const char *answer = scoring->row->expect[0];

  add_score (scoring, "exact", ks_eval_aime_exact (scoring->text, answer));
  add_score (scoring, "int", ks_eval_aime_int (scoring->text, answer));
  return TRUE;
}

static gboolean
score_mmdu (Scoring *scoring, GError **error)
{
  const char *reference = scoring->row->expect[0];
  double images = ks_eval_overlap_images (scoring->text, reference);

  add_score (scoring, "proxy-f1", ks_eval_overlap_f1 (scoring->text, reference));
  add_score (scoring, "proxy-rouge-l", ks_eval_overlap_rouge_l (scoring->text, reference));
  if (images >= 0)
    add_score (scoring, "proxy-images", images);
  return TRUE;
}

static gboolean
score_recall (Scoring *scoring, GError **error)
{
  add_score (scoring, "recall",
             ks_eval_synth_score (scoring->text, (const char *const *)scoring->row->expect));
  return TRUE;
}

static gboolean
score_visual (Scoring *scoring, GError **error)
{
  const char *kind = scoring->row->bench;
  const char *const *metrics = ks_eval_visual_get_metrics (kind);

  for (guint i = 0; metrics[i] != NULL; i++)
    add_score (scoring, metrics[i],
               ks_eval_visual_score (kind, metrics[i], scoring->text,
                                     (const char *const *)scoring->row->expect));
  return TRUE;
}

static const struct {
  const char *bench;
  gboolean (*score) (Scoring *, GError **);
  const char *metrics[4];
} scorers[] = {
    {"textvqa", score_textvqa, {"accuracy"}},
    {"mme", score_mme, {"accuracy", "pair"}},
    {"mathvision", score_mathvision, {"accuracy"}},
    {"aime", score_aime, {"exact", "int"}},
    {"mmdu", score_mmdu, {"proxy-f1", "proxy-rouge-l", "proxy-images"}},
    {NULL, score_recall, {"recall"}},
};

static guint
find_scorer (const char *bench)
{
  guint i = 0;

  while (scorers[i].bench != NULL && strcmp (scorers[i].bench, bench) != 0)
    i++;
  return i;
}

const char *
ks_eval_scorer_get_name (KsEvalScorer scorer)
{
  return scorer == KS_EVAL_HARNESS ? "harness" : "official";
}

const char *const *
ks_eval_get_metrics (const char *bench)
{
  if (ks_eval_visual_is_kind (bench))
    return ks_eval_visual_get_metrics (bench);
  return scorers[find_scorer (bench)].metrics;
}

static void
add_values (Scoring *scoring)
{
  const KsEvalRow *row = scoring->row;
  double nll = ks_eval_row_get_value (row, "nll");
  double n_scored = ks_eval_row_get_value (row, "n_scored");

  for (guint i = 0; i < row->values->len; i++) {
    const KsEvalValue *at = &g_array_index (row->values, KsEvalValue, i);

    add_score (scoring, at->name, at->value);
  }
  if (!isnan (nll) && n_scored > 0)
    add_score (scoring, "loss", nll / n_scored);
}

static gboolean
score_row (Scoring *scoring, GError **error)
{
  const KsEvalRow *row = scoring->row;
  g_autofree char *answer = NULL;
  gboolean is_answer = row->stop[0] != '\0' || row->expect != NULL;

  add_values (scoring);
  if (!is_answer && row->values->len > 0)
    return TRUE; /* a measurement */
  if (row->expect == NULL || row->expect[0] == NULL)
    return fail (scoring, "has no reference: name the data with --data", error);
  if (scoring->scorer == KS_EVAL_HARNESS)
    answer = ks_eval_reasoning_answer (row->prediction);
  scoring->text = answer != NULL ? answer : row->prediction;
  if (ks_eval_visual_is_kind (row->bench))
    return score_visual (scoring, error);
  return scorers[find_scorer (row->bench)].score (scoring, error);
}

/* --- agreement --- */

static char *
make_place (const KsEvalRow *row)
{
  return g_strdup_printf ("%s\n%s\n%u\n%s", row->bench, row->id, row->turn, row->cell.question);
}

static gboolean
keeps_all (const KsEvalRow *row)
{
  return g_str_has_suffix (row->bench, "-forced") && row->cell.entries == 0;
}

/* Picks of references that were read: the part of positions where the full cache picks the same. */
static double
compare_picks (const char *a, const char *b)
{
  g_auto (GStrv) left = g_strsplit (a, " ", -1), right = g_strsplit (b, " ", -1);
  guint n = 0, n_same = 0;

  for (; left[n] != NULL && right[n] != NULL; n++)
    n_same += strcmp (left[n], right[n]) == 0;
  return n > 0 ? (double)n_same / n : 0;
}

static void
add_agreement (Scoring *scoring, GHashTable *full)
{
  const KsEvalRow *row = scoring->row;
  g_autofree char *place = make_place (row);
  const KsEvalRow *other = g_hash_table_lookup (full, place);

  if (other != NULL && other != row && g_str_has_suffix (row->bench, "-forced"))
    add_score (scoring, "agreement", compare_picks (row->prediction, other->prediction));
}

static GHashTable *
find_full (const GPtrArray *rows)
{
  GHashTable *full = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < rows->len; i++) {
    KsEvalRow *row = g_ptr_array_index (rows, i);

    if (keeps_all (row))
      g_hash_table_insert (full, make_place (row), row);
  }
  return full;
}

GArray *
ks_eval_score_rows (const GPtrArray *rows, KsEvalScorer scorer, GError **error)
{
  g_autoptr (GArray) scores = g_array_new (FALSE, TRUE, sizeof (KsEvalScore));
  g_autoptr (GHashTable) pictures = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_autoptr (GHashTable) full = find_full (rows);

  for (guint i = 0; i < rows->len; i++) {
    Scoring scoring = {.row = g_ptr_array_index (rows, i),
                       .scorer = scorer,
                       .scores = scores,
                       .pictures = pictures};

    if (!score_row (&scoring, error))
      return NULL;
    add_agreement (&scoring, full);
  }
  return g_steal_pointer (&scores);
}

static void
complete_row (KsEvalRow *row, const KsEvalItem *item)
{
  const KsEvalTurn *turn =
      row->turn < item->turns->len ? g_ptr_array_index (item->turns, row->turn) : NULL;

  if (row->part[0] == '\0')
    row->part = item->part;
  if (row->group == NULL)
    row->group = g_strdup (item->group);
  if (row->expect == NULL && turn != NULL)
    row->expect = g_strdupv (turn->expect);
  if (row->options == NULL)
    row->options = g_strdupv (item->options);
}

void
ks_eval_score_complete (GPtrArray *rows, const GPtrArray *items)
{
  g_autoptr (GHashTable) by_name = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < items->len; i++) {
    KsEvalItem *item = g_ptr_array_index (items, i);

    g_hash_table_insert (by_name, g_strdup_printf ("%s\n%s", item->bench, item->id), item);
  }
  for (guint i = 0; i < rows->len; i++) {
    KsEvalRow *row = g_ptr_array_index (rows, i);
    g_autofree char *name = g_strdup_printf ("%s\n%s", row->bench, row->id);
    const KsEvalItem *item = g_hash_table_lookup (by_name, name);

    if (item != NULL)
      complete_row (row, item);
  }
}

/* cli-bench-dilution-measure.c - texts around one sentence of evidence, and where attention goes
 * (see cli-bench-dilution.h).  Sentences come from the generators of the made-up text tests and of
 * bench recall; which tokens are the evidence is found in the text of the tokens themselves. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench-dilution.h"

#include "app/cli-bench-recall-data.h"
#include "app/eval-synth-internal.h"
#include "app/ks-error.h"

#include <math.h>
#include <string.h>

#define N_SINK 4u
#define N_WINDOW 32u
#define SIMILAR_EVERY 4u

/* --- texts --- */

void
dilution_item_free (DilutionItem *item)
{
  if (item == NULL)
    return;
  g_array_unref (item->text);
  g_array_unref (item->question);
  g_free (item->expect);
  g_free (item);
}

static BenchRecallPrompt *
make_fact (guint64 seed, guint index)
{
  BenchRecallSpec spec = {.seed = seed, .index = index, .n_word = 20, .n_fact = 1, .n_ask = 1};

  return bench_recall_prompt_make (&spec);
}

/* About something else than the evidence. (transfer full) */
static char *
make_similar (guint64 seed, guint index, guint number, const BenchRecallPrompt *evidence)
{
  for (guint attempt = 0;; attempt++) {
    g_autoptr (BenchRecallPrompt) other =
        make_fact (seed + 1000003, index * 100003 + number * 101 + attempt);

    if (!g_str_equal (other->question, evidence->question))
      return g_strdup (g_array_index (other->questions, BenchRecallQuestion, 0).statement);
  }
}

static char *
make_text (guint64 seed, guint index, guint n_sentence, const BenchRecallPrompt *evidence)
{
  GString *text = g_string_new (NULL);
  KsEvalRandom random = ks_eval_random (seed, index);

  for (guint i = 0; i < n_sentence; i++) {
    g_autofree char *sentence = i % SIMILAR_EVERY == SIMILAR_EVERY - 1
                                    ? make_similar (seed, index, i, evidence)
                                    : ks_synth_make_sentence (&random);

    if (i == n_sentence / 2)
      g_string_append_printf (
          text, "%s ", g_array_index (evidence->questions, BenchRecallQuestion, 0).statement);
    g_string_append_printf (text, "%s ", sentence);
  }
  return g_string_free (text, FALSE);
}

static gboolean
encode (KsEngineSetup *setup, const ks_chat_message *messages, gsize n, uint32_t options,
        GArray *ids, GError **error)
{
  ks_token_list list;
  ks_error err = {0};
  gboolean ok;

  ks_token_list_init (&list, setup->alloc);
  ok = ks_error_check (ks_chat_encode (ks_engine_setup_get_chat_template (setup),
                                       ks_model_get_tokenizer (setup->model), messages, n, options,
                                       &list, &err),
                       &err, error);
  if (ok)
    g_array_append_vals (ids, list.ids, (guint)list.n);
  ks_token_list_done (&list);
  return ok;
}

/* The tokens whose text overlaps statement. */
static gboolean
find_evidence (KsEngineSetup *setup, DilutionItem *item, const char *statement, GError **error)
{
  const ks_tokenizer *tok = ks_model_get_tokenizer (setup->model);
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree gsize *ends = g_new (gsize, item->text->len);
  const char *at;
  gsize begin, end;

  for (guint i = 0; i < item->text->len; i++) {
    size_t n = 0;
    const char *piece =
        ks_tokenizer_get_piece (tok, g_array_index (item->text, ks_token, i), false, &n);

    g_string_append_len (text, piece, (gssize)n);
    ends[i] = text->len;
  }
  at = strstr (text->str, statement);
  if (at == NULL) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "the tokens of this model do not give back the text: the evidence cannot "
                         "be found among them");
    return FALSE;
  }
  begin = (gsize)(at - text->str);
  end = begin + strlen (statement);
  while (ends[item->evidence_begin] <= begin)
    item->evidence_begin++;
  item->evidence_end = item->evidence_begin;
  while (item->evidence_end < item->text->len && ends[item->evidence_end] < end)
    item->evidence_end++;
  item->evidence_end++;
  return TRUE;
}

DilutionItem *
dilution_item_make (KsEngineSetup *setup, guint64 seed, guint index, guint n_sentence,
                    GError **error)
{
  static const char reply[] = "I have read it.";
  g_autoptr (BenchRecallPrompt) evidence = make_fact (seed, index);
  g_autofree char *text = make_text (seed, index, n_sentence, evidence);
  ks_chat_message messages[2] = {
      {.role = KS_ROLE_USER, .text = text, .n_bytes = strlen (text)},
      {.role = KS_ROLE_ASSISTANT, .text = reply, .n_bytes = sizeof reply - 1}};
  ks_chat_message question = {
      .role = KS_ROLE_USER, .text = evidence->question, .n_bytes = strlen (evidence->question)};
  DilutionItem *item = g_new0 (DilutionItem, 1);

  item->text = g_array_new (FALSE, FALSE, sizeof (ks_token));
  item->question = g_array_new (FALSE, FALSE, sizeof (ks_token));
  item->expect = g_strdup (evidence->value);
  if (encode (setup, messages, 2, KS_CHAT_FIRST, item->text, error) &&
      encode (setup, &question, 1, KS_CHAT_GENERATE, item->question, error) &&
      find_evidence (setup, item,
                     g_array_index (evidence->questions, BenchRecallQuestion, 0).statement, error))
    return item;
  dilution_item_free (item);
  return NULL;
}

/* --- attention --- */

DilutionClass
dilution_item_classify (const DilutionItem *item, const KsEngineSetup *setup, guint pos)
{
  const ks_tokenizer *tok = ks_model_get_tokenizer (setup->model);
  guint n_text = item->text->len, n_seen = n_text + item->question->len;

  if (pos >= item->evidence_begin && pos < item->evidence_end)
    return DILUTION_EVIDENCE;
  if (pos >= n_text)
    return DILUTION_QUESTION;
  if (pos < N_SINK ||
      ks_tokenizer_get_type (tok, g_array_index (item->text, ks_token, pos)) == KS_TOKEN_CONTROL)
    return DILUTION_SINK;
  return pos + N_WINDOW >= n_seen ? DILUTION_WINDOW : DILUTION_REST;
}

typedef struct {
  double mass[DILUTION_N_CLASS];
  guint n[DILUTION_N_CLASS];
  double entropy;
} StreamFacts;

static void
sum_stream (const DilutionClass *classes, const double *weights, const guint32 *pos, guint n,
            StreamFacts *out)
{
  memset (out, 0, sizeof *out);
  for (guint i = 0; i < n; i++) {
    DilutionClass kind = classes[pos[i]];

    out->mass[kind] += weights[i];
    out->n[kind]++;
    if (weights[i] > 0)
      out->entropy -= weights[i] * log (weights[i]);
  }
}

static double
get_share (double evidence, double rest)
{
  return evidence + rest > 0 ? evidence / (evidence + rest) : 0;
}

typedef struct {
  DilutionFacts sum;
  double top_rest, kept_evidence, kept;
  double gain;
  guint n_gain, n_top;
} Totals;

static void
add_stream (Totals *totals, const StreamFacts *facts, guint n, gboolean is_top)
{
  double evidence = facts->mass[DILUTION_EVIDENCE], rest = facts->mass[DILUTION_REST];
  guint n_evidence = facts->n[DILUTION_EVIDENCE], n_rest = facts->n[DILUTION_REST];

  for (guint kind = 0; kind < DILUTION_N_CLASS; kind++)
    totals->sum.mass[kind] += facts->mass[kind];
  totals->sum.share += get_share (evidence, rest);
  totals->sum.entropy += facts->entropy;
  totals->sum.n_effective += exp (facts->entropy);
  totals->kept_evidence += n_evidence;
  totals->kept += n;
  if (n_evidence > 0 && n_rest > 0 && evidence > 0 && rest > 0) {
    totals->gain += log (evidence / n_evidence) - log (rest / n_rest);
    totals->n_gain++;
  }
  if (is_top) {
    totals->sum.top_mass += evidence;
    totals->sum.top_share += get_share (evidence, rest);
    totals->n_top++;
  }
}

static void
finish (const Totals *totals, const DilutionItem *item, guint n_stream, DilutionFacts *out)
{
  *out = totals->sum;
  for (guint kind = 0; kind < DILUTION_N_CLASS; kind++)
    out->mass[kind] /= n_stream;
  out->share /= n_stream;
  out->entropy /= n_stream;
  out->n_effective /= n_stream;
  out->gain = totals->n_gain > 0 ? totals->gain / totals->n_gain : NAN;
  out->recall =
      totals->kept_evidence / ((double)(item->evidence_end - item->evidence_begin) * n_stream);
  out->precision = totals->kept > 0 ? totals->kept_evidence / totals->kept : 0;
  out->top_mass = totals->n_top > 0 ? out->top_mass / totals->n_top : NAN;
  out->top_share = totals->n_top > 0 ? out->top_share / totals->n_top : NAN;
}

gboolean
dilution_measure (KsEngineSetup *setup, ks_timeline *tl, const DilutionItem *item,
                  const gboolean *top, double *stream_mass, DilutionFacts *out, GError **error)
{
  guint n_head = setup->layout.n_kv_head, n_stream = setup->layout.n_layer * n_head;
  guint n_seen = ks_timeline_get_seen (tl);
  g_autofree DilutionClass *classes = g_new (DilutionClass, n_seen);
  g_autofree double *weights = g_new (double, n_seen);
  g_autofree guint32 *pos = g_new (guint32, n_seen);
  ks_kv_stats stats;
  Totals totals = {0};
  ks_error err = {0};

  for (guint i = 0; i < n_seen; i++)
    classes[i] = dilution_item_classify (item, setup, i);
  ks_timeline_get_stats (tl, &stats);
  for (guint s = 0; s < n_stream; s++) {
    guint n = stats.by_stream[s];
    StreamFacts facts;

    if (!ks_error_check (
            ks_timeline_read_attention (tl, s / n_head, s % n_head, weights, pos, &err), &err,
            error))
      return FALSE;
    sum_stream (classes, weights, pos, n, &facts);
    add_stream (&totals, &facts, n, top != NULL && top[s]);
    if (stream_mass != NULL)
      stream_mass[s] += facts.mass[DILUTION_EVIDENCE];
  }
  finish (&totals, item, n_stream, out);
  return TRUE;
}

/* cli-bench-recall-data.c - see cli-bench-recall-data.h.
 * Numbers come from splitmix64, so that the series does not depend on a library's generator. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench-recall-data.h"

#include "app/cli-bench-recall-words.h"

#include <string.h>

#define MIN_FACTS 3u
#define MAX_FACTS 9u
#define MAX_LIST 64u /* subjects of one kind, paragraphs */

typedef struct {
  guint64 state;
} Random;

static guint64
next_random (Random *random)
{
  guint64 z = (random->state += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15));

  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static guint
pick (Random *random, guint n)
{
  return (guint)(next_random (random) % n);
}

/* The first n of a random order of 0 .. n_all-1. */
static void
shuffle (Random *random, guint *order, guint n_all)
{
  for (guint i = 0; i < n_all; i++)
    order[i] = i;
  for (guint i = n_all; i > 1; i--) {
    guint j = pick (random, i), t = order[i - 1];

    order[i - 1] = order[j];
    order[j] = t;
  }
}

static char *
make_value (Random *random, const BenchRecallFamily *family, BenchValueKind kind)
{
  if (kind == BENCH_VALUE_CODE)
    return g_strdup_printf ("%u", 1000 + pick (random, 9000));
  if (kind == BENCH_VALUE_ROOM)
    return g_strdup_printf ("%u", 100 + pick (random, 900));
  return g_strdup (family->values[kind].words[pick (random, family->values[kind].n)]);
}

static char *
fill (const char *pattern, const char *subject, const char *value)
{
  GString *out = g_string_new (pattern);

  g_string_replace (out, "%1", subject, 0);
  g_string_replace (out, "%2", value, 0);
  return g_string_free (out, FALSE);
}

static guint
count_words (const char *text)
{
  guint n = 0;

  for (const char *p = text; *p != '\0'; p++)
    n += *p == ' ' || *p == '\n';
  return n + 1;
}

/* Subjects are used once in a prompt: two facts of one kind about one subject would contradict. */
typedef struct {
  const BenchRecallFamily *family;
  guint order[BENCH_N_SUBJECT][MAX_LIST];
} Subjects;

static const BenchFactKind *
pick_kind (Random *random, const BenchRecallFamily *family, guint i)
{
  const BenchFactKind *kind;

  /* There are more persons than places and things: later facts are about persons. */
  do
    kind = &family->kinds[pick (random, family->n_kind)];
  while (i >= family->subjects[kind->subject].n);
  return kind;
}

/* Which question, if any, is about fact i. */
static gboolean
is_asked (const BenchRecallPrompt *prompt, guint n_ask, guint i, guint *out_question)
{
  *out_question = 0;
  if (n_ask <= 1)
    return i == prompt->fact_at;
  *out_question = i * n_ask / prompt->n_fact;
  return (*out_question * 2 + 1) * prompt->n_fact / (2 * n_ask) == i;
}

static void
add_fact (BenchRecallPrompt *prompt, Random *random, const Subjects *subjects, guint n_ask, guint i,
          GString *text)
{
  const BenchRecallFamily *family = subjects->family;
  const BenchFactKind *kind = pick_kind (random, family, i);
  const char *subject = family->subjects[kind->subject].words[subjects->order[kind->subject][i]];
  char *value = make_value (random, family, kind->value);
  g_autofree char *statement =
      fill (kind->statements[pick (random, G_N_ELEMENTS (kind->statements))], subject, value);
  BenchRecallQuestion question = {.fact_at = i};
  guint number;

  g_string_append (text, statement);
  if (is_asked (prompt, n_ask, i, &number)) {
    question.statement = g_steal_pointer (&statement);
    question.question = fill (kind->question, subject, value);
    question.value = value;
    g_array_append_val (prompt->questions, question);
  } else {
    g_free (value);
  }
}

static void
shuffle_subjects (Random *random, Subjects *subjects)
{
  for (guint kind = 0; kind < BENCH_N_SUBJECT; kind++)
    shuffle (random, subjects->order[kind], subjects->family->subjects[kind].n);
}

static void
clear_question (gpointer data)
{
  BenchRecallQuestion *question = data;

  g_free (question->statement);
  g_free (question->question);
  g_free (question->value);
}

BenchRecallPrompt *
bench_recall_prompt_make (const BenchRecallSpec *spec)
{
  BenchRecallPrompt *prompt = g_new0 (BenchRecallPrompt, 1);
  Random random = {spec->seed * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15) + spec->index * 1000003u +
                   1};
  GString *text = g_string_new (NULL);
  Subjects subjects = {spec->other_words ? &bench_recall_other : &bench_recall_plain, {{0}}};
  guint order[MAX_LIST], n_filler = 0, n_words = 0, n_done = 0;

  g_assert (spec->n_word > 0); /* no paragraph, no place for a fact */
  (void)next_random (&random);
  prompt->questions = g_array_new (FALSE, FALSE, sizeof (BenchRecallQuestion));
  g_array_set_clear_func (prompt->questions, clear_question);
  prompt->n_fact = MIN_FACTS + pick (&random, MAX_FACTS - MIN_FACTS + 1);
  if (spec->n_fact > 0)
    prompt->n_fact = MIN (spec->n_fact, BENCH_RECALL_MAX_FACTS);
  prompt->fact_at = pick (&random, prompt->n_fact);
  shuffle (&random, order, bench_recall_fillers.n);
  shuffle_subjects (&random, &subjects);
  while (n_words < spec->n_word && n_filler < bench_recall_fillers.n)
    n_words += count_words (bench_recall_fillers.words[order[n_filler++]]);
  for (guint i = 0; i < n_filler; i++) {
    /* Facts are spread evenly; each stands behind a paragraph as one of its own. */
    guint n_due = (i + 1) * prompt->n_fact / n_filler;

    g_string_append (text, bench_recall_fillers.words[order[i]]);
    g_string_append (text, "\n\n");
    for (; n_done < n_due; n_done++) {
      add_fact (prompt, &random, &subjects, MIN (spec->n_ask, prompt->n_fact), n_done, text);
      g_string_append (text, "\n\n");
    }
  }
  prompt->text = g_string_free (text, FALSE);
  prompt->question = g_array_index (prompt->questions, BenchRecallQuestion, 0).question;
  prompt->value = g_array_index (prompt->questions, BenchRecallQuestion, 0).value;
  return prompt;
}

BenchRecallPrompt *
bench_recall_prompt_new (guint64 seed, guint index, guint n_word)
{
  BenchRecallSpec spec = {.seed = seed, .index = index, .n_word = n_word};

  return bench_recall_prompt_make (&spec);
}

void
bench_recall_prompt_free (BenchRecallPrompt *prompt)
{
  if (prompt == NULL)
    return;
  g_free (prompt->text);
  g_array_unref (prompt->questions);
  g_free (prompt);
}

gboolean
bench_recall_is_right (const char *answer, const char *value)
{
  g_autofree char *in = g_utf8_casefold (answer, -1), *want = g_utf8_casefold (value, -1);
  gsize n = strlen (want);

  for (const char *at = strstr (in, want); at != NULL; at = strstr (at + 1, want)) {
    gboolean begins = at == in || !g_ascii_isalnum (at[-1]);

    if (begins && !g_ascii_isalnum (at[n]))
      return TRUE;
  }
  return FALSE;
}

/* test-eval-session.c - items asked of tiny models: rows say what happened, budgets hold, a stopped
 * run goes on without asking twice, references are read as the engine would foresee them. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-batch.h"
#include "app/ks-engine.h"
#include "app/ks-error.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

typedef struct {
  KsEngine *engine;
  char *folder, *path;
} Fixture;

static void
load (Fixture *f, const char *family, gboolean sees)
{
  g_autoptr (KsEngineOptions) options = ks_engine_options_new ();
  const char *cases = g_getenv ("KS_TEST_CASES");
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (GError) error = NULL;

  options->model_path = g_build_filename (cases, family, "model.gguf", NULL);
  if (sees)
    options->mmproj_path = g_build_filename (cases, family, "mmproj.gguf", NULL);
  else
    options->gate_path = g_build_filename (cases, "dbtrimkv", "gate_tied.safetensors", NULL);
  options->policy = KS_POLICY_FULL;
  options->budget.entries = 1024;
  options->mode = KS_COMPUTE_EXACT;
  options->n_thread = 1;
  options->chunk = 32;
  f->engine = ks_engine_new ();
  job = ks_engine_load (f->engine, options);
  g_assert_true (ks_engine_job_wait (job, &error));
  g_assert_no_error (error);
  f->folder = g_dir_make_tmp ("keepsake-eval-session-XXXXXX", NULL);
  f->path = g_build_filename (f->folder, "run.jsonl", NULL);
}

static void
set_up (Fixture *f, gconstpointer data)
{
  load (f, "llama", FALSE);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_object_unref (f->engine);
  g_unlink (f->path);
  g_rmdir (f->folder);
  g_free (f->path);
  g_free (f->folder);
}

static void
run (Fixture *f, KsEngineJobFunc func, gpointer data)
{
  g_autoptr (KsEngineJob) job = ks_engine_job_new (func, data, NULL);
  g_autoptr (GError) error = NULL;

  ks_engine_push (f->engine, job);
  ks_engine_job_wait (job, &error);
  g_assert_no_error (error);
}

static KsEvalItem *
make_item (const char *id, guint n_told)
{
  KsEvalItem *item = ks_eval_item_new ("needle", "p", id);
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; i < n_told; i++)
    g_string_append (text, "abcdefgh ");
  ks_eval_item_add_turn (item, text->str, "read");
  ks_eval_turn_add_expected (ks_eval_item_add_turn (item, "what?", NULL), "yes");
  ks_eval_turn_add_expected (ks_eval_item_add_turn (item, "and?", NULL), "no");
  return item;
}

static GPtrArray *
ask (KsEngineSetup *setup, const KsEvalCell *cell, const KsEvalItem *item, const KsEvalAsk *how)
{
  GPtrArray *rows = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_row_free);
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEvalSession) session = ks_eval_session_new (setup, cell, &error);

  g_assert_no_error (error);
  ks_eval_session_ask (session, item, how, rows, &error);
  g_assert_no_error (error);
  return rows;
}

/* Two answers, two rows; under a budget fewer entries than with everything kept, and the same
 * numbers of tokens read; twice the same. */
static gboolean
ask_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  KsEvalCell full = ks_eval_cell ("full", 0), kept = ks_eval_cell ("dbtrimkv:pin-first=0", 16);
  KsEvalAsk how = {.max_new = 8, .job = job};
  g_autoptr (KsEvalItem) item = make_item ("one", 40);
  g_autoptr (GPtrArray) all = ask (setup, &full, item, &how), some = ask (setup, &kept, item, &how);
  g_autoptr (GPtrArray) again = ask (setup, &kept, item, &how);
  guint64 n_stream = (guint64)setup->layout.n_layer * setup->layout.n_kv_head;

  g_assert_cmpuint (all->len, ==, 2);
  g_assert_cmpuint (some->len, ==, 2);
  for (guint i = 0; i < 2; i++) {
    const KsEvalRow *a = g_ptr_array_index (all, i), *b = g_ptr_array_index (some, i);
    const KsEvalRow *c = g_ptr_array_index (again, i);

    g_assert_cmpuint (a->turn, ==, i + 1);
    g_assert_cmpstr (a->expect[0], ==, i == 0 ? "yes" : "no");
    g_assert_cmpuint (a->n_new, <=, 8);
    g_assert_true (a->stop == g_intern_string ("eos") || a->stop == g_intern_string ("length"));
    if (i == 0)
      g_assert_cmpuint (a->n_prompt, ==, b->n_prompt);
    g_assert_cmpuint (b->n_peak, <, a->n_peak);
    g_assert_cmpuint (b->n_peak, <=, (16 + 32) * n_stream); /* M and a pass */
    g_assert_cmpuint (b->peak_bytes, ==,
                      b->n_peak * setup->layout.page_bytes / setup->layout.page_entries);
    g_assert_cmpstr (b->prediction, ==, c->prediction);
    g_assert_true (g_utf8_validate (b->prediction, -1, NULL));
  }
  g_assert_cmpuint (((const KsEvalRow *)g_ptr_array_index (all, 0))->n_prompt, >, 100);
  return TRUE;
}

static void
test_ask (Fixture *f, gconstpointer data)
{
  run (f, ask_job, NULL);
}

/* Loss of references: finite, the same in passes of 32 however long they are; without eviction the
 * picks of a cell with room for all are those of the full cache. */
static gboolean
forced_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  KsEvalCell full = ks_eval_cell ("full", 0), roomy = ks_eval_cell ("streaming", 900);
  KsEvalAsk how = {.forced = TRUE, .job = job};
  g_autoptr (KsEvalItem) item = ks_eval_item_new ("mmdu", "", "x");
  KsEvalTurn *turn = ks_eval_item_add_turn (item, "tell me", NULL);
  g_autoptr (GPtrArray) a = NULL, b = NULL;
  const KsEvalRow *one, *two;
  g_auto (GStrv) picks = NULL;
  double n_scored;

  ks_eval_turn_add_expected (
      turn,
      "a reference that is long enough for more than one pass of tokens, as it should be here");
  a = ask (setup, &full, item, &how);
  b = ask (setup, &roomy, item, &how);
  one = g_ptr_array_index (a, 0);
  two = g_ptr_array_index (b, 0);
  n_scored = ks_eval_row_get_value (one, "n_scored");
  g_assert_cmpstr (one->bench, ==, "mmdu-forced");
  g_assert_cmpfloat (n_scored, >, 32);
  picks = g_strsplit (one->prediction, " ", -1);
  g_assert_cmpuint (g_strv_length (picks), ==, (guint)n_scored);
  g_assert_cmpstr (one->prediction, ==, two->prediction);
  g_assert_cmpfloat_with_epsilon (ks_eval_row_get_value (one, "nll"),
                                  ks_eval_row_get_value (two, "nll"), 1e-9);
  g_assert_cmpfloat (ks_eval_row_get_value (one, "nll"), >, 0.1 * n_scored);
  g_assert_true (isfinite (ks_eval_row_get_value (one, "nll")));
  return TRUE;
}

static void
test_forced (Fixture *f, gconstpointer data)
{
  run (f, forced_job, NULL);
}

static void
count_cb (const KsEvalCell *cell, guint n_done, guint n_total, gpointer user)
{
  (*(guint *)user)++;
}

/* Cells of a grid; a run that is there already asks nothing; one more item asks that one alone. */
static gboolean
batch_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Fixture *f = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  char *policies[] = {(char *)"full", (char *)"random", (char *)"streaming", NULL};
  char *modes[] = {(char *)"chunked", NULL}, *questions[] = {(char *)"after", NULL};
  const guint64 entries[] = {16, 32}, seeds[] = {1, 2, 3};
  KsEvalGrid grid = {.policies = policies,
                     .modes = modes,
                     .questions = questions,
                     .budget = "fixed",
                     .entries = entries,
                     .seeds = seeds,
                     .n_entries = 2,
                     .n_seed = 3};
  g_autoptr (GArray) cells = ks_eval_grid_make_cells (&grid, error);
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_item_free);
  guint n_asked = 0;
  KsEvalBatch batch = {.items = items,
                       .cells = cells,
                       .ask = {.max_new = 2, .job = job},
                       .progress = count_cb,
                       .user = &n_asked};
  cJSON *header = ks_eval_batch_make_header (setup, "ab", NULL, NULL);

  g_assert_cmpuint (cells->len, ==, 1 + 2 * 3 + 2);
  g_ptr_array_add (items, make_item ("one", 10));
  for (guint i = 0; i < 3; i++) {
    g_autoptr (KsEvalRunFile) file = ks_eval_run_file_open (f->path, header, error);

    g_assert_nonnull (file);
    n_asked = 0;
    g_assert_true (ks_eval_batch_run (&batch, setup, file, error));
    g_assert_cmpuint (n_asked, ==, i == 1 ? 0 : 9);
    g_assert_cmpuint (ks_eval_run_file_get_rows (file)->len, ==, i < 2 ? 18 : 36);
    if (i == 1)
      g_ptr_array_add (items, make_item ("two", 10));
  }
  cJSON_Delete (header);
  return TRUE;
}

static void
test_batch (Fixture *f, gconstpointer data)
{
  run (f, batch_job, f);
}

static void
expect_refused (KsEngineSetup *setup, const char *policy, guint64 entries, const char *words)
{
  KsEvalCell cell = ks_eval_cell (policy, entries);
  g_autoptr (GError) error = NULL;

  g_assert_null (ks_eval_session_new (setup, &cell, &error));
  if (error == NULL || strstr (error->message, words) == NULL)
    g_error ("%s: '%s'", policy, error != NULL ? error->message : "taken");
}

/* What cannot be is told before anything is read. */
static gboolean
refused_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  KsEngineSetup *setup = ks_engine_get_setup (engine);

  expect_refused (setup, "nothing", 16, "no policy");
  expect_refused (setup, "full", 16, "no budget");
  expect_refused (setup, "random", 0, "needs a budget");
  expect_refused (setup, "random:colour=3", 16, "colour");
  expect_refused (setup, "random:pin-first=x", 16, "whole number");
  return TRUE;
}

static void
test_refused (Fixture *f, gconstpointer data)
{
  run (f, refused_job, NULL);
}

/* A picture as file and as base64 text reads as the same tokens and gives the same answer; two
 * pictures take more. */
static gboolean
pictures_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  KsEvalCell cell = ks_eval_cell ("full", 0);
  KsEvalAsk how = {.max_new = 4, .job = job};
  g_autofree char *path =
      g_build_filename (g_getenv ("KS_TEST_CASES"), "idefics3", "img0.png", NULL);
  g_autofree char *content = NULL, *text = NULL;
  guint n_prompt[3];
  g_autofree char *first = NULL;
  gsize n = 0;

  g_assert_true (g_file_get_contents (path, &content, &n, NULL));
  text = g_base64_encode ((const guchar *)content, n);
  for (guint i = 0; i < 3; i++) {
    g_autoptr (KsEvalItem) item = ks_eval_item_new ("textvqa", "", "p");
    g_autoptr (GBytes) bytes = g_bytes_new (text, strlen (text));
    KsEvalTurn *turn = ks_eval_item_add_turn (item, "what is it?", NULL);
    g_autoptr (GPtrArray) rows = NULL;
    const KsEvalRow *row;

    if (i != 1)
      ks_eval_turn_add_picture (turn, path);
    if (i != 0)
      ks_eval_turn_add_base64 (turn, bytes);
    rows = ask (setup, &cell, item, &how);
    row = g_ptr_array_index (rows, 0);
    n_prompt[i] = row->n_prompt;
    if (i == 0)
      first = g_strdup (row->prediction);
    else if (i == 1)
      g_assert_cmpstr (row->prediction, ==, first);
  }
  g_assert_cmpuint (n_prompt[0], ==, n_prompt[1]);
  g_assert_cmpuint (n_prompt[2], >, n_prompt[0] + 4);
  return TRUE;
}

static void
test_pictures (void)
{
  Fixture f = {0};

  load (&f, "idefics3", TRUE);
  run (&f, pictures_job, NULL);
  tear_down (&f, NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/eval-session/ask", Fixture, NULL, set_up, test_ask, tear_down);
  g_test_add ("/eval-session/forced", Fixture, NULL, set_up, test_forced, tear_down);
  g_test_add ("/eval-session/batch", Fixture, NULL, set_up, test_batch, tear_down);
  g_test_add ("/eval-session/refused", Fixture, NULL, set_up, test_refused, tear_down);
  g_test_add_func ("/eval-session/pictures", test_pictures);
  return g_test_run ();
}

/* cli-bench-policies-run.c - the runner of keepsake-cli bench policies (see cli-bench-policies.h).
 * Faithful cells share most of their reading: all but the last pass of a text is read once without
 * forgetting and kept as a snapshot; every cell reads the last pass under its own policy, whose
 * queries are what policies judge by, and cuts once.  H2O, which counts all queries, reads by
 * itself.  After the cut nothing more is forgotten.  Chunked cells read and forget as sessions do,
 * to the end of the answer. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench-policies.h"

#include "app/eval-session.h"
#include "app/eval-stats.h"
#include "app/ks-error.h"
#include "engine/snapshot.h"

#include <string.h>

/* A gate with a timeline of its own on the one pool; only one of them holds entries at a time. */
typedef struct {
  const char *name; /* interned; NULL = the model's own */
  ks_gate *gate;    /* owned unless it is the model's own */
  ks_timeline *tl;
} Gate;

struct _BenchRunner {
  KsEngineSetup *setup;
  KsEngineJob *job;
  guint n_answer, n_vocab;
  guint64 n_stream;
  GPtrArray *gates;
  /* Of the item and cell at hand. */
  KsEvalRunFile *file;
  const BenchItem *item;
  guint64 n_peak;
  double read_s;
  /* Of the loss at hand. */
  const ks_token *scored;
  guint n_scored;
  double nll;
};

/* --- cells --- */

gboolean
bench_cell_parse (const char *text, guint64 entries, const char *mode, BenchCell *out,
                  GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", -1);
  g_autoptr (GString) plain = g_string_new (NULL);
  BenchCell cell = {0};

  for (guint i = 0; parts[i] != NULL; i++) {
    if (i > 0 && g_str_has_prefix (parts[i], "gate=") && parts[i][5] != '\0')
      cell.gate = g_intern_string (parts[i] + 5);
    else
      g_string_append_printf (plain, "%s%s", plain->len > 0 ? ":" : "", parts[i]);
  }
  if (!ks_eval_policy_parse (plain->str, mode, &cell.evict, error))
    return FALSE;
  if (ks_policy_never_evicts (cell.evict.policy))
    entries = 0;
  cell.cell = ks_eval_cell (text, entries);
  cell.cell.mode = g_intern_string (mode);
  cell.cell.question = g_intern_static_string ("after");
  *out = cell;
  return TRUE;
}

static const Gate *
find_gate (const BenchRunner *runner, const char *name)
{
  for (guint i = 0; i < runner->gates->len; i++) {
    const Gate *gate = g_ptr_array_index (runner->gates, i);

    if (gate->name == name)
      return gate;
  }
  return NULL;
}

const char *
bench_runner_get_policy_of_gate (const BenchRunner *runner, const char *name)
{
  const Gate *gate = find_gate (runner, name != NULL ? g_intern_string (name) : NULL);

  if (gate == NULL || gate->gate == NULL)
    return NULL;
  if (ks_gate_is_locret (gate->gate))
    return "locret";
  if (ks_gate_is_local (gate->gate))
    return "trimkv";
  return ks_gate_is_tied (gate->gate) ? "dbtrimkv" : "untied";
}

gboolean
bench_item_is_done (const BenchItem *item, const BenchCell *cell, const KsEvalRunFile *file)
{
  for (guint i = 0; i < item->asks->len; i++)
    if (!ks_eval_run_file_has (file, &cell->cell, item->bench, item->id, i))
      return FALSE;
  return item->asks->len > 0 || ks_eval_run_file_has (file, &cell->cell, item->bench, item->id, 0);
}

/* --- opening --- */

static void
free_gate (gpointer data)
{
  Gate *gate = data;

  ks_timeline_free (gate->tl);
  if (gate->name != NULL)
    ks_gate_free (gate->gate);
  g_free (gate);
}

static gboolean
add_gate (BenchRunner *runner, const char *name, const char *path, GError **error)
{
  KsEngineSetup *setup = runner->setup;
  ks_timeline_params params = ks_engine_setup_get_timeline_params (setup);
  Gate *gate = g_new0 (Gate, 1);
  ks_error err = {0};

  g_ptr_array_add (runner->gates, gate);
  if (path != NULL) {
    if (!ks_error_check (ks_gate_open (setup->alloc, path, setup->model, &gate->gate, &err), &err,
                         error))
      return FALSE;
    gate->name = g_intern_string (name);
  } else {
    gate->gate = setup->gate;
  }
  params.gate = gate->gate;
  params.evict = ks_evict_default_params (KS_POLICY_FULL);
  params.n_keep = 0;
  params.max_logit_rows = params.chunk;
  return ks_error_check (ks_timeline_new (setup->alloc, &params, &gate->tl, &err), &err, error);
}

BenchRunner *
bench_runner_new (KsEngineSetup *setup, KsEngineJob *job, char **gates, guint n_answer,
                  GError **error)
{
  BenchRunner *runner = g_new0 (BenchRunner, 1);
  gboolean ok;

  runner->setup = setup;
  runner->job = job;
  runner->n_answer = n_answer;
  runner->n_vocab = ks_tokenizer_get_n_vocab (ks_model_get_tokenizer (setup->model));
  runner->n_stream = (guint64)setup->layout.n_layer * setup->layout.n_kv_head;
  runner->gates = g_ptr_array_new_with_free_func (free_gate);
  setup->n_user++;
  ok = add_gate (runner, NULL, NULL, error);
  for (guint i = 0; ok && gates != NULL && gates[i] != NULL; i++) {
    g_auto (GStrv) parts = g_strsplit (gates[i], "=", 2);

    ok = add_gate (runner, parts[0], parts[1], error);
  }
  if (ok)
    return runner;
  bench_runner_free (runner);
  return NULL;
}

void
bench_runner_free (BenchRunner *runner)
{
  if (runner == NULL)
    return;
  g_ptr_array_unref (runner->gates);
  runner->setup->n_user--;
  g_free (runner);
}

/* --- reading --- */

static bool
stop_cb (void *user)
{
  const BenchRunner *runner = user;

  return ks_engine_job_is_cancelled (runner->job);
}

static void
evicted_cb (void *user, const ks_evict_event *event, const ks_kv_table *table)
{
  BenchRunner *runner = user;

  runner->n_peak = MAX (runner->n_peak, event->n_before);
}

static double
add_nll (const float *logits, guint n_vocab, ks_token id)
{
  return ks_eval_log_sum_exp (logits, n_vocab) - (double)logits[id];
}

/* Row i of the continuation foresees its token i + 1. */
static void
logits_cb (void *user, uint32_t row, const float *logits)
{
  BenchRunner *runner = user;

  if (row + 1 < runner->n_scored)
    runner->nll += add_nll (logits, runner->n_vocab, runner->scored[row + 1]);
}

static gboolean
eval (BenchRunner *runner, ks_timeline *tl, const ks_token *ids, guint n, gboolean wants_logits,
      double *io_seconds, GError **error)
{
  ks_timeline_hooks hooks = {.evicted = evicted_cb,
                             .logits = wants_logits ? logits_cb : NULL,
                             .stop = stop_cb,
                             .user = runner};
  gint64 begin = g_get_monotonic_time ();
  ks_error err = {0};
  gboolean ok = n == 0 || ks_error_check (ks_timeline_eval (tl, ids, n, &hooks, &err), &err, error);

  if (io_seconds != NULL)
    *io_seconds += (double)(g_get_monotonic_time () - begin) / 1e6;
  runner->n_peak = MAX (runner->n_peak, ks_kv_table_get_n_entries (ks_timeline_get_table (tl)));
  return ok;
}

static gboolean
set_keep (ks_timeline *tl, guint64 n_keep, GError **error)
{
  ks_error err = {0};

  return ks_error_check (ks_timeline_set_n_keep (tl, n_keep, &err), &err, error);
}

static gboolean
set_policy (ks_timeline *tl, const ks_evict_params *params, GError **error)
{
  ks_error err = {0};

  return ks_error_check (ks_timeline_set_policy (tl, params, &err), &err, error);
}

static bool
sink_cb (void *user, const void *data, size_t n_bytes)
{
  if (n_bytes > G_MAXUINT / 2 - ((GByteArray *)user)->len)
    return false;
  g_byte_array_append (user, data, (guint)n_bytes);
  return true;
}

/* What the timeline holds now, with its last logits; it stays in this process. (transfer full) */
static GByteArray *
keep_state (ks_timeline *tl, GError **error)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  ks_snapshot_params params = {.with_logits = true};
  ks_error err = {0};

  if (!ks_error_check (ks_snapshot_write (tl, &params, sink_cb, bytes, &err), &err, error))
    return NULL;
  return g_steal_pointer (&bytes);
}

static gboolean
bring_back (ks_timeline *tl, const GByteArray *bytes, GError **error)
{
  ks_snapshot_label label = {{0}, {0}};
  ks_snapshot snapshot;
  ks_error err = {0};

  return ks_error_check (ks_snapshot_open (bytes->data, bytes->len, &label, &snapshot, &err), &err,
                         error) &&
         ks_error_check (ks_snapshot_read (tl, &snapshot, &err), &err, error);
}

/* --- measuring --- */

static KsEvalRow *
make_row (const BenchRunner *runner, const BenchCell *cell, guint turn, guint n_prompt)
{
  const ks_kv_layout *layout = &runner->setup->layout;
  KsEvalRow *row = ks_eval_row_new (&cell->cell, runner->item->bench, "", runner->item->id, turn);

  /* Questions about one text are drawn together. */
  row->group = g_strdup (runner->item->id);
  row->n_prompt = n_prompt;
  row->n_peak = runner->n_peak;
  row->peak_bytes = runner->n_peak * (layout->page_bytes / layout->page_entries);
  row->prompt_s = runner->read_s;
  return row;
}

/* Writes greedily into row. */
static gboolean
answer (BenchRunner *runner, ks_timeline *tl, KsEvalRow *row, GError **error)
{
  const ks_tokenizer *tok = ks_model_get_tokenizer (runner->setup->model);
  g_autoptr (GString) text = g_string_new (NULL);

  row->stop = g_intern_static_string ("length");
  while (row->n_new < runner->n_answer) {
    ks_token id = (ks_token)ks_eval_find_best (ks_timeline_get_logits (tl), runner->n_vocab);
    size_t n = 0;
    const char *piece;

    if (ks_tokenizer_is_end (tok, id)) {
      row->stop = g_intern_static_string ("eos");
      break;
    }
    piece = ks_tokenizer_get_piece (tok, id, false, &n);
    g_string_append_len (text, piece, (gssize)n);
    row->n_new++;
    if (!eval (runner, tl, &id, 1, FALSE, &row->answer_s, error))
      return FALSE;
  }
  g_free (row->prediction);
  row->prediction = g_utf8_make_valid (text->str, (gssize)text->len);
  return TRUE;
}

static gboolean
ask (BenchRunner *runner, ks_timeline *tl, const BenchCell *cell, guint turn, GError **error)
{
  const BenchAsk *question = g_ptr_array_index (runner->item->asks, turn);
  double asked_s = 0;
  g_autoptr (KsEvalRow) row = NULL;

  if (!eval (runner, tl, (const ks_token *)question->ids->data, question->ids->len, FALSE, &asked_s,
             error))
    return FALSE;
  row = make_row (runner, cell, turn, runner->item->text->len + question->ids->len);
  row->prompt_s += asked_s;
  row->expect = g_strdupv ((char *[]){question->expect, NULL});
  if (!answer (runner, tl, row, error))
    return FALSE;
  row->n_peak = MAX (row->n_peak, runner->n_peak);
  return ks_eval_run_file_append (runner->file, g_steal_pointer (&row), error);
}

static gboolean
score (BenchRunner *runner, ks_timeline *tl, const BenchCell *cell, GError **error)
{
  g_autoptr (KsEvalRow) row = NULL;

  runner->scored = (const ks_token *)runner->item->scored->data;
  runner->n_scored = runner->item->scored->len;
  runner->nll = add_nll (ks_timeline_get_logits (tl), runner->n_vocab, runner->scored[0]);
  if (!eval (runner, tl, runner->scored, runner->n_scored - 1, TRUE, NULL, error))
    return FALSE;
  row = make_row (runner, cell, 0, runner->item->text->len);
  ks_eval_row_set_value (row, "nll", runner->nll);
  ks_eval_row_set_value (row, "n_scored", runner->n_scored);
  return ks_eval_run_file_append (runner->file, g_steal_pointer (&row), error);
}

/* The text was read and cut: everything that is asked about it, each from the same state. */
static gboolean
finish (BenchRunner *runner, ks_timeline *tl, const BenchCell *cell, GError **error)
{
  const BenchItem *item = runner->item;
  guint64 n_peak = runner->n_peak;
  g_autoptr (GByteArray) state = NULL;

  if (item->scored != NULL)
    return score (runner, tl, cell, error);
  if (item->asks->len > 1 && (state = keep_state (tl, error)) == NULL)
    return FALSE;
  for (guint turn = 0; turn < item->asks->len; turn++) {
    if (ks_eval_run_file_has (runner->file, &cell->cell, item->bench, item->id, turn))
      continue;
    runner->n_peak = n_peak;
    if (turn > 0 && !bring_back (tl, state, error))
      return FALSE;
    if (!ask (runner, tl, cell, turn, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
begin (BenchRunner *runner, ks_timeline *tl, const ks_evict_params *params, GError **error)
{
  for (guint i = 0; i < runner->gates->len; i++)
    ks_timeline_reset (((Gate *)g_ptr_array_index (runner->gates, i))->tl);
  runner->n_peak = 0;
  runner->read_s = 0;
  return set_policy (tl, params, error) && set_keep (tl, 0, error);
}

static gboolean
measure_chunked (BenchRunner *runner, ks_timeline *tl, const BenchCell *cell, GError **error)
{
  const GArray *text = runner->item->text;

  return begin (runner, tl, &cell->evict, error) &&
         set_keep (tl, cell->cell.entries * runner->n_stream, error) &&
         eval (runner, tl, (const ks_token *)text->data, text->len, FALSE, &runner->read_s,
               error) &&
         finish (runner, tl, cell, error);
}

/* The last pass, the one cut, and from then on nothing is forgotten. */
static gboolean
cut (BenchRunner *runner, ks_timeline *tl, const BenchCell *cell, const ks_token *last, guint n,
     GError **error)
{
  if (!set_policy (tl, &cell->evict, error) ||
      !eval (runner, tl, last, n, FALSE, &runner->read_s, error))
    return FALSE;
  if (cell->cell.entries == 0)
    return TRUE;
  return set_keep (tl, cell->cell.entries * runner->n_stream, error) && set_keep (tl, 0, error);
}

/* Cells whose texts are read in the same way. */
static gboolean
measure_faithful (BenchRunner *runner, ks_timeline *tl, const GPtrArray *cells, GError **error)
{
  const ks_token *ids = (const ks_token *)runner->item->text->data;
  guint n = runner->item->text->len, n_last = MIN (n, ks_timeline_get_chunk (tl));
  const BenchCell *first = g_ptr_array_index (cells, 0);
  ks_evict_params reading = ks_policy_needs_mass (first->evict.policy)
                                ? first->evict
                                : ks_evict_default_params (KS_POLICY_FULL);
  g_autoptr (GByteArray) state = NULL;
  double shared_s;

  if (!begin (runner, tl, &reading, error) ||
      !eval (runner, tl, ids, n - n_last, FALSE, &runner->read_s, error))
    return FALSE;
  shared_s = runner->read_s;
  if (cells->len > 1 && (state = keep_state (tl, error)) == NULL)
    return FALSE;
  for (guint i = 0; i < cells->len; i++) {
    const BenchCell *cell = g_ptr_array_index (cells, i);

    runner->n_peak = 0;
    runner->read_s = shared_s;
    if ((i > 0 && !bring_back (tl, state, error)) ||
        !cut (runner, tl, cell, ids + n - n_last, n_last, error) ||
        !finish (runner, tl, cell, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
is_faithful (const BenchCell *cell)
{
  return g_str_equal (cell->cell.mode, ks_evict_mode_get_name (KS_EVICT_FAITHFUL));
}

static gboolean
measure_under_gate (BenchRunner *runner, const Gate *gate, const GPtrArray *cells, GError **error)
{
  g_autoptr (GPtrArray) plain = g_ptr_array_new (), counted = g_ptr_array_new ();

  for (guint i = 0; i < cells->len; i++) {
    BenchCell *cell = g_ptr_array_index (cells, i);

    if (is_faithful (cell))
      g_ptr_array_add (ks_policy_needs_mass (cell->evict.policy) ? counted : plain, cell);
    else if (!measure_chunked (runner, gate->tl, cell, error))
      return FALSE;
  }
  return (plain->len == 0 || measure_faithful (runner, gate->tl, plain, error)) &&
         (counted->len == 0 || measure_faithful (runner, gate->tl, counted, error));
}

static gboolean
check_gates (const BenchRunner *runner, const BenchCell *cells, guint n_cell, GError **error)
{
  for (guint i = 0; i < n_cell; i++) {
    if (find_gate (runner, cells[i].gate) != NULL)
      continue;
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "%s: no gate was given as '%s': write --with-gate %s=FILE", cells[i].cell.policy,
                 cells[i].gate, cells[i].gate);
    return FALSE;
  }
  return TRUE;
}

gboolean
bench_runner_measure (BenchRunner *runner, const BenchItem *item, const BenchCell *cells,
                      guint n_cell, KsEvalRunFile *file, GError **error)
{
  if (!check_gates (runner, cells, n_cell, error))
    return FALSE;
  runner->item = item;
  runner->file = file;
  for (guint g = 0; g < runner->gates->len; g++) {
    const Gate *gate = g_ptr_array_index (runner->gates, g);
    g_autoptr (GPtrArray) due = g_ptr_array_new ();

    for (guint i = 0; i < n_cell; i++)
      if (cells[i].gate == gate->name && !bench_item_is_done (item, &cells[i], file))
        g_ptr_array_add (due, (gpointer)&cells[i]);
    if (!measure_under_gate (runner, gate, due, error))
      return FALSE;
  }
  return TRUE;
}

/* ks-train-run.c - see ks-train-run.h.
 * Sequence i of the data is the batch of step i, so that a resumed run goes on where it was. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-train-run.h"

#include "app/ks-error.h"
#include "app/ks-plot.h"
#include "app/ks-train-look.h"
#include "app/ks-train-state.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define N_SPEED 16u        /* steps that speed and time left are told from */
#define METHOD_COST 4.0    /* of a METHOD step, in LOCAL ones, before one was made */
#define N_MARK 1024u       /* bytes of a tensor that its model is known by */
#define N_CURVE_WINDOW 16u /* steps that a point of the drawn curve is the mean of, at most */

typedef struct {
  KsEngineSetup *setup;
  KsTrainData *data;
  const KsTrainRunOptions *options;
  KsEngineJob *job;
  KsTrainLook *look;
  KsTrainEncoder encoder;
  ks_trainer *trainer;
  GArray *points; /* of KsTrainPoint */
  cJSON *settings;
  gint64 begin_us, saved_us;
  gboolean cannot_save;
} Run;

static bool
stop_cb (void *user)
{
  return ks_engine_job_is_cancelled (user);
}

/* ---- the curve ---- */

typedef double (*GetValue) (const KsTrainPoint *point);

static double
get_next_token (const KsTrainPoint *point)
{
  return point->kind == KS_TRAIN_METHOD ? (double)point->ce : (double)NAN;
}

static double
get_kl (const KsTrainPoint *point)
{
  return point->kind == KS_TRAIN_METHOD ? (double)point->kl : (double)NAN;
}

static double
get_local (const KsTrainPoint *point)
{
  return point->kind == KS_TRAIN_LOCAL ? (double)point->local : (double)NAN;
}

static double
get_capacity (const KsTrainPoint *point)
{
  return (double)point->capacity;
}

static double
get_retention (const KsTrainPoint *point)
{
  return (double)point->mean_retention;
}

/* Means over the last steps, so that the curve shows the way and not the sequences. */
static KsPlotPoint *
smooth (const GArray *points, GetValue get)
{
  KsPlotPoint *out = g_new (KsPlotPoint, MAX (points->len, 1));
  guint n_window = CLAMP (points->len / 10, 1, N_CURVE_WINDOW);

  for (guint i = 0; i < points->len; i++) {
    const KsTrainPoint *point = &g_array_index (points, KsTrainPoint, i);
    double sum = 0;
    guint n = 0;

    for (guint j = i + 1 >= n_window ? i + 1 - n_window : 0; j <= i; j++) {
      double value = get (&g_array_index (points, KsTrainPoint, j));

      sum += isnan (value) ? 0 : value;
      n += isnan (value) ? 0 : 1;
    }
    out[i] = ks_plot_point (point->step, n > 0 && !isnan (get (point)) ? sum / n : (double)NAN);
  }
  return out;
}

static gboolean
write_curve (Run *run, GError **error)
{
  static const struct {
    const char *name;
    GetValue get;
  } curves[] = {{"next token (nats)", get_next_token},
                {"KL to the full model (nats)", get_kl},
                {"mismatch of attention", get_local},
                {"over capacity", get_capacity},
                {"mean retention", get_retention}};
  KsPlotAxes axes = ks_plot_axes ("Training of a retention gate", "step", NULL);
  KsPlotSeries series[G_N_ELEMENTS (curves)];
  g_autoptr (GString) svg = NULL;

  if (run->options->curve_path == NULL)
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (curves); i++)
    series[i] = (KsPlotSeries){.name = curves[i].name,
                               .points = smooth (run->points, curves[i].get),
                               .n_point = run->points->len,
                               .no_markers = TRUE};
  axes.y_min = 0;
  axes.y_max = (double)NAN;
  svg = ks_plot_line_svg (&axes, series, G_N_ELEMENTS (series));
  for (guint i = 0; i < G_N_ELEMENTS (curves); i++)
    g_free ((gpointer)series[i].points);
  return g_file_set_contents (run->options->curve_path, svg->str, (gssize)svg->len, error);
}

/* ---- checkpoints ---- */

static gboolean
write_gate (Run *run, GError **error)
{
  const char *metadata[3] = {"base", run->options->base_name, NULL};
  ks_error err = {0};

  if (run->options->base_name == NULL)
    metadata[0] = NULL;
  return ks_error_check (
      ks_trainer_write_gate (run->trainer, run->options->out_path, metadata, &err), &err, error);
}

static gboolean
save (Run *run, GError **error)
{
  run->saved_us = g_get_monotonic_time ();
  run->cannot_save = !ks_train_state_write (run->options->state_path, run->settings, run->points,
                                            run->trainer, error) ||
                     !write_gate (run, error) || !write_curve (run, error);
  if (run->cannot_save)
    return FALSE;
  if (run->options->on_checkpoint != NULL)
    run->options->on_checkpoint (run->options->user, ks_trainer_get_step (run->trainer));
  return TRUE;
}

static gboolean
resume (Run *run, GError **error)
{
  g_autoptr (GError) local = NULL;

  if (run->options->fresh || ks_train_state_read (run->options->state_path, run->settings,
                                                  run->points, run->trainer, &local))
    return TRUE;
  if (g_error_matches (local, G_FILE_ERROR, G_FILE_ERROR_NOENT))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

/* ---- steps ---- */

static void
add_point (Run *run, const ks_train_stats *stats)
{
  KsTrainPoint point = {.step = stats->step,
                        .kind = stats->kind,
                        .n_tok = stats->n_tok,
                        .loss = stats->loss,
                        .kl = stats->kl,
                        .ce = stats->ce,
                        .local = stats->local,
                        .capacity = stats->capacity,
                        .mean_retention = stats->mean_retention,
                        .seconds = (float)stats->seconds,
                        .n_entry_soft = stats->n_entry_soft};

  g_array_append_val (run->points, point);
}

/* Seconds of a step of a kind, of the last ones; 0 = none was made. */
static double
get_step_seconds (const Run *run, ks_train_stage_kind kind, double *out_tok_per_s)
{
  double seconds = 0, n_tok = 0;
  guint n = 0;

  for (guint i = run->points->len; i > 0 && n < N_SPEED; i--) {
    const KsTrainPoint *point = &g_array_index (run->points, KsTrainPoint, i - 1);

    if (point->kind != kind)
      continue;
    seconds += (double)point->seconds;
    n_tok += point->n_tok;
    n++;
  }
  if (out_tok_per_s != NULL)
    *out_tok_per_s = seconds > 0 ? n_tok / seconds : 0;
  return n > 0 ? seconds / n : 0;
}

static double
estimate_left (const Run *run)
{
  const ks_train_params *params = &run->options->train;
  double local_s = get_step_seconds (run, KS_TRAIN_LOCAL, NULL);
  double method_s = get_step_seconds (run, KS_TRAIN_METHOD, NULL), left_s = 0;
  guint done = ks_trainer_get_step (run->trainer);

  if (local_s <= 0)
    local_s = method_s / METHOD_COST;
  if (method_s <= 0)
    method_s = local_s * METHOD_COST;
  if (local_s <= 0)
    return -1;
  for (guint i = 0; i < params->n_stage; i++) {
    guint n_done = MIN (done, params->stages[i].n_step);

    done -= n_done;
    left_s += (params->stages[i].n_step - n_done) *
              (params->stages[i].kind == KS_TRAIN_LOCAL ? local_s : method_s);
  }
  return left_s;
}

static gboolean
make_step (Run *run, GError **error)
{
  g_autoptr (KsTrainSequence) sequence =
      ks_train_data_make (run->data, &run->encoder, ks_trainer_get_step (run->trainer), error);
  KsTrainProgress progress = {0};
  ks_train_batch batch;
  ks_train_stats stats = {0};
  ks_error err = {0};

  if (sequence == NULL || !ks_train_look_make_batch (run->look, sequence, &batch, error) ||
      !ks_error_check (ks_trainer_step (run->trainer, &batch, stop_cb, run->job, &stats, &err),
                       &err, error))
    return FALSE;
  add_point (run, &stats);
  progress.stats = &stats;
  get_step_seconds (run, stats.kind, &progress.tok_per_s);
  progress.left_s = estimate_left (run);
  if (run->options->on_step != NULL)
    run->options->on_step (run->options->user, &progress);
  return TRUE;
}

/* What is there when it ends early is kept, whatever the reason: a step that fails changes nothing.
 * A failure to keep it is told in place of a stop that was asked for. */
static gboolean
run_steps (Run *run, gboolean *out_finished, GError **error)
{
  guint n_step = ks_trainer_get_n_step (run->trainer), begin = ks_trainer_get_step (run->trainer);
  gint64 stop_us = (gint64)run->options->stop_s * G_USEC_PER_SEC;
  gint64 pause_us = (gint64)run->options->checkpoint_s * G_USEC_PER_SEC;
  gboolean ok = TRUE;

  run->begin_us = run->saved_us = g_get_monotonic_time ();
  while (ok && ks_trainer_get_step (run->trainer) < n_step) {
    gint64 now_us;

    ok = make_step (run, error);
    now_us = g_get_monotonic_time ();
    if (ok && stop_us > 0 && now_us - run->begin_us >= stop_us)
      break;
    if (ok && now_us - run->saved_us >= pause_us)
      ok = save (run, error);
  }
  *out_finished = ok && ks_trainer_get_step (run->trainer) == n_step;
  if (ok)
    return save (run, error);
  if (ks_trainer_get_step (run->trainer) > begin && !run->cannot_save) {
    g_autoptr (GError) local = NULL;

    if (!save (run, &local) && ks_error_is_cancelled (*error)) {
      g_clear_error (error);
      g_propagate_error (error, g_steal_pointer (&local));
    }
  }
  return FALSE;
}

/* ---- the whole ---- */

static gboolean
check_memory (const Run *run, GError **error)
{
  guint64 n_bytes =
      ks_trainer_count_bytes (run->setup->model, run->setup->gate, &run->options->train);
  char needed[KS_BUDGET_TEXT_BYTES], allowed[KS_BUDGET_TEXT_BYTES];

  if (run->options->max_bytes == 0 || n_bytes <= run->options->max_bytes)
    return TRUE;
  ks_budget_format_bytes (n_bytes, KS_BUDGET_DOWN, needed);
  ks_budget_format_bytes (run->options->max_bytes, KS_BUDGET_DOWN, allowed);
  g_set_error (error, KS_ENGINE_ERROR, KS_ERR_BUDGET,
               "training with sequences of %u tokens takes %s beside the model, and %s are "
               "allowed: take shorter ones with --tokens, or allow more with --max-memory",
               run->options->train.max_tok, needed, allowed);
  return FALSE;
}

/* What cannot be written is told before anything is computed. */
static gboolean
check_place (const char *path, GError **error)
{
  g_autofree char *folder = path != NULL ? g_path_get_dirname (path) : NULL;
  const char *why = NULL;

  if (path == NULL)
    return TRUE;
  if (g_file_test (path, G_FILE_TEST_IS_DIR))
    why = "it is a folder";
  else if (!g_file_test (folder, G_FILE_TEST_IS_DIR))
    why = "its folder does not exist";
  else if (g_access (folder, W_OK) != 0)
    why = "its folder may not be written to";
  if (why != NULL)
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "cannot write %s: %s", path, why);
  return why == NULL;
}

/* Tells models of one shape apart: names and sizes of all tensors, and the first bytes of each. */
static char *
make_model_mark (const ks_gguf *gguf)
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);

  for (gsize i = 0; i < ks_gguf_get_n_tensors (gguf); i++) {
    const ks_gguf_tensor *tensor = ks_gguf_get_tensor (gguf, i);
    g_autofree char *facts = g_strdup_printf ("%s %d %" G_GSIZE_FORMAT "\n", tensor->name,
                                              (int)tensor->dtype, (gsize)tensor->n_bytes);

    g_checksum_update (sum, (const guchar *)facts, -1);
    g_checksum_update (sum, tensor->data, (gssize)MIN (tensor->n_bytes, N_MARK));
  }
  return g_strdup (g_checksum_get_string (sum));
}

static cJSON *
describe (const Run *run)
{
  cJSON *settings = ks_train_state_describe (&run->options->train);
  g_autofree char *mark = ks_train_data_make_mark (run->data);
  g_autofree char *model = make_model_mark (ks_model_get_gguf (run->setup->model));

  cJSON_AddNumberToObject (settings, "prompt_weight", run->options->prompt_weight);
  cJSON_AddStringToObject (settings, "data", mark);
  cJSON_AddStringToObject (settings, "model", model);
  return settings;
}

static gboolean
start (Run *run, GError **error)
{
  const KsTrainRunOptions *options = run->options;
  ks_error err = {0};

  if (!check_place (options->out_path, error) || !check_place (options->state_path, error) ||
      !check_place (options->curve_path, error) || !check_memory (run, error) ||
      !ks_error_check (ks_trainer_new (run->setup->alloc, run->setup->model, run->setup->gate,
                                       &options->train, &run->trainer, &err),
                       &err, error))
    return FALSE;
  run->look = ks_train_look_new (run->setup, run->job);
  run->settings = describe (run);
  run->points = g_array_new (FALSE, FALSE, sizeof (KsTrainPoint));
  ks_train_look_init_encoder (run->look, options->prompt_weight, &run->encoder);
  if (!resume (run, error))
    return FALSE;
  if (options->on_begin != NULL)
    options->on_begin (options->user, ks_trainer_get_bytes (run->trainer),
                       ks_trainer_get_step (run->trainer), ks_trainer_get_n_step (run->trainer));
  return TRUE;
}

gboolean
ks_train_run (KsEngineSetup *setup, KsTrainData *data, const KsTrainRunOptions *options,
              KsEngineJob *job, gboolean *out_finished, GError **error)
{
  Run run = {.setup = setup, .data = data, .options = options, .job = job};
  gboolean ok;

  g_return_val_if_fail (error != NULL, FALSE);
  *out_finished = FALSE;
  ok = start (&run, error) && run_steps (&run, out_finished, error);
  ks_train_look_free (run.look);
  ks_trainer_free (run.trainer);
  cJSON_Delete (run.settings);
  g_clear_pointer (&run.points, g_array_unref);
  return ok;
}

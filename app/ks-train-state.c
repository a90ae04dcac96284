/* ks-train-state.c - see ks-train-state.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-train-state.h"

#include "app/ks-error.h"

#include <string.h>

#define MAGIC "KSTRAIN1"
#define N_MAGIC 8u
#define MAX_SETTINGS 65536u
#define MAX_POINTS 10000000u

G_STATIC_ASSERT (sizeof (KsTrainPoint) == 48);

/* ---- settings ---- */

static void
add_number (cJSON *object, const char *name, double value)
{
  cJSON_AddNumberToObject (object, name, value);
}

static cJSON *
describe_stage (const ks_train_stage *stage)
{
  cJSON *object = cJSON_CreateObject ();

  cJSON_AddStringToObject (object, "kind", stage->kind == KS_TRAIN_LOCAL ? "local" : "method");
  add_number (object, "steps", stage->n_step);
  add_number (object, "warm_up", stage->n_warm_up);
  add_number (object, "rate", (double)stage->rate);
  add_number (object, "final_part", (double)stage->final_part);
  return object;
}

cJSON *
ks_train_state_describe (const ks_train_params *p)
{
  static const char *const capacities[] = {"next", "reference", "paper"};
  cJSON *object = cJSON_CreateObject (), *stages = cJSON_CreateArray ();
  g_autofree char *seed = g_strdup_printf ("%" G_GUINT64_FORMAT, (guint64)p->seed);

  cJSON_AddBoolToObject (object, "local_form", p->is_local);
  cJSON_AddBoolToObject (object, "tied", p->is_tied);
  add_number (object, "width", p->n_gate);
  add_number (object, "bias", (double)p->bias_init);
  add_number (object, "deviation", (double)p->init_std);
  cJSON_AddStringToObject (object, "seed", seed);
  add_number (object, "kl_weight", (double)p->kl_weight);
  add_number (object, "next_weight", (double)p->ce_weight);
  add_number (object, "local_weight", (double)p->local_weight);
  add_number (object, "capacity_weight", (double)p->capacity_weight);
  add_number (object, "entries", p->n_entry);
  cJSON_AddBoolToObject (object, "capacity_per_stream", p->capacity_per_stream);
  cJSON_AddStringToObject (object, "capacity", capacities[p->capacity]);
  add_number (object, "local_rows", p->n_local_row);
  add_number (object, "beta1", (double)p->beta1);
  add_number (object, "beta2", (double)p->beta2);
  add_number (object, "eps", (double)p->eps);
  add_number (object, "weight_decay", (double)p->weight_decay);
  add_number (object, "clip", (double)p->clip);
  for (guint i = 0; i < p->n_stage; i++)
    cJSON_AddItemToArray (stages, describe_stage (&p->stages[i]));
  cJSON_AddItemToObject (object, "stages", stages);
  return object;
}

/* ---- writing ---- */

typedef struct {
  GOutputStream *stream;
  GError **error;
} Sink;

static bool
write_bytes (void *user, const void *data, size_t n_bytes)
{
  Sink *sink = user;

  return g_output_stream_write_all (sink->stream, data, n_bytes, NULL, NULL, sink->error);
}

static gboolean
write_parts (Sink *sink, const cJSON *settings, const GArray *points, const ks_trainer *trainer)
{
  char *text = cJSON_PrintUnformatted (settings);
  guint32 n_text = (guint32)strlen (text), n_text_le = GUINT32_TO_LE (n_text);
  guint32 n_point_le = GUINT32_TO_LE (points->len);
  ks_error err = {0};
  gboolean ok;
  ks_status status;

  ok = write_bytes (sink, MAGIC, N_MAGIC) && write_bytes (sink, &n_text_le, sizeof n_text_le) &&
       write_bytes (sink, text, n_text) && write_bytes (sink, &n_point_le, sizeof n_point_le) &&
       write_bytes (sink, points->data, points->len * sizeof (KsTrainPoint));
  cJSON_free (text);
  if (!ok)
    return FALSE;
  status = ks_trainer_save (trainer, write_bytes, sink, &err);
  /* What the disk said stands in error already. */
  return status == KS_OK || (sink->error != NULL && *sink->error != NULL)
             ? status == KS_OK
             : ks_error_check (status, &err, sink->error);
}

gboolean
ks_train_state_write (const char *path, const cJSON *settings, const GArray *points,
                      const ks_trainer *trainer, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GCancellable) given_up = g_cancellable_new ();
  g_autoptr (GFileOutputStream) stream =
      g_file_replace (file, NULL, FALSE, G_FILE_CREATE_PRIVATE, NULL, error);
  g_autoptr (GError) local = NULL;
  Sink sink = {stream != NULL ? G_OUTPUT_STREAM (stream) : NULL, &local};

  if (stream == NULL)
    return FALSE;
  if (write_parts (&sink, settings, points, trainer) &&
      g_output_stream_close (sink.stream, NULL, &local))
    return TRUE;
  /* Closed as cancelled, the file that was there stays. */
  g_cancellable_cancel (given_up);
  g_output_stream_close (sink.stream, given_up, NULL);
  g_prefix_error (&local, "cannot write the checkpoint %s: ", path);
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

/* ---- reading ---- */

typedef struct {
  const char *at;
  gsize n;
} Rest;

static gboolean
take (Rest *rest, gsize n, const char **out)
{
  if (rest->n < n)
    return FALSE;
  *out = rest->at;
  rest->at += n;
  rest->n -= n;
  return TRUE;
}

static gboolean
take_u32 (Rest *rest, guint32 limit, guint32 *out)
{
  const char *bytes;
  guint32 value;

  if (!take (rest, sizeof value, &bytes))
    return FALSE;
  memcpy (&value, bytes, sizeof value);
  *out = GUINT32_FROM_LE (value);
  return *out <= limit;
}

static gboolean
refuse_damaged (const char *path, GError **error)
{
  g_autofree char *name = g_filename_display_name (path);

  g_set_error (error, KS_ENGINE_ERROR, KS_ERR_FORMAT,
               "%s is damaged or no checkpoint of a training: start again with --fresh", name);
  return FALSE;
}

/* The first setting that differs, or NULL.  Checkpoints of earlier versions do
 * not name the model. */
static const char *
find_difference (const cJSON *now, const cJSON *then)
{
  const cJSON *item;

  cJSON_ArrayForEach (item, now)
  {
    const cJSON *other = cJSON_GetObjectItemCaseSensitive (then, item->string);

    if (other == NULL && strcmp (item->string, "model") == 0)
      continue;
    if (other == NULL || !cJSON_Compare (item, other, TRUE))
      return item->string;
  }
  return NULL;
}

static gboolean
check_settings (const char *path, const cJSON *settings, const char *text, gsize n, GError **error)
{
  cJSON *then = cJSON_ParseWithLength (text, n);
  const char *name;
  gboolean ok = cJSON_IsObject (then);

  if (!ok) {
    cJSON_Delete (then);
    return refuse_damaged (path, error);
  }
  name = find_difference (settings, then);
  if (name != NULL) {
    g_autofree char *shown = g_filename_display_name (path);

    g_set_error (error, KS_ENGINE_ERROR, KS_ERR_ARG,
                 "the checkpoint %s is of a run with another \"%s\": continue with the same "
                 "settings and data, name another --state, or start again with --fresh",
                 shown, name);
  }
  cJSON_Delete (then);
  return name == NULL;
}

gboolean
ks_train_state_read (const char *path, const cJSON *settings, GArray *points, ks_trainer *trainer,
                     GError **error)
{
  g_autoptr (GMappedFile) file = g_mapped_file_new (path, FALSE, error);
  const char *bytes = NULL;
  guint32 n_text = 0, n_point = 0;
  ks_error err = {0};
  Rest rest;

  if (file == NULL)
    return FALSE;
  rest = (Rest){g_mapped_file_get_contents (file), g_mapped_file_get_length (file)};
  if (!take (&rest, N_MAGIC, &bytes) || memcmp (bytes, MAGIC, N_MAGIC) != 0 ||
      !take_u32 (&rest, MAX_SETTINGS, &n_text) || !take (&rest, n_text, &bytes))
    return refuse_damaged (path, error);
  if (!check_settings (path, settings, bytes, n_text, error))
    return FALSE;
  if (!take_u32 (&rest, MAX_POINTS, &n_point) ||
      !take (&rest, n_point * sizeof (KsTrainPoint), &bytes))
    return refuse_damaged (path, error);
  if (!ks_error_check (ks_trainer_load (trainer, rest.at, rest.n, &err), &err, error)) {
    g_prefix_error (error, "the checkpoint %s cannot be used (--fresh starts again): ", path);
    return FALSE;
  }
  if (n_point > 0)
    g_array_append_vals (points, bytes, n_point);
  return TRUE;
}

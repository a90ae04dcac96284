/* eval-run.c - cells and rows as values and as JSON; see eval-run.h.  The file they lie in:
 * eval-run-file.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-run.h"

#include "app/eval-text.h"
#include "app/ks-error.h"

#include <math.h>
#include <string.h>

#define MAX_EXACT 9007199254740992.0 /* whole numbers that JSON's doubles tell apart */

KsEvalCell
ks_eval_cell (const char *policy, guint64 entries)
{
  return (KsEvalCell){.policy = g_intern_string (policy),
                      .budget = g_intern_static_string ("fixed"),
                      .mode = g_intern_static_string ("chunked"),
                      .question = g_intern_static_string (""),
                      .entries = entries};
}

gboolean
ks_eval_cell_equal (const KsEvalCell *a, const KsEvalCell *b)
{
  return a->policy == b->policy && a->budget == b->budget && a->mode == b->mode &&
         a->question == b->question && a->entries == b->entries && a->seed == b->seed;
}

char *
ks_eval_cell_make_key (const KsEvalCell *cell)
{
  return g_strdup_printf ("%s|%" G_GUINT64_FORMAT "|%s|%s|%s|%" G_GUINT64_FORMAT, cell->policy,
                          cell->entries, cell->budget, cell->mode, cell->question, cell->seed);
}

/* --- rows --- */

KsEvalRow *
ks_eval_row_new (const KsEvalCell *cell, const char *bench, const char *part, const char *id,
                 guint turn)
{
  KsEvalRow *row = g_new0 (KsEvalRow, 1);

  row->cell = *cell;
  row->bench = g_intern_string (bench);
  row->part = g_intern_string (part);
  row->id = g_strdup (id);
  row->turn = turn;
  row->prediction = g_strdup ("");
  row->stop = g_intern_static_string ("");
  row->values = g_array_new (FALSE, TRUE, sizeof (KsEvalValue));
  return row;
}

void
ks_eval_row_free (KsEvalRow *row)
{
  if (row == NULL)
    return;
  g_free (row->id);
  g_free (row->group);
  g_free (row->prediction);
  g_strfreev (row->expect);
  g_strfreev (row->options);
  g_array_unref (row->values);
  g_free (row);
}

void
ks_eval_row_set_value (KsEvalRow *row, const char *name, double value)
{
  KsEvalValue made = {.name = g_intern_string (name), .value = value};

  for (guint i = 0; i < row->values->len; i++) {
    KsEvalValue *at = &g_array_index (row->values, KsEvalValue, i);

    if (at->name == made.name) {
      at->value = value;
      return;
    }
  }
  g_array_append_val (row->values, made);
}

double
ks_eval_row_get_value (const KsEvalRow *row, const char *name)
{
  for (guint i = 0; i < row->values->len; i++) {
    const KsEvalValue *at = &g_array_index (row->values, KsEvalValue, i);

    if (strcmp (at->name, name) == 0)
      return at->value;
  }
  return NAN;
}

/* --- to JSON --- */

static void
add_text (cJSON *json, const char *name, const char *text)
{
  if (text != NULL && text[0] != '\0')
    cJSON_AddStringToObject (json, name, text);
}

static void
add_number (cJSON *json, const char *name, double value)
{
  if (value != 0)
    cJSON_AddNumberToObject (json, name, value);
}

static void
add_texts (cJSON *json, const char *name, char **texts)
{
  cJSON *array;

  if (texts == NULL)
    return;
  array = cJSON_AddArrayToObject (json, name);
  for (guint i = 0; texts[i] != NULL; i++)
    cJSON_AddItemToArray (array, cJSON_CreateString (texts[i]));
}

cJSON *
ks_eval_row_to_json (const KsEvalRow *row)
{
  cJSON *json = cJSON_CreateObject (), *values;

  cJSON_AddStringToObject (json, "bench", row->bench);
  add_text (json, "part", row->part);
  cJSON_AddStringToObject (json, "id", row->id);
  add_text (json, "group", row->group);
  add_number (json, "turn", row->turn);
  cJSON_AddStringToObject (json, "policy", row->cell.policy);
  cJSON_AddNumberToObject (json, "M", (double)row->cell.entries);
  cJSON_AddStringToObject (json, "budget", row->cell.budget);
  cJSON_AddStringToObject (json, "mode", row->cell.mode);
  add_text (json, "question", row->cell.question);
  cJSON_AddNumberToObject (json, "seed", (double)row->cell.seed);
  cJSON_AddStringToObject (json, "prediction", row->prediction);
  add_texts (json, "expect", row->expect);
  add_texts (json, "options", row->options);
  cJSON_AddNumberToObject (json, "prompt_tokens", row->n_prompt);
  cJSON_AddNumberToObject (json, "new_tokens", row->n_new);
  cJSON_AddNumberToObject (json, "peak_entries", (double)row->n_peak);
  cJSON_AddNumberToObject (json, "peak_bytes", (double)row->peak_bytes);
  add_number (json, "prompt_s", row->prompt_s);
  add_number (json, "answer_s", row->answer_s);
  add_text (json, "stop", row->stop);
  if (row->values->len == 0)
    return json;
  values = cJSON_AddObjectToObject (json, "values");
  for (guint i = 0; i < row->values->len; i++) {
    const KsEvalValue *at = &g_array_index (row->values, KsEvalValue, i);

    /* JSON has no NaN and no infinity: as null it could not be read again. */
    if (isfinite (at->value))
      cJSON_AddNumberToObject (values, at->name, at->value);
  }
  return json;
}

/* --- from JSON --- */

static gboolean
fail_field (const char *name, const char *what, GError **error)
{
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
               "the field \"%s\" of a prediction row is %s", name, what);
  return FALSE;
}

/* other: what stands for a field that is not there; NULL = it must be. */
static gboolean
read_text (const cJSON *json, const char *name, const char *other, const char **out, GError **error)
{
  const cJSON *field = cJSON_GetObjectItemCaseSensitive (json, name);

  if (field == NULL && other == NULL)
    return fail_field (name, "missing", error);
  if (field != NULL && !cJSON_IsString (field))
    return fail_field (name, "no text", error);
  *out = field != NULL ? field->valuestring : other;
  return TRUE;
}

/* Not negative; whole: an integer that a double holds exactly. 0 when it is not there. */
static gboolean
read_number (const cJSON *json, const char *name, gboolean whole, double *out, GError **error)
{
  const cJSON *field = cJSON_GetObjectItemCaseSensitive (json, name);

  *out = 0;
  if (field == NULL)
    return TRUE;
  if (!cJSON_IsNumber (field) || !(field->valuedouble >= 0) || field->valuedouble > MAX_EXACT ||
      (whole && field->valuedouble != floor (field->valuedouble)))
    return fail_field (name, whole ? "no whole number" : "no number", error);
  *out = field->valuedouble;
  return TRUE;
}

static gboolean
read_count (const cJSON *json, const char *name, guint *out, GError **error)
{
  double value;

  if (!read_number (json, name, TRUE, &value, error))
    return FALSE;
  if (value > G_MAXUINT32)
    return fail_field (name, "too large", error);
  *out = (guint)value;
  return TRUE;
}

static gboolean
read_big (const cJSON *json, const char *name, guint64 *out, GError **error)
{
  double value;

  if (!read_number (json, name, TRUE, &value, error))
    return FALSE;
  *out = (guint64)value;
  return TRUE;
}

static gboolean
read_texts (const cJSON *json, const char *name, char ***out, GError **error)
{
  const cJSON *field = cJSON_GetObjectItemCaseSensitive (json, name), *at;
  g_autoptr (GStrvBuilder) builder = NULL;

  if (field == NULL)
    return TRUE;
  if (!cJSON_IsArray (field))
    return fail_field (name, "no list", error);
  builder = g_strv_builder_new ();
  cJSON_ArrayForEach (at, field)
  {
    if (!cJSON_IsString (at))
      return fail_field (name, "no list of texts", error);
    g_strv_builder_add (builder, at->valuestring);
  }
  *out = g_strv_builder_end (builder);
  return TRUE;
}

static gboolean
read_values (KsEvalRow *row, const cJSON *json, GError **error)
{
  const cJSON *field = cJSON_GetObjectItemCaseSensitive (json, "values"), *at;

  if (field == NULL)
    return TRUE;
  if (!cJSON_IsObject (field))
    return fail_field ("values", "no object", error);
  cJSON_ArrayForEach (at, field)
  {
    if (!cJSON_IsNumber (at))
      return fail_field (at->string, "no number", error);
    ks_eval_row_set_value (row, at->string, at->valuedouble);
  }
  return TRUE;
}

static gboolean
read_cell (const cJSON *json, KsEvalCell *out, GError **error)
{
  const char *policy, *budget, *mode, *question;
  guint64 entries = 0, seed = 0;

  if (!read_text (json, "policy", NULL, &policy, error) ||
      !read_text (json, "budget", "fixed", &budget, error) ||
      !read_text (json, "mode", "chunked", &mode, error) ||
      !read_text (json, "question", "", &question, error) ||
      !read_big (json, "M", &entries, error) || !read_big (json, "seed", &seed, error))
    return FALSE;
  *out = ks_eval_cell (policy, entries);
  out->budget = g_intern_string (budget);
  out->mode = g_intern_string (mode);
  out->question = g_intern_string (question);
  out->seed = seed;
  return TRUE;
}

static gboolean
read_numbers (KsEvalRow *row, const cJSON *json, GError **error)
{
  return read_count (json, "prompt_tokens", &row->n_prompt, error) &&
         read_count (json, "new_tokens", &row->n_new, error) &&
         read_big (json, "peak_entries", &row->n_peak, error) &&
         read_big (json, "peak_bytes", &row->peak_bytes, error) &&
         read_number (json, "prompt_s", FALSE, &row->prompt_s, error) &&
         read_number (json, "answer_s", FALSE, &row->answer_s, error) &&
         read_values (row, json, error);
}

KsEvalRow *
ks_eval_row_from_json (const cJSON *json, GError **error)
{
  g_autoptr (KsEvalRow) row = NULL;
  g_autoptr (GString) valid = NULL;
  const char *bench, *part, *id, *group, *prediction, *stop;
  KsEvalCell cell;
  guint turn = 0;

  if (!cJSON_IsObject (json)) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "a prediction row is no JSON object");
    return NULL;
  }
  if (!read_cell (json, &cell, error) || !read_text (json, "bench", NULL, &bench, error) ||
      !read_text (json, "part", "", &part, error) || !read_text (json, "id", NULL, &id, error) ||
      !read_text (json, "group", "", &group, error) ||
      !read_text (json, "prediction", NULL, &prediction, error) ||
      !read_text (json, "stop", "", &stop, error) || !read_count (json, "turn", &turn, error))
    return NULL;
  row = ks_eval_row_new (&cell, bench, part, id, turn);
  row->group = group[0] != '\0' ? g_strdup (group) : NULL;
  valid = ks_eval_text_new (prediction);
  g_free (row->prediction);
  row->prediction = g_strdup (valid->str);
  row->stop = g_intern_string (stop);
  if (!read_texts (json, "expect", &row->expect, error) ||
      !read_texts (json, "options", &row->options, error) || !read_numbers (row, json, error))
    return NULL;
  return g_steal_pointer (&row);
}

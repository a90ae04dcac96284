/* eval-load.c - see eval-load.h.  Files, rows and fields; what they mean is in the loaders of each
 * benchmark. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-load.h"

#include "app/eval-load-internal.h"
#include "app/ks-error.h"

#include <string.h>

#define MAX_BYTES ((goffset)1 << 30)
#define MAX_NAME 512u /* bytes of a picture's file name */

const char *const ks_eval_benches[] = {"aime", "mathvision", "mme", "mmdu", "textvqa", NULL};

static gboolean (*const loaders[]) (KsEvalLoading *, GError **) = {
    ks_eval_load_aime, ks_eval_load_mathvision, ks_eval_load_mme,
    ks_eval_load_mmdu, ks_eval_load_textvqa,
};

/* --- files --- */

static gboolean
has_rows (const char *name)
{
  return g_str_has_suffix (name, ".jsonl") || g_str_has_suffix (name, ".json") ||
         g_str_has_suffix (name, ".tsv") || g_str_has_suffix (name, ".csv");
}

static void
refuse_parquet (const char *path, GError **error)
{
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "%s is a Parquet file, which is not read: write it as a .tsv file first, for "
               "example with to_csv of pandas, its pictures as base64",
               path);
}

/* The only file with rows in the folder. (transfer full) */
static char *
find_file (const char *folder, GError **error)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, error);
  g_autoptr (GString) names = g_string_new (NULL);
  g_autofree char *found = NULL, *parquet = NULL;
  guint n = 0;

  if (dir == NULL)
    return NULL;
  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir)) {
    if (name[0] != '.' && g_str_has_suffix (name, ".parquet") && parquet == NULL)
      parquet = g_build_filename (folder, name, NULL);
    if (name[0] == '.' || !has_rows (name))
      continue;
    g_string_append_printf (names, "%s%s", n++ > 0 ? ", " : "", name);
    g_free (found);
    found = g_build_filename (folder, name, NULL);
  }
  if (n == 1)
    return g_steal_pointer (&found);
  if (n == 0 && parquet != NULL)
    refuse_parquet (parquet, error);
  else if (n == 0)
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "%s holds no .json, .jsonl, .tsv or .csv file: name the file with the questions",
                 folder);
  else
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "%s holds several files (%s): name the one with the questions", folder,
                 names->str);
  return NULL;
}

/* MME's release is a folder of folders. */
static gboolean
find_data (KsEvalLoading *loading, GError **error)
{
  const char *data = loading->options->data;

  if (g_str_has_suffix (data, ".parquet")) {
    refuse_parquet (data, error);
    return FALSE;
  }
  if (!g_file_test (data, G_FILE_TEST_IS_DIR)) {
    loading->file = g_strdup (data);
    loading->folder = g_path_get_dirname (data);
    return TRUE;
  }
  loading->folder = g_strdup (data);
  if (strcmp (loading->bench, "mme") == 0)
    return TRUE;
  loading->file = find_file (data, error);
  return loading->file != NULL;
}

gboolean
ks_eval_load_is_tsv (const KsEvalLoading *loading)
{
  return g_str_has_suffix (loading->file, ".tsv") || g_str_has_suffix (loading->file, ".csv");
}

GPtrArray *
ks_eval_load (const char *bench, const KsEvalLoadOptions *options, GError **error)
{
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_item_free);
  KsEvalLoading loading = {.options = options, .bench = bench, .items = items};
  gboolean ok = FALSE;

  for (guint i = 0; ks_eval_benches[i] != NULL; i++)
    if (strcmp (ks_eval_benches[i], bench) == 0)
      ok = find_data (&loading, error) && loaders[i](&loading, error);
  if (ok && items->len == 0) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "%s holds no items of %s", options->data,
                 bench);
    ok = FALSE;
  }
  g_free (loading.file);
  g_free (loading.folder);
  g_clear_pointer (&loading.shared, g_hash_table_unref);
  return ok ? g_steal_pointer (&items) : NULL;
}

/* --- rows --- */

static gboolean
give_row (KsEvalLoading *loading, const char *path, guint number, const cJSON *row,
          KsEvalJsonRow func, gpointer user, GError **error)
{
  g_autoptr (GError) local = NULL;

  if (!cJSON_IsObject (row))
    g_set_error_literal (&local, KS_APP_ERROR, KS_APP_ERROR_FAILED, "it is no JSON object");
  else if (func (loading, row, user, &local))
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "row %u of %s cannot be used: %s", number,
               path, local->message);
  return FALSE;
}

static gboolean
load_lines (KsEvalLoading *loading, const char *path, const char *text, KsEvalJsonRow func,
            gpointer user, GError **error)
{
  guint number = 1;

  for (const char *at = text; *at != '\0'; number++) {
    const char *end = strchr (at, '\n');
    gsize n = end != NULL ? (gsize)(end - at) : strlen (at);
    g_autofree char *line = g_strstrip (g_strndup (at, n));
    cJSON *row;
    gboolean ok;

    at += n + (end != NULL);
    if (line[0] == '\0')
      continue;
    row = cJSON_Parse (line);
    ok = give_row (loading, path, number, row, func, user, error);
    cJSON_Delete (row);
    if (!ok)
      return FALSE;
  }
  return TRUE;
}

/* More than one value in the file: lines, whatever its name ends in. */
static gboolean
is_lines (const char *text)
{
  const char *end = NULL;
  cJSON *first = cJSON_ParseWithOpts (text, &end, FALSE);
  gboolean more = cJSON_IsObject (first);

  cJSON_Delete (first);
  while (more && g_ascii_isspace (*end))
    end++;
  return more && *end == '{';
}

static gboolean
load_whole (KsEvalLoading *loading, const char *path, const char *text, KsEvalJsonRow func,
            gpointer user, GError **error)
{
  cJSON *json = cJSON_ParseWithOpts (text, NULL, TRUE), *row;
  const cJSON *list = json, *data = cJSON_GetObjectItemCaseSensitive (json, "data");
  guint number = 1;
  gboolean ok = TRUE;

  if (json == NULL && is_lines (text))
    return load_lines (loading, path, text, func, user, error);
  if (json == NULL) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "%s is no JSON", path);
    return FALSE;
  }
  if (cJSON_IsArray (data))
    list = data;
  cJSON_ArrayForEach (row, list)
  {
    ok = ok && give_row (loading, path, number++, row, func, user, error);
  }
  cJSON_Delete (json);
  return ok;
}

char *
ks_eval_load_text (const char *path, gsize *out_n, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GFileInfo) info =
      g_file_query_info (file, G_FILE_ATTRIBUTE_STANDARD_SIZE, G_FILE_QUERY_INFO_NONE, NULL, error);
  char *text = NULL;

  if (info == NULL)
    return NULL;
  if (g_file_info_get_size (info) > MAX_BYTES)
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_TOO_LARGE, "%s is larger than 1 GiB", path);
  else if (!g_file_get_contents (path, &text, out_n, error))
    return NULL;
  return text;
}

gboolean
ks_eval_load_json (KsEvalLoading *loading, const char *path, KsEvalJsonRow func, gpointer user,
                   GError **error)
{
  gsize n = 0;
  g_autofree char *text = ks_eval_load_text (path, &n, error);
  const char *begin;

  if (text == NULL)
    return FALSE;
  if (strlen (text) != n) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "%s is damaged: it holds a zero byte, behind which rows would be missing", path);
    return FALSE;
  }
  begin = g_str_has_prefix (text, "\xef\xbb\xbf") ? text + 3 : text;
  return g_str_has_suffix (path, ".jsonl") ? load_lines (loading, path, begin, func, user, error)
                                           : load_whole (loading, path, begin, func, user, error);
}

gboolean
ks_eval_load_tsv (KsEvalLoading *loading, KsEvalTsvRow func, GError **error)
{
  g_autoptr (KsEvalTsv) tsv = ks_eval_tsv_open (loading->file, error);
  g_autoptr (GError) local = NULL;

  if (tsv == NULL)
    return FALSE;
  while (ks_eval_tsv_next (tsv, &local)) {
    if (func (loading, tsv, &local))
      continue;
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "line %u of %s cannot be used: %s",
                 ks_eval_tsv_get_line (tsv), loading->file, local->message);
    return FALSE;
  }
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

/* --- fields --- */

static char *
dup_value (const cJSON *value)
{
  if (cJSON_IsString (value))
    return g_utf8_make_valid (value->valuestring, -1);
  if (!cJSON_IsNumber (value))
    return NULL;
  if (value->valuedouble == (double)(gint64)CLAMP (value->valuedouble, -1e15, 1e15))
    return g_strdup_printf ("%" G_GINT64_FORMAT, (gint64)value->valuedouble);
  return g_strdup_printf ("%.17g", value->valuedouble);
}

static void
set_missing (const char *names, GError **error)
{
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "it has no field \"%s\"", names);
}

char *
ks_eval_load_dup_field (const cJSON *row, const char *names, GError **error)
{
  g_auto (GStrv) list = g_strsplit (names, "|", -1);

  for (guint i = 0; list[i] != NULL; i++) {
    char *text = dup_value (cJSON_GetObjectItem (row, list[i])); /* case ignored */

    if (text != NULL)
      return text;
  }
  set_missing (names, error);
  return NULL;
}

char *
ks_eval_load_dup_column (const KsEvalTsv *tsv, const char *names, GError **error)
{
  g_auto (GStrv) list = g_strsplit (names, "|", -1);

  for (guint i = 0; list[i] != NULL; i++) {
    char *text = ks_eval_tsv_dup (tsv, list[i]);

    if (text != NULL)
      return text;
  }
  set_missing (names, error);
  return NULL;
}

char **
ks_eval_load_dup_list (const cJSON *row, const char *name, GError **error)
{
  const cJSON *list = cJSON_GetObjectItem (row, name), *at;
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  if (!cJSON_IsArray (list)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "its field \"%s\" is no list", name);
    return NULL;
  }
  cJSON_ArrayForEach (at, list)
  {
    g_autofree char *text = dup_value (at);

    if (text == NULL) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                   "its list \"%s\" holds something that is no text", name);
      return NULL;
    }
    g_strv_builder_add (builder, text);
  }
  return g_strv_builder_end (builder);
}

/* --- items and pictures --- */

KsEvalItem *
ks_eval_load_add (KsEvalLoading *loading, const char *part, const char *id)
{
  KsEvalItem *item = ks_eval_item_new (loading->bench, part, id);

  g_ptr_array_add (loading->items, item);
  return item;
}

static gboolean
leads_out (const char *name)
{
  g_auto (GStrv) parts = g_strsplit (name, "/", -1);

  for (guint i = 0; parts[i] != NULL; i++)
    if (strcmp (parts[i], "..") == 0)
      return TRUE;
  return g_path_is_absolute (name);
}

char *
ks_eval_load_find_picture (KsEvalLoading *loading, const char *sub, const char *name,
                           GError **error)
{
  const char *root = loading->options->pictures;
  g_autofree char *inside = NULL;

  if (leads_out (name)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "its picture \"%s\" does not lie in the folder of the pictures", name);
    return NULL;
  }
  if (root != NULL)
    return g_build_filename (root, name, NULL);
  inside = sub != NULL ? g_build_filename (loading->folder, sub, name, NULL) : NULL;
  if (inside != NULL && g_file_test (inside, G_FILE_TEST_EXISTS))
    return g_steal_pointer (&inside);
  return g_build_filename (loading->folder, name, NULL);
}

/* Rows may name another one for their pictures: all of them by index. */
static gboolean
make_shared (KsEvalLoading *loading, GError **error)
{
  g_autoptr (KsEvalTsv) tsv = NULL;
  g_autoptr (GError) local = NULL;

  if (loading->shared != NULL)
    return TRUE;
  tsv = ks_eval_tsv_open (loading->file, error);
  if (tsv == NULL)
    return FALSE;
  loading->shared =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
  while (ks_eval_tsv_next (tsv, &local)) {
    GPtrArray *pictures = ks_eval_tsv_get_base64 (tsv, "image");
    char *index = ks_eval_tsv_dup (tsv, "index");

    if (pictures->len > 0 && index != NULL)
      g_hash_table_insert (loading->shared, g_steal_pointer (&index), g_ptr_array_ref (pictures));
    g_ptr_array_unref (pictures);
    g_free (index);
  }
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

/* The file that the column "image" names, if it does. (transfer full) */
static char *
find_named_picture (KsEvalLoading *loading, const KsEvalTsv *tsv)
{
  gsize n = ks_eval_tsv_get_n_bytes (tsv, "image");
  g_autofree char *name = n > 0 && n <= MAX_NAME ? ks_eval_tsv_dup (tsv, "image") : NULL;
  g_autofree char *path =
      name != NULL ? ks_eval_load_find_picture (loading, NULL, g_strstrip (name), NULL) : NULL;

  return path != NULL && g_file_test (path, G_FILE_TEST_IS_REGULAR) ? g_steal_pointer (&path)
                                                                    : NULL;
}

gboolean
ks_eval_load_add_tsv_pictures (KsEvalLoading *loading, const KsEvalTsv *tsv, KsEvalTurn *turn,
                               GError **error)
{
  g_autofree char *path = find_named_picture (loading, tsv);
  g_autoptr (GPtrArray) own = NULL;
  const GPtrArray *pictures;

  if (path != NULL) {
    ks_eval_turn_add_picture (turn, path);
    return TRUE;
  }
  own = ks_eval_tsv_get_base64 (tsv,
                                ks_eval_tsv_has (tsv, "decoded_image") ? "decoded_image" : "image");
  pictures = own;
  if (own->len == 0) {
    g_autofree char *index = ks_eval_load_dup_column (tsv, "image", error);

    if (index == NULL || !make_shared (loading, error))
      return FALSE;
    pictures = g_hash_table_lookup (loading->shared, g_strstrip (index));
  }
  if (pictures == NULL) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "its column \"image\" holds no encoded picture and names no file");
    return FALSE;
  }
  for (guint i = 0; i < pictures->len; i++)
    ks_eval_turn_add_base64 (turn, g_ptr_array_index (pictures, i));
  return TRUE;
}

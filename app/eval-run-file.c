/* eval-run-file.c - the run file: opening, going on, appending; see eval-run.h.
 * Rows are appended with one write each and flushed.  The end of a line that the last run did not
 * finish is cut off before the first new one. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-run.h"

#include "app/ks-error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MAX_FILE_BYTES ((goffset)1 << 30)

struct _KsEvalRunFile {
  char *path;
  int fd; /* -1 = read only */
  cJSON *header;
  GPtrArray *rows;
  GHashTable *names; /* of the rows: make_name */
};

static char *
make_name (const KsEvalCell *cell, const char *bench, const char *id, guint turn)
{
  g_autofree char *key = ks_eval_cell_make_key (cell);

  return g_strdup_printf ("%s\n%s\n%s\n%u", key, bench, id, turn);
}

static KsEvalRunFile *
file_new (const char *path)
{
  KsEvalRunFile *file = g_new0 (KsEvalRunFile, 1);

  file->path = g_strdup (path);
  file->fd = -1;
  file->rows = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_row_free);
  file->names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return file;
}

void
ks_eval_run_file_free (KsEvalRunFile *file)
{
  if (file == NULL)
    return;
  if (file->fd >= 0)
    close (file->fd); /* every row was flushed when it was written */
  cJSON_Delete (file->header);
  g_ptr_array_unref (file->rows);
  g_hash_table_unref (file->names);
  g_free (file->path);
  g_free (file);
}

static gboolean
fail_errno (const KsEvalRunFile *file, const char *what, GError **error)
{
  int code = errno;

  g_set_error (error, G_FILE_ERROR, (int)g_file_error_from_errno (code), "%s %s: %s", what,
               file->path, g_strerror (code));
  return FALSE;
}

/* --- reading --- */

static gboolean
keep_row (KsEvalRunFile *file, const cJSON *json, GError **error)
{
  g_autoptr (KsEvalRow) row = ks_eval_row_from_json (json, error);
  char *name;

  if (row == NULL)
    return FALSE;
  name = make_name (&row->cell, row->bench, row->id, row->turn);
  if (!g_hash_table_add (file->names, name)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "the answer to %s, turn %u, of %s at %" G_GUINT64_FORMAT
                 " entries stands there twice: remove one of the lines",
                 row->id, row->turn, row->cell.policy, row->cell.entries);
    return FALSE;
  }
  g_ptr_array_add (file->rows, g_steal_pointer (&row));
  return TRUE;
}

static gboolean
read_line (KsEvalRunFile *file, const char *line, gsize n, GError **error)
{
  cJSON *json = cJSON_ParseWithLength (line, n), *run;
  gboolean ok;

  if (json == NULL) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "it is no JSON");
    return FALSE;
  }
  run = cJSON_DetachItemFromObjectCaseSensitive (json, "run");
  if (run != NULL && file->header == NULL && file->rows->len == 0) {
    file->header = run;
    ok = cJSON_IsObject (run);
    if (!ok)
      g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "\"run\" is no object");
  } else {
    cJSON_Delete (run);
    ok = keep_row (file, json, error);
  }
  cJSON_Delete (json);
  return ok;
}

static gboolean
is_blank (const char *line, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (!g_ascii_isspace (line[i]))
      return FALSE;
  return TRUE;
}

/* *out_whole: bytes up to the end of the last whole line.  A last line without its end counts only
 * where it can be read (files of others may lack it). */
static gboolean
read_text (KsEvalRunFile *file, const char *text, gsize n, gsize *out_whole, GError **error)
{
  guint number = 1;

  for (gsize at = 0; at < n; number++) {
    const char *end = memchr (text + at, '\n', n - at);
    gsize n_line = end != NULL ? (gsize)(end - text) - at : n - at;
    g_autoptr (GError) local = NULL;

    if (is_blank (text + at, n_line) || read_line (file, text + at, n_line, &local)) {
      at += n_line + (end != NULL);
      *out_whole = at;
      continue;
    }
    if (end == NULL)
      return TRUE; /* cut when the program was ended */
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "line %u of %s cannot be used: %s",
                 number, file->path, local->message);
    return FALSE;
  }
  return TRUE;
}

static gboolean
check_size (const KsEvalRunFile *file, GError **error)
{
  g_autoptr (GFile) at = g_file_new_for_path (file->path);
  g_autoptr (GFileInfo) info =
      g_file_query_info (at, G_FILE_ATTRIBUTE_STANDARD_SIZE, G_FILE_QUERY_INFO_NONE, NULL, error);

  if (info == NULL)
    return FALSE;
  if (g_file_info_get_size (info) <= MAX_FILE_BYTES)
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_TOO_LARGE, "%s is larger than 1 GiB", file->path);
  return FALSE;
}

KsEvalRunFile *
ks_eval_run_file_load (const char *path, GError **error)
{
  g_autoptr (KsEvalRunFile) file = file_new (path);
  g_autofree char *text = NULL;
  gsize n = 0, n_whole = 0;

  if (!check_size (file, error) || !g_file_get_contents (path, &text, &n, error) ||
      !read_text (file, text, n, &n_whole, error))
    return NULL;
  if (file->header == NULL)
    file->header = cJSON_CreateObject ();
  return g_steal_pointer (&file);
}

/* --- writing --- */

static gboolean
write_line (KsEvalRunFile *file, cJSON *take_json, GError **error)
{
  char *text = cJSON_PrintUnformatted (take_json);
  g_autofree char *line = g_strconcat (text, "\n", NULL);
  gsize n = strlen (line), n_done = 0;

  cJSON_free (text);
  cJSON_Delete (take_json);
  while (n_done < n) {
    ssize_t wrote = write (file->fd, line + n_done, n - n_done);

    if (wrote < 0 && errno != EINTR)
      return fail_errno (file, "cannot write", error);
    n_done += wrote > 0 ? (gsize)wrote : 0;
  }
  return fdatasync (file->fd) == 0 || errno == EINVAL || fail_errno (file, "cannot write", error);
}

/* The first field that the two do not agree on, or NULL. */
static const char *
find_difference (const cJSON *a, const cJSON *b)
{
  const cJSON *at;

  cJSON_ArrayForEach (at, a)
  {
    if (!cJSON_Compare (at, cJSON_GetObjectItemCaseSensitive (b, at->string), TRUE))
      return at->string;
  }
  cJSON_ArrayForEach (at, b)
  {
    if (cJSON_GetObjectItemCaseSensitive (a, at->string) == NULL)
      return at->string;
  }
  return NULL;
}

static gboolean
take_header (KsEvalRunFile *file, const cJSON *header, GError **error)
{
  const char *field;
  cJSON *line;

  if (file->header == NULL && file->rows->len > 0) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "%s does not say what its rows were made with: give another file with --out",
                 file->path);
    return FALSE;
  }
  if (file->header == NULL) {
    file->header = cJSON_Duplicate (header, TRUE);
    line = cJSON_CreateObject ();
    cJSON_AddItemToObject (line, "run", cJSON_Duplicate (header, TRUE));
    return write_line (file, line, error);
  }
  field = find_difference (file->header, header);
  if (field == NULL)
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "%s was begun with another \"%s\": give another file with --out, or the same again",
               file->path, field);
  return FALSE;
}

static gboolean
open_for_writing (KsEvalRunFile *file, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (file->path);

  if (g_mkdir_with_parents (folder, 0755) != 0)
    return fail_errno (file, "cannot make the folder of", error);
  file->fd = open (file->path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0644);
  if (file->fd < 0)
    return fail_errno (file, "cannot open", error);
  if (flock (file->fd, LOCK_EX | LOCK_NB) == 0)
    return TRUE;
  if (errno != EWOULDBLOCK)
    return fail_errno (file, "cannot lock", error);
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
               "another run writes to %s: wait for it, or give another file with --out",
               file->path);
  return FALSE;
}

/* Rows begin on a line of their own. */
static gboolean
end_last_line (KsEvalRunFile *file, const char *text, gsize n_whole, GError **error)
{
  if (ftruncate (file->fd, (off_t)n_whole) != 0)
    return fail_errno (file, "cannot shorten", error);
  if (n_whole == 0 || text[n_whole - 1] == '\n')
    return TRUE;
  return write (file->fd, "\n", 1) == 1 || fail_errno (file, "cannot write", error);
}

KsEvalRunFile *
ks_eval_run_file_open (const char *path, const cJSON *header, GError **error)
{
  g_autoptr (KsEvalRunFile) file = file_new (path);
  g_autofree char *text = NULL;
  gsize n = 0, n_whole = 0;

  g_return_val_if_fail (cJSON_IsObject (header), NULL);
  if (!open_for_writing (file, error) || !check_size (file, error) ||
      !g_file_get_contents (path, &text, &n, error) ||
      !read_text (file, text, n, &n_whole, error) || !end_last_line (file, text, n_whole, error) ||
      !take_header (file, header, error))
    return NULL;
  return g_steal_pointer (&file);
}

gboolean
ks_eval_run_file_append (KsEvalRunFile *file, KsEvalRow *take_row, GError **error)
{
  g_autoptr (KsEvalRow) row = take_row;
  g_autofree char *name = NULL;

  g_return_val_if_fail (file != NULL && file->fd >= 0 && row != NULL, FALSE);
  name = make_name (&row->cell, row->bench, row->id, row->turn);
  g_return_val_if_fail (!g_hash_table_contains (file->names, name), FALSE);
  if (!write_line (file, ks_eval_row_to_json (row), error))
    return FALSE;
  g_hash_table_add (file->names, g_steal_pointer (&name));
  g_ptr_array_add (file->rows, g_steal_pointer (&row));
  return TRUE;
}

/* --- asking --- */

gboolean
ks_eval_run_file_has (const KsEvalRunFile *file, const KsEvalCell *cell, const char *bench,
                      const char *id, guint turn)
{
  g_autofree char *name = make_name (cell, bench, id, turn);

  return g_hash_table_contains (file->names, name);
}

GPtrArray *
ks_eval_run_file_get_rows (KsEvalRunFile *file)
{
  return file->rows;
}

const cJSON *
ks_eval_run_file_get_header (const KsEvalRunFile *file)
{
  return file->header;
}

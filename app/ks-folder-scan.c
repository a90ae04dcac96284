/* ks-folder-scan.c - see ks-folder-scan.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-folder-scan.h"

#include "app/ks-attach-job.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#define MAX_DEPTH 16u
#define MAX_ENTRIES 20000u
#define TOO_MANY "there are too many files: send the rest in another message"

typedef struct {
  GPtrArray *files; /* of KsFolderFile */
  GCancellable *cancellable;
  guint max_files, n_taken, n_entry;
} Scan;

void
ks_folder_file_free (KsFolderFile *file)
{
  if (file == NULL)
    return;
  g_free (file->path);
  g_free (file->name);
  g_free (file->refused);
  g_free (file);
}

/* One entry of a folder, with what it is sorted by. */
typedef struct {
  char *name, *key;
  GStatBuf st;
  gboolean is_lost;
} Entry;

static void
free_entry (gpointer data)
{
  Entry *entry = data;

  g_free (entry->name);
  g_free (entry->key);
  g_free (entry);
}

static gint
compare_entries (gconstpointer a, gconstpointer b)
{
  const Entry *first = *(Entry *const *)a, *second = *(Entry *const *)b;
  gboolean first_dir = S_ISDIR (first->st.st_mode), second_dir = S_ISDIR (second->st.st_mode);
  int order = first_dir - second_dir;

  if (order == 0)
    order = strcmp (first->key, second->key);
  return order != 0 ? order : strcmp (first->name, second->name);
}

static void
add_file (Scan *scan, const char *path, const char *name, const char *refused)
{
  KsFolderFile *file = g_new0 (KsFolderFile, 1);

  file->path = g_strdup (path);
  file->name = g_filename_display_name (name);
  file->refused = g_strdup (refused);
  file->is_beyond = g_strcmp0 (refused, TOO_MANY) == 0;
  scan->n_taken += refused == NULL;
  g_ptr_array_add (scan->files, file);
}

/* Why this entry, which is no folder, is not read; NULL = it is. */
static const char *
judge (const Scan *scan, const Entry *entry)
{
  if (entry->is_lost)
    return "it cannot be opened";
  if (S_ISLNK (entry->st.st_mode))
    return "it is a link: attach the file that it leads to";
  if (!S_ISREG (entry->st.st_mode))
    return "it is no file";
  if (entry->st.st_size == 0)
    return "it is empty";
  if ((guint64)entry->st.st_size > KS_ATTACH_MAX_BYTES)
    return "it is larger than 1 GiB: attach a part of it";
  if (scan->n_taken >= scan->max_files)
    return TOO_MANY;
  return NULL;
}

/* Sorted; hidden ones are left out. (transfer full), NULL with error */
static GPtrArray *
list_entries (Scan *scan, const char *path, GError **error)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, error);
  g_autoptr (GPtrArray) entries = NULL;
  const char *name;

  if (dir == NULL)
    return NULL;
  entries = g_ptr_array_new_with_free_func (free_entry);
  while ((name = g_dir_read_name (dir)) != NULL && scan->n_entry < MAX_ENTRIES) {
    g_autofree char *full = NULL, *shown = NULL;
    Entry *entry;

    if (name[0] == '.')
      continue;
    scan->n_entry++;
    full = g_build_filename (path, name, NULL);
    shown = g_filename_display_name (name);
    entry = g_new0 (Entry, 1);
    entry->name = g_strdup (name);
    entry->key = g_utf8_collate_key_for_filename (shown, -1);
    entry->is_lost = g_lstat (full, &entry->st) != 0;
    g_ptr_array_add (entries, entry);
  }
  g_ptr_array_sort (entries, compare_entries);
  return g_steal_pointer (&entries);
}

/* below: the folder's own place under the one that was asked for, "" for that. */
static gboolean
scan_folder (Scan *scan, const char *path, const char *below, guint depth, GError **error)
{
  g_autoptr (GPtrArray) entries = list_entries (scan, path, error);

  if (entries == NULL)
    return FALSE;
  for (guint i = 0; i < entries->len; i++) {
    const Entry *entry = g_ptr_array_index (entries, i);
    g_autofree char *full = g_build_filename (path, entry->name, NULL);
    g_autofree char *name = g_build_filename (below, entry->name, NULL);
    g_autoptr (GError) local = NULL;

    if (g_cancellable_set_error_if_cancelled (scan->cancellable, error))
      return FALSE;
    if (!S_ISDIR (entry->st.st_mode))
      add_file (scan, full, name, judge (scan, entry));
    else if (depth >= MAX_DEPTH)
      add_file (scan, full, name, "it is a folder too deep below this one: attach it by itself");
    else if (!scan_folder (scan, full, name, depth + 1, &local)) {
      if (g_error_matches (local, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        g_propagate_error (error, g_steal_pointer (&local));
        return FALSE;
      }
      add_file (scan, full, name, "it is a folder that cannot be opened");
    }
  }
  return TRUE;
}

GPtrArray *
ks_folder_scan (const char *path, guint max_files, GCancellable *cancellable, GError **error)
{
  g_autoptr (GPtrArray) files =
      g_ptr_array_new_with_free_func ((GDestroyNotify)ks_folder_file_free);
  Scan scan = {.files = files, .cancellable = cancellable, .max_files = max_files};

  g_return_val_if_fail (path != NULL, NULL);
  if (!scan_folder (&scan, path, "", 0, error))
    return NULL;
  if (scan.n_entry >= MAX_ENTRIES)
    add_file (&scan, path, "...",
              "the folder holds more than 20,000 entries: the rest was not seen");
  if (files->len == 0) {
    g_autofree char *shown = g_filename_display_name (path);

    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "%s holds no files", shown);
    return NULL;
  }
  return g_steal_pointer (&files);
}

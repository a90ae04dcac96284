/* test-folder-scan.c - a folder as a list of files with a verdict on each. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-folder-scan.h"
#include "tests/remove-tree.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder;

static void
put (const char *name, const char *content)
{
  g_autofree char *path = g_build_filename (folder, name, NULL), *dir = g_path_get_dirname (path);
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (g_mkdir_with_parents (dir, 0700), ==, 0);
  g_file_set_contents (path, content, -1, &error);
  g_assert_no_error (error);
}

static void
set_up (void)
{
  g_autoptr (GError) error = NULL;

  folder = g_dir_make_tmp ("ks-folder-XXXXXX", &error);
  g_assert_no_error (error);
}

static void
tear_down (void)
{
  remove_tree (folder);
  g_clear_pointer (&folder, g_free);
}

static GPtrArray *
scan (guint max_files)
{
  g_autoptr (GError) error = NULL;
  GPtrArray *files = ks_folder_scan (folder, max_files, NULL, &error);

  g_assert_no_error (error);
  return files;
}

static const KsFolderFile *
get (GPtrArray *files, guint i)
{
  g_assert_cmpuint (i, <, files->len);
  return g_ptr_array_index (files, i);
}

/* Numbers by value, a folder's own files first, nothing hidden; names are below the folder. */
static void
test_order (void)
{
  static const char *const names[] = {"page 2.txt", "page 10.txt", "Zebra/a.txt", "sub/deep/b.txt"};
  g_autoptr (GPtrArray) files = NULL;
  gboolean seen[4] = {FALSE};

  set_up ();
  put ("page 10.txt", "x");
  put ("page 2.txt", "x");
  put ("sub/deep/b.txt", "x");
  put ("Zebra/a.txt", "x");
  put (".hidden", "x");
  put (".git/config", "x");
  files = scan (10);
  g_assert_cmpuint (files->len, ==, 4);
  g_assert_cmpstr (get (files, 0)->name, ==, names[0]);
  g_assert_cmpstr (get (files, 1)->name, ==, names[1]);
  for (guint i = 0; i < 4; i++)
    for (guint n = 0; n < 4; n++)
      seen[n] = seen[n] || g_str_equal (get (files, i)->name, names[n]);
  for (guint n = 0; n < 4; n++)
    g_assert_true (seen[n]);
  for (guint i = 0; i < 4; i++)
    g_assert_null (get (files, i)->refused);
  tear_down ();
}

static const char *
find_refusal (GPtrArray *files, const char *name)
{
  for (guint i = 0; i < files->len; i++)
    if (g_str_equal (get (files, i)->name, name))
      return get (files, i)->refused;
  g_assert_not_reached ();
}

/* Links, sockets, empty and huge files: each keeps its line and says why it is not read.  A link
 * that leads up the tree makes no circle. */
static void
test_refused (void)
{
  g_autofree char *link = NULL, *loop = NULL, *pipe = NULL, *huge = NULL;
  g_autoptr (GPtrArray) files = NULL;

  set_up ();
  put ("good.txt", "x");
  put ("empty.txt", "");
  put ("huge.bin", "x");
  link = g_build_filename (folder, "passwd", NULL);
  loop = g_build_filename (folder, "loop", NULL);
  pipe = g_build_filename (folder, "pipe", NULL);
  huge = g_build_filename (folder, "huge.bin", NULL);
  g_assert_cmpint (symlink ("/etc/passwd", link), ==, 0);
  g_assert_cmpint (symlink ("..", loop), ==, 0);
  g_assert_cmpint (mkfifo (pipe, 0600), ==, 0);
  g_assert_cmpint (truncate (huge, ((gint64)1 << 30) + 1), ==, 0);
  files = scan (10);
  g_assert_cmpuint (files->len, ==, 6);
  g_assert_null (find_refusal (files, "good.txt"));
  g_assert_nonnull (strstr (find_refusal (files, "empty.txt"), "empty"));
  g_assert_nonnull (strstr (find_refusal (files, "passwd"), "link"));
  g_assert_nonnull (strstr (find_refusal (files, "loop"), "link"));
  g_assert_nonnull (strstr (find_refusal (files, "pipe"), "no file"));
  g_assert_nonnull (strstr (find_refusal (files, "huge.bin"), "1 GiB"));
  tear_down ();
}

/* Over the number that is wanted the rest is refused, not forgotten. */
static void
test_too_many (void)
{
  g_autoptr (GPtrArray) files = NULL;
  guint n_taken = 0;

  set_up ();
  for (guint i = 0; i < 7; i++) {
    g_autofree char *name = g_strdup_printf ("%u.txt", i);

    put (name, "x");
  }
  files = scan (5);
  g_assert_cmpuint (files->len, ==, 7);
  for (guint i = 0; i < 7; i++)
    n_taken += get (files, i)->refused == NULL;
  g_assert_cmpuint (n_taken, ==, 5);
  g_assert_nonnull (strstr (get (files, 6)->refused, "too many"));
  tear_down ();
}

/* Nothing to read, no folder, and a cancelled scan are errors with a sentence. */
static void
test_errors (void)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  set_up ();
  g_assert_null (ks_folder_scan (folder, 5, NULL, &error));
  g_assert_nonnull (strstr (error->message, "no files"));
  g_clear_error (&error);
  put ("a.txt", "x");
  g_cancellable_cancel (cancellable);
  g_assert_null (ks_folder_scan (folder, 5, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_null (ks_folder_scan ("/nowhere/at/all", 5, NULL, &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  tear_down ();
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/folder-scan/order", test_order);
  g_test_add_func ("/folder-scan/refused", test_refused);
  g_test_add_func ("/folder-scan/too-many", test_too_many);
  g_test_add_func ("/folder-scan/errors", test_errors);
  return g_test_run ();
}

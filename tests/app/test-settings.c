/* test-settings.c - settings survive a restart; a missing or damaged file means the defaults. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-settings.h"

#include <glib/gstdio.h>
#include <sys/stat.h>

static void
test_round_trip (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp ("ks-settings-XXXXXX", &error);
  g_autofree char *inner = g_build_filename (folder, "inner", NULL);
  g_autofree char *path = g_build_filename (inner, "settings.ini", NULL);
  g_autofree char *model = NULL, *budget = NULL;
  struct stat st;

  g_assert_no_error (error);
  {
    g_autoptr (KsSettings) settings = ks_settings_new (path);

    g_assert_null (ks_settings_dup_model (settings));
    g_assert_cmpuint (ks_settings_get_max_tokens (settings), ==, 512);
    ks_settings_set_model (settings, "smollm2");
    ks_settings_set_kv_budget (settings, "24MiB");
    ks_settings_set_n_thread (settings, 2);
    ks_settings_set_max_tokens (settings, 99);
    g_assert_true (ks_settings_save (settings, &error));
    g_assert_no_error (error);
  }
  {
    g_autoptr (KsSettings) settings = ks_settings_new (path);

    model = ks_settings_dup_model (settings);
    budget = ks_settings_dup_kv_budget (settings);
    g_assert_cmpstr (model, ==, "smollm2");
    g_assert_cmpstr (budget, ==, "24MiB");
    g_assert_cmpuint (ks_settings_get_n_thread (settings), ==, 2);
    g_assert_cmpuint (ks_settings_get_max_tokens (settings), ==, 99);
  }
  g_assert_cmpint (g_stat (path, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 0777, ==, 0600);
  g_assert_cmpint (g_unlink (path), ==, 0);
  g_assert_cmpint (g_rmdir (inner), ==, 0);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

static void
test_damaged (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = NULL;
  int fd = g_file_open_tmp ("ks-settings-XXXXXX", &path, &error);

  g_assert_no_error (error);
  g_close (fd, NULL);
  g_file_set_contents (path, "[keepsake]\nthreads=-4\nmax-tokens=many\nmodel=\n", -1, &error);
  g_assert_no_error (error);
  {
    g_autoptr (KsSettings) settings = ks_settings_new (path);

    g_assert_cmpuint (ks_settings_get_n_thread (settings), ==, 0);
    g_assert_cmpuint (ks_settings_get_max_tokens (settings), ==, 512);
    g_assert_null (ks_settings_dup_model (settings));
  }
  g_unlink (path);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/settings/round-trip", test_round_trip);
  g_test_add_func ("/settings/damaged", test_damaged);
  return g_test_run ();
}

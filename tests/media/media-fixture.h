/* media-fixture.h - generated files in a folder of their own, and what every media test promises.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-media.h"
#include "tests/remove-tree.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static inline char *
make_folder (void)
{
  g_autoptr (GError) error = NULL;
  char *path = g_dir_make_tmp ("ks-media-XXXXXX", &error);

  g_assert_no_error (error);
  return path;
}

/* Runs make-hostile.py ($KS_MAKE_HOSTILE, started by $KS_PYTHON) for one group of files, NULL =
 * all. (transfer full) the folder */
static inline char *
make_files (const char *group)
{
  g_autoptr (GError) error = NULL;
  char *path = make_folder ();
  const char *args[] = {
      g_getenv ("KS_PYTHON"), "-B", g_getenv ("KS_MAKE_HOSTILE"), path, group, NULL};
  int status = -1;

  g_assert_nonnull (args[0]);
  g_spawn_sync (NULL, (char **)args, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, &status,
                &error);
  g_assert_no_error (error);
  g_assert_cmpint (status, ==, 0);
  return path;
}

/* No worker is left, running or waiting to be asked for its end. */
static inline void
assert_no_children (void)
{
  g_assert_cmpint (waitpid (-1, NULL, WNOHANG), ==, -1);
  g_assert_cmpint (errno, ==, ECHILD);
}

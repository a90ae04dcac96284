/* remove-tree.h - removes a test's folder with all that is in it; links are removed, not followed.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib/gstdio.h>

static inline void
remove_tree(const char *path)
{
  g_autoptr(GDir) dir = NULL;
  const char *name;

  if (!g_file_test(path, G_FILE_TEST_IS_SYMLINK))
    dir = g_dir_open(path, 0, NULL);
  while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
    g_autofree char *inner = g_build_filename(path, name, NULL);

    remove_tree(inner);
  }
  g_assert_cmpint(g_remove(path), ==, 0);
}

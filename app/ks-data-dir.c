/* ks-data-dir.c - see ks-data-dir.h.
 * KS_BUILD_ROOT and KS_SOURCE_DATADIR are known to a program that still lies in its build folder;
 * an installed copy never looks there. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-data-dir.h"

static gboolean
runs_from_build (void)
{
  g_autofree char *program = g_file_read_link ("/proc/self/exe", NULL);

  return program != NULL && g_str_has_prefix (program, KS_BUILD_ROOT "/");
}

char *
ks_data_dir_dup (void)
{
  const char *asked = g_getenv ("KS_DATA_DIR");

  if (asked != NULL && asked[0] != '\0')
    return g_strdup (asked);
  return g_strdup (runs_from_build () ? KS_SOURCE_DATADIR : KS_DATADIR);
}

char *
ks_schema_dir_dup (void)
{
  return g_strdup (runs_from_build () ? KS_BUILD_ROOT "/data" : KS_SCHEMADIR);
}

char *
ks_locale_dir_dup (void)
{
  return g_strdup (runs_from_build () ? KS_BUILD_ROOT "/po" : KS_LOCALEDIR);
}

char *
ks_models_dir_dup (void)
{
  return g_build_filename (g_get_user_data_dir (), "keepsake", "models", NULL);
}

/* ks-migrations.c - see ks-migrations.h.  A new schema is a file schema-NNN.sql, a line in steps
 * below and a line in meson.build; a published step is never edited. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-migrations.h"

#include "storage/ks-schema.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>

static const char *const steps_to_newest[] = {ks_schema_001, ks_schema_002, ks_schema_003};

char *
ks_migrations_make_backup_path (const char *path, guint version)
{
  return g_strdup_printf ("%s.v%u.bak", path, version);
}

static gint64
get_version (KsDatabase *database)
{
  return ks_database_get_int (database, -1, "PRAGMA user_version", "");
}

/* Ours, or empty; anything else is left alone. */
static gboolean
check_owner (KsDatabase *database, gint64 version, guint newest, GError **error)
{
  gint64 owner = ks_database_get_int (database, -1, "PRAGMA application_id", "");
  gint64 n_tables = ks_database_get_int (database, -1, "SELECT count (*) FROM sqlite_schema", "");
  g_autofree char *name = g_filename_display_name (ks_database_get_path (database));

  if (owner == 0 && version == 0 && n_tables == 0)
    return TRUE;
  if (owner != KS_APPLICATION_ID || version <= 0) {
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_DAMAGED,
                 "%s is not a database of Keepsake; it was left as it is: move it away to start "
                 "anew.",
                 name);
    return FALSE;
  }
  if (version <= newest)
    return TRUE;
  g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NEWER,
               "%s was written by a newer Keepsake (schema %" G_GINT64_FORMAT
               ", this program knows %u); it was left as it is: update the program.",
               name, version, newest);
  return FALSE;
}

/* A whole copy under a temporary name, then the rename: a copy that exists is complete. */
static gboolean
back_up (KsDatabase *database, guint version, GError **error)
{
  g_autofree char *path = ks_migrations_make_backup_path (ks_database_get_path (database), version);
  g_autofree char *temporary = g_strconcat (path, ".tmp", NULL);
  int fd;

  g_unlink (temporary);
  fd = g_open (temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    ks_storage_error_set_errno (error, errno, "Cannot write the backup", temporary);
    return FALSE;
  }
  g_close (fd, NULL);
  if (!ks_database_run (database, error, "VACUUM INTO ?1", "s", temporary)) {
    g_unlink (temporary);
    return FALSE;
  }
  if (g_rename (temporary, path) == 0)
    return TRUE;
  ks_storage_error_set_errno (error, errno, "Cannot write the backup", path);
  g_unlink (temporary);
  return FALSE;
}

static gboolean
run_steps (KsDatabase *database, const char *const *steps, guint from, guint n_steps,
           GError **error)
{
  g_autofree char *marks = g_strdup_printf ("PRAGMA application_id = %d; PRAGMA user_version = %u",
                                            KS_APPLICATION_ID, n_steps);

  for (guint i = from; i < n_steps; i++)
    if (!ks_database_exec (database, steps[i], error))
      return FALSE;
  return ks_database_exec (database, marks, error);
}

gboolean
ks_migrations_run_steps (KsDatabase *database, const char *const *steps, guint n_steps,
                         GError **error)
{
  gint64 version = get_version (database);
  gboolean done;

  if (!check_owner (database, version, n_steps, error))
    return FALSE;
  if (version == n_steps)
    return TRUE;
  if (ks_database_is_read_only (database)) {
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_READ_ONLY,
                 "%s is of an older version and cannot be written: open it once where it can be.",
                 ks_database_get_path (database));
    return FALSE;
  }
  if (version > 0 && !back_up (database, (guint)version, error))
    return FALSE;
  if (!ks_database_begin (database, error))
    return FALSE;
  /* Another process may have been faster. */
  version = get_version (database);
  done = check_owner (database, version, n_steps, error) &&
         (version == n_steps || run_steps (database, steps, (guint)version, n_steps, error));
  return ks_database_end (database, done, error);
}

gboolean
ks_migrations_run (KsDatabase *database, GError **error)
{
  return ks_migrations_run_steps (database, steps_to_newest, G_N_ELEMENTS (steps_to_newest), error);
}

/* ks-migrations.h - numbered steps from an empty or older file to the newest schema.
 * An older file is copied beside itself first; all steps run in one transaction, so that a failure
 * leaves the file as it was.  Folder-private except for tests.  Source: docs/formats/schema.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-database.h"

G_BEGIN_DECLS

/* In the header of every file of ours: "KeeS". */
#define KS_APPLICATION_ID 0x4b656553

/* Brings the open file to the newest schema; a read-only one is only checked.
 * Errors: NEWER, DAMAGED (another program's database), READ_ONLY (older, but opened read-only). */
gboolean ks_migrations_run (KsDatabase *database, GError **error);
/* The same with steps of the caller: step i leads from version i to i + 1. */
gboolean ks_migrations_run_steps (KsDatabase *database, const char *const *steps, guint n_steps,
                                  GError **error);
/* Where the copy of version n lies. (transfer full) */
char *ks_migrations_make_backup_path (const char *path, guint version);

G_END_DECLS

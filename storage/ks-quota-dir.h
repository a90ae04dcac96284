/* ks-quota-dir.h - a folder of files that can be made again: under a quota, the least recently used
 * go first; mode 0600, each whole or not there.  Names are the owner's; others in the folder are
 * left alone.
 * Threads: any.  Another program may write and remove at the same time: what is gone is a miss. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-storage-error.h"

#include <sys/uio.h>

G_BEGIN_DECLS

typedef struct _KsQuotaDir KsQuotaDir;
typedef gboolean (*KsQuotaNameFunc) (const char *name, gpointer user_data);

/* is_ours: whether a name is one of the owner's.  Nothing is made before the first write. */
KsQuotaDir *ks_quota_dir_new (const char *path, KsQuotaNameFunc is_ours);
void ks_quota_dir_free (KsQuotaDir *dir); /* NULL is allowed */
/* 0 = nothing is kept; takes effect with the next write. */
void ks_quota_dir_set_quota (KsQuotaDir *dir, guint64 quota_bytes);
/* Bytes of all files. */
guint64 ks_quota_dir_get_bytes (KsQuotaDir *dir);

/* An open descriptor for reading, -1 when there is none; the file counts as used now. */
int ks_quota_dir_open (KsQuotaDir *dir, const char *name);
gboolean ks_quota_dir_has (KsQuotaDir *dir, const char *name);
/* Writes the parts one after the other.  More than the quota allows is not an error: nothing is
 * kept, and FALSE comes back without one. */
gboolean ks_quota_dir_put (KsQuotaDir *dir, const char *name, const struct iovec *parts,
                           guint n_part, GError **error);
void ks_quota_dir_drop (KsQuotaDir *dir, const char *name);
/* Removes the files whose names func says TRUE to. */
void ks_quota_dir_remove (KsQuotaDir *dir, KsQuotaNameFunc func, gpointer user_data);

G_END_DECLS

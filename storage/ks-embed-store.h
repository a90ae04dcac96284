/* ks-embed-store.h - what a vision model made of pictures, kept on the disk so that no picture is
 * encoded twice: DIR/<content hash>-<key>, mode 0600, under a quota, the least recently used go
 * first.  The content hash is the blob's (a blob that is removed takes its files with it), the key
 * says what else the numbers depend on.  Contents are opaque here: docs/formats/embeddings.md.
 * Threads: any; a file appears whole or not at all. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-blob-store.h"

#include <sys/uio.h>

G_BEGIN_DECLS

#define KS_TYPE_EMBED_STORE (ks_embed_store_get_type ())
G_DECLARE_FINAL_TYPE (KsEmbedStore, ks_embed_store, KS, EMBED_STORE, GObject)

/* Nothing is made before the first write. */
KsEmbedStore *ks_embed_store_new (const char *dir);
/* 0 = nothing is kept; takes effect with the next write. */
void ks_embed_store_set_quota (KsEmbedStore *self, guint64 quota_bytes);
/* Bytes of all files. */
guint64 ks_embed_store_get_bytes (KsEmbedStore *self);

/* hash and key: 64 hex digits each.  An open descriptor for reading, -1 when there is none; the
 * file counts as used now. */
int ks_embed_store_open (KsEmbedStore *self, const char *hash, const char *key);
/* Writes the parts one after the other.  More than the quota allows is not an error: nothing is
 * kept, and FALSE comes back without one. */
gboolean ks_embed_store_put (KsEmbedStore *self, const char *hash, const char *key,
                             const struct iovec *parts, guint n_part, GError **error);
/* A file that turned out to be damaged. */
void ks_embed_store_drop (KsEmbedStore *self, const char *hash, const char *key);
/* All files of a content; of contents that have no blob; everything. */
void ks_embed_store_remove (KsEmbedStore *self, const char *hash);
void ks_embed_store_sweep (KsEmbedStore *self, KsBlobStore *blobs);
void ks_embed_store_clear (KsEmbedStore *self);

G_END_DECLS

/* ks-embed-cache.h - what a vision model made of pictures, so that none is encoded twice: the
 * newest in memory, more of them on the disk.  A key says what the numbers depend on beside the
 * picture's content: preprocessing and the vision model.
 * Threads: engine.  Format on the disk: docs/formats/embeddings.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/vision.h"
#include "storage/ks-embed-store.h"

G_BEGIN_DECLS

typedef struct {
  guint n_encoded;        /* pictures that went through the tower */
  guint n_memory, n_disk; /* that were found again instead */
  guint64 memory_bytes;
} KsEmbedCounts;

typedef struct _KsEmbedCache KsEmbedCache;

/* store (NULL = memory only) is kept; n_embd and n_deep: of every embedding of this model. */
KsEmbedCache *ks_embed_cache_new (ks_alloc *alloc, KsEmbedStore *store, guint n_embd, guint n_deep);
void ks_embed_cache_free (KsEmbedCache *cache); /* NULL is allowed */
/* Bytes in memory; the one that was asked for last stays in any case. */
void ks_embed_cache_set_room (KsEmbedCache *cache, guint64 n_bytes);
/* Older ones go so that n_new bytes more fit, or all of them. */
void ks_embed_cache_make_room (KsEmbedCache *cache, guint64 n_new);
/* Sizes alone, without counting it as used; FALSE when it is not there. */
gboolean ks_embed_cache_find_plan (KsEmbedCache *cache, const char *hash, const char *key,
                                   ks_vision_plan *out_plan, double *out_time_s);
/* Borrowed until the next call; NULL when it is not there (a damaged file is removed) or memory is
 * short. */
const ks_vision_embeds *ks_embed_cache_find (KsEmbedCache *cache, const char *hash,
                                             const char *key);
/* A picture that was just encoded; *take becomes empty.  time_s: of a frame, else 0.  Borrowed
 * result as above.  disk_error is set when the disk refused it, which does not matter here. */
const ks_vision_embeds *ks_embed_cache_add (KsEmbedCache *cache, const char *hash, const char *key,
                                            ks_vision_embeds *take, double time_s,
                                            GError **disk_error);
KsEmbedCounts ks_embed_cache_get_counts (KsEmbedCache *cache);

G_END_DECLS

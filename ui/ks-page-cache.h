/* ks-page-cache.h - the few pages that a viewer holds as pictures, the least recently shown leave
 * first.
 * A plain structure, zeroed at start; threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gdk/gdk.h>

G_BEGIN_DECLS

#define KS_PAGE_CACHE_MAX_PAGES 3
/* Less than that many pages when they are large; one page always stays. */
#define KS_PAGE_CACHE_MAX_BYTES (128u * 1024u * 1024u)

typedef struct {
  guint page;
  guint side_px; /* the size that was asked for: the picture's own sides may be smaller */
  GdkTexture *texture;
} KsPageCacheEntry;

typedef struct {
  GQueue entries; /* most recent first */
} KsPageCache;

/* The page becomes the most recent; NULL when it is not held. */
const KsPageCacheEntry *ks_page_cache_find (KsPageCache *cache, guint page);
/* In place of what was held of that page.  Pointers to other entries may be gone after it. */
const KsPageCacheEntry *ks_page_cache_add (KsPageCache *cache, guint page, guint side_px,
                                           GdkTexture *texture);
void ks_page_cache_clear (KsPageCache *cache);

G_END_DECLS

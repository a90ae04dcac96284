/* ks-page-cache.c - see ks-page-cache.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-page-cache.h"

static void
entry_free (KsPageCacheEntry *entry)
{
  g_object_unref (entry->texture);
  g_free (entry);
}

static guint64
get_n_bytes (const KsPageCache *cache)
{
  guint64 n_byte = 0;

  for (GList *l = cache->entries.head; l != NULL; l = l->next) {
    KsPageCacheEntry *entry = l->data;

    n_byte += (guint64)4 * (guint)gdk_texture_get_width (entry->texture) *
              (guint)gdk_texture_get_height (entry->texture);
  }
  return n_byte;
}

static GList *
find_link (KsPageCache *cache, guint page)
{
  GList *l = cache->entries.head;

  while (l != NULL && ((KsPageCacheEntry *)l->data)->page != page)
    l = l->next;
  return l;
}

const KsPageCacheEntry *
ks_page_cache_find (KsPageCache *cache, guint page)
{
  GList *link = find_link (cache, page);

  if (link == NULL)
    return NULL;
  g_queue_unlink (&cache->entries, link);
  g_queue_push_head_link (&cache->entries, link);
  return link->data;
}

const KsPageCacheEntry *
ks_page_cache_add (KsPageCache *cache, guint page, guint side_px, GdkTexture *texture)
{
  GList *link = find_link (cache, page);
  KsPageCacheEntry *entry = g_new0 (KsPageCacheEntry, 1);

  if (link != NULL) {
    entry_free (link->data);
    g_queue_delete_link (&cache->entries, link);
  }
  entry->page = page;
  entry->side_px = side_px;
  entry->texture = g_object_ref (texture);
  g_queue_push_head (&cache->entries, entry);
  while (cache->entries.length > KS_PAGE_CACHE_MAX_PAGES ||
         (cache->entries.length > 1 && get_n_bytes (cache) > KS_PAGE_CACHE_MAX_BYTES))
    entry_free (g_queue_pop_tail (&cache->entries));
  return entry;
}

void
ks_page_cache_clear (KsPageCache *cache)
{
  g_queue_clear_full (&cache->entries, (GDestroyNotify)entry_free);
}

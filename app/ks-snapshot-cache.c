/* ks-snapshot-cache.c - see ks-snapshot-cache.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-snapshot-cache.h"

#include "app/ks-error.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_BYTES ((guint64)16 << 30)

typedef struct {
  gint64 session;
  KsTurnHash content;
  guint8 *data;
  gsize n_bytes, capacity;
  gboolean on_disk;
} Entry;

struct _KsSnapshotCache {
  KsSnapshotStore *store;
  KsTurnHash weights;
  guint64 room_bytes, used_bytes;
  GQueue entries;   /* of Entry, used last first */
  GHashTable *gone; /* set of gint64 */
  guint n_found, n_missed, n_spilled;
};

KsSnapshotCache *
ks_snapshot_cache_new (KsSnapshotStore *store, const KsTurnHash *weights, guint64 memory_bytes)
{
  KsSnapshotCache *cache = g_new0 (KsSnapshotCache, 1);

  cache->store = store != NULL ? g_object_ref (store) : NULL;
  cache->weights = *weights;
  cache->room_bytes = memory_bytes;
  cache->gone = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  g_queue_init (&cache->entries);
  return cache;
}

static void
free_entry (Entry *entry)
{
  g_free (entry->data);
  g_free (entry);
}

static void
drop_link (KsSnapshotCache *cache, GList *link)
{
  Entry *entry = link->data;

  cache->used_bytes -= entry->n_bytes;
  g_queue_delete_link (&cache->entries, link);
  free_entry (entry);
}

void
ks_snapshot_cache_free (KsSnapshotCache *cache)
{
  if (cache == NULL)
    return;
  while (!g_queue_is_empty (&cache->entries))
    drop_link (cache, cache->entries.head);
  g_clear_object (&cache->store);
  g_hash_table_unref (cache->gone);
  g_free (cache);
}

const KsTurnHash *
ks_snapshot_cache_get_weights (const KsSnapshotCache *cache)
{
  g_return_val_if_fail (cache != NULL, NULL);
  return &cache->weights;
}

/* --- memory --- */

static GList *
look_up (KsSnapshotCache *cache, const KsTurnHash *content)
{
  for (GList *link = cache->entries.head; link != NULL; link = link->next)
    if (ks_turn_hash_equal (&((Entry *)link->data)->content, content))
      return link;
  return NULL;
}

/* What cannot be written is read again from the texts: no word about it. */
static void
spill (KsSnapshotCache *cache, Entry *entry)
{
  g_autofree char *key = ks_turn_hash_format (&entry->content);

  if (cache->store == NULL || entry->on_disk)
    return;
  entry->on_disk =
      ks_snapshot_store_put (cache->store, entry->session, key, entry->data, entry->n_bytes, NULL);
  cache->n_spilled += entry->on_disk;
}

/* Those used longest ago go to the disk until n_new bytes more fit. */
static void
make_room (KsSnapshotCache *cache, guint64 n_new)
{
  while (!g_queue_is_empty (&cache->entries) && cache->used_bytes + n_new > cache->room_bytes) {
    spill (cache, cache->entries.tail->data);
    drop_link (cache, cache->entries.tail);
  }
}

static Entry *
new_entry (gint64 session, const KsTurnHash *content, guint64 n_bytes)
{
  guint8 *data = n_bytes <= G_MAXSIZE ? g_try_malloc ((gsize)n_bytes) : NULL;
  Entry *entry;

  if (data == NULL)
    return NULL;
  entry = g_new0 (Entry, 1);
  entry->session = session;
  entry->content = *content;
  entry->data = data;
  entry->capacity = (gsize)n_bytes;
  return entry;
}

static void
keep (KsSnapshotCache *cache, Entry *entry)
{
  cache->used_bytes += entry->n_bytes;
  g_queue_push_head (&cache->entries, entry);
}

/* A sink. */
static bool
take_bytes (void *user, const void *data, size_t n_bytes)
{
  Entry *entry = user;

  if (n_bytes > entry->capacity - entry->n_bytes)
    return false;
  memcpy (entry->data + entry->n_bytes, data, n_bytes);
  entry->n_bytes += n_bytes;
  return true;
}

gboolean
ks_snapshot_cache_add (KsSnapshotCache *cache, gint64 session, const KsTurnHash *content,
                       ks_timeline *tl, const ks_snapshot_params *params, gboolean is_scarce,
                       GError **error)
{
  ks_snapshot_params own = *params;
  GList *link;
  Entry *entry;
  guint64 n_bytes;
  ks_error err = {0};

  g_return_val_if_fail (cache != NULL && session > 0 && content != NULL, FALSE);
  if (g_hash_table_contains (cache->gone, &session))
    return FALSE;
  link = look_up (cache, content);
  if (link != NULL)
    drop_link (cache, link);
  n_bytes = ks_snapshot_count_bytes (tl, params);
  if (is_scarce)
    make_room (cache, cache->room_bytes);
  make_room (cache, n_bytes);
  entry = n_bytes <= cache->room_bytes ? new_entry (session, content, n_bytes) : NULL;
  if (entry == NULL)
    return FALSE;
  memcpy (own.label.weights, cache->weights.bytes, sizeof own.label.weights);
  memcpy (own.label.content, content->bytes, sizeof own.label.content);
  if (!ks_error_check (ks_snapshot_write (tl, &own, take_bytes, entry, &err), &err, error)) {
    free_entry (entry);
    return FALSE;
  }
  keep (cache, entry);
  return TRUE;
}

/* --- disk --- */

static gboolean
read_all (int fd, guint8 *data, gsize n)
{
  while (n > 0) {
    ssize_t done = read (fd, data, n);

    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return FALSE;
    data += done;
    n -= (gsize)done;
  }
  return TRUE;
}

/* Into memory again. */
static GList *
fetch (KsSnapshotCache *cache, gint64 session, const KsTurnHash *content)
{
  g_autofree char *key = ks_turn_hash_format (content);
  int fd = cache->store != NULL ? ks_snapshot_store_open (cache->store, session, key) : -1;
  Entry *entry = NULL;
  struct stat st;

  if (fd < 0)
    return NULL;
  if (fstat (fd, &st) == 0 && st.st_size > 0 && (guint64)st.st_size <= MAX_FILE_BYTES)
    entry = new_entry (session, content, (guint64)st.st_size);
  if (entry != NULL && !read_all (fd, entry->data, entry->capacity))
    g_clear_pointer (&entry, free_entry);
  close (fd);
  if (entry == NULL)
    return NULL;
  entry->n_bytes = entry->capacity;
  entry->on_disk = TRUE;
  make_room (cache, entry->n_bytes);
  keep (cache, entry);
  return cache->entries.head;
}

/* --- both --- */

gboolean
ks_snapshot_cache_find (KsSnapshotCache *cache, gint64 session, const KsTurnHash *content,
                        ks_snapshot *out)
{
  ks_snapshot_label label;
  GList *link;
  Entry *entry;

  g_return_val_if_fail (cache != NULL && session > 0 && content != NULL, FALSE);
  link = look_up (cache, content);
  if (link == NULL)
    link = fetch (cache, session, content);
  cache->n_missed += link == NULL;
  if (link == NULL)
    return FALSE;
  entry = link->data;
  g_queue_unlink (&cache->entries, link);
  g_queue_push_head_link (&cache->entries, link);
  memcpy (label.weights, cache->weights.bytes, sizeof label.weights);
  memcpy (label.content, content->bytes, sizeof label.content);
  if (ks_snapshot_open (entry->data, entry->n_bytes, &label, out, NULL) == KS_OK) {
    cache->n_found++;
    return TRUE;
  }
  cache->n_missed++;
  ks_snapshot_cache_drop (cache, session, content);
  return FALSE;
}

void
ks_snapshot_cache_drop (KsSnapshotCache *cache, gint64 session, const KsTurnHash *content)
{
  g_autofree char *key = NULL;
  GList *link;

  g_return_if_fail (cache != NULL && session > 0 && content != NULL);
  key = ks_turn_hash_format (content);
  link = look_up (cache, content);
  if (link != NULL)
    drop_link (cache, link);
  if (cache->store != NULL)
    ks_snapshot_store_drop (cache->store, session, key);
}

void
ks_snapshot_cache_flush (KsSnapshotCache *cache)
{
  g_autoptr (GHashTable) written =
      g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);

  g_return_if_fail (cache != NULL);
  for (GList *link = cache->entries.head; link != NULL; link = link->next) {
    Entry *entry = link->data;

    if (g_hash_table_add (written, g_memdup2 (&entry->session, sizeof entry->session)))
      spill (cache, entry);
  }
}

void
ks_snapshot_cache_set_gone (KsSnapshotCache *cache, gint64 session, gboolean is_gone)
{
  g_return_if_fail (cache != NULL);
  if (!is_gone) {
    g_hash_table_remove (cache->gone, &session);
    return;
  }
  if (session > 0)
    g_hash_table_add (cache->gone, g_memdup2 (&session, sizeof session));
  for (GList *link = cache->entries.head, *next; link != NULL; link = next) {
    next = link->next;
    if (session == 0 || ((Entry *)link->data)->session == session)
      drop_link (cache, link);
  }
}

KsSnapshotCounts
ks_snapshot_cache_get_counts (KsSnapshotCache *cache)
{
  g_return_val_if_fail (cache != NULL, (KsSnapshotCounts){0});
  return (KsSnapshotCounts){.n_entry = cache->entries.length,
                            .memory_bytes = cache->used_bytes,
                            .n_found = cache->n_found,
                            .n_missed = cache->n_missed,
                            .n_spilled = cache->n_spilled};
}

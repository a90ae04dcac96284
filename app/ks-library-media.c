/* ks-library-media.c - pictures and pages for display: decoded by at most two workers at once,
 * small ones kept in memory, the least recently used go first. Threads: main; decoding runs on the
 * pool's threads. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-library-internal.h"

#include "app/ks-error.h"
#include "media/ks-media.h"

#define N_DECODER 2
#define MAX_CACHE_BYTES ((gsize)64 << 20)
#define MAX_CACHED_SIDE_PX 512u

/* --- cache --- */

typedef struct {
  char *key;
  KsPixels *pixels;
} CacheEntry;

struct KsPixelCache {
  GHashTable *links; /* key -> GList of entries */
  GQueue entries;    /* of CacheEntry, newest first */
  gsize n_bytes;
};

static gsize
get_n_bytes (const CacheEntry *entry)
{
  return g_bytes_get_size (ks_pixels_get_bytes (entry->pixels));
}

static void
drop_entry (struct KsPixelCache *cache, GList *link)
{
  CacheEntry *entry = link->data;

  cache->n_bytes -= get_n_bytes (entry);
  g_hash_table_remove (cache->links, entry->key);
  g_queue_delete_link (&cache->entries, link);
  ks_pixels_unref (entry->pixels);
  g_free (entry->key);
  g_free (entry);
}

/* (transfer none) NULL when it is not there. */
static KsPixels *
look_up (struct KsPixelCache *cache, const char *key)
{
  GList *link = g_hash_table_lookup (cache->links, key);

  if (link == NULL)
    return NULL;
  g_queue_unlink (&cache->entries, link);
  g_queue_push_head_link (&cache->entries, link);
  return ((CacheEntry *)link->data)->pixels;
}

static void
keep (struct KsPixelCache *cache, const char *key, KsPixels *pixels)
{
  GList *old = g_hash_table_lookup (cache->links, key);
  CacheEntry *entry = g_new0 (CacheEntry, 1);

  if (old != NULL)
    drop_entry (cache, old);
  entry->key = g_strdup (key);
  entry->pixels = ks_pixels_ref (pixels);
  g_queue_push_head (&cache->entries, entry);
  g_hash_table_insert (cache->links, entry->key, cache->entries.head);
  cache->n_bytes += get_n_bytes (entry);
  while (cache->n_bytes > MAX_CACHE_BYTES)
    drop_entry (cache, cache->entries.tail);
}

/* --- decoding --- */

typedef struct {
  GTask *task; /* touched on main only */
  GCancellable *cancellable;
  char *key, *path, *name, *password;
  KsAttachmentKind kind;
  guint page, max_side_px;
  KsPixels *pixels; /* out */
  GError *error;    /* out */
} Decode;

static void
decode_free (Decode *decode)
{
  g_object_unref (decode->task);
  g_clear_object (&decode->cancellable);
  g_clear_pointer (&decode->pixels, ks_pixels_unref);
  g_clear_error (&decode->error);
  g_free (decode->key);
  g_free (decode->path);
  g_free (decode->name);
  g_free (decode->password);
  g_free (decode);
}

static gboolean
decoded_cb (gpointer data)
{
  Decode *decode = data;
  KsLibrary *self = g_task_get_source_object (decode->task);

  if (decode->pixels != NULL && decode->max_side_px <= MAX_CACHED_SIDE_PX && self->pixels != NULL)
    keep (self->pixels, decode->key, decode->pixels);
  if (decode->pixels != NULL)
    g_task_return_pointer (decode->task, g_steal_pointer (&decode->pixels),
                           (GDestroyNotify)ks_pixels_unref);
  else
    g_task_return_error (decode->task, g_steal_pointer (&decode->error));
  decode_free (decode);
  return G_SOURCE_REMOVE;
}

static void
decode_picture (Decode *decode, const KsMediaOptions *options)
{
  g_autoptr (KsMediaResult) result =
      ks_media_load (decode->path, options, decode->cancellable, &decode->error);

  if (result == NULL)
    return;
  decode->pixels = g_steal_pointer (&result->pixels);
  if (decode->pixels == NULL)
    g_set_error (&decode->error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_UNKNOWN_TYPE, "%s is no picture",
                 decode->name);
}

/* On a thread of the pool. */
static void
decode_func (gpointer data, gpointer user_data)
{
  Decode *decode = data;
  KsMediaOptions options = {
      .name = decode->name, .password = decode->password, .max_side_px = decode->max_side_px};

  if (!g_cancellable_set_error_if_cancelled (decode->cancellable, &decode->error)) {
    if (decode->kind == KS_ATTACHMENT_PDF || decode->kind == KS_ATTACHMENT_DOCUMENT)
      decode->pixels = ks_media_render_page (decode->path, decode->page, &options,
                                             decode->cancellable, &decode->error);
    else
      decode_picture (decode, &options);
  }
  g_idle_add_full (G_PRIORITY_DEFAULT, decoded_cb, decode, NULL);
}

void
ks_library_init_media (KsLibrary *self)
{
  self->pixels = g_new0 (struct KsPixelCache, 1);
  self->pixels->links = g_hash_table_new (g_str_hash, g_str_equal);
  g_queue_init (&self->pixels->entries);
  self->decoders = g_thread_pool_new (decode_func, NULL, N_DECODER, FALSE, NULL);
}

void
ks_library_forget_media (KsLibrary *self)
{
  while (self->pixels != NULL && self->pixels->entries.tail != NULL)
    drop_entry (self->pixels, self->pixels->entries.tail);
}

void
ks_library_clear_media (KsLibrary *self)
{
  struct KsPixelCache *cache = g_steal_pointer (&self->pixels);

  /* What is queued still answers its task, on its own. */
  if (self->decoders != NULL)
    g_thread_pool_free (g_steal_pointer (&self->decoders), FALSE, FALSE);
  if (cache == NULL)
    return;
  while (cache->entries.tail != NULL)
    drop_entry (cache, cache->entries.tail);
  g_hash_table_unref (cache->links);
  g_free (cache);
}

static char *
make_key (KsAttachment *attachment, guint page, guint max_side_px)
{
  return g_strdup_printf ("%s:%u:%u", ks_attachment_get_hash (attachment), page, max_side_px);
}

void
ks_library_render_async (KsLibrary *self, KsAttachment *attachment, guint page, guint max_side_px,
                         const char *password, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  g_autoptr (KsBlobStore) blobs = NULL;
  g_autofree char *key = NULL, *path = NULL;
  KsPixels *cached;
  Decode *decode;

  g_return_if_fail (KS_IS_LIBRARY (self) && KS_IS_ATTACHMENT (attachment) && max_side_px > 0);
  task = g_task_new (self, cancellable, callback, user_data);
  key = make_key (attachment, page, max_side_px);
  cached = look_up (self->pixels, key);
  if (cached != NULL) {
    g_task_return_pointer (task, ks_pixels_ref (cached), (GDestroyNotify)ks_pixels_unref);
    return;
  }
  blobs = ks_session_service_ref_blobs (self->service);
  path = blobs != NULL ? ks_blob_store_get_path (blobs, ks_attachment_get_hash (attachment)) : NULL;
  if (path == NULL || ks_attachment_get_kind (attachment) == KS_ATTACHMENT_TEXT) {
    g_task_return_new_error (task, KS_MEDIA_ERROR, KS_MEDIA_ERROR_UNKNOWN_TYPE,
                             "%s has no picture to show", ks_attachment_get_name (attachment));
    return;
  }
  decode = g_new0 (Decode, 1);
  decode->task = g_steal_pointer (&task);
  decode->cancellable = cancellable != NULL ? g_object_ref (cancellable) : NULL;
  decode->key = g_steal_pointer (&key);
  decode->path = g_steal_pointer (&path);
  decode->name = g_strdup (ks_attachment_get_name (attachment));
  decode->password = g_strdup (password);
  decode->kind = ks_attachment_get_kind (attachment);
  decode->page = page;
  decode->max_side_px = max_side_px;
  g_thread_pool_push (self->decoders, decode, NULL);
}

KsPixels *
ks_library_render_finish (KsLibrary *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), NULL);
  return g_task_propagate_pointer (G_TASK (result), error);
}

/* --- text --- */

typedef struct {
  KsBlobStore *blobs;
  char *hash;
} ReadText;

static void
read_text_free (gpointer data)
{
  ReadText *read = data;

  g_object_unref (read->blobs);
  g_free (read->hash);
  g_free (read);
}

static void
read_text_func (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  ReadText *read = data;
  GError *error = NULL;
  g_autoptr (GBytes) bytes = ks_blob_store_get (read->blobs, read->hash, &error);
  gsize n = 0;
  const char *text = bytes != NULL ? g_bytes_get_data (bytes, &n) : NULL;

  if (bytes == NULL)
    g_task_return_error (task, error);
  else
    g_task_return_pointer (task, g_utf8_make_valid (text != NULL ? text : "", (gssize)n), g_free);
}

void
ks_library_read_text_async (KsLibrary *self, KsAttachment *attachment, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  g_autoptr (KsBlobStore) blobs = NULL;
  const char *hash;
  ReadText *read;

  g_return_if_fail (KS_IS_LIBRARY (self) && KS_IS_ATTACHMENT (attachment));
  task = g_task_new (self, cancellable, callback, user_data);
  hash = ks_attachment_get_text_hash (attachment);
  if (hash == NULL && ks_attachment_get_kind (attachment) == KS_ATTACHMENT_TEXT)
    hash = ks_attachment_get_hash (attachment);
  blobs = ks_session_service_ref_blobs (self->service);
  if (blobs == NULL || hash == NULL) {
    g_task_return_new_error (task, KS_MEDIA_ERROR, KS_MEDIA_ERROR_UNKNOWN_TYPE,
                             "%s has no text to show", ks_attachment_get_name (attachment));
    return;
  }
  read = g_new0 (ReadText, 1);
  read->blobs = g_steal_pointer (&blobs);
  read->hash = g_strdup (hash);
  g_task_set_task_data (task, read, read_text_free);
  g_task_run_in_thread (task, read_text_func);
}

char *
ks_library_read_text_finish (KsLibrary *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), NULL);
  return g_task_propagate_pointer (G_TASK (result), error);
}

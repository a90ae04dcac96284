/* ks-embed-cache.c - see ks-embed-cache.h.  Numbers of a file are checked before they are believed,
 * and the checksum before they are used: what does not fit is a miss. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-embed-cache.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "KSEMBED1"
#define ORDER 0x01020304u
#define SUM_BYTES 32
#define MAX_EMBED_BYTES ((guint64)4 << 30)

/* Beginning of a file; the numbers follow.  In the machine's own byte order. */
typedef struct {
  char magic[8];
  guint32 order, n_embd, n_deep, has_overview;
  guint32 width, height, resized_width, resized_height;
  guint32 tile_rows, tile_cols, n_view, view_width;
  guint32 view_height, grid_rows, grid_cols, n_tok;
  double time_s;
  guint8 sum[SUM_BYTES]; /* SHA-256 of the numbers */
} Head;

typedef struct {
  char *name; /* hash and key */
  ks_vision_embeds embeds;
  double time_s;
  gboolean is_fresh; /* encoded and not asked for since */
} Entry;

struct _KsEmbedCache {
  ks_alloc *alloc;
  KsEmbedStore *store;
  guint n_embd, n_deep;
  guint64 room_bytes, used_bytes;
  GQueue entries; /* of Entry, used last first */
  guint n_encoded, n_memory, n_disk;
};

KsEmbedCache *
ks_embed_cache_new (ks_alloc *alloc, KsEmbedStore *store, guint n_embd, guint n_deep)
{
  KsEmbedCache *cache = g_new0 (KsEmbedCache, 1);

  cache->alloc = alloc;
  cache->store = store != NULL ? g_object_ref (store) : NULL;
  cache->n_embd = n_embd;
  cache->n_deep = n_deep;
  g_queue_init (&cache->entries);
  return cache;
}

static guint64
count_bytes (const ks_vision_embeds *e)
{
  return (guint64)e->n_tok * e->n_embd * (1 + e->n_deep) * sizeof *e->data;
}

static void
drop_tail (KsEmbedCache *cache)
{
  Entry *entry = g_queue_pop_tail (&cache->entries);

  cache->used_bytes -= count_bytes (&entry->embeds);
  ks_vision_embeds_clear (&entry->embeds);
  g_free (entry->name);
  g_free (entry);
}

void
ks_embed_cache_free (KsEmbedCache *cache)
{
  if (cache == NULL)
    return;
  while (!g_queue_is_empty (&cache->entries))
    drop_tail (cache);
  g_clear_object (&cache->store);
  g_free (cache);
}

static void
shrink (KsEmbedCache *cache)
{
  while (cache->used_bytes > cache->room_bytes && cache->entries.length > 1)
    drop_tail (cache);
}

void
ks_embed_cache_set_room (KsEmbedCache *cache, guint64 n_bytes)
{
  g_return_if_fail (cache != NULL);
  cache->room_bytes = n_bytes;
  shrink (cache);
}

/* --- memory --- */

static char *
make_name (const char *hash, const char *key)
{
  return g_strconcat (hash, "-", key, NULL);
}

static Entry *
look_up (KsEmbedCache *cache, const char *hash, const char *key)
{
  g_autofree char *name = make_name (hash, key);

  for (GList *link = cache->entries.head; link != NULL; link = link->next)
    if (g_str_equal (((Entry *)link->data)->name, name)) {
      g_queue_unlink (&cache->entries, link);
      g_queue_push_head_link (&cache->entries, link);
      return link->data;
    }
  return NULL;
}

/* First, since with the newcomer the older ones would be over it for a moment. */
void
ks_embed_cache_make_room (KsEmbedCache *cache, guint64 n_new)
{
  g_return_if_fail (cache != NULL);
  while (!g_queue_is_empty (&cache->entries) && cache->used_bytes + n_new > cache->room_bytes)
    drop_tail (cache);
}

static Entry *
keep (KsEmbedCache *cache, const char *hash, const char *key, ks_vision_embeds *take, double time_s)
{
  Entry *entry = g_new0 (Entry, 1);

  entry->name = make_name (hash, key);
  entry->embeds = *take;
  entry->time_s = time_s;
  memset (take, 0, sizeof *take);
  cache->used_bytes += count_bytes (&entry->embeds);
  g_queue_push_head (&cache->entries, entry);
  shrink (cache);
  return entry;
}

/* --- disk --- */

static void
make_sum (const float *data, guint64 n_bytes, guint8 *out)
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  const guchar *at = (const guchar *)data;
  gsize n = SUM_BYTES;

  while (n_bytes > 0) {
    gssize step = (gssize)MIN (n_bytes, (guint64)1 << 30);

    g_checksum_update (sum, at, step);
    at += step;
    n_bytes -= (guint64)step;
  }
  g_checksum_get_digest (sum, out, &n);
}

static Head
make_head (const ks_vision_embeds *e, double time_s)
{
  const ks_vision_plan *p = &e->plan;
  Head head;

  memset (&head, 0, sizeof head);
  memcpy (head.magic, MAGIC, sizeof head.magic);
  head.order = ORDER;
  head.n_embd = e->n_embd;
  head.n_deep = e->n_deep;
  head.has_overview = p->has_overview;
  head.width = p->width;
  head.height = p->height;
  head.resized_width = p->resized_width;
  head.resized_height = p->resized_height;
  head.tile_rows = p->tile_rows;
  head.tile_cols = p->tile_cols;
  head.n_view = p->n_view;
  head.view_width = p->view_width;
  head.view_height = p->view_height;
  head.grid_rows = p->grid_rows;
  head.grid_cols = p->grid_cols;
  head.n_tok = p->n_tok;
  head.time_s = time_s;
  return head;
}

static ks_vision_plan
get_plan (const Head *head)
{
  return (ks_vision_plan){.width = head->width,
                          .height = head->height,
                          .resized_width = head->resized_width,
                          .resized_height = head->resized_height,
                          .tile_rows = head->tile_rows,
                          .tile_cols = head->tile_cols,
                          .has_overview = head->has_overview != 0,
                          .n_view = head->n_view,
                          .view_width = head->view_width,
                          .view_height = head->view_height,
                          .grid_rows = head->grid_rows,
                          .grid_cols = head->grid_cols,
                          .n_tok = head->n_tok};
}

/* Numbers that fit each other and this model. */
static gboolean
is_sound (KsEmbedCache *cache, const Head *head)
{
  guint64 n_tile = (guint64)head->tile_rows * head->tile_cols;
  guint64 per_view = (guint64)head->grid_rows * head->grid_cols;

  if (memcmp (head->magic, MAGIC, sizeof head->magic) != 0 || head->order != ORDER ||
      head->n_embd != cache->n_embd || head->n_deep != cache->n_deep || head->has_overview > 1)
    return FALSE;
  if (head->tile_rows > G_MAXUINT16 || head->tile_cols > G_MAXUINT16 ||
      head->grid_rows > G_MAXUINT16 || head->grid_cols > G_MAXUINT16 ||
      head->n_view > G_MAXUINT16 || head->n_view != n_tile + head->has_overview)
    return FALSE;
  return head->n_tok > 0 && head->n_tok == per_view * head->n_view && isfinite (head->time_s) &&
         (guint64)head->n_tok * head->n_embd * (1 + head->n_deep) <=
             MAX_EMBED_BYTES / sizeof (float);
}

static gboolean
read_all (int fd, gpointer data, guint64 n)
{
  char *at = data;

  while (n > 0) {
    ssize_t done = read (fd, at, (gsize)n);

    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return FALSE;
    at += done;
    n -= (guint64)done;
  }
  return TRUE;
}

/* An open file behind its head; -1 when there is none that can be used. */
static int
open_file (KsEmbedCache *cache, const char *hash, const char *key, Head *head)
{
  int fd = cache->store != NULL ? ks_embed_store_open (cache->store, hash, key) : -1;

  if (fd < 0)
    return -1;
  if (read_all (fd, head, sizeof *head) && is_sound (cache, head))
    return fd;
  close (fd);
  ks_embed_store_drop (cache->store, hash, key);
  return -1;
}

static Entry *
read_file (KsEmbedCache *cache, const char *hash, const char *key)
{
  Head head;
  int fd = open_file (cache, hash, key, &head);
  ks_vision_embeds embeds = {0};
  guint8 sum[SUM_BYTES];
  guint64 n_bytes;
  gboolean sound;

  if (fd < 0)
    return NULL;
  embeds.plan = get_plan (&head);
  embeds.n_tok = head.n_tok;
  embeds.n_embd = head.n_embd;
  embeds.n_deep = head.n_deep;
  n_bytes = count_bytes (&embeds);
  ks_embed_cache_make_room (cache, n_bytes);
  embeds.data = ks_mem_new (cache->alloc, KS_MEM_VISION, (size_t)n_bytes, 1);
  sound = embeds.data == NULL || read_all (fd, embeds.data, n_bytes);
  close (fd);
  if (embeds.data == NULL)
    return NULL;
  if (sound) {
    make_sum (embeds.data, n_bytes, sum);
    sound = memcmp (sum, head.sum, sizeof sum) == 0;
  }
  if (sound)
    return keep (cache, hash, key, &embeds, head.time_s);
  ks_vision_embeds_clear (&embeds);
  ks_embed_store_drop (cache->store, hash, key);
  return NULL;
}

static void
write_file (KsEmbedCache *cache, const char *hash, const char *key, const Entry *entry,
            GError **error)
{
  guint64 n_bytes = count_bytes (&entry->embeds);
  Head head = make_head (&entry->embeds, entry->time_s);
  struct iovec parts[] = {{&head, sizeof head}, {entry->embeds.data, (size_t)n_bytes}};

  make_sum (entry->embeds.data, n_bytes, head.sum);
  (void)ks_embed_store_put (cache->store, hash, key, parts, G_N_ELEMENTS (parts), error);
}

/* --- both --- */

gboolean
ks_embed_cache_find_plan (KsEmbedCache *cache, const char *hash, const char *key,
                          ks_vision_plan *out_plan, double *out_time_s)
{
  Entry *entry;
  Head head;
  int fd;

  g_return_val_if_fail (cache != NULL && hash != NULL && key != NULL, FALSE);
  entry = look_up (cache, hash, key);
  if (entry != NULL) {
    *out_plan = entry->embeds.plan;
    *out_time_s = entry->time_s;
    return TRUE;
  }
  fd = open_file (cache, hash, key, &head);
  if (fd < 0)
    return FALSE;
  close (fd);
  *out_plan = get_plan (&head);
  *out_time_s = head.time_s;
  return TRUE;
}

const ks_vision_embeds *
ks_embed_cache_find (KsEmbedCache *cache, const char *hash, const char *key)
{
  Entry *entry;

  g_return_val_if_fail (cache != NULL && hash != NULL && key != NULL, NULL);
  entry = look_up (cache, hash, key);
  if (entry != NULL) {
    cache->n_memory += !entry->is_fresh;
    entry->is_fresh = FALSE;
    return &entry->embeds;
  }
  entry = read_file (cache, hash, key);
  if (entry == NULL)
    return NULL;
  cache->n_disk++;
  return &entry->embeds;
}

const ks_vision_embeds *
ks_embed_cache_add (KsEmbedCache *cache, const char *hash, const char *key, ks_vision_embeds *take,
                    double time_s, GError **disk_error)
{
  Entry *entry;

  g_return_val_if_fail (cache != NULL && hash != NULL && key != NULL && take != NULL, NULL);
  entry = keep (cache, hash, key, take, time_s);
  entry->is_fresh = TRUE;
  cache->n_encoded++;
  if (cache->store != NULL)
    write_file (cache, hash, key, entry, disk_error);
  return &entry->embeds;
}

KsEmbedCounts
ks_embed_cache_get_counts (KsEmbedCache *cache)
{
  g_return_val_if_fail (cache != NULL, (KsEmbedCounts){0});
  return (KsEmbedCounts){.n_encoded = cache->n_encoded,
                         .n_memory = cache->n_memory,
                         .n_disk = cache->n_disk,
                         .memory_bytes = cache->used_bytes};
}

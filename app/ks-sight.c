/* ks-sight.c - see ks-sight.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-sight.h"

#include "app/ks-error.h"

#include <string.h>

struct _KsSight {
  ks_alloc *alloc;
  ks_vision *vision;
  KsEmbedCache *cache;
  ks_vision_limits limits;
  guint n_ctx_train;
  gboolean has_disk;
  char *key_base; /* model and preprocessing */
  guint64 quota_bytes, spare_bytes;
  guint64 open_bytes; /* held by the tower itself, part of its weights */
  KsSightRoom room;   /* of the largest picture so far */
};

static void
append_limits (GString *out, const ks_vision_prep *prep, const ks_vision_limits *limits)
{
  g_string_append_printf (out, "family %d patch %u merge %u tile %u longest %u filter %d\n",
                          (int)prep->family, prep->patch, prep->merge, prep->tile, prep->longest,
                          (int)prep->filter);
  g_string_append_printf (
      out, "pixels %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " split %d\n",
      limits->min_pixels > 0 ? (guint64)limits->min_pixels : (guint64)prep->min_pixels,
      limits->max_pixels > 0 ? (guint64)limits->max_pixels : (guint64)prep->max_pixels,
      !limits->no_split);
  for (guint c = 0; c < 3; c++)
    g_string_append_printf (out, "%a %a\n", (double)prep->mean[c], (double)prep->std[c]);
}

static gboolean
open_tower (KsSight *sight, ks_backend *be, const ks_model *model, const KsSightOptions *options,
            GError **error)
{
  ks_error err = {0};

  if (!ks_error_check (ks_vision_open (sight->alloc, options->path, be, &sight->vision, &err), &err,
                       error) ||
      !ks_error_check (ks_vision_check_fit (sight->vision, model, &err), &err, error))
    return FALSE;
  ks_vision_set_zip (sight->vision, &options->zip);
  return ks_error_check (ks_vision_prepare (sight->vision, &sight->limits, &err), &err, error);
}

KsSight *
ks_sight_open (ks_alloc *alloc, ks_backend *be, const ks_model *model,
               const KsSightOptions *options, GError **error)
{
  KsSight *sight = g_new0 (KsSight, 1);
  const ks_vision_shape *shape;
  GString *base;

  sight->alloc = alloc;
  sight->limits = options->limits;
  sight->n_ctx_train = ks_model_get_shape (model)->n_ctx_train;
  sight->quota_bytes = sight->spare_bytes = options->memory_quota_bytes;
  if (!open_tower (sight, be, model, options, error)) {
    ks_sight_free (sight);
    return NULL;
  }
  sight->open_bytes = ks_sight_get_held_bytes (sight);
  shape = ks_vision_get_shape (sight->vision);
  sight->has_disk = options->hash != NULL && options->store != NULL && options->zip.n_dominant == 0;
  sight->cache = ks_embed_cache_new (alloc, sight->has_disk ? options->store : NULL, shape->n_out,
                                     shape->n_deep);
  base = g_string_new (options->hash);
  g_string_append_c (base, '\n');
  append_limits (base, &shape->prep, &sight->limits);
  g_string_append_printf (base, "%s\n", options->mode == KS_COMPUTE_FAST ? "fast" : "exact");
  if (options->zip.n_dominant > 0)
    g_string_append_printf (base, "zip %u %u\n", options->zip.n_dominant, options->zip.n_context);
  sight->key_base = g_string_free (base, FALSE);
  return sight;
}

void
ks_sight_free (KsSight *sight)
{
  if (sight == NULL)
    return;
  ks_embed_cache_free (sight->cache);
  ks_vision_close (sight->vision);
  g_free (sight->key_base);
  g_free (sight);
}

ks_vision_family
ks_sight_get_family (const KsSight *sight)
{
  return ks_vision_get_shape (sight->vision)->family;
}

guint
ks_sight_get_view_tok (const KsSight *sight)
{
  const ks_vision_prep *prep = &ks_vision_get_shape (sight->vision)->prep;
  guint side = prep->patch * prep->merge > 0 ? prep->tile / (prep->patch * prep->merge) : 0;
  const ks_vision_plan plan = {.grid_rows = side, .grid_cols = side};

  return prep->family == KS_VISION_GEMMA3 ? ks_sight_count_view_tok (sight, &plan) : 0;
}

KsEyes
ks_sight_get_eyes (const KsSight *sight)
{
  ks_vision_family family = ks_sight_get_family (sight);

  return (KsEyes){.sees = TRUE,
                  .pairs = family == KS_VISION_QWEN2VL || family == KS_VISION_QWEN25VL ||
                           family == KS_VISION_QWEN3VL,
                  .prep = ks_vision_get_shape (sight->vision)->prep,
                  .limits = sight->limits,
                  .n_ctx_train = sight->n_ctx_train};
}

guint
ks_sight_count_view_tok (const KsSight *sight, const ks_vision_plan *plan)
{
  return ks_vision_count_view_tok (sight->vision, plan);
}

/* --- memory --- */

guint64
ks_sight_get_weight_bytes (const KsSight *sight)
{
  return ks_vision_get_weight_bytes (sight->vision);
}

static guint64
count_embeds (const KsSight *sight, const ks_vision_plan *plan)
{
  const ks_vision_shape *shape = ks_vision_get_shape (sight->vision);

  return (guint64)plan->n_view * ks_sight_count_view_tok (sight, plan) * shape->n_out *
         (1 + shape->n_deep) * sizeof (float);
}

/* The resized picture, twice for a pair of frames, and what resizing takes: rows under the filter
 * and its weights. */
static guint64
count_prep (const ks_vision_plan *plan)
{
  guint64 width = plan->resized_width, height = plan->resized_height;
  guint64 n_pixel = width * height;
  guint64 shrink = plan->height / MAX (height, 1) + 1;

  if (plan->has_overview)
    n_pixel += (guint64)plan->view_width * plan->view_height;
  return 2 * 3 * n_pixel + 3 * MAX (width, plan->view_width) * (8 * shrink + 16) +
         96 * ((guint64)plan->width + plan->height + width + height) + (64 << 10);
}

static guint64
count_scratch (const KsSight *sight, const ks_vision_plan *plan)
{
  return ks_vision_count_scratch_bytes (sight->vision, plan) + count_prep (plan);
}

guint64
ks_sight_count_needed_bytes (const KsSight *sight, const KsSightRoom *room)
{
  return ks_sight_get_weight_bytes (sight) + room->scratch_bytes + room->embed_bytes;
}

guint64
ks_sight_get_needed_bytes (const KsSight *sight)
{
  return ks_sight_count_needed_bytes (sight, &sight->room);
}

KsSightRoom
ks_sight_get_room (const KsSight *sight)
{
  return sight->room;
}

void
ks_sight_widen_room (const KsSight *sight, const ks_vision_plan *plan, KsSightRoom *room)
{
  room->scratch_bytes = MAX (room->scratch_bytes, count_scratch (sight, plan));
  room->embed_bytes = MAX (room->embed_bytes, count_embeds (sight, plan));
}

void
ks_sight_limit_scratch (KsSight *sight, const ks_vision_plan *plan, guint64 n_bytes)
{
  guint64 prep_bytes = count_prep (plan), limit, taken;

  ks_vision_set_scratch_limit (sight->vision, 0);
  if (n_bytes == 0 || count_scratch (sight, plan) <= n_bytes)
    return;
  limit = n_bytes > prep_bytes ? n_bytes - prep_bytes : 1;
  ks_vision_set_scratch_limit (sight->vision, limit);
  /* Lists of rows lie beside what the engine limits. */
  taken = count_scratch (sight, plan);
  if (taken > n_bytes)
    ks_vision_set_scratch_limit (sight->vision,
                                 limit > taken - n_bytes ? limit - (taken - n_bytes) : 1);
}

guint64
ks_sight_count_largest_bytes (const KsSight *sight)
{
  KsSightRoom room = {0};
  ks_vision_plan plan;

  if (ks_vision_plan_picture (&ks_vision_get_shape (sight->vision)->prep, &sight->limits,
                              KS_PICTURE_MAX_SIDE_PX, KS_PICTURE_MAX_SIDE_PX, &plan, NULL) == KS_OK)
    ks_sight_widen_room (sight, &plan, &room);
  return room.scratch_bytes + room.embed_bytes;
}

/* Before the first picture nothing is set aside. */
static guint64
get_spare_bytes (const KsSight *sight)
{
  return sight->room.embed_bytes > 0 ? MIN (sight->quota_bytes, sight->spare_bytes) : 0;
}

guint64
ks_sight_get_device_bytes (const KsSight *sight)
{
  return ks_sight_get_needed_bytes (sight) + get_spare_bytes (sight);
}

guint64
ks_sight_get_used_bytes (const KsSight *sight)
{
  guint64 memory_bytes = ks_embed_cache_get_counts (sight->cache).memory_bytes;

  return ks_sight_get_needed_bytes (sight) + MAX (memory_bytes, sight->room.embed_bytes) -
         sight->room.embed_bytes;
}

static void
set_cache_room (KsSight *sight)
{
  ks_embed_cache_set_room (sight->cache, sight->room.embed_bytes + get_spare_bytes (sight));
}

void
ks_sight_book (KsSight *sight, const KsSightRoom *room)
{
  sight->room = *room;
  set_cache_room (sight);
}

void
ks_sight_forget_room (KsSight *sight)
{
  sight->room = (KsSightRoom){0};
  set_cache_room (sight);
  ks_embed_cache_make_room (sight->cache, 1); /* not even the last one is paid for now */
}

void
ks_sight_set_spare_bytes (KsSight *sight, guint64 n_bytes)
{
  sight->spare_bytes = n_bytes;
  set_cache_room (sight);
}

guint64
ks_sight_get_held_bytes (const KsSight *sight)
{
  return ks_alloc_get_bytes (sight->alloc, KS_MEM_VISION);
}

guint64
ks_sight_get_present_bytes (const KsSight *sight)
{
  guint64 held_bytes = ks_sight_get_held_bytes (sight);

  return ks_sight_get_weight_bytes (sight) + MAX (held_bytes, sight->open_bytes) -
         sight->open_bytes;
}

guint64
ks_sight_get_peak_bytes (const KsSight *sight)
{
  return ks_alloc_get_peak_bytes (sight->alloc, KS_MEM_VISION);
}

gboolean
ks_sight_has_disk (const KsSight *sight)
{
  return sight->has_disk;
}

KsEmbedCounts
ks_sight_get_counts (KsSight *sight)
{
  return ks_embed_cache_get_counts (sight->cache);
}

/* --- pictures --- */

/* rounding: with less scratch than a picture asks for it comes out a little different
 * (ks_vision_get_rounding), which is then another embedding. */
static char *
make_key (KsSight *sight, const KsPicture *picture, guint rounding)
{
  g_autofree char *part = ks_picture_make_part (picture);
  g_autofree char *rounded = rounding > 0 ? g_strdup_printf ("\nrounded %u", rounding) : NULL;
  g_autofree char *words = g_strconcat (sight->key_base, part, rounded, NULL);

  return g_compute_checksum_for_string (G_CHECKSUM_SHA256, words, -1);
}

gboolean
ks_sight_find_plan (KsSight *sight, const KsPicture *picture, ks_vision_plan *out_plan,
                    double *out_time_s)
{
  /* The sizes are the same however it was rounded. */
  for (guint i = 0; i < KS_VISION_N_ROUNDING; i++) {
    g_autofree char *key = make_key (sight, picture, i);

    if (ks_embed_cache_find_plan (sight->cache, picture->hash, key, out_plan, out_time_s))
      return TRUE;
  }
  return FALSE;
}

const ks_vision_embeds *
ks_sight_find (KsSight *sight, const KsPicture *picture)
{
  g_autofree char *key = NULL;
  ks_vision_plan plan;
  double time_s;

  if (!ks_sight_find_plan (sight, picture, &plan, &time_s))
    return NULL;
  key = make_key (sight, picture, ks_vision_get_rounding (sight->vision, &plan));
  return ks_embed_cache_find (sight->cache, picture->hash, key);
}

gboolean
ks_sight_make_plan (KsSight *sight, const KsPicture *picture, const KsPictureRgb *rgb,
                    ks_vision_plan *out, GError **error)
{
  const ks_vision_prep *prep = &ks_vision_get_shape (sight->vision)->prep;
  ks_error err = {0};

  if (ks_error_check (
          ks_vision_plan_picture (prep, &sight->limits, rgb->width_px, rgb->height_px, out, &err),
          &err, error))
    return TRUE;
  g_prefix_error (error, "%s: ", picture->name);
  return FALSE;
}

static gboolean
encode (KsSight *sight, KsPictureRgb *rgb, const ks_vision_plan *plan, const ks_vision_hooks *hooks,
        ks_vision_embeds *out, GError **error)
{
  const ks_vision_prep *prep = &ks_vision_get_shape (sight->vision)->prep;
  ks_rgb frames[2] = {{rgb->rgb[0], rgb->width_px, rgb->height_px},
                      {rgb->rgb[1], rgb->width_px, rgb->height_px}};
  ks_vision_input *input = NULL;
  ks_error err = {0};
  gboolean ok;

  ok = ks_error_check (ks_vision_input_new (sight->alloc, prep, plan, frames,
                                            rgb->rgb[1] != NULL ? 2 : 1, &input, &err),
                       &err, error);
  ks_picture_rgb_clear (rgb); /* its time stays */
  ok =
      ok && ks_error_check (ks_vision_encode (sight->vision, input, hooks, out, &err), &err, error);
  ks_vision_input_free (input);
  return ok;
}

const ks_vision_embeds *
ks_sight_encode (KsSight *sight, const KsPicture *picture, KsPictureRgb *rgb,
                 const ks_vision_plan *plan, const ks_vision_hooks *hooks, GError **error)
{
  g_autofree char *key = make_key (sight, picture, ks_vision_get_rounding (sight->vision, plan));
  g_autoptr (GError) disk_error = NULL;
  const ks_vision_embeds *kept;
  ks_vision_embeds embeds = {0};

  ks_embed_cache_make_room (sight->cache, count_embeds (sight, plan));
  if (!encode (sight, rgb, plan, hooks, &embeds, error))
    return NULL;
  /* That the disk refuses it costs time next time; nobody may count on it from now on. */
  kept = ks_embed_cache_add (sight->cache, picture->hash, key, &embeds, rgb->time_s, &disk_error);
  sight->has_disk = sight->has_disk && disk_error == NULL;
  return kept;
}

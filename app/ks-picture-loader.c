/* ks-picture-loader.c - see ks-picture-loader.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-picture-loader.h"

#include "app/ks-error.h"

struct _KsPictureLoader {
  char *path; /* of the video whose frames are kept; NULL = none */
  KsMediaSampling sampling;
  GPtrArray *frames; /* of KsMediaFrame */
  KsMediaProgress progress;
  gpointer user;
  guint64 peak_bytes;
};

KsPictureLoader *
ks_picture_loader_new (void)
{
  return g_new0 (KsPictureLoader, 1);
}

void
ks_picture_loader_set_progress (KsPictureLoader *loader, KsMediaProgress func, gpointer user)
{
  g_return_if_fail (loader != NULL);
  loader->progress = func;
  loader->user = user;
}

void
ks_picture_loader_forget (KsPictureLoader *loader)
{
  g_return_if_fail (loader != NULL);
  g_clear_pointer (&loader->path, g_free);
  g_clear_pointer (&loader->frames, g_ptr_array_unref);
}

void
ks_picture_loader_free (KsPictureLoader *loader)
{
  if (loader == NULL)
    return;
  ks_picture_loader_forget (loader);
  g_free (loader);
}

static guint64
count_pixels (KsPixels *pixels)
{
  return (guint64)ks_pixels_get_width (pixels) * ks_pixels_get_height (pixels);
}

guint64
ks_picture_loader_get_held_bytes (const KsPictureLoader *loader)
{
  guint64 n_bytes = 0;

  g_return_val_if_fail (loader != NULL, 0);
  for (guint i = 0; loader->frames != NULL && i < loader->frames->len; i++)
    n_bytes += 4 * count_pixels (((KsMediaFrame *)g_ptr_array_index (loader->frames, i))->pixels);
  return n_bytes;
}

guint64
ks_picture_loader_get_peak_bytes (const KsPictureLoader *loader)
{
  g_return_val_if_fail (loader != NULL, 0);
  return loader->peak_bytes;
}

/* n_bytes beside the frames that are kept. */
static void
note_bytes (KsPictureLoader *loader, guint64 n_bytes)
{
  loader->peak_bytes =
      MAX (loader->peak_bytes, ks_picture_loader_get_held_bytes (loader) + n_bytes);
}

void
ks_picture_rgb_clear (KsPictureRgb *rgb)
{
  g_clear_pointer (&rgb->rgb[0], g_free);
  g_clear_pointer (&rgb->rgb[1], g_free);
}

/* Over white, rounded: what is opaque stays as it is. */
static guint8
over_white (guint8 value, guint8 alpha)
{
  return (guint8)((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

static guint8 *
take_rgb (KsPixels *pixels)
{
  gsize n_pixel = (gsize)count_pixels (pixels);
  const guint8 *from = g_bytes_get_data (ks_pixels_get_bytes (pixels), NULL);
  guint8 *rgb = g_try_malloc_n (n_pixel, 3), *to = rgb;

  for (gsize i = 0; rgb != NULL && i < n_pixel; i++, from += 4, to += 3)
    for (guint c = 0; c < 3; c++)
      to[c] = from[3] == 255 ? from[c] : over_white (from[c], from[3]);
  return rgb;
}

static KsPixels *
load_pixels (const KsPictureLoader *loader, const KsPicture *picture, GCancellable *cancellable,
             GError **error)
{
  KsMediaOptions options = {.name = picture->name,
                            .password = picture->password,
                            .progress = loader->progress,
                            .user = loader->user};
  g_autoptr (KsMediaResult) result = NULL;

  if (picture->source == KS_PICTURE_PAGE || picture->source == KS_PICTURE_PART) {
    options.max_side_px = KS_PICTURE_PAGE_SIDE_PX;
    return ks_media_render_page (picture->path, picture->index, &options, cancellable, error);
  }
  options.max_side_px = KS_PICTURE_MAX_SIDE_PX;
  result = ks_media_load (picture->path, &options, cancellable, error);
  if (result == NULL)
    return NULL;
  if (result->kind == KS_MEDIA_IMAGE && result->pixels != NULL)
    return g_steal_pointer (&result->pixels);
  g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_UNKNOWN_TYPE,
               "%s is no picture: attach it as a document", picture->name);
  return NULL;
}

static gboolean
fail_memory (const KsPicture *picture, GError **error)
{
  g_set_error (error, KS_ENGINE_ERROR, KS_ERR_NOMEM, "there is no memory for the pixels of %s",
               picture->name);
  return FALSE;
}

/* --- videos --- */

static gboolean
is_same (const KsMediaSampling *a, const KsMediaSampling *b)
{
  return a->mode == b->mode && a->n_frames == b->n_frames && a->interval_us == b->interval_us &&
         a->cut_permille == b->cut_permille && a->begin_us == b->begin_us && a->end_us == b->end_us;
}

static gboolean
load_video (KsPictureLoader *loader, const KsPicture *picture, GCancellable *cancellable,
            GError **error)
{
  KsMediaOptions options = {.name = picture->name,
                            .max_side_px = KS_PICTURE_FRAME_SIDE_PX,
                            .progress = loader->progress,
                            .user = loader->user};

  if (g_strcmp0 (loader->path, picture->path) == 0 &&
      is_same (&loader->sampling, &picture->sampling))
    return TRUE;
  ks_picture_loader_forget (loader);
  loader->frames =
      ks_media_load_frames (picture->path, &picture->sampling, &options, NULL, cancellable, error);
  if (loader->frames == NULL)
    return FALSE;
  loader->path = g_strdup (picture->path);
  loader->sampling = picture->sampling;
  return TRUE;
}

/* The last frame of an odd number of them makes a pair with itself. */
static gboolean
take_frames (KsPictureLoader *loader, const KsPicture *picture, KsPictureRgb *out, GError **error)
{
  guint n = loader->frames->len;
  guint n_frame = MIN (picture->n_frame, G_N_ELEMENTS (out->rgb));
  double sum_us = 0;

  if (picture->index >= n) {
    g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_DAMAGED,
                 "%s has fewer frames than when it was attached: attach it again", picture->name);
    return FALSE;
  }
  for (guint i = 0; i < n_frame; i++) {
    const KsMediaFrame *frame = g_ptr_array_index (loader->frames, MIN (picture->index + i, n - 1));

    /* A video may change its size on the way: then the first one makes a pair with itself. */
    if (i > 0 && (ks_pixels_get_width (frame->pixels) != out->width_px ||
                  ks_pixels_get_height (frame->pixels) != out->height_px))
      frame = g_ptr_array_index (loader->frames, picture->index);
    out->width_px = ks_pixels_get_width (frame->pixels);
    out->height_px = ks_pixels_get_height (frame->pixels);
    out->rgb[i] = take_rgb (frame->pixels);
    if (out->rgb[i] == NULL)
      return fail_memory (picture, error);
    note_bytes (loader, 3 * (i + 1) * count_pixels (frame->pixels));
    sum_us += (double)frame->time_us;
  }
  out->time_s = sum_us / n_frame / 1e6;
  return TRUE;
}

gboolean
ks_picture_loader_load (KsPictureLoader *loader, const KsPicture *picture,
                        GCancellable *cancellable, KsPictureRgb *out, GError **error)
{
  g_autoptr (KsPixels) pixels = NULL;

  *out = (KsPictureRgb){0};
  if (picture->source == KS_PICTURE_FRAME)
    return load_video (loader, picture, cancellable, error) &&
           take_frames (loader, picture, out, error);
  ks_picture_loader_forget (loader);
  pixels = load_pixels (loader, picture, cancellable, error);
  if (pixels == NULL)
    return FALSE;
  out->width_px = ks_pixels_get_width (pixels);
  out->height_px = ks_pixels_get_height (pixels);
  out->rgb[0] = take_rgb (pixels);
  note_bytes (loader, (4 + 3) * count_pixels (pixels));
  return out->rgb[0] != NULL || fail_memory (picture, error);
}

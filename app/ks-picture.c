/* ks-picture.c - see ks-picture.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-picture.h"

#include "app/ks-picture-loader.h"

#define BLOCK_BYTES 65536

KsPicture *
ks_picture_new (KsPictureSource source, const char *hash, const char *path, const char *name)
{
  KsPicture *picture = g_new0 (KsPicture, 1);

  g_return_val_if_fail (hash != NULL && path != NULL, NULL);
  g_atomic_ref_count_init (&picture->n_ref);
  picture->source = source;
  picture->n_frame = picture->n_own_frame = 1;
  picture->hash = g_strdup (hash);
  picture->path = g_strdup (path);
  picture->name = g_strdup (name != NULL ? name : "");
  return picture;
}

KsPicture *
ks_picture_new_from_file (const char *path, GCancellable *cancellable, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GFileInputStream) in = g_file_read (file, cancellable, error);
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree guchar *block = g_malloc (BLOCK_BYTES);
  g_autofree char *name = g_filename_display_basename (path);
  gssize n;

  if (in == NULL)
    return NULL;
  while ((n = g_input_stream_read (G_INPUT_STREAM (in), block, BLOCK_BYTES, cancellable, error)) >
         0)
    g_checksum_update (sum, block, n);
  if (n < 0)
    return NULL;
  return ks_picture_new (KS_PICTURE_FILE, g_checksum_get_string (sum), path, name);
}

KsPicture *
ks_picture_ref (KsPicture *picture)
{
  g_return_val_if_fail (picture != NULL, NULL);
  g_atomic_ref_count_inc (&picture->n_ref);
  return picture;
}

void
ks_picture_unref (KsPicture *picture)
{
  g_return_if_fail (picture != NULL);
  if (!g_atomic_ref_count_dec (&picture->n_ref))
    return;
  g_free (picture->hash);
  g_free (picture->path);
  g_free (picture->name);
  g_free (picture->password);
  g_free (picture);
}

char *
ks_picture_make_part (const KsPicture *picture)
{
  const KsMediaSampling *s = &picture->sampling;

  if (picture->source == KS_PICTURE_PAGE || picture->source == KS_PICTURE_PART)
    return g_strdup_printf ("page %u at %u", picture->index, KS_PICTURE_PAGE_SIDE_PX);
  if (picture->source == KS_PICTURE_FRAME)
    return g_strdup_printf ("frames %u+%u at %u of %d %u %" G_GINT64_FORMAT " %u", picture->index,
                            picture->n_frame, KS_PICTURE_FRAME_SIDE_PX, (int)s->mode, s->n_frames,
                            s->interval_us, s->cut_permille);
  return g_strdup_printf ("file at %u", KS_PICTURE_MAX_SIDE_PX);
}

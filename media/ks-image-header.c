/* ks-image-header.c - see ks-image-header.h.
 * The decoder would find the size too, but only after it may have taken memory for it; orientation
 * and "ends early" are told differently by every version of it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-header.h"

#include <string.h>

#define TAG_ORIENTATION 274
#define MAX_TAGS 1000

/* Reads outside give 0. */
static guint32
get_le (const guint8 *data, gsize n, gsize at, guint n_byte)
{
  guint32 value = 0;

  if (at > n || n - at < n_byte)
    return 0;
  for (guint i = 0; i < n_byte; i++)
    value |= (guint32)data[at + i] << (8 * i);
  return value;
}

static guint32
get_be (const guint8 *data, gsize n, gsize at, guint n_byte)
{
  guint32 value = 0;

  if (at > n || n - at < n_byte)
    return 0;
  for (guint i = 0; i < n_byte; i++)
    value = value << 8 | data[at + i];
  return value;
}

static gboolean
has (const guint8 *data, gsize n, gsize at, const char *mark, gsize n_mark)
{
  return at <= n && n - at >= n_mark && memcmp (data + at, mark, n_mark) == 0;
}

/* An EXIF block is a small TIFF file; its first directory describes the picture. */
guint
ks_image_exif_orientation (const guint8 *data, gsize n)
{
  guint32 (*get) (const guint8 *, gsize, gsize, guint);
  guint orientation = 1, n_tag;
  gsize at;

  if (has (data, n, 0, "Exif\0\0", 6)) {
    data += 6;
    n -= 6;
  }
  if (!has (data, n, 0, "MM\0*", 4) && !has (data, n, 0, "II*\0", 4))
    return 1;
  get = data[0] == 'M' ? get_be : get_le;
  at = get (data, n, 4, 4);
  n_tag = MIN (get (data, n, at, 2), MAX_TAGS);
  at += 2;
  for (guint i = 0; i < n_tag; i++, at += 12) {
    guint32 value = get (data, n, at + 8, get (data, n, at + 2, 2) == 3 ? 2 : 4);

    if (get (data, n, at, 2) == TAG_ORIENTATION && value >= 1 && value <= 8)
      orientation = value;
  }
  return orientation;
}

static gboolean
parse_png (const guint8 *data, gsize n, KsImageHeader *out)
{
  gsize at = 8;

  if (!has (data, n, 12, "IHDR", 4))
    return FALSE;
  out->width_px = get_be (data, n, 16, 4);
  out->height_px = get_be (data, n, 20, 4);
  out->ends_early = TRUE;
  while (at < n && n - at >= 12) {
    gsize n_chunk = get_be (data, n, at, 4);

    if (n_chunk > n - at - 12) {
      out->cut_at = has (data, n, at + 4, "IDAT", 4) ? at : 0;
      return TRUE;
    }
    if (has (data, n, at + 4, "eXIf", 4))
      out->orientation = ks_image_exif_orientation (data + at + 8, n_chunk);
    out->is_animated |= has (data, n, at + 4, "acTL", 4) && get_be (data, n, at + 8, 4) > 1;
    if (has (data, n, at + 4, "IEND", 4)) {
      out->ends_early = FALSE;
      return TRUE;
    }
    at += 12 + n_chunk;
  }
  return TRUE;
}

/* Blocks of at most 255 bytes up to an empty one; the place behind it, n when it ends early. */
static gsize
skip_gif_blocks (const guint8 *data, gsize n, gsize at)
{
  while (at < n && data[at] != 0)
    at += (gsize)data[at] + 1;
  return at < n ? at + 1 : n;
}

static gboolean
parse_gif (const guint8 *data, gsize n, KsImageHeader *out)
{
  guint packed = get_le (data, n, 10, 1), n_image = 0;
  gsize at = 13 + (packed & 0x80 ? 3u << ((packed & 7) + 1) : 0);

  out->width_px = get_le (data, n, 6, 2);
  out->height_px = get_le (data, n, 8, 2);
  while (at < n && data[at] != 0x3b && n_image < 2) {
    if (data[at] == 0x21) {
      at = skip_gif_blocks (data, n, at + 2);
    } else if (data[at] == 0x2c) {
      guint local = get_le (data, n, at + 9, 1);

      at = skip_gif_blocks (data, n, at + 11 + (local & 0x80 ? 3u << ((local & 7) + 1) : 0));
      n_image++;
    } else {
      at = n;
    }
  }
  out->is_animated = n_image > 1;
  out->ends_early = at >= n;
  return out->width_px > 0 && out->height_px > 0;
}

static gboolean
parse_bmp (const guint8 *data, gsize n, KsImageHeader *out)
{
  gboolean old = get_le (data, n, 14, 4) == 12;
  gint32 height;

  out->width_px = get_le (data, n, 18, old ? 2 : 4);
  height = (gint32)get_le (data, n, old ? 20 : 22, old ? 2 : 4);
  out->height_px = height < 0 ? 0u - (guint32)height : (guint32)height;
  if (out->width_px == 0 || out->width_px > G_MAXINT32 || out->height_px == 0)
    return FALSE;
  if (old || get_le (data, n, 30, 4) == 0) { /* rows are not packed: their end is known */
    guint64 n_bit = get_le (data, n, old ? 24 : 28, 2);
    guint64 n_row = (n_bit * out->width_px + 31) / 32 * 4;

    out->ends_early = n_row > 0 && out->height_px > n / n_row;
  }
  return TRUE;
}

gboolean
ks_image_header_parse (const guint8 *data, gsize n, KsImageHeader *out)
{
  memset (out, 0, sizeof *out);
  out->orientation = 1;
  if (has (data, n, 0, "\x89PNG\r\n\x1a\n", 8)) {
    out->format = KS_IMAGE_PNG;
    return parse_png (data, n, out) && out->width_px > 0 && out->height_px > 0;
  }
  if (has (data, n, 0, "GIF8", 4)) {
    out->format = KS_IMAGE_GIF;
    return parse_gif (data, n, out);
  }
  out->format = KS_IMAGE_BMP;
  return has (data, n, 0, "BM", 2) && parse_bmp (data, n, out);
}

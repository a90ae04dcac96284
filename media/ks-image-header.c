/* ks-image-header.c - see ks-image-header.h.
 * The decoder would find the size too, but only after it may have taken memory for it; orientation
 * and "ends early" are told differently by every version of it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-header.h"

#include <string.h>

#define TAG_WIDTH 256
#define TAG_HEIGHT 257
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

/* A TIFF file's first directory, or that of an EXIF block, which is the same thing. */
static gboolean
parse_tiff (const guint8 *data, gsize n, KsImageHeader *out)
{
  gboolean big = has (data, n, 0, "MM\0*", 4);
  guint32 (*get) (const guint8 *, gsize, gsize, guint) = big ? get_be : get_le;
  gsize at;
  guint n_tag;

  if (!big && !has (data, n, 0, "II*\0", 4))
    return FALSE;
  at = get (data, n, 4, 4);
  n_tag = MIN (get (data, n, at, 2), MAX_TAGS);
  at += 2;
  for (guint i = 0; i < n_tag; i++, at += 12) {
    guint tag = get (data, n, at, 2), type = get (data, n, at + 2, 2);
    guint32 value = get (data, n, at + 8, type == 3 ? 2 : 4);

    if (tag == TAG_WIDTH)
      out->width_px = value;
    else if (tag == TAG_HEIGHT)
      out->height_px = value;
    else if (tag == TAG_ORIENTATION && value >= 1 && value <= 8)
      out->orientation = value;
  }
  return out->width_px > 0 && out->height_px > 0;
}

/* Only the orientation counts: an EXIF block describes its thumbnail's size, too. */
static void
parse_exif (const guint8 *data, gsize n, KsImageHeader *out)
{
  KsImageHeader exif = {.orientation = out->orientation};

  if (has (data, n, 0, "Exif\0\0", 6)) {
    data += 6;
    n -= 6;
  }
  parse_tiff (data, n, &exif);
  out->orientation = exif.orientation;
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
      parse_exif (data + at + 8, n_chunk, out);
    out->is_animated |= has (data, n, at + 4, "acTL", 4) && get_be (data, n, at + 8, 4) > 1;
    if (has (data, n, at + 4, "IEND", 4)) {
      out->ends_early = FALSE;
      return TRUE;
    }
    at += 12 + n_chunk;
  }
  return TRUE;
}

static gboolean
is_frame_marker (guint marker)
{
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static gboolean
parse_jpeg (const guint8 *data, gsize n, KsImageHeader *out)
{
  gsize at = 2;

  while (at < n && n - at >= 4) {
    guint marker = data[at + 1];
    gsize n_part = get_be (data, n, at + 2, 2);

    if (data[at] != 0xff)
      return FALSE;
    if (marker == 0xff) { /* a fill byte */
      at++;
      continue;
    }
    if (n_part < 2)
      return FALSE;
    if (is_frame_marker (marker)) {
      out->height_px = get_be (data, n, at + 5, 2);
      out->width_px = get_be (data, n, at + 7, 2);
    } else if (marker == 0xe1 && n_part <= n - at - 2 && has (data, n, at + 4, "Exif\0\0", 6)) {
      parse_exif (data + at + 4, n_part - 2, out);
    } else if (marker == 0xda) {
      out->ends_early = memmem (data + at, n - at, "\xff\xd9", 2) == NULL;
      return out->width_px > 0;
    }
    at += 2 + n_part;
  }
  out->ends_early = TRUE;
  return out->width_px > 0;
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

/* Size in a VP8 or VP8L chunk at `at`. */
static void
parse_webp_frame (const guint8 *data, gsize n, gsize at, KsImageHeader *out)
{
  if (has (data, n, at, "VP8 ", 4)) {
    out->width_px = get_le (data, n, at + 14, 2) & 0x3fff;
    out->height_px = get_le (data, n, at + 16, 2) & 0x3fff;
  } else if (has (data, n, at, "VP8L", 4)) {
    guint32 bits = get_le (data, n, at + 9, 4);

    out->width_px = (bits & 0x3fff) + 1;
    out->height_px = (bits >> 14 & 0x3fff) + 1;
  }
}

static gboolean
parse_webp (const guint8 *data, gsize n, KsImageHeader *out)
{
  gsize at = 12;

  out->ends_early = get_le (data, n, 4, 4) > n - 8;
  while (at < n && n - at >= 8) {
    gsize n_chunk = MIN (get_le (data, n, at + 4, 4), n - at - 8);

    if (has (data, n, at, "ANMF", 4)) {
      if (out->n_frame > 0)
        return TRUE;
      out->is_animated = TRUE;
      if (n_chunk > 16) {
        out->frame_at = at + 24;
        out->n_frame = n_chunk - 16;
        out->width_px = get_le (data, n, at + 14, 3) + 1;
        out->height_px = get_le (data, n, at + 17, 3) + 1;
      }
    } else if (has (data, n, at, "EXIF", 4)) {
      parse_exif (data + at + 8, n_chunk, out);
    } else if (has (data, n, at, "VP8X", 4)) {
      out->width_px = get_le (data, n, at + 12, 3) + 1;
      out->height_px = get_le (data, n, at + 15, 3) + 1;
    } else if (out->width_px == 0) {
      parse_webp_frame (data, n, at, out);
    }
    at += 8 + n_chunk + (n_chunk & 1);
  }
  return out->width_px > 0 && out->height_px > 0;
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
  if (has (data, n, 0, "\xff\xd8\xff", 3)) {
    out->format = KS_IMAGE_JPEG;
    return parse_jpeg (data, n, out) && out->height_px > 0;
  }
  if (has (data, n, 0, "GIF8", 4)) {
    out->format = KS_IMAGE_GIF;
    return parse_gif (data, n, out);
  }
  if (has (data, n, 0, "BM", 2)) {
    out->format = KS_IMAGE_BMP;
    return parse_bmp (data, n, out);
  }
  if (has (data, n, 0, "RIFF", 4) && has (data, n, 8, "WEBP", 4)) {
    out->format = KS_IMAGE_WEBP;
    return parse_webp (data, n, out);
  }
  out->format = KS_IMAGE_TIFF;
  return parse_tiff (data, n, out);
}

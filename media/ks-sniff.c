/* ks-sniff.c - see ks-sniff.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-sniff.h"

#include "media/ks-office-sniff.h"
#include "media/ks-video-sniff.h"

#include <string.h>

typedef gboolean (*Test) (const guint8 *data, gsize n);

static gboolean
has (const guint8 *data, gsize n, gsize at, const char *mark, gsize n_mark)
{
  return at <= n && n - at >= n_mark && memcmp (data + at, mark, n_mark) == 0;
}

/* At the very start, or behind bytes that are no text: a source file may well speak of "%PDF-". */
static gboolean
is_pdf (const guint8 *data, gsize n)
{
  const guint8 *mark = memmem (data, MIN (n, 1024), "%PDF-", 5);

  if (mark == NULL)
    return FALSE;
  for (const guint8 *p = data; p < mark; p++)
    if (*p < 0x20 && strchr ("\t\n\r\f\x1b\b", *p) == NULL)
      return TRUE;
  for (const guint8 *p = data; p < mark; p++)
    if (!g_ascii_isspace (*p) && *p < 0x80)
      return FALSE;
  return TRUE;
}

/* Sizes of the headers that follow a BMP's file header. */
static gboolean
is_bmp (const guint8 *data, gsize n)
{
  static const guint8 sizes[] = {12, 40, 52, 56, 64, 108, 124};

  return has (data, n, 0, "BM", 2) && n >= 18 && data[15] == 0 && data[16] == 0 && data[17] == 0 &&
         memchr (sizes, data[14], sizeof sizes) != NULL;
}

static gboolean
is_jpeg (const guint8 *data, gsize n)
{
  return has (data, n, 0, "\xff\xd8\xff", 3);
}

static gboolean
is_raster (const guint8 *data, gsize n)
{
  return has (data, n, 0, "\x89PNG\r\n\x1a\n", 8) || has (data, n, 0, "GIF87a", 6) ||
         has (data, n, 0, "GIF89a", 6) || is_bmp (data, n);
}

static gboolean
is_webp (const guint8 *data, gsize n)
{
  return has (data, n, 0, "RIFF", 4) && has (data, n, 8, "WEBP", 4);
}

/* The classic form and the one with 64-bit offsets. */
static gboolean
is_tiff (const guint8 *data, gsize n)
{
  return has (data, n, 0, "II*\0", 4) || has (data, n, 0, "MM\0*", 4) ||
         has (data, n, 0, "II+\0\x08\0\0\0", 8) || has (data, n, 0, "MM\0+\0\x08\0\0", 8);
}

/* HEIC, AVIF and their sequences: a brand of theirs in the first box.  A film lists brands as well,
 * but none of these. */
static gboolean
is_heif (const guint8 *data, gsize n)
{
  static const char *const brands[] = {"heic", "heix", "heim", "heis", "hevc", "hevx",
                                       "avif", "avis", "mif1", "mif2", "msf1"};
  gsize n_box;

  if (n < 16 || !has (data, n, 4, "ftyp", 4))
    return FALSE;
  n_box = MIN ((gsize)data[2] << 8 | data[3], n);
  for (gsize at = 8; at + 4 <= n_box; at += at == 8 ? 8 : 4) /* the version lies between */
    for (gsize i = 0; i < G_N_ELEMENTS (brands); i++)
      if (memcmp (data + at, brands[i], 4) == 0)
        return TRUE;
  return FALSE;
}

/* The place behind the first `end` from `at` on; n when there is none. */
static gsize
skip_to (const char *text, gsize n, gsize at, const char *end)
{
  const char *found = memmem (text + at, n - at, end, strlen (end));

  return found != NULL ? (gsize)(found - text) + strlen (end) : n;
}

/* A document type may hold declarations in brackets, which hold '>' themselves. */
static gsize
skip_doctype (const char *text, gsize n, gsize at)
{
  const char *bracket = memchr (text + at, '[', n - at), *end = memchr (text + at, '>', n - at);

  if (bracket != NULL && (end == NULL || bracket < end))
    return skip_to (text, n, skip_to (text, n, at, "]"), ">");
  return skip_to (text, n, at, ">");
}

/* The first element of an XML file, behind what may precede it, is <svg> in any name space; or its
 * document type says so, which may be longer than what is looked at. */
static gboolean
is_svg_text (const char *text, gsize n)
{
  gsize at = has ((const guint8 *)text, n, 0, "\xef\xbb\xbf", 3) ? 3 : 0, name;

  for (;;) {
    while (at < n && g_ascii_isspace (text[at]))
      at++;
    if (at >= n || text[at] != '<')
      return FALSE;
    if (n - at >= 4 && memcmp (text + at, "<!--", 4) == 0)
      at = skip_to (text, n, at + 4, "-->");
    else if (n - at >= 2 && text[at + 1] == '?')
      at = skip_to (text, n, at, "?>");
    else if (n - at >= 14 && memcmp (text + at, "<!DOCTYPE svg", 13) == 0)
      return g_ascii_isspace (text[at + 13]) || text[at + 13] == '>';
    else if (n - at >= 2 && text[at + 1] == '!')
      at = skip_doctype (text, n, at);
    else
      break;
  }
  name = ++at;
  for (; at < n && (g_ascii_isalnum (text[at]) || memchr (":-_.", text[at], 4) != NULL); at++)
    if (text[at] == ':')
      name = at + 1;
  return at - name == 3 && memcmp (text + name, "svg", 3) == 0 && at < n &&
         (g_ascii_isspace (text[at]) || text[at] == '>' || text[at] == '/');
}

/* Also in UTF-16, and packed by gzip: what is inside is seen by the decoder only. */
static gboolean
is_svg (const guint8 *data, gsize n)
{
  char narrow[KS_SNIFF_BYTES];
  gsize n_narrow = 0, first;

  if (has (data, n, 0, "\x1f\x8b\x08", 3))
    return TRUE;
  if (!has (data, n, 0, "\xff\xfe", 2) && !has (data, n, 0, "\xfe\xff", 2))
    return is_svg_text ((const char *)data, n);
  first = data[0] == 0xff ? 2 : 3;
  for (gsize at = first; at < n && n_narrow < sizeof narrow; at += 2)
    narrow[n_narrow++] = (char)data[at];
  return is_svg_text (narrow, n_narrow);
}

/* The first line that fits counts. */
static const struct {
  KsSniff kind;
  Test is;
} table[] = {
    {{KS_WIRE_PDF, "keepsake-document.so"}, is_pdf},
    {{KS_WIRE_IMAGE, "keepsake-image.so"}, is_raster},
    {{KS_WIRE_IMAGE, "keepsake-jpeg.so"}, is_jpeg},
    {{KS_WIRE_IMAGE, "keepsake-webp.so"}, is_webp},
    {{KS_WIRE_IMAGE, "keepsake-tiff.so"}, is_tiff},
    {{KS_WIRE_IMAGE, "keepsake-heif.so"}, is_heif},
    {{KS_WIRE_IMAGE, "keepsake-svg.so"}, is_svg},
    {{KS_WIRE_VIDEO, "keepsake-video.so"}, ks_video_sniff},
    {{KS_WIRE_DOCUMENT, "keepsake-office.so"}, ks_office_sniff},
};

const KsSniff *
ks_sniff (const guint8 *data, gsize n)
{
  static const KsSniff text = {KS_WIRE_TEXT, NULL};

  n = MIN (n, KS_SNIFF_BYTES);
  for (gsize i = 0; i < G_N_ELEMENTS (table); i++)
    if (table[i].is (data, n))
      return &table[i].kind;
  return &text;
}

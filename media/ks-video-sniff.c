/* ks-video-sniff.c - see ks-video-sniff.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-video-sniff.h"

#include <string.h>

#define PACKET_BYTES 188 /* of an MPEG transport stream */

typedef struct {
  guint at, n;
  const char *bytes;
} Mark;

static const Mark marks[] = {
    {0, 4, "\x1a\x45\xdf\xa3"},                 /* Matroska, WebM */
    {0, 4, "FLV\1"},                            /* Flash */
    {0, 4, "OggS"},                             /* Ogg */
    {0, 8, "\x30\x26\xb2\x75\x8e\x66\xcf\x11"}, /* ASF: WMV, WMA */
    {0, 4, "\0\0\1\xba"},                       /* MPEG program stream */
    {0, 4, "\0\0\1\xb0"},                       /* MPEG-4 video */
    {0, 4, "\0\0\1\xb3"},                       /* MPEG video */
    {0, 4, ".RMF"},                             /* RealMedia */
    {0, 4, "DKIF"},                             /* IVF */
    {0, 10, "YUV4MPEG2 "},                      /* raw */
    {0, 3, "ID3"},                              /* MP3 */
    {0, 4, "fLaC"},                             /* FLAC */
    {0, 5, "#!AMR"},                            /* AMR */
    {4, 4, "moov"},                             /* QuickTime without a brand */
    {4, 4, "mdat"},                             /* the same, data first */
    {4, 4, "wide"},                             /* the same */
};

/* Brands of pictures in the container of MP4. */
static const char *const picture_brands[] = {"avif", "avis", "heic", "heim", "heis", "heix",
                                             "hevc", "hevm", "hevs", "hevx", "mif1", "mif2",
                                             "miaf", "msf1", "crx ", "jxl ", "j2ki"};

static gboolean
has (const guint8 *data, gsize n, gsize at, const char *bytes, gsize n_bytes)
{
  return at <= n && n - at >= n_bytes && memcmp (data + at, bytes, n_bytes) == 0;
}

static gboolean
is_mp4 (const guint8 *data, gsize n)
{
  if (!has (data, n, 4, "ftyp", 4) || n < 12)
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (picture_brands); i++)
    if (has (data, n, 8, picture_brands[i], 4))
      return FALSE;
  return TRUE;
}

static gboolean
is_riff (const guint8 *data, gsize n)
{
  return has (data, n, 0, "RIFF", 4) &&
         (has (data, n, 8, "AVI ", 4) || has (data, n, 8, "WAVE", 4));
}

/* Three packets in a row; on discs and from cameras each has a clock of four bytes in front. */
static gboolean
is_transport_stream (const guint8 *data, gsize n)
{
  for (gsize front = 0; front <= 4; front += 4) {
    guint n_sync = 0;

    for (gsize at = front; n_sync < 3 && at < n && data[at] == 0x47; at += PACKET_BYTES + front)
      n_sync++;
    if (n_sync == 3)
      return TRUE;
  }
  return FALSE;
}

/* H.264 and H.265 without a container: a start code, then parameters or a delimiter. */
static gboolean
is_raw_stream (const guint8 *data, gsize n)
{
  gsize at = has (data, n, 0, "\0\0\0\1", 4) ? 4 : has (data, n, 0, "\0\0\1", 3) ? 3 : 0;

  if (at == 0 || n < at + 2)
    return FALSE;
  return data[at] == 0x67 || data[at] == 0x27 || data[at] == 0x47 ||
         (data[at] == 0x09 && (data[at + 1] & 0x1f) == 0x10) ||
         ((data[at] == 0x40 || data[at] == 0x46) && data[at + 1] == 0x01);
}

/* Layer 3 with a bit rate and a sampling rate that exist. */
static gboolean
is_mp3 (const guint8 *data, gsize n)
{
  return n >= 4 && data[0] == 0xff && (data[1] & 0xe6) == 0xe2 && (data[1] & 0x18) != 0x08 &&
         (data[2] & 0xf0) != 0xf0 && (data[2] & 0xf0) != 0 && (data[2] & 0x0c) != 0x0c;
}

gboolean
ks_video_sniff (const guint8 *data, gsize n)
{
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (has (data, n, marks[i].at, marks[i].bytes, marks[i].n))
      return TRUE;
  return is_mp4 (data, n) || is_riff (data, n) || is_transport_stream (data, n) ||
         is_raw_stream (data, n) || is_mp3 (data, n);
}

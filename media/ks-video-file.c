/* ks-video-file.c - see ks-video-file.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-video-file.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES 65536
#define MAX_ATOMS 256

/* Containers that hold their data themselves. */
static const char formats[] =
    "aac,aiff,amr,asf,av1,avi,dv,flac,flv,h264,hevc,ivf,m4v,matroska,webm,mov,mp3,mp4,mpeg,mpegts,"
    "mpegvideo,mxf,nut,obu,ogg,rm,vc1,wav,yuv4mpegpipe";

typedef struct {
  const KsLoaderJob *job;
  gint64 at;
} Source;

static int
read_cb (void *opaque, uint8_t *data, int n)
{
  Source *source = opaque;
  ssize_t got;

  do
    got = pread (source->job->fd, data, (size_t)n, (off_t)source->at);
  while (got < 0 && errno == EINTR);
  if (got < 0)
    return AVERROR (errno);
  source->at += got;
  return got > 0 ? (int)got : AVERROR_EOF;
}

static int64_t
seek_cb (void *opaque, int64_t offset, int whence)
{
  Source *source = opaque;
  gint64 base = 0;

  if ((whence & AVSEEK_SIZE) != 0)
    return (int64_t)source->job->n_bytes;
  whence &= ~AVSEEK_FORCE;
  if (whence == SEEK_CUR)
    base = source->at;
  else if (whence == SEEK_END)
    base = (gint64)source->job->n_bytes;
  if (__builtin_add_overflow (base, offset, &base) || base < 0)
    return AVERROR (EINVAL);
  return source->at = base;
}

static int
refuse_open (AVFormatContext *file, AVIOContext **out, const char *url, int flags,
             AVDictionary **options)
{
  return AVERROR (EPERM);
}

static guint64
get_be (const guint8 *data, guint n_byte)
{
  guint64 value = 0;

  for (guint i = 0; i < n_byte; i++)
    value = value << 8 | data[i];
  return value;
}

static gboolean
is_any (const guint8 *name, const char *const *names, guint n)
{
  for (guint i = 0; i < n; i++)
    if (memcmp (name, names[i], 4) == 0)
      return TRUE;
  return FALSE;
}

/* MP4 and QuickTime: pictures without the index that says where each lies.  Nothing is looked at
 * but the names and lengths of the outermost parts. */
static gboolean
lacks_index (const KsLoaderJob *job)
{
  static const char *const starts[] = {"ftyp", "mdat", "wide", "free", "skip"}, *const indexes[] = {
                                                                                    "moov", "moof"};
  gboolean has_data = FALSE;
  guint64 at = 0;

  for (guint i = 0; i < MAX_ATOMS; i++) {
    guint8 head[16] = {0};
    guint64 n;

    if (pread (job->fd, head, sizeof head, (off_t)at) < 8)
      break;
    if (is_any (head + 4, indexes, G_N_ELEMENTS (indexes)) ||
        (i == 0 && !is_any (head + 4, starts, G_N_ELEMENTS (starts))))
      return FALSE;
    has_data = has_data || memcmp (head + 4, "mdat", 4) == 0;
    n = get_be (head, 4);
    if (n == 1)
      n = get_be (head + 8, 8);
    if (n < 8 || n > job->n_bytes || at > job->n_bytes - n)
      break;
    at += n;
  }
  return has_data;
}

static void
answer_failure (const KsLoaderJob *job, int code)
{
  if (code == AVERROR (ENOMEM))
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  if (lacks_index (job))
    ks_answer_fault (KS_WIRE_FAULT_NO_INDEX, 0, 0);
  ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_VIDEO, 0);
}

static AVIOContext *
open_source (const KsLoaderJob *job)
{
  Source *source = g_new0 (Source, 1);
  guint8 *buffer = av_malloc (BUFFER_BYTES);
  AVIOContext *io =
      buffer != NULL ? avio_alloc_context (buffer, BUFFER_BYTES, 0, source, read_cb, NULL, seek_cb)
                     : NULL;

  if (io == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  source->job = job;
  return io;
}

AVFormatContext *
ks_video_file_open (const KsLoaderJob *job)
{
  AVFormatContext *file = avformat_alloc_context ();
  AVDictionary *options = NULL;
  int code;

  if (file == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  file->pb = open_source (job);
  file->flags |= AVFMT_FLAG_CUSTOM_IO;
  file->io_open = refuse_open;
  av_dict_set (&options, "format_whitelist", formats, 0);
  av_dict_set (&options, "protocol_whitelist", "none", 0);
  code = avformat_open_input (&file, NULL, NULL, &options);
  av_dict_free (&options);
  if (code == 0)
    code = avformat_find_stream_info (file, NULL);
  if (code < 0)
    answer_failure (job, code);
  return file;
}

void
ks_video_file_close (AVFormatContext *file)
{
  AVIOContext *io = file->pb;

  avformat_close_input (&file);
  g_free (io->opaque);
  av_freep (&io->buffer);
  avio_context_free (&io);
}

double
ks_video_file_get_part (const AVFormatContext *file, const KsLoaderJob *job)
{
  gint64 at = avio_tell (file->pb);

  if (at <= 0 || job->n_bytes == 0)
    return 0;
  return MIN ((double)at / (double)job->n_bytes, 1);
}

const gint32 *
ks_video_file_get_matrix (const AVStream *stream)
{
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
  const AVPacketSideData *side =
      av_packet_side_data_get (stream->codecpar->coded_side_data,
                               stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);

  return side != NULL && side->size >= 9 * sizeof (gint32) ? (const gint32 *)(void *)side->data
                                                           : NULL;
#else
  size_t n = 0;
  const guint8 *data = av_stream_get_side_data (stream, AV_PKT_DATA_DISPLAYMATRIX, &n);

  return data != NULL && n >= 9 * sizeof (gint32) ? (const gint32 *)(const void *)data : NULL;
#endif
}

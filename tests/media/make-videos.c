/* make-videos.c - writes the small videos of the media tests into a folder.
 * Usage: make-videos FOLDER.  Encoders are those that every build of FFmpeg has; what is made is
 * checked by times, sizes and colours, never by bytes.  Each frame tells its number by the grey of
 * its middle, and which way is up by a red square in its upper left corner. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/opt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
/* An encoder of another library keeps what it copied: no leaks are looked for, whatever
 * ASAN_OPTIONS say. */
int __lsan_is_turned_off (void);

int
__lsan_is_turned_off (void)
{
  return 1;
}
#endif

#define WIDTH 96
#define HEIGHT 64
#define GROWN_WIDTH 288
#define GROWN_HEIGHT 128
#define SQUARE 32
#define SOUND_RATE 32000

typedef enum { LOOK_NUMBERED, LOOK_SCENES, LOOK_MOVING } Look;

typedef struct {
  const char *name, *muxer, *codec;
  int n_frame, key_distance, n_b_frame;
  const int *times_ms; /* NULL: ten a second */
  int matrix[4];       /* a b c d of the display matrix; all 0 = none */
  int aspect;          /* a pixel is so many times as wide as high; 0 = not said */
  int start_ms;
  int grows; /* frames of the second half are GROWN_WIDTH x GROWN_HEIGHT */
  Look look;
  const char *movflags;
  int has_sound;
} Video;

static const int uneven_ms[] = {0, 40, 80, 1000, 1040, 5000, 9000};
static const int slides_ms[] = {0, 10000, 25000};

static const Video videos[] = {
    {.name = "plain.mp4", .muxer = "mp4", .codec = "mpeg4", .n_frame = 30, .key_distance = 12},
    {.name = "sound.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 20,
     .key_distance = 12,
     .n_b_frame = 2,
     .has_sound = 1},
    {.name = "front.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 30,
     .key_distance = 1,
     .movflags = "faststart"},
    {.name = "pieces.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 30,
     .key_distance = 5,
     .movflags = "frag_keyframe+empty_moov"},
    {.name = "h264.mp4",
     .muxer = "mp4",
     .codec = "libx264",
     .n_frame = 30,
     .key_distance = 250,
     .n_b_frame = 3},
    {.name = "h265.mp4", .muxer = "mp4", .codec = "libx265", .n_frame = 30, .key_distance = 10},
    {.name = "vp8.webm", .muxer = "webm", .codec = "libvpx", .n_frame = 30, .key_distance = 10},
    {.name = "vp9.webm", .muxer = "webm", .codec = "libvpx-vp9", .n_frame = 30, .key_distance = 10},
    {.name = "av1.mp4", .muxer = "mp4", .codec = "libaom-av1", .n_frame = 30, .key_distance = 10},
    {.name = "plain.mkv",
     .muxer = "matroska",
     .codec = "mpeg4",
     .n_frame = 30,
     .key_distance = 12,
     .n_b_frame = 2},
    {.name = "uneven.mkv",
     .muxer = "matroska",
     .codec = "mpeg4",
     .n_frame = 7,
     .key_distance = 12,
     .times_ms = uneven_ms},
    {.name = "slides.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 3,
     .key_distance = 12,
     .times_ms = slides_ms},
    {.name = "plain.avi",
     .muxer = "avi",
     .codec = "mpeg4",
     .n_frame = 30,
     .key_distance = 12,
     .n_b_frame = 2},
    {.name = "late.ts",
     .muxer = "mpegts",
     .codec = "mpeg2video",
     .n_frame = 30,
     .key_distance = 10,
     .n_b_frame = 2,
     .start_ms = 7000,
     .has_sound = 1},
    {.name = "plain.mpg",
     .muxer = "mpeg",
     .codec = "mpeg2video",
     .n_frame = 30,
     .key_distance = 10},
    {.name = "plain.flv", .muxer = "flv", .codec = "flv", .n_frame = 30, .key_distance = 10},
    {.name = "plain.mov", .muxer = "mov", .codec = "mjpeg", .n_frame = 30, .key_distance = 1},
    {.name = "grows.mkv",
     .muxer = "matroska",
     .codec = "mjpeg",
     .n_frame = 10,
     .key_distance = 1,
     .grows = 1},
    {.name = "raw.m4v", .muxer = "m4v", .codec = "mpeg4", .n_frame = 30, .key_distance = 12},
    {.name = "one.mp4", .muxer = "mp4", .codec = "mpeg4", .n_frame = 1, .key_distance = 12},
    {.name = "wide.mkv",
     .muxer = "matroska",
     .codec = "mpeg4",
     .n_frame = 2,
     .key_distance = 12,
     .aspect = 2},
    {.name = "turned-2.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 2,
     .matrix = {-1, 0, 0, 1}},
    {.name = "turned-3.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 2,
     .matrix = {-1, 0, 0, -1}},
    {.name = "turned-4.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 2,
     .matrix = {1, 0, 0, -1}},
    {.name = "turned-5.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 2,
     .matrix = {0, 1, 1, 0}},
    {.name = "turned-6.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 2,
     .matrix = {0, 1, -1, 0}},
    {.name = "turned-7.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 2,
     .matrix = {0, -1, -1, 0}},
    {.name = "turned-8.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 2,
     .matrix = {0, -1, 1, 0}},
    {.name = "scenes.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 30,
     .key_distance = 100,
     .look = LOOK_SCENES},
    {.name = "moving.mp4",
     .muxer = "mp4",
     .codec = "mpeg4",
     .n_frame = 30,
     .key_distance = 100,
     .look = LOOK_MOVING},
    {.name = "sound.m4a", .muxer = "mp4", .has_sound = 1, .n_frame = 10},
    {.name = "sound.mka", .muxer = "matroska", .has_sound = 1, .n_frame = 10},
};

static void
require (int holds, const char *what)
{
  if (!holds) {
    fprintf (stderr, "make-videos: %s\n", what);
    exit (1);
  }
}

typedef struct {
  const Video *video;
  AVFormatContext *file;
  AVStream *stream, *sound;
  AVCodecContext *codec, *sound_codec;
} Output;

static int
get_time_ms (const Video *video, int i)
{
  return video->start_ms + (video->times_ms != NULL ? video->times_ms[i] : 100 * i);
}

static int
get_grey (const Video *video, int i, int x, int y)
{
  static const int scenes[] = {40, 200, 110};

  if (video->look == LOOK_SCENES)
    return scenes[i / 10 % 3] + i % 10;
  if (video->look == LOOK_MOVING) /* stripes that go round and round, evenly */
    return (x + 8 * i) / 16 % 2 == 0 ? 60 : 180;
  return 40 + 6 * i;
}

static void
draw (const Video *video, int i, AVFrame *frame)
{
  int is_full = frame->format == AV_PIX_FMT_YUVJ420P;

  for (int y = 0; y < frame->height; y++)
    for (int x = 0; x < frame->width; x++) {
      int is_red = x < SQUARE && y < SQUARE && video->look == LOOK_NUMBERED;

      int grey = is_red ? 81 : get_grey (video, i, x, y);

      frame->data[0][y * frame->linesize[0] + x] =
          (uint8_t)(is_full ? ((grey - 16) * 255 + 109) / 219 : grey);
      if (x % 2 == 0 && y % 2 == 0) {
        frame->data[1][y / 2 * frame->linesize[1] + x / 2] = is_red ? 90 : 128;
        frame->data[2][y / 2 * frame->linesize[2] + x / 2] = is_red ? 240 : 128;
      }
    }
}

static AVCodecContext *
open_encoder (Output *out, const char *name)
{
  const AVCodec *codec = avcodec_find_encoder_by_name (name);
  AVCodecContext *context;

  if (codec == NULL)
    return NULL;
  context = avcodec_alloc_context3 (codec);
  require (context != NULL, "no memory");
  context->thread_count = 1;
  if ((out->file->oformat->flags & AVFMT_GLOBALHEADER) != 0)
    context->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  return context;
}

static void
set_matrix (AVStream *stream, const int *m)
{
  int32_t matrix[9] = {m[0] * 65536, m[1] * 65536, 0, m[2] * 65536, m[3] * 65536, 0, 0, 0, 1 << 30};
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
  AVPacketSideData *side = av_packet_side_data_new (&stream->codecpar->coded_side_data,
                                                    &stream->codecpar->nb_coded_side_data,
                                                    AV_PKT_DATA_DISPLAYMATRIX, sizeof matrix, 0);
  uint8_t *data = side != NULL ? side->data : NULL;
#else
  uint8_t *data = av_stream_new_side_data (stream, AV_PKT_DATA_DISPLAYMATRIX, sizeof matrix);
#endif

  require (data != NULL, "no memory for a matrix");
  memcpy (data, matrix, sizeof matrix);
}

/* NULL: this build has no such encoder. */
static AVCodecContext *
open_pictures (Output *out, int width, int height)
{
  const Video *video = out->video;
  AVCodecContext *codec = open_encoder (out, video->codec);

  if (codec == NULL)
    return NULL;
  codec->width = width;
  codec->height = height;
  codec->pix_fmt = strcmp (video->codec, "mjpeg") == 0 ? AV_PIX_FMT_YUVJ420P : AV_PIX_FMT_YUV420P;
  codec->color_range = strcmp (video->codec, "mjpeg") == 0 ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  codec->time_base = video->times_ms != NULL ? (AVRational){1, 1000} : (AVRational){1, 10};
  codec->framerate = av_inv_q (codec->time_base);
  codec->gop_size = video->key_distance > 0 ? video->key_distance : 12;
  codec->max_b_frames = video->n_b_frame;
  codec->flags |= AV_CODEC_FLAG_QSCALE;
  codec->global_quality = 2 * FF_QP2LAMBDA;
  if (video->aspect > 0)
    codec->sample_aspect_ratio = (AVRational){video->aspect, 1};
  /* No key frames but those that are asked for, however much the picture changes. */
  av_opt_set_int (codec->priv_data, "sc_threshold", 1000000000, 0);
  av_opt_set (codec->priv_data, "cpu-used", "8", 0);
  av_opt_set (codec->priv_data, "x265-params", "log-level=none:pools=none:frame-threads=1", 0);
  if (strcmp (video->codec, "libx264") == 0)
    av_opt_set (codec->priv_data, "x264-params", "keyint=250:scenecut=0:qp=10", 0);
  require (avcodec_open2 (codec, NULL, NULL) == 0, "an encoder does not open");
  return codec;
}

/* 0: this build has no such encoder. */
static int
add_pictures (Output *out)
{
  const Video *video = out->video;
  AVCodecContext *codec = open_pictures (out, WIDTH, HEIGHT);

  if (codec == NULL)
    return 0;
  out->codec = codec;
  out->stream = avformat_new_stream (out->file, NULL);
  require (out->stream != NULL, "no memory for a stream");
  avcodec_parameters_from_context (out->stream->codecpar, codec);
  out->stream->time_base = codec->time_base;
  out->stream->avg_frame_rate = codec->framerate;
  out->stream->sample_aspect_ratio = codec->sample_aspect_ratio;
  if (video->matrix[0] != 0 || video->matrix[1] != 0)
    set_matrix (out->stream, video->matrix);
  return 1;
}

static void
add_sound (Output *out)
{
  AVCodecContext *codec = open_encoder (out, "mp2");

  require (codec != NULL, "no encoder for sound");
  codec->sample_rate = SOUND_RATE;
  codec->sample_fmt = AV_SAMPLE_FMT_S16;
  codec->bit_rate = 64000;
  av_channel_layout_default (&codec->ch_layout, 1);
  codec->time_base = (AVRational){1, SOUND_RATE};
  require (avcodec_open2 (codec, NULL, NULL) == 0, "the encoder of sound does not open");
  out->sound_codec = codec;
  out->sound = avformat_new_stream (out->file, NULL);
  require (out->sound != NULL, "no memory for a stream");
  avcodec_parameters_from_context (out->sound->codecpar, codec);
  out->sound->time_base = codec->time_base;
}

/* frame NULL: the end. */
static void
encode (Output *out, AVCodecContext *codec, AVStream *stream, AVFrame *frame)
{
  AVPacket *packet = av_packet_alloc ();

  require (packet != NULL && avcodec_send_frame (codec, frame) == 0, "a frame is not encoded");
  while (avcodec_receive_packet (codec, packet) == 0) {
    av_packet_rescale_ts (packet, codec->time_base, stream->time_base);
    packet->stream_index = stream->index;
    require (av_interleaved_write_frame (out->file, packet) >= 0, "a packet is not written");
  }
  av_packet_free (&packet);
}

static void
write_part (Output *out, AVCodecContext *codec, int first, int end)
{
  AVFrame *frame = av_frame_alloc ();

  require (frame != NULL, "no memory for a frame");
  frame->width = codec->width;
  frame->height = codec->height;
  frame->format = codec->pix_fmt;
  frame->quality = codec->global_quality;
  require (av_frame_get_buffer (frame, 0) == 0, "no memory for a frame");
  for (int i = first; i < end; i++) {
    require (av_frame_make_writable (frame) == 0, "no memory for a frame");
    draw (out->video, i, frame);
    frame->pts =
        av_rescale_q (get_time_ms (out->video, i), (AVRational){1, 1000}, codec->time_base);
    encode (out, codec, out->stream, frame);
  }
  encode (out, codec, out->stream, NULL);
  av_frame_free (&frame);
}

static void
write_pictures (Output *out)
{
  int n = out->video->n_frame, n_first = out->video->grows ? n / 2 : n;
  AVCodecContext *grown;

  write_part (out, out->codec, 0, n_first);
  if (n_first == n)
    return;
  grown = open_pictures (out, GROWN_WIDTH, GROWN_HEIGHT);
  require (grown != NULL, "no second encoder");
  write_part (out, grown, n_first, n);
  avcodec_free_context (&grown);
}

/* Silence as long as ten frames a second last. */
static void
write_sound (Output *out)
{
  AVFrame *frame = av_frame_alloc ();
  int n = out->sound_codec->frame_size;

  require (frame != NULL, "no memory for a frame");
  frame->nb_samples = n;
  frame->format = out->sound_codec->sample_fmt;
  frame->sample_rate = SOUND_RATE;
  av_channel_layout_copy (&frame->ch_layout, &out->sound_codec->ch_layout);
  require (av_frame_get_buffer (frame, 0) == 0, "no memory for sound");
  for (int at = 0; at < SOUND_RATE / 10 * out->video->n_frame; at += n) {
    require (av_frame_make_writable (frame) == 0, "no memory for sound");
    memset (frame->data[0], 0, (size_t)n * 2);
    frame->pts = at + (int64_t)out->video->start_ms * SOUND_RATE / 1000;
    encode (out, out->sound_codec, out->sound, frame);
  }
  encode (out, out->sound_codec, out->sound, NULL);
  av_frame_free (&frame);
}

static void
make (const char *folder, const Video *video)
{
  Output out = {.video = video};
  AVDictionary *options = NULL;
  char path[4096];

  snprintf (path, sizeof path, "%s/%s", folder, video->name);
  require (avformat_alloc_output_context2 (&out.file, NULL, video->muxer, path) >= 0, path);
  if (video->codec != NULL && !add_pictures (&out)) {
    avformat_free_context (out.file);
    return;
  }
  if (video->has_sound)
    add_sound (&out);
  require (avio_open (&out.file->pb, path, AVIO_FLAG_WRITE) >= 0, path);
  if (video->movflags != NULL)
    av_dict_set (&options, "movflags", video->movflags, 0);
  require (avformat_write_header (out.file, &options) >= 0, path);
  av_dict_free (&options);
  if (video->has_sound)
    write_sound (&out);
  if (video->codec != NULL)
    write_pictures (&out);
  require (av_write_trailer (out.file) >= 0, path);
  avio_closep (&out.file->pb);
  avcodec_free_context (&out.codec);
  avcodec_free_context (&out.sound_codec);
  avformat_free_context (out.file);
}

int
main (int argc, char **argv)
{
  require (argc == 2, "usage: make-videos FOLDER");
  av_log_set_level (AV_LOG_ERROR);
  for (size_t i = 0; i < sizeof videos / sizeof videos[0]; i++)
    make (argv[1], &videos[i]);
  return 0;
}

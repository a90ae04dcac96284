/* ks-camera-loader.c - one picture from a Video4Linux camera (inside the worker).
 * Talking to the device needs calls that the filter takes away, so the data of one picture is
 * fetched before it: into memory, without looking at them.  Decoding them, which is where hostile
 * data does harm, comes behind it.  Pictures before the last are thrown away: cameras need about a
 * second to find the light.  Source: docs/adr/0016-camera-without-libavdevice.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-output.h"
#include "media/ks-loader.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavutil/cpu.h>
#include <libavutil/imgutils.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define N_BUFFER 4
#define N_PICTURE 20 /* the last of them is taken */
#define WAIT_MS 10000
#define WIDTH_PX 1280 /* asked for; the camera answers with what it can */
#define HEIGHT_PX 720
#define MAX_BYTES (64u << 20)

typedef struct {
  guint32 camera;
  enum AVCodecID codec; /* NONE: pixels as they are */
  enum AVPixelFormat pixels;
} Coding;

/* What cameras speak, best first: compressed is larger at the same speed of the cable. */
static const Coding codings[] = {
    {V4L2_PIX_FMT_MJPEG, AV_CODEC_ID_MJPEG, AV_PIX_FMT_NONE},
    {V4L2_PIX_FMT_JPEG, AV_CODEC_ID_MJPEG, AV_PIX_FMT_NONE},
    {V4L2_PIX_FMT_YUYV, AV_CODEC_ID_NONE, AV_PIX_FMT_YUYV422},
    {V4L2_PIX_FMT_UYVY, AV_CODEC_ID_NONE, AV_PIX_FMT_UYVY422},
    {V4L2_PIX_FMT_NV12, AV_CODEC_ID_NONE, AV_PIX_FMT_NV12},
    {V4L2_PIX_FMT_YUV420, AV_CODEC_ID_NONE, AV_PIX_FMT_YUV420P},
    {V4L2_PIX_FMT_RGB24, AV_CODEC_ID_NONE, AV_PIX_FMT_RGB24},
    {V4L2_PIX_FMT_BGR24, AV_CODEC_ID_NONE, AV_PIX_FMT_BGR24},
    {V4L2_PIX_FMT_GREY, AV_CODEC_ID_NONE, AV_PIX_FMT_GRAY8},
};

typedef struct {
  const Coding *coding;
  guint32 width_px, height_px, stride;
  guint8 *data; /* one picture, with FFmpeg's padding behind it */
  gsize n;
} Shot;

static void
ask (int fd, unsigned long what, void *value)
{
  int code;

  do
    code = ioctl (fd, what, value);
  while (code < 0 && errno == EINTR);
  if (code < 0)
    ks_answer_fault (KS_WIRE_FAULT_CAMERA, (guint32)errno, 0);
}

static gboolean
offers (int fd, guint32 coding)
{
  struct v4l2_fmtdesc format = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};

  for (; format.index < 64 && ioctl (fd, VIDIOC_ENUM_FMT, &format) == 0; format.index++)
    if (format.pixelformat == coding)
      return TRUE;
  return FALSE;
}

static void
choose_format (int fd, Shot *shot)
{
  struct v4l2_format format = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
  struct v4l2_capability able = {0};
  guint32 can;

  ask (fd, VIDIOC_QUERYCAP, &able);
  can = (able.capabilities & V4L2_CAP_DEVICE_CAPS) != 0 ? able.device_caps : able.capabilities;
  if ((can & V4L2_CAP_VIDEO_CAPTURE) == 0 || (can & V4L2_CAP_STREAMING) == 0)
    ks_answer_fault (KS_WIRE_FAULT_CAMERA, ENOTSUP, 0);
  for (guint i = 0; i < G_N_ELEMENTS (codings) && shot->coding == NULL; i++)
    if (offers (fd, codings[i].camera))
      shot->coding = &codings[i];
  if (shot->coding == NULL)
    ks_answer_fault (KS_WIRE_FAULT_CAMERA, ENOTSUP, 0);
  format.fmt.pix.pixelformat = shot->coding->camera;
  format.fmt.pix.width = WIDTH_PX;
  format.fmt.pix.height = HEIGHT_PX;
  format.fmt.pix.field = V4L2_FIELD_ANY;
  ask (fd, VIDIOC_S_FMT, &format);
  if (format.fmt.pix.pixelformat != shot->coding->camera)
    ks_answer_fault (KS_WIRE_FAULT_CAMERA, ENOTSUP, 0);
  shot->width_px = format.fmt.pix.width;
  shot->height_px = format.fmt.pix.height;
  shot->stride = format.fmt.pix.bytesperline;
  if (shot->width_px == 0 || shot->height_px == 0 || shot->width_px > KS_WIRE_MAX_SIDE_PX ||
      shot->height_px > KS_WIRE_MAX_SIDE_PX)
    ks_answer_fault (KS_WIRE_FAULT_PIXELS, shot->width_px, shot->height_px);
}

typedef struct {
  const guint8 *data;
  gsize n;
} Buffer;

/* Maps the device's buffers and lends them to it. */
static guint
map_buffers (int fd, Buffer *buffers)
{
  struct v4l2_requestbuffers wish = {
      .count = N_BUFFER, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};

  ask (fd, VIDIOC_REQBUFS, &wish);
  if (wish.count == 0)
    ks_answer_fault (KS_WIRE_FAULT_CAMERA, ENOMEM, 0);
  wish.count = MIN (wish.count, N_BUFFER);
  for (guint i = 0; i < wish.count; i++) {
    struct v4l2_buffer buffer = {.index = i, .type = wish.type, .memory = wish.memory};
    void *data;

    ask (fd, VIDIOC_QUERYBUF, &buffer);
    data =
        mmap (NULL, buffer.length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)buffer.m.offset);
    if (data == MAP_FAILED)
      ks_answer_fault (KS_WIRE_FAULT_CAMERA, (guint32)errno, 0);
    buffers[i] = (Buffer){data, buffer.length};
    ask (fd, VIDIOC_QBUF, &buffer);
  }
  return wish.count;
}

/* Copies a filled buffer: the device may write into its own again. */
static void
keep (Shot *shot, const Buffer *buffer, gsize n)
{
  if (n == 0 || n > buffer->n || n > MAX_BYTES)
    return;
  g_free (shot->data);
  shot->data = g_try_malloc0 (n + AV_INPUT_BUFFER_PADDING_SIZE);
  if (shot->data == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  memcpy (shot->data, buffer->data, n);
  shot->n = n;
}

static void
take_pictures (int fd, Shot *shot)
{
  enum v4l2_buf_type type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  gint64 end_us = g_get_monotonic_time () + WAIT_MS * G_GINT64_CONSTANT (1000);
  Buffer buffers[N_BUFFER];
  guint n_buffer = map_buffers (fd, buffers);

  ask (fd, VIDIOC_STREAMON, &type);
  for (guint i = 0; i < N_PICTURE;) {
    struct v4l2_buffer buffer = {.type = type, .memory = V4L2_MEMORY_MMAP};
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    gint64 left_us = end_us - g_get_monotonic_time ();

    if (left_us <= 0 || poll (&wait, 1, (int)(left_us / 1000 + 1)) == 0)
      break;
    if (ioctl (fd, VIDIOC_DQBUF, &buffer) < 0) {
      if (errno == EAGAIN || errno == EINTR)
        continue;
      break;
    }
    if (buffer.index < n_buffer && (buffer.flags & V4L2_BUF_FLAG_ERROR) == 0)
      keep (shot, &buffers[buffer.index], buffer.bytesused);
    i++;
    if (ioctl (fd, VIDIOC_QBUF, &buffer) < 0)
      break;
  }
  (void)ioctl (fd, VIDIOC_STREAMOFF, &type); /* the light goes out */
  if (shot->data == NULL)
    ks_answer_fault (KS_WIRE_FAULT_CAMERA, ETIMEDOUT, 0);
}

static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  Shot *shot = g_new0 (Shot, 1);

  av_log_set_level (AV_LOG_QUIET);
  (void)av_get_cpu_flags ();
  choose_format (job->fd, shot);
  take_pictures (job->fd, shot);
  *job->state = shot;
}

static void
decode (const Shot *shot, AVFrame *frame)
{
  const AVCodec *codec = avcodec_find_decoder (shot->coding->codec);
  AVCodecContext *context = codec != NULL ? avcodec_alloc_context3 (codec) : NULL;
  AVPacket *packet = av_packet_alloc ();

  if (context == NULL || packet == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  context->thread_count = 1;
  packet->data = shot->data;
  packet->size = (int)shot->n;
  packet->flags = AV_PKT_FLAG_KEY;
  if (avcodec_open2 (context, codec, NULL) != 0 || avcodec_send_packet (context, packet) != 0 ||
      avcodec_receive_frame (context, frame) != 0 || frame->width <= 0 || frame->height <= 0)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
}

/* The pixels where they lie, when there are enough of them. */
static void
point_at_pixels (const Shot *shot, AVFrame *frame)
{
  int n, natural;

  frame->format = shot->coding->pixels;
  frame->width = (int)shot->width_px;
  frame->height = (int)shot->height_px;
  n = av_image_fill_arrays (frame->data, frame->linesize, shot->data, frame->format, frame->width,
                            frame->height, 1);
  natural = frame->linesize[0];
  /* Rows of formats in one plane may be longer than their pixels. */
  if (n > 0 && frame->data[1] == NULL && shot->stride > (guint32)natural) {
    frame->linesize[0] = (int)MIN (shot->stride, MAX_BYTES);
    n = (int)MIN ((guint64)frame->linesize[0] * (shot->height_px - 1) + (guint32)natural, G_MAXINT);
  }
  if (n <= 0 || (gsize)n > shot->n)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
}

static void
run (const KsLoaderJob *job)
{
  KsWireAnswer sizes = {.what = KS_WIRE_IMAGE};
  const Shot *shot = *job->state;
  AVFrame *frame = av_frame_alloc ();
  guint8 *pixels;

  if (frame == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  if (shot->coding->codec != AV_CODEC_ID_NONE)
    decode (shot, frame);
  else
    point_at_pixels (shot, frame);
  pixels = ks_image_make_pixels (frame, job->request->max_side_px, 1, &sizes);
  ks_answer_pixels (&sizes, pixels);
}

const KsLoader KS_LOADER_SYMBOL = {prepare, run, FALSE};

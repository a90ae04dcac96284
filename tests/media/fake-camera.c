/* fake-camera.c - the system's calls about a camera, answered by a file.
 * Linked into a copy of the worker, whose own ioctl() is found before the C library's.  The file
 * stands for the device: its first bytes name the coding (four letters), the size and a mode, its
 * second page is the first buffer.  What a driver would refuse is refused here. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096
#define BUFFER_BYTES (64 * PAGE)

typedef struct {
  uint32_t coding, width, height, stride, n_bytes, mode; /* mode: see test-camera.c */
  uint32_t n_queued, is_on, n_taken;                     /* what the driver knows */
} Camera;

int ioctl (int fd, unsigned long what, ...);

static int
refuse (int code)
{
  errno = code;
  return -1;
}

static int
enumerate (const Camera *camera, struct v4l2_fmtdesc *format)
{
  if (format->index == 0)
    format->pixelformat = v4l2_fourcc ('Q', 'Q', 'Q', 'Q'); /* nobody knows this one */
  else if (format->index == 1)
    format->pixelformat = camera->coding;
  else
    return refuse (EINVAL);
  return 0;
}

static int
take (Camera *camera, struct v4l2_buffer *buffer)
{
  if (!camera->is_on || camera->n_queued == 0 || camera->mode == 2)
    return refuse (EIO);
  camera->n_queued--;
  buffer->index = camera->mode == 3 ? 999 : 0;
  buffer->bytesused = camera->n_bytes;
  buffer->flags = camera->n_taken++ == 0 ? V4L2_BUF_FLAG_ERROR : 0; /* the first is often broken */
  return 0;
}

static int
answer (Camera *camera, unsigned long what, void *value)
{
  struct v4l2_capability *able = value;
  struct v4l2_format *format = value;
  struct v4l2_requestbuffers *wish = value;
  struct v4l2_buffer *buffer = value;

  switch (what) {
  case VIDIOC_QUERYCAP:
    able->capabilities = V4L2_CAP_DEVICE_CAPS | V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    able->device_caps = camera->mode == 1 ? V4L2_CAP_META_CAPTURE : able->capabilities;
    return 0;
  case VIDIOC_ENUM_FMT:
    return enumerate (camera, value);
  case VIDIOC_S_FMT:
    format->fmt.pix.width = camera->width;
    format->fmt.pix.height = camera->height;
    format->fmt.pix.bytesperline = camera->stride;
    return format->fmt.pix.pixelformat == camera->coding ? 0 : refuse (EINVAL);
  case VIDIOC_REQBUFS:
    wish->count = 1;
    return 0;
  case VIDIOC_QUERYBUF:
    buffer->length = BUFFER_BYTES;
    buffer->m.offset = PAGE;
    return 0;
  case VIDIOC_QBUF:
    camera->n_queued++;
    return 0;
  case VIDIOC_STREAMON:
    camera->is_on = 1;
    return 0;
  case VIDIOC_STREAMOFF:
    camera->is_on = 0;
    return 0;
  case VIDIOC_DQBUF:
    return take (camera, buffer);
  default:
    return refuse (ENOTTY);
  }
}

int
ioctl (int fd, unsigned long what, ...)
{
  Camera camera;
  va_list rest;
  void *value;
  int code;

  va_start (rest, what);
  value = va_arg (rest, void *);
  va_end (rest);
  if (pread (fd, &camera, sizeof camera, 0) != (ssize_t)sizeof camera)
    return refuse (ENOTTY);
  code = answer (&camera, what, value);
  return pwrite (fd, &camera, sizeof camera, 0) == (ssize_t)sizeof camera ? code : refuse (EIO);
}

/* ks-worker-wire.c - see ks-worker-wire.h.
 * A packet is a fixed list of little-endian numbers behind a magic number and a type; each parser
 * reads them through one cursor and checks ranges at the end. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-worker-wire.h"

#include "media/ks-media.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAGIC 0x3151534bu /* "KSQ1" */
#define ANSWER_MAGIC 0x3141534bu  /* "KSA1" */
#define MAX_MEMORY_BYTES (G_GUINT64_CONSTANT (1) << 40)
#define MAX_CPU_S 86400u
#define MAX_FDS 4

typedef struct {
  const guint8 *data;
  gsize n, at;
  gboolean ok;
} Cursor;

static void
put (guint8 *out, gsize *at, guint64 value, guint n)
{
  for (guint i = 0; i < n; i++)
    out[(*at)++] = (guint8)(value >> (8 * i));
}

static guint64
take (Cursor *cursor, guint n)
{
  guint64 value = 0;

  if (cursor->n - cursor->at < n) {
    cursor->ok = FALSE;
    return 0;
  }
  for (guint i = 0; i < n; i++)
    value |= (guint64)cursor->data[cursor->at++] << (8 * i);
  return value;
}

static guint32
take32 (Cursor *cursor)
{
  return (guint32)take (cursor, 4);
}

gsize
ks_wire_build_request (const KsWireRequest *request, guint8 *out)
{
  gsize at = 0, n_password = strlen (request->password);

  put (out, &at, REQUEST_MAGIC, 4);
  put (out, &at, (guint32)request->operation, 4);
  put (out, &at, request->page, 4);
  put (out, &at, request->max_side_px, 4);
  put (out, &at, request->cpu_s, 4);
  put (out, &at, n_password, 4);
  put (out, &at, request->memory_bytes, 8);
  put (out, &at, (guint32)request->sampling.mode, 4);
  put (out, &at, request->sampling.n_frames, 4);
  put (out, &at, (guint64)request->sampling.interval_us, 8);
  put (out, &at, request->sampling.cut_permille, 4);
  put (out, &at, (guint64)request->sampling.begin_us, 8);
  put (out, &at, (guint64)request->sampling.end_us, 8);
  memcpy (out + at, request->password, n_password);
  return at + n_password;
}

static gboolean
is_same_sampling (const KsMediaSampling *a, const KsMediaSampling *b)
{
  return a->mode == b->mode && a->n_frames == b->n_frames && a->interval_us == b->interval_us &&
         a->cut_permille == b->cut_permille && a->begin_us == b->begin_us && a->end_us == b->end_us;
}

static gint64
take_time (Cursor *cursor)
{
  guint64 time = take (cursor, 8);

  if (time > (guint64)KS_MEDIA_MAX_TIME_US)
    cursor->ok = FALSE;
  return (gint64)time;
}

/* Of FRAMES only; a wish is acceptable when putting it into its ranges changes nothing. */
static gboolean
take_sampling (Cursor *cursor, KsWireOperation operation, KsMediaSampling *out)
{
  static const KsMediaSampling none;
  KsMediaSampling wish = {.mode = (KsMediaSamplingMode)take32 (cursor)}, clamped;

  wish.n_frames = take32 (cursor);
  wish.interval_us = take_time (cursor);
  wish.cut_permille = take32 (cursor);
  wish.begin_us = take_time (cursor);
  wish.end_us = take_time (cursor);
  *out = wish;
  if (operation != KS_WIRE_FRAMES)
    return is_same_sampling (&wish, &none);
  clamped = ks_sampling_clamp (&wish);
  return wish.mode >= KS_MEDIA_SAMPLE_COUNT && wish.mode <= KS_MEDIA_SAMPLE_SCENES &&
         is_same_sampling (&wish, &clamped);
}

gboolean
ks_wire_parse_request (const guint8 *data, gsize n, guint n_fd, KsWireRequest *out)
{
  Cursor c = {data, n, 0, TRUE};
  guint32 magic = take32 (&c), operation = take32 (&c), n_password;
  gboolean fits;

  memset (out, 0, sizeof *out);
  out->page = take32 (&c);
  out->max_side_px = take32 (&c);
  out->cpu_s = take32 (&c);
  n_password = take32 (&c);
  out->memory_bytes = take (&c, 8);
  fits = take_sampling (&c, (KsWireOperation)operation, &out->sampling);
  if (!c.ok || !fits || magic != REQUEST_MAGIC || n_fd != 1)
    return FALSE;
  if (operation < KS_WIRE_LOAD || operation > KS_WIRE_SCAN_TEXT)
    return FALSE;
  out->operation = (KsWireOperation)operation;
  if (operation != KS_WIRE_RENDER ? out->page != 0 : out->page >= KS_WIRE_MAX_PAGES)
    return FALSE;
  if (out->max_side_px == 0 || out->max_side_px > KS_WIRE_MAX_SIDE_PX || out->cpu_s == 0 ||
      out->cpu_s > MAX_CPU_S || out->memory_bytes == 0 || out->memory_bytes > MAX_MEMORY_BYTES)
    return FALSE;
  if (n_password > KS_WIRE_MAX_PASSWORD || n_password != n - c.at)
    return FALSE;
  if (memchr (data + c.at, 0, n_password) != NULL)
    return FALSE;
  memcpy (out->password, data + c.at, n_password);
  return TRUE;
}

gsize
ks_wire_build_answer (const KsWireAnswer *answer, guint8 *out)
{
  gsize at = 0;

  put (out, &at, ANSWER_MAGIC, 4);
  put (out, &at, (guint32)answer->type, 4);
  switch (answer->type) {
  case KS_WIRE_PROGRESS:
    put (out, &at, answer->n_done, 4);
    put (out, &at, answer->n_total, 4);
    break;
  case KS_WIRE_ANSWER_FAULT:
    put (out, &at, (guint32)answer->fault, 4);
    put (out, &at, answer->a, 4);
    put (out, &at, answer->b, 4);
    break;
  case KS_WIRE_ANSWER_TEXT:
    put (out, &at, (guint32)answer->what, 4);
    put (out, &at, answer->warnings, 4);
    put (out, &at, answer->n_pages, 4);
    put (out, &at, answer->n_pages_without_text, 4);
    put (out, &at, answer->n_pictures, 4);
    put (out, &at, answer->confidence, 4);
    put (out, &at, answer->n_left_out, 4);
    put (out, &at, answer->n_bytes, 8);
    memcpy (out + at, answer->encoding, sizeof answer->encoding);
    at += sizeof answer->encoding;
    break;
  case KS_WIRE_ANSWER_PIXELS:
    put (out, &at, (guint32)answer->what, 4);
    put (out, &at, answer->warnings, 4);
    put (out, &at, answer->width_px, 4);
    put (out, &at, answer->height_px, 4);
    put (out, &at, answer->full_width_px, 4);
    put (out, &at, answer->full_height_px, 4);
    put (out, &at, answer->index, 4);
    put (out, &at, (guint64)answer->time_us, 8);
    put (out, &at, answer->n_bytes, 8);
    break;
  case KS_WIRE_ANSWER_VIDEO:
    put (out, &at, answer->warnings, 4);
    put (out, &at, answer->full_width_px, 4);
    put (out, &at, answer->full_height_px, 4);
    put (out, &at, (guint64)answer->duration_us, 8);
    put (out, &at, answer->n_frames, 4);
    put (out, &at, answer->has_sound ? 1 : 0, 4);
    break;
  case KS_WIRE_ANSWER_PART:
    put (out, &at, answer->n_bytes, 8);
    break;
  case KS_WIRE_DONE:
    break;
  }
  return at;
}

/* Letters, digits, '-' and '_', then zeros to the end. */
static gboolean
is_encoding (const char *name, gsize n)
{
  gsize n_name = strnlen (name, n);

  if (n_name == n)
    return FALSE;
  for (gsize i = 0; i < n_name; i++)
    if (!g_ascii_isalnum (name[i]) && name[i] != '-' && name[i] != '_')
      return FALSE;
  for (gsize i = n_name; i < n; i++)
    if (name[i] != '\0')
      return FALSE;
  return TRUE;
}

/* Each kind of text has facts of its own, and none of another's. */
static gboolean
has_right_facts (const KsWireAnswer *text)
{
  gboolean is_scan = text->what == KS_WIRE_SCAN, is_pdf = text->what == KS_WIRE_PDF;

  if (text->what == KS_WIRE_TEXT ? text->encoding[0] == '\0' : text->encoding[0] != '\0')
    return FALSE;
  if (is_pdf ? text->n_pages == 0 : text->n_pages != 0)
    return FALSE;
  if (text->n_pictures > (text->what == KS_WIRE_DOCUMENT ? KS_WIRE_MAX_PAGES : 0))
    return FALSE;
  if (text->confidence > (is_scan ? 100 : 0) || (text->n_left_out > 0 && !is_scan))
    return FALSE;
  return is_scan || is_pdf || text->what == KS_WIRE_TEXT || text->what == KS_WIRE_DOCUMENT;
}

static gboolean
take_text (Cursor *c, KsWireAnswer *out)
{
  out->what = (KsWireWhat)take32 (c);
  out->warnings = take32 (c);
  out->n_pages = take32 (c);
  out->n_pages_without_text = take32 (c);
  out->n_pictures = take32 (c);
  out->confidence = take32 (c);
  out->n_left_out = take32 (c);
  out->n_bytes = take (c, 8);
  if (c->n - c->at < sizeof out->encoding)
    return FALSE;
  memcpy (out->encoding, c->data + c->at, sizeof out->encoding);
  c->at += sizeof out->encoding;
  return is_encoding (out->encoding, sizeof out->encoding) && out->warnings <= KS_WIRE_WARN_ALL &&
         out->n_bytes <= KS_MEDIA_MAX_TEXT_BYTES && out->n_pages <= KS_WIRE_MAX_PAGES &&
         out->n_pages_without_text <= out->n_pages && has_right_facts (out);
}

static gboolean
take_pixels (Cursor *c, KsWireAnswer *out)
{
  out->what = (KsWireWhat)take32 (c);
  out->warnings = take32 (c);
  out->width_px = take32 (c);
  out->height_px = take32 (c);
  out->full_width_px = take32 (c);
  out->full_height_px = take32 (c);
  out->index = take32 (c);
  out->time_us = take_time (c);
  out->n_bytes = take (c, 8);
  if (out->what == KS_WIRE_VIDEO ? out->index >= KS_MEDIA_MAX_FRAMES
                                 : out->index != 0 || out->time_us != 0)
    return FALSE;
  return (out->what == KS_WIRE_PDF || out->what == KS_WIRE_IMAGE || out->what == KS_WIRE_VIDEO) &&
         out->warnings <= KS_WIRE_WARN_ALL && out->width_px > 0 && out->height_px > 0 &&
         out->width_px <= KS_WIRE_MAX_SIDE_PX && out->height_px <= KS_WIRE_MAX_SIDE_PX &&
         out->full_width_px >= out->width_px && out->full_height_px >= out->height_px &&
         out->full_width_px <= G_MAXINT && out->full_height_px <= G_MAXINT &&
         out->n_bytes == 4ull * out->width_px * out->height_px;
}

static gboolean
take_video (Cursor *c, KsWireAnswer *out)
{
  guint32 has_sound;

  out->warnings = take32 (c);
  out->full_width_px = take32 (c);
  out->full_height_px = take32 (c);
  out->duration_us = take_time (c);
  out->n_frames = take32 (c);
  has_sound = take32 (c);
  out->has_sound = has_sound == 1;
  return out->warnings <= KS_WIRE_WARN_ALL && out->full_width_px > 0 && out->full_height_px > 0 &&
         out->full_width_px <= G_MAXINT && out->full_height_px <= G_MAXINT && out->n_frames > 0 &&
         has_sound <= 1;
}

gboolean
ks_wire_parse_answer (const guint8 *data, gsize n, guint n_fd, KsWireAnswer *out)
{
  Cursor c = {data, n, 0, TRUE};
  guint32 magic = take32 (&c), type = take32 (&c);
  gboolean fits;

  memset (out, 0, sizeof *out);
  if (magic != ANSWER_MAGIC)
    return FALSE;
  out->type = (KsWireType)type;
  switch (type) {
  case KS_WIRE_PROGRESS:
    out->n_done = take32 (&c);
    out->n_total = take32 (&c);
    fits = out->n_done <= out->n_total && out->n_total <= KS_WIRE_MAX_PAGES;
    break;
  case KS_WIRE_ANSWER_FAULT:
    out->fault = (KsWireFault)take32 (&c);
    out->a = take32 (&c);
    out->b = take32 (&c);
    fits = out->fault >= KS_WIRE_FAULT_READ && out->fault <= KS_WIRE_FAULT_LAST;
    break;
  case KS_WIRE_ANSWER_TEXT:
    fits = take_text (&c, out);
    break;
  case KS_WIRE_ANSWER_PIXELS:
    fits = take_pixels (&c, out);
    break;
  case KS_WIRE_ANSWER_VIDEO:
    fits = take_video (&c, out);
    break;
  case KS_WIRE_ANSWER_PART:
    out->n_bytes = take (&c, 8);
    fits = out->n_bytes > 0 && out->n_bytes <= KS_WIRE_MAX_PART_BYTES;
    break;
  case KS_WIRE_DONE:
    fits = TRUE;
    break;
  default:
    return FALSE;
  }
  return fits && c.ok && c.at == n &&
         n_fd == (type == KS_WIRE_ANSWER_TEXT || type == KS_WIRE_ANSWER_PIXELS ||
                  type == KS_WIRE_ANSWER_PART);
}

gboolean
ks_wire_send (int socket_fd, const guint8 *data, gsize n, int fd)
{
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE (sizeof (int))];
  } control;
  struct iovec part = {.iov_base = (void *)data, .iov_len = n};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  ssize_t sent;

  if (fd >= 0) {
    memset (&control, 0, sizeof control);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN (sizeof fd);
    memcpy (CMSG_DATA (&control.header), &fd, sizeof fd);
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
  }
  do
    sent = sendmsg (socket_fd, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == (ssize_t)n;
}

/* Takes the descriptors out of the packet's control part; all but a single one are closed. */
static void
take_descriptors (struct msghdr *message, int *out_fd, guint *out_n_fd)
{
  int fds[MAX_FDS];
  guint n_fd = 0;

  for (struct cmsghdr *h = CMSG_FIRSTHDR (message); h != NULL; h = CMSG_NXTHDR (message, h)) {
    gsize n_bytes = h->cmsg_len - CMSG_LEN (0);

    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
      continue;
    for (gsize at = 0; at + sizeof (int) <= n_bytes && n_fd < MAX_FDS; at += sizeof (int))
      memcpy (&fds[n_fd++], CMSG_DATA (h) + at, sizeof (int));
  }
  *out_fd = n_fd == 1 && (message->msg_flags & MSG_CTRUNC) == 0 ? fds[0] : -1;
  for (guint i = 0; i < n_fd; i++)
    if (fds[i] != *out_fd)
      close (fds[i]);
  *out_n_fd = (message->msg_flags & MSG_CTRUNC) != 0 ? MAX_FDS : n_fd;
}

gssize
ks_wire_receive (int socket_fd, guint8 *data, int *out_fd, guint *out_n_fd)
{
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE (MAX_FDS * sizeof (int))];
  } control;
  struct iovec part = {.iov_base = data, .iov_len = KS_WIRE_MAX_BYTES};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t n;

  *out_fd = -1;
  *out_n_fd = 0;
  do
    n = recvmsg (socket_fd, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < 0)
    return -1;
  take_descriptors (&message, out_fd, out_n_fd);
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    if (*out_fd >= 0)
      close (*out_fd);
    *out_fd = -1;
    errno = EMSGSIZE;
    return -1;
  }
  return n;
}

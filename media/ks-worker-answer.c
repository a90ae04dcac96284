/* ks-worker-answer.c - see ks-loader.h: what the worker says, and reading of the file. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-loader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static void
send_answer (const KsWireAnswer *answer, int fd)
{
  guint8 data[KS_WIRE_MAX_BYTES];
  gsize n = ks_wire_build_answer (answer, data);

  if (!ks_wire_send (KS_WIRE_SOCKET_FD, data, n, fd))
    ks_worker_end (1); /* the program is gone: nobody is there to be told */
}

void
ks_answer_progress (guint n_done, guint n_total)
{
  KsWireAnswer answer = {.type = KS_WIRE_PROGRESS, .n_done = n_done, .n_total = n_total};

  send_answer (&answer, -1);
}

void
ks_answer_fault (KsWireFault fault, guint32 a, guint32 b)
{
  KsWireAnswer answer = {.type = KS_WIRE_ANSWER_FAULT, .fault = fault, .a = a, .b = b};

  send_answer (&answer, -1);
  ks_worker_end (0);
}

void
ks_answer_done (void)
{
  KsWireAnswer answer = {.type = KS_WIRE_DONE};

  send_answer (&answer, -1);
  ks_worker_end (0);
}

/* A sealed memfd with these bytes; without room for them the file is too large. */
static int
make_sealed (const void *data, gsize n)
{
  int fd = memfd_create ("keepsake-result", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const guint8 *bytes = data;
  gsize at = 0;

  while (fd >= 0 && at < n) {
    ssize_t written = write (fd, bytes + at, n - at);

    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      break;
    at += (gsize)written;
  }
  if (fd < 0 || at < n || fcntl (fd, F_ADD_SEALS, SEALS) != 0)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  return fd;
}

void
ks_answer_text (const KsWireAnswer *facts, const char *text)
{
  KsWireAnswer answer = *facts;
  int fd = make_sealed (text, (gsize)answer.n_bytes);

  answer.type = KS_WIRE_ANSWER_TEXT;
  send_answer (&answer, fd);
  close (fd);
}

void
ks_answer_video (const KsWireAnswer *facts)
{
  KsWireAnswer answer = *facts;

  answer.type = KS_WIRE_ANSWER_VIDEO;
  send_answer (&answer, -1);
}

void
ks_answer_part (GBytes *bytes)
{
  KsWireAnswer answer = {.type = KS_WIRE_ANSWER_PART};
  gsize n = 0;
  const guint8 *data = g_bytes_get_data (bytes, &n);
  int fd;

  if (n == 0 || n > KS_WIRE_MAX_PART_BYTES)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  answer.n_bytes = n;
  fd = make_sealed (data, n);
  send_answer (&answer, fd);
  close (fd);
}

void
ks_loader_guard_line (GString *text, gsize begin)
{
  static const char *const ours[] = {"[page ", "[picture", "[slide ", "[text "};

  for (gsize i = 0; i < G_N_ELEMENTS (ours); i++)
    if (strncmp (text->str + begin, ours[i], strlen (ours[i])) == 0) {
      g_string_insert_c (text, (gssize)begin, ' ');
      return;
    }
}

void
ks_answer_pixels (const KsWireAnswer *sizes, const guint8 *pixels)
{
  KsWireAnswer answer = *sizes;
  int fd;

  answer.type = KS_WIRE_ANSWER_PIXELS;
  answer.n_bytes = 4ull * answer.width_px * answer.height_px;
  fd = make_sealed (pixels, (gsize)answer.n_bytes);
  send_answer (&answer, fd);
  close (fd);
}

guint8 *
ks_loader_read (const KsLoaderJob *job, guint64 max_bytes, KsWireFault too_large, gsize *out_n)
{
  gsize room = 65536, at = 0;
  guint8 *data;

  if (job->n_bytes > max_bytes)
    ks_answer_fault (too_large, 0, 0);
  if (job->n_bytes + 1 > room)
    room = (gsize)job->n_bytes + 1;
  data = g_try_malloc (room);
  while (data != NULL) {
    ssize_t n = pread (job->fd, data + at, room - at, (off_t)at);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      ks_answer_fault (KS_WIRE_FAULT_READ, (guint32)errno, 0);
    at += (gsize)n;
    if (n == 0) {
      *out_n = at;
      return data;
    }
    if (at > max_bytes)
      ks_answer_fault (too_large, 0, 0);
    if (at == room) {
      guint8 *grown = g_try_realloc (data, room *= 2);

      if (grown == NULL)
        break;
      data = grown;
    }
  }
  ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
}

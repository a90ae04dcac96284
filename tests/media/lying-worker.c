/* lying-worker.c - a worker that breaks the rules in the way that its file names.
 * Started by the program in place of the real one: whatever it does, the program must refuse. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-worker-wire.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const KsWireAnswer good_text = {
    .type = KS_WIRE_ANSWER_TEXT, .what = KS_WIRE_TEXT, .n_bytes = 5, .encoding = "UTF-8"};
static const KsWireAnswer good_pixels = {.type = KS_WIRE_ANSWER_PIXELS,
                                         .what = KS_WIRE_IMAGE,
                                         .width_px = 2,
                                         .height_px = 2,
                                         .full_width_px = 2,
                                         .full_height_px = 2,
                                         .n_bytes = 16};
static const KsWireAnswer good_video = {.type = KS_WIRE_ANSWER_VIDEO,
                                        .full_width_px = 2,
                                        .full_height_px = 2,
                                        .duration_us = 3,
                                        .n_frames = 3};
static const KsWireAnswer done = {.type = KS_WIRE_DONE};

static void
rest (long milliseconds)
{
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};

  nanosleep (&time, NULL);
}

static void
send_answer (const KsWireAnswer *answer, int fd)
{
  guint8 data[KS_WIRE_MAX_BYTES];

  ks_wire_send (KS_WIRE_SOCKET_FD, data, ks_wire_build_answer (answer, data), fd);
}

static int
make_memfd (const char *data, gsize n, int seals)
{
  int fd = memfd_create ("lie", MFD_ALLOW_SEALING);

  if (write (fd, data, n) != (ssize_t)n || fcntl (fd, F_ADD_SEALS, seals) != 0)
    _exit (9);
  return fd;
}

/* The sizes of base, the bytes of data, and the end. */
static void
tell (const KsWireAnswer *base, const char *data, gsize n, int seals)
{
  send_answer (base, make_memfd (data, n, seals));
  send_answer (&done, -1);
}

static void
tell_text (const char *mode)
{
  KsWireAnswer text = good_text;

  if (g_str_equal (mode, "text-not-sealed"))
    tell (&text, "hello", 5, 0);
  else if (g_str_equal (mode, "text-may-shrink"))
    tell (&text, "hello", 5, F_SEAL_GROW | F_SEAL_WRITE);
  else if (g_str_equal (mode, "text-may-change"))
    tell (&text, "hello", 5, F_SEAL_GROW | F_SEAL_SHRINK);
  else if (g_str_equal (mode, "text-short"))
    tell (&text, "hell", 4, SEALS);
  else if (g_str_equal (mode, "text-long"))
    tell (&text, "hello!", 6, SEALS);
  else if (g_str_equal (mode, "text-not-utf8"))
    tell (&text, "he\xffio", 5, SEALS);
  else if (g_str_equal (mode, "text-with-nul"))
    tell (&text, "he\0lo", 5, SEALS);
  else if (g_str_equal (mode, "text-endless"))
    text.n_bytes = G_MAXUINT64, tell (&text, "hello", 5, SEALS);
  else if (g_str_equal (mode, "text-encoding"))
    memcpy (text.encoding, "\x1b[31m", 6), tell (&text, "hello", 5, SEALS);
  else if (g_str_equal (mode, "text-pages"))
    text.n_pages_without_text = 1, tell (&text, "hello", 5, SEALS);
  else if (g_str_equal (mode, "text-warnings"))
    text.warnings = 1u << 31, tell (&text, "hello", 5, SEALS);
  else if (g_str_equal (mode, "text-no-descriptor"))
    send_answer (&text, -1);
  else if (g_str_equal (mode, "text-device"))
    send_answer (&text, open ("/dev/zero", O_RDONLY));
  else if (g_str_equal (mode, "text-socket"))
    send_answer (&text, KS_WIRE_SOCKET_FD);
  else if (g_str_equal (mode, "text-twice"))
    send_answer (&text, make_memfd ("hello", 5, SEALS)), tell (&text, "hello", 5, SEALS);
}

static void
tell_pixels (const char *mode)
{
  static const char room[64];
  KsWireAnswer pixels = good_pixels, text = good_text;

  if (g_str_equal (mode, "pixels-short"))
    tell (&pixels, room, 15, SEALS);
  else if (g_str_equal (mode, "pixels-not-sealed"))
    tell (&pixels, room, 16, 0);
  else if (g_str_equal (mode, "pixels-wide"))
    pixels.width_px = 1u << 31, tell (&pixels, room, 16, SEALS);
  else if (g_str_equal (mode, "pixels-none"))
    pixels.width_px = 0, pixels.n_bytes = 0, tell (&pixels, room, 0, SEALS);
  else if (g_str_equal (mode, "pixels-over-asked"))
    pixels.width_px = pixels.full_width_px = 2049, pixels.height_px = pixels.full_height_px = 1,
    pixels.n_bytes = 4 * 2049, tell (&pixels, room, 16, SEALS);
  else if (g_str_equal (mode, "pixels-after-text"))
    send_answer (&text, make_memfd ("hello", 5, SEALS)), tell (&pixels, room, 16, SEALS);
  else if (g_str_equal (mode, "pixels-of-page"))
    pixels.what = KS_WIRE_PDF, tell (&pixels, room, 16, SEALS);
}

/* Facts, then pictures with these numbers and times, then the end. */
static void
tell_frames (guint n_facts, guint n, const guint32 *numbers, const gint64 *times_us)
{
  static const char room[16];
  KsWireAnswer frame = good_pixels;

  for (guint i = 0; i < n_facts; i++)
    send_answer (&good_video, -1);
  frame.what = KS_WIRE_VIDEO;
  for (guint i = 0; i < n; i++) {
    frame.index = numbers[i];
    frame.time_us = times_us[i];
    send_answer (&frame, make_memfd (room, sizeof room, SEALS));
  }
  send_answer (&done, -1);
}

static void
tell_video (const char *mode)
{
  static const guint32 ordered[] = {0, 1, 2}, skipping[] = {0, 2};
  static const gint64 later[] = {0, 1, 2}, back[] = {5, 5};

  if (g_str_equal (mode, "video-honest"))
    tell_frames (1, 2, ordered, later);
  else if (g_str_equal (mode, "video-no-facts"))
    tell_frames (0, 1, ordered, later);
  else if (g_str_equal (mode, "video-facts-twice"))
    tell_frames (2, 1, ordered, later);
  else if (g_str_equal (mode, "video-nothing"))
    tell_frames (1, 0, ordered, later);
  else if (g_str_equal (mode, "video-skips"))
    tell_frames (1, 2, skipping, later);
  else if (g_str_equal (mode, "video-goes-back"))
    tell_frames (1, 2, ordered, back);
  else if (g_str_equal (mode, "video-too-many"))
    tell_frames (1, 3, ordered, later);
  else if (g_str_equal (mode, "video-as-picture"))
    send_answer (&good_video, -1), tell (&good_pixels, "0123456789abcdef", 16, SEALS);
  else if (g_str_equal (mode, "video-with-text"))
    send_answer (&good_video, -1), tell (&good_text, "hello", 5, SEALS);
}

static void
tell_packets (const char *mode)
{
  static const guint8 zeros[4 * KS_WIRE_MAX_BYTES];
  KsWireAnswer answer = {.type = KS_WIRE_PROGRESS, .n_done = 5, .n_total = 4};
  guint8 data[KS_WIRE_MAX_BYTES];
  gsize n = ks_wire_build_answer (&good_text, data);

  if (g_str_equal (mode, "packet-zeros"))
    ks_wire_send (KS_WIRE_SOCKET_FD, zeros, 64, -1);
  else if (g_str_equal (mode, "packet-long"))
    send (KS_WIRE_SOCKET_FD, zeros, sizeof zeros, 0);
  else if (g_str_equal (mode, "packet-cut"))
    ks_wire_send (KS_WIRE_SOCKET_FD, data, n - 1, make_memfd ("hello", 5, SEALS));
  else if (g_str_equal (mode, "packet-padded"))
    data[n] = 0, ks_wire_send (KS_WIRE_SOCKET_FD, data, n + 1, make_memfd ("hello", 5, SEALS));
  else if (g_str_equal (mode, "progress-over"))
    send_answer (&answer, -1);
  else if (g_str_equal (mode, "progress-with-file"))
    answer.n_done = 1, send_answer (&answer, make_memfd ("hello", 5, SEALS));
  else if (g_str_equal (mode, "done-without-result"))
    send_answer (&done, -1);
  else if (g_str_equal (mode, "fault-unknown"))
    answer = (KsWireAnswer){.type = KS_WIRE_ANSWER_FAULT, .fault = 99}, send_answer (&answer, -1);
}

/* Three descriptors in one packet: none may stay open in the program. */
static void
tell_many_files (void)
{
  guint8 data[KS_WIRE_MAX_BYTES];
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE (3 * sizeof (int))];
  } control = {.header = {.cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS,
                          .cmsg_len = CMSG_LEN (3 * sizeof (int))}};
  struct iovec part = {.iov_base = data, .iov_len = ks_wire_build_answer (&good_text, data)};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  int fds[3];

  for (guint i = 0; i < 3; i++)
    fds[i] = make_memfd ("hello", 5, SEALS);
  memcpy (CMSG_DATA (&control.header), fds, sizeof fds);
  sendmsg (KS_WIRE_SOCKET_FD, &message, 0);
}

/* Not lies, but ends and silences. */
static void
act (const char *mode)
{
  KsWireAnswer pdf = good_text, progress = {.type = KS_WIRE_PROGRESS, .n_done = 1, .n_total = 2};

  if (g_str_equal (mode, "segv"))
    raise (SIGSEGV);
  if (g_str_equal (mode, "sleep"))
    send_answer (&progress, -1), rest (60 * 1000);
  for (guint i = 0; i < 1000 && g_str_equal (mode, "chatter"); i++)
    send_answer (&progress, -1), rest (20);
  if (g_str_equal (mode, "close-and-stay"))
    close (KS_WIRE_SOCKET_FD), rest (60 * 1000);
  if (g_str_equal (mode, "text-then-end")) {
    pdf.what = KS_WIRE_PDF;
    pdf.n_pages = 1;
    memset (pdf.encoding, 0, sizeof pdf.encoding);
    send_answer (&pdf, make_memfd ("hello", 5, SEALS));
  }
  if (g_str_equal (mode, "honest"))
    tell (&good_text, "hello", 5, SEALS);
}

int
main (void)
{
  guint8 data[KS_WIRE_MAX_BYTES];
  char mode[64] = "";
  KsWireRequest request;
  guint n_fd;
  int fd;
  gssize n = ks_wire_receive (KS_WIRE_SOCKET_FD, data, &fd, &n_fd);

  if (n <= 0 || !ks_wire_parse_request (data, (gsize)n, n_fd, &request) ||
      pread (fd, mode, sizeof mode - 1, 0) < 0)
    return 8;
  tell_text (mode);
  tell_pixels (mode);
  tell_video (mode);
  tell_packets (mode);
  if (g_str_equal (mode, "many-files"))
    tell_many_files ();
  act (mode);
  return 0;
}

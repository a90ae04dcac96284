/* hostile-module.c - a decoder that has been taken over: a module for the real worker which tries
 * to reach outside.  Answers with a picture: one grey pixel a try, its value the errno, 0 = it was
 * possible. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-loader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define N_TRY 8

static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
}

static guint8
get_code (long result)
{
  return result < 0 ? (guint8)errno : 0;
}

static void
run (const KsLoaderJob *job)
{
  KsWireAnswer sizes = {.what = KS_WIRE_IMAGE,
                        .width_px = N_TRY,
                        .height_px = 1,
                        .full_width_px = N_TRY,
                        .full_height_px = 1};
  guint8 pixels[4 * N_TRY], codes[N_TRY];
  char *const args[] = {(char *)"true", NULL};

  codes[0] = get_code (socket (AF_INET, SOCK_STREAM, 0));
  codes[1] = get_code (socket (AF_UNIX, SOCK_STREAM, 0));
  codes[2] = get_code (open ("/tmp/keepsake-hostile", O_WRONLY | O_CREAT, 0600));
  codes[3] = get_code (open ("/etc/passwd", O_RDONLY));
  codes[4] = get_code (execv ("/bin/true", args));
  codes[5] = get_code (syscall (SYS_clone, SIGCHLD, 0, 0, 0, 0));
  codes[6] = mmap (NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0) == MAP_FAILED
                 ? (guint8)errno
                 : 0;
  codes[7] = get_code (write (job->fd, "changed", 7));
  for (guint i = 0; i < N_TRY; i++) {
    pixels[4 * i] = pixels[4 * i + 1] = pixels[4 * i + 2] = codes[i];
    pixels[4 * i + 3] = 255;
  }
  ks_answer_pixels (&sizes, pixels);
}

const KsLoader KS_LOADER_SYMBOL = {prepare, run, FALSE};

/* spinning-worker.c - a worker that confines itself and then computes for ever. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-loader.h"
#include "media/ks-worker-sandbox.h"

#include <unistd.h>

void
ks_worker_end (int code)
{
  _exit (code);
}

int
main (void)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new ();
  volatile guint64 n_turn = 0;
  guint8 data[KS_WIRE_MAX_BYTES];
  KsWireRequest request;
  KsWireStep step;
  guint n_fd;
  int fd;
  gssize n = ks_wire_receive (KS_WIRE_SOCKET_FD, data, &fd, &n_fd);

  if (n <= 0 || !ks_wire_parse_request (data, (gsize)n, n_fd, &request) ||
      ks_sandbox_limit (&request) != 0 || ks_sandbox_confine (paths, FALSE, &step) != 0)
    return 8;
  for (;;)
    n_turn++;
}

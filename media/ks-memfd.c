/* ks-memfd.c - see ks-memfd.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static gboolean
write_all (int fd, GBytes *bytes)
{
  gsize n = 0;
  const guint8 *data = g_bytes_get_data (bytes, &n);

  while (n > 0) {
    ssize_t written = write (fd, data, n);

    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return FALSE;
    data += written;
    n -= (gsize)written;
  }
  return TRUE;
}

int
ks_memfd_new (GBytes *const *parts, guint n_part)
{
  int fd = memfd_create ("keepsake-attachment", MFD_CLOEXEC | MFD_ALLOW_SEALING), code;
  gboolean ok = fd >= 0;

  for (guint i = 0; i < n_part && ok; i++)
    ok = write_all (fd, parts[i]);
  if (ok && lseek (fd, 0, SEEK_SET) == 0 && fcntl (fd, F_ADD_SEALS, SEALS) == 0)
    return fd;
  code = errno;
  if (fd >= 0)
    close (fd);
  errno = code;
  return -1;
}

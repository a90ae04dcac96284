/* reader.c - the bounded cursor and the guarded mapping.
 * The guard: a process-wide SIGBUS handler, installed with the first mapping, looks the address up
 * in a fixed table of mappings, puts a zero page where the file's page is gone and marks the
 * mapping lost, so that the reading thread goes on with zeros and finds out at its next check.  Any
 * other SIGBUS goes to the handler that was there before. The table is the one mutable global of
 * the engine: a signal handler has no argument to carry it. It is lock-free because the handler may
 * interrupt any thread anywhere. Threads: slots are claimed and released by atomics; a mapping must
 * outlive its readers. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/reader.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_SLOT 256 /* mappings at one time; a model is rarely in more than ten parts */

enum { SLOT_FREE, SLOT_CLAIMED, SLOT_LIVE };

typedef struct map_slot {
  atomic_int state;
  atomic_uintptr_t begin, end;
  atomic_bool is_lost;
} map_slot;

struct ks_map {
  unsigned char *data;
  size_t n_bytes;
  int fd;
  map_slot *slot;
  char *path;
};

static map_slot slots[N_SLOT];
static struct sigaction previous_action;
static uintptr_t page_bytes;
static pthread_once_t guard_once = PTHREAD_ONCE_INIT;

void
ks_reader_init(ks_reader *r, const void *data, size_t n_bytes)
{
  *r = (ks_reader){.data = data, .n_bytes = n_bytes};
}

size_t
ks_reader_left(const ks_reader *r)
{
  return r->n_bytes - r->pos;
}

bool
ks_reader_bytes(ks_reader *r, uint64_t n, const unsigned char **out)
{
  if (n > ks_reader_left(r))
    return false;
  *out = r->data + r->pos;
  r->pos += (size_t)n;
  return true;
}

bool
ks_reader_skip(ks_reader *r, uint64_t n)
{
  const unsigned char *ignored;

  return ks_reader_bytes(r, n, &ignored);
}

/* Assembled from bytes: right on any byte order and at any alignment. */
static bool
read_le(ks_reader *r, unsigned n, uint64_t *out)
{
  const unsigned char *p;
  uint64_t value = 0;

  if (!ks_reader_bytes(r, n, &p))
    return false;
  for (unsigned i = 0; i < n; i++)
    value |= (uint64_t)p[i] << (8 * i);
  *out = value;
  return true;
}

bool
ks_reader_u8(ks_reader *r, uint8_t *out)
{
  uint64_t value;

  if (!read_le(r, 1, &value))
    return false;
  *out = (uint8_t)value;
  return true;
}

bool
ks_reader_u16(ks_reader *r, uint16_t *out)
{
  uint64_t value;

  if (!read_le(r, 2, &value))
    return false;
  *out = (uint16_t)value;
  return true;
}

bool
ks_reader_u32(ks_reader *r, uint32_t *out)
{
  uint64_t value;

  if (!read_le(r, 4, &value))
    return false;
  *out = (uint32_t)value;
  return true;
}

bool
ks_reader_u64(ks_reader *r, uint64_t *out)
{
  return read_le(r, 8, out);
}

static map_slot *
find_slot(uintptr_t address)
{
  for (size_t i = 0; i < N_SLOT; i++)
    if (atomic_load(&slots[i].state) == SLOT_LIVE && address >= atomic_load(&slots[i].begin) &&
        address < atomic_load(&slots[i].end))
      return &slots[i];
  return NULL;
}

/* Not ours: hand on to the earlier handler, or to the system's default, which ends the process. */
static void
chain_signal(int number, siginfo_t *info, void *context)
{
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(number, info, context);
  } else if (previous_action.sa_handler == SIG_DFL || previous_action.sa_handler == SIG_IGN) {
    struct sigaction fallback = {.sa_handler = SIG_DFL};

    sigaction(number, &fallback, NULL);
    raise(number); /* blocked here, delivered on return */
  } else {
    previous_action.sa_handler(number);
  }
}

static void
guard_signal_cb(int number, siginfo_t *info, void *context)
{
  int saved_errno = errno;
  uintptr_t address = (uintptr_t)info->si_addr;
  map_slot *slot = info->si_code > 0 ? find_slot(address) : NULL; /* <= 0: sent by a process */

  if (slot != NULL) {
    void *page = (void *)(address - address % page_bytes);

    atomic_store(&slot->is_lost, true);
    if (mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
      slot = NULL;
  }
  if (slot == NULL)
    chain_signal(number, info, context);
  errno = saved_errno;
}

static void
install_guard(void)
{
  struct sigaction action = {.sa_sigaction = guard_signal_cb,
                             .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

  page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &previous_action);
}

static map_slot *
claim_slot(const void *data, size_t n_bytes)
{
  for (size_t i = 0; i < N_SLOT; i++) {
    int expected = SLOT_FREE;

    if (!atomic_compare_exchange_strong(&slots[i].state, &expected, SLOT_CLAIMED))
      continue;
    atomic_store(&slots[i].begin, (uintptr_t)data);
    atomic_store(&slots[i].end, (uintptr_t)data + n_bytes);
    atomic_store(&slots[i].is_lost, false);
    atomic_store(&slots[i].state, SLOT_LIVE);
    return &slots[i];
  }
  return NULL;
}

/* Opens without following a FIFO into a wait, and tells the size of a regular file. */
static ks_status
open_regular(const char *path, int *out_fd, size_t *out_bytes, ks_error *err)
{
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ks_status status = KS_OK;

  if (fd < 0)
    return ks_fail(err, KS_ERR_IO, "cannot open %s: %s", path, strerror(errno));
  if (fstat(fd, &st) != 0)
    status = ks_fail(err, KS_ERR_IO, "cannot read %s: %s", path, strerror(errno));
  else if (!S_ISREG(st.st_mode))
    status = ks_fail(err, KS_ERR_FORMAT, "%s is not a regular file", path);
  else if (st.st_size <= 0)
    status = ks_fail(err, KS_ERR_FORMAT, "%s is empty", path);
  else if ((uintmax_t)st.st_size > SIZE_MAX / 2)
    status = ks_fail(err, KS_ERR_UNSUPPORTED, "%s is too large for this machine", path);
  if (status != KS_OK) {
    close(fd);
    return status;
  }
  *out_fd = fd;
  *out_bytes = (size_t)st.st_size;
  return KS_OK;
}

ks_status
ks_map_open(ks_alloc *a, const char *path, ks_map **out, ks_error *err)
{
  ks_map *map = ks_mem_new(a, KS_MEM_HOST, 1, sizeof(*map));
  ks_status status;
  void *data;

  if (map == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory to open %s", path);
  map->fd = -1;
  map->path = ks_mem_dup_str(a, KS_MEM_HOST, path, strlen(path));
  if (map->path == NULL) {
    status = ks_fail(err, KS_ERR_NOMEM, "no memory to open %s", path);
    goto out;
  }
  status = open_regular(path, &map->fd, &map->n_bytes, err);
  if (status != KS_OK)
    goto out;
  data = mmap(NULL, map->n_bytes, PROT_READ, MAP_PRIVATE, map->fd, 0);
  if (data == MAP_FAILED) {
    status = ks_fail(err, errno == ENOMEM ? KS_ERR_NOMEM : KS_ERR_IO, "cannot map %s: %s", path,
                     strerror(errno));
    goto out;
  }
  map->data = data;
  pthread_once(&guard_once, install_guard);
  map->slot = claim_slot(data, map->n_bytes);
  if (map->slot == NULL)
    status = ks_fail(err, KS_ERR_NOMEM, "cannot open %s: %d files are open already", path, N_SLOT);
out:
  if (status != KS_OK) {
    ks_map_close(map);
    return status;
  }
  *out = map;
  return KS_OK;
}

void
ks_map_close(ks_map *map)
{
  if (map == NULL)
    return;
  if (map->slot != NULL)
    atomic_store(&map->slot->state, SLOT_FREE);
  if (map->data != NULL)
    munmap(map->data, map->n_bytes);
  if (map->fd >= 0)
    close(map->fd);
  ks_mem_free(map->path);
  ks_mem_free(map);
}

const unsigned char *
ks_map_get_data(const ks_map *map)
{
  return map->data;
}

size_t
ks_map_get_size(const ks_map *map)
{
  return map->n_bytes;
}

const char *
ks_map_get_path(const ks_map *map)
{
  return map->path;
}

void
ks_map_drop_pages(const ks_map *map, size_t offset, size_t n_bytes)
{
  const size_t begin = (offset + page_bytes - 1) / page_bytes * page_bytes;
  const size_t end = (offset + n_bytes) / page_bytes * page_bytes;

  assert(offset <= map->n_bytes && n_bytes <= map->n_bytes - offset);
  /* A refusal costs memory only. */
  if (begin < end)
    (void)madvise(map->data + begin, end - begin, MADV_DONTNEED);
}

bool
ks_map_is_lost(const ks_map *map)
{
  struct stat st;

  /* The rest of the last page reads as zeros without a signal, so the size is asked as well. */
  if (!atomic_load(&map->slot->is_lost) &&
      (fstat(map->fd, &st) != 0 || st.st_size < 0 || (uintmax_t)st.st_size < map->n_bytes))
    atomic_store(&map->slot->is_lost, true);
  return atomic_load(&map->slot->is_lost);
}

/* fake-backend.h - the part of a backend that the page pool uses, on anonymous memory.
 * For tests of the pool alone: counts what is committed, records moves, can refuse a commit or a
 * move. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/backend.h"

#include <string.h>
#include <sys/mman.h>

struct ks_dev {
  size_t n_committed; /* bytes */
  uint32_t n_move, n_drop;
  bool fail_commit, fail_move;
};

static ks_status
fake_range_new(ks_dev *dev, size_t n_bytes, ks_dptr *out, ks_error *err)
{
  void *p = mmap(NULL, n_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  (void)dev;
  if (p == MAP_FAILED)
    return ks_fail(err, KS_ERR_NOMEM, "no address space");
  *out = (ks_dptr)(uintptr_t)p;
  return KS_OK;
}

static ks_status
fake_range_commit(ks_dev *dev, ks_dptr range, size_t offset, size_t n_bytes, ks_error *err)
{
  if (dev->fail_commit)
    return ks_fail(err, KS_ERR_NOMEM, "commit refused");
  dev->n_committed += n_bytes;
  if (mprotect((char *)(uintptr_t)range + offset, n_bytes, PROT_READ | PROT_WRITE) != 0)
    return ks_fail(err, KS_ERR_NOMEM, "commit failed");
  return KS_OK;
}

static void
fake_range_drop(ks_dev *dev, ks_dptr range, size_t offset, size_t n_bytes)
{
  char *p = (char *)(uintptr_t)range + offset;

  dev->n_committed -= n_bytes;
  dev->n_drop++;
  if (madvise(p, n_bytes, MADV_DONTNEED) != 0 || mprotect(p, n_bytes, PROT_NONE) != 0)
    dev->n_drop = UINT32_MAX / 2; /* shows in the tests */
}

static void
fake_range_free(ks_dev *dev, ks_dptr range, size_t n_bytes)
{
  (void)dev;
  munmap((void *)(uintptr_t)range, n_bytes);
}

static ks_status
fake_kv_move_page(ks_dev *dev, const ks_kv_view *kv, uint32_t dst_page, uint32_t src_page,
                  ks_error *err)
{
  const size_t size = kv->layout->page_bytes;
  char *base = (char *)(uintptr_t)kv->base;

  if (dev->fail_move)
    return ks_fail(err, KS_ERR_LOST, "move refused");
  memcpy(base + dst_page * size, base + src_page * size, size);
  dev->n_move++;
  return KS_OK;
}

static const ks_backend_table fake_table = {
    .abi = KS_BACKEND_ABI,
    .size = sizeof(ks_backend_table),
    .name = "fake",
    .range_new = fake_range_new,
    .range_commit = fake_range_commit,
    .range_drop = fake_range_drop,
    .range_free = fake_range_free,
    .kv_move_page = fake_kv_move_page,
};

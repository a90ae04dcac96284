/* fuzz-snapshot.c - any bytes as the kept state of a conversation: taken over, or refused with a
 * sentence and the timeline whole; the same once more with its sums made right.  What was taken
 * over can go on. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/snapshot-timeline.h"
#include "tests/unit/snapshot-seal.h"

static void
require(bool promise)
{
  if (!promise)
    abort();
}

/* Opened with the first input and kept: a model costs more than an input does. */
static snapshot_bench *
get_bench(void)
{
  static snapshot_bench bench;

  if (bench.tl == NULL)
    require(snapshot_bench_open(&bench, KS_DTYPE_F16, 1));
  return &bench;
}

static void
try(snapshot_bench *b, const uint8_t *data, size_t n)
{
  static const ks_token next[3] = {7, 8, 9};
  ks_error err = {.text = ""};
  ks_snapshot snap;
  ks_status st = ks_snapshot_open(data, n, NULL, &snap, &err);

  if (st == KS_OK)
    st = ks_snapshot_read(b->tl, &snap, &err);
  require(st == KS_OK || err.text[0] != '\0');
  require(ks_timeline_check(b->tl));
  if (st == KS_OK && ks_timeline_eval(b->tl, next, 3, NULL, NULL) == KS_OK)
    require(ks_timeline_check(b->tl));
  ks_timeline_reset(b->tl);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  snapshot_bench *b = get_bench();
  uint8_t *sealed = malloc(n + 1);

  if (sealed == NULL)
    return 0;
  try(b, data, n);
  memcpy(sealed, data, n);
  seal_snapshot(sealed, n);
  try(b, sealed, n);
  free(sealed);
  return 0;
}

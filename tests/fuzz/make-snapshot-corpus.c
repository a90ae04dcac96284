/* make-snapshot-corpus.c - writes the seeds of corpus/snapshot into the folder named as its
 * argument: a conversation that has forgotten something, with f32 keys, and one with f16 keys and a
 * pin. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/fuzz/snapshot-timeline.h"

static bool
write_bytes(void *user, const void *data, size_t n_bytes)
{
  return fwrite(data, 1, n_bytes, user) == n_bytes;
}

static bool
write_seed(const char *folder, const char *name, ks_dtype kv_dtype, bool pinned)
{
  const ks_snapshot_params params = {.with_logits = pinned, .notes = "notes", .n_notes = 5};
  snapshot_bench b;
  ks_token ids[24];
  char path[4096];
  FILE *file;

  if (!snapshot_bench_open(&b, kv_dtype, pinned ? 1 : 0))
    return false;
  for (ks_token i = 0; i < 24; i++)
    ids[i] = 4 + i;
  if ((pinned && ks_timeline_pin(b.tl, 2, 4, NULL) != KS_OK) ||
      ks_timeline_eval(b.tl, ids, 24, NULL, NULL) != KS_OK)
    return false;
  snprintf(path, sizeof path, "%s/%s.bin", folder, name);
  file = fopen(path, "wb");
  return file != NULL && ks_snapshot_write(b.tl, &params, write_bytes, file, NULL) == KS_OK &&
         fclose(file) == 0;
}

int
main(int argc, char **argv)
{
  if (argc != 2 || !write_seed(argv[1], "f32", KS_DTYPE_F32, false) ||
      !write_seed(argv[1], "f16-pinned", KS_DTYPE_F16, true)) {
    fprintf(stderr, "usage: make-snapshot-corpus FOLDER\n");
    return 2;
  }
  return 0;
}

/* make-vision-corpus.c - writes the seeds of corpus/vision, whole tiny towers, into the folder
 * named as its argument. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/unit/tiny-tower.h"

#include <stdlib.h>

static void
write_tower(ks_alloc *a, const char *folder, const tower_spec *spec)
{
  unsigned char *bytes = NULL;
  size_t n = 0;
  char path[4096];
  FILE *f;

  snprintf(path, sizeof path, "%s/%s.gguf", folder, spec->projector);
  if (!tower_new_bytes(a, spec, &bytes, &n) || (f = fopen(path, "wb")) == NULL ||
      fwrite(bytes, 1, n, f) != n || fclose(f) != 0) {
    fprintf(stderr, "%s cannot be written\n", path);
    exit(1);
  }
  ks_mem_free(bytes);
}

int
main(int argc, char **argv)
{
  static const char *const projectors[] = {"idefics3", "mlp", "gemma3", "qwen2.5vl_merger",
                                           "qwen3vl_merger"};
  ks_alloc *a = ks_alloc_new();
  tower_spec spec = {.n_embd = 8,
                     .n_ff = 12,
                     .n_head = 2,
                     .n_layer = 1,
                     .patch = 2,
                     .tile = 8,
                     .n_out = 8,
                     .type = KS_DTYPE_F32};

  if (argc != 2 || a == NULL) {
    fprintf(stderr, "usage: make-vision-corpus FOLDER\n");
    return 2;
  }
  for (size_t i = 0; i < sizeof projectors / sizeof projectors[0]; i++) {
    spec.projector = projectors[i];
    spec.merge = tower_is(&spec, "mlp") ? 1 : tower_is(&spec, "gemma3") ? 4 : 2;
    write_tower(a, argv[1], &spec);
  }
  ks_alloc_free(a);
  return 0;
}

/* fuzz-safetensors.c - any bytes as a safetensors file: opened or refused, and read when opened. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/safetensors.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>

static void
require(bool promise)
{
  if (!promise)
    abort();
}

static void
walk_tensor(ks_alloc *a, const ks_safetensors *st, const ks_st_tensor *t)
{
  size_t n_elem = t->n_bytes / ks_dtype_get_info((uint32_t)t->dtype)->block_bytes;
  float *values = ks_mem_new(a, KS_MEM_HOST, n_elem, sizeof(*values));
  ks_error err;

  require(values != NULL && ks_safetensors_find(st, t->name) == t);
  if (ks_safetensors_read_f32(st, t, values, n_elem, &err) == KS_OK)
    for (size_t i = 0; i < n_elem; i++)
      require(isfinite(values[i]));
  ks_mem_free(values);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  ks_alloc *a = ks_alloc_new();
  ks_safetensors *st = NULL;
  ks_error err;

  if (a == NULL)
    return 0;
  if (ks_safetensors_open_bytes(a, data, n, &st, &err) == KS_OK) {
    for (size_t i = 0; i < ks_safetensors_get_n(st); i++)
      walk_tensor(a, st, ks_safetensors_get(st, i));
    (void)ks_safetensors_get_metadata(st, "base_model");
    ks_safetensors_close(st);
  } else {
    require(st == NULL && err.text[0] != '\0');
  }
  require(ks_alloc_get_bytes(a, KS_MEM_HOST) == 0);
  ks_alloc_free(a);
  return 0;
}

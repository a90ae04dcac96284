/* fuzz-gguf.c - any bytes as a GGUF file: opened or refused, and everything that opens is walked:
 * all keys by every accessor, all strings, and the first and last block of each tensor. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gguf.h"
#include "engine/quant.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* A read that the compiler may not drop. */
static volatile unsigned sink;

static void
require(bool promise)
{
  if (!promise)
    abort();
}

static void
walk_strings(const ks_gguf_key *key)
{
  ks_gguf_str s;
  size_t cursor = 0;
  uint64_t n = 0;

  while (ks_gguf_key_next_str(key, &cursor, &s)) {
    if (s.n_bytes > 0)
      sink += (unsigned char)s.data[0] + (unsigned char)s.data[s.n_bytes - 1];
    n++;
  }
  require(key->type != KS_GGUF_ARRAY || key->elem_type != KS_GGUF_STRING || n == key->n_elem);
}

static void
walk_key(const ks_gguf *g, const ks_gguf_key *key)
{
  char name[64];
  int64_t i64;
  double f64;
  uint64_t u64;
  float f32;
  bool flag;
  ks_gguf_str s;

  for (size_t i = 0; i < key->n_value_bytes; i++)
    sink += key->value[i];
  sink += ks_gguf_key_get_i64(key, key->n_elem - 1, &i64);
  sink += ks_gguf_key_get_f64(key, key->n_elem - 1, &f64);
  require(!ks_gguf_key_get_i64(key, key->n_elem, &i64));
  walk_strings(key);
  if (key->name.n_bytes >= sizeof name || memchr(key->name.data, 0, key->name.n_bytes) != NULL)
    return;
  memcpy(name, key->name.data, key->name.n_bytes);
  name[key->name.n_bytes] = '\0';
  require(ks_gguf_find_key(g, name) == key);
  sink += ks_gguf_get_u64(g, name, &u64) + ks_gguf_get_f32(g, name, &f32);
  sink += ks_gguf_get_bool(g, name, &flag) + ks_gguf_get_str(g, name, &s);
}

static void
walk_tensor(const ks_gguf *g, const ks_gguf_tensor *t)
{
  const ks_dtype_info *info = ks_dtype_get_info((uint32_t)t->dtype);
  float block[256];

  require(info != NULL && ks_gguf_find_tensor(g, t->name) == t);
  require(t->n_bytes >= info->block_bytes);
  ks_dequantise_row(t->dtype, t->data, block, info->block_elems);
  ks_dequantise_row(t->dtype, t->data + t->n_bytes - info->block_bytes, block, info->block_elems);
  sink += block[0] > 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  ks_alloc *a = ks_alloc_new();
  ks_gguf *g = NULL;
  ks_error err;

  if (a == NULL)
    return 0;
  if (ks_gguf_open_bytes(a, data, n, &g, &err) == KS_OK) {
    for (size_t i = 0; i < ks_gguf_get_n_keys(g); i++)
      walk_key(g, ks_gguf_get_key(g, i));
    for (size_t i = 0; i < ks_gguf_get_n_tensors(g); i++)
      walk_tensor(g, ks_gguf_get_tensor(g, i));
    ks_gguf_close(g);
  } else {
    require(g == NULL && err.text[0] != '\0');
  }
  require(ks_alloc_get_bytes(a, KS_MEM_HOST) == 0);
  ks_alloc_free(a);
  return 0;
}

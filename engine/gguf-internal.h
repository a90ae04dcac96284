/* gguf-internal.h - between gguf.c (file, parts, tensors) and gguf-key.c (keys and their values).
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/gguf.h"

KS_BEGIN_DECLS

/* One file as it was read; the tensors of all parts end up in ks_gguf. */
typedef struct ks_gguf_part {
  ks_map *map; /* NULL: bytes of the caller */
  const unsigned char *data;
  size_t n_bytes;
  uint32_t version;
  ks_gguf_key *keys;
  uint32_t *key_order; /* indices of keys, sorted by name */
  size_t n_keys;
  ks_gguf_tensor *tensors;
  size_t n_tensors;
} ks_gguf_part;

/* Reads n_keys keys at r into part->keys and part->key_order; what it allocated stays in part, on
 * failure too.  Errors: KS_ERR_FORMAT, KS_ERR_UNSUPPORTED, KS_ERR_NOMEM. */
KS_CHECK ks_status ks_gguf_read_keys(ks_alloc *a, ks_gguf_part *part, ks_reader *r, uint64_t n_keys,
                                     ks_error *err);
const ks_gguf_key *ks_gguf_part_find_key(const ks_gguf_part *part, const char *name);
/* Value of an integer key that is not negative; false when absent or of another kind. */
KS_CHECK bool ks_gguf_part_get_u64(const ks_gguf_part *part, const char *name, uint64_t *out);

/* Reads u64 length and bytes. */
KS_CHECK bool ks_gguf_read_str(ks_reader *r, ks_gguf_str *out);
/* Byte order, then length: <0, 0, >0. */
int ks_gguf_str_compare(ks_gguf_str a, ks_gguf_str b);

/* Name number i of the list that ks_gguf_sort works on. */
typedef ks_gguf_str (*ks_gguf_name_fn)(const void *list, uint32_t i);
/* Fills order [n] with 0..n-1 sorted by name: in place, n log n whatever the file holds (a hash
 * table could be flooded).  Returns the index of a name that occurs twice, else n. */
uint32_t ks_gguf_sort(const void *list, ks_gguf_name_fn get_name, uint32_t *order, uint32_t n);
/* Index of the name, or n. */
uint32_t ks_gguf_search(const void *list, ks_gguf_name_fn get_name, const uint32_t *order,
                        uint32_t n, const char *name);

KS_END_DECLS

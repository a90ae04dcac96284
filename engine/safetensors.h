/* safetensors.h - reader and writer of the safetensors container, used for retention gates.
 * Safe against hostile files: header length, offsets, overlaps and shapes are checked, JSON depth
 * is bounded.  The only engine file that uses cJSON.  Source: docs/formats/gate.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/dtype.h"
#include "engine/reader.h"

KS_BEGIN_DECLS

typedef struct ks_st_tensor {
  const char *name; /* NUL-terminated, owned by the file */
  ks_dtype dtype;   /* F32, F16 or BF16 */
  uint32_t n_dims;
  uint64_t shape[4]; /* slowest first, as in the file */
  const unsigned char *data;
  size_t n_bytes;
} ks_st_tensor;

typedef struct ks_safetensors ks_safetensors;

KS_CHECK ks_status ks_safetensors_open(ks_alloc *a, const char *path, ks_safetensors **out,
                                       ks_error *err);
KS_CHECK ks_status ks_safetensors_open_bytes(ks_alloc *a, const void *data, size_t n_bytes,
                                             ks_safetensors **out, ks_error *err);
void ks_safetensors_close(ks_safetensors *st); /* NULL is allowed */
size_t ks_safetensors_get_n(const ks_safetensors *st);
const ks_st_tensor *ks_safetensors_get(const ks_safetensors *st, size_t i);
const ks_st_tensor *ks_safetensors_find(const ks_safetensors *st, const char *name);
/* Value of a key of __metadata__, or NULL. */
const char *ks_safetensors_get_metadata(const ks_safetensors *st, const char *key);
/* Copies a tensor as f32 into dst [n_elem]; refuses NaN and Inf with KS_ERR_FORMAT. */
KS_CHECK ks_status ks_safetensors_read_f32(const ks_safetensors *st, const ks_st_tensor *tensor,
                                           float *dst, size_t n_elem, ks_error *err);

/* Writes n f32 tensors and a flat metadata list (key, value, key, value, ..., NULL; may be NULL) to
 * path through a temporary file beside it and a rename. */
KS_CHECK ks_status ks_safetensors_write(ks_alloc *a, const char *path, const ks_st_tensor *tensors,
                                        size_t n, const char *const *metadata, ks_error *err);

KS_END_DECLS

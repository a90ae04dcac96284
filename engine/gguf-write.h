/* gguf-write.h - writer of small GGUF files, for tests, fuzz seeds and tiny models.
 * Not a converter: everything is kept in memory.
 * Failures are sticky: the add functions return nothing, the finishing ones report.
 * Threads: a writer belongs to one thread.  Source: docs/formats/gguf.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/gguf.h"

KS_BEGIN_DECLS

typedef struct ks_gguf_writer ks_gguf_writer;

/* NULL when there is no memory.  alignment 0 means the default of 32 without a key; any other value
 * is written as general.alignment and used, sensible or not (tests want bad ones too). */
ks_gguf_writer *ks_gguf_writer_new(ks_alloc *a, uint32_t alignment);
void ks_gguf_writer_free(ks_gguf_writer *w); /* NULL is allowed */

/* A scalar of a type of fixed size, from its bytes in memory (little-endian). */
void ks_gguf_writer_add(ks_gguf_writer *w, const char *name, ks_gguf_type type, const void *value);
void ks_gguf_writer_add_u32(ks_gguf_writer *w, const char *name, uint32_t value);
void ks_gguf_writer_add_f32(ks_gguf_writer *w, const char *name, float value);
void ks_gguf_writer_add_bool(ks_gguf_writer *w, const char *name, bool value);
void ks_gguf_writer_add_str(ks_gguf_writer *w, const char *name, const char *text);
/* n elements of a type of fixed size. */
void ks_gguf_writer_add_array(ks_gguf_writer *w, const char *name, ks_gguf_type elem_type,
                              const void *values, uint64_t n);
void ks_gguf_writer_add_str_array(ks_gguf_writer *w, const char *name, const char *const *texts,
                                  uint64_t n);
/* ne: fastest first.  The data (whole blocks of dtype) is borrowed until the writer is freed. */
void ks_gguf_writer_add_tensor(ks_gguf_writer *w, const char *name, ks_dtype dtype, uint32_t n_dims,
                               const uint64_t *ne, const void *data);

/* The whole file as bytes; the caller frees *out_bytes with ks_mem_free. */
KS_CHECK ks_status ks_gguf_writer_get_bytes(const ks_gguf_writer *w, unsigned char **out_bytes,
                                            size_t *out_n_bytes, ks_error *err);
KS_CHECK ks_status ks_gguf_writer_save(const ks_gguf_writer *w, const char *path, ks_error *err);
/* Writes PREFIX-00001-of-0000N.gguf and so on: keys in the first, tensors dealt out in order. */
KS_CHECK ks_status ks_gguf_writer_save_split(const ks_gguf_writer *w, const char *prefix,
                                             uint32_t n_parts, ks_error *err);

KS_END_DECLS

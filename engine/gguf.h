/* gguf.h - reader of GGUF v2 and v3 files, safe against hostile ones; the file stays mapped.
 * Not here: what the keys mean (model.h), tokenizer tables (tokenizer.h).
 * Invariant: every string, array and tensor handed out lies inside the mapping and was checked when
 * the file was opened.  Threads: read-only after open.  Source: docs/formats/gguf.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/dtype.h"
#include "engine/reader.h"

KS_BEGIN_DECLS

typedef enum ks_gguf_type {
  KS_GGUF_U8,
  KS_GGUF_I8,
  KS_GGUF_U16,
  KS_GGUF_I16,
  KS_GGUF_U32,
  KS_GGUF_I32,
  KS_GGUF_F32,
  KS_GGUF_BOOL,
  KS_GGUF_STRING,
  KS_GGUF_ARRAY,
  KS_GGUF_U64,
  KS_GGUF_I64,
  KS_GGUF_F64
} ks_gguf_type;

/* Bytes of the file; not NUL-terminated, may contain NULs. */
typedef struct ks_gguf_str {
  const char *data;
  size_t n_bytes;
} ks_gguf_str;

typedef struct ks_gguf_key {
  ks_gguf_str name;
  ks_gguf_type type;
  ks_gguf_type elem_type;     /* of an array */
  uint64_t n_elem;            /* of an array, else 1 */
  const unsigned char *value; /* raw little-endian bytes, any alignment; of a string its bytes; of a
                               * string array u64 length and bytes, one after the other */
  size_t n_value_bytes;
} ks_gguf_key;

typedef struct ks_gguf_tensor {
  char name[64]; /* NUL-terminated */
  ks_dtype dtype;
  uint32_t n_dims;
  uint64_t ne[4]; /* fastest first; unused ones are 1 */
  size_t row_bytes, n_bytes;
  const unsigned char *data; /* inside the mapping */
} ks_gguf_tensor;

typedef struct ks_gguf ks_gguf;

/* Opens path; if it is part 1 of a split file ("-00001-of-0000N.gguf") the other parts beside it
 * are opened too.  Errors: KS_ERR_IO; KS_ERR_FORMAT (cut, duplicate names, sizes that do not add
 * up); KS_ERR_UNSUPPORTED (version 1, an unknown tensor type, a missing part: the text names it).
 */
KS_CHECK ks_status ks_gguf_open(ks_alloc *a, const char *path, ks_gguf **out, ks_error *err);
/* The same on bytes in memory (borrowed, aligned to 8, must outlive the result); for tests and
 * fuzzing.  A split file is refused. */
KS_CHECK ks_status ks_gguf_open_bytes(ks_alloc *a, const void *data, size_t n_bytes, ks_gguf **out,
                                      ks_error *err);
void ks_gguf_close(ks_gguf *g); /* NULL is allowed */
/* KS_ERR_IO when a part was cut or its drive went away since it was opened, else KS_OK. */
KS_CHECK ks_status ks_gguf_check_alive(const ks_gguf *g, ks_error *err);

/* Gives the memory of a mapped file back for the whole pages inside n_bytes at data: the mapping
 * stays, a later read fetches them again.  What lies in no mapped file is left alone. */
void ks_gguf_drop_pages(const ks_gguf *g, const void *data, size_t n_bytes);

uint32_t ks_gguf_get_version(const ks_gguf *g);
size_t ks_gguf_get_n_keys(const ks_gguf *g);
const ks_gguf_key *ks_gguf_get_key(const ks_gguf *g, size_t i);
const ks_gguf_key *ks_gguf_find_key(const ks_gguf *g, const char *name); /* NULL when absent */
size_t ks_gguf_get_n_tensors(const ks_gguf *g);
const ks_gguf_tensor *ks_gguf_get_tensor(const ks_gguf *g, size_t i);
const ks_gguf_tensor *ks_gguf_find_tensor(const ks_gguf *g,
                                          const char *name); /* NULL when absent */
uint64_t ks_gguf_get_mapped_bytes(const ks_gguf *g);

/* Typed access.  Integers convert between all widths when the value fits, floats from f32 and f64.
 * Return false when the key is absent or of another kind; *out stays untouched. */
KS_CHECK bool ks_gguf_get_u64(const ks_gguf *g, const char *name, uint64_t *out);
KS_CHECK bool ks_gguf_get_u32(const ks_gguf *g, const char *name, uint32_t *out);
KS_CHECK bool ks_gguf_get_f32(const ks_gguf *g, const char *name, float *out);
KS_CHECK bool ks_gguf_get_bool(const ks_gguf *g, const char *name, bool *out);
KS_CHECK bool ks_gguf_get_str(const ks_gguf *g, const char *name, ks_gguf_str *out);
/* Element i of an array key, or of a scalar one with i = 0: integers and booleans as i64, f32 and
 * f64 as f64. */
KS_CHECK bool ks_gguf_key_get_i64(const ks_gguf_key *key, uint64_t i, int64_t *out);
KS_CHECK bool ks_gguf_key_get_f64(const ks_gguf_key *key, uint64_t i, double *out);
/* Walks a string array: call with *cursor = 0 first; false at the end.  O(1) a call.  Count to
 * n_elem as well: in a file that is cut while it is read, zeros can look like more strings than
 * that. */
KS_CHECK bool ks_gguf_key_next_str(const ks_gguf_key *key, size_t *cursor, ks_gguf_str *out);
bool ks_gguf_str_equal(ks_gguf_str s, const char *text);

KS_END_DECLS

/* gguf-write.c - see gguf-write.h.
 * Keys are serialised as they are added; the tensor list and the data are laid out when a file is
 * asked for, so that a split file can take a range of the tensors. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gguf-write.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct byte_list {
  ks_alloc *alloc;
  unsigned char *data;
  size_t n, capacity;
  bool failed;
} byte_list;

struct ks_gguf_writer {
  uint32_t alignment;
  byte_list keys;
  uint64_t n_keys;
  byte_list tensors; /* of ks_gguf_tensor */
};

static void
append(byte_list *list, const void *data, size_t n)
{
  size_t needed, capacity;
  unsigned char *grown;

  if (list->failed || n == 0)
    return;
  if (!ks_add_size(list->n, n, &needed) || needed > SIZE_MAX / 2) {
    list->failed = true;
    return;
  }
  if (needed > list->capacity) {
    capacity = needed > 128 ? 2 * needed : 256;
    grown = ks_mem_resize(list->alloc, KS_MEM_HOST, list->data, capacity, 1);
    if (grown == NULL) {
      list->failed = true;
      return;
    }
    list->data = grown;
    list->capacity = capacity;
  }
  if (data != NULL)
    memcpy(list->data + list->n, data, n);
  else
    memset(list->data + list->n, 0, n);
  list->n = needed;
}

static void
append_number(byte_list *list, uint64_t value, size_t n_bytes)
{
  unsigned char bytes[8];

  for (size_t i = 0; i < n_bytes; i++)
    bytes[i] = (unsigned char)(value >> (8 * i));
  append(list, bytes, n_bytes);
}

static void
append_str(byte_list *list, const char *text)
{
  append_number(list, strlen(text), 8);
  append(list, text, strlen(text));
}

static size_t
type_bytes(ks_gguf_type type)
{
  static const unsigned char sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

  assert((size_t)type < sizeof(sizes) && sizes[type] != 0);
  return sizes[type];
}

static void
begin_key(ks_gguf_writer *w, const char *name, ks_gguf_type type)
{
  append_str(&w->keys, name);
  append_number(&w->keys, (uint64_t)type, 4);
  w->n_keys++;
}

ks_gguf_writer *
ks_gguf_writer_new(ks_alloc *a, uint32_t alignment)
{
  ks_gguf_writer *w = ks_mem_new(a, KS_MEM_HOST, 1, sizeof(*w));

  if (w == NULL)
    return NULL;
  w->alignment = alignment != 0 ? alignment : 32;
  w->keys.alloc = a;
  w->tensors.alloc = a;
  if (alignment != 0)
    ks_gguf_writer_add_u32(w, "general.alignment", alignment);
  return w;
}

void
ks_gguf_writer_free(ks_gguf_writer *w)
{
  if (w == NULL)
    return;
  ks_mem_free(w->keys.data);
  ks_mem_free(w->tensors.data);
  ks_mem_free(w);
}

void
ks_gguf_writer_add(ks_gguf_writer *w, const char *name, ks_gguf_type type, const void *value)
{
  begin_key(w, name, type);
  append(&w->keys, value, type_bytes(type));
}

void
ks_gguf_writer_add_u32(ks_gguf_writer *w, const char *name, uint32_t value)
{
  begin_key(w, name, KS_GGUF_U32);
  append_number(&w->keys, value, 4);
}

void
ks_gguf_writer_add_f32(ks_gguf_writer *w, const char *name, float value)
{
  ks_gguf_writer_add(w, name, KS_GGUF_F32, &value);
}

void
ks_gguf_writer_add_bool(ks_gguf_writer *w, const char *name, bool value)
{
  begin_key(w, name, KS_GGUF_BOOL);
  append_number(&w->keys, value ? 1 : 0, 1);
}

void
ks_gguf_writer_add_str(ks_gguf_writer *w, const char *name, const char *text)
{
  begin_key(w, name, KS_GGUF_STRING);
  append_str(&w->keys, text);
}

void
ks_gguf_writer_add_array(ks_gguf_writer *w, const char *name, ks_gguf_type elem_type,
                         const void *values, uint64_t n)
{
  begin_key(w, name, KS_GGUF_ARRAY);
  append_number(&w->keys, (uint64_t)elem_type, 4);
  append_number(&w->keys, n, 8);
  append(&w->keys, values, (size_t)n * type_bytes(elem_type));
}

void
ks_gguf_writer_add_str_array(ks_gguf_writer *w, const char *name, const char *const *texts,
                             uint64_t n)
{
  begin_key(w, name, KS_GGUF_ARRAY);
  append_number(&w->keys, KS_GGUF_STRING, 4);
  append_number(&w->keys, n, 8);
  for (uint64_t i = 0; i < n; i++)
    append_str(&w->keys, texts[i]);
}

void
ks_gguf_writer_add_tensor(ks_gguf_writer *w, const char *name, ks_dtype dtype, uint32_t n_dims,
                          const uint64_t *ne, const void *data)
{
  ks_gguf_tensor t = {.dtype = dtype, .n_dims = n_dims, .data = data};
  size_t n_rows = 1;

  assert(n_dims >= 1 && n_dims <= 4 && strlen(name) < sizeof(t.name));
  memcpy(t.name, name, strlen(name));
  for (uint32_t i = 0; i < 4; i++) {
    t.ne[i] = i < n_dims ? ne[i] : 1;
    n_rows *= i > 0 ? (size_t)t.ne[i] : 1;
  }
  if (!ks_dtype_row_bytes(dtype, ne[0], &t.row_bytes) ||
      !ks_mul_size(t.row_bytes, n_rows, &t.n_bytes))
    w->tensors.failed = true;
  append(&w->tensors, &t, sizeof(t));
}

static void
append_padding(byte_list *file, size_t alignment)
{
  append(file, NULL, (alignment - file->n % alignment) % alignment);
}

static void
append_tensors(byte_list *file, const ks_gguf_tensor *tensors, size_t n, size_t alignment)
{
  uint64_t offset = 0;

  for (size_t i = 0; i < n; i++) {
    append_str(file, tensors[i].name);
    append_number(file, tensors[i].n_dims, 4);
    for (uint32_t d = 0; d < tensors[i].n_dims; d++)
      append_number(file, tensors[i].ne[d], 8);
    append_number(file, (uint64_t)tensors[i].dtype, 4);
    append_number(file, offset, 8);
    offset += tensors[i].n_bytes;
    offset += (alignment - offset % alignment) % alignment;
  }
  append_padding(file, alignment);
  for (size_t i = 0; i < n; i++) {
    append(file, tensors[i].data, tensors[i].n_bytes);
    append_padding(file, alignment);
  }
}

/* The file with keys and the tensors from first on; *file is the caller's to free in any case. */
static ks_status
lay_out(const byte_list *keys, uint64_t n_keys, const ks_gguf_tensor *tensors, size_t n_tensors,
        size_t alignment, byte_list *file, ks_error *err)
{
  append_number(file, 0x46554747u, 4);
  append_number(file, 3, 4);
  append_number(file, n_tensors, 8);
  append_number(file, n_keys, 8);
  append(file, keys->data, keys->n);
  append_tensors(file, tensors, n_tensors, alignment);
  if (file->failed || keys->failed)
    return ks_fail(err, KS_ERR_NOMEM, "no memory to write the model file");
  return KS_OK;
}

ks_status
ks_gguf_writer_get_bytes(const ks_gguf_writer *w, unsigned char **out_bytes, size_t *out_n_bytes,
                         ks_error *err)
{
  byte_list file = {.alloc = w->keys.alloc, .failed = w->tensors.failed};
  const ks_gguf_tensor *tensors = (const ks_gguf_tensor *)w->tensors.data;
  ks_status status = lay_out(&w->keys, w->n_keys, tensors, w->tensors.n / sizeof(*tensors),
                             w->alignment, &file, err);

  if (status != KS_OK) {
    ks_mem_free(file.data);
    return status;
  }
  *out_bytes = file.data;
  *out_n_bytes = file.n;
  return KS_OK;
}

static ks_status
save_bytes(const char *path, const unsigned char *data, size_t n, ks_error *err)
{
  FILE *f = fopen(path, "wb");
  bool written = f != NULL && fwrite(data, 1, n, f) == n;

  if (f != NULL)
    written = fclose(f) == 0 && written;
  if (!written)
    return ks_fail(err, KS_ERR_IO, "cannot write %s: %s", path, strerror(errno));
  return KS_OK;
}

ks_status
ks_gguf_writer_save(const ks_gguf_writer *w, const char *path, ks_error *err)
{
  unsigned char *data;
  size_t n;
  ks_status status = ks_gguf_writer_get_bytes(w, &data, &n, err);

  if (status != KS_OK)
    return status;
  status = save_bytes(path, data, n, err);
  ks_mem_free(data);
  return status;
}

/* Keys of a part: its number, and in the first one everything else. */
static void
add_split_keys(ks_gguf_writer *part, const ks_gguf_writer *whole, uint32_t no, uint32_t n_parts)
{
  uint16_t no16 = (uint16_t)no, count16 = (uint16_t)n_parts;
  int32_t n_tensors = (int32_t)(whole->tensors.n / sizeof(ks_gguf_tensor));

  ks_gguf_writer_add(part, "split.no", KS_GGUF_U16, &no16);
  ks_gguf_writer_add(part, "split.count", KS_GGUF_U16, &count16);
  ks_gguf_writer_add(part, "split.tensors.count", KS_GGUF_I32, &n_tensors);
  if (no == 0) {
    append(&part->keys, whole->keys.data, whole->keys.n);
    part->n_keys += whole->n_keys;
  } else if (whole->alignment != 32) {
    ks_gguf_writer_add_u32(part, "general.alignment", whole->alignment);
  }
}

ks_status
ks_gguf_writer_save_split(const ks_gguf_writer *w, const char *prefix, uint32_t n_parts,
                          ks_error *err)
{
  const ks_gguf_tensor *tensors = (const ks_gguf_tensor *)w->tensors.data;
  size_t n_tensors = w->tensors.n / sizeof(*tensors);
  ks_status status = KS_OK;

  for (uint32_t no = 0; no < n_parts && status == KS_OK; no++) {
    size_t first = n_tensors * no / n_parts, end = n_tensors * (no + 1) / n_parts;
    ks_gguf_writer *part = ks_gguf_writer_new(w->keys.alloc, 0);
    char path[4096];

    if (part == NULL)
      return ks_fail(err, KS_ERR_NOMEM, "no memory to write part %u", no + 1);
    part->alignment = w->alignment;
    part->tensors.failed = w->tensors.failed;
    part->keys.failed = w->keys.failed;
    add_split_keys(part, w, no, n_parts);
    append(&part->tensors, tensors + first, (end - first) * sizeof(*tensors));
    snprintf(path, sizeof path, "%s-%05u-of-%05u.gguf", prefix, no + 1, n_parts);
    status = ks_gguf_writer_save(part, path, err);
    ks_gguf_writer_free(part);
  }
  return status;
}

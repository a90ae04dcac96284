/* gguf.c - opens GGUF files: header, tensor list, parts of a split file.
 * Order of checks: every count against the bytes that are left before anything is allocated, every
 * product for overflow, every tensor against the end of its file.  Names are kept sorted, so that
 * duplicates show and look-ups are fast.
 * Tensor data is used in place; nothing is read ahead.  Source: docs/formats/gguf.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gguf-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MIN_TENSOR_BYTES 32 /* length of the name, n_dims, one ne, type, offset */
#define MAGIC 0x46554747u   /* "GGUF" */

struct ks_gguf {
  ks_alloc *alloc;
  ks_gguf_part *parts;
  size_t n_parts;
  ks_gguf_tensor *tensors; /* of all parts */
  uint32_t *tensor_order;  /* indices of tensors, sorted by name */
  size_t n_tensors;
};

/* Names of tensor types that exist elsewhere but not here, for the message. */
static const char *
foreign_type_name(uint32_t id)
{
  static const char *const names[40] = {
      [9] = "Q8_1",     [15] = "Q8_K",  [16] = "IQ2_XXS", [17] = "IQ2_XS",
      [18] = "IQ3_XXS", [19] = "IQ1_S", [21] = "IQ3_S",   [22] = "IQ2_S",
      [24] = "I8",      [25] = "I16",   [27] = "I64",     [28] = "F64",
      [29] = "IQ1_M",   [34] = "TQ1_0", [35] = "TQ2_0",   [39] = "MXFP4",
  };

  return id < 40 && names[id] != NULL ? names[id] : "unknown";
}

static ks_status
read_header(ks_gguf_part *part, ks_reader *r, uint64_t *out_n_tensors, uint64_t *out_n_keys,
            ks_error *err)
{
  uint32_t magic, version;

  if (!ks_reader_u32(r, &magic) || magic != MAGIC)
    return ks_fail(err, KS_ERR_FORMAT, "not a GGUF file");
  if (!ks_reader_u32(r, &version))
    return ks_fail(err, KS_ERR_FORMAT, "the file ends inside its header");
  if (version != 2 && version != 3) {
    if (version != 0 && (version & 0xffffu) == 0)
      return ks_fail(err, KS_ERR_UNSUPPORTED, "a big-endian GGUF file: use the little-endian one");
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "GGUF version %u; versions 2 and 3 are supported: convert the model again",
                   version);
  }
  if (!ks_reader_u64(r, out_n_tensors) || !ks_reader_u64(r, out_n_keys))
    return ks_fail(err, KS_ERR_FORMAT, "the file ends inside its header");
  part->version = version;
  return KS_OK;
}

static ks_status
read_tensor_name(ks_reader *r, ks_gguf_tensor *t, uint64_t index, ks_error *err)
{
  ks_gguf_str name;

  if (!ks_gguf_read_str(r, &name))
    return ks_fail(err, KS_ERR_FORMAT, "the file ends inside its list of tensors");
  if (name.n_bytes == 0 || name.n_bytes >= sizeof(t->name) ||
      memchr(name.data, '\0', name.n_bytes) != NULL)
    return ks_fail(err, KS_ERR_FORMAT, "tensor %llu has no usable name", (unsigned long long)index);
  memcpy(t->name, name.data, name.n_bytes);
  return KS_OK;
}

static ks_status
read_tensor_shape(ks_reader *r, ks_gguf_tensor *t, ks_error *err)
{
  uint64_t n_elem = 1;

  if (!ks_reader_u32(r, &t->n_dims))
    return ks_fail(err, KS_ERR_FORMAT, "the file ends inside the tensor %s", t->name);
  if (t->n_dims < 1 || t->n_dims > 4)
    return ks_fail(err, KS_ERR_FORMAT, "tensor %s has %u dimensions instead of 1 to 4", t->name,
                   t->n_dims);
  for (uint32_t i = 0; i < 4; i++)
    t->ne[i] = 1;
  for (uint32_t i = 0; i < t->n_dims; i++) {
    if (!ks_reader_u64(r, &t->ne[i]))
      return ks_fail(err, KS_ERR_FORMAT, "the file ends inside the tensor %s", t->name);
    if (t->ne[i] == 0 || t->ne[i] > INT64_MAX / n_elem)
      return ks_fail(err, KS_ERR_FORMAT, "tensor %s has an impossible shape", t->name);
    n_elem *= t->ne[i];
  }
  return KS_OK;
}

/* Reads the list entry; data temporarily is what the offset says, checked in bind_tensor. */
static ks_status
read_tensor(ks_reader *r, ks_gguf_tensor *t, uint64_t index, uint64_t *out_offset, ks_error *err)
{
  const ks_dtype_info *info;
  uint32_t type;
  ks_status status = read_tensor_name(r, t, index, err);
  size_t n_rows = 1;

  if (status == KS_OK)
    status = read_tensor_shape(r, t, err);
  if (status != KS_OK)
    return status;
  if (!ks_reader_u32(r, &type) || !ks_reader_u64(r, out_offset))
    return ks_fail(err, KS_ERR_FORMAT, "the file ends inside the tensor %s", t->name);
  info = ks_dtype_get_info(type);
  if (info == NULL)
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "tensor %s has the type %u (%s), which is not supported: use another "
                   "quantisation of this model",
                   t->name, type, foreign_type_name(type));
  t->dtype = (ks_dtype)type;
  if (t->ne[0] % info->block_elems != 0)
    return ks_fail(err, KS_ERR_FORMAT, "rows of tensor %s are no multiple of the %u elements of %s",
                   t->name, info->block_elems, info->name);
  for (int i = 1; i < 4; i++)
    n_rows *= (size_t)t->ne[i]; /* the product of all four was checked */
  if (!ks_dtype_row_bytes(t->dtype, t->ne[0], &t->row_bytes) ||
      !ks_mul_size(t->row_bytes, n_rows, &t->n_bytes))
    return ks_fail(err, KS_ERR_FORMAT, "tensor %s is impossibly large", t->name);
  return KS_OK;
}

static ks_status
get_alignment(const ks_gguf_part *part, uint64_t *out, ks_error *err)
{
  uint64_t alignment = 32;

  if (ks_gguf_part_find_key(part, "general.alignment") != NULL &&
      !ks_gguf_part_get_u64(part, "general.alignment", &alignment))
    return ks_fail(err, KS_ERR_FORMAT, "general.alignment is not a number");
  if (alignment < 8 || alignment > UINT32_MAX || (alignment & (alignment - 1)) != 0)
    return ks_fail(err, KS_ERR_FORMAT, "general.alignment is %llu, not a power of two from 8",
                   (unsigned long long)alignment);
  *out = alignment;
  return KS_OK;
}

/* Offsets count from the first aligned byte after the list. */
static ks_status
bind_tensors(ks_gguf_part *part, const uint64_t *offsets, size_t list_end, ks_error *err)
{
  uint64_t alignment = 0, padding;
  ks_status status = get_alignment(part, &alignment, err);
  size_t start;

  if (status != KS_OK)
    return status;
  padding = (alignment - list_end % alignment) % alignment;
  if (part->n_tensors > 0 && padding > part->n_bytes - list_end)
    return ks_fail(err, KS_ERR_FORMAT, "the file ends before its tensors");
  start = list_end + (size_t)padding;
  for (size_t i = 0; i < part->n_tensors; i++) {
    ks_gguf_tensor *t = &part->tensors[i];

    if (offsets[i] % alignment != 0)
      return ks_fail(err, KS_ERR_FORMAT, "tensor %s does not start at a multiple of %llu", t->name,
                     (unsigned long long)alignment);
    if (offsets[i] > part->n_bytes - start || t->n_bytes > part->n_bytes - start - offsets[i])
      return ks_fail(err, KS_ERR_FORMAT,
                     "tensor %s ends after the end of the file: it was cut short", t->name);
    t->data = part->data + start + (size_t)offsets[i];
  }
  return KS_OK;
}

static ks_status
read_tensors(ks_alloc *a, ks_gguf_part *part, ks_reader *r, uint64_t n_tensors, ks_error *err)
{
  uint64_t *offsets;
  ks_status status = KS_OK;

  if (n_tensors > ks_reader_left(r) / MIN_TENSOR_BYTES || n_tensors >= UINT32_MAX)
    return ks_fail(err, KS_ERR_FORMAT, "the file is too short for its %llu tensors",
                   (unsigned long long)n_tensors);
  part->tensors = ks_mem_new(a, KS_MEM_HOST, (size_t)n_tensors, sizeof(*part->tensors));
  offsets = ks_mem_new(a, KS_MEM_HOST, (size_t)n_tensors, sizeof(*offsets));
  if (part->tensors == NULL || offsets == NULL)
    status =
        ks_fail(err, KS_ERR_NOMEM, "no memory for %llu tensors", (unsigned long long)n_tensors);
  for (uint64_t i = 0; status == KS_OK && i < n_tensors; i++)
    status = read_tensor(r, &part->tensors[i], i, &offsets[i], err);
  if (status == KS_OK) {
    part->n_tensors = (size_t)n_tensors;
    status = bind_tensors(part, offsets, r->pos, err);
  }
  ks_mem_free(offsets);
  return status;
}

static ks_status
read_part(ks_alloc *a, ks_gguf_part *part, ks_error *err)
{
  uint64_t n_tensors = 0, n_keys = 0;
  ks_status status;
  ks_reader r;

  ks_reader_init(&r, part->data, part->n_bytes);
  status = read_header(part, &r, &n_tensors, &n_keys, err);
  if (status == KS_OK)
    status = ks_gguf_read_keys(a, part, &r, n_keys, err);
  if (status == KS_OK)
    status = read_tensors(a, part, &r, n_tensors, err);
  return status;
}

static void
part_done(ks_gguf_part *part)
{
  ks_mem_free(part->tensors);
  ks_mem_free(part->key_order);
  ks_mem_free(part->keys);
  ks_map_close(part->map);
}

static ks_status
open_part(ks_alloc *a, const char *path, ks_gguf_part *part, ks_error *err)
{
  ks_status status = ks_map_open(a, path, &part->map, err);

  if (status != KS_OK)
    return status;
  part->data = ks_map_get_data(part->map);
  part->n_bytes = ks_map_get_size(part->map);
  status = read_part(a, part, err);
  /* What was read as zeros is no format error, and what looked right may not have been. */
  if (ks_map_is_lost(part->map))
    return ks_fail(err, KS_ERR_IO, "%s became shorter while it was read", path);
  if (status != KS_OK)
    return ks_fail_prefix(err, status, path);
  return KS_OK;
}

static ks_gguf_str
tensor_name(const void *list, uint32_t i)
{
  const char *name = ((const ks_gguf_tensor *)list)[i].name;

  return (ks_gguf_str){name, strlen(name)};
}

/* Moves the tensors of all parts into one list and sorts their names. */
static ks_status
join_parts(ks_gguf *g, ks_error *err)
{
  size_t n = 0;
  uint32_t twice;

  for (size_t i = 0; i < g->n_parts; i++)
    n += g->parts[i].n_tensors;
  if (n >= UINT32_MAX)
    return ks_fail(err, KS_ERR_FORMAT, "the file has impossibly many tensors");
  g->tensors = ks_mem_new(g->alloc, KS_MEM_HOST, n, sizeof(*g->tensors));
  g->tensor_order = ks_mem_new(g->alloc, KS_MEM_HOST, n, sizeof(*g->tensor_order));
  if (g->tensors == NULL || g->tensor_order == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for %zu tensors", n);
  for (size_t i = 0; i < g->n_parts; i++) {
    ks_gguf_part *part = &g->parts[i];

    if (part->n_tensors > 0)
      memcpy(g->tensors + g->n_tensors, part->tensors, part->n_tensors * sizeof(*g->tensors));
    g->n_tensors += part->n_tensors;
    ks_mem_free(part->tensors);
    part->tensors = NULL;
  }
  twice = ks_gguf_sort(g->tensors, tensor_name, g->tensor_order, (uint32_t)n);
  if (twice < n)
    return ks_fail(err, KS_ERR_FORMAT, "tensor %s occurs twice", g->tensors[twice].name);
  return KS_OK;
}

/* Writes the name of part number `no` (from 0) over the end of path [n_path]. */
static void
name_part(char *path, size_t n_path, uint64_t no, uint64_t n_parts)
{
  char *end = path + n_path - strlen("-00001-of-00001.gguf");

  snprintf(end, strlen("-00001-of-00001.gguf") + 1, "-%05u-of-%05u.gguf",
           (unsigned)(no + 1) % 100000, (unsigned)n_parts % 100000);
}

static ks_status
check_part(const ks_gguf_part *part, uint64_t no, uint64_t n_parts, const char *path, ks_error *err)
{
  uint64_t found_no, found_count;

  if (!ks_gguf_part_get_u64(part, "split.no", &found_no) || found_no != no ||
      !ks_gguf_part_get_u64(part, "split.count", &found_count) || found_count != n_parts)
    return ks_fail(err, KS_ERR_FORMAT, "%s is not part %llu of %llu of this model", path,
                   (unsigned long long)no + 1, (unsigned long long)n_parts);
  return KS_OK;
}

/* Opens parts 2 to n_parts, named after part 1; path is writable and of the right form. */
static ks_status
open_more_parts(ks_gguf *g, char *path, uint64_t n_parts, ks_error *err)
{
  size_t n_path = strlen(path);
  uint64_t n_tensors = g->parts[0].n_tensors, wanted;

  for (uint64_t no = 1; no < n_parts; no++) {
    ks_gguf_part *part = &g->parts[no];
    ks_status status;

    name_part(path, n_path, no, n_parts);
    if (access(path, F_OK) != 0 && errno == ENOENT)
      return ks_fail(err, KS_ERR_UNSUPPORTED, "part %llu of %llu is missing: %s",
                     (unsigned long long)no + 1, (unsigned long long)n_parts, path);
    g->n_parts = (size_t)no + 1;
    status = open_part(g->alloc, path, part, err);
    if (status == KS_OK)
      status = check_part(part, no, n_parts, path, err);
    if (status != KS_OK)
      return status;
    n_tensors += part->n_tensors;
  }
  if (ks_gguf_part_get_u64(&g->parts[0], "split.tensors.count", &wanted) && wanted != n_tensors)
    return ks_fail(err, KS_ERR_FORMAT, "the parts hold %llu tensors instead of %llu",
                   (unsigned long long)n_tensors, (unsigned long long)wanted);
  return KS_OK;
}

/* Does nothing for a file that is not split. */
static ks_status
open_split(ks_gguf *g, const char *path, ks_error *err)
{
  uint64_t n_parts = 1, no = 0;
  size_t n_path = strlen(path);
  ks_gguf_part *grown;
  char *name, *expected;
  ks_status status;

  if (!ks_gguf_part_get_u64(&g->parts[0], "split.count", &n_parts) || n_parts <= 1)
    return KS_OK;
  if (n_parts > UINT16_MAX)
    return ks_fail(err, KS_ERR_FORMAT, "%s: split.count is %llu", path,
                   (unsigned long long)n_parts);
  if (!ks_gguf_part_get_u64(&g->parts[0], "split.no", &no) || no != 0)
    return ks_fail(err, KS_ERR_UNSUPPORTED, "%s is part %llu of a split model: open part 1", path,
                   (unsigned long long)no + 1);
  name = ks_mem_dup_str(g->alloc, KS_MEM_HOST, path, n_path);
  expected = ks_mem_dup_str(g->alloc, KS_MEM_HOST, path, n_path);
  grown = ks_mem_resize(g->alloc, KS_MEM_HOST, g->parts, (size_t)n_parts, sizeof(*g->parts));
  if (grown != NULL)
    g->parts = grown;
  if (name == NULL || expected == NULL || grown == NULL) {
    status = ks_fail(err, KS_ERR_NOMEM, "no memory for %llu parts", (unsigned long long)n_parts);
    goto out;
  }
  if (n_path >= strlen("-00001-of-00001.gguf"))
    name_part(expected, n_path, 0, n_parts);
  if (n_path < strlen("-00001-of-00001.gguf") || strcmp(name, expected) != 0) {
    status = ks_fail(err, KS_ERR_UNSUPPORTED,
                     "%s is part 1 of %llu, but its name does not end in -00001-of-%05llu.gguf, so "
                     "the other parts cannot be found: give the parts their names back",
                     path, (unsigned long long)n_parts, (unsigned long long)n_parts);
    goto out;
  }
  status = open_more_parts(g, name, n_parts, err);
out:
  ks_mem_free(name);
  ks_mem_free(expected);
  return status;
}

static ks_gguf *
new_gguf(ks_alloc *a)
{
  ks_gguf *g = ks_mem_new(a, KS_MEM_HOST, 1, sizeof(*g));

  if (g == NULL)
    return NULL;
  g->alloc = a;
  g->parts = ks_mem_new(a, KS_MEM_HOST, 1, sizeof(*g->parts));
  if (g->parts == NULL) {
    ks_mem_free(g);
    return NULL;
  }
  g->n_parts = 1;
  return g;
}

ks_status
ks_gguf_open(ks_alloc *a, const char *path, ks_gguf **out, ks_error *err)
{
  ks_gguf *g = new_gguf(a);
  ks_status status;

  if (g == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory to open %s", path);
  status = open_part(a, path, &g->parts[0], err);
  if (status == KS_OK)
    status = open_split(g, path, err);
  if (status == KS_OK) {
    status = join_parts(g, err);
    if (status != KS_OK)
      status = ks_fail_prefix(err, status, path);
  }
  if (status == KS_OK)
    status = ks_gguf_check_alive(g, err);
  if (status != KS_OK) {
    ks_gguf_close(g);
    return status;
  }
  *out = g;
  return KS_OK;
}

ks_status
ks_gguf_open_bytes(ks_alloc *a, const void *data, size_t n_bytes, ks_gguf **out, ks_error *err)
{
  ks_gguf *g = new_gguf(a);
  uint64_t n_parts;
  ks_status status;

  if (g == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory to read the file");
  g->parts[0].data = data;
  g->parts[0].n_bytes = n_bytes;
  status = read_part(a, &g->parts[0], err);
  if (status == KS_OK && ks_gguf_part_get_u64(&g->parts[0], "split.count", &n_parts) && n_parts > 1)
    status = ks_fail(err, KS_ERR_UNSUPPORTED, "a part of a split model cannot be read from memory");
  if (status == KS_OK)
    status = join_parts(g, err);
  if (status != KS_OK) {
    ks_gguf_close(g);
    return status;
  }
  *out = g;
  return KS_OK;
}

void
ks_gguf_close(ks_gguf *g)
{
  if (g == NULL)
    return;
  for (size_t i = 0; i < g->n_parts; i++)
    part_done(&g->parts[i]);
  ks_mem_free(g->parts);
  ks_mem_free(g->tensors);
  ks_mem_free(g->tensor_order);
  ks_mem_free(g);
}

ks_status
ks_gguf_check_alive(const ks_gguf *g, ks_error *err)
{
  for (size_t i = 0; i < g->n_parts; i++)
    if (g->parts[i].map != NULL && ks_map_is_lost(g->parts[i].map))
      return ks_fail(err, KS_ERR_IO, "%s was cut or its drive went away: load the model again",
                     ks_map_get_path(g->parts[i].map));
  return KS_OK;
}

void
ks_gguf_drop_pages(const ks_gguf *g, const void *data, size_t n_bytes)
{
  const uintptr_t begin = (uintptr_t)data;

  for (size_t i = 0; i < g->n_parts; i++) {
    const ks_gguf_part *part = &g->parts[i];
    const uintptr_t base = (uintptr_t)part->data;

    if (part->map != NULL && begin >= base && begin - base <= part->n_bytes &&
        n_bytes <= part->n_bytes - (begin - base))
      ks_map_drop_pages(part->map, begin - base, n_bytes);
  }
}

uint32_t
ks_gguf_get_version(const ks_gguf *g)
{
  return g->parts[0].version;
}

size_t
ks_gguf_get_n_keys(const ks_gguf *g)
{
  return g->parts[0].n_keys;
}

const ks_gguf_key *
ks_gguf_get_key(const ks_gguf *g, size_t i)
{
  return i < g->parts[0].n_keys ? &g->parts[0].keys[i] : NULL;
}

const ks_gguf_key *
ks_gguf_find_key(const ks_gguf *g, const char *name)
{
  return ks_gguf_part_find_key(&g->parts[0], name);
}

size_t
ks_gguf_get_n_tensors(const ks_gguf *g)
{
  return g->n_tensors;
}

const ks_gguf_tensor *
ks_gguf_get_tensor(const ks_gguf *g, size_t i)
{
  return i < g->n_tensors ? &g->tensors[i] : NULL;
}

const ks_gguf_tensor *
ks_gguf_find_tensor(const ks_gguf *g, const char *name)
{
  uint32_t n = (uint32_t)g->n_tensors;
  uint32_t i = ks_gguf_search(g->tensors, tensor_name, g->tensor_order, n, name);

  return i < n ? &g->tensors[i] : NULL;
}

uint64_t
ks_gguf_get_mapped_bytes(const ks_gguf *g)
{
  uint64_t n_bytes = 0;

  for (size_t i = 0; i < g->n_parts; i++)
    n_bytes += g->parts[i].n_bytes;
  return n_bytes;
}

/* safetensors.c - u64 length, a JSON header of that length, then the tensors' bytes without gaps.
 * The header is small (4 MiB at most) and shallow, both checked before cJSON sees it; what is
 * needed is copied out and the tree is freed at once.  cJSON's own memory is not counted: its hooks
 * are global, and the tree lives only while a file is opened or written. Tensors are kept in file
 * order and found through a list sorted by name. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/safetensors.h"

#include "engine/gguf-internal.h"
#include "engine/quant.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_HEADER_BYTES ((uint64_t)4 << 20) /* some 20,000 tensors; a gate has a few hundred */
#define MAX_DEPTH 4                          /* the format needs three levels */
#define MAX_EXACT 9007199254740992.0         /* 2^53: numbers in JSON are doubles */

struct ks_safetensors {
  ks_alloc *alloc;
  ks_map *map; /* NULL: bytes of the caller */
  ks_st_tensor *tensors;
  uint32_t *name_order; /* indices of tensors, sorted by name */
  uint32_t n_tensors;
  const char **metadata; /* key, value, key, value */
  size_t n_metadata;     /* pairs */
  char *text;            /* names, keys and values, each with its NUL */
  size_t n_text, text_room;
};

/* Copies into text; the room was taken from the header's length, which quoted texts cannot exceed.
 */
static const char *
keep_text(ks_safetensors *st, const char *text)
{
  size_t n = strlen(text) + 1;
  char *copy = st->text + st->n_text;

  if (n > st->text_room - st->n_text)
    return NULL;
  memcpy(copy, text, n);
  st->n_text += n;
  return copy;
}

static bool
is_shallow(const unsigned char *json, size_t n)
{
  bool in_string = false;
  int depth = 0;

  for (size_t i = 0; i < n; i++) {
    if (in_string) {
      if (json[i] == '\\')
        i++;
      else if (json[i] == '"')
        in_string = false;
    } else if (json[i] == '"') {
      in_string = true;
    } else if (json[i] == '{' || json[i] == '[') {
      if (++depth > MAX_DEPTH)
        return false;
    } else if (json[i] == '}' || json[i] == ']') {
      depth--;
    }
  }
  return true;
}

/* The header as a tree, which the caller deletes. */
static ks_status
parse_header(const unsigned char *json, size_t n, cJSON **out, ks_error *err)
{
  const char *end = NULL;
  cJSON *root;
  bool is_clean = true;

  if (!is_shallow(json, n))
    return ks_fail(err, KS_ERR_FORMAT, "the header is nested too deeply for safetensors");
  root = cJSON_ParseWithLengthOpts((const char *)json, n, &end, false);
  if (root != NULL)
    for (const char *p = end; p < (const char *)json + n; p++)
      is_clean = is_clean && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t');
  if (!cJSON_IsObject(root) || !is_clean) {
    cJSON_Delete(root);
    return ks_fail(err, KS_ERR_FORMAT, "the safetensors header is not a JSON object");
  }
  *out = root;
  return KS_OK;
}

static bool
get_whole(const cJSON *item, uint64_t *out)
{
  if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > MAX_EXACT ||
      item->valuedouble != floor(item->valuedouble))
    return false;
  *out = (uint64_t)item->valuedouble;
  return true;
}

static ks_status
read_dtype(const cJSON *object, ks_st_tensor *t, ks_error *err)
{
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "dtype"));

  if (name == NULL)
    return ks_fail(err, KS_ERR_FORMAT, "tensor %s has no dtype", t->name);
  if (strcmp(name, "F32") == 0)
    t->dtype = KS_DTYPE_F32;
  else if (strcmp(name, "F16") == 0)
    t->dtype = KS_DTYPE_F16;
  else if (strcmp(name, "BF16") == 0)
    t->dtype = KS_DTYPE_BF16;
  else
    return ks_fail(err, KS_ERR_UNSUPPORTED, "tensor %s is %s; F32, F16 and BF16 are supported",
                   t->name, name);
  return KS_OK;
}

/* Shape, and from it the number of bytes. */
static ks_status
read_shape(const cJSON *object, ks_st_tensor *t, uint64_t *out_n_bytes, ks_error *err)
{
  const cJSON *shape = cJSON_GetObjectItemCaseSensitive(object, "shape"), *dim;
  uint64_t n_elem = 1;

  if (!cJSON_IsArray(shape))
    return ks_fail(err, KS_ERR_FORMAT, "tensor %s has no shape", t->name);
  for (int i = 0; i < 4; i++)
    t->shape[i] = 1;
  cJSON_ArrayForEach(dim, shape)
  {
    uint64_t n;

    if (t->n_dims == 4)
      return ks_fail(err, KS_ERR_UNSUPPORTED, "tensor %s has more than 4 dimensions", t->name);
    if (!get_whole(dim, &n) || n == 0 || n > INT64_MAX / 4 / n_elem)
      return ks_fail(err, KS_ERR_FORMAT, "tensor %s has an impossible shape", t->name);
    t->shape[t->n_dims++] = n;
    n_elem *= n;
  }
  *out_n_bytes = n_elem * ks_dtype_get_info((uint32_t)t->dtype)->block_bytes;
  return KS_OK;
}

static ks_status
read_tensor(const cJSON *object, const unsigned char *data, size_t n_data, ks_st_tensor *t,
            ks_error *err)
{
  const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(object, "data_offsets");
  uint64_t begin, end, n_bytes = 0;
  ks_status status;

  if (!cJSON_IsObject(object))
    return ks_fail(err, KS_ERR_FORMAT, "the entry of tensor %s is no object", t->name);
  status = read_dtype(object, t, err);
  if (status == KS_OK)
    status = read_shape(object, t, &n_bytes, err);
  if (status != KS_OK)
    return status;
  if (cJSON_GetArraySize(offsets) != 2 || !get_whole(cJSON_GetArrayItem(offsets, 0), &begin) ||
      !get_whole(cJSON_GetArrayItem(offsets, 1), &end) || begin > end)
    return ks_fail(err, KS_ERR_FORMAT, "tensor %s has no usable data_offsets", t->name);
  if (end > n_data)
    return ks_fail(err, KS_ERR_FORMAT, "tensor %s ends after the end of the file: it was cut short",
                   t->name);
  if (end - begin != n_bytes)
    return ks_fail(err, KS_ERR_FORMAT, "tensor %s has %llu bytes, but its shape needs %llu",
                   t->name, (unsigned long long)(end - begin), (unsigned long long)n_bytes);
  t->data = data + begin;
  t->n_bytes = (size_t)n_bytes;
  return KS_OK;
}

static ks_status
read_metadata(ks_safetensors *st, const cJSON *object, ks_error *err)
{
  const cJSON *item;

  if (!cJSON_IsObject(object))
    return ks_fail(err, KS_ERR_FORMAT, "__metadata__ is no object");
  if (st->metadata != NULL)
    return ks_fail(err, KS_ERR_FORMAT, "__metadata__ occurs twice");
  st->metadata = ks_mem_new(st->alloc, KS_MEM_HOST, (size_t)cJSON_GetArraySize(object),
                            2 * sizeof(*st->metadata));
  if (st->metadata == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the metadata");
  cJSON_ArrayForEach(item, object)
  {
    const char *key = keep_text(st, item->string), *value = cJSON_GetStringValue(item);

    value = value != NULL ? keep_text(st, value) : NULL;
    if (key == NULL || value == NULL)
      return ks_fail(err, KS_ERR_FORMAT, "__metadata__ holds something else than texts");
    st->metadata[2 * st->n_metadata] = key;
    st->metadata[2 * st->n_metadata + 1] = value;
    st->n_metadata++;
  }
  return KS_OK;
}

static int
compare_places(const void *a, const void *b)
{
  const unsigned char *left = ((const ks_st_tensor *)a)->data,
                      *right = ((const ks_st_tensor *)b)->data;

  return (left > right) - (left < right);
}

static ks_gguf_str
tensor_name(const void *list, uint32_t i)
{
  const char *name = ((const ks_st_tensor *)list)[i].name;

  return (ks_gguf_str){name, strlen(name)};
}

/* The tensors must cover the data from its first to its last byte, once. */
static ks_status
check_layout(ks_safetensors *st, const unsigned char *data, size_t n_data, ks_error *err)
{
  const unsigned char *expected = data;
  uint32_t twice;

  if (st->n_tensors > 0)
    qsort(st->tensors, st->n_tensors, sizeof(*st->tensors), compare_places);
  for (uint32_t i = 0; i < st->n_tensors; i++) {
    if (st->tensors[i].data != expected)
      return ks_fail(err, KS_ERR_FORMAT, "tensor %s overlaps another or leaves a gap before it",
                     st->tensors[i].name);
    expected += st->tensors[i].n_bytes;
  }
  if (expected != data + n_data)
    return ks_fail(err, KS_ERR_FORMAT, "the file has bytes that belong to no tensor");
  twice = ks_gguf_sort(st->tensors, tensor_name, st->name_order, st->n_tensors);
  if (twice < st->n_tensors)
    return ks_fail(err, KS_ERR_FORMAT, "tensor %s occurs twice", st->tensors[twice].name);
  return KS_OK;
}

static ks_status
read_tree(ks_safetensors *st, const cJSON *root, const unsigned char *data, size_t n_data,
          ks_error *err)
{
  size_t n_items = (size_t)cJSON_GetArraySize(root);
  const cJSON *item;
  ks_status status = KS_OK;

  st->tensors = ks_mem_new(st->alloc, KS_MEM_HOST, n_items, sizeof(*st->tensors));
  st->name_order = ks_mem_new(st->alloc, KS_MEM_HOST, n_items, sizeof(*st->name_order));
  if (st->tensors == NULL || st->name_order == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for %zu tensors", n_items);
  cJSON_ArrayForEach(item, root)
  {
    if (strcmp(item->string, "__metadata__") == 0) {
      status = read_metadata(st, item, err);
    } else {
      ks_st_tensor *t = &st->tensors[st->n_tensors];

      t->name = keep_text(st, item->string);
      if (t->name == NULL || t->name[0] == '\0')
        return ks_fail(err, KS_ERR_FORMAT, "tensor %u has no usable name", st->n_tensors);
      status = read_tensor(item, data, n_data, t, err);
      st->n_tensors++;
    }
    if (status != KS_OK)
      return status;
  }
  return check_layout(st, data, n_data, err);
}

static ks_status
read_file(ks_safetensors *st, const unsigned char *data, size_t n_bytes, ks_error *err)
{
  const unsigned char *json;
  uint64_t n_header;
  ks_status status;
  ks_reader r;
  cJSON *root;

  ks_reader_init(&r, data, n_bytes);
  if (!ks_reader_u64(&r, &n_header) || n_header > MAX_HEADER_BYTES || n_header < 2)
    return ks_fail(err, KS_ERR_FORMAT, "not a safetensors file");
  if (!ks_reader_bytes(&r, n_header, &json))
    return ks_fail(err, KS_ERR_FORMAT, "the file ends inside its header");
  st->text_room = (size_t)n_header;
  st->text = ks_mem_new(st->alloc, KS_MEM_HOST, st->text_room, 1);
  if (st->text == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the safetensors header");
  status = parse_header(json, (size_t)n_header, &root, err);
  if (status != KS_OK)
    return status;
  status = read_tree(st, root, data + r.pos, ks_reader_left(&r), err);
  cJSON_Delete(root);
  return status;
}

ks_status
ks_safetensors_open_bytes(ks_alloc *a, const void *data, size_t n_bytes, ks_safetensors **out,
                          ks_error *err)
{
  ks_safetensors *st = ks_mem_new(a, KS_MEM_HOST, 1, sizeof(*st));
  ks_status status;

  if (st == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory to read a safetensors file");
  st->alloc = a;
  status = read_file(st, data, n_bytes, err);
  if (status != KS_OK) {
    ks_safetensors_close(st);
    return status;
  }
  *out = st;
  return KS_OK;
}

ks_status
ks_safetensors_open(ks_alloc *a, const char *path, ks_safetensors **out, ks_error *err)
{
  ks_safetensors *st = NULL;
  ks_map *map;
  ks_status status = ks_map_open(a, path, &map, err);

  if (status != KS_OK)
    return status;
  status = ks_safetensors_open_bytes(a, ks_map_get_data(map), ks_map_get_size(map), &st, err);
  if (ks_map_is_lost(map))
    status = ks_fail(err, KS_ERR_IO, "%s became shorter while it was read", path);
  else if (status != KS_OK)
    status = ks_fail_prefix(err, status, path);
  if (status != KS_OK) {
    ks_safetensors_close(st);
    ks_map_close(map);
    return status;
  }
  st->map = map;
  *out = st;
  return KS_OK;
}

void
ks_safetensors_close(ks_safetensors *st)
{
  if (st == NULL)
    return;
  ks_map_close(st->map);
  ks_mem_free(st->tensors);
  ks_mem_free(st->name_order);
  ks_mem_free(st->metadata);
  ks_mem_free(st->text);
  ks_mem_free(st);
}

size_t
ks_safetensors_get_n(const ks_safetensors *st)
{
  return st->n_tensors;
}

const ks_st_tensor *
ks_safetensors_get(const ks_safetensors *st, size_t i)
{
  return i < st->n_tensors ? &st->tensors[i] : NULL;
}

const ks_st_tensor *
ks_safetensors_find(const ks_safetensors *st, const char *name)
{
  uint32_t i = ks_gguf_search(st->tensors, tensor_name, st->name_order, st->n_tensors, name);

  return i < st->n_tensors ? &st->tensors[i] : NULL;
}

const char *
ks_safetensors_get_metadata(const ks_safetensors *st, const char *key)
{
  for (size_t i = 0; i < st->n_metadata; i++)
    if (strcmp(st->metadata[2 * i], key) == 0)
      return st->metadata[2 * i + 1];
  return NULL;
}

ks_status
ks_safetensors_read_f32(const ks_safetensors *st, const ks_st_tensor *tensor, float *dst,
                        size_t n_elem, ks_error *err)
{
  size_t n_found = tensor->n_bytes / ks_dtype_get_info((uint32_t)tensor->dtype)->block_bytes;

  if (n_elem != n_found)
    return ks_fail(err, KS_ERR_ARG, "tensor %s has %zu elements, not %zu", tensor->name, n_found,
                   n_elem);
  ks_dequantise_row(tensor->dtype, tensor->data, dst, n_elem);
  if (st->map != NULL && ks_map_is_lost(st->map))
    return ks_fail(err, KS_ERR_IO, "%s was cut or its drive went away: load it again",
                   ks_map_get_path(st->map));
  for (size_t i = 0; i < n_elem; i++)
    if (!isfinite(dst[i]))
      return ks_fail(err, KS_ERR_FORMAT, "tensor %s holds a value that is no number (element %zu)",
                     tensor->name, i);
  return KS_OK;
}

static bool
add_tensor_entry(cJSON *root, const ks_st_tensor *t, uint64_t begin)
{
  cJSON *entry = cJSON_AddObjectToObject(root, t->name);
  cJSON *shape, *offsets;

  if (entry == NULL || cJSON_AddStringToObject(entry, "dtype", "F32") == NULL)
    return false;
  shape = cJSON_AddArrayToObject(entry, "shape");
  offsets = cJSON_AddArrayToObject(entry, "data_offsets");
  if (shape == NULL || offsets == NULL)
    return false;
  for (uint32_t i = 0; i < t->n_dims; i++)
    if (!cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)t->shape[i])))
      return false;
  return cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)begin)) &&
         cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)(begin + t->n_bytes)));
}

/* The header's text, which the caller frees with cJSON_free; NULL when there is no memory. */
static char *
print_header(const ks_st_tensor *tensors, size_t n, const char *const *metadata)
{
  cJSON *root = cJSON_CreateObject();
  bool is_whole = root != NULL;
  uint64_t begin = 0;
  char *text;

  if (is_whole && metadata != NULL && metadata[0] != NULL) {
    cJSON *object = cJSON_AddObjectToObject(root, "__metadata__");

    for (size_t i = 0; is_whole && metadata[i] != NULL; i += 2)
      is_whole = cJSON_AddStringToObject(object, metadata[i], metadata[i + 1]) != NULL;
  }
  for (size_t i = 0; is_whole && i < n; i++) {
    is_whole = add_tensor_entry(root, &tensors[i], begin);
    begin += tensors[i].n_bytes;
  }
  text = is_whole ? cJSON_PrintUnformatted(root) : NULL;
  cJSON_Delete(root);
  return text;
}

/* Header padded with spaces to 8, so that the tensors are aligned; then the tensors. */
static bool
write_content(FILE *f, const char *header, const ks_st_tensor *tensors, size_t n)
{
  size_t n_header = strlen(header), padding = (8 - n_header % 8) % 8;
  unsigned char length[8];

  for (int i = 0; i < 8; i++)
    length[i] = (unsigned char)((uint64_t)(n_header + padding) >> (8 * i));
  if (fwrite(length, 1, 8, f) != 8 || fwrite(header, 1, n_header, f) != n_header ||
      fwrite("        ", 1, padding, f) != padding)
    return false;
  for (size_t i = 0; i < n; i++)
    if (fwrite(tensors[i].data, 1, tensors[i].n_bytes, f) != tensors[i].n_bytes)
      return false;
  return fflush(f) == 0 && fsync(fileno(f)) == 0;
}

static ks_status
write_and_rename(const char *path, const char *temporary, const char *header,
                 const ks_st_tensor *tensors, size_t n, ks_error *err)
{
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  int fd = open(temporary, flags, 0666), saved_errno;
  bool written;
  FILE *f;

  /* What a process of this number left when it was killed: nobody else writes there. */
  if (fd < 0 && errno == EEXIST && unlink(temporary) == 0)
    fd = open(temporary, flags, 0666);
  f = fd >= 0 ? fdopen(fd, "wb") : NULL;
  written = f != NULL && write_content(f, header, tensors, n);
  saved_errno = errno;
  if (f != NULL) {
    written = fclose(f) == 0 && written;
  } else if (fd >= 0) {
    close(fd);
  }
  if (written && rename(temporary, path) == 0)
    return KS_OK;
  if (written)
    saved_errno = errno;
  if (fd >= 0)
    unlink(temporary);
  return ks_fail(err, KS_ERR_IO, "cannot write %s: %s", path, strerror(saved_errno));
}

ks_status
ks_safetensors_write(ks_alloc *a, const char *path, const ks_st_tensor *tensors, size_t n,
                     const char *const *metadata, ks_error *err)
{
  size_t n_temporary = strlen(path) + 32;
  char *temporary, *header;
  ks_status status;

  for (size_t i = 0; i < n; i++) {
    uint64_t n_bytes = 4;

    for (uint32_t d = 0; d < tensors[i].n_dims; d++)
      n_bytes *= tensors[i].shape[d];
    if (tensors[i].dtype != KS_DTYPE_F32 || n_bytes != tensors[i].n_bytes)
      return ks_fail(err, KS_ERR_ARG, "tensor %s is not f32 of its shape", tensors[i].name);
  }
  temporary = ks_mem_new(a, KS_MEM_HOST, n_temporary, 1);
  header = print_header(tensors, n, metadata);
  if (temporary == NULL || header == NULL) {
    status = ks_fail(err, KS_ERR_NOMEM, "no memory to write %s", path);
  } else {
    snprintf(temporary, n_temporary, "%s.%ld.part", path, (long)getpid());
    status = write_and_rename(path, temporary, header, tensors, n, err);
  }
  cJSON_free(header);
  ks_mem_free(temporary);
  return status;
}

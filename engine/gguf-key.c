/* gguf-key.c - keys of a GGUF file: reading them with every length checked, and typed access.
 * Values stay where they are in the file; a key only points at them.  String arrays are checked
 * when the file is opened and bounded again when they are walked, because a mapped file can change.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gguf-internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MIN_KEY_BYTES 13 /* length of the name, type, one byte of value */

/* Bytes of a value of fixed size, 0 for strings, arrays and unknown types. */
static size_t
type_bytes(uint32_t type)
{
  switch (type) {
  case KS_GGUF_U8:
  case KS_GGUF_I8:
  case KS_GGUF_BOOL:
    return 1;
  case KS_GGUF_U16:
  case KS_GGUF_I16:
    return 2;
  case KS_GGUF_U32:
  case KS_GGUF_I32:
  case KS_GGUF_F32:
    return 4;
  case KS_GGUF_U64:
  case KS_GGUF_I64:
  case KS_GGUF_F64:
    return 8;
  default:
    return 0;
  }
}

bool
ks_gguf_read_str(ks_reader *r, ks_gguf_str *out)
{
  size_t start = r->pos;
  uint64_t n_bytes;
  const unsigned char *data;

  if (!ks_reader_u64(r, &n_bytes) || !ks_reader_bytes(r, n_bytes, &data)) {
    r->pos = start;
    return false;
  }
  out->data = (const char *)data;
  out->n_bytes = (size_t)n_bytes;
  return true;
}

/* Length for "%.*s" of a name that may be huge or hold anything. */
static int
shown(ks_gguf_str s)
{
  return s.n_bytes < 80 ? (int)s.n_bytes : 80;
}

static ks_status
read_array(ks_reader *r, ks_gguf_key *key, ks_error *err)
{
  uint32_t elem_type;
  uint64_t n_elem;
  size_t size, start;
  bool fits;

  if (!ks_reader_u32(r, &elem_type) || !ks_reader_u64(r, &n_elem))
    return ks_fail(err, KS_ERR_FORMAT, "the file ends inside the key %.*s", shown(key->name),
                   key->name.data);
  size = type_bytes(elem_type);
  if (size == 0 && elem_type != KS_GGUF_STRING)
    return ks_fail(err, KS_ERR_UNSUPPORTED, "key %.*s is an array of type %u, which is not known",
                   shown(key->name), key->name.data, elem_type);
  start = r->pos;
  key->elem_type = (ks_gguf_type)elem_type;
  key->n_elem = n_elem;
  key->value = r->data + start;
  if (size > 0) {
    fits = n_elem <= ks_reader_left(r) / size && ks_reader_skip(r, n_elem * size);
  } else {
    ks_gguf_str s;

    fits = n_elem <= ks_reader_left(r) / 8;
    for (uint64_t i = 0; fits && i < n_elem; i++)
      fits = ks_gguf_read_str(r, &s);
  }
  if (!fits)
    return ks_fail(err, KS_ERR_FORMAT, "array %.*s is longer than the file", shown(key->name),
                   key->name.data);
  key->n_value_bytes = r->pos - start;
  return KS_OK;
}

static ks_status
read_key(ks_reader *r, ks_gguf_key *key, ks_error *err)
{
  uint32_t type;
  ks_gguf_str text;
  size_t size;
  bool fits;

  if (!ks_gguf_read_str(r, &key->name) || !ks_reader_u32(r, &type))
    return ks_fail(err, KS_ERR_FORMAT, "the file ends inside its list of keys");
  key->type = (ks_gguf_type)type;
  key->n_elem = 1;
  if (type == KS_GGUF_ARRAY)
    return read_array(r, key, err);
  if (type == KS_GGUF_STRING) {
    fits = ks_gguf_read_str(r, &text);
    if (fits) {
      key->value = (const unsigned char *)text.data;
      key->n_value_bytes = text.n_bytes;
    }
  } else {
    size = type_bytes(type);
    if (size == 0)
      return ks_fail(err, KS_ERR_FORMAT, "key %.*s has the type %u, which does not exist",
                     shown(key->name), key->name.data, type);
    fits = ks_reader_bytes(r, size, &key->value);
    key->n_value_bytes = size;
  }
  if (!fits)
    return ks_fail(err, KS_ERR_FORMAT, "the file ends inside the key %.*s", shown(key->name),
                   key->name.data);
  return KS_OK;
}

static ks_gguf_str
key_name(const void *list, uint32_t i)
{
  return ((const ks_gguf_key *)list)[i].name;
}

ks_status
ks_gguf_read_keys(ks_alloc *a, ks_gguf_part *part, ks_reader *r, uint64_t n_keys, ks_error *err)
{
  uint32_t twice;

  if (n_keys > ks_reader_left(r) / MIN_KEY_BYTES || n_keys >= UINT32_MAX)
    return ks_fail(err, KS_ERR_FORMAT, "the file is too short for its %llu keys",
                   (unsigned long long)n_keys);
  part->keys = ks_mem_new(a, KS_MEM_HOST, (size_t)n_keys, sizeof(*part->keys));
  part->key_order = ks_mem_new(a, KS_MEM_HOST, (size_t)n_keys, sizeof(*part->key_order));
  if (part->keys == NULL || part->key_order == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for %llu keys", (unsigned long long)n_keys);
  for (uint64_t i = 0; i < n_keys; i++) {
    ks_status status = read_key(r, &part->keys[i], err);

    if (status != KS_OK)
      return status;
  }
  part->n_keys = (size_t)n_keys;
  twice = ks_gguf_sort(part->keys, key_name, part->key_order, (uint32_t)n_keys);
  if (twice < n_keys)
    return ks_fail(err, KS_ERR_FORMAT, "key %.*s occurs twice", shown(part->keys[twice].name),
                   part->keys[twice].name.data);
  return KS_OK;
}

int
ks_gguf_str_compare(ks_gguf_str a, ks_gguf_str b)
{
  size_t n = a.n_bytes < b.n_bytes ? a.n_bytes : b.n_bytes;
  int order = n > 0 ? memcmp(a.data, b.data, n) : 0;

  if (order != 0)
    return order;
  return (a.n_bytes > b.n_bytes) - (a.n_bytes < b.n_bytes);
}

/* Lets order[i] sink to its place in a heap of n with the greatest name on top. */
static void
sift_down(const void *list, ks_gguf_name_fn get_name, uint32_t *order, size_t i, size_t n)
{
  for (;;) {
    size_t child = 2 * i + 1;
    uint32_t swapped = order[i];

    if (child >= n)
      return;
    if (child + 1 < n &&
        ks_gguf_str_compare(get_name(list, order[child]), get_name(list, order[child + 1])) < 0)
      child++;
    if (ks_gguf_str_compare(get_name(list, order[i]), get_name(list, order[child])) >= 0)
      return;
    order[i] = order[child];
    order[child] = swapped;
    i = child;
  }
}

uint32_t
ks_gguf_sort(const void *list, ks_gguf_name_fn get_name, uint32_t *order, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    order[i] = i;
  for (size_t i = n / 2; i-- > 0;)
    sift_down(list, get_name, order, i, n);
  for (size_t last = n; last-- > 1;) {
    uint32_t greatest = order[0];

    order[0] = order[last];
    order[last] = greatest;
    sift_down(list, get_name, order, 0, last);
  }
  for (uint32_t i = 1; i < n; i++)
    if (ks_gguf_str_compare(get_name(list, order[i - 1]), get_name(list, order[i])) == 0)
      return order[i];
  return n;
}

uint32_t
ks_gguf_search(const void *list, ks_gguf_name_fn get_name, const uint32_t *order, uint32_t n,
               const char *name)
{
  ks_gguf_str wanted = {name, strlen(name)};
  uint32_t low = 0, high = n;

  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int cmp = ks_gguf_str_compare(get_name(list, order[middle]), wanted);

    if (cmp == 0)
      return order[middle];
    if (cmp < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return n;
}

const ks_gguf_key *
ks_gguf_part_find_key(const ks_gguf_part *part, const char *name)
{
  uint32_t n = (uint32_t)part->n_keys;
  uint32_t i = ks_gguf_search(part->keys, key_name, part->key_order, n, name);

  return i < n ? &part->keys[i] : NULL;
}

static uint64_t
load_le(const unsigned char *p, size_t n)
{
  uint64_t value = 0;

  for (size_t i = 0; i < n; i++)
    value |= (uint64_t)p[i] << (8 * i);
  return value;
}

/* An integer value as sign and magnitude class: *out holds the bits of an i64, *out_is_big says
 * that it is a u64 above INT64_MAX. */
static bool
load_integer(ks_gguf_type type, const unsigned char *p, int64_t *out, bool *out_is_big)
{
  uint64_t bits;

  switch (type) {
  case KS_GGUF_I8:
    *out = (int8_t)p[0];
    break;
  case KS_GGUF_I16:
    *out = (int16_t)load_le(p, 2);
    break;
  case KS_GGUF_I32:
    *out = (int32_t)load_le(p, 4);
    break;
  case KS_GGUF_U8:
  case KS_GGUF_U16:
  case KS_GGUF_U32:
    *out = (int64_t)load_le(p, type_bytes(type));
    break;
  case KS_GGUF_I64:
  case KS_GGUF_U64:
    bits = load_le(p, 8);
    *out = (int64_t)bits;
    *out_is_big = type == KS_GGUF_U64 && bits > INT64_MAX;
    return true;
  default:
    return false;
  }
  *out_is_big = false;
  return true;
}

static bool
load_float(ks_gguf_type type, const unsigned char *p, double *out)
{
  uint64_t bits = load_le(p, type_bytes(type));
  uint32_t bits32 = (uint32_t)bits;
  float value;

  if (type == KS_GGUF_F64) {
    memcpy(out, &bits, sizeof(bits));
    return true;
  }
  if (type != KS_GGUF_F32)
    return false;
  memcpy(&value, &bits32, sizeof(bits32));
  *out = (double)value;
  return true;
}

bool
ks_gguf_part_get_u64(const ks_gguf_part *part, const char *name, uint64_t *out)
{
  const ks_gguf_key *key = ks_gguf_part_find_key(part, name);
  int64_t value;
  bool is_big;

  if (key == NULL || !load_integer(key->type, key->value, &value, &is_big) ||
      (value < 0 && !is_big))
    return false;
  *out = (uint64_t)value;
  return true;
}

bool
ks_gguf_get_u64(const ks_gguf *g, const char *name, uint64_t *out)
{
  const ks_gguf_key *key = ks_gguf_find_key(g, name);
  int64_t value;
  bool is_big;

  if (key == NULL || !load_integer(key->type, key->value, &value, &is_big) ||
      (value < 0 && !is_big))
    return false;
  *out = (uint64_t)value;
  return true;
}

bool
ks_gguf_get_u32(const ks_gguf *g, const char *name, uint32_t *out)
{
  uint64_t value;

  if (!ks_gguf_get_u64(g, name, &value) || value > UINT32_MAX)
    return false;
  *out = (uint32_t)value;
  return true;
}

bool
ks_gguf_get_f32(const ks_gguf *g, const char *name, float *out)
{
  const ks_gguf_key *key = ks_gguf_find_key(g, name);
  double value;

  if (key == NULL || !load_float(key->type, key->value, &value))
    return false;
  if (isfinite(value) && fabs(value) > (double)FLT_MAX)
    return false;
  *out = (float)value;
  return true;
}

bool
ks_gguf_get_bool(const ks_gguf *g, const char *name, bool *out)
{
  const ks_gguf_key *key = ks_gguf_find_key(g, name);

  if (key == NULL || key->type != KS_GGUF_BOOL)
    return false;
  *out = key->value[0] != 0;
  return true;
}

bool
ks_gguf_get_str(const ks_gguf *g, const char *name, ks_gguf_str *out)
{
  const ks_gguf_key *key = ks_gguf_find_key(g, name);

  if (key == NULL || key->type != KS_GGUF_STRING)
    return false;
  *out = (ks_gguf_str){(const char *)key->value, key->n_value_bytes};
  return true;
}

/* Where element i lies and of what type it is; a scalar is an array of one. */
static bool
locate(const ks_gguf_key *key, uint64_t i, ks_gguf_type *out_type, const unsigned char **out)
{
  ks_gguf_type type = key->type == KS_GGUF_ARRAY ? key->elem_type : key->type;
  size_t size = type_bytes(type);

  if (size == 0 || i >= key->n_elem)
    return false;
  *out_type = type;
  *out = key->value + (size_t)i * size;
  return true;
}

bool
ks_gguf_key_get_i64(const ks_gguf_key *key, uint64_t i, int64_t *out)
{
  const unsigned char *p;
  ks_gguf_type type;
  int64_t value;
  bool is_big = false;

  if (!locate(key, i, &type, &p))
    return false;
  if (type == KS_GGUF_BOOL)
    value = p[0] != 0;
  else if (!load_integer(type, p, &value, &is_big))
    return false;
  if (is_big)
    return false;
  *out = value;
  return true;
}

bool
ks_gguf_key_get_f64(const ks_gguf_key *key, uint64_t i, double *out)
{
  const unsigned char *p;
  ks_gguf_type type;

  return locate(key, i, &type, &p) && load_float(type, p, out);
}

bool
ks_gguf_key_next_str(const ks_gguf_key *key, size_t *cursor, ks_gguf_str *out)
{
  ks_reader r;

  if (key->type != KS_GGUF_ARRAY || key->elem_type != KS_GGUF_STRING ||
      *cursor > key->n_value_bytes)
    return false;
  ks_reader_init(&r, key->value, key->n_value_bytes);
  r.pos = *cursor;
  if (!ks_gguf_read_str(&r, out))
    return false;
  *cursor = r.pos;
  return true;
}

bool
ks_gguf_str_equal(ks_gguf_str s, const char *text)
{
  return ks_gguf_str_compare(s, (ks_gguf_str){text, strlen(text)}) == 0;
}

/* ks-torch-file.c - see ks-torch-file.h.
 * The zip is walked twice: for data.pkl, then for the elements, each storage once.  Memory grows
 * with the bytes that come out, not with what the file claims.  Source: docs/formats/gate.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-torch-file.h"

#include "app/ks-error.h"

#include <archive.h>
#include <archive_entry.h>
#include <math.h>
#include <string.h>

#define MAX_MEMBERS 65536u
#define MAX_TENSORS 4096u /* wanted ones: a gate has six a layer */
#define FIRST_BLOCK 65536u
#define PICKLE_ENDING "/data.pkl"

typedef struct {
  const guint8 *data;
  gsize n;
  char *folder;       /* of data.pkl, with its slash */
  GPtrArray *tensors; /* KsTorchTensor, wanted ones only */
  GPtrArray *arrays;  /* KsTorchArray, [tensors] */
  GError **error;
} Reader;

static gboolean G_GNUC_PRINTF (3, 4) fail (Reader *r, ks_status status, const char *format, ...)
{
  va_list args;
  ks_error err;

  va_start (args, format);
  ks_fail_va (&err, status, format, args);
  va_end (args);
  return ks_error_check (status, &err, r->error);
}

static struct archive *
open_zip (Reader *r)
{
  struct archive *zip = archive_read_new ();

  if (zip != NULL && archive_read_support_format_zip (zip) == ARCHIVE_OK &&
      archive_read_open_memory (zip, r->data, r->n) == ARCHIVE_OK)
    return zip;
  fail (r, KS_ERR_FORMAT, "the archive is damaged");
  archive_read_free (zip);
  return NULL;
}

/* Calls found for every member until it says FALSE (with or without an error). */
typedef gboolean (*MemberFunc) (Reader *r, struct archive *zip, const char *name, gboolean *out_ok);

static gboolean
walk (Reader *r, MemberFunc found)
{
  struct archive *zip = open_zip (r);
  struct archive_entry *entry;
  gboolean ok = zip != NULL, more = TRUE;
  guint n_member = 0;
  int code = ARCHIVE_OK;

  while (ok && more && (code = archive_read_next_header (zip, &entry)) >= ARCHIVE_WARN &&
         code != ARCHIVE_EOF) {
    const char *name = archive_entry_pathname (entry);

    if (n_member++ == MAX_MEMBERS)
      ok = fail (r, KS_ERR_UNSUPPORTED, "the archive has more than %u members", MAX_MEMBERS);
    else if (name != NULL)
      more = found (r, zip, name, &ok);
  }
  if (ok && more && code != ARCHIVE_EOF)
    ok = fail (r, KS_ERR_FORMAT, "the archive is damaged");
  archive_read_free (zip);
  return ok;
}

/* The whole member, which must have exactly n_wanted bytes; G_MAXUINT64: as many as there are, at
 * most max. (transfer full) */
static guint8 *
read_member (Reader *r, struct archive *zip, const char *what, guint64 n_wanted, gsize max,
             gsize *out_n)
{
  const gsize limit = n_wanted != G_MAXUINT64 ? (gsize)n_wanted : max;
  gsize room = MIN (FIRST_BLOCK, limit + 1), n = 0;
  guint8 *bytes = g_try_malloc (room);
  la_ssize_t got = 1;

  while (bytes != NULL && n <= limit && (got = archive_read_data (zip, bytes + n, room - n)) > 0) {
    n += (gsize)got;
    if (n == room && n <= limit) {
      guint8 *grown = g_try_realloc (bytes, room = MIN (2 * room, limit + 1));

      if (grown == NULL)
        g_free (bytes);
      bytes = grown;
    }
  }
  if (bytes == NULL) {
    fail (r, KS_ERR_NOMEM, "not enough memory to read %s", what);
    return NULL;
  }
  if (got == 0 && (n_wanted == G_MAXUINT64 || n == n_wanted)) {
    *out_n = n;
    return bytes;
  }
  g_free (bytes);
  if (got < 0)
    fail (r, KS_ERR_FORMAT, "%s is damaged", what);
  else if (n_wanted == G_MAXUINT64)
    fail (r, KS_ERR_UNSUPPORTED, "%s is longer than %zu bytes", what, max);
  else
    fail (r, KS_ERR_FORMAT, "%s has another length than its tensor", what);
  return NULL;
}

/* --- data.pkl --- */

/* data.pkl in a folder at the top, whatever its name; two would leave open which one counts. */
static gboolean
find_pickle (Reader *r, struct archive *zip, const char *name, gboolean *out_ok)
{
  const gsize n = strlen (name), n_ending = strlen (PICKLE_ENDING);
  const char *slash = strchr (name, '/');
  guint8 *pickle;
  gsize n_pickle = 0;

  if (slash == NULL || slash == name || n - (gsize)(slash - name) != n_ending ||
      strcmp (slash, PICKLE_ENDING) != 0)
    return TRUE;
  if (r->tensors != NULL) {
    *out_ok = fail (r, KS_ERR_FORMAT, "the archive holds two lists of tensors (data.pkl)");
    return FALSE;
  }
  r->folder = g_strndup (name, (gsize)(slash - name) + 1);
  pickle = read_member (r, zip, "the list of tensors (data.pkl)", G_MAXUINT64, KS_TORCH_MAX_PICKLE,
                        &n_pickle);
  r->tensors = pickle != NULL ? ks_torch_pickle_read (pickle, n_pickle, r->error) : NULL;
  g_free (pickle);
  *out_ok = r->tensors != NULL;
  return *out_ok;
}

/* --- elements --- */

static float
to_f32 (const guint8 *p, ks_dtype dtype)
{
  guint32 bits = (guint32)p[0] | (guint32)p[1] << 8;
  float value;

  if (dtype == KS_DTYPE_F16)
    return ks_f16_to_f32 ((uint16_t)bits);
  if (dtype == KS_DTYPE_BF16)
    return ks_bf16_to_f32 ((uint16_t)bits);
  bits |= (guint32)p[2] << 16 | (guint32)p[3] << 24;
  memcpy (&value, &bits, sizeof value);
  return value;
}

static guint
get_elem_bytes (const KsTorchTensor *tensor)
{
  return tensor->dtype == KS_DTYPE_F32 ? 4 : 2;
}

/* Elements in row-major order, wherever the strides find them. */
static gboolean
fill_array (Reader *r, const KsTorchTensor *tensor, const guint8 *bytes, KsTorchArray *array)
{
  const guint n_bytes = get_elem_bytes (tensor);
  guint64 index[KS_TORCH_MAX_DIMS] = {0}, at = tensor->offset;

  array->data = g_try_new (float, array->n_elem);
  if (array->data == NULL)
    return fail (r, KS_ERR_NOMEM, "not enough memory for tensor %s", array->name);
  for (gsize i = 0; i < array->n_elem; i++) {
    array->data[i] = to_f32 (bytes + at * n_bytes, tensor->dtype);
    if (!isfinite (array->data[i]))
      return fail (r, KS_ERR_FORMAT, "tensor %s holds a value that is no number (element %zu)",
                   array->name, i);
    for (guint d = tensor->n_dims; d > 0; d--) {
      at += tensor->stride[d - 1];
      if (++index[d - 1] < tensor->shape[d - 1])
        break;
      index[d - 1] = 0;
      at -= tensor->stride[d - 1] * tensor->shape[d - 1];
    }
  }
  return TRUE;
}

/* The tensors whose elements this member holds. */
static gboolean
find_elements (Reader *r, struct archive *zip, const char *name, gboolean *out_ok)
{
  const gsize n_folder = strlen (r->folder);
  guint8 *bytes = NULL;
  guint64 n_storage = 0;

  if (strncmp (name, r->folder, n_folder) != 0 || strncmp (name + n_folder, "data/", 5) != 0)
    return TRUE;
  for (guint i = 0; *out_ok && i < r->tensors->len; i++) {
    const KsTorchTensor *tensor = g_ptr_array_index (r->tensors, i);
    KsTorchArray *array = g_ptr_array_index (r->arrays, i);
    const guint64 n_bytes = tensor->n_storage * get_elem_bytes (tensor);
    gsize n;

    if (strcmp (name + n_folder + 5, tensor->storage) != 0)
      continue;
    if (array->data != NULL) {
      *out_ok =
          fail (r, KS_ERR_FORMAT, "the archive holds the data of tensor %s twice", tensor->name);
      break;
    }
    if (bytes == NULL) {
      n_storage = n_bytes;
      bytes = read_member (r, zip, tensor->name, n_bytes, 0, &n);
    }
    if (bytes != NULL && n_bytes != n_storage)
      *out_ok = fail (r, KS_ERR_FORMAT,
                      "tensor %s disagrees with others about the length of its "
                      "data",
                      tensor->name);
    else
      *out_ok = bytes != NULL && fill_array (r, tensor, bytes, array);
  }
  g_free (bytes);
  return *out_ok;
}

static gboolean
check_byte_order (Reader *r, struct archive *zip, const char *name, gboolean *out_ok)
{
  char text[4] = "";

  if (!g_str_has_prefix (name, r->folder) || strcmp (name + strlen (r->folder), "byteorder") != 0)
    return TRUE;
  if (archive_read_data (zip, text, sizeof text - 1) < 0 || strcmp (text, "big") == 0)
    *out_ok = fail (r, KS_ERR_UNSUPPORTED,
                    "the tensors are stored with the largest byte first; "
                    "save them on a common machine");
  return FALSE;
}

/* How many went. */
static guint
drop_others (GPtrArray *tensors, KsTorchWants wants)
{
  guint n = 0, n_all = tensors->len;

  for (guint i = 0; i < n_all; i++) {
    KsTorchTensor *tensor = g_ptr_array_index (tensors, i);

    if (wants (tensor->name)) { /* changes places with the first that goes */
      g_ptr_array_index (tensors, i) = g_ptr_array_index (tensors, n);
      g_ptr_array_index (tensors, n++) = tensor;
    }
  }
  g_ptr_array_set_size (tensors, (int)n);
  return n_all - n;
}

/* Drops what is not wanted and makes an empty array for each of the others. */
static gboolean
choose (Reader *r, KsTorchWants wants, guint *out_n_other)
{
  guint64 total = 0, n_byte = 0;

  *out_n_other = drop_others (r->tensors, wants);
  if (r->tensors->len > MAX_TENSORS)
    return fail (r, KS_ERR_UNSUPPORTED, "the file has more than %u tensors of a gate", MAX_TENSORS);
  r->arrays = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_torch_array_free);
  for (guint i = 0; i < r->tensors->len; i++) {
    const KsTorchTensor *tensor = g_ptr_array_index (r->tensors, i);
    KsTorchArray *array = g_new0 (KsTorchArray, 1);
    guint64 n = 1;

    g_ptr_array_add (r->arrays, array);
    array->name = g_strdup (tensor->name);
    array->dtype = tensor->dtype;
    array->n_dims = tensor->n_dims;
    memcpy (array->shape, tensor->shape, sizeof array->shape);
    for (guint d = 0; d < tensor->n_dims && n <= KS_TORCH_MAX_ELEMS; d++)
      n *= tensor->shape[d];   /* at most 2^29 times 2^32 */
    if (n > tensor->n_storage) /* by steps of 0 or steps that cross */
      return fail (r, KS_ERR_FORMAT, "tensor %s has more elements than its data", tensor->name);
    total += n <= KS_TORCH_MAX_ELEMS ? n : KS_TORCH_MAX_ELEMS + 1;
    n_byte = MAX (n_byte, tensor->n_storage);
    if (total > KS_TORCH_MAX_ELEMS || n_byte > KS_TORCH_MAX_ELEMS)
      return fail (r, KS_ERR_UNSUPPORTED, "the tensors take more than 2 GiB: that is no gate");
    array->n_elem = (gsize)n;
  }
  return TRUE;
}

static gboolean
check_all_found (Reader *r)
{
  for (guint i = 0; i < r->arrays->len; i++) {
    const KsTorchArray *array = g_ptr_array_index (r->arrays, i);

    if (array->data == NULL)
      return fail (r, KS_ERR_FORMAT, "the data of tensor %s is missing", array->name);
  }
  return TRUE;
}

static gboolean
read_file (Reader *r, KsTorchWants wants, guint *out_n_other)
{
  if (!walk (r, find_pickle))
    return FALSE;
  if (r->tensors == NULL)
    return fail (r, KS_ERR_UNSUPPORTED, "this zip is no PyTorch archive: it has no data.pkl");
  return walk (r, check_byte_order) && choose (r, wants, out_n_other) && walk (r, find_elements) &&
         check_all_found (r);
}

gboolean
ks_torch_file_sniff (const guint8 *data, gsize n)
{
  return n >= 4 && memcmp (data, "PK\3\4", 4) == 0;
}

void
ks_torch_array_free (KsTorchArray *array)
{
  if (array == NULL)
    return;
  g_free (array->name);
  g_free (array->data);
  g_free (array);
}

GPtrArray *
ks_torch_file_read (const guint8 *data, gsize n, KsTorchWants wants, guint *out_n_other,
                    GError **error)
{
  Reader r = {.data = data, .n = n, .error = error};
  const gboolean ok = read_file (&r, wants, out_n_other);

  g_free (r.folder);
  g_clear_pointer (&r.tensors, g_ptr_array_unref);
  if (!ok)
    g_clear_pointer (&r.arrays, g_ptr_array_unref);
  return r.arrays;
}

/* fuzz-torch.c - any bytes as a PyTorch archive, or as the list of tensors inside one: read or
 * refused with a sentence, nothing else.  What is read lies inside the bytes that were given. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-torch-file.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void
require(gboolean promise)
{
  if (!promise)
    abort();
}

static gboolean
is_wanted(const char *name)
{
  return strstr(name, "gate") != NULL;
}

static void
check_archive(const uint8_t *data, size_t n)
{
  g_autoptr(GError) error = NULL;
  guint n_other = 0;
  g_autoptr(GPtrArray) arrays = ks_torch_file_read(data, n, is_wanted, &n_other, &error);

  require((arrays == NULL) == (error != NULL));
  for (guint i = 0; arrays != NULL && i < arrays->len; i++) {
    const KsTorchArray *array = g_ptr_array_index(arrays, i);
    gsize n_elem = 1;

    require(is_wanted(array->name) && g_utf8_validate(array->name, -1, NULL));
    for (guint d = 0; d < array->n_dims; d++)
      n_elem *= array->shape[d];
    require(n_elem == array->n_elem);
    for (gsize e = 0; e < n_elem; e++)
      require(isfinite(array->data[e]));
  }
}

static void
check_pickle(const uint8_t *data, size_t n)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GPtrArray) tensors = ks_torch_pickle_read(data, n, &error);

  require((tensors == NULL) == (error != NULL));
  for (guint i = 0; tensors != NULL && i < tensors->len; i++) {
    const KsTorchTensor *tensor = g_ptr_array_index(tensors, i);
    guint64 last = tensor->offset;

    require(strpbrk(tensor->storage, "/.") == NULL);
    for (guint d = 0; d < tensor->n_dims; d++)
      last += (tensor->shape[d] - 1) * tensor->stride[d];
    require(last < tensor->n_storage);
  }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
  if (ks_torch_file_sniff(data, n))
    check_archive(data, n);
  else
    check_pickle(data, n);
  return 0;
}

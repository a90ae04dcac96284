/* ks-torch-pickle.h - the tensors that a PyTorch pickle (data.pkl) describes, and nothing else of
 * it.  A pickle is a program for a small stack machine that may call any function; this reader
 * knows the few names that stand for tensors, storages and ordered dictionaries, refuses every
 * other one by name and never calls anything.
 * The elements are not in the pickle: they lie beside it in the archive.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/dtype.h"

#include <glib.h>

G_BEGIN_DECLS

#define KS_TORCH_MAX_DIMS 4
/* A pickle of more bytes is refused: one of 10,000 tensors has some 2 MiB. */
#define KS_TORCH_MAX_PICKLE ((gsize)4 << 20)

typedef struct {
  char *name;        /* its key */
  char *storage;     /* member of data/ that holds the elements: letters, digits and _ */
  ks_dtype dtype;    /* F32, F16 or BF16 */
  guint64 n_storage; /* elements of the storage */
  guint64 offset;    /* of the first element; every element lies inside the storage */
  guint n_dims;
  guint64 shape[KS_TORCH_MAX_DIMS], stride[KS_TORCH_MAX_DIMS]; /* slowest first, in elements */
} KsTorchTensor;

void ks_torch_tensor_free (KsTorchTensor *tensor);

/* Tensors of the dictionary that the pickle is, and of dictionaries inside, in order; names occur
 * once.  KS_ENGINE_ERROR: KS_ERR_FORMAT for damaged bytes, KS_ERR_UNSUPPORTED for a pickle that
 * holds something else. (transfer full) */
GPtrArray *ks_torch_pickle_read (const guint8 *data, gsize n, GError **error);

G_END_DECLS

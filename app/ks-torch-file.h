/* ks-torch-file.h - tensors of a PyTorch archive (.pth, .pt: a zip of data.pkl and the elements
 * beside it), as f32.  No code of the file is ever run.  Member names are compared, never used as
 * paths.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-torch-pickle.h"

G_BEGIN_DECLS

/* All arrays of a file together: 2 GiB. */
#define KS_TORCH_MAX_ELEMS ((guint64)1 << 29)

typedef struct {
  char *name;
  ks_dtype dtype; /* in the file */
  guint n_dims;
  guint64 shape[KS_TORCH_MAX_DIMS]; /* slowest first */
  float *data;                      /* [n_elem], finite */
  gsize n_elem;
} KsTorchArray;

void ks_torch_array_free (KsTorchArray *array);

/* Whether n bytes begin like such an archive. */
gboolean ks_torch_file_sniff (const guint8 *data, gsize n);
typedef gboolean (*KsTorchWants) (const char *name);
/* Arrays of the tensors that wants picks, in the file's order; *out_n_other: how many it did not.
 * KS_ENGINE_ERROR: KS_ERR_FORMAT (damaged, NaN, Inf), KS_ERR_UNSUPPORTED, KS_ERR_NOMEM. (transfer
 * full) */
GPtrArray *ks_torch_file_read (const guint8 *data, gsize n, KsTorchWants wants, guint *out_n_other,
                               GError **error);

G_END_DECLS

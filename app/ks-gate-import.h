/* ks-gate-import.h - retention gates as their authors release them, to what the engine reads.
 * Sources: a PyTorch archive (trimkv_weights.pth) or safetensors, with a config.json beside it; the
 * gate's tensors (or LocRet's heads) are taken, everything else is left out.  What kind of gate it
 * is, and whether its layers are tied, is found from the tensors. Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/model.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* A model that gates are checked against: on the CPU, with one thread. */
typedef struct {
  ks_alloc *alloc;
  ks_backend be;
  ks_model *model;
} KsGateBase;

KsGateBase *ks_gate_base_open (const char *model_path, GError **error);
void ks_gate_base_free (KsGateBase *base);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsGateBase, ks_gate_base_free)

typedef struct {
  gboolean is_torch;                        /* else safetensors */
  const char *kind;                         /* "rg10": three layers a gate, "rg": two; "locret" */
  gboolean is_tied;                         /* the last of them is the same in every layer */
  guint n_layer, n_kv_head, n_embd, n_gate; /* by shapes; n_embd: what a gate reads of a token */
  guint64 n_params;                         /* tied ones once */
  guint n_tensor, n_other;                  /* of the gate, and left out */
  const char *dtype;                        /* of the first tensor, as stored: "BF16" */
  const char *base, *act, *config_path;     /* NULL = not said, no configuration */
  float least_bias,
      most_bias; /* of the last layers: how slowly everything is forgotten; LocRet 0 */
} KsGateFacts;

typedef struct _KsGateFile KsGateFile;

/* path: a file, or the folder of a release.  KS_ENGINE_ERROR: KS_ERR_FORMAT for a damaged file,
 * KS_ERR_UNSUPPORTED for one that holds no gate or another kind. */
KsGateFile *ks_gate_file_open (const char *path, GError **error);
void ks_gate_file_free (KsGateFile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsGateFile, ks_gate_file_free)
const char *ks_gate_file_get_path (KsGateFile *self);
const KsGateFacts *ks_gate_file_get_facts (KsGateFile *self);

/* Whether the gate belongs to base, by the engine's own check. */
gboolean ks_gate_file_check (KsGateFile *self, const KsGateBase *base, GError **error);
/* Writes out_path (which ends in .safetensors) and its .config.json after the same check, or
 * nothing.  G_IO_ERROR_EXISTS when out_path is there and not to be replaced. */
gboolean ks_gate_file_write (KsGateFile *self, const KsGateBase *base, const char *out_path,
                             gboolean replace, GError **error);

G_END_DECLS

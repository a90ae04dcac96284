/* ks-model-registry.h - finds model files and the retention gate that belongs to one; verifies
 * them. Models lie in the user's models folder (or anywhere, by path); gates in the program's data
 * folder, listed in gates/manifest.json with the SHA-256 of the model they were trained for.
 * Threads: main; ks_model_registry_hash may run anywhere. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-model-entry.h"

#include <gio/gio.h>

G_BEGIN_DECLS

#define KS_TYPE_MODEL_REGISTRY (ks_model_registry_get_type ())
G_DECLARE_FINAL_TYPE (KsModelRegistry, ks_model_registry, KS, MODEL_REGISTRY, GObject)

/* NULL = the usual folders. */
KsModelRegistry *ks_model_registry_new (const char *models_dir, const char *data_dir);
const char *ks_model_registry_get_models_dir (KsModelRegistry *self);

/* Text models in the models folder with their vision towers, by file name (KsModelEntry).  Files
 * that cannot be read are left out and named in *out_problems (strings; may be NULL). (transfer
 * full) */
GPtrArray *ks_model_registry_list (KsModelRegistry *self, GPtrArray **out_problems);
/* What is known of one file, wherever it lies. (transfer full) */
KsModelEntry *ks_model_registry_describe (KsModelRegistry *self, const char *path, GError **error);
/* A path, a file name or a model's name (case ignored, its beginning suffices when only one fits)
 * to a path; NULL = the default model.  KS_APP_ERROR_NO_MODEL with what to do. (transfer full) */
char *ks_model_registry_resolve (KsModelRegistry *self, const char *name, GError **error);

/* Gate for a model file, NULL when there is none or the search was cancelled (the hash of a large
 * file takes a while). (transfer full) */
char *ks_model_registry_find_gate (KsModelRegistry *self, const char *model_path,
                                   GCancellable *cancellable);

/* The vision tower that a model sees with: the one that was chosen for it, else the likeliest of
 * those in its folder that fit; NULL = it is blind. (transfer full) */
char *ks_model_registry_find_mmproj (KsModelRegistry *self, const char *model_path);
/* Choices of the user: model path -> path of its vision tower, "" = none (a{ss}; NULL = no
 * choices). */
void ks_model_registry_set_mmproj_choices (KsModelRegistry *self, GVariant *choices);

/* SHA-256 of a file in hex: remembered by path, size and time, or vouched for by the manifest
 * beside it in the same way; read anew when fresh. (transfer full) */
char *ks_model_registry_hash (KsModelRegistry *self, const char *path, gboolean fresh,
                              GCancellable *cancellable, GError **error);
/* What the SHA-256 of the file should be, by the manifests; NULL when it is not listed. (transfer
 * full) */
char *ks_model_registry_get_expected_hash (KsModelRegistry *self, const char *path);

/* Whether path can be run in at most budget_bytes (0 = the memory that is free now), by loading it.
 * FALSE with a sentence in error; *out_entries (may be NULL) gets the entries a stream could keep.
 */
gboolean ks_model_registry_check_fit (KsModelRegistry *self, const char *path, guint64 budget_bytes,
                                      double *out_entries, GError **error);

G_END_DECLS

/* ks-model-entry.h - what is known of one model file without running it.
 * Threads: immutable once made. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

#define KS_TYPE_MODEL_ENTRY (ks_model_entry_get_type ())
G_DECLARE_FINAL_TYPE (KsModelEntry, ks_model_entry, KS, MODEL_ENTRY, GObject)

/* Reads the head of path.  NULL and error when it is no model file. */
KsModelEntry *ks_model_entry_new (const char *path, GError **error);

const char *ks_model_entry_get_path (KsModelEntry *self);
const char *ks_model_entry_get_file_name (KsModelEntry *self);
/* The file's own name for the model, else the file name without its ending; of entries from the
 * registry the name in the program's manifest comes first. */
const char *ks_model_entry_get_name (KsModelEntry *self);
const char *ks_model_entry_get_arch (KsModelEntry *self);
/* The weight type that most bytes have ("Q4_1"). */
const char *ks_model_entry_get_quantisation (KsModelEntry *self);
const char *ks_model_entry_get_licence (KsModelEntry *self); /* or NULL */
/* Name of the chat format; *out_is_fallback when the model's own is not known. */
const char *ks_model_entry_get_template (KsModelEntry *self, gboolean *out_is_fallback);
guint64 ks_model_entry_get_n_bytes (KsModelEntry *self); /* all parts */
guint64 ks_model_entry_get_n_params (KsModelEntry *self);
guint ks_model_entry_get_n_ctx (KsModelEntry *self);
guint ks_model_entry_get_n_layer (KsModelEntry *self);
guint ks_model_entry_get_n_kv_head (KsModelEntry *self);
guint ks_model_entry_get_n_embd (KsModelEntry *self);
/* FALSE for a vision tower ("mmproj") and other files that no text comes out of. */
gboolean ks_model_entry_is_text_model (KsModelEntry *self);
/* A file that gives eyes to a model it belongs to. */
gboolean ks_model_entry_is_vision_tower (KsModelEntry *self);

/* Of entries from ks_model_registry_list: the vision tower that the model will see with, NULL =
 * it is blind; and all in its folder that would fit (paths, NULL-terminated, may be empty). */
const char *ks_model_entry_get_mmproj (KsModelEntry *self);
const char *const *ks_model_entry_get_mmproj_choices (KsModelEntry *self);
/* For the registry, before anybody else holds the entry. */
void ks_model_entry_set_name (KsModelEntry *self, const char *name);
void ks_model_entry_set_mmproj (KsModelEntry *self, const char *path, const char *const *choices);

G_END_DECLS

/* ks-settings.h - typed settings in keepsake/settings.ini under the user's configuration folder.
 * A missing file or key means the default; a damaged value is ignored, never an error.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

#define KS_TYPE_SETTINGS (ks_settings_get_type ())
G_DECLARE_FINAL_TYPE (KsSettings, ks_settings, KS, SETTINGS, GObject)

/* path NULL = the user's file. */
KsSettings *ks_settings_new (const char *path);
/* Writes the file (made with mode 0600) when something changed. */
gboolean ks_settings_save (KsSettings *self, GError **error);

/* Name or path of the model to use, NULL = the default model. (transfer full) */
char *ks_settings_dup_model (KsSettings *self);
void ks_settings_set_model (KsSettings *self, const char *model);
/* Memory targets as the user wrote them ("160MiB"), NULL = none. (transfer full) */
char *ks_settings_dup_budget (KsSettings *self);
void ks_settings_set_budget (KsSettings *self, const char *budget);
char *ks_settings_dup_kv_budget (KsSettings *self);
void ks_settings_set_kv_budget (KsSettings *self, const char *budget);
/* Threads to compute with, 0 = all physical cores. */
guint ks_settings_get_n_thread (KsSettings *self);
void ks_settings_set_n_thread (KsSettings *self, guint n_thread);
/* Longest answer in tokens before it stops and can be continued. */
guint ks_settings_get_max_tokens (KsSettings *self);
void ks_settings_set_max_tokens (KsSettings *self, guint max_tokens);

G_END_DECLS

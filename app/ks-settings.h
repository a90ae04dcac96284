/* ks-settings.h - typed settings of the window and the command line: GSettings over the schema in
 * data/, kept in keepsake/settings.ini under the user's configuration folder (mode 0600), so that
 * both programs share one file and need no settings service.
 * A missing file or key, a damaged or impossible value means the default, never an error.  Where
 * the schema is missing, everything reads as its default and "problem" says so.
 * Threads: main.  Changes are on the disk when a setter returns. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-session.h"

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct KsAnswerOptions KsAnswerOptions; /* app/ks-answer.h */

#define KS_TYPE_SETTINGS (ks_settings_get_type ())
G_DECLARE_FINAL_TYPE (KsSettings, ks_settings, KS, SETTINGS, GObject)

/* path NULL = the user's file, or nothing but memory when GSETTINGS_BACKEND=memory asks for that.
 */
KsSettings *ks_settings_new (const char *path);
/* FALSE: a change since the last call could not be written, and why. */
gboolean ks_settings_save (KsSettings *self, GError **error);
/* Why changes are not kept, or nothing can be set at all; NULL = fine. */
const char *ks_settings_get_problem (KsSettings *self);
/* For g_settings_bind; keys as in the schema.  NULL when the schema is missing. (transfer none) */
GSettings *ks_settings_get_gsettings (KsSettings *self);

/* Name or path of the model to use, NULL = the default model. (transfer full) */
char *ks_settings_dup_model (KsSettings *self);
void ks_settings_set_model (KsSettings *self, const char *model);
/* Memory targets as the user wrote them ("160MiB"), NULL = none. (transfer full) */
char *ks_settings_dup_budget (KsSettings *self);
void ks_settings_set_budget (KsSettings *self, const char *budget);
char *ks_settings_dup_kv_budget (KsSettings *self);
void ks_settings_set_kv_budget (KsSettings *self, const char *budget);
/* Name of a policy, NULL = by the model. (transfer full) */
char *ks_settings_dup_policy (KsSettings *self);
void ks_settings_set_policy (KsSettings *self, const char *policy);
/* Instruction in front of new sessions, NULL = the model's own. (transfer full) */
char *ks_settings_dup_system_prompt (KsSettings *self);
void ks_settings_set_system_prompt (KsSettings *self, const char *text);
/* Threads to compute with, 0 = all physical cores; at most 1024. */
guint ks_settings_get_n_thread (KsSettings *self);
void ks_settings_set_n_thread (KsSettings *self, guint n_thread);
/* Exact arithmetic in place of the fast one. */
gboolean ks_settings_get_exact (KsSettings *self);
/* Longest answer in tokens before it stops and can be continued: 1 to 1,000,000. */
guint ks_settings_get_max_tokens (KsSettings *self);
void ks_settings_set_max_tokens (KsSettings *self, guint max_tokens);
/* Sampling: see engine/sampler.h for what the numbers do. */
double ks_settings_get_temperature (KsSettings *self);
double ks_settings_get_top_p (KsSettings *self);
double ks_settings_get_min_p (KsSettings *self);
double ks_settings_get_repeat_penalty (KsSettings *self);
guint ks_settings_get_top_k (KsSettings *self);
/* -1 = another one for each answer. */
gint64 ks_settings_get_seed (KsSettings *self);

/* Vision towers that were chosen: a{ss}, full path of a model -> path of its mmproj file, "" = it
 * stays blind. (transfer full) */
GVariant *ks_settings_dup_mmproj_choices (KsSettings *self);
/* mmproj NULL = no choice: the likeliest in the model's folder. */
void ks_settings_set_mmproj (KsSettings *self, const char *model_path, const char *mmproj);
/* Pixels of a picture at least and at most, for models of free sizes; 0 = the model's own. */
guint ks_settings_get_picture_min_pixels (KsSettings *self);
guint ks_settings_get_picture_max_pixels (KsSettings *self);
/* FALSE: models that look at tiles see the whole picture once. */
gboolean ks_settings_get_split_pictures (KsSettings *self);
/* For pictures that were looked at: in memory, inside the target, and on the disk. */
guint64 ks_settings_get_embedding_memory_bytes (KsSettings *self);
guint64 ks_settings_get_embedding_disk_bytes (KsSettings *self);
guint64 ks_settings_get_snapshot_memory_bytes (KsSettings *self);
guint64 ks_settings_get_snapshot_disk_bytes (KsSettings *self);
/* Fewer tokens of pictures as the user wrote it, see ks-prune.h; NULL = all. (transfer full) */
char *ks_settings_dup_visionzip (KsSettings *self);
char *ks_settings_dup_fastv (KsSettings *self);
/* Whether words in attached pictures and scanned pages are recognised. */
gboolean ks_settings_get_recognise_text (KsSettings *self);
/* Frames of a video that go to the model. */
guint ks_settings_get_video_frames (KsSettings *self);

/* What a key reads as where there is no schema; NULL for no key of ours.  (transfer full) */
GVariant *ks_settings_dup_built_in (const char *key);
guint ks_settings_get_n_built_in (void); /* keys */

/* How an answer is asked for: sampling and length, a session's own values (NULL = none) in front;
 * those that are impossible count as not given. (transfer full) */
KsAnswerOptions *ks_settings_make_answer_options (KsSettings *self,
                                                  const KsSessionSettings *override);

G_END_DECLS

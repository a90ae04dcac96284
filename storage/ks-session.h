/* ks-session.h - value object: one stored session and its settings.
 * Owner: whoever holds a reference; changes are written only by KsStore.
 * Threads: main.  Source: docs/formats/schema.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/* What an answer depends on; NULL strings and -1 mean "as the program's settings say". */
typedef struct {
  char *model; /* name or path as the user chose it */
  char *system_prompt;
  char *policy;        /* ks_policy_get_name () */
  gint64 budget_bytes; /* total target; -1 = default */
  gint64 kv_budget_bytes;
  double temperature, top_p, min_p, repeat_penalty;
  gint top_k;
  gint64 seed;
  gint max_tokens;
} KsSessionSettings;

KsSessionSettings *ks_session_settings_new (void); /* everything at default */
KsSessionSettings *ks_session_settings_copy (const KsSessionSettings *settings);
void ks_session_settings_free (KsSessionSettings *settings);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsSessionSettings, ks_session_settings_free)

#define KS_TYPE_SESSION (ks_session_get_type ())
G_DECLARE_FINAL_TYPE (KsSession, ks_session, KS, SESSION, GObject)

/* Properties, all notify: "id" (gint64), "title" (string), "created-us", "updated-us" (gint64, µs
 * since 1970), "n-messages" (guint), "snippet" (string, of a search hit; may be NULL). */
KsSession *ks_session_new (gint64 id, const char *title, gint64 created_us, gint64 updated_us,
                           guint n_messages);
gint64 ks_session_get_id (KsSession *self);
const char *ks_session_get_title (KsSession *self);
void ks_session_set_title (KsSession *self, const char *title);
gint64 ks_session_get_created_us (KsSession *self);
gint64 ks_session_get_updated_us (KsSession *self);
void ks_session_set_updated_us (KsSession *self, gint64 updated_us);
guint ks_session_get_n_messages (KsSession *self);
void ks_session_set_n_messages (KsSession *self, guint n_messages);
const char *ks_session_get_snippet (KsSession *self);
void ks_session_set_snippet (KsSession *self, const char *snippet);

G_END_DECLS

/* ks-store-sessions.c - sessions and their settings. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-store-internal.h"

#define SESSION_COLUMNS "id, title, created_us, updated_us, n_messages"

static gboolean
fail_not_found (gint64 id, GError **error)
{
  g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND,
               "There is no session %" G_GINT64_FORMAT ".", id);
  return FALSE;
}

KsSession *
ks_store_read_session (KsStatement *statement)
{
  g_autofree char *title = ks_statement_dup_text (statement, 1);

  return ks_session_new (ks_statement_get_int (statement, 0), title,
                         ks_statement_get_int (statement, 2), ks_statement_get_int (statement, 3),
                         (guint)ks_statement_get_int (statement, 4));
}

/* All rows of a statement that starts with the session columns. */
static GPtrArray *
read_sessions (KsStatement *statement, GError **error)
{
  g_autoptr (GPtrArray) sessions = g_ptr_array_new_with_free_func (g_object_unref);
  GError *local = NULL;

  if (statement == NULL)
    return NULL;
  while (ks_statement_step (statement, &local))
    g_ptr_array_add (sessions, ks_store_read_session (statement));
  if (local == NULL)
    return g_steal_pointer (&sessions);
  g_propagate_error (error, local);
  return NULL;
}

GPtrArray *
ks_store_list_sessions (KsStore *self, guint offset, guint limit, GError **error)
{
  g_autoptr (KsStatement) statement = NULL;

  g_return_val_if_fail (KS_IS_STORE (self), NULL);
  statement = ks_database_query (self->database, error,
                                 "SELECT " SESSION_COLUMNS " FROM session"
                                 " WHERE deleted_us IS NULL ORDER BY updated_us DESC, id DESC"
                                 " LIMIT ?1 OFFSET ?2",
                                 "ii", limit > 0 ? (gint64)limit : -1, (gint64)offset);
  return read_sessions (statement, error);
}

static gboolean
write_settings (KsStore *self, gint64 id, const KsSessionSettings *s, GError **error)
{
  return ks_database_run (self->database, error,
                          "UPDATE session SET model = ?2, system_prompt = ?3, policy = ?4,"
                          " budget_bytes = ?5, kv_budget_bytes = ?6, temperature = ?7, top_p = ?8,"
                          " min_p = ?9, repeat_penalty = ?10, top_k = ?11, seed = ?12,"
                          " max_tokens = ?13 WHERE id = ?1 AND deleted_us IS NULL",
                          "isssIIDDDDIII", id, s->model, s->system_prompt, s->policy,
                          s->budget_bytes, s->kv_budget_bytes, s->temperature, s->top_p, s->min_p,
                          s->repeat_penalty, (gint64)s->top_k, s->seed, (gint64)s->max_tokens) &&
         (ks_database_get_n_changes (self->database) == 1 || fail_not_found (id, error));
}

gint64
ks_store_insert_session (KsStore *self, const char *title, gint64 created_us, gint64 updated_us,
                         const KsSessionSettings *settings, GError **error)
{
  gint64 id;

  if (!ks_database_run (self->database, error,
                        "INSERT INTO session (title, created_us, updated_us) VALUES (?1, ?2, ?3)",
                        "sii", title != NULL ? title : "", created_us, updated_us))
    return 0;
  id = ks_database_get_last_id (self->database);
  return settings == NULL || write_settings (self, id, settings, error) ? id : 0;
}

KsSession *
ks_store_add_session (KsStore *self, const char *title, const KsSessionSettings *settings,
                      GError **error)
{
  gint64 now = g_get_real_time (), id;

  g_return_val_if_fail (KS_IS_STORE (self), NULL);
  if (!ks_database_begin (self->database, error))
    return NULL;
  id = ks_store_insert_session (self, title, now, now, settings, error);
  if (!ks_database_end (self->database, id != 0, error))
    return NULL;
  return ks_store_get_session (self, id, error);
}

KsSession *
ks_store_get_session (KsStore *self, gint64 id, GError **error)
{
  g_autoptr (KsStatement) statement = NULL;
  g_autoptr (GPtrArray) found = NULL;

  g_return_val_if_fail (KS_IS_STORE (self), NULL);
  statement = ks_database_query (
      self->database, error,
      "SELECT " SESSION_COLUMNS " FROM session WHERE id = ?1 AND deleted_us IS NULL", "i", id);
  found = read_sessions (statement, error);
  if (found == NULL)
    return NULL;
  if (found->len == 1)
    return g_object_ref (g_ptr_array_index (found, 0));
  fail_not_found (id, error);
  return NULL;
}

/* Sessions with that title, or whose title begins so; newest first, two are enough to know. */
static GPtrArray *
find_titles (KsStore *self, const char *text, gboolean whole, GError **error)
{
  g_autoptr (KsStatement) statement =
      ks_database_query (self->database, error,
                         "SELECT " SESSION_COLUMNS " FROM session WHERE deleted_us IS NULL AND"
                         " CASE WHEN ?2 THEN title = ?1"
                         " ELSE lower (substr (title, 1, length (?1))) = lower (?1) END"
                         " ORDER BY updated_us DESC, id DESC LIMIT 2",
                         "si", text, (gint64)whole);

  return read_sessions (statement, error);
}

KsSession *
ks_store_find_session (KsStore *self, const char *text, GError **error)
{
  g_autoptr (GPtrArray) found = NULL;
  gint64 id = 0;

  g_return_val_if_fail (KS_IS_STORE (self), NULL);
  g_return_val_if_fail (text != NULL, NULL);
  if (g_ascii_string_to_signed (text, 10, 1, G_MAXINT64, &id, NULL)) {
    KsSession *session = ks_store_get_session (self, id, NULL);

    if (session != NULL)
      return session;
  }
  found = find_titles (self, text, TRUE, error);
  if (found != NULL && found->len == 0) {
    g_ptr_array_unref (found);
    found = find_titles (self, text, FALSE, error);
  }
  if (found == NULL)
    return NULL;
  if (found->len == 1)
    return g_object_ref (g_ptr_array_index (found, 0));
  if (found->len == 0)
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND,
                 "There is no session named \"%s\".", text);
  else
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FAILED,
                 "Several sessions are named \"%s\": use the number.", text);
  return NULL;
}

gboolean
ks_store_rename_session (KsStore *self, gint64 id, const char *title, GError **error)
{
  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  g_return_val_if_fail (title != NULL, FALSE);
  return ks_database_run (self->database, error,
                          "UPDATE session SET title = ?2 WHERE id = ?1 AND deleted_us IS NULL",
                          "is", id, title) &&
         (ks_database_get_n_changes (self->database) == 1 || fail_not_found (id, error));
}

static gboolean
mark_deleted (KsStore *self, gint64 id, GError **error)
{
  if (ks_store_is_locked_elsewhere (self, id, NULL)) {
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_LOCKED,
                 "Another Keepsake is answering in this session: stop it, then delete.");
    return FALSE;
  }
  return ks_database_run (self->database, error,
                          "UPDATE session SET deleted_us = ?2 WHERE id = ?1 AND deleted_us IS NULL",
                          "ii", id, g_get_real_time ()) &&
         (ks_database_get_n_changes (self->database) == 1 || fail_not_found (id, error));
}

gboolean
ks_store_delete_session (KsStore *self, gint64 id, GError **error)
{
  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  if (!ks_database_begin (self->database, error) ||
      !ks_database_end (self->database, mark_deleted (self, id, error), error))
    return FALSE;
  g_hash_table_add (self->marked, g_memdup2 (&id, sizeof id));
  return TRUE;
}

gboolean
ks_store_restore_session (KsStore *self, gint64 id, GError **error)
{
  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  if (!ks_database_run (
          self->database, error,
          "UPDATE session SET deleted_us = NULL WHERE id = ?1 AND deleted_us IS NOT NULL", "i", id))
    return FALSE;
  g_hash_table_remove (self->marked, &id);
  return ks_database_get_n_changes (self->database) == 1 || fail_not_found (id, error);
}

KsSessionSettings *
ks_store_get_settings (KsStore *self, gint64 session, GError **error)
{
  g_autoptr (KsStatement) statement = NULL;
  g_autoptr (KsSessionSettings) settings = ks_session_settings_new ();
  GError *local = NULL;

  g_return_val_if_fail (KS_IS_STORE (self), NULL);
  statement = ks_database_query (self->database, error,
                                 "SELECT model, system_prompt, policy, budget_bytes,"
                                 " kv_budget_bytes, temperature, top_p, min_p, repeat_penalty,"
                                 " top_k, seed, max_tokens FROM session"
                                 " WHERE id = ?1 AND deleted_us IS NULL",
                                 "i", session);
  if (statement == NULL)
    return NULL;
  if (!ks_statement_step (statement, &local)) {
    if (local != NULL)
      g_propagate_error (error, local);
    else
      fail_not_found (session, error);
    return NULL;
  }
  settings->model = ks_statement_dup_text (statement, 0);
  settings->system_prompt = ks_statement_dup_text (statement, 1);
  settings->policy = ks_statement_dup_text (statement, 2);
  settings->budget_bytes = ks_statement_get_option (statement, 3);
  settings->kv_budget_bytes = ks_statement_get_option (statement, 4);
  settings->temperature = ks_statement_get_option_double (statement, 5);
  settings->top_p = ks_statement_get_option_double (statement, 6);
  settings->min_p = ks_statement_get_option_double (statement, 7);
  settings->repeat_penalty = ks_statement_get_option_double (statement, 8);
  settings->top_k = (gint)ks_statement_get_option (statement, 9);
  settings->seed = ks_statement_get_option (statement, 10);
  settings->max_tokens = (gint)ks_statement_get_option (statement, 11);
  return g_steal_pointer (&settings);
}

gboolean
ks_store_set_settings (KsStore *self, gint64 session, const KsSessionSettings *settings,
                       GError **error)
{
  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  g_return_val_if_fail (settings != NULL, FALSE);
  return write_settings (self, session, settings, error);
}

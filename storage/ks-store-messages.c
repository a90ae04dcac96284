/* ks-store-messages.c - messages, branches and attachments.
 * A session's messages form trees; session.leaf is the end of the active path, and each message on
 * it remembers its active child, so that a branch is found again where it was left. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-store-internal.h"

#define MESSAGE_COLUMNS                                                                            \
  "m.id, m.parent, m.role, m.state, m.text, m.error, m.n_tokens, m.created_us,"                    \
  " m.pinned"

/* Numbers are clamped: the file may have been edited by something else. */
static KsMessage *
read_message (KsStatement *statement)
{
  g_autofree char *text = ks_statement_dup_text (statement, 4);
  g_autofree char *problem = ks_statement_dup_text (statement, 5);
  KsMessage *message = ks_message_new (
      ks_statement_get_int (statement, 0), ks_statement_get_int (statement, 1),
      (KsMessageRole)CLAMP (ks_statement_get_int (statement, 2), 0, KS_MESSAGE_ASSISTANT), text,
      ks_statement_get_int (statement, 7));

  ks_message_set_state (
      message, (KsMessageState)CLAMP (ks_statement_get_int (statement, 3), 0, KS_MESSAGE_FAILED));
  ks_message_set_error (message, problem);
  ks_message_set_n_tokens (message, (guint)ks_statement_get_int (statement, 6));
  ks_message_set_pinned (message, NULL, ks_statement_get_int (statement, 8) != 0);
  return message;
}

gboolean
ks_store_read_attachments (KsStore *self, KsMessage *message, GError **error)
{
  g_autoptr (KsStatement) statement =
      ks_database_query (self->database, error,
                         "SELECT kind, name, hash, n_bytes, text_hash, n_pages, width_px,"
                         " height_px, reading, duration_us, pinned FROM attachment"
                         " WHERE message = ?1 ORDER BY id",
                         "i", ks_message_get_id (message));
  GError *local = NULL;

  if (statement == NULL)
    return FALSE;
  while (ks_statement_step (statement, &local)) {
    g_autofree char *name = ks_statement_dup_text (statement, 1);
    g_autofree char *hash = ks_statement_dup_text (statement, 2);
    g_autofree char *text_hash = ks_statement_dup_text (statement, 4);
    g_autofree char *reading = ks_statement_dup_text (statement, 8);
    g_autoptr (KsAttachment) read = NULL;
    g_autoptr (KsAttachment) attachment = ks_attachment_new (
        (KsAttachmentKind)CLAMP (ks_statement_get_int (statement, 0), 0, KS_N_ATTACHMENT_KIND - 1),
        name, hash, (guint64)ks_statement_get_int (statement, 3), text_hash,
        (guint)ks_statement_get_int (statement, 5), (guint)ks_statement_get_int (statement, 6),
        (guint)ks_statement_get_int (statement, 7));

    read = ks_attachment_copy_with (attachment, reading, text_hash,
                                    ks_statement_get_int (statement, 9));
    ks_message_add_attachment (message, read);
    if (ks_statement_get_int (statement, 10) != 0)
      ks_message_set_pinned (message, hash, TRUE);
  }
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, local);
  return FALSE;
}

/* has_branch: columns 9 and 10 are the number among siblings and their count. */
static GPtrArray *
read_messages (KsStore *self, KsStatement *statement, gboolean has_branch, GError **error)
{
  g_autoptr (GPtrArray) messages = g_ptr_array_new_with_free_func (g_object_unref);
  GError *local = NULL;

  if (statement == NULL)
    return NULL;
  while (ks_statement_step (statement, &local)) {
    KsMessage *message = read_message (statement);

    g_ptr_array_add (messages, message);
    if (has_branch)
      ks_message_set_branch (message, (guint)ks_statement_get_int (statement, 9),
                             (guint)ks_statement_get_int (statement, 10));
    if (!ks_store_read_attachments (self, message, error))
      return NULL;
  }
  if (local == NULL)
    return g_steal_pointer (&messages);
  g_propagate_error (error, local);
  return NULL;
}

GPtrArray *
ks_store_list_messages (KsStore *self, gint64 session, GError **error)
{
  g_autoptr (KsSession) known = NULL;
  g_autoptr (KsStatement) statement = NULL;

  g_return_val_if_fail (KS_IS_STORE (self), NULL);
  known = ks_store_get_session (self, session, error);
  if (known == NULL)
    return NULL;
  /* A parent is always older than its child: the walk ends also in a file somebody edited. */
  statement = ks_database_query (
      self->database, error,
      "WITH RECURSIVE path (id, parent) AS ("
      " SELECT m.id, m.parent FROM message m JOIN session s ON s.leaf = m.id AND s.id = m.session"
      " WHERE s.id = ?1"
      " UNION ALL SELECT m.id, m.parent FROM message m JOIN path p ON m.id = p.parent"
      " WHERE m.id < p.id AND m.session = ?1)"
      "SELECT " MESSAGE_COLUMNS ","
      " (SELECT count (*) FROM message b"
      "  WHERE b.session = m.session AND b.parent IS m.parent AND b.id < m.id),"
      " (SELECT count (*) FROM message b WHERE b.session = m.session AND b.parent IS m.parent)"
      " FROM path JOIN message m ON m.id = path.id ORDER BY m.id",
      "i", session);
  return read_messages (self, statement, TRUE, error);
}

gint64
ks_store_get_leaf (KsStore *self, gint64 session)
{
  return ks_database_get_int (self->database, 0, "SELECT leaf FROM session WHERE id = ?1", "i",
                              session);
}

gint64
ks_store_get_active_child (KsStore *self, gint64 message)
{
  return ks_database_get_int (self->database, 0, "SELECT active_child FROM message WHERE id = ?1",
                              "i", message);
}

gboolean
ks_store_set_active_child (KsStore *self, gint64 message, gint64 child, GError **error)
{
  return ks_database_run (self->database, error,
                          "UPDATE message SET active_child = ?2 WHERE id = ?1", "ii", message,
                          child);
}

GPtrArray *
ks_store_list_all_messages (KsStore *self, gint64 session, GError **error)
{
  g_autoptr (KsStatement) statement = ks_database_query (
      self->database, error,
      "SELECT " MESSAGE_COLUMNS " FROM message m WHERE m.session = ?1 ORDER BY m.id", "i", session);

  return read_messages (self, statement, FALSE, error);
}

static gboolean
fail_not_found (const char *what, gint64 id, GError **error)
{
  g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND,
               "There is no %s %" G_GINT64_FORMAT ".", what, id);
  return FALSE;
}

static gboolean
insert_attachment (KsStore *self, gint64 message, KsAttachment *a, gboolean check_blobs,
                   GError **error)
{
  const char *hash = ks_attachment_get_hash (a), *text_hash = ks_attachment_get_text_hash (a);

  if (check_blobs && (!ks_blob_store_has (self->blobs, hash) ||
                      (text_hash != NULL && !ks_blob_store_has (self->blobs, text_hash)))) {
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND,
                 "The content of \"%s\" is not stored: attach the file again.",
                 ks_attachment_get_name (a));
    return FALSE;
  }
  return ks_database_run (
      self->database, error,
      "INSERT INTO attachment (message, kind, name, hash, n_bytes, text_hash,"
      " n_pages, width_px, height_px, reading, duration_us)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
      "iissisiiisi", message, (gint64)ks_attachment_get_kind (a), ks_attachment_get_name (a), hash,
      (gint64)ks_attachment_get_n_bytes (a), text_hash, (gint64)ks_attachment_get_n_pages (a),
      (gint64)ks_attachment_get_width_px (a), (gint64)ks_attachment_get_height_px (a),
      ks_attachment_get_reading (a), ks_attachment_get_duration_us (a));
}

gint64
ks_store_insert_message (KsStore *self, const KsMessageRow *row, gboolean check_blobs,
                         GError **error)
{
  gint64 id;

  if (!ks_database_run (self->database, error,
                        "INSERT INTO message (session, parent, role, state, text, error, n_tokens,"
                        " created_us) VALUES (?1, nullif (?2, 0), ?3, ?4, ?5, ?6, ?7, ?8)",
                        "iiiissii", row->session, row->parent, (gint64)row->role,
                        (gint64)row->state, row->text != NULL ? row->text : "", row->error,
                        (gint64)row->n_tokens, row->created_us))
    return 0;
  id = ks_database_get_last_id (self->database);
  for (guint i = 0; row->attachments != NULL && i < row->attachments->len; i++)
    if (!insert_attachment (self, id, g_ptr_array_index (row->attachments, i), check_blobs, error))
      return 0;
  if (!ks_database_run (self->database, error,
                        "UPDATE session SET n_messages = n_messages + 1 WHERE id = ?1", "i",
                        row->session))
    return 0;
  return id;
}

gboolean
ks_store_set_leaf (KsStore *self, gint64 session, gint64 leaf, GError **error)
{
  return ks_database_run (
             self->database, error,
             "WITH RECURSIVE path (id, child) AS ("
             " SELECT m.parent, m.id FROM message m WHERE m.id = ?1"
             " UNION ALL SELECT m.parent, m.id FROM message m JOIN path p ON m.id = p.id"
             " WHERE m.id < p.child)"
             "UPDATE message SET active_child = path.child FROM path"
             " WHERE message.id = path.id AND message.active_child <> path.child",
             "i", leaf) &&
         ks_database_run (self->database, error, "UPDATE session SET leaf = ?2 WHERE id = ?1", "ii",
                          session, leaf);
}

static gint64
append (KsStore *self, const KsMessageRow *row, GError **error)
{
  gint64 id;

  if (ks_database_get_int (self->database, 0,
                           "SELECT 1 FROM session WHERE id = ?1 AND deleted_us IS NULL", "i",
                           row->session) == 0) {
    fail_not_found ("session", row->session, error);
    return 0;
  }
  if (row->parent != 0 &&
      ks_database_get_int (self->database, 0,
                           "SELECT 1 FROM message WHERE id = ?1 AND session = ?2", "ii",
                           row->parent, row->session) == 0) {
    fail_not_found ("message", row->parent, error);
    return 0;
  }
  id = ks_store_insert_message (self, row, TRUE, error);
  if (id == 0 || !ks_store_set_leaf (self, row->session, id, error) ||
      !ks_database_run (self->database, error, "UPDATE session SET updated_us = ?2 WHERE id = ?1",
                        "ii", row->session, row->created_us))
    return 0;
  return id;
}

/* One message with its place among its siblings. */
static KsMessage *
get_message (KsStore *self, gint64 id, GError **error)
{
  g_autoptr (KsStatement) statement = ks_database_query (
      self->database, error,
      "SELECT " MESSAGE_COLUMNS ","
      " (SELECT count (*) FROM message b"
      "  WHERE b.session = m.session AND b.parent IS m.parent AND b.id < m.id),"
      " (SELECT count (*) FROM message b WHERE b.session = m.session AND b.parent IS m.parent)"
      " FROM message m WHERE m.id = ?1",
      "i", id);
  g_autoptr (GPtrArray) messages = read_messages (self, statement, TRUE, error);

  if (messages == NULL)
    return NULL;
  if (messages->len == 1)
    return g_object_ref (g_ptr_array_index (messages, 0));
  fail_not_found ("message", id, error);
  return NULL;
}

KsMessage *
ks_store_add_message (KsStore *self, gint64 session, gint64 parent, KsMessageRole role,
                      KsMessageState state, const char *text, GPtrArray *attachments,
                      GError **error)
{
  KsMessageRow row = {.session = session,
                      .parent = parent,
                      .created_us = g_get_real_time (),
                      .role = role,
                      .state = state,
                      .text = text,
                      .attachments = attachments};
  gint64 id;

  g_return_val_if_fail (KS_IS_STORE (self), NULL);
  if (!ks_database_begin (self->database, error))
    return NULL;
  id = append (self, &row, error);
  if (!ks_database_end (self->database, id != 0, error))
    return NULL;
  return get_message (self, id, error);
}

static gboolean
update (KsStore *self, gint64 message, const char *text, KsMessageState state, guint n_tokens,
        const char *problem, GError **error)
{
  if (!ks_database_run (self->database, error,
                        "UPDATE message SET text = ?2, state = ?3, n_tokens = ?4, error = ?5"
                        " WHERE id = ?1",
                        "isiis", message, text != NULL ? text : "", (gint64)state, (gint64)n_tokens,
                        problem))
    return FALSE;
  if (ks_database_get_n_changes (self->database) != 1)
    return fail_not_found ("message", message, error);
  return ks_database_run (self->database, error,
                          "UPDATE session SET updated_us = ?2"
                          " WHERE id = (SELECT session FROM message WHERE id = ?1)",
                          "ii", message, g_get_real_time ());
}

gboolean
ks_store_update_message (KsStore *self, gint64 message, const char *text, KsMessageState state,
                         guint n_tokens, const char *problem, GError **error)
{
  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  if (!ks_database_begin (self->database, error))
    return FALSE;
  return ks_database_end (self->database,
                          update (self, message, text, state, n_tokens, problem, error), error);
}

/* From a message down to where its branch was left; without a memory of that, its newest child. */
static gint64
find_leaf (KsStore *self, gint64 message)
{
  return ks_database_get_int (
      self->database, message,
      "WITH RECURSIVE down (id) AS ("
      " SELECT ?1 UNION ALL"
      " SELECT c.id FROM down d JOIN message m ON m.id = d.id JOIN message c ON c.id ="
      " CASE WHEN m.active_child <> 0 THEN m.active_child"
      " ELSE (SELECT max (n.id) FROM message n WHERE n.parent = m.id) END"
      " WHERE c.parent = m.id AND c.id > m.id)"
      "SELECT max (id) FROM down",
      "i", message);
}

static gboolean
select_branch (KsStore *self, gint64 message, guint sibling, GError **error)
{
  gint64 session = ks_database_get_int (self->database, 0,
                                        "SELECT session FROM message WHERE id = ?1", "i", message);
  gint64 other =
      ks_database_get_int (self->database, 0,
                           "SELECT b.id FROM message b JOIN message m ON b.session = m.session"
                           " AND b.parent IS m.parent WHERE m.id = ?1"
                           " ORDER BY b.id LIMIT 1 OFFSET ?2",
                           "ii", message, (gint64)sibling);

  if (other == 0)
    return fail_not_found ("branch of message", message, error);
  return ks_store_set_leaf (self, session, find_leaf (self, other), error);
}

gboolean
ks_store_select_branch (KsStore *self, gint64 message, guint sibling, GError **error)
{
  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  if (!ks_database_begin (self->database, error))
    return FALSE;
  return ks_database_end (self->database, select_branch (self, message, sibling, error), error);
}

gboolean
ks_store_set_pinned (KsStore *self, gint64 message, const char *hash, gboolean pinned,
                     GError **error)
{
  gboolean done;

  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  done =
      hash == NULL
          ? ks_database_run (self->database, error, "UPDATE message SET pinned = ?2 WHERE id = ?1",
                             "ii", message, (gint64)(pinned != FALSE))
          : ks_database_run (self->database, error,
                             "UPDATE attachment SET pinned = ?2 WHERE message = ?1 AND hash = ?3",
                             "iis", message, (gint64)(pinned != FALSE), hash);
  if (done && ks_database_get_n_changes (self->database) == 0)
    return fail_not_found (hash == NULL ? "message" : "such file of message", message, error);
  return done;
}

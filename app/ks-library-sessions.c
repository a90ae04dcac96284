/* ks-library-sessions.c - the list of sessions, search in it, and what is done with whole sessions.
 * The list is filled in steps so that thousands of sessions delay nothing; an id stands for the
 * same object for as long as the library lives.
 * Threads: main; store functions run on the writer thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#include "storage/ks-storage-error.h"

#define N_FIRST 30 /* a window is full; each one is a widget of the first frame */
#define N_STEP 500
#define MAX_HITS 200

/* --- objects --- */

KsSession *
ks_library_adopt_session (KsLibrary *self, KsSession *session)
{
  gint64 id = ks_session_get_id (session);
  KsSession *known = g_hash_table_lookup (self->known, &id);

  if (known == NULL) {
    g_hash_table_insert (self->known, g_memdup2 (&id, sizeof id), g_object_ref (session));
    return session;
  }
  if (known != session) {
    ks_session_set_title (known, ks_session_get_title (session));
    ks_session_set_updated_us (known, ks_session_get_updated_us (session));
    ks_session_set_n_messages (known, ks_session_get_n_messages (session));
    ks_session_set_snippet (known, ks_session_get_snippet (session));
  }
  return known;
}

static gboolean
is_searching (KsLibrary *self)
{
  return self->search != NULL;
}

static void
remove_from (GListStore *list, KsSession *session)
{
  guint position;

  if (g_list_store_find (list, session, &position))
    g_list_store_remove (list, position);
}

/* Puts it where its time belongs; the newest are looked at first, since that is where it goes. */
static void
insert_by_time (GListStore *list, KsSession *session)
{
  guint n = g_list_model_get_n_items (G_LIST_MODEL (list)), i = 0;

  for (; i < n; i++) {
    g_autoptr (KsSession) other = g_list_model_get_item (G_LIST_MODEL (list), i);

    if (ks_session_get_updated_us (other) <= ks_session_get_updated_us (session))
      break;
  }
  g_list_store_insert (list, i, session);
}

void
ks_library_raise_session (KsLibrary *self, KsSession *session)
{
  g_autoptr (KsSession) first = NULL;

  ks_session_set_updated_us (session, g_get_real_time ());
  first = g_list_model_get_item (G_LIST_MODEL (self->all), 0);
  if (first == session)
    return; /* nothing moves: a list that is looked at stays as it is */
  remove_from (self->all, session);
  g_list_store_insert (self->all, 0, session);
  if (!is_searching (self)) {
    remove_from (self->shown, session);
    g_list_store_insert (self->shown, 0, session);
  }
  ks_library_notify (self, "n-sessions");
}

/* --- filling --- */

typedef struct {
  guint offset, limit;
} ListRequest;

static gpointer
list_sessions (KsStore *store, gpointer data, GError **error)
{
  ListRequest *request = data;

  return ks_store_list_sessions (store, request->offset, request->limit, error);
}

static void ask_for_more (KsLibrary *self, guint limit);

static gboolean
ask_for_more_cb (gpointer user_data)
{
  KsLibrary *self = user_data;

  self->list_source = 0;
  ask_for_more (self, N_STEP);
  return G_SOURCE_REMOVE;
}

/* What is not in the list yet, appended in one step. */
static void
append_sessions (KsLibrary *self, GPtrArray *sessions)
{
  g_autoptr (GPtrArray) added = g_ptr_array_new ();

  for (guint i = 0; i < sessions->len; i++) {
    KsSession *session = g_ptr_array_index (sessions, i);
    gint64 id = ks_session_get_id (session);

    if (!g_hash_table_contains (self->known, &id) ||
        !g_list_store_find (self->all, g_hash_table_lookup (self->known, &id), NULL))
      g_ptr_array_add (added, ks_library_adopt_session (self, session));
  }
  g_list_store_splice (self->all, g_list_model_get_n_items (G_LIST_MODEL (self->all)), 0,
                       added->pdata, added->len);
  if (!is_searching (self))
    g_list_store_splice (self->shown, g_list_model_get_n_items (G_LIST_MODEL (self->shown)), 0,
                         added->pdata, added->len);
  ks_library_notify (self, "n-sessions");
}

static void
listed_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (KsLibrary) self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) sessions = ks_session_service_call_finish (self->service, result, &error);

  if (self->closing)
    return;
  if (error != NULL) {
    ks_library_notice (self, error->message);
    self->all_listed = TRUE;
  } else {
    self->all_listed = sessions->len == 0;
    append_sessions (self, sessions);
  }
  if (!self->all_listed)
    self->list_source = self->opened ? g_idle_add (ask_for_more_cb, self)
                                     : g_timeout_add_full (G_PRIORITY_LOW, KS_FIRST_FRAME_MS,
                                                           ask_for_more_cb, self, NULL);
  if (!self->opened) {
    self->opened = TRUE;
    ks_library_notify (self, "opened");
  }
}

static void
ask_for_more (KsLibrary *self, guint limit)
{
  ListRequest *request = g_new0 (ListRequest, 1);

  /* Sessions that were added, moved or deleted meanwhile are the same in the list and in the
   * database, so that its length is the place to go on from. */
  request->offset = g_list_model_get_n_items (G_LIST_MODEL (self->all));
  request->limit = limit;
  ks_session_service_call_async (self->service, list_sessions, request, g_free,
                                 (GDestroyNotify)g_ptr_array_unref, NULL, listed_cb,
                                 g_object_ref (self));
}

static void
set_storage_failure (KsLibrary *self, const GError *failure)
{
  GHashTableIter iter;
  gpointer chat;

  if (failure == NULL)
    return; /* what it begins with */
  self->storage_failure = g_error_copy (failure);
  ks_library_notify (self, "storage-error");
  g_hash_table_iter_init (&iter, self->chats);
  while (g_hash_table_iter_next (&iter, &chat, NULL))
    ks_chat_set_read_only_reason (chat, failure->message);
}

static void
opened_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (KsLibrary) self = user_data;
  g_autoptr (GError) error = NULL;

  if (ks_session_service_open_finish (self->service, result, &error)) {
    const char *reason = ks_session_service_get_read_only_reason (self->service);

    if (reason != NULL)
      error = g_error_new_literal (KS_STORAGE_ERROR, KS_STORAGE_ERROR_READ_ONLY, reason);
    set_storage_failure (self, error);
    if (!self->closing)
      ask_for_more (self, N_FIRST);
    return;
  }
  set_storage_failure (self, error);
  self->opened = self->all_listed = TRUE;
  ks_library_notify (self, "opened");
}

void
ks_library_open_sessions (KsLibrary *self)
{
  ks_session_service_open_async (self->service, NULL, opened_cb, g_object_ref (self));
}

void
ks_library_clear_sessions (KsLibrary *self)
{
  g_clear_handle_id (&self->list_source, g_source_remove);
  if (self->search != NULL)
    g_cancellable_cancel (self->search);
  g_clear_object (&self->search);
}

GListModel *
ks_library_get_sessions (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  return G_LIST_MODEL (self->shown);
}

gboolean
ks_library_is_opened (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), FALSE);
  return self->opened;
}

const char *
ks_library_get_storage_error (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  return self->storage_failure != NULL ? self->storage_failure->message : NULL;
}

const GError *
ks_library_get_storage_failure (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  return self->storage_failure;
}

/* --- search --- */

static gpointer
search_sessions (KsStore *store, gpointer data, GError **error)
{
  return ks_store_search (store, data, MAX_HITS, error);
}

typedef struct {
  KsLibrary *library;
  GCancellable *cancellable;
} Search;

static void
found_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autofree Search *search = user_data;
  g_autoptr (KsLibrary) self = search->library;
  g_autoptr (GCancellable) cancellable = search->cancellable;
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) hits = ks_session_service_call_finish (self->service, result, &error);
  g_autoptr (GPtrArray) adopted = g_ptr_array_new ();

  if (cancellable != self->search || g_cancellable_is_cancelled (cancellable))
    return;
  if (error != NULL)
    ks_library_notice (self, error->message);
  for (guint i = 0; hits != NULL && i < hits->len; i++)
    g_ptr_array_add (adopted, ks_library_adopt_session (self, g_ptr_array_index (hits, i)));
  g_list_store_splice (self->shown, 0, g_list_model_get_n_items (G_LIST_MODEL (self->shown)),
                       adopted->pdata, adopted->len);
}

static void
show_all (KsLibrary *self)
{
  guint n = g_list_model_get_n_items (G_LIST_MODEL (self->all));
  g_autoptr (GPtrArray) sessions = g_ptr_array_new_with_free_func (g_object_unref);

  for (guint i = 0; i < n; i++) {
    KsSession *session = g_list_model_get_item (G_LIST_MODEL (self->all), i);

    ks_session_set_snippet (session, NULL);
    g_ptr_array_add (sessions, session);
  }
  g_list_store_splice (self->shown, 0, g_list_model_get_n_items (G_LIST_MODEL (self->shown)),
                       sessions->pdata, sessions->len);
}

void
ks_library_search (KsLibrary *self, const char *query)
{
  gboolean was_searching;
  Search *search;

  g_return_if_fail (KS_IS_LIBRARY (self));
  was_searching = is_searching (self);
  if (self->search != NULL)
    g_cancellable_cancel (self->search);
  g_clear_object (&self->search);
  if (query == NULL || query[0] == '\0') {
    if (was_searching)
      show_all (self);
    return;
  }
  self->search = g_cancellable_new ();
  search = g_new0 (Search, 1);
  search->library = g_object_ref (self);
  search->cancellable = g_object_ref (self->search);
  ks_session_service_call_async (self->service, search_sessions, g_strdup (query), g_free,
                                 (GDestroyNotify)g_ptr_array_unref, self->search, found_cb, search);
}

/* --- single sessions --- */

typedef enum { CHANGE_RENAME, CHANGE_DELETE, CHANGE_RESTORE } ChangeKind;

/* For the writer thread. */
typedef struct {
  ChangeKind kind;
  gint64 id;
  char *title;
} Change;

/* For the main thread, when it comes back. */
typedef struct {
  KsLibrary *library;
  KsSession *session;
  ChangeKind kind;
  char *old_title;
} Changed;

static void
change_free (gpointer data)
{
  Change *change = data;

  g_free (change->title);
  g_free (change);
}

static gpointer
store_change (KsStore *store, gpointer data, GError **error)
{
  Change *change = data;
  gboolean done;

  if (change->kind == CHANGE_RENAME)
    done = ks_store_rename_session (store, change->id, change->title, error);
  else if (change->kind == CHANGE_DELETE)
    done = ks_store_delete_session (store, change->id, error);
  else
    done = ks_store_restore_session (store, change->id, error);
  return GINT_TO_POINTER (done);
}

/* Takes a session out of the lists, or puts it where its time belongs. */
static void
show_session (KsLibrary *self, KsSession *session, gboolean show)
{
  remove_from (self->all, session);
  remove_from (self->shown, session);
  if (show) {
    insert_by_time (self->all, session);
    if (!is_searching (self))
      insert_by_time (self->shown, session);
  }
  ks_library_notify (self, "n-sessions");
}

/* The chat of a session that somebody holds; NULL when there is none. (transfer none) */
static KsChat *
find_chat (KsLibrary *self, KsSession *session)
{
  GHashTableIter iter;
  gpointer chat;

  g_hash_table_iter_init (&iter, self->chats);
  while (g_hash_table_iter_next (&iter, &chat, NULL))
    if (ks_chat_get_session (chat) == session)
      return chat;
  return NULL;
}

/* It is not deleted after all. */
static void
allow_writing (KsLibrary *self, KsSession *session)
{
  KsChat *chat = find_chat (self, session);

  if (chat != NULL)
    ks_chat_set_read_only_reason (chat, ks_library_get_storage_error (self));
}

static void
changed_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Changed *changed = user_data;
  KsLibrary *self = changed->library;
  g_autoptr (GError) error = NULL;

  (void)ks_session_service_call_finish (self->service, result, &error);
  if (error != NULL) {
    /* Back to what the database still says. */
    if (changed->kind == CHANGE_RENAME)
      ks_session_set_title (changed->session, changed->old_title);
    else
      show_session (self, changed->session, changed->kind == CHANGE_DELETE);
    if (changed->kind == CHANGE_DELETE)
      allow_writing (self, changed->session);
    ks_library_notice (self, error->message);
  }
  ks_library_end_write (self);
  g_object_unref (changed->library);
  g_object_unref (changed->session);
  g_free (changed->old_title);
  g_free (changed);
}

static void
change_session (KsLibrary *self, KsSession *session, ChangeKind kind, const char *title)
{
  Change *change = g_new0 (Change, 1);
  Changed *changed = g_new0 (Changed, 1);

  change->kind = changed->kind = kind;
  change->id = ks_session_get_id (session);
  change->title = g_strdup (title);
  changed->library = g_object_ref (self);
  changed->session = g_object_ref (session);
  changed->old_title = g_strdup (ks_session_get_title (session));
  ks_library_begin_write (self);
  ks_session_service_call_async (self->service, store_change, change, change_free, NULL, NULL,
                                 changed_cb, changed);
}

void
ks_library_rename (KsLibrary *self, KsSession *session, const char *title)
{
  g_autofree char *valid = NULL;

  g_return_if_fail (KS_IS_LIBRARY (self) && KS_IS_SESSION (session) && title != NULL);
  valid = g_strstrip (g_utf8_make_valid (title, -1));
  if (valid[0] == '\0' || self->closing)
    return;
  change_session (self, session, CHANGE_RENAME, valid);
  ks_session_set_title (session, valid);
}

void
ks_library_delete (KsLibrary *self, KsSession *session)
{
  KsChat *chat;

  g_return_if_fail (KS_IS_LIBRARY (self) && KS_IS_SESSION (session));
  if (self->closing)
    return;
  chat = find_chat (self, session);
  if (chat != NULL) {
    ks_chat_stop (chat);
    ks_chat_set_read_only_reason (chat, "This session was deleted.");
  }
  change_session (self, session, CHANGE_DELETE, NULL);
  ks_engine_set_session_gone (self->engine, ks_session_get_id (session), TRUE);
  show_session (self, session, FALSE);
}

void
ks_library_restore (KsLibrary *self, KsSession *session)
{
  g_return_if_fail (KS_IS_LIBRARY (self) && KS_IS_SESSION (session));
  if (self->closing)
    return;
  change_session (self, session, CHANGE_RESTORE, NULL);
  ks_engine_set_session_gone (self->engine, ks_session_get_id (session), FALSE);
  show_session (self, session, TRUE);
  allow_writing (self, session);
}

KsChat *
ks_library_open_chat (KsLibrary *self, KsSession *session)
{
  KsChat *chat;

  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  g_return_val_if_fail (session == NULL || KS_IS_SESSION (session), NULL);
  if (session == NULL)
    return ks_chat_new (self, NULL);
  session = ks_library_adopt_session (self, session);
  chat = find_chat (self, session);
  if (chat == NULL)
    return ks_chat_new (self, session);
  /* Another program may have gone on with it, or be at it. */
  ks_chat_reopen (chat);
  return g_object_ref (chat);
}

void
ks_library_show_session (KsLibrary *self, KsSession *session)
{
  show_session (self, session, TRUE);
}

void
ks_library_forget_sessions (KsLibrary *self)
{
  GHashTableIter iter;
  gpointer chat;

  ks_library_search (self, NULL);
  ks_engine_set_session_gone (self->engine, 0, TRUE);
  g_list_store_remove_all (self->all);
  g_list_store_remove_all (self->shown);
  g_hash_table_remove_all (self->known);
  g_hash_table_iter_init (&iter, self->chats);
  while (g_hash_table_iter_next (&iter, &chat, NULL))
    if (ks_chat_get_session (chat) != NULL)
      ks_chat_set_read_only_reason (chat, "This session was deleted.");
  ks_library_notify (self, "n-sessions");
}

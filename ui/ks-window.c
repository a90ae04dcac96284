/* ks-window.c - see ks-window.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-window.h"

#include "ui/ks-budget-gauge.h"
#include "ui/ks-chat-page.h"
#include "ui/ks-compat.h"
#include "ui/ks-export-dialog.h"
#include "ui/ks-kept-dialog.h"
#include "ui/ks-memory-panel.h"
#include "ui/ks-resource.h"
#include "ui/ks-session-list.h"
#include "ui/ks-toast.h"
#include "ui/ks-window-actions.h"
#include "ui/ks-window-header.h"

#include <glib/gi18n.h>

#define SESSIONS_WIDTH_PX 270
#define MEMORY_WIDTH_PX 330
#define MEMORY_MS 100 /* between two looks at the numbers while an answer runs */
#define UNDO_S 8
#define MAX_LABEL 60 /* characters of a message that name its turn */

struct _KsWindow {
  AdwApplicationWindow parent_instance;

  GtkWidget *sessions_header;
  GtkWidget *list_new_button;
  GtkWidget *header_bar;
  GtkWidget *header;
  GtkWidget *gauge;
  GtkWidget *sessions_view; /* split views */
  GtkWidget *memory_view;
  GtkWidget *session_list;
  GtkWidget *page;
  GtkWidget *memory_panel;

  KsLibrary *library;
  GSettings *settings; /* NULL where the schema is missing */
  KsChat *chat;
  GPtrArray *kept; /* of KsChat: they answer, or hold what is not stored */
  GSignalGroup *chat_signals;
  GSignalGroup *messages_signals;
  guint memory_timeout;
  gint64 last_session; /* to be opened when the list has it; 0 = none */
};

G_DEFINE_FINAL_TYPE (KsWindow, ks_window, ADW_TYPE_APPLICATION_WINDOW)

/* --- memory --- */

static char *
make_turn_label (KsMessage *message)
{
  g_autofree char *valid = g_utf8_make_valid (ks_message_get_text (message), -1);
  g_autofree char *start = g_utf8_substring (valid, 0, MIN (MAX_LABEL, g_utf8_strlen (valid, -1)));

  return g_strstrip (g_strdelimit (g_steal_pointer (&start), "\r\n\t", ' '));
}

/* First words of the questions, by turn of the memory's numbers. */
static void
update_turn_labels (KsWindow *self)
{
  g_autoptr (GPtrArray) labels = g_ptr_array_new_with_free_func (g_free);
  GListModel *messages = NULL;

  if (self->chat == NULL || !ks_split_view_get_show_sidebar (self->memory_view))
    return;
  messages = ks_chat_get_messages (self->chat);
  for (guint i = 0; i < g_list_model_get_n_items (messages); i++) {
    g_autoptr (KsMessage) message = g_list_model_get_item (messages, i);
    int turn = ks_message_get_role (message) == KS_MESSAGE_USER
                   ? ks_chat_get_turn (self->chat, message)
                   : -1;

    if (turn < 0)
      continue;
    while (labels->len <= (guint)turn)
      g_ptr_array_add (labels, g_strdup (""));
    g_free (g_ptr_array_index (labels, turn));
    g_ptr_array_index (labels, turn) = make_turn_label (message);
  }
  g_ptr_array_add (labels, NULL);
  ks_memory_panel_set_turn_labels (KS_MEMORY_PANEL (self->memory_panel),
                                   (const char *const *)labels->pdata);
}

static void
update_memory (KsWindow *self)
{
  g_autoptr (KsMemoryView) view = ks_chat_dup_memory (self->chat);

  if (view == NULL && (view = ks_library_dup_memory (self->library)) != NULL)
    ks_memory_view_forget_session (view);
  ks_budget_gauge_set_view (KS_BUDGET_GAUGE (self->gauge), view);
  ks_memory_panel_set_view (KS_MEMORY_PANEL (self->memory_panel), view);
  if (self->chat != NULL) {
    gboolean can_change, keep = ks_chat_keeps_everything (self->chat, &can_change);

    ks_memory_panel_set_keep (KS_MEMORY_PANEL (self->memory_panel), keep, can_change);
  }
}

static gboolean
memory_cb (gpointer self)
{
  update_memory (self);
  return G_SOURCE_CONTINUE;
}

/* Looks at the numbers while they move and somebody sees them. */
static void
update_memory_timeout (KsWindow *self)
{
  gboolean wanted = self->chat != NULL && ks_chat_is_busy (self->chat) &&
                    gtk_widget_get_mapped (GTK_WIDGET (self));

  if (wanted && self->memory_timeout == 0)
    self->memory_timeout = g_timeout_add (MEMORY_MS, memory_cb, self);
  else if (!wanted)
    g_clear_handle_id (&self->memory_timeout, g_source_remove);
}

static void
update_target (KsWindow *self)
{
  guint64 min_bytes = 0;
  guint64 max_bytes = 0;

  if (ks_library_get_model_state (self->library) == KS_MODEL_READY)
    ks_library_get_target_range (self->library, &min_bytes, &max_bytes);
  ks_budget_gauge_set_range (KS_BUDGET_GAUGE (self->gauge), min_bytes, max_bytes);
  ks_budget_gauge_set_target (KS_BUDGET_GAUGE (self->gauge),
                              ks_library_get_target_bytes (self->library));
}

static void
target_changed_cb (KsBudgetGauge *gauge, guint64 target_bytes, KsWindow *self)
{
  ks_library_set_target_bytes (self->library, target_bytes);
  update_memory (self);
}

static void
open_picture_cb (KsMemoryPanel *panel, const KsMemoryPicture *picture, KsWindow *self)
{
  ks_kept_dialog_present (GTK_WIDGET (self), self->library, self->chat, picture);
}

static void
keep_everything_cb (KsMemoryPanel *panel, gboolean keep, KsWindow *self)
{
  ks_chat_set_keep_everything (self->chat, keep);
  update_memory (self);
}

/* --- the chat that is shown --- */

static const char *
get_title (KsSession *session)
{
  const char *title = session == NULL ? NULL : ks_session_get_title (session);

  return session == NULL                   ? _ ("New Session")
         : title == NULL || *title == '\0' ? _ ("Untitled")
                                           : title;
}

static void
update_title (KsWindow *self)
{
  KsSession *session = ks_chat_get_session (self->chat);
  const char *model = ks_library_get_model_name (self->library);
  g_autofree char *valid = g_utf8_make_valid (get_title (session), -1);

  ks_window_header_set_title (KS_WINDOW_HEADER (self->header), valid, model == NULL ? "" : model);
  gtk_window_set_title (GTK_WINDOW (self), session == NULL ? "Keepsake" : valid);
}

static void
chat_changed_cb (KsWindow *self)
{
  KsSession *session = ks_chat_get_session (self->chat);

  update_title (self);
  update_memory_timeout (self);
  if (!ks_chat_is_busy (self->chat))
    update_memory (self);
  ks_session_list_select (KS_SESSION_LIST (self->session_list), session);
  ks_window_actions_update (self);
}

static void
messages_changed_cb (GListModel *messages, guint position, guint n_removed, guint n_added,
                     KsWindow *self)
{
  update_turn_labels (self);
  ks_window_actions_update (self);
}

/* Lets go what neither answers nor holds anything that is not stored. */
static void
sort_kept (KsWindow *self)
{
  for (guint i = self->kept->len; i-- > 0;) {
    KsChat *chat = g_ptr_array_index (self->kept, i);

    if (chat != self->chat && !ks_chat_is_busy (chat) && !ks_chat_page_has_draft (chat))
      g_ptr_array_remove_index_fast (self->kept, i);
  }
}

static void
set_chat (KsWindow *self, KsChat *chat)
{
  if (self->chat == chat)
    return;
  g_set_object (&self->chat, chat);
  ks_chat_page_set_chat (KS_CHAT_PAGE (self->page), chat);
  g_signal_group_set_target (self->chat_signals, chat);
  g_signal_group_set_target (self->messages_signals, ks_chat_get_messages (chat));
  if (!g_ptr_array_find (self->kept, chat, NULL))
    g_ptr_array_add (self->kept, g_object_ref (chat));
  sort_kept (self);
  update_memory (self);
  chat_changed_cb (self);
}

static gboolean
is_unsent (KsChat *chat)
{
  return ks_chat_get_session (chat) == NULL && !ks_chat_is_busy (chat) &&
         g_list_model_get_n_items (ks_chat_get_messages (chat)) == 0;
}

/* There is one new session at a time: what was written or attached there and not sent yet could not
 * be reached from a second one. (transfer full) */
static KsChat *
open_new_chat (KsWindow *self)
{
  if (self->chat != NULL && is_unsent (self->chat))
    return g_object_ref (self->chat);
  for (guint i = 0; i < self->kept->len; i++)
    if (is_unsent (g_ptr_array_index (self->kept, i)))
      return g_object_ref (g_ptr_array_index (self->kept, i));
  return ks_library_open_chat (self->library, NULL);
}

void
ks_window_open_session (KsWindow *self, KsSession *session)
{
  g_autoptr (KsChat) chat = NULL;

  g_return_if_fail (KS_IS_WINDOW (self));
  self->last_session = 0;
  chat = session == NULL ? open_new_chat (self) : ks_library_open_chat (self->library, session);
  set_chat (self, chat);
}

void
ks_window_open_neighbour (KsWindow *self, int step)
{
  g_autoptr (KsSession) session = NULL;

  g_return_if_fail (KS_IS_WINDOW (self));
  session = ks_session_list_get_neighbour (KS_SESSION_LIST (self->session_list), step);
  if (session != NULL)
    ks_window_open_session (self, session);
}

void
ks_window_attach_files (KsWindow *self, GFile *const *files, gsize n_file)
{
  g_return_if_fail (KS_IS_WINDOW (self));
  if (ks_chat_get_session (self->chat) != NULL || ks_chat_is_busy (self->chat))
    ks_window_open_session (self, NULL);
  self->last_session = 0;
  for (gsize i = 0; i < n_file; i++)
    ks_chat_attach_file (self->chat, files[i]);
  ks_window_focus_composer (self);
}

/* --- the list --- */

static void
open_cb (KsSessionList *list, KsSession *session, KsWindow *self)
{
  ks_window_open_session (self, session);
  if (ks_split_view_get_collapsed (self->sessions_view)) {
    ks_split_view_set_show_sidebar (self->sessions_view, FALSE);
    ks_window_focus_composer (self);
  }
}

static void
rename_cb (KsSessionList *list, KsSession *session, const char *title, KsWindow *self)
{
  ks_library_rename (self->library, session, title);
}

static void
export_cb (KsSessionList *list, KsSession *session, KsWindow *self)
{
  ks_export_dialog_present (GTK_WIDGET (self), self->library, session);
}

static void
search_cb (KsSessionList *list, const char *query, KsWindow *self)
{
  ks_library_search (self->library, query);
}

static void
delete_cb (KsSessionList *list, KsSession *session, KsWindow *self)
{
  ks_window_delete_session (self, session);
}

typedef struct {
  KsWindow *window; /* the toast lives no longer than its window */
  KsSession *session;
  gboolean was_shown;
} Deletion;

static void
deletion_free (gpointer data, GClosure *closure)
{
  Deletion *deletion = data;

  g_object_unref (deletion->session);
  g_free (deletion);
}

static void
undo_cb (AdwToast *toast, Deletion *deletion)
{
  KsWindow *self = deletion->window;

  ks_library_restore (self->library, deletion->session);
  if (deletion->was_shown && ks_chat_page_is_untouched (KS_CHAT_PAGE (self->page)))
    ks_window_open_session (self, deletion->session);
}

static gboolean
is_shown (KsWindow *self, KsSession *session)
{
  KsSession *shown = ks_chat_get_session (self->chat);

  return shown != NULL && ks_session_get_id (shown) == ks_session_get_id (session);
}

void
ks_window_delete_session (KsWindow *self, KsSession *session)
{
  Deletion *deletion = NULL;
  g_autofree char *title = NULL;
  g_autofree char *text = NULL;
  AdwToast *toast = NULL;

  g_return_if_fail (KS_IS_WINDOW (self) && KS_IS_SESSION (session));
  deletion = g_new0 (Deletion, 1);
  deletion->window = self;
  deletion->session = g_object_ref (session);
  deletion->was_shown = is_shown (self, session);
  title = g_utf8_make_valid (get_title (session), -1);
  if (deletion->was_shown) {
    ks_chat_stop (self->chat);
    ks_window_open_session (self, NULL);
  }
  ks_library_delete (self->library, deletion->session);
  text = g_strdup_printf (_ ("“%s” was deleted"), title);
  toast = ks_toast_new (text);
  adw_toast_set_button_label (toast, _ ("_Undo"));
  adw_toast_set_timeout (toast, UNDO_S);
  g_signal_connect_data (toast, "button-clicked", G_CALLBACK (undo_cb), deletion, deletion_free,
                         G_CONNECT_DEFAULT);
  ks_chat_page_add_toast (KS_CHAT_PAGE (self->page), toast);
  if (deletion->was_shown)
    ks_chat_page_focus (KS_CHAT_PAGE (self->page));
}

static void
renamed_cb (const char *title, gpointer data)
{
  KsWindow *self = data;
  KsSession *session = ks_chat_get_session (self->chat);
  g_autofree char *stripped = title == NULL ? NULL : g_strstrip (g_strdup (title));

  if (stripped != NULL && *stripped != '\0' && session != NULL)
    ks_library_rename (self->library, session, stripped);
}

void
ks_window_rename_session (KsWindow *self)
{
  g_return_if_fail (KS_IS_WINDOW (self));
  if (ks_split_view_get_show_sidebar (self->sessions_view) &&
      ks_session_list_rename_selected (KS_SESSION_LIST (self->session_list)))
    return;
  ks_ask_text (GTK_WIDGET (self), _ ("Rename the Session"), NULL, _ ("_Rename"), FALSE, renamed_cb,
               g_object_ref (self), g_object_unref);
}

void
ks_window_focus_search (KsWindow *self)
{
  g_return_if_fail (KS_IS_WINDOW (self));
  ks_split_view_set_show_sidebar (self->sessions_view, TRUE);
  ks_session_list_focus_search (KS_SESSION_LIST (self->session_list));
}

void
ks_window_focus_composer (KsWindow *self)
{
  g_return_if_fail (KS_IS_WINDOW (self));
  if (ks_split_view_get_collapsed (self->sessions_view))
    ks_split_view_set_show_sidebar (self->sessions_view, FALSE);
  ks_chat_page_focus (KS_CHAT_PAGE (self->page));
}

void
ks_window_choose_files (KsWindow *self)
{
  g_return_if_fail (KS_IS_WINDOW (self));
  ks_chat_page_attach (KS_CHAT_PAGE (self->page));
}

void
ks_window_choose_folders (KsWindow *self)
{
  g_return_if_fail (KS_IS_WINDOW (self));
  ks_chat_page_attach_folders (KS_CHAT_PAGE (self->page));
}

/* --- where the last run ended --- */

static void
open_last_session (KsWindow *self)
{
  GListModel *sessions = ks_library_get_sessions (self->library);
  gint64 wanted = self->last_session;

  if (wanted == 0 || !ks_chat_page_is_untouched (KS_CHAT_PAGE (self->page)))
    return;
  for (guint i = 0; i < g_list_model_get_n_items (sessions); i++) {
    g_autoptr (KsSession) session = g_list_model_get_item (sessions, i);

    if (ks_session_get_id (session) != wanted)
      continue;
    ks_window_open_session (self, session);
    return;
  }
}

static void
sessions_changed_cb (GListModel *sessions, guint position, guint n_removed, guint n_added,
                     KsWindow *self)
{
  if (self->last_session != 0 && n_added > 0)
    open_last_session (self);
}

static void
restore_state (KsWindow *self)
{
  int width = 1100;
  int height = 760;

  if (self->settings != NULL) {
    width = g_settings_get_int (self->settings, "window-width");
    height = g_settings_get_int (self->settings, "window-height");
    if (g_settings_get_boolean (self->settings, "window-maximized"))
      gtk_window_maximize (GTK_WINDOW (self));
    ks_split_view_set_show_sidebar (self->sessions_view,
                                    g_settings_get_boolean (self->settings, "sidebar-visible"));
    ks_split_view_set_show_sidebar (self->memory_view,
                                    g_settings_get_boolean (self->settings, "memory-visible"));
    self->last_session = g_settings_get_int64 (self->settings, "last-session");
  }
  gtk_window_set_default_size (GTK_WINDOW (self), MAX (width, 360), MAX (height, 294));
}

void
ks_window_save_state (KsWindow *self)
{
  KsSession *session = NULL;
  int width = 0;
  int height = 0;

  g_return_if_fail (KS_IS_WINDOW (self));
  if (self->settings == NULL)
    return;
  session = ks_chat_get_session (self->chat);
  gtk_window_get_default_size (GTK_WINDOW (self), &width, &height);
  g_settings_delay (self->settings);
  g_settings_set_int (self->settings, "window-width", MAX (width, 200));
  g_settings_set_int (self->settings, "window-height", MAX (height, 200));
  g_settings_set_boolean (self->settings, "window-maximized",
                          gtk_window_is_maximized (GTK_WINDOW (self)));
  /* A pane that lies over the chat comes and goes by itself. */
  if (!ks_split_view_get_collapsed (self->sessions_view))
    g_settings_set_boolean (self->settings, "sidebar-visible",
                            ks_split_view_get_show_sidebar (self->sessions_view));
  g_settings_set_boolean (self->settings, "memory-visible",
                          ks_split_view_get_show_sidebar (self->memory_view));
  if (session != NULL || self->last_session == 0)
    g_settings_set_int64 (self->settings, "last-session",
                          session == NULL ? 0 : ks_session_get_id (session));
  g_settings_apply (self->settings);
}

/* --- construction --- */

static void
library_changed_cb (KsLibrary *library, GParamSpec *pspec, KsWindow *self)
{
  update_title (self);
  update_target (self);
  update_memory (self);
  if (ks_library_is_opened (library))
    ks_session_list_set_model (KS_SESSION_LIST (self->session_list),
                               ks_library_get_sessions (library));
  ks_window_actions_update (self);
}

static void
panes_changed_cb (GtkWidget *view, GParamSpec *pspec, KsWindow *self)
{
  gboolean beside = ks_split_view_get_show_sidebar (self->sessions_view) &&
                    !ks_split_view_get_collapsed (self->sessions_view);

  adw_header_bar_set_show_start_title_buttons (ADW_HEADER_BAR (self->header_bar), !beside);
  /* Over the chat the list hides the header's own. */
  gtk_widget_set_visible (self->list_new_button, ks_split_view_get_collapsed (self->sessions_view));
  update_turn_labels (self);
}

static void
ks_window_map (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (ks_window_parent_class)->map (widget);
  update_memory_timeout (KS_WINDOW (widget));
}

static void
ks_window_unmap (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (ks_window_parent_class)->unmap (widget);
  update_memory_timeout (KS_WINDOW (widget));
}

static void
ks_window_dispose (GObject *object)
{
  KsWindow *self = KS_WINDOW (object);

  g_clear_handle_id (&self->memory_timeout, g_source_remove);
  if (self->library != NULL) {
    g_signal_handlers_disconnect_by_data (self->library, self);
    g_signal_handlers_disconnect_by_data (ks_library_get_sessions (self->library), self);
  }
  g_clear_object (&self->chat_signals);
  g_clear_object (&self->messages_signals);
  g_clear_object (&self->chat);
  g_clear_pointer (&self->kept, g_ptr_array_unref);
  g_clear_object (&self->settings);
  g_clear_object (&self->library);
  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_WINDOW);
  G_OBJECT_CLASS (ks_window_parent_class)->dispose (object);
}

static void
ks_window_class_init (KsWindowClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_window_dispose;
  widget_class->map = ks_window_map;
  widget_class->unmap = ks_window_unmap;
  g_type_ensure (KS_TYPE_WINDOW_HEADER);
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-window.ui");
  gtk_widget_class_bind_template_child (widget_class, KsWindow, sessions_header);
  gtk_widget_class_bind_template_child (widget_class, KsWindow, header);
  gtk_widget_class_bind_template_child (widget_class, KsWindow, list_new_button);
  gtk_widget_class_bind_template_child (widget_class, KsWindow, header_bar);
}

static void
add_pane_action (KsWindow *self, GtkWidget *view, const char *name)
{
  g_autoptr (GAction) action = ks_split_view_action_new (view, name);

  g_action_map_add_action (G_ACTION_MAP (self), action);
  ks_split_view_connect_changed (view, G_CALLBACK (panes_changed_cb), self);
}

static void
ks_window_init (KsWindow *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  self->gauge = ks_window_header_get_gauge (KS_WINDOW_HEADER (self->header));
  self->kept = g_ptr_array_new_with_free_func (g_object_unref);
  self->chat_signals = g_signal_group_new (KS_TYPE_CHAT);
  g_signal_group_connect_swapped (self->chat_signals, "notify", G_CALLBACK (chat_changed_cb), self);
  g_signal_group_connect_swapped (self->chat_signals, "notify::state",
                                  G_CALLBACK (update_turn_labels), self);
  self->messages_signals = g_signal_group_new (G_TYPE_LIST_MODEL);
  g_signal_group_connect (self->messages_signals, "items-changed", G_CALLBACK (messages_changed_cb),
                          self);
  g_signal_connect (self->gauge, "target-changed", G_CALLBACK (target_changed_cb), self);
  ks_window_actions_install (self);
}

static void
build_panes (KsWindow *self)
{
  self->session_list = ks_session_list_new ();
  g_signal_connect (self->session_list, "open", G_CALLBACK (open_cb), self);
  g_signal_connect (self->session_list, "delete", G_CALLBACK (delete_cb), self);
  g_signal_connect (self->session_list, "export", G_CALLBACK (export_cb), self);
  g_signal_connect (self->session_list, "rename", G_CALLBACK (rename_cb), self);
  g_signal_connect (self->session_list, "search", G_CALLBACK (search_cb), self);
  g_signal_connect_swapped (self->session_list, "leave", G_CALLBACK (ks_window_focus_composer),
                            self);
  self->page = ks_chat_page_new (self->library);
  self->memory_panel = ks_memory_panel_new ();
  g_signal_connect (self->memory_panel, "open-picture", G_CALLBACK (open_picture_cb), self);
  g_signal_connect (self->memory_panel, "keep-everything", G_CALLBACK (keep_everything_cb), self);
  self->memory_view = ks_split_view_new (GTK_PACK_END, TRUE);
  ks_split_view_set_content (self->memory_view, self->page);
  ks_split_view_set_sidebar (self->memory_view, self->memory_panel, MEMORY_WIDTH_PX);
  self->sessions_view = ks_split_view_new (GTK_PACK_START, FALSE);
  ks_split_view_set_content (self->sessions_view,
                             ks_page_new (self->header_bar, self->memory_view, NULL));
  ks_split_view_set_sidebar (self->sessions_view,
                             ks_page_new (self->sessions_header, self->session_list, NULL),
                             SESSIONS_WIDTH_PX);
  adw_application_window_set_content (ADW_APPLICATION_WINDOW (self), self->sessions_view);
  ks_compat_adapt (ADW_APPLICATION_WINDOW (self), self->sessions_view, self->memory_view);
  add_pane_action (self, self->sessions_view, "show-sessions");
  add_pane_action (self, self->memory_view, "show-memory");
}

KsWindow *
ks_window_new (GtkApplication *application, KsLibrary *library)
{
  KsWindow *self = g_object_new (KS_TYPE_WINDOW, "application", application, NULL);
  GSettings *settings = ks_settings_get_gsettings (ks_library_get_settings (library));
  gint64 last_session = 0;

  self->library = g_object_ref (library);
  self->settings = settings == NULL ? NULL : g_object_ref (settings);
  build_panes (self);
  restore_state (self);
  last_session = self->last_session;
  ks_window_open_session (self, NULL);
  self->last_session = last_session;
  g_signal_connect (library, "notify", G_CALLBACK (library_changed_cb), self);
  g_signal_connect (ks_library_get_sessions (library), "items-changed",
                    G_CALLBACK (sessions_changed_cb), self);
  library_changed_cb (library, NULL, self);
  panes_changed_cb (NULL, NULL, self);
  open_last_session (self);
  ks_window_focus_composer (self);
  return self;
}

KsLibrary *
ks_window_get_library (KsWindow *self)
{
  g_return_val_if_fail (KS_IS_WINDOW (self), NULL);
  return self->library;
}

KsChat *
ks_window_get_chat (KsWindow *self)
{
  g_return_val_if_fail (KS_IS_WINDOW (self), NULL);
  return self->chat;
}

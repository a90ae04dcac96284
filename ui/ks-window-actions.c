/* ks-window-actions.c - see ks-window-actions.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-window-actions.h"

#include "ui/ks-export-dialog.h"
#include "ui/ks-model-manager.h"

static void
new_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_window_open_session (window, NULL);
  ks_window_focus_composer (window);
}

static void
attach_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_window_choose_files (window);
}

static void
attach_folder_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_window_choose_folders (window);
}

static void
search_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_window_focus_search (window);
}

static void
rename_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_window_rename_session (window);
}

static void
export_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  KsSession *session = ks_chat_get_session (ks_window_get_chat (window));

  if (session != NULL)
    ks_export_dialog_present (window, ks_window_get_library (window), session);
}

static void
delete_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  KsSession *session = ks_chat_get_session (ks_window_get_chat (window));

  if (session != NULL)
    ks_window_delete_session (window, session);
}

static void
import_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_import_present (window, ks_window_get_library (window));
}

static void
models_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_model_manager_present (window, ks_window_get_library (window));
}

static void
stop_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_chat_stop (ks_window_get_chat (window));
  ks_window_focus_composer (window);
}

static void
regenerate_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_chat_regenerate (ks_window_get_chat (window));
}

static void
previous_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_window_open_neighbour (window, -1);
}

static void
next_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_window_open_neighbour (window, 1);
}

static void
focus_composer_action (GSimpleAction *action, GVariant *parameter, gpointer window)
{
  ks_window_focus_composer (window);
}

static const GActionEntry entries[] = {
    {.name = "attach", .activate = attach_action},
    {.name = "attach-folder", .activate = attach_folder_action},
    {.name = "delete", .activate = delete_action},
    {.name = "export", .activate = export_action},
    {.name = "focus-composer", .activate = focus_composer_action},
    {.name = "import", .activate = import_action},
    {.name = "models", .activate = models_action},
    {.name = "new", .activate = new_action},
    {.name = "next", .activate = next_action},
    {.name = "previous", .activate = previous_action},
    {.name = "regenerate", .activate = regenerate_action},
    {.name = "rename", .activate = rename_action},
    {.name = "search", .activate = search_action},
    {.name = "stop", .activate = stop_action},
};

static void
enable (KsWindow *window, const char *name, gboolean enabled)
{
  g_simple_action_set_enabled (
      G_SIMPLE_ACTION (g_action_map_lookup_action (G_ACTION_MAP (window), name)), enabled);
}

static gboolean
ends_with_answer (KsChat *chat)
{
  GListModel *messages = ks_chat_get_messages (chat);
  guint n = g_list_model_get_n_items (messages);
  g_autoptr (KsMessage) last = n == 0 ? NULL : g_list_model_get_item (messages, n - 1);

  return last != NULL && ks_message_get_role (last) == KS_MESSAGE_ASSISTANT;
}

void
ks_window_actions_update (KsWindow *window)
{
  KsChat *chat = ks_window_get_chat (window);
  KsChatState state = ks_chat_get_state (chat);
  gboolean is_stored = ks_chat_get_session (chat) != NULL;
  gboolean is_writable = ks_chat_get_read_only_reason (chat) == NULL;
  gboolean can_store = ks_library_get_storage_error (ks_window_get_library (window)) == NULL;

  enable (window, "attach", is_writable);
  enable (window, "attach-folder", is_writable);
  enable (window, "delete", is_stored && can_store);
  enable (window, "export", is_stored);
  enable (window, "import", can_store);
  enable (window, "rename", is_stored && can_store);
  enable (window, "regenerate", state == KS_CHAT_IDLE && is_writable && ends_with_answer (chat));
  enable (window, "stop",
          state != KS_CHAT_IDLE && state != KS_CHAT_OPENING && state != KS_CHAT_STOPPING);
}

/* Only when nothing else wants Escape: a search, a popover and a dialog come first. */
static void
add_escape (KsWindow *window)
{
  GtkEventController *controller = gtk_shortcut_controller_new ();

  gtk_shortcut_controller_add_shortcut (
      GTK_SHORTCUT_CONTROLLER (controller),
      gtk_shortcut_new (gtk_keyval_trigger_new (GDK_KEY_Escape, 0),
                        gtk_named_action_new ("win.stop")));
  gtk_widget_add_controller (GTK_WIDGET (window), controller);
}

void
ks_window_actions_install (KsWindow *window)
{
  g_action_map_add_action_entries (G_ACTION_MAP (window), entries, G_N_ELEMENTS (entries), window);
  add_escape (window);
}

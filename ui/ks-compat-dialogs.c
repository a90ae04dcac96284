/* ks-compat-dialogs.c - dialogs, file choosers and links of ks-compat.h: windows of their own until
 * libadwaita 1.5 and GTK 4.10, dialogs inside the window from there on. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-compat.h"

#include "ui/ks-resource.h"

#include <glib/gi18n.h>

/* What an asynchronous question is about, until its answer. */
typedef struct {
  union {
    KsConfirmFunc confirm;
    KsTextFunc text;
    KsFilesFunc files;
    KsFileFunc file;
  } func;
  gpointer data;
  GDestroyNotify destroy;
  GtkEditable *entry; /* strong, ks_ask_text */
} Question;

static Question *
question_new (gpointer data, GDestroyNotify destroy)
{
  Question *question = g_new0 (Question, 1);

  question->data = data;
  question->destroy = destroy;
  return question;
}

static gboolean
release_cb (gpointer entry)
{
  return G_SOURCE_REMOVE;
}

static void
question_free (Question *question)
{
  if (question->destroy != NULL)
    question->destroy (question->data);
  /* Its text is still in the middle of losing the focus, and tells the entry so. */
  if (question->entry != NULL)
    g_idle_add_full (G_PRIORITY_LOW, release_cb, question->entry, g_object_unref);
  g_free (question);
}

static GtkWindow *
get_window (GtkWidget *widget)
{
  GtkRoot *root = widget == NULL ? NULL : gtk_widget_get_root (widget);

  return GTK_IS_WINDOW (root) ? GTK_WINDOW (root) : NULL;
}

GtkWidget *
ks_dialog_new (const char *title, GtkWidget *content, int width_px, int height_px)
{
#if ADW_CHECK_VERSION(1, 5, 0)
  AdwDialog *dialog = adw_dialog_new ();

  adw_dialog_set_title (dialog, title);
  adw_dialog_set_child (dialog, content);
  adw_dialog_set_content_width (dialog, width_px);
  adw_dialog_set_content_height (dialog, height_px);
  return GTK_WIDGET (dialog);
#else
  GtkWidget *dialog = adw_window_new ();
  GtkEventController *shortcuts = gtk_shortcut_controller_new ();

  gtk_window_set_title (GTK_WINDOW (dialog), title);
  gtk_window_set_default_size (GTK_WINDOW (dialog), width_px, height_px);
  gtk_window_set_modal (GTK_WINDOW (dialog), TRUE);
  adw_window_set_content (ADW_WINDOW (dialog), content);
  gtk_shortcut_controller_add_shortcut (
      GTK_SHORTCUT_CONTROLLER (shortcuts),
      gtk_shortcut_new (gtk_keyval_trigger_new (GDK_KEY_Escape, 0),
                        gtk_named_action_new ("window.close")));
  gtk_widget_add_controller (dialog, shortcuts);
  return dialog;
#endif
}

#if !ADW_CHECK_VERSION(1, 5, 0)
/* A dialog inside the window does this by itself. */
static void
limit_to (GtkWindow *dialog, GtkWindow *parent)
{
  int most_width = parent == NULL ? 0 : gtk_widget_get_width (GTK_WIDGET (parent));
  int most_height = parent == NULL ? 0 : gtk_widget_get_height (GTK_WIDGET (parent));
  int width = 0, height = 0;

  gtk_window_get_default_size (dialog, &width, &height);
  if (most_width > 0 && most_height > 0)
    gtk_window_set_default_size (dialog, MIN (width, most_width), MIN (height, most_height));
}
#endif

void
ks_dialog_present (GtkWidget *dialog, GtkWidget *parent)
{
#if ADW_CHECK_VERSION(1, 5, 0)
  adw_dialog_present (ADW_DIALOG (dialog), parent);
#else
  gtk_window_set_transient_for (GTK_WINDOW (dialog), get_window (parent));
  limit_to (GTK_WINDOW (dialog), get_window (parent));
  gtk_window_present (GTK_WINDOW (dialog));
#endif
}

void
ks_dialog_close (GtkWidget *dialog)
{
#if ADW_CHECK_VERSION(1, 5, 0)
  adw_dialog_close (ADW_DIALOG (dialog));
#else
  gtk_window_close (GTK_WINDOW (dialog));
#endif
}

static void
answer_question (Question *question, const char *response)
{
  gboolean accepted = g_strcmp0 (response, "accept") == 0;

  if (question->entry != NULL)
    question->func.text (accepted ? gtk_editable_get_text (question->entry) : NULL, question->data);
  else
    question->func.confirm (accepted, question->data);
  question_free (question);
}

#if ADW_CHECK_VERSION(1, 5, 0)
static void
chosen_cb (GObject *dialog, GAsyncResult *result, gpointer question)
{
  answer_question (question, adw_alert_dialog_choose_finish (ADW_ALERT_DIALOG (dialog), result));
}

static void
ask (GtkWidget *parent, const char *heading, const char *body, const char *accept,
     gboolean destructive, GtkWidget *extra, Question *question)
{
  AdwAlertDialog *dialog = ADW_ALERT_DIALOG (adw_alert_dialog_new (heading, body));

  adw_alert_dialog_add_responses (dialog, "cancel", _ ("_Cancel"), "accept", accept, NULL);
  adw_alert_dialog_set_response_appearance (
      dialog, "accept", destructive ? ADW_RESPONSE_DESTRUCTIVE : ADW_RESPONSE_SUGGESTED);
  adw_alert_dialog_set_default_response (dialog, destructive ? "cancel" : "accept");
  adw_alert_dialog_set_close_response (dialog, "cancel");
  if (extra != NULL) {
    adw_alert_dialog_set_extra_child (dialog, extra);
    adw_dialog_set_focus (ADW_DIALOG (dialog), extra);
  }
  adw_alert_dialog_choose (dialog, parent, NULL, chosen_cb, question);
}
#else
static void
response_cb (AdwMessageDialog *dialog, const char *response, gpointer question)
{
  answer_question (question, response);
}

static void
ask (GtkWidget *parent, const char *heading, const char *body, const char *accept,
     gboolean destructive, GtkWidget *extra, Question *question)
{
  AdwMessageDialog *dialog =
      ADW_MESSAGE_DIALOG (adw_message_dialog_new (get_window (parent), heading, body));

  adw_message_dialog_add_responses (dialog, "cancel", _ ("_Cancel"), "accept", accept, NULL);
  adw_message_dialog_set_response_appearance (
      dialog, "accept", destructive ? ADW_RESPONSE_DESTRUCTIVE : ADW_RESPONSE_SUGGESTED);
  adw_message_dialog_set_default_response (dialog, destructive ? "cancel" : "accept");
  adw_message_dialog_set_close_response (dialog, "cancel");
  gtk_window_set_modal (GTK_WINDOW (dialog), TRUE);
  if (extra != NULL)
    adw_message_dialog_set_extra_child (dialog, extra);
  g_signal_connect (dialog, "response", G_CALLBACK (response_cb), question);
  gtk_window_present (GTK_WINDOW (dialog));
  if (extra != NULL)
    gtk_widget_grab_focus (extra);
}
#endif

void
ks_confirm (GtkWidget *parent, const char *heading, const char *body, const char *accept,
            gboolean destructive, KsConfirmFunc func, gpointer data, GDestroyNotify destroy)
{
  Question *question = question_new (data, destroy);

  question->func.confirm = func;
  ask (parent, heading, body, accept, destructive, NULL, question);
}

void
ks_ask_text (GtkWidget *parent, const char *heading, const char *body, const char *accept,
             gboolean secret, KsTextFunc func, gpointer data, GDestroyNotify destroy)
{
  Question *question = question_new (data, destroy);
  GtkWidget *entry = secret ? gtk_password_entry_new () : gtk_entry_new ();

  question->func.text = func;
  question->entry = GTK_EDITABLE (g_object_ref_sink (entry));
  g_object_set (entry, "activates-default", TRUE, NULL);
  if (secret)
    gtk_password_entry_set_show_peek_icon (GTK_PASSWORD_ENTRY (entry), TRUE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (entry), GTK_ACCESSIBLE_PROPERTY_LABEL, heading,
                                  -1);
  ask (parent, heading, body, accept, FALSE, entry, question);
}

GtkWidget *
ks_prefs_present (GtkWidget *parent, const char *title, AdwPreferencesPage *const *pages,
                  gboolean search)
{
#if ADW_CHECK_VERSION(1, 5, 0)
  AdwDialog *dialog = adw_preferences_dialog_new ();

  adw_dialog_set_title (dialog, title);
  adw_preferences_dialog_set_search_enabled (ADW_PREFERENCES_DIALOG (dialog), search);
  for (; *pages != NULL; pages++)
    adw_preferences_dialog_add (ADW_PREFERENCES_DIALOG (dialog), *pages);
  adw_dialog_present (dialog, parent);
#else
  GtkWidget *dialog = adw_preferences_window_new ();

  gtk_window_set_title (GTK_WINDOW (dialog), title);
  gtk_window_set_modal (GTK_WINDOW (dialog), TRUE);
  gtk_window_set_transient_for (GTK_WINDOW (dialog), get_window (parent));
  adw_preferences_window_set_search_enabled (ADW_PREFERENCES_WINDOW (dialog), search);
  for (; *pages != NULL; pages++)
    adw_preferences_window_add (ADW_PREFERENCES_WINDOW (dialog), *pages);
  limit_to (GTK_WINDOW (dialog), get_window (parent));
  gtk_window_present (GTK_WINDOW (dialog));
#endif
  return GTK_WIDGET (dialog);
}

void
ks_prefs_add_toast (GtkWidget *dialog, AdwToast *toast)
{
#if ADW_CHECK_VERSION(1, 5, 0)
  adw_preferences_dialog_add_toast (ADW_PREFERENCES_DIALOG (dialog), toast);
#else
  adw_preferences_window_add_toast (ADW_PREFERENCES_WINDOW (dialog), toast);
#endif
}

void
ks_about (GtkWidget *parent)
{
#if ADW_CHECK_VERSION(1, 5, 0)
  GType type = ADW_TYPE_ABOUT_DIALOG;
#else
  GType type = ADW_TYPE_ABOUT_WINDOW;
#endif
  GtkWidget *about = g_object_new (
      type, "application-name", "Keepsake", "application-icon", KS_APP_ID, "version", KS_VERSION,
      /* Translators: names of the people who translated, one a line. */
      "translator-credits", _ ("translator-credits"), "license-type", GTK_LICENSE_GPL_3_0,
      "comments",
      _ ("Answers about your own documents, from a language model on your own machine, inside a "
         "memory target that you set."),
      NULL);

#if ADW_CHECK_VERSION(1, 5, 0)
  adw_dialog_present (ADW_DIALOG (about), parent);
#else
  gtk_window_set_modal (GTK_WINDOW (about), TRUE);
  gtk_window_set_transient_for (GTK_WINDOW (about), get_window (parent));
  gtk_window_present (GTK_WINDOW (about));
#endif
}

#if GTK_CHECK_VERSION(4, 10, 0)
static GtkFileDialog *
file_dialog_new (const char *title, GListModel *filters)
{
  GtkFileDialog *dialog = gtk_file_dialog_new ();

  gtk_file_dialog_set_title (dialog, title);
  gtk_file_dialog_set_modal (dialog, TRUE);
  gtk_file_dialog_set_filters (dialog, filters);
  return dialog;
}

static void
opened_cb (GObject *dialog, GAsyncResult *result, gpointer data)
{
  Question *question = data;
  g_autoptr (GFile) file = gtk_file_dialog_open_finish (GTK_FILE_DIALOG (dialog), result, NULL);
  g_autoptr (GListStore) files = g_list_store_new (G_TYPE_FILE);

  if (file != NULL)
    g_list_store_append (files, file);
  question->func.files (file == NULL ? NULL : G_LIST_MODEL (files), question->data);
  question_free (question);
}

static void
opened_multiple_cb (GObject *dialog, GAsyncResult *result, gpointer data)
{
  Question *question = data;
  g_autoptr (GListModel) files =
      gtk_file_dialog_open_multiple_finish (GTK_FILE_DIALOG (dialog), result, NULL);

  question->func.files (files, question->data);
  question_free (question);
}

static void
saved_cb (GObject *dialog, GAsyncResult *result, gpointer data)
{
  Question *question = data;
  g_autoptr (GFile) file = gtk_file_dialog_save_finish (GTK_FILE_DIALOG (dialog), result, NULL);

  question->func.file (file, question->data);
  question_free (question);
}

static void
choose_files (GtkWidget *parent, const char *title, GListModel *filters, gboolean multiple,
              Question *question)
{
  g_autoptr (GtkFileDialog) dialog = file_dialog_new (title, filters);

  if (multiple)
    gtk_file_dialog_open_multiple (dialog, get_window (parent), NULL, opened_multiple_cb, question);
  else
    gtk_file_dialog_open (dialog, get_window (parent), NULL, opened_cb, question);
}

static void
folders_cb (GObject *dialog, GAsyncResult *result, gpointer data)
{
  Question *question = data;
  g_autoptr (GListModel) folders =
      gtk_file_dialog_select_multiple_folders_finish (GTK_FILE_DIALOG (dialog), result, NULL);

  question->func.files (folders, question->data);
  question_free (question);
}

static void
choose_folders (GtkWidget *parent, const char *title, Question *question)
{
  g_autoptr (GtkFileDialog) dialog = file_dialog_new (title, NULL);

  gtk_file_dialog_select_multiple_folders (dialog, get_window (parent), NULL, folders_cb, question);
}

static void
choose_target (GtkWidget *parent, const char *title, const char *name, GListModel *filters,
               Question *question)
{
  g_autoptr (GtkFileDialog) dialog = file_dialog_new (title, filters);

  gtk_file_dialog_set_initial_name (dialog, name);
  gtk_file_dialog_save (dialog, get_window (parent), NULL, saved_cb, question);
}
#else
static GtkFileChooserNative *
chooser_new (GtkWidget *parent, const char *title, GtkFileChooserAction action, GListModel *filters)
{
  GtkFileChooserNative *chooser =
      gtk_file_chooser_native_new (title, get_window (parent), action, NULL, NULL);

  for (guint i = 0; filters != NULL && i < g_list_model_get_n_items (filters); i++) {
    g_autoptr (GtkFileFilter) filter = g_list_model_get_item (filters, i);

    gtk_file_chooser_add_filter (GTK_FILE_CHOOSER (chooser), filter);
  }
  gtk_native_dialog_set_modal (GTK_NATIVE_DIALOG (chooser), TRUE);
  return chooser;
}

static void
opened_cb (GtkNativeDialog *chooser, int response, gpointer data)
{
  Question *question = data;
  g_autoptr (GListModel) files = NULL;

  if (response == GTK_RESPONSE_ACCEPT)
    files = gtk_file_chooser_get_files (GTK_FILE_CHOOSER (chooser));
  question->func.files (files, question->data);
  question_free (question);
  g_object_unref (chooser);
}

static void
saved_cb (GtkNativeDialog *chooser, int response, gpointer data)
{
  Question *question = data;
  g_autoptr (GFile) file = NULL;

  if (response == GTK_RESPONSE_ACCEPT)
    file = gtk_file_chooser_get_file (GTK_FILE_CHOOSER (chooser));
  question->func.file (file, question->data);
  question_free (question);
  g_object_unref (chooser);
}

static void
choose_any (GtkFileChooserNative *chooser, gboolean multiple, Question *question)
{
  gtk_file_chooser_set_select_multiple (GTK_FILE_CHOOSER (chooser), multiple);
  g_signal_connect (chooser, "response", G_CALLBACK (opened_cb), question);
  gtk_native_dialog_show (GTK_NATIVE_DIALOG (chooser)); /* holds itself until the response */
}

static void
choose_files (GtkWidget *parent, const char *title, GListModel *filters, gboolean multiple,
              Question *question)
{
  choose_any (chooser_new (parent, title, GTK_FILE_CHOOSER_ACTION_OPEN, filters), multiple,
              question);
}

static void
choose_folders (GtkWidget *parent, const char *title, Question *question)
{
  choose_any (chooser_new (parent, title, GTK_FILE_CHOOSER_ACTION_SELECT_FOLDER, NULL), TRUE,
              question);
}

static void
choose_target (GtkWidget *parent, const char *title, const char *name, GListModel *filters,
               Question *question)
{
  GtkFileChooserNative *chooser =
      chooser_new (parent, title, GTK_FILE_CHOOSER_ACTION_SAVE, filters);

  gtk_file_chooser_set_current_name (GTK_FILE_CHOOSER (chooser), name);
  g_signal_connect (chooser, "response", G_CALLBACK (saved_cb), question);
  gtk_native_dialog_show (GTK_NATIVE_DIALOG (chooser));
}
#endif

void
ks_file_open (GtkWidget *parent, const char *title, GListModel *filters, gboolean multiple,
              KsFilesFunc func, gpointer data, GDestroyNotify destroy)
{
  Question *question = question_new (data, destroy);

  question->func.files = func;
  choose_files (parent, title, filters, multiple, question);
}

void
ks_folders_open (GtkWidget *parent, const char *title, KsFilesFunc func, gpointer data,
                 GDestroyNotify destroy)
{
  Question *question = question_new (data, destroy);

  question->func.files = func;
  choose_folders (parent, title, question);
}

void
ks_file_save (GtkWidget *parent, const char *title, const char *name, GListModel *filters,
              KsFileFunc func, gpointer data, GDestroyNotify destroy)
{
  Question *question = question_new (data, destroy);

  question->func.file = func;
  choose_target (parent, title, name, filters, question);
}

static void
launch (GtkWidget *parent, const char *uri)
{
#if GTK_CHECK_VERSION(4, 10, 0)
  g_autoptr (GtkUriLauncher) launcher = gtk_uri_launcher_new (uri);

  gtk_uri_launcher_launch (launcher, get_window (parent), NULL, NULL, NULL);
#else
  gtk_show_uri (get_window (parent), uri, GDK_CURRENT_TIME);
#endif
}

gboolean
ks_open_uri (GtkWidget *parent, const char *uri)
{
  static const char *const schemes[] = {"http", "https", "mailto", NULL};
  g_autofree char *scheme = g_uri_parse_scheme (uri);
  g_autofree char *lower = scheme == NULL ? NULL : g_ascii_strdown (scheme, -1);

  if (lower == NULL || !g_strv_contains (schemes, lower))
    return FALSE;
  launch (parent, uri);
  return TRUE;
}

/* The window that asked may be gone when the file manager answers. */
typedef struct {
  GWeakRef parent;
  GFile *file;
} ShowRequest;

static void
shown_cb (GObject *bus, GAsyncResult *result, gpointer data)
{
  ShowRequest *request = data;
  g_autoptr (GVariant) reply =
      g_dbus_connection_call_finish (G_DBUS_CONNECTION (bus), result, NULL);
  g_autoptr (GtkWidget) parent = g_weak_ref_get (&request->parent);
  g_autoptr (GFile) folder = g_file_get_parent (request->file);

  if (reply == NULL && folder != NULL && parent != NULL) {
    g_autofree char *uri = g_file_get_uri (folder);

    launch (parent, uri);
  }
  g_weak_ref_clear (&request->parent);
  g_object_unref (request->file);
  g_free (request);
}

void
ks_show_in_files (GtkWidget *parent, GFile *file)
{
  g_autofree char *uri = g_file_get_uri (file);
  const char *uris[] = {uri, NULL};
  GDBusConnection *bus = g_application_get_dbus_connection (g_application_get_default ());
  ShowRequest *request = NULL;

  if (bus == NULL) {
    g_autoptr (GFile) folder = g_file_get_parent (file);
    g_autofree char *folder_uri = folder == NULL ? NULL : g_file_get_uri (folder);

    if (folder_uri != NULL)
      launch (parent, folder_uri);
    return;
  }
  request = g_new0 (ShowRequest, 1);
  g_weak_ref_init (&request->parent, parent);
  request->file = g_object_ref (file);
  g_dbus_connection_call (bus, "org.freedesktop.FileManager1", "/org/freedesktop/FileManager1",
                          "org.freedesktop.FileManager1", "ShowItems",
                          g_variant_new ("(^ass)", uris, ""), NULL, G_DBUS_CALL_FLAGS_NONE, -1,
                          NULL, shown_cb, request);
}

/* ks-composer.c - see ks-composer.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-composer.h"

#include "ui/ks-attachment-strip.h"
#include "ui/ks-attachment-words.h"
#include "ui/ks-capture-buttons.h"
#include "ui/ks-compat.h"
#include "ui/ks-error-text.h"
#include "ui/ks-intake.h"
#include "ui/ks-resource.h"

#include <glib/gi18n.h>

#define MAX_LINES 8
/* A longer word would be measured for seconds when lines may break only between words. */
#define LONGEST_WORD 300

struct _KsComposer {
  AdwBin parent_instance;

  KsAttachmentStrip *strip;
  GtkWidget *attach_button;
  KsCaptureButtons *capture_buttons;
  GtkScrolledWindow *scroller;
  GtkTextView *view;
  GtkLabel *placeholder;
  GtkButton *send_button;
  GtkLabel *hint; /* what becomes of files that cannot be read, while they wait */
  GtkLabel *note;

  KsLibrary *library;
  KsChat *chat;
  GSignalGroup *chat_signals;
  GSignalGroup *library_signals;
  char *sent_text;   /* not stored as a message yet */
  guint n_sent_from; /* messages there were before it */
  gboolean is_setting_text;
  gboolean is_note_passing; /* holds only while its reason does */
};

G_DEFINE_FINAL_TYPE (KsComposer, ks_composer, ADW_TYPE_BIN)

static GtkTextBuffer *
get_buffer (KsComposer *self)
{
  return gtk_text_view_get_buffer (self->view);
}

static void
show_note (KsComposer *self, const char *text)
{
  gtk_label_set_text (self->note, text == NULL ? "" : text);
  gtk_widget_set_visible (GTK_WIDGET (self->note), text != NULL);
  self->is_note_passing = FALSE;
  if (text != NULL)
    ks_announce (GTK_WIDGET (self), text);
}

static void
notice_cb (GObject *object, KsChat *chat, const char *notice)
{
  KsComposer *self = KS_COMPOSER (object);

  if (self->chat == chat)
    show_note (self, notice);
}

/* --- what can be done now --- */

static gboolean
is_blank (KsComposer *self)
{
  g_autofree char *text = ks_composer_get_text (self);

  return g_strstrip (text)[0] == '\0';
}

/* Why nothing can be written or attached. (transfer full) */
static char *
dup_closed_reason (KsComposer *self)
{
  if (self->chat == NULL)
    return g_strdup (_ ("No chat is open."));
  return g_strdup (ks_chat_get_read_only_reason (self->chat));
}

/* Why the message cannot be sent now, NULL when it can. (transfer full) */
static char *
dup_reason (KsComposer *self)
{
  g_autofree char *reason = dup_closed_reason (self);
  GListModel *attachments = NULL;

  if (reason != NULL)
    return g_steal_pointer (&reason);
  if (ks_chat_get_state (self->chat) == KS_CHAT_OPENING)
    return g_strdup (_ ("The chat is being opened."));
  if (ks_chat_is_busy (self->chat))
    return g_strdup (_ ("Wait until the answer ends, or stop it."));
  if (self->library != NULL && ks_library_get_model_state (self->library) == KS_MODEL_FAILED)
    return g_strdup (ks_library_get_model_error (self->library) != NULL
                         ? ks_library_get_model_error (self->library)
                         : _ ("No model is loaded. Choose one in the preferences."));
  attachments = ks_chat_get_attachments (self->chat);
  reason = ks_attachment_words_dup_reason (attachments);
  if (reason == NULL && is_blank (self) && !ks_attachment_words_has_ready (attachments))
    reason = g_strdup (g_list_model_get_n_items (attachments) == 0
                           ? _ ("Write a message first.")
                           : _ ("No attached file can be read. Write a message first, or attach "
                                "another file."));
  return g_steal_pointer (&reason);
}

static void
describe (GtkWidget *button, const char *label, const char *tooltip)
{
  gtk_widget_set_tooltip_text (button, tooltip);
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, tooltip, -1);
}

static void
update_send_button (KsComposer *self)
{
  GtkWidget *button = GTK_WIDGET (self->send_button);
  KsChatState state = self->chat == NULL ? KS_CHAT_IDLE : ks_chat_get_state (self->chat);
  g_autofree char *reason = NULL;

  if (state != KS_CHAT_IDLE && state != KS_CHAT_OPENING) {
    gtk_button_set_icon_name (self->send_button, "media-playback-stop-symbolic");
    gtk_widget_remove_css_class (button, "suggested-action");
    gtk_widget_set_sensitive (button, state != KS_CHAT_STOPPING);
    describe (button, _ ("Stop"),
              state == KS_CHAT_STOPPING ? _ ("The answer is being stopped.")
                                        : _ ("Stop the answer (Escape)"));
    return;
  }
  reason = dup_reason (self);
  gtk_button_set_icon_name (self->send_button, "go-up-symbolic");
  /* Until something can be sent, another button of the window may be the suggested one. */
  if (reason == NULL)
    gtk_widget_add_css_class (button, "suggested-action");
  else
    gtk_widget_remove_css_class (button, "suggested-action");
  gtk_widget_set_sensitive (button, reason == NULL);
  describe (button, _ ("Send"), reason == NULL ? _ ("Send the message (Enter)") : reason);
}

static void
update_hint (KsComposer *self)
{
  g_autofree char *hint = self->chat == NULL
                              ? NULL
                              : ks_attachment_words_dup_hint (ks_chat_get_attachments (self->chat));

  gtk_label_set_text (self->hint, hint == NULL ? "" : hint);
  gtk_widget_set_visible (GTK_WIDGET (self->hint), hint != NULL);
}

static void
update (KsComposer *self)
{
  g_autofree char *closed = dup_closed_reason (self);

  if (self->is_note_passing)
    show_note (self, NULL);
  gtk_widget_set_sensitive (GTK_WIDGET (self->view), closed == NULL);
  gtk_widget_set_tooltip_text (GTK_WIDGET (self->view), closed);
  gtk_label_set_text (self->placeholder, closed == NULL ? _ ("Ask about your documents") : closed);
  gtk_widget_set_sensitive (self->attach_button, closed == NULL);
  ks_capture_buttons_set_chat (self->capture_buttons, closed == NULL ? self->chat : NULL, notice_cb,
                               G_OBJECT (self));
  gtk_widget_set_tooltip_text (self->attach_button,
                               closed == NULL ? _ ("Attach files or a folder") : closed);
  update_send_button (self);
}

/* --- text --- */

static gboolean
has_long_word (const char *text, gsize n_text)
{
  gsize n_run = 0;

  for (gsize i = 0; i < n_text && n_run <= LONGEST_WORD; i++)
    n_run = g_ascii_isspace (text[i]) ? 0 : n_run + 1;
  return n_run > LONGEST_WORD;
}

static void
set_wrap_for (KsComposer *self, gboolean is_long_word)
{
  GtkWrapMode mode = is_long_word ? GTK_WRAP_CHAR : GTK_WRAP_WORD_CHAR;

  if (gtk_text_view_get_wrap_mode (self->view) != mode)
    gtk_text_view_set_wrap_mode (self->view, mode);
}

/* Whatever way text comes in (paste, middle click, drop), a large one never reaches the view. */
static void
insert_text_cb (GtkTextBuffer *buffer, GtkTextIter *where, const char *text, int n_text,
                KsComposer *self)
{
  gsize n = n_text < 0 ? strlen (text) : (gsize)n_text;

  if (n > KS_INTAKE_MAX_TEXT_BYTES && !self->is_setting_text && self->chat != NULL) {
    g_signal_stop_emission_by_name (buffer, "insert-text");
    ks_intake_take_text (text, n, self->chat);
    show_note (self, _ ("The pasted text is long: it was attached as a file."));
    return;
  }
  if (has_long_word (text, n))
    set_wrap_for (self, TRUE);
}

static void
changed_cb (GtkTextBuffer *buffer, KsComposer *self)
{
  g_autofree char *text = ks_composer_get_text (self);

  gtk_widget_set_visible (GTK_WIDGET (self->placeholder), text[0] == '\0');
  set_wrap_for (self, has_long_word (text, strlen (text)));
  show_note (self, NULL);
  update_send_button (self);
}

/* What an input method is composing is not in the buffer yet. */
static void
preedit_cb (GtkTextView *view, const char *preedit, KsComposer *self)
{
  gboolean is_empty = gtk_text_buffer_get_char_count (get_buffer (self)) == 0;

  gtk_widget_set_visible (GTK_WIDGET (self->placeholder), is_empty && preedit[0] == '\0');
}

static void
break_line (KsComposer *self)
{
  GtkTextBuffer *buffer = get_buffer (self);

  gtk_text_view_reset_im_context (self->view);
  gtk_text_buffer_begin_user_action (buffer);
  gtk_text_buffer_delete_selection (buffer, TRUE, TRUE);
  gtk_text_buffer_insert_interactive_at_cursor (buffer, "\n", 1, TRUE);
  gtk_text_buffer_end_user_action (buffer);
  gtk_text_view_scroll_mark_onscreen (self->view, gtk_text_buffer_get_insert (buffer));
}

static gboolean
key_pressed_cb (GtkEventController *controller, guint key, guint code, GdkModifierType modifiers,
                KsComposer *self)
{
  GdkEvent *event = gtk_event_controller_get_current_event (controller);

  if (key != GDK_KEY_Return && key != GDK_KEY_KP_Enter && key != GDK_KEY_ISO_Enter)
    return GDK_EVENT_PROPAGATE;
  /* Enter may end what an input method composes; only what it leaves is ours.  Nothing is passed
   * on from here: the view would offer it a second time. */
  if (event != NULL && gtk_text_view_im_context_filter_keypress (self->view, event))
    return GDK_EVENT_STOP;
  if ((modifiers & (GDK_SHIFT_MASK | GDK_ALT_MASK)) != 0)
    break_line (self);
  else
    ks_composer_send (self);
  return GDK_EVENT_STOP;
}

static void
paste_cb (GtkTextView *view, KsComposer *self)
{
  GdkClipboard *clipboard = gtk_widget_get_clipboard (GTK_WIDGET (view));
  KsIntakeKind kind = ks_intake_choose (gdk_clipboard_get_formats (clipboard));

  if (self->chat == NULL || kind == KS_INTAKE_TEXT || kind == KS_INTAKE_NOTHING)
    return; /* the view knows how; a large text is met in insert_text_cb */
  g_signal_stop_emission_by_name (view, "paste-clipboard");
  show_note (self, NULL);
  ks_intake_paste (clipboard, kind, self->chat, notice_cb, G_OBJECT (self));
}

/* --- sending --- */

static gboolean
is_stored (KsComposer *self, const char *text)
{
  GListModel *messages = ks_chat_get_messages (self->chat);
  guint n_message = g_list_model_get_n_items (messages);
  gboolean found = FALSE;

  for (guint i = self->n_sent_from; i < n_message && !found; i++) {
    g_autoptr (KsMessage) message = g_list_model_get_item (messages, i);

    found = ks_message_get_role (message) == KS_MESSAGE_USER &&
            g_strcmp0 (ks_message_get_text (message), text) == 0;
  }
  return found;
}

static void
failed_cb (KsChat *chat, const GError *error, KsComposer *self)
{
  g_autofree char *sent = g_steal_pointer (&self->sent_text);
  g_autofree char *sentence = NULL;
  g_autofree char *text = NULL;

  if (sent == NULL || is_stored (self, sent))
    return; /* the message's own row says what went wrong with its answer */
  text = ks_composer_get_text (self);
  if (g_strcmp0 (text, sent) != 0) {
    g_autofree char *both =
        text[0] == '\0' ? g_strdup (sent) : g_strconcat (sent, "\n\n", text, NULL);

    ks_composer_set_text (self, both);
  }
  sentence = ks_error_text_dup (error);
  show_note (self, sentence);
}

static void
answered_cb (KsChat *chat, KsMessage *message, KsComposer *self)
{
  g_clear_pointer (&self->sent_text, g_free);
}

void
ks_composer_send (KsComposer *self)
{
  g_autofree char *reason = NULL;
  g_autofree char *text = NULL; /* "failed" may come before the return, and frees the other one */
  g_autofree char *left_out = NULL;
  const char *refused = NULL;

  g_return_if_fail (KS_IS_COMPOSER (self));
  reason = dup_reason (self);
  if (reason != NULL) {
    show_note (self, reason);
    self->is_note_passing = TRUE;
    return;
  }
  text = ks_composer_get_text (self);
  g_free (self->sent_text);
  self->sent_text = g_strdup (text);
  self->n_sent_from = g_list_model_get_n_items (ks_chat_get_messages (self->chat));
  left_out = ks_attachment_words_dup_left_out (ks_chat_get_attachments (self->chat));
  if (!ks_chat_send (self->chat, text, &refused)) {
    g_clear_pointer (&self->sent_text, g_free);
    show_note (self, refused != NULL ? refused : _ ("The message could not be sent."));
  } else if (self->sent_text != NULL) {
    ks_composer_set_text (self, "");
    show_note (self, left_out);
  }
  ks_composer_focus (self);
}

static void
send_clicked_cb (KsComposer *self)
{
  KsChatState state = self->chat == NULL ? KS_CHAT_IDLE : ks_chat_get_state (self->chat);

  if (state == KS_CHAT_IDLE || state == KS_CHAT_OPENING) {
    ks_composer_send (self);
    return;
  }
  ks_chat_stop (self->chat);
  ks_composer_focus (self);
}

/* --- files --- */

static void
chosen_cb (GListModel *files, gpointer data)
{
  KsComposer *self = data;

  for (guint i = 0; files != NULL && self->chat != NULL && i < g_list_model_get_n_items (files);
       i++) {
    g_autoptr (GFile) file = g_list_model_get_item (files, i);
    GSList one = {file, NULL};

    ks_intake_take_files (&one, self->chat, notice_cb, G_OBJECT (self));
  }
  ks_composer_focus (self);
}

/* FALSE: the reason is shown. */
static gboolean
may_attach (KsComposer *self)
{
  g_autofree char *closed = dup_closed_reason (self);

  if (closed != NULL)
    show_note (self, closed);
  return closed == NULL;
}

void
ks_composer_choose_files (KsComposer *self)
{
  g_return_if_fail (KS_IS_COMPOSER (self));
  if (may_attach (self))
    ks_file_open (GTK_WIDGET (self), _ ("Attach Files"), NULL, TRUE, chosen_cb, g_object_ref (self),
                  g_object_unref);
}

void
ks_composer_choose_folders (KsComposer *self)
{
  g_return_if_fail (KS_IS_COMPOSER (self));
  if (may_attach (self))
    ks_folders_open (GTK_WIDGET (self), _ ("Attach Folder"), chosen_cb, g_object_ref (self),
                     g_object_unref);
}

/* Something dragged from this window is its own business: text moves inside the view. */
static gboolean
accept_cb (GtkDropTarget *target, GdkDrop *drop, KsComposer *self)
{
  g_autofree char *closed = dup_closed_reason (self);

  return closed == NULL && gdk_drop_get_drag (drop) == NULL &&
         ks_intake_choose (gdk_drop_get_formats (drop)) != KS_INTAKE_NOTHING;
}

static void
drop_text (KsComposer *self, const char *text)
{
  GtkTextBuffer *buffer = get_buffer (self);

  gtk_text_buffer_begin_user_action (buffer);
  gtk_text_buffer_insert_interactive_at_cursor (buffer, text, -1, TRUE);
  gtk_text_buffer_end_user_action (buffer);
  if (ks_intake_is_address (text))
    show_note (self, _ ("Only the address was inserted: Keepsake fetches nothing from the "
                        "network. To ask about what is there, save it as a file and attach that."));
}

static gboolean
drop_cb (GtkDropTarget *target, const GValue *value, double x, double y, KsComposer *self)
{
  GObject *object = G_OBJECT (self);

  if (self->chat == NULL)
    return FALSE;
  show_note (self, NULL);
  if (G_VALUE_HOLDS (value, GDK_TYPE_FILE_LIST))
    ks_intake_take_files (g_value_get_boxed (value), self->chat, notice_cb, object);
  else if (G_VALUE_HOLDS (value, GDK_TYPE_TEXTURE))
    ks_intake_take_texture (g_value_get_object (value), NULL, self->chat, notice_cb, object);
  else if (G_VALUE_HOLDS (value, G_TYPE_STRING) && g_value_get_string (value) != NULL)
    drop_text (self, g_value_get_string (value));
  ks_composer_focus (self);
  return TRUE;
}

static void
drop_notify_cb (GtkDropTarget *target, GParamSpec *pspec, GtkWidget *area)
{
  gtk_widget_set_visible (area, gtk_drop_target_get_current_drop (target) != NULL);
}

static GtkWidget *
drop_area_new (void)
{
  GtkWidget *area = gtk_box_new (GTK_ORIENTATION_VERTICAL, 12);
  GtkWidget *icon = gtk_image_new_from_icon_name ("mail-attachment-symbolic");
  GtkWidget *label = gtk_label_new (_ ("Drop to Attach"));

  gtk_image_set_icon_size (GTK_IMAGE (icon), GTK_ICON_SIZE_LARGE);
  gtk_widget_add_css_class (label, "title-2");
  gtk_widget_add_css_class (area, "ks-drop-area");
  gtk_widget_set_can_target (area, FALSE);
  gtk_widget_set_visible (area, FALSE);
  gtk_widget_set_valign (icon, GTK_ALIGN_END);
  gtk_widget_set_valign (label, GTK_ALIGN_START);
  gtk_widget_set_vexpand (icon, TRUE);
  gtk_widget_set_vexpand (label, TRUE);
  gtk_box_append (GTK_BOX (area), icon);
  gtk_box_append (GTK_BOX (area), label);
  return area;
}

void
ks_composer_add_drop_target (KsComposer *self, GtkWidget *page)
{
  GType types[] = {GDK_TYPE_FILE_LIST, GDK_TYPE_TEXTURE, G_TYPE_STRING};
  GtkDropTarget *target = NULL;

  g_return_if_fail (KS_IS_COMPOSER (self));
  g_return_if_fail (GTK_IS_WIDGET (page));
  target = gtk_drop_target_new (G_TYPE_INVALID, GDK_ACTION_COPY);
  gtk_drop_target_set_gtypes (target, types, G_N_ELEMENTS (types));
  /* Before the text view, which would take a list of files as its addresses. */
  gtk_event_controller_set_propagation_phase (GTK_EVENT_CONTROLLER (target), GTK_PHASE_CAPTURE);
  g_signal_connect_object (target, "accept", G_CALLBACK (accept_cb), self, G_CONNECT_DEFAULT);
  g_signal_connect_object (target, "drop", G_CALLBACK (drop_cb), self, G_CONNECT_DEFAULT);
  gtk_widget_add_css_class (page, "ks-drop-page");
  if (GTK_IS_OVERLAY (page)) {
    GtkWidget *area = drop_area_new ();

    gtk_overlay_add_overlay (GTK_OVERLAY (page), area);
    g_signal_connect_object (target, "notify::current-drop", G_CALLBACK (drop_notify_cb), area,
                             G_CONNECT_DEFAULT);
  }
  gtk_widget_add_controller (page, GTK_EVENT_CONTROLLER (target));
}

/* --- life --- */

/* The height follows the font: never a number of pixels. */
static void
update_height (KsComposer *self)
{
  PangoContext *context = gtk_widget_get_pango_context (GTK_WIDGET (self->view));
  PangoFontMetrics *metrics = pango_context_get_metrics (context, NULL, NULL);
  int line = PANGO_PIXELS_CEIL (pango_font_metrics_get_height (metrics));
  int margin =
      gtk_text_view_get_top_margin (self->view) + gtk_text_view_get_bottom_margin (self->view);

  gtk_scrolled_window_set_max_content_height (self->scroller, MAX_LINES * line + margin);
  pango_font_metrics_unref (metrics);
}

/* Why the message was not sent goes when that is no longer so: a file was unlocked or removed. */
static void
update_note (KsComposer *self)
{
  g_autofree char *reason = dup_reason (self);

  if (self->is_note_passing && g_strcmp0 (gtk_label_get_text (self->note), reason) != 0)
    show_note (self, NULL);
}

/* A chip that had the focus is gone with it. */
static void
strip_changed_cb (KsComposer *self)
{
  GtkRoot *root = gtk_widget_get_root (GTK_WIDGET (self));

  update_send_button (self);
  update_note (self);
  update_hint (self);
  if (root != NULL && gtk_widget_get_mapped (GTK_WIDGET (self)) &&
      gtk_root_get_focus (root) == NULL)
    ks_composer_focus (self);
}

static void
ks_composer_realize (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (ks_composer_parent_class)->realize (widget);
  update_height (KS_COMPOSER (widget));
}

static void
ks_composer_dispose (GObject *object)
{
  KsComposer *self = KS_COMPOSER (object);

  g_clear_object (&self->chat_signals);
  g_clear_object (&self->library_signals);
  g_clear_object (&self->chat);
  g_clear_object (&self->library);
  g_clear_pointer (&self->sent_text, g_free);
  adw_bin_set_child (ADW_BIN (self), NULL); /* its own, before the template lets go of it */
  gtk_widget_dispose_template (GTK_WIDGET (self), KS_TYPE_COMPOSER);
  G_OBJECT_CLASS (ks_composer_parent_class)->dispose (object);
}

static void
ks_composer_class_init (KsComposerClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_composer_dispose;
  widget_class->realize = ks_composer_realize;
  g_type_ensure (KS_TYPE_ATTACHMENT_STRIP);
  g_type_ensure (KS_TYPE_CAPTURE_BUTTONS);
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-composer.ui");
  gtk_widget_class_bind_template_child (widget_class, KsComposer, attach_button);
  gtk_widget_class_bind_template_child (widget_class, KsComposer, capture_buttons);
  gtk_widget_class_bind_template_child (widget_class, KsComposer, hint);
  gtk_widget_class_bind_template_child (widget_class, KsComposer, note);
  gtk_widget_class_bind_template_child (widget_class, KsComposer, placeholder);
  gtk_widget_class_bind_template_child (widget_class, KsComposer, scroller);
  gtk_widget_class_bind_template_child (widget_class, KsComposer, send_button);
  gtk_widget_class_bind_template_child (widget_class, KsComposer, strip);
  gtk_widget_class_bind_template_child (widget_class, KsComposer, view);
}

static void
connect_view (KsComposer *self)
{
  GtkEventController *keys = gtk_event_controller_key_new ();

  gtk_event_controller_set_propagation_phase (keys, GTK_PHASE_CAPTURE);
  g_signal_connect_object (keys, "key-pressed", G_CALLBACK (key_pressed_cb), self,
                           G_CONNECT_DEFAULT);
  gtk_widget_add_controller (GTK_WIDGET (self->view), keys);
  g_signal_connect_object (self->view, "paste-clipboard", G_CALLBACK (paste_cb), self,
                           G_CONNECT_DEFAULT);
  g_signal_connect_object (self->view, "preedit-changed", G_CALLBACK (preedit_cb), self,
                           G_CONNECT_DEFAULT);
  g_signal_connect_object (get_buffer (self), "insert-text", G_CALLBACK (insert_text_cb), self,
                           G_CONNECT_DEFAULT);
  g_signal_connect_object (get_buffer (self), "changed", G_CALLBACK (changed_cb), self,
                           G_CONNECT_DEFAULT);
}

static void
ks_composer_init (KsComposer *self)
{
  GtkSettings *settings = NULL;

  gtk_widget_init_template (GTK_WIDGET (self));
  connect_view (self);
  g_signal_connect_swapped (self->send_button, "clicked", G_CALLBACK (send_clicked_cb), self);
  g_signal_connect_swapped (self->strip, "changed", G_CALLBACK (strip_changed_cb), self);

  self->chat_signals = g_signal_group_new (KS_TYPE_CHAT);
  g_signal_group_connect_swapped (self->chat_signals, "notify::state", G_CALLBACK (update), self);
  g_signal_group_connect_swapped (self->chat_signals, "notify::read-only-reason",
                                  G_CALLBACK (update), self);
  g_signal_group_connect (self->chat_signals, "failed", G_CALLBACK (failed_cb), self);
  g_signal_group_connect (self->chat_signals, "answered", G_CALLBACK (answered_cb), self);
  self->library_signals = g_signal_group_new (KS_TYPE_LIBRARY);
  g_signal_group_connect_swapped (self->library_signals, "notify::model-state", G_CALLBACK (update),
                                  self);

  settings = gtk_widget_get_settings (GTK_WIDGET (self));
  g_signal_connect_object (settings, "notify::gtk-font-name", G_CALLBACK (update_height), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (settings, "notify::gtk-xft-dpi", G_CALLBACK (update_height), self,
                           G_CONNECT_SWAPPED);
  update (self);
}

KsComposer *
ks_composer_new (void)
{
  return g_object_new (KS_TYPE_COMPOSER, NULL);
}

void
ks_composer_set_library (KsComposer *self, KsLibrary *library)
{
  g_return_if_fail (KS_IS_COMPOSER (self));
  if (!g_set_object (&self->library, library))
    return;
  g_signal_group_set_target (self->library_signals, library);
  ks_attachment_strip_set_library (self->strip, library);
  update (self);
}

void
ks_composer_set_capture (KsComposer *self, KsCapture *capture)
{
  g_return_if_fail (KS_IS_COMPOSER (self));
  ks_capture_buttons_set_capture (self->capture_buttons, capture);
}

void
ks_composer_set_chat (KsComposer *self, KsChat *chat)
{
  g_return_if_fail (KS_IS_COMPOSER (self));
  if (!g_set_object (&self->chat, chat))
    return;
  g_clear_pointer (&self->sent_text, g_free);
  g_signal_group_set_target (self->chat_signals, chat);
  ks_attachment_strip_set_chat (self->strip, chat);
  show_note (self, NULL);
  update (self);
  update_hint (self);
}

char *
ks_composer_get_text (KsComposer *self)
{
  GtkTextIter start, end;

  g_return_val_if_fail (KS_IS_COMPOSER (self), NULL);
  gtk_text_buffer_get_bounds (get_buffer (self), &start, &end);
  return gtk_text_buffer_get_text (get_buffer (self), &start, &end, FALSE);
}

void
ks_composer_set_text (KsComposer *self, const char *text)
{
  g_return_if_fail (KS_IS_COMPOSER (self));
  self->is_setting_text = TRUE;
  gtk_text_buffer_set_text (get_buffer (self), text == NULL ? "" : text, -1);
  self->is_setting_text = FALSE;
}

void
ks_composer_focus (KsComposer *self)
{
  g_return_if_fail (KS_IS_COMPOSER (self));
  gtk_widget_grab_focus (GTK_WIDGET (self->view));
}

/* ks-chat-page.c - see ks-chat-page.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-chat-page.h"

#include "app/ks-error-kind.h"
#include "app/ks-notices.h"
#include "ui/ks-banner.h"
#include "ui/ks-compat.h"
#include "ui/ks-composer.h"
#include "ui/ks-error-text.h"
#include "ui/ks-file-viewer.h"
#include "ui/ks-kept-file.h"
#include "ui/ks-memory-words.h"
#include "ui/ks-notice-text.h"
#include "ui/ks-resource.h"
#include "ui/ks-toast.h"
#include "ui/ks-transcript.h"

#include <glib/gi18n.h>

#include <string.h>

#define DRAFT "ks-draft"
#define OPENING_MS 250 /* a session that opens sooner shows no spinner */
#define LOADING_MS 700 /* the same for a model */

struct _KsChatPage {
  GtkWidget parent_instance;

  GtkWidget *toasts;
  GtkWidget *overlay;
  GtkWidget *storage_banner;
  GtkWidget *model_banner;
  GtkWidget *chat_banner;
  GtkWidget *picture_banner;
  GtkWidget *notice_banner;
  GtkWidget *stack;
  GtkWidget *opening;
  GtkWidget *messages;
  GtkWidget *progress_revealer;
  GtkWidget *progress_label;
  GtkWidget *progress_bar;
  GtkWidget *composer_clamp;
  KsTranscript *transcript;
  KsComposer *composer;

  KsLibrary *library;
  KsChat *chat;
  GSignalGroup *chat_signals;
  GSignalGroup *messages_signals;
  GSignalGroup *attachments_signals;
  guint opening_timeout;
  guint loading_timeout;
};

G_DEFINE_FINAL_TYPE (KsChatPage, ks_chat_page, GTK_TYPE_WIDGET)

/* --- banners --- */

static void
update_storage_banner (KsChatPage *self)
{
  const GError *failure = ks_library_get_storage_failure (self->library);
  g_autofree char *text = failure != NULL ? ks_error_text_dup (failure) : NULL;

  ks_banner_set_text (KS_BANNER (self->storage_banner), KS_BANNER_WARNING, text);
}

static gboolean
loading_cb (gpointer data)
{
  KsChatPage *self = data;

  self->loading_timeout = 0;
  ks_banner_set_text (KS_BANNER (self->model_banner), KS_BANNER_BUSY,
                      _ ("The model is being loaded. You can write meanwhile."));
  return G_SOURCE_REMOVE;
}

static void
update_model_banner (KsChatPage *self)
{
  KsBanner *banner = KS_BANNER (self->model_banner);
  KsModelState state = ks_library_get_model_state (self->library);
  const GError *failure = ks_library_get_model_failure (self->library);
  g_autofree char *text = failure != NULL ? ks_error_text_dup (failure) : NULL;

  g_clear_handle_id (&self->loading_timeout, g_source_remove);
  ks_banner_set_button (banner, NULL, NULL);
  switch (state) {
  case KS_MODEL_LOADING:
    self->loading_timeout = g_timeout_add (LOADING_MS, loading_cb, self);
    return;
  case KS_MODEL_FAILED:
    ks_banner_set_text (banner, KS_BANNER_ERROR,
                        text != NULL ? text : _ ("The model could not be loaded."));
    ks_banner_set_button (banner, _ ("_Choose Model…"), "win.models");
    return;
  case KS_MODEL_NONE:
  case KS_MODEL_READY:
  default:
    ks_banner_set_text (banner, KS_BANNER_INFO, NULL);
  }
}

static void
update_chat_banner (KsChatPage *self)
{
  const char *reason = self->chat == NULL ? NULL : ks_chat_get_read_only_reason (self->chat);

  /* What holds for all sessions is said once. */
  if (g_strcmp0 (reason, ks_library_get_storage_error (self->library)) == 0)
    reason = NULL;
  ks_banner_set_text (KS_BANNER (self->chat_banner), KS_BANNER_INFO, reason);
}

static gboolean
has_picture (GListModel *attachments)
{
  for (guint i = 0; i < g_list_model_get_n_items (attachments); i++) {
    g_autoptr (GObject) item = g_list_model_get_item (attachments, i);
    KsAttachmentKind kind = KS_IS_PENDING_ATTACHMENT (item)
                                ? ks_pending_attachment_get_kind (KS_PENDING_ATTACHMENT (item))
                                : ks_attachment_get_kind (KS_ATTACHMENT (item));

    if (kind == KS_ATTACHMENT_IMAGE || kind == KS_ATTACHMENT_VIDEO)
      return TRUE;
  }
  return FALSE;
}

static gboolean
chat_has_picture (KsChat *chat)
{
  GListModel *messages = ks_chat_get_messages (chat);

  if (has_picture (ks_chat_get_attachments (chat)))
    return TRUE;
  for (guint i = 0; i < g_list_model_get_n_items (messages); i++) {
    g_autoptr (KsMessage) message = g_list_model_get_item (messages, i);

    if (has_picture (ks_message_get_attachments (message)))
      return TRUE;
  }
  return FALSE;
}

static void
update_picture_banner (KsChatPage *self)
{
  gboolean blind = self->chat != NULL &&
                   ks_library_get_model_state (self->library) == KS_MODEL_READY &&
                   !ks_library_can_see (self->library) && chat_has_picture (self->chat);

  ks_banner_set_text (
      KS_BANNER (self->picture_banner), KS_BANNER_INFO,
      blind ? _ ("This model cannot see pictures. They are kept and shown to you, but it "
                 "answers from the text alone.")
            : NULL);
}

/* --- messages and progress --- */

static gboolean
opening_cb (gpointer data)
{
  KsChatPage *self = data;

  self->opening_timeout = 0;
  gtk_stack_set_visible_child_name (GTK_STACK (self->stack), "opening");
  gtk_spinner_start (GTK_SPINNER (self->opening));
  return G_SOURCE_REMOVE;
}

static void
update_stack (KsChatPage *self)
{
  gboolean has_messages =
      self->chat != NULL && g_list_model_get_n_items (ks_chat_get_messages (self->chat)) > 0;
  gboolean is_opening = self->chat != NULL && ks_chat_get_state (self->chat) == KS_CHAT_OPENING;

  if (is_opening && !has_messages) {
    if (self->opening_timeout == 0)
      self->opening_timeout = g_timeout_add (OPENING_MS, opening_cb, self);
    return;
  }
  g_clear_handle_id (&self->opening_timeout, g_source_remove);
  gtk_spinner_stop (GTK_SPINNER (self->opening));
  gtk_stack_set_visible_child_name (GTK_STACK (self->stack), has_messages ? "messages" : "empty");
}

/* While a picture goes through the model's eyes. (transfer full) */
static char *
make_looking_text (const char *name, double share)
{
  return share < 0 ? g_strdup_printf (_ ("Looking at %s…"), name)
                   : g_strdup_printf (_ ("Looking at %s: %u %%"), name, (guint)(share * 100));
}

/* What the line above the composer says; NULL = nothing. (transfer full) */
static char *
make_progress_text (KsChat *chat)
{
  guint n_done = ks_chat_get_n_done (chat);
  guint n_total = ks_chat_get_n_total (chat);
  g_autofree char *done = ks_words_count (n_done), *total = ks_words_count (n_total);
  double share = -1;
  const char *looking = ks_chat_get_looking (chat, &share);

  if (looking != NULL && ks_chat_get_state (chat) != KS_CHAT_STOPPING)
    return make_looking_text (looking, share);
  switch (ks_chat_get_state (chat)) {
  case KS_CHAT_WAITING:
    return g_strdup (_ ("Waiting for the model…"));
  case KS_CHAT_REREADING:
    return n_total == 0
               ? g_strdup (_ ("Reading the session again…"))
               : g_strdup_printf (_ ("Reading the session again: %s of %s tokens"), done, total);
  case KS_CHAT_READING:
    return n_total == 0 ? g_strdup (_ ("Reading…"))
                        : g_strdup_printf (_ ("Reading: %s of %s tokens"), done, total);
  case KS_CHAT_STOPPING:
    return g_strdup (_ ("Stopping…"));
  case KS_CHAT_IDLE:
  case KS_CHAT_OPENING:
  case KS_CHAT_ANSWERING:
  default:
    return NULL;
  }
}

/* The bar below that line: how much of the tokens is read, or of a picture. */
static void
show_share (KsChatPage *self, gboolean reading)
{
  guint n_done = ks_chat_get_n_done (self->chat), n_total = ks_chat_get_n_total (self->chat);
  double share = -1;
  gboolean looking = ks_chat_get_looking (self->chat, &share) != NULL;

  gtk_widget_set_visible (self->progress_bar, reading && (looking || n_total > 0));
  if (looking && share < 0)
    gtk_progress_bar_pulse (GTK_PROGRESS_BAR (self->progress_bar));
  else if (looking)
    gtk_progress_bar_set_fraction (GTK_PROGRESS_BAR (self->progress_bar), MIN (1.0, share));
  else if (n_total > 0)
    gtk_progress_bar_set_fraction (GTK_PROGRESS_BAR (self->progress_bar),
                                   MIN (1.0, (double)n_done / n_total));
}

static void
update_progress (KsChatPage *self)
{
  g_autofree char *text = self->chat == NULL ? NULL : make_progress_text (self->chat);
  KsChatState state = self->chat == NULL ? KS_CHAT_IDLE : ks_chat_get_state (self->chat);
  gboolean reading = state == KS_CHAT_READING || state == KS_CHAT_REREADING;

  gtk_revealer_set_reveal_child (GTK_REVEALER (self->progress_revealer), text != NULL);
  if (text == NULL)
    return;
  gtk_label_set_text (GTK_LABEL (self->progress_label), text);
  show_share (self, reading);
}

static void
update_chat (KsChatPage *self)
{
  update_chat_banner (self);
  update_stack (self);
  update_progress (self);
}

static void
contents_changed_cb (GListModel *model, guint position, guint n_removed, guint n_added,
                     KsChatPage *self)
{
  update_stack (self);
  update_picture_banner (self);
}

static void
library_changed_cb (KsLibrary *library, GParamSpec *pspec, KsChatPage *self)
{
  update_storage_banner (self);
  update_model_banner (self);
  update_picture_banner (self);
  update_chat_banner (self);
}

static void
notice_cb (GObject *source, const char *text, KsChatPage *self)
{
  ks_chat_page_add_toast (self, ks_toast_new (ks_notice_text (text)));
}

/* What is said of this chat comes with an answer: beside it, not over it, until it was read. */
static void
chat_notice_cb (KsChat *chat, const char *notice, KsChatPage *self)
{
  KsBanner *banner = KS_BANNER (self->notice_banner);
  const char *shown = ks_banner_get_text (banner), *text = ks_notice_text (notice);
  g_autofree char *both = NULL;

  if (g_strcmp0 (notice, KS_NOTICE_BLIND) == 0)
    return; /* the banner on pictures says it, as long as it holds */
  if (shown != NULL && strstr (shown, text) != NULL)
    return;
  both = shown == NULL ? g_strdup (text) : g_strconcat (shown, "\n", text, NULL);
  ks_banner_set_text (banner, KS_BANNER_INFO, both);
  ks_banner_set_button (banner, _ ("_Close"), "chat-page.close-notice");
}

static void
close_notice (GtkWidget *widget, const char *action, GVariant *parameter)
{
  KsChatPage *self = KS_CHAT_PAGE (widget);

  ks_banner_set_text (KS_BANNER (self->notice_banner), KS_BANNER_INFO, NULL);
  ks_composer_focus (self->composer);
}

/* The composer speaks for a message that was not stored, the message's row for an answer that broke
 * off: only what neither of them shows is said here. */
static void
failed_cb (KsChat *chat, const GError *error, KsChatPage *self)
{
  GListModel *messages = ks_chat_get_messages (chat);
  guint n = g_list_model_get_n_items (messages);
  g_autoptr (KsMessage) last = n == 0 ? NULL : g_list_model_get_item (messages, n - 1);
  g_autofree char *text = NULL;

  if (last == NULL || ks_message_get_role (last) == KS_MESSAGE_USER ||
      ks_message_get_state (last) == KS_MESSAGE_FAILED)
    return;
  text = ks_error_text_dup (error);
  ks_chat_page_add_toast (self, ks_toast_new (text));
}

static void
answered_cb (KsChat *chat, KsMessage *message, KsChatPage *self)
{
  ks_announce (GTK_WIDGET (self), ks_message_get_state (message) == KS_MESSAGE_FAILED
                                      ? _ ("The answer failed")
                                      : _ ("The answer is complete"));
}

/* --- what the transcript asks for --- */

static void
regenerate_cb (KsTranscript *transcript, KsChatPage *self)
{
  if (self->chat != NULL)
    ks_chat_regenerate (self->chat);
}

static void
continue_cb (KsTranscript *transcript, KsChatPage *self)
{
  if (self->chat != NULL)
    ks_chat_continue (self->chat);
}

static void
edit_cb (KsTranscript *transcript, KsMessage *message, const char *text, KsChatPage *self)
{
  if (self->chat != NULL)
    ks_chat_edit (self->chat, message, text);
}

static void
select_branch_cb (KsTranscript *transcript, KsMessage *message, guint sibling, KsChatPage *self)
{
  if (self->chat != NULL)
    ks_chat_select_branch (self->chat, message, sibling);
}

static void
open_attachment_cb (KsTranscript *transcript, KsMessage *message, KsAttachment *attachment,
                    KsChatPage *self)
{
  ks_file_viewer_present (GTK_WIDGET (self), self->library, self->chat, attachment,
                          self->chat == NULL ? -1 : ks_chat_get_turn (self->chat, message));
}

static void
show_kept_cb (KsTranscript *transcript, KsMessage *message, KsAttachment *attachment,
              KsChatPage *self)
{
  if (self->chat != NULL)
    ks_kept_file_present (GTK_WIDGET (self), self->library, self->chat, attachment,
                          ks_chat_get_turn (self->chat, message), -1);
}

/* A session's own words, or the reason why it stays as it is. (transfer full) */
static char *
make_pin_text (gboolean done, gboolean is_whole, const GError *error)
{
  if (!done && ks_error_get_kind (error) == KS_ERROR_KIND_BUDGET)
    return g_strdup (_ ("There is no room to keep this as well: let something else fade, or raise "
                        "the memory target."));
  if (!done)
    return ks_error_text_dup (error);
  return is_whole ? NULL
                  : g_strdup (_ ("Kept from now on. Some of it was let go before: your next "
                                 "message reads the session again."));
}

static void
pinned_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (KsChatPage) self = user_data;
  g_autoptr (GError) error = NULL;
  gboolean is_whole = TRUE;
  gboolean done = ks_chat_pin_finish (KS_CHAT (source), result, &is_whole, &error);
  g_autofree char *text = make_pin_text (done, is_whole, error);

  if (text != NULL)
    ks_chat_page_add_toast (self, ks_toast_new (text));
}

static void
pin_cb (KsTranscript *transcript, KsMessage *message, const char *hash, gboolean pinned,
        KsChatPage *self)
{
  if (self->chat != NULL)
    ks_chat_pin_async (self->chat, message, hash, pinned, pinned_cb, g_object_ref (self));
}

/* --- the chat that is shown --- */

gboolean
ks_chat_page_has_draft (KsChat *chat)
{
  const char *draft = g_object_get_data (G_OBJECT (chat), DRAFT);

  return (draft != NULL && *draft != '\0') ||
         g_list_model_get_n_items (ks_chat_get_attachments (chat)) > 0;
}

static void
keep_draft (KsChatPage *self)
{
  if (self->chat != NULL)
    g_object_set_data_full (G_OBJECT (self->chat), DRAFT, ks_composer_get_text (self->composer),
                            g_free);
}

void
ks_chat_page_set_chat (KsChatPage *self, KsChat *chat)
{
  const char *draft = NULL;

  g_return_if_fail (KS_IS_CHAT_PAGE (self));
  if (self->chat == chat)
    return;
  keep_draft (self);
  g_set_object (&self->chat, chat);
  ks_banner_set_text (KS_BANNER (self->notice_banner), KS_BANNER_INFO, NULL);
  g_signal_group_set_target (self->chat_signals, chat);
  g_signal_group_set_target (self->messages_signals,
                             chat == NULL ? NULL : ks_chat_get_messages (chat));
  g_signal_group_set_target (self->attachments_signals,
                             chat == NULL ? NULL : ks_chat_get_attachments (chat));
  ks_transcript_set_chat (self->transcript, chat);
  ks_composer_set_chat (self->composer, chat);
  draft = chat == NULL ? NULL : g_object_get_data (G_OBJECT (chat), DRAFT);
  ks_composer_set_text (self->composer, draft == NULL ? "" : draft);
  update_chat (self);
  update_picture_banner (self);
}

KsChat *
ks_chat_page_get_chat (KsChatPage *self)
{
  g_return_val_if_fail (KS_IS_CHAT_PAGE (self), NULL);
  return self->chat;
}

gboolean
ks_chat_page_is_untouched (KsChatPage *self)
{
  g_return_val_if_fail (KS_IS_CHAT_PAGE (self), FALSE);
  keep_draft (self);
  return self->chat == NULL ||
         (ks_chat_get_session (self->chat) == NULL && !ks_chat_is_busy (self->chat) &&
          !ks_chat_page_has_draft (self->chat) &&
          g_list_model_get_n_items (ks_chat_get_messages (self->chat)) == 0);
}

void
ks_chat_page_focus (KsChatPage *self)
{
  g_return_if_fail (KS_IS_CHAT_PAGE (self));
  ks_composer_focus (self->composer);
}

void
ks_chat_page_attach (KsChatPage *self)
{
  g_return_if_fail (KS_IS_CHAT_PAGE (self));
  ks_composer_choose_files (self->composer);
}

void
ks_chat_page_attach_folders (KsChatPage *self)
{
  g_return_if_fail (KS_IS_CHAT_PAGE (self));
  ks_composer_choose_folders (self->composer);
}

void
ks_chat_page_add_toast (KsChatPage *self, AdwToast *toast)
{
  g_return_if_fail (KS_IS_CHAT_PAGE (self));
  adw_toast_overlay_add_toast (ADW_TOAST_OVERLAY (self->toasts), toast);
}

static void
ks_chat_page_root (GtkWidget *widget)
{
  KsChatPage *self = KS_CHAT_PAGE (widget);
  GtkRoot *root = NULL;

  GTK_WIDGET_CLASS (ks_chat_page_parent_class)->root (widget);
  root = gtk_widget_get_root (widget);
  if (GTK_IS_WINDOW (root))
    ks_announcer_install (GTK_WINDOW (root), GTK_OVERLAY (self->overlay));
}

static void
ks_chat_page_dispose (GObject *object)
{
  KsChatPage *self = KS_CHAT_PAGE (object);

  g_clear_handle_id (&self->opening_timeout, g_source_remove);
  g_clear_handle_id (&self->loading_timeout, g_source_remove);
  if (self->composer != NULL && self->chat != NULL)
    ks_chat_page_set_chat (self, NULL);
  g_clear_object (&self->chat_signals);
  g_clear_object (&self->messages_signals);
  g_clear_object (&self->attachments_signals);
  if (self->library != NULL)
    g_signal_handlers_disconnect_by_data (self->library, self);
  g_clear_object (&self->library);
  self->composer = NULL;
  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_CHAT_PAGE);
  g_clear_pointer (&self->overlay, gtk_widget_unparent);
  G_OBJECT_CLASS (ks_chat_page_parent_class)->dispose (object);
}

static void
ks_chat_page_class_init (KsChatPageClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_chat_page_dispose;
  widget_class->root = ks_chat_page_root;
  g_type_ensure (KS_TYPE_BANNER);
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-chat-page.ui");
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, toasts);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, overlay);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, storage_banner);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, model_banner);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, chat_banner);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, picture_banner);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, notice_banner);
  gtk_widget_class_install_action (widget_class, "chat-page.close-notice", NULL, close_notice);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, stack);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, opening);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, messages);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, progress_revealer);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, progress_label);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, progress_bar);
  gtk_widget_class_bind_template_child (widget_class, KsChatPage, composer_clamp);
}

static void
connect_chat (KsChatPage *self)
{
  self->chat_signals = g_signal_group_new (KS_TYPE_CHAT);
  g_signal_group_connect_swapped (self->chat_signals, "notify", G_CALLBACK (update_chat), self);
  g_signal_group_connect (self->chat_signals, "notice", G_CALLBACK (chat_notice_cb), self);
  g_signal_group_connect (self->chat_signals, "failed", G_CALLBACK (failed_cb), self);
  g_signal_group_connect (self->chat_signals, "answered", G_CALLBACK (answered_cb), self);
  self->messages_signals = g_signal_group_new (G_TYPE_LIST_MODEL);
  g_signal_group_connect (self->messages_signals, "items-changed", G_CALLBACK (contents_changed_cb),
                          self);
  self->attachments_signals = g_signal_group_new (G_TYPE_LIST_MODEL);
  g_signal_group_connect (self->attachments_signals, "items-changed",
                          G_CALLBACK (contents_changed_cb), self);
}

static void
ks_chat_page_init (KsChatPage *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  self->transcript = KS_TRANSCRIPT (ks_transcript_new ());
  adw_bin_set_child (ADW_BIN (self->messages), GTK_WIDGET (self->transcript));
  g_signal_connect (self->transcript, "regenerate", G_CALLBACK (regenerate_cb), self);
  g_signal_connect (self->transcript, "continue", G_CALLBACK (continue_cb), self);
  g_signal_connect (self->transcript, "edit", G_CALLBACK (edit_cb), self);
  g_signal_connect (self->transcript, "select-branch", G_CALLBACK (select_branch_cb), self);
  g_signal_connect (self->transcript, "open-attachment", G_CALLBACK (open_attachment_cb), self);
  g_signal_connect (self->transcript, "pin", G_CALLBACK (pin_cb), self);
  g_signal_connect (self->transcript, "show-kept", G_CALLBACK (show_kept_cb), self);
  self->composer = ks_composer_new ();
  adw_clamp_set_child (ADW_CLAMP (self->composer_clamp), GTK_WIDGET (self->composer));
  ks_composer_add_drop_target (self->composer, self->overlay);
  connect_chat (self);
}

GtkWidget *
ks_chat_page_new (KsLibrary *library)
{
  KsChatPage *self = g_object_new (KS_TYPE_CHAT_PAGE, NULL);
  g_autoptr (KsCapture) capture = ks_capture_new ();

  self->library = g_object_ref (library);
  ks_composer_set_library (self->composer, library);
  ks_composer_set_capture (self->composer, capture);
  ks_transcript_set_library (self->transcript, library);
  g_signal_connect (library, "notify", G_CALLBACK (library_changed_cb), self);
  g_signal_connect (library, "notice", G_CALLBACK (notice_cb), self);
  library_changed_cb (library, NULL, self);
  update_chat (self);
  return GTK_WIDGET (self);
}

/* ks-transcript.c - see ks-transcript.h.
 * The list anchors itself while it grows, so the position is set from an idle of low priority,
 * after the list has had its turn; setting it where the growth is announced leaves a gap. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-transcript.h"

#include "ui/ks-compat.h"
#include "ui/ks-kept-file.h"
#include "ui/ks-message-row.h"
#include "ui/ks-resource.h"

#include <glib/gi18n.h>

/* This near to the end counts as at the end. */
#define NEAR_PX 12.0
/* Closer to the end nobody needs a button to it.  More than the button's own line, which takes room
 * from the list: neither showing nor hiding it asks for the other. */
#define FAR_PX 72.0

struct _KsTranscript {
  GtkWidget parent_instance;

  GtkWidget *box;
  GtkScrolledWindow *scroller;
  GtkListView *list;
  GtkRevealer *newest;
  GtkAdjustment *adjustment; /* (borrowed) */

  KsChat *chat;
  GSignalGroup *chat_signals;
  KsMemoryView *memory; /* of the chat, when its state changed last; NULL = nothing is known */
  GListModel *messages;
  GSignalGroup *messages_signals;
  KsLibrary *library;
  KsThumbnailFunc thumbnails;
  gpointer thumbnails_data;
  GPtrArray *rows; /* KsMessageRow that are alive (borrowed) */
  gboolean can_change;
  gboolean follows;
  double last_value, last_upper;
  guint idle;
};

G_DEFINE_FINAL_TYPE (KsTranscript, ks_transcript, GTK_TYPE_WIDGET)

enum { REGENERATE, CONTINUE, EDIT, SELECT_BRANCH, OPEN_ATTACHMENT, PIN, SHOW_KEPT, N_SIGNALS };
static guint signals[N_SIGNALS];

/* --- following the end --- */

static gboolean
is_near_end (KsTranscript *self, double near_px)
{
  double upper = gtk_adjustment_get_upper (self->adjustment);
  double page = gtk_adjustment_get_page_size (self->adjustment);

  return gtk_adjustment_get_value (self->adjustment) + page >= upper - near_px;
}

static void
update_newest (KsTranscript *self)
{
  gboolean shows = !self->follows && !is_near_end (self, FAR_PX);

  gtk_widget_set_visible (GTK_WIDGET (self->newest), shows);
  gtk_revealer_set_reveal_child (self->newest, shows);
}

static gboolean
follow_cb (gpointer data)
{
  KsTranscript *self = data;

  self->idle = 0;
  if (self->follows)
    gtk_adjustment_set_value (self->adjustment,
                              gtk_adjustment_get_upper (self->adjustment) -
                                  gtk_adjustment_get_page_size (self->adjustment));
  self->last_value = gtk_adjustment_get_value (self->adjustment);
  self->last_upper = gtk_adjustment_get_upper (self->adjustment);
  update_newest (self);
  return G_SOURCE_REMOVE;
}

static void
queue_follow (KsTranscript *self)
{
  if (self->idle == 0)
    self->idle = g_idle_add_full (G_PRIORITY_LOW, follow_cb, self, NULL);
}

/* Sizes changed: rows came, went or grew, or the window did. */
static void
changed_cb (KsTranscript *self)
{
  queue_follow (self);
}

/* The user moved, or the list anchored itself anew after a change of sizes; only the former says
 * whether the end is to be followed. */
static void
value_changed_cb (KsTranscript *self)
{
  double value = gtk_adjustment_get_value (self->adjustment);
  double upper = gtk_adjustment_get_upper (self->adjustment);

  if (self->idle == 0)
    self->follows = is_near_end (self, NEAR_PX);
  else if (value < self->last_value - NEAR_PX && upper >= self->last_upper)
    self->follows = FALSE;
  self->last_value = value;
  self->last_upper = upper;
  if (self->idle == 0)
    update_newest (self);
}

static gboolean
scroll_cb (KsTranscript *self, double dx, double dy)
{
  if (dy < 0)
    self->follows = FALSE;
  return GDK_EVENT_PROPAGATE;
}

void
ks_transcript_scroll_to_end (KsTranscript *self)
{
  guint n = 0;

  g_return_if_fail (KS_IS_TRANSCRIPT (self));
  n = self->messages == NULL ? 0 : g_list_model_get_n_items (self->messages);
  self->follows = TRUE;
  if (n > 0)
    gtk_widget_activate_action (GTK_WIDGET (self->list), "list.scroll-to-item", "u", n - 1);
  queue_follow (self);
}

void
ks_transcript_scroll_to (KsTranscript *self, guint position)
{
  g_return_if_fail (KS_IS_TRANSCRIPT (self));
  if (self->messages == NULL || position >= g_list_model_get_n_items (self->messages))
    return;
  self->follows = FALSE;
  gtk_widget_activate_action (GTK_WIDGET (self->list), "list.scroll-to-item", "u", position);
}

gboolean
ks_transcript_is_at_end (KsTranscript *self)
{
  g_return_val_if_fail (KS_IS_TRANSCRIPT (self), FALSE);
  return is_near_end (self, NEAR_PX);
}

/* --- rows --- */

static void
update_row (KsTranscript *self, KsMessageRow *row)
{
  guint n = self->messages == NULL ? 0 : g_list_model_get_n_items (self->messages);
  g_autoptr (KsMessage) last = n == 0 ? NULL : g_list_model_get_item (self->messages, n - 1);
  KsMessage *message = ks_message_row_get_message (row);

  ks_message_row_set_place (row, message != NULL && message == last, self->can_change);
}

static void
update_rows (KsTranscript *self)
{
  for (guint i = 0; i < self->rows->len; i++)
    update_row (self, self->rows->pdata[i]);
}

static void
regenerate_cb (KsTranscript *self)
{
  g_signal_emit (self, signals[REGENERATE], 0);
}

static void
continue_cb (KsTranscript *self)
{
  g_signal_emit (self, signals[CONTINUE], 0);
}

static void
edit_cb (KsMessageRow *row, const char *text, KsTranscript *self)
{
  g_autoptr (KsMessage) message = g_object_ref (ks_message_row_get_message (row));

  g_signal_emit (self, signals[EDIT], 0, message, text);
}

static void
select_branch_cb (KsMessageRow *row, guint sibling, KsTranscript *self)
{
  g_autoptr (KsMessage) message = g_object_ref (ks_message_row_get_message (row));

  g_signal_emit (self, signals[SELECT_BRANCH], 0, message, sibling);
}

static void
open_attachment_cb (KsMessageRow *row, KsAttachment *attachment, KsTranscript *self)
{
  g_signal_emit (self, signals[OPEN_ATTACHMENT], 0, ks_message_row_get_message (row), attachment);
}

static void
show_kept_cb (KsMessageRow *row, KsAttachment *attachment, KsTranscript *self)
{
  g_signal_emit (self, signals[SHOW_KEPT], 0, ks_message_row_get_message (row), attachment);
}

static double
get_kept (KsMessage *message, KsAttachment *attachment, gpointer data)
{
  KsTranscript *self = data;
  int turn =
      self->chat == NULL || self->memory == NULL ? -1 : ks_chat_get_turn (self->chat, message);

  return turn < 0 ? -1 : ks_kept_file_get_share (self->memory, attachment, turn, -1);
}

/* Between answers: while one is written the numbers move all the time. */
static void
update_kept (KsTranscript *self)
{
  if (self->chat != NULL && ks_chat_is_busy (self->chat))
    return;
  g_clear_pointer (&self->memory, ks_memory_view_free);
  if (self->chat != NULL)
    self->memory = ks_chat_dup_memory (self->chat);
  for (guint i = 0; i < self->rows->len; i++)
    ks_message_row_update_kept (self->rows->pdata[i]);
}

static void
pin_cb (KsMessageRow *row, const char *hash, gboolean pinned, KsTranscript *self)
{
  g_autoptr (KsMessage) message = g_object_ref (ks_message_row_get_message (row));

  g_signal_emit (self, signals[PIN], 0, message, hash, pinned);
}

/* Not in "teardown": a list that goes has let its children go before. */
static void
row_destroyed_cb (GtkWidget *row, KsTranscript *self)
{
  g_ptr_array_remove_fast (self->rows, row);
}

static void
setup_cb (GtkSignalListItemFactory *factory, GtkListItem *item, KsTranscript *self)
{
  GtkWidget *row = ks_message_row_new ();

  gtk_list_item_set_activatable (item, FALSE);
  gtk_list_item_set_selectable (item, FALSE);
  g_signal_connect_swapped (row, "regenerate", G_CALLBACK (regenerate_cb), self);
  g_signal_connect_swapped (row, "continue", G_CALLBACK (continue_cb), self);
  g_signal_connect (row, "edit", G_CALLBACK (edit_cb), self);
  g_signal_connect (row, "select-branch", G_CALLBACK (select_branch_cb), self);
  g_signal_connect (row, "open-attachment", G_CALLBACK (open_attachment_cb), self);
  g_signal_connect (row, "pin", G_CALLBACK (pin_cb), self);
  g_signal_connect (row, "show-kept", G_CALLBACK (show_kept_cb), self);
  ks_message_row_set_kept (KS_MESSAGE_ROW (row), get_kept, self);
  g_signal_connect_object (row, "destroy", G_CALLBACK (row_destroyed_cb), self, G_CONNECT_DEFAULT);
  g_ptr_array_add (self->rows, row);
  gtk_list_item_set_child (item, row);
}

static void
bind_cb (GtkSignalListItemFactory *factory, GtkListItem *item, KsTranscript *self)
{
  KsMessageRow *row = KS_MESSAGE_ROW (gtk_list_item_get_child (item));

  ks_message_row_set_thumbnails (row, self->thumbnails, self->thumbnails_data);
  ks_message_row_set_message (row, gtk_list_item_get_item (item));
  update_row (self, row);
}

static void
unbind_cb (GtkSignalListItemFactory *factory, GtkListItem *item, KsTranscript *self)
{
  ks_message_row_set_message (KS_MESSAGE_ROW (gtk_list_item_get_child (item)), NULL);
}

static void
teardown_cb (GtkSignalListItemFactory *factory, GtkListItem *item, KsTranscript *self)
{
  gtk_list_item_set_child (item, NULL);
}

/* --- what is shown --- */

void
ks_transcript_set_model (KsTranscript *self, GListModel *messages)
{
  g_autoptr (GtkSelectionModel) selection = NULL;

  g_return_if_fail (KS_IS_TRANSCRIPT (self));
  if (self->messages == messages)
    return;
  g_set_object (&self->messages, messages);
  g_signal_group_set_target (self->messages_signals, messages);
  if (messages != NULL)
    selection = GTK_SELECTION_MODEL (gtk_no_selection_new (g_object_ref (messages)));
  gtk_list_view_set_model (self->list, selection);
  update_rows (self);
  ks_transcript_scroll_to_end (self);
}

void
ks_transcript_set_can_change (KsTranscript *self, gboolean can_change)
{
  g_return_if_fail (KS_IS_TRANSCRIPT (self));
  if (self->can_change == can_change)
    return;
  self->can_change = can_change;
  update_rows (self);
}

static void
chat_cb (KsTranscript *self)
{
  ks_transcript_set_can_change (self, self->chat != NULL &&
                                          ks_chat_get_state (self->chat) == KS_CHAT_IDLE &&
                                          ks_chat_get_read_only_reason (self->chat) == NULL);
}

/* The start is said here; the end by who knows how it ended. */
static void
chat_state_cb (KsTranscript *self)
{
  if (ks_chat_get_state (self->chat) == KS_CHAT_ANSWERING)
    ks_announce (GTK_WIDGET (self), _ ("The answer begins"));
  chat_cb (self);
  update_kept (self);
}

void
ks_transcript_set_chat (KsTranscript *self, KsChat *chat)
{
  g_return_if_fail (KS_IS_TRANSCRIPT (self));
  g_set_object (&self->chat, chat);
  g_signal_group_set_target (self->chat_signals, chat);
  chat_cb (self);
  ks_transcript_set_model (self, chat == NULL ? NULL : ks_chat_get_messages (chat));
  update_kept (self);
}

/* One's own message is always gone to; others only if the end was in view. */
static void
items_changed_cb (GListModel *messages, guint position, guint n_removed, guint n_added,
                  KsTranscript *self)
{
  guint n = g_list_model_get_n_items (messages);

  update_rows (self);
  for (guint i = position; i < position + n_added && n_removed == 0 && position + n_added == n;
       i++) {
    g_autoptr (KsMessage) message = g_list_model_get_item (messages, i);

    if (ks_message_get_role (message) == KS_MESSAGE_USER && n_added <= 2)
      self->follows = TRUE;
  }
  queue_follow (self);
}

typedef struct {
  KsThumbnailDone done;
  gpointer data;
} Thumbnail;

static void
rendered_cb (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autofree Thumbnail *thumbnail = data;
  g_autoptr (KsPixels) pixels = ks_library_render_finish (KS_LIBRARY (source), result, NULL);

  /* A picture that cannot be made is no news here: opening the file says why. */
  thumbnail->done (pixels, thumbnail->data);
}

static void
render (KsAttachment *attachment, guint max_side_px, GCancellable *cancellable,
        KsThumbnailDone done, gpointer done_data, gpointer data)
{
  Thumbnail *thumbnail = g_new0 (Thumbnail, 1);

  thumbnail->done = done;
  thumbnail->data = done_data;
  ks_library_render_async (data, attachment, 0, max_side_px, NULL, cancellable, rendered_cb,
                           thumbnail);
}

void
ks_transcript_set_library (KsTranscript *self, KsLibrary *library)
{
  g_return_if_fail (KS_IS_TRANSCRIPT (self));
  g_set_object (&self->library, library);
  ks_transcript_set_thumbnails (self, library == NULL ? NULL : render, library);
}

void
ks_transcript_set_thumbnails (KsTranscript *self, KsThumbnailFunc thumbnails, gpointer data)
{
  g_return_if_fail (KS_IS_TRANSCRIPT (self));
  self->thumbnails = thumbnails;
  self->thumbnails_data = data;
}

static void
ks_transcript_dispose (GObject *object)
{
  KsTranscript *self = KS_TRANSCRIPT (object);

  g_clear_handle_id (&self->idle, g_source_remove);
  if (self->adjustment != NULL)
    g_signal_handlers_disconnect_by_data (self->adjustment, self);
  self->adjustment = NULL;
  g_clear_object (&self->chat_signals);
  g_clear_object (&self->messages_signals);
  g_clear_object (&self->chat);
  g_clear_object (&self->messages);
  g_clear_pointer (&self->memory, ks_memory_view_free);
  if (self->list != NULL)
    gtk_list_view_set_model (self->list, NULL);
  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_TRANSCRIPT);
  g_clear_object (&self->library);
  G_OBJECT_CLASS (ks_transcript_parent_class)->dispose (object);
}

static void
ks_transcript_finalize (GObject *object)
{
  g_ptr_array_unref (KS_TRANSCRIPT (object)->rows);
  G_OBJECT_CLASS (ks_transcript_parent_class)->finalize (object);
}

static void
add_signals (void)
{
  signals[REGENERATE] = g_signal_new ("regenerate", KS_TYPE_TRANSCRIPT, G_SIGNAL_RUN_LAST, 0, NULL,
                                      NULL, NULL, G_TYPE_NONE, 0);
  signals[CONTINUE] = g_signal_new ("continue", KS_TYPE_TRANSCRIPT, G_SIGNAL_RUN_LAST, 0, NULL,
                                    NULL, NULL, G_TYPE_NONE, 0);
  signals[EDIT] = g_signal_new ("edit", KS_TYPE_TRANSCRIPT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 2, KS_TYPE_MESSAGE, G_TYPE_STRING);
  signals[SELECT_BRANCH] =
      g_signal_new ("select-branch", KS_TYPE_TRANSCRIPT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                    G_TYPE_NONE, 2, KS_TYPE_MESSAGE, G_TYPE_UINT);
  signals[OPEN_ATTACHMENT] =
      g_signal_new ("open-attachment", KS_TYPE_TRANSCRIPT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                    G_TYPE_NONE, 2, KS_TYPE_MESSAGE, KS_TYPE_ATTACHMENT);
  signals[SHOW_KEPT] =
      g_signal_new ("show-kept", KS_TYPE_TRANSCRIPT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                    G_TYPE_NONE, 2, KS_TYPE_MESSAGE, KS_TYPE_ATTACHMENT);
  signals[PIN] = g_signal_new ("pin", KS_TYPE_TRANSCRIPT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                               G_TYPE_NONE, 3, KS_TYPE_MESSAGE, G_TYPE_STRING, G_TYPE_BOOLEAN);
}

static void
ks_transcript_class_init (KsTranscriptClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_transcript_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_transcript_finalize;
  add_signals ();
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-transcript.ui");
  gtk_widget_class_bind_template_child (widget_class, KsTranscript, box);
  gtk_widget_class_bind_template_child (widget_class, KsTranscript, scroller);
  gtk_widget_class_bind_template_child (widget_class, KsTranscript, list);
  gtk_widget_class_bind_template_child (widget_class, KsTranscript, newest);
  gtk_widget_class_bind_template_callback (widget_class, ks_transcript_scroll_to_end);
}

static void
connect_all (KsTranscript *self)
{
  GtkListItemFactory *factory = gtk_signal_list_item_factory_new ();
  GtkEventController *scroll =
      gtk_event_controller_scroll_new (GTK_EVENT_CONTROLLER_SCROLL_VERTICAL);

  g_signal_connect (factory, "setup", G_CALLBACK (setup_cb), self);
  g_signal_connect (factory, "bind", G_CALLBACK (bind_cb), self);
  g_signal_connect (factory, "unbind", G_CALLBACK (unbind_cb), self);
  g_signal_connect (factory, "teardown", G_CALLBACK (teardown_cb), self);
  gtk_list_view_set_factory (self->list, factory);
  g_object_unref (factory);
  self->adjustment = gtk_scrolled_window_get_vadjustment (self->scroller);
  g_signal_connect_swapped (self->adjustment, "changed", G_CALLBACK (changed_cb), self);
  g_signal_connect_swapped (self->adjustment, "value-changed", G_CALLBACK (value_changed_cb), self);
  gtk_event_controller_set_propagation_phase (scroll, GTK_PHASE_CAPTURE);
  g_signal_connect_swapped (scroll, "scroll", G_CALLBACK (scroll_cb), self);
  gtk_widget_add_controller (GTK_WIDGET (self->scroller), scroll);
  self->chat_signals = g_signal_group_new (KS_TYPE_CHAT);
  g_signal_group_connect_swapped (self->chat_signals, "notify::state", G_CALLBACK (chat_state_cb),
                                  self);
  g_signal_group_connect_swapped (self->chat_signals, "notify::read-only-reason",
                                  G_CALLBACK (chat_cb), self);
  self->messages_signals = g_signal_group_new (G_TYPE_LIST_MODEL);
  g_signal_group_connect (self->messages_signals, "items-changed", G_CALLBACK (items_changed_cb),
                          self);
}

static void
ks_transcript_init (KsTranscript *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  self->rows = g_ptr_array_new ();
  self->follows = TRUE;
  connect_all (self);
}

GtkWidget *
ks_transcript_new (void)
{
  return g_object_new (KS_TYPE_TRANSCRIPT, NULL);
}

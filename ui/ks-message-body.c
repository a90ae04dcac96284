/* ks-message-body.c - see ks-message-body.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-message-body.h"

#include "ui/ks-block-view.h"
#include "ui/ks-markdown.h"

#include <glib/gi18n.h>

/* Kept with the message: what was read of it, and how many lines the user asked for. */
#define PARSED "ks-markdown"
#define LINES "ks-body-lines"
/* Each "Show More" brings this many more lines. */
#define MORE_LINES 240u
/* A message that streams is shown as far as it goes. */
#define ALL_LINES 100000u
/* A part of a block is not worth showing below this. */
#define FEWEST_LINES 6u

struct _KsMessageBody {
  GtkWidget parent_instance;

  KsMessage *message;
  GPtrArray *views; /* KsBlockView, in order (borrowed: children) */
  GtkWidget *more;  /* NULL until it is needed */
  GtkWidget *rest;
};

G_DEFINE_FINAL_TYPE (KsMessageBody, ks_message_body, GTK_TYPE_WIDGET)

static KsMarkdown *
get_markdown (KsMessage *message)
{
  KsMarkdown *markdown = g_object_get_data (G_OBJECT (message), PARSED);

  if (markdown == NULL) {
    gboolean is_user = ks_message_get_role (message) == KS_MESSAGE_USER;

    markdown = ks_markdown_new (is_user ? KS_MARKDOWN_PLAIN : KS_MARKDOWN_RICH);
    g_object_set_data_full (G_OBJECT (message), PARSED, markdown,
                            (GDestroyNotify)ks_markdown_unref);
  }
  ks_markdown_set_text (markdown, ks_message_get_text (message),
                        ks_message_get_state (message) == KS_MESSAGE_STREAMING);
  return markdown;
}

static guint
get_n_lines (KsMessage *message)
{
  guint n_lines = GPOINTER_TO_UINT (g_object_get_data (G_OBJECT (message), LINES));

  /* What was seen while it came is not folded when it is complete. */
  if (ks_message_get_state (message) == KS_MESSAGE_STREAMING) {
    n_lines = ALL_LINES;
    g_object_set_data (G_OBJECT (message), LINES, GUINT_TO_POINTER (n_lines));
  }
  return MAX (n_lines, KS_MESSAGE_BODY_LINES);
}

static void
show_block (KsMessageBody *self, guint i, KsMarkdownBlock *block, guint n_lines)
{
  if (i == self->views->len) {
    GtkWidget *view = ks_block_view_new ();
    GtkWidget *before = i == 0 ? NULL : self->views->pdata[i - 1];

    gtk_widget_insert_after (view, GTK_WIDGET (self), before);
    g_ptr_array_add (self->views, view);
  }
  ks_block_view_set_block (self->views->pdata[i], block, n_lines);
}

/* Shows blocks until n_lines are reached; TRUE when something is left. */
static gboolean
show_blocks (KsMessageBody *self, KsMarkdown *markdown, guint n_lines, guint *out_n)
{
  guint i = 0, n_shown = 0;
  gboolean is_cut = FALSE;

  for (;; i++) {
    KsMarkdownBlock *block = NULL;
    guint room = n_lines - MIN (n_shown, n_lines);
    gboolean can_cut = FALSE;

    ks_markdown_ensure (markdown, i + 1);
    if (i >= ks_markdown_get_n_blocks (markdown))
      break;
    block = ks_markdown_get_block (markdown, i);
    can_cut = block->kind == KS_BLOCK_CODE || block->kind == KS_BLOCK_TABLE;
    if (is_cut || n_shown >= n_lines ||
        (i > 0 && block->n_lines > room && (!can_cut || room < FEWEST_LINES))) {
      *out_n = i;
      return TRUE;
    }
    is_cut = can_cut && block->n_lines > room;
    show_block (self, i, block, is_cut ? MAX (room, FEWEST_LINES) : block->n_lines);
    n_shown += block->n_lines;
  }
  *out_n = i;
  return is_cut;
}

static void
more_cb (KsMessageBody *self)
{
  ks_message_body_show_more (self);
}

static void
update_more (KsMessageBody *self, gboolean has_more)
{
  if (!has_more && self->more == NULL)
    return;
  if (self->more == NULL) {
    self->more = gtk_button_new_with_mnemonic (_ ("Show _More"));
    gtk_widget_set_halign (self->more, GTK_ALIGN_START);
    gtk_widget_add_css_class (self->more, "more");
    g_signal_connect_swapped (self->more, "clicked", G_CALLBACK (more_cb), self);
    gtk_widget_insert_before (self->more, GTK_WIDGET (self), NULL);
  }
  gtk_widget_set_visible (self->more, has_more);
}

/* What no widget ever shows is said. */
static void
update_rest (KsMessageBody *self, gsize n_left_out)
{
  g_autofree char *size = NULL;
  g_autofree char *text = NULL;

  if (n_left_out == 0 && self->rest == NULL)
    return;
  if (self->rest == NULL) {
    self->rest = gtk_label_new (NULL);
    gtk_label_set_wrap (GTK_LABEL (self->rest), TRUE);
    gtk_label_set_xalign (GTK_LABEL (self->rest), 0);
    gtk_widget_add_css_class (self->rest, "dim-label");
    gtk_widget_insert_before (self->rest, GTK_WIDGET (self), NULL);
  }
  size = g_format_size_full (n_left_out, G_FORMAT_SIZE_IEC_UNITS);
  /* Translators: %s is a size, "3.2 MiB". */
  text = g_strdup_printf (_ ("The message is too long to be shown: %s more are in what you copy or "
                             "export."),
                          size);
  gtk_label_set_text (GTK_LABEL (self->rest), text);
  gtk_widget_set_visible (self->rest, n_left_out > 0);
}

void
ks_message_body_update (KsMessageBody *self)
{
  KsMarkdown *markdown = NULL;
  gboolean has_more = FALSE;
  guint n = 0;

  g_return_if_fail (KS_IS_MESSAGE_BODY (self));
  if (self->message != NULL) {
    markdown = get_markdown (self->message);
    has_more = show_blocks (self, markdown, get_n_lines (self->message), &n);
  }
  for (guint i = self->views->len; i > n; i--)
    gtk_widget_unparent (self->views->pdata[i - 1]);
  g_ptr_array_set_size (self->views, (int)n);
  update_more (self, has_more);
  update_rest (self, has_more || markdown == NULL ? 0 : ks_markdown_get_n_left_out (markdown));
}

void
ks_message_body_set_message (KsMessageBody *self, KsMessage *message)
{
  g_return_if_fail (KS_IS_MESSAGE_BODY (self));
  g_set_object (&self->message, message);
  ks_message_body_update (self);
}

guint
ks_message_body_get_n_blocks (KsMessageBody *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE_BODY (self), 0);
  return self->views->len;
}

GtkWidget *
ks_message_body_get_block (KsMessageBody *self, guint i)
{
  g_return_val_if_fail (KS_IS_MESSAGE_BODY (self) && i < self->views->len, NULL);
  return self->views->pdata[i];
}

gboolean
ks_message_body_has_more (KsMessageBody *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE_BODY (self), FALSE);
  return self->more != NULL && gtk_widget_get_visible (self->more);
}

void
ks_message_body_show_more (KsMessageBody *self)
{
  g_return_if_fail (KS_IS_MESSAGE_BODY (self));
  if (self->message == NULL)
    return;
  g_object_set_data (G_OBJECT (self->message), LINES,
                     GUINT_TO_POINTER (get_n_lines (self->message) + MORE_LINES));
  ks_message_body_update (self);
}

static void
ks_message_body_dispose (GObject *object)
{
  KsMessageBody *self = KS_MESSAGE_BODY (object);

  for (guint i = 0; i < self->views->len; i++)
    gtk_widget_unparent (self->views->pdata[i]);
  g_ptr_array_set_size (self->views, 0);
  g_clear_pointer (&self->more, gtk_widget_unparent);
  g_clear_pointer (&self->rest, gtk_widget_unparent);
  g_clear_object (&self->message);
  G_OBJECT_CLASS (ks_message_body_parent_class)->dispose (object);
}

static void
ks_message_body_finalize (GObject *object)
{
  g_ptr_array_unref (KS_MESSAGE_BODY (object)->views);
  G_OBJECT_CLASS (ks_message_body_parent_class)->finalize (object);
}

static void
ks_message_body_class_init (KsMessageBodyClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_message_body_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_message_body_finalize;
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BOX_LAYOUT);
  gtk_widget_class_set_css_name (widget_class, "messagebody");
}

static void
ks_message_body_init (KsMessageBody *self)
{
  self->views = g_ptr_array_new ();
  gtk_orientable_set_orientation (
      GTK_ORIENTABLE (gtk_widget_get_layout_manager (GTK_WIDGET (self))), GTK_ORIENTATION_VERTICAL);
}

GtkWidget *
ks_message_body_new (void)
{
  return g_object_new (KS_TYPE_MESSAGE_BODY, NULL);
}

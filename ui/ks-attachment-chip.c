/* ks-attachment-chip.c - see ks-attachment-chip.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-attachment-chip.h"

#include "ui/ks-compat.h"
#include "ui/ks-file-viewer.h"
#include "ui/ks-memory-words.h"
#include "ui/ks-reading-choice.h"
#include "ui/ks-resource.h"
#include "ui/ks-texture.h"
#include "ui/ks-video-dialog.h"

#include <glib/gi18n.h>

#define ICON_PX 32
#define THUMBNAIL_PX 44
#define NAME_CHARS 24
#define DETAIL_CHARS 30

struct _KsAttachmentChip {
  AdwBin parent_instance;

  GtkWidget *open_button;
  GtkImage *picture;
  GtkLabel *name;
  GtkLabel *detail;
  GtkProgressBar *progress;
  GtkWidget *lock;
  GtkEditable *password;
  GtkWidget *unlock_button;
  GtkMenuButton *reading_button;
  GtkWidget *frames_button;
  GtkWidget *remove_button;

  KsChat *chat;
  KsLibrary *library; /* may be NULL */
  KsPendingAttachment *attachment;
};

G_DEFINE_FINAL_TYPE (KsAttachmentChip, ks_attachment_chip, ADW_TYPE_BIN)

/* Tokens that memory keeps on average over its streams; 0 = not known. */
static guint64
get_n_kept (KsAttachmentChip *self)
{
  g_autoptr (KsMemoryView) memory = ks_chat_dup_memory (self->chat);
  guint64 n_stream = 0;

  if (memory == NULL && self->library != NULL)
    memory = ks_library_dup_memory (self->library);
  if (memory != NULL)
    n_stream = (guint64)memory->n_layer * memory->n_kv_head;
  return n_stream == 0 ? 0 : memory->n_keep / n_stream;
}

/* --- words --- */

static char *
dup_pages (KsAttachmentChip *self)
{
  guint n_page = ks_pending_attachment_get_n_pages (self->attachment);
  g_autofree char *count = ks_words_count (n_page);

  if (n_page == 0)
    return NULL;
  return g_strdup_printf (ngettext ("%s page", "%s pages", n_page), count);
}

static char *
dup_tokens (KsAttachmentChip *self)
{
  guint n_token = ks_pending_attachment_get_n_tokens (self->attachment);
  guint64 n_kept = get_n_kept (self);
  g_autofree char *count = ks_words_count (n_token), *tokens = NULL;

  if (n_token == 0)
    return NULL;
  tokens = g_strdup_printf (ngettext ("%s token", "%s tokens", n_token), count);
  if (n_kept == 0 || n_token <= n_kept)
    return g_steal_pointer (&tokens);
  /* Translators: %s is a number of tokens, "6,308 tokens". */
  return g_strdup_printf (_ ("%s, more than memory keeps: the rest will be read and let go"),
                          tokens);
}

/* What large pictures cost a model that never read so much; NULL where they are not large. */
static char *
dup_large (KsAttachmentChip *self)
{
  gboolean can_shrink = FALSE;
  guint n_trained = ks_pending_attachment_get_n_trained (self->attachment, &can_shrink);
  gboolean is_beyond = ks_pending_attachment_get_n_visual (self->attachment) > n_trained;
  g_autofree char *count = ks_words_count (n_trained), *large = NULL;

  if (n_trained == 0)
    return NULL;
  /* Translators: said of a picture's tokens; %s is a number. */
  large = g_strdup_printf (
      is_beyond ? _ ("More than the %s tokens that this model was trained for")
                : _ ("More than half of the %s tokens that this model was trained for"),
      count);
  if (!can_shrink)
    return g_steal_pointer (&large);
  return g_strconcat (large, "\n", _ ("A smaller size can be set in Preferences, Pictures"), NULL);
}

/* What the model sees of a video; the frames were counted when they were taken. */
static char *
dup_seen_frames (KsAttachmentChip *self, guint n_picture)
{
  g_autoptr (KsReading) reading = ks_pending_attachment_dup_reading (self->attachment);
  guint n = reading->n_frames > 0 ? reading->n_frames : n_picture;
  g_autofree char *frames = ks_words_frames (n, n > n_picture);

  /* Translators: %s is "8 frames" or "8 frames, in pairs". */
  return g_strdup_printf (ks_pending_attachment_has_sound (self->attachment)
                              ? _ ("Seen: %s; the sound is not heard")
                              : _ ("Seen: %s"),
                          frames);
}

/* Whether the model looks at it, for what can be looked at. */
static char *
dup_seen (KsAttachmentChip *self)
{
  guint n_picture = ks_pending_attachment_get_n_pictures (self->attachment);
  KsAttachmentKind kind = ks_pending_attachment_get_kind (self->attachment);
  g_autofree char *count = ks_words_count (n_picture);

  if (self->library == NULL || ks_library_get_model_state (self->library) != KS_MODEL_READY)
    return NULL;
  if (kind == KS_ATTACHMENT_VIDEO && n_picture > 0)
    return dup_seen_frames (self, n_picture);
  if (kind == KS_ATTACHMENT_IMAGE && n_picture > 0)
    return g_strdup (_ ("Seen by the model"));
  if (n_picture > 0)
    return g_strdup_printf (
        ngettext ("%s picture in it is seen", "%s pictures in it are seen", n_picture), count);
  if (kind != KS_ATTACHMENT_IMAGE && kind != KS_ATTACHMENT_VIDEO)
    return NULL;
  return g_strdup (ks_library_can_see (self->library)
                       ? _ ("Not seen by the model")
                       : _ ("Not seen: this model cannot see pictures"));
}

static char *
dup_ready (KsAttachmentChip *self)
{
  const char *warning = ks_pending_attachment_get_warning (self->attachment);
  char *seen = dup_seen (self), *large = dup_large (self);
  g_autofree char *pages = dup_pages (self);
  g_autofree char *tokens = dup_tokens (self);
  g_autoptr (GPtrArray) lines = g_ptr_array_new_with_free_func (g_free);

  if (pages != NULL && tokens != NULL)
    /* Translators: pages and tokens of a document, "12 pages · 6,308 tokens". */
    g_ptr_array_add (lines, g_strdup_printf (C_ ("pages and tokens", "%s · %s"), pages, tokens));
  else if (pages != NULL || tokens != NULL)
    g_ptr_array_add (lines, g_strdup (pages != NULL ? pages : tokens));
  if (large != NULL)
    g_ptr_array_add (lines, large);
  if (seen != NULL)
    g_ptr_array_add (lines, seen);
  if (warning != NULL)
    g_ptr_array_add (lines, g_strdup (warning));
  g_ptr_array_add (lines, NULL);
  return g_strjoinv ("\n", (char **)lines->pdata);
}

static char *
dup_detail (KsAttachmentChip *self)
{
  const char *error = ks_pending_attachment_get_error (self->attachment);
  g_autofree char *pages = NULL;

  switch (ks_pending_attachment_get_state (self->attachment)) {
  case KS_PENDING_LOADING:
    pages = dup_pages (self);
    /* Translators: %s is "12 pages". */
    return pages == NULL ? g_strdup (_ ("Reading…")) : g_strdup_printf (_ ("Reading %s…"), pages);
  case KS_PENDING_PASSWORD:
    return g_strdup (error != NULL ? error : _ ("Locked with a password"));
  case KS_PENDING_FAILED:
    return g_strdup (error != NULL ? error : _ ("It could not be read."));
  default:
    return dup_ready (self);
  }
}

static const char *
get_icon_name (KsAttachmentChip *self)
{
  if (ks_pending_attachment_get_state (self->attachment) == KS_PENDING_FAILED)
    return "dialog-error-symbolic";
  if (ks_pending_attachment_get_state (self->attachment) == KS_PENDING_PASSWORD)
    return "dialog-password-symbolic";
  switch (ks_pending_attachment_get_kind (self->attachment)) {
  case KS_ATTACHMENT_IMAGE:
    return "image-x-generic-symbolic";
  case KS_ATTACHMENT_VIDEO:
    return "video-x-generic-symbolic";
  case KS_ATTACHMENT_PDF:
  case KS_ATTACHMENT_DOCUMENT:
    return "x-office-document-symbolic";
  default:
    return "text-x-generic-symbolic";
  }
}

/* --- showing --- */

static void
update_picture (KsAttachmentChip *self)
{
  gboolean is_ready = ks_pending_attachment_get_state (self->attachment) == KS_PENDING_READY;
  KsAttachmentKind kind = ks_pending_attachment_get_kind (self->attachment);
  KsPixels *pixels = is_ready ? ks_pending_attachment_get_thumbnail (self->attachment) : NULL;
  gboolean can_open = is_ready && self->library != NULL && kind != KS_ATTACHMENT_TEXT &&
                      ks_pending_attachment_get_attachment (self->attachment) != NULL;

  if (pixels != NULL) {
    g_autoptr (GdkTexture) texture = ks_texture_new (pixels);

    gtk_image_set_from_paintable (self->picture, GDK_PAINTABLE (texture));
  } else
    gtk_image_set_from_icon_name (self->picture, get_icon_name (self));
  gtk_image_set_pixel_size (self->picture, pixels != NULL ? THUMBNAIL_PX : ICON_PX);
  gtk_widget_set_can_focus (self->open_button, can_open);
  gtk_widget_set_can_target (self->open_button, can_open);
}

static void
update_progress (KsAttachmentChip *self)
{
  double fraction = ks_pending_attachment_get_progress (self->attachment);
  KsPendingState state = ks_pending_attachment_get_state (self->attachment);

  gtk_widget_set_visible (GTK_WIDGET (self->progress),
                          state == KS_PENDING_LOADING && fraction >= 0);
  gtk_progress_bar_set_fraction (self->progress, CLAMP (fraction, 0, 1));
}

/* Least and natural width alike: a row would give a wrapping label the least width at which it fits
 * the row's height. */
static void
set_text (GtkLabel *label, const char *text, int max_chars)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  glong n_char = 0;

  for (guint i = 0; lines[i] != NULL; i++)
    n_char = MAX (n_char, g_utf8_strlen (lines[i], -1));
  gtk_label_set_text (label, text);
  gtk_label_set_width_chars (label, (int)MIN (n_char, max_chars));
  gtk_label_set_max_width_chars (label, (int)MIN (n_char, max_chars));
  gtk_widget_set_tooltip_text (GTK_WIDGET (label), text);
}

static void
set_class (KsAttachmentChip *self, const char *name, gboolean is_set)
{
  if (is_set)
    gtk_widget_add_css_class (GTK_WIDGET (self), name);
  else
    gtk_widget_remove_css_class (GTK_WIDGET (self), name);
}

static void
name_all (KsAttachmentChip *self, const char *name, const char *detail)
{
  g_autofree char *remove = g_strdup_printf (_ ("Remove %s"), name);
  g_autofree char *open = g_strdup_printf (_ ("Show %s"), name);
  g_autofree char *reading = g_strdup_printf (_ ("Reading %s"), name);
  g_autofree char *password = g_strdup_printf (_ ("Password of %s"), name);
  g_autofree char *reading_how = g_strdup_printf (_ ("How %s is read"), name);

  gtk_widget_set_tooltip_text (self->remove_button, remove);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->remove_button),
                                  GTK_ACCESSIBLE_PROPERTY_LABEL, remove, -1);
  gtk_widget_set_tooltip_text (GTK_WIDGET (self->reading_button), reading_how);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->reading_button),
                                  GTK_ACCESSIBLE_PROPERTY_LABEL, reading_how, -1);
  gtk_widget_set_tooltip_text (self->frames_button, reading_how);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->frames_button),
                                  GTK_ACCESSIBLE_PROPERTY_LABEL, reading_how, -1);
  gtk_widget_set_tooltip_text (self->open_button, open);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->open_button), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  open, -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->progress), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  reading, -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->password), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  password, -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, name,
                                  GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, detail, -1);
}

static void
update (KsAttachmentChip *self)
{
  const char *name = ks_pending_attachment_get_name (self->attachment);
  KsPendingState state = ks_pending_attachment_get_state (self->attachment);
  g_autofree char *detail = dup_detail (self);

  set_text (self->name, name, NAME_CHARS);
  set_text (self->detail, detail, DETAIL_CHARS);
  gtk_widget_set_visible (GTK_WIDGET (self->detail), detail[0] != '\0');
  gtk_widget_set_visible (self->lock, state == KS_PENDING_PASSWORD);
  gtk_widget_set_visible (GTK_WIDGET (self->reading_button),
                          state == KS_PENDING_READY && self->library != NULL &&
                              ks_reading_choice_has_any (self->attachment));
  gtk_widget_set_visible (self->frames_button, state == KS_PENDING_READY && self->library != NULL &&
                                                   ks_pending_attachment_get_kind (
                                                       self->attachment) == KS_ATTACHMENT_VIDEO);
  set_class (self, "failed", state == KS_PENDING_FAILED);
  update_picture (self);
  update_progress (self);
  name_all (self, name, detail);
}

/* Ends of the reading are said, its steps are not. */
static void
state_cb (KsAttachmentChip *self)
{
  update (self);
  if (ks_pending_attachment_get_state (self->attachment) != KS_PENDING_LOADING) {
    /* Translators: a file's name and what is known of it, "report.pdf: 12 pages". */
    g_autofree char *spoken =
        g_strdup_printf (C_ ("attachment", "%s: %s"), gtk_label_get_text (self->name),
                         gtk_label_get_text (self->detail));

    ks_announce (GTK_WIDGET (self), spoken);
  }
}

/* --- buttons --- */

static void
unlock_cb (KsAttachmentChip *self)
{
  g_autofree char *password = g_strdup (gtk_editable_get_text (self->password));

  if (password[0] == '\0')
    return;
  gtk_editable_set_text (self->password, "");
  ks_chat_unlock_attachment (self->chat, self->attachment, password);
}

static void
remove_cb (KsAttachmentChip *self)
{
  g_autoptr (KsAttachmentChip) guard = g_object_ref (self);

  ks_chat_remove_attachment (self->chat, self->attachment);
}

static void
frames_cb (KsAttachmentChip *self)
{
  ks_video_dialog_present (GTK_WIDGET (self), self->chat, self->library, self->attachment);
}

/* Made when it is wanted: most attachments are read as they are. */
static void
reading_cb (GtkMenuButton *button, gpointer data)
{
  KsAttachmentChip *self = data;
  GtkWidget *popover = gtk_popover_new ();

  gtk_popover_set_child (GTK_POPOVER (popover),
                         ks_reading_choice_new (self->chat, self->library, self->attachment));
  gtk_menu_button_set_popover (button, popover);
}

static void
open_cb (KsAttachmentChip *self)
{
  KsAttachment *attachment = ks_pending_attachment_get_attachment (self->attachment);

  if (attachment != NULL && self->library != NULL)
    ks_file_viewer_present (GTK_WIDGET (self), self->library, NULL, attachment, -1);
}

/* --- life --- */

static void
ks_attachment_chip_dispose (GObject *object)
{
  KsAttachmentChip *self = KS_ATTACHMENT_CHIP (object);

  g_clear_object (&self->chat);
  g_clear_object (&self->library);
  g_clear_object (&self->attachment);
  adw_bin_set_child (ADW_BIN (self), NULL); /* its own, before the template lets go of it */
  gtk_widget_dispose_template (GTK_WIDGET (self), KS_TYPE_ATTACHMENT_CHIP);
  G_OBJECT_CLASS (ks_attachment_chip_parent_class)->dispose (object);
}

static void
ks_attachment_chip_class_init (KsAttachmentChipClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_attachment_chip_dispose;
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-attachment-chip.ui");
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentChip, detail);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentChip, frames_button);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentChip, lock);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentChip, name);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentChip, open_button);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentChip, password);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentChip, picture);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentChip, progress);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentChip, reading_button);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentChip, remove_button);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentChip, unlock_button);
}

static void
ks_attachment_chip_init (KsAttachmentChip *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  g_signal_connect_swapped (self->open_button, "clicked", G_CALLBACK (open_cb), self);
  g_signal_connect_swapped (self->password, "activate", G_CALLBACK (unlock_cb), self);
  g_signal_connect_swapped (self->frames_button, "clicked", G_CALLBACK (frames_cb), self);
  gtk_menu_button_set_create_popup_func (self->reading_button, reading_cb, self, NULL);
  g_signal_connect_swapped (self->remove_button, "clicked", G_CALLBACK (remove_cb), self);
  g_signal_connect_swapped (self->unlock_button, "clicked", G_CALLBACK (unlock_cb), self);
}

static void
watch (KsAttachmentChip *self)
{
  static const char *const properties[] = {"error",    "kind",       "n-pages", "name",
                                           "n-tokens", "n-pictures", "warning"};

  for (gsize i = 0; i < G_N_ELEMENTS (properties); i++) {
    g_autofree char *signal = g_strconcat ("notify::", properties[i], NULL);

    g_signal_connect_object (self->attachment, signal, G_CALLBACK (update), self,
                             G_CONNECT_SWAPPED);
  }
  g_signal_connect_object (self->attachment, "notify::progress", G_CALLBACK (update_progress), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (self->attachment, "notify::state", G_CALLBACK (state_cb), self,
                           G_CONNECT_SWAPPED);
  if (self->library != NULL) {
    g_signal_connect_object (self->library, "notify::model-state", G_CALLBACK (update), self,
                             G_CONNECT_SWAPPED);
    g_signal_connect_object (self->library, "notify::target-bytes", G_CALLBACK (update), self,
                             G_CONNECT_SWAPPED);
  }
}

KsAttachmentChip *
ks_attachment_chip_new (KsChat *chat, KsLibrary *library, KsPendingAttachment *attachment)
{
  KsAttachmentChip *self = NULL;

  g_return_val_if_fail (KS_IS_CHAT (chat), NULL);
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (attachment), NULL);
  self = g_object_new (KS_TYPE_ATTACHMENT_CHIP, NULL);
  self->chat = g_object_ref (chat);
  self->attachment = g_object_ref (attachment);
  g_set_object (&self->library, library);
  watch (self);
  update (self);
  return self;
}

KsPendingAttachment *
ks_attachment_chip_get_attachment (KsAttachmentChip *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT_CHIP (self), NULL);
  return self->attachment;
}

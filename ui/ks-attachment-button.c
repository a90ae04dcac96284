/* ks-attachment-button.c - see ks-attachment-button.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-attachment-button.h"

#include "ui/ks-memory-words.h"
#include "ui/ks-resource.h"
#include "ui/ks-texture.h"

#include <glib/gi18n.h>

#define THUMBNAIL "ks-thumbnail" /* GdkTexture, kept with the attachment */
#define THUMBNAIL_PX 96          /* sharp on screens of twice the resolution */
#define SHOWN_PX 44

struct _KsAttachmentButton {
  GtkButton parent_instance;

  GtkImage *picture;
  GtkLabel *name;
  GtkLabel *detail;

  KsAttachment *attachment;
  GCancellable *cancellable;
};

G_DEFINE_FINAL_TYPE (KsAttachmentButton, ks_attachment_button, GTK_TYPE_BUTTON)

static const char *
get_icon_name (KsAttachment *attachment)
{
  switch (ks_attachment_get_kind (attachment)) {
  case KS_ATTACHMENT_IMAGE:
    return "image-x-generic-symbolic";
  case KS_ATTACHMENT_VIDEO:
    return "video-x-generic-symbolic";
  case KS_ATTACHMENT_PDF:
  case KS_ATTACHMENT_DOCUMENT:
    return "x-office-document-symbolic";
  case KS_ATTACHMENT_TEXT:
  default:
    return "text-x-generic-symbolic";
  }
}

static char *
dup_detail (KsAttachment *attachment)
{
  guint n_page = ks_attachment_get_n_pages (attachment);

  if (ks_attachment_get_kind (attachment) == KS_ATTACHMENT_IMAGE &&
      ks_attachment_get_width_px (attachment) > 0)
    /* Translators: width and height of a picture in pixels. */
    return g_strdup_printf (C_ ("picture size", "%u × %u"), ks_attachment_get_width_px (attachment),
                            ks_attachment_get_height_px (attachment));
  if (n_page > 0) {
    g_autofree char *count = ks_words_count (n_page);

    return g_strdup_printf (ngettext ("%s page", "%s pages", n_page), count);
  }
  return g_format_size_full (ks_attachment_get_n_bytes (attachment), G_FORMAT_SIZE_IEC_UNITS);
}

static void
show_texture (KsAttachmentButton *self, GdkTexture *texture)
{
  gtk_image_set_from_paintable (self->picture, GDK_PAINTABLE (texture));
  gtk_image_set_pixel_size (self->picture, SHOWN_PX);
}

/* The button may be gone, or wait for another picture: done_data is a weak reference to it. */
static void
thumbnail_cb (KsPixels *pixels, gpointer done_data)
{
  GWeakRef *weak = done_data;
  g_autoptr (KsAttachmentButton) self = g_weak_ref_get (weak);

  if (self != NULL && pixels != NULL) {
    g_autoptr (GdkTexture) texture = ks_texture_new (pixels);

    g_object_set_data_full (G_OBJECT (self->attachment), THUMBNAIL, g_object_ref (texture),
                            g_object_unref);
    show_texture (self, texture);
  }
  g_weak_ref_clear (weak);
  g_free (weak);
}

static void
show (KsAttachmentButton *self, KsThumbnailFunc thumbnails, gpointer data)
{
  const char *name = ks_attachment_get_name (self->attachment);
  GdkTexture *texture = g_object_get_data (G_OBJECT (self->attachment), THUMBNAIL);
  g_autofree char *detail = dup_detail (self->attachment);
  /* Translators: a file's name and what is known of it, "report.pdf, 12 pages". */
  g_autofree char *label = g_strdup_printf (C_ ("attachment", "%s, %s"), name, detail);

  gtk_label_set_text (self->name, name);
  gtk_label_set_text (self->detail, detail);
  gtk_widget_set_tooltip_text (GTK_WIDGET (self), name);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, label, -1);
  gtk_image_set_from_icon_name (self->picture, get_icon_name (self->attachment));
  if (texture != NULL) {
    show_texture (self, texture);
  } else if (thumbnails != NULL &&
             ks_attachment_get_kind (self->attachment) != KS_ATTACHMENT_TEXT) {
    GWeakRef *weak = g_new0 (GWeakRef, 1);

    g_weak_ref_init (weak, self);
    self->cancellable = g_cancellable_new ();
    thumbnails (self->attachment, THUMBNAIL_PX, self->cancellable, thumbnail_cb, weak, data);
  }
}

KsAttachment *
ks_attachment_button_get_attachment (KsAttachmentButton *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT_BUTTON (self), NULL);
  return self->attachment;
}

static void
ks_attachment_button_dispose (GObject *object)
{
  KsAttachmentButton *self = KS_ATTACHMENT_BUTTON (object);

  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  g_clear_object (&self->attachment);
  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_ATTACHMENT_BUTTON);
  G_OBJECT_CLASS (ks_attachment_button_parent_class)->dispose (object);
}

static void
ks_attachment_button_class_init (KsAttachmentButtonClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_attachment_button_dispose;
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-attachment-button.ui");
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentButton, picture);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentButton, name);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentButton, detail);
}

static void
ks_attachment_button_init (KsAttachmentButton *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
}

GtkWidget *
ks_attachment_button_new (KsAttachment *attachment, KsThumbnailFunc thumbnails, gpointer data)
{
  KsAttachmentButton *self = g_object_new (KS_TYPE_ATTACHMENT_BUTTON, NULL);

  self->attachment = g_object_ref (attachment);
  show (self, thumbnails, data);
  return GTK_WIDGET (self);
}

/* ks-attachment.c - see ks-attachment.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-attachment.h"

struct _KsAttachment {
  GObject parent_instance;
  KsAttachmentKind kind;
  char *name, *hash, *text_hash, *reading;
  guint64 n_bytes;
  guint n_pages, width_px, height_px;
  gint64 duration_us;
};

G_DEFINE_FINAL_TYPE (KsAttachment, ks_attachment, G_TYPE_OBJECT)

static void
ks_attachment_finalize (GObject *object)
{
  KsAttachment *self = KS_ATTACHMENT (object);

  g_free (self->name);
  g_free (self->hash);
  g_free (self->text_hash);
  g_free (self->reading);
  G_OBJECT_CLASS (ks_attachment_parent_class)->finalize (object);
}

static void
ks_attachment_class_init (KsAttachmentClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ks_attachment_finalize;
}

static void
ks_attachment_init (KsAttachment *self)
{
}

KsAttachment *
ks_attachment_new (KsAttachmentKind kind, const char *name, const char *hash, guint64 n_bytes,
                   const char *text_hash, guint n_pages, guint width_px, guint height_px)
{
  KsAttachment *self;

  g_return_val_if_fail (hash != NULL, NULL);
  self = g_object_new (KS_TYPE_ATTACHMENT, NULL);
  self->kind = kind;
  self->name = g_strdup (name != NULL ? name : "");
  self->hash = g_strdup (hash);
  self->n_bytes = n_bytes;
  self->text_hash = g_strdup (text_hash);
  self->n_pages = n_pages;
  self->width_px = width_px;
  self->height_px = height_px;
  return self;
}

KsAttachment *
ks_attachment_copy_with (KsAttachment *self, const char *reading, const char *text_hash,
                         gint64 duration_us)
{
  KsAttachment *copy;

  g_return_val_if_fail (KS_IS_ATTACHMENT (self), NULL);
  copy = ks_attachment_new (self->kind, self->name, self->hash, self->n_bytes, text_hash,
                            self->n_pages, self->width_px, self->height_px);
  copy->reading = g_strdup (reading);
  copy->duration_us = duration_us;
  return copy;
}

KsAttachmentKind
ks_attachment_get_kind (KsAttachment *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT (self), KS_ATTACHMENT_TEXT);
  return self->kind;
}

const char *
ks_attachment_get_name (KsAttachment *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT (self), NULL);
  return self->name;
}

const char *
ks_attachment_get_hash (KsAttachment *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT (self), NULL);
  return self->hash;
}

guint64
ks_attachment_get_n_bytes (KsAttachment *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT (self), 0);
  return self->n_bytes;
}

const char *
ks_attachment_get_text_hash (KsAttachment *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT (self), NULL);
  return self->text_hash;
}

guint
ks_attachment_get_n_pages (KsAttachment *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT (self), 0);
  return self->n_pages;
}

guint
ks_attachment_get_width_px (KsAttachment *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT (self), 0);
  return self->width_px;
}

guint
ks_attachment_get_height_px (KsAttachment *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT (self), 0);
  return self->height_px;
}

const char *
ks_attachment_get_reading (KsAttachment *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT (self), NULL);
  return self->reading;
}

gint64
ks_attachment_get_duration_us (KsAttachment *self)
{
  g_return_val_if_fail (KS_IS_ATTACHMENT (self), 0);
  return self->duration_us;
}

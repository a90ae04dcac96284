/* ks-pending-attachment.c - see ks-pending-attachment.h.  A plain holder: ks-chat-attach.c does the
 * work. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-pending-attachment-internal.h"

enum {
  PROP_0,
  PROP_NAME,
  PROP_STATE,
  PROP_PROGRESS,
  PROP_N_TOKENS,
  PROP_ERROR,
  PROP_WARNING,
  PROP_KIND,
  PROP_N_PAGES,
  PROP_N_PICTURES,
  PROP_SEEN,
  PROP_READING,
  N_PROPS
};

static GParamSpec *properties[N_PROPS];

struct _KsPendingAttachment {
  GObject parent_instance;
  char *name, *error, *warning;
  char *hash;
  GBytes *message;
  KsTokenCount *count;
  GCancellable *cancellable;
  KsPendingState state;
  double progress;
  guint n_tokens;
  KsEyesCost cost; /* of its pictures */
  guint n_pictures;
  KsPixels *thumbnail;
  GPtrArray *frames; /* of KsPendingFrame, or NULL */
  gboolean has_sound, hides_pictures;
  KsAttachment *attachment;
};

G_DEFINE_FINAL_TYPE (KsPendingAttachment, ks_pending_attachment, G_TYPE_OBJECT)

static void
ks_pending_attachment_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  KsPendingAttachment *self = KS_PENDING_ATTACHMENT (object);

  switch (id) {
  case PROP_NAME:
    g_value_set_string (value, self->name);
    break;
  case PROP_STATE:
    g_value_set_int (value, (int)self->state);
    break;
  case PROP_PROGRESS:
    g_value_set_double (value, self->progress);
    break;
  case PROP_N_TOKENS:
    g_value_set_uint (value, self->n_tokens);
    break;
  case PROP_ERROR:
    g_value_set_string (value, self->error);
    break;
  case PROP_WARNING:
    g_value_set_string (value, self->warning);
    break;
  case PROP_KIND:
    g_value_set_int (value, (int)ks_pending_attachment_get_kind (self));
    break;
  case PROP_N_PAGES:
    g_value_set_uint (value, ks_pending_attachment_get_n_pages (self));
    break;
  case PROP_N_PICTURES:
    g_value_set_uint (value, self->n_pictures);
    break;
  case PROP_SEEN:
    g_value_set_boolean (value, ks_pending_attachment_is_seen (self));
    break;
  case PROP_READING:
    g_value_set_string (
        value, self->attachment != NULL ? ks_attachment_get_reading (self->attachment) : NULL);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
ks_pending_attachment_finalize (GObject *object)
{
  KsPendingAttachment *self = KS_PENDING_ATTACHMENT (object);

  ks_pending_attachment_set_count (self, NULL);
  g_clear_object (&self->cancellable);
  g_clear_object (&self->attachment);
  g_clear_pointer (&self->thumbnail, ks_pixels_unref);
  g_clear_pointer (&self->frames, g_ptr_array_unref);
  g_clear_pointer (&self->message, g_bytes_unref);
  g_free (self->hash);
  g_free (self->name);
  g_free (self->error);
  g_free (self->warning);
  G_OBJECT_CLASS (ks_pending_attachment_parent_class)->finalize (object);
}

static void
ks_pending_attachment_class_init (KsPendingAttachmentClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  const GParamFlags read = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;

  object_class->get_property = ks_pending_attachment_get_property;
  object_class->finalize = ks_pending_attachment_finalize;
  properties[PROP_NAME] = g_param_spec_string ("name", NULL, NULL, "", read);
  properties[PROP_STATE] =
      g_param_spec_int ("state", NULL, NULL, 0, KS_PENDING_FAILED, KS_PENDING_LOADING, read);
  properties[PROP_PROGRESS] = g_param_spec_double ("progress", NULL, NULL, -1, 1, -1, read);
  properties[PROP_N_TOKENS] = g_param_spec_uint ("n-tokens", NULL, NULL, 0, G_MAXUINT, 0, read);
  properties[PROP_ERROR] = g_param_spec_string ("error", NULL, NULL, NULL, read);
  properties[PROP_WARNING] = g_param_spec_string ("warning", NULL, NULL, NULL, read);
  properties[PROP_KIND] =
      g_param_spec_int ("kind", NULL, NULL, 0, KS_N_ATTACHMENT_KIND - 1, 0, read);
  properties[PROP_N_PAGES] = g_param_spec_uint ("n-pages", NULL, NULL, 0, G_MAXUINT, 0, read);
  properties[PROP_N_PICTURES] = g_param_spec_uint ("n-pictures", NULL, NULL, 0, G_MAXUINT, 0, read);
  properties[PROP_SEEN] = g_param_spec_boolean ("seen", NULL, NULL, FALSE, read);
  properties[PROP_READING] = g_param_spec_string ("reading", NULL, NULL, NULL, read);
  g_object_class_install_properties (object_class, N_PROPS, properties);
}

static void
ks_pending_attachment_init (KsPendingAttachment *self)
{
  self->progress = -1;
}

KsPendingAttachment *
ks_pending_attachment_new (const char *name)
{
  KsPendingAttachment *self = g_object_new (KS_TYPE_PENDING_ATTACHMENT, NULL);

  self->name = g_utf8_make_valid (name != NULL ? name : "", -1);
  return self;
}

void
ks_pending_attachment_set_hash (KsPendingAttachment *self, const char *hash)
{
  char *copy = g_strdup (hash);

  g_free (self->hash);
  self->hash = copy;
}

const char *
ks_pending_attachment_get_hash (KsPendingAttachment *self)
{
  return self->hash;
}

GCancellable *
ks_pending_attachment_renew_cancellable (KsPendingAttachment *self)
{
  g_clear_object (&self->cancellable);
  self->cancellable = g_cancellable_new ();
  return self->cancellable;
}

void
ks_pending_attachment_cancel (KsPendingAttachment *self)
{
  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
}

static void
notify (KsPendingAttachment *self, guint property)
{
  g_object_notify_by_pspec (G_OBJECT (self), properties[property]);
}

void
ks_pending_attachment_set_progress (KsPendingAttachment *self, double progress)
{
  progress = CLAMP (progress, -1, 1);
  if (progress > self->progress || progress < self->progress) {
    self->progress = progress;
    notify (self, PROP_PROGRESS);
  }
}

void
ks_pending_attachment_set_state (KsPendingAttachment *self, KsPendingState state, const char *error)
{
  if (g_strcmp0 (self->error, error) != 0) {
    g_free (self->error);
    self->error = g_strdup (error);
    notify (self, PROP_ERROR);
  }
  if (self->state != state) {
    self->state = state;
    notify (self, PROP_STATE);
  }
}

void
ks_pending_attachment_take_result (KsPendingAttachment *self, KsAttachment *take_attachment,
                                   KsPixels *take_thumbnail, const char *warning)
{
  g_clear_object (&self->attachment);
  self->attachment = take_attachment;
  g_clear_pointer (&self->thumbnail, ks_pixels_unref);
  self->thumbnail = take_thumbnail;
  g_free (self->warning);
  self->warning = g_strdup (warning);
  notify (self, PROP_KIND);
  notify (self, PROP_N_PAGES);
  notify (self, PROP_WARNING);
  notify (self, PROP_READING);
  ks_pending_attachment_set_progress (self, 1);
  ks_pending_attachment_set_state (self, KS_PENDING_READY, NULL);
}

static void
free_frame (gpointer data)
{
  KsPendingFrame *frame = data;

  ks_pixels_unref (frame->pixels);
  g_free (frame);
}

void
ks_pending_attachment_clear_frames (KsPendingAttachment *self, gboolean is_video,
                                    gboolean has_sound)
{
  g_clear_pointer (&self->frames, g_ptr_array_unref);
  if (is_video)
    self->frames = g_ptr_array_new_with_free_func (free_frame);
  self->has_sound = has_sound;
}

void
ks_pending_attachment_set_hides_pictures (KsPendingAttachment *self, gboolean hides)
{
  self->hides_pictures = hides;
}

gboolean
ks_pending_attachment_hides_pictures (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), FALSE);
  return self->hides_pictures;
}

void
ks_pending_attachment_add_frame (KsPendingAttachment *self, KsPixels *pixels, gint64 time_us)
{
  KsPendingFrame *frame = g_new0 (KsPendingFrame, 1);

  frame->pixels = ks_pixels_ref (pixels);
  frame->time_us = time_us;
  g_ptr_array_add (self->frames, frame);
}

void
ks_pending_attachment_set_attachment (KsPendingAttachment *self, KsAttachment *take_attachment)
{
  g_clear_object (&self->attachment);
  self->attachment = take_attachment;
  notify (self, PROP_READING);
}

void
ks_pending_attachment_set_pictures (KsPendingAttachment *self, guint n_pictures,
                                    const KsEyesCost *cost)
{
  gboolean was_seen = ks_pending_attachment_is_seen (self);
  gboolean is_same = self->n_pictures == n_pictures && self->cost.n_trained == cost->n_trained;

  self->cost = *cost;
  if (is_same)
    return;
  self->n_pictures = n_pictures;
  notify (self, PROP_N_PICTURES);
  if (was_seen != ks_pending_attachment_is_seen (self))
    notify (self, PROP_SEEN);
}

void
ks_pending_attachment_set_n_tokens (KsPendingAttachment *self, guint n_text_tokens)
{
  guint n_tokens = n_text_tokens + self->cost.n_token;

  self->count = NULL; /* it has ended, or nothing is counted */
  if (self->n_tokens == n_tokens)
    return;
  self->n_tokens = n_tokens;
  notify (self, PROP_N_TOKENS);
}

void
ks_pending_attachment_set_message (KsPendingAttachment *self, GBytes *message)
{
  g_clear_pointer (&self->message, g_bytes_unref);
  self->message = g_bytes_ref (message);
}

GBytes *
ks_pending_attachment_get_message (KsPendingAttachment *self)
{
  return self->message;
}

void
ks_pending_attachment_set_count (KsPendingAttachment *self, KsTokenCount *count)
{
  if (self->count != NULL)
    ks_token_count_cancel (self->count);
  self->count = count;
}

const char *
ks_pending_attachment_get_name (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), NULL);
  return self->name;
}

KsPendingState
ks_pending_attachment_get_state (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), KS_PENDING_FAILED);
  return self->state;
}

KsAttachmentKind
ks_pending_attachment_get_kind (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), KS_ATTACHMENT_TEXT);
  return self->attachment != NULL ? ks_attachment_get_kind (self->attachment) : KS_ATTACHMENT_TEXT;
}

double
ks_pending_attachment_get_progress (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), -1);
  return self->progress;
}

guint
ks_pending_attachment_get_n_tokens (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), 0);
  return self->n_tokens;
}

guint
ks_pending_attachment_get_n_visual (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), 0);
  return self->cost.n_token;
}

guint
ks_pending_attachment_get_n_trained (KsPendingAttachment *self, gboolean *out_can_shrink)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), 0);
  if (out_can_shrink != NULL)
    *out_can_shrink = self->cost.can_shrink;
  return self->cost.n_trained;
}

guint
ks_pending_attachment_get_n_pages (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), 0);
  return self->attachment != NULL ? ks_attachment_get_n_pages (self->attachment) : 0;
}

guint
ks_pending_attachment_get_n_pictures (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), 0);
  return self->n_pictures;
}

gboolean
ks_pending_attachment_is_seen (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), FALSE);
  return self->n_pictures > 0;
}

KsReading *
ks_pending_attachment_dup_reading (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), NULL);
  return ks_reading_parse (self->attachment != NULL ? ks_attachment_get_reading (self->attachment)
                                                    : NULL);
}

const char *
ks_pending_attachment_get_error (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), NULL);
  return self->error;
}

const char *
ks_pending_attachment_get_warning (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), NULL);
  return self->warning;
}

GPtrArray *
ks_pending_attachment_get_frames (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), NULL);
  return self->frames;
}

gboolean
ks_pending_attachment_has_sound (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), FALSE);
  return self->has_sound;
}

KsPixels *
ks_pending_attachment_get_thumbnail (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), NULL);
  return self->thumbnail;
}

KsAttachment *
ks_pending_attachment_get_attachment (KsPendingAttachment *self)
{
  g_return_val_if_fail (KS_IS_PENDING_ATTACHMENT (self), NULL);
  return self->state == KS_PENDING_READY ? self->attachment : NULL;
}

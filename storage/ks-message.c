/* ks-message.c - see ks-message.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-message.h"

#include <string.h>

enum {
  PROP_0,
  PROP_ID,
  PROP_PARENT_ID,
  PROP_ROLE,
  PROP_STATE,
  PROP_TEXT,
  PROP_ERROR,
  PROP_N_TOKENS,
  PROP_CREATED_US,
  PROP_SIBLING,
  PROP_N_SIBLINGS,
  PROP_ATTACHMENTS,
  PROP_PINNED,
  N_PROPS
};

static GParamSpec *properties[N_PROPS];

struct _KsMessage {
  GObject parent_instance;
  gint64 id, parent_id, created_us;
  KsMessageRole role;
  KsMessageState state;
  GString *text;
  char *error;
  guint n_tokens, sibling, n_siblings;
  GListStore *attachments;
  gboolean pinned;
  GHashTable *pinned_files; /* set of hashes */
};

G_DEFINE_FINAL_TYPE (KsMessage, ks_message, G_TYPE_OBJECT)

static void
ks_message_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  KsMessage *self = KS_MESSAGE (object);

  switch (id) {
  case PROP_ID:
    g_value_set_int64 (value, self->id);
    break;
  case PROP_PARENT_ID:
    g_value_set_int64 (value, self->parent_id);
    break;
  case PROP_ROLE:
    g_value_set_int (value, (int)self->role);
    break;
  case PROP_STATE:
    g_value_set_int (value, (int)self->state);
    break;
  case PROP_TEXT:
    g_value_set_string (value, self->text->str);
    break;
  case PROP_ERROR:
    g_value_set_string (value, self->error);
    break;
  case PROP_N_TOKENS:
    g_value_set_uint (value, self->n_tokens);
    break;
  case PROP_CREATED_US:
    g_value_set_int64 (value, self->created_us);
    break;
  case PROP_SIBLING:
    g_value_set_uint (value, self->sibling);
    break;
  case PROP_N_SIBLINGS:
    g_value_set_uint (value, self->n_siblings);
    break;
  case PROP_ATTACHMENTS:
    g_value_set_object (value, self->attachments);
    break;
  case PROP_PINNED:
    g_value_set_boolean (value, self->pinned);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
ks_message_finalize (GObject *object)
{
  KsMessage *self = KS_MESSAGE (object);

  g_string_free (self->text, TRUE);
  g_free (self->error);
  g_object_unref (self->attachments);
  g_hash_table_unref (self->pinned_files);
  G_OBJECT_CLASS (ks_message_parent_class)->finalize (object);
}

static void
ks_message_class_init (KsMessageClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  const GParamFlags read = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;

  object_class->get_property = ks_message_get_property;
  object_class->finalize = ks_message_finalize;
  properties[PROP_ID] = g_param_spec_int64 ("id", NULL, NULL, 0, G_MAXINT64, 0, read);
  properties[PROP_PARENT_ID] = g_param_spec_int64 ("parent-id", NULL, NULL, 0, G_MAXINT64, 0, read);
  properties[PROP_ROLE] = g_param_spec_int ("role", NULL, NULL, 0, KS_MESSAGE_ASSISTANT, 0, read);
  properties[PROP_STATE] = g_param_spec_int ("state", NULL, NULL, 0, KS_MESSAGE_FAILED, 0, read);
  properties[PROP_TEXT] = g_param_spec_string ("text", NULL, NULL, "", read);
  properties[PROP_ERROR] = g_param_spec_string ("error", NULL, NULL, NULL, read);
  properties[PROP_N_TOKENS] = g_param_spec_uint ("n-tokens", NULL, NULL, 0, G_MAXUINT, 0, read);
  properties[PROP_CREATED_US] =
      g_param_spec_int64 ("created-us", NULL, NULL, 0, G_MAXINT64, 0, read);
  properties[PROP_SIBLING] = g_param_spec_uint ("sibling", NULL, NULL, 0, G_MAXUINT, 0, read);
  properties[PROP_N_SIBLINGS] = g_param_spec_uint ("n-siblings", NULL, NULL, 1, G_MAXUINT, 1, read);
  properties[PROP_ATTACHMENTS] =
      g_param_spec_object ("attachments", NULL, NULL, G_TYPE_LIST_MODEL, read);
  properties[PROP_PINNED] = g_param_spec_boolean ("pinned", NULL, NULL, FALSE, read);
  g_object_class_install_properties (object_class, N_PROPS, properties);
}

static void
ks_message_init (KsMessage *self)
{
  self->text = g_string_new (NULL);
  self->n_siblings = 1;
  self->attachments = g_list_store_new (KS_TYPE_ATTACHMENT);
  self->pinned_files = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
}

KsMessage *
ks_message_new (gint64 id, gint64 parent_id, KsMessageRole role, const char *text,
                gint64 created_us)
{
  KsMessage *self = g_object_new (KS_TYPE_MESSAGE, NULL);

  self->id = id;
  self->parent_id = parent_id;
  self->role = role;
  g_string_assign (self->text, text != NULL ? text : "");
  self->created_us = created_us;
  return self;
}

gint64
ks_message_get_id (KsMessage *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), 0);
  return self->id;
}

gint64
ks_message_get_parent_id (KsMessage *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), 0);
  return self->parent_id;
}

KsMessageRole
ks_message_get_role (KsMessage *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), KS_MESSAGE_SYSTEM);
  return self->role;
}

KsMessageState
ks_message_get_state (KsMessage *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), KS_MESSAGE_COMPLETE);
  return self->state;
}

void
ks_message_set_state (KsMessage *self, KsMessageState state)
{
  g_return_if_fail (KS_IS_MESSAGE (self));
  if (self->state == state)
    return;
  self->state = state;
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_STATE]);
}

const char *
ks_message_get_text (KsMessage *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), NULL);
  return self->text->str;
}

void
ks_message_set_text (KsMessage *self, const char *text)
{
  g_return_if_fail (KS_IS_MESSAGE (self));
  if (strcmp (self->text->str, text != NULL ? text : "") == 0)
    return;
  g_string_assign (self->text, text != NULL ? text : "");
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_TEXT]);
}

void
ks_message_append_text (KsMessage *self, const char *piece)
{
  g_return_if_fail (KS_IS_MESSAGE (self));
  g_return_if_fail (piece != NULL);
  if (piece[0] == '\0')
    return;
  g_string_append (self->text, piece);
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_TEXT]);
}

const char *
ks_message_get_error (KsMessage *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), NULL);
  return self->error;
}

void
ks_message_set_error (KsMessage *self, const char *error)
{
  g_return_if_fail (KS_IS_MESSAGE (self));
  if (g_strcmp0 (self->error, error) == 0)
    return;
  g_free (self->error);
  self->error = g_strdup (error);
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_ERROR]);
}

guint
ks_message_get_n_tokens (KsMessage *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), 0);
  return self->n_tokens;
}

void
ks_message_set_n_tokens (KsMessage *self, guint n_tokens)
{
  g_return_if_fail (KS_IS_MESSAGE (self));
  if (self->n_tokens == n_tokens)
    return;
  self->n_tokens = n_tokens;
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_N_TOKENS]);
}

gint64
ks_message_get_created_us (KsMessage *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), 0);
  return self->created_us;
}

void
ks_message_set_branch (KsMessage *self, guint sibling, guint n_siblings)
{
  g_return_if_fail (KS_IS_MESSAGE (self));
  g_return_if_fail (sibling < n_siblings);
  if (self->sibling != sibling) {
    self->sibling = sibling;
    g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_SIBLING]);
  }
  if (self->n_siblings != n_siblings) {
    self->n_siblings = n_siblings;
    g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_N_SIBLINGS]);
  }
}

guint
ks_message_get_sibling (KsMessage *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), 0);
  return self->sibling;
}

guint
ks_message_get_n_siblings (KsMessage *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), 1);
  return self->n_siblings;
}

GListModel *
ks_message_get_attachments (KsMessage *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), NULL);
  return G_LIST_MODEL (self->attachments);
}

void
ks_message_add_attachment (KsMessage *self, KsAttachment *attachment)
{
  g_return_if_fail (KS_IS_MESSAGE (self));
  g_return_if_fail (KS_IS_ATTACHMENT (attachment));
  g_list_store_append (self->attachments, attachment);
}

gboolean
ks_message_is_pinned (KsMessage *self, const char *hash)
{
  g_return_val_if_fail (KS_IS_MESSAGE (self), FALSE);
  return hash == NULL ? self->pinned : g_hash_table_contains (self->pinned_files, hash);
}

void
ks_message_set_pinned (KsMessage *self, const char *hash, gboolean pinned)
{
  g_return_if_fail (KS_IS_MESSAGE (self));
  if (ks_message_is_pinned (self, hash) == !!pinned)
    return;
  if (hash == NULL)
    self->pinned = !!pinned;
  else if (pinned)
    g_hash_table_add (self->pinned_files, g_strdup (hash));
  else
    g_hash_table_remove (self->pinned_files, hash);
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_PINNED]);
}

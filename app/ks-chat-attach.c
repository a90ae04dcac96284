/* ks-chat-attach.c - pending attachments of a chat. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#include "app/ks-pending-attachment-internal.h"

static void
add_failed (KsChat *self, const char *name)
{
  g_autoptr (KsPendingAttachment) pending = ks_pending_attachment_new (name);

  ks_pending_attachment_set_state (pending, KS_PENDING_FAILED, "Files cannot be attached yet.");
  g_list_store_append (self->attachments, pending);
}

void
ks_chat_attach_file (KsChat *self, GFile *file)
{
  g_autofree char *name = g_file_get_basename (file);

  add_failed (self, name);
}

void
ks_chat_attach_bytes (KsChat *self, const char *name, GBytes *bytes)
{
  add_failed (self, name);
}

void
ks_chat_unlock_attachment (KsChat *self, KsPendingAttachment *attachment, const char *password)
{
}

void
ks_chat_remove_attachment (KsChat *self, KsPendingAttachment *attachment)
{
  guint position;

  if (g_list_store_find (self->attachments, attachment, &position))
    g_list_store_remove (self->attachments, position);
}

GPtrArray *
ks_chat_take_attachments (KsChat *self)
{
  return NULL;
}

const char *
ks_chat_check_attachments (KsChat *self)
{
  if (g_list_model_get_n_items (G_LIST_MODEL (self->attachments)) > 0)
    return "An attachment could not be opened: remove it.";
  return NULL;
}

void
ks_chat_count_attachments (KsChat *self)
{
}

void
ks_chat_cancel_attachments (KsChat *self)
{
}

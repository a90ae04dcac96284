/* ks-turn-source.c - see ks-turn-source.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-turn-source.h"

#include "app/ks-prompt-builder.h"

#include <string.h>

KsTurnSource *
ks_turn_source_new (const char *question, GPtrArray *attachments)
{
  KsTurnSource *source = g_new0 (KsTurnSource, 1);

  source->question = g_strdup (question != NULL ? question : "");
  source->answer_text = g_strdup ("");
  source->attachments = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; attachments != NULL && i < attachments->len; i++)
    g_ptr_array_add (source->attachments, g_object_ref (g_ptr_array_index (attachments, i)));
  return source;
}

void
ks_turn_source_free (KsTurnSource *source)
{
  if (source == NULL)
    return;
  g_free (source->question);
  g_free (source->answer_text);
  g_ptr_array_unref (source->attachments);
  g_free (source);
}

gboolean
ks_turn_source_is_empty (const KsTurnSource *source)
{
  return source->answer_text[0] == '\0' && (source->answer == 0 || source->unfinished);
}

static gboolean
is_unfinished (KsMessage *answer)
{
  return ks_message_get_state (answer) != KS_MESSAGE_COMPLETE;
}

GPtrArray *
ks_turn_source_list (GListModel *messages, guint n_message)
{
  GPtrArray *sources = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_turn_source_free);

  n_message = MIN (n_message, g_list_model_get_n_items (messages));
  for (guint i = 0; i < n_message; i++) {
    g_autoptr (KsMessage) message = g_list_model_get_item (messages, i);
    KsTurnSource *source = sources->len > 0 ? g_ptr_array_index (sources, sources->len - 1) : NULL;

    if (ks_message_get_role (message) == KS_MESSAGE_SYSTEM)
      continue; /* the session's settings hold the system text */
    if (ks_message_get_role (message) == KS_MESSAGE_USER || source == NULL || source->answer != 0) {
      source = ks_turn_source_new (NULL, NULL);
      g_ptr_array_add (sources, source);
    }
    if (ks_message_get_role (message) == KS_MESSAGE_USER) {
      GListModel *list = ks_message_get_attachments (message);

      source->user = ks_message_get_id (message);
      g_free (source->question);
      source->question = g_strdup (ks_message_get_text (message));
      for (guint a = 0; a < g_list_model_get_n_items (list); a++)
        g_ptr_array_add (source->attachments, g_list_model_get_item (list, a));
    } else {
      source->answer = ks_message_get_id (message);
      g_free (source->answer_text);
      source->answer_text = g_strdup (ks_message_get_text (message));
      source->unfinished = is_unfinished (message);
    }
  }
  return sources;
}

static gboolean
add_attachment (KsPromptBuilder *builder, KsAttachment *attachment, KsBlobStore *blobs,
                GError **error)
{
  const char *name = ks_attachment_get_name (attachment);
  const char *hash = ks_attachment_get_text_hash (attachment);
  g_autoptr (GBytes) bytes = NULL;
  g_autofree char *text = NULL;
  gconstpointer data;
  gsize n = 0;

  if (ks_attachment_get_kind (attachment) == KS_ATTACHMENT_IMAGE) {
    ks_prompt_builder_add_picture (builder, name);
    return TRUE;
  }
  if (hash == NULL) { /* text that came with no decoded copy, or a document without any */
    if (ks_attachment_get_kind (attachment) == KS_ATTACHMENT_TEXT)
      hash = ks_attachment_get_hash (attachment);
    else {
      ks_prompt_builder_add_document (builder, name, "");
      return TRUE;
    }
  }
  bytes = ks_blob_store_get (blobs, hash, error);
  if (bytes == NULL) {
    g_prefix_error (error, "\"%s\" cannot be read again: ", name);
    return FALSE;
  }
  data = g_bytes_get_data (bytes, &n);
  text = g_utf8_make_valid (data != NULL ? data : "", (gssize)n);
  ks_prompt_builder_add_document (builder, name, text);
  return TRUE;
}

char *
ks_turn_source_make_text (const KsTurnSource *source, KsBlobStore *blobs, GError **error)
{
  g_autoptr (KsPromptBuilder) builder = ks_prompt_builder_new ();

  for (guint i = 0; i < source->attachments->len; i++)
    if (!add_attachment (builder, g_ptr_array_index (source->attachments, i), blobs, error))
      return NULL;
  return ks_prompt_builder_take_message (builder, source->question);
}

GPtrArray *
ks_turn_source_make_texts (GPtrArray *sources, KsBlobStore *blobs, GCancellable *cancellable,
                           GError **error)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_turn_text_free);

  for (guint i = 0; i < sources->len; i++) {
    const KsTurnSource *source = g_ptr_array_index (sources, i);
    g_autofree char *text = NULL;

    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return NULL;
    text = ks_turn_source_make_text (source, blobs, error);
    if (text == NULL)
      return NULL;
    g_ptr_array_add (texts, ks_turn_text_new (text, source->answer_text, source->unfinished));
  }
  return g_steal_pointer (&texts);
}

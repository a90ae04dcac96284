/* ks-turn-source.c - see ks-turn-source.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-turn-source.h"

#include "app/ks-document-parts.h"
#include "app/ks-prompt-builder.h"

#include <string.h>

#define MAX_DOCUMENT_PICTURES 64u

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

/* --- texts and pictures --- */

/* What a turn is made with. */
typedef struct {
  KsPromptBuilder *builder;
  KsBlobStore *blobs;
  const KsEyes *eyes;
  guint n_video;
} Maker;

/* Valid text of a blob. (transfer full) */
static char *
read_text (const Maker *maker, KsAttachment *attachment, const char *hash, GError **error)
{
  g_autoptr (GBytes) bytes = ks_blob_store_get (maker->blobs, hash, error);
  gconstpointer data;
  gsize n = 0;

  if (bytes == NULL) {
    g_prefix_error (error, "\"%s\" cannot be read again: ", ks_attachment_get_name (attachment));
    return NULL;
  }
  data = g_bytes_get_data (bytes, &n);
  return g_utf8_make_valid (data != NULL ? data : "", (gssize)n);
}

static KsPicture *
new_picture (const Maker *maker, KsAttachment *attachment, KsPictureSource source, guint index,
             GError **error)
{
  const char *name = ks_attachment_get_name (attachment);
  const char *hash = ks_attachment_get_hash (attachment);
  g_autofree char *path = ks_blob_store_get_path (maker->blobs, hash);
  KsPicture *picture;

  if (path == NULL) {
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_DAMAGED,
                 "\"%s\" cannot be looked at again: its file is not known", name);
    return NULL;
  }
  picture = ks_picture_new (source, hash, path, name);
  picture->index = index;
  return picture;
}

static gboolean
add_picture (const Maker *maker, KsAttachment *attachment, KsPictureSource source, guint index,
             GError **error)
{
  KsPicture *picture = new_picture (maker, attachment, source, index, error);

  if (picture != NULL)
    ks_prompt_builder_add_seen (maker->builder, picture);
  return picture != NULL;
}

/* Frames as they were chosen when it was attached, one by one or in pairs. */
static gboolean
add_video (Maker *maker, KsAttachment *attachment, const KsReading *reading, GError **error)
{
  guint step = maker->eyes->pairs ? 2 : 1;

  if (!maker->eyes->sees || !reading->has_frames) {
    ks_prompt_builder_add_video (maker->builder, ks_attachment_get_name (attachment));
    return TRUE;
  }
  maker->n_video++;
  for (guint i = 0; i < reading->n_frames; i += step) {
    KsPicture *picture = new_picture (maker, attachment, KS_PICTURE_FRAME, i, error);

    if (picture == NULL)
      return FALSE;
    picture->n_frame = step;
    picture->sampling = reading->sampling;
    picture->video = maker->n_video;
    ks_prompt_builder_add_seen (maker->builder, picture);
  }
  return TRUE;
}

/* The picture if it is seen, else its name; then the words in it, if they were recognised. */
static gboolean
add_image (const Maker *maker, KsAttachment *attachment, const KsReading *reading, GError **error)
{
  const char *name = ks_attachment_get_name (attachment);
  const char *text_hash = ks_attachment_get_text_hash (attachment);
  g_autofree char *text = NULL;

  if (!maker->eyes->sees)
    ks_prompt_builder_add_picture (maker->builder, name);
  else if (!add_picture (maker, attachment, KS_PICTURE_FILE, 0, error))
    return FALSE;
  if (!reading->ocr || text_hash == NULL)
    return TRUE;
  text = read_text (maker, attachment, text_hash, error);
  if (text == NULL)
    return FALSE;
  ks_prompt_builder_add_recognised (maker->builder, name, text);
  return TRUE;
}

/* Text, with pages and pictures where they stand as far as the model sees them. */
static gboolean
add_parts (const Maker *maker, KsAttachment *attachment, const KsReading *reading, const char *text,
           GError **error)
{
  g_autoptr (GArray) parts =
      ks_document_split (ks_attachment_get_kind (attachment), text, reading, maker->eyes->sees);
  guint n_picture = 0;

  ks_prompt_builder_begin_document (maker->builder, ks_attachment_get_name (attachment));
  for (guint i = 0; i < parts->len; i++) {
    const KsDocumentPart *part = &g_array_index (parts, KsDocumentPart, i);

    if (!part->is_picture)
      ks_prompt_builder_add_part (maker->builder, text + part->at, part->n);
    else if (++n_picture > MAX_DOCUMENT_PICTURES &&
             ks_attachment_get_kind (attachment) == KS_ATTACHMENT_DOCUMENT)
      continue; /* its words stay */
    else if (!add_picture (maker, attachment, KS_PICTURE_PAGE, part->index, error))
      return FALSE;
    else
      ks_prompt_builder_add_part (maker->builder, "\n", 1);
  }
  ks_prompt_builder_end_document (maker->builder);
  return TRUE;
}

static gboolean
add_document (const Maker *maker, KsAttachment *attachment, const KsReading *reading,
              GError **error)
{
  KsAttachmentKind kind = ks_attachment_get_kind (attachment);
  const char *hash = ks_attachment_get_text_hash (attachment);
  g_autofree char *text = NULL;

  if (hash == NULL && kind == KS_ATTACHMENT_TEXT)
    hash = ks_attachment_get_hash (attachment); /* text that came with no decoded copy */
  text = hash != NULL ? read_text (maker, attachment, hash, error) : g_strdup ("");
  if (text == NULL)
    return FALSE;
  if ((kind == KS_ATTACHMENT_PDF && reading->pages != NULL) || kind == KS_ATTACHMENT_DOCUMENT)
    return add_parts (maker, attachment, reading, text, error);
  ks_prompt_builder_add_document (maker->builder, ks_attachment_get_name (attachment), text);
  return TRUE;
}

static gboolean
add_attachment (Maker *maker, KsAttachment *attachment, GError **error)
{
  g_autoptr (KsReading) reading = ks_reading_parse (ks_attachment_get_reading (attachment));

  if (ks_attachment_get_kind (attachment) == KS_ATTACHMENT_IMAGE)
    return add_image (maker, attachment, reading, error);
  if (ks_attachment_get_kind (attachment) == KS_ATTACHMENT_VIDEO)
    return add_video (maker, attachment, reading, error);
  return add_document (maker, attachment, reading, error);
}

KsTurnText *
ks_turn_source_make_text (const KsTurnSource *source, KsBlobStore *blobs, const KsEyes *eyes,
                          GError **error)
{
  g_autoptr (KsPromptBuilder) builder = ks_prompt_builder_new ();
  Maker maker = {builder, blobs, eyes, 0};
  KsTurnText *turn;

  for (guint i = 0; i < source->attachments->len; i++)
    if (!add_attachment (&maker, g_ptr_array_index (source->attachments, i), error))
      return NULL;
  turn = ks_prompt_builder_take_turn (builder, source->question);
  ks_turn_text_set_answer (turn, source->answer_text, source->unfinished);
  return turn;
}

GBytes *
ks_turn_source_describe (KsAttachment *attachment, KsBlobStore *blobs, const KsEyes *eyes,
                         guint *out_n_pictures, GError **error)
{
  g_autoptr (KsPromptBuilder) builder = ks_prompt_builder_new ();
  g_autoptr (KsTurnText) turn = NULL;
  Maker maker = {builder, blobs, eyes, 0};
  gsize n;

  if (!add_attachment (&maker, attachment, error))
    return NULL;
  turn = ks_prompt_builder_take_turn (builder, "");
  *out_n_pictures = turn->pictures->len;
  n = strlen (turn->message);
  return g_bytes_new_take (g_steal_pointer (&turn->message), n);
}

GPtrArray *
ks_turn_source_make_texts (GPtrArray *sources, KsBlobStore *blobs, const KsEyes *eyes,
                           GCancellable *cancellable, GError **error)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_turn_text_free);

  for (guint i = 0; i < sources->len; i++) {
    const KsTurnSource *source = g_ptr_array_index (sources, i);
    KsTurnText *text;

    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return NULL;
    text = ks_turn_source_make_text (source, blobs, eyes, error);
    if (text == NULL)
      return NULL;
    g_ptr_array_add (texts, text);
  }
  return g_steal_pointer (&texts);
}

/* ks-turn-source.c - see ks-turn-source.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-turn-source.h"

#include "app/ks-document-parts.h"
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
  source->pinned_files = g_ptr_array_new_with_free_func (g_free);
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
  g_ptr_array_unref (source->pinned_files);
  g_free (source);
}

gboolean
ks_turn_source_is_empty (const KsTurnSource *source)
{
  return source->answer_text[0] == '\0' && (source->answer == 0 || source->unfinished);
}

gboolean
ks_turn_source_has_pictures (const KsTurnSource *source)
{
  for (guint i = 0; i < source->attachments->len; i++) {
    KsAttachmentKind kind = ks_attachment_get_kind (g_ptr_array_index (source->attachments, i));

    if (kind == KS_ATTACHMENT_IMAGE || kind == KS_ATTACHMENT_VIDEO)
      return TRUE;
  }
  return FALSE;
}

guint
ks_turn_source_hash_pins (KsMessage *user)
{
  GListModel *list = ks_message_get_attachments (user);
  guint hash = ks_message_is_pinned (user, NULL) ? 1 : 0;

  for (guint i = 0; i < g_list_model_get_n_items (list); i++) {
    g_autoptr (KsAttachment) attachment = g_list_model_get_item (list, i);
    const char *file = ks_attachment_get_hash (attachment);

    if (ks_message_is_pinned (user, file))
      hash = hash * 31 + (g_str_hash (file) | 2);
  }
  return hash;
}

static gboolean
is_unfinished (KsMessage *answer)
{
  return ks_message_get_state (answer) != KS_MESSAGE_COMPLETE;
}

static void
take_user (KsTurnSource *source, KsMessage *user)
{
  GListModel *list = ks_message_get_attachments (user);

  source->user = ks_message_get_id (user);
  g_free (source->question);
  source->question = g_strdup (ks_message_get_text (user));
  source->pinned = ks_message_is_pinned (user, NULL);
  source->pins = ks_turn_source_hash_pins (user);
  for (guint i = 0; i < g_list_model_get_n_items (list); i++) {
    KsAttachment *attachment = g_list_model_get_item (list, i);
    const char *hash = ks_attachment_get_hash (attachment);

    g_ptr_array_add (source->attachments, attachment);
    if (ks_message_is_pinned (user, hash))
      g_ptr_array_add (source->pinned_files, g_strdup (hash));
  }
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
      take_user (source, message);
    } else {
      source->answer = ks_message_get_id (message);
      g_free (source->answer_text);
      source->answer_text = g_strdup (ks_message_get_text (message));
      source->unfinished = is_unfinished (message);
      source->stopped = ks_message_get_state (message) == KS_MESSAGE_STOPPED;
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

/* Valid text of a blob; NULL when it is lost or damaged, and the message says so. (transfer full)
 */
static char *
read_text (const Maker *maker, KsAttachment *attachment, const char *hash)
{
  g_autoptr (GBytes) bytes = ks_blob_store_get (maker->blobs, hash, NULL);
  gconstpointer data;
  gsize n = 0;

  if (bytes == NULL) {
    ks_prompt_builder_add_lost (maker->builder, "Document", ks_attachment_get_name (attachment));
    return NULL;
  }
  data = g_bytes_get_data (bytes, &n);
  return g_utf8_make_valid (data != NULL ? data : "", (gssize)n);
}

/* Whether its file is still there shows when it is looked at: what was made of it may be kept. */
static KsPicture *
new_picture (const Maker *maker, KsAttachment *attachment, KsPictureSource source, guint index)
{
  const char *hash = ks_attachment_get_hash (attachment);
  g_autofree char *path = ks_blob_store_get_path (maker->blobs, hash);
  KsPicture *picture =
      ks_picture_new (source, hash, path != NULL ? path : "", ks_attachment_get_name (attachment));

  picture->index = index;
  return picture;
}

/* Frames as they were chosen when it was attached, one by one or in pairs. */
static void
add_video (Maker *maker, KsAttachment *attachment, const KsReading *reading)
{
  guint step = maker->eyes->pairs ? 2 : 1;

  if (!maker->eyes->sees || !reading->has_frames) {
    ks_prompt_builder_add_video (maker->builder, ks_attachment_get_name (attachment));
    return;
  }
  maker->n_video++;
  for (guint i = 0; i < reading->n_frames; i += step) {
    KsPicture *picture = new_picture (maker, attachment, KS_PICTURE_FRAME, i);

    picture->n_frame = step;
    picture->n_own_frame = MIN (step, reading->n_frames - i);
    picture->sampling = reading->sampling;
    picture->video = maker->n_video;
    ks_prompt_builder_add_seen (maker->builder, picture);
  }
}

/* The picture if it is seen, else its name; then the words in it, if they were recognised. */
static void
add_image (const Maker *maker, KsAttachment *attachment, const KsReading *reading)
{
  const char *name = ks_attachment_get_name (attachment);
  const char *text_hash = ks_attachment_get_text_hash (attachment);
  g_autofree char *text = NULL;

  if (!maker->eyes->sees)
    ks_prompt_builder_add_picture (maker->builder, name);
  else
    ks_prompt_builder_add_seen (maker->builder,
                                new_picture (maker, attachment, KS_PICTURE_FILE, 0));
  if (reading->ocr && text_hash != NULL)
    text = read_text (maker, attachment, text_hash);
  if (text != NULL)
    ks_prompt_builder_add_recognised (maker->builder, name, text);
}

typedef struct {
  const Maker *maker;
  KsAttachment *attachment;
} Document;

static KsPicture *
make_part (guint index, gpointer user)
{
  const Document *document = user;

  gboolean is_pdf = ks_attachment_get_kind (document->attachment) == KS_ATTACHMENT_PDF;

  return new_picture (document->maker, document->attachment,
                      is_pdf ? KS_PICTURE_PAGE : KS_PICTURE_PART, index);
}

static void
add_document (const Maker *maker, KsAttachment *attachment, const KsReading *reading)
{
  KsAttachmentKind kind = ks_attachment_get_kind (attachment);
  const char *hash = ks_attachment_get_text_hash (attachment);
  Document document = {maker, attachment};
  g_autofree char *text = NULL;

  if (hash == NULL && kind == KS_ATTACHMENT_TEXT)
    hash = ks_attachment_get_hash (attachment); /* text that came with no decoded copy */
  text = hash != NULL ? read_text (maker, attachment, hash) : g_strdup ("");
  if (text == NULL)
    return;
  if ((kind == KS_ATTACHMENT_PDF && reading->pages != NULL) || kind == KS_ATTACHMENT_DOCUMENT)
    ks_document_add (maker->builder, kind, ks_attachment_get_name (attachment), text, reading,
                     maker->eyes->sees, make_part, &document);
  else
    ks_prompt_builder_add_document (maker->builder, ks_attachment_get_name (attachment), text);
}

static void
add_attachment (Maker *maker, KsAttachment *attachment)
{
  g_autoptr (KsReading) reading = ks_reading_parse (ks_attachment_get_reading (attachment));

  if (ks_attachment_get_kind (attachment) == KS_ATTACHMENT_IMAGE)
    add_image (maker, attachment, reading);
  else if (ks_attachment_get_kind (attachment) == KS_ATTACHMENT_VIDEO)
    add_video (maker, attachment, reading);
  else
    add_document (maker, attachment, reading);
}

KsTurnText *
ks_turn_source_make_text (const KsTurnSource *source, KsBlobStore *blobs, const KsEyes *eyes)
{
  g_autoptr (KsPromptBuilder) builder = ks_prompt_builder_new ();
  Maker maker = {builder, blobs, eyes, 0};
  KsTurnText *turn;

  for (guint i = 0; i < source->attachments->len; i++)
    add_attachment (&maker, g_ptr_array_index (source->attachments, i));
  turn = ks_prompt_builder_take_turn (builder, source->question);
  turn->pinned = source->pinned;
  for (guint i = 0; i < turn->pictures->len; i++) {
    KsPicture *picture = g_ptr_array_index (turn->pictures, i);

    picture->pinned =
        g_ptr_array_find_with_equal_func (source->pinned_files, picture->hash, g_str_equal, NULL);
  }
  ks_turn_text_set_answer (turn, source->answer_text, source->unfinished);
  return turn;
}

GBytes *
ks_turn_source_describe (KsAttachment *attachment, KsBlobStore *blobs, const KsEyes *eyes,
                         guint *out_n_pictures)
{
  g_autoptr (KsPromptBuilder) builder = ks_prompt_builder_new ();
  g_autoptr (KsTurnText) turn = NULL;
  Maker maker = {builder, blobs, eyes, 0};
  gsize n;

  add_attachment (&maker, attachment);
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
    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return NULL;
    g_ptr_array_add (texts, ks_turn_source_make_text (g_ptr_array_index (sources, i), blobs, eyes));
  }
  return g_steal_pointer (&texts);
}

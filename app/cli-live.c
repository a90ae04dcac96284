/* cli-live.c - see cli-live.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-live.h"

#include "app/cli-media.h"
#include "app/ks-document-parts.h"
#include "app/ks-error.h"

#define SMALL_SIDE_PX 16u /* when only the kind or the number matters */

/* Before it is looked at: tokens that n_picture pictures of a file of that size take. */
static void
tell_large (const CliTalk *talk, const KsMediaResult *facts, const char *name, guint n_picture,
            guint max_side_px)
{
  guint width = facts->width_px, height = facts->height_px;
  KsEyesCost cost;

  ks_eyes_fit_size (&width, &height, max_side_px);
  cost = ks_eyes_weigh (&talk->eyes, n_picture,
                        ks_eyes_count_tokens (&talk->eyes, width, height, NULL));
  cli_tell_large (name, facts->kind == KS_MEDIA_VIDEO, cost.n_token, cost.n_trained,
                  cost.can_shrink);
}

/* Frames of a video, in pairs where the model takes them so. */
static gboolean
watch (CliTalk *talk, const KsPicture *whole, GError **error)
{
  const KsMediaSampling *sampling = &talk->options->sampling;
  KsMediaOptions options = {.name = whole->name, .max_side_px = SMALL_SIDE_PX};
  g_autoptr (KsMediaResult) facts = NULL;
  g_autoptr (GPtrArray) frames =
      ks_media_load_frames (whole->path, sampling, &options, &facts, NULL, error);
  guint step = talk->eyes.pairs ? 2 : 1;

  if (frames == NULL)
    return FALSE;
  if (facts->warning != NULL)
    cli_print_file_notice (whole->name, facts->warning);
  if (facts->has_sound)
    cli_tell_sound (whole->name);
  tell_large (talk, facts, whole->name, (frames->len + step - 1) / step, KS_PICTURE_FRAME_SIDE_PX);
  talk->n_video++;
  for (guint i = 0; i < frames->len; i += step) {
    KsPicture *picture = ks_picture_new (KS_PICTURE_FRAME, whole->hash, whole->path, whole->name);

    picture->index = i;
    picture->n_frame = step;
    picture->n_own_frame = MIN (step, frames->len - i);
    picture->sampling = *sampling;
    picture->video = talk->n_video;
    ks_conversation_add_picture (talk->conversation, picture);
  }
  return TRUE;
}

static gboolean
look (CliTalk *talk, const char *path, const KsMediaResult *result, GError **error)
{
  g_autoptr (KsPicture) picture = ks_picture_new_from_file (path, NULL, error);

  if (picture == NULL)
    return FALSE;
  if (result->kind == KS_MEDIA_VIDEO)
    return watch (talk, picture, error);
  if (result->warning != NULL)
    cli_print_file_notice (picture->name, result->warning);
  tell_large (talk, result, picture->name, 1, KS_PICTURE_MAX_SIDE_PX);
  ks_conversation_add_picture (talk->conversation, g_steal_pointer (&picture));
  return TRUE;
}

gboolean
cli_live_look (CliTalk *talk, const char *path, GError **error)
{
  KsMediaOptions options = {.max_side_px = SMALL_SIDE_PX};
  g_autoptr (KsMediaResult) result = ks_media_load (path, &options, NULL, error);
  g_autofree char *name = NULL;

  if (result == NULL)
    return FALSE;
  if (result->kind == KS_MEDIA_IMAGE || result->kind == KS_MEDIA_VIDEO)
    return look (talk, path, result, error);
  name = g_filename_display_basename (path);
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
               "%s is no picture: attach it with --attach", name);
  return FALSE;
}

/* --- documents --- */

typedef struct {
  const CliTalk *talk;
  const KsPicture *whole;
  KsPictureSource source;
} Document;

static KsPicture *
make_part (guint index, gpointer user)
{
  const Document *document = user;
  const KsPicture *whole = document->whole;
  KsPicture *picture = ks_picture_new (document->source, whole->hash, whole->path, whole->name);

  picture->index = index;
  picture->password = g_strdup (document->talk->password);
  return picture;
}

/* Pages without text go as pictures to a model that sees, unless something else was asked for. */
static KsReading *
choose_reading (const CliTalk *talk, const KsMediaResult *result)
{
  const KsEngineOptions *options = talk->options;
  KsReading *reading = ks_reading_parse (NULL);

  if (result->kind == KS_MEDIA_DOCUMENT)
    reading->no_pictures = options->has_page_mode && options->page_mode == KS_PAGE_TEXT;
  else if (result->kind == KS_MEDIA_PDF && options->has_page_mode)
    ks_document_set_pages (reading, result->n_pages, (KsPageMode)options->page_mode);
  else if (result->kind == KS_MEDIA_PDF)
    (void)ks_document_choose_pages (reading, result->text);
  return reading;
}

static void
tell_pages (CliTalk *talk, const char *name, const KsMediaResult *result)
{
  const KsEngineOptions *options = talk->options;
  gboolean as_text = options->has_page_mode && options->page_mode == KS_PAGE_TEXT;
  const char *what = "they are looked at as pictures";
  g_autofree char *notice = NULL;

  if (result->warning != NULL)
    cli_print_file_notice (name, result->warning);
  if (result->has_mixed_pages && talk->eyes.sees && !options->has_page_mode)
    cli_talk_tell_mixed (talk, name);
  if (result->n_pages_without_text == 0)
    return;
  if (as_text || (options->ocr && !talk->eyes.sees)) /* then the hint was given already */
    what = "what is only a picture there is not read";
  else if (!talk->eyes.sees)
    what = "this model has no eyes, but with --session new --ocr the words on them are recognised";
  notice = g_strdup_printf ("%s: %u of %u pages hold no text; %s.", name,
                            result->n_pages_without_text, result->n_pages, what);
  cli_print_notice (notice);
}

static gboolean
add_document (CliTalk *talk, const char *path, const char *name, const KsMediaResult *result,
              GError **error)
{
  g_autoptr (KsReading) reading = choose_reading (talk, result);
  KsAttachmentKind kind = result->kind == KS_MEDIA_PDF ? KS_ATTACHMENT_PDF : KS_ATTACHMENT_DOCUMENT;
  Document document = {.talk = talk, .source = KS_PICTURE_PART};
  g_autoptr (KsPicture) whole = NULL;

  tell_pages (talk, name, result);
  if (!talk->eyes.sees || (reading->pages == NULL && result->kind != KS_MEDIA_DOCUMENT)) {
    ks_conversation_add_document (talk->conversation, name, result->text);
    return TRUE;
  }
  if (result->kind == KS_MEDIA_PDF)
    document.source = KS_PICTURE_PAGE;
  document.whole = whole = ks_picture_new_from_file (path, NULL, error);
  if (whole == NULL)
    return FALSE;
  ks_document_add (ks_conversation_get_builder (talk->conversation), kind, name, result->text,
                   reading, TRUE, make_part, &document);
  return TRUE;
}

gboolean
cli_live_attach (CliTalk *talk, const char *path, GError **error)
{
  g_autofree char *name = g_filename_display_basename (path);
  g_autoptr (KsMediaResult) result = cli_load_document (path, &talk->password, error);

  if (result == NULL)
    return FALSE;
  if (result->text == NULL && talk->eyes.sees)
    return look (talk, path, result, error);
  if (result->text == NULL) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT,
                 "%s is a %s, and this model has no eyes: give the vision model that belongs to it "
                 "with --mmproj FILE, or another model (with --session new --ocr the words in a "
                 "picture are read as text)",
                 name, result->kind == KS_MEDIA_VIDEO ? "video" : "picture");
    return FALSE;
  }
  if (result->n_text > KS_MEDIA_MAX_TEXT_BYTES - talk->n_attached) {
    g_set_error (
        error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_TOO_LARGE,
        "%s and what is attached already hold more than %u MiB of text together: ask about "
        "them one after the other",
        name, KS_MEDIA_MAX_TEXT_BYTES >> 20);
    return FALSE;
  }
  talk->n_attached += result->n_text;
  return add_document (talk, path, name, result, error);
}

/* ks-ocr-layer.c - see ks-ocr-layer.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-ocr-layer.h"

#include "app/ks-document-parts.h"
#include "media/ks-ocr.h"

#include <string.h>

/* A photograph of a page; larger ones are scaled down. */
#define PICTURE_SIDE_PX 4096u

typedef struct {
  const KsOcrLayerJob *job;
  GCancellable *cancellable;
  GString *out;
  guint n_found, n_done, n_total;
} Layer;

static gboolean
is_fatal (const GError *error)
{
  return g_error_matches (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED) ||
         g_error_matches (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER);
}

/* what: "page 3".  A label, then the lines. */
static void
append_text (Layer *layer, const char *what, const KsOcrText *text)
{
  g_string_append_printf (layer->out, "[text recognised in %s, %u%% sure: it may hold errors]\n",
                          what, text->confidence);
  g_string_append (layer->out, text->text);
  layer->n_found++;
}

/* FALSE with error: nothing more can be recognised. */
static gboolean
read_pixels (Layer *layer, const char *what, KsPixels *pixels, GError **error)
{
  KsMediaOptions options = {.name = layer->job->media.name};
  g_autoptr (GError) local = NULL;
  g_autoptr (KsOcrText) text =
      ks_ocr_read (pixels, layer->job->languages, &options, layer->cancellable, &local);

  if (text == NULL && is_fatal (local)) {
    g_propagate_error (error, g_steal_pointer (&local));
    return FALSE;
  }
  if (text != NULL && text->text[0] != '\0')
    append_text (layer, what, text);
  layer->n_done++;
  if (layer->job->media.progress != NULL)
    layer->job->media.progress (layer->n_done, layer->n_total, layer->job->media.user);
  return TRUE;
}

/* A page of a PDF or a picture of a document. */
static gboolean
read_index (Layer *layer, const char *kind, guint index, GError **error)
{
  KsMediaOptions options = {.name = layer->job->media.name,
                            .password = layer->job->media.password,
                            .max_side_px = KS_OCR_PAGE_SIDE_PX};
  g_autofree char *what = g_strdup_printf ("%s %u", kind, index + 1);
  g_autoptr (GError) local = NULL;
  g_autoptr (KsPixels) pixels =
      ks_media_render_page (layer->job->path, index, &options, layer->cancellable, &local);

  if (pixels != NULL)
    return read_pixels (layer, what, pixels, error);
  if (!g_error_matches (local, KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

static gboolean
read_picture (Layer *layer, GError **error)
{
  KsMediaOptions options = {.name = layer->job->media.name, .max_side_px = PICTURE_SIDE_PX};
  g_autoptr (KsMediaResult) result =
      ks_media_load (layer->job->path, &options, layer->cancellable, error);

  layer->n_total = 1;
  return result != NULL &&
         (result->pixels == NULL || read_pixels (layer, "the picture", result->pixels, error));
}

/* Which pages or pictures are to be read: those that the model would be shown. */
static gboolean
read_parts (Layer *layer, const KsMediaResult *result, GError **error)
{
  gboolean is_pdf = result->kind == KS_MEDIA_PDF;
  g_autoptr (KsReading) reading = ks_reading_parse (NULL);
  g_autoptr (GArray) parts = NULL;

  if (is_pdf)
    (void)ks_document_choose_pages (reading, result->text);
  parts = ks_document_split (is_pdf ? KS_ATTACHMENT_PDF : KS_ATTACHMENT_DOCUMENT, result->text,
                             reading, TRUE);
  for (guint i = 0; i < parts->len; i++)
    layer->n_total += g_array_index (parts, KsDocumentPart, i).is_picture;
  for (guint i = 0; i < parts->len; i++) {
    const KsDocumentPart *part = &g_array_index (parts, KsDocumentPart, i);

    if (!part->is_picture)
      g_string_append_len (layer->out, result->text + part->at, (gssize)part->n);
    else if (!read_index (layer, is_pdf ? "page" : "picture", part->index, error))
      return FALSE;
    /* The page's own blank text is gone with it: its place stays free. */
    if (part->is_picture && is_pdf)
      g_string_append_c (layer->out, '\n');
  }
  return TRUE;
}

char *
ks_ocr_layer_make (const KsOcrLayerJob *job, const KsMediaResult *result, guint *out_n,
                   GCancellable *cancellable, GError **error)
{
  Layer layer = {.job = job, .cancellable = cancellable};
  gboolean ok = TRUE;

  g_return_val_if_fail (job != NULL && result != NULL, NULL);
  layer.out = g_string_new (NULL);
  if (result->kind == KS_MEDIA_IMAGE)
    ok = read_picture (&layer, error);
  else if (result->kind == KS_MEDIA_PDF || result->kind == KS_MEDIA_DOCUMENT)
    ok = read_parts (&layer, result, error);
  if (out_n != NULL)
    *out_n = layer.n_found;
  if (ok && layer.n_found == 0 && result->text != NULL)
    g_string_assign (layer.out, result->text);
  return g_string_free (layer.out, !ok);
}

/* ks-ocr.c - see ks-ocr.h.  The pixels go to the worker as a sealed memfd with a head of 16 bytes
 * (docs/formats/worker.md). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-ocr.h"

#include "media/ks-memfd.h"
#include "media/ks-ocr-data.h"
#include "media/ks-worker.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Languages whose name in a locale is not the start of Tesseract's: Tesseract uses ISO 639-2/T. */
static const struct {
  const char *locale, *name;
} languages_of_locales[] = {
    {"ar", "ara"},        {"bg", "bul"}, {"ca", "cat"}, {"cs", "ces"}, {"da", "dan"},
    {"de", "deu"},        {"el", "ell"}, {"en", "eng"}, {"es", "spa"}, {"et", "est"},
    {"eu", "eus"},        {"fa", "fas"}, {"fi", "fin"}, {"fr", "fra"}, {"he", "heb"},
    {"hi", "hin"},        {"hr", "hrv"}, {"hu", "hun"}, {"id", "ind"}, {"is", "isl"},
    {"it", "ita"},        {"ja", "jpn"}, {"ko", "kor"}, {"lt", "lit"}, {"lv", "lav"},
    {"nb", "nor"},        {"nl", "nld"}, {"pl", "pol"}, {"pt", "por"}, {"ro", "ron"},
    {"ru", "rus"},        {"sk", "slk"}, {"sl", "slv"}, {"sr", "srp"}, {"sv", "swe"},
    {"th", "tha"},        {"tr", "tur"}, {"uk", "ukr"}, {"vi", "vie"}, {"zh_CN", "chi_sim"},
    {"zh_TW", "chi_tra"},
};

gboolean
ks_ocr_is_available (void)
{
  g_auto (GStrv) names = ks_ocr_list_languages ();

  return names[0] != NULL;
}

GStrv
ks_ocr_list_languages (void)
{
  return ks_ocr_data_list ();
}

static const char *
find_language (const char *locale)
{
  for (gsize i = 0; i < G_N_ELEMENTS (languages_of_locales); i++) {
    const char *prefix = languages_of_locales[i].locale;
    gsize n = strlen (prefix);

    if (strncmp (locale, prefix, n) == 0 && !g_ascii_isalnum (locale[n]))
      return languages_of_locales[i].name;
  }
  return NULL;
}

char *
ks_ocr_dup_languages (const char *locale)
{
  g_auto (GStrv) installed = ks_ocr_list_languages ();
  const char *own = locale != NULL ? find_language (locale) : NULL;
  gboolean has_own = own != NULL && !g_str_equal (own, "eng") &&
                     g_strv_contains ((const char *const *)installed, own);
  gboolean has_english = g_strv_contains ((const char *const *)installed, "eng");

  if (has_own && has_english)
    return g_strdup_printf ("%s+eng", own);
  if (has_own)
    return g_strdup (own);
  return has_english ? g_strdup ("eng") : g_strdup (installed[0]);
}

void
ks_ocr_text_free (KsOcrText *text)
{
  if (text == NULL)
    return;
  g_free (text->text);
  g_free (text);
}

static void
put32 (guint8 *to, guint32 value)
{
  for (guint i = 0; i < 4; i++)
    to[i] = (guint8)(value >> (8 * i));
}

/* -1 with error set. */
static int
make_file (KsPixels *pixels, GError **error)
{
  guint8 head[KS_WIRE_SCAN_HEAD] = "KSPX";
  g_autoptr (GBytes) first = NULL;
  GBytes *parts[2];
  int fd;

  put32 (head + 4, ks_pixels_get_width (pixels));
  put32 (head + 8, ks_pixels_get_height (pixels));
  first = g_bytes_new (head, sizeof head);
  parts[0] = first;
  parts[1] = ks_pixels_get_bytes (pixels);
  fd = ks_memfd_new (parts, G_N_ELEMENTS (parts));
  if (fd < 0)
    g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED,
                 "the picture does not fit into memory: %s", g_strerror (errno));
  return fd;
}

/* languages as they are used; NULL with error when they are not installed. (transfer full) */
static char *
choose_languages (const char *languages, GError **error)
{
  g_autofree char *chosen =
      languages != NULL ? g_strdup (languages) : ks_ocr_dup_languages (g_getenv ("LANG"));

  if (chosen != NULL && ks_ocr_data_has (chosen))
    return g_steal_pointer (&chosen);
  g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER,
               "text in pictures cannot be recognised: install the language data of Tesseract for "
               "%s (package tesseract-ocr-%s)",
               chosen != NULL ? chosen : "your language", chosen != NULL ? chosen : "eng");
  return NULL;
}

KsOcrText *
ks_ocr_read (KsPixels *pixels, const char *languages, const KsMediaOptions *options,
             GCancellable *cancellable, GError **error)
{
  g_autofree char *chosen = NULL;
  KsWorkerJob job = {.operation = KS_WIRE_SCAN_TEXT, .max_side_px = 1};
  KsOcrText *text = NULL;
  KsWorkerResult got;

  g_return_val_if_fail (pixels != NULL, NULL);
  chosen = choose_languages (languages, error);
  if (chosen == NULL)
    return NULL;
  job.fd = make_file (pixels, error);
  if (job.fd < 0)
    return NULL;
  job.name = options != NULL && options->name != NULL ? options->name : "the picture";
  job.password = chosen; /* the request has one text */
  job.progress = options != NULL ? options->progress : NULL;
  job.user = options != NULL ? options->user : NULL;
  if (ks_worker_run (&job, cancellable, &got, error)) {
    text = g_new0 (KsOcrText, 1);
    text->text = g_steal_pointer (&got.text);
    text->confidence = got.answer_text.confidence;
    text->n_left_out = got.answer_text.n_left_out;
    ks_worker_result_clear (&got);
  }
  close (job.fd);
  return text;
}

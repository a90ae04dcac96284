/* test-attach-job.c - files on their way into a message: kind, pages and pictures, recognised text.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-attach-job.h"
#include "media/ks-ocr.h"
#include "tests/media/media-fixture.h"

static char *offices, *scans, *blob_dir;

typedef struct {
  KsAttachment *attachment;
  char *message, *warning;
  guint n_pictures;
  gboolean has_thumbnail, done;
  GError *error;
} Result;

static void
done_cb (GObject *source, GAsyncResult *async, gpointer user_data)
{
  Result *result = user_data;
  KsAttachJob *job = NULL;

  if (ks_attach_job_run_finish (async, &job, &result->error)) {
    gsize n;
    const char *text = g_bytes_get_data (job->message, &n);

    result->attachment = g_object_ref (job->attachment);
    result->message = g_strndup (text, n);
    result->warning = g_strdup (job->warning);
    result->n_pictures = job->n_pictures;
    result->has_thumbnail = job->thumbnail != NULL;
  }
  result->done = TRUE;
}

static void
clear_result (Result *result)
{
  g_clear_object (&result->attachment);
  g_clear_error (&result->error);
  g_free (result->message);
  g_free (result->warning);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Result, clear_result)

/* reading: words of ks-reading.h, NULL = as usual. */
static void
attach (const char *folder, const char *name, gboolean sees, const char *reading, Result *out)
{
  KsAttachJob *job = g_new0 (KsAttachJob, 1);

  job->name = g_strdup (name);
  job->path = g_build_filename (folder, name, NULL);
  job->blobs = ks_blob_store_new (blob_dir, NULL);
  job->eyes.sees = sees;
  job->reading = reading != NULL ? ks_reading_parse (reading) : NULL;
  ks_attach_job_run_async (job, NULL, NULL, done_cb, out);
  while (!out->done)
    g_main_context_iteration (NULL, TRUE);
  g_assert_no_error (out->error);
}

/* A page without text is looked at by a model that sees, by itself; a blind one is told that it
 * cannot. */
static void
test_scanned_page (void)
{
  g_auto (Result) seen = {NULL}, blind = {NULL};

  attach (scans, "scanned.pdf", TRUE, NULL, &seen);
  g_assert_cmpstr (ks_attachment_get_reading (seen.attachment), ==, "pages=ti");
  g_assert_cmpuint (seen.n_pictures, ==, 1);
  g_assert_nonnull (strstr (seen.message, "Typed words\n\n[page 2]\n"));
  g_assert_nonnull (strstr (seen.warning, "looked at as pictures"));
  attach (scans, "scanned.pdf", FALSE, NULL, &blind);
  g_assert_cmpuint (blind.n_pictures, ==, 0);
  g_assert_nonnull (strstr (blind.warning, "cannot be read"));
}

/* Pictures of a document go where they stand, each once; alone its text when that was chosen. */
static void
test_document (void)
{
  g_auto (Result) seen = {NULL}, text = {NULL}, blind = {NULL};

  attach (offices, "rich.docx", TRUE, NULL, &seen);
  g_assert_cmpint (ks_attachment_get_kind (seen.attachment), ==, KS_ATTACHMENT_DOCUMENT);
  g_assert_cmpuint (seen.n_pictures, ==, 2);
  g_assert_true (seen.has_thumbnail);
  g_assert_null (seen.warning);
  g_assert_nonnull (strstr (seen.message, "[picture 1: A red dot]\n\nkept"));
  attach (offices, "rich.docx", TRUE, "no-pictures", &text);
  g_assert_cmpuint (text.n_pictures, ==, 0);
  g_assert_nonnull (strstr (text.message, "[picture 1: A red dot]\nkept"));
  attach (offices, "rich.docx", FALSE, NULL, &blind);
  g_assert_cmpuint (blind.n_pictures, ==, 0);
}

/* A picture that cannot be shown is found before an answer needs it. */
static void
test_broken_picture (void)
{
  g_auto (Result) result = {NULL};

  attach (offices, "broken-picture.docx", TRUE, NULL, &result);
  g_assert_cmpuint (result.n_pictures, ==, 0);
  g_assert_nonnull (strstr (result.warning, "1 of 1 pictures cannot be shown"));
  g_assert_cmpstr (ks_attachment_get_reading (result.attachment), ==, "no-pictures");
}

/* Recognised words join the text under their label, and the page goes as picture and text; where
 * nothing is recognised the file stays as it was, and that is said. */
static void
test_ocr (void)
{
  g_auto (Result) page = {NULL}, blind = {NULL}, nothing = {NULL};

  if (!ks_ocr_is_available ()) {
    g_test_skip ("no language data of Tesseract are installed");
    return;
  }
  attach (scans, "scanned.pdf", TRUE, "ocr", &page);
  g_assert_cmpstr (ks_attachment_get_reading (page.attachment), ==, "pages=tb ocr");
  g_assert_cmpuint (page.n_pictures, ==, 1);
  g_assert_nonnull (strstr (page.message, "it may hold errors]\nSCANNED LINES\n"));
  attach (scans, "scanned.pdf", FALSE, "ocr", &blind);
  g_assert_nonnull (strstr (blind.message, "SCANNED LINES\n"));
  attach (scans, "red.png", TRUE, "ocr", &nothing);
  g_assert_nonnull (strstr (nothing.warning, "no text was recognised"));
  g_assert_null (ks_attachment_get_reading (nothing.attachment));
  g_assert_cmpuint (nothing.n_pictures, ==, 1);
}

int
main (int argc, char **argv)
{
  int code;

  g_test_init (&argc, &argv, NULL);
  offices = make_files ("offices");
  scans = make_files ("scans");
  blob_dir = make_folder ();
  g_test_add_func ("/attach-job/scanned-page", test_scanned_page);
  g_test_add_func ("/attach-job/document", test_document);
  g_test_add_func ("/attach-job/broken-picture", test_broken_picture);
  g_test_add_func ("/attach-job/ocr", test_ocr);
  code = g_test_run ();
  remove_tree (offices);
  remove_tree (scans);
  remove_tree (blob_dir);
  g_free (offices);
  g_free (scans);
  g_free (blob_dir);
  return code;
}

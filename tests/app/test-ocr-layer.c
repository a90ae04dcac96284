/* test-ocr-layer.c - recognised text behind its page, under a line that says what it is. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-ocr-layer.h"
#include "media/ks-ocr.h"
#include "tests/media/media-fixture.h"

static char *folder;

static char *
dup_path (const char *name)
{
  return g_build_filename (folder, name, NULL);
}

static char *
make_layer (const char *name, guint *out_n)
{
  g_autofree char *path = dup_path (name);
  KsOcrLayerJob job = {.path = path, .languages = "eng"};
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = ks_media_load (path, NULL, NULL, &error);
  char *text;

  g_assert_no_error (error);
  text = ks_ocr_layer_make (&job, result, out_n, NULL, &error);
  g_assert_no_error (error);
  return text;
}

/* A scanned page gets its words under a label, behind its marker; a page with text of its own stays
 * as it is, and is not read again. */
static void
test_pdf (void)
{
  g_autofree char *text = NULL;
  guint n = 0;

  if (!ks_ocr_is_available ()) {
    g_test_skip ("no language data of Tesseract are installed");
    return;
  }
  text = make_layer ("scanned.pdf", &n);
  g_test_message ("%s", text);
  g_assert_cmpuint (n, ==, 1);
  g_assert_true (g_str_has_prefix (text, "[page 1]\nTyped words\n"));
  g_assert_nonnull (strstr (text, "\n[page 2]\n[text recognised in page 2, "));
  g_assert_nonnull (strstr (text, "it may hold errors]\nSCANNED LINES\n"));
  g_assert_null (strstr (text, "recognised in page 1"));
}

/* A picture without letters gives no layer; a document's picture is read where it stands. */
static void
test_pictures (void)
{
  g_autofree char *nothing = NULL, *unchanged = NULL;
  guint n = 7;

  if (!ks_ocr_is_available ()) {
    g_test_skip ("no language data of Tesseract are installed");
    return;
  }
  nothing = make_layer ("red.png", &n);
  g_assert_cmpstr (nothing, ==, "");
  g_assert_cmpuint (n, ==, 0);
  unchanged = make_layer ("letter.odt", &n);
  g_assert_cmpuint (n, ==, 0);
  g_assert_nonnull (strstr (unchanged, "[picture 1: Dot green]\nx | y z\n"));
  g_assert_null (strstr (unchanged, "recognised"));
}

/* Cancelling ends it with that error, and no worker is left. */
static void
test_cancel (void)
{
  g_autofree char *path = dup_path ("scanned.pdf");
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  KsOcrLayerJob job = {.path = path};
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = ks_media_load (path, NULL, NULL, &error);

  g_assert_no_error (error);
  g_cancellable_cancel (cancellable);
  g_assert_null (ks_ocr_layer_make (&job, result, NULL, cancellable, &error));
  g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED);
  assert_no_children ();
}

int
main (int argc, char **argv)
{
  int code;

  g_test_init (&argc, &argv, NULL);
  folder = make_files ("scans");
  g_test_add_func ("/ocr-layer/pdf", test_pdf);
  g_test_add_func ("/ocr-layer/pictures", test_pictures);
  g_test_add_func ("/ocr-layer/cancel", test_cancel);
  code = g_test_run ();
  remove_tree (folder);
  g_free (folder);
  return code;
}

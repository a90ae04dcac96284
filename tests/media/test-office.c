/* test-office.c - pictures of documents one by one, and text recognised in pictures. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-ocr.h"
#include "tests/media/media-fixture.h"

static char *folder, *scans;

/* The colour of picture `number` (from 0) in the middle, as 0xrrggbbaa. */
static guint32
get_colour (const char *name, guint number)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (KsPixels) pixels = ks_media_render_page (path, number, NULL, NULL, &error);
  const guint8 *p;

  g_assert_no_error (error);
  g_assert_cmpuint (ks_pixels_get_width (pixels), ==, 4);
  g_assert_cmpuint (ks_pixels_get_height (pixels), ==, 3);
  p = (const guint8 *)g_bytes_get_data (ks_pixels_get_bytes (pixels), NULL) + 20;
  assert_no_children ();
  return (guint32)p[0] << 24 | (guint32)p[1] << 16 | (guint32)p[2] << 8 | p[3];
}

/* "[picture N]" in the text is picture N, in every format. */
static void
test_pictures (void)
{
  const guint32 red = 0xff0000ff, green = 0x00ff00ff, blue = 0x0000ffff;

  g_assert_cmphex (get_colour ("rich.docx", 0), ==, red);
  g_assert_cmphex (get_colour ("rich.docx", 1), ==, blue);
  g_assert_cmphex (get_colour ("slides.pptx", 0), ==, blue);
  g_assert_cmphex (get_colour ("letter.odt", 0), ==, green);
  g_assert_cmphex (get_colour ("slides.odp", 0), ==, green);
  g_assert_cmphex (get_colour ("book.epub", 0), ==, red);
  g_assert_cmphex (get_colour ("page.html", 0), ==, red);
  g_assert_cmphex (get_colour ("page.html", 1), ==, blue);
}

static void
check_refused (const char *name, guint number, const char *part)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (ks_media_render_page (path, number, NULL, NULL, &error));
  g_assert_true (error->domain == KS_MEDIA_ERROR);
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, part));
  g_assert_nonnull (strstr (error->message, name));
  assert_no_children ();
}

/* A number that no picture has, a picture that is damaged inside a sound document, and a document
 * inside a document are sentences. */
static void
test_refused (void)
{
  check_refused ("rich.docx", 2, "no picture 3");
  check_refused ("broken-picture.docx", 0, "damaged");
  check_refused ("not-a-picture.docx", 0, "no picture 1");
}

static KsOcrText *
read_page (const char *name, const char *languages, GError **error)
{
  g_autofree char *path = g_build_filename (scans, name, NULL);
  KsMediaOptions options = {.max_side_px = 1600};
  g_autoptr (GError) local = NULL;
  g_autoptr (KsPixels) pixels = ks_media_render_page (path, 0, &options, NULL, &local);
  KsOcrText *text;

  g_assert_no_error (local);
  text = ks_ocr_read (pixels, languages, NULL, NULL, error);
  assert_no_children ();
  return text;
}

/* The letters of a rendered page come back as text, and confidently so. */
static void
test_ocr (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsOcrText) text = NULL;

  if (!ks_ocr_is_available ()) {
    g_test_skip ("no language data of Tesseract are installed");
    return;
  }
  text = read_page ("printed.pdf", "eng", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (text->text, ==, "Hello page\n");
  g_assert_cmpuint (text->confidence, >, 80);
  g_assert_cmpuint (text->confidence, <=, 100);
}

/* A page without letters gives no text, not noise; a picture of one pixel neither. */
static void
test_ocr_empty (void)
{
  g_autoptr (GBytes) dot = g_bytes_new_static ("\xff\0\0\xff", 4);
  g_autoptr (KsPixels) pixels = ks_pixels_new (1, 1, dot);
  g_autoptr (GError) error = NULL;
  g_autoptr (KsOcrText) page = NULL, pixel = NULL;

  if (!ks_ocr_is_available ()) {
    g_test_skip ("no language data of Tesseract are installed");
    return;
  }
  page = read_page ("shape.pdf", "eng", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (page->text, ==, "");
  g_assert_cmpuint (page->confidence, ==, 0);
  pixel = ks_ocr_read (pixels, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (pixel->text, ==, "");
}

/* A language that is not installed, or that is no name, is an error that says what to install. */
static void
test_languages (void)
{
  static const char *const wrong[] = {"xyz", "../eng", "eng+", "", "eng+xyz"};
  g_autofree char *german = ks_ocr_dup_languages ("de_DE.UTF-8");
  g_autofree char *none = ks_ocr_dup_languages ("xx_YY");
  g_auto (GStrv) installed = ks_ocr_list_languages ();

  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (read_page ("printed.pdf", wrong[i], &error));
    g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER);
    g_assert_nonnull (strstr (error->message, "tesseract-ocr-"));
  }
  if (g_strv_contains ((const char *const *)installed, "deu"))
    g_assert_true (g_str_has_prefix (german, "deu"));
  if (g_strv_contains ((const char *const *)installed, "eng"))
    g_assert_cmpstr (none, ==, "eng");
}

int
main (int argc, char **argv)
{
  int code;

  g_test_init (&argc, &argv, NULL);
  folder = make_files ("offices");
  scans = make_files ("scans");
  g_test_add_func ("/office/pictures", test_pictures);
  g_test_add_func ("/office/refused", test_refused);
  g_test_add_func ("/office/ocr", test_ocr);
  g_test_add_func ("/office/ocr-empty", test_ocr_empty);
  g_test_add_func ("/office/languages", test_languages);
  code = g_test_run ();
  remove_tree (folder);
  remove_tree (scans);
  g_free (folder);
  g_free (scans);
  return code;
}

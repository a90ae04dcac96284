/* test-files.c - pages as pictures, progress, bytes without a file, files that change under us. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/media/media-fixture.h"

static char *folder;

typedef struct {
  guint n_call, n_last, n_total;
  const char *shrink; /* a file to cut at the tenth page */
} Progress;

static char *
dup_path (const char *name)
{
  return g_build_filename (folder, name, NULL);
}

static void
progress_cb (guint n_done, guint n_total, gpointer user)
{
  Progress *progress = user;

  if (n_done == progress->n_last)
    return; /* the worker goes on in silence */
  g_assert_cmpuint (n_done, ==, progress->n_last + 1);
  progress->n_call++;
  progress->n_last = n_done;
  progress->n_total = n_total;
  if (progress->shrink != NULL && n_done == 10)
    g_assert_cmpint (truncate (progress->shrink, 2000), ==, 0);
}

/* A word after every page of 1,500, in order. */
static void
test_progress (void)
{
  g_autofree char *path = dup_path ("many.pdf");
  Progress progress = {0};
  KsMediaOptions options = {.progress = progress_cb, .user = &progress};
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = ks_media_load (path, &options, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (progress.n_call, ==, 1500);
  g_assert_cmpuint (progress.n_total, ==, 1500);
  g_assert_nonnull (strstr (result->text, "[page 1]\nLeaf 1\n\n[page 2]\nLeaf 2\n"));
  g_assert_null (result->warning);
}

/* A document that is cut while it is read: a warning or an error, no crash and no endless wait. */
static void
test_shrinking (void)
{
  g_autofree char *from = dup_path ("many.pdf"), *path = dup_path ("shrinking.pdf"), *data = NULL;
  Progress progress = {.shrink = path};
  KsMediaOptions options = {.progress = progress_cb, .user = &progress};
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = NULL;
  gsize n;

  g_assert_true (g_file_get_contents (from, &data, &n, NULL));
  g_assert_true (g_file_set_contents (path, data, (gssize)n, NULL));
  result = ks_media_load (path, &options, NULL, &error);
  g_assert_cmpuint (progress.n_call, >=, 10);
  if (result == NULL)
    g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_DAMAGED);
  else
    g_assert_nonnull (strstr (result->text, "Leaf 5\n"));
  assert_no_children ();
}

static void
test_render (void)
{
  g_autofree char *path = dup_path ("drawing.pdf"), *text = dup_path ("cases.ini");
  KsMediaOptions options = {.max_side_px = 100};
  g_autoptr (GError) error = NULL;
  g_autoptr (KsPixels) first = ks_media_render_page (path, 0, &options, NULL, &error),
                       second = NULL;
  const guint8 *pixels;
  guint n_dark = 0;

  g_assert_no_error (error);
  g_assert_cmpuint (ks_pixels_get_width (first), ==, 77);
  g_assert_cmpuint (ks_pixels_get_height (first), ==, 100);
  pixels = g_bytes_get_data (ks_pixels_get_bytes (first), NULL);
  g_assert_cmpuint (pixels[0], ==, 255); /* white paper, black square from 10 to 510 points */
  g_assert_cmpuint (pixels[4 * (70 * 77 + 30)], ==, 0);
  g_assert_cmpuint (pixels[4 * (70 * 77 + 30) + 3], ==, 255);
  second = ks_media_render_page (path, 1, &options, NULL, &error);
  g_assert_no_error (error);
  pixels = g_bytes_get_data (ks_pixels_get_bytes (second), NULL);
  for (guint i = 0; i < 77 * 100; i++)
    n_dark += pixels[4 * i] < 200;
  g_assert_cmpuint (n_dark, >, 5); /* its line of letters, drawn with a font of the system */
  g_assert_cmpuint (n_dark, <, 1000);
  g_assert_null (ks_media_render_page (path, 2, &options, NULL, &error));
  g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "no page 3"));
  g_clear_error (&error);
  g_assert_null (ks_media_render_page (text, 0, &options, NULL, &error));
  g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_UNKNOWN_TYPE);
}

static GBytes *
load_pixels (const char *pictures, const char *name)
{
  g_autofree char *path = g_build_filename (pictures, name, NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = ks_media_load (path, NULL, NULL, &error);

  g_assert_no_error (error);
  return g_bytes_ref (ks_pixels_get_bytes (result->pixels));
}

/* A profile that says sRGB changes no bit; one in which red and blue are exchanged exchanges them,
 * in every tone, and leaves green and what is opaque. */
static void
test_profiles (void)
{
  g_autofree char *pictures = make_files ("profiles");
  g_autoptr (GBytes) plain = load_pixels (pictures, "tones.png"),
                     srgb = load_pixels (pictures, "tones-srgb.png"),
                     swapped = load_pixels (pictures, "tones-swapped.png");
  const guint8 *a = g_bytes_get_data (plain, NULL), *b = g_bytes_get_data (swapped, NULL);

  g_assert_true (g_bytes_equal (plain, srgb));
  for (gsize i = 0; i < 64 * 64; i++) {
    g_assert_cmpint (abs (a[4 * i] - b[4 * i + 2]), <=, 2);
    g_assert_cmpint (abs (a[4 * i + 1] - b[4 * i + 1]), <=, 2);
    g_assert_cmpint (abs (a[4 * i + 2] - b[4 * i]), <=, 2);
    g_assert_cmpint (b[4 * i + 3], ==, 255);
  }
  remove_tree (pictures);
}

/* Bytes without a file are read like one, under the name that was given. */
static void
test_bytes (void)
{
  g_autofree char *path = dup_path ("one.pdf"), *data = NULL;
  g_autoptr (GBytes) bytes = NULL, part = NULL;
  KsMediaOptions options = {.name = "pasted page"};
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = NULL;
  gsize n;

  g_assert_true (g_file_get_contents (path, &data, &n, NULL));
  bytes = g_bytes_new (data, n);
  result = ks_media_load_bytes (bytes, &options, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (result->kind, ==, KS_MEDIA_PDF);
  g_assert_nonnull (strstr (result->text, "Hello page"));
  part = g_bytes_new (data, 12);
  g_assert_null (ks_media_load_bytes (part, &options, NULL, &error));
  g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_DAMAGED);
  g_assert_nonnull (strstr (error->message, "pasted page"));
}

/* A password that cannot be sent is a wrong one. */
static void
test_long_password (void)
{
  g_autofree char *path = dup_path ("one.pdf"), *password = g_strnfill (600, 'x');
  KsMediaOptions options = {.password = password};
  g_autoptr (GError) error = NULL;

  g_assert_null (ks_media_load (path, &options, NULL, &error));
  g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WRONG_PASSWORD);
}

/* Sizes that do not fit make no pixels, and a reference keeps them. */
static void
test_pixels (void)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static ("12345678abcdefgh", 16);
  g_autoptr (KsPixels) pixels = ks_pixels_new (2, 2, bytes), again = NULL;

  g_assert_null (ks_pixels_new (0, 2, bytes));
  g_assert_null (ks_pixels_new (2, 3, bytes));
  g_assert_null (ks_pixels_new (G_MAXUINT / 2, G_MAXUINT / 2, bytes));
  g_assert_null (ks_pixels_new (1u << 30, 4, bytes));
  again = ks_pixels_ref (pixels);
  g_assert_true (ks_pixels_get_bytes (again) == bytes);
}

int
main (int argc, char **argv)
{
  int code;

  g_test_init (&argc, &argv, NULL);
  folder = make_files ("sound");
  g_test_add_func ("/files/progress", test_progress);
  g_test_add_func ("/files/shrinking", test_shrinking);
  g_test_add_func ("/files/render", test_render);
  g_test_add_func ("/files/bytes", test_bytes);
  g_test_add_func ("/files/long-password", test_long_password);
  g_test_add_func ("/files/pixels", test_pixels);
  g_test_add_func ("/files/profiles", test_profiles);
  code = g_test_run ();
  remove_tree (folder);
  g_free (folder);
  return code;
}

/* test-hostile.c - odd and hostile files, each with its expected result (make-hostile.py).
 * Beyond the table every case keeps four promises: an answer within the time limit, memory under
 * its bound, a sentence that names the file when it is refused, and no process left behind. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/media/media-fixture.h"

static char *folder;
static GKeyFile *cases;

static char *
dup_key (const char *group, const char *key)
{
  return g_key_file_get_string (cases, group, key, NULL);
}

static gboolean
is_expected (const char *expect, const char *got)
{
  g_auto (GStrv) words = g_strsplit (expect, "|", -1);

  return g_strv_contains ((const char *const *)words, got);
}

static void
check_part (const char *group, const char *key, const char *text, gboolean wanted)
{
  g_autofree char *part = dup_key (group, key);

  if (part != NULL && (strstr (text != NULL ? text : "", part) != NULL) != wanted) {
    g_test_message ("%s: %s '%s' in: %.300s", group, key, part, text != NULL ? text : "(nothing)");
    g_test_fail ();
  }
}

static void
check_number (const char *group, const char *key, guint got)
{
  g_autofree char *want = dup_key (group, key);

  if (want != NULL && g_ascii_strtoull (want, NULL, 10) != got) {
    g_test_message ("%s: %s is %u, not %s", group, key, got, want);
    g_test_fail ();
  }
}

static void
check_size (const char *group, const char *key, guint width, guint height)
{
  g_autofree char *want = dup_key (group, key), *got = g_strdup_printf ("%ux%u", width, height);

  if (want != NULL && !g_str_equal (want, got)) {
    g_test_message ("%s: %s is %s, not %s", group, key, got, want);
    g_test_fail ();
  }
}

static void
check_pixel (const char *group, const char *spec, KsPixels *pixels)
{
  const guint8 *bytes = g_bytes_get_data (ks_pixels_get_bytes (pixels), NULL), *pixel;
  guint x, y, rgba;

  g_assert_cmpint (sscanf (spec, "%u,%u=%8x", &x, &y, &rgba), ==, 3);
  g_assert_cmpuint (x, <, ks_pixels_get_width (pixels));
  g_assert_cmpuint (y, <, ks_pixels_get_height (pixels));
  pixel = bytes + 4 * ((gsize)y * ks_pixels_get_width (pixels) + x);
  for (guint i = 0; i < 4; i++)
    if (ABS ((int)pixel[i] - (int)(rgba >> (24 - 8 * i) & 0xff)) > 2) {
      g_test_message ("%s: %s is %02x%02x%02x%02x", group, spec, pixel[0], pixel[1], pixel[2],
                      pixel[3]);
      g_test_fail ();
      return;
    }
}

static void
check_pixels (const char *group, KsPixels *pixels)
{
  g_autofree char *all = dup_key (group, "pixels");
  g_auto (GStrv) specs = g_strsplit (all != NULL ? all : "", ";", -1);

  if (pixels != NULL)
    check_size (group, "picture", ks_pixels_get_width (pixels), ks_pixels_get_height (pixels));
  else if (all != NULL || g_key_file_has_key (cases, group, "picture", NULL))
    g_test_fail_printf ("%s: no picture", group);
  for (guint i = 0; pixels != NULL && specs[i] != NULL; i++)
    check_pixel (group, specs[i], pixels);
}

static void
check_result (const char *group, const KsMediaResult *result)
{
  static const char *const kinds[] = {"text", "pdf", "image", "video", "document"};
  g_autofree char *expect = dup_key (group, "expect");

  if (!is_expected (expect, kinds[result->kind]))
    g_test_fail_printf ("%s: %s, not %s", group, kinds[result->kind], expect);
  if (result->kind != KS_MEDIA_IMAGE) {
    g_assert_true (g_utf8_validate_len (result->text, result->n_text, NULL));
    g_assert_cmpuint (strlen (result->text), ==, result->n_text);
    g_assert_null (strchr (result->text, '\r'));
  }
  check_part (group, "contains", result->text, TRUE);
  check_part (group, "lacks", result->text, FALSE);
  check_part (group, "warning", result->warning, TRUE);
  if (!g_key_file_has_key (cases, group, "warning", NULL) && !strchr (expect, '|') &&
      result->warning != NULL && !g_key_file_has_key (cases, group, "may_warn", NULL))
    g_test_fail_printf ("%s: warns: %s", group, result->warning);
  check_number (group, "pages", result->n_pages);
  check_number (group, "blank", result->n_pages_without_text);
  check_number (group, "pictures", result->n_pictures);
  check_size (group, "size", result->width_px, result->height_px);
  check_pixels (group, result->pixels);
}

static void
check_error (const char *group, const char *file, const GError *error)
{
  static const char *const codes[] = {"FAILED",   "UNKNOWN_TYPE",   "DAMAGED",
                                      "PASSWORD", "WRONG_PASSWORD", "TOO_LARGE",
                                      "EMPTY",    "WORKER",         "CANCELLED"};
  g_autofree char *expect = dup_key (group, "expect");

  g_assert_true (error->domain == KS_MEDIA_ERROR);
  if (!is_expected (expect, codes[error->code]))
    g_test_fail_printf ("%s: %s (%s), not %s", group, codes[error->code], error->message, expect);
  if (strstr (error->message, file) == NULL)
    g_test_fail_printf ("%s: the sentence does not name the file: %s", group, error->message);
  if (!strchr (expect, '|'))
    check_part (group, "contains", error->message, TRUE);
}

/* The kernel counts what this process ever had as the worker's, too: from now on what it has. */
static void
forget_own_peak (void)
{
  FILE *file = fopen ("/proc/self/clear_refs", "w");

  if (file != NULL) {
    fputs ("5", file);
    fclose (file);
  }
}

/* Resident memory of the worker, in MiB as the table names it. */
static void
check_peak (const char *group, guint64 peak_bytes)
{
#ifndef __SANITIZE_ADDRESS__
  g_autofree char *bound = dup_key (group, "peak");

  g_assert_nonnull (bound);
  g_assert_cmpuint (peak_bytes, >, 0);
  if (peak_bytes > g_ascii_strtoull (bound, NULL, 10) << 20)
    g_test_fail_printf ("%s: took %" G_GUINT64_FORMAT " MiB, over %s", group, peak_bytes >> 20,
                        bound);
#endif
}

static void
test_case (gconstpointer data)
{
  const char *group = data;
  g_auto (GStrv) parts = g_strsplit (group, "#", 2);
  g_autofree char *path = g_build_filename (folder, parts[0], NULL);
  g_autofree char *password = dup_key (group, "password");
  guint64 peak_bytes = 0;
  KsMediaOptions options = {.password = password, .out_peak_bytes = &peak_bytes};
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = NULL;
  gint64 begin_us = g_get_monotonic_time ();

  options.max_side_px = (guint)g_key_file_get_integer (cases, group, "side", NULL);
  forget_own_peak ();
  result = ks_media_load (path, &options, NULL, &error);
  g_test_message ("%s: %.0f ms, %" G_GUINT64_FORMAT " MiB: %s", group,
                  (double)(g_get_monotonic_time () - begin_us) / 1000, peak_bytes >> 20,
                  result != NULL ? "result" : error->message);
  check_peak (group, peak_bytes);
  g_assert_cmpint (g_get_monotonic_time () - begin_us, <, 120 * G_USEC_PER_SEC);
  if (result != NULL)
    check_result (group, result);
  else
    check_error (group, parts[0], error);
  assert_no_children ();
}

int
main (int argc, char **argv)
{
  g_autofree char *list = NULL;
  g_auto (GStrv) groups = NULL;
  int code;

  g_test_init (&argc, &argv, NULL);
  folder = make_files (NULL);
  list = g_build_filename (folder, "cases.ini", NULL);
  cases = g_key_file_new ();
  g_assert_true (g_key_file_load_from_file (cases, list, G_KEY_FILE_NONE, NULL));
  groups = g_key_file_get_groups (cases, NULL);
  g_assert_cmpuint (g_strv_length (groups), >, 250);
  for (guint i = 0; groups[i] != NULL; i++) {
    g_autofree char *name = g_strdup_printf ("/hostile/%s", groups[i]);

    g_test_add_data_func (name, groups[i], test_case);
  }
  code = g_test_run ();
  remove_tree (folder);
  g_free (folder);
  g_key_file_free (cases);
  return code;
}

/* test-error-text.c - failures in words that a user can act on. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-error-kind.h"
#include "app/ks-error.h"
#include "media/ks-media.h"
#include "storage/ks-storage-error.h"
#include "ui/ks-error-text.h"

#include <string.h>

static char *
text_of (GQuark domain, int code, const char *message)
{
  g_autoptr (GError) error = g_error_new_literal (domain, code, message);

  return ks_error_text_dup (error);
}

/* Errors that mean the same to a user are one kind, whichever part reports them; a code that is not
 * in the table is never taken for another one. */
static void
test_kinds (void)
{
  const struct {
    GQuark domain;
    int code;
    KsErrorKind kind;
  } cases[] = {
      {KS_STORAGE_ERROR, KS_STORAGE_ERROR_LOCKED, KS_ERROR_KIND_LOCKED},
      {KS_STORAGE_ERROR, KS_STORAGE_ERROR_FULL, KS_ERROR_KIND_DISK_FULL},
      {G_IO_ERROR, G_IO_ERROR_NO_SPACE, KS_ERROR_KIND_DISK_FULL},
      {G_FILE_ERROR, G_FILE_ERROR_NOSPC, KS_ERROR_KIND_DISK_FULL},
      {KS_STORAGE_ERROR, KS_STORAGE_ERROR_READ_ONLY, KS_ERROR_KIND_READ_ONLY},
      {KS_STORAGE_ERROR, KS_STORAGE_ERROR_DAMAGED, KS_ERROR_KIND_STORE_DAMAGED},
      {KS_STORAGE_ERROR, KS_STORAGE_ERROR_NEWER, KS_ERROR_KIND_STORE_NEWER},
      {KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND, KS_ERROR_KIND_NOT_STORED},
      {KS_STORAGE_ERROR, KS_STORAGE_ERROR_FORMAT, KS_ERROR_KIND_BUNDLE_FORMAT},
      {KS_STORAGE_ERROR, KS_STORAGE_ERROR_TOO_LARGE, KS_ERROR_KIND_TOO_LARGE},
      {KS_STORAGE_ERROR, KS_STORAGE_ERROR_FAILED, KS_ERROR_KIND_OTHER},
      {KS_MEDIA_ERROR, KS_MEDIA_ERROR_PASSWORD, KS_ERROR_KIND_FILE_PASSWORD},
      {KS_MEDIA_ERROR, KS_MEDIA_ERROR_WRONG_PASSWORD, KS_ERROR_KIND_FILE_WRONG_PASSWORD},
      {KS_MEDIA_ERROR, KS_MEDIA_ERROR_DAMAGED, KS_ERROR_KIND_FILE_DAMAGED},
      {KS_MEDIA_ERROR, KS_MEDIA_ERROR_TOO_LARGE, KS_ERROR_KIND_TOO_LARGE},
      {KS_MEDIA_ERROR, KS_MEDIA_ERROR_EMPTY, KS_ERROR_KIND_FILE_EMPTY},
      {KS_MEDIA_ERROR, KS_MEDIA_ERROR_UNKNOWN_TYPE, KS_ERROR_KIND_FILE_TYPE},
      {KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED, KS_ERROR_KIND_FILE_UNREADABLE},
      {KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER, KS_ERROR_KIND_DECODER},
      {KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED, KS_ERROR_KIND_CANCELLED},
      {KS_ENGINE_ERROR, KS_ERR_BUDGET, KS_ERROR_KIND_BUDGET},
      {KS_ENGINE_ERROR, KS_ERR_NOMEM, KS_ERROR_KIND_NO_MEMORY},
      {KS_ENGINE_ERROR, KS_ERR_FORMAT, KS_ERROR_KIND_MODEL_DAMAGED},
      {KS_ENGINE_ERROR, KS_ERR_UNSUPPORTED, KS_ERROR_KIND_MODEL_UNSUPPORTED},
      {KS_ENGINE_ERROR, KS_ERR_IO, KS_ERROR_KIND_MODEL_UNREADABLE},
      {KS_ENGINE_ERROR, KS_ERR_LOST, KS_ERROR_KIND_DEVICE_LOST},
      {KS_ENGINE_ERROR, KS_ERR_CANCELLED, KS_ERROR_KIND_CANCELLED},
      {KS_ENGINE_ERROR, KS_ERR_ARG, KS_ERROR_KIND_OTHER},
      {KS_APP_ERROR, KS_APP_ERROR_NO_MODEL, KS_ERROR_KIND_NO_MODEL},
      {KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT, KS_ERROR_KIND_FILE_TYPE},
      {KS_APP_ERROR, KS_APP_ERROR_TOO_LARGE, KS_ERROR_KIND_TOO_LARGE},
      {KS_APP_ERROR, KS_APP_ERROR_FAILED, KS_ERROR_KIND_OTHER},
      {G_IO_ERROR, G_IO_ERROR_CANCELLED, KS_ERROR_KIND_CANCELLED},
      {G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED, KS_ERROR_KIND_FILE_FORBIDDEN},
      {G_FILE_ERROR, G_FILE_ERROR_NOENT, KS_ERROR_KIND_FILE_MISSING},
      {G_MARKUP_ERROR, 1, KS_ERROR_KIND_OTHER},
  };

  g_assert_cmpint (ks_error_get_kind (NULL), ==, KS_ERROR_KIND_OTHER);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = g_error_new_literal (cases[i].domain, cases[i].code, "text");

    g_assert_cmpint (ks_error_get_kind (error), ==, cases[i].kind);
  }
}

/* Every kind has a sentence of its own, and facts stand behind it where there are any. */
static void
test_sentences (void)
{
  g_autofree char *budget = text_of (KS_ENGINE_ERROR, KS_ERR_BUDGET, "needs at least 160 MiB.");
  g_autofree char *locked = text_of (KS_STORAGE_ERROR, KS_STORAGE_ERROR_LOCKED, "process 77");
  g_autofree char *damaged = text_of (KS_MEDIA_ERROR, KS_MEDIA_ERROR_DAMAGED, "a.pdf: no pages");

  g_assert_cmpstr (budget, ==,
                   "The memory target is too small for this: raise it, or choose a smaller model. "
                   "(needs at least 160 MiB)");
  g_assert_true (g_str_has_prefix (locked, "Another Keepsake is answering in this session"));
  g_assert_null (strstr (locked, "77"));
  g_assert_true (g_str_has_prefix (damaged, "The file is damaged"));
  g_assert_true (g_str_has_suffix (damaged, " (a.pdf: no pages)"));
}

/* What has no kind is still a sentence, whatever bytes it holds; names keep their case. */
static void
test_technical (void)
{
  const struct {
    const char *message, *text;
  } cases[] = {
      {"the request failed", "The request failed."},
      {"Already a sentence.", "Already a sentence."},
      {"report.pdf has no page 9", "report.pdf has no page 9."},
      {"really?", "really?"},
      {"two\nlines", "Two lines."},
      {"bad \xff byte", "Bad \xef\xbf\xbd byte."},
      {"<b>&amp;</b>", "<b>&amp;</b>."},
      {" ", "Something went wrong, and no reason was given."},
  };
  g_autofree char *none = ks_error_text_dup (NULL);

  g_assert_cmpstr (none, ==, "Something went wrong, and no reason was given.");
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = text_of (KS_APP_ERROR, KS_APP_ERROR_FAILED, cases[i].message);

    g_assert_cmpstr (text, ==, cases[i].text);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/error-text/kinds", test_kinds);
  g_test_add_func ("/error-text/sentences", test_sentences);
  g_test_add_func ("/error-text/technical", test_technical);
  return g_test_run ();
}

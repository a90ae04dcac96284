/* test-text-import.c - any encoding comes in as UTF-8, what is no text is refused with a sentence.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-error.h"
#include "app/ks-text-import.h"

#include <string.h>

#define GERMAN "Die Übung wäre schön, größer und süßer. Für Österreich und die Äpfel.\n"
#define KOREAN "안녕하세요. 이것은 한국어 문장입니다. 문자 집합을 찾아야 합니다.\n"

static void
assert_import (const void *data, gsize n, const char *want, const char *want_encoding)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *encoding = NULL;
  gsize n_out = 0;
  g_autofree char *text = ks_text_import_bytes ("a.txt", data, n, &n_out, &encoding, &error);

  g_assert_no_error (error);
  g_assert_cmpstr (text, ==, want);
  g_assert_cmpuint (n_out, ==, strlen (want));
  if (want_encoding != NULL)
    g_assert_cmpstr (encoding, ==, want_encoding);
}

/* text in encoding, with mark in front, is read as text. */
static void
assert_encoding (const char *encoding, const char *mark, gsize n_mark, const char *text)
{
  g_autoptr (GError) error = NULL;
  gsize n = 0;
  g_autofree char *converted = g_convert (text, -1, encoding, "UTF-8", NULL, &n, &error);
  g_autoptr (GByteArray) bytes = g_byte_array_new ();

  g_assert_no_error (error);
  g_byte_array_append (bytes, (const guint8 *)mark, (guint)n_mark);
  g_byte_array_append (bytes, (const guint8 *)converted, (guint)n);
  assert_import (bytes->data, bytes->len, text, NULL);
}

static void
test_encodings (void)
{
  assert_import (GERMAN, strlen (GERMAN), GERMAN, "UTF-8");
  assert_encoding ("UTF-8", "\xef\xbb\xbf", 3, GERMAN);
  assert_encoding ("UTF-16LE", "\xff\xfe", 2, GERMAN);
  assert_encoding ("UTF-16BE", "\xfe\xff", 2, KOREAN);
  assert_encoding ("UTF-32LE", "\xff\xfe\0\0", 4, KOREAN);
  assert_encoding ("UTF-32BE", "\0\0\xfe\xff", 4, GERMAN);
  assert_encoding ("UTF-16LE", "", 0, GERMAN);
  assert_encoding ("UTF-16BE", "", 0, GERMAN);
  assert_encoding ("UTF-32LE", "", 0, GERMAN);
  assert_encoding ("ISO-8859-1", "", 0, GERMAN GERMAN);
  assert_encoding ("EUC-KR", "", 0, KOREAN KOREAN);
}

/* Every line end becomes a line feed, and an empty file is an empty text. */
static void
test_line_ends (void)
{
  assert_import ("a\r\nb\rc\nd\r", 9, "a\nb\nc\nd\n", "UTF-8");
  assert_import ("", 0, "", NULL);
}

static void
assert_refused (const void *data, gsize n, KsAppError code)
{
  g_autoptr (GError) error = NULL;
  gsize n_out = 77;

  g_assert_null (ks_text_import_bytes ("a.bin", data, n, &n_out, NULL, &error));
  g_assert_error (error, KS_APP_ERROR, (int)code);
  g_assert_nonnull (strstr (error->message, "a.bin"));
  g_assert_cmpuint (n_out, ==, 77);
}

/* Zeros between letters, control bytes, marks without text behind them, and halves of characters.
 */
static void
test_binary (void)
{
  guchar noise[512];

  for (guint i = 0; i < sizeof noise; i++)
    noise[i] = (guchar)(i * 131u + i / 7u);
  assert_refused (noise, sizeof noise, KS_APP_ERROR_NOT_TEXT);
  assert_refused ("ab\0cd\0\0\0ef", 10, KS_APP_ERROR_NOT_TEXT);
  assert_refused ("\x01\x02\x03\x04text\x05\x06", 10, KS_APP_ERROR_NOT_TEXT);
  assert_refused ("\xff\xfe\x41", 3, KS_APP_ERROR_NOT_TEXT);
}

static void
test_files (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (ks_text_import_file ("/nonexistent/file.txt", NULL, NULL, &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  g_clear_error (&error);
  g_assert_null (ks_text_import_file ("/", NULL, NULL, &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT);
  g_clear_error (&error);
  /* A device or a pipe would block or never end. */
  g_assert_null (ks_text_import_file ("/dev/zero", NULL, NULL, &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/text-import/encodings", test_encodings);
  g_test_add_func ("/text-import/line-ends", test_line_ends);
  g_test_add_func ("/text-import/binary", test_binary);
  g_test_add_func ("/text-import/files", test_files);
  return g_test_run ();
}

/* test-text.c - any encoding comes in as UTF-8, what is no text is refused with a sentence.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-media.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GERMAN "Die Übung wäre schön, größer und süßer. Für Österreich und die Äpfel.\n"
#define KOREAN "안녕하세요. 이것은 한국어 문장입니다. 문자 집합을 찾아야 합니다.\n"

static KsMediaResult *
load (const void *data, gsize n, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new (data, n);
  KsMediaOptions options = {.name = "a.txt"};

  return ks_media_load_bytes (bytes, &options, NULL, error);
}

static void
assert_import (const void *data, gsize n, const char *want, const char *want_encoding)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = load (data, n, &error);

  g_assert_no_error (error);
  g_assert_cmpint (result->kind, ==, KS_MEDIA_TEXT);
  g_assert_cmpstr (result->text, ==, want);
  g_assert_cmpuint (result->n_text, ==, strlen (want));
  g_assert_null (result->pixels);
  g_assert_null (result->warning);
  if (want_encoding != NULL)
    g_assert_cmpstr (result->encoding, ==, want_encoding);
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

/* Every line end becomes a line feed, and a mark alone is an empty text. */
static void
test_line_ends (void)
{
  assert_import ("a\r\nb\rc\nd\r", 9, "a\nb\nc\nd\n", "UTF-8");
  assert_import ("\xef\xbb\xbf", 3, "", "UTF-8");
}

/* A bad byte in UTF-8, or half of a surrogate pair, costs one character and gives a warning, not
 * another alphabet. */
static void
test_repair (void)
{
  static const char bad[] = GERMAN GERMAN "\xff" KOREAN;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) utf8 = load (bad, strlen (bad), &error), utf16 = NULL;

  g_assert_no_error (error);
  g_assert_cmpstr (utf8->text, ==, GERMAN GERMAN "\xef\xbf\xbd" KOREAN);
  g_assert_cmpstr (utf8->encoding, ==, "UTF-8");
  g_assert_nonnull (utf8->warning);
  utf16 = load ("\xff\xfe"
                "a\0\x00\xd8"
                "b\0\x3d\xd8\x00\xde\x00\xdc",
                14, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (utf16->text, ==,
                   "a\xef\xbf\xbd"
                   "b\xf0\x9f\x98\x80\xef\xbf\xbd");
  g_assert_nonnull (utf16->warning);
}

static void
assert_refused (const void *data, gsize n, KsMediaError code)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (load (data, n, &error));
  g_assert_error (error, KS_MEDIA_ERROR, (int)code);
  g_assert_nonnull (strstr (error->message, "a.txt"));
}

/* Zeros between letters, control bytes, marks without text behind them, halves of characters, and
 * nothing at all. */
static void
test_binary (void)
{
  guchar noise[512];

  for (guint i = 0; i < sizeof noise; i++)
    noise[i] = (guchar)(i * 131u + i / 7u);
  assert_refused (noise, sizeof noise, KS_MEDIA_ERROR_UNKNOWN_TYPE);
  assert_refused ("ab\0cd\0\0\0ef", 10, KS_MEDIA_ERROR_UNKNOWN_TYPE);
  assert_refused ("\xef\xbb\xbf"
                  "ab\0cd",
                  8, KS_MEDIA_ERROR_UNKNOWN_TYPE);
  assert_refused ("\x01\x02\x03\x04text\x05\x06", 10, KS_MEDIA_ERROR_UNKNOWN_TYPE);
  assert_refused ("\xff\xfe\x41", 3, KS_MEDIA_ERROR_UNKNOWN_TYPE);
  assert_refused ("", 0, KS_MEDIA_ERROR_EMPTY);
}

static void
assert_no_file (const char *path, KsMediaError code)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (ks_media_load (path, NULL, NULL, &error));
  g_assert_error (error, KS_MEDIA_ERROR, (int)code);
}

/* What is no regular file is refused at once: a device or a pipe would block or never end. */
static void
test_files (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("ks-media-XXXXXX", &error);
  g_autofree char *fifo = g_build_filename (dir, "fifo", NULL);
  g_autofree char *link = g_build_filename (dir, "link", NULL);

  g_assert_no_error (error);
  g_assert_cmpint (mkfifo (fifo, 0600), ==, 0);
  g_assert_cmpint (symlink ("/dev/zero", link), ==, 0);
  assert_no_file ("/nonexistent/file.txt", KS_MEDIA_ERROR_FAILED);
  assert_no_file (dir, KS_MEDIA_ERROR_UNKNOWN_TYPE);
  assert_no_file ("/dev/zero", KS_MEDIA_ERROR_UNKNOWN_TYPE);
  assert_no_file (fifo, KS_MEDIA_ERROR_UNKNOWN_TYPE);
  assert_no_file (link, KS_MEDIA_ERROR_UNKNOWN_TYPE);
  g_unlink (fifo);
  g_unlink (link);
  g_rmdir (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/text/encodings", test_encodings);
  g_test_add_func ("/text/line-ends", test_line_ends);
  g_test_add_func ("/text/repair", test_repair);
  g_test_add_func ("/text/binary", test_binary);
  g_test_add_func ("/text/files", test_files);
  return g_test_run ();
}

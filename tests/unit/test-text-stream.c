/* test-text-stream.c - what may be shown of an answer, piece by piece. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/sampler.h"
#include "tests/ks-test.h"

static ks_alloc *alloc;
static ks_text_stream *stream;

static void
open_stream(const char *const *stops, size_t n)
{
  alloc = ks_alloc_new();
  stream = NULL;
  KS_ASSERT_OK(ks_text_stream_new(alloc, stops, n, &stream, NULL));
}

static void
close_stream(void)
{
  ks_text_stream_free(stream);
  ks_alloc_free(alloc);
}

static void
expect(const char *piece, const char *want, bool want_stopped)
{
  const char *text = NULL;
  size_t n = 0;
  bool stopped = false;

  KS_ASSERT_OK(ks_text_stream_push(stream, piece, strlen(piece), &text, &n, &stopped, NULL));
  if (n != strlen(want) || (n > 0 && memcmp(text, want, n) != 0))
    KS_FAIL("piece \"%s\" gave \"%.*s\", want \"%s\"", piece, (int)n, text, want);
  KS_ASSERT_EQ(stopped, want_stopped);
}

static void
expect_rest(const char *want)
{
  const char *text = NULL;
  size_t n = 0;

  KS_ASSERT_OK(ks_text_stream_finish(stream, &text, &n, NULL));
  KS_ASSERT_EQ(n, strlen(want));
  KS_ASSERT(n == 0 || memcmp(text, want, n) == 0);
}

/* A character comes out whole, once its last byte is there. */
KS_TEST(text_stream, utf8_is_carried_across_pieces)
{
  open_stream(NULL, 0);
  expect("a\xE2", "a", false);
  expect("\x82", "", false);
  expect("\xAC!", "\xE2\x82\xAC!", false);
  expect("\xF0\x9F", "", false);
  expect("\x99\x82", "\xF0\x9F\x99\x82", false);
  expect_rest("");
  close_stream();
}

/* Broken bytes never leave: each becomes U+FFFD, in the middle and at the end. */
KS_TEST(text_stream, broken_bytes_are_replaced)
{
  open_stream(NULL, 0);
  expect("a\xFF"
         "b",
         "a\xEF\xBF\xBD"
         "b",
         false);
  expect("\xE2", "", false);
  expect("x", "\xEF\xBF\xBDx", false);
  expect("\xE2\x82", "", false);
  expect_rest("\xEF\xBF\xBD\xEF\xBF\xBD");
  close_stream();
}

/* A stop string split over pieces ends the text before it, whatever follows. */
KS_TEST(text_stream, stop_string_over_pieces)
{
  static const char *const stops[] = {"\nUser:", "END"};

  open_stream(stops, 2);
  expect("Hello\n", "Hello", false);
  expect("Us", "", false);
  expect("er: what?", "", true);
  expect("more", "", true);
  expect_rest("");
  close_stream();
}

/* What only looked like a stop string is shown later, complete and in order. */
KS_TEST(text_stream, held_back_text_is_released)
{
  static const char *const stops[] = {"aab"};

  open_stream(stops, 1);
  expect("xaa", "x", false);
  expect("a", "a", false); /* "aa" may still begin it */
  expect("c", "aac", false);
  expect("aa", "", false);
  expect_rest("aa");
  close_stream();
}

/* The earliest stop string wins, also inside one piece. */
KS_TEST(text_stream, earliest_stop_wins)
{
  static const char *const stops[] = {"two", "one"};

  open_stream(stops, 2);
  expect("zero one two", "zero ", true);
  close_stream();
}

/* Empty stop strings are refused; every failed allocation is a status and the stream stays usable.
 */
KS_TEST(text_stream, refusals)
{
  static const char *const stops[] = {"x", ""}, *const good[] = {"stop"};
  ks_alloc *a = ks_alloc_new();
  const char *text;
  size_t n;
  bool stopped;

  stream = NULL;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_text_stream_new(a, stops, 2, &stream, NULL));
  for (int i = 0; i < 3; i++) {
    ks_alloc_fail_after(a, i);
    KS_ASSERT_STATUS(KS_ERR_NOMEM, ks_text_stream_new(a, good, 1, &stream, NULL));
  }
  KS_ASSERT(stream == NULL);
  ks_alloc_fail_after(a, -1);
  KS_ASSERT_OK(ks_text_stream_new(a, good, 1, &stream, NULL));
  ks_alloc_fail_after(a, 0);
  KS_ASSERT_STATUS(KS_ERR_NOMEM, ks_text_stream_push(stream, "abc", 3, &text, &n, &stopped, NULL));
  ks_alloc_fail_after(a, -1);
  expect("abc", "abc", false);
  ks_text_stream_free(stream);
  ks_alloc_free(a);
}

KS_TEST_MAIN

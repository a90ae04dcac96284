/* test-unicode.c - UTF-8 reading, writing, the streaming carry rule, and class tables. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/unicode.h"
#include "tests/ks-test.h"

/* Every valid code point comes back from its own bytes. */
KS_TEST(unicode, round_trip_of_all_code_points)
{
  for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
    char buf[4];
    uint32_t got = 0;
    size_t n;

    if (cp >= 0xD800 && cp <= 0xDFFF)
      continue;
    n = ks_utf8_encode(cp, buf);
    KS_ASSERT_EQ(ks_utf8_decode(buf, n, &got), n);
    KS_ASSERT_EQ(got, cp);
  }
}

/* Overlong forms, surrogates, too large values, lone and missing tails take one byte each. */
KS_TEST(unicode, invalid_takes_one_byte)
{
  static const char *const bad[] = {"\xC0\x80", "\xC1\xBF",         "\xE0\x9F\xBF", "\xED\xA0\x80",
                                    "\x80",     "\xF4\x90\x80\x80", "\xF5\x80\x80", "\xFF",
                                    "\xE2\x82", "\xE2\x82z",        "\xF0\x9F\x98"};

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    uint32_t cp = 0;

    KS_ASSERT_EQ(ks_utf8_decode(bad[i], strlen(bad[i]), &cp), 1);
    KS_ASSERT_EQ(cp, 0xFFFD);
  }
}

/* Only a tail that more bytes could complete is held back. */
KS_TEST(unicode, complete_prefix)
{
  KS_ASSERT_EQ(ks_utf8_complete_prefix("", 0), 0);
  KS_ASSERT_EQ(ks_utf8_complete_prefix("abc", 3), 3);
  KS_ASSERT_EQ(ks_utf8_complete_prefix("ab\xC3", 3), 2);
  KS_ASSERT_EQ(ks_utf8_complete_prefix("ab\xC3\xA9", 4), 4);
  KS_ASSERT_EQ(ks_utf8_complete_prefix("a\xE2\x82", 3), 1);
  KS_ASSERT_EQ(ks_utf8_complete_prefix("\xF0\x9F\x98", 3), 0);
  KS_ASSERT_EQ(ks_utf8_complete_prefix("\xF0\x9F\x98\x80", 4), 4);
  KS_ASSERT_EQ(ks_utf8_complete_prefix("a\xFF", 2), 2);         /* never valid */
  KS_ASSERT_EQ(ks_utf8_complete_prefix("a\xED\xA0", 3), 3);     /* surrogate: hopeless */
  KS_ASSERT_EQ(ks_utf8_complete_prefix("a\x80\x80\x80", 4), 4); /* tails without a lead */
}

/* Classes at the borders that pre-tokenizers depend on. */
KS_TEST(unicode, classes)
{
  KS_ASSERT(ks_unicode_is_letter('a') && ks_unicode_is_letter('Z') && ks_unicode_is_letter(0xE9));
  KS_ASSERT(ks_unicode_is_letter(0x4E2D) && ks_unicode_is_letter(0xD55C));
  KS_ASSERT(ks_unicode_is_letter(0x20000) && !ks_unicode_is_letter(0x1F600));
  KS_ASSERT(!ks_unicode_is_letter('@') && !ks_unicode_is_letter('[') && !ks_unicode_is_letter('`'));
  KS_ASSERT(!ks_unicode_is_letter('{') && !ks_unicode_is_letter('_'));
  KS_ASSERT(ks_unicode_is_number('0') && ks_unicode_is_number('9') && !ks_unicode_is_number(':'));
  KS_ASSERT(ks_unicode_is_number(0xBD) && ks_unicode_is_number(0x2460) &&
            ks_unicode_is_number(0x663));
  KS_ASSERT(ks_unicode_is_mark(0x301) && ks_unicode_is_mark(0x93F) && !ks_unicode_is_letter(0x93F));
  KS_ASSERT(ks_unicode_is_space(' ') && ks_unicode_is_space('\t') && ks_unicode_is_space('\r'));
  KS_ASSERT(ks_unicode_is_space(0xA0) && ks_unicode_is_space(0x3000) &&
            ks_unicode_is_space(0x2028));
  KS_ASSERT(!ks_unicode_is_space(0x200B) && !ks_unicode_is_space(0x1C) && !ks_unicode_is_space(8));
  KS_ASSERT_EQ(ks_unicode_get_class(0x10FFFF), KS_UNICODE_OTHER);
  KS_ASSERT_EQ(ks_unicode_get_class(0xFFFFFFFF), KS_UNICODE_OTHER);
}

KS_TEST_MAIN

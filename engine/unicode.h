/* unicode.h - UTF-8 decoding and the few Unicode classes that pre-tokenizers ask for.
 * Threads: pure functions over constant tables (unicode-data.c, made by
 * tests/golden/make-unicode.py). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/status.h"

KS_BEGIN_DECLS

/* Decodes one code point from text[0..n-1] (n > 0) and returns the bytes it took.  An invalid
 * sequence gives 0xFFFD and takes one byte, so that nothing is lost or read twice. */
size_t ks_utf8_decode(const char *text, size_t n, uint32_t *out_cp);
/* Writes 1-4 bytes; returns their number. */
size_t ks_utf8_encode(uint32_t cp, char out[4]);
/* Length of the longest prefix of text that does not end inside a sequence which more bytes could
 * still complete (the streaming carry rule). */
size_t ks_utf8_complete_prefix(const char *text, size_t n);

/* The classes exclude each other; everything else is KS_UNICODE_OTHER, unassigned ones too. */
typedef enum ks_unicode_class {
  KS_UNICODE_OTHER,
  KS_UNICODE_LETTER, /* category L* */
  KS_UNICODE_NUMBER, /* category N* */
  KS_UNICODE_MARK,   /* category M* */
  KS_UNICODE_SPACE   /* White_Space property */
} ks_unicode_class;

ks_unicode_class ks_unicode_get_class(uint32_t cp);
bool ks_unicode_is_letter(uint32_t cp); /* category L* */
bool ks_unicode_is_number(uint32_t cp); /* category N* */
bool ks_unicode_is_mark(uint32_t cp);   /* category M* */
bool ks_unicode_is_space(uint32_t cp);  /* White_Space property */

KS_END_DECLS

/* unicode.c - UTF-8 by the table of well-formed sequences, classes by binary search.
 * Overlong forms, surrogates and values above U+10FFFF are invalid, so that one text has one
 * reading. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/unicode.h"

#include "engine/unicode-internal.h"

#define REPLACEMENT 0xFFFDu

/* Length that the lead byte announces and the range its second byte must lie in; 0 = no lead byte.
 */
static size_t
sequence_length(unsigned char lead, unsigned char *out_min, unsigned char *out_max)
{
  *out_min = 0x80;
  *out_max = 0xBF;
  if (lead < 0x80)
    return 1;
  if (lead < 0xC2 || lead > 0xF4)
    return 0;
  if (lead < 0xE0)
    return 2;
  if (lead == 0xE0)
    *out_min = 0xA0; /* below: overlong */
  if (lead == 0xED)
    *out_max = 0x9F; /* above: surrogates */
  if (lead < 0xF0)
    return 3;
  if (lead == 0xF0)
    *out_min = 0x90;
  if (lead == 0xF4)
    *out_max = 0x8F;
  return 4;
}

/* How many of the first n bytes fit the sequence begun by s[0], and its full length. */
static size_t
matching_bytes(const unsigned char *s, size_t n, size_t *out_full)
{
  unsigned char min, max;
  size_t full = sequence_length(s[0], &min, &max), k;

  *out_full = full;
  if (full == 0)
    return 0;
  for (k = 1; k < full && k < n; k++) {
    if (s[k] < min || s[k] > max)
      break;
    min = 0x80;
    max = 0xBF;
  }
  return k;
}

size_t
ks_utf8_decode(const char *text, size_t n, uint32_t *out_cp)
{
  static const unsigned char lead_bits[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  const unsigned char *s = (const unsigned char *)text;
  size_t full;
  uint32_t cp;

  if (s[0] < 0x80) {
    *out_cp = s[0];
    return 1;
  }
  if (matching_bytes(s, n, &full) != full || full == 0) {
    *out_cp = REPLACEMENT;
    return 1;
  }
  cp = s[0] & lead_bits[full];
  for (size_t i = 1; i < full; i++)
    cp = cp << 6 | (s[i] & 0x3Fu);
  *out_cp = cp;
  return full;
}

size_t
ks_utf8_encode(uint32_t cp, char out[4])
{
  if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
    cp = REPLACEMENT;
  if (cp < 0x80) {
    out[0] = (char)cp;
    return 1;
  }
  if (cp < 0x800) {
    out[0] = (char)(0xC0 | cp >> 6);
    out[1] = (char)(0x80 | (cp & 0x3F));
    return 2;
  }
  if (cp < 0x10000) {
    out[0] = (char)(0xE0 | cp >> 12);
    out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[2] = (char)(0x80 | (cp & 0x3F));
    return 3;
  }
  out[0] = (char)(0xF0 | cp >> 18);
  out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
  out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
  out[3] = (char)(0x80 | (cp & 0x3F));
  return 4;
}

size_t
ks_utf8_complete_prefix(const char *text, size_t n)
{
  const unsigned char *s = (const unsigned char *)text;

  /* An unfinished sequence has at most three bytes, so only the last three can start one. */
  for (size_t back = 1; back <= 3 && back <= n; back++) {
    size_t full, start = n - back;

    if ((s[start] & 0xC0) == 0x80)
      continue;
    if (matching_bytes(s + start, back, &full) == back && full > back)
      return start;
    break;
  }
  return n;
}

ks_unicode_class
ks_unicode_get_class(uint32_t cp)
{
  size_t lo = 0, hi = ks_unicode_n_ranges;

  if (cp < 0x80) { /* most text: no search */
    if ((cp | 0x20) - 'a' < 26)
      return KS_UNICODE_LETTER;
    if (cp - '0' < 10)
      return KS_UNICODE_NUMBER;
    return cp == ' ' || cp - 9 < 5 ? KS_UNICODE_SPACE : KS_UNICODE_OTHER;
  }
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;

    if (ks_unicode_ranges[mid].last < cp)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo < ks_unicode_n_ranges && ks_unicode_ranges[lo].first <= cp)
    return ks_unicode_ranges[lo].cls;
  return KS_UNICODE_OTHER;
}

bool
ks_unicode_is_letter(uint32_t cp)
{
  return ks_unicode_get_class(cp) == KS_UNICODE_LETTER;
}

bool
ks_unicode_is_number(uint32_t cp)
{
  return ks_unicode_get_class(cp) == KS_UNICODE_NUMBER;
}

bool
ks_unicode_is_mark(uint32_t cp)
{
  return ks_unicode_get_class(cp) == KS_UNICODE_MARK;
}

bool
ks_unicode_is_space(uint32_t cp)
{
  return ks_unicode_get_class(cp) == KS_UNICODE_SPACE;
}

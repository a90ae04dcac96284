/* ks-office-sniff.c - see ks-office-sniff.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-office-sniff.h"

#include <string.h>

gboolean
ks_office_sniff_old (const guint8 *data, gsize n)
{
  return n >= 8 && memcmp (data, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 8) == 0;
}

gboolean
ks_office_sniff_zip (const guint8 *data, gsize n)
{
  return n >= 4 && (memcmp (data, "PK\3\4", 4) == 0 || memcmp (data, "PK\5\6", 4) == 0);
}

/* The place behind the first `end` from `at` on; n when there is none. */
static gsize
skip_to (const char *text, gsize n, gsize at, const char *end)
{
  const char *found = memmem (text + at, n - at, end, strlen (end));

  return found != NULL ? (gsize)(found - text) + strlen (end) : n;
}

/* A word without regard to case, with its end behind it. */
static gboolean
has_word (const char *text, gsize n, gsize at, const char *word)
{
  gsize n_word = strlen (word);

  return n - at > n_word && g_ascii_strncasecmp (text + at, word, n_word) == 0 &&
         (g_ascii_isspace (text[at + n_word]) || text[at + n_word] == '>');
}

/* <!doctype html> or <html>, behind what may precede them. */
static gboolean
is_html (const char *text, gsize n)
{
  gsize at = n >= 3 && memcmp (text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

  while (at < n) {
    if (g_ascii_isspace (text[at]))
      at++;
    else if (n - at >= 4 && memcmp (text + at, "<!--", 4) == 0)
      at = skip_to (text, n, at + 4, "-->");
    else if (n - at >= 5 && memcmp (text + at, "<?xml", 5) == 0)
      at = skip_to (text, n, at, "?>");
    else
      return has_word (text, n, at, "<!doctype html") || has_word (text, n, at, "<html");
  }
  return FALSE;
}

gboolean
ks_office_sniff (const guint8 *data, gsize n)
{
  return ks_office_sniff_zip (data, n) || ks_office_sniff_old (data, n) ||
         is_html ((const char *)data, n);
}

/* ks-reading.c - see ks-reading.h.
 * Words: pages= one letter a page, ocr. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-reading.h"

#include <string.h>

#define MAX_PAGES 1000000u

static const char page_letters[KS_N_PAGE_MODE + 1] = "tib-";

static void
parse_pages (KsReading *reading, const char *letters)
{
  g_autoptr (GByteArray) pages = g_byte_array_new ();

  for (const char *p = letters; *p != '\0' && pages->len < MAX_PAGES; p++) {
    const char *found = strchr (page_letters, *p);
    guint8 mode = found != NULL ? (guint8)(found - page_letters) : KS_PAGE_TEXT;

    g_byte_array_append (pages, &mode, 1);
  }
  if (pages->len > 0)
    reading->pages = g_steal_pointer (&pages);
}

KsReading *
ks_reading_parse (const char *text)
{
  KsReading *reading = g_new0 (KsReading, 1);
  g_auto (GStrv) words = g_strsplit (text != NULL ? text : "", " ", -1);

  for (guint i = 0; words[i] != NULL; i++) {
    const char *word = words[i];

    if (g_str_has_prefix (word, "pages=") && reading->pages == NULL)
      parse_pages (reading, word + strlen ("pages="));
    else if (g_str_equal (word, "ocr"))
      reading->ocr = TRUE;
  }
  return reading;
}

KsReading *
ks_reading_copy (const KsReading *reading)
{
  KsReading *copy;

  g_return_val_if_fail (reading != NULL, NULL);
  copy = g_memdup2 (reading, sizeof *reading);
  if (reading->pages != NULL) {
    copy->pages = g_byte_array_new ();
    g_byte_array_append (copy->pages, reading->pages->data, reading->pages->len);
  }
  return copy;
}

char *
ks_reading_format (const KsReading *reading)
{
  GString *out = g_string_new (NULL);
  char *text;

  if (reading->pages != NULL) {
    g_string_append (out, " pages=");
    for (guint i = 0; i < reading->pages->len; i++)
      g_string_append_c (out, page_letters[reading->pages->data[i] % KS_N_PAGE_MODE]);
  }
  if (reading->ocr)
    g_string_append (out, " ocr");
  text = out->len > 0 ? g_strdup (out->str + 1) : NULL;
  g_string_free (out, TRUE);
  return text;
}

void
ks_reading_free (KsReading *reading)
{
  if (reading == NULL)
    return;
  g_clear_pointer (&reading->pages, g_byte_array_unref);
  g_free (reading);
}

KsPageMode
ks_reading_get_page (const KsReading *reading, guint page)
{
  if (reading->pages == NULL || page >= reading->pages->len)
    return KS_PAGE_TEXT;
  return (KsPageMode)(reading->pages->data[page] % KS_N_PAGE_MODE);
}

void
ks_reading_set_page (KsReading *reading, guint n_pages, guint page, KsPageMode mode)
{
  g_return_if_fail (page < n_pages && n_pages <= MAX_PAGES && mode < KS_N_PAGE_MODE);
  if (reading->pages == NULL)
    reading->pages = g_byte_array_new ();
  while (reading->pages->len < n_pages) {
    guint8 text = KS_PAGE_TEXT;

    g_byte_array_append (reading->pages, &text, 1);
  }
  reading->pages->data[page] = (guint8)mode;
}

/* ks-reading.c - see ks-reading.h.
 * Words: pages= one letter a page, frames=count:N | every:USEC:N | scenes:PERMILLE:N, taken=N
 * (frames of it), no-pictures, ocr. */
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

static guint64
parse_number (const char *text, guint64 most)
{
  guint64 value = 0;

  return text != NULL && g_ascii_string_to_unsigned (text, 10, 0, most, &value, NULL) ? value : 0;
}

static void
parse_frames (KsReading *reading, const char *text)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", 3);
  guint n_part = g_strv_length (parts);
  KsMediaSampling sampling = {0};

  if (n_part < 2)
    return;
  if (g_str_equal (parts[0], "count")) {
    sampling.mode = KS_MEDIA_SAMPLE_COUNT;
  } else if (g_str_equal (parts[0], "every") && n_part == 3) {
    sampling.mode = KS_MEDIA_SAMPLE_INTERVAL;
    sampling.interval_us = (gint64)parse_number (parts[1], KS_MEDIA_MAX_TIME_US);
  } else if (g_str_equal (parts[0], "scenes") && n_part == 3) {
    sampling.mode = KS_MEDIA_SAMPLE_SCENES;
    sampling.cut_permille = (guint)parse_number (parts[1], 1000);
  } else {
    return;
  }
  sampling.n_frames = (guint)parse_number (parts[n_part - 1], KS_MEDIA_MAX_FRAMES);
  reading->sampling = ks_sampling_clamp (&sampling);
  reading->has_frames = TRUE;
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
    else if (g_str_has_prefix (word, "frames="))
      parse_frames (reading, word + strlen ("frames="));
    else if (g_str_has_prefix (word, "taken="))
      reading->n_frames = (guint)parse_number (word + strlen ("taken="), KS_MEDIA_MAX_FRAMES);
    else if (g_str_equal (word, "no-pictures"))
      reading->no_pictures = TRUE;
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

static void
format_frames (GString *out, const KsReading *reading)
{
  const KsMediaSampling *s = &reading->sampling;

  switch (s->mode) {
  case KS_MEDIA_SAMPLE_INTERVAL:
    g_string_append_printf (out, " frames=every:%" G_GINT64_FORMAT ":%u", s->interval_us,
                            s->n_frames);
    break;
  case KS_MEDIA_SAMPLE_SCENES:
    g_string_append_printf (out, " frames=scenes:%u:%u", s->cut_permille, s->n_frames);
    break;
  default:
    g_string_append_printf (out, " frames=count:%u", s->n_frames);
  }
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
  if (reading->has_frames)
    format_frames (out, reading);
  if (reading->n_frames > 0)
    g_string_append_printf (out, " taken=%u", reading->n_frames);
  if (reading->no_pictures)
    g_string_append (out, " no-pictures");
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

/* test-reading.c - how an attachment is read survives as words; nonsense means no choice. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-reading.h"

#include <string.h>

/* What was chosen comes back from its words, page by page. */
static void
test_round_trip (void)
{
  g_autoptr (KsReading) reading = ks_reading_parse (NULL);
  g_autoptr (KsReading) again = NULL;
  g_autofree char *empty = ks_reading_format (reading), *words = NULL;

  g_assert_null (empty);
  ks_reading_set_page (reading, 4, 1, KS_PAGE_PICTURE);
  ks_reading_set_page (reading, 4, 2, KS_PAGE_BOTH);
  ks_reading_set_page (reading, 4, 3, KS_PAGE_NONE);
  reading->no_pictures = reading->ocr = TRUE;
  words = ks_reading_format (reading);
  g_assert_cmpstr (words, ==, "pages=tib- no-pictures ocr");
  again = ks_reading_parse (words);
  for (guint page = 0; page < 4; page++)
    g_assert_cmpint (ks_reading_get_page (again, page), ==, ks_reading_get_page (reading, page));
  g_assert_cmpint (ks_reading_get_page (again, 2), ==, KS_PAGE_BOTH);
  g_assert_cmpint (ks_reading_get_page (again, 4), ==, KS_PAGE_TEXT);
  g_assert_true (again->no_pictures);
  g_assert_true (again->ocr);
}

/* A copy is its own. */
static void
test_copy (void)
{
  g_autoptr (KsReading) reading = ks_reading_parse ("pages=ii");
  g_autoptr (KsReading) copy = ks_reading_copy (reading);

  ks_reading_set_page (copy, 2, 0, KS_PAGE_TEXT);
  g_assert_cmpint (ks_reading_get_page (reading, 0), ==, KS_PAGE_PICTURE);
  g_assert_cmpint (ks_reading_get_page (copy, 0), ==, KS_PAGE_TEXT);
}

/* Words come from bundles of other people. */
static void
test_nonsense (void)
{
  g_autoptr (KsReading) odd = ks_reading_parse ("pages=tXi pages=bbb =  ocrx \n");

  g_assert_cmpint (ks_reading_get_page (odd, 1), ==, KS_PAGE_TEXT);
  g_assert_cmpint (ks_reading_get_page (odd, 2), ==, KS_PAGE_PICTURE);
  g_assert_false (odd->ocr);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/reading/round-trip", test_round_trip);
  g_test_add_func ("/reading/copy", test_copy);
  g_test_add_func ("/reading/nonsense", test_nonsense);
  return g_test_run ();
}

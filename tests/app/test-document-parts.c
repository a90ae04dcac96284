/* test-document-parts.c - text of documents cut into text and pictures for the model. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-document-parts.h"

#include <string.h>

#define PDF "[page 1]\nOne\n\n[page 2]\n \n\n[page 3]\nThree\n[page 9]\nstill three\n"

/* "text|{2}|text": parts as one string, pictures by their index. */
static char *
describe (KsAttachmentKind kind, const char *text, const KsReading *reading, gboolean sees)
{
  g_autoptr (GArray) parts = ks_document_split (kind, text, reading, sees);
  GString *all = g_string_new (NULL);

  for (guint i = 0; i < parts->len; i++) {
    const KsDocumentPart *part = &g_array_index (parts, KsDocumentPart, i);

    if (i > 0)
      g_string_append_c (all, '|');
    if (part->is_picture)
      g_string_append_printf (all, "{%u}", part->index);
    else
      g_string_append_len (all, text + part->at, (gssize)part->n);
  }
  return g_string_free (all, FALSE);
}

static void
check (KsAttachmentKind kind, const char *text, const char *reading_words, gboolean sees,
       const char *expected)
{
  g_autoptr (KsReading) reading = ks_reading_parse (reading_words);
  g_autofree char *got = describe (kind, text, reading, sees);

  g_assert_cmpstr (got, ==, expected);
}

/* By itself a page without text becomes a picture, and one with text stays text; a line that only
 * looks like the marker of a page does not cut one. */
static void
test_default (void)
{
  g_autoptr (KsReading) reading = ks_reading_parse (NULL), plain = ks_reading_parse (NULL);
  g_autoptr (GArray) blank = ks_document_list_blank_pages (PDF);
  g_autofree char *got = NULL;

  g_assert_true (ks_document_choose_pages (reading, PDF));
  g_assert_cmpuint (blank->len, ==, 1);
  g_assert_cmpuint (g_array_index (blank, guint, 0), ==, 1);
  got = describe (KS_ATTACHMENT_PDF, PDF, reading, TRUE);
  g_assert_cmpstr (got, ==,
                   "[page 1]\nOne\n\n[page 2]\n|{1}|[page 3]\nThree\n[page 9]\nstill three\n");
  g_assert_false (ks_document_choose_pages (plain, "[page 1]\nOne\n"));
  g_assert_null (plain->pages);
}

/* Each page as text, picture, both or not at all; a blind model gets the text instead. */
static void
test_choices (void)
{
  const char *text = "[page 1]\nOne\n\n[page 2]\nTwo\n\n[page 3]\nThree\n\n[page 4]\nFour\n";

  check (KS_ATTACHMENT_PDF, text, "pages=tib-", TRUE,
         "[page 1]\nOne\n\n[page 2]\n|{1}|[page 3]\n|{2}|Three\n\n");
  check (KS_ATTACHMENT_PDF, text, "pages=tib-", FALSE,
         "[page 1]\nOne\n\n[page 2]\nTwo\n\n[page 3]\nThree\n\n");
  check (KS_ATTACHMENT_PDF, text, NULL, TRUE, text);
  check (KS_ATTACHMENT_PDF, text, "pages=----", TRUE, "");
}

/* Pictures of a document stand behind their line, once each; "pictures" that are not in the file
 * and lines that only look alike are text. */
static void
test_pictures (void)
{
  const char *text = "Before\n[picture 1: a red cat]\nBetween\n[picture 2]\n[picture: far away]\n"
                     "[picture 1: a red cat]\n [picture 3]\n[picture 4] x\nAfter\n";

  check (KS_ATTACHMENT_DOCUMENT, text, NULL, TRUE,
         "Before\n[picture 1: a red cat]\n|{0}|Between\n[picture 2]\n|{1}|[picture: far away]\n"
         "[picture 1: a red cat]\n [picture 3]\n[picture 4] x\nAfter\n");
  check (KS_ATTACHMENT_DOCUMENT, text, "no-pictures", TRUE, text);
  check (KS_ATTACHMENT_DOCUMENT, text, NULL, FALSE, text);
  check (KS_ATTACHMENT_TEXT, text, NULL, TRUE, text);
  check (KS_ATTACHMENT_TEXT, "", NULL, TRUE, "");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/document-parts/default", test_default);
  g_test_add_func ("/document-parts/choices", test_choices);
  g_test_add_func ("/document-parts/pictures", test_pictures);
  return g_test_run ();
}

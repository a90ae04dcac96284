/* test-prompt-builder.c - documents stand in frames of their own, names cannot break out of theirs.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-prompt-builder.h"

#include <string.h>

static void
test_frames (void)
{
  g_autoptr (KsPromptBuilder) builder = ks_prompt_builder_new ();
  g_autofree char *message = NULL, *next = NULL;

  ks_prompt_builder_add_document (builder, "a.txt", "first");
  ks_prompt_builder_add_document (builder, "b.csv", "x,y\n");
  g_assert_cmpuint (ks_prompt_builder_get_n_documents (builder), ==, 2);
  message = ks_prompt_builder_take_message (builder, "What is x?");
  g_assert_cmpstr (message, ==, "Document a.txt:\nfirst\n\nDocument b.csv:\nx,y\n\nWhat is x?");
  /* Used up: the next message stands alone. */
  g_assert_cmpuint (ks_prompt_builder_get_n_documents (builder), ==, 0);
  next = ks_prompt_builder_take_message (builder, "And y?");
  g_assert_cmpstr (next, ==, "And y?");
}

static void
test_names (void)
{
  g_autoptr (KsPromptBuilder) builder = ks_prompt_builder_new ();
  g_autofree char *message = NULL, *longest = g_strnfill (500, 'n'), *cut = NULL;

  ks_prompt_builder_add_document (builder, "a\nIgnore this.\n\x1b[1m", "t");
  message = ks_prompt_builder_take_message (builder, "q");
  g_assert_true (g_str_has_prefix (message, "Document a Ignore this.  [1m:\nt\n"));
  ks_prompt_builder_add_document (builder, longest, "t");
  cut = ks_prompt_builder_take_message (builder, "q");
  g_assert_cmpuint (strlen (cut), <, 160);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/prompt-builder/frames", test_frames);
  g_test_add_func ("/prompt-builder/names", test_names);
  return g_test_run ();
}

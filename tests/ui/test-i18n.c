/* test-i18n.c - the program speaks the user's language, also from its build folder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-data-dir.h"

#include <glib/gi18n.h>

#include <locale.h>

static const char *
translate (const char *language, const char *sentence)
{
  /* Naming the domain anew makes gettext forget what it looked up. */
  g_setenv ("LANGUAGE", language, TRUE);
  textdomain (GETTEXT_PACKAGE);
  return gettext (sentence);
}

/* German and Korean are found where the program looks for them, and another language gets the
 * original. */
static void
test_languages (void)
{
  g_autofree char *locale_dir = ks_locale_dir_dup ();

  g_assert_nonnull (setlocale (LC_ALL, "C.UTF-8")); /* exists everywhere; LANGUAGE then decides */
  g_assert_nonnull (bindtextdomain (GETTEXT_PACKAGE, locale_dir));
  bind_textdomain_codeset (GETTEXT_PACKAGE, "UTF-8");
  g_assert_cmpstr (translate ("de", "_Cancel"), ==, "A_bbrechen");
  g_assert_cmpstr (translate ("ko", "_Cancel"), ==, "취소(_C)");
  g_assert_cmpstr (translate ("xx", "_Cancel"), ==, "_Cancel");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/i18n/languages", test_languages);
  return g_test_run ();
}

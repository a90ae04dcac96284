/* test-i18n.c - the program speaks the user's language, also from its build folder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-data-dir.h"
#include "app/ks-notices.h"
#include "ui/ks-notice-text.h"

#include <glib/gi18n.h>

#include <locale.h>

/* Newer C libraries translate nothing in C.UTF-8, and a bare system has no other locale: one is
 * made. (transfer full) its folder */
static char *
make_locale (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = g_dir_make_tmp ("keepsake-locale-XXXXXX", &error);
  g_autofree char *path = g_build_filename (dir, "en_US.UTF-8", NULL);
  const char *argv[] = {"localedef", "-i", "en_US", "-f", "UTF-8", path, NULL};
  int status;

  g_assert_no_error (error);
  g_spawn_sync (NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, &status,
                &error);
  g_assert_no_error (error);
  g_spawn_check_wait_status (status, &error);
  g_assert_no_error (error);
  g_setenv ("LOCPATH", dir, TRUE);
  return dir;
}

static void
remove_locale (const char *dir)
{
  const char *argv[] = {"rm", "-rf", dir, NULL};

  g_assert_true (g_spawn_sync (NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                               NULL, NULL, NULL));
}

static const char *
translate (const char *language, const char *sentence)
{
  /* Naming the domain anew makes gettext forget what it looked up. */
  g_setenv ("LANGUAGE", language, TRUE);
  textdomain (GETTEXT_PACKAGE);
  return gettext (sentence);
}

/* What the application says of itself is said in the user's language too. */
static void
check_notices (void)
{
  static const char *const notices[] = {KS_NOTICE_PINS, KS_NOTICE_SCARCE, KS_NOTICE_UNREAD};

  for (gsize i = 0; i < G_N_ELEMENTS (notices); i++) {
    (void)translate ("de", "_Cancel");
    g_assert_cmpstr (ks_notice_text (notices[i]), !=, notices[i]);
    (void)translate ("ko", "_Cancel");
    g_assert_cmpstr (ks_notice_text (notices[i]), !=, notices[i]);
    (void)translate ("xx", "_Cancel");
    g_assert_cmpstr (ks_notice_text (notices[i]), ==, notices[i]);
  }
  g_assert_cmpstr (ks_notice_text ("of no list"), ==, "of no list");
}

/* German and Korean are found where the program looks for them, and another language gets the
 * original. */
static void
test_languages (void)
{
  g_autofree char *locale_dir = ks_locale_dir_dup (), *made = make_locale ();

  g_unsetenv ("LC_ALL");
  g_assert_nonnull (setlocale (LC_ALL, "en_US.UTF-8")); /* LANGUAGE then decides */
  g_assert_nonnull (bindtextdomain (GETTEXT_PACKAGE, locale_dir));
  bind_textdomain_codeset (GETTEXT_PACKAGE, "UTF-8");
  g_assert_cmpstr (translate ("de", "_Cancel"), ==, "A_bbrechen");
  g_assert_cmpstr (translate ("ko", "_Cancel"), ==, "취소(_C)");
  g_assert_cmpstr (translate ("xx", "_Cancel"), ==, "_Cancel");
  check_notices ();
  remove_locale (made);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/i18n/languages", test_languages);
  return g_test_run ();
}

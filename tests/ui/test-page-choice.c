/* test-page-choice.c - text, picture or both, for all pages and for each. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-test.h"
#include "ui/ks-page-choice.h"

#define N_PAGE 12
#define SCANNED 2 /* a page without text */

typedef struct {
  KsPageChoice *choice;
  GtkWindow *window;
  GString *log; /* of "chosen" */
} Fixture;

static void
chosen_cb (KsPageChoice *choice, guint first, guint last, int mode, GString *log)
{
  g_string_append_printf (log, "%u-%u %d;", first, last, mode);
}

static void
set_pages (KsPageChoice *choice, guint n_token)
{
  KsPageFact facts[N_PAGE];

  for (guint i = 0; i < N_PAGE; i++)
    facts[i] = (KsPageFact){i != SCANNED, i == 4 ? KS_PAGE_BOTH : KS_PAGE_TEXT, n_token};
  ks_page_choice_set_pages (choice, facts, N_PAGE);
}

static void
set_up (Fixture *f, gconstpointer data)
{
  f->log = g_string_new (NULL);
  f->choice = KS_PAGE_CHOICE (ks_page_choice_new ());
  set_pages (f->choice, 100);
  g_signal_connect (f->choice, "chosen", G_CALLBACK (chosen_cb), f->log);
  f->window = ui_test_present (GTK_WIDGET (f->choice), 320, 420);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  ui_test_close (f->window);
  g_string_free (f->log, TRUE);
}

static GtkWidget *
find_all (Fixture *f, const char *label)
{
  return ui_test_find_text (GTK_WIDGET (f->choice), label);
}

static gboolean
is_active (Fixture *f, const char *label)
{
  return gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (find_all (f, label)));
}

/* The choice of a page: the row that its title lies in. */
static GtkDropDown *
find_mode (Fixture *f, const char *page)
{
  GtkWidget *texts = gtk_widget_get_parent (ui_test_find_text (GTK_WIDGET (f->choice), page));

  return GTK_DROP_DOWN (ui_test_find (gtk_widget_get_parent (texts), GTK_TYPE_DROP_DOWN));
}

/* A page without text is a picture whatever was asked for, and can only be left out. */
static void
test_scanned (Fixture *f, gconstpointer data)
{
  GtkDropDown *mode = find_mode (f, "Page 3");

  g_assert_cmpint (ks_page_choice_get_mode (f->choice, SCANNED), ==, KS_PAGE_PICTURE);
  g_assert_cmpuint (gtk_drop_down_get_selected (mode), ==, 0);
  g_assert_cmpuint (g_list_model_get_n_items (gtk_drop_down_get_model (mode)), ==, 2);
  g_assert_nonnull (ui_test_find_text (GTK_WIDGET (f->choice), "no text in it"));
  g_assert_nonnull (
      ui_test_find_text (GTK_WIDGET (f->choice), "2 of 12 pages as pictures · 1,200 tokens"));
  gtk_test_accessible_assert_property (mode, GTK_ACCESSIBLE_PROPERTY_LABEL, "Page 3");
  gtk_drop_down_set_selected (mode, 1);
  g_assert_cmpstr (f->log->str, ==, "2-2 3;");
  g_assert_cmpint (ks_page_choice_get_mode (f->choice, SCANNED), ==, KS_PAGE_NONE);
  g_assert_nonnull (
      ui_test_find_text (GTK_WIDGET (f->choice), "1 of 12 pages as pictures · 1,100 tokens"));
}

/* What is chosen for one page is told once, for that page alone; its old cost no longer counts. */
static void
test_one (Fixture *f, gconstpointer data)
{
  g_assert_false (is_active (f, "Text")); /* page 5 differs */
  gtk_drop_down_set_selected (find_mode (f, "Page 5"), KS_PAGE_TEXT);
  g_assert_cmpstr (f->log->str, ==, "4-4 0;");
  g_assert_cmpint (ks_page_choice_get_mode (f->choice, 4), ==, KS_PAGE_TEXT);
  g_assert_true (is_active (f, "Text")); /* now all agree that can */
  g_assert_nonnull (
      ui_test_find_text (GTK_WIDGET (f->choice), "1 of 12 pages as pictures · 1,100 tokens"));
}

/* A choice for all holds for all that have one, and is told once. */
static void
test_all (Fixture *f, gconstpointer data)
{
  gtk_toggle_button_set_active (GTK_TOGGLE_BUTTON (find_all (f, "Both")), TRUE);
  g_assert_cmpstr (f->log->str, ==, "0-11 2;");
  for (guint i = 0; i < N_PAGE; i++)
    g_assert_cmpint (ks_page_choice_get_mode (f->choice, i), ==,
                     i == SCANNED ? KS_PAGE_PICTURE : KS_PAGE_BOTH);
  g_assert_true (is_active (f, "Both"));
  g_assert_cmpuint (gtk_drop_down_get_selected (find_mode (f, "Page 1")), ==, KS_PAGE_BOTH);
  gtk_toggle_button_set_active (GTK_TOGGLE_BUTTON (find_all (f, "Both")), FALSE);
  g_assert_true (is_active (f, "Both")); /* there is always one */
  g_assert_cmpstr (f->log->str, ==, "0-11 2;");
  set_pages (f->choice, 7); /* what the application says is no choice of the user */
  g_assert_cmpstr (f->log->str, ==, "0-11 2;");
  g_assert_false (is_active (f, "Both"));
}

/* Nothing can be chosen for a model that does not see, and the reason is there. */
static void
test_blind (Fixture *f, gconstpointer data)
{
  ks_page_choice_set_can_see (f->choice, FALSE);
  g_assert_false (gtk_widget_is_sensitive (find_all (f, "Picture")));
  g_assert_false (gtk_widget_is_sensitive (GTK_WIDGET (find_mode (f, "Page 1"))));
  g_assert_nonnull (
      ui_test_find_text (GTK_WIDGET (f->choice),
                         "This model cannot see pictures: it is given the text of the pages."));
}

/* Thousands of pages are rows only as they are seen; fewer pages leave none behind. */
static void
test_many (Fixture *f, gconstpointer data)
{
  guint n_page = 20000;
  g_autofree KsPageFact *facts = g_new0 (KsPageFact, n_page);

  ks_page_choice_set_pages (f->choice, facts, n_page);
  ui_test_settle (GTK_WIDGET (f->choice));
  g_assert_nonnull (
      ui_test_find_text (GTK_WIDGET (f->choice), "20,000 of 20,000 pages as pictures"));
  g_assert_null (ui_test_find_text (GTK_WIDGET (f->choice), "Page 2000"));
  g_assert_false (gtk_widget_is_sensitive (find_all (f, "Text"))); /* no page has a choice */
  ks_page_choice_set_pages (f->choice, facts, 1);
  ui_test_settle (GTK_WIDGET (f->choice));
  g_assert_null (ui_test_find_text (GTK_WIDGET (f->choice), "Page 2"));
}

/* Pictures for looking at. */
static void
test_looks (Fixture *f, gconstpointer data)
{
  ui_test_save (GTK_WIDGET (f->window), "page-choice-light");
  adw_style_manager_set_color_scheme (adw_style_manager_get_default (),
                                      ADW_COLOR_SCHEME_FORCE_DARK);
  ui_test_save (GTK_WIDGET (f->window), "page-choice-dark");
  adw_style_manager_set_color_scheme (adw_style_manager_get_default (), ADW_COLOR_SCHEME_DEFAULT);
  g_assert_cmpint (gtk_widget_get_width (GTK_WIDGET (f->choice)), <=, 320);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
#define ADD(name, function)                                                                        \
  g_test_add ("/page-choice/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("scanned", test_scanned);
  ADD ("one", test_one);
  ADD ("all", test_all);
  ADD ("blind", test_blind);
  ADD ("many", test_many);
  ADD ("looks", test_looks);
  return g_test_run ();
}

/* test-memory-panel.c - the side panel's numbers, turns and restraint. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-memory.h"
#include "tests/ui/ui-test.h"
#include "ui/ks-memory-panel.h"

static GtkWidget *
find_inscription (GtkWidget *root, const char *text)
{
  GtkWidget *found = NULL;

  if (GTK_IS_INSCRIPTION (root) &&
      g_strcmp0 (gtk_inscription_get_text (GTK_INSCRIPTION (root)), text) == 0)
    return root;
  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_inscription (child, text);
  return found;
}

static guint
count_visible (GtkWidget *root, GType type)
{
  guint n = G_TYPE_CHECK_INSTANCE_TYPE (root, type) && gtk_widget_get_mapped (root) ? 1 : 0;

  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    n += count_visible (child, type);
  return n;
}

static gboolean
shows_turns (gpointer panel)
{
  return count_visible (panel, GTK_TYPE_LEVEL_BAR) > 0;
}

/* Numbers, heat map and turns say what the view says; a turn is named by its question. */
static void
test_panel (void)
{
  static const char *const labels[] = {"Hello", "", "How many lines…", NULL};
  g_autoptr (KsMemoryView) view = fake_memory_new (30, 3, 4);
  GtkWidget *panel = ks_memory_panel_new ();
  GtkWindow *window = ui_test_present (panel, 300, 700);
  const char *words = "Turn 1, “Hello”: 25 % kept"; /* the macro below would print the literal */
  GtkWidget *bar;

  view->copy_bytes = 33 * FAKE_MIB;
  g_assert_true (
      gtk_widget_get_mapped (ui_test_find_text (panel, "The model has read nothing yet.")));
  ks_memory_panel_set_turn_labels (KS_MEMORY_PANEL (panel), labels);
  ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), view);
  ui_test_wait (shows_turns, panel);
  g_assert_nonnull (find_inscription (panel, "11.8 of 12\u00a0MiB"));
  g_assert_nonnull (find_inscription (panel, "71,204"));
  g_assert_nonnull (
      find_inscription (panel, "Layer 29 keeps most: 274 entries a head; layer 0 least: 13."));
  g_assert_cmpuint (count_visible (panel, GTK_TYPE_LEVEL_BAR), ==, 4);
  g_assert_nonnull (ui_test_find_text (panel, "Turn 3, “How many lines…”"));
  g_assert_nonnull (ui_test_find_text (panel, "Turn 2"));
  g_assert_nonnull (find_inscription (panel, "75 % kept"));
  g_assert_nonnull (ui_test_find_text (panel, "Weights, repacked copy"));
  g_assert_nonnull (find_inscription (panel, "33\u00a0MiB"));
  bar = ui_test_find (panel, GTK_TYPE_LEVEL_BAR);
  g_assert_cmpfloat_with_epsilon (gtk_level_bar_get_value (GTK_LEVEL_BAR (bar)), 0.25, 0.01);
  gtk_test_accessible_assert_property (bar, GTK_ACCESSIBLE_PROPERTY_LABEL, words);
  ui_test_save (panel, "panel-light");
  adw_style_manager_set_color_scheme (adw_style_manager_get_default (),
                                      ADW_COLOR_SCHEME_FORCE_DARK);
  ui_test_save (panel, "panel-dark");
  adw_style_manager_set_color_scheme (adw_style_manager_get_default (), ADW_COLOR_SCHEME_DEFAULT);
  ui_test_close (window);
}

static gboolean
shows_pins (gpointer panel)
{
  return find_inscription (panel, "4,321") != NULL;
}

/* What is pinned is counted, has a mark, and is said. */
static void
test_pins (void)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (2, 2, 3);
  GtkWidget *panel = ks_memory_panel_new ();
  GtkWindow *window = ui_test_present (panel, 300, 900);
  const char *words = "Turn 1: 33 % kept, stays in memory"; /* as above */
  GtkWidget *bar = NULL;
  guint n_mark = 0;

  fake_memory_add_pictures (view, 2);
  ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), view);
  ui_test_wait (shows_turns, panel);
  n_mark = count_visible (panel, GTK_TYPE_IMAGE);
  view->pinned_turns = g_new0 (gboolean, 3);
  view->pinned_turns[0] = TRUE;
  view->pictures[1].pinned = TRUE;
  view->n_pinned = 4321;
  ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), view);
  ui_test_wait (shows_pins, panel);
  g_assert_cmpuint (count_visible (panel, GTK_TYPE_IMAGE), ==, n_mark + 2);
  bar = ui_test_find_text (panel, "Turn 1");
  bar = ui_test_find (gtk_widget_get_parent (gtk_widget_get_parent (bar)), GTK_TYPE_LEVEL_BAR);
  gtk_test_accessible_assert_property (bar, GTK_ACCESSIBLE_PROPERTY_LABEL, words);
  ui_test_save (panel, "panel-pinned");
  ui_test_close (window);
}

static void
keep_cb (GtkWidget *panel, gboolean keep, int *asked)
{
  *asked = keep;
}

/* The switch tells what the user wants, not what the program shows; its words say when memory ends:
 * 1,000 tokens fit, 400 are read, 100 a turn. */
static void
test_keep (void)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (2, 2, 4);
  GtkWidget *panel = ks_memory_panel_new ();
  GtkWindow *window = ui_test_present (panel, 300, 700);
  GtkWidget *keep = ui_test_find (panel, GTK_TYPE_SWITCH);
  int asked = -1;

  view->n_keep = 1000 * 4;
  g_signal_connect (panel, "keep-everything", G_CALLBACK (keep_cb), &asked);
  ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), view);
  ui_test_wait (shows_turns, panel);
  g_assert_nonnull (
      ui_test_find_text (panel, "Off: beyond 1,000 tokens what matters least is let go."));
  ks_memory_panel_set_keep (KS_MEMORY_PANEL (panel), TRUE, TRUE);
  g_assert_cmpint (asked, ==, -1);
  g_assert_nonnull (ui_test_find_text (panel,
                                       "Room for about 600 more tokens, some 6 turns like those so "
                                       "far; then nothing more can be sent."));
  gtk_switch_set_active (GTK_SWITCH (keep), FALSE);
  g_assert_cmpint (asked, ==, FALSE);
  gtk_switch_set_active (GTK_SWITCH (keep), TRUE);
  g_assert_cmpint (asked, ==, TRUE);
  ks_memory_panel_set_keep (KS_MEMORY_PANEL (panel), TRUE, FALSE);
  g_assert_false (gtk_widget_get_sensitive (keep));
  ui_test_save (panel, "panel-keep");
  ui_test_close (window);
}

/* A thousand turns are 12 rows for the newest and 8 groups, whose shares are averages; none are
 * none; fewer than before leave no row behind. */
static void
test_many_turns (void)
{
  g_autoptr (KsMemoryView) many = fake_memory_new (30, 3, 1000);
  g_autoptr (KsMemoryView) few = fake_memory_new (30, 3, 2);
  g_autoptr (KsMemoryView) none = fake_memory_new (0, 0, 0);
  GtkWidget *panel = ks_memory_panel_new ();
  GtkWindow *window;

  ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), many);
  window = ui_test_present (panel, 300, 700);
  g_assert_cmpuint (count_visible (panel, GTK_TYPE_LEVEL_BAR), ==, 20);
  g_assert_nonnull (ui_test_find_text (panel, "Turns 1–123"));
  g_assert_nonnull (find_inscription (panel, "6 % kept"));
  g_assert_nonnull (ui_test_find_text (panel, "Turn 1000"));
  gtk_widget_set_visible (panel, FALSE);
  ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), few);
  gtk_widget_set_visible (panel, TRUE);
  ui_test_settle (panel);
  g_assert_cmpuint (count_visible (panel, GTK_TYPE_LEVEL_BAR), ==, 2);
  gtk_widget_set_visible (panel, FALSE);
  ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), none);
  gtk_widget_set_visible (panel, TRUE);
  ui_test_settle (panel);
  g_assert_cmpuint (count_visible (panel, GTK_TYPE_LEVEL_BAR), ==, 0);
  ui_test_close (window);
}

/* A hidden panel does no work: what it shows stays as it was until it is seen again. */
static void
test_hidden (void)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (30, 3, 4);
  GtkWidget *panel = ks_memory_panel_new ();
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  GtkWindow *window;

  gtk_box_append (GTK_BOX (box), panel);
  gtk_widget_set_visible (panel, FALSE);
  window = ui_test_present (box, 300, 700);
  ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), view);
  for (int i = 0; i < 20; i++)
    ui_test_settle (box);
  g_assert_null (find_inscription (panel, "71,204"));
  gtk_widget_set_visible (panel, TRUE);
  ui_test_settle (box);
  g_assert_nonnull (find_inscription (panel, "71,204"));
  ui_test_close (window);
}

/* Streaming numbers, of any length, never ask for a new layout. */
static void
test_no_resize (void)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (30, 3, 4);
  GtkWidget *panel = ks_memory_panel_new ();
  GtkWindow *window;
  int minimum, natural, minimum_later, natural_later;

  ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), view);
  window = ui_test_present (panel, 300, 700);
  gtk_widget_measure (panel, GTK_ORIENTATION_HORIZONTAL, -1, &minimum, &natural, NULL, NULL);
  for (int i = 0; i < 4; i++) {
    view->n_evicted = (guint64)1 << (15 * i);
    view->weight_bytes = view->copy_bytes = (guint64)1 << (12 * i);
    view->by_turn[1] = (guint64)(i * 1000);
    view->by_stream[5] = (guint32)1 << (7 * i);
    gtk_widget_set_visible (panel, FALSE);
    ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), view);
    gtk_widget_set_visible (panel, TRUE);
    ui_test_settle (panel);
    gtk_widget_measure (panel, GTK_ORIENTATION_HORIZONTAL, -1, &minimum_later, &natural_later, NULL,
                        NULL);
    g_assert_cmpint (minimum_later, ==, minimum);
    g_assert_cmpint (natural_later, ==, natural);
  }
  ui_test_close (window);
}

static void
opened_cb (KsMemoryPanel *panel, const KsMemoryPicture *picture, guint *number)
{
  *number = picture->number;
}

/* Every picture has a row of its own with its share, pages are told apart, and a row opens its
 * picture; many share a row of the earlier ones, which opens nothing. */
static void
test_pictures (void)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (30, 3, 1), many = fake_memory_new (30, 3, 1);
  GtkWidget *panel = ks_memory_panel_new ();
  GtkWindow *window = NULL;
  GtkWidget *row = NULL;
  const char *words = "photo-2.jpg: 50 % kept"; /* the macro below would print the literal */
  guint number = 0;

  fake_memory_add_pictures (view, 4);
  fake_memory_add_pictures (many, 100);
  g_signal_connect (panel, "open-picture", G_CALLBACK (opened_cb), &number);
  window = ui_test_present (panel, 300, 900);
  g_assert_false (gtk_widget_get_mapped (ui_test_find_text (panel, "Kept by Picture")));
  ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), view);
  ui_test_wait (shows_turns, panel);
  g_assert_true (gtk_widget_get_mapped (ui_test_find_text (panel, "Kept by Picture")));
  row = ui_test_find_text (panel, "photo-2.jpg");
  g_assert_true (gtk_widget_get_mapped (row));
  g_assert_nonnull (ui_test_find_text (panel, "report.pdf, page 3"));
  g_assert_nonnull (find_inscription (panel, "50 % kept"));
  row = gtk_widget_get_ancestor (row, GTK_TYPE_BUTTON);
  gtk_test_accessible_assert_property (row, GTK_ACCESSIBLE_PROPERTY_LABEL, words);
  g_signal_emit_by_name (row, "clicked");
  g_assert_cmpuint (number, ==, 2);
  ui_test_save (panel, "panel-pictures");

  gtk_widget_set_visible (panel, FALSE);
  ks_memory_panel_set_view (KS_MEMORY_PANEL (panel), many);
  gtk_widget_set_visible (panel, TRUE);
  ui_test_settle (panel);
  row = gtk_widget_get_ancestor (ui_test_find_text (panel, "60 earlier pictures"), GTK_TYPE_BUTTON);
  g_assert_false (gtk_widget_is_sensitive (row));
  g_assert_nonnull (find_inscription (panel, "30 % kept")); /* of 1 % to 60 % */
  row = gtk_widget_get_ancestor (ui_test_find_text (panel, "photo-61.jpg"), GTK_TYPE_BUTTON);
  g_signal_emit_by_name (row, "clicked");
  g_assert_cmpuint (number, ==, 61);
  ui_test_close (window);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add_func ("/memory-panel/panel", test_panel);
  g_test_add_func ("/memory-panel/pins", test_pins);
  g_test_add_func ("/memory-panel/keep", test_keep);
  g_test_add_func ("/memory-panel/many-turns", test_many_turns);
  g_test_add_func ("/memory-panel/pictures", test_pictures);
  g_test_add_func ("/memory-panel/hidden", test_hidden);
  g_test_add_func ("/memory-panel/no-resize", test_no_resize);
  return g_test_run ();
}

/* test-budget-gauge.c - the gauge shows the numbers, and its slider sends the target. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-memory.h"
#include "tests/ui/ui-test.h"
#include "ui/ks-budget-bar.h"
#include "ui/ks-budget-gauge.h"

typedef struct {
  GtkWidget *gauge;
  GtkWindow *window;
  GtkAdjustment *adjustment;
  guint n_sent;
  guint64 sent;
  gint64 sent_us, shortest_us;
} Fixture;

static void
target_changed_cb (KsBudgetGauge *gauge, guint64 bytes, Fixture *fixture)
{
  gint64 now_us = g_get_monotonic_time ();

  if (fixture->n_sent > 0)
    fixture->shortest_us = MIN (fixture->shortest_us, now_us - fixture->sent_us);
  fixture->n_sent++;
  fixture->sent = bytes;
  fixture->sent_us = now_us;
}

static void
fixture_set_up (Fixture *fixture, gconstpointer width)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);

  fixture->gauge = ks_budget_gauge_new ();
  fixture->shortest_us = G_MAXINT64;
  gtk_box_append (GTK_BOX (box), fixture->gauge);
  fixture->window = ui_test_present (box, GPOINTER_TO_INT (width), 100);
  fixture->adjustment =
      gtk_range_get_adjustment (GTK_RANGE (ui_test_find (fixture->gauge, GTK_TYPE_SCALE)));
  ks_budget_gauge_set_range (KS_BUDGET_GAUGE (fixture->gauge), 112 * FAKE_MIB, 4096 * FAKE_MIB);
  ks_budget_gauge_set_target (KS_BUDGET_GAUGE (fixture->gauge), 160 * FAKE_MIB);
  g_signal_connect (fixture->gauge, "target-changed", G_CALLBACK (target_changed_cb), fixture);
}

static void
fixture_tear_down (Fixture *fixture, gconstpointer width)
{
  ui_test_close (fixture->window);
}

static const char *
shown_numbers (Fixture *fixture)
{
  return gtk_inscription_get_text (
      GTK_INSCRIPTION (ui_test_find (fixture->gauge, GTK_TYPE_INSCRIPTION)));
}

static gboolean
shows_used (gpointer data)
{
  return g_strcmp0 (shown_numbers (data), "119 of 160\u00a0MiB") == 0;
}

static gboolean
was_sent (gpointer data)
{
  return ((Fixture *)data)->n_sent > 0;
}

/* Used bytes are weights + pages in use + scratch; the bar is a meter whose values say the same as
 * the numbers; the button's name does as well, for toolkits without a Value interface. */
static void
test_numbers (Fixture *fixture, gconstpointer width)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (30, 3, 4);
  GtkWidget *bar = ui_test_find (fixture->gauge, KS_TYPE_BUDGET_BAR);
  GtkWidget *button = ui_test_find (fixture->gauge, GTK_TYPE_MENU_BUTTON);

  view->kv_used_bytes = 12 * FAKE_MIB;
  g_assert_cmpstr (shown_numbers (fixture), ==, "No model");
  ks_budget_gauge_set_view (KS_BUDGET_GAUGE (fixture->gauge), view);
  ui_test_wait (shows_used, fixture);
  gtk_test_accessible_assert_role (bar, GTK_ACCESSIBLE_ROLE_METER);
  gtk_test_accessible_assert_property (bar, GTK_ACCESSIBLE_PROPERTY_LABEL, "Memory in use");
  gtk_test_accessible_assert_property (bar, GTK_ACCESSIBLE_PROPERTY_VALUE_MIN, 0.0);
  gtk_test_accessible_assert_property (bar, GTK_ACCESSIBLE_PROPERTY_VALUE_MAX,
                                       (double)(160 * FAKE_MIB));
  gtk_test_accessible_assert_property (bar, GTK_ACCESSIBLE_PROPERTY_VALUE_NOW,
                                       (double)(119 * FAKE_MIB));
  gtk_test_accessible_assert_property (bar, GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT,
                                       "119 of 160\u00a0MiB");
  gtk_test_accessible_assert_property (button, GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "Memory: 119 of 160\u00a0MiB");
  ui_test_save (fixture->gauge, "gauge-light");
}

/* Parts lie end to end in the order of the legend and are as wide as their bytes; what is over the
 * target begins at the target. */
static void
test_parts (void)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (30, 3, 4);
  KsBudgetBar *bar = KS_BUDGET_BAR (g_object_ref_sink (ks_budget_bar_new ()));
  const guint64 expected[] = {98 * FAKE_MIB, 20 * FAKE_MIB, 8 * FAKE_MIB,
                              4 * FAKE_MIB,  9 * FAKE_MIB,  5 * FAKE_MIB};
  double begin, share, end = 0;

  G_STATIC_ASSERT (G_N_ELEMENTS (expected) == KS_BUDGET_OVER);
  view->kv_used_bytes = 8 * FAKE_MIB;
  view->copy_bytes = 20 * FAKE_MIB;
  view->eyes_bytes = 5 * FAKE_MIB;
  ks_budget_bar_set_usage (bar, view, 160 * FAKE_MIB);
  for (int part = 0; part < KS_BUDGET_OVER; part++) {
    ks_budget_bar_get_part (bar, (KsBudgetPart)part, &begin, &share);
    g_assert_cmpfloat_with_epsilon (begin, end, 1e-9);
    g_assert_cmpfloat_with_epsilon (share, (double)expected[part] / (160.0 * FAKE_MIB), 1e-9);
    end = begin + share;
  }
  ks_budget_bar_get_part (bar, KS_BUDGET_OVER, &begin, &share);
  g_assert_cmpfloat (share, ==, 0);
  ks_budget_bar_set_usage (bar, view, 100 * FAKE_MIB);
  ks_budget_bar_get_part (bar, KS_BUDGET_OVER, &begin, &share);
  g_assert_cmpfloat_with_epsilon (begin, 100.0 / 144, 1e-9);
  g_assert_cmpfloat_with_epsilon (share, 40.0 / 144, 1e-9);
  ks_budget_bar_set_usage (bar, NULL, 0);
  ks_budget_bar_get_part (bar, KS_BUDGET_WEIGHTS, &begin, &share);
  g_assert_cmpfloat (share, ==, 0);
  g_object_unref (bar);
}

static guint
count_resizes (Fixture *fixture, gboolean *out_again)
{
  int minimum, natural;

  gtk_widget_measure (fixture->gauge, GTK_ORIENTATION_HORIZONTAL, -1, &minimum, &natural, NULL,
                      NULL);
  return (guint)(minimum * 10000 + natural);
}

/* Numbers of any length leave the gauge's size alone, and an update asks for no new layout. */
static void
test_no_resize (Fixture *fixture, gconstpointer width)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (30, 3, 4);
  guint size = count_resizes (fixture, NULL);
  GtkWidget *numbers = ui_test_find (fixture->gauge, GTK_TYPE_INSCRIPTION);

  ui_test_settle (fixture->gauge);
  for (int i = 0; i < 5; i++) {
    view->weight_bytes = (guint64)1 << (20 + 8 * i);
    view->n_evicted = (guint64)1 << (10 * i);
    ks_budget_gauge_set_view (KS_BUDGET_GAUGE (fixture->gauge), view);
    ks_budget_gauge_set_target (KS_BUDGET_GAUGE (fixture->gauge), view->weight_bytes * 3);
    g_assert_cmpuint (count_resizes (fixture, NULL), ==, size);
    ui_test_settle (numbers);
  }
}

/* Moved all the time, the slider sends at most every 150 ms; the last value always arrives, and
 * what the program sets is not sent back. */
static void
test_slider (Fixture *fixture, gconstpointer width)
{
  gint64 end_us = g_get_monotonic_time () + G_USEC_PER_SEC;
  guint tick = 0;

  while (g_get_monotonic_time () < end_us) {
    gtk_adjustment_set_value (fixture->adjustment, 100 + tick++ % 100);
    ui_test_settle (fixture->gauge);
  }
  g_assert_cmpuint (fixture->n_sent, >=, 2);
  g_assert_cmpuint (fixture->n_sent, <=, 7);
  g_assert_cmpint (fixture->shortest_us, >=, 140 * 1000);
  fixture->n_sent = 0;
  gtk_adjustment_set_value (fixture->adjustment, gtk_adjustment_get_upper (fixture->adjustment));
  ui_test_wait (was_sent, fixture);
  if (fixture->sent != 4096 * FAKE_MIB) { /* that was the last value of the loop */
    fixture->n_sent = 0;
    ui_test_wait (was_sent, fixture);
  }
  g_assert_cmpuint (fixture->sent, ==, 4096 * FAKE_MIB);
  gtk_adjustment_set_value (fixture->adjustment, 0);
  fixture->n_sent = 0;
  ui_test_wait (was_sent, fixture);
  g_assert_cmpuint (fixture->sent, ==, 112 * FAKE_MIB);
}

static gboolean
is_elapsed (gpointer end_us)
{
  return g_get_monotonic_time () >= *(gint64 *)end_us;
}

/* A target from the program moves the slider and sends nothing; while the user moves it, the
 * program does not pull it away, and afterwards the target in force is shown. */
static void
test_program_sets (Fixture *fixture, gconstpointer width)
{
  KsBudgetGauge *gauge = KS_BUDGET_GAUGE (fixture->gauge);
  double before = gtk_adjustment_get_value (fixture->adjustment);
  gint64 end_us;

  ks_budget_gauge_set_target (gauge, 320 * FAKE_MIB);
  g_assert_cmpfloat (gtk_adjustment_get_value (fixture->adjustment), >, before);
  gtk_adjustment_set_value (fixture->adjustment, 300);
  ks_budget_gauge_set_target (gauge, 112 * FAKE_MIB);
  g_assert_cmpfloat (gtk_adjustment_get_value (fixture->adjustment), ==, 300);
  ui_test_wait (was_sent, fixture);
  ks_budget_gauge_set_target (gauge, 200 * FAKE_MIB); /* what the program made of it */
  end_us = g_get_monotonic_time () + 700 * 1000;
  ui_test_wait (is_elapsed, &end_us);
  g_assert_cmpuint (fixture->n_sent, ==, 1);
  ks_budget_gauge_set_range (gauge, 100 * FAKE_MIB, 400 * FAKE_MIB);
  g_assert_cmpfloat_with_epsilon (gtk_adjustment_get_value (fixture->adjustment), 200, 1e-6);
}

/* Wide: the slider is beside the bar; narrow: only in the popover.  Both have a name. */
static void
test_narrow (Fixture *fixture, gconstpointer width)
{
  GtkWidget *scale = ui_test_find (fixture->gauge, GTK_TYPE_SCALE);

  while (scale != NULL && gtk_widget_get_parent (scale) != fixture->gauge)
    scale = gtk_widget_get_next_sibling (scale);
  for (GtkWidget *child = gtk_widget_get_first_child (fixture->gauge); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    if (GTK_IS_SCALE (child))
      scale = child;
  g_assert_nonnull (scale);
  gtk_test_accessible_assert_property (scale, GTK_ACCESSIBLE_PROPERTY_LABEL, "Memory target");
  gtk_test_accessible_assert_property (scale, GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT, "160\u00a0MiB");
  g_assert_cmpint (gtk_widget_get_mapped (scale), ==, GPOINTER_TO_INT (width) > 300);
  gtk_menu_button_popup (GTK_MENU_BUTTON (ui_test_find (fixture->gauge, GTK_TYPE_MENU_BUTTON)));
  ui_test_settle (fixture->gauge);
  g_assert_nonnull (ui_test_find_text (fixture->gauge, "Target: 160\u00a0MiB"));
}

static gboolean
is_popover_mapped (gpointer popover)
{
  return gtk_widget_get_mapped (popover);
}

/* The popover has words for every part; a model that goes takes its numbers along. */
static void
test_popover (Fixture *fixture, gconstpointer width)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (30, 3, 4);
  GtkMenuButton *button = GTK_MENU_BUTTON (ui_test_find (fixture->gauge, GTK_TYPE_MENU_BUTTON));
  GtkWidget *popover = GTK_WIDGET (gtk_menu_button_get_popover (button));

  ks_budget_gauge_set_view (KS_BUDGET_GAUGE (fixture->gauge), view);
  gtk_menu_button_popup (button);
  ui_test_wait (is_popover_mapped, popover);
  ui_test_settle (fixture->gauge);
  g_assert_nonnull (ui_test_find_text (popover, "98\u00a0MiB"));
  g_assert_nonnull (ui_test_find_text (popover, "11.8\u00a0MiB"));
  g_assert_nonnull (ui_test_find_text (popover, "71,204 entries let go"));
  ui_test_save (popover, "gauge-popover");
  ks_budget_gauge_set_view (KS_BUDGET_GAUGE (fixture->gauge), NULL);
  gtk_menu_button_popdown (button);
  ui_test_settle (fixture->gauge);
}

int
main (int argc, char **argv)
{
#define ADD(name, width, func)                                                                     \
  g_test_add (name, Fixture, GINT_TO_POINTER (width), fixture_set_up, func, fixture_tear_down)

  ui_test_init (&argc, &argv);
  ADD ("/budget-gauge/numbers", 420, test_numbers);
  g_test_add_func ("/budget-gauge/parts", test_parts);
  ADD ("/budget-gauge/no-resize", 420, test_no_resize);
  ADD ("/budget-gauge/slider", 420, test_slider);
  ADD ("/budget-gauge/program-sets", 420, test_program_sets);
  ADD ("/budget-gauge/wide", 420, test_narrow);
  ADD ("/budget-gauge/narrow", 160, test_narrow);
  ADD ("/budget-gauge/popover", 420, test_popover);
  return g_test_run ();
}

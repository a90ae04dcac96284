/* test-transcript.c - the list of messages: where it stands while it grows, how many widgets it
 * keeps, what a flush of a streaming answer costs. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-test.h"
#include "ui/ks-message-row.h"
#include "ui/ks-transcript.h"

#include <stdlib.h>
#include <time.h>

#define N_FLUSH 60

typedef struct {
  GListStore *messages;
  KsTranscript *transcript;
  GtkWindow *window;
} Fixture;

static KsMessage *
add (Fixture *fixture, KsMessageRole role, const char *text)
{
  guint n = g_list_model_get_n_items (G_LIST_MODEL (fixture->messages));
  KsMessage *message = ks_message_new (n + 1, n, role, text, 0);

  g_list_store_append (fixture->messages, message);
  g_object_unref (message);
  return message;
}

static void
set_up (Fixture *fixture, guint n_turn)
{
  fixture->messages = g_list_store_new (KS_TYPE_MESSAGE);
  for (guint i = 0; i < n_turn; i++) {
    add (fixture, KS_MESSAGE_USER, "An ordinary question of a few words?");
    add (fixture, KS_MESSAGE_ASSISTANT,
         "An answer with **some** words, over a line or two so that it wraps in a window of "
         "ordinary "
         "width.\n\n- a point\n- another point\n\nA last paragraph.");
  }
  fixture->transcript = KS_TRANSCRIPT (ks_transcript_new ());
  ks_transcript_set_can_change (fixture->transcript, TRUE);
  ks_transcript_set_model (fixture->transcript, G_LIST_MODEL (fixture->messages));
  fixture->window = ui_test_present (GTK_WIDGET (fixture->transcript), 700, 500);
}

static void
tear_down (Fixture *fixture)
{
  ui_test_close (fixture->window);
  g_object_unref (fixture->messages);
}

static gboolean
is_at_end (gpointer transcript)
{
  return ks_transcript_is_at_end (transcript);
}

static void
settle (Fixture *fixture)
{
  ui_test_settle (GTK_WIDGET (fixture->transcript));
  ui_test_settle (GTK_WIDGET (fixture->transcript));
}

static guint
count_rows (GtkWidget *widget)
{
  guint n =
      KS_IS_MESSAGE_ROW (widget) && ks_message_row_get_message (KS_MESSAGE_ROW (widget)) ? 1 : 0;

  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    n += count_rows (child);
  return n;
}

static GtkWidget *
find_row (GtkWidget *widget, KsMessage *message)
{
  GtkWidget *found = NULL;

  if (KS_IS_MESSAGE_ROW (widget))
    return ks_message_row_get_message (KS_MESSAGE_ROW (widget)) == message ? widget : NULL;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_row (child, message);
  return found;
}

static GtkWidget *
find_newest (Fixture *fixture)
{
  return ui_test_find (GTK_WIDGET (fixture->transcript), GTK_TYPE_REVEALER);
}

/* A session opens at its end; the end stays in view while an answer streams. */
static void
test_follows (void)
{
  Fixture fixture;
  KsMessage *answer = NULL;

  set_up (&fixture, 40);
  ui_test_wait (is_at_end, fixture.transcript);
  answer = add (&fixture, KS_MESSAGE_ASSISTANT, "");
  ks_message_set_state (answer, KS_MESSAGE_STREAMING);
  for (guint i = 0; i < 40; i++) {
    ks_message_append_text (answer, i % 4 == 3 ? "word.\n\nNext " : "some words of an answer ");
    settle (&fixture);
    g_assert_true (ks_transcript_is_at_end (fixture.transcript));
  }
  g_assert_false (gtk_widget_get_visible (find_newest (&fixture)));
  tear_down (&fixture);
}

/* The button has a line of its own below the messages. */
static void
assert_covers_nothing (Fixture *fixture)
{
  GtkWidget *transcript = GTK_WIDGET (fixture->transcript);
  graphene_rect_t list, button;

  g_assert_true (gtk_widget_get_mapped (find_newest (fixture)));
  g_assert_true (gtk_widget_compute_bounds (ui_test_find (transcript, GTK_TYPE_SCROLLED_WINDOW),
                                            transcript, &list));
  g_assert_true (gtk_widget_compute_bounds (find_newest (fixture), transcript, &button));
  g_assert_cmpfloat (button.size.height, >, 0);
  g_assert_false (graphene_rect_intersection (&list, &button, NULL));
}

/* Who reads further up is left there, and a button leads back to the end. */
static void
test_stays (void)
{
  Fixture fixture;
  KsMessage *answer = NULL;
  GtkAdjustment *adjustment = NULL;
  double value = 0;

  set_up (&fixture, 40);
  ui_test_wait (is_at_end, fixture.transcript);
  adjustment = gtk_scrolled_window_get_vadjustment (GTK_SCROLLED_WINDOW (
      ui_test_find (GTK_WIDGET (fixture.transcript), GTK_TYPE_SCROLLED_WINDOW)));
  answer = add (&fixture, KS_MESSAGE_ASSISTANT, "");
  ks_message_set_state (answer, KS_MESSAGE_STREAMING);
  settle (&fixture);
  gtk_adjustment_set_value (adjustment, gtk_adjustment_get_value (adjustment) - 400);
  settle (&fixture);
  value = gtk_adjustment_get_value (adjustment);
  for (guint i = 0; i < 20; i++) {
    ks_message_append_text (answer, "A sentence that was not there.\n\n");
    settle (&fixture);
  }
  g_assert_cmpfloat (ABS (gtk_adjustment_get_value (adjustment) - value), <, 60);
  g_assert_false (ks_transcript_is_at_end (fixture.transcript));
  assert_covers_nothing (&fixture);
  gtk_test_accessible_assert_property (
      gtk_revealer_get_child (GTK_REVEALER (find_newest (&fixture))), GTK_ACCESSIBLE_PROPERTY_LABEL,
      "Scroll to the Newest Message");
  g_signal_emit_by_name (gtk_revealer_get_child (GTK_REVEALER (find_newest (&fixture))), "clicked");
  ui_test_wait (is_at_end, fixture.transcript);
  settle (&fixture);
  g_assert_false (gtk_widget_get_visible (find_newest (&fixture)));
  /* A few lines from the end nobody needs the button. */
  gtk_adjustment_set_value (adjustment, gtk_adjustment_get_value (adjustment) - 40);
  settle (&fixture);
  g_assert_false (ks_transcript_is_at_end (fixture.transcript));
  g_assert_false (gtk_widget_get_visible (find_newest (&fixture)));
  /* One's own message is gone to from anywhere. */
  ks_transcript_scroll_to (fixture.transcript, 0);
  settle (&fixture);
  g_assert_false (ks_transcript_is_at_end (fixture.transcript));
  add (&fixture, KS_MESSAGE_USER, "My next question");
  ui_test_wait (is_at_end, fixture.transcript);
  tear_down (&fixture);
}

/* A jump brings the message into view. */
static void
test_jump (void)
{
  Fixture fixture;
  KsMessage *message = NULL;
  graphene_rect_t bounds;

  set_up (&fixture, 300);
  ui_test_wait (is_at_end, fixture.transcript);
  ks_transcript_scroll_to (fixture.transcript, 100);
  settle (&fixture);
  settle (&fixture);
  message = g_list_model_get_item (G_LIST_MODEL (fixture.messages), 100);
  g_assert_nonnull (find_row (GTK_WIDGET (fixture.transcript), message));
  g_assert_true (gtk_widget_compute_bounds (find_row (GTK_WIDGET (fixture.transcript), message),
                                            GTK_WIDGET (fixture.transcript), &bounds));
  g_assert_cmpfloat (bounds.origin.y, >=, -1);
  g_assert_cmpfloat (bounds.origin.y, <, 500);
  g_object_unref (message);
  tear_down (&fixture);
}

/* Only the last message can be answered again, also after another one came. */
static void
test_last (void)
{
  Fixture fixture;
  KsMessage *first = NULL, *second = NULL;

  set_up (&fixture, 0);
  first = add (&fixture, KS_MESSAGE_ASSISTANT, "First");
  settle (&fixture);
  g_assert_true (
      gtk_widget_has_css_class (find_row (GTK_WIDGET (fixture.transcript), first), "last"));
  second = add (&fixture, KS_MESSAGE_ASSISTANT, "Second");
  settle (&fixture);
  g_assert_false (
      gtk_widget_has_css_class (find_row (GTK_WIDGET (fixture.transcript), first), "last"));
  g_assert_true (
      gtk_widget_has_css_class (find_row (GTK_WIDGET (fixture.transcript), second), "last"));
  tear_down (&fixture);
}

static void
emitted_cb (KsTranscript *transcript, GObject *a, gpointer b, GString *events)
{
  g_string_append_printf (events, "%s %s;", G_OBJECT_TYPE_NAME (a), (const char *)b);
}

/* What a row asks for arrives with its message. */
static void
test_signals (void)
{
  Fixture fixture;
  KsMessage *question = NULL;
  g_autoptr (GString) events = g_string_new (NULL);

  set_up (&fixture, 0);
  question = add (&fixture, KS_MESSAGE_USER, "First");
  settle (&fixture);
  g_signal_connect (fixture.transcript, "edit", G_CALLBACK (emitted_cb), events);
  g_signal_emit_by_name (find_row (GTK_WIDGET (fixture.transcript), question), "edit", "new");
  g_assert_cmpstr (events->str, ==, "KsMessage new;");
  tear_down (&fixture);
}

/* Twenty times the messages do not make more widgets. */
static void
test_bounded (void)
{
  Fixture fixture;
  guint n_few = 0, n_many = 0;

  set_up (&fixture, 150);
  ui_test_wait (is_at_end, fixture.transcript);
  settle (&fixture);
  n_few = count_rows (GTK_WIDGET (fixture.transcript));
  tear_down (&fixture);
  set_up (&fixture, 3000);
  ui_test_wait (is_at_end, fixture.transcript);
  settle (&fixture);
  n_many = count_rows (GTK_WIDGET (fixture.transcript));
  g_test_message ("rows alive: %u of 300, %u of 6000", n_few, n_many);
  g_assert_cmpuint (n_many, <, 300);
  tear_down (&fixture);
}

/* Processor time of this thread: what other programs take does not count. */
static double
get_cpu_ms (void)
{
  struct timespec now;

  g_assert_cmpint (clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now), ==, 0);
  return (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1e6;
}

static int
compare_doubles (const void *a, const void *b)
{
  double d = *(const double *)a - *(const double *)b;

  return (d > 0) - (d < 0);
}

/* Plain labels with the same words: what this machine takes for text anyway, in ms a row. */
static double
time_labels (void)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  GtkWindow *window = ui_test_present (box, 700, 500);
  double start_ms = get_cpu_ms ();
  double ms = 0;

  for (guint i = 0; i < 200; i++) {
    for (guint k = 0; k < 4; k++) {
      GtkWidget *label = gtk_label_new ("An answer with some words, over a line or two so that it "
                                        "wraps in a window of ordinary width.");

      gtk_label_set_wrap (GTK_LABEL (label), TRUE);
      gtk_label_set_selectable (GTK_LABEL (label), TRUE);
      gtk_box_append (GTK_BOX (box), label);
    }
  }
  ui_test_settle (box);
  ms = (get_cpu_ms () - start_ms) / 200;
  ui_test_close (window);
  return ms;
}

/* Showing 200 rows costs a small multiple of four labels each; a flush of a streaming answer of 4
 * kB costs less than one row does. */
static void
test_costs (void)
{
  Fixture fixture;
  double label_ms = time_labels (), row_ms = 0, flush_ms[N_FLUSH];
  double start_ms = get_cpu_ms ();
  KsMessage *answer = NULL;

  set_up (&fixture, 100);
  row_ms = (get_cpu_ms () - start_ms) / 200;
  ui_test_wait (is_at_end, fixture.transcript);
  answer = add (&fixture, KS_MESSAGE_ASSISTANT, "");
  ks_message_set_state (answer, KS_MESSAGE_STREAMING);
  settle (&fixture);
  for (guint i = 0; i < N_FLUSH; i++) {
    start_ms = get_cpu_ms ();
    ks_message_append_text (
        answer, i % 9 == 8 ? "the last word of a paragraph.\n\nAnother one has the next "
                           : "some words of an answer that is not so short, ");
    ui_test_settle (GTK_WIDGET (fixture.transcript));
    flush_ms[i] = get_cpu_ms () - start_ms;
  }
  qsort (flush_ms, N_FLUSH, sizeof *flush_ms, compare_doubles);
  g_test_message ("row %.2f ms (four labels %.2f ms), flush median %.2f ms, worst %.2f ms", row_ms,
                  label_ms, flush_ms[N_FLUSH / 2], flush_ms[N_FLUSH - 1]);
  g_assert_cmpfloat (row_ms, <, 20 * label_ms + 1);
  g_assert_cmpfloat (flush_ms[N_FLUSH / 2], <, 4 * label_ms + 1);
  tear_down (&fixture);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add_func ("/transcript/follows", test_follows);
  g_test_add_func ("/transcript/stays", test_stays);
  g_test_add_func ("/transcript/jump", test_jump);
  g_test_add_func ("/transcript/last", test_last);
  g_test_add_func ("/transcript/signals", test_signals);
  g_test_add_func ("/transcript/bounded", test_bounded);
  g_test_add_func ("/transcript/costs", test_costs);
  return g_test_run ();
}

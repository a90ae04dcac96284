/* test-session-list.c - the list of sessions over a fake model. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-test.h"
#include "ui/ks-session-list.h"
#include "ui/ks-session-row.h"

#define HOUR_US (3600 * G_GINT64_CONSTANT (1000000))
#define NOW_US G_GINT64_CONSTANT (1780000000000000)

/* What the list asked for, one line each. */
typedef struct {
  GtkWindow *window;
  GtkWidget *list;
  GListStore *store;
  GString *asked;
} Fixture;

static void
log_session (Fixture *f, const char *what, KsSession *session)
{
  g_string_append_printf (f->asked, "%s %" G_GINT64_FORMAT ";", what, ks_session_get_id (session));
}

static void
open_cb (KsSessionList *list, KsSession *session, Fixture *f)
{
  log_session (f, "open", session);
}

static void
delete_cb (KsSessionList *list, KsSession *session, Fixture *f)
{
  log_session (f, "delete", session);
}

static void
export_cb (KsSessionList *list, KsSession *session, Fixture *f)
{
  log_session (f, "export", session);
}

static void
rename_cb (KsSessionList *list, KsSession *session, const char *title, Fixture *f)
{
  log_session (f, "rename", session);
  g_string_append (f->asked, title);
}

static void
search_cb (KsSessionList *list, const char *query, Fixture *f)
{
  g_string_append_printf (f->asked, "search '%s';", query);
}

static void
set_up (Fixture *f, gconstpointer n_session)
{
  f->asked = g_string_new ("");
  f->store = g_list_store_new (KS_TYPE_SESSION);
  for (guint i = 1; i <= GPOINTER_TO_UINT (n_session); i++) {
    g_autofree char *title = g_strdup_printf ("Session %u", i);
    g_autoptr (KsSession) session = ks_session_new (i, title, NOW_US, NOW_US, 2);

    g_list_store_append (f->store, session);
  }
  f->list = ks_session_list_new ();
  g_signal_connect (f->list, "open", G_CALLBACK (open_cb), f);
  g_signal_connect (f->list, "delete", G_CALLBACK (delete_cb), f);
  g_signal_connect (f->list, "export", G_CALLBACK (export_cb), f);
  g_signal_connect (f->list, "rename", G_CALLBACK (rename_cb), f);
  g_signal_connect (f->list, "search", G_CALLBACK (search_cb), f);
  f->window = ui_test_present (f->list, 300, 500);
  ks_session_list_set_model (KS_SESSION_LIST (f->list), G_LIST_MODEL (f->store));
  ui_test_settle (f->list);
}

static void
tear_down (Fixture *f, gconstpointer n_session)
{
  ui_test_close (f->window);
  g_object_unref (f->store);
  g_string_free (f->asked, TRUE);
}

static KsSession *
get (Fixture *f, guint i)
{
  g_autoptr (KsSession) session = g_list_model_get_item (G_LIST_MODEL (f->store), i);

  return session;
}

static GtkSingleSelection *
get_selection (Fixture *f)
{
  GtkListView *view = GTK_LIST_VIEW (ui_test_find (f->list, GTK_TYPE_LIST_VIEW));

  return GTK_SINGLE_SELECTION (gtk_list_view_get_model (view));
}

/* Marking is silent, choosing opens; the mark stays with its session when that moves to the top, as
 * it does with every answer. */
static void
test_mark (Fixture *f, gconstpointer data)
{
  KsSessionList *list = KS_SESSION_LIST (f->list);
  g_autoptr (KsSession) third = g_object_ref (get (f, 2));

  ks_session_list_select (list, third);
  g_assert_cmpstr (f->asked->str, ==, "");
  g_list_store_remove (f->store, 2);
  g_list_store_insert (f->store, 0, third);
  g_assert_cmpuint (gtk_single_selection_get_selected (get_selection (f)), ==, 0);
  g_assert_cmpstr (f->asked->str, ==, "");
  gtk_single_selection_set_selected (get_selection (f), 1);
  g_assert_cmpstr (f->asked->str, ==, "open 1;");
  ks_session_list_select (list, NULL);
  g_assert_cmpuint (gtk_single_selection_get_selected (get_selection (f)), ==,
                    GTK_INVALID_LIST_POSITION);
}

/* Previous and next stop at the ends; below a new, unstored session comes the newest. */
static void
test_neighbour (Fixture *f, gconstpointer data)
{
  KsSessionList *list = KS_SESSION_LIST (f->list);
  g_autoptr (KsSession) below = NULL;
  g_autoptr (KsSession) first = NULL;

  g_assert_null (ks_session_list_get_neighbour (list, -1));
  first = ks_session_list_get_neighbour (list, 1);
  g_assert_true (first == get (f, 0));
  ks_session_list_select (list, get (f, 1));
  below = ks_session_list_get_neighbour (list, 1);
  g_assert_true (below == get (f, 2));
  ks_session_list_select (list, get (f, 2));
  g_assert_null (ks_session_list_get_neighbour (list, 1));
}

/* A row's menu asks for the session that the row shows; a title is renamed in place, an empty one
 * not. */
static void
test_row_actions (Fixture *f, gconstpointer data)
{
  GtkWidget *row = ui_test_find (f->list, KS_TYPE_SESSION_ROW);
  GtkWidget *entry = NULL;

  g_assert_true (gtk_widget_activate_action (row, "row.export", NULL));
  g_assert_true (gtk_widget_activate_action (row, "row.delete", NULL));
  g_assert_cmpstr (f->asked->str, ==, "export 1;delete 1;");
  g_string_truncate (f->asked, 0);
  ks_session_list_select (KS_SESSION_LIST (f->list), get (f, 0));
  g_assert_true (ks_session_list_rename_selected (KS_SESSION_LIST (f->list)));
  entry = ui_test_find (row, GTK_TYPE_ENTRY);
  g_assert_nonnull (entry);
  g_assert_cmpstr (gtk_editable_get_text (GTK_EDITABLE (entry)), ==, "Session 1");
  gtk_editable_set_text (GTK_EDITABLE (entry), "  ");
  g_signal_emit_by_name (entry, "activate");
  g_assert_cmpstr (f->asked->str, ==, "");
  ui_test_settle (f->list);
  ks_session_row_start_rename (KS_SESSION_ROW (row));
  entry = ui_test_find (row, GTK_TYPE_ENTRY);
  gtk_editable_set_text (GTK_EDITABLE (entry), " Neuer Name ");
  g_signal_emit_by_name (entry, "activate");
  g_assert_cmpstr (f->asked->str, ==, "rename 1;Neuer Name");
}

static gboolean
has_asked (gpointer f)
{
  return ((Fixture *)f)->asked->len > 0;
}

/* The search is asked once, a moment after the last key, and ends with an empty entry. */
static void
test_search (Fixture *f, gconstpointer data)
{
  GtkWidget *entry = ui_test_find (f->list, GTK_TYPE_SEARCH_ENTRY);
  GtkWidget *stack = ui_test_find (f->list, GTK_TYPE_STACK);

  gtk_test_accessible_assert_property (entry, GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "Find in all sessions");
  gtk_editable_set_text (GTK_EDITABLE (entry), "seil");
  gtk_editable_set_text (GTK_EDITABLE (entry), " seilbahn ");
  ui_test_wait (has_asked, f);
  g_assert_cmpstr (f->asked->str, ==, "search 'seilbahn';");
  g_list_store_remove_all (f->store);
  g_assert_cmpstr (gtk_stack_get_visible_child_name (GTK_STACK (stack)), ==, "empty");
  g_assert_nonnull (ui_test_find_text (stack, "Nothing found"));
  g_string_truncate (f->asked, 0);
  ks_session_list_end_search (KS_SESSION_LIST (f->list));
  g_assert_cmpstr (f->asked->str, ==, "search '';");
}

/* Thousands of sessions make a few hundred rows. */
static void
test_many (Fixture *f, gconstpointer data)
{
  GtkWidget *view = ui_test_find (f->list, GTK_TYPE_LIST_VIEW);
  guint n = 0;

  for (GtkWidget *w = gtk_widget_get_first_child (view); w; w = gtk_widget_get_next_sibling (w))
    n++;
  g_assert_cmpuint (n, >, 4);
  g_assert_cmpuint (n, <, 400);
}

static char *
get_subtitle (KsSession *session)
{
  GtkWidget *row = g_object_ref_sink (ks_session_row_new ());
  char *text = NULL;

  ks_session_row_set_session (KS_SESSION_ROW (row), session);
  gtk_test_accessible_assert_property (row, GTK_ACCESSIBLE_PROPERTY_LABEL, "a b");
  text = g_strdup (gtk_label_get_text (
      GTK_LABEL (gtk_widget_get_last_child (gtk_widget_get_first_child (row)))));
  ks_session_row_set_session (KS_SESSION_ROW (row), NULL);
  g_object_unref (row);
  return text;
}

/* Titles and hits are foreign text: one line each, nothing in them turns the line around; markup
 * stays text; a hit is shown instead of the time. */
static void
test_row_text (void)
{
  g_autoptr (KsSession) session = ks_session_new (1,
                                                  "a\n\xe2\x80\xae"
                                                  "b",
                                                  NOW_US, NOW_US, 2);
  g_autofree char *hit = NULL;
  g_autofree char *time = NULL;

  time = get_subtitle (session);
  g_assert_cmpuint (strlen (time), >, 0);
  ks_session_set_snippet (session, "the <b>cable\tcar</b> & more");
  hit = get_subtitle (session);
  g_assert_cmpstr (hit, ==, "the <b>cable car</b> & more");
}

/* Today has a time, this week a day, the rest a date; a clock that was set back is no accident. */
static void
test_time (void)
{
  gint64 noon = NOW_US - NOW_US % (24 * HOUR_US) + 12 * HOUR_US;
  g_autofree char *now = ks_session_row_format_time (noon, noon + G_USEC_PER_SEC);
  g_autofree char *today = ks_session_row_format_time (noon, noon + HOUR_US);
  g_autofree char *week = ks_session_row_format_time (noon, noon + 49 * HOUR_US);
  g_autofree char *old = ks_session_row_format_time (noon, noon + 800 * HOUR_US);
  g_autofree char *future = ks_session_row_format_time (noon + 49 * HOUR_US, noon);
  g_autofree char *absurd = ks_session_row_format_time (G_MAXINT64, noon);

  g_assert_cmpstr (now, ==, "Just now");
  g_assert_cmpstr (today, ==, "12:00");
  g_assert_cmpstr (week, ==, "Thursday");
  g_assert_nonnull (strchr (old, '/'));
  g_assert_nonnull (strchr (future, '/'));
  g_assert_nonnull (absurd);
}

int
main (int argc, char **argv)
{
  g_setenv ("TZ", "UTC", TRUE);
  ui_test_init (&argc, &argv);
  g_test_add ("/session-list/mark", Fixture, GUINT_TO_POINTER (3), set_up, test_mark, tear_down);
  g_test_add ("/session-list/neighbour", Fixture, GUINT_TO_POINTER (3), set_up, test_neighbour,
              tear_down);
  g_test_add ("/session-list/row-actions", Fixture, GUINT_TO_POINTER (3), set_up, test_row_actions,
              tear_down);
  g_test_add ("/session-list/search", Fixture, GUINT_TO_POINTER (3), set_up, test_search,
              tear_down);
  g_test_add ("/session-list/many", Fixture, GUINT_TO_POINTER (5000), set_up, test_many, tear_down);
  g_test_add_func ("/session-list/row-text", test_row_text);
  g_test_add_func ("/session-list/time", test_time);
  return g_test_run ();
}

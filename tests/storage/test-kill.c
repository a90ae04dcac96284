/* test-kill.c - kill -9 at any moment while an answer streams: the store opens again, is sound, and
 * holds everything whose writing had been acknowledged.  Updates come every 100 ms in one half of
 * the runs and without a pause in the other.  KS_KILL_RUNS sets the number of runs. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/storage/storage-fixture.h"

#include <stdio.h>

#define DEFAULT_RUNS 20

static pid_t
start_writer (const char *dir, gint64 session, const char *interval_ms, FILE **out_acknowledged)
{
  g_autofree char *id = g_strdup_printf ("%" G_GINT64_FORMAT, session);
  const char *program = g_getenv ("KS_STREAM_WRITER");
  int fds[2];
  pid_t pid;

  g_assert_nonnull (program);
  g_assert_cmpint (pipe (fds), ==, 0);
  pid = fork ();
  if (pid == 0) {
    dup2 (fds[1], STDOUT_FILENO);
    close (fds[0]);
    close (fds[1]);
    execl (program, program, dir, id, interval_ms, (char *)NULL);
    _exit (127);
  }
  close (fds[1]);
  *out_acknowledged = fdopen (fds[0], "r");
  return pid;
}

/* The text is pieces 0..n-1 and nothing else; returns n. */
static guint
count_pieces (const char *text)
{
  GString *expected = g_string_new (NULL);
  guint n = 0;

  while (expected->len < strlen (text))
    g_string_append_printf (expected, "%u ", n++);
  g_assert_cmpstr (text, ==, expected->str);
  g_string_free (expected, TRUE);
  return n;
}

/* Returns how many updates were stored. */
static guint
run_once (Fixture *f, guint run)
{
  gint64 session = add_session (f->store, "s");
  g_autoptr (GPtrArray) messages = NULL;
  FILE *lines = NULL;
  char line[32];
  guint acknowledged = 0, n;
  KsMessage *answer;
  pid_t pid;

  g_clear_object (&f->store);
  pid = start_writer (f->dir, session, run % 2 == 0 ? "100" : "0", &lines);
  /* From the first update on, so that there is something to lose. */
  g_assert_nonnull (fgets (line, sizeof line, lines));
  acknowledged = (guint)g_ascii_strtoull (line, NULL, 10);
  g_usleep ((gulong)g_test_rand_int_range (0, 350000));
  g_assert_cmpint (kill (pid, SIGKILL), ==, 0);
  g_assert_cmpint (waitpid (pid, NULL, 0), ==, pid);
  while (fgets (line, sizeof line, lines) != NULL)
    acknowledged = (guint)g_ascii_strtoull (line, NULL, 10);
  fclose (lines);
  f->store = open_store (f->dir);
  assert_sound (f->store);
  messages = list_messages (f->store, session);
  g_assert_cmpuint (messages->len, ==, 2);
  g_assert_cmpstr (ks_message_get_text (g_ptr_array_index (messages, 0)), ==, "question");
  answer = g_ptr_array_index (messages, 1);
  g_assert_cmpint (ks_message_get_state (answer), ==, KS_MESSAGE_INTERRUPTED);
  n = count_pieces (ks_message_get_text (answer));
  /* One update may have been committed and not yet acknowledged. */
  g_assert_cmpuint (n, >=, acknowledged);
  g_assert_cmpuint (n, <=, acknowledged + 1);
  g_assert_true (ks_store_lock_session (f->store, session, NULL));
  ks_store_unlock_session (f->store, session);
  return n;
}

static void
test_kill (Fixture *f, gconstpointer data)
{
  const char *wanted = g_getenv ("KS_KILL_RUNS");
  guint n_runs = wanted != NULL ? (guint)g_ascii_strtoull (wanted, NULL, 10) : DEFAULT_RUNS;
  guint n_updates = 0;

  for (guint i = 0; i < n_runs; i++)
    n_updates += run_once (f, i);
  g_test_message ("%u kills, %u updates stored", n_runs, n_updates);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/kill/while-streaming", Fixture, NULL, fixture_set_up, test_kill, fixture_tear_down);
  return g_test_run ();
}

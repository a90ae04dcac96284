/* test-search.c - words are found in titles and messages, in any script, from one character on; no
 * query is an error. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/storage/storage-fixture.h"

/* Titles of what a query finds, joined by '|'. */
static char *
find (KsStore *store, const char *query)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) found = ks_store_search (store, query, 10, &error);
  GString *titles = g_string_new (NULL);

  g_assert_no_error (error);
  for (guint i = 0; i < found->len; i++) {
    KsSession *session = g_ptr_array_index (found, i);

    g_assert_nonnull (ks_session_get_snippet (session));
    g_string_append_printf (titles, "%s%s", i > 0 ? "|" : "", ks_session_get_title (session));
  }
  return g_string_free (titles, FALSE);
}

static void
assert_found (KsStore *store, const char *query, const char *titles)
{
  g_autofree char *found = find (store, query);

  if (g_strcmp0 (found, titles) != 0)
    g_test_message ("query: %s", query);
  g_assert_cmpstr (found, ==, titles);
}

static void
fill (KsStore *store)
{
  static const char *const sessions[][2] = {
      {"Korean", "오늘 서울의 날씨는 어떻습니까?"},
      {"Japanese", "東京の天気を教えてください。"},
      {"German", "Die Größe der Äpfel überrascht; Straße gesperrt."},
      {"Code", "if (a % b == 0) printf (\"100%_done\\n\");"},
      {"Decomposed", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab\xe1\x84\x80\xe1\x85\xb3\xe1\x86\xaf\xe1"
                     "\x84\x8b\xe1\x85\xb5"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (sessions); i++)
    add_message (store, add_session (store, sessions[i][0]), 0, KS_MESSAGE_USER, sessions[i][1]);
}

static void
test_scripts (Fixture *f, gconstpointer data)
{
  fill (f->store);
  assert_found (f->store, "서울의", "Korean");
  assert_found (f->store, "날씨", "Korean");
  assert_found (f->store, "울", "Korean");
  assert_found (f->store, "天気を", "Japanese");
  assert_found (f->store, "東京", "Japanese");
  assert_found (f->store, "気", "Japanese");
  assert_found (f->store, "größe", "German");
  assert_found (f->store, "ÄPFEL", "German");
  assert_found (f->store, "ÜB", "German");
  assert_found (f->store, "ß", "German");
  assert_found (f->store, "ä", "German");
  assert_found (f->store, "한글이", "Decomposed");
  assert_found (f->store, "한글", "Decomposed");
  assert_found (f->store, "nowhere", "");
}

static void
test_words (Fixture *f, gconstpointer data)
{
  gint64 a, b;

  fill (f->store);
  assert_found (f->store, "gesperrt größe", "German");
  assert_found (f->store, "gesperrt 서울의", "");
  assert_found (f->store, "Die gesperrt", "German");
  assert_found (f->store, "er gesperrt", "German");
  assert_found (f->store, "xy gesperrt", "");
  assert_found (f->store, "\"Straße gesperrt\"", "German");
  assert_found (f->store, "\"gesperrt Straße\"", "");
  /* A title comes first; a session comes once. */
  a = add_session (f->store, "Walrus");
  b = add_session (f->store, "Other");
  add_message (f->store, b, 0, KS_MESSAGE_USER, "walrus walrus");
  add_message (f->store, b, 0, KS_MESSAGE_USER, "walrus");
  add_message (f->store, a, 0, KS_MESSAGE_USER, "walrus");
  assert_found (f->store, "walrus", "Walrus|Other");
  ks_store_delete_session (f->store, a, NULL);
  assert_found (f->store, "walrus", "Other");
  ks_store_rename_session (f->store, b, "Renamed seal", NULL);
  assert_found (f->store, "seal", "Renamed seal");
}

/* Signs of the index's and of LIKE's language are plain characters. */
static void
test_signs (Fixture *f, gconstpointer data)
{
  static const char *const queries[] = {
      "",     " ",         "\"",     "\"\"",         "a\"b\"c", "NEAR(a b)", "title:x", "*",
      "abc*", "-- ; DROP", "'",      "(((",          "^abc",    "AND",       "OR NOT",  "\xff\xfe",
      "a\tb", "NOT NOT",   "{a b}:", "\"open quote", "\\",      "col : abc", "+ + +"};

  fill (f->store);
  for (guint i = 0; i < G_N_ELEMENTS (queries); i++)
    g_free (find (f->store, queries[i]));
  assert_found (f->store, "%", "Code");
  assert_found (f->store, "_", "Code");
  assert_found (f->store, "\\", "Code");
  assert_found (f->store, "100%_", "Code");
  assert_found (f->store, "%%", "");
}

/* An answer is found when it has ended, by its last text only. */
static void
test_streaming (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 s = add_session (f->store, "s");
  g_autoptr (KsMessage) answer = ks_store_add_message (
      f->store, s, 0, KS_MESSAGE_ASSISTANT, KS_MESSAGE_STREAMING, "firstly", NULL, &error);
  gint64 id = ks_message_get_id (answer);

  assert_found (f->store, "firstly", "");
  ks_store_update_message (f->store, id, "firstly secondly", KS_MESSAGE_COMPLETE, 2, NULL, &error);
  assert_found (f->store, "secondly", "s");
  ks_store_update_message (f->store, id, "thirdly", KS_MESSAGE_COMPLETE, 2, NULL, &error);
  assert_found (f->store, "secondly", "");
  assert_found (f->store, "thirdly", "s");
  assert_sound (f->store);
}

/* The snippet shows the hit, short, on one line. */
static void
test_snippet (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  GString *text = g_string_new (NULL);
  g_autoptr (GPtrArray) found = NULL;
  const char *snippet;

  for (guint i = 0; i < 2000; i++)
    g_string_append (text, i == 1000 ? "Nadel\n\n\nhier " : "한 ");
  add_message (f->store, add_session (f->store, "s"), 0, KS_MESSAGE_USER, text->str);
  g_string_free (text, TRUE);
  found = ks_store_search (f->store, "nadel", 0, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (found->len, ==, 1);
  snippet = ks_session_get_snippet (g_ptr_array_index (found, 0));
  g_assert_nonnull (strstr (snippet, "Nadel hier"));
  g_assert_true (g_str_has_prefix (snippet, "…"));
  g_assert_cmpint (g_utf8_strlen (snippet, -1), <, 160);
}

#define ADD(name, func) g_test_add (name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/search/scripts", test_scripts);
  ADD ("/search/words", test_words);
  ADD ("/search/signs", test_signs);
  ADD ("/search/streaming", test_streaming);
  ADD ("/search/snippet", test_snippet);
  return g_test_run ();
}

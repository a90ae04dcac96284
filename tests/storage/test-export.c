/* test-export.c - exports have safe names and never overwrite; a bundle restores the session with
 * its media, and exported again it is the same bytes; hostile bundles change nothing. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-export.h"
#include "tests/storage/storage-fixture.h"

#define PNG "\x89PNG\r\n\x1a\nnot really"
#define N_PNG (sizeof PNG - 1)

/* A session with everything that can be stored. */
static gint64
make_session (KsStore *store)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsSessionSettings) settings = ks_session_settings_new ();
  g_autoptr (KsSession) session = NULL;
  g_autofree char *hash = add_blob (store, PNG, N_PNG), *text_hash = add_blob (store, "Text", 4);
  gint64 s, q, a, b;

  settings->model = g_strdup ("a \"model\"");
  settings->temperature = 0.1 + 0.2;
  settings->min_p = 0.05;
  settings->seed = G_MAXINT64 - 1;
  settings->kv_budget_bytes = 12345678;
  session = ks_store_add_session (store, "Über <b>alles</b>\nzwei 한국어", settings, &error);
  g_assert_no_error (error);
  s = ks_session_get_id (session);
  q = add_with_blob (store, s, "../../x\"><script>.png", hash, text_hash, N_PNG);
  a = add_message (store, s, q, KS_MESSAGE_ASSISTANT,
                   "a <script>alert (1)</script>\n```c\nx < y;\n```\nend");
  add_message (store, s, a, KS_MESSAGE_USER, "deeper");
  b = add_message (store, s, q, KS_MESSAGE_ASSISTANT, "b");
  g_assert_true (ks_store_update_message (store, b, "b \x01 \xf0\x9f\x98\x80", KS_MESSAGE_FAILED, 7,
                                          "why\nnot", &error));
  add_with_blob (store, s, "", hash, NULL, N_PNG);
  g_assert_true (ks_store_select_branch (store, b, 0, &error));
  g_assert_no_error (error);
  return s;
}

static char *export(KsStore *store, gint64 session, KsExportFormat format)
{
  g_autoptr (GError) error = NULL;
  GBytes *bytes = ks_export_session (store, session, format, &error);
  gsize n;
  char *text;

  g_assert_no_error (error);
  text = g_bytes_unref_to_data (bytes, &n);
  text = g_realloc (text, n + 1);
  text[n] = '\0';
  g_assert_true (g_utf8_validate (text, (gssize)n, NULL));
  return text;
}

static KsSession *
import (KsStore *store, const char *text, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new (text, strlen (text));

  return ks_import_bundle (store, bytes, error);
}

static void
test_round_trip (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 s = make_session (f->store);
  g_autofree char *first = export(f->store, s, KS_EXPORT_JSON), *second = NULL, *third = NULL;
  g_autofree char *dir = g_build_filename (f->dir, "other", NULL);
  g_autofree char *hash = add_blob (f->store, PNG, N_PNG);
  g_autoptr (KsStore) other = open_store (dir);
  g_autoptr (KsSession) session = NULL, again = NULL;

  /* Ids differ in the other store, the bundle does not. */
  add_message (other, add_session (other, "x"), 0, KS_MESSAGE_USER, "y");
  session = import (other, first, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (ks_session_get_title (session), ==, "Über <b>alles</b>\nzwei 한국어");
  g_assert_cmpuint (ks_session_get_n_messages (session), ==, 5);
  g_assert_true (ks_blob_store_has (ks_store_get_blobs (other), hash));
  second = export(other, ks_session_get_id (session), KS_EXPORT_JSON);
  g_assert_cmpstr (second, ==, first);
  again = import (other, second, &error);
  third = export(other, ks_session_get_id (again), KS_EXPORT_JSON);
  g_assert_cmpstr (third, ==, first);
  assert_path (other, ks_session_get_id (session),
               "see a <script>alert (1)</script>\n```c\nx < y;\n```\nend deeper");
  assert_sound (other);
}

/* A blob that was lost before the export is said to be lost, and the rest is kept. */
static void
test_lost_blob (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 s = make_session (f->store);
  g_autofree char *hash = add_blob (f->store, PNG, N_PNG), *first = NULL, *second = NULL;
  g_autoptr (KsSession) session = NULL;

  g_assert_true (ks_blob_store_remove (ks_store_get_blobs (f->store), hash, &error));
  first = export(f->store, s, KS_EXPORT_JSON);
  g_assert_nonnull (strstr (first, "null"));
  session = import (f->store, first, &error);
  g_assert_no_error (error);
  second = export(f->store, ks_session_get_id (session), KS_EXPORT_JSON);
  g_assert_cmpstr (second, ==, first);
  g_free (export(f->store, s, KS_EXPORT_HTML));
}

static char *
replace (const char *text, const char *from, const char *to)
{
  const char *at = strstr (text, from);

  g_assert_nonnull (at);
  return g_strdup_printf ("%.*s%s%s", (int)(at - text), text, to, at + strlen (from));
}

static void
assert_refused (Fixture *f, const char *text, KsStorageError code)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsSession) session = import (f->store, text, &error);
  g_autoptr (GPtrArray) all = ks_store_list_sessions (f->store, 0, 0, NULL);

  g_assert_error (error, KS_STORAGE_ERROR, (int)code);
  g_assert_null (session);
  g_assert_cmpuint (all->len, ==, 1);
}

static void
set_pinned (KsStore *store, gint64 message, const char *hash)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (ks_store_set_pinned (store, message, hash, TRUE, &error));
  g_assert_no_error (error);
}

/* Pins of turns and of files come through a bundle, and are told where people read. */
static void
test_pins (Fixture *f, gconstpointer data)
{
  gint64 s = add_session (f->store, "pins");
  gint64 q, b;
  g_autofree char *large = g_strnfill (3000, 'x'), *hash = add_blob (f->store, large, 3000);
  g_autofree char *first = NULL, *second = NULL, *markdown = NULL, *html = NULL, *bad = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsSession) session = NULL;
  g_autoptr (GPtrArray) messages = NULL;

  q = add_with_blob (f->store, s, "plan.png", hash, NULL, 3000);
  b = add_message (f->store, s, q, KS_MESSAGE_ASSISTANT, "a plan");
  b = add_message (f->store, s, b, KS_MESSAGE_USER, "the number is 7");
  set_pinned (f->store, q, hash);
  set_pinned (f->store, b, NULL);
  first = export(f->store, s, KS_EXPORT_JSON);
  session = import (f->store, first, &error);
  g_assert_no_error (error);
  second = export(f->store, ks_session_get_id (session), KS_EXPORT_JSON);
  g_assert_cmpstr (second, ==, first);
  messages = ks_store_list_messages (f->store, ks_session_get_id (session), &error);
  g_assert_no_error (error);
  g_assert_true (ks_message_is_pinned (g_ptr_array_index (messages, 0), hash));
  g_assert_false (ks_message_is_pinned (g_ptr_array_index (messages, 0), NULL));
  g_assert_false (ks_message_is_pinned (g_ptr_array_index (messages, 1), NULL));
  g_assert_true (ks_message_is_pinned (g_ptr_array_index (messages, 2), NULL));
  markdown = export(f->store, s, KS_EXPORT_MARKDOWN);
  g_assert_nonnull (strstr (markdown, "- Attached: plan.png (2.9 KiB, pinned)\n"));
  g_assert_nonnull (strstr (markdown, "*Pinned.*\n\nthe number is 7\n"));
  g_assert_null (strstr (markdown, "*Pinned.*\n\na plan"));
  html = export(f->store, s, KS_EXPORT_HTML);
  g_assert_nonnull (strstr (html, "plan.png (2.9 KiB, pinned)"));
  g_assert_nonnull (
      strstr (html, "<p class=\"note\">Pinned.</p>\n<p dir=\"auto\">the number is 7"));
  bad = replace (first, "\"pinned\":\ttrue", "\"pinned\":\t1");
  g_assert_null (import (f->store, bad, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FORMAT);
}

static void
test_hostile (Fixture *f, gconstpointer data)
{
  static const char *const edits[][2] = {
      {"\"version\":\t3", "\"version\":\t4"},
      {"\"version\":\t3", "\"version\":\t1e999"},
      {"keepsake-session", "other"},
      {"\"media\":", "\"files\":"},
      {"\"parent\":\t0", "\"parent\":\t1"},
      {"\"parent\":\t1", "\"parent\":\t-1"},
      {"\"parent\":\t1", "\"parent\":\t1.5"},
      {"\"active_child\":\t2", "\"active_child\":\t5"},
      {"\"active_child\":\t2", "\"active_child\":\t99"},
      {"\"active\":\t3", "\"active\":\t6"},
      {"\"role\":\t\"user\"", "\"role\":\t\"root\""},
      {"\"state\":\t\"complete\"", "\"state\":\t\"streaming\""},
      {"\"kind\":\t\"image\"", "\"kind\":\t\"exe\""},
      {"\"sha256\":\t\"", "\"sha256\":\t\"../../etc/"},
      {"\"base64\":\t\"", "\"base64\":\t\"AAAA"},
      {"\"base64\":\t\"", "\"base64\":\t\"*"},
      {"\"n_bytes\":\t18", "\"n_bytes\":\t19"},
      {"\"text\":\t\"see\"", "\"text\":\t\"s\\u0000e\""},
      {"\"text\":\t\"see\"", "\"text\":\t\"s\xff\""},
      {"\"text\":\t\"see\"", "\"text\":\t3"},
      {"\"text\":\t\"see\"", "\"text\":\t\"see\",\"text\":\t\"see\""},
      {"\"temperature\":", "\"heat\":"},
      {"\"temperature\":\t0", "\"temperature\":\t1e999,\"top_p\":\t0"},
      {"\"seed\":\t\"", "\"seed\":\t\"9"},
      {"\"title\":", "\"title\":\t\"x\",\"title\":"},
      {"\"media\":\t[{",
       "\"media\":\t[{\"sha256\":\t\"0123456789012345678901234567890123456789012345678901"
       "234567890123\",\"base64\":\tnull}, {"},
  };
  gint64 s = make_session (f->store);
  g_autofree char *good = export(f->store, s, KS_EXPORT_JSON), *deep = NULL, *many = NULL;
  guint n_blobs = count_files (f->dir, "blobs");

  for (guint i = 0; i < G_N_ELEMENTS (edits); i++) {
    g_autofree char *bad = replace (good, edits[i][0], edits[i][1]);

    g_test_message ("edit %u", i);
    assert_refused (f, bad, KS_STORAGE_ERROR_FORMAT);
  }
  for (gsize n = 0; n < strlen (good) - 2; n += 37) {
    g_autofree char *cut = g_strndup (good, n);

    assert_refused (f, cut, KS_STORAGE_ERROR_FORMAT);
  }
  deep = g_strnfill (200000, '[');
  assert_refused (f, deep, KS_STORAGE_ERROR_FORMAT);
  many = g_strnfill (3000000, ',');
  assert_refused (f, many, KS_STORAGE_ERROR_TOO_LARGE);
  g_assert_cmpuint (count_files (f->dir, "blobs"), ==, n_blobs);
  assert_sound (f->store);
}

static void
assert_name (const char *title, const char *expected)
{
  g_autofree char *name = ks_export_make_name (title, KS_EXPORT_MARKDOWN);

  g_assert_cmpstr (name, ==, expected);
}

static void
test_names (void)
{
  g_autoptr (GString) emoji = g_string_new (NULL);
  g_autofree char *long_name = NULL;

  assert_name ("Plain title", "Plain title.md");
  assert_name ("../a/b", "_a_b.md");
  assert_name ("/etc/passwd", "_etc_passwd.md");
  assert_name ("..\\..\\x", "_.._x.md");
  assert_name ("CON", "_CON.md");
  assert_name ("con.txt", "_con.txt.md");
  assert_name ("Lpt1", "_Lpt1.md");
  assert_name ("nul .tar", "_nul .tar.md");
  assert_name ("COM10", "COM10.md");
  assert_name ("Console", "Console.md");
  assert_name ("", "session.md");
  assert_name (NULL, "session.md");
  assert_name ("...", "session.md");
  assert_name (" \t\n ", "session.md");
  assert_name ("-rf ~", "rf ~.md");
  assert_name ("a:b*c?\"<>|", "a_b_c_____.md");
  assert_name ("ends with dots. . .", "ends with dots.md");
  assert_name ("two\nlines\x01here", "two lines here.md");
  assert_name ("evil\xe2\x80\xaegnp.exe", "evilgnp.exe.md");
  assert_name ("bad\xff", "bad\xef\xbf\xbd.md");
  assert_name ("한국어 제목", "한국어 제목.md");
  for (guint i = 0; i < 300; i++)
    g_string_append (emoji, "😀");
  long_name = ks_export_make_name (emoji->str, KS_EXPORT_HTML);
  g_assert_cmpuint (strlen (long_name), <=, 120);
  g_assert_cmpuint (strlen (long_name), >, 100);
  g_assert_true (g_utf8_validate (long_name, -1, NULL));
  g_assert_true (g_str_has_suffix (long_name, "😀.html"));
}

/* Titles from outside stay inside the folder; what exists, also a link, is never written to. */
static void
test_never_overwrites (Fixture *f, gconstpointer data)
{
  static const char *const titles[] = {"../a/b", "CON", "", "x", "x", "x"};
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = g_build_filename (f->dir, "out", NULL);
  g_autofree char *first = g_build_filename (folder, "x.md", NULL);
  g_autofree char *link = g_build_filename (folder, "x (2).md", NULL);
  g_autofree char *target = g_build_filename (f->dir, "target", NULL);
  g_autofree char *content = NULL;

  g_assert_cmpint (g_mkdir (folder, 0700), ==, 0);
  g_assert_true (g_file_set_contents (first, "mine", 4, NULL));
  g_assert_cmpint (symlink (target, link), ==, 0);
  for (guint i = 0; i < G_N_ELEMENTS (titles); i++) {
    gint64 s = add_session (f->store, titles[i]);
    g_autofree char *path =
        ks_export_session_to_folder (f->store, s, KS_EXPORT_MARKDOWN, folder, &error);
    g_autofree char *parent = NULL;
    struct stat st;

    g_assert_no_error (error);
    parent = g_path_get_dirname (path);
    g_assert_cmpstr (parent, ==, folder);
    g_assert_cmpint (g_lstat (path, &st), ==, 0);
    g_assert_true (S_ISREG (st.st_mode));
    g_assert_cmpuint (st.st_mode & 0777, ==, 0600);
    g_assert_false (ks_export_session_to_file (f->store, s, KS_EXPORT_JSON, path, &error));
    g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FAILED);
    g_clear_error (&error);
  }
  g_assert_cmpuint (count_files (f->dir, "out"), ==, 8);
  g_assert_true (g_file_get_contents (first, &content, NULL, NULL));
  g_assert_cmpstr (content, ==, "mine");
  g_assert_false (g_file_test (target, G_FILE_TEST_EXISTS));
  g_assert_null (ks_export_session_to_folder (f->store, 1, KS_EXPORT_MARKDOWN, target, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND);
}

/* No script, no tag of the session's text, pictures inside, nothing from elsewhere. */
static void
test_html (Fixture *f, gconstpointer data)
{
  g_autofree char *html = export(f->store, make_session (f->store), KS_EXPORT_HTML);

  g_assert_null (strstr (html, "<script"));
  g_assert_null (strstr (html, "<b>"));
  g_assert_null (strstr (html, "http:"));
  g_assert_null (strstr (html, "https:"));
  g_assert_nonnull (strstr (html, "Content-Security-Policy\" content=\"default-src 'none'"));
  g_assert_nonnull (strstr (html, "src=\"data:image/png;base64,iVBOR"));
  g_assert_nonnull (strstr (html, "<pre><code>x &lt; y;\n</code></pre>"));
  g_assert_nonnull (strstr (html, "alt=\"../../x&quot;&gt;&lt;script&gt;.png\""));
  g_assert_null (strstr (html, "why"));
}

static void
test_markdown (Fixture *f, gconstpointer data)
{
  g_autofree char *text = export(f->store, make_session (f->store), KS_EXPORT_MARKDOWN);
  KsExportFormat format = KS_EXPORT_JSON;

  g_assert_true (g_str_has_prefix (text, "# Über \\<b\\>alles\\</b\\> zwei 한국어\n"));
  g_assert_nonnull (strstr (text, "## Question\n"));
  g_assert_nonnull (strstr (text, "\n```c\nx < y;\n```\nend\n"));
  g_assert_nonnull (strstr (text, "- Attached: ../../x\"\\>\\<script\\>.png (18"));
  g_assert_true (ks_export_parse_format ("MD", &format));
  g_assert_cmpint (format, ==, KS_EXPORT_MARKDOWN);
  g_assert_false (ks_export_parse_format ("docx", &format));
}

static void
assert_no_file (Fixture *f, const char *path, KsStorageError code)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (ks_import_file (f->store, path, &error));
  g_assert_error (error, KS_STORAGE_ERROR, (int)code);
  g_assert_nonnull (strstr (error->message, path));
}

/* From a file: what was exported; a pipe, a folder and a file that is far too large are refused
 * without being read. */
static void
test_files (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsSession) session = NULL;
  g_autofree char *path = g_build_filename (f->dir, "bundle.json", NULL);
  g_autofree char *pipe = g_build_filename (f->dir, "pipe", NULL);
  g_autofree char *text = NULL;

  g_assert_true (
      ks_export_session_to_file (f->store, make_session (f->store), KS_EXPORT_JSON, path, &error));
  session = ks_import_file (f->store, path, &error);
  g_assert_no_error (error);
  g_file_get_contents (path, &text, NULL, &error);
  g_assert_no_error (error);
  {
    g_autofree char *again = export(f->store, ks_session_get_id (session), KS_EXPORT_JSON);

    g_assert_cmpstr (again, ==, text);
  }
  g_assert_cmpint (mkfifo (pipe, 0600), ==, 0);
  assert_no_file (f, pipe, KS_STORAGE_ERROR_FORMAT);
  assert_no_file (f, f->dir, KS_STORAGE_ERROR_FORMAT);
  g_assert_cmpint (truncate (path, (off_t)513 << 20), ==, 0);
  assert_no_file (f, path, KS_STORAGE_ERROR_TOO_LARGE);
  g_assert_cmpint (g_unlink (path), ==, 0);
  assert_no_file (f, path, KS_STORAGE_ERROR_NOT_FOUND);
}

#define ADD(name, func) g_test_add (name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/export/round-trip", test_round_trip);
  ADD ("/export/lost-blob", test_lost_blob);
  ADD ("/export/pins", test_pins);
  ADD ("/export/hostile", test_hostile);
  g_test_add_func ("/export/names", test_names);
  ADD ("/export/never-overwrites", test_never_overwrites);
  ADD ("/export/html", test_html);
  ADD ("/export/markdown", test_markdown);
  ADD ("/export/files", test_files);
  return g_test_run ();
}

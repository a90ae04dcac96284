/* ks-search.c - full text over titles and messages, by trigrams; words too short for those by LIKE.
 * A query is cut into words here and never reaches the index as an expression: each word is quoted.
 * Both Unicode forms of a word are looked for (Korean from some systems comes decomposed), and for
 * LIKE, which folds ASCII only, its lower- and upper-case forms as well. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-store-internal.h"

#include <string.h>

#define TRIGRAM_CHARS 3
#define MAX_WORDS 8
#define MAX_WORD_CHARS 200
#define N_FORMS 4
#define SNIPPET_BEFORE 30
#define SNIPPET_CHARS 120

/* What a query becomes.  Short words go to one LIKE pattern per form. */
typedef struct {
  GPtrArray *words;
  char *match; /* expression of the index, NULL when no word is long enough */
  GPtrArray *short_words;
} Query;

static void
query_done (Query *query)
{
  g_clear_pointer (&query->words, g_ptr_array_unref);
  g_clear_pointer (&query->short_words, g_ptr_array_unref);
  g_clear_pointer (&query->match, g_free);
}

/* Words are cut at white space; a pair of quotes keeps what is between them together. */
static GPtrArray *
cut_words (const char *text)
{
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GString) word = g_string_new (NULL);
  gboolean is_quoted = FALSE;

  for (const char *p = text;; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);
    gboolean is_quote = c == '"' && (is_quoted || strchr (p + 1, '"') != NULL);
    gboolean ends = c == 0 || is_quote || (!is_quoted && g_unichar_isspace (c));

    if (ends && word->len > 0 && words->len < MAX_WORDS)
      g_ptr_array_add (words, g_strdup (word->str));
    if (c == 0)
      return words;
    if (ends)
      g_string_truncate (word, 0);
    else if (g_utf8_strlen (word->str, -1) < MAX_WORD_CHARS)
      g_string_append_unichar (word, c);
    if (is_quote)
      is_quoted = !is_quoted;
  }
}

/* "word" as a string of the index's language: only quotes mean something inside. */
static void
append_quoted (GString *match, const char *word)
{
  g_string_append_c (match, '"');
  for (const char *p = word; *p != '\0'; p++) {
    if (*p == '"')
      g_string_append_c (match, '"');
    g_string_append_c (match, *p);
  }
  g_string_append_c (match, '"');
}

static void
append_match (GString *match, const char *word)
{
  g_autofree char *composed = g_utf8_normalize (word, -1, G_NORMALIZE_NFC);
  g_autofree char *apart = g_utf8_normalize (word, -1, G_NORMALIZE_NFD);

  if (match->len > 0)
    g_string_append (match, " AND ");
  g_string_append (match, "(");
  append_quoted (match, composed);
  if (strcmp (composed, apart) != 0) {
    g_string_append (match, " OR ");
    append_quoted (match, apart);
  }
  g_string_append (match, ")");
}

static void
parse_query (Query *query, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_autoptr (GString) match = g_string_new (NULL);

  query->words = cut_words (valid);
  query->short_words = g_ptr_array_new ();
  for (guint i = 0; i < query->words->len; i++) {
    char *word = g_ptr_array_index (query->words, i);
    g_autofree char *composed = g_utf8_normalize (word, -1, G_NORMALIZE_NFC);

    if (g_utf8_strlen (composed, -1) >= TRIGRAM_CHARS)
      append_match (match, word);
    else
      g_ptr_array_add (query->short_words, word);
  }
  if (match->len > 0)
    query->match = g_strdup (match->str);
}

static char *
make_pattern (const char *word)
{
  GString *pattern = g_string_new ("%");

  for (const char *p = word; *p != '\0'; p++) {
    if (strchr ("%_\\", *p) != NULL)
      g_string_append_c (pattern, '\\');
    g_string_append_c (pattern, *p);
  }
  g_string_append_c (pattern, '%');
  return g_string_free (pattern, FALSE);
}

/* Patterns that find a short word as it is, lower, upper, and decomposed. */
static void
fill_patterns (char *patterns[N_FORMS], const char *word)
{
  g_autofree char *composed = g_utf8_normalize (word, -1, G_NORMALIZE_NFC);
  g_autofree char *lower = g_utf8_strdown (composed, -1);
  g_autofree char *upper = g_utf8_strup (composed, -1);
  g_autofree char *apart = g_utf8_normalize (word, -1, G_NORMALIZE_NFD);

  patterns[0] = make_pattern (composed);
  patterns[1] = make_pattern (lower);
  patterns[2] = make_pattern (upper);
  patterns[3] = make_pattern (apart);
}

/* TRUE when haystack begins with needle, case aside. */
static gboolean
begins_with (const char *haystack, const char *needle)
{
  while (*needle != '\0') {
    if (*haystack == '\0' || g_unichar_tolower (g_utf8_get_char (haystack)) !=
                                 g_unichar_tolower (g_utf8_get_char (needle)))
      return FALSE;
    haystack = g_utf8_next_char (haystack);
    needle = g_utf8_next_char (needle);
  }
  return TRUE;
}

static gboolean
contains (const char *text, const char *word, const char **out_at)
{
  for (const char *p = text; *p != '\0'; p = g_utf8_next_char (p))
    if (begins_with (p, word)) {
      *out_at = p;
      return TRUE;
    }
  return FALSE;
}

/* The surroundings of the first word that occurs, white space as single blanks. */
static char *
make_snippet (const char *text, GPtrArray *words)
{
  GString *snippet = g_string_new (NULL);
  const char *at = text;
  gboolean was_space = TRUE;

  for (guint i = 0; i < words->len && !contains (text, g_ptr_array_index (words, i), &at); i++)
    continue;
  for (guint i = 0; i < SNIPPET_BEFORE && at > text; i++)
    at = g_utf8_prev_char (at);
  if (at > text)
    g_string_append (snippet, "…");
  for (guint n = 0; *at != '\0' && n < SNIPPET_CHARS; n++, at = g_utf8_next_char (at)) {
    gunichar c = g_utf8_get_char (at);
    gboolean is_space = g_unichar_isspace (c) || g_unichar_iscntrl (c);

    if (!is_space)
      g_string_append_unichar (snippet, c);
    else if (!was_space)
      g_string_append_c (snippet, ' ');
    was_space = is_space;
  }
  if (*at != '\0')
    g_string_append (snippet, "…");
  return g_string_free (snippet, FALSE);
}

static gboolean
has_short_words (const Query *query, const char *text)
{
  for (guint i = 0; i < query->short_words->len; i++) {
    const char *word = g_ptr_array_index (query->short_words, i);
    g_autofree char *composed = g_utf8_normalize (word, -1, G_NORMALIZE_NFC);
    g_autofree char *apart = g_utf8_normalize (word, -1, G_NORMALIZE_NFD);
    const char *at;

    if (!contains (text, composed, &at) && !contains (text, apart, &at))
      return FALSE;
  }
  return TRUE;
}

/* Rows of (session columns, text), best first; adds each session once. */
static gboolean
collect (KsStatement *statement, const Query *query, guint limit, GHashTable *seen,
         GPtrArray *results, GError **error)
{
  GError *local = NULL;

  if (statement == NULL)
    return FALSE;
  while (results->len < limit && ks_statement_step (statement, &local)) {
    gint64 id = ks_statement_get_int (statement, 0);
    g_autofree char *text = NULL;

    if (g_hash_table_contains (seen, &id))
      continue;
    text = ks_statement_dup_text (statement, 5);
    if (has_short_words (query, text)) {
      KsSession *session = ks_store_read_session (statement);
      g_autofree char *snippet = make_snippet (text, query->words);

      ks_session_set_snippet (session, snippet);
      g_hash_table_add (seen, g_memdup2 (&id, sizeof id));
      g_ptr_array_add (results, session);
    }
  }
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, local);
  return FALSE;
}

#define COLUMNS "s.id, s.title, s.created_us, s.updated_us, s.n_messages, "

static gboolean
search_index (KsStore *self, const Query *query, guint limit, GHashTable *seen, GPtrArray *results,
              GError **error)
{
  g_autoptr (KsStatement) titles = NULL;
  g_autoptr (KsStatement) texts = NULL;

  titles = ks_database_query (self->database, error,
                              "SELECT " COLUMNS "s.title FROM session_fts"
                              " JOIN session s ON s.id = session_fts.rowid"
                              " WHERE session_fts MATCH ?1 AND s.deleted_us IS NULL"
                              " ORDER BY session_fts.rank, s.updated_us DESC",
                              "s", query->match);
  if (!collect (titles, query, limit, seen, results, error))
    return FALSE;
  texts = ks_database_query (self->database, error,
                             "SELECT " COLUMNS "m.text FROM message_fts"
                             " JOIN message m ON m.id = message_fts.rowid"
                             " JOIN session s ON s.id = m.session"
                             " WHERE message_fts MATCH ?1 AND s.deleted_us IS NULL"
                             " ORDER BY message_fts.rank, m.id DESC",
                             "s", query->match);
  return collect (texts, query, limit, seen, results, error);
}

#define IS_LIKE(column)                                                                            \
  "(" column " LIKE ?1 ESCAPE '\\' OR " column " LIKE ?2 ESCAPE '\\' OR " column                   \
  " LIKE ?3 ESCAPE '\\' OR " column " LIKE ?4 ESCAPE '\\')"

/* The first word by LIKE, the others are looked for in what that finds. */
static gboolean
search_like (KsStore *self, const Query *query, guint limit, GHashTable *seen, GPtrArray *results,
             GError **error)
{
  char *p[N_FORMS];
  g_autoptr (KsStatement) titles = NULL;
  g_autoptr (KsStatement) texts = NULL;
  gboolean done;

  fill_patterns (p, g_ptr_array_index (query->short_words, 0));
  titles = ks_database_query (self->database, error,
                              "SELECT " COLUMNS "s.title FROM session s WHERE " IS_LIKE (
                                  "s.title") " AND s.deleted_us IS NULL ORDER BY s.updated_us DESC",
                              "ssss", p[0], p[1], p[2], p[3]);
  done = collect (titles, query, limit, seen, results, error);
  if (done) {
    texts = ks_database_query (
        self->database, error,
        "SELECT " COLUMNS "m.text FROM message m JOIN session s ON s.id = m.session"
        " WHERE " IS_LIKE ("m.text") " AND m.state <> 1 AND s.deleted_us IS NULL"
                                     " ORDER BY m.id DESC",
        "ssss", p[0], p[1], p[2], p[3]);
    done = collect (texts, query, limit, seen, results, error);
  }
  for (guint i = 0; i < N_FORMS; i++)
    g_free (p[i]);
  return done;
}

GPtrArray *
ks_store_search (KsStore *self, const char *query, guint limit, GError **error)
{
  g_autoptr (GPtrArray) results = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  Query parsed = {NULL, NULL, NULL};
  gboolean done = TRUE;

  g_return_val_if_fail (KS_IS_STORE (self), NULL);
  g_return_val_if_fail (query != NULL, NULL);
  if (limit == 0)
    limit = G_MAXUINT;
  parse_query (&parsed, query);
  if (parsed.match != NULL)
    done = search_index (self, &parsed, limit, seen, results, error);
  else if (parsed.short_words->len > 0)
    done = search_like (self, &parsed, limit, seen, results, error);
  query_done (&parsed);
  return done ? g_steal_pointer (&results) : NULL;
}

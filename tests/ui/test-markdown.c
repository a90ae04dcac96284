/* test-markdown.c - text to blocks: what is a block, what can never be one, what it may cost, and
 * that a growing text ends as if it had been read at once. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-test.h"
#include "ui/ks-markdown.h"

#include <string.h>

/* A bound that holds on slow, busy machines too; anything quadratic is far beyond it. */
#define LONGEST_MS 3000

static KsMarkdown *
parse (const char *text)
{
  KsMarkdown *markdown = ks_markdown_new (KS_MARKDOWN_RICH);

  ks_markdown_set_text (markdown, text, FALSE);
  ks_markdown_ensure (markdown, G_MAXUINT);
  g_assert_true (ks_markdown_is_complete (markdown));
  return markdown;
}

/* What a label makes of a block; fails when the markup is not valid. */
static char *
dup_shown (const char *markup)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) bare = g_string_new (markup);
  char *text = NULL;

  /* GtkLabel takes links out before Pango sees the rest. */
  for (char *from = strstr (bare->str, "<a "); from != NULL; from = strstr (bare->str, "<a "))
    g_string_erase (bare, from - bare->str, strchr (from, '>') - from + 1);
  g_string_replace (bare, "</a>", "", 0);
  g_assert_true (pango_parse_markup (bare->str, -1, 0, NULL, &text, NULL, &error));
  g_assert_no_error (error);
  return text;
}

static void
assert_valid (KsMarkdown *markdown)
{
  for (guint i = 0; i < ks_markdown_get_n_blocks (markdown); i++) {
    KsMarkdownBlock *block = ks_markdown_get_block (markdown, i);
    KsMarkdownTable *table = block->table;

    g_assert_cmpuint (block->n_lines, >=, 1);
    g_assert_cmpuint (block->list_depth, <=, KS_MARKDOWN_MAX_DEPTH);
    g_assert_cmpuint (block->quote_depth, <=, KS_MARKDOWN_MAX_DEPTH);
    if (block->markup != NULL) {
      g_autofree char *shown = dup_shown (block->markup);

      /* The cut is at a blank where there is one; style tags and shown characters come on top. */
      g_assert_cmpuint (strlen (shown), <=, 4 * KS_MARKDOWN_PIECE_BYTES);
    }
    for (guint k = 0; table != NULL && k < table->n_columns * table->n_rows; k++) {
      g_autofree char *shown = dup_shown (table->cells[k]);

      g_assert_nonnull (shown);
    }
  }
}

/* One line for each block: enough to compare two readings. */
static char *
describe (KsMarkdown *markdown)
{
  GString *out = g_string_new (NULL);

  for (guint i = 0; i < ks_markdown_get_n_blocks (markdown); i++) {
    KsMarkdownBlock *block = ks_markdown_get_block (markdown, i);

    g_string_append_printf (out, "%d/%u l%u q%u%s%s%s%s: %s%s%s", block->kind, block->level,
                            block->list_depth, block->quote_depth, block->marker ? " " : "",
                            block->marker ? block->marker : "", block->continues ? " cont" : "",
                            block->wrap_anywhere ? " any" : "", block->markup ? block->markup : "",
                            block->text ? block->text : "", block->language ? block->language : "");
    for (guint k = 0; block->table && k < block->table->n_columns * block->table->n_rows; k++)
      g_string_append_printf (out, "|%s", block->table->cells[k]);
    g_string_append_c (out, '\n');
  }
  return g_string_free (out, FALSE);
}

static const char sample[] =
    "# Title\n\nFirst *paragraph* with **bold** `code` ~~gone~~.\nSecond line.\n\n"
    "- one\n- two\n  1. inner\n  2. more\n\n     in the item\n- [x] done\n- [ ] open\n\n"
    "> quoted\n> > twice\n\n```C\nint a; /* <b> & */\n\n- no list\n```\n\n"
    "| a | b |\n|:-:|---:|\n| 1 | **2** |\n| <br> | x<br>y |\n\n"
    "Setext\n---\n\n***\n\nSee https://example.org/a?b=1&c=2 and [text](https://example.org).\n\n"
    "    indented\n    code\n\nlast line without end";

/* Each kind of block arrives with its depth, marker, language and styles. */
static void
test_blocks (void)
{
  g_autoptr (KsMarkdown) markdown = parse (sample);
  g_autofree char *is = describe (markdown);

  assert_valid (markdown);
  g_assert_cmpstr (
      is, ==,
      "1/1 l0 q0: Title\n"
      "0/0 l0 q0: First <i>paragraph</i> with <b>bold</b> <tt>code</tt> <s>gone</s>.\nSecond "
      "line.\n"
      "0/0 l1 q0 \u2022: one\n"
      "0/0 l1 q0 \u2022: two\n"
      "0/0 l2 q0 1.: inner\n"
      "0/0 l2 q0 2.: more\n"
      "0/0 l2 q0: in the item\n"
      "0/0 l1 q0 \u2611: done\n"
      "0/0 l1 q0 \u2610: open\n"
      "0/0 l0 q1: quoted\n"
      "0/0 l0 q2: twice\n"
      "2/0 l0 q0: int a; /* <b> & */\n\n- no listc\n"
      "3/0 l0 q0: |a|b|1|<b>2</b>|\n|x\ny\n"
      "1/2 l0 q0: Setext\n"
      "4/0 l0 q0: \n"
      "0/0 l0 q0: See <a href=\"https://example.org/a?b=1&amp;c=2\" "
      "title=\"https://example.org/a?b=1&amp;amp;c=2\">https://example.org/a?b=1&amp;c=2</a> and "
      "<a href=\"https://example.org\" title=\"https://example.org\">text</a>.\n"
      "2/0 l0 q0: indented\ncode\n"
      "0/0 l0 q0: last line without end\n");
}

/* HTML is text; only http, https and mailto become links; a link that names another address than it
 * leads to shows the true one; pictures are words. */
static void
test_nothing_active (void)
{
  static const struct {
    const char *text, *markup;
  } cases[] = {
      {"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
      {"a <img src=x onerror=y> b", "a &lt;img src=x onerror=y&gt; b"},
      {"[x](javascript:alert(1))", "x (javascript:alert(1))"},
      {"[x](data:text/html,y)", "x (data:text/html,y)"},
      {"[x](file:///etc/passwd)", "x (file:///etc/passwd)"},
      {"[x](/etc/passwd)", "x (/etc/passwd)"},
      {"![a cat](https://example.org/cat.png)", "a cat (https://example.org/cat.png)"},
      {"[https://bank.example](https://evil.example)",
       "<a href=\"https://evil.example\" title=\"https://evil.example\">https://bank.example</a> "
       "(https://evil.example)"},
      {"</b></span><span foreground=\"red\">",
       "&lt;/b&gt;&lt;/span&gt;&lt;span foreground=&quot;red&quot;&gt;"},
      {"**open", "**open"},
      {"&lt;b&gt;", "&lt;b&gt;"},
      {"[x](mailto:a@example.org)",
       "<a href=\"mailto:a@example.org\" title=\"mailto:a@example.org\">x</a>"},
      {"[x](HTTP://example.org)",
       "<a href=\"HTTP://example.org\" title=\"HTTP://example.org\">x</a>"},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (KsMarkdown) markdown = parse (cases[i].text);

    g_assert_cmpuint (ks_markdown_get_n_blocks (markdown), ==, 1);
    g_assert_cmpstr (ks_markdown_get_block (markdown, 0)->markup, ==, cases[i].markup);
    assert_valid (markdown);
  }
  g_assert_false (ks_markdown_is_safe_uri ("https://example.org/\u202ea"));
  g_assert_false (ks_markdown_is_safe_uri ("https://a b"));
  g_assert_false (ks_markdown_is_safe_uri ("https://"));
  g_assert_false (ks_markdown_is_safe_uri (" https://a"));
  g_assert_false (ks_markdown_is_safe_uri (NULL));
}

/* Controls vanish, bytes that are no UTF-8 are replaced, characters that turn the direction of
 * reading are seen; what is copied from code is what was written. */
static void
test_characters (void)
{
  g_autoptr (KsMarkdown) controls = parse ("a\x01"
                                           "b\x1b[31mc\x7f\xc2\x85 d\r\ne");
  g_autoptr (KsMarkdown) broken = parse ("a\xff"
                                         "b \xe2\x82");
  g_autoptr (KsMarkdown) turned = parse ("x \u202eevil\u202c y\n\n```\nif\u2066x\n```\n");
  KsMarkdownBlock *code = NULL;

  g_assert_cmpstr (ks_markdown_get_block (controls, 0)->markup, ==, "ab[31mc d\ne");
  g_assert_cmpstr (ks_markdown_get_block (broken, 0)->markup, ==, "a\ufffdb \ufffd\ufffd");
  g_assert_cmpstr (ks_markdown_get_block (turned, 0)->markup, ==,
                   "x \u27e8U+202E\u27e9evil\u27e8U+202C\u27e9 y");
  code = ks_markdown_get_block (turned, 1);
  g_assert_cmpstr (code->text, ==, "if\u27e8U+2066\u27e9x");
  g_assert_cmpstr (code->original, ==, "if\u2066x");
}

/* Runs that no line can be broken in are marked, in words of any script and never in ordinary text
 * of a script without blanks. */
static void
test_long_runs (void)
{
  g_autofree char *run = g_strnfill (10240, 'x');
  g_autoptr (GString) japanese = g_string_new (NULL);
  g_autoptr (KsMarkdown) unbroken = parse (run);
  g_autoptr (KsMarkdown) words = NULL;
  gsize n = 0;

  for (guint i = 0; i < 400; i++)
    g_string_append (japanese, "\u65e5\u306e");
  words = parse (japanese->str);
  g_assert_false (ks_markdown_get_block (words, 0)->wrap_anywhere);
  g_assert_cmpuint (ks_markdown_get_n_blocks (unbroken), >=, 3);
  for (guint i = 0; i < ks_markdown_get_n_blocks (unbroken); i++) {
    KsMarkdownBlock *block = ks_markdown_get_block (unbroken, i);

    g_assert_true (block->wrap_anywhere);
    g_assert_cmpint (block->continues, ==, i > 0);
    n += strlen (block->markup);
  }
  g_assert_cmpuint (n, ==, 10240); /* not a letter more or less */
}

static double
time_parse (const char *name, const char *text)
{
  gint64 start_us = g_get_monotonic_time ();
  g_autoptr (KsMarkdown) markdown = parse (text);
  double ms = (double)(g_get_monotonic_time () - start_us) / 1000.0;

  assert_valid (markdown);
  g_test_message ("%s: %zu bytes, %u blocks, %.1f ms", name, strlen (text),
                  ks_markdown_get_n_blocks (markdown), ms);
  g_assert_cmpuint (ks_markdown_get_n_blocks (markdown), <=, KS_MARKDOWN_MAX_BLOCKS);
  g_assert_cmpfloat (ms, <, LONGEST_MS);
  return ms;
}

static char *
repeat (const char *piece, gsize n_bytes)
{
  GString *out = g_string_sized_new (n_bytes + 64);

  while (out->len < n_bytes)
    g_string_append (out, piece);
  return g_string_free (out, FALSE);
}

/* No text costs more than a moment, whatever the parser's worst cases are. */
static void
test_bounded (void)
{
  static const char *const pieces[] = {"![[]()",  "a@",       "@a.b",      "__*",     "[a](",
                                       "a**b",    "`a``",     "<a ",       "> ",      "- ",
                                       "* a\n\n", "[a]: b\n", "|a|b|\n",   "\\`",     "*a_ ",
                                       "a\n",     "\n",       "- a\n\n\n", "```\n\n", "word "};
  g_autoptr (GString) nested = g_string_new (NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (pieces); i++) {
    g_autofree char *text = repeat (pieces[i], 256 * 1024);

    time_parse (pieces[i], text);
  }
  for (guint i = 0; i < 1000; i++) {
    for (guint k = 0; k < i; k++)
      g_string_append (nested, "  ");
    g_string_append (nested, "- deep\n");
  }
  time_parse ("lists 1000 deep", nested->str);
}

/* Of 10 MB the beginning is shown, and how much is missing is known. */
static void
test_too_long (void)
{
  g_autofree char *text = repeat ("Some words, and more.\n\n", 10 * 1024 * 1024);
  g_autoptr (KsMarkdown) markdown = parse (text);
  g_autoptr (KsMarkdown) plain = ks_markdown_new (KS_MARKDOWN_PLAIN);

  time_parse ("10 MB", text);
  g_assert_cmpuint (ks_markdown_get_n_left_out (markdown), >, 9 * 1024 * 1024);
  g_assert_cmpuint (ks_markdown_get_n_blocks (markdown), ==, KS_MARKDOWN_MAX_BLOCKS);
  ks_markdown_set_text (plain, text, FALSE);
  ks_markdown_ensure (plain, G_MAXUINT);
  g_assert_cmpuint (ks_markdown_get_n_left_out (plain), >, 9 * 1024 * 1024);
}

/* A table of 200 columns is cut, and says of how many; one whose rows would be padded to millions
 * of cells stays text. */
static void
test_wide_tables (void)
{
  g_autofree char *header = repeat ("|a", 400);
  g_autofree char *rule = repeat ("|-", 400);
  g_autofree char *row = repeat ("|1", 400);
  g_autofree char *short_rows = repeat ("a\n", 40000);
  g_autofree char *text = g_strconcat (header, "|\n", rule, "|\n", row, "|\n", NULL);
  g_autofree char *padded = g_strconcat (header, "|\n", rule, "|\n", short_rows, NULL);
  g_autoptr (KsMarkdown) markdown = parse (text);
  KsMarkdownTable *table = ks_markdown_get_block (markdown, 0)->table;

  g_assert_nonnull (table);
  g_assert_cmpuint (table->n_all_columns, ==, 200);
  g_assert_cmpuint (table->n_columns, ==, KS_MARKDOWN_MAX_COLUMNS);
  g_assert_cmpuint (table->n_rows, ==, 2);
  g_assert_cmpstr (table->cells[table->n_columns], ==, "1");
  time_parse ("padded table", padded);
}

/* A growing text gives, after every piece and at its end, what it gives when read at once. */
static void
check_growth (const char *text, GRand *random)
{
  g_autoptr (KsMarkdown) growing = ks_markdown_new (KS_MARKDOWN_RICH);
  gsize n = strlen (text);

  for (gsize at = 0; at <= n;) {
    g_autofree char *part = g_strndup (text, at);
    gboolean grows = at < n;
    g_autoptr (KsMarkdown) whole = ks_markdown_new (KS_MARKDOWN_RICH);
    g_autofree char *is = NULL;
    g_autofree char *should = NULL;

    ks_markdown_set_text (growing, part, grows);
    ks_markdown_ensure (growing, G_MAXUINT);
    ks_markdown_set_text (whole, part, grows);
    ks_markdown_ensure (whole, G_MAXUINT);
    is = describe (growing);
    should = describe (whole);
    g_assert_cmpstr (is, ==, should);
    if (at == n)
      break;
    at = MIN (n, at + (gsize)g_rand_int_range (random, 1, 24));
  }
}

static void
test_growth (void)
{
  static const char *const lines[] = {"word",
                                      "- item",
                                      "  - inner",
                                      "1. one",
                                      "2. two",
                                      "> quote",
                                      "# head",
                                      "---",
                                      "===",
                                      "```",
                                      "```c",
                                      "    code",
                                      "| a | b |",
                                      "|---|---|",
                                      "| 1 | 2 |",
                                      "",
                                      "",
                                      "",
                                      "* * *",
                                      "- [ ] t",
                                      "<div>",
                                      "</div>",
                                      "~~~",
                                      "lazy *em*",
                                      "\u65e5\u672c\u8a9e",
                                      "https://example.org/x",
                                      "+ plus",
                                      "   three",
                                      "- a\n\n\n  - b",
                                      "-"};
  guint32 seed = (guint32)g_test_rand_int ();
  GRand *random = g_rand_new_with_seed (seed);

  check_growth (sample, random);
  for (guint round = 0; round < 150; round++) {
    g_autoptr (GString) text = g_string_new (NULL);
    guint n_line = (guint)g_rand_int_range (random, 1, 24);

    for (guint i = 0; i < n_line; i++)
      g_string_append_printf (text, "%s\n",
                              lines[g_rand_int_range (random, 0, G_N_ELEMENTS (lines))]);
    check_growth (text->str, random);
  }
  g_rand_free (random);
}

/* While a text grows, blocks that are done keep their identity, and only the tail is new. */
static void
test_identity (void)
{
  g_autoptr (KsMarkdown) markdown = ks_markdown_new (KS_MARKDOWN_RICH);
  g_autoptr (GString) text = g_string_new ("# Head\n\nOne paragraph.\n\n- a\n- b\n\nThe la");
  KsMarkdownBlock *blocks[4];

  ks_markdown_set_text (markdown, text->str, TRUE);
  ks_markdown_ensure (markdown, G_MAXUINT);
  g_assert_cmpuint (ks_markdown_get_n_blocks (markdown), ==, 5);
  for (guint i = 0; i < 4; i++)
    blocks[i] = ks_markdown_get_block (markdown, i);
  g_string_append (text, "st one");
  ks_markdown_set_text (markdown, text->str, TRUE);
  ks_markdown_ensure (markdown, G_MAXUINT);
  for (guint i = 0; i < 4; i++)
    g_assert_true (blocks[i] == ks_markdown_get_block (markdown, i));
  g_assert_cmpstr (ks_markdown_get_block (markdown, 4)->markup, ==, "The last one");
  g_assert_cmpuint (ks_markdown_get_n_stable (markdown), >=, 2);
}

/* A fence that is not closed yet is code from its first line on; an incomplete character at the end
 * waits for its rest. */
static void
test_unfinished (void)
{
  g_autoptr (KsMarkdown) markdown = ks_markdown_new (KS_MARKDOWN_RICH);

  ks_markdown_set_text (markdown, "```python\nprint(1)\n\n# no head", TRUE);
  ks_markdown_ensure (markdown, G_MAXUINT);
  g_assert_cmpuint (ks_markdown_get_n_blocks (markdown), ==, 1);
  g_assert_cmpint (ks_markdown_get_block (markdown, 0)->kind, ==, KS_BLOCK_CODE);
  g_assert_cmpstr (ks_markdown_get_block (markdown, 0)->language, ==, "python");
  ks_markdown_set_text (markdown, "caf\xc3", TRUE);
  ks_markdown_ensure (markdown, G_MAXUINT);
  g_assert_cmpstr (ks_markdown_get_block (markdown, 0)->markup, ==, "caf");
  ks_markdown_set_text (markdown, "caf\xc3\xa9", TRUE);
  ks_markdown_ensure (markdown, G_MAXUINT);
  g_assert_cmpstr (ks_markdown_get_block (markdown, 0)->markup, ==, "caf\u00e9");
  ks_markdown_set_text (markdown, "caf\xc3", FALSE);
  ks_markdown_ensure (markdown, G_MAXUINT);
  g_assert_cmpstr (ks_markdown_get_block (markdown, 0)->markup, ==, "caf\ufffd");
}

/* What a user typed stays as it was typed. */
static void
test_plain (void)
{
  g_autoptr (KsMarkdown) markdown = ks_markdown_new (KS_MARKDOWN_PLAIN);

  ks_markdown_set_text (markdown, "# no *head*\n  - kept\n\n\n<b>\n", FALSE);
  ks_markdown_ensure (markdown, G_MAXUINT);
  g_assert_cmpuint (ks_markdown_get_n_blocks (markdown), ==, 2);
  g_assert_cmpstr (ks_markdown_get_block (markdown, 0)->markup, ==, "# no *head*\n  - kept");
  g_assert_cmpstr (ks_markdown_get_block (markdown, 1)->markup, ==, "&lt;b&gt;");
}

/* Of a long text only the beginning is read when only that is asked for. */
static void
test_lazy (void)
{
  g_autofree char *text = repeat ("Some words, and more.\n\n", 200 * 1024);
  g_autoptr (KsMarkdown) markdown = ks_markdown_new (KS_MARKDOWN_RICH);

  ks_markdown_set_text (markdown, text, FALSE);
  g_assert_cmpuint (ks_markdown_get_n_blocks (markdown), ==, 0);
  ks_markdown_ensure (markdown, 10);
  g_assert_cmpuint (ks_markdown_get_n_blocks (markdown), >=, 10);
  g_assert_cmpuint (ks_markdown_get_n_blocks (markdown), <, 1000);
  g_assert_false (ks_markdown_is_complete (markdown));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/markdown/blocks", test_blocks);
  g_test_add_func ("/markdown/nothing-active", test_nothing_active);
  g_test_add_func ("/markdown/characters", test_characters);
  g_test_add_func ("/markdown/long-runs", test_long_runs);
  g_test_add_func ("/markdown/bounded", test_bounded);
  g_test_add_func ("/markdown/too-long", test_too_long);
  g_test_add_func ("/markdown/wide-tables", test_wide_tables);
  g_test_add_func ("/markdown/growth", test_growth);
  g_test_add_func ("/markdown/identity", test_identity);
  g_test_add_func ("/markdown/unfinished", test_unfinished);
  g_test_add_func ("/markdown/plain", test_plain);
  g_test_add_func ("/markdown/lazy", test_lazy);
  return g_test_run ();
}

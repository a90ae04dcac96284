/* ks-markdown-blocks.c - the parser's tree to a flat list of blocks.
 * The tree is walked with its own iterator, never by recursion: a text may nest as deep as it is
 * long.  Source: the CommonMark and GitHub-flavoured syntax as the parser reads it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-markdown-internal.h"

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm-extension_api.h>
#include <cmark-gfm.h>

#include <string.h>

#define MAX_LANGUAGE_BYTES 32

/* Where in lists and quotes the walk is. */
typedef struct {
  GPtrArray *blocks;
  guint list_depth, quote_depth;
  GArray *counters; /* int: number of the next item of each open list, -1 = bullets */
  char *marker;     /* of an item whose first block has not come yet */
} Walk;

static void
free_table (KsMarkdownTable *table)
{
  if (table == NULL)
    return;
  for (guint i = 0; i < table->n_columns * table->n_rows; i++)
    g_free (table->cells[i]);
  g_free (table->cells);
  g_free (table->align);
  g_free (table);
}

static void
clear_block (gpointer data)
{
  KsMarkdownBlock *block = data;

  g_free (block->marker);
  g_free (block->markup);
  g_free (block->text);
  g_free (block->original);
  g_free (block->language);
  free_table (block->table);
}

KsMarkdownBlock *
ks_markdown_block_new (KsBlockKind kind)
{
  KsMarkdownBlock *block = g_rc_box_new0 (KsMarkdownBlock);

  block->kind = kind;
  block->n_lines = 1;
  return block;
}

KsMarkdownBlock *
ks_markdown_block_ref (KsMarkdownBlock *block)
{
  return g_rc_box_acquire (block);
}

void
ks_markdown_block_unref (KsMarkdownBlock *block)
{
  if (block != NULL)
    g_rc_box_release_full (block, clear_block);
}

static gboolean
equal_tables (const KsMarkdownTable *a, const KsMarkdownTable *b)
{
  if (a == NULL || b == NULL)
    return a == b;
  if (a->n_columns != b->n_columns || a->n_rows != b->n_rows ||
      a->n_all_columns != b->n_all_columns || a->n_all_rows != b->n_all_rows ||
      memcmp (a->align, b->align, a->n_columns) != 0)
    return FALSE;
  for (guint i = 0; i < a->n_columns * a->n_rows; i++)
    if (strcmp (a->cells[i], b->cells[i]) != 0)
      return FALSE;
  return TRUE;
}

gboolean
ks_markdown_block_equal (const KsMarkdownBlock *a, const KsMarkdownBlock *b)
{
  return a == b || (a->kind == b->kind && a->level == b->level && a->list_depth == b->list_depth &&
                    a->quote_depth == b->quote_depth && a->continues == b->continues &&
                    a->wrap_anywhere == b->wrap_anywhere && g_strcmp0 (a->marker, b->marker) == 0 &&
                    g_strcmp0 (a->markup, b->markup) == 0 && g_strcmp0 (a->text, b->text) == 0 &&
                    g_strcmp0 (a->original, b->original) == 0 &&
                    g_strcmp0 (a->language, b->language) == 0 && equal_tables (a->table, b->table));
}

static gboolean
is_type (cmark_node *node, const char *type)
{
  return strcmp (cmark_node_get_type_string (node), type) == 0;
}

/* A break that models write into tables; everything else of HTML stays text. */
static gboolean
is_line_break (const char *html)
{
  return g_ascii_strcasecmp (html, "<br>") == 0 || g_ascii_strcasecmp (html, "<br/>") == 0 ||
         g_ascii_strcasecmp (html, "<br />") == 0;
}

static void
append_literal (KsMarkupBuilder *builder, cmark_node *node)
{
  const char *text = cmark_node_get_literal (node);

  if (text != NULL)
    ks_markup_builder_text (builder, text, strlen (text));
}

static void
append_image_end (KsMarkupBuilder *builder, cmark_node *node)
{
  const char *uri = cmark_node_get_url (node);
  g_autoptr (GString) shown = g_string_new (" (");
  g_autofree char *clean = NULL;

  if (uri == NULL || *uri == '\0')
    return;
  clean = ks_markdown_clean (uri, MIN (strlen (uri), 200));
  ks_markdown_show_bidi (shown, clean, strlen (clean), TRUE);
  g_string_append (shown, strlen (uri) > 200 ? "\u2026)" : ")");
  ks_markup_builder_text (builder, shown->str, shown->len);
}

/* Styles that open and close. */
static void
append_span (KsMarkupBuilder *builder, cmark_node *node, gboolean entering)
{
  cmark_node_type type = cmark_node_get_type (node);
  const char *tag = type == CMARK_NODE_STRONG         ? "<b>"
                    : type == CMARK_NODE_EMPH         ? "<i>"
                    : is_type (node, "strikethrough") ? "<s>"
                                                      : NULL;

  if (type == CMARK_NODE_LINK && entering)
    ks_markup_builder_open_link (builder, cmark_node_get_url (node));
  else if (type == CMARK_NODE_LINK)
    ks_markup_builder_close_link (builder, cmark_node_get_url (node));
  else if (type == CMARK_NODE_IMAGE && !entering)
    append_image_end (builder, node);
  else if (tag != NULL && entering)
    ks_markup_builder_open (builder, tag);
  else if (tag != NULL)
    ks_markup_builder_close (builder);
}

/* Everything below a paragraph, heading or cell. */
static void
append_inlines (KsMarkupBuilder *builder, cmark_node *parent)
{
  cmark_iter *iter = cmark_iter_new (parent);
  cmark_event_type event = CMARK_EVENT_NONE;

  while ((event = cmark_iter_next (iter)) != CMARK_EVENT_DONE) {
    cmark_node *node = cmark_iter_get_node (iter);
    cmark_node_type type = cmark_node_get_type (node);

    if (node == parent)
      continue;
    if (type == CMARK_NODE_SOFTBREAK || type == CMARK_NODE_LINEBREAK ||
        (type == CMARK_NODE_HTML_INLINE && is_line_break (cmark_node_get_literal (node)))) {
      ks_markup_builder_text (builder, "\n", 1);
    } else if (type == CMARK_NODE_CODE) {
      ks_markup_builder_open (builder, "<tt>");
      append_literal (builder, node);
      ks_markup_builder_close (builder);
    } else if (type == CMARK_NODE_TEXT || type == CMARK_NODE_HTML_INLINE) {
      append_literal (builder, node);
    } else {
      append_span (builder, node, event == CMARK_EVENT_ENTER);
    }
  }
  cmark_iter_free (iter);
}

/* Depth and marker of the place where the walk is. */
static void
shape_block (Walk *walk, KsMarkdownBlock *shape)
{
  shape->list_depth = MIN (walk->list_depth, KS_MARKDOWN_MAX_DEPTH);
  shape->quote_depth = MIN (walk->quote_depth, KS_MARKDOWN_MAX_DEPTH);
  shape->marker = g_steal_pointer (&walk->marker);
}

static void
add_text_block (Walk *walk, cmark_node *node, KsBlockKind kind)
{
  KsMarkupBuilder builder;

  ks_markup_builder_init (&builder, walk->blocks, kind);
  shape_block (walk, &builder.shape);
  if (kind == KS_BLOCK_HEADING)
    builder.shape.level = (guint)CLAMP (cmark_node_get_heading_level (node), 1, 6);
  if (cmark_node_get_type (node) == CMARK_NODE_HTML_BLOCK) {
    g_autofree char *html = g_strchomp (g_strdup (cmark_node_get_literal (node)));

    ks_markup_builder_text (&builder, html, strlen (html));
  } else {
    append_inlines (&builder, node);
  }
  ks_markup_builder_end (&builder);
}

/* First word of what follows the fence, NULL if it is no name of a language. */
static char *
dup_language (const char *info)
{
  gsize n = info == NULL ? 0 : strcspn (info, " \t\n{,");

  if (n == 0 || n > MAX_LANGUAGE_BYTES || !g_utf8_validate (info, (gssize)n, NULL))
    return NULL;
  return g_utf8_strdown (info, (gssize)n);
}

static void
add_code_block (Walk *walk, cmark_node *node)
{
  KsMarkdownBlock *block = ks_markdown_block_new (KS_BLOCK_CODE);
  const char *literal = cmark_node_get_literal (node);
  g_autofree char *code = g_strdup (literal == NULL ? "" : literal);
  g_autoptr (GString) shown = NULL;
  gsize n = strlen (code);

  shape_block (walk, block);
  if (n > 0 && code[n - 1] == '\n')
    code[--n] = '\0';
  shown = g_string_sized_new (n + 1);
  ks_markdown_show_bidi (shown, code, n, TRUE);
  for (const char *p = code; *p != '\0'; p++)
    block->n_lines += *p == '\n';
  block->language = dup_language (cmark_node_get_fence_info (node));
  block->text = g_strdup (shown->str);
  if (strcmp (block->text, code) != 0)
    block->original = g_steal_pointer (&code);
  g_ptr_array_add (walk->blocks, block);
}

static char *
dup_cell (cmark_node *cell)
{
  KsMarkupBuilder builder;

  ks_markup_builder_init (&builder, NULL, KS_BLOCK_PARAGRAPH);
  append_inlines (&builder, cell);
  return ks_markup_builder_end_cell (&builder);
}

static void
fill_row (KsMarkdownTable *table, guint row, cmark_node *node)
{
  cmark_node *cell = cmark_node_first_child (node);

  for (guint i = 0; i < table->n_columns; i++) {
    table->cells[row * table->n_columns + i] = cell == NULL ? g_strdup ("") : dup_cell (cell);
    cell = cell == NULL ? NULL : cmark_node_next (cell);
  }
}

static void
add_table (Walk *walk, cmark_node *node)
{
  KsMarkdownBlock *block = ks_markdown_block_new (KS_BLOCK_TABLE);
  KsMarkdownTable *table = g_new0 (KsMarkdownTable, 1);
  guint8 *align = cmark_gfm_extensions_get_table_alignments (node);
  guint row = 0;

  shape_block (walk, block);
  block->table = table;
  table->n_all_columns = cmark_gfm_extensions_get_table_columns (node);
  table->n_columns = MIN (table->n_all_columns, KS_MARKDOWN_MAX_COLUMNS);
  for (cmark_node *r = cmark_node_first_child (node); r != NULL; r = cmark_node_next (r))
    table->n_all_rows++;
  table->n_rows = MIN (table->n_all_rows, KS_MARKDOWN_MAX_CELLS / MAX (table->n_columns, 1));
  table->cells = g_new0 (char *, table->n_rows * table->n_columns + 1);
  table->align = g_new0 (char, table->n_columns + 1);
  for (guint i = 0; i < table->n_columns && align != NULL; i++)
    table->align[i] = (char)align[i];
  for (cmark_node *r = cmark_node_first_child (node); row < table->n_rows;
       r = cmark_node_next (r), row++)
    fill_row (table, row, r);
  block->n_lines = MAX (table->n_rows, 1);
  g_ptr_array_add (walk->blocks, block);
}

/* An item that has no block of its own still shows its marker. */
static void
flush_marker (Walk *walk)
{
  KsMarkupBuilder builder;

  if (walk->marker == NULL)
    return;
  ks_markup_builder_init (&builder, walk->blocks, KS_BLOCK_PARAGRAPH);
  shape_block (walk, &builder.shape);
  ks_markup_builder_end (&builder);
}

static void
enter_list (Walk *walk, cmark_node *node)
{
  gboolean is_numbered = cmark_node_get_list_type (node) == CMARK_ORDERED_LIST;
  int next = is_numbered ? cmark_node_get_list_start (node) : -1;

  flush_marker (walk);
  walk->list_depth++;
  g_array_append_val (walk->counters, next);
}

static void
enter_item (Walk *walk, cmark_node *node)
{
  static const char *const bullets[] = {"\u2022", "\u25e6", "\u25aa"};
  int *counter = NULL;

  flush_marker (walk);
  if (walk->counters->len == 0)
    return;
  counter = &g_array_index (walk->counters, int, walk->counters->len - 1);
  if (is_type (node, "tasklist"))
    walk->marker =
        g_strdup (cmark_gfm_extensions_get_tasklist_item_checked (node) ? "\u2611" : "\u2610");
  else if (*counter < 0)
    walk->marker = g_strdup (bullets[(walk->counters->len - 1) % G_N_ELEMENTS (bullets)]);
  else
    walk->marker = g_strdup_printf ("%d.", *counter);
  if (*counter >= 0 && *counter < G_MAXINT)
    ++*counter;
}

static void
walk_container (Walk *walk, cmark_node *node, gboolean entering)
{
  switch (cmark_node_get_type (node)) {
  case CMARK_NODE_BLOCK_QUOTE:
    walk->quote_depth += entering ? 1u : -1u;
    break;
  case CMARK_NODE_LIST:
    if (entering) {
      enter_list (walk, node);
    } else {
      walk->list_depth--;
      g_array_set_size (walk->counters, walk->counters->len - 1);
    }
    break;
  case CMARK_NODE_ITEM:
    if (entering)
      enter_item (walk, node);
    else
      flush_marker (walk);
    break;
  default:
    break;
  }
}

/* TRUE when the node is a block of ours, so that the walk goes on behind it. */
static gboolean
walk_leaf (Walk *walk, cmark_node *node)
{
  switch (cmark_node_get_type (node)) {
  case CMARK_NODE_PARAGRAPH:
  case CMARK_NODE_HTML_BLOCK:
    add_text_block (walk, node, KS_BLOCK_PARAGRAPH);
    return TRUE;
  case CMARK_NODE_HEADING:
    add_text_block (walk, node, KS_BLOCK_HEADING);
    return TRUE;
  case CMARK_NODE_CODE_BLOCK:
    add_code_block (walk, node);
    return TRUE;
  case CMARK_NODE_THEMATIC_BREAK: {
    KsMarkdownBlock *block = ks_markdown_block_new (KS_BLOCK_RULE);

    shape_block (walk, block);
    g_ptr_array_add (walk->blocks, block);
    return TRUE;
  }
  default:
    if (!is_type (node, "table"))
      return FALSE;
    add_table (walk, node);
    return TRUE;
  }
}

static cmark_node *
parse_tree (const char *text, gsize n)
{
  static const char *const extensions[] = {"table", "strikethrough", "autolink", "tasklist"};
  cmark_parser *parser = NULL;
  cmark_node *document = NULL;

  cmark_gfm_core_extensions_ensure_registered ();
  parser = cmark_parser_new (CMARK_OPT_DEFAULT | CMARK_OPT_STRIKETHROUGH_DOUBLE_TILDE);
  for (gsize i = 0; i < G_N_ELEMENTS (extensions); i++) {
    cmark_syntax_extension *extension = cmark_find_syntax_extension (extensions[i]);

    if (extension != NULL)
      cmark_parser_attach_syntax_extension (parser, extension);
  }
  cmark_parser_feed (parser, text, n);
  document = cmark_parser_finish (parser);
  cmark_parser_free (parser);
  return document;
}

/* The paragraph that a table was split from has no line of its own, and the table has the
 * paragraph's first line: they count as one. */
static void
add_top (GArray *tops, cmark_node *node, guint n_block)
{
  int line = cmark_node_get_start_line (node);
  cmark_node *before = cmark_node_previous (node);
  KsMarkdownTop top = {.line = (guint)line - 1, .n_block = n_block};

  if (before != NULL && cmark_node_get_start_line (before) <= 0)
    g_array_index (tops, KsMarkdownTop, tops->len - 1).line = top.line;
  else
    g_array_append_val (tops, top);
}

void
ks_markdown_parse (const char *text, gsize n, GPtrArray *blocks, GArray *tops)
{
  cmark_node *document = parse_tree (text, n);
  cmark_iter *iter = cmark_iter_new (document);
  g_autoptr (GArray) counters = g_array_new (FALSE, FALSE, sizeof (int));
  Walk walk = {.blocks = blocks, .counters = counters};
  cmark_event_type event = CMARK_EVENT_NONE;

  while ((event = cmark_iter_next (iter)) != CMARK_EVENT_DONE) {
    cmark_node *node = cmark_iter_get_node (iter);
    gboolean entering = event == CMARK_EVENT_ENTER;

    if (node == document)
      continue;
    if (entering && cmark_node_parent (node) == document)
      add_top (tops, node, blocks->len);
    if (entering && walk_leaf (&walk, node)) {
      if (cmark_node_first_child (node) != NULL || is_type (node, "table"))
        cmark_iter_reset (iter, node, CMARK_EVENT_EXIT);
    } else {
      walk_container (&walk, node, entering);
    }
  }
  g_free (walk.marker);
  cmark_iter_free (iter);
  cmark_node_free (document);
}

void
ks_markdown_parse_plain (const char *text, gsize n, GPtrArray *blocks)
{
  const char *end = text + n;

  while (text < end) {
    const char *gap = g_strstr_len (text, end - text, "\n\n");
    const char *stop = gap == NULL ? end : gap;
    KsMarkupBuilder builder;

    while (stop > text && stop[-1] == '\n')
      stop--;
    ks_markup_builder_init (&builder, blocks, KS_BLOCK_PARAGRAPH);
    ks_markup_builder_text (&builder, text, (gsize)(stop - text));
    ks_markup_builder_end (&builder);
    for (text = gap == NULL ? end : gap; text < end && *text == '\n';)
      text++;
  }
}

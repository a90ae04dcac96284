/* ks-markdown-internal.h - the steps between ks-markdown.c (what is read again and when),
 * ks-markdown-blocks.c (the parser's tree to blocks) and ks-markdown-text.c (characters). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "ui/ks-markdown.h"

G_BEGIN_DECLS

/* --- characters (ks-markdown-text.c) --- */
/* Valid UTF-8 of n bytes without controls but \n and \t; \r is dropped, so that lines stay lines.
 */
char *ks_markdown_clean (const char *text, gsize n);
/* Appends it with the characters shown that turn the direction of reading; all: those too that
 * cannot reach beyond a paragraph. */
void ks_markdown_show_bidi (GString *out, const char *text, gsize n, gboolean all);
/* Length of the longest piece of text that no line can be broken in; *run: of the piece that is
 * open at the end, and at the beginning of the next call. */
guint ks_markdown_longest_run (const char *text, gsize n, guint *run);

/* A paragraph being built: styled runs of escaped text. */
typedef struct {
  GPtrArray *blocks;     /* (borrowed) finished blocks go here */
  KsMarkdownBlock shape; /* depth, level, kind for each piece; marker for the first (owned) */
  GString *markup;
  GPtrArray *tags;    /* open ones: "<b>", in order */
  GString *link_text; /* text since the link began, NULL = in no link */
  gsize n_text;       /* bytes of this piece */
  guint n_newline;    /* in this piece */
  guint n_char;
  guint run, longest_run;
  guint depth; /* of tags, those that were left out included */
  gboolean continues;
} KsMarkupBuilder;

void ks_markup_builder_init (KsMarkupBuilder *self, GPtrArray *blocks, KsBlockKind kind);
void ks_markup_builder_text (KsMarkupBuilder *self, const char *text, gsize n);
void ks_markup_builder_open (KsMarkupBuilder *self, const char *tag);
void ks_markup_builder_close (KsMarkupBuilder *self);
void ks_markup_builder_open_link (KsMarkupBuilder *self, const char *uri);
void ks_markup_builder_close_link (KsMarkupBuilder *self, const char *uri);
/* The markup alone, for a cell of a table. (transfer full) */
char *ks_markup_builder_end_cell (KsMarkupBuilder *self);
/* Appends the last piece; an empty paragraph gives a block only if it has a marker. */
void ks_markup_builder_end (KsMarkupBuilder *self);

/* --- blocks (ks-markdown-blocks.c) --- */
KsMarkdownBlock *ks_markdown_block_new (KsBlockKind kind);
/* What lies at the top of the text: first line (from 0) and number of blocks by then. */
typedef struct {
  guint line, n_block;
} KsMarkdownTop;
/* Parses text (clean) and appends its blocks; tops (of KsMarkdownTop) gets an element for each
 * top-level block, in order. */
void ks_markdown_parse (const char *text, gsize n, GPtrArray *blocks, GArray *tops);
/* Lines as they are, one block for each run of them between empty lines. */
void ks_markdown_parse_plain (const char *text, gsize n, GPtrArray *blocks);

G_END_DECLS

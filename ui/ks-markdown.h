/* ks-markdown.h - the text of a message as a flat list of blocks with Pango markup; no widgets.
 * Nothing of it can run or be fetched: HTML is shown as text, pictures as their words and address,
 * only http, https and mailto are links.  Every size is bounded, control characters are dropped,
 * characters that turn the direction of reading are shown by their number.
 * While a text grows only its last top-level block is read again: blocks that cannot change any
 * more keep their identity.  Threads: main (the parser has global tables). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/* What is shown of one message at most, in bytes and blocks; copies and exports have all of it. */
#define KS_MARKDOWN_MAX_BYTES (256u * 1024u)
#define KS_MARKDOWN_MAX_BLOCKS 8000u
/* A longer paragraph is cut into several blocks, at a space if there is one. */
#define KS_MARKDOWN_PIECE_BYTES 4096u
/* Columns of a table that are shown, and its cells. */
#define KS_MARKDOWN_MAX_COLUMNS 32u
#define KS_MARKDOWN_MAX_CELLS 2000u
/* Deeper lists and quotes are drawn like this depth. */
#define KS_MARKDOWN_MAX_DEPTH 12u

typedef enum {
  KS_BLOCK_PARAGRAPH,
  KS_BLOCK_HEADING,
  KS_BLOCK_CODE,
  KS_BLOCK_TABLE,
  KS_BLOCK_RULE
} KsBlockKind;

/* One cell after the other, row by row; the first row is the header. */
typedef struct {
  guint n_columns, n_rows;         /* that are here */
  guint n_all_columns, n_all_rows; /* that the text has */
  char **cells;                    /* markup [n_rows * n_columns] */
  char *align;                     /* 'l', 'c', 'r' or 0 [n_columns] */
} KsMarkdownTable;

/* Immutable, reference counted. */
typedef struct {
  KsBlockKind kind;
  guint level;            /* heading: 1 to 6 */
  guint list_depth;       /* 0 = in no list */
  guint quote_depth;      /* 0 = in no quote */
  char *marker;           /* what stands before the first block of a list item; NULL = nothing */
  gboolean continues;     /* the rest of the paragraph before it */
  gboolean wrap_anywhere; /* holds a run that has to be broken between any characters */
  guint n_lines;          /* estimated, at least 1 */
  char *markup;           /* paragraph, heading */
  char *text;             /* code as it is shown */
  char *original;         /* code as it was written, NULL = the same as text */
  char *language;         /* code: first word of the fence, lower case; NULL = none */
  KsMarkdownTable *table;
} KsMarkdownBlock;

KsMarkdownBlock *ks_markdown_block_ref (KsMarkdownBlock *block);
void ks_markdown_block_unref (KsMarkdownBlock *block);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsMarkdownBlock, ks_markdown_block_unref)
gboolean ks_markdown_block_equal (const KsMarkdownBlock *a, const KsMarkdownBlock *b);

typedef enum {
  KS_MARKDOWN_PLAIN, /* what a user typed: lines as they are */
  KS_MARKDOWN_RICH   /* CommonMark with tables, strikethrough, task lists and bare addresses */
} KsMarkdownMode;

typedef struct _KsMarkdown KsMarkdown;

KsMarkdown *ks_markdown_new (KsMarkdownMode mode);
KsMarkdown *ks_markdown_ref (KsMarkdown *self);
void ks_markdown_unref (KsMarkdown *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsMarkdown, ks_markdown_unref)

/* The whole text, any bytes.  grows: more will follow, so an incomplete character at the end is
 * held back.  Reads nothing yet. */
void ks_markdown_set_text (KsMarkdown *self, const char *text, gboolean grows);
/* Reads on until n_blocks are final or the text is at its end: the price of a long text is paid
 * only for what is shown of it. */
void ks_markdown_ensure (KsMarkdown *self, guint n_blocks);
/* Whether all that may be shown has been read. */
gboolean ks_markdown_is_complete (KsMarkdown *self);
/* Bytes beyond the limits above, which no block holds. */
gsize ks_markdown_get_n_left_out (KsMarkdown *self);
guint ks_markdown_get_n_blocks (KsMarkdown *self);
/* Blocks before this one stay the same while the text only grows. */
guint ks_markdown_get_n_stable (KsMarkdown *self);
KsMarkdownBlock *ks_markdown_get_block (KsMarkdown *self, guint i); /* borrowed */

/* Whether a link to it may be followed: http, https, mailto, without blanks or controls. */
gboolean ks_markdown_is_safe_uri (const char *uri);

G_END_DECLS

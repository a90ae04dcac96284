/* ks-office-text.h - the plain text that a document becomes: lines, headings, lists, rows of
 * tables, and a line of its own for each picture, where it stands.
 * Only for the worker.  A line of the document that looks like a line of ours ("[picture 1]",
 * "[page 1]", "[slide 1]") gets a blank in front, so that the program can tell them apart.
 * Threads: the worker has one. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* More pictures than this are named, but not numbered. */
#define KS_OFFICE_MAX_PICTURES 1000u

typedef struct {
  GString *out;
  GPtrArray *pictures; /* keys in the order of their first mention: picture 1, 2, ... */
  GHashTable *numbers; /* key -> number */
  GString *prefix;     /* stands before the next line's first character */
  GString *waiting;    /* lines that follow the row which is being written */
  gsize line;          /* where the current line begins in out */
  guint n_inline;      /* in rows, notes: line ends become blanks */
  guint n_cell;        /* of the outermost row so far */
  gboolean wants_gap;  /* an empty line before the next one */
  gboolean is_full;    /* over KS_MEDIA_MAX_TEXT_BYTES: nothing is added any more */
} KsOfficeText;

KsOfficeText *ks_office_text_new (void);
/* n bytes of UTF-8; control characters are left out.  collapse: as in HTML, white space is one
 * blank. */
void ks_office_text_add (KsOfficeText *text, const char *data, gsize n, gboolean collapse);
/* Before the next line's first character: "# ", "- ".  Forgotten when the line stays empty. */
void ks_office_text_set_prefix (KsOfficeText *text, const char *prefix);
void ks_office_text_add_heading (KsOfficeText *text, guint level); /* a prefix of 1 to 6 marks */
void ks_office_text_clear_prefix (KsOfficeText *text);
/* Ends the line if there is one; a gap also leaves one line empty. */
void ks_office_text_break (KsOfficeText *text);
void ks_office_text_gap (KsOfficeText *text);
/* Rows of a table: cells in one line.  A row inside a row is part of its cell. */
void ks_office_text_begin_row (KsOfficeText *text);
void ks_office_text_begin_cell (KsOfficeText *text);
void ks_office_text_end_row (KsOfficeText *text);
/* A note inside a line, in brackets. */
void ks_office_text_begin_note (KsOfficeText *text);
void ks_office_text_end_note (KsOfficeText *text);
/* A line of ours, as it is: "[slide 3]". */
void ks_office_text_add_marker (KsOfficeText *text, const char *marker);
/* key NULL: a picture that is not in the file, or of no kind that can be shown; it is only named.
 * alt (may be NULL) is the author's description. */
void ks_office_text_add_picture (KsOfficeText *text, const char *key, const char *alt);
/* The last line's end; out is then the result. */
void ks_office_text_finish (KsOfficeText *text);

G_END_DECLS

/* ks-block-view.h - one block of a message: text, heading, code, table or rule, with the marker and
 * indentation of its list and the bars of its quote.
 * The same widget can show another block later: kinds are changed only where they differ.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "ui/ks-markdown.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_BLOCK_VIEW (ks_block_view_get_type ())
G_DECLARE_FINAL_TYPE (KsBlockView, ks_block_view, KS, BLOCK_VIEW, GtkWidget)

GtkWidget *ks_block_view_new (void);
/* n_lines: lines of code or rows of a table that are shown at most.  The same block with the same
 * n_lines costs nothing. */
void ks_block_view_set_block (KsBlockView *self, KsMarkdownBlock *block, guint n_lines);

G_END_DECLS

/* ks-code-view.h - a block of code: language, copy button, highlighted text that scrolls sideways.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "ui/ks-markdown.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_CODE_VIEW (ks_code_view_get_type ())
G_DECLARE_FINAL_TYPE (KsCodeView, ks_code_view, KS, CODE_VIEW, GtkWidget)

GtkWidget *ks_code_view_new (void);
/* Shows the first n_lines of a block of code.  A text that only grew is appended to what is there.
 */
void ks_code_view_set_block (KsCodeView *self, KsMarkdownBlock *block, guint n_lines);

G_END_DECLS

/* ks-branch-switcher.h - "2 / 3" with buttons for the wording before and after it.
 * Signal: "select" (guint sibling, from 0).  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_BRANCH_SWITCHER (ks_branch_switcher_get_type ())
G_DECLARE_FINAL_TYPE (KsBranchSwitcher, ks_branch_switcher, KS, BRANCH_SWITCHER, GtkWidget)

GtkWidget *ks_branch_switcher_new (void);
/* Which of n_siblings is shown; can_change: whether another may be asked for now. */
void ks_branch_switcher_show (KsBranchSwitcher *self, guint sibling, guint n_siblings,
                              gboolean can_change);

G_END_DECLS

/* ks-budget-bar.h - the bar inside the memory gauge: weights, their copy, kept entries, room for
 * more, scratch and what is left of the target, side by side.  A METER to screen readers.  Only
 * draws: nothing that it is told changes its size.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-memory-view.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

typedef enum {
  KS_BUDGET_WEIGHTS,
  KS_BUDGET_COPY, /* of the weights */
  KS_BUDGET_KV_USED,
  KS_BUDGET_KV_FREE,
  KS_BUDGET_SCRATCH,
  KS_BUDGET_EYES, /* vision tower and what it made of pictures */
  KS_BUDGET_OVER, /* what is used beyond the target, drawn over the others */
  KS_BUDGET_N_PART
} KsBudgetPart;

#define KS_TYPE_BUDGET_BAR (ks_budget_bar_get_type ())
G_DECLARE_FINAL_TYPE (KsBudgetBar, ks_budget_bar, KS, BUDGET_BAR, GtkWidget)

GtkWidget *ks_budget_bar_new (void);
/* view NULL: empty.  target_bytes counts instead of the view's (it may be newer); 0 = no target. */
void ks_budget_bar_set_usage (KsBudgetBar *self, const KsMemoryView *view, guint64 target_bytes);
/* Where a part begins and how much it takes, as shares of the bar. */
void ks_budget_bar_get_part (KsBudgetBar *self, KsBudgetPart part, double *out_begin,
                             double *out_share);

G_END_DECLS

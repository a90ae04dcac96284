/* ks-budget-gauge.h - the memory gauge in the header: what is used of the target as numbers and as
 * a bar, and the slider that changes the target at any moment, beside it or (where the header is
 * narrow) in the popover below it, with words for every part.
 * Updates never change its size.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-memory-view.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_BUDGET_GAUGE (ks_budget_gauge_get_type ())
G_DECLARE_FINAL_TYPE (KsBudgetGauge, ks_budget_gauge, KS, BUDGET_GAUGE, GtkWidget)

/* Signal: "target-changed" (guint64 bytes), at most every 150 ms while the user moves the slider
 * and 150 ms at the latest after the last move. */
GtkWidget *ks_budget_gauge_new (void);
/* The latest numbers, as often as there are some: shown ten times a second at most, and only while
 * the gauge can be seen.  NULL: no model. */
void ks_budget_gauge_set_view (KsBudgetGauge *self, const KsMemoryView *view);
/* Ends of the slider, which is logarithmic.  It cannot be moved unless min < max. */
void ks_budget_gauge_set_range (KsBudgetGauge *self, guint64 min_bytes, guint64 max_bytes);
/* The target in force; while the user moves the slider, the slider keeps the user's. */
void ks_budget_gauge_set_target (KsBudgetGauge *self, guint64 target_bytes);

G_END_DECLS

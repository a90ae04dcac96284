/* ks-budget-bar.c - see ks-budget-bar.h.
 * Colours come from hidden swatches, so that the style sheet, dark and high-contrast themes are in
 * charge of them. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-budget-bar.h"

#include "ui/ks-memory-words.h"
#include "ui/ks-swatch.h"

#include <adwaita.h>
#include <glib/gi18n.h>

#include <math.h>

#define HEIGHT_PX 8
#define MIN_WIDTH_PX 60
#define NATURAL_WIDTH_PX 160
#define GAP_PX 1

struct _KsBudgetBar {
  GtkWidget parent_instance;
  GtkWidget *swatches[KS_BUDGET_N_PART];
  GtkWidget *trough;
  guint64 bytes[KS_BUDGET_N_PART];
  guint64 target_bytes, used_bytes;
};

G_DEFINE_FINAL_TYPE (KsBudgetBar, ks_budget_bar, GTK_TYPE_WIDGET)

static const char *const part_classes[KS_BUDGET_N_PART] = {"weights", "copy", "kv-used", "kv-free",
                                                           "scratch", "eyes", "over"};

/* What the whole width stands for. */
static double
get_total (KsBudgetBar *self)
{
  double sum = 0;

  for (int i = 0; i < KS_BUDGET_OVER; i++)
    sum += (double)self->bytes[i];
  return MAX (MAX (sum, (double)self->target_bytes), 1);
}

void
ks_budget_bar_get_part (KsBudgetBar *self, KsBudgetPart part, double *out_begin, double *out_share)
{
  double begin = 0, total;

  g_return_if_fail (KS_IS_BUDGET_BAR (self) && part < KS_BUDGET_N_PART);

  total = get_total (self);
  if (part == KS_BUDGET_OVER)
    begin = (double)self->target_bytes;
  else
    for (int i = 0; i < (int)part; i++)
      begin += (double)self->bytes[i];
  *out_begin = begin / total;
  *out_share = (double)self->bytes[part] / total;
}

static void
ks_budget_bar_measure (GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                       int *natural, int *minimum_baseline, int *natural_baseline)
{
  gboolean horizontal = orientation == GTK_ORIENTATION_HORIZONTAL;

  *minimum = horizontal ? MIN_WIDTH_PX : HEIGHT_PX;
  *natural = horizontal ? NATURAL_WIDTH_PX : HEIGHT_PX;
}

static void
draw_part (KsBudgetBar *self, GtkSnapshot *snapshot, KsBudgetPart part, int width, int height)
{
  double begin, share;
  float left, right;
  GdkRGBA color;

  ks_budget_bar_get_part (self, part, &begin, &share);
  if (share <= 0)
    return;
  left = roundf ((float)(begin * width));
  right = roundf ((float)((begin + share) * width));
  if (part < KS_BUDGET_EYES && right - left > 3 * GAP_PX)
    right -= GAP_PX; /* neighbours stay apart where colours are hard to tell */
  right = MAX (right, left + 1);
  if (gtk_widget_get_direction (GTK_WIDGET (self)) == GTK_TEXT_DIR_RTL) {
    float swap = left;

    left = (float)width - right;
    right = (float)width - swap;
  }
  ks_swatch_get_color (self->swatches[part], &color);
  gtk_snapshot_append_color (snapshot, &color,
                             &GRAPHENE_RECT_INIT (left, 0, right - left, (float)height));
}

static void
ks_budget_bar_snapshot (GtkWidget *widget, GtkSnapshot *snapshot)
{
  KsBudgetBar *self = KS_BUDGET_BAR (widget);
  int width = gtk_widget_get_width (widget), height = gtk_widget_get_height (widget);
  GskRoundedRect outline;
  GdkRGBA color;

  gsk_rounded_rect_init_from_rect (
      &outline, &GRAPHENE_RECT_INIT (0, 0, (float)width, (float)height), (float)height / 2);
  gtk_snapshot_push_rounded_clip (snapshot, &outline);
  ks_swatch_get_color (self->trough, &color);
  gtk_snapshot_append_color (snapshot, &color, &outline.bounds);
  for (int i = 0; i < KS_BUDGET_N_PART; i++)
    draw_part (self, snapshot, (KsBudgetPart)i, width, height);
  gtk_snapshot_pop (snapshot);
}

void
ks_budget_bar_set_usage (KsBudgetBar *self, const KsMemoryView *view, guint64 target_bytes)
{
  g_autofree char *text = NULL;
  guint64 used = view == NULL ? 0 : ks_memory_view_get_used_bytes (view);

  g_return_if_fail (KS_IS_BUDGET_BAR (self));

  memset (self->bytes, 0, sizeof self->bytes);
  if (view != NULL) {
    self->bytes[KS_BUDGET_WEIGHTS] = view->weight_bytes;
    self->bytes[KS_BUDGET_COPY] = view->copy_bytes;
    self->bytes[KS_BUDGET_EYES] = view->eyes_bytes;
    self->bytes[KS_BUDGET_KV_USED] = view->kv_used_bytes;
    self->bytes[KS_BUDGET_KV_FREE] = view->kv_budget_bytes > view->kv_used_bytes
                                         ? view->kv_budget_bytes - view->kv_used_bytes
                                         : 0;
    self->bytes[KS_BUDGET_SCRATCH] = view->scratch_bytes;
    if (target_bytes > 0 && used > target_bytes)
      self->bytes[KS_BUDGET_OVER] = used - target_bytes;
  }
  self->target_bytes = target_bytes;
  self->used_bytes = used;
  text = target_bytes == 0 ? ks_words_size (used) : ks_words_size_of (used, target_bytes);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_VALUE_MIN, 0.0,
                                  GTK_ACCESSIBLE_PROPERTY_VALUE_MAX, get_total (self),
                                  GTK_ACCESSIBLE_PROPERTY_VALUE_NOW, (double)used,
                                  GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT, text, -1);
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

static void
ks_budget_bar_dispose (GObject *object)
{
  KsBudgetBar *self = KS_BUDGET_BAR (object);

  for (int i = 0; i < KS_BUDGET_N_PART; i++)
    g_clear_pointer (&self->swatches[i], gtk_widget_unparent);
  g_clear_pointer (&self->trough, gtk_widget_unparent);
  G_OBJECT_CLASS (ks_budget_bar_parent_class)->dispose (object);
}

static void
ks_budget_bar_class_init (KsBudgetBarClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_budget_bar_dispose;
  widget_class->measure = ks_budget_bar_measure;
  widget_class->snapshot = ks_budget_bar_snapshot;
  gtk_widget_class_set_css_name (widget_class, "budgetbar");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_METER);
}

static void
ks_budget_bar_init (KsBudgetBar *self)
{
  AdwStyleManager *style = adw_style_manager_get_default ();

  for (int i = 0; i < KS_BUDGET_N_PART; i++)
    self->swatches[i] = ks_swatch_new_hidden (part_classes[i], GTK_WIDGET (self));
  self->trough = ks_swatch_new_hidden ("trough", GTK_WIDGET (self));
  gtk_widget_set_overflow (GTK_WIDGET (self), GTK_OVERFLOW_HIDDEN);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Memory in use"), -1);
  g_signal_connect_object (style, "notify::dark", G_CALLBACK (gtk_widget_queue_draw), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (style, "notify::high-contrast", G_CALLBACK (gtk_widget_queue_draw), self,
                           G_CONNECT_SWAPPED);
  ks_budget_bar_set_usage (self, NULL, 0);
}

GtkWidget *
ks_budget_bar_new (void)
{
  return g_object_new (KS_TYPE_BUDGET_BAR, NULL);
}

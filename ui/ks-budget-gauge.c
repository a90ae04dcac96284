/* ks-budget-gauge.c - see ks-budget-gauge.h.
 * The slider's adjustment counts steps of equal ratio between the ends of the range.  What the user
 * sets is sent by one timer: it starts with the first move, sends what is set when it runs out, and
 * starts again with the next move.  What comes from outside meanwhile waits until the user has let
 * the slider rest.
 * The gauge allocates its two children itself: the slider beside the bar is left out where it has
 * no room, and no size changes by that. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-budget-gauge.h"

#include "ui/ks-budget-bar.h"
#include "ui/ks-memory-words.h"
#include "ui/ks-resource.h"
#include "ui/ks-swatch.h"

#include <glib/gi18n.h>

#include <math.h>

#define N_STEP 400.0
#define MIB 1048576.0
#define SEND_PAUSE_MS 150
#define REST_MS 450
#define UPDATE_PAUSE_MS 100
#define SPACING_PX 6

struct _KsBudgetGauge {
  GtkWidget parent_instance;
  GtkWidget *button, *scale, *popover_scale;
  GtkPopover *popover;
  GtkAdjustment *adjustment;
  KsBudgetBar *bar;
  GtkInscription *numbers;
  GtkLabel *weights_label, *copy_label, *kept_label, *free_label, *scratch_label, *eyes_label,
      *let_go_label;
  GtkWidget *eyes_swatch, *eyes_name;
  GtkLabel *target_label, *min_label, *max_label;

  KsMemoryView *view; /* latest, may not be shown yet */
  guint64 min_bytes, max_bytes;
  guint64 target_bytes; /* in force */
  guint64 user_bytes;   /* set by the user, 0 when the slider rests */
  gboolean is_setting;  /* the program moves the slider */
  gint64 updated_us;
  guint send_id, rest_id, update_id;
};

G_DEFINE_FINAL_TYPE (KsBudgetGauge, ks_budget_gauge, GTK_TYPE_WIDGET)

enum { TARGET_CHANGED, N_SIGNAL };
static guint signals[N_SIGNAL];

/* --- bytes and steps --- */
static guint64
bytes_at (KsBudgetGauge *self, double step)
{
  double ratio = (double)self->max_bytes / (double)self->min_bytes, bytes;

  if (step <= 0)
    return self->min_bytes;
  if (step >= N_STEP)
    return self->max_bytes;
  bytes = (double)self->min_bytes * pow (ratio, step / N_STEP);
  bytes = round (bytes / MIB) * MIB;
  return (guint64)CLAMP (bytes, (double)self->min_bytes, (double)self->max_bytes);
}

static double
step_at (KsBudgetGauge *self, guint64 bytes)
{
  double ratio = (double)self->max_bytes / (double)self->min_bytes;

  if (bytes <= self->min_bytes)
    return 0;
  return MIN (log ((double)bytes / (double)self->min_bytes) / log (ratio) * N_STEP, N_STEP);
}

static gboolean
has_range (KsBudgetGauge *self)
{
  return self->min_bytes > 0 && self->max_bytes > self->min_bytes;
}

static guint64
shown_target (KsBudgetGauge *self)
{
  return self->user_bytes != 0 ? self->user_bytes : self->target_bytes;
}

/* --- showing --- */
static void
update_popover (KsBudgetGauge *self)
{
  const KsMemoryView *view = self->view;
  guint64 target = shown_target (self);
  g_autofree char *weights = ks_words_size (view == NULL ? 0 : view->weight_bytes);
  g_autofree char *copy = ks_words_size (view == NULL ? 0 : view->copy_bytes);
  g_autofree char *kept = ks_words_size (view == NULL ? 0 : view->kv_used_bytes);
  g_autofree char *room = NULL;
  g_autofree char *scratch = ks_words_size (view == NULL ? 0 : view->scratch_bytes);
  g_autofree char *eyes = ks_words_size (view == NULL ? 0 : view->eyes_bytes);
  gboolean sees = view != NULL && view->eyes_bytes > 0;
  g_autofree char *let_go =
      view == NULL ? g_strdup (_ ("No model is loaded")) : ks_words_let_go (view->n_evicted);
  g_autofree char *size = ks_words_size (target);
  g_autofree char *words =
      target == 0 ? g_strdup (_ ("No target")) : g_strdup_printf (_ ("Target: %s"), size);

  room = ks_words_size (view != NULL && view->kv_budget_bytes > view->kv_used_bytes
                            ? view->kv_budget_bytes - view->kv_used_bytes
                            : 0);
  gtk_label_set_text (self->weights_label, weights);
  gtk_label_set_text (self->copy_label, copy);
  gtk_label_set_text (self->kept_label, kept);
  gtk_label_set_text (self->free_label, room);
  gtk_label_set_text (self->scratch_label, scratch);
  gtk_label_set_text (self->eyes_label, eyes);
  gtk_widget_set_visible (self->eyes_swatch, sees);
  gtk_widget_set_visible (self->eyes_name, sees);
  gtk_widget_set_visible (GTK_WIDGET (self->eyes_label), sees);
  gtk_label_set_text (self->let_go_label, let_go);
  gtk_label_set_text (self->target_label, words);
}

static void
update_numbers (KsBudgetGauge *self)
{
  guint64 target = shown_target (self);
  guint64 used = self->view == NULL ? 0 : ks_memory_view_get_used_bytes (self->view);
  g_autofree char *numbers = NULL, *words = ks_words_memory (self->view), *label = NULL;

  if (self->view == NULL)
    numbers = g_strdup (_ ("No model"));
  else
    numbers = target == 0 ? ks_words_size (used) : ks_words_size_of (used, target);
  label = g_strdup_printf (_ ("Memory: %s"), numbers);
  gtk_inscription_set_text (self->numbers, numbers);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->button), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  label, GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, words, -1);
  ks_budget_bar_set_usage (self->bar, self->view, target);
}

static void
update (KsBudgetGauge *self)
{
  self->updated_us = g_get_monotonic_time ();
  update_numbers (self);
  if (gtk_widget_get_mapped (GTK_WIDGET (self->popover)))
    update_popover (self);
}

static gboolean
update_cb (gpointer data)
{
  KsBudgetGauge *self = data;

  self->update_id = 0;
  update (self);
  return G_SOURCE_REMOVE;
}

static void
queue_update (KsBudgetGauge *self)
{
  gint64 rest_ms =
      UPDATE_PAUSE_MS - (g_get_monotonic_time () - self->updated_us) / (G_USEC_PER_SEC / 1000);

  if (self->update_id != 0 || !gtk_widget_get_mapped (GTK_WIDGET (self)))
    return;
  if (rest_ms <= 0)
    update (self);
  else
    self->update_id = g_timeout_add ((guint)rest_ms, update_cb, self);
}

static void
popover_map_cb (KsBudgetGauge *self)
{
  update_popover (self);
}

static gboolean
query_tooltip_cb (GtkWidget *widget, int x, int y, gboolean keyboard, GtkTooltip *tooltip,
                  KsBudgetGauge *self)
{
  g_autofree char *words = ks_words_memory (self->view);

  gtk_tooltip_set_text (tooltip, words);
  return TRUE;
}

/* --- the slider --- */
static void
show_target_text (KsBudgetGauge *self)
{
  g_autofree char *text = ks_words_size (shown_target (self));
  GtkWidget *scales[] = {self->scale, self->popover_scale};

  for (gsize i = 0; i < G_N_ELEMENTS (scales); i++)
    gtk_accessible_update_property (GTK_ACCESSIBLE (scales[i]), GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT,
                                    text, -1);
  update_numbers (self);
  if (gtk_widget_get_mapped (GTK_WIDGET (self->popover)))
    update_popover (self);
}

static void
move_slider (KsBudgetGauge *self)
{
  if (has_range (self)) {
    self->is_setting = TRUE;
    gtk_adjustment_set_value (self->adjustment, step_at (self, self->target_bytes));
    self->is_setting = FALSE;
  }
  show_target_text (self);
}

static gboolean
rest_cb (gpointer data)
{
  KsBudgetGauge *self = data;

  self->rest_id = 0;
  self->user_bytes = 0;
  move_slider (self);
  return G_SOURCE_REMOVE;
}

static void
send_target (KsBudgetGauge *self)
{
  self->target_bytes = self->user_bytes;
  g_signal_emit (self, signals[TARGET_CHANGED], 0, self->user_bytes);
}

static gboolean
send_cb (gpointer data)
{
  KsBudgetGauge *self = data;

  self->send_id = 0;
  send_target (self);
  return G_SOURCE_REMOVE;
}

static void
value_changed_cb (KsBudgetGauge *self)
{
  if (self->is_setting || !has_range (self))
    return;
  self->user_bytes = bytes_at (self, gtk_adjustment_get_value (self->adjustment));
  if (self->send_id == 0)
    self->send_id = g_timeout_add (SEND_PAUSE_MS, send_cb, self);
  g_clear_handle_id (&self->rest_id, g_source_remove);
  self->rest_id = g_timeout_add (REST_MS, rest_cb, self);
  show_target_text (self);
}

/* --- public --- */
void
ks_budget_gauge_set_view (KsBudgetGauge *self, const KsMemoryView *view)
{
  g_return_if_fail (KS_IS_BUDGET_GAUGE (self));

  if (view == NULL && self->view == NULL)
    return;
  ks_memory_view_free (self->view);
  self->view = view == NULL ? NULL : ks_memory_view_copy (view);
  queue_update (self);
}

void
ks_budget_gauge_set_range (KsBudgetGauge *self, guint64 min_bytes, guint64 max_bytes)
{
  g_autofree char *min_text = ks_words_size (min_bytes), *max_text = ks_words_size (max_bytes);

  g_return_if_fail (KS_IS_BUDGET_GAUGE (self));

  self->min_bytes = min_bytes;
  self->max_bytes = max_bytes;
  gtk_widget_set_sensitive (self->scale, has_range (self));
  gtk_widget_set_sensitive (self->popover_scale, has_range (self));
  gtk_label_set_text (self->min_label, has_range (self) ? min_text : "");
  gtk_label_set_text (self->max_label, has_range (self) ? max_text : "");
  if (self->user_bytes == 0)
    move_slider (self);
}

void
ks_budget_gauge_set_target (KsBudgetGauge *self, guint64 target_bytes)
{
  g_return_if_fail (KS_IS_BUDGET_GAUGE (self));

  if (self->target_bytes == target_bytes)
    return;
  self->target_bytes = target_bytes;
  if (self->user_bytes == 0)
    move_slider (self);
}

GtkWidget *
ks_budget_gauge_new (void)
{
  return g_object_new (KS_TYPE_BUDGET_GAUGE, NULL);
}

/* --- widget --- */
static void
ks_budget_gauge_measure (GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                         int *natural, int *minimum_baseline, int *natural_baseline)
{
  KsBudgetGauge *self = KS_BUDGET_GAUGE (widget);
  int scale_minimum, scale_natural;

  gtk_widget_measure (self->button, orientation, -1, minimum, natural, NULL, NULL);
  gtk_widget_measure (self->scale, orientation, -1, &scale_minimum, &scale_natural, NULL, NULL);
  if (orientation == GTK_ORIENTATION_HORIZONTAL)
    *natural += SPACING_PX + scale_natural;
  else {
    *minimum = MAX (*minimum, scale_minimum);
    *natural = MAX (*natural, scale_natural);
  }
}

static void
ks_budget_gauge_size_allocate (GtkWidget *widget, int width, int height, int baseline)
{
  KsBudgetGauge *self = KS_BUDGET_GAUGE (widget);
  int button_width, scale_width;
  gboolean fits, is_rtl = gtk_widget_get_direction (widget) == GTK_TEXT_DIR_RTL;
  GtkAllocation button = {0, 0, width, height}, scale = {0, 0, 0, height};

  gtk_widget_measure (self->button, GTK_ORIENTATION_HORIZONTAL, -1, &button_width, NULL, NULL,
                      NULL);
  gtk_widget_measure (self->scale, GTK_ORIENTATION_HORIZONTAL, -1, &scale_width, NULL, NULL, NULL);
  fits = width >= button_width + SPACING_PX + scale_width;
  gtk_widget_set_child_visible (self->scale, fits);
  if (fits) {
    scale.width = scale_width;
    button.width = width - scale_width - SPACING_PX;
    scale.x = is_rtl ? 0 : button.width + SPACING_PX;
    button.x = is_rtl ? scale_width + SPACING_PX : 0;
    gtk_widget_size_allocate (self->scale, &scale, -1);
  }
  gtk_widget_size_allocate (self->button, &button, -1);
}

static void
ks_budget_gauge_map (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (ks_budget_gauge_parent_class)->map (widget);
  update (KS_BUDGET_GAUGE (widget));
}

/* Nothing is sent or shown by a gauge that nobody sees; what the user had set last still counts. */
static void
ks_budget_gauge_unmap (GtkWidget *widget)
{
  KsBudgetGauge *self = KS_BUDGET_GAUGE (widget);

  g_clear_handle_id (&self->update_id, g_source_remove);
  if (self->send_id != 0) {
    g_clear_handle_id (&self->send_id, g_source_remove);
    send_target (self);
  }
  GTK_WIDGET_CLASS (ks_budget_gauge_parent_class)->unmap (widget);
}

static void
ks_budget_gauge_dispose (GObject *object)
{
  KsBudgetGauge *self = KS_BUDGET_GAUGE (object);

  g_clear_handle_id (&self->send_id, g_source_remove);
  g_clear_handle_id (&self->rest_id, g_source_remove);
  g_clear_handle_id (&self->update_id, g_source_remove);
  gtk_widget_dispose_template (GTK_WIDGET (self), KS_TYPE_BUDGET_GAUGE);
  G_OBJECT_CLASS (ks_budget_gauge_parent_class)->dispose (object);
}

static void
ks_budget_gauge_finalize (GObject *object)
{
  ks_memory_view_free (KS_BUDGET_GAUGE (object)->view);
  G_OBJECT_CLASS (ks_budget_gauge_parent_class)->finalize (object);
}

static void
bind_children (GtkWidgetClass *widget_class)
{
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, adjustment);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, bar);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, button);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, free_label);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, copy_label);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, eyes_label);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, eyes_name);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, eyes_swatch);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, kept_label);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, let_go_label);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, max_label);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, min_label);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, numbers);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, popover);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, popover_scale);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, scale);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, scratch_label);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, target_label);
  gtk_widget_class_bind_template_child (widget_class, KsBudgetGauge, weights_label);
  gtk_widget_class_bind_template_callback (widget_class, popover_map_cb);
  gtk_widget_class_bind_template_callback (widget_class, value_changed_cb);
}

static void
ks_budget_gauge_class_init (KsBudgetGaugeClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->dispose = ks_budget_gauge_dispose;
  object_class->finalize = ks_budget_gauge_finalize;
  widget_class->measure = ks_budget_gauge_measure;
  widget_class->size_allocate = ks_budget_gauge_size_allocate;
  widget_class->map = ks_budget_gauge_map;
  widget_class->unmap = ks_budget_gauge_unmap;
  signals[TARGET_CHANGED] =
      g_signal_new ("target-changed", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                    NULL, G_TYPE_NONE, 1, G_TYPE_UINT64);
  g_type_ensure (KS_TYPE_BUDGET_BAR);
  g_type_ensure (KS_TYPE_SWATCH);
  gtk_widget_class_set_css_name (widget_class, "budgetgauge");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-budget-gauge.ui");
  bind_children (widget_class);
}

static void
ks_budget_gauge_init (KsBudgetGauge *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Memory"), -1);
  gtk_widget_set_has_tooltip (self->button, TRUE);
  g_signal_connect (self->button, "query-tooltip", G_CALLBACK (query_tooltip_cb), self);
  gtk_widget_set_tooltip_text (self->scale, _ ("Memory target"));
  ks_budget_gauge_set_range (self, 0, 0);
}

/* ks-window-header.c - see ks-window-header.h.  A header bar packs start, centre and end and lets
 * the title push the rest aside; here every width is dealt out in the order of what is needed most.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-window-header.h"

#include "ui/ks-budget-gauge.h"
#include "ui/ks-resource.h"

#include <adwaita.h>

#define WHOLE_BAR_PX 2000 /* all of the bar is taken, whatever the title's length */
#define SPACING_PX 6
#define WIDEST_PX 10000
#define READABLE_PX 120 /* of a title, before the gauge gets more than it needs */

struct _KsWindowHeader {
  GtkWidget parent_instance;

  GtkWidget *sessions_button;
  GtkWidget *new_button;
  GtkWidget *title;
  GtkWidget *gauge;
  GtkWidget *memory_button;
  GtkWidget *menu_button;
};

G_DEFINE_FINAL_TYPE (KsWindowHeader, ks_window_header, GTK_TYPE_WIDGET)

static int
measure (GtkWidget *widget, int *out_natural)
{
  int minimum = 0;
  int natural = 0;

  gtk_widget_measure (widget, GTK_ORIENTATION_HORIZONTAL, -1, &minimum, &natural, NULL, NULL);
  if (out_natural != NULL)
    *out_natural = natural;
  return minimum;
}

static int
measure_needed (KsWindowHeader *self)
{
  return measure (self->sessions_button, NULL) + measure (self->gauge, NULL) +
         measure (self->menu_button, NULL) + 2 * SPACING_PX;
}

static void
ks_window_header_measure (GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                          int *natural, int *minimum_baseline, int *natural_baseline)
{
  KsWindowHeader *self = KS_WINDOW_HEADER (widget);

  *minimum = *natural = 0;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child)) {
    int child_minimum = 0;
    int child_natural = 0;

    gtk_widget_measure (child, orientation, -1, &child_minimum, &child_natural, NULL, NULL);
    if (orientation == GTK_ORIENTATION_HORIZONTAL) {
      *natural += child_natural + SPACING_PX;
    } else {
      *minimum = MAX (*minimum, child_minimum);
      *natural = MAX (*natural, child_natural);
    }
  }
  if (orientation == GTK_ORIENTATION_HORIZONTAL) {
    *minimum = measure_needed (self);
    *natural = MAX (*natural, WHOLE_BAR_PX);
  }
}

/* Takes the widget's width out of what is left; FALSE when it is hidden for want of room. */
static gboolean
take_room (GtkWidget *widget, int *left)
{
  int width = measure (widget, NULL) + SPACING_PX;
  gboolean fits = *left >= width;

  gtk_widget_set_child_visible (widget, fits);
  if (fits)
    *left -= width;
  return fits;
}

static void
place (KsWindowHeader *self, GtkWidget *widget, int x, int width, int height)
{
  gboolean is_rtl = gtk_widget_get_direction (GTK_WIDGET (self)) == GTK_TEXT_DIR_RTL;
  int all = gtk_widget_get_width (GTK_WIDGET (self));
  GtkAllocation allocation = {is_rtl ? all - x - width : x, 0, width, height};

  gtk_widget_size_allocate (widget, &allocation, -1);
}

static void
ks_window_header_size_allocate (GtkWidget *widget, int width, int height, int baseline)
{
  KsWindowHeader *self = KS_WINDOW_HEADER (widget);
  int gauge_natural = 0, title_natural = 0, start = 0, end = width;
  int gauge_width = measure (self->gauge, &gauge_natural);
  int title_width = measure (self->title, &title_natural);
  int left = width - measure_needed (self);
  gboolean has_memory = take_room (self->memory_button, &left);
  gboolean has_new = take_room (self->new_button, &left);
  gboolean has_title = take_room (self->title, &left);
  int more =
      has_title ? CLAMP (MIN (title_natural, READABLE_PX) - title_width, 0, MAX (left, 0)) : 0;

  title_width += more;
  left -= more;
  more = CLAMP (gauge_natural - gauge_width, 0, MAX (left, 0));
  gauge_width += more;
  left -= more;
  title_width = MIN (title_natural, title_width + MAX (left, 0));

  place (self, self->sessions_button, start, measure (self->sessions_button, NULL), height);
  start += measure (self->sessions_button, NULL) + SPACING_PX;
  if (has_new) {
    place (self, self->new_button, start, measure (self->new_button, NULL), height);
    start += measure (self->new_button, NULL) + SPACING_PX;
  }
  end -= measure (self->menu_button, NULL);
  place (self, self->menu_button, end, measure (self->menu_button, NULL), height);
  if (has_memory) {
    end -= measure (self->memory_button, NULL) + SPACING_PX;
    place (self, self->memory_button, end, measure (self->memory_button, NULL), height);
  }
  end -= gauge_width + SPACING_PX;
  place (self, self->gauge, end, gauge_width, height);
  if (has_title) /* in the middle, or as near to it as there is room */
    place (self, self->title,
           CLAMP ((width - title_width) / 2, start, MAX (start, end - SPACING_PX - title_width)),
           title_width, height);
}

void
ks_window_header_set_title (KsWindowHeader *self, const char *title, const char *subtitle)
{
  g_return_if_fail (KS_IS_WINDOW_HEADER (self));
  adw_window_title_set_title (ADW_WINDOW_TITLE (self->title), title);
  adw_window_title_set_subtitle (ADW_WINDOW_TITLE (self->title), subtitle);
  gtk_widget_set_tooltip_text (self->title, title);
}

GtkWidget *
ks_window_header_get_gauge (KsWindowHeader *self)
{
  g_return_val_if_fail (KS_IS_WINDOW_HEADER (self), NULL);
  return self->gauge;
}

static void
ks_window_header_dispose (GObject *object)
{
  GtkWidget *child = NULL;

  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_WINDOW_HEADER);
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (object))) != NULL)
    gtk_widget_unparent (child);
  G_OBJECT_CLASS (ks_window_header_parent_class)->dispose (object);
}

static void
ks_window_header_class_init (KsWindowHeaderClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_window_header_dispose;
  widget_class->measure = ks_window_header_measure;
  widget_class->size_allocate = ks_window_header_size_allocate;
  g_type_ensure (KS_TYPE_BUDGET_GAUGE);
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-window-header.ui");
  gtk_widget_class_bind_template_child (widget_class, KsWindowHeader, sessions_button);
  gtk_widget_class_bind_template_child (widget_class, KsWindowHeader, new_button);
  gtk_widget_class_bind_template_child (widget_class, KsWindowHeader, title);
  gtk_widget_class_bind_template_child (widget_class, KsWindowHeader, gauge);
  gtk_widget_class_bind_template_child (widget_class, KsWindowHeader, memory_button);
  gtk_widget_class_bind_template_child (widget_class, KsWindowHeader, menu_button);
}

static void
ks_window_header_init (KsWindowHeader *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
}

GtkWidget *
ks_window_header_new (void)
{
  return g_object_new (KS_TYPE_WINDOW_HEADER, NULL);
}

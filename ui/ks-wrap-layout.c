/* ks-wrap-layout.c - see ks-wrap-layout.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-wrap-layout.h"

struct _KsWrapLayout {
  GtkLayoutManager parent_instance;

  int column_px, spacing_px;
};

G_DEFINE_FINAL_TYPE (KsWrapLayout, ks_wrap_layout, GTK_TYPE_LAYOUT_MANAGER)

/* Of the children that are shown. */
typedef struct {
  int n, minimum, natural;
} Needs;

typedef struct {
  int n_column, width;
} Columns;

static GtkWidget *
next_shown (GtkWidget *child)
{
  while (child != NULL && !gtk_widget_should_layout (child))
    child = gtk_widget_get_next_sibling (child);
  return child;
}

static GtkWidget *
first_of (GtkWidget *widget)
{
  return next_shown (gtk_widget_get_first_child (widget));
}

static GtkWidget *
next_of (GtkWidget *child)
{
  return next_shown (gtk_widget_get_next_sibling (child));
}

static Needs
measure_children (GtkWidget *widget)
{
  Needs needs = {0};

  for (GtkWidget *child = first_of (widget); child != NULL; child = next_of (child)) {
    int minimum = 0, natural = 0;

    gtk_widget_measure (child, GTK_ORIENTATION_HORIZONTAL, -1, &minimum, &natural, NULL, NULL);
    needs.n++;
    needs.minimum = MAX (needs.minimum, minimum);
    needs.natural = MAX (needs.natural, natural);
  }
  return needs;
}

static Columns
make_columns (KsWrapLayout *self, Needs needs, int width)
{
  int least = MIN (needs.natural, MAX (needs.minimum, self->column_px));
  Columns columns = {.n_column = 1};

  columns.n_column = (width + self->spacing_px) / MAX (1, least + self->spacing_px);
  columns.n_column = CLAMP (columns.n_column, 1, MAX (1, needs.n));
  columns.width = (width - (columns.n_column - 1) * self->spacing_px) / columns.n_column;
  columns.width = MAX (needs.minimum, MIN (needs.natural, columns.width));
  return columns;
}

/* Of the row that begins with *child, which becomes the first of the next one. */
static int
measure_row (GtkWidget **child, Columns columns)
{
  int height = 0;

  for (int i = 0; i < columns.n_column && *child != NULL; i++, *child = next_of (*child)) {
    int natural = 0;

    gtk_widget_measure (*child, GTK_ORIENTATION_VERTICAL, columns.width, NULL, &natural, NULL,
                        NULL);
    height = MAX (height, natural);
  }
  return height;
}

static void
ks_wrap_layout_measure (GtkLayoutManager *layout, GtkWidget *widget, GtkOrientation orientation,
                        int for_size, int *minimum, int *natural, int *minimum_baseline,
                        int *natural_baseline)
{
  KsWrapLayout *self = KS_WRAP_LAYOUT (layout);
  Needs needs = measure_children (widget);
  int one_row = needs.n * (needs.natural + self->spacing_px) - self->spacing_px;
  int height = 0;

  if (orientation == GTK_ORIENTATION_HORIZONTAL) {
    *minimum = needs.minimum;
    *natural = MAX (0, one_row);
    return;
  }
  for (GtkWidget *child = first_of (widget); child != NULL;) {
    Columns columns = make_columns (self, needs, for_size < 0 ? one_row : for_size);

    height += (height > 0 ? self->spacing_px : 0) + measure_row (&child, columns);
  }
  *minimum = *natural = height;
}

static void
ks_wrap_layout_allocate (GtkLayoutManager *layout, GtkWidget *widget, int width, int height,
                         int baseline)
{
  KsWrapLayout *self = KS_WRAP_LAYOUT (layout);
  Columns columns = make_columns (self, measure_children (widget), width);
  int step = columns.width + self->spacing_px;
  int used = columns.n_column * step - self->spacing_px;
  gboolean is_rtl = gtk_widget_get_direction (widget) == GTK_TEXT_DIR_RTL;
  GtkAllocation place = {.width = columns.width};

  for (GtkWidget *child = first_of (widget); child != NULL;) {
    GtkWidget *next = child;

    place.height = measure_row (&next, columns);
    place.x = is_rtl ? used - columns.width : width - used;
    for (; child != next; child = next_of (child)) {
      gtk_widget_size_allocate (child, &place, -1);
      place.x += is_rtl ? -step : step;
    }
    place.y += place.height + self->spacing_px;
  }
}

static GtkSizeRequestMode
ks_wrap_layout_get_request_mode (GtkLayoutManager *layout, GtkWidget *widget)
{
  return GTK_SIZE_REQUEST_HEIGHT_FOR_WIDTH;
}

static void
ks_wrap_layout_class_init (KsWrapLayoutClass *klass)
{
  GtkLayoutManagerClass *layout_class = GTK_LAYOUT_MANAGER_CLASS (klass);

  layout_class->measure = ks_wrap_layout_measure;
  layout_class->allocate = ks_wrap_layout_allocate;
  layout_class->get_request_mode = ks_wrap_layout_get_request_mode;
}

static void
ks_wrap_layout_init (KsWrapLayout *self)
{
}

GtkLayoutManager *
ks_wrap_layout_new (int column_px, int spacing_px)
{
  KsWrapLayout *self = g_object_new (KS_TYPE_WRAP_LAYOUT, NULL);

  self->column_px = column_px;
  self->spacing_px = spacing_px;
  return GTK_LAYOUT_MANAGER (self);
}

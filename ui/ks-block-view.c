/* ks-block-view.c - see ks-block-view.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-block-view.h"

#include "ui/ks-code-view.h"
#include "ui/ks-compat.h"
#include "ui/ks-markdown-internal.h"

#include <glib/gi18n.h>

#include <string.h>

#define INDENT_PX 24
#define QUOTE_PX 14
/* Deeper ones stay where these are, or narrow windows had no room for words. */
#define MAX_INDENTS 6
#define MAX_QUOTES 4
/* Least width of a text that has as much to say.  Without one a label measures how high it would be
 * at one letter a line, which costs many times what showing it does. */
#define LEAST_CHARS 14
#define LEAST_CHARS_DEEP 8
#define CELL_CHARS 36

struct _KsBlockView {
  GtkWidget parent_instance;

  GtkWidget *marker; /* NULL until a block has one */
  GtkWidget *content;
  GtkWidget *grid; /* of a table, in content */
  guint n_rows;    /* in grid */
  KsMarkdownBlock *block;
  guint n_lines;
};

G_DEFINE_FINAL_TYPE (KsBlockView, ks_block_view, GTK_TYPE_WIDGET)

/* A link is followed in the user's program for it; addresses of other kinds are no links. */
static gboolean
activate_link_cb (GtkLabel *label, const char *uri, gpointer data)
{
  ks_open_uri (GTK_WIDGET (label), uri);
  return GDK_EVENT_STOP;
}

static GtkWidget *
make_label (void)
{
  GtkWidget *label = gtk_label_new (NULL);

  gtk_label_set_wrap (GTK_LABEL (label), TRUE);
  gtk_label_set_natural_wrap_mode (GTK_LABEL (label), GTK_NATURAL_WRAP_NONE);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_selectable (GTK_LABEL (label), TRUE);
  g_signal_connect (label, "activate-link", G_CALLBACK (activate_link_cb), NULL);
  return label;
}

/* --- text --- */

static gboolean
is_long (const char *text)
{
  return g_utf8_strlen (text, 4 * LEAST_CHARS) >= LEAST_CHARS;
}

static void
update_label (KsBlockView *self)
{
  static const char *const headings[] = {"title-2", "title-3", "title-4", "heading"};
  GtkLabel *label = GTK_LABEL (self->content);
  guint level = self->block->kind == KS_BLOCK_HEADING ? MIN (self->block->level, 4) : 0;
  gboolean is_deep = FALSE;

  for (guint i = 0; i < G_N_ELEMENTS (headings); i++) {
    if (i + 1 == level)
      gtk_widget_add_css_class (self->content, headings[i]);
    else
      gtk_widget_remove_css_class (self->content, headings[i]);
  }
  /* Layout of an unbroken run between words only would be quadratic. */
  gtk_label_set_wrap_mode (label,
                           self->block->wrap_anywhere ? PANGO_WRAP_CHAR : PANGO_WRAP_WORD_CHAR);
  gtk_label_set_markup (label, self->block->markup);
  is_deep = self->block->list_depth > 2 || self->block->quote_depth > 2;
  gtk_label_set_width_chars (label, is_long (gtk_label_get_text (label))
                                        ? (is_deep ? LEAST_CHARS_DEEP : LEAST_CHARS)
                                        : -1);
}

/* --- tables --- */

/* Cells have one width, narrow or wide: what scrolls sideways is given the height that it needs at
 * its smallest width, so a cell that could be squeezed would leave a void below it. */
static void
set_cell_text (GtkLabel *label, const char *markup)
{
  const char *text = NULL;
  int n_char = 0;
  guint run = 0;

  gtk_label_set_markup (label, markup);
  text = gtk_label_get_text (label);
  for (const char *p = text; *p != '\0'; p = g_utf8_next_char (p))
    n_char += g_unichar_iswide (g_utf8_get_char (p)) ? 2 : 1;
  gtk_label_set_wrap (label, n_char > CELL_CHARS);
  gtk_label_set_wrap_mode (label, ks_markdown_longest_run (text, strlen (text), &run) > CELL_CHARS
                                      ? PANGO_WRAP_CHAR
                                      : PANGO_WRAP_WORD_CHAR);
  gtk_label_set_width_chars (label, n_char > CELL_CHARS ? CELL_CHARS : -1);
  gtk_label_set_max_width_chars (label, n_char > CELL_CHARS ? CELL_CHARS : -1);
}

static GtkWidget *
make_cell (const KsMarkdownTable *table, guint row, guint column)
{
  GtkWidget *label = make_label ();
  char align = table->align[column];

  gtk_label_set_xalign (GTK_LABEL (label), align == 'c' ? 0.5f : align == 'r' ? 1.0f : 0.0f);
  gtk_label_set_yalign (GTK_LABEL (label), 0);
  set_cell_text (GTK_LABEL (label), table->cells[row * table->n_columns + column]);
  gtk_widget_add_css_class (label, "cell");
  if (row == 0)
    gtk_widget_add_css_class (label, "heading");
  return label;
}

/* What is missing of a table that is too large, NULL when nothing is. */
static GtkWidget *
make_table_note (const KsMarkdownTable *table, guint n_rows)
{
  g_autofree char *text = NULL;
  GtkWidget *label = NULL;

  if (table->n_columns < table->n_all_columns)
    text = g_strdup_printf (_ ("The first %u of %u columns are shown."), table->n_columns,
                            table->n_all_columns);
  else if (n_rows == table->n_rows && table->n_rows < table->n_all_rows)
    text = g_strdup_printf (_ ("The first %u of %u rows are shown."), table->n_rows,
                            table->n_all_rows);
  if (text == NULL)
    return NULL;
  label = gtk_label_new (text);
  gtk_label_set_wrap (GTK_LABEL (label), TRUE);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_widget_add_css_class (label, "caption");
  gtk_widget_add_css_class (label, "dim-label");
  return label;
}

static void
name_table (GtkWidget *grid, const KsMarkdownTable *table)
{
  /* Translators: two numbers, of columns and of rows. */
  g_autofree char *name =
      g_strdup_printf (_ ("Table, columns: %u, rows: %u"), table->n_all_columns, table->n_all_rows);

  gtk_accessible_update_property (GTK_ACCESSIBLE (grid), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
}

static void
add_rows (KsBlockView *self, const KsMarkdownTable *table, guint n_rows)
{
  for (guint row = self->n_rows; row < n_rows; row++)
    for (guint column = 0; column < table->n_columns; column++)
      gtk_grid_attach (GTK_GRID (self->grid), make_cell (table, row, column), (int)column, (int)row,
                       1, 1);
  self->n_rows = MAX (self->n_rows, n_rows);
}

/* A table that only grew keeps its cells. */
static gboolean
grow_table (KsBlockView *self, const KsMarkdownTable *old, guint n_rows)
{
  const KsMarkdownTable *table = self->block->table;

  if (old == NULL || self->grid == NULL || old->n_columns != table->n_columns ||
      old->n_all_columns != table->n_all_columns || n_rows < self->n_rows ||
      self->n_rows > old->n_rows || memcmp (old->align, table->align, table->n_columns) != 0)
    return FALSE;
  for (guint i = 0; i < self->n_rows * table->n_columns; i++) {
    GtkWidget *cell = NULL;

    if (strcmp (old->cells[i], table->cells[i]) == 0)
      continue;
    cell = gtk_grid_get_child_at (GTK_GRID (self->grid), (int)(i % table->n_columns),
                                  (int)(i / table->n_columns));
    set_cell_text (GTK_LABEL (cell), table->cells[i]);
  }
  add_rows (self, table, n_rows);
  return TRUE;
}

static void
fill_table (KsBlockView *self, const KsMarkdownTable *old)
{
  const KsMarkdownTable *table = self->block->table;
  guint n_rows = MIN (table->n_rows, MAX (self->n_lines, 2));
  GtkWidget *note = gtk_widget_get_last_child (self->content);

  if (note != NULL && GTK_IS_LABEL (note))
    gtk_box_remove (GTK_BOX (self->content), note);
  if (!grow_table (self, old, n_rows)) {
    GtkWidget *scroller = gtk_widget_get_first_child (self->content);

    if (scroller == NULL) {
      scroller = gtk_scrolled_window_new ();
      gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_AUTOMATIC,
                                      GTK_POLICY_NEVER);
      gtk_scrolled_window_set_propagate_natural_width (GTK_SCROLLED_WINDOW (scroller), TRUE);
      gtk_box_append (GTK_BOX (self->content), scroller);
    }
    self->grid = gtk_grid_new ();
    self->n_rows = 0;
    gtk_widget_add_css_class (self->grid, "table");
    gtk_widget_set_halign (self->grid, GTK_ALIGN_START);
    add_rows (self, table, n_rows);
    gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), self->grid);
  }
  name_table (self->grid, table);
  note = make_table_note (table, n_rows);
  if (note != NULL)
    gtk_box_append (GTK_BOX (self->content), note);
}

/* --- the block --- */

static GtkWidget *
make_content (KsBlockKind kind)
{
  switch (kind) {
  case KS_BLOCK_CODE:
    return ks_code_view_new ();
  case KS_BLOCK_TABLE:
    return gtk_box_new (GTK_ORIENTATION_VERTICAL, 4);
  case KS_BLOCK_RULE:
    return gtk_separator_new (GTK_ORIENTATION_HORIZONTAL);
  case KS_BLOCK_PARAGRAPH:
  case KS_BLOCK_HEADING:
  default:
    return make_label ();
  }
}

static gboolean
is_text (KsBlockKind kind)
{
  return kind == KS_BLOCK_PARAGRAPH || kind == KS_BLOCK_HEADING;
}

static void
update_marker (KsBlockView *self)
{
  const char *marker = self->block->marker;

  if (self->marker == NULL && marker == NULL)
    return;
  if (self->marker == NULL) {
    self->marker = gtk_label_new (NULL);
    gtk_label_set_xalign (GTK_LABEL (self->marker), 1);
    gtk_label_set_yalign (GTK_LABEL (self->marker), 0);
    gtk_widget_set_size_request (self->marker, INDENT_PX - 8, -1);
    gtk_widget_set_margin_end (self->marker, 8);
    gtk_widget_add_css_class (self->marker, "marker");
    gtk_widget_add_css_class (self->marker, "numeric");
    gtk_widget_insert_after (self->marker, GTK_WIDGET (self), NULL);
  }
  gtk_widget_set_visible (self->marker, marker != NULL);
  gtk_label_set_text (GTK_LABEL (self->marker), marker == NULL ? "" : marker);
}

static void
set_class (KsBlockView *self, const char *name, gboolean is_set)
{
  if (is_set)
    gtk_widget_add_css_class (GTK_WIDGET (self), name);
  else
    gtk_widget_remove_css_class (GTK_WIDGET (self), name);
}

/* Where the block stands: a quote's bar is at the outer edge, lists are indented inside of it. */
static void
update_shape (KsBlockView *self)
{
  const KsMarkdownBlock *block = self->block;
  guint steps = block->list_depth - (block->marker != NULL ? 1 : 0);
  GtkWidget *first = block->marker != NULL ? self->marker : self->content;
  guint quote_steps = block->quote_depth > 1 ? block->quote_depth - 1 : 0;

  update_marker (self);
  first = block->marker != NULL ? self->marker : self->content;
  if (first == self->marker)
    gtk_widget_set_margin_start (self->content, 0);
  gtk_widget_set_margin_start (first, (int)(MIN (steps, MAX_INDENTS) * INDENT_PX));
  gtk_widget_set_margin_start (GTK_WIDGET (self), (int)(MIN (quote_steps, MAX_QUOTES) * QUOTE_PX));
  set_class (self, "quote", block->quote_depth > 0);
  set_class (self, "item", block->list_depth > 0);
  set_class (self, "continues", block->continues);
  set_class (self, "head", block->kind == KS_BLOCK_HEADING);
}

void
ks_block_view_set_block (KsBlockView *self, KsMarkdownBlock *block, guint n_lines)
{
  g_autoptr (KsMarkdownBlock) old = NULL;
  gboolean same = FALSE;

  g_return_if_fail (KS_IS_BLOCK_VIEW (self) && block != NULL);
  if (self->block == block && self->n_lines == n_lines)
    return;
  old = g_steal_pointer (&self->block);
  self->block = ks_markdown_block_ref (block);
  self->n_lines = n_lines;
  same =
      old != NULL && (old->kind == block->kind || (is_text (old->kind) && is_text (block->kind)));
  if (!same) {
    g_clear_pointer (&self->content, gtk_widget_unparent);
    self->grid = NULL;
    self->content = make_content (block->kind);
    gtk_widget_set_hexpand (self->content, TRUE);
    gtk_widget_set_valign (self->content,
                           block->kind == KS_BLOCK_RULE ? GTK_ALIGN_CENTER : GTK_ALIGN_FILL);
    gtk_widget_insert_before (self->content, GTK_WIDGET (self), NULL);
  }
  update_shape (self);
  if (is_text (block->kind))
    update_label (self);
  else if (block->kind == KS_BLOCK_CODE)
    ks_code_view_set_block (KS_CODE_VIEW (self->content), block, n_lines);
  else if (block->kind == KS_BLOCK_TABLE)
    fill_table (self, same ? old->table : NULL);
}

/* Width of the marker, 0 when there is none. */
static int
get_marker_width (KsBlockView *self)
{
  int width = 0;

  if (self->marker != NULL && gtk_widget_get_visible (self->marker))
    gtk_widget_measure (self->marker, GTK_ORIENTATION_HORIZONTAL, -1, NULL, &width, NULL, NULL);
  return width;
}

/* A horizontal box asks its children for their width at a given height, which labels can only find
 * by laying out their text a dozen times: so marker and content are placed here. */
static void
ks_block_view_measure (GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                       int *natural, int *minimum_baseline, int *natural_baseline)
{
  KsBlockView *self = KS_BLOCK_VIEW (widget);
  int marker = get_marker_width (self), height = 0;

  if (self->content == NULL)
    return;
  if (orientation == GTK_ORIENTATION_HORIZONTAL) {
    gtk_widget_measure (self->content, orientation, -1, minimum, natural, NULL, NULL);
    *minimum += marker;
    *natural += marker;
    return;
  }
  if (for_size >= 0)
    for_size = MAX (0, for_size - marker);
  gtk_widget_measure (self->content, orientation, for_size, minimum, natural, NULL, NULL);
  if (marker > 0)
    gtk_widget_measure (self->marker, orientation, -1, NULL, &height, NULL, NULL);
  *minimum = MAX (*minimum, height);
  *natural = MAX (*natural, height);
}

static void
ks_block_view_size_allocate (GtkWidget *widget, int width, int height, int baseline)
{
  KsBlockView *self = KS_BLOCK_VIEW (widget);
  gboolean is_rtl = gtk_widget_get_direction (widget) == GTK_TEXT_DIR_RTL;
  int marker = MIN (get_marker_width (self), width);
  GtkAllocation place = {.width = width - marker, .height = height};

  if (self->content == NULL)
    return;
  place.x = is_rtl ? 0 : marker;
  gtk_widget_size_allocate (self->content, &place, -1);
  if (marker > 0) {
    place.x = is_rtl ? width - marker : 0;
    place.width = marker;
    gtk_widget_size_allocate (self->marker, &place, -1);
  }
}

static GtkSizeRequestMode
ks_block_view_get_request_mode (GtkWidget *widget)
{
  return GTK_SIZE_REQUEST_HEIGHT_FOR_WIDTH;
}

static void
ks_block_view_dispose (GObject *object)
{
  KsBlockView *self = KS_BLOCK_VIEW (object);

  g_clear_pointer (&self->marker, gtk_widget_unparent);
  g_clear_pointer (&self->content, gtk_widget_unparent);
  g_clear_pointer (&self->block, ks_markdown_block_unref);
  G_OBJECT_CLASS (ks_block_view_parent_class)->dispose (object);
}

static void
ks_block_view_class_init (KsBlockViewClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_block_view_dispose;
  widget_class->measure = ks_block_view_measure;
  widget_class->size_allocate = ks_block_view_size_allocate;
  widget_class->get_request_mode = ks_block_view_get_request_mode;
  gtk_widget_class_set_css_name (widget_class, "blockview");
}

static void
ks_block_view_init (KsBlockView *self)
{
}

GtkWidget *
ks_block_view_new (void)
{
  return g_object_new (KS_TYPE_BLOCK_VIEW, NULL);
}

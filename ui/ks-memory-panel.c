/* ks-memory-panel.c - see ks-memory-panel.h.
 * Rows of turns are made as they are needed and used again; a title is set only when it differs,
 * the rest of an update changes no size. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-memory-panel.h"

#include "ui/ks-kept-row.h"
#include "ui/ks-memory-words.h"
#include "ui/ks-picture-list.h"
#include "ui/ks-resource.h"
#include "ui/ks-retention-map.h"

#include <glib/gi18n.h>

#define UPDATE_PAUSE_MS 160
#define N_SINGLE_TURN 12 /* the newest turns have a row each */
#define N_GROUP 8        /* the older ones share these */

enum {
  ROW_TARGET,
  ROW_WEIGHTS,
  ROW_COPY,
  ROW_EYES,
  ROW_KEPT,
  ROW_SCRATCH,
  ROW_PROGRAM,
  ROW_READ,
  ROW_ENTRIES,
  ROW_PINNED,
  ROW_LET_GO,
  N_ROW
};

struct _KsMemoryPanel {
  GtkWidget parent_instance;
  GtkWidget *scroller, *numbers_grid, *no_turns, *turns_box;
  KsRetentionMap *map;
  KsPictureList *pictures;
  GtkWidget *keep_switch, *forecast;
  gboolean setting_keep; /* by the program, not by the user */
  GtkInscription *values[N_ROW];
  GArray *rows; /* of KsKeptRow, as many as were ever needed */
  guint n_row;  /* shown */
  char **labels;
  guint n_label;
  KsMemoryView *view; /* latest, may not be shown yet */
  gint64 updated_us;
  guint update_id;
};

enum { OPEN_PICTURE, KEEP_EVERYTHING, N_SIGNAL };

static guint signals[N_SIGNAL];

G_DEFINE_FINAL_TYPE (KsMemoryPanel, ks_memory_panel, GTK_TYPE_WIDGET)

/* --- numbers --- */
static void
set_value (KsMemoryPanel *self, int row, char *text)
{
  gtk_inscription_set_text (self->values[row], text);
  g_free (text);
}

static void
update_numbers (KsMemoryPanel *self, const KsMemoryView *view)
{
  static const char none[] = "–";

  if (view == NULL) {
    for (int i = 0; i < N_ROW; i++)
      gtk_inscription_set_text (self->values[i], none);
    return;
  }
  set_value (self, ROW_TARGET,
             view->target_bytes == 0
                 ? ks_words_size (ks_memory_view_get_used_bytes (view))
                 : ks_words_size_of (ks_memory_view_get_used_bytes (view), view->target_bytes));
  set_value (self, ROW_WEIGHTS, ks_words_size (view->weight_bytes));
  set_value (self, ROW_COPY, ks_words_size (view->copy_bytes));
  set_value (self, ROW_EYES, ks_words_size (view->eyes_bytes));
  set_value (self, ROW_KEPT, ks_words_size_of (view->kv_used_bytes, view->kv_budget_bytes));
  set_value (self, ROW_SCRATCH, ks_words_size (view->scratch_bytes));
  set_value (self, ROW_PROGRAM, ks_words_size (view->program_bytes));
  set_value (self, ROW_READ, ks_words_count (view->n_token));
  set_value (self, ROW_ENTRIES, ks_words_count (view->n_entries));
  set_value (self, ROW_PINNED, ks_words_count (view->n_pinned));
  set_value (self, ROW_LET_GO, ks_words_count (view->n_evicted));
}

static void
make_number_rows (KsMemoryPanel *self)
{
  const char *names[N_ROW];

  names[ROW_TARGET] = _ ("In use");
  names[ROW_WEIGHTS] = _ ("Weights");
  names[ROW_COPY] = _ ("Weights, repacked copy");
  names[ROW_EYES] = _ ("Vision and pictures");
  names[ROW_KEPT] = _ ("Kept");
  names[ROW_SCRATCH] = _ ("Scratch");
  names[ROW_PROGRAM] = _ ("Program beside it");
  names[ROW_READ] = _ ("Tokens so far");
  names[ROW_ENTRIES] = _ ("Entries kept");
  names[ROW_PINNED] = _ ("Of them pinned");
  names[ROW_LET_GO] = _ ("Entries let go");
  for (int i = 0; i < N_ROW; i++) {
    GtkWidget *name = gtk_label_new (names[i]);
    GtkWidget *value = gtk_inscription_new ("");

    gtk_label_set_xalign (GTK_LABEL (name), 0);
    gtk_label_set_ellipsize (GTK_LABEL (name), PANGO_ELLIPSIZE_END);
    gtk_widget_set_hexpand (name, TRUE);
    gtk_widget_add_css_class (name, "dim-label");
    gtk_widget_add_css_class (value, "numeric");
    g_object_set (value, "min-chars", 9, "nat-chars", 16, "xalign", 1.0f, "text-overflow",
                  GTK_INSCRIPTION_OVERFLOW_ELLIPSIZE_END, NULL);
    gtk_grid_attach (GTK_GRID (self->numbers_grid), name, 0, i, 1, 1);
    gtk_grid_attach (GTK_GRID (self->numbers_grid), value, 1, i, 1, 1);
    gtk_accessible_update_relation (GTK_ACCESSIBLE (value), GTK_ACCESSIBLE_RELATION_DESCRIBED_BY,
                                    name, NULL, -1);
    self->values[i] = GTK_INSCRIPTION (value);
  }
}

static void
update_forecast (KsMemoryPanel *self)
{
  g_autofree char *text =
      ks_words_forecast (self->view, gtk_switch_get_active (GTK_SWITCH (self->keep_switch)));

  if (g_strcmp0 (gtk_label_get_text (GTK_LABEL (self->forecast)), text) != 0)
    gtk_label_set_text (GTK_LABEL (self->forecast), text);
}

/* --- turns --- */
static KsKeptRow *
get_row (KsMemoryPanel *self, guint i)
{
  KsKeptRow row;

  if (i < self->rows->len)
    return &g_array_index (self->rows, KsKeptRow, i);
  row = ks_kept_row_new (PANGO_ELLIPSIZE_END);
  gtk_box_append (GTK_BOX (self->turns_box), row.box);
  g_array_append_val (self->rows, row);
  return &g_array_index (self->rows, KsKeptRow, self->rows->len - 1);
}

/* Share of the tokens of turns first to last, averaged over the streams. */
static double
share_of (const KsMemoryView *view, guint first, guint last)
{
  double kept = 0, n_token = 0;

  for (guint turn = first; turn <= last; turn++) {
    kept += ks_memory_view_get_turn_share (view, turn) * view->turn_tokens[turn];
    n_token += view->turn_tokens[turn];
  }
  return n_token > 0 ? kept / n_token : 0;
}

static char *
title_of (KsMemoryPanel *self, guint first, guint last)
{
  if (first != last)
    /* Translators: numbers of turns, "Turns 1–12" */
    return g_strdup_printf (_ ("Turns %u–%u"), first + 1, last + 1);
  if (first < self->n_label && *self->labels[first] != '\0')
    /* Translators: number and first words of a question: "Turn 3, “How many lines…”" */
    return g_strdup_printf (_ ("Turn %u, “%s”"), first + 1, self->labels[first]);
  return g_strdup_printf (_ ("Turn %u"), first + 1);
}

static gboolean
has_pin (const KsMemoryView *view, guint first, guint last)
{
  for (guint turn = first; view->pinned_turns != NULL && turn <= last; turn++)
    if (view->pinned_turns[turn])
      return TRUE;
  return FALSE;
}

static void
fill_row (KsMemoryPanel *self, KsKeptRow *row, guint first, guint last)
{
  double share = CLAMP (share_of (self->view, first, last), 0, 1);
  g_autofree char *title = title_of (self, first, last), *words = ks_words_share (share);
  gboolean pinned = has_pin (self->view, first, last);
  g_autofree char *sentence = ks_words_kept_row (title, words, pinned);

  if (g_strcmp0 (gtk_label_get_text (row->title), title) != 0) {
    gtk_label_set_text (row->title, title);
    gtk_widget_set_tooltip_text (GTK_WIDGET (row->title), title);
  }
  gtk_widget_set_visible (row->pin, pinned);
  gtk_inscription_set_text (row->share, words);
  gtk_level_bar_set_value (row->bar, share);
  gtk_accessible_update_property (GTK_ACCESSIBLE (row->bar), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  sentence, GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT, words, -1);
}

static void
update_turns (KsMemoryPanel *self, const KsMemoryView *view)
{
  gboolean has_turns = view != NULL && view->by_turn != NULL && view->turn_tokens != NULL;
  guint n_turn = has_turns ? view->n_turn : 0;
  guint n_old = n_turn > N_SINGLE_TURN ? n_turn - N_SINGLE_TURN : 0;
  guint n_group = MIN (n_old, N_GROUP), n_row = n_group + n_turn - n_old;

  for (guint i = 0; i < n_row; i++) {
    guint first, last;

    if (i < n_group) {
      first = (guint)((guint64)i * n_old / n_group);
      last = (guint)((guint64)(i + 1) * n_old / n_group) - 1;
    } else
      first = last = n_old + i - n_group;
    fill_row (self, get_row (self, i), first, last);
  }
  if (n_row == self->n_row)
    return;
  for (guint i = 0; i < self->rows->len; i++)
    gtk_widget_set_visible (get_row (self, i)->box, i < n_row);
  gtk_widget_set_visible (self->no_turns, n_row == 0);
  self->n_row = n_row;
}

/* --- updates --- */
static void
update (KsMemoryPanel *self)
{
  self->updated_us = g_get_monotonic_time ();
  update_numbers (self, self->view);
  update_forecast (self);
  ks_retention_map_set_view (self->map, self->view);
  ks_picture_list_set_view (self->pictures, self->view);
  update_turns (self, self->view);
}

static void
open_cb (KsPictureList *pictures, guint i, KsMemoryPanel *self)
{
  if (self->view != NULL && i < self->view->n_picture)
    g_signal_emit (self, signals[OPEN_PICTURE], 0, &self->view->pictures[i]);
}

static void
keep_cb (KsMemoryPanel *self)
{
  update_forecast (self);
  if (!self->setting_keep)
    g_signal_emit (self, signals[KEEP_EVERYTHING], 0,
                   gtk_switch_get_active (GTK_SWITCH (self->keep_switch)));
}

void
ks_memory_panel_set_keep (KsMemoryPanel *self, gboolean keep, gboolean can_change)
{
  g_return_if_fail (KS_IS_MEMORY_PANEL (self));

  self->setting_keep = TRUE;
  gtk_switch_set_active (GTK_SWITCH (self->keep_switch), keep);
  gtk_widget_set_sensitive (self->keep_switch, can_change);
  self->setting_keep = FALSE;
}

static gboolean
update_cb (gpointer data)
{
  KsMemoryPanel *self = data;

  self->update_id = 0;
  update (self);
  return G_SOURCE_REMOVE;
}

static void
queue_update (KsMemoryPanel *self)
{
  gint64 rest_ms =
      UPDATE_PAUSE_MS - (g_get_monotonic_time () - self->updated_us) / (G_USEC_PER_SEC / 1000);

  if (self->update_id == 0 && gtk_widget_get_mapped (GTK_WIDGET (self)))
    self->update_id = g_timeout_add ((guint)MAX (rest_ms, 0), update_cb, self);
}

void
ks_memory_panel_set_view (KsMemoryPanel *self, const KsMemoryView *view)
{
  g_return_if_fail (KS_IS_MEMORY_PANEL (self));

  if (view == NULL && self->view == NULL)
    return;
  ks_memory_view_free (self->view);
  self->view = view == NULL ? NULL : ks_memory_view_copy (view);
  queue_update (self);
}

void
ks_memory_panel_set_turn_labels (KsMemoryPanel *self, const char *const *labels)
{
  g_return_if_fail (KS_IS_MEMORY_PANEL (self));

  g_strfreev (self->labels);
  self->labels = g_strdupv ((char **)labels);
  self->n_label = self->labels == NULL ? 0 : g_strv_length (self->labels);
  queue_update (self);
}

GtkWidget *
ks_memory_panel_new (void)
{
  return g_object_new (KS_TYPE_MEMORY_PANEL, NULL);
}

static void
ks_memory_panel_map (GtkWidget *widget)
{
  gtk_widget_set_visible (KS_MEMORY_PANEL (widget)->scroller, TRUE);
  GTK_WIDGET_CLASS (ks_memory_panel_parent_class)->map (widget);
  update (KS_MEMORY_PANEL (widget));
}

static void
ks_memory_panel_unmap (GtkWidget *widget)
{
  g_clear_handle_id (&KS_MEMORY_PANEL (widget)->update_id, g_source_remove);
  GTK_WIDGET_CLASS (ks_memory_panel_parent_class)->unmap (widget);
}

static void
ks_memory_panel_dispose (GObject *object)
{
  g_clear_handle_id (&KS_MEMORY_PANEL (object)->update_id, g_source_remove);
  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_MEMORY_PANEL);
  G_OBJECT_CLASS (ks_memory_panel_parent_class)->dispose (object);
}

static void
ks_memory_panel_finalize (GObject *object)
{
  KsMemoryPanel *self = KS_MEMORY_PANEL (object);

  g_strfreev (self->labels);
  g_array_unref (self->rows);
  ks_memory_view_free (self->view);
  G_OBJECT_CLASS (ks_memory_panel_parent_class)->finalize (object);
}

static void
ks_memory_panel_class_init (KsMemoryPanelClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_memory_panel_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_memory_panel_finalize;
  widget_class->map = ks_memory_panel_map;
  widget_class->unmap = ks_memory_panel_unmap;
  signals[OPEN_PICTURE] = g_signal_new ("open-picture", KS_TYPE_MEMORY_PANEL, G_SIGNAL_RUN_LAST, 0,
                                        NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_POINTER);
  signals[KEEP_EVERYTHING] =
      g_signal_new ("keep-everything", KS_TYPE_MEMORY_PANEL, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                    G_TYPE_NONE, 1, G_TYPE_BOOLEAN);
  g_type_ensure (KS_TYPE_PICTURE_LIST);
  g_type_ensure (KS_TYPE_RETENTION_MAP);
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_REGION);
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-memory-panel.ui");
  gtk_widget_class_bind_template_child (widget_class, KsMemoryPanel, forecast);
  gtk_widget_class_bind_template_child (widget_class, KsMemoryPanel, keep_switch);
  gtk_widget_class_bind_template_child (widget_class, KsMemoryPanel, map);
  gtk_widget_class_bind_template_child (widget_class, KsMemoryPanel, no_turns);
  gtk_widget_class_bind_template_child (widget_class, KsMemoryPanel, numbers_grid);
  gtk_widget_class_bind_template_child (widget_class, KsMemoryPanel, pictures);
  gtk_widget_class_bind_template_child (widget_class, KsMemoryPanel, scroller);
  gtk_widget_class_bind_template_child (widget_class, KsMemoryPanel, turns_box);
}

static void
ks_memory_panel_init (KsMemoryPanel *self)
{
  self->rows = g_array_new (FALSE, FALSE, sizeof (KsKeptRow));
  gtk_widget_init_template (GTK_WIDGET (self));
  make_number_rows (self);
  g_signal_connect (self->pictures, "open", G_CALLBACK (open_cb), self);
  g_signal_connect_swapped (self->keep_switch, "notify::active", G_CALLBACK (keep_cb), self);
  /* Texts are measured also in a pane that is not shown: they wait for its first time. */
  gtk_widget_set_visible (self->scroller, FALSE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Memory panel"), -1);
}

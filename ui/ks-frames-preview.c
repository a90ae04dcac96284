/* ks-frames-preview.c - see ks-frames-preview.h.
 * Frames are cells of a grid view, which makes widgets for those that are seen. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-frames-preview.h"

#include "ui/ks-memory-words.h"
#include "ui/ks-texture.h"

#include <glib/gi18n.h>

#define REST_MS 400 /* a number is taken when it rests */
#define FRAME_WIDTH_PX 132
#define FRAME_HEIGHT_PX 84
#define MAX_COLUMNS 8
#define MIN_INTERVAL_S 0.1
#define MAX_INTERVAL_S 3600

/* One frame. */
#define KS_TYPE_FRAME_ITEM (ks_frame_item_get_type ())
G_DECLARE_FINAL_TYPE (KsFrameItem, ks_frame_item, KS, FRAME_ITEM, GObject)

struct _KsFrameItem {
  GObject parent_instance;
  GdkTexture *texture;
  gint64 time_us;
};

struct _KsFramesPreview {
  AdwBin parent_instance;
  GtkDropDown *mode;
  GtkSpinButton *n_frame, *interval;
  GtkWidget *choices, *n_frame_box, *interval_box, *scroller, *spinner;
  GtkLabel *n_frame_label, *summary, *problem, *sound;
  GListStore *frames; /* of KsFrameItem */
  guint chosen_source;
  gboolean in_pairs;
  gboolean is_updating; /* what changes is no wish of the user */
};

enum { CHOSEN, N_SIGNAL };

static guint signals[N_SIGNAL];

G_DEFINE_FINAL_TYPE (KsFrameItem, ks_frame_item, G_TYPE_OBJECT)
G_DEFINE_FINAL_TYPE (KsFramesPreview, ks_frames_preview, ADW_TYPE_BIN)

static void
ks_frame_item_finalize (GObject *object)
{
  g_clear_object (&KS_FRAME_ITEM (object)->texture);
  G_OBJECT_CLASS (ks_frame_item_parent_class)->finalize (object);
}

static void
ks_frame_item_class_init (KsFrameItemClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ks_frame_item_finalize;
}

static void
ks_frame_item_init (KsFrameItem *self)
{
}

char *
ks_frames_dup_time (gint64 time_us)
{
  guint64 tenths = (guint64)(MAX (time_us, 0) / (G_USEC_PER_SEC / 10));
  guint64 seconds = tenths / 10;

  if (seconds >= 3600)
    return g_strdup_printf ("%" G_GUINT64_FORMAT ":%02u:%02u", seconds / 3600,
                            (guint)(seconds / 60 % 60), (guint)(seconds % 60));
  return g_strdup_printf ("%u:%02u.%u", (guint)(seconds / 60), (guint)(seconds % 60),
                          (guint)(tenths % 10));
}

/* --- the choice --- */

static gboolean
rested_cb (gpointer data)
{
  KsFramesPreview *self = data;

  self->chosen_source = 0;
  g_signal_emit (self, signals[CHOSEN], 0);
  return G_SOURCE_REMOVE;
}

static void
show_mode (KsFramesPreview *self)
{
  guint mode = gtk_drop_down_get_selected (self->mode);

  gtk_widget_set_visible (self->interval_box, mode == KS_FRAMES_INTERVAL);
  gtk_label_set_text (self->n_frame_label,
                      mode == KS_FRAMES_COUNT ? _ ("Frames") : _ ("Frames at most"));
}

static void
changed_cb (KsFramesPreview *self)
{
  show_mode (self);
  if (self->is_updating)
    return;
  g_clear_handle_id (&self->chosen_source, g_source_remove);
  self->chosen_source = g_timeout_add (REST_MS, rested_cb, self);
}

void
ks_frames_preview_set_choice (KsFramesPreview *self, const KsFramesChoice *choice)
{
  g_return_if_fail (KS_IS_FRAMES_PREVIEW (self) && choice->mode < KS_N_FRAMES_MODE);
  if (self->chosen_source != 0)
    return; /* what the user chooses now is newer */
  self->is_updating = TRUE;
  gtk_drop_down_set_selected (self->mode, choice->mode);
  gtk_spin_button_set_value (self->n_frame, choice->n_frame);
  if (choice->interval_ms > 0)
    gtk_spin_button_set_value (self->interval, choice->interval_ms / 1000.0);
  self->is_updating = FALSE;
}

void
ks_frames_preview_get_choice (KsFramesPreview *self, KsFramesChoice *out_choice)
{
  g_return_if_fail (KS_IS_FRAMES_PREVIEW (self));
  out_choice->mode = (KsFramesMode)gtk_drop_down_get_selected (self->mode);
  out_choice->n_frame = (guint)gtk_spin_button_get_value_as_int (self->n_frame);
  out_choice->interval_ms = (guint)(gtk_spin_button_get_value (self->interval) * 1000 + 0.5);
}

/* --- what is shown --- */

static void
set_text (GtkLabel *label, const char *text)
{
  gtk_label_set_text (label, text == NULL ? "" : text);
  gtk_widget_set_visible (GTK_WIDGET (label), text != NULL);
}

static char *
dup_summary (guint n_frame, gboolean in_pairs, guint n_token, guint64 n_kept)
{
  g_autofree char *tokens = ks_words_count (n_token);
  g_autofree char *n_frames = ks_words_frames (n_frame, in_pairs);
  g_autofree char *n_tokens = g_strdup_printf (ngettext ("%s token", "%s tokens", n_token), tokens);
  g_autofree char *both = NULL;

  if (n_token == 0)
    return g_steal_pointer (&n_frames);
  /* Translators: frames and tokens of a video, "12 frames · 3,072 tokens". */
  both = g_strdup_printf (C_ ("frames and tokens", "%s · %s"), n_frames, n_tokens);
  if (n_kept == 0 || n_token <= n_kept)
    return g_steal_pointer (&both);
  return g_strdup_printf (_ ("%s, more than memory keeps: the rest will be read and let go"), both);
}

void
ks_frames_preview_set_busy (KsFramesPreview *self, gboolean is_busy)
{
  g_return_if_fail (KS_IS_FRAMES_PREVIEW (self));
  gtk_widget_set_visible (self->spinner, is_busy);
  gtk_spinner_set_spinning (GTK_SPINNER (self->spinner), is_busy);
  gtk_widget_set_opacity (self->scroller, is_busy ? 0.5 : 1);
}

void
ks_frames_preview_set_problem (KsFramesPreview *self, const char *problem)
{
  g_return_if_fail (KS_IS_FRAMES_PREVIEW (self));
  set_text (self->problem, problem);
}

void
ks_frames_preview_set_has_sound (KsFramesPreview *self, gboolean has_sound)
{
  g_return_if_fail (KS_IS_FRAMES_PREVIEW (self));
  set_text (self->sound,
            has_sound ? _ ("The sound is not heard: the model sees these frames only.") : NULL);
}

void
ks_frames_preview_set_in_pairs (KsFramesPreview *self, gboolean in_pairs)
{
  g_return_if_fail (KS_IS_FRAMES_PREVIEW (self));
  self->in_pairs = in_pairs;
}

void
ks_frames_preview_hide_choice (KsFramesPreview *self)
{
  g_return_if_fail (KS_IS_FRAMES_PREVIEW (self));
  gtk_widget_set_visible (self->choices, FALSE);
}

void
ks_frames_preview_set_frames (KsFramesPreview *self, const KsFramesEntry *entries, guint n_entry,
                              guint n_token, guint64 n_kept)
{
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func (g_object_unref);
  g_autofree char *summary = NULL;

  g_return_if_fail (KS_IS_FRAMES_PREVIEW (self));
  for (guint i = 0; i < n_entry; i++) {
    KsFrameItem *item = g_object_new (KS_TYPE_FRAME_ITEM, NULL);

    item->texture = ks_texture_new (entries[i].pixels);
    item->time_us = entries[i].time_us;
    g_ptr_array_add (items, item);
  }
  g_list_store_splice (self->frames, 0, g_list_model_get_n_items (G_LIST_MODEL (self->frames)),
                       items->pdata, items->len);
  summary = n_entry == 0 ? NULL : dup_summary (n_entry, self->in_pairs, n_token, n_kept);
  set_text (self->summary, summary);
}

/* --- cells --- */

static void
setup_cb (GtkSignalListItemFactory *factory, GtkListItem *cell, KsFramesPreview *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 3);
  GtkWidget *picture = gtk_picture_new ();
  GtkWidget *time = gtk_label_new (NULL);

  gtk_widget_set_size_request (picture, FRAME_WIDTH_PX, FRAME_HEIGHT_PX);
  gtk_picture_set_can_shrink (GTK_PICTURE (picture), TRUE);
  gtk_widget_add_css_class (time, "caption");
  gtk_widget_add_css_class (time, "numeric");
  gtk_box_append (GTK_BOX (box), picture);
  gtk_box_append (GTK_BOX (box), time);
  g_object_set_data (G_OBJECT (box), "ks-picture", picture);
  g_object_set_data (G_OBJECT (box), "ks-time", time);
  gtk_list_item_set_activatable (cell, FALSE);
  gtk_list_item_set_child (cell, box);
}

static void
bind_cb (GtkSignalListItemFactory *factory, GtkListItem *cell, KsFramesPreview *self)
{
  KsFrameItem *item = gtk_list_item_get_item (cell);
  GtkWidget *box = gtk_list_item_get_child (cell);
  GtkPicture *picture = g_object_get_data (G_OBJECT (box), "ks-picture");
  g_autofree char *time = ks_frames_dup_time (item->time_us);
  /* Translators: %s is a time in a video, "0:03.2". */
  g_autofree char *label = g_strdup_printf (_ ("Frame at %s"), time);

  gtk_picture_set_paintable (picture, GDK_PAINTABLE (item->texture));
  gtk_picture_set_alternative_text (picture, label);
  gtk_accessible_update_property (GTK_ACCESSIBLE (picture), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
  gtk_label_set_text (g_object_get_data (G_OBJECT (box), "ks-time"), time);
}

static GtkWidget *
grid_new (KsFramesPreview *self)
{
  GtkListItemFactory *factory = gtk_signal_list_item_factory_new ();
  GtkSelectionModel *model =
      GTK_SELECTION_MODEL (gtk_no_selection_new (G_LIST_MODEL (g_object_ref (self->frames))));
  GtkWidget *grid = gtk_grid_view_new (model, factory);
  GtkWidget *scroller = gtk_scrolled_window_new ();

  g_signal_connect (factory, "setup", G_CALLBACK (setup_cb), self);
  g_signal_connect (factory, "bind", G_CALLBACK (bind_cb), self);
  gtk_grid_view_set_max_columns (GTK_GRID_VIEW (grid), MAX_COLUMNS);
  gtk_accessible_update_property (GTK_ACCESSIBLE (grid), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Frames"), -1);
  gtk_widget_add_css_class (grid, "ks-frames");
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), grid);
  gtk_widget_set_vexpand (scroller, TRUE);
  return scroller;
}

/* --- life --- */

static void
ks_frames_preview_dispose (GObject *object)
{
  KsFramesPreview *self = KS_FRAMES_PREVIEW (object);

  g_clear_handle_id (&self->chosen_source, g_source_remove);
  g_clear_object (&self->frames);
  G_OBJECT_CLASS (ks_frames_preview_parent_class)->dispose (object);
}

/* A number that had no time to rest holds when the preview is left. */
static void
ks_frames_preview_unmap (GtkWidget *widget)
{
  KsFramesPreview *self = KS_FRAMES_PREVIEW (widget);

  GTK_WIDGET_CLASS (ks_frames_preview_parent_class)->unmap (widget);
  if (self->chosen_source != 0) {
    g_clear_handle_id (&self->chosen_source, g_source_remove);
    g_signal_emit (self, signals[CHOSEN], 0);
  }
}

static void
ks_frames_preview_class_init (KsFramesPreviewClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_frames_preview_dispose;
  GTK_WIDGET_CLASS (klass)->unmap = ks_frames_preview_unmap;
  signals[CHOSEN] = g_signal_new ("chosen", KS_TYPE_FRAMES_PREVIEW, G_SIGNAL_RUN_LAST, 0, NULL,
                                  NULL, NULL, G_TYPE_NONE, 0);
}

static GtkLabel *
label_new (const char *text, const char *css_class)
{
  GtkWidget *label = gtk_label_new (text);

  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_wrap (GTK_LABEL (label), TRUE);
  gtk_widget_add_css_class (label, css_class);
  return GTK_LABEL (label);
}

/* A number with its name before it. */
static GtkWidget *
number_new (KsFramesPreview *self, GtkLabel *label, double min, double max, double step,
            guint digits, GtkSpinButton **out_spin)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 8);
  GtkWidget *spin = gtk_spin_button_new_with_range (min, max, step);

  gtk_spin_button_set_digits (GTK_SPIN_BUTTON (spin), digits);
  gtk_spin_button_set_numeric (GTK_SPIN_BUTTON (spin), TRUE);
  gtk_widget_add_css_class (spin, "numeric");
  gtk_widget_set_hexpand (GTK_WIDGET (label), TRUE);
  gtk_accessible_update_relation (GTK_ACCESSIBLE (spin), GTK_ACCESSIBLE_RELATION_LABELLED_BY, label,
                                  NULL, -1);
  g_signal_connect_swapped (spin, "value-changed", G_CALLBACK (changed_cb), self);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (label));
  gtk_box_append (GTK_BOX (box), spin);
  *out_spin = GTK_SPIN_BUTTON (spin);
  return box;
}

static GtkWidget *
mode_new (KsFramesPreview *self)
{
  const char *const names[] = {_ ("Evenly over the time"), _ ("At equal distances"),
                               _ ("At every change of scene"), NULL};
  GtkWidget *mode = gtk_drop_down_new_from_strings (names);

  gtk_accessible_update_property (GTK_ACCESSIBLE (mode), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("How frames are taken"), -1);
  g_signal_connect_swapped (mode, "notify::selected", G_CALLBACK (changed_cb), self);
  self->mode = GTK_DROP_DOWN (mode);
  return mode;
}

static void
ks_frames_preview_init (KsFramesPreview *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 8);
  GtkWidget *line = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 8);

  self->frames = g_list_store_new (KS_TYPE_FRAME_ITEM);
  self->n_frame_label = label_new (NULL, "numeric");
  self->n_frame_box =
      number_new (self, self->n_frame_label, 1, KS_FRAMES_MAX, 1, 0, &self->n_frame);
  self->interval_box = number_new (self, label_new (_ ("Seconds between frames"), "numeric"),
                                   MIN_INTERVAL_S, MAX_INTERVAL_S, 0.5, 1, &self->interval);
  self->scroller = grid_new (self);
  self->spinner = gtk_spinner_new ();
  self->summary = label_new (NULL, "numeric");
  self->problem = label_new (NULL, "error");
  self->sound = label_new (NULL, "caption");
  gtk_widget_set_hexpand (GTK_WIDGET (self->summary), TRUE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->spinner), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Frames are being taken"), -1);
  gtk_box_append (GTK_BOX (line), GTK_WIDGET (self->summary));
  gtk_box_append (GTK_BOX (line), self->spinner);
  self->choices = gtk_box_new (GTK_ORIENTATION_VERTICAL, 8);
  gtk_box_append (GTK_BOX (self->choices), mode_new (self));
  gtk_box_append (GTK_BOX (self->choices), self->n_frame_box);
  gtk_box_append (GTK_BOX (self->choices), self->interval_box);
  gtk_box_append (GTK_BOX (box), self->choices);
  gtk_box_append (GTK_BOX (box), self->scroller);
  gtk_box_append (GTK_BOX (box), line);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->problem));
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->sound));
  g_object_set (box, "margin-top", 12, "margin-bottom", 12, "margin-start", 12, "margin-end", 12,
                NULL);
  adw_bin_set_child (ADW_BIN (self), box);
  set_text (self->problem, NULL);
  set_text (self->sound, NULL);
  ks_frames_preview_set_busy (self, FALSE);
  show_mode (self);
}

GtkWidget *
ks_frames_preview_new (void)
{
  return g_object_new (KS_TYPE_FRAMES_PREVIEW, NULL);
}

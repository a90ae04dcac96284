/* ks-page-choice.c - see ks-page-choice.h.
 * Rows are made by a list view as they are seen: a document may have thousands of pages. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-page-choice.h"

#include "ui/ks-memory-words.h"

#include <glib/gi18n.h>

#define LIST_HEIGHT_PX 260
#define N_ALL_MODE KS_PAGE_NONE /* modes that all pages can have at once: all but the last */

/* One page. */
#define KS_TYPE_PAGE_ITEM (ks_page_item_get_type ())
G_DECLARE_FINAL_TYPE (KsPageItem, ks_page_item, KS, PAGE_ITEM, GObject)

struct _KsPageItem {
  GObject parent_instance;
  guint page, n_token;
  gboolean has_text;
  KsPageMode mode;
};

struct _KsPageChoice {
  AdwBin parent_instance;
  GListStore *pages; /* of KsPageItem */
  GtkToggleButton *all[N_ALL_MODE];
  GtkWidget *all_row, *list;
  GtkLabel *note;
  gboolean is_updating; /* what changes is no wish of the user */
  gboolean can_see;
};

enum { ITEM_CHANGED, N_ITEM_SIGNAL };
enum { CHOSEN, N_SIGNAL };

static guint item_signals[N_ITEM_SIGNAL];
static guint signals[N_SIGNAL];

G_DEFINE_FINAL_TYPE (KsPageItem, ks_page_item, G_TYPE_OBJECT)
G_DEFINE_FINAL_TYPE (KsPageChoice, ks_page_choice, ADW_TYPE_BIN)

static void
ks_page_item_class_init (KsPageItemClass *klass)
{
  item_signals[ITEM_CHANGED] = g_signal_new ("changed", KS_TYPE_PAGE_ITEM, G_SIGNAL_RUN_LAST, 0,
                                             NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
ks_page_item_init (KsPageItem *self)
{
  self->has_text = TRUE;
}

static const char *
get_mode_name (guint mode)
{
  static const char *const names[KS_N_PAGE_MODE] = {NC_ ("page", "Text"), NC_ ("page", "Picture"),
                                                    NC_ ("page", "Both"), NC_ ("page", "Left out")};

  return g_dpgettext2 (NULL, "page", names[mode]);
}

static KsPageItem *
peek_page (KsPageChoice *self, guint page)
{
  g_autoptr (KsPageItem) item = g_list_model_get_item (G_LIST_MODEL (self->pages), page);

  return item; /* the list holds it */
}

static guint
get_n_page (KsPageChoice *self)
{
  return g_list_model_get_n_items (G_LIST_MODEL (self->pages));
}

/* --- what holds for all pages --- */

static char *
dup_note (KsPageChoice *self)
{
  guint n_page = get_n_page (self), n_picture = 0;
  guint64 n_token = 0;
  g_autofree char *pages = NULL, *pictures = NULL, *tokens = NULL;

  if (!self->can_see)
    return g_strdup (_ ("This model cannot see pictures: it is given the text of the pages."));
  for (guint i = 0; i < n_page; i++) {
    KsPageMode mode = peek_page (self, i)->mode;

    n_picture += mode == KS_PAGE_PICTURE || mode == KS_PAGE_BOTH;
    n_token += peek_page (self, i)->n_token;
  }
  pages = ks_words_count (n_page);
  pictures = ks_words_count (n_picture);
  if (n_token == 0)
    /* Translators: numbers of pages: "3 of 12 pages as pictures" */
    return g_strdup_printf (
        ngettext ("%s of %s page as a picture", "%s of %s pages as pictures", n_page), pictures,
        pages);
  tokens = ks_words_count (n_token);
  /* Translators: numbers: "3 of 12 pages as pictures · 4,711 tokens" */
  return g_strdup_printf (ngettext ("%s of %s page as a picture · %s tokens",
                                    "%s of %s pages as pictures · %s tokens", n_page),
                          pictures, pages, tokens);
}

/* A page without text has one way only: it does not count when the others agree. */
static gboolean
all_have (KsPageChoice *self, KsPageMode mode)
{
  gboolean is_same = TRUE, has_any = FALSE;

  for (guint i = 0; i < get_n_page (self) && is_same; i++) {
    KsPageItem *item = peek_page (self, i);

    has_any |= item->has_text;
    is_same = !item->has_text || item->mode == mode;
  }
  return is_same && has_any;
}

static void
update (KsPageChoice *self)
{
  g_autofree char *note = dup_note (self);
  gboolean has_text = FALSE;

  self->is_updating = TRUE;
  for (guint mode = 0; mode < N_ALL_MODE; mode++)
    gtk_toggle_button_set_active (self->all[mode], all_have (self, (KsPageMode)mode));
  self->is_updating = FALSE;
  for (guint i = 0; i < get_n_page (self) && !has_text; i++)
    has_text = peek_page (self, i)->has_text;
  gtk_widget_set_sensitive (self->all_row, self->can_see && has_text);
  gtk_widget_set_sensitive (self->list, self->can_see);
  gtk_label_set_text (self->note, note);
}

static void
set_mode (KsPageItem *item, KsPageMode mode)
{
  if (item->mode != mode && (item->has_text || mode == KS_PAGE_PICTURE || mode == KS_PAGE_NONE)) {
    item->mode = mode;
    item->n_token = 0; /* another one; whoever counts will say it */
    g_signal_emit (item, item_signals[ITEM_CHANGED], 0);
  }
}

static void
all_cb (GtkToggleButton *button, KsPageChoice *self)
{
  guint mode = GPOINTER_TO_UINT (g_object_get_data (G_OBJECT (button), "ks-mode"));

  if (self->is_updating)
    return;
  if (gtk_toggle_button_get_active (button)) {
    self->is_updating = TRUE;
    for (guint i = 0; i < get_n_page (self); i++)
      set_mode (peek_page (self, i),
                peek_page (self, i)->has_text ? (KsPageMode)mode : KS_PAGE_PICTURE);
    self->is_updating = FALSE;
    update (self);
    g_signal_emit (self, signals[CHOSEN], 0, 0u, get_n_page (self) - 1, (int)mode);
  } else
    update (self); /* pressed again: it stays */
}

/* --- one page --- */

/* What a page can be, in the order of its list: with text anything, without it a picture or left
 * out. */
static KsPageMode
get_mode_at (KsPageItem *item, guint position)
{
  if (!item->has_text)
    return position == 0 ? KS_PAGE_PICTURE : KS_PAGE_NONE;
  return position < KS_N_PAGE_MODE ? (KsPageMode)position : KS_PAGE_TEXT;
}

static guint
get_position (KsPageItem *item)
{
  return item->has_text ? item->mode : item->mode == KS_PAGE_NONE;
}

static GtkStringList *
mode_names_new (gboolean has_text)
{
  GtkStringList *names = gtk_string_list_new (NULL);

  for (guint mode = 0; mode < KS_N_PAGE_MODE; mode++)
    if (has_text || mode == KS_PAGE_PICTURE || mode == KS_PAGE_NONE)
      gtk_string_list_append (names, get_mode_name (mode));
  return names;
}

static void
show_modes (GtkDropDown *drop_down, KsPageItem *item)
{
  GListModel *shown = gtk_drop_down_get_model (drop_down);
  guint n = item->has_text ? KS_N_PAGE_MODE : 2;

  if (shown == NULL || g_list_model_get_n_items (shown) != n) {
    g_autoptr (GtkStringList) names = mode_names_new (item->has_text);

    gtk_drop_down_set_model (drop_down, G_LIST_MODEL (names));
  }
  gtk_drop_down_set_selected (drop_down, get_position (item));
}

static void
show_page (GtkListItem *row, KsPageItem *item)
{
  GtkWidget *box = gtk_list_item_get_child (row);
  GtkLabel *title = g_object_get_data (G_OBJECT (box), "ks-title");
  GtkLabel *detail = g_object_get_data (G_OBJECT (box), "ks-detail");
  GtkDropDown *mode = g_object_get_data (G_OBJECT (box), "ks-mode");
  KsPageChoice *self = g_object_get_data (G_OBJECT (box), "ks-choice");
  gboolean was_updating = self->is_updating;
  g_autofree char *name = g_strdup_printf (_ ("Page %u"), item->page + 1);
  g_autofree char *count = ks_words_count (item->n_token);
  g_autofree char *tokens =
      g_strdup_printf (ngettext ("%s token", "%s tokens", item->n_token), count);

  gtk_label_set_text (title, name);
  gtk_label_set_text (detail, !item->has_text     ? _ ("no text in it")
                              : item->n_token > 0 ? tokens
                                                  : "");
  gtk_widget_set_visible (GTK_WIDGET (detail), gtk_label_get_text (detail)[0] != '\0');
  self->is_updating = TRUE;
  show_modes (mode, item);
  self->is_updating = was_updating;
  gtk_accessible_update_property (GTK_ACCESSIBLE (mode), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
}

static void
item_changed_cb (KsPageItem *item, GtkListItem *row)
{
  show_page (row, item);
}

static void
mode_cb (GtkDropDown *drop_down, GParamSpec *pspec, GtkListItem *row)
{
  KsPageItem *item = gtk_list_item_get_item (row);
  KsPageChoice *self = g_object_get_data (G_OBJECT (gtk_list_item_get_child (row)), "ks-choice");
  KsPageMode mode = KS_PAGE_TEXT;

  if (self->is_updating || item == NULL)
    return;
  mode = get_mode_at (item, gtk_drop_down_get_selected (drop_down));
  if (item->mode == mode)
    return;
  set_mode (item, mode);
  update (self);
  g_signal_emit (self, signals[CHOSEN], 0, item->page, item->page, (int)mode);
}

static GtkLabel *
label_new (GtkWidget *box, const char *css_class)
{
  GtkWidget *label = gtk_label_new (NULL);

  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_widget_add_css_class (label, css_class);
  gtk_box_append (GTK_BOX (box), label);
  return GTK_LABEL (label);
}

static void
setup_cb (GtkSignalListItemFactory *factory, GtkListItem *row, KsPageChoice *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  GtkWidget *texts = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  GtkWidget *mode = gtk_drop_down_new (NULL, NULL);

  gtk_widget_set_valign (mode, GTK_ALIGN_CENTER);
  gtk_widget_set_valign (texts, GTK_ALIGN_CENTER);
  gtk_widget_set_hexpand (texts, TRUE);
  gtk_box_append (GTK_BOX (box), texts);
  gtk_box_append (GTK_BOX (box), mode);
  g_object_set_data (G_OBJECT (box), "ks-title", label_new (texts, "numeric"));
  g_object_set_data (G_OBJECT (box), "ks-detail", label_new (texts, "caption"));
  g_object_set_data (G_OBJECT (box), "ks-mode", mode);
  g_object_set_data (G_OBJECT (box), "ks-choice", self);
  gtk_list_item_set_activatable (row, FALSE);
  gtk_list_item_set_child (row, box);
  g_signal_connect (mode, "notify::selected", G_CALLBACK (mode_cb), row);
}

static void
bind_cb (GtkSignalListItemFactory *factory, GtkListItem *row, KsPageChoice *self)
{
  KsPageItem *item = gtk_list_item_get_item (row);

  show_page (row, item);
  g_signal_connect (item, "changed", G_CALLBACK (item_changed_cb), row);
}

static void
unbind_cb (GtkSignalListItemFactory *factory, GtkListItem *row, KsPageChoice *self)
{
  g_signal_handlers_disconnect_by_func (gtk_list_item_get_item (row), item_changed_cb, row);
}

/* --- life --- */

static void
ks_page_choice_dispose (GObject *object)
{
  KsPageChoice *self = KS_PAGE_CHOICE (object);

  adw_bin_set_child (ADW_BIN (self), NULL); /* rows know this: they go first */
  g_clear_object (&self->pages);
  G_OBJECT_CLASS (ks_page_choice_parent_class)->dispose (object);
}

static void
ks_page_choice_class_init (KsPageChoiceClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_page_choice_dispose;
  signals[CHOSEN] = g_signal_new ("chosen", KS_TYPE_PAGE_CHOICE, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 3, G_TYPE_UINT, G_TYPE_UINT, G_TYPE_INT);
}

static GtkWidget *
all_row_new (KsPageChoice *self)
{
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  GtkWidget *linked = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  GtkLabel *label = label_new (row, "heading");

  gtk_label_set_text (label, _ ("All pages"));
  gtk_widget_set_hexpand (GTK_WIDGET (label), TRUE);
  gtk_widget_add_css_class (linked, "linked");
  for (guint mode = 0; mode < N_ALL_MODE; mode++) {
    GtkWidget *button = gtk_toggle_button_new_with_label (get_mode_name (mode));
    /* Translators: %s is "Text", "Picture" or "Both". */
    g_autofree char *name = g_strdup_printf (_ ("All pages: %s"), get_mode_name (mode));

    gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, name,
                                    -1);
    g_object_set_data (G_OBJECT (button), "ks-mode", GUINT_TO_POINTER (mode));
    g_signal_connect (button, "toggled", G_CALLBACK (all_cb), self);
    gtk_box_append (GTK_BOX (linked), button);
    self->all[mode] = GTK_TOGGLE_BUTTON (button);
  }
  gtk_box_append (GTK_BOX (row), linked);
  return row;
}

static GtkWidget *
list_new (KsPageChoice *self)
{
  GtkListItemFactory *factory = gtk_signal_list_item_factory_new ();
  GtkSelectionModel *model =
      GTK_SELECTION_MODEL (gtk_no_selection_new (G_LIST_MODEL (g_object_ref (self->pages))));
  GtkWidget *view = gtk_list_view_new (model, factory);
  GtkWidget *scroller = gtk_scrolled_window_new ();

  g_signal_connect (factory, "setup", G_CALLBACK (setup_cb), self);
  g_signal_connect (factory, "bind", G_CALLBACK (bind_cb), self);
  g_signal_connect (factory, "unbind", G_CALLBACK (unbind_cb), self);
  gtk_accessible_update_property (GTK_ACCESSIBLE (view), GTK_ACCESSIBLE_PROPERTY_LABEL, _ ("Pages"),
                                  -1);
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_propagate_natural_height (GTK_SCROLLED_WINDOW (scroller), TRUE);
  gtk_scrolled_window_set_max_content_height (GTK_SCROLLED_WINDOW (scroller), LIST_HEIGHT_PX);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), view);
  gtk_widget_add_css_class (view, "ks-pages");
  gtk_widget_add_css_class (scroller, "card");
  gtk_widget_set_overflow (scroller, GTK_OVERFLOW_HIDDEN);
  return scroller;
}

static void
ks_page_choice_init (KsPageChoice *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 8);

  self->can_see = TRUE;
  self->pages = g_list_store_new (KS_TYPE_PAGE_ITEM);
  self->all_row = all_row_new (self);
  self->list = list_new (self);
  gtk_box_append (GTK_BOX (box), self->all_row);
  gtk_box_append (GTK_BOX (box), self->list);
  self->note = label_new (box, "caption");
  gtk_label_set_wrap (self->note, TRUE);
  gtk_widget_add_css_class (GTK_WIDGET (self->note), "numeric");
  adw_bin_set_child (ADW_BIN (self), box);
}

GtkWidget *
ks_page_choice_new (void)
{
  KsPageChoice *self = g_object_new (KS_TYPE_PAGE_CHOICE, NULL);

  update (self);
  return GTK_WIDGET (self);
}

static void
make_pages (KsPageChoice *self, guint n_page)
{
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func (g_object_unref);

  for (guint i = 0; i < n_page; i++) {
    KsPageItem *item = g_object_new (KS_TYPE_PAGE_ITEM, NULL);

    item->page = i;
    g_ptr_array_add (items, item);
  }
  g_list_store_splice (self->pages, 0, get_n_page (self), items->pdata, items->len);
}

void
ks_page_choice_set_pages (KsPageChoice *self, const KsPageFact *facts, guint n_page)
{
  g_return_if_fail (KS_IS_PAGE_CHOICE (self));
  if (n_page != get_n_page (self))
    make_pages (self, n_page);
  for (guint i = 0; i < n_page; i++) {
    KsPageItem *item = peek_page (self, i);

    item->has_text = facts[i].has_text;
    item->mode =
        facts[i].has_text || facts[i].mode == KS_PAGE_NONE ? facts[i].mode : KS_PAGE_PICTURE;
    item->n_token = facts[i].n_token;
    g_signal_emit (item, item_signals[ITEM_CHANGED], 0);
  }
  update (self);
}

KsPageMode
ks_page_choice_get_mode (KsPageChoice *self, guint page)
{
  g_return_val_if_fail (KS_IS_PAGE_CHOICE (self) && page < get_n_page (self), KS_PAGE_TEXT);
  return peek_page (self, page)->mode;
}

void
ks_page_choice_set_can_see (KsPageChoice *self, gboolean can_see)
{
  g_return_if_fail (KS_IS_PAGE_CHOICE (self));
  self->can_see = can_see;
  update (self);
}

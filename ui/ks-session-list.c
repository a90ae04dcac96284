/* ks-session-list.c - see ks-session-list.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-session-list.h"

#include "ui/ks-resource.h"
#include "ui/ks-search-bar.h"
#include "ui/ks-session-row.h"

#include <glib/gi18n.h>

struct _KsSessionList {
  GtkWidget parent_instance;

  GtkWidget *content;
  GtkWidget *search_bar;
  GtkWidget *stack;
  GtkWidget *list;
  GtkWidget *empty;
  GtkSingleSelection *selection;
  GListModel *model;
  KsSession *marked;  /* what should be selected, in the list or not */
  gboolean selecting; /* we do it ourselves, not the user */
};

G_DEFINE_FINAL_TYPE (KsSessionList, ks_session_list, GTK_TYPE_WIDGET)

enum { OPEN, DELETE, EXPORT, RENAME, SEARCH, LEAVE, N_SIGNALS };
static guint signals[N_SIGNALS];

/* Place of the marked session, also when the model holds another object for it. */
static guint
find_marked (KsSessionList *self)
{
  guint n = self->model == NULL ? 0 : g_list_model_get_n_items (self->model);

  if (self->marked == NULL)
    return GTK_INVALID_LIST_POSITION;
  for (guint i = 0; i < n; i++) {
    g_autoptr (KsSession) session = g_list_model_get_item (self->model, i);

    if (ks_session_get_id (session) == ks_session_get_id (self->marked))
      return i;
  }
  return GTK_INVALID_LIST_POSITION;
}

static void
mark (KsSessionList *self)
{
  guint i = find_marked (self);

  if (gtk_single_selection_get_selected (self->selection) == i)
    return;
  self->selecting = TRUE;
  gtk_single_selection_set_selected (self->selection, i);
  self->selecting = FALSE;
}

static void
update_stack (KsSessionList *self)
{
  gboolean has_items = self->model != NULL && g_list_model_get_n_items (self->model) > 0;

  gtk_label_set_text (GTK_LABEL (self->empty), self->model == NULL ? ""
                                               : *ks_session_list_get_query (self) != '\0'
                                                   ? _ ("Nothing found")
                                                   : _ ("Your sessions will be listed here"));
  gtk_stack_set_visible_child_name (GTK_STACK (self->stack), has_items ? "list" : "empty");
}

static void
items_changed_cb (GListModel *model, guint position, guint n_removed, guint n_added,
                  KsSessionList *self)
{
  update_stack (self);
  mark (self);
}

static void
selected_cb (GtkSingleSelection *selection, GParamSpec *pspec, KsSessionList *self)
{
  KsSession *session = gtk_single_selection_get_selected_item (selection);

  if (self->selecting || session == NULL || session == self->marked)
    return;
  g_set_object (&self->marked, session);
  g_signal_emit (self, signals[OPEN], 0, session);
}

/* Also what is marked already: in a narrow window the list lies over the chat. */
static void
activate_cb (GtkListView *list, guint position, KsSessionList *self)
{
  g_autoptr (KsSession) session = g_list_model_get_item (G_LIST_MODEL (self->selection), position);

  if (session == NULL)
    return;
  g_set_object (&self->marked, session);
  mark (self);
  g_signal_emit (self, signals[OPEN], 0, session);
}

void
ks_session_list_set_model (KsSessionList *self, GListModel *model)
{
  g_return_if_fail (KS_IS_SESSION_LIST (self));
  if (self->model == model)
    return;
  if (self->model != NULL)
    g_signal_handlers_disconnect_by_func (self->model, items_changed_cb, self);
  g_set_object (&self->model, model);
  self->selecting = TRUE;
  gtk_single_selection_set_model (self->selection, model);
  self->selecting = FALSE;
  /* After the selection's own handler, which forgets an item that moves. */
  if (model != NULL)
    g_signal_connect_object (model, "items-changed", G_CALLBACK (items_changed_cb), self,
                             G_CONNECT_AFTER);
  update_stack (self);
  mark (self);
}

void
ks_session_list_select (KsSessionList *self, KsSession *session)
{
  g_return_if_fail (KS_IS_SESSION_LIST (self));
  g_set_object (&self->marked, session);
  mark (self);
}

KsSession *
ks_session_list_get_neighbour (KsSessionList *self, int step)
{
  guint i = 0;
  guint n = 0;

  g_return_val_if_fail (KS_IS_SESSION_LIST (self), NULL);
  n = self->model == NULL ? 0 : g_list_model_get_n_items (self->model);
  i = find_marked (self);
  if (i == GTK_INVALID_LIST_POSITION) /* a new one stands above all */
    return step > 0 && n > 0 ? g_list_model_get_item (self->model, 0) : NULL;
  if ((gint64)i + step < 0 || (gint64)i + step >= (gint64)n)
    return NULL;
  return g_list_model_get_item (self->model, (guint)((gint64)i + step));
}

/* The row whose item has the focus, or else the one that shows the session. */
static KsSessionRow *
find_row (KsSessionList *self, KsSession *session)
{
  for (GtkWidget *item = gtk_widget_get_first_child (self->list); item != NULL;
       item = gtk_widget_get_next_sibling (item)) {
    GtkWidget *row = gtk_widget_get_first_child (item);

    if (!KS_IS_SESSION_ROW (row) || !gtk_widget_get_mapped (row))
      continue;
    if (session == NULL ? gtk_widget_get_focus_child (self->list) == item
                        : ks_session_row_get_session (KS_SESSION_ROW (row)) == session)
      return KS_SESSION_ROW (row);
  }
  return NULL;
}

gboolean
ks_session_list_rename_selected (KsSessionList *self)
{
  KsSession *session = NULL;
  KsSessionRow *row = NULL;

  g_return_val_if_fail (KS_IS_SESSION_LIST (self), FALSE);
  session = gtk_single_selection_get_selected_item (self->selection);
  row = session == NULL ? NULL : find_row (self, session);
  if (row != NULL)
    ks_session_row_start_rename (row);
  return row != NULL;
}

void
ks_session_list_focus_search (KsSessionList *self)
{
  g_return_if_fail (KS_IS_SESSION_LIST (self));
  ks_search_bar_focus (KS_SEARCH_BAR (self->search_bar));
}

const char *
ks_session_list_get_query (KsSessionList *self)
{
  g_return_val_if_fail (KS_IS_SESSION_LIST (self), "");
  return ks_search_bar_get_query (KS_SEARCH_BAR (self->search_bar));
}

void
ks_session_list_end_search (KsSessionList *self)
{
  g_return_if_fail (KS_IS_SESSION_LIST (self));
  ks_search_bar_clear (KS_SEARCH_BAR (self->search_bar));
}

static void
search_cb (KsSearchBar *bar, const char *query, KsSessionList *self)
{
  update_stack (self);
  g_signal_emit (self, signals[SEARCH], 0, query);
}

static void
leave_cb (KsSearchBar *bar, KsSessionList *self)
{
  if (*ks_search_bar_get_query (bar) != '\0' && gtk_widget_grab_focus (self->list))
    return;
  g_signal_emit (self, signals[LEAVE], 0);
}

static void
row_rename_cb (KsSessionRow *row, const char *title, KsSessionList *self)
{
  g_signal_emit (self, signals[RENAME], 0, ks_session_row_get_session (row), title);
}

static void
row_export_cb (KsSessionRow *row, KsSessionList *self)
{
  g_signal_emit (self, signals[EXPORT], 0, ks_session_row_get_session (row));
}

static void
row_delete_cb (KsSessionRow *row, KsSessionList *self)
{
  g_autoptr (KsSession) session = g_object_ref (ks_session_row_get_session (row));

  g_signal_emit (self, signals[DELETE], 0, session);
}

static void
row_pressed_cb (GtkGestureClick *gesture, int n_press, double x, double y, KsSessionRow *row)
{
  gtk_gesture_set_state (GTK_GESTURE (gesture), GTK_EVENT_SEQUENCE_CLAIMED);
  ks_session_row_popup_menu (row, x, y);
}

static void
row_long_pressed_cb (GtkGestureLongPress *gesture, double x, double y, KsSessionRow *row)
{
  gtk_gesture_set_state (GTK_GESTURE (gesture), GTK_EVENT_SEQUENCE_CLAIMED);
  ks_session_row_popup_menu (row, x, y);
}

static void
setup_cb (GtkSignalListItemFactory *factory, GtkListItem *item, KsSessionList *self)
{
  GtkWidget *row = ks_session_row_new ();
  GtkGesture *click = gtk_gesture_click_new ();
  GtkGesture *press = gtk_gesture_long_press_new ();

  gtk_gesture_single_set_button (GTK_GESTURE_SINGLE (click), GDK_BUTTON_SECONDARY);
  gtk_gesture_single_set_touch_only (GTK_GESTURE_SINGLE (press), TRUE);
  g_signal_connect (click, "pressed", G_CALLBACK (row_pressed_cb), row);
  g_signal_connect (press, "pressed", G_CALLBACK (row_long_pressed_cb), row);
  gtk_widget_add_controller (row, GTK_EVENT_CONTROLLER (click));
  gtk_widget_add_controller (row, GTK_EVENT_CONTROLLER (press));
  g_signal_connect_object (row, "rename", G_CALLBACK (row_rename_cb), self, G_CONNECT_DEFAULT);
  g_signal_connect_object (row, "export", G_CALLBACK (row_export_cb), self, G_CONNECT_DEFAULT);
  g_signal_connect_object (row, "delete", G_CALLBACK (row_delete_cb), self, G_CONNECT_DEFAULT);
  gtk_list_item_set_child (item, row);
}

static void
bind_cb (GtkSignalListItemFactory *factory, GtkListItem *item, KsSessionList *self)
{
  ks_session_row_set_session (KS_SESSION_ROW (gtk_list_item_get_child (item)),
                              gtk_list_item_get_item (item));
}

static void
unbind_cb (GtkSignalListItemFactory *factory, GtkListItem *item, KsSessionList *self)
{
  ks_session_row_set_session (KS_SESSION_ROW (gtk_list_item_get_child (item)), NULL);
}

static gboolean
key_cb (GtkEventControllerKey *controller, guint keyval, guint keycode, GdkModifierType state,
        KsSessionList *self)
{
  KsSessionRow *row = find_row (self, NULL);
  GdkModifierType held = state & gtk_accelerator_get_default_mod_mask ();

  if (row == NULL)
    return GDK_EVENT_PROPAGATE;
  if (keyval == GDK_KEY_Menu || (keyval == GDK_KEY_F10 && held == GDK_SHIFT_MASK))
    ks_session_row_popup_menu (row, -1, -1);
  else if ((keyval == GDK_KEY_Delete || keyval == GDK_KEY_KP_Delete) && held == 0)
    row_delete_cb (row, self);
  else
    return GDK_EVENT_PROPAGATE;
  return GDK_EVENT_STOP;
}

static void
ks_session_list_dispose (GObject *object)
{
  KsSessionList *self = KS_SESSION_LIST (object);

  if (self->selection != NULL)
    ks_session_list_set_model (self, NULL);
  g_clear_object (&self->marked);
  g_clear_object (&self->selection);
  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_SESSION_LIST);
  g_clear_pointer (&KS_SESSION_LIST (object)->content, gtk_widget_unparent);
  G_OBJECT_CLASS (ks_session_list_parent_class)->dispose (object);
}

static guint
signal_with_session (const char *name)
{
  return g_signal_new (name, KS_TYPE_SESSION_LIST, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                       G_TYPE_NONE, 1, KS_TYPE_SESSION);
}

static void
ks_session_list_class_init (KsSessionListClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_session_list_dispose;
  signals[OPEN] = signal_with_session ("open");
  signals[DELETE] = signal_with_session ("delete");
  signals[EXPORT] = signal_with_session ("export");
  signals[RENAME] = g_signal_new ("rename", KS_TYPE_SESSION_LIST, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 2, KS_TYPE_SESSION, G_TYPE_STRING);
  signals[SEARCH] = g_signal_new ("search", KS_TYPE_SESSION_LIST, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[LEAVE] = g_signal_new ("leave", KS_TYPE_SESSION_LIST, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                 NULL, G_TYPE_NONE, 0);
  g_type_ensure (KS_TYPE_SEARCH_BAR);
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-session-list.ui");
  gtk_widget_class_bind_template_child (widget_class, KsSessionList, content);
  gtk_widget_class_bind_template_child (widget_class, KsSessionList, search_bar);
  gtk_widget_class_bind_template_child (widget_class, KsSessionList, stack);
  gtk_widget_class_bind_template_child (widget_class, KsSessionList, list);
  gtk_widget_class_bind_template_child (widget_class, KsSessionList, empty);
}

static void
ks_session_list_init (KsSessionList *self)
{
  g_autoptr (GtkListItemFactory) factory = gtk_signal_list_item_factory_new ();
  GtkEventController *keys = gtk_event_controller_key_new ();

  gtk_widget_init_template (GTK_WIDGET (self));
  self->selection = gtk_single_selection_new (NULL);
  gtk_single_selection_set_autoselect (self->selection, FALSE);
  gtk_single_selection_set_can_unselect (self->selection, TRUE);
  g_signal_connect (self->selection, "notify::selected-item", G_CALLBACK (selected_cb), self);
  g_signal_connect (factory, "setup", G_CALLBACK (setup_cb), self);
  g_signal_connect (factory, "bind", G_CALLBACK (bind_cb), self);
  g_signal_connect (factory, "unbind", G_CALLBACK (unbind_cb), self);
  gtk_list_view_set_factory (GTK_LIST_VIEW (self->list), factory);
  gtk_list_view_set_model (GTK_LIST_VIEW (self->list), GTK_SELECTION_MODEL (self->selection));
  g_signal_connect (self->list, "activate", G_CALLBACK (activate_cb), self);
  g_signal_connect (self->search_bar, "search", G_CALLBACK (search_cb), self);
  g_signal_connect (self->search_bar, "leave", G_CALLBACK (leave_cb), self);
  g_signal_connect (keys, "key-pressed", G_CALLBACK (key_cb), self);
  gtk_widget_add_controller (self->list, keys);
}

GtkWidget *
ks_session_list_new (void)
{
  return g_object_new (KS_TYPE_SESSION_LIST, NULL);
}

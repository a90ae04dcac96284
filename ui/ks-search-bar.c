/* ks-search-bar.c - see ks-search-bar.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-search-bar.h"

#include <glib/gi18n.h>

#define PAUSE_MS 150 /* between the last key and the search */

struct _KsSearchBar {
  GtkWidget parent_instance;

  GtkWidget *entry;
  char *query;
  guint timeout;
};

G_DEFINE_FINAL_TYPE (KsSearchBar, ks_search_bar, GTK_TYPE_WIDGET)

enum { SEARCH, LEAVE, N_SIGNALS };
static guint signals[N_SIGNALS];

const char *
ks_search_bar_get_query (KsSearchBar *self)
{
  g_return_val_if_fail (KS_IS_SEARCH_BAR (self), "");
  return self->query;
}

static void
apply (KsSearchBar *self)
{
  char *query = g_strstrip (g_strdup (gtk_editable_get_text (GTK_EDITABLE (self->entry))));

  g_clear_handle_id (&self->timeout, g_source_remove);
  if (g_strcmp0 (query, self->query) == 0) {
    g_free (query);
    return;
  }
  g_free (self->query);
  self->query = query;
  g_signal_emit (self, signals[SEARCH], 0, self->query);
}

static gboolean
timeout_cb (gpointer self)
{
  KS_SEARCH_BAR (self)->timeout = 0;
  apply (self);
  return G_SOURCE_REMOVE;
}

static void
changed_cb (GtkEditable *entry, KsSearchBar *self)
{
  g_clear_handle_id (&self->timeout, g_source_remove);
  self->timeout = g_timeout_add (PAUSE_MS, timeout_cb, self);
}

static void
activate_cb (GtkEntry *entry, KsSearchBar *self)
{
  apply (self);
  g_signal_emit (self, signals[LEAVE], 0);
}

void
ks_search_bar_clear (KsSearchBar *self)
{
  g_return_if_fail (KS_IS_SEARCH_BAR (self));
  gtk_editable_set_text (GTK_EDITABLE (self->entry), "");
  apply (self);
}

static void
stop_cb (GtkSearchEntry *entry, KsSearchBar *self)
{
  if (*gtk_editable_get_text (GTK_EDITABLE (entry)) == '\0')
    g_signal_emit (self, signals[LEAVE], 0);
  else
    ks_search_bar_clear (self);
}

static gboolean
key_cb (GtkEventControllerKey *controller, guint keyval, guint keycode, GdkModifierType state,
        KsSearchBar *self)
{
  if (keyval != GDK_KEY_Down || (state & GDK_MODIFIER_MASK) != 0)
    return GDK_EVENT_PROPAGATE;
  apply (self);
  g_signal_emit (self, signals[LEAVE], 0);
  return GDK_EVENT_STOP;
}

void
ks_search_bar_focus (KsSearchBar *self)
{
  g_return_if_fail (KS_IS_SEARCH_BAR (self));
  gtk_widget_grab_focus (self->entry);
  gtk_editable_select_region (GTK_EDITABLE (self->entry), 0, -1);
}

static void
ks_search_bar_dispose (GObject *object)
{
  KsSearchBar *self = KS_SEARCH_BAR (object);

  g_clear_handle_id (&self->timeout, g_source_remove);
  g_clear_pointer (&self->entry, gtk_widget_unparent);
  G_OBJECT_CLASS (ks_search_bar_parent_class)->dispose (object);
}

static void
ks_search_bar_finalize (GObject *object)
{
  g_free (KS_SEARCH_BAR (object)->query);
  G_OBJECT_CLASS (ks_search_bar_parent_class)->finalize (object);
}

static void
ks_search_bar_class_init (KsSearchBarClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_search_bar_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_search_bar_finalize;
  signals[SEARCH] = g_signal_new ("search", KS_TYPE_SEARCH_BAR, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[LEAVE] = g_signal_new ("leave", KS_TYPE_SEARCH_BAR, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                 NULL, G_TYPE_NONE, 0);
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
}

static void
ks_search_bar_init (KsSearchBar *self)
{
  GtkEventController *keys = gtk_event_controller_key_new ();

  self->query = g_strdup ("");
  self->entry = g_object_new (GTK_TYPE_SEARCH_ENTRY, "placeholder-text", _ ("Find in all sessions"),
                              "hexpand", TRUE, NULL);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->entry), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Find in all sessions"), -1);
  gtk_widget_set_parent (self->entry, GTK_WIDGET (self));
  /* Not "search-changed": its delay differs between versions of GTK. */
  g_signal_connect (self->entry, "changed", G_CALLBACK (changed_cb), self);
  g_signal_connect (self->entry, "activate", G_CALLBACK (activate_cb), self);
  g_signal_connect (self->entry, "stop-search", G_CALLBACK (stop_cb), self);
  gtk_event_controller_set_propagation_phase (keys, GTK_PHASE_CAPTURE);
  g_signal_connect (keys, "key-pressed", G_CALLBACK (key_cb), self);
  gtk_widget_add_controller (self->entry, keys);
}

GtkWidget *
ks_search_bar_new (void)
{
  return g_object_new (KS_TYPE_SEARCH_BAR, NULL);
}

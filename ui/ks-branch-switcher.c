/* ks-branch-switcher.c - see ks-branch-switcher.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-branch-switcher.h"

#include <glib/gi18n.h>

struct _KsBranchSwitcher {
  GtkWidget parent_instance;

  GtkWidget *previous;
  GtkWidget *label;
  GtkWidget *next;
  guint sibling;
};

G_DEFINE_FINAL_TYPE (KsBranchSwitcher, ks_branch_switcher, GTK_TYPE_WIDGET)

enum { SELECT, N_SIGNALS };
static guint signals[N_SIGNALS];

void
ks_branch_switcher_show (KsBranchSwitcher *self, guint sibling, guint n_siblings,
                         gboolean can_change)
{
  g_autofree char *shown = NULL;
  g_autofree char *spoken = NULL;

  g_return_if_fail (KS_IS_BRANCH_SWITCHER (self));
  self->sibling = sibling;
  /* Translators: the second of three wordings, "2 / 3". */
  shown = g_strdup_printf (C_ ("branch", "%u / %u"), sibling + 1, n_siblings);
  spoken = g_strdup_printf (_ ("Version %u of %u"), sibling + 1, n_siblings);
  gtk_label_set_text (GTK_LABEL (self->label), shown);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->label), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  spoken, -1);
  gtk_widget_set_sensitive (self->previous, can_change && sibling > 0);
  gtk_widget_set_sensitive (self->next, can_change && sibling + 1 < n_siblings);
}

static void
previous_cb (KsBranchSwitcher *self)
{
  g_signal_emit (self, signals[SELECT], 0, self->sibling - 1);
}

static void
next_cb (KsBranchSwitcher *self)
{
  g_signal_emit (self, signals[SELECT], 0, self->sibling + 1);
}

static void
ks_branch_switcher_dispose (GObject *object)
{
  KsBranchSwitcher *self = KS_BRANCH_SWITCHER (object);

  g_clear_pointer (&self->previous, gtk_widget_unparent);
  g_clear_pointer (&self->label, gtk_widget_unparent);
  g_clear_pointer (&self->next, gtk_widget_unparent);
  G_OBJECT_CLASS (ks_branch_switcher_parent_class)->dispose (object);
}

static void
ks_branch_switcher_class_init (KsBranchSwitcherClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_branch_switcher_dispose;
  signals[SELECT] = g_signal_new ("select", KS_TYPE_BRANCH_SWITCHER, G_SIGNAL_RUN_LAST, 0, NULL,
                                  NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BOX_LAYOUT);
  gtk_widget_class_set_css_name (widget_class, "branchswitcher");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
}

static GtkWidget *
add_button (KsBranchSwitcher *self, const char *icon, const char *label, GCallback callback)
{
  GtkWidget *button = gtk_button_new_from_icon_name (icon);

  gtk_widget_add_css_class (button, "flat");
  gtk_widget_set_tooltip_text (button, label);
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
  g_signal_connect_swapped (button, "clicked", callback, self);
  gtk_widget_set_parent (button, GTK_WIDGET (self));
  return button;
}

static void
ks_branch_switcher_init (KsBranchSwitcher *self)
{
  self->previous =
      add_button (self, "go-previous-symbolic", _ ("Previous Version"), G_CALLBACK (previous_cb));
  self->label = gtk_label_new (NULL);
  gtk_widget_add_css_class (self->label, "caption");
  gtk_widget_add_css_class (self->label, "numeric");
  gtk_widget_set_parent (self->label, GTK_WIDGET (self));
  self->next = add_button (self, "go-next-symbolic", _ ("Next Version"), G_CALLBACK (next_cb));
}

GtkWidget *
ks_branch_switcher_new (void)
{
  return g_object_new (KS_TYPE_BRANCH_SWITCHER, NULL);
}

/* ks-session-row.c - see ks-session-row.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-session-row.h"

#include "ui/ks-resource.h"

#include <glib/gi18n.h>

struct _KsSessionRow {
  GtkWidget parent_instance;

  KsSession *session;
  GtkWidget *title;
  GtkWidget *subtitle;
  GtkWidget *popover; /* the menu or the entry that is open, NULL when none */
};

G_DEFINE_FINAL_TYPE (KsSessionRow, ks_session_row, GTK_TYPE_WIDGET)

enum { RENAME, EXPORT, DELETE, N_SIGNALS };
static guint signals[N_SIGNALS];

char *
ks_session_row_format_time (gint64 time_us, gint64 now_us)
{
  g_autoptr (GDateTime) time = g_date_time_new_from_unix_local (time_us / G_USEC_PER_SEC);
  g_autoptr (GDateTime) now = g_date_time_new_from_unix_local (now_us / G_USEC_PER_SEC);
  gint64 age_s = (now_us - time_us) / G_USEC_PER_SEC;

  if (time == NULL || now == NULL)
    return g_strdup ("");
  if (age_s >= 0 && age_s < 60)
    return g_strdup (_ ("Just now"));
  if (age_s >= 0 && age_s < 24 * 3600 &&
      g_date_time_get_day_of_month (time) == g_date_time_get_day_of_month (now))
    return g_date_time_format (time, "%H:%M");
  if (age_s >= 0 && age_s < 6 * 24 * 3600)
    return g_date_time_format (time, "%A");
  return g_date_time_format (time, "%x");
}

static const char *
get_title (KsSession *session)
{
  const char *title = ks_session_get_title (session);

  return title == NULL || *title == '\0' ? _ ("Untitled") : title;
}

/* Titles and hits come from outside: one line, and nothing that turns the writing around. */
static char *
make_line (const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  GString *line = g_string_sized_new (128);

  for (const char *p = valid; *p != '\0' && line->len < 400; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);
    gboolean turns = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);

    if (g_unichar_iscntrl (c) || g_unichar_isspace (c))
      g_string_append_c (line, ' ');
    else if (!turns)
      g_string_append_unichar (line, c);
  }
  return g_string_free (line, FALSE);
}

static void
update (KsSessionRow *self)
{
  g_autofree char *title = NULL;
  g_autofree char *subtitle = NULL;
  const char *snippet = NULL;

  if (self->session == NULL)
    return;
  title = make_line (get_title (self->session));
  snippet = ks_session_get_snippet (self->session);
  subtitle = snippet != NULL && *snippet != '\0'
                 ? make_line (snippet)
                 : ks_session_row_format_time (ks_session_get_updated_us (self->session),
                                               g_get_real_time ());
  gtk_label_set_text (GTK_LABEL (self->title), title);
  gtk_label_set_text (GTK_LABEL (self->subtitle), subtitle);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, title,
                                  GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, subtitle, -1);
}

void
ks_session_row_set_session (KsSessionRow *self, KsSession *session)
{
  g_return_if_fail (KS_IS_SESSION_ROW (self));
  if (self->session != NULL)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_clear_pointer (&self->popover, gtk_widget_unparent);
  g_set_object (&self->session, session);
  if (session != NULL)
    g_signal_connect_object (session, "notify", G_CALLBACK (update), self, G_CONNECT_SWAPPED);
  update (self);
}

KsSession *
ks_session_row_get_session (KsSessionRow *self)
{
  g_return_val_if_fail (KS_IS_SESSION_ROW (self), NULL);
  return self->session;
}

static gboolean
remove_popover_cb (gpointer popover)
{
  if (gtk_widget_get_parent (popover) != NULL)
    gtk_widget_unparent (popover);
  return G_SOURCE_REMOVE;
}

/* Not at once: the menu activates its action after it has closed. */
static void
popover_closed_cb (GtkWidget *popover, KsSessionRow *self)
{
  if (self->popover == popover)
    self->popover = NULL;
  g_idle_add_full (G_PRIORITY_LOW, remove_popover_cb, g_object_ref (popover), g_object_unref);
}

static void
show_popover (KsSessionRow *self, GtkWidget *popover)
{
  g_clear_pointer (&self->popover, gtk_widget_unparent);
  self->popover = popover;
  gtk_widget_set_parent (popover, GTK_WIDGET (self));
  g_signal_connect (popover, "closed", G_CALLBACK (popover_closed_cb), self);
  gtk_popover_popup (GTK_POPOVER (popover));
}

static void
entry_activate_cb (GtkEditable *entry, KsSessionRow *self)
{
  g_autofree char *title = g_strstrip (g_strdup (gtk_editable_get_text (entry)));
  GtkWidget *popover = self->popover;

  if (*title != '\0')
    g_signal_emit (self, signals[RENAME], 0, title);
  if (popover != NULL)
    gtk_popover_popdown (GTK_POPOVER (popover));
}

static void
rename_clicked_cb (GtkButton *button, KsSessionRow *self)
{
  entry_activate_cb (GTK_EDITABLE (g_object_get_data (G_OBJECT (button), "entry")), self);
}

void
ks_session_row_start_rename (KsSessionRow *self)
{
  GtkWidget *popover = gtk_popover_new ();
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *entry = gtk_entry_new ();
  GtkWidget *button = gtk_button_new_with_mnemonic (_ ("_Rename"));

  g_return_if_fail (KS_IS_SESSION_ROW (self) && self->session != NULL);
  gtk_editable_set_text (GTK_EDITABLE (entry), get_title (self->session));
  gtk_entry_set_max_length (GTK_ENTRY (entry), 200);
  gtk_widget_set_hexpand (entry, TRUE);
  gtk_editable_set_width_chars (GTK_EDITABLE (entry), 24);
  gtk_accessible_update_property (GTK_ACCESSIBLE (entry), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Title of the session"), -1);
  gtk_widget_add_css_class (button, "suggested-action");
  gtk_box_append (GTK_BOX (box), entry);
  gtk_box_append (GTK_BOX (box), button);
  gtk_popover_set_child (GTK_POPOVER (popover), box);
  g_signal_connect (entry, "activate", G_CALLBACK (entry_activate_cb), self);
  g_object_set_data (G_OBJECT (button), "entry", entry);
  g_signal_connect (button, "clicked", G_CALLBACK (rename_clicked_cb), self);
  show_popover (self, popover);
  gtk_widget_grab_focus (entry);
}

void
ks_session_row_popup_menu (KsSessionRow *self, double x, double y)
{
  g_autoptr (GMenu) menu = g_menu_new ();
  g_autoptr (GMenu) end = g_menu_new ();
  GtkWidget *popover = NULL;

  g_return_if_fail (KS_IS_SESSION_ROW (self));
  g_menu_append (menu, _ ("_Rename…"), "row.rename");
  g_menu_append (menu, _ ("_Export…"), "row.export");
  g_menu_append (end, _ ("_Delete"), "row.delete");
  g_menu_append_section (menu, NULL, G_MENU_MODEL (end));
  popover = gtk_popover_menu_new_from_model (G_MENU_MODEL (menu));
  if (x >= 0 && y >= 0) {
    GdkRectangle at = {(int)x, (int)y, 1, 1};

    gtk_popover_set_has_arrow (GTK_POPOVER (popover), FALSE);
    gtk_widget_set_halign (popover, GTK_ALIGN_START);
    gtk_popover_set_pointing_to (GTK_POPOVER (popover), &at);
  }
  show_popover (self, popover);
}

static void
rename_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  ks_session_row_start_rename (KS_SESSION_ROW (widget));
}

static void
export_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  g_signal_emit (widget, signals[EXPORT], 0);
}

static void
delete_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  g_signal_emit (widget, signals[DELETE], 0);
}

/* The whole title, where the row has no room for it. */
static gboolean
ks_session_row_query_tooltip (GtkWidget *widget, int x, int y, gboolean keyboard,
                              GtkTooltip *tooltip)
{
  GtkLabel *title = GTK_LABEL (KS_SESSION_ROW (widget)->title);

  gtk_tooltip_set_text (tooltip, gtk_label_get_text (title));
  return pango_layout_is_ellipsized (gtk_label_get_layout (title));
}

static void
ks_session_row_dispose (GObject *object)
{
  KsSessionRow *self = KS_SESSION_ROW (object);
  GtkWidget *child = NULL;

  if (self->session != NULL)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_clear_object (&self->session);
  self->popover = NULL;
  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_SESSION_ROW);
  /* The content, and popovers that have closed but are still there. */
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (object))) != NULL)
    gtk_widget_unparent (child);
  G_OBJECT_CLASS (ks_session_row_parent_class)->dispose (object);
}

static void
ks_session_row_class_init (KsSessionRowClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_session_row_dispose;
  signals[RENAME] = g_signal_new ("rename", KS_TYPE_SESSION_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[EXPORT] = g_signal_new ("export", KS_TYPE_SESSION_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 0);
  signals[DELETE] = g_signal_new ("delete", KS_TYPE_SESSION_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 0);
  gtk_widget_class_install_action (widget_class, "row.rename", NULL, rename_action);
  gtk_widget_class_install_action (widget_class, "row.export", NULL, export_action);
  gtk_widget_class_install_action (widget_class, "row.delete", NULL, delete_action);
  widget_class->query_tooltip = ks_session_row_query_tooltip;
  gtk_widget_class_set_css_name (widget_class, "sessionrow");
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-session-row.ui");
  gtk_widget_class_bind_template_child (widget_class, KsSessionRow, title);
  gtk_widget_class_bind_template_child (widget_class, KsSessionRow, subtitle);
}

static void
ks_session_row_init (KsSessionRow *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
}

GtkWidget *
ks_session_row_new (void)
{
  return g_object_new (KS_TYPE_SESSION_ROW, NULL);
}

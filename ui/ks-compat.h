/* ks-compat.h - everything that differs between GTK 4.8 / libadwaita 1.2 and GTK 4.18 / libadwaita
 * 1.7; the rest of the window has no version test.
 * Widgets that are made here are plain GtkWidgets to their users.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <adwaita.h>

G_BEGIN_DECLS

/* --- panes --- */
/* Content with a pane at the start or the end, which lies over it when there is little room.
 * locked: the pane comes and goes only on demand, not with the room. */
GtkWidget *ks_split_view_new (GtkPackType side, gboolean locked);
void ks_split_view_set_content (GtkWidget *view, GtkWidget *content);
void ks_split_view_set_sidebar (GtkWidget *view, GtkWidget *sidebar, int width_px);
gboolean ks_split_view_get_show_sidebar (GtkWidget *view);
void ks_split_view_set_show_sidebar (GtkWidget *view, gboolean show);
/* Whether the pane lies over the content. */
gboolean ks_split_view_get_collapsed (GtkWidget *view);
/* A stateful action that shows and hides the pane. (transfer full) */
GAction *ks_split_view_action_new (GtkWidget *view, const char *name);
/* callback (view, pspec, data) whenever the pane comes, goes, or begins or ends to cover. */
void ks_split_view_connect_changed (GtkWidget *view, GCallback callback, gpointer data);

/* Header bar, body, and a bar below (may be NULL). */
GtkWidget *ks_page_new (GtkWidget *header, GtkWidget *body, GtkWidget *bottom);
/* Lets both panes of a window cover its content when it is narrow. */
void ks_compat_adapt (AdwApplicationWindow *window, GtkWidget *sessions, GtkWidget *memory);

/* --- dialogs --- */
/* A dialog with that content (header bar included); Escape closes it. (transfer none) */
GtkWidget *ks_dialog_new (const char *title, GtkWidget *content, int width_px, int height_px);
void ks_dialog_present (GtkWidget *dialog, GtkWidget *parent);
void ks_dialog_close (GtkWidget *dialog);

typedef void (*KsConfirmFunc) (gboolean accepted, gpointer data);
/* For what cannot be undone; destructive colours the button.  destroy (may be NULL) frees data
 * after the answer. */
void ks_confirm (GtkWidget *parent, const char *heading, const char *body, const char *accept,
                 gboolean destructive, KsConfirmFunc func, gpointer data, GDestroyNotify destroy);
typedef void (*KsTextFunc) (const char *text, gpointer data); /* NULL: given up */
/* Asks for one line; secret: a password. */
void ks_ask_text (GtkWidget *parent, const char *heading, const char *body, const char *accept,
                  gboolean secret, KsTextFunc func, gpointer data, GDestroyNotify destroy);

/* Pages of preferences (AdwPreferencesPage, NULL ends the list). Returns the dialog. */
GtkWidget *ks_prefs_present (GtkWidget *parent, const char *title, AdwPreferencesPage *const *pages,
                             gboolean search);
void ks_prefs_add_toast (GtkWidget *dialog, AdwToast *toast); /* (transfer full) */
void ks_about (GtkWidget *parent);

/* --- files and links --- */
typedef void (*KsFilesFunc) (GListModel *files, gpointer data); /* of GFile; NULL: given up */
/* filters: of GtkFileFilter, NULL = all files. */
void ks_file_open (GtkWidget *parent, const char *title, GListModel *filters, gboolean multiple,
                   KsFilesFunc func, gpointer data, GDestroyNotify destroy);
/* Like it, for whole folders: one or several. */
void ks_folders_open (GtkWidget *parent, const char *title, KsFilesFunc func, gpointer data,
                      GDestroyNotify destroy);
typedef void (*KsFileFunc) (GFile *file, gpointer data);
void ks_file_save (GtkWidget *parent, const char *title, const char *name, GListModel *filters,
                   KsFileFunc func, gpointer data, GDestroyNotify destroy);
/* Opens a link in the user's program for it: http, https and mailto only; FALSE for others. */
gboolean ks_open_uri (GtkWidget *parent, const char *uri);
/* Opens the file manager at the file. */
void ks_show_in_files (GtkWidget *parent, GFile *file);

/* --- looks and speech --- */
/* Adds rules for all windows of the display. */
void ks_css_add (const char *css);
/* Foreground colour that the style sheets give the widget. */
void ks_widget_color (GtkWidget *widget, GdkRGBA *out_color);
/* Gives the window an ear for ks_announce: a label that nobody sees, where GTK has no other way. */
void ks_announcer_install (GtkWindow *window, GtkOverlay *overlay);
/* Has a screen reader say it; once, not for every word that streams. */
void ks_announce (GtkWidget *widget, const char *message);

G_END_DECLS

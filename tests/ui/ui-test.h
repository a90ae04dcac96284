/* ui-test.h - what the tests of widgets share: start-up, a window around a widget, waiting for a
 * condition with the main loop running.
 * Accessible names are asserted with gtk_test_accessible_assert_property of GTK itself. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <adwaita.h>

G_BEGIN_DECLS

/* g_test_init, GTK, libadwaita and the program's style sheet.  Animations are off. */
void ui_test_init (int *argc, char ***argv);
/* A mapped window of that size with the widget in it. (transfer none) ui_test_close ends it. */
GtkWindow *ui_test_present (GtkWidget *widget, int width, int height);
void ui_test_close (GtkWindow *window);
typedef gboolean (*UiTestCondition) (gpointer data);
/* Runs the main loop until condition holds; fails the test after 20 s. */
void ui_test_wait (UiTestCondition condition, gpointer data);
/* Runs the main loop until nothing is left to do and at least one frame was drawn. */
void ui_test_settle (GtkWidget *widget);
/* Writes the widget's picture to NAME.png in the folder KS_SHOT_DIR names, for looking at; does
 * nothing without it. */
void ui_test_save (GtkWidget *widget, const char *name);
/* First widget of that type under root (root itself included), NULL when there is none. */
GtkWidget *ui_test_find (GtkWidget *root, GType type);
/* First button, label or other widget under root whose label or text is exactly that. */
GtkWidget *ui_test_find_text (GtkWidget *root, const char *text);

G_END_DECLS

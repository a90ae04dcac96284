/* ui-library.h - a library over a folder of the test's own, with one stored session and no
 * model, for tests of dialogs; and what these look for. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"
#include "tests/ui/ui-test.h"

G_BEGIN_DECLS

typedef struct {
  char *dir;
  KsSettings *settings;
  GSettings *gsettings;
  KsLibrary *library;
  KsSession *session; /* "Cable car", a question and its answer */
  GtkWindow *window;
  GtkWidget *child; /* in the window, which can show toasts */
} LibraryFixture;

/* The library is open and has found that there is no model when this returns. */
void library_fixture_set_up (LibraryFixture *f);
/* The library alone; the test may make another one in its place. */
void library_fixture_close (LibraryFixture *f);
/* Settings go back to their defaults; nothing of the library may be left. */
void library_fixture_tear_down (LibraryFixture *f);

/* The row of that title; NULL when there is none.  Of rows with the same title, the n-th from 0. */
GtkWidget *find_row (GtkWidget *root, const char *title, guint n);
/* A button with that label or tooltip, in root or (NULL) any window; NULL when there is none. */
GtkWidget *find_button (GtkWidget *root, const char *text);
/* Presses it as a user does; there must be one. */
void click (GtkWidget *root, const char *text);
/* A label in any window that begins so; NULL when there is none. */
GtkWidget *find_label (const char *beginning);

G_END_DECLS

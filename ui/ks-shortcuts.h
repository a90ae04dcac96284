/* ks-shortcuts.h - the one table of keys: the application takes its accelerators from it, the build
 * writes gtk/help-overlay.ui from it.
 * Threads: any, constant. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
  const char *group;     /* heading in the list of keys, msgid */
  const char *title;     /* what it does, msgid */
  const char *action;    /* detailed name; NULL = a widget handles the keys itself */
  const char *accels[3]; /* NULL ends; the first is shown */
} KsShortcut;

/* Ordered by group. */
const KsShortcut *ks_shortcuts_get (gsize *out_n);

G_END_DECLS

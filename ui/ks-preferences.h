/* ks-preferences.h - the preferences: General, Answers, Model, Pictures, This Session (with a
 * chat), Privacy. Every row is bound to the settings and in force at once unless it says otherwise.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* chat may be NULL.  Returns the dialog, which holds what it needs until it is closed.
 * (transfer none) */
GtkWidget *ks_preferences_present (GtkWidget *parent, KsLibrary *library, KsChat *chat);

G_END_DECLS

/* ks-state-preferences.h - the part of the preferences about kept states of sessions: how much they
 * may take in memory and on the disk, what they take now, and a button that removes them.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

/* At the end of page; the library has settings with a schema. */
void ks_state_group_add (AdwPreferencesPage *page, KsLibrary *library);

G_END_DECLS

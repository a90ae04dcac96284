/* ks-picture-preferences.h - page of preferences about what the model sees of pictures and videos,
 * and what is kept of pictures that it has looked at.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

/* Bound to the library's settings (their schema must be there). */
AdwPreferencesPage *ks_picture_page_new (KsLibrary *library);
/* Keys of the settings that it shows; NULL ends the list. */
const char *const *ks_picture_page_get_keys (void);

G_END_DECLS

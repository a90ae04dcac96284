/* ks-answer-preferences.h - pages of preferences about how answers are made: for all sessions
 * ("Answers") and for one alone ("This Session").
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-chat.h"
#include "app/ks-settings.h"

#include <adwaita.h>

G_BEGIN_DECLS

/* Bound to the settings (their schema must be there). */
AdwPreferencesPage *ks_answer_page_new (KsSettings *settings);
/* What chat's next answer depends on; values that follow the program say so, and any can be made
 * the session's own and be given back.  Holds chat. */
AdwPreferencesPage *ks_session_page_new (KsSettings *settings, KsChat *chat);
/* Keys of the settings that the first page shows; NULL ends the list. */
const char *const *ks_answer_page_get_keys (void);

G_END_DECLS

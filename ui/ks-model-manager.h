/* ks-model-manager.h - the models of this machine: what each one is, whether it fits, which one is
 * in use; loading another one, from the models folder or from anywhere.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_MODEL_PAGE (ks_model_page_get_type ())
G_DECLARE_FINAL_TYPE (KsModelPage, ks_model_page, KS, MODEL_PAGE, AdwPreferencesPage)

/* For the preferences; looks into the models folder when it is made and on demand. */
AdwPreferencesPage *ks_model_page_new (KsLibrary *library);
/* The same page as a dialog of its own. (transfer none) */
GtkWidget *ks_model_manager_present (GtkWidget *parent, KsLibrary *library);

G_END_DECLS

/* ks-eyes-button.h - what a model sees with: a button whose list holds the vision files that fit
 * it, none, and any other file.  What is chosen is told to the library, which loads a model in use
 * again.
 * Signal: "chosen" after that.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_EYES_BUTTON (ks_eyes_button_get_type ())
G_DECLARE_FINAL_TYPE (KsEyesButton, ks_eyes_button, KS, EYES_BUTTON, AdwBin)

GtkWidget *ks_eyes_button_new (KsLibrary *library, KsModelEntry *entry);
/* "Sees pictures with mmproj.gguf", "Sees no pictures". (transfer full) */
char *ks_eyes_dup_words (KsModelEntry *entry);

G_END_DECLS

/* ks-eye-options.h - what the settings say about pictures, for the loading of a model.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-engine-setup.h"
#include "app/ks-settings.h"

G_BEGIN_DECLS

/* Sizes of pictures, and room in memory for what was made of them. */
void ks_eye_options_apply (KsEngineOptions *options, KsSettings *settings);
/* Keeps that on the disk, too, beside the sessions in data_dir. */
void ks_eye_options_set_store (KsEngineOptions *options, KsSettings *settings,
                               const char *data_dir);
/* Fewer tokens of pictures, as the window's settings say; what makes no sense there is left out. */
void ks_eye_options_prune (KsEngineOptions *options, KsSettings *settings);

G_END_DECLS

/* ks-library-command.h - a library for the command line, whose options stand in place of the
 * settings.  Apart from ks-library.h because it speaks of the engine, which the window never sees.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-engine-setup.h"
#include "app/ks-library.h"

G_BEGIN_DECLS

/* options given: model, gate, memory and policy are those, whatever the settings say; a target that
 * is too small is an error ("model-error").  NULL = as ks_library_new. */
KsLibrary *ks_library_new_full (KsSettings *settings, const char *dir,
                                const KsEngineOptions *options);
/* Why the model could not be loaded, with its code; NULL when it could or was not tried. */
const GError *ks_library_get_model_failure (KsLibrary *self);

G_END_DECLS

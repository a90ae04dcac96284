/* ks-data-dir.h - where the program's own data files and the user's folders lie.
 * Data files: $KS_DATA_DIR, the source tree when run from the build folder, else the installed
 * folder. Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Folder with default-model.json and gates/. (transfer full) */
char *ks_data_dir_dup (void);
/* Folder with the compiled schema of the settings: in the build folder, or installed.
 * (transfer full) */
char *ks_schema_dir_dup (void);
/* Folder with the compiled translations (de/LC_MESSAGES/keepsake.mo). (transfer full) */
char *ks_locale_dir_dup (void);
/* The user's models: $XDG_DATA_HOME/keepsake/models. (transfer full) */
char *ks_models_dir_dup (void);

G_END_DECLS

/* ks-export-dialog.h - a session out of the program as a file, and back in from our JSON bundles.
 * Parents are widgets of the window, which shows the result as a toast.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* Asks for the format, then for the file.  Returns the dialog. (transfer none) */
GtkWidget *ks_export_dialog_present (GtkWidget *parent, KsLibrary *library, KsSession *session);
/* Writes what the dialog has chosen to file, with progress and Cancel; closes the dialog when that
 * succeeds, and says in it why when not. */
void ks_export_dialog_start (GtkWidget *dialog, GFile *file);

/* Asks for a bundle, then as ks_import_start. */
void ks_import_present (GtkWidget *parent, KsLibrary *library);
/* Imports file; what came of it is told in the window. */
void ks_import_start (GtkWidget *parent, KsLibrary *library, GFile *file);

G_END_DECLS

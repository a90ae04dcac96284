/* ks-text-viewer.h - the text of an attachment, to read and to copy from.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* In a dialog over the parent's window. */
void ks_text_viewer_present (GtkWidget *parent, KsLibrary *library, KsAttachment *attachment);

G_END_DECLS

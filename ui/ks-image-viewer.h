/* ks-image-viewer.h - a picture, or the pages of a document, as large as there is room, or zoomed.
 * Pictures come from the library only; a few pages are held at a time.
 * Signal: "page-changed" (another page was gone to).  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_IMAGE_VIEWER (ks_image_viewer_get_type ())
G_DECLARE_FINAL_TYPE (KsImageViewer, ks_image_viewer, KS, IMAGE_VIEWER, AdwBin)

/* Of anything that has pages or is a picture. */
KsImageViewer *ks_image_viewer_new (KsLibrary *library, KsAttachment *attachment);
void ks_image_viewer_add_to_header (KsImageViewer *self, GtkWidget *widget);
/* Pages count from 0; one that does not exist becomes the nearest that does. */
void ks_image_viewer_set_page (KsImageViewer *self, guint page);
guint ks_image_viewer_get_page (KsImageViewer *self);
/* 1 = a picture's own pixels, or a page of about 29 cm on an ordinary screen; 0 = fitted in. */
void ks_image_viewer_set_zoom (KsImageViewer *self, double zoom);
double ks_image_viewer_get_zoom (KsImageViewer *self);

G_END_DECLS

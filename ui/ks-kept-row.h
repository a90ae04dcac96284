/* ks-kept-row.h - title, share in words and a bar: what is kept of a turn or a picture.
 * A plain struct over widgets that their parents own.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <adwaita.h>

G_BEGIN_DECLS

typedef struct {
  GtkWidget *box; /* holds the others; floating until it has a parent */
  GtkLabel *title;
  GtkWidget *pin; /* shown for what stays whatever else is let go */
  GtkInscription *share;
  GtkLevelBar *bar;
} KsKeptRow;

/* ellipsize: where a title that is too long is cut. */
KsKeptRow ks_kept_row_new (PangoEllipsizeMode ellipsize);

G_END_DECLS

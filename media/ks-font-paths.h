/* ks-font-paths.h - the system's fonts stay readable behind the filter.  Only for decoders in the
 * worker that draw text. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Before the filter: reads the lists of fonts and adds their folders to paths. */
void ks_font_paths_add (GPtrArray *paths);

G_END_DECLS

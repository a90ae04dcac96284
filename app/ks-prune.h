/* ks-prune.h - how tokens of pictures are left out, as texts: VisionZip "54,10", FastV "2,0.5".
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/vision-prune.h"

#include <glib.h>

G_BEGIN_DECLS

/* Tokens of a view to keep (1 or more) and to merge the others into. */
gboolean ks_prune_parse_zip (const char *text, ks_vision_zip *out);
/* Layers that see everything (1 or more), and the part from 0 to 1 that goes behind them. */
gboolean ks_prune_parse_fastv (const char *text, ks_fastv *out);

G_END_DECLS

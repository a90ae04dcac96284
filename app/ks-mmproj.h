/* ks-mmproj.h - which vision towers ("mmproj" files) belong to a language model, by the keys and
 * sizes in both files, without loading weights.
 * Threads: any (files are read). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Files of the model's folder that would give it eyes, the likeliest first: the one whose name has
 * most in common with the model's, then the larger one.  (transfer full) never NULL */
char **ks_mmproj_list (const char *model_path);
/* FALSE with the engine's sentence: why mmproj_path does not belong to the model. */
gboolean ks_mmproj_check (const char *mmproj_path, const char *model_path, GError **error);

G_END_DECLS

/* ks-memfd.h - bytes as a file in memory that nobody can change any more: what the program hands to
 * a worker when there is no file of the user.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The parts one after the other, sealed, read from the start.  -1: errno says why. */
int ks_memfd_new (GBytes *const *parts, guint n_part);

G_END_DECLS

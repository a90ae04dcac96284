/* ks-office-sniff.h - does a file begin like a document of keepsake-office.so: an archive, a page
 * of HTML, or an Office file in its old form, which that module then refuses with its own sentence.
 * Only for the worker.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* data: the first n bytes. */
gboolean ks_office_sniff (const guint8 *data, gsize n);
gboolean ks_office_sniff_old (const guint8 *data, gsize n); /* the old form alone */
gboolean ks_office_sniff_zip (const guint8 *data, gsize n); /* an archive alone */

G_END_DECLS

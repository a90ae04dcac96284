/* ks-office-zip.h - the parts of a document that is a zip archive, unpacked once and bounded.
 * Only for the worker.  Names are keys in a table, never paths; nothing is unpacked twice for a
 * text, and of pictures only the first bytes until one is asked for.  A fault ends the process.
 * Threads: the worker has one. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-loader.h"

G_BEGIN_DECLS

typedef struct _KsOfficeZip KsOfficeZip;

/* Reads the directory and every part that can hold text.  Faults: DAMAGED, CIPHER (a packed
 * password), UNPACKED.  Lives until the process ends. */
KsOfficeZip *ks_office_zip_open (const KsLoaderJob *job);
/* A part with text, NULL when there is none of this name. (transfer none) */
GBytes *ks_office_zip_peek (KsOfficeZip *zip, const char *name);
/* The part is a picture of a kind that can be decoded, by its first bytes. */
gboolean ks_office_zip_has_picture (KsOfficeZip *zip, const char *name);
/* Some part could not be unpacked to its end. */
gboolean ks_office_zip_is_damaged (KsOfficeZip *zip);
/* Any one part; ends with a fault when it cannot be had. (transfer full) */
GBytes *ks_office_zip_extract (KsOfficeZip *zip, const char *name);

/* Where a reference in a part leads: target (a URI without scheme, percent-encoded) from the folder
 * of base; NULL when it names another place than the archive. (transfer full) */
char *ks_office_resolve (const char *base, const char *target);

G_END_DECLS

/* ks-sniff.h - which decoder a file belongs to, by its first bytes; its name never counts.
 * Only for the worker, which still has its rights here: bytes are compared, nothing is decoded.
 * A new kind is a line in the table of ks-sniff.c.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-worker-wire.h"

G_BEGIN_DECLS

/* How far is looked: the PDF standard lets a file begin with other bytes, and a drawing's first
 * element stands behind its comments. */
#define KS_SNIFF_BYTES 4096

typedef struct {
  KsWireWhat what;
  const char *module; /* file beside the worker; NULL: a text, whose decoder is in the worker */
} KsSniff;

/* The first n bytes of a file, at most KS_SNIFF_BYTES.  Never NULL: what is none of the known kinds
 * counts as text, and that decoder says when it is none. */
const KsSniff *ks_sniff (const guint8 *data, gsize n);

G_END_DECLS

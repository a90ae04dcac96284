/* unicode-internal.h - the generated table behind unicode.c; for unicode.c and unicode-data.c only.
 * Invariant: ranges are sorted, do not overlap, and every class is a ks_unicode_class. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/unicode.h"

KS_BEGIN_DECLS

typedef struct ks_unicode_range {
  uint32_t first, last; /* both included */
  ks_unicode_class cls;
} ks_unicode_range;

extern const size_t ks_unicode_n_ranges;
extern const ks_unicode_range ks_unicode_ranges[];

KS_END_DECLS

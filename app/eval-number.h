/* eval-number.h - the value of a short LaTeX number expression, as mathematics scorers need it.
 * Grammar and limits: docs/formats/scoring.md.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

typedef struct {
  long double value;
  gboolean is_integer; /* built from integers by + - * ! and powers only: prints without a point */
} KsEvalNumber;

/* FALSE for anything that is no number: free letters, units, division by zero, over the limits
 * (4,096 code points, nesting of 64, factorials above 170). */
gboolean ks_eval_number_parse (const char *latex, KsEvalNumber *out);
/* round(value, 2) as Python prints it ("2", "2.0", "0.33"); g_free. */
char *ks_eval_number_format (const KsEvalNumber *number);
/* Equal after rounding to two decimals. */
gboolean ks_eval_number_equal (const KsEvalNumber *a, const KsEvalNumber *b);

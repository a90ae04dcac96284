/* eval-text.h - the string rules that the public scorers take from Python 3, on UTF-8 GStrings.
 * All functions work by code point and do not depend on the locale.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

/* A copy with invalid UTF-8 replaced by U+FFFD. */
GString *ks_eval_text_new (const char *text);
/* str.lower(): full Unicode lower-casing, final sigma included. */
GString *ks_eval_text_lower (const char *text);
gboolean ks_eval_text_is_space (gunichar c); /* str.isspace() */
/* str.strip(), in place. */
void ks_eval_text_strip (GString *text);
/* Replaces every occurrence, left to right; returns whether there was one. */
gboolean ks_eval_text_replace (GString *text, const char *find, const char *replacement);
/* Deletes each of the NULL-terminated list in turn. */
void ks_eval_text_delete_all (GString *text, const char *const *list);
/* Keeps what follows the last occurrence of separator; FALSE (unchanged) when there is none. */
gboolean ks_eval_text_keep_after_last (GString *text, const char *separator);
/* Keeps what stands before the first occurrence of separator. */
void ks_eval_text_keep_before (GString *text, const char *separator);
/* float(text) would succeed. */
gboolean ks_eval_text_is_float (const char *text);
/* int(text) would succeed and its decimal spelling is text itself ("12", "-3", not "012"). */
typedef enum { KS_EVAL_NOT_INT, KS_EVAL_INT_OTHER_SPELLING, KS_EVAL_INT_CANONICAL } KsEvalInt;
KsEvalInt ks_eval_text_classify_int (const char *text);
/* Every code point is a digit and there is one; *out_digits gets them as ASCII without leading
 * zeros. */
gboolean ks_eval_text_all_digits (const char *text, char **out_digits);

/* Cleaning shared by the competition-mathematics scorers: \sqrt and \frac arguments get their
 * braces. FALSE where the public code would raise (nothing behind \sqrt or \frac). */
gboolean ks_eval_text_brace_sqrt (GString *text);
gboolean ks_eval_text_brace_frac (GString *text);
/* "a/b" with two integers in canonical spelling becomes \frac{a}{b}.  FALSE where a side is no
 * integer. */
gboolean ks_eval_text_slash_to_frac (GString *text);

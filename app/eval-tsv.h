/* eval-tsv.h - tab separated tables as the public benchmarks come in (comma separated ones where
 * the name ends in .csv): a line of column names, case ignored, fields with CSV quoting ("" inside
 * quotes, line breaks too), pictures as base64 text. The file is mapped: pictures are parts of it,
 * not copies.  Threads: one at a time. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct _KsEvalTsv KsEvalTsv;

/* The columns are read, no row yet. */
KsEvalTsv *ks_eval_tsv_open (const char *path, GError **error);
void ks_eval_tsv_free (KsEvalTsv *tsv); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsEvalTsv, ks_eval_tsv_free)
/* Goes to the next row; FALSE without error behind the last one. */
gboolean ks_eval_tsv_next (KsEvalTsv *tsv, GError **error);
/* Number of the line where the row begins, from 1. */
guint ks_eval_tsv_get_line (const KsEvalTsv *tsv);
gboolean ks_eval_tsv_has (const KsEvalTsv *tsv, const char *column);
/* Text of the row's field, quotes taken away; NULL when there is no such column. (transfer full) */
char *ks_eval_tsv_dup (const KsEvalTsv *tsv, const char *column);
/* Bytes of the field in the file, quotes included; 0 when there is no such column. */
gsize ks_eval_tsv_get_n_bytes (const KsEvalTsv *tsv, const char *column);
/* The encoded pictures in a field: one, or a list of them.  Parts of the file. (of GBytes, transfer
 * full) */
GPtrArray *ks_eval_tsv_get_base64 (const KsEvalTsv *tsv, const char *column);

/* A list as Python, JSON or numpy spells it: ["a", 'b'], ['a' 'b'].  NULL and a sentence when it is
 * none. (transfer full) */
char **ks_eval_parse_list (const char *text, GError **error);

G_END_DECLS

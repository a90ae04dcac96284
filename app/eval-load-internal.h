/* eval-load-internal.h - what the loaders of benchmarks share: files, rows, fields, pictures.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-load.h"
#include "app/eval-tsv.h"

G_BEGIN_DECLS

/* What a loader works on. */
typedef struct {
  const KsEvalLoadOptions *options;
  const char *bench;
  char *file, *folder; /* file: the rows; folder: where it lies */
  GPtrArray *items;    /* what it makes */
  GHashTable *shared;  /* index of a table's row -> its pictures; NULL until one is asked for */
} KsEvalLoading;

gboolean ks_eval_load_aime (KsEvalLoading *loading, GError **error);
gboolean ks_eval_load_mathvision (KsEvalLoading *loading, GError **error);
gboolean ks_eval_load_mme (KsEvalLoading *loading, GError **error);
gboolean ks_eval_load_mmdu (KsEvalLoading *loading, GError **error);
gboolean ks_eval_load_textvqa (KsEvalLoading *loading, GError **error);

/* Called for each row of a file. */
typedef gboolean (*KsEvalJsonRow) (KsEvalLoading *loading, const cJSON *row, gpointer user,
                                   GError **error);
typedef gboolean (*KsEvalTsvRow) (KsEvalLoading *loading, const KsEvalTsv *tsv, GError **error);

/* Objects of a JSON Lines file, of a list, of the list "data" of an object, or an object's values.
 * An error of func gets the file and the row's number. */
gboolean ks_eval_load_json (KsEvalLoading *loading, const char *path, KsEvalJsonRow func,
                            gpointer user, GError **error);
gboolean ks_eval_load_tsv (KsEvalLoading *loading, KsEvalTsvRow func, GError **error);
gboolean ks_eval_load_is_tsv (const KsEvalLoading *loading);

/* A text or a number as text, by one of the names ("problem|question"), case ignored.
 * (transfer full) NULL with error when none is there. */
char *ks_eval_load_dup_field (const cJSON *row, const char *names, GError **error);
char *ks_eval_load_dup_column (const KsEvalTsv *tsv, const char *names, GError **error);
/* (transfer full) NULL with error when it is no list of texts or numbers. */
char **ks_eval_load_dup_list (const cJSON *row, const char *name, GError **error);

/* A new item, in the list of the loading. (transfer none) */
KsEvalItem *ks_eval_load_add (KsEvalLoading *loading, const char *part, const char *id);
/* The file of a picture under the pictures' folder; names that lead out of it are refused. sub: a
 * folder of the release that is tried first, or NULL. (transfer full) */
char *ks_eval_load_find_picture (KsEvalLoading *loading, const char *sub, const char *name,
                                 GError **error);
/* Adds the pictures in the row's column "image" (base64, or the "index" of the row that has them).
 */
gboolean ks_eval_load_add_tsv_pictures (KsEvalLoading *loading, const KsEvalTsv *tsv,
                                        KsEvalTurn *turn, GError **error);

G_END_DECLS

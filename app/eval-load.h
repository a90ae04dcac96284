/* eval-load.h - benchmarks from the user's own files: nothing is fetched, nothing comes with the
 * program.  Formats: docs/formats/evaluation.md.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-item.h"

G_BEGIN_DECLS

/* "aime", "mathvision", "mme", "mmdu", "textvqa", NULL. */
extern const char *const ks_eval_benches[];

typedef struct {
  const char *data;     /* JSON, JSON Lines, TSV or CSV file, or the folder that it lies in */
  const char *pictures; /* folder of the pictures; NULL = where the release has them */
  const char *ocr;      /* TextVQA: file with the words of the pictures, or NULL */
  const char *prompts;  /* TextVQA: LLaVA's file of questions, which picks the items, or NULL */
} KsEvalLoadOptions;

/* All items, questions as they are in the data: they still want a template.  Errors name the file
 * and the row. (of KsEvalItem, transfer full) */
GPtrArray *ks_eval_load (const char *bench, const KsEvalLoadOptions *options, GError **error);
/* What a file of rows holds, at most 1 GiB; out_n may be NULL. (transfer full) */
char *ks_eval_load_text (const char *path, gsize *out_n, GError **error);

G_END_DECLS

/* eval-results.h - answers that other programs wrote, as prediction rows: the result files of MME's
 * tool (a folder of SUBTASK.txt, or one of them) and LLaVA's answers to TextVQA.
 * Formats: docs/formats/evaluation.md.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-load.h"

G_BEGIN_DECLS

/* Whether path is one of these; else it should be a run file. */
gboolean ks_eval_results_are (const char *path);
/* The rows, under a policy called "theirs".  data: where TextVQA's references are.  Errors name the
 * file and the line. (of KsEvalRow, transfer full) */
GPtrArray *ks_eval_results_load (const char *path, const KsEvalLoadOptions *data, GError **error);

G_END_DECLS

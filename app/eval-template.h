/* eval-template.h - how a benchmark's questions are worded: a text file with named sections that
 * the user may edit. # remarks, up to the first section [short] {image}{question} Answer with a
 * single word or phrase. {image} is where the pictures stand (in front when it is missing),
 * {question} the question as it is in the data, other names are fields of the item; what the
 * loaders fill in stands in docs/formats/evaluation.md.  Threads: immutable after loading. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-item.h"

G_BEGIN_DECLS

typedef struct _KsEvalTemplate KsEvalTemplate;

/* Section name of the file; NULL = the first one.  An unknown name is told with those there are. */
KsEvalTemplate *ks_eval_template_load (const char *path, const char *name, GError **error);
void ks_eval_template_free (KsEvalTemplate *tmpl); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsEvalTemplate, ks_eval_template_free)
const char *ks_eval_template_get_name (const KsEvalTemplate *tmpl);
/* SHA-256 of the section's text, in hex. */
const char *ks_eval_template_get_hash (const KsEvalTemplate *tmpl);
/* Words every question of the item: text and places of pictures are those the model gets.  Once for
 * an item.  A field that the item does not have is an error. */
gboolean ks_eval_template_fill (const KsEvalTemplate *tmpl, KsEvalItem *item, GError **error);

G_END_DECLS

/* eval-item.h - one item of a benchmark or of a made-up test: what the model is shown, turn by
 * turn, and what its answers are compared with.  Loaders and generators make items, a template
 * gives the questions their wording, eval-session.h asks them. Threads: an item belongs to its
 * holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-run.h"

G_BEGIN_DECLS

/* A picture of a turn: a file, or an encoded file as base64 text inside a larger one. */
typedef struct {
  char *path;
  GBytes *base64;       /* NULL where there is a path */
  gsize at;             /* byte of the turn's text before which it stands */
  gboolean in_question; /* at counts from the start of the raw question */
} KsEvalPicture;

typedef struct {
  char *text;          /* of the user: the raw question until a template was filled in */
  char *reply;         /* given, not generated; NULL = the model answers */
  char **expect;       /* what the answer is compared with; NULL for a given one */
  GPtrArray *pictures; /* of KsEvalPicture, in order of at */
} KsEvalTurn;

typedef struct {
  const char *bench, *part; /* interned, as in a row */
  char *id, *group;         /* group may be NULL */
  char **options;           /* texts of a multiple choice, or NULL */
  GHashTable *fields;       /* name -> text: what templates may name beside {question} */
  GPtrArray *turns;         /* of KsEvalTurn */
} KsEvalItem;

KsEvalItem *ks_eval_item_new (const char *bench, const char *part, const char *id);
void ks_eval_item_free (KsEvalItem *item); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsEvalItem, ks_eval_item_free)

/* Appends a turn; reply NULL = to be answered.  (transfer none) */
KsEvalTurn *ks_eval_item_add_turn (KsEvalItem *item, const char *text, const char *reply);
/* One more reference of a turn. */
void ks_eval_turn_add_expected (KsEvalTurn *turn, const char *text);
/* In front of the text; at and in_question can be set in what is returned. (transfer none) */
KsEvalPicture *ks_eval_turn_add_picture (KsEvalTurn *turn, const char *path);
KsEvalPicture *ks_eval_turn_add_base64 (KsEvalTurn *turn, GBytes *base64);
/* Turns that the model answers. */
guint ks_eval_item_count_answers (const KsEvalItem *item);
/* The bench that its rows are booked under: "NAME-forced" where references are read in place of
 * answers. (transfer full) */
char *ks_eval_item_make_bench (const KsEvalItem *item, gboolean forced);
/* Every answer stands in the file already, for this cell. */
gboolean ks_eval_item_is_done (const KsEvalItem *item, const KsEvalCell *cell, gboolean forced,
                               const KsEvalRunFile *file);

/* At most n items (0 = all), whole groups only, drawn by seed and left in their order. */
void ks_eval_items_sample (GPtrArray *items, guint n, guint64 seed);
/* Every picture that is a file is there; else a sentence that names the first missing one. */
gboolean ks_eval_items_check_pictures (GPtrArray *items, GError **error);
/* SHA-256 over everything the model is shown and compared with, in hex: equal sets, equal text.
 * (transfer full) */
char *ks_eval_items_hash (GPtrArray *items);

G_END_DECLS

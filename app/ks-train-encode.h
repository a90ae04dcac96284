/* ks-train-encode.h - conversations and text as tokens of one model, with how much each token
 * counts.  A sequence is one or more documents, one behind the other.
 * Threads: one at a time. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-sight.h"
#include "app/ks-train-chat.h"
#include "engine/tokenizer.h"

G_BEGIN_DECLS

/* One view of a picture among the tokens. */
typedef struct {
  guint32 first, n_tok; /* in the sequence */
  guint view;
  guint32 t_shift;
  gboolean follows;
  KsPicture *picture; /* strong */
} KsTrainView;

typedef struct {
  GArray *ids;     /* of ks_token; KS_TOKEN_NONE where a picture stands */
  GArray *weights; /* of float, as in ks_train_batch */
  GArray *starts;  /* of guint32: where documents begin */
  GArray *values;  /* of guint32: tokens that only memory can give */
  GArray *views;   /* of KsTrainView */
} KsTrainSequence;

KsTrainSequence *ks_train_sequence_new (void);
void ks_train_sequence_free (KsTrainSequence *sequence); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsTrainSequence, ks_train_sequence_free)
/* The value tokens then carry share of the whole weight, all alike; without one nothing changes. */
void ks_train_sequence_weigh_values (KsTrainSequence *sequence, double share);
/* Keeps the first n_tok tokens, without a view that would be cut. */
void ks_train_sequence_cut (KsTrainSequence *sequence, guint n_tok);

/* How pictures become tokens: their sizes as the tower's family plans them.  FALSE with error. */
typedef gboolean (*KsTrainPlanPicture) (gpointer user, const KsPicture *picture,
                                        ks_vision_plan *out_plan, GError **error);

typedef struct {
  ks_alloc *alloc;
  const ks_tokenizer *tokenizer;
  const ks_chat_template *chat_template;
  double prompt_weight; /* of tokens that the model does not write itself */
  /* NULL = the model is blind: a chat with pictures is an error. */
  KsTrainPlanPicture plan_picture;
  gpointer user;
  ks_vision_family family;
} KsTrainEncoder;

/* Appends a conversation as a document of its own, at most n_tok of its tokens. */
gboolean ks_train_encode_chat (const KsTrainEncoder *encoder, const KsTrainChat *chat, guint n_tok,
                               KsTrainSequence *sequence, GError **error);
/* The same for text as it is, each token with weight 1. */
gboolean ks_train_encode_text (const KsTrainEncoder *encoder, const char *text, gsize n,
                               guint n_tok, KsTrainSequence *sequence, GError **error);

G_END_DECLS

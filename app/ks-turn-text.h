/* ks-turn-text.h - one turn as the model reads it: the message as the prompt builder made it, with
 * its pictures, and its answer.
 * A plain value.  Threads: a copy belongs to its holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-picture.h"

G_BEGIN_DECLS

typedef struct {
  char *message;
  GPtrArray *pictures; /* of KsPicture, in order of where they stand; never NULL */
  GPtrArray *lost;     /* names of files that cannot be read any more; never NULL */
  char *answer;        /* "" = nothing was answered yet */
  gboolean unfinished; /* the answer did not come to its end and may be continued */
  gboolean pinned;     /* all of it is to stay in memory */
} KsTurnText;

KsTurnText *ks_turn_text_new (const char *message, const char *answer, gboolean unfinished);
void ks_turn_text_set_answer (KsTurnText *turn, const char *answer, gboolean unfinished);
void ks_turn_text_free (KsTurnText *turn); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsTurnText, ks_turn_text_free)

G_END_DECLS

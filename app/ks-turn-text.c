/* ks-turn-text.c - see ks-turn-text.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-turn-text.h"

KsTurnText *
ks_turn_text_new (const char *message, const char *answer, gboolean unfinished)
{
  KsTurnText *turn = g_new0 (KsTurnText, 1);

  turn->message = g_strdup (message);
  turn->answer = g_strdup (answer != NULL ? answer : "");
  turn->unfinished = unfinished;
  return turn;
}

void
ks_turn_text_free (KsTurnText *turn)
{
  if (turn == NULL)
    return;
  g_free (turn->message);
  g_free (turn->answer);
  g_free (turn);
}

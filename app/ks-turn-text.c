/* ks-turn-text.c - see ks-turn-text.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-turn-text.h"

KsTurnText *
ks_turn_text_new (const char *message, const char *answer, gboolean unfinished)
{
  KsTurnText *turn = g_new0 (KsTurnText, 1);

  turn->message = g_strdup (message);
  turn->pictures = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_picture_unref);
  turn->lost = g_ptr_array_new_with_free_func (g_free);
  turn->answer = g_strdup (answer != NULL ? answer : "");
  turn->unfinished = unfinished;
  return turn;
}

void
ks_turn_text_set_answer (KsTurnText *turn, const char *answer, gboolean unfinished)
{
  char *copy = g_strdup (answer != NULL ? answer : "");

  g_return_if_fail (turn != NULL);
  g_free (turn->answer);
  turn->answer = copy;
  turn->unfinished = unfinished;
}

void
ks_turn_text_free (KsTurnText *turn)
{
  if (turn == NULL)
    return;
  g_free (turn->message);
  g_ptr_array_unref (turn->pictures);
  g_ptr_array_unref (turn->lost);
  g_free (turn->answer);
  g_free (turn);
}

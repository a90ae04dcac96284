/* stream-writer.c - stores a question, then an answer that grows every N milliseconds, until it is
 * killed.  Use: stream-writer DIR SESSION MS.  After each update that was committed it prints the
 * number of pieces stored; piece i is "i ", so that any text can be checked. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static gboolean
stream (KsStore *store, gint64 session, gulong interval_ms)
{
  g_autoptr (KsMessage) question = NULL, answer = NULL;
  GString *text = g_string_new (NULL);

  if (!ks_store_lock_session (store, session, NULL))
    return FALSE;
  question = ks_store_add_message (store, session, 0, KS_MESSAGE_USER, KS_MESSAGE_COMPLETE,
                                   "question", NULL, NULL);
  if (question == NULL)
    return FALSE;
  answer = ks_store_add_message (store, session, ks_message_get_id (question), KS_MESSAGE_ASSISTANT,
                                 KS_MESSAGE_STREAMING, "", NULL, NULL);
  for (guint i = 0; answer != NULL; i++) {
    g_string_append_printf (text, "%u ", i);
    if (!ks_store_update_message (store, ks_message_get_id (answer), text->str,
                                  KS_MESSAGE_STREAMING, i + 1, NULL, NULL) ||
        dprintf (STDOUT_FILENO, "%u\n", i + 1) < 0)
      break;
    g_usleep (interval_ms * 1000);
  }
  g_string_free (text, TRUE);
  return FALSE;
}

int
main (int argc, char **argv)
{
  g_autoptr (KsStore) store = NULL;

  if (argc != 4)
    return 2;
  store = ks_store_open (argv[1], FALSE, NULL);
  if (store == NULL)
    return 1;
  return stream (store, g_ascii_strtoll (argv[2], NULL, 10),
                 (gulong)g_ascii_strtoull (argv[3], NULL, 10))
             ? 0
             : 1;
}

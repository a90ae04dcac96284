/* fill-sessions.c - makes a data folder with many short sessions, for tests of large libraries.
 * Usage: fill-sessions FOLDER COUNT */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-store.h"

#include <stdlib.h>

static gboolean
add_session (KsStore *store, guint i, GError **error)
{
  g_autofree char *title = g_strdup_printf ("Session %u about document %u", i, i % 97);
  g_autofree char *question =
      g_strdup_printf ("What does paragraph %u of the contract say about the rent?", i % 41);
  g_autofree char *answer = g_strdup_printf (
      "Paragraph %u says that the rent is %u euros a month, paid in advance, and that it may be "
      "raised once in %u years with a notice of three months.",
      i % 41, 400 + i, 1 + i % 5);
  g_autoptr (KsSession) session = ks_store_add_session (store, title, NULL, error);
  g_autoptr (KsMessage) user = NULL, assistant = NULL;

  if (session == NULL)
    return FALSE;
  user = ks_store_add_message (store, ks_session_get_id (session), 0, KS_MESSAGE_USER,
                               KS_MESSAGE_COMPLETE, question, NULL, error);
  if (user == NULL)
    return FALSE;
  assistant = ks_store_add_message (store, ks_session_get_id (session), ks_message_get_id (user),
                                    KS_MESSAGE_ASSISTANT, KS_MESSAGE_COMPLETE, answer, NULL, error);
  return assistant != NULL;
}

int
main (int argc, char **argv)
{
  g_autoptr (KsStore) store = NULL;
  g_autoptr (GError) error = NULL;
  guint n = argc == 3 ? (guint)g_ascii_strtoull (argv[2], NULL, 10) : 0;

  if (n > 0)
    store = ks_store_open (argv[1], FALSE, &error);
  for (guint i = 0; store != NULL && i < n; i++)
    if (!add_session (store, i, &error))
      break;
  if (n > 0 && error == NULL)
    return EXIT_SUCCESS;
  g_printerr ("%s\n", error != NULL ? error->message : "usage: fill-sessions FOLDER COUNT");
  return EXIT_FAILURE;
}

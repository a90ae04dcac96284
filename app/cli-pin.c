/* cli-pin.c - see cli-pin.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-pin.h"

#include "app/cli-session.h"
#include "app/ks-error.h"

#include <string.h>

/* What the model has read under that name, borrowed; NULL = nothing. */
static const char *
find_seen (const KsMemoryStats *stats, guint turn, const char *name)
{
  for (guint i = 0; i < stats->seen->len; i++) {
    const KsSeenPicture *seen = g_ptr_array_index (stats->seen, i);

    if (seen->turn == turn && g_strcmp0 (seen->name, name) == 0)
      return seen->hash;
  }
  return NULL;
}

static gboolean
fail (GError **error, const char *text)
{
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, text);
  return FALSE;
}

static gboolean
pin_live (KsConversation *conversation, guint turn, const char *name, gboolean pinned,
          GError **error)
{
  g_autoptr (KsMemoryStats) stats = ks_conversation_dup_stats (conversation);
  g_autoptr (KsEngineJob) job = NULL;
  const char *hash = NULL;

  if (stats == NULL || turn >= stats->kv.n_turn)
    return fail (error, "the model has read no such turn: they count from 1");
  if (name != NULL) {
    hash = find_seen (stats, turn, name);
    if (hash == NULL)
      return fail (error, "the model has seen no picture of that name in that turn");
  }
  job = ks_conversation_pin (conversation, turn, hash, pinned, NULL);
  return ks_engine_job_wait (job, error);
}

gboolean
cli_talk_pin (CliTalk *talk, const char *words, gboolean pinned, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (words, " ", 2);
  const char *name = parts[0] != NULL && parts[1] != NULL ? g_strstrip (parts[1]) : NULL;
  guint64 turn = 0;

  if (parts[0] == NULL || !g_ascii_string_to_unsigned (parts[0], 10, 1, G_MAXUINT16, &turn, NULL))
    return fail (error,
                 "say which turn, from 1, and perhaps the name of a file in it, as in /pin 2 "
                 "photo.png");
  if (talk->session != NULL)
    return cli_session_pin (talk->session, (guint)turn - 1, name, pinned, error);
  return pin_live (talk->conversation, (guint)turn - 1, name, pinned, error);
}

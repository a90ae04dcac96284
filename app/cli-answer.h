/* cli-answer.h - a loaded model with a conversation in the terminal: what ask and chat share.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-common.h"
#include "app/cli-options.h"
#include "app/ks-conversation.h"

G_BEGIN_DECLS

typedef struct {
  KsEngine *engine;
  KsConversation *conversation;
  KsEngineOptions *options;
  CliProgress progress;
  GString *answer;    /* text of the answer so far */
  gboolean quiet;     /* collect the answer, do not print it */
  gboolean at_margin; /* the last printed character was a line break, or none was printed */
} CliTalk;

/* Loads the model that options name and starts a conversation; prints the sentences that belong to
 * it. FALSE with *out_exit: the error is printed. */
gboolean cli_talk_open (CliTalk *talk, const CliOptions *options, int *out_exit);
void cli_talk_close (CliTalk *talk);

/* Prints text, progress and notices of a job as they come. */
void cli_talk_watch (CliTalk *talk, KsEngineJob *job);
/* Ends the line of a printed answer. */
void cli_talk_end_line (CliTalk *talk);
/* Reads and attaches a text file; FALSE and error when it cannot be read as text. */
gboolean cli_talk_attach (CliTalk *talk, const char *path, GError **error);

/* The memory facts of the last answer as one line on standard error, or as a JSON object. */
void cli_talk_print_facts (CliTalk *talk);
cJSON *cli_talk_make_json (CliTalk *talk);

G_END_DECLS

/* cli-answer.h - a model with a conversation in the terminal: what ask and chat share.
 * Without --session the conversation is live only (cli-answer.c); with it everything goes through a
 * stored session (cli-session.c).  One request runs at a time; its text is printed as it comes.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-common.h"
#include "app/cli-options.h"
#include "app/ks-conversation.h"
#include "app/ks-eyes.h"

G_BEGIN_DECLS

typedef struct CliSession CliSession; /* cli-session.h */

typedef struct {
  KsEngineOptions *options;
  KsAnswerOptions *answers;     /* how answers are asked for */
  KsEngine *engine;             /* these two: NULL in a session */
  KsConversation *conversation; /* see cli_talk_get_conversation */
  KsEngineJob *job;             /* the request that runs */
  CliSession *session;          /* NULL = nothing is stored */
  char *password;
  KsEyes eyes;                   /* of the model, where there is no session */
  guint n_video;                 /* in the next message */
  gboolean told_mixed, told_ocr; /* cli_talk_tell_mixed(), cli_talk_tell_ocr() said it */
  gsize n_attached;              /* bytes of text for the next message */
  /* The request that runs or ran last. */
  GString *answer; /* its text so far */
  GError *error;   /* what broke it off, NULL = it ended well */
  gboolean busy, stopping;
  gboolean lost; /* an answer of the session that was closed is not stored */
  /* Printing. */
  CliProgress progress;
  gboolean quiet;     /* collect the answer, do not print it */
  gboolean at_margin; /* the last printed character was a line break, or none was printed */
} CliTalk;

/* Loads the model that options name (a stored session's own choices are added to them) and begins a
 * conversation, or goes on with the session; prints the sentences that belong to it.  greedy: see
 * cli_options_make_answer.  FALSE with *out_exit: the error is printed. */
gboolean cli_talk_open (CliTalk *talk, CliOptions *options, gboolean greedy, int *out_exit);
/* Stores what has to be stored; returns code, or CLI_FAILED with a sentence where that was CLI_OK
 * and an answer could not be stored. */
int cli_talk_close (CliTalk *talk, int code);
/* NULL before a session's first request reached the model. */
KsConversation *cli_talk_get_conversation (CliTalk *talk);

/* Begin a request; FALSE with error: it cannot begin.  Its end sets busy to FALSE. */
gboolean cli_talk_ask (CliTalk *talk, const char *text, GError **error);
gboolean cli_talk_continue (CliTalk *talk, GError **error);
gboolean cli_talk_regenerate (CliTalk *talk, GError **error); /* sessions only */
/* The end comes soon, with what was written so far. */
void cli_talk_stop (CliTalk *talk);
/* Runs the main context until the request has ended; the first Ctrl-C stops it, the second ends the
 * program.  FALSE: talk->error. */
gboolean cli_talk_wait (CliTalk *talk);
/* The same for a picture that the model has to look at. */
gboolean cli_talk_attach_image (CliTalk *talk, const char *path, GError **error);
/* Reads a file, or those of a folder, and attaches them to the next message; asks for a password on
 * a terminal. */
gboolean cli_talk_attach (CliTalk *talk, const char *path, GError **error);
KsAnswerInfo cli_talk_get_info (CliTalk *talk);

/* For cli-session.c. */
void cli_talk_print (CliTalk *talk, const char *text);
void cli_talk_notice (CliTalk *talk, const char *text);
void cli_talk_begin (CliTalk *talk);
void cli_talk_end (CliTalk *talk, GError *take_error);

/* Once: pages of the document name hold pictures that the model would see with another option. */
void cli_talk_tell_mixed (CliTalk *talk, const char *name);
/* Once: the words in pictures of the file name could be recognised. */
void cli_talk_tell_ocr (CliTalk *talk, const char *name);

/* Ends the line of a printed answer. */
void cli_talk_end_line (CliTalk *talk);
/* The memory facts of the last answer as one line on standard error, or as a JSON object. */
void cli_talk_print_facts (CliTalk *talk);
cJSON *cli_talk_make_json (CliTalk *talk);
/* Its part about memory; numbers: see cli_get_turn_number. */
cJSON *cli_make_memory_json (const KsMemoryStats *stats, const GArray *numbers);
/* How a turn that the model has read (from 0) is called: numbers (of guint) says it where turns are
 * left out, NULL = none are. */
guint cli_get_turn_number (const GArray *numbers, guint turn);

G_END_DECLS

/* cli-options.h - the options that several commands share, and what they mean to the engine.
 * Unset numbers are CLI_UNSET (seed: G_MININT64), unset texts NULL.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-policy.h"
#include "app/ks-answer.h"
#include "app/ks-engine-setup.h"
#include "app/ks-model-registry.h"
#include "app/ks-settings.h"

G_BEGIN_DECLS

#define CLI_UNSET G_MININT /* below 0, like every number that no option allows */

typedef struct {
  /* model */
  char *model, *gate, *mmproj, *kv_type, *mode, *isa;
  int threads, frames;
  char *min_pixels, *max_pixels; /* see cli_options_read_pixels */
  double every_s;                /* between two frames of a video */
  gboolean scenes, no_split, ocr;
  char *pages;
  char *visionzip, *fastv;
  gboolean no_repack;
  gboolean wants_eyes; /* a command that may look at pictures */
  gboolean is_check;   /* a command that checks or evaluates: exact where no mode is asked for */
  /* memory */
  char *budget, *kv_budget;
  int entries, chunk, buffer, page;
  CliPolicy policy;
  gboolean keep_everything;
  /* sampling */
  double temperature, top_p, min_p, repeat_penalty;
  int top_k, max_tokens;
  gint64 seed;
  char **stops;
  /* conversation: ask and chat */
  char **attach, **images, *system, *session, *password;
  /* output */
  gboolean json, patches;
} CliOptions;

void cli_options_init (CliOptions *options);
void cli_options_clear (CliOptions *options);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (CliOptions, cli_options_clear)

void cli_options_add_model (CliOptions *options, GOptionContext *context);
/* Sizes of pictures, and leaving out tokens of them. */
void cli_options_add_pictures (CliOptions *options, GOptionContext *context);
void cli_options_add_memory (CliOptions *options, GOptionContext *context);
void cli_options_add_sampling (CliOptions *options, GOptionContext *context);
void cli_options_add_json (CliOptions *options, GOptionContext *context);
/* All of the above and those of a conversation; takes args apart in place of cli_parse. */
gboolean cli_options_parse_talk (CliOptions *options, const char *arguments, const char *summary,
                                 const char *help, char ***args, int *out_exit);

/* Those that say how a stored session is read again. */
gboolean cli_options_parse_memory (CliOptions *options, const char *summary, const char *help,
                                   char ***args, int *out_exit);

/* A measurement's options: own ones, which end with an empty entry, then those of the model, of its
 * memory if asked for, and --json. */
gboolean cli_options_parse_check (CliOptions *options, const GOptionEntry *own,
                                  gboolean with_memory, const char *summary, const char *help,
                                  char ***args, int *out_exit);

/* --min-pixels and --max-pixels, 0 where one is not given. */
gboolean cli_options_read_pixels (const CliOptions *options, guint64 *out_min, guint64 *out_max,
                                  GError **error);
/* Finds the model, its gate and its eyes and checks every value.  KS_APP_ERROR_USAGE names what is
 * wrong. */
KsEngineOptions *cli_options_make_engine (const CliOptions *options, GError **error);
/* session: a stored session's own values, between the settings and the options; NULL = none.
 * greedy: the likeliest token where nothing asks for a temperature. */
KsAnswerOptions *cli_options_make_answer (const CliOptions *options,
                                          const KsSessionSettings *session, gboolean greedy,
                                          GError **error);
/* Model, memory target and policy of a stored session where no option asks for others. */
void cli_options_take_session (CliOptions *options, const KsSessionSettings *session);
/* Whether a memory target is given. */
gboolean cli_options_has_target (const CliOptions *options);
/* What a new session keeps of the options. (transfer full) */
KsSessionSettings *cli_options_make_session (const CliOptions *options);
/* The file that name stands for; NULL means $KEEPSAKE_MODEL, else the saved model, else the default
 * one. (transfer full) */
char *cli_resolve_model (KsModelRegistry *registry, const char *name, GError **error);
/* A number that was given (not CLI_UNSET) lies at or above its least value. */
gboolean cli_check_least (const char *name, int value, int least, GError **error);
const char *cli_get_mode_name (ks_compute_mode mode);
/* cli-prune.c: fewer tokens of pictures; cli_options_make_engine applies them. */
void cli_prune_add (CliOptions *options, GOptionContext *context);
gboolean cli_prune_apply (const CliOptions *options, KsEngineOptions *out, GError **error);
/* "24MiB" and the like, at least one byte; 0 for NULL. */
gboolean cli_parse_bytes (const char *text, guint64 *out, GError **error);

G_END_DECLS

/* cli-answer.c - see cli-answer.h.  Opening, printing and waiting; requests of a conversation that
 * is not stored.  What is told about an answer is in cli-facts.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-answer.h"

#include "app/cli-live.h"
#include "app/cli-session.h"
#include "app/ks-error.h"
#include "app/ks-folder-scan.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_FOLDER_FILES 64u

/* --- printing --- */

void
cli_talk_end_line (CliTalk *talk)
{
  if (talk->at_margin)
    return;
  putchar ('\n');
  fflush (stdout);
  talk->at_margin = TRUE;
}

void
cli_talk_print (CliTalk *talk, const char *text)
{
  cli_progress_clear (&talk->progress);
  g_string_append (talk->answer, text);
  if (talk->quiet || text[0] == '\0')
    return;
  cli_print_text (text);
  fflush (stdout);
  talk->at_margin = text[strlen (text) - 1] == '\n';
}

void
cli_talk_notice (CliTalk *talk, const char *text)
{
  cli_progress_clear (&talk->progress);
  cli_talk_end_line (talk);
  cli_print_notice (text);
}

void
cli_talk_begin (CliTalk *talk)
{
  g_string_truncate (talk->answer, 0);
  g_clear_error (&talk->error);
  talk->busy = TRUE;
  talk->stopping = FALSE;
  talk->n_attached = talk->n_video = 0;
  cli_progress_init (&talk->progress);
}

void
cli_talk_end (CliTalk *talk, GError *take_error)
{
  cli_progress_clear (&talk->progress);
  cli_talk_end_line (talk);
  talk->error = take_error;
  talk->busy = FALSE;
}

void
cli_talk_tell_mixed (CliTalk *talk, const char *name)
{
  if (!talk->told_mixed)
    cli_print_file_notice (name, "pages with text also hold pictures, which the model does not "
                                 "see; with --pages both it sees these pages as well.");
  talk->told_mixed = TRUE;
}

void
cli_talk_tell_ocr (CliTalk *talk, const char *name)
{
  if (!talk->told_ocr)
    cli_print_file_notice (
        name, "start with --ocr, and the words in its pictures are recognised and read as text.");
  talk->told_ocr = TRUE;
}

/* --- jobs of a conversation that is not stored --- */

static void
notice_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  cli_talk_notice (user_data, text);
}

static void
progress_cb (KsEngineJob *job, guint n_done, guint n_total, gpointer user_data)
{
  CliTalk *talk = user_data;

  cli_progress_update (&talk->progress, "Reading", "tokens", n_done, n_total);
  if (n_done == n_total)
    cli_progress_clear (&talk->progress);
}

static void
looking_cb (KsEngineJob *job, const char *name, guint n_done, guint n_total, gpointer user_data)
{
  cli_progress_look (&((CliTalk *)user_data)->progress, name, n_done, n_total);
}

static void
text_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  cli_talk_print (user_data, text);
}

static void
finished_cb (KsEngineJob *job, gpointer user_data)
{
  CliTalk *talk = user_data;
  const GError *error = ks_engine_job_get_error (job);

  g_clear_object (&talk->job);
  cli_talk_end (talk, error != NULL ? g_error_copy (error) : NULL);
}

static void
watch (CliTalk *talk, KsEngineJob *take_job)
{
  cli_talk_begin (talk);
  talk->job = take_job;
  g_signal_connect (talk->job, "notice", G_CALLBACK (notice_cb), talk);
  g_signal_connect (talk->job, "progress", G_CALLBACK (progress_cb), talk);
  g_signal_connect (talk->job, "looking", G_CALLBACK (looking_cb), talk);
  g_signal_connect (talk->job, "text", G_CALLBACK (text_cb), talk);
  g_signal_connect (talk->job, "finished", G_CALLBACK (finished_cb), talk);
}

/* --- opening --- */

static gboolean
open_engine (CliTalk *talk)
{
  talk->engine = ks_engine_new ();
  watch (talk, ks_engine_load (talk->engine, talk->options));
  return cli_talk_wait (talk);
}

static gboolean
ask_eyes (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  KsEyes *eyes = data;

  if (setup->sight != NULL)
    *eyes = ks_sight_get_eyes (setup->sight);
  return TRUE;
}

static gboolean
open_live (CliTalk *talk, const CliOptions *options, gboolean greedy, int *out_exit)
{
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (GError) error = NULL;

  talk->answers = cli_options_make_answer (options, NULL, greedy, &error);
  if (talk->answers != NULL)
    talk->options = cli_options_make_engine (options, &error);
  if (talk->options == NULL) {
    *out_exit = cli_fail (error);
    return FALSE;
  }
  if (!open_engine (talk)) {
    *out_exit = cli_fail (talk->error);
    return FALSE;
  }
  job = ks_engine_job_new (ask_eyes, &talk->eyes, NULL);
  ks_engine_push (talk->engine, job);
  if (!ks_engine_job_wait (job, &error)) {
    *out_exit = cli_fail (error);
    return FALSE;
  }
  talk->conversation = ks_conversation_new (talk->engine);
  ks_conversation_set_system (talk->conversation, options->system);
  return TRUE;
}

static gboolean
attach_all (CliTalk *talk, const CliOptions *options, int *out_exit)
{
  g_autoptr (GError) error = NULL;

  gboolean ok = TRUE;

  for (guint i = 0; ok && options->images != NULL && options->images[i] != NULL; i++)
    ok = cli_talk_attach_image (talk, options->images[i], &error);
  for (guint i = 0; ok && options->attach != NULL && options->attach[i] != NULL; i++)
    ok = cli_talk_attach (talk, options->attach[i], &error);
  if (!ok)
    *out_exit = cli_fail (error);
  return ok;
}

gboolean
cli_talk_open (CliTalk *talk, CliOptions *options, gboolean greedy, int *out_exit)
{
  *talk = (CliTalk){.at_margin = TRUE, .quiet = options->json};
  talk->answer = g_string_new (NULL);
  talk->password = g_strdup (options->password);
  if (options->session != NULL)
    talk->session = cli_session_new (talk, options, greedy, out_exit);
  if (options->session != NULL ? talk->session == NULL
                               : !open_live (talk, options, greedy, out_exit))
    return FALSE;
  talk->answers->may_continue = TRUE;
  if (options->ocr && talk->session == NULL)
    cli_print_notice ("--ocr recognises words only in a stored session: add --session new.");
  return attach_all (talk, options, out_exit);
}

int
cli_talk_close (CliTalk *talk, int code)
{
  g_clear_pointer (&talk->session, cli_session_free);
  g_clear_object (&talk->conversation);
  g_clear_object (&talk->engine);
  g_clear_pointer (&talk->options, ks_engine_options_free);
  g_clear_pointer (&talk->answers, ks_answer_options_free);
  g_clear_pointer (&talk->password, g_free);
  g_clear_error (&talk->error);
  if (talk->answer != NULL)
    g_string_free (talk->answer, TRUE);
  talk->answer = NULL;
  if (!talk->lost || code != CLI_OK)
    return code;
  cli_print_error ("the answer is not stored: copy it if you need it, and free some space");
  return CLI_FAILED;
}

KsConversation *
cli_talk_get_conversation (CliTalk *talk)
{
  return talk->session != NULL ? cli_session_get_conversation (talk->session) : talk->conversation;
}

KsAnswerInfo
cli_talk_get_info (CliTalk *talk)
{
  KsConversation *conversation = cli_talk_get_conversation (talk);

  return conversation != NULL ? ks_conversation_get_answer (conversation)
                              : (KsAnswerInfo){.end = KS_ANSWER_NONE};
}

/* --- requests --- */

gboolean
cli_talk_ask (CliTalk *talk, const char *text, GError **error)
{
  if (talk->session != NULL)
    return cli_session_ask (talk->session, text, error);
  watch (talk, ks_conversation_ask (talk->conversation, text, talk->answers));
  return TRUE;
}

gboolean
cli_talk_continue (CliTalk *talk, GError **error)
{
  if (talk->session != NULL)
    return cli_session_continue (talk->session, error);
  watch (talk, ks_conversation_continue (talk->conversation, talk->answers));
  return TRUE;
}

gboolean
cli_talk_regenerate (CliTalk *talk, GError **error)
{
  if (talk->session != NULL)
    return cli_session_regenerate (talk->session, error);
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                       "only a stored answer can be made again: start with --session new");
  return FALSE;
}

void
cli_talk_stop (CliTalk *talk)
{
  talk->stopping = TRUE;
  if (talk->session != NULL)
    cli_session_stop (talk->session);
  else if (talk->job != NULL)
    ks_engine_job_cancel (talk->job);
}

static gboolean
interrupt_cb (gpointer user_data)
{
  CliTalk *talk = user_data;

  if (talk->stopping)
    cli_exit_interrupted (); /* asked twice: do not wait for the step that runs */
  cli_talk_stop (talk);
  return G_SOURCE_CONTINUE;
}

gboolean
cli_talk_wait (CliTalk *talk)
{
  guint interrupt = cli_add_interrupt (interrupt_cb, talk);

  while (talk->busy)
    g_main_context_iteration (NULL, TRUE);
  cli_remove_interrupt (interrupt);
  return talk->error == NULL;
}

/* A shell does this for arguments; lines of chat have not seen one. */
static char *
expand_home (const char *path)
{
  return g_str_has_prefix (path, "~/") ? g_build_filename (g_get_home_dir (), path + 2, NULL)
                                       : g_strdup (path);
}

gboolean
cli_talk_attach_image (CliTalk *talk, const char *path, GError **error)
{
  g_autofree char *full = expand_home (path);
  gboolean sees = talk->session != NULL ? cli_session_can_see (talk->session) : talk->eyes.sees;

  if (!sees) {
    g_set_error_literal (error, KS_ENGINE_ERROR, KS_ERR_UNSUPPORTED,
                         "this model has no eyes: give the vision model that belongs to it with "
                         "--mmproj FILE, or another model (with --session new --ocr --attach FILE "
                         "the words in a picture are read as text)");
    return FALSE;
  }
  if (talk->session != NULL)
    return cli_session_attach (talk->session, full, error);
  return cli_live_look (talk, full, error);
}

static void
tell_beyond (guint n_file)
{
  g_autofree char *text = NULL;

  if (n_file == 0)
    return;
  text = g_strdup_printf ("%u more files are left out: a message takes at most %u files of a "
                          "folder, send the rest in another one",
                          n_file, MAX_FOLDER_FILES);
  cli_print_notice (text);
}

/* A verdict on each file; none taken is an error. */
static gboolean
attach_folder (CliTalk *talk, const char *path, GError **error)
{
  g_autoptr (GPtrArray) files = ks_folder_scan (path, MAX_FOLDER_FILES, NULL, error);
  guint n_taken = 0, n_beyond = 0;

  for (guint i = 0; files != NULL && i < files->len; i++) {
    const KsFolderFile *file = g_ptr_array_index (files, i);
    g_autoptr (GError) local = NULL;
    g_autofree char *verdict = NULL;

    gboolean taken = file->refused == NULL && cli_talk_attach (talk, file->path, &local);

    n_taken += taken;
    n_beyond += file->is_beyond;
    if (file->is_beyond)
      continue;
    if (local != NULL && ks_error_is_cancelled (local)) {
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
    verdict = taken ? g_strdup_printf ("%s is attached", file->name)
                    : g_strdup_printf ("%s is left out: %s", file->name,
                                       local != NULL ? local->message : file->refused);
    cli_print_notice (verdict);
  }
  tell_beyond (n_beyond);
  if (files != NULL && n_taken == 0)
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "no file of %s could be attached", path);
  return n_taken > 0;
}

gboolean
cli_talk_attach (CliTalk *talk, const char *path, GError **error)
{
  g_autofree char *full = expand_home (path);

  if (g_file_test (full, G_FILE_TEST_IS_DIR))
    return attach_folder (talk, full, error);

  if (talk->session != NULL)
    return cli_session_attach (talk->session, full, error);
  return cli_live_attach (talk, full, error);
}

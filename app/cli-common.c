/* cli-common.c - see cli-common.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-common.h"

#include "app/ks-error.h"
#include "media/ks-media.h"
#include "storage/ks-storage-error.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is over sooner needs no line of progress. */
#define PROGRESS_MIN_TOKENS 256u
#define PROGRESS_MIN_SECONDS 1.0
#define LOOK_MIN_SECONDS 0.3

/* Characters that turn the order of a line around: a name must not look like another one. */
static gboolean
is_direction_control (gunichar c)
{
  return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static char *
replace_controls (const char *text, const char *keep)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  GString *out = g_string_sized_new (strlen (valid));

  for (const char *p = valid; *p != '\0'; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);

    if (is_direction_control (c) ||
        (g_unichar_iscntrl (c) && (c > 0x7f || strchr (keep, (int)c) == NULL)))
      g_string_append_c (out, '?');
    else
      g_string_append_unichar (out, c);
  }
  return g_string_free (out, FALSE);
}

char *
cli_dup_printable (const char *text)
{
  return replace_controls (text, "");
}

void
cli_print_text (const char *text)
{
  if (isatty (STDOUT_FILENO)) {
    g_autofree char *safe = replace_controls (text, "\n\t");

    fputs (safe, stdout);
  } else {
    fputs (text, stdout);
  }
}

void
cli_guard_streams (void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl (fd, F_GETFD) < 0 && errno == EBADF)
      (void)open ("/dev/null", O_RDWR); /* gets the lowest free number, which is fd */
}

static void G_GNUC_NORETURN
end_interrupted (int number)
{
  static const char text[] = "\nkeepsake-cli: cancelled\n";

  if (write (STDERR_FILENO, text, sizeof text - 1) < 0)
    _exit (CLI_CANCELLED); /* nobody reads: there is no more to do then */
  _exit (CLI_CANCELLED);
}

void
cli_exit_interrupted (void)
{
  fflush (stdout);
  end_interrupted (SIGINT);
}

void
cli_guard_interrupt (void)
{
  struct sigaction now = {.sa_handler = end_interrupted};
  struct sigaction before;

  sigemptyset (&now.sa_mask);
  /* Not where who started the program decided that it is not to hear it, or while somebody
   * listens. */
  if (sigaction (SIGINT, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
    sigaction (SIGINT, &now, NULL);
}

guint
cli_add_interrupt (GSourceFunc func, gpointer data)
{
  return g_unix_signal_add (SIGINT, func, data);
}

void
cli_remove_interrupt (guint number)
{
  g_source_remove (number);
  cli_guard_interrupt (); /* GLib has put the system's default back */
}

int
cli_finish_output (int code)
{
  gboolean failed = ferror (stdout) != 0;

  if (fflush (stdout) == 0 && !failed)
    return code;
  fputs ("keepsake-cli: cannot write all of the output: is the disk full?\n", stderr);
  return code == CLI_OK ? CLI_FAILED : code;
}

void
cli_print_error (const char *format, ...)
{
  va_list args;
  g_autofree char *text = NULL, *printable = NULL;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  printable = cli_dup_printable (text);
  fflush (stdout);
  fprintf (stderr, "keepsake-cli: %s\n", printable);
}

void
cli_print_notice (const char *text)
{
  g_autofree char *printable = cli_dup_printable (text);

  fflush (stdout);
  fprintf (stderr, "note: %s\n", printable);
}

void
cli_print_file_notice (const char *name, const char *text)
{
  g_autofree char *line = g_strdup_printf ("%s: %s", name, text);

  cli_print_notice (line);
}

void
cli_tell_sound (const char *name)
{
  g_autofree char *text =
      g_strdup_printf ("%s: only its pictures are looked at, its sound is not heard.", name);

  cli_print_notice (text);
}

void
cli_tell_large (const char *name, gboolean is_video, guint n_token, guint n_trained,
                gboolean can_shrink)
{
  const char *hint = "";
  g_autofree char *text = NULL;

  if (n_trained == 0)
    return;
  if (is_video)
    hint = can_shrink ? ": --frames or --max-pixels lowers it" : ": --frames lowers it";
  else if (can_shrink)
    hint = ": --max-pixels lowers it";
  text = g_strdup_printf ("%s takes %u tokens, more than %sthe %u this model was trained for%s",
                          name, n_token, n_token > n_trained ? "" : "half of ", n_trained, hint);
  cli_print_notice (text);
}

static int
get_exit (const GError *error)
{
  if (ks_error_is_cancelled (error))
    return CLI_CANCELLED;
  if (error->domain == G_OPTION_ERROR ||
      g_error_matches (error, KS_APP_ERROR, KS_APP_ERROR_USAGE) ||
      g_error_matches (error, KS_ENGINE_ERROR, KS_ERR_ARG))
    return CLI_USAGE;
  if (g_error_matches (error, KS_ENGINE_ERROR, KS_ERR_BUDGET) ||
      g_error_matches (error, KS_ENGINE_ERROR, KS_ERR_NOMEM))
    return CLI_BUDGET;
  if (g_error_matches (error, KS_ENGINE_ERROR, KS_ERR_UNSUPPORTED) ||
      g_error_matches (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT) ||
      g_error_matches (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NEWER) ||
      g_error_matches (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_UNKNOWN_TYPE))
    return CLI_UNSUPPORTED;
  return CLI_FAILED;
}

int
cli_fail (const GError *error)
{
  int code = get_exit (error);

  if (code == CLI_CANCELLED)
    cli_print_error ("cancelled");
  else
    cli_print_error ("%s", error->message);
  return code;
}

int
cli_usage (const char *format, ...)
{
  va_list args;
  g_autofree char *text = NULL;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  cli_print_error ("%s", text);
  return CLI_USAGE;
}

gboolean
cli_parse (GOptionContext *context, char ***args, int *out_exit)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prgname = g_strdup_printf ("keepsake-cli %s", (*args)[0]);

  g_set_prgname (prgname);
  if (g_option_context_parse_strv (context, args, &error)) {
    /* A lone "--" stays in front of what it protects. */
    for (guint i = 1; (*args)[i] != NULL; i++)
      if (g_str_equal ((*args)[i], "--")) {
        g_free ((*args)[i]);
        memmove (*args + i, *args + i + 1, sizeof **args * (g_strv_length (*args + i + 1) + 1));
        break;
      }
    return TRUE;
  }
  if (error->domain == G_CONVERT_ERROR)
    *out_exit =
        cli_usage ("an option is not valid UTF-8: write it in UTF-8, or put the text into a "
                   "file (see %s --help)",
                   prgname);
  else
    *out_exit = cli_usage ("%s (see %s --help)", error->message, prgname);
  return FALSE;
}

int
cli_run_subcommand (const char *command, const CliCommand *commands, gsize n, char **args,
                    const char *help)
{
  if (args[1] == NULL || g_str_equal (args[1], "--help") || g_str_equal (args[1], "-h")) {
    FILE *out = args[1] == NULL ? stderr : stdout;

    fprintf (out, "Usage: keepsake-cli %s COMMAND [OPTION...]\n\nCommands:\n", command);
    for (gsize i = 0; i < n; i++)
      fprintf (out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf (out, "\n%s", help);
    return args[1] == NULL ? CLI_USAGE : CLI_OK;
  }
  for (gsize i = 0; i < n; i++)
    if (g_str_equal (args[1], commands[i].name)) {
      g_auto (GStrv) shifted = g_strdupv (args + 1);
      int code;

      g_free (shifted[0]);
      shifted[0] = g_strdup_printf ("%s %s", command, args[1]);
      code = commands[i].run (shifted);
      return code;
    }
  return cli_usage ("there is no command '%s %s': see keepsake-cli %s --help", command, args[1],
                    command);
}

char *
cli_format_bytes (guint64 n_bytes)
{
  if (n_bytes < 1024)
    return g_strdup_printf ("%u B", (guint)n_bytes);
  if (n_bytes < 1024 * 1024)
    return g_strdup_printf ("%.1f KiB", (double)n_bytes / 1024);
  if (n_bytes < 1024u * 1024u * 1024u)
    return g_strdup_printf ("%.1f MiB", (double)n_bytes / 1048576);
  return g_strdup_printf ("%.2f GiB", (double)n_bytes / 1073741824);
}

char *
cli_format_count (guint64 n)
{
  g_autofree char *digits = g_strdup_printf ("%" G_GUINT64_FORMAT, n);
  gsize n_digit = strlen (digits);
  GString *out = g_string_new (NULL);

  for (gsize i = 0; i < n_digit; i++) {
    if (i > 0 && (n_digit - i) % 3 == 0)
      g_string_append_c (out, ',');
    g_string_append_c (out, digits[i]);
  }
  return g_string_free (out, FALSE);
}

void
cli_print_json (cJSON *take_json)
{
  char *text = cJSON_Print (take_json);
  /* Paths are bytes in any encoding; JSON is UTF-8. */
  g_autofree char *valid = text != NULL ? g_utf8_make_valid (text, -1) : NULL;

  if (valid != NULL)
    puts (valid);
  cJSON_free (text);
  cJSON_Delete (take_json);
}

void
cli_progress_init (CliProgress *progress)
{
  const char *term = g_getenv ("TERM");

  *progress = (CliProgress){.enabled = isatty (STDERR_FILENO) && g_strcmp0 (term, "dumb") != 0,
                            .begin_us = g_get_monotonic_time ()};
}

void
cli_progress_update (CliProgress *progress, const char *what, const char *unit, guint n_done,
                     guint n_total)
{
  double seconds = (double)(g_get_monotonic_time () - progress->begin_us) / 1e6;

  if (!progress->enabled || n_total == 0 ||
      (n_total < PROGRESS_MIN_TOKENS && seconds < PROGRESS_MIN_SECONDS))
    return;
  fprintf (stderr, "\r\033[K%s: %u of %u %s (%u%%), %.0f %s/s", what, n_done, n_total, unit,
           (guint)(100ull * n_done / n_total), seconds > 0 ? n_done / seconds : 0.0, unit);
  fflush (stderr);
  progress->shown = TRUE;
}

void
cli_progress_look (CliProgress *progress, const char *name, guint n_done, guint n_total)
{
  gint64 now_us = g_get_monotonic_time ();
  g_autofree char *printable = NULL;
  double seconds;

  if (name == NULL) {
    progress->look_us = 0;
    cli_progress_clear (progress);
    return;
  }
  if (progress->look_us == 0)
    progress->look_us = now_us;
  seconds = (double)(now_us - progress->look_us) / 1e6;
  if (!progress->enabled || seconds < LOOK_MIN_SECONDS)
    return;
  printable = cli_dup_printable (name);
  fprintf (stderr, "\r\033[KLooking at %s", printable);
  if (n_total > 0)
    fprintf (stderr, ": %u%%", (guint)(100ull * n_done / n_total));
  fprintf (stderr, ", %.0f s", seconds);
  fflush (stderr);
  progress->shown = TRUE;
}

void
cli_progress_clear (CliProgress *progress)
{
  if (!progress->shown)
    return;
  fputs ("\r\033[K", stderr);
  fflush (stderr);
  progress->shown = FALSE;
}

static gboolean
interrupt_cb (gpointer data)
{
  KsEngineJob *job = data;

  if (ks_engine_job_is_cancelled (job)) {
    cli_exit_interrupted ();
  }
  ks_engine_job_cancel (job);
  return G_SOURCE_CONTINUE;
}

gboolean
cli_wait (KsEngineJob *job, GError **error)
{
  guint interrupt = cli_add_interrupt (interrupt_cb, job);
  gboolean ok = ks_engine_job_wait (job, error);

  cli_remove_interrupt (interrupt);
  return ok;
}

int
cli_run_on_engine (KsEngine *engine, KsEngineJobFunc func, gpointer data)
{
  g_autoptr (KsEngineJob) job = ks_engine_job_new (func, data, NULL);
  g_autoptr (GError) error = NULL;

  ks_engine_push (engine, job);
  return cli_wait (job, &error) ? CLI_OK : cli_fail (error);
}

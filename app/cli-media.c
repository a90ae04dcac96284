/* cli-media.c - see cli-media.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-media.h"

#include "app/ks-error.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

void
cli_set_not_text (GError **error, const char *name, const KsMediaResult *result)
{
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT,
               "%s is a %s, not text: give a text file or a document", name,
               result->kind == KS_MEDIA_VIDEO ? "video" : "picture");
}

/* Takes result or *take_error over. */
static char *
take_text (KsMediaResult *result, const char *name, GError *take_error, gsize *out_n,
           GError **error)
{
  g_autoptr (KsMediaResult) got = result;
  char *text;

  if (got == NULL && g_error_matches (take_error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_EMPTY)) {
    g_error_free (take_error);
    if (out_n != NULL)
      *out_n = 0;
    return g_strdup ("");
  }
  if (got == NULL) {
    g_propagate_error (error, take_error);
    return NULL;
  }
  text = g_steal_pointer (&got->text);
  if (text == NULL)
    cli_set_not_text (error, name, got);
  else if (out_n != NULL)
    *out_n = got->n_text;
  return text;
}

char *
cli_load_text (const char *path, gsize *out_n, GError **error)
{
  g_autofree char *name = g_filename_display_basename (path);
  GError *local = NULL;
  KsMediaResult *result = ks_media_load (path, NULL, NULL, &local);

  return take_text (result, name, local, out_n, error);
}

/* UTF-8 that needs no work: no other line ends, no mark in front. */
static gboolean
is_plain (const char *data, gsize n)
{
  return g_utf8_validate (data, (gssize)n, NULL) && memchr (data, '\r', n) == NULL &&
         !(n >= 3 && memcmp (data, "\xef\xbb\xbf", 3) == 0);
}

char *
cli_load_text_bytes (const char *name, const void *data, gsize n, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, n);
  KsMediaOptions options = {.name = name};
  GError *local = NULL;
  KsMediaResult *result;

  if (n == 0)
    return g_strdup ("");
  if (n <= KS_MEDIA_MAX_TEXT_BYTES && is_plain (data, n))
    return g_strndup (data, n);
  result = ks_media_load_bytes (bytes, &options, NULL, &local);
  return take_text (result, name, local, NULL, error);
}

/* --- documents --- */

/* Beside the main loop, so that Ctrl-C is heard. */
typedef struct {
  const char *path;
  KsMediaOptions options;
  GCancellable *cancellable;
  KsMediaResult *result;
  GError *error;
  gint n_done, n_total, is_done; /* atomic */
} Load;

static void
load_progress (guint n_done, guint n_total, gpointer user)
{
  Load *load = user;

  g_atomic_int_set (&load->n_total, (gint)n_total);
  g_atomic_int_set (&load->n_done, (gint)n_done);
  g_main_context_wakeup (NULL);
}

static gpointer
run_load (gpointer data)
{
  Load *load = data;

  load->result = ks_media_load (load->path, &load->options, load->cancellable, &load->error);
  g_atomic_int_set (&load->is_done, TRUE);
  g_main_context_wakeup (NULL);
  return NULL;
}

static gboolean
interrupt_cb (gpointer user_data)
{
  g_cancellable_cancel (user_data);
  return G_SOURCE_CONTINUE;
}

static KsMediaResult *
load_document (const char *path, const char *password, GError **error)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Load load = {.path = path, .cancellable = cancellable};
  guint interrupt = cli_add_interrupt (interrupt_cb, cancellable);
  CliProgress progress;
  GThread *thread;

  cli_progress_init (&progress);
  load.options = (KsMediaOptions){.password = password, .progress = load_progress, .user = &load};
  thread = g_thread_new ("document", run_load, &load);
  while (!g_atomic_int_get (&load.is_done)) {
    g_main_context_iteration (NULL, TRUE);
    cli_progress_update (&progress, "Reading", "pages", (guint)g_atomic_int_get (&load.n_done),
                         (guint)g_atomic_int_get (&load.n_total));
  }
  g_thread_join (thread);
  cli_progress_clear (&progress);
  cli_remove_interrupt (interrupt);
  if (load.error != NULL)
    g_propagate_error (error, load.error);
  return load.result;
}

void
cli_set_closed (GError **error, const char *name)
{
  g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_PASSWORD,
               "%s stays closed: its password was not given", name);
}

KsMediaResult *
cli_load_document (const char *path, char **password, GError **error)
{
  g_autofree char *name = g_filename_display_basename (path);
  g_autoptr (GError) local = NULL;
  KsMediaResult *result = load_document (path, *password, &local);
  gboolean was_wrong = FALSE, asked = FALSE;

  while (result == NULL && ks_error_is_password (local, &was_wrong)) {
    char *typed = cli_ask_password (name, was_wrong, &asked);

    if (typed == NULL)
      break;
    g_free (*password);
    *password = typed;
    g_clear_error (&local);
    result = load_document (path, *password, &local);
  }
  if (result != NULL)
    return result;
  if (ks_error_is_password (local, &was_wrong) && asked)
    cli_set_closed (error, name);
  else if (ks_error_is_password (local, &was_wrong) && !was_wrong)
    g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_PASSWORD,
                 "%s is encrypted: give its password with --password", name);
  else
    g_propagate_error (error, g_steal_pointer (&local));
  return NULL;
}

/* Bytes up to the end of the line, with a terminal's own editing switched off: Ctrl-C must not end
 * the program while nothing is shown. */
static gboolean
read_hidden (int fd, GString *line)
{
  unsigned char c;

  while (read (fd, &c, 1) == 1) {
    if (c == '\n' || c == '\r')
      return TRUE;
    if (c == 3 || (c == 4 && line->len == 0))
      return FALSE;
    if (c == 0x7f || c == '\b') {
      const char *before = g_utf8_find_prev_char (line->str, line->str + line->len);

      g_string_truncate (line, before != NULL ? (gsize)(before - line->str) : 0);
    } else if (c >= 0x20) {
      g_string_append_c (line, (char)c);
    }
  }
  return FALSE;
}

char *
cli_ask_password (const char *name, gboolean was_wrong, gboolean *out_asked)
{
  g_autofree char *printable = cli_dup_printable (name);
  GString *line = g_string_new (NULL);
  struct termios before, now;
  int fd = open ("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  gboolean done = FALSE;

  if (fd >= 0 && tcgetattr (fd, &before) == 0) {
    now = before;
    now.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    dprintf (fd, "%sPassword for %s: ", was_wrong ? "That is not the password. " : "", printable);
    *out_asked = TRUE;
    if (tcsetattr (fd, TCSAFLUSH, &now) == 0)
      done = read_hidden (fd, line);
    tcsetattr (fd, TCSAFLUSH, &before);
    dprintf (fd, "\n");
  }
  if (fd >= 0)
    close (fd);
  return g_string_free (line, !done);
}

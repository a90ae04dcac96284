/* ks-text-import.c - see ks-text-import.h.
 * A file counts as binary when it holds NULs that no wide encoding explains, or many control bytes.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-text-import.h"

#include "app/ks-error.h"

#include <uchardet.h>

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How much of a file decides about wide encodings and binary content. */
#define PROBE_BYTES 65536u

typedef struct {
  const char *encoding;
  guint n_mark;
} Mark;

static Mark
find_mark (const guchar *data, gsize n)
{
  if (n >= 4 && memcmp (data, "\xff\xfe\0\0", 4) == 0)
    return (Mark){"UTF-32LE", 4};
  if (n >= 4 && memcmp (data, "\0\0\xfe\xff", 4) == 0)
    return (Mark){"UTF-32BE", 4};
  if (n >= 3 && memcmp (data, "\xef\xbb\xbf", 3) == 0)
    return (Mark){"UTF-8", 3};
  if (n >= 2 && memcmp (data, "\xff\xfe", 2) == 0)
    return (Mark){"UTF-16LE", 2};
  if (n >= 2 && memcmp (data, "\xfe\xff", 2) == 0)
    return (Mark){"UTF-16BE", 2};
  return (Mark){NULL, 0};
}

/* Wide text without a mark: in western text nearly every second (fourth) byte is 0, always at the
 * same places.  NULL when the zeros do not look like that. */
static const char *
guess_wide (const guchar *data, gsize n)
{
  gsize zeros[4] = {0}, n_probe = MIN (n, PROBE_BYTES) / 4 * 4, quarter = n_probe / 4;

  if (quarter == 0)
    return NULL;
  for (gsize i = 0; i < n_probe; i++)
    zeros[i % 4] += data[i] == 0;
  if (n % 4 == 0 && zeros[0] < quarter / 8 + 1 && zeros[1] > quarter * 7 / 8 &&
      zeros[2] == quarter && zeros[3] == quarter)
    return "UTF-32LE";
  if (n % 4 == 0 && zeros[3] < quarter / 8 + 1 && zeros[2] > quarter * 7 / 8 &&
      zeros[0] == quarter && zeros[1] == quarter)
    return "UTF-32BE";
  if (n % 2 == 0 && zeros[0] + zeros[2] < quarter / 8 + 1 && zeros[1] + zeros[3] > quarter)
    return "UTF-16LE";
  if (n % 2 == 0 && zeros[1] + zeros[3] < quarter / 8 + 1 && zeros[0] + zeros[2] > quarter)
    return "UTF-16BE";
  return NULL;
}

/* Zeros, or more than one control byte in thirty: no text in a byte encoding.  ESC stays allowed
 * for ISO-2022 and for terminal logs. */
static gboolean
looks_binary (const guchar *data, gsize n)
{
  gsize n_probe = MIN (n, PROBE_BYTES), n_control = 0;

  if (memchr (data, 0, n) != NULL)
    return TRUE;
  for (gsize i = 0; i < n_probe; i++)
    n_control += (data[i] < 0x20 && strchr ("\t\n\r\f\x1b\b", data[i]) == NULL) || data[i] == 0x7f;
  return n_control * 30 > n_probe;
}

/* (transfer full) name of the encoding, NULL when none is recognised. */
static char *
detect_charset (const guchar *data, gsize n)
{
  uchardet_t detector = uchardet_new ();
  char *name = NULL;

  if (uchardet_handle_data (detector, (const char *)data, n) == 0) {
    uchardet_data_end (detector);
    name = g_strdup (uchardet_get_charset (detector));
  }
  uchardet_delete (detector);
  if (name != NULL && name[0] == '\0')
    g_clear_pointer (&name, g_free);
  return name;
}

/* CRLF and CR become LF; in place.  Returns the new length. */
static gsize
join_line_ends (char *text, gsize n)
{
  gsize to = 0;

  for (gsize from = 0; from < n; from++) {
    if (text[from] == '\r') {
      text[to++] = '\n';
      if (from + 1 < n && text[from + 1] == '\n')
        from++;
    } else {
      text[to++] = text[from];
    }
  }
  text[to] = '\0';
  return to;
}

static char *
convert (const char *name, const guchar *data, gsize n, const char *encoding, gsize *out_n,
         GError **error)
{
  g_autoptr (GError) local = NULL;
  char *text;

  text = g_convert ((const char *)data, (gssize)n, "UTF-8", encoding, NULL, out_n, &local);
  if (text == NULL)
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT,
                 "%s looks like %s text but cannot be converted (%s): save it as UTF-8", name,
                 encoding, local->message);
  return text;
}

static void
set_binary_error (const char *name, GError **error)
{
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT,
               "%s is not a text file: attach plain text, Markdown, source code or CSV", name);
}

/* Text in a byte encoding without a mark. */
static char *
import_unmarked (const char *name, const guchar *data, gsize n, gsize *out_n, char **out_encoding,
                 GError **error)
{
  g_autofree char *charset = NULL;
  const char *wide = guess_wide (data, n);
  char *text;

  if (wide != NULL) {
    charset = g_strdup (wide);
  } else if (looks_binary (data, n)) {
    set_binary_error (name, error);
    return NULL;
  } else if (g_utf8_validate_len ((const char *)data, n, NULL)) {
    charset = g_strdup ("UTF-8");
  } else {
    charset = detect_charset (data, n);
    if (charset == NULL)
      charset = g_strdup ("WINDOWS-1252");
  }
  text = convert (name, data, n, charset, out_n, error);
  if (text != NULL)
    *out_encoding = g_steal_pointer (&charset);
  return text;
}

char *
ks_text_import_bytes (const char *name, const void *data, gsize n_bytes, gsize *out_n,
                      char **out_encoding, GError **error)
{
  g_autofree char *encoding = NULL, *text = NULL;
  const guchar *bytes = data;
  gsize n = 0;
  Mark mark;

  g_return_val_if_fail (name != NULL && (data != NULL || n_bytes == 0), NULL);
  if (n_bytes > KS_TEXT_IMPORT_MAX_BYTES) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_TOO_LARGE,
                 "%s is larger than %u MiB: split it and attach the parts you need", name,
                 KS_TEXT_IMPORT_MAX_BYTES >> 20);
    return NULL;
  }
  mark = find_mark (bytes, n_bytes);
  if (mark.encoding != NULL) {
    encoding = g_strdup (mark.encoding);
    text = convert (name, bytes + mark.n_mark, n_bytes - mark.n_mark, encoding, &n, error);
  } else {
    text = import_unmarked (name, n_bytes > 0 ? bytes : (const guchar *)"", n_bytes, &n, &encoding,
                            error);
  }
  if (text == NULL)
    return NULL;
  if (memchr (text, 0, n) != NULL || looks_binary ((const guchar *)text, n)) {
    set_binary_error (name, error);
    return NULL;
  }
  n = join_line_ends (text, n);
  if (out_n != NULL)
    *out_n = n;
  if (out_encoding != NULL)
    *out_encoding = g_steal_pointer (&encoding);
  return g_steal_pointer (&text);
}

/* Opens without blocking on a pipe and refuses what is no regular file. */
static gboolean
read_file (const char *path, char **out_data, gsize *out_n, GError **error)
{
  g_autofree char *name = g_path_get_basename (path);
  struct stat st;
  int fd = g_open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  gboolean ok = FALSE;

  if (fd < 0 || fstat (fd, &st) != 0) {
    int code = errno;

    g_set_error (error, G_FILE_ERROR, (int)g_file_error_from_errno (code), "cannot read %s: %s",
                 path, g_strerror (code));
  } else if (!S_ISREG (st.st_mode)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT, "%s is not a file: attach a text file",
                 path);
  } else if ((guint64)st.st_size > KS_TEXT_IMPORT_MAX_BYTES) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_TOO_LARGE,
                 "%s is larger than %u MiB: split it and attach the parts you need", name,
                 KS_TEXT_IMPORT_MAX_BYTES >> 20);
  } else {
    ok = g_file_get_contents (path, out_data, out_n, error);
  }
  if (fd >= 0)
    close (fd);
  return ok;
}

char *
ks_text_import_file (const char *path, gsize *out_n, char **out_encoding, GError **error)
{
  g_autofree char *name = NULL, *data = NULL;
  gsize n = 0;

  g_return_val_if_fail (path != NULL, NULL);
  if (!read_file (path, &data, &n, error))
    return NULL;
  name = g_path_get_basename (path);
  return ks_text_import_bytes (name, data, n, out_n, out_encoding, error);
}

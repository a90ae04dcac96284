/* ks-export.c - names, files and the choice of the writer; the formats are in ks-export-*.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-export.h"

#include "storage/ks-export-internal.h"
#include "storage/ks-store-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_NAME_BYTES 120
#define MAX_TRIES 10000
#define JOINER 0x200d /* binds emoji; all other invisible characters are dropped */

static const char *const extensions[] = {"md", "json", "html"};

gboolean
ks_export_parse_format (const char *name, KsExportFormat *out)
{
  g_return_val_if_fail (name != NULL, FALSE);
  for (guint i = 0; i < G_N_ELEMENTS (extensions); i++)
    if (g_ascii_strcasecmp (name, extensions[i]) == 0) {
      *out = (KsExportFormat)i;
      return TRUE;
    }
  return FALSE;
}

/* What stands for c in a file name: itself, '_', ' ', or 0 for nothing. */
static gunichar
translate (gunichar c)
{
  if (c < 0x80 && strchr ("/\\:*?\"<>|", (int)c) != NULL)
    return '_';
  switch (g_unichar_type (c)) {
  case G_UNICODE_CONTROL:
  case G_UNICODE_LINE_SEPARATOR:
  case G_UNICODE_PARAGRAPH_SEPARATOR:
  case G_UNICODE_SPACE_SEPARATOR:
    return ' ';
  case G_UNICODE_FORMAT:
    return c == JOINER ? c : 0;
  case G_UNICODE_SURROGATE:
  case G_UNICODE_UNASSIGNED:
    return '_';
  default:
    return c;
  }
}

/* Names that some systems take for devices, whatever follows the first dot. */
static gboolean
is_reserved (const char *name)
{
  static const char *const devices[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
  gsize n = strcspn (name, ".");
  g_autofree char *base = g_strchomp (g_ascii_strdown (name, (gssize)n));

  for (guint i = 0; i < G_N_ELEMENTS (devices); i++)
    if (strcmp (base, devices[i]) == 0)
      return TRUE;
  return (g_str_has_prefix (base, "com") || g_str_has_prefix (base, "lpt")) &&
         g_utf8_strlen (base + 3, -1) == 1 &&
         (g_ascii_isdigit (base[3]) || g_unichar_isdigit (g_utf8_get_char (base + 3)) ||
          strstr ("¹²³", base + 3) != NULL);
}

static void
trim_end (GString *name)
{
  while (name->len > 0 && strchr (" .", name->str[name->len - 1]) != NULL)
    g_string_truncate (name, name->len - 1);
}

char *
ks_export_make_name (const char *title, KsExportFormat format)
{
  g_autofree char *valid = g_utf8_make_valid (title != NULL ? title : "", -1);
  g_autoptr (GString) name = g_string_new (NULL);
  gsize room;

  g_return_val_if_fail (format < G_N_ELEMENTS (extensions), NULL);
  /* One byte for the dot, one for the '_' in front of a reserved name. */
  room = MAX_NAME_BYTES - strlen (extensions[format]) - 2;
  for (const char *p = valid; *p != '\0'; p = g_utf8_next_char (p)) {
    gunichar c = translate (g_utf8_get_char (p));
    gboolean is_blank = c == ' ';

    if (c == 0 || (is_blank && (name->len == 0 || name->str[name->len - 1] == ' ')))
      continue;
    /* No hidden file, and nothing that a command takes for an option. */
    if (name->len == 0 && (c == '.' || c == '-' || c == '~'))
      continue;
    if (name->len + (gsize)g_unichar_to_utf8 (c, NULL) > room)
      break;
    g_string_append_unichar (name, c);
  }
  trim_end (name);
  if (name->len == 0)
    g_string_assign (name, "session");
  if (is_reserved (name->str))
    g_string_prepend_c (name, '_');
  g_string_append_printf (name, ".%s", extensions[format]);
  return g_string_free (g_steal_pointer (&name), FALSE);
}

char *
ks_export_format_time (gint64 time_us)
{
  g_autoptr (GDateTime) time = g_date_time_new_from_unix_utc (time_us / G_USEC_PER_SEC);

  return time != NULL ? g_date_time_format (time, "%Y-%m-%d %H:%M UTC") : g_strdup ("");
}

const char *
ks_export_get_heading (KsMessage *message)
{
  static const char *const headings[] = {"System", "Question", "Answer"};

  return headings[ks_message_get_role (message)];
}

char *
ks_export_make_note (KsMessage *message)
{
  const char *problem = ks_message_get_error (message);

  switch (ks_message_get_state (message)) {
  case KS_MESSAGE_STOPPED:
    return g_strdup ("Stopped here.");
  case KS_MESSAGE_LIMIT:
    return g_strdup ("Ended here by the length limit.");
  case KS_MESSAGE_STREAMING:
  case KS_MESSAGE_INTERRUPTED:
    return g_strdup ("Interrupted here.");
  case KS_MESSAGE_FAILED:
    return g_strdup_printf ("Failed: %s", problem != NULL ? problem : "unknown");
  default:
    return NULL;
  }
}

/* In the words of the program and of its memory targets, whatever the language. */
static char *
format_size (guint64 n_bytes)
{
  static const char *const units[] = {"KiB", "MiB", "GiB"};
  double amount = (double)n_bytes / 1024;
  guint i = 0;

  if (n_bytes < 1024)
    return g_strdup_printf ("%u %s", (guint)n_bytes, n_bytes == 1 ? "byte" : "bytes");
  for (; amount >= 1024 && i + 1 < G_N_ELEMENTS (units); i++)
    amount /= 1024;
  return g_strdup_printf ("%.1f %s", amount, units[i]);
}

char *
ks_export_describe (KsMessage *message, KsAttachment *attachment)
{
  g_autofree char *size = format_size (ks_attachment_get_n_bytes (attachment));
  guint n_pages = ks_attachment_get_n_pages (attachment);
  const char *name = ks_attachment_get_name (attachment);

  const char *pinned =
      ks_message_is_pinned (message, ks_attachment_get_hash (attachment)) ? ", pinned" : "";

  if (n_pages == 0)
    return g_strdup_printf ("%s (%s%s)", name, size, pinned);
  return g_strdup_printf ("%s (%u %s, %s%s)", name, n_pages, n_pages == 1 ? "page" : "pages", size,
                          pinned);
}

const char *
ks_export_get_picture_type (GBytes *bytes)
{
  gsize n;
  const char *data = g_bytes_get_data (bytes, &n);

  if (n >= 8 && memcmp (data, "\x89PNG\r\n\x1a\n", 8) == 0)
    return "image/png";
  if (n >= 3 && memcmp (data, "\xff\xd8\xff", 3) == 0)
    return "image/jpeg";
  if (n >= 6 && (memcmp (data, "GIF87a", 6) == 0 || memcmp (data, "GIF89a", 6) == 0))
    return "image/gif";
  if (n >= 12 && memcmp (data, "RIFF", 4) == 0 && memcmp (data + 8, "WEBP", 4) == 0)
    return "image/webp";
  if (n >= 12 && memcmp (data + 4, "ftypavi", 7) == 0)
    return "image/avif";
  return NULL;
}

static GBytes *
write_content (KsStore *store, KsSession *session, KsExportFormat format, GError **error)
{
  switch (format) {
  case KS_EXPORT_MARKDOWN:
    return ks_export_markdown (store, session, error);
  case KS_EXPORT_JSON:
    return ks_export_json (store, session, error);
  default:
    return ks_export_html (store, session, error);
  }
}

/* Content and, when asked for, the title, as they are at one moment. */
static GBytes *
export_session (KsStore *store, gint64 id, KsExportFormat format, char **out_title, GError **error)
{
  g_autoptr (KsSession) session = NULL;
  g_autoptr (GBytes) content = NULL;

  if (!ks_database_begin_read (store->database, error))
    return NULL;
  session = ks_store_get_session (store, id, error);
  if (session != NULL)
    content = write_content (store, session, format, error);
  if (!ks_database_end (store->database, content != NULL, error))
    return NULL;
  if (out_title != NULL)
    *out_title = g_strdup (ks_session_get_title (session));
  return g_steal_pointer (&content);
}

GBytes *
ks_export_session (KsStore *store, gint64 session, KsExportFormat format, GError **error)
{
  g_return_val_if_fail (KS_IS_STORE (store), NULL);
  g_return_val_if_fail (format < G_N_ELEMENTS (extensions), NULL);
  return export_session (store, session, format, NULL, error);
}

static gboolean
write_all (int fd, GBytes *content)
{
  gsize n;
  const char *at = g_bytes_get_data (content, &n);

  while (n > 0) {
    ssize_t done = write (fd, at, n);

    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return FALSE;
    at += done;
    n -= (gsize)done;
  }
  return fsync (fd) == 0 || errno == EINVAL || errno == EROFS;
}

/* A file without a name beside path, which disappears with a program that is killed while it
 * writes; -1 where the file system has no such files. */
static int
open_nameless (const char *path)
{
#ifdef O_TMPFILE
  g_autofree char *folder = g_path_get_dirname (path);

  return g_open (folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
#else
  return -1;
#endif
}

/* Gives the nameless file its name, unless that is taken: errno is EEXIST then. */
static gboolean
name_file (int fd, const char *path)
{
  g_autofree char *open_file = g_strdup_printf ("/proc/self/fd/%d", fd);

  return linkat (AT_FDCWD, open_file, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

/* FALSE with error unset: there are no nameless files here, or the name is taken. */
static gboolean
write_nameless (const char *path, GBytes *content, gboolean *out_exists, GError **error)
{
  int fd = open_nameless (path);
  gboolean done;
  int number;

  if (fd < 0)
    return FALSE;
  done = write_all (fd, content);
  number = errno;
  if (!done)
    ks_storage_error_set_errno (error, number, "Cannot write", path);
  else if (!(done = name_file (fd, path)))
    *out_exists = errno == EEXIST;
  (void)close (fd); /* everything was written and synced, or is dropped */
  return done;
}

/* Makes path and fills it; what could not be filled is removed.  EEXIST leaves error unset. */
static gboolean
write_named (const char *path, GBytes *content, gboolean *out_exists, GError **error)
{
  int fd = g_open (path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  int number = errno;
  gboolean done;

  *out_exists = fd < 0 && number == EEXIST;
  if (*out_exists)
    return FALSE;
  if (fd < 0) {
    ks_storage_error_set_errno (error, number, "Cannot write", path);
    return FALSE;
  }
  done = write_all (fd, content);
  number = errno;
  if (close (fd) != 0 && done) {
    done = FALSE;
    number = errno;
  }
  if (done)
    return TRUE;
  g_unlink (path);
  ks_storage_error_set_errno (error, number, "Cannot write", path);
  return FALSE;
}

/* The whole file appears at once where the file system can do that. */
static gboolean
write_new_file (const char *path, GBytes *content, gboolean *out_exists, GError **error)
{
  GError *failure = NULL;
  GStatBuf status;

  *out_exists = g_lstat (path, &status) == 0;
  if (*out_exists)
    return FALSE;
  if (write_nameless (path, content, out_exists, &failure))
    return TRUE;
  if (failure != NULL) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  return !*out_exists && write_named (path, content, out_exists, error);
}

char *
ks_export_session_to_folder (KsStore *store, gint64 session, KsExportFormat format,
                             const char *folder, GError **error)
{
  g_autoptr (GBytes) content = NULL;
  g_autofree char *title = NULL, *name = NULL, *stem = NULL;

  g_return_val_if_fail (KS_IS_STORE (store), NULL);
  g_return_val_if_fail (format < G_N_ELEMENTS (extensions), NULL);
  g_return_val_if_fail (folder != NULL, NULL);
  content = export_session (store, session, format, &title, error);
  if (content == NULL)
    return NULL;
  name = ks_export_make_name (title, format);
  stem = g_strndup (name, strlen (name) - strlen (extensions[format]) - 1);
  for (guint i = 1; i < MAX_TRIES; i++) {
    g_autofree char *numbered =
        i == 1 ? g_strdup (name) : g_strdup_printf ("%s (%u).%s", stem, i, extensions[format]);
    g_autofree char *path = g_build_filename (folder, numbered, NULL);
    gboolean exists;

    if (write_new_file (path, content, &exists, error))
      return g_steal_pointer (&path);
    if (!exists)
      return NULL;
  }
  g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FAILED,
               "There is no free name for \"%s\" in %s: choose another folder.", name, folder);
  return NULL;
}

gboolean
ks_export_session_to_file (KsStore *store, gint64 session, KsExportFormat format, const char *path,
                           GError **error)
{
  g_autoptr (GBytes) content = NULL;
  gboolean exists;

  g_return_val_if_fail (KS_IS_STORE (store), FALSE);
  g_return_val_if_fail (format < G_N_ELEMENTS (extensions), FALSE);
  g_return_val_if_fail (path != NULL, FALSE);
  content = export_session (store, session, format, NULL, error);
  if (content == NULL)
    return FALSE;
  if (write_new_file (path, content, &exists, error))
    return TRUE;
  if (exists)
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FAILED,
                 "%s exists and is not overwritten: choose another name.", path);
  return FALSE;
}

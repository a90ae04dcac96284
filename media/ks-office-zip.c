/* ks-office-zip.c - see ks-office-zip.h.
 * libarchive reads the zip through the descriptor.  What a zip bomb can cost is bounded by the
 * bytes that come out, whatever its directory says. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-office-zip.h"

#include "media/ks-sniff.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MAX_PARTS 65536u
#define MAX_UNPACKED_MIB 256u
/* Of all parts with text together, and of one picture. */
#define MAX_UNPACKED_BYTES ((guint64)MAX_UNPACKED_MIB << 20)
#define BLOCK_BYTES 65536

struct _KsOfficeZip {
  const KsLoaderJob *job;
  GHashTable *texts;    /* name -> GBytes */
  GHashTable *pictures; /* a set of names */
  guint64 n_text_bytes;
  gboolean is_damaged;
};

static struct archive *
open_archive (const KsLoaderJob *job)
{
  struct archive *archive = archive_read_new ();

  if (archive == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  if (lseek (job->fd, 0, SEEK_SET) != 0)
    ks_answer_fault (KS_WIRE_FAULT_READ, (guint32)errno, 0);
  if (archive_read_support_format_zip (archive) != ARCHIVE_OK ||
      archive_read_open_fd (archive, job->fd, BLOCK_BYTES) != ARCHIVE_OK)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_DOCUMENT, 0);
  return archive;
}

/* The entry's name as a key: no leading slash, forward slashes. (transfer full), NULL = no name */
static char *
dup_entry_name (struct archive_entry *entry)
{
  const char *name = archive_entry_pathname_utf8 (entry);

  if (name == NULL)
    name = archive_entry_pathname (entry);
  if (name == NULL)
    return NULL;
  while (*name == '/' || g_str_has_prefix (name, "./"))
    name += *name == '/' ? 1 : 2;
  return g_strdelimit (g_strdup (name), "\\", '/');
}

/* At most max_bytes of the entry that was found last; more of it is the fault UNPACKED. */
static GBytes *
read_entry (struct archive *archive, guint64 max_bytes, gboolean *out_damaged)
{
  gsize room = BLOCK_BYTES, n = 0;
  guint8 *data = g_try_malloc (room);

  while (data != NULL) {
    la_ssize_t got = archive_read_data (archive, data + n, room - n);

    if (got <= 0) {
      *out_damaged = got < 0;
      return g_bytes_new_take (data, n);
    }
    n += (gsize)got;
    if (n > max_bytes)
      ks_answer_fault (KS_WIRE_FAULT_UNPACKED, MAX_UNPACKED_MIB, 0);
    if (n == room) {
      guint8 *grown = g_try_realloc (data, room *= 2);

      if (grown == NULL)
        break;
      data = grown;
    }
  }
  ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
}

static gboolean
has_text_name (const char *name)
{
  static const char *const ends[] = {".xml", ".rels", ".opf", ".xhtml", ".html", ".htm", ".xht"};
  g_autofree char *lower = g_ascii_strdown (name, -1);

  if (g_str_equal (lower, "mimetype"))
    return TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS (ends); i++)
    if (g_str_has_suffix (lower, ends[i]))
      return TRUE;
  return FALSE;
}

static gboolean
starts_like_picture (struct archive *archive)
{
  guint8 head[KS_SNIFF_BYTES];
  la_ssize_t n = archive_read_data (archive, head, sizeof head);

  return n > 0 && ks_sniff (head, (gsize)n)->what == KS_WIRE_IMAGE;
}

static void
take_entry (KsOfficeZip *zip, struct archive *archive, struct archive_entry *entry)
{
  g_autofree char *name = dup_entry_name (entry);
  gboolean is_damaged = FALSE;

  if (archive_entry_is_data_encrypted (entry))
    ks_answer_fault (KS_WIRE_FAULT_CIPHER, 0, 0);
  if (name == NULL || name[0] == '\0' || g_str_has_suffix (name, "/") ||
      g_hash_table_contains (zip->texts, name))
    return;
  if (has_text_name (name)) {
    GBytes *bytes = read_entry (archive, MAX_UNPACKED_BYTES - zip->n_text_bytes, &is_damaged);

    zip->n_text_bytes += g_bytes_get_size (bytes);
    zip->is_damaged = zip->is_damaged || is_damaged;
    g_hash_table_insert (zip->texts, g_steal_pointer (&name), bytes);
  } else if (starts_like_picture (archive)) {
    g_hash_table_add (zip->pictures, g_steal_pointer (&name));
  }
}

KsOfficeZip *
ks_office_zip_open (const KsLoaderJob *job)
{
  KsOfficeZip *zip = g_new0 (KsOfficeZip, 1);
  struct archive *archive = open_archive (job);
  struct archive_entry *entry;
  guint n_part = 0;
  int code;

  zip->job = job;
  zip->texts =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_bytes_unref);
  zip->pictures = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  while ((code = archive_read_next_header (archive, &entry)) == ARCHIVE_OK ||
         code == ARCHIVE_WARN) {
    if (++n_part > MAX_PARTS)
      ks_answer_fault (KS_WIRE_FAULT_UNPACKED, MAX_UNPACKED_MIB, 0);
    take_entry (zip, archive, entry);
  }
  zip->is_damaged = zip->is_damaged || code != ARCHIVE_EOF;
  archive_read_free (archive);
  return zip;
}

GBytes *
ks_office_zip_peek (KsOfficeZip *zip, const char *name)
{
  return g_hash_table_lookup (zip->texts, name);
}

gboolean
ks_office_zip_has_picture (KsOfficeZip *zip, const char *name)
{
  return g_hash_table_contains (zip->pictures, name);
}

gboolean
ks_office_zip_is_damaged (KsOfficeZip *zip)
{
  return zip->is_damaged;
}

GBytes *
ks_office_zip_extract (KsOfficeZip *zip, const char *name)
{
  struct archive *archive = open_archive (zip->job);
  struct archive_entry *entry;
  gboolean is_damaged;
  int code;

  while ((code = archive_read_next_header (archive, &entry)) == ARCHIVE_OK ||
         code == ARCHIVE_WARN) {
    g_autofree char *found = dup_entry_name (entry);

    if (g_strcmp0 (found, name) == 0) {
      GBytes *bytes = read_entry (archive, MAX_UNPACKED_BYTES, &is_damaged);

      archive_read_free (archive);
      return bytes;
    }
  }
  ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_DOCUMENT, 0);
}

/* --- references --- */

static gboolean
has_scheme (const char *target)
{
  const char *p = target;

  while (g_ascii_isalnum (*p) || *p == '+' || *p == '-' || *p == '.')
    p++;
  return p > target + 1 && *p == ':';
}

char *
ks_office_resolve (const char *base, const char *target)
{
  g_autofree char *plain = g_strndup (target, strcspn (target, "#?"));
  g_autofree char *decoded = g_uri_unescape_string (plain, NULL);
  g_autoptr (GPtrArray) steps = g_ptr_array_new ();
  g_auto (GStrv) from = g_strsplit (base, "/", -1), to = NULL;
  guint n_from = g_strv_length (from);

  if (decoded == NULL || decoded[0] == '\0' || has_scheme (target) ||
      g_str_has_prefix (target, "//"))
    return NULL;
  to = g_strsplit (decoded, "/", -1);
  for (guint i = 0; decoded[0] != '/' && i + 1 < n_from; i++)
    g_ptr_array_add (steps, from[i]);
  for (guint i = 0; to[i] != NULL; i++) {
    if (g_str_equal (to[i], "..")) {
      if (steps->len > 0)
        g_ptr_array_set_size (steps, (int)steps->len - 1);
    } else if (to[i][0] != '\0' && !g_str_equal (to[i], ".")) {
      g_ptr_array_add (steps, to[i]);
    }
  }
  g_ptr_array_add (steps, NULL);
  return g_strjoinv ("/", (char **)steps->pdata);
}

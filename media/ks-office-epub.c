/* ks-office-epub.c - EPUB: its chapters in reading order (ks-office.h).
 * The container names the package, the package lists the parts and their order; each chapter is
 * read as HTML, so that a book with faults stays readable. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-office-xml.h"
#include "media/ks-office.h"

#include "media/ks-loader.h"

#include <string.h>

#define CONTAINER "META-INF/container.xml"

typedef struct {
  char *package;
} ContainerWalk;

static void
container_cb (KsOfficeXml *xml, const char *name, gpointer user)
{
  ContainerWalk *walk = user;

  if (g_str_equal (name, "rootfile") && walk->package == NULL)
    walk->package = ks_office_xml_dup (xml, "full-path", NULL);
}

typedef struct {
  const char *package; /* the part's name */
  GHashTable *items;   /* id -> name of a part */
  GPtrArray *chapters; /* ids */
  GString *about;      /* title and authors */
  gboolean in_about;
} PackageWalk;

static void
package_cb (KsOfficeXml *xml, const char *name, gpointer user)
{
  PackageWalk *walk = user;

  if (g_str_equal (name, "item")) {
    g_autofree char *id = ks_office_xml_dup (xml, "id", NULL);
    g_autofree char *target = ks_office_xml_dup (xml, "href", NULL);
    char *part = target != NULL ? ks_office_resolve (walk->package, target) : NULL;

    if (id != NULL && part != NULL)
      g_hash_table_replace (walk->items, g_steal_pointer (&id), part);
    else
      g_free (part);
  } else if (g_str_equal (name, "itemref")) {
    char *id = ks_office_xml_dup (xml, "idref", NULL);

    if (id != NULL)
      g_ptr_array_add (walk->chapters, id);
  } else if (g_str_equal (name, "title") || g_str_equal (name, "creator")) {
    walk->in_about = TRUE;
    if (walk->about->len > 0)
      g_string_append (walk->about, ", ");
  }
}

static void
package_end_cb (const char *name, gpointer user)
{
  ((PackageWalk *)user)->in_about = FALSE;
}

static void
package_text_cb (const char *data, gsize n, gpointer user)
{
  PackageWalk *walk = user;

  if (walk->in_about)
    g_string_append_len (walk->about, data, (gssize)n);
}

/* --- rights management --- */

typedef struct {
  GHashTable *names; /* a set of encrypted parts */
  gboolean is_font;  /* fonts are scrambled, not encrypted: they do not matter here */
} EncryptionWalk;

static void
encryption_cb (KsOfficeXml *xml, const char *name, gpointer user)
{
  EncryptionWalk *walk = user;

  if (g_str_equal (name, "EncryptionMethod")) {
    g_autofree char *method = ks_office_xml_dup (xml, "Algorithm", NULL);

    walk->is_font =
        method != NULL && (strstr (method, "obfuscation") != NULL || strstr (method, "RC") != NULL);
  } else if (g_str_equal (name, "CipherReference") && !walk->is_font) {
    g_autofree char *target = ks_office_xml_dup (xml, "URI", NULL);
    char *part = target != NULL ? ks_office_resolve ("", target) : NULL;

    if (part != NULL)
      g_hash_table_add (walk->names, part);
  }
}

static GHashTable *
read_encrypted_names (KsOffice *office)
{
  static const KsOfficeXmlHandler handler = {.start = encryption_cb};
  GBytes *bytes = ks_office_zip_peek (office->zip, "META-INF/encryption.xml");
  EncryptionWalk walk = {g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL), FALSE};

  if (bytes != NULL)
    (void)ks_office_xml_walk (bytes, &handler, &walk);
  return walk.names;
}

static void
read_chapters (KsOffice *office, const PackageWalk *walk)
{
  g_autoptr (GHashTable) encrypted = read_encrypted_names (office);

  for (guint i = 0; i < walk->chapters->len && !office->text->is_full; i++) {
    const char *part = g_hash_table_lookup (walk->items, g_ptr_array_index (walk->chapters, i));
    GBytes *bytes = part != NULL ? ks_office_zip_peek (office->zip, part) : NULL;

    if (part != NULL && g_hash_table_contains (encrypted, part))
      ks_answer_fault (KS_WIRE_FAULT_CIPHER, 0, 0);
    if (bytes != NULL && g_bytes_get_size (bytes) > 0) {
      gsize n;
      const guint8 *data = g_bytes_get_data (bytes, &n);

      ks_office_text_gap (office->text);
      ks_office_read_html (office, data, n, part);
    } else {
      office->warnings |= KS_WIRE_WARN_PARTS;
    }
    ks_answer_progress (i + 1, walk->chapters->len);
  }
}

gboolean
ks_office_read_epub (KsOffice *office)
{
  static const KsOfficeXmlHandler container = {.start = container_cb};
  static const KsOfficeXmlHandler package = {package_cb, package_end_cb, package_text_cb, NULL};
  GBytes *bytes = ks_office_zip_peek (office->zip, CONTAINER);
  ContainerWalk first = {NULL};
  PackageWalk walk = {.items = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free),
                      .chapters = g_ptr_array_new_with_free_func (g_free),
                      .about = g_string_new (NULL)};

  if (bytes == NULL)
    return FALSE;
  (void)ks_office_xml_walk (bytes, &container, &first);
  bytes = first.package != NULL ? ks_office_zip_peek (office->zip, first.package) : NULL;
  if (bytes == NULL)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_DOCUMENT, 0);
  walk.package = first.package;
  if (!ks_office_xml_walk (bytes, &package, &walk))
    office->warnings |= KS_WIRE_WARN_PARTS;
  ks_office_text_add (office->text, walk.about->str, walk.about->len, TRUE);
  ks_office_text_gap (office->text);
  read_chapters (office, &walk);
  g_hash_table_unref (walk.items);
  g_ptr_array_unref (walk.chapters);
  g_string_free (walk.about, TRUE);
  g_free (first.package);
  return TRUE;
}

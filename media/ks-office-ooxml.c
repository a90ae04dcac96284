/* ks-office-ooxml.c - DOCX and PPTX: which parts there are, and in which order (ks-office.h).
 * The main part is found through the document's relationships, as the standard wants it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-office-xml.h"
#include "media/ks-office.h"

#include "media/ks-loader.h"

#include <string.h>

#define RELATIONSHIPS "/relationships"

static void
free_link (gpointer data)
{
  KsOfficeLink *link = data;

  g_free (link->type);
  g_free (link->target);
  g_free (link);
}

typedef struct {
  const char *part;
  GHashTable *links;
} LinksWalk;

static void
link_cb (KsOfficeXml *xml, const char *name, gpointer user)
{
  LinksWalk *walk = user;
  g_autofree char *id = NULL, *target = NULL, *mode = NULL;
  KsOfficeLink *link;

  if (!g_str_equal (name, "Relationship"))
    return;
  id = ks_office_xml_dup (xml, "Id", NULL);
  target = ks_office_xml_dup (xml, "Target", NULL);
  mode = ks_office_xml_dup (xml, "TargetMode", NULL);
  if (id == NULL || target == NULL)
    return;
  link = g_new0 (KsOfficeLink, 1);
  link->type = ks_office_xml_dup (xml, "Type", NULL);
  if (g_strcmp0 (mode, "External") != 0)
    link->target = ks_office_resolve (walk->part, target);
  g_hash_table_replace (walk->links, g_steal_pointer (&id), link);
}

GHashTable *
ks_office_read_links (KsOffice *office, const char *part)
{
  static const KsOfficeXmlHandler handler = {.start = link_cb};
  const char *slash = strrchr (part, '/');
  g_autofree char *folder = g_strndup (part, slash != NULL ? (gsize)(slash - part) + 1 : 0);
  g_autofree char *name =
      g_strdup_printf ("%s_rels/%s.rels", folder, slash != NULL ? slash + 1 : part);
  GBytes *bytes = ks_office_zip_peek (office->zip, name);
  LinksWalk walk = {part, g_hash_table_new_full (g_str_hash, g_str_equal, g_free, free_link)};

  if (bytes != NULL && !ks_office_xml_walk (bytes, &handler, &walk))
    office->warnings |= KS_WIRE_WARN_PARTS;
  return walk.links;
}

/* The smallest id wins, so that the answer does not depend on the table. */
const KsOfficeLink *
ks_office_find_link (GHashTable *links, const char *type_end)
{
  const KsOfficeLink *found = NULL;
  const char *found_id = NULL;
  GHashTableIter iter;
  gpointer id, data;

  g_hash_table_iter_init (&iter, links);
  while (g_hash_table_iter_next (&iter, &id, &data)) {
    const KsOfficeLink *link = data;

    if (link->type == NULL || link->target == NULL || !g_str_has_suffix (link->type, type_end))
      continue;
    if (found == NULL || strcmp (id, found_id) < 0) {
      found = link;
      found_id = id;
    }
  }
  return found;
}

/* --- DOCX --- */

typedef struct {
  GHashTable *styles;
  char *id;
} StylesWalk;

static void
style_cb (KsOfficeXml *xml, const char *name, gpointer user)
{
  StylesWalk *walk = user;
  g_autofree char *value = NULL;
  guint level = 0;

  if (g_str_equal (name, "style")) {
    g_free (walk->id);
    walk->id = ks_office_xml_dup (xml, "styleId", NULL);
    return;
  }
  if (!g_str_equal (name, "name") || walk->id == NULL)
    return;
  /* Names are English in every language's Word, ids are not. */
  value = ks_office_xml_dup (xml, "val", NULL);
  if (value != NULL && g_ascii_strncasecmp (value, "heading ", 8) == 0)
    level = (guint)g_ascii_strtoull (value + 8, NULL, 10);
  else if (value != NULL && g_ascii_strcasecmp (value, "title") == 0)
    level = 1;
  if (level > 0 && level < 10)
    g_hash_table_replace (walk->styles, g_steal_pointer (&walk->id), GUINT_TO_POINTER (level));
}

static GHashTable *
read_styles (KsOffice *office, GHashTable *links)
{
  static const KsOfficeXmlHandler handler = {.start = style_cb};
  const KsOfficeLink *link = ks_office_find_link (links, "/styles");
  GBytes *bytes = link != NULL ? ks_office_zip_peek (office->zip, link->target) : NULL;
  StylesWalk walk = {g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL), NULL};

  if (bytes != NULL && !ks_office_xml_walk (bytes, &handler, &walk))
    office->warnings |= KS_WIRE_WARN_PARTS;
  g_free (walk.id);
  return walk.styles;
}

static void
read_word (KsOffice *office, const char *part, GBytes *bytes)
{
  static const char *const notes[] = {"/footnotes", "/endnotes"};
  GHashTable *links = ks_office_read_links (office, part);
  GHashTable *styles = read_styles (office, links);
  KsOfficeContent content = {.links = links, .styles = styles};

  ks_office_read_content (office, bytes, &content);
  for (gsize i = 0; i < G_N_ELEMENTS (notes); i++) {
    const KsOfficeLink *link = ks_office_find_link (links, notes[i]);
    GBytes *more = link != NULL ? ks_office_zip_peek (office->zip, link->target) : NULL;

    if (more != NULL) {
      content.links = ks_office_read_links (office, link->target);
      ks_office_read_content (office, more, &content);
      g_hash_table_unref (content.links);
    }
  }
  g_hash_table_unref (styles);
  g_hash_table_unref (links);
}

/* --- PPTX --- */

typedef struct {
  GHashTable *links;
  GPtrArray *slides; /* names of parts */
} SlidesWalk;

static void
slide_cb (KsOfficeXml *xml, const char *name, gpointer user)
{
  SlidesWalk *walk = user;
  g_autofree char *id = NULL;
  const KsOfficeLink *link;

  if (!g_str_equal (name, "sldId"))
    return;
  id = ks_office_xml_dup (xml, "id", RELATIONSHIPS);
  link = id != NULL ? g_hash_table_lookup (walk->links, id) : NULL;
  if (link != NULL && link->target != NULL)
    g_ptr_array_add (walk->slides, link->target);
}

static void
read_notes (KsOffice *office, GHashTable *slide_links)
{
  const KsOfficeLink *link = ks_office_find_link (slide_links, "/notesSlide");
  GBytes *bytes = link != NULL ? ks_office_zip_peek (office->zip, link->target) : NULL;
  KsOfficeContent content = {.only_body = TRUE};
  KsOfficeText *text = office->text;
  gsize before = text->out->len, after;

  if (bytes == NULL)
    return;
  ks_office_text_add_marker (text, "Notes:");
  after = text->out->len;
  content.links = ks_office_read_links (office, link->target);
  ks_office_read_content (office, bytes, &content);
  g_hash_table_unref (content.links);
  if (text->out->len == after) { /* no notes */
    g_string_truncate (text->out, before);
    text->line = before;
  }
}

static void
read_slide (KsOffice *office, const char *part, guint number)
{
  g_autofree char *marker = g_strdup_printf ("[slide %u]", number);
  GBytes *bytes = ks_office_zip_peek (office->zip, part);
  KsOfficeContent content = {.links = ks_office_read_links (office, part)};

  ks_office_text_gap (office->text);
  ks_office_text_add_marker (office->text, marker);
  if (bytes != NULL)
    ks_office_read_content (office, bytes, &content);
  else
    office->warnings |= KS_WIRE_WARN_PARTS;
  read_notes (office, content.links);
  g_hash_table_unref (content.links);
}

static void
read_slides (KsOffice *office, const char *part, GBytes *bytes)
{
  static const KsOfficeXmlHandler handler = {.start = slide_cb};
  SlidesWalk walk = {ks_office_read_links (office, part), g_ptr_array_new ()};

  if (!ks_office_xml_walk (bytes, &handler, &walk))
    office->warnings |= KS_WIRE_WARN_PARTS;
  for (guint i = 0; i < walk.slides->len && !office->text->is_full; i++) {
    read_slide (office, g_ptr_array_index (walk.slides, i), i + 1);
    ks_answer_progress (i + 1, walk.slides->len);
  }
  g_ptr_array_unref (walk.slides);
  g_hash_table_unref (walk.links);
}

/* --- which of them --- */

static void
root_cb (KsOfficeXml *xml, const char *name, gpointer user)
{
  char **out_root = user;

  if (*out_root == NULL)
    *out_root = g_strdup (name);
}

static gboolean
has_root (gpointer user)
{
  return *(char **)user != NULL;
}

gboolean
ks_office_read_ooxml (KsOffice *office)
{
  static const KsOfficeXmlHandler handler = {.start = root_cb, .is_done = has_root};
  g_autoptr (GHashTable) links = ks_office_read_links (office, "");
  const KsOfficeLink *link = ks_office_find_link (links, "/officeDocument");
  GBytes *bytes = link != NULL ? ks_office_zip_peek (office->zip, link->target) : NULL;
  g_autofree char *root = NULL;

  if (bytes == NULL)
    return FALSE;
  (void)ks_office_xml_walk (bytes, &handler, &root);
  if (g_strcmp0 (root, "document") == 0)
    read_word (office, link->target, bytes);
  else if (g_strcmp0 (root, "presentation") == 0)
    read_slides (office, link->target, bytes);
  else if (root == NULL)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_DOCUMENT, 0);
  else
    return FALSE;
  return TRUE;
}

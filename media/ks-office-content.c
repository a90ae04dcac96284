/* ks-office-content.c - paragraphs, tables and pictures of a part of DOCX or PPTX.
 * Both formats use the same local names for what matters here: p, t, br, tbl, tr, tc, blip.
 * Left out: deleted and moved text, codes of fields, the older copy that stands beside a newer
 * form. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-office-xml.h"
#include "media/ks-office.h"

#include <string.h>

#define RELATIONSHIPS "/relationships"
#define MAX_LIST_LEVEL 8u

typedef struct {
  KsOffice *office;
  KsOfficeText *text;
  const KsOfficeContent *content;
  char *alt; /* of the picture that may follow */
  guint level;
  gboolean in_text;  /* inside <t> */
  gboolean in_props; /* inside the properties of a paragraph */
  gboolean has_style, is_title, is_body;
} Walk;

static gboolean
is_one_of (const char *name, const char *const *list)
{
  return g_strv_contains (list, name);
}

static void
take_alt (Walk *walk, KsOfficeXml *xml)
{
  g_autofree char *description = ks_office_xml_dup (xml, "descr", NULL);
  g_autofree char *title = ks_office_xml_dup (xml, "title", NULL);
  const char *found = description != NULL && description[0] != '\0' ? description : title;

  if (found == NULL || found[0] == '\0')
    return;
  g_free (walk->alt);
  walk->alt = g_strdup (found);
}

static void
add_picture (Walk *walk, KsOfficeXml *xml, const char *attribute)
{
  g_autofree char *id = ks_office_xml_dup (xml, attribute, RELATIONSHIPS);
  const KsOfficeLink *link = id != NULL && walk->content->links != NULL
                                 ? g_hash_table_lookup (walk->content->links, id)
                                 : NULL;
  const char *part = link != NULL ? link->target : NULL;

  if (part != NULL && !ks_office_zip_has_picture (walk->office->zip, part))
    part = NULL;
  ks_office_text_add_picture (walk->text, part, walk->alt);
  g_clear_pointer (&walk->alt, g_free);
}

static void
start_paragraph (Walk *walk)
{
  ks_office_text_break (walk->text);
  ks_office_text_clear_prefix (walk->text);
  walk->has_style = FALSE;
  walk->level = 0;
  if (walk->is_title)
    ks_office_text_add_heading (walk->text, 1);
}

/* What the properties of a paragraph say of its look: heading, list. */
static void
start_property (Walk *walk, KsOfficeXml *xml, const char *name)
{
  g_autofree char *value = ks_office_xml_dup (xml, "val", NULL);

  if (value == NULL)
    return;
  if (g_str_equal (name, "pStyle") && walk->content->styles != NULL) {
    guint heading = GPOINTER_TO_UINT (g_hash_table_lookup (walk->content->styles, value));

    if (heading > 0)
      ks_office_text_add_heading (walk->text, heading);
    walk->has_style = heading > 0;
  } else if (g_str_equal (name, "ilvl")) {
    walk->level = (guint)MIN (g_ascii_strtoull (value, NULL, 10), MAX_LIST_LEVEL);
  } else if (g_str_equal (name, "numId") && !g_str_equal (value, "0") && !walk->has_style) {
    g_autofree char *prefix = g_strdup_printf ("%*s- ", (int)(2 * walk->level), "");

    ks_office_text_set_prefix (walk->text, prefix);
  }
}

/* A placeholder of a slide: its kind says what the shape's text is. */
static void
start_placeholder (Walk *walk, KsOfficeXml *xml)
{
  g_autofree char *type = ks_office_xml_dup (xml, "type", NULL);

  walk->is_title = g_strcmp0 (type, "title") == 0 || g_strcmp0 (type, "ctrTitle") == 0;
  walk->is_body = g_strcmp0 (type, "body") == 0;
}

static void
add_reference (Walk *walk, KsOfficeXml *xml, const char *kind)
{
  g_autofree char *id = ks_office_xml_dup (xml, "id", NULL);
  g_autofree char *mark = g_strdup_printf ("[^%s%s]", kind, id != NULL ? id : "");

  ks_office_text_add (walk->text, mark, strlen (mark), FALSE);
}

/* Footnotes and endnotes are parts of their own: the lines between text and notes are none. */
static void
start_note (Walk *walk, KsOfficeXml *xml, const char *kind)
{
  g_autofree char *type = ks_office_xml_dup (xml, "type", NULL);

  if (type != NULL && !g_str_equal (type, "normal")) {
    ks_office_xml_skip (xml);
    return;
  }
  ks_office_text_begin_row (walk->text);
  add_reference (walk, xml, kind);
  ks_office_text_add (walk->text, " ", 1, FALSE);
}

static void
start_inline (Walk *walk, KsOfficeXml *xml, const char *name)
{
  if (g_str_equal (name, "t"))
    walk->in_text = TRUE;
  else if (g_str_equal (name, "br") || g_str_equal (name, "cr"))
    ks_office_text_add (walk->text, "\n", 1, FALSE);
  else if (g_str_equal (name, "tab") || g_str_equal (name, "ptab"))
    ks_office_text_add (walk->text, "\t", 1, FALSE);
  else if (g_str_equal (name, "noBreakHyphen"))
    ks_office_text_add (walk->text, "-", 1, FALSE);
  else if (g_str_equal (name, "footnoteReference"))
    add_reference (walk, xml, "");
  else if (g_str_equal (name, "endnoteReference"))
    add_reference (walk, xml, "e");
  else if (g_str_equal (name, "docPr") || g_str_equal (name, "cNvPr"))
    take_alt (walk, xml);
  else if (g_str_equal (name, "blip"))
    add_picture (walk, xml, "embed");
  else if (g_str_equal (name, "imagedata"))
    add_picture (walk, xml, "id");
}

static void
start_cb (KsOfficeXml *xml, const char *name, gpointer user)
{
  static const char *const left_out[] = {"Fallback", "moveFrom", "del",       "tabs",  "tabLst",
                                         "rPr",      "sectPr",   "pPrChange", "tblPr", "instrText",
                                         "bgPr",     "timing",   NULL};
  Walk *walk = user;

  if (is_one_of (name, left_out)) {
    ks_office_xml_skip (xml);
  } else if (walk->in_props) {
    start_property (walk, xml, name);
  } else if (g_str_equal (name, "ph")) {
    start_placeholder (walk, xml);
  } else if (walk->content->only_body && !walk->is_body) {
    return;
  } else if (g_str_equal (name, "p")) {
    start_paragraph (walk);
  } else if (g_str_equal (name, "pPr")) {
    walk->in_props = TRUE;
  } else if (g_str_equal (name, "tr")) {
    ks_office_text_begin_row (walk->text);
  } else if (g_str_equal (name, "tc")) {
    ks_office_text_begin_cell (walk->text);
  } else if (g_str_equal (name, "footnote")) {
    start_note (walk, xml, "");
  } else if (g_str_equal (name, "endnote")) {
    start_note (walk, xml, "e");
  } else {
    start_inline (walk, xml, name);
  }
}

static void
end_cb (const char *name, gpointer user)
{
  static const char *const shapes[] = {"sp",   "pic", "graphicFrame", "cxnSp", "drawing",
                                       "pict", NULL};
  Walk *walk = user;

  if (is_one_of (name, shapes)) {
    g_clear_pointer (&walk->alt, g_free);
    walk->is_title = walk->is_body = FALSE;
  }
  if (g_str_equal (name, "t"))
    walk->in_text = FALSE;
  else if (g_str_equal (name, "pPr"))
    walk->in_props = FALSE;
  else if (walk->content->only_body && !walk->is_body)
    return;
  else if (g_str_equal (name, "p"))
    ks_office_text_break (walk->text);
  else if (g_str_equal (name, "tr") || g_str_equal (name, "footnote") ||
           g_str_equal (name, "endnote"))
    ks_office_text_end_row (walk->text);
}

static void
text_cb (const char *data, gsize n, gpointer user)
{
  Walk *walk = user;

  if (walk->in_text)
    ks_office_text_add (walk->text, data, n, FALSE);
}

static gboolean
is_done_cb (gpointer user)
{
  return ((Walk *)user)->text->is_full;
}

void
ks_office_read_content (KsOffice *office, GBytes *part, const KsOfficeContent *content)
{
  static const KsOfficeXmlHandler handler = {start_cb, end_cb, text_cb, is_done_cb};
  Walk walk = {.office = office, .text = office->text, .content = content};

  if (!ks_office_xml_walk (part, &handler, &walk))
    office->warnings |= KS_WIRE_WARN_PARTS;
  while (office->text->n_inline > 0)
    ks_office_text_end_row (office->text);
  ks_office_text_break (office->text);
  ks_office_text_clear_prefix (office->text);
  g_free (walk.alt);
}

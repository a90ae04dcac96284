/* ks-office-odf.c - ODT and ODP: paragraphs, lists, tables and pictures of content.xml.
 * White space is one blank, as the format says; more of it has elements of its own.  Left out:
 * comments, and the deleted text that tracked changes keep. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-office-xml.h"
#include "media/ks-office.h"

#include "media/ks-loader.h"

#include <string.h>

#define MAX_BLANKS 1000u

typedef struct {
  KsOffice *office;
  KsOfficeText *text;
  guint n_line; /* open paragraphs and headings: text counts only inside */
  guint n_list, n_slide;
  gboolean in_alt;
  char *picture; /* target of the frame's picture: its description follows */
  gboolean has_picture;
  GString *alt;
} Walk;

static gboolean
is_line (const char *name)
{
  return g_str_equal (name, "p") || g_str_equal (name, "h");
}

static void
start_line (Walk *walk, KsOfficeXml *xml, const char *name)
{
  g_autofree char *level = NULL;

  walk->n_line++;
  ks_office_text_break (walk->text);
  if (!g_str_equal (name, "h"))
    return;
  level = ks_office_xml_dup (xml, "outline-level", NULL);
  ks_office_text_clear_prefix (walk->text);
  ks_office_text_add_heading (walk->text,
                              level != NULL ? (guint)g_ascii_strtoull (level, NULL, 10) : 1);
}

static void
add_blanks (Walk *walk, KsOfficeXml *xml)
{
  g_autofree char *count = ks_office_xml_dup (xml, "c", NULL);
  guint64 n = count != NULL ? g_ascii_strtoull (count, NULL, 10) : 1;

  for (guint64 i = 0; i < MIN (n, MAX_BLANKS); i++)
    ks_office_text_add (walk->text, " ", 1, FALSE);
}

/* A frame may hold the same picture in several forms: the first that can be shown counts. */
static void
take_picture (Walk *walk, KsOfficeXml *xml)
{
  g_autofree char *target = ks_office_xml_dup (xml, "href", "xlink");
  g_autofree char *part = target != NULL ? ks_office_resolve ("", target) : NULL;

  walk->has_picture = TRUE;
  if (walk->picture == NULL && part != NULL && ks_office_zip_has_picture (walk->office->zip, part))
    walk->picture = g_steal_pointer (&part);
}

static void
end_frame (Walk *walk)
{
  if (walk->has_picture)
    ks_office_text_add_picture (walk->text, walk->picture, walk->alt->str);
  walk->has_picture = FALSE;
  g_clear_pointer (&walk->picture, g_free);
  g_string_truncate (walk->alt, 0);
}

static void
start_item (Walk *walk)
{
  g_autofree char *prefix =
      g_strdup_printf ("%*s- ", (int)(2 * (MIN (MAX (walk->n_list, 1), 8) - 1)), "");

  ks_office_text_break (walk->text);
  ks_office_text_set_prefix (walk->text, prefix);
}

static void
start_slide (Walk *walk)
{
  g_autofree char *marker = g_strdup_printf ("[slide %u]", ++walk->n_slide);

  ks_office_text_gap (walk->text);
  ks_office_text_add_marker (walk->text, marker);
}

static void
start_inside (Walk *walk, KsOfficeXml *xml, const char *name)
{
  if (g_str_equal (name, "s"))
    add_blanks (walk, xml);
  else if (g_str_equal (name, "tab"))
    ks_office_text_add (walk->text, "\t", 1, FALSE);
  else if (g_str_equal (name, "line-break"))
    ks_office_text_add (walk->text, "\n", 1, FALSE);
  else if (g_str_equal (name, "image"))
    take_picture (walk, xml);
  else if (g_str_equal (name, "frame"))
    end_frame (walk); /* of the frame around, should it have had a picture */
  else if (g_str_equal (name, "title") || g_str_equal (name, "desc"))
    walk->in_alt = TRUE;
}

static void
start_cb (KsOfficeXml *xml, const char *name, gpointer user)
{
  static const char *const left_out[] = {"annotation",
                                         "tracked-changes",
                                         "note-citation",
                                         "automatic-styles",
                                         "settings",
                                         "page-thumbnail",
                                         NULL};
  Walk *walk = user;

  if (g_strv_contains (left_out, name))
    ks_office_xml_skip (xml);
  else if (is_line (name))
    start_line (walk, xml, name);
  else if (g_str_equal (name, "list"))
    walk->n_list++;
  else if (g_str_equal (name, "list-item"))
    start_item (walk);
  else if (g_str_equal (name, "table-row"))
    ks_office_text_begin_row (walk->text);
  else if (g_str_equal (name, "table-cell"))
    ks_office_text_begin_cell (walk->text);
  else if (g_str_equal (name, "note-body"))
    ks_office_text_begin_note (walk->text);
  else if (g_str_equal (name, "page"))
    start_slide (walk);
  else
    start_inside (walk, xml, name);
}

static void
end_cb (const char *name, gpointer user)
{
  Walk *walk = user;

  if (is_line (name)) {
    walk->n_line -= walk->n_line > 0;
    ks_office_text_break (walk->text);
  } else if (g_str_equal (name, "list")) {
    walk->n_list -= walk->n_list > 0;
  } else if (g_str_equal (name, "list-item")) {
    ks_office_text_clear_prefix (walk->text);
  } else if (g_str_equal (name, "table-row")) {
    ks_office_text_end_row (walk->text);
  } else if (g_str_equal (name, "note-body")) {
    ks_office_text_end_note (walk->text);
  } else if (g_str_equal (name, "frame")) {
    end_frame (walk);
  } else if (g_str_equal (name, "title") || g_str_equal (name, "desc")) {
    walk->in_alt = FALSE;
  }
}

static void
text_cb (const char *data, gsize n, gpointer user)
{
  Walk *walk = user;

  if (walk->in_alt)
    g_string_append_printf (walk->alt, "%s%s", walk->alt->len > 0 ? " " : "", data);
  else if (walk->n_line > 0)
    ks_office_text_add (walk->text, data, n, TRUE);
}

static gboolean
is_done_cb (gpointer user)
{
  return ((Walk *)user)->text->is_full;
}

/* Every part of an encrypted document but the manifest is noise. */
static void
manifest_cb (KsOfficeXml *xml, const char *name, gpointer user)
{
  gboolean *out_encrypted = user;

  *out_encrypted = *out_encrypted || g_str_equal (name, "encryption-data");
}

static void
check_encryption (KsOffice *office)
{
  static const KsOfficeXmlHandler handler = {.start = manifest_cb};
  GBytes *manifest = ks_office_zip_peek (office->zip, "META-INF/manifest.xml");
  gboolean is_encrypted = FALSE;

  if (manifest != NULL)
    (void)ks_office_xml_walk (manifest, &handler, &is_encrypted);
  if (is_encrypted)
    ks_answer_fault (KS_WIRE_FAULT_CIPHER, 0, 0);
}

gboolean
ks_office_read_odf (KsOffice *office)
{
  static const KsOfficeXmlHandler handler = {start_cb, end_cb, text_cb, is_done_cb};
  static const char mark[] = "application/vnd.oasis.opendocument.";
  GBytes *type = ks_office_zip_peek (office->zip, "mimetype");
  GBytes *content = ks_office_zip_peek (office->zip, "content.xml");
  Walk walk = {.office = office, .text = office->text};
  gsize n = 0;
  const char *data = type != NULL ? g_bytes_get_data (type, &n) : NULL;

  if (data == NULL || n < strlen (mark) || memcmp (data, mark, strlen (mark)) != 0)
    return FALSE;
  check_encryption (office);
  if (content == NULL)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_DOCUMENT, 0);
  walk.alt = g_string_new (NULL);
  if (!ks_office_xml_walk (content, &handler, &walk))
    office->warnings |= KS_WIRE_WARN_PARTS;
  g_string_free (walk.alt, TRUE);
  g_free (walk.picture);
  return TRUE;
}

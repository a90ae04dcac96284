/* ks-office-html.c - HTML and the chapters of EPUB to text, with libxml2's forgiving parser.
 * Its events are taken as they come: no tree is built, nothing is fetched, scripts and styles are
 * left out.  The parser knows the entities of HTML only, which are single characters. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-office.h"

#include "media/ks-loader.h"
#include "media/ks-sniff.h"

#include <libxml/HTMLparser.h>
#include <libxml/parserInternals.h>
#include <string.h>

#define HEAD_BYTES 1024u

typedef struct {
  KsOffice *office;
  KsOfficeText *text;
  const char *base;
  htmlParserCtxtPtr parser;
  guint n_list, n_kept; /* open lists; open elements that keep their white space */
  guint n_skip;         /* open elements of the kind skipped, 0 = nothing is left out */
  char skipped[16];
} Walk;

static gboolean
is_one_of (const char *name, const char *const *list)
{
  return g_strv_contains (list, name);
}

static const char *
find_attribute (const xmlChar **attributes, const char *name)
{
  for (; attributes != NULL && attributes[0] != NULL; attributes += 2)
    if (g_ascii_strcasecmp ((const char *)attributes[0], name) == 0)
      return (const char *)attributes[1];
  return NULL;
}

/* The key of a picture: its part's name, or the whole data URL. */
static void
add_picture (Walk *walk, const char *source, const char *alt)
{
  g_autofree char *part = NULL;

  if (source != NULL && g_ascii_strncasecmp (source, "data:", 5) == 0) {
    ks_office_text_add_picture (walk->text, ks_office_is_picture_url (source) ? source : NULL, alt);
    return;
  }
  if (source != NULL && walk->office->zip != NULL)
    part = ks_office_resolve (walk->base, source);
  if (part != NULL && !ks_office_zip_has_picture (walk->office->zip, part))
    g_clear_pointer (&part, g_free);
  ks_office_text_add_picture (walk->text, part, alt);
}

static void
start_list_item (Walk *walk)
{
  g_autofree char *prefix =
      g_strdup_printf ("%*s- ", (int)(2 * (MIN (MAX (walk->n_list, 1), 8) - 1)), "");

  ks_office_text_break (walk->text);
  ks_office_text_set_prefix (walk->text, prefix);
}

/* A table inside a cell: the outer one is there for the looks, its rows are no rows. */
static void
start_table (Walk *walk)
{
  while (walk->text->n_inline > 0)
    ks_office_text_end_row (walk->text);
  ks_office_text_break (walk->text);
}

static gboolean
is_heading (const char *name)
{
  return name[0] == 'h' && name[1] >= '1' && name[1] <= '6' && name[2] == '\0';
}

static gboolean
is_list (const char *name)
{
  return g_str_equal (name, "ul") || g_str_equal (name, "ol");
}

/* Before and behind an element: 0 = it stands in a line, 1 = its own line, 2 = an empty line. */
static guint
get_space (const Walk *walk, const char *name)
{
  static const char *const wide[] = {"p", "blockquote", "pre", "dl", "hr", "figure", NULL};
  static const char *const narrow[] = {
      "div",  "section", "article", "header", "footer", "main",   "nav",     "aside",
      "ul",   "address", "dt",      "dd",     "form",   "option", "caption", "figcaption",
      "body", "ol",      "table",   "li",     "svg",    NULL};

  if (is_one_of (name, wide))
    return walk->n_list == 0 ? 2 : 1;
  return is_one_of (name, narrow);
}

static void
add_space (Walk *walk, guint space)
{
  if (space > 1)
    ks_office_text_gap (walk->text);
  else if (space > 0)
    ks_office_text_break (walk->text);
}

static void
start_block (Walk *walk, const char *name)
{
  add_space (walk, get_space (walk, name));
  if (is_heading (name))
    ks_office_text_add_heading (walk->text, (guint)(name[1] - '0'));
  else if (g_str_equal (name, "li"))
    start_list_item (walk);
  else if (is_list (name))
    walk->n_list++;
  else if (g_str_equal (name, "table"))
    start_table (walk);
  else if (g_str_equal (name, "tr"))
    ks_office_text_begin_row (walk->text);
  else if (g_str_equal (name, "td") || g_str_equal (name, "th"))
    ks_office_text_begin_cell (walk->text);
  else if (g_str_equal (name, "pre") || g_str_equal (name, "textarea"))
    walk->n_kept++;
}

static void
end_block (Walk *walk, const char *name)
{
  if (is_list (name))
    walk->n_list -= walk->n_list > 0;
  else if (g_str_equal (name, "tr"))
    ks_office_text_end_row (walk->text);
  else if (g_str_equal (name, "pre") || g_str_equal (name, "textarea"))
    walk->n_kept -= walk->n_kept > 0;
  if (is_heading (name) || g_str_equal (name, "li"))
    ks_office_text_clear_prefix (walk->text);
  if (is_heading (name) || g_str_equal (name, "title"))
    ks_office_text_gap (walk->text);
  else
    add_space (walk, get_space (walk, name));
}

static void
start_cb (void *user, const xmlChar *element, const xmlChar **attributes)
{
  static const char *const left_out[] = {"script", "style", "template", "iframe", "object", NULL};
  const char *name = (const char *)element;
  Walk *walk = user;

  if (walk->n_skip > 0) {
    walk->n_skip += g_str_equal (name, walk->skipped);
  } else if (is_one_of (name, left_out) ||
             (g_str_equal (name, "title") && walk->office->zip != NULL)) {
    g_strlcpy (walk->skipped, name, sizeof walk->skipped);
    walk->n_skip = 1;
  } else if (g_str_equal (name, "br")) {
    ks_office_text_add (walk->text, "\n", 1, FALSE);
  } else if (g_str_equal (name, "img")) {
    add_picture (walk, find_attribute (attributes, "src"), find_attribute (attributes, "alt"));
  } else if (g_str_equal (name, "image")) { /* inside a drawing: how covers are often made */
    const char *source = find_attribute (attributes, "xlink:href");

    add_picture (walk, source != NULL ? source : find_attribute (attributes, "href"), NULL);
  } else {
    start_block (walk, name);
  }
  if (walk->text->is_full)
    xmlStopParser (walk->parser);
}

static void
end_cb (void *user, const xmlChar *element)
{
  const char *name = (const char *)element;
  Walk *walk = user;

  if (walk->n_skip > 0)
    walk->n_skip -= g_str_equal (name, walk->skipped);
  else
    end_block (walk, name);
}

static void
text_cb (void *user, const xmlChar *data, int n)
{
  Walk *walk = user;

  if (walk->n_skip == 0 && n > 0)
    ks_office_text_add (walk->text, (const char *)data, (gsize)n, walk->n_kept == 0);
}

/* The encoding that the page itself names, for the case that its bytes do not say it. */
static char *
dup_named_encoding (const guint8 *data, gsize n)
{
  static const char *const marks[] = {"charset=", "encoding="};
  g_autofree char *head = g_strndup ((const char *)data, MIN (n, HEAD_BYTES));
  g_autofree char *lower = g_ascii_strdown (head, -1);

  for (gsize i = 0; i < G_N_ELEMENTS (marks); i++) {
    const char *found = strstr (lower, marks[i]);

    if (found == NULL)
      continue;
    found += strlen (marks[i]);
    found += strspn (found, "\"' ");
    return g_strndup (found, strspn (found, "abcdefghijklmnopqrstuvwxyz0123456789-_"));
  }
  return NULL;
}

void
ks_office_read_html (KsOffice *office, const guint8 *data, gsize n, const char *base)
{
  static const htmlSAXHandler events = {.startElement = start_cb,
                                        .endElement = end_cb,
                                        .characters = text_cb,
                                        .ignorableWhitespace = text_cb,
                                        .cdataBlock = text_cb};
  Walk walk = {.office = office, .text = office->text, .base = base};
  g_autofree char *encoding = dup_named_encoding (data, n), *text = NULL;
  gsize n_text = 0;

  text = ks_text_loader_decode (data, n, encoding, &n_text, &office->warnings);
  if (n_text == 0 || n_text > G_MAXINT)
    return;
  walk.parser = htmlCreateMemoryParserCtxt (text, (int)n_text);
  if (walk.parser == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  htmlCtxtUseOptions (walk.parser, HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                                       HTML_PARSE_NONET | HTML_PARSE_IGNORE_ENC);
  (void)xmlSwitchEncoding (walk.parser, XML_CHAR_ENCODING_UTF8);
  memcpy (walk.parser->sax, &events, sizeof events);
  walk.parser->userData = &walk;
  htmlParseDocument (walk.parser);
  htmlFreeParserCtxt (walk.parser);
  start_table (&walk); /* ends what the page left open */
  ks_office_text_clear_prefix (walk.text);
}

/* --- data URLs --- */

/* At most max_chars of what follows the comma, decoded. (transfer full), NULL: not such a URL */
static GBytes *
decode_url (const char *url, gsize max_chars)
{
  const char *comma = strchr (url, ','), *from;
  guint8 *data;
  gsize n = 0;

  if (g_ascii_strncasecmp (url, "data:", 5) != 0 || comma == NULL)
    return NULL;
  from = comma + 1;
  max_chars = MIN (strlen (from), max_chars);
  data = g_malloc (max_chars + 1);
  for (; *from != '\0' && n < max_chars; from++)
    if (*from == '%' && g_ascii_isxdigit (from[1]) && g_ascii_isxdigit (from[2])) {
      data[n++] = (guint8)(g_ascii_xdigit_value (from[1]) * 16 + g_ascii_xdigit_value (from[2]));
      from += 2;
    } else {
      data[n++] = (guint8)*from;
    }
  if (g_strstr_len (url, comma - url, ";base64") != NULL) {
    guint save = 0;
    int state = 0;

    n = g_base64_decode_step ((const char *)data, n, data, &state, &save);
  }
  return g_bytes_new_take (data, n);
}

gboolean
ks_office_is_picture_url (const char *url)
{
  g_autoptr (GBytes) head = decode_url (url, HEAD_BYTES);
  gsize n = 0;
  const guint8 *data = head != NULL ? g_bytes_get_data (head, &n) : NULL;

  return n > 0 && ks_sniff (data, n)->what == KS_WIRE_IMAGE;
}

GBytes *
ks_office_decode_url (const char *url)
{
  return decode_url (url, G_MAXSIZE - 1);
}

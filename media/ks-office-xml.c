/* ks-office-xml.c - see ks-office-xml.h: a thin layer over libxml2's reader, which keeps one branch
 * of the tree in memory, not the part. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-office-xml.h"

#include <libxml/xmlreader.h>
#include <string.h>

struct _KsOfficeXml {
  xmlTextReaderPtr reader;
  int skip_depth; /* -1 = nothing is left out */
};

char *
ks_office_xml_dup (KsOfficeXml *xml, const char *name, const char *space)
{
  char *found = NULL;
  int more = xmlTextReaderMoveToFirstAttribute (xml->reader);

  for (; more == 1 && found == NULL; more = xmlTextReaderMoveToNextAttribute (xml->reader)) {
    const char *uri = (const char *)xmlTextReaderConstNamespaceUri (xml->reader);

    if (g_strcmp0 ((const char *)xmlTextReaderConstLocalName (xml->reader), name) == 0 &&
        (space == NULL || (uri != NULL && g_str_has_suffix (uri, space))))
      found = g_strdup ((const char *)xmlTextReaderConstValue (xml->reader));
  }
  xmlTextReaderMoveToElement (xml->reader);
  return found;
}

void
ks_office_xml_skip (KsOfficeXml *xml)
{
  xml->skip_depth = xmlTextReaderDepth (xml->reader);
}

static void
start_element (KsOfficeXml *xml, const KsOfficeXmlHandler *handler, gpointer user)
{
  const char *name = (const char *)xmlTextReaderConstLocalName (xml->reader);
  gboolean is_empty = xmlTextReaderIsEmptyElement (xml->reader) == 1;

  handler->start (xml, name, user);
  if (!is_empty)
    return;
  if (xml->skip_depth < 0 && handler->end != NULL)
    handler->end (name, user);
  xml->skip_depth = -1;
}

/* FALSE: a document type. */
static gboolean
take_node (KsOfficeXml *xml, const KsOfficeXmlHandler *handler, gpointer user)
{
  int type = xmlTextReaderNodeType (xml->reader);
  const char *value;

  if (type == XML_READER_TYPE_DOCUMENT_TYPE)
    return FALSE;
  if (xml->skip_depth >= 0) {
    if (type == XML_READER_TYPE_END_ELEMENT && xmlTextReaderDepth (xml->reader) == xml->skip_depth)
      xml->skip_depth = -1;
    return TRUE;
  }
  switch (type) {
  case XML_READER_TYPE_ELEMENT:
    start_element (xml, handler, user);
    break;
  case XML_READER_TYPE_END_ELEMENT:
    if (handler->end != NULL)
      handler->end ((const char *)xmlTextReaderConstLocalName (xml->reader), user);
    break;
  case XML_READER_TYPE_TEXT:
  case XML_READER_TYPE_CDATA:
  case XML_READER_TYPE_SIGNIFICANT_WHITESPACE:
    value = (const char *)xmlTextReaderConstValue (xml->reader);
    if (handler->text != NULL && value != NULL)
      handler->text (value, strlen (value), user);
    break;
  default:
    break;
  }
  return TRUE;
}

gboolean
ks_office_xml_walk (GBytes *part, const KsOfficeXmlHandler *handler, gpointer user)
{
  gsize n = 0;
  const char *data = g_bytes_get_data (part, &n);
  KsOfficeXml xml = {.skip_depth = -1};
  int more = 0;

  if (n == 0 || n > G_MAXINT)
    return FALSE;
  xml.reader = xmlReaderForMemory (data, (int)n, NULL, NULL,
                                   XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
  if (xml.reader == NULL)
    return FALSE;
  while ((more = xmlTextReaderRead (xml.reader)) == 1)
    if (!take_node (&xml, handler, user) || (handler->is_done != NULL && handler->is_done (user)))
      break;
  xmlFreeTextReader (xml.reader);
  return more == 0 || (more == 1 && handler->is_done != NULL && handler->is_done (user));
}

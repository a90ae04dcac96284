/* ks-office-xml.h - walks through one XML part of a document, element by element.
 * Only for the worker.  Nothing is loaded from elsewhere, and a part with a document type is
 * refused: no format that is read here has one, so no entity is ever defined or expanded.
 * Threads: the worker has one. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct _KsOfficeXml KsOfficeXml;

/* Names are local ones, without prefix. */
typedef struct {
  void (*start) (KsOfficeXml *xml, const char *name, gpointer user);
  void (*end) (const char *name, gpointer user);           /* may be NULL */
  void (*text) (const char *data, gsize n, gpointer user); /* may be NULL */
  gboolean (*is_done) (gpointer user);                     /* stop here; may be NULL */
} KsOfficeXmlHandler;

/* FALSE: the part is not well formed, or has a document type; what came before was handled. */
gboolean ks_office_xml_walk (GBytes *part, const KsOfficeXmlHandler *handler, gpointer user);
/* In start: an attribute of the element by its local name; space: the end of its namespace, NULL =
 * any. (transfer full), NULL when there is none */
char *ks_office_xml_dup (KsOfficeXml *xml, const char *name, const char *space);
/* In start: leaves out what is in this element, and its end. */
void ks_office_xml_skip (KsOfficeXml *xml);

G_END_DECLS

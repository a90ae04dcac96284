/* ks-office.h - the readers of the formats that are documents: each writes into a KsOfficeText.
 * Only for the worker.  Pictures get the name of their part as key; those of HTML their whole data
 * URL.  A fault ends the process.  Threads: the worker has one. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-office-text.h"
#include "media/ks-office-zip.h"

G_BEGIN_DECLS

typedef struct {
  KsOfficeZip *zip; /* NULL: an HTML file */
  KsOfficeText *text;
  guint32 warnings; /* KsWireWarning */
} KsOffice;

/* Where a relationship of a part leads. */
typedef struct {
  char *type;   /* a URI; its end names the kind */
  char *target; /* a part's name, NULL: outside of the document */
} KsOfficeLink;

/* The relationships of a part ("" = of the document): id -> KsOfficeLink. (transfer full) */
GHashTable *ks_office_read_links (KsOffice *office, const char *part);
/* The first one whose type ends like this, NULL when there is none. */
const KsOfficeLink *ks_office_find_link (GHashTable *links, const char *type_end);

/* DOCX and PPTX, ODT and ODP, EPUB: FALSE when the archive is nothing of the kind. */
gboolean ks_office_read_ooxml (KsOffice *office);
gboolean ks_office_read_odf (KsOffice *office);
gboolean ks_office_read_epub (KsOffice *office);
/* HTML or XHTML in any encoding; base: its name in the archive, "" for a file of its own. */
void ks_office_read_html (KsOffice *office, const guint8 *data, gsize n, const char *base);

/* The picture in a data URL; is_picture_url looks at its first bytes only. */
gboolean ks_office_is_picture_url (const char *url);
GBytes *ks_office_decode_url (const char *url); /* (transfer full), NULL: no such URL */

/* Paragraphs and pictures of one part of DOCX or PPTX (ks-office-content.c). */
typedef struct {
  GHashTable *links;  /* of the part */
  GHashTable *styles; /* id of a paragraph style -> level of heading + 1, NULL = none */
  gboolean only_body; /* of a slide's notes: not its number, date and picture */
} KsOfficeContent;
void ks_office_read_content (KsOffice *office, GBytes *part, const KsOfficeContent *content);

G_END_DECLS

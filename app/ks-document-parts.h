/* ks-document-parts.h - the text of a PDF or of a document with pictures, cut into what the model
 * gets: stretches of text, and pages or pictures to look at, where they stand.
 * The decoder writes "[page 3]" before each page and "[picture 2: what it shows]" for each picture,
 * and no other line of the text looks like that.  Pure functions.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-prompt-builder.h"
#include "app/ks-reading.h"

G_BEGIN_DECLS

typedef struct {
  gboolean is_picture;
  guint index; /* of a picture: page of the PDF or picture of the document, from 0 */
  gsize at, n; /* of text: bytes of the whole text */
} KsDocumentPart;

/* The parts in reading order, of KsDocumentPart.  sees FALSE: the model is blind, so it gets the
 * text of every page that is not left out, and no pictures.  A picture that is mentioned again is
 * shown once.  (transfer full) */
GArray *ks_document_split (KsAttachmentKind kind, const char *text, const KsReading *reading,
                           gboolean sees);

/* How a PDF is usually read: pages without text as pictures, the others as text.  TRUE when
 * reading changed, which it does not for pages that all have text. */
gboolean ks_document_choose_pages (KsReading *reading, const char *text);
/* All its pages in one way. */
void ks_document_set_pages (KsReading *reading, guint n_pages, KsPageMode mode);
/* Pages "[page N]" of a PDF's text that hold nothing but white space, of guint, from 0.
 * (transfer full) */
GArray *ks_document_list_blank_pages (const char *text);

/* Page, or picture, number index (from 0) of a document. (transfer full) */
typedef KsPicture *(*KsDocumentPictureFunc) (guint index, gpointer user);
/* A PDF or a document with pictures for a message: its parts as above, pictures where they stand,
 * of a document 64 at most. */
void ks_document_add (KsPromptBuilder *builder, KsAttachmentKind kind, const char *name,
                      const char *text, const KsReading *reading, gboolean sees,
                      KsDocumentPictureFunc func, gpointer user);

G_END_DECLS

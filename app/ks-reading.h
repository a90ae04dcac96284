/* ks-reading.h - how an attachment goes to the model: pages of a PDF as text, picture or both,
 * which frames of a video, words that OCR found.
 * Kept with the attachment as words ("pages=ttib frames=count:8"), so that a session reads the same
 * again; what cannot be understood counts as not chosen.  Plain values.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-sampling.h"
#include "storage/ks-attachment.h"

G_BEGIN_DECLS

typedef enum {
  KS_PAGE_TEXT,
  KS_PAGE_PICTURE,
  KS_PAGE_BOTH, /* the picture, then its text */
  KS_PAGE_NONE, /* left out */
  KS_N_PAGE_MODE
} KsPageMode;

typedef struct {
  GByteArray *pages; /* of KsPageMode, one a page; NULL = all as text */
  gboolean has_frames;
  KsMediaSampling sampling; /* of a video, with has_frames */
  guint n_frames;           /* that it gives; 0 = not known */
  gboolean no_pictures;     /* of a document: its text alone */
  gboolean ocr;             /* the text blob is what was recognised in a picture */
} KsReading;

/* NULL or nonsense gives an empty one. (transfer full) */
KsReading *ks_reading_parse (const char *text);
KsReading *ks_reading_copy (const KsReading *reading);
/* NULL when nothing is chosen. (transfer full) */
char *ks_reading_format (const KsReading *reading);
void ks_reading_free (KsReading *reading); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsReading, ks_reading_free)

/* TEXT for pages without a choice. */
KsPageMode ks_reading_get_page (const KsReading *reading, guint page);
/* Makes room for n_pages choices first. */
void ks_reading_set_page (KsReading *reading, guint n_pages, guint page, KsPageMode mode);

G_END_DECLS

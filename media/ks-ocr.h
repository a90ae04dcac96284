/* ks-ocr.h - text in pictures, recognised by Tesseract in the decoder worker.
 * Takes pixels, not files: whatever decoded the picture has ended before.  What comes out may hold
 * errors; users and models are told so, and how sure it is.  Threads: blocks, any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-media.h"

G_BEGIN_DECLS

/* Letters of a page are read well when its longest side has this many pixels (300 an inch on A4);
 * more is slower, not better. */
#define KS_OCR_PAGE_SIDE_PX 3508u

/* Language data are installed; without them ks_ocr_read is an error that says what to install. */
gboolean ks_ocr_is_available (void);
/* Tesseract's names of the languages that are installed. (transfer full) */
GStrv ks_ocr_list_languages (void);
/* English and the language of this locale, as far as they are installed, else the first that is;
 * NULL when there is none. locale: "de_DE.UTF-8". (transfer full) */
char *ks_ocr_dup_languages (const char *locale);

typedef struct {
  char *text;       /* lines; "" when nothing was recognised */
  guint confidence; /* percent, of what is in text; 0 for "" */
  guint n_left_out; /* lines that were too doubtful to be kept */
} KsOcrText;

void ks_ocr_text_free (KsOcrText *text); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsOcrText, ks_ocr_text_free)

/* languages: "deu+eng", NULL = ks_ocr_dup_languages of the environment; options: name and
 * progress (in percent).  (transfer full) */
KsOcrText *ks_ocr_read (KsPixels *pixels, const char *languages, const KsMediaOptions *options,
                        GCancellable *cancellable, GError **error);

G_END_DECLS

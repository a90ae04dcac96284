/* ks-ocr-data.h - where the language data for recognising text in pictures lie, and which there
 * are: files of the distribution, found by their names.  For both sides of the worker.
 * Threads: pure but for looking at folders. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Tesseract's names of languages joined by +, "deu+eng". */
#define KS_OCR_MAX_LANGUAGES 8u

/* The folder, NULL when no language is installed. */
const char *ks_ocr_data_get_folder (void);
/* Letters, digits and _ only, 1 to KS_OCR_MAX_LANGUAGES names. */
gboolean ks_ocr_data_is_list (const char *languages);
/* All of the list are installed. */
gboolean ks_ocr_data_has (const char *languages);
/* What is installed, sorted. (transfer full) */
GStrv ks_ocr_data_list (void);

G_END_DECLS

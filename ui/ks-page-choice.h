/* ks-page-choice.h - how the pages of a document go to the model: as text, as a picture, both, or
 * not at all, for all of them at once or for each page.
 * Signal: "chosen" (guint first, guint last, int mode) when the user changed the pages first to
 * last; their modes are changed already.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-reading.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_PAGE_CHOICE (ks_page_choice_get_type ())
G_DECLARE_FINAL_TYPE (KsPageChoice, ks_page_choice, KS, PAGE_CHOICE, AdwBin)

GtkWidget *ks_page_choice_new (void);

typedef struct {
  gboolean has_text; /* FALSE: the page is a picture or left out */
  KsPageMode mode;
  guint n_token; /* what it costs; 0 = not known */
} KsPageFact;

/* All pages of the document, in order.  The same number of pages as before: the list stays where it
 * was scrolled to. */
void ks_page_choice_set_pages (KsPageChoice *self, const KsPageFact *facts, guint n_page);
KsPageMode ks_page_choice_get_mode (KsPageChoice *self, guint page);
/* FALSE: the model sees no pictures, so that there is nothing to choose; it says so. */
void ks_page_choice_set_can_see (KsPageChoice *self, gboolean can_see);

G_END_DECLS

/* ks-banner.h - a line above the chat that says what is the matter and offers the way out.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

typedef enum { KS_BANNER_INFO, KS_BANNER_BUSY, KS_BANNER_WARNING, KS_BANNER_ERROR } KsBannerKind;

#define KS_TYPE_BANNER (ks_banner_get_type ())
G_DECLARE_FINAL_TYPE (KsBanner, ks_banner, KS, BANNER, GtkWidget)

GtkWidget *ks_banner_new (void);
/* Shows text, announced once; NULL hides the banner. */
void ks_banner_set_text (KsBanner *self, KsBannerKind kind, const char *text);
const char *ks_banner_get_text (KsBanner *self); /* NULL when hidden */
/* The button at its end: label with mnemonic, NULL = none; action as in a menu ("win.model"). */
void ks_banner_set_button (KsBanner *self, const char *label, const char *action);

G_END_DECLS

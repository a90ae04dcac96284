/* ks-message-body.h - the text of one message: a widget for each block, of a long one only the
 * beginning until more is asked for.
 * While the text grows only the widgets of changed blocks are touched.  What was read of the text
 * (KsMarkdown) stays with the message, so that showing it again reads nothing.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-message.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* Lines that a message shows before "Show More". */
#define KS_MESSAGE_BODY_LINES 60u

#define KS_TYPE_MESSAGE_BODY (ks_message_body_get_type ())
G_DECLARE_FINAL_TYPE (KsMessageBody, ks_message_body, KS, MESSAGE_BODY, GtkWidget)

GtkWidget *ks_message_body_new (void);
/* NULL empties it.  Does not follow changes by itself: call ks_message_body_update then. */
void ks_message_body_set_message (KsMessageBody *self, KsMessage *message);
void ks_message_body_update (KsMessageBody *self);
guint ks_message_body_get_n_blocks (KsMessageBody *self);            /* that are shown */
GtkWidget *ks_message_body_get_block (KsMessageBody *self, guint i); /* (transfer none) */
/* Whether "Show More" is there. */
gboolean ks_message_body_has_more (KsMessageBody *self);
void ks_message_body_show_more (KsMessageBody *self);

G_END_DECLS

/* ks-message-status.h - the line below a message that did not simply end: it is being written, was
 * stopped, broke off, failed - and what can be done then.  Hidden when there is nothing to say.
 * Signals: "regenerate", "continue".  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-message.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_MESSAGE_STATUS (ks_message_status_get_type ())
G_DECLARE_FINAL_TYPE (KsMessageStatus, ks_message_status, KS, MESSAGE_STATUS, GtkWidget)

GtkWidget *ks_message_status_new (void);
/* Whether ks_message_status_show would show anything. */
gboolean ks_message_status_is_needed (KsMessage *message, gboolean is_last, gboolean can_change);
void ks_message_status_show (KsMessageStatus *self, KsMessage *message, gboolean is_last,
                             gboolean can_change);

G_END_DECLS

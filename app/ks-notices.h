/* ks-notices.h - what a user is told beside an answer, where no name and no number is part of it:
 * the window knows these sentences and shows them in the user's language, or says them itself.
 * Threads: any, constant. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

/* Where a model without eyes gets pictures. */
#define KS_NOTICE_BLIND                                                                            \
  "This model cannot see pictures: they are stored and shown, and the model is told their names."
/* What was chosen to stay no longer fits, or only in part. */
#define KS_NOTICE_PINS                                                                             \
  "Not all that you chose to keep in memory fits the memory target: raise it, or let something "   \
  "fade."
#define KS_NOTICE_SCARCE                                                                           \
  "This computer is short of memory: what was kept of other conversations went to the disk, and "  \
  "returning to one may take longer."
#define KS_NOTICE_UNREAD                                                                           \
  "Stopped before the message was read: the model does not know it. Continue reads it."

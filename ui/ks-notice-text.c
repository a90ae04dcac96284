/* ks-notice-text.c - see ks-notice-text.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-notice-text.h"

#include "app/ks-notices.h"

#include <glib/gi18n.h>

static const struct {
  const char *notice, *sentence;
} texts[] = {
    {KS_NOTICE_PINS, N_ ("Not all that you chose to keep in memory fits the memory target: raise "
                         "it, or let something fade.")},
    {KS_NOTICE_SCARCE, N_ ("This computer is short of memory: what was kept of other conversations "
                           "went to the disk, and returning to one may take longer.")},
    {KS_NOTICE_UNREAD, N_ ("Stopped before the message was read: the model does not know it. "
                           "Continue reads it.")},
};

const char *
ks_notice_text (const char *notice)
{
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    if (g_strcmp0 (notice, texts[i].notice) == 0)
      return _ (texts[i].sentence);
  return notice;
}

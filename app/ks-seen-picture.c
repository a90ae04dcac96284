/* ks-seen-picture.c - see ks-seen-picture.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-seen-picture.h"

KsSeenPicture *
ks_seen_picture_new (guint turn, guint number, const KsPicture *picture)
{
  KsSeenPicture *seen = g_new0 (KsSeenPicture, 1);

  g_return_val_if_fail (picture != NULL, seen);
  seen->turn = turn;
  seen->number = number;
  seen->source = picture->source;
  seen->index = picture->index;
  seen->n_frame = picture->n_own_frame;
  seen->name = g_strdup (picture->name);
  seen->hash = g_strdup (picture->hash);
  return seen;
}

void
ks_seen_picture_free (KsSeenPicture *seen)
{
  if (seen == NULL)
    return;
  g_free (seen->name);
  g_free (seen->hash);
  g_free (seen);
}

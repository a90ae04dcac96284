/* ks-seen-picture.h - which picture a model has read: its place in the conversation, and what it
 * is. Threads: a copy belongs to its holder; not changed. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-picture.h"

G_BEGIN_DECLS

typedef struct {
  guint turn, number; /* number: within the turn, from 1 */
  KsPictureSource source;
  guint index;   /* page; frame, of a pair the first */
  guint n_frame; /* FRAME: 1, of a pair 2 */
  char *name, *hash;
} KsSeenPicture;

KsSeenPicture *ks_seen_picture_new (guint turn, guint number, const KsPicture *picture);
void ks_seen_picture_free (KsSeenPicture *seen); /* NULL is allowed */

G_END_DECLS

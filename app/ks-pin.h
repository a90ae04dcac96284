/* ks-pin.h - what a user asked to keep in a conversation's memory: a turn, or the pictures of one
 * file in it.
 * A plain value.  Threads: a copy belongs to its holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
  guint turn;       /* from 0 */
  char *hash;       /* of the file's content; NULL = the whole turn */
  gboolean refused; /* there was no room for it when it was read */
} KsPin;

/* Of KsPin; those in it are freed with it. */
GPtrArray *ks_pin_list_new (void);
/* It is there, and was not refused. */
gboolean ks_pin_list_holds (const GPtrArray *pins, guint turn, const char *hash);
/* FALSE: it was so before. */
gboolean ks_pin_list_set (GPtrArray *pins, guint turn, const char *hash, gboolean pinned);
/* Forgets those of turns from number turn on. */
void ks_pin_list_cut (GPtrArray *pins, guint turn);
GPtrArray *ks_pin_list_copy (const GPtrArray *pins);

G_END_DECLS

/* ks-turn-hash.h - what a conversation's memory stands for, as a chain of SHA-256: a link for what
 * stands in front of everything, one for every message that was read, one for every answer.  Equal
 * links, equal words in equal order: the same memory, as far as models with these weights go.
 * Threads: any.  Source: docs/formats/snapshot.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-turn-text.h"
#include "engine/evict.h"
#include "engine/snapshot.h"

G_BEGIN_DECLS

typedef struct {
  guint8 bytes[KS_SNAPSHOT_HASH_BYTES];
} KsTurnHash;

/* Of models, gates and towers by the hashes of their files; each may be NULL. */
void ks_turn_hash_weights (const char *model, const char *gate, const char *mmproj,
                           KsTurnHash *out);
/* In front of the first message: system text (NULL = none), chat format, how entries go. */
void ks_turn_hash_begin (const KsTurnHash *weights, const char *system, const char *format,
                         const ks_evict_params *evict, KsTurnHash *out);
/* Behind before, the turn's message with its pictures. */
void ks_turn_hash_ask (const KsTurnHash *before, const KsTurnText *turn, KsTurnHash *out);
/* Behind a message, its answer. */
void ks_turn_hash_answer (const KsTurnHash *asked, const char *answer, KsTurnHash *out);
/* The same memory with what is pinned in it: words (of char*), sorted; content itself for none. */
void ks_turn_hash_pins (const KsTurnHash *content, const GPtrArray *words, KsTurnHash *out);
gboolean ks_turn_hash_equal (const KsTurnHash *a, const KsTurnHash *b);
/* 64 hex digits. (transfer full) */
char *ks_turn_hash_format (const KsTurnHash *hash);

G_END_DECLS

/* chat-template-internal.h - the text of a conversation while it is laid out, shared by
 * chat-template.c (messages) and chat-visual.c (pictures inside them). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/chat-template.h"

KS_BEGIN_DECLS

/* A growing text with one mark a byte (KS_MARK_*); a view is one byte of KS_MARK_VISUAL. */
typedef struct ks_chat_layout {
  ks_alloc *alloc;
  const char *bos; /* text of BOS, or "" */
  size_t n_bos;
  char *text;
  unsigned char *marks;
  size_t n, capacity;
  ks_vision_family family; /* of the pictures */
  ks_chat_slots *slots;    /* one more for every view; NULL: pictures are refused */
  uint32_t message;        /* index of the message at work */
} ks_chat_layout;

/* chat-template.c */
KS_CHECK ks_status ks_chat_append(ks_chat_layout *l, const char *text, size_t n, unsigned mark,
                                  ks_error *err);

/* chat-visual.c */
/* Whether the visuals of a message can be laid out. */
KS_CHECK ks_status ks_chat_check_visuals(const ks_chat_layout *l, const ks_chat_message *m,
                                         ks_error *err);
/* Appends visual i of a message with its frame. */
KS_CHECK ks_status ks_chat_append_visual(ks_chat_layout *l, const ks_chat_message *m, uint32_t i,
                                         ks_error *err);
/* Gives every slot from first_slot on as many tokens as it needs, in place of the one
 * KS_TOKEN_NONE that stands for it behind ids[first_id]. */
KS_CHECK ks_status ks_chat_expand(ks_token_list *ids, size_t first_id, ks_chat_slots *slots,
                                  size_t first_slot, ks_error *err);

KS_END_DECLS

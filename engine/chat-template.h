/* chat-template.h - known chat formats as tables, recognised from the model's own template text.
 * A template is never executed.  Text of users and files is encoded with special parsing off:
 * "<|im_end|>" in a document stays text; only the frame around it carries control tokens.
 * Pictures stand inside a message's text, framed as their family of vision models wants it.
 * Threads: constant tables.  Source: docs/formats/chat-templates.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/tokenizer.h"
#include "engine/vision-prep.h"

KS_BEGIN_DECLS

typedef enum ks_role { KS_ROLE_SYSTEM, KS_ROLE_USER, KS_ROLE_ASSISTANT } ks_role;

/* A picture inside a message, or one frame of a video (Qwen: one pair of frames).  Sizes as in its
 * ks_vision_plan. */
typedef struct ks_chat_visual {
  size_t at; /* byte of the text before which it stands, n_bytes = behind it; not falling */
  uint32_t tile_rows, tile_cols; /* views that are tiles, in raster order */
  bool has_overview;             /* the whole picture once more, as the last view */
  uint32_t n_view;               /* 1, or tile_rows * tile_cols and the overview */
  uint32_t view_tok;             /* visual tokens of each view */
  uint32_t video;                /* 0 = a picture; neighbours with one number are one video */
  double time_s;                 /* of a frame (a pair: its middle) in the video, not falling */
} ks_chat_visual;

typedef struct ks_chat_message {
  ks_role role;
  const char *text; /* UTF-8, untrusted */
  size_t n_bytes;
  const ks_chat_visual *visuals; /* [n_visual]; in messages of the user only */
  uint32_t n_visual;
} ks_chat_message;

/* Where the tokens of one view stand: ids[first] .. ids[first + n_tok - 1] of the whole list are
 * KS_TOKEN_NONE.  follows and t_shift are those of its ks_visual_run. */
typedef struct ks_chat_slot {
  uint32_t first, n_tok;
  uint32_t message, visual, view; /* indices in the call's messages, in its visuals and views */
  bool follows;
  uint32_t t_shift;
} ks_chat_slot;

/* A growable array of slots owned by the caller. */
typedef struct ks_chat_slots {
  ks_alloc *alloc;
  ks_chat_slot *items;
  size_t n, capacity;
} ks_chat_slots;

void ks_chat_slots_init(ks_chat_slots *slots, ks_alloc *a);
void ks_chat_slots_done(ks_chat_slots *slots);

typedef struct ks_chat_template ks_chat_template; /* an entry of the constant table */

/* Recognises the format from tokenizer.chat_template and general.architecture of g.
 * *out_is_fallback tells that nothing matched and ChatML is used instead: the caller states that to
 * the user. */
const ks_chat_template *ks_chat_template_detect(const ks_gguf *g, bool *out_is_fallback);
/* By its name ("chatml", "smollm2", "qwen2.5", "gemma3", ...), or NULL. */
const ks_chat_template *ks_chat_template_find(const char *name);
const char *ks_chat_template_get_name(const ks_chat_template *tmpl);

/* Options of rendering. */
#define KS_CHAT_FIRST 1u    /* the first message of a conversation: BOS and default system turn */
#define KS_CHAT_GENERATE 2u /* end with the opening of the assistant's turn */
#define KS_CHAT_NO_THINKING 4u /* Qwen3: open the assistant's turn with an empty thought */

/* Appends the ids of the messages, which have no visuals (KS_ERR_ARG).  Incremental use renders the
 * new messages of each turn only:
 * after an answer the caller appends what closes it with ks_chat_encode_close (ids that the model
 * has already produced, such as the terminator, are passed as last_id and not repeated). */
KS_CHECK ks_status ks_chat_encode(const ks_chat_template *tmpl, const ks_tokenizer *tok,
                                  const ks_chat_message *messages, size_t n, uint32_t options,
                                  ks_token_list *out, ks_error *err);
KS_CHECK ks_status ks_chat_encode_close(const ks_chat_template *tmpl, const ks_tokenizer *tok,
                                        ks_token last_id, ks_token_list *out, ks_error *err);

/* ks_chat_encode with visuals of a family: appends KS_TOKEN_NONE for each of their tokens, with the
 * family's frame around them, and one slot a view.  Videos: the Qwen 2 families put all frames of
 * one into one frame, times into positions; the others give each frame its time in words.
 * KS_ERR_ARG: visuals outside a user's message, places or times that fall, views that do not add
 * up. */
KS_CHECK ks_status ks_chat_encode_visual(const ks_chat_template *tmpl, ks_vision_family family,
                                         const ks_tokenizer *tok, const ks_chat_message *messages,
                                         size_t n, uint32_t options, ks_token_list *out,
                                         ks_chat_slots *out_slots, ks_error *err);
/* First token of the family's frames that the vocabulary lacks, or NULL: pictures then cannot be
 * put into a conversation. */
const char *ks_chat_find_missing_token(ks_vision_family family, const ks_tokenizer *tok);

/* Messages without visuals as text with the control tokens spelled out; for `inspect` and tests.
 * ks_mem_free. */
KS_CHECK ks_status ks_chat_render(const ks_chat_template *tmpl, ks_alloc *a,
                                  const ks_chat_message *messages, size_t n, uint32_t options,
                                  char **out_text, size_t *out_n, ks_error *err);

KS_END_DECLS

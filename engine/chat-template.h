/* chat-template.h - known chat formats as tables, recognised from the model's own template text.
 * A template is never executed.  Text of users and files is encoded with special parsing off:
 * "<|im_end|>" in a document stays text; only the frame around it carries control tokens.
 * Threads: constant tables.  Source: docs/formats/chat-templates.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/tokenizer.h"

KS_BEGIN_DECLS

typedef enum ks_role { KS_ROLE_SYSTEM, KS_ROLE_USER, KS_ROLE_ASSISTANT } ks_role;

typedef struct ks_chat_message {
  ks_role role;
  const char *text; /* UTF-8, untrusted */
  size_t n_bytes;
} ks_chat_message;

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

/* Appends the ids of the messages.  Incremental use renders the new messages of each turn only:
 * after an answer the caller appends what closes it with ks_chat_encode_close (ids that the model
 * has already produced, such as the terminator, are passed as last_id and not repeated). */
KS_CHECK ks_status ks_chat_encode(const ks_chat_template *tmpl, const ks_tokenizer *tok,
                                  const ks_chat_message *messages, size_t n, uint32_t options,
                                  ks_token_list *out, ks_error *err);
KS_CHECK ks_status ks_chat_encode_close(const ks_chat_template *tmpl, const ks_tokenizer *tok,
                                        ks_token last_id, ks_token_list *out, ks_error *err);

/* The same as text with the control tokens spelled out; for `inspect` and tests.  ks_mem_free. */
KS_CHECK ks_status ks_chat_render(const ks_chat_template *tmpl, ks_alloc *a,
                                  const ks_chat_message *messages, size_t n, uint32_t options,
                                  char **out_text, size_t *out_n, ks_error *err);

KS_END_DECLS

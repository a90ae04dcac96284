/* ks-prompt-builder.h - a user's words and attached documents to the text of one message.
 * Pictures that the model sees stand where they were added; they are no part of the text.
 * Each document stands in a frame of its own, the question last, where small models look for it:
 *   Document NAME:
 *   ...text...
 *
 *   question
 * The result is untrusted text: it is encoded with special parsing off.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-turn-text.h"

G_BEGIN_DECLS

typedef struct _KsPromptBuilder KsPromptBuilder;

KsPromptBuilder *ks_prompt_builder_new (void);
void ks_prompt_builder_free (KsPromptBuilder *builder); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsPromptBuilder, ks_prompt_builder_free)

/* name loses line breaks and is cut to 120 characters; text is UTF-8. */
void ks_prompt_builder_add_document (KsPromptBuilder *builder, const char *name, const char *text);
/* Words that OCR found in a picture, and said so. */
void ks_prompt_builder_add_recognised (KsPromptBuilder *builder, const char *name,
                                       const char *text);
/* A picture that the model sees, here; in the middle of a document add its text in parts. */
void ks_prompt_builder_add_seen (KsPromptBuilder *builder, KsPicture *take_picture);
/* Text as it is: a part of a document with pictures in it. */
void ks_prompt_builder_begin_document (KsPromptBuilder *builder, const char *name);
void ks_prompt_builder_add_part (KsPromptBuilder *builder, const char *text, gsize n);
void ks_prompt_builder_end_document (KsPromptBuilder *builder);
/* A line that a picture or a video is there which the model cannot see. */
void ks_prompt_builder_add_picture (KsPromptBuilder *builder, const char *name);
void ks_prompt_builder_add_video (KsPromptBuilder *builder, const char *name);
/* The same for one whose file cannot be read any more; its name goes to the turn's lost ones. */
void ks_prompt_builder_add_lost (KsPromptBuilder *builder, const char *what, const char *name);
/* That line. (transfer full) */
char *ks_prompt_make_lost_line (const char *what, const char *name);
guint ks_prompt_builder_get_n_documents (KsPromptBuilder *builder);
/* The message with its pictures and no answer; what was added is used up. (transfer full) */
KsTurnText *ks_prompt_builder_take_turn (KsPromptBuilder *builder, const char *question);
/* Its text alone. (transfer full) */
char *ks_prompt_builder_take_message (KsPromptBuilder *builder, const char *question);

G_END_DECLS

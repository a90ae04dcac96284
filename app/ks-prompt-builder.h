/* ks-prompt-builder.h - a user's words and attached documents to the text of one message.
 * Each document stands in a frame of its own, the question last, where small models look for it:
 *   Document NAME:
 *   ...text...
 *
 *   question
 * The result is untrusted text: it is encoded with special parsing off.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct _KsPromptBuilder KsPromptBuilder;

KsPromptBuilder *ks_prompt_builder_new (void);
void ks_prompt_builder_free (KsPromptBuilder *builder); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsPromptBuilder, ks_prompt_builder_free)

/* name loses line breaks and is cut to 120 characters; text is UTF-8. */
void ks_prompt_builder_add_document (KsPromptBuilder *builder, const char *name, const char *text);
/* A line that a picture is there which the model cannot see. */
void ks_prompt_builder_add_picture (KsPromptBuilder *builder, const char *name);
guint ks_prompt_builder_get_n_documents (KsPromptBuilder *builder);
/* The message; the documents are used up. (transfer full) */
char *ks_prompt_builder_take_message (KsPromptBuilder *builder, const char *question);

G_END_DECLS

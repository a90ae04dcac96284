/* ks-prompt-builder.c - see ks-prompt-builder.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-prompt-builder.h"

#include <string.h>

#define MAX_NAME_CHARS 120

struct _KsPromptBuilder {
  GString *documents;
  GPtrArray *pictures; /* of KsPicture */
  GPtrArray *lost;     /* of char* */
  guint n_document;
};

KsPromptBuilder *
ks_prompt_builder_new (void)
{
  KsPromptBuilder *builder = g_new0 (KsPromptBuilder, 1);

  builder->documents = g_string_new (NULL);
  builder->pictures = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_picture_unref);
  builder->lost = g_ptr_array_new_with_free_func (g_free);
  return builder;
}

void
ks_prompt_builder_free (KsPromptBuilder *builder)
{
  if (builder == NULL)
    return;
  g_string_free (builder->documents, TRUE);
  g_ptr_array_unref (builder->pictures);
  g_ptr_array_unref (builder->lost);
  g_free (builder);
}

/* A file name is as untrusted as a file: it must not be able to look like more than a name. */
static char *
clean_name (const char *name)
{
  g_autofree char *valid = g_utf8_make_valid (name, -1);
  GString *out = g_string_new (NULL);
  glong n = 0;

  for (const char *p = valid; *p != '\0' && n < MAX_NAME_CHARS; p = g_utf8_next_char (p), n++) {
    gunichar c = g_utf8_get_char (p);

    if (g_unichar_isprint (c))
      g_string_append_unichar (out, c);
    else
      g_string_append_c (out, ' ');
  }
  return g_string_free (out, FALSE);
}

static void
begin (KsPromptBuilder *builder, const char *what, const char *name)
{
  g_autofree char *clean = clean_name (name);

  g_string_append_printf (builder->documents, "%s %s:\n", what, clean);
  builder->n_document++;
}

void
ks_prompt_builder_begin_document (KsPromptBuilder *builder, const char *name)
{
  g_return_if_fail (builder != NULL && name != NULL);
  begin (builder, "Document", name);
}

void
ks_prompt_builder_add_part (KsPromptBuilder *builder, const char *text, gsize n)
{
  g_return_if_fail (builder != NULL && text != NULL);
  g_string_append_len (builder->documents, text, (gssize)n);
}

void
ks_prompt_builder_end_document (KsPromptBuilder *builder)
{
  g_return_if_fail (builder != NULL && builder->documents->len > 0);
  if (builder->documents->str[builder->documents->len - 1] != '\n')
    g_string_append_c (builder->documents, '\n');
  g_string_append_c (builder->documents, '\n');
}

/* A document without a word still ends its own line. */
static void
add_whole (KsPromptBuilder *builder, const char *text)
{
  g_string_append (builder->documents, text);
  if (text[0] == '\0')
    g_string_append_c (builder->documents, '\n');
  ks_prompt_builder_end_document (builder);
}

void
ks_prompt_builder_add_document (KsPromptBuilder *builder, const char *name, const char *text)
{
  g_return_if_fail (builder != NULL && name != NULL && text != NULL);
  begin (builder, "Document", name);
  add_whole (builder, text);
}

void
ks_prompt_builder_add_recognised (KsPromptBuilder *builder, const char *name, const char *text)
{
  g_return_if_fail (builder != NULL && name != NULL && text != NULL);
  begin (builder, "Text recognised in", name);
  add_whole (builder, text);
}

void
ks_prompt_builder_add_seen (KsPromptBuilder *builder, KsPicture *take_picture)
{
  g_return_if_fail (builder != NULL && take_picture != NULL);
  take_picture->at = builder->documents->len;
  g_ptr_array_add (builder->pictures, take_picture);
}

static void
add_unseen (KsPromptBuilder *builder, const char *what, const char *pronoun, const char *name)
{
  g_autofree char *clean = clean_name (name);

  g_string_append_printf (builder->documents, "%s %s is attached; you cannot see %s.\n\n", what,
                          clean, pronoun);
  builder->n_document++;
}

void
ks_prompt_builder_add_picture (KsPromptBuilder *builder, const char *name)
{
  g_return_if_fail (builder != NULL && name != NULL);
  add_unseen (builder, "Picture", "pictures", name);
}

void
ks_prompt_builder_add_video (KsPromptBuilder *builder, const char *name)
{
  g_return_if_fail (builder != NULL && name != NULL);
  add_unseen (builder, "Video", "videos", name);
}

char *
ks_prompt_make_lost_line (const char *what, const char *name)
{
  g_autofree char *clean = clean_name (name);

  return g_strdup_printf ("%s %s was attached; it cannot be read any more.\n\n", what, clean);
}

void
ks_prompt_builder_add_lost (KsPromptBuilder *builder, const char *what, const char *name)
{
  g_autofree char *line = NULL;

  g_return_if_fail (builder != NULL && what != NULL && name != NULL);
  line = ks_prompt_make_lost_line (what, name);
  g_string_append (builder->documents, line);
  g_ptr_array_add (builder->lost, g_strdup (name));
  builder->n_document++;
}

guint
ks_prompt_builder_get_n_documents (KsPromptBuilder *builder)
{
  g_return_val_if_fail (builder != NULL, 0);
  return builder->n_document;
}

KsTurnText *
ks_prompt_builder_take_turn (KsPromptBuilder *builder, const char *question)
{
  KsTurnText *turn;

  g_return_val_if_fail (builder != NULL && question != NULL, NULL);
  g_string_append (builder->documents, question);
  turn = ks_turn_text_new (builder->documents->str, NULL, FALSE);
  g_string_truncate (builder->documents, 0);
  g_ptr_array_extend_and_steal (turn->pictures, g_steal_pointer (&builder->pictures));
  g_ptr_array_extend_and_steal (turn->lost, g_steal_pointer (&builder->lost));
  builder->lost = g_ptr_array_new_with_free_func (g_free);
  builder->pictures = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_picture_unref);
  builder->n_document = 0;
  return turn;
}

char *
ks_prompt_builder_take_message (KsPromptBuilder *builder, const char *question)
{
  g_autoptr (KsTurnText) turn = ks_prompt_builder_take_turn (builder, question);

  return turn != NULL ? g_steal_pointer (&turn->message) : NULL;
}

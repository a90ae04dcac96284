/* ks-prompt-builder.c - see ks-prompt-builder.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-prompt-builder.h"

#include <string.h>

#define MAX_NAME_CHARS 120

struct _KsPromptBuilder {
  GString *documents;
  guint n_document;
};

KsPromptBuilder *
ks_prompt_builder_new (void)
{
  KsPromptBuilder *builder = g_new0 (KsPromptBuilder, 1);

  builder->documents = g_string_new (NULL);
  return builder;
}

void
ks_prompt_builder_free (KsPromptBuilder *builder)
{
  if (builder == NULL)
    return;
  g_string_free (builder->documents, TRUE);
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

void
ks_prompt_builder_add_document (KsPromptBuilder *builder, const char *name, const char *text)
{
  g_autofree char *clean = NULL;

  g_return_if_fail (builder != NULL && name != NULL && text != NULL);
  clean = clean_name (name);
  g_string_append_printf (builder->documents, "Document %s:\n", clean);
  g_string_append (builder->documents, text);
  if (text[0] == '\0' || text[strlen (text) - 1] != '\n')
    g_string_append_c (builder->documents, '\n');
  g_string_append_c (builder->documents, '\n');
  builder->n_document++;
}

void
ks_prompt_builder_add_picture (KsPromptBuilder *builder, const char *name)
{
  g_autofree char *clean = NULL;

  g_return_if_fail (builder != NULL && name != NULL);
  clean = clean_name (name);
  g_string_append_printf (builder->documents,
                          "Picture %s is attached; you cannot see pictures.\n\n", clean);
  builder->n_document++;
}

guint
ks_prompt_builder_get_n_documents (KsPromptBuilder *builder)
{
  g_return_val_if_fail (builder != NULL, 0);
  return builder->n_document;
}

char *
ks_prompt_builder_take_message (KsPromptBuilder *builder, const char *question)
{
  GString *message;

  g_return_val_if_fail (builder != NULL && question != NULL, NULL);
  message = builder->documents;
  builder->documents = g_string_new (NULL);
  builder->n_document = 0;
  g_string_append (message, question);
  return g_string_free (message, FALSE);
}

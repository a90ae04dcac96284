/* eval-template.c - see eval-template.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-template.h"

#include "app/ks-error.h"

#include <string.h>

struct _KsEvalTemplate {
  char *name, *text, *hash;
};

void
ks_eval_template_free (KsEvalTemplate *tmpl)
{
  if (tmpl == NULL)
    return;
  g_free (tmpl->name);
  g_free (tmpl->text);
  g_free (tmpl->hash);
  g_free (tmpl);
}

const char *
ks_eval_template_get_name (const KsEvalTemplate *tmpl)
{
  return tmpl->name;
}

const char *
ks_eval_template_get_hash (const KsEvalTemplate *tmpl)
{
  return tmpl->hash;
}

/* --- loading --- */

/* "[name]" alone on its line. (transfer full) */
static char *
parse_section (const char *line)
{
  g_autofree char *text = g_strstrip (g_strdup (line));
  gsize n = strlen (text);

  if (n < 3 || text[0] != '[' || text[n - 1] != ']')
    return NULL;
  for (gsize i = 1; i + 1 < n; i++)
    if (!g_ascii_isalnum (text[i]) && text[i] != '-')
      return NULL;
  return g_strndup (text + 1, n - 2);
}

static KsEvalTemplate *
template_new (const char *name, GString *text)
{
  KsEvalTemplate *tmpl = g_new0 (KsEvalTemplate, 1);

  while (text->len > 0 && text->str[text->len - 1] == '\n')
    g_string_truncate (text, text->len - 1);
  tmpl->name = g_strdup (name);
  tmpl->text = g_strdup (text->str);
  tmpl->hash = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text->str, -1);
  return tmpl;
}

KsEvalTemplate *
ks_eval_template_load (const char *path, const char *name, GError **error)
{
  g_autofree char *content = NULL, *found = NULL;
  g_auto (GStrv) lines = NULL;
  g_autoptr (GString) text = g_string_new (NULL), names = g_string_new (NULL);
  gboolean inside = FALSE;

  if (!g_file_get_contents (path, &content, NULL, error))
    return NULL;
  if (!g_utf8_validate (content, -1, NULL)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT, "%s is no UTF-8 text", path);
    return NULL;
  }
  lines = g_strsplit (content, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++) {
    g_autofree char *section = parse_section (lines[i]);

    if (section == NULL) {
      if (inside)
        g_string_append_printf (text, "%s\n", lines[i]);
      continue;
    }
    g_string_append_printf (names, "%s%s", names->len > 0 ? ", " : "", section);
    inside = found == NULL && (name == NULL || strcmp (name, section) == 0);
    if (inside)
      found = g_steal_pointer (&section);
  }
  if (found != NULL)
    return template_new (found, text);
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "%s has no wording '%s': choose one of %s with --template", path,
               name != NULL ? name : "", names->str);
  return NULL;
}

/* --- filling in --- */

typedef struct {
  const KsEvalItem *item;
  const KsEvalTurn *turn;
  GString *out;
  gsize question_at, image_at;
} Filling;

static gboolean
fill_name (Filling *filling, const char *name, GError **error)
{
  const char *text;

  if (strcmp (name, "image") == 0) {
    filling->image_at = filling->out->len;
    return TRUE;
  }
  if (strcmp (name, "question") == 0) {
    filling->question_at = filling->out->len;
    g_string_append (filling->out, filling->turn->text);
    return TRUE;
  }
  text = g_hash_table_lookup (filling->item->fields, name);
  if (text == NULL) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "the template asks for {%s}, which item %s of %s does not have", name,
                 filling->item->id, filling->item->bench);
    return FALSE;
  }
  g_string_append (filling->out, text);
  return TRUE;
}

/* A name in braces; "\boxed{}" and other braces are text. (transfer full) */
static char *
parse_name (const char *p)
{
  gsize n = 1;

  if (*p != '{')
    return NULL;
  while (g_ascii_islower (p[n]) || p[n] == '-')
    n++;
  return n > 1 && p[n] == '}' ? g_strndup (p + 1, n - 1) : NULL;
}

static gboolean
fill_turn (const KsEvalTemplate *tmpl, const KsEvalItem *item, KsEvalTurn *turn, GError **error)
{
  g_autoptr (GString) out = g_string_new (NULL);
  Filling filling = {.item = item, .turn = turn, .out = out};

  for (const char *p = tmpl->text; *p != '\0';) {
    g_autofree char *name = parse_name (p);

    if (name == NULL) {
      g_string_append_c (out, *p++);
      continue;
    }
    if (!fill_name (&filling, name, error))
      return FALSE;
    p += strlen (name) + 2;
  }
  for (guint i = 0; i < turn->pictures->len; i++) {
    KsEvalPicture *picture = g_ptr_array_index (turn->pictures, i);

    picture->at = picture->in_question ? picture->at + filling.question_at : filling.image_at;
  }
  g_free (turn->text);
  turn->text = g_strdup (out->str);
  return TRUE;
}

gboolean
ks_eval_template_fill (const KsEvalTemplate *tmpl, KsEvalItem *item, GError **error)
{
  for (guint i = 0; i < item->turns->len; i++) {
    KsEvalTurn *turn = g_ptr_array_index (item->turns, i);

    if (turn->reply == NULL && !fill_turn (tmpl, item, turn, error))
      return FALSE;
  }
  return TRUE;
}

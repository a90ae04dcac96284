/* eval-tsv.c - see eval-tsv.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-tsv.h"

#include "app/ks-error.h"

#include <string.h>

#define MAX_COLUMNS 256u
#define MIN_BASE64 32u /* shorter runs of such letters are words */

/* A field as it stands in the file. */
typedef struct {
  gsize at, n;
} Field;

struct _KsEvalTsv {
  char *path;
  GBytes *bytes;
  const char *text;
  gsize n, at;
  guint line, next_line;
  GPtrArray *columns; /* names */
  GArray *fields;     /* of Field: the row */
  char separator;
};

void
ks_eval_tsv_free (KsEvalTsv *tsv)
{
  if (tsv == NULL)
    return;
  g_clear_pointer (&tsv->bytes, g_bytes_unref);
  g_ptr_array_unref (tsv->columns);
  g_array_unref (tsv->fields);
  g_free (tsv->path);
  g_free (tsv);
}

static gboolean
fail (const KsEvalTsv *tsv, const char *what, GError **error)
{
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "line %u of %s %s", tsv->line, tsv->path,
               what);
  return FALSE;
}

/* The end of the field at tsv->at: where a separator, a line break or the file's end stands. Quotes
 * count only where a field begins with one. */
static gboolean
read_field (KsEvalTsv *tsv, Field *out, GError **error)
{
  gsize i = tsv->at;

  if (i < tsv->n && tsv->text[i] == '"') {
    for (i++; i < tsv->n; i++) {
      if (tsv->text[i] == '\n')
        tsv->next_line++;
      if (tsv->text[i] != '"')
        continue;
      if (i + 1 >= tsv->n || tsv->text[i + 1] != '"')
        break;
      i++;
    }
    if (i >= tsv->n)
      return fail (tsv, "has a field whose quotes do not end", error);
    i++;
  }
  while (i < tsv->n && tsv->text[i] != tsv->separator && tsv->text[i] != '\n')
    i++;
  *out = (Field){tsv->at, i - tsv->at};
  if (out->n > 0 && i < tsv->n && tsv->text[i] == '\n' && tsv->text[i - 1] == '\r')
    out->n--;
  tsv->at = i;
  return TRUE;
}

/* One line into fields. */
static gboolean
read_row (KsEvalTsv *tsv, GError **error)
{
  g_array_set_size (tsv->fields, 0);
  tsv->line = tsv->next_line;
  for (;;) {
    Field field;

    if (!read_field (tsv, &field, error))
      return FALSE;
    if (tsv->fields->len >= MAX_COLUMNS)
      return fail (tsv, "has more than 256 columns", error);
    g_array_append_val (tsv->fields, field);
    if (tsv->at >= tsv->n)
      return TRUE;
    if (tsv->text[tsv->at++] == '\n') {
      tsv->next_line++;
      return TRUE;
    }
  }
}

static char *
dup_field (const KsEvalTsv *tsv, const Field *field)
{
  const char *text = tsv->text + field->at;
  g_autoptr (GString) out = g_string_new (NULL);
  gboolean quoted = field->n >= 2 && text[0] == '"';

  for (gsize i = quoted ? 1 : 0; i < field->n; i++) {
    if (!quoted || text[i] != '"') {
      g_string_append_c (out, text[i]);
    } else if (i + 1 < field->n && text[i + 1] == '"') {
      g_string_append_c (out, '"');
      i++;
    } else {
      quoted = FALSE; /* what follows the closing quote stands as it is */
    }
  }
  return g_utf8_make_valid (out->str, (gssize)out->len); /* a NUL in it is no character either */
}

KsEvalTsv *
ks_eval_tsv_open (const char *path, GError **error)
{
  g_autoptr (KsEvalTsv) tsv = g_new0 (KsEvalTsv, 1);
  GMappedFile *mapped = NULL;

  tsv->path = g_strdup (path);
  tsv->columns = g_ptr_array_new_with_free_func (g_free);
  tsv->fields = g_array_new (FALSE, FALSE, sizeof (Field));
  tsv->next_line = 1;
  tsv->separator = g_str_has_suffix (path, ".csv") ? ',' : '\t';
  mapped = g_mapped_file_new (path, FALSE, error);
  if (mapped == NULL)
    return NULL;
  tsv->bytes = g_mapped_file_get_bytes (mapped);
  g_mapped_file_unref (mapped);
  tsv->text = g_bytes_get_data (tsv->bytes, &tsv->n);
  if (tsv->n >= 3 && memcmp (tsv->text, "\xef\xbb\xbf", 3) == 0)
    tsv->at = 3;
  if (tsv->at >= tsv->n) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "%s is empty", path);
    return NULL;
  }
  if (!read_row (tsv, error))
    return NULL;
  for (guint i = 0; i < tsv->fields->len; i++)
    g_ptr_array_add (tsv->columns, dup_field (tsv, &g_array_index (tsv->fields, Field, i)));
  return g_steal_pointer (&tsv);
}

gboolean
ks_eval_tsv_next (KsEvalTsv *tsv, GError **error)
{
  g_autofree char *problem = NULL;

  while (tsv->at < tsv->n && (tsv->text[tsv->at] == '\n' || tsv->text[tsv->at] == '\r'))
    tsv->next_line += tsv->text[tsv->at++] == '\n';
  if (tsv->at >= tsv->n)
    return FALSE;
  if (!read_row (tsv, error))
    return FALSE;
  if (tsv->fields->len == tsv->columns->len)
    return TRUE;
  problem = g_strdup_printf ("has %u fields, but the first line names %u columns", tsv->fields->len,
                             tsv->columns->len);
  return fail (tsv, problem, error);
}

guint
ks_eval_tsv_get_line (const KsEvalTsv *tsv)
{
  return tsv->line;
}

static const Field *
find_field (const KsEvalTsv *tsv, const char *column)
{
  for (guint i = 0; i < tsv->columns->len; i++)
    if (g_ascii_strcasecmp (g_ptr_array_index (tsv->columns, i), column) == 0)
      return i < tsv->fields->len ? &g_array_index (tsv->fields, Field, i) : NULL;
  return NULL;
}

gboolean
ks_eval_tsv_has (const KsEvalTsv *tsv, const char *column)
{
  return find_field (tsv, column) != NULL;
}

char *
ks_eval_tsv_dup (const KsEvalTsv *tsv, const char *column)
{
  const Field *field = find_field (tsv, column);

  return field != NULL ? dup_field (tsv, field) : NULL;
}

gsize
ks_eval_tsv_get_n_bytes (const KsEvalTsv *tsv, const char *column)
{
  const Field *field = find_field (tsv, column);

  return field != NULL ? field->n : 0;
}

static gboolean
is_base64 (char c)
{
  return g_ascii_isalnum (c) || c == '+' || c == '/' || c == '=';
}

GPtrArray *
ks_eval_tsv_get_base64 (const KsEvalTsv *tsv, const char *column)
{
  GPtrArray *found = g_ptr_array_new_with_free_func ((GDestroyNotify)g_bytes_unref);
  const Field *field = find_field (tsv, column);
  gsize end = field != NULL ? field->at + field->n : 0;

  for (gsize i = field != NULL ? field->at : 0, begin; i < end; i++) {
    for (begin = i; i < end && is_base64 (tsv->text[i]);)
      i++;
    if (i - begin >= MIN_BASE64)
      g_ptr_array_add (found, g_bytes_new_from_bytes (tsv->bytes, begin, i - begin));
  }
  return found;
}

/* --- lists --- */

static void
skip_space (const char **p)
{
  while (g_ascii_isspace (**p))
    (*p)++;
}

/* \n, \t and \uXXXX as both languages have them; anything else stands for itself. */
static void
read_escape (const char **p, GString *out)
{
  char c = **p;

  if (c == 'n')
    g_string_append_c (out, '\n');
  else if (c == 't')
    g_string_append_c (out, '\t');
  else if (c == 'u' && g_ascii_isxdigit ((*p)[1]) && g_ascii_isxdigit ((*p)[2]) &&
           g_ascii_isxdigit ((*p)[3]) && g_ascii_isxdigit ((*p)[4])) {
    g_autofree char *digits = g_strndup (*p + 1, 4);
    gunichar u = (gunichar)g_ascii_strtoull (digits, NULL, 16);

    g_string_append_unichar (out, u != 0 && g_unichar_validate (u) ? u : 0xfffd);
    *p += 4;
  } else {
    g_string_append_c (out, c);
  }
  (*p)++;
}

static gboolean
read_element (const char **p, GStrvBuilder *builder)
{
  g_autoptr (GString) out = g_string_new (NULL);
  char quote = **p;

  if (quote != '"' && quote != '\'')
    return FALSE;
  (*p)++;
  while (**p != '\0' && **p != quote) {
    if (**p == '\\' && (*p)[1] != '\0') {
      (*p)++;
      read_escape (p, out);
    } else {
      g_string_append_c (out, *(*p)++);
    }
  }
  if (**p != quote)
    return FALSE;
  (*p)++;
  g_strv_builder_add (builder, out->str);
  return TRUE;
}

char **
ks_eval_parse_list (const char *text, GError **error)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  const char *p = text;
  gboolean ok;

  skip_space (&p);
  ok = *p == '[';
  for (p += ok, skip_space (&p); ok && *p != ']'; skip_space (&p)) {
    ok = read_element (&p, builder);
    skip_space (&p);
    if (ok && *p == ',')
      p++;
    else
      ok = ok && strchr ("]'\"", *p) != NULL && *p != '\0'; /* numpy sets no commas */
  }
  if (ok)
    return g_strv_builder_end (builder);
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                       "a field that should hold a list of texts in brackets does not");
  return NULL;
}

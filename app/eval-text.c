/* eval-text.c - Python's string rules for scorers; see eval-text.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-text.h"

#include <string.h>

GString *
ks_eval_text_new (const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);

  return g_string_new (valid);
}

static gboolean
is_case_ignorable (gunichar c)
{
  switch (g_unichar_type (c)) {
  case G_UNICODE_NON_SPACING_MARK:
  case G_UNICODE_ENCLOSING_MARK:
  case G_UNICODE_FORMAT:
  case G_UNICODE_MODIFIER_LETTER:
  case G_UNICODE_MODIFIER_SYMBOL:
    return TRUE;
  default:
    return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2018 || c == 0x2019;
  }
}

static gboolean
is_cased (gunichar c)
{
  return g_unichar_isupper (c) || g_unichar_islower (c) || g_unichar_istitle (c);
}

/* A capital sigma ends a word when a cased letter stands before it and none behind it. */
static gboolean
is_final_sigma (const char *start, const char *at)
{
  const char *p = at;
  gboolean before = FALSE;

  while (p > start) {
    p = g_utf8_prev_char (p);
    if (!is_case_ignorable (g_utf8_get_char (p))) {
      before = is_cased (g_utf8_get_char (p));
      break;
    }
  }
  if (!before)
    return FALSE;
  for (p = g_utf8_next_char (at); *p != '\0'; p = g_utf8_next_char (p))
    if (!is_case_ignorable (g_utf8_get_char (p)))
      return !is_cased (g_utf8_get_char (p));
  return TRUE;
}

GString *
ks_eval_text_lower (const char *text)
{
  GString *out = g_string_sized_new (strlen (text));

  for (const char *p = text; *p != '\0'; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);

    if (c == 0x130)
      g_string_append (out, "i\xCC\x87"); /* the one letter that becomes two code points */
    else if (c == 0x3A3)
      g_string_append_unichar (out, is_final_sigma (text, p) ? 0x3C2 : 0x3C3);
    else
      g_string_append_unichar (out, g_unichar_tolower (c));
  }
  return out;
}

gboolean
ks_eval_text_is_space (gunichar c)
{
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

void
ks_eval_text_strip (GString *text)
{
  const char *begin = text->str, *end = text->str + text->len;

  while (begin < end && ks_eval_text_is_space (g_utf8_get_char (begin)))
    begin = g_utf8_next_char (begin);
  while (end > begin && ks_eval_text_is_space (g_utf8_get_char (g_utf8_prev_char (end))))
    end = g_utf8_prev_char (end);
  g_string_truncate (text, (gsize)(end - text->str));
  g_string_erase (text, 0, begin - text->str);
}

gboolean
ks_eval_text_replace (GString *text, const char *find, const char *replacement)
{
  return g_string_replace (text, find, replacement, 0) > 0;
}

void
ks_eval_text_delete_all (GString *text, const char *const *list)
{
  for (; *list != NULL; list++)
    g_string_replace (text, *list, "", 0);
}

gboolean
ks_eval_text_keep_after_last (GString *text, const char *separator)
{
  const char *at = g_strrstr (text->str, separator);

  if (at == NULL)
    return FALSE;
  g_string_erase (text, 0, at - text->str + (gssize)strlen (separator));
  return TRUE;
}

void
ks_eval_text_keep_before (GString *text, const char *separator)
{
  const char *at = strstr (text->str, separator);

  if (at != NULL)
    g_string_truncate (text, (gsize)(at - text->str));
}

/* Stripped text with Unicode digits as ASCII, all other characters kept; the form in which Python
 * reads numbers. */
static GString *
to_ascii_digits (const char *text)
{
  g_autoptr (GString) stripped = g_string_new (text);
  GString *out = g_string_new (NULL);

  ks_eval_text_strip (stripped);
  for (const char *p = stripped->str; *p != '\0'; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);

    if (g_unichar_type (c) == G_UNICODE_DECIMAL_NUMBER)
      g_string_append_c (out, (char)('0' + g_unichar_digit_value (c)));
    else
      g_string_append_unichar (out, c);
  }
  return out;
}

/* Digits with single underscores between them; advances *p, FALSE when there is none. */
static gboolean
skip_digits (const char **p)
{
  if (!g_ascii_isdigit (**p))
    return FALSE;
  while (g_ascii_isdigit (**p) || (**p == '_' && g_ascii_isdigit ((*p)[1])))
    (*p)++;
  return TRUE;
}

gboolean
ks_eval_text_is_float (const char *text)
{
  g_autoptr (GString) number = to_ascii_digits (text);
  const char *p = number->str;
  gboolean whole, part = FALSE;

  if (*p == '+' || *p == '-')
    p++;
  if (g_ascii_strcasecmp (p, "inf") == 0 || g_ascii_strcasecmp (p, "infinity") == 0 ||
      g_ascii_strcasecmp (p, "nan") == 0)
    return TRUE;
  whole = skip_digits (&p);
  if (*p == '.') {
    p++;
    part = skip_digits (&p);
  }
  if (!whole && !part)
    return FALSE;
  if (*p == 'e' || *p == 'E') {
    p++;
    if (*p == '+' || *p == '-')
      p++;
    if (!skip_digits (&p))
      return FALSE;
  }
  return *p == '\0';
}

KsEvalInt
ks_eval_text_classify_int (const char *text)
{
  g_autoptr (GString) number = to_ascii_digits (text);
  const char *p = number->str, *digits;

  if (*p == '+' || *p == '-')
    p++;
  digits = p;
  if (!skip_digits (&p) || *p != '\0')
    return KS_EVAL_NOT_INT;
  if (strcmp (number->str, text) != 0 || number->str[0] == '+' || strchr (text, '_') != NULL ||
      (digits[0] == '0' && (digits[1] != '\0' || digits != number->str)))
    return KS_EVAL_INT_OTHER_SPELLING;
  return KS_EVAL_INT_CANONICAL;
}

/* Digits that are not decimal (superscripts and the like) count as digits in Python's isdigit, but
 * int() refuses them; they never equal an answer, so they count as no digits here. */
gboolean
ks_eval_text_all_digits (const char *text, char **out_digits)
{
  g_autoptr (GString) out = g_string_new (NULL);

  for (const char *p = text; *p != '\0'; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);

    if (g_unichar_type (c) != G_UNICODE_DECIMAL_NUMBER)
      return FALSE;
    if (out->len == 1 && out->str[0] == '0')
      g_string_truncate (out, 0);
    g_string_append_c (out, (char)('0' + g_unichar_digit_value (c)));
  }
  if (out->len == 0)
    return FALSE;
  *out_digits = g_strdup (out->str);
  return TRUE;
}

gboolean
ks_eval_text_brace_sqrt (GString *text)
{
  g_auto (GStrv) parts = g_strsplit (text->str, "\\sqrt", -1);
  g_autoptr (GString) out = g_string_new (parts[0]);

  for (guint i = 1; parts[0] != NULL && parts[i] != NULL; i++) {
    const char *part = parts[i], *next;

    if (*part == '\0')
      return FALSE;
    g_string_append (out, "\\sqrt");
    next = g_utf8_next_char (part);
    if (*part == '{')
      g_string_append (out, part);
    else
      g_string_append_printf (out, "{%.*s}%s", (int)(next - part), part, next);
  }
  g_string_assign (text, out->str);
  return TRUE;
}

gboolean
ks_eval_text_brace_frac (GString *text)
{
  g_auto (GStrv) parts = g_strsplit (text->str, "\\frac", -1);
  g_autoptr (GString) out = g_string_new (parts[0]);

  for (guint i = 1; parts[0] != NULL && parts[i] != NULL; i++) {
    const char *a = parts[i], *b, *rest;

    if (*a == '\0')
      return FALSE;
    g_string_append (out, "\\frac");
    if (*a == '{') {
      g_string_append (out, a);
      continue;
    }
    b = g_utf8_next_char (a);
    if (*b == '\0')
      return TRUE; /* one character is no fraction: everything stays as it was */
    rest = g_utf8_next_char (b);
    g_string_append_printf (out, "{%.*s}", (int)(b - a), a);
    if (*b == '{')
      g_string_append (out, b);
    else
      g_string_append_printf (out, "{%.*s}%s", (int)(rest - b), b, rest);
  }
  g_string_assign (text, out->str);
  return TRUE;
}

gboolean
ks_eval_text_slash_to_frac (GString *text)
{
  g_auto (GStrv) sides = g_strsplit (text->str, "/", -1);
  KsEvalInt a, b;

  if (g_strv_length (sides) != 2)
    return TRUE;
  a = ks_eval_text_classify_int (sides[0]);
  b = ks_eval_text_classify_int (sides[1]);
  if (a == KS_EVAL_NOT_INT || b == KS_EVAL_NOT_INT)
    return FALSE;
  if (a == KS_EVAL_INT_CANONICAL && b == KS_EVAL_INT_CANONICAL)
    g_string_printf (text, "\\frac{%s}{%s}", sides[0], sides[1]);
  return TRUE;
}

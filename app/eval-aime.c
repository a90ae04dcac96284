/* eval-aime.c - AIME scoring; see eval-aime.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-aime.h"

#include "app/eval-text.h"

#include <string.h>

/* From the last `command` in text to its matching brace, command included; NULL when unbalanced. */
static char *
take_braced (const char *at)
{
  int depth = 0;

  for (const char *p = at; *p != '\0'; p++) {
    depth += *p == '{';
    if (*p == '}' && --depth == 0)
      return g_strndup (at, (gsize)(p + 1 - at));
  }
  return NULL;
}

/* Whether the public code finds a last box; *out_inside: what it holds, NULL when it cannot be
 * opened (an \fbox is looked for, and then refused for not being a \boxed). */
static gboolean
find_last_box (const char *text, char **out_inside)
{
  const char *at = g_strrstr (text, "\\boxed "), *dollar;
  g_autofree char *box = NULL;

  *out_inside = NULL;
  if (at != NULL) {
    at += strlen ("\\boxed ");
    dollar = strchr (at, '$');
    *out_inside = dollar != NULL ? g_strndup (at, (gsize)(dollar - at)) : g_strdup (at);
    return TRUE;
  }
  at = g_strrstr (text, "\\boxed");
  if (at == NULL)
    at = g_strrstr (text, "\\fbox");
  box = at != NULL ? take_braced (at) : NULL;
  if (box != NULL && g_str_has_prefix (box, "\\boxed{"))
    *out_inside = g_strndup (box + strlen ("\\boxed{"), strlen (box) - strlen ("\\boxed{}"));
  return box != NULL;
}

/* Cleans in place; FALSE where the public code would raise. */
static gboolean
clean (GString *text)
{
  static const char *const layout[] = {"\\left", "\\right", "^{\\circ}", "^\\circ", "\\$", NULL};
  const char *first, *equals;

  ks_eval_text_replace (text, "\n", "");
  ks_eval_text_replace (text, "\\!", "");
  ks_eval_text_replace (text, "\\\\", "\\");
  ks_eval_text_replace (text, "tfrac", "frac");
  ks_eval_text_replace (text, "dfrac", "frac");
  ks_eval_text_delete_all (text, layout);
  first = strstr (text->str, "\\text{ ");
  if (first != NULL) {
    if (strstr (first + 1, "\\text{ ") != NULL)
      return FALSE;
    ks_eval_text_keep_before (text, "\\text{ ");
  }
  ks_eval_text_replace (text, "\\%", "");
  ks_eval_text_replace (text, " .", " 0.");
  ks_eval_text_replace (text, "{.", "{0.");
  if (text->len == 0)
    return TRUE;
  if (text->str[0] == '.')
    g_string_prepend_c (text, '0');
  equals = strchr (text->str, '=');
  if (equals != NULL && strchr (equals + 1, '=') == NULL &&
      g_utf8_strlen (text->str, equals - text->str) <= 2)
    g_string_erase (text, 0, equals + 1 - text->str);
  if (!ks_eval_text_brace_sqrt (text))
    return FALSE;
  ks_eval_text_replace (text, " ", "");
  if (!ks_eval_text_brace_frac (text))
    return FALSE;
  if (strcmp (text->str, "0.5") == 0)
    g_string_assign (text, "\\frac{1}{2}");
  return ks_eval_text_slash_to_frac (text);
}

gboolean
ks_eval_aime_exact (const char *prediction, const char *reference)
{
  g_autoptr (GString) valid = ks_eval_text_new (prediction);
  g_autoptr (GString) candidate = g_string_new (NULL);
  g_autoptr (GString) a = NULL, b = NULL;
  g_autofree char *box = NULL;
  const char *first = strchr (valid->str, '$'), *last = strrchr (valid->str, '$');

  if (find_last_box (valid->str, &box) && box != NULL)
    g_string_assign (candidate, box);
  else if (first != NULL && last != first)
    g_string_append_len (candidate, first + 1, last - first - 1);
  else
    g_string_assign (candidate, valid->str);
  a = g_string_new (candidate->str);
  b = g_string_new (reference);
  if (!clean (a) || !clean (b))
    return strcmp (candidate->str, reference) == 0;
  return g_string_equal (a, b);
}

/* What stands behind the first "answer", optional spaces and a colon; NULL without one. */
static char *
after_answer_label (const char *text)
{
  for (const char *p = text; *p != '\0'; p++) {
    const char *q = p + strlen ("answer");

    if (g_ascii_strncasecmp (p, "answer", strlen ("answer")) != 0)
      continue;
    while (*q != '\0' && ks_eval_text_is_space (g_utf8_get_char (q)))
      q = g_utf8_next_char (q);
    if (*q != ':')
      continue;
    q++;
    while (*q != '\0' && ks_eval_text_is_space (g_utf8_get_char (q)))
      q = g_utf8_next_char (q);
    return g_strdup (q);
  }
  return NULL;
}

gboolean
ks_eval_aime_int (const char *prediction, const char *reference)
{
  g_autoptr (GString) valid = ks_eval_text_new (prediction);
  g_autofree char *candidate = NULL;
  g_autofree char *a = NULL, *b = NULL;

  /* A box that cannot be opened makes the public code fail: no point. */
  if (find_last_box (valid->str, &candidate) && candidate == NULL)
    return FALSE;
  if (candidate == NULL)
    candidate = after_answer_label (valid->str);
  if (candidate == NULL)
    candidate = g_strdup (valid->str);
  if (ks_eval_text_all_digits (candidate, &a) && ks_eval_text_all_digits (reference, &b))
    return strcmp (a, b) == 0;
  return strcmp (candidate, reference) == 0;
}

char *
ks_eval_reasoning_answer (const char *prediction)
{
  g_autoptr (GString) text = ks_eval_text_new (prediction);
  char *open, *close;
  gssize at = 0; /* what moves together where a span went is not looked at again */

  while ((open = strstr (text->str + at, "<think>")) != NULL &&
         (close = strstr (open, "</think>")) != NULL) {
    at = open - text->str;
    g_string_erase (text, at, close + strlen ("</think>") - open);
  }
  ks_eval_text_strip (text);
  open = strstr (text->str, "<answer>");
  close = open != NULL ? strstr (open, "</answer>") : NULL;
  if (close != NULL) {
    g_string_truncate (text, (gsize)(close - text->str));
    g_string_erase (text, 0, open + strlen ("<answer>") - text->str);
  } else if ((open = strstr (text->str, "\\boxed{")) != NULL &&
             (close = strchr (open, '}')) != NULL) {
    g_string_truncate (text, (gsize)(close - text->str));
    g_string_erase (text, 0, open + strlen ("\\boxed{") - text->str);
  }
  ks_eval_text_strip (text);
  return g_strdup (text->str);
}

/* eval-mathvision.c - MathVision scoring; the order of the steps is part of the definition. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-mathvision.h"

#include "app/eval-aime.h"
#include "app/eval-number.h"
#include "app/eval-text.h"

#include <string.h>

static void
strip_char (GString *text, char c, gboolean at_end)
{
  if (at_end)
    while (text->len > 0 && text->str[text->len - 1] == c)
      g_string_truncate (text, text->len - 1);
  else
    while (text->str[0] == c)
      g_string_erase (text, 0, 1);
}

/* A reply that names one letter in a usual way is that letter. */
static void
take_letter (GString *reply)
{
  for (char c = 'A'; c <= 'E'; c++) {
    char ends[2][8], starts[3][12];
    gboolean found = FALSE;

    g_snprintf (ends[0], sizeof ends[0], " %c.", c);
    g_snprintf (ends[1], sizeof ends[1], " (%c).", c);
    g_snprintf (starts[0], sizeof starts[0], "%c\n", c);
    g_snprintf (starts[1], sizeof starts[1], "(%c)\n", c);
    g_snprintf (starts[2], sizeof starts[2], "(%c) %c\n", c, c);
    for (guint i = 0; i < 2; i++)
      found = found || g_str_has_suffix (reply->str, ends[i]);
    for (guint i = 0; i < 3; i++)
      found = found || g_str_has_prefix (reply->str, starts[i]);
    if (found)
      g_string_printf (reply, "%c", c);
  }
}

static void
take_after_phrase (GString *reply, const char *phrase)
{
  gboolean found = ks_eval_text_keep_after_last (reply, phrase);

  ks_eval_text_strip (reply);
  if (found) {
    ks_eval_text_keep_before (reply, "\n");
    ks_eval_text_keep_before (reply, ". ");
  }
}

/* From after the first "oxed{" to the last closing brace; the whole text without such a pair. */
static void
open_box (GString *text)
{
  const char *open = strstr (text->str, "oxed{"), *close = strrchr (text->str, '}');
  const char *first_open, *first_close;

  if (open != NULL && close != NULL && close >= open + strlen ("oxed{")) {
    g_string_truncate (text, (gsize)(close - text->str));
    g_string_erase (text, 0, open + strlen ("oxed{") - text->str);
  }
  first_open = strchr (text->str, '{');
  first_close = strchr (text->str, '}');
  if (first_close != NULL && (first_open == NULL || first_close < first_open))
    g_string_truncate (text, (gsize)(first_close - text->str));
}

/* FALSE where the public code would raise: the text then stays as far as it came. */
static void
clean (GString *text)
{
  static const char *const first[] = {" ", "\\,", NULL};
  static const char *const layout[] = {"\n", "\\text", "\\mbox", NULL};
  static const char *const units[] = {"\\left",  "\\right", "^{\\circ}", "^\\circ", "{m}^3", "m^3",
                                      "{units}", "units",   "{km}",      "km",      NULL};
  static const char *const signs[] = {"\\$", "$", "\\%", NULL};

  ks_eval_text_delete_all (text, first);
  ks_eval_text_replace (text, "\xE2\x88\x9E", "\\infty");
  ks_eval_text_replace (text, "+\\infty", "\\infty");
  ks_eval_text_replace (text, "\\\\", "\\");
  ks_eval_text_delete_all (text, layout);
  ks_eval_text_replace (text, "bmatrix", "pmatrix");
  ks_eval_text_delete_all (text, units);
  ks_eval_text_replace (text, "\\!", "");
  ks_eval_text_replace (text, "\\\\", "\\");
  ks_eval_text_replace (text, "tfrac", "frac");
  ks_eval_text_replace (text, "dfrac", "frac");
  ks_eval_text_delete_all (text, signs);
  ks_eval_text_replace (text, "{.", "{0.");
  if (text->str[0] == '.')
    g_string_prepend_c (text, '0');
  if (strstr (text->str, "sqrt") != NULL &&
      (!ks_eval_text_brace_sqrt (text) || !ks_eval_text_brace_frac (text)))
    return;
  if (strcmp (text->str, "0.5") == 0)
    g_string_assign (text, "\\frac{1}{2}");
  (void)ks_eval_text_slash_to_frac (text);
}

char *
ks_eval_mathvision_extract (const char *prediction)
{
  static const char *const phrases[] = {"the final answer is", "the answer is",
                                        "the correct answer is", "the answer should be"};
  g_autoptr (GString) reply = ks_eval_text_new (prediction);
  g_autoptr (GString) tail = NULL, text = NULL;
  const char *box;

  ks_eval_text_strip (reply);
  take_letter (reply);
  tail = g_string_new (reply->str);
  (void)ks_eval_text_keep_after_last (tail, "is ");
  strip_char (tail, '.', TRUE);
  if (ks_eval_text_is_float (tail->str))
    g_string_assign (reply, tail->str);
  box = strstr (reply->str, "oxed{");
  if (box == NULL) {
    for (guint i = 0; i < G_N_ELEMENTS (phrases); i++) {
      g_autoptr (GString) capital = g_string_new (phrases[i]);

      take_after_phrase (reply, phrases[i]);
      ks_eval_text_replace (capital, "the", "The");
      take_after_phrase (reply, capital->str);
    }
  } else if (strstr (box + 1, "oxed{") != NULL) {
    (void)ks_eval_text_keep_after_last (reply, "oxed{");
    g_string_prepend (reply, "\\boxed{");
  }
  text = ks_eval_text_lower (reply->str);
  ks_eval_text_replace (text, "{}", "");
  open_box (text);
  (void)ks_eval_text_keep_after_last (text, "=");
  (void)ks_eval_text_keep_after_last (text, "\\approx");
  clean (text);
  for (char c = 'a'; c <= 'e'; c++) {
    char round_form[4] = {'(', c, ')', '\0'}, braced[4] = {'{', c, '}', '\0'},
         letter[2] = {c, '\0'};

    ks_eval_text_replace (text, round_form, letter);
    ks_eval_text_replace (text, braced, letter);
  }
  strip_char (text, '.', TRUE);
  strip_char (text, ':', FALSE);
  ks_eval_text_strip (text);
  return g_strdup (text->str);
}

/* "(a, b)" or "[a, b]" with every part evaluated and rounded; unchanged when that is not possible.
 */
static char *
evaluate_tuple (const char *text)
{
  gsize n = strlen (text);
  g_autoptr (GString) out = NULL;
  g_autofree char *inside = NULL;
  g_auto (GStrv) parts = NULL;

  if (n < 2 || !((text[0] == '(' && text[n - 1] == ')') || (text[0] == '[' && text[n - 1] == ']')))
    return g_strdup (text);
  inside = g_strndup (text + 1, n - 2);
  parts = g_strsplit (inside, ",", -1);
  if (g_strv_length (parts) < 2)
    return g_strdup (text);
  out = g_string_new_len (text, 1);
  for (guint i = 0; parts[i] != NULL; i++) {
    g_autofree char *printed = NULL;
    KsEvalNumber number;

    if (strstr (parts[i], "infty") != NULL || strcmp (parts[i], "a") == 0 ||
        strcmp (parts[i], "-a") == 0)
      printed = g_strdup (parts[i]);
    else if (ks_eval_number_parse (parts[i], &number))
      printed = ks_eval_number_format (&number);
    else
      return g_strdup (text);
    g_string_append_printf (out, "%s%s", i > 0 ? "," : "", printed);
  }
  g_string_append_c (out, text[n - 1]);
  return g_strdup (out->str);
}

static gboolean
is_blank (const char *text)
{
  return text[strspn (text, " ")] == '\0';
}

static gboolean
is_equal (const char *left, const char *right)
{
  g_autoptr (GString) a = ks_eval_text_lower (left), b = ks_eval_text_lower (right);
  g_autoptr (GString) a_stripped = g_string_new (a->str), b_stripped = g_string_new (b->str);
  g_autofree char *a_tuple = NULL, *b_tuple = NULL;
  KsEvalNumber a_number, b_number;

  if (is_blank (a->str) || is_blank (b->str))
    return FALSE;
  ks_eval_text_strip (a_stripped);
  ks_eval_text_strip (b_stripped);
  if (g_string_equal (a_stripped, b_stripped))
    return TRUE;
  a_tuple = evaluate_tuple (a->str);
  b_tuple = evaluate_tuple (b->str);
  if (strcmp (a_tuple, b_tuple) == 0)
    return TRUE;
  return ks_eval_number_parse (a_tuple, &a_number) && ks_eval_number_parse (b_tuple, &b_number) &&
         ks_eval_number_equal (&a_number, &b_number);
}

gboolean
ks_eval_mathvision_is_correct (const char *prediction, const char *answer,
                               const char *const *options, gboolean harness)
{
  g_autofree char *reply = harness ? ks_eval_reasoning_answer (prediction) : g_strdup (prediction);
  g_autofree char *extracted = ks_eval_mathvision_extract (reply);
  gsize n_options = options != NULL ? g_strv_length ((char **)options) : 0;
  const char *value = "";

  if (n_options > 1 && answer[0] >= 'A' && answer[1] == '\0' &&
      (gsize)(answer[0] - 'A') < n_options)
    value = options[answer[0] - 'A'];
  return is_equal (answer, extracted) || is_equal (value, extracted);
}

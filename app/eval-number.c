/* eval-number.c - recursive descent over short LaTeX number expressions.
 * Quirks of the public scorers are kept on purpose: implied products include mixed numbers, powers
 * associate to the left, and text behind a complete expression ends it at closing brackets, dots
 * and a few other marks.  Long double stands in for unbounded integers. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CODE_POINTS 4096
#define MAX_DEPTH 64
#define MAX_FACTORIAL 170

typedef struct {
  const char *p;
  guint depth;
} Parser;

static gboolean parse_sum (Parser *parser, KsEvalNumber *out);
static gboolean parse_atom (Parser *parser, KsEvalNumber *out);
static gboolean parse_power (Parser *parser, KsEvalNumber *out);

/* Spaces and commands that only move things on the page. */
static void
skip_blank (Parser *parser)
{
  static const char *const blank[] = {
      "\\displaystyle", "\\quad", "\\qquad", "\\,", "\\;", "\\:", "\\ ", "\\!"};

  for (;;) {
    gboolean moved = FALSE;

    while (*parser->p != '\0' && strchr (" \t\r\n~$", *parser->p) != NULL)
      parser->p++;
    for (guint i = 0; i < G_N_ELEMENTS (blank); i++)
      if (g_str_has_prefix (parser->p, blank[i]) &&
          !(g_ascii_isalpha (blank[i][1]) && g_ascii_isalpha (parser->p[strlen (blank[i])]))) {
        parser->p += strlen (blank[i]);
        moved = TRUE;
        break;
      }
    if (!moved)
      return;
  }
}

static gboolean
accept (Parser *parser, const char *token)
{
  gsize n = strlen (token);

  skip_blank (parser);
  if (!g_str_has_prefix (parser->p, token))
    return FALSE;
  /* A command ends where its letters end. */
  if (token[0] == '\\' && g_ascii_isalpha (token[n - 1]) && g_ascii_isalpha (parser->p[n]))
    return FALSE;
  parser->p += n;
  return TRUE;
}

static gboolean
finish (KsEvalNumber *out, long double value, gboolean is_integer)
{
  if (!isfinite (value))
    return FALSE;
  out->value = value;
  out->is_integer = is_integer && value == floorl (value);
  return TRUE;
}

/* Digits with thousands commas and one point. */
static gboolean
parse_literal (Parser *parser, KsEvalNumber *out)
{
  g_autoptr (GString) digits = g_string_new (NULL);
  const char *p = parser->p;
  gboolean has_point = FALSE;
  double value;

  while (g_ascii_isdigit (*p))
    g_string_append_c (digits, *p++);
  /* Groups of exactly three digits, the first of one to three. */
  while (digits->len > 0 && *p == ',' && g_ascii_isdigit (p[1]) && g_ascii_isdigit (p[2]) &&
         g_ascii_isdigit (p[3]) && !g_ascii_isdigit (p[4]) &&
         (p - parser->p <= 3 || strchr (parser->p, ',') < p)) {
    g_string_append_len (digits, p + 1, 3);
    p += 4;
  }
  if (*p == '.' && (digits->len > 0 || g_ascii_isdigit (p[1]))) {
    has_point = TRUE;
    g_string_append_c (digits, *p++);
    while (g_ascii_isdigit (*p))
      g_string_append_c (digits, *p++);
  }
  if (digits->len == 0)
    return FALSE;
  parser->p = p;
  value = has_point ? g_ascii_strtod (digits->str, NULL) : 0.0;
  /* "6.0" counts as the integer 6; a whole number keeps all the digits a long double has. */
  return has_point ? finish (out, value, value == floor (value))
                   : finish (out, strtold (digits->str, NULL), TRUE);
}

static gboolean
parse_enclosed (Parser *parser, const char *open, const char *close, KsEvalNumber *out)
{
  return accept (parser, open) && parse_sum (parser, out) && accept (parser, close);
}

static gboolean
parse_braced (Parser *parser, KsEvalNumber *out)
{
  return parse_enclosed (parser, "{", "}", out);
}

static gboolean
parse_root (Parser *parser, KsEvalNumber *out)
{
  KsEvalNumber degree = {2.0L, TRUE}, radicand;
  long double root;

  if (accept (parser, "[") && !(parse_sum (parser, &degree) && accept (parser, "]")))
    return FALSE;
  if (!parse_braced (parser, &radicand) || degree.value == 0.0L)
    return FALSE;
  root = degree.value == 2.0L ? sqrtl (radicand.value) : powl (radicand.value, 1.0L / degree.value);
  return finish (out, root, FALSE);
}

static gboolean
divide (KsEvalNumber *out, const KsEvalNumber *a, const KsEvalNumber *b)
{
  return b->value != 0.0L && finish (out, a->value / b->value, FALSE);
}

static gboolean
factorial (KsEvalNumber *number)
{
  long double product = 1.0L;

  if (number->value != floorl (number->value) || number->value < 0.0L ||
      number->value > MAX_FACTORIAL)
    return FALSE;
  for (int i = 2; i <= (int)number->value; i++)
    product *= i;
  return finish (number, product, TRUE);
}

static gboolean
parse_binomial (Parser *parser, KsEvalNumber *out)
{
  KsEvalNumber n, k;
  long double product = 1.0L;

  if (!parse_braced (parser, &n) || !parse_braced (parser, &k) || !n.is_integer || !k.is_integer ||
      k.value < 0.0L || k.value > MAX_CODE_POINTS)
    return FALSE;
  for (int i = 1; i <= (int)k.value; i++)
    product = product * (n.value - k.value + i) / i;
  return finish (out, roundl (product), TRUE);
}

static gboolean
parse_gcd (Parser *parser, KsEvalNumber *out)
{
  KsEvalNumber a, b;

  if (!accept (parser, "(") || !parse_sum (parser, &a) || !accept (parser, ",") ||
      !parse_sum (parser, &b) || !accept (parser, ")") || !a.is_integer || !b.is_integer)
    return FALSE;
  while (b.value != 0.0L) {
    long double rest = fmodl (a.value, b.value);

    a.value = b.value;
    b.value = rest;
  }
  return finish (out, fabsl (a.value), TRUE);
}

static gboolean
parse_logarithm (Parser *parser, gboolean natural, KsEvalNumber *out)
{
  KsEvalNumber base = {natural ? expl (1.0L) : 10.0L, !natural}, x;
  long double value;

  if (accept (parser, "_") && !(g_str_has_prefix (parser->p, "{") ? parse_braced (parser, &base)
                                                                  : parse_literal (parser, &base)))
    return FALSE;
  if (!parse_power (parser, &x) || x.value <= 0.0L || base.value <= 0.0L || base.value == 1.0L)
    return FALSE;
  value = base.value == 10.0L ? log10l (x.value) : logl (x.value) / logl (base.value);
  return finish (out, value, FALSE);
}

static gboolean
parse_function (Parser *parser, KsEvalNumber *out)
{
  static const struct {
    const char *name;
    long double (*fn) (long double);
  } functions[] = {
      {"\\sin", sinl},     {"\\cos", cosl},     {"\\tan", tanl},
      {"\\arcsin", asinl}, {"\\arccos", acosl}, {"\\arctan", atanl},
      {"\\sinh", sinhl},   {"\\cosh", coshl},   {"\\tanh", tanhl},
  };
  KsEvalNumber x;

  for (guint i = 0; i < G_N_ELEMENTS (functions); i++)
    if (accept (parser, functions[i].name))
      return parse_power (parser, &x) && finish (out, functions[i].fn (x.value), FALSE);
  return FALSE;
}

static gboolean
parse_command (Parser *parser, KsEvalNumber *out)
{
  KsEvalNumber a, b;

  if (accept (parser, "\\frac"))
    return parse_braced (parser, &a) && parse_braced (parser, &b) && divide (out, &a, &b);
  if (accept (parser, "\\sqrt"))
    return parse_root (parser, out);
  if (accept (parser, "\\pi"))
    return finish (out, acosl (-1.0L), FALSE);
  if (accept (parser, "\\binom"))
    return parse_binomial (parser, out);
  if (accept (parser, "\\gcd"))
    return parse_gcd (parser, out);
  if (accept (parser, "\\log"))
    return parse_logarithm (parser, FALSE, out);
  if (accept (parser, "\\ln"))
    return parse_logarithm (parser, TRUE, out);
  if (accept (parser, "\\lfloor"))
    return parse_sum (parser, &a) && accept (parser, "\\rfloor") &&
           finish (out, floorl (a.value), TRUE);
  if (accept (parser, "\\left"))
    return parse_enclosed (parser, "(", "\\right", out) && accept (parser, ")");
  return parse_function (parser, out);
}

static gboolean
parse_atom (Parser *parser, KsEvalNumber *out)
{
  gboolean ok = FALSE;

  if (parser->depth++ >= MAX_DEPTH)
    return FALSE;
  skip_blank (parser);
  if (g_ascii_isdigit (*parser->p) || *parser->p == '.')
    ok = parse_literal (parser, out);
  else if (*parser->p == '(')
    ok = parse_enclosed (parser, "(", ")", out);
  else if (*parser->p == '{')
    ok = parse_braced (parser, out);
  else if (*parser->p == '\\')
    ok = parse_command (parser, out);
  else if (*parser->p == 'e' && parser->p[1] == '^') {
    parser->p++;
    ok = finish (out, expl (1.0L), FALSE);
  }
  parser->depth--;
  return ok;
}

static gboolean
parse_postfix (Parser *parser, KsEvalNumber *out)
{
  if (!parse_atom (parser, out))
    return FALSE;
  for (;;) {
    if (accept (parser, "!")) {
      if (!factorial (out))
        return FALSE;
    } else if (accept (parser, "\\%")) {
      if (!finish (out, out->value / 100.0L, FALSE))
        return FALSE;
    } else {
      return TRUE;
    }
  }
}

/* One digit or a braced expression, with its sign. */
static gboolean
parse_exponent (Parser *parser, KsEvalNumber *out)
{
  gboolean negative;

  skip_blank (parser);
  if (*parser->p == '{')
    return parse_braced (parser, out);
  negative = accept (parser, "-");
  if (!parse_postfix (parser, out))
    return FALSE;
  if (negative)
    out->value = -out->value;
  return TRUE;
}

/* Powers associate to the left: 2^3^2 is 64. */
static gboolean
parse_power (Parser *parser, KsEvalNumber *out)
{
  KsEvalNumber exponent;

  if (!parse_postfix (parser, out))
    return FALSE;
  while (accept (parser, "^")) {
    gboolean whole;

    if (!parse_exponent (parser, &exponent))
      return FALSE;
    whole = out->is_integer && exponent.is_integer && exponent.value >= 0.0L;
    if (!finish (out, powl (out->value, exponent.value), whole))
      return FALSE;
  }
  return TRUE;
}

/* True where something that can be multiplied begins. */
static gboolean
starts_factor (Parser *parser)
{
  static const char *const enders[] = {"\\\\",   "\\}",     "\\rfloor", "\\right",
                                       "\\cdot", "\\times", "\\div",    "\\%",
                                       "\\pm",   "\\circ",  "\\lceil",  "\\approx"};

  skip_blank (parser);
  if (*parser->p == '.')
    return FALSE; /* a dot behind a complete expression ends it */
  if (*parser->p == '\\') {
    for (guint i = 0; i < G_N_ELEMENTS (enders); i++)
      if (g_str_has_prefix (parser->p, enders[i]))
        return FALSE;
    return TRUE;
  }
  return g_ascii_isdigit (*parser->p) || *parser->p == '(' || *parser->p == '{' ||
         g_str_has_prefix (parser->p, "e^");
}

static gboolean
parse_product (Parser *parser, KsEvalNumber *out)
{
  gboolean negative = FALSE;
  KsEvalNumber factor;

  for (;;) {
    if (accept (parser, "-"))
      negative = !negative;
    else if (!accept (parser, "+"))
      break;
  }
  if (!parse_power (parser, out))
    return FALSE;
  for (;;) {
    gboolean divides = accept (parser, "/") || accept (parser, ":") || accept (parser, "\\div");
    gboolean times =
        divides || accept (parser, "*") || accept (parser, "\\cdot") || accept (parser, "\\times");
    gboolean minus;

    if (!times && !starts_factor (parser))
      break;
    minus = times && accept (parser, "-");
    if (!parse_power (parser, &factor))
      return FALSE;
    if (minus)
      factor.value = -factor.value;
    if (divides ? !divide (out, out, &factor)
                : !finish (out, out->value * factor.value, out->is_integer && factor.is_integer))
      return FALSE;
  }
  if (negative)
    out->value = -out->value;
  return TRUE;
}

static gboolean
parse_sum (Parser *parser, KsEvalNumber *out)
{
  KsEvalNumber term;

  if (parser->depth++ >= MAX_DEPTH || !parse_product (parser, out))
    return FALSE;
  for (;;) {
    gboolean minus = accept (parser, "-");

    if (!minus && !accept (parser, "+"))
      break;
    if (!parse_product (parser, &term) ||
        !finish (out, minus ? out->value - term.value : out->value + term.value,
                 out->is_integer && term.is_integer))
      return FALSE;
  }
  parser->depth--;
  return TRUE;
}

gboolean
ks_eval_number_parse (const char *latex, KsEvalNumber *out)
{
  Parser parser = {latex, 0};
  KsEvalNumber number;

  if (g_utf8_strlen (latex, -1) > MAX_CODE_POINTS)
    return FALSE;
  skip_blank (&parser);
  /* "x=3" has the value of its right side. */
  if (g_ascii_isalpha (*parser.p)) {
    Parser right = {parser.p + 1, 0};

    if (accept (&right, "="))
      parser = right;
  }
  if (!parse_sum (&parser, &number))
    return FALSE;
  skip_blank (&parser);
  if (*parser.p != '\0' && strchr ("})].&_'", *parser.p) == NULL &&
      !g_str_has_prefix (parser.p, "\\}") && !g_str_has_prefix (parser.p, "\\\\"))
    return FALSE;
  *out = number;
  return TRUE;
}

/* Two decimals of the double, correctly rounded. */
static void
format_rounded (long double value, char *buffer, gsize size)
{
  char format[] = "%.2f";

  g_ascii_formatd (buffer, (int)size, format, (double)value);
}

char *
ks_eval_number_format (const KsEvalNumber *number)
{
  char buffer[512];
  gsize n;

  if (number->is_integer)
    return g_strdup_printf ("%.0Lf", number->value + 0.0L); /* -0 is 0 */
  format_rounded (number->value, buffer, sizeof buffer);
  n = strlen (buffer);
  if (buffer[n - 1] == '0')
    buffer[n - 1] = '\0'; /* 0.50 prints as 0.5, 2.00 as 2.0 */
  return g_strdup (buffer);
}

gboolean
ks_eval_number_equal (const KsEvalNumber *a, const KsEvalNumber *b)
{
  char rounded_a[512], rounded_b[512];

  if (a->is_integer && b->is_integer)
    return a->value == b->value;
  if (fabsl (a->value) > 1e15L || fabsl (b->value) > 1e15L)
    return a->value == b->value;
  format_rounded (a->value, rounded_a, sizeof rounded_a);
  format_rounded (b->value, rounded_b, sizeof rounded_b);
  /* As numbers, not as text: minus zero equals zero. */
  return g_ascii_strtod (rounded_a, NULL) == g_ascii_strtod (rounded_b, NULL);
}

/* test-eval-number.c - the number grammar of the mathematics scorer, quirks included; boxes and
 * spans of thought. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-aime.h"
#include "app/eval-number.h"
#include "app/eval-text.h"

#include <math.h>
#include <string.h>

static void
test_values(void)
{
  static const struct {
    const char *latex;
    double want;
  } cases[] = {
      {"5.", 5},
      {".5", 0.5},
      {"1,000", 1000},
      {"2^3^2", 64},
      {"-2^2", -4},
      {"2(3+4)", 14},
      {"3 4", 12},
      {"1\\frac{1}{2}", 0.5},
      {"x=3", 3},
      {"10:4", 2.5},
      {"\\frac{1}{2}}with{x", 0.5},
      {"5!", 120},
      {"50\\%", 0.5},
      {"2\\pi", 2 * G_PI},
      {"\\sqrt{2}", G_SQRT2},
      {"\\sqrt[3]{27}", 3},
      {"\\binom{5}{2}", 10},
      {"\\gcd(12,18)", 6},
      {"\\log{1000}", 3},
      {"\\log_2{8}", 3},
      {"\\sin{0}", 0},
      {"\\lfloor 2.7\\rfloor", 2},
      {"e^2", 7.38905609893065},
      {"$7$", 7},
      {"\\displaystyle 3~\\quad", 3},
      {"2\\cdot 3\\times 4\\div 8", 3},
      {"1-2-3", -4},
      {"3^{1008}/3^{1006}", 9},
      {"2^{-1}", 0.5},
      {"12,345,678.5", 12345678.5},
      {"4)", 4},
      {"4.", 4},
  };

  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    KsEvalNumber number = {0};
    gboolean ok = ks_eval_number_parse(cases[i].latex, &number);

    if (!ok || fabs((double)number.value - cases[i].want) > 1e-9)
      g_error("%s: %s %.12Lg, want %.12g", cases[i].latex, ok ? "is" : "rejected,", number.value,
              cases[i].want);
  }
}

static void
test_rejected(void)
{
  static const char *const texts[] = {"8,0",
                                      "10cm",
                                      "1e3",
                                      "|3|",
                                      "\\lceil 3\\rceil",
                                      "\\frac12",
                                      "\\pm 3",
                                      "6^\\circ",
                                      "5%",
                                      "\xE2\x88\x92"
                                      "5",
                                      "4\xCF\x80",
                                      "\\{1,2\\}",
                                      "1,2",
                                      "1/0",
                                      "e",
                                      "",
                                      "171!",
                                      "(",
                                      "\\sqrt3",
                                      "x"};
  g_autoptr(GString) deep = g_string_new(NULL), longer = g_string_new(NULL);
  KsEvalNumber number;

  for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
    if (ks_eval_number_parse(texts[i], &number))
      g_error("%s should be no number", texts[i]);
  for (int i = 0; i < 100000; i++)
    g_string_append_c(deep, '(');
  for (int i = 0; i < 5000; i++)
    g_string_append_c(longer, '1');
  g_string_truncate(deep, 4000);
  g_assert_false(ks_eval_number_parse(deep->str, &number));
  g_assert_false(ks_eval_number_parse(longer->str, &number));
}

/* Ties go where the double's own binary value says, as "%.2f" does. */
static void
test_rounding(void)
{
  static const struct {
    const char *latex, *want;
  } cases[] = {{"2.675", "2.67"}, {"0.125", "0.12"}, {"4/2", "2.0"},     {"2*1", "2"},
               {"6.0", "6"},      {"1/3", "0.33"},   {"-1/1000", "-0.0"}};

  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autofree char *text = NULL;
    KsEvalNumber number;

    g_assert_true(ks_eval_number_parse(cases[i].latex, &number));
    text = ks_eval_number_format(&number);
    g_assert_cmpstr(text, ==, cases[i].want);
  }
}

/* What a root or a division makes prints as a fraction even where it is whole, as in the reference;
 * zero has no sign; the factorial of a whole value is one. */
static void
test_printing(void)
{
  static const struct {
    const char *latex, *want;
  } cases[] = {
      {"\\sqrt{4}", "2.0"}, {"4/2", "2.0"},      {"-0", "0"},
      {"2-2", "0"},         {"\\sqrt{9}!", "6"}, {"(4/2)!", "2"},
  };

  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autofree char *text = NULL;
    KsEvalNumber number;

    g_assert_true(ks_eval_number_parse(cases[i].latex, &number));
    text = ks_eval_number_format(&number);
    g_assert_cmpstr(text, ==, cases[i].want);
  }
}

/* A box that is found but cannot be opened fails in the public code: no point, whatever else is
 * there.  One that does not close is none, and the label counts. */
static void
test_boxes(void)
{
  g_assert_false(ks_eval_aime_int("Answer: 7 \\fbox{7}", "7 \\fbox{7}"));
  g_assert_true(ks_eval_aime_int("\\fbox{7 Answer: 7", "7"));
  g_assert_false(ks_eval_aime_int("\\boxed[1]{2} Answer: 5", "5"));
  g_assert_true(ks_eval_aime_int("\\boxed{2 Answer: 5", "5"));
  g_assert_true(ks_eval_aime_exact("5\\fbox{7}", "5\\fbox{7}"));
}

/* Spans of thought go in one walk: what closes up behind one that went is not looked at again. */
static void
test_thought(void)
{
  g_autofree char *twice = ks_eval_reasoning_answer("<think>a</think>b<think>c</think>d");
  g_autofree char *nested = ks_eval_reasoning_answer("<<think>a</think>think>b</think>c");

  g_assert_cmpstr(twice, ==, "bd");
  g_assert_cmpstr(nested, ==, "<think>b</think>c");
}

/* Lower-casing does not depend on the locale and knows the two special letters. */
static void
test_lower(void)
{
  g_autoptr(GString) dotted = ks_eval_text_lower("\xC4\xB0I");
  g_autoptr(GString) sigma = ks_eval_text_lower("\xCE\x9F\xCE\xA3 \xCE\xA3\xCE\x9F");

  g_assert_cmpstr(dotted->str, ==, "i\xCC\x87i");
  g_assert_cmpstr(sigma->str, ==, "\xCE\xBF\xCF\x82 \xCF\x83\xCE\xBF");
}

int
main(int argc, char **argv)
{
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/number/values", test_values);
  g_test_add_func("/number/rejected", test_rejected);
  g_test_add_func("/number/rounding", test_rounding);
  g_test_add_func("/number/printing", test_printing);
  g_test_add_func("/aime/boxes", test_boxes);
  g_test_add_func("/reasoning/thought", test_thought);
  g_test_add_func("/text/lower", test_lower);
  return g_test_run();
}

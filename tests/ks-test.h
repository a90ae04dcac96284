/* ks-test.h - tests of the engine as TAP programs: KS_TEST registers itself, KS_TEST_MAIN runs all.
 * An assertion that fails prints file, line and values, marks the test failed and leaves it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ks_test {
  const char *name;
  void (*fn)(void);
  struct ks_test *next;
} ks_test;

static ks_test *ks_test_first;
static jmp_buf ks_test_jump;
static const char *ks_test_skip_reason;

#define KS_TEST(suite, test_name)                                                                  \
  static void ks_test_##suite##_##test_name(void);                                                 \
  __attribute__((constructor)) static void ks_test_add_##suite##_##test_name(void)                 \
  {                                                                                                \
    static ks_test entry = {#suite "." #test_name, ks_test_##suite##_##test_name, NULL};           \
    ks_test **end = &ks_test_first;                                                                \
    while (*end != NULL)                                                                           \
      end = &(*end)->next;                                                                         \
    *end = &entry;                                                                                 \
  }                                                                                                \
  static void ks_test_##suite##_##test_name(void)

#define KS_FAIL(...)                                                                               \
  do {                                                                                             \
    printf("# %s:%d: ", __FILE__, __LINE__);                                                       \
    printf(__VA_ARGS__);                                                                           \
    printf("\n");                                                                                  \
    longjmp(ks_test_jump, 1);                                                                      \
  } while (0)

#define KS_ASSERT(cond)                                                                            \
  do {                                                                                             \
    if (!(cond))                                                                                   \
      KS_FAIL("not true: %s", #cond);                                                              \
  } while (0)

#define KS_ASSERT_STATUS(want, call)                                                               \
  do {                                                                                             \
    ks_status ks_st_ = (call);                                                                     \
    if (ks_st_ != (want))                                                                          \
      KS_FAIL("%s: got %s, want %s", #call, ks_status_name(ks_st_), ks_status_name(want));         \
  } while (0)
#define KS_ASSERT_OK(call) KS_ASSERT_STATUS(KS_OK, call)

#define KS_ASSERT_CMP_(a, op, b)                                                                   \
  do {                                                                                             \
    intmax_t ks_a_ = (intmax_t)(a), ks_b_ = (intmax_t)(b);                                         \
    if (!(ks_a_ op ks_b_))                                                                         \
      KS_FAIL("%s %s %s: %" PRIdMAX " and %" PRIdMAX, #a, #op, #b, ks_a_, ks_b_);                  \
  } while (0)
#define KS_ASSERT_EQ(a, b) KS_ASSERT_CMP_(a, ==, b)
#define KS_ASSERT_NE(a, b) KS_ASSERT_CMP_(a, !=, b)
#define KS_ASSERT_LE(a, b) KS_ASSERT_CMP_(a, <=, b)
#define KS_ASSERT_LT(a, b) KS_ASSERT_CMP_(a, <, b)
#define KS_ASSERT_GE(a, b) KS_ASSERT_CMP_(a, >=, b)

#define KS_ASSERT_NEAR(a, b, tol)                                                                  \
  do {                                                                                             \
    double ks_a_ = (double)(a), ks_b_ = (double)(b), ks_t_ = (double)(tol);                        \
    if (!(fabs(ks_a_ - ks_b_) <= ks_t_))                                                           \
      KS_FAIL("%s near %s: %.9g and %.9g differ by more than %g", #a, #b, ks_a_, ks_b_, ks_t_);    \
  } while (0)

#define KS_ASSERT_STR(a, b)                                                                        \
  do {                                                                                             \
    const char *ks_a_ = (a), *ks_b_ = (b);                                                         \
    if (ks_a_ == NULL || ks_b_ == NULL || strcmp(ks_a_, ks_b_) != 0)                               \
      KS_FAIL("%s is \"%s\", want \"%s\"", #a, ks_a_ ? ks_a_ : "NULL", ks_b_ ? ks_b_ : "NULL");    \
  } while (0)

/* Leaves the test; TAP shows the reason. */
#define KS_SKIP(reason)                                                                            \
  do {                                                                                             \
    ks_test_skip_reason = (reason);                                                                \
    longjmp(ks_test_jump, 2);                                                                      \
  } while (0)

/* Runs every test, or those whose name contains the first argument. */
static inline int
ks_test_run_all(int argc, char **argv)
{
  volatile int n = 0, n_failed = 0; /* changed between setjmp and longjmp */
  const char *filter = argc > 1 ? argv[1] : "";

  for (ks_test *t = ks_test_first; t != NULL; t = t->next)
    n += strstr(t->name, filter) != NULL;
  printf("1..%d\n", n);
  n = 0;
  for (ks_test *volatile t = ks_test_first; t != NULL; t = t->next) {
    int how;

    if (strstr(t->name, filter) == NULL)
      continue;
    how = setjmp(ks_test_jump);
    if (how == 0)
      t->fn();
    n_failed += how == 1;
    printf("%sok %d - %s%s%s\n", how == 1 ? "not " : "", ++n, t->name, how == 2 ? " # SKIP " : "",
           how == 2 ? ks_test_skip_reason : "");
    fflush(stdout);
  }
  return n_failed > 0 || n == 0;
}

#define KS_TEST_MAIN                                                                               \
  int main(int argc, char **argv)                                                                  \
  {                                                                                                \
    return ks_test_run_all(argc, argv);                                                            \
  }

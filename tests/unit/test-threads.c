/* test-threads.c - the pool runs every member once per run, barriers order their work, idle is
 * idle. All waits are bounded by the pool itself; the tests pass on one processor as well. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/threads.h"
#include "tests/ks-clock.h"
#include "tests/ks-test.h"

#include <sys/resource.h>
#include <time.h>

#define N_RUN 2000u
#define N_PHASE 50u

typedef struct shared {
  ks_threads *threads;
  uint32_t n_member;
  uint32_t calls[8];
  uint32_t value[8]; /* each member writes its own, all read all */
  uint32_t n_wrong;
} shared;

static void
count_call(void *user, uint32_t member, uint32_t n_member)
{
  shared *s = user;

  s->calls[member]++;
  if (n_member != s->n_member)
    __atomic_fetch_add(&s->n_wrong, 1, __ATOMIC_RELAXED);
}

static void
run_counts(uint32_t n_thread)
{
  ks_alloc *a = ks_alloc_new();
  shared s = {.n_member = n_thread};

  KS_ASSERT_OK(ks_threads_new(a, n_thread, &s.threads, NULL));
  KS_ASSERT_EQ(ks_threads_get_n(s.threads), n_thread);
  for (uint32_t i = 1; i <= N_RUN; i++) {
    ks_threads_run(s.threads, count_call, &s);
    for (uint32_t m = 0; m < n_thread; m++)
      KS_ASSERT_EQ(s.calls[m], i); /* the run is over when it returns */
  }
  KS_ASSERT_EQ(s.n_wrong, 0);
  ks_threads_free(s.threads);
  ks_alloc_free(a);
}

KS_TEST(threads, every_member_runs_once)
{
  run_counts(1);
  run_counts(2);
}

/* More members than this machine has processors: nobody may starve. */
KS_TEST(threads, more_members_than_processors)
{
  run_counts(7);
}

/* Behind a barrier every member sees what the others wrote before it. */
static void
exchange(void *user, uint32_t member, uint32_t n_member)
{
  shared *s = user;

  for (uint32_t phase = 1; phase <= N_PHASE; phase++) {
    s->value[member] = phase * 10 + member;
    ks_threads_barrier(s->threads);
    for (uint32_t m = 0; m < n_member; m++)
      if (s->value[m] != phase * 10 + m)
        __atomic_fetch_add(&s->n_wrong, 1, __ATOMIC_RELAXED);
    ks_threads_barrier(s->threads);
  }
}

KS_TEST(threads, barriers_order_the_members)
{
  for (uint32_t n = 1; n <= 5; n++) {
    ks_alloc *a = ks_alloc_new();
    shared s = {.n_member = n};

    KS_ASSERT_OK(ks_threads_new(a, n, &s.threads, NULL));
    for (int i = 0; i < 20; i++)
      ks_threads_run(s.threads, exchange, &s);
    KS_ASSERT_EQ(s.n_wrong, 0);
    ks_threads_free(s.threads);
    ks_alloc_free(a);
  }
}

/* After its short spin a pool sleeps: well under the 2 ms in 10 s that an idle program may take. */
KS_TEST(threads, idle_takes_no_processor_time)
{
  ks_alloc *a = ks_alloc_new();
  shared s = {.n_member = 4};
  struct timespec pause = {0, 20000000}, rest = {0, 400000000};
  double before;

  KS_ASSERT_OK(ks_threads_new(a, 4, &s.threads, NULL));
  ks_threads_run(s.threads, count_call, &s);
  nanosleep(&pause, NULL);
  before = ks_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  nanosleep(&rest, NULL);
  KS_ASSERT(ks_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - before < 0.001);
  ks_threads_run(s.threads, count_call, &s); /* and wakes again */
  KS_ASSERT_EQ(s.calls[3], 2);
  ks_threads_free(s.threads);
  ks_alloc_free(a);
}

static void
owner_is_late(void *user, uint32_t member, uint32_t n_member)
{
  shared *s = user;
  struct timespec late = {0, 200000000};

  (void)n_member;
  if (member == 0)
    nanosleep(&late, NULL);
  ks_threads_barrier(s->threads);
}

/* Members that wait at a barrier for one that the system keeps from running give their processors
 * away: three of them for a fifth of a second take next to nothing, spinning it would be 600 ms. */
KS_TEST(threads, barriers_do_not_spin_for_long)
{
  ks_alloc *a = ks_alloc_new();
  shared s = {0};
  double before;

  KS_ASSERT_OK(ks_threads_new(a, 4, &s.threads, NULL));
  for (uint32_t n = 4; n >= 2; n -= 2) { /* with as many as processors they spin at first */
    before = ks_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    ks_threads_run(s.threads, owner_is_late, &s);
    KS_ASSERT(ks_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - before < 0.01);
    ks_threads_free(s.threads);
    KS_ASSERT_OK(ks_threads_new(a, 2, &s.threads, NULL));
  }
  ks_threads_free(s.threads);
  ks_alloc_free(a);
}

static void
note_priority(void *user, uint32_t member, uint32_t n_member)
{
  shared *s = user;

  (void)n_member;
  s->value[member] = (uint32_t)getpriority(PRIO_PROCESS, 0);
}

/* Workers stand behind the window and other programs; who calls keeps its own priority. */
KS_TEST(threads, workers_run_at_nice_5)
{
  const int own = getpriority(PRIO_PROCESS, 0);
  ks_alloc *a = ks_alloc_new();
  shared s = {0};

  KS_ASSERT_OK(ks_threads_new(a, 3, &s.threads, NULL));
  ks_threads_run(s.threads, note_priority, &s);
  KS_ASSERT_EQ(s.value[0], own);
  KS_ASSERT_EQ(s.value[1], own < 5 ? 5 : own);
  KS_ASSERT_EQ(s.value[2], own < 5 ? 5 : own);
  ks_threads_free(s.threads);
  ks_alloc_free(a);
}

KS_TEST(threads, chooses_a_number_itself)
{
  ks_alloc *a = ks_alloc_new();
  ks_threads *threads = NULL;

  KS_ASSERT_OK(ks_threads_new(a, 0, &threads, NULL));
  KS_ASSERT_GE(ks_threads_get_n(threads), 1);
  ks_threads_free(threads);
  ks_threads_free(NULL);
  ks_alloc_free(a);
}

KS_TEST(threads, refuses_what_cannot_be)
{
  ks_alloc *a = ks_alloc_new();
  ks_threads *threads = NULL;
  ks_error err;

  KS_ASSERT_STATUS(KS_ERR_ARG, ks_threads_new(a, 100000, &threads, &err));
  for (int64_t n = 0; n < 3; n++) {
    ks_alloc_fail_after(a, n);
    KS_ASSERT_STATUS(KS_ERR_NOMEM, ks_threads_new(a, 2, &threads, &err));
  }
  KS_ASSERT(threads == NULL);
  ks_alloc_fail_after(a, -1);
  ks_alloc_free(a); /* asserts that nothing is left */
}

KS_TEST_MAIN

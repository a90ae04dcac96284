/* test-sharing.c - decode beside other programs, on two processors that two busy programs take.
 * The test runs five steps of nice behind them, as the engine does in the program.  Times are those
 * that the system counts for each side, so that whatever else runs on the machine takes from both.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ks-clock.h"
#include "tests/unit/timeline-fixture.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_BUSY 2
#define N_ROUND 4

/* Of one side, in seconds. */
typedef struct usage {
  double own, busy; /* processor time of this process and of the busy programs */
  uint32_t n_step;
} usage;

static double
processor_seconds(pid_t pid)
{
  clockid_t clock;

  KS_ASSERT_EQ(clock_getcpuclockid(pid, &clock), 0);
  return ks_clock_seconds(clock);
}

/* This process and what it starts on two processors; false where there are fewer. */
static bool
take_two_processors(void)
{
  cpu_set_t all, two;

  CPU_ZERO(&two);
  if (sched_getaffinity(0, sizeof(all), &all) != 0)
    return false;
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; cpu++)
    if (CPU_ISSET(cpu, &all))
      CPU_SET(cpu, &two);
  return CPU_COUNT(&two) == 2 && sched_setaffinity(0, sizeof(two), &two) == 0;
}

/* A program that computes and never waits; it ends with this one. */
static pid_t
start_busy(void)
{
  const pid_t pid = fork();

  if (pid == 0) {
    volatile uint32_t n = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
      n = n + 1;
  }
  return pid;
}

static void
signal_all(const pid_t *busy, int number)
{
  for (uint32_t i = 0; i < N_BUSY; i++)
    if (busy[i] > 0)
      kill(busy[i], number);
}

static ks_timeline *
open_timeline(tl_fixture *f, uint32_t n_thread)
{
  ks_timeline_params params;
  ks_timeline *tl = NULL;

  memset(f, 0, sizeof(*f));
  f->n_thread = n_thread;
  f->alloc = ks_alloc_new();
  KS_ASSERT(f->alloc != NULL);
  KS_ASSERT_OK(tl_try_open(f, "llama/model.gguf", "dbtrimkv/gate_tied.safetensors", 4, 400, 400));
  params = ks_timeline_default_params(f->model, f->gate, f->pool);
  params.chunk = 16;
  params.buffer = 8;
  params.n_keep = 64 * f->n_stream;
  KS_ASSERT_OK(ks_timeline_new(f->alloc, &params, &tl, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 100, NULL, NULL));
  return tl;
}

/* Decodes for so many seconds more, beside the busy programs if they run. */
static void
decode_for(ks_timeline *tl, double seconds, const pid_t *busy, usage *u)
{
  const double end = ks_clock_seconds(CLOCK_MONOTONIC) + seconds;

  u->own -= ks_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (uint32_t i = 0; i < N_BUSY; i++)
    u->busy -= processor_seconds(busy[i]);
  while (ks_clock_seconds(CLOCK_MONOTONIC) < end) {
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(5) + u->n_step % 4000, 1, NULL, NULL));
    u->n_step++;
  }
  u->own += ks_clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (uint32_t i = 0; i < N_BUSY; i++)
    u->busy += processor_seconds(busy[i]);
}

static void
measure(const pid_t *busy, usage *two, usage *one, usage *alone)
{
  tl_fixture f[2];
  ks_timeline *tl[2];

  for (uint32_t i = 0; i < 2; i++)
    tl[i] = open_timeline(&f[i], i + 1);
  decode_for(tl[1], 0.3, busy, alone);
  signal_all(busy, SIGCONT);
  for (uint32_t round = 0; round < N_ROUND; round++) {
    decode_for(tl[0], 0.25, busy, one);
    decode_for(tl[1], 0.25, busy, two);
  }
  for (uint32_t i = 0; i < 2; i++) {
    ks_timeline_free(tl[i]);
    tl_close(&f[i]);
  }
}

/* Two members whose processors two programs want are not much slower than one, though each of them
 * waits for the other twenty times a step (yielding in barriers made it thirty times); a step costs
 * little more processor time than without them; and the programs are not starved. */
KS_TEST(sharing, beside_busy_programs)
{
  usage two = {0}, one = {0}, alone = {0};
  pid_t busy[N_BUSY];

  if (!take_two_processors())
    KS_SKIP("there is one processor only");
  for (uint32_t i = 0; i < N_BUSY; i++)
    busy[i] = start_busy(); /* before there are threads */
  signal_all(busy, SIGSTOP);
  setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 5);
  measure(busy, &two, &one, &alone);
  signal_all(busy, SIGKILL);
  for (uint32_t i = 0; i < N_BUSY; i++)
    waitpid(busy[i], NULL, 0);
  printf(
      "# beside: %u steps by two, %u by one; %.0f us of processors each, alone %.0f; share of the "
      "programs %.2f\n",
      two.n_step, one.n_step, 1e6 * two.own / two.n_step, 1e6 * alone.own / alone.n_step,
      two.busy / (two.busy + two.own));
  KS_ASSERT_LT(one.n_step, 12 * two.n_step);
  KS_ASSERT(two.own / two.n_step < 3 * alone.own / alone.n_step);
  KS_ASSERT(4 * two.busy > two.own); /* three to one where nobody else runs */
}

KS_TEST_MAIN

/* threads.c - see threads.h.
 * All waiting goes through wait_change: spin while the answer is likely to come within
 * microseconds, then sleep on one condition variable.  Whoever changes a word that others wait for
 * wakes them only when somebody sleeps, so that the common case makes no system call. Nobody
 * yields: who sleeps gets the processor back at once when it wakes, who yielded waits for the whole
 * slice of another program.  How long a worker spins between two runs follows the past: it grows
 * when runs follow each other closely and shrinks when a sleep turned out to be long.  In barriers
 * members spin shorter for a while after one of them was put aside by the system.  With more
 * members than processors nobody spins at all. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/threads.h"

#include "engine/cpu-topology.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MAX_MEMBERS 256u
#define SPIN_MIN_NS 20000u     /* between two runs: the least and the most a worker spins */
#define SPIN_MAX_NS 200000u    /* a gap this short costs more by sleeping than by spinning */
#define BARRIER_SPIN_NS 30000u /* in a barrier the others are at work: they come soon */
#define HASTY_SPIN_NS 4000u    /* the same beside other programs */
#define ASIDE_NS 300000u       /* a sleep in a barrier that tells of them */
#define N_HASTY 512u           /* waits in barriers until they are forgotten */
#define WORKER_NICE 5

struct ks_threads {
  ks_alloc *alloc;
  uint32_t n_member, n_started;
  bool may_spin;      /* false when the members outnumber the processors */
  pthread_t *workers; /* [n_member - 1] */
  struct worker *args;
  ks_thread_fn fn; /* of the run, published by epoch */
  void *user;
  bool quit;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  atomic_uint n_asleep;
  atomic_uint n_hasty; /* waits that are to be short; a count lost between members is no harm */
  _Alignas(64) atomic_uint epoch; /* number of runs begun */
  _Alignas(64) atomic_uint n_arrived;
  _Alignas(64) atomic_uint phase; /* number of barriers passed */
};

struct worker {
  ks_threads *pool;
  uint32_t member;
};

uint64_t
ks_now_ns(void)
{
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

/* Returns when *word is no longer seen: for how long it slept, 0 = not at all. */
static uint64_t
wait_change(ks_threads *pool, atomic_uint *word, unsigned seen, uint64_t spin_ns)
{
  uint64_t begin = 0;

  for (unsigned i = 0; pool->may_spin; i++) {
    if (atomic_load_explicit(word, memory_order_acquire) != seen)
      return 0;
    relax();
    if (i % 16 == 15) {
      const uint64_t t = ks_now_ns();

      begin = begin == 0 ? t : begin;
      if (t - begin > spin_ns)
        break;
    }
  }
  begin = ks_now_ns();
  pthread_mutex_lock(&pool->mutex);
  atomic_fetch_add(&pool->n_asleep, 1);
  while (atomic_load(word) == seen)
    pthread_cond_wait(&pool->changed, &pool->mutex);
  atomic_fetch_sub(&pool->n_asleep, 1);
  pthread_mutex_unlock(&pool->mutex);
  return ks_now_ns() - begin + 1;
}

/* After a change of a word: the store and this load are sequentially consistent, as are the
 * sleeper's count and its last look at the word, so one of the two sees the other. */
static void
wake_sleepers(ks_threads *pool)
{
  if (atomic_load(&pool->n_asleep) == 0)
    return;
  pthread_mutex_lock(&pool->mutex);
  pthread_cond_broadcast(&pool->changed);
  pthread_mutex_unlock(&pool->mutex);
}

/* Until all have arrived. */
static void
wait_for_others(ks_threads *pool, unsigned phase)
{
  const unsigned n_hasty = atomic_load_explicit(&pool->n_hasty, memory_order_relaxed);
  const uint64_t slept_ns =
      wait_change(pool, &pool->phase, phase, n_hasty > 0 ? HASTY_SPIN_NS : BARRIER_SPIN_NS);

  if (slept_ns > ASIDE_NS)
    atomic_store_explicit(&pool->n_hasty, N_HASTY, memory_order_relaxed);
  else if (n_hasty > 0)
    atomic_store_explicit(&pool->n_hasty, n_hasty - 1, memory_order_relaxed);
}

void
ks_threads_barrier_reset(ks_threads *pool, uint32_t *word)
{
  unsigned phase;

  if (pool->n_member == 1) {
    *word = 0;
    return;
  }
  phase = atomic_load_explicit(&pool->phase, memory_order_acquire);
  if (atomic_fetch_add_explicit(&pool->n_arrived, 1, memory_order_acq_rel) + 1 < pool->n_member) {
    wait_for_others(pool, phase);
    return;
  }
  __atomic_store_n(word, 0, __ATOMIC_RELAXED); /* the last one: nobody else is at work */
  atomic_store_explicit(&pool->n_arrived, 0, memory_order_relaxed);
  atomic_store(&pool->phase, phase + 1);
  wake_sleepers(pool);
}

void
ks_threads_barrier(ks_threads *pool)
{
  uint32_t nothing = 0;

  ks_threads_barrier_reset(pool, &nothing);
}

uint32_t
ks_threads_get_n_barriers(const ks_threads *pool)
{
  return atomic_load(&pool->phase);
}

uint32_t
ks_threads_get_n_runs(const ks_threads *pool)
{
  return atomic_load(&pool->epoch);
}

static void
lower_priority(void)
{
  int now = getpriority(PRIO_PROCESS, 0);

  /* On Linux both act on the calling thread alone. */
  if (now < WORKER_NICE)
    (void)setpriority(PRIO_PROCESS, 0, WORKER_NICE);
}

static void *
worker_main(void *arg)
{
  struct worker *self = arg;
  ks_threads *pool = self->pool;
  uint64_t spin_ns = SPIN_MIN_NS;
  unsigned seen = 0;

  lower_priority();
  for (;;) {
    const uint64_t slept_ns = wait_change(pool, &pool->epoch, seen, spin_ns);

    if (slept_ns > 0) {
      const bool close = slept_ns < SPIN_MAX_NS;

      spin_ns = close ? spin_ns * 2 : spin_ns / 2;
      spin_ns = spin_ns < SPIN_MIN_NS ? SPIN_MIN_NS : spin_ns;
      spin_ns = spin_ns > SPIN_MAX_NS ? SPIN_MAX_NS : spin_ns;
    }
    seen++;
    if (pool->quit)
      return NULL;
    pool->fn(pool->user, self->member, pool->n_member);
    ks_threads_barrier(pool);
  }
}

void
ks_threads_run(ks_threads *pool, ks_thread_fn fn, void *user)
{
  if (pool->n_member > 1) {
    pool->fn = fn;
    pool->user = user;
    atomic_fetch_add(&pool->epoch, 1);
    wake_sleepers(pool);
  }
  fn(user, 0, pool->n_member);
  ks_threads_barrier(pool);
}

uint32_t
ks_threads_get_n(const ks_threads *pool)
{
  return pool->n_member;
}

/* Whole processors that the control group of this process may use; MAX_MEMBERS without a quota. */
static uint32_t
read_quota(void)
{
  char group[512] = "", text[512];
  uint32_t n = MAX_MEMBERS;
  char *line, *end;

  if (ks_sys_read_text("/proc/self/cgroup", text, sizeof(text)) &&
      (line = strstr(text, "0::/")) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    snprintf(group, sizeof(group), "%s", line + 3);
  }
  for (;;) { /* the group's own quota and those of the groups above it */
    char path[600];
    long quota, period;

    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", strcmp(group, "/") == 0 ? "" : group);
    if (ks_sys_read_text(path, text, sizeof(text)) && (quota = strtol(text, &end, 10)) > 0 &&
        (period = strtol(end, NULL, 10)) > 0 && quota / period < (long)n)
      n = quota < period ? 1 : (uint32_t)(quota / period);
    if ((end = strrchr(group, '/')) == NULL)
      break;
    *end = '\0';
  }
  return n;
}

static uint32_t
count_usable(uint32_t *out_n_processor)
{
  cpu_set_t set;
  uint32_t n = 1, quota = read_quota();

  *out_n_processor = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    n = ks_cpu_count_cores("/sys", &set);
    *out_n_processor = (uint32_t)CPU_COUNT(&set);
  }
  n = n < quota ? n : quota;
  return n < 1 ? 1 : n;
}

static ks_status
start_workers(ks_threads *pool, ks_error *err)
{
  sigset_t blocked, before;
  int rc = 0;

  /* Signals for the process go to its other threads; faults stay with the thread that made them. */
  sigfillset(&blocked);
  sigdelset(&blocked, SIGBUS);
  sigdelset(&blocked, SIGSEGV);
  sigdelset(&blocked, SIGFPE);
  sigdelset(&blocked, SIGILL);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  while (rc == 0 && pool->n_started + 1 < pool->n_member) {
    struct worker *arg = &pool->args[pool->n_started];

    arg->pool = pool;
    arg->member = pool->n_started + 1;
    rc = pthread_create(&pool->workers[pool->n_started], NULL, worker_main, arg);
    pool->n_started += rc == 0;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (rc != 0)
    return ks_fail(err, KS_ERR_NOMEM, "the system refused to start thread %u of %u: %s",
                   pool->n_started + 1, pool->n_member, strerror(rc));
  return KS_OK;
}

ks_status
ks_threads_new(ks_alloc *a, uint32_t n_thread, ks_threads **out, ks_error *err)
{
  uint32_t n_processor, n_usable = count_usable(&n_processor);
  ks_threads *pool;
  ks_status status;

  if (n_thread > MAX_MEMBERS)
    return ks_fail(err, KS_ERR_ARG, "%u threads asked for; at most %u are possible", n_thread,
                   MAX_MEMBERS);
  pool = ks_mem_new(a, KS_MEM_HOST, 1, sizeof(*pool));
  if (pool == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the thread pool");
  pool->alloc = a;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->changed, NULL);
  pool->n_member = n_thread == 0 ? (n_usable < MAX_MEMBERS ? n_usable : MAX_MEMBERS) : n_thread;
  pool->may_spin = pool->n_member <= n_processor;
  pool->workers = ks_mem_new(a, KS_MEM_HOST, pool->n_member, sizeof(*pool->workers));
  pool->args = ks_mem_new(a, KS_MEM_HOST, pool->n_member, sizeof(*pool->args));
  if (pool->workers == NULL || pool->args == NULL)
    status = ks_fail(err, KS_ERR_NOMEM, "no memory for the thread pool");
  else
    status = start_workers(pool, err);
  if (status != KS_OK) {
    ks_threads_free(pool);
    return status;
  }
  *out = pool;
  return KS_OK;
}

void
ks_threads_free(ks_threads *pool)
{
  if (pool == NULL)
    return;
  pool->quit = true;
  atomic_fetch_add(&pool->epoch, 1);
  wake_sleepers(pool);
  for (uint32_t i = 0; i < pool->n_started; i++)
    pthread_join(pool->workers[i], NULL);
  pthread_cond_destroy(&pool->changed);
  pthread_mutex_destroy(&pool->mutex);
  ks_mem_free(pool->workers);
  ks_mem_free(pool->args);
  ks_mem_free(pool);
}

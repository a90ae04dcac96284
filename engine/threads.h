/* threads.h - a pool of workers that runs one function on every member, and a spin barrier.
 * Between two runs the workers spin for a short while and then sleep, so that an idle program uses
 * no CPU.  Workers run at nice 5: the window pre-empts them.
 * Threads: one owner calls ks_threads_run; the function runs on all members, the owner included. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/alloc.h"

KS_BEGIN_DECLS

typedef struct ks_threads ks_threads;
typedef void (*ks_thread_fn)(void *user, uint32_t member, uint32_t n_member);

/* Time that passes, from some moment on. */
uint64_t ks_now_ns(void);

/* n_thread 0 = the number of physical cores this process may use (affinity and cgroup quota), on
 * machines with fast and slow ones of the fast ones (cpu-topology.h). */
KS_CHECK ks_status ks_threads_new(ks_alloc *a, uint32_t n_thread, ks_threads **out, ks_error *err);
void ks_threads_free(ks_threads *threads); /* NULL is allowed */
uint32_t ks_threads_get_n(const ks_threads *threads);
/* Calls fn(user, 0..n-1, n) on all members and returns when all have returned. */
void ks_threads_run(ks_threads *threads, ks_thread_fn fn, void *user);
/* All members of the current run wait for each other.  Who waits long sleeps. */
void ks_threads_barrier(ks_threads *threads);
/* The same; *word, which no member touches while it waits, is 0 when they go on. */
void ks_threads_barrier_reset(ks_threads *threads, uint32_t *word);
/* Barriers passed so far, ends of runs included; 0 with one member, which never waits. */
uint32_t ks_threads_get_n_barriers(const ks_threads *threads);
/* Runs so far; 0 with one member as well. */
uint32_t ks_threads_get_n_runs(const ks_threads *threads);

KS_END_DECLS

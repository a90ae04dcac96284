/* ks-clock.h - seconds of one of the system's clocks, for tests and measuring programs. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <time.h>

/* CLOCK_MONOTONIC: time that passes; CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID: what the
 * processors did for the caller, so that what other programs take away is not counted. */
static inline double
ks_clock_seconds(clockid_t clock)
{
  struct timespec ts = {0};

  clock_gettime(clock, &ts);
  return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

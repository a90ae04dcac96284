/* speed-server.h - the line protocol of speed measurements, shared by the engine's and the peer's
 * side. One command a line on stdin, one JSON object a line on stdout: prompt N   evaluate N tokens
 * from an empty state       -> {"ms": t} depth N    bring the state to N tokens, from empty     ->
 * {"ms": t} decode N   N tokens one by one, greedy choice included -> {"ms": t} rss        resident
 * and peak memory                    -> {"rss_kib": a, "peak_kib": b} quit Both sides evaluate the
 * same ids, so that only the engines differ.  The driver (compare-peer.py) alternates between the
 * two processes. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct speed_ops {
  void *user;
  /* Each returns 0, or a message that ends the process. */
  const char *(*clear)(void *user);
  const char *(*eval)(void *user, const int32_t *ids, int32_t n);
  const char *(*decode)(void *user, int32_t id, int32_t *out_next);
  int32_t n_vocab;
} speed_ops;

/* Token i of every measurement: spread over the vocabulary, clear of the control tokens in front.
 */
static inline int32_t
speed_token(int32_t i, int32_t n_vocab)
{
  return 100 + (int32_t)(((int64_t)i * 7919 + 13) % (n_vocab - 200));
}

static inline double
speed_now_ms(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline void
speed_print_rss(void)
{
  char line[256];
  long rss = 0, peak = 0;
  FILE *f = fopen("/proc/self/status", "r");

  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    if (strncmp(line, "VmRSS:", 6) == 0)
      rss = strtol(line + 6, NULL, 10);
    if (strncmp(line, "VmHWM:", 6) == 0)
      peak = strtol(line + 6, NULL, 10);
  }
  if (f != NULL)
    fclose(f);
  printf("{\"rss_kib\": %ld, \"peak_kib\": %ld}\n", rss, peak);
}

static inline const char *
speed_fill(const speed_ops *ops, int32_t n)
{
  int32_t *ids = (int32_t *)malloc((size_t)n * sizeof *ids);
  const char *problem = ops->clear(ops->user);

  if (ids == NULL)
    return "no memory for ids";
  for (int32_t i = 0; i < n; i++)
    ids[i] = speed_token(i, ops->n_vocab);
  if (problem == NULL)
    problem = ops->eval(ops->user, ids, n);
  free(ids);
  return problem;
}

static inline const char *
speed_decode(const speed_ops *ops, int32_t n)
{
  const char *problem = NULL;
  int32_t next = speed_token(1, ops->n_vocab);

  for (int32_t i = 0; i < n && problem == NULL; i++)
    problem = ops->decode(ops->user, next, &next);
  return problem;
}

/* Serves commands until quit or the end of input; the exit status of the program. */
static inline int
speed_serve(const speed_ops *ops)
{
  char line[128];

  printf("{\"ready\": true}\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    char *arg = strchr(line, ' ');
    int32_t n = arg != NULL ? (int32_t)strtol(arg, NULL, 10) : 0;
    const char *problem = NULL;
    double start = speed_now_ms();

    if (strncmp(line, "quit", 4) == 0)
      return 0;
    if (strncmp(line, "rss", 3) == 0) {
      speed_print_rss();
      fflush(stdout);
      continue;
    }
    if (n < 1)
      problem = "a command needs a count of at least 1";
    else if (strncmp(line, "prompt ", 7) == 0 || strncmp(line, "depth ", 6) == 0)
      problem = speed_fill(ops, n);
    else if (strncmp(line, "decode ", 7) == 0)
      problem = speed_decode(ops, n);
    else
      problem = "unknown command";
    if (problem != NULL) {
      fprintf(stderr, "%s: %s", problem, line);
      return 1;
    }
    printf("{\"ms\": %.3f}\n", speed_now_ms() - start);
    fflush(stdout);
  }
  return 0;
}

static inline int32_t
speed_argmax(const float *logits, int32_t n)
{
  int32_t best = 0;

  for (int32_t i = 1; i < n; i++)
    if (logits[i] > logits[best])
      best = i;
  return best;
}

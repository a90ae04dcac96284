/* speed-server.h - the line protocol of speed measurements, shared by the engine's and the peer's
 * side: one command a line on stdin, one JSON object a line on stdout.  Both sides evaluate the
 * same ids, so that only the engines differ; compare-peer.py alternates between the processes.
 * Commands: see speed_run.  A command that fails ends the process with a sentence on stderr.
 * Over 200 lines because the peer's side is built outside the tree, from this one file. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct speed_ops {
  void *user;
  /* Each returns NULL, or a message that ends the process. */
  const char *(*clear)(void *user);
  const char *(*eval)(void *user, const int32_t *ids, int32_t n);
  const char *(*decode)(void *user, int32_t id, int32_t *out_next);
  /* The greedy choice after the last eval. */
  int32_t (*choose)(void *user);
  /* These may be NULL: the side cannot do it. */
  const char *(*rewind)(void *user, int32_t n);  /* drops all tokens but the first n */
  const char *(*threads)(void *user, int32_t n); /* from the next command on */
  const char *(*tokens)(void *user, char *text); /* prints the text's ids */
  const char *(*info)(void *user);               /* prints what is known of the model */
  int32_t n_vocab;
  int32_t n_at; /* tokens of the present state */
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

static inline int32_t
speed_argmax(const float *logits, int32_t n)
{
  int32_t best = 0;

  for (int32_t i = 1; i < n; i++)
    if (logits[i] > logits[best])
      best = i;
  return best;
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

/* Tokens up to n in all, from the present state. */
static inline const char *
speed_extend(speed_ops *ops, int32_t n)
{
  int32_t n_new = n - ops->n_at;
  const char *problem;
  int32_t *ids;

  if (n_new < 1)
    return "the state is longer than that";
  ids = (int32_t *)malloc((size_t)n_new * sizeof *ids);
  if (ids == NULL)
    return "no memory for ids";
  for (int32_t i = 0; i < n_new; i++)
    ids[i] = speed_token(ops->n_at + i, ops->n_vocab);
  problem = ops->eval(ops->user, ids, n_new);
  free(ids);
  ops->n_at = n;
  return problem;
}

static inline const char *
speed_clear(speed_ops *ops)
{
  ops->n_at = 0;
  return ops->clear(ops->user);
}

static inline const char *
speed_decode(speed_ops *ops, int32_t n)
{
  const char *problem = NULL;
  int32_t next = speed_token(1, ops->n_vocab);

  for (int32_t i = 0; i < n && problem == NULL; i++)
    problem = ops->decode(ops->user, next, &next);
  ops->n_at += n;
  return problem;
}

/* text: ids of a prompt, read into an empty state; prints the n ids chosen greedily after it. */
static inline const char *
speed_greedy(speed_ops *ops, int32_t n, char *text)
{
  int32_t ids[256], n_ids = 0, next;
  const char *problem = speed_clear(ops);
  char *end;

  for (long id = strtol(text, &end, 10); end != text && n_ids < 256; id = strtol(text, &end, 10)) {
    ids[n_ids++] = (int32_t)id;
    text = end;
  }
  if (problem == NULL)
    problem = n_ids == 0 ? "greedy needs the ids of a prompt" : ops->eval(ops->user, ids, n_ids);
  if (problem != NULL)
    return problem;
  next = ops->choose(ops->user);
  printf("{\"ids\": [%d", next);
  for (int32_t i = 1; i < n && problem == NULL; i++) {
    problem = ops->decode(ops->user, next, &next);
    printf(", %d", next);
  }
  printf("]}\n");
  ops->n_at = n_ids + n - 1;
  return problem;
}

/* Commands that print an answer of their own; *out_known tells whether this was one. */
static inline const char *
speed_run_other(speed_ops *ops, const char *name, int32_t n, char *rest, int *out_known)
{
  *out_known = 1;
  if (strcmp(name, "rss") == 0) {
    speed_print_rss();
    return NULL;
  }
  if (strcmp(name, "greedy") == 0)
    return speed_greedy(ops, n, rest);
  if (strcmp(name, "tokens") == 0 && ops->tokens != NULL)
    return ops->tokens(ops->user, rest);
  if (strcmp(name, "info") == 0 && ops->info != NULL)
    return ops->info(ops->user);
  *out_known = 0;
  return NULL;
}

/* prompt N    N tokens from an empty state, timed     depth N    the same, as a preparation
 * extend N    up to N tokens from the present state   rewind N   back to the first N
 * decode N    N tokens one by one, greedy choice included
 * threads N   use N threads: each answers {"ms": t}
 * greedy N ID...   {"ids": [...]}: N greedy ids after a prompt
 * tokens TEXT      {"ids": [...]}    rss   resident and peak memory    info   about the model */
static inline const char *
speed_run(speed_ops *ops, char *line)
{
  char name[16] = "";
  int32_t n = 0;
  int used = 0, known;
  const char *problem;
  double start = speed_now_ms();

  line[strcspn(line, "\n")] = '\0';
  if (sscanf(line, "%15s%n", name, &used) == 1 && strcmp(name, "tokens") != 0) {
    char *end = line + used;

    n = (int32_t)strtol(end, &end, 10);
    used = (int)(end - line);
  }
  problem = speed_run_other(ops, name, n, line + used, &known);
  if (known || problem != NULL)
    return problem;
  if (n < 1)
    return "a command needs a count of at least 1";
  if (strcmp(name, "prompt") == 0 || strcmp(name, "depth") == 0) {
    problem = speed_clear(ops);
    if (problem == NULL)
      problem = speed_extend(ops, n);
  } else if (strcmp(name, "extend") == 0) {
    problem = speed_extend(ops, n);
  } else if (strcmp(name, "rewind") == 0 && ops->rewind != NULL) {
    problem = ops->rewind(ops->user, n);
    ops->n_at = n;
  } else if (strcmp(name, "threads") == 0 && ops->threads != NULL) {
    problem = ops->threads(ops->user, n);
  } else if (strcmp(name, "decode") == 0) {
    problem = speed_decode(ops, n);
  } else {
    problem = "unknown command";
  }
  if (problem == NULL)
    printf("{\"ms\": %.3f}\n", speed_now_ms() - start);
  return problem;
}

/* Serves commands until quit or the end of input; the exit status of the program. */
static inline int
speed_serve(speed_ops *ops)
{
  char line[4096];

  printf("{\"ready\": true}\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL && strncmp(line, "quit", 4) != 0) {
    const char *problem = speed_run(ops, line);

    if (problem != NULL) {
      fprintf(stderr, "%s: %s\n", problem, line);
      return 1;
    }
    fflush(stdout);
  }
  return 0;
}

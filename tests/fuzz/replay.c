/* replay.c - runs a fuzz target without libFuzzer: first every file of the kept corpus, then seeded
 * mutations of them.
 * Use: fuzz-X [--mutations N] [--seed S] [--only I] [--save FILE] FOLDER-OR-FILE...
 * KS_FUZZ_MUTATIONS in the environment overrides N.  Mutation I depends on S, I and the corpus
 * only; when it crashes its number is printed, and --only I (with --save to keep the bytes) repeats
 * it. Mutations know that the formats are full of little-endian lengths and of ASCII numbers: many
 * edit one of those, since blind noise seldom gets past the first check. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define N_ROOM 65536 /* bytes a mutated input may grow by */

typedef struct input {
  uint8_t *data;
  size_t n;
  char *path;
} input;

typedef struct corpus {
  input *inputs;
  size_t n;
} corpus;

/* The mutation under way, so that a crash can name it. */
static volatile uint64_t current_index;
static char current_text[64] = "corpus file";

static uint64_t
next_random(uint64_t *state)
{
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static size_t
below(uint64_t *state, size_t limit)
{
  return limit > 0 ? (size_t)(next_random(state) % limit) : 0;
}

static void
print_current(void)
{
  char text[128];
  int n = snprintf(text, sizeof text, "# stopped at %s %llu\n", current_text,
                   (unsigned long long)current_index);

  if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
    return;
}

static void
crash_signal_cb(int number)
{
  print_current();
  signal(number, SIG_DFL);
  raise(number);
}

/* Present only in a build with a sanitizer, whose reports bypass the signals. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void
watch_for_crashes(void)
{
  if (__sanitizer_set_death_callback != NULL) {
    __sanitizer_set_death_callback(print_current);
    return;
  }
  signal(SIGSEGV, crash_signal_cb);
  signal(SIGABRT, crash_signal_cb);
  signal(SIGBUS, crash_signal_cb);
  signal(SIGFPE, crash_signal_cb);
  signal(SIGILL, crash_signal_cb);
}

static bool
add_file(corpus *c, const char *path)
{
  FILE *f = fopen(path, "rb");
  input in = {.path = strdup(path)};
  input *grown = realloc(c->inputs, (c->n + 1) * sizeof(*grown));
  long n;

  if (grown != NULL)
    c->inputs = grown;
  if (f == NULL || in.path == NULL || grown == NULL || fseek(f, 0, SEEK_END) != 0 ||
      (n = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0)
    return false;
  in.n = (size_t)n;
  in.data = malloc(in.n + 1);
  if (in.data == NULL || fread(in.data, 1, in.n, f) != in.n)
    return false;
  fclose(f);
  c->inputs[c->n++] = in;
  return true;
}

static int
compare_inputs(const void *a, const void *b)
{
  return strcmp(((const input *)a)->path, ((const input *)b)->path);
}

/* A file, or the files of a folder; sorted, so that mutations do not depend on the file system. */
static bool
add_path(corpus *c, const char *path)
{
  struct stat st;
  struct dirent *entry;
  size_t first = c->n;
  DIR *dir;

  if (stat(path, &st) != 0)
    return false;
  if (!S_ISDIR(st.st_mode))
    return add_file(c, path);
  dir = opendir(path);
  if (dir == NULL)
    return false;
  while ((entry = readdir(dir)) != NULL) {
    char name[4096];

    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    if (entry->d_name[0] != '.' && !add_file(c, name)) {
      closedir(dir);
      return false;
    }
  }
  closedir(dir);
  if (c->n > first)
    qsort(c->inputs + first, c->n - first, sizeof(*c->inputs), compare_inputs);
  return true;
}

static void
corpus_done(corpus *c)
{
  for (size_t i = 0; i < c->n; i++) {
    free(c->inputs[i].data);
    free(c->inputs[i].path);
  }
  free(c->inputs);
}

static uint64_t
interesting_number(uint64_t *rng, size_t n)
{
  switch (below(rng, 10)) {
  case 0:
    return 0;
  case 1:
    return UINT64_MAX - below(rng, 40);
  case 2:
    return UINT64_C(1) << below(rng, 64);
  case 3:
    return (UINT64_C(1) << below(rng, 64)) - 1;
  case 4:
    return n - below(rng, 64);
  case 5:
    return below(rng, n + 1);
  case 6:
    return (uint64_t)INT64_MAX - below(rng, 40);
  default:
    return below(rng, 300);
  }
}

static void
put_number(uint8_t *p, uint64_t value, size_t n)
{
  for (size_t i = 0; i < n; i++)
    p[i] = (uint8_t)(value >> (8 * i));
}

/* Looks from a random place for what may be a 64-bit length (small, upper half zero) and edits it.
 */
static void
edit_length(uint64_t *rng, input *in)
{
  size_t start = below(rng, in->n), stop = in->n >= 8 ? in->n - 8 : 0;

  for (size_t at = start; at < stop && at < start + 256; at++) {
    uint8_t *p = in->data + at;
    uint64_t value = p[0] | (uint64_t)p[1] << 8;

    if (value == 0 || p[2] != 0 || p[3] != 0 || p[4] != 0 || p[5] != 0 || p[6] != 0 || p[7] != 0)
      continue;
    if (below(rng, 3) > 0)
      value += below(rng, 17) - 8;
    else
      value = interesting_number(rng, in->n);
    put_number(p, value, 8);
    return;
  }
}

/* The same for a number written in digits. */
static void
edit_digits(uint64_t *rng, input *in)
{
  size_t start = below(rng, in->n);

  for (size_t at = start; at < in->n && at < start + 256; at++)
    if (in->data[at] >= '0' && in->data[at] <= '9') {
      in->data[at] = (uint8_t)("0123456789-eE.["[below(rng, 15)]);
      if (below(rng, 2) == 0)
        return;
    }
}

static void
remove_bytes(uint64_t *rng, input *in)
{
  size_t at = below(rng, in->n), n = 1 + below(rng, below(rng, 4) == 0 ? in->n : 16);

  if (n > in->n - at)
    n = in->n - at;
  memmove(in->data + at, in->data + at + n, in->n - at - n);
  in->n -= n;
}

/* Inserts a piece of another input (or of the same), or writes it over what is there. */
static void
splice(uint64_t *rng, input *in, const input *other, size_t room, bool insert)
{
  size_t from = below(rng, other->n), n = 1 + below(rng, below(rng, 4) == 0 ? other->n : 64);
  size_t at = below(rng, in->n + 1);

  if (n > other->n - from)
    n = other->n - from;
  if (insert && n <= room - in->n) {
    memmove(in->data + at + n, in->data + at, in->n - at);
    in->n += n;
  } else if (n > in->n - at) {
    n = in->n - at;
  }
  if (n > 0)
    memcpy(in->data + at, other->data + from, n);
}

static void
mutate_once(uint64_t *rng, input *in, const input *other, size_t room)
{
  static const char marks[] = "{}[]\",:\\<|>%'/ \n\t\0\x7f\x80\xc3\xff";
  size_t at = below(rng, in->n), width = (size_t)1 << below(rng, 4);

  if (in->n == 0) {
    splice(rng, in, other, room, true);
    return;
  }
  switch (below(rng, 12)) {
  case 0:
  case 1:
    in->data[at] ^= (uint8_t)(1u << below(rng, 8));
    break;
  case 2:
    in->data[at] = (uint8_t)next_random(rng);
    break;
  case 3:
    if (width <= in->n - at)
      put_number(in->data + at, interesting_number(rng, in->n), width);
    break;
  case 4:
  case 5:
    edit_length(rng, in);
    break;
  case 6:
    edit_digits(rng, in);
    break;
  case 7:
    in->data[at] = (uint8_t)marks[below(rng, sizeof marks - 1)];
    break;
  case 8:
    remove_bytes(rng, in);
    break;
  case 9:
    splice(rng, in, other, room, true);
    break;
  case 10:
    splice(rng, in, other, room, false);
    break;
  default:
    in->n = below(rng, 4) == 0 ? at : in->n;
  }
}

/* The target gets a block of exactly n bytes, so that a sanitizer sees the first byte too many. */
static bool
run_one(const uint8_t *data, size_t n, const char *save)
{
  uint8_t *copy = malloc(n > 0 ? n : 1);

  if (copy == NULL)
    return false;
  if (n > 0)
    memcpy(copy, data, n);
  if (save != NULL) {
    FILE *f = fopen(save, "wb");

    if (f == NULL || fwrite(data, 1, n, f) != n || fclose(f) != 0)
      fprintf(stderr, "cannot write %s\n", save);
  }
  (void)LLVMFuzzerTestOneInput(copy, n);
  free(copy);
  return true;
}

static bool
run_mutation(const corpus *c, uint64_t seed, uint64_t index, input *work, size_t room,
             const char *save)
{
  uint64_t rng = seed * UINT64_C(0x100000001b3) + index;
  const input *base = &c->inputs[below(&rng, c->n)];
  size_t n_edits = 1 + below(&rng, below(&rng, 3) == 0 ? 8 : 3);

  current_index = index;
  memcpy(work->data, base->data, base->n);
  work->n = base->n;
  for (size_t i = 0; i < n_edits; i++)
    mutate_once(&rng, work, &c->inputs[below(&rng, c->n)], room);
  return run_one(work->data, work->n, save);
}

typedef struct options {
  uint64_t n_mutations, seed, only;
  const char *save;
  bool has_only;
} options;

static bool
parse_options(int argc, char **argv, options *o, corpus *c)
{
  const char *override = getenv("KS_FUZZ_MUTATIONS");

  for (int i = 1; i < argc; i++) {
    if (i + 1 < argc && strcmp(argv[i], "--mutations") == 0) {
      o->n_mutations = strtoull(argv[++i], NULL, 10);
    } else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
      o->seed = strtoull(argv[++i], NULL, 10);
    } else if (i + 1 < argc && strcmp(argv[i], "--save") == 0) {
      o->save = argv[++i];
    } else if (i + 1 < argc && strcmp(argv[i], "--only") == 0) {
      o->only = strtoull(argv[++i], NULL, 10);
      o->has_only = true;
    } else if (!add_path(c, argv[i])) {
      fprintf(stderr, "cannot read %s\n", argv[i]);
      return false;
    }
  }
  if (override != NULL && override[0] != '\0')
    o->n_mutations = strtoull(override, NULL, 10);
  if (c->n == 0)
    fprintf(stderr, "no corpus: name a folder with files\n");
  return c->n > 0;
}

static bool
run_all(const corpus *c, const options *o, input *work, size_t room)
{
  snprintf(current_text, sizeof current_text, "corpus file");
  for (size_t i = 0; i < c->n && !o->has_only; i++) {
    current_index = i;
    if (!run_one(c->inputs[i].data, c->inputs[i].n, NULL))
      return false;
  }
  snprintf(current_text, sizeof current_text, "seed %llu mutation", (unsigned long long)o->seed);
  if (o->has_only)
    return run_mutation(c, o->seed, o->only, work, room, o->save);
  for (uint64_t i = 0; i < o->n_mutations; i++)
    if (!run_mutation(c, o->seed, i, work, room, NULL))
      return false;
  return true;
}

int
main(int argc, char **argv)
{
  options o = {.seed = 1};
  corpus c = {NULL, 0};
  input work = {NULL, 0, NULL};
  size_t longest = 0;
  clock_t start = clock();
  bool done = false;

  if (parse_options(argc, argv, &o, &c)) {
    for (size_t i = 0; i < c.n; i++)
      longest = c.inputs[i].n > longest ? c.inputs[i].n : longest;
    work.data = malloc(longest + N_ROOM);
    watch_for_crashes();
    done = work.data != NULL && run_all(&c, &o, &work, longest + N_ROOM);
  }
  if (done)
    printf("%zu corpus files and %llu mutations (seed %llu) in %.1f s\n", c.n,
           (unsigned long long)(o.has_only ? 1 : o.n_mutations), (unsigned long long)o.seed,
           (double)(clock() - start) / CLOCKS_PER_SEC);
  free(work.data);
  corpus_done(&c);
  return done ? 0 : 1;
}

/* cpu-select.c - which entries survive: the exact K best over all streams, in linear time.
 * Scores become unsigned keys that sort alike (-0 equals +0, NaN counts as -inf).  Three passes
 * over digits of 11, 11 and 10 bits find the K-th largest key; entries that tie with it are told
 * apart by three more passes over pos (larger first), and one pos that several streams share goes
 * to the smaller stream (layer, then head).  All members count their slice of the entries, then
 * each of them adds up all counts and draws the same conclusion.  A count per stream (floors,
 * AdaKV) is the same selection inside each stream, where a later entry has the larger pos. Source:
 * docs/method.md, section 3. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-kv-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define N_DIGIT 2048u
#define N_PASS 3
#define BLOCK 256u /* keys made at a time */
#define KEY_INFINITE 0xFF800000u

static const uint32_t digit_shift[N_PASS] = {21, 10, 0};
static const uint32_t digit_mask[N_PASS] = {0x7FF, 0x7FF, 0x3FF};

/* What a member leaves for the others. */
typedef struct select_part {
  uint32_t score_count[N_PASS][N_DIGIT];
  uint32_t pos_count[N_PASS][N_DIGIT];
  uint64_t n_last;                   /* entries that tie in score and pos with the cut */
  uint32_t least_kept, most_dropped; /* keys */
} select_part;

/* One member's view of the selection. */
typedef struct select_job {
  const ks_cpu_ctx *ctx;
  const ks_op_kv_select *op;
  select_part *parts;
  uint32_t member, n_member;
  size_t begin, end; /* its slice of the flat array */
  uint32_t cut_key;  /* larger keys stay, smaller ones go */
  uint32_t cut_pos;  /* among equal keys: larger pos stays */
  uint64_t n_last;   /* among equal keys and pos: so many of the first streams stay */
} select_job;

/* Back to the score: NaN and -0 have become -inf and +0. */
static float
score_of(uint32_t key)
{
  const uint32_t bits = (key >> 31) != 0 ? key & 0x7FFFFFFFu : ~key;
  float score;

  memcpy(&score, &bits, sizeof score);
  return score;
}

/* Counts digits of n scores: in pass 0 of all that live, later of those with the prefix. */
static void
count_digits(const ks_cpu_vec_fns *vec, const float *scores, size_t n, int pass, uint32_t prefix,
             uint32_t *count)
{
  const uint32_t above = pass == 0 ? 0 : ~((1u << digit_shift[pass - 1]) - 1);
  uint32_t keys[BLOCK];

  for (size_t i = 0; i < n; i += BLOCK) {
    const size_t n_here = n - i < BLOCK ? n - i : BLOCK;
    size_t n_key = n_here;

    if (pass == 0)
      vec->rank_keys(keys, scores + i, n_here);
    else
      n_key = vec->rank_pick(keys, scores + i, n_here, above, prefix);
    for (size_t j = 0; j < n_key; j++)
      count[(keys[j] >> digit_shift[pass]) & digit_mask[pass]] += keys[j] != KS_RANK_DEAD;
  }
}

/* Adds up one pass over all members and finds the digit in which the want-th largest lies (want >=
 * 1 and at most the total); *want becomes its rank inside that digit. */
static uint32_t
find_digit(const select_job *job, bool of_pos, int pass, uint64_t *want)
{
  for (uint32_t d = digit_mask[pass];; d--) {
    uint64_t n = 0;

    for (uint32_t m = 0; m < job->n_member; m++)
      n += of_pos ? job->parts[m].pos_count[pass][d] : job->parts[m].score_count[pass][d];
    if (*want <= n)
      return d;
    assert(d > 0);
    *want -= n;
  }
}

static void
count_scores(const select_job *job, int pass, uint32_t prefix)
{
  const float *scores = ks_cpu_ptr(job->op->scores);

  count_digits(job->ctx->vec, scores + job->begin, job->end - job->begin, pass, prefix,
               job->parts[job->member].score_count[pass]);
}

/* The entries of a member's slice whose key is that of the cut. */
typedef struct tie_walk {
  ks_cpu_walk walk;
  uint32_t entry, pos; /* of the tie that was found */
  size_t index;        /* its place in the flat array */
  uint32_t first, n_key, next;
  uint32_t keys[BLOCK]; /* of entries first .. first + n_key - 1 of the walk's stream */
} tie_walk;

static void
tie_walk_init(const select_job *job, tie_walk *tie)
{
  tie->walk = ks_cpu_walk_init(job->begin, job->end);
  tie->first = tie->n_key = tie->next = 0;
}

/* Makes the next block of keys; false at the end of the slice. */
static bool
tie_walk_fill(const select_job *job, tie_walk *tie)
{
  const float *scores = ks_cpu_ptr(job->op->scores);

  tie->first += tie->n_key;
  if (tie->first >= tie->walk.end) {
    if (!ks_cpu_walk_next(&job->op->kv, &tie->walk))
      return false;
    tie->first = tie->walk.begin;
  }
  tie->n_key = tie->walk.end - tie->first < BLOCK ? tie->walk.end - tie->first : BLOCK;
  tie->next = 0;
  job->ctx->vec->rank_keys(tie->keys, scores + tie->walk.offset + (tie->first - tie->walk.begin),
                           tie->n_key);
  return true;
}

/* Moves to the next tie; false at the end. */
static bool
tie_walk_next(const select_job *job, tie_walk *tie)
{
  ks_cpu_stream stream;

  for (;;) {
    while (tie->next < tie->n_key && tie->keys[tie->next] != job->cut_key)
      tie->next++;
    if (tie->next < tie->n_key)
      break;
    if (!tie_walk_fill(job, tie))
      return false;
  }
  tie->entry = tie->first + tie->next++;
  tie->index = tie->walk.offset + (tie->entry - tie->walk.begin);
  stream = ks_cpu_stream_get(&job->op->kv, tie->walk.stream);
  tie->pos = ks_cpu_pos_get(&stream, tie->entry);
  return true;
}

static void
count_positions(const select_job *job, int pass, uint32_t prefix)
{
  uint32_t *count = job->parts[job->member].pos_count[pass];
  const uint32_t above = pass == 0 ? 0 : ~((1u << digit_shift[pass - 1]) - 1);
  tie_walk tie;

  tie_walk_init(job, &tie);
  while (tie_walk_next(job, &tie))
    if ((tie.pos & above) == prefix)
      count[(tie.pos >> digit_shift[pass]) & digit_mask[pass]]++;
}

/* Number of entries at the cut in score and pos that stay in this member's slice: the streams of
 * the members before it come first. */
static uint64_t
share_of_last(const select_job *job)
{
  uint64_t before = 0;

  for (uint32_t m = 0; m < job->member; m++)
    before += job->parts[m].n_last;
  return job->n_last > before ? job->n_last - before : 0;
}

static void
count_last(const select_job *job)
{
  uint64_t n = 0;
  tie_walk tie;

  tie_walk_init(job, &tie);
  while (tie_walk_next(job, &tie))
    n += tie.pos == job->cut_pos;
  job->parts[job->member].n_last = n;
}

/* Finds cut_key, cut_pos and n_last so that exactly min(want, entries alive) entries stay. */
static void
find_cut(select_job *job, uint64_t want)
{
  uint64_t alive = 0, n_tie = 0;
  uint32_t key = 0, pos = 0;

  count_scores(job, 0, 0);
  ks_threads_barrier(job->ctx->threads);
  for (uint32_t m = 0; m < job->n_member; m++)
    for (uint32_t d = 0; d < N_DIGIT; d++)
      alive += job->parts[m].score_count[0][d];
  job->cut_pos = 0;
  job->n_last = UINT64_MAX; /* all of the entries at the cut */
  if (want >= alive || want == 0) {
    job->cut_key = want == 0 ? UINT32_MAX : KS_RANK_DEAD + 1;
    return;
  }
  for (int pass = 0; pass < N_PASS; pass++) {
    if (pass > 0) {
      count_scores(job, pass, key);
      ks_threads_barrier(job->ctx->threads);
    }
    key |= find_digit(job, false, pass, &want) << digit_shift[pass];
  }
  job->cut_key = key;
  for (uint32_t m = 0; m < job->n_member; m++)
    n_tie += job->parts[m].score_count[N_PASS - 1][key & digit_mask[N_PASS - 1]];
  if (want == n_tie)
    return;
  for (int pass = 0; pass < N_PASS; pass++) {
    count_positions(job, pass, pos);
    ks_threads_barrier(job->ctx->threads);
    pos |= find_digit(job, true, pass, &want) << digit_shift[pass];
  }
  job->cut_pos = pos;
  job->n_last = want;
  count_last(job);
  ks_threads_barrier(job->ctx->threads);
}

/* Takes the mark off the ties that do not stay. */
static void
drop_ties(const select_job *job)
{
  uint8_t *keep = ks_cpu_ptr(job->op->keep);
  uint64_t last = share_of_last(job);
  tie_walk tie;

  tie_walk_init(job, &tie);
  while (tie_walk_next(job, &tie)) {
    const bool at_last = tie.pos == job->cut_pos;

    if (tie.pos > job->cut_pos || (at_last && last > 0)) {
      last -= at_last;
      continue;
    }
    keep[tie.index] = 0;
    __atomic_fetch_sub(&job->op->out_n_keep[tie.walk.stream], 1, __ATOMIC_RELAXED);
  }
}

/* Sets keep and counts the survivors of each stream; slices may share a stream. */
static void
mark_by_cut(const select_job *job)
{
  const float *scores = ks_cpu_ptr(job->op->scores);
  uint8_t *keep = ks_cpu_ptr(job->op->keep);
  ks_cpu_walk walk = ks_cpu_walk_init(job->begin, job->end);

  while (ks_cpu_walk_next(&job->op->kv, &walk)) {
    const uint32_t n = job->ctx->vec->rank_mark(keep + walk.offset, scores + walk.offset,
                                                walk.end - walk.begin, job->cut_key);

    __atomic_fetch_add(&job->op->out_n_keep[walk.stream], n, __ATOMIC_RELAXED);
  }
  if (job->n_last != UINT64_MAX)
    drop_ties(job);
}

/* The n best of one stream; entries are in order of pos, so of equal scores the later one stays.
 * Returns the number kept. */
static uint32_t
mark_stream(const ks_cpu_vec_fns *vec, const float *scores, uint8_t *keep, uint32_t n_entry,
            uint32_t n, uint32_t *count)
{
  uint32_t key = 0, n_kept = vec->rank_mark(keep, scores, n_entry, KS_RANK_DEAD + 1);
  uint32_t want = n, skip, keys[BLOCK];

  if (n >= n_kept)
    return n_kept;
  if (n == 0) {
    memset(keep, 0, n_entry);
    return 0;
  }
  for (int pass = 0; pass < N_PASS; pass++) {
    uint32_t d = digit_mask[pass];

    memset(count, 0, N_DIGIT * sizeof *count);
    count_digits(vec, scores, n_entry, pass, key, count);
    for (; want > count[d]; d--)
      want -= count[d];
    key |= d << digit_shift[pass];
  }
  skip = count[key & digit_mask[N_PASS - 1]] - want;
  n_kept = vec->rank_mark(keep, scores, n_entry, key) - skip;
  for (uint32_t e = 0; skip > 0; e++) {
    if (e % BLOCK == 0)
      vec->rank_keys(keys, scores + e, n_entry - e < BLOCK ? n_entry - e : BLOCK);
    if (keys[e % BLOCK] == key) {
      keep[e] = 0;
      skip--;
    }
  }
  return n_kept;
}

/* Streams are handed out one by one; their counts come from the caller, or from the global cut plus
 * the floor. */
static void
mark_by_stream(const select_job *job, uint32_t floor)
{
  const ks_op_kv_select *op = job->op;
  const uint32_t n_stream = ks_cpu_n_stream(&op->kv);
  const float *scores = ks_cpu_ptr(op->scores);
  uint8_t *keep = ks_cpu_ptr(op->keep);
  size_t offset = 0;
  uint32_t at = 0;

  for (uint32_t s = ks_cpu_take(job->ctx); s < n_stream; s = ks_cpu_take(job->ctx)) {
    const uint32_t n_entry = op->kv.streams[s].n_entry;
    uint64_t n =
        op->per_stream_keep != NULL ? op->per_stream_keep[s] : (uint64_t)op->out_n_keep[s] + floor;

    n = n < n_entry ? n : n_entry;
    for (; at < s; at++)
      offset += op->kv.streams[at].n_entry;
    op->out_n_keep[s] = mark_stream(job->ctx->vec, scores + offset, keep + offset, n_entry,
                                    (uint32_t)n, ks_cpu_scratch(job->ctx, job->member));
  }
}

/* Scores on both sides of the cut, for traces and the window. */
static void
find_margin(const select_job *job)
{
  const float *scores = ks_cpu_ptr(job->op->scores);
  const uint8_t *keep = ks_cpu_ptr(job->op->keep);
  select_part *part = &job->parts[job->member];

  part->least_kept = KEY_INFINITE;
  part->most_dropped = KS_RANK_DEAD;
  job->ctx->vec->rank_margin(keep + job->begin, scores + job->begin, job->end - job->begin,
                             &part->least_kept, &part->most_dropped);
  ks_threads_barrier(job->ctx->threads);
  if (job->member != 0)
    return;
  for (uint32_t m = 1; m < job->n_member; m++) {
    const select_part *other = &job->parts[m];

    part->least_kept = other->least_kept < part->least_kept ? other->least_kept : part->least_kept;
    part->most_dropped =
        other->most_dropped > part->most_dropped ? other->most_dropped : part->most_dropped;
  }
  if (job->op->out_last_kept != NULL)
    *job->op->out_last_kept = score_of(part->least_kept);
  if (job->op->out_first_dropped != NULL)
    *job->op->out_first_dropped = score_of(part->most_dropped);
}

void
ks_cpu_kv_select_need(const ks_cpu_ctx *ctx, const ks_op_kv_select *op, ks_cpu_need *need)
{
  (void)op;
  need->member_bytes = N_DIGIT * sizeof(uint32_t);
  need->shared_bytes = ks_threads_get_n(ctx->threads) * sizeof(select_part);
}

void
ks_cpu_kv_select(const ks_cpu_ctx *ctx, const ks_op_kv_select *op, uint32_t member,
                 uint32_t n_member)
{
  const uint32_t n_stream = ks_cpu_n_stream(&op->kv);
  select_job job = {.ctx = ctx, .op = op, .member = member, .n_member = n_member};
  uint64_t floor = op->floor, want = op->n_keep;

  job.parts = (select_part *)(void *)ctx->shared;
  ks_cpu_slice(ks_cpu_n_live(&op->kv), member, n_member, &job.begin, &job.end);
  /* A floor that is larger than the budget allows becomes the budget's equal share. */
  floor = floor < want / n_stream ? floor : want / n_stream;
  want -= floor * n_stream;
  memset(&job.parts[member], 0, sizeof job.parts[member]);
  if (op->per_stream_keep == NULL) {
    if (member == 0)
      memset(op->out_n_keep, 0, n_stream * sizeof *op->out_n_keep);
    find_cut(&job, want);
    mark_by_cut(&job);
    ks_threads_barrier(ctx->threads);
  }
  if (op->per_stream_keep != NULL || floor > 0) {
    mark_by_stream(&job, (uint32_t)floor);
    ks_threads_barrier(ctx->threads);
  }
  find_margin(&job);
}

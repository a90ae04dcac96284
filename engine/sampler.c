/* sampler.c - the chain from logits to the next id, with a generator of its own.
 * Candidates are ordered by logit, ties by smaller id, so that every filter has one result. Nothing
 * sorts the vocabulary: one pass finds the maximum of every block of ids, the blocks tell which ids
 * can come into question, and only the head that the filters look at is put in order.
 * Source: docs/method.md; generator: PCG64 XSL-RR (O'Neill, "PCG", HMC-CS-2014-0905). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/sampler.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MAX_REPEAT_LAST (1u << 20)
#define BLOCK 128u       /* ids whose maximum is kept */
#define FIRST_CHUNK 256u /* candidates put in order at first when there is no top-k */
/* Below e^-50 of the best one, all ids together are less than one rounding of the sum. */
#define NOTHING 50.0

typedef struct u128 {
  uint64_t hi, lo;
} u128;

struct ks_sampler {
  ks_sampler_params params;
  uint32_t n_vocab, n_block;
  u128 state;
  uint64_t *cand;      /* [n_vocab] candidates as keys; scratch of one pick */
  double *weight;      /* [n_vocab] exp(logit - max) of the ordered head */
  float *block_max;    /* [n_block] of one pick */
  uint32_t *n_altered; /* [n_block] penalised ids of the block */
  uint32_t *n_seen;    /* [n_vocab] times an id stands among the last repeat_last */
  ks_token *recent;    /* [repeat_last] ring */
  uint32_t n_recent, next_recent;
  uint32_t n_best, n_listed; /* of the last request */
  int32_t best_ids[KS_HEAD_MAX], listed_ids[KS_HEAD_MAX];
  float best[KS_HEAD_MAX], listed[KS_HEAD_MAX];
};

/* ---- generator ---- */

static u128
mul_u128(u128 a, u128 b)
{
  uint64_t a0 = a.lo & 0xFFFFFFFFu, a1 = a.lo >> 32, b0 = b.lo & 0xFFFFFFFFu, b1 = b.lo >> 32;
  uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0;
  uint64_t mid = (p00 >> 32) + (p01 & 0xFFFFFFFFu) + (p10 & 0xFFFFFFFFu);
  u128 r;

  r.lo = mid << 32 | (p00 & 0xFFFFFFFFu);
  r.hi = a1 * b1 + (p01 >> 32) + (p10 >> 32) + (mid >> 32) + a.hi * b.lo + a.lo * b.hi;
  return r;
}

static u128
add_u128(u128 a, u128 b)
{
  u128 r = {a.hi + b.hi, a.lo + b.lo};

  r.hi += r.lo < a.lo;
  return r;
}

static void
step_generator(ks_sampler *s)
{
  static const u128 mult = {0x2360ED051FC65DA4u, 0x4385DF649FCCF645u};
  static const u128 inc = {0x5851F42D4C957F2Du, 0x14057B7EF767814Fu}; /* odd */

  s->state = add_u128(mul_u128(s->state, mult), inc);
}

static void
seed_generator(ks_sampler *s, uint64_t seed)
{
  u128 start = {0, seed};

  s->state = (u128){0, 0};
  step_generator(s);
  s->state = add_u128(s->state, start);
  step_generator(s);
}

/* In [0, 1), 53 bits. */
static double
draw_uniform(ks_sampler *s)
{
  uint64_t x;
  unsigned rot;

  step_generator(s);
  x = s->state.hi ^ s->state.lo;
  rot = (unsigned)(s->state.hi >> 58);
  x = x >> rot | x << (-rot & 63);
  return (double)(x >> 11) * 0x1p-53;
}

/* ---- life ---- */

ks_sampler_params
ks_sampler_default_params(void)
{
  ks_sampler_params p = {0};

  p.temperature = 0.3f;
  p.top_k = 40;
  p.top_p = 0.95f;
  p.min_p = 0.05f;
  p.repeat_penalty = 1.0f;
  p.repeat_last = 64;
  return p;
}

static ks_status
check_params(const ks_sampler_params *p, uint32_t n_vocab, ks_error *err)
{
  if (n_vocab == 0 || n_vocab > INT32_MAX)
    return ks_fail(err, KS_ERR_ARG, "a vocabulary of %u tokens cannot be sampled", n_vocab);
  if (!(p->temperature >= 0.0f) || !isfinite(p->temperature))
    return ks_fail(err, KS_ERR_ARG, "temperature must be 0 or more, not %g",
                   (double)p->temperature);
  if (!(p->top_p > 0.0f && p->top_p <= 1.0f))
    return ks_fail(err, KS_ERR_ARG, "top-p must lie above 0 and at most at 1, not %g",
                   (double)p->top_p);
  if (!(p->min_p >= 0.0f && p->min_p <= 1.0f))
    return ks_fail(err, KS_ERR_ARG, "min-p must lie between 0 and 1, not %g", (double)p->min_p);
  if (!(p->repeat_penalty > 0.0f) || !isfinite(p->repeat_penalty))
    return ks_fail(err, KS_ERR_ARG, "the repetition penalty must be above 0, not %g",
                   (double)p->repeat_penalty);
  if (p->repeat_last > MAX_REPEAT_LAST)
    return ks_fail(err, KS_ERR_ARG, "the repetition penalty looks back %u tokens at most, not %u",
                   MAX_REPEAT_LAST, p->repeat_last);
  return KS_OK;
}

ks_status
ks_sampler_new(ks_alloc *a, const ks_sampler_params *params, uint32_t n_vocab, ks_sampler **out,
               ks_error *err)
{
  ks_status st = check_params(params, n_vocab, err);
  ks_sampler *s;

  if (st != KS_OK)
    return st;
  s = (ks_sampler *)ks_mem_new(a, KS_MEM_HOST, 1, sizeof *s);
  if (s == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the sampler");
  s->params = *params;
  s->n_vocab = n_vocab;
  s->n_block = (n_vocab + BLOCK - 1) / BLOCK;
  s->cand = (uint64_t *)ks_mem_new(a, KS_MEM_HOST, n_vocab, sizeof *s->cand);
  s->weight = (double *)ks_mem_new(a, KS_MEM_HOST, n_vocab, sizeof *s->weight);
  s->block_max = (float *)ks_mem_new(a, KS_MEM_HOST, s->n_block, sizeof *s->block_max);
  s->n_altered = (uint32_t *)ks_mem_new(a, KS_MEM_HOST, s->n_block, sizeof *s->n_altered);
  s->n_seen = (uint32_t *)ks_mem_new(a, KS_MEM_HOST, n_vocab, sizeof *s->n_seen);
  s->recent = (ks_token *)ks_mem_new(a, KS_MEM_HOST, params->repeat_last, sizeof *s->recent);
  if (s->cand == NULL || s->weight == NULL || s->block_max == NULL || s->n_altered == NULL ||
      s->n_seen == NULL || s->recent == NULL) {
    ks_sampler_free(s);
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the sampler");
  }
  seed_generator(s, params->seed);
  *out = s;
  return KS_OK;
}

void
ks_sampler_free(ks_sampler *s)
{
  if (s == NULL)
    return;
  ks_mem_free(s->cand);
  ks_mem_free(s->weight);
  ks_mem_free(s->block_max);
  ks_mem_free(s->n_altered);
  ks_mem_free(s->n_seen);
  ks_mem_free(s->recent);
  ks_mem_free(s);
}

static void
forget(ks_sampler *s, ks_token id)
{
  if (--s->n_seen[id] == 0)
    s->n_altered[(uint32_t)id / BLOCK]--;
}

void
ks_sampler_accept(ks_sampler *s, ks_token id)
{
  if (id < 0 || (uint32_t)id >= s->n_vocab || s->params.repeat_last == 0)
    return;
  if (s->n_recent == s->params.repeat_last)
    forget(s, s->recent[s->next_recent]);
  else
    s->n_recent++;
  s->recent[s->next_recent] = id;
  if (s->n_seen[id]++ == 0)
    s->n_altered[(uint32_t)id / BLOCK]++;
  s->next_recent = (s->next_recent + 1) % s->params.repeat_last;
}

void
ks_sampler_reset(ks_sampler *s, uint64_t seed)
{
  memset(s->n_seen, 0, s->n_vocab * sizeof *s->n_seen);
  memset(s->n_altered, 0, s->n_block * sizeof *s->n_altered);
  s->n_recent = s->next_recent = 0;
  s->params.seed = seed;
  seed_generator(s, seed);
}

void
ks_sampler_get_state(const ks_sampler *s, uint64_t out_state[2])
{
  out_state[0] = s->state.hi;
  out_state[1] = s->state.lo;
}

void
ks_sampler_set_state(ks_sampler *s, const uint64_t state[2])
{
  s->state = (u128){state[0], state[1]};
}

/* ---- candidates ---- */

/* A candidate as one number: the larger one stands before the other.  Minus zero is zero. */
static uint64_t
key_of(float logit, uint32_t id)
{
  const float x = logit + 0.0f;
  uint32_t bits;

  memcpy(&bits, &x, sizeof bits);
  bits ^= bits >> 31 != 0 ? UINT32_MAX : (uint32_t)1 << 31;
  return (uint64_t)bits << 32 | (UINT32_MAX - id);
}

static float
key_logit(uint64_t key)
{
  uint32_t bits = (uint32_t)(key >> 32);
  float x;

  bits ^= bits >> 31 != 0 ? (uint32_t)1 << 31 : UINT32_MAX;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static ks_token
key_id(uint64_t key)
{
  return (ks_token)(UINT32_MAX - (uint32_t)key);
}

/* Brings the n_best largest of n keys to the front, in no order (Hoare's FIND). */
static void
select_best(uint64_t *keys, size_t n, size_t n_best)
{
  size_t low = 0, high = n;

  while (n_best > low && n_best < high) {
    const uint64_t pivot = keys[n_best];
    size_t i = low, j = high; /* keys[high ..] are settled, j stands behind the next one */

    while (i < j) {
      while (keys[i] > pivot)
        i++;
      while (keys[j - 1] < pivot)
        j--;
      if (i < j) {
        const uint64_t key = keys[i];

        keys[i++] = keys[--j];
        keys[j] = key;
      }
    }
    /* All before i are at least as large as all from j on; at most the pivot lies between. */
    if (n_best >= i)
      low = i;
    if (n_best <= j)
      high = j;
  }
}

static void
sift_down(uint64_t *heap, size_t n, size_t i)
{
  const uint64_t moving = heap[i];

  for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
    if (child + 1 < n && heap[child + 1] < heap[child])
      child++;
    if (heap[child] >= moving)
      break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = moving;
}

/* Largest first. */
static void
sort_keys(uint64_t *keys, size_t n)
{
  for (size_t i = n / 2; i-- > 0;)
    sift_down(keys, n, i);
  while (n > 1) {
    const uint64_t least = keys[0];

    keys[0] = keys[--n];
    keys[n] = least;
    sift_down(keys, n, 0);
  }
}

/* ---- blocks of logits ---- */

static float
penalise(const ks_sampler *s, float x)
{
  /* Dividing a negative logit would reward the token: the sign decides. */
  return x > 0.0f ? x / s->params.repeat_penalty : x * s->params.repeat_penalty;
}

static uint32_t
block_size(const ks_sampler *s, uint32_t block)
{
  const uint32_t left = s->n_vocab - block * BLOCK;

  return left < BLOCK ? left : BLOCK;
}

/* The logits of a block with their penalties; room [BLOCK] is used when there are any. */
static const float *
get_block(const ks_sampler *s, const float *logits, uint32_t block, float *room)
{
  const uint32_t first = block * BLOCK, n = block_size(s, block);

  if (s->n_altered[block] == 0 || s->params.repeat_penalty == 1.0f)
    return logits + first;
  for (uint32_t i = 0; i < n; i++)
    room[i] = s->n_seen[first + i] > 0 ? penalise(s, logits[first + i]) : logits[first + i];
  return room;
}

static inline float
larger(float x, float max)
{
  return x > max ? x : max; /* a comparison with NaN is false: it never gets into max */
}

/* Minus infinity when all are NaN.  Four maxima side by side do not wait for each other. */
static float
find_max(const float *x, uint32_t n)
{
  float m0 = -INFINITY, m1 = -INFINITY, m2 = -INFINITY, m3 = -INFINITY;
  uint32_t i = 0;

  for (; i + 4 <= n; i += 4) {
    m0 = larger(x[i], m0);
    m1 = larger(x[i + 1], m1);
    m2 = larger(x[i + 2], m2);
    m3 = larger(x[i + 3], m3);
  }
  for (; i < n; i++)
    m0 = larger(x[i], m0);
  return larger(larger(m0, m1), larger(m2, m3));
}

/* Fills block_max; returns the best candidate, id 0 when there is none. */
static uint64_t
find_best(ks_sampler *s, const float *logits)
{
  float room[BLOCK], best = -INFINITY;
  const float *x;
  uint32_t at = 0, i = 0;

  for (uint32_t b = 0; b < s->n_block; b++) {
    s->block_max[b] = find_max(get_block(s, logits, b, room), block_size(s, b));
    if (s->block_max[b] > best) {
      best = s->block_max[b];
      at = b;
    }
  }
  if (best == -INFINITY)
    return key_of(best, 0);
  for (x = get_block(s, logits, at, room); x[i] != best;)
    i++;
  return key_of(best, at * BLOCK + i);
}

/* Writes every id with a logit of at least bound to cand, in order of ids; returns how many. */
static uint32_t
collect(ks_sampler *s, const float *logits, float bound)
{
  float room[BLOCK];
  uint32_t n = 0;

  for (uint32_t b = 0; b < s->n_block; b++) {
    const uint32_t n_here = block_size(s, b);
    const float *x;

    if (!(s->block_max[b] >= bound))
      continue;
    x = get_block(s, logits, b, room);
    for (uint32_t i = 0; i < n_here; i++)
      if (x[i] >= bound)
        s->cand[n++] = key_of(x[i], b * BLOCK + i);
  }
  return n;
}

/* ---- picking ---- */

/* A logit that the top_k best reach: as many blocks as that have a maximum no less. */
static float
bound_top_k(ks_sampler *s)
{
  const uint32_t k = s->params.top_k;

  if (k > s->n_block)
    return -INFINITY;
  for (uint32_t b = 0; b < s->n_block; b++)
    s->cand[b] = key_of(s->block_max[b], b);
  select_best(s->cand, s->n_block, k - 1);
  select_best(s->cand + (k - 1), s->n_block - (k - 1), 1);
  return key_logit(s->cand[k - 1]);
}

/* The logit whose weight is e^-reach, or minus infinity where f32 does not go so far. */
static float
bound_weight(const ks_sampler *s, float max, double reach)
{
  const double bound = (double)max - reach * (double)s->params.temperature;

  return bound < (double)-FLT_MAX ? -INFINITY : (float)bound;
}

/* exp((logit - max) / temperature); the difference first, so that a tiny temperature cannot make
 * infinity minus infinity. */
static double
weight_of(const ks_sampler *s, uint64_t key, float max)
{
  return exp(((double)key_logit(key) - (double)max) / (double)s->params.temperature);
}

/* Cuts n_cand candidates by top-k, top-p and
 * min-p.  As weights fall, each of them keeps a prefix; it stands in order at cand[0 ..], with its
 * weights.  Returns >= 1. */
static uint32_t
keep_head(ks_sampler *s, uint32_t n_cand, float max)
{
  const ks_sampler_params *p = &s->params;
  const bool has_k = p->top_k > 0 && p->top_k < s->n_vocab;
  const uint32_t n_head = has_k && p->top_k < n_cand ? p->top_k : n_cand;
  uint32_t n_kept = 0, n_sorted = 0;
  double total = 0.0, sum = 0.0;

  for (uint32_t i = 0; !has_k && p->top_p < 1.0f && i < n_cand; i++)
    total += weight_of(s, s->cand[i], max);
  while (n_kept < n_head) {
    if (n_kept == n_sorted) {
      uint32_t n = has_k ? n_head : n_sorted > 0 ? n_sorted : FIRST_CHUNK;

      n = n < n_head - n_sorted ? n : n_head - n_sorted;
      select_best(s->cand + n_sorted, n_cand - n_sorted, n);
      sort_keys(s->cand + n_sorted, n);
      for (n += n_sorted; n_sorted < n; n_sorted++) {
        s->weight[n_sorted] = weight_of(s, s->cand[n_sorted], max);
        total += has_k ? s->weight[n_sorted] : 0.0;
      }
    }
    if (n_kept > 0 && s->weight[n_kept] < (double)p->min_p) /* the best one's weight is 1 */
      break;
    sum += s->weight[n_kept++];
    if (p->top_p < 1.0f && sum >= (double)p->top_p * total)
      break;
  }
  return n_kept;
}

/* Draws from the first n candidates with their weights; the first one only by rounding. */
static ks_token
draw(ks_sampler *s, uint32_t n)
{
  double sum = 0.0, left;

  for (uint32_t i = 0; i < n; i++)
    sum += s->weight[i];
  left = draw_uniform(s) * sum;
  for (uint32_t i = 0; i < n; i++) {
    if (left < s->weight[i])
      return key_id(s->cand[i]);
    left -= s->weight[i];
  }
  return key_id(s->cand[0]);
}

ks_token
ks_sampler_pick(ks_sampler *s, const float *logits)
{
  const ks_sampler_params *p = &s->params;
  const uint64_t best = find_best(s, logits);
  const float max = key_logit(best);
  double reach = NOTHING;
  uint32_t n;

  if (p->temperature == 0.0f || isinf(max)) /* inf: all impossible, or one certain */
    return key_id(best);
  if (p->top_k > 0 && p->top_k < s->n_vocab)
    return draw(s, keep_head(s, collect(s, logits, bound_top_k(s)), max));
  /* Without top-p nothing below min-p counts; one more than it tells, for the logarithm's error. */
  if (p->top_p == 1.0f && p->min_p > 0.0f)
    reach = 1.0 - log((double)p->min_p);
  n = collect(s, logits, bound_weight(s, max, reach));
  if (p->top_p < 1.0f || p->min_p > 0.0f || p->top_k > 0)
    return draw(s, keep_head(s, n, max));
  for (uint32_t i = 0; i < n; i++)
    s->weight[i] = weight_of(s, s->cand[i], max);
  return draw(s, n);
}

/* ---- picking from a head ---- */

/* Adds an id to the listed ones, which rise; false when there is no room. */
static bool
list_id(ks_sampler *s, ks_token id)
{
  uint32_t at = s->n_listed;

  while (at > 0 && s->listed_ids[at - 1] > id)
    at--;
  if (at > 0 && s->listed_ids[at - 1] == id)
    return true;
  if (s->n_listed == KS_HEAD_MAX)
    return false;
  memmove(s->listed_ids + at + 1, s->listed_ids + at, (s->n_listed - at) * sizeof *s->listed_ids);
  s->listed_ids[at] = id;
  s->n_listed++;
  return true;
}

bool
ks_sampler_want(ks_sampler *s, ks_token next, ks_head_request *out)
{
  const ks_sampler_params *p = &s->params;
  uint32_t k = p->temperature == 0.0f ? 1 : p->top_k;

  s->n_listed = 0;
  if (k == 0 || k >= s->n_vocab || k > KS_HEAD_MAX)
    return false;
  if (p->repeat_penalty != 1.0f && p->repeat_last > 0) {
    for (uint32_t i = 0; i < s->n_recent; i++)
      if (!list_id(s, s->recent[i]))
        return false;
    if (next >= 0 && (uint32_t)next < s->n_vocab && !list_id(s, next))
      return false;
  }
  k += s->n_listed; /* a listed id may lose its place among the best */
  if (k > KS_HEAD_MAX)
    return false;
  s->n_best = k;
  *out = (ks_head_request){.k = k,
                           .n_id = s->n_listed,
                           .ids = s->listed_ids,
                           .out_ids = s->best_ids,
                           .out_logits = s->best,
                           .out_listed = s->listed};
  return true;
}

ks_token
ks_sampler_pick_wanted(ks_sampler *s)
{
  const bool penalises = s->params.repeat_penalty != 1.0f;
  uint64_t best = key_of(-INFINITY, 0);
  uint32_t n = 0;

  for (uint32_t i = 0; i < s->n_best; i++)
    if (s->best_ids[i] >= 0 && !(penalises && s->n_seen[s->best_ids[i]] > 0))
      s->cand[n++] = key_of(s->best[i], (uint32_t)s->best_ids[i]);
  for (uint32_t i = 0; i < s->n_listed; i++)
    if (s->n_seen[s->listed_ids[i]] > 0 && !isnan(s->listed[i]))
      s->cand[n++] = key_of(penalise(s, s->listed[i]), (uint32_t)s->listed_ids[i]);
  for (uint32_t i = 0; i < n; i++)
    best = s->cand[i] > best ? s->cand[i] : best;
  if (s->params.temperature == 0.0f || isinf(key_logit(best)))
    return key_id(best);
  return draw(s, keep_head(s, n, key_logit(best)));
}

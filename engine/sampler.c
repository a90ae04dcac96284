/* sampler.c - the chain from logits to the next id, with a generator of its own.
 * Candidates are ordered by logit, ties by smaller id, so that every filter has one result. Filters
 * need only a head of that order: a heap gives it without sorting the whole vocabulary.
 * Source: docs/method.md; generator: PCG64 XSL-RR (O'Neill, "PCG", HMC-CS-2014-0905). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/sampler.h"

#include <math.h>

#define MAX_REPEAT_LAST (1u << 20)

typedef struct u128 {
  uint64_t hi, lo;
} u128;

typedef struct candidate {
  float logit;
  ks_token id;
} candidate;

struct ks_sampler {
  ks_sampler_params params;
  uint32_t n_vocab;
  u128 state;
  candidate *cand;  /* [n_vocab] heap, then ordered head; scratch of one pick */
  double *weight;   /* [n_vocab] exp(logit - max) of the ordered head */
  uint32_t *n_seen; /* [n_vocab] times an id stands among the last repeat_last */
  ks_token *recent; /* [repeat_last] ring */
  uint32_t n_recent, next_recent;
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
  s->cand = (candidate *)ks_mem_new(a, KS_MEM_HOST, n_vocab, sizeof *s->cand);
  s->weight = (double *)ks_mem_new(a, KS_MEM_HOST, n_vocab, sizeof *s->weight);
  s->n_seen = (uint32_t *)ks_mem_new(a, KS_MEM_HOST, n_vocab, sizeof *s->n_seen);
  s->recent = (ks_token *)ks_mem_new(a, KS_MEM_HOST, params->repeat_last, sizeof *s->recent);
  if (s->cand == NULL || s->weight == NULL || s->n_seen == NULL || s->recent == NULL) {
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
  ks_mem_free(s->n_seen);
  ks_mem_free(s->recent);
  ks_mem_free(s);
}

void
ks_sampler_accept(ks_sampler *s, ks_token id)
{
  if (id < 0 || (uint32_t)id >= s->n_vocab || s->params.repeat_last == 0)
    return;
  if (s->n_recent == s->params.repeat_last)
    s->n_seen[s->recent[s->next_recent]]--;
  else
    s->n_recent++;
  s->recent[s->next_recent] = id;
  s->n_seen[id]++;
  s->next_recent = (s->next_recent + 1) % s->params.repeat_last;
}

void
ks_sampler_reset(ks_sampler *s, uint64_t seed)
{
  for (uint32_t i = 0; i < s->n_vocab; i++)
    s->n_seen[i] = 0;
  s->n_recent = s->next_recent = 0;
  s->params.seed = seed;
  seed_generator(s, seed);
}

/* ---- picking ---- */

static float
penalised_logit(const ks_sampler *s, const float *logits, uint32_t id)
{
  float x = logits[id];

  if (isnan(x))
    return -INFINITY;
  /* Dividing a negative logit would reward the token: the sign decides. */
  if (s->n_seen[id] > 0)
    x = x > 0.0f ? x / s->params.repeat_penalty : x * s->params.repeat_penalty;
  return x;
}

static bool
stands_before(candidate a, candidate b)
{
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static void
sift_down(candidate *heap, uint32_t n, uint32_t i)
{
  candidate moving = heap[i];

  for (;;) {
    uint32_t child = 2 * i + 1;

    if (child >= n)
      break;
    if (child + 1 < n && stands_before(heap[child + 1], heap[child]))
      child++;
    if (!stands_before(heap[child], moving))
      break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = moving;
}

/* Moves the best candidate to the end of the heap's room: cand[n_heap - 1] afterwards. */
static candidate
pop_best(candidate *heap, uint32_t n_heap)
{
  candidate best = heap[0];

  heap[0] = heap[n_heap - 1];
  heap[n_heap - 1] = best;
  sift_down(heap, n_heap - 1, 0);
  return best;
}

static ks_token
pick_greedy(const ks_sampler *s, const float *logits)
{
  float best = -INFINITY;
  ks_token id = 0;

  for (uint32_t i = 0; i < s->n_vocab; i++) {
    float x = penalised_logit(s, logits, i);

    if (x > best) {
      best = x;
      id = (ks_token)i;
    }
  }
  return id;
}

/* exp((logit - max) / temperature); the difference first, so that a tiny temperature cannot make
 * infinity minus infinity. */
static double
weight_of(const ks_sampler *s, float logit, float max)
{
  return exp(((double)logit - (double)max) / (double)s->params.temperature);
}

/* Cuts the ordered head by top-k, top-p and min-p.  As weights fall, each of them keeps a prefix.
 * The i-th best candidate stands at cand[n_vocab - 1 - i], its weight at weight[i].  Returns >= 1.
 */
static uint32_t
keep_head(ks_sampler *s, float max)
{
  const ks_sampler_params *p = &s->params;
  uint32_t n = s->n_vocab, n_head = p->top_k > 0 && p->top_k < n ? p->top_k : n, n_kept = 0;
  double total = 0.0, sum = 0.0;

  if (n_head == n) {
    for (uint32_t i = 0; i < n; i++)
      total += weight_of(s, s->cand[i].logit, max);
  } else {
    for (uint32_t i = 0; i < n_head; i++) {
      s->weight[i] = weight_of(s, pop_best(s->cand, n - i).logit, max);
      total += s->weight[i];
    }
  }
  while (n_kept < n_head) {
    if (n_head == n)
      s->weight[n_kept] = weight_of(s, pop_best(s->cand, n - n_kept).logit, max);
    if (n_kept > 0 && s->weight[n_kept] < (double)p->min_p) /* the best one's weight is 1 */
      break;
    sum += s->weight[n_kept++];
    if (p->top_p < 1.0f && sum >= (double)p->top_p * total)
      break;
  }
  return n_kept;
}

ks_token
ks_sampler_pick(ks_sampler *s, const float *logits)
{
  const ks_sampler_params *p = &s->params;
  uint32_t n = s->n_vocab, n_kept = n;
  bool ordered = p->top_k > 0 || p->top_p < 1.0f || p->min_p > 0.0f;
  ks_token best;
  double sum = 0.0, left;
  float max;

  if (p->temperature == 0.0f)
    return pick_greedy(s, logits);
  best = pick_greedy(s, logits);
  max = penalised_logit(s, logits, (uint32_t)best);
  if (isinf(max)) /* nothing to weigh: all impossible, or one certain */
    return best;
  for (uint32_t i = 0; i < n; i++)
    s->cand[i] = (candidate){penalised_logit(s, logits, i), (ks_token)i};
  if (ordered) {
    for (uint32_t i = n / 2; i-- > 0;)
      sift_down(s->cand, n, i);
    n_kept = keep_head(s, max);
  } else {
    for (uint32_t i = 0; i < n; i++)
      s->weight[i] = weight_of(s, s->cand[i].logit, max);
  }
  for (uint32_t i = 0; i < n_kept; i++)
    sum += s->weight[i];
  left = draw_uniform(s) * sum;
  for (uint32_t i = 0; i < n_kept; i++) {
    if (left < s->weight[i])
      return s->cand[ordered ? n - 1 - i : i].id;
    left -= s->weight[i];
  }
  return best; /* only by rounding */
}

/* test-sampler-reference.c - the sampler against its definition: all ids weighed, all sorted, drawn
 * with the compiler's own 128-bit arithmetic.  Random logits with ties, NaN, infinities, penalties,
 * every combination of filters. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/sampler.h"
#include "tests/ks-test.h"

#define MOST 3000u /* several blocks and chunks of the sampler */
#define N_DRAW 4u

__extension__ typedef unsigned __int128 wide;

typedef struct weighed {
  double weight;
  float logit;
  uint32_t id;
} weighed;

typedef struct reference {
  ks_sampler_params params;
  uint32_t n_vocab;
  wide state;
  bool seen[MOST];
} reference;

static double
draw_uniform(wide *state)
{
  const wide mult = (wide)0x2360ED051FC65DA4u << 64 | 0x4385DF649FCCF645u;
  const wide inc = (wide)0x5851F42D4C957F2Du << 64 | 0x14057B7EF767814Fu;
  uint64_t x;
  unsigned rot;

  *state = *state * mult + inc;
  x = (uint64_t)(*state >> 64) ^ (uint64_t)*state;
  rot = (unsigned)(*state >> 122);
  x = x >> rot | x << (-rot & 63);
  return (double)(x >> 11) * 0x1p-53;
}

static void
seed_reference(reference *r, uint64_t seed)
{
  r->state = 0;
  (void)draw_uniform(&r->state);
  r->state += seed;
  (void)draw_uniform(&r->state);
}

static int
compare_weighed(const void *a, const void *b)
{
  const weighed *x = a, *y = b;

  if (x->logit != y->logit)
    return x->logit > y->logit ? -1 : 1;
  return x->id < y->id ? -1 : 1;
}

/* How many of the sorted, weighed entries the filters keep. */
static uint32_t
count_kept(const reference *r, const weighed *e, uint32_t n_head)
{
  double total = 0, sum = 0;
  uint32_t n = 0;

  for (uint32_t i = 0; i < n_head; i++)
    total += e[i].weight;
  while (n < n_head && (n == 0 || e[n].weight >= (double)r->params.min_p)) {
    sum += e[n++].weight;
    if (r->params.top_p < 1 && sum >= (double)r->params.top_p * total)
      break;
  }
  return n;
}

static ks_token
reference_pick(reference *r, const float *logits)
{
  static weighed e[MOST];
  const ks_sampler_params *p = &r->params;
  const uint32_t n = r->n_vocab, n_head = p->top_k > 0 && p->top_k < n ? p->top_k : n;
  weighed best = {0, -INFINITY, 0};
  double sum = 0, left;
  uint32_t n_kept = n;

  for (uint32_t i = 0; i < n; i++) {
    float x = isnan(logits[i]) ? -INFINITY : logits[i];

    if (r->seen[i])
      x = x > 0 ? x / p->repeat_penalty : x * p->repeat_penalty;
    e[i] = (weighed){0, x, i};
    best = x > best.logit ? e[i] : best;
  }
  if (p->temperature == 0 || isinf(best.logit))
    return (ks_token)best.id;
  if (p->top_k > 0 || p->top_p < 1 || p->min_p > 0)
    qsort(e, n, sizeof(*e), compare_weighed);
  for (uint32_t i = 0; i < n; i++)
    e[i].weight = exp(((double)e[i].logit - (double)best.logit) / (double)p->temperature);
  if (p->top_k > 0 || p->top_p < 1 || p->min_p > 0)
    n_kept = count_kept(r, e, n_head);
  for (uint32_t i = 0; i < n_kept; i++)
    sum += e[i].weight;
  left = draw_uniform(&r->state) * sum;
  for (uint32_t i = 0; i < n_kept; i++) {
    if (left < e[i].weight)
      return (ks_token)e[i].id;
    left -= e[i].weight;
  }
  return (ks_token)best.id;
}

static uint32_t
next_number(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33);
}

/* kind 0: smooth, 1: many ties and both zeros, 2: NaN and minus infinity among them, 3: all the
 * same, 4: only one finite, 5: plus infinity, 6: nothing possible, 7: flat, so that many stay. */
static void
fill_logits(float *x, uint32_t n, uint32_t kind, uint64_t *rng)
{
  for (uint32_t i = 0; i < n; i++) {
    const float u = (float)(next_number(rng) % 65536) / 65536, v = u * u * u;

    x[i] = kind == 7 ? u : (v - 0.5f) * 20;
    if (kind == 1)
      x[i] = (float)((int)(next_number(rng) % 9) - 4) * (next_number(rng) % 2 ? 0.5f : -0.5f);
    if (kind == 2 && next_number(rng) % 3 == 0)
      x[i] = next_number(rng) % 2 ? NAN : -INFINITY;
    if (kind == 3)
      x[i] = 1.5f;
    if (kind == 4 || kind == 6)
      x[i] = next_number(rng) % 2 ? NAN : -INFINITY;
  }
  if (kind == 4 || kind == 5)
    x[next_number(rng) % n] = kind == 4 ? -3.0f : INFINITY;
}

static void
compare_one(reference *r, ks_alloc *a, uint64_t *rng)
{
  static float logits[MOST];
  ks_sampler *s = NULL;

  memset(r->seen, 0, sizeof(r->seen));
  seed_reference(r, r->params.seed);
  KS_ASSERT_OK(ks_sampler_new(a, &r->params, r->n_vocab, &s, NULL));
  for (uint32_t i = 0; i < r->params.repeat_last; i++) {
    const uint32_t id = next_number(rng) % r->n_vocab;

    ks_sampler_accept(s, (ks_token)id);
    r->seen[id] = true;
  }
  for (uint32_t i = 0; i < N_DRAW; i++) {
    const uint32_t kind = next_number(rng) % 8;
    ks_token want, got;

    fill_logits(logits, r->n_vocab, kind, rng);
    want = reference_pick(r, logits);
    got = ks_sampler_pick(s, logits);
    if (got != want)
      KS_FAIL("%d, not %d: kind %u, vocabulary %u, temperature %g, top-k %u, top-p %g, min-p %g, "
              "penalty %g",
              (int)got, (int)want, kind, r->n_vocab, (double)r->params.temperature, r->params.top_k,
              (double)r->params.top_p, (double)r->params.min_p, (double)r->params.repeat_penalty);
  }
  ks_sampler_free(s);
}

/* Same seed and logits, same ids as the definition gives, whatever the filters. */
KS_TEST(sampler_reference, every_combination)
{
  static const float temperatures[] = {0.0f, 0.3f, 1.0f, 4.0f}, min_ps[] = {0.0f, 0.05f, 1.0f};
  static const float top_ps[] = {1.0f, 0.95f, 0.3f}, penalties[] = {1.0f, 1.3f, 0.7f};
  static const uint32_t sizes[] = {1, 5, 129, 1000, MOST}, top_ks[] = {0, 1, 3, 40, 600, 100000};
  static reference r;
  ks_alloc *a = ks_alloc_new();
  uint64_t rng = 5;

  for (uint32_t i = 0; i < 5 * 4 * 6 * 3 * 3 * 3; i++) {
    uint32_t at = i;

    r.n_vocab = sizes[at % 5];
    r.params.temperature = temperatures[(at /= 5) % 4];
    r.params.top_k = top_ks[(at /= 4) % 6];
    r.params.top_p = top_ps[(at /= 6) % 3];
    r.params.min_p = min_ps[(at /= 3) % 3];
    r.params.repeat_penalty = penalties[at / 3];
    r.params.repeat_last = next_number(&rng) % 80;
    r.params.seed = next_number(&rng);
    compare_one(&r, a, &rng);
  }
  ks_alloc_free(a);
}

KS_TEST_MAIN

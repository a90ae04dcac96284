/* evict-window.c - policies that look at where an entry stands, or at a number it was given when it
 * was made, and at nothing else.
 * Source: docs/method.md, section 6. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/evict-internal.h"

/* StreamingLLM: the newest; its first tokens are kept by pins. */
ks_status
ks_score_recency(const ks_score_job *job, ks_error *err)
{
  for (uint32_t e = 0; e < job->n_entry; e++)
    job->scores[e] = (float)job->pos[e];
  return KS_OK;
}

/* A well mixed 64-bit hash: multiply and shift, three times. */
static uint64_t
mix(uint64_t x)
{
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* Every entry draws its lot once, when it is made: what survives many evictions is a fair sample of
 * all tokens, and the result does not depend on when evictions ran. */
ks_status
ks_score_random(const ks_score_job *job, ks_error *err)
{
  const uint64_t salt = mix(job->evict->params.seed) ^ ((uint64_t)job->stream << 32);

  for (uint32_t e = 0; e < job->n_entry; e++)
    job->scores[e] = (float)(mix(salt + job->pos[e]) >> 40); /* 24 bits, exact in f32 */
  return KS_OK;
}

/* Full memory: nothing is better than anything else. */
ks_status
ks_score_equal(const ks_score_job *job, ks_error *err)
{
  for (uint32_t e = 0; e < job->n_entry; e++)
    job->scores[e] = 0.0f;
  return KS_OK;
}

/* LocRet: what its heads said of the token lies where retention has log_beta and does not change.
 */
ks_status
ks_score_fixed(const ks_score_job *job, ks_error *err)
{
  const ks_backend *be = job->evict->be;

  return be->t->kv_read(be->dev, job->view, job->stream, 0, job->n_entry, NULL, NULL, job->scores,
                        NULL, NULL, err);
}

/* retention-score.c - the score of one entry, as every backend ranks it.
 * Geometric retention: an entry of age a counts beta^a, so log_beta * a ranks entries of all
 * streams on one scale; with lookahead n the sum of the next n powers is taken instead. f32,
 * product and sum rounded apart (built without contraction), so that backends rank alike. Source:
 * docs/method.md, section 3. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/retention.h"

#include <math.h>

float
ks_log_sigmoid(float z)
{
  /* Each branch takes exp of a negative number, so nothing overflows. */
  return z > 0.0F ? -log1pf(expf(-z)) : z - log1pf(expf(z));
}

/* log(1 - e^x) for x < 0, exact near 0 and far from it. */
static double
log_1m_exp(double x)
{
  return x < -0.6931471805599453 ? log1p(-exp(x)) : log(-expm1(x));
}

float
ks_retention_lookahead_term(float log_beta, uint32_t lookahead)
{
  if (lookahead <= 1)
    return 0.0F;
  if (!(log_beta < 0.0F)) /* beta = 1: n equal terms, and the formula would be 0/0 */
    return (float)log((double)lookahead);
  /* In double: the difference of two logs of nearly equal small numbers loses digits in f32. */
  return (float)(log_1m_exp((double)lookahead * log_beta) - log_1m_exp((double)log_beta));
}

float
ks_retention_score(float log_beta, uint32_t pos, uint32_t seen, uint32_t lookahead)
{
  float age, product;

  if (lookahead <= 1)
    return (float)(int64_t)((int64_t)seen + 1 - pos) * log_beta;
  age = (float)(int64_t)((int64_t)seen + 2 - pos);
  product = age * log_beta;
  return product + ks_retention_lookahead_term(log_beta, lookahead);
}

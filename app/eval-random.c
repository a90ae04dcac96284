/* eval-random.c - see eval-random.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-random.h"

#define GOLDEN G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)

static guint64
mix (guint64 z)
{
  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

KsEvalRandom
ks_eval_random (guint64 seed, guint64 index)
{
  return (KsEvalRandom){mix (mix (seed + GOLDEN) + index * GOLDEN)};
}

guint64
ks_eval_random_next (KsEvalRandom *random)
{
  return mix (random->state += GOLDEN);
}

guint
ks_eval_random_pick (KsEvalRandom *random, guint n)
{
  guint64 rest = (G_MAXUINT64 % n + 1) % n; /* so many values at the top would favour small ones */
  guint64 x;

  do
    x = ks_eval_random_next (random);
  while (x > G_MAXUINT64 - rest);
  return (guint)(x % n);
}

double
ks_eval_random_unit (KsEvalRandom *random)
{
  return (double)(ks_eval_random_next (random) >> 11) / 9007199254740992.0;
}

void
ks_eval_random_shuffle (KsEvalRandom *random, guint *order, guint n)
{
  for (guint i = 0; i < n; i++)
    order[i] = i;
  for (guint i = n; i > 1; i--) {
    guint j = ks_eval_random_pick (random, i), t = order[i - 1];

    order[i - 1] = order[j];
    order[j] = t;
  }
}

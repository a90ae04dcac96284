/* ks-train-random.h - the numbers that training data are drawn with: splitmix64, so that a seed
 * gives the same data on every machine and with every library.  A plain value.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
  guint64 state;
} KsTrainRandom;

static inline guint64
ks_train_random_next (KsTrainRandom *random)
{
  guint64 z = (random->state += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15));

  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* The numbers of item index of the series of seed: neighbours have nothing in common. */
static inline KsTrainRandom
ks_train_random_init (guint64 seed, guint64 index)
{
  KsTrainRandom random = {seed};

  random.state = ks_train_random_next (&random) ^ index;
  random.state = ks_train_random_next (&random);
  return random;
}

/* 0 .. n-1; n is not 0.  What is left over of 2^64 falls on small numbers, too rarely to be seen.
 */
static inline guint64
ks_train_random_pick64 (KsTrainRandom *random, guint64 n)
{
  return ks_train_random_next (random) % n;
}

static inline guint
ks_train_random_pick (KsTrainRandom *random, guint n)
{
  return (guint)ks_train_random_pick64 (random, n);
}

static inline gboolean
ks_train_random_chance (KsTrainRandom *random, double p)
{
  return (double)(ks_train_random_next (random) >> 11) * 0x1p-53 < p;
}

G_END_DECLS

/* eval-random.h - the numbers that made-up tests are drawn with: splitmix64, the same series from
 * the same seed on every machine.  Threads: a generator belongs to its holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
  guint64 state;
} KsEvalRandom;

/* Series number index of a seed; unlike seeds and indices give unlike series. */
KsEvalRandom ks_eval_random (guint64 seed, guint64 index);
guint64 ks_eval_random_next (KsEvalRandom *random);
/* 0 .. n - 1, n > 0, each equally likely. */
guint ks_eval_random_pick (KsEvalRandom *random, guint n);
/* 0 <= x < 1, 53 bits. */
double ks_eval_random_unit (KsEvalRandom *random);
/* A random order of 0 .. n - 1. */
void ks_eval_random_shuffle (KsEvalRandom *random, guint *order, guint n);

G_END_DECLS

/* ks-policy-options.h - what was asked of an eviction policy beside its defaults. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/evict.h"

#include <glib.h>

G_BEGIN_DECLS

/* Below 0: by the policy.  Fields as in ks_evict_params. */
typedef struct {
  int mode; /* a ks_evict_mode */
  int lookahead, floor, pin_first, pin_last, window, pool;
  int pool_max; /* 0 mean, 1 largest */
  double threshold, head_floor, mix, recent;
  guint64 seed; /* of the random policy */
} KsPolicyOptions;

void ks_policy_options_init (KsPolicyOptions *options);
/* The defaults of a policy in the mode that was asked for (chunked), and what was asked beside. */
ks_evict_params ks_policy_options_make_params (const KsPolicyOptions *options, ks_policy policy);

G_END_DECLS

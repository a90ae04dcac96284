/* ks-policy-options.c - see ks-policy-options.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-policy-options.h"

void
ks_policy_options_init (KsPolicyOptions *options)
{
  *options = (KsPolicyOptions){.mode = -1,
                               .lookahead = -1,
                               .floor = -1,
                               .pin_first = -1,
                               .pin_last = -1,
                               .window = -1,
                               .pool = -1,
                               .pool_max = -1,
                               .threshold = -1,
                               .head_floor = -1,
                               .mix = -1,
                               .recent = -1};
}

static void
take_number (int asked, uint32_t *value)
{
  if (asked >= 0)
    *value = (uint32_t)asked;
}

static void
take_share (double asked, double *value)
{
  if (asked >= 0)
    *value = asked;
}

ks_evict_params
ks_policy_options_make_params (const KsPolicyOptions *options, ks_policy policy)
{
  ks_evict_params params = options->mode == KS_EVICT_FAITHFUL ? ks_evict_faithful_params (policy)
                                                              : ks_evict_default_params (policy);

  take_number (options->lookahead, &params.lookahead);
  take_number (options->floor, &params.floor);
  take_number (options->pin_first, &params.pin_first);
  take_number (options->pin_last, &params.pin_last);
  take_number (options->window, &params.window);
  take_number (options->pool, &params.pool);
  if (options->pool_max >= 0)
    params.pool_max = options->pool_max > 0;
  take_share (options->threshold, &params.threshold);
  take_share (options->head_floor, &params.head_floor);
  take_share (options->mix, &params.mix);
  take_share (options->recent, &params.recent);
  params.seed = options->seed;
  return params;
}

/* evict-policy.c - the list of policies: what each is called, needs and does by default.
 * Not here: how they score (evict-window.c, evict-keys.c, evict-attention.c).  Defaults are those
 * of the methods' own code.  Source: docs/method.md, section 6. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/evict-internal.h"

#include <assert.h>
#include <string.h>

static const ks_policy_ops policies[KS_N_POLICY] = {
    [KS_POLICY_DBTRIMKV] = {.name = "dbtrimkv",
                            .needs_gate = true,
                            .is_global = true,
                            .pin_first = 1},
    [KS_POLICY_UNTIED] = {.name = "untied", .needs_gate = true, .is_global = true, .pin_first = 1},
    [KS_POLICY_TRIMKV] = {.name = "trimkv", .needs_gate = true, .pin_first = 1},
    [KS_POLICY_FULL] = {.name = "full", .never_evicts = true, .score = ks_score_equal},
    [KS_POLICY_STREAMING] = {.name = "streaming",
                             .pin_first = 4,
                             .own_first = 4,
                             .score = ks_score_recency},
    [KS_POLICY_KEYDIFF] = {.name = "keydiff", .pin_first = 1, .score = ks_score_keydiff},
    [KS_POLICY_KEYDIFF_GLOBAL] = {.name = "keydiff-global",
                                  .is_global = true,
                                  .pin_first = 4,
                                  .pin_last = 32,
                                  .score = ks_score_keydiff_standard},
    [KS_POLICY_H2O] =
        {.name = "h2o", .n_aux = 1, .pin_first = 1, .recent = 0.5, .score = ks_score_received},
    [KS_POLICY_SNAPKV] = {.name = "snapkv",
                          .has_window = true,
                          .pin_first = 1,
                          .window = 32,
                          .pool = 5,
                          .score = ks_score_pooled},
    [KS_POLICY_ADAKV] = {.name = "adakv",
                         .has_window = true,
                         .pin_first = 1,
                         .window = 32,
                         .pool = 7,
                         .pool_max = true,
                         .head_floor = 0.2,
                         .score = ks_score_pooled,
                         .allot = ks_allot_heads},
    [KS_POLICY_PYRAMIDKV] = {.name = "pyramidkv",
                             .has_window = true,
                             .pin_first = 1,
                             .window = 8,
                             .pool = 7,
                             .pool_max = true,
                             .score = ks_score_pooled,
                             .allot = ks_allot_pyramid},
    [KS_POLICY_RKV] = {.name = "rkv",
                       .has_window = true,
                       .compares_keys = true,
                       .pin_first = 1,
                       .window = 8,
                       .pool = 7,
                       .pool_max = true,
                       .mix = 0.1,
                       .score = ks_score_rkv},
    [KS_POLICY_LOCRET] = {.name = "locret",
                          .needs_gate = true,
                          .pin_first = 1,
                          .window = 100,
                          .recent = 5.0 / 12.0,
                          .score = ks_score_fixed},
    [KS_POLICY_RANDOM] = {.name = "random", .pin_first = 1, .score = ks_score_random},
};

static const char *const modes[] = {
    [KS_EVICT_CHUNKED] = "chunked", [KS_EVICT_FAITHFUL] = "faithful"};

const ks_policy_ops *
ks_policy_get_ops(ks_policy policy)
{
  assert((unsigned)policy < KS_N_POLICY);
  return &policies[policy];
}

const char *
ks_policy_get_name(ks_policy policy)
{
  return ks_policy_get_ops(policy)->name;
}

bool
ks_policy_parse(const char *name, ks_policy *out)
{
  for (int i = 0; i < KS_N_POLICY; i++)
    if (strcmp(name, policies[i].name) == 0) {
      *out = (ks_policy)i;
      return true;
    }
  return false;
}

const char *
ks_evict_mode_get_name(ks_evict_mode mode)
{
  assert((unsigned)mode < sizeof(modes) / sizeof(modes[0]));
  return modes[mode];
}

bool
ks_evict_mode_parse(const char *name, ks_evict_mode *out)
{
  for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
    if (strcmp(name, modes[i]) == 0) {
      *out = (ks_evict_mode)i;
      return true;
    }
  return false;
}

bool
ks_policy_needs_gate(ks_policy policy)
{
  return ks_policy_get_ops(policy)->needs_gate;
}

bool
ks_policy_needs_mass(ks_policy policy)
{
  return ks_policy_get_ops(policy)->n_aux > 0;
}

uint32_t
ks_policy_get_n_aux(ks_policy policy)
{
  return ks_policy_get_ops(policy)->n_aux;
}

bool
ks_policy_is_global(ks_policy policy)
{
  return ks_policy_get_ops(policy)->is_global;
}

bool
ks_policy_never_evicts(ks_policy policy)
{
  return ks_policy_get_ops(policy)->never_evicts;
}

bool
ks_policy_has_window(ks_policy policy)
{
  return ks_policy_get_ops(policy)->has_window;
}

ks_evict_params
ks_evict_default_params(ks_policy policy)
{
  const ks_policy_ops *ops = ks_policy_get_ops(policy);
  const ks_evict_params params = {.policy = policy,
                                  .mode = KS_EVICT_CHUNKED,
                                  .lookahead = 1,
                                  .pin_first = ops->pin_first,
                                  .pin_last = ops->pin_last,
                                  .window = ops->window,
                                  .pool = ops->pool > 0 ? ops->pool : 1,
                                  .pool_max = ops->pool_max,
                                  .head_floor = ops->head_floor,
                                  .mix = ops->mix,
                                  .recent = ops->recent};

  return params;
}

ks_evict_params
ks_evict_faithful_params(ks_policy policy)
{
  ks_evict_params params = ks_evict_default_params(policy);

  params.mode = KS_EVICT_FAITHFUL;
  params.pin_first = ks_policy_get_ops(policy)->own_first;
  params.pin_last = 0;
  return params;
}

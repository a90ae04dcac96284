/* cli-policy.c - the options of eviction policies: which one, how it reads, its own numbers. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-policy.h"

#include "app/cli-options.h"
#include "app/ks-error.h"

#define POLICIES                                                                                   \
  "what to keep: dbtrimkv, untied, trimkv, full, streaming, keydiff, keydiff-global, h2o, "        \
  "snapkv, "                                                                                       \
  "adakv, pyramidkv, rkv, locret, random (default: dbtrimkv with a gate, else keydiff-global)"

void
cli_policy_init (CliPolicy *policy)
{
  *policy = (CliPolicy){0};
  ks_policy_options_init (&policy->asked);
  policy->asked.lookahead = policy->asked.floor = policy->asked.pin_first = CLI_UNSET;
  policy->asked.pin_last = policy->asked.window = policy->asked.pool = CLI_UNSET;
}

void
cli_policy_clear (CliPolicy *policy)
{
  g_free (policy->name);
  g_free (policy->mode);
  g_free (policy->pool_kind);
}

static void
add_choice (CliPolicy *policy, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"policy", 'p', 0, G_OPTION_ARG_STRING, &policy->name, POLICIES, "NAME"},
      {"policy-mode", 0, 0, G_OPTION_ARG_STRING, &policy->mode,
       "chunked (the memory holds throughout) or faithful (a prompt is read as a whole, then cut "
       "once, as the methods were published; needs --entries; for evaluations; default chunked)",
       "MODE"},
      {"policy-seed", 0, 0, G_OPTION_ARG_INT64, &policy->seed,
       "seed of the random policy (default 0)", "N"},
      {"lookahead", 0, 0, G_OPTION_ARG_INT, &policy->asked.lookahead,
       "steps that a retention score looks ahead (default 1)", "N"},
      {"threshold", 0, 0, G_OPTION_ARG_DOUBLE, &policy->asked.threshold,
       "with a gate: also drop what is worth less than A, between 0 and 1 (default 0: off)", "A"},
      {"floor", 0, 0, G_OPTION_ARG_INT, &policy->asked.floor,
       "entries that every stream keeps in any case (default 0)", "N"},
      {"pin-first", 0, 0, G_OPTION_ARG_INT, &policy->asked.pin_first,
       "first tokens that are always kept (default 1, streaming and keydiff-global 4, faithful "
       "none)",
       "N"},
      {"pin-last", 0, 0, G_OPTION_ARG_INT, &policy->asked.pin_last,
       "newest tokens that are always kept (default: by the policy)", "N"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

void
cli_policy_add (CliPolicy *policy, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"window", 0, 0, G_OPTION_ARG_INT, &policy->asked.window,
       "snapkv, adakv, pyramidkv, rkv: the last N queries judge, and stay", "N"},
      {"pool", 0, 0, G_OPTION_ARG_INT, &policy->asked.pool,
       "the same: attention is pooled over N neighbours, an odd number", "N"},
      {"pool-kind", 0, 0, G_OPTION_ARG_STRING, &policy->pool_kind, "the same: mean or max", "KIND"},
      {"head-floor", 0, 0, G_OPTION_ARG_DOUBLE, &policy->asked.head_floor,
       "adakv: the part that every head has in any case (default 0.2)", "F"},
      {"mix", 0, 0, G_OPTION_ARG_DOUBLE, &policy->asked.mix,
       "rkv: the weight of attention against redundancy (default 0.1)", "L"},
      {"recent", 0, 0, G_OPTION_ARG_DOUBLE, &policy->asked.recent,
       "h2o, locret: the part that the newest entries have (default 0.5, 0.42)", "R"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  add_choice (policy, context);
  g_option_context_add_main_entries (context, entries, NULL);
}

static gboolean
check_share (const char *name, double value, GError **error)
{
  if (value == -1 || (value >= 0 && value <= 1))
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "%s must lie between 0 and 1", name);
  return FALSE;
}

static gboolean
check_numbers (const KsPolicyOptions *asked, GError **error)
{
  const struct {
    const char *name;
    int value, least;
  } numbers[] = {{"--lookahead", asked->lookahead, 1}, {"--floor", asked->floor, 0},
                 {"--pin-first", asked->pin_first, 0}, {"--pin-last", asked->pin_last, 0},
                 {"--window", asked->window, 1},       {"--pool", asked->pool, 1}};

  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (!cli_check_least (numbers[i].name, numbers[i].value, numbers[i].least, error))
      return FALSE;
  return check_share ("--threshold", asked->threshold, error) &&
         check_share ("--head-floor", asked->head_floor, error) &&
         check_share ("--mix", asked->mix, error) && check_share ("--recent", asked->recent, error);
}

gboolean
cli_policy_make_options (const CliPolicy *policy, KsPolicyOptions *out, GError **error)
{
  ks_evict_mode mode = KS_EVICT_CHUNKED;

  if (!check_numbers (&policy->asked, error))
    return FALSE;
  *out = policy->asked;
  out->seed = (guint64)policy->seed;
  if (policy->mode != NULL && !ks_evict_mode_parse (policy->mode, &mode)) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                         "--policy-mode must be chunked or faithful");
    return FALSE;
  }
  out->mode = (int)mode;
  if (policy->pool_kind == NULL)
    return TRUE;
  out->pool_max = g_str_equal (policy->pool_kind, "max");
  if (out->pool_max || g_str_equal (policy->pool_kind, "mean"))
    return TRUE;
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "--pool-kind must be mean or max");
  return FALSE;
}

gboolean
cli_policy_parse_name (const char *name, ks_policy *out, GError **error)
{
  if (ks_policy_parse (name, out))
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "there is no policy '%s': see --help for their names", name);
  return FALSE;
}

/* eval-policy.c - a policy with its options as one text; see eval-session.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-session.h"

#include "app/ks-error.h"

#include <math.h>
#include <string.h>

typedef struct {
  const char *name;
  gsize offset; /* in ks_evict_params */
  gboolean is_real;
  double least, most;
} Option;

#define AT(field) G_STRUCT_OFFSET (ks_evict_params, field)

static const Option options[] = {
    {"pin-first", AT (pin_first), FALSE, 0, 1 << 20},
    {"pin-last", AT (pin_last), FALSE, 0, 1 << 20},
    {"lookahead", AT (lookahead), FALSE, 1, 1 << 20},
    {"floor", AT (floor), FALSE, 0, 1 << 20},
    {"threshold", AT (threshold), TRUE, 0, 0.999999},
    {"window", AT (window), FALSE, 1, 4096},
    {"pool", AT (pool), FALSE, 1, 255},
    {"head-floor", AT (head_floor), TRUE, 0, 1},
    {"mix", AT (mix), TRUE, 0, 1},
    {"recent", AT (recent), TRUE, 0, 1},
};

static gboolean
set_value (ks_evict_params *params, const Option *option, const char *text, GError **error)
{
  gpointer at = G_STRUCT_MEMBER_P (params, option->offset);
  char *end = NULL;
  double value = g_ascii_strtod (text, &end);

  if (end == text || *end != '\0' || !(value >= option->least && value <= option->most) ||
      (!option->is_real && value != floor (value))) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "the option %s of a policy wants a %s from %g to %g, not '%s'", option->name,
                 option->is_real ? "number" : "whole number", option->least, option->most, text);
    return FALSE;
  }
  if (option->is_real)
    *(double *)at = value;
  else
    *(uint32_t *)at = (uint32_t)value;
  return TRUE;
}

static gboolean
set_option (ks_evict_params *params, const char *name, const char *value, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (options); i++)
    if (strcmp (options[i].name, name) == 0)
      return set_value (params, &options[i], value, error);
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "a policy has no option '%s': there are pin-first, pin-last, lookahead, floor, "
               "threshold, window, pool, head-floor, mix and recent",
               name);
  return FALSE;
}

gboolean
ks_eval_policy_parse (const char *text, const char *mode, ks_evict_params *out, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", -1);
  ks_evict_params params;
  ks_policy policy;
  ks_evict_mode parsed;

  if (!ks_policy_parse (parts[0] != NULL ? parts[0] : "", &policy)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "there is no policy '%s'",
                 parts[0] != NULL ? parts[0] : "");
    return FALSE;
  }
  if (!ks_evict_mode_parse (mode, &parsed)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "there is no mode '%s'", mode);
    return FALSE;
  }
  params = parsed == KS_EVICT_FAITHFUL ? ks_evict_faithful_params (policy)
                                       : ks_evict_default_params (policy);
  for (guint i = 1; parts[i] != NULL; i++) {
    char *equals = strchr (parts[i], '=');

    if (equals == NULL) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                   "'%s' is no option of a policy: write NAME=VALUE", parts[i]);
      return FALSE;
    }
    *equals = '\0';
    if (!set_option (&params, parts[i], equals + 1, error))
      return FALSE;
  }
  if (params.pool % 2 == 0) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "pool=%u: attention is pooled over an odd number of neighbours", params.pool);
    return FALSE;
  }
  *out = params;
  return TRUE;
}

/* eval-policy.c - a policy with its options as one text; see eval-session.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-session.h"

#include "app/ks-error.h"

#include <string.h>

static gboolean
set_option (ks_evict_params *params, const char *name, const char *value, GError **error)
{
  const struct {
    const char *name;
    uint32_t *at;
    guint64 least;
  } options[] = {{"pin-first", &params->pin_first, 0},
                 {"pin-last", &params->pin_last, 0},
                 {"lookahead", &params->lookahead, 1},
                 {"floor", &params->floor, 0}};

  for (guint i = 0; i < G_N_ELEMENTS (options); i++) {
    guint64 number;

    if (strcmp (options[i].name, name) != 0)
      continue;
    if (!g_ascii_string_to_unsigned (value, 10, options[i].least, G_MAXINT32, &number, NULL)) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                   "the option %s of a policy wants a whole number, not '%s'", name, value);
      return FALSE;
    }
    *options[i].at = (uint32_t)number;
    return TRUE;
  }
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "a policy has no option '%s': there are pin-first, pin-last, lookahead and floor",
               name);
  return FALSE;
}

gboolean
ks_eval_policy_parse (const char *text, const char *mode, ks_evict_params *out, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", -1);
  ks_evict_params params;
  ks_policy policy;

  if (!ks_policy_parse (parts[0] != NULL ? parts[0] : "", &policy)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "there is no policy '%s'",
                 parts[0] != NULL ? parts[0] : "");
    return FALSE;
  }
  if (strcmp (mode, "chunked") != 0) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "there is no mode '%s'", mode);
    return FALSE;
  }
  params = ks_evict_default_params (policy);
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
  *out = params;
  return TRUE;
}

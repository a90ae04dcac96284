/* cli-policy.h - the command line's options of eviction policies.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-policy-options.h"

G_BEGIN_DECLS

typedef struct {
  char *name; /* NULL = not given */
  char *mode, *pool_kind;
  gint64 seed;
  KsPolicyOptions asked; /* numbers as they were given, below 0 where none was */
} CliPolicy;

void cli_policy_init (CliPolicy *policy);
void cli_policy_clear (CliPolicy *policy);
void cli_policy_add (CliPolicy *policy, GOptionContext *context);
/* Checked.  KS_APP_ERROR_USAGE names what is wrong. */
gboolean cli_policy_make_options (const CliPolicy *policy, KsPolicyOptions *out, GError **error);
gboolean cli_policy_parse_name (const char *name, ks_policy *out, GError **error);

G_END_DECLS

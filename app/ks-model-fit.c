/* ks-model-fit.c - see ks-model-fit.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-model-fit.h"

#include <string.h>

/* Beside the weights: scratch, and some room to remember in.  The least target of the default model
 * (93.8 MiB) is 95.1 MiB, with hardly any room. */
#define WORK_BYTES ((guint64)8 << 20)
#define WORK_SHARE 16

guint64
ks_model_fit_get_need_bytes (KsModelEntry *entry)
{
  guint64 n_bytes = ks_model_entry_get_n_bytes (entry);

  return n_bytes + n_bytes / WORK_SHARE + WORK_BYTES;
}

KsModelFit
ks_model_fit_judge (guint64 need_bytes, guint64 target_bytes, guint64 available_bytes,
                    guint64 machine_bytes)
{
  if (machine_bytes > 0 && need_bytes > machine_bytes)
    return KS_MODEL_FIT_OVER_MACHINE;
  if (available_bytes > 0 && need_bytes > available_bytes)
    return KS_MODEL_FIT_OVER_AVAILABLE;
  if (target_bytes > 0 && need_bytes > target_bytes)
    return KS_MODEL_FIT_OVER_TARGET;
  return KS_MODEL_FIT_OK;
}

static guint64
find_kib (const char *text, const char *name)
{
  const char *found = strstr (text, name);

  return found == NULL ? 0 : g_ascii_strtoull (found + strlen (name), NULL, 10) * 1024;
}

void
ks_model_fit_read_machine (guint64 *out_available_bytes, guint64 *out_machine_bytes)
{
  g_autofree char *text = NULL;

  if (!g_file_get_contents ("/proc/meminfo", &text, NULL, NULL))
    text = g_strdup ("");
  *out_available_bytes = find_kib (text, "MemAvailable:");
  *out_machine_bytes = find_kib (text, "MemTotal:");
}

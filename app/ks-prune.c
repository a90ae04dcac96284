/* ks-prune.c - see ks-prune.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-prune.h"

#define MAX_TOKENS 65536
#define MAX_LAYERS 4096

gboolean
ks_prune_parse_zip (const char *text, ks_vision_zip *out)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", 3);
  guint64 kept = 0, merged = 0;

  if (g_strv_length (parts) != 2 ||
      !g_ascii_string_to_unsigned (parts[0], 10, 1, MAX_TOKENS, &kept, NULL) ||
      !g_ascii_string_to_unsigned (parts[1], 10, 0, MAX_TOKENS, &merged, NULL))
    return FALSE;
  *out = (ks_vision_zip){.n_dominant = (uint32_t)kept, .n_context = (uint32_t)merged};
  return TRUE;
}

gboolean
ks_prune_parse_fastv (const char *text, ks_fastv *out)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", 3);
  guint64 layer = 0;
  double drop = -1;
  char *end = NULL;

  if (g_strv_length (parts) == 2 && parts[1][0] != '\0') {
    drop = g_ascii_strtod (parts[1], &end);
    drop = *end == '\0' ? drop : -1;
  }
  if (!(drop >= 0 && drop <= 1) ||
      !g_ascii_string_to_unsigned (parts[0], 10, 1, MAX_LAYERS, &layer, NULL))
    return FALSE;
  *out = (ks_fastv){.layer = (uint32_t)layer, .drop = drop};
  return TRUE;
}

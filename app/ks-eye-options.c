/* ks-eye-options.c - see ks-eye-options.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-eye-options.h"

#include "app/ks-prune.h"

void
ks_eye_options_apply (KsEngineOptions *options, KsSettings *settings)
{
  g_return_if_fail (options != NULL && KS_IS_SETTINGS (settings));
  options->vision_limits.min_pixels = ks_settings_get_picture_min_pixels (settings);
  options->vision_limits.max_pixels = ks_settings_get_picture_max_pixels (settings);
  options->vision_limits.no_split = !ks_settings_get_split_pictures (settings);
  options->embed_memory_bytes = ks_settings_get_embedding_memory_bytes (settings);
}

void
ks_eye_options_set_store (KsEngineOptions *options, KsSettings *settings, const char *data_dir)
{
  g_autofree char *dir = NULL;

  g_return_if_fail (options != NULL && KS_IS_SETTINGS (settings) && data_dir != NULL);
  dir = g_build_filename (data_dir, "embeddings", NULL);
  g_clear_object (&options->embeds);
  options->embeds = ks_embed_store_new (dir);
  ks_embed_store_set_quota (options->embeds, ks_settings_get_embedding_disk_bytes (settings));
}

void
ks_eye_options_prune (KsEngineOptions *options, KsSettings *settings)
{
  g_autofree char *zip = NULL, *fastv = NULL;

  g_return_if_fail (options != NULL && KS_IS_SETTINGS (settings));
  zip = ks_settings_dup_visionzip (settings);
  fastv = ks_settings_dup_fastv (settings);
  if (zip != NULL)
    (void)ks_prune_parse_zip (zip, &options->vision_zip);
  if (fastv != NULL)
    (void)ks_prune_parse_fastv (fastv, &options->fastv);
}

/* cli-prune.c - the options that leave out tokens of pictures: VisionZip and FastV. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-options.h"

#include "app/ks-error.h"
#include "app/ks-prune.h"

void
cli_prune_add (CliOptions *options, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"visionzip", 0, 0, G_OPTION_ARG_STRING, &options->visionzip,
       "of each view of a picture keep the KEPT tokens that the eyes attend to most and merge the "
       "others into MERGED, as 54,10 (default: all tokens)",
       "KEPT,MERGED"},
      {"fastv", 0, 0, G_OPTION_ARG_STRING, &options->fastv,
       "behind this many layers leave out this part of a picture's tokens, as 2,0.5: those that "
       "the "
       "last token of the pass looks at least (default: all tokens in all layers)",
       "LAYERS,PART"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

static gboolean
parse_zip (const char *text, ks_vision_zip *out, GError **error)
{
  if (ks_prune_parse_zip (text, out))
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "--visionzip takes two numbers, tokens to keep (1 or more) and tokens to merge the "
               "others into, as 54,10; not '%s'",
               text);
  return FALSE;
}

static gboolean
parse_fastv (const char *text, ks_fastv *out, GError **error)
{
  if (ks_prune_parse_fastv (text, out))
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "--fastv takes a number of layers (1 or more) and a part from 0 to 1, as 2,0.5; "
               "not '%s'",
               text);
  return FALSE;
}

gboolean
cli_prune_apply (const CliOptions *options, KsEngineOptions *out, GError **error)
{
  return (options->visionzip == NULL || parse_zip (options->visionzip, &out->vision_zip, error)) &&
         (options->fastv == NULL || parse_fastv (options->fastv, &out->fastv, error));
}

/* ks-error.c - see ks-error.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-error.h"

#include "media/ks-media.h"

#include <gio/gio.h>

G_DEFINE_QUARK (ks - engine - error - quark, ks_engine_error)
G_DEFINE_QUARK (ks - app - error - quark, ks_app_error)

gboolean
ks_error_check (ks_status status, const ks_error *err, GError **error)
{
  const char *text;

  if (status == KS_OK)
    return TRUE;
  text = err != NULL && err->text[0] != '\0' ? err->text : ks_status_name (status);
  g_set_error_literal (error, KS_ENGINE_ERROR, (int)status, text);
  return FALSE;
}

gboolean
ks_error_is_cancelled (const GError *error)
{
  return g_error_matches (error, KS_ENGINE_ERROR, KS_ERR_CANCELLED) ||
         g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
         g_error_matches (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED);
}

gboolean
ks_error_is_password (const GError *error, gboolean *out_was_wrong)
{
  gboolean was_wrong = g_error_matches (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WRONG_PASSWORD);

  if (out_was_wrong != NULL)
    *out_was_wrong = was_wrong;
  return was_wrong || g_error_matches (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_PASSWORD);
}

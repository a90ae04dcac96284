/* ks-font-paths.c - see ks-font-paths.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-font-paths.h"

#include <fontconfig/fontconfig.h>

void
ks_font_paths_add (GPtrArray *paths)
{
  FcStrList *dirs;
  FcChar8 *dir;

  FcInit ();
  dirs = FcConfigGetFontDirs (NULL);
  while (dirs != NULL && (dir = FcStrListNext (dirs)) != NULL)
    g_ptr_array_add (paths, g_strdup ((const char *)dir));
  if (dirs != NULL)
    FcStrListDone (dirs);
}

/* ks-ocr-data.c - see ks-ocr-data.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-ocr-data.h"

#include <string.h>

#define SUFFIX ".traineddata"

const char *
ks_ocr_data_get_folder (void)
{
  static const char *const folders[] = {"/usr/share/tesseract-ocr/5/tessdata",
                                        "/usr/share/tesseract-ocr/4.00/tessdata",
                                        "/usr/share/tessdata", "/usr/local/share/tessdata"};

  for (gsize i = 0; i < G_N_ELEMENTS (folders); i++)
    if (g_file_test (folders[i], G_FILE_TEST_IS_DIR))
      return folders[i];
  return NULL;
}

gboolean
ks_ocr_data_is_list (const char *languages)
{
  guint n = 1, n_char = 0;

  for (const char *p = languages; *p != '\0'; p++) {
    if (*p == '+') {
      if (n_char == 0)
        return FALSE;
      n++;
      n_char = 0;
    } else if (g_ascii_isalnum (*p) || *p == '_') {
      n_char++;
    } else {
      return FALSE;
    }
  }
  return n_char > 0 && n <= KS_OCR_MAX_LANGUAGES;
}

gboolean
ks_ocr_data_has (const char *languages)
{
  const char *folder = ks_ocr_data_get_folder ();
  g_auto (GStrv) names = g_strsplit (languages, "+", -1);

  if (folder == NULL || !ks_ocr_data_is_list (languages))
    return FALSE;
  for (guint i = 0; names[i] != NULL; i++) {
    g_autofree char *path = g_strdup_printf ("%s/%s" SUFFIX, folder, names[i]);

    if (!g_file_test (path, G_FILE_TEST_IS_REGULAR))
      return FALSE;
  }
  return TRUE;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

GStrv
ks_ocr_data_list (void)
{
  const char *folder = ks_ocr_data_get_folder (), *name;
  g_autoptr (GDir) dir = folder != NULL ? g_dir_open (folder, 0, NULL) : NULL;
  GPtrArray *names = g_ptr_array_new ();

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *base = NULL;

    if (!g_str_has_suffix (name, SUFFIX))
      continue;
    base = g_strndup (name, strlen (name) - strlen (SUFFIX));
    /* osd tells scripts and directions apart; it reads nothing. */
    if (!g_str_equal (base, "osd") && !g_str_equal (base, "equ") && ks_ocr_data_is_list (base))
      g_ptr_array_add (names, g_steal_pointer (&base));
  }
  g_ptr_array_sort (names, compare_names);
  g_ptr_array_add (names, NULL);
  return (GStrv)g_ptr_array_free (names, FALSE);
}

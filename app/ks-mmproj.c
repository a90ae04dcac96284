/* ks-mmproj.c - see ks-mmproj.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-mmproj.h"

#include "app/ks-error.h"
#include "engine/vision.h"

#include <gio/gio.h>
#include <string.h>

typedef struct {
  char *path;
  guint n_common; /* characters that its name shares with the model's */
  guint64 n_bytes;
} Found;

static void
clear_found (gpointer data)
{
  g_free (((Found *)data)->path);
}

/* Letters and digits of two names that are the same from their beginnings, "mmproj" left out. */
static guint
count_common (const char *mmproj, const char *model)
{
  guint n = 0;

  if (g_ascii_strncasecmp (mmproj, "mmproj", 6) == 0)
    mmproj += 6;
  for (;;) {
    while (*mmproj != '\0' && !g_ascii_isalnum (*mmproj))
      mmproj++;
    while (*model != '\0' && !g_ascii_isalnum (*model))
      model++;
    if (*mmproj == '\0' || g_ascii_tolower (*mmproj) != g_ascii_tolower (*model))
      return n;
    mmproj++;
    model++;
    n++;
  }
}

static int
compare_found (gconstpointer a, gconstpointer b)
{
  const Found *x = a, *y = b;

  if (x->n_common != y->n_common)
    return x->n_common > y->n_common ? -1 : 1;
  if (x->n_bytes != y->n_bytes)
    return x->n_bytes > y->n_bytes ? -1 : 1;
  return strcmp (x->path, y->path);
}

static gboolean
is_tower (const ks_gguf *g)
{
  ks_gguf_str arch;

  return ks_gguf_get_str (g, "general.architecture", &arch) && arch.n_bytes == 4 &&
         memcmp (arch.data, "clip", 4) == 0;
}

/* A file that cannot be read is no tower. */
static void
look_at (GArray *found, ks_alloc *alloc, const ks_gguf *model, const char *model_name,
         const char *path)
{
  g_autofree char *name = g_path_get_basename (path);
  Found item = {0};
  ks_gguf *g = NULL;

  if (ks_gguf_open (alloc, path, &g, NULL) != KS_OK)
    return;
  if (is_tower (g) && ks_vision_check_files (g, model, NULL) == KS_OK) {
    item.path = g_strdup (path);
    item.n_common = count_common (name, model_name);
    item.n_bytes = ks_gguf_get_mapped_bytes (g);
    g_array_append_val (found, item);
  }
  ks_gguf_close (g);
}

static void
look_in_folder (GArray *found, ks_alloc *alloc, const ks_gguf *model, const char *model_path)
{
  g_autofree char *folder = g_path_get_dirname (model_path);
  g_autofree char *model_name = g_path_get_basename (model_path);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *file;

  while (dir != NULL && (file = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (folder, file, NULL);

    if (g_str_has_suffix (file, ".gguf") && !g_str_equal (file, model_name) &&
        g_file_test (path, G_FILE_TEST_IS_REGULAR))
      look_at (found, alloc, model, model_name, path);
  }
}

char **
ks_mmproj_list (const char *model_path)
{
  g_autoptr (GArray) found = g_array_new (FALSE, TRUE, sizeof (Found));
  g_autoptr (GStrvBuilder) paths = g_strv_builder_new ();
  ks_alloc *alloc = ks_alloc_new ();
  ks_gguf *model = NULL;

  g_array_set_clear_func (found, clear_found);
  if (alloc != NULL && ks_gguf_open (alloc, model_path, &model, NULL) == KS_OK && !is_tower (model))
    look_in_folder (found, alloc, model, model_path);
  ks_gguf_close (model);
  ks_alloc_free (alloc);
  g_array_sort (found, compare_found);
  for (guint i = 0; i < found->len; i++)
    g_strv_builder_add (paths, g_array_index (found, Found, i).path);
  return g_strv_builder_end (paths);
}

gboolean
ks_mmproj_check (const char *mmproj_path, const char *model_path, GError **error)
{
  ks_alloc *alloc = ks_alloc_new ();
  ks_gguf *model = NULL, *mmproj = NULL;
  ks_error err = {0};
  ks_status status = alloc != NULL ? KS_OK : KS_ERR_NOMEM;

  if (status == KS_OK)
    status = ks_gguf_open (alloc, model_path, &model, &err);
  if (status == KS_OK)
    status = ks_gguf_open (alloc, mmproj_path, &mmproj, &err);
  if (status == KS_OK)
    status = ks_vision_check_files (mmproj, model, &err);
  ks_gguf_close (mmproj);
  ks_gguf_close (model);
  ks_alloc_free (alloc);
  return ks_error_check (status, &err, error);
}

/* ks-library-models.c - the models that can be loaded: those in the models folder, and the one that
 * is loaded, wherever it lies.
 * Threads: main; the files are read on a task's thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-library-internal.h"

#include "app/ks-model-registry.h"

typedef struct {
  GVariant *mmproj_choices;
  char *loaded; /* path; NULL = none */
} Listing;

static void
listing_free (gpointer data)
{
  Listing *listing = data;

  g_clear_pointer (&listing->mmproj_choices, g_variant_unref);
  g_free (listing->loaded);
  g_free (listing);
}

const char *
ks_library_get_models_dir (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  if (self->models_dir == NULL) {
    g_autoptr (KsModelRegistry) registry = ks_model_registry_new (NULL, NULL);

    self->models_dir = g_strdup (ks_model_registry_get_models_dir (registry));
  }
  return self->models_dir;
}

static gboolean
has_path (const GPtrArray *entries, const char *path)
{
  for (guint i = 0; i < entries->len; i++) {
    g_autofree char *full =
        g_canonicalize_filename (ks_model_entry_get_path (g_ptr_array_index (entries, i)), NULL);

    if (g_str_equal (full, path))
      return TRUE;
  }
  return FALSE;
}

static void
list_models (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  g_autoptr (KsModelRegistry) registry = ks_model_registry_new (NULL, NULL);
  Listing *listing = data;
  GPtrArray *entries;

  ks_model_registry_set_mmproj_choices (registry, listing->mmproj_choices);
  entries = ks_model_registry_list (registry, NULL);
  if (listing->loaded != NULL && !has_path (entries, listing->loaded)) {
    /* A file that is gone since cannot be loaded again: it has no row. */
    KsModelEntry *entry = ks_model_registry_describe (registry, listing->loaded, NULL);

    if (entry != NULL)
      g_ptr_array_add (entries, entry);
  }
  g_task_return_pointer (task, entries, (GDestroyNotify)g_ptr_array_unref);
}

static void
listed_models_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  GError *error = NULL;
  GPtrArray *models = g_task_propagate_pointer (G_TASK (result), &error);

  if (models != NULL)
    g_task_return_pointer (task, models, (GDestroyNotify)g_ptr_array_unref);
  else
    g_task_return_error (task, error);
}

void
ks_library_list_models_async (KsLibrary *self, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) work = NULL;
  Listing *listing;

  g_return_if_fail (KS_IS_LIBRARY (self));
  listing = g_new0 (Listing, 1);
  listing->mmproj_choices = ks_settings_dup_mmproj_choices (self->settings);
  listing->loaded = g_strdup (ks_library_get_model_path (self));
  work = g_task_new (NULL, cancellable, listed_models_cb,
                     g_task_new (self, cancellable, callback, user_data));
  g_task_set_task_data (work, listing, listing_free);
  g_task_run_in_thread (work, list_models);
}

GPtrArray *
ks_library_list_models_finish (KsLibrary *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), NULL);
  return g_task_propagate_pointer (G_TASK (result), error);
}

/* test-model-registry.c - models are found by path, file name and beginning of their name; a gate
 * only by the SHA-256 of its model; later parts and foreign files are no models. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-error.h"
#include "app/ks-model-registry.h"
#include "tests/remove-tree.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
  char *folder, *models, *data, *gates, *model;
  KsModelRegistry *registry;
} Fixture;

static void
copy_file (const char *from, const char *folder, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *data = NULL, *to = g_build_filename (folder, name, NULL);
  gsize n = 0;

  g_file_get_contents (from, &data, &n, &error);
  g_assert_no_error (error);
  g_file_set_contents (to, data, (gssize)n, &error);
  g_assert_no_error (error);
}

static void
set_up (Fixture *f, gconstpointer data)
{
  g_autofree char *source =
      g_build_filename (g_getenv ("KS_TEST_CASES"), "llama", "model.gguf", NULL);

  f->folder = g_dir_make_tmp ("ks-registry-XXXXXX", NULL);
  f->models = g_build_filename (f->folder, "models", NULL);
  f->data = g_build_filename (f->folder, "data", NULL);
  f->gates = g_build_filename (f->data, "gates", NULL);
  f->model = g_build_filename (f->models, "Tiny.gguf", NULL);
  g_assert_cmpint (g_mkdir_with_parents (f->models, 0700), ==, 0);
  g_assert_cmpint (g_mkdir_with_parents (f->gates, 0700), ==, 0);
  g_setenv ("XDG_CACHE_HOME", f->folder, TRUE);
  copy_file (source, f->models, "Tiny.gguf");
  f->registry = ks_model_registry_new (f->models, f->data);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_object_unref (f->registry);
  remove_tree (f->folder);
  g_free (f->folder);
  g_free (f->models);
  g_free (f->data);
  g_free (f->gates);
  g_free (f->model);
}

static void
assert_resolves (Fixture *f, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = ks_model_registry_resolve (f->registry, name, &error);

  g_assert_no_error (error);
  g_assert_cmpstr (path, ==, f->model);
}

static void
test_resolve (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  assert_resolves (f, NULL);
  assert_resolves (f, "tiny.gguf");
  assert_resolves (f, "TINY");
  assert_resolves (f, "tiny-ll"); /* the model's own name is tiny-llama */
  assert_resolves (f, f->model);
  g_assert_null (ks_model_registry_resolve (f->registry, "other", &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_NO_MODEL);
  g_clear_error (&error);
  copy_file (f->model, f->models, "Tiny-2.gguf");
  g_assert_null (ks_model_registry_resolve (f->registry, "tiny", &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_NO_MODEL);
}

static void
test_list (Fixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) problems = NULL, entries = NULL;
  g_autofree char *bad = g_build_filename (f->models, "bad.gguf", NULL);
  g_autofree char *part = g_build_filename (f->models, "m-00002-of-00003.gguf", NULL);
  KsModelEntry *entry;
  gboolean is_fallback = TRUE;

  g_file_set_contents (bad, "no model", -1, NULL);
  g_file_set_contents (part, "a later part", -1, NULL);
  entries = ks_model_registry_list (f->registry, &problems);
  g_assert_cmpuint (entries->len, ==, 1);
  g_assert_cmpuint (problems->len, ==, 1);
  g_assert_true (g_str_has_prefix (g_ptr_array_index (problems, 0), "bad.gguf: "));
  entry = g_ptr_array_index (entries, 0);
  g_assert_cmpstr (ks_model_entry_get_name (entry), ==, "tiny-llama");
  g_assert_cmpstr (ks_model_entry_get_arch (entry), ==, "llama");
  g_assert_cmpstr (ks_model_entry_get_quantisation (entry), ==, "F32");
  g_assert_cmpuint (ks_model_entry_get_n_ctx (entry), ==, 2048);
  g_assert_cmpuint (ks_model_entry_get_n_layer (entry), ==, 2);
  g_assert_cmpuint (ks_model_entry_get_n_kv_head (entry), ==, 4);
  g_assert_nonnull (ks_model_entry_get_template (entry, &is_fallback));
  g_assert_false (is_fallback);
}

/* The file that the program comes with has its name from the manifest; a file of another size that
 * is called so, and every other, its own. */
static void
test_name (Fixture *f, gconstpointer data)
{
  g_autofree char *path = g_build_filename (f->data, "default-model.json", NULL);
  g_autofree char *text = NULL, *found = NULL;
  g_autoptr (KsModelEntry) entry = ks_model_registry_describe (f->registry, f->model, NULL);
  g_autoptr (KsModelEntry) named = NULL, other = NULL;

  g_assert_cmpstr (ks_model_entry_get_name (entry), ==, "tiny-llama");
  text = g_strdup_printf (
      "{\"name\": \"Tiny 1M\", \"file\": \"Tiny.gguf\", \"bytes\": %" G_GUINT64_FORMAT "}",
      ks_model_entry_get_n_bytes (entry));
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  named = ks_model_registry_describe (f->registry, f->model, NULL);
  g_assert_cmpstr (ks_model_entry_get_name (named), ==, "Tiny 1M");
  found = ks_model_registry_resolve (f->registry, "tiny 1", NULL);
  g_assert_cmpstr (found, ==, f->model);
  g_assert_true (g_file_set_contents (
      path, "{\"name\": \"Tiny 1M\", \"file\": \"Tiny.gguf\", \"bytes\": 7}", -1, NULL));
  other = ks_model_registry_describe (f->registry, f->model, NULL);
  g_assert_cmpstr (ks_model_entry_get_name (other), ==, "tiny-llama");
}

static void
write_gates (Fixture *f, const char *hash, guint n_layer)
{
  g_autofree char *path = g_build_filename (f->gates, "manifest.json", NULL);
  g_autofree char *text = g_strdup_printf (
      "{\"gates\": [{\"file\": \"g.safetensors\", \"model_sha256\": \"%s\", \"n_layer\": %u, "
      "\"n_kv_head\": 4, \"n_embd\": 256}]}",
      hash, n_layer);

  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

static void
test_gate (Fixture *f, gconstpointer data)
{
  g_autofree char *hash = ks_model_registry_hash (f->registry, f->model, FALSE, NULL, NULL);
  g_autofree char *again = ks_model_registry_hash (f->registry, f->model, FALSE, NULL, NULL);
  g_autofree char *found = NULL, *want = g_build_filename (f->gates, "g.safetensors", NULL);

  g_assert_nonnull (hash);
  g_assert_cmpuint (strlen (hash), ==, 64);
  g_assert_cmpstr (hash, ==, again); /* the remembered one */
  g_assert_null (ks_model_registry_find_gate (f->registry, f->model, NULL));
  write_gates (f, "00", 2);
  g_assert_null (ks_model_registry_find_gate (f->registry, f->model, NULL));
  write_gates (f, hash, 3);
  g_assert_null (ks_model_registry_find_gate (f->registry, f->model, NULL));
  write_gates (f, hash, 2);
  found = ks_model_registry_find_gate (f->registry, f->model, NULL);
  g_assert_cmpstr (found, ==, want);
}

/* A changed file is hashed anew. */
static void
test_hash_changes (Fixture *f, gconstpointer data)
{
  g_autofree char *path = g_build_filename (f->folder, "file", NULL);
  g_autofree char *one = NULL, *two = NULL;

  g_file_set_contents (path, "one", -1, NULL);
  one = ks_model_registry_hash (f->registry, path, FALSE, NULL, NULL);
  g_file_set_contents (path, "three", -1, NULL);
  two = ks_model_registry_hash (f->registry, path, FALSE, NULL, NULL);
  g_assert_cmpstr (one, ==, "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
  g_assert_cmpstr (one, !=, two);
}

/* The manifest beside a file vouches for it while size and time are the same; a fresh hash asks
 * nobody. */
static void
test_vouched (Fixture *f, gconstpointer data)
{
  g_autofree char *manifest = g_build_filename (f->models, "manifest.json", NULL);
  g_autofree char *text = NULL, *trusted = NULL, *fresh = NULL, *expected = NULL;
  struct stat st;

  g_assert_cmpint (g_stat (f->model, &st), ==, 0);
  text = g_strdup_printf (
      "{\"models\": [{\"file\": \"Tiny.gguf\", \"sha256\": \"beef\", \"bytes\": %" G_GINT64_FORMAT
      ", \"mtime_ns\": %" G_GINT64_FORMAT "}]}",
      (gint64)st.st_size, (gint64)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
  g_assert_true (g_file_set_contents (manifest, text, -1, NULL));
  trusted = ks_model_registry_hash (f->registry, f->model, FALSE, NULL, NULL);
  fresh = ks_model_registry_hash (f->registry, f->model, TRUE, NULL, NULL);
  expected = ks_model_registry_get_expected_hash (f->registry, f->model);
  g_assert_cmpstr (trusted, ==, "beef");
  g_assert_cmpstr (expected, ==, "beef");
  g_assert_cmpuint (strlen (fresh), ==, 64);
}

static void
copy_case (Fixture *f, const char *family, const char *file, const char *name)
{
  g_autofree char *from = g_build_filename (g_getenv ("KS_TEST_CASES"), family, file, NULL);

  copy_file (from, f->models, name);
}

static char *
find_base (Fixture *f, const char *model)
{
  g_autofree char *path = g_build_filename (f->models, model, NULL);
  g_autofree char *found = ks_model_registry_find_mmproj (f->registry, path);

  return found != NULL ? g_path_get_basename (found) : NULL;
}

static void
assert_eyes (Fixture *f, const char *model, const char *mmproj)
{
  g_autofree char *found = find_base (f, model);

  g_assert_cmpstr (found, ==, mmproj);
}

/* A vision tower in the model's folder is found by its sizes, not by its name; one that does not
 * fit never is; of two that fit the one whose name is nearer; what the user chose goes first. */
static void
test_eyes (Fixture *f, gconstpointer data)
{
  g_autofree char *model = g_build_filename (f->models, "Sees-Q4.gguf", NULL);
  g_autofree char *far = NULL;
  g_autoptr (GPtrArray) list = NULL;
  GVariantBuilder builder;

  copy_case (f, "qwen3-vl", "model.gguf", "Sees-Q4.gguf");
  copy_case (f, "llava-1.5", "mmproj.gguf", "mmproj-Sees-Q4.gguf");
  assert_eyes (f, "Sees-Q4.gguf", NULL);
  copy_case (f, "qwen3-vl", "mmproj.gguf", "other.gguf");
  assert_eyes (f, "Sees-Q4.gguf", "other.gguf");
  assert_eyes (f, "Tiny.gguf", NULL);
  copy_case (f, "qwen3-vl", "mmproj.gguf", "mmproj-sees-f16.gguf");
  assert_eyes (f, "Sees-Q4.gguf", "mmproj-sees-f16.gguf");
  far = g_build_filename (f->models, "other.gguf", NULL);
  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a{ss}"));
  g_variant_builder_add (&builder, "{ss}", model, far);
  ks_model_registry_set_mmproj_choices (f->registry, g_variant_builder_end (&builder));
  assert_eyes (f, "Sees-Q4.gguf", "other.gguf");
  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a{ss}"));
  g_variant_builder_add (&builder, "{ss}", model, "");
  ks_model_registry_set_mmproj_choices (f->registry, g_variant_builder_end (&builder));
  assert_eyes (f, "Sees-Q4.gguf", NULL);
  list = ks_model_registry_list (f->registry, NULL);
  g_assert_cmpuint (list->len, ==, 2); /* towers are no models */
  g_assert_null (ks_model_entry_get_mmproj (g_ptr_array_index (list, 0)));
  g_assert_cmpuint (
      g_strv_length ((char **)ks_model_entry_get_mmproj_choices (g_ptr_array_index (list, 0))), ==,
      2);
}

static void
test_fit (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  double n_entry = 0;

  g_assert_true (ks_model_registry_check_fit (f->registry, f->model, 64u << 20, &n_entry, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (n_entry, >, 100);
  g_assert_false (ks_model_registry_check_fit (f->registry, f->model, 1u << 20, NULL, &error));
  g_assert_error (error, KS_ENGINE_ERROR, KS_ERR_BUDGET);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func) g_test_add ("/model-registry/" name, Fixture, NULL, set_up, func, tear_down)
  ADD ("eyes", test_eyes);
  ADD ("resolve", test_resolve);
  ADD ("list", test_list);
  ADD ("name", test_name);
  ADD ("gate", test_gate);
  ADD ("hash-changes", test_hash_changes);
  ADD ("vouched", test_vouched);
  ADD ("fit", test_fit);
  return g_test_run ();
}

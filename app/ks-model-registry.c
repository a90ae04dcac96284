/* ks-model-registry.c - see ks-model-registry.h.
 * Hashes are remembered in hashes.ini under the user's cache folder: hashing a model on every start
 * would cost more than loading it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-model-registry.h"

#include "app/ks-data-dir.h"
#include "app/ks-engine-setup.h"
#include "app/ks-error.h"
#include "app/ks-mmproj.h"

#include <cjson/cJSON.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#define HASH_BLOCK (1u << 20)

struct _KsModelRegistry {
  GObject parent_instance;
  char *models_dir, *data_dir;
  GVariant *mmproj_choices; /* NULL = none */
};

G_DEFINE_FINAL_TYPE (KsModelRegistry, ks_model_registry, G_TYPE_OBJECT)

static void
ks_model_registry_finalize (GObject *object)
{
  KsModelRegistry *self = KS_MODEL_REGISTRY (object);

  g_free (self->models_dir);
  g_free (self->data_dir);
  g_clear_pointer (&self->mmproj_choices, g_variant_unref);
  G_OBJECT_CLASS (ks_model_registry_parent_class)->finalize (object);
}

static void
ks_model_registry_class_init (KsModelRegistryClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ks_model_registry_finalize;
}

static void
ks_model_registry_init (KsModelRegistry *self)
{
}

KsModelRegistry *
ks_model_registry_new (const char *models_dir, const char *data_dir)
{
  KsModelRegistry *self = g_object_new (KS_TYPE_MODEL_REGISTRY, NULL);

  self->models_dir = models_dir != NULL ? g_strdup (models_dir) : ks_models_dir_dup ();
  self->data_dir = data_dir != NULL ? g_strdup (data_dir) : ks_data_dir_dup ();
  return self;
}

const char *
ks_model_registry_get_models_dir (KsModelRegistry *self)
{
  g_return_val_if_fail (KS_IS_MODEL_REGISTRY (self), NULL);
  return self->models_dir;
}

/* Parsed JSON file or NULL; a manifest that is missing or damaged counts as empty. */
static cJSON *
read_json (const char *folder, const char *name)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_autofree char *text = NULL;

  if (!g_file_test (path, G_FILE_TEST_IS_REGULAR) || !g_file_get_contents (path, &text, NULL, NULL))
    return NULL;
  return cJSON_Parse (text);
}

static const char *
get_json_string (const cJSON *object, const char *key)
{
  return cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (object, key));
}

/* Parts 2..N of a split model are opened with part 1. */
static gboolean
is_later_part (const char *file_name)
{
  const char *of = g_strrstr (file_name, "-of-");

  return of != NULL && of - file_name >= 6 && of[-6] == '-' && strncmp (of - 5, "00001", 5) != 0 &&
         strspn (of - 5, "0123456789") == 5;
}

static int
compare_entries (gconstpointer a, gconstpointer b)
{
  return strcmp (ks_model_entry_get_file_name (*(KsModelEntry *const *)a),
                 ks_model_entry_get_file_name (*(KsModelEntry *const *)b));
}

/* --- vision towers --- */

void
ks_model_registry_set_mmproj_choices (KsModelRegistry *self, GVariant *choices)
{
  g_return_if_fail (KS_IS_MODEL_REGISTRY (self));
  g_clear_pointer (&self->mmproj_choices, g_variant_unref);
  if (choices != NULL && g_variant_is_of_type (choices, G_VARIANT_TYPE ("a{ss}")))
    self->mmproj_choices = g_variant_ref_sink (choices);
}

/* What was chosen if it is there, else the likeliest; "" stands for none. */
static const char *
pick_mmproj (KsModelRegistry *self, const char *model_path, char **likely)
{
  const char *chosen = NULL;

  if (self->mmproj_choices != NULL)
    (void)g_variant_lookup (self->mmproj_choices, model_path, "&s", &chosen);
  if (chosen != NULL && (chosen[0] == '\0' || g_file_test (chosen, G_FILE_TEST_EXISTS)))
    return chosen;
  return likely[0] != NULL ? likely[0] : "";
}

char *
ks_model_registry_find_mmproj (KsModelRegistry *self, const char *model_path)
{
  g_auto (GStrv) likely = NULL;
  g_autofree char *full = NULL;
  const char *path;

  g_return_val_if_fail (KS_IS_MODEL_REGISTRY (self) && model_path != NULL, NULL);
  full = g_canonicalize_filename (model_path, NULL);
  likely = ks_mmproj_list (full);
  path = pick_mmproj (self, full, likely);
  return path[0] != '\0' ? g_strdup (path) : NULL;
}

static void
pair (KsModelRegistry *self, KsModelEntry *entry)
{
  g_autofree char *full = g_canonicalize_filename (ks_model_entry_get_path (entry), NULL);
  g_auto (GStrv) likely = ks_mmproj_list (full);
  const char *path = pick_mmproj (self, full, likely);

  ks_model_entry_set_mmproj (entry, path[0] != '\0' ? path : NULL, (const char *const *)likely);
}

/* Some models call themselves after a run of training: what the program comes with has a name to
 * read, for exactly that file. */
static void
give_listed_name (KsModelRegistry *self, KsModelEntry *entry)
{
  cJSON *manifest = read_json (self->data_dir, "default-model.json");
  const cJSON *n_bytes = cJSON_GetObjectItemCaseSensitive (manifest, "bytes");
  const char *name = get_json_string (manifest, "name");

  if (name != NULL && cJSON_IsNumber (n_bytes) &&
      n_bytes->valuedouble == (double)ks_model_entry_get_n_bytes (entry) &&
      g_strcmp0 (get_json_string (manifest, "file"), ks_model_entry_get_file_name (entry)) == 0)
    ks_model_entry_set_name (entry, name);
  cJSON_Delete (manifest);
}

KsModelEntry *
ks_model_registry_describe (KsModelRegistry *self, const char *path, GError **error)
{
  KsModelEntry *entry;

  g_return_val_if_fail (KS_IS_MODEL_REGISTRY (self) && path != NULL, NULL);
  entry = ks_model_entry_new (path, error);
  if (entry == NULL)
    return NULL;
  give_listed_name (self, entry);
  if (ks_model_entry_is_text_model (entry))
    pair (self, entry);
  return entry;
}

GPtrArray *
ks_model_registry_list (KsModelRegistry *self, GPtrArray **out_problems)
{
  GPtrArray *entries = g_ptr_array_new_with_free_func (g_object_unref);
  GPtrArray *problems = g_ptr_array_new_with_free_func (g_free);
  GDir *dir;
  const char *file;

  g_return_val_if_fail (KS_IS_MODEL_REGISTRY (self), NULL);
  dir = g_dir_open (self->models_dir, 0, NULL);
  while (dir != NULL && (file = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (self->models_dir, file, NULL);
    g_autoptr (GError) error = NULL;
    g_autoptr (KsModelEntry) entry = NULL;

    if (!g_str_has_suffix (file, ".gguf") || is_later_part (file))
      continue;
    entry = ks_model_registry_describe (self, path, &error);
    if (entry == NULL)
      g_ptr_array_add (problems, g_strdup_printf ("%s: %s", file, error->message));
    else if (ks_model_entry_is_text_model (entry))
      g_ptr_array_add (entries, g_steal_pointer (&entry));
  }
  if (dir != NULL)
    g_dir_close (dir);
  g_ptr_array_sort (entries, compare_entries);
  if (out_problems != NULL)
    *out_problems = problems;
  else
    g_ptr_array_unref (problems);
  return entries;
}

/* The default model if it is there, else the first model found. */
static char *
find_default (KsModelRegistry *self, GError **error)
{
  cJSON *manifest = read_json (self->data_dir, "default-model.json");
  const char *file = get_json_string (manifest, "file");
  g_autofree char *path = NULL;
  g_autoptr (GPtrArray) entries = NULL;

  if (file != NULL && strchr (file, '/') == NULL)
    path = g_build_filename (self->models_dir, file, NULL);
  cJSON_Delete (manifest);
  if (path != NULL && g_file_test (path, G_FILE_TEST_EXISTS))
    return g_steal_pointer (&path);
  entries = ks_model_registry_list (self, NULL);
  if (entries->len > 0)
    return g_strdup (ks_model_entry_get_path (g_ptr_array_index (entries, 0)));
  g_set_error (
      error, KS_APP_ERROR, KS_APP_ERROR_NO_MODEL,
      "there is no model in %s: run ./run.sh once to fetch the default one, or give a GGUF "
      "file with --model FILE",
      self->models_dir);
  return NULL;
}

static gboolean
begins_with (const char *text, const char *prefix)
{
  g_autofree char *a = g_utf8_casefold (text, -1);
  g_autofree char *b = g_utf8_casefold (prefix, -1);

  return g_str_has_prefix (a, b);
}

char *
ks_model_registry_resolve (KsModelRegistry *self, const char *name, GError **error)
{
  g_autoptr (GPtrArray) entries = NULL;
  KsModelEntry *found = NULL;
  guint n_found = 0;

  g_return_val_if_fail (KS_IS_MODEL_REGISTRY (self), NULL);
  if (name == NULL)
    return find_default (self, error);
  if (strchr (name, '/') != NULL || g_file_test (name, G_FILE_TEST_EXISTS))
    return g_strdup (name);
  entries = ks_model_registry_list (self, NULL);
  for (guint i = 0; i < entries->len; i++) {
    KsModelEntry *entry = g_ptr_array_index (entries, i);

    if (g_ascii_strcasecmp (ks_model_entry_get_file_name (entry), name) == 0)
      return g_strdup (ks_model_entry_get_path (entry));
    if (begins_with (ks_model_entry_get_file_name (entry), name) ||
        begins_with (ks_model_entry_get_name (entry), name)) {
      found = entry;
      n_found++;
    }
  }
  if (n_found == 1)
    return g_strdup (ks_model_entry_get_path (found));
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_NO_MODEL,
               n_found == 0 ? "no file and no model in %s is called %s: see keepsake-cli models"
                            : "more than one model in %s begins with %s: give more of its name",
               self->models_dir, name);
  return NULL;
}

/* Where the hash of a file is remembered. */
static char *
dup_cache_path (void)
{
  return g_build_filename (g_get_user_cache_dir (), "keepsake", "hashes.ini", NULL);
}

/* Size and time of change as one word; a changed file gets another one. */
static char *
dup_stamp (const struct stat *st)
{
  return g_strdup_printf ("%" G_GUINT64_FORMAT ".%" G_GINT64_FORMAT ".%ld", (guint64)st->st_size,
                          (gint64)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
}

/* Group names of a key file allow no brackets or control characters: the path's own hash names it.
 */
static char *
dup_group (const char *path)
{
  g_autofree char *full = g_canonicalize_filename (path, NULL);

  return g_compute_checksum_for_string (G_CHECKSUM_SHA1, full, -1);
}

static char *
recall_hash (const char *path, const char *stamp)
{
  g_autoptr (GKeyFile) file = g_key_file_new ();
  g_autofree char *cache = dup_cache_path (), *group = dup_group (path), *known = NULL;

  if (!g_key_file_load_from_file (file, cache, G_KEY_FILE_NONE, NULL))
    return NULL;
  known = g_key_file_get_string (file, group, "stamp", NULL);
  if (g_strcmp0 (known, stamp) != 0)
    return NULL;
  return g_key_file_get_string (file, group, "sha256", NULL);
}

/* Failing to remember costs time next time, nothing else. */
static void
remember_hash (const char *path, const char *stamp, const char *hash)
{
  g_autoptr (GKeyFile) file = g_key_file_new ();
  g_autofree char *cache = dup_cache_path (), *group = dup_group (path);
  g_autofree char *folder = g_path_get_dirname (cache), *text = NULL;

  (void)g_key_file_load_from_file (file, cache, G_KEY_FILE_NONE, NULL);
  g_key_file_set_string (file, group, "stamp", stamp);
  g_key_file_set_string (file, group, "sha256", hash);
  text = g_key_file_to_data (file, NULL, NULL);
  if (g_mkdir_with_parents (folder, 0700) == 0)
    (void)g_file_set_contents_full (cache, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0600, NULL);
}

static char *
compute_hash (const char *path, GCancellable *cancellable, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GFileInputStream) in = g_file_read (file, cancellable, error);
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree guchar *block = g_malloc (HASH_BLOCK);
  gssize n;

  if (in == NULL)
    return NULL;
  while ((n = g_input_stream_read (G_INPUT_STREAM (in), block, HASH_BLOCK, cancellable, error)) > 0)
    g_checksum_update (sum, block, n);
  return n < 0 ? NULL : g_strdup (g_checksum_get_string (sum));
}

/* The manifest that the fetcher wrote beside the file, when size and time are as it saw them. */
static char *
get_vouched_hash (const char *path, const struct stat *st)
{
  g_autofree char *folder = g_path_get_dirname (path), *file = g_path_get_basename (path);
  cJSON *manifest = read_json (folder, "manifest.json");
  double time_ns = (double)((gint64)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec);
  const cJSON *item;
  char *hash = NULL;

  cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive (manifest, "models"))
  {
    const cJSON *bytes = cJSON_GetObjectItemCaseSensitive (item, "bytes");
    const cJSON *time = cJSON_GetObjectItemCaseSensitive (item, "mtime_ns");

    if (hash == NULL && g_strcmp0 (get_json_string (item, "file"), file) == 0 &&
        cJSON_IsNumber (bytes) && bytes->valuedouble == (double)st->st_size &&
        cJSON_IsNumber (time) && time->valuedouble == time_ns)
      hash = g_strdup (get_json_string (item, "sha256"));
  }
  cJSON_Delete (manifest);
  return hash;
}

char *
ks_model_registry_hash (KsModelRegistry *self, const char *path, gboolean fresh,
                        GCancellable *cancellable, GError **error)
{
  g_autofree char *stamp = NULL;
  struct stat st;
  char *hash = NULL;

  g_return_val_if_fail (KS_IS_MODEL_REGISTRY (self) && path != NULL, NULL);
  if (g_stat (path, &st) == 0) {
    /* A pipe would be waited for and a device never ends. */
    if (!S_ISREG (st.st_mode)) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                   "%s is not a regular file: give a GGUF file", path);
      return NULL;
    }
    stamp = dup_stamp (&st);
  }
  if (stamp != NULL && !fresh)
    hash = recall_hash (path, stamp);
  if (hash == NULL && stamp != NULL && !fresh)
    hash = get_vouched_hash (path, &st);
  if (hash != NULL)
    return hash;
  hash = compute_hash (path, cancellable, error);
  if (hash != NULL && stamp != NULL)
    remember_hash (path, stamp, hash);
  return hash;
}

char *
ks_model_registry_get_expected_hash (KsModelRegistry *self, const char *path)
{
  g_autofree char *file = g_path_get_basename (path);
  cJSON *lists[2] = {NULL, NULL};
  const cJSON *models, *item;
  char *hash = NULL;

  lists[0] = read_json (self->data_dir, "default-model.json");
  lists[1] = read_json (self->models_dir, "manifest.json");
  if (g_strcmp0 (get_json_string (lists[0], "file"), file) == 0)
    hash = g_strdup (get_json_string (lists[0], "sha256"));
  models = cJSON_GetObjectItemCaseSensitive (lists[1], "models");
  cJSON_ArrayForEach (item, models) if (hash == NULL &&
                                        g_strcmp0 (get_json_string (item, "file"), file) == 0)
      hash = g_strdup (get_json_string (item, "sha256"));
  cJSON_Delete (lists[0]);
  cJSON_Delete (lists[1]);
  return hash;
}

static gboolean
has_shape (const cJSON *gate, KsModelEntry *entry)
{
  const char *const keys[3] = {"n_layer", "n_kv_head", "n_embd"};
  guint want[3];

  want[0] = ks_model_entry_get_n_layer (entry);
  want[1] = ks_model_entry_get_n_kv_head (entry);
  want[2] = ks_model_entry_get_n_embd (entry);
  for (guint i = 0; i < 3; i++) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive (gate, keys[i]);

    if (!cJSON_IsNumber (value) || value->valuedouble != (double)want[i])
      return FALSE;
  }
  return TRUE;
}

char *
ks_model_registry_find_gate (KsModelRegistry *self, const char *model_path,
                             GCancellable *cancellable)
{
  g_autofree char *folder = NULL, *hash = NULL, *found = NULL;
  g_autoptr (KsModelEntry) entry = NULL;
  const cJSON *gates, *gate;
  cJSON *manifest;

  g_return_val_if_fail (KS_IS_MODEL_REGISTRY (self) && model_path != NULL, NULL);
  folder = g_build_filename (self->data_dir, "gates", NULL);
  manifest = read_json (folder, "manifest.json");
  entry = manifest != NULL ? ks_model_entry_new (model_path, NULL) : NULL;
  gates = cJSON_GetObjectItemCaseSensitive (manifest, "gates");
  cJSON_ArrayForEach (gate, gates)
  {
    const char *file = get_json_string (gate, "file");

    /* The hash is taken only when the sizes already fit. */
    if (found != NULL || entry == NULL || file == NULL || strchr (file, '/') != NULL ||
        !has_shape (gate, entry))
      continue;
    if (hash == NULL)
      hash = ks_model_registry_hash (self, model_path, FALSE, cancellable, NULL);
    if (g_strcmp0 (hash, get_json_string (gate, "model_sha256")) == 0)
      found = g_build_filename (folder, file, NULL);
  }
  cJSON_Delete (manifest);
  return g_steal_pointer (&found);
}

gboolean
ks_model_registry_check_fit (KsModelRegistry *self, const char *path, guint64 budget_bytes,
                             double *out_entries, GError **error)
{
  g_autoptr (KsEngineOptions) options = ks_engine_options_new ();
  g_autoptr (KsEngineSetup) setup = NULL;

  g_return_val_if_fail (KS_IS_MODEL_REGISTRY (self) && path != NULL, FALSE);
  options->model_path = g_strdup (path);
  options->n_thread = 1;
  options->budget.total_bytes = budget_bytes;
  setup = ks_engine_setup_new (options, error);
  if (setup == NULL)
    return FALSE;
  if (out_entries != NULL)
    *out_entries = setup->plan.entries_per_stream;
  return TRUE;
}

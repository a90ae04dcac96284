/* ks-settings.c - see ks-settings.h.
 * The table of defaults says the same as the schema (tested).  It is what is read where the schema
 * is missing, and the list of keys that a schema must have: GSettings ends the program when it is
 * asked for a key that an older installed schema lacks, so such a schema is not used. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-settings.h"

#include "app/ks-answer.h"
#include "app/ks-data-dir.h"

/* GLib asks every user of backends to say that they know what they do. */
#define G_SETTINGS_ENABLE_BACKEND
#include <gio/gsettingsbackend.h>
#include <glib/gstdio.h>
#include <math.h>

#define SCHEMA "org.keepsake.Keepsake"
#define ROOT "/org/keepsake/Keepsake/"
#define GROUP "keepsake"
#define MAX_THREADS 1024u
#define MAX_MAX_TOKENS 1000000u

static const struct {
  const char *key, *type, *value;
} defaults[] = {
    {"budget", "s", "''"},
    {"color-scheme", "s", "'system'"},
    {"compute-mode", "s", "'fast'"},
    {"embedding-disk", "u", "1024"},
    {"snapshot-memory", "u", "512"},
    {"snapshot-disk", "u", "2048"},
    {"embedding-memory", "u", "64"},
    {"fastv", "s", "''"},
    {"kv-budget", "s", "''"},
    {"last-session", "x", "0"},
    {"max-tokens", "u", "512"},
    {"memory-visible", "b", "false"},
    {"min-p", "d", "0.05"},
    {"mmproj", "a{ss}", "{}"},
    {"model", "s", "''"},
    {"n-thread", "u", "0"},
    {"picture-max-pixels", "u", "0"},
    {"picture-min-pixels", "u", "0"},
    {"policy", "s", "''"},
    {"recognise-text", "b", "false"},
    {"repeat-penalty", "d", "1"},
    {"seed", "x", "-1"},
    {"sidebar-visible", "b", "true"},
    {"split-pictures", "b", "true"},
    {"system-prompt", "s", "''"},
    {"temperature", "d", "0.3"},
    {"top-k", "i", "40"},
    {"top-p", "d", "0.95"},
    {"video-frames", "u", "16"},
    {"visionzip", "s", "''"},
    {"window-height", "i", "760"},
    {"window-maximized", "b", "false"},
    {"window-width", "i", "1100"},
};

struct _KsSettings {
  GObject parent_instance;
  char *path;
  char *problem;
  GSettings *settings; /* NULL without a schema */
  gboolean failed;     /* a change was refused since the last save */
};

G_DEFINE_FINAL_TYPE (KsSettings, ks_settings, G_TYPE_OBJECT)

static void
ks_settings_dispose (GObject *object)
{
  KsSettings *self = KS_SETTINGS (object);

  if (self->settings != NULL)
    g_signal_handlers_disconnect_by_data (self->settings, self);
  g_clear_object (&self->settings);
  G_OBJECT_CLASS (ks_settings_parent_class)->dispose (object);
}

static void
ks_settings_finalize (GObject *object)
{
  KsSettings *self = KS_SETTINGS (object);

  g_free (self->path);
  g_free (self->problem);
  G_OBJECT_CLASS (ks_settings_parent_class)->finalize (object);
}

static void
ks_settings_class_init (KsSettingsClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_settings_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_settings_finalize;
}

static void
ks_settings_init (KsSettings *self)
{
}

static gboolean
is_complete (GSettingsSchema *schema)
{
  for (guint i = 0; i < G_N_ELEMENTS (defaults); i++) {
    g_autoptr (GSettingsSchemaKey) key = NULL;

    if (!g_settings_schema_has_key (schema, defaults[i].key))
      return FALSE;
    key = g_settings_schema_get_key (schema, defaults[i].key);
    if (!g_variant_type_equal (g_settings_schema_key_get_value_type (key),
                               G_VARIANT_TYPE (defaults[i].type)))
      return FALSE;
  }
  return TRUE;
}

/* This program's own folder first: the system may have the schema of another version. */
static GSettingsSchema *
find_schema (void)
{
  g_autofree char *dir = ks_schema_dir_dup ();
  g_autoptr (GSettingsSchemaSource) own =
      g_settings_schema_source_new_from_directory (dir, NULL, FALSE, NULL);
  GSettingsSchemaSource *sources[] = {own, g_settings_schema_source_get_default ()};

  for (guint i = 0; i < G_N_ELEMENTS (sources); i++) {
    g_autoptr (GSettingsSchema) schema =
        sources[i] != NULL ? g_settings_schema_source_lookup (sources[i], SCHEMA, TRUE) : NULL;

    if (schema != NULL && is_complete (schema))
      return g_steal_pointer (&schema);
  }
  return NULL;
}

static GSettingsBackend *
open_backend (KsSettings *self, gboolean is_users)
{
  g_autofree char *folder = g_path_get_dirname (self->path);

  if (is_users && g_strcmp0 (g_getenv ("GSETTINGS_BACKEND"), "memory") == 0)
    return g_memory_settings_backend_new ();
  /* The backend would log what we want to say. */
  if (g_mkdir_with_parents (folder, 0700) == 0)
    return g_keyfile_settings_backend_new (self->path, ROOT, GROUP);
  self->problem = g_strdup_printf (
      "The folder %s cannot be made: changes of the settings end with the program.", folder);
  return g_memory_settings_backend_new ();
}

/* The backend replaces the file; what is in it is nobody else's business. */
static void
changed_cb (GSettings *settings, const char *key, gpointer user_data)
{
  KsSettings *self = user_data;
  GStatBuf st;

  if (g_lstat (self->path, &st) == 0 && S_ISREG (st.st_mode) && (st.st_mode & 0777) != 0600)
    (void)g_chmod (self->path, 0600);
}

KsSettings *
ks_settings_new (const char *path)
{
  KsSettings *self = g_object_new (KS_TYPE_SETTINGS, NULL);
  g_autoptr (GSettingsSchema) schema = find_schema ();
  g_autoptr (GSettingsBackend) backend = NULL;

  self->path = path != NULL
                   ? g_strdup (path)
                   : g_build_filename (g_get_user_config_dir (), "keepsake", "settings.ini", NULL);
  if (schema == NULL) {
    self->problem = g_strdup ("The list of settings (" SCHEMA ".gschema.xml) is not installed or "
                              "belongs to another version: the defaults hold. Install Keepsake "
                              "again.");
    return self;
  }
  backend = open_backend (self, path == NULL);
  self->settings = g_settings_new_full (schema, backend, NULL);
  g_signal_connect (self->settings, "changed", G_CALLBACK (changed_cb), self);
  return self;
}

gboolean
ks_settings_save (KsSettings *self, GError **error)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), FALSE);
  if (!self->failed)
    return TRUE;
  self->failed = FALSE;
  if (self->problem != NULL)
    g_set_error_literal (error, G_FILE_ERROR, G_FILE_ERROR_FAILED, self->problem);
  else
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_ROFS,
                 "The settings in %s cannot be written: check its rights.", self->path);
  return FALSE;
}

const char *
ks_settings_get_problem (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), NULL);
  return self->problem;
}

GSettings *
ks_settings_get_gsettings (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), NULL);
  return self->settings;
}

/* --- reading and writing by key --- */

GVariant *
ks_settings_dup_built_in (const char *key)
{
  for (guint i = 0; i < G_N_ELEMENTS (defaults); i++)
    if (g_str_equal (defaults[i].key, key))
      return g_variant_parse (G_VARIANT_TYPE (defaults[i].type), defaults[i].value, NULL, NULL,
                              NULL);
  return NULL;
}

guint
ks_settings_get_n_built_in (void)
{
  return G_N_ELEMENTS (defaults);
}

static GVariant *
get_value (KsSettings *self, const char *key)
{
  return self->settings != NULL ? g_settings_get_value (self->settings, key)
                                : ks_settings_dup_built_in (key);
}

static char *
dup_string (KsSettings *self, const char *key)
{
  g_autoptr (GVariant) value = get_value (self, key);
  const char *text = g_variant_get_string (value, NULL);

  return text[0] != '\0' ? g_strdup (text) : NULL;
}

static double
get_double (KsSettings *self, const char *key)
{
  g_autoptr (GVariant) value = get_value (self, key), fallback = ks_settings_dup_built_in (key);
  double number = g_variant_get_double (value);

  /* No range refuses what compares with nothing. */
  return isfinite (number) ? number : g_variant_get_double (fallback);
}

static guint
get_uint (KsSettings *self, const char *key)
{
  g_autoptr (GVariant) value = get_value (self, key);

  return g_variant_get_uint32 (value);
}

static void
set_value (KsSettings *self, const char *key, GVariant *floating)
{
  g_autoptr (GVariant) value = g_variant_ref_sink (floating);

  if (self->settings == NULL || !g_settings_set_value (self->settings, key, value))
    self->failed = TRUE;
}

static void
set_string (KsSettings *self, const char *key, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text != NULL ? text : "", -1);

  set_value (self, key, g_variant_new_string (valid));
}

/* --- typed --- */

char *
ks_settings_dup_model (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), NULL);
  return dup_string (self, "model");
}

void
ks_settings_set_model (KsSettings *self, const char *model)
{
  g_return_if_fail (KS_IS_SETTINGS (self));
  set_string (self, "model", model);
}

char *
ks_settings_dup_budget (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), NULL);
  return dup_string (self, "budget");
}

void
ks_settings_set_budget (KsSettings *self, const char *budget)
{
  g_return_if_fail (KS_IS_SETTINGS (self));
  set_string (self, "budget", budget);
}

char *
ks_settings_dup_kv_budget (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), NULL);
  return dup_string (self, "kv-budget");
}

void
ks_settings_set_kv_budget (KsSettings *self, const char *budget)
{
  g_return_if_fail (KS_IS_SETTINGS (self));
  set_string (self, "kv-budget", budget);
}

char *
ks_settings_dup_policy (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), NULL);
  return dup_string (self, "policy");
}

void
ks_settings_set_policy (KsSettings *self, const char *policy)
{
  g_return_if_fail (KS_IS_SETTINGS (self));
  set_string (self, "policy", policy);
}

char *
ks_settings_dup_system_prompt (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), NULL);
  return dup_string (self, "system-prompt");
}

void
ks_settings_set_system_prompt (KsSettings *self, const char *text)
{
  g_return_if_fail (KS_IS_SETTINGS (self));
  set_string (self, "system-prompt", text);
}

guint
ks_settings_get_n_thread (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 0);
  return get_uint (self, "n-thread");
}

void
ks_settings_set_n_thread (KsSettings *self, guint n_thread)
{
  g_return_if_fail (KS_IS_SETTINGS (self));
  set_value (self, "n-thread", g_variant_new_uint32 (MIN (n_thread, MAX_THREADS)));
}

gboolean
ks_settings_get_exact (KsSettings *self)
{
  g_autofree char *mode = NULL;

  g_return_val_if_fail (KS_IS_SETTINGS (self), FALSE);
  mode = dup_string (self, "compute-mode");
  return g_strcmp0 (mode, "exact") == 0;
}

guint
ks_settings_get_max_tokens (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 1);
  return get_uint (self, "max-tokens");
}

void
ks_settings_set_max_tokens (KsSettings *self, guint max_tokens)
{
  g_return_if_fail (KS_IS_SETTINGS (self));
  set_value (self, "max-tokens", g_variant_new_uint32 (CLAMP (max_tokens, 1, MAX_MAX_TOKENS)));
}

double
ks_settings_get_temperature (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 0);
  return get_double (self, "temperature");
}

double
ks_settings_get_top_p (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 1);
  return get_double (self, "top-p");
}

double
ks_settings_get_min_p (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 0);
  return get_double (self, "min-p");
}

double
ks_settings_get_repeat_penalty (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 1);
  return get_double (self, "repeat-penalty");
}

guint
ks_settings_get_top_k (KsSettings *self)
{
  g_autoptr (GVariant) value = NULL;

  g_return_val_if_fail (KS_IS_SETTINGS (self), 0);
  value = get_value (self, "top-k");
  return (guint)MAX (g_variant_get_int32 (value), 0);
}

gint64
ks_settings_get_seed (KsSettings *self)
{
  g_autoptr (GVariant) value = NULL;

  g_return_val_if_fail (KS_IS_SETTINGS (self), -1);
  value = get_value (self, "seed");
  return MAX (g_variant_get_int64 (value), -1);
}

GVariant *
ks_settings_dup_mmproj_choices (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), NULL);
  return get_value (self, "mmproj");
}

void
ks_settings_set_mmproj (KsSettings *self, const char *model_path, const char *mmproj)
{
  g_autofree char *key = NULL, *value = NULL;
  g_autoptr (GVariant) old = NULL;
  GVariantBuilder builder;
  GVariantIter iter;
  const char *path, *tower;

  g_return_if_fail (KS_IS_SETTINGS (self) && model_path != NULL);
  key = g_utf8_make_valid (model_path, -1);
  value = mmproj != NULL ? g_utf8_make_valid (mmproj, -1) : NULL;
  old = get_value (self, "mmproj");
  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a{ss}"));
  g_variant_iter_init (&iter, old);
  while (g_variant_iter_next (&iter, "{&s&s}", &path, &tower))
    if (!g_str_equal (path, key))
      g_variant_builder_add (&builder, "{ss}", path, tower);
  if (value != NULL)
    g_variant_builder_add (&builder, "{ss}", key, value);
  set_value (self, "mmproj", g_variant_builder_end (&builder));
}

guint
ks_settings_get_picture_min_pixels (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 0);
  return get_uint (self, "picture-min-pixels");
}

guint
ks_settings_get_picture_max_pixels (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 0);
  return get_uint (self, "picture-max-pixels");
}

gboolean
ks_settings_get_split_pictures (KsSettings *self)
{
  g_autoptr (GVariant) value = NULL;

  g_return_val_if_fail (KS_IS_SETTINGS (self), TRUE);
  value = get_value (self, "split-pictures");
  return g_variant_get_boolean (value);
}

static guint64
get_mib (KsSettings *self, const char *key)
{
  return (guint64)get_uint (self, key) << 20;
}

guint64
ks_settings_get_embedding_memory_bytes (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 0);
  return get_mib (self, "embedding-memory");
}

guint64
ks_settings_get_embedding_disk_bytes (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 0);
  return get_mib (self, "embedding-disk");
}

guint64
ks_settings_get_snapshot_memory_bytes (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 0);
  return get_mib (self, "snapshot-memory");
}

guint64
ks_settings_get_snapshot_disk_bytes (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 0);
  return get_mib (self, "snapshot-disk");
}

gboolean
ks_settings_get_recognise_text (KsSettings *self)
{
  g_autoptr (GVariant) value = NULL;

  g_return_val_if_fail (KS_IS_SETTINGS (self), FALSE);
  value = get_value (self, "recognise-text");
  return g_variant_get_boolean (value);
}

char *
ks_settings_dup_visionzip (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), NULL);
  return dup_string (self, "visionzip");
}

char *
ks_settings_dup_fastv (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), NULL);
  return dup_string (self, "fastv");
}

guint
ks_settings_get_video_frames (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 1);
  return MAX (get_uint (self, "video-frames"), 1);
}

static gboolean
is_within (double value, double least, double most)
{
  return value >= least && value <= most; /* FALSE for NaN */
}

KsAnswerOptions *
ks_settings_make_answer_options (KsSettings *self, const KsSessionSettings *override)
{
  KsAnswerOptions *options = ks_answer_options_new ();
  ks_sampler_params *sampler = &options->sampler;
  gint64 seed;

  g_return_val_if_fail (KS_IS_SETTINGS (self), options);
  sampler->temperature = (float)ks_settings_get_temperature (self);
  sampler->top_p = (float)ks_settings_get_top_p (self);
  sampler->min_p = (float)ks_settings_get_min_p (self);
  sampler->repeat_penalty = (float)ks_settings_get_repeat_penalty (self);
  sampler->top_k = ks_settings_get_top_k (self);
  options->max_tokens = ks_settings_get_max_tokens (self);
  seed = ks_settings_get_seed (self);
  if (override != NULL) {
    if (is_within (override->temperature, 0, 100))
      sampler->temperature = (float) override->temperature;
    if (is_within (override->top_p, 0.001, 1))
      sampler->top_p = (float) override->top_p;
    if (is_within (override->min_p, 0, 1))
      sampler->min_p = (float) override->min_p;
    if (is_within (override->repeat_penalty, 0.01, 100))
      sampler->repeat_penalty = (float) override->repeat_penalty;
    if (override->top_k >= 0)
      sampler->top_k = (uint32_t) override->top_k;
    if (override->max_tokens > 0)
      options->max_tokens = MIN ((guint) override->max_tokens, MAX_MAX_TOKENS);
    if (override->seed >= 0)
      seed = override->seed;
  }
  sampler->seed = seed >= 0 ? (guint64)seed : (guint64)g_random_int () << 32 | g_random_int ();
  return options;
}

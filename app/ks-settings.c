/* ks-settings.c - see ks-settings.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-settings.h"

#include <gio/gio.h>

#include <glib/gstdio.h>

#define GROUP "keepsake"
#define DEFAULT_MAX_TOKENS 512u
#define MAX_MAX_TOKENS 1000000
#define MAX_THREADS 1024

struct _KsSettings {
  GObject parent_instance;
  char *path;
  GKeyFile *file;
  gboolean changed;
};

G_DEFINE_FINAL_TYPE (KsSettings, ks_settings, G_TYPE_OBJECT)

static void
ks_settings_finalize (GObject *object)
{
  KsSettings *self = KS_SETTINGS (object);

  g_free (self->path);
  g_key_file_unref (self->file);
  G_OBJECT_CLASS (ks_settings_parent_class)->finalize (object);
}

static void
ks_settings_class_init (KsSettingsClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ks_settings_finalize;
}

static void
ks_settings_init (KsSettings *self)
{
  self->file = g_key_file_new ();
}

KsSettings *
ks_settings_new (const char *path)
{
  KsSettings *self = g_object_new (KS_TYPE_SETTINGS, NULL);

  self->path = path != NULL
                   ? g_strdup (path)
                   : g_build_filename (g_get_user_config_dir (), "keepsake", "settings.ini", NULL);
  /* No file yet, or one that does not parse: the defaults hold. */
  (void)g_key_file_load_from_file (self->file, self->path, G_KEY_FILE_KEEP_COMMENTS, NULL);
  return self;
}

gboolean
ks_settings_save (KsSettings *self, GError **error)
{
  g_autofree char *folder = NULL, *text = NULL;
  gsize n = 0;

  g_return_val_if_fail (KS_IS_SETTINGS (self), FALSE);
  if (!self->changed)
    return TRUE;
  folder = g_path_get_dirname (self->path);
  if (g_mkdir_with_parents (folder, 0700) != 0) {
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "cannot make the folder %s", folder);
    return FALSE;
  }
  text = g_key_file_to_data (self->file, &n, NULL);
  if (!g_file_set_contents_full (self->path, text, (gssize)n, G_FILE_SET_CONTENTS_CONSISTENT, 0600,
                                 error))
    return FALSE;
  self->changed = FALSE;
  return TRUE;
}

static char *
dup_string (KsSettings *self, const char *key)
{
  char *text = g_key_file_get_string (self->file, GROUP, key, NULL);

  if (text != NULL && text[0] == '\0')
    g_clear_pointer (&text, g_free);
  return text;
}

static void
set_string (KsSettings *self, const char *key, const char *text)
{
  if (text != NULL)
    g_key_file_set_string (self->file, GROUP, key, text);
  else
    g_key_file_remove_key (self->file, GROUP, key, NULL);
  self->changed = TRUE;
}

static guint
get_uint (KsSettings *self, const char *key, guint fallback, int max)
{
  g_autoptr (GError) error = NULL;
  int value = g_key_file_get_integer (self->file, GROUP, key, &error);

  return error != NULL || value < 0 || value > max ? fallback : (guint)value;
}

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

guint
ks_settings_get_n_thread (KsSettings *self)
{
  g_return_val_if_fail (KS_IS_SETTINGS (self), 0);
  return get_uint (self, "threads", 0, MAX_THREADS);
}

void
ks_settings_set_n_thread (KsSettings *self, guint n_thread)
{
  g_return_if_fail (KS_IS_SETTINGS (self) && n_thread <= MAX_THREADS);
  g_key_file_set_integer (self->file, GROUP, "threads", (int)n_thread);
  self->changed = TRUE;
}

guint
ks_settings_get_max_tokens (KsSettings *self)
{
  guint value;

  g_return_val_if_fail (KS_IS_SETTINGS (self), DEFAULT_MAX_TOKENS);
  value = get_uint (self, "max-tokens", DEFAULT_MAX_TOKENS, MAX_MAX_TOKENS);
  return value > 0 ? value : DEFAULT_MAX_TOKENS;
}

void
ks_settings_set_max_tokens (KsSettings *self, guint max_tokens)
{
  g_return_if_fail (KS_IS_SETTINGS (self) && max_tokens > 0 && max_tokens <= MAX_MAX_TOKENS);
  g_key_file_set_integer (self->file, GROUP, "max-tokens", (int)max_tokens);
  self->changed = TRUE;
}

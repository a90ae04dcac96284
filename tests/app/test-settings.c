/* test-settings.c - settings survive a restart in a private file that people may edit; what is
 * missing, damaged or impossible means the default; without a schema the program still runs. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-settings.h"

#include "app/ks-answer.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
  char *folder, *inner, *path;
} Place;

static void
set_up (Place *place, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  place->folder = g_dir_make_tmp ("ks-settings-XXXXXX", &error);
  g_assert_no_error (error);
  place->inner = g_build_filename (place->folder, "inner", NULL);
  place->path = g_build_filename (place->inner, "settings.ini", NULL);
}

static void
tear_down (Place *place, gconstpointer data)
{
  g_unlink (place->path);
  g_rmdir (place->inner);
  g_assert_cmpint (g_rmdir (place->folder), ==, 0);
  g_free (place->folder);
  g_free (place->inner);
  g_free (place->path);
}

static void
write_file (Place *place, const char *text)
{
  g_autoptr (GError) error = NULL;

  g_mkdir (place->inner, 0700);
  g_file_set_contents (place->path, text, -1, &error);
  g_assert_no_error (error);
}

/* Takes and compares. */
static void
assert_text (char *text, const char *expected)
{
  g_assert_cmpstr (text, ==, expected);
  g_free (text);
}

/* What one object wrote the next one reads, from a file that only the user may read. */
static void
test_round_trip (Place *place, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  struct stat st;

  {
    g_autoptr (KsSettings) settings = ks_settings_new (place->path);

    g_assert_null (ks_settings_get_problem (settings));
    g_assert_null (ks_settings_dup_model (settings));
    g_assert_cmpuint (ks_settings_get_max_tokens (settings), ==, 512);
    ks_settings_set_model (settings, "smollm2");
    ks_settings_set_kv_budget (settings, "24MiB");
    ks_settings_set_policy (settings, "keydiff");
    ks_settings_set_system_prompt (settings, "Say \"hello\",\nthen stop.");
    ks_settings_set_n_thread (settings, 2);
    ks_settings_set_max_tokens (settings, 99);
    g_settings_set_double (ks_settings_get_gsettings (settings), "temperature", 0.25);
    g_assert_true (ks_settings_save (settings, &error));
    g_assert_no_error (error);
  }
  {
    g_autoptr (KsSettings) settings = ks_settings_new (place->path);

    assert_text (ks_settings_dup_model (settings), "smollm2");
    assert_text (ks_settings_dup_budget (settings), NULL);
    assert_text (ks_settings_dup_kv_budget (settings), "24MiB");
    assert_text (ks_settings_dup_policy (settings), "keydiff");
    assert_text (ks_settings_dup_system_prompt (settings), "Say \"hello\",\nthen stop.");
    g_assert_cmpuint (ks_settings_get_n_thread (settings), ==, 2);
    g_assert_cmpuint (ks_settings_get_max_tokens (settings), ==, 99);
    g_assert_cmpfloat (ks_settings_get_temperature (settings), ==, 0.25);
    ks_settings_set_model (settings, NULL);
    ks_settings_set_max_tokens (settings, 0); /* clamped */
    assert_text (ks_settings_dup_model (settings), NULL);
    g_assert_cmpuint (ks_settings_get_max_tokens (settings), ==, 1);
  }
  g_assert_cmpint (g_stat (place->path, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 0777, ==, 0600);
  g_assert_cmpint (g_stat (place->inner, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 0777, ==, 0700);
}

/* A file that was open to others is closed at the first change. */
static void
test_private (Place *place, gconstpointer data)
{
  g_autoptr (KsSettings) settings = NULL;
  struct stat st;

  write_file (place, "[keepsake]\nmodel=old\n");
  g_assert_cmpint (g_chmod (place->path, 0644), ==, 0);
  settings = ks_settings_new (place->path);
  ks_settings_set_budget (settings, "1GiB");
  g_assert_cmpint (g_stat (place->path, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 0777, ==, 0600);
  assert_text (ks_settings_dup_model (settings), "old");
}

/* People write values without quotes. */
static void
test_by_hand (Place *place, gconstpointer data)
{
  g_autoptr (KsSettings) settings = NULL;

  write_file (place, "[keepsake]\nmodel=my model.gguf\nbudget=160MiB\nn-thread=3\ntemperature=1\n"
                     "compute-mode='exact'\n");
  settings = ks_settings_new (place->path);
  assert_text (ks_settings_dup_model (settings), "my model.gguf");
  assert_text (ks_settings_dup_budget (settings), "160MiB");
  g_assert_cmpuint (ks_settings_get_n_thread (settings), ==, 3);
  g_assert_cmpfloat (ks_settings_get_temperature (settings), ==, 1);
  g_assert_true (ks_settings_get_exact (settings));
}

static void
test_damaged (Place *place, gconstpointer data)
{
  static const char *const files[] = {
      "[keepsake]\nn-thread=-4\ncompute-mode=7\nmax-tokens=many\nmodel=\ntemperature=nan\ntop-p="
      "0\ntop-k=-7\n"
      "seed=999999999999999999999\n",
      "[keepsake]\nn-thread=5000\nmax-tokens=0\nmodel='\ntemperature=inf\ntop-p=2\ntop-k='x'\n"
      "seed=-9\n",
      "no group\x01\xff here\n[[",
      "",
  };

  for (guint i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autoptr (KsSettings) settings = NULL;

    write_file (place, files[i]);
    settings = ks_settings_new (place->path);
    g_assert_cmpuint (ks_settings_get_n_thread (settings), ==, 0);
    g_assert_cmpuint (ks_settings_get_max_tokens (settings), ==, 512);
    g_assert_false (ks_settings_get_exact (settings));
    if (i != 1) /* a lone quote is a name like any other */
      assert_text (ks_settings_dup_model (settings), NULL);
    g_assert_cmpfloat (ks_settings_get_temperature (settings), ==, 0.3);
    g_assert_cmpfloat (ks_settings_get_top_p (settings), ==, 0.95);
    g_assert_cmpuint (ks_settings_get_top_k (settings), ==, 40);
    g_assert_cmpint (ks_settings_get_seed (settings), ==, -1);
  }
}

/* A session's values stand in front; impossible ones count as not given. */
static void
test_answer_options (Place *place, gconstpointer data)
{
  g_autoptr (KsSettings) settings = ks_settings_new (place->path);
  g_autoptr (KsSessionSettings) override = ks_session_settings_new ();
  g_autoptr (KsAnswerOptions) plain = NULL, again = NULL, own = NULL, broken = NULL;
  ks_sampler_params engine = ks_sampler_default_params ();

  plain = ks_settings_make_answer_options (settings, override);
  g_assert_cmpuint (plain->max_tokens, ==, 512);
  g_assert_cmpfloat (plain->sampler.temperature, ==, engine.temperature);
  g_assert_cmpfloat (plain->sampler.top_p, ==, engine.top_p);
  g_assert_cmpfloat (plain->sampler.min_p, ==, engine.min_p);
  g_assert_cmpfloat (plain->sampler.repeat_penalty, ==, engine.repeat_penalty);
  g_assert_cmpuint (plain->sampler.top_k, ==, engine.top_k);
  again = ks_settings_make_answer_options (settings, NULL);
  g_assert_cmpuint (plain->sampler.seed, !=, again->sampler.seed);

  override->temperature = 0;
  override->top_k = 3;
  override->seed = 11;
  override->max_tokens = 5;
  own = ks_settings_make_answer_options (settings, override);
  g_assert_cmpfloat (own->sampler.temperature, ==, 0);
  g_assert_cmpuint (own->sampler.top_k, ==, 3);
  g_assert_cmpuint (own->sampler.seed, ==, 11);
  g_assert_cmpuint (own->max_tokens, ==, 5);
  g_assert_cmpfloat (own->sampler.top_p, ==, engine.top_p);

  override->temperature = 1e300;
  override->top_p = 0;
  override->max_tokens = 0;
  broken = ks_settings_make_answer_options (settings, override);
  g_assert_cmpfloat (broken->sampler.temperature, ==, engine.temperature);
  g_assert_cmpfloat (broken->sampler.top_p, ==, engine.top_p);
  g_assert_cmpuint (broken->max_tokens, ==, 512);
}

/* Where the file cannot be, changes hold until the end of the program, and that is said. */
static void
test_no_folder (Place *place, gconstpointer data)
{
  g_autofree char *path = NULL;
  g_autoptr (KsSettings) settings = NULL;

  write_file (place, "");
  path = g_build_filename (place->path, "below-a-file", "settings.ini", NULL);
  settings = ks_settings_new (path);
  g_assert_nonnull (strstr (ks_settings_get_problem (settings), place->path));
  ks_settings_set_model (settings, "here");
  assert_text (ks_settings_dup_model (settings), "here");
}

/* In tests nothing is read from or written to the user's folder. */
static void
test_memory (Place *place, gconstpointer data)
{
  g_autoptr (KsSettings) settings = ks_settings_new (NULL), other = NULL;
  g_autofree char *file =
      g_build_filename (g_get_user_config_dir (), "keepsake", "settings.ini", NULL);

  g_assert_cmpstr (g_getenv ("GSETTINGS_BACKEND"), ==, "memory");
  ks_settings_set_model (settings, "mine");
  assert_text (ks_settings_dup_model (settings), "mine");
  other = ks_settings_new (NULL);
  assert_text (ks_settings_dup_model (other), NULL);
  g_assert_false (g_file_test (file, G_FILE_TEST_EXISTS));
}

/* The table in the program and the schema say the same: every key, type and default. */
static void
test_schema (Place *place, gconstpointer data)
{
  g_autoptr (KsSettings) settings = ks_settings_new (place->path);
  g_autoptr (GSettingsSchema) schema = NULL;
  g_auto (GStrv) keys = NULL;
  g_autofree char *text = NULL;

  g_assert_nonnull (ks_settings_get_gsettings (settings));
  g_object_get (ks_settings_get_gsettings (settings), "settings-schema", &schema, NULL);
  keys = g_settings_schema_list_keys (schema);
  for (guint i = 0; keys[i] != NULL; i++) {
    g_autoptr (GVariant) value =
        g_settings_get_default_value (ks_settings_get_gsettings (settings), keys[i]);
    g_autoptr (GVariant) built_in = ks_settings_dup_built_in (keys[i]);

    g_assert_nonnull (built_in);
    g_assert_true (g_variant_equal (value, built_in));
  }
  g_assert_cmpuint (g_strv_length (keys), ==, ks_settings_get_n_built_in ());
}

static void
test_child (void)
{
  g_autoptr (KsSettings) settings = NULL;
  g_autoptr (KsAnswerOptions) options = NULL;
  g_autoptr (GError) error = NULL;

  if (!g_test_subprocess ())
    return;
  settings = ks_settings_new ("/nowhere/settings.ini");
  g_assert_null (ks_settings_get_gsettings (settings));
  g_assert_nonnull (strstr (ks_settings_get_problem (settings), "not installed"));
  g_assert_null (ks_settings_dup_model (settings));
  ks_settings_set_model (settings, "lost");
  g_assert_null (ks_settings_dup_model (settings));
  g_assert_false (ks_settings_save (settings, &error));
  g_assert_cmpstr (error->message, ==, ks_settings_get_problem (settings));
  options = ks_settings_make_answer_options (settings, NULL);
  g_assert_cmpuint (options->max_tokens, ==, 512);
  puts ("defaults hold");
}

/* A program that lies elsewhere and finds no schema: no abort, defaults, a sentence. */
static void
test_no_schema (Place *place, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *self = g_file_read_link ("/proc/self/exe", &error);
  g_autofree char *program = g_build_filename (place->folder, "program", NULL);
  g_autofree char *out = NULL, *bytes = NULL;
  g_auto (GStrv) env = g_environ_setenv (g_get_environ (), "XDG_DATA_DIRS", place->folder, TRUE);
  char *argv[] = {program, (char *)"--GTestSubprocess", (char *)"-p",
                  (char *)"/settings/child/subprocess", NULL};
  gsize n = 0;
  int status = 0;

  g_assert_true (g_file_get_contents (self, &bytes, &n, &error));
  g_assert_true (
      g_file_set_contents_full (program, bytes, (gssize)n, G_FILE_SET_CONTENTS_NONE, 0700, &error));
  env = g_environ_unsetenv (env, "GSETTINGS_SCHEMA_DIR");
  g_assert_true (
      g_spawn_sync (NULL, argv, env, G_SPAWN_DEFAULT, NULL, NULL, &out, NULL, &status, &error));
  g_assert_no_error (error);
  g_assert_cmpint (g_unlink (program), ==, 0);
  g_assert_true (g_spawn_check_wait_status (status, &error));
  g_assert_nonnull (strstr (out, "defaults hold"));
}

#define ADD(name, func) g_test_add (name, Place, NULL, set_up, func, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/settings/round-trip", test_round_trip);
  ADD ("/settings/private", test_private);
  ADD ("/settings/by-hand", test_by_hand);
  ADD ("/settings/damaged", test_damaged);
  ADD ("/settings/answer-options", test_answer_options);
  ADD ("/settings/no-folder", test_no_folder);
  ADD ("/settings/memory", test_memory);
  ADD ("/settings/schema", test_schema);
  ADD ("/settings/no-schema", test_no_schema);
  g_test_add_func ("/settings/child/subprocess", test_child);
  return g_test_run ();
}

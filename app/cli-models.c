/* cli-models.c - keepsake-cli models: list, describe and verify model files. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-common.h"
#include "app/cli-options.h"

#include "app/ks-error.h"

#include <glib-unix.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "Commands:\n"
    "  list             the models in the models folder (also without a command)\n"
    "  describe MODEL   one file: sizes, chat format, gate, and whether it fits into memory\n"
    "  verify MODEL     compare the file with the checksum it was fetched with\n"
    "  where            print the models folder\n\n"
    "MODEL is a GGUF file or the name of a model in the folder. The default model is fetched by\n"
    "./run.sh; any other GGUF file is put into the folder by hand or given with --model.\n\n"
    "Examples:\n"
    "  keepsake-cli models\n"
    "  keepsake-cli models describe ~/Downloads/model.gguf --budget 2GiB\n"
    "  keepsake-cli models verify smollm2\n\n"
    "Exit codes: 0 done, 1 missing, damaged or not what was fetched, 2 wrong options,\n"
    "3 does not fit (describe), 4 not supported, 130 cancelled.";

/* "134.5 M"; parameters are counted in millions and billions. */
static char *
format_params (guint64 n)
{
  if (n >= 1000000000u)
    return g_strdup_printf ("%.1f B", (double)n / 1e9);
  return g_strdup_printf ("%.1f M", (double)n / 1e6);
}

static cJSON *
make_entry_json (KsModelEntry *entry, const char *gate)
{
  cJSON *json = cJSON_CreateObject ();
  gboolean is_fallback = FALSE;
  const char *tmpl = ks_model_entry_get_template (entry, &is_fallback);

  cJSON_AddStringToObject (json, "path", ks_model_entry_get_path (entry));
  cJSON_AddStringToObject (json, "file", ks_model_entry_get_file_name (entry));
  cJSON_AddStringToObject (json, "name", ks_model_entry_get_name (entry));
  cJSON_AddStringToObject (json, "architecture", ks_model_entry_get_arch (entry));
  cJSON_AddStringToObject (json, "quantisation", ks_model_entry_get_quantisation (entry));
  cJSON_AddNumberToObject (json, "parameters", (double)ks_model_entry_get_n_params (entry));
  cJSON_AddNumberToObject (json, "bytes", (double)ks_model_entry_get_n_bytes (entry));
  cJSON_AddNumberToObject (json, "context", ks_model_entry_get_n_ctx (entry));
  cJSON_AddNumberToObject (json, "layers", ks_model_entry_get_n_layer (entry));
  cJSON_AddNumberToObject (json, "kv_heads", ks_model_entry_get_n_kv_head (entry));
  cJSON_AddStringToObject (json, "chat_format", tmpl);
  cJSON_AddBoolToObject (json, "chat_format_is_fallback", is_fallback);
  if (ks_model_entry_get_licence (entry) != NULL)
    cJSON_AddStringToObject (json, "licence", ks_model_entry_get_licence (entry));
  if (gate != NULL)
    cJSON_AddStringToObject (json, "gate", gate);
  else
    cJSON_AddNullToObject (json, "gate");
  if (ks_model_entry_get_mmproj (entry) != NULL)
    cJSON_AddStringToObject (json, "mmproj", ks_model_entry_get_mmproj (entry));
  else
    cJSON_AddNullToObject (json, "mmproj");
  return json;
}

static int
list_models (KsModelRegistry *registry, gboolean as_json)
{
  g_autoptr (GPtrArray) problems = NULL;
  g_autoptr (GPtrArray) entries = ks_model_registry_list (registry, &problems);
  cJSON *json = cJSON_CreateObject (), *models = cJSON_AddArrayToObject (json, "models");

  cJSON_AddStringToObject (json, "folder", ks_model_registry_get_models_dir (registry));
  for (guint i = 0; i < entries->len; i++) {
    KsModelEntry *entry = g_ptr_array_index (entries, i);
    g_autofree char *gate =
        ks_model_registry_find_gate (registry, ks_model_entry_get_path (entry), NULL);
    g_autofree char *params = format_params (ks_model_entry_get_n_params (entry));
    g_autofree char *bytes = cli_format_bytes (ks_model_entry_get_n_bytes (entry));
    g_autofree char *file = cli_dup_printable (ks_model_entry_get_file_name (entry));
    g_autofree char *arch = cli_dup_printable (ks_model_entry_get_arch (entry));

    cJSON_AddItemToArray (models, make_entry_json (entry, gate));
    if (!as_json)
      printf ("%-40s %-8s %-6s %9s %10s  context %u%s%s\n", file, arch,
              ks_model_entry_get_quantisation (entry), params, bytes,
              ks_model_entry_get_n_ctx (entry), gate != NULL ? "  gate" : "",
              ks_model_entry_get_mmproj (entry) != NULL ? "  eyes" : "");
  }
  for (guint i = 0; i < problems->len; i++)
    cli_print_error ("%s", (const char *)g_ptr_array_index (problems, i));
  if (as_json)
    cli_print_json (json);
  else
    cJSON_Delete (json);
  if (!as_json && entries->len == 0)
    printf ("There is no model in %s: run ./run.sh once to fetch the default one, or give a GGUF "
            "file with --model FILE.\n",
            ks_model_registry_get_models_dir (registry));
  return CLI_OK;
}

/* One line of a description; most values come from the file. */
static void
print_line (const char *label, const char *value)
{
  g_autofree char *printable = cli_dup_printable (value);

  printf ("%-13s %s\n", label, printable);
}

static void
print_entry (KsModelEntry *entry, const char *gate)
{
  g_autofree char *params = format_params (ks_model_entry_get_n_params (entry));
  g_autofree char *bytes = cli_format_bytes (ks_model_entry_get_n_bytes (entry));
  gboolean is_fallback = FALSE;
  const char *tmpl = ks_model_entry_get_template (entry, &is_fallback);

  const char *licence = ks_model_entry_get_licence (entry);

  print_line ("file", ks_model_entry_get_path (entry));
  print_line ("name", ks_model_entry_get_name (entry));
  print_line ("architecture", ks_model_entry_get_arch (entry));
  print_line ("parameters", params);
  print_line ("quantisation", ks_model_entry_get_quantisation (entry));
  print_line ("size", bytes);
  printf ("context       %u tokens\nstreams       %u layers x %u key/value heads\n"
          "chat format   %s%s\n",
          ks_model_entry_get_n_ctx (entry), ks_model_entry_get_n_layer (entry),
          ks_model_entry_get_n_kv_head (entry), tmpl,
          is_fallback ? " (the model's own format is not known)" : "");
  print_line ("licence", licence != NULL ? licence : "not stated");
  print_line ("gate", gate != NULL ? gate : "none");
  print_line ("eyes", ks_model_entry_get_mmproj (entry) != NULL ? ks_model_entry_get_mmproj (entry)
                                                                : "none");
}

static int
describe_model (KsModelRegistry *registry, const char *name, const CliOptions *options)
{
  g_autoptr (GError) error = NULL, fit_error = NULL;
  g_autofree char *path = cli_resolve_model (registry, name, &error), *gate = NULL;
  g_autofree char *mmproj = NULL;
  g_autoptr (KsModelEntry) entry = NULL;
  guint64 budget = 0;
  double n_entry = 0;
  gboolean fits;

  if (path == NULL || !cli_parse_bytes (options->budget, &budget, &error))
    return cli_fail (error);
  entry = ks_model_registry_describe (registry, path, &error);
  if (entry == NULL)
    return cli_fail (error);
  gate = ks_model_registry_find_gate (registry, path, NULL);
  mmproj = ks_model_registry_find_mmproj (registry, path);
  ks_model_entry_set_mmproj (entry, mmproj, NULL);
  fits = ks_model_registry_check_fit (registry, path, budget, &n_entry, &fit_error);
  if (options->json) {
    cJSON *json = make_entry_json (entry, gate);

    cJSON_AddBoolToObject (json, "fits", fits);
    if (fits)
      cJSON_AddNumberToObject (json, "entries_per_stream", n_entry);
    else
      cJSON_AddStringToObject (json, "problem", fit_error->message);
    cli_print_json (json);
  } else {
    print_entry (entry, gate);
    if (fits) {
      printf ("fits          yes, keeping up to %.0f tokens in each stream\n", n_entry);
    } else {
      g_autofree char *why = g_strdup_printf ("no: %s", fit_error->message);

      print_line ("fits", why);
    }
  }
  return fits ? CLI_OK : cli_fail (fit_error);
}

static gboolean
interrupt_cb (gpointer user_data)
{
  g_cancellable_cancel (user_data);
  return G_SOURCE_CONTINUE;
}

typedef struct {
  KsModelRegistry *registry;
  const char *path;
  GCancellable *cancellable;
  char *hash;
  GError *error;
  gint done; /* atomic */
} HashCall;

static gpointer
hash_thread (gpointer data)
{
  HashCall *call = data;

  call->hash =
      ks_model_registry_hash (call->registry, call->path, TRUE, call->cancellable, &call->error);
  g_atomic_int_set (&call->done, TRUE);
  g_main_context_wakeup (NULL);
  return NULL;
}

/* Hashes beside the main loop, so that Ctrl-C is heard. */
static char *
hash_file (KsModelRegistry *registry, const char *path, GError **error)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  HashCall call = {registry, path, cancellable, NULL, NULL, FALSE};
  guint interrupt = cli_add_interrupt (interrupt_cb, cancellable);
  GThread *thread = g_thread_new ("hash", hash_thread, &call);

  while (!g_atomic_int_get (&call.done))
    g_main_context_iteration (NULL, TRUE);
  g_thread_join (thread);
  cli_remove_interrupt (interrupt);
  if (call.error != NULL)
    g_propagate_error (error, call.error);
  return call.hash;
}

static int
verify_model (KsModelRegistry *registry, const char *name, gboolean as_json)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = cli_resolve_model (registry, name, &error);
  g_autofree char *expected = NULL, *hash = NULL;
  gboolean same;

  if (path == NULL)
    return cli_fail (error);
  hash = hash_file (registry, path, &error);
  if (hash == NULL)
    return cli_fail (error);
  expected = ks_model_registry_get_expected_hash (registry, path);
  same = g_strcmp0 (hash, expected) == 0;
  if (as_json) {
    cJSON *json = cJSON_CreateObject ();

    cJSON_AddStringToObject (json, "path", path);
    cJSON_AddStringToObject (json, "sha256", hash);
    cJSON_AddBoolToObject (json, "listed", expected != NULL);
    cJSON_AddBoolToObject (json, "verified", same);
    cli_print_json (json);
  } else if (expected == NULL || same) {
    g_autofree char *printable = cli_dup_printable (path);

    printf ("%s  %s\n%s\n", hash, printable,
            same ? "The file is what was fetched."
                 : "The file is not listed in a manifest; there is nothing to compare with.");
  }
  if (expected == NULL || same)
    return CLI_OK;
  cli_print_error ("%s is damaged: its SHA-256 is %s, it should be %s; delete it and run ./run.sh",
                   path, hash, expected);
  return CLI_FAILED;
}

int
cli_models_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("[COMMAND] [MODEL]");
  g_autoptr (KsModelRegistry) registry = ks_model_registry_new (NULL, NULL);
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  const char *command;
  guint n_rest;
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"budget", 'b', 0, G_OPTION_ARG_STRING, &options.budget,
       "describe: does it fit into this much memory (default: what is free)", "SIZE"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  g_option_context_add_main_entries (context, entries, NULL);
  cli_options_add_json (&options, context);
  g_option_context_set_summary (context, "Lists, describes and checks model files.");
  g_option_context_set_description (context, help);
  if (!cli_parse (context, &rest, &code))
    return code;
  command = rest[1] != NULL ? rest[1] : "list";
  n_rest = g_strv_length (rest);
  if (n_rest > 3 ||
      (n_rest > 2 && (g_str_equal (command, "list") || g_str_equal (command, "where"))))
    return cli_usage ("'%s' is one argument too many: see keepsake-cli models --help",
                      rest[n_rest - 1]);
  if (g_str_equal (command, "list"))
    return list_models (registry, options.json);
  if (g_str_equal (command, "where")) {
    puts (ks_model_registry_get_models_dir (registry));
    return CLI_OK;
  }
  if (!g_str_equal (command, "describe") && !g_str_equal (command, "verify"))
    return cli_usage ("there is no command 'models %s': see keepsake-cli models --help", command);
  if (g_str_equal (command, "describe"))
    return describe_model (registry, rest[2], &options);
  return verify_model (registry, rest[2], options.json);
}

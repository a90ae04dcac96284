/* cli-gates.c - keepsake-cli gates: import and inspect retention gates. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-common.h"
#include "app/cli-options.h"

#include "app/ks-error.h"
#include "app/ks-gate-import.h"

#include <stdio.h>
#include <string.h>

static const char import_help[] =
    "FILE is a PyTorch archive (trimkv_weights.pth), a safetensors file, or the folder of a\n"
    "release; its config.json is read when it lies beside it. Only tensors are read: no code of "
    "the\nfile is run. A gate that was trained for another model is refused.\n\n"
    "Examples:\n"
    "  keepsake-cli gates import trimkv_weights.pth --model qwen3-4b.gguf --out qwen3-4b-gate"
    ".safetensors\n"
    "  keepsake-cli ask --model qwen3-4b.gguf --gate qwen3-4b-gate.safetensors \"...\"\n\n"
    "Exit codes: 0 done, 1 a file is missing, damaged or exists already, 2 wrong options, 4 no "
    "gate,\nor one for another model.";

static const char inspect_help[] =
    "With --model it is also told whether the gate belongs to that model.\n\n"
    "Examples:\n"
    "  keepsake-cli gates inspect trimkv_weights.pth\n"
    "  keepsake-cli gates inspect gate.safetensors --model smollm2 --json\n\n"
    "Exit codes: 0 done, 1 missing or damaged, 2 wrong options, 4 no gate, or one for another "
    "model.";

static const char gates_help[] =
    "A gate is what tells how long a model remembers each token; keepsake-cli models describe "
    "MODEL\nnames the one that is used.\n\n"
    "Every command explains itself: keepsake-cli gates COMMAND --help\n";

static const char *
describe_kind (const KsGateFacts *f)
{
  if (strcmp (f->kind, "locret") == 0)
    return "two layers over queries, keys and values (LocRet)";
  if (strcmp (f->kind, "rg") == 0)
    return "two layers, every layer of the model on its own scale (TrimKV)";
  return f->is_tied ? "three layers, the last one shared by all layers (DBTrimKV)"
                    : "three layers, the last one different from layer to layer";
}

static void
add_text (cJSON *json, const char *name, const char *text)
{
  if (text != NULL)
    cJSON_AddStringToObject (json, name, text);
  else
    cJSON_AddNullToObject (json, name);
}

static cJSON *
make_json (KsGateFile *file)
{
  const KsGateFacts *f = ks_gate_file_get_facts (file);
  cJSON *json = cJSON_CreateObject ();

  cJSON_AddStringToObject (json, "path", ks_gate_file_get_path (file));
  cJSON_AddStringToObject (json, "container", f->is_torch ? "pytorch" : "safetensors");
  cJSON_AddStringToObject (json, "kind", f->kind);
  cJSON_AddBoolToObject (json, "tied", f->is_tied);
  cJSON_AddNumberToObject (json, "layers", f->n_layer);
  cJSON_AddNumberToObject (json, "kv_heads", f->n_kv_head);
  cJSON_AddNumberToObject (json, "width", f->n_embd);
  cJSON_AddNumberToObject (json, "gate_width", f->n_gate);
  cJSON_AddNumberToObject (json, "parameters", (double)f->n_params);
  cJSON_AddNumberToObject (json, "tensors", f->n_tensor);
  cJSON_AddNumberToObject (json, "other_tensors", f->n_other);
  cJSON_AddStringToObject (json, "type", f->dtype);
  cJSON_AddNumberToObject (json, "least_bias", f->least_bias);
  cJSON_AddNumberToObject (json, "most_bias", f->most_bias);
  add_text (json, "base_model", f->base);
  add_text (json, "activation", f->act);
  add_text (json, "configuration", f->config_path);
  return json;
}

static void
print_line (const char *label, const char *value)
{
  g_autofree char *printable = cli_dup_printable (value);

  printf ("%-14s %s\n", label, printable);
}

static void
print_facts (KsGateFile *file)
{
  const KsGateFacts *f = ks_gate_file_get_facts (file);
  g_autofree char *params = cli_format_count (f->n_params);

  print_line ("file", ks_gate_file_get_path (file));
  print_line ("container", f->is_torch ? "PyTorch archive" : "safetensors");
  print_line ("kind", f->kind);
  print_line ("form", describe_kind (f));
  print_line ("tied", f->is_tied ? "yes (found from the numbers)" : "no (found from the numbers)");
  printf ("%-14s %u layers x %u key/value heads, reads %u numbers a token, %u wide\n", "sizes",
          f->n_layer, f->n_kv_head, f->n_embd, f->n_gate);
  printf ("%-14s %s in %u tensors, %s\n", "numbers", params, f->n_tensor, f->dtype);
  if (f->n_other > 0)
    printf ("%-14s %u other tensors\n", "left out", f->n_other);
  printf ("%-14s %.3f to %.3f\n", "last bias", (double)f->least_bias, (double)f->most_bias);
  print_line ("made for", f->base != NULL ? f->base : "not said");
  print_line ("activation", f->act != NULL ? f->act : "not said: the model's own");
  print_line ("configuration", f->config_path != NULL ? f->config_path : "none");
}

/* The model that name stands for, opened. */
static KsGateBase *
open_base (const char *name, GError **error)
{
  g_autoptr (KsModelRegistry) registry = ks_model_registry_new (NULL, NULL);
  g_autofree char *path = cli_resolve_model (registry, name, error);

  return path != NULL ? ks_gate_base_open (path, error) : NULL;
}

static int
inspect_gate (const char *path, const char *model, gboolean as_json)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsGateFile) file = ks_gate_file_open (path, &error);
  g_autoptr (KsGateBase) base = NULL;
  gboolean fits = TRUE;

  if (file == NULL)
    return cli_fail (error);
  if (model != NULL) {
    base = open_base (model, &error);
    if (base == NULL)
      return cli_fail (error);
    fits = ks_gate_file_check (file, base, &error);
  }
  if (as_json) {
    cJSON *json = make_json (file);

    if (model != NULL)
      cJSON_AddBoolToObject (json, "fits", fits);
    cli_print_json (json);
  } else {
    print_facts (file);
    if (model != NULL)
      print_line ("fits", fits ? "yes" : "no");
  }
  return fits ? CLI_OK : cli_fail (error);
}

static int
import_gate (const char *path, const char *model, const char *out, gboolean replace,
             gboolean as_json)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsGateFile) file = ks_gate_file_open (path, &error);
  g_autoptr (KsGateBase) base = file != NULL ? open_base (model, &error) : NULL;

  if (base == NULL || !ks_gate_file_write (file, base, out, replace, &error))
    return cli_fail (error);
  if (as_json) {
    cJSON *json = make_json (file);

    cJSON_AddStringToObject (json, "written", out);
    cli_print_json (json);
  } else {
    print_facts (file);
    print_line ("written", out);
  }
  return CLI_OK;
}

static int
inspect_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("FILE");
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  g_autofree char *model = NULL;
  int code = CLI_OK;
  const GOptionEntry entries[] = {{"model", 'm', 0, G_OPTION_ARG_STRING, &model,
                                   "check it against this model: a GGUF file or a model's name",
                                   "MODEL"},
                                  {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  g_option_context_add_main_entries (context, entries, NULL);
  cli_options_add_json (&options, context);
  g_option_context_set_summary (context, "Tells what a gate file holds.");
  g_option_context_set_description (context, inspect_help);
  if (!cli_parse (context, &rest, &code))
    return code;
  if (g_strv_length (rest) != 2)
    return cli_usage ("name one gate file: see keepsake-cli gates inspect --help");
  return inspect_gate (rest[1], model, options.json);
}

static int
import_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("FILE");
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  g_autofree char *model = NULL, *out = NULL;
  gboolean force = FALSE;
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"model", 'm', 0, G_OPTION_ARG_STRING, &model,
       "the model that it was trained for: a GGUF file or a model's name (default: the usual one)",
       "MODEL"},
      {"out", 'o', 0, G_OPTION_ARG_FILENAME, &out, "what to write; ends in .safetensors", "FILE"},
      {"force", 0, 0, G_OPTION_ARG_NONE, &force, "replace a file that is there", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  g_option_context_add_main_entries (context, entries, NULL);
  cli_options_add_json (&options, context);
  g_option_context_set_summary (context, "Turns a released gate into one that can be used here.");
  g_option_context_set_description (context, import_help);
  if (!cli_parse (context, &rest, &code))
    return code;
  if (g_strv_length (rest) != 2)
    return cli_usage ("name one gate file: see keepsake-cli gates import --help");
  if (out == NULL)
    return cli_usage ("say what to write with --out FILE.safetensors");
  return import_gate (rest[1], model, out, force, options.json);
}

int
cli_gates_main (char **args)
{
  static const CliCommand commands[] = {
      {"import", "turn a released gate into one that can be used here", import_main},
      {"inspect", "tell what a gate file holds", inspect_main},
  };

  return cli_run_subcommand ("gates", commands, G_N_ELEMENTS (commands), args, gates_help);
}

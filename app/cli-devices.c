/* cli-devices.c - keepsake-cli devices: backends, their devices, and why one is not usable. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-common.h"
#include "app/cli-options.h"

#include "engine/backend.h"

#include <stdio.h>

#define MAX_BACKENDS 8

static cJSON *
make_device_json (const ks_backend_table *table, guint index, const ks_dev_info *info)
{
  cJSON *json = cJSON_CreateObject ();

  cJSON_AddStringToObject (json, "backend", table->name);
  cJSON_AddNumberToObject (json, "index", index);
  cJSON_AddStringToObject (json, "name", info->name);
  cJSON_AddStringToObject (json, "instructions", info->isa);
  cJSON_AddNumberToObject (json, "units", info->n_unit);
  cJSON_AddNumberToObject (json, "total_bytes", (double)info->total_bytes);
  cJSON_AddNumberToObject (json, "free_bytes", (double)info->free_bytes);
  return json;
}

static void
print_device (const ks_backend_table *table, guint index, const ks_dev_info *info)
{
  g_autofree char *total = cli_format_bytes (info->total_bytes);
  g_autofree char *free_now = cli_format_bytes (info->free_bytes);

  printf ("%s:%u  %s (%s), %u threads or units, %s of %s free\n", table->name, index, info->name,
          info->isa, info->n_unit, free_now, total);
}

/* What is there but cannot be used: a backend without a device, a module that was refused. */
static void
add_unusable (cJSON *list, gboolean as_json, const char *name, const char *reason)
{
  cJSON *json;

  if (!as_json) {
    printf ("%s: not usable: %s\n", name, reason);
    return;
  }
  json = cJSON_CreateObject ();
  cJSON_AddStringToObject (json, "name", name);
  cJSON_AddStringToObject (json, "reason", reason);
  cJSON_AddItemToArray (list, json);
}

static void
list_backend (const ks_backend_table *table, gboolean as_json, cJSON *devices, cJSON *unusable)
{
  ks_dev_info info = {0};
  char why[256] = "";
  guint index = 0;

  for (; table->probe (index, &info, why, sizeof why); index++) {
    if (as_json)
      cJSON_AddItemToArray (devices, make_device_json (table, index, &info));
    else
      print_device (table, index, &info);
  }
  if (index == 0)
    add_unusable (unusable, as_json, table->name, why[0] != '\0' ? why : "no device");
}

static int
list_devices (gboolean as_json)
{
  const ks_backend_table *tables[MAX_BACKENDS];
  size_t n = MIN (ks_backend_list (tables, MAX_BACKENDS), MAX_BACKENDS);
  cJSON *json = cJSON_CreateObject ();
  cJSON *devices = cJSON_AddArrayToObject (json, "devices");
  cJSON *unusable = cJSON_AddArrayToObject (json, "unusable");
  const char *refusal;

  for (size_t i = 0; i < n; i++)
    list_backend (tables[i], as_json, devices, unusable);
  for (size_t i = 0; (refusal = ks_backend_get_refusal (i)) != NULL; i++)
    add_unusable (unusable, as_json, "module", refusal);
  if (as_json)
    cli_print_json (json);
  else
    cJSON_Delete (json);
  return CLI_OK;
}

int
cli_devices_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  int code = CLI_OK;

  cli_options_init (&options);
  cli_options_add_json (&options, context);
  g_option_context_set_summary (context, "Lists what can compute on this machine.");
  g_option_context_set_description (context,
                                    "Examples:\n  keepsake-cli devices\n  keepsake-cli devices "
                                    "--json\n\nExit codes: 0 done, 2 wrong options.");
  if (!cli_parse (context, &rest, &code))
    return code;
  if (rest[1] != NULL)
    return cli_usage ("devices takes no arguments");
  return list_devices (options.json);
}

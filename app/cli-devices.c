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

static int
list_devices (gboolean as_json)
{
  const ks_backend_table *tables[MAX_BACKENDS];
  size_t n = MIN (ks_backend_list (tables, MAX_BACKENDS), MAX_BACKENDS);
  cJSON *devices = cJSON_CreateArray (), *json = cJSON_CreateObject ();

  for (size_t i = 0; i < n; i++) {
    ks_dev_info info = {0};
    char why[256] = "";
    guint index = 0;

    for (; tables[i]->probe (index, &info, why, sizeof why); index++) {
      if (as_json)
        cJSON_AddItemToArray (devices, make_device_json (tables[i], index, &info));
      else
        print_device (tables[i], index, &info);
    }
    if (index == 0)
      cli_print_error ("backend %s: %s", tables[i]->name, why[0] != '\0' ? why : "no device");
  }
  cJSON_AddItemToObject (json, "devices", devices);
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

/* cli-inspect-gguf.c - keepsake-cli inspect gguf: metadata and tensors of a file, as text or JSON.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-inspect.h"

#include "app/ks-error.h"
#include "engine/gguf.h"

#include <stdio.h>
#include <string.h>

/* Elements of an array that are printed without --all. */
#define SHORT_ARRAY 8u
#define SHORT_TEXT 120u

static const char *const type_names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "string", "array", "u64", "i64", "f64"};

static const char *
get_type_name (ks_gguf_type type)
{
  return (guint)type < G_N_ELEMENTS (type_names) ? type_names[type] : "?";
}

static cJSON *
make_string (ks_gguf_str s)
{
  g_autofree char *text = g_utf8_make_valid (s.data != NULL ? s.data : "", (gssize)s.n_bytes);

  return cJSON_CreateString (text);
}

/* Scalar key as JSON; 64-bit integers beyond 2^53 become strings, so that no digit is lost. */
static cJSON *
make_scalar (const ks_gguf *g, const ks_gguf_key *key)
{
  double real;
  int64_t integer;
  ks_gguf_str s;
  bool truth;
  g_autofree char *name = g_strndup (key->name.data, key->name.n_bytes);

  if (key->type == KS_GGUF_STRING)
    return ks_gguf_get_str (g, name, &s) ? make_string (s) : cJSON_CreateNull ();
  if (key->type == KS_GGUF_BOOL)
    return ks_gguf_get_bool (g, name, &truth) ? cJSON_CreateBool (truth) : cJSON_CreateNull ();
  if (key->type == KS_GGUF_F32 || key->type == KS_GGUF_F64)
    return ks_gguf_key_get_f64 (key, 0, &real) ? cJSON_CreateNumber (real) : cJSON_CreateNull ();
  if (!ks_gguf_key_get_i64 (key, 0, &integer))
    return cJSON_CreateNull ();
  if (integer > -(INT64_C (1) << 53) && integer < (INT64_C (1) << 53))
    return cJSON_CreateNumber ((double)integer);
  {
    g_autofree char *digits = g_strdup_printf ("%" G_GINT64_FORMAT, (gint64)integer);

    return cJSON_CreateString (digits);
  }
}

static cJSON *
make_array (const ks_gguf_key *key, gboolean all)
{
  cJSON *array = cJSON_CreateArray ();
  guint64 n = all ? key->n_elem : MIN (key->n_elem, SHORT_ARRAY);
  size_t cursor = 0;

  for (guint64 i = 0; i < n; i++) {
    double real = 0;
    int64_t integer = 0;
    ks_gguf_str s;

    if (key->elem_type == KS_GGUF_STRING) {
      if (!ks_gguf_key_next_str (key, &cursor, &s))
        break;
      cJSON_AddItemToArray (array, make_string (s));
    } else if (ks_gguf_key_get_i64 (key, i, &integer)) {
      cJSON_AddItemToArray (array, cJSON_CreateNumber ((double)integer));
    } else if (ks_gguf_key_get_f64 (key, i, &real)) {
      cJSON_AddItemToArray (array, cJSON_CreateNumber (real));
    } else {
      break;
    }
  }
  return array;
}

static cJSON *
make_key (const ks_gguf *g, const ks_gguf_key *key, gboolean all)
{
  cJSON *json = cJSON_CreateObject ();

  cJSON_AddItemToObject (json, "key", make_string (key->name));
  cJSON_AddStringToObject (json, "type", get_type_name (key->type));
  if (key->type != KS_GGUF_ARRAY) {
    cJSON_AddItemToObject (json, "value", make_scalar (g, key));
    return json;
  }
  cJSON_AddStringToObject (json, "element_type", get_type_name (key->elem_type));
  cJSON_AddNumberToObject (json, "n", (double)key->n_elem);
  cJSON_AddItemToObject (json, "value", make_array (key, all));
  return json;
}

static cJSON *
make_tensor (const ks_gguf_tensor *tensor)
{
  cJSON *json = cJSON_CreateObject (), *shape;

  cJSON_AddStringToObject (json, "name", tensor->name);
  cJSON_AddStringToObject (json, "type", ks_dtype_get_info (tensor->dtype)->name);
  shape = cJSON_AddArrayToObject (json, "shape");
  for (guint i = 0; i < tensor->n_dims; i++)
    cJSON_AddItemToArray (shape, cJSON_CreateNumber ((double)tensor->ne[i]));
  cJSON_AddNumberToObject (json, "bytes", (double)tensor->n_bytes);
  return json;
}

static void
print_json (const ks_gguf *g, const char *path, gboolean all)
{
  cJSON *json = cJSON_CreateObject (), *keys, *tensors;

  cJSON_AddStringToObject (json, "path", path);
  cJSON_AddNumberToObject (json, "version", ks_gguf_get_version (g));
  cJSON_AddNumberToObject (json, "bytes", (double)ks_gguf_get_mapped_bytes (g));
  keys = cJSON_AddArrayToObject (json, "metadata");
  for (size_t i = 0; i < ks_gguf_get_n_keys (g); i++)
    cJSON_AddItemToArray (keys, make_key (g, ks_gguf_get_key (g, i), all));
  tensors = cJSON_AddArrayToObject (json, "tensors");
  for (size_t i = 0; i < ks_gguf_get_n_tensors (g); i++)
    cJSON_AddItemToArray (tensors, make_tensor (ks_gguf_get_tensor (g, i)));
  cli_print_json (json);
}

static void
print_text (const ks_gguf *g, const char *path, gboolean all)
{
  g_autofree char *bytes = cli_format_bytes (ks_gguf_get_mapped_bytes (g));
  g_autofree char *shown = cli_dup_printable (path);

  printf ("%s: GGUF version %u, %zu keys, %zu tensors, %s\n\n", shown, ks_gguf_get_version (g),
          ks_gguf_get_n_keys (g), ks_gguf_get_n_tensors (g), bytes);
  for (size_t i = 0; i < ks_gguf_get_n_keys (g); i++) {
    const ks_gguf_key *key = ks_gguf_get_key (g, i);
    cJSON *value = key->type == KS_GGUF_ARRAY ? make_array (key, all) : make_scalar (g, key);
    char *json = cJSON_PrintUnformatted (value);
    g_autofree char *text = json != NULL ? cli_dup_printable (json) : NULL;
    g_autofree char *raw = g_utf8_make_valid (key->name.data, (gssize)key->name.n_bytes);
    g_autofree char *name = cli_dup_printable (raw);

    if (text != NULL && !all && strlen (text) > SHORT_TEXT) {
      const char *cut = g_utf8_find_prev_char (text, text + SHORT_TEXT);

      if (cut != NULL)
        text[cut - text] = '\0';
      printf ("%-44s %s...\n", name, text);
    } else {
      printf ("%-44s %s", name, text != NULL ? text : "");
      if (key->type == KS_GGUF_ARRAY && key->n_elem > SHORT_ARRAY && !all)
        printf (" ... %" G_GUINT64_FORMAT " in all", (guint64)key->n_elem);
      putchar ('\n');
    }
    cJSON_free (json);
    cJSON_Delete (value);
  }
  putchar ('\n');
  for (size_t i = 0; i < ks_gguf_get_n_tensors (g); i++) {
    const ks_gguf_tensor *t = ks_gguf_get_tensor (g, i);
    g_autofree char *name = cli_dup_printable (t->name);

    printf ("%-44s %-7s", name, ks_dtype_get_info (t->dtype)->name);
    for (guint d = 0; d < t->n_dims; d++)
      printf ("%s%" G_GUINT64_FORMAT, d > 0 ? " x " : " ", (guint64)t->ne[d]);
    putchar ('\n');
  }
}

static int
inspect_file (const char *path, gboolean as_json, gboolean all)
{
  g_autoptr (GError) error = NULL;
  ks_alloc *alloc = ks_alloc_new ();
  ks_gguf *g = NULL;
  ks_error err = {0};
  ks_status status = alloc != NULL ? ks_gguf_open (alloc, path, &g, &err) : KS_ERR_NOMEM;
  int code = CLI_OK;

  if (!ks_error_check (status, &err, &error))
    code = cli_fail (error);
  else if (as_json)
    print_json (g, path, all);
  else
    print_text (g, path, all);
  ks_gguf_close (g);
  if (alloc != NULL)
    ks_alloc_free (alloc);
  return code;
}

int
cli_inspect_gguf_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("FILE");
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  gboolean all = FALSE;
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"all", 0, 0, G_OPTION_ARG_NONE, &all, "all elements of arrays, not the first 8", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  g_option_context_add_main_entries (context, entries, NULL);
  cli_options_add_json (&options, context);
  g_option_context_set_summary (context, "Prints metadata and tensors of a GGUF file.");
  g_option_context_set_description (
      context, "Tensor shapes are printed fastest dimension first, as in the file.\n\n"
               "Examples:\n  keepsake-cli inspect gguf model.gguf\n"
               "  keepsake-cli inspect gguf model.gguf --json --all\n\n"
               "Exit codes: 0 done, 1 missing or damaged, 2 wrong options, 4 not supported.");
  if (!cli_parse (context, &rest, &code))
    return code;
  if (rest[1] == NULL || rest[2] != NULL)
    return cli_usage ("give one GGUF file: see keepsake-cli inspect gguf --help");
  return inspect_file (rest[1], options.json, all);
}

/* cli-inspect.c - keepsake-cli inspect: its command table and what the commands share. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-inspect.h"

#include "app/cli-media.h"
#include "app/ks-error.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DUMP_ALIGN 64

static const CliCommand commands[] = {
    {"gguf", "metadata and tensors of a model file", cli_inspect_gguf_main},
    {"tokens", "text to token ids and back", cli_inspect_tokens_main},
    {"logits", "what the model expects after each token", cli_inspect_logits_main},
    {"evict", "which entries an eviction policy keeps, step by step", cli_inspect_evict_main},
    {"vision", "what a vision tower makes of a picture", cli_inspect_vision_main},
};

static const char help[] =
    "Examples:\n"
    "  keepsake-cli inspect gguf model.gguf --json\n"
    "  keepsake-cli inspect tokens --model smollm2 --text \"Hello there\"\n"
    "  keepsake-cli inspect logits --model smollm2 --text \"Hello\" --top 5\n"
    "  keepsake-cli inspect evict --model smollm2 --file notes.txt --entries 64 --chunk 128 "
    "--json\n"
    "  keepsake-cli inspect vision --mmproj mmproj.gguf --image photo.jpg\n";

int
cli_inspect_main (char **args)
{
  return cli_run_subcommand ("inspect", commands, G_N_ELEMENTS (commands), args, help);
}

void
cli_token_source_add (CliTokenSource *source, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"ids", 0, 0, G_OPTION_ARG_STRING, &source->ids, "token ids, separated by commas", "1,2,3"},
      {"text", 0, 0, G_OPTION_ARG_STRING, &source->text, "text to be tokenised", "TEXT"},
      {"file", 'f', 0, G_OPTION_ARG_FILENAME, &source->file, "text file to be tokenised", "FILE"},
      {"special", 0, 0, G_OPTION_ARG_NONE, &source->special,
       "recognise control tokens such as <|im_end|> in the text", NULL},
      {"no-special", 0, 0, G_OPTION_ARG_NONE, &source->no_special,
       "treat them as plain text (default)", NULL},
      {"add-special", 0, 0, G_OPTION_ARG_NONE, &source->add_special,
       "add begin and end tokens as the model asks", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

void
cli_token_source_clear (CliTokenSource *source)
{
  g_free (source->ids);
  g_free (source->text);
  g_free (source->file);
  *source = (CliTokenSource){0};
}

GArray *
cli_parse_numbers (const char *text, guint64 limit, const char *what, GError **error)
{
  g_autoptr (GArray) numbers = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_auto (GStrv) parts = g_strsplit_set (text, ", \t\n[]", -1);

  for (guint i = 0; parts[i] != NULL; i++) {
    guint64 value = 0;
    guint32 number;

    if (parts[i][0] == '\0')
      continue;
    if (!g_ascii_string_to_unsigned (parts[i], 10, 0, limit - 1, &value, NULL)) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                   "'%s' is no %s: a number from 0 to %" G_GUINT64_FORMAT " is wanted", parts[i],
                   what, limit - 1);
      return NULL;
    }
    number = (guint32)value;
    g_array_append_val (numbers, number);
  }
  return g_steal_pointer (&numbers);
}

static GArray *
encode_text (const ks_tokenizer *tok, ks_alloc *alloc, const char *text, gsize n, uint32_t flags,
             GError **error)
{
  GArray *ids = NULL;
  ks_token_list list;
  ks_error err = {0};

  ks_token_list_init (&list, alloc);
  if (ks_error_check (ks_tokenizer_encode (tok, text, n, flags, &list, &err), &err, error)) {
    ids = g_array_new (FALSE, FALSE, sizeof (ks_token));
    if (list.n > 0)
      g_array_append_vals (ids, list.ids, (guint)list.n);
  }
  ks_token_list_done (&list);
  return ids;
}

GArray *
cli_token_source_read (const CliTokenSource *source, const ks_tokenizer *tok, ks_alloc *alloc,
                       GError **error)
{
  guint n_given = (source->ids != NULL) + (source->text != NULL) + (source->file != NULL);
  uint32_t flags = (source->special ? KS_ENCODE_PARSE_SPECIAL : 0) |
                   (source->add_special ? KS_ENCODE_ADD_SPECIAL : 0);
  g_autofree char *text = NULL;
  gsize n = 0;

  if (n_given != 1 || (source->special && source->no_special)) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                         n_given != 1 ? "give exactly one of --ids, --text and --file"
                                      : "give only one of --special and --no-special");
    return NULL;
  }
  if (source->ids != NULL)
    return cli_parse_numbers (source->ids, ks_tokenizer_get_n_vocab (tok), "token id", error);
  if (source->text != NULL)
    return encode_text (tok, alloc, source->text, strlen (source->text), flags, error);
  text = cli_load_text (source->file, &n, error);
  return text != NULL ? encode_text (tok, alloc, text, n, flags, error) : NULL;
}

cJSON *
cli_make_id_array (const ks_token *ids, gsize n)
{
  cJSON *array = cJSON_CreateArray ();

  for (gsize i = 0; i < n; i++)
    cJSON_AddItemToArray (array, cJSON_CreateNumber (ids[i]));
  return array;
}

char *
cli_dup_piece (const ks_tokenizer *tok, ks_token id)
{
  size_t n = 0;
  const char *piece = ks_tokenizer_get_piece (tok, id, true, &n);

  return g_utf8_make_valid (piece != NULL ? piece : "", (gssize)n);
}

struct _CliDump {
  FILE *file;
  char *path;
  guint64 offset;
  cJSON *arrays;
  gboolean failed;
};

static gboolean
is_same_file (const char *a, const char *b)
{
  GStatBuf x, y;

  return g_stat (a, &x) == 0 && g_stat (b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

CliDump *
cli_dump_new (const char *path, const char *const *inputs, GError **error)
{
  g_autoptr (CliDump) dump = g_new0 (CliDump, 1);

  if (path == NULL)
    return g_steal_pointer (&dump);
  for (guint i = 0; inputs[i] != NULL; i++)
    if (is_same_file (path, inputs[i])) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                   "--dump would overwrite %s, which is being read: give another file", inputs[i]);
      return NULL;
    }
  dump->path = g_strdup (path);
  dump->file = g_fopen (path, "wb");
  if (dump->file == NULL) {
    g_set_error (error, G_FILE_ERROR, (int)g_file_error_from_errno (errno), "cannot write %s: %s",
                 path, g_strerror (errno));
    return NULL;
  }
  dump->arrays = cJSON_CreateObject ();
  return g_steal_pointer (&dump);
}

static void
write_bytes (CliDump *dump, const void *bytes, gsize n)
{
  if (n > 0 && fwrite (bytes, 1, n, dump->file) != n)
    dump->failed = TRUE;
  dump->offset += n;
}

void
cli_dump_begin (CliDump *dump, const char *name, const char *dtype, guint n_dim,
                const guint64 *shape)
{
  static const char zeros[DUMP_ALIGN];
  cJSON *array, *dims;
  guint64 n_bytes = 4;

  if (dump->file == NULL)
    return;
  write_bytes (dump, zeros, (DUMP_ALIGN - dump->offset % DUMP_ALIGN) % DUMP_ALIGN);
  array = cJSON_AddObjectToObject (dump->arrays, name);
  cJSON_AddStringToObject (array, "dtype", dtype);
  dims = cJSON_AddArrayToObject (array, "shape");
  for (guint i = 0; i < n_dim; i++) {
    cJSON_AddItemToArray (dims, cJSON_CreateNumber ((double)shape[i]));
    n_bytes *= shape[i];
  }
  cJSON_AddNumberToObject (array, "offset", (double)dump->offset);
  cJSON_AddNumberToObject (array, "nbytes", (double)n_bytes);
}

void
cli_dump_write (CliDump *dump, const void *elements, gsize n)
{
  const guint32 *words = elements;

  if (dump->file == NULL)
    return;
  for (gsize i = 0; i < n; i++) {
    guint32 word = GUINT32_TO_LE (words[i]);

    write_bytes (dump, &word, sizeof word);
  }
}

gboolean
cli_dump_finish (CliDump *dump, cJSON **out_arrays, GError **error)
{
  *out_arrays = NULL;
  if (dump->file == NULL)
    return TRUE;
  if (fclose (g_steal_pointer (&dump->file)) != 0 || dump->failed) {
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "cannot write all of %s", dump->path);
    return FALSE;
  }
  *out_arrays = g_steal_pointer (&dump->arrays);
  return TRUE;
}

void
cli_dump_free (CliDump *dump)
{
  if (dump == NULL)
    return;
  if (dump->file != NULL)
    fclose (dump->file);
  cJSON_Delete (dump->arrays);
  g_free (dump->path);
  g_free (dump);
}

/* cli-inspect-tokens.c - keepsake-cli inspect tokens: text to ids and ids to text. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-inspect.h"

#include "app/ks-error.h"

#include <stdio.h>

static const char help[] =
    "Special parsing is off unless --special is given: <|im_end|> in a text is then plain text, "
    "as\n"
    "it is in every document.\n\n"
    "Examples:\n"
    "  keepsake-cli inspect tokens --model smollm2 --text \"Hello there\"\n"
    "  keepsake-cli inspect tokens --model model.gguf --file notes.txt --json\n"
    "  keepsake-cli inspect tokens --model smollm2 --ids 19556,665\n\n"
    "Exit codes: 0 done, 1 missing or damaged, 2 wrong options, 4 not supported.";

/* The joined text of the ids, made valid. (transfer full) */
static char *
decode (const ks_tokenizer *tok, ks_alloc *alloc, GArray *ids, GError **error)
{
  char *text = NULL, *valid;
  size_t n = 0;
  ks_error err = {0};

  if (!ks_error_check (ks_tokenizer_decode (tok, alloc, (const ks_token *)ids->data, ids->len, true,
                                            &text, &n, &err),
                       &err, error))
    return NULL;
  valid = g_utf8_make_valid (text, (gssize)n);
  ks_mem_free (text);
  return valid;
}

static cJSON *
make_json (const ks_tokenizer *tok, GArray *ids, const char *text)
{
  cJSON *json = cJSON_CreateObject (), *pieces;

  cJSON_AddNumberToObject (json, "n", ids->len);
  cJSON_AddItemToObject (json, "ids", cli_make_id_array ((const ks_token *)ids->data, ids->len));
  pieces = cJSON_AddArrayToObject (json, "pieces");
  for (guint i = 0; i < ids->len; i++) {
    g_autofree char *piece = cli_dup_piece (tok, g_array_index (ids, ks_token, i));

    cJSON_AddItemToArray (pieces, cJSON_CreateString (piece));
  }
  cJSON_AddStringToObject (json, "text", text);
  return json;
}

static void
print_text (const ks_tokenizer *tok, GArray *ids, const char *text, gboolean from_ids)
{
  if (from_ids) {
    cli_print_text (text);
    putchar ('\n');
    return;
  }
  for (guint i = 0; i < ids->len; i++) {
    ks_token id = g_array_index (ids, ks_token, i);
    g_autofree char *piece = cli_dup_piece (tok, id);
    g_autofree char *escaped = g_strescape (piece, NULL);
    g_autofree char *printable = cli_dup_printable (piece);

    /* Only line breaks and the like are escaped; other languages stay readable. */
    printf ("%7d  \"%s\"\n", id, g_str_equal (piece, printable) ? piece : escaped);
  }
  printf ("%u tokens\n", ids->len);
}

static gboolean
inspect (const ks_gguf *g, ks_alloc *alloc, const CliTokenSource *source, gboolean as_json,
         GError **error)
{
  ks_tokenizer *tok = NULL;
  ks_error err = {0};
  g_autoptr (GArray) ids = NULL;
  g_autofree char *text = NULL;

  if (!ks_error_check (ks_tokenizer_new (alloc, g, &tok, &err), &err, error))
    return FALSE;
  if (ks_tokenizer_get_warning (tok) != NULL)
    cli_print_notice (ks_tokenizer_get_warning (tok));
  ids = cli_token_source_read (source, tok, alloc, error);
  text = ids != NULL ? decode (tok, alloc, ids, error) : NULL;
  if (text != NULL && as_json)
    cli_print_json (make_json (tok, ids, text));
  else if (text != NULL)
    print_text (tok, ids, text, source->ids != NULL);
  ks_tokenizer_free (tok);
  return text != NULL;
}

static int
run (const CliOptions *options, const CliTokenSource *source)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsModelRegistry) registry = ks_model_registry_new (NULL, NULL);
  g_autofree char *path = cli_resolve_model (registry, options->model, &error);
  ks_alloc *alloc;
  ks_gguf *g = NULL;
  ks_error err = {0};
  gboolean ok = FALSE;

  if (path == NULL)
    return cli_fail (error);
  alloc = ks_alloc_new ();
  if (alloc == NULL)
    ks_error_check (KS_ERR_NOMEM, NULL, &error);
  else if (ks_error_check (ks_gguf_open (alloc, path, &g, &err), &err, &error))
    ok = inspect (g, alloc, source, options->json, &error);
  ks_gguf_close (g);
  if (alloc != NULL)
    ks_alloc_free (alloc);
  return ok ? CLI_OK : cli_fail (error);
}

int
cli_inspect_tokens_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  g_auto (CliTokenSource) source = {0};
  int code = CLI_OK;
  const GOptionEntry entries[] = {{"model", 'm', 0, G_OPTION_ARG_STRING, &options.model,
                                   "GGUF file, or the name of a model in the models folder",
                                   "MODEL"},
                                  {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  g_option_context_add_main_entries (context, entries, NULL);
  cli_token_source_add (&source, context);
  cli_options_add_json (&options, context);
  g_option_context_set_summary (context,
                                "Shows how a model's tokenizer cuts a text, or joins ids.");
  g_option_context_set_description (context, help);
  if (!cli_parse (context, &rest, &code))
    return code;
  if (rest[1] != NULL)
    return cli_usage ("give the text with --text, --file or --ids");
  return run (&options, &source);
}

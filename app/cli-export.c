/* cli-export.c - keepsake-cli export and import: sessions as files, and bundles back. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-store.h"

#include "storage/ks-export.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  KsExportFormat format;
  const char *output, *folder; /* one of them */
  char **names;
  gboolean all, json;
} Request;

/* Paths may be in any encoding; both outputs are text. */
static void
print_path (const char *path, cJSON *array, KsSession *session)
{
  g_autofree char *valid = g_filename_display_name (path);

  if (array != NULL) {
    cJSON *json = cli_make_session_json (session);

    cJSON_AddStringToObject (json, "path", valid);
    cJSON_AddItemToArray (array, json);
  } else {
    g_autofree char *printable = cli_dup_printable (valid);

    puts (printable);
  }
}

static gboolean
export_to_output (KsStore *store, const Request *request, KsSession *session, cJSON *array,
                  GError **error)
{
  gint64 id = ks_session_get_id (session);
  g_autoptr (GBytes) content = NULL;

  if (!g_str_equal (request->output, "-")) {
    if (!ks_export_session_to_file (store, id, request->format, request->output, error))
      return FALSE;
    print_path (request->output, array, session);
    return TRUE;
  }
  content = ks_export_session (store, id, request->format, error);
  if (content == NULL)
    return FALSE;
  fwrite (g_bytes_get_data (content, NULL), 1, g_bytes_get_size (content), stdout);
  return TRUE;
}

static gboolean
export_one (KsStore *store, const Request *request, KsSession *session, cJSON *array,
            GError **error)
{
  g_autofree char *path = NULL;

  if (request->output != NULL)
    return export_to_output (store, request, session, array, error);
  path = ks_export_session_to_folder (store, ks_session_get_id (session), request->format,
                                      request->folder, error);
  if (path == NULL)
    return FALSE;
  print_path (path, array, session);
  return TRUE;
}

static GPtrArray *
find_all (KsStore *store, const Request *request, GError **error)
{
  g_autoptr (GPtrArray) sessions = NULL;

  if (request->all)
    return ks_store_list_sessions (store, 0, 0, error);
  sessions = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; request->names[i] != NULL; i++) {
    KsSession *session = ks_store_find_session (store, request->names[i], error);

    if (session == NULL)
      return NULL;
    g_ptr_array_add (sessions, session);
  }
  return g_steal_pointer (&sessions);
}

static gboolean
export_all (KsStore *store, gpointer data, GError **error)
{
  const Request *request = data;
  g_autoptr (GPtrArray) sessions = find_all (store, request, error);
  cJSON *array = request->json ? cJSON_CreateArray () : NULL;
  gboolean done = sessions != NULL;

  for (guint i = 0; done && i < sessions->len; i++)
    done = export_one (store, request, g_ptr_array_index (sessions, i), array, error);
  if (array != NULL && done && g_strcmp0 (request->output, "-") != 0)
    cli_print_json (array);
  else
    cJSON_Delete (array);
  return done;
}

static gboolean
import_all (KsStore *store, gpointer data, GError **error)
{
  const Request *request = data;
  cJSON *array = request->json ? cJSON_CreateArray () : NULL;
  gboolean done = TRUE;

  for (guint i = 0; done && request->names[i] != NULL; i++) {
    g_autoptr (KsSession) session = ks_import_file (store, request->names[i], error);

    done = session != NULL;
    if (done && array != NULL) {
      cJSON_AddItemToArray (array, cli_make_session_json (session));
    } else if (done) {
      g_autofree char *title = cli_dup_title (session, G_MAXINT);

      printf ("Session %" G_GINT64_FORMAT ": %s\n", ks_session_get_id (session), title);
      fflush (stdout);
    } else {
      g_autofree char *name = g_filename_display_name (request->names[i]);

      if (strstr ((*error)->message, name) == NULL)
        g_prefix_error (error, "%s: ", name);
    }
  }
  if (array != NULL)
    cli_print_json (array); /* what was imported, also when a later file was not */
  return done;
}

/* --format, else what the output's name ends with, else Markdown. */
static gboolean
pick_format (const char *format, const char *output, KsExportFormat *out)
{
  const char *dot = output != NULL ? strrchr (output, '.') : NULL;

  *out = KS_EXPORT_MARKDOWN;
  if (format != NULL)
    return ks_export_parse_format (format, out);
  if (dot != NULL)
    (void)ks_export_parse_format (dot + 1, out);
  return TRUE;
}

static const char export_help[] =
    "SESSION is a number, a title, or the beginning of one title. Files get a safe name made of "
    "the title;\nnothing is overwritten. json is the complete session, all branches and files, for "
    "import; md and html\nare the active path for reading.\n\n"
    "Examples:\n"
    "  keepsake-cli export 3\n"
    "  keepsake-cli export --format json --folder backup --all\n"
    "  keepsake-cli export 3 --output talk.html\n"
    "  keepsake-cli export 3 --format md --output - | less\n\n"
    "Exit codes: 0 done, 1 failed, a file exists, or there is no such session, 2 wrong options, 4 "
    "the\nsessions are of a newer Keepsake.";

int
cli_export_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("SESSION...");
  g_autofree char *format = NULL, *output = NULL, *folder = NULL;
  g_auto (GStrv) rest = g_strdupv (args);
  Request request = {0};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"format", 'f', 0, G_OPTION_ARG_STRING, &format,
       "md, json or html (default: as the output's name ends, else md)", "FORMAT"},
      {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
       "this file, which must not exist; - is standard output", "FILE"},
      {"folder", 'd', 0, G_OPTION_ARG_FILENAME, &folder,
       "folder for files with names of their own (default: the current one)", "FOLDER"},
      {"all", 0, 0, G_OPTION_ARG_NONE, &request.all, "every session", NULL},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &request.json, "print what was written as JSON", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_set_summary (context, "Writes sessions to files.");
  g_option_context_set_description (context, export_help);
  if (!cli_parse (context, &rest, &code))
    return code;
  if (request.all == (rest[1] != NULL))
    return cli_usage ("name the sessions to export, or say --all: see keepsake-cli export --help");
  if (output != NULL && (folder != NULL || request.all || rest[2] != NULL))
    return cli_usage ("--output is for one session; several go into a --folder");
  if (!pick_format (format, output, &request.format))
    return cli_usage ("--format must be md, json or html");
  request.names = rest + 1;
  request.output = output;
  request.folder = folder != NULL ? folder : ".";
  return cli_run_on_store (FALSE, export_all, &request);
}

static const char import_help[] =
    "A bundle is what export --format json wrote. Each becomes a new session with all its branches "
    "and\nfiles; a file that is damaged or not a bundle changes nothing.\n\n"
    "Examples:\n"
    "  keepsake-cli import talk.json\n"
    "  keepsake-cli import backup/*.json\n\n"
    "Exit codes: 0 done, 1 a file is missing, damaged or no bundle (those before it stay "
    "imported),\n2 wrong options, 4 the sessions are of a newer Keepsake.";

int
cli_import_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("FILE...");
  g_auto (GStrv) rest = g_strdupv (args);
  Request request = {0};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"json", 'j', 0, G_OPTION_ARG_NONE, &request.json, "print the sessions as JSON", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_set_summary (context, "Adds sessions from bundles.");
  g_option_context_set_description (context, import_help);
  if (!cli_parse (context, &rest, &code))
    return code;
  if (rest[1] == NULL)
    return cli_usage ("name the bundles to import: see keepsake-cli import --help");
  request.names = rest + 1;
  return cli_run_on_store (TRUE, import_all, &request);
}

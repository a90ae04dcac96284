/* cli-memory.c - keepsake-cli memory: reads a stored session again and tells what the model would
 * still remember of it, by turn and by picture.  Nothing is written to the session. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-answer.h"
#include "app/cli-store.h"
#include "app/ks-error.h"
#include "app/ks-eye-options.h"
#include "app/ks-notices.h"
#include "app/ks-turn-source.h"

#include <stdio.h>

static const char help[] =
    "The session's messages, documents and pictures go through the model as they would when it is "
    "opened;\n"
    "pictures that were looked at before are not encoded again. Then it says how many of the "
    "entries of\n"
    "each turn and of each picture are left under the memory target. Turns are numbered as "
    "'sessions show'\nnumbers them; those that failed were never read.\n\n"
    "Examples:\n"
    "  keepsake-cli memory --session 3\n"
    "  keepsake-cli memory --session \"Cable car\" --kv-budget 24MiB --json\n"
    "  keepsake-cli memory --session 3 --json --patches\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong options, 3 does not fit the memory target,\n"
    "4 not supported, 130 cancelled.";

typedef struct {
  const char *name;
  CliOptions *options;
  KsSession *session;
  KsSessionSettings *settings;
  GPtrArray *sources; /* of KsTurnSource */
  GArray *numbers;    /* of guint: of each source among all turns of the session, from 1 */
  GArray *left_out;   /* of LeftOut: the others */
  KsBlobStore *blobs;
  KsEmbedStore *embeds;
  KsEngine *engine;
  KsConversation *conversation;
  KsEyes eyes;
  gboolean own_target; /* the memory target is what the session was given */
} Memory;

typedef struct {
  guint number;
  gboolean stopped;
} LeftOut;

/* Turns without an answer are left out, as a session that is opened leaves them out. */
static void
number_turns (Memory *memory)
{
  guint number = 1;

  memory->numbers = g_array_new (FALSE, FALSE, sizeof (guint));
  memory->left_out = g_array_new (FALSE, FALSE, sizeof (LeftOut));
  for (guint i = 0; i < memory->sources->len; number++) {
    const KsTurnSource *source = g_ptr_array_index (memory->sources, i);

    if (ks_turn_source_is_empty (source)) {
      LeftOut left_out = {.number = number, .stopped = source->stopped};

      g_array_append_val (memory->left_out, left_out);
      g_ptr_array_remove_index (memory->sources, i);
    } else {
      g_array_append_val (memory->numbers, number);
      i++;
    }
  }
}

static gboolean
fetch (KsStore *store, gpointer data, GError **error)
{
  Memory *memory = data;
  g_autoptr (GPtrArray) messages = NULL;
  g_autoptr (GListStore) list = g_list_store_new (KS_TYPE_MESSAGE);
  gint64 id;

  memory->session = ks_store_find_session (store, memory->name, error);
  if (memory->session == NULL)
    return FALSE;
  id = ks_session_get_id (memory->session);
  memory->settings = ks_store_get_settings (store, id, error);
  if (memory->settings != NULL)
    messages = ks_store_list_messages (store, id, error);
  if (messages == NULL)
    return FALSE;
  g_list_store_splice (list, 0, 0, messages->pdata, messages->len);
  memory->sources = ks_turn_source_list (G_LIST_MODEL (list), messages->len);
  number_turns (memory);
  memory->blobs = g_object_ref (ks_store_get_blobs (store));
  memory->embeds = g_object_ref (ks_store_get_embeds (store));
  return TRUE;
}

/* --- reading --- */

static gboolean
ask_eyes (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  Memory *memory = data;

  if (setup->sight != NULL)
    memory->eyes = ks_sight_get_eyes (setup->sight);
  return TRUE;
}

static gboolean
load (Memory *memory, GError **error)
{
  g_autoptr (KsSettings) settings = ks_settings_new (NULL);
  g_autoptr (KsEngineOptions) options = NULL;
  g_autoptr (KsEngineJob) job = NULL, eyes = NULL;

  memory->own_target = !cli_options_has_target (memory->options);
  cli_options_take_session (memory->options, memory->settings);
  memory->own_target = memory->own_target && cli_options_has_target (memory->options);
  options = cli_options_make_engine (memory->options, error);
  if (options == NULL)
    return FALSE;
  ks_embed_store_set_quota (memory->embeds, ks_settings_get_embedding_disk_bytes (settings));
  options->embeds = g_object_ref (memory->embeds);
  memory->engine = ks_engine_new ();
  job = ks_engine_load (memory->engine, options);
  if (!cli_wait (job, error))
    return FALSE;
  eyes = ks_engine_job_new (ask_eyes, memory, NULL);
  ks_engine_push (memory->engine, eyes);
  return ks_engine_job_wait (eyes, error);
}

static void
progress_cb (KsEngineJob *job, guint n_done, guint n_total, gpointer user_data)
{
  cli_progress_update (user_data, "Reading the session again", "tokens", n_done, n_total);
}

static void
looking_cb (KsEngineJob *job, const char *name, guint n_done, guint n_total, gpointer user_data)
{
  cli_progress_look (user_data, name, n_done, n_total);
}

static void
notice_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  cli_progress_clear (user_data);
  cli_print_notice (text);
}

static void
tell_blind (const Memory *memory)
{
  for (guint i = 0; !memory->eyes.sees && i < memory->sources->len; i++)
    if (ks_turn_source_has_pictures (g_ptr_array_index (memory->sources, i))) {
      cli_print_notice (KS_NOTICE_BLIND);
      return;
    }
}

static gboolean
read_again (Memory *memory, GError **error)
{
  GPtrArray *texts =
      ks_turn_source_make_texts (memory->sources, memory->blobs, &memory->eyes, NULL, error);
  g_autoptr (KsEngineJob) job = NULL;
  CliProgress progress;
  gboolean ok;

  if (texts == NULL)
    return FALSE;
  tell_blind (memory);
  memory->conversation = ks_conversation_new (memory->engine);
  ks_conversation_set_system (memory->conversation, memory->settings->system_prompt);
  job = ks_conversation_restore (memory->conversation, texts);
  cli_progress_init (&progress);
  g_signal_connect (job, "progress", G_CALLBACK (progress_cb), &progress);
  g_signal_connect (job, "looking", G_CALLBACK (looking_cb), &progress);
  g_signal_connect (job, "notice", G_CALLBACK (notice_cb), &progress);
  ok = cli_wait (job, error);
  cli_progress_clear (&progress);
  return ok;
}

/* --- telling --- */

static double
get_share (const KsMemoryStats *stats, guint64 n_entries, guint n_token)
{
  double n_all = (double)n_token * stats->kv.n_layer * stats->kv.n_kv_head;

  return n_all > 0 ? (double)n_entries / n_all : 0;
}

/* What is left of a picture, by place. (transfer full) */
static KsPictureTrace *
trace_picture (const Memory *memory, const ks_picture_stats *picture, GError **error)
{
  KsPictureTrace *trace = ks_picture_trace_new ();
  g_autoptr (KsEngineJob) job =
      ks_conversation_trace (memory->conversation, picture->turn, picture->attachment, trace);

  if (ks_engine_job_wait (job, error))
    return trace;
  ks_picture_trace_free (trace);
  return NULL;
}

static void
print_entries (const char *what, const GArray *entries)
{
  const KsTraceEntry *last = NULL;

  for (guint i = 0; i < entries->len; i++) {
    const KsTraceEntry *entry = &g_array_index (entries, KsTraceEntry, i);

    if (last == NULL || last->layer != entry->layer || last->head != entry->head)
      printf ("%s    %s: layer %u, head %u, at row,column", last != NULL ? "\n" : "", what,
              entry->layer, entry->head);
    printf (" %u,%u", entry->row, entry->col);
    last = entry;
  }
  if (last != NULL)
    putchar ('\n');
}

static gboolean
print_patches (const Memory *memory, const ks_picture_stats *picture, GError **error)
{
  KsPictureTrace *trace = trace_picture (memory, picture, error);

  if (trace == NULL)
    return FALSE;
  if (trace->n_row > 0)
    printf ("    %u rows, %u columns\n", trace->n_row, trace->n_col);
  print_entries ("picture", trace->entries);
  if (trace->overview_rows > 0)
    printf ("    overview: %u rows, %u columns\n", trace->overview_rows, trace->overview_cols);
  print_entries ("overview", trace->overview);
  ks_picture_trace_free (trace);
  return TRUE;
}

static gboolean
print_pictures (const Memory *memory, const KsMemoryStats *stats, guint turn, GError **error)
{
  for (guint i = 0; i < stats->kv.n_picture; i++) {
    const ks_picture_stats *picture = &stats->kv.pictures[i];
    const KsSeenPicture *seen = ks_memory_stats_find_seen (stats, picture);
    g_autofree char *name = cli_dup_printable (seen != NULL ? seen->name : "picture");
    g_autofree char *page = NULL;

    if (picture->turn != turn)
      continue;
    if (seen != NULL && seen->source == KS_PICTURE_PAGE)
      page = g_strdup_printf (", page %u", seen->index + 1);
    else if (seen != NULL && seen->source == KS_PICTURE_PART)
      page = g_strdup_printf (", picture %u", seen->index + 1);
    else if (seen != NULL && seen->source == KS_PICTURE_FRAME)
      page = g_strdup_printf (", frame %u", seen->index + 1);
    printf ("  picture %-4u %6u tokens  %5.1f %% kept  %s%s\n", picture->attachment, picture->n_tok,
            100 * get_share (stats, picture->n_entry, picture->n_tok), name,
            page != NULL ? page : "");
    if (memory->options->patches && !print_patches (memory, picture, error))
      return FALSE;
  }
  return TRUE;
}

/* Those from *next on that stand before a turn. */
static void
print_left_out (const Memory *memory, guint *next, guint before)
{
  for (; *next < memory->left_out->len; (*next)++) {
    const LeftOut *turn = &g_array_index (memory->left_out, LeftOut, *next);

    if (turn->number >= before)
      return;
    printf ("turn %-8u %s\n", turn->number,
            turn->stopped ? "stopped before it was read" : "not answered, not read");
  }
}

static gboolean
print_all (const Memory *memory, const KsMemoryStats *stats, GError **error)
{
  g_autofree char *title = cli_dup_title (memory->session, 60);
  g_autofree char *used = cli_format_bytes (stats->kv.kv_used_bytes);
  g_autofree char *budget = cli_format_bytes (stats->kv.kv_budget_bytes);
  g_autofree char *total = cli_format_bytes (ks_memory_stats_get_total_bytes (stats));
  g_autofree char *pixels = cli_format_bytes (stats->pixel_peak_bytes);
  guint next = 0;
  g_autofree char *seen = cli_format_count (stats->kv.seen);

  printf ("%s: %s tokens read, %.1f %% of their entries kept\n", title, seen,
          100 * get_share (stats, stats->kv.n_entries, stats->kv.seen));
  printf ("keys and values %s of %s, everything %s; pictures: %u encoded, %u found again, beside "
          "that %s of pixels at most\n",
          used, budget, total, stats->pictures.n_encoded,
          stats->pictures.n_memory + stats->pictures.n_disk, pixels);
  if (memory->own_target)
    puts ("the memory target is the session's own; --budget, --kv-budget or --entries tries "
          "another one");
  for (guint turn = 0; turn < stats->kv.n_turn; turn++) {
    print_left_out (memory, &next, cli_get_turn_number (memory->numbers, turn));
    printf ("turn %-8u %6u tokens  %5.1f %% kept\n", cli_get_turn_number (memory->numbers, turn),
            stats->kv.turn_tokens[turn],
            100 * get_share (stats, stats->kv.by_turn[turn], stats->kv.turn_tokens[turn]));
    if (!print_pictures (memory, stats, turn, error))
      return FALSE;
  }
  print_left_out (memory, &next, G_MAXUINT);
  return TRUE;
}

/* [layer, head, row, column] of each; there may be many thousands. */
static void
add_entries (cJSON *json, const char *name, const GArray *entries)
{
  g_autoptr (GString) text = g_string_new ("[");

  for (guint i = 0; i < entries->len; i++) {
    const KsTraceEntry *entry = &g_array_index (entries, KsTraceEntry, i);

    g_string_append_printf (text, "%s[%u, %u, %u, %u]", i > 0 ? ", " : "", entry->layer,
                            entry->head, entry->row, entry->col);
  }
  g_string_append_c (text, ']');
  cJSON_AddRawToObject (json, name, text->str);
}

static gboolean
add_patches (const Memory *memory, const KsMemoryStats *stats, cJSON *json, GError **error)
{
  cJSON *row = cJSON_GetObjectItemCaseSensitive (json, "pictures")->child;

  for (guint i = 0; i < stats->kv.n_picture; i++, row = row->next) {
    KsPictureTrace *trace = trace_picture (memory, &stats->kv.pictures[i], error);

    if (trace == NULL)
      return FALSE;
    cJSON_AddNumberToObject (row, "rows", trace->n_row);
    cJSON_AddNumberToObject (row, "columns", trace->n_col);
    add_entries (row, "patches", trace->entries);
    if (trace->overview_rows > 0) {
      cJSON_AddNumberToObject (row, "overview_rows", trace->overview_rows);
      cJSON_AddNumberToObject (row, "overview_columns", trace->overview_cols);
      add_entries (row, "overview_patches", trace->overview);
    }
    ks_picture_trace_free (trace);
  }
  return TRUE;
}

static gboolean
print_json (const Memory *memory, const KsMemoryStats *stats, GError **error)
{
  cJSON *json = cJSON_CreateObject (), *told = cli_make_memory_json (stats, memory->numbers);
  cJSON *turns;

  cJSON_AddItemToObject (json, "session", cli_make_session_json (memory->session));
  cJSON_AddBoolToObject (json, "own_target", memory->own_target);
  cJSON_AddItemToObject (json, "memory", told);
  if (memory->options->patches && !add_patches (memory, stats, told, error)) {
    cJSON_Delete (json);
    return FALSE;
  }
  turns = cJSON_AddArrayToObject (json, "turns");
  for (guint turn = 0; turn < stats->kv.n_turn; turn++) {
    cJSON *row = cJSON_CreateObject ();

    cJSON_AddItemToArray (turns, row);
    cJSON_AddNumberToObject (row, "turn", cli_get_turn_number (memory->numbers, turn));
    cJSON_AddNumberToObject (row, "tokens", stats->kv.turn_tokens[turn]);
    cJSON_AddNumberToObject (row, "entries", (double)stats->kv.by_turn[turn]);
    cJSON_AddNumberToObject (
        row, "share", get_share (stats, stats->kv.by_turn[turn], stats->kv.turn_tokens[turn]));
  }
  turns = cJSON_AddArrayToObject (json, "left_out");
  for (guint i = 0; i < memory->left_out->len; i++) {
    const LeftOut *turn = &g_array_index (memory->left_out, LeftOut, i);
    cJSON *row = cJSON_CreateObject ();

    cJSON_AddItemToArray (turns, row);
    cJSON_AddNumberToObject (row, "turn", turn->number);
    cJSON_AddBoolToObject (row, "stopped", turn->stopped);
  }
  cli_print_json (json);
  return TRUE;
}

static int
run (Memory *memory)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMemoryStats) stats = NULL;
  int code = cli_run_on_store (FALSE, fetch, memory);

  if (code != CLI_OK)
    return code;
  if (!load (memory, &error) || !read_again (memory, &error)) {
    if (memory->own_target && g_error_matches (error, KS_ENGINE_ERROR, KS_ERR_BUDGET))
      g_prefix_error (&error, "with the session's own memory target: ");
    return cli_fail (error);
  }
  stats = ks_conversation_dup_stats (memory->conversation);
  if (!(memory->options->json ? print_json (memory, stats, &error)
                              : print_all (memory, stats, &error)))
    return cli_fail (error);
  return CLI_OK;
}

static void
clear (Memory *memory)
{
  g_clear_object (&memory->conversation);
  g_clear_object (&memory->engine);
  g_clear_object (&memory->session);
  g_clear_object (&memory->blobs);
  g_clear_object (&memory->embeds);
  g_clear_pointer (&memory->sources, g_ptr_array_unref);
  g_clear_pointer (&memory->numbers, g_array_unref);
  g_clear_pointer (&memory->left_out, g_array_unref);
  g_clear_pointer (&memory->settings, ks_session_settings_free);
}

int
cli_memory_main (char **args)
{
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  Memory memory = {.options = &options};
  int code = CLI_OK;

  cli_options_init (&options);
  if (!cli_options_parse_memory (&options, "Tells what is still remembered of a stored session.",
                                 help, &rest, &code))
    return code;
  if (options.session == NULL || rest[1] != NULL)
    return cli_usage ("give a session: keepsake-cli memory --session 3");
  memory.name = options.session;
  code = run (&memory);
  clear (&memory);
  return code;
}

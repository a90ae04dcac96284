/* cli-answer.c - see cli-answer.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-answer.h"

#include <stdio.h>
#include <string.h>

static void
notice_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  CliTalk *talk = user_data;

  cli_progress_clear (&talk->progress);
  cli_talk_end_line (talk);
  cli_print_notice (text);
}

static void
progress_cb (KsEngineJob *job, guint n_done, guint n_total, gpointer user_data)
{
  CliTalk *talk = user_data;

  cli_progress_update (&talk->progress, "Reading", n_done, n_total);
  if (n_done == n_total)
    cli_progress_clear (&talk->progress);
}

static void
text_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  CliTalk *talk = user_data;

  cli_progress_clear (&talk->progress);
  g_string_append (talk->answer, text);
  if (talk->quiet || text[0] == '\0')
    return;
  cli_print_text (text);
  fflush (stdout);
  talk->at_margin = text[strlen (text) - 1] == '\n';
}

void
cli_talk_watch (CliTalk *talk, KsEngineJob *job)
{
  cli_progress_init (&talk->progress);
  g_signal_connect (job, "notice", G_CALLBACK (notice_cb), talk);
  g_signal_connect (job, "progress", G_CALLBACK (progress_cb), talk);
  g_signal_connect (job, "text", G_CALLBACK (text_cb), talk);
}

void
cli_talk_end_line (CliTalk *talk)
{
  if (talk->at_margin)
    return;
  putchar ('\n');
  fflush (stdout);
  talk->at_margin = TRUE;
}

gboolean
cli_talk_open (CliTalk *talk, const CliOptions *options, int *out_exit)
{
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (GError) error = NULL;

  *talk = (CliTalk){.at_margin = TRUE, .quiet = options->json};
  talk->answer = g_string_new (NULL);
  talk->options = cli_options_make_engine (options, &error);
  if (talk->options != NULL) {
    talk->engine = ks_engine_new ();
    job = ks_engine_load (talk->engine, talk->options);
    cli_talk_watch (talk, job);
    if (cli_wait (job, &error)) {
      talk->conversation = ks_conversation_new (talk->engine);
      return TRUE;
    }
  }
  *out_exit = cli_fail (error);
  return FALSE;
}

void
cli_talk_close (CliTalk *talk)
{
  g_clear_object (&talk->conversation);
  g_clear_object (&talk->engine);
  g_clear_pointer (&talk->options, ks_engine_options_free);
  if (talk->answer != NULL)
    g_string_free (talk->answer, TRUE);
  talk->answer = NULL;
}

gboolean
cli_talk_attach (CliTalk *talk, const char *path, GError **error)
{
  g_autofree char *name = g_path_get_basename (path);
  /* A shell does this for arguments; lines of chat have not seen one. */
  g_autofree char *full = g_str_has_prefix (path, "~/")
                              ? g_build_filename (g_get_home_dir (), path + 2, NULL)
                              : g_strdup (path);
  g_autofree char *text = cli_load_text (full, NULL, error);

  if (text == NULL)
    return FALSE;
  ks_conversation_add_document (talk->conversation, name, text);
  return TRUE;
}

static double
get_rate (guint n, double seconds)
{
  return seconds > 0 ? n / seconds : 0;
}

static char *
dup_gate_name (CliTalk *talk)
{
  return talk->options->gate_path != NULL ? g_path_get_basename (talk->options->gate_path) : NULL;
}

void
cli_talk_print_facts (CliTalk *talk)
{
  g_autoptr (KsMemoryStats) stats = ks_conversation_dup_stats (talk->conversation);
  KsAnswerInfo answer = ks_conversation_get_answer (talk->conversation);
  g_autofree char *gate_name = dup_gate_name (talk);
  g_autofree char *gate = gate_name != NULL ? cli_dup_printable (gate_name) : NULL;
  g_autofree char *seen = NULL, *kept = NULL, *all = NULL, *used = NULL, *budget = NULL,
                  *weights = NULL, *scratch = NULL;
  guint64 n_stream;

  if (stats == NULL)
    return;
  n_stream = (guint64)stats->kv.n_layer * stats->kv.n_kv_head;
  seen = cli_format_count (stats->kv.seen);
  kept = cli_format_count (stats->kv.n_entries);
  all = cli_format_count (stats->kv.seen * n_stream);
  used = cli_format_bytes (stats->kv.kv_used_bytes);
  budget = cli_format_bytes (stats->kv.kv_budget_bytes);
  weights = cli_format_bytes (stats->kv.weight_bytes);
  scratch = cli_format_bytes (stats->kv.scratch_bytes + stats->kv.gate_bytes);
  fflush (stdout);
  fprintf (stderr,
           "memory: %s tokens read, %s of %s entries kept; keys and values %s of %s; weights %s "
           "(file-backed), scratch and gate %s; policy %s, %s%s; prompt %.0f tokens/s, answer %.1f "
           "tokens/s\n",
           seen, kept, all, used, budget, weights, scratch, ks_policy_get_name (stats->policy),
           gate != NULL ? "gate " : "no gate", gate != NULL ? gate : "",
           get_rate (answer.n_prompt, answer.prompt_s),
           get_rate (answer.n_answer, answer.answer_s));
}

/* Entries by layer [n_layer], by head [n_layer][n_kv_head], by turn and by kind. */
static void
add_entry_counts (cJSON *json, const ks_kv_stats *kv)
{
  cJSON *layers = cJSON_AddArrayToObject (json, "entries_by_layer");
  cJSON *heads = cJSON_AddArrayToObject (json, "entries_by_head");
  cJSON *turns = cJSON_AddArrayToObject (json, "entries_by_turn");
  cJSON *kinds = cJSON_AddObjectToObject (json, "entries_by_modality");

  for (guint layer = 0; layer < kv->n_layer; layer++) {
    cJSON *row = cJSON_CreateArray ();
    double sum = 0;

    for (guint head = 0; head < kv->n_kv_head; head++) {
      guint32 n = kv->by_stream[layer * kv->n_kv_head + head];

      cJSON_AddItemToArray (row, cJSON_CreateNumber (n));
      sum += n;
    }
    cJSON_AddItemToArray (heads, row);
    cJSON_AddItemToArray (layers, cJSON_CreateNumber (sum));
  }
  for (guint turn = 0; turn < kv->n_turn; turn++)
    cJSON_AddItemToArray (turns, cJSON_CreateNumber ((double)kv->by_turn[turn]));
  cJSON_AddNumberToObject (kinds, "text", (double)kv->by_modality[KS_MODALITY_TEXT]);
  cJSON_AddNumberToObject (kinds, "image", (double)kv->by_modality[KS_MODALITY_IMAGE]);
}

static cJSON *
make_memory_json (const KsMemoryStats *stats)
{
  cJSON *json = cJSON_CreateObject ();
  guint64 n_stream = (guint64)stats->kv.n_layer * stats->kv.n_kv_head;
  const struct {
    const char *name;
    double value;
  } numbers[] = {
      {"tokens_seen", stats->kv.seen},
      {"entries", (double)stats->kv.n_entries},
      {"entries_seen", (double)(stats->kv.seen * n_stream)},
      {"entries_allowed", (double)stats->kv.n_keep},
      {"entries_evicted", (double)stats->kv.n_evicted},
      {"entries_per_stream", ks_memory_stats_get_entries_per_stream (stats)},
      {"eviction_runs", (double)stats->kv.n_eviction_runs},
      {"kv_used_bytes", (double)stats->kv.kv_used_bytes},
      {"kv_budget_bytes", (double)stats->kv.kv_budget_bytes},
      {"kv_committed_bytes", (double)stats->kv.kv_committed_bytes},
      {"weight_bytes", (double)stats->kv.weight_bytes},
      {"gate_bytes", (double)stats->kv.gate_bytes},
      {"scratch_bytes", (double)stats->kv.scratch_bytes},
      {"host_bytes", (double)stats->kv.host_bytes},
      {"total_bytes", (double)ks_memory_stats_get_total_bytes (stats)},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++)
    cJSON_AddNumberToObject (json, numbers[i].name, numbers[i].value);
  add_entry_counts (json, &stats->kv);
  return json;
}

cJSON *
cli_talk_make_json (CliTalk *talk)
{
  g_autoptr (KsMemoryStats) stats = ks_conversation_dup_stats (talk->conversation);
  KsAnswerInfo answer = ks_conversation_get_answer (talk->conversation);
  g_autofree char *gate = dup_gate_name (talk);
  cJSON *json = cJSON_CreateObject ();

  cJSON_AddStringToObject (json, "answer", talk->answer->str);
  cJSON_AddStringToObject (json, "end", ks_answer_end_get_name (answer.end));
  cJSON_AddNumberToObject (json, "prompt_tokens", answer.n_prompt);
  cJSON_AddNumberToObject (json, "answer_tokens", answer.n_answer);
  cJSON_AddNumberToObject (json, "prompt_seconds", answer.prompt_s);
  cJSON_AddNumberToObject (json, "answer_seconds", answer.answer_s);
  cJSON_AddStringToObject (json, "model", talk->options->model_path);
  if (gate != NULL)
    cJSON_AddStringToObject (json, "gate", gate);
  else
    cJSON_AddNullToObject (json, "gate");
  if (stats != NULL) {
    cJSON_AddStringToObject (json, "policy", ks_policy_get_name (stats->policy));
    cJSON_AddItemToObject (json, "memory", make_memory_json (stats));
  }
  return json;
}

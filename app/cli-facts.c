/* cli-facts.c - what ask and chat tell about an answer: one line about memory, or JSON.
 * Declared in cli-answer.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-answer.h"
#include "app/cli-session.h"

#include <stdio.h>

static KsMemoryStats *
dup_stats (CliTalk *talk)
{
  KsConversation *conversation = cli_talk_get_conversation (talk);

  return conversation != NULL ? ks_conversation_dup_stats (conversation) : NULL;
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
  g_autoptr (KsMemoryStats) stats = dup_stats (talk);
  KsAnswerInfo answer = cli_talk_get_info (talk);
  g_autofree char *gate_name = dup_gate_name (talk);
  g_autofree char *gate = gate_name != NULL ? cli_dup_printable (gate_name) : NULL;
  g_autofree char *seen = NULL, *kept = NULL, *all = NULL, *used = NULL, *budget = NULL,
                  *weights = NULL, *copy = NULL, *scratch = NULL, *eyes_text = NULL;
  guint64 n_stream;

  if (stats == NULL)
    return;
  n_stream = (guint64)stats->kv.n_layer * stats->kv.n_kv_head;
  seen = cli_format_count (stats->kv.seen);
  kept = cli_format_count (stats->kv.n_entries);
  all = cli_format_count (stats->kv.seen * n_stream);
  used = cli_format_bytes (stats->kv.kv_used_bytes);
  budget = cli_format_bytes (stats->kv.kv_budget_bytes);
  weights = cli_format_bytes (stats->kv.weight_bytes - stats->kv.repacked_bytes);
  copy = cli_format_bytes (stats->kv.repacked_bytes);
  scratch = cli_format_bytes (stats->kv.scratch_bytes + stats->kv.gate_bytes);
  if (stats->eyes_bytes > 0) {
    g_autofree char *eyes = cli_format_bytes (stats->eyes_bytes);
    g_autofree char *pixels = cli_format_bytes (stats->pixel_peak_bytes);

    eyes_text =
        g_strdup_printf (", eyes %s (%u picture%s read, %u encoded; beside the target their "
                         "pixels, %s at most)",
                         eyes, stats->kv.n_picture, stats->kv.n_picture == 1 ? "" : "s",
                         stats->pictures.n_encoded, pixels);
  }
  fflush (stdout);
  fprintf (
      stderr,
      "memory: %s tokens read, %s of %s entries kept; keys and values %s of %s; weights %s "
      "(file-backed), their repacked copy %s, scratch and gate %s%s; policy %s, %s%s; mode %s; "
      "prompt %.0f tokens/s, answer %.1f tokens/s\n",
      seen, kept, all, used, budget, weights, copy, scratch, eyes_text != NULL ? eyes_text : "",
      ks_policy_get_name (stats->policy), gate != NULL ? "gate " : "no gate",
      gate != NULL ? gate : "", cli_get_mode_name (talk->options->mode),
      get_rate (answer.n_prompt, answer.prompt_s), get_rate (answer.n_answer, answer.answer_s));
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

guint
cli_get_turn_number (const GArray *numbers, guint turn)
{
  return numbers != NULL && turn < numbers->len ? g_array_index (numbers, guint, turn) : turn + 1;
}

static void
add_pictures (cJSON *json, const KsMemoryStats *stats, const GArray *numbers)
{
  cJSON *rows = cJSON_AddArrayToObject (json, "pictures");
  double n_stream = (double)stats->kv.n_layer * stats->kv.n_kv_head;

  for (guint i = 0; i < stats->kv.n_picture; i++) {
    const ks_picture_stats *picture = &stats->kv.pictures[i];
    const KsSeenPicture *seen = ks_memory_stats_find_seen (stats, picture);
    double n_all = n_stream * picture->n_tok;
    cJSON *row = cJSON_CreateObject ();

    cJSON_AddItemToArray (rows, row);
    cJSON_AddNumberToObject (row, "turn", cli_get_turn_number (numbers, picture->turn));
    cJSON_AddNumberToObject (row, "picture", picture->attachment);
    cJSON_AddStringToObject (row, "name", seen != NULL ? seen->name : "");
    if (seen != NULL && seen->source == KS_PICTURE_PAGE)
      cJSON_AddNumberToObject (row, "page", seen->index + 1);
    if (seen != NULL && seen->source == KS_PICTURE_PART)
      cJSON_AddNumberToObject (row, "document_picture", seen->index + 1);
    if (seen != NULL && seen->source == KS_PICTURE_FRAME)
      cJSON_AddNumberToObject (row, "frame", seen->index + 1);
    cJSON_AddNumberToObject (row, "tokens", picture->n_tok);
    cJSON_AddNumberToObject (row, "entries", (double)picture->n_entry);
    cJSON_AddNumberToObject (row, "share", n_all > 0 ? (double)picture->n_entry / n_all : 0);
  }
  cJSON_AddNumberToObject (json, "pictures_encoded", stats->pictures.n_encoded);
  cJSON_AddNumberToObject (json, "pictures_from_memory", stats->pictures.n_memory);
  cJSON_AddNumberToObject (json, "pictures_from_disk", stats->pictures.n_disk);
}

/* What stays whatever else is let go. */
static void
add_pins (cJSON *json, const KsMemoryStats *stats, const GArray *numbers)
{
  cJSON *rows = cJSON_AddArrayToObject (json, "pinned");

  for (guint i = 0; stats->pins != NULL && i < stats->pins->len; i++) {
    const KsPin *pin = g_ptr_array_index (stats->pins, i);
    cJSON *row;

    if (pin->refused)
      continue;
    row = cJSON_CreateObject ();
    cJSON_AddItemToArray (rows, row);
    cJSON_AddNumberToObject (row, "turn", cli_get_turn_number (numbers, pin->turn));
    if (pin->hash != NULL)
      cJSON_AddStringToObject (row, "file", pin->hash);
  }
}

cJSON *
cli_make_memory_json (const KsMemoryStats *stats, const GArray *numbers)
{
  cJSON *json = cJSON_CreateObject ();
  guint64 n_stream = (guint64)stats->kv.n_layer * stats->kv.n_kv_head;
  const struct {
    const char *name;
    double value;
  } values[] = {
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
      {"repacked_bytes", (double)stats->kv.repacked_bytes},
      {"gate_bytes", (double)stats->kv.gate_bytes},
      {"scratch_bytes", (double)stats->kv.scratch_bytes},
      {"host_bytes", (double)stats->kv.host_bytes},
      {"eyes_bytes", (double)stats->eyes_bytes},
      {"pixel_bytes", (double)stats->pixel_bytes},
      {"pixel_peak_bytes", (double)stats->pixel_peak_bytes},
      {"total_bytes", (double)ks_memory_stats_get_total_bytes (stats)},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (values); i++)
    cJSON_AddNumberToObject (json, values[i].name, values[i].value);
  add_entry_counts (json, &stats->kv);
  add_pictures (json, stats, numbers);
  add_pins (json, stats, numbers);
  return json;
}

cJSON *
cli_talk_make_json (CliTalk *talk)
{
  g_autoptr (KsMemoryStats) stats = dup_stats (talk);
  KsAnswerInfo answer = cli_talk_get_info (talk);
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
  if (talk->session != NULL)
    cli_session_add_json (talk->session, json);
  if (stats != NULL) {
    cJSON_AddStringToObject (json, "policy", ks_policy_get_name (stats->policy));
    cJSON_AddStringToObject (json, "mode", cli_get_mode_name (talk->options->mode));
    cJSON_AddItemToObject (json, "memory", cli_make_memory_json (stats, NULL));
  }
  return json;
}

/* cli-bench-recall.c - keepsake-cli bench recall: are facts still there after eviction?
 * Each prompt is read in chunks with an eviction around each one; then, in a turn of its own that
 * no policy has seen, one of its facts is asked for.  Greedy answers; right when the value stands
 * in it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench.h"

#include "app/cli-bench-recall-data.h"
#include "app/ks-error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_PROMPTS 10000
#define MAX_ANSWER 256
#define MIN_WORDS 20
#define MAX_WORDS 1800
/* Room for the longest prompt, kept whole, even when a token is hardly more than a letter. */
#define TOKENS_FOR(n_word) ((guint64)(n_word)*8 + 512)

static const char help[] =
    "24 prompts of about 800 tokens are made by a seeded script: 3 to 9 facts among paragraphs "
    "about other\n"
    "things. The question comes after the eviction. The policy 'full' keeps everything and is what "
    "the\n"
    "others are compared with.\n\n"
    "Examples:\n"
    "  keepsake-cli bench recall\n"
    "  keepsake-cli bench recall --entries 64 --policies full,dbtrimkv --prompts 48 --seed 2\n"
    "  keepsake-cli bench recall --show 3 --prompts 3 --policies full\n\n"
    "Exit codes: 0 measured, 1 failed, 2 wrong options, 3 does not fit, 4 not supported, 130 "
    "cancelled.";

typedef struct {
  const CliOptions *options;
  GArray *policies; /* ks_policy */
  int n_prompt, n_word, n_answer, n_show;
  guint64 seed;
  cJSON *results;
  guint n_right_full; /* of the policy full, when it was run */
  gboolean have_full;
} Run;

static gboolean
encode (KsEngineSetup *setup, const ks_chat_message *messages, size_t n, uint32_t options,
        ks_token_list *ids, GError **error)
{
  bool is_fallback = false;
  const ks_chat_template *tmpl = ks_model_get_chat_template (setup->model, &is_fallback);
  ks_error err = {0};

  return ks_error_check (
      ks_chat_encode (tmpl, ks_model_get_tokenizer (setup->model), messages, n, options, ids, &err),
      &err, error);
}

/* Reads the text as a user's turn with a short answer, then the question.  out_n_text gets the
 * tokens of the first part. */
static gboolean
read_prompt (KsEngineSetup *setup, ks_timeline *tl, KsEngineJob *job,
             const BenchRecallPrompt *prompt, guint *out_n_text, GError **error)
{
  static const char reply[] = "I have read it.";
  ks_chat_message first[2] = {
      {.role = KS_ROLE_USER, .text = prompt->text, .n_bytes = strlen (prompt->text)},
      {.role = KS_ROLE_ASSISTANT, .text = reply, .n_bytes = sizeof reply - 1}};
  ks_chat_message second = {
      .role = KS_ROLE_USER, .text = prompt->question, .n_bytes = strlen (prompt->question)};
  ks_token_list text, question;
  gboolean ok;

  ks_token_list_init (&text, setup->alloc);
  ks_token_list_init (&question, setup->alloc);
  ok = encode (setup, first, 2, KS_CHAT_FIRST, &text, error) &&
       encode (setup, &second, 1, KS_CHAT_GENERATE, &question, error);
  ks_timeline_set_turn (tl, 0, 0);
  ok = ok && cli_bench_eval (tl, job, text.ids, (guint32)text.n, NULL, error);
  ks_timeline_set_turn (tl, 1, 0);
  ok = ok && cli_bench_eval (tl, job, question.ids, (guint32)question.n, NULL, error);
  *out_n_text = (guint)text.n;
  ks_token_list_done (&text);
  ks_token_list_done (&question);
  return ok;
}

static gboolean
run_prompt (Run *run, KsEngineSetup *setup, ks_timeline *tl, KsEngineJob *job, guint index,
            ks_policy policy, cJSON *items, gboolean *out_right, GError **error)
{
  g_autoptr (BenchRecallPrompt) prompt =
      bench_recall_prompt_new (run->seed, index, (guint)run->n_word);
  g_autofree char *text = NULL;
  guint n_text = 0;
  cJSON *item;

  ks_timeline_reset (tl);
  if (!read_prompt (setup, tl, job, prompt, &n_text, error))
    return FALSE;
  text = cli_bench_answer (setup, tl, job, (guint)run->n_answer, NULL, error);
  if (text == NULL)
    return FALSE;
  *out_right = bench_recall_is_right (text, prompt->value);
  item = cJSON_CreateObject ();
  cJSON_AddNumberToObject (item, "index", index);
  cJSON_AddNumberToObject (item, "tokens", n_text);
  cJSON_AddNumberToObject (item, "facts", prompt->n_fact);
  cJSON_AddNumberToObject (item, "asked", prompt->fact_at);
  cJSON_AddStringToObject (item, "question", prompt->question);
  cJSON_AddStringToObject (item, "value", prompt->value);
  cJSON_AddStringToObject (item, "answer", text);
  cJSON_AddBoolToObject (item, "right", *out_right);
  cJSON_AddItemToArray (items, item);
  if ((int)index < run->n_show && !run->options->json) {
    cli_bench_show_progress (NULL);
    printf ("%s, prompt %u, %u tokens, fact %u of %u\n  asked:  %s\n  right:  %s\n  answer: ",
            ks_policy_get_name (policy), index, n_text, prompt->fact_at + 1, prompt->n_fact,
            prompt->question, prompt->value);
    cli_print_text (text);
    putchar ('\n');
  }
  return TRUE;
}

static ks_timeline *
make_timeline (Run *run, KsEngineSetup *setup, ks_policy policy, GError **error)
{
  ks_timeline_params params = ks_engine_setup_get_timeline_params (setup);
  const CliOptions *options = run->options;
  ks_timeline *tl = NULL;
  ks_error err = {0};

  params.evict = ks_engine_setup_make_evict_params (setup, policy);
  params.n_keep = policy == KS_POLICY_FULL ? 0
                                           : (uint64_t)options->entries * setup->layout.n_layer *
                                                 setup->layout.n_kv_head;
  if (!ks_error_check (ks_timeline_new (setup->alloc, &params, &tl, &err), &err, error))
    return NULL;
  return tl;
}

static void
add_result (Run *run, ks_policy policy, guint n_right, cJSON *take_items)
{
  cJSON *json = cJSON_CreateObject ();
  double rate = (double)n_right / run->n_prompt;

  if (policy == KS_POLICY_FULL) {
    run->have_full = TRUE;
    run->n_right_full = n_right;
  }
  cJSON_AddStringToObject (json, "policy", ks_policy_get_name (policy));
  cJSON_AddNumberToObject (json, "right", n_right);
  cJSON_AddNumberToObject (json, "asked", run->n_prompt);
  cJSON_AddNumberToObject (json, "rate", rate);
  cJSON_AddNumberToObject (json, "standard_error", sqrt (rate * (1 - rate) / run->n_prompt));
  if (run->have_full && run->n_right_full > 0)
    cJSON_AddNumberToObject (json, "ratio_to_full", (double)n_right / run->n_right_full);
  else
    cJSON_AddNullToObject (json, "ratio_to_full");
  cJSON_AddItemToObject (json, "items", take_items);
  cJSON_AddItemToArray (run->results, json);
}

static void
print_row (Run *run, const cJSON *json)
{
  const cJSON *ratio = cJSON_GetObjectItem (json, "ratio_to_full");

  if (cJSON_GetArraySize (run->results) == 1)
    printf ("%-16s %8s %8s %9s %8s\n", "policy", "right", "of", "rate", "to full");
  printf ("%-16s %8d %8d %8.1f%% ", cJSON_GetObjectItem (json, "policy")->valuestring,
          cJSON_GetObjectItem (json, "right")->valueint,
          cJSON_GetObjectItem (json, "asked")->valueint,
          100 * cJSON_GetObjectItem (json, "rate")->valuedouble);
  if (cJSON_IsNumber (ratio))
    printf ("%8.2f\n", ratio->valuedouble);
  else
    printf ("%8s\n", "-");
  fflush (stdout);
}

static gboolean
run_policy (Run *run, KsEngineSetup *setup, KsEngineJob *job, ks_policy policy, GError **error)
{
  ks_timeline *tl = make_timeline (run, setup, policy, error);
  cJSON *items;
  guint n_right = 0;
  gboolean ok = tl != NULL;

  if (!ok)
    return FALSE;
  items = cJSON_CreateArray ();
  for (guint i = 0; ok && i < (guint)run->n_prompt; i++) {
    g_autofree char *text =
        g_strdup_printf ("%s: prompt %u of %d, %u right so far", ks_policy_get_name (policy), i + 1,
                         run->n_prompt, n_right);
    gboolean right = FALSE;

    cli_bench_show_progress (text);
    ok = run_prompt (run, setup, tl, job, i, policy, items, &right, error);
    n_right += right;
  }
  cli_bench_show_progress (NULL);
  ks_timeline_free (tl);
  if (!ok) {
    cJSON_Delete (items);
    return FALSE;
  }
  add_result (run, policy, n_right, items);
  if (!run->options->json)
    print_row (run, cJSON_GetArrayItem (run->results, cJSON_GetArraySize (run->results) - 1));
  return TRUE;
}

static gboolean
recall_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  gboolean ok = TRUE;
  cJSON *json;

  run->results = cJSON_CreateArray ();
  for (guint i = 0; ok && i < run->policies->len; i++) {
    ks_policy policy = g_array_index (run->policies, ks_policy, i);

    if (ks_policy_needs_gate (policy) && setup->gate == NULL)
      cli_print_notice ("A policy that needs a retention gate is left out: the model has none.");
    else if (ks_timeline_check_policy (policy, setup->gate, NULL) != KS_OK)
      cli_print_notice ("A policy that needs another kind of gate is left out.");
    else
      ok = run_policy (run, setup, job, policy, error);
  }
  if (ok && run->options->json) {
    json = cli_bench_make_header (setup, "recall");
    cJSON_AddNumberToObject (json, "entries_per_stream", run->options->entries);
    cJSON_AddNumberToObject (json, "chunk", setup->plan.chunk);
    cJSON_AddNumberToObject (json, "seed", (double)run->seed);
    cJSON_AddItemToObject (json, "policies", g_steal_pointer (&run->results));
    cli_print_json (json);
  }
  cJSON_Delete (run->results);
  return ok;
}

static GArray *
parse_policies (const char *text, GError **error)
{
  g_autoptr (GArray) policies = g_array_new (FALSE, FALSE, sizeof (ks_policy));
  g_auto (GStrv) names = g_strsplit (text, ",", -1);

  for (guint i = 0; names[i] != NULL; i++) {
    ks_policy policy;

    if (!ks_policy_parse (g_strstrip (names[i]), &policy)) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "there is no policy '%s'", names[i]);
      return NULL;
    }
    g_array_append_val (policies, policy);
  }
  return g_steal_pointer (&policies);
}

static int
run_command (Run *run, CliOptions *options, const char *policies)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) engine_options = NULL;
  int code;

  if (options->entries == CLI_UNSET)
    options->entries = 128;
  run->policies = parse_policies (policies, &error);
  engine_options = run->policies != NULL ? cli_options_make_engine (options, &error) : NULL;
  if (engine_options != NULL) {
    /* One pool for all of them, large enough for the policy that keeps everything. */
    engine_options->budget =
        (ks_budget_request){.entries = MAX (TOKENS_FOR (run->n_word), (guint64)options->entries)};
    engine_options->policy = KS_POLICY_FULL;
    for (guint i = 0; i < run->policies->len; i++)
      engine_options->n_aux = MAX (
          engine_options->n_aux, ks_policy_get_n_aux (g_array_index (run->policies, ks_policy, i)));
    code = cli_bench_run (engine_options, recall_job, run);
  } else {
    code = cli_fail (error);
  }
  g_clear_pointer (&run->policies, g_array_unref);
  return code;
}

int
cli_bench_recall_main (char **args)
{
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  g_autofree char *policies = NULL;
  gint64 seed = 1;
  Run run = {.options = &options, .n_prompt = 24, .n_word = 550, .n_answer = 32};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"policies", 0, 0, G_OPTION_ARG_STRING, &policies,
       "what to compare (default full,dbtrimkv,streaming,keydiff,random)", "LIST"},
      {"prompts", 0, 0, G_OPTION_ARG_INT, &run.n_prompt, "number of prompts (default 24)", "N"},
      {"words", 0, 0, G_OPTION_ARG_INT, &run.n_word, "length of a prompt (default 550)", "N"},
      {"answer-tokens", 0, 0, G_OPTION_ARG_INT, &run.n_answer, "longest answer (default 32)", "N"},
      {"seed", 0, 0, G_OPTION_ARG_INT64, &seed, "another seed, other prompts (default 1)", "N"},
      {"show", 0, 0, G_OPTION_ARG_INT, &run.n_show, "print the first N questions and answers", "N"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  options.is_check = TRUE;
  if (!cli_options_parse_check (&options, entries, TRUE,
                                "Asks for facts that stood in other text, policy by policy.", help,
                                &rest, &code))
    return code;
  if (run.n_prompt < 1 || run.n_prompt > MAX_PROMPTS || run.n_word < MIN_WORDS ||
      run.n_word > MAX_WORDS || run.n_answer < 1 || run.n_answer > MAX_ANSWER || rest[1] != NULL)
    return cli_usage (
        "--prompts, --words or --answer-tokens is out of range: see keepsake-cli bench "
        "recall --help");
  if (options.budget != NULL || options.kv_budget != NULL || options.policy.name != NULL ||
      options.keep_everything)
    return cli_usage ("recall compares policies at --entries M; choose them with --policies");
  run.seed = (guint64)seed;
  return run_command (&run, &options,
                      policies != NULL ? policies : "full,dbtrimkv,streaming,keydiff,random");
}

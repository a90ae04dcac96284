/* cli-inspect-kept.c - keepsake-cli inspect vision --visionzip and --fastv: which tokens of a
 * picture are kept, by their places.  VisionZip chooses in the tower alone; FastV in the language
 * model, so that one runs as it would for a question, with room for everything in one pass. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-inspect-vision.h"

#include "app/cli-common.h"
#include "app/ks-conversation.h"
#include "app/ks-error.h"

#include <stdio.h>

#define ROOM_FOR_TEXT 1024u /* tokens beside the picture's */
#define CELL_OUT '.'
#define CELL_KEPT '#'
#define CELL_MERGED '+'

/* --- FastV --- */

static KsEngineOptions *
make_options (const CliVision *run)
{
  KsEngineOptions *options = ks_engine_options_new ();
  guint room = run->plan.n_tok + ROOM_FOR_TEXT;

  options->model_path = g_strdup (run->model);
  options->mmproj_path = g_strdup (run->mmproj);
  options->isa = g_strdup (run->options->isa);
  options->vision_limits = run->limits;
  options->vision_zip = run->zip;
  options->fastv = run->fastv;
  options->mode = run->mode;
  options->n_thread = run->n_thread;
  options->policy = KS_POLICY_FULL;
  options->budget = (ks_budget_request){.entries = room};
  options->chunk = room; /* the prompt is one pass, as published */
  return options;
}

/* Waits for job, which is let go of. */
static gboolean
finish (KsEngineJob *take_job, GError **error)
{
  g_autoptr (KsEngineJob) job = take_job;

  return cli_wait (job, error);
}

gboolean
cli_vision_run_fastv (CliVision *run, GError **error)
{
  g_autoptr (KsEngineOptions) options = make_options (run);
  g_autoptr (KsAnswerOptions) answers = ks_answer_options_new ();
  g_autoptr (KsEngine) engine = ks_engine_new ();
  g_autoptr (KsConversation) conversation = NULL;
  KsPicture *picture;

  answers->sampler.temperature = 0;
  answers->max_tokens = 1;
  if (!finish (ks_engine_load (engine, options), error))
    return FALSE;
  conversation = ks_conversation_new (engine);
  picture = ks_picture_new_from_file (run->images[0], NULL, error);
  if (picture == NULL)
    return FALSE;
  ks_conversation_add_picture (conversation, picture);
  run->trace = ks_picture_trace_new ();
  return finish (ks_conversation_ask (conversation, run->prompt, answers), error) &&
         finish (ks_conversation_trace (conversation, 0, 1, run->trace), error);
}

/* --- places --- */

/* A map of n_row x n_col places, all of them left out. */
static char *
make_map (guint n_row, guint n_col)
{
  char *map = g_malloc ((gsize)n_row * n_col + 1);

  memset (map, CELL_OUT, (gsize)n_row * n_col);
  map[(gsize)n_row * n_col] = '\0';
  return map;
}

/* Of a view of the picture. */
static char *
make_zip_map (const CliVision *run, guint view)
{
  const ks_vision_embeds *e = &run->embeds;
  guint n_row = run->plan.grid_rows, n_col = run->plan.grid_cols;
  guint n_kept = e->n_tok / run->plan.n_view, first = 0;
  char *map = make_map (n_row, n_col);

  if (e->places == NULL) { /* a view of fewer tokens is left as it is */
    memset (map, CELL_KEPT, (gsize)n_row * n_col);
    return map;
  }
  /* The class token, which has no place, is the first where there is one. */
  if (run->prep.family == KS_VISION_LLAVA)
    first = 1;
  for (guint i = first; i < n_kept; i++)
    map[e->places[view * n_kept + i]] = i < run->zip.n_dominant ? CELL_KEPT : CELL_MERGED;
  return map;
}

/* What the heads of the first layer behind FastV's still have. */
static char *
make_fastv_map (const CliVision *run, const GArray *entries, guint n_row, guint n_col)
{
  char *map = make_map (n_row, n_col);

  for (guint i = 0; i < entries->len; i++) {
    const KsTraceEntry *entry = &g_array_index (entries, KsTraceEntry, i);

    if (entry->layer == run->fastv.layer && entry->head == 0)
      map[(gsize)entry->row * n_col + entry->col] = CELL_KEPT;
  }
  return map;
}

static void
add_places (cJSON *json, const char *name, const char *map, guint n_col, char cell)
{
  cJSON *list = cJSON_AddArrayToObject (json, name);

  for (guint i = 0; map[i] != '\0'; i++)
    if (map[i] == cell) {
      const int place[] = {(int)(i / n_col), (int)(i % n_col)};

      cJSON_AddItemToArray (list, cJSON_CreateIntArray (place, 2));
    }
}

static void
print_map (const char *map, guint n_col)
{
  for (guint i = 0; map[i] != '\0'; i += n_col)
    printf ("  %.*s\n", (int)n_col, map + i);
}

/* --- results --- */

static void
add_zip (cJSON *json, const CliVision *run)
{
  cJSON *zip = cJSON_AddObjectToObject (json, "visionzip"), *views;

  cJSON_AddNumberToObject (zip, "n_tokens", run->embeds.n_tok);
  cJSON_AddBoolToObject (zip, "class_token",
                         run->prep.family == KS_VISION_LLAVA && run->embeds.places != NULL);
  views = cJSON_AddArrayToObject (zip, "views");
  for (guint i = 0; i < run->plan.n_view; i++) {
    g_autofree char *map = make_zip_map (run, i);
    cJSON *view = cJSON_CreateObject ();

    add_places (view, "kept", map, run->plan.grid_cols, CELL_KEPT);
    add_places (view, "merged", map, run->plan.grid_cols, CELL_MERGED);
    cJSON_AddItemToArray (views, view);
  }
}

static void
add_fastv (cJSON *json, const CliVision *run)
{
  const KsPictureTrace *trace = run->trace;
  cJSON *fastv = cJSON_AddObjectToObject (json, "fastv");
  g_autofree char *map = make_fastv_map (run, trace->entries, trace->n_row, trace->n_col);
  g_autofree char *overview =
      make_fastv_map (run, trace->overview, trace->overview_rows, trace->overview_cols);

  cJSON_AddNumberToObject (fastv, "layer", run->fastv.layer);
  cJSON_AddNumberToObject (fastv, "part", run->fastv.drop);
  cJSON_AddNumberToObject (fastv, "rows", trace->n_row);
  cJSON_AddNumberToObject (fastv, "cols", trace->n_col);
  add_places (fastv, "kept", map, MAX (trace->n_col, 1), CELL_KEPT);
  add_places (fastv, "kept_of_overview", overview, MAX (trace->overview_cols, 1), CELL_KEPT);
}

void
cli_vision_add_kept (cJSON *json, const CliVision *run)
{
  if (run->zip.n_dominant > 0 && run->embeds.n_tok > 0)
    add_zip (json, run);
  if (run->trace != NULL)
    add_fastv (json, run);
}

static void
print_zip (const CliVision *run)
{
  printf ("%-14s %u of %u tokens: %c kept, %c takes others in, %c left out\n", "VisionZip",
          run->embeds.n_tok, run->plan.n_tok, CELL_KEPT, CELL_MERGED, CELL_OUT);
  for (guint i = 0; i < run->plan.n_view; i++) {
    g_autofree char *map = make_zip_map (run, i);

    if (run->plan.n_view > 1)
      printf ("  view %u\n", i + 1);
    print_map (map, run->plan.grid_cols);
  }
}

static void
print_fastv (const CliVision *run)
{
  const KsPictureTrace *trace = run->trace;
  g_autofree char *map = make_fastv_map (run, trace->entries, trace->n_row, trace->n_col);
  g_autofree char *overview =
      make_fastv_map (run, trace->overview, trace->overview_rows, trace->overview_cols);

  printf ("%-14s from layer %u on: %c kept, %c left out\n", "FastV", run->fastv.layer, CELL_KEPT,
          CELL_OUT);
  print_map (map, MAX (trace->n_col, 1));
  if (trace->overview_rows > 0) {
    printf ("  overview\n");
    print_map (overview, trace->overview_cols);
  }
}

void
cli_vision_print_kept (const CliVision *run)
{
  if (run->zip.n_dominant > 0 && run->embeds.n_tok > 0)
    print_zip (run);
  if (run->trace != NULL)
    print_fastv (run);
}

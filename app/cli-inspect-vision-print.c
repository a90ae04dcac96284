/* cli-inspect-vision-print.c - the result of keepsake-cli inspect vision as text and as JSON. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-inspect-vision.h"

#include "app/cli-common.h"

#include <math.h>
#include <stdio.h>

static const char *
get_filter_name (ks_resample filter)
{
  switch (filter) {
  case KS_RESAMPLE_BILINEAR:
    return "bilinear";
  case KS_RESAMPLE_BICUBIC:
    return "bicubic";
  case KS_RESAMPLE_LANCZOS:
    return "lanczos";
  }
  return "?";
}

static void
add_pair (cJSON *json, const char *name, const char *a, guint64 value_a, const char *b,
          guint64 value_b)
{
  cJSON *pair = cJSON_AddObjectToObject (json, name);

  cJSON_AddNumberToObject (pair, a, (double)value_a);
  cJSON_AddNumberToObject (pair, b, (double)value_b);
}

static void
add_channels (cJSON *json, const char *name, const float values[3])
{
  cJSON *array = cJSON_AddArrayToObject (json, name);

  for (guint i = 0; i < 3; i++)
    cJSON_AddItemToArray (array, cJSON_CreateNumber ((double)values[i]));
}

static void
add_rule (cJSON *json, const CliVision *run)
{
  const ks_vision_prep *prep = &run->prep;
  cJSON *rule = cJSON_AddObjectToObject (json, "rule");

  cJSON_AddNumberToObject (rule, "patch", prep->patch);
  cJSON_AddNumberToObject (rule, "merge", prep->merge);
  if (prep->tile > 0)
    cJSON_AddNumberToObject (rule, "tile", prep->tile);
  if (prep->longest > 0)
    cJSON_AddNumberToObject (rule, "longest", prep->longest);
  if (ks_vision_family_is_free_size (prep->family)) {
    cJSON_AddNumberToObject (rule, "min_pixels", (double)prep->min_pixels);
    cJSON_AddNumberToObject (rule, "max_pixels", (double)prep->max_pixels);
  }
  cJSON_AddStringToObject (rule, "filter", get_filter_name (prep->filter));
  add_channels (rule, "mean", prep->mean);
  add_channels (rule, "std", prep->std);
}

/* Row, column and first token of each view; the overview has no place. */
static void
add_views (cJSON *json, const ks_vision_plan *plan)
{
  cJSON *views = cJSON_AddArrayToObject (json, "views");

  for (guint i = 0; i < plan->n_view; i++) {
    cJSON *view = cJSON_CreateObject ();
    gboolean is_overview = plan->has_overview && i == plan->n_view - 1;

    cJSON_AddBoolToObject (view, "overview", is_overview);
    if (!is_overview) {
      cJSON_AddNumberToObject (view, "row", i / plan->tile_cols);
      cJSON_AddNumberToObject (view, "col", i % plan->tile_cols);
    }
    cJSON_AddNumberToObject (view, "first_token", (double)i * plan->grid_rows * plan->grid_cols);
    cJSON_AddItemToArray (views, view);
  }
}

static void
add_plan (cJSON *json, const ks_vision_plan *plan)
{
  cJSON *tiles;

  add_pair (json, "source", "width", plan->width, "height", plan->height);
  add_pair (json, "resized", "width", plan->resized_width, "height", plan->resized_height);
  tiles = cJSON_AddObjectToObject (json, "tiles");
  cJSON_AddNumberToObject (tiles, "rows", plan->tile_rows);
  cJSON_AddNumberToObject (tiles, "cols", plan->tile_cols);
  cJSON_AddBoolToObject (tiles, "overview", plan->has_overview);
  add_pair (json, "view", "width", plan->view_width, "height", plan->view_height);
  add_pair (json, "grid", "rows", plan->grid_rows, "cols", plan->grid_cols);
  add_views (json, plan);
  cJSON_AddNumberToObject (json, "n_tokens", plan->n_tok);
}

static void
add_positions (cJSON *json, const CliVision *run)
{
  const gint32 *position = (const gint32 *)run->positions->data;
  guint n_tok = run->plan.n_tok, n_axis = n_tok > 0 ? run->positions->len / n_tok : 0;
  cJSON *positions = cJSON_AddObjectToObject (json, "positions");
  cJSON *ids = cJSON_AddArrayToObject (positions, "ids");
  guint next = n_axis == 1 ? n_tok : MAX (run->plan.grid_rows, run->plan.grid_cols);

  cJSON_AddStringToObject (positions, "kind",
                           n_axis == 1 ? "one after the other" : "time, row, column");
  cJSON_AddNumberToObject (positions, "next", next);
  for (guint axis = 0; axis < n_axis; axis++) {
    cJSON *row = n_axis == 1 ? ids : cJSON_CreateArray ();

    for (guint i = 0; i < n_tok; i++)
      cJSON_AddItemToArray (row, cJSON_CreateNumber (position[axis * n_tok + i]));
    if (row != ids)
      cJSON_AddItemToArray (ids, row);
  }
}

static void
add_sums (cJSON *json, const char *name, const CliVisionSums *sums, const guint64 *shape,
          guint n_dim)
{
  cJSON *object, *dims;
  double n = (double)MAX (sums->n, 1);

  if (sums->n == 0)
    return;
  object = cJSON_AddObjectToObject (json, name);
  dims = cJSON_AddArrayToObject (object, "shape");
  for (guint i = 0; i < n_dim; i++)
    cJSON_AddItemToArray (dims, cJSON_CreateNumber ((double)shape[i]));
  cJSON_AddNumberToObject (object, "mean", sums->sum / n);
  cJSON_AddNumberToObject (object, "rms", sqrt (sums->sum_of_squares / n));
  cJSON_AddNumberToObject (object, "min", (double)sums->min);
  cJSON_AddNumberToObject (object, "max", (double)sums->max);
}

static void
add_arrays (cJSON *json, const CliVision *run)
{
  const ks_vision_plan *plan = &run->plan;
  guint n_view = ks_vision_family_is_free_size (run->prep.family) ? run->n_frame : plan->n_view;
  guint n_patch = plan->grid_rows * plan->grid_cols * run->prep.merge * run->prep.merge;
  guint64 pixels[] = {n_view, 3, plan->view_height, plan->view_width};
  guint64 tower[] = {plan->n_view, n_patch, run->n_tower_col};
  guint64 embeds[] = {run->embeds.n_deep, run->embeds.n_tok, run->embeds.n_embd};

  add_sums (json, "pixels", &run->pixels, pixels, G_N_ELEMENTS (pixels));
  add_sums (json, "vision_tower", &run->tower_sums, tower, G_N_ELEMENTS (tower));
  add_sums (json, "projector", &run->projector, embeds + 1, 2);
  add_sums (json, "deepstack", &run->deepstack, embeds, G_N_ELEMENTS (embeds));
}

static void
add_costs (cJSON *json, const CliVision *run)
{
  cJSON *seconds = cJSON_AddObjectToObject (json, "seconds");
  cJSON *memory = cJSON_AddObjectToObject (json, "memory");

  cJSON_AddNumberToObject (seconds, "prepare", run->prepare_s);
  if (run->vision != NULL) {
    cJSON_AddNumberToObject (seconds, "load", run->load_s);
    cJSON_AddNumberToObject (seconds, "encode", run->encode_s);
    cJSON_AddNumberToObject (memory, "weight_bytes",
                             (double)ks_vision_get_weight_bytes (run->vision));
    cJSON_AddNumberToObject (memory, "scratch_bytes", (double)run->scratch_bytes);
  }
  cJSON_AddNumberToObject (memory, "peak_vision_bytes",
                           (double)ks_alloc_get_peak_bytes (run->alloc, KS_MEM_VISION));
  cJSON_AddNumberToObject (memory, "peak_scratch_bytes",
                           (double)ks_alloc_get_peak_bytes (run->alloc, KS_MEM_SCRATCH));
}

static void
print_json (const CliVision *run, cJSON *take_arrays)
{
  cJSON *json = cJSON_CreateObject (), *images;

  cJSON_AddStringToObject (json, "mmproj", run->mmproj);
  images = cJSON_AddArrayToObject (json, "images");
  for (guint i = 0; run->images[i] != NULL; i++)
    cJSON_AddItemToArray (images, cJSON_CreateString (run->images[i]));
  cJSON_AddStringToObject (json, "projector_type", ks_vision_family_get_name (run->prep.family));
  cJSON_AddStringToObject (json, "mode", cli_get_mode_name (run->mode));
  add_rule (json, run);
  add_plan (json, &run->plan);
  add_positions (json, run);
  add_arrays (json, run);
  add_costs (json, run);
  cli_vision_add_kept (json, run);
  if (take_arrays != NULL) {
    cJSON_AddStringToObject (json, "file", run->dump_path);
    cJSON_AddItemToObject (json, "arrays", take_arrays);
  }
  cli_print_json (json);
}

static void
print_sums (const char *name, const CliVisionSums *sums)
{
  if (sums->n > 0)
    printf ("%-14s mean %.5f, rms %.5f, from %.5f to %.5f\n", name, sums->sum / (double)sums->n,
            sqrt (sums->sum_of_squares / (double)sums->n), (double)sums->min, (double)sums->max);
}

static void
print_text (const CliVision *run)
{
  const ks_vision_plan *plan = &run->plan;
  g_autofree char *peak = cli_format_bytes (ks_alloc_get_peak_bytes (run->alloc, KS_MEM_VISION) +
                                            ks_alloc_get_peak_bytes (run->alloc, KS_MEM_SCRATCH));

  printf ("%-14s %s, patches of %u pixels, %u x %u of them a token, %s\n", "tower",
          ks_vision_family_get_name (run->prep.family), run->prep.patch, run->prep.merge,
          run->prep.merge, get_filter_name (run->prep.filter));
  printf ("%-14s %u x %u pixels, resized to %u x %u\n", "picture", plan->width, plan->height,
          plan->resized_width, plan->resized_height);
  if (plan->n_view > 1)
    printf ("%-14s %u rows of %u, %u x %u pixels each%s\n", "tiles", plan->tile_rows,
            plan->tile_cols, plan->view_width, plan->view_height,
            plan->has_overview ? ", and the whole picture once more" : "");
  printf ("%-14s %u (%u x %u in each of %u views)\n", "tokens", plan->n_tok, plan->grid_rows,
          plan->grid_cols, plan->n_view);
  print_sums ("pixels", &run->pixels);
  print_sums ("tower output", &run->tower_sums);
  print_sums ("projector", &run->projector);
  print_sums ("deepstack", &run->deepstack);
  printf ("%-14s %.3f s to prepare", "time", run->prepare_s);
  if (run->vision != NULL)
    printf (", %.3f s to load, %.3f s to encode", run->load_s, run->encode_s);
  printf ("\n%-14s %s at most, beside the weights\n", "memory", peak);
  cli_vision_print_kept (run);
}

void
cli_vision_print (const CliVision *run, cJSON *take_arrays)
{
  if (run->options->json) {
    print_json (run, take_arrays);
    return;
  }
  cJSON_Delete (take_arrays);
  print_text (run);
}

/* cli-inspect-vision.c - keepsake-cli inspect vision: what a vision tower makes of a picture, step
 * by step: size rule, tiles, pixels, tower, projector, positions.  The file of the picture is read
 * in the decoder worker; the tower runs alone, without a language model. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-inspect-vision.h"

#include "app/cli-inspect.h"
#include "app/ks-error.h"
#include "media/ks-media.h"

#include <string.h>

#define MAX_FRAMES 2u
#define LARGEST_SIDE_PX 8192 /* what the decoder worker hands out at most */
#define PATCHES_AT_ONCE 64u

static const char help[] =
    "The JSON holds the size rule, tiles, number of tokens, positions of the tokens after the\n"
    "picture's first, and sums over pixels, tower and projector. With --dump the arrays "
    "themselves\n"
    "are written as raw little-endian f32 and i32:\n"
    "  pixel_values   what the tower takes: [view, 3, height, width]; for the Qwen families\n"
    "                 [patch, 3 * 2 * side * side], rows in merge blocks, columns (channel, frame, "
    "y, x)\n"
    "  chw            Qwen only: the resized picture [frame, 3, height, width]\n"
    "  vision_tower   [view, patch, n_embd], in rows of the picture, for Qwen in merge blocks\n"
    "  projector      [token, n_embd], view by view; deepstack [layer, token, n_embd]\n"
    "  position_ids   [3, token] (time, row, column) where the model has such positions, else "
    "[token]\n"
    "With --visionzip and --fastv the places (row, column) of the tokens that stay are shown as "
    "well.\n\n"
    "Examples:\n"
    "  keepsake-cli inspect vision --mmproj mmproj.gguf --image photo.jpg\n"
    "  keepsake-cli inspect vision --mmproj mmproj.gguf --image photo.jpg --pixels-only --json\n"
    "  keepsake-cli inspect vision --mmproj mmproj.gguf --image a.png --image b.png --dump out.bin "
    "--json\n"
    "  keepsake-cli inspect vision --mmproj mmproj.gguf --image photo.jpg --visionzip 54,10\n"
    "  keepsake-cli inspect vision --mmproj mmproj.gguf --image photo.jpg --model model.gguf "
    "--fastv 2,0.5\n\n"
    "Two pictures are two frames of a video, for models that take pairs.\n\n"
    "Exit codes: 0 done, 1 missing or damaged, 2 wrong options or a shape that the model refuses,\n"
    "3 no memory, 4 not supported, 130 cancelled.";

/* --- the picture --- */

static GBytes *
load_frame (const char *path, ks_rgb *out, GError **error)
{
  g_autofree char *name = g_filename_display_basename (path);
  KsMediaOptions options = {.max_side_px = LARGEST_SIDE_PX};
  g_autoptr (KsMediaResult) result = ks_media_load (path, &options, NULL, error);
  guint8 *rgb;
  gsize n;

  if (result == NULL)
    return NULL;
  if (result->kind != KS_MEDIA_IMAGE || result->pixels == NULL) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "%s is no picture", name);
    return NULL;
  }
  if (result->warning != NULL)
    cli_print_notice (result->warning);
  out->width = ks_pixels_get_width (result->pixels);
  out->height = ks_pixels_get_height (result->pixels);
  n = (gsize)out->width * out->height;
  rgb = g_malloc (n * 3);
  ks_rgb_from_rgba (g_bytes_get_data (ks_pixels_get_bytes (result->pixels), NULL), n, rgb);
  out->data = rgb;
  return g_bytes_new_take (rgb, n * 3);
}

static gboolean
load_frames (CliVision *run, GError **error)
{
  run->bytes = g_ptr_array_new_with_free_func ((GDestroyNotify)g_bytes_unref);
  for (guint i = 0; run->images[i] != NULL; i++) {
    GBytes *bytes = load_frame (run->images[i], &run->frames[i], error);

    if (bytes == NULL)
      return FALSE;
    g_ptr_array_add (run->bytes, bytes);
    run->n_frame++;
  }
  return TRUE;
}

/* --- steps, on the engine thread --- */

static gboolean
prepare (CliVision *run, GError **error)
{
  ks_gguf *g = NULL;
  ks_error err = {0};
  gint64 begin_us;
  ks_status st = ks_gguf_open (run->alloc, run->mmproj, &g, &err);

  if (st == KS_OK)
    st = ks_vision_prep_read (g, &run->prep, &err);
  ks_gguf_close (g);
  if (st != KS_OK)
    ks_fail_prefix (&err, st, run->mmproj);
  if (st == KS_OK)
    st = ks_vision_plan_picture (&run->prep, &run->limits, run->frames[0].width,
                                 run->frames[0].height, &run->plan, &err);
  begin_us = g_get_monotonic_time ();
  if (st == KS_OK)
    st = ks_vision_input_new (run->alloc, &run->prep, &run->plan, run->frames, run->n_frame,
                              &run->in, &err);
  run->prepare_s = (double)(g_get_monotonic_time () - begin_us) / 1e6;
  return ks_error_check (st, &err, error);
}

static bool
stop_cb (void *user)
{
  return ks_engine_job_is_cancelled (((CliVision *)user)->job);
}

static void
tower_cb (void *user, uint32_t view, const float *rows, uint32_t n_row, uint32_t n_col)
{
  CliVision *run = user;

  (void)view; /* they come one after the other */
  run->n_tower_col = n_col;
  g_array_append_vals (run->tower, rows, n_row * n_col);
}

static gboolean
encode (CliVision *run, GError **error)
{
  ks_dev_params params = {
      .alloc = run->alloc, .n_thread = run->n_thread, .mode = run->mode, .isa = run->options->isa};
  ks_vision_hooks hooks = {.stop = stop_cb, .tap = tower_cb, .user = run};
  ks_error err = {0};
  gint64 begin_us = g_get_monotonic_time (), loaded_us;
  ks_status st = ks_backend_open ("cpu", &params, &run->be, &err);

  if (st == KS_OK)
    st = ks_vision_open (run->alloc, run->mmproj, &run->be, &run->vision, &err);
  if (st != KS_OK)
    return ks_error_check (st, &err, error);
  ks_vision_set_zip (run->vision, &run->zip);
  loaded_us = g_get_monotonic_time ();
  run->load_s = (double)(loaded_us - begin_us) / 1e6;
  run->scratch_bytes = ks_vision_count_scratch_bytes (run->vision, &run->plan);
  st = ks_vision_encode (run->vision, run->in, &hooks, &run->embeds, &err);
  run->encode_s = (double)(g_get_monotonic_time () - loaded_us) / 1e6;
  return ks_error_check (st, &err, error);
}

/* --- arrays --- */

static void
add_values (CliVisionSums *sums, const float *values, gsize n)
{
  for (gsize i = 0; i < n; i++) {
    sums->min = sums->n == 0 ? values[i] : MIN (sums->min, values[i]);
    sums->max = sums->n == 0 ? values[i] : MAX (sums->max, values[i]);
    sums->sum += (double)values[i];
    sums->sum_of_squares += (double)values[i] * (double)values[i];
    sums->n++;
  }
}

/* Every view, planar. */
static void
put_pixels (CliVision *run)
{
  const ks_vision_plan *plan = &run->plan;
  gboolean is_free = ks_vision_family_is_free_size (run->prep.family);
  guint64 shape[] = {is_free ? run->n_frame : plan->n_view, 3, plan->view_height, plan->view_width};
  gsize n = (gsize)3 * plan->view_width * plan->view_height;
  g_autofree float *pixels = g_new (float, n);

  cli_dump_begin (run->dump, is_free ? "chw" : "pixel_values", "f32", 4, shape);
  for (guint i = 0; i < shape[0]; i++) {
    ks_vision_input_get_pixels (run->in, is_free ? 0 : i, is_free ? i : 0, pixels);
    add_values (&run->pixels, pixels, n);
    cli_dump_write (run->dump, pixels, n);
  }
}

/* Qwen: both frames of a patch side by side. */
static void
put_patches (CliVision *run)
{
  guint n_patch = run->plan.grid_rows * run->plan.grid_cols * run->prep.merge * run->prep.merge;
  gsize plane = (gsize)run->prep.patch * run->prep.patch;
  guint64 shape[] = {n_patch, plane * 6};
  g_autofree float *first = g_new (float, PATCHES_AT_ONCE *plane * 3);
  g_autofree float *second = g_new (float, PATCHES_AT_ONCE *plane * 3);

  cli_dump_begin (run->dump, "pixel_values", "f32", 2, shape);
  for (guint at = 0; at < n_patch; at += PATCHES_AT_ONCE) {
    guint n = MIN (PATCHES_AT_ONCE, n_patch - at);

    ks_vision_input_get_patches (run->in, 0, 0, at, n, first);
    ks_vision_input_get_patches (run->in, 0, 1, at, n, second);
    for (gsize i = 0; i < (gsize)n * 3; i++) {
      cli_dump_write (run->dump, first + i * plane, plane);
      cli_dump_write (run->dump, second + i * plane, plane);
    }
  }
}

/* Row of a view's array where patch i of the engine's order goes. */
static gsize
get_tower_row (const CliVision *run, guint i)
{
  guint32 row, col;

  if (ks_vision_family_is_free_size (run->prep.family))
    return i;
  ks_vision_patch_place (&run->prep, &run->plan, i, &row, &col);
  return (gsize)row * run->plan.grid_cols * run->prep.merge + col;
}

static void
put_tower (CliVision *run)
{
  guint n_patch = run->plan.grid_rows * run->plan.grid_cols * run->prep.merge * run->prep.merge;
  gsize n_col = run->n_tower_col, n_view = (gsize)n_patch * n_col;
  guint64 shape[] = {run->plan.n_view, n_patch, n_col};
  g_autofree float *rows = g_new (float, n_view);

  add_values (&run->tower_sums, (const float *)run->tower->data, run->tower->len);
  cli_dump_begin (run->dump, "vision_tower", "f32", 3, shape);
  for (gsize view = 0; view < run->plan.n_view; view++) {
    const float *from = (const float *)run->tower->data + view * n_view;

    for (guint i = 0; i < n_patch; i++)
      memcpy (rows + get_tower_row (run, i) * n_col, from + i * n_col, n_col * sizeof *rows);
    cli_dump_write (run->dump, rows, n_view);
  }
}

static void
put_embeds (CliVision *run)
{
  const ks_vision_embeds *e = &run->embeds;
  gsize n = (gsize)e->n_tok * e->n_embd;
  guint64 shape[] = {e->n_deep, e->n_tok, e->n_embd};

  add_values (&run->projector, e->data, n);
  cli_dump_begin (run->dump, "projector", "f32", 2, shape + 1);
  cli_dump_write (run->dump, e->data, n);
  if (e->n_deep == 0)
    return;
  add_values (&run->deepstack, e->data + n, n * e->n_deep);
  cli_dump_begin (run->dump, "deepstack", "f32", 3, shape);
  cli_dump_write (run->dump, e->data + n, n * e->n_deep);
}

/* Places after the picture's first token: time, row and column for Qwen, else the count. */
static void
put_positions (CliVision *run)
{
  const ks_vision_plan *plan = &run->plan;
  gboolean is_free = ks_vision_family_is_free_size (run->prep.family);
  guint64 shape[] = {3, plan->n_tok};

  run->positions = g_array_new (FALSE, TRUE, sizeof (gint32));
  g_array_set_size (run->positions, is_free ? plan->n_tok * 3 : plan->n_tok);
  for (guint i = 0; i < plan->n_tok; i++) {
    gint32 *at = (gint32 *)run->positions->data + i;

    if (is_free) {
      at[plan->n_tok] = (gint32)(i / plan->grid_cols);
      at[2 * plan->n_tok] = (gint32)(i % plan->grid_cols);
    } else {
      at[0] = (gint32)i;
    }
  }
  cli_dump_begin (run->dump, "position_ids", "i32", is_free ? 2 : 1, is_free ? shape : shape + 1);
  cli_dump_write (run->dump, run->positions->data, run->positions->len);
}

static gboolean
put_arrays (CliVision *run, cJSON **out_arrays, GError **error)
{
  const char *inputs[] = {run->mmproj, run->images[0], run->images[1], NULL};

  run->dump = cli_dump_new (run->dump_path, inputs, error);
  if (run->dump == NULL)
    return FALSE;
  put_pixels (run);
  if (run->dump_path != NULL && ks_vision_family_is_free_size (run->prep.family))
    put_patches (run);
  put_positions (run);
  if (!run->pixels_only) {
    put_tower (run);
    put_embeds (run);
  }
  return cli_dump_finish (run->dump, out_arrays, error);
}

static gboolean
vision_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  CliVision *run = data;

  run->job = job;
  run->alloc = ks_alloc_new ();
  if (run->alloc == NULL)
    return ks_error_check (KS_ERR_NOMEM, NULL, error);
  run->tower = g_array_new (FALSE, FALSE, sizeof (float));
  return prepare (run, error) && (run->pixels_only || encode (run, error)) &&
         put_arrays (run, &run->arrays, error);
}

static void
clear_run (CliVision *run)
{
  ks_vision_embeds_clear (&run->embeds);
  ks_vision_close (run->vision);
  ks_vision_input_free (run->in);
  ks_backend_close (&run->be);
  if (run->alloc != NULL)
    ks_alloc_free (run->alloc);
  g_clear_pointer (&run->dump, cli_dump_free);
  g_clear_pointer (&run->tower, g_array_unref);
  g_clear_pointer (&run->positions, g_array_unref);
  g_clear_pointer (&run->bytes, g_ptr_array_unref);
  g_clear_pointer (&run->trace, ks_picture_trace_free);
  g_clear_pointer (&run->arrays, cJSON_Delete);
}

static int
run_command (CliVision *run)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngine) engine = NULL;
  int code;

  if (!load_frames (run, &error)) {
    code = cli_fail (error);
  } else {
    engine = ks_engine_new ();
    code = cli_run_on_engine (engine, vision_job, run);
    if (code == CLI_OK && run->fastv.layer > 0 && !cli_vision_run_fastv (run, &error))
      code = cli_fail (error);
    if (code == CLI_OK)
      cli_vision_print (run, g_steal_pointer (&run->arrays));
  }
  clear_run (run);
  return code;
}

/* What --mode and --threads say; FALSE: *out_code says how to end. */
static gboolean
take_options (CliVision *run, int *out_code)
{
  const CliOptions *options = run->options;
  g_autoptr (GError) error = NULL;
  guint64 min_pixels = 0, max_pixels = 0;
  guint n_image = run->images != NULL ? g_strv_length (run->images) : 0;

  *out_code = CLI_USAGE;
  if (run->mmproj == NULL || n_image < 1 || n_image > MAX_FRAMES)
    cli_usage ("give --mmproj FILE and --image FILE (twice for two frames of a video)");
  else if (!cli_options_read_pixels (options, &min_pixels, &max_pixels, &error))
    *out_code = cli_fail (error);
  else if (options->threads != CLI_UNSET && (options->threads < 1 || options->threads > 1024))
    cli_usage ("--threads must be from 1 to 1024");
  else if (options->mode != NULL && !g_str_equal (options->mode, "fast") &&
           !g_str_equal (options->mode, "exact"))
    cli_usage ("--mode must be exact or fast");
  else if (options->fastv != NULL && (run->model == NULL || n_image > 1 || run->pixels_only))
    cli_usage ("--fastv needs --model FILE, one picture, and not --pixels-only");
  else if (options->visionzip != NULL && run->pixels_only)
    cli_usage ("--visionzip chooses in the tower: leave --pixels-only out");
  else
    *out_code = CLI_OK;
  run->limits.min_pixels = min_pixels;
  run->limits.max_pixels = max_pixels;
  run->n_thread = options->threads > 0 ? (guint)options->threads : 0;
  run->mode = g_strcmp0 (options->mode, "fast") == 0 ? KS_COMPUTE_FAST : KS_COMPUTE_EXACT;
  return *out_code == CLI_OK;
}

/* What --visionzip and --fastv say. */
static gboolean
take_pruning (CliVision *run, int *out_code)
{
  g_autoptr (KsEngineOptions) pruning = ks_engine_options_new ();
  g_autoptr (GError) error = NULL;

  if (!cli_prune_apply (run->options, pruning, &error)) {
    *out_code = cli_fail (error);
    return FALSE;
  }
  run->zip = pruning->vision_zip;
  run->fastv = pruning->fastv;
  return TRUE;
}

int
cli_inspect_vision_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_auto (GStrv) rest = g_strdupv (args), images = NULL;
  g_auto (CliOptions) options;
  g_autofree char *mmproj = NULL, *dump = NULL, *model = NULL, *prompt = NULL;
  CliVision run = {.options = &options};
  gboolean no_split = FALSE;
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"mmproj", 0, 0, G_OPTION_ARG_FILENAME, &mmproj, "vision tower (GGUF)", "FILE"},
      {"image", 'i', 0, G_OPTION_ARG_FILENAME_ARRAY, &images,
       "picture; twice: two frames of a video", "FILE"},
      {"min-pixels", 0, 0, G_OPTION_ARG_STRING, &options.min_pixels,
       "enlarge smaller pictures to N pixels (Qwen; default: the model's own)", "N"},
      {"max-pixels", 0, 0, G_OPTION_ARG_STRING, &options.max_pixels,
       "shrink larger pictures to N pixels (Qwen; default: the model's own)", "N"},
      {"no-split", 0, 0, G_OPTION_ARG_NONE, &no_split,
       "the whole picture in one view, without tiles (SmolVLM)", NULL},
      {"pixels-only", 0, 0, G_OPTION_ARG_NONE, &run.pixels_only,
       "stop before the tower: sizes, tiles, pixels and positions", NULL},
      {"dump", 0, 0, G_OPTION_ARG_FILENAME, &dump, "write the arrays to FILE", "FILE"},
      {"mode", 0, 0, G_OPTION_ARG_STRING, &options.mode, "arithmetic: exact (default) or fast",
       "MODE"},
      {"threads", 't', 0, G_OPTION_ARG_INT, &options.threads,
       "threads to compute with (default: the physical cores)", "N"},
      {"model", 'm', 0, G_OPTION_ARG_FILENAME, &model, "the language model (GGUF), for --fastv",
       "FILE"},
      {"prompt", 0, 0, G_OPTION_ARG_STRING, &prompt,
       "the question behind the picture, for --fastv (default: Describe the picture.)", "TEXT"},
      {"isa", 0, 0, G_OPTION_ARG_STRING, &options.isa,
       "processor instructions, for checks (default: the best there is)", "NAME"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  g_option_context_add_main_entries (context, entries, NULL);
  cli_prune_add (&options, context);
  cli_options_add_json (&options, context);
  g_option_context_set_summary (context, "Shows what a vision tower makes of a picture.");
  g_option_context_set_description (context, help);
  if (!cli_parse (context, &rest, &code))
    return code;
  if (rest[1] != NULL)
    return cli_usage ("give the picture with --image FILE");
  run.mmproj = mmproj;
  run.images = images;
  run.dump_path = dump;
  run.model = model;
  run.prompt = prompt != NULL ? prompt : "Describe the picture.";
  run.limits.no_split = no_split;
  if (!take_options (&run, &code) || !take_pruning (&run, &code))
    return code;
  return run_command (&run);
}

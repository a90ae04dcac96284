/* cli-options.c - see cli-options.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-options.h"

#include "app/cli-common.h"
#include "app/ks-error.h"
#include "app/ks-eye-options.h"
#include "app/ks-reading.h"

#include <math.h>

#define UNSET_REAL (-G_MAXDOUBLE)
#define MAX_EVERY_S 86400.0
#define MAX_CHUNK 65536 /* tokens of a pass, whose buffers grow with it */

void
cli_options_init (CliOptions *options)
{
  *options = (CliOptions){0};
  options->threads = options->frames = CLI_UNSET;
  options->entries = options->chunk = options->buffer = options->page = CLI_UNSET;
  cli_policy_init (&options->policy);
  options->temperature = options->top_p = options->min_p = options->repeat_penalty = UNSET_REAL;
  options->top_k = options->max_tokens = CLI_UNSET;
  options->seed = G_MININT64;
  options->every_s = UNSET_REAL;
}

void
cli_options_clear (CliOptions *options)
{
  g_free (options->model);
  g_free (options->gate);
  g_free (options->mmproj);
  g_free (options->kv_type);
  g_free (options->mode);
  g_free (options->isa);
  g_free (options->budget);
  g_free (options->kv_budget);
  cli_policy_clear (&options->policy);
  g_strfreev (options->stops);
  g_strfreev (options->attach);
  g_strfreev (options->images);
  g_free (options->system);
  g_free (options->session);
  g_free (options->password);
  g_free (options->pages);
  g_free (options->min_pixels);
  g_free (options->max_pixels);
  g_free (options->visionzip);
  g_free (options->fastv);
  *options = (CliOptions){0};
}

void
cli_options_add_model (CliOptions *options, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"model", 'm', 0, G_OPTION_ARG_STRING, &options->model,
       "GGUF file, or the name of a model in the models folder (default: the default model)",
       "MODEL"},
      {"gate", 'g', 0, G_OPTION_ARG_STRING, &options->gate,
       "retention gate (safetensors), or 'none' (default: the one that belongs to the model)",
       "FILE"},
      {"mmproj", 0, 0, G_OPTION_ARG_FILENAME, &options->mmproj,
       "vision model that gives it eyes (mmproj GGUF), or 'none' (default: the one that was "
       "chosen, "
       "else the one beside the model)",
       "FILE"},
      {"kv-type", 0, 0, G_OPTION_ARG_STRING, &options->kv_type,
       "type of stored keys and values: f32, f16, q8_0 (default f16)", "TYPE"},
      {"mode", 0, 0, G_OPTION_ARG_STRING, &options->mode,
       "arithmetic: fast (activations in 8 bits where the weights allow it) or exact (default: as "
       "the "
       "settings say, else fast; for checks and evaluations exact)",
       "MODE"},
      {"no-repack", 0, 0, G_OPTION_ARG_NONE, &options->no_repack,
       "use the weights as they lie in the file: less memory, slower", NULL},
      {"threads", 't', 0, G_OPTION_ARG_INT, &options->threads,
       "threads to compute with (default: the physical cores)", "N"},
      {"isa", 0, 0, G_OPTION_ARG_STRING, &options->isa,
       "processor instructions: scalar, avx2, avx2+vnni, avx512, avx512+vnni or "
       "avx512+vnni+bf16 (default: the best there is)",
       "NAME"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

void
cli_options_add_memory (CliOptions *options, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"budget", 'b', 0, G_OPTION_ARG_STRING, &options->budget,
       "memory for everything: weights, keys and values, scratch (160MiB, 1.5GiB)", "SIZE"},
      {"kv-budget", 0, 0, G_OPTION_ARG_STRING, &options->kv_budget,
       "memory for keys and values only (24MiB)", "SIZE"},
      {"entries", 'M', 0, G_OPTION_ARG_INT, &options->entries,
       "the same as an average number of entries in each of the model's streams", "M"},
      {"keep-everything", 0, 0, G_OPTION_ARG_NONE, &options->keep_everything,
       "never forget: the same as --policy full; running out of memory is an error", NULL},
      {"chunk", 0, 0, G_OPTION_ARG_INT, &options->chunk, "tokens read in one pass (default 128)",
       "N"},
      {"buffer", 0, 0, G_OPTION_ARG_INT, &options->buffer,
       "tokens an answer may grow between two evictions (default 32)", "N"},
      {"page-entries", 0, 0, G_OPTION_ARG_INT, &options->page,
       "entries in a page of the store, a power of two (default 16)", "N"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
  cli_policy_add (&options->policy, context);
}

void
cli_options_add_sampling (CliOptions *options, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"temperature", 0, 0, G_OPTION_ARG_DOUBLE, &options->temperature,
       "0 always takes the likeliest token; larger is more varied", "T"},
      {"top-k", 0, 0, G_OPTION_ARG_INT, &options->top_k, "draw from the K likeliest (0 = off)",
       "K"},
      {"top-p", 0, 0, G_OPTION_ARG_DOUBLE, &options->top_p,
       "draw from the likeliest that make up P together (1 = off)", "P"},
      {"min-p", 0, 0, G_OPTION_ARG_DOUBLE, &options->min_p,
       "leave out what is less likely than P times the likeliest (0 = off)", "P"},
      {"repeat-penalty", 0, 0, G_OPTION_ARG_DOUBLE, &options->repeat_penalty,
       "make recent tokens less likely (1 = off)", "X"},
      {"seed", 0, 0, G_OPTION_ARG_INT64, &options->seed,
       "same seed, same answer (default: a fixed one)", "N"},
      {"stop", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->stops,
       "end the answer before this text; may be given more than once", "TEXT"},
      {"max-tokens", 'n', 0, G_OPTION_ARG_INT, &options->max_tokens, "longest answer (default 512)",
       "N"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

void
cli_options_add_json (CliOptions *options, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"json", 'j', 0, G_OPTION_ARG_NONE, &options->json, "print the result as JSON", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

void
cli_options_add_pictures (CliOptions *options, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"min-pixels", 0, 0, G_OPTION_ARG_STRING, &options->min_pixels,
       "enlarge smaller pictures, for models of free sizes (default: as the settings or the model "
       "say)",
       "N"},
      {"max-pixels", 0, 0, G_OPTION_ARG_STRING, &options->max_pixels,
       "reduce larger pictures, for models of free sizes (default: as the settings or the model "
       "say)",
       "N"},
      {"no-split", 0, 0, G_OPTION_ARG_NONE, &options->no_split,
       "see a picture whole and small where the model would look at its tiles", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
  cli_prune_add (options, context);
}

static void
add_attaching (CliOptions *options, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"pages", 0, 0, G_OPTION_ARG_STRING, &options->pages,
       "how pages of documents go to a model with eyes: text, image or both; text leaves out the "
       "pictures in a document as well (default: pages without text as images)",
       "HOW"},
      {"frames", 0, 0, G_OPTION_ARG_INT, &options->frames,
       "frames of a video that go to the model, at most (default: as the settings say, else 16)",
       "N"},
      {"every", 0, 0, G_OPTION_ARG_DOUBLE, &options->every_s,
       "take a frame of a video every so many seconds (default: evenly over its time)", "SECONDS"},
      {"scenes", 0, 0, G_OPTION_ARG_NONE, &options->scenes,
       "take the first frame of each scene of a video", NULL},
      {"ocr", 0, 0, G_OPTION_ARG_NONE, &options->ocr,
       "recognise the words in attached pictures and scanned pages (sessions)", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

static void
add_conversation (CliOptions *options, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"attach", 'a', 0, G_OPTION_ARG_FILENAME_ARRAY, &options->attach,
       "file or folder that belongs to the first message: text, document, picture or video; may be "
       "given more than once",
       "FILE"},
      {"image", 'i', 0, G_OPTION_ARG_FILENAME_ARRAY, &options->images,
       "picture that the model looks at with the first message; may be given more than once",
       "FILE"},
      {"password", 0, 0, G_OPTION_ARG_STRING, &options->password,
       "for encrypted documents (default: asked for on a terminal)", "TEXT"},
      {"system", 's', 0, G_OPTION_ARG_STRING, &options->system,
       "instruction in front of the conversation", "TEXT"},
      {"session", 'S', 0, G_OPTION_ARG_STRING, &options->session,
       "store everything in this session and go on with it: a number, a title, or 'new' (default: "
       "nothing is stored)",
       "SESSION"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

gboolean
cli_options_parse_talk (CliOptions *options, const char *arguments, const char *summary,
                        const char *help, char ***args, int *out_exit)
{
  g_autoptr (GOptionContext) context = g_option_context_new (arguments);

  options->wants_eyes = TRUE;
  add_conversation (options, context);
  add_attaching (options, context);
  cli_options_add_model (options, context);
  cli_options_add_pictures (options, context);
  cli_options_add_memory (options, context);
  cli_options_add_sampling (options, context);
  cli_options_add_json (options, context);
  g_option_context_set_summary (context, summary);
  g_option_context_set_description (context, help);
  return cli_parse (context, args, out_exit);
}

gboolean
cli_options_parse_memory (CliOptions *options, const char *summary, const char *help, char ***args,
                          int *out_exit)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  const GOptionEntry entries[] = {{"session", 'S', 0, G_OPTION_ARG_STRING, &options->session,
                                   "the session: a number or a title", "SESSION"},
                                  {"patches", 0, 0, G_OPTION_ARG_NONE, &options->patches,
                                   "tell of every entry of a picture that is left where in the "
                                   "picture it lies: layer, head, row, column",
                                   NULL},
                                  {NULL, 0, 0, 0, NULL, NULL, NULL}};

  options->wants_eyes = TRUE;
  g_option_context_add_main_entries (context, entries, NULL);
  cli_options_add_model (options, context);
  cli_options_add_pictures (options, context);
  cli_options_add_memory (options, context);
  cli_options_add_json (options, context);
  g_option_context_set_summary (context, summary);
  g_option_context_set_description (context, help);
  return cli_parse (context, args, out_exit);
}

gboolean
cli_options_parse_check (CliOptions *options, const GOptionEntry *own, gboolean with_memory,
                         const char *summary, const char *help, char ***args, int *out_exit)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);

  g_option_context_add_main_entries (context, own, NULL);
  cli_options_add_model (options, context);
  if (with_memory)
    cli_options_add_memory (options, context);
  cli_options_add_json (options, context);
  g_option_context_set_summary (context, summary);
  g_option_context_set_description (context, help);
  return cli_parse (context, args, out_exit);
}

static gboolean
usage_error (GError **error, const char *text)
{
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, text);
  return FALSE;
}

gboolean
cli_check_least (const char *name, int value, int least, GError **error)
{
  if (value == CLI_UNSET || value >= least)
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "%s must be at least %d, not %d", name,
               least, value);
  return FALSE;
}

static gboolean
read_pixels (const char *name, const char *text, guint64 *out, GError **error)
{
  *out = 0;
  if (text == NULL || g_ascii_string_to_unsigned (text, 10, 1, KS_VISION_MAX_PIXELS, out, NULL))
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "%s needs a number of pixels from 1 to %" G_GUINT64_FORMAT
               ", for example 1000000, not '%s'",
               name, (guint64)KS_VISION_MAX_PIXELS, text);
  return FALSE;
}

gboolean
cli_options_read_pixels (const CliOptions *options, guint64 *out_min, guint64 *out_max,
                         GError **error)
{
  if (!read_pixels ("--min-pixels", options->min_pixels, out_min, error) ||
      !read_pixels ("--max-pixels", options->max_pixels, out_max, error))
    return FALSE;
  if (*out_max == 0 || *out_min <= *out_max)
    return TRUE;
  return usage_error (error, "--min-pixels must not be more than --max-pixels");
}

static gboolean
check_numbers (const CliOptions *options, GError **error)
{
  return cli_check_least ("--threads", options->threads, 0, error) &&
         cli_check_least ("--frames", options->frames, 1, error) &&
         cli_check_least ("--entries", options->entries, 1, error) &&
         cli_check_least ("--chunk", options->chunk, 1, error) &&
         cli_check_least ("--buffer", options->buffer, 1, error) &&
         cli_check_least ("--page-entries", options->page, 1, error);
}

const char *
cli_get_mode_name (ks_compute_mode mode)
{
  return mode == KS_COMPUTE_FAST ? "fast" : "exact";
}

gboolean
cli_parse_bytes (const char *text, guint64 *out, GError **error)
{
  ks_error err = {0};
  uint64_t value = 0;

  if (text != NULL && ks_budget_parse_bytes (text, &value, &err) != KS_OK)
    return usage_error (error, err.text);
  if (text != NULL && value == 0)
    return usage_error (error, "0 bytes leave no memory at all; write an amount like 160MiB");
  *out = value;
  return TRUE;
}

static gboolean
set_budget (const CliOptions *options, KsSettings *settings, KsEngineOptions *out, GError **error)
{
  g_autofree char *saved_budget = NULL, *saved_kv = NULL;
  const char *budget = options->budget, *kv_budget = options->kv_budget;
  guint n_given = (budget != NULL) + (kv_budget != NULL) + (options->entries >= 0);

  if (n_given > 1)
    return usage_error (error, "give only one of --budget, --kv-budget and --entries");
  if (n_given == 0) {
    kv_budget = saved_kv = ks_settings_dup_kv_budget (settings);
    if (kv_budget == NULL)
      budget = saved_budget = ks_settings_dup_budget (settings);
  }
  if (!cli_parse_bytes (budget, &out->budget.total_bytes, error) ||
      !cli_parse_bytes (kv_budget, &out->budget.kv_bytes, error)) {
    if (n_given == 0)
      g_prefix_error (error, "the memory target in the saved settings: ");
    return FALSE;
  }
  if (options->entries > 0)
    out->budget.entries = (uint64_t)options->entries;
  return TRUE;
}

static gboolean
set_policy (const CliOptions *options, KsEngineOptions *out, GError **error)
{
  ks_policy policy;

  if (options->keep_everything && options->policy.name != NULL)
    return usage_error (error, "give only one of --policy and --keep-everything");
  if (options->keep_everything)
    out->policy = KS_POLICY_FULL;
  if (options->policy.name != NULL) {
    if (!cli_policy_parse_name (options->policy.name, &policy, error))
      return FALSE;
    out->policy = (int)policy;
  }
  return cli_policy_make_options (&options->policy, &out->policy_options, error);
}

/* The settings' policy, unless it cannot be or something else was asked for. */
static void
set_saved_policy (const CliOptions *options, KsSettings *settings, KsEngineOptions *out)
{
  g_autofree char *saved = ks_settings_dup_policy (settings);
  ks_policy policy;

  if (options->policy.name != NULL || options->keep_everything || saved == NULL)
    return;
  if (ks_policy_parse (saved, &policy) && (!ks_policy_needs_gate (policy) || out->gate_path))
    out->policy = (int)policy;
}

static gboolean
set_types (const CliOptions *options, KsSettings *settings, KsEngineOptions *out, GError **error)
{
  if (options->kv_type != NULL &&
      (!ks_dtype_parse (options->kv_type, &out->kv_dtype) ||
       (out->kv_dtype != KS_DTYPE_F32 && out->kv_dtype != KS_DTYPE_F16 &&
        out->kv_dtype != KS_DTYPE_Q8_0)))
    return usage_error (error, "--kv-type must be f32, f16 or q8_0");
  if (options->mode == NULL)
    out->mode =
        options->is_check || ks_settings_get_exact (settings) ? KS_COMPUTE_EXACT : KS_COMPUTE_FAST;
  else if (g_str_equal (options->mode, "fast"))
    out->mode = KS_COMPUTE_FAST;
  else if (g_str_equal (options->mode, "exact"))
    out->mode = KS_COMPUTE_EXACT;
  else
    return usage_error (error, "--mode must be exact or fast");
  if (options->threads > 1024)
    return usage_error (error, "--threads must be 1024 at most");
  if (options->chunk > MAX_CHUNK)
    return usage_error (error, "--chunk must be 65536 at most");
  out->chunk = options->chunk > 0 ? (guint)options->chunk : 0;
  out->buffer = options->buffer > 0 ? (guint)options->buffer : 0;
  out->page_entries = options->page > 0 ? (guint)options->page : 0;
  out->isa = g_strdup (options->isa);
  out->no_repack = options->no_repack;
  return TRUE;
}

char *
cli_resolve_model (KsModelRegistry *registry, const char *name, GError **error)
{
  g_autoptr (KsSettings) settings = ks_settings_new (NULL);
  g_autofree char *saved = ks_settings_dup_model (settings);

  if (name == NULL)
    name = g_getenv ("KEEPSAKE_MODEL");
  if (name == NULL || name[0] == '\0')
    name = saved;
  return ks_model_registry_resolve (registry, name, error);
}

/* How attachments are read. */
static gboolean
set_reading (const CliOptions *options, KsSettings *settings, KsEngineOptions *out, GError **error)
{
  static const struct {
    const char *name;
    KsPageMode mode;
  } modes[] = {{"text", KS_PAGE_TEXT}, {"image", KS_PAGE_PICTURE}, {"both", KS_PAGE_BOTH}};
  KsMediaSampling sampling = {
      .mode = options->scenes ? KS_MEDIA_SAMPLE_SCENES : KS_MEDIA_SAMPLE_COUNT,
      .n_frames =
          options->frames > 0 ? (guint)options->frames : ks_settings_get_video_frames (settings)};

  for (gsize i = 0; options->pages != NULL && i < G_N_ELEMENTS (modes); i++)
    if (g_str_equal (options->pages, modes[i].name)) {
      out->has_page_mode = TRUE;
      out->page_mode = modes[i].mode;
    }
  if (options->pages != NULL && !out->has_page_mode)
    return usage_error (error, "--pages must be text, image or both");
  if (options->every_s >= 0 && options->scenes)
    return usage_error (error, "give only one of --every and --scenes");
  /* Also not a number. */
  if (options->every_s != UNSET_REAL &&
      !(options->every_s >= 0.001 && options->every_s <= MAX_EVERY_S))
    return usage_error (error, "--every must be between 0.001 and 86400 seconds");
  if (options->every_s > 0) {
    sampling.mode = KS_MEDIA_SAMPLE_INTERVAL;
    sampling.interval_us = (gint64)(options->every_s * G_USEC_PER_SEC);
  }
  out->sampling = ks_sampling_clamp (&sampling);
  out->ocr = options->ocr;
  return TRUE;
}

/* What is asked for goes before what is saved; both together must leave a size. */
static gboolean
set_pixels (const CliOptions *options, KsEngineOptions *out, GError **error)
{
  ks_vision_limits *limits = &out->vision_limits;
  guint64 min = 0, max = 0;

  if (!cli_options_read_pixels (options, &min, &max, error))
    return FALSE;
  if (min > 0)
    limits->min_pixels = min;
  if (max > 0)
    limits->max_pixels = max;
  limits->no_split |= options->no_split != FALSE;
  out->asks_pixels = min > 0 || max > 0;
  if (!out->asks_pixels || limits->max_pixels == 0 || limits->min_pixels <= limits->max_pixels)
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               min > 0 ? "--min-pixels is more than the %" G_GUINT64_FORMAT
                         " pixels that the settings allow: give --max-pixels too"
                       : "--max-pixels is less than the %" G_GUINT64_FORMAT
                         " pixels that the settings ask for: give --min-pixels too",
               (guint64)(min > 0 ? limits->max_pixels : limits->min_pixels));
  return FALSE;
}

/* Without a hash its embeddings are kept in memory only. */
static gboolean
find_eyes (const CliOptions *options, KsModelRegistry *registry, KsSettings *settings,
           KsEngineOptions *out, GError **error)
{
  g_autoptr (GVariant) choices = ks_settings_dup_mmproj_choices (settings);

  ks_eye_options_apply (out, settings);
  if (!set_pixels (options, out, error))
    return FALSE;
  if (options->mmproj == NULL) {
    ks_model_registry_set_mmproj_choices (registry, choices);
    out->mmproj_path = ks_model_registry_find_mmproj (registry, out->model_path);
    out->mmproj_was_found = TRUE;
  } else if (!g_str_equal (options->mmproj, "none")) {
    out->mmproj_path = g_strdup (options->mmproj);
  }
  if (out->mmproj_path != NULL)
    out->mmproj_hash = ks_model_registry_hash (registry, out->mmproj_path, FALSE, NULL, NULL);
  return TRUE;
}

static gboolean
find_files (const CliOptions *options, KsSettings *settings, KsEngineOptions *out, GError **error)
{
  g_autoptr (KsModelRegistry) registry = ks_model_registry_new (NULL, NULL);

  out->model_path = cli_resolve_model (registry, options->model, error);
  if (out->model_path == NULL)
    return FALSE;
  if (options->gate == NULL)
    out->gate_path = ks_model_registry_find_gate (registry, out->model_path, NULL);
  else if (!g_str_equal (options->gate, "none"))
    out->gate_path = g_strdup (options->gate);
  return !options->wants_eyes || find_eyes (options, registry, settings, out, error);
}

KsEngineOptions *
cli_options_make_engine (const CliOptions *options, GError **error)
{
  g_autoptr (KsSettings) settings = ks_settings_new (NULL);
  g_autoptr (KsEngineOptions) out = ks_engine_options_new ();

  if (!check_numbers (options, error) || !set_types (options, settings, out, error) ||
      !set_policy (options, out, error) || !set_budget (options, settings, out, error) ||
      !set_reading (options, settings, out, error) || !cli_prune_apply (options, out, error) ||
      !find_files (options, settings, out, error))
    return NULL;
  set_saved_policy (options, settings, out);
  if (ks_settings_get_gsettings (settings) == NULL)
    cli_print_notice (ks_settings_get_problem (settings));
  out->n_thread =
      options->threads >= 0 ? (guint)options->threads : ks_settings_get_n_thread (settings);
  return g_steal_pointer (&out);
}

gboolean
cli_options_has_target (const CliOptions *options)
{
  return options->budget != NULL || options->kv_budget != NULL || options->entries != CLI_UNSET;
}

void
cli_options_take_session (CliOptions *options, const KsSessionSettings *session)
{
  gboolean has_budget = cli_options_has_target (options);
  ks_policy policy;

  if (options->model == NULL && session->model != NULL)
    options->model = g_strdup (session->model);
  if (options->policy.name == NULL && !options->keep_everything && session->policy != NULL &&
      ks_policy_parse (session->policy, &policy))
    options->policy.name = g_strdup (session->policy);
  if (!has_budget && session->kv_budget_bytes > 0)
    options->kv_budget = g_strdup_printf ("%" G_GINT64_FORMAT, session->kv_budget_bytes);
  else if (!has_budget && session->budget_bytes > 0)
    options->budget = g_strdup_printf ("%" G_GINT64_FORMAT, session->budget_bytes);
}

/* A value between 0 and most, -1 (as the settings say) for everything else. */
static double
get_real (double value, double most)
{
  return value >= 0 && value <= most ? value : -1;
}

/* -1 for what was not given; no more than a bundle can hold. */
static gint64
get_bytes (const char *text)
{
  guint64 n_bytes = 0;

  if (text == NULL || !cli_parse_bytes (text, &n_bytes, NULL))
    return -1;
  return (gint64)MIN (n_bytes, (guint64)1 << 53);
}

KsSessionSettings *
cli_options_make_session (const CliOptions *options)
{
  KsSessionSettings *session = ks_session_settings_new ();

  session->model = g_strdup (options->model);
  session->system_prompt = g_strdup (options->system);
  session->policy = g_strdup (options->keep_everything ? ks_policy_get_name (KS_POLICY_FULL)
                                                       : options->policy.name);
  session->budget_bytes = get_bytes (options->budget);
  session->kv_budget_bytes = get_bytes (options->kv_budget);
  session->temperature = get_real (options->temperature, 100);
  session->top_p = get_real (options->top_p, 1);
  session->min_p = get_real (options->min_p, 1);
  session->repeat_penalty = get_real (options->repeat_penalty, 100);
  session->top_k = MAX (options->top_k, -1);
  session->seed = MAX (options->seed, -1);
  session->max_tokens = options->max_tokens > 0 ? options->max_tokens : -1;
  return session;
}

/* Takes a number that was given; what is out of range is told by the sampler, but NaN compares with
 * nothing. */
static gboolean
set_real (const char *name, double value, float *out, GError **error)
{
  if (value == UNSET_REAL)
    return TRUE;
  if (!isfinite (value)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "%s must be a number", name);
    return FALSE;
  }
  *out = (float)value;
  return TRUE;
}

KsAnswerOptions *
cli_options_make_answer (const CliOptions *options, const KsSessionSettings *session,
                         gboolean greedy, GError **error)
{
  g_autoptr (KsSettings) settings = ks_settings_new (NULL);
  g_autoptr (KsAnswerOptions) out = ks_settings_make_answer_options (settings, session);

  if (greedy && (session == NULL || session->temperature < 0))
    out->sampler.temperature = 0; /* one question wants one answer, the likeliest */
  if (ks_settings_get_seed (settings) < 0 && (session == NULL || session->seed < 0))
    out->sampler.seed = ks_sampler_default_params ().seed; /* a terminal repeats itself */
  if (!set_real ("--temperature", options->temperature, &out->sampler.temperature, error) ||
      !set_real ("--top-p", options->top_p, &out->sampler.top_p, error) ||
      !set_real ("--min-p", options->min_p, &out->sampler.min_p, error) ||
      !set_real ("--repeat-penalty", options->repeat_penalty, &out->sampler.repeat_penalty,
                 error) ||
      !cli_check_least ("--top-k", options->top_k, 0, error) ||
      !cli_check_least ("--max-tokens", options->max_tokens, 1, error))
    return NULL;
  if (options->seed < 0 && options->seed != G_MININT64) {
    usage_error (error, "--seed must be at least 0");
    return NULL;
  }
  if (options->top_k >= 0)
    out->sampler.top_k = (uint32_t)options->top_k;
  if (options->seed >= 0)
    out->sampler.seed = (uint64_t)options->seed;
  for (guint i = 0; options->stops != NULL && options->stops[i] != NULL; i++)
    if (options->stops[i][0] == '\0') {
      usage_error (error, "--stop needs a text");
      return NULL;
    }
  if (options->max_tokens > 0)
    out->max_tokens = (guint)options->max_tokens;
  out->stops = g_strdupv (options->stops);
  return g_steal_pointer (&out);
}

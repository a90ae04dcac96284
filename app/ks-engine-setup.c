/* ks-engine-setup.c - see ks-engine-setup.h.
 * Order matters: the pool lies on the device, the model's weights too; freed in reverse. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-engine-setup.h"

#include "app/ks-error.h"
#include "engine/graph.h"

#define DEFAULT_CHUNK 128u
#define DEFAULT_BUFFER 32u
#define BUFFER_PART 32u /* decoding holds up to 1/32 more than K for a while */
#define DEFAULT_PAGE_ENTRIES 16u
#define SPARE_PART 8u /* of what a target leaves, for embeddings in memory */
#define MIB ((guint64)1 << 20)
#define TIMELINE_BYTES 65536u /* more than the lists of a timeline take */
#define DEFAULT_EMBED_BYTES ((guint64)64 << 20)

KsEngineOptions *
ks_engine_options_new (void)
{
  KsEngineOptions *options = g_new0 (KsEngineOptions, 1);

  options->kv_dtype = KS_DTYPE_F16;
  options->mode = KS_COMPUTE_FAST;
  options->embed_memory_bytes = DEFAULT_EMBED_BYTES;
  options->policy = -1;
  ks_policy_options_init (&options->policy_options);
  return options;
}

KsEngineOptions *
ks_engine_options_copy (const KsEngineOptions *options)
{
  KsEngineOptions *copy;

  g_return_val_if_fail (options != NULL, NULL);
  copy = g_memdup2 (options, sizeof *options);
  copy->model_path = g_strdup (options->model_path);
  copy->gate_path = g_strdup (options->gate_path);
  copy->mmproj_path = g_strdup (options->mmproj_path);
  copy->mmproj_hash = g_strdup (options->mmproj_hash);
  copy->embeds = options->embeds != NULL ? g_object_ref (options->embeds) : NULL;
  copy->model_hash = g_strdup (options->model_hash);
  copy->gate_hash = g_strdup (options->gate_hash);
  copy->snapshots = options->snapshots != NULL ? g_object_ref (options->snapshots) : NULL;
  copy->isa = g_strdup (options->isa);
  return copy;
}

void
ks_engine_options_free (KsEngineOptions *options)
{
  if (options == NULL)
    return;
  g_free (options->model_path);
  g_free (options->gate_path);
  g_free (options->mmproj_path);
  g_free (options->mmproj_hash);
  g_clear_object (&options->embeds);
  g_free (options->model_hash);
  g_free (options->gate_hash);
  g_clear_object (&options->snapshots);
  g_free (options->isa);
  g_free (options);
}

ks_evict_params
ks_engine_setup_make_evict_params (const KsEngineSetup *setup, ks_policy policy)
{
  return ks_policy_options_make_params (&setup->policy_options, policy);
}

static gboolean
choose_policy (KsEngineSetup *setup, const KsEngineOptions *options, GError **error)
{
  ks_policy policy = ks_timeline_pick_policy (setup->gate);
  ks_error err = {0};

  if (options->policy >= 0)
    policy = (ks_policy)options->policy;
  else if (setup->gate == NULL)
    g_ptr_array_add (setup->notices,
                     g_strdup ("This model was not taught what to keep: Keepsake chooses by a "
                               "general rule."));
  if (ks_policy_needs_gate (policy) && setup->gate == NULL) {
    g_set_error (
        error, KS_ENGINE_ERROR, KS_ERR_ARG,
        "the policy %s needs a retention gate: give one with --gate, or choose another policy",
        ks_policy_get_name (policy));
    return FALSE;
  }
  if (!ks_error_check (ks_timeline_check_policy (policy, setup->gate, &err), &err, error))
    return FALSE;
  setup->policy_options = options->policy_options;
  setup->evict = ks_engine_setup_make_evict_params (setup, policy);
  if (setup->evict.mode != KS_EVICT_FAITHFUL || ks_policy_never_evicts (policy))
    return TRUE;
  setup->whole_entries = options->budget.entries;
  if (setup->whole_entries > 0)
    return TRUE;
  g_set_error_literal (error, KS_ENGINE_ERROR, KS_ERR_ARG,
                       "the mode faithful reads a prompt as a whole, then cuts it to a number of "
                       "entries: give it with --entries");
  return FALSE;
}

static gboolean
open_model (KsEngineSetup *setup, const KsEngineOptions *options, GError **error)
{
  ks_dev_params dev_params = {.n_thread = options->n_thread, .mode = options->mode};
  ks_model_params model_params = {.n_ctx = options->n_ctx};
  ks_error err = {0};

  setup->alloc = ks_alloc_new ();
  if (setup->alloc == NULL)
    return ks_error_check (KS_ERR_NOMEM, NULL, error);
  dev_params.alloc = setup->alloc;
  dev_params.isa = options->isa;
  if (!ks_error_check (ks_backend_open ("cpu", &dev_params, &setup->be, &err), &err, error))
    return FALSE;
  model_params.be = &setup->be;
  if (!ks_error_check (
          ks_model_open (setup->alloc, options->model_path, &model_params, &setup->model, &err),
          &err, error))
    return FALSE;
  if (ks_tokenizer_get_warning (ks_model_get_tokenizer (setup->model)) != NULL)
    g_ptr_array_add (setup->notices,
                     g_strdup (ks_tokenizer_get_warning (ks_model_get_tokenizer (setup->model))));
  if (options->gate_path == NULL)
    return TRUE;
  return ks_error_check (
      ks_gate_open (setup->alloc, options->gate_path, setup->model, &setup->gate, &err), &err,
      error);
}

/* A tower that nobody asked for and that cannot be used leaves the model blind, and says so. */
static gboolean
open_sight (KsEngineSetup *setup, const KsEngineOptions *options, GError **error)
{
  KsSightOptions sight = {.path = options->mmproj_path,
                          .hash = options->mmproj_hash,
                          .mode = options->mode,
                          .limits = options->vision_limits,
                          .zip = options->vision_zip,
                          .store = options->embeds,
                          .memory_quota_bytes = options->embed_memory_bytes};
  g_autoptr (GError) local = NULL;

  if (options->mmproj_path == NULL)
    return TRUE;
  setup->sight = ks_sight_open (setup->alloc, &setup->be, setup->model, &sight, &local);
  if (setup->sight != NULL)
    return TRUE;
  if (options->mmproj_was_found) {
    g_autofree char *name = g_filename_display_basename (options->mmproj_path);

    g_ptr_array_add (setup->notices,
                     g_strdup_printf ("The vision model %s beside this model cannot be used, so "
                                      "that pictures are not seen: %s",
                                      name, local->message));
    return TRUE;
  }
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

/* The model's own format is not known: *out_tmpl is what is used in its place. */
static gboolean
has_other_template (const KsEngineSetup *setup, const ks_chat_template **out_tmpl)
{
  bool is_fallback = false;

  *out_tmpl = ks_model_get_chat_template (setup->model, &is_fallback);
  if (is_fallback && setup->sight != NULL && ks_sight_get_family (setup->sight) == KS_VISION_LLAVA)
    *out_tmpl = ks_chat_template_find ("vicuna");
  return is_fallback;
}

const ks_chat_template *
ks_engine_setup_get_chat_template (const KsEngineSetup *setup)
{
  const ks_chat_template *tmpl;

  g_return_val_if_fail (setup != NULL, NULL);
  (void)has_other_template (setup, &tmpl);
  return tmpl;
}

static void
tell_template (KsEngineSetup *setup)
{
  const ks_chat_template *tmpl;
  const char *name;

  if (!has_other_template (setup, &tmpl))
    return;
  name = ks_chat_template_get_name (tmpl);
  g_ptr_array_add (setup->notices,
                   g_strdup_printf ("The chat format of this model is not known; %s is used.",
                                    g_str_equal (name, "vicuna") ? "Vicuna's, as LLaVA models do,"
                                                                 : "the general ChatML format"));
}

guint64
ks_engine_setup_get_needed_bytes (const KsEngineSetup *setup)
{
  return setup->sight != NULL ? ks_sight_get_needed_bytes (setup->sight) : 0;
}

static guint64
get_other_bytes (const KsEngineSetup *setup)
{
  return setup->sight != NULL ? ks_sight_get_device_bytes (setup->sight) : 0;
}

guint64
ks_engine_setup_share_spare (KsEngineSetup *setup, guint64 total_bytes, guint64 least_bytes)
{
  g_return_val_if_fail (setup != NULL, 0);
  if (setup->sight != NULL)
    ks_sight_set_spare_bytes (
        setup->sight, total_bytes > least_bytes ? (total_bytes - least_bytes) / SPARE_PART : 0);
  return get_other_bytes (setup);
}

/* What the policy takes on the device for passes; its own share of entries decides. */
static gboolean
count_policy (KsEngineSetup *setup, ks_budget_request *request, GError **error)
{
  ks_budget_plan plan = {0};
  ks_error err = {0};

  if (ks_evict_count_watch_bytes (&setup->evict, &setup->layout,
                                  ks_model_get_shape (setup->model)->n_head, 0, 1) == 0)
    return TRUE;
  if (!ks_error_check (ks_budget_make_plan (setup->model, setup->gate, &setup->layout, request,
                                            setup->chunk, setup->buffer, &plan, &err),
                       &err, error))
    return FALSE;
  request->policy_bytes = ks_evict_count_watch_bytes (
      &setup->evict, &setup->layout, ks_model_get_shape (setup->model)->n_head,
      setup->whole_entries > 0 ? plan.n_keep / 2 : plan.n_keep, setup->chunk);
  return TRUE;
}

/* A copy of the weights may go at any time: the least that works is without it. */
static gboolean
make_plan (KsEngineSetup *setup, const ks_budget_request *wanted, ks_budget_plan *out,
           GError **error)
{
  ks_budget_request with_eyes = *wanted, *request = &with_eyes;
  ks_error err = {0};

  with_eyes.other_bytes = get_other_bytes (setup);
  with_eyes.view_tok = setup->sight != NULL ? ks_sight_get_view_tok (setup->sight) : 0;
  if (!count_policy (setup, request, error))
    return FALSE;
  if (!ks_error_check (ks_budget_make_plan (setup->model, setup->gate, &setup->layout, request,
                                            setup->chunk, setup->buffer, out, &err),
                       &err, error))
    return FALSE;
  out->least_bytes -= ks_model_get_repacked_bytes (setup->model);
  return TRUE;
}

/* For what was asked; with eyes at least for what works (see ks_engine_setup_new). */
static gboolean
make_own_plan (KsEngineSetup *setup, ks_budget_plan *out, GError **error)
{
  ks_budget_request request = {.entries = 1};

  if (setup->sight == NULL || setup->request.total_bytes == 0)
    return make_plan (setup, &setup->request, out, error);
  if (!make_plan (setup, &request, out, error))
    return FALSE;
  request = setup->request;
  request.total_bytes = MAX (request.total_bytes, out->least_bytes);
  return make_plan (setup, &request, out, error);
}

static guint64
count_pass_bytes (const KsEngineSetup *setup, guint chunk)
{
  return ks_graph_count_scratch_bytes (setup->model, setup->gate, chunk, chunk > 1 ? 2 : 1);
}

guint64
ks_engine_setup_count_least_target (const KsEngineSetup *setup)
{
  guint64 total_bytes;
  guint least_chunk;

  g_return_val_if_fail (setup != NULL, 0);
  least_chunk = setup->buffer;
  if (setup->sight != NULL)
    least_chunk = MAX (least_chunk, ks_sight_get_view_tok (setup->sight));
  total_bytes = setup->plan.least_bytes + TIMELINE_BYTES +
                count_pass_bytes (setup, MAX (setup->chunk, least_chunk)) -
                count_pass_bytes (setup, least_chunk);
  return ((total_bytes * 10 + MIB - 1) / MIB * MIB + 9) / 10;
}

guint64
ks_engine_setup_count_working_target (const KsEngineSetup *setup, guint64 least_bytes)
{
  ks_budget_request request = {0};
  guint64 total_bytes = least_bytes;

  g_return_val_if_fail (setup != NULL, 0);
  if (setup->sight != NULL) {
    request.other_bytes = ks_sight_get_weight_bytes (setup->sight);
    request.view_tok = ks_sight_get_view_tok (setup->sight);
  }
  for (;;) {
    guint64 tenths = (total_bytes * 10 + MIB - 1) / MIB, needed_bytes;
    guint chunk;

    request.total_bytes = total_bytes = (tenths * MIB + 9) / 10;
    chunk = ks_budget_find_chunk (setup->model, setup->gate, &setup->layout, &request, setup->chunk,
                                  setup->buffer);
    needed_bytes =
        least_bytes + count_pass_bytes (setup, chunk) - count_pass_bytes (setup, setup->plan.chunk);
    if (needed_bytes <= total_bytes)
      return total_bytes;
    total_bytes = needed_bytes;
  }
}

guint64
ks_engine_setup_get_useful_entries (const KsEngineSetup *setup)
{
  guint n_ctx = ks_model_get_shape (setup->model)->n_ctx_train;

  return MIN (CLAMP (n_ctx / 8, 1024, 4096), MAX (n_ctx, 1));
}

static gboolean
count_useful (KsEngineSetup *setup, GError **error)
{
  ks_budget_request request = {.entries = ks_engine_setup_get_useful_entries (setup)};
  ks_budget_plan plan = {0};

  if (!make_plan (setup, &request, &plan, error))
    return FALSE;
  setup->useful_bytes =
      plan.total_bytes - plan.other_bytes - ks_model_get_repacked_bytes (setup->model);
  return TRUE;
}

static gboolean
open_pool (KsEngineSetup *setup, const KsEngineOptions *options, GError **error)
{
  const ks_model_shape *shape = ks_model_get_shape (setup->model);
  guint chunk = options->chunk > 0 ? options->chunk : DEFAULT_CHUNK;
  guint buffer = options->buffer > 0 ? options->buffer : MIN (DEFAULT_BUFFER, chunk);
  ks_dev_info info = {0};
  uint64_t max_bytes;
  ks_status status;
  ks_error err = {0};

  setup->layout = (ks_kv_layout){
      .n_layer = shape->n_layer,
      .n_kv_head = shape->n_kv_head,
      .k_dim = shape->k_dim,
      .v_dim = shape->v_dim,
      .kv_dtype = options->kv_dtype,
      .page_entries = options->page_entries > 0 ? options->page_entries : DEFAULT_PAGE_ENTRIES,
      .n_aux = MAX (options->n_aux, ks_policy_get_n_aux (setup->evict.policy)),
  };
  if (!ks_error_check (ks_kv_layout_init (&setup->layout, &err), &err, error))
    return FALSE;
  setup->request = options->budget;
  if (setup->whole_entries > 0)
    setup->request.entries =
        MAX (setup->whole_entries, options->n_ctx > 0 ? options->n_ctx : shape->n_ctx_train);
  setup->chunk = chunk;
  setup->buffer = buffer;
  if (!make_own_plan (setup, &setup->plan, error) || !count_useful (setup, error))
    return FALSE;
  setup->fixed_entries = options->budget.entries > 0;
  setup->fixed_buffer = options->buffer > 0;
  setup->max_pos = options->n_ctx > 0 ? options->n_ctx : shape->n_ctx_train;
  /* Address space only: a later, larger target must fit without moving the pool. */
  setup->be.t->get_info (setup->be.dev, &info);
  max_bytes = MAX (setup->plan.kv_bytes, info.total_bytes);
  status = ks_kv_pool_new (setup->alloc, &setup->be, &setup->layout, setup->plan.kv_bytes,
                           max_bytes, &setup->pool, &err);
  /* A process whose address space is limited has to do with what it asked for. */
  if (status != KS_OK && max_bytes > setup->plan.kv_bytes)
    status = ks_kv_pool_new (setup->alloc, &setup->be, &setup->layout, setup->plan.kv_bytes,
                             setup->plan.kv_bytes, &setup->pool, &err);
  return ks_error_check (status, &err, error);
}

/* Tower and how pictures go through it: they decide what a state holds of one. (transfer full) */
static char *
name_eyes (const KsEngineSetup *setup, const KsEngineOptions *options)
{
  const ks_vision_limits *limits = &options->vision_limits;
  const ks_vision_zip *zip = &options->vision_zip;
  GString *name;

  if (setup->sight == NULL)
    return NULL;
  name = g_string_new (options->mmproj_hash);
  if (limits->min_pixels > 0 || limits->max_pixels > 0 || limits->no_split)
    g_string_append_printf (name, " pixels %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %d",
                            (guint64)limits->min_pixels, (guint64)limits->max_pixels,
                            limits->no_split);
  if (zip->n_dominant > 0)
    g_string_append_printf (name, " zip %u %u", zip->n_dominant, zip->n_context);
  if (options->fastv.layer > 0)
    g_string_append_printf (name, " fastv %u %.17g", options->fastv.layer, options->fastv.drop);
  return g_string_free (name, FALSE);
}

/* A file without a hash may be another one next time: its states stay in memory. */
static void
open_kept (KsEngineSetup *setup, const KsEngineOptions *options)
{
  gboolean is_known = options->model_hash != NULL &&
                      (setup->gate == NULL || options->gate_hash != NULL) &&
                      (setup->sight == NULL || options->mmproj_hash != NULL);
  g_autofree char *eyes = NULL;
  KsTurnHash weights;

  if (options->snapshot_memory_bytes == 0)
    return;
  eyes = name_eyes (setup, options);
  ks_turn_hash_weights (options->model_hash, setup->gate != NULL ? options->gate_hash : NULL, eyes,
                        &weights);
  setup->kept = ks_snapshot_cache_new (is_known ? options->snapshots : NULL, &weights,
                                       options->snapshot_memory_bytes);
}

/* No target was asked for: say which one was chosen. */
static void
tell_default_budget (KsEngineSetup *setup, const KsEngineOptions *options)
{
  const ks_budget_request *request = &options->budget;
  guint n_ctx = ks_model_get_shape (setup->model)->n_ctx_train;
  double mib = (double)setup->plan.kv_bytes / 1048576.0;
  gboolean all = setup->plan.entries_per_stream >= n_ctx;

  if (request->total_bytes > 0 || request->kv_bytes > 0 || request->entries > 0)
    return;
  g_ptr_array_add (
      setup->notices,
      all ? g_strdup_printf (
                "No memory target was given: everything up to the trained length of %u "
                "tokens is kept (keys and values up to %.1f MiB).",
                n_ctx, mib)
          : g_strdup_printf (
                "No memory target was given: the free memory allows %.1f MiB of keys and "
                "values, %.0f of the %u tokens the model was trained for.",
                mib, setup->plan.entries_per_stream, n_ctx));
}

static void
tell_fastv (KsEngineSetup *setup)
{
  guint n_layer = ks_model_get_shape (setup->model)->n_layer;

  if (setup->fastv.layer >= n_layer)
    g_ptr_array_add (setup->notices,
                     g_strdup_printf ("FastV from layer %u on has no effect: this model has %u "
                                      "layers.",
                                      setup->fastv.layer, n_layer));
}

static void
tell_pixels (KsEngineSetup *setup, const KsEngineOptions *options)
{
  const char *why = NULL;

  if (setup->sight == NULL)
    why = "this model has no eyes";
  else if (ks_sight_get_eyes (setup->sight).prep.max_pixels == 0)
    why = "this model looks at pictures in sizes of its own";
  if (options->asks_pixels && why != NULL)
    g_ptr_array_add (
        setup->notices,
        g_strdup_printf ("Limits for the pixels of a picture have no effect: %s.", why));
}

KsEngineSetup *
ks_engine_setup_new (const KsEngineOptions *options, GError **error)
{
  g_autoptr (KsEngineSetup) setup = g_new0 (KsEngineSetup, 1);

  g_return_val_if_fail (options != NULL && options->model_path != NULL, NULL);
  setup->notices = g_ptr_array_new_with_free_func (g_free);
  setup->mode = options->mode;
  setup->fastv = options->fastv;
  setup->no_repack = options->no_repack;
  setup->model_path = g_strdup (options->model_path);
  setup->gate_path = g_strdup (options->gate_path);
  if (!open_model (setup, options, error) || !open_sight (setup, options, error) ||
      !choose_policy (setup, options, error) || !open_pool (setup, options, error))
    return NULL;
  open_kept (setup, options);
  tell_template (setup);
  tell_fastv (setup);
  tell_pixels (setup, options);
  tell_default_budget (setup, options);
  return g_steal_pointer (&setup);
}

void
ks_engine_setup_free (KsEngineSetup *setup)
{
  if (setup == NULL)
    return;
  ks_snapshot_cache_free (setup->kept);
  ks_kv_pool_free (setup->pool);
  ks_sight_free (setup->sight);
  ks_gate_free (setup->gate);
  ks_model_close (setup->model);
  ks_backend_close (&setup->be);
  ks_alloc_free (setup->alloc);
  g_clear_pointer (&setup->notices, g_ptr_array_unref);
  g_free (setup->model_path);
  g_free (setup->gate_path);
  g_free (setup);
}

static guint64
get_copy_room (KsEngineSetup *setup, guint64 target_bytes)
{
  guint64 taken = setup->plan.kv_bytes + setup->plan.scratch_bytes;
  guint64 useful_bytes = setup->useful_bytes + ks_engine_setup_get_needed_bytes (setup);
  ks_dev_info info = {0};

  if (setup->no_repack)
    return 0;
  if (target_bytes > 0)
    return target_bytes > useful_bytes ? target_bytes - useful_bytes : 0;
  setup->be.t->get_info (setup->be.dev, &info);
  return MIN (info.free_bytes / 2, info.free_bytes > taken ? info.free_bytes - taken : 0);
}

void
ks_engine_setup_limit_copy (KsEngineSetup *setup, guint64 target_bytes)
{
  g_return_if_fail (setup != NULL);
  if (ks_model_get_repacked_bytes (setup->model) > get_copy_room (setup, target_bytes))
    ks_model_drop_repacked (setup->model);
}

/* Plans for what was asked, and gives the pool its share. */
static gboolean
plan_again (KsEngineSetup *setup, GError **error)
{
  ks_budget_plan plan = {0};
  ks_error err = {0};

  if (!make_own_plan (setup, &plan, error) ||
      !ks_error_check (ks_kv_pool_set_budget (setup->pool, plan.kv_bytes, &err), &err, error))
    return FALSE;
  setup->plan = plan;
  return TRUE;
}

gboolean
ks_engine_setup_forget_pictures (KsEngineSetup *setup, GError **error)
{
  guint64 before;

  g_return_val_if_fail (setup != NULL && setup->n_user == 0, FALSE);
  if (setup->sight == NULL)
    return TRUE;
  before = get_other_bytes (setup);
  ks_sight_forget_room (setup->sight);
  return before == get_other_bytes (setup) || setup->request.total_bytes == 0 ||
         plan_again (setup, error);
}

/* A sixteenth more room is not worth making it again. */
static gboolean
is_copy_due (KsEngineSetup *setup, guint64 room)
{
  guint64 whole = ks_model_count_repack_bytes (setup->model);
  guint64 have = ks_model_get_repacked_bytes (setup->model);

  if (have == 0)
    return MIN (room, whole) > 0;
  return have < whole && room > setup->copy_room + whole / 16;
}

static bool
stop_requested (void *user)
{
  return ks_engine_job_is_cancelled (user);
}

gboolean
ks_engine_setup_make_copy (KsEngineSetup *setup, KsEngineJob *job, GError **error)
{
  guint64 room;
  ks_error err = {0};

  g_return_val_if_fail (setup != NULL && setup->n_user == 0 && job != NULL, FALSE);
  room = get_copy_room (setup, setup->request.total_bytes);
  if (!is_copy_due (setup, room))
    return TRUE;
  ks_model_repack (setup->model, room, stop_requested, job);
  if (ks_engine_job_is_cancelled (job)) {
    g_set_error_literal (error, KS_ENGINE_ERROR, KS_ERR_CANCELLED, "cancelled");
    return FALSE;
  }
  setup->copy_room = room;
  return ks_error_check (ks_model_check_alive (setup->model, &err), &err, error) &&
         plan_again (setup, error);
}

gboolean
ks_engine_setup_set_target (KsEngineSetup *setup, guint64 total_bytes, GError **error)
{
  ks_budget_request before;

  g_return_val_if_fail (setup != NULL && setup->n_user == 0, FALSE);
  before = setup->request;
  total_bytes = MAX (total_bytes, setup->plan.least_bytes);
  ks_engine_setup_limit_copy (setup, total_bytes);
  setup->request = (ks_budget_request){.total_bytes = total_bytes};
  if (!plan_again (setup, error)) {
    setup->request = before;
    return FALSE;
  }
  setup->fixed_entries = FALSE;
  return TRUE;
}

gboolean
ks_engine_setup_count_target (KsEngineSetup *setup, guint64 entries, guint64 *out_total_bytes,
                              GError **error)
{
  ks_budget_request request = {.entries = entries};
  ks_budget_plan plan = {0};

  g_return_val_if_fail (setup != NULL && entries > 0, FALSE);
  if (!make_plan (setup, &request, &plan, error))
    return FALSE;
  *out_total_bytes = MAX (plan.total_bytes, plan.least_bytes);
  *out_total_bytes -= ks_model_get_repacked_bytes (setup->model);
  if (!setup->no_repack)
    *out_total_bytes += ks_model_count_repack_bytes (setup->model);
  if (setup->sight != NULL)
    *out_total_bytes += ks_sight_count_largest_bytes (setup->sight);
  return TRUE;
}

ks_timeline_params
ks_engine_setup_get_timeline_params (const KsEngineSetup *setup)
{
  ks_timeline_params params = ks_timeline_default_params (setup->model, setup->gate, setup->pool);

  params.evict = setup->evict;
  params.chunk = setup->plan.chunk;
  params.buffer = setup->plan.buffer;
  params.buffer_part = setup->fixed_buffer ? 0 : BUFFER_PART;
  params.n_keep = setup->fixed_entries ? setup->plan.n_keep : 0;
  if (setup->whole_entries > 0)
    params.n_keep = setup->whole_entries * setup->layout.n_layer * setup->layout.n_kv_head;
  params.force_evict = true;
  params.max_pos = setup->max_pos;
  params.max_logit_rows = 1;
  params.fastv = setup->fastv;
  return params;
}

ks_timeline *
ks_engine_setup_new_timeline (KsEngineSetup *setup, GError **error)
{
  ks_timeline_params params = ks_engine_setup_get_timeline_params (setup);
  ks_timeline *tl = NULL;
  ks_error err = {0};

  if (!ks_error_check (ks_timeline_new (setup->alloc, &params, &tl, &err), &err, error))
    return NULL;
  return tl;
}

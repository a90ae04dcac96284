/* ks-library-model.c - the model that is loaded, and which chat has it (the slot).
 * Loading: find the file and its gate on a task's thread (a large file's hash takes time), load on
 * the engine thread, then ask what the target is worth.  Another model: answers are stopped,
 * conversations dropped, then the former one is freed and the new one loaded; when that fails there
 * is none, and "model-error" says so.
 * Threads: main; job functions run on the engine thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#include "app/ks-error.h"
#include "app/ks-eye-options.h"
#include "app/ks-model-registry.h"

#include <string.h>
#include <unistd.h>

/* --- the slot --- */

/* The model that the chat asks for: its session's, unless the user has chosen one since. */
static const char *
get_wanted (KsLibrary *self, KsChat *chat)
{
  if (self->options == NULL && !self->own_choice && chat->settings->model != NULL)
    return chat->settings->model;
  return self->default_model;
}

static gboolean
has_wanted (KsLibrary *self, KsChat *chat)
{
  return g_strcmp0 (get_wanted (self, chat), self->model_wanted) == 0;
}

gboolean
ks_library_has_no_model (KsLibrary *self, KsChat *chat)
{
  return self->model_state == KS_MODEL_FAILED && has_wanted (self, chat);
}

static void start_load (KsLibrary *self);

static void
load_for (KsLibrary *self, KsChat *chat)
{
  g_free (self->model_wanted);
  self->model_wanted = g_strdup (get_wanted (self, chat));
  start_load (self);
}

static void
grant_next (KsLibrary *self)
{
  g_autoptr (KsChat) chat = NULL;

  if (self->active != NULL || self->model_state != KS_MODEL_READY || self->load_again ||
      g_queue_is_empty (self->waiting))
    return;
  if (!has_wanted (self, g_queue_peek_head (self->waiting))) {
    load_for (self, g_queue_peek_head (self->waiting));
    return;
  }
  chat = g_queue_pop_head (self->waiting);
  /* The pool serves one conversation: the other one's makes room and is read again later. */
  if (self->live != NULL && self->live != chat)
    ks_chat_drop_conversation (self->live);
  g_set_object (&self->live, chat);
  self->active = g_object_ref (chat);
  ks_library_apply_chat_target (self, chat);
  ks_chat_slot_granted (chat, NULL);
}

/* No model will come: whoever waits for one is told. */
static void
refuse_all (KsLibrary *self)
{
  KsChat *chat;

  while ((chat = g_queue_pop_head (self->waiting)) != NULL) {
    ks_chat_slot_granted (chat, self->model_failure);
    g_object_unref (chat);
  }
}

void
ks_library_want_slot (KsLibrary *self, KsChat *chat)
{
  g_queue_push_tail (self->waiting, g_object_ref (chat));
  if (self->model_state == KS_MODEL_FAILED && !has_wanted (self, chat))
    load_for (self, chat);
  else if (self->model_state == KS_MODEL_FAILED)
    refuse_all (self);
  else
    grant_next (self);
}

void
ks_library_release_slot (KsLibrary *self, KsChat *chat)
{
  if (g_queue_remove (self->waiting, chat))
    g_object_unref (chat);
  if (self->active == chat) {
    g_clear_object (&self->active);
    if (self->load_again && !self->closing)
      start_load (self);
    else
      grant_next (self);
  }
  ks_library_check_closed (self);
}

/* --- loading --- */

static void
set_model_state (KsLibrary *self, KsModelState state)
{
  if (self->model_state == state)
    return;
  self->model_state = state;
  ks_library_notify (self, "model-state");
}

static void
fail_load (KsLibrary *self, const GError *error, gboolean had_model)
{
  g_clear_error (&self->model_failure);
  self->model_failure = g_error_copy (error);
  if (had_model)
    g_prefix_error (&self->model_failure, "%s",
                    "The model could not be changed, and the former one is not loaded any more: ");
  g_clear_pointer (&self->model_name, g_free);
  g_clear_pointer (&self->idle_view, ks_memory_view_free);
  ks_library_notify (self, "model-name");
  ks_library_notify (self, "model-error");
  set_model_state (self, KS_MODEL_FAILED);
  refuse_all (self);
}

/* What the engine thread tells of a model that was loaded. */
typedef struct {
  guint64 target_bytes; /* in: wanted, 0 = choose; out: in force */
  gboolean strict;      /* in: leave the plan as the options made it */
  guint64 ram_bytes;
  guint64 min_bytes, max_bytes;
  KsMemoryView *view;
  KsEyes eyes;
} Facts;

static void
free_facts (gpointer data)
{
  Facts *facts = data;

  ks_memory_view_free (facts->view);
  g_free (facts);
}

/* A newcomer's target: the useful entries in every stream, so that short talks keep everything and
 * a document of some pages shows what choosing means, the copy of the weights, and for a model with
 * eyes a picture at its caps; never more than half of the machine's memory. */
static gboolean
choose_target (KsEngineSetup *setup, guint64 ram_bytes, guint64 *out, GError **error)
{
  const guint64 mib = 1024 * 1024;
  guint64 entries = ks_engine_setup_get_useful_entries (setup);

  if (!ks_engine_setup_count_target (setup, entries, out, error))
    return FALSE;
  *out = (*out + mib - 1) / mib * mib;
  *out = MIN (*out, MAX (ram_bytes / 2, setup->plan.least_bytes));
  return TRUE;
}

static KsMemoryView *
make_idle_view (KsEngineSetup *setup)
{
  KsMemoryView *view = g_new0 (KsMemoryView, 1);

  view->target_bytes = setup->plan.total_bytes;
  view->copy_bytes = ks_model_get_repacked_bytes (setup->model);
  view->weight_bytes = setup->plan.weight_bytes - view->copy_bytes + setup->plan.gate_bytes;
  view->scratch_bytes = setup->plan.scratch_bytes;
  view->eyes_bytes = setup->plan.other_bytes;
  view->kv_budget_bytes = setup->plan.kv_bytes;
  view->n_keep = setup->plan.n_keep;
  view->n_layer = setup->layout.n_layer;
  view->n_kv_head = setup->layout.n_kv_head;
  view->by_stream = g_new0 (guint32, (gsize)view->n_layer * view->n_kv_head);
  return view;
}

static gboolean
facts_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Facts *facts = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  guint n_ctx = ks_model_get_shape (setup->model)->n_ctx_train;
  guint64 whole = 0;

  if (!facts->strict && facts->target_bytes == 0 &&
      !choose_target (setup, facts->ram_bytes, &facts->target_bytes, error))
    return FALSE;
  facts->min_bytes =
      facts->strict ? setup->plan.least_bytes : ks_engine_setup_count_least_target (setup);
  facts->target_bytes = MAX (facts->target_bytes, facts->min_bytes);
  if (!facts->strict && (!ks_engine_setup_set_target (setup, facts->target_bytes, error) ||
                         !ks_engine_setup_make_copy (setup, job, error)))
    return FALSE;
  /* What the plan comes to is a little less than what was asked: pages are whole. */
  if (facts->strict)
    facts->target_bytes = MAX (setup->plan.total_bytes, facts->min_bytes);
  if (!ks_engine_setup_count_target (setup, MAX (n_ctx, 1), &whole, error))
    return FALSE;
  facts->max_bytes = MAX (MIN (whole, facts->ram_bytes / 4 * 3), facts->min_bytes);
  facts->max_bytes = MAX (facts->max_bytes, facts->target_bytes);
  facts->view = make_idle_view (setup);
  if (setup->sight != NULL)
    facts->eyes = ks_sight_get_eyes (setup->sight);
  facts->view->target_bytes = facts->target_bytes;
  return TRUE;
}

typedef struct {
  KsLibrary *library;
  Facts *facts;
} Loaded;

static void
finish_load (KsLibrary *self, const Facts *facts)
{
  self->min_bytes = self->least_bytes = facts->min_bytes;
  self->max_bytes = facts->max_bytes;
  self->target_bytes = self->default_target_bytes = facts->target_bytes;
  self->target_bent = FALSE;
  self->eyes = facts->eyes;
  ks_memory_view_free (self->idle_view);
  self->idle_view = ks_memory_view_copy (facts->view);
  g_clear_error (&self->model_failure);
  if (self->store_model)
    ks_settings_set_model (self->settings, self->model_wanted);
  self->store_model = FALSE;
  ks_library_notify (self, "model-name");
  ks_library_notify (self, "model-error");
  ks_library_notify (self, "target-bytes");
  set_model_state (self, KS_MODEL_READY);
}

static void
facts_cb (KsEngineJob *job, gpointer user_data)
{
  Loaded *loaded = user_data;
  KsLibrary *self = loaded->library;
  const GError *error = ks_engine_job_get_error (job);

  g_clear_object (&self->load_job);
  if (self->closing) {
    ks_library_check_closed (self);
  } else if (error != NULL) {
    fail_load (self, error, FALSE);
  } else {
    GHashTableIter iter;
    gpointer chat;

    finish_load (self, loaded->facts);
    g_hash_table_iter_init (&iter, self->chats);
    while (g_hash_table_iter_next (&iter, &chat, NULL))
      ks_chat_count_attachments (chat);
    if (self->load_again)
      start_load (self);
    else
      grant_next (self);
  }
  free_facts (loaded->facts);
  g_free (loaded);
  g_object_unref (self);
}

static guint64
get_ram_bytes (void)
{
  long n_page = sysconf (_SC_PHYS_PAGES), page_bytes = sysconf (_SC_PAGESIZE);

  return n_page > 0 && page_bytes > 0 ? (guint64)n_page * (guint64)page_bytes : (guint64)4 << 30;
}

/* The model is there: what is the target worth? */
static void
ask_facts (KsLibrary *self)
{
  Loaded *loaded = g_new0 (Loaded, 1);

  loaded->library = g_object_ref (self);
  loaded->facts = g_new0 (Facts, 1);
  loaded->facts->ram_bytes = get_ram_bytes ();
  loaded->facts->strict = self->options != NULL;
  if (self->options == NULL)
    loaded->facts->target_bytes = ks_library_read_saved_target (self);
  self->load_job = ks_engine_job_new (facts_job, loaded->facts, NULL);
  g_signal_connect (self->load_job, "finished", G_CALLBACK (facts_cb), loaded);
  ks_engine_push (self->engine, self->load_job);
}

static void
loaded_cb (KsEngineJob *job, gpointer user_data)
{
  g_autoptr (KsLibrary) self = user_data;
  const GError *error = ks_engine_job_get_error (job);

  g_clear_object (&self->load_job);
  if (self->closing)
    ks_library_check_closed (self);
  else if (error != NULL)
    fail_load (self, error, self->had_model);
  else
    ask_facts (self);
}

static void
notice_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  ks_library_notice (user_data, text);
}

/* Made on a task's thread from what is asked for. */
typedef struct {
  GVariant *mmproj_choices;
  char *wanted, *instead; /* instead: when a session's own model is not there */
  gboolean has_instead;
  KsEngineOptions *options;
  char *name, *notice; /* out */
} Choice;

static void
free_choice (gpointer data)
{
  Choice *choice = data;

  g_free (choice->wanted);
  g_free (choice->instead);
  g_free (choice->name);
  g_free (choice->notice);
  ks_engine_options_free (choice->options);
  g_clear_pointer (&choice->mmproj_choices, g_variant_unref);
  g_free (choice);
}

/* Sessions come from other machines, too: theirs need not be here. */
static char *
resolve (Choice *choice, KsModelRegistry *registry, GError **error)
{
  g_autoptr (GError) local = NULL;
  char *path =
      ks_model_registry_resolve (registry, choice->wanted, choice->has_instead ? &local : error);

  if (path != NULL && choice->has_instead && !g_file_test (path, G_FILE_TEST_EXISTS))
    g_clear_pointer (&path, g_free);
  if (path != NULL || !choice->has_instead)
    return path;
  path = ks_model_registry_resolve (registry, choice->instead, error);
  if (path != NULL)
    choice->notice = g_strdup_printf ("This session's model %s is not on this computer: another "
                                      "one answers.",
                                      choice->wanted);
  return path;
}

/* Without a hash its embeddings are kept in memory only. */
static void
find_eyes (Choice *choice, KsModelRegistry *registry, GCancellable *cancellable)
{
  KsEngineOptions *options = choice->options;

  ks_model_registry_set_mmproj_choices (registry, choice->mmproj_choices);
  options->mmproj_path = ks_model_registry_find_mmproj (registry, options->model_path);
  options->mmproj_was_found = TRUE;
  if (options->mmproj_path != NULL)
    options->mmproj_hash =
        ks_model_registry_hash (registry, options->mmproj_path, FALSE, cancellable, NULL);
}

/* States of conversations reach the disk only for weights that are known by their content. */
static void
find_hashes (KsEngineOptions *options, KsModelRegistry *registry, GCancellable *cancellable)
{
  if (options->snapshots == NULL)
    return;
  options->model_hash =
      ks_model_registry_hash (registry, options->model_path, FALSE, cancellable, NULL);
  if (options->gate_path != NULL)
    options->gate_hash =
        ks_model_registry_hash (registry, options->gate_path, FALSE, cancellable, NULL);
}

static void
find_model (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Choice *choice = data;
  g_autoptr (KsModelRegistry) registry = ks_model_registry_new (NULL, NULL);
  g_autoptr (KsModelEntry) entry = NULL;
  KsEngineOptions *options = choice->options;
  GError *error = NULL;

  if (options->model_path == NULL) {
    options->model_path = resolve (choice, registry, &error);
    if (options->model_path != NULL) {
      options->gate_path = ks_model_registry_find_gate (registry, options->model_path, cancellable);
      find_eyes (choice, registry, cancellable);
    }
  }
  if (error == NULL)
    entry = ks_model_registry_describe (registry, options->model_path, &error);
  if (error == NULL)
    find_hashes (options, registry, cancellable);
  if (error != NULL) {
    g_task_return_error (task, error);
    return;
  }
  choice->name = g_strdup (ks_model_entry_get_name (entry));
  g_task_return_boolean (task, TRUE);
}

static void
found_model_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (KsLibrary) self = user_data;
  Choice *choice = g_task_get_task_data (G_TASK (result));
  g_autoptr (GError) error = NULL;

  g_clear_object (&self->load_cancellable);
  if (!g_task_propagate_boolean (G_TASK (result), &error)) {
    if (!self->closing)
      fail_load (self, error, self->had_model);
    ks_library_check_closed (self);
    return;
  }
  if (self->closing) {
    ks_library_check_closed (self);
    return;
  }
  if (choice->notice != NULL)
    ks_library_notice (self, choice->notice);
  g_free (self->model_name);
  self->model_name = g_steal_pointer (&choice->name);
  g_free (self->model_path);
  self->model_path = g_canonicalize_filename (choice->options->model_path, NULL);
  self->load_job = ks_engine_load (self->engine, choice->options);
  g_signal_connect_object (self->load_job, "notice", G_CALLBACK (notice_cb), self, 0);
  g_signal_connect (self->load_job, "finished", G_CALLBACK (loaded_cb), g_object_ref (self));
}

/* The options of the command line, or what the settings say. */
static KsEngineOptions *
make_options (KsLibrary *self)
{
  g_autofree char *policy = NULL;
  KsEngineOptions *options;
  ks_policy value;

  if (self->options != NULL) {
    options = ks_engine_options_copy (self->options);
    if (self->own_choice) {
      g_clear_pointer (&options->model_path, g_free);
      g_clear_pointer (&options->gate_path, g_free);
      g_clear_pointer (&options->mmproj_path, g_free);
      g_clear_pointer (&options->mmproj_hash, g_free);
    }
    return options;
  }
  options = ks_engine_options_new ();
  options->n_thread = ks_settings_get_n_thread (self->settings);
  if (ks_settings_get_exact (self->settings))
    options->mode = KS_COMPUTE_EXACT;
  /* Room for this many says nothing yet: the target is set when the model is known. */
  options->budget.entries = 256;
  options->late_target = TRUE;
  policy = ks_settings_dup_policy (self->settings);
  if (policy != NULL && ks_policy_parse (policy, &value))
    options->policy = (int)value;
  return options;
}

static void
set_snapshots (KsLibrary *self, KsEngineOptions *options)
{
  g_clear_object (&options->snapshots);
  options->snapshots = ks_library_open_states (self);
  ks_snapshot_store_set_quota (options->snapshots,
                               ks_settings_get_snapshot_disk_bytes (self->settings));
  options->snapshot_memory_bytes = ks_settings_get_snapshot_memory_bytes (self->settings);
}

static void
start_load (KsLibrary *self)
{
  g_autoptr (GTask) task = NULL;
  Choice *choice = g_new0 (Choice, 1);

  g_clear_handle_id (&self->load_source, g_source_remove);
  self->load_again = FALSE;
  self->had_model = self->idle_view != NULL;
  if (self->live != NULL)
    ks_chat_drop_conversation (self->live);
  g_clear_object (&self->live);
  ks_library_clear_target (self);
  choice->wanted = g_strdup (self->model_wanted);
  choice->instead = g_strdup (self->default_model);
  choice->has_instead = g_strcmp0 (self->model_wanted, self->default_model) != 0;
  choice->options = make_options (self);
  if (self->options == NULL) {
    ks_eye_options_apply (choice->options, self->settings);
    ks_eye_options_prune (choice->options, self->settings);
  }
  ks_eye_options_set_store (choice->options, self->settings, ks_library_get_data_dir (self));
  set_snapshots (self, choice->options);
  choice->mmproj_choices = ks_settings_dup_mmproj_choices (self->settings);
  set_model_state (self, KS_MODEL_LOADING);
  self->load_cancellable = g_cancellable_new ();
  /* Without a source object: its thread may be the last to let go of a task. */
  task = g_task_new (NULL, self->load_cancellable, found_model_cb, g_object_ref (self));
  g_task_set_task_data (task, choice, free_choice);
  g_task_run_in_thread (task, find_model);
}

static gboolean
start_load_cb (gpointer data)
{
  KsLibrary *self = data;

  self->load_source = 0;
  start_load (self);
  return G_SOURCE_REMOVE;
}

/* A window is made at the same time and would come up half as fast: its first frame goes first. The
 * command line waits for nothing. */
void
ks_library_start_model (KsLibrary *self)
{
  if (self->options == NULL)
    self->default_model = ks_settings_dup_model (self->settings);
  self->model_wanted = g_strdup (self->default_model);
  if (self->options != NULL) {
    start_load (self);
    return;
  }
  set_model_state (self, KS_MODEL_LOADING);
  self->load_source =
      g_timeout_add_full (G_PRIORITY_LOW, KS_FIRST_FRAME_MS, start_load_cb, self, NULL);
}

void
ks_library_stop_model (KsLibrary *self)
{
  g_clear_handle_id (&self->load_source, g_source_remove);
  if (self->load_cancellable != NULL)
    g_cancellable_cancel (self->load_cancellable);
  if (self->load_job != NULL)
    ks_engine_job_cancel (self->load_job);
}

void
ks_library_load_model (KsLibrary *self, const char *model)
{
  g_return_if_fail (KS_IS_LIBRARY (self));
  if (self->closing)
    return;
  g_free (self->model_wanted);
  g_free (self->default_model);
  self->default_model = model != NULL ? g_strdup (model) : ks_settings_dup_model (self->settings);
  self->model_wanted = g_strdup (self->default_model);
  self->store_model = model != NULL;
  self->own_choice = TRUE;
  self->load_again = TRUE;
  if (self->active != NULL)
    ks_chat_stop (self->active); /* its end goes on */
  else if (self->load_job == NULL && self->load_cancellable == NULL)
    start_load (self);
}

void
ks_library_reload_model (KsLibrary *self)
{
  g_return_if_fail (KS_IS_LIBRARY (self));
  if (self->closing)
    return;
  self->load_again = TRUE;
  if (self->active != NULL)
    ks_chat_stop (self->active); /* its end goes on */
  else if (self->load_job == NULL && self->load_cancellable == NULL && self->load_source == 0)
    start_load (self);
}

void
ks_library_set_mmproj (KsLibrary *self, const char *model_path, const char *mmproj)
{
  g_autofree char *full = NULL;

  g_return_if_fail (KS_IS_LIBRARY (self) && model_path != NULL);
  full = g_canonicalize_filename (model_path, NULL);
  ks_settings_set_mmproj (self->settings, full, mmproj);
  if (g_strcmp0 (self->model_path, full) == 0)
    ks_library_reload_model (self);
}

/* --- what is asked --- */

KsModelState
ks_library_get_model_state (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), KS_MODEL_NONE);
  return self->model_state;
}

const char *
ks_library_get_model_name (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  return self->model_name;
}

const char *
ks_library_get_model_path (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  return self->model_name != NULL ? self->model_path : NULL;
}

const GError *
ks_library_get_model_failure (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  return self->model_failure;
}

const char *
ks_library_get_model_error (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  return self->model_failure != NULL ? self->model_failure->message : NULL;
}

gboolean
ks_library_can_see (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), FALSE);
  return self->eyes.sees;
}

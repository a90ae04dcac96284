/* ks-conversation-core.c - see ks-conversation-core.h.  Requests, answers, budgets; reading is in
 * ks-conversation-read.c, looking at pictures in ks-conversation-look.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-conversation-core.h"

#include "app/ks-conversation-core-internal.h"
#include "app/ks-error.h"

/* Tokens of a message from which on its state is kept before it is answered: another answer to it
 * then costs no reading. */
#define KEEP_MESSAGE_TOKENS 128u

KsConversationCore *
ks_conversation_core_new (void)
{
  KsConversationCore *core = g_new0 (KsConversationCore, 1);

  g_mutex_init (&core->lock);
  core->last_id = KS_TOKEN_NONE;
  core->loader = ks_picture_loader_new ();
  core->told_lost = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  core->runs = ks_core_new_runs ();
  core->seen = g_ptr_array_new ();
  core->answer_text = g_string_new (NULL);
  core->pins = ks_pin_list_new ();
  return core;
}

void
ks_conversation_core_free (KsConversationCore *core)
{
  if (core == NULL)
    return;
  ks_text_stream_free (core->stream);
  ks_sampler_free (core->sampler);
  ks_timeline_free (core->tl);
  if (core->setup != NULL)
    core->setup->n_user--;
  ks_memory_stats_free (core->shown_stats);
  ks_picture_loader_free (core->loader);
  g_hash_table_unref (core->told_lost);
  g_array_unref (core->runs);
  g_ptr_array_unref (core->seen);
  g_ptr_array_unref (core->pins);
  g_clear_pointer (&core->shown_pins, g_ptr_array_unref);
  g_string_free (core->answer_text, TRUE);
  g_clear_pointer (&core->held, g_bytes_unref);
  g_mutex_clear (&core->lock);
  g_free (core);
}

static gboolean
ensure_timeline (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, GError **error)
{
  KsEngineSetup *setup = ks_engine_get_setup (engine);

  if (core->tl != NULL)
    return TRUE;
  if (setup == NULL) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_NO_MODEL, "no model is loaded");
    return FALSE;
  }
  /* What a former conversation's pictures took from keys and values, and a former target from the
   * weights, comes again where the present one allows it. */
  if (setup->n_user == 0 && (!ks_engine_setup_forget_pictures (setup, error) ||
                             !ks_engine_setup_make_copy (setup, job, error)))
    return FALSE;
  core->tl = ks_engine_setup_new_timeline (setup, error);
  if (core->tl == NULL)
    return FALSE;
  core->setup = setup;
  core->evict = setup->evict;
  setup->n_user++;
  return TRUE;
}

void
ks_core_publish (KsConversationCore *core)
{
  KsMemoryStats *stats =
      ks_memory_stats_new (core->tl, core->evict.policy, core->setup->sight, core->seen);
  KsMemoryStats *old;

  stats->pins = core->shown_pins != NULL ? g_ptr_array_ref (core->shown_pins) : NULL;
  stats->pixel_bytes = ks_picture_loader_get_held_bytes (core->loader);
  stats->pixel_peak_bytes = ks_picture_loader_get_peak_bytes (core->loader);
  g_mutex_lock (&core->lock);
  old = core->shown_stats;
  core->shown_stats = stats;
  core->shown_answer = core->answer;
  g_mutex_unlock (&core->lock);
  ks_memory_stats_free (old);
}

static bool
stop_requested (void *user)
{
  return ks_engine_job_is_cancelled (user);
}

gboolean
ks_core_check_cancelled (KsEngineJob *job, GError **error)
{
  if (!ks_engine_job_is_cancelled (job))
    return TRUE;
  g_set_error_literal (error, KS_ENGINE_ERROR, KS_ERR_CANCELLED, "cancelled");
  return FALSE;
}

void
ks_core_tell_length (KsConversationCore *core, KsEngineJob *job, guint64 n_more)
{
  guint n_ctx = ks_model_get_shape (core->setup->model)->n_ctx_train;
  guint64 n_token = ks_timeline_get_seen (core->tl) + n_more;
  g_autofree char *text = NULL;

  if (core->told_length || n_token <= n_ctx)
    return;
  core->told_length = TRUE;
  text = g_strdup_printf ("This conversation takes %" G_GUINT64_FORMAT
                          " tokens, more than the %u the model was trained for: older parts move "
                          "closer together, and answers may get worse.",
                          n_token, n_ctx);
  ks_engine_job_emit_notice (job, text);
}

/* Shows a piece.  SentencePiece-style vocabularies begin an answer with a space that belongs to the
 * word, not to the text. */
static void
emit_text (KsConversationCore *core, KsEngineJob *job, const char *text, size_t n)
{
  if (core->at_start && n > 0) {
    core->at_start = FALSE;
    if (text[0] == ' ') {
      text++;
      n--;
    }
  }
  if (n > 0) {
    g_autofree char *valid = g_utf8_make_valid (text, (gssize)n); /* as it goes out */

    g_string_append (core->answer_text, valid);
  }
  ks_engine_job_emit_text (job, text, n);
}

static gboolean
push_piece (KsConversationCore *core, KsEngineJob *job, ks_token id, bool *out_stopped,
            GError **error)
{
  const char *text = NULL;
  size_t n_piece = 0, n_text = 0;
  const char *piece =
      ks_tokenizer_get_piece (ks_model_get_tokenizer (core->setup->model), id, false, &n_piece);
  ks_error err = {0};

  if (!ks_error_check (
          ks_text_stream_push (core->stream, piece, n_piece, &text, &n_text, out_stopped, &err),
          &err, error))
    return FALSE;
  emit_text (core, job, text, n_text);
  return TRUE;
}

/* From what the last pass told, else from all logits. */
static gboolean
pick_token (KsConversationCore *core, ks_token *out, GError **error)
{
  const float *logits;

  if (core->has_head) {
    core->has_head = FALSE; /* the next pass, cut short or not, writes over it */
    *out = ks_sampler_pick_wanted (core->sampler);
    return TRUE;
  }
  logits = ks_timeline_get_logits (core->tl);
  if (logits == NULL) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "there is nothing to answer");
    return FALSE;
  }
  *out = ks_sampler_pick (core->sampler, logits);
  return TRUE;
}

/* Picks and evaluates one token.  *out_end stays NONE while the answer goes on. */
static gboolean
generate_token (KsConversationCore *core, KsEngineJob *job, KsAnswerEnd *out_end, GError **error)
{
  ks_timeline_hooks hooks = {.stop = stop_requested, .user = job};
  ks_head_request head;
  ks_error err = {0};
  bool stopped = false;
  ks_token id;

  if (!pick_token (core, &id, error))
    return FALSE;
  if (ks_tokenizer_is_end (ks_model_get_tokenizer (core->setup->model), id)) {
    *out_end = KS_ANSWER_END;
    return TRUE;
  }
  hooks.head = ks_sampler_want (core->sampler, id, &head) ? &head : NULL;
  /* Evaluated before it is shown: a cancelled pass leaves no trace, the text must not either. */
  if (!ks_error_check (ks_timeline_eval (core->tl, &id, 1, &hooks, &err), &err, error))
    return FALSE;
  core->has_head = hooks.head != NULL;
  ks_sampler_accept (core->sampler, id);
  core->last_id = id;
  core->answer.n_answer++;
  if (!push_piece (core, job, id, &stopped, error))
    return FALSE;
  if (stopped)
    *out_end = KS_ANSWER_STOP;
  return TRUE;
}

/* An answer that broke off in an error stands for nothing. */
static void
keep_answer (KsConversationCore *core, KsEngineJob *job)
{
  KsAnswerEnd end = core->open_end;

  if (end == KS_ANSWER_FAILED)
    core->has_chain = FALSE;
  if (!core->has_chain)
    return;
  ks_turn_hash_answer (&core->asked_hash, core->answer_text->str, &core->chain);
  ks_core_keep (core, job, &core->chain, end == KS_ANSWER_LIMIT || end == KS_ANSWER_CANCELLED);
}

static gboolean
generate (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
          const KsAnswerOptions *options, GError **error)
{
  gint64 begin = g_get_monotonic_time ();
  KsAnswerEnd end = KS_ANSWER_NONE;
  g_autoptr (GError) local = NULL;

  for (guint n = 0; end == KS_ANSWER_NONE; n++) {
    if (n >= options->max_tokens) {
      end = KS_ANSWER_LIMIT;
      break;
    }
    ks_engine_run_urgent (engine);
    ks_core_pin_answer (core, job);
    if (!ks_core_check_cancelled (job, &local) || !generate_token (core, job, &end, &local))
      break;
    core->answer.answer_s = (double)(g_get_monotonic_time () - begin) / 1e6;
    ks_core_tell_length (core, job, 0);
    ks_core_publish (core);
  }
  if (local != NULL)
    end = ks_error_is_cancelled (local) ? KS_ANSWER_CANCELLED : KS_ANSWER_FAILED;
  if (!options->may_continue || (end != KS_ANSWER_LIMIT && end != KS_ANSWER_CANCELLED)) {
    const char *text = NULL;
    size_t n = 0;

    if (ks_text_stream_finish (core->stream, &text, &n, NULL) == KS_OK)
      emit_text (core, job, text, n);
    g_clear_pointer (&core->stream, ks_text_stream_free);
  }
  core->answer.end = core->open_end = end;
  ks_core_end_pin (core);
  ks_core_publish (core);
  keep_answer (core, job);
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

static gboolean
make_stream (KsConversationCore *core, const KsAnswerOptions *options, GError **error)
{
  gsize n_stop = options->stops != NULL ? g_strv_length (options->stops) : 0;
  ks_error err = {0};

  g_clear_pointer (&core->stream, ks_text_stream_free);
  return ks_error_check (ks_text_stream_new (core->setup->alloc,
                                             (const char *const *)options->stops, n_stop,
                                             &core->stream, &err),
                         &err, error);
}

/* Another draw in every turn, the same ones in every run.  What an answer that goes on has said so
 * far counts for the repetition penalty. */
static gboolean
make_sampler (KsConversationCore *core, const KsAnswerOptions *options, guint turn,
              guint32 answer_start, GError **error)
{
  const ks_token_info *tokens = ks_timeline_get_tokens (core->tl);
  guint32 n_vocab = ks_tokenizer_get_n_vocab (ks_model_get_tokenizer (core->setup->model));
  ks_sampler_params params = options->sampler;
  ks_error err = {0};

  params.seed += turn;
  core->has_head = FALSE;
  g_clear_pointer (&core->sampler, ks_sampler_free);
  if (!ks_error_check (ks_sampler_new (core->setup->alloc, &params, n_vocab, &core->sampler, &err),
                       &err, error))
    return FALSE;
  for (guint32 i = answer_start; i < ks_timeline_get_seen (core->tl); i++)
    ks_sampler_accept (core->sampler, tokens[i].id);
  return TRUE;
}

/* The message as it was read before, for another answer to it. */
static gboolean
recall_message (KsConversationCore *core, KsEngineJob *job, const KsTurnText *turn)
{
  g_autoptr (GPtrArray) pictures = ks_core_list_pictures (core, turn);
  gint64 begin = g_get_monotonic_time ();

  if (!ks_core_recall (core, job, &core->asked_hash, core->turn + 1, TRUE, pictures))
    return FALSE;
  core->answer.n_prompt = core->answer_start - core->turn_start;
  core->answer.prompt_s = (double)(g_get_monotonic_time () - begin) / 1e6;
  ks_engine_job_emit_progress (job, core->answer.n_prompt, core->answer.n_prompt);
  return TRUE;
}

static gboolean
read_or_recall (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, const char *system,
                const KsTurnText *turn, GError **error)
{
  guint32 seen = ks_timeline_get_seen (core->tl);
  KsTurnHash asked = {0};

  if (seen == 0 || (core->unread && core->turn_start == 0))
    ks_core_begin_chain (core, system);
  ks_core_forget_pins (core, core->turn);
  ks_core_want_pins (core, core->turn, turn);
  ks_core_tell_lost_texts (core, job, turn);
  if (core->has_chain)
    ks_turn_hash_ask (&core->chain, turn, &asked);
  core->asked_hash = asked;
  g_string_truncate (core->answer_text, 0);
  if (recall_message (core, job, turn))
    return TRUE;
  if (seen > 0 && ks_timeline_get_seen (core->tl) == 0) {
    g_set_error_literal (error, KS_ENGINE_ERROR, KS_ERR_NOMEM,
                         "there is not enough memory to go back to an earlier state");
    return FALSE;
  }
  if (!ks_core_read_message (core, engine, job, system, turn, error))
    return FALSE;
  core->asked_hash = asked; /* going back before the message has put the former one there */
  g_string_truncate (core->answer_text, 0);
  if (core->answer.n_prompt >= KEEP_MESSAGE_TOKENS)
    ks_core_keep (core, job, &asked, TRUE);
  return TRUE;
}

/* A recalled answer goes on with the draws and the held-back text that it stopped with. */
static gboolean
resume_answer (KsConversationCore *core, KsEngineJob *job, GError **error)
{
  g_autoptr (GBytes) held = g_steal_pointer (&core->held);
  const char *text = NULL;
  gconstpointer data;
  size_t n = 0, n_text = 0;
  bool stopped = false;
  ks_error err = {0};

  if (core->has_rng)
    ks_sampler_set_state (core->sampler, core->rng);
  core->has_rng = FALSE;
  if (held == NULL)
    return TRUE;
  data = g_bytes_get_data (held, &n);
  if (n == 0)
    return TRUE;
  if (!ks_error_check (ks_text_stream_push (core->stream, data, n, &text, &n_text, &stopped, &err),
                       &err, error))
    return FALSE;
  emit_text (core, job, text, n_text);
  return TRUE;
}

gboolean
ks_conversation_core_ask (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                          const char *system, const KsTurnText *turn,
                          const KsAnswerOptions *options, GError **error)
{
  if (!ensure_timeline (core, engine, job, error))
    return FALSE;
  core->answer = (KsAnswerInfo){0};
  if (!make_sampler (core, options, core->turn, G_MAXUINT32, error) ||
      !make_stream (core, options, error))
    return FALSE;
  if (!read_or_recall (core, engine, job, system, turn, error)) {
    ks_core_publish (core);
    return FALSE;
  }
  core->has_rng = FALSE; /* the draws begin with this answer */
  g_clear_pointer (&core->held, g_bytes_unref);
  return generate (core, engine, job, options, error);
}

gboolean
ks_conversation_core_continue (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                               const KsAnswerOptions *options, GError **error)
{
  if (core->tl == NULL || !core->answer_open || core->unread || core->open_end == KS_ANSWER_NONE ||
      core->open_end == KS_ANSWER_END || core->open_end == KS_ANSWER_STOP) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "there is no unfinished answer to continue");
    return FALSE;
  }
  core->answer = (KsAnswerInfo){0};
  if (core->sampler == NULL &&
      !make_sampler (core, options, core->turn - 1, core->answer_start, error))
    return FALSE;
  if (core->stream == NULL && !make_stream (core, options, error))
    return FALSE;
  return resume_answer (core, job, error) && generate (core, engine, job, options, error);
}

/* Back to a conversation without a word. */
static void
forget (KsConversationCore *core)
{
  ks_timeline_reset (core->tl);
  ks_core_cut_runs (core, 0);
  ks_core_forget_pins (core, 0);
  g_clear_pointer (&core->sampler, ks_sampler_free);
  g_clear_pointer (&core->stream, ks_text_stream_free);
  core->turn = 0;
  core->turn_start = core->answer_start = 0;
  core->last_id = KS_TOKEN_NONE;
  core->answer_open = core->unread = core->told_length = FALSE;
  core->open_end = KS_ANSWER_NONE;
  core->answer = (KsAnswerInfo){0};
  core->has_chain = core->has_rng = core->has_head = FALSE;
  g_clear_pointer (&core->held, g_bytes_unref);
  g_string_truncate (core->answer_text, 0);
}

static guint
recall_turns (KsConversationCore *core, KsEngineJob *job, GPtrArray *turns)
{
  g_autoptr (GPtrArray) pictures = g_ptr_array_new ();

  for (guint i = 0; i < turns->len; i++)
    g_ptr_array_extend (pictures, ((KsTurnText *)g_ptr_array_index (turns, i))->pictures, NULL,
                        NULL);
  return ks_core_recall_turns (core, job, turns, pictures);
}

/* Turns that no kept state holds; what they come to is kept. */
static gboolean
read_rest (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, const char *system,
           GPtrArray *turns, guint first, GError **error)
{
  const KsTurnText *last = g_ptr_array_index (turns, turns->len - 1);
  KsTurnHash asked = core->asked_hash;

  core->has_rng = FALSE;
  g_clear_pointer (&core->held, g_bytes_unref);
  if (!ks_core_read_turns (core, engine, job, system, turns, first, error))
    return FALSE;
  core->asked_hash = asked;
  g_string_assign (core->answer_text, last->answer);
  core->open_end = last->unfinished ? KS_ANSWER_CANCELLED : KS_ANSWER_END;
  core->at_start = last->answer[0] == '\0';
  ks_core_keep (core, job, &core->chain, last->unfinished);
  return TRUE;
}

gboolean
ks_conversation_core_restore (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                              const char *system, GPtrArray *turns, GError **error)
{
  gboolean ok = TRUE;
  guint n_kept;

  if (!ensure_timeline (core, engine, job, error))
    return FALSE;
  forget (core);
  ks_core_publish (core);
  if (turns->len == 0)
    return TRUE;
  for (guint i = 0; i < turns->len; i++) {
    ks_core_want_pins (core, i, g_ptr_array_index (turns, i));
    ks_core_tell_lost_texts (core, job, g_ptr_array_index (turns, i));
  }
  ks_core_begin_chain (core, system);
  n_kept = recall_turns (core, job, turns);
  if (n_kept < turns->len)
    ok = read_rest (core, engine, job, system, turns, n_kept, error);
  if (ok) {
    const KsTurnText *last = g_ptr_array_index (turns, turns->len - 1);

    core->at_start = last->answer[0] == '\0';
    core->open_end = last->unfinished ? KS_ANSWER_CANCELLED : KS_ANSWER_END;
  } else {
    forget (core);
  }
  ks_core_publish (core);
  return ok;
}

static gboolean
set_entries (KsConversationCore *core, guint64 entries, GError **error)
{
  const ks_kv_layout *layout = &core->setup->layout;
  guint64 n_stream = (guint64)layout->n_layer * layout->n_kv_head;
  guint64 n_page, kv_bytes;
  ks_error err = {0};

  if (entries > G_MAXUINT32) {
    g_set_error_literal (error, KS_ENGINE_ERROR, KS_ERR_ARG, "too many entries");
    return FALSE;
  }
  n_page = ks_kv_pages_for_entries (layout, entries * n_stream, core->setup->plan.chunk);
  kv_bytes =
      (n_page * layout->page_bytes + KS_KV_UNIT_BYTES - 1) / KS_KV_UNIT_BYTES * KS_KV_UNIT_BYTES;
  return ks_error_check (ks_timeline_set_budget (core->tl, kv_bytes, &err), &err, error) &&
         ks_error_check (ks_timeline_set_n_keep (core->tl, entries * n_stream, &err), &err, error);
}

static gboolean
fail_total (guint64 total_bytes, guint64 least_bytes, GError **error)
{
  char asked[KS_BUDGET_TEXT_BYTES], needed[KS_BUDGET_TEXT_BYTES];

  ks_budget_format_bytes (total_bytes, KS_BUDGET_DOWN, asked);
  ks_budget_format_bytes (least_bytes, KS_BUDGET_UP, needed);
  g_set_error (error, KS_ENGINE_ERROR, KS_ERR_BUDGET,
               "a memory target of %s is too small for this model with its eyes and the pictures "
               "it has read: set at least %s",
               asked, needed);
  return FALSE;
}

/* What is remembered goes before speed: the copy of the weights makes room first. */
gboolean
ks_core_set_total (KsConversationCore *core, guint64 total_bytes, GError **error)
{
  KsEngineSetup *setup = core->setup;
  guint64 needed_bytes = ks_engine_setup_get_needed_bytes (setup), other_bytes, least_bytes;
  ks_error err = {0};

  ks_engine_setup_limit_copy (setup, total_bytes);
  if (total_bytes < ks_timeline_get_least_total_budget (core->tl) + needed_bytes)
    ks_model_drop_repacked (setup->model);
  least_bytes = ks_timeline_get_least_total_budget (core->tl) + needed_bytes;
  if (needed_bytes > 0 && total_bytes < least_bytes)
    return fail_total (total_bytes, least_bytes, error);
  other_bytes = ks_engine_setup_share_spare (setup, total_bytes, least_bytes);
  if (!ks_error_check (ks_timeline_set_total_budget (core->tl, total_bytes - other_bytes, &err),
                       &err, error) ||
      !ks_error_check (ks_timeline_set_n_keep (core->tl, 0, &err), &err, error))
    return FALSE;
  setup->request = (ks_budget_request){.total_bytes = total_bytes};
  return TRUE;
}

gboolean
ks_conversation_core_set_budget (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                                 const ks_budget_request *request, GError **error)
{
  guint64 kv_bytes = request->kv_bytes / KS_KV_UNIT_BYTES * KS_KV_UNIT_BYTES;
  ks_error err = {0};
  gboolean ok;

  if (!ensure_timeline (core, engine, job, error))
    return FALSE;
  if (request->entries > 0)
    ok = set_entries (core, request->entries, error);
  else if (request->total_bytes > 0)
    ok = ks_core_set_total (core, request->total_bytes, error);
  else
    ok = ks_error_check (ks_timeline_set_budget (core->tl, kv_bytes, &err), &err, error) &&
         ks_error_check (ks_timeline_set_n_keep (core->tl, 0, &err), &err, error);
  ks_core_publish (core);
  return ok;
}

gboolean
ks_conversation_core_set_target (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                                 guint64 total_bytes, GError **error)
{
  ks_budget_request request = {0};

  if (!ensure_timeline (core, engine, job, error))
    return FALSE;
  request.total_bytes = MAX (total_bytes, ks_timeline_get_least_total_budget (core->tl) -
                                              ks_model_get_repacked_bytes (core->setup->model) +
                                              ks_engine_setup_get_needed_bytes (core->setup));
  return ks_conversation_core_set_budget (core, engine, job, &request, error);
}

gboolean
ks_conversation_core_set_policy (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                                 ks_policy policy, GError **error)
{
  guint64 total_bytes;
  ks_evict_params params;
  ks_error err = {0};

  if (!ensure_timeline (core, engine, job, error))
    return FALSE;
  total_bytes = core->setup->request.total_bytes;
  params = ks_engine_setup_make_evict_params (core->setup, policy);
  if (!ks_error_check (ks_timeline_set_policy (core->tl, &params, &err), &err, error))
    return FALSE;
  /* What the policy notes of passes is paid for by the target as well. */
  if (total_bytes > 0 && !ks_core_set_total (core, total_bytes, error)) {
    if (ks_timeline_set_policy (core->tl, &core->evict, NULL) != KS_OK)
      core->evict = params; /* it stays in force */
    return FALSE;
  }
  core->evict = params;
  if (ks_timeline_get_seen (core->tl) > 0)
    core->has_chain = FALSE; /* chosen by two policies, it stands for neither */
  ks_core_publish (core);
  return TRUE;
}

void
ks_conversation_core_set_session (KsConversationCore *core, gint64 session)
{
  core->session = session;
}

KsMemoryStats *
ks_conversation_core_dup_stats (KsConversationCore *core)
{
  KsMemoryStats *copy;

  g_mutex_lock (&core->lock);
  copy = core->shown_stats != NULL ? ks_memory_stats_copy (core->shown_stats) : NULL;
  g_mutex_unlock (&core->lock);
  return copy;
}

KsAnswerInfo
ks_conversation_core_get_answer (KsConversationCore *core)
{
  KsAnswerInfo answer;

  g_mutex_lock (&core->lock);
  answer = core->shown_answer;
  g_mutex_unlock (&core->lock);
  return answer;
}

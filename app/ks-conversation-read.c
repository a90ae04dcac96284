/* ks-conversation-read.c - messages become tokens and are read, chunk by chunk, so that a new
 * budget can take effect between two chunks.  A view of a picture is never cut here; a chunk holds
 * views of one picture at most, so that the embeddings of only one are needed at once.
 * Threads: engine thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-conversation-core-internal.h"

#include "app/ks-error.h"

#include <string.h>

#define MAX_PICTURES 255u /* of a turn: the engine counts them in a byte */

/* A list of tokens with the views among them; first of a run is a place in ids. */
typedef struct {
  const ks_token *ids;
  guint32 n;
  const KsViewRun *runs;
  guint n_run;
} Span;

static void
clear_run (gpointer data)
{
  g_clear_pointer (&((KsViewRun *)data)->picture, ks_picture_unref);
}

GArray *
ks_core_new_runs (void)
{
  GArray *runs = g_array_new (FALSE, TRUE, sizeof (KsViewRun));

  g_array_set_clear_func (runs, clear_run);
  return runs;
}

GPtrArray *
ks_core_list_pictures (KsConversationCore *core, const KsTurnText *turn)
{
  GPtrArray *pictures = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_picture_unref);

  for (guint i = 0; i < core->runs->len; i++)
    g_ptr_array_add (pictures, ks_picture_ref (g_array_index (core->runs, KsViewRun, i).picture));
  for (guint i = 0; turn != NULL && i < turn->pictures->len; i++)
    g_ptr_array_add (pictures, ks_picture_ref (g_ptr_array_index (turn->pictures, i)));
  return pictures;
}

/* How far a request has come: told as n_before and what was read of the chunk, of n_total. */
typedef struct {
  KsEngineJob *job;
  guint32 n_before, n_total;
} Reading;

static bool
stop_requested (void *user)
{
  return ks_engine_job_is_cancelled (((Reading *)user)->job);
}

/* A large view is one chunk for whoever reads it, and many passes for the timeline. */
static bool
chunk_progress (void *user, uint32_t n_done, uint32_t n)
{
  const Reading *reading = user;

  if (n_done < n)
    ks_engine_job_emit_progress (reading->job, reading->n_before + n_done, reading->n_total);
  return true;
}

/* --- what was seen --- */

static void
show_seen (KsConversationCore *core)
{
  GPtrArray *seen = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_seen_picture_free);
  const KsViewRun *last = NULL;

  for (guint i = 0; i < core->runs->len; i++) {
    const KsViewRun *run = &g_array_index (core->runs, KsViewRun, i);

    if (last == NULL || last->turn != run->turn || last->number != run->number)
      g_ptr_array_add (seen, ks_seen_picture_new (run->turn, run->number, run->picture));
    last = run;
  }
  g_clear_pointer (&core->seen, g_ptr_array_unref);
  core->seen = seen;
}

void
ks_core_set_runs (KsConversationCore *core, GArray *take_runs)
{
  g_array_unref (core->runs);
  core->runs = take_runs;
  show_seen (core);
}

void
ks_core_cut_runs (KsConversationCore *core, guint32 n_token)
{
  guint n = core->runs->len;

  while (n > 0 && g_array_index (core->runs, KsViewRun, n - 1).first >= n_token)
    n--;
  g_array_set_size (core->runs, n);
  show_seen (core);
}

/* The views of a span that begins at the timeline's token number base. */
static void
book_runs (KsConversationCore *core, const KsViewRun *runs, guint n_run, guint32 base)
{
  for (guint i = 0; i < n_run; i++) {
    KsViewRun run = runs[i];

    run.first += base;
    ks_picture_ref (run.picture);
    g_array_append_val (core->runs, run);
  }
  if (n_run > 0)
    show_seen (core);
}

/* --- reading tokens --- */

/* With the policy full a message is refused as a whole, before the first half of it has been read.
 */
static gboolean
check_room (KsConversationCore *core, guint32 n, GError **error)
{
  guint64 n_stream = (guint64)core->setup->layout.n_layer * core->setup->layout.n_kv_head;
  guint64 n_fit = ks_timeline_get_n_keep (core->tl) / MAX (n_stream, 1);
  guint64 n_seen = ks_timeline_get_seen (core->tl);

  if (core->evict.policy != KS_POLICY_FULL || n_seen + n <= n_fit)
    return TRUE;
  g_set_error (error, KS_ENGINE_ERROR, KS_ERR_BUDGET,
               "the conversation would have %" G_GUINT64_FORMAT
               " tokens, but only %" G_GUINT64_FORMAT
               " fit when everything is kept: give more memory, or choose a policy that evicts",
               n_seen + n, n_fit);
  return FALSE;
}

/* Where the chunk that begins at i ends, and how many views from run on it holds. */
static guint32
find_end (const Span *span, guint32 i, guint run, guint32 chunk, guint *out_n_run)
{
  guint32 end = MIN (chunk, span->n - i) + i;
  guint n = 0;

  for (; run + n < span->n_run && span->runs[run + n].first < end; n++) {
    const KsViewRun *at = &span->runs[run + n];
    gboolean is_whole = at->first + at->n_tok <= end;

    if (at->first > i && (!is_whole || (n > 0 && at->picture != span->runs[run].picture))) {
      end = at->first;
      break;
    }
    end = MAX (end, at->first + at->n_tok);
  }
  *out_n_run = n;
  return end;
}

static void
fill_visual (const KsViewRun *run, const ks_vision_embeds *e, guint32 base, ks_visual_run *out)
{
  const ks_vision_plan *plan = &e->plan;
  gsize view_floats = (gsize)run->n_tok * e->n_embd, deep_stride = (gsize)e->n_tok * e->n_embd;
  gboolean is_overview = plan->has_overview && run->view == plan->n_view - 1;
  const float *embd = e->data + run->view * view_floats;

  *out = (ks_visual_run){.first = run->first - base,
                         .n_tok = run->n_tok,
                         .embd = embd,
                         .deep = e->n_deep > 0 ? embd + deep_stride : NULL,
                         .deep_stride = deep_stride,
                         .n_deep = e->n_deep,
                         .grid_rows = plan->grid_rows,
                         .grid_cols = plan->grid_cols,
                         .places = e->places != NULL ? e->places + run->view * run->n_tok : NULL,
                         .is_overview = is_overview,
                         .attachment = (uint8_t)run->number,
                         .follows = run->follows,
                         .t_shift = run->t_shift};
  if (is_overview)
    return;
  out->row0 = (uint16_t)(run->view / plan->tile_cols * plan->grid_rows);
  out->col0 = (uint16_t)(run->view % plan->tile_cols * plan->grid_cols);
}

/* Tokens begin .. end - 1 of a span in one call, n_run views from run on among them. */
static gboolean
read_chunk (KsConversationCore *core, KsEngine *engine, Reading *reading, const Span *span,
            guint32 begin, guint32 end, guint run, guint n_run, GError **error)
{
  g_autofree ks_visual_run *visuals = g_new0 (ks_visual_run, MAX (n_run, 1));
  ks_timeline_hooks hooks = {.stop = stop_requested, .progress = chunk_progress, .user = reading};
  const ks_vision_embeds *embeds = NULL;
  ks_error err = {0};

  if (n_run > 0) {
    embeds = ks_core_get_embeds (core, engine, reading->job, span->runs[run].picture, error);
    if (embeds == NULL)
      return FALSE;
  }
  for (guint i = 0; i < n_run; i++)
    fill_visual (&span->runs[run + i], embeds, begin, &visuals[i]);
  return ks_error_check (ks_timeline_eval_visual (core->tl, span->ids + begin, end - begin, visuals,
                                                  n_run, &hooks, &err),
                         &err, error);
}

/* Feeds a span chunk by chunk.  Progress is told as n_before + what was read, of n_total. */
static gboolean
read_tokens (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, const Span *span,
             guint32 n_before, guint32 n_total, GError **error)
{
  guint32 chunk = MAX (core->setup->plan.chunk, 1);
  Reading reading = {.job = job, .n_total = n_total};
  guint run = 0;

  core->has_head = FALSE;
  ks_core_tell_length (core, job, n_total - n_before);
  for (guint32 i = 0; i < span->n;) {
    guint n_run = 0;
    guint32 end = find_end (span, i, run, chunk, &n_run);
    guint32 base = ks_timeline_get_seen (core->tl) - i;

    reading.n_before = n_before + i;
    ks_engine_run_urgent (engine);
    if (!ks_core_check_cancelled (job, error) ||
        !read_chunk (core, engine, &reading, span, i, end, run, n_run, error))
      return FALSE;
    book_runs (core, span->runs + run, n_run, base);
    run += n_run;
    i = end;
    ks_engine_job_emit_progress (job, n_before + i, n_total);
    ks_core_publish (core);
  }
  return TRUE;
}

/* The part [begin, end) of a span; runs get a copy with places in it, whose pictures are borrowed.
 */
static Span
cut_span (const Span *span, guint32 begin, guint32 end, GArray *runs)
{
  g_array_set_size (runs, 0);
  for (guint i = 0; i < span->n_run; i++) {
    KsViewRun run = span->runs[i];

    if (run.first < begin || run.first >= end)
      continue;
    run.first -= begin;
    g_array_append_val (runs, run);
  }
  return (Span){span->ids + begin, end - begin, (const KsViewRun *)runs->data, runs->len};
}

/* --- reading again --- */

/* Reads n tokens again, each under the turn it had. */
static gboolean
reread_tokens (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
               const ks_token_info *tokens, guint32 n, const GArray *runs, GError **error)
{
  g_autofree ks_token *ids = g_new (ks_token, MAX (n, 1));
  g_autoptr (GArray) part_runs = g_array_new (FALSE, TRUE, sizeof (KsViewRun));
  Span all = {ids, n, (const KsViewRun *)runs->data, runs->len};

  for (guint32 i = 0; i < n; i++)
    ids[i] = tokens[i].id;
  for (guint32 i = 0, n_turn; i < n; i += n_turn) {
    Span part;

    for (n_turn = 1; i + n_turn < n && tokens[i + n_turn].turn == tokens[i].turn;)
      n_turn++;
    part = cut_span (&all, i, i + n_turn, part_runs);
    ks_timeline_set_turn (core->tl, tokens[i].turn, 0);
    ks_core_pin_turn (core, job, tokens[i].turn, n_turn, part.runs, part.n_run);
    if (!read_tokens (core, engine, job, &part, i, n, error))
      return FALSE;
  }
  return TRUE;
}

/* The kept state before the message that is not wanted any more. */
static gboolean
recall_before (KsConversationCore *core, KsEngineJob *job)
{
  g_autoptr (GPtrArray) pictures = ks_core_list_pictures (core, NULL);

  return ks_core_recall (core, job, &core->chain, core->turn, FALSE, pictures);
}

/* Drops a message whose reading was broken off: the turns before it are read again, because what an
 * eviction has removed for it cannot be brought back otherwise. */
static gboolean
drop_unread (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, GError **error)
{
  guint32 n = MIN (core->turn_start, ks_timeline_get_seen (core->tl));
  g_autofree ks_token_info *tokens = NULL;
  g_autoptr (GArray) runs = NULL;

  if (!core->unread)
    return TRUE;
  if (n > 0 && recall_before (core, job))
    return TRUE;
  n = MIN (n, ks_timeline_get_seen (core->tl)); /* a state that could not be taken over halfway */
  ks_core_cut_runs (core, n);
  runs = core->runs;
  core->runs = ks_core_new_runs ();
  tokens = g_memdup2 (ks_timeline_get_tokens (core->tl), n * sizeof *tokens);
  ks_timeline_reset (core->tl);
  if (!reread_tokens (core, engine, job, tokens, n, runs, error)) {
    /* Broken off again: what is left is an honest beginning. */
    core->turn_start = ks_timeline_get_seen (core->tl);
    core->answer_open = FALSE;
    return FALSE;
  }
  core->unread = FALSE;
  return TRUE;
}

/* --- messages --- */

/* Views of a turn's pictures among ids, which the encoder has just appended. */
static void
add_runs (GArray *runs, const ks_chat_slots *slots, const KsTurnText *turn, guint number)
{
  for (size_t i = 0; i < slots->n; i++) {
    const ks_chat_slot *slot = &slots->items[i];
    KsViewRun run = {.first = slot->first,
                     .n_tok = slot->n_tok,
                     .view = slot->view,
                     .t_shift = slot->t_shift,
                     .follows = slot->follows,
                     .turn = number,
                     .number = slot->visual + 1};

    run.picture = ks_picture_ref (g_ptr_array_index (turn->pictures, slot->visual));
    g_array_append_val (runs, run);
  }
}

static gboolean
check_pictures (const KsTurnText *turn, GError **error)
{
  if (turn->pictures->len <= MAX_PICTURES)
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_TOO_LARGE,
               "a message takes at most %u pictures, pages and frames: send them in several",
               MAX_PICTURES);
  return FALSE;
}

/* System text (NULL = none) and message with its pictures. */
static gboolean
encode_messages (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, uint32_t options,
                 const char *system, const KsTurnText *turn, guint number, ks_token_list *ids,
                 GArray *runs, GError **error)
{
  const ks_model *model = core->setup->model;
  const ks_tokenizer *tok = ks_model_get_tokenizer (model);
  const ks_chat_template *tmpl = ks_engine_setup_get_chat_template (core->setup);
  g_autofree ks_chat_visual *visuals = g_new0 (ks_chat_visual, MAX (turn->pictures->len, 1));
  g_autoptr (KsTurnText) rest = NULL;
  ks_chat_message messages[2] = {0};
  ks_chat_slots slots;
  size_t n = 0;
  ks_error err = {0};
  gboolean ok;

  if (!check_pictures (turn, error) ||
      !ks_core_look (core, engine, job, turn, visuals, &rest, error))
    return FALSE;
  if (rest != NULL) {
    core->has_chain = FALSE; /* it stands for pictures that are not in it */
    turn = rest;
  }
  if (system != NULL)
    messages[n++] =
        (ks_chat_message){.role = KS_ROLE_SYSTEM, .text = system, .n_bytes = strlen (system)};
  messages[n] = (ks_chat_message){
      .role = KS_ROLE_USER, .text = turn->message, .n_bytes = strlen (turn->message)};
  if (turn->pictures->len == 0)
    return ks_core_check_target (core, job, error) &&
           ks_error_check (ks_chat_encode (tmpl, tok, messages, n + 1, options, ids, &err), &err,
                           error);
  messages[n].visuals = visuals;
  messages[n].n_visual = turn->pictures->len;
  ks_chat_slots_init (&slots, core->setup->alloc);
  ok = ks_error_check (ks_chat_encode_visual (tmpl, ks_sight_get_family (core->setup->sight), tok,
                                              messages, n + 1, options, ids, &slots, &err),
                       &err, error);
  if (ok)
    add_runs (runs, &slots, turn, number);
  ks_chat_slots_done (&slots);
  return ok;
}

/* What closes the previous answer, then the new message and the opening of the answer. */
static gboolean
encode_turn (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, gboolean first,
             const char *system, const KsTurnText *turn, guint number, ks_token_list *ids,
             GArray *runs, GError **error)
{
  const ks_model *model = core->setup->model;
  const ks_chat_template *tmpl = ks_engine_setup_get_chat_template (core->setup);
  uint32_t options = KS_CHAT_GENERATE | (first ? KS_CHAT_FIRST : 0);
  ks_error err = {0};

  if (core->answer_open &&
      !ks_error_check (
          ks_chat_encode_close (tmpl, ks_model_get_tokenizer (model), core->last_id, ids, &err),
          &err, error))
    return FALSE;
  return encode_messages (core, engine, job, options, first ? system : NULL, turn, number, ids,
                          runs, error);
}

static gboolean
check_length (gsize n, GError **error)
{
  if (n <= G_MAXUINT32 / 2)
    return TRUE;
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_TOO_LARGE, "the message is too long");
  return FALSE;
}

/* The message stands in the timeline: an answer may begin. */
static void
open_answer (KsConversationCore *core, const ks_token_list *ids, gint64 begin_us)
{
  core->unread = FALSE;
  core->answer_open = core->at_start = TRUE;
  core->answer_start = ks_timeline_get_seen (core->tl);
  core->last_id = ids->n > 0 ? ids->ids[ids->n - 1] : KS_TOKEN_NONE;
  core->turn++;
  core->answer.n_prompt = (guint)ids->n;
  core->answer.prompt_s = (double)(g_get_monotonic_time () - begin_us) / 1e6;
}

gboolean
ks_core_read_message (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                      const char *system, const KsTurnText *turn, GError **error)
{
  gint64 begin = g_get_monotonic_time ();
  guint number = MIN (core->turn, G_MAXUINT16);
  g_autoptr (GArray) runs = ks_core_new_runs ();
  ks_token_list ids;
  gboolean ok;

  ks_token_list_init (&ids, core->setup->alloc);
  core->asked = turn->pictures;
  ok = drop_unread (core, engine, job, error) &&
       encode_turn (core, engine, job, ks_timeline_get_seen (core->tl) == 0, system, turn, number,
                    &ids, runs, error) &&
       check_length (ids.n, error);
  if (ok) {
    core->turn_start = ks_timeline_get_seen (core->tl);
    ok = check_room (core, (guint32)ids.n, error);
  }
  if (ok) {
    Span span = {ids.ids, (guint32)ids.n, (const KsViewRun *)runs->data, runs->len};

    core->unread = TRUE;
    core->open_end = KS_ANSWER_NONE;
    ks_timeline_set_turn (core->tl, (uint16_t)number, 0);
    ks_core_pin_turn (core, job, number, span.n, span.runs, span.n_run);
    ok = read_tokens (core, engine, job, &span, 0, span.n, error);
  }
  core->asked = NULL;
  if (ok)
    open_answer (core, &ids, begin);
  ks_token_list_done (&ids);
  return ok;
}

/* --- stored turns --- */

/* The tokens of all turns, one list after the other. */
typedef struct {
  ks_token_list ids;
  GArray *runs;
  guint first;            /* turn */
  guint32 *begins, *ends; /* where a turn's answer begins, where the turn ends */
} Script;

static gboolean
write_script (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, const char *system,
              GPtrArray *turns, Script *script, GError **error)
{
  const ks_tokenizer *tok = ks_model_get_tokenizer (core->setup->model);
  ks_token_list *ids = &script->ids;
  ks_error err = {0};

  for (guint i = script->first; i < turns->len; i++) {
    const KsTurnText *turn = g_ptr_array_index (turns, i);

    core->answer_open = i > 0;
    if (ids->n > 0)
      core->last_id = ids->ids[ids->n - 1];
    if (!ks_core_check_cancelled (job, error) ||
        !encode_turn (core, engine, job, i == 0, system, turn, MIN (i, G_MAXUINT16), ids,
                      script->runs, error))
      return FALSE;
    script->begins[i] = (guint32)MIN (ids->n, G_MAXUINT32);
    /* Apart from its frame, as the model wrote it: behind the opening, not as one run of text. */
    if (!ks_error_check (
            ks_tokenizer_encode (tok, turn->answer, strlen (turn->answer), 0, ids, &err), &err,
            error) ||
        !check_length (ids->n, error))
      return FALSE;
    script->ends[i] = (guint32)ids->n;
  }
  return TRUE;
}

static gboolean
read_script (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, const Script *script,
             guint n_turn, GError **error)
{
  Span all = {script->ids.ids, (guint32)script->ids.n, (const KsViewRun *)script->runs->data,
              script->runs->len};
  g_autoptr (GArray) runs = g_array_new (FALSE, TRUE, sizeof (KsViewRun));

  if (!check_room (core, all.n, error))
    return FALSE;
  ks_engine_job_emit_progress (job, 0, all.n);
  for (guint32 i = script->first, begin = 0; i < n_turn; begin = script->ends[i], i++) {
    Span part = cut_span (&all, begin, script->ends[i], runs);

    ks_timeline_set_turn (core->tl, (uint16_t)MIN (i, G_MAXUINT16), 0);
    ks_core_pin_turn (core, job, MIN (i, G_MAXUINT16), part.n, part.runs, part.n_run);
    if (!read_tokens (core, engine, job, &part, begin, all.n, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
ks_core_read_turns (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                    const char *system, GPtrArray *turns, guint first, GError **error)
{
  g_autoptr (GArray) runs = ks_core_new_runs ();
  g_autoptr (GPtrArray) asked = g_ptr_array_new ();
  g_autofree guint32 *begins = g_new0 (guint32, turns->len), *ends = g_new0 (guint32, turns->len);
  Script script = {.runs = runs, .first = first, .begins = begins, .ends = ends};
  guint32 base = ks_timeline_get_seen (core->tl);
  gboolean ok;

  for (guint i = first; i < turns->len; i++)
    g_ptr_array_extend (asked, ((KsTurnText *)g_ptr_array_index (turns, i))->pictures, NULL, NULL);
  ks_token_list_init (&script.ids, core->setup->alloc);
  core->asked = asked;
  core->rereading = TRUE;
  ok = write_script (core, engine, job, system, turns, &script, error) &&
       read_script (core, engine, job, &script, turns->len, error);
  core->asked = NULL;
  core->rereading = FALSE;
  if (ok) {
    core->turn = turns->len;
    core->answer_open = TRUE;
    core->turn_start = base + (turns->len - 1 > first ? ends[turns->len - 2] : 0);
    core->answer_start = base + begins[turns->len - 1];
    core->last_id = script.ids.ids[script.ids.n - 1];
  }
  ks_token_list_done (&script.ids);
  return ok;
}

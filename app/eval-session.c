/* eval-session.c - see eval-session.h.  An answer's tokens are the likeliest ones; it ends where
 * the model ends it, at the limit, or when its tail is one block three times over. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-session.h"

#include "app/eval-session-internal.h"
#include "app/eval-stats.h"
#include "app/ks-error.h"

#include <glib/gstdio.h>
#include <string.h>

#define MAX_BLOCK 128u
#define MIN_REPEATED 24u /* tokens in all: "000" and "..." are no loop yet */

ks_timeline *
ks_eval_session_get_timeline (KsEvalSession *session)
{
  return session->tl;
}

guint
ks_eval_session_count (const char *text, gpointer user)
{
  KsEngineSetup *setup = user;
  ks_token_list list;
  guint n;

  ks_token_list_init (&list, setup->alloc);
  if (ks_tokenizer_encode (ks_model_get_tokenizer (setup->model), text, strlen (text), 0, &list,
                           NULL) != KS_OK)
    list.n = G_MAXUINT32; /* fits nowhere */
  n = (guint)MIN (list.n, G_MAXUINT32);
  ks_token_list_done (&list);
  return n;
}

/* --- opening --- */

static gboolean
check_budget (const KsEvalCell *cell, const ks_evict_params *evict, GError **error)
{
  gboolean keeps_all = ks_policy_never_evicts (evict->policy);

  if (keeps_all != (cell->entries == 0)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 keeps_all ? "the policy %s has no budget of entries"
                           : "the policy %s needs a budget of at least one entry",
                 cell->policy);
    return FALSE;
  }
  if (strcmp (cell->budget, "fixed") == 0 || strcmp (cell->budget, "text") == 0)
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "there is no kind of budget '%s': it is fixed or text", cell->budget);
  return FALSE;
}

/* What stands behind a plus sign is about pictures and was decided when the model was loaded. */
static gboolean
parse_policy (const KsEvalCell *cell, ks_evict_params *out, GError **error)
{
  g_autofree char *text = g_strndup (cell->policy, strcspn (cell->policy, "+"));

  return ks_eval_policy_parse (text, cell->mode, out, error);
}

KsEvalSession *
ks_eval_session_new (KsEngineSetup *setup, const KsEvalCell *cell, GError **error)
{
  ks_timeline_params params = ks_engine_setup_get_timeline_params (setup);
  KsEvalSession *session;
  ks_timeline *tl = NULL;
  ks_error err = {0};

  if (!parse_policy (cell, &params.evict, error) || !check_budget (cell, &params.evict, error))
    return NULL;
  params.evict.seed = cell->seed;
  params.n_keep = cell->entries * setup->layout.n_layer * setup->layout.n_kv_head;
  params.max_logit_rows = params.chunk;
  if (!ks_error_check (ks_timeline_new (setup->alloc, &params, &tl, &err), &err, error))
    return NULL;
  session = g_new0 (KsEvalSession, 1);
  session->setup = setup;
  session->cell = *cell;
  session->tl = tl;
  session->loader = ks_picture_loader_new ();
  session->n_vocab = ks_tokenizer_get_n_vocab (ks_model_get_tokenizer (setup->model));
  session->n_stream = (guint64)setup->layout.n_layer * setup->layout.n_kv_head;
  setup->n_user++;
  return session;
}

void
ks_eval_session_free (KsEvalSession *session)
{
  if (session == NULL)
    return;
  ks_timeline_free (session->tl);
  session->setup->n_user--;
  ks_picture_loader_free (session->loader);
  if (session->folder != NULL)
    g_rmdir (session->folder);
  g_free (session->folder);
  g_free (session);
}

/* --- reading --- */

static bool
stop_cb (void *user)
{
  const KsEvalSession *session = user;

  return session->ask->job != NULL && ks_engine_job_is_cancelled (session->ask->job);
}

static void
evicted_cb (void *user, const ks_evict_event *event, const ks_kv_table *table)
{
  KsEvalSession *session = user;

  session->n_peak = MAX (session->n_peak, event->n_before);
}

/* M and the text so far. */
static gboolean
widen_budget (KsEvalSession *session, const ks_token *ids, guint n, GError **error)
{
  ks_error err = {0};

  for (guint i = 0; i < n; i++)
    session->n_text += ids[i] != KS_TOKEN_NONE;
  if (session->cell.entries == 0 || strcmp (session->cell.budget, "text") != 0)
    return TRUE;
  return ks_error_check (
      ks_timeline_set_n_keep (session->tl,
                              (session->cell.entries + session->n_text) * session->n_stream, &err),
      &err, error);
}

/* All of it in one call; the likeliest next token is known then. */
static gboolean
read_ids (KsEvalSession *session, const ks_token *ids, guint n, const ks_visual_run *runs,
          guint n_run, GError **error)
{
  float logit;
  ks_head_request head = {.k = 1, .out_ids = &session->best, .out_logits = &logit};
  ks_timeline_hooks hooks = {
      .head = &head, .evicted = evicted_cb, .stop = stop_cb, .user = session};
  ks_error err = {0};

  if (!widen_budget (session, ids, n, error) ||
      !ks_error_check (ks_timeline_eval_visual (session->tl, ids, n, runs, n_run, &hooks, &err),
                       &err, error))
    return FALSE;
  session->n_peak =
      MAX (session->n_peak, ks_kv_table_get_n_entries (ks_timeline_get_table (session->tl)));
  return TRUE;
}

/* What closes the last answer, the message, and a given reply or the opening of an answer. */
static gboolean
encode_turn (KsEvalSession *session, const KsEvalTurn *turn, const KsEvalLooks *looks,
             ks_token_list *ids, ks_chat_slots *slots, GError **error)
{
  KsEngineSetup *setup = session->setup;
  const ks_tokenizer *tok = ks_model_get_tokenizer (setup->model);
  const ks_chat_template *tmpl = ks_engine_setup_get_chat_template (setup);
  gboolean is_first = ks_timeline_get_seen (session->tl) == 0;
  uint32_t options = (is_first ? KS_CHAT_FIRST : 0) | (turn->reply == NULL ? KS_CHAT_GENERATE : 0);
  ks_chat_message messages[2] = {
      {.role = KS_ROLE_USER, .text = turn->text, .n_bytes = strlen (turn->text)}};
  size_t n = 1;
  ks_error err = {0};

  messages[0].visuals = looks->visuals;
  messages[0].n_visual = looks->n;
  if (turn->reply != NULL)
    messages[n++] = (ks_chat_message){
        .role = KS_ROLE_ASSISTANT, .text = turn->reply, .n_bytes = strlen (turn->reply)};
  if (session->answer_open &&
      !ks_error_check (ks_chat_encode_close (tmpl, tok, session->last_id, ids, &err), &err, error))
    return FALSE;
  if (looks->n == 0)
    return ks_error_check (ks_chat_encode (tmpl, tok, messages, n, options, ids, &err), &err,
                           error);
  return ks_error_check (ks_chat_encode_visual (tmpl, ks_sight_get_family (setup->sight), tok,
                                                messages, n, options, ids, slots, &err),
                         &err, error);
}

static gboolean
read_turn (KsEvalSession *session, const KsEvalTurn *turn, GError **error)
{
  gint64 begin = g_get_monotonic_time ();
  KsEvalLooks looks;
  ks_token_list ids;
  ks_chat_slots slots;
  gboolean ok;

  if (!ks_eval_look (session, turn, &looks, error))
    return FALSE;
  ks_token_list_init (&ids, session->setup->alloc);
  ks_chat_slots_init (&slots, session->setup->alloc);
  ks_timeline_set_turn (session->tl, (uint16_t)MIN (session->turn, G_MAXUINT16), 0);
  ok = encode_turn (session, turn, &looks, &ids, &slots, error);
  if (ok) {
    g_autofree ks_visual_run *runs = ks_eval_looks_make_runs (&looks, &slots);

    ok = read_ids (session, ids.ids, (guint)ids.n, runs, (guint)slots.n, error);
  }
  if (ok) {
    session->answer_open = turn->reply == NULL;
    session->last_id = ids.n > 0 ? ids.ids[ids.n - 1] : KS_TOKEN_NONE;
    session->n_prompt += (guint)ids.n;
    session->prompt_s += (double)(g_get_monotonic_time () - begin) / 1e6;
  }
  ks_chat_slots_done (&slots);
  ks_token_list_done (&ids);
  ks_eval_looks_clear (&looks);
  return ok;
}

/* --- answering --- */

/* The tail is one block, three times or more. */
static gboolean
is_loop (const GArray *ids)
{
  const ks_token *all = (const ks_token *)ids->data;

  for (guint n = 1; n <= MAX_BLOCK && 3 * n <= ids->len; n++) {
    guint times = MAX (3, (MIN_REPEATED + n - 1) / n), span = times * n;

    if (span <= ids->len &&
        memcmp (all + ids->len - span, all + ids->len - span + n, (span - n) * sizeof *all) == 0)
      return TRUE;
  }
  return FALSE;
}

static char *
decode (KsEvalSession *session, const GArray *ids, GError **error)
{
  const ks_tokenizer *tok = ks_model_get_tokenizer (session->setup->model);
  char *text = NULL, *valid;
  size_t n = 0;
  ks_error err = {0};

  if (!ks_error_check (ks_tokenizer_decode (tok, session->setup->alloc, (const ks_token *)ids->data,
                                            ids->len, false, &text, &n, &err),
                       &err, error))
    return NULL;
  valid = g_utf8_make_valid (text, (gssize)n);
  ks_mem_free (text);
  return valid;
}

static gboolean
generate (KsEvalSession *session, KsEvalRow *row, GError **error)
{
  const ks_tokenizer *tok = ks_model_get_tokenizer (session->setup->model);
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (ks_token));
  gint64 begin = g_get_monotonic_time ();

  for (;;) {
    ks_token id = session->best;

    if (ks_tokenizer_is_end (tok, id))
      row->stop = g_intern_static_string ("eos");
    else if (ids->len >= session->ask->max_new)
      row->stop = g_intern_static_string ("length");
    else if (is_loop (ids))
      row->stop = g_intern_static_string ("repeat");
    if (row->stop[0] != '\0')
      break;
    if (!read_ids (session, &id, 1, NULL, 0, error))
      return FALSE;
    g_array_append_val (ids, id);
    session->last_id = id;
  }
  row->n_new = ids->len;
  row->answer_s = (double)(g_get_monotonic_time () - begin) / 1e6;
  g_free (row->prediction);
  row->prediction = decode (session, ids, error);
  return row->prediction != NULL;
}

/* --- references in place of answers --- */

static void
score_next (KsEvalSession *session, const float *logits, ks_token wanted)
{
  guint best = ks_eval_find_best (logits, session->n_vocab);

  session->nll += ks_eval_log_sum_exp (logits, session->n_vocab) - (double)logits[wanted];
  session->n_scored++;
  g_string_append_printf (session->picks, "%s%u", session->picks->len > 0 ? " " : "", best);
}

static void
logits_cb (void *user, uint32_t row, const float *logits)
{
  KsEvalSession *session = user;

  if (row + 1 < session->n_wanted)
    score_next (session, logits, session->wanted[row + 1]);
}

static gboolean
read_reference (KsEvalSession *session, const ks_token *ids, guint n, GError **error)
{
  guint chunk = ks_timeline_get_chunk (session->tl);
  const float *logits = ks_timeline_get_logits (session->tl);
  ks_timeline_hooks hooks = {
      .logits = logits_cb, .evicted = evicted_cb, .stop = stop_cb, .user = session};
  ks_error err = {0};

  if (n > 0 && logits != NULL)
    score_next (session, logits, ids[0]);
  for (guint i = 0; i < n; i += chunk) {
    session->wanted = ids + i;
    session->n_wanted = n - i;
    if (!widen_budget (session, ids + i, MIN (chunk, n - i), error) ||
        !ks_error_check (ks_timeline_eval (session->tl, ids + i, MIN (chunk, n - i), &hooks, &err),
                         &err, error))
      return FALSE;
  }
  if (n > 0)
    session->last_id = ids[n - 1];
  return TRUE;
}

static gboolean
force (KsEvalSession *session, const KsEvalTurn *turn, KsEvalRow *row, GError **error)
{
  const char *reference = turn->expect[0] != NULL ? turn->expect[0] : "";
  ks_token_list ids;
  ks_error err = {0};
  gboolean ok;

  session->nll = 0;
  session->n_scored = 0;
  session->picks = g_string_new (NULL);
  ks_token_list_init (&ids, session->setup->alloc);
  ok = ks_error_check (ks_tokenizer_encode (ks_model_get_tokenizer (session->setup->model),
                                            reference, strlen (reference), 0, &ids, &err),
                       &err, error) &&
       read_reference (session, ids.ids, (guint)ids.n, error);
  ks_token_list_done (&ids);
  ks_eval_row_set_value (row, "nll", session->nll);
  ks_eval_row_set_value (row, "n_scored", session->n_scored);
  g_free (row->prediction);
  row->prediction = g_string_free (session->picks, FALSE);
  session->picks = NULL;
  return ok;
}

/* --- items --- */

static KsEvalRow *
make_row (KsEvalSession *session, const KsEvalItem *item, const KsEvalTurn *turn)
{
  g_autofree char *bench = ks_eval_item_make_bench (item, session->ask->forced);
  KsEvalRow *row = ks_eval_row_new (&session->cell, bench, item->part, item->id, session->turn);

  row->group = g_strdup (item->group);
  if (!session->ask->forced)
    row->expect = g_strdupv (turn->expect);
  row->options = g_strdupv (item->options);
  row->n_prompt = session->n_prompt;
  row->prompt_s = session->prompt_s;
  session->n_prompt = 0;
  session->prompt_s = 0;
  return row;
}

static gboolean
ask_turn (KsEvalSession *session, const KsEvalItem *item, const KsEvalTurn *turn, GPtrArray *rows,
          GError **error)
{
  const ks_kv_layout *layout = &session->setup->layout;
  g_autoptr (KsEvalRow) row = NULL;

  if (!read_turn (session, turn, error))
    return FALSE;
  if (turn->reply != NULL)
    return TRUE;
  row = make_row (session, item, turn);
  if (session->ask->forced ? !force (session, turn, row, error) : !generate (session, row, error))
    return FALSE;
  row->n_peak = session->n_peak;
  row->peak_bytes = session->n_peak * layout->page_bytes / layout->page_entries;
  g_ptr_array_add (rows, g_steal_pointer (&row));
  return TRUE;
}

gboolean
ks_eval_session_ask (KsEvalSession *session, const KsEvalItem *item, const KsEvalAsk *ask,
                     GPtrArray *rows, GError **error)
{
  ks_error err = {0};

  ks_timeline_reset (session->tl);
  if (session->cell.entries > 0 && strcmp (session->cell.budget, "text") == 0 &&
      !ks_error_check (
          ks_timeline_set_n_keep (session->tl, session->cell.entries * session->n_stream, &err),
          &err, error))
    return FALSE;
  session->ask = ask;
  session->answer_open = FALSE;
  session->last_id = KS_TOKEN_NONE;
  session->n_text = session->n_prompt = 0;
  session->prompt_s = 0;
  session->n_peak = 0;
  for (session->turn = 0; session->turn < item->turns->len; session->turn++)
    if (!ask_turn (session, item, g_ptr_array_index (item->turns, session->turn), rows, error))
      return FALSE;
  return TRUE;
}

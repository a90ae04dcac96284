/* ks-conversation-pin.c - what a user asked to keep: ranges of tokens that no eviction takes.
 * A turn's pins are set ahead of its tokens, so that nothing of it goes while it is read; an answer
 * that grows takes the pin of its turn along in steps.  Pins are counted inside the budget: what
 * does not fit is refused when it is asked for, and told once when it is read.
 * Threads: engine thread.  Source: docs/method.md, section 4. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-conversation-core-internal.h"

#include "app/ks-error.h"
#include "app/ks-notices.h"

#include <string.h>

#define STEP_TOKENS 32u /* by which the pin of an answer grows */
#define GAP_TOKENS 16u  /* between views of a file that are pinned as one */

/* --- ranges --- */

static void
add_range (GArray *ranges, guint32 begin, guint32 end)
{
  ks_pos_range range = {begin, end};
  ks_pos_range *last =
      ranges->len > 0 ? &g_array_index (ranges, ks_pos_range, ranges->len - 1) : NULL;

  if (last != NULL && begin >= last->begin && begin <= last->end + GAP_TOKENS)
    last->end = MAX (last->end, end);
  else if (begin < end)
    g_array_append_val (ranges, range);
}

/* Views of a file among runs, whose first token is the timeline's number base. */
static void
add_views (GArray *ranges, const KsViewRun *runs, guint n_run, guint32 base, const KsPin *pin)
{
  for (guint i = 0; i < n_run; i++)
    if (runs[i].turn == pin->turn && g_str_equal (runs[i].picture->hash, pin->hash))
      add_range (ranges, base + runs[i].first, base + runs[i].first + runs[i].n_tok);
}

/* Of what stands in the timeline. */
static void
add_ranges (KsConversationCore *core, GArray *ranges, const KsPin *pin)
{
  const ks_token_info *tokens = ks_timeline_get_tokens (core->tl);
  guint32 seen = ks_timeline_get_seen (core->tl), begin = 0, end;

  if (pin->hash != NULL) {
    add_views (ranges, (const KsViewRun *)core->runs->data, core->runs->len, 0, pin);
    return;
  }
  while (begin < seen && tokens[begin].turn != pin->turn)
    begin++;
  for (end = begin; end < seen && tokens[end].turn == pin->turn;)
    end++;
  add_range (ranges, begin, end);
}

static GArray *
ranges_new (void)
{
  return g_array_new (FALSE, FALSE, sizeof (ks_pos_range));
}

static gboolean
pin_ranges (KsConversationCore *core, const GArray *ranges, GError **error)
{
  for (guint i = 0; i < ranges->len; i++) {
    const ks_pos_range *range = &g_array_index (ranges, ks_pos_range, i);
    ks_error err = {0};

    if (!ks_error_check (ks_timeline_pin (core->tl, range->begin, range->end, &err), &err, error))
      return FALSE;
  }
  return TRUE;
}

static int
compare_ranges (gconstpointer a, gconstpointer b)
{
  const ks_pos_range *left = a, *right = b;

  return (left->begin > right->begin) - (left->begin < right->begin);
}

/* Whole, also where some of it was let go: it comes back when the session is read again. */
static gboolean
check_room (KsConversationCore *core, GError **error)
{
  guint64 n_stream = (guint64)core->setup->layout.n_layer * core->setup->layout.n_kv_head;
  guint64 n_fit = ks_timeline_get_n_keep (core->tl) / MAX (n_stream, 1), n_token = 0;
  g_autoptr (GArray) ranges = ranges_new ();
  guint32 end = 0;

  for (guint i = 0; i < core->pins->len; i++)
    add_ranges (core, ranges, g_ptr_array_index (core->pins, i));
  g_array_sort (ranges, compare_ranges);
  for (guint i = 0; i < ranges->len; i++) {
    const ks_pos_range *range = &g_array_index (ranges, ks_pos_range, i);

    n_token += range->end > end ? range->end - MAX (range->begin, end) : 0;
    end = MAX (end, range->end);
  }
  if (n_token <= n_fit)
    return TRUE;
  g_set_error (error, KS_ENGINE_ERROR, KS_ERR_BUDGET,
               "this does not fit beside what is pinned already: %" G_GUINT64_FORMAT
               " tokens would have to stay, the memory target keeps %" G_GUINT64_FORMAT
               "; unpin something or raise the target",
               n_token, n_fit);
  return FALSE;
}

/* --- pins of turns that are read --- */

static void
show_pins (KsConversationCore *core)
{
  g_clear_pointer (&core->shown_pins, g_ptr_array_unref);
  if (core->pins->len > 0)
    core->shown_pins = ks_pin_list_copy (core->pins);
}

static void
refuse (KsConversationCore *core, KsEngineJob *job, KsPin *pin)
{
  pin->refused = TRUE;
  if (core->told_pins)
    return;
  core->told_pins = TRUE;
  ks_engine_job_emit_notice (job, KS_NOTICE_PINS);
}

void
ks_core_forget_pins (KsConversationCore *core, guint turn)
{
  ks_pin_list_cut (core->pins, turn);
  show_pins (core);
}

void
ks_core_want_pins (KsConversationCore *core, guint number, const KsTurnText *turn)
{
  if (turn->pinned)
    (void)ks_pin_list_set (core->pins, number, NULL, TRUE);
  for (guint i = 0; i < turn->pictures->len; i++) {
    const KsPicture *picture = g_ptr_array_index (turn->pictures, i);

    if (picture->pinned)
      (void)ks_pin_list_set (core->pins, number, picture->hash, TRUE);
  }
  show_pins (core);
}

void
ks_core_pin_turn (KsConversationCore *core, KsEngineJob *job, guint turn, guint32 n_tok,
                  const KsViewRun *runs, guint n_run)
{
  guint32 base = ks_timeline_get_seen (core->tl);

  core->pin_end = base + n_tok;
  for (guint i = 0; i < core->pins->len; i++) {
    KsPin *pin = g_ptr_array_index (core->pins, i);
    g_autoptr (GArray) ranges = NULL;

    if (pin->turn != turn)
      continue;
    ranges = ranges_new ();
    if (pin->hash == NULL)
      add_range (ranges, base, base + n_tok);
    else
      add_views (ranges, runs, n_run, base, pin);
    pin->refused = FALSE;
    if (!pin_ranges (core, ranges, NULL))
      refuse (core, job, pin);
  }
  show_pins (core);
}

void
ks_core_pin_again (KsConversationCore *core, KsEngineJob *job)
{
  if (ks_timeline_unpin (core->tl, 0, G_MAXUINT32, NULL) != KS_OK)
    return;
  for (guint i = 0; i < core->pins->len; i++) {
    KsPin *pin = g_ptr_array_index (core->pins, i);
    g_autoptr (GArray) ranges = ranges_new ();

    add_ranges (core, ranges, pin);
    pin->refused = FALSE;
    if (!pin_ranges (core, ranges, NULL))
      refuse (core, job, pin);
  }
  core->pin_end = ks_timeline_get_seen (core->tl);
  show_pins (core);
}

void
ks_core_pin_answer (KsConversationCore *core, KsEngineJob *job)
{
  guint32 seen = ks_timeline_get_seen (core->tl);

  if (core->pin_end > seen || !ks_pin_list_holds (core->pins, core->turn - 1, NULL))
    return;
  core->pin_end = seen + STEP_TOKENS;
  if (ks_timeline_pin (core->tl, core->turn_start, core->pin_end, NULL) == KS_OK)
    return;
  core->pin_end = G_MAXUINT32; /* what was read of the turn stays, the rest of it does not fit */
  for (guint i = 0; i < core->pins->len; i++) {
    KsPin *pin = g_ptr_array_index (core->pins, i);

    if (pin->turn == core->turn - 1 && pin->hash == NULL)
      refuse (core, job, pin);
  }
  show_pins (core);
}

void
ks_core_end_pin (KsConversationCore *core)
{
  guint32 seen = ks_timeline_get_seen (core->tl);

  if (core->pin_end > seen && ks_timeline_unpin (core->tl, seen, G_MAXUINT32, NULL) == KS_OK)
    core->pin_end = seen;
}

/* --- pins that change --- */

/* Nothing of it was let go. */
static gboolean
is_whole (KsConversationCore *core, const ks_kv_stats *stats, guint turn, const char *hash)
{
  guint64 n_stream = (guint64)stats->n_layer * stats->n_kv_head;

  if (stats->n_evicted == 0)
    return TRUE;
  if (hash == NULL)
    return turn < stats->n_turn && stats->by_turn[turn] == stats->turn_tokens[turn] * n_stream;
  for (guint i = 0; i < core->runs->len; i++) {
    const KsViewRun *run = &g_array_index (core->runs, KsViewRun, i);
    const ks_picture_stats *picture;

    if (run->turn != turn || !g_str_equal (run->picture->hash, hash))
      continue;
    picture = ks_timeline_find_picture (core->tl, (uint16_t)turn, (uint8_t)run->number);
    if (picture == NULL || picture->n_entry < picture->n_tok * n_stream)
      return FALSE;
  }
  return TRUE;
}

gboolean
ks_conversation_core_pin (KsConversationCore *core, KsEngineJob *job, guint turn, const char *hash,
                          gboolean pinned, gboolean *out_is_whole, GError **error)
{
  const KsPin asked = {.turn = turn, .hash = (char *)hash};
  g_autoptr (GArray) ranges = ranges_new ();
  gboolean is_all = TRUE;
  ks_kv_stats stats;

  if (core->tl != NULL)
    add_ranges (core, ranges, &asked);
  if (ranges->len > 0 && ks_pin_list_set (core->pins, turn, hash, pinned)) {
    if (pinned && !(check_room (core, error) && pin_ranges (core, ranges, error))) {
      (void)ks_pin_list_set (core->pins, turn, hash, FALSE);
      ks_core_pin_again (core, job);
      return FALSE;
    }
    if (!pinned)
      ks_core_pin_again (core, job);
    ks_timeline_get_stats (core->tl, &stats);
    is_all = !pinned || is_whole (core, &stats, turn, hash);
    if (stats.n_evicted > 0)
      core->has_chain = FALSE; /* chosen with other pins, it stands for neither */
    show_pins (core);
    ks_core_publish (core);
  }
  if (out_is_whole != NULL)
    *out_is_whole = is_all;
  return TRUE;
}

/* --- names of states --- */

static int
compare_words (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

void
ks_core_name_state (KsConversationCore *core, const KsTurnHash *content, guint n_turn,
                    KsTurnHash *out)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < core->pins->len; i++) {
    const KsPin *pin = g_ptr_array_index (core->pins, i);

    if (pin->turn < n_turn)
      g_ptr_array_add (words,
                       g_strdup_printf ("%u %s", pin->turn, pin->hash != NULL ? pin->hash : "all"));
  }
  g_ptr_array_sort (words, compare_words);
  ks_turn_hash_pins (content, words, out);
}

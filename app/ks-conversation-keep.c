/* ks-conversation-keep.c - a conversation's state is kept when a turn has ended, and taken from
 * there in place of reading the same words again. Beside the timeline stands what the conversation
 * goes on from (the notes); pictures are named by content and part and looked up among those that
 * the caller has.  Whatever does not fit is left aside: the texts are read. Threads: engine thread.
 * Source: ADR 0005, docs/formats/snapshot.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-conversation-core-internal.h"

#include "app/ks-error.h"
#include "app/ks-notices.h"

#include <string.h>

#define NOTES_VERSION 1u
/* Version; turns, where message and answer begin, last token; answer is open, how it ended, no word
 * yet, length was told; draws are kept; hash of the message; held-back text; the answer; views. */
#define NOTES_TYPE "(uuuuibubbbayaysa(uuuuubuss))"
#define SCARCE_PART 10 /* less than that of the memory is free */

/* Notes that were read and make sense. */
typedef struct {
  guint turn, end;
  guint32 turn_start, answer_start;
  gint32 last_id;
  gboolean answer_open, at_start, told_length, has_rng;
  KsTurnHash asked;
  GBytes *held;
  char *answer;
  GArray *runs; /* of KsViewRun */
} Notes;

static void
clear_notes (Notes *notes)
{
  g_clear_pointer (&notes->held, g_bytes_unref);
  g_clear_pointer (&notes->answer, g_free);
  g_clear_pointer (&notes->runs, g_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Notes, clear_notes)

/* --- keeping --- */

static GVariant *
make_bytes (gconstpointer data, gsize n)
{
  return g_variant_new_fixed_array (G_VARIANT_TYPE_BYTE, data, n, 1);
}

static GVariant *
make_runs (const GArray *runs)
{
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(uuuuubuss)"));
  for (guint i = 0; i < runs->len; i++) {
    const KsViewRun *run = &g_array_index (runs, KsViewRun, i);
    g_autofree char *part = ks_picture_make_part (run->picture);

    g_variant_builder_add (&builder, "(uuuuubuss)", run->first, run->n_tok, run->view, run->t_shift,
                           run->turn, run->follows, run->number, run->picture->hash, part);
  }
  return g_variant_builder_end (&builder);
}

static GVariant *
make_notes (KsConversationCore *core)
{
  gsize n_held = 0;
  const char *held = core->stream != NULL ? ks_text_stream_get_held (core->stream, &n_held) : NULL;
  GVariant *children[] = {g_variant_new_uint32 (NOTES_VERSION),
                          g_variant_new_uint32 (core->turn),
                          g_variant_new_uint32 (core->turn_start),
                          g_variant_new_uint32 (core->answer_start),
                          g_variant_new_int32 (core->last_id),
                          g_variant_new_boolean (core->answer_open),
                          g_variant_new_uint32 ((guint32)core->open_end),
                          g_variant_new_boolean (core->at_start),
                          g_variant_new_boolean (core->told_length),
                          g_variant_new_boolean (core->sampler != NULL),
                          make_bytes (core->asked_hash.bytes, sizeof core->asked_hash.bytes),
                          make_bytes (held, n_held),
                          g_variant_new_string (core->answer_text->str),
                          make_runs (core->runs)};

  return g_variant_ref_sink (g_variant_new_tuple (children, G_N_ELEMENTS (children)));
}

static gboolean
is_memory_scarce (KsConversationCore *core)
{
  ks_dev_info info = {0};

  core->setup->be.t->get_info (core->setup->be.dev, &info);
  return info.free_bytes < info.total_bytes / SCARCE_PART;
}

static void
tell_scarce (KsConversationCore *core, KsEngineJob *job)
{
  if (core->told_scarce)
    return;
  core->told_scarce = TRUE;
  ks_engine_job_emit_notice (job, KS_NOTICE_SCARCE);
}

void
ks_core_keep (KsConversationCore *core, KsEngineJob *job, const KsTurnHash *content,
              gboolean with_logits)
{
  KsSnapshotCache *kept = core->setup->kept;
  ks_snapshot_params params = {.with_logits = with_logits};
  g_autoptr (GVariant) notes = NULL;
  KsTurnHash name;
  gboolean is_scarce;

  if (kept == NULL || core->session <= 0 || !core->has_chain ||
      !g_utf8_validate (core->answer_text->str, -1, NULL))
    return;
  notes = make_notes (core);
  params.notes = g_variant_get_data (notes);
  params.n_notes = g_variant_get_size (notes);
  if (core->sampler != NULL)
    ks_sampler_get_state (core->sampler, params.rng);
  is_scarce = is_memory_scarce (core);
  if (is_scarce)
    tell_scarce (core, job);
  ks_core_name_state (core, content, core->turn, &name);
  /* Without it the texts are read again: not worth a word. */
  (void)ks_snapshot_cache_add (kept, core->session, &name, core->tl, &params, is_scarce, NULL);
}

/* --- recalling --- */

static KsPicture *
find_picture (GPtrArray *pictures, const char *hash, const char *part)
{
  for (guint i = 0; i < pictures->len; i++) {
    KsPicture *picture = g_ptr_array_index (pictures, i);
    g_autofree char *own = NULL;

    if (!g_str_equal (picture->hash, hash))
      continue;
    own = ks_picture_make_part (picture);
    if (g_str_equal (own, part))
      return picture;
  }
  return NULL;
}

static gboolean
read_runs (GVariant *variant, guint32 seen, guint n_turn, GPtrArray *pictures, GArray *runs)
{
  guint32 end = 0;

  for (gsize i = 0; i < g_variant_n_children (variant); i++) {
    KsViewRun run = {0};
    const char *hash, *part;
    g_autoptr (GVariant) child = g_variant_get_child_value (variant, i);
    KsPicture *picture;

    g_variant_get (child, "(uuuuubu&s&s)", &run.first, &run.n_tok, &run.view, &run.t_shift,
                   &run.turn, &run.follows, &run.number, &hash, &part);
    if (run.first < end || run.n_tok == 0 || run.first > seen || run.n_tok > seen - run.first ||
        run.turn >= n_turn || run.number == 0)
      return FALSE;
    end = run.first + run.n_tok;
    picture = find_picture (pictures, hash, part);
    if (picture == NULL)
      return FALSE;
    run.picture = ks_picture_ref (picture);
    g_array_append_val (runs, run);
  }
  return TRUE;
}

static gboolean
read_bytes (GVariant *notes, gsize child, gsize want, gpointer out)
{
  g_autoptr (GVariant) bytes = g_variant_get_child_value (notes, child);
  gsize n = 0;
  gconstpointer data = g_variant_get_fixed_array (bytes, &n, 1);

  if (n != want)
    return FALSE;
  memcpy (out, data, n);
  return TRUE;
}

static gboolean
read_notes (const ks_snapshot *snap, GPtrArray *pictures, Notes *out)
{
  g_autoptr (GBytes) bytes = g_bytes_new (snap->notes, snap->n_notes);
  g_autoptr (GVariant) notes =
      g_variant_ref_sink (g_variant_new_from_bytes (G_VARIANT_TYPE (NOTES_TYPE), bytes, FALSE));
  g_autoptr (GVariant) held = NULL, runs = NULL;
  guint version = 0;

  if (!g_variant_is_normal_form (notes))
    return FALSE;
  g_variant_get (notes, "(uuuuibubbb@ay@ays@a(uuuuubuss))", &version, &out->turn, &out->turn_start,
                 &out->answer_start, &out->last_id, &out->answer_open, &out->end, &out->at_start,
                 &out->told_length, &out->has_rng, NULL, &held, &out->answer, &runs);
  if (version != NOTES_VERSION || out->turn == 0 || out->end > KS_ANSWER_FAILED ||
      out->turn_start > out->answer_start || out->answer_start > snap->seen || out->last_id < 0 ||
      (guint32)out->last_id >= snap->n_vocab ||
      !read_bytes (notes, 10, sizeof out->asked.bytes, out->asked.bytes))
    return FALSE;
  out->held = g_variant_get_data_as_bytes (held);
  out->runs = ks_core_new_runs ();
  return read_runs (runs, snap->seen, out->turn, pictures, out->runs);
}

/* Pictures take the same room of the target as when they are read. */
static gboolean
book_rooms (KsConversationCore *core, KsEngineJob *job, const GArray *runs)
{
  const KsPicture *last = NULL;

  for (guint i = 0; i < runs->len; i++) {
    const KsPicture *picture = g_array_index (runs, KsViewRun, i).picture;

    if (picture != last && !ks_core_book (core, job, picture, NULL))
      return FALSE;
    last = picture;
  }
  return TRUE;
}

/* Cut to clearly fewer entries than the target allows now: reading again remembers more. */
static gboolean
is_poor (KsConversationCore *core, const ks_snapshot *snap)
{
  return snap->least_keep != UINT64_MAX &&
         snap->least_keep / 3 < ks_timeline_get_n_keep (core->tl) / 4;
}

static void
take_notes (KsConversationCore *core, const ks_snapshot *snap, Notes *notes)
{
  core->turn = notes->turn;
  core->turn_start = notes->turn_start;
  core->answer_start = notes->answer_start;
  core->last_id = notes->last_id;
  core->answer_open = notes->answer_open;
  core->open_end = (KsAnswerEnd)notes->end;
  core->at_start = notes->at_start;
  core->told_length = notes->told_length;
  core->asked_hash = notes->asked;
  core->unread = FALSE;
  core->has_head = FALSE;
  core->has_rng = notes->has_rng;
  core->rng[0] = snap->rng[0];
  core->rng[1] = snap->rng[1];
  g_clear_pointer (&core->held, g_bytes_unref);
  core->held = g_steal_pointer (&notes->held);
  g_string_assign (core->answer_text, notes->answer);
  ks_core_set_runs (core, g_steal_pointer (&notes->runs));
}

gboolean
ks_core_recall (KsConversationCore *core, KsEngineJob *job, const KsTurnHash *content, guint n_turn,
                gboolean need_logits, GPtrArray *pictures)
{
  KsSnapshotCache *kept = core->setup->kept;
  g_auto (Notes) notes = {0};
  ks_snapshot snap;
  KsTurnHash name;
  ks_status status;

  if (kept == NULL || core->session <= 0 || !core->has_chain)
    return FALSE;
  ks_core_name_state (core, content, n_turn, &name);
  if (!ks_snapshot_cache_find (kept, core->session, &name, &snap))
    return FALSE;
  if ((need_logits && snap.n_logit == 0) || !read_notes (&snap, pictures, &notes) ||
      !book_rooms (core, job, notes.runs) || is_poor (core, &snap))
    return FALSE;
  status = ks_snapshot_read (core->tl, &snap, NULL);
  if (status == KS_OK) {
    take_notes (core, &snap, &notes);
    ks_core_pin_again (core, job); /* there may be room for what was refused then */
    return TRUE;
  }
  if (status == KS_ERR_FORMAT || status == KS_ERR_UNSUPPORTED)
    ks_snapshot_cache_drop (kept, core->session, &name);
  return FALSE;
}

/* --- the chain --- */

void
ks_core_begin_chain (KsConversationCore *core, const char *system)
{
  KsEngineSetup *setup = core->setup;

  core->has_chain = setup->kept != NULL;
  if (core->has_chain)
    ks_turn_hash_begin (ks_snapshot_cache_get_weights (setup->kept), system,
                        ks_chat_template_get_name (ks_engine_setup_get_chat_template (setup)),
                        &core->evict, &core->chain);
}

guint
ks_core_recall_turns (KsConversationCore *core, KsEngineJob *job, GPtrArray *turns,
                      GPtrArray *pictures)
{
  const KsTurnText *last = g_ptr_array_index (turns, turns->len - 1);
  g_autofree KsTurnHash *asked = g_new0 (KsTurnHash, turns->len);
  g_autofree KsTurnHash *done = g_new0 (KsTurnHash, turns->len);
  KsTurnHash chain = core->chain;
  guint n = turns->len;

  if (!core->has_chain)
    return 0;
  for (guint i = 0; i < n; i++) {
    const KsTurnText *turn = g_ptr_array_index (turns, i);

    ks_turn_hash_ask (&chain, turn, &asked[i]);
    ks_turn_hash_answer (&asked[i], turn->answer, &done[i]);
    chain = done[i];
  }
  for (; n > 0; n--) {
    gboolean go_on = n == turns->len && last->unfinished;

    if (ks_core_recall (core, job, &done[n - 1], n, go_on, pictures) ||
        (go_on && last->answer[0] == '\0' &&
         ks_core_recall (core, job, &asked[n - 1], n, TRUE, pictures)))
      break;
  }
  core->chain = done[turns->len - 1];
  core->asked_hash = asked[turns->len - 1];
  return n;
}

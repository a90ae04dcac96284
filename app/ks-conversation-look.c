/* ks-conversation-look.c - a conversation's pictures on their way through the vision tower.
 * A picture is decoded, encoded and kept once; afterwards its embeddings come from memory or disk.
 * Room for that is taken from the keys and values before anything is computed, so that the memory
 * target holds in every moment.
 * Threads: engine thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-conversation-core-internal.h"

#include "app/ks-error.h"
#include "app/ks-prompt-builder.h"

#define MAX_NUMBER 255u
#define TELL_US 100000 /* between two words about a picture */

/* Tells how a picture comes along. */
typedef struct {
  KsConversationCore *core;
  KsEngine *engine;
  KsEngineJob *job;
  const KsPicture *picture;
  guint n_done, n_total;
  gint64 told_us;
} Looking;

static void
tell (Looking *looking, guint n_done, guint n_total)
{
  gint64 now_us = g_get_monotonic_time ();

  looking->n_done = n_done;
  looking->n_total = n_total;
  if (now_us - looking->told_us < TELL_US)
    return;
  looking->told_us = now_us;
  ks_core_publish (looking->core); /* its scratch grows */
  ks_engine_job_emit_looking (looking->job, looking->picture->name, n_done, n_total);
}

/* Asked all the time: also where a step takes long it is told that things go on. */
static bool
stop_requested (void *user)
{
  Looking *looking = user;

  tell (looking, looking->n_done, looking->n_total);
  return ks_engine_job_is_cancelled (looking->job);
}

/* Nothing of a picture is on its way through the device here: a new target takes effect at once. */
static void
encode_progress (void *user, uint32_t n_done, uint32_t n_total)
{
  Looking *looking = user;

  tell (looking, n_done, n_total);
  ks_engine_run_urgent (looking->engine);
}

static void
decode_progress (guint n_done, guint n_total, gpointer user)
{
  tell (user, 0, 0);
}

static Looking
begin_looking (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
               const KsPicture *picture)
{
  return (Looking){.core = core, .engine = engine, .job = job, .picture = picture};
}

static void
end_looking (Looking *looking)
{
  ks_picture_loader_set_progress (looking->core->loader, NULL, NULL);
  ks_engine_job_emit_looking (looking->job, NULL, 0, 0);
}

static gboolean
decode (Looking *looking, KsPictureRgb *rgb, GError **error)
{
  KsPictureLoader *loader = looking->core->loader;

  tell (looking, 0, 0);
  ks_picture_loader_set_progress (loader, decode_progress, looking);
  return ks_picture_loader_load (loader, looking->picture,
                                 ks_engine_job_get_cancellable (looking->job), rgb, error);
}

/* --- room --- */

static guint64
count_least (KsConversationCore *core, const KsSightRoom *room)
{
  return ks_timeline_get_least_total_budget (core->tl) -
         ks_model_get_repacked_bytes (core->setup->model) +
         ks_sight_count_needed_bytes (core->setup->sight, room);
}

/* A picture that cannot be read is told when its turn comes. */
static gboolean
find_plan (KsConversationCore *core, KsEngineJob *job, const KsPicture *picture,
           ks_vision_plan *out)
{
  KsSight *sight = core->setup->sight;
  KsPictureRgb rgb = {0};
  double time_s;
  gboolean ok;

  if (ks_sight_find_plan (sight, picture, out, &time_s))
    return TRUE;
  ok = ks_picture_loader_load (core->loader, picture, ks_engine_job_get_cancellable (job), &rgb,
                               NULL) &&
       ks_sight_make_plan (sight, picture, &rgb, out, NULL);
  ks_picture_rgb_clear (&rgb);
  return ok;
}

/* Names the target under which everything that is asked can be read. */
static gboolean
refuse_target (KsConversationCore *core, KsEngineJob *job, GError **error)
{
  KsEngineSetup *setup = core->setup;
  KsSightRoom room = ks_sight_get_room (setup->sight);
  char asked[KS_BUDGET_TEXT_BYTES], needed[KS_BUDGET_TEXT_BYTES];
  const char *largest = NULL;

  for (guint i = 0; core->asked != NULL && i < core->asked->len; i++) {
    const KsPicture *picture = g_ptr_array_index (core->asked, i);
    guint64 before = ks_sight_count_needed_bytes (setup->sight, &room);
    ks_vision_plan plan;

    if (!ks_core_check_cancelled (job, error))
      return FALSE;
    if (!find_plan (core, job, picture, &plan))
      continue;
    ks_sight_limit_scratch (setup->sight, &plan, 1);
    ks_sight_widen_room (setup->sight, &plan, &room);
    if (ks_sight_count_needed_bytes (setup->sight, &room) > before)
      largest = picture->name;
  }
  ks_budget_format_bytes (setup->request.total_bytes, KS_BUDGET_DOWN, asked);
  ks_budget_format_bytes (ks_engine_setup_count_working_target (setup, count_least (core, &room)),
                          KS_BUDGET_DOWN, needed);
  if (largest != NULL)
    g_set_error (error, KS_ENGINE_ERROR, KS_ERR_BUDGET,
                 "%s does not fit a memory target of %s: set at least %s, or lower the largest "
                 "size of pictures",
                 largest, asked, needed);
  else
    g_set_error (error, KS_ENGINE_ERROR, KS_ERR_BUDGET,
                 "a memory target of %s is too small for this model with its eyes: set at least %s",
                 asked, needed);
  return FALSE;
}

gboolean
ks_core_check_target (KsConversationCore *core, KsEngineJob *job, GError **error)
{
  const KsEngineSetup *setup = core->setup;
  guint64 total_bytes = setup->request.total_bytes;

  return setup->sight == NULL || total_bytes == 0 || total_bytes >= setup->plan.least_bytes ||
         refuse_target (core, job, error);
}

/* Booked for a picture, with as much scratch as the target leaves. */
static KsSightRoom
find_room (KsConversationCore *core, const ks_vision_plan *plan)
{
  KsSight *sight = core->setup->sight;
  guint64 total_bytes = core->setup->request.total_bytes, least_bytes, missing_bytes;
  KsSightRoom room = ks_sight_get_room (sight), most = room;

  ks_sight_limit_scratch (sight, plan, 0);
  ks_sight_widen_room (sight, plan, &most);
  least_bytes = count_least (core, &most);
  if (total_bytes == 0 || least_bytes <= total_bytes ||
      ks_sight_count_needed_bytes (sight, &most) <= ks_sight_get_needed_bytes (sight))
    return most;
  missing_bytes = least_bytes - total_bytes;
  ks_sight_limit_scratch (
      sight, plan, most.scratch_bytes > missing_bytes ? most.scratch_bytes - missing_bytes : 1);
  ks_sight_widen_room (sight, plan, &room);
  return room;
}

/* Only a target for everything limits it. */
static gboolean
book_room (KsConversationCore *core, KsEngineJob *job, const ks_vision_plan *plan, GError **error)
{
  KsSight *sight = core->setup->sight;
  guint64 total_bytes = core->setup->request.total_bytes;
  KsSightRoom room = find_room (core, plan);

  if (total_bytes == 0 ||
      ks_sight_count_needed_bytes (sight, &room) <= ks_sight_get_needed_bytes (sight)) {
    ks_sight_book (sight, &room);
    return TRUE;
  }
  if (total_bytes < count_least (core, &room))
    return refuse_target (core, job, error);
  ks_sight_book (sight, &room);
  return ks_core_set_total (core, total_bytes, error);
}

gboolean
ks_core_book (KsConversationCore *core, KsEngineJob *job, const KsPicture *picture, GError **error)
{
  ks_vision_plan plan;
  double time_s;

  return core->setup->sight == NULL ||
         !ks_sight_find_plan (core->setup->sight, picture, &plan, &time_s) ||
         book_room (core, job, &plan, error);
}

/* --- encoding --- */

static guint
count_tokens (KsConversationCore *core, const ks_vision_plan *plan)
{
  return plan->n_view * ks_sight_count_view_tok (core->setup->sight, plan);
}

/* Decodes and encodes; the result is kept. */
static const ks_vision_embeds *
encode (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, const KsPicture *picture,
        GError **error)
{
  KsSight *sight = core->setup->sight;
  guint64 total_bytes; /* when it is done: it may be moved meanwhile */
  guint64 scratch_bytes = ks_alloc_get_bytes (core->setup->alloc, KS_MEM_SCRATCH);
  KsPictureRgb rgb = {0};
  ks_vision_plan plan;
  const ks_vision_embeds *embeds = NULL;
  Looking looking = begin_looking (core, engine, job, picture);
  ks_vision_hooks hooks = {.stop = stop_requested, .progress = encode_progress, .user = &looking};

  if (decode (&looking, &rgb, error) && ks_sight_make_plan (sight, picture, &rgb, &plan, error) &&
      book_room (core, job, &plan, error)) {
    ks_core_tell_length (core, job, core->n_looked + count_tokens (core, &plan));
    embeds = ks_sight_encode (sight, picture, &rgb, &plan, &hooks, error);
  }
  end_looking (&looking);
  ks_picture_rgb_clear (&rgb);
  ks_core_publish (core); /* done, stopped or failed: its scratch is free again */
  /* What the device grew for the tower's operations stays: keys and values make room for it. */
  total_bytes = core->setup->request.total_bytes;
  if (embeds != NULL && total_bytes > 0 &&
      ks_alloc_get_bytes (core->setup->alloc, KS_MEM_SCRATCH) > scratch_bytes &&
      !ks_core_set_total (core, total_bytes, error))
    return NULL;
  return embeds;
}

const ks_vision_embeds *
ks_core_get_embeds (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                    const KsPicture *picture, GError **error)
{
  KsSight *sight = core->setup->sight;
  const ks_vision_embeds *embeds;
  ks_vision_plan plan;
  double time_s;

  if (!ks_sight_find_plan (sight, picture, &plan, &time_s))
    return encode (core, engine, job, picture, error) != NULL ? ks_sight_find (sight, picture)
                                                              : NULL;
  if (!book_room (core, job, &plan, error))
    return NULL;
  embeds = ks_sight_find (sight, picture);
  return embeds != NULL ? embeds : encode (core, engine, job, picture, error);
}

static void
fill_visual (const KsSight *sight, const KsPicture *picture, const ks_vision_plan *plan,
             double time_s, ks_chat_visual *out)
{
  *out = (ks_chat_visual){.at = picture->at,
                          .tile_rows = plan->tile_rows,
                          .tile_cols = plan->tile_cols,
                          .has_overview = plan->has_overview,
                          .n_view = plan->n_view,
                          .view_tok = ks_sight_count_view_tok (sight, plan),
                          .video = picture->video,
                          .time_s = time_s};
}

/* The last frame of a video, and how often a video has changed its size so far. */
typedef struct {
  guint video, n_change, grid_rows, grid_cols;
} LastFrame;

/* Frames share an origin on one grid only: where a video changes its size, what comes is a video of
 * its own to the model. */
static void
cut_video (LastFrame *last, const ks_vision_plan *plan, ks_chat_visual *visual)
{
  if (visual->video == 0)
    return;
  if (last->video == visual->video &&
      (last->grid_rows != plan->grid_rows || last->grid_cols != plan->grid_cols))
    last->n_change++;
  last->video = visual->video;
  last->grid_rows = plan->grid_rows;
  last->grid_cols = plan->grid_cols;
  visual->video += last->n_change << 16; /* a message has fewer videos */
}

/* Its plan, and its embeddings where they will still be there when the message is read.  Without a
 * disk the next picture may push them out of memory: then only the first one is encoded ahead, so
 * that each is encoded once. */
static gboolean
look_at (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, const KsPicture *picture,
         gboolean ahead, ks_vision_plan *out_plan, double *out_time_s, GError **error)
{
  KsSight *sight = core->setup->sight;
  Looking looking = begin_looking (core, engine, job, picture);
  KsPictureRgb rgb = {0};
  gboolean ok;

  if (ks_sight_find_plan (sight, picture, out_plan, out_time_s))
    return book_room (core, job, out_plan, error);
  if (ahead || ks_sight_has_disk (sight))
    return encode (core, engine, job, picture, error) != NULL &&
           ks_sight_find_plan (sight, picture, out_plan, out_time_s); /* the newest is kept */
  ok = decode (&looking, &rgb, error) &&
       ks_sight_make_plan (sight, picture, &rgb, out_plan, error) &&
       book_room (core, job, out_plan, error);
  end_looking (&looking);
  *out_time_s = rgb.time_s;
  ks_picture_rgb_clear (&rgb);
  return ok;
}

/* --- what is gone --- */

void
ks_core_tell_lost (KsConversationCore *core, KsEngineJob *job, const char *name)
{
  g_autofree char *text = NULL;

  if (!g_hash_table_add (core->told_lost, g_strdup (name)))
    return;
  text = g_strdup_printf ("\"%s\" cannot be read any more and is left out: attach it again if the "
                          "model needs it.",
                          name);
  ks_engine_job_emit_notice (job, text);
}

void
ks_core_tell_lost_texts (KsConversationCore *core, KsEngineJob *job, const KsTurnText *turn)
{
  for (guint i = 0; i < turn->lost->len; i++)
    ks_core_tell_lost (core, job, g_ptr_array_index (turn->lost, i));
}

/* A stored picture that this model cannot take, as another one could: its turn goes on without it.
 */
static void
tell_unfit (KsConversationCore *core, KsEngineJob *job, const char *name, const GError *why)
{
  g_autofree char *text = NULL;

  if (!g_hash_table_add (core->told_lost, g_strdup (name)))
    return;
  text = g_strdup_printf ("%s; it is left out.", why->message);
  ks_engine_job_emit_notice (job, text);
}

/* About the file, not about this machine or this moment. */
static gboolean
is_lost (const GError *error)
{
  return g_error_matches (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED) ||
         g_error_matches (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_UNKNOWN_TYPE) ||
         g_error_matches (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_DAMAGED) ||
         g_error_matches (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_PASSWORD) ||
         g_error_matches (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_EMPTY);
}

/* The turn with a line of text for each file whose pictures are lost; visuals are brought in line
 * with it. */
static KsTurnText *
leave_out (const KsTurnText *turn, const gboolean *lost, ks_chat_visual *visuals)
{
  KsTurnText *rest = ks_turn_text_new ("", NULL, FALSE);
  GString *text = g_string_new (NULL);
  const char *noted = NULL;
  gsize from = 0;

  for (guint i = 0; i < turn->pictures->len; i++) {
    KsPicture *picture = g_ptr_array_index (turn->pictures, i);

    g_string_append_len (text, turn->message + from, (gssize)(picture->at - from));
    from = picture->at;
    if (lost[i] && g_strcmp0 (noted, picture->hash) != 0) {
      g_autofree char *line = ks_prompt_make_lost_line (
          picture->source == KS_PICTURE_FRAME ? "Video" : "Picture", picture->name);

      g_string_append (text, line);
      noted = picture->hash;
    } else if (!lost[i]) {
      visuals[rest->pictures->len] = visuals[i];
      visuals[rest->pictures->len].at = text->len;
      g_ptr_array_add (rest->pictures, ks_picture_ref (picture));
    }
  }
  g_string_append (text, turn->message + from);
  g_free (rest->message);
  rest->message = g_string_free (text, FALSE);
  return rest;
}

gboolean
ks_core_look (KsConversationCore *core, KsEngine *engine, KsEngineJob *job, const KsTurnText *turn,
              ks_chat_visual *out, KsTurnText **out_rest, GError **error)
{
  GPtrArray *pictures = turn->pictures;
  g_autofree gboolean *lost = g_new0 (gboolean, MAX (pictures->len, 1));
  gboolean any_lost = FALSE;
  LastFrame last = {0};

  if (pictures->len > 0 && core->setup->sight == NULL) {
    g_set_error (error, KS_ENGINE_ERROR, KS_ERR_UNSUPPORTED,
                 "this model has no eyes: give the mmproj file that belongs to it, or leave %s out",
                 ((const KsPicture *)g_ptr_array_index (pictures, 0))->name);
    return FALSE;
  }
  core->n_looked = 0;
  for (guint i = 0; i < pictures->len; i++) {
    const KsPicture *picture = g_ptr_array_index (pictures, i);
    g_autoptr (GError) local = NULL;
    ks_vision_plan plan;
    double time_s = 0;

    if (!ks_core_check_cancelled (job, error))
      return FALSE;
    if (look_at (core, engine, job, picture, i == 0, &plan, &time_s, &local)) {
      fill_visual (core->setup->sight, picture, &plan, time_s, &out[i]);
      cut_video (&last, &plan, &out[i]);
      core->n_looked += count_tokens (core, &plan);
      ks_core_tell_length (core, job, core->n_looked);
    } else if (is_lost (local)) {
      lost[i] = any_lost = TRUE;
      ks_core_tell_lost (core, job, picture->name);
    } else if (core->rereading && g_error_matches (local, KS_ENGINE_ERROR, KS_ERR_UNSUPPORTED)) {
      lost[i] = any_lost = TRUE;
      tell_unfit (core, job, picture->name, local);
    } else {
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
    ks_core_publish (core);
  }
  core->n_looked = 0; /* they are counted as they are read from now on */
  ks_picture_loader_forget (core->loader);
  *out_rest = any_lost ? leave_out (turn, lost, out) : NULL;
  return TRUE;
}

/* --- what is kept --- */

static void
survivor_cb (void *user, uint32_t layer, uint32_t head, uint32_t pos, const ks_token_info *token)
{
  KsPictureTrace *trace = user;
  gboolean is_overview = (token->patch_row & KS_PATCH_OVERVIEW) != 0;
  KsTraceEntry entry = {.layer = (guint16)layer,
                        .head = (guint16)head,
                        .row = (guint16)(token->patch_row & ~KS_PATCH_OVERVIEW),
                        .col = token->patch_col};

  if (token->id == KS_TOKEN_NONE)
    g_array_append_val (is_overview ? trace->overview : trace->entries, entry);
}

/* LLaVA pads to a square, with the picture in its middle. */
static void
set_area (KsConversationCore *core, guint turn, guint number, KsPictureTrace *trace)
{
  KsSight *sight = core->setup->sight;
  ks_vision_plan plan;
  double time_s;

  if (sight == NULL || ks_sight_get_family (sight) != KS_VISION_LLAVA)
    return;
  for (guint i = 0; i < core->runs->len; i++) {
    const KsViewRun *run = &g_array_index (core->runs, KsViewRun, i);
    double side;

    if (run->turn != turn || run->number != number ||
        !ks_sight_find_plan (sight, run->picture, &plan, &time_s))
      continue;
    side = MAX (plan.width, plan.height);
    trace->width = side / plan.width;
    trace->height = side / plan.height;
    trace->x = (1 - trace->width) / 2;
    trace->y = (1 - trace->height) / 2;
    return;
  }
}

gboolean
ks_conversation_core_trace (KsConversationCore *core, guint turn, guint number,
                            KsPictureTrace *trace, GError **error)
{
  const ks_picture_stats *picture = NULL;
  ks_error err = {0};

  if (core->tl != NULL && turn <= G_MAXUINT16 && number <= MAX_NUMBER)
    picture = ks_timeline_find_picture (core->tl, (uint16_t)turn, (uint8_t)number);
  if (picture == NULL) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "the model has not read this picture");
    return FALSE;
  }
  trace->n_layer = core->setup->layout.n_layer;
  trace->n_kv_head = core->setup->layout.n_kv_head;
  trace->n_row = picture->grid_rows;
  trace->n_col = picture->grid_cols;
  trace->n_token = picture->n_tok;
  trace->overview_rows = picture->overview_rows;
  trace->overview_cols = picture->overview_cols;
  set_area (core, turn, number, trace);
  return ks_error_check (
      ks_timeline_read_survivors (core->tl, picture->begin, picture->end, survivor_cb, trace, &err),
      &err, error);
}

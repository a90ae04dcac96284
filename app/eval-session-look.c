/* eval-session-look.c - pictures of an item: files, or base64 text that becomes one for the
 * decoder; see eval-session-internal.h.  Embeddings of a whole turn are held at once, so that the
 * turn is read in one call: how a policy's modes count passes must not depend on the pictures. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-session-internal.h"

#include "app/ks-error.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

static bool
stop_requested (void *user)
{
  return user != NULL && ks_engine_job_is_cancelled (user);
}

/* (transfer full) The picture's file: its own, or a new one. */
static char *
make_file (KsEvalSession *session, const KsEvalPicture *picture, gboolean *out_is_new,
           GError **error)
{
  g_autofree char *text = NULL, *path = NULL;
  gsize n = 0;

  *out_is_new = picture->path == NULL;
  if (picture->path != NULL)
    return g_strdup (picture->path);
  if (session->folder == NULL)
    session->folder = g_dir_make_tmp ("keepsake-eval-XXXXXX", error);
  if (session->folder == NULL)
    return NULL;
  text = g_strndup (g_bytes_get_data (picture->base64, NULL), g_bytes_get_size (picture->base64));
  g_base64_decode_inplace (text, &n);
  path = g_build_filename (session->folder, "picture", NULL);
  return g_file_set_contents (path, text, (gssize)n, error) ? g_steal_pointer (&path) : NULL;
}

static gboolean
encode (KsEvalSession *session, const KsPicture *picture, GError **error)
{
  KsSight *sight = session->setup->sight;
  ks_vision_hooks hooks = {.stop = stop_requested, .user = session->ask->job};
  GCancellable *cancellable =
      session->ask->job != NULL ? ks_engine_job_get_cancellable (session->ask->job) : NULL;
  KsPictureRgb rgb = {0};
  ks_vision_plan plan;
  KsSightRoom room;
  gboolean ok;

  ok = ks_picture_loader_load (session->loader, picture, cancellable, &rgb, error) &&
       ks_sight_make_plan (sight, picture, &rgb, &plan, error);
  if (ok) {
    ks_sight_limit_scratch (sight, &plan, 0);
    room = ks_sight_get_room (sight);
    ks_sight_widen_room (sight, &plan, &room);
    ks_sight_book (sight, &room);
    ok = ks_sight_encode (sight, picture, &rgb, &plan, &hooks, error) != NULL;
  }
  ks_picture_rgb_clear (&rgb);
  return ok;
}

static gboolean
look_at (KsEvalSession *session, const char *path, ks_vision_embeds *out, GError **error)
{
  g_autoptr (KsPicture) picture = ks_picture_new_from_file (path, NULL, error);
  const ks_vision_embeds *found;
  gsize n;

  if (picture == NULL)
    return FALSE;
  found = ks_sight_find (session->setup->sight, picture);
  if (found == NULL) {
    if (!encode (session, picture, error))
      return FALSE;
    found = ks_sight_find (session->setup->sight, picture);
  }
  if (found == NULL)
    return ks_error_check (KS_ERR_NOMEM, NULL, error);
  n = (gsize)found->n_tok * found->n_embd * (1 + found->n_deep);
  *out = *found;
  out->data = g_memdup2 (found->data, n * sizeof *found->data);
  if (found->places != NULL)
    out->places = g_memdup2 (found->places, found->n_tok * sizeof *found->places);
  return TRUE;
}

static void
fill_visual (const KsSight *sight, const ks_vision_plan *plan, gsize at, ks_chat_visual *out)
{
  *out = (ks_chat_visual){.at = at,
                          .tile_rows = plan->tile_rows,
                          .tile_cols = plan->tile_cols,
                          .has_overview = plan->has_overview,
                          .n_view = plan->n_view,
                          .view_tok = ks_sight_count_view_tok (sight, plan)};
}

void
ks_eval_looks_clear (KsEvalLooks *looks)
{
  for (guint i = 0; i < looks->n; i++) {
    g_free (looks->embeds[i].data);
    g_free (looks->embeds[i].places);
  }
  g_clear_pointer (&looks->embeds, g_free);
  g_clear_pointer (&looks->visuals, g_free);
  looks->n = 0;
}

gboolean
ks_eval_look (KsEvalSession *session, const KsEvalTurn *turn, KsEvalLooks *out, GError **error)
{
  guint n = turn->pictures->len;

  *out = (KsEvalLooks){0};
  if (n == 0)
    return TRUE;
  if (session->setup->sight == NULL) {
    g_set_error_literal (error, KS_ENGINE_ERROR, KS_ERR_UNSUPPORTED,
                         "the questions are about pictures, and this model has no eyes: give the "
                         "vision model that belongs to it with --mmproj");
    return FALSE;
  }
  out->n = n;
  out->visuals = g_new0 (ks_chat_visual, n);
  out->embeds = g_new0 (ks_vision_embeds, n);
  for (guint i = 0; i < n; i++) {
    const KsEvalPicture *picture = g_ptr_array_index (turn->pictures, i);
    gboolean is_new, ok;
    g_autofree char *path = make_file (session, picture, &is_new, error);

    ok = path != NULL && look_at (session, path, &out->embeds[i], error);
    if (path != NULL && is_new)
      g_unlink (path);
    if (!ok) {
      ks_eval_looks_clear (out);
      return FALSE;
    }
    fill_visual (session->setup->sight, &out->embeds[i].plan,
                 MIN (picture->at, strlen (turn->text)), &out->visuals[i]);
  }
  return TRUE;
}

ks_visual_run *
ks_eval_looks_make_runs (const KsEvalLooks *looks, const ks_chat_slots *slots)
{
  ks_visual_run *runs = g_new0 (ks_visual_run, MAX (slots->n, 1));

  for (size_t i = 0; i < slots->n; i++) {
    const ks_chat_slot *slot = &slots->items[i];
    const ks_vision_embeds *e = &looks->embeds[slot->visual];
    const ks_vision_plan *plan = &e->plan;
    gsize stride = (gsize)e->n_tok * e->n_embd;
    const float *embd = e->data + (gsize)slot->view * slot->n_tok * e->n_embd;

    runs[i] = (ks_visual_run){
        .first = slot->first,
        .n_tok = slot->n_tok,
        .embd = embd,
        .deep = e->n_deep > 0 ? embd + stride : NULL,
        .deep_stride = stride,
        .n_deep = e->n_deep,
        .grid_rows = plan->grid_rows,
        .grid_cols = plan->grid_cols,
        .places = e->places != NULL ? e->places + (gsize)slot->view * slot->n_tok : NULL,
        .is_overview = plan->has_overview && slot->view + 1 == plan->n_view,
        .attachment = (uint8_t)MIN (slot->visual + 1, 255),
        .follows = slot->follows,
        .t_shift = slot->t_shift};
    if (runs[i].is_overview)
      continue;
    runs[i].row0 = (uint16_t)(slot->view / plan->tile_cols * plan->grid_rows);
    runs[i].col0 = (uint16_t)(slot->view % plan->tile_cols * plan->grid_cols);
  }
  return runs;
}

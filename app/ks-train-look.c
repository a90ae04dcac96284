/* ks-train-look.c - see ks-train-look.h.
 * Positions: docs/method.md, sections 1 and 4; engine/timeline-visual.c gives the same to sessions.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-train-look.h"

#include "app/ks-error.h"
#include "app/ks-picture-loader.h"

#include <string.h>

struct _KsTrainLook {
  KsEngineSetup *setup;
  KsEngineJob *job;
  KsPictureLoader *loader;
  GArray *visuals; /* of ks_graph_visual */
  GArray *floats;  /* of float: the embeddings of the batch's pictures */
  GArray *grids;   /* of Grid: one a view */
  GArray *pos;     /* of gint32 [3, n_tok] */
  GArray *last;    /* of guint32 [n_tok] */
};

typedef struct {
  guint rows, cols;
} Grid;

KsTrainLook *
ks_train_look_new (KsEngineSetup *setup, KsEngineJob *job)
{
  KsTrainLook *look = g_new0 (KsTrainLook, 1);

  look->setup = setup;
  look->job = job;
  look->loader = ks_picture_loader_new ();
  look->visuals = g_array_new (FALSE, TRUE, sizeof (ks_graph_visual));
  look->floats = g_array_new (FALSE, FALSE, sizeof (float));
  look->grids = g_array_new (FALSE, FALSE, sizeof (Grid));
  look->pos = g_array_new (FALSE, TRUE, sizeof (gint32));
  look->last = g_array_new (FALSE, TRUE, sizeof (guint32));
  return look;
}

void
ks_train_look_free (KsTrainLook *look)
{
  if (look == NULL)
    return;
  ks_picture_loader_free (look->loader);
  g_array_unref (look->visuals);
  g_array_unref (look->floats);
  g_array_unref (look->grids);
  g_array_unref (look->pos);
  g_array_unref (look->last);
  g_free (look);
}

static bool
stop_cb (void *user)
{
  return ks_engine_job_is_cancelled (user);
}

/* Borrowed until the next picture is encoded. */
static const ks_vision_embeds *
get_embeds (KsTrainLook *look, const KsPicture *picture, GError **error)
{
  KsSight *sight = look->setup->sight;
  ks_vision_hooks hooks = {.stop = stop_cb, .user = look->job};
  const ks_vision_embeds *embeds = ks_sight_find (sight, picture);
  KsPictureRgb rgb = {0};
  ks_vision_plan plan;

  if (embeds != NULL)
    return embeds;
  if (ks_picture_loader_load (look->loader, picture, ks_engine_job_get_cancellable (look->job),
                              &rgb, error) &&
      ks_sight_make_plan (sight, picture, &rgb, &plan, error))
    embeds = ks_sight_encode (sight, picture, &rgb, &plan, &hooks, error);
  ks_picture_rgb_clear (&rgb);
  return embeds;
}

static gboolean
plan_picture (gpointer user, const KsPicture *picture, ks_vision_plan *out_plan, GError **error)
{
  KsTrainLook *look = user;
  const ks_vision_embeds *embeds;
  double time_s;

  if (ks_sight_find_plan (look->setup->sight, picture, out_plan, &time_s))
    return TRUE;
  embeds = get_embeds (look, picture, error);
  if (embeds != NULL)
    *out_plan = embeds->plan;
  return embeds != NULL;
}

void
ks_train_look_init_encoder (KsTrainLook *look, double prompt_weight, KsTrainEncoder *out)
{
  const KsEngineSetup *setup = look->setup;

  *out = (KsTrainEncoder){.alloc = setup->alloc,
                          .tokenizer = ks_model_get_tokenizer (setup->model),
                          .chat_template = ks_engine_setup_get_chat_template (setup),
                          .prompt_weight = prompt_weight};
  if (setup->sight == NULL)
    return;
  out->plan_picture = plan_picture;
  out->user = look;
  out->family = ks_sight_get_family (setup->sight);
}

/* ---- embeddings ---- */

/* A copy: the cache may give up one picture for the next.  The places of the floats are filled in
 * when all are there, since the array moves while it grows. */
static gboolean
copy_view (KsTrainLook *look, const KsTrainView *view, GError **error)
{
  const ks_vision_embeds *e = get_embeds (look, view->picture, error);
  ks_graph_visual visual = {.first = view->first, .n_tok = view->n_tok};
  gsize n_view, n_all;
  Grid grid;

  if (e == NULL)
    return FALSE;
  grid = (Grid){e->plan.grid_rows, e->plan.grid_cols};
  n_view = (gsize)view->n_tok * e->n_embd;
  n_all = (gsize)e->n_tok * e->n_embd;
  for (guint i = 0; i <= e->n_deep; i++)
    g_array_append_vals (look->floats, e->data + i * n_all + view->view * n_view, (guint)n_view);
  visual.deep_stride = n_view;
  g_array_append_val (look->visuals, visual);
  g_array_append_val (look->grids, grid);
  return TRUE;
}

static gboolean
copy_views (KsTrainLook *look, const KsTrainSequence *sequence, GError **error)
{
  const ks_model_shape *shape = ks_model_get_shape (look->setup->model);
  const float *floats;

  g_array_set_size (look->visuals, 0);
  g_array_set_size (look->floats, 0);
  g_array_set_size (look->grids, 0);
  for (guint i = 0; i < sequence->views->len; i++)
    if (!copy_view (look, &g_array_index (sequence->views, KsTrainView, i), error))
      return FALSE;
  floats = (const float *)(const void *)look->floats->data;
  for (guint i = 0; i < look->visuals->len; i++) {
    ks_graph_visual *visual = &g_array_index (look->visuals, ks_graph_visual, i);

    visual->embd = floats;
    visual->deep = shape->n_deep > 0 ? floats + visual->deep_stride : NULL;
    floats += visual->deep_stride * (1 + shape->n_deep);
  }
  return TRUE;
}

/* ---- positions ---- */

static void
set_pos (KsTrainLook *look, guint n_tok, guint at, gint32 t, gint32 h, gint32 w)
{
  gint32 *pos = (gint32 *)(void *)look->pos->data;

  pos[at] = t;
  pos[n_tok + at] = h;
  pos[2 * n_tok + at] = w;
}

/* The tokens of view i; gives the position behind it.  *origin is that of the view before. */
static gint32
place_view (KsTrainLook *look, const KsTrainSequence *sequence, guint i, gint32 next,
            gint32 *origin)
{
  const KsTrainView *view = &g_array_index (sequence->views, KsTrainView, i);
  Grid grid = g_array_index (look->grids, Grid, i);
  gint32 side = (gint32)MAX (grid.rows, grid.cols), shift = (gint32)view->t_shift;

  if (!view->follows)
    *origin = next;
  for (guint k = 0; k < view->n_tok; k++)
    set_pos (look, sequence->ids->len, view->first + k, *origin + shift,
             *origin + (gint32)(k / grid.cols), *origin + (gint32)(k % grid.cols));
  return MAX (next, *origin + MAX (shift + 1, side));
}

/* Positions in three parts, for models that have them. */
static void
place (KsTrainLook *look, const KsTrainSequence *sequence)
{
  guint n_tok = sequence->ids->len, view = 0, start = 0;
  gint32 next = 0, origin = 0;

  g_array_set_size (look->pos, 3 * n_tok);
  for (guint t = 0; t < n_tok;) {
    if (start < sequence->starts->len && g_array_index (sequence->starts, guint32, start) == t) {
      next = 0;
      start++;
    }
    if (view < sequence->views->len &&
        g_array_index (sequence->views, KsTrainView, view).first == t) {
      next = place_view (look, sequence, view, next, &origin);
      t += g_array_index (sequence->views, KsTrainView, view).n_tok;
      view++;
    } else {
      set_pos (look, n_tok, t, next, next, next);
      next++;
      t++;
    }
  }
}

/* Gemma 3: the tokens of a picture see each other. */
static void
see_both_ways (KsTrainLook *look, const KsTrainSequence *sequence)
{
  g_array_set_size (look->last, sequence->ids->len);
  for (guint32 t = 0; t < sequence->ids->len; t++)
    g_array_index (look->last, guint32, t) = t;
  for (guint i = 0; i < sequence->views->len; i++) {
    const KsTrainView *view = &g_array_index (sequence->views, KsTrainView, i);

    for (guint32 k = 0; k < view->n_tok; k++)
      g_array_index (look->last, guint32, view->first + k) = view->first + view->n_tok - 1;
  }
}

gboolean
ks_train_look_make_batch (KsTrainLook *look, const KsTrainSequence *sequence, ks_train_batch *out,
                          GError **error)
{
  const ks_model_shape *shape = ks_model_get_shape (look->setup->model);

  *out = (ks_train_batch){
      .n_tok = sequence->ids->len,
      .ids = (const ks_token *)(const void *)sequence->ids->data,
      .doc_starts = (const uint32_t *)(const void *)sequence->starts->data,
      .n_doc = sequence->starts->len,
      .weights = (const float *)(const void *)sequence->weights->data,
  };
  if (sequence->views->len == 0)
    return TRUE;
  if (!copy_views (look, sequence, error))
    return FALSE;
  out->visuals = (const ks_graph_visual *)(const void *)look->visuals->data;
  out->n_visual = look->visuals->len;
  if (shape->rope.axis != 0) {
    place (look, sequence);
    out->rope_pos = (const int32_t *)(const void *)look->pos->data;
  }
  if (shape->arch == KS_ARCH_GEMMA3) {
    see_both_ways (look, sequence);
    out->visual_last = (const uint32_t *)(const void *)look->last->data;
  }
  return TRUE;
}

/* timeline-visual.c - visual tokens in the passes of a timeline: which runs may come, where a pass
 * is cut, positions and places of their tokens.
 * Positions in three parts: the tokens of a view stand at its origin p in t and at p + row, p + col
 * in h and w; what follows stands behind the largest.  Frames of a video share an origin.
 * Source: docs/method.md, sections 1 and 4. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline-internal.h"

#include <assert.h>

#define MAX_SIDE 0x7fffu /* of a grid: a bit of patch_row says overview */

static uint32_t
run_end(const ks_visual_run *run)
{
  return run->first + run->n_tok;
}

/* Where token `index` of a run stands in its grid, counted in raster order. */
static uint32_t
place_of(const ks_visual_run *run, uint32_t index)
{
  return run->places != NULL ? run->places[index] : index;
}

/* ---- checking ---- */

uint32_t
ks_timeline_count_positions(const ks_visual_run *run)
{
  const uint32_t side = run->grid_rows > run->grid_cols ? run->grid_rows : run->grid_cols;

  return run->t_shift + 1 > side ? run->t_shift + 1 : side;
}

/* All of its tokens, or fewer that say where they stand. */
static bool
fills_grid(const ks_visual_run *run)
{
  const uint32_t n = run->grid_rows * run->grid_cols;

  if (run->places == NULL)
    return run->n_tok == n;
  for (uint32_t i = 0; i < run->n_tok; i++)
    if (run->places[i] >= n)
      return false;
  return run->n_tok <= n;
}

static ks_status
check_run(const ks_timeline *tl, const ks_eval_call *call, uint32_t i, ks_error *err)
{
  const ks_visual_run *run = &call->runs[i];
  const uint32_t n_deep = tl->shape->n_deep;

  if (run->grid_rows == 0 || run->grid_cols == 0 || run->grid_rows > MAX_SIDE ||
      run->grid_cols > MAX_SIDE || !fills_grid(run))
    return ks_fail(err, KS_ERR_ARG, "picture %u: %u tokens are no grid of %u x %u", i, run->n_tok,
                   run->grid_rows, run->grid_cols);
  if (run->row0 + run->grid_rows > MAX_SIDE || run->col0 + run->grid_cols > MAX_SIDE ||
      (run->is_overview && (run->row0 > 0 || run->col0 > 0)))
    return ks_fail(err, KS_ERR_ARG, "picture %u: its place %u, %u is outside the whole", i,
                   run->row0, run->col0);
  if (run->embd == NULL || run->n_deep != n_deep || (n_deep > 0 && run->deep == NULL))
    return ks_fail(err, KS_ERR_ARG,
                   "picture %u was embedded for another model: %u chunks of features, this one "
                   "takes %u",
                   i, run->n_deep, n_deep);
  if (run->t_shift > INT32_MAX / 4)
    return ks_fail(err, KS_ERR_ARG, "frame %u of a video is too late", i);
  return KS_OK;
}

/* Origin in h and w of the view that a token with positions in three parts belongs to; frames are
 * views of a grid that begins at 0. */
static int32_t
frame_origin(const ks_token_info *token)
{
  return token->rope_h - (int32_t)token->patch_row;
}

/* A frame goes on from a run of the same grid that ends where it begins, in this call or before. */
static bool
follows_frame(const ks_timeline *tl, const ks_eval_call *call, uint32_t i)
{
  const ks_visual_run *run = &call->runs[i], *before = i > 0 ? run - 1 : NULL;
  const ks_token_info *first, *last;

  if (run->first > 0)
    return before != NULL && run_end(before) == run->first && before->grid_rows == run->grid_rows &&
           before->grid_cols == run->grid_cols && before->t_shift <= run->t_shift;
  if (tl->seen < run->n_tok)
    return false;
  first = &tl->tokens[tl->seen - run->n_tok];
  last = &tl->tokens[tl->seen - 1];
  if (first->modality != KS_MODALITY_IMAGE || last->modality != KS_MODALITY_IMAGE ||
      last->rope_t - frame_origin(last) > (int32_t)run->t_shift)
    return false;
  /* Of a frame with fewer tokens the grid is not known any more. */
  return run->places != NULL || (last->patch_row == run->row0 + run->grid_rows - 1 &&
                                 last->patch_col == run->col0 + run->grid_cols - 1 &&
                                 first->patch_row == run->row0 && first->patch_col == run->col0);
}

static ks_status
check_runs(const ks_timeline *tl, const ks_eval_call *call, ks_error *err)
{
  uint64_t n_position = call->n;
  uint32_t end = 0;

  for (uint32_t i = 0; i < call->n_run; i++) {
    const ks_visual_run *run = &call->runs[i];
    ks_status st;

    if (run->n_tok == 0 || run->first < end || run->first >= call->n ||
        run->n_tok > call->n - run->first)
      return ks_fail(err, KS_ERR_ARG, "picture %u is not in its place among %u tokens", i, call->n);
    end = run_end(run);
    if ((st = check_run(tl, call, i, err)) != KS_OK)
      return st;
    if (tl->has_axes && run->follows && !follows_frame(tl, call, i))
      return ks_fail(err, KS_ERR_ARG, "frame %u does not follow one of its video", i);
    n_position += ks_timeline_count_positions(run);
  }
  if (n_position + (uint64_t)tl->rope_next > INT32_MAX)
    return ks_fail(err, KS_ERR_ARG, "a conversation cannot have more positions");
  return KS_OK;
}

static ks_status
check_ids(const ks_eval_call *call, ks_error *err)
{
  uint32_t run = 0;

  for (uint32_t i = 0; i < call->n; i++) {
    while (run < call->n_run && run_end(&call->runs[run]) <= i)
      run++;
    if ((call->ids[i] == KS_TOKEN_NONE) != (run < call->n_run && i >= call->runs[run].first))
      return ks_fail(err, KS_ERR_ARG, "token %u should%s belong to a picture", i,
                     call->ids[i] == KS_TOKEN_NONE ? "" : " not");
  }
  return KS_OK;
}

ks_status
ks_timeline_check_visual(const ks_timeline *tl, const ks_eval_call *call, ks_error *err)
{
  uint32_t longest = 0;
  ks_status st = check_runs(tl, call, err);

  if (st == KS_OK)
    st = check_ids(call, err);
  if (st != KS_OK || !tl->sees_both_ways)
    return st;
  for (uint32_t i = 0; i < call->n_run; i++)
    longest = call->runs[i].n_tok > longest ? call->runs[i].n_tok : longest;
  if (longest > tl->params.chunk)
    return ks_fail(err, KS_ERR_ARG,
                   "a picture of %u tokens must be read in one pass; there is room for %u", longest,
                   tl->params.chunk);
  return longest > 0 ? ks_timeline_check_pass(tl, longest, err) : KS_OK;
}

uint32_t
ks_timeline_get_max_view(const ks_timeline *tl)
{
  return tl->sees_both_ways ? tl->params.chunk : UINT32_MAX;
}

/* ---- one pass ---- */

uint32_t
ks_timeline_pick_pass(const ks_timeline *tl, const ks_eval_call *call, uint32_t begin,
                      uint32_t chunk)
{
  uint32_t n = call->n - begin < chunk ? call->n - begin : chunk, n_met = 0;

  for (uint32_t i = 0; i < call->n_run; i++) {
    const ks_visual_run *run = &call->runs[i];

    if (run_end(run) <= begin)
      continue;
    if (run->first >= begin + n)
      break;
    if (n_met++ == KS_GRAPH_MAX_VISUAL)
      return run->first - begin;
    if (tl->sees_both_ways && run_end(run) > begin + n)
      return run->first > begin ? run->first - begin : run->n_tok;
  }
  return n;
}

int32_t
ks_timeline_place_visual(ks_timeline *tl, const ks_visual_run *run, uint32_t index, uint32_t seq,
                         int32_t next)
{
  const uint32_t row = place_of(run, index) / run->grid_cols;
  const uint32_t col = place_of(run, index) % run->grid_cols;
  ks_token_info info = {.id = KS_TOKEN_NONE,
                        .turn = tl->turn,
                        .attachment = run->attachment,
                        .modality = KS_MODALITY_IMAGE,
                        .patch_row = (uint16_t)(run->row0 + row),
                        .patch_col = (uint16_t)(run->col0 + col),
                        .rope_t = next,
                        .rope_h = next,
                        .rope_w = next};
  int32_t origin = next, behind;

  if (run->is_overview)
    info.patch_row |= KS_PATCH_OVERVIEW;
  if (tl->has_axes) {
    if (index > 0)
      origin = tl->tokens[seq - 1].rope_h - (int32_t)(place_of(run, index - 1) / run->grid_cols);
    else if (run->follows)
      origin = frame_origin(&tl->tokens[seq - 1]);
    info.rope_t = origin + (int32_t)run->t_shift;
    info.rope_h = origin + (int32_t)row;
    info.rope_w = origin + (int32_t)col;
    behind = origin + (int32_t)ks_timeline_count_positions(run);
    next = behind > next ? behind : next;
  } else {
    next++;
  }
  tl->tokens[seq] = info;
  return next;
}

uint32_t
ks_timeline_cut_visuals(const ks_timeline *tl, const ks_eval_call *call, uint32_t begin, uint32_t n,
                        ks_graph_visual out[KS_GRAPH_MAX_VISUAL])
{
  const size_t n_embd = tl->shape->n_embd;
  uint32_t n_out = 0;

  for (uint32_t i = 0; i < call->n_run; i++) {
    const ks_visual_run *run = &call->runs[i];
    const uint32_t from = run->first > begin ? run->first : begin;
    const uint32_t to = run_end(run) < begin + n ? run_end(run) : begin + n;
    const size_t skipped = (from - run->first) * n_embd;

    if (from >= to)
      continue;
    assert(n_out < KS_GRAPH_MAX_VISUAL);
    out[n_out++] = (ks_graph_visual){.first = from - begin,
                                     .n_tok = to - from,
                                     .embd = run->embd + skipped,
                                     .deep = run->deep != NULL ? run->deep + skipped : NULL,
                                     .deep_stride = run->deep_stride};
  }
  return n_out;
}

static uint32_t
larger(uint32_t a, uint32_t b)
{
  return a > b ? a : b;
}

void
ks_timeline_note_grids(ks_timeline *tl, const ks_eval_call *call, uint32_t begin, uint32_t n)
{
  uint32_t at = tl->n_picture;

  for (uint32_t i = call->n_run; i > 0; i--) {
    const ks_visual_run *run = &call->runs[i - 1];

    if (run->places == NULL || run->first >= begin + n || run_end(run) <= begin)
      continue;
    /* The run's first token of this pass is one of the picture's. */
    while (at > 0 && tl->pictures[at - 1].begin > tl->seen - n + larger(run->first, begin) - begin)
      at--;
    assert(at > 0);
    if (run->is_overview) {
      tl->pictures[at - 1].overview_rows = run->grid_rows;
      tl->pictures[at - 1].overview_cols = run->grid_cols;
    } else {
      ks_picture_stats *p = &tl->pictures[at - 1];

      p->grid_rows = larger(p->grid_rows, run->row0 + run->grid_rows);
      p->grid_cols = larger(p->grid_cols, run->col0 + run->grid_cols);
    }
  }
}

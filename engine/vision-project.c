/* vision-project.c - rows of a tower become tokens of the language model.
 * The patches of a token are neighbours, so that putting them behind each other is another view of
 * the same rows; Gemma 3 takes their mean instead.  The GELU between two matrices is the exact one
 * (erf).  Tokens go to the host, where windows are put back into raster order.
 * Source: docs/method.md, section 10. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-internal.h"

#include <string.h>

static uint32_t
count_tokens(const ks_vision *v, uint32_t n_row)
{
  return n_row / (v->shape.prep.merge * v->shape.prep.merge);
}

static size_t
count_merger(const ks_vision *v, const ks_vision_merger *m)
{
  return (size_t)(m->w1.data != 0 ? m->w0.n_out : 0) + v->shape.n_out;
}

size_t
ks_vision_count_project(const ks_vision *v, uint32_t n)
{
  size_t most = count_merger(v, &v->projector);

  if (v->shape.family == KS_VISION_GEMMA3)
    most += v->shape.n_embd;
  for (uint32_t i = 0; i < v->shape.n_deep; i++)
    if (count_merger(v, &v->deep[i].merger) > most)
      most = count_merger(v, &v->deep[i].merger);
  return most * count_tokens(v, n);
}

/* Tokens of x through the one or two matrices; *out is where they lie in work, behind used floats.
 */
static ks_status
record_merger(ks_vision_pass *p, const ks_vision_merger *m, ks_dptr x, uint32_t n_tok, size_t used,
              ks_dptr *out)
{
  const ks_dptr mid = p->dev + p->mem.work + used * sizeof(float);
  ks_status st;

  if (m->w1.data == 0) {
    *out = mid;
    return ks_vision_pass_linear(p, &m->w0, m->b0, x, mid, n_tok, KS_EPI_STORE, KS_ACT_NONE);
  }
  *out = mid + (ks_dptr)n_tok * m->w0.n_out * sizeof(float);
  st = ks_vision_pass_linear(p, &m->w0, m->b0, x, mid, n_tok, KS_EPI_STORE, KS_ACT_GELU_ERF);
  return st == KS_OK
             ? ks_vision_pass_linear(p, &m->w1, m->b1, mid, *out, n_tok, KS_EPI_STORE, KS_ACT_NONE)
             : st;
}

/* Gemma 3: means over squares of patches, normed. */
static ks_status
record_pool(ks_vision_pass *p, ks_dptr x, uint32_t n)
{
  const ks_vision *v = p->vision;
  const uint32_t s = v->shape.prep.merge, gw = p->plan->grid_cols * s;
  const ks_dptr pooled = p->dev + p->mem.work;
  const ks_op_pool op = {
      .in = x, .out = pooled, .gh = n / gw, .gw = gw, .n_col = v->shape.n_embd, .s = s};
  ks_status st = v->be->t->pool(v->be->dev, &op);

  return st == KS_OK ? ks_vision_pass_norm(p, &v->pooled_norm, true, pooled, pooled,
                                           count_tokens(v, n), v->shape.n_embd)
                     : st;
}

/* Records the projection of n rows at x; *out_rows are the rows as the projector reads them. */
static ks_status
record_project(ks_vision_pass *p, ks_dptr x, uint32_t n, ks_dptr *out_rows, ks_dptr *out)
{
  const ks_vision *v = p->vision;
  const ks_vision_shape *s = &v->shape;
  const bool taps_normed = s->family == KS_VISION_IDEFICS3 || s->family == KS_VISION_GEMMA3;
  const ks_dptr h = p->dev + p->mem.h;
  const uint32_t n_tok = count_tokens(v, n);
  ks_status st = KS_OK;

  *out_rows = taps_normed ? h : x;
  if (v->post_ln.w != 0)
    st = ks_vision_pass_norm(p, &v->post_ln, v->is_rms, x, h, n, s->n_embd);
  if (st != KS_OK)
    return st;
  if (s->family != KS_VISION_GEMMA3)
    return record_merger(p, &v->projector, v->post_ln.w != 0 ? h : x, n_tok, 0, out);
  st = record_pool(p, h, n);
  return st == KS_OK ? record_merger(p, &v->projector, p->dev + p->mem.work, n_tok,
                                     (size_t)n_tok * s->n_embd, out)
                     : st;
}

/* Tokens of rows first .. first + n - 1, which lie at y, to their places in chunk of the result. */
static ks_status
download_tokens(ks_vision_pass *p, ks_dptr y, uint32_t first, uint32_t n, uint32_t chunk)
{
  const ks_vision *v = p->vision;
  const uint32_t n_out = v->shape.n_out, n_tok = count_tokens(v, n), begin = count_tokens(v, first);
  const uint32_t per_view = p->plan->grid_rows * p->plan->grid_cols;
  float *to;
  ks_status st;

  if (p->is_dry)
    return KS_OK;
  to = p->zip.is_on
           ? p->zip.whole + (size_t)chunk * per_view * n_out
           : p->out->data + ((size_t)chunk * p->out->n_tok + (size_t)p->view * per_view) * n_out;
  st = v->be->t->download(v->be->dev, p->host, y, (size_t)n_tok * n_out * sizeof *p->host, p->err);
  for (uint32_t i = 0; st == KS_OK && i < n_tok; i++) {
    const uint32_t place = p->rows.order != NULL ? p->rows.order[begin + i] : begin + i;

    memcpy(to + (size_t)place * n_out, p->host + (size_t)i * n_out, n_out * sizeof *to);
  }
  return st;
}

/* For the tap: rows to the order of the patches, a staging full at a time. */
static ks_status
download_rows(ks_vision_pass *p, ks_dptr rows, uint32_t first, uint32_t n)
{
  const ks_vision *v = p->vision;
  const uint32_t n_embd = v->shape.n_embd;
  ks_status st;

  if (p->tapped == NULL)
    return KS_OK;
  st = v->be->t->download(v->be->dev, p->host, rows, (size_t)n * n_embd * sizeof *p->host, p->err);
  for (uint32_t i = 0; st == KS_OK && i < n; i++)
    memcpy(p->tapped + (size_t)ks_vision_rows_get_patch(&p->rows, first + i) * n_embd,
           p->host + (size_t)i * n_embd, n_embd * sizeof *p->tapped);
  return st;
}

static ks_status
project_rows(ks_vision_pass *p, ks_dptr x, uint32_t n, ks_dptr *out)
{
  ks_dptr rows = 0;
  ks_status st = ks_vision_pass_begin(p);

  return st == KS_OK ? ks_vision_pass_end(p, record_project(p, x, n, &rows, out)) : st;
}

/* VisionZip with a class token: the rows that stay go through the projector. */
static ks_status
project_kept(ks_vision_pass *p)
{
  const ks_vision *v = p->vision;
  const uint32_t n_kept = p->zip.n_kept;
  const ks_dptr x = p->dev + p->mem.x;
  ks_dptr y = 0;
  ks_status st = KS_OK;

  if (!p->is_dry &&
      (st = download_rows(p, x + v->shape.n_embd * sizeof(float), 1, p->rows.n_patch)) == KS_OK)
    st = ks_vision_zip_merge_rows(p, x);
  if (st == KS_OK)
    st = project_rows(p, x, n_kept, &y);
  if (st != KS_OK || p->is_dry)
    return st;
  return v->be->t->download(v->be->dev, p->out->data + (size_t)p->view * n_kept * v->shape.n_out, y,
                            (size_t)n_kept * v->shape.n_out * sizeof(float), p->err);
}

static ks_status
project_all(ks_vision_pass *p)
{
  const ks_vision_rows *r = &p->rows;
  ks_status st = KS_OK;

  for (uint32_t i = 0; st == KS_OK && i < r->n_tile; i++) {
    const uint32_t n_class = i == 0 ? r->first_patch : 0;
    const uint32_t first = r->tiles[i], n = r->tiles[i + 1] - first;
    ks_dptr x = 0, rows = 0, y = 0;

    if ((st = ks_vision_pass_begin(p)) != KS_OK)
      return st;
    st = ks_vision_pass_take(p, first, n, &x);
    x += (ks_dptr)n_class * p->vision->shape.n_embd * sizeof(float);
    if (st == KS_OK)
      st = record_project(p, x, n - n_class, &rows, &y);
    if ((st = ks_vision_pass_end(p, st)) == KS_OK &&
        (st = download_rows(p, rows, first + n_class, n - n_class)) == KS_OK)
      st = download_tokens(p, y, first, n - n_class, 0);
  }
  return st;
}

ks_status
ks_vision_pass_project(ks_vision_pass *p)
{
  ks_status st;

  if (p->zip.is_on && p->vision->has_class)
    return project_kept(p);
  st = project_all(p);
  return st == KS_OK && p->zip.is_on && !p->is_dry ? ks_vision_zip_merge_tokens(p) : st;
}

ks_status
ks_vision_pass_deep(ks_vision_pass *p, uint32_t i)
{
  const ks_vision *v = p->vision;
  const ks_vision_merger *m = &v->deep[i].merger;
  const ks_dptr h = p->dev + p->mem.h;
  ks_status st = KS_OK;

  for (uint32_t t = 0; st == KS_OK && t < p->rows.n_tile; t++) {
    const uint32_t first = p->rows.tiles[t], n = p->rows.tiles[t + 1] - first;
    const uint32_t n_tok = count_tokens(v, n);
    ks_dptr x = 0, y = 0;

    if ((st = ks_vision_pass_begin(p)) != KS_OK)
      return st;
    st = ks_vision_pass_take(p, first, n, &x);
    if (st == KS_OK)
      st = ks_vision_pass_norm(p, &m->norm, false, x, h, n_tok, m->w0.n_in);
    if (st == KS_OK)
      st = record_merger(p, m, h, n_tok, 0, &y);
    if ((st = ks_vision_pass_end(p, st)) == KS_OK)
      st = download_tokens(p, y, first, n, 1 + i);
  }
  return st;
}

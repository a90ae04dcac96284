/* vision-embed.c - patches become the rows of a tower: projection, positions, first norm.
 * The patch matrix reads (channel, y, x); the Qwen families have a second one for the next frame of
 * a video, which a still picture fills with itself.  Positions come from a table, for Qwen3-VL
 * sampled bilinearly with the corners of table and picture on each other, or turn the heads later.
 * Source: docs/method.md, section 10. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-internal.h"

#include <math.h>
#include <string.h>

/* Patches of rows first .. first + n - 1, in runs that are neighbours in the picture's order. */
static void
read_patches(const ks_vision_pass *p, uint32_t frame, uint32_t first, uint32_t n)
{
  const ks_vision_rows *r = &p->rows;
  const uint32_t patch = p->vision->shape.prep.patch;
  const size_t width = (size_t)3 * patch * patch;
  uint32_t end;

  for (uint32_t at = 0; at < n; at = end) {
    const uint32_t from = ks_vision_rows_get_patch(r, first + at);

    for (end = at + 1; end < n; end++)
      if (ks_vision_rows_get_patch(r, first + end) != from + end - at)
        break;
    ks_vision_input_get_patches(p->in, p->view, frame, from, end - at, p->host + at * width);
  }
}

/* Between table rows a and b, at fraction f. */
typedef struct sample {
  uint32_t a, b;
  float f;
} sample;

/* Where cell i of n lies in a table of side cells. */
static sample
sample_get(uint32_t i, uint32_t n, uint32_t side)
{
  const double at = n > 1 ? (double)i * (side - 1) / (n - 1) : 0;
  const uint32_t a = (uint32_t)at;

  return (sample){a, a + 1 < side ? a + 1 : a, (float)(at - a)};
}

static void
add_scaled_row(float *out, const float *row, float factor, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] += factor * row[i];
}

static void
sample_position(const ks_vision *v, sample y, sample x, float *out)
{
  const uint32_t n = v->shape.n_embd, side = (uint32_t)sqrt((double)v->n_position);
  const float *table = v->positions;

  memset(out, 0, n * sizeof *out);
  add_scaled_row(out, table + ((size_t)y.a * side + x.a) * n, (1 - y.f) * (1 - x.f), n);
  add_scaled_row(out, table + ((size_t)y.a * side + x.b) * n, (1 - y.f) * x.f, n);
  add_scaled_row(out, table + ((size_t)y.b * side + x.a) * n, y.f * (1 - x.f), n);
  add_scaled_row(out, table + ((size_t)y.b * side + x.b) * n, y.f * x.f, n);
}

/* Position rows of rows first .. first + n - 1 (behind the class token) to the staging. */
static void
fill_positions(const ks_vision_pass *p, uint32_t first, uint32_t n)
{
  const ks_vision *v = p->vision;
  const uint32_t merge = v->shape.prep.merge, n_embd = v->shape.n_embd;
  const uint32_t gh = p->plan->grid_rows * merge, gw = p->plan->grid_cols * merge;
  const uint32_t side = (uint32_t)sqrt((double)v->n_position);

  for (uint32_t i = 0; i < n; i++) {
    float *out = p->host + (size_t)i * n_embd;
    uint32_t row, col;

    ks_vision_patch_place(&v->shape.prep, p->plan, ks_vision_rows_get_patch(&p->rows, first + i),
                          &row, &col);
    if (v->interpolates)
      sample_position(v, sample_get(row, gh, side), sample_get(col, gw, side), out);
    else
      memcpy(out, v->positions + ((size_t)row * gw + col + p->rows.first_patch) * n_embd,
             n_embd * sizeof *out);
  }
}

/* Rows and columns that turn the heads: [3, n] of a tile, time 0. */
static ks_status
upload_places(const ks_vision_pass *p, uint32_t first, uint32_t n)
{
  const ks_vision *v = p->vision;
  int32_t *pos = (int32_t *)(void *)p->host;

  if (!v->has_rope || p->is_dry)
    return KS_OK;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t row, col;

    ks_vision_patch_place(&v->shape.prep, p->plan, ks_vision_rows_get_patch(&p->rows, first + i),
                          &row, &col);
    pos[i] = 0;
    pos[n + i] = (int32_t)row;
    pos[2 * n + i] = (int32_t)col;
  }
  return v->be->t->upload(v->be->dev, p->dev + p->mem.pos + (ks_dptr)first * 3 * sizeof *pos, pos,
                          (size_t)n * 3 * sizeof *pos, p->err);
}

/* The class token and its position are row 0. */
static ks_status
upload_class(const ks_vision_pass *p)
{
  const ks_vision *v = p->vision;

  if (!v->has_class || p->is_dry)
    return KS_OK;
  for (uint32_t i = 0; i < v->shape.n_embd; i++)
    p->host[i] = v->class_row[i] + v->positions[i];
  return v->be->t->upload(v->be->dev, p->dev + p->mem.x, p->host, v->shape.n_embd * sizeof *p->host,
                          p->err);
}

/* x = or += the patches of a frame times their matrix. */
static ks_status
run_frame(ks_vision_pass *p, uint32_t frame, uint32_t first, uint32_t n, ks_dptr x)
{
  const ks_vision *v = p->vision;
  const ks_dptr patches = p->dev + p->mem.work;
  ks_status st = KS_OK;

  if (!p->is_dry) {
    read_patches(p, frame, first, n);
    st = v->be->t->upload(v->be->dev, patches, p->host,
                          (size_t)n * v->patch[0].n_in * sizeof *p->host, p->err);
  }
  if (st != KS_OK || (st = ks_vision_pass_begin(p)) != KS_OK)
    return st;
  return ks_vision_pass_end(
      p, ks_vision_pass_linear(p, &v->patch[frame], frame == 0 ? v->patch_bias : 0, patches, x, n,
                               frame == 0 ? KS_EPI_STORE : KS_EPI_ADD, KS_ACT_NONE));
}

/* Positions are added, the first norm taken, the rows put away. */
static ks_status
run_positions(ks_vision_pass *p, uint32_t first, uint32_t n, ks_dptr x)
{
  const ks_vision *v = p->vision;
  const uint32_t n_embd = v->shape.n_embd, n_class = p->rows.first_patch;
  const ks_dptr x0 = x - (ks_dptr)n_class * n_embd * sizeof(float);
  ks_op_add_rows add = {.dst = x, .src = p->dev + p->mem.h, .n_row = n, .n_col = n_embd};
  ks_status st = KS_OK;

  if (v->positions != NULL && !p->is_dry) {
    fill_positions(p, first, n);
    st = v->be->t->upload(v->be->dev, add.src, p->host, (size_t)n * n_embd * sizeof *p->host,
                          p->err);
  }
  if (st != KS_OK || (st = ks_vision_pass_begin(p)) != KS_OK)
    return st;
  if (v->positions != NULL)
    st = v->be->t->add_rows(v->be->dev, &add);
  if (st == KS_OK && v->pre_ln.w != 0)
    st = ks_vision_pass_norm(p, &v->pre_ln, v->is_rms, x0, x0, n + n_class, n_embd);
  if (st == KS_OK)
    st = ks_vision_pass_put(p, first, n);
  return ks_vision_pass_end(p, st);
}

ks_status
ks_vision_pass_embed(ks_vision_pass *p)
{
  const ks_vision *v = p->vision;
  ks_status st = upload_class(p);

  for (uint32_t i = 0; st == KS_OK && i < p->rows.n_tile; i++) {
    const uint32_t first = p->rows.tiles[i] + (i == 0 ? p->rows.first_patch : 0);
    const uint32_t n = p->rows.tiles[i + 1] - first;
    const ks_dptr x = p->mem.x_dtype == KS_DTYPE_F32
                          ? p->dev + p->mem.x + (ks_dptr)first * p->mem.x_row_bytes
                          : p->dev + p->mem.x_tile;

    if ((st = upload_places(p, first, n)) == KS_OK &&
        (st = run_frame(p, 0, first, n, x)) == KS_OK && v->patch[1].data != 0)
      st = run_frame(p, 1, first, n, x);
    if (st == KS_OK)
      st = run_positions(p, first, n, x);
  }
  return st;
}

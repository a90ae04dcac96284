/* vision-zip.c - VisionZip in a tower: what one block's attention and keys say about the tokens of
 * a view, and the view's result with fewer of them.
 * The block is the encoder's last but one, or the last that sees the whole picture where that one
 * does not; of LLaVA's encoder the file holds no later one.  With a class token its attention
 * decides and rows are merged before the projector, as published; other towers join several patches
 * to a token, so there the mean received attention decides and finished tokens are merged.
 * Source: docs/method.md, section 13. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static uint32_t
head_dim(const ks_vision *v)
{
  return v->shape.n_embd / v->shape.n_head;
}

static uint32_t
count_view_tok(const ks_vision_plan *plan)
{
  return plan->grid_rows * plan->grid_cols;
}

uint32_t
ks_vision_count_view_tok(const ks_vision *v, const ks_vision_plan *plan)
{
  return ks_vision_zip_count(&v->zip, count_view_tok(plan), v->has_class);
}

static bool
sees_whole(const ks_vision *v, uint32_t layer)
{
  return v->window == 0 || (layer + 1) % v->wa_pattern == 0;
}

static uint32_t
choose_layer(const ks_vision *v)
{
  const uint32_t last = v->shape.n_layer - 1;
  uint32_t layer = v->has_class || last == 0 ? last : last - 1;

  if (sees_whole(v, layer))
    return layer;
  for (layer = last; layer > 0 && !sees_whole(v, layer); layer--)
    ;
  return layer;
}

/* --- memory --- */

/* Floats on the host: attention and keys of a view, keys (and attention) of a tile or a group of
 * heads, the view's rows or tokens, and for a class token the rows that stay. */
typedef struct sizes {
  size_t received, metric, staging, whole, merged;
} sizes;

static bool
count_sizes(const ks_vision *v, const ks_vision_plan *plan, uint32_t group, uint32_t tile,
            uint32_t n_row, sizes *out)
{
  const ks_vision_shape *s = &v->shape;
  const size_t n_tok = count_view_tok(plan);
  size_t mass;

  out->received = n_tok;
  out->merged = v->has_class ? (size_t)ks_vision_count_view_tok(v, plan) * s->n_embd : 0;
  return ks_mul_size(n_tok, head_dim(v), &out->metric) &&
         ks_mul_size(tile, s->n_embd, &out->staging) && ks_mul_size(group, n_row, &mass) &&
         ((out->staging = out->staging > mass ? out->staging : mass), true) &&
         (v->has_class ? ks_mul_size(n_row, s->n_embd, &out->whole)
                       : ks_mul_size(n_tok * (1 + s->n_deep), s->n_out, &out->whole));
}

uint64_t
ks_vision_zip_count_bytes(const ks_vision *v, const ks_vision_plan *plan, uint32_t group)
{
  const uint32_t merge = v->shape.prep.merge;
  const uint32_t n_row = count_view_tok(plan) * merge * merge + (v->has_class ? 1 : 0);
  sizes s;

  if (ks_vision_count_view_tok(v, plan) == count_view_tok(plan) ||
      !count_sizes(v, plan, group, ks_vision_rows_count_tile(v, plan), n_row, &s))
    return 0;
  return sizeof(float) * ((uint64_t)s.received + s.metric + s.staging + s.whole + s.merged +
                          (uint64_t)group * n_row);
}

ks_status
ks_vision_zip_begin(ks_vision_pass *p)
{
  ks_vision_zip_state *z = &p->zip;
  const ks_vision *v = p->vision;
  const size_t n_mass = (size_t)p->mem.group * p->rows.n_row;
  sizes s;

  z->n_tok = count_view_tok(p->plan);
  z->n_kept = ks_vision_count_view_tok(v, p->plan);
  z->is_on = z->n_kept < z->n_tok;
  z->layer = choose_layer(v);
  if (!z->is_on)
    return KS_OK;
  z->mass_offset = ks_mem_new(v->alloc, KS_MEM_VISION, p->mem.group, sizeof *z->mass_offset);
  for (uint32_t h = 0; z->mass_offset != NULL && h < p->mem.group; h++)
    z->mass_offset[h] = (uint64_t)h * p->rows.n_row;
  if (p->is_dry) {
    z->mass = p->dev;
    return z->mass_offset != NULL ? KS_OK : ks_fail(p->err, KS_ERR_NOMEM, "no memory for heads");
  }
  if (z->mass_offset == NULL ||
      !count_sizes(v, p->plan, p->mem.group, p->rows.max_tile_rows, p->rows.n_row, &s))
    return ks_fail(p->err, KS_ERR_NOMEM, "a picture of %u tokens is too large", z->n_tok);
  z->received = ks_mem_new(v->alloc, KS_MEM_VISION, s.received, sizeof *z->received);
  z->metric = ks_mem_new(v->alloc, KS_MEM_VISION, s.metric, sizeof *z->metric);
  z->staging = ks_mem_new(v->alloc, KS_MEM_VISION, s.staging, sizeof *z->staging);
  z->whole = ks_mem_new(v->alloc, KS_MEM_VISION, s.whole, sizeof *z->whole);
  z->merged = ks_mem_new(v->alloc, KS_MEM_VISION, s.merged, sizeof *z->merged);
  if (z->received == NULL || z->metric == NULL || z->staging == NULL || z->whole == NULL ||
      z->merged == NULL)
    return ks_fail(p->err, KS_ERR_NOMEM, "no memory to choose among %u tokens of a picture",
                   z->n_tok);
  return v->be->t->mem_new(v->be->dev, KS_MEM_VISION, n_mass * sizeof(float), &z->mass, p->err);
}

void
ks_vision_zip_done(ks_vision_pass *p)
{
  ks_vision_zip_state *z = &p->zip;

  if (z->mass != 0 && !p->is_dry)
    p->vision->be->t->mem_free(p->vision->be->dev, z->mass);
  ks_mem_free(z->mass_offset);
  ks_mem_free(z->received);
  ks_mem_free(z->metric);
  ks_mem_free(z->staging);
  ks_mem_free(z->whole);
  ks_mem_free(z->merged);
  *z = (ks_vision_zip_state){0};
}

/* --- what a block says --- */

bool
ks_vision_zip_wants(const ks_vision_pass *p, uint32_t layer)
{
  return p->zip.is_on && p->zip.layer == layer;
}

void
ks_vision_zip_begin_view(ks_vision_pass *p)
{
  ks_vision_zip_state *z = &p->zip;

  if (!z->is_on || p->is_dry)
    return;
  memset(z->received, 0, z->n_tok * sizeof *z->received);
  memset(z->metric, 0, (size_t)z->n_tok * head_dim(p->vision) * sizeof *z->metric);
}

/* The token that a row is part of, in raster order. */
static uint32_t
token_of_row(const ks_vision_pass *p, uint32_t row)
{
  const ks_vision_prep *prep = &p->vision->shape.prep;
  uint32_t y, x;

  ks_vision_patch_place(prep, p->plan, ks_vision_rows_get_patch(&p->rows, row), &y, &x);
  return y / prep->merge * p->plan->grid_cols + x / prep->merge;
}

/* Adds the keys in staging, [n, n_head, head_dim] of rows from first on, to the tokens' metric:
 * the mean over heads and patches. */
static void
add_keys(ks_vision_pass *p, uint32_t first, uint32_t n, uint32_t n_head)
{
  const uint32_t dim = head_dim(p->vision);
  const float share = 1.0f / (float)(p->vision->shape.n_head * p->rows.per_token);

  for (uint32_t i = first < p->rows.first_patch ? p->rows.first_patch - first : 0; i < n; i++) {
    const float *keys = p->zip.staging + (size_t)i * n_head * dim;
    float *metric = p->zip.metric + (size_t)token_of_row(p, first + i) * dim;

    for (uint32_t h = 0; h < n_head; h++)
      for (uint32_t d = 0; d < dim; d++)
        metric[d] += keys[h * dim + d] * share;
  }
}

static ks_status
download(ks_vision_pass *p, ks_dptr from, size_t n)
{
  return p->vision->be->t->download(p->vision->be->dev, p->zip.staging, from,
                                    n * sizeof *p->zip.staging, p->err);
}

/* Attention of the class token, summed over heads, from its query (in merged) and the keys of all
 * rows (in staging). */
static void
add_class_attention(ks_vision_pass *p)
{
  const ks_vision *v = p->vision;
  const uint32_t n_row = p->rows.n_row, n_embd = v->shape.n_embd, dim = head_dim(v);
  const double scale = 1.0 / sqrt(dim);
  float *weights = p->zip.whole; /* free until the rows are fetched */

  for (uint32_t h = 0; h < v->shape.n_head; h++) {
    const float *query = p->zip.merged + (size_t)h * dim;
    double most = -INFINITY, sum = 0;

    for (uint32_t i = 0; i < n_row; i++) {
      const float *key = p->zip.staging + (size_t)i * n_embd + (size_t)h * dim;
      double dot = 0;

      for (uint32_t d = 0; d < dim; d++)
        dot += (double)query[d] * key[d];
      weights[i] = (float)(dot * scale);
      most = weights[i] > most ? weights[i] : most;
    }
    for (uint32_t i = 0; i < n_row; i++)
      sum += exp(weights[i] - most);
    for (uint32_t i = p->rows.first_patch; i < n_row; i++)
      p->zip.received[token_of_row(p, i)] += (float)(exp(weights[i] - most) / sum);
  }
}

ks_status
ks_vision_zip_note_tile(ks_vision_pass *p, uint32_t first, uint32_t n)
{
  const ks_vision *v = p->vision;
  const uint32_t n_embd = v->shape.n_embd;
  ks_status st = KS_OK;

  if (p->is_dry)
    return KS_OK;
  if (!v->has_class) {
    st = download(p, p->zip.mass, n);
    for (uint32_t i = 0; st == KS_OK && i < n; i++)
      p->zip.received[token_of_row(p, first + i)] += p->zip.staging[i] / (float)p->rows.per_token;
  }
  if (st == KS_OK)
    st = download(p, p->dev + p->mem.k, (size_t)n * n_embd);
  if (st != KS_OK)
    return st;
  add_keys(p, first, n, v->shape.n_head);
  if (!v->has_class)
    return KS_OK;
  assert(first == 0 && n == p->rows.n_row);
  st = v->be->t->download(v->be->dev, p->zip.merged, p->dev + p->mem.q, n_embd * sizeof(float),
                          p->err);
  if (st == KS_OK)
    add_class_attention(p);
  return st;
}

ks_status
ks_vision_zip_note_keys(ks_vision_pass *p, uint32_t first, uint32_t n)
{
  ks_status st =
      p->is_dry ? KS_OK
                : download(p, p->dev + p->mem.k, (size_t)n * p->mem.group * head_dim(p->vision));

  if (st == KS_OK && !p->is_dry)
    add_keys(p, first, n, p->mem.group);
  return st;
}

ks_status
ks_vision_zip_note_mass(ks_vision_pass *p)
{
  const uint32_t n_row = p->rows.n_row;
  const double share = 1.0 / ((double)n_row * p->vision->shape.n_head * p->rows.per_token);
  ks_status st = p->is_dry ? KS_OK : download(p, p->zip.mass, (size_t)p->mem.group * n_row);

  for (uint32_t h = 0; st == KS_OK && !p->is_dry && h < p->mem.group; h++)
    for (uint32_t i = 0; i < n_row; i++)
      p->zip.received[token_of_row(p, i)] += (float)(p->zip.staging[(size_t)h * n_row + i] * share);
  return st;
}

/* --- the view's result --- */

static ks_status
choose(ks_vision_pass *p, ks_zip_choice *out)
{
  const ks_vision *v = p->vision;
  const ks_vision_zip_state *z = &p->zip;
  ks_status st = ks_zip_choose(v->alloc, &v->zip, v->has_class, z->received, z->metric, z->n_tok,
                               head_dim(v), out, p->err);

  if (st == KS_OK)
    ks_zip_get_places(out, p->out->places + (size_t)p->view * z->n_kept);
  return st;
}

ks_status
ks_vision_zip_merge_rows(ks_vision_pass *p, ks_dptr x)
{
  const ks_vision *v = p->vision;
  const ks_vision_zip_state *z = &p->zip;
  const size_t n_embd = v->shape.n_embd;
  ks_zip_choice choice;
  ks_status st;

  st = v->be->t->download(v->be->dev, z->whole, x, p->rows.n_row * n_embd * sizeof(float), p->err);
  if (st == KS_OK)
    st = choose(p, &choice);
  if (st != KS_OK)
    return st;
  st = ks_zip_merge(v->alloc, &choice, z->whole, z->whole + n_embd, n_embd, z->merged, p->err);
  ks_zip_choice_clear(&choice);
  return st == KS_OK ? v->be->t->upload(v->be->dev, x, z->merged,
                                        z->n_kept * n_embd * sizeof(float), p->err)
                     : st;
}

ks_status
ks_vision_zip_merge_tokens(ks_vision_pass *p)
{
  const ks_vision *v = p->vision;
  const ks_vision_zip_state *z = &p->zip;
  const size_t n_out = v->shape.n_out;
  ks_zip_choice choice;
  ks_status st = choose(p, &choice);

  if (st != KS_OK)
    return st;
  for (uint32_t c = 0; st == KS_OK && c <= v->shape.n_deep; c++)
    st = ks_zip_merge(v->alloc, &choice, NULL, z->whole + c * z->n_tok * n_out, n_out,
                      p->out->data + (c * p->out->n_tok + (size_t)p->view * z->n_kept) * n_out,
                      p->err);
  ks_zip_choice_clear(&choice);
  return st;
}

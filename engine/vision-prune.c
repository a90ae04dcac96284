/* vision-prune.c - see vision-prune.h.  Source: docs/method.md, section 13. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-prune.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- ranking --- */

/* Larger values first, of equal ones the first; NaN, which a damaged model may give, comes last: an
 * order that contradicts itself is not one to sort by. */
static int
compare_ranks(const void *a, const void *b)
{
  const ks_prune_rank *x = a, *y = b;
  const bool x_is_nan = isnan(x->value), y_is_nan = isnan(y->value);

  if (x_is_nan != y_is_nan)
    return x_is_nan ? 1 : -1;
  if (!x_is_nan && x->value != y->value)
    return x->value > y->value ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

/* --- VisionZip --- */

uint32_t
ks_vision_zip_count(const ks_vision_zip *zip, uint32_t n_tok, bool has_class)
{
  const uint64_t kept = (uint64_t)zip->n_dominant + zip->n_context;

  if (zip->n_dominant == 0 || kept >= (uint64_t)n_tok + (has_class ? 1 : 0))
    return n_tok;
  return (uint32_t)kept;
}

static ks_status
take_choice(ks_alloc *a, const ks_vision_zip *zip, bool has_class, uint32_t n_tok,
            ks_zip_choice *out, ks_error *err)
{
  *out = (ks_zip_choice){.n_tok = n_tok,
                         .has_class = has_class,
                         .n_dominant = zip->n_dominant - (has_class ? 1 : 0),
                         .n_context = zip->n_context};
  out->dominant = ks_mem_new(a, KS_MEM_VISION, out->n_dominant, sizeof *out->dominant);
  out->target = ks_mem_new(a, KS_MEM_VISION, out->n_context, sizeof *out->target);
  out->group = ks_mem_new(a, KS_MEM_VISION, n_tok, sizeof *out->group);
  if (out->dominant != NULL && out->target != NULL && out->group != NULL)
    return KS_OK;
  ks_zip_choice_clear(out);
  return ks_fail(err, KS_ERR_NOMEM, "no memory to choose among %u tokens of a picture", n_tok);
}

/* Marks in group: 0 stays, KS_ZIP_NONE does not; fills dominant. */
static void
choose_dominant(ks_zip_choice *c, ks_prune_rank *ranks, const float *received)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < c->n_tok; i++) {
    ranks[i] = (ks_prune_rank){received[i], i};
    c->group[i] = KS_ZIP_NONE;
  }
  qsort(ranks, c->n_tok, sizeof *ranks, compare_ranks);
  for (uint32_t i = 0; i < c->n_dominant; i++)
    c->group[ranks[i].index] = 0;
  for (uint32_t i = 0; i < c->n_tok; i++)
    if (c->group[i] == 0)
      c->dominant[n++] = i;
}

/* Every step-th of those that do not stay. */
static void
choose_targets(ks_zip_choice *c)
{
  const uint32_t n_rest = c->n_tok - c->n_dominant;
  const uint32_t step = n_rest / c->n_context > 1 ? n_rest / c->n_context : 1;
  uint32_t at = 0, n = 0;

  for (uint32_t i = 0; i < c->n_tok && n < c->n_context; i++)
    if (c->group[i] == KS_ZIP_NONE && at++ % step == 0)
      c->target[n++] = i;
  assert(n == c->n_context);
}

static double
cosine(const float *a, const float *b, uint32_t n)
{
  double ab = 0, aa = 0, bb = 0;

  for (uint32_t i = 0; i < n; i++) {
    ab += (double)a[i] * b[i];
    aa += (double)a[i] * a[i];
    bb += (double)b[i] * b[i];
  }
  return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

static bool
is_target(const ks_zip_choice *c, uint32_t token)
{
  for (uint32_t k = 0; k < c->n_context; k++)
    if (c->target[k] == token)
      return true;
  return false;
}

/* The others to the target most like them; dominant ones and targets themselves to none. */
static void
join_groups(ks_zip_choice *c, const float *metric, uint32_t n_dim)
{
  for (uint32_t i = 0; i < c->n_tok; i++) {
    double best = -INFINITY;
    uint32_t found = KS_ZIP_NONE;

    if (c->group[i] == KS_ZIP_NONE && !is_target(c, i))
      for (uint32_t k = 0; k < c->n_context; k++) {
        const double like =
            cosine(metric + (size_t)i * n_dim, metric + (size_t)c->target[k] * n_dim, n_dim);

        if (like > best) {
          best = like;
          found = k;
        }
      }
    c->group[i] = found;
  }
}

ks_status
ks_zip_choose(ks_alloc *a, const ks_vision_zip *zip, bool has_class, const float *received,
              const float *metric, uint32_t n_tok, uint32_t n_dim, ks_zip_choice *out,
              ks_error *err)
{
  ks_zip_choice c;
  ks_prune_rank *ranks;
  ks_status st;

  assert(zip->n_dominant > 0 &&
         (uint64_t)zip->n_dominant + zip->n_context < (uint64_t)n_tok + (has_class ? 1 : 0));
  st = take_choice(a, zip, has_class, n_tok, &c, err);
  if (st != KS_OK)
    return st;
  ranks = ks_mem_new(a, KS_MEM_VISION, n_tok, sizeof *ranks);
  if (ranks == NULL) {
    ks_zip_choice_clear(&c);
    return ks_fail(err, KS_ERR_NOMEM, "no memory to rank %u tokens of a picture", n_tok);
  }
  choose_dominant(&c, ranks, received);
  if (c.n_context > 0)
    choose_targets(&c);
  join_groups(&c, metric, n_dim);
  ks_mem_free(ranks);
  *out = c;
  return KS_OK;
}

void
ks_zip_choice_clear(ks_zip_choice *choice)
{
  ks_mem_free(choice->dominant);
  ks_mem_free(choice->target);
  ks_mem_free(choice->group);
  *choice = (ks_zip_choice){0};
}

ks_status
ks_zip_merge(ks_alloc *a, const ks_zip_choice *c, const float *class_row, const float *rows,
             size_t width, float *out, ks_error *err)
{
  uint32_t *n_in = ks_mem_new(a, KS_MEM_VISION, c->n_context, sizeof *n_in);
  float *context;

  if (n_in == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory to merge %u tokens of a picture", c->n_tok);
  if (c->has_class) {
    memcpy(out, class_row, width * sizeof *out);
    out += width;
  }
  for (uint32_t i = 0; i < c->n_dominant; i++, out += width)
    memcpy(out, rows + c->dominant[i] * width, width * sizeof *out);
  context = out;
  memset(context, 0, c->n_context * width * sizeof *context);
  for (uint32_t i = 0; i < c->n_tok; i++) {
    const uint32_t k = c->group[i];

    if (k == KS_ZIP_NONE)
      continue;
    n_in[k]++;
    for (size_t d = 0; d < width; d++)
      context[k * width + d] += rows[i * width + d];
  }
  for (uint32_t k = 0; k < c->n_context; k++)
    for (size_t d = 0; d < width; d++)
      context[k * width + d] = rows[c->target[k] * width + d] +
                               (n_in[k] > 0 ? context[k * width + d] / (float)n_in[k] : 0.0f);
  ks_mem_free(n_in);
  return KS_OK;
}

void
ks_zip_get_places(const ks_zip_choice *c, uint32_t *out)
{
  if (c->has_class)
    *out++ = 0;
  memcpy(out, c->dominant, c->n_dominant * sizeof *out);
  memcpy(out + c->n_dominant, c->target, c->n_context * sizeof *out);
}

/* --- FastV --- */

/* The small addition: 0.29 * 100 is 28.999... in binary. */
uint32_t
ks_fastv_choose(const ks_fastv *fastv, ks_prune_rank *ranks, uint32_t n)
{
  if (n > 0)
    qsort(ranks, n, sizeof *ranks, compare_ranks);
  return n - (uint32_t)(fastv->drop * n + 1e-9);
}

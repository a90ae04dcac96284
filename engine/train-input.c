/* train-input.c - from a batch to what the device reads: who sees whom, the rows that the loss
 * looks at, their targets and shares.
 * Nothing of the caller reaches a kernel unchecked.
 * Threads: engine thread.  Source: docs/method.md, section 12. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/train-internal.h"

#include <math.h>

/* splitmix64: one step of a counter that is scrambled. */
static uint64_t
next_random(uint64_t *state)
{
  uint64_t z = *state += 0x9E3779B97F4A7C15u;

  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double
ks_train_random(uint64_t *state)
{
  return (double)(next_random(state) >> 11) * 0x1p-53;
}

/* --- checks --- */

/* Visual rows in order, none twice, with features where the model takes them; *out_n of them. */
static bool
are_visuals_valid(const ks_train_batch *batch, uint32_t n_deep, uint32_t *out_n)
{
  uint32_t end = 0, n = 0;

  for (uint32_t i = 0; i < batch->n_visual; i++) {
    const ks_graph_visual *v = &batch->visuals[i];

    if (v->first < end || v->n_tok == 0 || v->first >= batch->n_tok ||
        v->n_tok > batch->n_tok - v->first || v->embd == NULL || (n_deep > 0 && v->deep == NULL))
      return false;
    for (uint32_t k = 0; k < v->n_tok; k++)
      if (batch->ids[v->first + k] != KS_TOKEN_NONE)
        return false;
    end = v->first + v->n_tok;
    n += v->n_tok;
  }
  *out_n = n;
  return true;
}

static ks_status
check_tokens(const ks_train_pass *p, ks_error *err)
{
  const ks_train_batch *batch = p->batch;
  uint32_t n_none = 0, n_visual = 0;

  for (uint32_t i = 0; i < batch->n_tok; i++) {
    const ks_token id = batch->ids[i];

    if (id != KS_TOKEN_NONE && (id < 0 || (uint32_t)id >= p->s->n_vocab))
      return ks_fail(err, KS_ERR_ARG, "token %d at place %u is not in the vocabulary of %u",
                     (int)id, i, p->s->n_vocab);
    if (batch->weights != NULL && !(batch->weights[i] >= 0.0F && isfinite(batch->weights[i])))
      return ks_fail(err, KS_ERR_ARG, "the weight of token %u is no number from 0 up", i);
    n_none += id == KS_TOKEN_NONE;
  }
  if (!are_visuals_valid(batch, p->s->n_deep, &n_visual) || n_visual != n_none)
    return ks_fail(err, KS_ERR_ARG,
                   "%u rows of the batch have no token; the pictures given do not fill them",
                   n_none);
  if (p->s->n_deep > 0 && n_visual > p->tr->params.max_visual)
    return ks_fail(err, KS_ERR_ARG, "the batch has %u visual tokens; room is for %u", n_visual,
                   p->tr->params.max_visual);
  return KS_OK;
}

static ks_status
check_documents(const ks_train_batch *batch, ks_error *err)
{
  for (uint32_t i = 0; batch->doc_starts != NULL && i < batch->n_doc; i++)
    if (batch->doc_starts[i] >= batch->n_tok ||
        (i == 0 ? batch->doc_starts[0] != 0 : batch->doc_starts[i] <= batch->doc_starts[i - 1]))
      return ks_fail(err, KS_ERR_ARG, "the starts of documents are not rising from 0 in the batch");
  if (batch->doc_starts != NULL && batch->n_doc == 0)
    return ks_fail(err, KS_ERR_ARG, "the batch has no document");
  return KS_OK;
}

/* --- who sees whom --- */

/* doc[t], and positions that run from 0 in each document unless the batch gives them. */
static void
fill_positions(ks_train_pass *p)
{
  const ks_train_host *h = &p->tr->host;
  const ks_train_batch *batch = p->batch;
  const uint32_t n_doc = batch->doc_starts != NULL ? batch->n_doc : 1;
  const size_t n = p->n_tok;

  for (uint32_t d = 0; d < n_doc; d++) {
    const uint32_t begin = batch->doc_starts != NULL ? batch->doc_starts[d] : 0;
    const uint32_t end = d + 1 < n_doc ? batch->doc_starts[d + 1] : batch->n_tok;

    for (uint32_t t = begin; t < end; t++) {
      h->doc[t] = begin;
      for (size_t axis = 0; axis < 3; axis++)
        h->pos[axis * n + t] =
            batch->rope_pos != NULL ? batch->rope_pos[axis * n + t] : (int32_t)(t - begin);
    }
  }
}

/* first[0], first[1] and last of every row: as a timeline fills them for inference. */
static ks_status
fill_visible(ks_train_pass *p, ks_error *err)
{
  const ks_train_host *h = &p->tr->host;
  const uint32_t *view_last = p->batch->visual_last;
  uint32_t local = 0, view = 0;

  for (uint32_t t = 0; t < p->n_tok; t++) {
    const ks_graph_visual *v;

    local = local > h->doc[t] ? local : h->doc[t];
    while (p->s->window > 0 && local < t &&
           (int64_t)h->pos[local] <= (int64_t)h->pos[t] - (int64_t)p->s->window)
      local++;
    h->first[0][t] = h->doc[t];
    h->first[1][t] = local;
    h->last[t] = view_last != NULL ? view_last[t] : t;
    if (h->last[t] < t || h->last[t] >= p->n_tok || (t > 0 && h->last[t] < h->last[t - 1]))
      return ks_fail(err, KS_ERR_ARG, "the last visible row of row %u makes no sense", t);
    while (view < p->batch->n_visual &&
           p->batch->visuals[view].first + p->batch->visuals[view].n_tok <= t)
      view++;
    v = view < p->batch->n_visual ? &p->batch->visuals[view] : NULL;
    if (view_last != NULL && v != NULL && v->first <= t && h->first[1][t] > v->first)
      h->first[1][t] = v->first;
  }
  for (uint32_t t = 0; view_last != NULL && t < p->n_tok; t++)
    if (h->doc[h->last[t]] != h->doc[t])
      return ks_fail(err, KS_ERR_ARG, "row %u would see into the next document", t);
  return KS_OK;
}

/* --- rows that count --- */

static void
fill_token_weights(ks_train_pass *p)
{
  const ks_train_host *h = &p->tr->host;

  for (uint32_t t = 0; t < p->n_tok; t++) {
    const bool has_next =
        t + 1 < p->n_tok && h->doc[t + 1] == h->doc[t] && p->batch->ids[t + 1] != KS_TOKEN_NONE;

    h->token_weight[t] = !has_next                   ? 0.0F
                         : p->batch->weights != NULL ? p->batch->weights[t + 1]
                                                     : 1.0F;
  }
}

uint32_t
ks_train_sample_rows(const float *weight, uint32_t n_tok, uint32_t n, uint64_t seed, int32_t *rows,
                     float *share)
{
  double total = 0.0, sum = 0.0, step, next;
  uint32_t n_row = 0, n_met = 0;

  for (uint32_t t = 0; t < n_tok; t++)
    total += (double)weight[t];
  step = total / (double)n;
  next = ks_train_random(&seed) * step;
  for (uint32_t t = 0; t < n_tok && n_met < n; t++) {
    uint32_t k = 0;

    sum += (double)weight[t];
    for (; n_met + k < n && next + step * (double)(n_met + k) < sum; k++)
      ;
    if (k == 0)
      continue;
    rows[n_row] = (int32_t)t;
    share[n_row++] = (float)k;
    n_met += k;
  }
  for (uint32_t i = 0; i < n_row; i++)
    share[i] /= (float)n_met;
  return n_row;
}

/* All rows with weight, or a sample of them. */
static void
choose_rows(ks_train_pass *p, ks_train_stage_kind kind, uint32_t n_counted, double total)
{
  const ks_trainer *tr = p->tr;
  const ks_train_host *h = &tr->host;
  const uint32_t n_sample = kind == KS_TRAIN_LOCAL ? tr->params.n_local_row : 0;

  if (n_sample > 0 && n_sample < n_counted) {
    p->n_row =
        ks_train_sample_rows(h->token_weight, p->n_tok, n_sample,
                             tr->params.seed ^ ((uint64_t)tr->step << 32), h->rows, h->share);
    return;
  }
  p->n_row = 0;
  for (uint32_t t = 0; t < p->n_tok; t++)
    if (h->token_weight[t] > 0.0F) {
      h->rows[p->n_row] = (int32_t)t;
      h->share[p->n_row++] = (float)((double)h->token_weight[t] / total);
    }
}

static void
fill_rows(ks_train_pass *p, ks_train_stage_kind kind)
{
  const ks_train_params *params = &p->tr->params;
  const ks_train_host *h = &p->tr->host;
  const float first = kind == KS_TRAIN_LOCAL ? params->local_weight : params->kl_weight;

  for (uint32_t i = 0; i < p->n_row; i++) {
    const int32_t row = h->rows[i];

    h->target[i] = p->batch->ids[row + 1];
    h->weight[0][i] = first * h->share[i];
    h->weight[1][i] = params->ce_weight * h->share[i];
    h->row_first[0][i] = h->first[0][row];
    h->row_first[1][i] = h->first[1][row];
    h->row_last[i] = h->last[row];
  }
}

/* --- upload --- */

static ks_status
upload_visuals(ks_train_pass *p, ks_error *err)
{
  const size_t row_bytes = (size_t)p->s->n_embd * sizeof(float);
  const uint32_t n_deep = p->s->n_deep;
  uint32_t at = 0;
  ks_status st = KS_OK;

  for (uint32_t i = 0; n_deep > 0 && i < p->batch->n_visual; i++)
    for (uint32_t k = 0; k < p->batch->visuals[i].n_tok; k++)
      p->tr->host.deep_rows[p->n_deep_row++] = (int32_t)(p->batch->visuals[i].first + k);
  for (uint32_t i = 0; st == KS_OK && i < p->batch->n_visual; i++) {
    const ks_graph_visual *v = &p->batch->visuals[i];

    st = p->t->upload(p->dev, p->d->x + v->first * row_bytes, v->embd, v->n_tok * row_bytes, err);
    for (uint32_t k = 0; st == KS_OK && k < n_deep; k++)
      st = p->t->upload(p->dev, p->d->deep + ((size_t)k * p->n_deep_row + at) * row_bytes,
                        v->deep + k * v->deep_stride, v->n_tok * row_bytes, err);
    at += v->n_tok;
  }
  if (st == KS_OK && p->n_deep_row > 0)
    st = p->t->upload(p->dev, p->d->deep_rows, p->tr->host.deep_rows, 4 * (size_t)p->n_deep_row,
                      err);
  return st;
}

static ks_status
upload(ks_train_pass *p, ks_error *err)
{
  const ks_train_host *h = &p->tr->host;
  const ks_train_dev *d = p->d;
  const size_t n = 4 * (size_t)p->n_tok, r = 4 * (size_t)p->n_row;
  const struct {
    ks_dptr dst;
    const void *src;
    size_t n_bytes;
  } parts[] = {{d->ids, p->batch->ids, n},
               {d->pos, h->pos, 3 * n},
               {d->first[0], h->first[0], n},
               {d->first[1], h->first[1], n},
               {d->last, h->last, n},
               {d->rows, h->rows, r},
               {d->row_first[0], h->row_first[0], r},
               {d->row_first[1], h->row_first[1], r},
               {d->row_last, h->row_last, r},
               {d->target, h->target, r},
               {d->weight[0], h->weight[0], r},
               {d->weight[1], h->weight[1], r},
               {d->params, h->params, 4 * p->tr->gate.n_param}};
  ks_status st = KS_OK;

  for (size_t i = 0; st == KS_OK && i < sizeof parts / sizeof parts[0]; i++)
    st = p->t->upload(p->dev, parts[i].dst, parts[i].src, parts[i].n_bytes, err);
  return st == KS_OK ? upload_visuals(p, err) : st;
}

ks_status
ks_train_input(ks_train_pass *p, ks_train_stage_kind kind, uint32_t *out_counted, ks_error *err)
{
  const ks_train_host *h = &p->tr->host;
  uint32_t n_counted = 0;
  double total = 0.0;
  ks_status st;

  if (p->n_tok == 0 || p->n_tok > p->tr->params.max_tok)
    return ks_fail(err, KS_ERR_ARG, "a batch of %u tokens; room is for %u", p->n_tok,
                   p->tr->params.max_tok);
  if ((st = check_tokens(p, err)) != KS_OK || (st = check_documents(p->batch, err)) != KS_OK)
    return st;
  fill_positions(p);
  if ((st = fill_visible(p, err)) != KS_OK)
    return st;
  fill_token_weights(p);
  for (uint32_t t = 0; t < p->n_tok; t++) {
    total += (double)h->token_weight[t];
    n_counted += h->token_weight[t] > 0.0F;
  }
  if (n_counted == 0)
    return ks_fail(err, KS_ERR_ARG, "no token of the batch counts in the loss");
  choose_rows(p, kind, n_counted, total);
  fill_rows(p, kind);
  *out_counted = n_counted;
  return upload(p, err);
}

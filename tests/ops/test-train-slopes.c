/* test-train-slopes.c - gradients of both stages against differences of the loss, for every
 * architecture: biases, norms of heads and behind blocks, windows, capped logits, fused tensors,
 * pictures with their positions, features and views that are seen both ways.
 * A tensor of all layers at a time is moved along its own gradient: the loss must change by that
 * gradient's norm.  The capacity's third form is used, which has no leaps. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ops/train-fixture.h"

#define STEP 0.02F
#define TOL 0.02
#define CAPACITY 0.02 /* small, so that it hides nothing */

typedef struct variant {
  const char *arch;
  bool bias, with_picture, is_local, per_stream;
} variant;

static const variant variants[] = {
    {.arch = "llama"},
    {.arch = "llama", .is_local = true, .per_stream = true},
    {.arch = "qwen2", .bias = true},
    {.arch = "qwen3"},
    {.arch = "gemma3"},
    {.arch = "gemma3", .with_picture = true},
    {.arch = "phi3"},
    {.arch = "qwen2vl", .with_picture = true, .bias = true},
    {.arch = "qwen3vl", .with_picture = true},
};

/* A picture of 2 x 3 tokens in the second of two documents. */
typedef struct picture {
  ks_graph_visual visual;
  float embd[6 * TINY_EMBD], deep[6 * TINY_EMBD];
  int32_t pos[3 * TR_TOK];
  uint32_t last[TR_TOK], starts[2];
} picture;

static void
add_picture(tr_fixture *f, picture *p, bool both_ways)
{
  const uint32_t first = 12;

  memset(p, 0, sizeof *p);
  for (uint32_t i = 0; i < 6 * TINY_EMBD; i++) {
    p->embd[i] = 0.3F * sinf(0.7F * (float)i);
    p->deep[i] = 0.2F * cosf(0.3F * (float)i);
  }
  p->visual = (ks_graph_visual){
      .first = first, .n_tok = 6, .embd = p->embd, .deep = p->deep, .deep_stride = 6 * TINY_EMBD};
  p->starts[1] = 9;
  for (uint32_t t = 0; t < TR_TOK; t++) {
    const bool inside = t >= first && t < first + 6;

    p->last[t] = inside ? first + 5 : t;
    f->ids[t] = inside ? KS_TOKEN_NONE : f->ids[t];
    for (uint32_t axis = 0; axis < 3; axis++)
      p->pos[axis * TR_TOK + t] = (int32_t)(t < 9 ? t : t - 9);
    if (inside) { /* t stays, h and w count cells */
      p->pos[t] = 3;
      p->pos[TR_TOK + t] = (int32_t)(3 + (t - first) / 3);
      p->pos[2 * TR_TOK + t] = (int32_t)(3 + (t - first) % 3);
    }
  }
  f->batch.doc_starts = p->starts;
  f->batch.n_doc = 2;
  f->batch.visuals = &p->visual;
  f->batch.n_visual = 1;
  f->batch.rope_pos = both_ways ? NULL : p->pos;
  f->batch.visual_last = both_ways ? p->last : NULL;
}

/* Moves a part of all layers by scale times the direction. */
static void
move(ks_trainer *tr, ks_train_part part, const float *direction, float scale)
{
  for (uint32_t l = 0; l < tr->gate.n_layer; l++) {
    const ks_train_tensor t = ks_train_find(&tr->gate, l, part);
    const size_t n = (size_t)t.n_row * (t.n_col > 0 ? t.n_col : 1);

    if (l > 0 && t.at == ks_train_find(&tr->gate, 0, part).at)
      return; /* shared: moved once */
    for (size_t i = 0; i < n; i++)
      tr->host.params[t.at + i] += scale * direction[t.at + i];
  }
}

static double
norm_of(const ks_trainer *tr, ks_train_part part, const float *g)
{
  double sum = 0.0;

  for (uint32_t l = 0; l < tr->gate.n_layer; l++) {
    const ks_train_tensor t = ks_train_find(&tr->gate, l, part);
    const double n = ks_train_find(&tr->gate, 0, part).at == t.at && l > 0
                         ? 0.0
                         : ks_adamw_norm(g + t.at, (size_t)t.n_row * (t.n_col > 0 ? t.n_col : 1));

    sum += n * n;
  }
  return sqrt(sum);
}

/* The losses by themselves: floats near each other lose less than their sum would. */
static double
loss_at(tr_fixture *f, ks_train_stage_kind kind)
{
  const ks_train_stats s = tr_measure(f, kind);

  return kind == KS_TRAIN_LOCAL
             ? (double)s.local + CAPACITY * (double)s.capacity
             : 0.5 * (double)s.kl + 0.5 * (double)s.ce + CAPACITY * (double)s.capacity;
}

static void
check_part(tr_fixture *f, const variant *v, ks_train_stage_kind kind, ks_train_part part,
           const float *g)
{
  const double norm = norm_of(f->trainer, part, g);
  /* Rounding of losses near 6, through the difference; small slopes drown in it. */
  const double noise = 4e-7 / (double)STEP;
  double d;

  if (norm == 0.0 && v->is_local)
    return; /* there is no such part */
  KS_ASSERT(norm > 0.0);
  move(f->trainer, part, g, (float)(STEP / norm));
  d = loss_at(f, kind);
  move(f->trainer, part, g, (float)(-2.0 * STEP / norm));
  d = (d - loss_at(f, kind)) / (2.0 * STEP);
  move(f->trainer, part, g, (float)(STEP / norm));
  printf("# %s%s %s part %d: slope %.5f, difference %.5f\n", v->arch, v->is_local ? " (local)" : "",
         kind == KS_TRAIN_LOCAL ? "local" : "method", (int)part, norm, d);
  if (!(fabs(d - norm) <= TOL * norm + noise))
    KS_FAIL("%s: part %d has the slope %g, the loss changes by %g", v->arch, (int)part, norm, d);
}

static void
check_variant(const variant *v, ks_train_stage_kind kind)
{
  tr_fixture f;
  picture p;
  float *g;

  tr_open(&f, v->arch, v->bias);
  if (v->with_picture)
    add_picture(&f, &p, strcmp(v->arch, "gemma3") == 0);
  f.params = tr_params(kind, 1);
  f.params.is_local = v->is_local;
  f.params.is_tied = !v->is_local;
  f.params.capacity_per_stream = v->per_stream;
  f.params.capacity = KS_TRAIN_CAPACITY_PAPER;
  f.params.capacity_weight = (float)CAPACITY;
  f.params.stages[0].rate = 0.0F; /* the gate stays where its gradient was taken */
  tr_start(&f);
  tr_step(&f);
  g = malloc(f.trainer->gate.n_param * sizeof *g);
  KS_ASSERT(g != NULL);
  memcpy(g, ks_trainer_get_gradient(f.trainer), f.trainer->gate.n_param * sizeof *g);
  for (int part = 0; part < KS_TRAIN_N_PART; part++)
    check_part(&f, v, kind, (ks_train_part)part, g);
  free(g);
  tr_close(&f);
}

KS_TEST(train_slopes, method)
{
  for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
    check_variant(&variants[i], KS_TRAIN_METHOD);
}

KS_TEST(train_slopes, local)
{
  for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
    check_variant(&variants[i], KS_TRAIN_LOCAL);
}

KS_TEST_MAIN

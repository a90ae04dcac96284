/* cpu-head-split.c - the best logits of an output matrix in two halves, of which the low one is
 * read for a few strips of rows only.  First the high half gives every logit with the low codes at
 * their middle, put right for the columns that the input loads most.  The strips of the k best of
 * these that a member has are joined and multiplied, so that k rows are known to reach the worst of
 * them.  Then so are all strips of which a row may reach that as well.
 *   How far a logit may be off: a low code has nothing to do with the input, so that what it lacks
 * to the middle adds up like n_in small random numbers, a standard deviation of 16 / sqrt 12 |x| d
 * with x without those columns.  SAFE of these are a chance below 1 in 10^9 for a row among the
 * best; where any row that was joined is off by more, all are.  Logits that are told are exact.
 * Threads: runs on all members.  Source: docs/adr/0022-split-output.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-head-internal.h"
#include "engine/cpu-share-internal.h"
#include "engine/cpu-split-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define SAFE 6.5F
#define LOW_DEVIATION 4.62F /* of a low code from the middle */
#define COLUMN_ERROR 0.01F  /* of the columns: they are rounded themselves */
#define KEEP_COLUMNS 64u    /* searches before other columns may be chosen */
#define WORSE 2.0 /* energy outside the columns, against the best choice, that calls for others */

#define ALIGNED(n) (((n) + 63) / 64 * 64)

typedef struct split_search {
  const ks_cpu_ctx *ctx;
  const ks_op_head *op;
  ks_split_form form;
  unsigned char *split;
  ks_split_columns *columns;
  const float *spread; /* [n_strip * strip_rows] */
  ks_linear_plan plan; /* of products with the high half */
  size_t best_at, strip_at, acts_at, sums_at, rest_at, member_bytes; /* in a member's scratch */
  /* of all members */
  float *guesses; /* [n_strip * strip_rows] */
  float *reached; /* [members] the logit that k rows of a member's reach */
  bool *wrong;    /* [members] a guess of a member's was off by more than its margin */
  /* of this member */
  ks_linear high;     /* sums of its input as guesses want them */
  ks_cpu_acts acts;   /* the input as it is */
  ks_cpu_acts loaded; /* what the input holds in the columns */
  ks_head_best *best;
  unsigned char *strip;  /* a joined strip */
  float *rest;           /* [unit_rows and a strip] what the columns add */
  float margin;          /* of a row of spread 1 */
  bool checks, is_wrong; /* whether guesses are looked at again, and were wrong */
} split_search;

/* The products with the high half, as if it were a matrix of Q4_0. */
static ks_op_linear
high_linear(const ks_op_head *op)
{
  ks_op_linear linear = ks_head_get_linear(op);

  linear.w[0].dtype = KS_DTYPE_Q4_0;
  linear.w[0].row_bytes = ks_dtype_get_info(KS_DTYPE_Q4_0)->block_bytes * (op->w.n_in / 32);
  linear.w[0].packed = op->w.split;
  return linear;
}

static split_search
search_plan(const ks_cpu_ctx *ctx, const ks_op_head *op, const ks_op_linear *linear)
{
  split_search s = {.ctx = ctx, .op = op, .split = ks_cpu_ptr(op->w.split)};
  const bool has_form = ks_split_get_form(&op->w, ctx->packed->strip_rows, &s.form);

  assert(has_form);
  (void)has_form;
  s.columns = (ks_split_columns *)(void *)(s.split + s.form.choice_at);
  s.spread = (const float *)(const void *)(s.split + s.form.spread_at);
  s.plan = ks_linear_make_plan(ctx, linear, 1);
  s.best_at = s.plan.member_bytes;
  s.strip_at = ALIGNED(s.best_at + ks_head_best_bytes(op->k));
  s.acts_at = ALIGNED(s.strip_at + s.form.whole_bytes);
  s.sums_at = s.acts_at + ks_cpu_acts_bytes(KS_SPLIT_COLUMNS, 1, true);
  s.rest_at = ALIGNED(s.sums_at + op->w.n_in / KS_PACKED_GROUP * sizeof(float));
  s.member_bytes = s.rest_at + (s.plan.unit_rows + s.form.strip_rows) * sizeof(float);
  return s;
}

void
ks_cpu_head_split_need(const ks_cpu_ctx *ctx, const ks_op_head *op, ks_cpu_need *need)
{
  const ks_op_linear linear = high_linear(op);
  const split_search s = search_plan(ctx, op, &linear);

  need->member_bytes = s.member_bytes;
  need->shared_bytes = s.form.n_strip * s.form.strip_rows * sizeof(float) +
                       ks_threads_get_n(ctx->threads) * (sizeof(float) + sizeof(bool));
}

static double
energy_of(const float *x, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += (double)x[i] * (double)x[i];
  return sum;
}

/* --- strips as they stand in the file --- */

static void
multiply(const split_search *s, const ks_packed_job *job)
{
  const ks_packed_kernel *kernel = &s->ctx->packed->kernels[KS_DTYPE_Q8_0];

  if (job->acts->q != NULL)
    kernel->rows_fast(job);
  else
    kernel->rows_exact(job);
}

/* Logits of a strip before the cap. */
static void
multiply_whole(const split_search *s, size_t strip, float z[KS_PACKED_MAX_ROWS])
{
  const ks_packed_job job = {.strips = s->strip,
                             .strip_bytes = s->form.whole_bytes,
                             .n_strip = 1,
                             .acts = &s->acts,
                             .n_tok = 1,
                             .out = z,
                             .out_stride = KS_PACKED_MAX_ROWS};

  ks_split_join_strip(s->ctx->packed, &s->form, s->split, strip, s->strip);
  multiply(s, &job);
}

static size_t
count_rows(const split_search *s, size_t strip)
{
  const size_t left = s->form.n_row - strip * s->form.strip_rows;

  return left < s->form.strip_rows ? left : s->form.strip_rows;
}

/* True where a guess was off by more than its margin. */
static bool
is_beyond(const split_search *s, size_t row, float z)
{
  const float off = fabsf(z - s->guesses[row]);

  return off > s->margin * s->spread[row];
}

static void
take_strip(split_search *s, size_t strip)
{
  const size_t row0 = strip * s->form.strip_rows, n = count_rows(s, strip);
  float z[KS_PACKED_MAX_ROWS];

  multiply_whole(s, strip, z);
  for (size_t r = 0; r < n && s->checks; r++)
    s->is_wrong |= is_beyond(s, row0 + r, z[r]);
  for (size_t r = 0; r < n; r++)
    z[r] = ks_head_cap(s->op, z[r]);
  if (s->op->logits != 0)
    memcpy((float *)ks_cpu_ptr(s->op->logits) + row0, z, n * sizeof(*z));
  if (s->op->k > 0)
    ks_head_offer(s->best, s->op->k, z, row0, n);
}

/* The strips begin .. end - 1 with rows that may reach least; all when it is minus infinity. */
static void
take_strips(split_search *s, size_t begin, size_t end, float least, uint32_t member)
{
  for (size_t strip = begin; strip < end && !ks_cpu_poll(s->ctx, member); strip++) {
    const size_t row0 = strip * s->form.strip_rows, row1 = row0 + count_rows(s, strip);
    bool may_reach = !(least > -INFINITY);

    for (size_t row = row0; row < row1 && least > -INFINITY; row++)
      may_reach |= !(s->guesses[row] + s->margin * s->spread[row] < least); /* NaN is looked at */
    if (may_reach)
      take_strip(s, strip);
  }
}

/* This member's part of the listed ids. */
static void
take_listed(const split_search *s, uint32_t member, uint32_t n_member)
{
  const uint32_t n_row = s->form.strip_rows;
  float z[KS_PACKED_MAX_ROWS];
  size_t begin, end;

  ks_cpu_slice(s->op->n_id, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++) {
    const size_t id = (size_t)s->op->ids[i];

    if (i == begin || id / n_row != (size_t)s->op->ids[i - 1] / n_row)
      multiply_whole(s, id / n_row, z);
    s->op->out_listed[i] = ks_head_cap(s->op, z[id % n_row]);
  }
}

/* --- all rows, by their high halves --- */

/* The input as all products read it.  Codes of 4 bits count from 8 and are worth 16; the low halves
 * add 7.5.  The kernel takes 8 times the sums off, so sums that are a little smaller add them. */
static void
begin_input(split_search *s, const ks_op_linear *linear, uint32_t member, uint32_t n_member)
{
  const float factor = 1 - KS_SPLIT_MIDDLE / (KS_SPLIT_STEP * 8);
  float *sums = (float *)(void *)((unsigned char *)ks_cpu_scratch(s->ctx, member) + s->sums_at);

  ks_linear_begin_plan(&s->high, s->plan, s->ctx, linear, member, n_member);
  s->acts = s->high.acts;
  for (size_t g = 0; g < s->form.n_in / KS_PACKED_GROUP; g++)
    sums[g] = factor * s->acts.sum[g];
  s->high.acts.sum = sums;
}

/* By how much the guess for a row of spread 1 may be off. */
static float
choose_margin(const split_search *s, const float *loaded)
{
  const float *groups = (const float *)(const void *)(s->split + s->form.groups_at);
  const float *x = ks_cpu_ptr(s->op->x);
  double whole = 0, inside = 0;

  for (size_t g = 0; g < s->form.n_in / 32; g++)
    whole += (double)groups[g] * (double)groups[g] * energy_of(x + 32 * g, 32);
  for (size_t c = 0; c < KS_SPLIT_COLUMNS; c++) {
    const double in = (double)groups[s->columns->at[c] / 32] * (double)loaded[c];

    inside += in * in;
  }
  return SAFE * LOW_DEVIATION *
         (float)sqrt(fmax(whole - inside, 0) + (double)COLUMN_ERROR * (double)COLUMN_ERROR * whole);
}

static void
guess_unit(const split_search *s, size_t number)
{
  const ks_linear_unit unit = ks_linear_get_unit(&s->high, number);
  const uint32_t n_row = s->form.strip_rows;
  const ks_packed_job job = {.strips = s->split + s->form.columns_at +
                                       unit.row0 / n_row * s->form.column_bytes,
                             .strip_bytes = s->form.column_bytes,
                             .n_strip = (unit.n_row + n_row - 1) / n_row,
                             .acts = &s->loaded,
                             .n_tok = 1,
                             .out = s->rest,
                             .out_stride = s->plan.unit_rows};
  float *z = ks_linear_get_product(&s->high, 0), *guesses = s->guesses + unit.row0;

  ks_linear_multiply(&s->high, 0, &unit, 0, 1, z);
  multiply(s, &job);
  for (size_t r = 0; r < unit.n_row; r++)
    guesses[r] = KS_SPLIT_STEP * z[r] + s->rest[r];
  if (s->best->n < s->op->k ||
      s->ctx->vec->max(guesses, unit.n_row) > ks_head_get_pairs(s->best)->logit)
    ks_head_offer(s->best, s->op->k, guesses, unit.row0, unit.n_row);
}

/* Fills guesses and this member's list of the best of them. */
static void
guess_all(split_search *s, const float *loaded, uint32_t member, uint32_t n_member)
{
  unsigned char *scratch = ks_cpu_scratch(s->ctx, member);
  ks_cpu_share share = ks_cpu_share_begin(s->plan.n_unit, member, n_member);
  size_t unit;

  ks_cpu_acts_init(&s->loaded, scratch + s->acts_at, KS_SPLIT_COLUMNS, 1, s->acts.q != NULL);
  ks_cpu_acts_fill(s->ctx, &s->loaded, loaded, KS_SPLIT_COLUMNS, 0, 1);
  s->margin = choose_margin(s, loaded);
  while (ks_cpu_share_next(s->ctx, &share, &unit) && !ks_cpu_poll(s->ctx, member))
    guess_unit(s, unit);
}

/* The worst logit that k rows of this member's reach: those of its best guesses, made exact. */
static float
reach(const split_search *s)
{
  const ks_head_pair *pairs = ks_head_get_pairs(s->best);
  const uint32_t n_row = s->form.strip_rows;
  float least = INFINITY;

  if (s->best->n < s->op->k)
    return -INFINITY;
  for (uint32_t i = 0; i < s->op->k; i++) {
    float z[KS_PACKED_MAX_ROWS];

    multiply_whole(s, (size_t)pairs[i].id / n_row, z);
    if (!(z[(uint32_t)pairs[i].id % n_row] >= least))
      least = z[(uint32_t)pairs[i].id % n_row];
  }
  return least >= -INFINITY ? least : -INFINITY;
}

/* What all members reached; with a cap a little less: logits that the cap makes equal count too. */
static float
find_least(const split_search *s, uint32_t n_member)
{
  const float cap = s->op->cap;
  float least = -INFINITY;

  for (uint32_t m = 0; m < n_member; m++)
    least = fmaxf(least, s->reached[m]);
  if (cap > 0.0F && least > -INFINITY) {
    const float below = nextafterf(ks_head_cap(s->op, least), -INFINITY);

    least = fminf(least, cap * atanhf(fmaxf(below / cap, -1.0F))) - 1e-4F * cap;
  }
  return least;
}

/* --- the columns --- */

/* The columns of x that hold most of its energy; returns that energy. */
static double
choose_columns(const float *x, size_t n_in, uint32_t at[KS_SPLIT_COLUMNS])
{
  double sum = 0;
  uint32_t n = 0, low = 0; /* low: the least loaded one chosen so far */

  for (uint32_t i = 0; i < n_in; i++) {
    if (n < KS_SPLIT_COLUMNS)
      at[n++] = i;
    else if (fabsf(x[i]) > fabsf(x[at[low]]))
      at[low] = i;
    else
      continue;
    for (uint32_t c = 0; c < n; c++)
      low = fabsf(x[at[c]]) < fabsf(x[at[low]]) ? c : low;
  }
  for (uint32_t c = 0; c < n; c++)
    sum += (double)x[at[c]] * (double)x[at[c]];
  return sum;
}

/* Chooses columns by this input and fills them. */
static void
fill_columns(const split_search *s, uint32_t member, uint32_t n_member)
{
  size_t begin, end;

  if (member == 0)
    (void)choose_columns(ks_cpu_ptr(s->op->x), s->form.n_in, s->columns->at);
  ks_threads_barrier(s->ctx->threads);
  ks_cpu_slice(s->form.n_strip, member, n_member, &begin, &end);
  for (size_t strip = begin; strip < end; strip++)
    ks_split_fill_columns(&s->form, s->columns->at, strip, s->split);
  ks_threads_barrier(s->ctx->threads);
}

/* By one member after a search: inputs that load other columns get them at the next one. */
static void
look_at_columns(const split_search *s, const float *loaded)
{
  const float *x = ks_cpu_ptr(s->op->x);
  uint32_t best[KS_SPLIT_COLUMNS];
  double whole;

  s->columns->is_filled = true;
  if (++s->columns->age % KEEP_COLUMNS != 0)
    return;
  whole = energy_of(x, s->form.n_in);
  if (whole - energy_of(loaded, KS_SPLIT_COLUMNS) >
      WORSE * (whole - choose_columns(x, s->form.n_in, best)))
    s->columns->is_filled = false;
}

/* This member's part of the rows that may reach least. */
static void
search(split_search *s, float least, uint32_t member, uint32_t n_member)
{
  size_t begin, end;

  *s->best = (ks_head_best){0, 0};
  s->is_wrong = false;
  ks_cpu_slice(s->form.n_strip, member, n_member, &begin, &end);
  take_strips(s, begin, end, least, member);
  ks_head_sort(s->best);
  s->wrong[member] = s->is_wrong;
  ks_threads_barrier(s->ctx->threads);
}

static void
find_best(split_search *s, uint32_t member, uint32_t n_member)
{
  const float *x = ks_cpu_ptr(s->op->x);
  float loaded[KS_SPLIT_COLUMNS];
  bool is_wrong = false;

  if (!s->columns->is_filled)
    fill_columns(s, member, n_member);
  for (size_t c = 0; c < KS_SPLIT_COLUMNS; c++)
    loaded[c] = x[s->columns->at[c]];
  *s->best = (ks_head_best){0, 0};
  guess_all(s, loaded, member, n_member);
  s->reached[member] = reach(s);
  ks_threads_barrier(s->ctx->threads);
  s->checks = true;
  search(s, find_least(s, n_member), member, n_member);
  for (uint32_t m = 0; m < n_member; m++)
    is_wrong |= s->wrong[m];
  if (is_wrong) { /* then others may be as well: all rows */
    ks_threads_barrier(s->ctx->threads);
    s->checks = false;
    search(s, -INFINITY, member, n_member);
  }
  if (member != 0)
    return;
  look_at_columns(s, loaded);
  ks_head_merge(s->ctx, s->op, 0, s->best_at, n_member);
}

void
ks_cpu_head_split(const ks_cpu_ctx *ctx, const ks_op_head *op, uint32_t member, uint32_t n_member)
{
  const ks_op_linear linear = high_linear(op);
  split_search s = search_plan(ctx, op, &linear);
  unsigned char *scratch = ks_cpu_scratch(ctx, member);

  s.guesses = (float *)(void *)ctx->shared;
  s.reached = s.guesses + s.form.n_strip * s.form.strip_rows;
  s.wrong = (bool *)(s.reached + n_member);
  s.best = ks_head_get_best(ctx, member, s.best_at);
  s.strip = scratch + s.strip_at;
  s.rest = (float *)(void *)(scratch + s.rest_at);
  begin_input(&s, &linear, member, n_member);
  take_listed(&s, member, n_member);
  if (op->logits != 0) {
    search(&s, -INFINITY, member, n_member);
    if (member == 0)
      ks_head_merge(ctx, op, 0, s.best_at, n_member);
  } else if (op->k > 0)
    find_best(&s, member, n_member);
}

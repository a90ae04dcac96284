/* vision-encode.c - a picture's way through the tower: memory, then view after view.
 * Each piece of a block is one step of the backend, so that a stop is heeded soon.
 * Source: docs/method.md, section 10. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-internal.h"

#include <assert.h>
#include <string.h>

/* Towers have a few numbers beyond what f16 holds (65,504); at this scale it holds 4 millions, and
 * what lies below its normal numbers is 0.004. */
#define KEEP_SCALE (1.0f / 64)

/* Patches of the largest picture that is one tile (WHOLE_ROWS in vision.c); the longest tile of
 * them, and those of a picture of many tiles, take the most of the device's workspace. */
#define WHOLE_COLS 40u
#define WHOLE_LINES 32u
#define LARGE_SIDE 6144u
#define DRY_BASE ((ks_dptr)4096) /* recorded, never read; 0 would mean that there is none */

/* --- what the files of the tower record with --- */

static ks_op_gather_rows
whole_rows(const ks_vision_pass *p, uint32_t first, uint32_t n)
{
  const ks_vision_memory *m = &p->mem;

  return (ks_op_gather_rows){.table = {.data = p->dev + m->x + (ks_dptr)first * m->x_row_bytes,
                                       .dtype = m->x_dtype,
                                       .n_in = p->vision->shape.n_embd,
                                       .n_out = n,
                                       .row_bytes = m->x_row_bytes},
                             .ids = p->dev + m->ids,
                             .out = p->dev + m->x_tile,
                             .n_tok = n,
                             .scale = 1.0f / KEEP_SCALE};
}

ks_status
ks_vision_pass_take(ks_vision_pass *p, uint32_t first, uint32_t n, ks_dptr *out)
{
  const ks_backend *be = p->vision->be;
  const ks_op_gather_rows op = whole_rows(p, first, n);

  if (p->mem.x_dtype == KS_DTYPE_F32) {
    *out = op.table.data;
    return KS_OK;
  }
  *out = op.out;
  return be->t->gather_rows(be->dev, &op);
}

ks_status
ks_vision_pass_put(ks_vision_pass *p, uint32_t first, uint32_t n)
{
  const ks_backend *be = p->vision->be;
  const ks_vision_memory *m = &p->mem;
  const ks_op_store_rows op = {.src = p->dev + m->x_tile,
                               .out = p->dev + m->x + (ks_dptr)first * m->x_row_bytes,
                               .dtype = m->x_dtype,
                               .out_row_bytes = m->x_row_bytes,
                               .n_row = n,
                               .n_col = p->vision->shape.n_embd,
                               .scale = KEEP_SCALE};

  return m->x_dtype == KS_DTYPE_F32 ? KS_OK : be->t->store_rows(be->dev, &op);
}

ks_status
ks_vision_pass_begin(ks_vision_pass *p)
{
  return p->vision->be->t->step_begin(p->vision->be->dev, p->err);
}

ks_status
ks_vision_pass_end(ks_vision_pass *p, ks_status st)
{
  const ks_backend *be = p->vision->be;

  if (st != KS_OK || p->is_dry)
    be->t->step_abort(be->dev);
  if (st != KS_OK)
    return ks_fail(p->err, st, "no memory to encode a picture of %u tokens", p->plan->n_tok);
  if (p->is_dry)
    return KS_OK;
  return be->t->step_end(be->dev, p->hooks->stop, p->hooks->user, p->err);
}

ks_status
ks_vision_pass_norm(ks_vision_pass *p, const ks_vision_norm *norm, bool is_rms, ks_dptr x,
                    ks_dptr out, uint32_t n_row, uint32_t n_col)
{
  const ks_backend *be = p->vision->be;
  const ks_op_norm op = {.x = x,
                         .out = out,
                         .w = norm->w,
                         .b = norm->b,
                         .n_row = n_row,
                         .n_col = n_col,
                         .eps = p->vision->eps};

  return is_rms ? be->t->rms_norm(be->dev, &op) : be->t->layer_norm(be->dev, &op);
}

ks_status
ks_vision_pass_linear(ks_vision_pass *p, const ks_weight *w, ks_dptr bias, ks_dptr x, ks_dptr y,
                      uint32_t n_row, ks_epilogue epilogue, ks_act act)
{
  const ks_backend *be = p->vision->be;
  const ks_op_linear op = {.n_w = 1,
                           .w = {*w},
                           .bias = {bias},
                           .x = x,
                           .y = {y},
                           .n_tok = n_row,
                           .epilogue = epilogue,
                           .act = act};

  return be->t->linear(be->dev, &op);
}

/* --- memory --- */

/* Pages of head h: one run, behind those of the heads before it. */
static void
fill_streams(ks_vision_pass *p)
{
  const uint32_t n = p->mem.n_page;

  for (uint32_t h = 0; h < p->mem.group; h++) {
    p->streams[h] = (ks_kv_stream){.pages = p->pages + (size_t)h * n, .n_page = n};
    p->streams[h].page_capacity = n;
    for (uint32_t i = 0; i < n; i++)
      p->streams[h].pages[i] = h * n + i;
  }
}

/* What tiles read besides their rows: bounds of what is seen, and row numbers. */
static ks_status
upload_constants(ks_vision_pass *p)
{
  const ks_backend *be = p->vision->be;
  const uint32_t n = p->rows.max_tile_rows;
  uint32_t *list = (uint32_t *)(void *)p->host;
  ks_status st;

  memset(list, 0, n * sizeof *list);
  st = be->t->upload(be->dev, p->dev + p->mem.first, list, n * sizeof *list, p->err);
  if (st != KS_OK)
    return st;
  memset(list, 0xff, n * sizeof *list);
  st = be->t->upload(be->dev, p->dev + p->mem.last, list, n * sizeof *list, p->err);
  for (uint32_t i = 0; i < n; i++)
    list[i] = i;
  return st == KS_OK ? be->t->upload(be->dev, p->dev + p->mem.ids, list, n * sizeof *list, p->err)
                     : st;
}

static size_t
count_host_floats(const ks_vision_pass *p)
{
  const ks_vision_shape *s = &p->vision->shape;
  size_t width = (size_t)3 * s->prep.patch * s->prep.patch;

  width = width > s->n_embd ? width : s->n_embd;
  return (width > s->n_out ? width : s->n_out) * p->rows.max_tile_rows;
}

/* What recording reads: rows, tiles, pages. */
static ks_status
take_lists(ks_vision_pass *p)
{
  ks_vision *v = p->vision;
  ks_status st = ks_vision_memory_init(&p->mem, v, p->plan, p->err);

  if (st != KS_OK || (st = ks_vision_rows_init(&p->rows, v, p->plan, p->err)) != KS_OK)
    return st;
  p->streams = ks_mem_new(v->alloc, KS_MEM_VISION, p->mem.group, sizeof *p->streams);
  p->pages =
      ks_mem_new(v->alloc, KS_MEM_VISION, (size_t)p->mem.group * p->mem.n_page, sizeof *p->pages);
  p->segments =
      ks_mem_new(v->alloc, KS_MEM_VISION, (size_t)p->rows.max_tile_rows / p->rows.per_token + 2,
                 sizeof *p->segments);
  if (p->streams == NULL || p->pages == NULL || p->segments == NULL)
    return ks_fail(p->err, KS_ERR_NOMEM, "no memory to encode a picture of %u tokens",
                   p->plan->n_tok);
  fill_streams(p);
  return ks_vision_zip_begin(p);
}

static ks_status
take_memory(ks_vision_pass *p)
{
  ks_vision *v = p->vision;
  const ks_backend *be = v->be;
  ks_status st = take_lists(p);

  if (st != KS_OK)
    return st;
  p->host = ks_mem_new(v->alloc, KS_MEM_VISION, count_host_floats(p), sizeof *p->host);
  if (p->host == NULL)
    return ks_fail(p->err, KS_ERR_NOMEM, "no memory to encode a picture of %u tokens",
                   p->plan->n_tok);
  st = be->t->mem_new(be->dev, KS_MEM_VISION, p->mem.device_bytes, &p->dev, p->err);
  return st == KS_OK ? upload_constants(p) : st;
}

static void
give_memory(ks_vision_pass *p)
{
  const ks_backend *be = p->vision->be;

  if (p->dev != 0 && !p->is_dry)
    be->t->mem_free(be->dev, p->dev);
  ks_vision_zip_done(p);
  ks_vision_rows_done(&p->rows);
  ks_mem_free(p->host);
  ks_mem_free(p->tapped);
  ks_mem_free(p->streams);
  ks_mem_free(p->pages);
  ks_mem_free(p->segments);
}

static ks_status
take_result(ks_vision_pass *p)
{
  const ks_vision_shape *s = &p->vision->shape;
  size_t n;

  p->out->n_tok = p->plan->n_view * p->zip.n_kept;
  p->out->n_embd = s->n_out;
  p->out->n_deep = s->n_deep;
  p->out->plan = *p->plan;
  if (ks_mul_size(p->out->n_tok, s->n_out, &n) && ks_mul_size(n, 1 + s->n_deep, &n))
    p->out->data = ks_mem_new(p->vision->alloc, KS_MEM_VISION, n, sizeof *p->out->data);
  if (p->zip.is_on)
    p->out->places =
        ks_mem_new(p->vision->alloc, KS_MEM_VISION, p->out->n_tok, sizeof *p->out->places);
  if (p->hooks->tap != NULL)
    p->tapped =
        ks_mem_new(p->vision->alloc, KS_MEM_VISION, p->rows.n_patch, s->n_embd * sizeof *p->tapped);
  if (p->out->data == NULL || (p->zip.is_on && p->out->places == NULL) ||
      (p->hooks->tap != NULL && p->tapped == NULL))
    return ks_fail(p->err, KS_ERR_NOMEM, "no memory for the embeddings of %u tokens",
                   p->plan->n_tok);
  return KS_OK;
}

/* --- views --- */

static ks_status
run_view(ks_vision_pass *p)
{
  const ks_vision *v = p->vision;
  const uint32_t n_layer = v->shape.n_layer;
  ks_status st = ks_vision_pass_embed(p);
  uint32_t deep = 0;

  ks_vision_zip_begin_view(p);
  for (uint32_t i = 0; st == KS_OK && i < n_layer; i++) {
    st = ks_vision_pass_block(p, i);
    if (st == KS_OK && deep < v->shape.n_deep && v->deep[deep].layer == i)
      st = ks_vision_pass_deep(p, deep++);
  }
  if (st == KS_OK)
    st = ks_vision_pass_project(p);
  if (st == KS_OK && p->hooks->tap != NULL)
    p->hooks->tap(p->hooks->user, p->view, p->tapped, p->rows.n_patch, v->shape.n_embd);
  return st;
}

static ks_status
prepare_plan(ks_vision *vision, const ks_vision_plan *plan, ks_error *err)
{
  static const ks_vision_hooks none = {0};
  ks_vision_pass p = {
      .vision = vision, .plan = plan, .hooks = &none, .err = err, .dev = DRY_BASE, .is_dry = true};
  ks_status st = take_lists(&p);

  if (st == KS_OK)
    st = run_view(&p);
  give_memory(&p);
  return st;
}

ks_status
ks_vision_prepare(ks_vision *vision, const ks_vision_limits *limits, ks_error *err)
{
  const ks_vision_prep *prep = &vision->shape.prep;
  const uint32_t sides[][2] = {{WHOLE_COLS * prep->patch, WHOLE_LINES * prep->patch},
                               {LARGE_SIDE, LARGE_SIDE}};
  ks_status st = KS_OK;

  for (size_t i = 0; st == KS_OK && i < sizeof sides / sizeof sides[0]; i++) {
    ks_vision_plan plan;

    /* Limits that contradict each other are told when there is a picture. */
    if (ks_vision_plan_picture(prep, limits, sides[i][0], sides[i][1], &plan, NULL) == KS_OK)
      st = prepare_plan(vision, &plan, err);
  }
  return st;
}

ks_status
ks_vision_encode(ks_vision *vision, const ks_vision_input *in, const ks_vision_hooks *hooks,
                 ks_vision_embeds *out, ks_error *err)
{
  static const ks_vision_hooks none = {0};
  ks_vision_embeds made = {0};
  ks_vision_pass p = {.vision = vision,
                      .in = in,
                      .plan = ks_vision_input_get_plan(in),
                      .hooks = hooks != NULL ? hooks : &none,
                      .out = &made,
                      .err = err};
  ks_status st;

  assert(ks_vision_input_get_prep(in)->family == vision->shape.family);
  assert(ks_vision_input_get_prep(in)->patch == vision->shape.prep.patch);
  st = take_memory(&p);
  if (st == KS_OK)
    st = take_result(&p);
  for (uint32_t i = 0; st == KS_OK && i < vision->shape.n_layer; i++)
    p.n_step += p.plan->n_view * ks_vision_pass_count_steps(&p, i);
  for (; st == KS_OK && p.view < p.plan->n_view; p.view++)
    st = run_view(&p);
  if (st == KS_OK)
    st = ks_gguf_check_alive(vision->gguf, err);
  give_memory(&p);
  if (st == KS_OK)
    *out = made;
  else
    ks_vision_embeds_clear(&made);
  return st;
}

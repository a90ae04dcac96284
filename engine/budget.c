/* budget.c - from one target in bytes to chunk, pages and entries, and back.
 * Everything that a target of total bytes pays for: weights, gate, activations of one chunk, pages,
 * and what an eviction needs to rank them.  KV bytes are whole units of the reserved range, so that
 * what is committed never exceeds them.  Source: docs/method.md, section 4. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/budget.h"

#include "engine/graph.h"
#include "engine/model-internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define UNIT KS_KV_UNIT_BYTES
#define RANK_BYTES_PER_ENTRY 7 /* f32 score and mark, a quarter of slack; see evict.c */

uint32_t
ks_budget_pick_chunk(const ks_kv_layout *layout, uint64_t n_page, uint64_t n_keep, uint32_t chunk,
                     uint32_t buffer)
{
  const uint64_t n_stream = (uint64_t)layout->n_layer * layout->n_kv_head;
  const uint64_t capacity = n_page * layout->page_entries;

  while (chunk > buffer) {
    const uint64_t room = n_stream * ((uint64_t)chunk + layout->page_entries - 1);

    if (room <= capacity / 4 ||
        (n_keep > 0 && ks_kv_entries_for_pages(layout, n_page, chunk) >= n_keep))
      break;
    chunk = chunk / 2 > buffer ? chunk / 2 : buffer;
  }
  return chunk;
}

/* One plan in the making. */
typedef struct frame {
  const ks_model *model;
  const ks_kv_layout *layout;
  const ks_gate *gate;
  uint64_t n_stream, fixed_bytes; /* weights, gate and what else there is */
  uint64_t policy_bytes;          /* scratch of the policy */
  uint64_t own_bytes;             /* what the device takes for passes of the longest chunk */
  uint32_t buffer;
  uint32_t least_chunk; /* passes are never planned shorter */
} frame;

uint64_t
ks_budget_get_rank_bytes(const ks_kv_layout *layout, uint64_t n_page)
{
  return n_page * layout->page_entries * RANK_BYTES_PER_ENTRY;
}

uint64_t
ks_budget_get_kv_bytes(const ks_kv_layout *layout, uint64_t bytes)
{
  const uint64_t rank_bytes = ks_budget_get_rank_bytes(layout, 1);

  return bytes / (layout->page_bytes + rank_bytes) * layout->page_bytes / UNIT * UNIT;
}

static uint64_t
round_up(uint64_t bytes)
{
  return (bytes + UNIT - 1) / UNIT * UNIT;
}

uint64_t
ks_budget_get_bytes_for_kv(const ks_kv_layout *layout, uint64_t kv_bytes)
{
  const uint64_t n_page = (round_up(kv_bytes) + layout->page_bytes - 1) / layout->page_bytes;

  return n_page * layout->page_bytes + ks_budget_get_rank_bytes(layout, n_page);
}

/* Pages of the smallest pool that works: one entry a stream, passes as short as they get. */
static uint64_t
smallest_pages(const frame *f)
{
  return ks_kv_pages_for_entries(f->layout, f->n_stream, f->least_chunk);
}

/* A timeline keeps room for one row of logits and the last one. */
static uint32_t
logit_rows(uint32_t chunk)
{
  return chunk > 1 ? 2 : 1;
}

/* Activations of a pass, and the device's own memory. */
static uint64_t
pass_bytes(const frame *f, uint32_t chunk)
{
  return ks_graph_count_scratch_bytes(f->model, f->gate, chunk, logit_rows(chunk)) + f->own_bytes +
         f->policy_bytes + KS_BUDGET_BLOCK_BYTES;
}

/* Only the device knows what it takes: asks it after recording a pass of the longest chunk. */
static ks_status
measure_device(frame *f, uint32_t chunk, ks_error *err)
{
  const ks_backend *be = ks_model_get_backend(f->model);
  ks_graph *graph = NULL;
  ks_dev_info info;
  ks_status st =
      ks_graph_new(f->model->alloc, f->model, f->gate, chunk, logit_rows(chunk), &graph, err);

  if (st == KS_OK)
    st = ks_graph_prepare(graph, f->layout, err);
  ks_graph_free(graph);
  if (st != KS_OK)
    return st;
  memset(&info, 0, sizeof(info));
  be->t->get_info(be->dev, &info);
  f->own_bytes = info.own_bytes;
  return KS_OK;
}

/* The plan's sums once chunk and pages are known. */
static void
fill(const frame *f, uint32_t chunk, uint64_t n_page, uint64_t kv_bytes, ks_budget_plan *plan)
{
  plan->chunk = chunk;
  plan->buffer = f->buffer;
  plan->n_page = n_page;
  plan->kv_bytes = kv_bytes;
  plan->scratch_bytes = pass_bytes(f, chunk) + ks_budget_get_rank_bytes(f->layout, n_page);
  plan->n_keep = ks_kv_entries_for_pages(f->layout, n_page, chunk);
}

/* The smallest total that works. */
static uint64_t
least_total(const frame *f)
{
  const uint64_t n_min = smallest_pages(f);

  return f->fixed_bytes + pass_bytes(f, f->least_chunk) +
         ks_budget_get_rank_bytes(f->layout, n_min) + round_up(n_min * f->layout->page_bytes);
}

static ks_status
fail_total(const frame *f, uint64_t total_bytes, uint64_t least, ks_error *err)
{
  char asked[KS_BUDGET_TEXT_BYTES], taken[KS_BUDGET_TEXT_BYTES], needed[KS_BUDGET_TEXT_BYTES];

  ks_budget_format_bytes(total_bytes, KS_BUDGET_DOWN, asked);
  ks_budget_format_bytes(f->fixed_bytes + pass_bytes(f, f->least_chunk), KS_BUDGET_UP, taken);
  ks_budget_format_bytes(least, KS_BUDGET_UP, needed);
  return ks_fail(err, KS_ERR_BUDGET,
                 "a memory target of %s is too small: this model takes %s before it remembers "
                 "anything; set at least %s",
                 asked, taken, needed);
}

/* The longest passes that leave the most of the pages to what is remembered, and those pages. */
static uint32_t
find_chunk(const frame *f, uint64_t total_bytes, uint32_t chunk, uint64_t *out_kv_bytes)
{
  for (;;) {
    const uint64_t used = f->fixed_bytes + pass_bytes(f, chunk);
    const uint64_t left = total_bytes > used ? total_bytes - used : 0;
    const uint64_t kv_bytes = ks_budget_get_kv_bytes(f->layout, left);
    const uint32_t fits =
        ks_budget_pick_chunk(f->layout, kv_bytes / f->layout->page_bytes, 0, chunk, f->least_chunk);

    if (fits == chunk) {
      *out_kv_bytes = kv_bytes;
      return chunk;
    }
    chunk = fits;
  }
}

static ks_status
plan_total(const frame *f, uint64_t total_bytes, uint32_t chunk, ks_budget_plan *plan,
           ks_error *err)
{
  const uint64_t n_min = smallest_pages(f), least = least_total(f);
  uint64_t kv_bytes, n_page;

  if (total_bytes < least)
    return fail_total(f, total_bytes, least, err);
  chunk = find_chunk(f, total_bytes, chunk, &kv_bytes);
  n_page = kv_bytes / f->layout->page_bytes;
  /* With the shortest chunk the test above says that at least this much is there. */
  fill(f, chunk, n_page > n_min ? n_page : n_min,
       n_page > n_min ? kv_bytes : round_up(n_min * f->layout->page_bytes), plan);
  return KS_OK;
}

static ks_status
plan_kv(const frame *f, uint64_t kv_bytes, uint32_t chunk, ks_budget_plan *plan, ks_error *err)
{
  const uint64_t n_min = smallest_pages(f), whole_bytes = kv_bytes / UNIT * UNIT;
  const uint64_t n_page = whole_bytes / f->layout->page_bytes;

  if (n_page < n_min) {
    char asked[KS_BUDGET_TEXT_BYTES], needed[KS_BUDGET_TEXT_BYTES];

    ks_budget_format_bytes(kv_bytes, KS_BUDGET_DOWN, asked);
    ks_budget_format_bytes(round_up(n_min * f->layout->page_bytes), KS_BUDGET_UP, needed);
    return ks_fail(err, KS_ERR_BUDGET,
                   "%s for keys and values are too few for this model; set at least %s", asked,
                   needed);
  }
  fill(f, ks_budget_pick_chunk(f->layout, n_page, 0, chunk, f->least_chunk), n_page, whole_bytes,
       plan);
  return KS_OK;
}

static ks_status
plan_entries(const frame *f, uint64_t entries, uint32_t chunk, ks_budget_plan *plan, ks_error *err)
{
  uint64_t n_page;

  if (entries > UINT32_MAX)
    return ks_fail(err, KS_ERR_ARG, "%llu entries a stream are more than there can be tokens",
                   (unsigned long long)entries);
  n_page = ks_kv_pages_for_entries(f->layout, entries * f->n_stream, chunk);
  fill(f, chunk, n_page, round_up(n_page * f->layout->page_bytes), plan);
  plan->n_keep = entries * f->n_stream;
  return KS_OK;
}

/* No target: room for the trained length, or three quarters of what is free. */
static void
plan_open(const frame *f, uint32_t chunk, ks_budget_plan *plan)
{
  const ks_model_shape *shape = ks_model_get_shape(f->model);
  const ks_backend *be = ks_model_get_backend(f->model);
  const uint64_t n_want =
      ks_kv_pages_for_entries(f->layout, shape->n_ctx_train * f->n_stream, chunk);
  uint64_t n_page = n_want, n_free;
  ks_dev_info info;

  memset(&info, 0, sizeof(info));
  be->t->get_info(be->dev, &info);
  n_free = info.free_bytes / 4 * 3 / f->layout->page_bytes;
  if (n_free > 0 && n_free < n_page)
    n_page = n_free;
  if (n_page < smallest_pages(f))
    n_page = smallest_pages(f); /* the system may still have it */
  if (n_page < n_want)
    chunk = ks_budget_pick_chunk(f->layout, n_page, 0, chunk, f->least_chunk);
  fill(f, chunk, n_page, round_up(n_page * f->layout->page_bytes), plan);
}

static frame
make_frame(const ks_model *model, const ks_gate *gate, const ks_kv_layout *layout,
           const ks_budget_request *request, uint32_t buffer)
{
  const uint64_t gate_bytes = gate != NULL ? ks_gate_get_bytes(gate) : 0;

  return (frame){.model = model,
                 .layout = layout,
                 .gate = gate,
                 .n_stream = (uint64_t)layout->n_layer * layout->n_kv_head,
                 .fixed_bytes =
                     ks_model_get_weight_bytes(model) + gate_bytes + request->other_bytes,
                 .policy_bytes = request->policy_bytes,
                 .buffer = buffer,
                 .least_chunk = request->view_tok > buffer ? request->view_tok : buffer};
}

uint32_t
ks_budget_find_chunk(const ks_model *model, const ks_gate *gate, const ks_kv_layout *layout,
                     const ks_budget_request *request, uint32_t chunk, uint32_t buffer)
{
  const ks_backend *be = ks_model_get_backend(model);
  frame f = make_frame(model, gate, layout, request, buffer);
  uint64_t kv_bytes;
  ks_dev_info info;

  memset(&info, 0, sizeof(info));
  be->t->get_info(be->dev, &info);
  f.own_bytes = info.own_bytes;
  return find_chunk(&f, request->total_bytes, chunk > f.least_chunk ? chunk : f.least_chunk,
                    &kv_bytes);
}

ks_status
ks_budget_make_plan(const ks_model *model, const ks_gate *gate, const ks_kv_layout *layout,
                    const ks_budget_request *request, uint32_t chunk, uint32_t buffer,
                    ks_budget_plan *out, ks_error *err)
{
  frame f = make_frame(model, gate, layout, request, buffer);
  const int n_set = (request->total_bytes > 0) + (request->kv_bytes > 0) + (request->entries > 0);
  ks_budget_plan plan;
  ks_status st = KS_OK;

  if (n_set > 1)
    return ks_fail(err, KS_ERR_ARG,
                   "give one of the total budget, the KV budget and the entries, not several");
  if (buffer == 0 || chunk < buffer)
    return ks_fail(err, KS_ERR_ARG, "the chunk (%u) must be at least the buffer (%u), and that 1",
                   chunk, buffer);
  if (request->total_bytes > UINT64_MAX / 16 || request->kv_bytes > UINT64_MAX / 16 ||
      request->other_bytes > UINT64_MAX / 16 || request->policy_bytes > UINT64_MAX / 16)
    return ks_fail(err, KS_ERR_ARG, "no machine has that much memory; set a smaller budget");
  if (chunk < f.least_chunk)
    chunk = f.least_chunk;
  memset(&plan, 0, sizeof(plan));
  st = measure_device(&f, chunk, err);
  if (st != KS_OK)
    return st;
  if (request->total_bytes > 0)
    st = plan_total(&f, request->total_bytes, chunk, &plan, err);
  else if (request->kv_bytes > 0)
    st = plan_kv(&f, request->kv_bytes, chunk, &plan, err);
  else if (request->entries > 0)
    st = plan_entries(&f, request->entries, chunk, &plan, err);
  else
    plan_open(&f, chunk, &plan);
  if (st != KS_OK)
    return st;
  plan.least_bytes = least_total(&f);
  plan.weight_bytes = ks_model_get_weight_bytes(model);
  plan.gate_bytes = gate != NULL ? ks_gate_get_bytes(gate) : 0;
  plan.other_bytes = request->other_bytes;
  plan.total_bytes = f.fixed_bytes + plan.scratch_bytes + plan.kv_bytes;
  plan.entries_per_stream = (double)plan.n_keep / (double)f.n_stream;
  *out = plan;
  return KS_OK;
}

void
ks_budget_format_bytes(uint64_t n_bytes, ks_budget_rounding rounding,
                       char out[KS_BUDGET_TEXT_BYTES])
{
  const bool is_small = n_bytes <= ((uint64_t)1 << 20) / 10;
  const uint32_t shift = is_small ? 10 : 20;
  const uint64_t unit = (uint64_t)1 << shift;
  const uint64_t whole = n_bytes >> shift, rest = n_bytes & (unit - 1);
  const uint64_t tenths =
      whole * 10 + ((rest * 10 + (rounding == KS_BUDGET_UP ? unit - 1 : 0)) >> shift);

  if (n_bytes < 1024)
    snprintf(out, KS_BUDGET_TEXT_BYTES, "%u %s", (unsigned)n_bytes,
             n_bytes == 1 ? "byte" : "bytes");
  else
    snprintf(out, KS_BUDGET_TEXT_BYTES, "%llu.%llu %s", (unsigned long long)(tenths / 10),
             (unsigned long long)(tenths % 10), is_small ? "KiB" : "MiB");
}

/* Bytes of a unit's name, 0 for none of ours.  A bare letter means the binary unit. */
static uint64_t
unit_bytes(const char *name)
{
  static const struct {
    const char *name;
    uint64_t bytes;
  } units[] = {
      {"", 1},
      {"b", 1},
      {"byte", 1},
      {"bytes", 1},
      {"k", 1ull << 10},
      {"kib", 1ull << 10},
      {"kb", 1000},
      {"m", 1ull << 20},
      {"mib", 1ull << 20},
      {"mb", 1000000},
      {"g", 1ull << 30},
      {"gib", 1ull << 30},
      {"gb", 1000000000},
      {"t", 1ull << 40},
      {"tib", 1ull << 40},
      {"tb", 1000000000000},
  };

  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
    if (strcasecmp(name, units[i].name) == 0)
      return units[i].bytes;
  return 0;
}

ks_status
ks_budget_parse_bytes(const char *text, uint64_t *out, ks_error *err)
{
  const char *p = text;
  uint64_t whole = 0, unit;
  double part = 0.0, digit = 0.1;
  char name[8] = "";
  size_t n = 0;
  bool has_digit = false;

  while (isspace((unsigned char)*p))
    p++;
  for (; isdigit((unsigned char)*p); p++, has_digit = true) {
    if (whole > UINT64_MAX / 100)
      return ks_fail(err, KS_ERR_ARG, "\"%.40s\" is more memory than there is", text);
    whole = whole * 10 + (uint64_t)(*p - '0');
  }
  if (*p == '.')
    for (p++; isdigit((unsigned char)*p); p++, has_digit = true, digit /= 10.0)
      part += (*p - '0') * digit;
  while (isspace((unsigned char)*p))
    p++;
  while (isalpha((unsigned char)*p) && n + 1 < sizeof(name))
    name[n++] = *p++;
  name[n] = '\0';
  while (isspace((unsigned char)*p))
    p++;
  unit = unit_bytes(name);
  if (!has_digit || *p != '\0' || unit == 0)
    return ks_fail(err, KS_ERR_ARG,
                   "\"%.40s\" is no amount of memory; write it like 160MiB, 1.5GiB or 24000000",
                   text);
  if (whole > (UINT64_MAX >> 4) / unit)
    return ks_fail(err, KS_ERR_ARG, "\"%.40s\" is more memory than there is", text);
  *out = whole * unit + (uint64_t)(part * (double)unit + 0.5);
  return KS_OK;
}

/* cpu-backend.c - the CPU as a device: memory, weights in place, and the table's entries.
 * An entry of the table checks and copies its descriptor into the step (cpu-step.c); the kernels
 * are in the other cpu-*.c files. A range is reserved without access and opened piece by piece;
 * what is dropped goes back to the system at once and may not be touched again.
 * Over 700 lines because the entries of the table stand together.
 * Threads: one thread drives a device. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-isa-internal.h"
#include "engine/cpu-packed-internal.h"
#include "engine/cpu-step-internal.h"
#include "engine/cpu-train-internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANGE_UNIT ((size_t)64 << 10)
/* A range begins on one, so that its slabs can be huge pages. */
#define HUGE_UNIT ((size_t)2 << 20)

typedef struct range {
  struct range *next;
  unsigned char *base;
  size_t n_bytes, committed_bytes;
  void *mapped; /* what was reserved: base and the bytes before it */
  size_t mapped_bytes;
} range;

struct ks_dev {
  ks_cpu_ctx ctx;
  const ks_cpu_set *set;
  ks_alloc *alloc;
  ks_cpu_step step;
  range *ranges;
};

static bool
cpu_probe(uint32_t index, ks_dev_info *out, char *why, size_t why_size)
{
  if (index > 0) {
    snprintf(why, why_size, "there is one CPU device, number 0");
    return false;
  }
  ks_cpu_fill_info(out);
  out->n_unit = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
  snprintf(out->isa, sizeof(out->isa), "%s", ks_cpu_detect_set()->name);
  return true;
}

static void
cpu_get_info(ks_dev *dev, ks_dev_info *out)
{
  ks_cpu_fill_info(out);
  out->n_unit = ks_threads_get_n(dev->ctx.threads);
  out->own_bytes = ks_cpu_step_get_bytes(&dev->step) + dev->ctx.shared_bytes +
                   (uint64_t)dev->ctx.scratch_bytes * out->n_unit;
  snprintf(out->isa, sizeof(out->isa), "%s", dev->set->name);
}

static bool
cpu_supports_weight(ks_dev *dev, ks_dtype dtype)
{
  (void)dev;
  return dtype != KS_DTYPE_I32 && ks_dtype_get_info(dtype) != NULL;
}

/* --- opening and closing --- */

static void
cpu_close(ks_dev *dev)
{
  if (dev == NULL)
    return;
  assert(dev->ranges == NULL);
  ks_threads_free(dev->ctx.threads);
  ks_cpu_step_done(&dev->step);
  ks_mem_free(dev->ctx.scratch);
  ks_mem_free(dev->ctx.shared);
  ks_mem_free(dev);
}

static ks_status
choose_set(const char *name, const ks_cpu_set **out, ks_error *err)
{
  ks_cpu_id id = ks_cpu_id_read();
  char names[128] = "";
  size_t n = 0;

  *out = ks_cpu_id_get_best(&id);
  if (name == NULL)
    return KS_OK;
  for (size_t i = 0; i < KS_N_CPU_SET; i++) {
    const ks_cpu_set *set = &ks_cpu_sets[i];

    n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i > 0 ? ", " : "", set->name);
    if (strcmp(name, set->name) != 0)
      continue;
    if (!ks_cpu_id_supports(&id, set))
      return ks_fail(err, KS_ERR_UNSUPPORTED, "this CPU or system does not support %s", name);
    *out = set;
    return KS_OK;
  }
  return ks_fail(err, KS_ERR_ARG, "instruction set \"%s\": use one of %s", name, names);
}

static ks_status
cpu_open(const ks_dev_params *params, ks_dev **out, ks_error *err)
{
  const ks_cpu_set *set;
  ks_dev *dev;
  ks_status status = choose_set(params->isa, &set, err);

  if (status != KS_OK)
    return status;
  if (params->index > 0)
    return ks_fail(err, KS_ERR_ARG, "there is one CPU device, number 0");
  dev = ks_mem_new(params->alloc, KS_MEM_HOST, 1, sizeof(*dev));
  if (dev == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the CPU device");
  dev->alloc = params->alloc;
  dev->set = set;
  dev->ctx.isa = set->isa;
  dev->ctx.vnni = set->vnni;
  dev->ctx.bf16 = set->bf16;
  dev->ctx.mode = params->mode;
  dev->ctx.matmul = ks_cpu_matmul_get(set->isa);
  dev->ctx.pairs = ks_cpu_bf16_get(set->bf16 && params->mode == KS_COMPUTE_FAST);
  dev->ctx.vec = ks_cpu_vec_get(set->isa);
  if (params->mode == KS_COMPUTE_FAST)
    dev->ctx.codes = ks_cpu_codes_get(set->isa, set->vnni);
  dev->ctx.packed = ks_cpu_packed_get(set->isa, set->vnni);
  ks_cpu_step_init(&dev->step, params->alloc);
  status = ks_threads_new(params->alloc, params->n_thread, &dev->ctx.threads, err);
  if (status != KS_OK) {
    cpu_close(dev);
    return status;
  }
  *out = dev;
  return KS_OK;
}

const ks_cpu_ctx *
ks_cpu_get_ctx(ks_dev *dev)
{
  return &dev->ctx;
}

/* Gives *block at least n_bytes; its content is lost. */
static ks_status
grow_block(ks_alloc *a, unsigned char **block, size_t n_bytes)
{
  ks_mem_free(*block);
  *block = ks_mem_new(a, KS_MEM_SCRATCH, n_bytes, 1);
  return *block != NULL ? KS_OK : KS_ERR_NOMEM;
}

ks_status
ks_cpu_need_scratch(ks_dev *dev, const ks_cpu_need *need)
{
  size_t n_member = ks_threads_get_n(dev->ctx.threads);
  size_t member_bytes, total;

  if (need->member_bytes > dev->ctx.scratch_bytes) {
    if (!ks_add_size(need->member_bytes, 63, &member_bytes) ||
        !ks_mul_size(member_bytes / 64 * 64, n_member, &total))
      return KS_ERR_NOMEM;
    dev->ctx.scratch_bytes = 0;
    if (grow_block(dev->alloc, &dev->ctx.scratch, total) != KS_OK)
      return KS_ERR_NOMEM;
    dev->ctx.scratch_bytes = member_bytes / 64 * 64;
  }
  if (need->shared_bytes > dev->ctx.shared_bytes) {
    dev->ctx.shared_bytes = 0;
    if (grow_block(dev->alloc, &dev->ctx.shared, need->shared_bytes) != KS_OK)
      return KS_ERR_NOMEM;
    dev->ctx.shared_bytes = need->shared_bytes;
  }
  return KS_OK;
}

/* --- memory --- */

static ks_status
cpu_mem_new(ks_dev *dev, ks_mem_kind kind, size_t n_bytes, ks_dptr *out, ks_error *err)
{
  void *p = ks_mem_new(dev->alloc, kind, n_bytes, 1);

  if (p == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for a buffer of %zu bytes", n_bytes);
  *out = (ks_dptr)(uintptr_t)p;
  return KS_OK;
}

static void
cpu_mem_free(ks_dev *dev, ks_dptr p)
{
  (void)dev;
  ks_mem_free(ks_cpu_ptr(p));
}

static ks_status
cpu_weight_bind(ks_dev *dev, const void *host, size_t n_bytes, ks_dptr *out, ks_error *err)
{
  if (ks_alloc_charge(dev->alloc, KS_MEM_WEIGHTS, n_bytes) != KS_OK)
    return ks_fail(err, KS_ERR_NOMEM, "no room for %zu bytes of weights", n_bytes);
  *out = (ks_dptr)(uintptr_t)host;
  return KS_OK;
}

static void
cpu_weight_unbind(ks_dev *dev, ks_dptr p, size_t n_bytes)
{
  if (p != 0)
    ks_alloc_uncharge(dev->alloc, KS_MEM_WEIGHTS, n_bytes);
}

static size_t
cpu_repack_bytes(ks_dev *dev, const ks_weight *w)
{
  return ks_cpu_repack_bytes(&dev->ctx, w);
}

static void
cpu_weight_repack(ks_dev *dev, ks_weight *w, ks_dptr dst)
{
  ks_cpu_weight_repack(&dev->ctx, w, dst);
}

static ks_status
cpu_upload(ks_dev *dev, ks_dptr dst, const void *src, size_t n_bytes, ks_error *err)
{
  (void)dev;
  (void)err;
  if (n_bytes > 0)
    memcpy(ks_cpu_ptr(dst), src, n_bytes);
  return KS_OK;
}

static ks_status
cpu_download(ks_dev *dev, void *dst, ks_dptr src, size_t n_bytes, ks_error *err)
{
  (void)dev;
  (void)err;
  if (n_bytes > 0)
    memcpy(dst, ks_cpu_ptr(src), n_bytes);
  return KS_OK;
}

static range *
find_range(ks_dev *dev, ks_dptr base)
{
  range *r = dev->ranges;

  while (r != NULL && (ks_dptr)(uintptr_t)r->base != base)
    r = r->next;
  assert(r != NULL);
  return r;
}

static ks_status
cpu_range_new(ks_dev *dev, size_t n_bytes, ks_dptr *out, ks_error *err)
{
  range *r = ks_mem_new(dev->alloc, KS_MEM_HOST, 1, sizeof(*r));
  size_t mapped_bytes;
  void *mapped = MAP_FAILED;

  assert(n_bytes % RANGE_UNIT == 0);
  if (r == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for a range of %zu bytes", n_bytes);
  if (ks_add_size(n_bytes, HUGE_UNIT, &mapped_bytes))
    mapped =
        mmap(NULL, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    ks_mem_free(r);
    return ks_fail(err, KS_ERR_NOMEM, "the system refused an address range of %zu bytes", n_bytes);
  }
  r->mapped = mapped;
  r->mapped_bytes = mapped_bytes;
  r->base = (unsigned char *)mapped + (HUGE_UNIT - (uintptr_t)mapped % HUGE_UNIT) % HUGE_UNIT;
  r->n_bytes = n_bytes;
  r->next = dev->ranges;
  dev->ranges = r;
  *out = (ks_dptr)(uintptr_t)r->base;
  return KS_OK;
}

/* Asks for huge pages where a commit covers them whole: what becomes resident at the first touch is
 * then no more than what was committed. */
static void
ask_for_huge_pages(const range *r, size_t offset, size_t n_bytes)
{
  const size_t begin = (offset + HUGE_UNIT - 1) / HUGE_UNIT * HUGE_UNIT;
  const size_t end = (offset + n_bytes) / HUGE_UNIT * HUGE_UNIT;

#ifdef MADV_HUGEPAGE
  if (begin < end)
    (void)madvise(r->base + begin, end - begin, MADV_HUGEPAGE);
#endif
}

static ks_status
cpu_range_commit(ks_dev *dev, ks_dptr base, size_t offset, size_t n_bytes, ks_error *err)
{
  range *r = find_range(dev, base);

  assert(offset % RANGE_UNIT == 0 && n_bytes % RANGE_UNIT == 0);
  assert(offset <= r->n_bytes && n_bytes <= r->n_bytes - offset);
  if (n_bytes == 0)
    return KS_OK;
  if (ks_alloc_charge(dev->alloc, KS_MEM_KV, n_bytes) != KS_OK)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for %zu more bytes of keys and values", n_bytes);
  if (mprotect(r->base + offset, n_bytes, PROT_READ | PROT_WRITE) != 0) {
    ks_alloc_uncharge(dev->alloc, KS_MEM_KV, n_bytes);
    return ks_fail(err, KS_ERR_NOMEM, "the system refused %zu more bytes of keys and values",
                   n_bytes);
  }
  ask_for_huge_pages(r, offset, n_bytes);
  r->committed_bytes += n_bytes;
  return KS_OK;
}

static void
cpu_range_drop(ks_dev *dev, ks_dptr base, size_t offset, size_t n_bytes)
{
  range *r = find_range(dev, base);

  assert(offset % RANGE_UNIT == 0 && n_bytes % RANGE_UNIT == 0 && n_bytes <= r->committed_bytes);
  if (n_bytes == 0)
    return;
  /* The pages go back at once; without access a stray use is found. */
  (void)madvise(r->base + offset, n_bytes, MADV_DONTNEED);
  (void)mprotect(r->base + offset, n_bytes, PROT_NONE);
  r->committed_bytes -= n_bytes;
  ks_alloc_uncharge(dev->alloc, KS_MEM_KV, n_bytes);
}

/* What is still committed goes with the range. */
static void
cpu_range_free(ks_dev *dev, ks_dptr base, size_t n_bytes)
{
  range **link = &dev->ranges, *r;

  if (base == 0)
    return;
  r = find_range(dev, base);
  assert(r->n_bytes == n_bytes);
  while (*link != r)
    link = &(*link)->next;
  *link = r->next;
  (void)munmap(r->mapped, r->mapped_bytes);
  if (r->committed_bytes > 0)
    ks_alloc_uncharge(dev->alloc, KS_MEM_KV, r->committed_bytes);
  ks_mem_free(r);
}

/* --- recording --- */

static ks_status
cpu_step_begin(ks_dev *dev, ks_error *err)
{
  (void)err;
  ks_cpu_step_begin(&dev->step);
  return KS_OK;
}

static ks_status
cpu_step_end(ks_dev *dev, ks_stop_fn stop, void *user, ks_error *err)
{
  if (!ks_cpu_step_run(&dev->step, &dev->ctx, stop, user))
    return ks_fail(err, KS_ERR_CANCELLED, "stopped on request");
  return KS_OK;
}

static void
cpu_step_abort(ks_dev *dev)
{
  ks_cpu_step_abort(&dev->step);
}

/* The descriptor's copy in the step; NULL without memory. */
static void *
add_light(ks_dev *dev, ks_cpu_op_kind kind, const void *op, size_t n_bytes,
          const ks_cpu_touches *touches)
{
  void *copy = ks_cpu_step_add(&dev->step, kind, n_bytes, touches);

  if (copy != NULL)
    memcpy(copy, op, n_bytes);
  return copy;
}

/* The same for an operation that stands alone between two barriers. */
static void *
add(ks_dev *dev, ks_cpu_op_kind kind, const void *op, size_t n_bytes)
{
  return add_light(dev, kind, op, n_bytes, NULL);
}

/* And with scratch. */
static void *
add_needing(ks_dev *dev, ks_cpu_op_kind kind, const void *op, size_t n_bytes,
            const ks_cpu_need *need)
{
  return ks_cpu_need_scratch(dev, need) == KS_OK ? add(dev, kind, op, n_bytes) : NULL;
}

bool
ks_cpu_record_call(ks_dev *dev, ks_cpu_call_fn fn, const void *op, size_t n_bytes,
                   const ks_cpu_need *need)
{
  ks_cpu_call *call;

  if (ks_cpu_need_scratch(dev, need) != KS_OK)
    return false;
  call = ks_cpu_step_add(&dev->step, KS_CPU_CALL, sizeof(*call) + n_bytes, NULL);
  if (call == NULL)
    return false;
  call->fn = fn;
  memcpy(call + 1, op, n_bytes);
  return true;
}

/* A copy of a host array that lives as long as the recorded step. */
static bool
copy_array(ks_dev *dev, const void *src, size_t n, size_t size, const void **out)
{
  void *copy = ks_cpu_step_get(&dev->step, n * size);

  if (copy == NULL)
    return false;
  if (n > 0)
    memcpy(copy, src, n * size);
  *out = copy;
  return true;
}

static ks_status
done(const void *copy)
{
  return copy != NULL ? KS_OK : KS_ERR_NOMEM;
}

static ks_status
cpu_gather_rows(ks_dev *dev, const ks_op_gather_rows *op)
{
  ks_cpu_touches touches = {0};

  ks_cpu_touch_gather(&touches, op);
  return done(add_light(dev, KS_CPU_GATHER_ROWS, op, sizeof(*op), &touches));
}

static ks_status
cpu_store_rows(ks_dev *dev, const ks_op_store_rows *op)
{
  assert(op->dtype == KS_DTYPE_F32 || op->dtype == KS_DTYPE_F16 || op->dtype == KS_DTYPE_Q8_0);
  return done(add(dev, KS_CPU_STORE_ROWS, op, sizeof(*op)));
}

static ks_status
cpu_add_rows(ks_dev *dev, const ks_op_add_rows *op)
{
  return done(add(dev, KS_CPU_ADD_ROWS, op, sizeof(*op)));
}

static ks_status
cpu_rms_norm(ks_dev *dev, const ks_op_norm *op)
{
  ks_cpu_touches touches = {0};

  ks_cpu_touch_norm(&touches, op);
  return done(add_light(dev, KS_CPU_RMS_NORM, op, sizeof(*op), &touches));
}

static ks_status
cpu_layer_norm(ks_dev *dev, const ks_op_norm *op)
{
  ks_cpu_touches touches = {0};

  ks_cpu_touch_norm(&touches, op);
  return done(add_light(dev, KS_CPU_LAYER_NORM, op, sizeof(*op), &touches));
}

static ks_status
cpu_linear(ks_dev *dev, const ks_op_linear *op)
{
  ks_cpu_need need = {0};
  ks_cpu_touches touches = {0};

  ks_cpu_linear_need(&dev->ctx, op, &need);
  ks_cpu_touch_linear(&touches, op, &need);
  if (ks_cpu_need_scratch(dev, &need) != KS_OK)
    return KS_ERR_NOMEM;
  return done(add_light(dev, KS_CPU_LINEAR, op, sizeof(*op), &touches));
}

static ks_status
cpu_act_mul(ks_dev *dev, const ks_op_act_mul *op)
{
  return done(add(dev, KS_CPU_ACT_MUL, op, sizeof(*op)));
}

static bool
same_angles(const ks_cpu_rope_job *job, const ks_cpu_rope_job *other)
{
  const ks_op_rope *a = &job->op, *b = &other->op;

  return job->back == other->back && a->pos == b->pos && a->inv_freq == b->inv_freq &&
         a->axis == b->axis && a->n_tok == b->n_tok && a->n_rot == b->n_rot &&
         a->mscale == b->mscale;
}

/* The table of an earlier rotation of this step, or one that is made before this rotation. */
static float *
find_angles(ks_dev *dev, const ks_cpu_rope_job *wanted)
{
  ks_cpu_step *step = &dev->step;
  ks_cpu_touches touches = {0};
  ks_cpu_rope_job job = *wanted;
  void *made;

  for (uint32_t i = 0; i < step->n_angles; i++)
    if (same_angles(&job, &step->angles[i]))
      return step->angles[i].angles;
  job.angles = ks_cpu_step_get(step, (size_t)job.op.n_tok * job.op.n_rot * sizeof(float));
  if (job.angles == NULL)
    return NULL;
  ks_cpu_touch_rope_angles(&touches, &job);
  made = add_light(dev, KS_CPU_ROPE_ANGLES, &job, sizeof(job), &touches);
  if (made != NULL && step->n_angles < KS_CPU_N_ANGLES)
    step->angles[step->n_angles++] = job;
  return made != NULL ? job.angles : NULL;
}

ks_status
ks_cpu_record_rope(ks_dev *dev, const ks_op_rope *op, bool back)
{
  ks_cpu_rope_job job = {.op = *op, .back = back};
  ks_cpu_touches touches = {0};

  job.angles = find_angles(dev, &job);
  if (job.angles == NULL)
    return KS_ERR_NOMEM;
  ks_cpu_touch_rope(&touches, &job);
  return done(add_light(dev, KS_CPU_ROPE, &job, sizeof(job), &touches));
}

static ks_status
cpu_rope(ks_dev *dev, const ks_op_rope *op)
{
  return ks_cpu_record_rope(dev, op, false);
}

static ks_status
cpu_kv_append(ks_dev *dev, const ks_op_kv_append *op)
{
  ks_cpu_touches touches = {0};

  ks_cpu_touch_kv_append(&touches, op);
  return done(add_light(dev, KS_CPU_KV_APPEND, op, sizeof(*op), &touches));
}

static ks_status
cpu_attention(ks_dev *dev, const ks_op_attention *op)
{
  ks_op_attention *copy;
  ks_cpu_need need = {0};
  ks_cpu_touches touches = {0};

  ks_cpu_attention_need(&dev->ctx, op, &need);
  ks_cpu_touch_attention(&touches, op, &need);
  if (ks_cpu_need_scratch(dev, &need) != KS_OK)
    return KS_ERR_NOMEM;
  copy = add_light(dev, KS_CPU_ATTENTION, op, sizeof(*op), op->mass == 0 ? &touches : NULL);
  if (copy == NULL || (op->mass != 0 && op->mass_offset != NULL &&
                       !copy_array(dev, op->mass_offset, op->kv.layout->n_kv_head, sizeof(uint64_t),
                                   (const void **)&copy->mass_offset)))
    return KS_ERR_NOMEM;
  return KS_OK;
}

static ks_status
cpu_attn_segments(ks_dev *dev, const ks_op_attn_segments *op)
{
  ks_op_attn_segments *copy;
  ks_cpu_need need = {0};

  ks_cpu_attn_segments_need(&dev->ctx, op, &need);
  copy = add_needing(dev, KS_CPU_ATTN_SEGMENTS, op, sizeof(*op), &need);
  if (copy == NULL ||
      !copy_array(dev, op->seg, (size_t)op->n_seg + 1, sizeof(uint32_t), (const void **)&copy->seg))
    return KS_ERR_NOMEM;
  return KS_OK;
}

static ks_status
cpu_gate(ks_dev *dev, const ks_op_gate *op)
{
  ks_cpu_touches touches = {0};

  for (uint32_t i = 0; i < ks_cpu_gate_get_n_hidden(op); i++) {
    const ks_op_linear hidden = ks_cpu_gate_get_hidden(op, i);
    const ks_status st = cpu_linear(dev, &hidden);

    if (st != KS_OK)
      return st;
  }
  ks_cpu_touch_gate_out(&touches, op);
  return done(add_light(dev, KS_CPU_GATE_OUT, op, sizeof(*op), &touches));
}

static ks_status
cpu_pool(ks_dev *dev, const ks_op_pool *op)
{
  return done(add(dev, KS_CPU_POOL, op, sizeof(*op)));
}

static ks_status
cpu_kv_score(ks_dev *dev, const ks_op_kv_score *op)
{
  ks_op_kv_score *copy;
  ks_cpu_need need = {0};

  ks_cpu_kv_score_need(&dev->ctx, op, &need);
  copy = add_needing(dev, KS_CPU_KV_SCORE, op, sizeof(*op), &need);
  if (copy == NULL ||
      (op->live_from != NULL && !copy_array(dev, op->live_from, op->kv.layout->n_layer,
                                            sizeof(uint32_t), (const void **)&copy->live_from)) ||
      !copy_array(dev, op->pins, op->n_pin, sizeof(ks_pos_range), (const void **)&copy->pins))
    return KS_ERR_NOMEM;
  return KS_OK;
}

static ks_status
cpu_kv_select(ks_dev *dev, const ks_op_kv_select *op)
{
  ks_op_kv_select *copy;
  ks_cpu_need need = {0};
  size_t n_stream = (size_t)op->kv.layout->n_layer * op->kv.layout->n_kv_head;

  ks_cpu_kv_select_need(&dev->ctx, op, &need);
  copy = add_needing(dev, KS_CPU_KV_SELECT, op, sizeof(*op), &need);
  if (copy == NULL || (op->per_stream_keep != NULL &&
                       !copy_array(dev, op->per_stream_keep, n_stream, sizeof(uint32_t),
                                   (const void **)&copy->per_stream_keep)))
    return KS_ERR_NOMEM;
  return KS_OK;
}

static ks_status
cpu_kv_compact(ks_dev *dev, const ks_op_kv_compact *op)
{
  ks_cpu_need need = {0};

  ks_cpu_kv_compact_need(&dev->ctx, op, &need);
  return done(add_needing(dev, KS_CPU_KV_COMPACT, op, sizeof(*op), &need));
}

static ks_status
cpu_kv_add_mass(ks_dev *dev, const ks_op_kv_add_mass *op)
{
  ks_op_kv_add_mass *copy = add(dev, KS_CPU_KV_ADD_MASS, op, sizeof(*op));

  assert(op->kv.layout->n_aux > 0);
  if (copy == NULL || !copy_array(dev, op->mass_offset, op->kv.layout->n_kv_head, sizeof(uint64_t),
                                  (const void **)&copy->mass_offset))
    return KS_ERR_NOMEM;
  return KS_OK;
}

static ks_status
cpu_head(ks_dev *dev, const ks_op_head *op)
{
  ks_op_head *copy;
  ks_cpu_need need = {0};

  for (uint32_t i = 0; i < op->n_id; i++)
    assert(op->ids[i] >= (i > 0 ? op->ids[i - 1] : 0) && (uint32_t)op->ids[i] < op->w.n_out);
  ks_cpu_head_need(&dev->ctx, op, &need);
  copy = add_needing(dev, KS_CPU_HEAD, op, sizeof(*op), &need);
  if (copy == NULL ||
      !copy_array(dev, op->ids, op->n_id, sizeof(int32_t), (const void **)&copy->ids))
    return KS_ERR_NOMEM;
  return KS_OK;
}

ks_status
ks_cpu_record_transposed(ks_dev *dev, const ks_op_linear_t *op)
{
  ks_cpu_need need = {0};

  ks_cpu_linear_transposed_need(&dev->ctx, op, &need);
  return done(add_needing(dev, KS_CPU_LINEAR_TRANSPOSED, op, sizeof(*op), &need));
}

static const ks_backend_table cpu_table = {
    .abi = KS_BACKEND_ABI,
    .size = sizeof(ks_backend_table),
    .name = "cpu",
    .probe = cpu_probe,
    .open = cpu_open,
    .close = cpu_close,
    .get_info = cpu_get_info,
    .supports_weight = cpu_supports_weight,
    .mem_new = cpu_mem_new,
    .mem_free = cpu_mem_free,
    .weight_bind = cpu_weight_bind,
    .weight_unbind = cpu_weight_unbind,
    .repack_bytes = cpu_repack_bytes,
    .weight_repack = cpu_weight_repack,
    .upload = cpu_upload,
    .download = cpu_download,
    .range_new = cpu_range_new,
    .range_commit = cpu_range_commit,
    .range_drop = cpu_range_drop,
    .range_free = cpu_range_free,
    .step_begin = cpu_step_begin,
    .step_end = cpu_step_end,
    .step_abort = cpu_step_abort,
    .gather_rows = cpu_gather_rows,
    .store_rows = cpu_store_rows,
    .add_rows = cpu_add_rows,
    .rms_norm = cpu_rms_norm,
    .layer_norm = cpu_layer_norm,
    .linear = cpu_linear,
    .act_mul = cpu_act_mul,
    .rope = cpu_rope,
    .kv_append = cpu_kv_append,
    .attention = cpu_attention,
    .attn_segments = cpu_attn_segments,
    .gate = cpu_gate,
    .pool = cpu_pool,
    .kv_score = cpu_kv_score,
    .kv_select = cpu_kv_select,
    .kv_compact = cpu_kv_compact,
    .kv_add_mass = cpu_kv_add_mass,
    .head = cpu_head,
    .kv_read = ks_cpu_kv_read,
    .kv_rotate = ks_cpu_kv_rotate,
    .kv_move_page = ks_cpu_kv_move_page,
    .train = &ks_cpu_train_table,
};

const ks_backend_table *
ks_cpu_backend_entry(void)
{
  return &cpu_table;
}

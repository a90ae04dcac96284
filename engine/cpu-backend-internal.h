/* cpu-backend-internal.h - the seam between the CPU backend's recorder and its kernels.
 * A step is recorded as a list of descriptors and run in one parallel region: every member of the
 * thread pool calls ks_cpu_<op> for one operation after the other, with barriers where one needs
 * what another one wrote (cpu-touch.c says what each touches: change it with the kernel). A kernel
 * does its member's share only, allocates nothing and reports nothing: what can fail is checked
 * when the operation is recorded. Threads: kernels run on all members at once,
 * everything else on the engine thread.  */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/backend-train.h"
#include "engine/threads.h"

KS_BEGIN_DECLS

typedef enum ks_isa { KS_ISA_SCALAR, KS_ISA_AVX2, KS_ISA_AVX512, KS_N_ISA } ks_isa;

struct ks_cpu_matmul_fns; /* cpu-matmul-internal.h */
struct ks_cpu_bf16_fns;   /* the same for bfloat16 pairs */
struct ks_cpu_vec_fns;    /* kernels of the other operations */
struct ks_cpu_packed_fns; /* cpu-packed-internal.h */
struct ks_cpu_codes_fns;  /* cpu-codes-internal.h */

/* Shared by all members during a run; a test may fill one by hand (zeroed, then threads, isa, the
 * tables, ticket and as much scratch as its operation needs). */
typedef struct ks_cpu_ctx {
  ks_threads *threads;
  ks_isa isa;
  bool vnni, bf16; /* extensions of isa that may be used */
  ks_compute_mode mode;
  const struct ks_cpu_matmul_fns *matmul; /* never NULL */
  const struct ks_cpu_vec_fns *vec;       /* as ks_cpu_vec_get gave it */
  const struct ks_cpu_codes_fns *codes;   /* q8_0 keys and values in fast mode; NULL = in f32 */
  const struct ks_cpu_bf16_fns *pairs;    /* BF16 weights in fast mode; NULL = as others */
  const struct ks_cpu_packed_fns
      *packed;            /* kernels of repacked weights; as ks_cpu_packed_get gave it */
  unsigned char *scratch; /* member blocks, one behind the other */
  size_t scratch_bytes;   /* of one member, a multiple of 64 */
  unsigned char *shared;  /* one block that all members share */
  size_t shared_bytes;
  uint32_t *ticket;       /* next piece of work; 0 when an operation begins */
  struct ks_cpu_run *run; /* of the step; NULL outside, then nothing is asked */
} ks_cpu_ctx;

/* Scratch that one operation needs, filled in when it is recorded. */
typedef struct ks_cpu_need {
  size_t member_bytes; /* for each member */
  size_t shared_bytes;
} ks_cpu_need;

static inline void *
ks_cpu_ptr(ks_dptr p)
{
  return (void *)(uintptr_t)p;
}

/* The member's own block, aligned to 64; at least as large as the operation asked for. */
static inline void *
ks_cpu_scratch(const ks_cpu_ctx *ctx, uint32_t member)
{
  return ctx->scratch + (size_t)member * ctx->scratch_bytes;
}

/* Takes the next piece of dynamically shared work: 0, 1, 2... over all members. */
static inline uint32_t
ks_cpu_take(const ks_cpu_ctx *ctx)
{
  return __atomic_fetch_add(ctx->ticket, 1, __ATOMIC_RELAXED);
}

/* Between two phases of one operation: all members wait, then tickets begin at 0 again. */
static inline void
ks_cpu_next_phase(const ks_cpu_ctx *ctx, uint32_t member)
{
  (void)member;
  ks_threads_barrier_reset(ctx->threads, ctx->ticket);
}

/* True when the step is being stopped: a kernel that works for long asks once per piece of work and
 * leaves its loops, but still takes part in its barriers.  Cheap. */
bool ks_cpu_poll(const ks_cpu_ctx *ctx, uint32_t member);

/* This member's part begin .. end-1 of n items in fixed, nearly equal slices. */
static inline void
ks_cpu_slice(size_t n, uint32_t member, uint32_t n_member, size_t *begin, size_t *end)
{
  *begin = n / n_member * member + (n % n_member) * member / n_member;
  *end = n / n_member * (member + 1) + (n % n_member) * (member + 1) / n_member;
}

/* For the immediate operations, and for tests: the context of an open device.  Outside a step. */
const ks_cpu_ctx *ks_cpu_get_ctx(ks_dev *dev);
/* Grows the scratch blocks of a device (never shrinks).  Outside a run. */
KS_CHECK ks_status ks_cpu_need_scratch(ks_dev *dev, const ks_cpu_need *need);

/* The tables of kernels for an instruction set; never NULL.  The caller has checked that the CPU
 * and the system support it. */
const struct ks_cpu_matmul_fns *ks_cpu_matmul_get(ks_isa isa);
const struct ks_cpu_vec_fns *ks_cpu_vec_get(ks_isa isa);
/* NULL without the extension. */
const struct ks_cpu_bf16_fns *ks_cpu_bf16_get(bool bf16);
const struct ks_cpu_codes_fns *ks_cpu_codes_get(ks_isa isa, bool vnni);
/* The best instruction set that the CPU has and the system saves. */
ks_isa ks_cpu_detect_isa(void);

/* Scratch of the operations that use any; *need is zeroed by the caller.  Called when an operation
 * is recorded, with the entry counts of that moment. */
void ks_cpu_linear_need(const ks_cpu_ctx *ctx, const ks_op_linear *op, ks_cpu_need *need);
void ks_cpu_linear_transposed_need(const ks_cpu_ctx *ctx, const ks_op_linear_t *op,
                                   ks_cpu_need *need);
void ks_cpu_attention_need(const ks_cpu_ctx *ctx, const ks_op_attention *op, ks_cpu_need *need);
void ks_cpu_attn_segments_need(const ks_cpu_ctx *ctx, const ks_op_attn_segments *op,
                               ks_cpu_need *need);
void ks_cpu_kv_score_need(const ks_cpu_ctx *ctx, const ks_op_kv_score *op, ks_cpu_need *need);
void ks_cpu_kv_select_need(const ks_cpu_ctx *ctx, const ks_op_kv_select *op, ks_cpu_need *need);
void ks_cpu_kv_compact_need(const ks_cpu_ctx *ctx, const ks_op_kv_compact *op, ks_cpu_need *need);
void ks_cpu_head_need(const ks_cpu_ctx *ctx, const ks_op_head *op, ks_cpu_need *need);

/* A rotation with the table of its cosines and sines [n_tok, 2, n_rot / 2]; operations of one step
 * with the same positions and frequencies share it. */
typedef struct ks_cpu_rope_job {
  ks_op_rope op;
  float *angles;
  bool back; /* by the negative angles: a gradient */
} ks_cpu_rope_job;

/* The operations.  Each is called on every member with the same descriptor. */
void ks_cpu_gather_rows(const ks_cpu_ctx *ctx, const ks_op_gather_rows *op, uint32_t member,
                        uint32_t n_member);
void ks_cpu_store_rows(const ks_cpu_ctx *ctx, const ks_op_store_rows *op, uint32_t member,
                       uint32_t n_member);
void ks_cpu_add_rows(const ks_cpu_ctx *ctx, const ks_op_add_rows *op, uint32_t member,
                     uint32_t n_member);
void ks_cpu_rms_norm(const ks_cpu_ctx *ctx, const ks_op_norm *op, uint32_t member,
                     uint32_t n_member);
void ks_cpu_layer_norm(const ks_cpu_ctx *ctx, const ks_op_norm *op, uint32_t member,
                       uint32_t n_member);
void ks_cpu_linear(const ks_cpu_ctx *ctx, const ks_op_linear *op, uint32_t member,
                   uint32_t n_member);
void ks_cpu_linear_transposed(const ks_cpu_ctx *ctx, const ks_op_linear_t *op, uint32_t member,
                              uint32_t n_member);
void ks_cpu_act_mul(const ks_cpu_ctx *ctx, const ks_op_act_mul *op, uint32_t member,
                    uint32_t n_member);
/* Fills the table of a job; then rotates with it. */
void ks_cpu_rope_angles(const ks_cpu_ctx *ctx, const ks_cpu_rope_job *job, uint32_t member,
                        uint32_t n_member);
void ks_cpu_rope(const ks_cpu_ctx *ctx, const ks_cpu_rope_job *job, uint32_t member,
                 uint32_t n_member);
void ks_cpu_kv_append(const ks_cpu_ctx *ctx, const ks_op_kv_append *op, uint32_t member,
                      uint32_t n_member);
void ks_cpu_attention(const ks_cpu_ctx *ctx, const ks_op_attention *op, uint32_t member,
                      uint32_t n_member);
void ks_cpu_attn_segments(const ks_cpu_ctx *ctx, const ks_op_attn_segments *op, uint32_t member,
                          uint32_t n_member);
/* The gate is recorded as its hidden layers and its output. */
uint32_t ks_cpu_gate_get_n_hidden(const ks_op_gate *op);
ks_op_linear ks_cpu_gate_get_hidden(const ks_op_gate *op, uint32_t i);
void ks_cpu_gate_out(const ks_cpu_ctx *ctx, const ks_op_gate *op, uint32_t member,
                     uint32_t n_member);
void ks_cpu_pool(const ks_cpu_ctx *ctx, const ks_op_pool *op, uint32_t member, uint32_t n_member);
void ks_cpu_kv_score(const ks_cpu_ctx *ctx, const ks_op_kv_score *op, uint32_t member,
                     uint32_t n_member);
void ks_cpu_kv_select(const ks_cpu_ctx *ctx, const ks_op_kv_select *op, uint32_t member,
                      uint32_t n_member);
void ks_cpu_kv_compact(const ks_cpu_ctx *ctx, const ks_op_kv_compact *op, uint32_t member,
                       uint32_t n_member);
void ks_cpu_kv_add_mass(const ks_cpu_ctx *ctx, const ks_op_kv_add_mass *op, uint32_t member,
                        uint32_t n_member);
void ks_cpu_head(const ks_cpu_ctx *ctx, const ks_op_head *op, uint32_t member, uint32_t n_member);

/* One activation value, and a row in place by the instruction set's own code (cpu-act.c). */
float ks_cpu_act(ks_act act, float z);
void ks_cpu_act_row(const ks_cpu_ctx *ctx, ks_act act, float *z, size_t n);

/* The immediate operations, with the table's signatures. */
ks_status ks_cpu_kv_read(ks_dev *dev, const ks_kv_view *kv, uint32_t stream, uint32_t begin,
                         uint32_t end, float *k, float *v, float *log_beta, uint32_t *pos,
                         float *aux, ks_error *err);
ks_status ks_cpu_kv_rotate(ks_dev *dev, const ks_kv_view *kv, uint32_t stream,
                           const ks_op_rope *rope, const int32_t *delta, ks_error *err);
ks_status ks_cpu_kv_move_page(ks_dev *dev, const ks_kv_view *kv, uint32_t dst_page,
                              uint32_t src_page, ks_error *err);

KS_END_DECLS

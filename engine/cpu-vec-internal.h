/* cpu-vec-internal.h - the inner loops of every CPU operation but linear, one table an instruction
 * set.  One source (cpu-vec.inc) is built three times over a few vector primitives, so that the
 * sets cannot drift apart; tests compare the tables with each other and with double arithmetic.
 * Any length is allowed everywhere unless said otherwise; f32 sums are taken lane by lane, so they
 * differ between the tables in the last bits.
 * Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/backend.h"

KS_BEGIN_DECLS

/* How keys and values are stored: index of the tables below. */
typedef enum ks_kv_kind { KS_KV_F32, KS_KV_F16, KS_KV_Q8_0, KS_N_KV_KIND } ks_kv_kind;

/* Rows of accumulators and of tiles have room for a multiple of this many floats. */
#define KS_CPU_PAD 32u

static inline size_t
ks_cpu_pad(size_t n)
{
  return (n + KS_CPU_PAD - 1) / KS_CPU_PAD * KS_CPU_PAD;
}

/* dtype is F32, F16 or Q8_0: a layout knows no other. */
static inline ks_kv_kind
ks_kv_kind_get(ks_dtype dtype)
{
  return dtype == KS_DTYPE_F32 ? KS_KV_F32 : dtype == KS_DTYPE_F16 ? KS_KV_F16 : KS_KV_Q8_0;
}

/* The key of -inf; smaller ones do not occur. */
#define KS_RANK_DEAD 0x007FFFFFu

/* Stored rows, a matrix of n_row rows row_bytes apart. */
typedef struct ks_cpu_rows {
  const unsigned char *data;
  size_t row_bytes;
  size_t n_row;
  const unsigned char *ahead; /* rows of this size that are wanted soon, or NULL: the processor is
                                 asked for them on the way */
} ks_cpu_rows;

/* What turns a row of logits into its gradient. */
typedef struct ks_logit_row {
  float logsumexp_q, logsumexp_p;
  float w_q, w_p; /* weights of the two softmaxes */
  float inv_cap2; /* 1 / cap^2; 0 = no cap */
} ks_logit_row;

typedef struct ks_cpu_vec_fns {
  const char *name;
  /* Stored row <-> f32 [n].  Q8_0 rows are whole blocks of 32; the last one may be part used. */
  void (*unpack[KS_N_KV_KIND])(float *dst, const void *src, size_t n);
  void (*pack[KS_N_KV_KIND])(void *dst, const float *src, size_t n);
  /* s[i * s_stride + j] = q[i * q_stride ...] . rows[j]; dim elements count. */
  void (*qk[KS_N_KV_KIND])(float *s, size_t s_stride, const float *q, size_t q_stride, size_t n_q,
                           ks_cpu_rows rows, size_t dim);
  /* acc[i * acc_stride ...] += sum over j of p[i * p_stride + j] * rows[j]; acc padded. */
  void (*pv[KS_N_KV_KIND])(float *acc, size_t acc_stride, const float *p, size_t p_stride,
                           size_t n_q, ks_cpu_rows rows, size_t dim);
  /* dst[j * dst_stride + i] = src[i * src_stride + j], src [n_row, n_col]. */
  void (*transpose)(float *dst, size_t dst_stride, const float *src, size_t src_stride,
                    size_t n_row, size_t n_col);
  /* c [m, n] = a [m, k] b [k, n], or += when add; n a multiple of KS_CPU_PAD / 2. */
  void (*gemm)(float *c, size_t c_stride, const float *a, size_t a_stride, const float *b,
               size_t b_stride, size_t m, size_t n, size_t k, bool add);
  float (*max)(const float *x, size_t n);                 /* NaN left out; of nothing: -inf */
  float (*exp_sum)(float *x, size_t n, float max);        /* x = exp(x - max), returns the sum */
  double (*sum_exp)(const float *x, size_t n, float max); /* the sum only */
  float (*sum)(const float *x, size_t n);
  float (*sum_squares)(const float *x, size_t n, float mean); /* of x - mean */
  void (*scale)(float *x, size_t n, float factor);
  void (*add)(float *dst, const float *src, size_t n);
  void (*add_scaled)(float *dst, const float *src, size_t n, float factor);
  /* out = (x - mean) * factor * w + b; w and b may be NULL (ones, zeros). */
  void (*norm)(float *out, const float *x, const float *w, const float *b, size_t n, float mean,
               float factor);
  void (*act_mul)(float *out, const float *a, const float *b, size_t n, ks_act act);
  /* Rotates n pairs: (2i, 2i + 1) or (i, i + n). */
  void (*rope_norm)(float *x, const float *cosine, const float *sine, size_t n);
  void (*rope_neox)(float *x, const float *cosine, const float *sine, size_t n);
  /* out = (seen + 1 - pos) * log_beta, the difference as signed number of 32 bits. */
  void (*retention)(float *out, const float *log_beta, const uint32_t *pos, size_t n,
                    uint32_t seen);
  /* Scores as unsigned keys that ascend alike: -0 equals +0, NaN counts as -inf. */
  void (*rank_keys)(uint32_t *keys, const float *x, size_t n);
  /* Keys above KS_RANK_DEAD with (key & mask) == prefix, in order; out has room for n. */
  size_t (*rank_pick)(uint32_t *out, const float *x, size_t n, uint32_t mask, uint32_t prefix);
  /* keep = key >= least; returns how many. */
  uint32_t (*rank_mark)(uint8_t *keep, const float *x, size_t n, uint32_t least);
  /* Lowers *least_kept to the least key of the kept and raises *most_dropped likewise. */
  void (*rank_margin)(const uint8_t *keep, const float *x, size_t n, uint32_t *least_kept,
                      uint32_t *most_dropped);

  /* Training (cpu-vec-train.inc).  Outputs may be inputs.  The age of element i is
   * max(0, age - i). */
  float (*dot)(const float *a, const float *b, size_t n);
  float (*dot3)(const float *a, const float *b, const float *w, size_t n); /* w may be NULL: ones */
  float (*distance)(const float *a, const float *b, size_t n);             /* of a - b, squared */
  void (*difference)(float *out, const float *a, const float *b, size_t n, float factor);
  /* dx (+)= along * w * dy - across * x; w may be NULL */
  void (*norm_back)(float *dx, const float *x, const float *w, const float *dy, size_t n,
                    float along, float across, bool add);
  /* da = dy b act'(a), db = dy act(a); b and db may be NULL */
  void (*act_back)(float *da, float *db, const float *a, const float *b, const float *dy, size_t n,
                   ks_act act);
  void (*age_add)(float *s, const float *log_beta, size_t n, float age); /* s += age log_beta */
  /* s = exp(s + age log_beta - top); log_beta may be NULL */
  void (*age_exp)(float *s, const float *log_beta, size_t n, float age, float top);
  /* dp = p (dp - mean), ages += age dp */
  void (*softmax_back)(float *dp, const float *p, float *ages, size_t n, float mean, float age);
  float (*decay_sum)(const float *log_beta, size_t n, float age); /* of exp(age log_beta) */
  /* d_log_beta += d_size age exp(age log_beta) */
  void (*decay_back)(float *d_log_beta, const float *log_beta, size_t n, float age, float d_size);
  void (*softcap)(float *x, size_t n, float cap);
  /* Returns the sum of softmax(p) (p - q); d = (w_q softmax(q) - w_p softmax(p)) (1 - q^2
   * inv_cap2). p or d may be NULL. */
  double (*logit_back)(float *d, const float *q, const float *p, size_t n, const ks_logit_row *row);
} ks_cpu_vec_fns;

extern const ks_cpu_vec_fns ks_cpu_vec_scalar;
extern const ks_cpu_vec_fns ks_cpu_vec_avx2;
extern const ks_cpu_vec_fns ks_cpu_vec_avx512;
extern const ks_cpu_vec_fns ks_cpu_vec_avx512_emulated; /* in the tests only */

KS_END_DECLS

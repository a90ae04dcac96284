/* backend.h - the one table through which the engine computes.
 * A backend owns device memory (ks_dptr, never dereferenced outside) and runs a step: operations
 * are recorded between step_begin and step_end and run in order.  All operations are mandatory;
 * what a device cannot do (a weight type) it says through supports_weight when a model is loaded.
 * The CPU backend defines every operation; others are compared with it (tests/ops).
 * Shapes are row-major, last index fastest; activations are f32.
 * Over 200 lines because the table and its descriptors are one contract.
 * Threads: one thread drives a device.  Source: docs/adr/0008-backend-table.md, docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/alloc.h"
#include "engine/dtype.h"

KS_BEGIN_DECLS

#define KS_BACKEND_ABI 6u

typedef uint64_t ks_dptr; /* device address; 0 = none; adding bytes is allowed */

typedef enum ks_act {
  KS_ACT_NONE,
  KS_ACT_SILU,
  KS_ACT_GELU_TANH,
  KS_ACT_GELU_ERF,
  KS_ACT_GELU_QUICK,
  KS_ACT_RELU6
} ks_act;
typedef enum ks_compute_mode { KS_COMPUTE_EXACT, KS_COMPUTE_FAST } ks_compute_mode;

/* A weight matrix: n_out rows of n_in elements, each row contiguous. */
typedef struct ks_weight {
  ks_dptr data; /* 0 = absent */
  ks_dtype dtype;
  uint32_t n_in, n_out;
  size_t row_bytes;
  ks_dptr packed; /* the same values in the order of the device's kernels, read by linear, head and
                     gather_rows in place of data; 0 = none (see weight_repack) */
  bool is_output; /* the output matrix: may be split rather than packed */
  ks_dptr split;  /* the same values in two halves, read by head and gather_rows in place of data,
                     so that head reads one half of most rows; 0 = none */
} ks_weight;

/* rows[i] = weight row ids[i] as f32, times scale.  ids are checked by the caller. */
typedef struct ks_op_gather_rows {
  ks_weight table;
  ks_dptr ids; /* i32 [n_tok] */
  ks_dptr out; /* f32 [n_tok, n_in] */
  uint32_t n_tok;
  float scale;
} ks_op_gather_rows;

/* Rows of f32, times scale, as F32, F16 or Q8_0 (n_col a multiple of its block), which gather_rows
 * reads back: activations that are kept for long.  Rows of out lie out_row_bytes apart, so that out
 * may be some columns of wider rows. */
typedef struct ks_op_store_rows {
  ks_dptr src, out; /* f32 [n_row, n_col] */
  ks_dtype dtype;
  size_t out_row_bytes;
  uint32_t n_row, n_col;
  float scale;
} ks_op_store_rows;

/* dst[idx[i]] += src[i]; idx 0 means i. */
typedef struct ks_op_add_rows {
  ks_dptr dst, src, idx; /* f32 [?, n_col], f32 [n_row, n_col], i32 [n_row] or 0 */
  uint32_t n_row, n_col;
} ks_op_add_rows;

/* out = x / rms(x) * w (rms_norm), or (x - mean) / std * w + b (layer_norm).  out may be x. */
typedef struct ks_op_norm {
  ks_dptr x, out; /* f32, rows of n_col */
  ks_dptr w, b;   /* f32 [n_col]; 0 = ones / zeros */
  uint32_t n_row, n_col;
  size_t x_stride, out_stride; /* floats from row to row; 0 = n_col */
  float eps;
} ks_op_norm;

/* What happens to the product before it is stored. */
typedef enum ks_epilogue {
  KS_EPI_STORE,   /* y[i]  = w[i] x + bias[i], then act */
  KS_EPI_ADD,     /* y[i] += w[i] x + bias[i]  (residual) */
  KS_EPI_ACT_MUL, /* two weights, one output: y[0] = act(w[0] x + bias[0]) * (w[1] x + bias[1]) */
  KS_EPI_SOFTCAP  /* y[i]  = cap * tanh((w[i] x + bias[i]) / cap) */
} ks_epilogue;

/* One to three matrices over one input: the input is read (in fast mode: quantised) once. */
typedef struct ks_op_linear {
  uint32_t n_w;
  ks_weight w[3];  /* equal n_in */
  ks_dptr bias[3]; /* f32 [n_out] or 0 */
  ks_dptr x;       /* f32 [n_tok, n_in] */
  ks_dptr y[3];    /* f32 [n_tok, n_out] */
  uint32_t n_tok;
  size_t x_stride, y_stride[3]; /* floats from row to row; 0 = dense */
  ks_epilogue epilogue;
  ks_act act;
  float cap;
  bool exact; /* in fast mode as well: f32 activations */
} ks_op_linear;

/* out[t, i] = act(a[t, i]) * b[t, i]; row strides in floats. */
typedef struct ks_op_act_mul {
  ks_dptr a, b, out;
  uint32_t n_row, n_col;
  size_t a_stride, b_stride, out_stride;
  ks_act act;
} ks_op_act_mul;

/* Rotates q [n_tok, n_head, head_dim] and k [n_tok, n_kv_head, head_dim] in place.
 * angle of pair i = (float)pos[axis[i]][t] * inv_freq[i]; cos and sin are multiplied by mscale.
 * NORM rotates (2i, 2i+1), NEOX (i, i + n_rot/2); elements from n_rot on pass through. */
typedef struct ks_op_rope {
  ks_dptr q, k; /* either may be 0 */
  uint32_t n_tok, n_head, n_kv_head, head_dim, n_rot;
  size_t q_stride, k_stride; /* floats from token to token; 0 = dense */
  ks_dptr pos;               /* i32 [3, n_tok] */
  ks_dptr inv_freq;          /* f32 [n_rot/2] */
  ks_dptr axis;              /* u8 [n_rot/2], 0 = t, 1 = h, 2 = w; 0 pointer = all t */
  float mscale;
  bool neox;
} ks_op_rope;

/* Layout of a page: planes K [P, k_row_bytes], V [P, v_row_bytes], log_beta f32 [P], pos u32 [P],
 * aux f32 [n_aux, P], each plane at its offset from the page's start. */
typedef struct ks_kv_layout {
  uint32_t n_layer, n_kv_head; /* stream = layer * n_kv_head + head */
  uint32_t k_dim, v_dim;       /* elements of one key, one value */
  ks_dtype kv_dtype;           /* F32, F16 or Q8_0 */
  uint32_t page_entries;       /* P: entries of one stream per page, a power of two */
  uint32_t n_aux;              /* extra f32 an entry that a policy accumulates */
  size_t k_row_bytes, v_row_bytes;
  size_t v_offset, log_beta_offset, pos_offset, aux_offset, page_bytes;
} ks_kv_layout;

/* One stream's page list; owned by the pool, read by backends. */
typedef struct ks_kv_stream {
  uint32_t *pages; /* page ids in order of entries */
  uint32_t n_page, page_capacity;
  uint32_t n_entry;
} ks_kv_stream;

/* What an operation sees of one timeline's entries. */
typedef struct ks_kv_view {
  ks_dptr base; /* page id p lies at base + p * layout->page_bytes */
  const ks_kv_layout *layout;
  const ks_kv_stream *streams; /* [n_layer * n_kv_head] */
} ks_kv_view;

/* Writes n_tok new entries of one layer into slots first[h] .. first[h] + n_tok - 1 of each head's
 * stream; the pages are already there.  The host raises n_entry when the step is over. */
typedef struct ks_op_kv_append {
  ks_kv_view kv;
  uint32_t layer, n_tok;
  uint32_t pos0; /* sequence index of the first new token; they are consecutive, */
  ks_dptr pos;   /* or, not 0, u32 [n_tok]: rising sequence indices in place of pos0 */
  ks_dptr k, v,
      log_beta; /* f32 [n_tok, n_kv_head, k_dim | v_dim], f32 [n_tok, n_kv_head] or 0 (= 0) */
  size_t k_stride, v_stride; /* floats from token to token; 0 = dense */
} ks_op_kv_append;

/* Softmax attention over the live entries of one layer, n_entry + n_new of each stream.
 * Query t sees entry e iff first[t] <= e.pos <= last[t] (sequence indices; entries are ordered by
 * pos).  Query head h reads stream h / (n_head / n_kv_head).  A query that sees nothing gives 0. */
typedef struct ks_op_attention {
  ks_kv_view kv;
  uint32_t layer, n_tok, n_head;
  uint32_t n_new;      /* entries appended in this step, behind n_entry of every stream */
  ks_dptr q, out;      /* f32 [n_tok, n_head, k_dim | v_dim] */
  ks_dptr first, last; /* u32 [n_tok] */
  float scale;
  /* Optional: attention mass per entry, summed over the last mass_window queries and over the query
   * heads of the group; f32 per head at mass + 4 * mass_offset[head], n_entry + n_new each. */
  ks_dptr mass;
  const uint64_t *mass_offset; /* host, [n_kv_head], in elements; copied */
  uint32_t mass_window;
} ks_op_attention;

/* Full attention inside segments (tower windows, tiles): rows seg[i] .. seg[i+1]-1 see each other.
 */
typedef struct ks_op_attn_segments {
  ks_dptr q, k, v, out; /* f32 [n_row, n_head, head_dim] */
  uint32_t n_row, n_head, head_dim;
  size_t qkv_stride;   /* floats from row to row of q, k, v; 0 = dense */
  const uint32_t *seg; /* host, [n_seg + 1], copied */
  uint32_t n_seg;
  float scale;
  ks_dptr received; /* optional f32 [n_row]: attention received, mean over heads and queries */
} ks_op_attn_segments;

/* Retention gate of one layer: log_beta [n_tok, n_kv_head] <= 0.
 * Tied (w2 set): z = w3 act(w2 act(w1 x + b1) + b2) + b3.  Local (w2.data 0): z = w3 act(w1 x + b1)
 * + b3. log_beta = logsigmoid(z).  All weights f32. */
typedef struct ks_op_gate {
  ks_weight w1, w2, w3;
  ks_dptr b1, b2, b3;
  ks_dptr x; /* f32 [n_tok, n_embd]: the input of the q/k/v projections */
  ks_dptr u; /* scratch f32 [2, n_tok, n_gate] */
  ks_dptr log_beta;
  uint32_t n_tok;
  ks_act act;
} ks_op_gate;

/* Mean over s x s cells: in [gh, gw, n_col] -> out [gh/s, gw/s, n_col]. */
typedef struct ks_op_pool {
  ks_dptr in, out;
  uint32_t gh, gw, n_col, s;
} ks_op_pool;

/* Half-open range of sequence indices. */
typedef struct ks_pos_range {
  uint32_t begin, end;
} ks_pos_range;

/* Retention scores of every live entry, stream after stream in one array; f32 product and sum
 * rounded apart.  Entries in a pin range get +inf, entries with pos < live_from[layer] -inf. */
typedef struct ks_op_kv_score {
  ks_kv_view kv;
  ks_dptr out;   /* f32 [total live entries] */
  uint32_t seen; /* tokens processed so far */
  uint32_t lookahead;
  const uint32_t *live_from; /* host [n_layer] */
  const ks_pos_range *pins;  /* host, sorted, disjoint */
  uint32_t n_pin;
} ks_op_kv_score;

/* Keeps the n_keep best entries over all streams: larger score, then larger pos, then smaller
 * layer, then smaller head; entries scored -inf are dropped in any case.  With floor m the counts
 * come from the global top n_keep - n_stream * m, plus m each (clipped), then the best inside each
 * stream. per_stream_keep (host, [n_stream]) overrides both with a count per stream. */
typedef struct ks_op_kv_select {
  ks_kv_view kv;
  ks_dptr scores; /* f32, as kv_score lays them out */
  ks_dptr keep;   /* u8 [total live entries] out */
  uint64_t n_keep;
  uint32_t floor;
  const uint32_t *per_stream_keep;
  uint32_t *out_n_keep;     /* host [n_stream]: survivors per stream */
  float *out_last_kept;     /* host, may be NULL: score of the last survivor */
  float *out_first_dropped; /* host, may be NULL */
} ks_op_kv_select;

/* Slides the marked entries of every stream to its front, in order.  The host releases the pages.
 */
typedef struct ks_op_kv_compact {
  ks_kv_view kv;
  ks_dptr keep; /* u8 [total live entries] */
} ks_op_kv_compact;

/* Adds the mass that attention left (same offsets, host [n_kv_head], copied) to aux plane 0 of
 * every entry of a layer, the n_new that this pass appended included. */
typedef struct ks_op_kv_add_mass {
  ks_kv_view kv;
  uint32_t layer, n_new;
  ks_dptr mass;
  const uint64_t *mass_offset;
} ks_op_kv_add_mass;

/* The output matrix: logits w x (then cap * tanh(logit / cap) where cap > 0) of each row are made
 * and not kept; what is told of them are the k largest, their logsumexp, the logits of n_id listed
 * ids, and all of them where logits is set. */
typedef struct ks_op_head {
  ks_weight w; /* n_out = n_vocab */
  ks_dptr x;   /* f32 [n_row, n_in] */
  uint32_t n_row, k;
  float cap;
  const int32_t *ids; /* host, copied; not falling */
  uint32_t n_id;
  int32_t *out_ids;     /* host [n_row, k], best first; ties: smaller id first; -1: fewer ids */
  float *out_logits;    /* host [n_row, k]; NaN counts as minus infinity */
  float *out_logsumexp; /* host [n_row] or NULL */
  float *out_listed;    /* host [n_row, n_id] */
  ks_dptr logits;       /* f32 [n_row, n_vocab] or 0 */
} ks_op_head;

typedef struct ks_dev ks_dev; /* an opened device, private to its backend */

typedef struct ks_dev_info {
  char name[128];
  uint64_t total_bytes, free_bytes;
  uint32_t n_unit;    /* threads or multiprocessors in use */
  char isa[64];       /* "avx2+vnni", "sm_90" */
  uint64_t own_bytes; /* taken by the device for its steps (list, tiles, workspace); grows with the
                         largest step that was recorded, 0 from probe */
} ks_dev_info;

typedef struct ks_dev_params {
  ks_alloc *alloc;   /* host allocations, and device ones where the device is main memory */
  uint32_t index;    /* which device of this backend */
  uint32_t n_thread; /* CPU: 0 = all physical cores allowed */
  ks_compute_mode mode;
  const char *isa; /* CPU, for checks: a name of ks_cpu_sets, "scalar" to "avx512+vnni+bf16", or
                      NULL = the best there is */
} ks_dev_params;

/* Called between operations of a step and at least every 50 ms of work; true stops the step. */
typedef bool (*ks_stop_fn)(void *user);

struct ks_train_table;

typedef struct ks_backend_table {
  uint32_t abi, size;
  const char *name;
  bool (*probe)(uint32_t index, ks_dev_info *out, char *why, size_t why_size);
  ks_status (*open)(const ks_dev_params *params, ks_dev **out, ks_error *err);
  void (*close)(ks_dev *dev);
  void (*get_info)(ks_dev *dev, ks_dev_info *out);
  bool (*supports_weight)(ks_dev *dev, ks_dtype dtype);

  ks_status (*mem_new)(ks_dev *dev, ks_mem_kind kind, size_t n_bytes, ks_dptr *out, ks_error *err);
  void (*mem_free)(ks_dev *dev, ks_dptr p);
  /* Weights: the CPU uses the host bytes in place (they must stay), other devices copy them. */
  ks_status (*weight_bind)(ks_dev *dev, const void *host, size_t n_bytes, ks_dptr *out,
                           ks_error *err);
  void (*weight_unbind)(ks_dev *dev, ks_dptr p, size_t n_bytes);
  /* A second copy of a matrix, laid out for the device's kernels: repack_bytes says how much memory
   * it takes (0: this type or device has none), weight_repack writes it to dst, memory of the kind
   * KS_MEM_WEIGHTS aligned to 64, and sets w->packed or w->split.  data stays readable and bound.
   */
  size_t (*repack_bytes)(ks_dev *dev, const ks_weight *w);
  void (*weight_repack)(ks_dev *dev, ks_weight *w, ks_dptr dst);
  ks_status (*upload)(ks_dev *dev, ks_dptr dst, const void *src, size_t n_bytes, ks_error *err);
  ks_status (*download)(ks_dev *dev, void *dst, ks_dptr src, size_t n_bytes, ks_error *err);
  /* A reserved address range, backed piece by piece; offsets and sizes are multiples of 64 KiB.
   * range_drop gives the memory back to the system at once. */
  ks_status (*range_new)(ks_dev *dev, size_t n_bytes, ks_dptr *out, ks_error *err);
  ks_status (*range_commit)(ks_dev *dev, ks_dptr range, size_t offset, size_t n_bytes,
                            ks_error *err);
  void (*range_drop)(ks_dev *dev, ks_dptr range, size_t offset, size_t n_bytes);
  void (*range_free)(ks_dev *dev, ks_dptr range, size_t n_bytes);

  /* Recording.  step_end runs what was recorded and waits; KS_ERR_CANCELLED when stop returned true
   * (outputs are then undefined).  Operations copy their descriptor and host arrays marked so. */
  ks_status (*step_begin)(ks_dev *dev, ks_error *err);
  ks_status (*step_end)(ks_dev *dev, ks_stop_fn stop, void *user, ks_error *err);
  void (*step_abort)(ks_dev *dev); /* forgets what was recorded */
  ks_status (*gather_rows)(ks_dev *dev, const ks_op_gather_rows *op);
  ks_status (*store_rows)(ks_dev *dev, const ks_op_store_rows *op);
  ks_status (*add_rows)(ks_dev *dev, const ks_op_add_rows *op);
  ks_status (*rms_norm)(ks_dev *dev, const ks_op_norm *op);
  ks_status (*layer_norm)(ks_dev *dev, const ks_op_norm *op);
  ks_status (*linear)(ks_dev *dev, const ks_op_linear *op);
  ks_status (*act_mul)(ks_dev *dev, const ks_op_act_mul *op);
  ks_status (*rope)(ks_dev *dev, const ks_op_rope *op);
  ks_status (*kv_append)(ks_dev *dev, const ks_op_kv_append *op);
  ks_status (*attention)(ks_dev *dev, const ks_op_attention *op);
  ks_status (*attn_segments)(ks_dev *dev, const ks_op_attn_segments *op);
  ks_status (*gate)(ks_dev *dev, const ks_op_gate *op);
  ks_status (*pool)(ks_dev *dev, const ks_op_pool *op);
  ks_status (*kv_score)(ks_dev *dev, const ks_op_kv_score *op);
  ks_status (*kv_select)(ks_dev *dev, const ks_op_kv_select *op);
  ks_status (*kv_compact)(ks_dev *dev, const ks_op_kv_compact *op);
  ks_status (*kv_add_mass)(ks_dev *dev, const ks_op_kv_add_mass *op);
  ks_status (*head)(ks_dev *dev, const ks_op_head *op);

  /* At once, outside a step. */
  /* Entries begin .. end-1 of a stream to host arrays, each may be NULL: keys and values as f32. */
  ks_status (*kv_read)(ks_dev *dev, const ks_kv_view *kv, uint32_t stream, uint32_t begin,
                       uint32_t end, float *k, float *v, float *log_beta, uint32_t *pos, float *aux,
                       ks_error *err);
  /* Rotates the stored keys of a stream by delta[e] positions per axis (re-map): the rope fields of
   * op (n_rot, inv_freq, axis, neox) say how; delta is host i32 [3, n_entry]. */
  ks_status (*kv_rotate)(ks_dev *dev, const ks_kv_view *kv, uint32_t stream, const ks_op_rope *rope,
                         const int32_t *delta, ks_error *err);
  ks_status (*kv_move_page)(ks_dev *dev, const ks_kv_view *kv, uint32_t dst_page, uint32_t src_page,
                            ks_error *err);

  const struct ks_train_table *train; /* backend-train.h; NULL: this backend does not train */
} ks_backend_table;

/* An opened device. */
typedef struct ks_backend {
  const ks_backend_table *t;
  ks_dev *dev;
} ks_backend;

/* The CPU's table, always there. */
const ks_backend_table *ks_cpu_backend_entry(void);

/* Registry: the CPU first, then the modules libkeepsake-*.so found in the module folder
 * (environment KEEPSAKE_MODULE_DIR, else where the program was installed).  The folder is read on
 * the first call of any of these functions; the registry does not change after that. Any thread.
 * Errors of open: KS_ERR_UNSUPPORTED for an unknown name, with the reasons kept, and what the
 * backend says. */
KS_CHECK ks_status ks_backend_open(const char *name, const ks_dev_params *params, ks_backend *out,
                                   ks_error *err);
void ks_backend_close(ks_backend *be); /* a closed or zeroed one is allowed */
/* Fills at most capacity tables and returns how many there are. */
size_t ks_backend_list(const ks_backend_table **tables, size_t capacity);
/* Why module i of those that were found could not be used ("file: reason"); NULL behind the last.
 */
const char *ks_backend_get_refusal(size_t i);

KS_END_DECLS

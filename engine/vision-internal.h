/* vision-internal.h - what the files of the vision tower share: its weights, the order of its rows,
 * and the memory of one picture's pass.
 * A row is a patch (or LLaVA's class token).  Rows lie in the order in which windows are
 * contiguous; the patches of one token are always neighbours.
 * Never included outside engine/vision*.c and tests/ops.
 * Over 200 lines because all parts of a tower work on one pass. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/vision.h"

KS_BEGIN_DECLS

#define KS_VISION_MAX_DEEP 16u

typedef struct ks_vision_norm {
  ks_dptr w, b; /* f32; w 0 = the family has no such norm */
} ks_vision_norm;

typedef struct ks_vision_block {
  ks_vision_norm ln1, ln2;
  ks_weight wq, wk, wv, wo, w_gate, w_up, w_down; /* w_gate.data 0 = not gated */
  ks_dptr bq, bk, bv, bo, b_gate, b_up, b_down;   /* f32 or 0 */
} ks_vision_block;

/* Norm, matrix, GELU, matrix: projectors and deepstack. */
typedef struct ks_vision_merger {
  ks_vision_norm norm;
  ks_weight w0, w1; /* w1.data 0 = one matrix, no activation */
  ks_dptr b0, b1;
} ks_vision_merger;

typedef struct ks_vision_deep {
  uint32_t layer; /* reads the output of this block */
  ks_vision_merger merger;
} ks_vision_deep;

typedef struct ks_vision_bound {
  ks_dptr data;
  size_t n_bytes;
  bool is_copy;
} ks_vision_bound;

struct ks_vision {
  ks_alloc *alloc;
  ks_backend *be;
  ks_gguf *gguf;
  ks_vision_shape shape; /* n_layer: blocks that are run */
  float eps;
  ks_act act;
  bool is_rms;         /* else layer norm */
  bool has_rope;       /* 2-D rotation of queries and keys */
  bool has_class;      /* row 0 is the class token */
  bool interpolates;   /* positions are sampled from a square table */
  uint32_t wa_pattern; /* block n sees the whole picture when (n + 1) % wa_pattern == 0; 1 = all */
  uint32_t window;     /* tokens a side of a window; 0 = none */
  ks_weight patch[2];  /* [n_embd, 3 * patch * patch]; second frame's half, data 0 = none */
  ks_dptr patch_bias;
  const float *positions; /* host [n_position, n_embd]; NULL = none */
  const float *class_row; /* host [n_embd] */
  float *own_positions, *own_class;
  uint32_t n_position;
  ks_vision_norm pre_ln, post_ln;
  ks_vision_block *blocks;
  ks_vision_merger projector;
  ks_vision_norm pooled_norm; /* Gemma 3: of the pooled rows, RMS */
  ks_vision_deep deep[KS_VISION_MAX_DEEP];
  ks_dptr inv_freq, axis; /* of the rotation */
  ks_vision_bound *bound;
  size_t n_bound, bound_capacity;
  uint64_t weight_bytes;
  uint64_t host_bytes; /* of weight_bytes: mapped and read by the host, charged */
  uint64_t scratch_limit;
  ks_vision_zip zip;
  uint32_t whole_rows, tile_rows; /* a picture of up to whole_rows is one tile; rows of others */
};

/* Reads the keys; vision->shape.n_ff and n_out come with the tensors. */
KS_CHECK ks_status ks_vision_read_shape(ks_vision *vision, ks_error *err);
KS_CHECK ks_status ks_vision_bind(ks_vision *vision, ks_error *err);
void ks_vision_unbind(ks_vision *vision);
/* Name of a tensor whose second size (first for Gemma 3) is the width of an embedding. */
const char *ks_vision_projector_tensor(ks_vision_family family);

/* Which rows see each other, and in which pieces the tower works on them. */
typedef struct ks_vision_rows {
  uint32_t n_row, n_patch, first_patch; /* row of patch 0: 1 behind a class token */
  uint32_t per_token;                   /* neighbouring rows that become one token */
  uint32_t n_tile, n_seg, max_tile_rows;
  uint32_t *tiles;     /* [n_tile + 1] first row of each tile */
  uint32_t *segs;      /* [n_seg + 1] first row of each window; NULL = no windows */
  uint32_t *tile_segs; /* [n_tile + 1] first window of each tile */
  uint32_t *order;     /* [n_patch / per_token] the token that stands there; NULL = its own */
} ks_vision_rows;

KS_CHECK ks_status ks_vision_rows_init(ks_vision_rows *rows, const ks_vision *vision,
                                       const ks_vision_plan *plan, ks_error *err);
void ks_vision_rows_done(ks_vision_rows *rows);
/* Most rows of a tile for a picture of this plan, without making the lists. */
uint32_t ks_vision_rows_count_tile(const ks_vision *vision, const ks_vision_plan *plan);
/* Bytes of the lists at most. */
uint64_t ks_vision_rows_count_bytes(const ks_vision *vision, const ks_vision_plan *plan);
/* Index of the patch (in the order of ks_vision_patch_place) at a row behind the class token. */
uint32_t ks_vision_rows_get_patch(const ks_vision_rows *rows, uint32_t row);

/* Where everything lies in the one block of device memory, and what is kept in which type. */
typedef struct ks_vision_memory {
  ks_dtype x_dtype, o_dtype, kv_dtype;
  uint32_t group;      /* heads whose keys and values are there at once; all of them: no plane o */
  uint32_t rounding;   /* ks_vision_get_rounding */
  size_t x;            /* [n_row, n_embd] x_dtype: the residual stream */
  size_t x_tile;       /* [tile, n_embd] f32: where x is not f32 */
  size_t h;            /* [tile, n_embd] f32 */
  size_t work;         /* q, k, v, att of a tile; feed-forward; patches; projector */
  size_t q, k, v, att; /* inside work, [tile, n_embd] f32 each */
  size_t o;            /* [n_row, n_embd] o_dtype: attention before its output matrix */
  size_t kv;           /* pages of one group */
  size_t pos;          /* i32 [3, rows of the tile] tile after tile */
  size_t first, last, ids; /* u32 [tile]: nothing, everything, counted up */
  size_t device_bytes, host_bytes;
  ks_kv_layout layout; /* of the pages */
  uint32_t n_page;     /* of one head */
  size_t x_row_bytes, o_row_bytes;
} ks_vision_memory;

/* The most exact way that fits the limit; the smallest one where none does.  KS_ERR_NOMEM when
 * sizes overflow. */
KS_CHECK ks_status ks_vision_memory_init(ks_vision_memory *m, const ks_vision *vision,
                                         const ks_vision_plan *plan, ks_error *err);

/* VisionZip on its way: nothing is there while it is off. */
typedef struct ks_vision_zip_state {
  bool is_on;
  uint32_t layer;         /* the block whose attention and keys decide */
  uint32_t n_tok, n_kept; /* of a view */
  float *received;        /* [n_tok] attention */
  float *metric;          /* [n_tok, head_dim] mean of the keys */
  float *staging;         /* [tile, n_embd], [group, n_row] */
  float *whole;  /* the view's tokens [1 + n_deep, n_tok, n_out]; with a class token its rows
                    [n_row, n_embd] */
  float *merged; /* with a class token: rows that stay, [n_kept, n_embd] */
  ks_dptr mass;  /* f32 [group, n_row]: attention as the device tells it */
  uint64_t *mass_offset; /* [group] */
} ks_vision_zip_state;

/* One view on its way through the tower. */
typedef struct ks_vision_pass {
  ks_vision *vision;
  const ks_vision_input *in;
  const ks_vision_plan *plan;
  const ks_vision_hooks *hooks; /* never NULL */
  ks_vision_embeds *out;
  ks_error *err;
  ks_vision_memory mem;
  ks_vision_rows rows;
  ks_dptr dev;
  float *host;           /* staging: [tile, max(patch, embedding, output)] */
  float *tapped;         /* [n_patch, n_embd] or NULL */
  ks_kv_stream *streams; /* [group] */
  uint32_t *pages;
  uint32_t *segments; /* [windows of a tile + 1] */
  ks_vision_zip_state zip;
  uint32_t view;
  uint32_t n_done, n_step; /* steps of all blocks of all views, for progress */
  bool is_dry; /* steps are recorded and dropped: no host staging, no memory behind dev */
} ks_vision_pass;

/* Rows first .. first + n - 1 of tile i as f32 in device memory: in place, or taken out of x, and
 * put back afterwards.  Both record. */
KS_CHECK ks_status ks_vision_pass_take(ks_vision_pass *p, uint32_t first, uint32_t n, ks_dptr *out);
KS_CHECK ks_status ks_vision_pass_put(ks_vision_pass *p, uint32_t first, uint32_t n);
/* Starts a step; ends it when st is KS_OK, else forgets it and puts a text into err. */
KS_CHECK ks_status ks_vision_pass_begin(ks_vision_pass *p);
KS_CHECK ks_status ks_vision_pass_end(ks_vision_pass *p, ks_status st);
/* out = norm(x) over rows of n_col, recorded. */
KS_CHECK ks_status ks_vision_pass_norm(ks_vision_pass *p, const ks_vision_norm *norm, bool is_rms,
                                       ks_dptr x, ks_dptr out, uint32_t n_row, uint32_t n_col);
/* y = act(w x + bias), or y += w x + bias; recorded. */
KS_CHECK ks_status ks_vision_pass_linear(ks_vision_pass *p, const ks_weight *w, ks_dptr bias,
                                         ks_dptr x, ks_dptr y, uint32_t n_row, ks_epilogue epilogue,
                                         ks_act act);

/* Patches become rows with their positions. */
KS_CHECK ks_status ks_vision_pass_embed(ks_vision_pass *p);
/* Block number layer, all rows. */
KS_CHECK ks_status ks_vision_pass_block(ks_vision_pass *p, uint32_t layer);
/* Steps of the backend that it takes, each of which is told as progress. */
uint32_t ks_vision_pass_count_steps(const ks_vision_pass *p, uint32_t layer);
/* Tokens of the view into out->data; deepstack chunk number i after its block. */
KS_CHECK ks_status ks_vision_pass_project(ks_vision_pass *p);
KS_CHECK ks_status ks_vision_pass_deep(ks_vision_pass *p, uint32_t i);
/* vision-zip.c: bytes beside those of ks_vision_memory, 0 where every token stays. */
uint64_t ks_vision_zip_count_bytes(const ks_vision *vision, const ks_vision_plan *plan,
                                   uint32_t group);
KS_CHECK ks_status ks_vision_zip_begin(ks_vision_pass *p);
void ks_vision_zip_done(ks_vision_pass *p);
void ks_vision_zip_begin_view(ks_vision_pass *p);
bool ks_vision_zip_wants(const ks_vision_pass *p, uint32_t layer);
/* After the attention of a tile whose rows see each other: q and k lie in work, the attention
 * received in mass. */
KS_CHECK ks_status ks_vision_zip_note_tile(ks_vision_pass *p, uint32_t first, uint32_t n);
/* A group of heads over all rows: its keys of a tile, its attention from a tile's queries. */
KS_CHECK ks_status ks_vision_zip_note_keys(ks_vision_pass *p, uint32_t first, uint32_t n);
KS_CHECK ks_status ks_vision_zip_note_mass(ks_vision_pass *p);
/* The rows at x become those that stay, class token first. */
KS_CHECK ks_status ks_vision_zip_merge_rows(ks_vision_pass *p, ks_dptr x);
/* The tokens in whole become those of the view in the result. */
KS_CHECK ks_status ks_vision_zip_merge_tokens(ks_vision_pass *p);

/* Floats of work that projecting a tile of n rows takes. */
size_t ks_vision_count_project(const ks_vision *vision, uint32_t n);

KS_END_DECLS

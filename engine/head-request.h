/* head-request.h - what a pass is asked to tell of its last row instead of all its logits: enough
 * to pick the next token (sampler.h), found while the output matrix is read (graph.h). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/status.h"

KS_BEGIN_DECLS

#define KS_HEAD_MAX 256u /* pairs, and listed ids, of one request */

typedef struct ks_head_request {
  uint32_t k; /* pairs, 1 .. KS_HEAD_MAX */
  uint32_t n_id;
  const int32_t *ids; /* [n_id], not falling: their logits as well */
  int32_t *out_ids;   /* [k] best first, ties by smaller id; -1 where the vocabulary is smaller */
  float *out_logits;  /* [k] */
  float *out_listed;  /* [n_id] */
} ks_head_request;

KS_END_DECLS

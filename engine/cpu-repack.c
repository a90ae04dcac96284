/* cpu-repack.c - a matrix copied into strips for the CPU's kernels, strips shared out by ticket;
 * the output matrix into two halves where its type has that form. Threads: the thread that drives
 * the device calls, all members of its pool copy. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-split-internal.h"

#include <assert.h>
#include <string.h>

typedef struct repack_job {
  const ks_weight *w;
  unsigned char *strips;
  size_t strip_bytes, n_strip;
  uint32_t strip_rows;
  ks_split_form split;
  bool is_split;
  uint32_t ticket;
} repack_job;

/* True where a matrix is split rather than packed. */
static bool
find_split(const ks_cpu_ctx *ctx, const ks_weight *w, ks_split_form *out)
{
  return w->is_output && ctx->packed->join != NULL &&
         ks_split_get_form(w, ctx->packed->strip_rows, out);
}

size_t
ks_cpu_repack_bytes(const ks_cpu_ctx *ctx, const ks_weight *w)
{
  const uint32_t strip_rows = ctx->packed->strip_rows;
  const size_t n_strip = ((size_t)w->n_out + strip_rows - 1) / strip_rows;
  ks_split_form split;
  size_t n_bytes;

  if (find_split(ctx, w, &split))
    return split.n_bytes;
  if (ks_packed_get_format(w->dtype).row_bytes == 0 ||
      !ks_mul_size(n_strip, ks_packed_strip_bytes(w->dtype, w->n_in, strip_rows), &n_bytes))
    return 0;
  return n_bytes;
}

static void
repack_strips(void *user, uint32_t member, uint32_t n_member)
{
  repack_job *job = user;
  const ks_weight *w = job->w;
  const unsigned char *rows = ks_cpu_ptr(w->data);

  (void)member;
  (void)n_member;
  for (;;) {
    size_t s = __atomic_fetch_add(&job->ticket, 1, __ATOMIC_RELAXED);
    size_t row = s * job->strip_rows, n_row;

    if (s >= job->n_strip)
      return;
    if (job->is_split) {
      ks_split_fill_strip(&job->split, w, s, job->strips);
      continue;
    }
    n_row = w->n_out - row < job->strip_rows ? w->n_out - row : job->strip_rows;
    ks_packed_fill_strip(w->dtype, rows + row * w->row_bytes, w->row_bytes, n_row, 0, w->n_in,
                         job->strip_rows, job->strips + s * job->strip_bytes);
  }
}

void
ks_cpu_weight_repack(const ks_cpu_ctx *ctx, ks_weight *w, ks_dptr dst)
{
  const uint32_t strip_rows = ctx->packed->strip_rows;
  repack_job job = {.w = w,
                    .strips = ks_cpu_ptr(dst),
                    .strip_bytes = ks_packed_strip_bytes(w->dtype, w->n_in, strip_rows),
                    .n_strip = ((size_t)w->n_out + strip_rows - 1) / strip_rows,
                    .strip_rows = strip_rows};

  assert(dst % 64 == 0);
  job.is_split = find_split(ctx, w, &job.split);
  if (job.is_split)
    ks_split_fill_groups(&job.split, w, job.strips);
  ks_threads_run(ctx->threads, repack_strips, &job);
  if (job.is_split) {
    memset(job.strips + job.split.choice_at, 0, sizeof(ks_split_columns));
    w->split = dst;
  } else
    w->packed = dst;
}

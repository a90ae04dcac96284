/* vision-memory.c - what one picture's pass takes, and how exactly its rows are kept.
 * Everything beside the residual stream is a tile of rows, or the keys and values of some heads.
 * Blocks that see the whole picture need those of every row at once; with all heads in memory the
 * residual stream can be changed tile by tile, with fewer a plane keeps what attention gave until
 * the last group is through.  From the most exact way down, the first one under the limit is taken.
 * Source: docs/adr/0017-vision-scratch.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/kv-pool.h"
#include "engine/vision-internal.h"

#define ALIGN 64u
#define PAGE_ENTRIES 256u
#define MAX_ROWS (1u << 26)

/* In what types the three large planes are kept. */
typedef struct way {
  ks_dtype x, o, kv;
} way;

/* Attention before its output matrix is what fast mode rounds to 8 bits anyway. */
static const way ways[] = {
    {KS_DTYPE_F32, KS_DTYPE_F32, KS_DTYPE_F32},
    {KS_DTYPE_F32, KS_DTYPE_Q8_0, KS_DTYPE_F16},
    {KS_DTYPE_F16, KS_DTYPE_Q8_0, KS_DTYPE_F16},
};

#define N_WAY (sizeof ways / sizeof ways[0])

/* What a way rounds: nothing, or beside its stream and keys attention in one of two types. */
enum { KEEPS_NO_O, KEEPS_O_Q8, KEEPS_O_F16, N_KEEP };
_Static_assert(KS_VISION_N_ROUNDING == 1 + (N_WAY - 1) * N_KEEP, "one number for each rounding");

static uint32_t
get_rounding(const ks_vision_memory *m, size_t way_index, uint32_t n_head)
{
  const uint32_t keep = m->group == n_head            ? KEEPS_NO_O
                        : m->o_dtype == KS_DTYPE_Q8_0 ? KEEPS_O_Q8
                                                      : KEEPS_O_F16;

  return way_index == 0 ? 0 : 1 + ((uint32_t)way_index - 1) * N_KEEP + keep;
}

static bool
add_plane(size_t *at, size_t *out, size_t n, size_t n_bytes)
{
  size_t bytes;

  *out = *at;
  return ks_mul_size(n, n_bytes, &bytes) && ks_add_size(bytes, ALIGN - 1, &bytes) &&
         ks_add_size(*at, bytes / ALIGN * ALIGN, at);
}

static size_t
larger(size_t a, size_t b)
{
  return a > b ? a : b;
}

/* Bytes of work: attention of a tile, feed-forward of a part of it, patches, projector. */
static bool
add_work(ks_vision_memory *m, size_t *at, const ks_vision *v, uint32_t tile)
{
  const ks_vision_shape *s = &v->shape;
  const size_t patch = (size_t)3 * s->prep.patch * s->prep.patch;
  const size_t part = tile < v->tile_rows ? tile : v->tile_rows;
  size_t plane, end = *at, floats;

  m->work = *at;
  if (!ks_mul_size(tile, s->n_embd, &plane) || !add_plane(&end, &m->q, plane, sizeof(float)) ||
      !add_plane(&end, &m->k, plane, sizeof(float)) ||
      !add_plane(&end, &m->v, plane, sizeof(float)) ||
      !add_plane(&end, &m->att, plane, sizeof(float)))
    return false;
  floats = larger(part * s->n_ff, larger(tile * patch, ks_vision_count_project(v, tile)));
  if (!add_plane(at, &m->work, floats, sizeof(float)))
    return false;
  *at = larger(*at, end);
  return true;
}

/* Planes that only pictures of several tiles need. */
static bool
add_groups(ks_vision_memory *m, size_t *at, const ks_vision *v, size_t n_row)
{
  const uint32_t head_dim = v->shape.n_embd / v->shape.n_head;
  size_t pages;

  m->layout = (ks_kv_layout){.n_layer = 1,
                             .n_kv_head = m->group,
                             .k_dim = head_dim,
                             .v_dim = head_dim,
                             .kv_dtype = m->kv_dtype,
                             .page_entries = PAGE_ENTRIES};
  m->n_page = (uint32_t)((n_row + PAGE_ENTRIES - 1) / PAGE_ENTRIES);
  return ks_kv_layout_init(&m->layout, NULL) == KS_OK && ks_mul_size(m->n_page, m->group, &pages) &&
         add_plane(at, &m->kv, pages, m->layout.page_bytes) &&
         add_plane(at, &m->o, m->group < v->shape.n_head ? n_row : 0, m->o_row_bytes);
}

/* Lays everything out for a way and a number of heads; false when sizes overflow. */
static bool
lay_out(ks_vision_memory *m, const ks_vision *v, size_t n_row, uint32_t tile, bool grouped)
{
  const size_t n_embd = v->shape.n_embd;
  size_t d = 0;

  return ks_dtype_row_bytes(m->x_dtype, n_embd, &m->x_row_bytes) &&
         ks_dtype_row_bytes(m->o_dtype, n_embd, &m->o_row_bytes) &&
         add_plane(&d, &m->x, n_row, m->x_row_bytes) &&
         add_plane(&d, &m->x_tile, m->x_dtype != KS_DTYPE_F32 ? tile : 0, n_embd * sizeof(float)) &&
         add_plane(&d, &m->h, tile, n_embd * sizeof(float)) && add_work(m, &d, v, tile) &&
         add_plane(&d, &m->pos, n_row, 3 * sizeof(int32_t)) &&
         add_plane(&d, &m->first, tile, sizeof(uint32_t)) &&
         add_plane(&d, &m->last, tile, sizeof(uint32_t)) &&
         add_plane(&d, &m->ids, tile, sizeof(uint32_t)) &&
         (!grouped || add_groups(m, &d, v, n_row)) && ((m->device_bytes = d), true);
}

/* Staging of patches, positions and tokens, and the page lists. */
static bool
count_host(ks_vision_memory *m, const ks_vision *v, uint32_t tile)
{
  const ks_vision_shape *s = &v->shape;
  const size_t patch = (size_t)3 * s->prep.patch * s->prep.patch;
  size_t floats, at = 0, unused;

  return ks_mul_size(tile, larger(larger(patch, s->n_embd), s->n_out), &floats) &&
         add_plane(&at, &unused, floats, sizeof(float)) &&
         add_plane(&at, &unused, m->group, sizeof(ks_kv_stream)) &&
         add_plane(&at, &unused, (size_t)m->group * m->n_page, sizeof(uint32_t)) &&
         ((m->host_bytes = at), true);
}

/* Columns of a group are whole blocks of the type in which attention is kept. */
static ks_dtype
choose_o(ks_dtype wanted, const ks_vision *v, uint32_t group)
{
  const uint32_t head_dim = v->shape.n_embd / v->shape.n_head;

  if (wanted == KS_DTYPE_Q8_0 && (group * head_dim % 32 != 0 || v->shape.n_embd % 32 != 0))
    return KS_DTYPE_F16;
  return wanted;
}

ks_status
ks_vision_memory_init(ks_vision_memory *m, const ks_vision *v, const ks_vision_plan *plan,
                      ks_error *err)
{
  const uint64_t merge = v->shape.prep.merge;
  const uint64_t n_row =
      (uint64_t)plan->grid_rows * plan->grid_cols * merge * merge + (v->has_class ? 1 : 0);
  const bool grouped = n_row <= MAX_ROWS && ks_vision_rows_count_tile(v, plan) < n_row;
  ks_vision_memory best = {0};

  if (n_row > MAX_ROWS)
    return ks_fail(err, KS_ERR_NOMEM, "a picture of %llu patches is too large",
                   (unsigned long long)n_row);
  for (size_t i = 0; i < N_WAY; i++)
    for (uint32_t group = v->shape.n_head; group >= 1; group--) {
      ks_vision_memory t = {.x_dtype = ways[i].x, .kv_dtype = ways[i].kv, .group = group};

      t.o_dtype = choose_o(ways[i].o, v, group);
      t.rounding = get_rounding(&t, i, v->shape.n_head);
      if (v->shape.n_head % group != 0 ||
          !lay_out(&t, v, n_row, ks_vision_rows_count_tile(v, plan), grouped) ||
          !count_host(&t, v, ks_vision_rows_count_tile(v, plan)))
        continue;
      if (best.device_bytes == 0 || t.device_bytes < best.device_bytes)
        best = t;
      if (!grouped || t.device_bytes + t.host_bytes <= v->scratch_limit) {
        *m = t;
        return KS_OK;
      }
    }
  if (best.device_bytes == 0)
    return ks_fail(err, KS_ERR_NOMEM, "a picture of %llu patches is too large",
                   (unsigned long long)n_row);
  *m = best;
  return KS_OK;
}

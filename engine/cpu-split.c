/* cpu-split.c - q8_0 rows taken apart into halves and joined again.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-split-internal.h"

#include "engine/quant.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define Q4_BLOCK_BYTES 18u
#define Q8_BLOCK_BYTES 34u
#define SAMPLE_ROWS 1024u

static bool
round_up(size_t n, size_t *out)
{
  if (!ks_add_size(n, 63, out))
    return false;
  *out -= *out % 64;
  return true;
}

/* Room for n strips of n_bytes each from *at on; *at moves behind it. */
static bool
take(size_t *at, size_t n, size_t n_bytes)
{
  size_t size;

  return ks_mul_size(n, n_bytes, &size) && ks_add_size(*at, size, &size) && round_up(size, at);
}

bool
ks_split_get_form(const ks_weight *w, uint32_t strip_rows, ks_split_form *out)
{
  ks_split_form f = {.strip_rows = strip_rows, .n_in = w->n_in, .n_row = w->n_out};
  size_t at = 0;

  if (w->dtype != KS_DTYPE_Q8_0)
    return false;
  f.n_strip = ((size_t)w->n_out + strip_rows - 1) / strip_rows;
  f.high_bytes = ks_packed_strip_bytes(KS_DTYPE_Q4_0, w->n_in, strip_rows);
  f.low_bytes = (size_t)w->n_in / 2 * strip_rows;
  f.whole_bytes = ks_packed_strip_bytes(KS_DTYPE_Q8_0, w->n_in, strip_rows);
  f.column_bytes = ks_packed_strip_bytes(KS_DTYPE_Q8_0, KS_SPLIT_COLUMNS, strip_rows);
  if (!take(&at, f.n_strip, f.high_bytes))
    return false;
  f.low_at = at;
  if (!take(&at, f.n_strip, f.low_bytes))
    return false;
  f.groups_at = at;
  if (!take(&at, w->n_in / 32, sizeof(float)))
    return false;
  f.spread_at = at;
  if (!take(&at, f.n_strip * strip_rows, sizeof(float)))
    return false;
  f.choice_at = at;
  if (!take(&at, 1, sizeof(ks_split_columns)))
    return false;
  f.columns_at = at;
  if (!take(&at, f.n_strip, f.column_bytes))
    return false;
  f.n_bytes = at;
  *out = f;
  return true;
}

static float
read_scale(const unsigned char *block)
{
  return ks_f16_to_f32((uint16_t)(block[0] | block[1] << 8));
}

void
ks_split_fill_groups(const ks_split_form *form, const ks_weight *w, unsigned char *split)
{
  const size_t step = w->n_out / SAMPLE_ROWS + 1;
  float *groups = (float *)(void *)(split + form->groups_at);

  for (size_t g = 0; g < form->n_in / 32; g++) {
    double sum = 0, n = 0;

    for (size_t row = 0; row < w->n_out; row += step, n++) {
      const double d = read_scale((const unsigned char *)ks_cpu_ptr(w->data) + row * w->row_bytes +
                                  g * Q8_BLOCK_BYTES);

      sum += isfinite(d) ? d * d : 0;
    }
    groups[g] = sum > 0 ? (float)sqrt(sum / n) : 1;
  }
}

/* One block of q8_0 to two of Q4_0, of the high and of the low halves. */
static void
split_block(const unsigned char *block, unsigned char *high, unsigned char *low)
{
  const unsigned char *code = block + 2;

  memcpy(high, block, 2);
  memcpy(low, block, 2);
  for (size_t i = 0; i < 16; i++) {
    /* the sign turned over makes 16 n + low of a code */
    const unsigned a = code[i] ^ 0x80u, b = code[16 + i] ^ 0x80u;

    high[2 + i] = (unsigned char)(a >> 4 | (b & 0xf0u));
    low[2 + i] = (unsigned char)((a & 15u) | (b & 15u) << 4);
  }
}

void
ks_split_fill_strip(const ks_split_form *form, const ks_weight *w, size_t s, unsigned char *split)
{
  const size_t n_strip_row = form->strip_rows, left = w->n_out - s * n_strip_row;
  const size_t n_row = left < n_strip_row ? left : n_strip_row;
  const unsigned char *rows =
      (const unsigned char *)ks_cpu_ptr(w->data) + s * n_strip_row * w->row_bytes;
  unsigned char *high_to = split + s * form->high_bytes;
  unsigned char *low_to = split + form->low_at + s * form->low_bytes;
  const float *groups = (const float *)(const void *)(split + form->groups_at);
  float *spread = (float *)(void *)(split + form->spread_at) + s * n_strip_row;
  float sums[KS_PACKED_MAX_ROWS] = {0};

  for (size_t g = 0; g < form->n_in / 32; g++) {
    unsigned char high[KS_PACKED_MAX_ROWS * Q4_BLOCK_BYTES], low[sizeof high];
    unsigned char low_strip[KS_PACKED_MAX_ROWS * Q4_BLOCK_BYTES];

    for (size_t r = 0; r < n_row; r++) {
      const unsigned char *block = rows + r * w->row_bytes + g * Q8_BLOCK_BYTES;
      const float d = read_scale(block) / groups[g];

      split_block(block, high + r * Q4_BLOCK_BYTES, low + r * Q4_BLOCK_BYTES);
      sums[r] += d * d;
    }
    ks_packed_fill_strip(KS_DTYPE_Q4_0, high, Q4_BLOCK_BYTES, n_row, 0, 32, form->strip_rows,
                         high_to + g * Q4_BLOCK_BYTES * n_strip_row);
    ks_packed_fill_strip(KS_DTYPE_Q4_0, low, Q4_BLOCK_BYTES, n_row, 0, 32, form->strip_rows,
                         low_strip);
    memcpy(low_to + 16 * g * n_strip_row, low_strip + 2 * n_strip_row, 16 * n_strip_row);
  }
  for (size_t r = 0; r < n_strip_row; r++)
    spread[r] = sqrtf(sums[r] / (float)(form->n_in / 32));
}

void
ks_split_join_strip(const ks_cpu_packed_fns *fns, const ks_split_form *form,
                    const unsigned char *split, size_t s, unsigned char *out)
{
  const size_t n_row = form->strip_rows;
  const unsigned char *high = split + s * form->high_bytes;
  const unsigned char *low = split + form->low_at + s * form->low_bytes;

  for (size_t g = 0; g < form->n_in / 32; g++) {
    memcpy(out, high, 2 * n_row);
    fns->join(high + 2 * n_row, low, out + 2 * n_row);
    high += Q4_BLOCK_BYTES * n_row;
    low += 16 * n_row;
    out += Q8_BLOCK_BYTES * n_row;
  }
}

/* A row's scale, and where its words of the two halves begin: 4 of 4 bytes, 4 * strip_rows apart.
 */
typedef struct group_at {
  float d;
  const unsigned char *high, *low;
} group_at;

static group_at
find_group(const ks_split_form *form, const unsigned char *split, size_t row, size_t g)
{
  const size_t n_row = form->strip_rows, s = row / n_row, r = row % n_row;
  const unsigned char *block = split + s * form->high_bytes + g * Q4_BLOCK_BYTES * n_row;
  const unsigned char *d = block + 2 * r;

  return (group_at){.d = read_scale(d),
                    .high = block + 2 * n_row + 4 * r,
                    .low = split + form->low_at + s * form->low_bytes + 16 * g * n_row + 4 * r};
}

/* n and low of element i (0 .. 31) of a group. */
static unsigned
read_nibble(const unsigned char *words, size_t n_row, size_t i)
{
  const unsigned char byte = words[i % 16 / 4 * 4 * n_row + i % 4];

  return i < 16 ? byte & 15u : (unsigned)byte >> 4;
}

void
ks_split_read_row(const ks_split_form *form, const unsigned char *split, size_t row, float *out)
{
  const size_t n_row = form->strip_rows;

  for (size_t g = 0; g < form->n_in / 32; g++) {
    const group_at at = find_group(form, split, row, g);

    for (size_t i = 0; i < 32; i++)
      *out++ =
          at.d *
          (float)((int)(16 * read_nibble(at.high, n_row, i) + read_nibble(at.low, n_row, i)) - 128);
  }
}

void
ks_split_fill_columns(const ks_split_form *form, const uint32_t columns[KS_SPLIT_COLUMNS], size_t s,
                      unsigned char *split)
{
  unsigned char blocks[KS_PACKED_MAX_ROWS * Q8_BLOCK_BYTES];
  const size_t row0 = s * form->strip_rows, left = form->n_row - row0;
  const size_t n_row = left < form->strip_rows ? left : form->strip_rows;

  for (size_t r = 0; r < n_row; r++) {
    float rest[KS_SPLIT_COLUMNS]; /* what the low half of an element adds to the middle */

    for (size_t c = 0; c < KS_SPLIT_COLUMNS; c++) {
      const group_at at = find_group(form, split, row0 + r, columns[c] / 32);

      rest[c] =
          at.d * ((float)read_nibble(at.low, form->strip_rows, columns[c] % 32) - KS_SPLIT_MIDDLE);
    }
    if (!ks_quantise_row(KS_DTYPE_Q8_0, rest, blocks + r * Q8_BLOCK_BYTES, KS_SPLIT_COLUMNS))
      assert(!"q8_0 can be written");
  }
  ks_packed_fill_strip(KS_DTYPE_Q8_0, blocks, Q8_BLOCK_BYTES, n_row, 0, KS_SPLIT_COLUMNS,
                       form->strip_rows, split + form->columns_at + s * form->column_bytes);
}

/* cpu-packed.c - the layout of repacked weights: packing a strip, and reading it back plainly.
 * The layout of a type is one line of the table below: its planes in the order in which they stand
 * in a block.  Words W, H, N, S, T and the reasons: docs/adr/0014-packed-weights.md.  Blocks of a
 * file: docs/formats/quant-blocks.md.  Packing moves whole words of four bytes: it has to keep up
 * with the reading of a file.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-packed-internal.h"

#include "engine/quant.h"

#include <assert.h>
#include <string.h>

static const ks_packed_layout layouts[KS_N_DTYPE] = {
    [KS_DTYPE_Q4_0] = {32, 1, 0, 0, 0, 4, 0, 8},   [KS_DTYPE_Q4_1] = {32, 2, 0, 0, 0, 4, 0, 0},
    [KS_DTYPE_Q5_0] = {32, 1, 0, 0, 1, 4, 0, 16},  [KS_DTYPE_Q5_1] = {32, 2, 0, 0, 1, 4, 0, 0},
    [KS_DTYPE_Q8_0] = {32, 1, 0, 0, 0, 0, 8, 0},   [KS_DTYPE_Q2_K] = {256, 2, 16, 2, 0, 0, 0, 0},
    [KS_DTYPE_Q3_K] = {256, 1, 16, 2, 1, 0, 0, 4}, [KS_DTYPE_Q4_K] = {256, 2, 16, 0, 0, 4, 0, 0},
    [KS_DTYPE_Q5_K] = {256, 2, 16, 0, 1, 4, 0, 0}, [KS_DTYPE_Q6_K] = {256, 1, 16, 2, 0, 4, 0, 32},
    [KS_DTYPE_IQ4_NL] = {32, 1, 0, 0, 0, 4, 0, 0}, [KS_DTYPE_IQ4_XS] = {256, 1, 8, 0, 0, 4, 0, 0},
};

static size_t
group_words(const ks_packed_layout *l)
{
  return (size_t)l->n_pair + l->n_high + l->n_nibble + l->n_byte;
}

const ks_packed_layout *
ks_packed_get_layout(ks_dtype dtype)
{
  return &layouts[dtype];
}

ks_packed_format
ks_packed_get_format(ks_dtype dtype)
{
  const ks_packed_layout *l = &layouts[dtype];
  ks_packed_format format = {.block_elems = l->block_elems};

  format.row_bytes = (uint32_t)(2u * l->n_half + l->n_scale +
                                l->block_elems / KS_PACKED_GROUP * 4 * group_words(l));
  return format;
}

size_t
ks_packed_strip_bytes(ks_dtype dtype, size_t n_in, uint32_t strip_rows)
{
  ks_packed_format format = ks_packed_get_format(dtype);

  assert(format.row_bytes > 0 && n_in % format.block_elems == 0);
  return n_in / format.block_elems * format.row_bytes * strip_rows;
}

/* --- packing --- */

/* Where the next plane of a block begins, and the row that is written. */
typedef struct cursor {
  unsigned char *plane;
  size_t row, n_row;
} cursor;

static inline uint32_t
get_u32(const uint8_t *p)
{
  return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void
put_halves(cursor *c, const uint8_t *src, unsigned n)
{
  for (unsigned i = 0; i < n; i++, c->plane += 2 * c->n_row)
    memcpy(c->plane + 2 * c->row, src + 2 * i, 2);
}

static inline void
put_byte(cursor *c, unsigned value)
{
  c->plane[c->row] = (unsigned char)value;
  c->plane += c->n_row;
}

static inline void
put_word(cursor *c, uint32_t word)
{
  unsigned char *p = c->plane + 4 * c->row;

  p[0] = (unsigned char)word;
  p[1] = (unsigned char)(word >> 8);
  p[2] = (unsigned char)(word >> 16);
  p[3] = (unsigned char)(word >> 24);
  c->plane += 4 * c->n_row;
}

static inline void
put_words(cursor *c, const uint8_t *src, unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    put_word(c, get_u32(src + 4 * i));
}

/* N from 32 bytes that each hold a code in the four bits from shift on. */
static inline void
put_nibbles(cursor *c, const uint8_t *src, unsigned shift)
{
  for (unsigned i = 0; i < 4; i++) {
    uint32_t low = get_u32(src + 4 * i) >> shift & 0x0f0f0f0fu;
    uint32_t high = get_u32(src + 16 + 4 * i) >> shift & 0x0f0f0f0fu;

    put_word(c, low | high << 4);
  }
}

/* T from 32 bytes that each hold a code in the two bits from shift on. */
static inline void
put_pairs(cursor *c, const uint8_t *src, unsigned shift)
{
  for (unsigned i = 0; i < 2; i++) {
    uint32_t word = 0;

    for (unsigned s = 0; s < 4; s++)
      word |= (get_u32(src + 16 * i + 4 * s) >> shift & 0x03030303u) << (2 * s);
    put_word(c, word);
  }
}

/* H from bit shift of 32 bytes. */
static inline void
put_high(cursor *c, const uint8_t *src, unsigned shift)
{
  uint32_t word = 0;

  for (unsigned j = 0; j < 8; j++)
    word |= (get_u32(src + 4 * j) >> shift & 0x01010101u) << j;
  put_word(c, word);
}

/* H from one word whose bit e belongs to element e. */
static inline void
put_high_word(cursor *c, uint32_t bits)
{
  uint32_t word = 0;

  for (unsigned j = 0; j < 8; j++) /* four bits to the lowest bit of four bytes */
    word |= ((bits >> (4 * j) & 15u) * 0x00204081u & 0x01010101u) << j;
  put_word(c, word);
}

static void
pack_q4_0(const uint8_t *b, cursor *c)
{
  put_halves(c, b, 1);
  put_words(c, b + 2, 4);
}

static void
pack_q4_1(const uint8_t *b, cursor *c)
{
  put_halves(c, b, 2);
  put_words(c, b + 4, 4);
}

static void
pack_q5_0(const uint8_t *b, cursor *c)
{
  put_halves(c, b, 1);
  put_high_word(c, get_u32(b + 2));
  put_words(c, b + 6, 4);
}

static void
pack_q5_1(const uint8_t *b, cursor *c)
{
  put_halves(c, b, 2);
  put_high_word(c, get_u32(b + 4));
  put_words(c, b + 8, 4);
}

static void
pack_q8_0(const uint8_t *b, cursor *c)
{
  put_halves(c, b, 1);
  put_words(c, b + 2, 8);
}

static void
pack_q2_k(const uint8_t *b, cursor *c)
{
  put_halves(c, b + 80, 2);
  for (unsigned i = 0; i < 16; i++)
    put_byte(c, b[i]);
  for (unsigned g = 0; g < 8; g++)
    put_pairs(c, b + 16 + 32 * (g / 4), 2 * (g % 4));
}

static void
pack_q3_k(const uint8_t *b, cursor *c)
{
  const uint8_t *packed = b + 96;

  put_halves(c, b + 108, 1);
  for (unsigned i = 0; i < 16; i++) {
    unsigned low = i < 8 ? packed[i] & 15u : (unsigned)packed[i - 8] >> 4;
    unsigned high = (unsigned)packed[8 + i % 4] >> (2 * (i / 4)) & 3u;

    put_byte(c, (low | high << 4) - 32u);
  }
  for (unsigned g = 0; g < 8; g++) {
    put_pairs(c, b + 32 + 32 * (g / 4), 2 * (g % 4));
    put_high(c, b, g);
  }
}

/* Scales and minima of Q4_K and Q5_K: six bits each, in twelve bytes. */
static inline void
put_k_scales(cursor *c, const uint8_t *p)
{
  for (unsigned g = 0; g < 4; g++)
    put_byte(c, p[g] & 63u);
  for (unsigned g = 0; g < 4; g++)
    put_byte(c, (p[8 + g] & 15u) | ((unsigned)p[g] >> 6) << 4);
  for (unsigned g = 0; g < 4; g++)
    put_byte(c, p[4 + g] & 63u);
  for (unsigned g = 0; g < 4; g++)
    put_byte(c, (unsigned)p[8 + g] >> 4 | ((unsigned)p[4 + g] >> 6) << 4);
}

static void
pack_q4_k(const uint8_t *b, cursor *c)
{
  put_halves(c, b, 2);
  put_k_scales(c, b + 4);
  for (unsigned g = 0; g < 8; g++)
    put_nibbles(c, b + 16 + 32 * (g / 2), 4 * (g % 2));
}

static void
pack_q5_k(const uint8_t *b, cursor *c)
{
  put_halves(c, b, 2);
  put_k_scales(c, b + 4);
  for (unsigned g = 0; g < 8; g++) {
    put_high(c, b + 16, g);
    put_nibbles(c, b + 48 + 32 * (g / 2), 4 * (g % 2));
  }
}

static void
pack_q6_k(const uint8_t *b, cursor *c)
{
  put_halves(c, b + 208, 1);
  for (unsigned i = 0; i < 16; i++)
    put_byte(c, b[192 + i]);
  for (unsigned g = 0; g < 8; g++) {
    put_pairs(c, b + 128 + 32 * (g / 4), 2 * (g % 4));
    put_nibbles(c, b + 64 * (g / 4) + 32 * (g % 2), 4 * (g % 4 / 2));
  }
}

static void
pack_iq4_xs(const uint8_t *b, cursor *c)
{
  unsigned high = (unsigned)(b[2] | b[3] << 8);

  put_halves(c, b, 1);
  for (unsigned g = 0; g < 8; g++) {
    unsigned low = (unsigned)b[4 + g / 2] >> (4 * (g % 2)) & 15u;

    put_byte(c, (low | (high >> (2 * g) & 3u) << 4) - 32u);
  }
  for (unsigned g = 0; g < 8; g++)
    put_words(c, b + 8 + 16 * g, 4);
}

typedef void (*pack_fn)(const uint8_t *block, cursor *c);

static const pack_fn packers[KS_N_DTYPE] = {
    [KS_DTYPE_Q4_0] = pack_q4_0, [KS_DTYPE_Q4_1] = pack_q4_1,   [KS_DTYPE_Q5_0] = pack_q5_0,
    [KS_DTYPE_Q5_1] = pack_q5_1, [KS_DTYPE_Q8_0] = pack_q8_0,   [KS_DTYPE_Q2_K] = pack_q2_k,
    [KS_DTYPE_Q3_K] = pack_q3_k, [KS_DTYPE_Q4_K] = pack_q4_k,   [KS_DTYPE_Q5_K] = pack_q5_k,
    [KS_DTYPE_Q6_K] = pack_q6_k, [KS_DTYPE_IQ4_NL] = pack_q4_0, [KS_DTYPE_IQ4_XS] = pack_iq4_xs,
};

void
ks_packed_fill_strip(ks_dtype dtype, const unsigned char *rows, size_t row_bytes, size_t n_row,
                     size_t k, size_t n_k, uint32_t strip_rows, unsigned char *strip)
{
  const size_t block_elems = layouts[dtype].block_elems;
  const size_t block_bytes = ks_dtype_get_info(dtype)->block_bytes;
  const size_t strip_block = ks_packed_get_format(dtype).row_bytes * (size_t)strip_rows;
  const pack_fn pack = packers[dtype];
  const unsigned char *block = rows + k / block_elems * block_bytes;

  assert(pack != NULL && n_row >= 1 && n_row <= strip_rows);
  assert(k % block_elems == 0 && n_k % block_elems == 0);
  if (n_row < strip_rows) /* scales of rows that do not exist are 0 */
    memset(strip, 0, n_k / block_elems * strip_block);
  for (size_t i = 0; i < n_k; i += block_elems, block += block_bytes, strip += strip_block)
    for (size_t r = 0; r < n_row; r++) {
      cursor c = {strip, r, strip_rows};

      pack(block + r * row_bytes, &c);
    }
}

/* --- plain reading --- */

static float
read_half(const unsigned char *plane, size_t row)
{
  return ks_f16_to_f32((uint16_t)(plane[2 * row] | plane[2 * row + 1] << 8));
}

/* Code of element 4 * j + b of a row from the words of its group. */
static int
read_code(ks_dtype dtype, const ks_packed_layout *l, const unsigned char *words, size_t row,
          size_t n_row, unsigned j, unsigned b)
{
  const size_t plane = 4 * n_row;
  const unsigned char *pairs = words + 4 * row + b, *high = pairs + l->n_pair * plane;
  const unsigned char *nibbles = high + l->n_high * plane, *bytes = nibbles + l->n_nibble * plane;
  unsigned code = 0, upper = 0;

  if (l->n_byte > 0)
    return (int8_t)bytes[j * plane];
  if (l->n_pair > 0)
    upper = (unsigned)pairs[j / 4 * plane] >> (2 * (j % 4)) & 3u;
  if (l->n_nibble > 0)
    code = (unsigned)nibbles[j % 4 * plane] >> (4 * (j / 4)) & 15u;
  else {
    code = upper;
    upper = 0;
  }
  if (l->n_high > 0)
    upper = (unsigned)high[0] >> j & 1u;
  if (dtype == KS_DTYPE_IQ4_NL || dtype == KS_DTYPE_IQ4_XS)
    return ks_iq4_values[code];
  return (int)(code | upper << (l->n_nibble > 0 ? 4 : 2)) - l->zero;
}

/* Scale and offset of half h of group g of a block. */
static void
read_scale(ks_dtype dtype, const unsigned char *block, size_t g, size_t h, size_t row, size_t n_row,
           float *d, float *m)
{
  const ks_packed_layout *l = &layouts[dtype];
  const unsigned char *scales = block + 2 * l->n_half * n_row + row;
  unsigned of_half;

  *d = read_half(block, row);
  *m = l->n_half > 1 ? read_half(block + 2 * n_row, row) : 0;
  switch (dtype) {
  case KS_DTYPE_Q4_K:
  case KS_DTYPE_Q5_K:
    *d *= (float)scales[g * n_row];
    *m *= -(float)scales[(8 + g) * n_row];
    break;
  case KS_DTYPE_Q2_K:
    of_half = scales[(2 * g + h) * n_row];
    *d *= (float)(of_half & 15u);
    *m *= -(float)(of_half >> 4);
    break;
  case KS_DTYPE_Q3_K:
  case KS_DTYPE_Q6_K:
    *d *= (float)(int8_t)scales[(2 * g + h) * n_row];
    break;
  case KS_DTYPE_IQ4_XS:
    *d *= (float)(int8_t)scales[g * n_row];
    break;
  default:
    break;
  }
}

/* The block of group g of a strip, and in *out_words where the group's codes begin. */
static const unsigned char *
find_group(ks_dtype dtype, const unsigned char *strip, size_t g, size_t n_row,
           const unsigned char **out_words)
{
  const ks_packed_layout *l = &layouts[dtype];
  const size_t n_group = l->block_elems / KS_PACKED_GROUP;
  const unsigned char *block = strip + g / n_group * ks_packed_get_format(dtype).row_bytes * n_row;

  *out_words = block + (2u * l->n_half + l->n_scale + g % n_group * 4 * group_words(l)) * n_row;
  return block;
}

void
ks_packed_read_row(ks_dtype dtype, const unsigned char *strips, size_t strip_bytes,
                   uint32_t strip_rows, size_t row, float *out, size_t n_in)
{
  const ks_packed_layout *l = &layouts[dtype];
  const unsigned char *strip = strips + row / strip_rows * strip_bytes;
  const size_t n_row = strip_rows, r = row % strip_rows;
  const size_t n_group = l->block_elems / KS_PACKED_GROUP;

  for (size_t g = 0; g < n_in / KS_PACKED_GROUP; g++) {
    const unsigned char *words, *block = find_group(dtype, strip, g, n_row, &words);

    for (unsigned e = 0; e < KS_PACKED_GROUP; e += 16) {
      float d, m;

      read_scale(dtype, block, g % n_group, e / 16, r, n_row, &d, &m);
      for (unsigned i = e; i < e + 16; i++)
        *out++ = d * (float)read_code(dtype, l, words, r, n_row, i / 4, i % 4) + m;
    }
  }
}

void
ks_packed_read_group(ks_dtype dtype, const unsigned char *strip, size_t g, uint32_t strip_rows,
                     ks_packed_group *out)
{
  const ks_packed_layout *l = &layouts[dtype];
  const size_t n_group = l->block_elems / KS_PACKED_GROUP, n_row = strip_rows;
  const unsigned char *words, *block = find_group(dtype, strip, g, n_row, &words);

  for (size_t r = 0; r < n_row; r++) {
    for (unsigned e = 0; e < KS_PACKED_GROUP; e++)
      out->code[e][r] = (int16_t)read_code(dtype, l, words, r, n_row, e / 4, e % 4);
    for (size_t h = 0; h < 2; h++)
      read_scale(dtype, block, g % n_group, h, r, n_row, &out->d[h][r], &out->m[h][r]);
  }
}

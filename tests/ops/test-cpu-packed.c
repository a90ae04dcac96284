/* test-cpu-packed.c - repacked weights hold the same values, bit by bit, for every type. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-packed-internal.h"
#include "engine/quant.h"
#include "tests/ks-test.h"

#define MAX_IN 1024
#define MAX_ROWS 16

static const ks_dtype types[] = {KS_DTYPE_Q4_0, KS_DTYPE_Q4_1, KS_DTYPE_Q5_0,   KS_DTYPE_Q5_1,
                                 KS_DTYPE_Q8_0, KS_DTYPE_Q2_K, KS_DTYPE_Q3_K,   KS_DTYPE_Q4_K,
                                 KS_DTYPE_Q5_K, KS_DTYPE_Q6_K, KS_DTYPE_IQ4_NL, KS_DTYPE_IQ4_XS};
#define N_TYPE (sizeof(types) / sizeof(types[0]))

/* Rows of random bytes: every code, every scale, and among the scales infinities and NaN. */
typedef struct rows {
  unsigned char bytes[MAX_ROWS * (MAX_IN / 32 * 34 + 3)];
  size_t row_bytes; /* rows lie some bytes apart, at odd addresses */
} rows;

static void
fill_rows(rows *w, ks_dtype dtype, size_t n_in, uint32_t seed)
{
  size_t row_bytes;

  KS_ASSERT(ks_dtype_row_bytes(dtype, n_in, &row_bytes));
  w->row_bytes = row_bytes + 3;
  for (size_t i = 0; i < sizeof(w->bytes); i++) {
    seed = seed * 1664525u + 1013904223u;
    w->bytes[i] = (unsigned char)(seed >> 24);
  }
}

static bool
is_same(float a, float b)
{
  return a == b || (isnan(a) && isnan(b));
}

/* Whole rows of a strip, read one by one. */
static void
check_rows(ks_dtype dtype, const rows *w, size_t n_row, size_t n_in, uint32_t strip_rows,
           const unsigned char *strip)
{
  float want[MAX_IN], got[MAX_IN];

  for (size_t r = 0; r < n_row; r++) {
    ks_dequantise_row(dtype, w->bytes + r * w->row_bytes, want, n_in);
    /* As row of the second of two strips: the first one, in front, is not read. */
    ks_packed_read_row(dtype, strip - ks_packed_strip_bytes(dtype, n_in, strip_rows),
                       ks_packed_strip_bytes(dtype, n_in, strip_rows), strip_rows, strip_rows + r,
                       got, n_in);
    for (size_t i = 0; i < n_in; i++)
      KS_ASSERT(is_same(got[i], want[i]));
  }
}

/* Groups first_g .. of a strip that was packed from rows against the plain reader of the file. */
static void
check_strip(ks_dtype dtype, const rows *w, size_t n_row, size_t k, size_t n_k, size_t n_in,
            uint32_t strip_rows, const unsigned char *strip)
{
  float want[MAX_IN];
  ks_packed_group group;

  for (size_t r = 0; r < n_row; r++) {
    ks_dequantise_row(dtype, w->bytes + r * w->row_bytes, want, n_in);
    for (size_t g = 0; g < n_k / 32; g++) {
      ks_packed_read_group(dtype, strip, g, strip_rows, &group);
      for (size_t e = 0; e < 32; e++) {
        float got = group.d[e / 16][r] * (float)group.code[e][r] + group.m[e / 16][r];

        if (!is_same(got, want[k + 32 * g + e]))
          KS_FAIL("%s row %zu element %zu: %.9g, want %.9g", ks_dtype_get_info(dtype)->name, r,
                  k + 32 * g + e, (double)got, (double)want[k + 32 * g + e]);
      }
    }
  }
}

/* The whole row, and a piece from its middle, in strips of 8 and of 16, full and ragged: each value
 * comes back as the plain reader of the file has it. */
KS_TEST(cpu_packed, strips_hold_the_values_of_the_file)
{
  static const size_t counts[] = {16, 11, 8, 5, 1};
  static rows w;
  unsigned char *room = malloc(1 << 20), *strip = room + (1 << 19);

  for (size_t i = 0; i < N_TYPE; i++) {
    size_t block = ks_packed_get_format(types[i]).block_elems, n_in = block == 32 ? 320 : MAX_IN;

    fill_rows(&w, types[i], n_in, (uint32_t)i);
    for (uint32_t strip_rows = 8; strip_rows <= 16; strip_rows += 8)
      for (size_t c = 0; c < 5; c++) {
        size_t n_row = counts[c] < strip_rows ? counts[c] : strip_rows;
        size_t n_bytes = ks_packed_strip_bytes(types[i], n_in, strip_rows);

        memset(strip, 0xa5, n_bytes + 1);
        ks_packed_fill_strip(types[i], w.bytes, w.row_bytes, n_row, 0, n_in, strip_rows, strip);
        check_strip(types[i], &w, n_row, 0, n_in, n_in, strip_rows, strip);
        check_rows(types[i], &w, n_row, n_in, strip_rows, strip);
        KS_ASSERT_EQ(strip[n_bytes], 0xa5);
        ks_packed_fill_strip(types[i], w.bytes, w.row_bytes, n_row, block, 2 * block, strip_rows,
                             strip);
        check_strip(types[i], &w, n_row, block, 2 * block, n_in, strip_rows, strip);
      }
  }
  free(room);
}

/* Rows that fill up the last strip are zero whatever lay in the memory before. */
KS_TEST(cpu_packed, missing_rows_are_zero)
{
  static rows w;
  static unsigned char strip[16 * MAX_IN * 2];
  ks_packed_group group;

  for (size_t i = 0; i < N_TYPE; i++) {
    fill_rows(&w, types[i], MAX_IN, (uint32_t)i);
    memset(strip, 0x5a, sizeof(strip));
    ks_packed_fill_strip(types[i], w.bytes, w.row_bytes, 3, 0, MAX_IN, 8, strip);
    for (size_t g = 0; g < MAX_IN / 32; g++) {
      ks_packed_read_group(types[i], strip, g, 8, &group);
      for (size_t r = 3; r < 8; r++)
        for (size_t h = 0; h < 2; h++)
          KS_ASSERT(group.d[h][r] == 0 && group.m[h][r] == 0);
    }
  }
}

/* Bytes of a row: the file's, at most 3 % more for types with super-blocks; others have none. */
KS_TEST(cpu_packed, sizes)
{
  for (uint32_t id = 0; id < KS_N_DTYPE; id++) {
    ks_packed_format format = ks_packed_get_format((ks_dtype)id);
    const ks_dtype_info *info = ks_dtype_get_info(id);

    if (info == NULL || !info->is_quantised) {
      KS_ASSERT_EQ(format.row_bytes, 0);
      continue;
    }
    KS_ASSERT_EQ(format.block_elems, info->block_elems);
    KS_ASSERT_GE(format.row_bytes, info->block_bytes);
    KS_ASSERT_LE((format.row_bytes - info->block_bytes) * 100,
                 info->block_elems > 32 ? 4 * info->block_bytes : 0);
    KS_ASSERT_EQ(ks_packed_strip_bytes((ks_dtype)id, 512, 16),
                 512 / info->block_elems * 16 * format.row_bytes);
  }
}

/* One block counted by hand: word 0 of row r holds elements 0 to 3 low, 16 to 19 high. */
KS_TEST(cpu_packed, block_by_hand)
{
  unsigned char row[18] = {0x34, 0x12}, strip[18 * 8];

  for (unsigned j = 0; j < 16; j++)
    row[2 + j] = (unsigned char)(0xa0 + j);
  memset(strip, 0xff, sizeof(strip));
  ks_packed_fill_strip(KS_DTYPE_Q4_0, row, 18, 1, 0, 32, 8, strip);
  KS_ASSERT(strip[0] == 0x34 && strip[1] == 0x12 && strip[2] == 0);
  for (unsigned i = 0; i < 4; i++)
    for (unsigned b = 0; b < 4; b++) {
      KS_ASSERT_EQ(strip[16 + 32 * i + b], 0xa0 + 4 * i + b);
      KS_ASSERT_EQ(strip[16 + 32 * i + 4 + b], 0);
    }
}

KS_TEST_MAIN

/* test-bf16.c - the kernels that multiply pairs of bfloat16, one by one.
 * Emulated, and for real where the processor has them.  The reference rounds the activations in
 * plain C and adds up in double. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-isa-internal.h"
#include "engine/cpu-matmul-internal.h"
#include "tests/ks-test.h"

#include <math.h>

#define MAX_IN 200u
#define MAX_TOK 13u

static size_t
list_tables(const ks_cpu_bf16_fns *tables[2])
{
  size_t n = 0;

#if defined(KS_BUILT_AVX512BF16)
  if (ks_cpu_detect_set()->bf16)
    tables[n++] = &ks_cpu_matmul_bf16;
#endif
#ifdef KS_EMULATED_AVX512
  if (ks_cpu_detect_isa() != KS_ISA_SCALAR)
    tables[n++] = &ks_cpu_matmul_bf16_emulated;
#endif
  return n;
}

static uint64_t seed = 7;

static float
next_random(void) /* -1 .. 1 */
{
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (float)((double)(seed >> 40) / (1u << 23) - 1);
}

/* The nearest bfloat16, by comparing both neighbours in double. */
static uint16_t
nearest_bf16(float x)
{
  uint32_t bits, low, high;
  float below, above;
  double to_below, to_above;

  memcpy(&bits, &x, sizeof(bits));
  low = bits & 0xffff0000u;
  high = low + 0x10000u;
  memcpy(&below, &low, sizeof(below));
  memcpy(&above, &high, sizeof(above));
  to_below = fabs((double)x - (double)below);
  to_above = fabs((double)above - (double)x);
  if (to_below < to_above || (to_below == to_above && (low >> 16 & 1) == 0))
    return (uint16_t)(low >> 16);
  return (uint16_t)(high >> 16);
}

static double
bf16_value(uint16_t v)
{
  uint32_t bits = (uint32_t)v << 16;
  float x;

  memcpy(&x, &bits, sizeof(x));
  return (double)x;
}

typedef struct problem {
  size_t n_in, n_row, n_tok;
  unsigned char w_bytes[64 * MAX_IN * 2 + 1]; /* [n_row, n_in] at an odd address */
  float x[MAX_TOK * MAX_IN];
} problem;

static void
problem_fill(problem *p, size_t n_in, size_t n_row, size_t n_tok)
{
  p->n_in = n_in;
  p->n_row = n_row;
  p->n_tok = n_tok;
  for (size_t i = 0; i < n_row * n_in; i++) {
    uint16_t v = nearest_bf16(next_random());

    memcpy(p->w_bytes + 1 + 2 * i, &v, 2);
  }
  for (size_t i = 0; i < n_tok * n_in; i++)
    p->x[i] = next_random();
}

static double
expected(const problem *p, size_t row, size_t tok)
{
  double sum = 0;

  for (size_t k = 0; k < p->n_in; k++) {
    uint16_t w;

    memcpy(&w, p->w_bytes + 1 + 2 * (row * p->n_in + k), 2);
    sum += bf16_value(w) * bf16_value(nearest_bf16(p->x[tok * p->n_in + k]));
  }
  return sum;
}

/* Activations become the nearest bfloat16, ties to even, and an odd last one gets a partner of 0.
 */
KS_TEST(bf16, rounds_to_nearest)
{
  static const float ends[] = {0,      1,       -1,      1.00390625f, 1.01171875f, -1.00390625f,
                               1e-30f, -3e-20f, 3.4e37f, 65504,       0.1f,        1.0039064f};
  const ks_cpu_bf16_fns *tables[2];
  const size_t n = list_tables(tables);
  float x[MAX_IN];
  uint16_t out[MAX_IN + 1];

  for (size_t i = 0; i < MAX_IN; i++)
    x[i] = i < sizeof(ends) / sizeof(ends[0]) ? ends[i] : next_random() * 1000;
  for (size_t f = 0; f < n; f++)
    for (size_t n_in = 1; n_in < MAX_IN; n_in += 17) {
      memset(out, 0xaa, sizeof(out));
      tables[f]->round_row(x, n_in, out);
      for (size_t i = 0; i < n_in; i++)
        KS_ASSERT_EQ(out[i], nearest_bf16(x[i]));
      if (n_in % 2 != 0)
        KS_ASSERT_EQ(out[n_in], 0);
      KS_ASSERT_EQ(out[(n_in + 1) / 2 * 2], 0xaaaa);
    }
}

/* Rows times one to three tokens, whatever is left over of four rows and of 32 columns. */
KS_TEST(bf16, rows_give_the_product)
{
  const ks_cpu_bf16_fns *tables[2];
  const size_t n = list_tables(tables);
  static problem p;

  for (size_t f = 0; f < n; f++)
    for (size_t n_in = 1; n_in <= MAX_IN; n_in += 33)
      for (size_t n_row = 1; n_row <= 9; n_row += 2) {
        float out[3 * 10] = {[9] = 77, [19] = 77, [29] = 77};
        ks_rows_job job = {.dtype = KS_DTYPE_BF16,
                           .rows = p.w_bytes + 1,
                           .row_bytes = 2 * n_in,
                           .n_row = n_row,
                           .n_in = n_in,
                           .n_tok = 1 + (uint32_t)n_in % 3,
                           .x_stride = n_in,
                           .out_stride = 10,
                           .x = p.x,
                           .out = out};

        problem_fill(&p, n_in, n_row, job.n_tok);
        tables[f]->multiply_rows(&job);
        for (size_t t = 0; t < job.n_tok; t++)
          for (size_t r = 0; r < n_row; r++)
            KS_ASSERT_NEAR(out[10 * t + r], expected(&p, r, t), 2e-6 * (double)n_in);
        for (size_t t = 0; t < 3; t++)
          KS_ASSERT(out[10 * t + 9] == 77);
      }
}

/* Panels and tiles: rows and columns that are missing count as zeros, add adds. */
KS_TEST(bf16, tiles_give_the_product)
{
  const ks_cpu_bf16_fns *tables[2];
  const size_t n = list_tables(tables);
  static problem p;
  static uint32_t panel[MAX_IN / 2 * 64];
  static uint16_t x[MAX_TOK * (MAX_IN + 2)];
  static float c[MAX_TOK * 70];

  for (size_t f = 0; f < n; f++)
    for (size_t n_in = 1; n_in <= MAX_IN; n_in += 33)
      for (size_t n_row = 1; n_row <= tables[f]->panel_rows; n_row += n_row < 14 ? 13 : 3)
        for (size_t n_tok = 1; n_tok <= tables[f]->tile_tok; n_tok += n_tok < 10 ? 4 : 3) {
          const size_t n_pair = (n_in + 1) / 2;

          problem_fill(&p, n_in, n_row, n_tok);
          memset(panel, 0xff, sizeof(panel)); /* what is read must be written first */
          memset(x, 0xff, sizeof(x));
          tables[f]->fill_panel(p.w_bytes + 1, 2 * n_in, n_row, n_in, panel);
          KS_ASSERT_EQ(panel[n_pair * tables[f]->panel_rows], 0xffffffffu);
          for (size_t t = 0; t < n_tok; t++)
            tables[f]->round_row(p.x + t * n_in, n_in, x + t * (2 * n_pair + 2));
          for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
            c[i] = 3;
          tables[f]->multiply_tile(panel, n_pair, x, n_pair + 1, n_tok, c, 70, false);
          tables[f]->multiply_tile(panel, n_pair, x, n_pair + 1, n_tok, c, 70, true);
          for (size_t t = 0; t < n_tok; t++)
            for (size_t r = 0; r < 70; r++) {
              double want = r < n_row ? 2 * expected(&p, r, t) : r < tables[f]->panel_rows ? 0 : 3;

              KS_ASSERT_NEAR(c[70 * t + r], want, 4e-6 * (double)n_in);
            }
        }
}

KS_TEST_MAIN

/* test-packed-kernels.c - every kernel of the packed form, for every type and instruction set,
 * against plain arithmetic; sets that this machine lacks run emulated where the build has an
 * emulation. The promise: exact panels hold the values of the file bit by bit; integer sums of fast
 * products are exact, also at the ends of the codes' ranges; everything else stays within rounding
 * of double arithmetic; nothing is written outside the results. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-isa-internal.h"
#include "engine/cpu-packed-internal.h"
#include "engine/quant.h"
#include "tests/ks-test.h"

#define MAX_IN 1024
#define MAX_OUT 64
#define MAX_TOK 16
#define GUARD 12345.0f

static const ks_dtype types[] = {KS_DTYPE_Q4_0, KS_DTYPE_Q4_1, KS_DTYPE_Q5_0,   KS_DTYPE_Q5_1,
                                 KS_DTYPE_Q8_0, KS_DTYPE_Q2_K, KS_DTYPE_Q3_K,   KS_DTYPE_Q4_K,
                                 KS_DTYPE_Q5_K, KS_DTYPE_Q6_K, KS_DTYPE_IQ4_NL, KS_DTYPE_IQ4_XS};
#define N_TYPE (sizeof(types) / sizeof(types[0]))

/* Where a block has its halves (d, then m or dmin); -1 = none. */
static void
find_halves(ks_dtype t, int at[2])
{
  at[0] = t == KS_DTYPE_Q2_K ? 80 : t == KS_DTYPE_Q3_K ? 108 : t == KS_DTYPE_Q6_K ? 208 : 0;
  at[1] = t == KS_DTYPE_Q2_K ? 82
          : t == KS_DTYPE_Q4_1 || t == KS_DTYPE_Q5_1 || t == KS_DTYPE_Q4_K || t == KS_DTYPE_Q5_K
              ? 2
              : -1;
}

typedef struct fixture {
  const ks_cpu_packed_fns *fns;
  const ks_packed_kernel *kernel;
  ks_dtype dtype;
  size_t n_in, n_out, row_bytes, strip_bytes;
  uint32_t seed;
  unsigned char rows[MAX_OUT * MAX_IN * 2];
  unsigned char strips[MAX_OUT * MAX_IN * 2];
  float values[MAX_OUT * MAX_IN]; /* as the plain reader has them */
  float x[MAX_TOK * MAX_IN];
  ks_cpu_acts acts;
  int8_t q[MAX_TOK * MAX_IN];
  float d[MAX_TOK * MAX_IN / 32], sum[MAX_TOK * MAX_IN / 32], half_sum[MAX_TOK * MAX_IN / 16];
  uint32_t centre[MAX_TOK * MAX_IN / 32], half_centre[MAX_TOK * MAX_IN / 16];
  float out[MAX_TOK * (MAX_OUT + 16)];
} fixture;

static fixture f;

static uint32_t
next_random(void)
{
  f.seed = f.seed * 1664525u + 1013904223u;
  return f.seed >> 8;
}

typedef void (*byte_fn)(unsigned char *block, size_t n_bytes);

static void
random_bytes(unsigned char *block, size_t n_bytes)
{
  for (size_t i = 0; i < n_bytes; i++)
    block[i] = (unsigned char)(next_random() >> 3);
}

static void
put_half(unsigned char *p, float value)
{
  uint16_t half = ks_f16_from_f32(value);

  p[0] = (unsigned char)half;
  p[1] = (unsigned char)(half >> 8);
}

/* Rows of n_in elements by fill; unit: scales of blocks are 1, else random in 2^-6 .. 2^-2. */
static void
make_rows(const ks_cpu_packed_fns *fns, ks_dtype t, size_t n_in, size_t n_out, byte_fn fill,
          bool unit)
{
  const ks_dtype_info *info = ks_dtype_get_info(t);
  const size_t n_block = n_in / info->block_elems;
  int at[2];

  f.fns = fns;
  f.kernel = &fns->kernels[t];
  f.dtype = t;
  f.n_in = n_in;
  f.n_out = n_out;
  f.row_bytes = n_block * info->block_bytes;
  f.strip_bytes = ks_packed_strip_bytes(t, n_in, fns->strip_rows);
  find_halves(t, at);
  for (size_t b = 0; b < n_out * n_block; b++) {
    unsigned char *block = f.rows + b * info->block_bytes;

    fill(block, info->block_bytes);
    if (t == KS_DTYPE_Q6_K && unit) /* sums stay below 2^24: f32 holds them exactly */
      for (int i = 192; i < 208; i++)
        block[i] = (unsigned char)(int8_t)((int8_t)block[i] / 2);
    if (t == KS_DTYPE_IQ4_XS && unit) /* the same: scales from -16 to 15 */
      for (int i = 2; i < 4; i++)
        block[i] = (unsigned char)((block[i] & 0x55) | (~block[i] & 0x55) << 1);
    for (int i = 0; i < 2; i++)
      if (at[i] >= 0)
        put_half(block + at[i], unit ? 1 : (float)(next_random() % 1000 + 60) * 0x1p-12f);
  }
  for (size_t r = 0; r < n_out; r++)
    ks_dequantise_row(t, f.rows + r * f.row_bytes, f.values + r * n_in, n_in);
  for (size_t r = 0; r < n_out; r += fns->strip_rows)
    ks_packed_fill_strip(t, f.rows + r * f.row_bytes, f.row_bytes,
                         n_out - r < fns->strip_rows ? n_out - r : fns->strip_rows, 0, n_in,
                         fns->strip_rows, f.strips + r / fns->strip_rows * f.strip_bytes);
}

static void
random_x(size_t n_tok)
{
  for (size_t i = 0; i < n_tok * f.n_in; i++)
    f.x[i] = ((float)(next_random() % 20001) - 10000) * 0x1p-12f;
}

/* Whole numbers from -127 to 127 in group g of each token, 0 elsewhere; one is 127 or -127, so that
 * the scale of the codes is 1. */
static void
whole_x(size_t n_tok, size_t g, bool extreme)
{
  memset(f.x, 0, n_tok * f.n_in * sizeof(f.x[0]));
  for (size_t t = 0; t < n_tok; t++)
    for (size_t i = 0; i < 32; i++) {
      int v = (int)(next_random() % 255) - 127;

      if (extreme || i == 5)
        v = t == 0 ? 127 : t == 1 ? -127 : v < 0 ? -127 : 127;
      f.x[t * f.n_in + 32 * g + i] = (float)v;
    }
}

static void
make_acts(size_t n_tok, bool fast)
{
  f.acts = (ks_cpu_acts){.n_in = f.n_in,
                         .x = fast ? NULL : f.x,
                         .x_stride = f.n_in,
                         .q = fast ? f.q : NULL,
                         .d = fast ? f.d : NULL,
                         .sum = f.sum,
                         .half_sum = f.half_sum,
                         .centre = f.centre,
                         .half_centre = f.half_centre};
  for (size_t t = 0; t < n_tok; t++) {
    f.fns->fill_acts(f.x + t * f.n_in, f.n_in, fast ? f.q + t * f.n_in : NULL,
                     fast ? f.d + t * f.n_in / 32 : NULL, f.sum + t * f.n_in / 32,
                     f.half_sum + t * f.n_in / 16);
    if (fast && f.fns->fill_centres != NULL)
      f.fns->fill_centres(f.q + t * f.n_in, f.n_in, f.centre + t * f.n_in / 32,
                          f.half_centre + t * f.n_in / 16);
  }
}

/* Activation k of a token as the kernels see it. */
static double
seen_x(size_t tok, size_t k)
{
  if (f.acts.q == NULL)
    return f.x[tok * f.n_in + k];
  return (double)f.q[tok * f.n_in + k] * (double)f.d[(tok * f.n_in + k) / 32];
}

/* The product of elements k0 .. k0 + n_k - 1, and in *size what its rounding is measured by: codes
 * are not centred when they are multiplied, so that each counts as the largest of its group. */
static double
product(size_t tok, size_t row, size_t k0, size_t n_k, double *size)
{
  double sum = 0;

  *size = 0;
  for (size_t k = k0; k < k0 + n_k; k += 16) {
    double most = 0, x_sum = 0;

    for (size_t i = k; i < k + 16; i++) {
      double w = row < f.n_out ? (double)f.values[row * f.n_in + i] : 0, x = seen_x(tok, i);

      sum += w * x;
      most = fmax(most, fabs(w));
      x_sum += fabs(x);
    }
    *size += 2 * most * x_sum;
  }
  return sum;
}

static void
guard_out(void)
{
  for (size_t i = 0; i < sizeof(f.out) / sizeof(f.out[0]); i++)
    f.out[i] = GUARD;
}

/* Results [n_tok, n_row] at stride; base is what was there before.  tol 0: exact. */
static void
check_out(const char *what, size_t n_tok, size_t row0, size_t n_row, size_t stride, size_t k0,
          size_t n_k, double base, double tol)
{
  const size_t n_float = sizeof(f.out) / sizeof(f.out[0]);

  for (size_t i = 0; i < n_float; i++) {
    size_t tok = i / stride, row = i % stride;
    double size, want;

    if (tok >= n_tok || row >= n_row) {
      if (f.out[i] != GUARD)
        KS_FAIL("%s %s: float %zu outside the result was written", what,
                ks_dtype_get_info(f.dtype)->name, i);
      continue;
    }
    want = base + product(tok, row0 + row, k0, n_k, &size);
    if (!(fabs((double)f.out[i] - want) <= tol * (size + fabs(base))))
      KS_FAIL("%s %s n_tok %zu token %zu row %zu: %.9g, want %.9g", what,
              ks_dtype_get_info(f.dtype)->name, n_tok, tok, row, (double)f.out[i], want);
  }
}

static size_t
count_strips(void)
{
  return (f.n_out + f.fns->strip_rows - 1) / f.fns->strip_rows;
}

static void
run_rows(size_t n_tok, bool fast)
{
  const size_t stride = MAX_OUT + 3;
  ks_packed_job job = {.strips = f.strips,
                       .strip_bytes = f.strip_bytes,
                       .n_strip = count_strips(),
                       .acts = &f.acts,
                       .n_tok = (uint32_t)n_tok,
                       .out = f.out,
                       .out_stride = stride};

  guard_out();
  if (fast)
    f.kernel->rows_fast(&job);
  else
    f.kernel->rows_exact(&job);
}

static size_t
some_width(ks_dtype t)
{
  return ks_packed_get_format(t).block_elems == 32 ? 32 * 9 : 512;
}

static void
check_rows(const ks_cpu_packed_fns *fns)
{
  const size_t stride = MAX_OUT + 3;

  for (size_t i = 0; i < N_TYPE; i++) {
    make_rows(fns, types[i], some_width(types[i]), 2 * fns->strip_rows + 3, random_bytes, false);
    random_x(4);
    for (int fast = 0; fast < 2; fast++) {
      make_acts(4, fast != 0);
      for (size_t n_tok = 1; n_tok <= 4; n_tok++) {
        run_rows(n_tok, fast != 0);
        check_out(fast ? "rows_fast" : "rows_exact", n_tok, 0, count_strips() * fns->strip_rows,
                  stride, 0, f.n_in, 0, 2e-6);
      }
    }
  }
}

static void
ones_bytes(unsigned char *block, size_t n_bytes)
{
  memset(block, 0xff, n_bytes);
}

static void
lowest_bytes(unsigned char *block, size_t n_bytes)
{
  memset(block, 0x80, n_bytes);
}

static void
highest_bytes(unsigned char *block, size_t n_bytes)
{
  memset(block, 0x7f, n_bytes);
}

static void
zero_bytes(unsigned char *block, size_t n_bytes)
{
  memset(block, 0, n_bytes);
}

static const byte_fn fills[] = {random_bytes, ones_bytes, lowest_bytes, highest_bytes, zero_bytes};

/* --- panels and tiles --- */

static unsigned char panel_q[KS_PACKED_MAX_STRIPS][MAX_IN * 16];
static float panel_d[KS_PACKED_MAX_STRIPS][MAX_IN], panel_m[KS_PACKED_MAX_STRIPS][MAX_IN];

static void
check_fill_exact(const ks_cpu_packed_fns *fns)
{
  const size_t n_row = fns->strip_rows, stride = n_row + 5;
  static float panel[MAX_IN * 32];

  for (size_t i = 0; i < N_TYPE; i++) {
    make_rows(fns, types[i], some_width(types[i]), n_row - 3, random_bytes, false);
    for (size_t k = 0; k < f.n_in * stride; k++)
      panel[k] = GUARD;
    f.kernel->fill_exact(f.strips, f.n_in, panel, stride);
    for (size_t k = 0; k < f.n_in; k++)
      for (size_t r = 0; r < stride; r++) {
        float got = panel[k * stride + r];
        float want = r >= n_row ? GUARD : r < f.n_out ? f.values[r * f.n_in + k] : 0;

        if (got != want)
          KS_FAIL("fill_exact %s element %zu row %zu: %.9g, want %.9g",
                  ks_dtype_get_info(f.dtype)->name, k, r, (double)got, (double)want);
      }
  }
}

/* Fills panels of strips 0 .. n_strip - 1 from column k on and multiplies them. */
static void
run_tile(size_t n_strip, size_t n_tok, size_t k, size_t n_k, size_t c_stride, bool add)
{
  const ks_packed_format format = ks_packed_get_format(f.dtype);
  const size_t block = (size_t)format.row_bytes * f.fns->strip_rows, group = f.kernel->group;
  ks_packed_panel panels[KS_PACKED_MAX_STRIPS];
  ks_packed_tile tile = {.panels = panels,
                         .n_strip = n_strip,
                         .n_k = n_k,
                         .q = f.q + k,
                         .d = f.d + k / 32,
                         .sum = group == 16 ? f.half_sum + k / 16 : f.sum + k / 32,
                         .centre = group == 16 ? f.half_centre + k / 16 : f.centre + k / 32,
                         .n_in = f.n_in,
                         .n_tok = n_tok,
                         .c = f.out,
                         .c_stride = c_stride,
                         .add = add};

  for (size_t s = 0; s < n_strip; s++) {
    panels[s] = (ks_packed_panel){panel_q[s], panel_d[s], panel_m[s]};
    f.kernel->fill_fast(f.strips + s * f.strip_bytes + k / format.block_elems * block, n_k,
                        &panels[s]);
  }
  guard_out();
  for (size_t t = 0; t < n_tok && add; t++)
    for (size_t r = 0; r < n_strip * f.fns->strip_rows; r++)
      f.out[t * c_stride + r] = 2;
  f.kernel->tile_fast(&tile);
}

static void
check_tiles(const ks_cpu_packed_fns *fns)
{
  const size_t stride = MAX_OUT + 3;

  KS_ASSERT(fns->tile_strips <= KS_PACKED_MAX_STRIPS && fns->tile_tok <= MAX_TOK);
  for (size_t i = 0; i < N_TYPE; i++) {
    const size_t k = ks_packed_get_format(types[i]).block_elems;

    make_rows(fns, types[i], some_width(types[i]), fns->tile_strips * fns->strip_rows - 1,
              random_bytes, false);
    random_x(fns->tile_tok);
    make_acts(fns->tile_tok, true);
    for (size_t n_strip = 1; n_strip <= fns->tile_strips; n_strip++)
      for (size_t n_tok = 1; n_tok <= fns->tile_tok; n_tok++) {
        const bool add = (n_tok + n_strip) % 2 != 0;

        run_tile(n_strip, n_tok, k, f.n_in - k, stride, add);
        check_out("tile_fast", n_tok, 0, n_strip * fns->strip_rows, stride, k, f.n_in - k,
                  add ? 2 : 0, 2e-6);
      }
  }
}

/* With scales of 1 every product is a whole number below 2^24 and has to come out exactly. */
static void
check_whole_numbers(const ks_cpu_packed_fns *fns)
{
  const size_t stride = MAX_OUT + 3, n_tile_tok = fns->tile_tok;

  for (size_t i = 0; i < N_TYPE; i++)
    for (size_t p = 0; p < sizeof(fills) / sizeof(fills[0]); p++) {
      const size_t n_in = ks_packed_get_format(types[i]).block_elems;

      make_rows(fns, types[i], n_in, fns->tile_strips * fns->strip_rows, fills[p], true);
      for (size_t g = 0; g < n_in / 32; g++)
        for (int extreme = 0; extreme < 2; extreme++) {
          whole_x(n_tile_tok, g, extreme != 0);
          make_acts(n_tile_tok, true);
          for (size_t n_tok = 1; n_tok <= 4; n_tok++) {
            run_rows(n_tok, true);
            check_out("rows_fast", n_tok, 0, f.n_out, stride, 0, n_in, 0, 0);
          }
          run_tile(fns->tile_strips, n_tile_tok, 0, n_in, stride, false);
          check_out("tile_fast", n_tile_tok, 0, f.n_out, stride, 0, n_in, 0, 0);
        }
    }
}

/* --- activations --- */

static void
check_acts_group(size_t g, bool fast, size_t n)
{
  double sums[2] = {0}, most = 0;

  for (size_t k = 0; k < 32; k++)
    most = fmax(most, fabs((double)f.x[32 * g + k]));
  for (size_t k = 0; k < 32; k++) {
    double x = f.x[32 * g + k];

    if (fast) {
      double code = most < 1e-30 ? 0 : x / most * 127;

      KS_ASSERT_NEAR(f.q[32 * g + k], code, 0.5001);
      x = (double)f.q[32 * g + k] * (double)f.d[g];
    }
    sums[k / 16] += x;
  }
  if (fast)
    KS_ASSERT_NEAR(f.d[g], most / 127, most * 1e-7 + 0x1p-149);
  for (size_t h = 0; h < 2; h++)
    KS_ASSERT_NEAR(f.half_sum[2 * g + h], sums[h], 2e-6 * most * 16);
  KS_ASSERT_NEAR(f.sum[g], sums[0] + sums[1], 2e-6 * most * 32);
  KS_ASSERT(f.sum[n / 32] == GUARD && f.half_sum[n / 16] == GUARD);
}

static void
check_acts(const ks_cpu_packed_fns *fns)
{
  const size_t n = 32 * 7;

  f.n_in = n;
  random_x(1);
  memset(f.x + 32, 0, 32 * sizeof(f.x[0])); /* nothing, hardly anything, one value, one sign */
  for (size_t k = 64; k < 96; k++)
    f.x[k] = 0x1p-140f;
  memset(f.x + 96, 0, 32 * sizeof(f.x[0]));
  f.x[127] = -3;
  for (size_t k = 128; k < 160; k++)
    f.x[k] = -fabsf(f.x[k]);
  for (int fast = 0; fast < 2; fast++) {
    f.sum[n / 32] = f.half_sum[n / 16] = GUARD;
    fns->fill_acts(f.x, n, fast ? f.q : NULL, fast ? f.d : NULL, f.sum, f.half_sum);
    for (size_t g = 0; g < n / 32; g++)
      check_acts_group(g, fast != 0, n);
  }
  f.x[3] = INFINITY; /* no number must become the code -128, which kernels do not expect */
  f.x[70] = NAN;
  f.x[100] = -INFINITY;
  fns->fill_acts(f.x, n, f.q, f.d, f.sum, f.half_sum);
  for (size_t k = 0; k < n; k++)
    KS_ASSERT_GE(f.q[k], -127);
}

/* --- over all instruction sets, those that are missing here emulated --- */

static void
for_every_table(void (*check)(const ks_cpu_packed_fns *fns))
{
  const ks_cpu_id id = ks_cpu_id_read();

  f.seed = 1;
  for (size_t i = 1; i < KS_N_CPU_SET; i++) /* plain ones: test-linear */
    if (ks_cpu_id_supports(&id, &ks_cpu_sets[i]))
      check(ks_cpu_packed_get(ks_cpu_sets[i].isa, ks_cpu_sets[i].vnni));
#ifdef KS_EMULATED_AVX512
  if (ks_cpu_detect_isa() != KS_ISA_SCALAR) {
    check(&ks_cpu_packed_avxvnni_emulated);
    check(&ks_cpu_packed_avx512_emulated);
    check(&ks_cpu_packed_avx512vnni_emulated);
  }
#endif
}

/* One to four tokens times strips, the last one not full, in both modes. */
KS_TEST(packed_kernels, rows_agree_with_double)
{
  for_every_table(check_rows);
}

/* A panel for exact products is the file's values, transposed. */
KS_TEST(packed_kernels, exact_panels_hold_the_values)
{
  for_every_table(check_fill_exact);
}

/* Every size of tile, from the middle of a row, set and added. */
KS_TEST(packed_kernels, tiles_agree_with_double)
{
  for_every_table(check_tiles);
}

/* Largest and smallest codes times largest activations: no sum may saturate or lose a bit. */
KS_TEST(packed_kernels, whole_numbers_are_exact)
{
  for_every_table(check_whole_numbers);
}

/* Codes are the nearest ones, sums are those of the codes, and odd inputs give codes in range. */
KS_TEST(packed_kernels, activations)
{
  for_every_table(check_acts);
}

KS_TEST_MAIN

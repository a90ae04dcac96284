/* test-modes.c - made-up models of every weight type in every way of computing: exact and fast, the
 * weights as they lie in the file and repacked, many tokens at once and one by one.
 * The measure is exact arithmetic over the file's order, one pass. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/golden/graph-runner.h"
#include "tests/unit/tiny-model.h"

#include <unistd.h>

#define N_TOK 21
#define EXACT_TOLERANCE 2e-5 /* of the largest logit: sums in another order */
#define FAST_TOLERANCE 0.025 /* root mean square, of the logits' own */

static const ks_dtype all_types[] = {KS_DTYPE_F32,  KS_DTYPE_F16,    KS_DTYPE_BF16,  KS_DTYPE_Q4_0,
                                     KS_DTYPE_Q4_1, KS_DTYPE_Q5_0,   KS_DTYPE_Q5_1,  KS_DTYPE_Q8_0,
                                     KS_DTYPE_Q2_K, KS_DTYPE_Q3_K,   KS_DTYPE_Q4_K,  KS_DTYPE_Q5_K,
                                     KS_DTYPE_Q6_K, KS_DTYPE_IQ4_NL, KS_DTYPE_IQ4_XS};

static void
write_model(char *path, ks_dtype type, const char *arch)
{
  tiny_spec spec = {.arch = arch, .matrix_type = type, .scale = 8, .own_output = true};
  ks_alloc *a = ks_alloc_new();
  size_t n_bytes = 0;
  unsigned char *bytes = tiny_new_bytes(a, &spec, &n_bytes);
  int fd = mkstemp(path);

  KS_ASSERT(fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
  close(fd);
  ks_mem_free(bytes);
  ks_alloc_free(a);
}

/* All logits [N_TOK, TINY_VOCAB]. */
static void
run(const char *path, ks_compute_mode mode, bool packed, uint32_t chunk, ks_dtype kv_dtype,
    float *logits)
{
  graph_runner_params params = {.path = path,
                                .kv_dtype = kv_dtype,
                                .n_tok = N_TOK,
                                .chunk = chunk,
                                .mode = mode,
                                .packed = packed};
  ks_token ids[N_TOK];
  graph_runner r;
  ks_error err;

  for (int i = 0; i < N_TOK; i++)
    ids[i] = (ks_token)((i * 37 + 5) % TINY_VOCAB);
  if (graph_runner_open(&r, &params, &err) != KS_OK ||
      graph_runner_eval(&r, ids, NULL, N_TOK, logits, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  KS_ASSERT(packed || ks_model_get_repacked_bytes(r.model) == 0);
  graph_runner_close(&r);
}

static double
get_rms(const float *x, const float *minus)
{
  double sum = 0;

  for (size_t i = 0; i < N_TOK * TINY_VOCAB; i++) {
    const double d = (double)x[i] - (minus != NULL ? (double)minus[i] : 0);

    sum += d * d;
  }
  return sqrt(sum / (N_TOK * TINY_VOCAB));
}

static double
get_most(const float *x, const float *minus)
{
  double most = 0;

  for (size_t i = 0; i < N_TOK * TINY_VOCAB; i++)
    most = fmax(most, fabs((double)x[i] - (minus != NULL ? (double)minus[i] : 0)));
  return most;
}

static void
check_type(ks_dtype type, const char *arch, ks_dtype kv_dtype)
{
  static float want[N_TOK * TINY_VOCAB], got[N_TOK * TINY_VOCAB];
  const char *name = ks_dtype_get_info(type)->name;
  char path[] = "/tmp/ks-modes-XXXXXX";
  double exact = 0, fast = 0;

  write_model(path, type, arch);
  run(path, KS_COMPUTE_EXACT, false, N_TOK, kv_dtype, want);
  for (int packed = 0; packed < 2; packed++)
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
      const uint32_t chunk = one_by_one ? 1 : N_TOK;

      run(path, KS_COMPUTE_EXACT, packed, chunk, kv_dtype, got);
      exact = fmax(exact, get_most(got, want) / get_most(want, NULL));
      run(path, KS_COMPUTE_FAST, packed, chunk, kv_dtype, got);
      fast = fmax(fast, get_rms(got, want) / get_rms(want, NULL));
    }
  unlink(path);
  printf("# %s %s: exact off by %.2g of the largest, fast by %.2g (rms)\n", arch, name, exact,
         fast);
  KS_ASSERT_LE(exact * 1e9, EXACT_TOLERANCE * 1e9);
  KS_ASSERT_LE(fast * 1e9, FAST_TOLERANCE * 1e9);
}

/* No type's repacked copy or 8-bit activations give another model. */
KS_TEST(modes, every_type)
{
  for (size_t i = 0; i < sizeof all_types / sizeof all_types[0]; i++)
    check_type(all_types[i], "llama", KS_DTYPE_F32);
}

/* Fused matrices are repacked by their rows, biases stay, windows as well. */
KS_TEST(modes, architectures)
{
  check_type(KS_DTYPE_Q4_1, "phi3", KS_DTYPE_F32);
  check_type(KS_DTYPE_Q4_K, "phi3", KS_DTYPE_F32);
  check_type(KS_DTYPE_Q5_1, "gemma3", KS_DTYPE_F32);
  check_type(KS_DTYPE_Q6_K, "qwen3", KS_DTYPE_F32);
}

KS_TEST_MAIN

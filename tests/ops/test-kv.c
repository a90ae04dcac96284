/* test-kv.c - writing entries and the operations at once: read, rotate, move.
 * The promise: what was appended is read back as the store's type rounds it, in the right slot of
 * the right page; a rotation by delta turns a key as if it had been written at the new position. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ops/ops-store.h"

OPS_DEFINE_PLAIN(kv_append)
OPS_DEFINE_PLAIN(kv_add_mass)

/* An opened CPU device for the immediate operations. */
static ks_backend
open_cpu(ks_alloc *a, const char *isa)
{
  const ks_dev_params params = {.alloc = a, .n_thread = 1, .isa = isa};
  ks_backend be;

  KS_ASSERT_OK(ks_backend_open("cpu", &params, &be, NULL));
  return be;
}

static double
step_of(ks_dtype dtype, double amax)
{
  return dtype == KS_DTYPE_F32 ? 0 : dtype == KS_DTYPE_F16 ? amax / 2048 : amax / 127 * 0.502;
}

static void
append_body(ops_fixture *f)
{
  static const ks_dtype types[] = {KS_DTYPE_F32, KS_DTYPE_F16, KS_DTYPE_Q8_0};
  ks_backend be = open_cpu(f->a, NULL);

  for (int c = 0; c < 6; c++) {
    const ks_kv_layout shape = {.n_layer = 2,
                                .n_kv_head = 3,
                                .k_dim = 64,
                                .v_dim = 32,
                                .kv_dtype = types[c % 3],
                                .page_entries = 16,
                                .n_aux = 1};
    const uint32_t lengths[] = {0, 0, 0, 15, 16, 33}, n_tok = c < 3 ? 1 : 21;
    const size_t k_stride = 3 * 64 + 7;
    float *k = ops_floats(f, n_tok * k_stride), *v = ops_floats(f, n_tok * 3 * 32);
    float *log_beta = ops_floats(f, n_tok * 3);
    ops_store store;
    ks_op_kv_append op = {.layer = 1,
                          .n_tok = n_tok,
                          .pos0 = 500,
                          .k = ops_dptr(k),
                          .v = ops_dptr(v),
                          .k_stride = k_stride};

    op.log_beta = c % 2 == 0 ? ops_dptr(log_beta) : 0;
    ops_store_init(f, &store, &shape, lengths, n_tok);
    op.kv = store.view;
    ops_kv_append(f, &op);
    for (uint32_t h = 0; h < 3; h++) {
      float got_k[21 * 64], got_v[21 * 32], got_beta[21], aux[21];
      uint32_t pos[21];

      store.streams[3 + h].n_entry += n_tok;
      KS_ASSERT_OK(be.t->kv_read(be.dev, &store.view, 3 + h, lengths[3 + h], lengths[3 + h] + n_tok,
                                 got_k, got_v, got_beta, pos, aux, NULL));
      for (uint32_t t = 0; t < n_tok; t++) {
        for (uint32_t i = 0; i < 64; i++)
          KS_ASSERT_NEAR(got_k[t * 64 + i], k[t * k_stride + h * 64 + i], step_of(types[c % 3], 1));
        for (uint32_t i = 0; i < 32; i++)
          KS_ASSERT_NEAR(got_v[t * 32 + i], v[(t * 3 + h) * 32 + i], step_of(types[c % 3], 1));
        KS_ASSERT_EQ(pos[t], 500 + t);
        KS_ASSERT(got_beta[t] == (c % 2 == 0 ? log_beta[t * 3 + h] : 0.0F));
        KS_ASSERT(aux[t] == 0.0F);
      }
    }
    KS_ASSERT_STATUS(KS_ERR_ARG, be.t->kv_read(be.dev, &store.view, 3, 0, 999, NULL, NULL, NULL,
                                               NULL, NULL, NULL));
    ops_store_done(&store);
    ks_mem_free(k);
    ks_mem_free(v);
    ks_mem_free(log_beta);
  }
  ks_backend_close(&be);
}

/* Slots behind unequal lengths, strided input, all three types. */
KS_TEST(kv, append_and_read)
{
  ops_for_all(append_body);
}

/* Rotating by delta equals rotating the unrotated key to the sum; delta 0 leaves every bit. */
KS_TEST(kv, rotate)
{
  static const ks_dtype types[] = {KS_DTYPE_F32, KS_DTYPE_F16, KS_DTYPE_Q8_0};
  static const double tolerance[] = {2e-6, 1e-3, 1.2e-2};
  const ks_isa best = ks_cpu_detect_isa();
  ops_fixture f;

  ops_init(&f, (ops_set){best, ks_cpu_vec_get(best)}, 1);
  for (int c = 0; c < 6; c++) {
    const ks_kv_layout shape = {.n_layer = 1,
                                .n_kv_head = 2,
                                .k_dim = 32,
                                .v_dim = 32,
                                .kv_dtype = types[c % 3],
                                .page_entries = 4};
    const uint32_t lengths[] = {3, 9};
    float inv_freq[16], before[9 * 32], after[9 * 32];
    int32_t delta[27];
    ks_backend be = open_cpu(f.a, NULL);
    ks_op_rope rope = {.head_dim = 32,
                       .n_rot = 32,
                       .inv_freq = ops_dptr(inv_freq),
                       .mscale = 3.0F,
                       .neox = c >= 3};
    ops_store store;

    for (int i = 0; i < 16; i++)
      inv_freq[i] = powf(1000.0F, -(float)i / 16.0F);
    for (int e = 0; e < 9; e++)
      delta[e] = delta[9 + e] = delta[18 + e] = e % 3 == 1 ? 0 : -3 * e;
    ops_store_init(&f, &store, &shape, lengths, 0);
    ops_store_fill(&f, &store, 0);
    KS_ASSERT_OK(be.t->kv_read(be.dev, &store.view, 1, 0, 9, before, NULL, NULL, NULL, NULL, NULL));
    KS_ASSERT_OK(be.t->kv_rotate(be.dev, &store.view, 1, &rope, delta, NULL));
    KS_ASSERT_OK(be.t->kv_read(be.dev, &store.view, 1, 0, 9, after, NULL, NULL, NULL, NULL, NULL));
    for (int e = 0; e < 9; e++)
      for (int i = 0; i < 16; i++) {
        const int a = e * 32 + (c >= 3 ? i : 2 * i), b = c >= 3 ? a + 16 : a + 1;
        const double angle = (double)delta[e] * inv_freq[i];

        KS_ASSERT_NEAR(after[a], before[a] * cos(angle) - before[b] * sin(angle),
                       delta[e] == 0 ? 0 : tolerance[c % 3]);
        KS_ASSERT_NEAR(after[b], before[a] * sin(angle) + before[b] * cos(angle),
                       delta[e] == 0 ? 0 : tolerance[c % 3]);
      }
    ops_store_done(&store);
    ks_backend_close(&be);
  }
  ops_done(&f);
}

/* f16 keys drift by at most 1e-2 of their size over 20 maps. */
KS_TEST(kv, rotate_drift)
{
  const ks_kv_layout shape = {.n_layer = 1,
                              .n_kv_head = 1,
                              .k_dim = 64,
                              .v_dim = 32,
                              .kv_dtype = KS_DTYPE_F16,
                              .page_entries = 16};
  const uint32_t lengths[] = {50};
  float inv_freq[32], before[50 * 64], after[50 * 64];
  int32_t delta[150];
  int total = 0;
  ks_op_rope rope = {.head_dim = 64, .n_rot = 64, .inv_freq = ops_dptr(inv_freq), .mscale = 1.0F};
  ops_fixture f;
  ops_store store;
  ks_backend be;

  ops_init(&f, (ops_set){KS_ISA_SCALAR, ks_cpu_vec_get(KS_ISA_SCALAR)}, 1);
  be = open_cpu(f.a, NULL);
  for (int i = 0; i < 32; i++)
    inv_freq[i] = powf(10000.0F, -(float)i / 32.0F);
  ops_store_init(&f, &store, &shape, lengths, 0);
  ops_store_fill(&f, &store, 0);
  KS_ASSERT_OK(be.t->kv_read(be.dev, &store.view, 0, 0, 50, before, NULL, NULL, NULL, NULL, NULL));
  for (int map = 0; map < 20; map++) {
    for (int e = 0; e < 150; e++)
      delta[e] = -(100 + 37 * map);
    total += delta[0];
    KS_ASSERT_OK(be.t->kv_rotate(be.dev, &store.view, 0, &rope, delta, NULL));
  }
  KS_ASSERT_OK(be.t->kv_read(be.dev, &store.view, 0, 0, 50, after, NULL, NULL, NULL, NULL, NULL));
  for (int e = 0; e < 50; e++) {
    double error = 0, size = 0;

    for (int i = 0; i < 32; i++) {
      const float *x = before + e * 64 + 2 * i, *y = after + e * 64 + 2 * i;
      const double angle = (double)total * inv_freq[i];

      error += pow(y[0] - (x[0] * cos(angle) - x[1] * sin(angle)), 2);
      error += pow(y[1] - (x[0] * sin(angle) + x[1] * cos(angle)), 2);
      size += x[0] * x[0] + x[1] * x[1];
    }
    KS_ASSERT_LT(sqrt(error / size) * 1e6, 1e4);
  }
  ops_store_done(&store);
  ks_backend_close(&be);
  ops_done(&f);
}

/* A page moves with all of its planes. */
KS_TEST(kv, move_page)
{
  const ks_kv_layout shape = {.n_layer = 1,
                              .n_kv_head = 1,
                              .k_dim = 32,
                              .v_dim = 32,
                              .kv_dtype = KS_DTYPE_Q8_0,
                              .page_entries = 4,
                              .n_aux = 1};
  const uint32_t lengths[] = {12};
  ops_fixture f;
  ops_store store;
  ks_backend be;

  ops_init(&f, (ops_set){KS_ISA_SCALAR, ks_cpu_vec_get(KS_ISA_SCALAR)}, 1);
  be = open_cpu(f.a, "scalar");
  ops_store_init(&f, &store, &shape, lengths, 0);
  ops_store_fill(&f, &store, 0);
  KS_ASSERT_OK(be.t->kv_move_page(be.dev, &store.view, 2, 0, NULL));
  KS_ASSERT(
      memcmp(store.pages, store.pages + 2 * store.layout.page_bytes, store.layout.page_bytes) == 0);
  ops_store_done(&store);
  ks_backend_close(&be);
  ops_done(&f);
}

/* Attention is added to the first number of every entry of one layer, those just appended included,
 * in pages that are not neighbours; other layers and other numbers stay. */
static void
add_mass_body(ops_fixture *f)
{
  const ks_kv_layout shape = {.n_layer = 2,
                              .n_kv_head = 3,
                              .k_dim = 32,
                              .v_dim = 32,
                              .kv_dtype = KS_DTYPE_F32,
                              .page_entries = 16,
                              .n_aux = 2};
  const uint32_t lengths[] = {5, 5, 5, 0, 16, 37}, n_new = 7;
  const uint64_t offset[] = {50, 10, 70};
  float *mass = ops_floats(f, 120);
  ks_op_kv_add_mass op = {
      .layer = 1, .n_new = n_new, .mass = ops_dptr(mass), .mass_offset = offset};
  float before[2][6][64];
  ops_store store;

  ops_store_init(f, &store, &shape, lengths, n_new);
  ops_store_fill(f, &store, n_new);
  for (uint32_t s = 0; s < 6; s++)
    for (uint32_t e = 0; e < lengths[s] + n_new; e++)
      for (uint32_t j = 0; j < 2; j++)
        before[j][s][e] = ops_slot(&store, s, e).aux[j * 16];
  op.kv = store.view;
  ops_kv_add_mass(f, &op);
  for (uint32_t s = 0; s < 6; s++)
    for (uint32_t e = 0; e < lengths[s] + n_new; e++) {
      const ks_cpu_slots slot = ops_slot(&store, s, e);
      const float add = s < 3 ? 0.0F : mass[offset[s - 3] + e];

      KS_ASSERT_EQ(slot.aux[0], before[0][s][e] + add);
      KS_ASSERT_EQ(slot.aux[16], before[1][s][e]);
    }
  ops_store_done(&store);
  ks_mem_free(mass);
}

KS_TEST(kv_add_mass, adds_to_one_layer)
{
  ops_for_all(add_mass_body);
}

KS_TEST_MAIN

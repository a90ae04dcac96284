/* test-isa.c - which instruction sets a processor has, by what it answers to cpuid.
 * The answers are those of real processors, cut to the registers that are asked. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/backend.h"
#include "engine/cpu-isa-internal.h"
#include "tests/ks-test.h"

#define LEAF1_FULL (1u << 12 | 1u << 27 | 1u << 28 | 1u << 29)
#define EBX_AVX2 (1u << 5)
#define EBX_AVX512 (1u << 5 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31)
#define ECX_VNNI (1u << 11)
#define EAX_AVX_VNNI (1u << 4)
#define EAX_BF16 (1u << 5)
#define SAVES_AVX 0x7u
#define SAVES_AVX512 0xe7u

static bool
supports(const ks_cpu_id *id, const char *name)
{
  for (size_t i = 0; i < KS_N_CPU_SET; i++)
    if (strcmp(ks_cpu_sets[i].name, name) == 0)
      return ks_cpu_id_supports(id, &ks_cpu_sets[i]);
  KS_FAIL("no instruction set is called %s", name);
  return false;
}

/* Each processor runs the best kernels that it has instructions for, and no others. */
KS_TEST(isa, processors_get_their_best_set)
{
  static const struct {
    const char *processor;
    ks_cpu_id id;
    const char *best;
  } cases[] = {
      {"AVX without AVX2", {1u << 27 | 1u << 28 | 1u << 29, 0, 0, 0, SAVES_AVX}, "scalar"},
      {"Zen 3", {LEAF1_FULL, EBX_AVX2, 0, 0, SAVES_AVX}, "avx2"},
      {"Alder Lake", {LEAF1_FULL, EBX_AVX2, 0, EAX_AVX_VNNI, SAVES_AVX}, "avx2+vnni"},
      {"Skylake-X", {LEAF1_FULL, EBX_AVX512, 0, 0, SAVES_AVX512}, "avx512"},
      {"Ice Lake", {LEAF1_FULL, EBX_AVX512, ECX_VNNI, 0, SAVES_AVX512}, "avx512+vnni"},
      {"Zen 4", {LEAF1_FULL, EBX_AVX512, ECX_VNNI, EAX_BF16, SAVES_AVX512}, "avx512+vnni+bf16"},
      {"Sapphire Rapids",
       {LEAF1_FULL, EBX_AVX512, ECX_VNNI, EAX_BF16 | EAX_AVX_VNNI, SAVES_AVX512},
       "avx512+vnni+bf16"},
  };

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    KS_ASSERT_STR(ks_cpu_id_get_best(&cases[i].id)->name, cases[i].best);
}

/* Registers that the system does not save would be lost at a task switch: not used. */
KS_TEST(isa, needs_registers_that_the_system_saves)
{
  ks_cpu_id id = {LEAF1_FULL, EBX_AVX512, ECX_VNNI, EAX_BF16 | EAX_AVX_VNNI, SAVES_AVX};

  KS_ASSERT_STR(ks_cpu_id_get_best(&id)->name, "avx2+vnni");
  id.xcr0 = 0x67; /* masks and low halves, but not zmm16 to zmm31 */
  KS_ASSERT_STR(ks_cpu_id_get_best(&id)->name, "avx2+vnni");
  id.xcr0 = 0x3;
  KS_ASSERT_STR(ks_cpu_id_get_best(&id)->name, "scalar");
  id.xcr0 = SAVES_AVX512;
  id.leaf1_ecx &= ~(1u << 27);
  KS_ASSERT_STR(ks_cpu_id_get_best(&id)->name, "scalar");
}

/* Sets are no ladder: AVX-512 with its own VNNI says nothing of the 256-bit one. */
KS_TEST(isa, each_set_is_supported_or_not)
{
  ks_cpu_id ice_lake = {LEAF1_FULL, EBX_AVX512, ECX_VNNI, 0, SAVES_AVX512};
  ks_cpu_id no_vl = {LEAF1_FULL, EBX_AVX512 & ~(1u << 31), ECX_VNNI, EAX_BF16, SAVES_AVX512};
  ks_cpu_id no_fma = {LEAF1_FULL & ~(1u << 12), EBX_AVX2, 0, EAX_AVX_VNNI, SAVES_AVX};

  KS_ASSERT(supports(&ice_lake, "scalar") && supports(&ice_lake, "avx2"));
  KS_ASSERT(supports(&ice_lake, "avx512") && supports(&ice_lake, "avx512+vnni"));
  KS_ASSERT(!supports(&ice_lake, "avx2+vnni") && !supports(&ice_lake, "avx512+vnni+bf16"));
  KS_ASSERT(supports(&no_vl, "avx2") && !supports(&no_vl, "avx512"));
  KS_ASSERT(!supports(&no_vl, "avx512+vnni") && !supports(&no_vl, "avx512+vnni+bf16"));
  KS_ASSERT(!supports(&no_fma, "avx2") && !supports(&no_fma, "avx2+vnni"));
}

/* A device opens under every name that the machine supports and says so; others it refuses. */
KS_TEST(isa, device_opens_under_each_supported_name)
{
  ks_cpu_id id = ks_cpu_id_read();
  ks_alloc *a = ks_alloc_new();

  for (size_t i = 0; i < KS_N_CPU_SET; i++) {
    const ks_cpu_set *set = &ks_cpu_sets[i];
    ks_dev_params params = {.alloc = a, .n_thread = 1, .isa = set->name};
    ks_backend be = {0};
    ks_dev_info info;
    ks_error err;

    if (!ks_cpu_id_supports(&id, set)) {
      KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_backend_open("cpu", &params, &be, &err));
      KS_ASSERT(strstr(err.text, set->name) != NULL);
      continue;
    }
    KS_ASSERT_OK(ks_backend_open("cpu", &params, &be, &err));
    be.t->get_info(be.dev, &info);
    KS_ASSERT_STR(info.isa, set->name);
    KS_ASSERT(ks_cpu_get_ctx(be.dev)->isa == set->isa);
    KS_ASSERT(ks_cpu_get_ctx(be.dev)->vnni == set->vnni);
    KS_ASSERT(ks_cpu_get_ctx(be.dev)->bf16 == set->bf16);
    ks_backend_close(&be);
  }
  ks_alloc_free(a);
}

/* Keys and values are multiplied as whole numbers in fast mode only. */
KS_TEST(isa, codes_of_keys_belong_to_fast_mode)
{
  ks_alloc *a = ks_alloc_new();

  for (int fast = 0; fast < 2; fast++) {
    ks_dev_params params = {
        .alloc = a, .n_thread = 1, .mode = fast != 0 ? KS_COMPUTE_FAST : KS_COMPUTE_EXACT};
    const ks_cpu_set *set = ks_cpu_detect_set();
    ks_backend be = {0};

    KS_ASSERT_OK(ks_backend_open("cpu", &params, &be, NULL));
    KS_ASSERT(ks_cpu_get_ctx(be.dev)->codes ==
              (fast != 0 ? ks_cpu_codes_get(set->isa, set->vnni) : NULL));
    ks_backend_close(&be);
  }
  ks_alloc_free(a);
}

/* Without a name a device takes the best set, and probe names the same one. */
KS_TEST(isa, default_is_the_best)
{
  ks_alloc *a = ks_alloc_new();
  ks_dev_params params = {.alloc = a, .n_thread = 1};
  ks_backend be = {0};
  ks_dev_info opened, probed;
  char why[64];

  KS_ASSERT_OK(ks_backend_open("cpu", &params, &be, NULL));
  be.t->get_info(be.dev, &opened);
  KS_ASSERT_STR(opened.isa, ks_cpu_detect_set()->name);
  KS_ASSERT(be.t->probe(0, &probed, why, sizeof(why)));
  KS_ASSERT_STR(probed.isa, opened.isa);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

KS_TEST_MAIN

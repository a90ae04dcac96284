/* cpu-isa.c - what this processor can do and how much memory the machine has.
 * An instruction set counts only when the system also saves its registers (XCR0).
 * Threads: no shared state. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-isa-internal.h"

#include "engine/cpu-step-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* The bits of cpuid that kernels depend on. */
#define LEAF1_ECX_FMA (1u << 12)
#define LEAF1_ECX_OSXSAVE (1u << 27)
#define LEAF1_ECX_AVX (1u << 28)
#define LEAF1_ECX_F16C (1u << 29)
#define LEAF7_EBX_AVX2 (1u << 5)
#define LEAF7_EBX_AVX512 (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* F, DQ, BW, VL */
#define LEAF7_ECX_AVX512_VNNI (1u << 11)
#define LEAF7_1_EAX_AVX_VNNI (1u << 4)
#define LEAF7_1_EAX_AVX512_BF16 (1u << 5)
#define XCR0_AVX 0x6u     /* xmm, upper halves of ymm */
#define XCR0_AVX512 0xe6u /* and masks, upper halves of zmm, zmm16 to zmm31 */

/* Extensions whose kernels the compiler could build (engine/meson.build). */
#if defined(KS_BUILT_AVXVNNI)
#define BUILT_AVXVNNI true
#else
#define BUILT_AVXVNNI false
#endif
#if defined(KS_BUILT_AVX512VNNI)
#define BUILT_AVX512VNNI true
#else
#define BUILT_AVX512VNNI false
#endif
#if defined(KS_BUILT_AVX512BF16)
#define BUILT_AVX512BF16 true
#else
#define BUILT_AVX512BF16 false
#endif

const ks_cpu_set ks_cpu_sets[KS_N_CPU_SET] = {
    {"scalar", KS_ISA_SCALAR, false, false},     {"avx2", KS_ISA_AVX2, false, false},
    {"avx2+vnni", KS_ISA_AVX2, true, false},     {"avx512", KS_ISA_AVX512, false, false},
    {"avx512+vnni", KS_ISA_AVX512, true, false}, {"avx512+vnni+bf16", KS_ISA_AVX512, true, true},
};

static bool
has_all(uint64_t have, uint64_t bits)
{
  return (have & bits) == bits;
}

bool
ks_cpu_id_supports(const ks_cpu_id *id, const ks_cpu_set *set)
{
  bool wide = set->isa == KS_ISA_AVX512;

  if (set->isa == KS_ISA_SCALAR)
    return true;
  if (!has_all(id->xcr0, wide ? XCR0_AVX512 : XCR0_AVX) ||
      !has_all(id->leaf1_ecx, LEAF1_ECX_OSXSAVE | LEAF1_ECX_AVX | LEAF1_ECX_FMA | LEAF1_ECX_F16C) ||
      !has_all(id->leaf7_ebx, LEAF7_EBX_AVX2 | (wide ? LEAF7_EBX_AVX512 : 0)))
    return false;
  if (set->vnni && wide && !(BUILT_AVX512VNNI && has_all(id->leaf7_ecx, LEAF7_ECX_AVX512_VNNI)))
    return false;
  if (set->vnni && !wide && !(BUILT_AVXVNNI && has_all(id->leaf7_1_eax, LEAF7_1_EAX_AVX_VNNI)))
    return false;
  return !set->bf16 || (BUILT_AVX512BF16 && has_all(id->leaf7_1_eax, LEAF7_1_EAX_AVX512_BF16));
}

const ks_cpu_set *
ks_cpu_id_get_best(const ks_cpu_id *id)
{
  const ks_cpu_set *best = &ks_cpu_sets[0];

  for (size_t i = 1; i < KS_N_CPU_SET; i++)
    if (ks_cpu_id_supports(id, &ks_cpu_sets[i]))
      best = &ks_cpu_sets[i];
  return best;
}

const ks_cpu_set *
ks_cpu_detect_set(void)
{
  ks_cpu_id id = ks_cpu_id_read();

  return ks_cpu_id_get_best(&id);
}

ks_isa
ks_cpu_detect_isa(void)
{
  return ks_cpu_detect_set()->isa;
}

#if defined(__x86_64__)
ks_cpu_id
ks_cpu_id_read(void)
{
  ks_cpu_id id = {0};
  unsigned a, b, c, d, lo, hi;

  if (!__get_cpuid(1, &a, &b, &c, &d))
    return id;
  id.leaf1_ecx = c;
  if (has_all(c, LEAF1_ECX_OSXSAVE)) {
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    id.xcr0 = (uint64_t)hi << 32 | lo;
  }
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return id;
  id.leaf7_ebx = b;
  id.leaf7_ecx = c;
  if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
    id.leaf7_1_eax = a;
  return id;
}

static void
read_cpu_name(char name[static 49])
{
  unsigned regs[12];

  memset(name, 0, 49);
  for (unsigned i = 0; i < 3; i++)
    if (!__get_cpuid(0x80000002u + i, &regs[4 * i], &regs[4 * i + 1], &regs[4 * i + 2],
                     &regs[4 * i + 3]))
      return;
  memcpy(name, regs, sizeof(regs));
}
#else
ks_cpu_id
ks_cpu_id_read(void)
{
  return (ks_cpu_id){0};
}

static void
read_cpu_name(char name[static 49])
{
  name[0] = '\0';
}
#endif

static uint64_t
read_free_bytes(void)
{
  FILE *f = fopen("/proc/meminfo", "re");
  char line[128];
  unsigned long long kib = 0;

  while (f != NULL && fgets(line, sizeof(line), f) != NULL)
    if (strncmp(line, "MemAvailable:", 13) == 0)
      kib = strtoull(line + 13, NULL, 10);
  if (f != NULL)
    fclose(f);
  return kib * 1024;
}

void
ks_cpu_fill_info(ks_dev_info *out)
{
  char name[49];
  const char *begin = name;

  memset(out, 0, sizeof(*out));
  read_cpu_name(name);
  begin += strspn(begin, " ");
  snprintf(out->name, sizeof(out->name), "%s", *begin != '\0' ? begin : "CPU");
  out->total_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  out->free_bytes = read_free_bytes();
}

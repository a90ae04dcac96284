/* cpu-isa.c - what this processor can do and how much memory the machine has.
 * An instruction set counts only when the system also saves its registers (XCR0).
 * Threads: no shared state. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-step-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)
/* The register state that the system saves at a task switch; 0 when it saves none. */
static uint64_t
read_xcr0(void)
{
  unsigned a, b, c, d, lo, hi;

  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_OSXSAVE) == 0)
    return 0;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return (uint64_t)hi << 32 | lo;
}

/* Asked of the processor itself: clang 14's __builtin_cpu_supports does not know this name. */
static bool
has_f16c(void)
{
  unsigned a, b, c, d;

  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

ks_isa
ks_cpu_detect_isa(void)
{
  uint64_t saved = read_xcr0();

  __builtin_cpu_init();
  if ((saved & 0x6) != 0x6 || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !has_f16c())
    return KS_ISA_SCALAR;
  if ((saved & 0xe6) != 0xe6 || !__builtin_cpu_supports("avx512f") ||
      !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq"))
    return KS_ISA_AVX2;
  return KS_ISA_AVX512;
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
ks_isa
ks_cpu_detect_isa(void)
{
  return KS_ISA_SCALAR;
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

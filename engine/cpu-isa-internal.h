/* cpu-isa-internal.h - instruction sets by name, and whether this processor has them.
 * A set is a base (scalar, AVX2, AVX-512) and extensions of it; the names are those of --isa.  No
 * set is simply better than another one: each is supported or it is not, and of those that are the
 * last of the list is taken.  An extension counts only when the kernels for it were built.
 * Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-backend-internal.h"

KS_BEGIN_DECLS

typedef struct ks_cpu_set {
  const char *name;
  ks_isa isa;
  bool vnni; /* dot products of bytes: AVX-VNNI, or AVX512_VNNI with AVX-512 */
  bool bf16; /* dot products of bfloat16 pairs: AVX512_BF16 */
} ks_cpu_set;

#define KS_N_CPU_SET 6u
extern const ks_cpu_set ks_cpu_sets[KS_N_CPU_SET]; /* the last one supported is the best */

/* What the processor answers, so that a test can ask about processors that are not here. */
typedef struct ks_cpu_id {
  uint32_t leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_1_eax; /* zeros elsewhere than on x86-64 */
  uint64_t xcr0;                                         /* registers that the system saves */
} ks_cpu_id;

ks_cpu_id ks_cpu_id_read(void);
bool ks_cpu_id_supports(const ks_cpu_id *id, const ks_cpu_set *set);
const ks_cpu_set *ks_cpu_id_get_best(const ks_cpu_id *id);
/* The best set of this machine. */
const ks_cpu_set *ks_cpu_detect_set(void);

KS_END_DECLS

/* cpu-topology.h - which processors are cores of their own, and which of those are the fast ones.
 * Threads: pure functions of the files they read.  Source: the kernel's sysfs documentation. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/status.h"

#include <sched.h>

KS_BEGIN_DECLS

/* Reads the beginning of a small file of the system, size - 1 bytes at most, as text; false when it
 * is not there or empty. */
bool ks_sys_read_text(const char *path, char *text, size_t size);

/* Physical cores among the allowed processors; where the machine has fast and slow ones (hybrid
 * x86, big.LITTLE) and some fast ones are allowed, those only: a step waits for its slowest member,
 * and the window keeps the others.  sys_root is "/sys", or a made-up tree in tests. */
uint32_t ks_cpu_count_cores(const char *sys_root, const cpu_set_t *allowed);

KS_END_DECLS

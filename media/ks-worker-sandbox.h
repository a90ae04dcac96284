/* ks-worker-sandbox.h - the worker gives up its rights, in two steps that cannot be undone.
 * What is refused afterwards fails with EPERM (or EACCES for a path), so that a library which only
 * tries goes on.  Source: docs/adr/0011-decoder-worker.md.  Threads: call while there is one. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-worker-wire.h"

G_BEGIN_DECLS

/* First: limits of the request (in a build with AddressSanitizer not that of address space, of
 * which it reserves terabytes), no core files, few descriptors, the end together with the program.
 * 0, or errno. */
int ks_sandbox_limit (const KsWireRequest *request);
/* Last, before the file is read: no new privileges, Landlock where the kernel has it (paths stay
 * readable, no other file can be opened), then the seccomp filter.  may_thread: threads can be
 * started, each as confined as the first; never a process.  0, or errno with *out_step. */
int ks_sandbox_confine (const GPtrArray *paths, gboolean may_thread, KsWireStep *out_step);

G_END_DECLS

/* crc32c.h - the checksum of snapshots: CRC-32C (Castagnoli), reflected, eight bytes at a time.
 * The tables are the caller's, so that nothing is shared and nothing has to be set up twice.
 * Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/status.h"

KS_BEGIN_DECLS

typedef struct ks_crc32c {
  uint32_t table[8][256]; /* row r: a byte with r zero bytes behind it */
} ks_crc32c;

void ks_crc32c_init(ks_crc32c *crc);
/* Sum of what value stands for (0 = nothing) with n more bytes behind it. */
uint32_t ks_crc32c_add(const ks_crc32c *crc, uint32_t value, const void *data, size_t n_bytes);

KS_END_DECLS

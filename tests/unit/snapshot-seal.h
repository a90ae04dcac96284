/* snapshot-seal.h - checksums of a snapshot written anew, so that tests reach what lies behind
 * them. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/crc32c.h"

#include <string.h>

/* As docs/formats/snapshot.md has them. */
enum {
  SEAL_HEAD_BYTES = 92,
  SEAL_FRAME_BYTES = 16, /* of a section: kind, length, sum */
  SEAL_LAYOUT = 1,
  SEAL_STATE,
  SEAL_TOKENS,
  SEAL_PINS,
  SEAL_PICTURES,
  SEAL_LENGTHS,
  SEAL_STREAMS
};

static inline void
seal_sum(const ks_crc32c *crc, uint8_t *begin, size_t n_bytes)
{
  const uint32_t sum = ks_crc32c_add(crc, 0, begin, n_bytes);

  for (int i = 0; i < 4; i++)
    begin[n_bytes + (size_t)i] = (uint8_t)(sum >> 8 * i);
}

static inline uint64_t
seal_get(const uint8_t *p, int n)
{
  uint64_t value = 0;

  for (int i = n; i-- > 0;)
    value = value << 8 | p[i];
  return value;
}

/* As far as the sections go; length and magic become right, too. */
static inline void
seal_snapshot(uint8_t *data, size_t n_bytes)
{
  size_t at = SEAL_HEAD_BYTES;
  ks_crc32c crc;

  if (n_bytes < at)
    return;
  ks_crc32c_init(&crc);
  memcpy(data, "KSSNAPSH", 8);
  for (int i = 0; i < 8; i++)
    data[16 + i] = (uint8_t)((uint64_t)n_bytes >> 8 * i);
  seal_sum(&crc, data, at - 4);
  while (n_bytes - at >= SEAL_FRAME_BYTES) {
    const uint64_t length = seal_get(data + at + 4, 8);

    if (length > n_bytes - at - SEAL_FRAME_BYTES)
      return;
    seal_sum(&crc, data + at, (size_t)length + 12);
    at += (size_t)length + SEAL_FRAME_BYTES;
  }
}

/* Bytes of a section; NULL when it is not there. */
static inline uint8_t *
seal_find(uint8_t *data, size_t n_bytes, int kind)
{
  for (size_t at = SEAL_HEAD_BYTES; n_bytes - at >= SEAL_FRAME_BYTES;) {
    if (seal_get(data + at, 4) == (uint64_t)kind)
      return data + at + 12;
    at += (size_t)seal_get(data + at + 4, 8) + SEAL_FRAME_BYTES;
  }
  return NULL;
}

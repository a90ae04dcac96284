/* crc32c.c - see crc32c.h.  A byte's remainder is looked up; that of eight bytes is the sum of
 * eight look-ups, each in the table of its distance from the end. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/crc32c.h"

#define POLYNOMIAL 0x82F63B78u /* reflected */

void
ks_crc32c_init(ks_crc32c *crc)
{
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t value = i;

    for (int bit = 0; bit < 8; bit++)
      value = value >> 1 ^ ((value & 1) != 0 ? POLYNOMIAL : 0);
    crc->table[0][i] = value;
  }
  for (uint32_t i = 0; i < 256; i++)
    for (int row = 1; row < 8; row++) {
      const uint32_t shorter = crc->table[row - 1][i];

      crc->table[row][i] = shorter >> 8 ^ crc->table[0][shorter & 0xFF];
    }
}

static uint32_t
read_u32(const unsigned char *p)
{
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t
ks_crc32c_add(const ks_crc32c *crc, uint32_t value, const void *data, size_t n_bytes)
{
  const unsigned char *p = data;

  value = ~value;
  for (; n_bytes >= 8; n_bytes -= 8, p += 8) {
    const uint32_t low = value ^ read_u32(p), high = read_u32(p + 4);

    value = crc->table[7][low & 0xFF] ^ crc->table[6][low >> 8 & 0xFF] ^
            crc->table[5][low >> 16 & 0xFF] ^ crc->table[4][low >> 24] ^
            crc->table[3][high & 0xFF] ^ crc->table[2][high >> 8 & 0xFF] ^
            crc->table[1][high >> 16 & 0xFF] ^ crc->table[0][high >> 24];
  }
  for (; n_bytes > 0; n_bytes--, p++)
    value = value >> 8 ^ crc->table[0][(value ^ *p) & 0xFF];
  return ~value;
}

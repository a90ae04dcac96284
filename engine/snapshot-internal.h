/* snapshot-internal.h - the format's constants, for snapshot.c (writing) and snapshot-read.c.
 * File: magic, version, order mark, length, label, sum; then every section once and in order: kind,
 * length, bytes, sum.  Source: docs/formats/snapshot.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/crc32c.h"
#include "engine/snapshot.h"

KS_BEGIN_DECLS

#define KS_SNAPSHOT_MAGIC "KSSNAPSH"
#define KS_SNAPSHOT_VERSION 1u
#define KS_SNAPSHOT_ORDER 0x01020304u
#define KS_SNAPSHOT_HEAD_BYTES (8u + 4 + 4 + 8 + 2 * KS_SNAPSHOT_HASH_BYTES + 4)
#define KS_SNAPSHOT_FRAME_BYTES (4u + 8 + 4) /* of a section beside its bytes */

typedef enum ks_snapshot_section {
  KS_SECTION_LAYOUT = 1,
  KS_SECTION_STATE,
  KS_SECTION_TOKENS,
  KS_SECTION_PINS,
  KS_SECTION_PICTURES,
  KS_SECTION_LENGTHS,
  KS_SECTION_STREAMS,
  KS_SECTION_QUERIES,
  KS_SECTION_LOGITS,
  KS_SECTION_NOTES,
  KS_SECTION_END
} ks_snapshot_section;

#define KS_SNAPSHOT_LAYOUT_BYTES (6u * 4)
#define KS_SNAPSHOT_STATE_BYTES (8u * 4 + 5 * 8)
#define KS_SNAPSHOT_TOKEN_BYTES 24u
#define KS_SNAPSHOT_PIN_BYTES 8u
#define KS_SNAPSHOT_PICTURE_BYTES 16u

_Static_assert(sizeof(ks_token_info) == KS_SNAPSHOT_TOKEN_BYTES, "tokens are stored as they lie");
_Static_assert(sizeof(ks_pos_range) == KS_SNAPSHOT_PIN_BYTES, "pins are stored as they lie");

KS_END_DECLS

/* reader.h - a bounded cursor over bytes, and read-only mapped files that survive truncation.
 * Every size read from a file passes through here.
 * A mapping whose file is cut or whose drive goes away raises SIGBUS: a handler, installed with the
 * first mapping, turns that into zero pages and a sticky flag (ks_map_is_lost), in any thread.  It
 * takes signal handlers of the program into account only if they were installed before.
 * Threads: a reader belongs to one thread; a map may be read by several. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/alloc.h"

KS_BEGIN_DECLS

typedef struct ks_reader {
  const unsigned char *data;
  size_t n_bytes, pos;
} ks_reader;

void ks_reader_init(ks_reader *r, const void *data, size_t n_bytes);
/* Little-endian reads; false at the end of the data, the cursor stays. */
KS_CHECK bool ks_reader_u8(ks_reader *r, uint8_t *out);
KS_CHECK bool ks_reader_u16(ks_reader *r, uint16_t *out);
KS_CHECK bool ks_reader_u32(ks_reader *r, uint32_t *out);
KS_CHECK bool ks_reader_u64(ks_reader *r, uint64_t *out);
/* Borrows n bytes inside the data. */
KS_CHECK bool ks_reader_bytes(ks_reader *r, uint64_t n, const unsigned char **out);
KS_CHECK bool ks_reader_skip(ks_reader *r, uint64_t n);
size_t ks_reader_left(const ks_reader *r);

typedef struct ks_map ks_map;

/* Maps the regular file read-only.  Errors: KS_ERR_IO (with the system's words), KS_ERR_FORMAT for
 * anything but a regular file or an empty one, KS_ERR_NOMEM. */
KS_CHECK ks_status ks_map_open(ks_alloc *a, const char *path, ks_map **out, ks_error *err);
void ks_map_close(ks_map *map); /* NULL is allowed */
const unsigned char *ks_map_get_data(const ks_map *map);
size_t ks_map_get_size(const ks_map *map);
const char *ks_map_get_path(const ks_map *map);
/* Gives the memory of the whole pages inside the n_bytes at offset back to the system; reading them
 * again is allowed and fetches them from the file. */
void ks_map_drop_pages(const ks_map *map, size_t offset, size_t n_bytes);
/* True once a read of the mapping failed or the file became shorter; every result computed since
 * the last check is worthless and must become KS_ERR_IO. */
bool ks_map_is_lost(const ks_map *map);

KS_END_DECLS

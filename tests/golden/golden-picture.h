/* golden-picture.h - a PNG of a reference case as RGB bytes, for tests of the engine, which decodes
 * no files.  Threads: none shared. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <stdint.h>

/* out [height, width, 3], 8 bits a channel; the caller frees it.  NULL when the file cannot be
 * read. */
uint8_t *golden_picture_load(const char *path, uint32_t *out_width, uint32_t *out_height);

/* fuzz.h - what a fuzz target defines; libFuzzer or replay.c calls it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Feeds n bytes to the code under test.  Returns 0; a crash, an assertion or a sanitizer's report
 * is the failure.  data is aligned to 16 and ends where its memory block ends. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

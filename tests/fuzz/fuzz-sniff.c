/* fuzz-sniff.c - the first bytes of any file: a decoder is always found, and only by what was read.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-sniff.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  const KsSniff *kind = ks_sniff(data, n);

  if (kind == NULL || kind->what == KS_WIRE_FILE)
    abort();
  /* A text has its decoder in the worker; every other kind names a module. */
  if ((kind->what == KS_WIRE_TEXT) != (kind->module == NULL))
    abort();
  return 0;
}

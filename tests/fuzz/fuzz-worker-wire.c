/* fuzz-worker-wire.c - any packet, in both directions of the decoder worker's protocol.
 * What is taken must be in range, and built again it must be the same packet: no byte is ignored.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-media.h"
#include "media/ks-worker-wire.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void
require(gboolean promise)
{
  if (!promise)
    abort();
}

static void
check_request(const uint8_t *data, size_t n, guint n_fd)
{
  guint8 again[KS_WIRE_MAX_BYTES];
  KsWireRequest request;

  if (!ks_wire_parse_request(data, n, n_fd, &request))
    return;
  require(n_fd == 1 && strlen(request.password) <= KS_WIRE_MAX_PASSWORD);
  require(request.max_side_px > 0 && request.max_side_px <= KS_WIRE_MAX_SIDE_PX);
  require(
      request.operation == KS_WIRE_FRAMES
          ? request.sampling.n_frames >= 1 && request.sampling.n_frames <= KS_MEDIA_MAX_FRAMES &&
                request.sampling.begin_us >= 0 && request.sampling.begin_us <= KS_MEDIA_MAX_TIME_US
          : request.sampling.n_frames == 0);
  require(ks_wire_build_request(&request, again) == n && memcmp(again, data, n) == 0);
}

static void
check_answer(const uint8_t *data, size_t n, guint n_fd)
{
  guint8 again[KS_WIRE_MAX_BYTES];
  KsWireAnswer answer;

  if (!ks_wire_parse_answer(data, n, n_fd, &answer))
    return;
  if (answer.type == KS_WIRE_ANSWER_TEXT)
    require(n_fd == 1 && answer.n_bytes <= KS_MEDIA_MAX_TEXT_BYTES &&
            memchr(answer.encoding, 0, sizeof answer.encoding) != NULL);
  else if (answer.type == KS_WIRE_ANSWER_PIXELS)
    require(n_fd == 1 && answer.n_bytes == UINT64_C(4) * answer.width_px * answer.height_px &&
            answer.width_px <= KS_WIRE_MAX_SIDE_PX && answer.height_px <= KS_WIRE_MAX_SIDE_PX &&
            answer.index < KS_MEDIA_MAX_FRAMES && answer.time_us >= 0);
  else if (answer.type == KS_WIRE_ANSWER_VIDEO)
    require(n_fd == 0 && answer.n_frames > 0 && answer.duration_us >= 0 &&
            answer.full_width_px > 0 && answer.full_width_px <= G_MAXINT);
  else if (answer.type == KS_WIRE_ANSWER_PART)
    require(n_fd == 1 && answer.n_bytes > 0 && answer.n_bytes <= KS_WIRE_MAX_PART_BYTES);
  else
    require(n_fd == 0 && answer.n_done <= answer.n_total);
  require(ks_wire_build_answer(&answer, again) == n && memcmp(again, data, n) == 0);
}

/* The first byte is the number of descriptors; more than a packet can hold is cut like on a
 * socket. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  size_t n_packet;

  if (n == 0)
    return 0;
  n_packet = n - 1 < KS_WIRE_MAX_BYTES ? n - 1 : KS_WIRE_MAX_BYTES;
  check_request(data + 1, n_packet, data[0] % 3);
  check_answer(data + 1, n_packet, data[0] % 3);
  return 0;
}

// peer-mtmd.cpp - the peer's side of the vision measurement: the tower of llama.cpp's mtmd.
// Usage: peer-mtmd MMPROJ THREADS WIDTH HEIGHT FLASH(0|1); one line "encode" on stdin = one picture
// of WIDTH x HEIGHT as the tower takes it, "rss" = its resident size; a line of JSON answers.
// Built by build-peer.sh, never part of the project's own build or tests.
// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/bench/speed-server.h"

#include "clip-impl.h"
#include "clip.h"

#include <vector>

static void
quiet(enum ggml_log_level level, const char *text, void *)
{
  if (level == GGML_LOG_LEVEL_ERROR)
    fputs(text, stderr);
}

int
main(int argc, char **argv)
{
  char line[64];
  clip_context_params params{};
  clip_image_f32 image;
  std::vector<float> out, pixels;

  if (argc != 6) {
    fprintf(stderr, "usage: peer-mtmd MMPROJ THREADS WIDTH HEIGHT FLASH\n");
    return 2;
  }
  mtmd_log_set(quiet, nullptr);
  params.flash_attn_type = argv[5][0] == '1' ? CLIP_FLASH_ATTN_TYPE_ENABLED : CLIP_FLASH_ATTN_TYPE_DISABLED;
  params.image_min_tokens = params.image_max_tokens = -1;
  clip_ctx *ctx = clip_init(argv[1], params).ctx_v;
  if (ctx == nullptr)
    return 1;
  const int width = atoi(argv[3]), height = atoi(argv[4]);
  image.set_size({width, height}, false, false);
  pixels.resize((size_t)width * height * 3);
  for (size_t i = 0; i < pixels.size(); i++)
    pixels[i] = (float)(i * 7919 % 511) / 255 - 1;
  image.cpy_buf(pixels);
  while (fgets(line, sizeof line, stdin) != nullptr) {
    if (strncmp(line, "encode", 6) == 0) {
      const double start = speed_now_ms();

      if (!clip_image_encode(ctx, atoi(argv[2]), &image, out)) {
        fprintf(stderr, "encoding failed\n");
        return 1;
      }
      printf("{\"ms\": %.3f, \"tokens\": %d}\n", speed_now_ms() - start, clip_n_output_tokens(ctx, &image));
    } else if (strncmp(line, "rss", 3) == 0) {
      speed_print_rss();
    } else {
      break;
    }
    fflush(stdout);
  }
  clip_free(ctx);
  return 0;
}

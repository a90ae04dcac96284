/* speed-vision.c - the engine's side of the vision measurement: one tower, one picture.
 * Usage: speed-vision MMPROJ THREADS WIDTH HEIGHT exact|fast; one line "encode" on stdin = one
 * encoding, answered by a line of JSON with its time and the resident size.  The picture has the
 * size that the tower takes, so that no resize is measured.  See compare-vision.py. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision.h"
#include "tests/bench/speed-server.h"

typedef struct side {
  ks_alloc *alloc;
  ks_backend be;
  ks_vision *vision;
  ks_vision_plan plan;
  ks_vision_input *input;
  ks_error err;
} side;

/* A picture without meaning that fills every colour. */
static ks_status
side_make_input(side *s, uint32_t width, uint32_t height)
{
  const ks_vision_prep *prep = &ks_vision_get_shape(s->vision)->prep;
  ks_vision_limits limits = {.no_split = true};
  size_t n = (size_t)width * height * 3;
  uint8_t *rgb = malloc(n);
  ks_status st;

  if (rgb == NULL)
    return ks_fail(&s->err, KS_ERR_NOMEM, "no memory");
  for (size_t i = 0; i < n; i++)
    rgb[i] = (uint8_t)(i * 7919 % 256);
  st = ks_vision_plan_picture(prep, &limits, width, height, &s->plan, &s->err);
  if (st == KS_OK && (s->plan.view_width != width || s->plan.view_height != height))
    st = ks_fail(&s->err, KS_ERR_ARG, "the tower takes %u x %u instead", s->plan.view_width,
                 s->plan.view_height);
  if (st == KS_OK)
    st = ks_vision_input_new(s->alloc, prep, &s->plan, &(ks_rgb){rgb, width, height}, 1, &s->input,
                             &s->err);
  free(rgb);
  return st;
}

static ks_status
side_open(side *s, char **argv)
{
  ks_dev_params dev = {.n_thread = (uint32_t)strtoul(argv[2], NULL, 10),
                       .mode = strcmp(argv[5], "fast") == 0 ? KS_COMPUTE_FAST : KS_COMPUTE_EXACT};

  dev.alloc = s->alloc = ks_alloc_new();
  if (s->alloc == NULL)
    return ks_fail(&s->err, KS_ERR_NOMEM, "no memory");
  if (ks_backend_open("cpu", &dev, &s->be, &s->err) != KS_OK ||
      ks_vision_open(s->alloc, argv[1], &s->be, &s->vision, &s->err) != KS_OK)
    return s->err.status;
  return side_make_input(s, (uint32_t)strtoul(argv[3], NULL, 10),
                         (uint32_t)strtoul(argv[4], NULL, 10));
}

static ks_status
side_encode(side *s)
{
  ks_vision_embeds embeds = {0};
  double start = speed_now_ms();
  ks_status st = ks_vision_encode(s->vision, s->input, NULL, &embeds, &s->err);

  if (st == KS_OK) {
    printf("{\"ms\": %.3f, \"tokens\": %u, \"scratch_bytes\": %llu, \"weight_bytes\": %llu}\n",
           speed_now_ms() - start, embeds.n_tok,
           (unsigned long long)ks_vision_count_scratch_bytes(s->vision, &s->plan),
           (unsigned long long)ks_vision_get_weight_bytes(s->vision));
    fflush(stdout);
  }
  ks_vision_embeds_clear(&embeds);
  return st;
}

static void
side_close(side *s)
{
  ks_vision_input_free(s->input);
  ks_vision_close(s->vision);
  ks_backend_close(&s->be);
  ks_alloc_free(s->alloc);
}

int
main(int argc, char **argv)
{
  side s = {0};
  char line[64];
  ks_status st;

  if (argc != 6) {
    fprintf(stderr, "usage: speed-vision MMPROJ THREADS WIDTH HEIGHT exact|fast\n");
    return 2;
  }
  st = side_open(&s, argv);
  while (st == KS_OK && fgets(line, sizeof line, stdin) != NULL) {
    if (strncmp(line, "encode", 6) == 0)
      st = side_encode(&s);
    else if (strncmp(line, "rss", 3) == 0)
      speed_print_rss();
    else
      break;
    fflush(stdout);
  }
  if (st != KS_OK)
    fprintf(stderr, "%s\n", s.err.text);
  side_close(&s);
  return st == KS_OK ? 0 : 1;
}

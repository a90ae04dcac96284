/* test-vision-tiles.c - a tower in pieces: however small the tiles, however few heads at a time and
 * however little memory there is, the embeddings are those of one piece; and the memory is what was
 * counted before.  Towers are those of the golden cases; the picture is made here. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-internal.h"
#include "tests/ks-test.h"
#include "tests/unit/tiny-tower.h"

#define WIDTH 310u
#define HEIGHT 250u
#define MAX_PIXELS (UINT64_C(1) << 24)

typedef struct fixture {
  ks_alloc *alloc;
  ks_backend be;
  ks_vision *vision;
  ks_vision_plan plan;
  ks_vision_input *in;
  unsigned char *bytes; /* of a tower that was made here */
} fixture;

static void
open_device(fixture *f, ks_compute_mode mode)
{
  ks_dev_params params = {.mode = mode, .n_thread = 2};

  *f = (fixture){.alloc = ks_alloc_new()};
  params.alloc = f->alloc;
  KS_ASSERT_OK(ks_backend_open("cpu", &params, &f->be, NULL));
}

static void
make_input(fixture *f)
{
  const ks_vision_limits limits = {.min_pixels = 784, .max_pixels = MAX_PIXELS};
  uint8_t *data = malloc((size_t)3 * WIDTH * HEIGHT);

  KS_ASSERT(data != NULL);
  for (size_t i = 0; i < (size_t)3 * WIDTH * HEIGHT; i++)
    data[i] = (uint8_t)(i * 2654435761u >> 23 ^ i / 97);
  KS_ASSERT_OK(ks_vision_plan_picture(&f->vision->shape.prep,
                                      f->vision->has_rope ? &limits : &(ks_vision_limits){0}, WIDTH,
                                      HEIGHT, &f->plan, NULL));
  KS_ASSERT_OK(ks_vision_input_new(f->alloc, &f->vision->shape.prep, &f->plan,
                                   &(ks_rgb){data, WIDTH, HEIGHT}, 1, &f->in, NULL));
  free(data);
}

static void
open_fixture(fixture *f, const char *folder)
{
  const char *root = getenv("KS_GOLDEN_DIR");
  char path[512];
  ks_error err = {0};

  open_device(f, KS_COMPUTE_EXACT);
  if (root == NULL || *root == '\0')
    root = getenv("KS_GOLDEN_DEFAULT");
  snprintf(path, sizeof path, "%s/%s/mmproj.gguf", root, folder);
  if (ks_vision_open(f->alloc, path, &f->be, &f->vision, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  make_input(f);
}

static void
close_fixture(fixture *f)
{
  ks_vision_input_free(f->in);
  ks_vision_close(f->vision);
  ks_mem_free(f->bytes);
  ks_backend_close(&f->be);
  ks_alloc_free(f->alloc);
}

static double
get_rms(const float *x, const float *minus, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++) {
    const double d = (double)x[i] - (minus != NULL ? (double)minus[i] : 0);

    sum += d * d;
  }
  return sqrt(sum / (double)n);
}

static ks_vision_memory
get_memory(const fixture *f)
{
  ks_vision_memory m;

  KS_ASSERT_OK(ks_vision_memory_init(&m, f->vision, &f->plan, NULL));
  return m;
}

static bool
is_same_way(const ks_vision_memory *a, const ks_vision_memory *b)
{
  return a->x_dtype == b->x_dtype && a->o_dtype == b->o_dtype && a->kv_dtype == b->kv_dtype &&
         a->group == b->group;
}

/* How far the embeddings lie from want, relative to their own size. */
static double
encode_and_compare(fixture *f, const ks_vision_embeds *want)
{
  const size_t n = (size_t)want->n_tok * want->n_embd * (1 + want->n_deep);
  ks_vision_embeds e = {0};
  double off;

  KS_ASSERT_OK(ks_vision_encode(f->vision, f->in, NULL, &e, NULL));
  KS_ASSERT_EQ(e.n_tok, want->n_tok);
  off = get_rms(e.data, want->data, n) / get_rms(want->data, NULL, n);
  ks_vision_embeds_clear(&e);
  return off;
}

/* With tiles of tile_rows, from much memory to very little.  Returns how many ways were gone. */
static int
check_ways(fixture *f, uint32_t tile_rows, const ks_vision_embeds *want, double most)
{
  ks_vision_memory last = {0}, m;
  int n_way = 0;

  f->vision->whole_rows = f->vision->tile_rows = tile_rows;
  for (uint64_t limit = UINT64_C(1) << 30; limit > 1000; limit -= limit / 50) {
    double off;

    f->vision->scratch_limit = limit;
    m = get_memory(f);
    if (n_way > 0 && is_same_way(&m, &last))
      continue;
    off = encode_and_compare(f, want);
    printf("# tiles of %u, x %s, kept %s, keys %s, %u heads, %zu bytes: off by %.2g\n", tile_rows,
           ks_dtype_get_info(m.x_dtype)->name, ks_dtype_get_info(m.o_dtype)->name,
           ks_dtype_get_info(m.kv_dtype)->name, m.group, m.device_bytes, off);
    if (m.x_dtype == KS_DTYPE_F32 && m.kv_dtype == KS_DTYPE_F32)
      KS_ASSERT(off < most);
    else
      KS_ASSERT(off < most + (m.x_dtype == KS_DTYPE_F32 ? 8e-3 : 1.2e-2));
    last = m;
    n_way++;
  }
  return n_way;
}

static void
check_sizes(fixture *f, int n_least, double most)
{
  ks_vision_embeds want = {0};
  int n_way = 0;

  KS_ASSERT_OK(ks_vision_encode(f->vision, f->in, NULL, &want, NULL));
  for (uint32_t rows = 16; rows <= 64; rows += 48)
    n_way += check_ways(f, rows, &want, most);
  KS_ASSERT_GE(n_way, n_least);
  ks_vision_embeds_clear(&want);
}

static void
check_tower(const char *folder, int n_least)
{
  fixture f;

  open_fixture(&f, folder);
  check_sizes(&f, n_least, 2e-5);
  close_fixture(&f);
}

/* Windows beside blocks that see everything, partial windows at both edges. */
KS_TEST(vision_tiles, qwen25vl)
{
  check_tower("qwen2.5-vl", 6);
}

/* Every block sees everything; deepstack and sampled positions go tile by tile. */
KS_TEST(vision_tiles, qwen3vl)
{
  check_tower("qwen3-vl", 6);
}

/* Heads whose columns are whole blocks of 8-bit codes. */
KS_TEST(vision_tiles, idefics3)
{
  check_tower("idefics3", 6);
}

/* Tiles of whole rows of pooled cells. */
KS_TEST(vision_tiles, gemma3)
{
  check_tower("gemma3-vision", 4);
}

/* Rows of quantised matrices by heads.  Small tiles meet them in f32, large ones in 8 bits: what
 * that changes is the measure. */
KS_TEST(vision_tiles, quantised_weights)
{
  const tower_spec spec = {.projector = "qwen3vl_merger",
                           .n_embd = 64,
                           .n_ff = 96,
                           .n_head = 4,
                           .n_layer = 2,
                           .patch = 16,
                           .tile = 64,
                           .merge = 2,
                           .n_out = 64,
                           .type = KS_DTYPE_Q8_0};
  size_t n = 0;
  ks_gguf *g = NULL;
  fixture f;

  open_device(&f, KS_COMPUTE_FAST);
  KS_ASSERT(tower_new_bytes(f.alloc, &spec, &f.bytes, &n));
  KS_ASSERT_OK(ks_gguf_open_bytes(f.alloc, f.bytes, n, &g, NULL));
  KS_ASSERT_OK(ks_vision_open_gguf(f.alloc, g, &f.be, &f.vision, NULL));
  make_input(&f);
  check_sizes(&f, 6, 1.5e-2);
  close_fixture(&f);
}

/* VisionZip chooses the same tokens however the work is cut: attention is summed over tiles of
 * queries and groups of heads, keys over groups of heads. */
KS_TEST(vision_tiles, zip)
{
  static const char *const folders[] = {"qwen2.5-vl", "qwen3-vl", "gemma3-vision"};
  const ks_vision_zip zip = {5, 3};

  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    ks_vision_embeds want = {0};
    uint32_t n_group = 0;
    fixture f;

    open_fixture(&f, folders[i]);
    ks_vision_set_zip(f.vision, &zip);
    KS_ASSERT_OK(ks_vision_encode(f.vision, f.in, NULL, &want, NULL));
    KS_ASSERT(want.n_tok == 8 && want.places != NULL);
    f.vision->whole_rows = f.vision->tile_rows = 16;
    for (uint64_t limit = UINT64_C(1) << 24; limit > 1000; limit -= limit / 20) {
      ks_vision_embeds e = {0};

      f.vision->scratch_limit = limit;
      if (get_memory(&f).kv_dtype != KS_DTYPE_F32)
        break;
      KS_ASSERT_OK(ks_vision_encode(f.vision, f.in, NULL, &e, NULL));
      KS_ASSERT(memcmp(e.places, want.places, want.n_tok * sizeof *e.places) == 0);
      KS_ASSERT(get_rms(e.data, want.data, (size_t)8 * e.n_embd) <
                2e-5 * get_rms(want.data, NULL, (size_t)8 * e.n_embd));
      ks_vision_embeds_clear(&e);
      n_group |= 1u << get_memory(&f).group;
    }
    printf("# %s: groups of heads %x\n", folders[i], n_group);
    KS_ASSERT((n_group & (n_group - 1)) != 0);
    ks_vision_embeds_clear(&want);
    close_fixture(&f);
  }
}

/* What is taken at once is what was counted, with VisionZip as well. */
KS_TEST(vision_tiles, counted)
{
  static const char *const folders[] = {"qwen2.5-vl", "qwen3-vl", "idefics3", "qwen3-vl"};

  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
    for (uint32_t rows = 64; rows <= 1280; rows += 1216) {
      const ks_vision_zip zip = {i == 3 ? 20 : 0, 4};
      ks_vision_embeds e = {0};
      uint64_t before, counted, peak, result;
      fixture f;

      open_fixture(&f, folders[i]);
      ks_vision_set_zip(f.vision, &zip);
      f.vision->whole_rows = f.vision->tile_rows = rows;
      counted = ks_vision_count_scratch_bytes(f.vision, &f.plan);
      before = ks_alloc_get_bytes(f.alloc, KS_MEM_VISION);
      KS_ASSERT_OK(ks_vision_encode(f.vision, f.in, NULL, &e, NULL));
      result = (uint64_t)e.n_tok * e.n_embd * (1 + e.n_deep) * sizeof(float);
      peak = ks_alloc_get_peak_bytes(f.alloc, KS_MEM_VISION) - before - result;
      KS_ASSERT_LE(peak, counted + 4096);
      KS_ASSERT_LE(counted, peak + peak / 20);
      ks_vision_embeds_clear(&e);
      close_fixture(&f);
    }
}

/* What is told of the rounding decides the bits: with less scratch the embeddings of one number are
 * the same, however many heads are in memory at a time, and 0 is what much scratch gives. */
KS_TEST(vision_tiles, rounding_decides_the_bits)
{
  static const char *const folders[] = {"qwen2.5-vl", "qwen3-vl", "idefics3", "gemma3-vision"};

  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    ks_vision_embeds first[KS_VISION_N_ROUNDING] = {{.n_tok = 0}};
    uint32_t n_rounding = 0, n_again = 0;
    ks_vision_memory last = {0};
    fixture f;

    open_fixture(&f, folders[i]);
    f.vision->whole_rows = f.vision->tile_rows = 16;
    for (uint64_t limit = UINT64_C(1) << 30; limit > 1000; limit -= limit / 50) {
      const ks_vision_memory m = (f.vision->scratch_limit = limit, get_memory(&f));
      const uint32_t rounding = ks_vision_get_rounding(f.vision, &f.plan);
      ks_vision_embeds e = {0}, *want = &first[rounding];

      if (is_same_way(&m, &last))
        continue;
      last = m;
      KS_ASSERT(rounding < KS_VISION_N_ROUNDING);
      KS_ASSERT_EQ(rounding == 0, m.x_dtype == KS_DTYPE_F32 && m.kv_dtype == KS_DTYPE_F32);
      KS_ASSERT_OK(ks_vision_encode(f.vision, f.in, NULL, &e, NULL));
      if (want->n_tok == 0) {
        *want = e;
        n_rounding++;
        continue;
      }
      KS_ASSERT(memcmp(e.data, want->data,
                       (size_t)e.n_tok * e.n_embd * (1 + e.n_deep) * sizeof *e.data) == 0);
      ks_vision_embeds_clear(&e);
      n_again++;
    }
    printf("# %s: %u roundings, %u times the same again\n", folders[i], n_rounding, n_again);
    KS_ASSERT(n_rounding >= 3 && n_again >= 1);
    for (uint32_t k = 0; k < KS_VISION_N_ROUNDING; k++)
      ks_vision_embeds_clear(&first[k]);
    close_fixture(&f);
  }
}

/* Most bytes for a picture of width x height pixels in a tower of this shape. */
static uint64_t
count_for(const ks_vision *shape, uint32_t width, uint32_t height, ks_vision_memory *m)
{
  const ks_vision_prep *prep = &shape->shape.prep;
  ks_vision_plan plan;

  KS_ASSERT_OK(ks_vision_plan_picture(prep, &(ks_vision_limits){0}, width, height, &plan, NULL));
  KS_ASSERT_OK(ks_vision_memory_init(m, shape, &plan, NULL));
  return ks_vision_count_scratch_bytes(shape, &plan);
}

static ks_vision
real_shape(ks_vision_family family, uint32_t n_embd, uint32_t n_ff, uint32_t patch)
{
  ks_vision v = {.has_rope = true,
                 .wa_pattern = 1,
                 .scratch_limit = KS_VISION_SCRATCH_BYTES,
                 .whole_rows = 1280,
                 .tile_rows = 512};

  v.shape = (ks_vision_shape){
      .family = family, .n_embd = n_embd, .n_ff = n_ff, .n_layer = 32, .n_head = 16, .n_out = 3584};
  v.shape.prep = (ks_vision_prep){.family = family,
                                  .patch = patch,
                                  .merge = 2,
                                  .min_pixels = 3136,
                                  .max_pixels = 16777216,
                                  .mean = {0.5f, 0.5f, 0.5f},
                                  .std = {0.5f, 0.5f, 0.5f},
                                  .filter = KS_RESAMPLE_BICUBIC};
  v.projector.w0 = (ks_weight){.data = 1, .n_in = 4 * n_embd, .n_out = 4 * n_embd};
  v.projector.w1 = (ks_weight){.data = 1, .n_in = 4 * n_embd, .n_out = 3584};
  return v;
}

/* A photo of 12 megapixels at the real widths stays under 300 MiB, and below a size where the
 * residual stream need not be halved nothing is. */
KS_TEST(vision_tiles, photo_of_12_megapixels)
{
  ks_vision qwen25 = real_shape(KS_VISION_QWEN25VL, 1280, 3456, 14);
  ks_vision qwen3 = real_shape(KS_VISION_QWEN3VL, 1152, 4304, 16);
  ks_vision_memory m;

  qwen25.wa_pattern = 8;
  qwen25.window = 4;
  KS_ASSERT_LE(count_for(&qwen25, 4000, 3000, &m), UINT64_C(300) << 20);
  printf("# Qwen2.5-VL: %zu bytes, %u heads\n", m.device_bytes + m.host_bytes, m.group);
  KS_ASSERT_EQ(m.x_dtype, KS_DTYPE_F16);
  KS_ASSERT_LE(count_for(&qwen3, 4000, 3000, &m), UINT64_C(300) << 20);
  printf("# Qwen3-VL: %zu bytes, %u heads\n", m.device_bytes + m.host_bytes, m.group);
  KS_ASSERT_LE(count_for(&qwen25, 2000, 1500, &m), UINT64_C(300) << 20);
  KS_ASSERT_EQ(m.x_dtype, KS_DTYPE_F32);
  KS_ASSERT_EQ(m.kv_dtype, KS_DTYPE_F32);
}

KS_TEST_MAIN

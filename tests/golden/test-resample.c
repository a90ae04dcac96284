/* test-resample.c - resize, size rules and whole preparations against Pillow and a second writing
 * of the rules in Python (make-resample.py).  Source pictures come from a formula; of large results
 * a hash is stored.  A case is any folder whose expected.json lists "resizes". */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-prep.h"
#include "tests/golden/golden-case.h"
#include "tests/ks-test.h"

typedef void (*case_fn)(const golden_case *c, ks_alloc *a);

/* Runs fn on every case of this kind. */
static void
each_case(case_fn fn)
{
  golden_list list = golden_list_new("KS_GOLDEN_DIR", "KS_GOLDEN_DEFAULT");
  size_t n_case = 0;

  KS_ASSERT(list.n > 0);
  for (size_t i = 0; i < list.n; i++) {
    char error[512];
    golden_case *c = golden_case_load(list.folders[i], error, sizeof error);

    if (c == NULL)
      KS_FAIL("%s", error);
    if (cJSON_GetObjectItemCaseSensitive(golden_case_get_json(c), "resizes") != NULL) {
      ks_alloc *a = ks_alloc_new();

      fn(c, a);
      ks_alloc_free(a); /* asserts that nothing is left */
      n_case++;
    }
    golden_case_free(c);
  }
  golden_list_free(&list);
  if (n_case == 0)
    KS_SKIP("the folder has cases, but none of resized pictures");
}

static uint32_t
get_size(const cJSON *entry, const char *key, int i)
{
  return (uint32_t)cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(entry, key), i)->valuedouble;
}

static const char *
get_text(const cJSON *entry, const char *key)
{
  return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, key));
}

/* The formula of make-resample.py. */
static ks_rgb
make_picture(uint32_t width, uint32_t height)
{
  uint8_t *data = malloc((size_t)width * height * 3), *p = data;

  KS_ASSERT(data != NULL);
  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++)
      for (uint32_t c = 0; c < 3; c++)
        *p++ = (uint8_t)(x * 37 + y * 101 + c * 59 + ((x * y) >> 3) * 11 + ((x ^ y) & 16) * 9);
  return (ks_rgb){data, width, height};
}

/* entry holds the name of an array, or the FNV-1a hash of the bytes. */
static void
check_bytes(const golden_case *c, const cJSON *entry, const uint8_t *got, size_t n)
{
  const char *name = get_text(entry, "array"), *want_hash = get_text(entry, "hash");
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  char text[32];
  size_t n_want = 0;

  if (name != NULL) {
    const uint8_t *want = golden_case_get_u8(c, name, &n_want);

    KS_ASSERT(want != NULL);
    KS_ASSERT_EQ(n_want, n);
    for (size_t i = 0; i < n; i++)
      if (got[i] != want[i])
        KS_FAIL("%s: byte %zu is %u, want %u", name, i, got[i], want[i]);
    return;
  }
  KS_ASSERT(want_hash != NULL);
  for (size_t i = 0; i < n; i++)
    hash = (hash ^ got[i]) * UINT64_C(0x100000001b3);
  snprintf(text, sizeof text, "%016" PRIx64, hash);
  KS_ASSERT_STR(text, want_hash);
}

static void
check_resizes(const golden_case *c, ks_alloc *a)
{
  static const char *const names[] = {"bilinear", "bicubic", "lanczos"};
  const cJSON *entry;

  cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(golden_case_get_json(c), "resizes"))
  {
    uint32_t width = get_size(entry, "to", 0), height = get_size(entry, "to", 1);
    ks_rgb src = make_picture(get_size(entry, "from", 0), get_size(entry, "from", 1));
    uint8_t *out = malloc((size_t)width * height * 3);
    unsigned filter = 0;

    while (strcmp(names[filter], get_text(entry, "filter")) != 0)
      filter++;
    KS_ASSERT(out != NULL);
    KS_ASSERT_OK(ks_rgb_resize(a, &src, (ks_resample)filter, width, height, out, NULL));
    check_bytes(c, entry, out, (size_t)width * height * 3);
    free(out);
    free((void *)src.data);
  }
}

/* Shrinking, enlarging, one side only, single pixels, strips: not one byte may differ. */
KS_TEST(resample, equals_pillow)
{
  each_case(check_resizes);
}

static double
get_number(const cJSON *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

  return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static ks_vision_prep
read_rule(const cJSON *rule)
{
  static const ks_resample filters[KS_N_VISION_FAMILY] = {
      [KS_VISION_IDEFICS3] = KS_RESAMPLE_LANCZOS, [KS_VISION_LLAVA] = KS_RESAMPLE_BICUBIC,
      [KS_VISION_GEMMA3] = KS_RESAMPLE_BILINEAR,  [KS_VISION_QWEN2VL] = KS_RESAMPLE_BICUBIC,
      [KS_VISION_QWEN25VL] = KS_RESAMPLE_BICUBIC, [KS_VISION_QWEN3VL] = KS_RESAMPLE_BICUBIC};
  ks_vision_prep prep = {.patch = (uint32_t)get_number(rule, "patch"),
                         .merge = (uint32_t)get_number(rule, "merge"),
                         .tile = (uint32_t)get_number(rule, "tile"),
                         .longest = (uint32_t)get_number(rule, "longest"),
                         .min_pixels = (uint64_t)get_number(rule, "min"),
                         .max_pixels = (uint64_t)get_number(rule, "max")};

  while (strcmp(ks_vision_family_get_name(prep.family), get_text(rule, "projector")) != 0)
    prep.family = (ks_vision_family)(prep.family + 1);
  prep.filter = filters[prep.family];
  for (int i = 0; i < 3; i++) {
    prep.mean[i] = (float)cJSON_GetArrayItem(cJSON_GetObjectItem(rule, "mean"), i)->valuedouble;
    prep.std[i] = (float)cJSON_GetArrayItem(cJSON_GetObjectItem(rule, "std"), i)->valuedouble;
  }
  return prep;
}

/* row: width, height, then size, tile columns and rows, views, tokens; zeros = refused. */
static void
check_plan(const char *name, const ks_vision_prep *prep, const int32_t *row)
{
  ks_vision_plan p;
  ks_error err = {0};
  ks_status st = ks_vision_plan_picture(prep, NULL, (uint32_t)row[0], (uint32_t)row[1], &p, &err);

  if (row[2] == 0) {
    KS_ASSERT_EQ(st, KS_ERR_UNSUPPORTED);
    KS_ASSERT(strstr(err.text, "crop it") != NULL);
    return;
  }
  KS_ASSERT_EQ(st, KS_OK);
  if (p.resized_width != (uint32_t)row[2] || p.resized_height != (uint32_t)row[3] ||
      p.tile_cols != (uint32_t)row[4] || p.tile_rows != (uint32_t)row[5] ||
      p.n_view != (uint32_t)row[6] || p.n_tok != (uint32_t)row[7])
    KS_FAIL(
        "%s, %d x %d: %u x %u, %u x %u tiles, %u views, %u tokens; want %d x %d, %d x %d, %d, %d",
        name, row[0], row[1], p.resized_width, p.resized_height, p.tile_cols, p.tile_rows, p.n_view,
        p.n_tok, row[2], row[3], row[4], row[5], row[6], row[7]);
}

static void
check_plans(const golden_case *c, ks_alloc *a)
{
  const cJSON *rule;

  (void)a;
  cJSON_ArrayForEach(rule, cJSON_GetObjectItemCaseSensitive(golden_case_get_json(c), "rules"))
  {
    ks_vision_prep prep = read_rule(rule);
    char name[96];
    const golden_array *rows;

    snprintf(name, sizeof name, "plans.%s", rule->string);
    rows = golden_case_find(c, name);
    KS_ASSERT(rows != NULL && rows->dtype == GOLDEN_I32 && rows->shape[1] == 8);
    for (size_t i = 0; i < rows->shape[0]; i++)
      check_plan(rule->string, &prep, (const int32_t *)rows->data + i * 8);
  }
}

/* Every family's size rule gives the reference's sides, tiles and tokens, or refuses where it does:
 * single pixels, strips of 4000, photographs over the cap, 120 random sizes. */
KS_TEST(resample, size_rules)
{
  each_case(check_plans);
}

/* The bytes behind the normalised values of all views. */
static uint8_t *
read_views(const ks_vision_input *in, size_t *out_n)
{
  const ks_vision_prep *prep = ks_vision_input_get_prep(in);
  const ks_vision_plan *plan = ks_vision_input_get_plan(in);
  size_t plane = (size_t)plan->view_width * plan->view_height;
  float *pixels = malloc(plane * 3 * sizeof(*pixels));
  uint8_t *bytes = malloc(plane * 3 * plan->n_view), *p = bytes;

  KS_ASSERT(pixels != NULL && bytes != NULL);
  for (uint32_t view = 0; view < plan->n_view; view++) {
    ks_vision_input_get_pixels(in, view, 0, pixels);
    for (size_t i = 0; i < plane; i++)
      for (size_t k = 0; k < 3; k++) {
        double value = ((double)pixels[k * plane + i] * prep->std[k] + prep->mean[k]) * 255;

        KS_ASSERT_NEAR(value, round(value), 1e-3);
        *p++ = (uint8_t)lround(value);
      }
  }
  free(pixels);
  *out_n = plane * 3 * plan->n_view;
  return bytes;
}

static void
check_views(const golden_case *c, ks_alloc *a)
{
  const cJSON *json = golden_case_get_json(c), *entry;

  cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(json, "views"))
  {
    const cJSON *rules = cJSON_GetObjectItemCaseSensitive(json, "rules");
    ks_vision_prep prep =
        read_rule(cJSON_GetObjectItemCaseSensitive(rules, get_text(entry, "rule")));
    ks_rgb src = make_picture(get_size(entry, "from", 0), get_size(entry, "from", 1));
    ks_vision_plan plan;
    ks_vision_input *in = NULL;
    uint8_t *bytes;
    size_t n;

    KS_ASSERT_OK(ks_vision_plan_picture(&prep, NULL, src.width, src.height, &plan, NULL));
    KS_ASSERT_OK(ks_vision_input_new(a, &prep, &plan, &src, 1, &in, NULL));
    bytes = read_views(in, &n);
    check_bytes(c, entry, bytes, n);
    free(bytes);
    free((void *)src.data);
    ks_vision_input_free(in);
  }
}

/* Two resizes and tiles, a padded square, a stretched one, free sizes: the views of the reference,
 * byte for byte. */
KS_TEST(resample, views)
{
  each_case(check_views);
}

KS_TEST_MAIN

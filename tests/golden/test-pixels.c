/* test-pixels.c - the pictures of the cases become the pixel tensors of the reference: size rule,
 * resize, tiles, normalisation, order of patches.
 * A case is any folder with an mmproj.gguf.  The cases allow a wide tolerance where a picture is
 * resized; a resize that equals the reference's needs none, so all are held to rounding. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-prep.h"
#include "tests/golden/golden-case.h"
#include "tests/golden/golden-picture.h"
#include "tests/ks-test.h"

#define TOLERANCE 1e-5 /* one step of 8 bits is above 0.0078 */

typedef struct fixture {
  golden_case *c;
  const cJSON *image; /* its entry in the case's "images" */
  const char *name;   /* "img0" */
  ks_alloc *alloc;
  ks_vision_prep prep;
  ks_vision_plan plan;
  ks_vision_input *in;
} fixture;

static double
get_number(const cJSON *object, const char *key, double fallback)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

  return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}

static double
get_element(const cJSON *object, const char *key, int i)
{
  const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(object, key), i);

  return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

static const golden_array *
find_array(const fixture *f, const char *suffix)
{
  char name[96];

  snprintf(name, sizeof name, "%s.%s", f->name, suffix);
  return golden_case_find(f->c, name);
}

static void
prepare(fixture *f)
{
  const cJSON *rule = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(f->c), "preprocess");
  ks_vision_limits limits = {.min_pixels = (uint64_t)get_number(rule, "min_pixels", 0),
                             .max_pixels = (uint64_t)get_number(rule, "max_pixels", 0)};
  const char *file = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(f->image, "file"));
  char *path = golden_case_dup_path(f->c, file);
  ks_rgb rgb = {0};
  uint8_t *data = golden_picture_load(path, &rgb.width, &rgb.height);

  if (data == NULL)
    KS_FAIL("%s cannot be read", path);
  rgb.data = data;
  KS_ASSERT_OK(ks_vision_plan_picture(&f->prep, &limits, rgb.width, rgb.height, &f->plan, NULL));
  KS_ASSERT_OK(ks_vision_input_new(f->alloc, &f->prep, &f->plan, &rgb, 1, &f->in, NULL));
  free(data);
  free(path);
}

/* Sizes and counts that the case states, whichever of them its family has. */
static void
check_plan(const fixture *f)
{
  const ks_vision_plan *p = &f->plan;
  uint32_t merge = f->prep.merge;

  KS_ASSERT_EQ(p->n_tok, get_number(f->image, "n_image_tokens", -1));
  KS_ASSERT_EQ(p->tile_rows, get_number(f->image, "rows", 1));
  KS_ASSERT_EQ(p->tile_cols, get_number(f->image, "cols", 1));
  KS_ASSERT_EQ(p->n_view, get_number(f->image, "n_tiles", 1));
  if (cJSON_GetObjectItemCaseSensitive(f->image, "resized_to") != NULL) {
    KS_ASSERT_EQ(p->resized_width, get_element(f->image, "resized_to", 0));
    KS_ASSERT_EQ(p->resized_height, get_element(f->image, "resized_to", 1));
    KS_ASSERT_EQ(p->grid_rows * merge, get_element(f->image, "grid_thw", 1));
    KS_ASSERT_EQ(p->grid_cols * merge, get_element(f->image, "grid_thw", 2));
  }
}

/* want as it is, without the wide tolerance of a foreign resize. */
static void
compare(const fixture *f, const golden_array *array, const float *got, size_t n)
{
  golden_array want = *array;
  double worst = 0;

  KS_ASSERT_EQ(want.n_elem, n);
  want.tol_abs = TOLERANCE;
  want.tol_rel = -1;
  if (golden_array_compare(&want, got, 1, &worst) > 0)
    KS_FAIL("%s: %s is off by up to %g", golden_case_get_folder(f->c), want.name, worst);
}

static size_t
check_planes(const fixture *f, const golden_array *want)
{
  size_t n_view = (size_t)3 * f->plan.view_width * f->plan.view_height;
  float *got = malloc(n_view * f->plan.n_view * sizeof(*got));

  KS_ASSERT(got != NULL);
  for (uint32_t i = 0; i < f->plan.n_view; i++)
    ks_vision_input_get_pixels(f->in, i, 0, got + i * n_view);
  compare(f, want, got, n_view * f->plan.n_view);
  free(got);
  return 1;
}

/* Rows (channel, frame, y, x) in merge-block order; patches are asked for in two unequal parts. */
static size_t
check_patches(const fixture *f, const golden_array *want)
{
  uint32_t n = f->plan.grid_rows * f->plan.grid_cols * f->prep.merge * f->prep.merge;
  size_t plane = (size_t)f->prep.patch * f->prep.patch;
  float *got = malloc(n * 6 * plane * sizeof(*got));
  float *part = malloc(n * 3 * plane * sizeof(*part));

  KS_ASSERT(got != NULL && part != NULL && n > 5);
  for (uint32_t frame = 0; frame < 2; frame++) {
    ks_vision_input_get_patches(f->in, 0, frame, 0, 5, part);
    ks_vision_input_get_patches(f->in, 0, frame, 5, n - 5, part + 5 * 3 * plane);
    for (size_t i = 0; i < (size_t)n * 3; i++)
      memcpy(got + (i * 2 + frame) * plane, part + i * plane, plane * sizeof(*got));
  }
  compare(f, want, got, n * 6 * plane);
  free(got);
  free(part);
  return 1;
}

/* Number of tensors that were compared. */
static size_t
check_image(golden_case *c, const ks_vision_prep *prep, const cJSON *image)
{
  fixture f = {.c = c, .image = image, .prep = *prep, .alloc = ks_alloc_new()};
  const golden_array *chw, *pixels;
  size_t n = 0;

  KS_ASSERT(f.alloc != NULL);
  f.name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(image, "case"));
  KS_ASSERT(f.name != NULL);
  prepare(&f);
  check_plan(&f);
  chw = find_array(&f, "chw");
  pixels = find_array(&f, "pixel_values");
  if (chw != NULL)
    n += check_planes(&f, chw);
  if (pixels != NULL)
    n += ks_vision_family_is_free_size(prep->family) ? check_patches(&f, pixels)
                                                     : check_planes(&f, pixels);
  ks_vision_input_free(f.in);
  ks_alloc_free(f.alloc);
  return n;
}

static void
read_prep(const golden_case *c, ks_vision_prep *out)
{
  char *path = golden_case_dup_path(c, "mmproj.gguf");
  ks_alloc *alloc = ks_alloc_new();
  ks_gguf *g = NULL;

  KS_ASSERT_OK(ks_gguf_open(alloc, path, &g, NULL));
  KS_ASSERT_OK(ks_vision_prep_read(g, out, NULL));
  ks_gguf_close(g);
  ks_alloc_free(alloc);
  free(path);
}

/* Every picture of every case, both aspect ratios, gives the reference's pixels. */
KS_TEST(pixels, equal_the_reference)
{
  golden_list list = golden_list_new("KS_GOLDEN_DIR", "KS_GOLDEN_DEFAULT");
  size_t n_case = 0;

  KS_ASSERT(list.n > 0);
  for (size_t i = 0; i < list.n; i++) {
    char error[512];
    golden_case *c = golden_case_load(list.folders[i], error, sizeof error);
    const cJSON *image;
    ks_vision_prep prep;
    size_t n = 0;

    if (c == NULL)
      KS_FAIL("%s", error);
    if (golden_case_has_file(c, "mmproj.gguf")) {
      read_prep(c, &prep);
      cJSON_ArrayForEach(image, cJSON_GetObjectItemCaseSensitive(golden_case_get_json(c), "images"))
          n += check_image(c, &prep, image);
      printf("# %s: %s, %zu tensors\n", golden_case_get_name(c),
             ks_vision_family_get_name(prep.family), n);
      KS_ASSERT(n > 0);
      n_case++;
    }
    golden_case_free(c);
  }
  golden_list_free(&list);
  if (n_case == 0)
    KS_SKIP("the folder has cases, but none with pictures");
}

KS_TEST_MAIN

/* test-vision.c - the pictures and video frames of the cases through tower, projector and
 * deepstack, from the PNG file on.
 * A case is any folder with an mmproj.gguf; its language model is model.gguf beside it, or the file
 * that it names. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision.h"
#include "tests/golden/golden-case.h"
#include "tests/golden/golden-picture.h"
#include "tests/ks-test.h"

typedef struct fixture {
  golden_case *c;
  ks_alloc *alloc;
  ks_backend be;
  ks_vision *vision;
} fixture;

/* What the tap was given, view after view. */
typedef struct tapped {
  float *rows;
  size_t n, capacity; /* floats */
  uint32_t n_view, n_done, n_total;
  uint32_t stop_after; /* calls of stop that say no; 0 = all */
  uint32_t n_asked;
} tapped;

static void
open_fixture(fixture *f, const char *folder, ks_compute_mode mode)
{
  ks_dev_params params = {.mode = mode, .n_thread = 2};
  char text[256], *path;
  ks_error err;

  *f = (fixture){.c = golden_case_load(folder, text, sizeof text), .alloc = ks_alloc_new()};
  if (f->c == NULL)
    KS_FAIL("%s", text);
  params.alloc = f->alloc;
  KS_ASSERT_OK(ks_backend_open("cpu", &params, &f->be, NULL));
  path = golden_case_dup_path(f->c, "mmproj.gguf");
  if (ks_vision_open(f->alloc, path, &f->be, &f->vision, &err) != KS_OK)
    KS_FAIL("%s: %s", path, err.text);
  free(path);
}

static void
close_fixture(fixture *f)
{
  ks_vision_close(f->vision);
  ks_backend_close(&f->be);
  ks_alloc_free(f->alloc);
  golden_case_free(f->c);
}

/* Calls body for every case with a tower; returns how many there are. */
static size_t
for_each_case(ks_compute_mode mode, void (*body)(fixture *f))
{
  golden_list list = golden_list_new("KS_GOLDEN_DIR", "KS_GOLDEN_DEFAULT");
  size_t n = 0;

  for (size_t i = 0; i < list.n; i++) {
    char path[512];
    FILE *file;
    fixture f;

    snprintf(path, sizeof path, "%s/mmproj.gguf", list.folders[i]);
    if ((file = fopen(path, "rb")) == NULL)
      continue;
    fclose(file);
    open_fixture(&f, list.folders[i], mode);
    body(&f);
    close_fixture(&f);
    n++;
  }
  golden_list_free(&list);
  return n;
}

static uint64_t
get_limit(const fixture *f, const char *key)
{
  const cJSON *rule = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(f->c), "preprocess");
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(rule, key);

  return cJSON_IsNumber(item) ? (uint64_t)item->valuedouble : 0;
}

/* The case's picture, or the frames of its video, resized and cut. */
static ks_vision_input *
new_input(const fixture *f, const cJSON *image)
{
  const ks_vision_prep *prep = &ks_vision_get_shape(f->vision)->prep;
  const cJSON *files = cJSON_GetObjectItemCaseSensitive(image, "files");
  const ks_vision_limits limits = {.min_pixels = get_limit(f, "min_pixels"),
                                   .max_pixels = get_limit(f, "max_pixels")};
  const uint32_t n_frame = files != NULL ? (uint32_t)cJSON_GetArraySize(files) : 1;
  ks_vision_input *in = NULL;
  ks_vision_plan plan;
  ks_rgb rgb[2] = {0};
  uint8_t *data[2] = {NULL, NULL};

  KS_ASSERT(n_frame >= 1 && n_frame <= 2);
  for (uint32_t i = 0; i < n_frame; i++) {
    const cJSON *name = files != NULL ? cJSON_GetArrayItem(files, (int)i)
                                      : cJSON_GetObjectItemCaseSensitive(image, "file");
    char *path = golden_case_dup_path(f->c, cJSON_GetStringValue(name));

    data[i] = golden_picture_load(path, &rgb[i].width, &rgb[i].height);
    if (data[i] == NULL)
      KS_FAIL("%s cannot be read", path);
    rgb[i].data = data[i];
    free(path);
  }
  KS_ASSERT_OK(ks_vision_plan_picture(prep, &limits, rgb[0].width, rgb[0].height, &plan, NULL));
  KS_ASSERT_OK(ks_vision_input_new(f->alloc, prep, &plan, rgb, n_frame, &in, NULL));
  free(data[0]);
  free(data[1]);
  return in;
}

static void
tap_cb(void *user, uint32_t view, const float *rows, uint32_t n_row, uint32_t n_col)
{
  tapped *t = user;
  const size_t n = (size_t)n_row * n_col;

  KS_ASSERT_EQ(view, t->n_view);
  t->rows = realloc(t->rows, (t->n + n) * sizeof(float));
  KS_ASSERT(t->rows != NULL);
  memcpy(t->rows + t->n, rows, n * sizeof(float));
  t->n += n;
  t->n_view++;
}

static void
progress_cb(void *user, uint32_t n_done, uint32_t n_total)
{
  tapped *t = user;

  KS_ASSERT_EQ(n_done, t->n_done + 1);
  t->n_done = n_done;
  t->n_total = n_total;
}

static bool
stop_cb(void *user)
{
  tapped *t = user;

  t->n_asked++;
  return t->stop_after > 0 && t->n_asked > t->stop_after;
}

static const golden_array *
find_array(const fixture *f, const cJSON *image, const char *suffix)
{
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(image, "case"));
  char full[96];

  KS_ASSERT(name != NULL);
  snprintf(full, sizeof full, "%s.%s", name, suffix);
  return golden_case_find(f->c, full);
}

static void
compare(const fixture *f, const golden_array *want, const float *got, size_t n)
{
  double worst = 0;

  KS_ASSERT_EQ(want->n_elem, n);
  if (golden_array_compare(want, got, 1, &worst) > 0)
    KS_FAIL("%s: %s is off by up to %g", golden_case_get_folder(f->c), want->name, worst);
  printf("# %s %s: off by at most %.2g\n", golden_case_get_name(f->c), want->name, worst);
}

/* The reference lists the patches of a tile in raster order, the tap in that of the tokens. */
static void
to_raster(const fixture *f, const ks_vision_plan *plan, tapped *t)
{
  const ks_vision_shape *s = ks_vision_get_shape(f->vision);
  const uint32_t merge = s->prep.merge, cols = plan->grid_cols * merge;
  const uint32_t n = plan->grid_rows * merge * cols;
  float *out = malloc(t->n * sizeof(float));

  KS_ASSERT(out != NULL);
  for (uint32_t view = 0; view < plan->n_view; view++)
    for (uint32_t i = 0; i < n; i++) {
      uint32_t row, col;

      ks_vision_patch_place(&s->prep, plan, i, &row, &col);
      memcpy(out + ((size_t)view * n + row * cols + col) * s->n_embd,
             t->rows + ((size_t)view * n + i) * s->n_embd, s->n_embd * sizeof(float));
    }
  free(t->rows);
  t->rows = out;
}

static void
check_picture(const fixture *f, const cJSON *image)
{
  ks_vision_input *in = new_input(f, image);
  const ks_vision_shape *s = ks_vision_get_shape(f->vision);
  tapped t = {0};
  const ks_vision_hooks hooks = {stop_cb, progress_cb, tap_cb, &t};
  const golden_array *deep = find_array(f, image, "deepstack");
  ks_vision_embeds e = {0};
  ks_error err;
  size_t chunk;

  if (ks_vision_encode(f->vision, in, &hooks, &e, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  if (s->family == KS_VISION_IDEFICS3)
    to_raster(f, &e.plan, &t);
  KS_ASSERT_EQ(t.n_done, t.n_total);
  KS_ASSERT_EQ(t.n_view, e.plan.n_view);
  KS_ASSERT_EQ(e.n_embd, s->n_out);
  chunk = (size_t)e.n_tok * e.n_embd;
  compare(f, find_array(f, image, "vision_tower"), t.rows, t.n);
  compare(f, find_array(f, image, "projector"), e.data, chunk);
  KS_ASSERT_EQ(deep != NULL, e.n_deep > 0);
  if (deep != NULL)
    compare(f, deep, e.data + chunk, chunk * e.n_deep);
  ks_vision_embeds_clear(&e);
  ks_vision_input_free(in);
  free(t.rows);
}

static void
check_case(fixture *f)
{
  static const char *const lists[] = {"images", "videos"};
  const cJSON *image;

  for (int i = 0; i < 2; i++)
    cJSON_ArrayForEach(image, cJSON_GetObjectItemCaseSensitive(golden_case_get_json(f->c),
                                                               lists[i])) check_picture(f, image);
}

/* Tower, projector and deepstack of every picture are the reference's. */
KS_TEST(vision, numbers)
{
  KS_ASSERT_GE(for_each_case(KS_COMPUTE_EXACT, check_case), 4);
}

/* Between the files of one model nothing stands; with any other file a sentence says why not. */
static void
check_pairing(fixture *f)
{
  const cJSON *other =
      cJSON_GetObjectItemCaseSensitive(golden_case_get_json(f->c), "language_model");
  char *path = golden_case_dup_path(f->c, other != NULL ? other->valuestring : "model.gguf");
  char *stranger = golden_case_dup_path(f->c, "../qwen3/model.gguf");
  char *mmproj = golden_case_dup_path(f->c, "mmproj.gguf");
  const ks_model_params params = {.be = &f->be};
  ks_gguf *a = NULL, *b = NULL;
  ks_model *model = NULL;
  ks_error err = {0};

  KS_ASSERT_OK(ks_model_open(f->alloc, path, &params, &model, NULL));
  KS_ASSERT_OK(ks_vision_check_fit(f->vision, model, NULL));
  KS_ASSERT_OK(ks_gguf_open(f->alloc, mmproj, &a, NULL));
  KS_ASSERT_OK(ks_vision_check_files(a, ks_model_get_gguf(model), NULL));
  KS_ASSERT_OK(ks_gguf_open(f->alloc, stranger, &b, NULL));
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_vision_check_files(a, b, &err));
  KS_ASSERT(strstr(err.text, "use the vision file that belongs to this model") != NULL);
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_vision_check_files(b, a, &err));
  ks_gguf_close(a);
  ks_gguf_close(b);
  ks_model_close(model);
  free(path);
  free(stranger);
  free(mmproj);
}

KS_TEST(vision, pairing)
{
  KS_ASSERT_GE(for_each_case(KS_COMPUTE_EXACT, check_pairing), 4);
}

/* Stopped after any step, and without memory at any place, nothing is left behind. */
static void
check_interruptions(fixture *f)
{
  const cJSON *image =
      cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(golden_case_get_json(f->c), "images"), 0);
  ks_vision_input *in = new_input(f, image);
  const uint64_t before = ks_alloc_get_bytes(f->alloc, KS_MEM_VISION);
  tapped t = {0};
  const ks_vision_hooks hooks = {.stop = stop_cb, .user = &t};
  ks_vision_embeds e = {0};
  ks_status st = KS_ERR_CANCELLED;
  int n_stopped = 0;

  /* How often a run asks depends on its time as well: on until one is through. */
  for (uint32_t n = 1; st != KS_OK; n += 1 + n / 3, n_stopped += st != KS_OK) {
    t = (tapped){.stop_after = n};
    st = ks_vision_encode(f->vision, in, &hooks, &e, NULL);
    KS_ASSERT(st == KS_OK || st == KS_ERR_CANCELLED);
    KS_ASSERT(st == KS_OK || e.data == NULL);
    KS_ASSERT(st == KS_OK || ks_alloc_get_bytes(f->alloc, KS_MEM_VISION) == before);
  }
  KS_ASSERT_GE(n_stopped, 5);
  ks_vision_embeds_clear(&e);
  t = (tapped){0};
  st = KS_ERR_NOMEM;
  for (int64_t n = 0; st != KS_OK; n++) {
    KS_ASSERT_LT(n, 100);
    ks_alloc_fail_after(f->alloc, n);
    st = ks_vision_encode(f->vision, in, &hooks, &e, NULL);
    ks_alloc_fail_after(f->alloc, -1);
    KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
    KS_ASSERT(st == KS_OK || e.data == NULL);
    KS_ASSERT(st == KS_OK || ks_alloc_get_bytes(f->alloc, KS_MEM_VISION) == before);
  }
  ks_vision_embeds_clear(&e);
  KS_ASSERT_EQ(ks_alloc_get_bytes(f->alloc, KS_MEM_VISION), before);
  ks_vision_input_free(in);
}

KS_TEST(vision, interruptions)
{
  KS_ASSERT_GE(for_each_case(KS_COMPUTE_EXACT, check_interruptions), 4);
}

KS_TEST_MAIN

/* visual-case.h - the pictures of a golden case as a timeline and a chat template take them.
 * A picture case X is an array X.input_ids that holds the case's image_token_id, with what its
 * pictures gave (NAME.projector, NAME.deepstack) stored beside it: no tower is needed here.
 * Over 200 lines because a case is read here as a whole. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/timeline.h"

#include "tests/golden/golden-case.h"
#include "tests/ks-test.h"

#define VISUAL_MAX_PICTURE 4u
#define VISUAL_MAX_RUN 32u

typedef struct visual_picture {
  const char *name; /* "img0" */
  const float *embd, *deep;
  uint32_t n_deep, n_tok;
  uint32_t tile_rows, tile_cols, n_view; /* has an overview where n_view > 1 */
  uint32_t grid_rows, grid_cols;         /* of a view */
} visual_picture;

typedef struct visual_case {
  const golden_case *c;
  char name[32];
  ks_token *ids; /* [n], KS_TOKEN_NONE in place of the image token */
  uint32_t n;
  visual_picture pictures[VISUAL_MAX_PICTURE];
  uint32_t n_picture;
  ks_visual_run runs[VISUAL_MAX_RUN]; /* picture i is attachment i + 1 */
  uint32_t n_run;
  uint32_t run_picture[VISUAL_MAX_RUN];
} visual_case;

typedef void (*visual_case_fn)(const visual_case *v, void *user);

static inline uint32_t
visual_number(const cJSON *object, const char *key, uint32_t otherwise)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

  return cJSON_IsNumber(item) ? (uint32_t)item->valuedouble : otherwise;
}

static inline const cJSON *
visual_find_image(const golden_case *c, const char *file)
{
  const cJSON *images = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(c), "images"), *item;

  cJSON_ArrayForEach(item, images)
  {
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "file"));
    const char *own = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "case"));

    if ((name != NULL && strcmp(name, file) == 0) || (own != NULL && strcmp(own, file) == 0))
      return item;
  }
  return NULL;
}

/* Array "X.part" of the case, or NULL. */
static inline const golden_array *
visual_case_find(const visual_case *v, const char *part)
{
  char full[96];

  snprintf(full, sizeof full, "%s.%s", v->name, part);
  return golden_case_find(v->c, full);
}

/* Sizes as the folder's kind of picture states them: a Qwen grid of patches, tiles, or a square. */
static inline void
visual_set_sizes(visual_picture *p, const cJSON *image)
{
  const cJSON *patches = cJSON_GetObjectItemCaseSensitive(image, "grid_thw");
  const cJSON *grid = cJSON_GetObjectItemCaseSensitive(image, "grid");
  const uint32_t view_tok = visual_number(image, "tokens_per_tile", p->n_tok);
  uint32_t side = 1;

  p->tile_rows = visual_number(image, "rows", 1);
  p->tile_cols = visual_number(image, "cols", 1);
  p->n_view = visual_number(image, "n_tiles", 1);
  while (side * side < view_tok)
    side++;
  p->grid_rows = p->grid_cols = side;
  if (patches != NULL) {
    p->grid_rows = (uint32_t)cJSON_GetArrayItem(patches, 1)->valuedouble / 2;
    p->grid_cols = (uint32_t)cJSON_GetArrayItem(patches, 2)->valuedouble / 2;
  } else if (grid != NULL) {
    p->grid_rows = (uint32_t)cJSON_GetArrayItem(grid, 0)->valuedouble;
    p->grid_cols = (uint32_t)cJSON_GetArrayItem(grid, 1)->valuedouble;
  }
  KS_ASSERT_EQ(p->n_view * p->grid_rows * p->grid_cols, p->n_tok);
}

static inline void
visual_add_picture(visual_case *v, const char *file)
{
  const cJSON *image = visual_find_image(v->c, file);
  visual_picture *p = &v->pictures[v->n_picture++];
  const golden_array *embd, *deep;
  char name[96];

  KS_ASSERT(image != NULL && v->n_picture <= VISUAL_MAX_PICTURE);
  p->name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(image, "case"));
  KS_ASSERT(p->name != NULL);
  snprintf(name, sizeof name, "%s.projector", p->name);
  embd = golden_case_find(v->c, name);
  snprintf(name, sizeof name, "%s.deepstack", p->name);
  deep = golden_case_find(v->c, name);
  KS_ASSERT(embd != NULL && embd->dtype == GOLDEN_F32);
  p->embd = embd->data;
  p->n_tok = (uint32_t)(embd->n_elem / embd->shape[embd->n_dims - 1]);
  if (deep != NULL) {
    p->deep = deep->data;
    p->n_deep = (uint32_t)deep->shape[0];
    KS_ASSERT_EQ(deep->n_elem, p->n_deep * embd->n_elem);
  }
  visual_set_sizes(p, image);
}

static inline void
visual_add_pictures(visual_case *v)
{
  const cJSON *two = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(v->c), "two_image_case");
  const char *two_name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(two, "case"));
  const cJSON *item;

  if (two_name == NULL || strcmp(two_name, v->name) != 0) {
    visual_add_picture(v, v->name);
    return;
  }
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(two, "images"))
      visual_add_picture(v, cJSON_GetStringValue(item));
}

/* The view that starts at id `first`: number `view` of picture i. */
static inline void
visual_add_run(visual_case *v, uint32_t first, uint32_t i, uint32_t view)
{
  const visual_picture *p = &v->pictures[i];
  const uint32_t n_tok = p->grid_rows * p->grid_cols;
  const size_t n_embd = visual_case_find(v, "embed_last")->n_elem;
  const bool is_overview = p->n_view > 1 && view + 1 == p->n_view;

  KS_ASSERT_LT(v->n_run, VISUAL_MAX_RUN);
  v->run_picture[v->n_run] = i;
  v->runs[v->n_run++] =
      (ks_visual_run){.first = first,
                      .n_tok = n_tok,
                      .embd = p->embd + (size_t)view * n_tok * n_embd,
                      .deep = p->deep != NULL ? p->deep + (size_t)view * n_tok * n_embd : NULL,
                      .deep_stride = (size_t)p->n_tok * n_embd,
                      .n_deep = p->n_deep,
                      .grid_rows = p->grid_rows,
                      .grid_cols = p->grid_cols,
                      .row0 = is_overview ? 0 : (uint16_t)(view / p->tile_cols * p->grid_rows),
                      .col0 = is_overview ? 0 : (uint16_t)(view % p->tile_cols * p->grid_cols),
                      .is_overview = is_overview,
                      .attachment = (uint8_t)(i + 1)};
}

static inline void
visual_set_runs(visual_case *v, const int32_t *ids, int32_t image_id)
{
  uint32_t picture = 0, view = 0;

  for (uint32_t i = 0; i < v->n;) {
    const visual_picture *p = &v->pictures[picture];
    const uint32_t n_tok = p->grid_rows * p->grid_cols;

    v->ids[i] = ids[i];
    if (ids[i] != image_id) {
      i++;
      continue;
    }
    KS_ASSERT(picture < v->n_picture && i + n_tok <= v->n);
    visual_add_run(v, i, picture, view);
    for (uint32_t k = 0; k < n_tok; k++, i++) {
      KS_ASSERT_EQ(ids[i], image_id);
      v->ids[i] = KS_TOKEN_NONE;
    }
    view++;
    if (view == p->n_view) {
      picture++;
      view = 0;
    }
  }
  KS_ASSERT(picture == v->n_picture && view == 0);
}

/* The parsed description of what was asked: an array of content parts, or NULL. */
static inline const cJSON *
visual_case_get_content(const visual_case *v)
{
  const cJSON *two = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(v->c), "two_image_case");
  const cJSON *from = v->n_picture > 1 ? two : visual_find_image(v->c, v->name);
  const cJSON *message = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(from, "messages"), 0);

  return cJSON_GetObjectItemCaseSensitive(message, "content");
}

static inline bool
visual_holds(const golden_array *ids, int32_t id)
{
  const int32_t *p = ids->data;

  for (size_t i = 0; i < ids->n_elem; i++)
    if (p[i] == id)
      return true;
  return false;
}

static inline uint32_t
visual_walk_case(const golden_case *c, visual_case_fn fn, void *user)
{
  const cJSON *id = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(c), "image_token_id");
  uint32_t n_done = 0;

  for (size_t i = 0; cJSON_IsNumber(id) && i < golden_case_get_n_arrays(c); i++) {
    const golden_array *ids = golden_case_get_array(c, i);
    const char *dot = strrchr(ids->name, '.');
    visual_case v = {.c = c};

    if (dot == NULL || strcmp(dot, ".input_ids") != 0 || ids->dtype != GOLDEN_I32 ||
        !visual_holds(ids, (int32_t)id->valuedouble))
      continue;
    KS_ASSERT_LT((size_t)(dot - ids->name), sizeof v.name);
    memcpy(v.name, ids->name, (size_t)(dot - ids->name));
    v.n = (uint32_t)ids->n_elem;
    v.ids = malloc(ids->n_elem * sizeof *v.ids);
    KS_ASSERT(v.ids != NULL);
    visual_add_pictures(&v);
    visual_set_runs(&v, ids->data, (int32_t)id->valuedouble);
    fn(&v, user);
    free(v.ids);
    n_done++;
  }
  return n_done;
}

/* Calls fn for every picture case of every folder (KS_GOLDEN_DIR, else KS_GOLDEN_DEFAULT); returns
 * how many.  A damaged folder fails the test. */
static inline uint32_t
visual_case_walk(visual_case_fn fn, void *user)
{
  golden_list list = golden_list_new("KS_GOLDEN_DIR", "KS_GOLDEN_DEFAULT");
  uint32_t n_done = 0;

  for (size_t i = 0; i < list.n; i++) {
    char error[512];
    golden_case *c = golden_case_load(list.folders[i], error, sizeof error);

    if (c == NULL)
      KS_FAIL("%s", error);
    n_done += visual_walk_case(c, fn, user);
    golden_case_free(c);
  }
  golden_list_free(&list);
  return n_done;
}

/* vision-prep.c - what an mmproj file says about pictures, and the size rule of each family.
 * The rules are those of the models' own image processors, in the same floating-point steps: a
 * side that is rounded the other way would give another number of tokens.
 * Every number of a file is checked here before it sizes anything.
 * Source: docs/method.md, section 9. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-prep-internal.h"

#include <math.h>

#define MAX_PATCH 128u
#define MAX_MERGE 32u
#define MAX_TILE 4096u
#define MAX_LONGEST 4096u /* the reference's own bound on the longer side */
#define MAX_ASPECT 200.0  /* Qwen: longer side to shorter side */
#define MAX_PIXELS KS_VISION_MAX_PIXELS
#define MAX_SIDE ((UINT32_C(1) << 24) - 1)

typedef struct family_info {
  const char *name; /* clip.projector_type */
  const char *merge_key;
  uint32_t merge; /* where the key is absent; 0 = it must be there */
  ks_resample filter;
  uint64_t min_pixels, max_pixels; /* 0: tiles or a square */
} family_info;

static const family_info families[KS_N_VISION_FAMILY] = {
    [KS_VISION_IDEFICS3] = {"idefics3", "clip.vision.projector.scale_factor", 0,
                            KS_RESAMPLE_LANCZOS, 0, 0},
    [KS_VISION_LLAVA] = {"mlp", NULL, 1, KS_RESAMPLE_BICUBIC, 0, 0},
    [KS_VISION_GEMMA3] = {"gemma3", "clip.vision.projector.scale_factor", 4, KS_RESAMPLE_BILINEAR,
                          0, 0},
    [KS_VISION_QWEN2VL] = {"qwen2vl_merger", "clip.vision.spatial_merge_size", 2,
                           KS_RESAMPLE_BICUBIC, 3136, 12845056},
    [KS_VISION_QWEN25VL] = {"qwen2.5vl_merger", "clip.vision.spatial_merge_size", 2,
                            KS_RESAMPLE_BICUBIC, 3136, 12845056},
    [KS_VISION_QWEN3VL] = {"qwen3vl_merger", "clip.vision.spatial_merge_size", 2,
                           KS_RESAMPLE_BICUBIC, 65536, 16777216},
};

const char *
ks_vision_family_get_name(ks_vision_family family)
{
  return families[family].name;
}

bool
ks_vision_family_is_free_size(ks_vision_family family)
{
  return families[family].min_pixels > 0;
}

/* --- the file --- */

static ks_status
read_family(const ks_gguf *g, ks_vision_family *out, ks_error *err)
{
  ks_gguf_str arch, name;
  bool flag;

  if (!ks_gguf_get_str(g, "general.architecture", &arch) || !ks_gguf_str_equal(arch, "clip"))
    return ks_fail(err, KS_ERR_FORMAT,
                   "the file is no vision tower: its general.architecture is not \"clip\"");
  if (ks_gguf_get_bool(g, "clip.has_vision_encoder", &flag) && !flag)
    return ks_fail(err, KS_ERR_UNSUPPORTED, "the file holds no vision tower, only other encoders");
  if (!ks_gguf_get_str(g, "clip.projector_type", &name) &&
      !ks_gguf_get_str(g, "clip.vision.projector_type", &name)) {
    /* The first LLaVA files have only this flag. */
    if (!ks_gguf_get_bool(g, "clip.has_llava_projector", &flag) || !flag)
      return ks_fail(err, KS_ERR_FORMAT, "the key clip.projector_type is missing");
    *out = KS_VISION_LLAVA;
    return KS_OK;
  }
  for (unsigned i = 0; i < KS_N_VISION_FAMILY; i++)
    if (ks_gguf_str_equal(name, families[i].name)) {
      *out = (ks_vision_family)i;
      return KS_OK;
    }
  return ks_fail(err, KS_ERR_UNSUPPORTED,
                 "the projector \"%.*s\" is not supported; supported are idefics3, mlp, gemma3, "
                 "qwen2vl_merger, qwen2.5vl_merger and qwen3vl_merger",
                 (int)(name.n_bytes < 64 ? name.n_bytes : 64), name.data);
}

/* A key between 1 and max.  Absent: fallback; 0 = it must be there. */
static ks_status
read_count(const ks_gguf *g, const char *key, uint32_t fallback, uint32_t max, uint32_t *out,
           ks_error *err)
{
  uint32_t value = fallback;

  if (ks_gguf_find_key(g, key) == NULL && fallback == 0)
    return ks_fail(err, KS_ERR_FORMAT, "the key %s is missing", key);
  if (ks_gguf_find_key(g, key) != NULL && !ks_gguf_get_u32(g, key, &value))
    return ks_fail(err, KS_ERR_FORMAT, "the key %s is no integer of 32 bits", key);
  if (value < 1 || value > max)
    return ks_fail(err, KS_ERR_FORMAT, "%s is %u, which is not between 1 and %u", key, value, max);
  *out = value;
  return KS_OK;
}

/* Three finite numbers, one a channel. */
static ks_status
read_channels(const ks_gguf *g, const char *key, float out[3], ks_error *err)
{
  const ks_gguf_key *array = ks_gguf_find_key(g, key);
  double value[3];

  if (array == NULL)
    return ks_fail(err, KS_ERR_FORMAT, "the key %s is missing", key);
  for (uint32_t i = 0; i < 3; i++)
    if (array->n_elem != 3 || !ks_gguf_key_get_f64(array, i, &value[i]) ||
        !(fabs(value[i]) <= 1000))
      return ks_fail(err, KS_ERR_FORMAT, "the key %s does not hold three numbers up to 1000", key);
  for (uint32_t i = 0; i < 3; i++)
    out[i] = (float)value[i];
  return KS_OK;
}

static ks_status
read_colours(const ks_gguf *g, ks_vision_prep *p, ks_error *err)
{
  ks_status st = read_channels(g, "clip.vision.image_mean", p->mean, err);

  if (st == KS_OK)
    st = read_channels(g, "clip.vision.image_std", p->std, err);
  for (uint32_t i = 0; st == KS_OK && i < 3; i++)
    if (!(p->std[i] > 1e-6f))
      st = ks_fail(err, KS_ERR_FORMAT, "clip.vision.image_std must be above 0");
  return st;
}

static ks_status
read_caps(const ks_gguf *g, ks_vision_prep *p, ks_error *err)
{
  p->min_pixels = families[p->family].min_pixels;
  p->max_pixels = families[p->family].max_pixels;
  if (!ks_vision_family_is_free_size(p->family))
    return KS_OK;
  (void)!ks_gguf_get_u64(g, "clip.vision.image_min_pixels", &p->min_pixels);
  (void)!ks_gguf_get_u64(g, "clip.vision.image_max_pixels", &p->max_pixels);
  if (p->min_pixels < 1 || p->min_pixels > p->max_pixels || p->max_pixels > MAX_PIXELS)
    return ks_fail(err, KS_ERR_FORMAT,
                   "clip.vision.image_min_pixels and image_max_pixels contradict each other");
  return KS_OK;
}

/* Tiles and squares: whole patches, and whole tokens of them. */
static ks_status
read_tile(const ks_gguf *g, ks_vision_prep *p, ks_error *err)
{
  ks_status st = read_count(g, "clip.vision.image_size", 0, MAX_TILE, &p->tile, err);

  if (st != KS_OK)
    return st;
  if (p->tile < p->patch || p->tile / p->patch % p->merge != 0)
    return ks_fail(err, KS_ERR_FORMAT,
                   "pictures of %u pixels have no whole tokens of %u x %u patches of %u pixels",
                   p->tile, p->merge, p->merge, p->patch);
  if (p->family == KS_VISION_IDEFICS3 &&
      ks_gguf_find_key(g, "clip.vision.preproc_image_size") != NULL)
    return read_count(g, "clip.vision.preproc_image_size", 0, MAX_LONGEST, &p->longest, err);
  return KS_OK;
}

ks_status
ks_vision_prep_read(const ks_gguf *mmproj, ks_vision_prep *out, ks_error *err)
{
  ks_vision_prep p = {0};
  ks_status st = read_family(mmproj, &p.family, err);
  const family_info *info = &families[p.family];

  if (st == KS_OK)
    st = read_count(mmproj, "clip.vision.patch_size", 0, MAX_PATCH, &p.patch, err);
  p.merge = info->merge;
  if (st == KS_OK && info->merge_key != NULL)
    st = read_count(mmproj, info->merge_key, info->merge, MAX_MERGE, &p.merge, err);
  if (st == KS_OK)
    st = read_colours(mmproj, &p, err);
  if (st == KS_OK && !ks_vision_family_is_free_size(p.family))
    st = read_tile(mmproj, &p, err);
  if (st == KS_OK)
    st = read_caps(mmproj, &p, err);
  if (st != KS_OK)
    return st;
  p.filter = info->filter;
  *out = p;
  return KS_OK;
}

/* --- size rules --- */

void
ks_idefics_first_size(const ks_vision_prep *prep, uint32_t width, uint32_t height,
                      uint32_t *out_width, uint32_t *out_height)
{
  double aspect = (double)width / height;
  bool wide = width >= height;
  double other = wide ? prep->longest / aspect : prep->longest * aspect;
  uint32_t side = (uint32_t)other;

  side += side % 2;
  if (side < 1)
    side = 1;
  *out_width = wide ? prep->longest : side;
  *out_height = wide ? side : prep->longest;
}

static uint32_t
round_up(uint32_t value, uint32_t unit)
{
  return (value + unit - 1) / unit * unit;
}

/* Both sides in whole tiles: the longer one first, the other by the ratio. */
static void
plan_tiles(const ks_vision_prep *prep, ks_vision_plan *plan)
{
  uint32_t w, h;
  double aspect;

  ks_idefics_first_size(prep, plan->width, plan->height, &w, &h);
  aspect = (double)w / h;
  if (w >= h) {
    w = round_up(w, prep->tile);
    h = round_up((uint32_t)(w / aspect), prep->tile);
  } else {
    h = round_up(h, prep->tile);
    w = round_up((uint32_t)(h * aspect), prep->tile);
  }
  plan->resized_width = w;
  plan->resized_height = h;
  plan->tile_cols = w / prep->tile;
  plan->tile_rows = h / prep->tile;
  plan->has_overview = plan->tile_rows * plan->tile_cols > 1;
}

/* The caps in force: the user's before the model's, which give way where they contradict. */
static ks_status
choose_caps(const ks_vision_prep *prep, const ks_vision_limits *limits, uint64_t *min,
            uint64_t *max, ks_error *err)
{
  uint64_t low = limits != NULL ? limits->min_pixels : 0;
  uint64_t high = limits != NULL ? limits->max_pixels : 0;

  if (low > 0 && high > 0 && low > high)
    return ks_fail(err, KS_ERR_ARG,
                   "pictures cannot have at least %llu and at most %llu pixels: change one limit",
                   (unsigned long long)low, (unsigned long long)high);
  if (low > MAX_PIXELS)
    return ks_fail(err, KS_ERR_ARG, "pictures of at least %llu pixels are too large: %llu at most",
                   (unsigned long long)low, (unsigned long long)MAX_PIXELS);
  *max = high > 0 ? high : low > prep->max_pixels ? low : prep->max_pixels;
  *min = low > 0 ? low : high > 0 && high < prep->min_pixels ? high : prep->min_pixels;
  if (*max > MAX_PIXELS)
    *max = MAX_PIXELS;
  return KS_OK;
}

/* Qwen: multiples of a token's side, the ratio kept as well as that allows. */
static ks_status
plan_free_size(const ks_vision_prep *prep, const ks_vision_limits *limits, ks_vision_plan *plan,
               ks_error *err)
{
  double unit = (double)prep->patch * prep->merge, w = plan->width, h = plan->height;
  double new_w = fmax(unit, rint(w / unit) * unit), new_h = fmax(unit, rint(h / unit) * unit);
  uint64_t min = 0, max = 0;
  ks_status st = choose_caps(prep, limits, &min, &max, err);

  if (st != KS_OK)
    return st;
  if (fmax(w, h) / fmin(w, h) > MAX_ASPECT)
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "a picture of %u x %u pixels is too narrow for this model: the longer side may "
                   "be %.0f times the shorter one at most; crop it",
                   plan->width, plan->height, MAX_ASPECT);
  if (new_w * new_h > (double)max) {
    double shrink = sqrt(w * h / (double)max);

    new_w = fmax(unit, floor(w / shrink / unit) * unit);
    new_h = fmax(unit, floor(h / shrink / unit) * unit);
  } else if (new_w * new_h < (double)min) {
    double grow = sqrt((double)min / (w * h));

    new_w = ceil(w * grow / unit) * unit;
    new_h = ceil(h * grow / unit) * unit;
  }
  if (fmax(new_w, new_h) > MAX_SIDE || new_w * new_h > 2.0 * MAX_PIXELS)
    return ks_fail(err, KS_ERR_UNSUPPORTED, "a picture of %u x %u pixels would become too large",
                   plan->width, plan->height);
  plan->resized_width = (uint32_t)new_w;
  plan->resized_height = (uint32_t)new_h;
  return KS_OK;
}

ks_status
ks_vision_plan_picture(const ks_vision_prep *prep, const ks_vision_limits *limits, uint32_t width,
                       uint32_t height, ks_vision_plan *out, ks_error *err)
{
  ks_vision_plan plan = {.width = width, .height = height, .tile_rows = 1, .tile_cols = 1};
  bool split = prep->longest > 0 && !(limits != NULL && limits->no_split);
  ks_status st = KS_OK;

  if (width == 0 || height == 0)
    return ks_fail(err, KS_ERR_ARG, "a picture needs at least one pixel each way");
  if (width > MAX_SIDE || height > MAX_SIDE)
    return ks_fail(err, KS_ERR_UNSUPPORTED, "a side of the picture has more than %u pixels",
                   MAX_SIDE);
  if (ks_vision_family_is_free_size(prep->family)) {
    st = plan_free_size(prep, limits, &plan, err);
  } else if (split) {
    plan_tiles(prep, &plan);
  } else {
    plan.resized_width = plan.resized_height = prep->tile;
  }
  if (st != KS_OK)
    return st;
  plan.n_view = plan.tile_rows * plan.tile_cols + plan.has_overview;
  plan.view_width = plan.resized_width / plan.tile_cols;
  plan.view_height = plan.resized_height / plan.tile_rows;
  plan.grid_cols = plan.view_width / prep->patch / prep->merge;
  plan.grid_rows = plan.view_height / prep->patch / prep->merge;
  plan.n_tok = plan.n_view * plan.grid_rows * plan.grid_cols;
  *out = plan;
  return KS_OK;
}

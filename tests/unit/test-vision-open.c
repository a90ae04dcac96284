/* test-vision-open.c - what opening a vision file refuses, and that it leaves nothing behind.
 * Towers are made up (tests/unit/tiny-tower.h). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision.h"
#include "tests/ks-test.h"
#include "tests/unit/tiny-tower.h"

static const tower_spec base = {.projector = "qwen3vl_merger",
                                .n_embd = 16,
                                .n_ff = 20,
                                .n_head = 2,
                                .n_layer = 2,
                                .patch = 2,
                                .tile = 8,
                                .merge = 2,
                                .n_out = 24,
                                .type = KS_DTYPE_F32};

typedef struct fixture {
  ks_alloc *alloc;
  ks_backend be;
  unsigned char *bytes;
  size_t n;
} fixture;

static void
init(fixture *f, const tower_spec *spec)
{
  ks_dev_params params = {.n_thread = 1};

  *f = (fixture){.alloc = ks_alloc_new()};
  params.alloc = f->alloc;
  KS_ASSERT_OK(ks_backend_open("cpu", &params, &f->be, NULL));
  KS_ASSERT(tower_new_bytes(f->alloc, spec, &f->bytes, &f->n));
}

static void
done(fixture *f)
{
  ks_mem_free(f->bytes);
  ks_backend_close(&f->be);
  ks_alloc_free(f->alloc);
}

static ks_status
try_open(fixture *f, ks_vision **out, ks_error *err)
{
  ks_gguf *g = NULL;
  ks_status st = ks_gguf_open_bytes(f->alloc, f->bytes, f->n, &g, err);

  return st == KS_OK ? ks_vision_open_gguf(f->alloc, g, &f->be, out, err) : st;
}

/* Writes `to` over the first `from` in the file, both of the same length. */
static void
replace(fixture *f, const char *from, const char *to)
{
  const size_t n = strlen(from);

  KS_ASSERT_EQ(n, strlen(to));
  for (size_t i = 0; i + n <= f->n; i++)
    if (memcmp(f->bytes + i, from, n) == 0) {
      memcpy(f->bytes + i, to, n);
      return;
    }
  KS_FAIL("%s is not in the file", from);
}

/* Opening the changed file fails with st, and the sentence holds text. */
static void
check_refused(const char *from, const char *to, ks_status want, const char *text)
{
  ks_vision *vision = NULL;
  ks_error err = {0};
  fixture f;

  init(&f, &base);
  replace(&f, from, to);
  KS_ASSERT_STATUS(want, try_open(&f, &vision, &err));
  if (strstr(err.text, text) == NULL)
    KS_FAIL("\"%s\" does not say %s", err.text, text);
  KS_ASSERT(vision == NULL);
  done(&f);
}

/* Every family opens, with its own shape; what its weights take is counted. */
KS_TEST(vision_open, families)
{
  static const char *const projectors[] = {
      "idefics3", "mlp", "gemma3", "qwen2vl_merger", "qwen2.5vl_merger", "qwen3vl_merger"};

  for (int i = 0; i < 6; i++) {
    tower_spec spec = base;
    ks_vision *vision = NULL;
    ks_error err = {0};
    uint64_t before, counted;
    fixture f;

    spec.projector = projectors[i];
    spec.merge = i == 1 ? 1 : i == 2 ? 4 : 2;
    init(&f, &spec);
    before = ks_alloc_get_bytes(f.alloc, KS_MEM_WEIGHTS);
    if (try_open(&f, &vision, &err) != KS_OK)
      KS_FAIL("%s: %s", projectors[i], err.text);
    KS_ASSERT_EQ(ks_vision_get_shape(vision)->family, i);
    KS_ASSERT_EQ(ks_vision_get_shape(vision)->n_out, 24);
    KS_ASSERT_EQ(ks_vision_get_shape(vision)->n_ff, 20);
    KS_ASSERT_EQ(ks_vision_get_shape(vision)->n_deep, i == 5 ? 1 : 0);
    counted = ks_alloc_get_bytes(f.alloc, KS_MEM_WEIGHTS) - before;
    KS_ASSERT_LE(ks_vision_get_weight_bytes(vision), counted);
    KS_ASSERT_LE(counted, ks_vision_get_weight_bytes(vision) + 1024); /* of small blocks */
    KS_ASSERT_LT(f.n / 2, counted);
    ks_vision_close(vision);
    done(&f);
  }
}

/* A missing or strange tensor, and sizes that cannot be, are named. */
KS_TEST(vision_open, refused)
{
  check_refused("v.blk.1.ln2.weight", "v.blk.7.ln2.weight", KS_ERR_FORMAT, "v.blk.1.ln2.weight");
  check_refused("v.blk.1.ln2.weight", "v.blk.1.ln2.heavy!", KS_ERR_UNSUPPORTED,
                "v.blk.1.ln2.heavy!");
  check_refused("v.patch_embd.weight.1", "v.blk.9.attn_k.weight", KS_ERR_FORMAT,
                "v.patch_embd.weight.1");
  check_refused("mm.2.weight", "mm.0.weighs", KS_ERR_UNSUPPORTED, "mm.0.weighs");
  check_refused("qwen3vl_merger", "qwen9vl_merger", KS_ERR_UNSUPPORTED, "qwen9vl_merger");
  check_refused("clip.vision.embedding_length", "clip.vision.embedding_lengtx", KS_ERR_FORMAT,
                "clip.vision.embedding_length");
}

/* 16 wide, but said to be another width or to have another number of heads. */
KS_TEST(vision_open, wrong_sizes)
{
  static const struct {
    const char *key;
    unsigned char value;
    const char *text;
  } cases[] = {{"clip.vision.embedding_length", 24, "instead of"},
               {"clip.vision.attention.head_count", 3, "cannot have 3 heads"},
               {"clip.vision.attention.head_count", 8, "two dimensions"},
               {"clip.vision.block_count", 3, "v.blk.2.ln1.weight"},
               {"clip.vision.block_count", 255, "block_count"}};

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const size_t n = strlen(cases[i].key);
    ks_vision *vision = NULL;
    ks_error err = {0};
    size_t at = 0;
    fixture f;

    init(&f, &base);
    while (at + n < f.n && memcmp(f.bytes + at, cases[i].key, n) != 0)
      at++;
    f.bytes[at + n + 4] = cases[i].value; /* behind the type, the lowest byte */
    KS_ASSERT_STATUS(KS_ERR_FORMAT, try_open(&f, &vision, &err));
    if (strstr(err.text, cases[i].text) == NULL)
      KS_FAIL("\"%s\" does not say %s", err.text, cases[i].text);
    done(&f);
  }
}

/* Each allocation of opening fails once. */
KS_TEST(vision_open, without_memory)
{
  ks_status st = KS_ERR_NOMEM;

  for (int64_t n = 0; st != KS_OK; n++) {
    ks_vision *vision = NULL;
    fixture f;

    KS_ASSERT_LT(n, 200);
    init(&f, &base);
    ks_alloc_fail_after(f.alloc, n);
    st = try_open(&f, &vision, NULL);
    ks_alloc_fail_after(f.alloc, -1);
    KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
    ks_vision_close(vision);
    done(&f);
  }
}

KS_TEST_MAIN

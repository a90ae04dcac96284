/* test-model.c - what a model file must hold, and what is refused by name. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/model.h"
#include "tests/unit/tiny-model.h"

#include <unistd.h>

static const char *const all_archs[] = {"llama", "qwen2",   "qwen3",  "gemma3",
                                        "phi3",  "qwen2vl", "qwen3vl"};

typedef struct fixture {
  ks_alloc *a;
  ks_backend be;
  unsigned char *bytes;
  ks_model *model;
  ks_error err;
} fixture;

static ks_status
open_spec(fixture *f, const tiny_spec *spec, uint32_t n_ctx)
{
  ks_dev_params dev = {.n_thread = 1};
  size_t n_bytes = 0;

  memset(f, 0, sizeof *f);
  f->a = ks_alloc_new();
  dev.alloc = f->a;
  KS_ASSERT_OK(ks_backend_open("cpu", &dev, &f->be, NULL));
  f->bytes = tiny_new_bytes(f->a, spec, &n_bytes);
  return tiny_open(f->a, &f->be, f->bytes, n_bytes, n_ctx, &f->model, &f->err);
}

static void
close_fixture(fixture *f)
{
  ks_model_close(f->model);
  ks_mem_free(f->bytes);
  ks_backend_close(&f->be);
  ks_alloc_free(f->a); /* asserts that nothing is left */
}

/* Loading must fail with that status and name the culprit. */
static void
assert_refused(const tiny_spec *spec, ks_status status, const char *names)
{
  fixture f;

  KS_ASSERT_STATUS(status, open_spec(&f, spec, 0));
  if (strstr(f.err.text, names) == NULL)
    KS_FAIL("\"%s\" does not name \"%s\"", f.err.text, names);
  KS_ASSERT(f.model == NULL);
  close_fixture(&f);
}

static const float *
host_floats(ks_dptr p)
{
  return (const float *)(uintptr_t)p; /* on the CPU device memory is memory */
}

/* Every architecture loads; sizes come from the keys, defaults where the file has none. */
KS_TEST(model, all_architectures)
{
  for (size_t i = 0; i < sizeof all_archs / sizeof all_archs[0]; i++) {
    tiny_spec spec = {.arch = all_archs[i]};
    const ks_model_shape *s;
    fixture f;

    if (open_spec(&f, &spec, 0) != KS_OK)
      KS_FAIL("%s: %s", all_archs[i], f.err.text);
    s = ks_model_get_shape(f.model);
    KS_ASSERT_STR(ks_model_get_arch_name(f.model), all_archs[i]);
    KS_ASSERT_EQ(s->n_embd, TINY_EMBD);
    KS_ASSERT_EQ(s->n_layer, TINY_LAYER);
    KS_ASSERT_EQ(s->n_kv_head, TINY_KV_HEAD);
    KS_ASSERT_EQ(s->k_dim, TINY_DIM);
    KS_ASSERT_EQ(s->v_dim, TINY_DIM);
    KS_ASSERT_EQ(s->n_vocab, TINY_VOCAB);
    KS_ASSERT_EQ(s->rope.n_rot, TINY_DIM);
    KS_ASSERT_EQ(s->rope.neox, i > 0);
    KS_ASSERT_EQ(s->act, i == 3 ? KS_ACT_GELU_TANH : KS_ACT_SILU);
    KS_ASSERT_NEAR(s->attn_scale, 1.0 / sqrt(TINY_DIM), 1e-7);
    KS_ASSERT_NEAR(s->embd_scale, i == 3 ? sqrt(TINY_EMBD) : 1.0, 1e-6);
    KS_ASSERT_EQ(ks_model_get_output(f.model)->data, ks_model_get_embd(f.model)->data);
    close_fixture(&f);
  }
}

/* The reported bytes are those of the file's tensors, plus 4 frequencies of rotation. */
KS_TEST(model, weight_bytes)
{
  tiny_spec spec = {.arch = "llama"};
  uint64_t sum = TINY_DIM / 2 * sizeof(float);
  fixture f;

  KS_ASSERT_OK(open_spec(&f, &spec, 0));
  for (size_t i = 0; i < ks_gguf_get_n_tensors(ks_model_get_gguf(f.model)); i++)
    sum += ks_gguf_get_tensor(ks_model_get_gguf(f.model), i)->n_bytes;
  KS_ASSERT_EQ(ks_model_get_weight_bytes(f.model), sum);
  close_fixture(&f);
}

/* Each tensor of each architecture, left out or one row too tall, is refused by its name. */
KS_TEST(model, missing_and_bent_tensors)
{
  for (size_t i = 0; i < sizeof all_archs / sizeof all_archs[0]; i++) {
    tiny_spec spec = {.arch = all_archs[i]};
    tiny_list list;

    tiny_list_tensors(&list, &spec);
    for (uint32_t k = 0; k < list.n; k++) {
      const char *name = list.items[k].name;
      bool fused = strcmp(spec.arch, "phi3") == 0;

      spec.bend_tensor = name;
      assert_refused(&spec, KS_ERR_FORMAT, name);
      spec.bend_tensor = NULL;
      spec.skip_tensor = name;
      /* Without the fused matrix the three single ones are looked for. */
      assert_refused(&spec, KS_ERR_FORMAT,
                     fused && strstr(name, "attn_qkv") != NULL ? ".attn_q.weight" : name);
      spec.skip_tensor = NULL;
    }
  }
}

/* A bias is optional, but a wrong one is refused. */
KS_TEST(model, bent_bias)
{
  tiny_spec spec = {.arch = "qwen2", .bias = true, .bend_tensor = "blk.1.attn_k.bias"};

  assert_refused(&spec, KS_ERR_FORMAT, "blk.1.attn_k.bias");
}

/* What the architecture would not use must not be left out in silence. */
KS_TEST(model, unknown_tensors)
{
  tiny_spec spec = {.arch = "llama", .extra_tensor = "blk.0.attn_q_norm.weight"};

  assert_refused(&spec, KS_ERR_UNSUPPORTED, "blk.0.attn_q_norm.weight");
  spec.extra_tensor = "blk.7.attn_q.weight"; /* no such layer */
  assert_refused(&spec, KS_ERR_UNSUPPORTED, "blk.7.attn_q.weight");
  spec.extra_tensor = "blk.0.ffn_gate_exps.weight";
  assert_refused(&spec, KS_ERR_UNSUPPORTED, "mixture of experts");
}

/* Weights of a type that cannot be multiplied are refused by tensor and type. */
KS_TEST(model, weight_types)
{
  tiny_spec spec = {.arch = "llama", .typed_tensor = "blk.1.ffn_up.weight", .type = KS_DTYPE_I32};

  assert_refused(&spec, KS_ERR_UNSUPPORTED, "blk.1.ffn_up.weight");
  assert_refused(&spec, KS_ERR_UNSUPPORTED, "I32");
  spec.typed_tensor = "blk.1.ffn_norm.weight";
  assert_refused(&spec, KS_ERR_UNSUPPORTED, "blk.1.ffn_norm.weight");
}

KS_TEST(model, missing_keys)
{
  static const char *const keys[] = {"context_length",       "embedding_length",
                                     "block_count",          "feed_forward_length",
                                     "attention.head_count", "attention.layer_norm_rms_epsilon"};

  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    tiny_spec spec = {.arch = "qwen3", .skip_key = keys[i]};

    assert_refused(&spec, KS_ERR_FORMAT, keys[i]);
  }
}

KS_TEST(model, unknown_architecture)
{
  tiny_spec spec = {.arch = "mamba"};

  assert_refused(&spec, KS_ERR_UNSUPPORTED, "mamba");
}

static void
add_dynamic_rope(ks_gguf_writer *w)
{
  ks_gguf_writer_add_str(w, "llama.rope.scaling.type", "dynamic");
}

static void
add_experts(ks_gguf_writer *w)
{
  ks_gguf_writer_add_u32(w, "llama.expert_count", 8);
}

static void
add_odd_rotation(ks_gguf_writer *w)
{
  ks_gguf_writer_add_u32(w, "llama.rope.dimension_count", 7);
}

static void
add_wide_rotation(ks_gguf_writer *w)
{
  ks_gguf_writer_add_u32(w, "llama.rope.dimension_count", 2 * TINY_DIM);
}

static void
add_varying_heads(ks_gguf_writer *w)
{
  static const uint32_t heads[TINY_LAYER] = {2, 1};

  ks_gguf_writer_add_array(w, "llama.attention.head_count_kv", KS_GGUF_U32, heads, TINY_LAYER);
}

static void
add_equal_heads(ks_gguf_writer *w)
{
  static const uint32_t heads[TINY_LAYER] = {TINY_KV_HEAD, TINY_KV_HEAD};

  ks_gguf_writer_add_array(w, "llama.attention.head_count_kv", KS_GGUF_U32, heads, TINY_LAYER);
}

KS_TEST(model, refused_keys)
{
  tiny_spec spec = {.arch = "llama", .add_keys = add_dynamic_rope};

  assert_refused(&spec, KS_ERR_UNSUPPORTED, "dynamic");
  spec.add_keys = add_experts;
  assert_refused(&spec, KS_ERR_UNSUPPORTED, "mixture of 8 experts");
  spec.add_keys = add_odd_rotation;
  assert_refused(&spec, KS_ERR_FORMAT, "dimension_count");
  spec.add_keys = add_wide_rotation;
  assert_refused(&spec, KS_ERR_FORMAT, "dimension_count");
  spec.skip_key = "attention.head_count_kv";
  spec.add_keys = add_varying_heads;
  assert_refused(&spec, KS_ERR_UNSUPPORTED, "head_count_kv");
}

/* One value a layer is the same as one for all, when they agree. */
KS_TEST(model, head_count_per_layer)
{
  tiny_spec spec = {
      .arch = "llama", .skip_key = "attention.head_count_kv", .add_keys = add_equal_heads};
  fixture f;

  KS_ASSERT_OK(open_spec(&f, &spec, 0));
  KS_ASSERT_EQ(ks_model_get_shape(f.model)->n_kv_head, TINY_KV_HEAD);
  close_fixture(&f);
}

/* A fused matrix becomes views of its rows: q, then k, then v; biases and the phi3 pair likewise.
 */
KS_TEST(model, fused_matrices)
{
  tiny_spec spec = {.arch = "phi3", .bias = true};
  uint32_t n_q = TINY_HEAD * TINY_DIM, n_k = TINY_KV_HEAD * TINY_DIM;
  const ks_gguf_tensor *t;
  const ks_layer *l;
  fixture f;

  KS_ASSERT_OK(open_spec(&f, &spec, 0));
  l = ks_model_get_layer(f.model, 1);
  t = ks_gguf_find_tensor(ks_model_get_gguf(f.model), "blk.1.attn_qkv.weight");
  KS_ASSERT_EQ(l->wq.n_out, n_q);
  KS_ASSERT_EQ(l->wk.n_out, n_k);
  KS_ASSERT_EQ(l->wv.n_out, n_k);
  KS_ASSERT_EQ(l->wk.data - l->wq.data, n_q * t->row_bytes);
  KS_ASSERT_EQ(l->wv.data - l->wq.data, (n_q + n_k) * t->row_bytes);
  KS_ASSERT_EQ(l->bv - l->bq, (n_q + n_k) * sizeof(float));
  KS_ASSERT_EQ(l->w_gate.n_out, TINY_FF);
  KS_ASSERT_EQ(l->w_up.data - l->w_gate.data, TINY_FF * l->w_up.row_bytes);
  close_fixture(&f);
}

/* A norm stored as f16 is converted; the kernels know f32 only. */
KS_TEST(model, half_norms_become_f32)
{
  tiny_spec spec = {.arch = "llama", .typed_tensor = "blk.0.ffn_norm.weight", .type = KS_DTYPE_F16};
  const ks_gguf_tensor *t;
  const float *got;
  fixture f;

  KS_ASSERT_OK(open_spec(&f, &spec, 0));
  t = ks_gguf_find_tensor(ks_model_get_gguf(f.model), "blk.0.ffn_norm.weight");
  got = host_floats(ks_model_get_layer(f.model, 0)->ffn_norm);
  for (uint32_t i = 0; i < TINY_EMBD; i++) {
    float want = ks_f16_to_f32((uint16_t)(t->data[2 * i] | t->data[2 * i + 1] << 8));

    KS_ASSERT_EQ(memcmp(&want, &got[i], sizeof want), 0);
  }
  close_fixture(&f);
}

static void
add_window(ks_gguf_writer *w)
{
  ks_gguf_writer_add_u32(w, "gemma3.attention.sliding_window", 16);
  ks_gguf_writer_add_f32(w, "gemma3.rope.freq_base", 1e6f);
  ks_gguf_writer_add_str(w, "gemma3.rope.scaling.type", "linear");
  ks_gguf_writer_add_f32(w, "gemma3.rope.scaling.factor", 8.0f);
}

static void
add_window_pattern(ks_gguf_writer *w)
{
  add_window(w);
  ks_gguf_writer_add_u32(w, "gemma3.attention.sliding_window_pattern", 2);
}

/* Gemma 3: five local layers to a global one unless the file says otherwise; only global layers are
 * stretched. */
KS_TEST(model, local_layers)
{
  tiny_spec spec = {.arch = "gemma3", .add_keys = add_window};
  const ks_model_shape *s;
  fixture f;

  KS_ASSERT_OK(open_spec(&f, &spec, 0));
  s = ks_model_get_shape(f.model);
  KS_ASSERT_EQ(s->window, 16);
  KS_ASSERT(ks_model_get_layer(f.model, 0)->is_local && ks_model_get_layer(f.model, 1)->is_local);
  KS_ASSERT_NEAR(host_floats(s->rope.inv_freq)[1], pow(1e6, -0.25) / 8, 1e-9);
  KS_ASSERT_NEAR(host_floats(s->rope_local.inv_freq)[1], 0.1, 1e-8);
  close_fixture(&f);
  spec.add_keys = add_window_pattern;
  KS_ASSERT_OK(open_spec(&f, &spec, 0));
  KS_ASSERT(ks_model_get_layer(f.model, 0)->is_local && !ks_model_get_layer(f.model, 1)->is_local);
  close_fixture(&f);
}

/* Axes of image positions, in blocks for one Qwen family, interleaved for the other. */
KS_TEST(model, image_axes)
{
  static const uint8_t blocks[4] = {0, 0, 1, 2}, interleaved[4] = {0, 1, 2, 0};
  tiny_spec spec = {.arch = "qwen2vl"};
  fixture f;

  KS_ASSERT_OK(open_spec(&f, &spec, 0));
  KS_ASSERT_EQ(memcmp((void *)(uintptr_t)ks_model_get_shape(f.model)->rope.axis, blocks, 4), 0);
  close_fixture(&f);
  spec.arch = "qwen3vl";
  KS_ASSERT_OK(open_spec(&f, &spec, 0));
  KS_ASSERT_EQ(memcmp((void *)(uintptr_t)ks_model_get_shape(f.model)->rope.axis, interleaved, 4),
               0);
  close_fixture(&f);
}

/* Loading survives every single failure of an allocation and leaves nothing behind. */
KS_TEST(model, out_of_memory)
{
  tiny_spec spec = {.arch = "gemma3",
                    .typed_tensor = "blk.0.ffn_norm.weight",
                    .type = KS_DTYPE_F16,
                    .add_keys = add_window};
  ks_alloc *a = ks_alloc_new();
  ks_dev_params dev = {.n_thread = 1, .alloc = a};
  ks_status st = KS_ERR_NOMEM;
  unsigned char *bytes;
  size_t n_bytes;
  ks_backend be;

  KS_ASSERT_OK(ks_backend_open("cpu", &dev, &be, NULL));
  bytes = tiny_new_bytes(a, &spec, &n_bytes);
  for (int64_t n = 0; st != KS_OK && n < 1000; n++) {
    uint64_t before = ks_alloc_get_bytes(a, KS_MEM_HOST) + ks_alloc_get_bytes(a, KS_MEM_WEIGHTS);
    ks_model *model = NULL;

    ks_alloc_fail_after(a, n);
    st = tiny_open(a, &be, bytes, n_bytes, 0, &model, NULL);
    ks_alloc_fail_after(a, -1);
    KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
    KS_ASSERT_EQ(model != NULL, st == KS_OK);
    ks_model_close(model);
    KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_HOST) + ks_alloc_get_bytes(a, KS_MEM_WEIGHTS),
                 before);
  }
  KS_ASSERT_OK(st);
  ks_mem_free(bytes);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

/* A file that is cut while it is mapped is noticed. */
KS_TEST(model, file_cut_after_loading)
{
  tiny_spec spec = {.arch = "llama"};
  char path[] = "/tmp/ks-model-XXXXXX";
  int fd = mkstemp(path);
  ks_alloc *a = ks_alloc_new();
  ks_dev_params dev = {.n_thread = 1, .alloc = a};
  ks_model *model = NULL;
  unsigned char *bytes;
  size_t n_bytes;
  ks_backend be;

  KS_ASSERT_OK(ks_backend_open("cpu", &dev, &be, NULL));
  bytes = tiny_new_bytes(a, &spec, &n_bytes);
  KS_ASSERT(fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
  KS_ASSERT_OK(ks_model_open(a, path, &(ks_model_params){.be = &be}, &model, NULL));
  KS_ASSERT_OK(ks_model_check_alive(model, NULL));
  KS_ASSERT_EQ(ftruncate(fd, 4096), 0);
  KS_ASSERT_STATUS(KS_ERR_IO, ks_model_check_alive(model, NULL));
  ks_model_close(model);
  close(fd);
  unlink(path);
  ks_mem_free(bytes);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

KS_TEST_MAIN

/* test-retention.c - gate files: what is read from a good one, and that everything else is refused
 * with the right code and the reason by name. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/retention.h"

#include "engine/gate-config.h"
#include "engine/safetensors.h"

#include "tests/unit/timeline-fixture.h"

#include <unistd.h>

#define MAX_TENSOR 40u

/* A gate for the tiny llama (2 layers, 4 KV heads, 256 wide) that a test may spoil before it is
 * written. */
typedef struct draft {
  char folder[64], path[96], config_path[96];
  char names[MAX_TENSOR][96];
  ks_st_tensor tensors[MAX_TENSOR];
  size_t n;
  float values[64 * 256];
} draft;

static void
add_tensor(draft *d, const char *name, uint64_t n_row, uint64_t n_col)
{
  ks_st_tensor *t = &d->tensors[d->n];

  KS_ASSERT_LT(d->n, MAX_TENSOR);
  snprintf(d->names[d->n], sizeof(d->names[0]), "%s", name);
  *t = (ks_st_tensor){.name = d->names[d->n],
                      .dtype = KS_DTYPE_F32,
                      .n_dims = n_col > 0 ? 2 : 1,
                      .shape = {n_row, n_col},
                      .data = (const unsigned char *)d->values,
                      .n_bytes = n_row * (n_col > 0 ? n_col : 1) * sizeof(float)};
  d->n++;
}

static void
draft_init(draft *d, uint32_t n_layer, uint32_t n_head, uint32_t n_embd, uint32_t n_gate)
{
  memset(d, 0, sizeof(*d));
  snprintf(d->folder, sizeof(d->folder), "gate-test-XXXXXX");
  KS_ASSERT(mkdtemp(d->folder) != NULL);
  snprintf(d->path, sizeof(d->path), "%s/g.safetensors", d->folder);
  snprintf(d->config_path, sizeof(d->config_path), "%s/g.config.json", d->folder);
  for (size_t i = 0; i < sizeof(d->values) / sizeof(float); i++)
    d->values[i] = 0.01f * (float)(i % 97) - 0.4f;
  for (uint32_t l = 0; l < n_layer; l++) {
    static const char *const names[] = {"bias",         "linear1.bias",   "linear1.weight",
                                        "linear2.bias", "linear2.weight", "linear3.weight"};
    const uint64_t rows[] = {n_head, n_gate, n_gate, n_gate, n_gate, n_head};
    const uint64_t cols[] = {0, 0, n_embd, 0, n_gate, n_gate};

    for (size_t i = 0; i < 6; i++) {
      char name[96];

      snprintf(name, sizeof(name), "model.language_model.layers.%u.self_attn.retention_gate.%s", l,
               names[i]);
      add_tensor(d, name, rows[i], cols[i]);
    }
  }
}

static void
write_config(const draft *d, const char *text)
{
  FILE *file = fopen(d->config_path, "w");

  KS_ASSERT(file != NULL);
  fputs(text, file);
  fclose(file);
}

/* Writes the draft, opens it for the fixture's model and removes the files again. */
static ks_status
open_draft(tl_fixture *f, draft *d, const char *const *metadata, ks_gate **out, ks_error *err)
{
  ks_status st;

  err->text[0] = '\0';
  KS_ASSERT_OK(ks_safetensors_write(f->alloc, d->path, d->tensors, d->n, metadata, NULL));
  st = ks_gate_open(f->alloc, d->path, f->model, out, err);
  unlink(d->path);
  unlink(d->config_path);
  rmdir(d->folder);
  return st;
}

/* The golden gates: sizes, kind, activation, and every tensor at its place. */
KS_TEST(retention, golden_gates)
{
  static const char *const files[] = {"dbtrimkv/gate_tied.safetensors",
                                      "dbtrimkv/gate_local.safetensors"};

  for (int local = 0; local < 2; local++) {
    tl_fixture f;
    const ks_gate_layer *layer;
    const ks_st_tensor *t;
    ks_safetensors *st = NULL;
    char path[1024];
    static float want[32 * 256], got[32 * 256];

    tl_open(&f, "llama/model.gguf", files[local], 4, 80, 80);
    KS_ASSERT_EQ(ks_gate_get_width(f.gate), 32);
    KS_ASSERT_EQ(ks_gate_is_local(f.gate), local);
    KS_ASSERT_EQ(ks_gate_is_tied(f.gate), !local);
    KS_ASSERT_EQ(ks_gate_get_act(f.gate), KS_ACT_SILU);
    layer = ks_gate_get_layer(f.gate, 1);
    KS_ASSERT(layer->w1.n_in == 256 && layer->w1.n_out == 32 && layer->w3.n_out == 4);
    KS_ASSERT_EQ(layer->w2.data == 0, local);
    KS_ASSERT_OK(
        ks_safetensors_open(f.alloc, tl_path(path, sizeof(path), files[local]), &st, NULL));
    t = ks_safetensors_find(st, "model.layers.1.self_attn.retention_gate.linear1.weight");
    KS_ASSERT_OK(ks_safetensors_read_f32(st, t, want, 32 * 256, NULL));
    KS_ASSERT_OK(f.be.t->download(f.be.dev, got, layer->w1.data, sizeof(got), NULL));
    KS_ASSERT(memcmp(want, got, sizeof(got)) == 0);
    t = ks_safetensors_find(st, local ? "model.layers.1.self_attn.retention_gate.linear2.weight"
                                      : "model.layers.1.self_attn.retention_gate.linear3.weight");
    KS_ASSERT_OK(ks_safetensors_read_f32(st, t, want, 4 * 32, NULL));
    KS_ASSERT_OK(f.be.t->download(f.be.dev, got, layer->w3.data, 4 * 32 * sizeof(float), NULL));
    KS_ASSERT(memcmp(want, got, 4 * 32 * sizeof(float)) == 0);
    ks_safetensors_close(st);
    tl_close(&f);
  }
}

/* The other prefix, per-layer last matrices that differ, and metadata that agrees. */
KS_TEST(retention, other_good_gates)
{
  static const char *const metadata[] = {
      "format", "keepsake-gate-1", "L", "2", "H", "4", "D", "256", "base", "SmolLM2-135M", NULL};
  tl_fixture f;
  ks_gate *gate = NULL;
  ks_error err;
  draft d;

  tl_open(&f, "llama/model.gguf", NULL, 4, 80, 80);
  draft_init(&d, 2, 4, 256, 16);
  if (open_draft(&f, &d, metadata, &gate, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  KS_ASSERT(ks_gate_is_tied(gate));
  KS_ASSERT_EQ(ks_gate_get_width(gate), 16);
  ks_gate_free(gate);
  draft_init(&d, 2, 4, 256, 16);
  d.tensors[11].data = (const unsigned char *)(d.values + 3); /* layer 1's linear3.weight */
  write_config(&d,
               "{\"text_config\": {\"hidden_size\": 256, \"hidden_act\": \"gelu\"},"
               " \"list\": [1, {\"hidden_size\": 9}], \"base_model\": \"my own \\\"model\\\"\"}");
  KS_ASSERT_OK(open_draft(&f, &d, NULL, &gate, &err));
  KS_ASSERT(!ks_gate_is_tied(gate));
  KS_ASSERT_EQ(ks_gate_get_act(gate), KS_ACT_GELU_ERF);
  ks_gate_free(gate);
  tl_close(&f);
}

/* A gate for another model is told by what differs. */
KS_TEST(retention, gates_of_other_models)
{
  static const struct {
    uint32_t n_layer, n_head, n_embd;
    const char *config, *says;
  } cases[] = {
      {3, 4, 256, NULL, "layers"},
      {1, 4, 256, NULL, "1 layers"},
      {2, 3, 256, NULL, "3 KV heads"},
      {2, 4, 255, NULL, "255 hidden elements"},
      {2, 4, 256, "{\"base_model\": \"Qwen/Qwen3-4B\"}", "Qwen/Qwen3-4B (qwen3 models)"},
      {2, 4, 256, "{\"num_hidden_layers\": 36}", "36 layers"},
      {2, 4, 256, "{\"num_key_value_heads\": 8}", "8 KV heads"},
      {2, 4, 256, "{\"hidden_size\": 2560}", "2560 hidden elements"},
      {2, 4, 256, "{\"retention_gate\": \"rg77\"}", "rg77"},
      {2, 4, 256, "{\"hidden_act\": \"tanh\"}", "tanh"},
  };
  static const char *const newer[] = {"format", "keepsake-gate-2", NULL};
  tl_fixture f;
  ks_gate *gate = NULL;
  ks_error err;
  draft d;

  tl_open(&f, "llama/model.gguf", NULL, 4, 80, 80);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    draft_init(&d, cases[i].n_layer, cases[i].n_head, cases[i].n_embd, 16);
    if (cases[i].config != NULL)
      write_config(&d, cases[i].config);
    KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, open_draft(&f, &d, NULL, &gate, &err));
    if (strstr(err.text, cases[i].says) == NULL)
      KS_FAIL("case %zu says: %s", i, err.text);
  }
  draft_init(&d, 2, 4, 256, 16);
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, open_draft(&f, &d, newer, &gate, &err));
  KS_ASSERT(gate == NULL);
  tl_close(&f);
}

/* Damage is a format error that names the place. */
KS_TEST(retention, damaged_gates)
{
  static const char *const says[] = {"linear2.bias",      "wrong shape",   "",
                                     "no retention gate", "configuration", "16 wide",
                                     "kind \"rg\""};
  static float bad[64 * 256];
  tl_fixture f;
  ks_gate *gate = NULL;
  ks_error err;

  tl_open(&f, "llama/model.gguf", NULL, 4, 80, 80);
  for (int kind = 0; kind < 7; kind++) {
    draft d;

    draft_init(&d, 2, 4, 256, 16);
    memcpy(bad, d.values, sizeof(bad));
    bad[100] = kind == 2 ? NAN : 0.0f;
    if (kind == 0)
      snprintf(d.names[9], sizeof(d.names[9]), "other"); /* layer 1's linear2.bias */
    if (kind == 1) {
      d.tensors[11].shape[1] = 15;
      d.tensors[11].n_bytes = 4 * 15 * sizeof(float);
    }
    if (kind == 2)
      d.tensors[8].data = (const unsigned char *)bad; /* layer 1's linear1.weight */
    for (size_t i = 0; kind == 3 && i < d.n; i++)
      d.names[i][0] = 'M';
    if (kind == 4)
      write_config(&d, "{\"hidden_size\": 256");
    if (kind == 5)
      write_config(&d, "{\"retention_gate_intermediate_size\": 512}");
    if (kind == 6)
      write_config(&d, "{\"retention_gate\": \"rg\"}");
    KS_ASSERT_STATUS(KS_ERR_FORMAT, open_draft(&f, &d, NULL, &gate, &err));
    if (strstr(err.text, says[kind]) == NULL)
      KS_FAIL("damage %d says: %s", kind, err.text);
  }
  KS_ASSERT_STATUS(KS_ERR_IO, ks_gate_open(f.alloc, "there/is/no.gate", f.model, &gate, &err));
  KS_ASSERT(gate == NULL);
  tl_close(&f);
}

/* The scanner of configurations: values it keeps, and text that it refuses at any cut. */
KS_TEST(retention, configuration_text)
{
  static const char text[] = "{\"a\": [[], {}, [1, \"]\"]], \"hidden_size\": 2560,\n"
                             " \"retention_gate\": \"rg10\", \"tie\": true, \"x\": -1.5e3,"
                             " \"deep\": {\"hidden_size\": 7},"
                             " \"text_config\": {\"num_hidden_layers\": 36}}";
  ks_gate_config c;
  char deep[200];

  KS_ASSERT_OK(ks_gate_config_parse(text, strlen(text), &c, NULL));
  KS_ASSERT(c.n_embd == 2560 && c.n_layer == 36 && c.n_kv_head == 0);
  KS_ASSERT_STR(c.kind, "rg10");
  for (size_t n = 0; n < strlen(text); n++)
    KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_gate_config_parse(text, n, &c, NULL));
  memset(deep, '[', sizeof(deep));
  memcpy(deep, "{\"a\":", 5);
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_gate_config_parse(deep, sizeof(deep), &c, NULL));
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_gate_config_parse("{} x", 4, &c, NULL));
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_gate_config_parse("[]", 2, &c, NULL));
}

KS_TEST_MAIN

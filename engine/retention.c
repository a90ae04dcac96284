/* retention.c - loading a DBTrimKV gate, or LocRet's heads, and checking that it belongs to the
 * model.  All tensors go into one block of device memory as f32.  A gate for another model is told
 * from a damaged one: sizes that agree with each other but not with the model are
 * KS_ERR_UNSUPPORTED. Scores lie in retention-score.c.  Source: docs/formats/gate.md,
 * docs/method.md section 2. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/retention.h"

#include "engine/gate-config.h"
#include "engine/safetensors.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ALIGN 16u /* floats: every tensor starts on 64 bytes */
#define MAX_WIDTH (1u << 16)

struct ks_gate {
  ks_backend *be;
  ks_gate_layer *layers;
  uint32_t n_layer, n_gate;
  bool is_tied, is_local, is_locret;
  ks_act act;
  ks_dptr block;
  size_t n_bytes;
};

/* What the loader knows while it works. */
typedef struct loader {
  ks_alloc *alloc;
  const char *path;
  const ks_model *model;
  const ks_model_shape *shape;
  ks_safetensors *file;
  const char *prefix, *module; /* of the names of tensors */
  ks_gate *gate;
  float *host; /* the block's content before upload, or NULL while sizes are counted */
  size_t n_elem;
} loader;

static const char *const prefixes[] = {"model.layers.", "model.language_model.layers."};

static const ks_st_tensor *
find(const loader *ld, uint32_t layer, const char *name)
{
  char full[128];

  snprintf(full, sizeof(full), "%s%u.self_attn.%s%s", ld->prefix, layer, ld->module, name);
  return ks_safetensors_find(ld->file, full);
}

/* --- does it belong to this model --- */

/* Letters and digits of a name in lower case. */
static void
squeeze(const char *name, char *out, size_t size)
{
  size_t n = 0;

  for (; *name != '\0' && n + 1 < size; name++)
    if (isalnum((unsigned char)*name))
      out[n++] = (char)tolower((unsigned char)*name);
  out[n] = '\0';
}

/* The architecture that a base model's name gives away, or NULL.  First match wins. */
static const char *
arch_of_name(const char *base)
{
  static const struct {
    const char *part, *arch;
  } families[] = {
      {"qwen3vl", "qwen3vl"}, {"qwen25vl", "qwen2vl"}, {"qwen2vl", "qwen2vl"}, {"qwen3", "qwen3"},
      {"qwen", "qwen2"},      {"gemma3", "gemma3"},    {"phi3", "phi3"},       {"phi4", "phi3"},
      {"llama", "llama"},     {"smollm", "llama"},     {"mistral", "llama"},
  };
  char name[128];

  squeeze(base, name, sizeof(name));
  for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
    if (strstr(name, families[i].part) != NULL)
      return families[i].arch;
  return NULL;
}

static ks_status
check_family(const loader *ld, const char *base, ks_error *err)
{
  const char *want = base[0] != '\0' ? arch_of_name(base) : NULL;
  const char *arch = ks_model_get_arch_name(ld->model);

  if (want != NULL && strcmp(want, arch) != 0)
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "%s is a gate for %.60s (%s models); the loaded model is a %s model", ld->path,
                   base, want, arch);
  return KS_OK;
}

static ks_status
check_number(const loader *ld, const char *what, uint64_t gate, uint64_t model, ks_error *err)
{
  if (gate == 0 || gate == model)
    return KS_OK;
  return ks_fail(err, KS_ERR_UNSUPPORTED,
                 "%s is a gate for another model: it has %llu %s, the loaded model has %llu",
                 ld->path, (unsigned long long)gate, what, (unsigned long long)model);
}

static ks_status
check_config(const loader *ld, const ks_gate_config *c, ks_error *err)
{
  static const struct {
    const char *name;
    ks_act act;
  } acts[] = {
      {"silu", KS_ACT_SILU},          {"swish", KS_ACT_SILU},
      {"gelu", KS_ACT_GELU_ERF},      {"gelu_pytorch_tanh", KS_ACT_GELU_TANH},
      {"gelu_new", KS_ACT_GELU_TANH},
  };
  ks_status st = check_family(ld, c->base_model, err);

  if (st == KS_OK)
    st = check_number(ld, "layers", c->n_layer, ld->shape->n_layer, err);
  if (st == KS_OK)
    st = check_number(ld, "KV heads", c->n_kv_head, ld->shape->n_kv_head, err);
  if (st == KS_OK)
    st = check_number(ld, "hidden elements", c->n_embd, ld->shape->n_embd, err);
  if (st != KS_OK)
    return st;
  if (c->kind[0] != '\0' && strcmp(c->kind, "rg10") != 0 && strcmp(c->kind, "rg") != 0 &&
      strcmp(c->kind, "locret") != 0)
    return ks_fail(
        err, KS_ERR_UNSUPPORTED,
        "%s: gates of kind \"%s\" are unknown; \"rg10\", \"rg\" and \"locret\" can be used",
        ld->path, c->kind);
  if (c->act[0] == '\0')
    return KS_OK;
  for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
    if (strcmp(c->act, acts[i].name) == 0) {
      ld->gate->act = acts[i].act;
      return KS_OK;
    }
  return ks_fail(err, KS_ERR_UNSUPPORTED, "%s: activation \"%s\" is unknown", ld->path, c->act);
}

/* Reads gate.config.json beside gate.safetensors when it is there. */
static ks_status
read_config(const loader *ld, ks_gate_config *out, ks_error *err)
{
  static const char ending[] = ".safetensors";
  size_t n = strlen(ld->path);
  char path[4096];
  ks_map *map = NULL;
  ks_status st;

  memset(out, 0, sizeof(*out));
  if (n >= sizeof(ending) && strcmp(ld->path + n - (sizeof(ending) - 1), ending) == 0)
    n -= sizeof(ending) - 1;
  if (n > sizeof(path) - sizeof(".config.json"))
    return KS_OK;
  snprintf(path, sizeof(path), "%.*s.config.json", (int)n, ld->path);
  if (access(path, F_OK) != 0)
    return KS_OK;
  st = ks_map_open(ld->alloc, path, &map, err);
  if (st != KS_OK)
    return st;
  st = ks_gate_config_parse((const char *)ks_map_get_data(map), ks_map_get_size(map), out, err);
  if (st != KS_OK)
    st = ks_fail_prefix(err, st, path);
  ks_map_close(map);
  return st;
}

/* The same facts from the file's own metadata, where the configuration says nothing. */
static ks_status
check_metadata(const loader *ld, ks_error *err)
{
  static const char *const keys[] = {"L", "H", "D"};
  static const char *const names[] = {"layers", "KV heads", "hidden elements"};
  const uint32_t want[] = {ld->shape->n_layer, ld->shape->n_kv_head, ld->shape->n_embd};
  const char *text = ks_safetensors_get_metadata(ld->file, "format");

  if (text != NULL && strncmp(text, "keepsake-gate-", 14) == 0 && strcmp(text + 14, "1") != 0)
    return ks_fail(err, KS_ERR_UNSUPPORTED, "%s has the newer format \"%.40s\"; update Keepsake",
                   ld->path, text);
  for (size_t i = 0; i < 3; i++) {
    uint64_t value = 0;
    ks_status st;

    text = ks_safetensors_get_metadata(ld->file, keys[i]);
    for (; text != NULL && isdigit((unsigned char)*text) && value < UINT32_MAX; text++)
      value = value * 10 + (uint64_t)(*text - '0');
    st = check_number(ld, names[i], value, want[i], err);
    if (st != KS_OK)
      return st;
  }
  text = ks_safetensors_get_metadata(ld->file, "base");
  return check_family(ld, text != NULL ? text : "", err);
}

/* --- tensors --- */

static uint32_t
qkv_floats(const ks_model_shape *s)
{
  return s->n_head * s->k_dim + s->n_kv_head * (s->k_dim + s->v_dim);
}

/* The first layer's first matrix: it tells prefix and kind. */
static const ks_st_tensor *
find_first(loader *ld)
{
  static const struct {
    const char *module, *name;
  } kinds[] = {{"retention_gate.", "linear1.weight"}, {"", "fc1.weight"}};

  for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
      const ks_st_tensor *w1;

      ld->prefix = prefixes[i];
      ld->module = kinds[k].module;
      w1 = find(ld, 0, kinds[k].name);
      ld->gate->is_locret = k == 1;
      if (w1 != NULL)
        return w1;
    }
  return NULL;
}

static bool
has_layer(const loader *ld, uint32_t layer)
{
  static const char *const names[] = {"linear1.weight", "linear1.bias", "bias"};

  if (ld->gate->is_locret)
    return find(ld, layer, "fc1.weight") != NULL || find(ld, layer, "fc2.weight") != NULL;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (find(ld, layer, names[i]) != NULL)
      return true;
  return false;
}

/* Sizes by the file's first layer: prefix, kind, width; and the number of layers. */
static ks_status
probe_tensors(loader *ld, ks_error *err)
{
  const ks_st_tensor *w1 = find_first(ld), *last;
  const bool is_locret = ld->gate->is_locret;
  uint32_t n_layer = 0;
  ks_status st;

  if (w1 == NULL)
    return ks_fail(err, KS_ERR_FORMAT,
                   "%s is no retention gate: it has no model.layers.0.self_attn.retention_gate."
                   "linear1.weight",
                   ld->path);
  last = find(ld, 0, is_locret ? "fc2.weight" : "bias");
  while (n_layer <= ld->shape->n_layer && has_layer(ld, n_layer))
    n_layer++;
  st = check_number(ld, n_layer > ld->shape->n_layer ? "or more layers" : "layers", n_layer,
                    ld->shape->n_layer, err);
  if (st != KS_OK)
    return st;
  if (w1->n_dims != 2 || w1->shape[0] == 0 || w1->shape[0] > MAX_WIDTH)
    return ks_fail(err, KS_ERR_FORMAT, "%s: %s of layer 0 is no matrix", ld->path,
                   is_locret ? "fc1.weight" : "linear1.weight");
  if (is_locret)
    st = check_number(ld, "numbers in q, k and v", w1->shape[1], qkv_floats(ld->shape), err);
  else
    st = check_number(ld, "hidden elements", w1->shape[1], ld->shape->n_embd, err);
  if (st == KS_OK && last != NULL && last->n_dims == (is_locret ? 2u : 1u))
    st = check_number(ld, "KV heads", last->shape[0], ld->shape->n_kv_head, err);
  ld->gate->n_layer = n_layer;
  ld->gate->n_gate = (uint32_t)w1->shape[0];
  ld->gate->is_local = !is_locret && find(ld, 0, "linear3.weight") == NULL;
  return st;
}

/* Finds a tensor, checks its shape and gives it its place in the block; n_col 0 means a vector. */
static ks_status
place(loader *ld, uint32_t layer, const char *name, uint32_t n_row, uint32_t n_col,
      size_t *out_offset, ks_error *err)
{
  const ks_st_tensor *t = find(ld, layer, name);
  const size_t n = (size_t)n_row * (n_col > 0 ? n_col : 1);
  ks_status st = KS_OK;

  if (t == NULL)
    return ks_fail(err, KS_ERR_FORMAT, "%s: layer %u has no %s", ld->path, layer, name);
  if (t->n_dims != (n_col > 0 ? 2u : 1u) || t->shape[0] != n_row ||
      (n_col > 0 && t->shape[1] != n_col))
    return ks_fail(err, KS_ERR_FORMAT, "%s: %s of layer %u has the wrong shape", ld->path, name,
                   layer);
  if (ld->host != NULL)
    st = ks_safetensors_read_f32(ld->file, t, ld->host + ld->n_elem, n, err);
  *out_offset = ld->n_elem;
  ld->n_elem += (n + ALIGN - 1) / ALIGN * ALIGN;
  return st;
}

static ks_weight
matrix(const ks_gate *gate, size_t offset, uint32_t n_out, uint32_t n_in)
{
  const ks_weight w = {.data = gate->block + offset * sizeof(float),
                       .dtype = KS_DTYPE_F32,
                       .n_in = n_in,
                       .n_out = n_out,
                       .row_bytes = n_in * sizeof(float)};

  return w;
}

/* A file has the numbers of a head in the order of its authors' code, halves behind each other;
 * models that rotate neighbours have them in pairs.  Row by row, in place. */
static void
pair_columns(const ks_model_shape *s, float *row, float *spare)
{
  const uint32_t n_head = s->n_head + s->n_kv_head, half = s->k_dim / 2;

  for (uint32_t h = 0; h < n_head; h++, row += s->k_dim) {
    memcpy(spare, row, s->k_dim * sizeof(*row));
    for (uint32_t i = 0; i < half; i++) {
      row[2 * i] = spare[i];
      row[2 * i + 1] = spare[half + i];
    }
  }
}

/* The same for LocRet's heads. */
static ks_status
place_locret_layer(loader *ld, uint32_t layer, ks_error *err)
{
  ks_gate *gate = ld->gate;
  const uint32_t n_qkv = qkv_floats(ld->shape), n_head = ld->shape->n_kv_head, n = gate->n_gate;
  size_t w1 = 0, w3 = 0;
  ks_status st = place(ld, layer, "fc1.weight", n, n_qkv, &w1, err);

  if (st == KS_OK)
    st = place(ld, layer, "fc2.weight", n_head, n, &w3, err);
  if (st != KS_OK || ld->host == NULL)
    return st;
  if (!ld->shape->rope.neox) {
    float *spare = ks_mem_new(ld->alloc, KS_MEM_HOST, ld->shape->k_dim, sizeof(*spare));

    if (spare == NULL)
      return ks_fail(err, KS_ERR_NOMEM, "not enough memory to load %s", ld->path);
    for (uint32_t r = 0; r < n; r++)
      pair_columns(ld->shape, ld->host + w1 + (size_t)r * n_qkv, spare);
    ks_mem_free(spare);
  }
  gate->layers[layer] =
      (ks_gate_layer){.w1 = matrix(gate, w1, n, n_qkv), .w3 = matrix(gate, w3, n_head, n)};
  return KS_OK;
}

/* One layer's tensors; without a host block only sizes and shapes. */
static ks_status
place_layer(loader *ld, uint32_t layer, size_t *out_w3, size_t *out_b3, ks_error *err)
{
  ks_gate *gate = ld->gate;
  const uint32_t n_embd = ld->shape->n_embd, n_head = ld->shape->n_kv_head, n = gate->n_gate;
  size_t w1 = 0, b1 = 0, w2 = 0, b2 = 0, w3 = 0, b3 = 0;
  ks_status st;

  if (gate->is_locret)
    return place_locret_layer(ld, layer, err);
  st = place(ld, layer, "linear1.weight", n, n_embd, &w1, err);
  if (st == KS_OK)
    st = place(ld, layer, "linear1.bias", n, 0, &b1, err);
  if (st == KS_OK && !gate->is_local)
    st = place(ld, layer, "linear2.weight", n, n, &w2, err);
  if (st == KS_OK && !gate->is_local)
    st = place(ld, layer, "linear2.bias", n, 0, &b2, err);
  if (st == KS_OK)
    st =
        place(ld, layer, gate->is_local ? "linear2.weight" : "linear3.weight", n_head, n, &w3, err);
  if (st == KS_OK)
    st = place(ld, layer, "bias", n_head, 0, &b3, err);
  if (st != KS_OK || ld->host == NULL)
    return st;
  gate->layers[layer] = (ks_gate_layer){.w1 = matrix(gate, w1, n, n_embd),
                                        .w3 = matrix(gate, w3, n_head, n),
                                        .b1 = gate->block + b1 * sizeof(float),
                                        .b3 = gate->block + b3 * sizeof(float)};
  if (!gate->is_local) {
    gate->layers[layer].w2 = matrix(gate, w2, n, n);
    gate->layers[layer].b2 = gate->block + b2 * sizeof(float);
  }
  *out_w3 = w3;
  *out_b3 = b3;
  return KS_OK;
}

/* Twice over all layers: sizes first, then values.  Tied means that every layer's last matrix and
 * bias equal those of the first. */
static ks_status
load_tensors(loader *ld, ks_error *err)
{
  ks_gate *gate = ld->gate;
  const uint32_t n_head = ld->shape->n_kv_head;
  const size_t w3_bytes = (size_t)n_head * gate->n_gate * sizeof(float);
  size_t w3 = 0, b3 = 0, w3_first = 0, b3_first = 0;
  ks_status st = KS_OK;

  for (uint32_t l = 0; st == KS_OK && l < gate->n_layer; l++)
    st = place_layer(ld, l, &w3, &b3, err);
  if (st != KS_OK)
    return st;
  gate->n_bytes = ld->n_elem * sizeof(float);
  ld->host = ks_mem_new(ld->alloc, KS_MEM_HOST, ld->n_elem, sizeof(float));
  gate->layers = ks_mem_new(ld->alloc, KS_MEM_HOST, gate->n_layer, sizeof(*gate->layers));
  if (ld->host == NULL || gate->layers == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory to load %s", ld->path);
  st = gate->be->t->mem_new(gate->be->dev, KS_MEM_WEIGHTS, gate->n_bytes, &gate->block, err);
  gate->is_tied = !gate->is_local && !gate->is_locret;
  ld->n_elem = 0;
  for (uint32_t l = 0; st == KS_OK && l < gate->n_layer; l++) {
    st = place_layer(ld, l, &w3, &b3, err);
    if (l == 0) {
      w3_first = w3;
      b3_first = b3;
    }
    if (st == KS_OK && gate->is_tied &&
        (memcmp(ld->host + w3, ld->host + w3_first, w3_bytes) != 0 ||
         memcmp(ld->host + b3, ld->host + b3_first, n_head * sizeof(float)) != 0))
      gate->is_tied = false;
  }
  if (st == KS_OK)
    st = gate->be->t->upload(gate->be->dev, gate->block, ld->host, gate->n_bytes, err);
  return st;
}

static ks_status
load(loader *ld, ks_error *err)
{
  ks_gate_config config;
  ks_status st = ks_safetensors_open(ld->alloc, ld->path, &ld->file, err);

  if (st == KS_OK)
    st = read_config(ld, &config, err);
  if (st == KS_OK)
    st = check_config(ld, &config, err);
  if (st == KS_OK)
    st = check_metadata(ld, err);
  if (st == KS_OK)
    st = probe_tensors(ld, err);
  if (st != KS_OK)
    return st;
  if (config.kind[0] != '\0' && strcmp(config.kind, ld->gate->is_locret  ? "locret"
                                                    : ld->gate->is_local ? "rg"
                                                                         : "rg10") != 0)
    return ks_fail(err, KS_ERR_FORMAT, "%s: the tensors are not those of a gate of kind \"%s\"",
                   ld->path, config.kind);
  if (config.n_gate != 0 && config.n_gate != ld->gate->n_gate)
    return ks_fail(err, KS_ERR_FORMAT, "%s: the gate is %u wide, its configuration says %u",
                   ld->path, ld->gate->n_gate, config.n_gate);
  return load_tensors(ld, err);
}

ks_status
ks_gate_open(ks_alloc *a, const char *path, const ks_model *model, ks_gate **out, ks_error *err)
{
  loader ld = {.alloc = a, .path = path, .model = model, .shape = ks_model_get_shape(model)};
  ks_status st;

  ld.gate = ks_mem_new(a, KS_MEM_HOST, 1, sizeof(*ld.gate));
  if (ld.gate == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory to load %s", path);
  ld.gate->be = ks_model_get_backend(model);
  ld.gate->act = ld.shape->act;
  st = load(&ld, err);
  ks_safetensors_close(ld.file);
  ks_mem_free(ld.host);
  if (st != KS_OK)
    ks_gate_free(ld.gate);
  else
    *out = ld.gate;
  return st;
}

void
ks_gate_free(ks_gate *gate)
{
  if (gate == NULL)
    return;
  if (gate->block != 0)
    gate->be->t->mem_free(gate->be->dev, gate->block);
  ks_mem_free(gate->layers);
  ks_mem_free(gate);
}

const ks_gate_layer *
ks_gate_get_layer(const ks_gate *gate, uint32_t layer)
{
  return &gate->layers[layer];
}

uint32_t
ks_gate_get_width(const ks_gate *gate)
{
  return gate->n_gate;
}

bool
ks_gate_is_tied(const ks_gate *gate)
{
  return gate->is_tied;
}

bool
ks_gate_is_local(const ks_gate *gate)
{
  return gate->is_local;
}

bool
ks_gate_is_locret(const ks_gate *gate)
{
  return gate->is_locret;
}

ks_act
ks_gate_get_act(const ks_gate *gate)
{
  return gate->act;
}

uint64_t
ks_gate_get_bytes(const ks_gate *gate)
{
  return gate->n_bytes;
}

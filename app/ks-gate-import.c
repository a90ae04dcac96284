/* ks-gate-import.c - see ks-gate-import.h.
 * What is written lies in a folder of its own beside its place until the engine has taken it for
 * the model; then it is moved.  Source: docs/formats/gate.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-gate-import.h"

#include "app/ks-error.h"
#include "app/ks-torch-file.h"
#include "engine/gate-config.h"
#include "engine/retention.h"
#include "engine/safetensors.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#define ENDING ".safetensors"
#define MAX_CONFIG ((gsize)4 << 20)
#define MAX_LAYERS 4096u
#define MIDDLE ".self_attn."
#define MODULE MIDDLE "retention_gate."

/* LocRet's heads have W1 and W3 alone, under names of their own. */
typedef enum { PART_W1, PART_B1, PART_W2, PART_B2, PART_W3, PART_B3, N_PART } Part;

static const char *const part_names[N_PART] = {
    "retention_gate.linear1.weight", "retention_gate.linear1.bias",
    "retention_gate.linear2.weight", "retention_gate.linear2.bias",
    "retention_gate.linear3.weight", "retention_gate.bias"};
static const char *const locret_names[N_PART] = {
    [PART_W1] = "fc1.weight", [PART_W3] = "fc2.weight"};
static const char *const prefixes[] = {"model.layers.", "model.language_model.layers."};

typedef struct {
  const KsTorchArray *parts[N_PART]; /* NULL = absent */
} Layer;

struct _KsGateFile {
  char *path;
  ks_alloc *alloc;
  GPtrArray *arrays; /* KsTorchArray */
  GArray *layers;    /* Layer */
  const char *const *part_names;
  ks_gate_config config;
  char *config_path;
  KsGateFacts facts;
};

static gboolean G_GNUC_PRINTF (3, 4)
    fail (GError **error, ks_status status, const char *format, ...)
{
  va_list args;
  ks_error err;

  va_start (args, format);
  ks_fail_va (&err, status, format, args);
  va_end (args);
  return ks_error_check (status, &err, error);
}

/* --- base --- */

KsGateBase *
ks_gate_base_open (const char *model_path, GError **error)
{
  g_autoptr (KsGateBase) base = g_new0 (KsGateBase, 1);
  ks_dev_params dev_params = {.n_thread = 1, .mode = KS_COMPUTE_EXACT};
  ks_model_params model_params = {.be = &base->be};
  ks_error err = {0};

  base->alloc = ks_alloc_new ();
  if (base->alloc == NULL) {
    ks_error_check (KS_ERR_NOMEM, NULL, error);
    return NULL;
  }
  dev_params.alloc = base->alloc;
  if (!ks_error_check (ks_backend_open ("cpu", &dev_params, &base->be, &err), &err, error) ||
      !ks_error_check (ks_model_open (base->alloc, model_path, &model_params, &base->model, &err),
                       &err, error))
    return NULL;
  return g_steal_pointer (&base);
}

void
ks_gate_base_free (KsGateBase *base)
{
  if (base == NULL)
    return;
  ks_model_close (base->model);
  ks_backend_close (&base->be);
  ks_alloc_free (base->alloc);
  g_free (base);
}

/* --- names and shapes --- */

static gboolean
is_gate_tensor (const char *name)
{
  return strstr (name, MODULE) != NULL || strstr (name, MIDDLE "fc1.weight") != NULL ||
         strstr (name, MIDDLE "fc2.weight") != NULL;
}

static gboolean
parse_part (const char *name, Part *out_part, gboolean *out_is_locret)
{
  for (guint part = 0; part < N_PART; part++) {
    *out_is_locret = g_strcmp0 (name, locret_names[part]) == 0;
    *out_part = (Part)part;
    if (*out_is_locret || strcmp (name, part_names[part]) == 0)
      return TRUE;
  }
  return FALSE;
}

/* "model.layers.3.self_attn.retention_gate.bias": prefix, layer and part. */
static gboolean
parse_name (const char *name, guint *out_prefix, guint *out_layer, Part *out_part,
            gboolean *out_is_locret)
{
  for (guint i = 0; i < G_N_ELEMENTS (prefixes); i++) {
    char *end;
    guint64 layer;

    if (!g_str_has_prefix (name, prefixes[i]) || !g_ascii_isdigit (name[strlen (prefixes[i])]))
      continue;
    layer = g_ascii_strtoull (name + strlen (prefixes[i]), &end, 10);
    *out_prefix = i;
    *out_layer = (guint)MIN (layer, MAX_LAYERS);
    return layer < MAX_LAYERS && g_str_has_prefix (end, MIDDLE) &&
           parse_part (end + strlen (MIDDLE), out_part, out_is_locret);
  }
  return FALSE;
}

static gboolean
sort_arrays (KsGateFile *self, GError **error)
{
  guint first_prefix = 0;
  gboolean is_locret = FALSE;

  for (guint i = 0; i < self->arrays->len; i++) {
    const KsTorchArray *array = g_ptr_array_index (self->arrays, i);
    gboolean of_locret = FALSE;
    guint prefix, layer;
    Part part;

    if (!parse_name (array->name, &prefix, &layer, &part, &of_locret))
      return fail (error, KS_ERR_UNSUPPORTED, "%s: no gate that this build knows has a tensor %s",
                   self->path, array->name);
    first_prefix = i == 0 ? prefix : first_prefix;
    is_locret = i == 0 ? of_locret : is_locret;
    if (prefix != first_prefix || of_locret != is_locret)
      return fail (error, KS_ERR_FORMAT, "%s holds two kinds of gates", self->path);
    if (layer >= self->layers->len)
      g_array_set_size (self->layers, layer + 1);
    g_array_index (self->layers, Layer, layer).parts[part] = array;
  }
  self->part_names = is_locret ? locret_names : part_names;
  return TRUE;
}

static gboolean
check_part (KsGateFile *self, guint layer, Part part, guint64 n_row, guint64 n_col, GError **error)
{
  const KsTorchArray *array = g_array_index (self->layers, Layer, layer).parts[part];

  if (array == NULL)
    return fail (error, KS_ERR_FORMAT, "%s: layer %u has no %s", self->path, layer,
                 self->part_names[part]);
  if (array->n_dims == (n_col > 0 ? 2u : 1u) && array->shape[0] == n_row &&
      (n_col == 0 || array->shape[1] == n_col))
    return TRUE;
  return fail (error, KS_ERR_FORMAT, "%s: %s of layer %u has the wrong shape", self->path,
               self->part_names[part], layer);
}

/* The same for LocRet's heads, which read q, k and v and have no biases. */
static gboolean
find_locret_sizes (KsGateFile *self, GError **error)
{
  const Layer *first = &g_array_index (self->layers, Layer, 0);
  const KsTorchArray *w1 = first->parts[PART_W1], *w3 = first->parts[PART_W3];
  KsGateFacts *f = &self->facts;
  gboolean ok = TRUE;

  if (w1 == NULL || w1->n_dims != 2 || w3 == NULL || w3->n_dims != 2)
    return fail (error, KS_ERR_FORMAT, "%s: layer 0 has no fc1.weight or no fc2.weight",
                 self->path);
  f->kind = "locret";
  f->n_gate = (guint)w1->shape[0];
  f->n_embd = (guint)w1->shape[1];
  f->n_kv_head = (guint)w3->shape[0];
  f->n_layer = self->layers->len;
  f->n_params = ((guint64)f->n_embd + f->n_kv_head) * f->n_gate * f->n_layer;
  for (guint l = 0; ok && l < f->n_layer; l++)
    ok = check_part (self, l, PART_W1, f->n_gate, f->n_embd, error) &&
         check_part (self, l, PART_W3, f->n_kv_head, f->n_gate, error);
  return ok;
}

/* Sizes by the first layer's shapes; every layer must have them. */
static gboolean
find_sizes (KsGateFile *self, GError **error)
{
  const Layer *first = &g_array_index (self->layers, Layer, 0);
  const KsTorchArray *w1 = first->parts[PART_W1], *b3 = first->parts[PART_B3];
  const gboolean is_long = first->parts[PART_W3] != NULL;
  const Part last = is_long ? PART_W3 : PART_W2;
  KsGateFacts *f = &self->facts;
  gboolean ok = TRUE;

  if (w1 == NULL || w1->n_dims != 2 || b3 == NULL || b3->n_dims != 1)
    return fail (error, KS_ERR_FORMAT, "%s: layer 0 has no linear1.weight or no bias", self->path);
  f->kind = is_long ? "rg10" : "rg";
  f->n_gate = (guint)w1->shape[0];
  f->n_embd = (guint)w1->shape[1];
  f->n_kv_head = (guint)b3->shape[0];
  f->n_layer = self->layers->len;
  for (guint l = 0; ok && l < f->n_layer; l++) {
    ok = check_part (self, l, PART_W1, f->n_gate, f->n_embd, error) &&
         check_part (self, l, PART_B1, f->n_gate, 0, error) &&
         (!is_long || (check_part (self, l, PART_W2, f->n_gate, f->n_gate, error) &&
                       check_part (self, l, PART_B2, f->n_gate, 0, error))) &&
         check_part (self, l, last, f->n_kv_head, f->n_gate, error) &&
         check_part (self, l, PART_B3, f->n_kv_head, 0, error);
    if (ok && !is_long &&
        (g_array_index (self->layers, Layer, l).parts[PART_B2] != NULL ||
         g_array_index (self->layers, Layer, l).parts[PART_W3] != NULL))
      ok = fail (error, KS_ERR_FORMAT, "%s: layer %u has another kind of gate than layer 0",
                 self->path, l);
  }
  return ok;
}

static gboolean
are_equal (const KsTorchArray *a, const KsTorchArray *b)
{
  return memcmp (a->data, b->data, a->n_elem * sizeof *a->data) == 0;
}

/* Tied or not, and the numbers that go with it. */
static void
find_tie (KsGateFile *self)
{
  const Layer *first = &g_array_index (self->layers, Layer, 0);
  KsGateFacts *f = &self->facts;
  const guint64 n_last = (guint64)f->n_kv_head * (f->n_gate + 1);
  guint64 n_own = (guint64)f->n_gate * (f->n_embd + 1);

  f->is_tied = first->parts[PART_W3] != NULL;
  f->least_bias = f->most_bias = first->parts[PART_B3]->data[0];
  for (guint l = 0; l < f->n_layer; l++) {
    const Layer *layer = &g_array_index (self->layers, Layer, l);

    f->is_tied = f->is_tied && are_equal (layer->parts[PART_W3], first->parts[PART_W3]) &&
                 are_equal (layer->parts[PART_B3], first->parts[PART_B3]);
    for (guint h = 0; h < f->n_kv_head; h++) {
      f->least_bias = MIN (f->least_bias, layer->parts[PART_B3]->data[h]);
      f->most_bias = MAX (f->most_bias, layer->parts[PART_B3]->data[h]);
    }
  }
  if (first->parts[PART_W3] != NULL)
    n_own += (guint64)f->n_gate * (f->n_gate + 1);
  f->n_params = n_own * f->n_layer + n_last * (f->is_tied ? 1 : f->n_layer);
}

/* --- reading --- */

static KsTorchArray *
copy_tensor (const ks_safetensors *st, const ks_st_tensor *tensor, GError **error)
{
  KsTorchArray *array = g_new0 (KsTorchArray, 1);
  ks_error err = {0};

  array->name = g_strdup (tensor->name);
  array->dtype = tensor->dtype;
  array->n_dims = tensor->n_dims;
  memcpy (array->shape, tensor->shape, sizeof array->shape);
  array->n_elem = tensor->n_bytes / ks_dtype_get_info ((uint32_t)tensor->dtype)->block_bytes;
  array->data = g_try_new (float, array->n_elem);
  if (array->data == NULL)
    fail (error, KS_ERR_NOMEM, "not enough memory for tensor %s", array->name);
  else if (ks_error_check (ks_safetensors_read_f32 (st, tensor, array->data, array->n_elem, &err),
                           &err, error))
    return array;
  ks_torch_array_free (array);
  return NULL;
}

static gboolean
read_safetensors (KsGateFile *self, GError **error)
{
  ks_safetensors *st = NULL;
  ks_error err = {0};
  gboolean ok =
      ks_error_check (ks_safetensors_open (self->alloc, self->path, &st, &err), &err, error);
  const char *base = ok ? ks_safetensors_get_metadata (st, "base") : NULL;

  self->arrays = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_torch_array_free);
  if (base != NULL)
    g_strlcpy (self->config.base_model, base, sizeof self->config.base_model);
  for (size_t i = 0; ok && i < ks_safetensors_get_n (st); i++) {
    const ks_st_tensor *tensor = ks_safetensors_get (st, i);
    KsTorchArray *array;

    if (!is_gate_tensor (tensor->name)) {
      self->facts.n_other++;
      continue;
    }
    array = copy_tensor (st, tensor, error);
    ok = array != NULL;
    if (ok)
      g_ptr_array_add (self->arrays, array);
  }
  ks_safetensors_close (st);
  return ok;
}

/* A bare pickle that starts with a number known by heart. */
static gboolean
is_old_torch (const ks_map *map)
{
  static const guint8 start[] = {0x80, 0x02, 0x8a, 0x0a, 'l', 0xfc};

  return ks_map_get_size (map) > sizeof start &&
         memcmp (ks_map_get_data (map), start, sizeof start) == 0;
}

static gboolean
read_tensors (KsGateFile *self, GError **error)
{
  ks_map *map = NULL;
  ks_error err = {0};
  gboolean ok;

  if (!ks_error_check (ks_map_open (self->alloc, self->path, &map, &err), &err, error))
    return FALSE;
  self->facts.is_torch = ks_torch_file_sniff (ks_map_get_data (map), ks_map_get_size (map));
  if (!self->facts.is_torch) {
    ok = !is_old_torch (map) ||
         fail (error, KS_ERR_UNSUPPORTED,
               "%s was saved by a PyTorch before 1.6: load and save it once with a newer one",
               self->path);
    ks_map_close (map);
    return ok && read_safetensors (self, error);
  }
  self->arrays = ks_torch_file_read (ks_map_get_data (map), ks_map_get_size (map), is_gate_tensor,
                                     &self->facts.n_other, error);
  ok = self->arrays != NULL;
  if (!ok)
    g_prefix_error (error, "%s: ", self->path);
  if (ks_map_is_lost (map)) {
    g_clear_error (error);
    ok = fail (error, KS_ERR_IO, "%s became shorter while it was read", self->path);
  }
  ks_map_close (map);
  return ok;
}

/* --- configuration --- */

/* FALSE and error only for a file that is there and damaged. */
static gboolean
try_config (KsGateFile *self, const char *take_path, GError **error)
{
  g_autofree char *path = (char *)take_path, *text = NULL;
  ks_gate_config config;
  ks_error err = {0};
  gsize n = 0;

  if (self->config_path != NULL || !g_file_get_contents (path, &text, &n, NULL))
    return TRUE;
  if (n > MAX_CONFIG ||
      !ks_error_check (ks_gate_config_parse (text, n, &config, &err), &err, error)) {
    if (n > MAX_CONFIG)
      fail (error, KS_ERR_FORMAT, "it is longer than 4 MiB");
    g_prefix_error (error, "%s: ", path);
    return FALSE;
  }
  if (config.kind[0] == '\0' && config.base_model[0] == '\0')
    return TRUE; /* some other program's */
  if (config.base_model[0] == '\0')
    g_strlcpy (config.base_model, self->config.base_model, sizeof config.base_model);
  self->config = config;
  self->config_path = g_steal_pointer (&path);
  return TRUE;
}

static char *
dup_config_path (const char *path)
{
  const char *end = strrchr (path, '.');

  return g_strdup_printf (
      "%.*s.config.json",
      (int)(end != NULL && strchr (end, '/') == NULL ? end - path : (gssize)strlen (path)), path);
}

static gboolean
read_config (KsGateFile *self, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (self->path);
  const ks_gate_config *c = &self->config;
  KsGateFacts *f = &self->facts;

  if (!try_config (self, dup_config_path (self->path), error) ||
      !try_config (self, g_build_filename (folder, "config.json", NULL), error))
    return FALSE;
  f->config_path = self->config_path;
  f->base = c->base_model[0] != '\0' ? c->base_model : NULL;
  f->act = c->act[0] != '\0' ? c->act : NULL;
  if (c->kind[0] != '\0' && strcmp (c->kind, f->kind) != 0)
    return fail (error, KS_ERR_UNSUPPORTED,
                 "%s says that the gate is of kind \"%s\", its tensors are of kind \"%s\"",
                 self->config_path, c->kind, f->kind);
  return TRUE;
}

/* A folder stands for the release in it. */
static char *
find_file (const char *path, GError **error)
{
  static const char *const names[] = {"trimkv_weights.pth", "trimkv_weights.safetensors",
                                      "model.safetensors", "pytorch_model.bin"};

  if (!g_file_test (path, G_FILE_TEST_IS_DIR))
    return g_strdup (path);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *file = g_build_filename (path, names[i], NULL);

    if (g_file_test (file, G_FILE_TEST_EXISTS))
      return g_steal_pointer (&file);
  }
  fail (error, KS_ERR_UNSUPPORTED, "%s holds no %s", path, names[0]);
  return NULL;
}

static gboolean
open_file (KsGateFile *self, GError **error)
{
  if (!read_tensors (self, error))
    return FALSE;
  if (self->arrays->len == 0)
    return fail (error, KS_ERR_UNSUPPORTED,
                 "%s holds no gate: none of its %u tensors is one of a retention gate", self->path,
                 self->facts.n_other);
  self->facts.n_tensor = self->arrays->len;
  self->facts.dtype =
      ks_dtype_get_info (((KsTorchArray *)g_ptr_array_index (self->arrays, 0))->dtype)->name;
  if (!sort_arrays (self, error))
    return FALSE;
  if (self->part_names == locret_names)
    return find_locret_sizes (self, error) && read_config (self, error);
  if (!find_sizes (self, error))
    return FALSE;
  find_tie (self);
  return read_config (self, error);
}

KsGateFile *
ks_gate_file_open (const char *path, GError **error)
{
  g_autofree char *file = find_file (path, error);
  g_autoptr (KsGateFile) self = NULL;

  if (file == NULL)
    return NULL;
  self = g_new0 (KsGateFile, 1);
  self->path = g_steal_pointer (&file);
  self->layers = g_array_new (FALSE, TRUE, sizeof (Layer));
  self->alloc = ks_alloc_new ();
  if (self->alloc == NULL) {
    ks_error_check (KS_ERR_NOMEM, NULL, error);
    return NULL;
  }
  return open_file (self, error) ? g_steal_pointer (&self) : NULL;
}

void
ks_gate_file_free (KsGateFile *self)
{
  if (self == NULL)
    return;
  g_clear_pointer (&self->arrays, g_ptr_array_unref);
  g_array_unref (self->layers);
  ks_alloc_free (self->alloc);
  g_free (self->config_path);
  g_free (self->path);
  g_free (self);
}

const char *
ks_gate_file_get_path (KsGateFile *self)
{
  return self->path;
}

const KsGateFacts *
ks_gate_file_get_facts (KsGateFile *self)
{
  return &self->facts;
}

/* --- writing --- */

static char *
make_config (const KsGateFacts *f)
{
  cJSON *json = cJSON_CreateObject ();
  char *text, *copy;

  if (f->base != NULL)
    cJSON_AddStringToObject (json, "base_model", f->base);
  cJSON_AddStringToObject (json, "retention_gate", f->kind);
  cJSON_AddNumberToObject (json, "retention_gate_intermediate_size", f->n_gate);
  cJSON_AddBoolToObject (json, "tie_retention_gate_layers", f->is_tied);
  if (f->act != NULL)
    cJSON_AddStringToObject (json, "hidden_act", f->act);
  if (strcmp (f->kind, "locret") != 0)
    cJSON_AddNumberToObject (json, "hidden_size", f->n_embd);
  cJSON_AddNumberToObject (json, "num_hidden_layers", f->n_layer);
  cJSON_AddNumberToObject (json, "num_key_value_heads", f->n_kv_head);
  text = cJSON_Print (json);
  cJSON_Delete (json);
  copy = g_strdup_printf ("%s\n", text);
  cJSON_free (text);
  return copy;
}

static gboolean
write_tensors (KsGateFile *self, const char *path, GError **error)
{
  const KsGateFacts *f = &self->facts;
  g_autofree ks_st_tensor *tensors = g_new0 (ks_st_tensor, self->arrays->len);
  g_autoptr (GPtrArray) metadata = g_ptr_array_new_with_free_func (g_free);
  ks_error err = {0};

  g_ptr_array_add (metadata, g_strdup ("format"));
  g_ptr_array_add (metadata, g_strdup ("keepsake-gate-1"));
  if (f->base != NULL) {
    g_ptr_array_add (metadata, g_strdup ("base"));
    g_ptr_array_add (metadata, g_strdup (f->base));
  }
  g_ptr_array_add (metadata, g_strdup ("tied"));
  g_ptr_array_add (metadata, g_strdup (f->is_tied ? "1" : "0"));
  g_ptr_array_add (metadata, NULL);
  for (guint i = 0; i < self->arrays->len; i++) {
    const KsTorchArray *array = g_ptr_array_index (self->arrays, i);

    tensors[i] = (ks_st_tensor){.name = array->name,
                                .dtype = KS_DTYPE_F32,
                                .n_dims = array->n_dims,
                                .data = (const unsigned char *)array->data,
                                .n_bytes = array->n_elem * sizeof (float)};
    memcpy (tensors[i].shape, array->shape, sizeof tensors[i].shape);
  }
  return ks_error_check (ks_safetensors_write (self->alloc, path, tensors, self->arrays->len,
                                               (const char *const *)metadata->pdata, &err),
                         &err, error);
}

/* A finished copy in a folder of its own. */
typedef struct {
  char *folder, *tensors, *config;
} Draft;

static void
draft_clear (Draft *draft)
{
  if (draft->tensors != NULL)
    g_unlink (draft->tensors);
  if (draft->config != NULL)
    g_unlink (draft->config);
  if (draft->folder != NULL)
    g_rmdir (draft->folder);
  g_free (draft->folder);
  g_free (draft->tensors);
  g_free (draft->config);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Draft, draft_clear)

/* The engine's sentence names the draft; the user knows the source. */
static void
rename_in_error (GError **error, const char *draft, const char *source)
{
  g_auto (GStrv) parts = NULL;

  if (error == NULL || *error == NULL)
    return;
  parts = g_strsplit ((*error)->message, draft, -1);
  g_free ((*error)->message);
  (*error)->message = g_strjoinv (source, parts);
}

static gboolean
draft_fill (Draft *draft, KsGateFile *self, const KsGateBase *base, const char *beside,
            GError **error)
{
  g_autofree char *text = make_config (&self->facts);
  ks_gate *gate = NULL;
  ks_error err = {0};
  gboolean ok;

  draft->folder = g_build_filename (beside, ".keepsake-gate-XXXXXX", NULL);
  if (g_mkdtemp (draft->folder) == NULL) {
    g_set_error (error, G_FILE_ERROR, (int)g_file_error_from_errno (errno),
                 "cannot write in %s: %s", beside, g_strerror (errno));
    g_clear_pointer (&draft->folder, g_free);
    return FALSE;
  }
  draft->tensors = g_build_filename (draft->folder, "gate" ENDING, NULL);
  draft->config = g_build_filename (draft->folder, "gate.config.json", NULL);
  if (!write_tensors (self, draft->tensors, error) ||
      !g_file_set_contents (draft->config, text, -1, error)) {
    rename_in_error (error, draft->tensors, beside);
    return FALSE;
  }
  ok = ks_error_check (ks_gate_open (base->alloc, draft->tensors, base->model, &gate, &err), &err,
                       error);
  if (!ok)
    rename_in_error (error, draft->tensors, self->path);
  ks_gate_free (gate);
  return ok;
}

gboolean
ks_gate_file_check (KsGateFile *self, const KsGateBase *base, GError **error)
{
  g_auto (Draft) draft = {NULL, NULL, NULL};

  return draft_fill (&draft, self, base, g_get_tmp_dir (), error);
}

static gboolean
move (const char *from, const char *to, GError **error)
{
  if (g_rename (from, to) == 0)
    return TRUE;
  g_set_error (error, G_FILE_ERROR, (int)g_file_error_from_errno (errno), "cannot write %s: %s", to,
               g_strerror (errno));
  return FALSE;
}

gboolean
ks_gate_file_write (KsGateFile *self, const KsGateBase *base, const char *out_path,
                    gboolean replace, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (out_path), *config = dup_config_path (out_path);
  g_auto (Draft) draft = {NULL, NULL, NULL};

  if (!g_str_has_suffix (out_path, ENDING)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "%s must end in " ENDING, out_path);
    return FALSE;
  }
  if (!replace &&
      (g_file_test (out_path, G_FILE_TEST_EXISTS) || g_file_test (config, G_FILE_TEST_EXISTS))) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS,
                 "%s or its .config.json exists already: give another name, or --force", out_path);
    return FALSE;
  }
  return draft_fill (&draft, self, base, folder, error) && move (draft.config, config, error) &&
         move (draft.tensors, out_path, error);
}

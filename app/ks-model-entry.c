/* ks-model-entry.c - see ks-model-entry.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-model-entry.h"

#include "app/ks-error.h"
#include "engine/chat-template.h"
#include "engine/gguf.h"

#include <string.h>

struct _KsModelEntry {
  GObject parent_instance;
  char *path, *file_name, *name, *arch, *licence, *mmproj;
  char **mmproj_choices;
  const char *quantisation, *template_name;
  gboolean template_is_fallback;
  guint64 n_bytes, n_params;
  guint n_ctx, n_layer, n_kv_head, n_embd;
};

G_DEFINE_FINAL_TYPE (KsModelEntry, ks_model_entry, G_TYPE_OBJECT)

static void
ks_model_entry_finalize (GObject *object)
{
  KsModelEntry *self = KS_MODEL_ENTRY (object);

  g_free (self->path);
  g_free (self->file_name);
  g_free (self->name);
  g_free (self->arch);
  g_free (self->licence);
  g_free (self->mmproj);
  g_strfreev (self->mmproj_choices);
  G_OBJECT_CLASS (ks_model_entry_parent_class)->finalize (object);
}

static void
ks_model_entry_class_init (KsModelEntryClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ks_model_entry_finalize;
}

static void
ks_model_entry_init (KsModelEntry *self)
{
}

/* Text of a string key made printable; NULL when absent or empty. */
static char *
dup_key (const ks_gguf *g, const char *key)
{
  ks_gguf_str s;

  if (!ks_gguf_get_str (g, key, &s) || s.n_bytes == 0)
    return NULL;
  return g_utf8_make_valid (s.data, (gssize)s.n_bytes);
}

static guint
get_arch_u32 (const ks_gguf *g, const char *arch, const char *key)
{
  g_autofree char *name = g_strconcat (arch, ".", key, NULL);
  uint32_t value = 0;

  if (!ks_gguf_get_u32 (g, name, &value))
    return 0;
  return value;
}

static void
count_tensors (KsModelEntry *self, const ks_gguf *g)
{
  guint64 bytes_of[KS_N_DTYPE] = {0}, most = 0;

  for (size_t i = 0; i < ks_gguf_get_n_tensors (g); i++) {
    const ks_gguf_tensor *t = ks_gguf_get_tensor (g, i);

    self->n_params += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    bytes_of[t->dtype] += t->n_bytes;
    if (bytes_of[t->dtype] > most) {
      most = bytes_of[t->dtype];
      self->quantisation = ks_dtype_get_info (t->dtype)->name;
    }
  }
}

static void
read_head (KsModelEntry *self, const ks_gguf *g)
{
  bool is_fallback = false;
  const ks_chat_template *tmpl = ks_chat_template_detect (g, &is_fallback);

  self->arch = dup_key (g, "general.architecture");
  if (self->arch == NULL)
    self->arch = g_strdup ("unknown");
  self->name = dup_key (g, "general.name");
  self->licence = dup_key (g, "general.license");
  self->n_ctx = get_arch_u32 (g, self->arch, "context_length");
  self->n_layer = get_arch_u32 (g, self->arch, "block_count");
  self->n_embd = get_arch_u32 (g, self->arch, "embedding_length");
  self->n_kv_head = get_arch_u32 (g, self->arch, "attention.head_count_kv");
  if (self->n_kv_head == 0)
    self->n_kv_head = get_arch_u32 (g, self->arch, "attention.head_count");
  self->template_name = tmpl != NULL ? ks_chat_template_get_name (tmpl) : "none";
  self->template_is_fallback = is_fallback;
  self->n_bytes = ks_gguf_get_mapped_bytes (g);
  count_tensors (self, g);
}

KsModelEntry *
ks_model_entry_new (const char *path, GError **error)
{
  g_autoptr (KsModelEntry) self = NULL;
  ks_alloc *alloc = ks_alloc_new ();
  ks_gguf *g = NULL;
  ks_error err = {0};
  gboolean ok;

  g_return_val_if_fail (path != NULL, NULL);
  if (alloc == NULL) {
    ks_error_check (KS_ERR_NOMEM, NULL, error);
    return NULL;
  }
  ok = ks_error_check (ks_gguf_open (alloc, path, &g, &err), &err, error);
  if (ok) {
    self = g_object_new (KS_TYPE_MODEL_ENTRY, NULL);
    self->path = g_strdup (path);
    self->file_name = g_path_get_basename (path);
    read_head (self, g);
    if (self->name == NULL) {
      char *dot;

      self->name = g_strdup (self->file_name);
      dot = strrchr (self->name, '.');
      if (dot != NULL && dot != self->name)
        *dot = '\0';
    }
  }
  ks_gguf_close (g);
  ks_alloc_free (alloc);
  return g_steal_pointer (&self);
}

const char *
ks_model_entry_get_path (KsModelEntry *self)
{
  return self->path;
}

const char *
ks_model_entry_get_file_name (KsModelEntry *self)
{
  return self->file_name;
}

const char *
ks_model_entry_get_name (KsModelEntry *self)
{
  return self->name;
}

const char *
ks_model_entry_get_arch (KsModelEntry *self)
{
  return self->arch;
}

const char *
ks_model_entry_get_quantisation (KsModelEntry *self)
{
  return self->quantisation != NULL ? self->quantisation : "none";
}

const char *
ks_model_entry_get_licence (KsModelEntry *self)
{
  return self->licence;
}

const char *
ks_model_entry_get_template (KsModelEntry *self, gboolean *out_is_fallback)
{
  if (out_is_fallback != NULL)
    *out_is_fallback = self->template_is_fallback;
  return self->template_name;
}

guint64
ks_model_entry_get_n_bytes (KsModelEntry *self)
{
  return self->n_bytes;
}

guint64
ks_model_entry_get_n_params (KsModelEntry *self)
{
  return self->n_params;
}

guint
ks_model_entry_get_n_ctx (KsModelEntry *self)
{
  return self->n_ctx;
}

guint
ks_model_entry_get_n_layer (KsModelEntry *self)
{
  return self->n_layer;
}

guint
ks_model_entry_get_n_kv_head (KsModelEntry *self)
{
  return self->n_kv_head;
}

guint
ks_model_entry_get_n_embd (KsModelEntry *self)
{
  return self->n_embd;
}

gboolean
ks_model_entry_is_text_model (KsModelEntry *self)
{
  return !g_str_equal (self->arch, "clip") && self->n_layer > 0;
}

gboolean
ks_model_entry_is_vision_tower (KsModelEntry *self)
{
  return g_str_equal (self->arch, "clip");
}

const char *
ks_model_entry_get_mmproj (KsModelEntry *self)
{
  return self->mmproj;
}

const char *const *
ks_model_entry_get_mmproj_choices (KsModelEntry *self)
{
  static const char *const none[] = {NULL};

  return self->mmproj_choices != NULL ? (const char *const *)self->mmproj_choices : none;
}

void
ks_model_entry_set_name (KsModelEntry *self, const char *name)
{
  g_free (self->name);
  self->name = g_strdup (name);
}

void
ks_model_entry_set_mmproj (KsModelEntry *self, const char *path, const char *const *choices)
{
  g_free (self->mmproj);
  self->mmproj = g_strdup (path);
  g_strfreev (self->mmproj_choices);
  self->mmproj_choices = g_strdupv ((char **)choices);
}

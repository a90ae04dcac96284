/* ks-torch-pickle.c - see ks-torch-pickle.h.
 * Walks over dictionaries mark them, because a hostile one may contain itself. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-torch-pickle.h"

#include "app/ks-torch-machine-internal.h"

#include <string.h>

#define MAX_DEPTH 4 /* of dictionaries */
#define MAX_NAME 256
#define MAX_STORAGE_NAME 32

typedef enum {
  NAME_REBUILD_TENSOR,
  NAME_REBUILD_PARAMETER,
  NAME_ORDERED_DICT,
  NAME_STORAGE_F32,
  NAME_STORAGE_F16,
  NAME_STORAGE_BF16
} Name;

static const struct {
  const char *module, *name;
} names[] = {
    [NAME_REBUILD_TENSOR] = {"torch._utils", "_rebuild_tensor_v2"},
    [NAME_REBUILD_PARAMETER] = {"torch._utils", "_rebuild_parameter"},
    [NAME_ORDERED_DICT] = {"collections", "OrderedDict"},
    [NAME_STORAGE_F32] = {"torch", "FloatStorage"},
    [NAME_STORAGE_F16] = {"torch", "HalfStorage"},
    [NAME_STORAGE_BF16] = {"torch", "BFloat16Storage"},
};

/* --- names: what would be looked up and called --- */

static gboolean
push_name (KsTorchMachine *m, const KsTorchValue *module, const KsTorchValue *name)
{
  g_autofree char *shown = NULL, *valid = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (ks_torch_text_equals (m, module, names[i].module) &&
        ks_torch_text_equals (m, name, names[i].name))
      return ks_torch_push (m, KS_TORCH_NAME, 0, i);
  shown = g_strdup_printf ("%.*s.%.*s", (int)MIN (module->n, 60u), m->r.data + module->a,
                           (int)MIN (name->n, 60u), m->r.data + name->a);
  valid = g_utf8_make_valid (shown, -1);
  return ks_torch_fail (
      m, KS_ERR_UNSUPPORTED,
      "the file asks for %s; only tensors of 16 or 32 bits are read, nothing is run", valid);
}

static gboolean
take_line (KsTorchMachine *m, KsTorchValue *out)
{
  const guint8 *begin = m->r.data + m->r.pos, *end = memchr (begin, '\n', ks_reader_left (&m->r));

  if (end == NULL)
    return ks_torch_fail_damaged (m);
  *out = (KsTorchValue){.kind = KS_TORCH_TEXT, .n = (guint)(end - begin), .a = m->r.pos};
  return ks_reader_skip (&m->r, out->n + 1) || ks_torch_fail_damaged (m);
}

static gboolean
op_global (KsTorchMachine *m)
{
  KsTorchValue module, name;

  return take_line (m, &module) && take_line (m, &name) && push_name (m, &module, &name);
}

static gboolean
op_stack_global (KsTorchMachine *m)
{
  KsTorchValue module, name;

  return ks_torch_pop_kind (m, KS_TORCH_TEXT, &name) &&
         ks_torch_pop_kind (m, KS_TORCH_TEXT, &module) && push_name (m, &module, &name);
}

/* --- objects --- */

static gboolean
push_dict (KsTorchMachine *m)
{
  const KsTorchDict dict = {NULL, FALSE};

  g_array_append_val (m->dicts, dict);
  return ks_torch_push (m, KS_TORCH_DICT, 0, m->dicts->len - 1);
}

/* ('storage', kind, key, place, elements) */
static gboolean
op_persistent (KsTorchMachine *m)
{
  const KsTorchValue *kind, *key, *n_elem;
  KsTorchStorage storage;
  KsTorchValue tuple;

  if (!ks_torch_pop_kind (m, KS_TORCH_TUPLE, &tuple))
    return FALSE;
  if (tuple.n != 5 || !ks_torch_text_equals (m, ks_torch_get_link (m, &tuple, 0), "storage"))
    return ks_torch_fail_damaged (m);
  kind = ks_torch_get_link (m, &tuple, 1);
  key = ks_torch_get_link (m, &tuple, 2);
  n_elem = ks_torch_get_link (m, &tuple, 4);
  if (kind->kind != KS_TORCH_NAME || kind->a < NAME_STORAGE_F32 || key->kind != KS_TORCH_TEXT ||
      n_elem->kind != KS_TORCH_INT || n_elem->a > G_MAXINT64 / 4)
    return ks_torch_fail_damaged (m);
  storage = (KsTorchStorage){.key = *key, .n_elem = n_elem->a};
  storage.dtype = kind->a == NAME_STORAGE_F32   ? KS_DTYPE_F32
                  : kind->a == NAME_STORAGE_F16 ? KS_DTYPE_F16
                                                : KS_DTYPE_BF16;
  g_array_append_val (m->storages, storage);
  return ks_torch_push (m, KS_TORCH_STORAGE, 0, m->storages->len - 1);
}

/* Sizes, strides, and whether the last element still lies inside the storage. */
static gboolean
fill_draft (KsTorchMachine *m, KsTorchDraft *draft, const KsTorchValue *shape,
            const KsTorchValue *stride)
{
  const guint64 n_storage = g_array_index (m->storages, KsTorchStorage, draft->storage).n_elem;
  guint64 last = draft->offset;

  if (shape->kind != KS_TORCH_TUPLE || stride->kind != KS_TORCH_TUPLE || shape->n != stride->n)
    return ks_torch_fail_damaged (m);
  if (shape->n > KS_TORCH_MAX_DIMS)
    return ks_torch_fail (m, KS_ERR_UNSUPPORTED, "a tensor has %u dimensions, at most %d are read",
                          shape->n, KS_TORCH_MAX_DIMS);
  draft->n_dims = shape->n;
  for (guint i = 0; i < shape->n; i++) {
    const KsTorchValue *n = ks_torch_get_link (m, shape, i),
                       *step = ks_torch_get_link (m, stride, i);
    guint64 reach;

    if (n->kind != KS_TORCH_INT || step->kind != KS_TORCH_INT || n->a == 0 || n->a > G_MAXUINT32 ||
        step->a > G_MAXUINT32)
      return ks_torch_fail (m, KS_ERR_FORMAT, "a tensor has an impossible shape");
    draft->shape[i] = n->a;
    draft->stride[i] = step->a;
    reach = (n->a - 1) * step->a; /* two numbers below 2^32 */
    if (last > n_storage || reach > n_storage)
      return ks_torch_fail (m, KS_ERR_FORMAT, "a tensor reaches beyond its data");
    last += reach;
  }
  return last < n_storage || ks_torch_fail (m, KS_ERR_FORMAT, "a tensor reaches beyond its data");
}

/* (storage, offset, sizes, strides, ...) */
static gboolean
rebuild_tensor (KsTorchMachine *m, const KsTorchValue *args)
{
  const KsTorchValue *storage, *offset;
  KsTorchDraft draft = {0};

  if (args->n < 4)
    return ks_torch_fail_damaged (m);
  storage = ks_torch_get_link (m, args, 0);
  offset = ks_torch_get_link (m, args, 1);
  if (storage->kind != KS_TORCH_STORAGE || offset->kind != KS_TORCH_INT ||
      offset->a > G_MAXINT64 / 4)
    return ks_torch_fail_damaged (m);
  draft.storage = (guint)storage->a;
  draft.offset = offset->a;
  if (!fill_draft (m, &draft, ks_torch_get_link (m, args, 2), ks_torch_get_link (m, args, 3)))
    return FALSE;
  g_array_append_val (m->drafts, draft);
  return ks_torch_push (m, KS_TORCH_TENSOR, 0, m->drafts->len - 1);
}

static gboolean
op_reduce (KsTorchMachine *m)
{
  KsTorchValue args, name;

  if (!ks_torch_pop_kind (m, KS_TORCH_TUPLE, &args) || !ks_torch_pop_kind (m, KS_TORCH_NAME, &name))
    return FALSE;
  if (name.a == NAME_ORDERED_DICT && args.n == 0)
    return push_dict (m);
  if (name.a == NAME_REBUILD_TENSOR)
    return rebuild_tensor (m, &args);
  if (name.a == NAME_REBUILD_PARAMETER && args.n > 0 &&
      ks_torch_get_link (m, &args, 0)->kind == KS_TORCH_TENSOR)
    return ks_torch_push (m, KS_TORCH_TENSOR, 0, ks_torch_get_link (m, &args, 0)->a);
  return ks_torch_fail_damaged (m);
}

/* State of an object, which is not looked at: attributes of dictionaries. */
static gboolean
op_build (KsTorchMachine *m)
{
  KsTorchValue state;

  if (!ks_torch_pop (m, &state))
    return FALSE;
  if (m->stack->len == 0 ||
      g_array_index (m->stack, KsTorchValue, m->stack->len - 1).kind != KS_TORCH_DICT)
    return ks_torch_fail_damaged (m);
  return TRUE;
}

/* Key and value pairs from index first on go into the dictionary under them. */
static gboolean
set_items (KsTorchMachine *m, guint first, guint under)
{
  KsTorchDict *dict;

  if (under == 0 || (m->stack->len - first) % 2 != 0 ||
      g_array_index (m->stack, KsTorchValue, under - 1).kind != KS_TORCH_DICT)
    return ks_torch_fail_damaged (m);
  dict =
      &g_array_index (m->dicts, KsTorchDict, g_array_index (m->stack, KsTorchValue, under - 1).a);
  for (guint i = first; i < m->stack->len; i += 2) {
    const KsTorchPair pair = {g_array_index (m->stack, KsTorchValue, i),
                              g_array_index (m->stack, KsTorchValue, i + 1)};

    if (pair.key.kind == KS_TORCH_MARK || pair.value.kind == KS_TORCH_MARK)
      return ks_torch_fail_damaged (m);
    if (dict->pairs == NULL)
      dict->pairs = g_array_new (FALSE, FALSE, sizeof (KsTorchPair));
    g_array_append_val (dict->pairs, pair);
  }
  g_array_set_size (m->stack, under);
  return TRUE;
}

static gboolean
op_set_items (KsTorchMachine *m)
{
  guint first;

  return ks_torch_find_mark (m, &first) && set_items (m, first, first - 1);
}

static gboolean
op_set_item (KsTorchMachine *m)
{
  if (m->stack->len < 3)
    return ks_torch_fail_damaged (m);
  return set_items (m, m->stack->len - 2, m->stack->len - 2);
}

/* Lists may be there; what is in them is dropped. */
static gboolean
op_append (KsTorchMachine *m, gboolean to_mark)
{
  guint first = m->stack->len - 1, list;

  if (m->stack->len == 0)
    return ks_torch_fail_damaged (m);
  if (to_mark && !ks_torch_find_mark (m, &first))
    return FALSE;
  list = to_mark ? first - 1 : first;
  if (list == 0 || g_array_index (m->stack, KsTorchValue, list - 1).kind != KS_TORCH_PLAIN)
    return ks_torch_fail_damaged (m);
  g_array_set_size (m->stack, list);
  return TRUE;
}

/* --- memo --- */

static gboolean
put (KsTorchMachine *m, guint64 number)
{
  KsTorchValue top;

  if (m->stack->len == 0)
    return ks_torch_fail_damaged (m);
  top = g_array_index (m->stack, KsTorchValue, m->stack->len - 1);
  if (top.kind == KS_TORCH_MARK)
    return ks_torch_fail_damaged (m);
  g_array_append_val (m->memo_values, top);
  g_hash_table_insert (m->memo, GUINT_TO_POINTER ((guint)number),
                       GUINT_TO_POINTER (m->memo_values->len));
  return TRUE;
}

static gboolean
op_put (KsTorchMachine *m, guint n_bytes)
{
  guint64 number;

  return ks_torch_read_number (m, n_bytes, &number) && put (m, number);
}

static gboolean
op_get (KsTorchMachine *m, guint n_bytes)
{
  guint64 number;
  guint index;

  if (!ks_torch_read_number (m, n_bytes, &number))
    return FALSE;
  index = GPOINTER_TO_UINT (g_hash_table_lookup (m->memo, GUINT_TO_POINTER ((guint)number)));
  if (index == 0)
    return ks_torch_fail_damaged (m);
  g_array_append_val (m->stack, g_array_index (m->memo_values, KsTorchValue, index - 1));
  return TRUE;
}

/* --- operations --- */

static gboolean
skip (KsTorchMachine *m, guint n)
{
  return ks_reader_skip (&m->r, n) || ks_torch_fail_damaged (m);
}

static gboolean
op_protocol (KsTorchMachine *m)
{
  guint64 version;

  if (!ks_torch_read_number (m, 1, &version))
    return FALSE;
  return version <= 5 || ks_torch_fail (m, KS_ERR_UNSUPPORTED,
                                        "the list of tensors (data.pkl) is of version "
                                        "%u; versions up to 5 are read",
                                        (guint)version);
}

static gboolean
op_stop (KsTorchMachine *m)
{
  m->is_over = TRUE;
  return ks_torch_pop (m, &m->result) && (m->stack->len == 0 || ks_torch_fail_damaged (m));
}

/* Operations that only make a value. */
static gboolean
run_literal (KsTorchMachine *m, guint8 op)
{
  switch (op) {
  case '(':
    return ks_torch_push (m, KS_TORCH_MARK, 0, 0);
  case 'N':
  case ']':
    return ks_torch_push (m, KS_TORCH_PLAIN, 0, 0);
  case 0x88:
  case 0x89:
    return ks_torch_push (m, KS_TORCH_INT, 0, op == 0x88);
  case 'G': /* a double */
    return skip (m, 8) && ks_torch_push (m, KS_TORCH_PLAIN, 0, 0);
  case 'J':
    return ks_torch_push_int (m, 4, TRUE);
  case 'K':
    return ks_torch_push_int (m, 1, FALSE);
  case 'M':
    return ks_torch_push_int (m, 2, FALSE);
  case 0x8a:
    return ks_torch_push_long (m);
  case 'X':
    return ks_torch_push_text (m, 4);
  case 0x8c:
    return ks_torch_push_text (m, 1);
  case '}':
    return push_dict (m);
  case ')':
    return ks_torch_make_tuple (m, 0);
  default:
    return ks_torch_fail (
        m, KS_ERR_UNSUPPORTED,
        "the list of tensors (data.pkl) uses operation %u at byte %zu, which no file of "
        "tensors needs",
        op, m->r.pos - 1);
  }
}

static gboolean
run_operation (KsTorchMachine *m, guint8 op)
{
  switch (op) {
  case 0x80:
    return op_protocol (m);
  case 0x95: /* the length of what follows */
    return skip (m, 8);
  case 0x85:
  case 0x86:
  case 0x87:
    return ks_torch_make_tuple (m, op - 0x84u);
  case 't':
    return ks_torch_make_tuple_to_mark (m);
  case 'c':
    return op_global (m);
  case 0x93:
    return op_stack_global (m);
  case 'Q':
    return op_persistent (m);
  case 'R':
    return op_reduce (m);
  case 'b':
    return op_build (m);
  case 's':
    return op_set_item (m);
  case 'u':
    return op_set_items (m);
  case 'a':
  case 'e':
    return op_append (m, op == 'e');
  case 'q':
    return op_put (m, 1);
  case 'r':
    return op_put (m, 4);
  case 0x94:
    return put (m, m->memo_values->len);
  case 'h':
    return op_get (m, 1);
  case 'j':
    return op_get (m, 4);
  case '.':
    return op_stop (m);
  default:
    return run_literal (m, op);
  }
}

/* --- what came out --- */

static gboolean
keep_tensor (KsTorchMachine *m, const KsTorchValue *key, const KsTorchDraft *draft)
{
  const KsTorchStorage *storage = &g_array_index (m->storages, KsTorchStorage, draft->storage);
  g_autofree char *name = ks_torch_dup_text (m, key, MAX_NAME), *member = NULL;
  KsTorchTensor *tensor;

  member = name != NULL ? ks_torch_dup_text (m, &storage->key, MAX_STORAGE_NAME) : NULL;
  if (member == NULL)
    return FALSE;
  if (strspn (member, G_CSET_DIGITS G_CSET_a_2_z G_CSET_A_2_Z "_") != strlen (member))
    return ks_torch_fail_damaged (m);
  if (g_hash_table_contains (m->seen, name))
    return ks_torch_fail (m, KS_ERR_FORMAT, "tensor %s occurs twice", name);
  tensor = g_new0 (KsTorchTensor, 1);
  tensor->name = g_steal_pointer (&name);
  tensor->storage = g_steal_pointer (&member);
  tensor->dtype = storage->dtype;
  tensor->n_storage = storage->n_elem;
  tensor->offset = draft->offset;
  tensor->n_dims = draft->n_dims;
  memcpy (tensor->shape, draft->shape, sizeof tensor->shape);
  memcpy (tensor->stride, draft->stride, sizeof tensor->stride);
  g_ptr_array_add (m->out, tensor);
  g_hash_table_add (m->seen, tensor->name);
  return TRUE;
}

static gboolean
collect (KsTorchMachine *m, const KsTorchValue *value, guint depth)
{
  KsTorchDict *dict = &g_array_index (m->dicts, KsTorchDict, value->a);
  gboolean ok = TRUE;

  if (dict->is_walked || depth == MAX_DEPTH)
    return TRUE;
  dict->is_walked = TRUE;
  for (guint i = 0; ok && dict->pairs != NULL && i < dict->pairs->len; i++) {
    const KsTorchPair *pair = &g_array_index (dict->pairs, KsTorchPair, i);

    if (pair->value.kind == KS_TORCH_TENSOR)
      ok = keep_tensor (m, &pair->key, &g_array_index (m->drafts, KsTorchDraft, pair->value.a));
    else if (pair->value.kind == KS_TORCH_DICT)
      ok = collect (m, &pair->value, depth + 1);
  }
  return ok;
}

static gboolean
run (KsTorchMachine *m)
{
  while (!m->is_over) {
    uint8_t op;

    if (!ks_reader_u8 (&m->r, &op))
      return ks_torch_fail_damaged (m);
    if (!run_operation (m, op))
      return FALSE;
  }
  if (m->result.kind != KS_TORCH_DICT)
    return ks_torch_fail (m, KS_ERR_UNSUPPORTED, "the file holds no dictionary of tensors");
  return collect (m, &m->result, 0);
}

void
ks_torch_tensor_free (KsTorchTensor *tensor)
{
  if (tensor == NULL)
    return;
  g_free (tensor->name);
  g_free (tensor->storage);
  g_free (tensor);
}

GPtrArray *
ks_torch_pickle_read (const guint8 *data, gsize n, GError **error)
{
  KsTorchMachine m = {.error = error};
  gboolean ok;

  ks_reader_init (&m.r, data, n);
  if (n > KS_TORCH_MAX_PICKLE) {
    ks_torch_fail (&m, KS_ERR_UNSUPPORTED, "the list of tensors (data.pkl) is longer than 4 MiB");
    return NULL;
  }
  m.stack = g_array_new (FALSE, FALSE, sizeof (KsTorchValue));
  m.links = g_array_new (FALSE, FALSE, sizeof (KsTorchValue));
  m.memo_values = g_array_new (FALSE, FALSE, sizeof (KsTorchValue));
  m.dicts = g_array_new (FALSE, FALSE, sizeof (KsTorchDict));
  m.storages = g_array_new (FALSE, FALSE, sizeof (KsTorchStorage));
  m.drafts = g_array_new (FALSE, FALSE, sizeof (KsTorchDraft));
  m.memo = g_hash_table_new (NULL, NULL);
  m.seen = g_hash_table_new (g_str_hash, g_str_equal);
  m.out = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_torch_tensor_free);
  ok = run (&m);
  for (guint i = 0; i < m.dicts->len; i++)
    g_clear_pointer (&g_array_index (m.dicts, KsTorchDict, i).pairs, g_array_unref);
  g_array_unref (m.stack);
  g_array_unref (m.links);
  g_array_unref (m.memo_values);
  g_array_unref (m.dicts);
  g_array_unref (m.storages);
  g_array_unref (m.drafts);
  g_hash_table_unref (m.memo);
  g_hash_table_unref (m.seen);
  if (!ok)
    g_clear_pointer (&m.out, g_ptr_array_unref);
  return m.out;
}

/* ks-torch-machine-internal.h - the stack machine under ks-torch-pickle.c: its values, its stack,
 * and how numbers and texts are read.
 * Values are small and copied; tuples are slices of one list, texts slices of the pickle.  What a
 * pickle can cost is bounded by its length: every operation makes at most one value. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-torch-pickle.h"
#include "engine/reader.h"

G_BEGIN_DECLS

typedef enum {
  KS_TORCH_MARK,
  KS_TORCH_PLAIN, /* None, a number with a fraction, a list: known, never looked at */
  KS_TORCH_INT,
  KS_TORCH_TEXT,
  KS_TORCH_TUPLE,
  KS_TORCH_DICT,
  KS_TORCH_NAME, /* one of names[] */
  KS_TORCH_STORAGE,
  KS_TORCH_TENSOR
} KsTorchValueKind;

typedef struct {
  KsTorchValueKind kind;
  guint n;   /* bytes of a text, members of a tuple */
  guint64 a; /* whole number; first byte, first link; index */
} KsTorchValue;

typedef struct {
  KsTorchValue key, value;
} KsTorchPair;

typedef struct {
  GArray *pairs; /* KsTorchPair, or NULL while empty */
  gboolean is_walked;
} KsTorchDict;

typedef struct {
  KsTorchValue key;
  ks_dtype dtype;
  guint64 n_elem;
} KsTorchStorage;

/* A tensor while its name is not known. */
typedef struct {
  guint storage, n_dims;
  guint64 offset, shape[KS_TORCH_MAX_DIMS], stride[KS_TORCH_MAX_DIMS];
} KsTorchDraft;

typedef struct {
  ks_reader r;
  GArray *stack, *links;             /* KsTorchValue */
  GArray *dicts, *storages, *drafts; /* KsTorchDict, KsTorchStorage, KsTorchDraft */
  GHashTable *memo;                  /* number -> index in memo_values + 1 */
  GArray *memo_values;               /* KsTorchValue */
  KsTorchValue result;
  gboolean is_over;
  GHashTable *seen; /* names of tensors, borrowed from out */
  GPtrArray *out;
  GError **error;
} KsTorchMachine;

/* All return FALSE with an error set. */
gboolean ks_torch_fail (KsTorchMachine *m, ks_status status, const char *format, ...)
    G_GNUC_PRINTF (3, 4);
gboolean ks_torch_fail_damaged (KsTorchMachine *m);

gboolean ks_torch_push (KsTorchMachine *m, KsTorchValueKind kind, guint n, guint64 a);
/* A mark is no value. */
gboolean ks_torch_pop (KsTorchMachine *m, KsTorchValue *out);
gboolean ks_torch_pop_kind (KsTorchMachine *m, KsTorchValueKind kind, KsTorchValue *out);
/* Index of the first value behind the topmost mark. */
gboolean ks_torch_find_mark (KsTorchMachine *m, guint *out);
/* The last n values become one tuple. */
gboolean ks_torch_make_tuple (KsTorchMachine *m, guint n);
gboolean ks_torch_make_tuple_to_mark (KsTorchMachine *m);
const KsTorchValue *ks_torch_get_link (const KsTorchMachine *m, const KsTorchValue *tuple, guint i);

/* Little-endian, of at most 8 bytes. */
gboolean ks_torch_read_number (KsTorchMachine *m, guint n_bytes, guint64 *out);
gboolean ks_torch_push_int (KsTorchMachine *m, guint n_bytes, gboolean is_signed);
/* A length of one byte, then as many bytes of a number with a sign. */
gboolean ks_torch_push_long (KsTorchMachine *m);
/* A length of n_length bytes, then the text. */
gboolean ks_torch_push_text (KsTorchMachine *m, guint n_length);

gboolean ks_torch_text_equals (const KsTorchMachine *m, const KsTorchValue *text,
                               const char *other);
/* Text of at most max bytes that can be shown. (transfer full), NULL and error */
char *ks_torch_dup_text (KsTorchMachine *m, const KsTorchValue *text, guint max);

G_END_DECLS

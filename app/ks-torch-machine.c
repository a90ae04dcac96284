/* ks-torch-machine.c - see ks-torch-machine-internal.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-torch-machine-internal.h"

#include "app/ks-error.h"

#include <string.h>

/* --- failing --- */

gboolean
ks_torch_fail (KsTorchMachine *m, ks_status status, const char *format, ...)
{
  va_list args;
  ks_error err;

  va_start (args, format);
  ks_fail_va (&err, status, format, args);
  va_end (args);
  return ks_error_check (status, &err, m->error);
}

gboolean
ks_torch_fail_damaged (KsTorchMachine *m)
{
  return ks_torch_fail (m, KS_ERR_FORMAT, "the list of tensors (data.pkl) is damaged at byte %zu",
                        m->r.pos);
}

/* --- stack --- */

gboolean
ks_torch_push (KsTorchMachine *m, KsTorchValueKind kind, guint n, guint64 a)
{
  const KsTorchValue value = {.kind = kind, .n = n, .a = a};

  g_array_append_val (m->stack, value);
  return TRUE;
}

gboolean
ks_torch_pop (KsTorchMachine *m, KsTorchValue *out)
{
  if (m->stack->len == 0)
    return ks_torch_fail_damaged (m);
  *out = g_array_index (m->stack, KsTorchValue, m->stack->len - 1);
  g_array_set_size (m->stack, m->stack->len - 1);
  return out->kind != KS_TORCH_MARK || ks_torch_fail_damaged (m);
}

gboolean
ks_torch_pop_kind (KsTorchMachine *m, KsTorchValueKind kind, KsTorchValue *out)
{
  return ks_torch_pop (m, out) && (out->kind == kind || ks_torch_fail_damaged (m));
}

/* Index of the first value behind the topmost mark. */
gboolean
ks_torch_find_mark (KsTorchMachine *m, guint *out)
{
  for (guint i = m->stack->len; i > 0; i--)
    if (g_array_index (m->stack, KsTorchValue, i - 1).kind == KS_TORCH_MARK) {
      *out = i;
      return TRUE;
    }
  return ks_torch_fail_damaged (m);
}

/* The last n values become one tuple. */
gboolean
ks_torch_make_tuple (KsTorchMachine *m, guint n)
{
  const guint first = m->links->len;

  if (n > m->stack->len)
    return ks_torch_fail_damaged (m);
  for (guint i = m->stack->len - n; i < m->stack->len; i++) {
    const KsTorchValue value = g_array_index (m->stack, KsTorchValue, i);

    if (value.kind == KS_TORCH_MARK)
      return ks_torch_fail_damaged (m);
    g_array_append_val (m->links, value);
  }
  g_array_set_size (m->stack, m->stack->len - n);
  return ks_torch_push (m, KS_TORCH_TUPLE, n, first);
}

gboolean
ks_torch_make_tuple_to_mark (KsTorchMachine *m)
{
  KsTorchValue tuple;
  guint first;

  if (!ks_torch_find_mark (m, &first) || !ks_torch_make_tuple (m, m->stack->len - first))
    return FALSE;
  tuple = g_array_index (m->stack, KsTorchValue, m->stack->len - 1);
  g_array_set_size (m->stack, first - 1);
  g_array_append_val (m->stack, tuple);
  return TRUE;
}

const KsTorchValue *
ks_torch_get_link (const KsTorchMachine *m, const KsTorchValue *tuple, guint i)
{
  return &g_array_index (m->links, KsTorchValue, tuple->a + i);
}

/* --- reading --- */

gboolean
ks_torch_read_number (KsTorchMachine *m, guint n_bytes, guint64 *out)
{
  const guint8 *bytes;

  *out = 0;
  if (!ks_reader_bytes (&m->r, n_bytes, &bytes))
    return ks_torch_fail_damaged (m);
  for (guint i = 0; i < n_bytes; i++)
    *out |= (guint64)bytes[i] << (8 * i);
  return TRUE;
}

gboolean
ks_torch_push_text (KsTorchMachine *m, guint n_length)
{
  const guint8 *bytes;
  gsize begin;
  guint64 n;

  if (!ks_torch_read_number (m, n_length, &n))
    return FALSE;
  begin = m->r.pos;
  if (!ks_reader_bytes (&m->r, n, &bytes))
    return ks_torch_fail_damaged (m);
  return ks_torch_push (m, KS_TORCH_TEXT, (guint)n, begin);
}

gboolean
ks_torch_push_int (KsTorchMachine *m, guint n_bytes, gboolean is_signed)
{
  guint64 value;

  if (!ks_torch_read_number (m, n_bytes, &value))
    return FALSE;
  if (is_signed && n_bytes > 0 && n_bytes < 8 && (value >> (8 * n_bytes - 1)) != 0)
    value |= ~(guint64)0 << (8 * n_bytes);
  return ks_torch_push (m, KS_TORCH_INT, 0, value);
}

/* LONG1: a length, then as many bytes of a number with a sign. */
gboolean
ks_torch_push_long (KsTorchMachine *m)
{
  guint64 n;

  if (!ks_torch_read_number (m, 1, &n))
    return FALSE;
  return n <= 8 ? ks_torch_push_int (m, (guint)n, TRUE) : ks_torch_fail_damaged (m);
}

gboolean
ks_torch_text_equals (const KsTorchMachine *m, const KsTorchValue *text, const char *other)
{
  return text->kind == KS_TORCH_TEXT && text->n == strlen (other) &&
         memcmp (m->r.data + text->a, other, text->n) == 0;
}

/* Text of at most max bytes that can be shown. (transfer full), NULL and error */
char *
ks_torch_dup_text (KsTorchMachine *m, const KsTorchValue *text, guint max)
{
  const char *bytes = (const char *)m->r.data + text->a;

  if (text->kind != KS_TORCH_TEXT || text->n == 0 || text->n > max ||
      !g_utf8_validate (bytes, text->n, NULL)) {
    ks_torch_fail_damaged (m);
    return NULL;
  }
  return g_strndup (bytes, text->n);
}

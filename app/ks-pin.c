/* ks-pin.c - see ks-pin.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-pin.h"

static void
free_pin (gpointer data)
{
  KsPin *pin = data;

  g_free (pin->hash);
  g_free (pin);
}

GPtrArray *
ks_pin_list_new (void)
{
  return g_ptr_array_new_with_free_func (free_pin);
}

static gboolean
find (const GPtrArray *pins, guint turn, const char *hash, guint *out)
{
  for (guint i = 0; i < pins->len; i++) {
    const KsPin *pin = g_ptr_array_index (pins, i);

    if (pin->turn != turn || g_strcmp0 (pin->hash, hash) != 0)
      continue;
    *out = i;
    return TRUE;
  }
  return FALSE;
}

gboolean
ks_pin_list_holds (const GPtrArray *pins, guint turn, const char *hash)
{
  guint i = 0;

  return find (pins, turn, hash, &i) && !((KsPin *)g_ptr_array_index (pins, i))->refused;
}

gboolean
ks_pin_list_set (GPtrArray *pins, guint turn, const char *hash, gboolean pinned)
{
  guint i = 0;
  gboolean is_there = find (pins, turn, hash, &i);
  KsPin *pin;

  if (is_there == pinned)
    return FALSE;
  if (is_there) {
    g_ptr_array_remove_index (pins, i);
    return TRUE;
  }
  pin = g_new0 (KsPin, 1);
  pin->turn = turn;
  pin->hash = g_strdup (hash);
  g_ptr_array_add (pins, pin);
  return TRUE;
}

void
ks_pin_list_cut (GPtrArray *pins, guint turn)
{
  for (guint i = pins->len; i > 0; i--)
    if (((KsPin *)g_ptr_array_index (pins, i - 1))->turn >= turn)
      g_ptr_array_remove_index (pins, i - 1);
}

GPtrArray *
ks_pin_list_copy (const GPtrArray *pins)
{
  GPtrArray *copy = ks_pin_list_new ();

  for (guint i = 0; i < pins->len; i++) {
    const KsPin *pin = g_ptr_array_index (pins, i);

    (void)ks_pin_list_set (copy, pin->turn, pin->hash, TRUE);
    ((KsPin *)g_ptr_array_index (copy, i))->refused = pin->refused;
  }
  return copy;
}

/* ks-memory-words.c - see ks-memory-words.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-memory-words.h"

#include <glib/gi18n.h>

#include <locale.h>
#include <math.h>

static char *
size_part (guint64 bytes, GFormatSizeFlags part)
{
  return g_format_size_full (bytes, G_FORMAT_SIZE_IEC_UNITS | part);
}

/* Three digits at least and one decimal at most, where it says something: "9", "11.8", "101". */
static char *
size_value (guint64 bytes)
{
  double value = (double)bytes;

  if (bytes < 1024)
    return size_part (bytes, G_FORMAT_SIZE_ONLY_VALUE);
  while (value >= 1024)
    value /= 1024;
  if (value >= 99.95 || value - floor (value) < 0.05)
    return g_strdup_printf ("%.0f", floor (value + (value >= 99.95 ? 0.5 : 0)));
  if (value - floor (value) >= 0.95)
    return g_strdup_printf ("%.0f", ceil (value));
  return g_strdup_printf ("%.1f", value);
}

char *
ks_words_size (guint64 bytes)
{
  g_autofree char *value = size_value (bytes);
  g_autofree char *unit = size_part (bytes, G_FORMAT_SIZE_ONLY_UNIT);

  /* Translators: a number and its unit, "98 MiB", with a space that does not break */
  return g_strdup_printf (C_ ("size", "%s\u00a0%s"), value, unit);
}

char *
ks_words_size_of (guint64 bytes, guint64 total_bytes)
{
  g_autofree char *unit = size_part (bytes, G_FORMAT_SIZE_ONLY_UNIT);
  g_autofree char *total_unit = size_part (total_bytes, G_FORMAT_SIZE_ONLY_UNIT);
  g_autofree char *total = ks_words_size (total_bytes);
  g_autofree char *part =
      bytes == 0 || g_strcmp0 (unit, total_unit) == 0 ? size_value (bytes) : ks_words_size (bytes);

  /* Translators: "38.2 of 160 MiB" or "900 KiB of 1.5 GiB" */
  return g_strdup_printf (C_ ("size", "%s of %s"), part, total);
}

/* As the locale groups digits; where it does not (C), as the texts' language does. */
char *
ks_words_count (guint64 n)
{
  const struct lconv *locale = localeconv ();
  /* Translators: between groups of three digits, "17,640" */
  const char *separator = C_ ("digit groups", ",");
  g_autoptr (GString) text = NULL;

  if (locale->thousands_sep[0] != '\0')
    return g_strdup_printf ("%'" G_GUINT64_FORMAT, n);
  text = g_string_new (NULL);
  g_string_printf (text, "%" G_GUINT64_FORMAT, n);
  for (gssize at = (gssize)text->len - 3; at > 0; at -= 3)
    g_string_insert (text, at, separator);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

/* ngettext takes an unsigned long; larger numbers have the plural of their last digits. */
static gulong
plural_of (guint64 n)
{
  return (gulong)(n < G_MAXULONG ? n : n % 1000000 + 1000000);
}

char *
ks_words_let_go (guint64 n)
{
  g_autofree char *count = ks_words_count (n);

  return g_strdup_printf (ngettext ("%s entry let go", "%s entries let go", plural_of (n)), count);
}

char *
ks_words_memory (const KsMemoryView *view)
{
  g_autofree char *weights = NULL, *kept = NULL, *scratch = NULL, *let_go = NULL;

  if (view == NULL)
    return g_strdup (_ ("No model is loaded"));
  weights = ks_words_size (view->weight_bytes + view->copy_bytes);
  kept = ks_words_size_of (view->kv_used_bytes, view->kv_budget_bytes);
  scratch = ks_words_size (view->scratch_bytes);
  let_go = ks_words_let_go (view->n_evicted);
  if (view->eyes_bytes > 0) {
    g_autofree char *eyes = ks_words_size (view->eyes_bytes);

    /* Translators: sizes, then "71,204 entries let go" */
    return g_strdup_printf (_ ("Weights %s · vision %s · kept %s · scratch %s · %s"), weights, eyes,
                            kept, scratch, let_go);
  }
  /* Translators: sizes, then "71,204 entries let go" */
  return g_strdup_printf (_ ("Weights %s · kept %s · scratch %s · %s"), weights, kept, scratch,
                          let_go);
}

/* "Room for about 5,300 more tokens, some 12 turns like those so far; ..."  Rounded down, so that
 * the words rest while an answer grows. */
static char *
forecast_end (const KsMemoryView *view, guint64 n_exact)
{
  guint64 n_left = n_exact / (n_exact < 1000 ? 10 : 100) * (n_exact < 1000 ? 10 : 100);
  guint64 n_turn = view->n_token > 0 ? n_exact * view->n_turn / view->n_token : 0;
  g_autofree char *tokens = ks_words_count (n_left);
  g_autofree char *turns = ks_words_count (n_turn);
  g_autofree char *room = NULL;

  /* Translators: the whole sentence ends behind what comes next */
  room = g_strdup_printf (ngettext ("Room for about %s more token", "Room for about %s more tokens",
                                    plural_of (n_left)),
                          tokens);
  if (view->n_turn == 0)
    return g_strdup_printf (_ ("%s; then nothing more can be sent."), room);
  return g_strdup_printf (ngettext ("%s, some %s turn like those so far; then nothing more can be "
                                    "sent.",
                                    "%s, some %s turns like those so far; then nothing more can be "
                                    "sent.",
                                    plural_of (n_turn)),
                          room, turns);
}

char *
ks_words_forecast (const KsMemoryView *view, gboolean keeps_everything)
{
  guint64 n_stream = view == NULL ? 0 : (guint64)view->n_layer * view->n_kv_head;
  guint64 n_fit = n_stream > 0 ? view->n_keep / n_stream : 0;
  g_autofree char *fit = ks_words_count (n_fit);

  if (n_fit == 0)
    return g_strdup (_ ("Nothing is forgotten while the memory target has room."));
  if (!keeps_everything)
    return g_strdup_printf (ngettext ("Off: beyond %s token what matters least is let go.",
                                      "Off: beyond %s tokens what matters least is let go.",
                                      plural_of (n_fit)),
                            fit);
  if (view->n_token >= n_fit)
    return g_strdup (_ ("No room is left: raise the memory target, or let things go."));
  return forecast_end (view, n_fit - view->n_token);
}

/* Average of a layer's heads. */
static guint64
layer_mean (const KsMemoryView *view, guint layer)
{
  guint64 sum = 0;

  for (guint head = 0; head < view->n_kv_head; head++)
    sum += view->by_stream[(gsize)layer * view->n_kv_head + head];
  return (sum + view->n_kv_head / 2) / view->n_kv_head;
}

char *
ks_words_layers (const KsMemoryView *view)
{
  guint most = 0, least = 0;
  guint64 n_most, n_least;
  g_autofree char *most_words = NULL, *least_words = NULL;

  if (view == NULL || view->by_stream == NULL || view->n_layer == 0 || view->n_kv_head == 0 ||
      view->n_entries == 0)
    return g_strdup (_ ("Nothing is kept yet."));
  n_most = n_least = layer_mean (view, 0);
  for (guint layer = 1; layer < view->n_layer; layer++) {
    guint64 n = layer_mean (view, layer);

    if (n > n_most)
      most = layer, n_most = n;
    if (n < n_least)
      least = layer, n_least = n;
  }
  most_words = ks_words_count (n_most);
  least_words = ks_words_count (n_least);
  if (n_most == n_least)
    return g_strdup_printf (ngettext ("Every layer keeps %s entry a head.",
                                      "Every layer keeps %s entries a head.", plural_of (n_most)),
                            most_words);
  return g_strdup_printf (ngettext ("Layer %u keeps most: %s entry a head; layer %u least: %s.",
                                    "Layer %u keeps most: %s entries a head; layer %u least: %s.",
                                    plural_of (n_most)),
                          most, most_words, least, least_words);
}

char *
ks_words_cell (const KsMemoryView *view, guint layer, guint head)
{
  g_autofree char *count = NULL;
  guint32 n;

  g_return_val_if_fail (layer < view->n_layer && head < view->n_kv_head, NULL);

  n = view->by_stream[(gsize)layer * view->n_kv_head + head];
  count = ks_words_count (n);
  return g_strdup_printf (
      ngettext ("Layer %u, head %u: %s entry", "Layer %u, head %u: %s entries", n), layer, head,
      count);
}

char *
ks_words_share (double share)
{
  double percent = CLAMP (isfinite (share) ? share : 0, 0, 1) * 100;
  int whole = (int)floor (percent + 0.5);

  if (percent > 0 && percent < 1)
    return g_strdup (_ ("under 1 % kept"));
  if (whole == 100 && percent < 100)
    whole = 99;
  /* Translators: "42 % kept" */
  return g_strdup_printf (_ ("%d %% kept"), whole);
}

char *
ks_words_kept_row (const char *title, const char *share, gboolean pinned)
{
  if (!pinned)
    return g_strdup_printf ("%s: %s", title, share);
  /* Translators: a turn or picture, and "42 % kept", of what the user chose to keep in memory */
  return g_strdup_printf (_ ("%s: %s, stays in memory"), title, share);
}

char *
ks_words_frames (guint n_frame, gboolean in_pairs)
{
  g_autofree char *count = ks_words_count (n_frame);

  if (in_pairs)
    return g_strdup_printf (ngettext ("%s frame, in pairs", "%s frames, in pairs", n_frame), count);
  return g_strdup_printf (ngettext ("%s frame", "%s frames", n_frame), count);
}

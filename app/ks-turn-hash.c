/* ks-turn-hash.c - see ks-turn-hash.h.  Every piece goes in with its length in front, so that no
 * two lists of pieces look alike. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-turn-hash.h"

#include <string.h>

static void
add_bytes (GChecksum *sum, gconstpointer data, gsize n)
{
  g_autofree char *length = g_strdup_printf ("%" G_GSIZE_FORMAT ":", n);

  g_checksum_update (sum, (const guchar *)length, -1);
  g_checksum_update (sum, data, (gssize)n);
}

/* NULL is another one than "". */
static void
add_text (GChecksum *sum, const char *text)
{
  if (text == NULL)
    g_checksum_update (sum, (const guchar *)"-", 1);
  else
    add_bytes (sum, text, strlen (text));
}

static GChecksum *
begin (const char *kind, const KsTurnHash *before)
{
  GChecksum *sum = g_checksum_new (G_CHECKSUM_SHA256);

  add_text (sum, kind);
  if (before != NULL)
    add_bytes (sum, before->bytes, sizeof before->bytes);
  return sum;
}

static void
end (GChecksum *take_sum, KsTurnHash *out)
{
  gsize n = sizeof out->bytes;

  g_checksum_get_digest (take_sum, out->bytes, &n);
  g_checksum_free (take_sum);
}

void
ks_turn_hash_weights (const char *model, const char *gate, const char *mmproj, KsTurnHash *out)
{
  GChecksum *sum = begin ("weights", NULL);

  add_text (sum, model);
  add_text (sum, gate);
  add_text (sum, mmproj);
  end (sum, out);
}

static void
add_number (GChecksum *sum, double value)
{
  add_bytes (sum, &value, sizeof value);
}

/* Whatever decides which entries go. */
static void
add_policy (GChecksum *sum, const ks_evict_params *evict)
{
  g_autofree char *words =
      g_strdup_printf ("%s %s lookahead %u floor %u first %u last %u seed %" G_GUINT64_FORMAT
                       " window %u pool %u max %d",
                       ks_policy_get_name (evict->policy), ks_evict_mode_get_name (evict->mode),
                       evict->lookahead, evict->floor, evict->pin_first, evict->pin_last,
                       (guint64)evict->seed, evict->window, evict->pool, evict->pool_max);

  add_text (sum, words);
  add_number (sum, evict->threshold);
  add_number (sum, evict->head_floor);
  add_number (sum, evict->mix);
  add_number (sum, evict->recent);
}

void
ks_turn_hash_begin (const KsTurnHash *weights, const char *system, const char *format,
                    const ks_evict_params *evict, KsTurnHash *out)
{
  GChecksum *sum = begin ("begin", weights);

  add_text (sum, system);
  add_text (sum, format);
  add_policy (sum, evict);
  end (sum, out);
}

void
ks_turn_hash_ask (const KsTurnHash *before, const KsTurnText *turn, KsTurnHash *out)
{
  GChecksum *sum = begin ("ask", before);

  add_text (sum, turn->message);
  for (guint i = 0; i < turn->pictures->len; i++) {
    const KsPicture *picture = g_ptr_array_index (turn->pictures, i);
    g_autofree char *part = ks_picture_make_part (picture);
    g_autofree char *place =
        g_strdup_printf ("%" G_GSIZE_FORMAT " %u", picture->at, picture->video);

    add_text (sum, picture->hash);
    add_text (sum, part);
    add_text (sum, place);
  }
  end (sum, out);
}

void
ks_turn_hash_answer (const KsTurnHash *asked, const char *answer, KsTurnHash *out)
{
  GChecksum *sum = begin ("answer", asked);

  add_text (sum, answer);
  end (sum, out);
}

void
ks_turn_hash_pins (const KsTurnHash *content, const GPtrArray *words, KsTurnHash *out)
{
  GChecksum *sum;

  *out = *content;
  if (words->len == 0)
    return;
  sum = begin ("pins", content);
  for (guint i = 0; i < words->len; i++)
    add_text (sum, g_ptr_array_index (words, i));
  end (sum, out);
}

gboolean
ks_turn_hash_equal (const KsTurnHash *a, const KsTurnHash *b)
{
  return memcmp (a->bytes, b->bytes, sizeof a->bytes) == 0;
}

char *
ks_turn_hash_format (const KsTurnHash *hash)
{
  GString *text = g_string_sized_new (2 * sizeof hash->bytes);

  for (gsize i = 0; i < sizeof hash->bytes; i++)
    g_string_append_printf (text, "%02x", hash->bytes[i]);
  return g_string_free (text, FALSE);
}

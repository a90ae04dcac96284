/* ks-token-count.c - see ks-token-count.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-token-count.h"

#include "app/ks-error.h"

#include <string.h>

#define PIECE_BYTES 32768u /* some milliseconds of work */
#define LOOK_BACK 4096u    /* for the end of a line or a word */

struct _KsTokenCount {
  KsEngine *engine;
  GBytes *text;
  gsize done;
  guint n_tokens;
  KsTokenCountFunc func; /* NULL = cancelled */
  gpointer user;
};

/* One piece, on the engine thread. */
typedef struct {
  GBytes *text;
  gsize begin, n;
  guint n_tokens;
} Piece;

static void
free_piece (gpointer data)
{
  Piece *piece = data;

  g_bytes_unref (piece->text);
  g_free (piece);
}

static gboolean
count_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Piece *piece = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  const char *text = g_bytes_get_data (piece->text, NULL);
  ks_token_list ids;
  ks_error err = {0};
  gboolean ok;

  if (setup == NULL) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_NO_MODEL, "no model is loaded");
    return FALSE;
  }
  ks_token_list_init (&ids, setup->alloc);
  ok = ks_error_check (ks_tokenizer_encode (ks_model_get_tokenizer (setup->model),
                                            text + piece->begin, piece->n, 0, &ids, &err),
                       &err, error);
  piece->n_tokens = (guint)ids.n;
  ks_token_list_done (&ids);
  return ok;
}

/* Where a piece that begins at begin ends. */
static gsize
find_end (const char *text, gsize n, gsize begin)
{
  gsize end = begin + PIECE_BYTES;

  if (end >= n)
    return n;
  for (gsize i = end; i > end - LOOK_BACK; i--)
    if (text[i - 1] == '\n')
      return i;
  for (gsize i = end; i > end - LOOK_BACK; i--)
    if (text[i] == ' ')
      return i;
  while (end > begin + 1 && ((guchar)text[end] & 0xc0) == 0x80)
    end--;
  return end;
}

static void
count_free (KsTokenCount *count)
{
  g_bytes_unref (count->text);
  g_object_unref (count->engine);
  g_free (count);
}

static void count_next (KsTokenCount *count);

typedef struct {
  KsTokenCount *count;
  Piece *piece;
} Counted;

static void
counted_cb (KsEngineJob *job, gpointer user_data)
{
  Counted *counted = user_data;
  KsTokenCount *count = counted->count;

  count->n_tokens += counted->piece->n_tokens;
  free_piece (counted->piece);
  g_free (counted);
  if (ks_engine_job_get_error (job) != NULL) {
    count->n_tokens = 0;
  } else if (count->func != NULL && count->done < g_bytes_get_size (count->text)) {
    count_next (count);
    return;
  }
  if (count->func != NULL)
    count->func (count->n_tokens, count->user);
  count_free (count);
}

static void
count_next (KsTokenCount *count)
{
  gsize n = 0;
  const char *text = g_bytes_get_data (count->text, &n);
  Counted *counted = g_new0 (Counted, 1);
  g_autoptr (KsEngineJob) job = NULL;

  counted->count = count;
  counted->piece = g_new0 (Piece, 1);
  counted->piece->text = g_bytes_ref (count->text);
  counted->piece->begin = count->done;
  count->done = find_end (text, n, count->done);
  counted->piece->n = count->done - counted->piece->begin;
  job = ks_engine_job_new (count_job, counted->piece, NULL);
  g_signal_connect (job, "finished", G_CALLBACK (counted_cb), counted);
  ks_engine_push_urgent (count->engine, job);
}

KsTokenCount *
ks_token_count_start (KsEngine *engine, GBytes *text, KsTokenCountFunc func, gpointer user)
{
  KsTokenCount *count;

  g_return_val_if_fail (KS_IS_ENGINE (engine) && text != NULL && func != NULL, NULL);
  count = g_new0 (KsTokenCount, 1);
  count->engine = g_object_ref (engine);
  count->text = g_bytes_ref (text);
  count->func = func;
  count->user = user;
  count_next (count);
  return count;
}

void
ks_token_count_cancel (KsTokenCount *count)
{
  g_return_if_fail (count != NULL);
  count->func = NULL;
}

/* ks-train-encode.c - see ks-train-encode.h.
 * A conversation is laid out as a session reads it: the user's messages with the opening of the
 * answer, the answer's own tokens, what closes it.  So the tokens of an answer are known exactly.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-train-encode.h"

#include "app/ks-error.h"

#include <string.h>

/* ---- sequences ---- */

static void
clear_view (gpointer data)
{
  g_clear_pointer (&((KsTrainView *)data)->picture, ks_picture_unref);
}

KsTrainSequence *
ks_train_sequence_new (void)
{
  KsTrainSequence *sequence = g_new0 (KsTrainSequence, 1);

  sequence->ids = g_array_new (FALSE, FALSE, sizeof (ks_token));
  sequence->weights = g_array_new (FALSE, FALSE, sizeof (float));
  sequence->starts = g_array_new (FALSE, FALSE, sizeof (guint32));
  sequence->values = g_array_new (FALSE, FALSE, sizeof (guint32));
  sequence->views = g_array_new (FALSE, TRUE, sizeof (KsTrainView));
  g_array_set_clear_func (sequence->views, clear_view);
  return sequence;
}

void
ks_train_sequence_free (KsTrainSequence *sequence)
{
  if (sequence == NULL)
    return;
  g_array_unref (sequence->ids);
  g_array_unref (sequence->weights);
  g_array_unref (sequence->starts);
  g_array_unref (sequence->values);
  g_array_unref (sequence->views);
  g_free (sequence);
}

void
ks_train_sequence_weigh_values (KsTrainSequence *sequence, double share)
{
  float *weights = (float *)(void *)sequence->weights->data;
  const guint32 *values = (const guint32 *)(const void *)sequence->values->data;
  guint n_value = sequence->values->len;
  double rest = 0;

  if (n_value == 0 || share <= 0)
    return;
  for (guint i = 0; i < n_value; i++)
    weights[values[i]] = 0;
  for (guint i = 0; i < sequence->weights->len; i++) {
    if (share >= 1)
      weights[i] = 0;
    rest += (double)weights[i];
  }
  for (guint i = 0; i < n_value; i++)
    weights[values[i]] = rest > 0 ? (float)(rest * share / (1 - share) / n_value) : 1;
}

void
ks_train_sequence_cut (KsTrainSequence *sequence, guint n_tok)
{
  GArray *views = sequence->views, *values = sequence->values, *starts = sequence->starts;

  for (guint i = 0; i < views->len; i++) {
    const KsTrainView *view = &g_array_index (views, KsTrainView, i);

    if (view->first < n_tok && view->first + view->n_tok > n_tok)
      n_tok = view->first;
  }
  if (n_tok >= sequence->ids->len)
    return;
  g_array_set_size (sequence->ids, n_tok);
  g_array_set_size (sequence->weights, n_tok);
  while (views->len > 0 && g_array_index (views, KsTrainView, views->len - 1).first >= n_tok)
    g_array_set_size (views, views->len - 1);
  while (values->len > 0 && g_array_index (values, guint32, values->len - 1) >= n_tok)
    g_array_set_size (values, values->len - 1);
  while (starts->len > 0 && g_array_index (starts, guint32, starts->len - 1) >= n_tok)
    g_array_set_size (starts, starts->len - 1);
}

static void
append_ids (KsTrainSequence *sequence, const ks_token_list *list, float weight)
{
  g_array_append_vals (sequence->ids, list->ids, (guint)list->n);
  for (size_t i = 0; i < list->n; i++) {
    float own = list->ids[i] == KS_TOKEN_NONE ? 0 : weight;

    g_array_append_val (sequence->weights, own);
  }
}

/* ---- text ---- */

gboolean
ks_train_encode_text (const KsTrainEncoder *encoder, const char *text, gsize n, guint n_tok,
                      KsTrainSequence *sequence, GError **error)
{
  guint32 start = sequence->ids->len;
  ks_token_list list;
  ks_error err = {0};
  gboolean ok;

  ks_token_list_init (&list, encoder->alloc);
  ok = ks_error_check (
      ks_tokenizer_encode (encoder->tokenizer, text, n, KS_ENCODE_ADD_SPECIAL, &list, &err), &err,
      error);
  if (ok && list.n > 0 && n_tok > 0) {
    list.n = MIN (list.n, n_tok);
    g_array_append_val (sequence->starts, start);
    append_ids (sequence, &list, 1);
  }
  ks_token_list_done (&list);
  return ok;
}

/* ---- conversations ---- */

typedef struct {
  const KsTrainEncoder *encoder;
  const KsTrainChat *chat;
  KsTrainSequence *sequence;
} Encoding;

static const KsTrainMessage *
get_message (const Encoding *e, guint i)
{
  return i < e->chat->messages->len ? g_ptr_array_index (e->chat->messages, i) : NULL;
}

static gboolean
is_answer (const Encoding *e, guint i)
{
  const KsTrainMessage *message = get_message (e, i);

  return message != NULL && message->role == KS_ROLE_ASSISTANT;
}

static gboolean
plan_visuals (const Encoding *e, const KsTrainMessage *message, GArray *out, GError **error)
{
  for (guint i = 0; i < message->pictures->len; i++) {
    const KsPicture *picture = g_ptr_array_index (message->pictures, i);
    ks_chat_visual visual = {.at = picture->at, .video = picture->video};
    ks_vision_plan plan;

    if (e->encoder->plan_picture == NULL) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                   "%s is a picture, and this model has no eyes: give the mmproj file that belongs "
                   "to it with --mmproj",
                   picture->name);
      return FALSE;
    }
    if (!e->encoder->plan_picture (e->encoder->user, picture, &plan, error))
      return FALSE;
    visual.tile_rows = plan.tile_rows;
    visual.tile_cols = plan.tile_cols;
    visual.has_overview = plan.has_overview;
    visual.n_view = plan.n_view;
    visual.view_tok = plan.grid_rows * plan.grid_cols;
    g_array_append_val (out, visual);
  }
  return TRUE;
}

static void
add_views (Encoding *e, guint first_message, const ks_chat_slots *slots)
{
  for (size_t i = 0; i < slots->n; i++) {
    const ks_chat_slot *slot = &slots->items[i];
    const KsTrainMessage *message = get_message (e, first_message + slot->message);
    KsTrainView view = {.first = e->sequence->ids->len + slot->first,
                        .n_tok = slot->n_tok,
                        .view = slot->view,
                        .t_shift = slot->t_shift,
                        .follows = slot->follows};

    view.picture = ks_picture_ref (g_ptr_array_index (message->pictures, slot->visual));
    g_array_append_val (e->sequence->views, view);
  }
}

/* Messages begin .. end - 1, none of which is an answer to another, and the opening of one. */
static gboolean
encode_asked (Encoding *e, guint begin, guint end, GError **error)
{
  const KsTrainEncoder *encoder = e->encoder;
  g_autofree ks_chat_message *messages = g_new0 (ks_chat_message, end - begin);
  g_autoptr (GPtrArray) visuals = g_ptr_array_new_with_free_func ((GDestroyNotify)g_array_unref);
  uint32_t options = (begin == 0 ? KS_CHAT_FIRST : 0) | (is_answer (e, end) ? KS_CHAT_GENERATE : 0);
  ks_chat_slots slots;
  ks_token_list list;
  ks_error err = {0};
  gboolean ok = TRUE, sees = FALSE;

  for (guint i = begin; ok && i < end; i++) {
    const KsTrainMessage *message = get_message (e, i);
    GArray *own = g_array_new (FALSE, FALSE, sizeof (ks_chat_visual));

    g_ptr_array_add (visuals, own);
    ok = plan_visuals (e, message, own, error);
    messages[i - begin] =
        (ks_chat_message){.role = message->role,
                          .text = message->text,
                          .n_bytes = strlen (message->text),
                          .visuals = (const ks_chat_visual *)(const void *)own->data,
                          .n_visual = own->len};
    sees |= own->len > 0;
  }
  if (!ok)
    return FALSE;
  ks_token_list_init (&list, encoder->alloc);
  ks_chat_slots_init (&slots, encoder->alloc);
  ok = ks_error_check (sees ? ks_chat_encode_visual (encoder->chat_template, encoder->family,
                                                     encoder->tokenizer, messages, end - begin,
                                                     options, &list, &slots, &err)
                            : ks_chat_encode (encoder->chat_template, encoder->tokenizer, messages,
                                              end - begin, options, &list, &err),
                       &err, error);
  if (ok) {
    add_views (e, begin, &slots);
    append_ids (e->sequence, &list, (float)encoder->prompt_weight);
  }
  ks_chat_slots_done (&slots);
  ks_token_list_done (&list);
  return ok;
}

static gboolean
lies_in_value (const KsTrainMessage *message, gsize begin, gsize end)
{
  for (guint i = 0; i < message->values->len; i++) {
    const KsTrainSpan *span = &g_array_index (message->values, KsTrainSpan, i);

    if (begin < span->end && end > span->begin)
      return TRUE;
  }
  return FALSE;
}

/* Tokens of an answer that hold a part of a value.  A space that the tokenizer put in front of all
 * is no byte of the text. */
static void
mark_values (Encoding *e, const KsTrainMessage *message, const ks_token_list *list)
{
  guint32 first = e->sequence->ids->len;
  gsize at = 0;

  for (size_t i = 0; i < list->n; i++) {
    size_t n = 0;
    const char *piece = ks_tokenizer_get_piece (e->encoder->tokenizer, list->ids[i], true, &n);
    guint32 index = first + (guint32)i;

    if (i == 0 && n > 0 && piece[0] == ' ' && message->text[0] != ' ')
      n--;
    if (lies_in_value (message, at, at + n))
      g_array_append_val (e->sequence->values, index);
    at += n;
  }
}

static gboolean
encode_answer (Encoding *e, const KsTrainMessage *message, GError **error)
{
  const KsTrainEncoder *encoder = e->encoder;
  ks_token_list list;
  ks_error err = {0};
  gboolean ok;

  ks_token_list_init (&list, encoder->alloc);
  ok = ks_error_check (ks_tokenizer_encode (encoder->tokenizer, message->text,
                                            strlen (message->text), 0, &list, &err),
                       &err, error);
  if (ok) {
    mark_values (e, message, &list);
    ok = ks_error_check (ks_chat_encode_close (encoder->chat_template, encoder->tokenizer,
                                               list.n > 0 ? list.ids[list.n - 1] : KS_TOKEN_NONE,
                                               &list, &err),
                         &err, error);
  }
  if (ok)
    append_ids (e->sequence, &list, 1);
  ks_token_list_done (&list);
  return ok;
}

gboolean
ks_train_encode_chat (const KsTrainEncoder *encoder, const KsTrainChat *chat, guint n_tok,
                      KsTrainSequence *sequence, GError **error)
{
  Encoding e = {encoder, chat, sequence};
  guint32 start = sequence->ids->len;

  if (chat->messages->len == 0 || n_tok == 0)
    return TRUE;
  g_array_append_val (sequence->starts, start);
  for (guint i = 0; i < chat->messages->len && sequence->ids->len - start < n_tok;) {
    guint end = i;

    while (get_message (&e, end) != NULL && !is_answer (&e, end))
      end++;
    if (end == i)
      end++; /* an answer to nothing is text that was there */
    if (!encode_asked (&e, i, end, error))
      return FALSE;
    i = end;
    if (is_answer (&e, end) && !encode_answer (&e, get_message (&e, i++), error))
      return FALSE;
  }
  ks_train_sequence_cut (sequence, start + n_tok);
  return TRUE;
}

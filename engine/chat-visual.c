/* chat-visual.c - pictures and frames of videos inside a message: what each family of vision models
 * was trained to see around their tokens, and where those tokens stand.
 * While a conversation is laid out a view is one marked byte; when the whole is tokenized, the one
 * KS_TOKEN_NONE that it gave grows to the view's tokens.
 * Source: docs/formats/chat-templates.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/chat-template-internal.h"

#include "engine/tokenizer-internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_VIEW_TOK (1u << 20)
#define MAX_TIME_S 1e6 /* eleven days */

/* How a model learns when a frame was. */
typedef enum frame_time {
  TIME_CLOCK,     /* a line of text with minutes and seconds */
  TIME_SECONDS,   /* "<1.5 seconds>" in front of each frame */
  TIME_STEPS,     /* its position in time: one step a frame */
  TIME_HALF_STEPS /* its position in time: two steps a second */
} frame_time;

typedef struct visual_frame {
  const char *before, *after;
  frame_time time;
  const char *tokens[4]; /* that the vocabulary must have */
} visual_frame;

#define FAKE "<fake_token_around_image>"
#define QWEN_FRAME                                                                                 \
  .before = "<|vision_start|>", .after = "<|vision_end|>",                                         \
  .tokens = {"<|vision_start|>", "<|vision_end|>"}

static const visual_frame frames[KS_N_VISION_FAMILY] = {
    [KS_VISION_IDEFICS3] = {.before = FAKE "<global-img>",
                            .after = FAKE,
                            .time = TIME_CLOCK,
                            .tokens = {FAKE, "<global-img>", "<row_1_col_1>"}},
    [KS_VISION_LLAVA] = {.before = "", .after = "\n", .time = TIME_CLOCK},
    [KS_VISION_GEMMA3] = {.before = "\n\n<start_of_image>",
                          .after = "<end_of_image>\n\n",
                          .time = TIME_CLOCK,
                          .tokens = {"<start_of_image>", "<end_of_image>"}},
    [KS_VISION_QWEN2VL] = {QWEN_FRAME, .time = TIME_STEPS},
    [KS_VISION_QWEN25VL] = {QWEN_FRAME, .time = TIME_HALF_STEPS},
    [KS_VISION_QWEN3VL] = {QWEN_FRAME, .time = TIME_SECONDS},
};

/* ---- slots ---- */

void
ks_chat_slots_init(ks_chat_slots *slots, ks_alloc *a)
{
  *slots = (ks_chat_slots){.alloc = a};
}

void
ks_chat_slots_done(ks_chat_slots *slots)
{
  ks_mem_free(slots->items);
  *slots = (ks_chat_slots){.alloc = slots->alloc};
}

static ks_status
push_slot(ks_chat_slots *slots, const ks_chat_slot *slot, ks_error *err)
{
  if (slots->n == slots->capacity) {
    const size_t capacity = slots->capacity * 2 + 8;
    ks_chat_slot *grown = (ks_chat_slot *)ks_mem_resize(slots->alloc, KS_MEM_HOST, slots->items,
                                                        capacity, sizeof *grown);

    if (grown == NULL)
      return ks_fail(err, KS_ERR_NOMEM, "no memory for the pictures of a conversation");
    slots->items = grown;
    slots->capacity = capacity;
  }
  slots->items[slots->n++] = *slot;
  return KS_OK;
}

/* ---- checking ---- */

static bool
is_same_video(const ks_chat_message *m, uint32_t i, uint32_t j)
{
  return i < m->n_visual && j < m->n_visual && m->visuals[i].video != 0 &&
         m->visuals[i].video == m->visuals[j].video;
}

/* Tiles are known to one family, which never has them without the whole picture. */
static bool
has_right_views(ks_vision_family family, const ks_chat_visual *v)
{
  if (v->view_tok == 0 || v->view_tok > MAX_VIEW_TOK)
    return false;
  if (v->n_view == 1)
    return true;
  return family == KS_VISION_IDEFICS3 && v->has_overview && v->tile_rows > 0 && v->tile_cols > 0 &&
         (uint64_t)v->tile_rows * v->tile_cols + 1 == v->n_view;
}

ks_status
ks_chat_check_visuals(const ks_chat_layout *l, const ks_chat_message *m, ks_error *err)
{
  if (m->n_visual == 0)
    return KS_OK;
  if (l->slots == NULL)
    return ks_fail(err, KS_ERR_ARG, "a picture stands in a text that is laid out without pictures");
  if (m->role != KS_ROLE_USER)
    return ks_fail(err, KS_ERR_ARG, "pictures belong into messages of the user");
  for (uint32_t i = 0; i < m->n_visual; i++) {
    const ks_chat_visual *v = &m->visuals[i], *last = i > 0 ? v - 1 : NULL;

    if (v->at > m->n_bytes || (last != NULL && v->at < last->at))
      return ks_fail(err, KS_ERR_ARG, "picture %u does not stand in its place of the text", i);
    if (!has_right_views(l->family, v))
      return ks_fail(err, KS_ERR_ARG, "picture %u: %u views of %u tokens do not add up", i,
                     v->n_view, v->view_tok);
    if (v->video == 0)
      continue;
    if (!(v->time_s >= 0.0 && v->time_s <= MAX_TIME_S) ||
        (is_same_video(m, i, i - 1) && (v->time_s < last->time_s || v->at != last->at)))
      return ks_fail(err, KS_ERR_ARG, "frame %u of a video is not in its time and place", i);
  }
  return KS_OK;
}

const char *
ks_chat_find_missing_token(ks_vision_family family, const ks_tokenizer *tok)
{
  const size_t n = sizeof frames[0].tokens / sizeof frames[0].tokens[0];

  assert((unsigned)family < KS_N_VISION_FAMILY);
  for (size_t i = 0; i < n && frames[family].tokens[i] != NULL; i++) {
    const char *text = frames[family].tokens[i];

    if (ks_tokenizer_find(tok, text, strlen(text)) == KS_TOKEN_NONE)
      return text;
  }
  return NULL;
}

/* ---- laying out ---- */

static ks_status
append_frame(ks_chat_layout *l, const char *text, ks_error *err)
{
  return ks_chat_append(l, text, strlen(text), KS_MARK_FRAME, err);
}

/* A time to the nearest tenth, ties to even, from the exact value; never through a locale. */
static uint64_t
round_to_tenths(double time_s)
{
  const double whole = floor(time_s * 10.0);
  const double beyond = fma(time_s, 10.0, -(whole + 0.5));
  const uint64_t n = (uint64_t)whole;

  return beyond > 0.0 || (beyond == 0.0 && n % 2 == 1) ? n + 1 : n;
}

static ks_status
append_time(ks_chat_layout *l, const ks_chat_visual *v, frame_time how, ks_error *err)
{
  char text[64];

  if (how == TIME_SECONDS) {
    const unsigned long long tenths = round_to_tenths(v->time_s);

    snprintf(text, sizeof text, "<%llu.%llu seconds>", tenths / 10, tenths % 10);
  } else {
    const unsigned long long seconds = (unsigned long long)v->time_s;

    snprintf(text, sizeof text, "\nFrame from %02llu:%02llu:", seconds / 60, seconds % 60);
  }
  return append_frame(l, text, err);
}

/* The number of frame i in its video, and its distance in time from the first one. */
static uint32_t
count_before(const ks_chat_message *m, uint32_t i, double *out_s)
{
  uint32_t n = 0;

  while (n < i && is_same_video(m, i, i - n - 1))
    n++;
  *out_s = m->visuals[i].time_s - m->visuals[i - n].time_s;
  return n;
}

static ks_status
append_view(ks_chat_layout *l, const ks_chat_message *m, uint32_t i, uint32_t view, ks_error *err)
{
  const ks_chat_visual *v = &m->visuals[i];
  const frame_time how = frames[l->family].time;
  ks_chat_slot slot = {.n_tok = v->view_tok, .message = l->message, .visual = i, .view = view};
  ks_status st;

  if (v->video != 0 && (how == TIME_STEPS || how == TIME_HALF_STEPS)) {
    double s;
    const uint32_t n = count_before(m, i, &s);

    slot.follows = n > 0;
    /* Times come from whole microseconds: a step that is reached up to those is reached. */
    slot.t_shift = how == TIME_STEPS ? n : (uint32_t)(s * 2.0 + 1e-3);
  }
  st = ks_chat_append(l, "", 1, KS_MARK_VISUAL, err);
  return st == KS_OK ? push_slot(l->slots, &slot, err) : st;
}

/* Tiles in rows, each behind its place; every row ends in a line end, the picture in another. */
static ks_status
append_tiles(ks_chat_layout *l, const ks_chat_message *m, uint32_t i, ks_error *err)
{
  const ks_chat_visual *v = &m->visuals[i];
  ks_status st = KS_OK;

  for (uint32_t view = 0; st == KS_OK && view + 1 < v->n_view; view++) {
    const uint32_t row = view / v->tile_cols, col = view % v->tile_cols;
    char place[96];

    snprintf(place, sizeof place, FAKE "<row_%u_col_%u>", row + 1, col + 1);
    st = append_frame(l, place, err);
    if (st == KS_OK)
      st = append_view(l, m, i, view, err);
    if (st == KS_OK && col + 1 == v->tile_cols)
      st = append_frame(l, "\n", err);
  }
  return st == KS_OK ? append_frame(l, "\n", err) : st;
}

ks_status
ks_chat_append_visual(ks_chat_layout *l, const ks_chat_message *m, uint32_t i, ks_error *err)
{
  const ks_chat_visual *v = &m->visuals[i];
  const visual_frame *f = &frames[l->family];
  const bool one_frame = f->time == TIME_STEPS || f->time == TIME_HALF_STEPS;
  const bool opens = !one_frame || i == 0 || !is_same_video(m, i, i - 1);
  const bool closes = !one_frame || !is_same_video(m, i, i + 1);
  ks_status st = KS_OK;

  if (v->video != 0 && !one_frame)
    st = append_time(l, v, f->time, err);
  if (st == KS_OK && v->n_view > 1)
    st = append_tiles(l, m, i, err);
  if (st == KS_OK && opens)
    st = append_frame(l, f->before, err);
  if (st == KS_OK)
    st = append_view(l, m, i, v->n_view - 1, err);
  return st == KS_OK && closes ? append_frame(l, f->after, err) : st;
}

/* ---- ids ---- */

ks_status
ks_chat_expand(ks_token_list *ids, size_t first_id, ks_chat_slots *slots, size_t first_slot,
               ks_error *err)
{
  const size_t n_old = ids->n;
  size_t n_new = n_old, to, at = slots->n;
  ks_status st = KS_OK;

  for (size_t i = first_slot; i < slots->n; i++)
    n_new += slots->items[i].n_tok - 1;
  if (n_new > INT32_MAX)
    return ks_fail(err, KS_ERR_ARG, "the pictures have more tokens than a conversation can hold");
  while (st == KS_OK && ids->n < n_new)
    st = ks_token_list_push(ids, KS_TOKEN_NONE, err);
  if (st != KS_OK)
    return st;
  /* From behind, so that nothing is written over before it has moved. */
  to = n_new;
  for (size_t from = n_old; from > first_id; from--) {
    const ks_token id = ids->ids[from - 1];

    if (id != KS_TOKEN_NONE) {
      ids->ids[--to] = id;
      continue;
    }
    assert(at > first_slot);
    at--;
    for (uint32_t k = 0; k < slots->items[at].n_tok; k++)
      ids->ids[--to] = KS_TOKEN_NONE;
    slots->items[at].first = (uint32_t)to;
  }
  assert(at == first_slot && to == first_id);
  return KS_OK;
}

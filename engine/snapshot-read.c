/* snapshot-read.c - reading a snapshot: framing and sums first (ks_snapshot_open), then every
 * number that the timeline will believe, and only then the timeline changes. Not here: whether its
 * contents are the ones that are wanted; the caller compares the label. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/quant.h"
#include "engine/reader.h"
#include "engine/snapshot-internal.h"
#include "engine/timeline-internal.h"

#include <math.h>
#include <string.h>

#define MAX_SEEN ((uint32_t)INT32_MAX / 2)
#define MAX_SIDE 0x7fffu /* of a picture's grid */

static ks_status
fail_damaged(ks_error *err, const char *what)
{
  return ks_fail(err, KS_ERR_FORMAT,
                 "the kept state of this conversation is damaged (%s): read its texts again", what);
}

/* ---- opening ---- */

typedef struct section {
  const unsigned char *data;
  size_t n_bytes;
} section;

static ks_status
read_head(ks_reader *r, const ks_crc32c *crc, ks_snapshot *snap, ks_error *err)
{
  const unsigned char *magic, *order, *weights, *content;
  uint32_t version = 0, native = 0, sum = 0;
  uint64_t n_bytes = 0;

  if (!ks_reader_bytes(r, 8, &magic) || memcmp(magic, KS_SNAPSHOT_MAGIC, 8) != 0)
    return fail_damaged(err, "it does not begin as one");
  if (!ks_reader_u32(r, &version) || !ks_reader_bytes(r, 4, &order) ||
      !ks_reader_u64(r, &n_bytes) || !ks_reader_bytes(r, KS_SNAPSHOT_HASH_BYTES, &weights) ||
      !ks_reader_bytes(r, KS_SNAPSHOT_HASH_BYTES, &content))
    return fail_damaged(err, "its head is cut");
  memcpy(&native, order, sizeof(native));
  if (version != KS_SNAPSHOT_VERSION || native != KS_SNAPSHOT_ORDER)
    return ks_fail(err, KS_ERR_UNSUPPORTED,
                   "the kept state of this conversation was written by another version or kind of "
                   "machine: read its texts again");
  if (!ks_reader_u32(r, &sum) || sum != ks_crc32c_add(crc, 0, magic, KS_SNAPSHOT_HEAD_BYTES - 4))
    return fail_damaged(err, "its head has changed");
  if (n_bytes != r->n_bytes)
    return fail_damaged(err, "it is cut");
  memcpy(snap->label.weights, weights, sizeof(snap->label.weights));
  memcpy(snap->label.content, content, sizeof(snap->label.content));
  return KS_OK;
}

static ks_status
read_sections(ks_reader *r, const ks_crc32c *crc, section *sections, ks_error *err)
{
  for (uint32_t kind = KS_SECTION_LAYOUT; kind < KS_SECTION_END; kind++) {
    const unsigned char *begin = r->data + r->pos;
    uint32_t found = 0, sum = 0;
    uint64_t n_bytes = 0;
    section *s = &sections[kind];

    if (!ks_reader_u32(r, &found) || found != kind || !ks_reader_u64(r, &n_bytes) ||
        !ks_reader_bytes(r, n_bytes, &s->data) || !ks_reader_u32(r, &sum))
      return fail_damaged(err, "a part is missing");
    s->n_bytes = (size_t)n_bytes;
    if (sum != ks_crc32c_add(crc, 0, begin, s->n_bytes + KS_SNAPSHOT_FRAME_BYTES - 4))
      return fail_damaged(err, "a part has changed");
  }
  return ks_reader_left(r) == 0 ? KS_OK : fail_damaged(err, "it goes on behind its end");
}

static ks_status
read_layout(const section *s, ks_kv_layout *out, ks_error *err)
{
  ks_kv_layout layout = {.page_entries = 1};
  uint32_t dtype = 0;
  ks_reader r;

  ks_reader_init(&r, s->data, s->n_bytes);
  if (s->n_bytes != KS_SNAPSHOT_LAYOUT_BYTES || !ks_reader_u32(&r, &layout.n_layer) ||
      !ks_reader_u32(&r, &layout.n_kv_head) || !ks_reader_u32(&r, &layout.k_dim) ||
      !ks_reader_u32(&r, &layout.v_dim) || !ks_reader_u32(&r, &dtype) ||
      !ks_reader_u32(&r, &layout.n_aux))
    return fail_damaged(err, "its shape is cut");
  layout.kv_dtype = dtype < KS_N_DTYPE ? (ks_dtype)dtype : KS_N_DTYPE;
  if (ks_kv_layout_init(&layout, NULL) != KS_OK)
    return fail_damaged(err, "no model has its shape");
  *out = layout;
  return KS_OK;
}

static ks_status
read_state(const section *s, ks_snapshot *snap, ks_error *err)
{
  uint32_t rope_next = 0, remap_from = 0, turn = 0, attachment = 0;
  ks_reader r;

  ks_reader_init(&r, s->data, s->n_bytes);
  if (s->n_bytes != KS_SNAPSHOT_STATE_BYTES || !ks_reader_u32(&r, &snap->seen) ||
      !ks_reader_u32(&r, &rope_next) || !ks_reader_u32(&r, &turn) ||
      !ks_reader_u32(&r, &attachment) || !ks_reader_u32(&r, &snap->n_vocab) ||
      !ks_reader_u32(&r, &snap->n_remap) || !ks_reader_u32(&r, &remap_from) ||
      !ks_reader_u32(&r, &snap->since_evict) || !ks_reader_u64(&r, &snap->n_evicted) ||
      !ks_reader_u64(&r, &snap->n_eviction_runs) || !ks_reader_u64(&r, &snap->least_keep) ||
      !ks_reader_u64(&r, &snap->rng[0]) || !ks_reader_u64(&r, &snap->rng[1]))
    return fail_damaged(err, "its state is cut");
  if (snap->seen > MAX_SEEN || rope_next > INT32_MAX / 2 || remap_from > INT32_MAX ||
      turn > UINT16_MAX || attachment > UINT8_MAX)
    return fail_damaged(err, "its state cannot be");
  snap->rope_next = (int32_t)rope_next;
  snap->remap_from = (int32_t)remap_from;
  snap->turn = (uint16_t)turn;
  snap->attachment = (uint8_t)attachment;
  return KS_OK;
}

/* Sections are as long as the numbers before them say; those of the streams are added up later. */
static ks_status
take_sections(const section *sections, ks_snapshot *snap, ks_error *err)
{
  const section *tokens = &sections[KS_SECTION_TOKENS], *pins = &sections[KS_SECTION_PINS];
  const section *lengths = &sections[KS_SECTION_LENGTHS], *logits = &sections[KS_SECTION_LOGITS];
  const section *pictures = &sections[KS_SECTION_PICTURES];

  snap->n_length = (size_t)snap->layout.n_layer * snap->layout.n_kv_head;
  if (tokens->n_bytes != (uint64_t)snap->seen * KS_SNAPSHOT_TOKEN_BYTES ||
      pins->n_bytes % KS_SNAPSHOT_PIN_BYTES != 0 ||
      pictures->n_bytes % KS_SNAPSHOT_PICTURE_BYTES != 0 ||
      lengths->n_bytes != snap->n_length * sizeof(uint32_t) ||
      (logits->n_bytes != 0 && logits->n_bytes != (uint64_t)snap->n_vocab * sizeof(float)))
    return fail_damaged(err, "its parts do not fit each other");
  snap->tokens = tokens->data;
  snap->pins = pins->data;
  snap->n_pin = pins->n_bytes / KS_SNAPSHOT_PIN_BYTES;
  snap->pictures = pictures->data;
  snap->n_picture = pictures->n_bytes / KS_SNAPSHOT_PICTURE_BYTES;
  snap->lengths = lengths->data;
  snap->streams = sections[KS_SECTION_STREAMS].data;
  snap->stream_bytes = sections[KS_SECTION_STREAMS].n_bytes;
  snap->queries = sections[KS_SECTION_QUERIES].data;
  snap->query_bytes = sections[KS_SECTION_QUERIES].n_bytes;
  snap->logits = logits->data;
  snap->n_logit = logits->n_bytes / sizeof(float);
  snap->notes = sections[KS_SECTION_NOTES].data;
  snap->n_notes = sections[KS_SECTION_NOTES].n_bytes;
  return KS_OK;
}

ks_status
ks_snapshot_open(const void *data, size_t n_bytes, const ks_snapshot_label *label, ks_snapshot *out,
                 ks_error *err)
{
  section sections[KS_SECTION_END] = {0};
  ks_snapshot snap = {0};
  ks_crc32c crc;
  ks_reader r;
  ks_status st;

  ks_crc32c_init(&crc);
  ks_reader_init(&r, data, n_bytes);
  st = read_head(&r, &crc, &snap, err);
  if (st == KS_OK && label != NULL && memcmp(label, &snap.label, sizeof(*label)) != 0)
    st = ks_fail(err, KS_ERR_UNSUPPORTED,
                 "the kept state belongs to another model or conversation: read the texts again");
  if (st == KS_OK)
    st = read_sections(&r, &crc, sections, err);
  if (st == KS_OK)
    st = read_layout(&sections[KS_SECTION_LAYOUT], &snap.layout, err);
  if (st == KS_OK)
    st = read_state(&sections[KS_SECTION_STATE], &snap, err);
  if (st == KS_OK)
    st = take_sections(sections, &snap, err);
  if (st == KS_OK)
    *out = snap;
  return st;
}

/* ---- checking the contents ---- */

static uint32_t
get_u32(const unsigned char *words, size_t i)
{
  uint32_t value;

  memcpy(&value, words + i * sizeof(value), sizeof(value));
  return value;
}

static float
get_f32(const unsigned char *words, size_t i)
{
  float value;

  memcpy(&value, words + i * sizeof(value), sizeof(value));
  return value;
}

static ks_token_info
get_token(const ks_snapshot *snap, uint32_t i)
{
  ks_token_info token;

  memcpy(&token, snap->tokens + (size_t)i * sizeof(token), sizeof(token));
  return token;
}

static bool
is_position(const ks_snapshot *snap, int32_t pos)
{
  return pos >= 0 && pos < snap->rope_next;
}

/* Time positions do not fall: windows are found by halving. */
static ks_status
check_tokens(const ks_snapshot *snap, ks_error *err)
{
  int32_t before = 0;

  for (uint32_t i = 0; i < snap->seen; i++) {
    const ks_token_info token = get_token(snap, i);
    const bool is_visual = token.modality == KS_MODALITY_IMAGE;

    if (token.modality >= KS_N_MODALITY || is_visual != (token.id == KS_TOKEN_NONE) ||
        (!is_visual && (token.id < 0 || (uint32_t)token.id >= snap->n_vocab)))
      return fail_damaged(err, "a token is not of this model");
    if (!is_position(snap, token.rope_t) || !is_position(snap, token.rope_h) ||
        !is_position(snap, token.rope_w) || token.rope_t < before)
      return fail_damaged(err, "a position cannot be");
    before = token.rope_t;
  }
  return KS_OK;
}

static ks_status
check_pins(const ks_snapshot *snap, ks_error *err)
{
  uint32_t before = 0;

  if (snap->n_pin > UINT32_MAX / 4)
    return fail_damaged(err, "it pins too much");
  for (size_t i = 0; i < snap->n_pin; i++) {
    const uint32_t begin = get_u32(snap->pins, 2 * i), end = get_u32(snap->pins, 2 * i + 1);

    if (begin >= end || end > MAX_SEEN || (i > 0 && begin <= before))
      return fail_damaged(err, "what is pinned cannot be");
    before = end;
  }
  return KS_OK;
}

/* Planes of one stream. */
typedef struct planes {
  const unsigned char *k, *v, *log_beta, *pos, *aux;
  uint32_t n_entry;
  size_t n_bytes;
} planes;

static planes
find_planes(const ks_snapshot *snap, uint32_t stream, size_t offset)
{
  planes p = {.n_entry = get_u32(snap->lengths, stream), .k = snap->streams + offset};
  const size_t n = p.n_entry;

  p.v = p.k + n * snap->layout.k_row_bytes;
  p.log_beta = p.v + n * snap->layout.v_row_bytes;
  p.pos = p.log_beta + n * sizeof(float);
  p.aux = p.pos + n * sizeof(uint32_t);
  p.n_bytes = (size_t)(p.aux - p.k) + n * snap->layout.n_aux * sizeof(float);
  return p;
}

static bool
is_stream_sound(const ks_snapshot *snap, const planes *p)
{
  int64_t before = -1;

  for (size_t e = 0; e < p->n_entry; e++) {
    const uint32_t pos = get_u32(p->pos, e);
    const float log_beta = get_f32(p->log_beta, e);

    if (pos >= snap->seen || (int64_t)pos <= before || !isfinite(log_beta))
      return false;
    before = pos;
  }
  for (size_t i = 0; i < (size_t)p->n_entry * snap->layout.n_aux; i++)
    if (!isfinite(get_f32(p->aux, i)))
      return false;
  return true;
}

/* *out_lengths [n_length] is filled; a page of the pool holds page_entries. */
static ks_status
check_streams(const ks_snapshot *snap, uint32_t *lengths, uint32_t page_entries,
              uint64_t *out_n_page, ks_error *err)
{
  const ks_kv_layout *layout = &snap->layout;
  const uint64_t entry_bytes =
      layout->k_row_bytes + layout->v_row_bytes + (2 + (uint64_t)layout->n_aux) * sizeof(float);
  uint64_t left = snap->stream_bytes, n_page = 0;
  size_t offset = 0;

  for (uint32_t s = 0; s < snap->n_length; s++) {
    planes p;

    lengths[s] = get_u32(snap->lengths, s);
    if (lengths[s] > snap->seen || lengths[s] * entry_bytes > left)
      return fail_damaged(err, "a stream is too long");
    p = find_planes(snap, s, offset);
    if (!is_stream_sound(snap, &p))
      return fail_damaged(err, "an entry cannot be");
    offset += p.n_bytes;
    left -= p.n_bytes;
    n_page += ((uint64_t)lengths[s] + page_entries - 1) / page_entries;
  }
  if (left > 0)
    return fail_damaged(err, "its streams do not fit their lengths");
  *out_n_page = n_page;
  return KS_OK;
}

static ks_status
check_model(const ks_timeline *tl, const ks_snapshot *snap, ks_error *err)
{
  const ks_kv_layout *own = ks_kv_pool_get_layout(tl->params.pool), *kept = &snap->layout;

  if (own->n_layer == kept->n_layer && own->n_kv_head == kept->n_kv_head &&
      own->k_dim == kept->k_dim && own->v_dim == kept->v_dim && tl->shape->n_vocab == snap->n_vocab)
    return KS_OK;
  return ks_fail(err, KS_ERR_UNSUPPORTED,
                 "the kept state belongs to a model of another shape: read the texts again");
}

static ks_status
check_room(const ks_timeline *tl, uint64_t n_page, ks_error *err)
{
  const ks_kv_pool *pool = tl->params.pool;
  const uint64_t n_foreign =
      ks_kv_pool_get_used_pages(pool) - (uint64_t)ks_kv_table_get_n_pages(tl->table);

  if (n_page + n_foreign <= ks_kv_pool_get_budget_pages(pool))
    return KS_OK;
  return ks_fail(err, KS_ERR_BUDGET,
                 "the kept state needs %llu pages, the memory budget has room for %llu: read the "
                 "texts again or raise the budget",
                 (unsigned long long)n_page,
                 (unsigned long long)(ks_kv_pool_get_budget_pages(pool) - n_foreign));
}

/* ---- taking it over ---- */

/* n rows of one type to another; equal types to the last bit. */
static bool
copy_rows(ks_dtype to, unsigned char *dst, size_t dst_bytes, ks_dtype from,
          const unsigned char *src, size_t src_bytes, uint32_t n, float *row, uint32_t dim)
{
  bool ok = true;

  if (to == from) {
    memcpy(dst, src, n * src_bytes);
    return true;
  }
  for (uint32_t i = 0; i < n && ok; i++) {
    ks_dequantise_row(from, src + i * src_bytes, row, dim);
    ok = ks_quantise_row(to, row, dst + i * dst_bytes, dim);
  }
  return ok;
}

/* Entries first .. first + n - 1 of a stream as the page that holds them; planes that only the pool
 * has are 0. */
static bool
fill_page(const ks_snapshot *snap, const planes *p, const ks_kv_layout *layout, uint32_t first,
          uint32_t n, unsigned char *page, float *row)
{
  const ks_kv_layout *kept = &snap->layout;

  memset(page, 0, layout->page_bytes);
  if (!copy_rows(layout->kv_dtype, page, layout->k_row_bytes, kept->kv_dtype,
                 p->k + first * kept->k_row_bytes, kept->k_row_bytes, n, row, kept->k_dim) ||
      !copy_rows(layout->kv_dtype, page + layout->v_offset, layout->v_row_bytes, kept->kv_dtype,
                 p->v + first * kept->v_row_bytes, kept->v_row_bytes, n, row, kept->v_dim))
    return false;
  memcpy(page + layout->log_beta_offset, p->log_beta + first * sizeof(float), n * sizeof(float));
  memcpy(page + layout->pos_offset, p->pos + first * sizeof(uint32_t), n * sizeof(uint32_t));
  for (size_t j = 0; j < kept->n_aux && j < layout->n_aux; j++)
    memcpy(page + layout->aux_offset + j * layout->page_entries * sizeof(float),
           p->aux + (j * p->n_entry + first) * sizeof(float), n * sizeof(float));
  return true;
}

static ks_status
upload_streams(ks_timeline *tl, const ks_snapshot *snap, unsigned char *page, float *row,
               ks_error *err)
{
  const ks_kv_view view = ks_kv_table_get_view(tl->table);
  const ks_kv_layout *layout = view.layout;
  const ks_backend *be = ks_kv_pool_get_backend(tl->params.pool);
  size_t offset = 0;

  for (uint32_t s = 0; s < tl->n_stream; s++) {
    const planes p = find_planes(snap, s, offset);
    const uint32_t most = layout->page_entries;

    for (uint32_t e = 0; e < p.n_entry; e += most) {
      const uint32_t n = p.n_entry - e < most ? p.n_entry - e : most;
      ks_status st;

      if (!fill_page(snap, &p, layout, e, n, page, row))
        return ks_fail(err, KS_ERR_UNSUPPORTED, "kept keys cannot be turned into this type");
      st = be->t->upload(be->dev, view.base + view.streams[s].pages[e / most] * layout->page_bytes,
                         page, layout->page_bytes, err);
      if (st != KS_OK)
        return st;
    }
    offset += p.n_bytes;
  }
  return KS_OK;
}

/* Memory for tokens and pins, before anything is given up. */
static ks_status
reserve_lists(ks_timeline *tl, const ks_snapshot *snap, ks_error *err)
{
  ks_token_info *tokens = tl->tokens;
  ks_pos_range *pins = tl->pins;

  if (snap->seen > tl->token_capacity) {
    tokens = ks_mem_resize(tl->alloc, KS_MEM_HOST, tl->tokens, snap->seen, sizeof(*tokens));
    if (tokens != NULL) {
      tl->tokens = tokens;
      tl->token_capacity = snap->seen;
    }
  }
  if (snap->n_pin > tl->pin_capacity) {
    pins = ks_mem_resize(tl->alloc, KS_MEM_HOST, tl->pins, snap->n_pin, sizeof(*pins));
    if (pins != NULL) {
      tl->pins = pins;
      tl->pin_capacity = (uint32_t)snap->n_pin;
    }
  }
  if ((snap->seen > tl->token_capacity) || (snap->n_pin > tl->pin_capacity))
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for a kept conversation");
  return KS_OK;
}

static void
take_state(ks_timeline *tl, const ks_snapshot *snap)
{
  if (snap->seen > 0)
    memcpy(tl->tokens, snap->tokens, snap->seen * sizeof(*tl->tokens));
  if (snap->n_pin > 0)
    memcpy(tl->pins, snap->pins, snap->n_pin * sizeof(*tl->pins));
  tl->n_pin = (uint32_t)snap->n_pin;
  tl->seen = snap->seen;
  tl->rope_next = snap->rope_next;
  tl->turn = snap->turn;
  tl->attachment = snap->attachment;
  tl->n_remap = snap->n_remap;
  tl->remap_from = snap->remap_from;
  tl->since_evict = snap->since_evict;
  tl->n_evicted = snap->n_evicted;
  tl->n_eviction_runs = snap->n_eviction_runs;
  tl->least_keep = snap->least_keep;
}

static uint32_t
read_side(const unsigned char *at, uint32_t least)
{
  uint32_t value = 0;
  ks_reader r;

  ks_reader_init(&r, at, sizeof(value));
  return ks_reader_u32(&r, &value) && value > least && value <= MAX_SIDE ? value : least;
}

/* Grids of pictures are at least what their tokens show. */
static ks_status
take_grids(ks_timeline *tl, const ks_snapshot *snap, ks_error *err)
{
  if (snap->n_picture != tl->n_picture)
    return fail_damaged(err, "its pictures are others");
  for (uint32_t i = 0; i < tl->n_picture; i++) {
    const unsigned char *at = snap->pictures + (size_t)i * KS_SNAPSHOT_PICTURE_BYTES;
    ks_picture_stats *p = &tl->pictures[i];

    p->grid_rows = read_side(at, p->grid_rows);
    p->grid_cols = read_side(at + 4, p->grid_cols);
    p->overview_rows = read_side(at + 8, p->overview_rows);
    p->overview_cols = read_side(at + 12, p->overview_cols);
  }
  return KS_OK;
}

/* Everything is checked; lengths [n_stream]. */
static ks_status
take_over(ks_timeline *tl, const ks_snapshot *snap, const uint32_t *lengths, ks_error *err)
{
  const ks_kv_layout *layout = ks_kv_pool_get_layout(tl->params.pool);
  const uint32_t dim = layout->k_dim > layout->v_dim ? layout->k_dim : layout->v_dim;
  unsigned char *page = ks_mem_new(tl->alloc, KS_MEM_HOST, 1, layout->page_bytes);
  float *row = ks_mem_new(tl->alloc, KS_MEM_HOST, dim, sizeof(*row));
  ks_status st = KS_OK;

  if (page == NULL || row == NULL)
    st = ks_fail(err, KS_ERR_NOMEM, "not enough memory for a kept conversation");
  if (st == KS_OK)
    st = reserve_lists(tl, snap, err);
  if (st == KS_OK) {
    ks_timeline_reset(tl);
    st = ks_kv_table_fill(tl->table, lengths, err);
    if (st == KS_OK)
      st = upload_streams(tl, snap, page, row, err);
    if (st == KS_OK) {
      take_state(tl, snap);
      st = ks_timeline_count_anew(tl, err);
    }
    if (st == KS_OK)
      st = take_grids(tl, snap, err);
    if (st == KS_OK)
      st = ks_evict_load_queries(tl->evict, layout, snap->queries, snap->query_bytes, snap->seen,
                                 err);
    if (st != KS_OK)
      ks_timeline_reset(tl);
  }
  ks_mem_free(page);
  ks_mem_free(row);
  return st;
}

ks_status
ks_snapshot_read(ks_timeline *tl, const ks_snapshot *snap, ks_error *err)
{
  const uint32_t page_entries = ks_kv_pool_get_layout(tl->params.pool)->page_entries;
  uint32_t *lengths;
  uint64_t n_page = 0;
  ks_status st = check_model(tl, snap, err);

  if (st == KS_OK)
    st = check_tokens(snap, err);
  if (st == KS_OK)
    st = check_pins(snap, err);
  if (st != KS_OK)
    return st;
  lengths = ks_mem_new(tl->alloc, KS_MEM_HOST, snap->n_length, sizeof(*lengths));
  if (lengths == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for a kept conversation");
  st = check_streams(snap, lengths, page_entries, &n_page, err);
  if (st == KS_OK)
    st = check_room(tl, n_page, err);
  if (st == KS_OK)
    st = take_over(tl, snap, lengths, err);
  ks_mem_free(lengths);
  if (st == KS_OK && snap->n_logit > 0) {
    memcpy(tl->logits, snap->logits, snap->n_logit * sizeof(*tl->logits));
    tl->has_logits = true;
  }
  return st;
}

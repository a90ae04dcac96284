/* test-snapshot.c - a timeline as bytes and back: the same continuation to the last bit, other
 * types and page sizes, and every kind of damage refused with the timeline left alone. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/snapshot.h"

#include "engine/sampler.h"
#include "tests/unit/snapshot-seal.h"
#include "tests/unit/timeline-fixture.h"

#define P 4u
#define KEEP (8 * 20u)

typedef struct bytes {
  uint8_t *data;
  size_t n, capacity;
} bytes;

static bool
keep_bytes(void *user, const void *data, size_t n_bytes)
{
  bytes *b = user;

  if (n_bytes > b->capacity - b->n)
    return false;
  memcpy(b->data + b->n, data, n_bytes);
  b->n += n_bytes;
  return true;
}

static ks_snapshot_params
make_params(void)
{
  static const char notes[] = "what the caller keeps";
  ks_snapshot_params params = {.with_logits = true,
                               .rng = {0x0123456789abcdefu, 42},
                               .notes = notes,
                               .n_notes = sizeof notes};

  memset(params.label.weights, 0x11, sizeof params.label.weights);
  memset(params.label.content, 0x22, sizeof params.label.content);
  return params;
}

static bytes
write_all(ks_timeline *tl, const ks_snapshot_params *params)
{
  bytes b = {.capacity = (size_t)ks_snapshot_count_bytes(tl, params)};
  ks_error err;

  b.data = malloc(b.capacity);
  KS_ASSERT(b.data != NULL);
  if (ks_snapshot_write(tl, params, keep_bytes, &b, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  KS_ASSERT_EQ(b.n, b.capacity);
  return b;
}

static ks_status
read_all(ks_timeline *tl, const bytes *b, ks_error *err)
{
  const ks_snapshot_params params = make_params();
  ks_snapshot snap;
  ks_status st = ks_snapshot_open(b->data, b->n, &params.label, &snap, err);

  return st == KS_OK ? ks_snapshot_read(tl, &snap, err) : st;
}

static ks_timeline *
new_timeline(tl_fixture *f, uint64_t n_keep)
{
  ks_timeline_params params = ks_timeline_default_params(f->model, f->gate, f->pool);
  ks_timeline *tl = NULL;

  params.chunk = 16;
  params.buffer = 4;
  params.n_keep = n_keep;
  KS_ASSERT_OK(ks_timeline_new(f->alloc, &params, &tl, NULL));
  return tl;
}

/* Another pool in place of the fixture's. */
static void
change_pool(tl_fixture *f, ks_dtype dtype, uint32_t page_entries, uint32_t n_aux, uint64_t n_page)
{
  ks_kv_pool_free(f->pool);
  f->pool = NULL;
  f->layout.kv_dtype = dtype;
  f->layout.page_entries = page_entries;
  f->layout.n_aux = n_aux;
  KS_ASSERT_OK(ks_kv_layout_init(&f->layout, NULL));
  KS_ASSERT_OK(ks_kv_pool_new(f->alloc, &f->be, &f->layout, n_page * f->layout.page_bytes,
                              n_page * f->layout.page_bytes, &f->pool, NULL));
}

/* 60 tokens of two turns, some pinned, and 5 picked ones: evicted several times, with entries on
 * top of K. */
static void
talk(ks_timeline *tl)
{
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 40, NULL, NULL));
  KS_ASSERT_OK(ks_timeline_pin(tl, 30, 33, NULL));
  ks_timeline_set_turn(tl, 1, 0);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2), 20, NULL, NULL));
  for (uint32_t i = 0; i < 6; i++)
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3) + i, 1, NULL, NULL));
}

/* Goes on and writes the logits of every step to out [n, n_vocab]. */
static void
go_on(ks_timeline *tl, float *out, uint32_t n)
{
  const size_t n_vocab = ks_model_get_shape(ks_timeline_get_model(tl))->n_vocab;

  ks_timeline_set_turn(tl, 2, 0);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(5), 23, NULL, NULL));
  for (uint32_t i = 0; i < n; i++) {
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(6) + i, 1, NULL, NULL));
    memcpy(out + i * n_vocab, ks_timeline_get_logits(tl), n_vocab * sizeof *out);
  }
}

/* The sum of "123456789" that the standard names, however the bytes are cut. */
KS_TEST(snapshot, checksum)
{
  static const char text[] = "123456789";
  ks_crc32c crc;

  ks_crc32c_init(&crc);
  KS_ASSERT_EQ(ks_crc32c_add(&crc, 0, text, 9), 0xE3069283u);
  for (size_t cut = 0; cut <= 9; cut++)
    KS_ASSERT_EQ(ks_crc32c_add(&crc, ks_crc32c_add(&crc, 0, text, cut), text + cut, 9 - cut),
                 0xE3069283u);
}

/* A timeline that was read back goes on with the same bits: passes, evictions, pins and all, for
 * every type of keys. */
KS_TEST(snapshot, same_continuation)
{
  static const ks_dtype types[] = {KS_DTYPE_F32, KS_DTYPE_F16, KS_DTYPE_Q8_0};
  enum { N = 12 };

  for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
    const ks_snapshot_params params = make_params();
    ks_kv_stats before, after;
    ks_timeline *tl, *back;
    tl_fixture f;
    bytes b, again;
    float *want, *got;
    size_t n_vocab;
    ks_error err;

    tl_open_llama(&f, P, 500, 500);
    change_pool(&f, types[t], P, 0, 800);
    n_vocab = ks_model_get_shape(f.model)->n_vocab;
    want = malloc(N * n_vocab * sizeof *want);
    got = malloc(N * n_vocab * sizeof *got);
    KS_ASSERT(want != NULL && got != NULL);
    tl = new_timeline(&f, KEEP);
    talk(tl);
    ks_timeline_get_stats(tl, &before);
    b = write_all(tl, &params);
    memcpy(want, ks_timeline_get_logits(tl), n_vocab * sizeof *want);
    back = new_timeline(&f, KEEP);
    KS_ASSERT_OK(ks_timeline_eval(back, tl_ids(9), 30, NULL, NULL)); /* goes */
    if (read_all(back, &b, &err) != KS_OK)
      KS_FAIL("%s", err.text);
    KS_ASSERT(ks_timeline_check(back));
    KS_ASSERT(memcmp(want, ks_timeline_get_logits(back), n_vocab * sizeof *want) == 0);
    ks_timeline_get_stats(back, &after);
    KS_ASSERT(after.seen == 66 && after.n_turn == 2 && after.turn_tokens[1] == 26);
    KS_ASSERT(after.by_turn[0] == before.by_turn[0] && after.n_evicted == before.n_evicted);
    KS_ASSERT(after.n_position == before.n_position && after.n_entries == before.n_entries);
    again = write_all(back, &params);
    KS_ASSERT(again.n == b.n && memcmp(again.data, b.data, b.n) == 0);
    go_on(tl, want, N);
    go_on(back, got, N);
    KS_ASSERT(memcmp(want, got, N * n_vocab * sizeof *want) == 0);
    KS_ASSERT_EQ(tl_entries(tl), tl_entries(back));
    KS_ASSERT(ks_timeline_check(tl) && ks_timeline_check(back));
    free(want);
    free(got);
    free(b.data);
    free(again.data);
    ks_timeline_free(tl);
    ks_timeline_free(back);
    tl_close(&f);
  }
}

/* Policies that judge by attention go on with the same bits, too: by the queries of the last
 * tokens, or by what passes have added up. */
KS_TEST(snapshot, policies_that_watch)
{
  static const ks_policy policies[] = {KS_POLICY_SNAPKV, KS_POLICY_H2O, KS_POLICY_RKV};
  enum { N = 10 };

  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    const ks_snapshot_params params = make_params();
    ks_timeline *tl = NULL, *back = NULL;
    ks_timeline_params tl_params;
    float *want, *got;
    size_t n_vocab;
    tl_fixture f;
    ks_error err;
    bytes b;

    tl_open_llama(&f, P, 10, 10);
    change_pool(&f, KS_DTYPE_F32, P, 1, 1200);
    n_vocab = ks_model_get_shape(f.model)->n_vocab;
    want = malloc(N * n_vocab * sizeof *want);
    got = malloc(N * n_vocab * sizeof *got);
    KS_ASSERT(want != NULL && got != NULL);
    tl_params = ks_timeline_default_params(f.model, f.gate, f.pool);
    tl_params.evict = ks_evict_default_params(policies[i]);
    tl_params.chunk = 16;
    tl_params.buffer = 4;
    tl_params.n_keep = KEEP;
    KS_ASSERT_OK(ks_timeline_new(f.alloc, &tl_params, &tl, NULL));
    KS_ASSERT_OK(ks_timeline_new(f.alloc, &tl_params, &back, NULL));
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 60, NULL, NULL));
    for (uint32_t k = 0; k < 3; k++)
      KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3) + k, 1, NULL, NULL));
    b = write_all(tl, &params);
    if (read_all(back, &b, &err) != KS_OK)
      KS_FAIL("%s", err.text);
    KS_ASSERT(tl_entries(back) > KEEP); /* the next pass begins with an eviction */
    go_on(tl, want, N);
    go_on(back, got, N);
    KS_ASSERT(memcmp(want, got, N * n_vocab * sizeof *want) == 0);
    KS_ASSERT(ks_timeline_check(back));
    free(want);
    free(got);
    free(b.data);
    ks_timeline_free(tl);
    ks_timeline_free(back);
    tl_close(&f);
  }
}

/* What the caller needs before it decides: label, notes, the draws of its sampler, and how little
 * was ever kept. */
KS_TEST(snapshot, says_what_it_is)
{
  ks_snapshot_params params = make_params();
  ks_snapshot snap;
  ks_timeline *tl;
  tl_fixture f;
  bytes b;

  tl_open_llama(&f, P, 800, 800);
  tl = new_timeline(&f, KEEP);
  b = write_all(tl, &params); /* of nothing at all */
  KS_ASSERT_OK(ks_snapshot_open(b.data, b.n, NULL, &snap, NULL));
  KS_ASSERT(snap.seen == 0 && snap.least_keep == UINT64_MAX && snap.n_logit == 0);
  KS_ASSERT_OK(ks_snapshot_read(tl, &snap, NULL));
  free(b.data);
  talk(tl);
  b = write_all(tl, &params);
  KS_ASSERT_OK(ks_snapshot_open(b.data, b.n, &params.label, &snap, NULL));
  KS_ASSERT(snap.seen == 66 && snap.least_keep == KEEP && snap.turn == 1);
  KS_ASSERT(snap.rng[0] == params.rng[0] && snap.rng[1] == 42);
  KS_ASSERT_EQ(snap.n_notes, params.n_notes);
  KS_ASSERT(memcmp(snap.notes, params.notes, params.n_notes) == 0);
  KS_ASSERT(memcmp(&snap.label, &params.label, sizeof params.label) == 0);
  KS_ASSERT_EQ(snap.n_logit, ks_model_get_shape(f.model)->n_vocab);
  params.label.weights[31] ^= 1;
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_snapshot_open(b.data, b.n, &params.label, &snap, NULL));
  params = make_params();
  params.label.content[0] ^= 1;
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_snapshot_open(b.data, b.n, &params.label, &snap, NULL));
  free(b.data);
  params.with_logits = false;
  b = write_all(tl, &params);
  KS_ASSERT_OK(ks_snapshot_open(b.data, b.n, NULL, &snap, NULL));
  KS_ASSERT_EQ(snap.n_logit, 0);
  KS_ASSERT_OK(ks_snapshot_read(tl, &snap, NULL));
  KS_ASSERT(ks_timeline_get_logits(tl) == NULL);
  free(b.data);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Another type of keys, page size and number of planes: the same entries, values rounded to the
 * new type, planes that nobody wrote 0. */
KS_TEST(snapshot, other_layout)
{
  const ks_snapshot_params params = make_params();
  static float k[2][64 * 256], v[64 * 256], aux[64 * 2], log_beta[2][64];
  static uint32_t pos[2][64];
  ks_timeline *tl;
  ks_kv_view view;
  tl_fixture f;
  ks_error err;
  uint32_t n;
  bytes b;

  tl_open_llama(&f, P, 800, 800);
  tl = new_timeline(&f, KEEP);
  talk(tl);
  b = write_all(tl, &params);
  view = ks_kv_table_get_view(ks_timeline_get_table(tl));
  n = view.streams[1].n_entry;
  KS_ASSERT(n > 0 && n <= 64 && f.layout.k_dim <= 256);
  KS_ASSERT_OK(f.be.t->kv_read(f.be.dev, &view, 1, 0, n, k[0], v, log_beta[0], pos[0], NULL, NULL));
  ks_timeline_free(tl);
  change_pool(&f, KS_DTYPE_F16, 16, 2, 200);
  tl = new_timeline(&f, KEEP);
  if (read_all(tl, &b, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  KS_ASSERT(ks_timeline_check(tl));
  view = ks_kv_table_get_view(ks_timeline_get_table(tl));
  KS_ASSERT_EQ(view.streams[1].n_entry, n);
  KS_ASSERT_OK(
      f.be.t->kv_read(f.be.dev, &view, 1, 0, n, k[1], NULL, log_beta[1], pos[1], aux, NULL));
  for (size_t i = 0; i < (size_t)n * f.layout.k_dim; i++)
    KS_ASSERT(k[1][i] == ks_f16_to_f32(ks_f16_from_f32(k[0][i])));
  KS_ASSERT(memcmp(log_beta[0], log_beta[1], n * sizeof(float)) == 0);
  KS_ASSERT(memcmp(pos[0], pos[1], n * sizeof(uint32_t)) == 0);
  for (size_t i = 0; i < 2 * (size_t)n; i++)
    KS_ASSERT(aux[i] == 0);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(7), 30, NULL, NULL));
  KS_ASSERT(ks_timeline_check(tl));
  free(b.data);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* More than the pool has room for is refused, and what is there stays and can go on. */
KS_TEST(snapshot, does_not_fit)
{
  const ks_snapshot_params params = make_params();
  ks_timeline *tl;
  tl_fixture f;
  ks_error err;
  bytes b;

  tl_open_llama(&f, P, 800, 800);
  tl = new_timeline(&f, KEEP);
  talk(tl);
  b = write_all(tl, &params);
  ks_timeline_free(tl);
  change_pool(&f, KS_DTYPE_F32, P, 0, 8 * 5);
  tl = new_timeline(&f, 0);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 9, NULL, NULL));
  KS_ASSERT_STATUS(KS_ERR_BUDGET, read_all(tl, &b, &err));
  KS_ASSERT(strstr(err.text, "read the texts again") != NULL);
  KS_ASSERT_EQ(ks_timeline_get_seen(tl), 9);
  KS_ASSERT(ks_timeline_get_logits(tl) != NULL && ks_timeline_check(tl));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 9, NULL, NULL));
  free(b.data);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Any byte that differs and any cut is found, and the timeline is as before. */
KS_TEST(snapshot, damage_is_found)
{
  const ks_snapshot_params params = make_params();
  ks_timeline *tl;
  tl_fixture f;
  bytes b, cut;

  tl_open_llama(&f, P, 800, 800);
  tl = new_timeline(&f, KEEP);
  talk(tl);
  b = write_all(tl, &params);
  for (size_t i = 0; i < b.n; i += i < 400 ? 1 : 37) {
    b.data[i] ^= (uint8_t)(1u << i % 8);
    KS_ASSERT(read_all(tl, &b, NULL) != KS_OK);
    b.data[i] ^= (uint8_t)(1u << i % 8);
  }
  for (size_t n = 0; n < b.n; n += 97) {
    cut = b;
    cut.n = n;
    KS_ASSERT_STATUS(KS_ERR_FORMAT, read_all(tl, &cut, NULL));
  }
  KS_ASSERT_EQ(ks_timeline_get_seen(tl), 66);
  KS_ASSERT_OK(read_all(tl, &b, NULL));
  free(b.data);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* A change of one number that no timeline can have, with its sums made right. */
static void
assert_refused(ks_timeline *tl, const bytes *good, int kind, size_t offset, uint32_t value,
               ks_status want)
{
  bytes b = {.data = malloc(good->n), .n = good->n};
  uint8_t *section;

  KS_ASSERT(b.data != NULL);
  memcpy(b.data, good->data, good->n);
  section = seal_find(b.data, b.n, kind);
  KS_ASSERT(section != NULL);
  memcpy(section + offset, &value, sizeof value);
  seal_snapshot(b.data, b.n);
  KS_ASSERT_STATUS(want, read_all(tl, &b, NULL));
  KS_ASSERT(ks_timeline_check(tl));
  free(b.data);
}

/* Sums that are right do not make contents right. */
KS_TEST(snapshot, hostile_contents)
{
  const ks_snapshot_params params = make_params();
  const float no_number = NAN;
  uint32_t bits, n0;
  size_t rows;
  ks_timeline *tl;
  tl_fixture f;
  bytes b;

  tl_open_llama(&f, P, 800, 800);
  tl = new_timeline(&f, KEEP);
  talk(tl);
  b = write_all(tl, &params);
  seal_snapshot(b.data, b.n);
  KS_ASSERT_OK(read_all(tl, &b, NULL));
  n0 = ks_kv_table_get_view(ks_timeline_get_table(tl)).streams[0].n_entry;
  KS_ASSERT(n0 >= 2);
  rows = n0 * (f.layout.k_row_bytes + f.layout.v_row_bytes);
  assert_refused(tl, &b, SEAL_LAYOUT, 0, f.layout.n_layer + 1, KS_ERR_FORMAT);
  assert_refused(tl, &b, SEAL_LAYOUT, 16, KS_DTYPE_Q4_0, KS_ERR_FORMAT);
  assert_refused(tl, &b, SEAL_LAYOUT, 20, f.layout.n_aux + 1, KS_ERR_FORMAT);
  assert_refused(tl, &b, SEAL_STATE, 0, 65, KS_ERR_FORMAT);      /* seen */
  assert_refused(tl, &b, SEAL_STATE, 4, 60, KS_ERR_FORMAT);      /* rope_next */
  assert_refused(tl, &b, SEAL_STATE, 16, 100000, KS_ERR_FORMAT); /* n_vocab */
  assert_refused(tl, &b, SEAL_TOKENS, 24 * 3, 100000, KS_ERR_FORMAT);
  assert_refused(tl, &b, SEAL_TOKENS, 24 * 3, UINT32_MAX, KS_ERR_FORMAT);
  assert_refused(tl, &b, SEAL_TOKENS, 24 * 3 + 12, 66, KS_ERR_FORMAT);
  assert_refused(tl, &b, SEAL_TOKENS, 24 * 3 + 12, 1, KS_ERR_FORMAT); /* falls */
  assert_refused(tl, &b, SEAL_PINS, 0, 33, KS_ERR_FORMAT);
  assert_refused(tl, &b, SEAL_LENGTHS, 0, 67, KS_ERR_FORMAT);
  assert_refused(tl, &b, SEAL_LENGTHS, 0, n0 - 1, KS_ERR_FORMAT);
  memcpy(&bits, &no_number, sizeof bits);
  assert_refused(tl, &b, SEAL_STREAMS, rows, bits, KS_ERR_FORMAT);
  assert_refused(tl, &b, SEAL_STREAMS, rows + n0 * 4, 66, KS_ERR_FORMAT); /* pos */
  assert_refused(tl, &b, SEAL_STREAMS, rows + n0 * 4 + 4, 0, KS_ERR_FORMAT);
  free(b.data);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Whatever allocation fails: an error, a timeline that holds together and can go on. */
KS_TEST(snapshot, out_of_memory)
{
  const ks_snapshot_params params = make_params();
  ks_status st = KS_ERR_NOMEM;
  tl_fixture f;
  ks_timeline *tl;
  uint32_t n_failed = 0;
  bytes b;

  tl_open_llama(&f, P, 1600, 1600);
  tl = new_timeline(&f, KEEP);
  talk(tl);
  b = write_all(tl, &params);
  for (int64_t n = 0; st != KS_OK; n++) {
    ks_timeline *fresh = new_timeline(&f, KEEP);

    KS_ASSERT_OK(ks_timeline_eval(fresh, tl_ids(1), 3, NULL, NULL));
    ks_alloc_fail_after(f.alloc, n);
    st = read_all(fresh, &b, NULL);
    ks_alloc_fail_after(f.alloc, -1);
    KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
    KS_ASSERT(ks_timeline_check(fresh));
    KS_ASSERT_OK(ks_timeline_eval(fresh, tl_ids(1), 3, NULL, NULL));
    n_failed += st != KS_OK;
    ks_timeline_free(fresh);
  }
  KS_ASSERT(n_failed >= 4);
  b.n = 0;
  for (int64_t n = 0; n < 2; n++) {
    ks_alloc_fail_after(f.alloc, n);
    st = ks_snapshot_write(tl, &params, keep_bytes, &b, NULL);
    ks_alloc_fail_after(f.alloc, -1);
    KS_ASSERT_STATUS(KS_ERR_NOMEM, st);
  }
  b.n = b.capacity; /* a sink that takes nothing */
  KS_ASSERT_STATUS(KS_ERR_IO, ks_snapshot_write(tl, &params, keep_bytes, &b, NULL));
  free(b.data);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Pictures of a model with positions in three parts: places, counts and positions come back. */
KS_TEST(snapshot, pictures)
{
  static const float embd[12 * 4096];
  const ks_snapshot_params params = make_params();
  const ks_visual_run runs[2] = {
      {.first = 3, .n_tok = 6, .embd = embd, .grid_rows = 2, .grid_cols = 3, .attachment = 1},
      {.first = 12, .n_tok = 12, .embd = embd, .grid_rows = 4, .grid_cols = 3, .attachment = 2}};
  ks_kv_stats before, after;
  ks_timeline *tl, *back;
  ks_token ids[30];
  tl_fixture f;
  bytes b;

  tl_open(&f, "qwen2.5-vl/model.gguf", NULL, P, 800, 800);
  KS_ASSERT_LE(ks_model_get_shape(f.model)->n_embd, 4096);
  memcpy(ids, tl_ids(2), sizeof ids);
  for (uint32_t r = 0; r < 2; r++)
    for (uint32_t i = 0; i < runs[r].n_tok; i++)
      ids[runs[r].first + i] = KS_TOKEN_NONE;
  tl = new_timeline(&f, 0);
  back = new_timeline(&f, 0);
  KS_ASSERT_OK(ks_timeline_eval_visual(tl, ids, 30, runs, 2, NULL, NULL));
  ks_timeline_get_stats(tl, &before);
  b = write_all(tl, &params);
  KS_ASSERT_OK(read_all(back, &b, NULL));
  KS_ASSERT(ks_timeline_check(back));
  ks_timeline_get_stats(back, &after);
  KS_ASSERT_EQ(after.n_picture, 2);
  KS_ASSERT(memcmp(before.pictures, after.pictures, 2 * sizeof *after.pictures) == 0);
  KS_ASSERT_EQ(before.n_position, after.n_position);
  KS_ASSERT_LT(after.n_position, 30);
  KS_ASSERT(memcmp(ks_timeline_get_tokens(tl), ks_timeline_get_tokens(back),
                   30 * sizeof(ks_token_info)) == 0);
  free(b.data);
  ks_timeline_free(tl);
  ks_timeline_free(back);
  tl_close(&f);
}

/* Draws go on where they stood: an answer that is continued later is the same one. */
KS_TEST(snapshot, sampler_goes_on)
{
  ks_sampler_params p = ks_sampler_default_params();
  ks_alloc *a = ks_alloc_new();
  ks_sampler *one = NULL, *two = NULL;
  float logits[50];
  uint64_t state[2];

  KS_ASSERT(a != NULL);
  for (int i = 0; i < 50; i++)
    logits[i] = (float)(i % 7) * 0.3F;
  p.temperature = 1.0F;
  p.seed = 7;
  KS_ASSERT_OK(ks_sampler_new(a, &p, 50, &one, NULL));
  p.seed = 8;
  KS_ASSERT_OK(ks_sampler_new(a, &p, 50, &two, NULL));
  for (int i = 0; i < 5; i++)
    (void)ks_sampler_pick(one, logits);
  ks_sampler_get_state(one, state);
  ks_sampler_set_state(two, state);
  for (int i = 0; i < 40; i++)
    KS_ASSERT_EQ(ks_sampler_pick(one, logits), ks_sampler_pick(two, logits));
  ks_sampler_free(one);
  ks_sampler_free(two);
  ks_alloc_free(a);
}

/* What an answer held back comes back into another stream, and goes on as if nothing had been. */
KS_TEST(snapshot, text_goes_on)
{
  const char *const stops[] = {"END"};
  const char *out, *held;
  ks_text_stream *one = NULL, *two = NULL;
  ks_alloc *a = ks_alloc_new();
  size_t n, n_held;
  bool stopped = false;

  KS_ASSERT(a != NULL);
  KS_ASSERT_OK(ks_text_stream_new(a, stops, 1, &one, NULL));
  KS_ASSERT_OK(ks_text_stream_new(a, stops, 1, &two, NULL));
  KS_ASSERT_OK(ks_text_stream_push(one, "some EN", 7, &out, &n, &stopped, NULL));
  KS_ASSERT(n == 5 && !stopped);
  held = ks_text_stream_get_held(one, &n_held);
  KS_ASSERT(n_held == 2 && memcmp(held, "EN", 2) == 0);
  KS_ASSERT_OK(ks_text_stream_push(two, held, n_held, &out, &n, &stopped, NULL));
  KS_ASSERT(n == 0 && !stopped);
  KS_ASSERT_OK(ks_text_stream_push(two, "D", 1, &out, &n, &stopped, NULL));
  KS_ASSERT(n == 0 && stopped);
  ks_text_stream_free(one);
  ks_text_stream_free(two);
  ks_alloc_free(a);
}

KS_TEST_MAIN

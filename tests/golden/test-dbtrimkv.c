/* test-dbtrimkv.c - traces of eviction runs: every case of every folder of this kind is replayed
 * through a timeline (exact mode, f32 pages, the trigger alone) and must give the same log_beta,
 * the same evictions with exactly the same survivors, and the same logits.
 * With f16 pages, the default, numbers may be ten times as far off, and the first survivors that
 * differ must stand at the cut; from there on the runs go their own ways and only counts are
 * compared. Format: cases/README.md, "DBTrimKV traces". */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline.h"

#include "tests/golden/golden-case.h"
#include "tests/ks-test.h"

#define PAGE_ENTRIES 4u
#define MAX_ENTRY 4096u

/* One case while it is replayed. */
typedef struct trace {
  const golden_case *file;
  const cJSON *json;
  char label[128];
  ks_alloc *alloc;
  ks_backend be;
  ks_model *model;
  ks_gate *gate;
  ks_kv_pool *pool;
  ks_timeline *tl;
  uint32_t n_layer, n_head, n_vocab;
  const int32_t *ids;
  size_t n_tok;
  /* What the reference says. */
  const cJSON *events;
  const int32_t *survivors, *stream_len, *logit_rows;
  size_t n_survivor, n_logit;
  const golden_array *log_beta, *logits;
  /* How far the replay is. */
  uint32_t n_event;
  size_t at_survivor, at_logit;
  uint64_t peak;
  bool is_f16, has_left; /* has_left: a survivor differed, the reference no longer applies */
  uint32_t begin;        /* first token of the present pass */
  double worst_logit, worst_log_beta;
} trace;

static uint32_t
number(const trace *t, const cJSON *json, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

  if (!cJSON_IsNumber(item))
    KS_FAIL("%s: no number \"%s\"", t->label, key);
  return (uint32_t)item->valuedouble;
}

static const golden_array *
array_of(const trace *t, const char *suffix, bool required)
{
  char name[192];
  const golden_array *a;

  snprintf(name, sizeof(name), "%s.%s", strchr(t->label, '/') + 1, suffix);
  a = golden_case_find(t->file, name);
  if (a == NULL && required)
    KS_FAIL("%s: no array %s", t->label, name);
  return a;
}

static const int32_t *
ints_of(const trace *t, const char *suffix, size_t *out_n)
{
  const golden_array *a = array_of(t, suffix, false);

  *out_n = a != NULL ? a->n_elem : 0;
  return a != NULL ? a->data : NULL;
}

/* Largest difference of n values; fails beyond the array's tolerance. */
static double
compare(const trace *t, const golden_array *want, size_t offset, const float *got, size_t n,
        const char *what)
{
  const float *w = (const float *)want->data + offset;
  double worst = 0.0;

  KS_ASSERT(want->tol_abs >= 0.0 && offset + n <= want->n_elem);
  for (size_t i = 0; i < n; i++) {
    /* f16 keys and values: ten times as far off; gates amplify, log_beta ten times that. */
    const double tol =
        !t->is_f16 ? want->tol_abs : want->tol_abs * (want == t->log_beta ? 100.0 : 10.0);
    const double d = fabs((double)w[i] - got[i]);

    if (!(d <= tol) && !t->has_left)
      KS_FAIL("%s: %s at token %u: %.7g, want %.7g", t->label, what, t->begin, (double)got[i],
              (double)w[i]);
    worst = d > worst && !t->has_left ? d : worst;
  }
  return worst;
}

static void
logits_cb(void *user, uint32_t row, const float *logits)
{
  trace *t = user;
  double d;

  if (t->at_logit >= t->n_logit || t->logit_rows[t->at_logit] != (int32_t)(t->begin + row))
    return;
  d = compare(t, t->logits, t->at_logit * t->n_vocab, logits, t->n_vocab, "logits");
  t->worst_logit = d > t->worst_logit ? d : t->worst_logit;
  t->at_logit++;
}

/* Positions of a stream's survivors, exactly those of the reference. */
static void
check_stream(trace *t, const ks_kv_view *view, uint32_t s)
{
  const uint32_t n = view->streams[s].n_entry;
  uint32_t pos[MAX_ENTRY];

  if (t->stream_len[t->n_event * t->n_layer * t->n_head + s] != (int32_t)n)
    KS_FAIL("%s: eviction %u leaves %u entries in stream %u, want %d", t->label, t->n_event, n, s,
            t->stream_len[t->n_event * t->n_layer * t->n_head + s]);
  KS_ASSERT_LE(n, MAX_ENTRY);
  if (n > 0)
    KS_ASSERT_OK(t->be.t->kv_read(t->be.dev, view, s, 0, n, NULL, NULL, NULL, pos, NULL, NULL));
  for (uint32_t e = 0; e < n; e++, t->at_survivor++) {
    const int32_t *row = t->survivors + 4 * t->at_survivor;

    KS_ASSERT_LT(t->at_survivor, t->n_survivor);
    if (row[0] != (int32_t)t->n_event || row[1] != (int32_t)(s / t->n_head) ||
        row[2] != (int32_t)(s % t->n_head) || row[3] != (int32_t)pos[e])
      KS_FAIL("%s: eviction %u, stream %u: position %u survived, want layer %d head %d position %d",
              t->label, t->n_event, s, pos[e], row[1], row[2], row[3]);
  }
}

/* Is (stream, pos) among the reference's survivors of the present event? */
static bool
survived_there(const trace *t, uint32_t s, uint32_t pos)
{
  for (size_t i = t->at_survivor; i < t->n_survivor; i++) {
    const int32_t *row = t->survivors + 4 * i;

    if (row[0] == (int32_t)t->n_event && row[1] == (int32_t)(s / t->n_head) &&
        row[2] == (int32_t)(s % t->n_head) && row[3] == (int32_t)pos)
      return true;
  }
  return false;
}

/* With f16 pages: true when survivors differ, and then each of ours that the reference dropped has
 * a score at the cut, within the reference's margin. */
static bool
leaves_at_cut(const trace *t, const ks_evict_event *event, const cJSON *want,
              const ks_kv_view *view)
{
  const double margin = cJSON_GetObjectItemCaseSensitive(want, "margin")->valuedouble;
  const uint32_t lookahead = number(t, t->json, "lookahead_n");
  uint32_t n_other = 0, pos[MAX_ENTRY];
  float log_beta[MAX_ENTRY];

  for (uint32_t s = 0; s < t->n_layer * t->n_head; s++) {
    const uint32_t n = view->streams[s].n_entry;

    KS_ASSERT_LE(n, MAX_ENTRY);
    if (n > 0)
      KS_ASSERT_OK(
          t->be.t->kv_read(t->be.dev, view, s, 0, n, NULL, NULL, log_beta, pos, NULL, NULL));
    for (uint32_t e = 0; e < n; e++) {
      const float score = ks_retention_score(log_beta[e], pos[e], event->seen, lookahead);

      if (survived_there(t, s, pos[e]))
        continue;
      n_other++;
      if (number(t, t->json, "floor_per_stream") == 0)
        KS_ASSERT_NEAR(score, event->last_kept, margin + 0.01 * (event->seen + 2 - pos[e]));
    }
  }
  return n_other > 0;
}

static void
evicted_cb(void *user, const ks_evict_event *event, const ks_kv_table *table)
{
  trace *t = user;
  const cJSON *want = cJSON_GetArrayItem(t->events, (int)t->n_event);
  const ks_kv_view view = ks_kv_table_get_view(table);

  if (want == NULL)
    KS_FAIL("%s: an eviction too many at %u tokens", t->label, event->seen);
  KS_ASSERT_EQ(event->seen, number(t, want, "seen"));
  KS_ASSERT_EQ(event->n_before, number(t, want, "entries_before"));
  KS_ASSERT_EQ(event->n_after, number(t, want, "entries_after"));
  if (number(t, t->json, "floor_per_stream") == 0 && !t->is_f16)
    KS_ASSERT_NEAR(event->last_kept,
                   cJSON_GetObjectItemCaseSensitive(want, "score_of_last_kept")->valuedouble, 2e-3);
  if (t->has_left || (t->is_f16 && leaves_at_cut(t, event, want, &view))) {
    t->has_left = true;
  } else {
    for (uint32_t s = 0; s < t->n_layer * t->n_head; s++)
      check_stream(t, &view, s);
  }
  t->peak = event->n_before > t->peak ? event->n_before : t->peak;
  t->n_event++;
}

static void
open_engine(trace *t)
{
  ks_dev_params params = {.n_thread = 1, .mode = KS_COMPUTE_EXACT};
  ks_model_params model_params = {.be = &t->be};
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(t->file), "model");
  ks_error err;
  char *path;

  KS_ASSERT(cJSON_IsString(name));
  t->alloc = ks_alloc_new();
  params.alloc = t->alloc;
  KS_ASSERT_OK(ks_backend_open("cpu", &params, &t->be, NULL));
  path = golden_case_dup_path(t->file, name->valuestring);
  if (ks_model_open(t->alloc, path, &model_params, &t->model, &err) != KS_OK)
    KS_FAIL("%s: %s", t->label, err.text);
  free(path);
  t->n_layer = ks_model_get_shape(t->model)->n_layer;
  t->n_head = ks_model_get_shape(t->model)->n_kv_head;
  t->n_vocab = ks_model_get_shape(t->model)->n_vocab;
  t->ids = golden_case_get_i32(t->file, "input_ids", &t->n_tok);
  KS_ASSERT(t->ids != NULL);
}

static void
open_gate(trace *t, const char *kind)
{
  char file[96];
  char *path;
  ks_error err;

  snprintf(file, sizeof(file), "gate_%s.safetensors", kind);
  path = golden_case_dup_path(t->file, file);
  if (ks_gate_open(t->alloc, path, t->model, &t->gate, &err) != KS_OK)
    KS_FAIL("%s: %s", t->label, err.text);
  free(path);
}

/* A timeline over a pool that holds n_entry entries and passes of params.chunk tokens. */
static void
open_timeline(trace *t, ks_timeline_params *params, uint64_t n_entry)
{
  ks_kv_layout layout = {.n_layer = t->n_layer,
                         .n_kv_head = t->n_head,
                         .k_dim = ks_model_get_shape(t->model)->k_dim,
                         .v_dim = ks_model_get_shape(t->model)->v_dim,
                         .kv_dtype = t->is_f16 ? KS_DTYPE_F16 : KS_DTYPE_F32,
                         .page_entries = PAGE_ENTRIES};
  uint64_t n_page;
  ks_error err;

  KS_ASSERT_OK(ks_kv_layout_init(&layout, NULL));
  n_page = ks_kv_pages_for_entries(&layout, n_entry, params->chunk + params->buffer);
  KS_ASSERT_OK(
      ks_kv_pool_new(t->alloc, &t->be, &layout, n_page * layout.page_bytes, 0, &t->pool, NULL));
  params->model = t->model;
  params->gate = t->gate;
  params->pool = t->pool;
  params->max_logit_rows = params->chunk;
  if (ks_timeline_new(t->alloc, params, &t->tl, &err) != KS_OK)
    KS_FAIL("%s: %s", t->label, err.text);
}

static void
close_engine(trace *t)
{
  KS_ASSERT(ks_timeline_check(t->tl));
  ks_timeline_free(t->tl);
  ks_kv_pool_free(t->pool);
  ks_gate_free(t->gate);
  ks_model_close(t->model);
  ks_backend_close(&t->be);
  ks_alloc_free(t->alloc);
}

static void
check_log_beta(trace *t, uint32_t n)
{
  for (uint32_t l = 0; l < t->n_layer; l++) {
    const float *got = ks_graph_get_tap(ks_timeline_get_graph(t->tl), KS_TAP_LOG_BETA, l);

    KS_ASSERT(got != NULL);
    for (uint32_t i = 0; i < n; i++) {
      const size_t at = ((size_t)(t->begin + i) * t->n_layer + l) * t->n_head;
      const double d =
          compare(t, t->log_beta, at, got + (size_t)i * t->n_head, t->n_head, "log_beta");

      t->worst_log_beta = d > t->worst_log_beta ? d : t->worst_log_beta;
    }
  }
}

static void
replay_passes(trace *t, const cJSON *chunks)
{
  const ks_timeline_hooks hooks = {.logits = logits_cb, .evicted = evicted_cb, .user = t};
  const cJSON *chunk;
  ks_error err;

  cJSON_ArrayForEach(chunk, chunks)
  {
    const uint32_t n = (uint32_t)chunk->valuedouble;
    uint64_t n_entry;

    KS_ASSERT_LE(t->begin + n, t->n_tok);
    if (ks_timeline_eval(t->tl, t->ids + t->begin, n, &hooks, &err) != KS_OK)
      KS_FAIL("%s: %s", t->label, err.text);
    n_entry = ks_kv_table_get_n_entries(ks_timeline_get_table(t->tl));
    t->peak = n_entry > t->peak ? n_entry : t->peak;
    check_log_beta(t, n);
    t->begin += n;
  }
}

/* The longest pass of a case. */
static uint32_t
longest_of(const cJSON *chunks)
{
  double longest = 0.0;
  const cJSON *chunk;

  cJSON_ArrayForEach(chunk, chunks) longest =
      chunk->valuedouble > longest ? chunk->valuedouble : longest;
  return (uint32_t)longest;
}

static void
replay(const golden_case *file, const cJSON *json, bool is_f16)
{
  trace t = {.file = file, .json = json, .is_f16 = is_f16};
  const cJSON *chunks = cJSON_GetObjectItemCaseSensitive(json, "chunks");
  const cJSON *gate = cJSON_GetObjectItemCaseSensitive(json, "gate");
  ks_timeline_params params = {.want_taps = true};
  size_t n;

  snprintf(t.label, sizeof(t.label), "%s/%s", golden_case_get_name(file), json->string);
  KS_ASSERT(cJSON_IsArray(chunks) && cJSON_IsString(gate));
  t.events = cJSON_GetObjectItemCaseSensitive(json, "events");
  t.log_beta = array_of(&t, "log_beta", true);
  t.logits = array_of(&t, "logits", true);
  t.logit_rows = ints_of(&t, "logit_rows", &t.n_logit);
  t.survivors = ints_of(&t, "survivors", &n);
  t.n_survivor = n / 4;
  t.stream_len = ints_of(&t, "stream_len", &n);
  open_engine(&t);
  open_gate(&t, gate->valuestring);
  params.evict = ks_evict_default_params(KS_POLICY_DBTRIMKV);
  params.evict.pin_first = 0;
  params.evict.lookahead = number(&t, json, "lookahead_n");
  params.evict.floor = number(&t, json, "floor_per_stream");
  params.chunk = longest_of(chunks);
  params.buffer = number(&t, json, "B");
  params.n_keep = number(&t, json, "K");
  open_timeline(&t, &params, params.n_keep);
  replay_passes(&t, chunks);
  KS_ASSERT_EQ(t.begin, t.n_tok);
  KS_ASSERT_EQ(t.n_event, cJSON_GetArraySize(t.events));
  if (!t.has_left)
    KS_ASSERT_EQ(t.at_survivor, t.n_survivor);
  KS_ASSERT_EQ(t.at_logit, t.n_logit);
  KS_ASSERT_EQ(t.peak, number(&t, json, "peak_entries"));
  printf("# %s%s: %u evictions, %zu of %zu survivors compared, log_beta within %.2g, logits within "
         "%.2g\n",
         t.label, is_f16 ? " (f16)" : "", t.n_event, t.at_survivor, t.n_survivor, t.worst_log_beta,
         t.worst_logit);
  close_engine(&t);
}

static void
full_logits_cb(void *user, uint32_t row, const float *logits)
{
  trace *t = user;
  double d;

  t->begin = row;
  d = compare(t, t->logits, (size_t)row * t->n_vocab, logits, t->n_vocab, "logits");
  t->worst_logit = d > t->worst_logit ? d : t->worst_logit;
  t->at_logit++;
}

/* The same text without any eviction, in two passes. */
static void
replay_full(const golden_case *file)
{
  trace t = {.file = file, .logits = golden_case_find(file, "full.logits")};
  ks_timeline_params params = {.buffer = 1, .force_evict = true};
  const ks_timeline_hooks hooks = {.logits = full_logits_cb, .user = &t};
  ks_error err;

  if (t.logits == NULL)
    return;
  snprintf(t.label, sizeof(t.label), "%s/full", golden_case_get_name(file));
  open_engine(&t);
  params.evict = ks_evict_default_params(KS_POLICY_FULL);
  params.chunk = (uint32_t)(t.n_tok + 1) / 2;
  open_timeline(&t, &params, (uint64_t)t.n_layer * t.n_head * t.n_tok);
  if (ks_timeline_eval(t.tl, t.ids, (uint32_t)t.n_tok, &hooks, &err) != KS_OK)
    KS_FAIL("%s: %s", t.label, err.text);
  KS_ASSERT_EQ(t.at_logit, t.n_tok);
  printf("# %s: logits within %.2g\n", t.label, t.worst_logit);
  close_engine(&t);
}

/* Survivors exactly, log_beta and logits within the cases' tolerances. */
KS_TEST(dbtrimkv, traces)
{
  golden_list list = golden_list_new("KS_GOLDEN_DIR", "KS_GOLDEN_DEFAULT");
  size_t n_case = 0;

  for (size_t i = 0; i < list.n; i++) {
    char error[256];
    golden_case *file = golden_case_load(list.folders[i], error, sizeof(error));
    const cJSON *cases, *json;

    if (file == NULL)
      KS_FAIL("%s", error);
    cases = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(file), "cases");
    cJSON_ArrayForEach(json, cases)
    {
      if (cJSON_GetObjectItemCaseSensitive(json, "lookahead_n") == NULL)
        continue;
      replay(file, json, false);
      replay(file, json, true);
      n_case++;
    }
    if (n_case > 0 && cases != NULL)
      replay_full(file);
    golden_case_free(file);
  }
  golden_list_free(&list);
  if (n_case == 0)
    KS_FAIL("no eviction trace lies in the golden folder");
}

KS_TEST_MAIN

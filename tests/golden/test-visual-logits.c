/* test-visual-logits.c - pictures in the language half, against the reference of every picture
 * case: ids and embeddings to positions, logits and inner activations; messages to ids; and which
 * patch each surviving entry belongs to.  The projector's numbers are the stored ones: towers are
 * tested elsewhere. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline.h"

#include "tests/golden/visual-case.h"

#define F16_FACTOR 10.0 /* cases/README.md: allow ten times as much */
#define PAGE_ENTRIES 8u

/* A model with a pool and a timeline. */
typedef struct machine {
  ks_alloc *alloc;
  ks_backend be;
  ks_model *model;
  ks_kv_layout layout;
  ks_kv_pool *pool;
  ks_timeline *tl;
} machine;

static uint32_t
longest_run(const visual_case *v)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < v->n_run; i++)
    n = v->runs[i].n_tok > n ? v->runs[i].n_tok : n;
  return n;
}

/* Room for n_tok tokens; a chunk of at least a view where the model wants that. */
static void
open_machine(machine *m, const visual_case *v, ks_dtype kv_dtype, uint32_t n_tok, uint32_t chunk,
             ks_policy policy)
{
  char *path = golden_case_dup_path(v->c, "model.gguf");
  ks_dev_params dev = {.n_thread = 2};
  ks_model_params params = {.be = &m->be};
  ks_timeline_params tp;
  const ks_model_shape *s;
  uint64_t n_bytes;
  ks_error err;

  memset(m, 0, sizeof *m);
  m->alloc = dev.alloc = ks_alloc_new();
  KS_ASSERT_OK(ks_backend_open("cpu", &dev, &m->be, NULL));
  if (ks_model_open(m->alloc, path, &params, &m->model, &err) != KS_OK)
    KS_FAIL("%s: %s", path, err.text);
  free(path);
  s = ks_model_get_shape(m->model);
  m->layout = (ks_kv_layout){.n_layer = s->n_layer,
                             .n_kv_head = s->n_kv_head,
                             .k_dim = s->k_dim,
                             .v_dim = s->v_dim,
                             .kv_dtype = kv_dtype,
                             .page_entries = PAGE_ENTRIES};
  KS_ASSERT_OK(ks_kv_layout_init(&m->layout, NULL));
  n_bytes = (uint64_t)s->n_layer * s->n_kv_head * (n_tok / PAGE_ENTRIES + 2) * m->layout.page_bytes;
  KS_ASSERT_OK(ks_kv_pool_new(m->alloc, &m->be, &m->layout, n_bytes, n_bytes, &m->pool, NULL));
  tp = ks_timeline_default_params(m->model, NULL, m->pool);
  tp.evict = ks_evict_default_params(policy);
  tp.chunk = chunk;
  if (s->arch == KS_ARCH_GEMMA3 && tp.chunk < longest_run(v))
    tp.chunk = longest_run(v);
  tp.buffer = 1;
  tp.want_taps = true;
  tp.max_logit_rows = tp.chunk;
  if (ks_timeline_new(m->alloc, &tp, &m->tl, &err) != KS_OK)
    KS_FAIL("%s: %s", golden_case_get_name(v->c), err.text);
}

static void
close_machine(machine *m)
{
  KS_ASSERT(ks_timeline_check(m->tl));
  ks_timeline_free(m->tl);
  ks_kv_pool_free(m->pool);
  ks_model_close(m->model);
  ks_backend_close(&m->be);
  ks_alloc_free(m->alloc);
}

/* ---- logits ---- */

typedef struct logit_job {
  uint32_t chunk;
  ks_dtype kv_dtype;
  double factor;
  uint32_t n_wrong;
} logit_job;

typedef struct collected {
  const int32_t *rows;
  size_t n_row, at;
  uint32_t n_vocab;
  float *logits;
} collected;

static void
logits_cb(void *user, uint32_t row, const float *logits)
{
  collected *c = user;

  KS_ASSERT_LT(c->at, c->n_row);
  KS_ASSERT_EQ(row, c->rows[c->at]);
  memcpy(c->logits + c->at++ * c->n_vocab, logits, c->n_vocab * sizeof *logits);
}

static bool
compare(const visual_case *v, const golden_array *want, const float *got, double factor,
        const char *what)
{
  double worst = 0.0;
  const size_t n_wrong =
      got != NULL ? golden_array_compare(want, got, factor, &worst) : want->n_elem;

  printf("# %s/%s %s: off by %.3g at most, allowed %.3g%s\n", golden_case_get_name(v->c), v->name,
         what, worst, factor * want->tol_abs, n_wrong > 0 ? " WRONG" : "");
  return n_wrong == 0;
}

/* Every token's position in three parts (one row in the case: all three are that). */
static bool
check_positions(const visual_case *v, const machine *m)
{
  const golden_array *want = visual_case_find(v, "position_ids");
  const ks_token_info *tokens = ks_timeline_get_tokens(m->tl);
  const int32_t *p = want->data;
  const size_t step = want->n_elem == 3 * (size_t)v->n ? v->n : 0;
  uint32_t n_wrong = 0;

  for (uint32_t i = 0; i < v->n; i++)
    n_wrong += tokens[i].rope_t != p[i] || tokens[i].rope_h != p[step + i] ||
               tokens[i].rope_w != p[2 * step + i];
  printf("# %s/%s: %u of %u positions differ%s\n", golden_case_get_name(v->c), v->name, n_wrong,
         v->n, n_wrong > 0 ? " WRONG" : "");
  return n_wrong == 0;
}

static bool
check_taps(const visual_case *v, const machine *m, double factor)
{
  const ks_graph *g = ks_timeline_get_graph(m->tl);
  const golden_array *layers = visual_case_find(v, "layer_out_last");
  const size_t n_embd = layers->shape[1];
  float *got = malloc(layers->n_elem * sizeof *got);
  bool ok = compare(v, visual_case_find(v, "embed_last"), ks_graph_get_tap(g, KS_TAP_EMBED, 0), 1.0,
                    "embed_last");

  KS_ASSERT(got != NULL);
  for (uint32_t i = 0; i < layers->shape[0]; i++)
    memcpy(got + i * n_embd, ks_graph_get_tap(g, KS_TAP_LAYER_OUT, i), n_embd * sizeof *got);
  ok &= compare(v, layers, got, factor, "layer_out_last");
  ok &= compare(v, visual_case_find(v, "final_norm_last"),
                ks_graph_get_tap(g, KS_TAP_FINAL_NORM, 0), factor, "final_norm_last");
  free(got);
  return ok;
}

static void
run_logits(const visual_case *v, void *user)
{
  logit_job *job = user;
  const golden_array *want = visual_case_find(v, "logits"),
                     *rows = visual_case_find(v, "logit_rows");
  collected got = {.rows = rows->data, .n_row = rows->n_elem, .n_vocab = (uint32_t)want->shape[1]};
  const ks_timeline_hooks hooks = {.logits = logits_cb,
                                   .logit_rows = rows->data,
                                   .n_logit = (uint32_t)rows->n_elem,
                                   .user = &got};
  const uint32_t chunk = job->chunk > 0 && job->chunk < v->n ? job->chunk : v->n;
  machine m;
  ks_error err;

  open_machine(&m, v, job->kv_dtype, v->n, chunk, KS_POLICY_FULL);
  KS_ASSERT_EQ(want->shape[1], ks_model_get_shape(m.model)->n_vocab);
  got.logits = malloc(want->n_elem * sizeof *got.logits);
  KS_ASSERT(got.logits != NULL);
  if (ks_timeline_eval_visual(m.tl, v->ids, v->n, v->runs, v->n_run, &hooks, &err) != KS_OK)
    KS_FAIL("%s/%s: %s", golden_case_get_name(v->c), v->name, err.text);
  KS_ASSERT_EQ(got.at, got.n_row);
  job->n_wrong += !compare(v, want, got.logits, job->factor, "logits");
  job->n_wrong += !check_positions(v, &m);
  job->n_wrong += !check_taps(v, &m, job->factor);
  free(got.logits);
  close_machine(&m);
}

/* Every picture case in one pass: logits of the stored rows, positions, activations. */
KS_TEST(visual, exact)
{
  logit_job job = {.kv_dtype = KS_DTYPE_F32, .factor = 1.0};

  KS_ASSERT_LT(0, visual_case_walk(run_logits, &job));
  KS_ASSERT_EQ(job.n_wrong, 0);
}

/* Passes of seven tokens cut through pictures (but where they are seen both ways): the same. */
KS_TEST(visual, exact_in_chunks)
{
  logit_job job = {.chunk = 7, .kv_dtype = KS_DTYPE_F32, .factor = 1.0};

  KS_ASSERT_LT(0, visual_case_walk(run_logits, &job));
  KS_ASSERT_EQ(job.n_wrong, 0);
}

/* The default: f16 keys and values, ten times the tolerance. */
KS_TEST(visual, half_kv)
{
  logit_job job = {.chunk = 32, .kv_dtype = KS_DTYPE_F16, .factor = F16_FACTOR};

  KS_ASSERT_LT(0, visual_case_walk(run_logits, &job));
  KS_ASSERT_EQ(job.n_wrong, 0);
}

/* ---- chat ---- */

static ks_vision_family
family_of(const golden_case *c)
{
  static const struct {
    const char *arch;
    ks_vision_family family;
  } rows[] = {{"idefics3", KS_VISION_IDEFICS3},
              {"llava-1.5", KS_VISION_LLAVA},
              {"qwen2.5-vl", KS_VISION_QWEN25VL},
              {"qwen3-vl", KS_VISION_QWEN3VL}};
  const char *arch =
      cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(golden_case_get_json(c), "arch"));

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (arch != NULL && strcmp(arch, rows[i].arch) == 0)
      return rows[i].family;
  KS_FAIL("%s: no family of vision models", golden_case_get_name(c));
}

/* The case's content parts as one message with pictures in their places. */
static void
fill_message(const visual_case *v, ks_chat_message *m, char text[256], ks_chat_visual *visuals)
{
  const cJSON *part;
  size_t n = 0;

  *m = (ks_chat_message){.role = KS_ROLE_USER, .text = text, .visuals = visuals};
  cJSON_ArrayForEach(part, visual_case_get_content(v))
  {
    const char *words = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(part, "text"));

    if (words != NULL) {
      KS_ASSERT_LT(n + strlen(words), 256);
      memcpy(text + n, words, strlen(words));
      n += strlen(words);
    } else {
      const visual_picture *p = &v->pictures[m->n_visual];

      KS_ASSERT_LT(m->n_visual, v->n_picture);
      visuals[m->n_visual++] = (ks_chat_visual){.at = n,
                                                .tile_rows = p->tile_rows,
                                                .tile_cols = p->tile_cols,
                                                .has_overview = p->n_view > 1,
                                                .n_view = p->n_view,
                                                .view_tok = p->grid_rows * p->grid_cols};
    }
  }
  m->n_bytes = n;
}

static void
check_chat(const visual_case *v, void *user)
{
  ks_alloc *a = ks_alloc_new();
  char *path = golden_case_dup_path(v->c, "model.gguf"), text[256];
  ks_chat_visual visuals[VISUAL_MAX_PICTURE];
  ks_tokenizer *tok = NULL;
  ks_gguf *g = NULL;
  bool is_fallback = true;
  ks_chat_slots slots;
  ks_chat_message m;
  ks_token_list ids;

  if (visual_case_get_content(v) != NULL) {
    KS_ASSERT_OK(ks_gguf_open(a, path, &g, NULL));
    KS_ASSERT_OK(ks_tokenizer_new(a, g, &tok, NULL));
    ks_token_list_init(&ids, a);
    ks_chat_slots_init(&slots, a);
    fill_message(v, &m, text, visuals);
    KS_ASSERT(ks_chat_find_missing_token(family_of(v->c), tok) == NULL);
    KS_ASSERT_OK(ks_chat_encode_visual(ks_chat_template_detect(g, &is_fallback), family_of(v->c),
                                       tok, &m, 1, KS_CHAT_FIRST | KS_CHAT_GENERATE, &ids, &slots,
                                       NULL));
    KS_ASSERT(!is_fallback);
    for (size_t i = 0; i < ids.n && i < v->n; i++)
      if (ids.ids[i] != v->ids[i])
        KS_FAIL("%s/%s: token %zu is %d, want %d", golden_case_get_name(v->c), v->name, i,
                ids.ids[i], v->ids[i]);
    KS_ASSERT_EQ(ids.n, v->n);
    KS_ASSERT_EQ(slots.n, v->n_run);
    for (size_t i = 0; i < slots.n; i++) {
      KS_ASSERT_EQ(slots.items[i].first, v->runs[i].first);
      KS_ASSERT_EQ(slots.items[i].n_tok, v->runs[i].n_tok);
      KS_ASSERT_EQ(slots.items[i].visual, v->run_picture[i]);
    }
    ++*(uint32_t *)user;
    ks_chat_slots_done(&slots);
    ks_token_list_done(&ids);
    ks_tokenizer_free(tok);
    ks_gguf_close(g);
  }
  free(path);
  ks_alloc_free(a);
}

/* Messages with pictures in them give the reference's ids, and the slots lie where its image tokens
 * lie. */
KS_TEST(visual, chat)
{
  uint32_t n_checked = 0;

  (void)visual_case_walk(check_chat, &n_checked);
  KS_ASSERT_LT(0, n_checked);
}

/* ---- survivors ---- */

#define MAX_SEQ 512u

/* What the test knows of a sequence index, without the timeline. */
typedef struct place {
  bool is_visual, is_overview;
  uint32_t turn, attachment, row, col;
} place;

typedef struct witness {
  const machine *m;
  place places[MAX_SEQ];
  uint32_t n;
  /* Filled by the survivor hook. */
  uint32_t n_met, layer, head, last_pos;
  uint32_t by_picture[2][VISUAL_MAX_PICTURE + 1];
} witness;

/* The same case once more, under the next turn. */
static void
read_case(const visual_case *v, machine *m, witness *w, uint32_t turn)
{
  ks_error err;

  ks_timeline_set_turn(m->tl, (uint16_t)turn, 0);
  if (ks_timeline_eval_visual(m->tl, v->ids, v->n, v->runs, v->n_run, NULL, &err) != KS_OK)
    KS_FAIL("%s/%s: %s", golden_case_get_name(v->c), v->name, err.text);
  KS_ASSERT_LE(w->n + v->n, MAX_SEQ);
  for (uint32_t r = 0, view = 0; r < v->n_run; r++) {
    const visual_picture *p = &v->pictures[v->run_picture[r]];
    const bool is_overview = p->n_view > 1 && view + 1 == p->n_view;

    for (uint32_t k = 0; k < p->grid_rows * p->grid_cols; k++)
      w->places[w->n + v->runs[r].first + k] =
          (place){.is_visual = true,
                  .is_overview = is_overview,
                  .attachment = v->run_picture[r] + 1,
                  .row = k / p->grid_cols + (is_overview ? 0 : view / p->tile_cols * p->grid_rows),
                  .col = k % p->grid_cols + (is_overview ? 0 : view % p->tile_cols * p->grid_cols)};
    view = view + 1 == p->n_view ? 0 : view + 1;
  }
  for (uint32_t i = 0; i < v->n; i++)
    w->places[w->n + i].turn = turn;
  w->n += v->n;
}

static void
survivor_cb(void *user, uint32_t layer, uint32_t head, uint32_t pos, const ks_token_info *token)
{
  witness *w = user;
  const place *p = &w->places[pos];
  const uint32_t n_head = w->m->layout.n_kv_head;

  KS_ASSERT_LT(pos, w->n);
  /* In order, and every one of them is in the pages. */
  KS_ASSERT(w->n_met == 0 || layer * n_head + head > w->layer * n_head + w->head ||
            (layer == w->layer && head == w->head && pos > w->last_pos));
  w->layer = layer;
  w->head = head;
  w->last_pos = pos;
  w->n_met++;
  KS_ASSERT_EQ(token->turn, p->turn);
  KS_ASSERT_EQ(token->attachment, p->attachment);
  KS_ASSERT_EQ(token->modality, p->is_visual ? KS_MODALITY_IMAGE : KS_MODALITY_TEXT);
  if (!p->is_visual)
    return;
  KS_ASSERT_EQ(token->id, KS_TOKEN_NONE);
  KS_ASSERT_EQ(token->patch_row, p->row | (p->is_overview ? KS_PATCH_OVERVIEW : 0));
  KS_ASSERT_EQ(token->patch_col, p->col);
  w->by_picture[p->turn][p->attachment]++;
}

/* Live entries of the pages whose token is visual, counted past the timeline. */
static uint64_t
count_in_pages(const machine *m, const witness *w)
{
  const ks_kv_view view = ks_kv_table_get_view(ks_timeline_get_table(m->tl));
  uint32_t pos[MAX_SEQ];
  uint64_t n = 0;

  for (uint32_t s = 0; s < m->layout.n_layer * m->layout.n_kv_head; s++) {
    const uint32_t n_entry = view.streams[s].n_entry;

    KS_ASSERT_LE(n_entry, MAX_SEQ);
    if (n_entry > 0)
      KS_ASSERT_OK(
          m->be.t->kv_read(m->be.dev, &view, s, 0, n_entry, NULL, NULL, NULL, pos, NULL, NULL));
    for (uint32_t e = 0; e < n_entry; e++)
      n += w->places[pos[e]].is_visual;
  }
  return n;
}

static void
check_survivors(const visual_case *v, void *user)
{
  const ks_policy policy = *(const ks_policy *)user;
  static witness w; /* large */
  machine m;
  ks_kv_stats stats;
  uint64_t n_visual = 0;

  open_machine(&m, v, KS_DTYPE_F32, 2 * v->n, 16, policy);
  memset(&w, 0, sizeof w);
  w.m = &m;
  KS_ASSERT_OK(ks_timeline_set_n_keep(
      m.tl, (uint64_t)m.layout.n_layer * m.layout.n_kv_head * (v->n * 3 / 4), NULL));
  for (uint32_t turn = 0; turn < 2; turn++) {
    read_case(v, &m, &w, turn);
    memset(w.by_picture, 0, sizeof w.by_picture);
    w.n_met = 0;
    KS_ASSERT_OK(ks_timeline_read_survivors(m.tl, 0, UINT32_MAX, survivor_cb, &w, NULL));
    ks_timeline_get_stats(m.tl, &stats);
    KS_ASSERT_EQ(w.n_met, stats.n_entries);
    KS_ASSERT_EQ(stats.n_picture, (turn + 1) * v->n_picture);
    n_visual = 0;
    for (uint32_t i = 0; i < stats.n_picture; i++) {
      const ks_picture_stats *p = &stats.pictures[i];
      const visual_picture *want = &v->pictures[i % v->n_picture];

      KS_ASSERT(p == ks_timeline_find_picture(m.tl, p->turn, p->attachment));
      KS_ASSERT_EQ(p->n_entry, w.by_picture[p->turn][p->attachment]);
      KS_ASSERT_EQ(p->n_tok, want->n_tok);
      KS_ASSERT_EQ(p->grid_rows, want->grid_rows * want->tile_rows);
      KS_ASSERT_EQ(p->grid_cols, want->grid_cols * want->tile_cols);
      KS_ASSERT_EQ(p->overview_rows, want->n_view > 1 ? want->grid_rows : 0);
      n_visual += p->n_entry;
    }
    KS_ASSERT_EQ(n_visual, stats.by_modality[KS_MODALITY_IMAGE]);
    KS_ASSERT_EQ(n_visual, count_in_pages(&m, &w));
  }
  KS_ASSERT(stats.n_evicted > 0);
  printf("# %s/%s %s: %llu visual of %llu entries after %llu evicted\n", golden_case_get_name(v->c),
         v->name, ks_policy_get_name(policy), (unsigned long long)n_visual,
         (unsigned long long)stats.n_entries, (unsigned long long)stats.n_evicted);
  close_machine(&m);
}

/* Two turns with the same pictures under evictions: every surviving entry is told with the layer,
 * head, row and column that it has, whatever the policy, and the counts by picture are right. */
KS_TEST(visual, survivors)
{
  const ks_policy policies[] = {KS_POLICY_KEYDIFF_GLOBAL, KS_POLICY_RANDOM, KS_POLICY_STREAMING};

  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    ks_policy policy = policies[i];

    KS_ASSERT_LT(0, visual_case_walk(check_survivors, &policy));
  }
}

KS_TEST_MAIN

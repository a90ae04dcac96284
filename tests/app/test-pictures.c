/* test-pictures.c - a live conversation with pictures on tiny vision models: each picture is
 * encoded once, whatever is asked again; the memory target holds; places and shares are told. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-conversation.h"
#include "app/ks-error.h"
#include "tests/remove-tree.h"

#include <glib/gstdio.h>
#include <string.h>

#define HASH "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

typedef struct {
  char *dir, *folder; /* of embeddings; of the model */
  KsEngine *engine;
  KsConversation *conversation;
  KsAnswerOptions *answers;
  GString *text;
} Fixture;

static const char *const families[] = {"gemma3-vision", "idefics3",   "llava-1.5",
                                       "qwen2-vl",      "qwen2.5-vl", "qwen3-vl"};

static char *
make_path (const char *family, const char *name)
{
  return g_build_filename (g_getenv ("KS_TEST_CASES"), family, name, NULL);
}

/* Two towers come without a language model of their own; another one's fits. */
static char *
make_model_path (const char *family)
{
  if (strcmp (family, "gemma3-vision") == 0)
    family = "gemma3";
  else if (strcmp (family, "qwen2-vl") == 0)
    family = "qwen2.5-vl";
  return make_path (family, "model.gguf");
}

static KsEngineOptions *
make_options (Fixture *f, const char *family)
{
  KsEngineOptions *options = ks_engine_options_new ();

  options->model_path = make_model_path (family);
  options->mmproj_path = make_path (family, "mmproj.gguf");
  options->mmproj_hash = g_strdup (HASH);
  options->embeds = ks_embed_store_new (f->dir);
  ks_embed_store_set_quota (options->embeds, 64u << 20);
  options->mode = KS_COMPUTE_EXACT;
  options->budget.kv_bytes = 32u << 20;
  options->n_thread = 1;
  options->chunk = 32;
  return options;
}

static void
open_engine (Fixture *f, const KsEngineOptions *options)
{
  g_autoptr (KsEngineJob) load = NULL;
  g_autoptr (GError) error = NULL;

  f->engine = ks_engine_new ();
  load = ks_engine_load (f->engine, options);
  (void)ks_engine_job_wait (load, &error);
  g_assert_no_error (error);
  f->conversation = ks_conversation_new (f->engine);
}

static void
close_engine (Fixture *f)
{
  g_clear_object (&f->conversation);
  g_clear_object (&f->engine);
}

static void
set_up (Fixture *f, gconstpointer family)
{
  f->dir = g_dir_make_tmp ("ks-pictures-XXXXXX", NULL);
  f->answers = ks_answer_options_new ();
  f->answers->sampler.temperature = 0;
  f->answers->max_tokens = 12;
  f->text = g_string_new (NULL);
  if (family != NULL) {
    g_autoptr (KsEngineOptions) options = make_options (f, family);

    open_engine (f, options);
  }
}

/* Without an engine. */
static void
set_up_alone (Fixture *f, gconstpointer family)
{
  set_up (f, NULL);
}

static void
tear_down (Fixture *f, gconstpointer family)
{
  close_engine (f);
  ks_answer_options_free (f->answers);
  g_string_free (f->text, TRUE);
  remove_tree (f->dir);
  g_free (f->dir);
}

static KsPicture *
open_picture (const char *family, const char *name)
{
  g_autofree char *path = make_path (family, name);
  g_autoptr (GError) error = NULL;
  KsPicture *picture = ks_picture_new_from_file (path, NULL, &error);

  g_assert_no_error (error);
  return picture;
}

static void
add_picture (Fixture *f, const char *family, const char *name)
{
  ks_conversation_add_picture (f->conversation, open_picture (family, name));
}

static void
text_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  g_string_append (user_data, text);
}

/* (transfer full) The answer's text. */
static char *
finish (Fixture *f, KsEngineJob *take_job)
{
  g_autoptr (KsEngineJob) job = take_job;
  g_autoptr (GError) error = NULL;

  g_string_truncate (f->text, 0);
  g_signal_connect (job, "text", G_CALLBACK (text_cb), f->text);
  (void)ks_engine_job_wait (job, &error);
  g_assert_no_error (error);
  return g_strdup (f->text->str);
}

static char *
ask (Fixture *f, const char *question)
{
  return finish (f, ks_conversation_ask (f->conversation, question, f->answers));
}

static KsEmbedCounts
get_counts (Fixture *f)
{
  g_autoptr (KsMemoryStats) stats = ks_conversation_dup_stats (f->conversation);

  return stats->pictures;
}

/* Of logits that hardly change: a tiny model's best word is often the same whatever it sees. */
static void
answer_by_lot (Fixture *f)
{
  f->answers->sampler.temperature = 3;
  f->answers->sampler.seed = 1;
}

/* A picture changes what is answered, another one changes it again, and the same one does not. */
static void
test_seen (Fixture *f, gconstpointer family)
{
  g_autofree char *blind = NULL, *first = NULL, *other = NULL, *same = NULL;
  g_autoptr (KsMemoryStats) stats = NULL;

  answer_by_lot (f);
  blind = ask (f, "What is it?");
  tear_down (f, NULL);
  set_up (f, NULL);
  answer_by_lot (f);
  {
    g_autoptr (KsEngineOptions) options = make_options (f, family);

    open_engine (f, options);
  }
  add_picture (f, family, "img0.png");
  first = ask (f, "What is it?");
  stats = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (stats->kv.n_picture, ==, 1);
  g_assert_cmpuint (stats->kv.pictures[0].turn, ==, 0);
  g_assert_cmpuint (stats->kv.pictures[0].attachment, ==, 1);
  g_assert_cmpstr (ks_memory_stats_find_seen (stats, &stats->kv.pictures[0])->name, ==, "img0.png");
  g_assert_cmpuint (stats->kv.pictures[0].n_entry, ==,
                    (guint64)stats->kv.pictures[0].n_tok * stats->kv.n_layer * stats->kv.n_kv_head);
  g_object_unref (f->conversation);
  f->conversation = ks_conversation_new (f->engine);
  add_picture (f, family, "img1.png");
  other = ask (f, "What is it?");
  g_object_unref (f->conversation);
  f->conversation = ks_conversation_new (f->engine);
  add_picture (f, family, "img0.png");
  same = ask (f, "What is it?");
  g_assert_cmpstr (first, ==, same);
  g_assert_cmpstr (first, !=, other);
  g_assert_cmpstr (first, !=, blind);
}

/* Two pictures in one message, the second again in the next one: two go through the tower. */
static void
test_encoded_once (Fixture *f, gconstpointer family)
{
  add_picture (f, family, "img0.png");
  add_picture (f, family, "img1.png");
  g_free (ask (f, "Which is larger?"));
  g_assert_cmpuint (get_counts (f).n_encoded, ==, 2);
  add_picture (f, family, "img1.png");
  g_free (ask (f, "And this?"));
  g_assert_cmpuint (get_counts (f).n_encoded, ==, 2);
}

static void
notice_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  g_string_append_printf (user_data, "%s\n", text);
}

/* A file that has gone since it was attached: the message is read without it, which is told by its
 * name, and the picture behind it is seen where it stands. */
static void
test_gone (Fixture *f, gconstpointer family)
{
  g_autofree char *from = make_path (family, "img0.png");
  g_autofree char *path = g_build_filename (f->dir, "gone.png", NULL);
  g_autofree char *data = NULL, *answer = NULL;
  g_autoptr (GString) notices = g_string_new (NULL);
  g_autoptr (KsMemoryStats) stats = NULL;
  g_autoptr (GError) error = NULL;
  KsPicture *picture;
  KsEngineJob *job;
  gsize n = 0;

  g_assert_true (g_file_get_contents (from, &data, &n, NULL));
  g_assert_true (g_file_set_contents (path, data, (gssize)n, NULL));
  picture = ks_picture_new_from_file (path, NULL, &error);
  g_assert_no_error (error);
  ks_conversation_add_picture (f->conversation, picture);
  add_picture (f, family, "img1.png");
  g_assert_cmpint (g_unlink (path), ==, 0);
  job = ks_conversation_ask (f->conversation, "What is it?", f->answers);
  g_signal_connect (job, "notice", G_CALLBACK (notice_cb), notices);
  answer = finish (f, job);
  g_assert_nonnull (strstr (notices->str, "gone.png"));
  g_assert_null (strstr (notices->str, f->dir));
  stats = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (stats->kv.n_picture, ==, 1);
  g_assert_cmpstr (ks_memory_stats_find_seen (stats, &stats->kv.pictures[0])->name, ==, "img1.png");
}

typedef struct {
  GString *names;
  gboolean ended;
} Looked;

static void
looking_cb (KsEngineJob *job, const char *name, guint n_done, guint n_total, gpointer user_data)
{
  Looked *looked = user_data;

  looked->ended = name == NULL;
  if (name != NULL)
    g_string_append (looked->names, name);
  g_assert_cmpuint (n_done, <=, n_total);
}

/* While a picture is looked at its name is told from the beginning, and in the end that it is over;
 * one that is known already takes no time. */
static void
test_looking (Fixture *f, gconstpointer family)
{
  Looked looked = {.names = g_string_new (NULL)};

  for (guint i = 0; i < 2; i++) {
    KsEngineJob *job;

    add_picture (f, family, "img0.png");
    job = ks_conversation_ask (f->conversation, "What is it?", f->answers);
    g_signal_connect (job, "looking", G_CALLBACK (looking_cb), &looked);
    g_free (finish (f, job));
    g_assert_true (g_str_has_prefix (looked.names->str, "img0.png"));
    g_assert_true (looked.ended);
    if (i == 0)
      g_string_assign (looked.names, "img0.png");
  }
  g_assert_cmpstr (looked.names->str, ==, "img0.png");
  g_string_free (looked.names, TRUE);
}

static GPtrArray *
make_turns (const char *family, const char *answer)
{
  GPtrArray *turns = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_turn_text_free);
  KsTurnText *turn = ks_turn_text_new ("What is it?", answer, FALSE);

  g_ptr_array_add (turn->pictures, open_picture (family, "img0.png"));
  g_ptr_array_add (turns, turn);
  g_ptr_array_add (turns, ks_turn_text_new ("Is it red?", "no", FALSE));
  return turns;
}

/* A session that is read again, also by another run of the program, encodes nothing, and goes on
 * with the same words. */
static void
test_restart (Fixture *f, gconstpointer family)
{
  g_autoptr (KsEngineOptions) options = make_options (f, family);
  g_autofree char *first = NULL, *second = NULL;

  g_free (finish (f, ks_conversation_restore (f->conversation, make_turns (family, "a cat"))));
  first = ask (f, "Why?");
  g_assert_cmpuint (get_counts (f).n_encoded, ==, 1);
  close_engine (f);
  open_engine (f, options);
  g_free (finish (f, ks_conversation_restore (f->conversation, make_turns (family, "a cat"))));
  second = ask (f, "Why?");
  g_assert_cmpuint (get_counts (f).n_encoded, ==, 0);
  g_assert_cmpuint (get_counts (f).n_disk, ==, 1);
  g_assert_cmpstr (first, ==, second);
}

/* A folder that cannot be written to is not counted on: with room for one picture in memory two of
 * them are encoded once each. */
static void
test_refused_disk (Fixture *f, gconstpointer family)
{
  g_autoptr (KsEngineOptions) options = make_options (f, family);
  g_autofree char *blocked = g_build_filename (f->dir, "blocked", NULL);

  g_assert_true (g_file_set_contents (blocked, "no folder", -1, NULL));
  g_object_unref (options->embeds);
  options->embeds = ks_embed_store_new (blocked);
  ks_embed_store_set_quota (options->embeds, 64u << 20);
  options->embed_memory_bytes = 1;
  open_engine (f, options);
  add_picture (f, family, "img0.png");
  add_picture (f, family, "img1.png");
  g_free (ask (f, "Which is larger?"));
  g_assert_cmpuint (get_counts (f).n_encoded, ==, 2);
}

/* What is left for keys and values does not depend on what an earlier run has put on the disk: a
 * conversation that is read again without encoding remembers what it remembered before. */
static void
test_room_of_cached (Fixture *f, gconstpointer family)
{
  g_autoptr (KsEngineOptions) options = make_options (f, family);
  g_autoptr (KsMemoryStats) made = NULL, found = NULL;

  options->budget = (ks_budget_request){.total_bytes = 64u << 20};
  open_engine (f, options);
  g_free (finish (f, ks_conversation_restore (f->conversation, make_turns (family, "a cat"))));
  made = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (made->pictures.n_encoded, ==, 1);
  close_engine (f);
  open_engine (f, options);
  g_free (finish (f, ks_conversation_restore (f->conversation, make_turns (family, "a cat"))));
  found = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (found->pictures.n_encoded, ==, 0);
  g_assert_cmpuint (found->kv.kv_budget_bytes, ==, made->kv.kv_budget_bytes);
  g_assert_cmpuint (found->kv.scratch_bytes, ==, made->kv.scratch_bytes);
  g_assert_cmpuint (found->least_bytes, ==, made->least_bytes);
}

/* Another run of the program, asked about img0.png, sees it as it was kept or encodes it. */
static guint
count_encoded (Fixture *f, const KsEngineOptions *options)
{
  close_engine (f);
  open_engine (f, options);
  add_picture (f, "qwen3-vl", "img0.png");
  g_free (ask (f, "?"));
  return get_counts (f).n_encoded;
}

/* Other preprocessing, eyes or arithmetic is another embedding; a damaged file is a miss. */
static void
test_keys (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineOptions) options = make_options (f, "qwen3-vl");
  g_autoptr (GDir) dir = NULL;
  const char *name;

  g_assert_cmpuint (count_encoded (f, options), ==, 1);
  g_assert_cmpuint (count_encoded (f, options), ==, 0);
  options->vision_limits.max_pixels = 96 * 96;
  options->vision_limits.min_pixels = 32 * 32;
  g_assert_cmpuint (count_encoded (f, options), ==, 1);
  options->mode = KS_COMPUTE_FAST;
  g_assert_cmpuint (count_encoded (f, options), ==, 1);
  options->mmproj_hash[0] = 'b';
  g_assert_cmpuint (count_encoded (f, options), ==, 1);
  close_engine (f);
  dir = g_dir_open (f->dir, 0, NULL);
  while ((name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (f->dir, name, NULL), *bytes = NULL;
    gsize n = 0;

    g_assert_true (g_file_get_contents (path, &bytes, &n, NULL));
    bytes[n - 1] ^= 1;
    g_assert_true (g_file_set_contents (path, bytes, (gssize)n, NULL));
  }
  g_assert_cmpuint (count_encoded (f, options), ==, 1);
}

/* Thirty pictures at the smallest target that takes them: it holds all the time, no picture goes
 * through the tower twice, and the next question is still answered. */
static void
test_small_target (Fixture *f, gconstpointer family)
{
  g_autoptr (KsEngineOptions) options = make_options (f, family);
  g_autoptr (KsEngineJob) target = NULL;
  g_autoptr (KsMemoryStats) stats = NULL;
  g_autofree char *answer = NULL;
  guint64 least;

  options->budget = (ks_budget_request){.total_bytes = 64u << 20};
  open_engine (f, options);
  f->answers->max_tokens = 2;
  add_picture (f, family, "img0.png");
  g_free (ask (f, "first"));
  add_picture (f, family, "img1.png");
  g_free (ask (f, "second"));
  stats = ks_conversation_dup_stats (f->conversation);
  least = stats->least_bytes;
  target = ks_conversation_set_target (f->conversation, least);
  g_assert_true (ks_engine_job_wait (target, NULL));
  for (guint i = 2; i < 30; i++) {
    add_picture (f, family, i % 2 == 0 ? "img0.png" : "img1.png");
    g_free (ask (f, "next"));
    ks_memory_stats_free (stats);
    stats = ks_conversation_dup_stats (f->conversation);
    g_assert_cmpuint (ks_memory_stats_get_total_bytes (stats), <=, MAX (least, stats->least_bytes));
    g_assert_cmpuint (stats->kv.kv_used_bytes, <=, stats->kv.kv_budget_bytes);
    g_assert_cmpuint (stats->eyes_peak_bytes, <=, stats->eyes_room_bytes);
  }
  g_assert_cmpuint (stats->pictures.n_encoded, ==, 2);
  g_assert_cmpuint (stats->kv.n_picture, ==, 30);
  g_assert_cmpuint (stats->kv.n_evicted, >, 0);
  f->answers->max_tokens = 8;
  answer = ask (f, "What was the first one?");
  g_assert_cmpuint (ks_conversation_get_answer (f->conversation).n_answer, >, 0);
}

/* A picture of side x side pixels in a file of its own. (transfer full) */
static KsPicture *
make_picture (Fixture *f, guint32 side)
{
  g_autofree char *path = g_build_filename (f->dir, "large.bmp", NULL);
  guint32 n_bytes = 54 + side * side * 3;
  const guint32 head[] = {n_bytes, 0, 54, 40, side, side, 1 | 24 << 16, 0, 0, 2835, 2835, 0, 0};
  g_autofree guint8 *bytes = g_malloc (n_bytes);
  g_autoptr (GError) error = NULL;
  KsPicture *picture;

  memcpy (bytes, "BM", 2);
  memcpy (bytes + 2, head, sizeof head);
  for (guint32 i = 54; i < n_bytes; i++)
    bytes[i] = (guint8)(i * 7 + i / 997);
  g_assert_true (g_file_set_contents (path, (const char *)bytes, n_bytes, NULL));
  picture = ks_picture_new_from_file (path, NULL, &error);
  g_assert_no_error (error);
  return picture;
}

static gboolean
choose_target_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  guint64 total_bytes = 0;

  return ks_engine_setup_count_target (setup, 1, &total_bytes, error) &&
         ks_engine_setup_set_target (setup, total_bytes, error);
}

/* The target that a newcomer gets, here with the fewest entries, takes a picture at the caps. */
static void
test_chosen_target (Fixture *f, gconstpointer family)
{
  g_autoptr (KsEngineOptions) options = make_options (f, family);
  g_autoptr (KsEngineJob) job = ks_engine_job_new (choose_target_job, NULL, NULL);
  g_autoptr (GError) error = NULL;

  options->budget = (ks_budget_request){.entries = 256};
  options->late_target = TRUE;
  options->vision_limits.max_pixels = 384 * 384;
  open_engine (f, options);
  ks_engine_push (f->engine, job);
  (void)ks_engine_job_wait (job, &error);
  g_assert_no_error (error);
  f->answers->max_tokens = 2;
  ks_conversation_add_picture (f->conversation, make_picture (f, 700));
  g_free (ask (f, "What is it?"));
  g_assert_cmpuint (get_counts (f).n_encoded, ==, 1);
}

/* Another run of the program under that target, asked about the same picture. */
static void
ask_again (Fixture *f, KsEngineOptions *options, guint64 target_bytes)
{
  close_engine (f);
  options->budget.total_bytes = target_bytes;
  open_engine (f, options);
  ks_conversation_add_picture (f->conversation, make_picture (f, 700));
  g_free (ask (f, "What is it?"));
}

/* A target that leaves too little scratch for the most exact way: a large picture is encoded in
 * less, and the target holds.  What comes of that is another embedding, each kept for its own
 * target. */
static void
test_little_scratch (Fixture *f, gconstpointer family)
{
  g_autoptr (KsEngineOptions) options = make_options (f, family);
  g_autoptr (KsMemoryStats) most = NULL, little = NULL;
  guint64 target_bytes;

  options->budget = (ks_budget_request){.total_bytes = 64u << 20};
  open_engine (f, options);
  f->answers->max_tokens = 2;
  ks_conversation_add_picture (f->conversation, make_picture (f, 700));
  g_free (ask (f, "What is it?"));
  most = ks_conversation_dup_stats (f->conversation);
  target_bytes = most->least_bytes - (256u << 10);
  ask_again (f, options, target_bytes);
  little = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (little->pictures.n_encoded, ==, 1);
  g_assert_cmpuint (ks_memory_stats_get_total_bytes (little), <=, target_bytes);
  g_assert_cmpuint (little->eyes_peak_bytes, <, most->eyes_peak_bytes);
  g_assert_cmpuint (little->eyes_peak_bytes, <=, little->eyes_room_bytes);
  ask_again (f, options, target_bytes);
  g_assert_cmpuint (get_counts (f).n_encoded, ==, 0);
  ask_again (f, options, 64u << 20);
  g_assert_cmpuint (get_counts (f).n_encoded, ==, 0);
}

/* What the device needs for the tower's operations is there from the start: a large picture, read
 * in many tiles, does not make it grow. */
static void
test_workspace (Fixture *f, gconstpointer family)
{
  g_autoptr (KsMemoryStats) before = NULL, after = NULL;

  f->answers->max_tokens = 2;
  g_free (ask (f, "Hello"));
  before = ks_conversation_dup_stats (f->conversation);
  ks_conversation_add_picture (f->conversation, make_picture (f, 900));
  g_free (ask (f, "What is it?"));
  after = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (after->pictures.n_encoded, ==, 1);
  g_assert_cmpuint (after->kv.n_evicted, ==, 0);
  /* Ranking takes a few bytes for every entry. */
  g_assert_cmpuint (after->kv.scratch_bytes, <=,
                    before->kv.scratch_bytes + 8 * after->kv.n_entries + 4096);
}

/* What is traced is what is counted, and every place lies in the grid. */
static void
test_trace (Fixture *f, gconstpointer family)
{
  g_autoptr (KsPictureTrace) trace = ks_picture_trace_new (), none = ks_picture_trace_new ();
  g_autoptr (KsMemoryStats) stats = NULL;
  g_autoptr (KsEngineJob) job = NULL, missing = NULL;
  g_autoptr (GError) error = NULL;

  add_picture (f, family, "img0.png");
  g_free (ask (f, "What is it?"));
  stats = ks_conversation_dup_stats (f->conversation);
  job = ks_conversation_trace (f->conversation, 0, 1, trace);
  g_assert_true (ks_engine_job_wait (job, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (trace->entries->len + trace->overview->len, ==, stats->kv.pictures[0].n_entry);
  for (guint i = 0; i < trace->entries->len; i++) {
    const KsTraceEntry *entry = &g_array_index (trace->entries, KsTraceEntry, i);

    g_assert_cmpuint (entry->row, <, trace->n_row);
    g_assert_cmpuint (entry->col, <, trace->n_col);
    g_assert_cmpuint (entry->layer, <, trace->n_layer);
    g_assert_cmpuint (entry->head, <, trace->n_kv_head);
  }
  missing = ks_conversation_trace (f->conversation, 0, 2, none);
  g_assert_false (ks_engine_job_wait (missing, &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED);
}

/* A message with pictures whose reading is cancelled leaves what was there before, pictures too. */
static void
test_cancelled (Fixture *f, gconstpointer family)
{
  g_autoptr (KsMemoryStats) stats = NULL;
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (GError) error = NULL;

  add_picture (f, family, "img0.png");
  g_free (ask (f, "What is it?"));
  add_picture (f, family, "img1.png");
  job = ks_conversation_ask (f->conversation, "And this?", f->answers);
  ks_engine_job_cancel (job);
  g_assert_false (ks_engine_job_wait (job, &error));
  g_assert_true (ks_error_is_cancelled (error));
  g_free (ask (f, "Go on"));
  stats = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (stats->kv.n_picture, ==, 1);
  g_assert_cmpuint (stats->pictures.n_encoded, <=, 2);
}

/* A vision model of another family is refused with a sentence when it was asked for, and left out
 * with a notice when it was only found. */
static void
test_wrong_eyes (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineOptions) options = make_options (f, "qwen3-vl");
  g_autoptr (KsEngine) engine = ks_engine_new ();
  g_autoptr (KsEngineJob) load = NULL, again = NULL;
  g_autoptr (GError) error = NULL;

  g_free (options->mmproj_path);
  options->mmproj_path = make_path ("llava-1.5", "mmproj.gguf");
  load = ks_engine_load (engine, options);
  g_assert_false (ks_engine_job_wait (load, &error));
  g_assert_error (error, KS_ENGINE_ERROR, KS_ERR_UNSUPPORTED);
  g_clear_error (&error);
  options->mmproj_was_found = TRUE;
  again = ks_engine_load (engine, options);
  (void)ks_engine_job_wait (again, &error);
  g_assert_no_error (error);
}

/* Pictures for a blind model are an error that says what to do. */
static void
test_blind (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineOptions) options = make_options (f, "qwen3-vl");
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (GError) error = NULL;

  g_clear_pointer (&options->mmproj_path, g_free);
  open_engine (f, options);
  add_picture (f, "qwen3-vl", "img0.png");
  job = ks_conversation_ask (f->conversation, "?", f->answers);
  g_assert_false (ks_engine_job_wait (job, &error));
  g_assert_error (error, KS_ENGINE_ERROR, KS_ERR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "mmproj"));
}

static void
add_family (const char *test, const char *family, void (*func) (Fixture *, gconstpointer))
{
  g_autofree char *path = g_strdup_printf ("/pictures/%s/%s", test, family);

  g_test_add (path, Fixture, family, set_up, func, tear_down);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (families); i++) {
    add_family ("seen", families[i], test_seen);
    add_family ("encoded-once", families[i], test_encoded_once);
    add_family ("gone", families[i], test_gone);
    add_family ("looking", families[i], test_looking);
    add_family ("restart", families[i], test_restart);
    add_family ("trace", families[i], test_trace);
    add_family ("workspace", families[i], test_workspace);
  }
  for (guint i = 0; i < G_N_ELEMENTS (families); i++) {
    g_autofree char *path = g_strdup_printf ("/pictures/small-target/%s", families[i]);

    g_test_add (path, Fixture, families[i], set_up_alone, test_small_target, tear_down);
  }
  for (guint i = 0; i < G_N_ELEMENTS (families); i++) {
    g_autofree char *path = g_strdup_printf ("/pictures/room-of-cached/%s", families[i]);

    g_test_add (path, Fixture, families[i], set_up_alone, test_room_of_cached, tear_down);
  }
  for (guint i = 0; i < G_N_ELEMENTS (families); i++) {
    g_autofree char *path = g_strdup_printf ("/pictures/chosen-target/%s", families[i]);

    g_test_add (path, Fixture, families[i], set_up_alone, test_chosen_target, tear_down);
  }
  add_family ("cancelled", "idefics3", test_cancelled);
  add_family ("cancelled", "qwen2.5-vl", test_cancelled);
  g_test_add ("/pictures/little-scratch", Fixture, "qwen3-vl", set_up_alone, test_little_scratch,
              tear_down);
  g_test_add ("/pictures/refused-disk", Fixture, "qwen3-vl", set_up_alone, test_refused_disk,
              tear_down);
  g_test_add ("/pictures/keys", Fixture, NULL, set_up, test_keys, tear_down);
  g_test_add ("/pictures/wrong-eyes", Fixture, NULL, set_up, test_wrong_eyes, tear_down);
  g_test_add ("/pictures/blind", Fixture, NULL, set_up, test_blind, tear_down);
  return g_test_run ();
}

/* test-large-picture.c - a picture that takes seconds to encode and many passes to read: what the
 * user is told and may do meanwhile; and one of a shape that the model cannot take. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-conversation.h"
#include "app/ks-error.h"
#include "tests/remove-tree.h"

#include <string.h>

#define SIDE 1600u /* pixels: some thousand patches, a thousand tokens */
#define CHUNK 32u

typedef struct {
  char *dir;
  KsEngine *engine;
  KsConversation *conversation;
  KsAnswerOptions *answers;
  KsEngineJob *target;              /* pushed while the picture was encoded */
  guint64 target_bytes, eyes_bytes; /* eyes_bytes: most that was shown */
  gboolean looked, target_ended, was_looking;
  guint n_within; /* words about progress inside the picture */
} Fixture;

static char *
make_path (const char *name)
{
  return g_build_filename (g_getenv ("KS_TEST_CASES"), "qwen2.5-vl", name, NULL);
}

static void
put (guchar *to, guint n_byte, guint32 value)
{
  for (guint i = 0; i < n_byte; i++)
    to[i] = (guchar)(value >> 8 * i);
}

/* A BMP of stripes. */
static KsPicture *
write_picture (Fixture *f, const char *name, guint width, guint height)
{
  const gsize n_row_bytes = ((gsize)width * 3 + 3) / 4 * 4;
  const gsize n_pixel_bytes = n_row_bytes * height, n = 54 + n_pixel_bytes;
  g_autofree guchar *bmp = g_malloc0 (n);
  g_autofree char *path = g_build_filename (f->dir, name, NULL);
  g_autoptr (GError) error = NULL;
  KsPicture *picture;

  memcpy (bmp, "BM", 2);
  put (bmp + 2, 4, (guint32)n);
  put (bmp + 10, 4, 54);
  put (bmp + 14, 4, 40);
  put (bmp + 18, 4, width);
  put (bmp + 22, 4, height);
  put (bmp + 26, 2, 1);
  put (bmp + 28, 2, 24);
  put (bmp + 34, 4, (guint32)n_pixel_bytes);
  for (gsize i = 0; i < n_pixel_bytes; i++)
    bmp[54 + i] = (guchar)(i / 97 * 31);
  g_assert_true (g_file_set_contents (path, (const char *)bmp, (gssize)n, NULL));
  picture = ks_picture_new_from_file (path, NULL, &error);
  g_assert_no_error (error);
  return picture;
}

static void
set_up (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineOptions) options = ks_engine_options_new ();
  g_autoptr (KsEngineJob) load = NULL;
  g_autoptr (GError) error = NULL;

  f->dir = g_dir_make_tmp ("ks-large-XXXXXX", NULL);
  f->answers = ks_answer_options_new ();
  f->answers->sampler.temperature = 0;
  f->answers->max_tokens = 2;
  options->model_path = make_path ("model.gguf");
  options->mmproj_path = make_path ("mmproj.gguf");
  options->vision_limits.max_pixels = (guint64)SIDE * SIDE;
  options->budget.total_bytes = 512u << 20;
  options->n_thread = 1;
  options->chunk = CHUNK;
  f->engine = ks_engine_new ();
  load = ks_engine_load (f->engine, options);
  (void)ks_engine_job_wait (load, &error);
  g_assert_no_error (error);
  f->conversation = ks_conversation_new (f->engine);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_clear_object (&f->target);
  g_clear_object (&f->conversation);
  g_clear_object (&f->engine);
  ks_answer_options_free (f->answers);
  remove_tree (f->dir);
  g_free (f->dir);
}

static void
target_ended_cb (KsEngineJob *job, gpointer user_data)
{
  Fixture *f = user_data;

  g_assert_no_error (ks_engine_job_get_error (job));
  f->target_ended = TRUE;
}

static void
looking_cb (KsEngineJob *job, const char *name, guint n_done, guint n_total, gpointer user_data)
{
  Fixture *f = user_data;

  if (name == NULL && f->target != NULL && !f->looked) {
    f->looked = TRUE;
    f->was_looking = !f->target_ended;
  }
  if (name == NULL || n_total == 0 || f->target != NULL)
    return;
  f->target = ks_conversation_set_target (f->conversation, f->target_bytes);
  g_signal_connect (f->target, "finished", G_CALLBACK (target_ended_cb), f);
}

/* A target that is moved while a picture is encoded holds before the picture is done, and stays
 * when it is. */
static void
test_target (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (KsMemoryStats) stats = NULL;
  g_autoptr (GError) error = NULL;

  f->target_bytes = 256u << 20;
  ks_conversation_add_picture (f->conversation, write_picture (f, "large.bmp", SIDE, SIDE));
  job = ks_conversation_ask (f->conversation, "What is it?", f->answers);
  g_signal_connect (job, "looking", G_CALLBACK (looking_cb), f);
  g_assert_true (ks_engine_job_wait (job, &error));
  g_assert_no_error (error);
  g_assert_true (f->looked);
  g_assert_false (f->was_looking);
  stats = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (stats->kv.kv_budget_bytes, <, f->target_bytes);
  g_assert_cmpuint (ks_memory_stats_get_total_bytes (stats), <=, f->target_bytes);
  g_assert_cmpuint (stats->pictures.n_encoded, ==, 1);
}

/* Shows what the window would, and stops once the scratch was seen. */
static void
stop_cb (KsEngineJob *job, const char *name, guint n_done, guint n_total, gpointer user_data)
{
  Fixture *f = user_data;
  g_autoptr (KsMemoryStats) stats = ks_conversation_dup_stats (f->conversation);
  g_autoptr (KsMemoryView) view = NULL;

  if (name == NULL || n_done == 0)
    return;
  g_assert_nonnull (stats);
  view = ks_memory_stats_make_view (stats, 0);
  f->eyes_bytes = MAX (f->eyes_bytes, view->eyes_bytes);
  if (f->eyes_bytes > stats->eyes_weight_bytes)
    ks_engine_job_cancel (job);
}

/* The figures tell of scratch while a picture is encoded, and of none any more when that was
 * stopped, though its room stays booked. */
static void
test_stopped (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (KsMemoryStats) stats = NULL;
  g_autoptr (KsMemoryView) view = NULL;
  g_autoptr (GError) error = NULL;

  ks_conversation_add_picture (f->conversation, write_picture (f, "large.bmp", SIDE, SIDE));
  job = ks_conversation_ask (f->conversation, "What is it?", f->answers);
  g_signal_connect (job, "looking", G_CALLBACK (stop_cb), f);
  g_assert_false (ks_engine_job_wait (job, &error));
  g_assert_true (ks_error_is_cancelled (error));
  stats = ks_conversation_dup_stats (f->conversation);
  view = ks_memory_stats_make_view (stats, 0);
  g_assert_cmpuint (f->eyes_bytes, >, stats->eyes_weight_bytes + (1u << 20));
  g_assert_cmpuint (f->eyes_bytes, <=, stats->eyes_bytes);
  g_assert_cmpuint (view->eyes_bytes, ==, stats->eyes_weight_bytes);
}

static void
progress_cb (KsEngineJob *job, guint n_done, guint n_total, gpointer user_data)
{
  Fixture *f = user_data;

  g_assert_cmpuint (n_done, <=, n_total);
  if (n_done > 0 && n_done < n_total)
    f->n_within++;
}

/* Reading what was seen is told pass by pass, not once for the whole picture. */
static void
test_progress (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (KsMemoryStats) stats = NULL;
  g_autoptr (GError) error = NULL;

  ks_conversation_add_picture (f->conversation, write_picture (f, "large.bmp", SIDE, SIDE));
  job = ks_conversation_ask (f->conversation, "What is it?", f->answers);
  g_signal_connect (job, "progress", G_CALLBACK (progress_cb), f);
  g_assert_true (ks_engine_job_wait (job, &error));
  g_assert_no_error (error);
  stats = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (stats->kv.pictures[0].n_tok, >, 10 * CHUNK);
  g_assert_cmpuint (f->n_within, >=, stats->kv.pictures[0].n_tok / CHUNK);
}

static void
notice_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  g_string_append_printf (user_data, "%s\n", text);
}

/* A picture that this model cannot take is refused in a new message; in a stored one, which another
 * model has answered, it is left out with a sentence, and the conversation goes on. */
static void
test_narrow (Fixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) turns = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_turn_text_free);
  KsTurnText *turn = ks_turn_text_new ("What is it?", "A line.", FALSE);
  g_autoptr (KsEngineJob) refused = NULL, restore = NULL, job = NULL;
  g_autoptr (GString) notices = g_string_new (NULL);
  g_autoptr (GError) error = NULL;

  ks_conversation_add_picture (f->conversation, write_picture (f, "narrow.bmp", 1, 400));
  refused = ks_conversation_ask (f->conversation, "What is it?", f->answers);
  g_assert_false (ks_engine_job_wait (refused, &error));
  g_assert_error (error, KS_ENGINE_ERROR, KS_ERR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "narrow.bmp"));
  g_clear_error (&error);

  g_ptr_array_add (turn->pictures, write_picture (f, "narrow.bmp", 1, 400));
  g_ptr_array_add (turns, turn);
  restore = ks_conversation_restore (f->conversation, g_steal_pointer (&turns));
  g_signal_connect (restore, "notice", G_CALLBACK (notice_cb), notices);
  (void)ks_engine_job_wait (restore, &error);
  g_assert_no_error (error);
  g_assert_nonnull (strstr (notices->str, "narrow.bmp"));
  g_assert_nonnull (strstr (notices->str, "left out"));
  job = ks_conversation_ask (f->conversation, "And now?", f->answers);
  (void)ks_engine_job_wait (job, &error);
  g_assert_no_error (error);
}

static void
stop_at_notice_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  g_string_append_printf (user_data, "%s\n", text);
  ks_engine_job_cancel (job);
}

static void
count_read_cb (KsEngineJob *job, guint n_done, guint n_total, gpointer user_data)
{
  *(guint *)user_data += n_done;
}

/* Pictures that together are longer than what the model was trained for are told of while they are
 * looked at, once, before a token of them is read: there is still time to stop. */
static void
test_length (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (GString) notices = g_string_new (NULL);
  g_autoptr (GError) error = NULL;
  guint n_read = 0;

  ks_conversation_add_picture (f->conversation, write_picture (f, "a.bmp", SIDE, SIDE));
  ks_conversation_add_picture (f->conversation, write_picture (f, "b.bmp", SIDE, SIDE - 100));
  job = ks_conversation_ask (f->conversation, "What are these?", f->answers);
  g_signal_connect (job, "notice", G_CALLBACK (stop_at_notice_cb), notices);
  g_signal_connect (job, "progress", G_CALLBACK (count_read_cb), &n_read);
  g_assert_false (ks_engine_job_wait (job, &error));
  g_assert_error (error, KS_ENGINE_ERROR, KS_ERR_CANCELLED);
  g_assert_cmpuint (n_read, ==, 0);
  g_assert_nonnull (strstr (notices->str, " tokens, more than the 4096 the model was trained for"));
  g_assert_null (strchr (strchr (notices->str, '\n') + 1, '\n'));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/large-picture/target", Fixture, NULL, set_up, test_target, tear_down);
  g_test_add ("/large-picture/stopped", Fixture, NULL, set_up, test_stopped, tear_down);
  g_test_add ("/large-picture/progress", Fixture, NULL, set_up, test_progress, tear_down);
  g_test_add ("/large-picture/narrow", Fixture, NULL, set_up, test_narrow, tear_down);
  g_test_add ("/large-picture/length", Fixture, NULL, set_up, test_length, tear_down);
  return g_test_run ();
}

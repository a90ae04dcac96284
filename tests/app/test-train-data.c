/* test-train-data.c - what a gate is trained on: invented conversations ask only for what they
 * told, sequences depend on seed and number alone, weights fall on the right tokens, and files that
 * are no data are refused by line. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-error.h"
#include "app/ks-recall-maker.h"
#include "app/ks-train-data.h"
#include "app/ks-train-jsonl.h"
#include "tests/remove-tree.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  ks_alloc *alloc;
  ks_gguf *gguf;
  ks_tokenizer *tok;
  KsTrainEncoder encoder;
  char *dir;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  g_autofree char *path =
      g_build_filename (g_getenv ("KS_TEST_CASES"), "qwen2", "model.gguf", NULL);
  g_autoptr (GError) error = NULL;

  f->alloc = ks_alloc_new ();
  g_assert_cmpint (ks_gguf_open (f->alloc, path, &f->gguf, NULL), ==, KS_OK);
  g_assert_cmpint (ks_tokenizer_new (f->alloc, f->gguf, &f->tok, NULL), ==, KS_OK);
  f->encoder = (KsTrainEncoder){.alloc = f->alloc,
                                .tokenizer = f->tok,
                                .chat_template = ks_chat_template_find ("chatml"),
                                .prompt_weight = 1};
  f->dir = g_dir_make_tmp ("ks-train-data-XXXXXX", &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  remove_tree (f->dir);
  g_free (f->dir);
  ks_tokenizer_free (f->tok);
  ks_gguf_close (f->gguf);
  ks_alloc_free (f->alloc);
}

static char *
write_file (Fixture *f, const char *name, const char *text)
{
  char *path = g_build_filename (f->dir, name, NULL);

  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  return path;
}

static KsTrainData *
make_data (guint n_tok, guint min_tok, double recall_share)
{
  const KsTrainDataParams params = {.seed = 7,
                                    .min_tok = min_tok,
                                    .max_tok = n_tok,
                                    .recall_share = recall_share,
                                    .value_share = 0.5};

  return ks_train_data_new (&params);
}

static KsTrainMessage *
get_message (const KsTrainChat *chat, guint i)
{
  return g_ptr_array_index (chat->messages, i);
}

/* Every answer with a value tells what a user had said before, and its question does not say it. */
static void
test_recall (void)
{
  guint n_answer = 0;

  for (guint i = 0; i < 300; i++) {
    KsTrainRandom random = ks_train_random_init (3, i), again = random;
    KsRecallParams params = ks_recall_params_draw (&random, 100 + i);
    g_autoptr (KsTrainChat) chat = ks_recall_make (&random, &params), same = NULL;

    params = ks_recall_params_draw (&again, 100 + i);
    same = ks_recall_make (&again, &params);
    g_assert_cmpuint (chat->messages->len, ==, same->messages->len);
    for (guint k = 0; k < chat->messages->len; k++) {
      const KsTrainMessage *message = get_message (chat, k);
      g_autofree char *value = NULL;
      const KsTrainSpan *span;
      gboolean told = FALSE;

      g_assert_cmpstr (message->text, ==, get_message (same, k)->text);
      g_assert_null (strchr (message->text, '%'));
      if (message->values->len == 0)
        continue;
      g_assert_cmpint (message->role, ==, KS_ROLE_ASSISTANT);
      span = &g_array_index (message->values, KsTrainSpan, 0);
      value = g_strndup (message->text + span->begin, span->end - span->begin);
      g_assert_null (strstr (get_message (chat, k - 1)->text, value));
      for (guint j = 0; j + 1 < k; j++) {
        g_autofree char *text = g_ascii_strdown (get_message (chat, j)->text, -1);
        g_autofree char *wanted = g_ascii_strdown (value, -1);

        told |= get_message (chat, j)->role == KS_ROLE_USER && strstr (text, wanted) != NULL;
      }
      g_assert_true (told);
      n_answer++;
    }
  }
  g_assert_cmpuint (n_answer, >, 900);
}

/* Half of the weight on the values, the tokens of which spell them; as long as was asked for. */
static void
test_sequences (Fixture *f, gconstpointer user)
{
  g_autoptr (KsTrainData) data = make_data (1024, 512, 1), other = make_data (1024, 512, 1);
  guint n_short = 0, n_value = 0;

  for (guint i = 0; i < 40; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (KsTrainSequence) a = ks_train_data_make (data, &f->encoder, i, &error);
    g_autoptr (KsTrainSequence) b = ks_train_data_make (other, &f->encoder, i, &error);
    double on_values = 0, all = 0;

    g_assert_no_error (error);
    g_assert_cmpmem (a->ids->data, a->ids->len * sizeof (ks_token), b->ids->data,
                     b->ids->len * sizeof (ks_token));
    g_assert_cmpuint (a->ids->len, <=, 1024);
    g_assert_cmpuint (a->ids->len, ==, a->weights->len);
    g_assert_cmpuint (a->starts->len, ==, 1);
    n_short += a->ids->len <= 512;
    for (guint k = 0; k < a->weights->len; k++)
      all += (double)g_array_index (a->weights, float, k);
    for (guint k = 0; k < a->values->len; k++)
      on_values += (double)g_array_index (a->weights, float, g_array_index (a->values, guint32, k));
    n_value += a->values->len;
    if (a->values->len > 0)
      g_assert_cmpfloat_with_epsilon (on_values / all, 0.5, 1e-4);
  }
  g_assert_cmpuint (n_short, >, 8); /* both lengths are drawn */
  g_assert_cmpuint (n_short, <, 32);
  g_assert_cmpuint (n_value, >, 200);
}

/* With no weight on prompts an answer and its end count, and nothing else. */
static void
test_weights (Fixture *f, gconstpointer user)
{
  g_autoptr (KsTrainChat) chat = ks_train_chat_new ();
  g_autoptr (KsTrainSequence) sequence = ks_train_sequence_new ();
  g_autoptr (GString) counted = g_string_new (NULL), values = g_string_new (NULL);
  g_autoptr (GError) error = NULL;

  f->encoder.prompt_weight = 0;
  ks_train_chat_take (chat, KS_ROLE_USER, g_strdup ("The word is heron. Which word?"));
  ks_train_message_mark (ks_train_chat_take (chat, KS_ROLE_ASSISTANT, g_strdup ("It is heron.")),
                         "heron");
  g_assert_true (ks_train_encode_chat (&f->encoder, chat, 500, sequence, &error));
  g_assert_no_error (error);
  for (guint i = 0; i < sequence->ids->len; i++) {
    size_t n = 0;
    const char *piece =
        ks_tokenizer_get_piece (f->tok, g_array_index (sequence->ids, ks_token, i), true, &n);

    if (g_array_index (sequence->weights, float, i) > 0)
      g_string_append_len (counted, piece, (gssize)n);
    for (guint k = 0; k < sequence->values->len; k++)
      if (g_array_index (sequence->values, guint32, k) == i)
        g_string_append_len (values, piece, (gssize)n);
  }
  g_assert_true (g_str_has_prefix (counted->str, "It is heron."));
  g_assert_null (strstr (counted->str, "Which"));
  g_assert_nonnull (strstr (values->str, "heron"));
  g_assert_cmpuint (values->len, <=, strlen (" heron") + 1);
}

/* Documents are packed one behind the other until little is left, each from a place of its own. */
static void
test_text (Fixture *f, gconstpointer user)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (KsTrainData) data = make_data (256, 256, 0);
  g_autoptr (GError) error = NULL;
  g_autofree char *path = NULL;

  for (guint i = 0; i < 400; i++)
    g_string_append_printf (text, "Paragraph %u stands here.\n\n", i);
  path = write_file (f, "b.txt", text->str);
  g_free (write_file (f, "a.md", "A short file of a few words, and no more than that.\n"));
  g_free (write_file (f, "c.png", "not looked at"));
  g_assert_true (ks_train_data_add_path (data, f->dir, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (ks_train_data_get_n_items (data), ==, 2);
  for (guint i = 0; i < 30; i++) {
    g_autoptr (KsTrainSequence) sequence = ks_train_data_make (data, &f->encoder, i, &error);

    g_assert_no_error (error);
    g_assert_cmpuint (sequence->ids->len, >, 256 - 48);
    g_assert_cmpuint (sequence->ids->len, <=, 256);
    g_assert_cmpuint (g_array_index (sequence->starts, guint32, 0), ==, 0);
    for (guint k = 1; k < sequence->starts->len; k++)
      g_assert_cmpuint (g_array_index (sequence->starts, guint32, k), >,
                        g_array_index (sequence->starts, guint32, k - 1));
  }
}

/* The mark tells other settings and other files apart. */
static void
test_mark (Fixture *f, gconstpointer user)
{
  g_autoptr (KsTrainData) a = make_data (256, 256, 0.5), b = make_data (256, 256, 0.5),
                          c = make_data (256, 128, 0.5);
  g_autofree char *ma = ks_train_data_make_mark (a), *mb = ks_train_data_make_mark (b);
  g_autofree char *mc = ks_train_data_make_mark (c), *path = write_file (f, "x.txt", "words\n");
  g_autofree char *with_file = NULL;

  g_assert_cmpstr (ma, ==, mb);
  g_assert_cmpstr (ma, !=, mc);
  g_assert_true (ks_train_data_add_path (a, path, NULL));
  with_file = ks_train_data_make_mark (a);
  g_assert_cmpstr (with_file, !=, ma);
}

static void
check_refused (Fixture *f, const char *name, const char *text, const char *part)
{
  g_autoptr (KsTrainData) data = make_data (256, 256, 0);
  g_autofree char *path = write_file (f, name, text);
  g_autoptr (GError) error = NULL;

  g_assert_false (ks_train_data_add_path (data, path, &error));
  g_assert_nonnull (error);
  g_assert_nonnull (strstr (error->message, part));
}

/* A mistake is told with its line, before anything is computed. */
static void
test_refusals (Fixture *f, gconstpointer user)
{
  g_autoptr (KsTrainData) none = make_data (256, 256, 0);
  g_autoptr (GError) error = NULL;

  check_refused (f, "a.jsonl", "{\"text\": \"fine\"}\nnot json\n", "line 2");
  check_refused (f, "b.jsonl", "{\"messages\": [{\"role\": \"judge\", \"content\": \"x\"}]}\n",
                 "no role");
  check_refused (f, "c.jsonl", "{\"messages\": []}\n", "empty");
  check_refused (f, "d.jsonl",
                 "{\"messages\": [{\"role\": \"assistant\", \"content\": [{\"type\": \"image\", "
                 "\"image\": \"x.png\"}]}]}\n",
                 "not the user's");
  check_refused (f, "e.jsonl", "[1]\n", "no JSON object");
  check_refused (f, "f.jsonl", "{\"text\": \"a\"} and more\n", "no JSON object");
  check_refused (f, "g.jsonl", "{\"text\": \"a\\u0000b\"}\n", "\\u0000");
  check_refused (f, "h.jsonl", "{\"text\": \"a\"}\n{\"text\": \"\xff\"}\n",
                 "line 2: it is no UTF-8");
  check_refused (f, "i.jsonl",
                 "{\"image\": [\"x.png\", \"y.png\"], \"conversations\": [{\"from\": \"human\", "
                 "\"value\": \"<image>\"}]}\n",
                 "stands nowhere");
  check_refused (f, "j.jsonl",
                 "{\"image\": 3, \"conversations\": [{\"from\": \"human\", \"value\": "
                 "\"<image>\"}]}\n",
                 "neither a name");
  check_refused (
      f, "k.jsonl",
      "{\"text\": \"a\"}\n\n{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
      "\"image\", \"image\": \"gone.png\"}]}]}\n",
      "line 3: there is no picture gone.png");
  g_assert_null (ks_train_data_make (none, &f->encoder, 0, &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE);
}

/* Both ways to write conversations; pictures stand where they were named. */
static void
test_jsonl (void)
{
  static const char openai[] =
      "{\"messages\": [{\"role\": \"system\", \"content\": \"Be short.\"}, {\"role\": \"user\", "
      "\"content\": [{\"type\": \"text\", \"text\": \"Look: \"}, {\"type\": \"image\", \"image\": "
      "\"cat.png\"}, {\"type\": \"text\", \"text\": \" nice?\"}]}, {\"role\": \"assistant\", "
      "\"content\": \"Yes.\"}]}";
  static const char shared[] =
      "{\"image\": \"dog.png\", \"conversations\": [{\"from\": \"human\", \"value\": "
      "\"<image>Who?\"}, {\"from\": \"gpt\", \"value\": \"A dog.\"}, {\"from\": \"human\", "
      "\"value\": \"An <image>?\"}]}";
  g_autofree char *text = NULL;
  g_autoptr (KsTrainChat) a = ks_train_jsonl_parse (openai, strlen (openai), "/data", &text, NULL);
  g_autoptr (KsTrainChat) b = ks_train_jsonl_parse (shared, strlen (shared), "/data", &text, NULL);
  const KsPicture *picture;

  g_assert_cmpuint (a->messages->len, ==, 3);
  g_assert_cmpint (get_message (a, 0)->role, ==, KS_ROLE_SYSTEM);
  g_assert_cmpstr (get_message (a, 1)->text, ==, "Look:  nice?");
  picture = g_ptr_array_index (get_message (a, 1)->pictures, 0);
  g_assert_cmpuint (picture->at, ==, strlen ("Look: "));
  g_assert_cmpstr (picture->path, ==, "/data/cat.png");
  g_assert_cmpuint (b->messages->len, ==, 3);
  g_assert_cmpstr (get_message (b, 0)->text, ==, "Who?");
  g_assert_cmpuint (get_message (b, 0)->pictures->len, ==, 1);
  /* There was one picture only: what stands behind it is text. */
  g_assert_cmpstr (get_message (b, 2)->text, ==, "An <image>?");
  g_assert_null (ks_train_jsonl_parse ("{\"text\": \"words\"}", 17, NULL, &text, NULL));
  g_assert_cmpstr (text, ==, "words");
}

/* What editors and other tools leave in such files is no mistake: a mark in front, blank lines,
 * ends as Windows has them, fields that are empty because others have them. */
static void
test_tolerance (Fixture *f, gconstpointer user)
{
  static const char parts[] =
      "{\"images\": null, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", "
      "\"text\": \"See\", \"image\": null}, {\"type\": \"image\", \"text\": \"\", \"image\": "
      "\"a.png\"}]}]}";
  static const char list[] = "{\"images\": [\"a.png\"], \"messages\": [{\"role\": \"user\", "
                             "\"content\": \"So: <image>\"}]}";
  g_autoptr (KsTrainData) data = make_data (256, 256, 0);
  g_autofree char *path = write_file (
      f, "a.jsonl", "\xef\xbb\xbf{\"text\": \"one \\\\u0000\"}\r\n  \r\n{\"text\": \"two\"}");
  g_autofree char *words = write_file (f, "b.txt", "\xef\xbb\xbfwords");
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsTrainChat) a = ks_train_jsonl_parse (parts, strlen (parts), NULL, &text, NULL);
  g_autoptr (KsTrainChat) b = ks_train_jsonl_parse (list, strlen (list), NULL, &text, NULL);

  g_assert_true (ks_train_data_add_path (data, path, &error));
  g_assert_no_error (error);
  g_assert_true (ks_train_data_add_path (data, words, &error));
  g_assert_cmpuint (ks_train_data_get_n_items (data), ==, 3);
  g_assert_cmpstr (get_message (a, 0)->text, ==, "See");
  g_assert_cmpuint (get_message (a, 0)->pictures->len, ==, 1);
  g_assert_cmpstr (get_message (b, 0)->text, ==, "So: ");
  g_assert_cmpuint (get_message (b, 0)->pictures->len, ==, 1);
}

/* A file that is cut while it is trained on is told by name; nothing is made of its zeros. */
static void
test_cut_file (Fixture *f, gconstpointer user)
{
  g_autoptr (KsTrainData) data = make_data (256, 256, 0);
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *path = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsTrainSequence) before = NULL, after = NULL;

  for (guint i = 0; i < 4000; i++)
    g_string_append_printf (text, "Line %u of it.\n\n", i);
  path = write_file (f, "a.txt", text->str);
  g_assert_true (ks_train_data_add_path (data, path, NULL));
  before = ks_train_data_make (data, &f->encoder, 0, &error);
  g_assert_no_error (error);
  g_assert_cmpint (truncate (path, 10), ==, 0);
  after = ks_train_data_make (data, &f->encoder, 1, &error);
  g_assert_null (after);
  g_assert_error (error, KS_ENGINE_ERROR, KS_ERR_IO);
  g_assert_nonnull (strstr (error->message, "a.txt became shorter"));
}

/* A blind model refuses pictures, and says what it needs. */
static void
test_blind (Fixture *f, gconstpointer user)
{
  static const char line[] = "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
                             "\"image\", \"image\": \"cat.png\"}]}]}";
  g_autofree char *text = NULL;
  g_autoptr (KsTrainChat) chat = ks_train_jsonl_parse (line, strlen (line), NULL, &text, NULL);
  g_autoptr (KsTrainSequence) sequence = ks_train_sequence_new ();
  g_autoptr (GError) error = NULL;

  g_assert_false (ks_train_encode_chat (&f->encoder, chat, 500, sequence, &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE);
  g_assert_nonnull (strstr (error->message, "--mmproj"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/train-data/recall", test_recall);
  g_test_add ("/train-data/sequences", Fixture, NULL, set_up, test_sequences, tear_down);
  g_test_add ("/train-data/weights", Fixture, NULL, set_up, test_weights, tear_down);
  g_test_add ("/train-data/text", Fixture, NULL, set_up, test_text, tear_down);
  g_test_add ("/train-data/mark", Fixture, NULL, set_up, test_mark, tear_down);
  g_test_add ("/train-data/refusals", Fixture, NULL, set_up, test_refusals, tear_down);
  g_test_add_func ("/train-data/jsonl", test_jsonl);
  g_test_add ("/train-data/tolerance", Fixture, NULL, set_up, test_tolerance, tear_down);
  g_test_add ("/train-data/cut-file", Fixture, NULL, set_up, test_cut_file, tear_down);
  g_test_add ("/train-data/blind", Fixture, NULL, set_up, test_blind, tear_down);
  return g_test_run ();
}

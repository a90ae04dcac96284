/* test-eval-load.c - benchmarks from small files made up here, in every form that is read;
 * wordings; and files that are wrong. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-load.h"
#include "app/eval-template.h"
#include "app/eval-tsv.h"

#include "tests/remove-tree.h"

#include <glib/gstdio.h>
#include <string.h>

/* Long enough to be told from a word. */
#define PICTURE_A "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAA"
#define PICTURE_B "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEA"

typedef struct {
  char *folder;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  f->folder = g_dir_make_tmp ("keepsake-eval-load-XXXXXX", NULL);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  remove_tree (f->folder);
  g_free (f->folder);
}

static void
write_file (Fixture *f, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (f->folder, name, NULL);
  g_autofree char *folder = g_path_get_dirname (path);

  g_assert_cmpint (g_mkdir_with_parents (folder, 0755), ==, 0);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

static GPtrArray *
load (Fixture *f, const char *bench, const char *name)
{
  g_autofree char *path = g_build_filename (f->folder, name, NULL);
  KsEvalLoadOptions options = {.data = path};
  g_autoptr (GError) error = NULL;
  GPtrArray *items = ks_eval_load (bench, &options, &error);

  g_assert_no_error (error);
  return items;
}

static void
expect_error (Fixture *f, const char *bench, const char *name, const char *words)
{
  g_autofree char *path = g_build_filename (f->folder, name, NULL);
  KsEvalLoadOptions options = {.data = path};
  g_autoptr (GError) error = NULL;

  g_assert_null (ks_eval_load (bench, &options, &error));
  g_assert_nonnull (error);
  if (strstr (error->message, words) == NULL)
    g_error ("'%s' does not say '%s'", error->message, words);
}

static const KsEvalItem *
get_item (GPtrArray *items, guint i)
{
  g_assert_cmpuint (i, <, items->len);
  return g_ptr_array_index (items, i);
}

static const KsEvalTurn *
get_turn (GPtrArray *items, guint i, guint turn)
{
  g_assert_cmpuint (turn, <, get_item (items, i)->turns->len);
  return g_ptr_array_index (get_item (items, i)->turns, turn);
}

static const KsEvalPicture *
get_picture (const KsEvalTurn *turn, guint i)
{
  g_assert_cmpuint (i, <, turn->pictures->len);
  return g_ptr_array_index (turn->pictures, i);
}

/* The three spellings of fields that circulate, numbers and texts as answers. */
static void
test_aime (Fixture *f, gconstpointer data)
{
  static const char zero[] =
      "{\"problem\":\"x\",\"answer\":1}\n\0\n{\"problem\":\"y\",\"answer\":2}\n";
  g_autofree char *path = NULL;
  g_autoptr (GPtrArray) items = NULL;

  write_file (f, "a.jsonl",
              "{\"ID\":\"2024-I-1\",\"Problem\":\"How many?\",\"Answer\":204}\n\n"
              "{\"id\":\"0\",\"problem\":\"And now?\",\"answer\":\"070\"}\n"
              "{\"Year\":1999,\"Question\":\"Last?\",\"Answer\":\"38\"}");
  items = load (f, "aime", "a.jsonl");
  g_assert_cmpuint (items->len, ==, 3);
  g_assert_cmpstr (get_item (items, 0)->id, ==, "2024-I-1");
  g_assert_cmpstr (get_turn (items, 0, 0)->expect[0], ==, "204");
  g_assert_cmpstr (get_turn (items, 1, 0)->expect[0], ==, "070");
  g_assert_cmpstr (get_item (items, 2)->id, ==, "2");
  g_assert_cmpstr (get_turn (items, 2, 0)->text, ==, "Last?");
  write_file (f, "b.jsonl", "{\"problem\":\"x\",\"answer\":1}\n{\"problem\":\"y\"}\n");
  expect_error (f, "aime", "b.jsonl", "row 2");
  write_file (f, "c.jsonl", "{\"problem\":\n");
  expect_error (f, "aime", "c.jsonl", "row 1");
  path = g_build_filename (f->folder, "d.jsonl", NULL);
  g_assert_true (g_file_set_contents (path, zero, sizeof zero - 1, NULL));
  expect_error (f, "aime", "d.jsonl", "zero byte"); /* not fewer items without a word */
}

/* Options become lines, unless they are only letters (they are drawn); markers go; the picture lies
 * where the row says, and nowhere above. */
static void
test_mathvision (Fixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) items = NULL;

  write_file (f, "images/7.jpg", "x");
  write_file (f, "m.jsonl",
              "{\"id\":\"7\",\"question\":\"How many dots?\\n<image1>\",\"options\":[\"2\",\"6\"],"
              "\"answer\":\"B\",\"level\":1,\"subject\":\"counting\",\"image\":\"images/7.jpg\"}\n"
              "{\"id\":8,\"question\":\"Which <image1> one?\",\"options\":[\"A\",\"B\"],"
              "\"answer\":\"A\",\"level\":5,\"subject\":\"logic\",\"image\":\"images/7.jpg\"}\n");
  items = load (f, "mathvision", "m.jsonl");
  g_assert_cmpuint (items->len, ==, 2);
  g_assert_cmpstr (get_turn (items, 0, 0)->text, ==, "How many dots?");
  g_assert_cmpstr (get_item (items, 0)->part, ==, "counting/level 1");
  g_assert_cmpstr (g_hash_table_lookup (get_item (items, 0)->fields, "choices"), ==,
                   "(A) 2\n(B) 6");
  g_assert_cmpstr (g_hash_table_lookup (get_item (items, 1)->fields, "choices"), ==, "");
  g_assert_cmpstr (get_item (items, 0)->options[1], ==, "6");
  g_assert_true (g_str_has_suffix (get_picture (get_turn (items, 0, 0), 0)->path, "images/7.jpg"));
  g_assert_true (ks_eval_items_check_pictures (items, NULL));
  write_file (f, "out.jsonl",
              "{\"id\":1,\"question\":\"q\",\"options\":[],\"answer\":\"1\",\"image\":\"../x\"}");
  expect_error (f, "mathvision", "out.jsonl", "does not lie");
}

/* Quotes, line breaks and doubled quotes in fields; a row that borrows another one's picture. */
static void
test_tsv (Fixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) items = NULL;
  const KsEvalPicture *own, *shared;

  write_file (f, "m.tsv",
              "index\timage\tquestion\tchoices\tanswer\tcategory\r\n"
              "1\t" PICTURE_A "\t\"Say \"\"two\"\"\nwords\"\t\"['a b', \"\"c\"\"]\"\tA\talgebra\r\n"
              "2\t1\tplain\t\t12\talgebra\r\n");
  items = load (f, "mathvision", "m.tsv");
  g_assert_cmpuint (items->len, ==, 2);
  g_assert_cmpstr (get_turn (items, 0, 0)->text, ==, "Say \"two\"\nwords");
  g_assert_cmpstr (get_item (items, 0)->options[0], ==, "a b");
  g_assert_cmpstr (get_item (items, 0)->options[1], ==, "c");
  g_assert_cmpstr (get_turn (items, 1, 0)->expect[0], ==, "12");
  own = get_picture (get_turn (items, 0, 0), 0);
  shared = get_picture (get_turn (items, 1, 0), 0);
  g_assert_cmpmem (g_bytes_get_data (shared->base64, NULL), g_bytes_get_size (shared->base64),
                   PICTURE_A, strlen (PICTURE_A));
  g_assert_true (g_bytes_equal (own->base64, shared->base64));
  write_file (f, "open.tsv", "a\tb\n1\t\"never ends\n");
  expect_error (f, "aime", "open.tsv", "quotes");
  write_file (f, "few.tsv", "question\tanswer\nonly\n");
  expect_error (f, "aime", "few.tsv", "1 fields");
}

/* Both layouts of the release; the questions of a picture share a group. */
static void
test_mme (Fixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) items = NULL, table = NULL;

  write_file (f, "r/count/0001.jpg", "x");
  write_file (f, "r/count/0001.txt",
              "Two cups? Please answer yes or no.\t"
              "Yes\nThree cups? Please answer yes or no.\tNo\n");
  write_file (f, "r/OCR/images/a.png", "x");
  write_file (f, "r/OCR/questions_answers_YN/a.txt",
              "Is it stop?\t"
              "Yes\r\nIs it go?\tNo\r\n");
  items = load (f, "mme", "r");
  g_assert_cmpuint (items->len, ==, 4);
  g_assert_cmpstr (get_item (items, 0)->id, ==, "count/0001#1");
  g_assert_cmpstr (get_item (items, 1)->group, ==, "count/0001");
  g_assert_cmpstr (get_turn (items, 1, 0)->expect[0], ==, "No");
  g_assert_cmpstr (g_hash_table_lookup (get_item (items, 0)->fields, "bare"), ==, "Two cups?");
  g_assert_cmpstr (get_item (items, 2)->part, ==, "OCR");
  g_assert_true (
      g_str_has_suffix (get_picture (get_turn (items, 2, 0), 0)->path, "OCR/images/a.png"));

  write_file (f, "t.tsv",
              "index\timage\tquestion\tanswer\tcategory\timage_path\n"
              "0\t" PICTURE_A "\tA?\t"
              "Yes\tcount\tcount/1.jpg\n"
              "1\t" PICTURE_B "\tB?\t"
              "Yes\tcolor\tcolor/1.jpg\n"
              "2\t0\tC?\tNo\tcount\tcount/1.jpg\n");
  table = load (f, "mme", "t.tsv");
  g_assert_cmpuint (table->len, ==, 3);
  g_assert_cmpstr (get_item (table, 2)->id, ==, "count/1.jpg#2");
  g_assert_cmpstr (get_item (table, 2)->group, ==, get_item (table, 0)->group);
  write_file (f, "r/count/0002.jpg", "x");
  write_file (f, "r/count/0002.txt", "no answer here\n");
  expect_error (f, "mme", "r", "line 1");
}

/* Each marker takes the next picture, over turns; a question without an answer is left out. */
static void
test_mmdu (Fixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) items = NULL, table = NULL;
  g_autofree char *path = NULL, *file = g_build_filename (f->folder, "t.txt", NULL);
  g_autoptr (KsEvalTemplate) tmpl = NULL;
  const KsEvalTurn *turn;

  write_file (f, "benchmark.json",
              "{\"k\":{\"id\":\"d12\",\"image\":[\"a.jpg\",\"b.jpg\",\"c.jpg\"],\"conversations\":["
              "{\"from\":\"user\",\"value\":\"<ImageHere>One <ImageHere>two\"},"
              "{\"from\":\"assistant\",\"value\":\"r1\"},"
              "{\"from\":\"user\",\"value\":\"none\"},{\"from\":\"assistant\",\"value\":\"r2\"},"
              "{\"from\":\"user\",\"value\":\"see <ImageHere>\"},"
              "{\"from\":\"assistant\",\"value\":\"r3\"},{\"from\":\"user\",\"value\":\"?\"}]}}");
  items = load (f, "mmdu", "benchmark.json");
  g_assert_cmpuint (items->len, ==, 1);
  g_assert_cmpuint (get_item (items, 0)->turns->len, ==, 3);
  turn = get_turn (items, 0, 0);
  g_assert_cmpstr (turn->text, ==, "One two");
  g_assert_cmpuint (get_picture (turn, 1)->at, ==, 4);
  g_assert_cmpuint (get_turn (items, 0, 1)->pictures->len, ==, 0);
  g_assert_true (g_str_has_suffix (get_picture (get_turn (items, 0, 2), 0)->path, "c.jpg"));

  /* what a template puts in front moves the pictures along */
  write_file (f, "t.txt", "# note\n[one]\nHear: {question}!\n");
  tmpl = ks_eval_template_load (file, NULL, NULL);
  g_assert_true (ks_eval_template_fill (tmpl, g_ptr_array_index (items, 0), NULL));
  g_assert_cmpstr (turn->text, ==, "Hear: One two!");
  g_assert_cmpuint (get_picture (turn, 1)->at, ==, 10);

  write_file (f, "m.tsv",
              "index\timage\tquestion\tanswer\n"
              "4\t['" PICTURE_A "', '" PICTURE_B "']\t['<ImageHere>a', 'b <ImageHere>']\t"
              "['x', \"y's\"]\n");
  table = load (f, "mmdu", "m.tsv");
  g_assert_cmpuint (get_item (table, 0)->turns->len, ==, 2);
  g_assert_cmpstr (get_turn (table, 0, 1)->expect[0], ==, "y's");
  g_assert_cmpuint (get_picture (get_turn (table, 0, 1), 0)->at, ==, 2);
  write_file (f, "few.json",
              "[{\"id\":1,\"image\":[],\"conversations\":[{\"from\":\"user\","
              "\"value\":\"<ImageHere>\"},{\"from\":\"assistant\",\"value\":\"\"}]}]");
  expect_error (f, "mmdu", "few.json", "more pictures");
}

#define TEN "\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\""

/* The validation set's pictures lie in train_images; words of the OCR file by picture. */
static void
test_textvqa (Fixture *f, gconstpointer data)
{
  g_autofree char *path = g_build_filename (f->folder, "v.json", NULL);
  g_autofree char *ocr = g_build_filename (f->folder, "ocr.json", NULL);
  KsEvalLoadOptions options = {.data = path, .ocr = ocr};
  g_autoptr (GPtrArray) items = NULL;

  write_file (f, "train_images/0f3a.jpg", "x");
  write_file (f, "v.json",
              "{\"dataset_type\":\"val\",\"data\":[{\"question_id\":34602,\"image_id\":\"0f3a\","
              "\"question\":\"what is ON the sign?\",\"answers\":[" TEN "]}]}");
  write_file (f, "ocr.json",
              "{\"data\":[{\"image_id\":\"0f3a\",\"ocr_tokens\":[\"STOP\",\"HERE\"]}]}");
  items = ks_eval_load ("textvqa", &options, NULL);
  g_assert_nonnull (items);
  g_assert_cmpstr (get_item (items, 0)->id, ==, "34602");
  g_assert_cmpstr (g_hash_table_lookup (get_item (items, 0)->fields, "sentence"), ==,
                   "What is on the sign?");
  g_assert_cmpstr (g_hash_table_lookup (get_item (items, 0)->fields, "ocr"), ==, "STOP, HERE");
  g_assert_true (ks_eval_items_check_pictures (items, NULL));
  write_file (f, "test.json",
              "{\"data\":[{\"question_id\":1,\"image_id\":\"0f3a\",\"question\":\"q\","
              "\"answers\":[\"a\"]}]}");
  expect_error (f, "textvqa", "test.json", "ten are needed");
}

/* LLaVA's file of questions picks the items, by picture and question whatever the case, and gives
 * their wording; one that belongs to other data is told. */
static void
test_textvqa_prompts (Fixture *f, gconstpointer data)
{
  g_autofree char *path = g_build_filename (f->folder, "v.json", NULL);
  g_autofree char *prompts = g_build_filename (f->folder, "p.jsonl", NULL);
  KsEvalLoadOptions options = {.data = path, .prompts = prompts};
  g_autoptr (GPtrArray) items = NULL, none = NULL;
  g_autoptr (GError) error = NULL;

  write_file (f, "v.json",
              "{\"data\":[{\"question_id\":1,\"image_id\":\"0f3a\",\"question\":\"What IS it?\","
              "\"answers\":[" TEN
              "]},{\"question_id\":2,\"image_id\":\"0f3a\",\"question\":\"Who?\","
              "\"answers\":[" TEN "]},{\"question_id\":3,\"image_id\":\"77\",\"question\":\"Who?\","
              "\"answers\":[" TEN "]}]}");
  write_file (f, "p.jsonl",
              "{\"question_id\":\"77\",\"image\":\"77.jpg\",\"text\":\"who?\\nOne word.\"}\n"
              "{\"question_id\":\"0f3a\",\"image\":\"0f3a.jpg\",\"category\":\"default\","
              "\"text\":\"what is it?\\nReference OCR token: A, B\\nOne word.\"}\n");
  items = ks_eval_load ("textvqa", &options, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (items->len, ==, 2);
  g_assert_cmpstr (get_item (items, 0)->id, ==, "1");
  g_assert_cmpstr (get_item (items, 1)->id, ==, "3");
  g_assert_cmpstr (g_hash_table_lookup (get_item (items, 0)->fields, "prompt"), ==,
                   "what is it?\nReference OCR token: A, B\nOne word.");
  write_file (f, "p.jsonl", "{\"question_id\":\"0f3b\",\"text\":\"who?\\nOne word.\"}\n");
  none = ks_eval_load ("textvqa", &options, &error);
  g_assert_null (none);
  g_assert_nonnull (strstr (error->message, "picture 0f3b"));
}

/* What people make of Parquet files: tables with numpy's lists, with other names of columns in
 * another case, with names of files for pictures; the Parquet file itself is refused with a way
 * out. */
static void
test_exports (Fixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) vqa = NULL, math = NULL, mme = NULL;

  write_file (f, "v.tsv",
              "question_id\timage_id\timage\tquestion\tanswers\n"
              "9\t0f\t" PICTURE_A "\tWhat?\t\"['a' 'b' 'c' 'd' 'e' 'f' 'g'\n 'h' 'i' 'j']\"\n");
  vqa = load (f, "textvqa", "v.tsv");
  g_assert_cmpstr (get_item (vqa, 0)->id, ==, "9");
  g_assert_cmpuint (g_strv_length (get_turn (vqa, 0, 0)->expect), ==, 10);
  g_assert_cmpstr (get_turn (vqa, 0, 0)->expect[9], ==, "j");
  write_file (f, "images/7.jpg", "x");
  write_file (f, "m.tsv",
              "ID\tquestion\tOptions\timage\tdecoded_image\tanswer\tlevel\tsubject\n"
              "7\tq\t[]\timages/7.jpg\t" PICTURE_B "\t6\t2\tcounting\n"
              "8\tq\t[]\timages/8.jpg\t" PICTURE_B "\t6\t2\tcounting\n");
  math = load (f, "mathvision", "m.tsv");
  g_assert_cmpstr (get_item (math, 0)->part, ==, "counting/level 2");
  g_assert_true (g_str_has_suffix (get_picture (get_turn (math, 0, 0), 0)->path, "images/7.jpg"));
  g_assert_nonnull (get_picture (get_turn (math, 1, 0), 0)->base64);
  write_file (f, "m.jsonl",
              "{\"question_id\":\"count/1.png\",\"image\":\"count/1.png\",\"question\":\"A?\","
              "\"answer\":\"Yes\",\"category\":\"count\"}\n"
              "{\"question_id\":\"count/1.png\",\"image\":\"count/1.png\",\"question\":\"B?\","
              "\"answer\":\"No\",\"category\":\"count\"}\n");
  mme = load (f, "mme", "m.jsonl");
  g_assert_cmpstr (get_item (mme, 1)->id, ==, "count/1.png#2");
  g_assert_cmpstr (get_item (mme, 1)->group, ==, get_item (mme, 0)->group);
  write_file (f, "p/test-00000-of-00001.parquet", "PAR1");
  expect_error (f, "mathvision", "p", "write it as a .tsv file");
  expect_error (f, "mme", "p/test-00000-of-00001.parquet", "write it as a .tsv file");
}

/* AIME as a table with commas, and as lines in a file that is called .json; a picture whose subtask
 * is only the beginning of its name is not taken for one of that folder. */
static void
test_odd_names (Fixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) table = NULL, lines = NULL, mme = NULL, nul = NULL;
  g_autofree char *path = NULL;

  write_file (f, "a.csv",
              "ID,Year,Problem Number,Question,Answer,Part\r\n"
              "1999-3,1999,3,\"Find n, if\n\"\"n\"\" is 38.\",38,\r\n1999-4,1999,4,And 7?,7,I\r\n");
  table = load (f, "aime", "a.csv");
  g_assert_cmpuint (table->len, ==, 2);
  g_assert_cmpstr (get_item (table, 0)->id, ==, "1999-3");
  g_assert_cmpstr (get_turn (table, 0, 0)->text, ==, "Find n, if\n\"n\" is 38.");
  g_assert_cmpstr (get_turn (table, 1, 0)->expect[0], ==, "7");
  write_file (f, "l.json",
              "{\"id\":\"a\",\"problem\":\"x\",\"answer\":\"1\"}\n"
              "{\"id\":\"b\",\"problem\":\"y\",\"answer\":2}\n");
  lines = load (f, "aime", "l.json");
  g_assert_cmpuint (lines->len, ==, 2);
  g_assert_cmpstr (get_item (lines, 1)->id, ==, "b");
  path = g_build_filename (f->folder, "n.tsv", NULL);
  g_assert_true (g_file_set_contents (path, "problem\tanswer\nA\0B\xff\t1\n", 22, NULL));
  nul = load (f, "aime", "n.tsv");
  g_assert_cmpstr (get_turn (nul, 0, 0)->text, ==,
                   "A\xef\xbf\xbd"
                   "B\xef\xbf\xbd");
  write_file (f, "no.json", "[{\"problem\":\"x\",\"answer\":1}] and more");
  expect_error (f, "aime", "no.json", "no JSON");
  write_file (f, "g.tsv",
              "question\tanswer\tcategory\timage_path\timage\n"
              "A?\t"
              "Yes\tcount\tcountdown.jpg\t" PICTURE_A "\n");
  mme = load (f, "mme", "g.tsv");
  g_assert_cmpstr (get_item (mme, 0)->group, ==, "count/countdown.jpg");
}

/* Names are filled in, other braces stay, an unknown field or section is told. */
static void
test_template (Fixture *f, gconstpointer data)
{
  g_autofree char *path = g_build_filename (f->folder, "t.txt", NULL);
  g_autoptr (KsEvalTemplate) first = NULL, second = NULL, none = NULL;
  g_autoptr (KsEvalItem) item = ks_eval_item_new ("aime", "", "1");
  KsEvalTurn *turn = ks_eval_item_add_turn (item, "Q?", NULL);
  KsEvalPicture *picture = ks_eval_turn_add_picture (turn, "p.jpg");
  g_autoptr (GError) error = NULL;

  write_file (f, "t.txt",
              "# a note\n[a]\nFirst {image}then {question}\nso \\boxed{}.\n\n[b]\n{no}\n");
  first = ks_eval_template_load (path, NULL, NULL);
  second = ks_eval_template_load (path, "b", NULL);
  g_assert_cmpstr (ks_eval_template_get_name (first), ==, "a");
  g_assert_cmpstr (ks_eval_template_get_hash (first), !=, ks_eval_template_get_hash (second));
  g_assert_false (ks_eval_template_fill (second, item, &error));
  g_assert_nonnull (strstr (error->message, "{no}"));
  g_assert_true (ks_eval_template_fill (first, item, NULL));
  g_assert_cmpstr (turn->text, ==, "First then Q?\nso \\boxed{}.");
  g_assert_cmpuint (picture->at, ==, 6);
  g_clear_error (&error);
  none = ks_eval_template_load (path, "c", &error);
  g_assert_null (none);
  g_assert_nonnull (strstr (error->message, "a, b"));
}

/* The wordings that come with the program fill in for items of their benchmark. */
static void
test_own_templates (void)
{
  const char *const fields[] = {"sentence", "ocr",     "prompt",    "bare",
                                "choices",  "letters", "reference", "answer"};
  const char *const files[] = {"aime", "mathvision", "mme", "mmdu", "textvqa", "mmdu-judge"};

  for (guint i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autofree char *name = g_strconcat (files[i], ".txt", NULL);
    g_autofree char *path = g_build_filename (g_getenv ("KS_TEST_DATA"), "eval", name, NULL);
    g_autoptr (KsEvalTemplate) tmpl = ks_eval_template_load (path, NULL, NULL);
    g_autoptr (KsEvalItem) item = ks_eval_item_new (files[i], "", "1");
    KsEvalTurn *turn = ks_eval_item_add_turn (item, "<<Q>>", NULL);

    for (guint k = 0; k < G_N_ELEMENTS (fields); k++)
      g_hash_table_insert (item->fields, g_strdup (fields[k]), g_strdup ("<<Q>>"));
    g_assert_nonnull (tmpl);
    g_assert_true (ks_eval_template_fill (tmpl, item, NULL));
    g_assert_nonnull (strstr (turn->text, "<<Q>>"));
    g_assert_null (strstr (turn->text, "{image}"));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/eval-load/aime", Fixture, NULL, set_up, test_aime, tear_down);
  g_test_add ("/eval-load/mathvision", Fixture, NULL, set_up, test_mathvision, tear_down);
  g_test_add ("/eval-load/tsv", Fixture, NULL, set_up, test_tsv, tear_down);
  g_test_add ("/eval-load/mme", Fixture, NULL, set_up, test_mme, tear_down);
  g_test_add ("/eval-load/mmdu", Fixture, NULL, set_up, test_mmdu, tear_down);
  g_test_add ("/eval-load/textvqa", Fixture, NULL, set_up, test_textvqa, tear_down);
  g_test_add ("/eval-load/textvqa-prompts", Fixture, NULL, set_up, test_textvqa_prompts, tear_down);
  g_test_add ("/eval-load/exports", Fixture, NULL, set_up, test_exports, tear_down);
  g_test_add ("/eval-load/odd-names", Fixture, NULL, set_up, test_odd_names, tear_down);
  g_test_add ("/eval-load/template", Fixture, NULL, set_up, test_template, tear_down);
  g_test_add_func ("/eval-load/own-templates", test_own_templates);
  return g_test_run ();
}

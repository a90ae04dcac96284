/* test-tokenizer.c - every folder with tokenizer_cases: ids exact, text back exact, and what may
 * not be recognised in untrusted text stays text. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/tokenizer.h"
#include "tests/golden/golden-case.h"
#include "tests/ks-test.h"

typedef struct fixture {
  ks_alloc *alloc;
  golden_case *c;
  ks_gguf *gguf;
  ks_tokenizer *tok;
  ks_token_list ids;
} fixture;

static golden_list folders;
static size_t n_done;

static void
open_fixture(fixture *f, const char *folder)
{
  char why[300];
  char *path;
  ks_error err;

  memset(f, 0, sizeof *f);
  f->c = golden_case_load(folder, why, sizeof why);
  if (f->c == NULL)
    KS_FAIL("%s: %s", folder, why);
  f->alloc = ks_alloc_new();
  ks_token_list_init(&f->ids, f->alloc);
  if (cJSON_GetObjectItem(golden_case_get_json(f->c), "tokenizer_cases") == NULL)
    return;
  path = golden_case_dup_path(f->c, "model.gguf");
  if (ks_gguf_open(f->alloc, path, &f->gguf, &err) != KS_OK ||
      ks_tokenizer_new(f->alloc, f->gguf, &f->tok, &err) != KS_OK)
    KS_FAIL("%s: %s", path, err.text);
  free(path);
}

static void
close_fixture(fixture *f)
{
  ks_token_list_done(&f->ids);
  ks_tokenizer_free(f->tok);
  ks_gguf_close(f->gguf);
  ks_alloc_free(f->alloc);
  golden_case_free(f->c);
}

static void
check_ids(const fixture *f, const char *text, const cJSON *want)
{
  size_t n_want = (size_t)cJSON_GetArraySize(want), i = 0;
  const cJSON *id;

  cJSON_ArrayForEach(id, want)
  {
    if (i < f->ids.n && f->ids.ids[i] != (ks_token)id->valuedouble)
      KS_FAIL("%s: \"%s\": id %zu is %d, want %d", golden_case_get_name(f->c), text, i,
              f->ids.ids[i], id->valueint);
    i++;
  }
  if (f->ids.n != n_want)
    KS_FAIL("%s: \"%s\": %zu ids, want %zu", golden_case_get_name(f->c), text, f->ids.n, n_want);
}

static void
check_text(const fixture *f, const char *want)
{
  char *text = NULL;
  size_t n = 0;

  KS_ASSERT_OK(ks_tokenizer_decode(f->tok, f->alloc, f->ids.ids, f->ids.n, true, &text, &n, NULL));
  if (n != strlen(want) || memcmp(text, want, n) != 0)
    KS_FAIL("%s: \"%s\" came back as \"%s\"", golden_case_get_name(f->c), want, text);
  ks_mem_free(text);
}

static void
walk(void (*check)(fixture *))
{
  for (size_t i = 0; i < folders.n; i++) {
    fixture f;

    open_fixture(&f, folders.folders[i]);
    if (f.tok != NULL) {
      check(&f);
      n_done++;
    }
    close_fixture(&f);
  }
}

static void
check_cases(fixture *f)
{
  const cJSON *cases = cJSON_GetObjectItem(golden_case_get_json(f->c), "tokenizer_cases"), *item;

  cJSON_ArrayForEach(item, cases)
  {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(item, "text"));

    KS_ASSERT(text != NULL);
    f->ids.n = 0;
    KS_ASSERT_OK(
        ks_tokenizer_encode(f->tok, text, strlen(text), KS_ENCODE_PARSE_SPECIAL, &f->ids, NULL));
    check_ids(f, text, cJSON_GetObjectItem(item, "ids"));
    check_text(f, text);
  }
}

/* Ids and detokenized text of every case, exactly. */
KS_TEST(golden_tokenizer, cases)
{
  n_done = 0;
  walk(check_cases);
  KS_ASSERT_LT(0, n_done);
}

static void
check_rendered(fixture *f)
{
  const cJSON *chat = cJSON_GetObjectItem(golden_case_get_json(f->c), "chat");
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(chat, "rendered"));

  if (text == NULL)
    return;
  f->ids.n = 0;
  KS_ASSERT_OK(
      ks_tokenizer_encode(f->tok, text, strlen(text), KS_ENCODE_PARSE_SPECIAL, &f->ids, NULL));
  check_ids(f, text, cJSON_GetObjectItem(chat, "ids"));
}

/* The rendered chats, control tokens recognised. */
KS_TEST(golden_tokenizer, rendered_chats)
{
  walk(check_rendered);
}

static void
check_untrusted(fixture *f)
{
  const cJSON *chat = cJSON_GetObjectItem(golden_case_get_json(f->c), "chat");
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(chat, "rendered"));

  if (text == NULL)
    return;
  f->ids.n = 0;
  KS_ASSERT_OK(ks_tokenizer_encode(f->tok, text, strlen(text), 0, &f->ids, NULL));
  for (size_t i = 0; i < f->ids.n; i++)
    KS_ASSERT_NE(ks_tokenizer_get_type(f->tok, f->ids.ids[i]), KS_TOKEN_CONTROL);
  check_text(f, text);
}

/* The same chats as untrusted text: no control token, nothing lost. */
KS_TEST(golden_tokenizer, untrusted_text_gives_no_control_token)
{
  walk(check_untrusted);
}

static void
check_add_special(fixture *f)
{
  size_t n_plain;

  f->ids.n = 0;
  KS_ASSERT_OK(ks_tokenizer_encode(f->tok, "a b", 3, 0, &f->ids, NULL));
  n_plain = f->ids.n;
  f->ids.n = 0;
  KS_ASSERT_OK(ks_tokenizer_encode(f->tok, "a b", 3, KS_ENCODE_ADD_SPECIAL, &f->ids, NULL));
  KS_ASSERT_EQ(f->ids.n, n_plain + ks_tokenizer_adds_bos(f->tok));
  if (ks_tokenizer_adds_bos(f->tok))
    KS_ASSERT_EQ(f->ids.ids[0], ks_tokenizer_get_bos(f->tok));
}

/* BOS comes exactly where the file asks for it. */
KS_TEST(golden_tokenizer, add_special)
{
  walk(check_add_special);
}

int
main(int argc, char **argv)
{
  int rc;

  folders = golden_list_new("KS_GOLDEN_DIR", "KS_GOLDEN_DEFAULT");
  rc = ks_test_run_all(argc, argv);
  golden_list_free(&folders);
  return rc;
}

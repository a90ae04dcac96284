/* test-parity-tokenizer.c - records of parity/ against the real model's vocabulary: ids exact, text
 * back exact.  Records: text, ids, detokenized; or prompt, prompt_token_ids; both with add_special
 * and parse_special.  Folder: KS_PARITY_DIR, else the copy; model: KS_MODEL, else the default
 * model. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/tokenizer.h"
#include "tests/ks-test.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <limits.h>

#define DEFAULT_MODEL "keepsake/models/SmolLM2-135M-Instruct.Q4_1.gguf"

typedef struct counts {
  size_t n_text, n_prompt;
} counts;

static const char *
env_or(const char *name, const char *fallback)
{
  const char *value = getenv(name);

  return value != NULL && value[0] != '\0' ? value : fallback;
}

static void
model_path(char out[PATH_MAX])
{
  const char *model = env_or("KS_MODEL", NULL), *data = env_or("XDG_DATA_HOME", NULL);

  if (model != NULL)
    snprintf(out, PATH_MAX, "%s", model);
  else if (data != NULL)
    snprintf(out, PATH_MAX, "%s/" DEFAULT_MODEL, data);
  else
    snprintf(out, PATH_MAX, "%s/.local/share/" DEFAULT_MODEL, env_or("HOME", ""));
}

static char *
read_file(const char *path)
{
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  long n;

  if (file == NULL)
    return NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (n = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0) {
    text = (char *)malloc((size_t)n + 1);
    if (text != NULL)
      text[fread(text, 1, (size_t)n, file)] = '\0';
  }
  fclose(file);
  return text;
}

/* cJSON strings end at a NUL, and texts may hold some.  Their escapes are turned into those of a
 * noncharacter before parsing, and back into the byte afterwards. */
static void
hide_nuls(char *line)
{
  size_t n_backslash = 0;

  for (; *line != '\0'; line++) {
    if (n_backslash % 2 == 1 && strncmp(line, "u0000", 5) == 0)
      memcpy(line, "ufdd0", 5);
    n_backslash = *line == '\\' ? n_backslash + 1 : 0;
  }
}

static size_t
restore_nuls(char *text)
{
  size_t n = strlen(text), n_out = 0;

  for (size_t i = 0; i < n;) {
    bool nul = i + 3 <= n && memcmp(text + i, "\xEF\xB7\x90", 3) == 0;

    text[n_out++] = nul ? '\0' : text[i];
    i += nul ? 3 : 1;
  }
  return n_out;
}

static void
check_ids(const char *id, const ks_token_list *got, const cJSON *want)
{
  size_t i = 0;
  const cJSON *item;

  cJSON_ArrayForEach(item, want)
  {
    if (i < got->n && got->ids[i] != item->valueint)
      KS_FAIL("%s: id %zu is %d, want %d", id, i, got->ids[i], item->valueint);
    i++;
  }
  if (i != got->n)
    KS_FAIL("%s: %zu ids, want %zu", id, got->n, i);
}

static void
check_record(const ks_tokenizer *tok, ks_alloc *a, const cJSON *record, counts *done)
{
  const char *id = cJSON_GetStringValue(cJSON_GetObjectItem(record, "id"));
  bool is_prompt = cJSON_HasObjectItem(record, "prompt_token_ids");
  const cJSON *ids = cJSON_GetObjectItem(record, is_prompt ? "prompt_token_ids" : "ids");
  const cJSON *text = cJSON_GetObjectItem(record, is_prompt ? "prompt" : "text");
  const cJSON *back = cJSON_GetObjectItem(record, "detokenized");
  uint32_t flags = 0;
  ks_token_list list;
  char *got = NULL;
  size_t n, n_got = 0;

  if (!cJSON_IsString(text) || !cJSON_IsArray(ids))
    return; /* a record of another kind */
  if (cJSON_IsTrue(cJSON_GetObjectItem(record, "add_special")))
    flags |= KS_ENCODE_ADD_SPECIAL;
  if (cJSON_IsTrue(cJSON_GetObjectItem(record, "parse_special")))
    flags |= KS_ENCODE_PARSE_SPECIAL;
  ks_token_list_init(&list, a);
  n = restore_nuls(text->valuestring);
  KS_ASSERT_OK(ks_tokenizer_encode(tok, text->valuestring, n, flags, &list, NULL));
  check_ids(id != NULL ? id : "record", &list, ids);
  if (cJSON_IsString(back)) {
    n = restore_nuls(back->valuestring);
    KS_ASSERT_OK(ks_tokenizer_decode(tok, a, list.ids, list.n, true, &got, &n_got, NULL));
    if (n_got != n || memcmp(got, back->valuestring, n) != 0)
      KS_FAIL("%s: came back as \"%s\", want \"%s\"", id != NULL ? id : "record", got,
              back->valuestring);
    ks_mem_free(got);
  }
  ks_token_list_done(&list);
  *(is_prompt ? &done->n_prompt : &done->n_text) += 1;
}

static void
check_file(const ks_tokenizer *tok, ks_alloc *a, const char *path, counts *done)
{
  char *text = read_file(path), *line = text, *end;

  if (text == NULL)
    KS_FAIL("cannot read %s", path);
  for (; *line != '\0'; line = end) {
    cJSON *record;

    end = strchr(line, '\n');
    end = end != NULL ? end : line + strlen(line);
    if (*end == '\n')
      *end++ = '\0';
    if (*line == '\0')
      continue;
    hide_nuls(line);
    record = cJSON_Parse(line);
    if (record == NULL)
      KS_FAIL("%s: a line is not JSON", path);
    check_record(tok, a, record, done);
    cJSON_Delete(record);
  }
  free(text);
}

static void
check_folder(const ks_tokenizer *tok, ks_alloc *a, counts *done)
{
  const char *folder = env_or("KS_PARITY_DIR", env_or("KS_PARITY_DEFAULT", "parity"));
  DIR *dir = opendir(folder);
  const struct dirent *entry;

  if (dir == NULL)
    KS_FAIL("cannot open the folder %s", folder);
  while ((entry = readdir(dir)) != NULL) {
    size_t n = strlen(entry->d_name);
    char path[PATH_MAX];

    if (n < 7 || strcmp(entry->d_name + n - 6, ".jsonl") != 0)
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    check_file(tok, a, path, done);
  }
  closedir(dir);
  printf("# %s: %zu texts, %zu prompts\n", folder, done->n_text, done->n_prompt);
  if (done->n_text + done->n_prompt == 0)
    KS_FAIL("no tokenizer record lies in %s", folder);
}

/* Every record of every file, exactly; a folder without any is a failure. */
KS_TEST(parity, tokenizer_records)
{
  ks_alloc *a = ks_alloc_new();
  ks_gguf *g = NULL;
  ks_tokenizer *tok = NULL;
  counts done = {0, 0};
  char path[PATH_MAX];
  ks_error err;

  model_path(path);
  if (ks_gguf_open(a, path, &g, &err) != KS_OK)
    KS_FAIL("the default model is needed at %s (./test.sh fetches it; KS_MODEL names another): %s",
            path, err.text);
  if (ks_tokenizer_new(a, g, &tok, &err) != KS_OK)
    KS_FAIL("%s: %s", path, err.text);
  check_folder(tok, a, &done);
  ks_tokenizer_free(tok);
  ks_gguf_close(g);
  ks_alloc_free(a);
}

KS_TEST_MAIN

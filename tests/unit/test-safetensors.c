/* test-safetensors.c - gate files: what is read, refused and written. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/safetensors.h"
#include "tests/ks-test.h"

#include <dirent.h>
#include <unistd.h>

/* Bytes of a file with this header and n_data data bytes 0, 1, 2...; aligned and exact. */
static unsigned char *
make_bytes(const char *header, size_t n_data, size_t *out_n)
{
  size_t n_header = strlen(header);
  unsigned char *data = malloc(8 + n_header + n_data);

  KS_ASSERT(data != NULL);
  for (int i = 0; i < 8; i++)
    data[i] = (unsigned char)((uint64_t)n_header >> (8 * i));
  memcpy(data + 8, header, n_header);
  for (size_t i = 0; i < n_data; i++)
    data[8 + n_header + i] = (unsigned char)i;
  *out_n = 8 + n_header + n_data;
  return data;
}

#define ENTRY(name, dtype, shape, begin, end)                                                      \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end   \
  "]}"

static const char good_header[] =
    "{" ENTRY("b", "BF16", "[2,2]", 8, 16) ",\"__metadata__\":{\"k\":\"v\\u00e4\"}," ENTRY(
        "a", "F32", "[2]", 0, 8) "," ENTRY("c", "F16", "[]", 16, 18) "}   ";

/* All three types are read as f32, whatever the order in the header. */
KS_TEST(safetensors, reads)
{
  ks_alloc *a = ks_alloc_new();
  size_t n;
  unsigned char *data = make_bytes(good_header, 18, &n);
  const ks_st_tensor *b;
  ks_safetensors *st;
  float values[4];

  memcpy(data + n - 18,
         (const unsigned char[18]){0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0,       /* 1, -2 */
                                   0x80, 0x3f, 0, 0, 0x40, 0xc0, 0, 0x40, /* bf16 */
                                   0, 0x3c},                              /* f16 1 */
         18);
  KS_ASSERT_OK(ks_safetensors_open_bytes(a, data, n, &st, NULL));
  KS_ASSERT_EQ(ks_safetensors_get_n(st), 3);
  KS_ASSERT_STR(ks_safetensors_get(st, 0)->name, "a");
  KS_ASSERT(ks_safetensors_get(st, 3) == NULL && ks_safetensors_find(st, "d") == NULL);
  b = ks_safetensors_find(st, "b");
  KS_ASSERT(b != NULL && b->n_dims == 2 && b->shape[0] == 2 && b->shape[1] == 2);
  KS_ASSERT_OK(ks_safetensors_read_f32(st, b, values, 4, NULL));
  KS_ASSERT(values[0] == 1 && values[1] == 0 && values[2] == -3 && values[3] == 2);
  KS_ASSERT_OK(ks_safetensors_read_f32(st, ks_safetensors_find(st, "a"), values, 2, NULL));
  KS_ASSERT(values[0] == 1 && values[1] == -2);
  KS_ASSERT_OK(ks_safetensors_read_f32(st, ks_safetensors_find(st, "c"), values, 1, NULL));
  KS_ASSERT(values[0] == 1);
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_safetensors_read_f32(st, b, values, 3, NULL));
  KS_ASSERT_STR(ks_safetensors_get_metadata(st, "k"), "v\xc3\xa4");
  KS_ASSERT(ks_safetensors_get_metadata(st, "v") == NULL);
  ks_safetensors_close(st);
  free(data);
  ks_alloc_free(a);
}

static void
refuse(ks_status want, const char *header, size_t n_data, const char *message)
{
  ks_alloc *a = ks_alloc_new();
  ks_safetensors *st = NULL;
  size_t n;
  unsigned char *data = make_bytes(header, n_data, &n);
  ks_error err = {.text = ""};

  KS_ASSERT_STATUS(want, ks_safetensors_open_bytes(a, data, n, &st, &err));
  KS_ASSERT(st == NULL);
  if (strstr(err.text, message) == NULL)
    KS_FAIL("message \"%s\" does not say \"%s\"", err.text, message);
  free(data);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_HOST), 0);
  ks_alloc_free(a);
}

/* Offsets, overlaps, gaps, shapes, types and duplicates are checked. */
KS_TEST(safetensors, hostile_entries)
{
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[2]", 0, 8) "}", 7, "cut short");
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[2]", 0, 8) "}", 9, "no tensor");
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[2]", 4, 12) "}", 12, "gap");
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[2]", 8, 0) "}", 8, "data_offsets");
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[2]", -8, 0) "}", 8, "data_offsets");
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[2]", 0.5, 8) "}", 8, "data_offsets");
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[2]", 0, 1e300) "}", 8, "data_offsets");
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[3]", 0, 8) "}", 8, "its shape needs 12");
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[0]", 0, 0) "}", 0, "impossible shape");
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[4294967296,4294967296]", 0, 8) "}", 8,
         "impossible shape");
  refuse(KS_ERR_UNSUPPORTED, "{" ENTRY("a", "F32", "[1,1,1,1,2]", 0, 8) "}", 8, "4 dimensions");
  refuse(KS_ERR_UNSUPPORTED, "{" ENTRY("a", "I64", "[1]", 0, 8) "}", 8, "a is I64");
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[1]", 0, 4) "," ENTRY("a", "F32", "[1]", 4, 8) "}",
         8, "a occurs twice");
  refuse(KS_ERR_FORMAT, "{" ENTRY("a", "F32", "[2]", 0, 8) "," ENTRY("b", "F32", "[1]", 4, 8) "}",
         8, "overlaps");
  refuse(KS_ERR_FORMAT, "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "data_offsets");
  refuse(KS_ERR_FORMAT, "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "no dtype");
  refuse(KS_ERR_FORMAT, "{\"a\":[1]}", 8, "no object");
  refuse(KS_ERR_FORMAT, "{\"\":{}}", 0, "name");
  refuse(KS_ERR_FORMAT, "{\"__metadata__\":{\"a\":1}}", 0, "texts");
  refuse(KS_ERR_FORMAT, "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice");
}

/* A header that is no JSON, too deep or too long is refused before it costs anything. */
KS_TEST(safetensors, hostile_header)
{
  static char deep[200001];
  ks_alloc *a = ks_alloc_new();
  static const unsigned char huge[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, '{', '}'};
  ks_safetensors *st = NULL;

  memset(deep, '[', sizeof deep - 1);
  refuse(KS_ERR_FORMAT, deep, 0, "nested");
  refuse(KS_ERR_FORMAT, "[]", 0, "JSON object");
  refuse(KS_ERR_FORMAT, "{", 0, "not a safetensors");
  refuse(KS_ERR_FORMAT, "{} x", 0, "JSON object");
  refuse(KS_ERR_FORMAT, "{\"a\":", 0, "JSON object");
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_safetensors_open_bytes(a, huge, sizeof huge, &st, NULL));
  ks_alloc_free(a);
}

/* Cut at any byte it is refused. */
KS_TEST(safetensors, cut_at_every_byte)
{
  ks_alloc *a = ks_alloc_new();
  size_t n;
  unsigned char *data = make_bytes(good_header, 18, &n);

  for (size_t cut = 0; cut < n; cut++) {
    unsigned char *copy = malloc(cut + 1);
    ks_safetensors *st = NULL;

    KS_ASSERT(copy != NULL);
    memcpy(copy, data, cut);
    KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_safetensors_open_bytes(a, copy, cut, &st, NULL));
    free(copy);
  }
  free(data);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_HOST), 0);
  ks_alloc_free(a);
}

/* NaN and infinity are refused when a tensor is read. */
KS_TEST(safetensors, not_a_number)
{
  ks_alloc *a = ks_alloc_new();
  size_t n;
  unsigned char *data = make_bytes("{" ENTRY("a", "F32", "[2]", 0, 8) "}", 8, &n);
  ks_safetensors *st;
  float values[2];
  ks_error err;

  memcpy(data + n - 8, (const float[]){1, INFINITY}, 8);
  KS_ASSERT_OK(ks_safetensors_open_bytes(a, data, n, &st, NULL));
  KS_ASSERT_STATUS(KS_ERR_FORMAT,
                   ks_safetensors_read_f32(st, ks_safetensors_get(st, 0), values, 2, &err));
  KS_ASSERT(strstr(err.text, "element 1") != NULL);
  ks_safetensors_close(st);
  free(data);
  ks_alloc_free(a);
}

/* What is written comes back, over an older file, and nothing is left beside it. */
KS_TEST(safetensors, writes)
{
  static const float values[6] = {1, -2, 3.5f, 0, 1e-30f, 6}, more[1] = {7};
  static const char *const metadata[] = {"base_model", "x \"y\"\n", "k", "", NULL};
  const ks_st_tensor tensors[] = {{.name = "w \xc3\xa4",
                                   .n_dims = 2,
                                   .shape = {2, 3},
                                   .data = (const unsigned char *)values,
                                   .n_bytes = 24},
                                  {.name = "bias",
                                   .n_dims = 1,
                                   .shape = {1},
                                   .data = (const unsigned char *)more,
                                   .n_bytes = 4}};
  char folder[] = "/tmp/ks-test-st-XXXXXX", path[64], left[96];
  ks_alloc *a = ks_alloc_new();
  ks_safetensors *st;
  float got[6];
  int n_files = 0;
  DIR *dir;

  KS_ASSERT(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/gate.safetensors", folder);
  KS_ASSERT_OK(ks_safetensors_write(a, path, tensors, 1, NULL, NULL));
  /* A process that was killed while it wrote may have had this one's number. */
  snprintf(left, sizeof left, "%s.%ld.part", path, (long)getpid());
  KS_ASSERT_EQ(rename(path, left), 0);
  KS_ASSERT_OK(ks_safetensors_write(a, path, tensors, 2, metadata, NULL));
  KS_ASSERT_OK(ks_safetensors_open(a, path, &st, NULL));
  KS_ASSERT_EQ(ks_safetensors_get_n(st), 2);
  KS_ASSERT_STR(ks_safetensors_get_metadata(st, "base_model"), "x \"y\"\n");
  KS_ASSERT_OK(ks_safetensors_read_f32(st, ks_safetensors_find(st, "w \xc3\xa4"), got, 6, NULL));
  KS_ASSERT_EQ(memcmp(got, values, sizeof values), 0);
  KS_ASSERT_EQ((uintptr_t)ks_safetensors_get(st, 0)->data % 8, 0);
  KS_ASSERT_EQ(truncate(path, 20), 0);
  KS_ASSERT_STATUS(KS_ERR_IO,
                   ks_safetensors_read_f32(st, ks_safetensors_find(st, "bias"), got, 1, NULL));
  ks_safetensors_close(st);
  dir = opendir(folder);
  while (readdir(dir) != NULL)
    n_files++;
  closedir(dir);
  KS_ASSERT_EQ(n_files, 3); /* ".", ".." and the file */
  KS_ASSERT_STATUS(KS_ERR_IO, ks_safetensors_write(a, "/nowhere/x", tensors, 1, NULL, NULL));
  unlink(path);
  KS_ASSERT_EQ(rmdir(folder), 0);
  ks_alloc_free(a);
}

/* A failure at any allocation leaves nothing behind. */
KS_TEST(safetensors, no_memory)
{
  ks_alloc *a = ks_alloc_new();
  size_t n;
  unsigned char *data = make_bytes(good_header, 18, &n);
  ks_safetensors *st = NULL;
  ks_status status = KS_ERR_NOMEM;
  int n_tries = 0;

  for (; status != KS_OK; n_tries++) {
    ks_alloc_fail_after(a, n_tries);
    status = ks_safetensors_open_bytes(a, data, n, &st, NULL);
    KS_ASSERT(status == KS_OK || (status == KS_ERR_NOMEM && st == NULL));
    KS_ASSERT(status == KS_OK || ks_alloc_get_bytes(a, KS_MEM_HOST) == 0);
  }
  KS_ASSERT_EQ(n_tries, 6); /* five blocks */
  ks_safetensors_close(st);
  free(data);
  ks_alloc_free(a);
}

KS_TEST_MAIN

/* test-gguf.c - the GGUF reader: what it reads, what it refuses, and that nothing crashes it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gguf-write.h"
#include "tests/ks-test.h"

#include <unistd.h>

static const float data_a[64] = {1, 2, 3};
static const unsigned char data_b[2 * 18] = {9};

/* A small file with a key of every type and two tensors. */
static ks_gguf_writer *
make_writer(ks_alloc *a, uint32_t alignment)
{
  static const char *const texts[] = {"one", "", "three"};
  static const uint64_t ne_a[] = {16, 4}, ne_b[] = {32, 1, 2};
  static const uint8_t u8 = 200;
  static const int8_t i8 = -3;
  static const uint16_t u16 = 65000;
  static const int16_t i16 = -300;
  static const int32_t i32 = -70000, layers[] = {4, -2, 6};
  static const uint64_t u64 = UINT64_MAX;
  static const int64_t i64 = INT64_MAX;
  static const double f64 = 0.1, wide = 1e300;
  static const float scores[] = {0.5f, -1.5f};
  static const uint8_t pattern[] = {1, 0};
  ks_gguf_writer *w = ks_gguf_writer_new(a, alignment);

  KS_ASSERT(w != NULL);
  ks_gguf_writer_add_str(w, "general.architecture", "llama");
  ks_gguf_writer_add(w, "k.u8", KS_GGUF_U8, &u8);
  ks_gguf_writer_add(w, "k.i8", KS_GGUF_I8, &i8);
  ks_gguf_writer_add(w, "k.u16", KS_GGUF_U16, &u16);
  ks_gguf_writer_add(w, "k.i16", KS_GGUF_I16, &i16);
  ks_gguf_writer_add_u32(w, "k.u32", 4000000000u);
  ks_gguf_writer_add(w, "k.i32", KS_GGUF_I32, &i32);
  ks_gguf_writer_add(w, "k.u64", KS_GGUF_U64, &u64);
  ks_gguf_writer_add(w, "k.i64", KS_GGUF_I64, &i64);
  ks_gguf_writer_add_f32(w, "k.f32", 2.5f);
  ks_gguf_writer_add(w, "k.f64", KS_GGUF_F64, &f64);
  ks_gguf_writer_add(w, "k.wide", KS_GGUF_F64, &wide);
  ks_gguf_writer_add_bool(w, "k.bool", true);
  ks_gguf_writer_add_array(w, "k.layers", KS_GGUF_I32, layers, 3);
  ks_gguf_writer_add_array(w, "k.scores", KS_GGUF_F32, scores, 2);
  ks_gguf_writer_add_array(w, "k.pattern", KS_GGUF_BOOL, pattern, 2);
  ks_gguf_writer_add_array(w, "k.none", KS_GGUF_U32, NULL, 0);
  ks_gguf_writer_add_str_array(w, "k.texts", texts, 3);
  ks_gguf_writer_add_tensor(w, "a.weight", KS_DTYPE_F32, 2, ne_a, data_a);
  ks_gguf_writer_add_tensor(w, "b.weight", KS_DTYPE_Q4_0, 3, ne_b, data_b);
  return w;
}

static unsigned char *
make_bytes(ks_alloc *a, uint32_t alignment, size_t *out_n)
{
  ks_gguf_writer *w = make_writer(a, alignment);
  unsigned char *data;

  KS_ASSERT_OK(ks_gguf_writer_get_bytes(w, &data, out_n, NULL));
  ks_gguf_writer_free(w);
  return data;
}

static void
check_keys(const ks_gguf *g)
{
  uint64_t u64 = 7;
  uint32_t u32 = 7;
  int64_t i64;
  double f64;
  float f32;
  bool flag = false;
  ks_gguf_str s;
  size_t cursor = 0;
  const ks_gguf_key *texts = ks_gguf_find_key(g, "k.texts");

  KS_ASSERT(ks_gguf_get_str(g, "general.architecture", &s) && ks_gguf_str_equal(s, "llama"));
  KS_ASSERT(!ks_gguf_str_equal(s, "llam") && !ks_gguf_str_equal(s, "llama3"));
  KS_ASSERT(ks_gguf_get_u64(g, "k.u8", &u64) && u64 == 200);
  KS_ASSERT(ks_gguf_get_u64(g, "k.u16", &u64) && u64 == 65000);
  KS_ASSERT(ks_gguf_get_u32(g, "k.u32", &u32) && u32 == 4000000000u);
  KS_ASSERT(ks_gguf_get_u64(g, "k.u64", &u64) && u64 == UINT64_MAX);
  KS_ASSERT(!ks_gguf_get_u32(g, "k.u64", &u32) && !ks_gguf_get_u64(g, "k.i8", &u64));
  KS_ASSERT(!ks_gguf_get_u64(g, "k.f32", &u64) && !ks_gguf_get_u64(g, "k.absent", &u64));
  KS_ASSERT(!ks_gguf_get_u64(g, "k.bool", &u64) && u64 == UINT64_MAX);
  KS_ASSERT(ks_gguf_key_get_i64(ks_gguf_find_key(g, "k.i8"), 0, &i64) && i64 == -3);
  KS_ASSERT(ks_gguf_key_get_i64(ks_gguf_find_key(g, "k.i16"), 0, &i64) && i64 == -300);
  KS_ASSERT(ks_gguf_key_get_i64(ks_gguf_find_key(g, "k.i32"), 0, &i64) && i64 == -70000);
  KS_ASSERT(ks_gguf_key_get_i64(ks_gguf_find_key(g, "k.i64"), 0, &i64) && i64 == INT64_MAX);
  KS_ASSERT(!ks_gguf_key_get_i64(ks_gguf_find_key(g, "k.u64"), 0, &i64));
  KS_ASSERT(ks_gguf_key_get_i64(ks_gguf_find_key(g, "k.layers"), 1, &i64) && i64 == -2);
  KS_ASSERT(!ks_gguf_key_get_i64(ks_gguf_find_key(g, "k.layers"), 3, &i64));
  KS_ASSERT(ks_gguf_key_get_i64(ks_gguf_find_key(g, "k.pattern"), 0, &i64) && i64 == 1);
  KS_ASSERT(!ks_gguf_key_get_i64(ks_gguf_find_key(g, "k.none"), 0, &i64));
  KS_ASSERT(ks_gguf_get_f32(g, "k.f32", &f32) && f32 == 2.5f);
  KS_ASSERT(ks_gguf_get_f32(g, "k.f64", &f32) && f32 == 0.1f);
  KS_ASSERT(!ks_gguf_get_f32(g, "k.wide", &f32) && !ks_gguf_get_f32(g, "k.u32", &f32));
  KS_ASSERT(ks_gguf_key_get_f64(ks_gguf_find_key(g, "k.scores"), 1, &f64) && f64 == -1.5);
  KS_ASSERT(!ks_gguf_key_get_f64(ks_gguf_find_key(g, "k.layers"), 0, &f64));
  KS_ASSERT(ks_gguf_get_bool(g, "k.bool", &flag) && flag && !ks_gguf_get_bool(g, "k.u8", &flag));
  KS_ASSERT(ks_gguf_key_next_str(texts, &cursor, &s) && ks_gguf_str_equal(s, "one"));
  KS_ASSERT(ks_gguf_key_next_str(texts, &cursor, &s) && s.n_bytes == 0);
  KS_ASSERT(ks_gguf_key_next_str(texts, &cursor, &s) && ks_gguf_str_equal(s, "three"));
  KS_ASSERT(!ks_gguf_key_next_str(texts, &cursor, &s));
}

static void
check_tensors(const ks_gguf *g)
{
  const ks_gguf_tensor *a = ks_gguf_find_tensor(g, "a.weight");
  const ks_gguf_tensor *b = ks_gguf_find_tensor(g, "b.weight");

  KS_ASSERT_EQ(ks_gguf_get_n_tensors(g), 2);
  KS_ASSERT(a != NULL && b != NULL && ks_gguf_find_tensor(g, "c") == NULL);
  KS_ASSERT(ks_gguf_get_tensor(g, 0) == a && ks_gguf_get_tensor(g, 2) == NULL);
  KS_ASSERT_EQ(a->n_bytes, 256);
  KS_ASSERT_EQ(a->row_bytes, 64);
  KS_ASSERT_EQ(memcmp(a->data, data_a, sizeof data_a), 0);
  KS_ASSERT_EQ(b->dtype, KS_DTYPE_Q4_0);
  KS_ASSERT_EQ(b->n_dims, 3);
  KS_ASSERT(b->ne[0] == 32 && b->ne[1] == 1 && b->ne[2] == 2 && b->ne[3] == 1);
  KS_ASSERT_EQ(memcmp(b->data, data_b, sizeof data_b), 0);
}

/* Keys of every type and tensors come back as they were written, for any alignment. */
KS_TEST(gguf, reads_what_was_written)
{
  static const uint32_t alignments[] = {0, 8, 64, 4096};
  ks_alloc *a = ks_alloc_new();

  for (size_t i = 0; i < 4; i++) {
    size_t n;
    unsigned char *data = make_bytes(a, alignments[i], &n);
    ks_gguf *g;

    KS_ASSERT_OK(ks_gguf_open_bytes(a, data, n, &g, NULL));
    KS_ASSERT_EQ(ks_gguf_get_version(g), 3);
    KS_ASSERT_EQ(ks_gguf_get_n_keys(g), alignments[i] != 0 ? 19 : 18);
    KS_ASSERT_EQ(ks_gguf_get_mapped_bytes(g), n);
    KS_ASSERT_OK(ks_gguf_check_alive(g, NULL));
    check_keys(g);
    check_tensors(g);
    ks_gguf_close(g);
    ks_mem_free(data);
  }
  ks_alloc_free(a);
}

/* A file cut at any byte is refused: it never crashes and never opens.  The last tensor ends the
 * file, so only padding after it may be missing. */
KS_TEST(gguf, cut_at_every_byte)
{
  ks_alloc *a = ks_alloc_new();
  size_t n, used;
  unsigned char *data = make_bytes(a, 8, &n);
  ks_gguf *g;

  KS_ASSERT_OK(ks_gguf_open_bytes(a, data, n, &g, NULL));
  used = (size_t)(ks_gguf_get_tensor(g, 1)->data - data) + sizeof data_b;
  ks_gguf_close(g);
  for (size_t cut = 0; cut < used; cut++) {
    /* A block of its own size, so that a sanitizer sees the first byte too many. */
    unsigned char *copy = malloc(cut + 1);
    ks_error err;

    KS_ASSERT(copy != NULL);
    memcpy(copy, data, cut);
    g = NULL;
    KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_gguf_open_bytes(a, copy, cut, &g, &err));
    KS_ASSERT(g == NULL && err.text[0] != '\0');
    free(copy);
  }
  ks_mem_free(data);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_HOST), 0);
  ks_alloc_free(a);
}

/* Finds the bytes of text in the file and returns where they begin. */
static unsigned char *
find_bytes(unsigned char *data, size_t n, const char *text)
{
  unsigned char *at = memmem(data, n, text, strlen(text));

  KS_ASSERT(at != NULL);
  return at;
}

static void
refuse_bytes(ks_alloc *a, unsigned char *data, size_t n, ks_status want, const char *message)
{
  ks_gguf *g = NULL;
  ks_error err;

  KS_ASSERT_STATUS(want, ks_gguf_open_bytes(a, data, n, &g, &err));
  KS_ASSERT(g == NULL);
  if (strstr(err.text, message) == NULL)
    KS_FAIL("message \"%s\" does not say \"%s\"", err.text, message);
  ks_mem_free(data);
}

static void
refuse_writer(ks_gguf_writer *w, ks_alloc *a, ks_status want, const char *message)
{
  unsigned char *data;
  size_t n;

  KS_ASSERT_OK(ks_gguf_writer_get_bytes(w, &data, &n, NULL));
  ks_gguf_writer_free(w);
  refuse_bytes(a, data, n, want, message);
}

/* Writes value over n_bytes bytes at `after` bytes behind text, and wants the file refused. */
static void
refuse(ks_status want, const char *text, size_t after, uint64_t value, size_t n_bytes,
       const char *message)
{
  ks_alloc *a = ks_alloc_new();
  size_t n;
  unsigned char *data = make_bytes(a, 0, &n), *at = find_bytes(data, n, text) + after;

  for (size_t i = 0; i < n_bytes; i++)
    at[i] = (unsigned char)(value >> (8 * i));
  refuse_bytes(a, data, n, want, message);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_HOST), 0);
  ks_alloc_free(a);
}

/* Every number in the header is checked before it is used. */
KS_TEST(gguf, hostile_header)
{
  refuse(KS_ERR_FORMAT, "GGUF", 0, 'X', 1, "not a GGUF");
  refuse(KS_ERR_UNSUPPORTED, "GGUF", 4, 1, 4, "version 1");
  refuse(KS_ERR_UNSUPPORTED, "GGUF", 4, 4, 4, "version 4");
  refuse(KS_ERR_UNSUPPORTED, "GGUF", 4, 0x03000000, 4, "big-endian");
  refuse(KS_ERR_FORMAT, "GGUF", 8, UINT64_MAX, 8, "too short");
  refuse(KS_ERR_FORMAT, "GGUF", 8, 3, 8, "tensor");
  refuse(KS_ERR_FORMAT, "GGUF", 16, UINT64_MAX, 8, "too short");
  refuse(KS_ERR_FORMAT, "GGUF", 16, UINT64_C(1) << 32, 8, "too short");
}

/* Lengths of strings and arrays, unknown types, arrays of arrays, names that occur twice. */
KS_TEST(gguf, hostile_keys)
{
  refuse(KS_ERR_FORMAT, "general.arch", 20, 99, 4, "type 99");
  refuse(KS_ERR_FORMAT, "general.arch", 24, UINT64_MAX, 8, "general.architecture");
  refuse(KS_ERR_FORMAT, "k.u8", 4, 99, 4, "type 99");
  refuse(KS_ERR_FORMAT, "k.i8", 2, 'u', 1, "k.u8 occurs twice");
  refuse(KS_ERR_UNSUPPORTED, "k.layers", 12, KS_GGUF_ARRAY, 4, "array of type 9");
  refuse(KS_ERR_FORMAT, "k.layers", 16, UINT64_MAX, 8, "k.layers is longer");
  refuse(KS_ERR_FORMAT, "k.layers", 16, UINT64_MAX / 4 + 2, 8, "k.layers is longer");
  refuse(KS_ERR_FORMAT, "k.texts", 15, UINT64_MAX, 8, "k.texts is longer");
  refuse(KS_ERR_FORMAT, "k.texts", 23, UINT64_MAX - 20, 8, "k.texts is longer");
}

/* Shapes that are empty or overflow, half blocks, offsets outside or unaligned, unknown types. */
KS_TEST(gguf, hostile_tensors)
{
  refuse(KS_ERR_FORMAT, "b.weight", 0, 'a', 1, "a.weight occurs twice");
  refuse(KS_ERR_FORMAT, "b.weight", 3, 0, 1, "no usable name");
  refuse(KS_ERR_FORMAT, "a.weight", 8, 0, 4, "0 dimensions");
  refuse(KS_ERR_FORMAT, "a.weight", 8, 5, 4, "5 dimensions");
  refuse(KS_ERR_FORMAT, "a.weight", 12, 0, 8, "impossible shape");
  refuse(KS_ERR_FORMAT, "b.weight", 28, 0, 8, "impossible shape");
  refuse(KS_ERR_FORMAT, "a.weight", 12, UINT64_C(1) << 61, 8, "a.weight");
  refuse(KS_ERR_FORMAT, "a.weight", 20, UINT64_C(1) << 62, 8, "impossible shape");
  refuse(KS_ERR_FORMAT, "a.weight", 20, UINT64_C(1) << 58, 8, "impossibly large");
  refuse(KS_ERR_FORMAT, "a.weight", 20, 1000, 8, "after the end of the file");
  refuse(KS_ERR_FORMAT, "b.weight", 12, 48, 8, "no multiple of the 32");
  refuse(KS_ERR_UNSUPPORTED, "b.weight", 36, 16, 4, "b.weight has the type 16 (IQ2_XXS)");
  refuse(KS_ERR_UNSUPPORTED, "b.weight", 36, UINT32_MAX, 4, "unknown");
  refuse(KS_ERR_FORMAT, "b.weight", 40, 8, 8, "multiple of 32");
  refuse(KS_ERR_FORMAT, "b.weight", 40, 1024, 8, "after the end of the file");
  refuse(KS_ERR_FORMAT, "b.weight", 40, UINT64_MAX - 31, 8, "after the end of the file");
}

/* The alignment must be a power of two from 8 on, and a number. */
KS_TEST(gguf, hostile_alignment)
{
  static const uint32_t bad[] = {1, 4, 24, 33, 0x80000001u};
  ks_alloc *a = ks_alloc_new();
  ks_gguf_writer *w;

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    w = ks_gguf_writer_new(a, 0);
    ks_gguf_writer_add_u32(w, "general.alignment", bad[i]);
    refuse_writer(w, a, KS_ERR_FORMAT, "power of two");
  }
  w = ks_gguf_writer_new(a, 0);
  ks_gguf_writer_add_u32(w, "general.alignment", 0);
  refuse_writer(w, a, KS_ERR_FORMAT, "power of two");
  w = ks_gguf_writer_new(a, 0);
  ks_gguf_writer_add_str(w, "general.alignment", "32");
  refuse_writer(w, a, KS_ERR_FORMAT, "not a number");
  ks_alloc_free(a);
}

/* A message shows a hostile name without its control bytes and broken UTF-8. */
KS_TEST(gguf, messages_are_text)
{
  ks_alloc *a = ks_alloc_new();
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);

  ks_gguf_writer_add_u32(w, "\x1b[31m\xff\xc3\xa4", 1);
  ks_gguf_writer_add_u32(w, "\x1b[31m\xff\xc3\xa4", 1);
  refuse_writer(w, a, KS_ERR_FORMAT, "key ?[31m?\xc3\xa4 occurs twice");
  ks_alloc_free(a);
}

/* Names in any number and order are found again, and a duplicate among many shows. */
KS_TEST(gguf, many_names)
{
  ks_alloc *a = ks_alloc_new();
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);
  unsigned char *data;
  ks_gguf *g;
  size_t n;

  for (uint32_t i = 0; i < 1000; i++) {
    char name[32];

    snprintf(name, sizeof name, "k%u", i * 7919 % 1000);
    ks_gguf_writer_add_u32(w, name, i * 7919 % 1000);
  }
  KS_ASSERT_OK(ks_gguf_writer_get_bytes(w, &data, &n, NULL));
  KS_ASSERT_OK(ks_gguf_open_bytes(a, data, n, &g, NULL));
  for (uint32_t i = 0; i < 1000; i++) {
    char name[32];
    uint32_t value;

    snprintf(name, sizeof name, "k%u", i);
    KS_ASSERT(ks_gguf_get_u32(g, name, &value) && value == i);
  }
  KS_ASSERT(ks_gguf_find_key(g, "k1000") == NULL && ks_gguf_find_key(g, "") == NULL);
  ks_gguf_close(g);
  ks_mem_free(data);
  ks_gguf_writer_add_u32(w, "k500", 1);
  refuse_writer(w, a, KS_ERR_FORMAT, "k500 occurs twice");
  ks_alloc_free(a);
}

/* Parts of a split file in a folder of their own; the names of the parts in paths. */
typedef struct split_files {
  char folder[64], paths[3][128];
} split_files;

static split_files
make_split(ks_alloc *a)
{
  split_files files = {.folder = "/tmp/ks-test-gguf-XXXXXX"};
  static const uint64_t ne_a[] = {16, 4};
  ks_gguf_writer *w = make_writer(a, 64);
  char prefix[80];

  KS_ASSERT(mkdtemp(files.folder) != NULL);
  ks_gguf_writer_add_tensor(w, "c.weight", KS_DTYPE_F32, 2, ne_a, data_a);
  snprintf(prefix, sizeof prefix, "%s/m", files.folder);
  KS_ASSERT_OK(ks_gguf_writer_save_split(w, prefix, 3, NULL));
  for (int i = 0; i < 3; i++)
    snprintf(files.paths[i], sizeof files.paths[i], "%s-0000%d-of-00003.gguf", prefix, i + 1);
  ks_gguf_writer_free(w);
  return files;
}

static void
remove_split(split_files *files)
{
  for (int i = 0; i < 3; i++)
    unlink(files->paths[i]);
  KS_ASSERT_EQ(rmdir(files->folder), 0);
}

/* A split file opens by its first part as if it were one. */
KS_TEST(gguf, split_file)
{
  ks_alloc *a = ks_alloc_new();
  split_files files = make_split(a);
  ks_gguf *g;

  KS_ASSERT_OK(ks_gguf_open(a, files.paths[0], &g, NULL));
  KS_ASSERT_EQ(ks_gguf_get_n_tensors(g), 3);
  KS_ASSERT_EQ(memcmp(ks_gguf_find_tensor(g, "c.weight")->data, data_a, sizeof data_a), 0);
  KS_ASSERT_EQ(memcmp(ks_gguf_find_tensor(g, "b.weight")->data, data_b, sizeof data_b), 0);
  check_keys(g);
  KS_ASSERT_EQ(truncate(files.paths[2], 100), 0);
  KS_ASSERT_STATUS(KS_ERR_IO, ks_gguf_check_alive(g, NULL));
  ks_gguf_close(g);
  remove_split(&files);
  ks_alloc_free(a);
}

/* A missing, renamed, foreign or wrong first part is refused with its name. */
KS_TEST(gguf, split_file_refused)
{
  ks_alloc *a = ks_alloc_new();
  split_files files = make_split(a);
  char other[160];
  ks_gguf *g = NULL;
  ks_error err;

  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_gguf_open(a, files.paths[1], &g, &err));
  KS_ASSERT(strstr(err.text, "open part 1") != NULL);
  snprintf(other, sizeof other, "%s/renamed.gguf", files.folder);
  KS_ASSERT_EQ(rename(files.paths[0], other), 0);
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_gguf_open(a, other, &g, &err));
  KS_ASSERT(strstr(err.text, "-00001-of-00003.gguf") != NULL);
  KS_ASSERT_EQ(rename(other, files.paths[0]), 0);
  KS_ASSERT_EQ(rename(files.paths[2], other), 0);
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_gguf_open(a, files.paths[0], &g, &err));
  KS_ASSERT(strstr(err.text, "part 3 of 3 is missing") != NULL);
  KS_ASSERT(strstr(err.text, files.paths[2]) != NULL);
  KS_ASSERT_EQ(rename(files.paths[1], files.paths[2]), 0);
  KS_ASSERT_EQ(link(files.paths[2], files.paths[1]), 0);
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_gguf_open(a, files.paths[0], &g, &err));
  KS_ASSERT(strstr(err.text, "not part 3") != NULL);
  KS_ASSERT(g == NULL);
  unlink(other);
  remove_split(&files);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_HOST), 0);
  ks_alloc_free(a);
}

/* A mapped file that is cut is reported as input/output, by the check and by opening. */
KS_TEST(gguf, truncated_while_mapped)
{
  char path[] = "/tmp/ks-test-gguf-XXXXXX";
  ks_alloc *a = ks_alloc_new();
  ks_gguf_writer *w = make_writer(a, 4096);
  const unsigned char *tensor;
  unsigned sum = 0;
  ks_gguf *g;
  ks_error err;

  close(mkstemp(path));
  KS_ASSERT_OK(ks_gguf_writer_save(w, path, NULL));
  KS_ASSERT_OK(ks_gguf_open(a, path, &g, NULL));
  KS_ASSERT_OK(ks_gguf_check_alive(g, NULL));
  KS_ASSERT_EQ(truncate(path, 4096), 0);
  tensor = ks_gguf_find_tensor(g, "a.weight")->data;
  for (int i = 0; i < 256; i++)
    sum += tensor[i];
  KS_ASSERT_EQ(sum, 0); /* zeros, not a crash */
  KS_ASSERT_STATUS(KS_ERR_IO, ks_gguf_check_alive(g, &err));
  KS_ASSERT(strstr(err.text, path) != NULL);
  ks_gguf_close(g);
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_gguf_open(a, path, &g, &err)); /* now simply too short */
  KS_ASSERT(strstr(err.text, path) != NULL);
  ks_gguf_writer_free(w);
  unlink(path);
  ks_alloc_free(a);
}

/* A failure at any single allocation is an error without a leak. */
KS_TEST(gguf, no_memory)
{
  ks_alloc *a = ks_alloc_new();
  split_files files = make_split(a);
  ks_gguf *g = NULL;
  int n_failed = 0;

  for (ks_status status = KS_ERR_NOMEM; status != KS_OK; n_failed++) {
    ks_alloc_fail_after(a, n_failed);
    status = ks_gguf_open(a, files.paths[0], &g, NULL);
    KS_ASSERT(status == KS_OK || (status == KS_ERR_NOMEM && g == NULL));
    KS_ASSERT(status == KS_OK || ks_alloc_get_bytes(a, KS_MEM_HOST) == 0);
  }
  KS_ASSERT_GE(n_failed, 10);
  ks_alloc_fail_after(a, -1);
  ks_gguf_close(g);
  remove_split(&files);
  ks_alloc_free(a);
}

KS_TEST_MAIN

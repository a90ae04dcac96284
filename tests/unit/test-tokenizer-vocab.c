/* test-tokenizer-vocab.c - rules of the tokenizer on vocabularies made for each of them, and
 * hostile ones; the real ones are in the golden and parity suites. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/unit/tiny-vocab.h"

static const char *const NO_MERGES[] = {"a b"};

static void
expect_ids(const tiny_vocab *v, const char *text, uint32_t flags, const ks_token *want, size_t n)
{
  ks_token_list ids;

  ks_token_list_init(&ids, v->alloc);
  KS_ASSERT_OK(ks_tokenizer_encode(v->tok, text, strlen(text), flags, &ids, NULL));
  for (size_t i = 0; i < ids.n && i < n; i++)
    if (ids.ids[i] != want[i])
      KS_FAIL("\"%s\": id %zu is %d, want %d", text, i, ids.ids[i], want[i]);
  KS_ASSERT_EQ(ids.n, n);
  ks_token_list_done(&ids);
}

#define EXPECT(v, text, flags, ...)                                                                \
  do {                                                                                             \
    const ks_token want_[] = {__VA_ARGS__};                                                        \
    expect_ids(v, text, flags, want_, sizeof want_ / sizeof want_[0]);                             \
  } while (0)

/* The lowest rank merges first, anywhere in the piece; "ab" before "bc" here. */
KS_TEST(tokenizer, merges_by_rank)
{
  static const char *const merges[] = {"a b", "b c", "ab c", "c ab"};
  tiny_vocab v;
  ks_token ab, bc, abc;

  tiny_begin(&v, "gpt2");
  ab = tiny_add(&v, "ab", KS_TOKEN_NORMAL, 0);
  bc = tiny_add(&v, "bc", KS_TOKEN_NORMAL, 0);
  abc = tiny_add(&v, "abc", KS_TOKEN_NORMAL, 0);
  tiny_add_lists(&v);
  ks_gguf_writer_add_str(v.writer, "tokenizer.ggml.pre", "gpt-2");
  ks_gguf_writer_add_str_array(v.writer, "tokenizer.ggml.merges", merges, 4);
  KS_ASSERT_OK(tiny_open(&v, NULL));
  EXPECT(&v, "abc", 0, abc);
  EXPECT(&v, "bcab", 0, bc, ab);
  EXPECT(&v, "bbc", 0, 'b', bc);
  /* "cab" is a merge but no token: it falls back to its bytes. */
  EXPECT(&v, "cab", 0, 'c', 'a', 'b');
  EXPECT(&v, "a b", 0, 'a', ' ', 'b');
  KS_ASSERT(ks_tokenizer_get_warning(v.tok) == NULL);
  tiny_done(&v);
}

/* A word longer than the scanning limit merges with a heap: same result as merging step by step. */
KS_TEST(tokenizer, long_words_merge_like_short_ones)
{
  static const char *const merges[] = {"a b", "b a", "ab ab", "c c", "ba c", "abab c", "cc cc"};
  static const char *const tokens[] = {"ab", "ba", "abab", "cc", "bac", "ababc", "cccc"};
  enum { N = 700 };
  char text[N], parts[N][8], joined[16];
  size_t n_part = N, i = 0;
  uint32_t state = 12345;
  tiny_vocab v;
  ks_token_list ids;

  tiny_begin(&v, "gpt2");
  for (size_t t = 0; t < 7; t++)
    tiny_add(&v, tokens[t], KS_TOKEN_NORMAL, 0);
  tiny_add_lists(&v);
  ks_gguf_writer_add_str(v.writer, "tokenizer.ggml.pre", "qwen2");
  ks_gguf_writer_add_str_array(v.writer, "tokenizer.ggml.merges", merges, 7);
  KS_ASSERT_OK(tiny_open(&v, NULL));
  for (; i < N; i++) {
    state = state * 1103515245u + 12345u;
    text[i] = "abc"[(state >> 16) % 3];
    snprintf(parts[i], sizeof parts[i], "%c", text[i]);
  }
  /* Step by step: the first place of the lowest rank, until none is left. */
  for (size_t rank = 0, at; rank < 7;) {
    for (at = 0; at + 1 < n_part; at++) {
      char pair[20];

      snprintf(pair, sizeof pair, "%.7s %.7s", parts[at], parts[at + 1]);
      if (strcmp(pair, merges[rank]) == 0)
        break;
    }
    if (at + 1 >= n_part) {
      rank++;
      continue;
    }
    snprintf(joined, sizeof joined, "%.7s%.7s", parts[at], parts[at + 1]);
    memcpy(parts[at], joined, sizeof parts[at]);
    memmove(parts[at + 1], parts[at + 2], (n_part - at - 2) * sizeof parts[0]);
    n_part--;
    rank = 0;
  }
  ks_token_list_init(&ids, v.alloc);
  KS_ASSERT_OK(ks_tokenizer_encode(v.tok, text, N, 0, &ids, NULL));
  KS_ASSERT_EQ(ids.n, n_part);
  for (i = 0; i < n_part; i++)
    KS_ASSERT_EQ(ids.ids[i], ks_tokenizer_find(v.tok, parts[i], strlen(parts[i])));
  ks_token_list_done(&ids);
  tiny_done(&v);
}

/* A quarter of a megabyte without a space: seconds if quadratic, an instant if not. */
KS_TEST(tokenizer, huge_words_are_not_quadratic)
{
  static const char *const merges[] = {"a a", "aa aa"};
  enum { N = 1 << 18 };
  char *text = (char *)malloc(N);
  ks_token_list ids;
  tiny_vocab v;
  ks_token a4;

  memset(text, 'a', N);
  tiny_begin(&v, "gpt2");
  tiny_add(&v, "aa", KS_TOKEN_NORMAL, 0);
  a4 = tiny_add(&v, "aaaa", KS_TOKEN_NORMAL, 0);
  tiny_add_lists(&v);
  ks_gguf_writer_add_str(v.writer, "tokenizer.ggml.pre", "smollm");
  ks_gguf_writer_add_str_array(v.writer, "tokenizer.ggml.merges", merges, 2);
  KS_ASSERT_OK(tiny_open(&v, NULL));
  ks_token_list_init(&ids, v.alloc);
  KS_ASSERT_OK(ks_tokenizer_encode(v.tok, text, N, KS_ENCODE_PARSE_SPECIAL, &ids, NULL));
  KS_ASSERT_EQ(ids.n, N / 4);
  KS_ASSERT_EQ(ids.ids[N / 8], a4);
  ks_token_list_done(&ids);
  tiny_done(&v);
  tiny_begin(&v, "llama");
  tiny_add(&v, "a", KS_TOKEN_NORMAL, -3);
  tiny_add(&v, "aa", KS_TOKEN_NORMAL, -2);
  a4 = tiny_add(&v, "aaaa", KS_TOKEN_NORMAL, -1);
  tiny_add_lists(&v);
  KS_ASSERT_OK(tiny_open(&v, NULL));
  ks_token_list_init(&ids, v.alloc);
  KS_ASSERT_OK(ks_tokenizer_encode(v.tok, text, N, 0, &ids, NULL));
  /* The space prefix is no token here: three bytes in front. */
  KS_ASSERT_EQ(ids.n, 3 + N / 4);
  KS_ASSERT_EQ(ids.ids[N / 8], a4);
  ks_token_list_done(&ids);
  tiny_done(&v);
  free(text);
}

/* With special parsing off user-defined tokens still match, longest first; control ones do not. */
KS_TEST(tokenizer, special_tokens)
{
  tiny_vocab v;
  ks_token nl2, nl3, html, stop;

  tiny_begin(&v, "gpt2");
  nl2 = tiny_add(&v, "\n\n", KS_TOKEN_USER_DEFINED, 0);
  nl3 = tiny_add(&v, "\n\n\n", KS_TOKEN_USER_DEFINED, 0);
  html = tiny_add(&v, "<td>", KS_TOKEN_USER_DEFINED, 0);
  stop = tiny_add(&v, "<|stop|>", KS_TOKEN_CONTROL, 0);
  tiny_add_lists(&v);
  ks_gguf_writer_add_str(v.writer, "tokenizer.ggml.pre", "gpt-2");
  ks_gguf_writer_add_str_array(v.writer, "tokenizer.ggml.merges", NO_MERGES, 1);
  KS_ASSERT_OK(tiny_open(&v, NULL));
  EXPECT(&v, "a\n\n\n\n\nb", 0, 'a', nl3, nl2, 'b');
  EXPECT(&v, "<td>x<td", 0, html, 'x', '<', 't', 'd');
  EXPECT(&v, "<|stop|>", 0, '<', '|', 's', 't', 'o', 'p', '|', '>');
  EXPECT(&v, "<|stop|><|stop|\n\n", KS_ENCODE_PARSE_SPECIAL, stop, '<', '|', 's', 't', 'o', 'p',
         '|', nl2);
  tiny_done(&v);
}

/* phi-3: what follows a special token loses its leading white space, but not behind <s>. */
KS_TEST(tokenizer, phi3_swallows_white_space)
{
  tiny_vocab v;
  ks_token user, x, space_x;

  tiny_begin(&v, "llama");
  user = tiny_add(&v, "<|user|>", KS_TOKEN_CONTROL, 0);
  x = tiny_add(&v, "x", KS_TOKEN_NORMAL, -1);
  space_x = tiny_add(&v, "\xE2\x96\x81x", KS_TOKEN_NORMAL, -1);
  tiny_add(&v, "\xE2\x96\x81", KS_TOKEN_NORMAL, -2);
  tiny_add_lists(&v);
  ks_gguf_writer_add_str(v.writer, "general.architecture", "phi3");
  ks_gguf_writer_add_bool(v.writer, "tokenizer.ggml.add_bos_token", false);
  KS_ASSERT_OK(tiny_open(&v, NULL));
  EXPECT(&v, "<|user|> \n\tx", KS_ENCODE_PARSE_SPECIAL, user, space_x);
  EXPECT(&v, "<s>\nx", KS_ENCODE_PARSE_SPECIAL, 1, ks_tokenizer_find(v.tok, "\xE2\x96\x81", 3),
         3 + '\n', x);
  EXPECT(&v, "<|user|>\n", KS_ENCODE_PARSE_SPECIAL, user);
  tiny_done(&v);
}

/* SPM: best score first, leftmost on ties, byte tokens for the rest, a space after special tokens.
 */
KS_TEST(tokenizer, spm_rules)
{
  static const ks_token back[] = {1, 0, 0};
  tiny_vocab v;
  ks_token a, ab, ba, mark, slash_s;
  ks_token ids[3];
  char *text = NULL;
  size_t n = 0;

  tiny_begin(&v, "llama");
  a = tiny_add(&v, "a", KS_TOKEN_NORMAL, -9);
  (void)tiny_add(&v, "b", KS_TOKEN_NORMAL, -9);
  ab = tiny_add(&v, "ab", KS_TOKEN_NORMAL, -2);
  ba = tiny_add(&v, "ba", KS_TOKEN_NORMAL, -1);
  mark = tiny_add(&v, "\xE2\x96\x81", KS_TOKEN_NORMAL, -5);
  tiny_add(&v, "</", KS_TOKEN_NORMAL, -1);
  slash_s = tiny_add(&v, "</s", KS_TOKEN_NORMAL, -1);
  tiny_add_lists(&v);
  KS_ASSERT_OK(tiny_open(&v, NULL));
  EXPECT(&v, "aba", 0, mark, a, ba);
  EXPECT(&v, "abab", 0, mark, a, ba, ks_tokenizer_find(v.tok, "b", 1));
  EXPECT(&v, "ab\xC3\xA9", 0, mark, ab, 3 + 0xC3, 3 + 0xA9);
  EXPECT(&v, "ab\xFF", 0, mark, ab, 3 + 0xFF);
  EXPECT(&v, "ba</s>ba", KS_ENCODE_PARSE_SPECIAL, mark, ba, 2, mark, ba);
  /* Plain text never becomes a control token, whatever could merge into it. */
  EXPECT(&v, "</s>", 0, mark, slash_s, 3 + '>');
  EXPECT(&v, "ba", KS_ENCODE_ADD_SPECIAL, 1, mark, ba);
  EXPECT(&v, "<s>ba", KS_ENCODE_ADD_SPECIAL | KS_ENCODE_PARSE_SPECIAL, 1, mark, ba);
  EXPECT(&v, "", KS_ENCODE_ADD_SPECIAL, 1);
  /* The prefix goes away, also behind a BOS that is not shown. */
  memcpy(ids, back, sizeof ids);
  ids[1] = mark;
  ids[2] = ba;
  KS_ASSERT_OK(ks_tokenizer_decode(v.tok, v.alloc, ids, 3, false, &text, &n, NULL));
  KS_ASSERT_STR(text, "ba");
  ks_mem_free(text);
  KS_ASSERT_OK(ks_tokenizer_decode(v.tok, v.alloc, ids, 3, true, &text, &n, NULL));
  KS_ASSERT_STR(text, "<s> ba");
  ks_mem_free(text);
  ids[1] = (ks_token)v.n;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_tokenizer_decode(v.tok, v.alloc, ids, 3, true, &text, &n, NULL));
  tiny_done(&v);
}

/* Terminators are known by id and by text, and forced to be control tokens. */
KS_TEST(tokenizer, ends_of_generation)
{
  tiny_vocab v;
  ks_token im_end, other, named;

  tiny_begin(&v, "gpt2");
  im_end = tiny_add(&v, "<|im_end|>", KS_TOKEN_NORMAL, 0);
  other = tiny_add(&v, "<|other|>", KS_TOKEN_CONTROL, 0);
  named = tiny_add(&v, "<|named|>", KS_TOKEN_CONTROL, 0);
  tiny_add_lists(&v);
  ks_gguf_writer_add_str(v.writer, "tokenizer.ggml.pre", "gpt-2");
  ks_gguf_writer_add_u32(v.writer, "tokenizer.ggml.eos_token_id", (uint32_t)named);
  ks_gguf_writer_add_str_array(v.writer, "tokenizer.ggml.merges", NO_MERGES, 1);
  KS_ASSERT_OK(tiny_open(&v, NULL));
  KS_ASSERT(ks_tokenizer_is_end(v.tok, im_end) && ks_tokenizer_is_end(v.tok, named));
  KS_ASSERT(!ks_tokenizer_is_end(v.tok, other) && !ks_tokenizer_is_end(v.tok, 'a'));
  KS_ASSERT(!ks_tokenizer_is_end(v.tok, -1) && !ks_tokenizer_is_end(v.tok, (ks_token)v.n));
  KS_ASSERT_EQ(ks_tokenizer_get_type(v.tok, im_end), KS_TOKEN_CONTROL);
  KS_ASSERT_EQ(ks_tokenizer_get_eos(v.tok), named);
  KS_ASSERT_EQ(ks_tokenizer_get_bos(v.tok), KS_TOKEN_NONE);
  tiny_done(&v);
}

typedef void (*spoil)(tiny_vocab *v);

static void
expect_refusal(const char *model, spoil make, ks_status want, const char *word)
{
  tiny_vocab v;
  ks_error err;

  tiny_begin(&v, model);
  make(&v);
  KS_ASSERT_STATUS(want, tiny_open(&v, &err));
  if (strstr(err.text, word) == NULL)
    KS_FAIL("\"%s\" does not name %s", err.text, word);
  KS_ASSERT(v.tok == NULL);
  tiny_done(&v);
}

static void
spoil_pre(tiny_vocab *v)
{
  tiny_add_lists(v);
  ks_gguf_writer_add_str(v->writer, "tokenizer.ggml.pre", "martian");
}

static void
spoil_scores(tiny_vocab *v)
{
  ks_gguf_writer_add_str_array(v->writer, "tokenizer.ggml.tokens", v->tokens, v->n);
}

static void
spoil_nan(tiny_vocab *v)
{
  v->scores[7] = NAN;
  tiny_add_lists(v);
}

static void
spoil_types(tiny_vocab *v)
{
  ks_gguf_writer_add_str_array(v->writer, "tokenizer.ggml.tokens", v->tokens, v->n);
  ks_gguf_writer_add_array(v->writer, "tokenizer.ggml.token_type", KS_GGUF_I32, v->types, v->n - 1);
}

static void
spoil_eos(tiny_vocab *v)
{
  tiny_add_lists(v);
  ks_gguf_writer_add_u32(v->writer, "tokenizer.ggml.eos_token_id", v->n);
}

static void
spoil_nothing(tiny_vocab *v)
{
  tiny_add_lists(v);
}

static void
spoil_tokens(tiny_vocab *v)
{
  ks_gguf_writer_add_array(v->writer, "tokenizer.ggml.tokens", KS_GGUF_I32, v->types, v->n);
}

/* Each defect of a file is a status whose sentence names it. */
KS_TEST(tokenizer, refusals)
{
  expect_refusal("bert", spoil_nothing, KS_ERR_UNSUPPORTED, "bert");
  expect_refusal("gpt2", spoil_pre, KS_ERR_UNSUPPORTED, "martian");
  expect_refusal("gpt2", spoil_nothing, KS_ERR_FORMAT, "merges");
  expect_refusal("llama", spoil_scores, KS_ERR_FORMAT, "scores");
  expect_refusal("llama", spoil_nan, KS_ERR_FORMAT, "token 7");
  expect_refusal("llama", spoil_types, KS_ERR_FORMAT, "token_type");
  expect_refusal("llama", spoil_eos, KS_ERR_FORMAT, "eos_token_id");
  expect_refusal("llama", spoil_tokens, KS_ERR_FORMAT, "tokens");
}

/* A gpt2 file without .pre works and says that it may be worse. */
KS_TEST(tokenizer, missing_pre_is_a_warning)
{
  tiny_vocab v;

  tiny_begin(&v, "gpt2");
  tiny_add_lists(&v);
  ks_gguf_writer_add_str_array(v.writer, "tokenizer.ggml.merges", NO_MERGES, 1);
  KS_ASSERT_OK(tiny_open(&v, NULL));
  KS_ASSERT(strstr(ks_tokenizer_get_warning(v.tok), "tokenizer.ggml.pre") != NULL);
  tiny_done(&v);
}

/* Empty, repeated and broken tokens, merges of nothing: the file opens, and texts still work. */
KS_TEST(tokenizer, odd_vocabularies_open)
{
  static const char *const merges[] = {"", " ", "a", "a ", " a b", "x\xFF y", "h i", "h i"};
  tiny_vocab v;
  ks_token hi;

  tiny_begin(&v, "gpt2");
  tiny_add(&v, "", KS_TOKEN_CONTROL, 0);
  tiny_add(&v, "", KS_TOKEN_USER_DEFINED, 0);
  hi = tiny_add(&v, "hi", KS_TOKEN_NORMAL, 0);
  tiny_add(&v, "hi", KS_TOKEN_CONTROL, 0);
  tiny_add(&v, "\xFF\xFE", (ks_token_type)77, 0);
  tiny_add_lists(&v);
  ks_gguf_writer_add_str(v.writer, "tokenizer.ggml.pre", "llama-bpe");
  ks_gguf_writer_add_str_array(v.writer, "tokenizer.ggml.merges", merges, 8);
  KS_ASSERT_OK(tiny_open(&v, NULL));
  EXPECT(&v, "hi", KS_ENCODE_PARSE_SPECIAL, hi);
  EXPECT(&v, "h\xFF", KS_ENCODE_ADD_SPECIAL, 'h', 0xFF);
  tiny_done(&v);
}

/* No token for a byte and no unknown token: a status, and the list is as it was. */
KS_TEST(tokenizer, byte_without_a_token)
{
  static const char *const tokens[] = {"a", "b", "c", "d"};
  static const float scores[] = {-1, -2, -3, -4};
  ks_alloc *a = ks_alloc_new();
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);
  ks_tokenizer *tok = NULL;
  ks_token_list ids;
  ks_gguf *g = NULL;
  unsigned char *bytes = NULL;
  size_t n = 0;
  ks_error err;

  ks_gguf_writer_add_str(w, "tokenizer.ggml.model", "llama");
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.tokens", tokens, 4);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.scores", KS_GGUF_F32, scores, 4);
  ks_gguf_writer_add_bool(w, "tokenizer.ggml.add_space_prefix", false);
  ks_gguf_writer_add_u32(w, "tokenizer.ggml.unknown_token_id", UINT32_MAX);
  KS_ASSERT_OK(ks_gguf_writer_get_bytes(w, &bytes, &n, NULL));
  KS_ASSERT_OK(ks_gguf_open_bytes(a, bytes, n, &g, NULL));
  KS_ASSERT_OK(ks_tokenizer_new(a, g, &tok, NULL));
  ks_token_list_init(&ids, a);
  KS_ASSERT_OK(ks_tokenizer_encode(tok, "ab", 2, 0, &ids, NULL));
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_tokenizer_encode(tok, "abz", 3, 0, &ids, &err));
  KS_ASSERT(strstr(err.text, "0x7A") != NULL);
  KS_ASSERT_EQ(ids.n, 2);
  ks_token_list_done(&ids);
  ks_tokenizer_free(tok);
  ks_gguf_close(g);
  ks_mem_free(bytes);
  ks_gguf_writer_free(w);
  ks_alloc_free(a);
}

static ks_status
whole_life(tiny_vocab *v, ks_alloc *a)
{
  char word[100];
  ks_tokenizer *tok = NULL;
  ks_token_list ids;
  char *text = NULL;
  size_t n = 0;
  ks_status st = ks_tokenizer_new(a, v->gguf, &tok, NULL);

  ks_token_list_init(&ids, a);
  memset(word, 'q', sizeof word);
  memcpy(word, "<td> \n", 6);
  if (st == KS_OK)
    st = ks_tokenizer_encode(tok, word, sizeof word, 7, &ids, NULL);
  if (st == KS_OK)
    st = ks_tokenizer_decode(tok, a, ids.ids, ids.n, true, &text, &n, NULL);
  ks_mem_free(text);
  ks_token_list_done(&ids);
  ks_tokenizer_free(tok);
  return st;
}

/* Every single allocation may fail: a status, nothing leaks. */
KS_TEST(tokenizer, out_of_memory_sweep)
{
  static const char *const merges[] = {"q q", "zz y"};
  const char *const models[] = {"gpt2", "llama"};

  for (int m = 0; m < 2; m++) {
    tiny_vocab v;
    ks_alloc *a = ks_alloc_new();
    int n_failed = 0;

    tiny_begin(&v, models[m]);
    tiny_add(&v, "<td>", KS_TOKEN_USER_DEFINED, 0);
    tiny_add_lists(&v);
    ks_gguf_writer_add_str(v.writer, "tokenizer.ggml.pre", "smollm");
    ks_gguf_writer_add_str_array(v.writer, "tokenizer.ggml.merges", merges, 2);
    KS_ASSERT_OK(tiny_open(&v, NULL));
    for (;; n_failed++) {
      ks_status st;

      ks_alloc_fail_after(a, n_failed);
      st = whole_life(&v, a);
      KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_HOST), 0);
      if (st == KS_OK)
        break;
      KS_ASSERT_EQ(st, KS_ERR_NOMEM);
    }
    KS_ASSERT_LE(8, n_failed);
    ks_alloc_free(a);
    tiny_done(&v);
  }
}

KS_TEST_MAIN

/* make-gguf-corpus.c - writes the GGUF seeds of corpus/gguf into the folder named as its argument:
 * an empty file, one with every key type, one with every tensor type, and a tiny model. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gguf-write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_VOCAB 262
#define N_EMBD 32

static void
save(ks_gguf_writer *w, const char *folder, const char *name)
{
  char path[4096];
  ks_error err;

  snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
  if (ks_gguf_writer_save(w, path, &err) != KS_OK) {
    fprintf(stderr, "%s\n", err.text);
    exit(1);
  }
  ks_gguf_writer_free(w);
}

static void
write_keys(ks_alloc *a, const char *folder)
{
  static const char *const texts[] = {"<s>", "", "a b", "\xe2\x96\x81x"};
  static const int64_t numbers[] = {1, -2, 3};
  static const double number = 0.5;
  ks_gguf_writer *w = ks_gguf_writer_new(a, 8);

  for (int type = 0; type <= KS_GGUF_F64; type++) {
    char name[32];

    snprintf(name, sizeof name, "key.%d", type);
    if (type == KS_GGUF_STRING)
      ks_gguf_writer_add_str(w, name, "text");
    else if (type == KS_GGUF_ARRAY)
      ks_gguf_writer_add_str_array(w, name, texts, 4);
    else
      ks_gguf_writer_add(w, name, (ks_gguf_type)type,
                         type == KS_GGUF_F64 ? &number : (const void *)numbers);
    if (type == KS_GGUF_STRING || type == KS_GGUF_ARRAY)
      continue;
    snprintf(name, sizeof name, "list.%d", type);
    ks_gguf_writer_add_array(w, name, (ks_gguf_type)type, numbers, 3);
  }
  save(w, folder, "keys");
}

static void
write_tensors(ks_alloc *a, const char *folder)
{
  static unsigned char data[2048];
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);

  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (unsigned char)(i * 37 + i / 11);
  for (uint32_t id = 0; id < KS_N_DTYPE; id++) {
    uint64_t ne[4] = {0, 1, 1, 1};
    const ks_dtype_info *info = ks_dtype_get_info(id);

    if (info == NULL)
      continue;
    ne[0] = info->block_elems;
    ne[id % 4] *= 2;
    ks_gguf_writer_add_tensor(w, info->name, (ks_dtype)id, 1 + id % 4, ne, data);
  }
  save(w, folder, "tensors");
}

/* Code point of byte b in the printable alphabet of byte-level vocabularies, as UTF-8. */
static void
byte_token(unsigned b, char *out)
{
  unsigned code = b, n = 256;

  if (!((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174)) {
    for (unsigned i = 0; i < b; i++)
      n += !((i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174);
    code = n;
  }
  if (code < 0x80) {
    out[0] = (char)code;
    out[1] = '\0';
  } else {
    out[0] = (char)(0xc0 | code >> 6);
    out[1] = (char)(0x80 | (code & 63));
    out[2] = '\0';
  }
}

static void
add_vocabulary(ks_gguf_writer *w)
{
  static char bytes[256][4];
  static const char *tokens[N_VOCAB];
  static const char *const merges[] = {"t h", "th e", "i n"};
  static int32_t types[N_VOCAB];

  for (unsigned i = 0; i < 256; i++) {
    byte_token(i, bytes[i]);
    tokens[i] = bytes[i];
    types[i] = 1;
  }
  tokens[256] = "th";
  tokens[257] = "the";
  tokens[258] = "in";
  tokens[259] = "<|endoftext|>";
  tokens[260] = "<|im_start|>";
  tokens[261] = "<|im_end|>";
  for (unsigned i = 256; i < N_VOCAB; i++)
    types[i] = i < 259 ? 1 : 3;
  ks_gguf_writer_add_str(w, "tokenizer.ggml.model", "gpt2");
  ks_gguf_writer_add_str(w, "tokenizer.ggml.pre", "smollm");
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.tokens", tokens, N_VOCAB);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.token_type", KS_GGUF_I32, types, N_VOCAB);
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.merges", merges, 3);
  ks_gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 260);
  ks_gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 261);
  ks_gguf_writer_add_str(
      w, "tokenizer.chat_template",
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
      "{% endfor %}");
}

static void
write_model(ks_alloc *a, const char *folder)
{
  static const char *const names[] = {"attn_q",   "attn_k", "attn_v",  "attn_output",
                                      "ffn_gate", "ffn_up", "ffn_down"};
  static const uint64_t embd[] = {N_EMBD, N_VOCAB}, square[] = {N_EMBD, N_EMBD}, row[] = {N_EMBD};
  static unsigned char data[N_VOCAB * 18];
  static float ones[N_EMBD];
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);
  char name[64];

  for (size_t i = 0; i < sizeof data; i++)
    data[i] = i % 18 == 1 ? 0x20 : (unsigned char)(i * 29);
  for (size_t i = 0; i < N_EMBD; i++)
    ones[i] = 1;
  ks_gguf_writer_add_str(w, "general.architecture", "llama");
  ks_gguf_writer_add_u32(w, "llama.context_length", 64);
  ks_gguf_writer_add_u32(w, "llama.embedding_length", N_EMBD);
  ks_gguf_writer_add_u32(w, "llama.block_count", 1);
  ks_gguf_writer_add_u32(w, "llama.feed_forward_length", N_EMBD);
  ks_gguf_writer_add_u32(w, "llama.attention.head_count", 2);
  ks_gguf_writer_add_u32(w, "llama.attention.head_count_kv", 2);
  ks_gguf_writer_add_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
  ks_gguf_writer_add_f32(w, "llama.rope.freq_base", 10000);
  add_vocabulary(w);
  ks_gguf_writer_add_tensor(w, "token_embd.weight", KS_DTYPE_Q4_0, 2, embd, data);
  ks_gguf_writer_add_tensor(w, "output_norm.weight", KS_DTYPE_F32, 1, row, ones);
  ks_gguf_writer_add_tensor(w, "blk.0.attn_norm.weight", KS_DTYPE_F32, 1, row, ones);
  ks_gguf_writer_add_tensor(w, "blk.0.ffn_norm.weight", KS_DTYPE_F32, 1, row, ones);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf(name, sizeof name, "blk.0.%s.weight", names[i]);
    ks_gguf_writer_add_tensor(w, name, KS_DTYPE_Q4_0, 2, square, data);
  }
  save(w, folder, "model");
}

int
main(int argc, char **argv)
{
  ks_alloc *a = ks_alloc_new();

  if (argc != 2 || a == NULL) {
    fprintf(stderr, "usage: make-gguf-corpus FOLDER\n");
    return 2;
  }
  save(ks_gguf_writer_new(a, 0), argv[1], "empty");
  write_keys(a, argv[1]);
  write_tensors(a, argv[1]);
  write_model(a, argv[1]);
  ks_alloc_free(a);
  return 0;
}

/* make-gguf-corpus.c - writes the GGUF seeds into the folders named as its arguments: for
 * corpus/gguf an empty file, one with every key type and one with every tensor type, for
 * corpus/model tiny models of two architectures, for corpus/vision-prep what each kind of vision
 * tower says about pictures. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gguf-write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_VOCAB 262
#define N_SCORED 20
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

/* A vocabulary with scores and byte tokens, as Gemma's. */
static void
add_scored_vocabulary(ks_gguf_writer *w)
{
  static const char *const tokens[N_SCORED] = {"<pad>",
                                               "<eos>",
                                               "<bos>",
                                               "<unk>",
                                               "<start_of_turn>",
                                               "<end_of_turn>",
                                               "\n\n",
                                               "<0x0A>",
                                               "<0x20>",
                                               "\xe2\x96\x81",
                                               "t",
                                               "h",
                                               "e",
                                               "i",
                                               "n",
                                               "th",
                                               "the",
                                               "in",
                                               "\xe2\x96\x81the",
                                               "x"};
  static const int32_t types[N_SCORED] = {3, 3, 3, 2, 3, 3, 4, 6, 6, 1,
                                          1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  static float scores[N_SCORED];

  for (int i = 0; i < N_SCORED; i++)
    scores[i] = (float)(i > 14 ? i : -i);
  ks_gguf_writer_add_str(w, "tokenizer.ggml.model", "llama");
  ks_gguf_writer_add_str(w, "tokenizer.ggml.pre", "default");
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.tokens", tokens, N_SCORED);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.token_type", KS_GGUF_I32, types, N_SCORED);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.scores", KS_GGUF_F32, scores, N_SCORED);
  ks_gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 2);
  ks_gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 1);
  ks_gguf_writer_add_u32(w, "tokenizer.ggml.unknown_token_id", 3);
  ks_gguf_writer_add_bool(w, "tokenizer.ggml.add_bos_token", true);
  ks_gguf_writer_add_bool(w, "tokenizer.ggml.add_space_prefix", false);
  ks_gguf_writer_add_str(w, "tokenizer.chat_template", "<start_of_turn>user\n{{ m }}<end_of_turn>");
}

static void
add_shape(ks_gguf_writer *w, const char *arch)
{
  static const struct {
    const char *name;
    uint32_t value;
  } numbers[] = {{"context_length", 64},       {"embedding_length", N_EMBD},
                 {"block_count", 1},           {"feed_forward_length", 32},
                 {"attention.head_count", 2},  {"attention.head_count_kv", 2},
                 {"attention.key_length", 16}, {"attention.value_length", 16}};
  char name[96];

  ks_gguf_writer_add_str(w, "general.architecture", arch);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    snprintf(name, sizeof name, "%s.%s", arch, numbers[i].name);
    ks_gguf_writer_add_u32(w, name, numbers[i].value);
  }
  snprintf(name, sizeof name, "%s.attention.layer_norm_rms_epsilon", arch);
  ks_gguf_writer_add_f32(w, name, 1e-5f);
  snprintf(name, sizeof name, "%s.rope.freq_base", arch);
  ks_gguf_writer_add_f32(w, name, 10000);
}

/* One layer: matrices, then norms, each list ending in NULL. */
static void
add_layer(ks_gguf_writer *w, const char *const *matrices, const char *const *norms)
{
  static const uint64_t square[] = {N_EMBD, N_EMBD}, row[] = {N_EMBD};
  static unsigned char data[N_EMBD * 18];
  static float ones[N_EMBD];
  char name[64];

  for (size_t i = 0; i < sizeof data; i++)
    data[i] = i % 18 == 1 ? 0x20 : (unsigned char)(i * 29);
  for (size_t i = 0; i < N_EMBD; i++)
    ones[i] = 1;
  for (; *matrices != NULL; matrices++) {
    snprintf(name, sizeof name, "blk.0.%s.weight", *matrices);
    ks_gguf_writer_add_tensor(w, name, KS_DTYPE_Q4_0, 2, square, data);
  }
  for (; *norms != NULL; norms++) {
    /* Norms over a head are half as long here. */
    const uint64_t half[] = {N_EMBD / 2};
    bool is_head = strstr(*norms, "q_norm") != NULL || strstr(*norms, "k_norm") != NULL;

    snprintf(name, sizeof name, "blk.0.%s.weight", *norms);
    ks_gguf_writer_add_tensor(w, name, KS_DTYPE_F32, 1, is_head ? half : row, ones);
  }
  ks_gguf_writer_add_tensor(w, "output_norm.weight", KS_DTYPE_F32, 1, row, ones);
}

static const char *const matrices[] = {"attn_q",   "attn_k", "attn_v",   "attn_output",
                                       "ffn_gate", "ffn_up", "ffn_down", NULL};

static void
write_llama(ks_alloc *a, const char *folder)
{
  static const char *const norms[] = {"attn_norm", "ffn_norm", NULL};
  static const uint64_t embd[] = {N_EMBD, N_VOCAB};
  static unsigned char data[N_VOCAB * 18];
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);

  add_shape(w, "llama");
  add_vocabulary(w);
  ks_gguf_writer_add_tensor(w, "token_embd.weight", KS_DTYPE_Q4_0, 2, embd, data);
  add_layer(w, matrices, norms);
  save(w, folder, "llama");
}

static void
write_gemma(ks_alloc *a, const char *folder)
{
  static const char *const norms[] = {"attn_norm", "attn_q_norm",         "attn_k_norm",
                                      "ffn_norm",  "post_attention_norm", "post_ffw_norm",
                                      NULL};
  static const uint64_t embd[] = {N_EMBD, N_SCORED};
  static unsigned char data[N_SCORED * 18];
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);

  add_shape(w, "gemma3");
  ks_gguf_writer_add_u32(w, "gemma3.attention.sliding_window", 16);
  add_scored_vocabulary(w);
  ks_gguf_writer_add_tensor(w, "token_embd.weight", KS_DTYPE_Q4_0, 2, embd, data);
  add_layer(w, matrices, norms);
  save(w, folder, "gemma3");
}

/* The keys of picture preparation alone, and a picture to try ("try.*", see fuzz-vision-prep.c). */
static void
write_towers(ks_alloc *a, const char *folder)
{
  static const float mean[] = {0.5f, 0.25f, 0.125f}, std[] = {0.5f, 0.25f, 1};
  static const struct {
    const char *projector;
    uint32_t size, patch, longest, width, height;
  } towers[] = {{"idefics3", 16, 4, 48, 33, 20},
                {"mlp", 12, 4, 0, 5, 17},
                {"gemma3", 32, 4, 0, 1, 1},
                {"qwen2vl_merger", 56, 14, 0, 40, 9},
                {"qwen2.5vl_merger", 56, 4, 0, 2, 300},
                {"qwen3vl_merger", 96, 16, 0, 4000, 3000}};

  for (size_t i = 0; i < sizeof towers / sizeof towers[0]; i++) {
    ks_gguf_writer *w = ks_gguf_writer_new(a, 0);

    ks_gguf_writer_add_str(w, "general.architecture", "clip");
    ks_gguf_writer_add_bool(w, "clip.has_vision_encoder", true);
    ks_gguf_writer_add_str(w, "clip.projector_type", towers[i].projector);
    ks_gguf_writer_add_u32(w, "clip.vision.image_size", towers[i].size);
    ks_gguf_writer_add_u32(w, "clip.vision.patch_size", towers[i].patch);
    ks_gguf_writer_add_u32(w, "clip.vision.projector.scale_factor", 2);
    ks_gguf_writer_add_u32(w, "clip.vision.spatial_merge_size", 2);
    if (towers[i].longest > 0)
      ks_gguf_writer_add_u32(w, "clip.vision.preproc_image_size", towers[i].longest);
    ks_gguf_writer_add_u32(w, "clip.vision.image_min_pixels", 400);
    ks_gguf_writer_add_u32(w, "clip.vision.image_max_pixels", 40000);
    ks_gguf_writer_add_array(w, "clip.vision.image_mean", KS_GGUF_F32, mean, 3);
    ks_gguf_writer_add_array(w, "clip.vision.image_std", KS_GGUF_F32, std, 3);
    ks_gguf_writer_add_u32(w, "try.width", towers[i].width);
    ks_gguf_writer_add_u32(w, "try.height", towers[i].height);
    ks_gguf_writer_add_u32(w, "try.min_pixels", 0);
    ks_gguf_writer_add_u32(w, "try.max_pixels", 0);
    ks_gguf_writer_add_u32(w, "try.no_split", 0);
    save(w, folder, towers[i].projector);
  }
}

int
main(int argc, char **argv)
{
  ks_alloc *a = ks_alloc_new();

  if (argc != 4 || a == NULL) {
    fprintf(stderr, "usage: make-gguf-corpus GGUF-FOLDER MODEL-FOLDER VISION-PREP-FOLDER\n");
    return 2;
  }
  save(ks_gguf_writer_new(a, 0), argv[1], "empty");
  write_keys(a, argv[1]);
  write_tensors(a, argv[1]);
  write_llama(a, argv[2]);
  write_gemma(a, argv[2]);
  write_towers(a, argv[3]);
  ks_alloc_free(a);
  return 0;
}

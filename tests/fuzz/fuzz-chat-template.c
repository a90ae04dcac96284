/* fuzz-chat-template.c - conversations of any bytes in every known format, and any bytes as a
 * template. The input is cut at NULs: part 0 is the model's template text, the others are messages
 * whose first byte gives role and options.  The number of control tokens depends on the roles
 * alone, never on what the messages say, also with pictures in them. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/chat-template.h"
#include "engine/gguf-write.h"
#include "engine/unicode.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TOKEN 300
#define MAX_MESSAGE 8

static void
require(bool promise)
{
  if (!promise)
    abort();
}

static const char *const controls[] = {
    "<|im_start|>",
    "<|im_end|>",
    "<end_of_turn>",
    "<start_of_turn>",
    "<bos>",
    "</s>",
    "<s>",
    "<|eot_id|>",
    "<|end|>",
    "<|user|>",
    "<|assistant|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|system|>",
    "<end_of_utterance>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<start_of_image>",
    "<end_of_image>",
    "<fake_token_around_image>",
    "<global-img>",
    "<row_1_col_1>",
};
#define N_CONTROL (sizeof controls / sizeof controls[0])

/* All bytes plus every control token that a format uses. */
static ks_tokenizer *
make_tokenizer(ks_alloc *a)
{
  static const char *const merges[] = {"a b"};
  char texts[256][8] = {{0}};
  const char *tokens[MAX_TOKEN];
  int32_t types[MAX_TOKEN];
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);
  uint32_t n_odd = 0;
  ks_tokenizer *tok = NULL;
  unsigned char *bytes = NULL;
  ks_gguf *g = NULL;
  size_t n = 0;

  for (uint32_t b = 0; b < 256; b++) {
    bool same = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;

    (void)ks_utf8_encode(same ? b : 256 + n_odd++, texts[b]);
    tokens[b] = texts[b];
    types[b] = KS_TOKEN_NORMAL;
  }
  for (size_t i = 0; i < N_CONTROL; i++) {
    tokens[256 + i] = controls[i];
    types[256 + i] = KS_TOKEN_CONTROL;
  }
  ks_gguf_writer_add_str(w, "tokenizer.ggml.model", "gpt2");
  ks_gguf_writer_add_str(w, "tokenizer.ggml.pre", "qwen2");
  ks_gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 256 + 4);
  ks_gguf_writer_add_bool(w, "tokenizer.ggml.add_bos_token", true);
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.tokens", tokens, 256 + N_CONTROL);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.token_type", KS_GGUF_I32, types, 256 + N_CONTROL);
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.merges", merges, 1);
  require(ks_gguf_writer_get_bytes(w, &bytes, &n, NULL) == KS_OK);
  require(ks_gguf_open_bytes(a, bytes, n, &g, NULL) == KS_OK);
  require(ks_tokenizer_new(a, g, &tok, NULL) == KS_OK);
  ks_gguf_close(g);
  ks_mem_free(bytes);
  ks_gguf_writer_free(w);
  return tok;
}

static const ks_chat_template *
detect(ks_alloc *a, const char *template_text)
{
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);
  const ks_chat_template *t;
  unsigned char *bytes = NULL;
  ks_gguf *g = NULL;
  bool fallback;
  size_t n = 0;

  ks_gguf_writer_add_str(w, "tokenizer.chat_template", template_text);
  require(ks_gguf_writer_get_bytes(w, &bytes, &n, NULL) == KS_OK);
  require(ks_gguf_open_bytes(a, bytes, n, &g, NULL) == KS_OK);
  t = ks_chat_template_detect(g, &fallback);
  require(t != NULL);
  ks_gguf_close(g);
  ks_mem_free(bytes);
  ks_gguf_writer_free(w);
  return t;
}

static size_t
count_control(const ks_chat_template *t, const ks_tokenizer *tok, ks_alloc *a,
              const ks_chat_message *messages, size_t n, uint32_t options)
{
  ks_token_list ids;
  size_t n_control = 0;

  ks_token_list_init(&ids, a);
  require(ks_chat_encode(t, tok, messages, n, options, &ids, NULL) == KS_OK);
  for (size_t i = 0; i < ids.n; i++)
    n_control += ids.ids[i] >= 256;
  ks_token_list_done(&ids);
  return n_control;
}

static void
check_format(const ks_chat_template *t, const ks_tokenizer *tok, ks_alloc *a,
             const ks_chat_message *messages, size_t n, uint32_t options)
{
  ks_chat_message mild[MAX_MESSAGE];
  char *text = NULL;
  size_t n_text = 0;

  for (size_t i = 0; i < n; i++)
    mild[i] = (ks_chat_message){.role = messages[i].role, .text = "x", .n_bytes = 1};
  require(count_control(t, tok, a, messages, n, options) ==
          count_control(t, tok, a, mild, n, options));
  require(ks_chat_render(t, a, messages, n, options, &text, &n_text, NULL) == KS_OK);
  ks_mem_free(text);
}

/* The same with a picture and a frame of a video inside every message of a user. */
static size_t
count_with_pictures(const ks_chat_template *t, ks_vision_family family, const ks_tokenizer *tok,
                    ks_alloc *a, const ks_chat_message *messages, size_t n, uint32_t options)
{
  ks_chat_visual visuals[MAX_MESSAGE][2];
  ks_chat_message with[MAX_MESSAGE];
  size_t n_control = 0, n_none = 0, n_view = 0;
  ks_chat_slots slots;
  ks_token_list ids;

  for (size_t i = 0; i < n; i++) {
    const bool is_user = messages[i].role == KS_ROLE_USER;

    with[i] = messages[i];
    with[i].visuals = visuals[i];
    with[i].n_visual = is_user ? 2 : 0;
    visuals[i][0] = (ks_chat_visual){.at = with[i].n_bytes / 2, .n_view = 1, .view_tok = 3};
    visuals[i][1] = (ks_chat_visual){
        .at = with[i].n_bytes, .n_view = 1, .view_tok = 1, .video = 1, .time_s = 0.5};
    n_view += with[i].n_visual;
  }
  ks_token_list_init(&ids, a);
  ks_chat_slots_init(&slots, a);
  require(ks_chat_encode_visual(t, family, tok, with, n, options, &ids, &slots, NULL) == KS_OK);
  for (size_t i = 0; i < ids.n; i++) {
    n_control += ids.ids[i] >= 256;
    n_none += ids.ids[i] == KS_TOKEN_NONE;
  }
  require(slots.n == n_view && n_none == 2 * n_view);
  for (size_t i = 0; i < slots.n; i++)
    require(slots.items[i].first + (size_t)slots.items[i].n_tok <= ids.n &&
            ids.ids[slots.items[i].first] == KS_TOKEN_NONE);
  ks_chat_slots_done(&slots);
  ks_token_list_done(&ids);
  return n_control;
}

static void
check_pictures(const ks_chat_template *t, ks_vision_family family, const ks_tokenizer *tok,
               ks_alloc *a, const ks_chat_message *messages, size_t n, uint32_t options)
{
  ks_chat_message mild[MAX_MESSAGE];

  for (size_t i = 0; i < n; i++)
    mild[i] = (ks_chat_message){.role = messages[i].role, .text = "x", .n_bytes = 1};
  require(count_with_pictures(t, family, tok, a, messages, n, options) ==
          count_with_pictures(t, family, tok, a, mild, n, options));
}

/* Messages behind the first NUL; text is NUL-terminated behind its n bytes. */
static size_t
cut_messages(const char *text, size_t n, ks_chat_message messages[MAX_MESSAGE], uint32_t *options)
{
  const char *part = text + strlen(text);
  size_t n_message = 0;

  while (part < text + n && n_message < MAX_MESSAGE) {
    size_t n_part = strlen(++part);

    if (n_part == 0)
      continue;
    *options = (unsigned char)part[0] >> 2 & 7u;
    messages[n_message++] = (ks_chat_message){
        .role = (ks_role)((unsigned char)part[0] % 3), .text = part + 1, .n_bytes = n_part - 1};
    part += n_part;
  }
  return n_message;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  static const char *const names[] = {"chatml", "smollm2", "qwen3",  "smolvlm", "gemma3",
                                      "llama3", "phi3",    "llama2", "vicuna",  "llama3.1"};
  static ks_tokenizer *tok; /* kept: making it costs far more than using it */
  ks_alloc *a = ks_alloc_new();
  char *text = (char *)malloc(n + 1);
  ks_chat_message messages[MAX_MESSAGE];
  uint32_t options = 0;
  size_t n_message;

  require(a != NULL && text != NULL);
  if (tok == NULL)
    tok = make_tokenizer(ks_alloc_new());
  if (n > 0)
    memcpy(text, data, n);
  text[n] = '\0';
  n_message = cut_messages(text, n, messages, &options);
  check_format(detect(a, text), tok, a, messages, n_message, options);
  check_format(ks_chat_template_find(names[n % 10]), tok, a, messages, n_message, options);
  check_pictures(ks_chat_template_find(names[n % 10]), (ks_vision_family)(n % KS_N_VISION_FAMILY),
                 tok, a, messages, n_message, options);
  free(text);
  require(ks_alloc_get_bytes(a, KS_MEM_HOST) == 0);
  ks_alloc_free(a);
  return 0;
}

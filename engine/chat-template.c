/* chat-template.c - chat formats as rows of a table, and the one routine that lays them out.
 * Every byte of a rendered conversation is marked as frame (ours, may hold control tokens) or as
 * text of a user or file (may not).  The whole is tokenized at once, so that neighbours merge as
 * they do in the model's own template.  Pictures: chat-visual.c.
 * Source: docs/formats/chat-templates.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/chat-template.h"

#include "engine/chat-template-internal.h"
#include "engine/tokenizer-internal.h"

#include <assert.h>
#include <string.h>

/* Texts around a message by role; in them "\1" stands for the model's BOS. */
struct ks_chat_template {
  const char *name;
  const char *start;   /* once, in front of the first message of a conversation */
  const char *open[3]; /* by ks_role */
  const char *close[3];
  const char *generate;       /* opens the answer */
  const char *no_thinking;    /* follows generate on request */
  const char *end;            /* closes an answer that the model has written */
  const char *default_system; /* NULL = none */
  /* The system text is part of the next user message, between these two; NULL = has its own turn.
   */
  const char *system_before, *system_after;
  bool trims;           /* white space around a text is dropped */
  bool hugs_visual;     /* no space between the opening and a picture that comes first */
  bool forgets_thought; /* earlier answers are shown without what stands before </think> */
};

#define BOS "\1"
#define SMOLLM_SYSTEM "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
#define QWEN25_SYSTEM "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
#define QWEN2_SYSTEM "You are a helpful assistant."
#define VICUNA_SYSTEM                                                                              \
  "A chat between a curious user and an artificial intelligence assistant. "                       \
  "The assistant gives helpful, detailed, and polite answers to the user's questions."
#define LLAMA31_DATES "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"

#define CHATML_FRAME                                                                               \
  .start = "", .open = {"<|im_start|>system\n", "<|im_start|>user\n", "<|im_start|>assistant\n"},  \
  .close = {"<|im_end|>\n", "<|im_end|>\n", "<|im_end|>\n"},                                       \
  .generate = "<|im_start|>assistant\n", .end = "<|im_end|>\n"

#define GEMMA_FRAME                                                                                \
  .start = BOS,                                                                                    \
  .open = {"<start_of_turn>user\n", "<start_of_turn>user\n", "<start_of_turn>model\n"},            \
  .close = {"<end_of_turn>\n", "<end_of_turn>\n", "<end_of_turn>\n"},                              \
  .generate = "<start_of_turn>model\n", .end = "<end_of_turn>\n", .system_before = "",             \
  .system_after = "\n\n"

#define LLAMA3_HEADER(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define LLAMA3_FRAME(system_prefix)                                                                \
  .start = BOS,                                                                                    \
  .open = {LLAMA3_HEADER("system") system_prefix, LLAMA3_HEADER("user"),                           \
           LLAMA3_HEADER("assistant")},                                                            \
  .close = {"<|eot_id|>", "<|eot_id|>", "<|eot_id|>"}, .generate = LLAMA3_HEADER("assistant"),     \
  .end = "<|eot_id|>"

#define PHI3_FRAME                                                                                 \
  .open = {"<|system|>\n", "<|user|>\n", "<|assistant|>\n"},                                       \
  .close = {"<|end|>\n", "<|end|>\n", "<|end|>\n"}, .generate = "<|assistant|>\n",                 \
  .end = "<|end|>\n"

#define VICUNA_FRAME                                                                               \
  .start = "", .open = {"", "USER: ", "ASSISTANT: "}, .close = {" ", " ", "</s>"},                 \
  .generate = "ASSISTANT:", .end = "</s>"

static const ks_chat_template templates[] = {
    {.name = "chatml", CHATML_FRAME},
    {.name = "smollm2", CHATML_FRAME, .default_system = SMOLLM_SYSTEM},
    {.name = "qwen2", CHATML_FRAME, .default_system = QWEN2_SYSTEM},
    {.name = "qwen2.5", CHATML_FRAME, .default_system = QWEN25_SYSTEM},
    {.name = "qwen3",
     CHATML_FRAME,
     .no_thinking = "<think>\n\n</think>\n\n",
     .forgets_thought = true},
    {.name = "smolvlm",
     .start = "<|im_start|>",
     .open = {"System: ", "User: ", "Assistant: "},
     .close = {"<end_of_utterance>\n", "<end_of_utterance>\n", "<end_of_utterance>\n"},
     .generate = "Assistant:",
     .end = "<end_of_utterance>\n",
     .hugs_visual = true},
    {.name = "gemma3", GEMMA_FRAME, .trims = true},
    {.name = "gemma3-untrimmed", GEMMA_FRAME},
    {.name = "llama3", LLAMA3_FRAME(""), .trims = true},
    {.name = "llama3-untrimmed", LLAMA3_FRAME("")},
    {.name = "llama3.1", LLAMA3_FRAME(LLAMA31_DATES), .default_system = "", .trims = true},
    {.name = "phi3", .start = "", PHI3_FRAME},
    {.name = "phi3-bos", .start = BOS, PHI3_FRAME},
    {.name = "llama2",
     .start = "",
     .open = {BOS "[INST] ", BOS "[INST] ", " "},
     .close = {" [/INST]", " [/INST]", " </s>"},
     .generate = "",
     .end = "</s>",
     .system_before = "<<SYS>>\n",
     .system_after = "\n<</SYS>>\n\n",
     .trims = true},
    {.name = "vicuna", VICUNA_FRAME, .default_system = VICUNA_SYSTEM},
    {.name = "llava", VICUNA_FRAME},
};

/* ---- recognising ---- */

const ks_chat_template *
ks_chat_template_find(const char *name)
{
  for (size_t i = 0; i < sizeof templates / sizeof templates[0]; i++)
    if (strcmp(templates[i].name, name) == 0)
      return &templates[i];
  return NULL;
}

const char *
ks_chat_template_get_name(const ks_chat_template *tmpl)
{
  return tmpl->name;
}

static bool
contains(ks_gguf_str text, const char *part)
{
  return memmem(text.data, text.n_bytes, part, strlen(part)) != NULL;
}

/* First row whose words all stand in the template's text.  An architecture that is asked for counts
 * as well; a row without words is reached when all above failed. */
static const char *
name_of_template(ks_gguf_str text, ks_gguf_str arch)
{
  static const struct {
    const char *words[3], *arch, *name;
  } rules[] = {
      {{"<end_of_utterance>", "<|im_start|>"}, NULL, "smolvlm"},
      {{"<|im_start|>", "named SmolLM"}, NULL, "smollm2"},
      {{"<|im_start|>", "You are Qwen, created by Alibaba Cloud"}, NULL, "qwen2.5"},
      {{"<|im_start|>", "</think>"}, NULL, "qwen3"},
      {{"<|im_start|>", QWEN2_SYSTEM}, NULL, "qwen2"},
      {{"<|im_start|>"}, "qwen3", "qwen3"},
      {{"<|im_start|>", "<|im_end|>"}, NULL, "chatml"},
      {{"<start_of_turn>", "trim"}, NULL, "gemma3"},
      {{"<start_of_turn>"}, NULL, "gemma3-untrimmed"},
      {{"<|start_header_id|>", "Cutting Knowledge Date"}, NULL, "llama3.1"},
      {{"<|start_header_id|>", "trim"}, NULL, "llama3"},
      {{"<|start_header_id|>"}, NULL, "llama3-untrimmed"},
      {{"<|user|>", "<|end|>", "bos_token"}, NULL, "phi3-bos"},
      {{"<|user|>", "<|end|>"}, NULL, "phi3"},
      {{"[INST]", "<<SYS>>"}, NULL, "llama2"},
      {{"USER:", "ASSISTANT:", "A chat between a curious"}, NULL, "vicuna"},
      {{"USER:", "ASSISTANT:"}, NULL, "llava"},
  };

  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    bool all = rules[i].arch == NULL || ks_gguf_str_equal(arch, rules[i].arch);

    for (size_t w = 0; all && w < 3 && rules[i].words[w] != NULL; w++)
      all = contains(text, rules[i].words[w]);
    if (all)
      return rules[i].name;
  }
  return NULL;
}

const ks_chat_template *
ks_chat_template_detect(const ks_gguf *g, bool *out_is_fallback)
{
  ks_gguf_str text = {"", 0}, arch = {"", 0};
  const char *name = NULL;

  if (!ks_gguf_get_str(g, "general.architecture", &arch))
    arch = (ks_gguf_str){"", 0};
  if (ks_gguf_get_str(g, "tokenizer.chat_template", &text))
    name = name_of_template(text, arch);
  else if (ks_gguf_str_equal(arch, "gemma3")) /* these two architectures know one format only */
    name = "gemma3";
  else if (ks_gguf_str_equal(arch, "phi3"))
    name = "phi3";
  *out_is_fallback = name == NULL;
  return ks_chat_template_find(name != NULL ? name : "chatml");
}

/* ---- laying out ---- */

static void
layout_done(ks_chat_layout *l)
{
  ks_mem_free(l->text);
  ks_mem_free(l->marks);
}

ks_status
ks_chat_append(ks_chat_layout *l, const char *text, size_t n, unsigned mark, ks_error *err)
{
  size_t n_new, capacity;
  char *bytes;
  unsigned char *marks;

  if (!ks_add_size(l->n, n, &n_new) || !ks_add_size(n_new, n_new / 2 + 256, &capacity))
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the conversation's text");
  if (n_new > l->capacity) {
    bytes = (char *)ks_mem_resize(l->alloc, KS_MEM_HOST, l->text, capacity, 1);
    l->text = bytes != NULL ? bytes : l->text;
    marks = (unsigned char *)ks_mem_resize(l->alloc, KS_MEM_HOST, l->marks, capacity, 1);
    l->marks = marks != NULL ? marks : l->marks;
    if (bytes == NULL || marks == NULL)
      return ks_fail(err, KS_ERR_NOMEM, "no memory for the conversation's text");
    l->capacity = capacity;
  }
  if (n > 0) {
    memcpy(l->text + l->n, text, n);
    memset(l->marks + l->n, (int)mark, n);
  }
  l->n = n_new;
  return KS_OK;
}

/* Appends a text of the table; NULL is empty. */
static ks_status
append_frame(ks_chat_layout *l, const char *frame, ks_error *err)
{
  ks_status st = KS_OK;

  if (frame != NULL && frame[0] == BOS[0]) {
    st = ks_chat_append(l, l->bos, l->n_bos, KS_MARK_FRAME, err);
    frame++;
  }
  return st == KS_OK && frame != NULL ? ks_chat_append(l, frame, strlen(frame), KS_MARK_FRAME, err)
                                      : st;
}

static bool
is_blank(char ch)
{
  return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

static void
trim(const char **text, size_t *n)
{
  while (*n > 0 && is_blank((*text)[*n - 1]))
    --*n;
  while (*n > 0 && is_blank((*text)[0])) {
    ++*text;
    --*n;
  }
}

/* What an earlier answer said, without the thought before it. */
static void
skip_thought(const char **text, size_t *n)
{
  static const char mark[] = "</think>";
  size_t n_mark = sizeof mark - 1;
  const char *hit;

  while ((hit = (const char *)memmem(*text, *n, mark, n_mark)) != NULL) {
    *n -= (size_t)(hit - *text) + n_mark;
    *text = hit + n_mark;
    while (*n > 0 && (*text)[0] == '\n') {
      ++*text;
      --*n;
    }
  }
}

/* What stands between two pictures of a message is a text of its own. */
static ks_status
append_part(ks_chat_layout *l, const ks_chat_template *t, const ks_chat_message *m, size_t begin,
            size_t end, bool is_past, ks_error *err)
{
  const char *text = begin < end ? m->text + begin : "";
  size_t n = end - begin;

  if (t->trims)
    trim(&text, &n);
  if (t->forgets_thought && is_past && m->role == KS_ROLE_ASSISTANT)
    skip_thought(&text, &n);
  return ks_chat_append(l, text, n, KS_MARK_TEXT, err);
}

static ks_status
append_text(ks_chat_layout *l, const ks_chat_template *t, const ks_chat_message *m, bool is_past,
            ks_error *err)
{
  ks_status st = ks_chat_check_visuals(l, m, err);
  size_t begin = 0;

  for (uint32_t i = 0; st == KS_OK && i < m->n_visual; i++) {
    st = append_part(l, t, m, begin, m->visuals[i].at, is_past, err);
    if (st == KS_OK)
      st = ks_chat_append_visual(l, m, i, err);
    begin = m->visuals[i].at;
  }
  return st == KS_OK ? append_part(l, t, m, begin, m->n_bytes, is_past, err) : st;
}

/* The opening of a turn, cut before its space where the format wants a picture right behind it. */
static ks_status
append_open(ks_chat_layout *l, const ks_chat_template *t, const ks_chat_message *m, ks_role role,
            ks_error *err)
{
  const char *open = t->open[role];

  if (t->hugs_visual && m != NULL && m->n_visual > 0 && m->visuals[0].at == 0)
    return ks_chat_append(l, open, strlen(open) - 1, KS_MARK_FRAME, err);
  return append_frame(l, open, err);
}

/* One turn; system (may be NULL) stands inside it, as some formats want. */
static ks_status
append_turn(ks_chat_layout *l, const ks_chat_template *t, const ks_chat_message *system,
            const ks_chat_message *m, bool is_past, ks_error *err)
{
  ks_role role = m != NULL ? m->role : KS_ROLE_USER;
  ks_status st = append_open(l, t, m, role, err);

  if (st == KS_OK && system != NULL) {
    st = append_frame(l, t->system_before, err);
    if (st == KS_OK)
      st = append_text(l, t, system, false, err);
    if (st == KS_OK)
      st = append_frame(l, t->system_after, err);
  }
  if (st == KS_OK && m != NULL)
    st = append_text(l, t, m, is_past, err);
  return st == KS_OK ? append_frame(l, t->close[role], err) : st;
}

static size_t
last_user(const ks_chat_message *messages, size_t n)
{
  while (n > 0 && messages[n - 1].role != KS_ROLE_USER)
    n--;
  return n;
}

static ks_status
append_messages(ks_chat_layout *l, const ks_chat_template *t, const ks_chat_message *messages,
                size_t n, bool add_default_system, ks_error *err)
{
  ks_chat_message own = {.role = KS_ROLE_SYSTEM, .text = t->default_system};
  const ks_chat_message *waiting = NULL; /* a system text that belongs into the next user turn */
  size_t n_past = last_user(messages, n);
  ks_status st = KS_OK;

  if (add_default_system && t->default_system != NULL &&
      (n == 0 || messages[0].role != KS_ROLE_SYSTEM)) {
    own.n_bytes = strlen(t->default_system);
    st = append_turn(l, t, NULL, &own, false, err);
  }
  for (size_t i = 0; i < n && st == KS_OK; i++) {
    const ks_chat_message *m = &messages[i];

    l->message = (uint32_t)i;
    if (m->role == KS_ROLE_SYSTEM && t->system_after != NULL) {
      if (waiting != NULL)
        st = append_turn(l, t, waiting, NULL, false, err);
      waiting = m;
      continue;
    }
    st = append_turn(l, t, m->role == KS_ROLE_USER ? waiting : NULL, m, i < n_past, err);
    waiting = m->role == KS_ROLE_USER ? NULL : waiting;
  }
  if (st == KS_OK && waiting != NULL)
    st = append_turn(l, t, waiting, NULL, false, err);
  return st;
}

static ks_status
append_all(ks_chat_layout *l, const ks_chat_template *t, const ks_chat_message *messages, size_t n,
           uint32_t options, ks_error *err)
{
  ks_status st = KS_OK;

  if ((options & KS_CHAT_FIRST) != 0)
    st = append_frame(l, t->start, err);
  if (st == KS_OK)
    st = append_messages(l, t, messages, n, (options & KS_CHAT_FIRST) != 0, err);
  if (st == KS_OK && (options & KS_CHAT_GENERATE) != 0)
    st = append_frame(l, t->generate, err);
  if (st == KS_OK && (options & KS_CHAT_GENERATE) != 0 && (options & KS_CHAT_NO_THINKING) != 0)
    st = append_frame(l, t->no_thinking, err);
  return st;
}

/* ---- interface ---- */

/* family and slots: none where pictures are refused. */
static ks_status
encode(const ks_chat_template *tmpl, ks_vision_family family, const ks_tokenizer *tok,
       const ks_chat_message *messages, size_t n, uint32_t options, ks_token_list *out,
       ks_chat_slots *slots, ks_error *err)
{
  ks_chat_layout l = {.alloc = out->alloc, .bos = "", .family = family, .slots = slots};
  /* The tokenizer adds its own BOS only where the template has not written one. */
  uint32_t flags = (options & KS_CHAT_FIRST) != 0 ? KS_ENCODE_ADD_BOS : 0;
  const size_t n_before = out->n, n_slot = slots != NULL ? slots->n : 0;
  ks_status st;

  l.bos = ks_tokenizer_get_piece(tok, ks_tokenizer_get_bos(tok), true, &l.n_bos);
  st = append_all(&l, tmpl, messages, n, options, err);
  if (st == KS_OK)
    st = ks_tokenizer_encode_marked(tok, l.text, l.marks, l.n, flags, out, err);
  if (st == KS_OK && slots != NULL)
    st = ks_chat_expand(out, n_before, slots, n_slot, err);
  if (st != KS_OK) {
    out->n = n_before;
    if (slots != NULL)
      slots->n = n_slot;
  }
  layout_done(&l);
  return st;
}

ks_status
ks_chat_encode(const ks_chat_template *tmpl, const ks_tokenizer *tok,
               const ks_chat_message *messages, size_t n, uint32_t options, ks_token_list *out,
               ks_error *err)
{
  return encode(tmpl, KS_N_VISION_FAMILY, tok, messages, n, options, out, NULL, err);
}

ks_status
ks_chat_encode_visual(const ks_chat_template *tmpl, ks_vision_family family,
                      const ks_tokenizer *tok, const ks_chat_message *messages, size_t n,
                      uint32_t options, ks_token_list *out, ks_chat_slots *out_slots, ks_error *err)
{
  assert((unsigned)family < KS_N_VISION_FAMILY);
  return encode(tmpl, family, tok, messages, n, options, out, out_slots, err);
}

ks_status
ks_chat_encode_close(const ks_chat_template *tmpl, const ks_tokenizer *tok, ks_token last_id,
                     ks_token_list *out, ks_error *err)
{
  size_t n_before = out->n;
  ks_status st =
      ks_tokenizer_encode(tok, tmpl->end, strlen(tmpl->end), KS_ENCODE_PARSE_SPECIAL, out, err);

  if (st != KS_OK || out->n == n_before)
    return st;
  /* Any terminator has ended the turn, also one that the template does not use itself. */
  if (out->ids[n_before] == last_id ||
      (ks_tokenizer_is_end(tok, last_id) && ks_tokenizer_is_end(tok, out->ids[n_before]))) {
    memmove(out->ids + n_before, out->ids + n_before + 1,
            (out->n - n_before - 1) * sizeof *out->ids);
    out->n--;
  }
  return KS_OK;
}

ks_status
ks_chat_render(const ks_chat_template *tmpl, ks_alloc *a, const ks_chat_message *messages, size_t n,
               uint32_t options, char **out_text, size_t *out_n, ks_error *err)
{
  ks_chat_layout l = {.alloc = a, .bos = "<s>", .n_bos = 3};
  ks_status st;
  char *text;

  if (strncmp(tmpl->name, "gemma3", 6) == 0)
    l.bos = "<bos>";
  else if (strncmp(tmpl->name, "llama3", 6) == 0)
    l.bos = "<|begin_of_text|>";
  l.n_bos = strlen(l.bos);
  st = append_all(&l, tmpl, messages, n, options, err);
  if (st == KS_OK) {
    text = ks_mem_dup_str(a, KS_MEM_HOST, l.n > 0 ? l.text : "", l.n);
    if (text == NULL) {
      st = ks_fail(err, KS_ERR_NOMEM, "no memory for the conversation's text");
    } else {
      *out_text = text;
      *out_n = l.n;
    }
  }
  layout_done(&l);
  return st;
}

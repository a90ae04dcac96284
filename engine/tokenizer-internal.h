/* tokenizer-internal.h - the vocabulary as it lies in memory, shared by the tokenizer-*.c files and
 * by chat-template.c.  Not for anyone else. Invariant: every offset lies inside the blob, every id
 * below n_vocab; checked once while loading. Threads: immutable after loading; an encoding keeps
 * its scratch in its own ks_encoding. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/tokenizer.h"

KS_BEGIN_DECLS

typedef enum ks_tokenizer_kind { KS_TOKENIZER_BPE, KS_TOKENIZER_SPM } ks_tokenizer_kind;

/* How a BPE text is cut before merging; docs/formats/tokenizers.md has the rules. */
typedef enum ks_pre_kind {
  KS_PRE_GPT2,
  KS_PRE_SMOLLM,    /* every number alone, then gpt-2 inside the rest */
  KS_PRE_LLAMA_BPE, /* up to three numbers */
  KS_PRE_QWEN2      /* numbers one at a time */
} ks_pre_kind;

typedef struct ks_vocab_entry {
  uint32_t text, n_text;   /* as in the file, in blob */
  uint32_t piece, n_piece; /* as it stands in text, in blob */
  float score;
  uint8_t type;   /* ks_token_type */
  bool ends;      /* end of generation */
  bool swallows;  /* white space behind it belongs to it (phi-3) */
  bool mergeable; /* plain text may become this token */
} ks_vocab_entry;

/* Open-addressing set of strings; slots hold index + 1 into the owner's strings, 0 = free. */
typedef struct ks_str_slots {
  uint32_t *slots;
  uint32_t n_slot; /* power of two */
} ks_str_slots;

typedef struct ks_merge {
  uint64_t pair; /* left << 32 | right symbol; ~0 = free slot */
  uint32_t rank, result;
} ks_merge;

#define KS_NO_SYMBOL UINT32_MAX
#define KS_NO_PAIR UINT64_MAX

struct ks_tokenizer {
  ks_alloc *alloc;
  ks_tokenizer_kind kind;
  ks_pre_kind pre;
  bool marks_are_letters; /* pre-tokenizer detail of qwen35 */
  bool whole_pieces;      /* a piece that is a token is taken whole ("ignore merges") */
  bool space_prefix;      /* SPM */
  bool adds_bos, adds_eos;
  ks_token bos, eos, eot, eom, unk;
  const char *warning;

  uint32_t n_vocab, max_text;
  ks_vocab_entry *vocab; /* [n_vocab] */
  char *blob;
  ks_str_slots by_text;

  /* Symbols are ids, and above n_vocab strings that only merges know. */
  uint32_t byte_symbol[256]; /* BPE: symbol of a single byte */
  ks_token byte_token[256];  /* id that stands for one byte, or KS_TOKEN_NONE */
  ks_merge *merges;
  uint32_t n_merge_slot; /* power of two */

  /* Special tokens: by text for finding which occur, by length for the order in which they cut. */
  ks_token *special_by_text, *special_by_length;
  uint32_t n_special, n_user_defined;
  uint32_t special_first[257]; /* special_by_text range of each first byte */
};

/* One call of ks_tokenizer_encode. */
typedef struct ks_encoding {
  const ks_tokenizer *tok;
  ks_token_list *out;
  ks_error *err;
  char *scratch; /* growing buffer of the kind's own */
  size_t n_scratch;
} ks_encoding;

/* Makes the scratch at least n bytes large; its contents are lost. */
KS_CHECK ks_status ks_encoding_reserve(ks_encoding *enc, size_t n);

/* The plain text between special tokens. */
KS_CHECK ks_status ks_bpe_encode(ks_encoding *enc, const char *text, size_t n);
KS_CHECK ks_status ks_spm_encode(ks_encoding *enc, const char *text, size_t n, bool prefix);

/* Reads texts, types, scores, special ids; sets everything that does not belong to one kind. */
KS_CHECK ks_status ks_vocab_load(ks_tokenizer *tok, const ks_gguf *g, ks_error *err);

/* Sorts the special tokens; the vocabulary is there already. */
KS_CHECK ks_status ks_special_load(ks_tokenizer *tok, ks_error *err);
/* Finds the special tokens in text.  *out_owner is NULL when there are none, else one entry a byte:
 * 0 plain text, KS_OWNER_INSIDE covered by a special token, id + KS_OWNER_FIRST where one starts,
 * KS_OWNER_VISUAL at a byte of that mark.
 * The caller frees it with ks_mem_free. */
#define KS_OWNER_INSIDE 1u
#define KS_OWNER_FIRST 2u
#define KS_OWNER_VISUAL UINT32_MAX /* stands for what a picture will give */
KS_CHECK ks_status ks_special_find(const ks_tokenizer *tok, const char *text,
                                   const unsigned char *marks, size_t n, bool all_trusted,
                                   uint32_t **out_owner, ks_error *err);

/* Names a pre-tokenizer of the file; false when unknown. */
bool ks_bpe_set_pre(ks_tokenizer *tok, ks_gguf_str name);
/* Reads the merges; the vocabulary is there already. */
KS_CHECK ks_status ks_bpe_load(ks_tokenizer *tok, const ks_gguf *g, ks_error *err);
/* GPT-2's printable code point of a byte and back (-1 when cp stands for no byte). */
uint32_t ks_bpe_byte_to_cp(unsigned char byte);
int ks_bpe_cp_to_byte(uint32_t cp);

uint64_t ks_str_hash(uint64_t seed, const char *text, size_t n);
#define KS_STR_HASH_SEED 0xCBF29CE484222325u

/* One step of cutting: end of the piece that starts at pos (< n) of text[0..n-1]. */
size_t ks_pre_next(const ks_tokenizer *tok, const char *text, size_t n, size_t pos);

/* A flag beside those of ks_tokenizer_encode: BOS as ADD_SPECIAL would, but no EOS. */
#define KS_ENCODE_ADD_BOS 4u
/* Marks of a text's bytes. */
#define KS_MARK_TEXT 0u   /* of a user or file: no control tokens */
#define KS_MARK_FRAME 1u  /* ours */
#define KS_MARK_VISUAL 2u /* cuts the text as a control token does; gives one KS_TOKEN_NONE */
/* Like ks_tokenizer_encode with one mark per byte instead of KS_ENCODE_PARSE_SPECIAL: control
 * tokens are recognised only where none of their bytes is of KS_MARK_TEXT.  marks may be NULL (then
 * the flag counts). */
KS_CHECK ks_status ks_tokenizer_encode_marked(const ks_tokenizer *tok, const char *text,
                                              const unsigned char *marks, size_t n, uint32_t flags,
                                              ks_token_list *out, ks_error *err);

KS_END_DECLS

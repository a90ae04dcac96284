/* cli-inspect.h - what the inspect commands share: reading ids and rows from options, dumps of
 * arrays. A dump is raw little-endian arrays one after the other, each at a multiple of 64 bytes;
 * the JSON result lists name, dtype, shape, offset and nbytes.  Threads: main or engine, one at a
 * time. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-common.h"
#include "app/cli-options.h"

#include "engine/tokenizer.h"

G_BEGIN_DECLS

int cli_inspect_gguf_main (char **args);
int cli_inspect_tokens_main (char **args);
int cli_inspect_logits_main (char **args);
int cli_inspect_evict_main (char **args);
int cli_inspect_vision_main (char **args);

/* Where the tokens come from: exactly one of the three. */
typedef struct {
  char *ids, *text, *file;
  gboolean special, no_special, add_special;
} CliTokenSource;

void cli_token_source_add (CliTokenSource *source, GOptionContext *context);
void cli_token_source_clear (CliTokenSource *source);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (CliTokenSource, cli_token_source_clear)
/* The ids (of ks_token); every one is inside the vocabulary. (transfer full) */
GArray *cli_token_source_read (const CliTokenSource *source, const ks_tokenizer *tok,
                               ks_alloc *alloc, GError **error);

/* "0,5,7" or "0 5 7" to an array of guint32, each below limit. (transfer full) */
GArray *cli_parse_numbers (const char *text, guint64 limit, const char *what, GError **error);
cJSON *cli_make_id_array (const ks_token *ids, gsize n);
/* Text of one token; bytes that are no UTF-8 come out as U+FFFD. (transfer full) */
char *cli_dup_piece (const ks_tokenizer *tok, ks_token id);

typedef struct _CliDump CliDump;

/* path NULL: arrays are counted in the JSON only when there is a file, so nothing is written.
 * inputs, ended by NULL, are files that path must not overwrite. */
CliDump *cli_dump_new (const char *path, const char *const *inputs, GError **error);
/* Begins an array of n_dim dimensions; its elements follow by cli_dump_write, 4 bytes each. */
void cli_dump_begin (CliDump *dump, const char *name, const char *dtype, guint n_dim,
                     const guint64 *shape);
void cli_dump_write (CliDump *dump, const void *elements, gsize n);
/* The list of arrays, NULL when there is no file.  FALSE with error when writing failed. */
gboolean cli_dump_finish (CliDump *dump, cJSON **out_arrays, GError **error);
void cli_dump_free (CliDump *dump);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CliDump, cli_dump_free)

G_END_DECLS

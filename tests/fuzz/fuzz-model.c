/* fuzz-model.c - any bytes as a model file: loaded as far as shape, tokenizer and weights go, or
 * refused with a sentence; a text is tokenised and put together again with whatever loads. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/model.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void
require(bool promise)
{
  if (!promise)
    abort();
}

/* Opened with the first input and kept: starting a device costs more than an input does. */
static ks_backend *
get_backend(void)
{
  static ks_backend be;

  if (be.t == NULL) {
    ks_dev_params params = {.alloc = ks_alloc_new(), .n_thread = 1};

    require(params.alloc != NULL && ks_backend_open("cpu", &params, &be, NULL) == KS_OK);
  }
  return &be;
}

static void
use_tokenizer(ks_alloc *a, const ks_tokenizer *tok)
{
  static const char text[] = "in the\n <|im_start|>\xc3\xa4 12 <s>";
  ks_token_list ids;
  size_t n_text;
  char *back;

  ks_token_list_init(&ids, a);
  if (ks_tokenizer_encode(tok, text, sizeof text - 1,
                          KS_ENCODE_ADD_SPECIAL | KS_ENCODE_PARSE_SPECIAL, &ids, NULL) == KS_OK) {
    for (size_t i = 0; i < ids.n; i++)
      require((uint32_t)ids.ids[i] < ks_tokenizer_get_n_vocab(tok));
    if (ks_tokenizer_decode(tok, a, ids.ids, ids.n, true, &back, &n_text, NULL) == KS_OK)
      ks_mem_free(back);
  }
  ks_token_list_done(&ids);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  const ks_model_params params = {.be = get_backend()};
  ks_alloc *a = ks_alloc_new();
  ks_model *model = NULL;
  ks_gguf *g = NULL;
  ks_error err = {.text = ""};

  if (a == NULL)
    return 0;
  if (ks_gguf_open_bytes(a, data, n, &g, &err) == KS_OK) {
    if (ks_model_open_gguf(a, g, &params, &model, &err) == KS_OK) {
      use_tokenizer(a, ks_model_get_tokenizer(model));
      require(ks_model_get_weight_bytes(model) > 0);
      ks_model_close(model);
    } else {
      require(model == NULL && err.text[0] != '\0');
    }
  }
  for (int kind = 0; kind < KS_N_MEM_KIND; kind++)
    require(ks_alloc_get_bytes(a, (ks_mem_kind)kind) == 0);
  ks_alloc_free(a);
  return 0;
}

/* requantise.c - a model file in another weight type, for measuring only.
 * Usage: requantise IN.gguf OUT.gguf q4_0|q5_1|q8_0|q4_k
 * Keys are copied.  Matrices of the layers get the wanted type; embeddings, the output head and
 * vectors stay as they are.  q4_k is a mix: Q4_K where rows divide into blocks of 256, with Q6_K
 * for the downward and value matrices of a part of the layers; rows that do not divide get Q5_0 and
 * Q8_0 in their place.  Values come from the file's own blocks, so the result is no better than it.
 * Source: docs/formats/gguf.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gguf-write.h"
#include "tests/bench/k-quant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
  ks_alloc *alloc;
  ks_gguf *in;
  ks_gguf_writer *out;
  ks_dtype target;
  uint32_t n_layer;
  void **blocks; /* requantised data of each tensor, or NULL */
  ks_error err;
} job;

/* The name of a target, its number in general.file_type. */
static const struct {
  const char *name;
  ks_dtype dtype;
  uint32_t file_type;
} targets[] = {{"q4_0", KS_DTYPE_Q4_0, 2},
               {"q5_1", KS_DTYPE_Q5_1, 9},
               {"q8_0", KS_DTYPE_Q8_0, 7},
               {"q4_k", KS_DTYPE_Q4_K, 15}};

static uint32_t
file_type(ks_dtype target)
{
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
    if (targets[i].dtype == target)
      return targets[i].file_type;
  return 0;
}

static ks_status
copy_str_array(job *j, const char *name, const ks_gguf_key *key)
{
  char **texts = ks_mem_new(j->alloc, KS_MEM_HOST, key->n_elem, sizeof *texts);
  size_t cursor = 0;
  ks_gguf_str s;
  ks_status st = KS_OK;

  if (texts == NULL)
    return ks_fail(&j->err, KS_ERR_NOMEM, "no memory for %s", name);
  for (uint64_t i = 0; i < key->n_elem && st == KS_OK; i++)
    if (!ks_gguf_key_next_str(key, &cursor, &s) ||
        (texts[i] = ks_mem_dup_str(j->alloc, KS_MEM_HOST, s.data, s.n_bytes)) == NULL)
      st = ks_fail(&j->err, KS_ERR_FORMAT, "%s cannot be read", name);
  if (st == KS_OK)
    ks_gguf_writer_add_str_array(j->out, name, (const char *const *)texts, key->n_elem);
  for (uint64_t i = 0; i < key->n_elem; i++)
    ks_mem_free(texts[i]);
  ks_mem_free(texts);
  return st;
}

static ks_status
copy_key(job *j, const ks_gguf_key *key)
{
  char *name = ks_mem_dup_str(j->alloc, KS_MEM_HOST, key->name.data, key->name.n_bytes);
  ks_status st = KS_OK;

  if (name == NULL)
    return ks_fail(&j->err, KS_ERR_NOMEM, "no memory for a key");
  if (strcmp(name, "general.file_type") == 0) {
    ks_gguf_writer_add_u32(j->out, name, file_type(j->target));
  } else if (key->type == KS_GGUF_ARRAY && key->elem_type == KS_GGUF_STRING) {
    st = copy_str_array(j, name, key);
  } else if (key->type == KS_GGUF_ARRAY) {
    ks_gguf_writer_add_array(j->out, name, key->elem_type, key->value, key->n_elem);
  } else if (key->type == KS_GGUF_STRING) {
    char *text =
        ks_mem_dup_str(j->alloc, KS_MEM_HOST, (const char *)key->value, key->n_value_bytes);

    if (text != NULL)
      ks_gguf_writer_add_str(j->out, name, text);
    else
      st = ks_fail(&j->err, KS_ERR_NOMEM, "no memory for %s", name);
    ks_mem_free(text);
  } else {
    ks_gguf_writer_add(j->out, name, key->type, key->value);
  }
  ks_mem_free(name);
  return st;
}

/* Layers whose downward and value matrices get the finer type: the first and last eighth, and every
 * third of the others. */
static bool
is_fine_layer(const job *j, uint32_t layer)
{
  uint32_t eighth = j->n_layer / 8;

  return layer < eighth || layer >= j->n_layer - eighth || (layer - eighth) % 3 == 2;
}

static ks_dtype
choose_dtype(const job *j, const ks_gguf_tensor *t)
{
  bool divides = t->ne[0] % 256 == 0, is_fine;
  unsigned layer;
  char part[32];

  if (t->n_dims != 2 || sscanf(t->name, "blk.%u.%31[a-z_].weight", &layer, part) != 2)
    return t->dtype;
  if (j->target != KS_DTYPE_Q4_K)
    return j->target;
  is_fine =
      (strcmp(part, "ffn_down") == 0 || strcmp(part, "attn_v") == 0) && is_fine_layer(j, layer);
  if (is_fine)
    return divides ? KS_DTYPE_Q6_K : KS_DTYPE_Q8_0;
  return divides ? KS_DTYPE_Q4_K : KS_DTYPE_Q5_0;
}

static ks_status
add_tensor(job *j, size_t i)
{
  const ks_gguf_tensor *t = ks_gguf_get_tensor(j->in, i);
  ks_dtype dtype = choose_dtype(j, t);
  size_t row_bytes, n_elem = (size_t)t->ne[0], n_row = t->n_bytes / t->row_bytes;
  float *row;

  if (dtype == t->dtype) {
    ks_gguf_writer_add_tensor(j->out, t->name, dtype, t->n_dims, t->ne, t->data);
    return KS_OK;
  }
  if (!ks_dtype_row_bytes(dtype, n_elem, &row_bytes))
    return ks_fail(&j->err, KS_ERR_UNSUPPORTED, "rows of %s do not divide into blocks of %s",
                   t->name, ks_dtype_get_info((uint32_t)dtype)->name);
  row = ks_mem_new(j->alloc, KS_MEM_HOST, n_elem, sizeof *row);
  j->blocks[i] = ks_mem_new(j->alloc, KS_MEM_HOST, n_row, row_bytes);
  if (row == NULL || j->blocks[i] == NULL) {
    ks_mem_free(row);
    return ks_fail(&j->err, KS_ERR_NOMEM, "no memory for %s", t->name);
  }
  for (size_t r = 0; r < n_row; r++) {
    unsigned char *dst = (unsigned char *)j->blocks[i] + r * row_bytes;

    ks_dequantise_row(t->dtype, t->data + r * t->row_bytes, row, n_elem);
    if (!ks_quantise_row(dtype, row, dst, n_elem) && !k_quantise_row(dtype, row, dst, n_elem)) {
      ks_mem_free(row);
      return ks_fail(&j->err, KS_ERR_UNSUPPORTED, "nothing writes the type of %s", t->name);
    }
  }
  ks_mem_free(row);
  ks_gguf_writer_add_tensor(j->out, t->name, dtype, t->n_dims, t->ne, j->blocks[i]);
  return KS_OK;
}

/* The layers are counted by the names of tensors, which holds for every architecture. */
static void
count_layers(job *j)
{
  unsigned layer;

  for (size_t i = 0; i < ks_gguf_get_n_tensors(j->in); i++)
    if (sscanf(ks_gguf_get_tensor(j->in, i)->name, "blk.%u.", &layer) == 1 && layer >= j->n_layer)
      j->n_layer = layer + 1;
}

static ks_status
convert(job *j, const char *in_path, const char *out_path)
{
  size_t n_tensor;

  if (ks_gguf_open(j->alloc, in_path, &j->in, &j->err) != KS_OK)
    return j->err.status;
  n_tensor = ks_gguf_get_n_tensors(j->in);
  count_layers(j);
  j->out = ks_gguf_writer_new(j->alloc, 0);
  j->blocks = ks_mem_new(j->alloc, KS_MEM_HOST, n_tensor, sizeof *j->blocks);
  if (j->out == NULL || j->blocks == NULL)
    return ks_fail(&j->err, KS_ERR_NOMEM, "no memory");
  for (size_t i = 0; i < ks_gguf_get_n_keys(j->in); i++)
    if (copy_key(j, ks_gguf_get_key(j->in, i)) != KS_OK)
      return j->err.status;
  for (size_t i = 0; i < n_tensor; i++)
    if (add_tensor(j, i) != KS_OK)
      return j->err.status;
  return ks_gguf_writer_save(j->out, out_path, &j->err);
}

static void
job_done(job *j)
{
  for (size_t i = 0; j->blocks != NULL && i < ks_gguf_get_n_tensors(j->in); i++)
    ks_mem_free(j->blocks[i]);
  ks_mem_free(j->blocks);
  ks_gguf_writer_free(j->out);
  ks_gguf_close(j->in);
  ks_alloc_free(j->alloc);
}

int
main(int argc, char **argv)
{
  job j = {.alloc = ks_alloc_new(), .target = KS_N_DTYPE};
  int rc = 2;

  for (size_t i = 0; argc == 4 && i < sizeof targets / sizeof targets[0]; i++)
    if (strcmp(argv[3], targets[i].name) == 0)
      j.target = targets[i].dtype;
  if (j.target == KS_N_DTYPE || j.alloc == NULL) {
    fprintf(stderr, "usage: requantise IN.gguf OUT.gguf q4_0|q5_1|q8_0|q4_k\n");
  } else {
    rc = convert(&j, argv[1], argv[2]) == KS_OK ? 0 : 1;
    if (rc != 0)
      fprintf(stderr, "requantise: %s\n", j.err.text);
  }
  job_done(&j);
  return rc;
}

/* model-repack.c - the second copy of a model's matrices, in the order of the device's kernels.
 * One block holds all of them, layer by layer, the output last: what no longer fits into the room
 * is then what a prompt needs least.  Pages of the file whose matrix was copied are given back at
 * once, so that loading never holds both forms of more than one matrix; a tied embedding table is
 * read from the output's copy.  Source: docs/adr/0014-packed-weights.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/model-internal.h"

#define N_PART 7 /* matrices of a layer */
#define PART_ALIGN ((size_t)64)

static size_t
count_weights(const ks_model *m)
{
  return (size_t)m->shape.n_layer * N_PART + 1;
}

/* The matrices that linear reads, in the order of the block. */
static ks_weight *
get_weight(ks_model *m, size_t i)
{
  ks_layer *layer;

  if (i + 1 == count_weights(m))
    return &m->output;
  layer = &m->layers[i / N_PART];
  switch (i % N_PART) {
  case 0:
    return &layer->wq;
  case 1:
    return &layer->wk;
  case 2:
    return &layer->wv;
  case 3:
    return &layer->wo;
  case 4:
    return &layer->w_gate;
  case 5:
    return &layer->w_up;
  default:
    return &layer->w_down;
  }
}

/* Bytes in the block; 0 when there is no other form of it. */
static size_t
part_bytes(const ks_model *m, const ks_weight *w)
{
  size_t n_bytes = w->data != 0 ? m->be->t->repack_bytes(m->be->dev, w) : 0;

  if (!ks_add_size(n_bytes, PART_ALIGN - 1, &n_bytes))
    return 0;
  return n_bytes / PART_ALIGN * PART_ALIGN;
}

/* Bytes of the block inside room; the caller takes the same matrices by the same rule. */
static size_t
count_inside(ks_model *m, uint64_t room)
{
  const size_t n = count_weights(m);
  size_t sum = 0;

  for (size_t i = 0; i < n; i++) {
    const size_t n_bytes = part_bytes(m, get_weight(m, i));

    if (n_bytes <= room - sum && n_bytes <= SIZE_MAX - sum)
      sum += n_bytes;
  }
  return sum;
}

uint64_t
ks_model_count_repack_bytes(ks_model *model)
{
  return count_inside(model, UINT64_MAX);
}

void
ks_model_drop_repacked(ks_model *model)
{
  const size_t n = count_weights(model);

  if (model->repacked == 0)
    return;
  for (size_t i = 0; i < n; i++)
    get_weight(model, i)->packed = get_weight(model, i)->split = 0;
  model->embd.packed = model->embd.split = 0;
  model->be->t->mem_free(model->be->dev, model->repacked);
  model->weight_bytes -= model->repacked_bytes;
  model->repacked = 0;
  model->repacked_bytes = 0;
}

/* Gives the file's pages of a matrix back. */
static void
drop_pages(const ks_model *m, const ks_weight *w)
{
  ks_gguf_drop_pages(m->gguf, (const void *)(uintptr_t)w->data, w->row_bytes * w->n_out);
}

void
ks_model_repack(ks_model *model, uint64_t room, ks_stop_fn stop, void *user)
{
  const ks_backend *be = model->be;
  const size_t n = count_weights(model);
  size_t n_bytes, used = 0;

  ks_model_drop_repacked(model);
  n_bytes = count_inside(model, room);
  if (n_bytes == 0 ||
      be->t->mem_new(be->dev, KS_MEM_WEIGHTS, n_bytes, &model->repacked, NULL) != KS_OK)
    return;
  model->repacked_bytes = n_bytes;
  model->weight_bytes += n_bytes;
  for (size_t i = 0; i < n; i++) {
    ks_weight *w = get_weight(model, i);
    const size_t part = part_bytes(model, w);

    if (stop != NULL && stop(user)) {
      ks_model_drop_repacked(model);
      return;
    }
    if (part == 0 || part > n_bytes - used)
      continue;
    be->t->weight_repack(be->dev, w, model->repacked + used);
    used += part;
    drop_pages(model, w);
  }
  if (model->embd.data == model->output.data) {
    model->embd.packed = model->output.packed;
    model->embd.split = model->output.split;
  }
  /* The system maps some pages around one that is read: the neighbours brought a few back. */
  for (size_t i = 0; i < n; i++)
    if (get_weight(model, i)->packed != 0 || get_weight(model, i)->split != 0)
      drop_pages(model, get_weight(model, i));
}

/* cpu-kv-internal.h - reading page lists: entry e of a stream lies in page pages[e / P], slot e %
 * P. Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-backend-internal.h"
#include "engine/cpu-vec-internal.h"

KS_BEGIN_DECLS

/* One stream of a view, ready for address arithmetic. */
typedef struct ks_cpu_stream {
  unsigned char *base;
  const ks_kv_layout *layout;
  const uint32_t *pages;
  uint32_t n_entry; /* live ones, without those appended in this step */
} ks_cpu_stream;

/* Consecutive slots of one page. */
typedef struct ks_cpu_slots {
  unsigned char *k, *v;
  float *log_beta;
  uint32_t *pos;
  float *aux; /* plane j at aux + j * page_entries */
  uint32_t n;
} ks_cpu_slots;

static inline ks_cpu_stream
ks_cpu_stream_get(const ks_kv_view *kv, uint32_t stream)
{
  ks_cpu_stream s;

  s.base = (unsigned char *)ks_cpu_ptr(kv->base);
  s.layout = kv->layout;
  s.pages = kv->streams[stream].pages;
  s.n_entry = kv->streams[stream].n_entry;
  return s;
}

static inline uint32_t
ks_cpu_n_stream(const ks_kv_view *kv)
{
  return kv->layout->n_layer * kv->layout->n_kv_head;
}

static inline unsigned char *
ks_cpu_page(const ks_cpu_stream *s, uint32_t entry)
{
  return s->base + (size_t)s->pages[entry / s->layout->page_entries] * s->layout->page_bytes;
}

/* The slots from entry on, at most n of them and not past the page's end. */
static inline ks_cpu_slots
ks_cpu_slots_get(const ks_cpu_stream *s, uint32_t entry, uint32_t n)
{
  const ks_kv_layout *layout = s->layout;
  const uint32_t slot = entry % layout->page_entries, room = layout->page_entries - slot;
  unsigned char *page = ks_cpu_page(s, entry);
  ks_cpu_slots run;

  run.k = page + slot * layout->k_row_bytes;
  run.v = page + layout->v_offset + slot * layout->v_row_bytes;
  run.log_beta = (float *)(void *)(page + layout->log_beta_offset) + slot;
  run.pos = (uint32_t *)(void *)(page + layout->pos_offset) + slot;
  run.aux = (float *)(void *)(page + layout->aux_offset) + slot;
  run.n = n < room ? n : room;
  return run;
}

static inline uint32_t
ks_cpu_pos_get(const ks_cpu_stream *s, uint32_t entry)
{
  const uint32_t slot = entry % s->layout->page_entries;

  return ((const uint32_t *)(const void *)(ks_cpu_page(s, entry) + s->layout->pos_offset))[slot];
}

/* Live entries over all streams: the length of score and keep arrays. */
static inline size_t
ks_cpu_n_live(const ks_kv_view *kv)
{
  const uint32_t n_stream = ks_cpu_n_stream(kv);
  size_t total = 0;

  for (uint32_t s = 0; s < n_stream; s++)
    total += kv->streams[s].n_entry;
  return total;
}

/* Walks the pieces [begin, end) of streams that make up a range of the flat array of all entries.
 */
typedef struct ks_cpu_walk {
  uint32_t stream, begin, end; /* present piece: entries of one stream */
  size_t offset;               /* flat index of entry begin */
  size_t stream_offset, stop;  /* flat index of the stream's entry 0; end of the range */
} ks_cpu_walk;

static inline ks_cpu_walk
ks_cpu_walk_init(size_t begin, size_t end)
{
  ks_cpu_walk walk = {0, 0, 0, 0, 0, 0};

  walk.offset = begin;
  walk.stop = end;
  return walk;
}

/* Moves to the next piece; false at the end. */
static inline bool
ks_cpu_walk_next(const ks_kv_view *kv, ks_cpu_walk *walk)
{
  size_t end;

  walk->offset += walk->end - walk->begin;
  if (walk->offset >= walk->stop)
    return false;
  while (walk->stream_offset + kv->streams[walk->stream].n_entry <= walk->offset)
    walk->stream_offset += kv->streams[walk->stream++].n_entry;
  end = walk->stream_offset + kv->streams[walk->stream].n_entry;
  walk->begin = (uint32_t)(walk->offset - walk->stream_offset);
  walk->end = (uint32_t)((end < walk->stop ? end : walk->stop) - walk->stream_offset);
  return true;
}

KS_END_DECLS

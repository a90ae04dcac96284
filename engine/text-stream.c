/* text-stream.c - pieces of tokens in, text that may be shown out.
 * Held back: the tail that could still become a stop string, and an unfinished UTF-8 sequence. What
 * leaves is valid UTF-8: a byte that fits nowhere becomes U+FFFD. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/sampler.h"
#include "engine/unicode.h"

#include <string.h>

typedef struct byte_buffer {
  char *data;
  size_t n, capacity;
} byte_buffer;

typedef struct stop_string {
  char *text;
  size_t n;
} stop_string;

struct ks_text_stream {
  ks_alloc *alloc;
  stop_string *stops;
  size_t n_stop;
  byte_buffer held, out;
  bool stopped;
};

static bool
reserve(ks_alloc *a, byte_buffer *b, size_t n)
{
  size_t capacity;
  char *data;

  if (n <= b->capacity)
    return true;
  if (!ks_add_size(n, n / 2 + 64, &capacity))
    return false;
  data = (char *)ks_mem_resize(a, KS_MEM_HOST, b->data, capacity, 1);
  if (data == NULL)
    return false;
  b->data = data;
  b->capacity = capacity;
  return true;
}

ks_status
ks_text_stream_new(ks_alloc *a, const char *const *stops, size_t n, ks_text_stream **out,
                   ks_error *err)
{
  ks_text_stream *stream;

  for (size_t i = 0; i < n; i++)
    if (stops[i][0] == '\0')
      return ks_fail(err, KS_ERR_ARG, "stop string %zu is empty", i + 1);
  stream = (ks_text_stream *)ks_mem_new(a, KS_MEM_HOST, 1, sizeof *stream);
  if (stream == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the answer's text");
  stream->alloc = a;
  stream->stops = (stop_string *)ks_mem_new(a, KS_MEM_HOST, n, sizeof *stream->stops);
  for (size_t i = 0; stream->stops != NULL && i < n; i++) {
    stream->stops[i].n = strlen(stops[i]);
    stream->stops[i].text = ks_mem_dup_str(a, KS_MEM_HOST, stops[i], stream->stops[i].n);
    if (stream->stops[i].text == NULL)
      break;
    stream->n_stop++;
  }
  if (stream->stops == NULL || stream->n_stop < n) {
    ks_text_stream_free(stream);
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the stop strings");
  }
  *out = stream;
  return KS_OK;
}

void
ks_text_stream_free(ks_text_stream *stream)
{
  if (stream == NULL)
    return;
  for (size_t i = 0; i < stream->n_stop; i++)
    ks_mem_free(stream->stops[i].text);
  ks_mem_free(stream->stops);
  ks_mem_free(stream->held.data);
  ks_mem_free(stream->out.data);
  ks_mem_free(stream);
}

/* Start of the first complete stop string in the held bytes; held.n when there is none. */
static size_t
find_stop(const ks_text_stream *stream)
{
  size_t first = stream->held.n;

  for (size_t i = 0; i < stream->n_stop; i++) {
    const stop_string *stop = &stream->stops[i];

    for (size_t pos = 0; pos < first && pos + stop->n <= stream->held.n; pos++)
      if (memcmp(stream->held.data + pos, stop->text, stop->n) == 0) {
        first = pos;
        break;
      }
  }
  return first;
}

/* Length of the longest tail of the held bytes that begins a stop string. */
static size_t
stop_tail(const ks_text_stream *stream)
{
  size_t longest = 0;

  for (size_t i = 0; i < stream->n_stop; i++) {
    const stop_string *stop = &stream->stops[i];
    size_t n = stop->n - 1 < stream->held.n ? stop->n - 1 : stream->held.n;

    for (; n > longest; n--)
      if (memcmp(stream->held.data + stream->held.n - n, stop->text, n) == 0)
        longest = n;
  }
  return longest;
}

/* Moves the first n held bytes to out as valid UTF-8.  Room for the worst case, three bytes for
 * each broken one, was reserved by the caller. */
static void
release(ks_text_stream *stream, size_t n)
{
  const char *data = stream->held.data;
  char *out = stream->out.data;
  size_t pos = 0, n_out = 0;

  while (pos < n) {
    uint32_t cp;

    pos += ks_utf8_decode(data + pos, n - pos, &cp);
    n_out += ks_utf8_encode(cp, out + n_out);
  }
  stream->out.n = n_out;
  stream->held.n -= n;
  if (stream->held.n > 0)
    memmove(stream->held.data, stream->held.data + n, stream->held.n);
}

ks_status
ks_text_stream_push(ks_text_stream *stream, const char *piece, size_t n, const char **out_text,
                    size_t *out_n, bool *out_stopped, ks_error *err)
{
  size_t n_held, n_out, n_free;

  if (!ks_add_size(stream->held.n, n, &n_held) || !ks_mul_size(n_held, 3, &n_out) ||
      !reserve(stream->alloc, &stream->held, n_held + 1) ||
      !reserve(stream->alloc, &stream->out, n_out + 4))
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the answer's text");
  stream->out.n = 0;
  if (!stream->stopped) {
    if (n > 0)
      memcpy(stream->held.data + stream->held.n, piece, n);
    stream->held.n = n_held;
    n_free = find_stop(stream);
    if (n_free < n_held) {
      stream->stopped = true;
      stream->held.n = n_free;
    } else {
      n_free = n_held - stop_tail(stream);
      n_free = ks_utf8_complete_prefix(stream->held.data, n_free);
    }
    release(stream, n_free);
  }
  *out_text = stream->out.data;
  *out_n = stream->out.n;
  *out_stopped = stream->stopped;
  return KS_OK;
}

const char *
ks_text_stream_get_held(const ks_text_stream *stream, size_t *out_n)
{
  *out_n = stream->held.n;
  return stream->held.data;
}

ks_status
ks_text_stream_finish(ks_text_stream *stream, const char **out_text, size_t *out_n, ks_error *err)
{
  size_t n_out;

  if (!ks_mul_size(stream->held.n, 3, &n_out) ||
      !reserve(stream->alloc, &stream->held, stream->held.n + 1) ||
      !reserve(stream->alloc, &stream->out, n_out + 4))
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the answer's text");
  release(stream, stream->held.n);
  *out_text = stream->out.data;
  *out_n = stream->out.n;
  return KS_OK;
}

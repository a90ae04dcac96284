/* ks-svg-loader.c - SVG with librsvg (inside the worker), also packed by gzip.
 * The document has no place of its own, so that librsvg follows no reference but data: addresses;
 * scripts are never run, and fonts are those of the system.  A drawing has no pixels of its own: it
 * is drawn in the size it names, its longest side at least 512 pixels and at most what was asked.
 * Threads: Pango finds fonts on one of its own.  Source: docs/adr/0019-decoders-of-pictures.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-font-paths.h"
#include "media/ks-image-output.h"
#include "media/ks-loader.h"

#include <cairo.h>
#include <gio/gio.h>
#include <librsvg/rsvg.h>
#include <math.h>
#include <string.h>

#define MAX_TEXT_BYTES (G_GUINT64_CONSTANT (32) << 20)
#define MIN_SIDE_PX 512

static const char small_svg[] = "<svg xmlns='http://www.w3.org/2000/svg'/>";

/* librsvg asks for languages and types when it reads its first document. */
static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  g_autoptr (GInputStream) stream =
      g_memory_input_stream_new_from_data (small_svg, sizeof small_svg - 1, NULL);
  RsvgHandle *handle =
      rsvg_handle_new_from_stream_sync (stream, NULL, RSVG_HANDLE_FLAGS_NONE, NULL, NULL);

  ks_font_paths_add (paths);
  g_clear_object (&handle);
}

/* The unpacked text (g_free), never more than MAX_TEXT_BYTES of it. */
static guint8 *
unpack (const guint8 *packed, gsize n_packed, gsize *out_n)
{
  g_autoptr (GZlibDecompressor) unpacker = g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP);
  gsize room = 65536, at = 0, n_done = 0, n_read, n_written;
  guint8 *text = g_try_malloc (room);

  for (;;) {
    GConverterResult result;

    if (at == room)
      text = g_try_realloc (text, room *= 2);
    if (text == NULL)
      ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
    result =
        g_converter_convert (G_CONVERTER (unpacker), packed + n_done, n_packed - n_done, text + at,
                             room - at, G_CONVERTER_INPUT_AT_END, &n_read, &n_written, NULL);
    if (result == G_CONVERTER_ERROR)
      ks_answer_fault (KS_WIRE_FAULT_UNKNOWN, 0, 0);
    n_done += n_read;
    at += n_written;
    if (at > MAX_TEXT_BYTES)
      ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
    if (result == G_CONVERTER_FINISHED) {
      *out_n = at;
      return text;
    }
  }
}

static gboolean
is_size (double width, double height)
{
  return isfinite (width) && isfinite (height) && width > 0 && height > 0;
}

/* Width and height that the drawing names, or of what it shows of itself; only their ratio counts
 * for one that has neither. */
static void
find_size (RsvgHandle *handle, double *width, double *height)
{
  gboolean has_width, has_height, has_box;
  RsvgLength w, h;
  RsvgRectangle box;

  if (rsvg_handle_get_intrinsic_size_in_pixels (handle, width, height) && is_size (*width, *height))
    return;
  rsvg_handle_get_intrinsic_dimensions (handle, &has_width, &w, &has_height, &h, &has_box, &box);
  if (!has_box || !is_size (box.width, box.height)) {
    has_box = rsvg_handle_get_geometry_for_element (handle, NULL, &box, NULL, NULL);
    if (!has_box || !is_size (box.width, box.height))
      box = (RsvgRectangle){0, 0, MIN_SIDE_PX, MIN_SIDE_PX};
  }
  *width = box.width;
  *height = box.height;
}

/* cairo's premultiplied words as RGBA bytes, in place. */
static void
order_bytes (guint8 *rows, gsize stride, guint width, guint height)
{
  for (guint y = 0; y < height; y++)
    for (guint x = 0; x < width; x++) {
      guint8 *pixel = rows + y * stride + (gsize)4 * x;
      guint32 argb;

      memcpy (&argb, pixel, sizeof argb);
      for (guint i = 0; i < 3; i++)
        pixel[i] = (guint8)(argb >> (16 - 8 * i));
      pixel[3] = (guint8)(argb >> 24);
    }
}

/* The drawing fills the whole picture, also where a side of less than a pixel was rounded up. */
static cairo_surface_t *
draw (RsvgHandle *handle, double exact_width, double exact_height, guint width, guint height)
{
  RsvgRectangle all = {0, 0, exact_width, exact_height};
  cairo_surface_t *surface =
      cairo_image_surface_create (CAIRO_FORMAT_ARGB32, (int)width, (int)height);
  cairo_t *cr = cairo_create (surface);

  if (cairo_status (cr) != CAIRO_STATUS_SUCCESS)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  cairo_scale (cr, width / exact_width, height / exact_height);
  if (!rsvg_handle_render_document (handle, cr, &all, NULL) ||
      cairo_status (cr) != CAIRO_STATUS_SUCCESS)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  cairo_destroy (cr);
  cairo_surface_flush (surface);
  return surface;
}

static RsvgHandle *
open_drawing (const KsLoaderJob *job)
{
  g_autoptr (GInputStream) stream = NULL;
  RsvgHandle *handle;
  gsize n;
  guint8 *data = ks_loader_read (job, MAX_TEXT_BYTES, KS_WIRE_FAULT_MEMORY, &n);

  if (n >= 2 && data[0] == 0x1f && data[1] == 0x8b)
    data = unpack (data, n, &n);
  stream = g_memory_input_stream_new_from_data (data, (gssize)n, NULL);
  handle = rsvg_handle_new_from_stream_sync (stream, NULL, RSVG_HANDLE_FLAGS_NONE, NULL, NULL);
  if (handle == NULL)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  return handle;
}

static void
run (const KsLoaderJob *job)
{
  KsWireAnswer answer = {.what = KS_WIRE_IMAGE};
  RsvgHandle *handle = open_drawing (job);
  guint max = job->request->max_side_px, width_px, height_px;
  double width, height, longest, scale;
  cairo_surface_t *surface;
  guint8 *rows;
  gsize stride;

  rsvg_handle_set_dpi (handle, 96);
  find_size (handle, &width, &height);
  longest = MAX (width, height);
  scale = MIN (MAX (longest, MIN_SIDE_PX), max) / longest;
  width_px = (guint)CLAMP (round (width * scale), 1, max);
  height_px = (guint)CLAMP (round (height * scale), 1, max);
  surface = draw (handle, width * scale, height * scale, width_px, height_px);
  rows = cairo_image_surface_get_data (surface);
  stride = (gsize)cairo_image_surface_get_stride (surface);
  order_bytes (rows, stride, width_px, height_px);
  if (ks_image_lay_over_white (rows, stride, width_px, height_px, TRUE))
    answer.warnings |= KS_WIRE_WARN_OVER_WHITE;
  rows = ks_image_make_pixels (ks_image_wrap (AV_PIX_FMT_RGBA, rows, stride, width_px, height_px),
                               max, 1, &answer);
  ks_answer_pixels (&answer, rows);
}

const KsLoader KS_LOADER_SYMBOL = {prepare, run, TRUE};

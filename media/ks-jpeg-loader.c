/* ks-jpeg-loader.c - JPEG with libjpeg-turbo (inside the worker), with the conversions that models
 * were trained on: exact inverse transform, smooth chroma, CMYK as Adobe stores it.
 * Of a file that ends early the rows that are there.  Nothing returns from an error of the library:
 * it is answered where it comes up.  Source: docs/adr/0019-decoders-of-pictures.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-header.h"
#include "media/ks-image-output.h"
#include "media/ks-image-profile.h"
#include "media/ks-loader.h"

#include <stdio.h> /* before jpeglib.h, which needs it */

#include <jpeglib.h> /* before jerror.h, whose numbers depend on it */

#include <jerror.h>
#include <string.h>

#define MAX_SCANS 200 /* an honest progressive file has about ten */
#define MAX_MARKER_BYTES 65533

typedef struct {
  struct jpeg_decompress_struct info;
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  KsWireAnswer answer;
  guint max_side_px, orientation;
  guint8 *rows; /* RGB */
  gsize stride;
  gboolean any_row;
  guint8 *profile; /* ICC, or NULL */
  guint n_profile;
} Picture;

static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  ks_image_profile_prepare ();
}

G_NORETURN static void
answer (Picture *picture)
{
  AVFrame *frame = ks_image_wrap (AV_PIX_FMT_RGB24, picture->rows, picture->stride,
                                  picture->info.output_width, picture->info.output_height);
  guint8 *pixels =
      ks_image_make_pixels (frame, picture->max_side_px, picture->orientation, &picture->answer);

  ks_image_apply_profile (pixels, (gsize)picture->answer.width_px * picture->answer.height_px,
                          picture->profile, picture->n_profile);
  ks_answer_pixels (&picture->answer, pixels);
  ks_answer_done ();
}

/* What is there of a picture is shown; a picture of which nothing is there is a fault. */
static void
error_cb (j_common_ptr info)
{
  Picture *picture = info->client_data;

  picture->answer.warnings |= KS_WIRE_WARN_ENDS_EARLY;
  if (picture->any_row)
    answer (picture);
  switch (info->err->msg_code) {
  case JERR_OUT_OF_MEMORY:
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  case JERR_BAD_PRECISION:
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, KS_WIRE_VARIANT_JPEG_12, 0);
  case JERR_ARITH_NOTIMPL:
  case JERR_CONVERSION_NOTIMPL:
  case JERR_NOT_COMPILED:
  case JERR_SOF_UNSUPPORTED:
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  default:
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  }
}

/* Level -1 is a warning; some of them cost no pixel. */
static void
message_cb (j_common_ptr info, int level)
{
  Picture *picture = info->client_data;
  int code = info->err->msg_code;

  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR &&
      code != JWRN_ADOBE_XFORM && code != JWRN_BOGUS_ICC && code != JWRN_BOGUS_PROGRESSION &&
      code != JWRN_TOO_MUCH_DATA)
    picture->answer.warnings |= KS_WIRE_WARN_ENDS_EARLY;
}

static void
print_nothing_cb (j_common_ptr info)
{
}

/* A small file can ask for thousands of passes over a large picture. */
static void
progress_cb (j_common_ptr info)
{
  if (info->is_decompressor && ((j_decompress_ptr)info)->input_scan_number > MAX_SCANS)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
}

static guint
read_orientation (const struct jpeg_decompress_struct *info)
{
  for (jpeg_saved_marker_ptr m = info->marker_list; m != NULL; m = m->next)
    if (m->data_length >= 6 && memcmp (m->data, "Exif\0\0", 6) == 0)
      return ks_image_exif_orientation (m->data, m->data_length);
  return 1;
}

/* Inverted inks, as every program writes them: both factors are light that is left. */
static void
mix_inks (const guint8 *inks, guint8 *rgb, guint n)
{
  for (guint x = 0; x < n; x++, inks += 4, rgb += 3)
    for (guint i = 0; i < 3; i++)
      rgb[i] = (guint8)((inks[i] * inks[3] + 127u) / 255u);
}

static void
read_rows (Picture *picture)
{
  struct jpeg_decompress_struct *info = &picture->info;
  gboolean inks = info->out_color_space == JCS_CMYK;
  guint8 *line = inks ? g_try_malloc ((gsize)4 * info->output_width) : NULL;

  if (inks && line == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  while (info->output_scanline < info->output_height) {
    guint8 *row = picture->rows + info->output_scanline * picture->stride;
    JSAMPROW target = inks ? line : row;

    jpeg_read_scanlines (info, &target, 1);
    if (inks)
      mix_inks (line, row, info->output_width);
    picture->any_row = TRUE;
  }
}

static void
run (const KsLoaderJob *job)
{
  Picture *picture = g_new0 (Picture, 1);
  struct jpeg_decompress_struct *info = &picture->info;
  gboolean inks;
  guint8 *data;
  gsize n;

  data = ks_loader_read (job, KS_IMAGE_MAX_FILE_BYTES, KS_WIRE_FAULT_MEMORY, &n);
  picture->answer.what = KS_WIRE_IMAGE;
  picture->max_side_px = job->request->max_side_px;
  info->err = jpeg_std_error (&picture->errors);
  picture->errors.error_exit = error_cb;
  picture->errors.emit_message = message_cb;
  picture->errors.output_message = print_nothing_cb;
  info->client_data = picture;
  jpeg_create_decompress (info);
  picture->progress.progress_monitor = progress_cb;
  info->progress = &picture->progress;
  jpeg_mem_src (info, data, (unsigned long)n);
  jpeg_save_markers (info, JPEG_APP0 + 1, MAX_MARKER_BYTES);
  jpeg_save_markers (info, JPEG_APP0 + 2, MAX_MARKER_BYTES);
  jpeg_read_header (info, TRUE);
  ks_image_check_size (info->image_width, info->image_height);
  picture->orientation = read_orientation (info);
  (void)jpeg_read_icc_profile (info, &picture->profile, &picture->n_profile);
  inks = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
  info->out_color_space = inks ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress (info);
  picture->stride = (gsize)3 * info->output_width;
  picture->rows = g_try_malloc (picture->stride * info->output_height);
  if (picture->rows == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  memset (picture->rows, 255, picture->stride * info->output_height);
  read_rows (picture);
  answer (picture);
}

const KsLoader KS_LOADER_SYMBOL = {prepare, run, FALSE};

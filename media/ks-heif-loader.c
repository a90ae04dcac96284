/* ks-heif-loader.c - HEIC and AVIF with libheif (inside the worker): the main picture of a file,
 * its grid joined, cropped and turned as the file says. The coded pictures are decoded by
 * ks-heif-codec.c, on one thread.  Without alpha the planes go to the scaler as they are, so that a
 * large photo is never RGBA in full size. Source: docs/adr/0019-decoders-of-pictures.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-heif-codec.h"
#include "media/ks-image-output.h"
#include "media/ks-image-profile.h"
#include "media/ks-loader.h"

#include <libavutil/pixfmt.h>
#include <libheif/heif.h>
#include <string.h>

/* What libheif loads by itself comes before the filter, and with its first context. */
static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  ks_heif_codec_register ();
  heif_context_free (heif_context_alloc ());
  ks_image_profile_prepare ();
}

G_NORETURN static void
fail (struct heif_error error)
{
  if (error.code == heif_error_Memory_allocation_error)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  if (error.code == heif_error_Unsupported_feature || error.code == heif_error_Unsupported_filetype)
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
}

static void
check (struct heif_error error)
{
  if (error.code != heif_error_Ok)
    fail (error);
}

/* One of FFmpeg's formats with the same planes; AV_PIX_FMT_NONE when it has none. */
static enum AVPixelFormat
get_format (const struct heif_image *image, gboolean is_rgb)
{
  static const enum AVPixelFormat formats[5][3] = {
      {AV_PIX_FMT_GRAY8, AV_PIX_FMT_GRAY10, AV_PIX_FMT_GRAY12},
      {AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUV420P10, AV_PIX_FMT_YUV420P12},
      {AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUV422P10, AV_PIX_FMT_YUV422P12},
      {AV_PIX_FMT_YUV444P, AV_PIX_FMT_YUV444P10, AV_PIX_FMT_YUV444P12},
      {AV_PIX_FMT_GBRP, AV_PIX_FMT_GBRP10, AV_PIX_FMT_GBRP12}};
  enum heif_colorspace space = heif_image_get_colorspace (image);
  enum heif_chroma chroma = heif_image_get_chroma_format (image);
  int depth = heif_image_get_bits_per_pixel_range (image, heif_channel_Y), row;

  if (space == heif_colorspace_monochrome)
    row = 0;
  else if (space == heif_colorspace_YCbCr && chroma >= heif_chroma_420 && chroma <= heif_chroma_444)
    row = (int)chroma + (is_rgb && chroma == heif_chroma_444);
  else
    return AV_PIX_FMT_NONE;
  if (depth != 8 && depth != 10 && depth != 12)
    return AV_PIX_FMT_NONE;
  return formats[row][(depth - 8) / 2];
}

/* Range and matrix: those of the file, else of the coded picture. */
static void
take_colors (AVFrame *frame, const struct heif_image *image)
{
  struct heif_color_profile_nclx *profile = NULL;

  frame->color_range = AVCOL_RANGE_JPEG;
  frame->colorspace = AVCOL_SPC_UNSPECIFIED;
  if (heif_image_get_nclx_color_profile (image, &profile).code != heif_error_Ok)
    return;
  frame->color_range = profile->full_range_flag ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  frame->colorspace = (enum AVColorSpace)profile->matrix_coefficients;
  heif_nclx_color_profile_free (profile);
}

/* The planes of image as a frame that borrows them.  NULL: they are of no form that is known. */
static AVFrame *
wrap_planes (const struct heif_image *image)
{
  static const enum heif_channel channels[] = {heif_channel_Y, heif_channel_Cb, heif_channel_Cr};
  AVFrame *frame = av_frame_alloc ();
  int stride;

  if (frame == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  take_colors (frame, image);
  frame->format = get_format (image, frame->colorspace == AVCOL_SPC_RGB);
  frame->width = heif_image_get_width (image, heif_channel_Y);
  frame->height = heif_image_get_height (image, heif_channel_Y);
  for (guint i = 0; i < G_N_ELEMENTS (channels); i++) {
    frame->data[i] = (guint8 *)heif_image_get_plane_readonly (image, channels[i], &stride);
    frame->linesize[i] = frame->data[i] != NULL ? stride : 0;
  }
  if (frame->format != AV_PIX_FMT_NONE && frame->width > 0 && frame->height > 0)
    return frame;
  av_frame_free (&frame);
  return NULL;
}

static struct heif_image *
decode (const struct heif_image_handle *handle, enum heif_colorspace space, enum heif_chroma chroma)
{
  struct heif_decoding_options *options = heif_decoding_options_alloc ();
  struct heif_image *image = NULL;

  if (options == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  options->convert_hdr_to_8bit = space == heif_colorspace_RGB;
  check (heif_decode_image (handle, &image, space, chroma, options));
  heif_decoding_options_free (options);
  return image;
}

/* RGBA of 8 bits over white, for pictures with alpha and for rare forms. */
static AVFrame *
make_rgba (const struct heif_image_handle *handle, KsWireAnswer *answer)
{
  struct heif_image *image = decode (handle, heif_colorspace_RGB, heif_chroma_interleaved_RGBA);
  int width = heif_image_get_width (image, heif_channel_interleaved), stride = 0;
  int height = heif_image_get_height (image, heif_channel_interleaved);
  guint8 *rows = heif_image_get_plane (image, heif_channel_interleaved, &stride);

  if (rows == NULL || width <= 0 || height <= 0 || stride < 4 * width)
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  if (ks_image_lay_over_white (rows, (gsize)stride, (guint)width, (guint)height,
                               heif_image_is_premultiplied_alpha (image) != 0))
    answer->warnings |= KS_WIRE_WARN_OVER_WHITE;
  return ks_image_wrap (AV_PIX_FMT_RGBA, rows, (gsize)stride, (guint)width, (guint)height);
}

/* A profile as ICC; colours that are named by numbers alone are taken for sRGB. */
static void
apply_profile (const struct heif_image_handle *handle, guint8 *pixels, const KsWireAnswer *answer)
{
  gsize n = heif_image_handle_get_raw_color_profile_size (handle);
  g_autofree guint8 *profile = n > 0 && n <= KS_IMAGE_MAX_FILE_BYTES ? g_try_malloc (n) : NULL;

  if (profile != NULL &&
      heif_image_handle_get_raw_color_profile (handle, profile).code == heif_error_Ok)
    ks_image_apply_profile (pixels, (gsize)answer->width_px * answer->height_px, profile, n);
}

static void
run (const KsLoaderJob *job)
{
  KsWireAnswer answer = {.what = KS_WIRE_IMAGE};
  struct heif_context *context = heif_context_alloc ();
  struct heif_image_handle *handle = NULL;
  AVFrame *frame = NULL;
  guint8 *data, *pixels;
  gsize n;

  data = ks_loader_read (job, KS_IMAGE_MAX_FILE_BYTES, KS_WIRE_FAULT_MEMORY, &n);
  if (context == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  heif_context_set_max_decoding_threads (context, 0);
  check (heif_context_read_from_memory_without_copy (context, data, n, NULL));
  check (heif_context_get_primary_image_handle (context, &handle));
  ks_image_check_size ((guint64)MAX (heif_image_handle_get_width (handle), 0),
                       (guint64)MAX (heif_image_handle_get_height (handle), 0));
  if (!heif_image_handle_has_alpha_channel (handle))
    frame = wrap_planes (decode (handle, heif_colorspace_undefined, heif_chroma_undefined));
  if (frame == NULL)
    frame = make_rgba (handle, &answer);
  ks_image_check_size ((guint64)frame->width, (guint64)frame->height);
  if (n >= 12 && (memcmp (data + 8, "avis", 4) == 0 || memcmp (data + 8, "hevc", 4) == 0 ||
                  memcmp (data + 8, "msf1", 4) == 0))
    answer.warnings |= KS_WIRE_WARN_ANIMATED;
  else if (heif_context_get_number_of_top_level_images (context) > 1)
    answer.warnings |= KS_WIRE_WARN_SEVERAL;
  pixels = ks_image_make_pixels (frame, job->request->max_side_px, 1, &answer);
  apply_profile (handle, pixels, &answer);
  ks_answer_pixels (&answer, pixels);
}

const KsLoader KS_LOADER_SYMBOL = {prepare, run, FALSE};

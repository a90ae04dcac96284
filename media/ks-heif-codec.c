/* ks-heif-codec.c - see ks-heif-codec.h.
 * libheif pushes the parameter sets and the picture; for HEVC each unit has its length before it,
 * in four bytes, which become the start codes that FFmpeg reads. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-heif-codec.h"

#include "media/ks-image-output.h"
#include "media/ks-still-codec.h"

#include <libavutil/cpu.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libheif/heif.h>
#include <libheif/heif_plugin.h>
#include <string.h>

#define PRIORITY 500 /* libheif's own have 100 to 150 */

typedef struct {
  enum AVCodecID id;
  GByteArray *data; /* all that was pushed */
} Decoder;

static const struct heif_error no_error = {heif_error_Ok, heif_suberror_Unspecified, "Success"};
static const struct heif_error bad_data = {heif_error_Decoder_plugin_error,
                                           heif_suberror_Unspecified, "damaged picture"};
static const struct heif_error bad_form = {heif_error_Unsupported_feature,
                                           heif_suberror_Unsupported_codec, "unknown form"};
static const struct heif_error no_memory = {heif_error_Memory_allocation_error,
                                            heif_suberror_Unspecified, "out of memory"};

static const char *
get_name (void)
{
  return "FFmpeg, one thread";
}

static int
supports_hevc (enum heif_compression_format format)
{
  return format == heif_compression_HEVC ? PRIORITY : 0;
}

static int
supports_av1 (enum heif_compression_format format)
{
  return format == heif_compression_AV1 ? PRIORITY : 0;
}

static struct heif_error
new_decoder (enum AVCodecID id, void **out)
{
  Decoder *decoder = g_new0 (Decoder, 1);

  decoder->id = id;
  decoder->data = g_byte_array_new ();
  *out = decoder;
  return no_error;
}

static struct heif_error
new_hevc (void **out)
{
  return new_decoder (AV_CODEC_ID_HEVC, out);
}

static struct heif_error
new_av1 (void **out)
{
  return new_decoder (AV_CODEC_ID_AV1, out);
}

static void
free_decoder (void *data)
{
  Decoder *decoder = data;

  g_byte_array_unref (decoder->data);
  g_free (decoder);
}

static struct heif_error
push_data (void *data, const void *bytes, size_t n)
{
  Decoder *decoder = data;

  if (n > KS_IMAGE_MAX_FILE_BYTES || decoder->data->len > KS_IMAGE_MAX_FILE_BYTES)
    return bad_data;
  g_byte_array_append (decoder->data, bytes, (guint)n);
  return no_error;
}

/* Lengths become start codes, in place.  FALSE: they do not fit the data. */
static gboolean
mark_units (guint8 *data, gsize n)
{
  gsize at = 0;

  while (n - at >= 4) {
    gsize n_unit =
        (gsize)data[at] << 24 | (gsize)data[at + 1] << 16 | (gsize)data[at + 2] << 8 | data[at + 3];

    if (n_unit > n - at - 4)
      return FALSE;
    memcpy (data + at, "\0\0\0\1", 4);
    at += 4 + n_unit;
  }
  return at == n;
}

/* The first picture of all the data. */
static int
decode_frame (Decoder *decoder, AVCodecContext *context, AVFrame *frame)
{
  static const guint8 padding[AV_INPUT_BUFFER_PADDING_SIZE];
  guint n = decoder->data->len;

  g_byte_array_append (decoder->data, padding, sizeof padding);
  return ks_still_codec_decode (context, decoder->data->data, n, frame);
}

/* What the coded picture says of its colours; a file's own word comes before it. */
static void
tell_colors (const AVFrame *frame, struct heif_image *image)
{
  struct heif_color_profile_nclx *profile = heif_nclx_color_profile_alloc ();

  if (profile == NULL)
    return;
  profile->full_range_flag = frame->color_range == AVCOL_RANGE_JPEG;
  if (heif_nclx_color_profile_set_color_primaries (profile, (guint16)frame->color_primaries).code ==
          heif_error_Ok &&
      heif_nclx_color_profile_set_transfer_characteristics (profile, (guint16)frame->color_trc)
              .code == heif_error_Ok &&
      heif_nclx_color_profile_set_matrix_coefficients (profile, (guint16)frame->colorspace).code ==
          heif_error_Ok)
    heif_image_set_nclx_color_profile (image, profile);
  heif_nclx_color_profile_free (profile);
}

static struct heif_error
copy_planes (const AVFrame *frame, const AVPixFmtDescriptor *desc, struct heif_image *image)
{
  static const enum heif_channel channels[] = {heif_channel_Y, heif_channel_Cb, heif_channel_Cr};

  for (int i = 0; i < desc->nb_components; i++) {
    int width = i > 0 ? AV_CEIL_RSHIFT (frame->width, desc->log2_chroma_w) : frame->width;
    int height = i > 0 ? AV_CEIL_RSHIFT (frame->height, desc->log2_chroma_h) : frame->height;
    int stride = 0;
    struct heif_error error =
        heif_image_add_plane (image, channels[i], width, height, desc->comp[0].depth);
    guint8 *rows;

    if (error.code != heif_error_Ok)
      return error;
    rows = heif_image_get_plane (image, channels[i], &stride);
    if (rows == NULL)
      return no_memory;
    av_image_copy_plane (rows, stride, frame->data[i], frame->linesize[i],
                         width * (desc->comp[0].depth > 8 ? 2 : 1), height);
  }
  return no_error;
}

/* Planes of 8 to 16 bits, one or three of them.  Red, green and blue stand as FFmpeg orders them,
 * which is the order of the matrix "identity" as well. */
static struct heif_error
make_image (const AVFrame *frame, struct heif_image **out)
{
  const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get (frame->format);
  gboolean gray = desc != NULL && desc->nb_components == 1;
  struct heif_image *image = NULL;
  enum heif_chroma chroma;
  struct heif_error error;

  if (desc == NULL || (desc->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BE)) != 0 ||
      (!gray && (desc->nb_components != 3 || (desc->flags & AV_PIX_FMT_FLAG_PLANAR) == 0)))
    return bad_form;
  chroma = desc->log2_chroma_h > 0   ? heif_chroma_420
           : desc->log2_chroma_w > 0 ? heif_chroma_422
                                     : heif_chroma_444;
  error = heif_image_create (frame->width, frame->height,
                             gray ? heif_colorspace_monochrome : heif_colorspace_YCbCr,
                             gray ? heif_chroma_monochrome : chroma, &image);
  if (error.code != heif_error_Ok)
    return error;
  error = copy_planes (frame, desc, image);
  if (error.code != heif_error_Ok) {
    heif_image_release (image);
    return error;
  }
  tell_colors (frame, image);
  *out = image;
  return no_error;
}

static struct heif_error
decode_image (void *data, struct heif_image **out)
{
  Decoder *decoder = data;
  struct heif_error error = bad_data;
  AVCodecContext *context;
  AVFrame *frame;
  int code;

  if (decoder->id == AV_CODEC_ID_HEVC && !mark_units (decoder->data->data, decoder->data->len))
    return bad_data;
  context = ks_still_codec_open (decoder->id, KS_IMAGE_MAX_PIXELS * 2); /* with the fill of rows */
  if (context == NULL)
    return bad_form;
  frame = av_frame_alloc ();
  code = frame != NULL ? decode_frame (decoder, context, frame) : AVERROR (ENOMEM);
  if (code == AVERROR (ENOMEM))
    error = no_memory;
  else if (code == AVERROR_PATCHWELCOME)
    error = bad_form;
  else if (code == 0 && frame->width > 0 && frame->height > 0 && frame->data[0] != NULL)
    error = make_image (frame, out);
  av_frame_free (&frame);
  avcodec_free_context (&context);
  return error;
}

static const struct heif_decoder_plugin hevc = {.plugin_api_version = 1,
                                                .get_plugin_name = get_name,
                                                .does_support_format = supports_hevc,
                                                .new_decoder = new_hevc,
                                                .free_decoder = free_decoder,
                                                .push_data = push_data,
                                                .decode_image = decode_image};
static const struct heif_decoder_plugin av1 = {.plugin_api_version = 1,
                                               .get_plugin_name = get_name,
                                               .does_support_format = supports_av1,
                                               .new_decoder = new_av1,
                                               .free_decoder = free_decoder,
                                               .push_data = push_data,
                                               .decode_image = decode_image};

void
ks_heif_codec_register (void)
{
  av_log_set_level (AV_LOG_QUIET);
  (void)av_get_cpu_flags ();
  heif_register_decoder_plugin (&hevc);
  heif_register_decoder_plugin (&av1);
}

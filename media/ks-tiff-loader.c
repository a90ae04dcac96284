/* ks-tiff-loader.c - TIFF with libtiff (inside the worker): strips and tiles, 1 to 16 bits,
 * palette, CMYK, fax and JPEG compression, BigTIFF; the first picture of a file. libtiff gives RGBA
 * in the order of the file, colours times alpha.  A strip that is missing or damaged costs its rows
 * only.  Source: docs/adr/0019-decoders-of-pictures.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-output.h"
#include "media/ks-image-profile.h"
#include "media/ks-loader.h"

#include <string.h>
#include <tiffio.h>

/* The file in memory, read at a place; errors are counted by libtiff's own call. */
typedef struct {
  guint8 *data;
  gsize n, at;
  guint n_error;
} Source;

static tmsize_t
read_source (thandle_t handle, void *out, tmsize_t n)
{
  Source *source = handle;
  gsize rest = source->at < source->n ? source->n - source->at : 0;
  gsize n_read = MIN ((gsize)MAX (n, 0), rest);

  memcpy (out, source->data + MIN (source->at, source->n), n_read);
  source->at += n_read;
  return (tmsize_t)n_read;
}

static tmsize_t
write_nothing (thandle_t handle, void *data, tmsize_t n)
{
  return -1;
}

static toff_t
seek_source (thandle_t handle, toff_t offset, int whence)
{
  Source *source = handle;

  if (whence == SEEK_CUR)
    offset += source->at;
  else if (whence == SEEK_END)
    offset += source->n;
  if (offset > (toff_t)G_MAXSSIZE)
    return (toff_t)-1;
  source->at = (gsize)offset;
  return offset;
}

static int
close_source (thandle_t handle)
{
  return 0;
}

static toff_t
get_size (thandle_t handle)
{
  return ((Source *)handle)->n;
}

/* Nothing is copied: strips are decoded from the file's own bytes. */
static int
map_source (thandle_t handle, void **out, toff_t *out_n)
{
  Source *source = handle;

  *out = source->data;
  *out_n = source->n;
  return 1;
}

static void
unmap_source (thandle_t handle, void *data, toff_t n)
{
}

static void
count_error_cb (thandle_t handle, const char *module, const char *format, va_list args)
{
  if (handle != NULL)
    ((Source *)handle)->n_error++;
}

static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  TIFFSetErrorHandler (NULL);
  TIFFSetWarningHandler (NULL);
  TIFFSetErrorHandlerExt (count_error_cb);
  ks_image_profile_prepare ();
}

/* RGBA rows as they lie in the file; *out_alpha: some may be see-through. */
static guint8 *
decode (TIFF *tiff, guint32 width, guint32 height, gboolean *out_alpha)
{
  char reason[1024] = "";
  guint16 packing = COMPRESSION_NONE;
  TIFFRGBAImage image;
  guint32 *raster;

  TIFFGetFieldDefaulted (tiff, TIFFTAG_COMPRESSION, &packing);
  if (!TIFFIsCODECConfigured (packing) || !TIFFRGBAImageOK (tiff, reason))
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  raster = g_try_malloc_n ((gsize)width * height, sizeof *raster);
  if (raster == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  memset (raster, 255, (gsize)width * height * sizeof *raster);
  if (!TIFFRGBAImageBegin (&image, tiff, 0, reason))
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  /* Turned later, as every other picture; libtiff would only mirror. */
  image.orientation = image.req_orientation = ORIENTATION_TOPLEFT;
  if (!TIFFRGBAImageGet (&image, raster, width, height))
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  *out_alpha = image.alpha != 0;
  TIFFRGBAImageEnd (&image);
  for (gsize i = 0; G_BYTE_ORDER == G_BIG_ENDIAN && i < (gsize)width * height; i++)
    raster[i] = GUINT32_SWAP_LE_BE (raster[i]);
  return (guint8 *)raster;
}

/* Of the first picture; libtiff's own copy goes with its directory. (g_free) */
static guint8 *
dup_profile (TIFF *tiff, guint32 *out_n)
{
  void *profile = NULL;

  if (!TIFFGetField (tiff, TIFFTAG_ICCPROFILE, out_n, &profile) || profile == NULL)
    *out_n = 0;
  return g_memdup2 (profile, *out_n);
}

/* A smaller copy of the first picture is no further one. */
static gboolean
has_another (TIFF *tiff)
{
  guint32 kind = 0;

  while (TIFFReadDirectory (tiff)) {
    TIFFGetFieldDefaulted (tiff, TIFFTAG_SUBFILETYPE, &kind);
    if ((kind & FILETYPE_REDUCEDIMAGE) == 0)
      return TRUE;
  }
  return FALSE;
}

static void
run (const KsLoaderJob *job)
{
  KsWireAnswer answer = {.what = KS_WIRE_IMAGE};
  guint32 width = 0, height = 0;
  guint16 orientation = 1;
  g_autofree guint8 *profile = NULL;
  guint32 n_profile = 0;
  gboolean alpha, white;
  Source source = {0};
  guint8 *pixels;
  AVFrame *frame;
  TIFF *tiff;

  source.data = ks_loader_read (job, KS_IMAGE_MAX_FILE_BYTES, KS_WIRE_FAULT_MEMORY, &source.n);
  tiff = TIFFClientOpen ("picture", "r", &source, read_source, write_nothing, seek_source,
                         close_source, get_size, map_source, unmap_source);
  if (tiff == NULL || !TIFFGetField (tiff, TIFFTAG_IMAGEWIDTH, &width) ||
      !TIFFGetField (tiff, TIFFTAG_IMAGELENGTH, &height) || width == 0 || height == 0)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  ks_image_check_size (width, height);
  TIFFGetFieldDefaulted (tiff, TIFFTAG_ORIENTATION, &orientation);
  if (orientation < 1 || orientation > 8)
    orientation = 1;
  profile = dup_profile (tiff, &n_profile);
  pixels = decode (tiff, width, height, &alpha);
  if (source.n_error > 0)
    answer.warnings |= KS_WIRE_WARN_ENDS_EARLY;
  white = ks_image_lay_over_white (pixels, (gsize)4 * width, width, height, TRUE);
  if (alpha && white)
    answer.warnings |= KS_WIRE_WARN_OVER_WHITE;
  if (has_another (tiff))
    answer.warnings |= KS_WIRE_WARN_SEVERAL;
  frame = ks_image_wrap (AV_PIX_FMT_RGBA, pixels, (gsize)4 * width, width, height);
  pixels = ks_image_make_pixels (frame, job->request->max_side_px, orientation, &answer);
  ks_image_apply_profile (pixels, (gsize)answer.width_px * answer.height_px, profile, n_profile);
  ks_answer_pixels (&answer, pixels);
}

const KsLoader KS_LOADER_SYMBOL = {prepare, run, FALSE};

/* ks-ocr-loader.c - pixels to text with Tesseract (module keepsake-ocr.so, inside the worker).
 * The file is not the user's but pixels that another worker decoded, made by the program.  Language
 * data are read behind the filter, from the one folder that stays readable.  Lines that are little
 * more than guesses are left out.  Source: docs/adr/0020-documents.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-loader.h"
#include "media/ks-media.h"
#include "media/ks-ocr-data.h"

#include <string.h>
#include <tesseract/capi.h>

#define MAX_BYTES (KS_WIRE_SCAN_HEAD + (guint64)4 * KS_WIRE_MAX_SIDE_PX * KS_WIRE_MAX_SIDE_PX)
/* Percent; below it a line is noise of a photograph more often than writing. */
#define MIN_CONFIDENCE 40.0f

typedef struct {
  guint8 *rows;
  guint width_px, height_px;
} Scan;

static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  const char *folder = ks_ocr_data_get_folder ();

  if (folder == NULL || !ks_ocr_data_has (job->request->password))
    ks_answer_fault (KS_WIRE_FAULT_LANGUAGE, 0, 0);
  g_ptr_array_add (paths, g_strdup (folder));
}

static guint32
get32 (const guint8 *p)
{
  return (guint32)p[0] | (guint32)p[1] << 8 | (guint32)p[2] << 16 | (guint32)p[3] << 24;
}

static Scan
read_scan (const KsLoaderJob *job)
{
  gsize n = 0;
  guint8 *data = ks_loader_read (job, MAX_BYTES, KS_WIRE_FAULT_MEMORY, &n);
  Scan scan = {.rows = data + KS_WIRE_SCAN_HEAD};

  if (n < KS_WIRE_SCAN_HEAD || memcmp (data, "KSPX", 4) != 0)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  scan.width_px = get32 (data + 4);
  scan.height_px = get32 (data + 8);
  if (scan.width_px == 0 || scan.height_px == 0 || scan.width_px > KS_WIRE_MAX_SIDE_PX ||
      scan.height_px > KS_WIRE_MAX_SIDE_PX ||
      n - KS_WIRE_SCAN_HEAD != (gsize)4 * scan.width_px * scan.height_px)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  return scan;
}

/* What is see-through lies on white, as a model would see it. */
static void
lay_on_white (Scan *scan)
{
  guint8 *p = scan->rows;

  for (gsize i = (gsize)scan->width_px * scan->height_px; i > 0; i--, p += 4)
    for (guint c = 0; c < 3 && p[3] != 255; c++)
      p[c] = (guint8)((p[c] * p[3] + 255 * (255 - p[3]) + 127) / 255);
}

static bool
progress_cb (ETEXT_DESC *monitor, int left, int right, int top, int bottom)
{
  int *last = TessMonitorGetCancelThis (monitor);
  int now = CLAMP (TessMonitorGetProgress (monitor), 0, 100);

  if (now > *last)
    ks_answer_progress ((guint)(*last = now), 100);
  return true;
}

/* The lines that are worth keeping; their confidence weighs by their length. */
static void
take_lines (TessBaseAPI *api, GString *out, KsWireAnswer *facts)
{
  TessResultIterator *line = TessBaseAPIGetIterator (api);
  double sum = 0, n_char = 0;

  while (line != NULL) {
    float confidence = TessResultIteratorConfidence (line, RIL_TEXTLINE);
    char *text = TessResultIteratorGetUTF8Text (line, RIL_TEXTLINE);
    gboolean any = text != NULL && g_strstrip (text)[0] != '\0' && g_utf8_validate (text, -1, NULL);

    if (any && confidence >= MIN_CONFIDENCE) {
      gsize begin;

      if (out->len > 0 &&
          TessPageIteratorIsAtBeginningOf (TessResultIteratorGetPageIterator (line), RIL_PARA))
        g_string_append_c (out, '\n');
      begin = out->len;
      g_string_append (out, g_strdelimit (text, "\r\n\t\f\v", ' '));
      ks_loader_guard_line (out, begin);
      g_string_append_c (out, '\n');
      sum += confidence * (double)g_utf8_strlen (text, -1);
      n_char += (double)g_utf8_strlen (text, -1);
    } else if (any) {
      facts->n_left_out++;
    }
    if (text != NULL)
      TessDeleteText (text);
    if (!TessResultIteratorNext (line, RIL_TEXTLINE))
      break;
  }
  facts->confidence = n_char > 0 ? (guint32)CLAMP (sum / n_char + 0.5, 1, 100) : 0;
}

static void
run (const KsLoaderJob *job)
{
  KsWireAnswer facts = {.what = KS_WIRE_SCAN};
  TessBaseAPI *api = TessBaseAPICreate ();
  ETEXT_DESC *monitor = TessMonitorCreate ();
  GString *text = g_string_new (NULL);
  Scan scan = read_scan (job);
  int last = 0;

  lay_on_white (&scan);
  if (TessBaseAPIInit3 (api, ks_ocr_data_get_folder (), job->request->password) != 0)
    ks_answer_fault (KS_WIRE_FAULT_LANGUAGE, 0, 0);
  TessBaseAPISetPageSegMode (api, PSM_AUTO);
  TessBaseAPISetImage (api, scan.rows, (int)scan.width_px, (int)scan.height_px, 4,
                       (int)(4 * scan.width_px));
  TessMonitorSetCancelThis (monitor, &last);
  TessMonitorSetProgressFunc (monitor, progress_cb);
  /* It fails for pictures too small to hold a letter: they hold no text. */
  if (TessBaseAPIRecognize (api, monitor) == 0)
    take_lines (api, text, &facts);
  facts.n_bytes = text->len;
  ks_answer_text (&facts, text->str);
  /* The process ends now: nothing is taken apart. */
}

const KsLoader KS_LOADER_SYMBOL = {.prepare = prepare, .run = run};

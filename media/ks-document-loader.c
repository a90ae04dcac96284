/* ks-document-loader.c - PDF to text by page and to pictures, with poppler (inside the worker).
 * Scripts, actions, links and embedded files are never looked at.  The document is read through the
 * descriptor piece by piece: a file that shrinks meanwhile is a damaged one, not a fault in memory.
 * Source: docs/adr/0011-decoder-worker.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-font-paths.h"
#include "media/ks-loader.h"
#include "media/ks-media.h"

#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <math.h>
#include <poppler.h>
#include <string.h>

/* Pages that are shown with more than this many pixels a point are only blown up. */
#define MAX_SCALE 8.0
/* A page tree that promises more pages than it has is read on for this long. */
#define MAX_MISSING_PAGES 1000
/* A picture on less than this part of its page is a mark. */
#define MARK_PART 20
/* So long pages with text are searched for pictures. */
#define MAX_LOOK_US 1000000

/* The smallest document: opening it lets poppler read its lists of encodings. */
static const char small_pdf[] =
    "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count "
    "1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 "
    "R>>\n"
    "%%EOF\n";

/* Fonts that a document does not bring, tables of East Asian encodings (the lists now, each table
 * when a document asks for it), and the conversion of passwords. */
static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static (small_pdf, sizeof small_pdf - 1);

  ks_font_paths_add (paths);
  g_ptr_array_add (paths, g_strdup ("/usr/share/poppler"));
  (void)iconv_open ("ISO-8859-1", "UTF-8"); /* stays open, and so do poppler's lists */
  (void)poppler_document_new_from_bytes (bytes, NULL, NULL);
}

/* Poppler closes the descriptor that it gets; the copy stays ours. */
static PopplerDocument *
try_to_open (int fd, const char *password, GError **error)
{
  int copy = fcntl (fd, F_DUPFD_CLOEXEC, 0);

  if (copy < 0)
    ks_answer_fault (KS_WIRE_FAULT_READ, (guint32)errno, 0);
  return poppler_document_new_from_fd (copy, password, error);
}

static PopplerDocument *
open_document (const KsLoaderJob *job)
{
  const char *password = job->request->password;
  g_autoptr (GError) error = NULL;
  PopplerDocument *document = try_to_open (job->fd, NULL, &error);

  if (document != NULL)
    return document;
  if (!g_error_matches (error, POPPLER_ERROR, POPPLER_ERROR_ENCRYPTED))
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_PDF, 0);
  if (password[0] == '\0')
    ks_answer_fault (KS_WIRE_FAULT_PASSWORD, 0, 0);
  /* After a wrong one poppler 22 reads on from the closed descriptor, and says "damaged". */
  document = try_to_open (job->fd, password, NULL);
  if (document == NULL)
    ks_answer_fault (KS_WIRE_FAULT_WRONG, 0, 0);
  return document;
}

/* Appends a page's text as whole lines, without control characters and without lines that could be
 * taken for the marker of a page.  FALSE: there was none. */
static gboolean
append_page_text (GString *text, PopplerPage *page)
{
  g_autofree char *raw = poppler_page_get_text (page);
  g_autofree char *valid = raw != NULL ? g_utf8_make_valid (raw, -1) : NULL;
  gboolean any = FALSE;
  gsize line = text->len;

  for (const char *p = valid != NULL ? valid : ""; *p != '\0'; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);

    if (c == '\r' || (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0))
      continue;
    any = any || !g_unichar_isspace (c);
    g_string_append_len (text, p, g_utf8_next_char (p) - p);
    if (c == '\n') {
      ks_loader_guard_line (text, line);
      line = text->len;
    }
  }
  ks_loader_guard_line (text, line);
  if (text->len > 0 && text->str[text->len - 1] != '\n')
    g_string_append_c (text, '\n');
  return any;
}

/* Size in points; what a file says may be nothing, endless or no number. */
static void
get_page_size (PopplerPage *page, double *out_width, double *out_height)
{
  poppler_page_get_size (page, out_width, out_height);
  if (!isfinite (*out_width) || !isfinite (*out_height) || *out_width <= 0 || *out_height <= 0) {
    *out_width = 612;
    *out_height = 792;
  }
}

/* Whether a picture takes a visible part of the page: smaller ones are marks, lines and bullets. */
static gboolean
has_picture (PopplerPage *page)
{
  GList *pictures = poppler_page_get_image_mapping (page);
  gboolean found = FALSE;
  double width, height;

  get_page_size (page, &width, &height);
  for (const GList *at = pictures; at != NULL && !found; at = at->next) {
    const PopplerRectangle *area = &((const PopplerImageMapping *)at->data)->area;

    found = fabs (area->x2 - area->x1) * fabs (area->y2 - area->y1) * MARK_PART >= width * height;
  }
  poppler_page_free_image_mapping (pictures);
  return found;
}

/* The time that looking for pictures has taken so far, one picture is enough. */
typedef struct {
  gint64 used_us;
  gboolean found;
} PictureLook;

static void
look_for_picture (PictureLook *look, PopplerPage *page)
{
  gint64 begin_us = g_get_monotonic_time ();

  if (look->found || look->used_us > MAX_LOOK_US)
    return;
  look->found = has_picture (page);
  look->used_us += g_get_monotonic_time () - begin_us;
}

/* All pages; tells the program after each. */
static void
send_text (PopplerDocument *document, guint n_pages)
{
  g_autoptr (GString) text = g_string_new (NULL);
  KsWireAnswer facts = {.what = KS_WIRE_PDF, .n_pages = n_pages};
  PictureLook look = {0};
  guint n_missing = 0;

  for (guint i = 0; i < n_pages; i++) {
    PopplerPage *page = poppler_document_get_page (document, (int)i);
    gsize before = text->len;

    g_string_append_printf (text, "%s[page %u]\n", i > 0 ? "\n" : "", i + 1);
    n_missing += page == NULL;
    if (page == NULL || !append_page_text (text, page))
      facts.n_pages_without_text++;
    else
      look_for_picture (&look, page);
    g_clear_object (&page);
    if (text->len > KS_MEDIA_MAX_TEXT_BYTES) {
      g_string_truncate (text, before);
      facts.warnings |= KS_WIRE_WARN_TEXT_CUT;
      break;
    }
    if (n_missing > MAX_MISSING_PAGES)
      break;
    ks_answer_progress (i + 1, n_pages);
  }
  if (n_missing > MAX_MISSING_PAGES || n_missing == n_pages)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_PDF, 0);
  if (n_missing > 0)
    facts.warnings |= KS_WIRE_WARN_PAGES;
  if (look.found)
    facts.warnings |= KS_WIRE_WARN_MIXED;
  facts.n_bytes = text->len;
  ks_answer_text (&facts, text->str);
}

static guint
scale_side (double points, double scale, guint max)
{
  double side = round (points * scale);

  return side < 1 ? 1 : side > max ? max : (guint)side;
}

/* Cairo's native-endian ARGB on white to RGBA, row by row into one block. */
static guint8 *
copy_rows (cairo_surface_t *surface, guint width, guint height)
{
  const guint8 *rows = cairo_image_surface_get_data (surface);
  gsize stride = (gsize)cairo_image_surface_get_stride (surface);
  guint8 *pixels = g_try_malloc ((gsize)4 * width * height), *to = pixels;

  for (guint y = 0; pixels != NULL && y < height; y++)
    for (guint x = 0; x < width; x++, to += 4) {
      guint32 argb;

      memcpy (&argb, rows + y * stride + (gsize)4 * x, sizeof argb);
      to[0] = (guint8)(argb >> 16);
      to[1] = (guint8)(argb >> 8);
      to[2] = (guint8)argb;
      to[3] = 0xff;
    }
  return pixels;
}

static void
send_page (PopplerDocument *document, guint number, guint max_side_px)
{
  PopplerPage *page = poppler_document_get_page (document, (int)number);
  KsWireAnswer sizes = {.what = KS_WIRE_PDF};
  cairo_surface_t *surface;
  double width, height, scale;
  guint8 *pixels = NULL;
  cairo_t *cr;

  if (page == NULL)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_PDF, 0);
  get_page_size (page, &width, &height);
  scale = MIN (MIN (max_side_px / width, max_side_px / height), MAX_SCALE);
  sizes.width_px = sizes.full_width_px = scale_side (width, scale, max_side_px);
  sizes.height_px = sizes.full_height_px = scale_side (height, scale, max_side_px);
  surface =
      cairo_image_surface_create (CAIRO_FORMAT_ARGB32, (int)sizes.width_px, (int)sizes.height_px);
  cr = cairo_create (surface);
  cairo_set_source_rgb (cr, 1, 1, 1);
  cairo_paint (cr);
  cairo_scale (cr, sizes.width_px / width, sizes.height_px / height);
  poppler_page_render (page, cr);
  cairo_destroy (cr);
  cairo_surface_flush (surface);
  /* An error of cairo leaves the white page, or what was drawn until then. */
  if (cairo_image_surface_get_data (surface) != NULL)
    pixels = copy_rows (surface, sizes.width_px, sizes.height_px);
  if (pixels == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  ks_answer_pixels (&sizes, pixels);
  g_free (pixels);
  cairo_surface_destroy (surface);
  g_object_unref (page);
}

static void
run (const KsLoaderJob *job)
{
  PopplerDocument *document = open_document (job);
  int n = poppler_document_get_n_pages (document);
  guint page = job->request->page;

  if (n <= 0)
    ks_answer_fault (KS_WIRE_FAULT_EMPTY, KS_WIRE_PDF, 0);
  if ((guint)n > KS_WIRE_MAX_PAGES)
    ks_answer_fault (KS_WIRE_FAULT_PAGES, (guint32)n, 0);
  if (page >= (guint)n)
    ks_answer_fault (KS_WIRE_FAULT_NO_PAGE, page, (guint32)n);
  if (job->request->operation == KS_WIRE_LOAD)
    send_text (document, (guint)n);
  send_page (document, page, job->request->max_side_px);
  /* The process ends now: nothing is taken apart. */
}

const KsLoader KS_LOADER_SYMBOL = {prepare, run, FALSE};

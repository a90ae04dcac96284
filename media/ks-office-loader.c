/* ks-office-loader.c - DOCX, PPTX, ODT, ODP, EPUB and HTML to text, and their pictures one by one
 * (module keepsake-office.so, inside the worker).
 * The text names each picture in a line of its own, where it stands; RENDER of number n reads the
 * document again for its list of pictures and hands out the bytes of that one, which the program
 * gives to another worker, as any picture.  Source: docs/adr/0020-documents.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-office.h"

#include "media/ks-loader.h"
#include "media/ks-media.h"
#include "media/ks-office-sniff.h"

#include <libxml/parser.h>
#include <locale.h>
#include <unistd.h>

#define MAX_HTML_BYTES KS_MEDIA_MAX_TEXT_BYTES

/* Names in a zip are UTF-8, and pages of HTML may be in any encoding. */
static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  (void)setlocale (LC_CTYPE, "C.UTF-8");
  xmlInitParser ();
  ks_text_loader.prepare (job, paths);
}

static void
read_archive (KsOffice *office, const KsLoaderJob *job)
{
  office->zip = ks_office_zip_open (job);
  if (ks_office_zip_is_damaged (office->zip))
    office->warnings |= KS_WIRE_WARN_PARTS;
  if (ks_office_read_odf (office) || ks_office_read_epub (office) || ks_office_read_ooxml (office))
    return;
  if (ks_office_zip_is_damaged (office->zip))
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_DOCUMENT, 0);
  ks_answer_fault (KS_WIRE_FAULT_UNKNOWN, 0, 0);
}

static void
read_page (KsOffice *office, const KsLoaderJob *job)
{
  gsize n = 0;
  guint8 *data = ks_loader_read (job, MAX_HTML_BYTES, KS_WIRE_FAULT_LONG_TEXT, &n);

  ks_office_read_html (office, data, n, "");
  g_free (data);
}

static void
send_text (KsOffice *office)
{
  KsOfficeText *text = office->text;
  KsWireAnswer facts = {.what = KS_WIRE_DOCUMENT, .warnings = office->warnings};

  if (text->out->len > KS_MEDIA_MAX_TEXT_BYTES) {
    const char *cut =
        g_utf8_find_prev_char (text->out->str, text->out->str + KS_MEDIA_MAX_TEXT_BYTES);

    g_string_truncate (text->out, (gsize)(cut - text->out->str));
    facts.warnings |= KS_WIRE_WARN_TEXT_CUT;
  }
  if (text->out->len == 0 && (office->warnings & KS_WIRE_WARN_PARTS) != 0)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_DOCUMENT, 0);
  if (text->out->len == 0)
    ks_answer_fault (KS_WIRE_FAULT_EMPTY, KS_WIRE_DOCUMENT, 0);
  facts.n_pictures = text->pictures->len;
  facts.n_bytes = text->out->len;
  ks_answer_text (&facts, text->out->str);
}

static void
run (const KsLoaderJob *job)
{
  KsOffice office = {.text = ks_office_text_new ()};
  guint number = job->request->page;
  guint8 head[8] = {0};
  const char *key;

  (void)pread (job->fd, head, sizeof head, 0); /* short: then it is a page that is nearly empty */
  if (ks_office_sniff_old (head, sizeof head))
    ks_answer_fault (KS_WIRE_FAULT_OLD_OFFICE, 0, 0);
  if (ks_office_sniff_zip (head, sizeof head))
    read_archive (&office, job);
  else
    read_page (&office, job);
  ks_office_text_finish (office.text);
  if (job->request->operation == KS_WIRE_LOAD) {
    send_text (&office);
    return;
  }
  if (number >= office.text->pictures->len)
    ks_answer_fault (KS_WIRE_FAULT_NO_PICTURE, number, office.text->pictures->len);
  key = g_ptr_array_index (office.text->pictures, number);
  ks_answer_part (office.zip != NULL && !g_str_has_prefix (key, "data:")
                      ? ks_office_zip_extract (office.zip, key)
                      : ks_office_decode_url (key));
}

const KsLoader KS_LOADER_SYMBOL = {.prepare = prepare, .run = run};

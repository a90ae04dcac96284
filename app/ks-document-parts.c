/* ks-document-parts.c - see ks-document-parts.h.
 * Markers of pages count only in ascending order: what else looks like one is text. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-document-parts.h"

#include <string.h>

#define PAGE_MARK "[page "
#define PICTURE_MARK "[picture "
#define MAX_PICTURES 64u

typedef struct {
  const char *text;
  GArray *parts;
} Split;

/* A marker line: its number (from 1), 0 when it is none. */
static guint
parse_marker (const char *line, gsize n, const char *mark)
{
  gsize n_mark = strlen (mark), at = n_mark;
  guint64 number = 0;

  if (n < n_mark + 2 || strncmp (line, mark, n_mark) != 0 || line[n - 1] != ']')
    return 0;
  for (; at < n && g_ascii_isdigit (line[at]) && number < G_MAXINT / 10; at++)
    number = number * 10 + (guint64)g_ascii_digit_value (line[at]);
  if (at == n_mark || (line[at] != ']' && line[at] != ':') || (line[at] == ']' && at != n - 1))
    return 0;
  return (guint)number;
}

static void
add_text (Split *split, gsize at, gsize n)
{
  KsDocumentPart part = {.at = at, .n = n};
  KsDocumentPart *last = split->parts->len > 0
                             ? &g_array_index (split->parts, KsDocumentPart, split->parts->len - 1)
                             : NULL;

  if (n == 0)
    return;
  if (last != NULL && !last->is_picture && last->at + last->n == at)
    last->n += n;
  else
    g_array_append_val (split->parts, part);
}

static void
add_picture (Split *split, guint index)
{
  KsDocumentPart part = {.is_picture = TRUE, .index = index};

  g_array_append_val (split->parts, part);
}

/* The line that begins at `at`, without its end; *out_next is where the next one begins. */
static gsize
measure_line (const char *text, gsize at, gsize *out_next)
{
  const char *end = strchr (text + at, '\n');
  gsize n = end != NULL ? (gsize)(end - text) - at : strlen (text + at);

  *out_next = at + n + (end != NULL);
  return n;
}

/* --- PDF --- */

typedef void (*PageFunc) (guint page, gsize marker, gsize begin, gsize end, gpointer user);

/* Calls func for each page: where its marker and its text begin, and where it ends. */
static void
walk_pages (const char *text, PageFunc func, gpointer user)
{
  gsize at = 0, next, marker = 0, begin = 0;
  guint n_page = 0;

  for (; text[at] != '\0'; at = next) {
    gsize n = measure_line (text, at, &next);

    if (parse_marker (text + at, n, PAGE_MARK) != n_page + 1)
      continue;
    if (n_page > 0)
      func (n_page - 1, marker, begin, at, user);
    n_page++;
    marker = at;
    begin = next;
  }
  if (n_page > 0)
    func (n_page - 1, marker, begin, at, user);
}

typedef struct {
  Split *split;
  const KsReading *reading;
  gboolean sees;
} Pages;

static void
split_page (guint page, gsize marker, gsize begin, gsize end, gpointer user)
{
  const Pages *pages = user;
  KsPageMode mode = ks_reading_get_page (pages->reading, page);

  if (mode == KS_PAGE_NONE)
    return;
  if (!pages->sees)
    mode = KS_PAGE_TEXT;
  add_text (pages->split, marker, begin - marker);
  if (mode != KS_PAGE_TEXT)
    add_picture (pages->split, page);
  if (mode != KS_PAGE_PICTURE)
    add_text (pages->split, begin, end - begin);
}

static gboolean
is_blank (const char *text, gsize begin, gsize end)
{
  for (const char *p = text + begin; p < text + end; p = g_utf8_next_char (p))
    if (!g_unichar_isspace (g_utf8_get_char (p)))
      return FALSE;
  return TRUE;
}

typedef struct {
  const char *text;
  GArray *blank;
  guint n_page;
} Blanks;

static void
note_page (guint page, gsize marker, gsize begin, gsize end, gpointer user)
{
  Blanks *blanks = user;

  blanks->n_page = page + 1;
  if (is_blank (blanks->text, begin, end))
    g_array_append_val (blanks->blank, page);
}

static Blanks
find_blanks (const char *text)
{
  Blanks blanks = {text, g_array_new (FALSE, FALSE, sizeof (guint)), 0};

  walk_pages (text, note_page, &blanks);
  return blanks;
}

GArray *
ks_document_list_blank_pages (const char *text)
{
  g_return_val_if_fail (text != NULL, NULL);
  return find_blanks (text).blank;
}

gboolean
ks_document_choose_pages (KsReading *reading, const char *text)
{
  gboolean any;
  Blanks blanks;

  g_return_val_if_fail (reading != NULL && text != NULL, FALSE);
  blanks = find_blanks (text);
  any = blanks.blank->len > 0;
  for (guint i = 0; i < blanks.blank->len; i++)
    ks_reading_set_page (reading, blanks.n_page, g_array_index (blanks.blank, guint, i),
                         KS_PAGE_PICTURE);
  g_array_unref (blanks.blank);
  return any;
}

void
ks_document_set_pages (KsReading *reading, guint n_pages, KsPageMode mode)
{
  g_return_if_fail (reading != NULL);
  for (guint i = 0; i < n_pages; i++)
    ks_reading_set_page (reading, n_pages, i, mode);
}

/* --- documents with pictures --- */

static void
split_pictures (Split *split)
{
  g_autoptr (GHashTable) shown = g_hash_table_new (NULL, NULL);
  gsize next;

  for (gsize at = 0; split->text[at] != '\0'; at = next) {
    gsize n = measure_line (split->text, at, &next);
    guint number = parse_marker (split->text + at, n, PICTURE_MARK);

    add_text (split, at, next - at);
    if (number > 0 && g_hash_table_add (shown, GUINT_TO_POINTER (number)))
      add_picture (split, number - 1);
  }
}

GArray *
ks_document_split (KsAttachmentKind kind, const char *text, const KsReading *reading, gboolean sees)
{
  Split split = {text, NULL};
  Pages pages = {&split, reading, sees};

  g_return_val_if_fail (text != NULL && reading != NULL, NULL);
  split.parts = g_array_new (FALSE, FALSE, sizeof (KsDocumentPart));
  if (kind == KS_ATTACHMENT_PDF)
    walk_pages (text, split_page, &pages);
  else if (kind == KS_ATTACHMENT_DOCUMENT && sees && !reading->no_pictures)
    split_pictures (&split);
  if (split.parts->len == 0 && kind != KS_ATTACHMENT_PDF)
    add_text (&split, 0, strlen (text));
  return split.parts;
}

void
ks_document_add (KsPromptBuilder *builder, KsAttachmentKind kind, const char *name,
                 const char *text, const KsReading *reading, gboolean sees,
                 KsDocumentPictureFunc func, gpointer user)
{
  g_autoptr (GArray) parts = ks_document_split (kind, text, reading, sees);
  guint n_picture = 0;

  ks_prompt_builder_begin_document (builder, name);
  for (guint i = 0; i < parts->len; i++) {
    const KsDocumentPart *part = &g_array_index (parts, KsDocumentPart, i);

    if (!part->is_picture) {
      ks_prompt_builder_add_part (builder, text + part->at, part->n);
      continue;
    }
    if (++n_picture > MAX_PICTURES && kind == KS_ATTACHMENT_DOCUMENT)
      continue; /* its words stay */
    ks_prompt_builder_add_seen (builder, func (part->index, user));
    ks_prompt_builder_add_part (builder, "\n", 1);
  }
  ks_prompt_builder_end_document (builder);
}

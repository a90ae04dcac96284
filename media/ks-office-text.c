/* ks-office-text.c - see ks-office-text.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-office-text.h"

#include "media/ks-loader.h"
#include "media/ks-media.h"

#include <string.h>

#define MAX_ALT_CHARS 200

KsOfficeText *
ks_office_text_new (void)
{
  KsOfficeText *text = g_new0 (KsOfficeText, 1);

  text->out = g_string_new (NULL);
  text->prefix = g_string_new (NULL);
  text->waiting = g_string_new (NULL);
  text->pictures = g_ptr_array_new_with_free_func (g_free);
  text->numbers = g_hash_table_new (g_str_hash, g_str_equal);
  return text;
}

static gboolean
is_line_empty (const KsOfficeText *text)
{
  return text->out->len == text->line;
}

static void
end_line (KsOfficeText *text)
{
  gsize end = text->out->len;

  while (end > text->line && text->out->str[end - 1] == ' ')
    end--;
  g_string_truncate (text->out, end);
  if (is_line_empty (text))
    return;
  ks_loader_guard_line (text->out, text->line);
  g_string_append_c (text->out, '\n');
  text->line = text->out->len;
}

static void
append_blank (KsOfficeText *text)
{
  if (!is_line_empty (text) && strchr (" (", text->out->str[text->out->len - 1]) == NULL)
    g_string_append_c (text->out, ' ');
}

/* Before the first character of a line: the empty line that was wished for. */
static void
begin_line (KsOfficeText *text)
{
  if (text->wants_gap && text->out->len > 0) {
    g_string_append_c (text->out, '\n');
    text->line = text->out->len;
  }
  text->wants_gap = FALSE;
}

static void
append_char (KsOfficeText *text, const char *data, gsize n, gboolean collapse)
{
  gunichar c = g_utf8_get_char (data);
  gboolean is_line_end = c == '\n' && !collapse;

  if (is_line_end && text->n_inline == 0) {
    end_line (text);
    return;
  }
  if (is_line_end || (collapse && (c == ' ' || c == '\n' || c == '\t' || c == '\r'))) {
    append_blank (text);
    return;
  }
  if ((c < 0x20 && c != '\t') || (c >= 0x7f && c < 0xa0))
    return;
  if (is_line_empty (text))
    begin_line (text);
  if (is_line_empty (text) && text->n_inline == 0 && text->prefix->len > 0 &&
      !g_unichar_isspace (c)) {
    g_string_append_len (text->out, text->prefix->str, (gssize)text->prefix->len);
    g_string_truncate (text->prefix, 0);
  }
  g_string_append_len (text->out, data, (gssize)n);
}

void
ks_office_text_add (KsOfficeText *text, const char *data, gsize n, gboolean collapse)
{
  const char *p = data, *end = data + n;

  if (text->is_full || !g_utf8_validate_len (data, n, NULL))
    return;
  while (p < end) {
    const char *next = g_utf8_next_char (p);

    append_char (text, p, (gsize)(next - p), collapse);
    p = next;
  }
  text->is_full = text->out->len > KS_MEDIA_MAX_TEXT_BYTES;
}

void
ks_office_text_set_prefix (KsOfficeText *text, const char *prefix)
{
  g_string_assign (text->prefix, prefix);
}

void
ks_office_text_add_heading (KsOfficeText *text, guint level)
{
  ks_office_text_gap (text);
  g_string_append (text->prefix, "###### " + (6 - CLAMP (level, 1, 6)));
}

void
ks_office_text_clear_prefix (KsOfficeText *text)
{
  g_string_truncate (text->prefix, 0);
}

void
ks_office_text_break (KsOfficeText *text)
{
  if (text->n_inline > 0)
    append_blank (text);
  else
    end_line (text);
}

void
ks_office_text_gap (KsOfficeText *text)
{
  ks_office_text_break (text);
  text->wants_gap = text->wants_gap || text->n_inline == 0;
}

void
ks_office_text_begin_row (KsOfficeText *text)
{
  ks_office_text_break (text);
  if (text->n_inline++ == 0)
    text->n_cell = 0;
}

void
ks_office_text_begin_cell (KsOfficeText *text)
{
  if (text->n_inline != 1) {
    ks_office_text_break (text);
    return;
  }
  if (text->n_cell++ > 0) {
    begin_line (text);
    append_blank (text);
    g_string_append (text->out, "| ");
  }
}

static void
append_marker (KsOfficeText *text, const char *marker)
{
  begin_line (text);
  g_string_append (text->out, marker);
  g_string_append_c (text->out, '\n');
  text->line = text->out->len;
}

/* What waited for the end of the row. */
static void
leave_inline (KsOfficeText *text)
{
  if (text->n_inline == 0 || --text->n_inline > 0 || text->waiting->len == 0)
    return;
  end_line (text);
  g_string_append_len (text->out, text->waiting->str, (gssize)text->waiting->len);
  g_string_truncate (text->waiting, 0);
  text->line = text->out->len;
}

void
ks_office_text_end_row (KsOfficeText *text)
{
  leave_inline (text);
  ks_office_text_break (text);
}

void
ks_office_text_begin_note (KsOfficeText *text)
{
  append_blank (text);
  begin_line (text);
  g_string_append_c (text->out, '(');
  text->n_inline++;
}

void
ks_office_text_end_note (KsOfficeText *text)
{
  while (text->out->len > text->line && text->out->str[text->out->len - 1] == ' ')
    g_string_truncate (text->out, text->out->len - 1);
  g_string_append_c (text->out, ')');
  leave_inline (text);
}

void
ks_office_text_add_marker (KsOfficeText *text, const char *marker)
{
  if (text->is_full)
    return;
  ks_office_text_break (text);
  if (text->n_inline > 0) {
    g_string_append (text->waiting, marker);
    g_string_append_c (text->waiting, '\n');
  } else {
    append_marker (text, marker);
  }
}

/* One line of at most MAX_ALT_CHARS. (transfer full), NULL when nothing is left */
static char *
clean_alt (const char *alt)
{
  GString *clean = g_string_new (NULL);
  glong n = 0;

  for (const char *p = alt; p != NULL && *p != '\0' && n < MAX_ALT_CHARS;
       p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);
    gboolean is_space = g_unichar_isspace (c) || !g_unichar_isprint (c);

    if (is_space && (clean->len == 0 || clean->str[clean->len - 1] == ' '))
      continue;
    g_string_append_unichar (clean, is_space ? ' ' : c);
    n++;
  }
  return g_string_free (clean, clean->len == 0);
}

void
ks_office_text_add_picture (KsOfficeText *text, const char *key, const char *alt)
{
  g_autofree char *clean = clean_alt (alt), *marker = NULL;
  guint number = 0;

  if (key != NULL) {
    number = GPOINTER_TO_UINT (g_hash_table_lookup (text->numbers, key));
    if (number == 0 && text->pictures->len < KS_OFFICE_MAX_PICTURES) {
      char *own = g_strdup (key);

      g_ptr_array_add (text->pictures, own);
      number = text->pictures->len;
      g_hash_table_insert (text->numbers, own, GUINT_TO_POINTER (number));
    }
  }
  if (number > 0)
    marker = clean != NULL ? g_strdup_printf ("[picture %u: %s]", number, clean)
                           : g_strdup_printf ("[picture %u]", number);
  else if (clean != NULL)
    marker = g_strdup_printf ("[picture: %s]", clean);
  if (marker != NULL)
    ks_office_text_add_marker (text, marker);
}

void
ks_office_text_finish (KsOfficeText *text)
{
  while (text->n_inline > 0)
    leave_inline (text);
  end_line (text);
}

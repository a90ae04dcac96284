/* ks-markdown-text.c - characters of a message: what is dropped, shown or broken, and the builder
 * of markup, which escapes every run by itself and never lets a text close a tag. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-markdown-internal.h"

#include <string.h>

/* Deeper styles add nothing that can be seen. */
#define MAX_TAGS 16
#define MAX_URI_BYTES 2048
/* Layout of an unbroken run is quadratic in its length. */
#define LONGEST_RUN 200
#define CHARS_PER_LINE 80

static gboolean
is_dropped (gunichar c)
{
  return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c <= 0x9f) || c == 0xfeff ||
         (c & 0xfffe) == 0xfffe;
}

char *
ks_markdown_clean (const char *text, gsize n)
{
  g_autofree char *valid = g_utf8_make_valid (text, (gssize)n);
  GString *out = g_string_sized_new (n + 1);
  const char *from = valid;

  for (const char *p = valid; *p != '\0';) {
    const char *next = g_utf8_next_char (p);

    if (is_dropped (g_utf8_get_char (p))) {
      g_string_append_len (out, from, p - from);
      from = next;
    }
    p = next;
  }
  g_string_append (out, from);
  return g_string_free (out, FALSE);
}

static gboolean
is_turning (gunichar c, gboolean all)
{
  return (c >= 0x202a && c <= 0x202e) || (all && c >= 0x2066 && c <= 0x2069);
}

void
ks_markdown_show_bidi (GString *out, const char *text, gsize n, gboolean all)
{
  const char *end = text + n;
  const char *from = text;

  for (const char *p = text; p < end;) {
    const char *next = (guchar)*p < 0x80 ? p + 1 : g_utf8_next_char (p);
    gunichar c = (guchar)*p == 0xe2 ? g_utf8_get_char (p) : 0;

    if (is_turning (c, all)) {
      g_string_append_len (out, from, p - from);
      g_string_append_printf (out, "\u27e8U+%04X\u27e9", c);
      from = next;
    }
    p = next;
  }
  g_string_append_len (out, from, end - from);
}

/* Whether a line may be broken before or after the character, whatever its neighbours. */
static gboolean
is_break (gunichar c)
{
  switch (g_unichar_break_type (c)) {
  case G_UNICODE_BREAK_SPACE:
  case G_UNICODE_BREAK_MANDATORY:
  case G_UNICODE_BREAK_LINE_FEED:
  case G_UNICODE_BREAK_NEXT_LINE:
  case G_UNICODE_BREAK_ZERO_WIDTH_SPACE:
  case G_UNICODE_BREAK_AFTER:
  case G_UNICODE_BREAK_IDEOGRAPHIC:
  case G_UNICODE_BREAK_CONDITIONAL_JAPANESE_STARTER:
  case G_UNICODE_BREAK_COMPLEX_CONTEXT:
  case G_UNICODE_BREAK_HANGUL_L_JAMO:
  case G_UNICODE_BREAK_HANGUL_LV_SYLLABLE:
  case G_UNICODE_BREAK_HANGUL_LVT_SYLLABLE:
  case G_UNICODE_BREAK_EMOJI_BASE:
    return TRUE;
  default:
    return FALSE;
  }
}

guint
ks_markdown_longest_run (const char *text, gsize n, guint *run)
{
  const char *end = text + n;
  guint longest = *run;

  for (const char *p = text; p < end; p = g_utf8_next_char (p)) {
    gboolean is_broken =
        (guchar)*p < 0x80 ? *p == ' ' || *p == '\n' || *p == '\t' : is_break (g_utf8_get_char (p));

    *run = is_broken ? 0 : *run + 1;
    longest = MAX (longest, *run);
  }
  return longest;
}

gboolean
ks_markdown_is_safe_uri (const char *uri)
{
  static const char *const schemes[] = {"http://", "https://", "mailto:"};
  gboolean known = FALSE;

  if (uri == NULL || strlen (uri) > MAX_URI_BYTES || !g_utf8_validate (uri, -1, NULL))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (schemes); i++)
    known = known || (g_ascii_strncasecmp (uri, schemes[i], strlen (schemes[i])) == 0 &&
                      uri[strlen (schemes[i])] != '\0');
  for (const char *p = uri; *p != '\0'; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);

    if (is_dropped (c) || g_unichar_isspace (c) || is_turning (c, TRUE))
      return FALSE;
  }
  return known;
}

void
ks_markup_builder_init (KsMarkupBuilder *self, GPtrArray *blocks, KsBlockKind kind)
{
  *self = (KsMarkupBuilder){.blocks = blocks};
  self->shape.kind = kind;
  self->markup = g_string_new (NULL);
  self->tags = g_ptr_array_new_with_free_func (g_free);
}

static const char *
closing (const char *tag)
{
  return tag[1] == 'a'   ? "</a>"
         : tag[1] == 'b' ? "</b>"
         : tag[1] == 'i' ? "</i>"
         : tag[1] == 's' ? "</s>"
                         : "</tt>";
}

/* Ends the piece in the middle of a paragraph: tags are closed here and opened in the next one. */
static void
flush_piece (KsMarkupBuilder *self)
{
  KsMarkdownBlock *block = NULL;

  for (guint i = self->tags->len; i > 0; i--)
    g_string_append (self->markup, closing (self->tags->pdata[i - 1]));
  block = ks_markdown_block_new (self->shape.kind);
  block->level = self->shape.level;
  block->list_depth = self->shape.list_depth;
  block->quote_depth = self->shape.quote_depth;
  block->marker = g_steal_pointer (&self->shape.marker);
  block->continues = self->continues;
  block->wrap_anywhere = self->longest_run > LONGEST_RUN;
  block->n_lines = 1 + self->n_newline + self->n_char / CHARS_PER_LINE;
  block->markup = g_strdup (self->markup->str);
  g_ptr_array_add (self->blocks, block);
  g_string_truncate (self->markup, 0);
  for (guint i = 0; i < self->tags->len; i++)
    g_string_append (self->markup, self->tags->pdata[i]);
  self->n_text = 0;
  self->n_char = self->n_newline = 0;
  self->longest_run = self->run;
  self->continues = TRUE;
}

/* Where to end a piece: after a blank if there is one in its second half, else between two
 * characters. */
static gsize
find_cut (const char *text, gsize n, gsize room)
{
  const char *at = NULL;

  if (n <= room)
    return n;
  for (at = text + room; at > text + room / 2; at--)
    if (*at == ' ' || *at == '\n')
      return (gsize)(at - text) + 1;
  at = g_utf8_find_prev_char (text, text + room + 1);
  return at == NULL || at == text ? n : (gsize)(at - text);
}

static void
append_run (KsMarkupBuilder *self, const char *text, gsize n)
{
  g_autoptr (GString) shown = g_string_sized_new (n);
  g_autofree char *escaped = NULL;
  guint longest = 0;

  ks_markdown_show_bidi (shown, text, n, FALSE);
  escaped = g_markup_escape_text (shown->str, (gssize)shown->len);
  g_string_append (self->markup, escaped);
  longest = ks_markdown_longest_run (text, n, &self->run);
  self->longest_run = MAX (self->longest_run, longest);
  self->n_text += n;
  self->n_char += (guint)g_utf8_strlen (text, (gssize)n);
  for (gsize i = 0; i < n; i++)
    self->n_newline += text[i] == '\n';
}

void
ks_markup_builder_text (KsMarkupBuilder *self, const char *text, gsize n)
{
  if (self->link_text != NULL && self->link_text->len < MAX_URI_BYTES)
    g_string_append_len (self->link_text, text, (gssize)n);
  while (n > 0) {
    gsize room =
        self->n_text < KS_MARKDOWN_PIECE_BYTES ? KS_MARKDOWN_PIECE_BYTES - self->n_text : 0;
    gsize n_piece = 0;

    /* A few letters at the end of a piece are not worth a cut in the middle of a word. */
    if (self->blocks != NULL && room < KS_MARKDOWN_PIECE_BYTES / 8 && n > room) {
      flush_piece (self);
      continue;
    }
    n_piece = self->blocks == NULL ? n : find_cut (text, n, room);
    append_run (self, text, n_piece);
    text += n_piece;
    n -= n_piece;
  }
}

void
ks_markup_builder_open (KsMarkupBuilder *self, const char *tag)
{
  if (self->depth++ >= MAX_TAGS)
    return;
  g_ptr_array_add (self->tags, g_strdup (tag));
  g_string_append (self->markup, tag);
}

void
ks_markup_builder_close (KsMarkupBuilder *self)
{
  g_return_if_fail (self->depth > 0);

  if (--self->depth >= MAX_TAGS)
    return;
  g_string_append (self->markup, closing (self->tags->pdata[self->tags->len - 1]));
  g_ptr_array_set_size (self->tags, (int)self->tags->len - 1);
}

void
ks_markup_builder_open_link (KsMarkupBuilder *self, const char *uri)
{
  self->link_text = g_string_new (NULL);
  if (ks_markdown_is_safe_uri (uri)) {
    /* The title becomes a tooltip, which is markup itself: escaped twice. */
    g_autofree char *href = g_markup_escape_text (uri, -1);
    g_autofree char *title = g_markup_escape_text (href, -1);
    g_autofree char *tag = g_strdup_printf ("<a href=\"%s\" title=\"%s\">", href, title);

    ks_markup_builder_open (self, tag);
  }
}

/* Whether a link says of itself that it leads elsewhere. */
static gboolean
is_another_address (const char *text, const char *uri)
{
  g_autofree char *shown = g_strchomp (g_strdup (text));
  const char *bare = strstr (uri, "://") != NULL ? strstr (uri, "://") + 3 : uri;
  gsize n = strlen (shown);

  if (g_str_has_prefix (uri, "mailto:"))
    bare = uri + strlen ("mailto:");
  if (strstr (shown, "://") == NULL && !g_str_has_prefix (shown, "www.") &&
      strchr (shown, '@') == NULL)
    return FALSE;
  if (g_strcmp0 (shown, uri) == 0 || g_strcmp0 (shown, bare) == 0)
    return FALSE;
  /* One slash at the end makes no difference. */
  return !(strlen (uri) == n + 1 && g_str_has_suffix (uri, "/") && strncmp (uri, shown, n) == 0);
}

void
ks_markup_builder_close_link (KsMarkupBuilder *self, const char *uri)
{
  g_autoptr (GString) text = g_steal_pointer (&self->link_text);
  gboolean is_safe = ks_markdown_is_safe_uri (uri);

  if (is_safe)
    ks_markup_builder_close (self);
  if (uri == NULL || *uri == '\0' || text == NULL)
    return;
  if (!is_safe || is_another_address (text->str, uri)) {
    g_autofree char *clean = ks_markdown_clean (uri, strlen (uri));
    g_autoptr (GString) shown = g_string_new (" (");

    ks_markdown_show_bidi (shown, clean, strlen (clean), TRUE);
    if (shown->len > LONGEST_RUN) {
      g_string_truncate (
          shown,
          (gsize)(g_utf8_find_prev_char (shown->str, shown->str + LONGEST_RUN) - shown->str));
      g_string_append (shown, "\u2026");
    }
    g_string_append_c (shown, ')');
    ks_markup_builder_text (self, shown->str, shown->len);
  }
}

static void
builder_clear (KsMarkupBuilder *self)
{
  g_string_free (g_steal_pointer (&self->markup), TRUE);
  g_clear_pointer (&self->tags, g_ptr_array_unref);
  g_clear_pointer (&self->shape.marker, g_free);
  if (self->link_text != NULL)
    g_string_free (g_steal_pointer (&self->link_text), TRUE);
}

char *
ks_markup_builder_end_cell (KsMarkupBuilder *self)
{
  char *markup = g_strdup (self->markup->str);

  builder_clear (self);
  return markup;
}

void
ks_markup_builder_end (KsMarkupBuilder *self)
{
  if (self->n_text > 0 || self->shape.marker != NULL)
    flush_piece (self);
  builder_clear (self);
}

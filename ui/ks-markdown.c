/* ks-markdown.c - which part of a text is read, and when.
 * The text is read in chunks that end where a top-level block does.  Of a chunk that has the end of
 * the text, the blocks before the one that the last complete line belongs to are final: a block of
 * the top level that another one has followed never changes again, and only an incomplete line can
 * still change its mind about where it belongs ("-" may become a rule, an item or a heading).
 * Paragraphs of more than LEAF_BYTES, and tables that would be padded to far more cells than were
 * written, are shown as they are: the parser's worst cases are quadratic in them.
 * Known difference: addresses that are defined far behind their use stay as written. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-markdown-internal.h"

#include <string.h>

#define CHUNK_BYTES (16u * 1024u)
#define MAX_CHUNK_BYTES (64u * 1024u)
#define LEAF_BYTES (8u * 1024u)
/* Delimiters in one line of a table times its rows. */
#define MAX_PADDED_CELLS 20000u

struct _KsMarkdown {
  grefcount refs;
  KsMarkdownMode mode;
  GString *text; /* as given, cut to the limit */
  gsize n_left_out;
  gsize n_final_bytes; /* what the final blocks were made of */
  GPtrArray *blocks;
  guint n_stable;
  gboolean is_complete;
  gboolean grows;
};

/* What the next chunk is. */
typedef struct {
  gsize n_bytes;
  gboolean is_plain;
} Chunk;

/* State of the scan for the end of a chunk. */
typedef struct {
  const char *text;
  gsize n;
  char fence; /* '`', '~', 0 = in no fence */
  gsize n_fence;
  gsize leaf_start; /* of the lines that may belong to one paragraph */
  guint n_leaf_lines, n_bars;
} Scan;

KsMarkdown *
ks_markdown_new (KsMarkdownMode mode)
{
  KsMarkdown *self = g_new0 (KsMarkdown, 1);

  g_ref_count_init (&self->refs);
  self->mode = mode;
  self->text = g_string_new (NULL);
  self->blocks = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_markdown_block_unref);
  return self;
}

KsMarkdown *
ks_markdown_ref (KsMarkdown *self)
{
  g_ref_count_inc (&self->refs);
  return self;
}

void
ks_markdown_unref (KsMarkdown *self)
{
  if (self == NULL || !g_ref_count_dec (&self->refs))
    return;
  g_string_free (self->text, TRUE);
  g_ptr_array_unref (self->blocks);
  g_free (self);
}

static void
forget_blocks (KsMarkdown *self)
{
  g_ptr_array_set_size (self->blocks, 0);
  self->n_stable = 0;
  self->n_final_bytes = 0;
}

/* Bytes to take of a text of n: whole lines, or whole characters where there are none. */
static gsize
limit_bytes (const char *text, gsize n)
{
  const char *cut = NULL;

  if (n <= KS_MARKDOWN_MAX_BYTES)
    return n;
  cut = g_strrstr_len (text, KS_MARKDOWN_MAX_BYTES, "\n");
  if (cut != NULL && cut > text + KS_MARKDOWN_MAX_BYTES / 2)
    return (gsize)(cut - text) + 1;
  for (n = KS_MARKDOWN_MAX_BYTES; n > 0 && ((guchar)text[n] & 0xc0) == 0x80;)
    n--;
  return n;
}

/* Bytes without a character at the end that has only begun. */
static gsize
hold_back (const char *text, gsize n)
{
  for (gsize k = 1; k <= 3 && k <= n; k++) {
    guchar c = (guchar)text[n - k];

    if ((c & 0xc0) == 0x80)
      continue;
    return c >= 0xc0 && g_utf8_get_char_validated (text + n - k, (gssize)k) == (gunichar)-2 ? n - k
                                                                                            : n;
  }
  return n;
}

void
ks_markdown_set_text (KsMarkdown *self, const char *text, gboolean grows)
{
  gsize n_all = text == NULL ? 0 : strlen (text);
  gsize n = limit_bytes (text, n_all);
  /* Definitions of addresses can stand behind their use: once more from the start at the end. */
  gboolean again =
      self->grows && !grows && self->n_stable > 0 && text != NULL && strstr (text, "]:") != NULL;

  if (grows)
    n = hold_back (text, n);
  self->grows = grows;
  self->n_left_out = n_all > KS_MARKDOWN_MAX_BYTES ? n_all - n : 0;
  if (!again && self->text->len == n && (n == 0 || memcmp (self->text->str, text, n) == 0))
    return;
  if (again || n < self->n_final_bytes || self->text->len < self->n_final_bytes ||
      (n > 0 && memcmp (self->text->str, text, self->n_final_bytes) != 0))
    forget_blocks (self);
  g_string_truncate (self->text, 0);
  if (n > 0)
    g_string_append_len (self->text, text, (gssize)n);
  self->is_complete = FALSE;
}

static gsize
line_length (const Scan *scan, gsize at)
{
  const char *end = memchr (scan->text + at, '\n', scan->n - at);

  return end == NULL ? scan->n - at : (gsize)(end - scan->text) - at + 1;
}

static gboolean
is_blank_line (const char *line, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (!g_ascii_isspace (line[i]))
      return FALSE;
  return TRUE;
}

/* Whether the line begins with a mark that ends any paragraph before it. */
static gboolean
is_new_leaf (const char *line, gsize n)
{
  gsize i = 0;

  while (i < n && (line[i] == ' ' || line[i] == '\t'))
    i++;
  if (i + 1 < n && strchr ("-*+#", line[i]) != NULL)
    return line[i + 1] == ' ' || line[i] == '#';
  return i + 2 < n && line[i] == '1' && (line[i + 1] == '.' || line[i + 1] == ')') &&
         line[i + 2] == ' ';
}

/* Opens or closes the fence that the line is; indented ones (of list items) count too. */
static void
scan_fence (Scan *scan, const char *line, gsize n)
{
  gsize i = 0, n_mark = 0;
  char mark = 0;

  while (i < n && line[i] == ' ')
    i++;
  if (i < n && (line[i] == '`' || line[i] == '~'))
    mark = line[i];
  while (mark != 0 && i + n_mark < n && line[i + n_mark] == mark)
    n_mark++;
  if (n_mark < 3)
    return;
  if (scan->fence == 0 &&
      (mark == '~' || memchr (line + i + n_mark, '`', n - i - n_mark) == NULL)) {
    scan->fence = mark;
    scan->n_fence = n_mark;
  } else if (scan->fence == mark && n_mark >= scan->n_fence &&
             is_blank_line (line + i + n_mark, n - i - n_mark)) {
    scan->fence = 0;
  }
}

static guint
count_bars (const char *line, gsize n)
{
  guint n_bar = 0;

  for (gsize i = 0; i < n; i++)
    n_bar += line[i] == '|';
  return n_bar;
}

/* Whether the lines from leaf_start to at are more than the parser should be given at once. */
static gboolean
is_heavy_leaf (const Scan *scan, gsize at)
{
  return at - scan->leaf_start > LEAF_BYTES ||
         (guint64)scan->n_leaf_lines * scan->n_bars > MAX_PADDED_CELLS;
}

/* End of the run of lines that starts at the heavy leaf. */
static gsize
skip_leaf (const Scan *scan)
{
  gsize at = scan->leaf_start;

  while (at < scan->n) {
    gsize n_line = line_length (scan, at);

    if (is_blank_line (scan->text + at, n_line))
      break;
    at += n_line;
  }
  return MIN (at, scan->n);
}

static Chunk
find_chunk (const char *text, gsize n)
{
  Scan scan = {.text = text, .n = n};
  gsize at = 0;

  while (at < n) {
    gsize n_line = line_length (&scan, at);
    const char *line = text + at;
    gboolean was_fence = scan.fence != 0;
    gboolean is_blank = is_blank_line (line, n_line);

    scan_fence (&scan, line, n_line);
    if (!was_fence && at >= (is_blank ? CHUNK_BYTES : MAX_CHUNK_BYTES))
      return (Chunk){.n_bytes = at};
    at += n_line;
    if (was_fence || scan.fence != 0 || is_blank || is_new_leaf (line, n_line)) {
      scan.leaf_start = is_blank || was_fence ? at : at - n_line;
      scan.n_leaf_lines = scan.n_bars = 0;
    }
    scan.n_leaf_lines++;
    scan.n_bars = MAX (scan.n_bars, count_bars (line, n_line));
    if (scan.fence != 0 || !is_heavy_leaf (&scan, at))
      continue;
    if (scan.leaf_start > 0)
      return (Chunk){.n_bytes = scan.leaf_start};
    return (Chunk){.n_bytes = skip_leaf (&scan), .is_plain = TRUE};
  }
  return (Chunk){.n_bytes = n};
}

/* First byte of a line (from 0). */
static gsize
find_line (const char *text, gsize n, guint line)
{
  const char *p = text;

  for (guint i = 0; i < line; i++) {
    const char *end = memchr (p, '\n', n - (gsize)(p - text));

    if (end == NULL)
      return n;
    p = end + 1;
  }
  return (gsize)(p - text);
}

/* Complete lines in a text. */
static guint
count_lines (const char *text, gsize n)
{
  guint n_line = 0;

  for (gsize i = 0; i < n; i++)
    n_line += text[i] == '\n';
  return n_line;
}

/* Which of the new blocks are final: those of the top-level blocks before the one that the last
 * complete line (or, where more of the text follows anyway, the last line) belongs to. */
static const KsMarkdownTop *
find_open_top (GArray *tops, const char *text, gsize n, gboolean is_end)
{
  guint n_line = count_lines (text, n);
  const KsMarkdownTop *open = NULL;

  for (guint i = 0; i < tops->len; i++) {
    const KsMarkdownTop *top = &g_array_index (tops, KsMarkdownTop, i);

    if (i == 0 || !is_end || top->line < n_line)
      open = top;
  }
  return open;
}

/* Takes over the blocks: final ones behind n_stable, then (at the end of the text) the open ones.
 * A block that is as before keeps its identity. */
static void
take_blocks (KsMarkdown *self, GPtrArray *fresh, guint n_final, gboolean is_end)
{
  guint n_take = is_end ? fresh->len : n_final;
  guint i = 0;

  for (; i < n_take; i++) {
    guint at = self->n_stable + i;

    if (at >= self->blocks->len) {
      g_ptr_array_add (self->blocks, ks_markdown_block_ref (fresh->pdata[i]));
    } else if (!ks_markdown_block_equal (self->blocks->pdata[at], fresh->pdata[i])) {
      ks_markdown_block_unref (self->blocks->pdata[at]);
      self->blocks->pdata[at] = ks_markdown_block_ref (fresh->pdata[i]);
    }
  }
  if (is_end)
    g_ptr_array_set_size (self->blocks, (int)(self->n_stable + n_take));
  self->n_stable += n_final;
}

/* Reads one chunk. */
static void
step (KsMarkdown *self)
{
  const char *text = self->text->str + self->n_final_bytes;
  gsize n = self->text->len - self->n_final_bytes;
  Chunk chunk = self->mode == KS_MARKDOWN_PLAIN ? (Chunk){.n_bytes = n, .is_plain = TRUE}
                                                : find_chunk (text, n);
  gboolean is_end = chunk.n_bytes == n;
  g_autofree char *clean = ks_markdown_clean (text, chunk.n_bytes);
  g_autoptr (GPtrArray) fresh =
      g_ptr_array_new_with_free_func ((GDestroyNotify)ks_markdown_block_unref);
  g_autoptr (GArray) tops = g_array_new (FALSE, FALSE, sizeof (KsMarkdownTop));
  const KsMarkdownTop *open = NULL;
  gsize n_bytes = chunk.n_bytes;
  guint n_final = 0;

  if (chunk.is_plain)
    ks_markdown_parse_plain (clean, strlen (clean), fresh);
  else
    ks_markdown_parse (clean, strlen (clean), fresh, tops);
  open = find_open_top (tops, text, chunk.n_bytes, is_end);
  /* A block that fills a chunk of its own is cut there. */
  if (!is_end && (chunk.is_plain || open == NULL || open->n_block == 0)) {
    n_final = fresh->len;
  } else if (open != NULL) {
    n_final = open->n_block;
    n_bytes = find_line (text, chunk.n_bytes, open->line);
  } else {
    n_bytes = 0;
  }
  if (self->n_stable + fresh->len > KS_MARKDOWN_MAX_BLOCKS) {
    g_ptr_array_set_size (fresh, (int)(KS_MARKDOWN_MAX_BLOCKS - self->n_stable));
    n_final = MIN (n_final, fresh->len);
    self->n_left_out += n;
    is_end = TRUE;
  }
  take_blocks (self, fresh, n_final, is_end);
  self->n_final_bytes += n_bytes;
  self->is_complete = is_end;
}

void
ks_markdown_ensure (KsMarkdown *self, guint n_blocks)
{
  while (!self->is_complete && self->n_stable < n_blocks)
    step (self);
}

gboolean
ks_markdown_is_complete (KsMarkdown *self)
{
  return self->is_complete;
}

gsize
ks_markdown_get_n_left_out (KsMarkdown *self)
{
  return self->n_left_out;
}

/* Until the text is read to its end, what was open before is not part of it. */
guint
ks_markdown_get_n_blocks (KsMarkdown *self)
{
  return self->is_complete ? self->blocks->len : self->n_stable;
}

guint
ks_markdown_get_n_stable (KsMarkdown *self)
{
  return self->n_stable;
}

KsMarkdownBlock *
ks_markdown_get_block (KsMarkdown *self, guint i)
{
  g_return_val_if_fail (i < ks_markdown_get_n_blocks (self), NULL);

  return self->blocks->pdata[i];
}

/* ks-text-loader.c - bytes of a text file in any encoding to UTF-8 (inside the worker).
 * Byte order marks decide first, then valid UTF-8, then the shape of UTF-16 and UTF-32 without a
 * mark, then UTF-8 with a few bad bytes, then uchardet's guess.  A file counts as binary when it
 * holds NULs that no wide encoding explains, or many control bytes. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-loader.h"
#include "media/ks-media.h"

#include <iconv.h>
#include <string.h>
#include <uchardet.h>

/* How much of a file decides about wide encodings and binary content. */
#define PROBE_BYTES 65536u
/* How much of it the detector of byte encodings sees. */
#define GUESS_BYTES (1024u * 1024u)
/* Less than one bad byte among so many characters of several bytes: UTF-8 that took damage. */
#define CHARACTERS_PER_FAULT 20

typedef struct {
  const char *encoding;
  guint n_mark;
} Mark;

typedef struct {
  const guint8 *data;
  gsize n;
  char *text; /* the result, n_text long */
  gsize n_text;
  char *encoding;
  guint32 warnings;
} Import;

/* Everything that uchardet can name and the C library can convert. */
static const char *const encodings[] = {
    "UTF-16LE",     "UTF-16BE",     "UTF-32LE",     "UTF-32BE",     "ISO-8859-1",
    "ISO-8859-2",   "ISO-8859-3",   "ISO-8859-4",   "ISO-8859-5",   "ISO-8859-6",
    "ISO-8859-7",   "ISO-8859-8",   "ISO-8859-9",   "ISO-8859-10",  "ISO-8859-11",
    "ISO-8859-13",  "ISO-8859-14",  "ISO-8859-15",  "ISO-8859-16",  "WINDOWS-1250",
    "WINDOWS-1251", "WINDOWS-1252", "WINDOWS-1253", "WINDOWS-1254", "WINDOWS-1255",
    "WINDOWS-1256", "WINDOWS-1257", "WINDOWS-1258", "KOI8-R",       "KOI8-U",
    "EUC-KR",       "UHC",          "JOHAB",        "EUC-JP",       "SHIFT_JIS",
    "ISO-2022-JP",  "ISO-2022-KR",  "ISO-2022-CN",  "BIG5",         "GB18030",
    "EUC-TW",       "TIS-620",      "VISCII",       "MAC-CYRILLIC", "MACCENTRALEUROPE",
    "IBM852",       "IBM855",       "IBM862",       "IBM865",       "IBM866",
};

/* The C library loads its tables when an encoding is first used, from files that are out of reach
 * behind the filter.  The converters stay open: closing one may unload its tables. */
static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  for (gsize i = 0; i < G_N_ELEMENTS (encodings); i++)
    (void)iconv_open ("UTF-8", encodings[i]);
}

static Mark
find_mark (const guint8 *data, gsize n)
{
  if (n >= 3 && memcmp (data, "\xef\xbb\xbf", 3) == 0)
    return (Mark){"UTF-8", 3};
  if (n >= 4 && memcmp (data, "\xff\xfe\0\0", 4) == 0)
    return (Mark){"UTF-32LE", 4};
  if (n >= 4 && memcmp (data, "\0\0\xfe\xff", 4) == 0)
    return (Mark){"UTF-32BE", 4};
  if (n >= 2 && memcmp (data, "\xff\xfe", 2) == 0)
    return (Mark){"UTF-16LE", 2};
  if (n >= 2 && memcmp (data, "\xfe\xff", 2) == 0)
    return (Mark){"UTF-16BE", 2};
  return (Mark){NULL, 0};
}

/* Wide text without a mark: in western text nearly every second (fourth) byte is 0, always at the
 * same places.  NULL when the zeros do not look like that. */
static const char *
guess_wide (const guint8 *data, gsize n)
{
  gsize zeros[4] = {0}, n_probe = MIN (n, PROBE_BYTES) / 4 * 4, quarter = n_probe / 4;

  if (quarter == 0)
    return NULL;
  for (gsize i = 0; i < n_probe; i++)
    zeros[i % 4] += data[i] == 0;
  if (n % 4 == 0 && zeros[0] < quarter / 8 + 1 && zeros[1] > quarter * 7 / 8 &&
      zeros[2] == quarter && zeros[3] == quarter)
    return "UTF-32LE";
  if (n % 4 == 0 && zeros[3] < quarter / 8 + 1 && zeros[2] > quarter * 7 / 8 &&
      zeros[0] == quarter && zeros[1] == quarter)
    return "UTF-32BE";
  if (n % 2 == 0 && zeros[0] + zeros[2] < quarter / 8 + 1 && zeros[1] + zeros[3] > quarter)
    return "UTF-16LE";
  if (n % 2 == 0 && zeros[1] + zeros[3] < quarter / 8 + 1 && zeros[0] + zeros[2] > quarter)
    return "UTF-16BE";
  return NULL;
}

/* Zeros, or more than one control byte in thirty: no text in a byte encoding.  ESC stays allowed
 * for ISO-2022 and for terminal logs. */
static gboolean
looks_binary (const guint8 *data, gsize n)
{
  gsize n_probe = MIN (n, PROBE_BYTES), n_control = 0;

  if (memchr (data, 0, n) != NULL)
    return TRUE;
  for (gsize i = 0; i < n_probe; i++)
    n_control += (data[i] < 0x20 && strchr ("\t\n\r\f\x1b\b", data[i]) == NULL) || data[i] == 0x7f;
  return n_control * 30 > n_probe;
}

/* Mostly whole characters of several bytes, with a bad byte here and there. */
static gboolean
looks_like_broken_utf8 (const guint8 *data, gsize n)
{
  const char *at = (const char *)data, *end = at + n;
  gsize n_wide = 0, n_bad = 0;

  while (at < end) {
    gunichar c = (guint8)*at < 0x80 ? 'a' : g_utf8_get_char_validated (at, end - at);

    if (c == (gunichar)-1 || c == (gunichar)-2) {
      n_bad++;
      at++;
    } else {
      n_wide += c >= 0x80;
      at = g_utf8_next_char (at);
    }
  }
  return n_bad * CHARACTERS_PER_FAULT <= n_wide;
}

/* (transfer full) name of the encoding, NULL when none is recognised.  The detector takes 0.3 s a
 * MiB, so it sees the part that decides: from the first line with a byte over 127 on. */
static char *
detect_charset (const guint8 *data, gsize n)
{
  uchardet_t detector = uchardet_new ();
  gsize begin = 0;
  char *name = NULL;

  while (begin < n && data[begin] < 0x80)
    begin++;
  while (begin > 0 && data[begin - 1] != '\n')
    begin--;
  if (uchardet_handle_data (detector, (const char *)data + begin, MIN (n - begin, GUESS_BYTES)) ==
      0) {
    uchardet_data_end (detector);
    name = g_strdup (uchardet_get_charset (detector));
  }
  uchardet_delete (detector);
  if (name != NULL && (name[0] == '\0' || g_str_equal (name, "ASCII")))
    g_clear_pointer (&name, g_free);
  return name;
}

/* CRLF and CR become LF; in place.  Returns the new length. */
static gsize
join_line_ends (char *text, gsize n)
{
  gsize to = 0;

  for (gsize from = 0; from < n; from++) {
    if (text[from] == '\r') {
      text[to++] = '\n';
      if (from + 1 < n && text[from + 1] == '\n')
        from++;
    } else {
      text[to++] = text[from];
    }
  }
  text[to] = '\0';
  return to;
}

static guint
get_unit (const guint8 *p, gboolean big)
{
  return big ? (guint)p[0] << 8 | p[1] : (guint)p[1] << 8 | p[0];
}

/* Halves of surrogate pairs that stand alone become U+FFFD.  Returns a copy, NULL without memory.
 */
static guint8 *
replace_lone_surrogates (const guint8 *data, gsize n, gboolean big)
{
  guint8 *copy = g_try_malloc (n + 1);

  if (copy == NULL)
    return NULL;
  memcpy (copy, data, n);
  for (gsize i = 0; i + 2 <= n; i += 2) {
    guint unit = get_unit (copy + i, big);
    gboolean is_first = unit >= 0xd800 && unit < 0xdc00;

    if (unit < 0xd800 || unit > 0xdfff)
      continue;
    if (is_first && i + 4 <= n && (get_unit (copy + i + 2, big) & 0xfc00) == 0xdc00) {
      i += 2;
      continue;
    }
    copy[i] = big ? 0xff : 0xfd;
    copy[i + 1] = big ? 0xfd : 0xff;
  }
  return copy;
}

static char *
convert (const guint8 *data, gsize n, const char *encoding, gsize *out_n)
{
  return g_convert ((const char *)data, (gssize)n, "UTF-8", encoding, NULL, out_n, NULL);
}

static gboolean
convert_wide (Import *import, const guint8 *data, gsize n, const char *encoding)
{
  g_autofree guint8 *mended = NULL;

  import->text = convert (data, n, encoding, &import->n_text);
  if (import->text != NULL || !g_str_has_prefix (encoding, "UTF-16") || n % 2 != 0)
    return import->text != NULL;
  mended = replace_lone_surrogates (data, n, g_str_has_suffix (encoding, "BE"));
  if (mended != NULL)
    import->text = convert (mended, n, encoding, &import->n_text);
  import->warnings |= KS_WIRE_WARN_REPLACED;
  return import->text != NULL;
}

static gboolean
take_utf8 (Import *import, const guint8 *data, gsize n, gboolean force)
{
  gboolean valid = g_utf8_validate_len ((const char *)data, n, NULL);

  if (!valid && !force)
    return FALSE;
  if (valid) {
    import->text = g_try_malloc (n + 1);
    if (import->text == NULL)
      ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
    memcpy (import->text, data, n);
    import->text[n] = '\0';
    import->n_text = n;
  } else {
    import->text = g_utf8_make_valid ((const char *)data, (gssize)n);
    import->n_text = strlen (import->text);
    import->warnings |= KS_WIRE_WARN_REPLACED;
  }
  import->encoding = g_strdup ("UTF-8");
  return TRUE;
}

/* Text in a byte encoding, or in a wide one, without a mark. */
static void
import_unmarked (Import *import)
{
  const guint8 *data = import->data;
  const char *wide = guess_wide (data, import->n);

  if (wide != NULL) {
    import->encoding = g_strdup (wide);
    convert_wide (import, data, import->n, wide);
    return;
  }
  if (looks_binary (data, import->n))
    ks_answer_fault (KS_WIRE_FAULT_UNKNOWN, 0, 0);
  if (take_utf8 (import, data, import->n, FALSE))
    return;
  if (looks_like_broken_utf8 (data, import->n)) {
    take_utf8 (import, data, import->n, TRUE);
    return;
  }
  import->encoding = detect_charset (data, import->n);
  if (import->encoding == NULL)
    import->encoding = g_strdup ("WINDOWS-1252");
  import->text = convert (data, import->n, import->encoding, &import->n_text);
}

/* The encoding that the text itself names, when it is one of ours and fits. */
static gboolean
import_named (Import *import, const char *named)
{
  for (gsize i = 0; named != NULL && i < G_N_ELEMENTS (encodings); i++)
    if (g_ascii_strcasecmp (encodings[i], named) == 0 && !g_str_has_prefix (encodings[i], "UTF-")) {
      import->text = convert (import->data, import->n, encodings[i], &import->n_text);
      import->encoding = g_strdup (encodings[i]);
      return import->text != NULL;
    }
  return FALSE;
}

static void
import_text (Import *import, const char *named)
{
  Mark mark = find_mark (import->data, import->n);

  if (mark.encoding == NULL) {
    if (named == NULL || g_utf8_validate_len ((const char *)import->data, import->n, NULL) ||
        !import_named (import, named))
      import_unmarked (import);
  } else if (g_str_equal (mark.encoding, "UTF-8")) {
    if (memchr (import->data, 0, import->n) == NULL)
      take_utf8 (import, import->data + mark.n_mark, import->n - mark.n_mark, TRUE);
  } else {
    import->encoding = g_strdup (mark.encoding);
    convert_wide (import, import->data + mark.n_mark, import->n - mark.n_mark, mark.encoding);
  }
  if (import->text == NULL)
    ks_answer_fault (KS_WIRE_FAULT_ENCODING, 0, 0);
  if (looks_binary ((const guint8 *)import->text, import->n_text))
    ks_answer_fault (KS_WIRE_FAULT_UNKNOWN, 0, 0);
  if (import->n_text > KS_MEDIA_MAX_TEXT_BYTES)
    ks_answer_fault (KS_WIRE_FAULT_LONG_TEXT, 0, 0);
  import->n_text = join_line_ends (import->text, import->n_text);
}

char *
ks_text_loader_decode (const guint8 *data, gsize n, const char *named, gsize *out_n,
                       guint32 *warnings)
{
  Import import = {.data = data, .n = n};

  import_text (&import, named);
  g_free (import.encoding);
  *warnings |= import.warnings;
  *out_n = import.n_text;
  return import.text;
}

static void
run (const KsLoaderJob *job)
{
  KsWireAnswer facts = {.what = KS_WIRE_TEXT};
  Import import = {0};

  import.data = ks_loader_read (job, KS_MEDIA_MAX_TEXT_BYTES, KS_WIRE_FAULT_LONG_TEXT, &import.n);
  import_text (&import, NULL);
  facts.warnings = import.warnings;
  facts.n_bytes = import.n_text;
  g_strlcpy (facts.encoding, import.encoding, sizeof facts.encoding);
  ks_answer_text (&facts, import.text);
}

const KsLoader ks_text_loader = {.prepare = prepare, .run = run};

/* ks-export-html.c - the active path as one HTML file: no script, a policy that forbids any,
 * nothing loaded from elsewhere, pictures as data URLs.  All text is escaped; code between ```
 * fences is set as code, other Markdown stays as it was written. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-export-internal.h"

#include <string.h>

/* Beyond this a browser would choke; the JSON bundle takes more. */
#define MAX_PICTURE_BYTES (G_GUINT64_CONSTANT (256) << 20)

static const char head[] =
    "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"referrer\" content=\"no-referrer\">\n"
    "<style>\n"
    ":root { color-scheme: light dark; }\n"
    "body { font-family: sans-serif; line-height: 1.5; max-width: 46rem; margin: 2rem auto; "
    "padding: 0 1rem; overflow-wrap: anywhere; }\n"
    "section { margin: 1.5rem 0; }\n"
    "section.user { border-inline-start: 4px solid #3584e4; padding-inline-start: 1rem; }\n"
    "h2 { font-size: 1rem; margin: 0; }\n"
    "time, .note { font-size: .85rem; opacity: .75; }\n"
    "p { white-space: pre-wrap; margin: .5rem 0; }\n"
    "pre { overflow-x: auto; padding: .75rem; border: 1px solid #8886; border-radius: 6px; }\n"
    "img { max-width: 100%; height: auto; }\n"
    "</style>\n";

/* Characters that HTML cannot hold become U+FFFD. */
static void
append_escaped (GString *out, const char *text, gsize n)
{
  for (const char *p = text; p < text + n; p++) {
    switch (*p) {
    case '&':
      g_string_append (out, "&amp;");
      break;
    case '<':
      g_string_append (out, "&lt;");
      break;
    case '>':
      g_string_append (out, "&gt;");
      break;
    case '"':
      g_string_append (out, "&quot;");
      break;
    case '\'':
      g_string_append (out, "&#39;");
      break;
    default:
      if (g_ascii_iscntrl (*p) && *p != '\n' && *p != '\t')
        g_string_append (out, "\xef\xbf\xbd");
      else
        g_string_append_c (out, *p);
    }
  }
}

static void
append_block (GString *out, const char *text, gsize n, gboolean is_code)
{
  if (n == 0)
    return;
  g_string_append (out, is_code ? "<pre><code>" : "<p dir=\"auto\">");
  append_escaped (out, text, n);
  g_string_append (out, is_code ? "</code></pre>\n" : "</p>\n");
}

/* Cuts at lines that begin with ```. */
static void
append_text (GString *out, const char *text)
{
  const char *start = text;
  gboolean is_code = FALSE;

  for (const char *line = text; *line != '\0';) {
    gsize n = strcspn (line, "\n");
    const char *next = line[n] == '\n' ? line + n + 1 : line + n;

    if (strncmp (line, "```", 3) == 0) {
      append_block (out, start, (gsize)(line - start), is_code);
      is_code = !is_code;
      start = next;
    }
    line = next;
  }
  append_block (out, start, strlen (start), is_code);
}

static void
append_picture (GString *out, KsStore *store, KsAttachment *attachment, guint64 *room)
{
  g_autoptr (GBytes) bytes =
      ks_blob_store_get (ks_store_get_blobs (store), ks_attachment_get_hash (attachment), NULL);
  const char *type = bytes != NULL ? ks_export_get_picture_type (bytes) : NULL;
  const char *name = ks_attachment_get_name (attachment);
  g_autofree char *base64 = NULL;
  gsize n;
  gconstpointer data;

  if (type == NULL || g_bytes_get_size (bytes) > *room)
    return;
  data = g_bytes_get_data (bytes, &n);
  *room -= n;
  base64 = g_base64_encode (data, n);
  g_string_append (out, "<p><img alt=\"");
  append_escaped (out, name, strlen (name));
  g_string_append_printf (out, "\" src=\"data:%s;base64,%s\"></p>\n", type, base64);
}

static void
append_message (GString *out, KsStore *store, KsMessage *message, guint64 *room)
{
  static const char *const classes[] = {"system", "user", "assistant"};
  GListModel *attachments = ks_message_get_attachments (message);
  g_autofree char *time = ks_export_format_time (ks_message_get_created_us (message));
  g_autofree char *note = ks_export_make_note (message);

  g_string_append_printf (out, "<section class=\"%s\">\n<h2>%s</h2>\n<time>%s</time>\n",
                          classes[ks_message_get_role (message)], ks_export_get_heading (message),
                          time);
  if (ks_message_is_pinned (message, NULL))
    g_string_append (out, "<p class=\"note\">Pinned.</p>\n");
  for (guint i = 0; i < g_list_model_get_n_items (attachments); i++) {
    g_autoptr (KsAttachment) attachment = g_list_model_get_item (attachments, i);
    g_autofree char *text = ks_export_describe (message, attachment);

    g_string_append (out, "<p class=\"note\">");
    append_escaped (out, text, strlen (text));
    g_string_append (out, "</p>\n");
    if (ks_attachment_get_kind (attachment) == KS_ATTACHMENT_IMAGE)
      append_picture (out, store, attachment, room);
  }
  append_text (out, ks_message_get_text (message));
  if (note != NULL) {
    g_string_append (out, "<p class=\"note\">");
    append_escaped (out, note, strlen (note));
    g_string_append (out, "</p>\n");
  }
  g_string_append (out, "</section>\n");
}

GBytes *
ks_export_html (KsStore *store, KsSession *session, GError **error)
{
  g_autoptr (GPtrArray) messages =
      ks_store_list_messages (store, ks_session_get_id (session), error);
  const char *title = ks_session_get_title (session);
  guint64 room = MAX_PICTURE_BYTES;
  GString *out;

  if (messages == NULL)
    return NULL;
  out = g_string_new (head);
  g_string_append (out, "<title>");
  append_escaped (out, title, strlen (title));
  g_string_append (out, "</title>\n</head>\n<body>\n<h1 dir=\"auto\">");
  append_escaped (out, title, strlen (title));
  g_string_append (out, "</h1>\n");
  for (guint i = 0; i < messages->len; i++)
    append_message (out, store, g_ptr_array_index (messages, i), &room);
  g_string_append (out, "</body>\n</html>\n");
  return g_string_free_to_bytes (out);
}

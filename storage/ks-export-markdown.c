/* ks-export-markdown.c - the active path as Markdown; the texts of messages as they are. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-export-internal.h"

#include <string.h>

/* Text of ours that must not be taken for marks, on one line. */
static void
append_plain (GString *out, const char *text)
{
  for (const char *p = text; *p != '\0'; p++) {
    if (strchr ("\\`*_[]<>#|!~&", *p) != NULL)
      g_string_append_c (out, '\\');
    g_string_append_c (out, g_ascii_iscntrl (*p) ? ' ' : *p);
  }
}

static void
append_message (GString *out, KsMessage *message)
{
  GListModel *attachments = ks_message_get_attachments (message);
  g_autofree char *time = ks_export_format_time (ks_message_get_created_us (message));
  g_autofree char *note = ks_export_make_note (message);
  guint n = g_list_model_get_n_items (attachments);

  g_string_append_printf (out, "\n## %s\n\n<!-- %s -->\n\n", ks_export_get_heading (message), time);
  if (ks_message_is_pinned (message, NULL))
    g_string_append (out, "*Pinned.*\n\n");
  for (guint i = 0; i < n; i++) {
    g_autoptr (KsAttachment) attachment = g_list_model_get_item (attachments, i);
    g_autofree char *text = ks_export_describe (message, attachment);

    g_string_append (out, "- Attached: ");
    append_plain (out, text);
    g_string_append_c (out, '\n');
  }
  if (n > 0)
    g_string_append_c (out, '\n');
  g_string_append (out, ks_message_get_text (message));
  if (out->str[out->len - 1] != '\n')
    g_string_append_c (out, '\n');
  if (note != NULL) {
    g_string_append (out, "\n*");
    append_plain (out, note);
    g_string_append (out, "*\n");
  }
}

GBytes *
ks_export_markdown (KsStore *store, KsSession *session, GError **error)
{
  g_autoptr (GPtrArray) messages =
      ks_store_list_messages (store, ks_session_get_id (session), error);
  GString *out;

  if (messages == NULL)
    return NULL;
  out = g_string_new ("# ");
  append_plain (out, ks_session_get_title (session));
  g_string_append_c (out, '\n');
  for (guint i = 0; i < messages->len; i++)
    append_message (out, g_ptr_array_index (messages, i));
  return g_string_free_to_bytes (out);
}

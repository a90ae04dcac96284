/* ks-attachment-words.c - see ks-attachment-words.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-attachment-words.h"

#include "ui/ks-memory-words.h"

#include <glib/gi18n.h>

#define MAX_LINES 3 /* a folder's files would fill the window */

static char *
dup_reason (KsPendingAttachment *attachment)
{
  const char *name = ks_pending_attachment_get_name (attachment);

  switch (ks_pending_attachment_get_state (attachment)) {
  case KS_PENDING_LOADING:
    return g_strdup_printf (_ ("“%s” is still being read."), name);
  case KS_PENDING_PASSWORD:
    return g_strdup_printf (_ ("“%s” needs its password. Enter it, or remove the file."), name);
  default:
    return NULL;
  }
}

char *
ks_attachment_words_dup_reason (GListModel *attachments)
{
  char *reason = NULL;

  g_return_val_if_fail (G_IS_LIST_MODEL (attachments), NULL);
  for (guint i = 0; i < g_list_model_get_n_items (attachments) && reason == NULL; i++) {
    g_autoptr (KsPendingAttachment) attachment = g_list_model_get_item (attachments, i);

    reason = dup_reason (attachment);
  }
  return reason;
}

static guint
count (GListModel *attachments, KsPendingState state)
{
  guint n = 0;

  for (guint i = 0; i < g_list_model_get_n_items (attachments); i++) {
    g_autoptr (KsPendingAttachment) attachment = g_list_model_get_item (attachments, i);

    n += ks_pending_attachment_get_state (attachment) == state;
  }
  return n;
}

gboolean
ks_attachment_words_has_ready (GListModel *attachments)
{
  g_return_val_if_fail (G_IS_LIST_MODEL (attachments), FALSE);
  return count (attachments, KS_PENDING_READY) > 0;
}

char *
ks_attachment_words_dup_hint (GListModel *attachments)
{
  g_autoptr (GString) hint = g_string_new (NULL);
  g_autofree char *locked = NULL, *refused = NULL;
  guint n_locked, n_refused;

  g_return_val_if_fail (G_IS_LIST_MODEL (attachments), NULL);
  n_locked = count (attachments, KS_PENDING_PASSWORD);
  n_refused = count (attachments, KS_PENDING_FAILED);
  locked = ks_words_count (n_locked);
  refused = ks_words_count (n_refused);
  if (n_locked > 0)
    g_string_append_printf (
        hint,
        ngettext ("%s file is locked: enter its password, or remove it, to send the message.",
                  "%s files are locked: enter their passwords, or remove them, to send the "
                  "message.",
                  n_locked),
        locked);
  if (n_locked > 0 && n_refused > 0)
    g_string_append_c (hint, '\n');
  if (n_refused > 0)
    g_string_append_printf (hint,
                            ngettext ("%s file cannot be read: the message goes without it.",
                                      "%s files cannot be read: the message goes without them.",
                                      n_refused),
                            refused);
  return hint->len == 0 ? NULL : g_strdup (hint->str);
}

char *
ks_attachment_words_dup_left_out (GListModel *attachments)
{
  g_autoptr (GPtrArray) lines = g_ptr_array_new_with_free_func (g_free);
  guint n_refused = 0;

  g_return_val_if_fail (G_IS_LIST_MODEL (attachments), NULL);
  for (guint i = 0; i < g_list_model_get_n_items (attachments); i++) {
    g_autoptr (KsPendingAttachment) attachment = g_list_model_get_item (attachments, i);
    const char *error = ks_pending_attachment_get_error (attachment);
    const char *name = ks_pending_attachment_get_name (attachment);

    if (ks_pending_attachment_get_state (attachment) != KS_PENDING_FAILED ||
        n_refused++ >= MAX_LINES)
      continue;
    if (error == NULL)
      error = _ ("It could not be read.");
    /* Translators: a file's name and the sentence why. */
    g_ptr_array_add (lines, g_strdup_printf (_ ("“%s” was left out: %s"), name, error));
  }
  if (n_refused > MAX_LINES) {
    g_autofree char *more = ks_words_count (n_refused - MAX_LINES);

    g_ptr_array_add (
        lines, g_strdup_printf (ngettext ("%s more file was left out.",
                                          "%s more files were left out.", n_refused - MAX_LINES),
                                more));
  }
  g_ptr_array_add (lines, NULL);
  return n_refused == 0 ? NULL : g_strjoinv ("\n", (char **)lines->pdata);
}

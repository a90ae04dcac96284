/* ks-intake.c - see ks-intake.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-intake.h"

#include <glib/gi18n.h>

#define CHUNK_BYTES (256 * 1024)
#define MAX_PICTURE_BYTES (256u * 1024u * 1024u)
#define MAX_SHOWN_ADDRESS 60 /* characters */

/* Formats that are passed on without a look inside. */
static const char *const encoded_types[] = {"image/png", "image/jpeg", NULL};

/* One paste or drop until everything of it is attached. */
typedef struct {
  KsChat *chat;
  KsIntakeNotice func;
  GWeakRef object;
  char *name;        /* of a picture; NULL = a pasted one */
  GByteArray *bytes; /* ENCODED: what was read so far */
} Intake;

static Intake *
intake_new (KsChat *chat, KsIntakeNotice func, GObject *object)
{
  Intake *intake = g_new0 (Intake, 1);

  intake->chat = g_object_ref (chat);
  intake->func = func;
  g_weak_ref_init (&intake->object, object);
  return intake;
}

static void
intake_free (Intake *intake)
{
  g_object_unref (intake->chat);
  g_weak_ref_clear (&intake->object);
  g_clear_pointer (&intake->bytes, g_byte_array_unref);
  g_free (intake->name);
  g_free (intake);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Intake, intake_free)

static void
intake_tell (Intake *intake, const char *notice)
{
  g_autoptr (GObject) object = g_weak_ref_get (&intake->object);

  if (object != NULL)
    intake->func (object, intake->chat, notice);
}

static void
intake_tell_unreadable (Intake *intake, const GError *error)
{
  g_autofree char *notice = NULL;

  /* Translators: %s is the system's reason. */
  notice = g_strdup_printf (_ ("What was copied could not be read: %s"),
                            error == NULL ? _ ("it is empty.") : error->message);
  intake_tell (intake, notice);
}

static gboolean
is_name_taken (KsChat *chat, const char *name)
{
  GListModel *model = ks_chat_get_attachments (chat);
  gboolean is_taken = FALSE;

  for (guint i = 0; i < g_list_model_get_n_items (model) && !is_taken; i++) {
    g_autoptr (KsPendingAttachment) attachment = g_list_model_get_item (model, i);

    is_taken = g_strcmp0 (ks_pending_attachment_get_name (attachment), name) == 0;
  }
  return is_taken;
}

static void
attach (KsChat *chat, const char *kind, GBytes *bytes)
{
  g_autofree char *name = g_strdup (kind);

  for (guint i = 2; is_name_taken (chat, name); i++) {
    g_free (name);
    /* Translators: what it is and a number, "Pasted picture 2". */
    name = g_strdup_printf (C_ ("numbered name", "%s %u"), kind, i);
  }
  ks_chat_attach_bytes (chat, name, bytes);
}

static void
attach_picture (Intake *intake, GBytes *bytes)
{
  attach (intake->chat, intake->name != NULL ? intake->name : _ ("Pasted picture"), bytes);
}

KsIntakeKind
ks_intake_choose (GdkContentFormats *formats)
{
  g_autoptr (GdkContentFormats) all =
      gdk_content_formats_union_deserialize_gtypes (gdk_content_formats_ref (formats));

  if (gdk_content_formats_contain_gtype (all, GDK_TYPE_FILE_LIST))
    return KS_INTAKE_FILES;
  for (gsize i = 0; encoded_types[i] != NULL; i++)
    if (gdk_content_formats_contain_mime_type (all, encoded_types[i]))
      return KS_INTAKE_ENCODED;
  if (gdk_content_formats_contain_gtype (all, GDK_TYPE_TEXTURE))
    return KS_INTAKE_TEXTURE;
  return gdk_content_formats_contain_gtype (all, G_TYPE_STRING) ? KS_INTAKE_TEXT
                                                                : KS_INTAKE_NOTHING;
}

static char *
shorten (const char *address)
{
  g_autofree char *start = NULL;

  if (g_utf8_strlen (address, -1) <= MAX_SHOWN_ADDRESS)
    return g_strdup (address);
  start = g_utf8_substring (address, 0, MAX_SHOWN_ADDRESS);
  return g_strconcat (start, "…", NULL);
}

static void
take_files (Intake *intake, GSList *files)
{
  const GFile *remote = NULL;

  for (GSList *l = files; l != NULL; l = l->next) {
    g_autofree char *path = g_file_get_path (l->data);

    if (path != NULL)
      ks_chat_attach_file (intake->chat, l->data);
    else if (remote == NULL)
      remote = l->data;
  }
  if (remote != NULL) {
    g_autofree char *parse_name = g_file_get_parse_name ((GFile *)remote);
    g_autofree char *address = shorten (parse_name);
    g_autofree char *notice = g_strdup_printf (
        _ ("“%s” is not on this machine, and Keepsake fetches nothing from the network. Save it as "
           "a file first, then attach that."),
        address);

    intake_tell (intake, notice);
  }
}

void
ks_intake_take_files (GSList *files, KsChat *chat, KsIntakeNotice func, GObject *object)
{
  g_autoptr (Intake) intake = intake_new (chat, func, object);

  take_files (intake, files);
}

static void
encode (GTask *task, gpointer source, gpointer texture, GCancellable *cancellable)
{
  g_task_return_pointer (task, gdk_texture_save_to_png_bytes (texture),
                         (GDestroyNotify)g_bytes_unref);
}

static void
encoded_cb (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (Intake) intake = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_task_propagate_pointer (G_TASK (result), &error);

  if (bytes == NULL)
    intake_tell_unreadable (intake, error);
  else
    attach_picture (intake, bytes);
}

void
ks_intake_take_texture (GdkTexture *texture, const char *name, KsChat *chat, KsIntakeNotice func,
                        GObject *object)
{
  Intake *intake = intake_new (chat, func, object);
  g_autoptr (GTask) task = g_task_new (NULL, NULL, encoded_cb, intake);

  intake->name = g_strdup (name);
  g_task_set_task_data (task, g_object_ref (texture), g_object_unref);
  g_task_run_in_thread (task, encode);
}

void
ks_intake_take_text (const char *text, gsize n_text, KsChat *chat)
{
  g_autoptr (GBytes) bytes = g_bytes_new (text, n_text);

  attach (chat, _ ("Pasted text"), bytes);
}

static void
files_cb (GObject *clipboard, GAsyncResult *result, gpointer data)
{
  g_autoptr (Intake) intake = data;
  g_autoptr (GError) error = NULL;
  const GValue *value = gdk_clipboard_read_value_finish (GDK_CLIPBOARD (clipboard), result, &error);

  if (value == NULL)
    intake_tell_unreadable (intake, error);
  else
    take_files (intake, g_value_get_boxed (value));
}

static void
texture_cb (GObject *clipboard, GAsyncResult *result, gpointer data)
{
  g_autoptr (Intake) intake = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GdkTexture) texture =
      gdk_clipboard_read_texture_finish (GDK_CLIPBOARD (clipboard), result, &error);
  g_autoptr (GObject) object = g_weak_ref_get (&intake->object);

  if (texture == NULL)
    intake_tell_unreadable (intake, error);
  else if (object != NULL)
    ks_intake_take_texture (texture, NULL, intake->chat, intake->func, object);
}

static void
chunk_cb (GObject *stream, GAsyncResult *result, gpointer data)
{
  g_autoptr (Intake) intake = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) chunk =
      g_input_stream_read_bytes_finish (G_INPUT_STREAM (stream), result, &error);

  if (chunk == NULL) {
    intake_tell_unreadable (intake, error);
    return;
  }
  if (g_bytes_get_size (chunk) == 0) {
    g_autoptr (GBytes) bytes = g_byte_array_free_to_bytes (g_steal_pointer (&intake->bytes));

    if (g_bytes_get_size (bytes) == 0)
      intake_tell_unreadable (intake, NULL);
    else
      attach_picture (intake, bytes);
    return;
  }
  if (intake->bytes->len + g_bytes_get_size (chunk) > MAX_PICTURE_BYTES) {
    intake_tell (intake, _ ("The copied picture is larger than 256 MiB. Save a smaller one as a "
                            "file and attach that."));
    return;
  }
  g_byte_array_append (intake->bytes, g_bytes_get_data (chunk, NULL),
                       (guint)g_bytes_get_size (chunk));
  g_input_stream_read_bytes_async (G_INPUT_STREAM (stream), CHUNK_BYTES, G_PRIORITY_DEFAULT, NULL,
                                   chunk_cb, g_steal_pointer (&intake));
}

static void
stream_cb (GObject *clipboard, GAsyncResult *result, gpointer data)
{
  g_autoptr (Intake) intake = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GInputStream) stream =
      gdk_clipboard_read_finish (GDK_CLIPBOARD (clipboard), result, NULL, &error);

  if (stream == NULL) {
    intake_tell_unreadable (intake, error);
    return;
  }
  intake->bytes = g_byte_array_new ();
  g_input_stream_read_bytes_async (stream, CHUNK_BYTES, G_PRIORITY_DEFAULT, NULL, chunk_cb,
                                   g_steal_pointer (&intake));
}

void
ks_intake_paste (GdkClipboard *clipboard, KsIntakeKind kind, KsChat *chat, KsIntakeNotice func,
                 GObject *object)
{
  Intake *intake = intake_new (chat, func, object);

  switch (kind) {
  case KS_INTAKE_FILES:
    gdk_clipboard_read_value_async (clipboard, GDK_TYPE_FILE_LIST, G_PRIORITY_DEFAULT, NULL,
                                    files_cb, intake);
    break;
  case KS_INTAKE_ENCODED:
    gdk_clipboard_read_async (clipboard, (const char **)encoded_types, G_PRIORITY_DEFAULT, NULL,
                              stream_cb, intake);
    break;
  case KS_INTAKE_TEXTURE:
    gdk_clipboard_read_texture_async (clipboard, NULL, texture_cb, intake);
    break;
  default:
    intake_free (intake);
    break;
  }
}

gboolean
ks_intake_is_address (const char *text)
{
  static const char *const schemes[] = {"http", "https", "ftp", "sftp", "smb", NULL};
  g_autofree char *address = g_strstrip (g_strdup (text));
  g_autoptr (GUri) uri = g_uri_parse (address, G_URI_FLAGS_NONE, NULL);

  return uri != NULL && g_strv_contains (schemes, g_uri_get_scheme (uri));
}

/* ks-export-json.c - the whole session as a bundle: all branches, settings, media.  The order of
 * keys and media depends on the session alone, so that a bundle that was imported is written again
 * byte for byte.  Source: docs/formats/bundle.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-bundle.h"
#include "storage/ks-export-internal.h"
#include "storage/ks-store-internal.h"

#include <cjson/cJSON.h>
#include <string.h>

static void
add_int (cJSON *object, const char *key, gint64 value)
{
  g_autofree char *text = g_strdup_printf ("%" G_GINT64_FORMAT, MIN (value, KS_BUNDLE_MAX_INT));

  cJSON_AddRawToObject (object, key, text);
}

/* The shortest text that reads back as the same number. */
static void
add_double (cJSON *object, const char *key, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];

  g_ascii_formatd (text, sizeof text, "%.15g", value);
  if (g_ascii_strtod (text, NULL) != value)
    g_ascii_formatd (text, sizeof text, "%.17g", value);
  cJSON_AddRawToObject (object, key, text);
}

static void
add_text (cJSON *object, const char *key, const char *text)
{
  if (text != NULL)
    cJSON_AddStringToObject (object, key, text);
}

static gboolean
add_settings (cJSON *root, KsStore *store, gint64 session, GError **error)
{
  g_autoptr (KsSessionSettings) s = ks_store_get_settings (store, session, error);
  cJSON *object;

  if (s == NULL)
    return FALSE;
  object = cJSON_AddObjectToObject (root, "settings");
  add_text (object, "model", s->model);
  add_text (object, "system_prompt", s->system_prompt);
  add_text (object, "policy", s->policy);
  if (s->budget_bytes >= 0)
    add_int (object, "budget_bytes", s->budget_bytes);
  if (s->kv_budget_bytes >= 0)
    add_int (object, "kv_budget_bytes", s->kv_budget_bytes);
  if (s->temperature >= 0)
    add_double (object, "temperature", s->temperature);
  if (s->top_p >= 0)
    add_double (object, "top_p", s->top_p);
  if (s->min_p >= 0)
    add_double (object, "min_p", s->min_p);
  if (s->repeat_penalty >= 0)
    add_double (object, "repeat_penalty", s->repeat_penalty);
  if (s->top_k >= 0)
    add_int (object, "top_k", s->top_k);
  if (s->seed >= 0) {
    g_autofree char *seed = g_strdup_printf ("%" G_GINT64_FORMAT, s->seed);

    cJSON_AddStringToObject (object, "seed", seed);
  }
  if (s->max_tokens >= 0)
    add_int (object, "max_tokens", s->max_tokens);
  return TRUE;
}

/* A medium the first time it is used; bytes that cannot be read are said to be lost. */
static void
add_medium (cJSON *media, KsStore *store, const char *hash, GHashTable *seen, guint64 *n_bytes)
{
  g_autoptr (GBytes) bytes = NULL;
  g_autofree char *base64 = NULL;
  cJSON *object;
  gsize n;
  gconstpointer data;

  if (hash == NULL || !g_hash_table_add (seen, g_strdup (hash)))
    return;
  object = cJSON_CreateObject ();
  cJSON_AddItemToArray (media, object);
  cJSON_AddStringToObject (object, "sha256", hash);
  bytes = ks_blob_store_get (ks_store_get_blobs (store), hash, NULL);
  if (bytes == NULL) {
    cJSON_AddNullToObject (object, "base64");
    return;
  }
  data = g_bytes_get_data (bytes, &n);
  *n_bytes += n + n / 2;
  if (*n_bytes > KS_BUNDLE_MAX_BYTES)
    return;
  base64 = g_base64_encode (data, n);
  cJSON_AddStringToObject (object, "base64", base64);
}

static void
add_attachment (cJSON *array, KsAttachment *attachment, gboolean pinned)
{
  cJSON *object = cJSON_CreateObject ();

  cJSON_AddItemToArray (array, object);
  add_text (object, "kind", ks_bundle_kinds[ks_attachment_get_kind (attachment)]);
  add_text (object, "name", ks_attachment_get_name (attachment));
  add_text (object, "sha256", ks_attachment_get_hash (attachment));
  add_int (object, "n_bytes", (gint64)ks_attachment_get_n_bytes (attachment));
  add_text (object, "text_sha256", ks_attachment_get_text_hash (attachment));
  add_int (object, "n_pages", ks_attachment_get_n_pages (attachment));
  add_int (object, "width_px", ks_attachment_get_width_px (attachment));
  add_int (object, "height_px", ks_attachment_get_height_px (attachment));
  add_text (object, "reading", ks_attachment_get_reading (attachment));
  if (ks_attachment_get_duration_us (attachment) > 0)
    add_int (object, "duration_us", ks_attachment_get_duration_us (attachment));
  if (pinned)
    cJSON_AddTrueToObject (object, "pinned");
}

static cJSON *
make_message (KsMessage *message, guint parent, guint child)
{
  cJSON *object = cJSON_CreateObject ();
  KsMessageState state = ks_message_get_state (message);

  if (state == KS_MESSAGE_STREAMING)
    state = KS_MESSAGE_INTERRUPTED;
  add_int (object, "parent", parent);
  add_text (object, "role", ks_bundle_roles[ks_message_get_role (message)]);
  add_text (object, "state", ks_bundle_states[state]);
  add_text (object, "text", ks_message_get_text (message));
  add_int (object, "created_us", ks_message_get_created_us (message));
  add_text (object, "error", ks_message_get_error (message));
  add_int (object, "n_tokens", ks_message_get_n_tokens (message));
  add_int (object, "active_child", child);
  if (ks_message_is_pinned (message, NULL))
    cJSON_AddTrueToObject (object, "pinned");
  return object;
}

/* What the writing of one bundle needs. */
typedef struct {
  KsStore *store;
  cJSON *messages, *media;
  GHashTable *numbers; /* id -> number in the bundle */
  GHashTable *seen;    /* hashes in media */
  guint64 n_bytes;     /* estimate of the bundle's size */
} Writer;

static guint
number_of (Writer *writer, gint64 id)
{
  return GPOINTER_TO_UINT (g_hash_table_lookup (writer->numbers, &id));
}

static void
add_message (Writer *writer, KsMessage *message)
{
  GListModel *attachments = ks_message_get_attachments (message);
  gint64 child = ks_store_get_active_child (writer->store, ks_message_get_id (message));
  cJSON *object = make_message (message, number_of (writer, ks_message_get_parent_id (message)),
                                number_of (writer, child));
  cJSON *array;

  cJSON_AddItemToArray (writer->messages, object);
  writer->n_bytes += strlen (ks_message_get_text (message));
  if (g_list_model_get_n_items (attachments) == 0)
    return;
  array = cJSON_AddArrayToObject (object, "attachments");
  for (guint i = 0; i < g_list_model_get_n_items (attachments); i++) {
    g_autoptr (KsAttachment) attachment = g_list_model_get_item (attachments, i);

    add_attachment (array, attachment,
                    ks_message_is_pinned (message, ks_attachment_get_hash (attachment)));
    add_medium (writer->media, writer->store, ks_attachment_get_hash (attachment), writer->seen,
                &writer->n_bytes);
    add_medium (writer->media, writer->store, ks_attachment_get_text_hash (attachment),
                writer->seen, &writer->n_bytes);
  }
}

/* TRUE when all messages are in and the bundle stays importable. */
static gboolean
add_messages (Writer *writer, GPtrArray *messages, GError **error)
{
  for (guint i = 0; i < messages->len; i++) {
    gint64 id = ks_message_get_id (g_ptr_array_index (messages, i));

    g_hash_table_insert (writer->numbers, g_memdup2 (&id, sizeof id), GUINT_TO_POINTER (i + 1));
  }
  for (guint i = 0; i < messages->len && writer->n_bytes <= KS_BUNDLE_MAX_BYTES; i++)
    add_message (writer, g_ptr_array_index (messages, i));
  if (writer->n_bytes <= KS_BUNDLE_MAX_BYTES)
    return TRUE;
  g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_TOO_LARGE,
               "This session's files exceed the 512 MiB that a bundle may have: export it as "
               "Markdown or HTML.");
  return FALSE;
}

static GBytes *
print (cJSON *root, GError **error)
{
  char *text = cJSON_Print (root);
  GString *out;

  if (text == NULL) {
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FAILED,
                 "There is not enough memory for the bundle.");
    return NULL;
  }
  out = g_string_new (text);
  cJSON_free (text);
  g_string_append_c (out, '\n');
  return g_string_free_to_bytes (out);
}

GBytes *
ks_export_json (KsStore *store, KsSession *session, GError **error)
{
  gint64 id = ks_session_get_id (session);
  g_autoptr (GPtrArray) messages = ks_store_list_all_messages (store, id, error);
  Writer writer = {.store = store};
  cJSON *root;
  GBytes *bytes = NULL;

  if (messages == NULL)
    return NULL;
  writer.numbers = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  writer.seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  writer.messages = cJSON_CreateArray ();
  writer.media = cJSON_CreateArray ();
  root = cJSON_CreateObject ();
  cJSON_AddStringToObject (root, "format", KS_BUNDLE_FORMAT);
  add_int (root, "version", KS_BUNDLE_VERSION);
  add_text (root, "title", ks_session_get_title (session));
  add_int (root, "created_us", ks_session_get_created_us (session));
  add_int (root, "updated_us", ks_session_get_updated_us (session));
  if (add_settings (root, store, id, error) && add_messages (&writer, messages, error)) {
    add_int (root, "active", number_of (&writer, ks_store_get_leaf (store, id)));
    cJSON_AddItemToObject (root, "messages", g_steal_pointer (&writer.messages));
    cJSON_AddItemToObject (root, "media", g_steal_pointer (&writer.media));
    bytes = print (root, error);
  }
  cJSON_Delete (writer.messages);
  cJSON_Delete (writer.media);
  cJSON_Delete (root);
  g_hash_table_unref (writer.numbers);
  g_hash_table_unref (writer.seen);
  return bytes;
}

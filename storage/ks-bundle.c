/* ks-bundle.c - the strict reader of bundles.  Before the JSON parser sees a byte, one pass over
 * the text bounds its nesting and the number of its values, so that neither stack nor memory depend
 * on what a file claims.  Unknown and repeated keys, numbers out of range, text that is no UTF-8,
 * hashes that do not fit: each refuses the whole bundle. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-bundle.h"

#include "storage/ks-blob-store.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#define MAX_DEPTH 8
#define MAX_VALUES 2000000
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

const char *const ks_bundle_roles[] = {"system", "user", "assistant"};
const char *const ks_bundle_states[] = {"complete", "streaming",   "stopped",
                                        "limit",    "interrupted", "failed"};
const char *const ks_bundle_kinds[] = {"text", "pdf", "image", "video", "document"};

G_STATIC_ASSERT (G_N_ELEMENTS (ks_bundle_roles) == KS_BUNDLE_N_ROLES);
G_STATIC_ASSERT (G_N_ELEMENTS (ks_bundle_states) == KS_BUNDLE_N_STATES);
G_STATIC_ASSERT (G_N_ELEMENTS (ks_bundle_kinds) == KS_BUNDLE_N_KINDS);

void
ks_bundle_free (KsBundle *bundle)
{
  if (bundle == NULL)
    return;
  g_free (bundle->title);
  ks_session_settings_free (bundle->settings);
  g_clear_pointer (&bundle->messages, g_ptr_array_unref);
  g_clear_pointer (&bundle->active_children, g_array_unref);
  g_clear_pointer (&bundle->media, g_hash_table_unref);
  g_free (bundle);
}

static gboolean fail (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
fail (GError **error, const char *format, ...)
{
  g_autofree char *what = NULL;
  va_list args;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FORMAT,
               "This is no session that can be imported: %s.", what);
  return FALSE;
}

static gboolean
fail_too_large (GError **error, const char *what)
{
  g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_TOO_LARGE,
               "This session is too large to be imported: %s.", what);
  return FALSE;
}

/* Steps over a string; NULL when it holds a NUL by escape, which C strings cannot. */
static const char *
skip_string (const char *p, const char *end)
{
  for (p++; p < end && *p != '"'; p++) {
    if (*p != '\\')
      continue;
    if (end - p > 5 && memcmp (p, "\\u0000", 6) == 0)
      return NULL;
    if (p + 1 < end)
      p++;
  }
  return p;
}

static gboolean
check_outline (const char *text, gsize n, GError **error)
{
  const char *end = text + n;
  gint64 depth = 0, n_values = 0;

  for (const char *p = text; p < end; p++) {
    switch (*p) {
    case '"':
      p = skip_string (p, end);
      if (p == NULL)
        return fail (error, "a text holds a NUL");
      break;
    case '[':
    case '{':
      n_values++;
      if (++depth > MAX_DEPTH)
        return fail (error, "it is nested too deeply");
      break;
    case ']':
    case '}':
      depth--;
      break;
    case ',':
      n_values++;
      break;
    default:
      break;
    }
    if (n_values > MAX_VALUES)
      return fail_too_large (error, "it holds too many values");
  }
  return TRUE;
}

/* An object with nothing but these keys, each once at most. */
static gboolean
check_object (const cJSON *object, const char *what, const char *const *keys, guint n_keys,
              GError **error)
{
  guint64 seen = 0;

  if (!cJSON_IsObject (object))
    return fail (error, "%s is missing or no object", what);
  for (const cJSON *item = object->child; item != NULL; item = item->next) {
    guint i = 0;

    while (i < n_keys && strcmp (item->string, keys[i]) != 0)
      i++;
    if (i == n_keys)
      return fail (error, "%s has the unknown key \"%.40s\"", what, item->string);
    if ((seen & (G_GUINT64_CONSTANT (1) << i)) != 0)
      return fail (error, "%s has the key \"%s\" twice", what, keys[i]);
    seen |= G_GUINT64_CONSTANT (1) << i;
  }
  return TRUE;
}

/* A missing key leaves *out as it is. */
static gboolean
read_int (const cJSON *object, const char *key, gint64 max, gint64 *out, GError **error)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive (object, key);

  if (item == NULL)
    return TRUE;
  if (!cJSON_IsNumber (item) || !(item->valuedouble >= 0) || item->valuedouble > (double)max ||
      floor (item->valuedouble) != item->valuedouble)
    return fail (error, "%s is no whole number in its range", key);
  *out = (gint64)item->valuedouble;
  return TRUE;
}

static gboolean
read_uint (const cJSON *object, const char *key, guint max, guint *out, GError **error)
{
  gint64 value = *out;

  if (!read_int (object, key, max, &value, error))
    return FALSE;
  *out = (guint)value;
  return TRUE;
}

/* What is not pinned has no such key. */
static gboolean
read_pinned (const cJSON *object, gboolean *out, GError **error)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive (object, "pinned");

  if (item != NULL && !cJSON_IsTrue (item))
    return fail (error, "pinned is not true");
  *out = item != NULL;
  return TRUE;
}

static gboolean
read_double (const cJSON *object, const char *key, double *out, GError **error)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive (object, key);

  if (item == NULL)
    return TRUE;
  if (!cJSON_IsNumber (item) || !(item->valuedouble >= 0) || !isfinite (item->valuedouble))
    return fail (error, "%s is no number in its range", key);
  *out = item->valuedouble;
  return TRUE;
}

/* (borrowed) *out stays NULL when the key is missing and that is allowed. */
static gboolean
read_text (const cJSON *object, const char *key, gboolean required, const char **out,
           GError **error)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive (object, key);

  if (item == NULL && !required)
    return TRUE;
  if (!cJSON_IsString (item))
    return fail (error, "%s is missing or no text", key);
  *out = item->valuestring;
  return TRUE;
}

static gboolean
read_word (const cJSON *object, const char *key, const char *const *words, guint n_words,
           guint *out, GError **error)
{
  const char *text = NULL;

  if (!read_text (object, key, TRUE, &text, error))
    return FALSE;
  for (guint i = 0; i < n_words; i++)
    if (strcmp (words[i], text) == 0) {
      *out = i;
      return TRUE;
    }
  return fail (error, "%s \"%.40s\" is unknown", key, text);
}

static gboolean
read_hash (const cJSON *object, const char *key, gboolean required, const char **out,
           GError **error)
{
  if (!read_text (object, key, required, out, error))
    return FALSE;
  if (*out == NULL || ks_blob_store_is_hash (*out))
    return TRUE;
  return fail (error, "%s is no SHA-256", key);
}

static gboolean
read_settings (KsBundle *bundle, const cJSON *object, GError **error)
{
  static const char *const keys[] = {"model",           "system_prompt",  "policy", "budget_bytes",
                                     "kv_budget_bytes", "temperature",    "top_p",  "min_p",
                                     "top_k",           "repeat_penalty", "seed",   "max_tokens"};
  KsSessionSettings *s = bundle->settings;
  const char *model = NULL, *prompt = NULL, *policy = NULL, *seed = NULL;
  gint64 top_k = -1, max_tokens = -1;

  if (!check_object (object, "settings", keys, G_N_ELEMENTS (keys), error) ||
      !read_text (object, "model", FALSE, &model, error) ||
      !read_text (object, "system_prompt", FALSE, &prompt, error) ||
      !read_text (object, "policy", FALSE, &policy, error) ||
      !read_text (object, "seed", FALSE, &seed, error) ||
      !read_int (object, "budget_bytes", KS_BUNDLE_MAX_INT, &s->budget_bytes, error) ||
      !read_int (object, "kv_budget_bytes", KS_BUNDLE_MAX_INT, &s->kv_budget_bytes, error) ||
      !read_double (object, "temperature", &s->temperature, error) ||
      !read_double (object, "top_p", &s->top_p, error) ||
      !read_double (object, "min_p", &s->min_p, error) ||
      !read_double (object, "repeat_penalty", &s->repeat_penalty, error) ||
      !read_int (object, "top_k", G_MAXINT, &top_k, error) ||
      !read_int (object, "max_tokens", G_MAXINT, &max_tokens, error))
    return FALSE;
  if (seed != NULL && !g_ascii_string_to_signed (seed, 10, 0, G_MAXINT64, &s->seed, NULL))
    return fail (error, "seed is no whole number in its range");
  s->model = g_strdup (model);
  s->system_prompt = g_strdup (prompt);
  s->policy = g_strdup (policy);
  s->top_k = (gint)top_k;
  s->max_tokens = (gint)max_tokens;
  return TRUE;
}

static GBytes *
decode_base64 (const char *text)
{
  gsize n = strlen (text), n_digits = strspn (text, BASE64), n_out = 0;
  guchar *data;

  if (n % 4 != 0 || n - n_digits > 2 || strspn (text + n_digits, "=") != n - n_digits)
    return NULL;
  data = g_base64_decode (text, &n_out);
  return g_bytes_new_take (data, n_out);
}

static gboolean
read_medium (KsBundle *bundle, const cJSON *object, GError **error)
{
  static const char *const keys[] = {"sha256", "base64"};
  const cJSON *data = cJSON_GetObjectItemCaseSensitive (object, "base64");
  const char *hash = NULL;
  g_autofree char *found = NULL;
  GBytes *bytes = NULL;

  if (!check_object (object, "a medium", keys, G_N_ELEMENTS (keys), error) ||
      !read_hash (object, "sha256", TRUE, &hash, error))
    return FALSE;
  if (g_hash_table_contains (bundle->media, hash))
    return fail (error, "a medium comes twice");
  if (cJSON_IsString (data)) {
    bytes = decode_base64 (data->valuestring);
    if (bytes == NULL)
      return fail (error, "a medium is no base64");
    found = g_compute_checksum_for_bytes (G_CHECKSUM_SHA256, bytes);
    if (strcmp (found, hash) != 0) {
      g_bytes_unref (bytes);
      return fail (error, "a medium is not what its hash says");
    }
  } else if (!cJSON_IsNull (data)) {
    return fail (error, "base64 is missing");
  }
  g_hash_table_insert (bundle->media, g_strdup (hash), bytes);
  return TRUE;
}

static gboolean
read_media (KsBundle *bundle, const cJSON *array, GError **error)
{
  const cJSON *item;

  if (!cJSON_IsArray (array))
    return fail (error, "media is missing or no list");
  cJSON_ArrayForEach (item, array)
  {
    if (!read_medium (bundle, item, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
check_medium (KsBundle *bundle, const char *hash, gint64 n_bytes, GHashTable *used, GError **error)
{
  gpointer key, bytes;

  if (!g_hash_table_lookup_extended (bundle->media, hash, &key, &bytes))
    return fail (error, "the medium of an attachment is missing");
  g_hash_table_add (used, key);
  if (bytes != NULL && n_bytes >= 0 && g_bytes_get_size (bytes) != (guint64)n_bytes)
    return fail (error, "the size of an attachment is wrong");
  return TRUE;
}

static gboolean
read_attachment (KsBundle *bundle, KsMessage *message, const cJSON *object, GHashTable *used,
                 GError **error)
{
  static const char *const keys[] = {"kind",        "name",        "sha256",   "n_bytes",
                                     "text_sha256", "n_pages",     "width_px", "height_px",
                                     "reading",     "duration_us", "pinned"};
  const char *name = NULL, *hash = NULL, *text_hash = NULL, *reading = NULL;
  guint kind = 0, n_pages = 0, width_px = 0, height_px = 0;
  gint64 n_bytes = 0, duration_us = 0;
  gboolean pinned = FALSE;
  g_autoptr (KsAttachment) attachment = NULL, read = NULL;

  if (!check_object (object, "an attachment", keys, G_N_ELEMENTS (keys), error) ||
      !read_word (object, "kind", ks_bundle_kinds, KS_BUNDLE_N_KINDS, &kind, error) ||
      !read_text (object, "name", TRUE, &name, error) ||
      !read_hash (object, "sha256", TRUE, &hash, error) ||
      !read_int (object, "n_bytes", KS_BUNDLE_MAX_INT, &n_bytes, error) ||
      !read_hash (object, "text_sha256", FALSE, &text_hash, error) ||
      !read_uint (object, "n_pages", G_MAXINT, &n_pages, error) ||
      !read_uint (object, "width_px", G_MAXINT, &width_px, error) ||
      !read_uint (object, "height_px", G_MAXINT, &height_px, error) ||
      !read_text (object, "reading", FALSE, &reading, error) ||
      !read_int (object, "duration_us", KS_BUNDLE_MAX_INT, &duration_us, error) ||
      !read_pinned (object, &pinned, error) || !check_medium (bundle, hash, n_bytes, used, error) ||
      (text_hash != NULL && !check_medium (bundle, text_hash, -1, used, error)))
    return FALSE;
  attachment = ks_attachment_new ((KsAttachmentKind)kind, name, hash, (guint64)n_bytes, text_hash,
                                  n_pages, width_px, height_px);
  read = ks_attachment_copy_with (attachment, reading, text_hash, duration_us);
  ks_message_add_attachment (message, read);
  if (pinned)
    ks_message_set_pinned (message, hash, TRUE);
  return TRUE;
}

static gboolean
read_attachments (KsBundle *bundle, KsMessage *message, const cJSON *array, GHashTable *used,
                  GError **error)
{
  const cJSON *item;

  if (array == NULL)
    return TRUE;
  if (!cJSON_IsArray (array))
    return fail (error, "attachments is no list");
  cJSON_ArrayForEach (item, array)
  {
    if (!read_attachment (bundle, message, item, used, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_message (KsBundle *bundle, const cJSON *object, GHashTable *used, GError **error)
{
  static const char *const keys[] = {"parent",      "role",  "state",    "text",
                                     "created_us",  "error", "n_tokens", "active_child",
                                     "attachments", "pinned"};
  const guint n = bundle->messages->len;
  const char *text = NULL, *problem = NULL;
  guint parent = 0, role = 0, state = 0, n_tokens = 0, child = 0;
  gint64 created_us = 0;
  gboolean pinned = FALSE;
  KsMessage *message;

  if (!check_object (object, "a message", keys, G_N_ELEMENTS (keys), error) ||
      !read_uint (object, "parent", n, &parent, error) ||
      !read_word (object, "role", ks_bundle_roles, KS_BUNDLE_N_ROLES, &role, error) ||
      !read_word (object, "state", ks_bundle_states, KS_BUNDLE_N_STATES, &state, error) ||
      !read_text (object, "text", TRUE, &text, error) ||
      !read_int (object, "created_us", KS_BUNDLE_MAX_INT, &created_us, error) ||
      !read_text (object, "error", FALSE, &problem, error) ||
      !read_uint (object, "n_tokens", G_MAXINT, &n_tokens, error) ||
      !read_uint (object, "active_child", G_MAXINT, &child, error) ||
      !read_pinned (object, &pinned, error))
    return FALSE;
  if (state == KS_MESSAGE_STREAMING)
    return fail (error, "a message is still being written");
  message = ks_message_new (n + 1, parent, (KsMessageRole)role, text, created_us);
  ks_message_set_state (message, (KsMessageState)state);
  ks_message_set_error (message, problem);
  ks_message_set_n_tokens (message, n_tokens);
  ks_message_set_pinned (message, NULL, pinned);
  g_ptr_array_add (bundle->messages, message);
  g_array_append_val (bundle->active_children, child);
  return read_attachments (bundle, message,
                           cJSON_GetObjectItemCaseSensitive (object, "attachments"), used, error);
}

/* An active child is a child. */
static gboolean
check_children (KsBundle *bundle, GError **error)
{
  for (guint i = 0; i < bundle->messages->len; i++) {
    guint child = g_array_index (bundle->active_children, guint, i);

    if (child == 0)
      continue;
    if (child > bundle->messages->len ||
        ks_message_get_parent_id (g_ptr_array_index (bundle->messages, child - 1)) != (gint64)i + 1)
      return fail (error, "active_child is no child");
  }
  return TRUE;
}

static gboolean
read_messages (KsBundle *bundle, const cJSON *array, GError **error)
{
  g_autoptr (GHashTable) used = g_hash_table_new (g_str_hash, g_str_equal);
  const cJSON *item;

  if (!cJSON_IsArray (array))
    return fail (error, "messages is missing or no list");
  cJSON_ArrayForEach (item, array)
  {
    if (!read_message (bundle, item, used, error))
      return FALSE;
  }
  if (g_hash_table_size (used) != g_hash_table_size (bundle->media))
    return fail (error, "a medium belongs to no attachment");
  return check_children (bundle, error);
}

static gboolean
read_bundle (KsBundle *bundle, const cJSON *root, GError **error)
{
  static const char *const keys[] = {"format",   "version", "title",    "created_us", "updated_us",
                                     "settings", "active",  "messages", "media"};
  const char *format = NULL, *title = NULL;
  gint64 version = 0;

  if (!cJSON_IsObject (root) || !read_text (root, "format", TRUE, &format, error) ||
      strcmp (format, KS_BUNDLE_FORMAT) != 0 ||
      !read_int (root, "version", G_MAXINT, &version, NULL)) {
    g_clear_error (error);
    return fail (error, "it is not an export of Keepsake");
  }
  if (version < 1 || version > KS_BUNDLE_VERSION)
    return fail (error, "its version %" G_GINT64_FORMAT " is over %d: update the program", version,
                 KS_BUNDLE_VERSION);
  if (!check_object (root, "the bundle", keys, G_N_ELEMENTS (keys), error) ||
      !read_text (root, "title", TRUE, &title, error) ||
      !read_int (root, "created_us", KS_BUNDLE_MAX_INT, &bundle->created_us, error) ||
      !read_int (root, "updated_us", KS_BUNDLE_MAX_INT, &bundle->updated_us, error) ||
      !read_settings (bundle, cJSON_GetObjectItemCaseSensitive (root, "settings"), error) ||
      !read_media (bundle, cJSON_GetObjectItemCaseSensitive (root, "media"), error) ||
      !read_messages (bundle, cJSON_GetObjectItemCaseSensitive (root, "messages"), error) ||
      !read_uint (root, "active", bundle->messages->len, &bundle->active, error))
    return FALSE;
  bundle->title = g_strdup (title);
  return TRUE;
}

static void
unref_bytes (gpointer bytes)
{
  if (bytes != NULL)
    g_bytes_unref (bytes);
}

static cJSON *
parse_json (GBytes *bytes, GError **error)
{
  gsize n;
  const char *text = g_bytes_get_data (bytes, &n), *end = NULL;
  cJSON *root;

  if (n > KS_BUNDLE_MAX_BYTES) {
    fail_too_large (error, "512 MiB are the most");
    return NULL;
  }
  if (n == 0 || !g_utf8_validate_len (text, n, NULL)) {
    fail (error, "it is no text");
    return NULL;
  }
  if (!check_outline (text, n, error))
    return NULL;
  root = cJSON_ParseWithLengthOpts (text, n, &end, FALSE);
  while (root != NULL && end < text + n && strchr (" \t\r\n", *end) != NULL)
    end++;
  if (root != NULL && end == text + n)
    return root;
  cJSON_Delete (root);
  fail (error, "it is no JSON");
  return NULL;
}

KsBundle *
ks_bundle_parse (GBytes *bytes, GError **error)
{
  g_autoptr (KsBundle) bundle = NULL;
  cJSON *root;
  gboolean done;

  g_return_val_if_fail (bytes != NULL, NULL);
  root = parse_json (bytes, error);
  if (root == NULL)
    return NULL;
  bundle = g_new0 (KsBundle, 1);
  bundle->settings = ks_session_settings_new ();
  bundle->messages = g_ptr_array_new_with_free_func (g_object_unref);
  bundle->active_children = g_array_new (FALSE, FALSE, sizeof (guint));
  bundle->media = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, unref_bytes);
  done = read_bundle (bundle, root, error);
  cJSON_Delete (root);
  return done ? g_steal_pointer (&bundle) : NULL;
}

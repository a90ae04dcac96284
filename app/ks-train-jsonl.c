/* ks-train-jsonl.c - see ks-train-jsonl.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-train-jsonl.h"

#include "app/ks-error.h"

#include <cjson/cJSON.h>
#include <string.h>

#define PLACE "<image>"

typedef struct {
  const char *folder;
  KsTrainChat *chat;
  const cJSON *images; /* name for the place in the text that comes next, or NULL */
  gboolean is_list;    /* and others behind it */
  GError **error;
} Line;

static gboolean
refuse (Line *line, const char *what)
{
  g_set_error (line->error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT, "%s", what);
  return FALSE;
}

/* Hash and pixels are read when the picture's turn comes. */
static void
add_picture (Line *line, KsTrainMessage *message, const char *name, gsize at)
{
  g_autofree char *path = g_path_is_absolute (name) || line->folder == NULL
                              ? g_strdup (name)
                              : g_build_filename (line->folder, name, NULL);
  KsPicture *picture = ks_picture_new (KS_PICTURE_FILE, path, path, name);

  picture->at = at;
  g_ptr_array_add (message->pictures, picture);
}

static gboolean
parse_role (const char *name, ks_role *out)
{
  static const struct {
    const char *name;
    ks_role role;
  } roles[] = {{"system", KS_ROLE_SYSTEM}, {"user", KS_ROLE_USER},
               {"human", KS_ROLE_USER},    {"assistant", KS_ROLE_ASSISTANT},
               {"gpt", KS_ROLE_ASSISTANT}, {"model", KS_ROLE_ASSISTANT}};

  for (guint i = 0; i < G_N_ELEMENTS (roles); i++)
    if (g_strcmp0 (name, roles[i].name) == 0) {
      *out = roles[i].role;
      return TRUE;
    }
  return FALSE;
}

static const char *
get_string (const cJSON *object, const char *key)
{
  return cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (object, key));
}

/* A list of words and pictures.  Where all parts have the same fields, those that a part does not
 * need are empty. */
static gboolean
read_parts (Line *line, KsTrainMessage *message, const cJSON *parts)
{
  GString *text = g_string_new (NULL);
  const cJSON *part;
  gboolean ok = TRUE;

  cJSON_ArrayForEach (part, parts)
  {
    const char *words = get_string (part, "text"), *image = get_string (part, "image");

    ok = ok && (words != NULL || image != NULL);
    if (words != NULL)
      g_string_append (text, words);
    if (image != NULL && image[0] != '\0')
      add_picture (line, message, image, text->len);
  }
  g_free (message->text);
  message->text = g_string_free (text, FALSE);
  return ok || refuse (line, "a part of a message has neither \"text\" nor \"image\"");
}

static gboolean
take_picture (Line *line, KsTrainMessage *message, gsize at)
{
  const char *name = cJSON_GetStringValue (line->images);

  if (name == NULL || name[0] == '\0')
    return refuse (line, "\"image\" is neither a name nor a list of names");
  add_picture (line, message, name, at);
  line->images = line->is_list ? line->images->next : NULL;
  return TRUE;
}

/* Words with <image> in them, whose files come from the line's list; behind the last file it is a
 * word like others. */
static gboolean
read_places (Line *line, KsTrainMessage *message, const char *words)
{
  GString *text = g_string_new (NULL);
  const char *from = words, *place;
  gboolean ok = TRUE;

  while (line->images != NULL && ok && (place = strstr (from, PLACE)) != NULL) {
    g_string_append_len (text, from, place - from);
    from = place + strlen (PLACE);
    ok = take_picture (line, message, text->len);
  }
  g_string_append (text, from);
  g_free (message->text);
  message->text = g_string_free (text, FALSE);
  return ok;
}

static gboolean
read_message (Line *line, const cJSON *object, const char *role_key, const char *text_key)
{
  const cJSON *content = cJSON_GetObjectItemCaseSensitive (object, text_key);
  KsTrainMessage *message;
  gboolean ok;
  ks_role role;

  if (!parse_role (get_string (object, role_key), &role))
    return refuse (line, "a message has no role that is known: system, user or assistant");
  message = ks_train_chat_take (line->chat, role, g_strdup (""));
  if (cJSON_IsArray (content))
    ok = read_parts (line, message, content);
  else if (cJSON_IsString (content))
    ok = read_places (line, message, content->valuestring);
  else
    return refuse (line, "a message has no text");
  if (ok && role != KS_ROLE_USER && message->pictures->len > 0)
    return refuse (line, "a picture stands in a message that is not the user's");
  return ok;
}

/* "image", or "images" as other trainers call it; null stands for none. */
static void
find_images (Line *line, const cJSON *root)
{
  const cJSON *images = cJSON_GetObjectItemCaseSensitive (root, "image");

  if (images == NULL || cJSON_IsNull (images))
    images = cJSON_GetObjectItemCaseSensitive (root, "images");
  line->is_list = cJSON_IsArray (images);
  line->images = line->is_list ? images->child : cJSON_IsNull (images) ? NULL : images;
}

static gboolean
read_chat (Line *line, const cJSON *root)
{
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (root, "messages"), *message;
  gboolean is_openai = cJSON_IsArray (list);

  if (!is_openai)
    list = cJSON_GetObjectItemCaseSensitive (root, "conversations");
  if (!cJSON_IsArray (list))
    return refuse (line, "there is no \"messages\", \"conversations\" or \"text\" in it");
  find_images (line, root);
  cJSON_ArrayForEach (message, list)
  {
    if (!read_message (line, message, is_openai ? "role" : "from", is_openai ? "content" : "value"))
      return FALSE;
  }
  if (line->images != NULL)
    return refuse (line, "it names a picture that stands nowhere: " PLACE " marks the places");
  return line->chat->messages->len > 0 || refuse (line, "the conversation is empty");
}

/* NUL written as an escape ends a text early for who reads it. */
static gboolean
has_nul (const char *line, gsize n)
{
  static const char nul[] = "\\u0000";
  const gsize n_nul = strlen (nul);

  for (gsize i = 0; i + n_nul <= n; i++) {
    if (line[i] != '\\')
      continue;
    if (memcmp (line + i, nul, n_nul) == 0)
      return TRUE;
    i++; /* what is escaped is no backslash that escapes */
  }
  return FALSE;
}

/* The line's object with nothing but space behind it. */
static cJSON *
parse_object (Line *line, const char *text, gsize n)
{
  const char *end = NULL;
  cJSON *root = NULL;

  if (!g_utf8_validate (text, (gssize)n, NULL)) {
    refuse (line, "it is no UTF-8 text");
    return NULL;
  }
  if (has_nul (text, n)) {
    refuse (line, "it holds the character \\u0000, which no text has");
    return NULL;
  }
  root = cJSON_ParseWithLengthOpts (text, n, &end, FALSE);
  while (root != NULL && end < text + n && g_ascii_isspace (*end))
    end++;
  if (cJSON_IsObject (root) && end == text + n)
    return root;
  cJSON_Delete (root);
  refuse (line, "it is no JSON object");
  return NULL;
}

KsTrainChat *
ks_train_jsonl_parse (const char *line, gsize n, const char *folder, char **out_text,
                      GError **error)
{
  Line state = {.folder = folder, .error = error};
  cJSON *root = parse_object (&state, line, n);
  const char *text;
  gboolean ok;

  *out_text = NULL;
  if (root == NULL)
    return NULL;
  text = get_string (root, "text");
  if (text != NULL) {
    *out_text = g_strdup (text);
    cJSON_Delete (root);
    return NULL;
  }
  state.chat = ks_train_chat_new ();
  ok = read_chat (&state, root);
  cJSON_Delete (root);
  if (ok)
    return state.chat;
  ks_train_chat_free (state.chat);
  return NULL;
}

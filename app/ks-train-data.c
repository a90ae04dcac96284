/* ks-train-data.c - see ks-train-data.h.
 * Items are chosen in proportion to their bytes.  A text gives a stretch that begins at a paragraph
 * and fills what is left of the sequence, on its own or as a message of a user; a conversation is
 * taken from its start.  Further documents follow until the sequence is nearly full. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-train-data.h"

#include "app/ks-error.h"
#include "app/ks-recall-maker.h"
#include "app/ks-train-jsonl.h"
#include "engine/reader.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#define MIN_DOC_TOK                                                                                \
  48u                    /* what is left at the end of a sequence is not worth a document below it \
                          */
#define BYTES_PER_TOK 8u /* that are tokenized for each token wanted: more than are needed */
#define MAX_LINE ((gsize)16 << 20)
#define ASKED_PART 0.3 /* of stretches of text stand in a user's message */
#define WORDS_PER_TOK 0.62
#define TOK_PER_QUESTION 44u
#define MAX_TRIES 12u

typedef enum { ITEM_TEXT, ITEM_LINE, ITEM_CHAT } ItemKind;

typedef struct {
  ItemKind kind;
  const char *begin; /* in a mapped file */
  gsize n;
  const char *folder; /* of a line's file, owned by the data */
  KsTrainChat *chat;  /* owned */
  guint64 end;        /* bytes of all items up to this one */
} Item;

struct _KsTrainData {
  KsTrainDataParams params;
  GArray *items;
  ks_alloc *alloc;
  GPtrArray *files;   /* of ks_map */
  GPtrArray *strings; /* folders */
  GArray *texts;      /* of guint: items that are texts */
  GChecksum *mark;
};

static void
clear_item (gpointer data)
{
  ks_train_chat_free (((Item *)data)->chat);
}

KsTrainData *
ks_train_data_new (const KsTrainDataParams *params)
{
  KsTrainData *data = g_new0 (KsTrainData, 1);

  data->params = *params;
  data->items = g_array_new (FALSE, TRUE, sizeof (Item));
  g_array_set_clear_func (data->items, clear_item);
  data->alloc = ks_alloc_new ();
  data->files = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_map_close);
  data->strings = g_ptr_array_new_with_free_func (g_free);
  data->texts = g_array_new (FALSE, FALSE, sizeof (guint));
  data->mark = g_checksum_new (G_CHECKSUM_SHA256);
  return data;
}

void
ks_train_data_free (KsTrainData *data)
{
  if (data == NULL)
    return;
  g_array_unref (data->items);
  g_ptr_array_unref (data->files);
  ks_alloc_free (data->alloc);
  g_ptr_array_unref (data->strings);
  g_array_unref (data->texts);
  g_checksum_free (data->mark);
  g_free (data);
}

/* ---- sources ---- */

static void
add_item (KsTrainData *data, Item item)
{
  guint index = data->items->len;

  item.end = ks_train_data_get_n_bytes (data) + MAX (item.n, 1);
  g_array_append_val (data->items, item);
  if (item.kind == ITEM_TEXT)
    g_array_append_val (data->texts, index);
}

void
ks_train_data_take_chat (KsTrainData *data, KsTrainChat *take_chat)
{
  Item item = {.kind = ITEM_CHAT, .chat = take_chat};

  for (guint i = 0; i < take_chat->messages->len; i++) {
    const KsTrainMessage *message = g_ptr_array_index (take_chat->messages, i);

    item.n += strlen (message->text);
    g_checksum_update (data->mark, (const guchar *)message->text,
                       (gssize)strlen (message->text) + 1);
  }
  add_item (data, item);
}

static gboolean
refuse_line (const char *path, guint number, GError **error)
{
  g_autofree char *name = g_filename_display_name (path);

  g_prefix_error (error, "%s, line %u: ", name, number);
  return FALSE;
}

/* Their files are there; what is in them is seen when their turn comes. */
static gboolean
check_pictures (const KsTrainChat *chat, GError **error)
{
  for (guint i = 0; i < chat->messages->len; i++) {
    const KsTrainMessage *message = g_ptr_array_index (chat->messages, i);

    for (guint k = 0; k < message->pictures->len; k++) {
      const KsPicture *picture = g_ptr_array_index (message->pictures, k);

      if (g_file_test (picture->path, G_FILE_TEST_IS_REGULAR))
        continue;
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "there is no picture %s",
                   picture->name);
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean
is_blank (const char *text, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (!g_ascii_isspace (text[i]))
      return FALSE;
  return TRUE;
}

/* Every line is looked at once, so that a mistake is told now and not after an hour. */
static gboolean
add_lines (KsTrainData *data, const char *path, const char *text, gsize n, GError **error)
{
  char *folder = g_path_get_dirname (path);
  guint number = 0;

  g_ptr_array_add (data->strings, folder);
  for (const char *at = text, *stop = text + n; at < stop;) {
    const char *end = memchr (at, '\n', (gsize)(stop - at));
    Item item = {.kind = ITEM_LINE, .begin = at, .folder = folder};
    g_autoptr (KsTrainChat) chat = NULL;
    g_autofree char *words = NULL;

    item.n = (gsize)((end != NULL ? end : stop) - at);
    at = end != NULL ? end + 1 : stop;
    number++;
    if (is_blank (item.begin, item.n))
      continue;
    if (item.n > MAX_LINE) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_TOO_LARGE, "it is longer than 16 MiB");
      return refuse_line (path, number, error);
    }
    chat = ks_train_jsonl_parse (item.begin, item.n, folder, &words, error);
    if ((chat == NULL && words == NULL) || (chat != NULL && !check_pictures (chat, error)))
      return refuse_line (path, number, error);
    add_item (data, item);
  }
  return TRUE;
}

/* *out_text stays NULL for a file without a byte. */
static gboolean
map_file (KsTrainData *data, const char *path, const char **out_text, gsize *out_n, GError **error)
{
  ks_error err = {0};
  ks_map *map = NULL;
  GStatBuf info;

  if (g_stat (path, &info) == 0 && S_ISREG (info.st_mode) && info.st_size == 0)
    return TRUE;
  if (data->alloc == NULL)
    return ks_error_check (KS_ERR_NOMEM, NULL, error);
  if (!ks_error_check (ks_map_open (data->alloc, path, &map, &err), &err, error))
    return FALSE;
  g_ptr_array_add (data->files, map);
  *out_text = (const char *)ks_map_get_data (map);
  *out_n = ks_map_get_size (map);
  return TRUE;
}

static gboolean
add_file (KsTrainData *data, const char *path, GError **error)
{
  g_autofree char *base = g_path_get_basename (path), *facts = NULL;
  const char *text = NULL;
  gsize n = 0;

  if (!map_file (data, path, &text, &n, error))
    return FALSE;
  facts = g_strdup_printf ("%s %" G_GSIZE_FORMAT "\n", base, n);
  g_checksum_update (data->mark, (const guchar *)facts, -1);
  if (text == NULL)
    return TRUE;
  if (n >= 3 && memcmp (text, "\xef\xbb\xbf", 3) == 0) { /* which some editors put in front */
    text += 3;
    n -= 3;
  }
  if (g_str_has_suffix (path, ".jsonl"))
    return add_lines (data, path, text, n, error);
  if (memchr (text, '\0', MIN (n, 4096)) != NULL) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT,
                 "%s holds no text: give plain text, or conversations as .jsonl", base);
    return FALSE;
  }
  add_item (data, (Item){.kind = ITEM_TEXT, .begin = text, .n = n});
  return TRUE;
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Links are not followed: a folder that holds itself would never end. */
static gboolean
add_folder (KsTrainData *data, const char *path, GError **error)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, error);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  const char *name;

  if (dir == NULL)
    return FALSE;
  while ((name = g_dir_read_name (dir)) != NULL)
    if (name[0] != '.')
      g_ptr_array_add (names, g_strdup (name));
  g_ptr_array_sort (names, compare_names);
  for (guint i = 0; i < names->len; i++) {
    g_autofree char *full = g_build_filename (path, g_ptr_array_index (names, i), NULL);
    gboolean ok = TRUE;

    if (g_file_test (full, G_FILE_TEST_IS_SYMLINK))
      continue;
    if (g_file_test (full, G_FILE_TEST_IS_DIR))
      ok = add_folder (data, full, error);
    else if (g_str_has_suffix (full, ".txt") || g_str_has_suffix (full, ".md") ||
             g_str_has_suffix (full, ".jsonl"))
      ok = add_file (data, full, error);
    if (!ok)
      return FALSE;
  }
  return TRUE;
}

gboolean
ks_train_data_add_path (KsTrainData *data, const char *path, GError **error)
{
  return g_file_test (path, G_FILE_TEST_IS_DIR) ? add_folder (data, path, error)
                                                : add_file (data, path, error);
}

guint
ks_train_data_get_n_items (const KsTrainData *data)
{
  return data->items->len;
}

guint64
ks_train_data_get_n_bytes (const KsTrainData *data)
{
  return data->items->len > 0 ? g_array_index (data->items, Item, data->items->len - 1).end : 0;
}

char *
ks_train_data_make_mark (const KsTrainData *data)
{
  const KsTrainDataParams *p = &data->params;
  g_autoptr (GChecksum) mark = g_checksum_copy (data->mark);
  char shares[3][G_ASCII_DTOSTR_BUF_SIZE];
  g_autofree char *facts =
      g_strdup_printf ("%" G_GUINT64_FORMAT " %u %u %s %s", p->seed, p->min_tok, p->max_tok,
                       g_ascii_dtostr (shares[0], sizeof shares[0], p->recall_share),
                       g_ascii_dtostr (shares[1], sizeof shares[1], p->value_share));

  g_checksum_update (mark, (const guchar *)facts, -1);
  return g_strdup (g_checksum_get_string (mark));
}

/* ---- stretches of text ---- */

/* Where a paragraph begins behind at, at the latest after 2,000 bytes; else at, moved to the
 * beginning of a character. */
static const char *
find_paragraph (const char *text, gsize n, gsize at)
{
  gsize limit = MIN (n, at + 2000);

  if (at == 0)
    return text;
  for (gsize i = at; i + 2 < limit; i++)
    if (text[i] == '\n' && text[i + 1] == '\n' && text[i + 2] != '\n')
      return text + i + 2;
  while (at < n && ((guchar)text[at] & 0xc0) == 0x80)
    at++;
  return text + at;
}

/* A place that leaves at least n_wanted bytes behind it where the text is long enough. */
static const char *
pick_place (KsTrainRandom *random, const char *text, gsize n, gsize n_wanted)
{
  gsize n_free = n > n_wanted ? n - n_wanted : 0;

  return find_paragraph (text, n, (gsize)ks_train_random_pick64 (random, n_free + 1));
}

/* n bytes without half a character at the end, as valid UTF-8. (transfer full) */
static char *
copy_text (const char *begin, gsize n)
{
  while (n > 0 && n < G_MAXSSIZE && ((guchar)begin[n - 1] & 0xc0) == 0x80)
    n--;
  if (n > 0 && ((guchar)begin[n - 1] & 0x80) != 0)
    n--;
  return g_utf8_make_valid (begin, (gssize)n);
}

/* A KsRecallParagraph over the texts. */
static char *
get_paragraph (gpointer user, KsTrainRandom *random, guint n_word)
{
  KsTrainData *data = user;
  guint which = ks_train_random_pick (random, data->texts->len);
  const Item *item = &g_array_index (data->items, Item, g_array_index (data->texts, guint, which));
  gsize n_wanted = (gsize)n_word * 6, n;
  const char *begin = pick_place (random, item->begin, item->n, n_wanted), *end;
  g_autofree char *text = NULL;
  char *gap;

  n = MIN (n_wanted, item->n - (gsize)(begin - item->begin));
  text = copy_text (begin, n);
  gap = strstr (text, "\n\n");
  if (gap != NULL && gap > text + 40)
    *gap = '\0';
  end = strrchr (text, ' ');
  if (gap == NULL && end != NULL)
    text[end - text] = '\0';
  g_strstrip (text);
  return text[0] != '\0' ? g_steal_pointer (&text) : NULL;
}

static const Item *
pick_item (const KsTrainData *data, KsTrainRandom *random)
{
  guint64 at = ks_train_random_pick64 (random, ks_train_data_get_n_bytes (data));
  guint low = 0, high = data->items->len - 1;

  while (low < high) {
    guint middle = low + (high - low) / 2;

    if (g_array_index (data->items, Item, middle).end > at)
      high = middle;
    else
      low = middle + 1;
  }
  return &g_array_index (data->items, Item, low);
}

/* ---- sequences ---- */

typedef struct {
  KsTrainData *data;
  const KsTrainEncoder *encoder;
  KsTrainRandom random;
  guint n_tok; /* wanted */
  KsTrainSequence *sequence;
} Making;

static gboolean
add_stretch (Making *m, const char *text, gsize n, guint room, GError **error)
{
  gsize n_wanted = (gsize)room * BYTES_PER_TOK;
  const char *begin = pick_place (&m->random, text, n, n_wanted);
  g_autofree char *part = copy_text (begin, MIN (n_wanted, n - (gsize)(begin - text)));
  gboolean is_asked = ks_train_random_chance (&m->random, ASKED_PART);
  g_autoptr (KsTrainChat) chat = NULL;

  /* What a user wrote may count nothing; text always counts. */
  if (!is_asked || m->encoder->prompt_weight <= 0)
    return ks_train_encode_text (m->encoder, part, strlen (part), room, m->sequence, error);
  chat = ks_train_chat_new ();
  ks_train_chat_take (chat, KS_ROLE_USER, g_steal_pointer (&part));
  return ks_train_encode_chat (m->encoder, chat, room, m->sequence, error);
}

static gboolean
add_line (Making *m, const Item *item, guint room, GError **error)
{
  g_autofree char *text = NULL;
  g_autoptr (KsTrainChat) chat =
      ks_train_jsonl_parse (item->begin, item->n, item->folder, &text, error);

  if (chat != NULL)
    return ks_train_encode_chat (m->encoder, chat, room, m->sequence, error);
  return text != NULL && (text[0] == '\0' || add_stretch (m, text, strlen (text), room, error));
}

static gboolean
add_from_items (Making *m, GError **error)
{
  for (guint i = 0; i < MAX_TRIES; i++) {
    guint n_before = m->sequence->ids->len, room = m->n_tok - n_before;
    const Item *item;
    gboolean ok;

    if (n_before > 0 && room < MIN_DOC_TOK)
      break;
    item = pick_item (m->data, &m->random);
    if (item->kind == ITEM_TEXT)
      ok = add_stretch (m, item->begin, item->n, room, error);
    else if (item->kind == ITEM_LINE)
      ok = add_line (m, item, room, error);
    else
      ok = ks_train_encode_chat (m->encoder, item->chat, room, m->sequence, error);
    if (!ok)
      return FALSE;
  }
  return TRUE;
}

/* Made again with fewer words until all of it fits: the questions stand at its end. */
static gboolean
add_recall (Making *m, GError **error)
{
  double n_word = m->n_tok;

  for (guint i = 0; i < MAX_TRIES; i++) {
    g_autoptr (KsTrainChat) chat = NULL;
    KsTrainRandom random = m->random;
    KsRecallParams params = ks_recall_params_draw (&random, (guint)n_word);
    double n_free = (double)m->n_tok - params.n_question * TOK_PER_QUESTION;

    params.n_word = (guint)(MAX (n_free, 0) * n_word / m->n_tok * WORDS_PER_TOK);
    params.n_fact = MAX (MIN (params.n_fact, 3 + params.n_word / 25), params.n_question);
    if (m->data->texts->len > 0) {
      params.paragraph = get_paragraph;
      params.user = m->data;
    }
    chat = ks_recall_make (&random, &params);
    if (!ks_train_encode_chat (m->encoder, chat, G_MAXUINT / 2, m->sequence, error))
      return FALSE;
    if (m->sequence->ids->len <= m->n_tok || i + 1 == MAX_TRIES)
      break;
    ks_train_sequence_cut (m->sequence, 0);
    n_word *= 0.85;
  }
  ks_train_sequence_cut (m->sequence, m->n_tok);
  return TRUE;
}

static guint
draw_length (const KsTrainDataParams *params, KsTrainRandom *random)
{
  guint n_length = 1;

  while (n_length < 31 && params->max_tok >> n_length >= MAX (params->min_tok, 1))
    n_length++;
  return params->max_tok >> ks_train_random_pick (random, n_length);
}

/* A document's first token is foretold by nothing. */
static gboolean
has_weight (const KsTrainSequence *sequence)
{
  const float *weights = (const float *)(const void *)sequence->weights->data;
  guint start = 0;

  for (guint i = 0; i < sequence->weights->len; i++) {
    if (start < sequence->starts->len && g_array_index (sequence->starts, guint32, start) == i)
      start++;
    else if (weights[i] > 0)
      return TRUE;
  }
  return FALSE;
}

/* What was read of a file that became shorter meanwhile is zeros, whatever came of it. */
static gboolean
check_files (const KsTrainData *data, GError **error)
{
  for (guint i = 0; i < data->files->len; i++) {
    const ks_map *map = g_ptr_array_index (data->files, i);
    g_autofree char *name = NULL;

    if (!ks_map_is_lost (map))
      continue;
    name = g_filename_display_name (ks_map_get_path (map));
    g_clear_error (error);
    g_set_error (error, KS_ENGINE_ERROR, KS_ERR_IO,
                 "%s became shorter or went away while it was read: put it back and go on from the "
                 "checkpoint",
                 name);
    return FALSE;
  }
  return TRUE;
}

static gboolean
check_sources (const KsTrainData *data, gboolean invented, GError **error)
{
  if (invented || data->items->len > 0)
    return TRUE;
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                       "there is no text to train on: name files or folders with --data");
  return FALSE;
}

KsTrainSequence *
ks_train_data_make (KsTrainData *data, const KsTrainEncoder *encoder, guint64 index, GError **error)
{
  g_autoptr (KsTrainSequence) sequence = ks_train_sequence_new ();
  Making m = {.data = data,
              .encoder = encoder,
              .random = ks_train_random_init (data->params.seed, index),
              .sequence = sequence};
  gboolean invented;

  m.n_tok = draw_length (&data->params, &m.random);
  invented = ks_train_random_chance (&m.random, data->params.recall_share);
  if (!check_sources (data, invented, error))
    return NULL;
  for (guint i = 0; i < MAX_TRIES; i++) {
    const gboolean ok = invented ? add_recall (&m, error) : add_from_items (&m, error);

    if (!check_files (data, error) || !ok)
      return NULL;
    if (has_weight (sequence)) {
      ks_train_sequence_weigh_values (sequence, data->params.value_share);
      return g_steal_pointer (&sequence);
    }
    ks_train_sequence_cut (sequence, 0);
  }
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT,
                       "the files that were named hold no text or answer to train on");
  return NULL;
}

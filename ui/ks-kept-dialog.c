/* ks-kept-dialog.c - see ks-kept-dialog.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-kept-dialog.h"

#include "app/ks-reading.h"
#include "ui/ks-compat.h"
#include "ui/ks-error-text.h"
#include "ui/ks-picture-list.h"
#include "ui/ks-picture-map.h"
#include "ui/ks-texture.h"

#include <glib/gi18n.h>

#define PICTURE_SIDE_PX 1024
#define FRAME_SIDE_PX 512 /* all frames of a video are decoded for one */
#define WIDTH_PX 480
#define HEIGHT_PX 560

/* Calls that run: the dialog may be gone when they end. */
typedef struct {
  GWeakRef map;
  GCancellable *cancellable; /* of the dialog */
  int frame;                 /* that is wanted of a video; -1 = none */
} Asking;

static Asking *
asking_new (GtkWidget *map, GCancellable *cancellable)
{
  Asking *asking = g_new0 (Asking, 1);

  g_weak_ref_init (&asking->map, map);
  asking->cancellable = g_object_ref (cancellable);
  asking->frame = -1;
  return asking;
}

static void
asking_free (Asking *asking)
{
  g_weak_ref_clear (&asking->map);
  g_object_unref (asking->cancellable);
  g_free (asking);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Asking, asking_free)

/* (transfer full) The map, unless its dialog was closed. */
static KsPictureMap *
ref_map (Asking *asking)
{
  return g_cancellable_is_cancelled (asking->cancellable) ? NULL : g_weak_ref_get (&asking->map);
}

static KsPatchGrid *
make_grid (const KsPictureTrace *trace, guint n_row, guint n_col, const GArray *entries)
{
  KsPatchGrid *grid = ks_patch_grid_new (trace->n_layer, trace->n_kv_head, n_row, n_col);

  if (grid == NULL)
    return NULL;
  ks_patch_grid_set_area (grid, &GRAPHENE_RECT_INIT ((float)trace->x, (float)trace->y,
                                                     (float)trace->width, (float)trace->height));
  for (guint i = 0; i < entries->len; i++) {
    const KsTraceEntry *entry = &g_array_index (entries, KsTraceEntry, i);

    ks_patch_grid_add (grid, entry->layer, entry->head, entry->row, entry->col);
  }
  return grid;
}

static void
traced_cb (GObject *chat, GAsyncResult *result, gpointer data)
{
  g_autoptr (Asking) asking = data;
  g_autoptr (KsPictureMap) map = ref_map (asking);
  g_autoptr (GError) error = NULL;
  g_autoptr (KsPictureTrace) trace = ks_chat_trace_picture_finish (KS_CHAT (chat), result, &error);
  g_autoptr (KsPatchGrid) detail = NULL, overview = NULL;

  if (map == NULL)
    return;
  if (trace == NULL) {
    g_autofree char *sentence = ks_error_text_dup (error);

    ks_picture_map_set_problem (map, sentence);
    return;
  }
  detail = make_grid (trace, trace->n_row, trace->n_col, trace->entries);
  overview = make_grid (trace, trace->overview_rows, trace->overview_cols, trace->overview);
  ks_picture_map_set_grids (map, detail, overview);
  ks_picture_map_set_n_token (map, trace->n_token);
  ks_announce (GTK_WIDGET (map), ks_picture_map_get_finding (map));
}

static void
rendered_cb (GObject *library, GAsyncResult *result, gpointer data)
{
  g_autoptr (Asking) asking = data;
  g_autoptr (KsPictureMap) map = ref_map (asking);
  g_autoptr (KsPixels) pixels = ks_library_render_finish (KS_LIBRARY (library), result, NULL);
  g_autoptr (GdkTexture) texture = ks_texture_new (pixels);

  if (map != NULL && texture != NULL) /* the grid alone says as much, without a picture below */
    ks_picture_map_set_texture (map, texture);
}

static void
framed_cb (GObject *library, GAsyncResult *result, gpointer data)
{
  g_autoptr (Asking) asking = data;
  g_autoptr (KsPictureMap) map = ref_map (asking);
  g_autoptr (KsVideoFrames) frames =
      ks_library_load_frames_finish (KS_LIBRARY (library), result, NULL);

  if (map != NULL && frames != NULL && (guint)asking->frame < frames->frames->len) {
    KsVideoFrame *frame = g_ptr_array_index (frames->frames, asking->frame);
    g_autoptr (GdkTexture) texture = ks_texture_new (frame->pixels);

    ks_picture_map_set_texture (map, texture);
  }
}

/* The picture below the map: of a video the frame, as it was sampled for the model. */
static void
ask_for_picture (GtkWidget *map, KsLibrary *library, KsAttachment *attachment,
                 const KsMemoryPicture *picture, GCancellable *cancellable)
{
  g_autoptr (KsReading) reading = ks_reading_parse (ks_attachment_get_reading (attachment));
  Asking *asking = asking_new (map, cancellable);

  if (picture->frame >= 0 && reading->has_frames) {
    asking->frame = picture->frame;
    ks_library_load_frames_async (library, attachment, &reading->sampling, FRAME_SIDE_PX,
                                  cancellable, framed_cb, asking);
  } else
    ks_library_render_async (library, attachment, (guint)MAX (picture->page, 0), PICTURE_SIDE_PX,
                             NULL, cancellable, rendered_cb, asking);
}

/* The file that the picture is of, in any message of the chat. (transfer full) */
static KsAttachment *
find_attachment (KsChat *chat, const char *hash)
{
  GListModel *messages = ks_chat_get_messages (chat);

  for (guint i = 0; i < g_list_model_get_n_items (messages); i++) {
    g_autoptr (KsMessage) message = g_list_model_get_item (messages, i);
    GListModel *attachments = ks_message_get_attachments (message);

    for (guint k = 0; k < g_list_model_get_n_items (attachments); k++) {
      g_autoptr (KsAttachment) attachment = g_list_model_get_item (attachments, k);

      if (g_strcmp0 (ks_attachment_get_hash (attachment), hash) == 0)
        return g_steal_pointer (&attachment);
    }
  }
  return NULL;
}

GtkWidget *
ks_kept_dialog_present (GtkWidget *parent, KsLibrary *library, KsChat *chat,
                        const KsMemoryPicture *picture)
{
  g_autofree char *name = ks_picture_list_dup_name (picture);
  GtkWidget *map = ks_picture_map_new (name);
  GtkWidget *dialog =
      ks_dialog_new (name, ks_page_new (adw_header_bar_new (), map, NULL), WIDTH_PX, HEIGHT_PX);
  g_autoptr (KsAttachment) attachment = find_attachment (chat, picture->hash);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  g_signal_connect_object (map, "unrealize", G_CALLBACK (g_cancellable_cancel), cancellable,
                           G_CONNECT_SWAPPED);
  g_object_set_data_full (G_OBJECT (map), "ks-cancellable", g_object_ref (cancellable),
                          g_object_unref);
  ks_picture_map_set_problem (KS_PICTURE_MAP (map), _ ("Reading what is kept…"));
  ks_dialog_present (dialog, parent);
  ks_chat_trace_picture_async (chat, picture->turn, picture->number, cancellable, traced_cb,
                               asking_new (map, cancellable));
  if (attachment != NULL)
    ask_for_picture (map, library, attachment, picture, cancellable);
  return dialog;
}

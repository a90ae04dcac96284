/* ks-image-viewer.c - see ks-image-viewer.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-image-viewer.h"

#include "app/ks-error.h"
#include "ui/ks-compat.h"
#include "ui/ks-error-text.h"
#include "ui/ks-memory-words.h"
#include "ui/ks-page-cache.h"
#include "ui/ks-resource.h"
#include "ui/ks-texture.h"

#include <glib/gi18n.h>
#include <math.h>

#define SIDE_STEP_PX 512 /* sizes that are asked for, so that small changes ask for nothing */
#define MAX_SIDE_PX 4096
#define PAGE_PX 1123 /* longer side of a page at full size: A4 at 96 dots an inch */
#define MIN_ZOOM 0.1
#define MAX_ZOOM 8.0
#define ZOOM_STEP 1.25
#define RENDER_DELAY_MS 150 /* while the window is being resized */

typedef struct {
  KsImageViewer *viewer; /* strong */
  GCancellable *cancellable;
  guint page, side_px;
} Request;

struct _KsImageViewer {
  AdwBin parent_instance;

  GtkStack *stack;
  GtkScrolledWindow *scroller;
  GtkPicture *picture;
  GtkSpinner *spinner;
  AdwStatusPage *error;
  GtkWidget *retry_button;
  AdwStatusPage *lock;
  GtkEditable *password;
  GtkWidget *unlock_button;
  GtkWidget *bar;
  GtkWidget *page_bar;
  GtkEditable *page_entry;
  GtkLabel *page_count;
  GtkButton *zoom_button;
  AdwHeaderBar *header;

  KsLibrary *library;
  KsAttachment *attachment;
  char *key; /* password that opened it, or NULL */
  guint page, n_page;
  double zoom; /* 0 = fit */
  KsPageCache cache;
  const KsPageCacheEntry *shown; /* in cache, of this page; NULL = none */
  GCancellable *cancellable;
  guint asked_side_px; /* of the request that runs, 0 = none */
  guint render_source;
  double centre[2]; /* what a change of size keeps in the middle, horizontal and vertical */
  gboolean keeps_centre[2];
};

G_DEFINE_FINAL_TYPE (KsImageViewer, ks_image_viewer, ADW_TYPE_BIN)

enum { PAGE_CHANGED, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
request_free (Request *request)
{
  g_object_unref (request->viewer);
  g_object_unref (request->cancellable);
  g_free (request);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Request, request_free)

/* --- sizes --- */

static gboolean
is_image (KsImageViewer *self)
{
  KsAttachmentKind kind = ks_attachment_get_kind (self->attachment);

  return kind == KS_ATTACHMENT_IMAGE || kind == KS_ATTACHMENT_VIDEO; /* its first frame */
}

/* What is read as words has no pages here. */
static gboolean
is_text (KsAttachment *attachment)
{
  KsAttachmentKind kind = ks_attachment_get_kind (attachment);

  return kind == KS_ATTACHMENT_TEXT || kind == KS_ATTACHMENT_DOCUMENT;
}

/* Longer side at full size. */
static double
get_full_side (KsImageViewer *self)
{
  guint side = MAX (ks_attachment_get_width_px (self->attachment),
                    ks_attachment_get_height_px (self->attachment));

  return is_image (self) && side > 0 ? side : PAGE_PX;
}

static void
get_room (KsImageViewer *self, double *out_width, double *out_height)
{
  *out_width = gtk_widget_get_width (GTK_WIDGET (self->scroller));
  *out_height = gtk_widget_get_height (GTK_WIDGET (self->scroller));
}

/* What the page is shown at, also when it is fitted in; 1 before there is anything to measure. */
static double
get_effective_zoom (KsImageViewer *self)
{
  double width = 0, height = 0, room_width = 0, room_height = 0, zoom = 0;

  if (self->zoom > 0 || self->shown == NULL)
    return self->zoom > 0 ? self->zoom : 1;
  width = gdk_texture_get_width (self->shown->texture);
  height = gdk_texture_get_height (self->shown->texture);
  get_room (self, &room_width, &room_height);
  zoom =
      MIN (room_width / width, room_height / height) * MAX (width, height) / get_full_side (self);
  if (is_image (self))
    zoom = MIN (zoom, 1); /* small pictures are not blown up */
  return zoom > 0 ? zoom : 1;
}

/* Longer side to ask for. */
static guint
get_wanted_side (KsImageViewer *self)
{
  double side = 0, other = 0;

  if (self->zoom > 0)
    side = get_full_side (self) * self->zoom;
  else {
    get_room (self, &side, &other);
    side = MAX (side, other);
  }
  side *= gtk_widget_get_scale_factor (GTK_WIDGET (self));
  if (is_image (self))
    side = MIN (side, get_full_side (self));
  side = ceil (side / SIDE_STEP_PX) * SIDE_STEP_PX;
  return (guint)CLAMP (side, SIDE_STEP_PX, MAX_SIDE_PX);
}

/* --- showing --- */

static void
update_zoom (KsImageViewer *self)
{
  double zoom = get_effective_zoom (self);
  /* Translators: how large a picture is shown, "125%". */
  g_autofree char *label = g_strdup_printf (_ ("%.0f%%"), zoom * 100);
  gboolean is_shown = self->shown != NULL;

  gtk_button_set_label (self->zoom_button, label);
  gtk_widget_action_set_enabled (GTK_WIDGET (self), "viewer.zoom-in", is_shown && zoom < MAX_ZOOM);
  gtk_widget_action_set_enabled (GTK_WIDGET (self), "viewer.zoom-out", is_shown && zoom > MIN_ZOOM);
  gtk_widget_action_set_enabled (GTK_WIDGET (self), "viewer.zoom-full", is_shown);
  gtk_widget_action_set_enabled (GTK_WIDGET (self), "viewer.zoom-fit", is_shown && self->zoom > 0);
}

static void
update_layout (KsImageViewer *self)
{
  int width = -1, height = -1;

  if (self->zoom > 0 && self->shown != NULL) {
    double texture_width = gdk_texture_get_width (self->shown->texture);
    double texture_height = gdk_texture_get_height (self->shown->texture);
    double scale = get_full_side (self) * self->zoom / MAX (texture_width, texture_height);

    width = MAX (1, (int)(texture_width * scale));
    height = MAX (1, (int)(texture_height * scale));
  }
  gtk_widget_set_size_request (GTK_WIDGET (self->picture), width, height);
  gtk_widget_set_halign (GTK_WIDGET (self->picture),
                         self->zoom > 0 ? GTK_ALIGN_CENTER : GTK_ALIGN_FILL);
  gtk_widget_set_valign (GTK_WIDGET (self->picture),
                         self->zoom > 0 ? GTK_ALIGN_CENTER : GTK_ALIGN_FILL);
  gtk_picture_set_content_fit (self->picture, self->zoom == 0 && is_image (self)
                                                  ? GTK_CONTENT_FIT_SCALE_DOWN
                                                  : GTK_CONTENT_FIT_CONTAIN);
  update_zoom (self);
}

static char *
dup_description (KsImageViewer *self)
{
  const char *name = ks_attachment_get_name (self->attachment);

  if (self->n_page <= 1)
    return g_strdup (name);
  /* Translators: a file's name, then its page: "report.pdf, page 3 of 12". */
  return g_strdup_printf (_ ("%s, page %u of %u"), name, self->page + 1, self->n_page);
}

static void
update_page (KsImageViewer *self)
{
  g_autofree char *number = g_strdup_printf ("%u", self->page + 1);
  g_autofree char *pages = ks_words_count (self->n_page);
  g_autofree char *count = g_strdup_printf (_ ("of %s"), pages);
  g_autofree char *description = dup_description (self);

  gtk_editable_set_text (self->page_entry, number);
  gtk_label_set_text (self->page_count, count);
  gtk_widget_set_visible (self->page_bar, self->n_page > 1);
  gtk_widget_action_set_enabled (GTK_WIDGET (self), "viewer.previous", self->page > 0);
  gtk_widget_action_set_enabled (GTK_WIDGET (self), "viewer.next", self->page + 1 < self->n_page);
  gtk_picture_set_alternative_text (self->picture, description);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->picture), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  description, -1);
}

static void
show_state (KsImageViewer *self, const char *name)
{
  gboolean is_loading = g_strcmp0 (name, "loading") == 0;

  gtk_stack_set_visible_child_name (self->stack, name);
  gtk_spinner_set_spinning (self->spinner, is_loading);
}

static void
show_entry (KsImageViewer *self, const KsPageCacheEntry *entry)
{
  self->shown = entry;
  gtk_picture_set_paintable (self->picture, GDK_PAINTABLE (entry->texture));
  show_state (self, "picture");
  update_layout (self);
}

static void
show_lock (KsImageViewer *self, gboolean was_wrong)
{
  adw_status_page_set_description (
      self->lock, was_wrong ? _ ("That password does not open the document. Try another one.")
                            : _ ("This document is encrypted. Enter its password to see it."));
  show_state (self, "password");
  gtk_widget_grab_focus (GTK_WIDGET (self->password));
}

static void
show_error (KsImageViewer *self, const GError *error)
{
  g_autofree char *sentence = ks_error_text_dup (error);
  gboolean was_wrong = FALSE;

  if (ks_error_is_password (error, &was_wrong)) {
    show_lock (self, was_wrong || self->key != NULL);
    return;
  }
  if (self->shown == NULL) {
    g_autofree char *text = g_markup_escape_text (sentence, -1);

    adw_status_page_set_title (self->error, is_image (self) ? _ ("The Picture Cannot Be Shown")
                                                            : _ ("The Page Cannot Be Shown"));
    adw_status_page_set_description (self->error, text);
    show_state (self, "error");
  }
  ks_announce (GTK_WIDGET (self), sentence);
}

/* --- decoding --- */

static void
rendered_cb (GObject *library, GAsyncResult *result, gpointer data)
{
  g_autoptr (Request) request = data;
  KsImageViewer *self = request->viewer;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsPixels) pixels = ks_library_render_finish (KS_LIBRARY (library), result, &error);

  if (request->cancellable !=
      self->cancellable) /* another page was asked for since, or it closed */
    return;
  g_clear_object (&self->cancellable);
  self->asked_side_px = 0;
  if (pixels == NULL)
    show_error (self, error);
  else {
    g_autoptr (GdkTexture) texture = ks_texture_new (pixels);

    show_entry (self, ks_page_cache_add (&self->cache, request->page, request->side_px, texture));
  }
}

static void
cancel (KsImageViewer *self)
{
  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  self->asked_side_px = 0;
  g_clear_handle_id (&self->render_source, g_source_remove);
}

static void
show_text_state (KsImageViewer *self)
{
  adw_status_page_set_icon_name (self->error, "text-x-generic-symbolic");
  adw_status_page_set_title (self->error, ks_attachment_get_name (self->attachment));
  adw_status_page_set_description (
      self->error, _ ("A text without pages or pictures: the model was given its words."));
  gtk_widget_set_visible (self->retry_button, FALSE);
  gtk_widget_set_visible (self->bar, FALSE);
  show_state (self, "error");
}

static void
render (KsImageViewer *self)
{
  guint side_px = get_wanted_side (self);
  const KsPageCacheEntry *held = ks_page_cache_find (&self->cache, self->page);
  Request *request = NULL;

  if (held != NULL && held != self->shown)
    show_entry (self, held);
  if ((held != NULL && held->side_px >= side_px) || self->asked_side_px >= side_px)
    return;
  cancel (self);
  self->cancellable = g_cancellable_new ();
  self->asked_side_px = side_px;
  if (held == NULL)
    show_state (self, "loading");
  request = g_new0 (Request, 1);
  request->viewer = g_object_ref (self);
  request->cancellable = g_object_ref (self->cancellable);
  request->page = self->page;
  request->side_px = side_px;
  ks_library_render_async (self->library, self->attachment, self->page, side_px, self->key,
                           self->cancellable, rendered_cb, request);
}

static gboolean
render_later_cb (gpointer data)
{
  KsImageViewer *self = data;

  self->render_source = 0;
  render (self);
  return G_SOURCE_REMOVE;
}

static void
room_cb (KsImageViewer *self)
{
  update_zoom (self);
  if (self->shown == NULL || self->zoom > 0)
    return;
  if (self->render_source == 0)
    self->render_source = g_timeout_add (RENDER_DELAY_MS, render_later_cb, self);
}

/* --- zoom --- */

static GtkAdjustment *
get_adjustment (KsImageViewer *self, int axis)
{
  return axis == 0 ? gtk_scrolled_window_get_hadjustment (self->scroller)
                   : gtk_scrolled_window_get_vadjustment (self->scroller);
}

static void
remember_centre (KsImageViewer *self)
{
  for (int axis = 0; axis < 2; axis++) {
    GtkAdjustment *adjustment = get_adjustment (self, axis);
    double upper = gtk_adjustment_get_upper (adjustment);

    self->centre[axis] = upper <= 0 ? 0.5
                                    : (gtk_adjustment_get_value (adjustment) +
                                       gtk_adjustment_get_page_size (adjustment) / 2) /
                                          upper;
    self->keeps_centre[axis] = TRUE;
  }
}

static void
adjustment_changed_cb (GtkAdjustment *adjustment, KsImageViewer *self)
{
  int axis = adjustment == get_adjustment (self, 0) ? 0 : 1;

  if (!self->keeps_centre[axis])
    return;
  self->keeps_centre[axis] = FALSE;
  gtk_adjustment_set_value (adjustment, self->centre[axis] * gtk_adjustment_get_upper (adjustment) -
                                            gtk_adjustment_get_page_size (adjustment) / 2);
}

static void
zoom_in (GtkWidget *widget, const char *action, GVariant *parameter)
{
  KsImageViewer *self = KS_IMAGE_VIEWER (widget);

  ks_image_viewer_set_zoom (self, get_effective_zoom (self) * ZOOM_STEP);
}

static void
zoom_out (GtkWidget *widget, const char *action, GVariant *parameter)
{
  KsImageViewer *self = KS_IMAGE_VIEWER (widget);

  ks_image_viewer_set_zoom (self, get_effective_zoom (self) / ZOOM_STEP);
}

static void
zoom_full (GtkWidget *widget, const char *action, GVariant *parameter)
{
  ks_image_viewer_set_zoom (KS_IMAGE_VIEWER (widget), 1);
}

static void
zoom_fit (GtkWidget *widget, const char *action, GVariant *parameter)
{
  ks_image_viewer_set_zoom (KS_IMAGE_VIEWER (widget), 0);
}

static gboolean
scroll_cb (GtkEventControllerScroll *controller, double dx, double dy, KsImageViewer *self)
{
  GdkModifierType state =
      gtk_event_controller_get_current_event_state (GTK_EVENT_CONTROLLER (controller));

  if ((state & GDK_CONTROL_MASK) == 0 || self->shown == NULL)
    return GDK_EVENT_PROPAGATE;
  ks_image_viewer_set_zoom (self, get_effective_zoom (self) * pow (ZOOM_STEP, -dy));
  return GDK_EVENT_STOP;
}

/* --- pages --- */

static void
go_previous (GtkWidget *widget, const char *action, GVariant *parameter)
{
  KsImageViewer *self = KS_IMAGE_VIEWER (widget);

  if (self->page > 0)
    ks_image_viewer_set_page (self, self->page - 1);
}

static void
go_next (GtkWidget *widget, const char *action, GVariant *parameter)
{
  KsImageViewer *self = KS_IMAGE_VIEWER (widget);

  ks_image_viewer_set_page (self, self->page + 1);
}

static void
page_entered_cb (KsImageViewer *self)
{
  g_autofree char *text = g_strstrip (g_strdup (gtk_editable_get_text (self->page_entry)));
  guint64 number = 0;

  if (g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT, &number, NULL))
    ks_image_viewer_set_page (self, number == 0 ? 0 : (guint)number - 1);
  update_page (self); /* also when it was no number */
}

static void
unlock_cb (KsImageViewer *self)
{
  const char *text = gtk_editable_get_text (self->password);

  if (text[0] == '\0')
    return;
  g_free (self->key);
  self->key = g_strdup (text);
  gtk_editable_set_text (self->password, "");
  cancel (self);
  render (self);
  gtk_widget_grab_focus (GTK_WIDGET (self->scroller));
}

static void
retry_cb (KsImageViewer *self)
{
  cancel (self);
  render (self);
}

/* --- life --- */

/* The first size that is known decides what is asked for. */
static void
ks_image_viewer_map (GtkWidget *widget)
{
  KsImageViewer *self = KS_IMAGE_VIEWER (widget);

  GTK_WIDGET_CLASS (ks_image_viewer_parent_class)->map (widget);
  if (is_text (self->attachment))
    show_text_state (self);
  else if (self->shown == NULL && self->cancellable == NULL && self->render_source == 0)
    self->render_source = g_idle_add (render_later_cb, self);
}

static void
ks_image_viewer_unmap (GtkWidget *widget)
{
  cancel (KS_IMAGE_VIEWER (widget));
  GTK_WIDGET_CLASS (ks_image_viewer_parent_class)->unmap (widget);
}

static gboolean
ks_image_viewer_grab_focus (GtkWidget *widget)
{
  return gtk_widget_grab_focus (GTK_WIDGET (KS_IMAGE_VIEWER (widget)->scroller));
}

static void
ks_image_viewer_dispose (GObject *object)
{
  KsImageViewer *self = KS_IMAGE_VIEWER (object);

  cancel (self);
  self->shown = NULL;
  ks_page_cache_clear (&self->cache);
  g_clear_object (&self->library);
  g_clear_object (&self->attachment);
  g_clear_pointer (&self->key, g_free);
  adw_bin_set_child (ADW_BIN (self), NULL); /* its own, before the template lets go of it */
  gtk_widget_dispose_template (GTK_WIDGET (self), KS_TYPE_IMAGE_VIEWER);
  G_OBJECT_CLASS (ks_image_viewer_parent_class)->dispose (object);
}

static void
bind_keys (GtkWidgetClass *klass)
{
  static const struct {
    guint key;
    GdkModifierType modifiers;
    const char *action;
  } keys[] = {
      {GDK_KEY_Page_Up, 0, "viewer.previous"},
      {GDK_KEY_KP_Page_Up, 0, "viewer.previous"},
      {GDK_KEY_Page_Up, GDK_CONTROL_MASK, "viewer.previous"},
      {GDK_KEY_Page_Down, 0, "viewer.next"},
      {GDK_KEY_KP_Page_Down, 0, "viewer.next"},
      {GDK_KEY_Page_Down, GDK_CONTROL_MASK, "viewer.next"},
      {GDK_KEY_plus, GDK_CONTROL_MASK, "viewer.zoom-in"},
      {GDK_KEY_equal, GDK_CONTROL_MASK, "viewer.zoom-in"},
      {GDK_KEY_KP_Add, GDK_CONTROL_MASK, "viewer.zoom-in"},
      {GDK_KEY_minus, GDK_CONTROL_MASK, "viewer.zoom-out"},
      {GDK_KEY_KP_Subtract, GDK_CONTROL_MASK, "viewer.zoom-out"},
      {GDK_KEY_0, GDK_CONTROL_MASK, "viewer.zoom-fit"},
      {GDK_KEY_KP_0, GDK_CONTROL_MASK, "viewer.zoom-fit"},
      {GDK_KEY_1, GDK_CONTROL_MASK, "viewer.zoom-full"},
      {GDK_KEY_KP_1, GDK_CONTROL_MASK, "viewer.zoom-full"},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    gtk_widget_class_add_binding_action (klass, keys[i].key, keys[i].modifiers, keys[i].action,
                                         NULL);
}

static void
bind_children (GtkWidgetClass *klass)
{
  gtk_widget_class_bind_template_child (klass, KsImageViewer, bar);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, error);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, lock);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, page_bar);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, page_count);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, page_entry);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, password);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, picture);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, retry_button);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, scroller);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, spinner);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, stack);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, unlock_button);
  gtk_widget_class_bind_template_child (klass, KsImageViewer, zoom_button);
}

static void
ks_image_viewer_class_init (KsImageViewerClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_image_viewer_dispose;
  widget_class->grab_focus = ks_image_viewer_grab_focus;
  widget_class->map = ks_image_viewer_map;
  widget_class->unmap = ks_image_viewer_unmap;
  signals[PAGE_CHANGED] = g_signal_new ("page-changed", KS_TYPE_IMAGE_VIEWER, G_SIGNAL_RUN_LAST, 0,
                                        NULL, NULL, NULL, G_TYPE_NONE, 0);
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-image-viewer.ui");
  bind_children (widget_class);
  gtk_widget_class_install_action (widget_class, "viewer.next", NULL, go_next);
  gtk_widget_class_install_action (widget_class, "viewer.previous", NULL, go_previous);
  gtk_widget_class_install_action (widget_class, "viewer.zoom-fit", NULL, zoom_fit);
  gtk_widget_class_install_action (widget_class, "viewer.zoom-full", NULL, zoom_full);
  gtk_widget_class_install_action (widget_class, "viewer.zoom-in", NULL, zoom_in);
  gtk_widget_class_install_action (widget_class, "viewer.zoom-out", NULL, zoom_out);
  bind_keys (widget_class);
}

static void
ks_image_viewer_init (KsImageViewer *self)
{
  GtkEventController *scroll =
      gtk_event_controller_scroll_new (GTK_EVENT_CONTROLLER_SCROLL_VERTICAL);

  gtk_widget_init_template (GTK_WIDGET (self));
  self->header = ADW_HEADER_BAR (adw_header_bar_new ());
  adw_bin_set_child (ADW_BIN (self),
                     ks_page_new (GTK_WIDGET (self->header), GTK_WIDGET (self->stack), self->bar));
  g_signal_connect_swapped (self->page_entry, "activate", G_CALLBACK (page_entered_cb), self);
  g_signal_connect_swapped (self->password, "activate", G_CALLBACK (unlock_cb), self);
  g_signal_connect_swapped (self->retry_button, "clicked", G_CALLBACK (retry_cb), self);
  g_signal_connect_swapped (self->unlock_button, "clicked", G_CALLBACK (unlock_cb), self);
  gtk_event_controller_set_propagation_phase (scroll, GTK_PHASE_CAPTURE);
  g_signal_connect_object (scroll, "scroll", G_CALLBACK (scroll_cb), self, G_CONNECT_DEFAULT);
  gtk_widget_add_controller (GTK_WIDGET (self->scroller), scroll);
  for (int axis = 0; axis < 2; axis++) {
    g_signal_connect_object (get_adjustment (self, axis), "notify::page-size", G_CALLBACK (room_cb),
                             self, G_CONNECT_SWAPPED);
    g_signal_connect_object (get_adjustment (self, axis), "changed",
                             G_CALLBACK (adjustment_changed_cb), self, G_CONNECT_DEFAULT);
  }
}

KsImageViewer *
ks_image_viewer_new (KsLibrary *library, KsAttachment *attachment)
{
  KsImageViewer *self = NULL;

  g_return_val_if_fail (KS_IS_LIBRARY (library), NULL);
  g_return_val_if_fail (KS_IS_ATTACHMENT (attachment), NULL);
  self = g_object_new (KS_TYPE_IMAGE_VIEWER, NULL);
  self->library = g_object_ref (library);
  self->attachment = g_object_ref (attachment);
  self->n_page = is_image (self) ? 1 : MAX (1, ks_attachment_get_n_pages (attachment));
  update_page (self);
  update_layout (self);
  return self;
}

void
ks_image_viewer_add_to_header (KsImageViewer *self, GtkWidget *widget)
{
  g_return_if_fail (KS_IS_IMAGE_VIEWER (self));
  adw_header_bar_pack_start (self->header, widget);
}

void
ks_image_viewer_set_page (KsImageViewer *self, guint page)
{
  g_return_if_fail (KS_IS_IMAGE_VIEWER (self));
  page = MIN (page, self->n_page - 1);
  if (page == self->page)
    return;
  self->page = page;
  self->shown = NULL;
  cancel (self);
  update_page (self);
  render (self);
  g_signal_emit (self, signals[PAGE_CHANGED], 0);
}

guint
ks_image_viewer_get_page (KsImageViewer *self)
{
  g_return_val_if_fail (KS_IS_IMAGE_VIEWER (self), 0);
  return self->page;
}

void
ks_image_viewer_set_zoom (KsImageViewer *self, double zoom)
{
  g_return_if_fail (KS_IS_IMAGE_VIEWER (self));
  zoom = zoom <= 0 ? 0 : CLAMP (zoom, MIN_ZOOM, MAX_ZOOM);
  if (zoom == self->zoom)
    return;
  remember_centre (self);
  self->zoom = zoom;
  update_layout (self);
  if (gtk_widget_get_mapped (GTK_WIDGET (self)))
    render (self);
}

double
ks_image_viewer_get_zoom (KsImageViewer *self)
{
  g_return_val_if_fail (KS_IS_IMAGE_VIEWER (self), 0);
  return self->zoom;
}

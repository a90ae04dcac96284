/* ks-capture-buttons.c - see ks-capture-buttons.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-capture-buttons.h"

#include "ui/ks-error-text.h"
#include "ui/ks-texture.h"

#include <glib/gi18n.h>

struct _KsCaptureButtons {
  AdwBin parent_instance;
  GtkWidget *buttons[KS_N_CAPTURE];
  KsCapture *capture;
  KsChat *chat;
  KsIntakeNotice func;
  GWeakRef object;
  GCancellable *cancellable; /* of the picture that is being taken */
};

/* A picture on its way. */
typedef struct {
  KsCaptureButtons *buttons; /* strong */
  KsChat *chat;
  KsCaptureSource source;
} Taking;

static const struct {
  const char *icon_name, *label, *tooltip;
} looks[KS_N_CAPTURE] = {
    [KS_CAPTURE_SCREEN] = {"video-display-symbolic", N_ ("Attach a Screenshot"),
                           N_ ("Take a picture of the screen and attach it")},
    [KS_CAPTURE_CAMERA] = {"camera-photo-symbolic", N_ ("Attach a Camera Picture"),
                           N_ ("Take a picture with the camera and attach it")},
};

G_DEFINE_FINAL_TYPE (KsCaptureButtons, ks_capture_buttons, ADW_TYPE_BIN)

static void
taking_free (Taking *taking)
{
  g_object_unref (taking->buttons);
  g_object_unref (taking->chat);
  g_free (taking);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Taking, taking_free)

static void
update (KsCaptureButtons *self)
{
  gboolean has_any = FALSE;

  if (adw_bin_get_child (ADW_BIN (self)) == NULL) /* its window is gone */
    return;
  for (guint i = 0; i < KS_N_CAPTURE; i++) {
    gboolean has = self->capture != NULL && ks_capture_has (self->capture, (KsCaptureSource)i);

    gtk_widget_set_visible (self->buttons[i], has);
    gtk_widget_set_sensitive (self->buttons[i], self->chat != NULL && self->cancellable == NULL);
    has_any |= has;
  }
  gtk_widget_set_visible (GTK_WIDGET (self), has_any);
}

static void
tell (KsCaptureButtons *self, KsChat *chat, const GError *error)
{
  g_autoptr (GObject) object = g_weak_ref_get (&self->object);
  g_autofree char *reason = ks_error_text_dup (error);
  /* Translators: %s is a sentence that says why. */
  g_autofree char *notice = g_strdup_printf (_ ("No picture was taken: %s"), reason);

  if (object != NULL && self->func != NULL)
    self->func (object, chat, notice);
}

static void
taken_cb (GObject *capture, GAsyncResult *result, gpointer data)
{
  g_autoptr (Taking) taking = data;
  KsCaptureButtons *self = taking->buttons;
  g_autoptr (GObject) object = g_weak_ref_get (&self->object);
  g_autoptr (GFile) file = NULL;
  g_autoptr (KsPixels) pixels = NULL;
  g_autoptr (GError) error = NULL;

  g_clear_object (&self->cancellable);
  update (self);
  if (!ks_capture_take_finish (KS_CAPTURE (capture), result, &file, &pixels, &error)) {
    if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
      tell (self, taking->chat, error);
  } else if (file != NULL) {
    ks_chat_attach_file (taking->chat, file);
  } else if (object != NULL) {
    g_autoptr (GdkTexture) texture = ks_texture_new (pixels);

    ks_intake_take_texture (texture, _ ("Camera picture"), taking->chat, self->func, object);
  }
}

static void
clicked_cb (GtkButton *button, KsCaptureButtons *self)
{
  Taking *taking = NULL;

  if (self->chat == NULL || self->capture == NULL || self->cancellable != NULL)
    return;
  taking = g_new0 (Taking, 1);
  taking->buttons = g_object_ref (self);
  taking->chat = g_object_ref (self->chat);
  taking->source = GTK_WIDGET (button) == self->buttons[KS_CAPTURE_CAMERA] ? KS_CAPTURE_CAMERA
                                                                           : KS_CAPTURE_SCREEN;
  self->cancellable = g_cancellable_new ();
  update (self);
  ks_capture_take_async (self->capture, taking->source, self->cancellable, taken_cb, taking);
}

void
ks_capture_buttons_set_capture (KsCaptureButtons *self, KsCapture *capture)
{
  g_return_if_fail (KS_IS_CAPTURE_BUTTONS (self));
  if (self->capture != NULL)
    g_signal_handlers_disconnect_by_data (self->capture, self);
  g_set_object (&self->capture, capture);
  if (capture != NULL)
    g_signal_connect_object (capture, "changed", G_CALLBACK (update), self, G_CONNECT_SWAPPED);
  update (self);
}

void
ks_capture_buttons_set_chat (KsCaptureButtons *self, KsChat *chat, KsIntakeNotice func,
                             GObject *object)
{
  g_return_if_fail (KS_IS_CAPTURE_BUTTONS (self));
  g_set_object (&self->chat, chat);
  self->func = func;
  g_weak_ref_set (&self->object, object);
  update (self);
}

static void
ks_capture_buttons_dispose (GObject *object)
{
  KsCaptureButtons *self = KS_CAPTURE_BUTTONS (object);

  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  g_clear_object (&self->capture);
  g_clear_object (&self->chat);
  adw_bin_set_child (ADW_BIN (self), NULL);
  G_OBJECT_CLASS (ks_capture_buttons_parent_class)->dispose (object);
}

static void
ks_capture_buttons_finalize (GObject *object)
{
  g_weak_ref_clear (&KS_CAPTURE_BUTTONS (object)->object);
  G_OBJECT_CLASS (ks_capture_buttons_parent_class)->finalize (object);
}

static void
ks_capture_buttons_unroot (GtkWidget *widget)
{
  KsCaptureButtons *self = KS_CAPTURE_BUTTONS (widget);

  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  GTK_WIDGET_CLASS (ks_capture_buttons_parent_class)->unroot (widget);
}

static void
ks_capture_buttons_class_init (KsCaptureButtonsClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_capture_buttons_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_capture_buttons_finalize;
  GTK_WIDGET_CLASS (klass)->unroot = ks_capture_buttons_unroot;
}

static void
ks_capture_buttons_init (KsCaptureButtons *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 2);

  g_weak_ref_init (&self->object, NULL);
  for (guint i = 0; i < KS_N_CAPTURE; i++) {
    GtkWidget *button = gtk_button_new_from_icon_name (looks[i].icon_name);

    gtk_widget_set_tooltip_text (button, _ (looks[i].tooltip));
    gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                    _ (looks[i].label), -1);
    gtk_widget_add_css_class (button, "flat");
    gtk_widget_add_css_class (button, "circular");
    g_signal_connect (button, "clicked", G_CALLBACK (clicked_cb), self);
    gtk_box_append (GTK_BOX (box), button);
    self->buttons[i] = button;
  }
  adw_bin_set_child (ADW_BIN (self), box);
  update (self);
}

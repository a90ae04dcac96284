/* ks-banner.c - see ks-banner.h.  AdwBanner is libadwaita 1.3, and it knows neither waiting nor
 * errors. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-banner.h"

#include "ui/ks-compat.h"
#include "ui/ks-resource.h"

struct _KsBanner {
  GtkWidget parent_instance;

  GtkWidget *content;
  GtkWidget *box;
  GtkWidget *icons;
  GtkWidget *image;
  GtkWidget *spinner;
  GtkWidget *label;
  GtkWidget *button;
};

G_DEFINE_FINAL_TYPE (KsBanner, ks_banner, GTK_TYPE_WIDGET)

/* What a kind looks like; colour is never the only sign. */
static const struct {
  const char *icon_name;
  const char *css_class;
} looks[] = {
    [KS_BANNER_INFO] = {"dialog-information-symbolic", "info"},
    [KS_BANNER_BUSY] = {NULL, "info"},
    [KS_BANNER_WARNING] = {"dialog-warning-symbolic", "warning"},
    [KS_BANNER_ERROR] = {"dialog-error-symbolic", "error"},
};

void
ks_banner_set_text (KsBanner *self, KsBannerKind kind, const char *text)
{
  gboolean is_new = FALSE;

  g_return_if_fail (KS_IS_BANNER (self));
  gtk_revealer_set_reveal_child (GTK_REVEALER (self->content), text != NULL);
  gtk_spinner_set_spinning (GTK_SPINNER (self->spinner), text != NULL && kind == KS_BANNER_BUSY);
  if (text == NULL)
    return;
  for (gsize i = 0; i < G_N_ELEMENTS (looks); i++)
    gtk_widget_remove_css_class (self->box, looks[i].css_class);
  gtk_widget_add_css_class (self->box, looks[kind].css_class);
  gtk_stack_set_visible_child_name (GTK_STACK (self->icons),
                                    kind == KS_BANNER_BUSY ? "spinner" : "image");
  gtk_image_set_from_icon_name (GTK_IMAGE (self->image), looks[kind].icon_name);
  is_new = g_strcmp0 (gtk_label_get_text (GTK_LABEL (self->label)), text) != 0;
  gtk_label_set_text (GTK_LABEL (self->label), text);
  gtk_widget_set_tooltip_text (self->label, text);
  if (is_new)
    ks_announce (GTK_WIDGET (self), text);
}

const char *
ks_banner_get_text (KsBanner *self)
{
  g_return_val_if_fail (KS_IS_BANNER (self), NULL);
  return gtk_revealer_get_reveal_child (GTK_REVEALER (self->content))
             ? gtk_label_get_text (GTK_LABEL (self->label))
             : NULL;
}

void
ks_banner_set_button (KsBanner *self, const char *label, const char *action)
{
  g_return_if_fail (KS_IS_BANNER (self));
  gtk_widget_set_visible (self->button, label != NULL);
  if (label == NULL)
    return;
  gtk_button_set_label (GTK_BUTTON (self->button), label);
  gtk_actionable_set_detailed_action_name (GTK_ACTIONABLE (self->button), action);
}

static void
ks_banner_dispose (GObject *object)
{
  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_BANNER);
  g_clear_pointer (&KS_BANNER (object)->content, gtk_widget_unparent);
  G_OBJECT_CLASS (ks_banner_parent_class)->dispose (object);
}

static void
ks_banner_class_init (KsBannerClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_banner_dispose;
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-banner.ui");
  gtk_widget_class_bind_template_child (widget_class, KsBanner, content);
  gtk_widget_class_bind_template_child (widget_class, KsBanner, box);
  gtk_widget_class_bind_template_child (widget_class, KsBanner, icons);
  gtk_widget_class_bind_template_child (widget_class, KsBanner, image);
  gtk_widget_class_bind_template_child (widget_class, KsBanner, spinner);
  gtk_widget_class_bind_template_child (widget_class, KsBanner, label);
  gtk_widget_class_bind_template_child (widget_class, KsBanner, button);
}

static void
ks_banner_init (KsBanner *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
}

GtkWidget *
ks_banner_new (void)
{
  return g_object_new (KS_TYPE_BANNER, NULL);
}

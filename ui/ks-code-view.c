/* ks-code-view.c - see ks-code-view.h.
 * Highlighting is left out where its price is out of proportion: long texts, long lines. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-code-view.h"

#include "ui/ks-compat.h"

#include <glib/gi18n.h>
#include <gtksourceview/gtksource.h>

#include <string.h>

#define MAX_HIGHLIGHT_BYTES (32u * 1024u)
#define MAX_HIGHLIGHT_LINE 1000
/* What one line shows at most: layout of a line is linear, but drawing it is not free. */
#define MAX_LINE_BYTES (16u * 1024u)

struct _KsCodeView {
  GtkWidget parent_instance;

  GtkWidget *box;
  GtkLabel *language;
  GtkWidget *copy;
  GtkSourceBuffer *buffer;
  GtkWidget *view;

  KsMarkdownBlock *block;
  guint n_lines;
  char *shown; /* what the buffer holds */
};

G_DEFINE_FINAL_TYPE (KsCodeView, ks_code_view, GTK_TYPE_WIDGET)

/* Names that models write and the highlighter knows by another one. */
static const char *
get_language_id (const char *name)
{
  static const char *const others[][2] = {
      {"bash", "sh"},        {"c#", "c-sharp"},     {"c++", "cpp"},   {"console", "sh"},
      {"cs", "c-sharp"},     {"csharp", "c-sharp"}, {"golang", "go"}, {"html5", "html"},
      {"js", "js"},          {"javascript", "js"},  {"jsx", "jsx"},   {"kt", "kotlin"},
      {"make", "makefile"},  {"md", "markdown"},    {"objc", "objc"}, {"py", "python3"},
      {"python", "python3"}, {"rb", "ruby"},        {"rs", "rust"},   {"shell", "sh"},
      {"ts", "typescript"},  {"yml", "yaml"},       {"zsh", "sh"}};

  for (gsize i = 0; i < G_N_ELEMENTS (others); i++)
    if (strcmp (name, others[i][0]) == 0)
      return others[i][1];
  return name;
}

static gboolean
is_light_enough (const char *text)
{
  gsize n_line = 0;

  if (strlen (text) > MAX_HIGHLIGHT_BYTES)
    return FALSE;
  for (const char *p = text; *p != '\0'; p++) {
    n_line = *p == '\n' ? 0 : n_line + 1;
    if (n_line > MAX_HIGHLIGHT_LINE)
      return FALSE;
  }
  return TRUE;
}

static void
update_language (KsCodeView *self)
{
  const char *name = self->block == NULL ? NULL : self->block->language;
  GtkSourceLanguage *language = NULL;

  if (name != NULL && is_light_enough (self->shown)) {
    GtkSourceLanguageManager *manager = gtk_source_language_manager_get_default ();

    language = gtk_source_language_manager_get_language (manager, get_language_id (name));
    if (language == NULL)
      language = gtk_source_language_manager_get_language (manager, name);
  }
  gtk_source_buffer_set_highlight_syntax (self->buffer, language != NULL);
  if (gtk_source_buffer_get_language (self->buffer) != language)
    gtk_source_buffer_set_language (self->buffer, language);
  gtk_label_set_text (self->language, name == NULL ? _ ("Code") : name);
}

static void
dark_cb (KsCodeView *self)
{
  gboolean is_dark = adw_style_manager_get_dark (adw_style_manager_get_default ());
  GtkSourceStyleSchemeManager *manager = gtk_source_style_scheme_manager_get_default ();

  gtk_source_buffer_set_style_scheme (
      self->buffer,
      gtk_source_style_scheme_manager_get_scheme (manager, is_dark ? "Adwaita-dark" : "Adwaita"));
}

static void
copy_cb (KsCodeView *self)
{
  const char *original = NULL;

  if (self->block == NULL)
    return;
  original = self->block->original != NULL ? self->block->original : self->block->text;
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)), original);
  ks_announce (GTK_WIDGET (self), _ ("Code copied"));
}

/* The first n_lines, each cut to what one line may show. */
static char *
dup_shown (const char *text, guint n_lines)
{
  GString *out = g_string_new (NULL);
  const char *line = text;

  while (n_lines-- > 0) {
    const char *end = strchrnul (line, '\n');
    gsize n = (gsize)(end - line);

    if (n > MAX_LINE_BYTES) {
      const char *cut = g_utf8_find_prev_char (line, line + MAX_LINE_BYTES);

      g_string_append_len (out, line, cut == NULL ? 0 : cut - line);
      g_string_append (out, "\u2026");
    } else {
      g_string_append_len (out, line, (gssize)n);
    }
    if (*end == '\0' || n_lines == 0)
      break;
    g_string_append_c (out, '\n');
    line = end + 1;
  }
  return g_string_free (out, FALSE);
}

void
ks_code_view_set_block (KsCodeView *self, KsMarkdownBlock *block, guint n_lines)
{
  GtkTextBuffer *buffer = NULL;
  g_autofree char *shown = NULL;
  KsMarkdownBlock *old = NULL;

  g_return_if_fail (KS_IS_CODE_VIEW (self) && block != NULL && block->kind == KS_BLOCK_CODE);
  if (self->block == block && self->n_lines == n_lines)
    return;
  buffer = GTK_TEXT_BUFFER (self->buffer);
  shown = dup_shown (block->text, n_lines);
  old = g_steal_pointer (&self->block);
  self->block = ks_markdown_block_ref (block);
  ks_markdown_block_unref (old);
  self->n_lines = n_lines;
  if (g_str_has_prefix (shown, self->shown)) {
    GtkTextIter end;

    gtk_text_buffer_get_end_iter (buffer, &end);
    gtk_text_buffer_insert (buffer, &end, shown + strlen (self->shown), -1);
  } else {
    gtk_text_buffer_set_text (buffer, shown, -1);
  }
  g_free (self->shown);
  self->shown = g_steal_pointer (&shown);
  update_language (self);
}

static void
ks_code_view_dispose (GObject *object)
{
  KsCodeView *self = KS_CODE_VIEW (object);

  g_clear_pointer (&self->box, gtk_widget_unparent);
  g_clear_object (&self->buffer);
  g_clear_pointer (&self->block, ks_markdown_block_unref);
  G_OBJECT_CLASS (ks_code_view_parent_class)->dispose (object);
}

static void
ks_code_view_finalize (GObject *object)
{
  g_free (KS_CODE_VIEW (object)->shown);
  G_OBJECT_CLASS (ks_code_view_parent_class)->finalize (object);
}

static void
ks_code_view_class_init (KsCodeViewClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_code_view_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_code_view_finalize;
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_css_name (widget_class, "codeview");
}

static GtkWidget *
make_header (KsCodeView *self)
{
  GtkWidget *header = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);

  self->language = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_ellipsize (self->language, PANGO_ELLIPSIZE_END);
  gtk_label_set_xalign (self->language, 0);
  gtk_widget_set_hexpand (GTK_WIDGET (self->language), TRUE);
  gtk_widget_add_css_class (GTK_WIDGET (self->language), "caption");
  gtk_widget_add_css_class (GTK_WIDGET (self->language), "dim-label");
  self->copy = gtk_button_new_from_icon_name ("edit-copy-symbolic");
  gtk_widget_add_css_class (self->copy, "flat");
  gtk_widget_set_tooltip_text (self->copy, _ ("Copy Code"));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->copy), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Copy Code"), -1);
  g_signal_connect_swapped (self->copy, "clicked", G_CALLBACK (copy_cb), self);
  gtk_box_append (GTK_BOX (header), GTK_WIDGET (self->language));
  gtk_box_append (GTK_BOX (header), self->copy);
  return header;
}

static void
ks_code_view_init (KsCodeView *self)
{
  GtkWidget *scroller = gtk_scrolled_window_new ();

  self->shown = g_strdup ("");
  self->buffer = gtk_source_buffer_new (NULL);
  gtk_source_buffer_set_highlight_matching_brackets (self->buffer, FALSE);
  gtk_text_buffer_set_enable_undo (GTK_TEXT_BUFFER (self->buffer), FALSE);
  self->view = gtk_source_view_new_with_buffer (self->buffer);
  gtk_text_view_set_editable (GTK_TEXT_VIEW (self->view), FALSE);
  gtk_text_view_set_cursor_visible (GTK_TEXT_VIEW (self->view), FALSE);
  gtk_text_view_set_monospace (GTK_TEXT_VIEW (self->view), TRUE);
  gtk_text_view_set_accepts_tab (GTK_TEXT_VIEW (self->view), FALSE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->view), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Code"), -1);
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_AUTOMATIC,
                                  GTK_POLICY_NEVER);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), self->view);
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_box_append (GTK_BOX (self->box), make_header (self));
  gtk_box_append (GTK_BOX (self->box), scroller);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  g_signal_connect_object (adw_style_manager_get_default (), "notify::dark", G_CALLBACK (dark_cb),
                           self, G_CONNECT_SWAPPED);
  dark_cb (self);
}

GtkWidget *
ks_code_view_new (void)
{
  return g_object_new (KS_TYPE_CODE_VIEW, NULL);
}

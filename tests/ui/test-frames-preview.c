/* test-frames-preview.c - the frames of a video, their cost, and the wish for others. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-test.h"
#include "ui/ks-frames-preview.h"

#define N_FRAME 12

typedef struct {
  KsFramesPreview *preview;
  GtkWindow *window;
  guint n_chosen;
} Fixture;

static void
chosen_cb (KsFramesPreview *preview, guint *n_chosen)
{
  ++*n_chosen;
}

static KsPixels *
pixels_new (guint seed)
{
  guint width = 64, height = 36;
  gsize n_byte = (gsize)4 * width * height;
  guint8 *data = g_malloc (n_byte);
  g_autoptr (GBytes) bytes = NULL;

  for (gsize i = 0; i < n_byte; i++)
    data[i] = (guint8)(i % 4 == 3 ? 255 : i % 4 == 0 ? seed * 20 : (i / 4 % width) * 4);
  bytes = g_bytes_new_take (data, n_byte);
  return ks_pixels_new (width, height, bytes);
}

static void
set_frames (KsFramesPreview *preview, guint n_token, guint64 n_kept)
{
  KsFramesEntry entries[N_FRAME];

  for (guint i = 0; i < N_FRAME; i++)
    entries[i] = (KsFramesEntry){pixels_new (i), (gint64)i * 1234567};
  ks_frames_preview_set_frames (preview, entries, N_FRAME, n_token, n_kept);
  for (guint i = 0; i < N_FRAME; i++)
    ks_pixels_unref (entries[i].pixels);
}

static void
set_up (Fixture *f, gconstpointer data)
{
  f->preview = KS_FRAMES_PREVIEW (ks_frames_preview_new ());
  f->n_chosen = 0;
  ks_frames_preview_set_choice (f->preview, &(KsFramesChoice){KS_FRAMES_COUNT, N_FRAME, 0});
  ks_frames_preview_set_has_sound (f->preview, TRUE);
  set_frames (f->preview, 3072, 4096);
  g_signal_connect (f->preview, "chosen", G_CALLBACK (chosen_cb), &f->n_chosen);
  f->window = ui_test_present (GTK_WIDGET (f->preview), 360, 560);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  ui_test_close (f->window);
}

static gboolean
is_shown (Fixture *f, const char *text)
{
  GtkWidget *label = ui_test_find_text (GTK_WIDGET (f->preview), text);

  return label != NULL && gtk_widget_get_mapped (label);
}

static gboolean
is_chosen (gpointer n_chosen)
{
  return *(guint *)n_chosen > 0;
}

static GtkWidget *
find_spin (Fixture *f, const char *label)
{
  GtkWidget *text = ui_test_find_text (GTK_WIDGET (f->preview), label);

  return ui_test_find (gtk_widget_get_parent (text), GTK_TYPE_SPIN_BUTTON);
}

/* Frames have their times, all of them a cost, and nobody thinks that the sound is heard. */
static void
test_shows (Fixture *f, gconstpointer data)
{
  GtkWidget *picture = ui_test_find (GTK_WIDGET (f->preview), GTK_TYPE_PICTURE);

  g_assert_true (is_shown (f, "12 frames · 3,072 tokens"));
  g_assert_true (is_shown (f, "0:00.0"));
  g_assert_true (is_shown (f, "0:01.2"));
  g_assert_true (is_shown (f, "The sound is not heard: the model sees these frames only."));
  gtk_test_accessible_assert_property (picture, GTK_ACCESSIBLE_PROPERTY_LABEL, "Frame at 0:00.0");
  ks_frames_preview_set_has_sound (f->preview, FALSE);
  set_frames (f->preview, 3072, 1000);
  ui_test_settle (GTK_WIDGET (f->preview));
  g_assert_false (is_shown (f, "The sound is not heard: the model sees these frames only."));
  g_assert_true (is_shown (f, "12 frames · 3,072 tokens, more than memory keeps: the rest will be "
                              "read and let go"));
  ks_frames_preview_set_frames (f->preview, NULL, 0, 0, 0);
  ks_frames_preview_set_problem (f->preview, "It has no picture.");
  ui_test_settle (GTK_WIDGET (f->preview));
  g_assert_true (is_shown (f, "It has no picture."));
  g_assert_null (ui_test_find_text (GTK_WIDGET (f->preview), "0:01.2"));
}

/* A wish is told once, when the numbers rest; what the application sets is none; what is set while
 * the user chooses is older than that. */
static void
test_choice (Fixture *f, gconstpointer data)
{
  KsFramesChoice choice;
  GtkDropDown *mode = GTK_DROP_DOWN (ui_test_find (GTK_WIDGET (f->preview), GTK_TYPE_DROP_DOWN));

  ks_frames_preview_get_choice (f->preview, &choice);
  g_assert_cmpint (choice.mode, ==, KS_FRAMES_COUNT);
  g_assert_cmpuint (choice.n_frame, ==, N_FRAME);
  g_assert_false (is_shown (f, "Seconds between frames"));
  gtk_drop_down_set_selected (mode, KS_FRAMES_INTERVAL);
  ui_test_settle (GTK_WIDGET (f->preview));
  g_assert_true (is_shown (f, "Seconds between frames"));
  g_assert_true (is_shown (f, "Frames at most"));
  gtk_spin_button_set_value (GTK_SPIN_BUTTON (find_spin (f, "Seconds between frames")), 2.5);
  gtk_spin_button_set_value (GTK_SPIN_BUTTON (find_spin (f, "Frames at most")), 40);
  ks_frames_preview_set_choice (f->preview, &(KsFramesChoice){KS_FRAMES_SCENES, 3, 0});
  g_assert_cmpuint (f->n_chosen, ==, 0);
  ui_test_wait (is_chosen, &f->n_chosen);
  ui_test_settle (GTK_WIDGET (f->preview));
  g_assert_cmpuint (f->n_chosen, ==, 1);
  ks_frames_preview_get_choice (f->preview, &choice);
  g_assert_cmpint (choice.mode, ==, KS_FRAMES_INTERVAL);
  g_assert_cmpuint (choice.n_frame, ==, 40);
  g_assert_cmpuint (choice.interval_ms, ==, 2500);
}

/* Closing does not lose a number that was just chosen. */
static void
test_close (Fixture *f, gconstpointer data)
{
  gtk_spin_button_set_value (GTK_SPIN_BUTTON (find_spin (f, "Frames")), 5);
  gtk_widget_set_visible (GTK_WIDGET (f->preview), FALSE);
  g_assert_cmpuint (f->n_chosen, ==, 1);
}

/* Times are as players write them. */
static void
test_times (void)
{
  static const struct {
    gint64 time_us;
    const char *words;
  } cases[] = {{0, "0:00.0"},
               {-5, "0:00.0"},
               {3299999, "0:03.2"},
               {G_GINT64_CONSTANT (61500000), "1:01.5"},
               {G_GINT64_CONSTANT (3723000000), "1:02:03"}};

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *words = ks_frames_dup_time (cases[i].time_us);

    g_assert_cmpstr (words, ==, cases[i].words);
  }
}

/* Pictures for looking at. */
static void
test_looks (Fixture *f, gconstpointer data)
{
  GtkWidget *wide = ks_frames_preview_new ();
  GtkWindow *window = NULL;

  ui_test_save (GTK_WIDGET (f->window), "frames-narrow");
  g_assert_cmpint (gtk_widget_get_width (GTK_WIDGET (f->preview)), <=, 360);
  adw_style_manager_set_color_scheme (adw_style_manager_get_default (),
                                      ADW_COLOR_SCHEME_FORCE_DARK);
  set_frames (KS_FRAMES_PREVIEW (wide), 3072, 1000);
  ks_frames_preview_set_busy (KS_FRAMES_PREVIEW (wide), TRUE);
  ks_frames_preview_set_has_sound (KS_FRAMES_PREVIEW (wide), TRUE);
  window = ui_test_present (wide, 800, 480);
  ui_test_save (GTK_WIDGET (window), "frames-wide-dark");
  ui_test_close (window);
  adw_style_manager_set_color_scheme (adw_style_manager_get_default (), ADW_COLOR_SCHEME_DEFAULT);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
#define ADD(name, function)                                                                        \
  g_test_add ("/frames-preview/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("shows", test_shows);
  ADD ("choice", test_choice);
  ADD ("close", test_close);
  g_test_add_func ("/frames-preview/times", test_times);
  ADD ("looks", test_looks);
  return g_test_run ();
}

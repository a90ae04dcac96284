/* test-capture.c - screen and camera where there are none, or as many as the machine has. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-capture.h"
#include "media/ks-camera.h"

#include <gio/gio.h>

typedef struct {
  gboolean is_done, has_picture;
  GError *error;
} Taking;

static void
taken_cb (GObject *source, GAsyncResult *result, gpointer data)
{
  Taking *taking = data;
  g_autoptr (GFile) file = NULL;
  g_autoptr (KsPixels) pixels = NULL;

  taking->has_picture =
      ks_capture_take_finish (KS_CAPTURE (source), result, &file, &pixels, &taking->error);
  g_assert_true (!taking->has_picture || (file != NULL) != (pixels != NULL));
  taking->is_done = TRUE;
}

static gboolean
stop_cb (gpointer loop)
{
  g_main_loop_quit (loop);
  return G_SOURCE_REMOVE;
}

/* A source is there when the machine has it; a portal that nobody answers for is none. */
static void
test_sources (void)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr (GPtrArray) cameras = ks_camera_list (NULL, NULL);
  KsCapture *capture = ks_capture_new ();

  g_assert_false (ks_capture_has (capture, KS_CAPTURE_SCREEN)); /* nothing is waited for */
  g_assert_false (ks_capture_has (capture, KS_CAPTURE_CAMERA));
  g_timeout_add (4000, stop_cb, loop);
  if (cameras->len > 0)
    g_signal_connect_swapped (capture, "changed", G_CALLBACK (g_main_loop_quit), loop);
  g_main_loop_run (loop);
  g_assert_cmpint (ks_capture_has (capture, KS_CAPTURE_CAMERA), ==, cameras->len > 0);
  g_assert_finalize_object (capture);
}

/* Without a camera taking one fails with a sentence; a taking that was given up says that. */
static void
test_taking (void)
{
  g_autoptr (GPtrArray) cameras = ks_camera_list (NULL, NULL);
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (KsCapture) capture = ks_capture_new ();
  Taking taking = {0};

  g_cancellable_cancel (cancelled);
  ks_capture_take_async (capture, KS_CAPTURE_CAMERA, cancelled, taken_cb, &taking);
  while (!taking.is_done)
    g_main_context_iteration (NULL, TRUE);
  g_assert_error (taking.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&taking.error);
  if (cameras->len > 0)
    return; /* no light goes on for a test */
  taking.is_done = FALSE;
  ks_capture_take_async (capture, KS_CAPTURE_CAMERA, NULL, taken_cb, &taking);
  while (!taking.is_done)
    g_main_context_iteration (NULL, TRUE);
  g_assert_error (taking.error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED);
  g_clear_error (&taking.error);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/capture/sources", test_sources);
  g_test_add_func ("/capture/taking", test_taking);
  return g_test_run ();
}

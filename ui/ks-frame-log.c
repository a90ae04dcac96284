/* ks-frame-log.c - see ks-frame-log.h.
 * Frames are kept in memory until the window goes: writing would be a stall of its own. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-frame-log.h"

#include <stdio.h>

typedef struct {
  gint64 begin_us;
  guint interval_us, paint_us;
} Frame;

typedef struct {
  FILE *file;
  GArray *frames;
  gint64 begin_us; /* of the frame that is being made, or the last one */
  guint interval_us;
  gboolean is_painted; /* the first frame was */
} FrameLog;

static void
before_paint_cb (GdkFrameClock *clock, FrameLog *log)
{
  gint64 now_us = g_get_monotonic_time ();

  log->interval_us = log->begin_us == 0 ? 0 : (guint)(now_us - log->begin_us);
  log->begin_us = now_us;
}

static void
after_paint_cb (GdkFrameClock *clock, FrameLog *log)
{
  gint64 now_us = g_get_monotonic_time ();
  Frame frame = {log->begin_us, log->interval_us, (guint)(now_us - log->begin_us)};

  if (!log->is_painted) {
    fprintf (log->file, "first-frame %" G_GINT64_FORMAT "\n", now_us);
    fflush (log->file);
    log->is_painted = TRUE;
  }
  g_array_append_val (log->frames, frame);
}

static gboolean
tick_cb (GtkWidget *widget, GdkFrameClock *clock, gpointer data)
{
  return G_SOURCE_CONTINUE;
}

static void
map_cb (GtkWidget *window, FrameLog *log)
{
  GdkFrameClock *clock = gtk_widget_get_frame_clock (window);

  g_signal_connect (clock, "before-paint", G_CALLBACK (before_paint_cb), log);
  g_signal_connect (clock, "after-paint", G_CALLBACK (after_paint_cb), log);
  gtk_widget_add_tick_callback (window, tick_cb, NULL, NULL);
  g_signal_handlers_disconnect_by_func (window, map_cb, log);
}

static void
unrealize_cb (GtkWidget *window, FrameLog *log)
{
  g_signal_handlers_disconnect_by_data (gtk_widget_get_frame_clock (window), log);
  for (guint i = 0; i < log->frames->len; i++) {
    const Frame *frame = &g_array_index (log->frames, Frame, i);

    fprintf (log->file, "frame %" G_GINT64_FORMAT " %u %u\n", frame->begin_us, frame->interval_us,
             frame->paint_us);
  }
  fflush (log->file);
  g_array_set_size (log->frames, 0);
}

static void
frame_log_free (gpointer data, GClosure *closure)
{
  FrameLog *log = data;

  fclose (log->file);
  g_array_unref (log->frames);
  g_free (log);
}

void
ks_frame_log_start (GtkWindow *window)
{
  const char *path = g_getenv ("KEEPSAKE_FRAME_LOG");
  FILE *file = path == NULL ? NULL : fopen (path, "ae");
  FrameLog *log = NULL;

  g_return_if_fail (GTK_IS_WINDOW (window));

  if (file == NULL)
    return;
  log = g_new0 (FrameLog, 1);
  log->file = file;
  log->frames = g_array_new (FALSE, FALSE, sizeof (Frame));
  g_signal_connect (window, "map", G_CALLBACK (map_cb), log);
  g_signal_connect_data (window, "unrealize", G_CALLBACK (unrealize_cb), log, frame_log_free, 0);
}

/* ks-frames-preview.h - which frames of a video go to the model: how they are taken, what they look
 * like, when they are shown and what they cost; and that the sound is not heard.
 * Signal: "chosen" when the user wants other frames (ks_frames_preview_get_choice says which),
 * after a short rest.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-pixels.h"

#include <adwaita.h>

G_BEGIN_DECLS

typedef enum {
  KS_FRAMES_COUNT,    /* n_frame of them, evenly over the time */
  KS_FRAMES_INTERVAL, /* one every interval_ms, n_frame at most */
  KS_FRAMES_SCENES,   /* the first of every scene, n_frame at most */
  KS_N_FRAMES_MODE
} KsFramesMode;

typedef struct {
  KsFramesMode mode;
  guint n_frame;
  guint interval_ms;
} KsFramesChoice;

#define KS_FRAMES_MAX 256u

#define KS_TYPE_FRAMES_PREVIEW (ks_frames_preview_get_type ())
G_DECLARE_FINAL_TYPE (KsFramesPreview, ks_frames_preview, KS, FRAMES_PREVIEW, AdwBin)

GtkWidget *ks_frames_preview_new (void);
void ks_frames_preview_set_choice (KsFramesPreview *self, const KsFramesChoice *choice);
void ks_frames_preview_get_choice (KsFramesPreview *self, KsFramesChoice *out_choice);
/* Frames are being taken: what is shown is older than the choice. */
void ks_frames_preview_set_busy (KsFramesPreview *self, gboolean is_busy);
/* Why there are no frames, or what is the matter with them; NULL = nothing. */
void ks_frames_preview_set_problem (KsFramesPreview *self, const char *problem);
/* Of frames that were sent there is nothing to choose. */
void ks_frames_preview_hide_choice (KsFramesPreview *self);
/* Whether the model takes them two by two; said with the next frames. */
void ks_frames_preview_set_in_pairs (KsFramesPreview *self, gboolean in_pairs);
void ks_frames_preview_set_has_sound (KsFramesPreview *self, gboolean has_sound);

typedef struct {
  KsPixels *pixels; /* borrowed; NULL = none */
  gint64 time_us;
} KsFramesEntry;

/* In the order of their times, in place of those before.  n_token: what all of them cost together,
 * 0 = not known; n_kept: what memory keeps, 0 = not known. */
void ks_frames_preview_set_frames (KsFramesPreview *self, const KsFramesEntry *entries,
                                   guint n_entry, guint n_token, guint64 n_kept);

/* "0:03.2", "1:02:03" (transfer full) */
char *ks_frames_dup_time (gint64 time_us);

G_END_DECLS

/* ks-eyes.h - what a loaded model can see, as plain numbers: which pictures it takes, and what one
 * costs in tokens before it is encoded.
 * Threads: a copy belongs to its holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/vision-prep.h"

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
  gboolean sees;  /* a vision model is loaded */
  gboolean pairs; /* it takes the frames of a video two by two */
  ks_vision_prep prep;
  ks_vision_limits limits;
  guint n_ctx_train; /* tokens of a conversation that the model was trained for; 0 = not known */
} KsEyes;

/* What the pictures of a file cost. */
typedef struct {
  guint n_token;
  guint n_trained;     /* KsEyes' n_ctx_train where they take more than half of it, else 0 */
  gboolean can_shrink; /* smaller pictures take fewer */
} KsEyesCost;

/* The size that decoding gives a picture, at most max_side_px a side. */
void ks_eyes_fit_size (guint *width_px, guint *height_px, guint max_side_px);
/* Visual tokens of a picture of that size; 0 when it is not seen: *out_problem (may be NULL) then
 * says why, or stays NULL for a blind model. (transfer full) */
guint ks_eyes_count_tokens (const KsEyes *eyes, guint width_px, guint height_px,
                            char **out_problem);
/* n_picture of them, each of n_each tokens. */
KsEyesCost ks_eyes_weigh (const KsEyes *eyes, guint n_picture, guint n_each);

G_END_DECLS

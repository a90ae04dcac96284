/* ks-sight.h - the eyes of a loaded model: its vision tower, what it made of pictures (each encoded
 * once), and the memory that takes.
 * The memory target pays for the tower's weights, from the first picture on also for the scratch of
 * the largest one so far, its embeddings, and a share of the room for more of them.
 * Threads: engine. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-embed-cache.h"
#include "app/ks-eyes.h"
#include "app/ks-picture-loader.h"

G_BEGIN_DECLS

typedef struct _KsSight KsSight;

typedef struct {
  const char *path;     /* of the mmproj file */
  const char *hash;     /* its SHA-256, NULL = nothing is kept on the disk */
  ks_compute_mode mode; /* of the device */
  ks_vision_limits limits;
  ks_vision_zip zip;          /* fewer tokens of every view; they are kept in memory only */
  KsEmbedStore *store;        /* NULL = memory only */
  guint64 memory_quota_bytes; /* for embeddings in memory */
} KsSightOptions;

/* Of the largest picture: while it is encoded, and what comes of it. */
typedef struct {
  guint64 scratch_bytes, embed_bytes;
} KsSightRoom;

/* Errors: the engine's sentences, also that the file does not belong to the model. */
KsSight *ks_sight_open (ks_alloc *alloc, ks_backend *be, const ks_model *model,
                        const KsSightOptions *options, GError **error);
void ks_sight_free (KsSight *sight); /* NULL is allowed */
KsEyes ks_sight_get_eyes (const KsSight *sight);
ks_vision_family ks_sight_get_family (const KsSight *sight);
/* Tokens that are left of a view of a picture. */
guint ks_sight_count_view_tok (const KsSight *sight, const ks_vision_plan *plan);
/* Tokens of a view that one pass has to hold whole (Gemma 3); 0 = none. */
guint ks_sight_get_view_tok (const KsSight *sight);
guint64 ks_sight_get_weight_bytes (const KsSight *sight);
/* What there has to be: weights, and room for the largest picture so far. */
guint64 ks_sight_get_needed_bytes (const KsSight *sight);
/* Room that pictures take: what is booked; widened for a picture of a plan, as if it had to be
 * encoded, so that what is left for keys and values does not depend on what was kept of earlier
 * runs; and the whole with the weights. */
KsSightRoom ks_sight_get_room (const KsSight *sight);
void ks_sight_widen_room (const KsSight *sight, const ks_vision_plan *plan, KsSightRoom *room);
guint64 ks_sight_count_needed_bytes (const KsSight *sight, const KsSightRoom *room);
/* Most scratch that a picture of this plan may take from now on, or the least it can do with where
 * that is more; large ones are then worked on with rows of half precision and few heads at a time.
 * 0 = as exact as the engine's own limit allows. */
void ks_sight_limit_scratch (KsSight *sight, const ks_vision_plan *plan, guint64 n_bytes);
/* Room for a picture as large as the caps allow, without the weights. */
guint64 ks_sight_count_largest_bytes (const KsSight *sight);
/* Everything that the memory target pays for: with what is spared for more embeddings. */
guint64 ks_sight_get_device_bytes (const KsSight *sight);
/* The same with the embeddings that are there in place of the room for them. */
guint64 ks_sight_get_used_bytes (const KsSight *sight);
/* Books that; it is not given back before ks_sight_forget_room. */
void ks_sight_book (KsSight *sight, const KsSightRoom *room);
void ks_sight_forget_room (KsSight *sight);
/* Bytes that may be spared, once there are pictures; the quota is the most. */
void ks_sight_set_spare_bytes (KsSight *sight, guint64 n_bytes);
/* Bytes that are taken now, and were at most so far, without the weights as they lie in the file.
 */
guint64 ks_sight_get_held_bytes (const KsSight *sight);
guint64 ks_sight_get_peak_bytes (const KsSight *sight);
/* Weights and what is taken now: what is booked, but only while it is used. */
guint64 ks_sight_get_present_bytes (const KsSight *sight);
/* Whether what falls out of memory is found on the disk. */
gboolean ks_sight_has_disk (const KsSight *sight);
KsEmbedCounts ks_sight_get_counts (KsSight *sight);

/* Sizes of a picture that was encoded before. */
gboolean ks_sight_find_plan (KsSight *sight, const KsPicture *picture, ks_vision_plan *out_plan,
                             double *out_time_s);
/* Its embeddings as the scratch of now would make them; NULL when it has to be encoded.  Borrowed
 * until the next call. */
const ks_vision_embeds *ks_sight_find (KsSight *sight, const KsPicture *picture);
gboolean ks_sight_make_plan (KsSight *sight, const KsPicture *picture, const KsPictureRgb *rgb,
                             ks_vision_plan *out, GError **error);
/* Encodes pixels by their plan; they are freed as soon as they are resized.  Borrowed as above. */
const ks_vision_embeds *ks_sight_encode (KsSight *sight, const KsPicture *picture,
                                         KsPictureRgb *rgb, const ks_vision_plan *plan,
                                         const ks_vision_hooks *hooks, GError **error);

G_END_DECLS

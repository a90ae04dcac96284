/* ks-engine-setup.h - what has to be open before a timeline can run: allocator, device, model,
 * gate, eyes, page pool under the memory target; built from one list of options. Not here: threads,
 * conversations.  Threads: used by one thread, the engine's. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-engine-job.h"
#include "app/ks-policy-options.h"
#include "app/ks-sight.h"
#include "app/ks-snapshot-cache.h"
#include "engine/budget.h"
#include "engine/timeline.h"

#include <glib.h>

G_BEGIN_DECLS

/* Everything that decides how a model is run.  0, NULL and -1 mean the default. */
typedef struct {
  char *model_path;
  char *gate_path;           /* NULL = none */
  char *mmproj_path;         /* vision tower; NULL = the model stays blind */
  char *mmproj_hash;         /* its SHA-256; NULL = embeddings are kept in memory only */
  gboolean mmproj_was_found; /* nobody asked for it: if it cannot be used, the model is blind */
  ks_vision_limits vision_limits;
  gboolean asks_pixels;       /* its pixels were asked for just now: say so where they do nothing */
  ks_vision_zip vision_zip;   /* fewer tokens of every view; zeros = all */
  ks_fastv fastv;             /* fewer of them in later layers; layer 0 = all */
  KsMediaSampling sampling;   /* of videos that are attached; mode 0 = as the settings say */
  gboolean has_page_mode;     /* how all pages of documents go to the model, else each on its own */
  guint page_mode;            /* a KsPageMode */
  gboolean ocr;               /* words in pictures that are attached are recognised */
  KsEmbedStore *embeds;       /* where embeddings are kept on the disk, or NULL */
  guint64 embed_memory_bytes; /* at most for embeddings in memory */
  char *model_hash, *gate_hash;  /* SHA-256 of the files; NULL = states are kept in memory only */
  KsSnapshotStore *snapshots;    /* where states of conversations are kept on the disk, or NULL */
  guint64 snapshot_memory_bytes; /* at most for those in memory; 0 = none are kept */
  ks_budget_request budget;
  ks_dtype kv_dtype;
  ks_compute_mode mode;
  char *isa;                     /* CPU instruction set by name, for checks */
  guint n_thread, chunk, buffer; /* 0 = default */
  guint page_entries;
  guint n_ctx; /* 0 = trained length */
  int policy;  /* a ks_policy, -1 = dbtrimkv with a gate, else keydiff-global */
  KsPolicyOptions policy_options;
  guint n_aux;          /* numbers more an entry, for policies that are chosen later (H2O: 1) */
  gboolean no_repack;   /* weights as they lie in the file: less memory, slower */
  gboolean late_target; /* a target is set after loading: no copy of the weights before that */
} KsEngineOptions;

KsEngineOptions *ks_engine_options_new (void);
KsEngineOptions *ks_engine_options_copy (const KsEngineOptions *options);
void ks_engine_options_free (KsEngineOptions *options);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsEngineOptions, ks_engine_options_free)

typedef struct {
  ks_alloc *alloc;
  ks_backend be;
  ks_model *model;
  ks_gate *gate;         /* or NULL */
  KsSight *sight;        /* or NULL */
  KsSnapshotCache *kept; /* states of conversations; NULL = none are kept */
  ks_kv_layout layout;
  ks_budget_plan plan;
  ks_kv_pool *pool;
  ks_evict_params evict;
  KsPolicyOptions policy_options;
  guint64 whole_entries;  /* mode faithful: M, where the pool is for a whole prompt; else 0 */
  gboolean fixed_entries; /* M was asked for, not bytes */
  gboolean fixed_buffer;  /* B was asked for */
  guint chunk, buffer;    /* as asked for; the plan may have less */
  guint max_pos;          /* positions that the model knows: its trained length, or more where that
                             was asked for */
  ks_compute_mode mode;
  ks_fastv fastv;
  gboolean no_repack;
  ks_budget_request request; /* what the plan is for; with eyes its total may be less than works */
  guint64 useful_bytes;      /* what everything but a copy of the weights takes when
                                ks_engine_setup_get_useful_entries are kept */
  guint64 copy_room;         /* of the last copy */
  char *model_path, *gate_path;
  guint n_user;       /* timelines that are open on it */
  GPtrArray *notices; /* sentences to tell the user once */
} KsEngineSetup;

/* Without a copy of the weights yet.  A model with eyes is loaded under a total that is too small
 * as well: what a message needs is known when it is asked, and one refusal shall name it. NULL and
 * error: the engine's own sentence (KS_ENGINE_ERROR). */
KsEngineSetup *ks_engine_setup_new (const KsEngineOptions *options, GError **error);
/* Every timeline must be gone. */
void ks_engine_setup_free (KsEngineSetup *setup);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsEngineSetup, ks_engine_setup_free)

/* How messages are framed: the model's own chat format, ChatML where it is not known, and Vicuna's
 * where the eyes are LLaVA's, whose models know that one. */
const ks_chat_template *ks_engine_setup_get_chat_template (const KsEngineSetup *setup);
/* What the target has to pay for because the model sees: 0 for a blind one. */
guint64 ks_engine_setup_get_needed_bytes (const KsEngineSetup *setup);
/* A part of what total_bytes leave over least_bytes may go to embeddings; the result is what the
 * eyes take of the target in all. */
guint64 ks_engine_setup_share_spare (KsEngineSetup *setup, guint64 total_bytes,
                                     guint64 least_bytes);
/* The target to name where least_bytes are needed with passes as long as the plan has them: under a
 * larger one they may be longer, and take more.  Whole tenths of a mebibyte. */
/* The smallest target for a conversation that is under way: it keeps the passes that it began with,
 * so the longest ones are counted.  Whole tenths of a mebibyte. */
guint64 ks_engine_setup_count_least_target (const KsEngineSetup *setup);
guint64 ks_engine_setup_count_working_target (const KsEngineSetup *setup, guint64 least_bytes);
/* While no timeline is open: room that pictures had taken goes back to keys and values. */
gboolean ks_engine_setup_forget_pictures (KsEngineSetup *setup, GError **error);

/* Entries a stream that a target should pay for before memory goes into speed: an eighth of the
 * trained length, at least 1,024 and at most 4,096, never more than that length. */
guint64 ks_engine_setup_get_useful_entries (const KsEngineSetup *setup);
/* While no timeline is open: makes the copy of the weights in the order of the device, as much of
 * it as the target leaves room for (without a target: half of the free memory), and plans again.
 * Ends with KS_ERR_CANCELLED when job is cancelled. */
gboolean ks_engine_setup_make_copy (KsEngineSetup *setup, KsEngineJob *job, GError **error);
/* Between two steps, also with timelines: the copy goes when target_bytes leave no room for it.  It
 * comes again with ks_engine_setup_make_copy. */
void ks_engine_setup_limit_copy (KsEngineSetup *setup, guint64 target_bytes);

/* A policy with what the options ask of any of them. */
ks_evict_params ks_engine_setup_make_evict_params (const KsEngineSetup *setup, ks_policy policy);
/* A new target for everything while no timeline is open; below the smallest that works the smallest
 * is taken.  The plan tells what came of it. */
gboolean ks_engine_setup_set_target (KsEngineSetup *setup, guint64 total_bytes, GError **error);
/* The target that keeps entries in every stream, on average, beside a whole copy of the weights and
 * what the eyes take for a picture as large as their caps allow. */
gboolean ks_engine_setup_count_target (KsEngineSetup *setup, guint64 entries,
                                       guint64 *out_total_bytes, GError **error);

/* A timeline as sessions use it: plan's chunk and buffer, forced eviction around chunks. */
ks_timeline_params ks_engine_setup_get_timeline_params (const KsEngineSetup *setup);
ks_timeline *ks_engine_setup_new_timeline (KsEngineSetup *setup, GError **error);

G_END_DECLS

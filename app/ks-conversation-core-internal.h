/* ks-conversation-core-internal.h - what the parts of a conversation's engine side share:
 * ks-conversation-core.c (requests, answers), ks-conversation-read.c (messages become tokens that
 * are read), ks-conversation-look.c (pictures become embeddings), ks-conversation-keep.c (states
 * are kept and recalled), ks-conversation-pin.c (what no eviction takes). Threads: engine thread,
 * except what lies under the lock. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-conversation-core.h"
#include "app/ks-picture-loader.h"
#include "app/ks-pin.h"
#include "app/ks-snapshot-cache.h"

G_BEGIN_DECLS

/* One view of a picture among the tokens of the timeline. */
typedef struct {
  guint32 first, n_tok; /* sequence indices, or places in a list that is going to be read */
  guint32 view;
  guint32 t_shift; /* as in ks_visual_run */
  gboolean follows;
  guint turn, number; /* number: of the picture within its turn, from 1 */
  KsPicture *picture; /* strong */
} KsViewRun;

struct _KsConversationCore {
  KsEngineSetup *setup; /* borrowed from the engine; NULL until the first use */
  ks_timeline *tl;
  ks_evict_params evict;
  ks_sampler *sampler;
  gboolean has_head; /* the sampler was told of the last token's logits */
  ks_text_stream *stream;
  guint turn;           /* number of the next turn */
  guint32 turn_start;   /* tokens before the message that is being read */
  guint32 answer_start; /* tokens before the answer that stands at the end */
  ks_token last_id;     /* last token of an open answer */
  gboolean answer_open; /* an answer stands at the end of the timeline, not closed yet */
  KsAnswerEnd open_end; /* how that answer ended; NONE as soon as another message is read */
  gboolean unread;      /* reading a message was broken off: drop what was read of it */
  gboolean rereading;   /* turns that are stored already: they may not fail for one picture */
  gboolean told_length;
  GHashTable *told_lost; /* names of files that cannot be read any more */
  gboolean at_start;     /* no text of the answer has been shown yet */
  KsPictureLoader *loader;
  GPtrArray *asked; /* of KsPicture: all that the request brings; NULL between requests */
  guint64 n_looked; /* tokens of the turn's pictures, while they are looked at */
  GArray *runs;     /* of KsViewRun: every view in the timeline, in its order */
  GPtrArray *seen;  /* of KsSeenPicture; replaced, never changed, when a picture is added */
  KsAnswerInfo answer;
  gint64 session;        /* whose states are kept; 0 = none are */
  gboolean has_chain;    /* chain and asked_hash are right */
  KsTurnHash chain;      /* what stands in front of the message that is read next */
  KsTurnHash asked_hash; /* the same with the last message */
  GString *answer_text;  /* of the last answer, as it was shown */
  GBytes *held;          /* that the text stream of a recalled answer held back; or NULL */
  gboolean has_rng, told_scarce;
  guint64 rng[2];        /* draws of a recalled answer */
  GPtrArray *pins;       /* of KsPin: what is wanted of the turns that are read */
  GPtrArray *shown_pins; /* a copy, replaced when they change; NULL = none */
  guint32 pin_end;       /* up to where the last turn is pinned, if it is */
  gboolean told_pins;    /* that not all of them fit */
  GMutex lock;
  KsMemoryStats *shown_stats; /* under lock */
  KsAnswerInfo shown_answer;  /* under lock */
};

/* --- ks-conversation-core.c --- */
void ks_core_publish (KsConversationCore *core);
gboolean ks_core_check_cancelled (KsEngineJob *job, GError **error);
/* Once, as soon as it is known that n_more tokens come: the model has never seen anything this
 * long.
 */
void ks_core_tell_length (KsConversationCore *core, KsEngineJob *job, guint64 n_more);
/* A target for everything, in force at once. */
gboolean ks_core_set_total (KsConversationCore *core, guint64 total_bytes, GError **error);

/* --- ks-conversation-read.c --- */
GArray *ks_core_new_runs (void);
/* Forgets the views that lie behind n_token tokens. */
void ks_core_cut_runs (KsConversationCore *core, guint32 n_token);
gboolean ks_core_read_message (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                               const char *system, const KsTurnText *turn, GError **error);
/* Pictures of all views and of a turn (NULL = none). (transfer full) of KsPicture */
GPtrArray *ks_core_list_pictures (KsConversationCore *core, const KsTurnText *turn);
/* In place of those that are there. */
void ks_core_set_runs (KsConversationCore *core, GArray *take_runs);
/* Turns from number first on, behind those before; the last one's answer stays open. */
gboolean ks_core_read_turns (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                             const char *system, GPtrArray *turns, guint first, GError **error);

/* --- ks-conversation-keep.c --- */
/* Nothing was read yet: what stands in front of the first message. */
void ks_core_begin_chain (KsConversationCore *core, const char *system);
/* Keeps the state, which content and pins stand for; with_logits: an answer can go on or begin
 * there. */
void ks_core_keep (KsConversationCore *core, KsEngineJob *job, const KsTurnHash *content,
                   gboolean with_logits);
/* In place of what the timeline holds the state of n_turn turns that content stands for; FALSE when
 * there is none that can be used, and the timeline is as before, or empty.  pictures (of
 * KsPicture): those that it may hold.  chain is the caller's. */
gboolean ks_core_recall (KsConversationCore *core, KsEngineJob *job, const KsTurnHash *content,
                         guint n_turn, gboolean need_logits, GPtrArray *pictures);
/* The longest beginning of turns (at least one) that is kept; how many of them the timeline holds
 * then.  The chain is that of all turns. */
guint ks_core_recall_turns (KsConversationCore *core, KsEngineJob *job, GPtrArray *turns,
                            GPtrArray *pictures);

/* --- ks-conversation-pin.c --- */
/* Those of turns from number turn on are wanted no more; takes effect as the turns go. */
void ks_core_forget_pins (KsConversationCore *core, guint turn);
/* What is pinned of a turn that will be read as number. */
void ks_core_want_pins (KsConversationCore *core, guint number, const KsTurnText *turn);
/* Pins what is wanted of a turn before its n_tok tokens are read; runs: its views among them. */
void ks_core_pin_turn (KsConversationCore *core, KsEngineJob *job, guint turn, guint32 n_tok,
                       const KsViewRun *runs, guint n_run);
/* Anew, in what stands in the timeline. */
void ks_core_pin_again (KsConversationCore *core, KsEngineJob *job);
/* Before each token of an answer, and at its end: the pin of its turn grows with it. */
void ks_core_pin_answer (KsConversationCore *core, KsEngineJob *job);
void ks_core_end_pin (KsConversationCore *core);
/* What a state is kept under: its content, and what is pinned in its first n_turn turns. */
void ks_core_name_state (KsConversationCore *core, const KsTurnHash *content, guint n_turn,
                         KsTurnHash *out);

/* --- ks-conversation-look.c --- */
/* Room in the target for a picture that was looked at before; TRUE when its size is not known. */
gboolean ks_core_book (KsConversationCore *core, KsEngineJob *job, const KsPicture *picture,
                       GError **error);
/* With eyes a model is there under a target that is too small as well: refuses what is asked, with
 * a target that works for all of it. */
gboolean ks_core_check_target (KsConversationCore *core, KsEngineJob *job, GError **error);
/* Once for each name: its file cannot be read any more. */
void ks_core_tell_lost (KsConversationCore *core, KsEngineJob *job, const char *name);
/* The same for all texts of a turn, read or recalled. */
void ks_core_tell_lost_texts (KsConversationCore *core, KsEngineJob *job, const KsTurnText *turn);
/* Sees to it that every picture of a turn was encoded, and says how each stands in its message:
 * out [turn->pictures->len].  *out_rest (transfer full): the message as it is without those that
 * cannot be read any more, to which out belongs then; NULL when all are there. */
gboolean ks_core_look (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                       const KsTurnText *turn, ks_chat_visual *out, KsTurnText **out_rest,
                       GError **error);
/* Embeddings of a picture for reading; borrowed until the next call. */
const ks_vision_embeds *ks_core_get_embeds (KsConversationCore *core, KsEngine *engine,
                                            KsEngineJob *job, const KsPicture *picture,
                                            GError **error);

G_END_DECLS

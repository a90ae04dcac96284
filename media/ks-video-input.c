/* ks-video-input.c - see ks-video-input.h.
 * Times are microseconds from the start of the file as a player counts it.  Seeking is trusted only
 * as far as its first frame shows that it went where it should; otherwise the file is opened again
 * and decoded from its start. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-video-input.h"

#include "media/ks-frame-picture.h"
#include "media/ks-video-file.h"

#include <libavcodec/avcodec.h>
#include <libavutil/cpu.h>
#include <libavutil/display.h>
#include <string.h>

#define MAX_PIXELS (G_GINT64_CONSTANT (100) * 1000 * 1000)
#define MAX_PACKETS 4000000u /* 18 hours of 60 frames a second */
#define MAX_ERRORS 64u       /* in a row, then the rest is lost */
#define SLACK_US 1000
#define SKIP_US 500000 /* before the frame that is wanted, frames that nobody needs are skipped */
#define EARLIER_US 3000000 /* how much farther back a seek that came too late is tried again */
#define STILL_PACKETS 100u /* so often the program hears that the work goes on */
#define CUT_US 250000      /* less is missing at the end of many files */

struct _KsVideoInput {
  const KsLoaderJob *job;
  AVFormatContext *file;
  AVStream *stream; /* of file */
  AVCodecContext *codec;
  AVPacket *packet;
  AVFrame *shown, *next; /* next: decoded already, shown later */
  gint64 shown_us, next_us;
  gboolean has_shown, has_next, at_end, is_drained;
  gboolean is_exact;    /* every packet had a time of its own */
  gboolean is_linear;   /* seeking went wrong */
  gboolean is_aligned;  /* shift_us is known */
  gboolean is_rough;    /* frames are decoded to be compared only */
  GArray *times, *keys; /* gint64, ascending; keys: where decoding can begin */
  gint64 earliest_us;   /* the first that came when it was decoded from the start */
  gint64 start_us, frame_us, duration_us;
  gint64 shift_us; /* how much later frames come than their packets, where only these have times */
  guint told, n_fed; /* what was said last of the progress; packets since then */
  guint32 warnings;
  gboolean has_sound;
};

void
ks_video_input_prepare (void)
{
  av_log_set_level (AV_LOG_QUIET);
  (void)av_get_cpu_flags ();
}

/* --- opening --- */

static void
find_stream (KsVideoInput *self)
{
  const int odd = AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS;
  int index = av_find_best_stream (self->file, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);

  if (index < 0 || (self->file->streams[index]->disposition & odd) != 0)
    ks_answer_fault (KS_WIRE_FAULT_NO_VIDEO, KS_WIRE_VIDEO, 0);
  self->stream = self->file->streams[index];
}

static void
open_codec (KsVideoInput *self)
{
  const AVCodecParameters *sizes = self->stream->codecpar;
  const AVCodec *codec = avcodec_find_decoder (sizes->codec_id);

  if (codec == NULL)
    ks_answer_fault (KS_WIRE_FAULT_CODEC, 0, 0);
  if (sizes->width > 0 && sizes->height > 0 && sizes->width > MAX_PIXELS / sizes->height)
    ks_answer_fault (KS_WIRE_FAULT_PIXELS, (guint32)sizes->width, (guint32)sizes->height);
  self->codec = avcodec_alloc_context3 (codec);
  self->packet = av_packet_alloc ();
  self->shown = av_frame_alloc ();
  self->next = av_frame_alloc ();
  if (self->codec == NULL || self->packet == NULL || self->shown == NULL || self->next == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  self->codec->thread_count = 1;
  self->codec->max_pixels = MAX_PIXELS;
  self->codec->pkt_timebase = self->stream->time_base;
  if (avcodec_parameters_to_context (self->codec, sizes) < 0 ||
      avcodec_open2 (self->codec, codec, NULL) != 0)
    ks_answer_fault (KS_WIRE_FAULT_CODEC, 0, 0);
}

static gint64
to_us (const KsVideoInput *self, const AVStream *stream, gint64 ts)
{
  gint64 us = av_rescale_q (ts, stream->time_base, AV_TIME_BASE_Q);

  /* The difference of two numbers from a file may not fit. */
  if (__builtin_sub_overflow (us, self->start_us, &us))
    us = 0;
  return CLAMP (us, -KS_MEDIA_MAX_TIME_US, KS_MEDIA_MAX_TIME_US);
}

static void
set_clock (KsVideoInput *self)
{
  AVRational rate = av_guess_frame_rate (self->file, self->stream, NULL);

  if (self->file->start_time != AV_NOPTS_VALUE)
    self->start_us = CLAMP (self->file->start_time, -KS_MEDIA_MAX_TIME_US, KS_MEDIA_MAX_TIME_US);
  self->frame_us = 40000;
  if (rate.num > 0 && rate.den > 0)
    self->frame_us = av_rescale (1000000, rate.den, rate.num);
  self->frame_us = CLAMP (self->frame_us, 1, G_GINT64_CONSTANT (3600) * 1000000);
}

/* --- times of all packets --- */

/* One picture of the video, decoded or not. */
typedef struct {
  gint64 shown_us, decoded_us; /* G_MININT64: not said */
  gboolean is_key;
} Packet;

typedef struct {
  GArray *packets;
  gint64 end_us;   /* of everything, sound too */
  gboolean is_cut; /* reading broke off, or the last packet is not whole */
  guint n_error;   /* in a row */
} Scan;

static gint64
get_us (const KsVideoInput *self, const AVStream *stream, gint64 ts)
{
  return ts != AV_NOPTS_VALUE ? to_us (self, stream, ts) : G_MININT64;
}

static void
note_packet (KsVideoInput *self, Scan *scan)
{
  const AVPacket *packet = self->packet;
  const AVStream *stream = self->file->streams[packet->stream_index];
  gint64 length_us = av_rescale_q (MAX (packet->duration, 0), stream->time_base, AV_TIME_BASE_Q);
  Packet found = {.shown_us = get_us (self, stream, packet->pts),
                  .decoded_us = get_us (self, stream, packet->dts),
                  .is_key = (packet->flags & AV_PKT_FLAG_KEY) != 0};

  if (stream->codecpar->codec_type == AVMEDIA_TYPE_AUDIO)
    self->has_sound = TRUE;
  scan->end_us = MAX (scan->end_us, MAX (found.shown_us, found.decoded_us) +
                                        CLAMP (length_us, 0, KS_MEDIA_MAX_TIME_US));
  if (stream != self->stream)
    return;
  scan->is_cut = (packet->flags & AV_PKT_FLAG_CORRUPT) != 0;
  if (scan->is_cut || (packet->flags & AV_PKT_FLAG_DISCARD) != 0 || packet->size == 0)
    return;
  if (found.shown_us == G_MININT64)
    self->is_exact = FALSE;
  g_array_append_val (scan->packets, found);
}

/* The clock of all frames: when they are shown, or, when not every packet says that, when they are
 * decoded, or, without any clock, their number. */
static void
set_times (KsVideoInput *self, const Scan *scan)
{
  gint64 first_us = 0;

  for (guint i = 0; i < scan->packets->len; i++) {
    const Packet *packet = &g_array_index (scan->packets, Packet, i);
    gint64 us = self->is_exact ? packet->shown_us : packet->decoded_us;

    if (us == G_MININT64)
      us = i * self->frame_us;
    if (i == 0 && !self->is_exact)
      first_us = us;
    us = CLAMP (us - first_us, 0, KS_MEDIA_MAX_TIME_US);
    g_array_append_val (self->times, us);
    if (packet->is_key)
      g_array_append_val (self->keys, us);
  }
  self->start_us += first_us;
}

static gint
compare_times (gconstpointer a, gconstpointer b)
{
  gint64 left = *(const gint64 *)a, right = *(const gint64 *)b;

  return left < right ? -1 : left > right;
}

static void
sort_times (GArray *times)
{
  gint64 *data = (gint64 *)(void *)times->data;
  guint n = 0;

  g_array_sort (times, compare_times);
  for (guint i = 0; i < times->len; i++)
    if (n == 0 || data[n - 1] < data[i])
      data[n++] = data[i];
  g_array_set_size (times, n);
}

/* The length that the file states, unless it is only a guess; 0 = none. */
static gint64
get_stated_duration (const AVFormatContext *file)
{
  if (file->duration == AV_NOPTS_VALUE || file->duration < 0 ||
      file->duration_estimation_method == AVFMT_DURATION_FROM_BITRATE)
    return 0;
  return MIN (file->duration, KS_MEDIA_MAX_TIME_US);
}

static void
finish_scan (KsVideoInput *self, const Scan *scan)
{
  gint64 stated_us = get_stated_duration (self->file);
  gint64 last_us;

  if (scan->packets->len == 0)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_VIDEO, 0);
  set_times (self, scan);
  sort_times (self->times);
  sort_times (self->keys);
  last_us = g_array_index (self->times, gint64, self->times->len - 1);
  self->duration_us = CLAMP (scan->end_us, last_us, KS_MEDIA_MAX_TIME_US);
  if (scan->is_cut || stated_us - self->duration_us > MAX (CUT_US, stated_us / 50))
    self->warnings |= KS_WIRE_WARN_VIDEO_CUT;
}

void
ks_video_input_tell (KsVideoInput *self, guint permille)
{
  if (permille <= self->told && self->n_fed < STILL_PACKETS)
    return;
  self->told = MIN (MAX (permille, self->told), 1000);
  self->n_fed = 0;
  ks_answer_progress (self->told, 1000);
}

static void
scan_packets (KsVideoInput *self, guint share_permille)
{
  Scan scan = {.packets = g_array_new (FALSE, FALSE, sizeof (Packet))};

  self->times = g_array_new (FALSE, FALSE, sizeof (gint64));
  self->keys = g_array_new (FALSE, FALSE, sizeof (gint64));
  self->is_exact = TRUE;
  while (scan.n_error < MAX_ERRORS && scan.packets->len < MAX_PACKETS) {
    int code = av_read_frame (self->file, self->packet);

    if (code == AVERROR_EOF)
      break;
    if (code == AVERROR (ENOMEM))
      ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
    if (code < 0) {
      scan.n_error++;
      scan.is_cut = TRUE;
      continue;
    }
    scan.n_error = 0;
    note_packet (self, &scan);
    av_packet_unref (self->packet);
    ks_video_input_tell (self,
                         (guint)(ks_video_file_get_part (self->file, self->job) * share_permille));
  }
  finish_scan (self, &scan);
  g_array_unref (scan.packets);
  self->at_end = TRUE;
}

KsVideoInput *
ks_video_input_open (const KsLoaderJob *job, guint share_permille)
{
  KsVideoInput *self = g_new0 (KsVideoInput, 1);

  self->job = job;
  self->file = ks_video_file_open (job);
  find_stream (self);
  open_codec (self);
  set_clock (self);
  scan_packets (self, share_permille);
  return self;
}

/* --- facts --- */

void
ks_video_input_get_facts (const KsVideoInput *self, KsWireAnswer *out)
{
  out->warnings |= self->warnings;
  out->duration_us = self->duration_us;
  out->n_frames = self->times->len;
  out->has_sound = self->has_sound;
}

guint
ks_video_input_get_orientation (const KsVideoInput *self)
{
  return ks_frame_orientation (ks_video_file_get_matrix (self->stream));
}

AVRational
ks_video_input_get_aspect (const KsVideoInput *self)
{
  return av_guess_sample_aspect_ratio (self->file, self->stream, NULL);
}

const gint64 *
ks_video_input_get_times (const KsVideoInput *self, gsize *out_n)
{
  *out_n = self->times->len;
  return (const gint64 *)(const void *)self->times->data;
}

/* --- frames --- */

/* Forgets what was decoded: the next packet comes from somewhere else. */
static void
forget_frames (KsVideoInput *self)
{
  avcodec_flush_buffers (self->codec);
  av_frame_unref (self->shown);
  av_frame_unref (self->next);
  self->has_shown = self->has_next = self->at_end = self->is_drained = FALSE;
}

static void
reopen (KsVideoInput *self)
{
  int index = self->stream->index;

  ks_video_file_close (self->file);
  self->file = ks_video_file_open (self->job);
  if (index >= (int)self->file->nb_streams ||
      self->file->streams[index]->codecpar->codec_id != self->codec->codec_id)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_VIDEO, 0); /* the file changes under us */
  self->stream = self->file->streams[index];
  self->earliest_us = G_MAXINT64;
  forget_frames (self);
}

/* Time at which decoding has to begin for what is shown at time_us. */
static gint64
find_key (const KsVideoInput *self, gint64 time_us)
{
  gint64 key_us = g_array_index (self->times, gint64, 0);

  for (guint low = 0, high = self->keys->len; low < high;) {
    guint middle = low + (high - low) / 2;
    gint64 at_us = g_array_index (self->keys, gint64, middle);

    if (at_us <= time_us) {
      key_us = at_us;
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return key_us;
}

static void
seek (KsVideoInput *self, gint64 key_us)
{
  gint64 ts = av_rescale_q (key_us + self->start_us, AV_TIME_BASE_Q, self->stream->time_base);

  /* A key frame's own time, rounded to its clock, must not fall before it. */
  ts += av_rescale_q (SLACK_US, AV_TIME_BASE_Q, self->stream->time_base);
  if (av_seek_frame (self->file, self->stream->index, ts, AVSEEK_FLAG_BACKWARD) < 0) {
    self->is_linear = TRUE;
    reopen (self);
    return;
  }
  forget_frames (self);
}

/* Hands the next packet of the video to the decoder.  wanted_us: frames well before it may be
 * left out when no other frame needs them. */
static void
feed (KsVideoInput *self, gint64 wanted_us, gboolean keys_only)
{
  for (guint n_error = 0; n_error < MAX_ERRORS;) {
    int code = av_read_frame (self->file, self->packet);
    gboolean is_ours = code == 0 && self->packet->stream_index == self->stream->index &&
                       (self->packet->flags & AV_PKT_FLAG_CORRUPT) == 0 && self->packet->size > 0;

    if (code == AVERROR_EOF)
      break;
    n_error = code < 0 ? n_error + 1 : 0;
    self->n_fed++;
    ks_video_input_tell (self, 0);
    if (is_ours && keys_only && (self->packet->flags & AV_PKT_FLAG_KEY) == 0)
      is_ours = FALSE;
    if (is_ours) {
      gint64 time_us = get_us (self, self->stream, self->packet->pts);

      self->codec->skip_frame =
          self->is_exact && time_us < wanted_us - SKIP_US ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
      (void)avcodec_send_packet (self->codec, self->packet); /* what is damaged gives no frame */
    }
    av_packet_unref (self->packet);
    if (is_ours)
      return;
  }
  self->at_end = TRUE;
  (void)avcodec_send_packet (self->codec, NULL);
}

/* Decodes one more frame into self->next; FALSE at the end. */
static gboolean
decode_next (KsVideoInput *self, gint64 wanted_us, gboolean keys_only)
{
  gint64 before_us = self->next_us;

  for (;;) {
    int code;

    av_frame_unref (self->next);
    code = avcodec_receive_frame (self->codec, self->next);
    if (code == 0 && self->next->width > 0 && self->next->height > 0)
      break;
    if (code == AVERROR (ENOMEM))
      ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
    if (code == AVERROR_EOF || (self->at_end && code != 0)) {
      self->is_drained = TRUE;
      return self->has_next = FALSE;
    }
    if (code != 0)
      feed (self, wanted_us, keys_only);
  }
  if ((gint64)self->next->width * self->next->height > MAX_PIXELS)
    ks_answer_fault (KS_WIRE_FAULT_PIXELS, (guint32)self->next->width, (guint32)self->next->height);
  self->next_us =
      self->next->best_effort_timestamp != AV_NOPTS_VALUE
          ? to_us (self, self->stream, self->next->best_effort_timestamp) - self->shift_us
          : before_us + self->frame_us;
  self->next_us = CLAMP (self->next_us, 0, KS_MEDIA_MAX_TIME_US);
  return self->has_next = TRUE;
}

static void
step (KsVideoInput *self)
{
  AVFrame *freed = self->shown;

  self->shown = self->next;
  self->next = freed;
  self->shown_us = self->next_us;
  self->earliest_us = MIN (self->earliest_us, self->shown_us);
  self->has_shown = TRUE;
  self->has_next = FALSE;
}

/* Goes on until the frame after time_us is known. */
static void
advance (KsVideoInput *self, gint64 time_us)
{
  if (!self->has_next && !self->is_drained)
    decode_next (self, time_us, FALSE);
  while (self->has_next && (self->next_us <= time_us || !self->has_shown)) {
    step (self);
    if (!self->is_drained)
      decode_next (self, time_us, FALSE);
  }
}

/* Where packets have only the time of their decoding, frames come out with later ones.  Called when
 * the first frame is shown. */
static void
align_clock (KsVideoInput *self)
{
  gint64 first_us = g_array_index (self->times, gint64, 0);

  self->is_aligned = TRUE;
  if (self->is_exact || !self->has_shown || self->shown_us <= first_us)
    return;
  self->shift_us = self->shown_us - first_us;
  self->shown_us -= self->shift_us;
  self->next_us -= self->shift_us;
}

static gboolean
is_late (const KsVideoInput *self, gint64 time_us)
{
  return !self->has_shown || self->shown_us > time_us + SLACK_US;
}

const AVFrame *
ks_video_input_show (KsVideoInput *self, gint64 time_us, gint64 *out_time_us)
{
  /* A key frame without a time of its own may be shown later than its packet says. */
  gint64 key_us = find_key (self, self->is_exact ? time_us : time_us - EARLIER_US);

  if (is_late (self, time_us) || self->is_rough ||
      (!self->is_linear && key_us > (self->has_next ? self->next_us : self->shown_us))) {
    self->is_rough = FALSE;
    self->codec->skip_loop_filter = AVDISCARD_DEFAULT;
    if (!self->is_linear)
      seek (self, key_us);
    else if (!self->has_shown || self->shown_us > self->earliest_us)
      reopen (self);
  }
  advance (self, time_us);
  if (!self->is_aligned)
    align_clock (self);
  if (!self->is_linear && is_late (self, time_us)) {
    seek (self, MAX (key_us - EARLIER_US, 0));
    advance (self, time_us);
  }
  if (!self->is_linear && is_late (self, time_us)) {
    self->is_linear = TRUE;
    reopen (self);
    advance (self, time_us);
  }
  *out_time_us = self->shown_us;
  return self->has_shown ? self->shown : NULL;
}

const AVFrame *
ks_video_input_next (KsVideoInput *self, gboolean keys_only, gint64 *out_time_us)
{
  self->is_rough = TRUE;
  self->codec->skip_loop_filter = AVDISCARD_ALL;
  if (!self->has_next && (self->is_drained || !decode_next (self, 0, keys_only)))
    return NULL;
  step (self);
  *out_time_us = self->shown_us;
  return self->shown;
}

/* ks-still-codec.c - see ks-still-codec.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-still-codec.h"

AVCodecContext *
ks_still_codec_open (enum AVCodecID id, gint64 max_pixels)
{
  const AVCodec *codec = avcodec_find_decoder (id);
  AVCodecContext *context = codec != NULL ? avcodec_alloc_context3 (codec) : NULL;

  if (context == NULL)
    return NULL;
  context->thread_count = 1;
  context->max_pixels = max_pixels;
  if (avcodec_open2 (context, codec, NULL) != 0)
    avcodec_free_context (&context);
  return context;
}

int
ks_still_codec_decode (AVCodecContext *context, guint8 *data, gsize n, AVFrame *out)
{
  AVPacket *packet = av_packet_alloc ();
  int code;

  if (packet == NULL)
    return AVERROR (ENOMEM);
  packet->data = data;
  packet->size = (int)n;
  packet->flags = AV_PKT_FLAG_KEY;
  code = avcodec_send_packet (context, packet);
  if (code == 0)
    code = avcodec_send_packet (context, NULL); /* no more: it shall not wait for another */
  if (code == 0)
    code = avcodec_receive_frame (context, out);
  av_packet_free (&packet);
  return code;
}

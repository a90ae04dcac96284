/* ks-video-file.h - a container over the job's descriptor, and nothing else (in the worker).
 * FFmpeg's demuxers can open further files and addresses that a file names; here none can: the list
 * of formats is short, there is no protocol, and opening is refused.  The sandbox would, too. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-loader.h"

#include <libavformat/avformat.h>

G_BEGIN_DECLS

/* The open file with its streams known.  Ends the worker with a fault when it is no video file. */
AVFormatContext *ks_video_file_open (const KsLoaderJob *job);
void ks_video_file_close (AVFormatContext *file);
/* How much of the file lies behind the place that is read, 0 to 1. */
double ks_video_file_get_part (const AVFormatContext *file, const KsLoaderJob *job);
/* How the picture is to be turned: 9 numbers, or NULL. */
const gint32 *ks_video_file_get_matrix (const AVStream *stream);

G_END_DECLS

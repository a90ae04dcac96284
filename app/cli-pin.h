/* cli-pin.h - /pin and /unpin of keepsake-cli chat: what stays in memory whatever else is let go.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-answer.h"

G_BEGIN_DECLS

/* words: number of a turn from 1, and perhaps the name of a picture, page or video in it. */
gboolean cli_talk_pin (CliTalk *talk, const char *words, gboolean pinned, GError **error);

G_END_DECLS

/* ks-train-jsonl.h - one line of a JSONL file of conversations or texts.
 * {"messages": [{"role": "user", "content": "..."}]}, where a content may be a list of
 * {"type": "text", "text": "..."} and {"type": "image", "image": "FILE"}; or
 * {"conversations": [{"from": "human", "value": "..."}], "image": "FILE"} with <image> in the text
 * where a picture stands ("image", or "images", may be a list; each name has its place); or
 * {"text": "..."}.
 * Files of pictures are named relative to the folder.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-train-chat.h"

G_BEGIN_DECLS

/* A conversation, or NULL with *out_text set where the line is a text (transfer full both), or NULL
 * with error (KS_APP_ERROR_NOT_TEXT, which says what is wrong with the line).  Pictures are named,
 * not read. */
KsTrainChat *ks_train_jsonl_parse (const char *line, gsize n, const char *folder, char **out_text,
                                   GError **error);

G_END_DECLS

/* ks-export-internal.h - what the writers of the three formats share. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-export.h"

G_BEGIN_DECLS

/* Each gives the whole content. (transfer full) */
GBytes *ks_export_markdown (KsStore *store, KsSession *session, GError **error);
GBytes *ks_export_html (KsStore *store, KsSession *session, GError **error);
GBytes *ks_export_json (KsStore *store, KsSession *session, GError **error);

/* "2026-11-30 14:05 UTC". (transfer full) */
char *ks_export_format_time (gint64 time_us);
/* "Question", "Answer", "System". */
const char *ks_export_get_heading (KsMessage *message);
/* What is to be said about how a message ended, NULL for nothing. (transfer full) */
char *ks_export_make_note (KsMessage *message);
/* A file of message: "scan.pdf (12 pages, 1.2 MiB, pinned)". (transfer full) */
char *ks_export_describe (KsMessage *message, KsAttachment *attachment);
/* Media type of a picture that every browser shows, by its first bytes; NULL for none. */
const char *ks_export_get_picture_type (GBytes *bytes);

G_END_DECLS

/* ks-bundle.h - what a session's JSON bundle holds, checked; and the words it is written in.
 * Reading touches neither files nor the store.  Folder-private except for tests.
 * Threads: any.  Source: docs/formats/bundle.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-message.h"
#include "storage/ks-session.h"
#include "storage/ks-storage-error.h"

G_BEGIN_DECLS

#define KS_BUNDLE_FORMAT "keepsake-session"
/* Version 1 knew neither videos and documents nor how an attachment is read, version 2 no pins;
 * both are still read. */
#define KS_BUNDLE_VERSION 3
#define KS_BUNDLE_MAX_BYTES (G_GUINT64_CONSTANT (512) << 20)
/* Largest integer that every reader of JSON keeps. */
#define KS_BUNDLE_MAX_INT ((gint64)1 << 53)

typedef struct {
  char *title;
  gint64 created_us, updated_us;
  KsSessionSettings *settings;
  GPtrArray *messages;     /* of KsMessage; ids 1..n, parents smaller */
  GArray *active_children; /* of guint, one a message, 0 = none */
  guint active;            /* id of the active path's end, 0 = none */
  GHashTable *media;       /* hash -> GBytes, NULL where the bytes were lost before the export */
} KsBundle;

/* Errors: FORMAT, TOO_LARGE. */
KsBundle *ks_bundle_parse (GBytes *bytes, GError **error);
void ks_bundle_free (KsBundle *bundle); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsBundle, ks_bundle_free)

/* Words of roles, states and kinds, in the order of their enumerations. */
extern const char *const ks_bundle_roles[];
extern const char *const ks_bundle_states[];
extern const char *const ks_bundle_kinds[];
#define KS_BUNDLE_N_ROLES 3
#define KS_BUNDLE_N_STATES 6
#define KS_BUNDLE_N_KINDS 5

G_END_DECLS

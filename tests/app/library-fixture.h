/* library-fixture.h - a library on a folder of its own with a tiny model, and waiting for what
 * comes out on the main context. Deterministic: sampling is greedy, one thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library-command.h"
#include "storage/ks-store.h"

typedef struct {
  char *dir;
  KsSettings *settings;
  KsLibrary *library;
  GString *notices; /* of library and chats */
  guint n_answered, n_failed;
  gboolean closed;
  const char *model_path; /* NULL = the tiny one */
  char *failure;
} LibraryFixture;

/* Runs the main context until condition is true. */
#define WAIT_UNTIL(condition)                                                                      \
  do {                                                                                             \
    gint64 wait_end = g_get_monotonic_time () + 60 * G_USEC_PER_SEC;                               \
    while (!(condition)) {                                                                         \
      g_assert_cmpint (g_get_monotonic_time (), <, wait_end);                                      \
      fixture_iterate ();                                                                          \
    }                                                                                              \
  } while (0)

/* One turn of the main context that does not block for long. */
void fixture_iterate (void);
void fixture_open (LibraryFixture *f);
/* Begins to close; chats may still be looked at. */
void fixture_begin_close (LibraryFixture *f);
void fixture_end_close (LibraryFixture *f);
void fixture_close (LibraryFixture *f);
void fixture_set_up (LibraryFixture *f, gconstpointer data);
void fixture_tear_down (LibraryFixture *f, gconstpointer data);
/* A chat whose answers are short and greedy, watched. */
KsChat *fixture_open_chat (LibraryFixture *f, KsSession *session, int max_tokens);
void fixture_set_max_tokens (KsChat *chat, int max_tokens);
void fixture_set_temperature (KsChat *chat, double temperature);
void fixture_set_system (KsChat *chat, const char *text);
void fixture_let_go (LibraryFixture *f, KsChat *chat);
void fixture_send (KsChat *chat, const char *text);
/* Message i of the path, negative from its end. (transfer full) */
KsMessage *fixture_get_message (KsChat *chat, int i);
char *fixture_dup_text (KsChat *chat, int i);
KsMessageState fixture_get_state (KsChat *chat, int i);
char *fixture_ask (KsChat *chat, const char *text);
/* The store itself, while no library has it open. (transfer full) */
KsStore *fixture_open_store (LibraryFixture *f);
void fixture_reopen (LibraryFixture *f);
/* The first session in the list, after it was read. (transfer full) */
KsSession *fixture_get_first_session (LibraryFixture *f);

/* cli-sessions.h - what the files of keepsake-cli sessions share.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-store.h"

G_BEGIN_DECLS

int cli_sessions_show_main (char **args);
/* Prints all of them, newest first. */
int cli_sessions_list (gboolean json);

G_END_DECLS

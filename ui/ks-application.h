/* ks-application.h - the program: one instance, its actions and keys, the library behind the
 * window. Ends cleanly: the window goes at once, the process when answers are stored and the engine
 * is gone. Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_APPLICATION (ks_application_get_type ())
G_DECLARE_FINAL_TYPE (KsApplication, ks_application, KS, APPLICATION, AdwApplication)

KsApplication *ks_application_new (void);
/* As Ctrl+Q does it. */
void ks_application_quit (KsApplication *self);

G_END_DECLS

/* ks-application.h - the program: one instance, its actions and shortcuts, the library behind all
 * windows.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_APPLICATION (ks_application_get_type ())
G_DECLARE_FINAL_TYPE (KsApplication, ks_application, KS, APPLICATION, AdwApplication)

KsApplication *ks_application_new (void);

G_END_DECLS

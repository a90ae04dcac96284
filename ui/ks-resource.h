/* ks-resource.h - where the window's resources lie: templates by their file name, style.css, icons.
 * Compiled into the library from keepsake.gresource.xml. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#define KS_APP_ID "org.keepsake.Keepsake"
#define KS_RESOURCE "/org/keepsake/Keepsake/"

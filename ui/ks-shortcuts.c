/* ks-shortcuts.c - see ks-shortcuts.h. GLib only: a program of the build links it too. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-shortcuts.h"

#include <glib/gi18n.h>

#define GENERAL N_ ("General")
#define SESSIONS N_ ("Sessions")
#define CHAT N_ ("Chat")
#define VIEWER N_ ("Pictures and Pages")

static const KsShortcut shortcuts[] = {
    {GENERAL, N_ ("Show the menu"), NULL, {"F10"}},
    {GENERAL, N_ ("Preferences"), "app.preferences", {"<Control>comma"}},
    {GENERAL, N_ ("Keyboard shortcuts"), NULL, {"<Control>question"}},
    {GENERAL, N_ ("Show or hide the memory panel"), "win.show-memory", {"<Control>m"}},
    {GENERAL, N_ ("Close the window"), "window.close", {"<Control>w"}},
    {GENERAL, N_ ("Quit"), "app.quit", {"<Control>q"}},
    {SESSIONS, N_ ("New session"), "win.new", {"<Control>n"}},
    {SESSIONS, N_ ("Find in all sessions"), "win.search", {"<Control>f"}},
    {SESSIONS, N_ ("Previous session"), "win.previous", {"<Control>Page_Up"}},
    {SESSIONS, N_ ("Next session"), "win.next", {"<Control>Page_Down"}},
    {SESSIONS, N_ ("Rename the session"), "win.rename", {"F2"}},
    {SESSIONS, N_ ("Export the session"), "win.export", {"<Control><Shift>e"}},
    {SESSIONS, N_ ("Show or hide the list of sessions"), "win.show-sessions", {"F9"}},
    {CHAT, N_ ("Write a message"), "win.focus-composer", {"<Control>l"}},
    {CHAT, N_ ("Send the message"), NULL, {"Return"}},
    {CHAT, N_ ("Begin a new line"), NULL, {"<Shift>Return"}},
    {CHAT, N_ ("Attach files"), "win.attach", {"<Control>o"}},
    {CHAT, N_ ("Attach a folder"), "win.attach-folder", {"<Control><Shift>o"}},
    {CHAT, N_ ("Answer again"), "win.regenerate", {"<Control><Shift>r"}},
    {CHAT, N_ ("Stop the answer"), NULL, {"Escape"}},
    {VIEWER, N_ ("Show larger"), NULL, {"<Control>plus"}},
    {VIEWER, N_ ("Show smaller"), NULL, {"<Control>minus"}},
    {VIEWER, N_ ("Show at full size"), NULL, {"<Control>1"}},
    {VIEWER, N_ ("Fit into the window"), NULL, {"<Control>0"}},
    {VIEWER, N_ ("Previous page"), NULL, {"Page_Up"}},
    {VIEWER, N_ ("Next page"), NULL, {"Page_Down"}},
};

const KsShortcut *
ks_shortcuts_get (gsize *out_n)
{
  *out_n = G_N_ELEMENTS (shortcuts);
  return shortcuts;
}

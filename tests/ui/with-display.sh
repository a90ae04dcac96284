#!/usr/bin/env bash
# with-display.sh - runs a program on an X server and a message bus of its own, with folders of its own, so that
# nothing of the user's desktop is touched and tests do not meet.
# Usage: tests/ui/with-display.sh PROGRAM [arguments]
#   KS_SCREEN   size of the screen, "1280x800x24"
# SPDX-License-Identifier: GPL-3.0-or-later
set -euo pipefail

HOME_DIR=$(mktemp -d "${TMPDIR:-/tmp}/keepsake-display-XXXXXX")
readonly HOME_DIR
trap 'rm -rf "$HOME_DIR"' EXIT
mkdir -m 700 "$HOME_DIR"/{data,config,cache,runtime}

export XDG_DATA_HOME=$HOME_DIR/data XDG_CONFIG_HOME=$HOME_DIR/config XDG_CACHE_HOME=$HOME_DIR/cache
export XDG_RUNTIME_DIR=$HOME_DIR/runtime
export GDK_BACKEND=x11 GSK_RENDERER=cairo LIBGL_ALWAYS_SOFTWARE=1 GTK_A11Y=${GTK_A11Y:-test}
export GSETTINGS_BACKEND=memory NO_AT_BRIDGE=1 LC_ALL=${KS_LOCALE:-C.UTF-8} GTK_USE_PORTAL=0
unset WAYLAND_DISPLAY DISPLAY DBUS_SESSION_BUS_ADDRESS
dbus-run-session -- xvfb-run -a -s "-screen 0 ${KS_SCREEN:-1280x800x24} -nolisten tcp -noreset" "$@"

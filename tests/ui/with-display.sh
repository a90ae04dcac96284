#!/usr/bin/env bash
# with-display.sh - runs a program on an X server and a message bus of its own, with folders of its own, so that
# nothing of the user's desktop is touched and tests do not meet.
# Usage: tests/ui/with-display.sh PROGRAM [arguments]
#   KS_SCREEN        size of the screen, "1280x800x24"
#   KS_WHOLE_STACKS  set: the leak checker sees through libraries, slowly
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
# With the leak checker: what libraries keep for good is not ours, and drivers that were unloaded have no names.
if [[ -n ${ASAN_OPTIONS:-} ]]; then
  SUPPRESSIONS=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)/leaks-of-libraries.txt
  # Libraries have no frame pointers: only the slow unwinder, five times the run time, sees whose it is.
  [[ -z ${KS_WHOLE_STACKS:-} ]] || export ASAN_OPTIONS=$ASAN_OPTIONS:fast_unwind_on_malloc=0
  export GDK_DEBUG=gl-disable GDK_DISABLE=gl LSAN_OPTIONS=suppressions=$SUPPRESSIONS:print_suppressions=0
fi
unset WAYLAND_DISPLAY DISPLAY DBUS_SESSION_BUS_ADDRESS
# What the bus's services print is no output of the program.
exec 19>&1
# shellcheck disable=SC2016
dbus-run-session -- xvfb-run -a -s "-screen 0 ${KS_SCREEN:-1280x800x24} -nolisten tcp -noreset" \
  bash -c 'exec "$@" >&19 19>&-' bash "$@" >&2

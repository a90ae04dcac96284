#!/usr/bin/env bash
# build.sh - configures a build folder when it is new or belongs to a tree that stood elsewhere, and builds.
# Usage: packaging/build.sh FOLDER [Meson options]
# SPDX-License-Identifier: GPL-3.0-or-later
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
readonly ROOT FOLDER=$1
shift

# Build files hold absolute paths: a clone that was moved is configured anew.
if [[ ! -f $FOLDER/build.ninja || $(cat "$FOLDER/source-folder" 2>/dev/null) != "$ROOT" ]]; then
  rm -rf "$FOLDER"
  meson setup "$@" "$FOLDER" "$ROOT"
  printf '%s\n' "$ROOT" >"$FOLDER/source-folder"
fi
exec ninja -C "$FOLDER"

#!/usr/bin/env bash
# debian-13.sh - builds this tree on Debian 13 (GTK 4.18, libadwaita 1.7) with deprecated calls as errors, and
# runs the tests of the window there: each widget, and the whole program through its accessibility tree.
# Usage: tests/slow/debian-13.sh [--only-build] [FOLDER]
#   FOLDER   the root, made when it is not there and used again when it is (default: keepsake-debian-13 in
#            /var/tmp); pictures of the window are in FOLDER/srv/build/screenshots afterwards
# Needs root, debootstrap, about 4 GiB and 20 minutes for the first time.
# SPDX-License-Identifier: GPL-3.0-or-later
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
readonly ROOT SOURCE=/srv/keepsake BUILD=/srv/build MODELS=/srv/models
# shellcheck source=tests/slow/root-lib.sh
. "$ROOT/tests/slow/root-lib.sh"

# The tracked and the new files of this tree, as they are now; what is the same keeps its time.
copy_tree() {
  local root=$1 new
  new=$(mktemp -d -p "$root/srv")
  git -c safe.directory='*' -C "$ROOT" ls-files -z --cached --others --exclude-standard |
    tar -C "$ROOT" --null --ignore-failed-read --warning=no-failed-read -T - -cf - | tar -C "$new" --no-same-owner -xf -
  rm -rf "${root:?}$SOURCE"
  mv "$new" "$root$SOURCE"
}

build() {
  local root=$1
  if [[ ! -f $root$BUILD/build.ninja ]]; then
    inside "$root" "$SOURCE" -- meson setup "$BUILD" "$SOURCE" --werror \
      -Dc_args=-Werror=deprecated-declarations
  fi
  inside "$root" "$SOURCE" -- nice ninja -C "$BUILD"
}

main() {
  local only_build=false root=/var/tmp/keepsake-debian-13 model
  local -a args=("$@")

  while (($# > 0)); do
    case $1 in
      --only-build) only_build=true ;;
      -*) fail "Unknown option $1." ;;
      *) root=$1 ;;
    esac
    shift
  done
  ((EUID == 0)) || fail 'This test makes a system root: run it as root.'
  command -v debootstrap >/dev/null || fail 'debootstrap is missing: apt-get install debootstrap.'
  model=${KS_MODEL:-$(python3 "$ROOT/packaging/fetch-model.py")}
  if [[ ${KS_DEBIAN_13_NS:-} != 1 ]]; then # mounts of an own namespace end with it
    export KS_DEBIAN_13_NS=1
    exec unshare --mount "$ROOT/tests/slow/debian-13.sh" "${args[@]}"
  fi
  mount --make-rprivate /
  [[ -x $root/usr/bin/apt-get ]] || make_base "$root" trixie
  mount_base "$root"
  mkdir -p "$root/srv/user" "$root$MODELS"
  mount --bind -o ro "$(dirname "$model")" "$root$MODELS"

  copy_tree "$root"
  say 'packages'
  inside "$root" "$SOURCE" -- packaging/install-deps.sh test
  say 'building with deprecated calls as errors'
  build "$root" || fail 'The tree does not build on Debian 13.'
  inside "$root" "$SOURCE" -- pkg-config --modversion gtk4 libadwaita-1 glib-2.0 | tr '\n' ' ' >&2
  $only_build && return 0
  say 'tests of the window'
  inside "$root" "$SOURCE" "KS_MODEL=$MODELS/$(basename "$model")" -- \
    meson test -C "$BUILD" --no-rebuild --suite ui --print-errorlogs ||
    fail 'Tests of the window failed on Debian 13.'
  say "pictures: $root$BUILD/screenshots"
}

main "$@"

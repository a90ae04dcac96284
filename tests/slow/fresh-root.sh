#!/usr/bin/env bash
# fresh-root.sh - proves that a minimal system needs nothing but a clone: debootstrap makes a bare root, the
# repository's HEAD is cloned into it, and ./run.sh and ./test.sh run there in a chroot.
# Usage: tests/slow/fresh-root.sh [--suite bookworm] [--keep] [--only-run] [FOLDER]
#   --suite     release to install (default bookworm; trixie works where the mirror has it)
#   --keep      the root in FOLDER stays (default: a temporary folder, removed)
# Needs root, debootstrap, about 3 GiB and 20 minutes.  Mirror, proxies and certificates are this machine's own.
# SPDX-License-Identifier: GPL-3.0-or-later
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
readonly ROOT CLONE=/srv/keepsake
# shellcheck source=tests/slow/root-lib.sh
. "$ROOT/tests/slow/root-lib.sh"

make_root() {
  local root=$1 suite=$2
  make_base "$root" "$suite"
  mount_base "$root"
  mkdir -p "$root/srv/user"
  git -c safe.directory='*' clone -q --no-hardlinks "$ROOT" "$root$CLONE"
}

main() {
  local suite=bookworm keep=false only_run=false folder='' began last
  local -a args=("$@")

  while (($# > 0)); do
    case $1 in
      --suite) suite=$2 && shift ;;
      --keep) keep=true ;;
      --only-run) only_run=true ;;
      -*) fail "Unknown option $1." ;;
      *) folder=$1 ;;
    esac
    shift
  done
  ((EUID == 0)) || fail 'This test makes a system root: run it as root.'
  command -v debootstrap >/dev/null || fail 'debootstrap is missing: apt-get install debootstrap.'
  if [[ ${KS_FRESH_ROOT_NS:-} != 1 ]]; then # mounts of an own namespace end with it
    export KS_FRESH_ROOT_NS=1
    exec unshare --mount "$ROOT/tests/slow/fresh-root.sh" "${args[@]}"
  fi
  mount --make-rprivate /
  [[ -n $folder ]] || folder=$(mktemp -d)
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)/root
  [[ ! -e $folder ]] || fail "$folder is there already."
  # shellcheck disable=SC2064
  $keep || trap "umount '$folder/proc' '$folder/dev/shm' '$folder/dev/pts' 2>/dev/null; \
    rm -rf --one-file-system '$folder'" EXIT
  make_root "$folder" "$suite"

  say './run.sh in the fresh root'
  began=$SECONDS
  inside "$folder" "$CLONE" -- ./run.sh </dev/null
  say "first start: $((SECONDS - began)) s"
  began=$(date +%s%N)
  inside "$folder" "$CLONE" -- ./run.sh -- --version </dev/null
  began=$((($(date +%s%N) - began) / 1000000))
  say "second start up after $began ms"
  ((began < 2000)) || fail 'A second start must be up within 2 seconds.'
  $only_run && return 0

  say './test.sh in the fresh root'
  began=$SECONDS
  inside "$folder" "$CLONE" -- ./test.sh </dev/null 2>&1 | tee "$folder/srv/test.log" | grep -v '^\[' || true
  last=$(tail -n 1 "$folder/srv/test.log")
  say "tests: $((SECONDS - began)) s, $last"
  [[ $last =~ ^[1-9][0-9]*\ passed,\ 0\ failed$ ]] || fail 'The tests did not pass.'
}

main "$@"

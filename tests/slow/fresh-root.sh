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
readonly ROOT CLONE=/srv/keepsake HOST_CA=/etc/host-ca.crt

say() { printf '== %s\n' "$*" >&2; }
fail() {
  say "$@"
  exit 1
}

# The first mirror in this machine's apt sources that serves the suite (or its own suite's sibling).
find_mirror() {
  local targets
  # shellcheck disable=SC2016
  targets=$(apt-get indextargets --format '$(CREATED_BY) $(REPO_URI) $(CODENAME) $(COMPONENT)' 2>/dev/null)
  awk -v suite="$1" '$1 == "Packages" && $4 == "main" {
      if ($3 == suite) { print $2; found = 1; exit }
      if (first == "" && $3 !~ /-/) first = $2
    }
    END { if (!found && first != "") print first }' <<<"$targets"
}

# What this machine needs to reach its mirrors: proxies, timeouts, a clock that is off.
copy_network() {
  local root=$1 bundle=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  [[ ! -f /etc/hosts ]] || cp -L /etc/hosts "$root/etc/hosts"
  [[ ! -f $bundle ]] || cp -L "$bundle" "$root$HOST_CA"
  apt-config dump | grep -E '^Acquire::(Check|http|https|Retries)' >"$root/etc/apt/apt.conf.d/90host" || true
  [[ ! -f $root$HOST_CA ]] || echo "Acquire::https::CaInfo \"$HOST_CA\";" >>"$root/etc/apt/apt.conf.d/90host"
}

# Runs a command in the clone inside the root, with a clean environment of a plain user's session.
inside() {
  local root=$1 name
  local -a env=(HOME=/srv/user LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  shift
  for name in http_proxy https_proxy no_proxy PIP_INDEX_URL PIP_DEFAULT_TIMEOUT; do
    [[ ! -v $name ]] || env+=("$name=${!name}")
  done
  [[ ! -f $root$HOST_CA ]] || env+=("PIP_CERT=$HOST_CA" "SSL_CERT_FILE=$HOST_CA")
  # shellcheck disable=SC2016
  chroot "$root" env -i "${env[@]}" sh -c 'cd "$1" && shift && exec "$@"' sh "$CLONE" "$@"
}

make_root() {
  local root=$1 suite=$2 mirror
  mirror=$(find_mirror "$suite")
  [[ -n $mirror ]] || fail 'No mirror found in the apt sources of this machine.'
  say "debootstrap of $suite from this machine's mirror"
  debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log" >&2 && fail 'debootstrap failed.'; }
  rm -f "$root.log"
  copy_network "$root"
  mount -t proc proc "$root/proc"
  mkdir -p "$root/dev/shm" "$root/dev/pts" # debootstrap made the devices themselves
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
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
  inside "$folder" ./run.sh </dev/null
  say "first start: $((SECONDS - began)) s"
  began=$(date +%s%N)
  inside "$folder" ./run.sh -- --version </dev/null
  began=$((($(date +%s%N) - began) / 1000000))
  say "second start up after $began ms"
  ((began < 2000)) || fail 'A second start must be up within 2 seconds.'
  $only_run && return 0

  say './test.sh in the fresh root'
  began=$SECONDS
  inside "$folder" ./test.sh </dev/null 2>&1 | tee "$folder/srv/test.log" | grep -v '^\[' || true
  last=$(tail -n 1 "$folder/srv/test.log")
  say "tests: $((SECONDS - began)) s, $last"
  [[ $last =~ ^[1-9][0-9]*\ passed,\ 0\ failed$ ]] || fail 'The tests did not pass.'
}

main "$@"

#!/usr/bin/env bash
# root-lib.sh - what the tests in bare systems share; sourced, not run.  Mirror, proxies and certificates are
# this machine's own, taken when the test runs.
# SPDX-License-Identifier: GPL-3.0-or-later

readonly HOST_CA=/etc/host-ca.crt

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

# Makes a minimal root of the suite in a new folder.
make_base() {
  local root=$1 suite=$2 mirror
  mirror=$(find_mirror "$suite")
  [[ -n $mirror ]] || fail 'No mirror found in the apt sources of this machine.'
  say "debootstrap of $suite from this machine's mirror"
  debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log" >&2 && fail 'debootstrap failed.'; }
  rm -f "$root.log"
}

# In a mount namespace of its own: ends with it.
mount_base() {
  local root=$1
  copy_network "$root"
  mount -t proc proc "$root/proc"
  mkdir -p "$root/dev/shm" "$root/dev/pts" # debootstrap made the devices themselves
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
}

# Runs a command in folder $2 of the root, with a clean environment of a plain user's session.  What follows
# up to -- are more variables.
inside() {
  local root=$1 folder=$2 name
  local -a env=(HOME=/srv/user LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  shift 2
  while [[ $1 != -- ]]; do env+=("$1") && shift; done
  shift
  for name in http_proxy https_proxy no_proxy PIP_INDEX_URL PIP_DEFAULT_TIMEOUT; do
    [[ ! -v $name ]] || env+=("$name=${!name}")
  done
  [[ ! -f $root$HOST_CA ]] || env+=("PIP_CERT=$HOST_CA" "SSL_CERT_FILE=$HOST_CA")
  # shellcheck disable=SC2016
  chroot "$root" env -i "${env[@]}" sh -c 'cd "$1" && shift && exec "$@"' sh "$folder" "$@"
}

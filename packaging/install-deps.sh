#!/usr/bin/env bash
# install-deps.sh - installs the distribution's packages that Keepsake lacks, and nothing else.
# Usage: packaging/install-deps.sh run|test [--print]
#   run    what building and running needs       test   that and what ./test.sh needs
#   --print  only prints the packages of the set, one a line
# Exit: 0 everything is there, 1 installing failed, 2 no right to install (the command is printed).
# SPDX-License-Identifier: GPL-3.0-or-later
set -euo pipefail

readonly RUN_PACKAGES=(
  gcc libc6-dev meson ninja-build pkgconf
  libcjson-dev libglib2.0-dev libsqlite3-dev libuchardet-dev
  libarchive-dev libavcodec-dev libavformat-dev libheif-dev libjpeg-dev liblcms2-dev libpoppler-glib-dev librsvg2-dev
  libseccomp-dev
  libswscale-dev libtiff-dev libwebp-dev poppler-data
  libtesseract-dev libxml2-dev tesseract-ocr-deu tesseract-ocr-eng tesseract-ocr-kor
  libgtk-4-dev libadwaita-1-dev libgtksourceview-5-dev libcmark-gfm-dev libcmark-gfm-extensions-dev gettext
  adwaita-icon-theme librsvg2-common
  python3 python3-pip ca-certificates
)
readonly TEST_PACKAGES=(
  git g++ libpng-dev libsimde-dev shellcheck codespell valgrind
  xvfb xauth dbus at-spi2-core fonts-dejavu-core fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji
  gsettings-desktop-schemas appstream desktop-file-utils locales
  python3-gi gir1.2-atspi-2.0 xdotool xclip imagemagick
)
readonly APT_OPTIONS=(
  -o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30
  -o DPkg::Lock::Timeout=300
)

say() { printf '%s\n' "$*" >&2; }

# "debian 12", "ubuntu 24.04"; KS_OS_RELEASE stands in for the file in tests.
os_name() {
  local ID='' VERSION_ID=''
  # shellcheck disable=SC1090
  . "${KS_OS_RELEASE:-/etc/os-release}" 2>/dev/null || true
  printf '%s %s\n' "${ID:-unknown}" "${VERSION_ID:-}"
}

# True for the systems whose package names this script knows.
is_known_system() {
  local id=$1 major=${2%%.*}
  [[ $major =~ ^[0-9]+$ ]] || major=0
  case $id in
    debian) [[ $2 == '' ]] || ((major >= 12)) ;; # testing and unstable carry no number
    ubuntu) ((major >= 24)) ;;
    *) false ;;
  esac
}

wanted_packages() {
  local set=$1 os=$2
  printf '%s\n' "${RUN_PACKAGES[@]}"
  [[ $set == test ]] || return 0
  printf '%s\n' "${TEST_PACKAGES[@]}"
  # The format check is pinned to one version of the tool; these systems have it.
  case $os in 'debian 12' | 'ubuntu 24.04') printf '%s\n' clang-format-14 ;; esac
}

# Prints those of its arguments that are not installed.
missing_packages() {
  local package
  local -A installed=()
  while read -r package; do installed[${package%%:*}]=1; done < <(
    dpkg-query -W -f '${db:Status-Status} ${binary:Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p'
  )
  for package in "$@"; do
    [[ -v installed[$package] ]] || printf '%s\n' "$package"
  done
}

# Where package names are not known: are the tools themselves there?
missing_tools() {
  local set=$1 tool module
  for tool in cc meson ninja pkg-config python3; do
    command -v "$tool" >/dev/null || printf '%s\n' "$tool"
  done
  for module in libcjson glib-2.0 gio-2.0 gio-unix-2.0 sqlite3 uchardet libseccomp poppler-glib \
    libarchive libavcodec libavformat libheif libjpeg lcms2 librsvg-2.0 libswscale libtiff-4 libwebp libwebpdemux \
    libxml-2.0 tesseract gtk4 libadwaita-1 gtksourceview-5 libcmark-gfm; do
    pkg-config --exists "$module" 2>/dev/null || printf '%s\n' "$module"
  done
  python3 -m pip --version >/dev/null 2>&1 || printf '%s\n' pip
  [[ $set == test ]] || return 0
  for tool in git c++ shellcheck codespell; do
    command -v "$tool" >/dev/null || printf '%s\n' "$tool"
  done
}

# Runs a command as root: directly, or through the sudo that the user was told of.
as_root() {
  if ((EUID == 0)); then "$@"; else sudo -- "$@"; fi
}

install() {
  local -a command=(env DEBIAN_FRONTEND=noninteractive apt-get "${APT_OPTIONS[@]}" -y
    --no-install-recommends install "$@")

  say "Keepsake needs these packages of your system: $*"
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null || { [[ ! -t 0 ]] && ! sudo -n true 2>/dev/null; }; then
      say 'They are missing and this user may not install them. As root, run:'
      say "  apt-get update && apt-get install --no-install-recommends $*"
      return 2
    fi
    say 'sudo may now ask for your password to install them.'
  fi
  # One root shell for both steps, so that there is one sudo.
  # shellcheck disable=SC2016
  if ! as_root sh -c '
    update=$1; shift
    apt-get $update -q update || echo "The package lists could not be updated; trying with the old ones." >&2
    exec "$@"' sh "${APT_OPTIONS[*]}" "${command[@]}" >&2; then
    say 'The packages could not be installed: check the network and the package sources. By hand, as root:'
    say "  apt-get update && apt-get install --no-install-recommends $*"
    return 1
  fi
}

main() {
  local set=${1:-} os id version
  local -a wanted missing

  if [[ $set != run && $set != test ]] || (($# > 2)) || [[ ${2:---print} != --print ]]; then
    say "usage: $0 run|test [--print]"
    return 1
  fi
  os=$(os_name)
  read -r id version <<<"$os" || true
  mapfile -t wanted < <(wanted_packages "$set" "$os")
  if [[ ${2:-} == --print ]]; then
    printf '%s\n' "${wanted[@]}"
    return 0
  fi
  if is_known_system "$id" "${version:-}"; then
    mapfile -t missing < <(missing_packages "${wanted[@]}")
    ((${#missing[@]} == 0)) || install "${missing[@]}"
    return
  fi
  mapfile -t missing < <(missing_tools "$set")
  ((${#missing[@]} == 0)) && return 0
  say "Packages are installed by themselves only on Debian 12 or later and Ubuntu 24.04 or later;" \
    "on this system (${os% }) please install: ${missing[*]}"
  return 2
}

main "$@"

#!/usr/bin/env bash
# run.sh - from a fresh clone to the window: installs what is missing, builds, fetches the default model,
# and starts Keepsake.  `./run.sh --help` says the rest.
# SPDX-License-Identifier: GPL-3.0-or-later
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly ROOT BUILD="$ROOT/build"
readonly SAMPLE="$ROOT/data/samples/keepsake-handbook.md"
readonly SAMPLE_KV_BUDGET=12MiB
readonly SAMPLE_QUESTION='How many lines does the program of the cable car have?'

usage() {
  cat <<EOF
Usage: ./run.sh [options] [FILE...] [-- arguments of keepsake-cli]

Installs missing packages (asking for sudo when needed), builds Keepsake in build/, fetches the default
model once, and opens the window; files are attached to a new session there.  Without a display a sample
question is asked in the terminal instead, about a document that is much longer than its memory budget.

  --terminal     ask the sample question in the terminal, also where there is a display
  --model PATH   use this GGUF file instead of the default model; nothing is fetched, the window keeps to it
  --build-only   stop after building
  --help         this text

Arguments after -- go to the command line, for example:
  ./run.sh -- chat
  ./run.sh -- ask --attach manual.pdf --kv-budget 16MiB "How do I reset it?"
  ./run.sh -- --help
EOF
}

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "$@"
  exit 1
}

# Runs a build step; a terminal sees its progress, otherwise only a failure is shown.
build_step() {
  local log=$BUILD.log
  if [[ -t 2 ]]; then
    "$@" >&2
  else
    "$@" >"$log" 2>&1 || {
      tail -n 40 "$log" >&2
      return 1
    }
    rm -f "$log"
  fi
}

build() {
  local free_kib
  if [[ ! -f $BUILD/build.ninja ]]; then
    [[ -w $ROOT ]] || fail "$ROOT is not writable: Keepsake builds in its folder build/."
    free_kib=$(df -Pk "$ROOT" | awk 'NR == 2 { print $4 }')
    ((free_kib > 200 * 1024)) ||
      fail "Not enough space in $ROOT: 200 MiB needed for building, $((free_kib / 1024)) MiB free."
    say 'Building Keepsake, some minutes (once; later starts rebuild only what changed) ...'
    [[ -t 2 ]] || say "What it does stands in $BUILD.log."
  fi
  build_step "$ROOT/packaging/build.sh" "$BUILD" --buildtype=release -Dtests=false ||
    fail 'Building failed; the reason stands above.'
}

names_display() {
  [[ -n ${WAYLAND_DISPLAY:-}${DISPLAY:-} ]]
}

fail_without_display() {
  fail "There is no display to open a window on: ask with ./run.sh -- ask --attach '$1' 'your question'."
}

# True when a window can be opened: a display is named, and it answers.
has_display() {
  names_display && "$BUILD/ui/keepsake" --check-display 2>/dev/null
}

ask_sample() {
  say "$1"
  say "Document: ${SAMPLE#"$ROOT"/}, KV budget $SAMPLE_KV_BUDGET"
  say "Question: $SAMPLE_QUESTION"
  exec "$BUILD/app/keepsake-cli" ask --model "$2" --attach "$SAMPLE" --kv-budget "$SAMPLE_KV_BUDGET" \
    "$SAMPLE_QUESTION"
}

main() {
  local model='' build_only=false terminal=false
  local -a files=() window_args=()

  while (($# > 0)); do
    case $1 in
      --help | -h) usage && return 0 ;;
      --model) (($# > 1)) || fail '--model needs a path.' && model=$2 && shift ;;
      --model=*) model=${1#--model=} ;;
      --build-only) build_only=true ;;
      --terminal) terminal=true ;;
      --) shift && break ;;
      -*) fail "Unknown option $1; arguments for keepsake-cli stand after --. See ./run.sh --help." ;;
      *) [[ -r $1 ]] || fail "The file $1 cannot be read." && files+=("$1") ;;
    esac
    shift
  done
  [[ -z $model || -r $model ]] || fail "The model file $model cannot be read."

  if ((${#files[@]} > 0 && $# == 0)) && ! $terminal && ! $build_only && ! names_display; then
    fail_without_display "${files[0]}"
  fi

  "$ROOT/packaging/install-deps.sh" run || return
  build
  if $build_only; then return 0; fi
  if [[ -z $model ]]; then
    model=$(python3 "$ROOT/packaging/fetch-model.py") || return
  else
    window_args=(--model "$model")
  fi
  if (($# > 0)); then
    KEEPSAKE_MODEL=$model exec "$BUILD/app/keepsake-cli" "$@"
  fi
  if $terminal; then ask_sample 'The sample question is asked here, in the terminal.' "$model"; fi
  if ! has_display; then
    ((${#files[@]} == 0)) || fail_without_display "${files[0]}"
    ask_sample 'There is no display to open a window on: the sample question is asked here, in the terminal.' "$model"
  fi
  exec "$BUILD/ui/keepsake" "${window_args[@]}" "${files[@]}"
}

main "$@"

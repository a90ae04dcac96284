#!/usr/bin/env bash
# test.sh - installs what the tests need, builds twice (plain; with ASan and UBSan), runs the suites, and
# ends with the line `N passed, N failed`.  `./test.sh --help` says the rest.
# SPDX-License-Identifier: GPL-3.0-or-later
set -euo pipefail

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly ROOT
readonly SUITES=(unit golden parity ops counts fuzz cli app media storage ui scoring packaging lint)
readonly SANITIZED_SUITES=(unit golden ops fuzz app cli media storage ui scoring)
declare -i n_broken=0
declare -a logs=()

usage() {
  cat <<EOF
Usage: ./test.sh [--no-sanitizers] [--suite NAME]...

Builds with warnings as errors in build-test/ and runs every suite but bench and slow; then builds with
AddressSanitizer and UndefinedBehaviorSanitizer in build-asan/ and runs ${SANITIZED_SUITES[*]}.
The default model is fetched once (packaging/fetch-model.py) unless KS_MODEL names its file.

  --suite NAME      only this suite (may be given again)
  --no-sanitizers   leave the second half out
EOF
}

say() { printf '%s\n' "$*" >&2; }

# Builds in folder $2 and runs tests there; label $1, meson options up to --, meson test arguments after.
run_half() {
  local label=$1 folder=$2
  local -a options=()
  shift 2
  while [[ $1 != -- ]]; do options+=("$1") && shift; done
  shift
  say "== $label: building in $folder/"
  if ! nice "$ROOT/packaging/build.sh" "$ROOT/$folder" --werror "${options[@]}"; then
    say "$label: the build failed."
    n_broken+=1
    return
  fi
  say "== $label: testing"
  rm -f "$ROOT/$folder/meson-logs/testlog.json"
  # Meson's status is not used: the log has the same and more.
  nice meson test -C "$ROOT/$folder" --no-rebuild --print-errorlogs "$@" || true
  logs+=("$label=$ROOT/$folder/meson-logs/testlog.json")
}

main() {
  local sanitizers=true suite
  local -a suites=() plain=() sanitized=() wanted=()

  while (($# > 0)); do
    case $1 in
      --help | -h) usage && return 0 ;;
      --no-sanitizers) sanitizers=false ;;
      --suite) suites+=("${2:?--suite needs a name}") && shift ;;
      *) say "Unknown option $1; see ./test.sh --help." && return 1 ;;
    esac
    shift
  done
  if ! "$ROOT/packaging/install-deps.sh" test; then
    say 'The tests cannot run without these packages.'
    n_broken+=1
  elif [[ -z ${KS_MODEL:-} ]] && ! KS_MODEL=$(python3 "$ROOT/packaging/fetch-model.py"); then
    say 'The tests cannot run without the default model.'
    n_broken+=1
  fi
  export KS_MODEL
  export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:allocator_may_return_null=1
  export UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1:print_stacktrace=1

  plain=(--no-suite bench --no-suite slow)
  sanitized=()
  for suite in "${SANITIZED_SUITES[@]}"; do
    ((${#suites[@]} > 0)) && [[ " ${suites[*]} " != *" $suite "* ]] || sanitized+=(--suite "$suite")
  done
  for suite in "${suites[@]}"; do plain+=(--suite "$suite"); done
  if ((n_broken == 0)); then
    run_half plain build-test -- "${plain[@]}"
    if $sanitizers && ((${#sanitized[@]} > 0)); then
      run_half sanitizers build-asan -Db_sanitize=address,undefined -Db_lundef=false -- \
        "${sanitized[@]}" --timeout-multiplier 4
    fi
  fi
  ((${#suites[@]} > 0)) || suites=("${SUITES[@]}")
  for suite in "${suites[@]}"; do wanted+=(--want "$suite"); done
  exec python3 "$ROOT/tests/sum-results.py" --broken-steps "$n_broken" "${wanted[@]}" "${logs[@]}"
}

main "$@"

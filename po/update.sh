#!/usr/bin/env bash
# update.sh - brings the list of sentences (keepsake.pot) and the translations up to the sources.
# Usage: po/update.sh [--pot FILE]
#   --pot FILE  only writes the list of sentences, to FILE
# After it, translate what is empty or marked fuzzy in po/*.po; the test translations says when it is complete.
# SPDX-License-Identifier: GPL-3.0-or-later
set -euo pipefail

PO=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly PO ROOT=${PO%/*}

# No line numbers: they would change with every edit of a source.
write_pot() {
  (cd "$ROOT" && xgettext --from-code=UTF-8 --add-location=file --add-comments=Translators: \
    --keyword=_ --keyword=N_ --keyword=C_:1c,2 --keyword=NC_:1c,2 --keyword=ngettext:1,2 \
    --flag=ngettext:1:pass-c-format --flag=ngettext:2:pass-c-format --flag=g_strdup_printf:1:c-format \
    --package-name=keepsake --copyright-holder='The Keepsake authors' \
    --files-from=po/POTFILES --output=- | sed '/^"POT-Creation-Date:/d') >"$1"
}

main() {
  local language
  if [[ ${1:-} == --pot && $# -eq 2 ]]; then
    write_pot "$2"
    return
  fi
  (($# == 0)) || {
    printf 'usage: %s [--pot FILE]\n' "$0" >&2
    return 1
  }
  write_pot "$PO/keepsake.pot"
  while read -r language; do
    msgmerge --quiet --update --backup=none --no-fuzzy-matching --add-location=file \
      "$PO/$language.po" "$PO/keepsake.pot"
    printf '%s: ' "$language" >&2
    msgfmt --statistics --check --output-file=/dev/null "$PO/$language.po"
  done <"$PO/LINGUAS"
}

main "$@"

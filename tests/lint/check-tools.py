#!/usr/bin/env python3
"""Hands the tree to a checker of its own: `format` clang-format 14, `shell` ShellCheck, `spelling` codespell.

The format is pinned to one version of its tool; where that version does not exist the check says so and
is skipped.  The other two are part of the test packages, and missing means failed.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import shutil
import subprocess
import sys
import tempfile

import lintlib

FORMAT = "clang-format-14"


def is_format(path):
    return path.endswith((".c", ".h")) and not lintlib.is_generated(path)


def is_shell(path):
    return path.endswith(".sh") or path in (".ci/run", "tests/lint/hooks/commit-msg")


def is_prose(path):
    return not path.endswith(lintlib.BINARY) and not lintlib.is_test_data(path) and \
        path != "LICENSE" and not path.endswith(("spelling-words.txt", "check-tools.py", ".jsonl", ".po")) and \
        not lintlib.is_generated(path)


WORDS = os.path.join(lintlib.ROOT, "tests", "lint", "spelling-words.txt")
# name: (which files, command in front of the file names)
TOOLS = {
    "format": (is_format, [FORMAT, "--dry-run", "--Werror", "--style=file"]),
    "shell": (is_shell, ["shellcheck"]),
    "spelling": (is_prose, ["codespell", "--ignore-words", WORDS]),
}
PLANTED = {
    "format": {"badly formatted": {"engine/a.c": "int  a ;\n"}},
    "shell": {"unquoted": {"a.sh": "#!/bin/sh\nrm $1\n"}},
    "spelling": {"misspelt": {"a.md": "This is teh word.\n"}},
}
CLEAN = {
    "format": {"engine/a.c": "int a;\n"},
    "shell": {"a.sh": '#!/bin/sh\nrm "$1"\n'},
    "spelling": {"a.md": "This is the word.\n"},
}


def check_in(root, tool, paths):
    wanted, command = TOOLS[tool]
    paths = sorted(p for p in paths if wanted(p))
    if not paths:
        return [f"{tool}: no file to check"]
    done = subprocess.run([*command, *paths], cwd=root, capture_output=True, text=True)
    if done.returncode == 0:
        return []
    return (done.stdout + done.stderr).splitlines() or [f"{command[0]}: exit status {done.returncode}"]


def make_check(tool):
    def check(files):
        if "" in files:
            return check_in(lintlib.ROOT, tool, files[""])
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            if tool == "format":
                for style in (".clang-format", "engine/.clang-format"):
                    shutil.copy(os.path.join(lintlib.ROOT, style), os.path.join(root, style))
            return check_in(root, tool, files)
    return check


def main():
    tool = sys.argv[1] if len(sys.argv) == 2 else ""
    if tool not in TOOLS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(TOOLS)}")
    program = TOOLS[tool][1][0]
    if shutil.which(program) is None:
        if tool == "format":
            print(f"1..1\nok 1 - format # SKIP {FORMAT} does not exist on this system; the format is pinned to it")
            return 0
        print(f"1..1\n# {program} is missing: packaging/install-deps.sh test\nnot ok 1 - {tool}")
        return 1
    return lintlib.main(tool, make_check(tool), PLANTED[tool], CLEAN[tool], {"": lintlib.tracked_paths()})


if __name__ == "__main__":
    sys.exit(main())

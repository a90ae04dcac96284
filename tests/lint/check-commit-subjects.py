#!/usr/bin/env python3
"""Commit subjects: `folder/module: what changes`, lower case after the colon, 72 columns.

`--message FILE` checks one message, for the hook in tests/lint/hooks.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import re
import subprocess
import sys

import lintlib

# Names in capitals may stand after the colon (AVX-512, KS_MODEL), a sentence's capital may not.
SUBJECT = re.compile(r"^[a-z0-9.][A-Za-z0-9._/{},+ -]*: (?![A-Z][a-z ])\S.*[^.\s]$")

# Published before this check ran over it; history is not rewritten for that.
KNOWN = {"445b82aefe96bdd0f3df4165d6cb5c48cef5b695": "76 columns",
         "88bad11b07fecd728cf765dc53ebcd19695a4102": "74 columns",
         "893036d0d7c9d6784accab09bad56264e8752d93": "73 columns",
         "149b6bb03470221208cca3c3a5cb368f80f54e2a": "73 columns",
         "4ae635a876674e970db2626113b0e77f75359e7a": "74 columns",
         "e61dbff37f8236401d95ab0807fb4002fc49d1d9": "79 columns",
         "47276ff0e75cd0846a68d7301a64509142484289": "74 columns",
         "a1c7ebd9871e0b21827ace6a916da5b7bee75fda": "76 columns"}


def check(subjects):
    complaints = []
    for commit, subject in subjects.items():
        if commit in KNOWN:
            continue
        if len(subject) > 72:
            complaints.append(f"{commit[:9]}: {len(subject)} columns: {subject}")
        if not SUBJECT.match(subject):
            complaints.append(f"{commit[:9]}: not `folder/module: what changes`: {subject}")
    return complaints


PLANTED = {
    "no module": {"1": "change things"},
    "capital after the colon": {"1": "engine/gguf: Reads files"},
    "full stop": {"1": "engine/gguf: reads files."},
    "too long": {"1": "engine/gguf: " + "x" * 60},
}
CLEAN = {"1": "engine/kv-pool: pages go back to the system", "2": "project: skeleton", "3": "docs: first pages"}


def read_subjects():
    """None where there is no history to look at (a source archive)."""
    git = ["git", "-c", "safe.directory=*", "-C", lintlib.ROOT, "log", "--no-merges", "--format=%H%x09%s"]
    try:
        out = subprocess.run(git, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return dict(line.split("\t", 1) for line in out.splitlines() if "\t" in line)


def check_message(path):
    """For the commit-msg hook: the exit status over the message in the file."""
    with open(path, encoding="utf-8") as f:
        subject = f.readline().rstrip("\n")
    complaints = [] if subject.startswith(("Merge ", "fixup! ", "squash! ")) else check({"subject": subject})
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--message":
        sys.exit(check_message(sys.argv[2]))
    real = read_subjects()
    if real is None:
        print("1..1\nok 1 - commit subjects # SKIP not a git checkout")
        sys.exit(0)
    lintlib.run("commit subjects", check, PLANTED, CLEAN, real)

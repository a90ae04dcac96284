#!/usr/bin/env python3
"""Plain text rules of .editorconfig, and links between documents that lead somewhere."""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import re

import lintlib

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)")
COLUMNS = {".c": 100, ".h": 100, ".py": 120, ".sh": 120, ".build": 120}


def check_lines(path, text):
    complaints = []
    if text and not text.endswith("\n"):
        complaints.append(f"{path}: no newline at the end")
    limit = COLUMNS.get(os.path.splitext(path)[1])
    for i, line in enumerate(text.split("\n"), 1):
        if "\r" in line:
            complaints.append(f"{path}:{i}: carriage return")
        if line.endswith((" ", "\t")):
            complaints.append(f"{path}:{i}: blank at the end")
        if "\t" in line and not path.endswith((".md", ".txt")):
            complaints.append(f"{path}:{i}: tab")
        if limit and len(line) > limit and not lintlib.is_generated(path):
            complaints.append(f"{path}:{i}: {len(line)} columns, {limit} at most")
    return complaints


def check_links(path, text, files):
    complaints = []
    for match in LINK.finditer(text):
        target = os.path.normpath(os.path.join(os.path.dirname(path), match.group(1)))
        if target not in files and not any(other.startswith(target + "/") for other in files):
            complaints.append(f"{path}:{lintlib.line_of(text, match.start())}: link to {match.group(1)}: "
                              "nothing there")
    return complaints


def check(files):
    complaints = []
    for path, text in files.items():
        if lintlib.is_test_data(path) or path == "LICENSE":
            continue
        complaints += check_lines(path, text)
        if path.endswith(".md"):
            complaints += check_links(path, text, files)
    return complaints


def real_tree():
    files = lintlib.read_tree()
    for path in lintlib.tracked_paths():
        files.setdefault(path, "")
    return files


PLANTED = {
    "no final newline": {"a.c": "int a;"},
    "blank at the end": {"a.md": "word \n"},
    "tab": {"a.c": "\tint a;\n"},
    "carriage return": {"a.sh": "true\r\n"},
    "long line": {"a.c": "/* " + "x" * 100 + " */\n"},
    "dead link": {"docs/a.md": "see [b](b.md)\n"},
}
CLEAN = {"docs/a.md": "see [b](b.md#part), [c](../engine), [d](https://example.org/x)\n", "docs/b.md": "",
         "engine/x.c": "int a;\n"}

if __name__ == "__main__":
    lintlib.run("text", check, PLANTED, CLEAN, real_tree())

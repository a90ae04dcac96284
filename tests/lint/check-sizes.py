#!/usr/bin/env python3
"""Sizes: files, headers, functions, nesting, opening comments; folder READMEs and ADRs.

A .c file over 700 lines or a header over 200 says why in its opening comment ("Over NNN lines because").
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import re

import lintlib

FILE_HARD, FILE_SOFT, HEADER_SOFT = 1000, 700, 200
FUNCTION_LINES, KERNEL_LINES, NESTING, OPENING_LINES = 60, 90, 4, 12
SPDX = "/* SPDX-License-Identifier: GPL-3.0-or-later */"
KERNEL_FILE = re.compile(r"^(engine/cpu-[^/]*\.[ch]|cuda/.*)$")
# With the tree's formatting a function's name, its brace and its end stand in the first column.
FUNCTION = re.compile(r"^([A-Za-z_]\w*) ?\(.*?\)\s*\n\{(.*?)^\}", re.M | re.S)


def check_opening(path, text):
    lines = text.split("\n")
    if not lines[0].startswith("/* "):
        return [f"{path}:1: the file opens with a comment that says what it is"]
    end = next((i for i, line in enumerate(lines) if "*/" in line), len(lines))
    complaints = []
    if end + 1 > OPENING_LINES:
        complaints.append(f"{path}: opening comment of {end + 1} lines, {OPENING_LINES} at most")
    if end + 1 >= len(lines) or lines[end + 1] != SPDX:
        complaints.append(f"{path}:{end + 2}: the SPDX line follows the opening comment")
    return complaints


def check_file(path, text):
    n = text.count("\n")
    opening = text.split("*/")[0]
    soft = HEADER_SOFT if path.endswith(".h") else FILE_SOFT
    if n > FILE_HARD:
        return [f"{path}: {n} lines, {FILE_HARD} at most"]
    if n > soft and not re.search(rf"over {soft} lines because", opening, re.I):
        return [f"{path}: {n} lines; over {soft} the opening comment says 'Over {soft} lines because ...'"]
    return []


def deepest(body):
    depth = most = 0
    for c in body:
        depth += (c == "{") - (c == "}")
        most = max(most, depth)
    return most


def check_functions(path, text):
    complaints = []
    code = lintlib.strip_c(text)
    limit = KERNEL_LINES if KERNEL_FILE.match(path) else FUNCTION_LINES
    for match in FUNCTION.finditer(code):
        n = match.group(0).count("\n") + 1
        where = f"{path}:{lintlib.line_of(code, match.start())}: {match.group(1)}"
        if n > limit:
            complaints.append(f"{where}: {n} lines, {limit} at most")
        if deepest(match.group(2)) > NESTING:
            complaints.append(f"{where}: nested {deepest(match.group(2))} deep, {NESTING} at most")
    return complaints


def check_document(path, text):
    n = text.count("\n")
    if re.match(r"docs/adr/\d{4}-", path) and n > 60:
        return [f"{path}: {n} lines, an ADR has 60 at most"]
    if re.match(r"[^/]+/README\.md$", path) and n > 40:
        return [f"{path}: {n} lines, a folder's README has 40 at most"]
    return []


def check(files):
    complaints = []
    for path, text in files.items():
        complaints += check_document(path, text)
        if not lintlib.is_c(path):
            continue
        complaints += check_opening(path, text)
        if lintlib.is_generated(path):
            continue
        complaints += check_file(path, text) + check_functions(path, text)
        if path.endswith(".h") and "#pragma once" not in text:
            complaints.append(f"{path}: no #pragma once")
    return complaints


HEAD = f"/* x.c - an example. */\n{SPDX}\n"
BODY = "  f();\n" * 58
PLANTED = {
    "long file": {"engine/x.c": HEAD + "int a;\n" * 999},
    "long file without a reason": {"engine/x.c": HEAD + "int a;\n" * 700},
    "long header": {"engine/x.h": HEAD + "#pragma once\n" + "int a;\n" * 200},
    "long function": {"engine/x.c": HEAD + "int\nf(void)\n{\n" + BODY + "}\n"},
    "long kernel": {"engine/cpu-x.c": HEAD + "int\nf(void)\n{\n" + BODY * 2 + "}\n"},
    "deep nesting": {"engine/x.c": HEAD + "int\nf(int a,\n  int b)\n{\n" + "{\n" * 5 + "}\n" * 5 + "}\n"},
    "no opening comment": {"engine/x.c": SPDX + "\nint a;\n".replace("/*", "//")},
    "no SPDX line": {"engine/x.c": "/* x.c - an example. */\nint a;\n"},
    "long opening comment": {"engine/x.c": "/* x\n" + " * y\n" * 12 + " */\n" + SPDX + "\n"},
    "no pragma once": {"engine/x.h": HEAD},
    "long README": {"engine/README.md": "x\n" * 41},
    "long ADR": {"docs/adr/0001-x.md": "x\n" * 61},
}
CLEAN = {"engine/x.c": HEAD + "int\nf(void)\n{\n" + "  f(\"{{{{{{\"); /* {{{{{{ */\n" * 57 + "}\n",
         "engine/cpu-x.c": HEAD + "int\nf(void)\n{\n" + BODY + "}\n",
         "engine/y.c": "/* y.c - Over 700 lines because it is an example. */\n" + SPDX + "\n" + "int a;\n" * 800,
         "engine/unicode-data.c": HEAD + "int a;\n" * 5000}

if __name__ == "__main__":
    lintlib.run("sizes", check, PLANTED, CLEAN)

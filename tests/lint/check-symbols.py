#!/usr/bin/env python3
"""The engine's library: external symbols start with ks_, and nothing in it can change between calls.

Usage: check-symbols.py LIBRARY... (static libraries).  Read with `objdump -t`: a variable in .data or
.bss is state that all users share; constants (.rodata, .data.rel.ro) are fine.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import re
import subprocess
import sys
import tempfile

import lintlib

# value, seven flag characters, section, size, optional visibility, name
SYMBOL = re.compile(r"^[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+ (?:\.hidden |\.protected |\.internal )?(\S+)$", re.M)
MEMBER = re.compile(r"^(?:.*[/:])?([\w.-]+\.o):\s+file format.*$", re.M)
# A signal handler belongs to the process: the guard of mapped files cannot do without state.
ALLOWED = {("reader.c.o", name) for name in ("slots", "previous_action", "page_bytes", "guard_once")}
# Modules are loaded once per process and stay: the registry is filled once and constant from then on.
ALLOWED |= {("backend.c.o", name) for name in ("the_registry", "filled_once")}
MUTABLE = re.compile(r"^(\.t?bss|\.t?data(?!\.rel\.ro)|\*COM\*)")


def symbols(library):
    """(member, flags, section, name) of every symbol."""
    out = subprocess.run(["objdump", "-t", library], capture_output=True, text=True, check=True).stdout
    parts = MEMBER.split(out)
    for member, table in zip(parts[1::2], parts[2::2]):
        for flags, section, name in SYMBOL.findall(table):
            yield member, flags, section, name


def check_library(library):
    complaints = []
    for member, flags, section, name in symbols(library):
        if section == "*UND*" or "f" in flags or "d" in flags[1:]:
            continue
        if flags[0] in "gu!" and not name.startswith("ks_"):
            complaints.append(f"{member}: {name}: external symbols start with ks_")
        if MUTABLE.match(section) and not name.startswith(".") and (member, name) not in ALLOWED:
            complaints.append(f"{member}: {name}: a variable that can change ({section})")
    return complaints


def check(sources):
    """Planted cases are C texts, compiled first; the real case is a list of libraries."""
    if "" in sources:
        return [c for library in sources[""] for c in check_library(library)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.o")
        text = "\n".join(sources.values())
        subprocess.run(["cc", "-x", "c", "-c", "-fPIC", "-o", path, "-"], input=text, text=True, check=True)
        return check_library(path)


PLANTED = {
    "foreign name": {"a.c": "int other_name(void) { return 1; }\n"},
    "static counter": {"a.c": "int ks_f(void) { static int n; return ++n; }\n"},
    "global with a value": {"a.c": "int ks_n = 3;\n"},
    "thread-local": {"a.c": "static _Thread_local int n; int ks_f(void) { return ++n; }\n"},
}
CLEAN = {"a.c": 'static const char *const names[] = {"a", "b"};\n'
                "const char *ks_f(int i) { return names[i]; }\nint ks_g(void) { return ks_f(1) != 0; }\n"}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: check-symbols.py LIBRARY...")
    lintlib.run("symbols", check, PLANTED, CLEAN, {"": sys.argv[1:]})

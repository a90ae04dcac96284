#!/usr/bin/env python3
"""Each header compiles alone: engine headers as C17 and as C++17, the others as GNU C17.

Usage: check-headers.py CC... (the compiler's command, as Meson knows it).  C++ is `c++`.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import concurrent.futures
import functools
import os
import subprocess
import sys
import tempfile

import lintlib

CC = sys.argv[1:] or ["cc"]
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-unused-function", "-Werror", "-fsyntax-only"]
GLIB_MODULES = ["gio-unix-2.0", "libcjson"]
GTK_MODULES = ["libadwaita-1", "gtksourceview-5", "libcmark-gfm"]


@functools.cache
def glib_flags(window):
    """Flags of GLib; for the window, of GTK too."""
    modules = GLIB_MODULES + (GTK_MODULES if window else [])
    out = subprocess.run(["pkg-config", "--cflags", *modules], capture_output=True, text=True, check=True)
    return out.stdout.split()


def commands_for(path, root):
    """The compiler commands a header has to pass, reading the source from stdin."""
    engine = path.startswith("engine/")
    include = ["-I", root]
    if not engine:
        include += [*glib_flags(path.startswith(("ui/", "tests/ui/"))), "-D_GNU_SOURCE"]
    commands = [[*CC, "-x", "c", "-std=c17" if engine else "-std=gnu17", *WARNINGS, *include, "-"]]
    if engine and not path.endswith("-internal.h"):
        commands.append(["c++", "-x", "c++", "-std=c++17", *WARNINGS, *include, "-"])
    return commands


def check_one(path, root):
    complaints = []
    # Twice, so that a missing guard shows as well.
    source = f'#include "{path}"\n#include "{path}"\n'
    for command in commands_for(path, root):
        try:
            done = subprocess.run(command, input=source, capture_output=True, text=True)
        except OSError as e:
            complaints.append(f"{path}: {command[0]} cannot be run: {e}")
            continue
        if done.returncode != 0:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
            complaints.append(f"{path}: {'C++' if 'c++' in command else 'C'}: {first}")
    return complaints


def check_paths(paths, root):
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return [c for result in pool.map(lambda p: check_one(p, root), paths) for c in result]


def check(files):
    headers = sorted(p for p in files if p.endswith(".h"))
    if files.get("") == "tree":
        return check_paths(headers, lintlib.ROOT)
    with tempfile.TemporaryDirectory() as root:
        for path in headers:
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(files[path])
        return check_paths(headers, root)


PLANTED = {
    "needs another header": {"engine/a.h": "#pragma once\nsize_t n(void);\n"},
    "no guard": {"engine/a.h": "struct a { int b; };\n"},
    "not C++": {"engine/a.h": "#pragma once\nint f(int *restrict p);\n"},
    "needs GLib": {"app/ks-a.h": "#pragma once\ngboolean f (void);\n"},
}
CLEAN = {"engine/a.h": "#pragma once\n#include <stddef.h>\nsize_t n(void);\n",
         "app/ks-a.h": "#pragma once\n#include <glib-object.h>\nG_BEGIN_DECLS\ngboolean f (void);\nG_END_DECLS\n"}

if __name__ == "__main__":
    tree = {path: "" for path in lintlib.tracked_paths()}
    tree[""] = "tree"
    lintlib.run("headers", check, PLANTED, CLEAN, tree)

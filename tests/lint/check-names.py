#!/usr/bin/env python3
"""File names: unique in the whole tree, lower case with dashes, `ks-` where GLib is spoken."""
# SPDX-License-Identifier: GPL-3.0-or-later
import re

import lintlib

CODE = (".c", ".h", ".cu", ".py", ".sh", ".ui", ".sql")
SAME_NAME = {"README.md", "meson.build"}
LOWER = re.compile(r"^[a-z0-9][a-z0-9-]*(\.[a-z0-9]+)+$")
GLIB_FOLDERS = ("app", "ui", "storage", "media")
# Front ends and evaluation parts have prefixes of their own.
GLIB_PREFIXES = ("ks-", "cli-", "eval-", "bench-", "main.", "worker-main.")


def check(files):
    complaints, seen = [], {}
    for path in sorted(files):
        folder, _, name = path.rpartition("/")
        if lintlib.is_test_data(path):
            continue
        if path.endswith(CODE) or path.endswith(".md"):
            other = seen.setdefault(name, path)
            if other != path and name not in SAME_NAME:
                complaints.append(f"{path}: the same name as {other}")
        if not path.endswith(CODE):
            continue
        if not LOWER.match(name) and name != "lintlib.py":
            complaints.append(f"{path}: names are lower case with dashes")
        if folder in GLIB_FOLDERS and lintlib.is_c(path) and not name.startswith(GLIB_PREFIXES):
            complaints.append(f"{path}: files here start with ks-")
        if folder == "engine" and name.startswith("ks-"):
            complaints.append(f"{path}: engine files have no prefix")
    return complaints


PLANTED = {
    "one name twice": {"engine/a.c": "", "tests/a.c": ""},
    "capitals": {"engine/Thing.c": ""},
    "underscore": {"engine/a_thing.c": ""},
    "no prefix in app": {"app/thing.c": ""},
    "prefix in engine": {"engine/ks-thing.c": ""},
}
CLEAN = {"engine/kv-pool.c": "", "app/ks-engine.c": "", "app/cli-main.c": "", "engine/README.md": "",
         "app/README.md": ""}

if __name__ == "__main__":
    lintlib.run("names", check, PLANTED, CLEAN)

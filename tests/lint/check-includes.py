#!/usr/bin/env python3
"""Who may include whom: ui -> app -> {engine, media, storage}; cuda sees four engine headers."""
# SPDX-License-Identifier: GPL-3.0-or-later
import re

import lintlib

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
GLIB = ("glib", "gio/", "gobject/", "gmodule")
GTK = ("gtk/", "gdk", "adwaita", "gtksourceview", "graphene", "pango", "cmark")
SQL = ("sqlite3",)
FFMPEG = ("libav", "libsw")
CUDA = ("cuda", "cublas", "nvrtc", "cooperative_groups")
DECODERS = ("poppler", "tesseract", "libheif", "webp/", "librsvg", "tiffio", "jpeglib", "png.h")
VALUE_HEADERS = ("storage/ks-session.h", "storage/ks-message.h", "storage/ks-attachment.h",
                 "media/ks-pixels.h")
CUDA_MAY = ("engine/backend.h", "engine/backend-train.h", "engine/dtype.h", "engine/status.h")

# folder: (project folders it may include, library prefixes it must never name)
RULES = {
    "engine": (("engine",), GLIB + GTK + SQL + FFMPEG + CUDA + DECODERS + ("uchardet", "archive", "libsoup")),
    "app": (("app", "engine", "media", "storage"), GTK + SQL + FFMPEG + CUDA + DECODERS),
    "media": (("media",), GTK + SQL + CUDA),
    "storage": (("storage",), GTK + FFMPEG + CUDA + DECODERS),
    "ui": (("ui", "app"), SQL + FFMPEG + CUDA + DECODERS),
    "cuda": (("cuda",), GLIB + GTK + SQL + FFMPEG + DECODERS),
    "tests": (("tests", "engine", "app", "media", "storage", "ui", "cuda"), ()),
}


def is_configured(target, files):
    """True for a header that Meson writes into the build folder."""
    folder, _, name = target.rpartition("/")
    return f"output: '{name}'" in files.get(folder + "/meson.build", "")


def check_project_include(path, folder, target, files):
    may = RULES[folder][0]
    top = target.split("/")[0]
    if "/" not in target:
        return f'"{target}": include paths start at the root'
    if target.endswith(".c"):
        return f'"{target}": a .c file is never included'
    if target not in files and top in RULES and not is_configured(target, files):
        return f'"{target}": no such header'
    if folder == "cuda" and target in CUDA_MAY or folder == "ui" and target in VALUE_HEADERS:
        return None
    if top not in may:
        return f'"{target}": {folder}/ must not know {top}/'
    # These run every instruction set's kernels by themselves: ADR 0008.
    if target.endswith("-internal.h") and top != folder and not path.startswith(("tests/ops/", "tests/bench/")):
        return f'"{target}": an internal header never leaves its folder'
    return None


def check_library_include(path, folder, target):
    if any(target.startswith(p) for p in RULES[folder][1]):
        return f"<{target}>: not allowed in {folder}/"
    if "cJSON" in target and folder == "engine" and path != "engine/safetensors.c":
        return f"<{target}>: cJSON belongs to engine/safetensors.c only"
    return None


def check_order(path, text):
    """Own header first, then the project's, then <...>; sorted inside a block of lines."""
    complaints = []
    head = re.split(r"^[ \t]*#[ \t]*if", text.replace("#pragma once", ""), maxsplit=1, flags=re.M)[0]
    lines = [(m.group(1), m.group(2), lintlib.line_of(head, m.start())) for m in INCLUDE.finditer(head)
             if not m.group(2).endswith(".inc")]  # code, included where it belongs
    own = re.sub(r"\.(c|cu)$", ".h", path)
    if own != path and any(target == own for _, target, _ in lines) and lines[0][1] != own:
        complaints.append(f"{path}: its own header comes first")
    for (kind_a, a, line_a), (kind_b, b, line_b) in zip(lines, lines[1:]):
        if kind_a == "<" and kind_b == '"':
            complaints.append(f'{path}:{line_b}: "{b}" comes before the libraries')
        if line_b == line_a + 1 and kind_a == kind_b and b < a and a != own:
            complaints.append(f"{path}:{line_b}: {b} is not in sorted order")
    return complaints


def check(files):
    complaints = []
    for path, text in files.items():
        folder = path.split("/")[0]
        if not lintlib.is_c(path) or folder not in RULES:
            continue
        text = lintlib.strip_c(text, keep_strings=True)
        for match in INCLUDE.finditer(text):
            kind, target = match.groups()
            fault = (check_project_include(path, folder, target, files) if kind == '"'
                     else check_library_include(path, folder, target))
            if fault:
                complaints.append(f"{path}:{lintlib.line_of(text, match.start())}: {fault}")
        complaints += check_order(path, text)
    return complaints


PLANTED = {
    "engine includes glib": {"engine/a.c": "#include <glib.h>\n"},
    "engine includes app": {"engine/a.c": '#include "app/b.h"\n', "app/b.h": ""},
    "cJSON elsewhere": {"engine/a.c": "#include <cjson/cJSON.h>\n"},
    "app includes gtk": {"app/a.c": "#include <gtk/gtk.h>\n"},
    "internal header leaves": {"app/a.c": '#include "engine/x-internal.h"\n', "engine/x-internal.h": ""},
    "a .c is included": {"tests/a.c": '#include "engine/b.c"\n', "engine/b.c": ""},
    "no such header": {"engine/a.c": '#include "engine/gone.h"\n'},
    "path not from the root": {"engine/a.c": '#include "b.h"\n'},
    "not sorted": {"engine/a.c": "#include <string.h>\n#include <stdio.h>\n"},
    "own header not first": {"engine/a.c": '#include "engine/0.h"\n#include "engine/a.h"\n',
                             "engine/a.h": "", "engine/0.h": ""},
    "ui includes engine": {"ui/a.c": '#include "engine/a.h"\n', "engine/a.h": ""},
    "cuda includes model": {"cuda/a.cu": '#include "engine/model.h"\n', "engine/model.h": ""},
}
CLEAN = {"engine/a.c": '#include "engine/a.h"\n\n#include "engine/0.h"\n\n#include <math.h>\n#include <stdio.h>\n',
         "engine/a.h": "", "engine/0.h": "",
         "engine/b.c": '#include "engine/made.h"\n', "engine/meson.build": "configure_file(output: 'made.h')\n",
         "cuda/a.cu": '#include "engine/backend.h"\n', "engine/backend.h": ""}

if __name__ == "__main__":
    lintlib.run("includes", check, PLANTED, CLEAN)

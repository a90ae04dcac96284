#!/usr/bin/env python3
"""The programs that a user starts link no decoder: users' files are decoded in the worker only (ADR 0011).

Usage: check-linked.py PROGRAM...  Looks at what each names itself (NEEDED of `readelf -d`); what GTK brings along
for the toolkit's own icons is not looked at.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import re
import subprocess
import sys
import tempfile

import lintlib

DECODERS = re.compile(r"lib(poppler|av(codec|format|util|filter|device)|sw(scale|resample)|uchardet|tiff|jpeg|"
                      r"turbojpeg|png|webp|heif|rsvg|gif|openjp2|tesseract|gdk_pixbuf|mupdf|jxl|avif)\b|libpng\d")


def needed(path):
    out = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True,
                         env={**os.environ, "LC_ALL": "C"}).stdout
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.+?)\]", out)


def check_program(path):
    libraries = needed(path)
    complaints = [f"{os.path.basename(path)} links {name}: decoding belongs to the worker"
                  for name in libraries if DECODERS.match(name)]
    return complaints if libraries else [f"{path}: names no library at all: is it a program?"]


def check(sources):
    """Planted cases link a small program with a stand-in of the named library first."""
    if "" in sources:
        return [c for path in sources[""] for c in check_program(path)]
    with tempfile.TemporaryDirectory() as folder:
        program, libraries = os.path.join(folder, "program"), []
        for name in sources:
            path = os.path.join(folder, name)
            subprocess.run(["cc", "-shared", "-x", "c", "-o", path, f"-Wl,-soname,{name}", "-"], input="", text=True,
                           check=True)
            libraries.append(path)
        subprocess.run(["cc", "-x", "c", "-o", program, "-", "-x", "none", "-Wl,--no-as-needed", *libraries],
                       input="int main(void) { return 0; }\n", text=True, check=True)
        return check_program(program)


PLANTED = {name: {name: ""} for name in ("libpoppler-glib.so.8", "libavcodec.so.59", "libuchardet.so.0", "libtiff.so.6",
                                         "libwebp.so.7", "libpng16.so.16")}
CLEAN = {"libglib-2.0.so.0": "", "libgtk-4.so.1": ""}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: check-linked.py PROGRAM...")
    lintlib.run("linked", check, PLANTED, CLEAN, {"": sys.argv[1:]})

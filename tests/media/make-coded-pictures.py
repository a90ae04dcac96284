#!/usr/bin/env python3
"""Writes codedpictures.py: a picture of four colours as HEVC, AV1 and lossy WebP, without any container.

Usage: make-coded-pictures.py (from anywhere); run by hand, needs heif-enc (libheif-examples) and cwebp (webp).
The pictures are drawn here; hostileheif.py puts them into files of its own.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import subprocess
import tempfile

import hostileimage as image
from hostileimage import BLUE, GREEN, RED, WHITE

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = '''"""Coded pictures of 64 x 64: red, green above blue, white; made by make-coded-pictures.py."""
# SPDX-License-Identifier: GPL-3.0-or-later
from collections import namedtuple

Coded = namedtuple("Coded", "kind setup_kind setup size data")

'''


def quadrants():
    return [[(RED if x < 32 else GREEN) if y < 32 else (BLUE if x < 32 else WHITE) for x in range(64)]
            for y in range(64)]


def png(depth=8):
    scale = 1 if depth == 8 else 257
    rows = [b"".join((v * scale).to_bytes(depth // 8, "big") for p in row for v in p[:3]) for row in quadrants()]
    return image.png(64, 64, rows, depth=depth, color=2)


def half_clear():
    """Grey: 255 to the right, 0 to the left."""
    return image.png(64, 64, [bytes(32) + b"\xff" * 32] * 64, color=0)


def find_box(data, kind):
    at = data.index(kind)
    return data[at + 4:at - 4 + int.from_bytes(data[at - 4:at], "big")]


def run(folder, source, name, *command):
    with open(os.path.join(folder, "in.png"), "wb") as file:
        file.write(source)
    subprocess.run([*command], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def format_hex(data):
    text = data.hex()
    return "".join(f'\n    "{text[at:at + 104]}"' for at in range(0, len(text), 104))


def format_coded(name, data, kind, setup_kind):
    setup, coded = find_box(data, setup_kind), find_box(data, b"mdat")
    return (f"{name} = Coded({kind!r}, {setup_kind!r}, bytes.fromhex({format_hex(setup)}), (64, 64), bytes.fromhex("
            f"{format_hex(coded)}))\n")


def main():
    out = HEAD
    with tempfile.TemporaryDirectory() as folder:
        for name, source, brand, options in (("HEVC", png(), "heic", []), ("AV1", png(), "avif", ["-A"]),
                                             ("HEVC_TEN", png(16), "heic", ["-b", "10"]),
                                             ("AV1_MONO", half_clear(), "avif", ["-A"])):
            data = run(folder, source, "out." + brand, "heif-enc", "-q", "95", *options, "-o", "out." + brand, "in.png")
            kinds = (b"hvc1", b"hvcC") if brand == "heic" else (b"av01", b"av1C")
            out += format_coded(name, data, *kinds)
        lossy = run(folder, png(), "out.webp", "cwebp", "-q", "90", "-metadata", "none", "in.png", "-o", "out.webp")
        out += f"WEBP_LOSSY = bytes.fromhex({format_hex(lossy)})\n"
    with open(os.path.join(HERE, "codedpictures.py"), "w", encoding="utf-8") as file:
        file.write(out)


if __name__ == "__main__":
    main()

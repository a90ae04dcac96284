#!/usr/bin/env python3
"""Writes the case `resample`: what Pillow and the models' size rules make of pictures from a formula.

Usage: make-resample.py FOLDER.  Needs Pillow and numpy, best in an environment of their own.  Small
results are stored; of large ones only a 64-bit FNV-1a hash.  The size rules are written here once
more, in Python's floats as in the image processors of the models, and share no code with the engine.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import math
import os
import random
import sys

import numpy
import PIL
from PIL import Image

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC,
           "lanczos": Image.Resampling.LANCZOS}
# From, to: equal sides, one side equal, up, down, both, single pixels, long strips, strong shrinking.
SIZES = [(40, 30, 40, 30), (40, 30, 40, 17), (40, 30, 23, 30), (40, 30, 57, 30), (40, 30, 63, 45), (40, 30, 13, 11),
         (40, 30, 7, 61), (61, 47, 60, 48), (1, 1, 5, 3), (1, 400, 9, 7), (400, 1, 6, 8), (2, 3, 31, 1), (3, 2, 1, 37),
         (300, 200, 5, 3), (500, 375, 84, 63), (17, 13, 340, 2), (1000, 3, 3, 1),
         # The height loses just over and exactly twice as many pixels as the width: this decides the order of passes.
         (40, 61, 30, 40), (40, 60, 30, 40), (40, 60, 50, 59), (50, 900, 40, 9)]
LARGE = [(2400, 1800, 1036, 784), (1400, 900, 1401, 903)]
MAX_STORED = 4000  # bytes of a result

# The picture preparation of each family, at sizes that keep the case small; mean and std as the models have them.
CLIP = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}
HALF = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
RULES = {
    "idefics3-small": {"projector": "idefics3", "tile": 32, "longest": 128, "patch": 8, "merge": 2, **HALF},
    "idefics3": {"projector": "idefics3", "tile": 512, "longest": 2048, "patch": 16, "merge": 4, **HALF},
    "idefics3-14": {"projector": "idefics3", "tile": 364, "longest": 1456, "patch": 14, "merge": 2, **HALF},
    "mlp-small": {"projector": "mlp", "tile": 28, "patch": 14, "merge": 1, **CLIP},
    "mlp": {"projector": "mlp", "tile": 336, "patch": 14, "merge": 1, **CLIP},
    "gemma3-small": {"projector": "gemma3", "tile": 32, "patch": 4, "merge": 4, **HALF},
    "gemma3": {"projector": "gemma3", "tile": 896, "patch": 14, "merge": 4, **HALF},
    "qwen2-small": {"projector": "qwen2vl_merger", "patch": 4, "merge": 2, "min": 256, "max": 1600, **CLIP},
    "qwen2.5": {"projector": "qwen2.5vl_merger", "patch": 14, "merge": 2, "min": 3136, "max": 12845056, **CLIP},
    "qwen2.5-capped": {"projector": "qwen2.5vl_merger", "patch": 14, "merge": 2, "min": 200704, "max": 1003520, **CLIP},
    "qwen3": {"projector": "qwen3vl_merger", "patch": 16, "merge": 2, "min": 65536, "max": 16777216, **HALF},
}
PICTURES = [(157, 104), (48, 144), (1, 1), (64, 64), (37, 91), (1, 150), (200, 1), (99, 100)]


def make_picture(width, height):
    """Gradients, wrapped steps and a weave: every filter overshoots somewhere.  Wraps at 32 bits like the C side."""
    x, y, c = numpy.meshgrid(numpy.arange(width, dtype=numpy.uint32), numpy.arange(height, dtype=numpy.uint32),
                             numpy.arange(3, dtype=numpy.uint32))
    value = x * 37 + y * 101 + c * 59 + ((x * y) >> 3) * 11 + ((x ^ y) & 16) * 9
    return Image.fromarray((value & 255).astype(numpy.uint8), "RGB")


def hash_bytes(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001b3) & 0xffffffffffffffff
    return f"{value:016x}"


# --- size rules ---

def idefics_first(rule, width, height):
    aspect = width / height
    if width >= height:
        width, height = rule["longest"], int(rule["longest"] / aspect)
        height += height % 2
    else:
        width, height = int(rule["longest"] * aspect), rule["longest"]
        width += width % 2
    return max(width, 1), max(height, 1)


def idefics_size(rule, width, height):
    tile = rule["tile"]
    width, height = idefics_first(rule, width, height)
    aspect = width / height
    if width >= height:
        width = math.ceil(width / tile) * tile
        height = math.ceil(int(width / aspect) / tile) * tile
    else:
        height = math.ceil(height / tile) * tile
        width = math.ceil(int(height * aspect) / tile) * tile
    return width, height


def qwen_size(rule, width, height):
    """None where the picture is too narrow."""
    unit = rule["patch"] * rule["merge"]
    if max(width, height) / min(width, height) > 200:
        return None
    w, h = max(unit, round(width / unit) * unit), max(unit, round(height / unit) * unit)
    if w * h > rule["max"]:
        beta = math.sqrt((width * height) / rule["max"])
        w, h = max(unit, math.floor(width / beta / unit) * unit), max(unit, math.floor(height / beta / unit) * unit)
    elif w * h < rule["min"]:
        beta = math.sqrt(rule["min"] / (width * height))
        w, h = math.ceil(width * beta / unit) * unit, math.ceil(height * beta / unit) * unit
    return w, h


def plan(rule, width, height):
    """Size before tiles are cut, tile columns and rows, views, tokens."""
    if rule["projector"] == "idefics3":
        size = idefics_size(rule, width, height)
    elif "tile" in rule:
        size = (rule["tile"], rule["tile"])
    else:
        size = qwen_size(rule, width, height)
    if size is None:
        return [width, height, 0, 0, 0, 0, 0, 0]
    cols, rows, view = 1, 1, size
    if rule["projector"] == "idefics3":
        cols, rows, view = size[0] // rule["tile"], size[1] // rule["tile"], (rule["tile"], rule["tile"])
    n_view = cols * rows + (1 if cols * rows > 1 else 0)
    tokens = n_view * (view[0] // rule["patch"] // rule["merge"]) * (view[1] // rule["patch"] // rule["merge"])
    return [width, height, *size, cols, rows, n_view, tokens]


def prepare(rule, picture):
    """The views as 8-bit arrays [view, height, width, 3]."""
    width, height = picture.size
    if rule["projector"] == "idefics3":
        lanczos = Image.Resampling.LANCZOS
        whole = picture.resize(idefics_first(rule, width, height), lanczos)
        whole = whole.resize(idefics_size(rule, width, height), lanczos)
        tile = rule["tile"]
        views = [whole.crop((x, y, x + tile, y + tile)) for y in range(0, whole.height, tile)
                 for x in range(0, whole.width, tile)]
        if len(views) > 1:
            views.append(whole.resize((tile, tile), lanczos))
    elif rule["projector"] == "mlp":
        side = max(width, height)
        square = Image.new("RGB", (side, side), tuple(int(m * 255) for m in rule["mean"]))
        square.paste(picture, ((side - width) // 2, (side - height) // 2))
        views = [square.resize((rule["tile"], rule["tile"]), Image.Resampling.BICUBIC)]
    elif rule["projector"] == "gemma3":
        views = [picture.resize((rule["tile"], rule["tile"]), Image.Resampling.BILINEAR)]
    else:
        size = qwen_size(rule, width, height)
        if size is None:
            return None
        views = [picture.resize(size, Image.Resampling.BICUBIC)]
    return numpy.stack([numpy.asarray(view) for view in views])


class Arrays:
    def __init__(self):
        self.data, self.index = bytearray(), {}

    def add(self, name, array):
        self.data += bytes(-len(self.data) % 64)
        dtype = {"uint8": "u8", "int32": "i32"}[str(array.dtype)]
        raw = numpy.ascontiguousarray(array).tobytes()
        self.index[name] = {"dtype": dtype, "shape": list(array.shape), "offset": len(self.data), "nbytes": len(raw)}
        self.data += raw


def result(arrays, name, array):
    raw = numpy.ascontiguousarray(array).tobytes()
    if len(raw) > MAX_STORED:
        return {"hash": hash_bytes(raw)}
    arrays.add(name, array)
    return {"array": name}


def make_resizes(arrays):
    resizes = []
    for name, kind in FILTERS.items():
        for width, height, to_width, to_height in SIZES + LARGE:
            out = numpy.asarray(make_picture(width, height).resize((to_width, to_height), kind))
            resizes.append({"filter": name, "from": [width, height], "to": [to_width, to_height],
                            **result(arrays, f"{name}.{width}x{height}.{to_width}x{to_height}", out)})
    return resizes


def make_plans(arrays):
    """Many sizes for each rule: photographs, screens, strips, both sides of the caps, and random ones."""
    rng = random.Random(20)
    sizes = [(1, 1), (1, 4000), (4000, 1), (4000, 3000), (3000, 4000), (1920, 1080), (1080, 1920), (14, 2800),
             (14, 2801), (28, 28), (42, 42), (70, 70), (1000, 1000), (2048, 2048), (2048, 2047), (2049, 2048),
             (8000, 6000), (800, 4), (364, 364), (512, 512), (513, 512), (1456, 364), (4624, 3468), (12000, 9000),
             (56, 56), (57, 55)]
    sizes += [(rng.randint(1, 5000), rng.randint(1, 5000)) for _ in range(80)]
    sizes += [(rng.randint(1, 300), rng.randint(1, 300)) for _ in range(40)]
    for name, rule in RULES.items():
        arrays.add(f"plans.{name}", numpy.array([plan(rule, w, h) for w, h in sizes], dtype=numpy.int32))


def make_views(arrays):
    views = []
    for name, rule in RULES.items():
        pictures = PICTURES if name.endswith("-small") else [(700, 525)]
        for width, height in pictures:
            out = prepare(rule, make_picture(width, height))
            if out is not None:
                views.append({"rule": name, "from": [width, height],
                              **result(arrays, f"views.{name}.{width}x{height}", out)})
    return views


def main():
    folder, arrays = sys.argv[1], Arrays()
    case = {"made_by": f"make-resample.py, Pillow {PIL.__version__}, numpy {numpy.__version__}",
            "resizes": make_resizes(arrays), "rules": RULES, "views": make_views(arrays)}
    make_plans(arrays)
    case["arrays"] = arrays.index
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "expected.bin"), "wb") as file:
        file.write(arrays.data)
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as file:
        json.dump(case, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A tiny random Gemma 3 that sees pictures, and its numbers in f64: no given case has one.

The language half alone: rows of a picture are random embeddings, stored beside the numbers.  The
tokens of one picture see each other both ways, in the layers of the sliding window (16, fewer than a
picture has) as in the others; text before and behind stays causal.  The model, the file and the
forward pass are those of make-rope-variants.py.
Usage: make-picture-variants.py [folder, default cases/ beside this file].  Needs numpy only.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import importlib.util
import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SPEC = importlib.util.spec_from_file_location("variants", os.path.join(HERE, "make-rope-variants.py"))
variants = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(variants)

CONFIG = {"name": "gemma3-picture", "arch": "gemma3", "n_embd": 48, "n_ff": 80, "n_head": 4,
          "n_kv_head": 2, "head_dim": 16, "n_rot": 16, "n_layer": 7, "eps": 1e-5, "window": 16,
          "fused": False, "tied": True, "rope": {"base": 1000000.0},
          "rope_local": {"base": 10000.0}}
GRIDS = {"img0": (5, 5), "img1": (4, 6)}
# Text, a picture, text, ...
CASES = {"img0": [9, "img0", 21], "img1": [2, "img1", 30], "img01": [5, "img0", 3, "img1", 25]}


def lay_out(parts, rng, n_vocab, image_id, embeds):
    """(ids, place -> row, ranges of the pictures)"""
    ids, seen, views = [], {}, []
    for part in parts:
        if isinstance(part, int):
            ids += rng.integers(0, n_vocab, part).tolist()
            continue
        views.append((len(ids), len(ids) + len(embeds[part])))
        for row in embeds[part]:
            seen[len(ids)] = row
            ids.append(image_id)
    return ids, seen, views


def rows_to_keep(n_tok, views):
    """Every row of text, the first, a middle and the last one of each picture."""
    inside = {t for begin, end in views for t in range(begin, end)}
    some = {t for begin, end in views for t in (begin, (begin + end) // 2, end - 1)}
    return [t for t in range(n_tok) if t not in inside or t in some]


def add_case(arrays, name, c, tensors, laid, n_vocab):
    ids, seen, views = laid
    keep = rows_to_keep(len(ids), views)
    known = [i if i < n_vocab else 0 for i in ids]
    logits, taps = variants.forward(dict(c, views=views), tensors, known, len(ids), seen)
    causal = variants.forward(c, tensors, known, len(ids), seen)[0]
    arrays.add(name + ".input_ids", ids)
    arrays.add(name + ".position_ids", list(range(len(ids))))
    arrays.add(name + ".logit_rows", keep)
    arrays.add(name + ".logits", logits[keep], 0.002)
    arrays.add(name + ".embed_last", taps["embed_last"], 1e-4)
    arrays.add(name + ".layer_out_last", taps["layer_out_last"], 1e-3)
    arrays.add(name + ".final_norm_last", taps["final_norm_last"], 1e-3)
    print("%s: %d tokens, seen one way only off by %.3f" %
          (name, len(ids), np.abs(causal - logits)[keep].max()))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "cases")
    rng = np.random.default_rng(311)
    folder = os.path.join(root, CONFIG["name"])
    os.makedirs(folder, exist_ok=True)
    vocab_keys, n_vocab = variants.vocabulary_keys()
    tensors = variants.random_tensors(CONFIG, rng, n_vocab)
    arrays = variants.Arrays()
    embeds = {}
    for name, (rows, cols) in GRIDS.items():
        a = rng.standard_normal((rows * cols, CONFIG["n_embd"]))
        embeds[name] = a.astype(np.float32).astype(np.float64)
        arrays.add(name + ".projector", embeds[name], 0.0)
    for name, parts in CASES.items():
        laid = lay_out(parts, rng, n_vocab, n_vocab, embeds)
        add_case(arrays, name, CONFIG, tensors, laid, n_vocab)
    variants.write_gguf(os.path.join(folder, "model.gguf"),
                        {**variants.model_keys(CONFIG), **vocab_keys}, tensors)
    with open(os.path.join(folder, "expected.bin"), "wb") as f:
        f.write(arrays.blob)
    about = {"arch": CONFIG["arch"], "seed": 311, "script": "make-picture-variants.py",
             "computed": "numpy, float64 from the f32 weights of the GGUF",
             "config": {k: v for k, v in CONFIG.items() if k != "name"},
             "image_token_id": n_vocab,
             "images": [{"case": name, "grid": list(grid), "n_image_tokens": grid[0] * grid[1]}
                        for name, grid in GRIDS.items()],
             "two_image_case": {"case": "img01", "images": ["img0", "img1"]},
             "file": "expected.bin", "arrays": arrays.index}
    with open(os.path.join(folder, "expected.json"), "w") as f:
        json.dump(about, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Tiny random vision towers that no given case covers, and their numbers in f64.

Written from the definitions, sharing no code with the engine: every patch, head and token is a loop
or a plain matrix product.  Folders made under cases/:
gemma3-vision: SigLIP tower, mean over 4x4 patches, RMS norm, projection; fits gemma3/model.gguf.
qwen2-vl: layer norms, quick GELU, no windows; two pictures and a pair of video frames; fits
qwen2.5-vl/model.gguf.  Pictures have sizes at which nothing is resized.
Usage: make-vision-references.py [folder, default cases/ beside this file].  Needs numpy only.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import math
import os
import struct
import sys
import zlib

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import ggufwriter  # noqa: E402

N_TEXT = 64  # width of the language models that the towers fit


# ---- files ------------------------------------------------------------------------------------

def write_png(path, rgb):
    def chunk(kind, data):
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)
    height, width, _ = rgb.shape
    rows = b"".join(b"\0" + row.tobytes() for row in rgb)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9))
                + chunk(b"IEND", b""))


def draw(rng, width, height):
    """A smooth ground with some boxes: neighbouring patches differ, and so do rows and columns."""
    y, x = np.mgrid[0:height, 0:width]
    rgb = np.stack([x * 255 / width, y * 255 / height, (x + y) * 255 / (width + height)], axis=-1)
    for _ in range(9):
        x0, y0 = rng.integers(0, width - 8), rng.integers(0, height - 8)
        w, h = rng.integers(6, width // 2), rng.integers(6, height // 2)
        rgb[y0:y0 + h, x0:x0 + w] = rng.integers(0, 256, 3)
    return rgb.astype(np.uint8)


def normalised(rgb, mean, std):
    """[3, height, width]"""
    return ((rgb / 255.0 - np.array(mean)) / np.array(std)).transpose(2, 0, 1)


# ---- towers -----------------------------------------------------------------------------------

def layer_norm(x, w, b, eps):
    mean = x.mean(axis=-1, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * w + b


def rms_norm(x, w, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * w


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def gelu_exact(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_quick(x):
    return x / (1 + np.exp(-1.702 * x))


def turn(x, row, col):
    """Rotates one head: the first half of the pairs by the row, the second by the column."""
    n = len(x) // 2
    y = x.copy()
    for i in range(n):
        quarter = n // 2
        pos, k = (row, i) if i < quarter else (col, i - quarter)
        angle = pos * 10000.0 ** (-k / quarter)
        y[i] = x[i] * math.cos(angle) - x[i + n] * math.sin(angle)
        y[i + n] = x[i] * math.sin(angle) + x[i + n] * math.cos(angle)
    return y


def attend(c, t, p, h, places):
    n, dim = h.shape[0], c["n_embd"] // c["n_head"]
    q, k, v = ((h @ t[p + "attn_%s.weight" % i].T + t[p + "attn_%s.bias" % i])
               .reshape(n, c["n_head"], dim) for i in "qkv")
    out = np.zeros_like(q)
    for i in range(c["n_head"]):
        qi, ki = q[:, i], k[:, i]
        if places is not None:
            qi = np.array([turn(x, *at) for x, at in zip(qi, places)])
            ki = np.array([turn(x, *at) for x, at in zip(ki, places)])
        s = qi @ ki.T / math.sqrt(dim)
        e = np.exp(s - s.max(axis=1, keepdims=True))
        out[:, i] = e / e.sum(axis=1, keepdims=True) @ v[:, i]
    return out.reshape(n, -1) @ t[p + "attn_out.weight"].T + t[p + "attn_out.bias"]


def run_blocks(c, t, x, places):
    for layer in range(c["n_layer"]):
        p = "v.blk.%d." % layer
        h = layer_norm(x, t[p + "ln1.weight"], t[p + "ln1.bias"], c["eps"])
        x = x + attend(c, t, p, h, places)
        h = layer_norm(x, t[p + "ln2.weight"], t[p + "ln2.bias"], c["eps"])
        h = c["act"](h @ t[p + "ffn_up.weight"].T + t[p + "ffn_up.bias"])
        x = x + h @ t[p + "ffn_down.weight"].T + t[p + "ffn_down.bias"]
    return x


def cut(pixels, patch, row, col):
    return pixels[:, row * patch:(row + 1) * patch, col * patch:(col + 1) * patch].reshape(-1)


def run_gemma3(c, t, frames):
    """(tower, projector) of one picture [3, tile, tile]."""
    side, s = c["tile"] // c["patch"], 4
    places = [(r, k) for r in range(side) for k in range(side)]
    w = t["v.patch_embd.weight"].reshape(c["n_embd"], -1)
    x = np.array([w @ cut(frames[0], c["patch"], r, k) for r, k in places])
    x = x + t["v.patch_embd.bias"] + t["v.position_embd.weight"]
    x = run_blocks(c, t, x, None)
    x = layer_norm(x, t["v.post_ln.weight"], t["v.post_ln.bias"], c["eps"])
    pooled = [np.mean([x[(r * s + i) * side + k * s + j] for i in range(s) for j in range(s)], axis=0)
              for r in range(side // s) for k in range(side // s)]
    pooled = rms_norm(np.array(pooled), t["mm.soft_emb_norm.weight"], c["eps"])
    return x, pooled @ t["mm.input_projection.weight"]


def run_qwen2(c, t, frames):
    """frames: two pictures [3, height, width], for a still picture twice the same."""
    _, height, width = frames[0].shape
    places = [(2 * r + i, 2 * k + j) for r in range(height // c["patch"] // 2)
              for k in range(width // c["patch"] // 2) for i in range(2) for j in range(2)]
    halves = [t[n].reshape(c["n_embd"], -1) for n in ("v.patch_embd.weight", "v.patch_embd.weight.1")]
    x = np.array([sum(w @ cut(f, c["patch"], r, k) for w, f in zip(halves, frames))
                  for r, k in places])
    x = run_blocks(c, t, x, places)
    h = layer_norm(x, t["v.post_ln.weight"], t["v.post_ln.bias"], c["eps"]).reshape(len(x) // 4, -1)
    h = gelu_exact(h @ t["mm.0.weight"].T + t["mm.0.bias"])
    return x, h @ t["mm.2.weight"].T + t["mm.2.bias"]


# ---- cases ------------------------------------------------------------------------------------

def random_tensors(c, rng):
    d, f, tensors = c["n_embd"], c["n_ff"], {}

    def put(name, shape, gain):
        a = rng.standard_normal(shape) * gain
        tensors[name] = a.astype(np.float32).astype(np.float64)

    def layer(name, n_out, n_in, gain=1.0):
        put(name + ".weight", (n_out, n_in), gain / math.sqrt(n_in))
        put(name + ".bias", (n_out,), 0.1)

    def norm(name, n):
        put(name + ".weight", (n,), 0.2)
        tensors[name + ".weight"] = (1 + tensors[name + ".weight"]).astype(np.float32).astype(float)
        put(name + ".bias", (n,), 0.1)

    width = 3 * c["patch"] ** 2
    for name in c["patch_tensors"]:
        put(name, (d, 3, c["patch"], c["patch"]), 1 / math.sqrt(width))
    for i in range(c["n_layer"]):
        p = "v.blk.%d." % i
        norm(p + "ln1", d)
        norm(p + "ln2", d)
        for part in ("q", "k"):
            layer(p + "attn_" + part, d, d, 1.5)
        for part in ("v", "out"):
            layer(p + "attn_" + part, d, d)
        layer(p + "ffn_up", f, d)
        layer(p + "ffn_down", d, f)
    norm("v.post_ln", d)
    if c["family"] == "gemma3":
        put("v.patch_embd.bias", (d,), 0.1)
        put("v.position_embd.weight", ((c["tile"] // c["patch"]) ** 2, d), 0.5)
        norm("mm.soft_emb_norm", d)
        del tensors["mm.soft_emb_norm.bias"]
        put("mm.input_projection.weight", (d, N_TEXT), 1 / math.sqrt(d))
    else:
        layer("mm.0", 4 * d, 4 * d)
        layer("mm.2", N_TEXT, 4 * d)
    return tensors


def tower_keys(c):
    v = "clip.vision."
    return {
        "general.architecture": "clip", "general.name": "tiny random tower",
        "clip.has_vision_encoder": True, "clip.projector_type": c["projector"],
        "clip.use_gelu": c["family"] == "gemma3", v + "image_size": c["tile"],
        v + "patch_size": c["patch"], v + "embedding_length": c["n_embd"],
        v + "feed_forward_length": c["n_ff"], v + "block_count": c["n_layer"],
        v + "attention.head_count": c["n_head"], v + "attention.layer_norm_epsilon": c["eps"],
        v + "projection_dim": N_TEXT, v + "image_mean": c["mean"], v + "image_std": c["std"],
    }


class Arrays:
    """expected.bin and the part of expected.json that describes it."""

    def __init__(self):
        self.blob, self.index = b"", {}

    def add(self, name, a, tol):
        a = np.ascontiguousarray(a, dtype="<f4")
        self.blob += b"\0" * (-len(self.blob) % 64)
        self.index[name] = {"dtype": "f32", "shape": list(a.shape), "offset": len(self.blob),
                            "nbytes": a.nbytes, "tol_abs": tol}
        self.blob += a.tobytes()


def make_case(root, c, seed):
    rng = np.random.default_rng(seed)
    tensors = random_tensors(c, rng)
    folder = os.path.join(root, c["name"])
    arrays, images, videos = Arrays(), [], []
    os.makedirs(folder, exist_ok=True)
    for case, (width, height, n_frame) in c["pictures"].items():
        files = ["%s%s.png" % (case, "-%d" % i if n_frame > 1 else "") for i in range(n_frame)]
        frames = []
        for name in files:
            rgb = draw(rng, width, height)
            write_png(os.path.join(folder, name), rgb)
            frames.append(normalised(rgb, c["mean"], c["std"]))
        pair = frames if n_frame == 2 else frames * 2
        tower, tokens = c["run"](c, tensors, pair)
        if n_frame == 1:
            arrays.add(case + "." + c["pixels"], frames[0], 1e-5)
        arrays.add(case + ".vision_tower", tower, 0.002)
        arrays.add(case + ".projector", tokens, 0.002)
        about = {"case": case, "width": width, "height": height, "n_image_tokens": len(tokens)}
        if c["family"] == "qwen2":
            about["resized_to"] = [width, height]
            about["grid_thw"] = [1, height // c["patch"], width // c["patch"]]
        if n_frame == 1:
            images.append(dict(about, file=files[0], exact_preprocessing=True))
        else:
            other = c["run"](c, tensors, [frames[0]] * 2)[1]
            print("%s %s: one frame twice is off by %.3f" % (c["name"], case,
                                                             np.abs(other - tokens).max()))
            videos.append(dict(about, files=files))
    ggufwriter.write_f32(os.path.join(folder, "mmproj.gguf"), tower_keys(c), tensors)
    with open(os.path.join(folder, "expected.bin"), "wb") as f:
        f.write(arrays.blob)
    about = {"arch": c["name"], "seed": seed, "script": "make-vision-references.py",
             "computed": "numpy, float64 from the f32 weights of the GGUF",
             "language_model": c["language_model"], "images": images, "videos": videos,
             "file": "expected.bin", "arrays": arrays.index}
    with open(os.path.join(folder, "expected.json"), "w") as f:
        json.dump(about, f, indent=1)
        f.write("\n")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "cases")
    common = {"n_embd": 48, "n_ff": 100, "n_head": 3, "n_layer": 3, "eps": 1e-6}
    make_case(root, dict(
        common, name="gemma3-vision", family="gemma3", projector="gemma3", patch=7, tile=112,
        act=gelu_tanh, run=run_gemma3, mean=[0.5] * 3, std=[0.5] * 3, pixels="pixel_values",
        patch_tensors=["v.patch_embd.weight"], language_model="../gemma3/model.gguf",
        pictures={"img0": (112, 112, 1), "img1": (112, 112, 1)}), 401)
    make_case(root, dict(
        common, name="qwen2-vl", family="qwen2", projector="qwen2vl_merger", patch=14, tile=560,
        act=gelu_quick, run=run_qwen2, mean=[0.48145466, 0.4578275, 0.40821073],
        std=[0.26862954, 0.26130258, 0.27577711], pixels="chw",
        patch_tensors=["v.patch_embd.weight", "v.patch_embd.weight.1"],
        language_model="../qwen2.5-vl/model.gguf",
        pictures={"img0": (112, 84, 1), "img1": (56, 140, 1), "vid0": (84, 56, 2)}), 402)


if __name__ == "__main__":
    main()

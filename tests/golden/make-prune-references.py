#!/usr/bin/env python3
"""VisionZip and FastV on tiny models of the cases, in f64, written from docs/method.md, section 13.

Shares no code with the engine.  Towers: llava-1.5 (class token, rows merged before the projector),
gemma3-vision and qwen2-vl (tokens merged after it).  Language models: llava-1.5 and qwen3-vl (three
axes, deepstack, grouped heads).  Inputs are the arrays of the cases.  Writes prune/ beside this file.
Usage: make-prune-references.py [folder of the cases, default cases/ beside this file].  Needs numpy.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import importlib.util
import json
import math
import os
import struct
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "cases")
SPEC = importlib.util.spec_from_file_location("towers", os.path.join(HERE, "make-vision-references.py"))
towers = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(towers)
KINDS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
MIN_GAP = 1e-5  # between the last that stays and the first that does not


# ---- files ------------------------------------------------------------------------------------

def read_gguf(path):
    """name -> f64 array of the f32 tensors; keys are skipped."""
    with open(path, "rb") as file:
        data = file.read()
    at = 4

    def take(kind):
        nonlocal at
        value = struct.unpack_from("<" + kind, data, at)[0]
        at += struct.calcsize("<" + kind)
        return value

    def text():
        nonlocal at
        n = take("Q")
        at += n
        return data[at - n:at].decode("utf-8", "replace")

    def skip(kind):
        if kind == 8:
            text()
        elif kind == 9:
            inner, n = take("I"), take("Q")
            for _ in range(n):
                skip(inner)
        else:
            take(KINDS[kind])

    take("I")
    n_tensor, n_key = take("Q"), take("Q")
    for _ in range(n_key):
        text()
        skip(take("I"))
    infos = []
    for _ in range(n_tensor):
        name = text()
        shape = [take("Q") for _ in range(take("I"))]
        infos.append((name, shape[::-1], take("I"), take("Q")))
    base = -(-at // 32) * 32
    return {name: np.frombuffer(data, "<f4", int(np.prod(shape)), base + offset).reshape(shape).astype(np.float64)
            for name, shape, kind, offset in infos if kind == 0}


class Case:
    def __init__(self, name):
        self.folder = os.path.join(CASES, name)
        with open(os.path.join(self.folder, "expected.json"), encoding="utf-8") as file:
            self.json = json.load(file)
        with open(os.path.join(self.folder, "expected.bin"), "rb") as file:
            self.data = file.read()

    def get(self, name):
        a = self.json["arrays"][name]
        dtype = {"f32": "<f4", "i32": "<i4"}[a["dtype"]]
        flat = np.frombuffer(self.data, dtype, a["nbytes"] // 4, a["offset"])
        return flat.reshape(a["shape"]).astype(np.float64 if a["dtype"] == "f32" else np.int64)

    def tensors(self, file):
        return read_gguf(os.path.join(self.folder, file))


# ---- VisionZip --------------------------------------------------------------------------------

def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def block(c, t, layer, x, places):
    """(x behind the block, attention [head, query, key], keys [row, head, dim])"""
    p, n, dim = "v.blk.%d." % layer, len(x), c["n_embd"] // c["n_head"]
    h = towers.layer_norm(x, t[p + "ln1.weight"], t[p + "ln1.bias"], c["eps"])
    q, k, v = ((h @ t[p + "attn_%s.weight" % i].T + t[p + "attn_%s.bias" % i]).reshape(n, -1, dim) for i in "qkv")
    if places is not None:
        q, k = (np.array([[towers.turn(head, *at) for head in row] for row, at in zip(a, places)]) for a in (q, k))
    a = softmax(np.einsum("qhd,khd->hqk", q, k) / math.sqrt(dim))
    out = np.einsum("hqk,khd->qhd", a, v).reshape(n, -1)
    x = x + out @ t[p + "attn_out.weight"].T + t[p + "attn_out.bias"]
    h = towers.layer_norm(x, t[p + "ln2.weight"], t[p + "ln2.bias"], c["eps"])
    up, down = "ffn_up", "ffn_down"
    if t[p + up + ".weight"].shape[1] != c["n_embd"]:
        up, down = down, up  # old files have the two names swapped
    h = c["act"](h @ t[p + up + ".weight"].T + t[p + up + ".bias"])
    return x + h @ t[p + down + ".weight"].T + t[p + down + ".bias"], a, k


def choose(received, metric, n_dominant, n_context):
    """(dominant, targets, which target each of the others goes to)"""
    order = sorted(range(len(received)), key=lambda i: (-received[i], i))
    if received[order[n_dominant - 1]] - received[order[n_dominant]] < MIN_GAP * abs(received).max():
        raise SystemExit("choose other sizes: the last two are too close")
    dominant = sorted(order[:n_dominant])
    rest = [i for i in range(len(received)) if i not in dominant]
    step = max(1, len(rest) // n_context)
    targets = rest[::step][:n_context]
    unit = metric / np.linalg.norm(metric, axis=1, keepdims=True)
    goes = {i: int(np.argmax([unit[i] @ unit[k] for k in targets])) for i in rest if i not in targets}
    return dominant, targets, goes


def merge(rows, dominant, targets, goes):
    out = [rows[i] for i in dominant]
    for number, k in enumerate(targets):
        others = [rows[i] for i, to in goes.items() if to == number]
        out.append(rows[k] + (np.mean(others, axis=0) if others else 0))
    return np.array(out)


def zip_llava(n_dominant, n_context):
    case, c = Case("llava-1.5"), {"n_embd": 64, "n_head": 4, "eps": 1e-5, "act": towers.gelu_quick}
    t, pixels = case.tensors("mmproj.gguf"), case.get("img0.pixel_values")
    w = t["v.patch_embd.weight"].reshape(64, -1)
    patches = [w @ towers.cut(pixels, 14, r, k) for r in range(6) for k in range(6)]
    x = np.array([t["v.class_embd"]] + patches) + t["v.position_embd.weight"]
    x = towers.layer_norm(x, t["v.pre_ln.weight"], t["v.pre_ln.bias"], c["eps"])
    for layer in range(3):
        x, a, keys = block(c, t, layer, x, None)
    received = a[:, 0, 1:].sum(axis=0)
    dominant, targets, goes = choose(received, keys[1:].mean(axis=1), n_dominant - 1, n_context)
    rows = np.vstack([x[:1], merge(x[1:], dominant, targets, goes)])
    h = towers.gelu_exact(rows @ t["mm.0.weight"].T + t["mm.0.bias"])
    return [0] + dominant + targets, h @ t["mm.2.weight"].T + t["mm.2.bias"]


def zip_tokens(x, t, c, places, tokens, project, n_dominant, n_context):
    """Towers of three blocks: the second one decides; tokens: the patches of each."""
    for layer in range(3):
        x, a, k = block(c, t, layer, x, places)
        if layer == 1:
            received, keys = a.mean(axis=(0, 1)), k.mean(axis=1)
    received, keys = (np.array([v[list(patches)].mean(axis=0) for patches in tokens]) for v in (received, keys))
    dominant, targets, goes = choose(received, keys, n_dominant, n_context)
    return dominant + targets, merge(project(x), dominant, targets, goes)


def zip_gemma3(n_dominant, n_context):
    case, c = Case("gemma3-vision"), {"n_embd": 48, "n_head": 3, "eps": 1e-6, "act": towers.gelu_tanh}
    t, pixels, side = case.tensors("mmproj.gguf"), case.get("img0.pixel_values"), 16
    w = t["v.patch_embd.weight"].reshape(48, -1)
    x = np.array([w @ towers.cut(pixels, 7, r, k) for r in range(side) for k in range(side)])
    x = x + t["v.patch_embd.bias"] + t["v.position_embd.weight"]
    tokens = [[(r * 4 + i) * side + k * 4 + j for i in range(4) for j in range(4)] for r in range(4) for k in range(4)]

    def project(x):
        x = towers.layer_norm(x, t["v.post_ln.weight"], t["v.post_ln.bias"], c["eps"])
        pooled = np.array([x[i].mean(axis=0) for i in tokens])
        return towers.rms_norm(pooled, t["mm.soft_emb_norm.weight"], c["eps"]) @ t["mm.input_projection.weight"]
    return zip_tokens(x, t, c, None, tokens, project, n_dominant, n_context)


def zip_qwen2(n_dominant, n_context):
    case, c = Case("qwen2-vl"), {"n_embd": 48, "n_head": 3, "eps": 1e-6, "act": towers.gelu_quick}
    t, pixels = case.tensors("mmproj.gguf"), case.get("img0.chw")
    places = [(2 * r + i, 2 * k + j) for r in range(3) for k in range(4) for i in range(2) for j in range(2)]
    halves = [t[n].reshape(48, -1) for n in ("v.patch_embd.weight", "v.patch_embd.weight.1")]
    x = np.array([sum(w @ towers.cut(pixels, 14, *at) for w in halves) for at in places])

    def project(x):
        h = towers.layer_norm(x, t["v.post_ln.weight"], t["v.post_ln.bias"], c["eps"]).reshape(len(x) // 4, -1)
        h = towers.gelu_exact(h @ t["mm.0.weight"].T + t["mm.0.bias"])
        return h @ t["mm.2.weight"].T + t["mm.2.bias"]
    return zip_tokens(x, t, c, places, np.arange(len(x)).reshape(-1, 4), project, n_dominant, n_context)


# ---- FastV ------------------------------------------------------------------------------------

def angles(c, position):
    """Of one token: position is one number or three."""
    half = c["dim"] // 2
    axis = [0] * half
    if np.size(position) == 3:  # t h w t h w ... as long as h and w last
        t, h, w = c["sections"]
        axis = [1 if i % 3 == 1 and i < 3 * h else 2 if i % 3 == 2 and i < 3 * w else 0 for i in range(half)]
    position = np.broadcast_to(position, 3)
    return np.array([position[axis[i]] * c["base"] ** (-2 * i / c["dim"]) for i in range(half)])


def rotate(c, x, a):
    """x [head, dim]; neighbouring pairs (llama) or halves."""
    first, second = (x[:, 0::2], x[:, 1::2]) if c["pairs"] else np.split(x, 2, axis=1)
    cos, sin = np.cos(a), np.sin(a)
    one, two = first * cos - second * sin, first * sin + second * cos
    return np.stack([one, two], axis=2).reshape(x.shape) if c["pairs"] else np.hstack([one, two])


def layer(c, t, number, x, turns):
    """(x behind it, attention of the last row [head, key])"""
    p, n = "blk.%d." % number, len(x)
    h = towers.rms_norm(x, t[p + "attn_norm.weight"], c["eps"])
    q, k, v = ((h @ t[p + "attn_%s.weight" % i].T).reshape(n, -1, c["dim"]) for i in "qkv")
    if c["normed"]:
        q, k = (towers.rms_norm(a, t[p + "attn_%s_norm.weight" % i], c["eps"]) for a, i in ((q, "q"), (k, "k")))
    q, k = (np.array([rotate(c, row, a) for row, a in zip(m, turns)]) for m in (q, k))
    k, v = (np.repeat(m, q.shape[1] // m.shape[1], axis=1) for m in (k, v))
    s = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(c["dim"])
    s[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
    a = softmax(s)
    x = x + np.einsum("hqk,khd->qhd", a, v).reshape(n, -1) @ t[p + "attn_output.weight"].T
    h = towers.rms_norm(x, t[p + "ffn_norm.weight"], c["eps"])
    gate = h @ t[p + "ffn_gate.weight"].T
    h = gate / (1 + np.exp(-gate)) * (h @ t[p + "ffn_up.weight"].T)
    return x + h @ t[p + "ffn_down.weight"].T, a[:, -1]


def fastv(name, c, first_layers, drop):
    """(rows that stay behind the first layers, logits of the last row)"""
    case = Case(name)
    t, ids = case.tensors("model.gguf"), case.get("img0.input_ids")
    image = np.flatnonzero(ids == c["image"])
    x = np.array([t["token_embd.weight"][i] if i != c["image"] else np.zeros(64) for i in ids])
    x[image] = case.get("img0.projector")
    deep = case.get("img0.deepstack") if c["deep"] else []
    turns = [angles(c, p) for p in case.get("img0.position_ids").T]
    stay = np.arange(len(ids))
    for number in range(3):
        if number == first_layers:
            received = last.mean(axis=0)[image]
            order = sorted(range(len(image)), key=lambda i: (-received[i], i))
            n = len(image) - int(drop * len(image))
            if received[order[n - 1]] - received[order[n]] < MIN_GAP * received.max():
                raise SystemExit("choose another part: the last two are too close")
            gone = image[order[n:]]
            stay = np.array([i for i in stay if i not in gone])
            x, turns = x[stay], [turns[i] for i in stay]
        x, last = layer(c, t, number, x, turns)
        if number < len(deep):
            for row, place in enumerate(stay):
                if place in image:
                    x[row] += deep[number][place - image[0]]
    x = towers.rms_norm(x[-1], t["output_norm.weight"], c["eps"])
    return stay, t["output.weight"] @ x


# ---- writing ----------------------------------------------------------------------------------

def main():
    llava = {"dim": 16, "base": 1e4, "pairs": True, "normed": False, "eps": 1e-5, "image": 500, "deep": False}
    qwen3 = {"dim": 32, "base": 5e6, "pairs": False, "normed": True, "eps": 1e-6, "image": 512, "deep": True,
             "sections": (6, 5, 5)}
    arrays, blob, runs = {}, b"", []

    def put(name, a, tol):
        nonlocal blob
        dtype = "f32" if a.dtype.kind == "f" else "i32"
        raw = a.astype("<f4" if dtype == "f32" else "<i4").tobytes()
        blob += b"\0" * (-len(blob) % 64)
        arrays[name] = {"dtype": dtype, "shape": list(a.shape), "offset": len(blob), "nbytes": len(raw), "tol_abs": tol}
        blob += raw

    for name, function, sizes in (("llava-1.5", zip_llava, (6, 4)), ("gemma3-vision", zip_gemma3, (5, 3)),
                                  ("qwen2-vl", zip_qwen2, (4, 3))):
        places, tokens = function(*sizes)
        put("zip.%s.places" % name, np.array(places), 0)
        put("zip.%s.tokens" % name, tokens, 1e-4)
        runs.append({"kind": "zip", "case": name, "n_dominant": sizes[0], "n_context": sizes[1]})
    for name, config, first_layers, drop in (("llava-1.5", llava, 2, .5), ("llava-1.5", llava, 1, .7),
                                             ("qwen3-vl", qwen3, 1, .5), ("qwen3-vl", qwen3, 2, .4)):
        stay, logits = fastv(name, config, first_layers, drop)
        key = "fastv.%s.%d" % (name, first_layers)
        put(key + ".stay", stay, 0)
        put(key + ".logits", logits, 2e-4)
        runs.append({"kind": "fastv", "case": name, "layer": first_layers, "drop": drop})
        whole, plain = fastv(name, config, 3, 0)
        case = Case(name)
        rows = list(case.get("img0.logit_rows"))
        off = abs(plain - case.get("img0.logits")[rows.index(len(whole) - 1)]).max()
        if off > 1e-3:
            raise SystemExit(f"{name}: without FastV the last row is off by {off}")
    folder = os.path.join(HERE, "prune")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "expected.bin"), "wb") as file:
        file.write(blob)
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as file:
        json.dump({"made_by": "make-prune-references.py, numpy %s, f64" % np.__version__, "runs": runs,
                   "arrays": arrays}, file, indent=1)
        file.write("\n")


main()

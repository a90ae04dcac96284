#!/usr/bin/env python3
"""Tiny random models with the rotary variants that no given case covers, and their numbers in f64.

Written from the definitions, sharing no code with the engine: every head, token and pair is a loop
or a plain matrix product.  Folders made under cases/: phi3 (fused q/k/v, fused gate and up, partial
rotation, longrope with short and long lists), phi3-window (sliding window in all layers),
llama-yarn, llama-linear, gemma3-linear (stretched global layers, plain local ones).
Longrope: a case within the original context uses the short list, a longer one the long list;
the reader opens the model with the case's own length as its context.
Usage: make-rope-variants.py [folder, default cases/ beside this file].  Needs numpy only.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import math
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import ggufwriter  # noqa: E402

WORDS = ["the", "in", "er", "on", "an", "re", "st", "en", "or", "at", "es", "ing"]


def byte_alphabet():
    """The printable characters that stand for the 256 bytes in byte-level vocabularies."""
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    table, extra = {}, 0
    for b in range(256):
        table[b] = chr(b) if b in plain else chr(256 + extra)
        extra += b not in plain
    return [table[b] for b in range(256)]


def vocabulary_keys():
    tokens, merges = byte_alphabet(), []
    for word in WORDS:
        if word[:2] not in tokens:
            tokens.append(word[:2])
            merges.append(word[0] + " " + word[1])
        if len(word) == 3:
            tokens.append(word)
            merges.append(word[:2] + " " + word[2])
    types = [1] * len(tokens) + [3] * 3
    tokens += ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    n = len(tokens)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": n - 3,
        "tokenizer.ggml.eos_token_id": n - 1,
        "tokenizer.ggml.add_bos_token": False,
    }, n


# ---- frequencies ------------------------------------------------------------------------------

def frequencies(rope, n_rot, n_ctx):
    """(frequency of each pair, factor on cos and sin) for a context of n_ctx tokens."""
    base, kind = rope["base"], rope.get("type", "none")
    freq = [1.0 / base ** (2 * i / n_rot) for i in range(n_rot // 2)]
    if kind == "linear":
        return [f / rope["factor"] for f in freq], 1.0
    if kind == "longrope":
        which = rope["long"] if n_ctx > rope["original"] else rope["short"]
        stretch = rope["context"] / rope["original"]
        mag = math.sqrt(1 + math.log(stretch) / math.log(rope["original"]))
        return [f / w for f, w in zip(freq, which)], mag
    if kind == "yarn":
        def pair_with_turns(n_turn):
            wave = rope["original"] / (n_turn * 2 * math.pi)
            return n_rot * math.log(wave) / (2 * math.log(base))
        low = max(math.floor(pair_with_turns(32)), 0)
        high = min(math.ceil(pair_with_turns(1)), n_rot - 1)
        out = []
        for i, f in enumerate(freq):
            slow = min(max((i - low) / max(high - low, 0.001), 0.0), 1.0)
            out.append(slow * f / rope["factor"] + (1 - slow) * f)
        return out, 1 + 0.1 * math.log(rope["factor"])
    return freq, 1.0


def rotate(x, pos, freq, mag, halves):
    """One head's vector at one position; elements past the rotated ones stay."""
    n = len(freq)
    y = x.copy()
    for i in range(n):
        a, b = (i, i + n) if halves else (2 * i, 2 * i + 1)
        c, s = mag * math.cos(pos * freq[i]), mag * math.sin(pos * freq[i])
        y[a] = x[a] * c - x[b] * s
        y[b] = x[a] * s + x[b] * c
    return y


# ---- the model --------------------------------------------------------------------------------

def rms_norm(x, w, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * w


def silu(x):
    return x / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def is_local(c, layer):
    if c["window"] == 0:
        return False
    return True if c["arch"] == "phi3" else layer % 6 != 5


def attention(c, w, layer, h, n_ctx):
    n_head, n_kv, dim = c["n_head"], c["n_kv_head"], c["head_dim"]
    n_tok = h.shape[0]
    local = is_local(c, layer)
    rope = c["rope_local"] if local and "rope_local" in c else c["rope"]
    freq, mag = frequencies(rope, c["n_rot"], n_ctx)
    if c["fused"]:
        qkv = h @ w["attn_qkv.weight"].T
        q, k, v = np.split(qkv, [n_head * dim, (n_head + n_kv) * dim], axis=1)
    else:
        q, k, v = (h @ w["attn_%s.weight" % n].T for n in "qkv")
    q = q.reshape(n_tok, n_head, dim)
    k, v = k.reshape(n_tok, n_kv, dim), v.reshape(n_tok, n_kv, dim)
    if "attn_q_norm.weight" in w:
        q = rms_norm(q, w["attn_q_norm.weight"], c["eps"])
        k = rms_norm(k, w["attn_k_norm.weight"], c["eps"])
    halves = c["arch"] != "llama"
    for t in range(n_tok):
        for i in range(n_head):
            q[t, i] = rotate(q[t, i], t, freq, mag, halves)
        for i in range(n_kv):
            k[t, i] = rotate(k[t, i], t, freq, mag, halves)
    out = np.zeros((n_tok, n_head, dim))
    for t in range(n_tok):
        first, end = max(0, t - c["window"] + 1) if local else 0, t + 1
        for begin, behind in c.get("views", []):  # of pictures: seen both ways, in windows too
            if begin <= t < behind:
                first, end = min(first, begin), behind
        for i in range(n_head):
            g = i // (n_head // n_kv)
            s = k[first:end, g] @ q[t, i] / math.sqrt(dim)
            p = np.exp(s - s.max())
            out[t, i] = (p / p.sum()) @ v[first:end, g]
    return out.reshape(n_tok, n_head * dim) @ w["attn_output.weight"].T


def feed_forward(c, w, h):
    act = gelu_tanh if c["arch"] == "gemma3" else silu
    if c["fused"]:
        gate, up = np.split(h @ w["ffn_up.weight"].T, 2, axis=1)
    else:
        gate, up = h @ w["ffn_gate.weight"].T, h @ w["ffn_up.weight"].T
    return (act(gate) * up) @ w["ffn_down.weight"].T


def forward(c, tensors, ids, n_ctx, seen=None):
    """seen: place -> row that comes from a picture instead of the embedding table, never scaled."""
    x = tensors["token_embd.weight"][ids]
    if c["arch"] == "gemma3":
        x = x * math.sqrt(c["n_embd"])
    for place, row in (seen or {}).items():
        x[place] = row
    taps = {"embed_last": x[-1].copy(), "layer_out_last": []}
    for layer in range(c["n_layer"]):
        prefix = "blk.%d." % layer
        w = {n[len(prefix):]: a for n, a in tensors.items() if n.startswith(prefix)}
        y = attention(c, w, layer, rms_norm(x, w["attn_norm.weight"], c["eps"]), n_ctx)
        if "post_attention_norm.weight" in w:
            y = rms_norm(y, w["post_attention_norm.weight"], c["eps"])
        x = x + y
        y = feed_forward(c, w, rms_norm(x, w["ffn_norm.weight"], c["eps"]))
        if "post_ffw_norm.weight" in w:
            y = rms_norm(y, w["post_ffw_norm.weight"], c["eps"])
        x = x + y
        taps["layer_out_last"].append(x[-1].copy())
    x = rms_norm(x, tensors["output_norm.weight"], c["eps"])
    taps["final_norm_last"] = x[-1]
    taps["layer_out_last"] = np.array(taps["layer_out_last"])
    return x @ tensors.get("output.weight", tensors["token_embd.weight"]).T, taps


# ---- one case ---------------------------------------------------------------------------------

def random_tensors(c, rng, n_vocab):
    d, f, dim = c["n_embd"], c["n_ff"], c["head_dim"]
    n_q, n_k = c["n_head"] * dim, c["n_kv_head"] * dim
    tensors = {}

    def matrix(name, n_out, n_in, gain=1.0):
        a = rng.standard_normal((n_out, n_in)) * gain / math.sqrt(n_in)
        tensors[name] = a.astype(np.float32).astype(np.float64)

    def vector(name, n):
        a = 1 + 0.2 * rng.standard_normal(n)
        tensors[name] = a.astype(np.float32).astype(np.float64)

    matrix("token_embd.weight", n_vocab, d, 1.0 if c["arch"] == "gemma3" else math.sqrt(d))
    if not c["tied"]:
        matrix("output.weight", n_vocab, d, 2.0)
    vector("output_norm.weight", d)
    for layer in range(c["n_layer"]):
        p = "blk.%d." % layer
        vector(p + "attn_norm.weight", d)
        if c["fused"]:
            matrix(p + "attn_qkv.weight", n_q + 2 * n_k, d, 1.5)
        else:
            matrix(p + "attn_q.weight", n_q, d, 1.5)
            matrix(p + "attn_k.weight", n_k, d, 1.5)
            matrix(p + "attn_v.weight", n_k, d, 1.5)
        matrix(p + "attn_output.weight", d, n_q)
        vector(p + "ffn_norm.weight", d)
        if not c["fused"]:
            matrix(p + "ffn_gate.weight", f, d)
        matrix(p + "ffn_up.weight", f * (2 if c["fused"] else 1), d)
        matrix(p + "ffn_down.weight", d, f)
        if c["arch"] == "gemma3":
            vector(p + "attn_q_norm.weight", dim)
            vector(p + "attn_k_norm.weight", dim)
            vector(p + "post_attention_norm.weight", d)
            vector(p + "post_ffw_norm.weight", d)
    if c["rope"].get("type") == "longrope":
        tensors["rope_factors_long.weight"] = np.array(c["rope"]["long"])
        tensors["rope_factors_short.weight"] = np.array(c["rope"]["short"])
    return tensors


def model_keys(c):
    a, r = c["arch"], c["rope"]
    keys = {
        "general.architecture": a,
        "general.name": "tiny random model",
        a + ".block_count": c["n_layer"],
        a + ".context_length": r.get("context", 4096),
        a + ".embedding_length": c["n_embd"],
        a + ".feed_forward_length": c["n_ff"],
        a + ".attention.head_count": c["n_head"],
        a + ".attention.head_count_kv": c["n_kv_head"],
        a + ".attention.key_length": c["head_dim"],
        a + ".attention.value_length": c["head_dim"],
        a + ".attention.layer_norm_rms_epsilon": c["eps"],
        a + ".rope.dimension_count": c["n_rot"],
        a + ".rope.freq_base": r["base"],
    }
    if c["window"] > 0:
        keys[a + ".attention.sliding_window"] = c["window"]
    if "rope_local" in c:
        keys[a + ".rope.freq_base_swa"] = c["rope_local"]["base"]
    if r.get("type") in ("linear", "yarn"):
        keys[a + ".rope.scaling.type"] = r["type"]
        keys[a + ".rope.scaling.factor"] = r["factor"]
    if "original" in r:
        keys[a + ".rope.scaling.original_context_length"] = r["original"]
    return keys


def greedy(c, tensors, ids, n_ctx, n_step):
    ids, margins = list(ids), []
    start = len(ids)
    for _ in range(n_step):
        logits = forward(c, tensors, ids, n_ctx)[0][-1]
        best, second = np.argsort(-logits)[:2]
        margins.append(round(float(logits[best] - logits[second]), 5))
        ids.append(int(best))
    return {"prompt": "chat.input_ids", "tokens": ids[start:], "top1_minus_top2": margins,
            "note": "argmax decoding, no end; below a margin of 1e-3 another token is no error"}


class Arrays:
    """expected.bin and the part of expected.json that describes it."""

    def __init__(self):
        self.blob, self.index = b"", {}

    def add(self, name, a, tol=None):
        a = np.ascontiguousarray(a, dtype="<i4" if tol is None else "<f4")
        self.blob += b"\0" * (-len(self.blob) % 64)
        entry = {"dtype": "i32" if tol is None else "f32", "shape": list(a.shape),
                 "offset": len(self.blob), "nbytes": a.nbytes}
        if tol is not None:
            entry["tol_abs"] = tol
        self.index[name] = entry
        self.blob += a.tobytes()


def make_case(root, c, seed):
    rng = np.random.default_rng(seed)
    vocab_keys, n_vocab = vocabulary_keys()
    tensors = random_tensors(c, rng, n_vocab)
    folder = os.path.join(root, c["name"])
    arrays = Arrays()
    report = []
    os.makedirs(folder, exist_ok=True)
    for case, n_tok in c["lengths"].items():
        ids = rng.integers(0, n_vocab, n_tok).tolist()
        logits, taps = forward(c, tensors, ids, n_tok)
        arrays.add(case + ".input_ids", ids)
        arrays.add(case + ".position_ids", list(range(n_tok)))
        arrays.add(case + ".logits", logits, 0.002)
        arrays.add(case + ".embed_last", taps["embed_last"], 1e-4)
        arrays.add(case + ".layer_out_last", taps["layer_out_last"], 1e-3)
        arrays.add(case + ".final_norm_last", taps["final_norm_last"], 1e-3)
        plain = dict(c, rope={"base": c["rope"]["base"]}, window=c["window"] * 1000)
        wrong = np.abs(forward(plain, tensors, ids, n_tok)[0] - logits).max()
        report.append("%s: %d tokens, without the variant off by %.3f" % (case, n_tok, wrong))
        if case == "chat":
            steps = greedy(c, tensors, ids, n_tok, 16)
    ggufwriter.write_f32(os.path.join(folder, "model.gguf"), {**model_keys(c), **vocab_keys}, tensors)
    with open(os.path.join(folder, "expected.bin"), "wb") as f:
        f.write(arrays.blob)
    about = {"arch": c["arch"], "seed": seed, "script": "make-rope-variants.py",
             "computed": "numpy, float64 from the f32 weights of the GGUF",
             "config": {k: v for k, v in c.items() if k not in ("name", "lengths")},
             "greedy": steps, "file": "expected.bin", "arrays": arrays.index}
    with open(os.path.join(folder, "expected.json"), "w") as f:
        json.dump(about, f, indent=1)
        f.write("\n")
    print(c["name"] + ": " + "; ".join(report))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "cases")
    common = {"n_embd": 48, "n_ff": 80, "n_head": 4, "n_kv_head": 2, "head_dim": 16, "n_rot": 16,
              "n_layer": 2, "eps": 1e-5, "window": 0, "fused": False, "tied": False,
              "lengths": {"chat": 24, "long": 80}}
    short = [1.0, 1.1, 1.25, 1.4, 1.6, 1.9]
    long = [1.0, 1.8, 3.0, 6.0, 11.0, 20.0]
    make_case(root, dict(common, name="phi3", arch="phi3", n_embd=64, n_rot=12, fused=True,
                         rope={"type": "longrope", "base": 10000.0, "short": short, "long": long,
                               "original": 48, "context": 768}), 301)
    make_case(root, dict(common, name="phi3-window", arch="phi3", n_embd=64, fused=True, window=20,
                         rope={"base": 10000.0}), 302)
    make_case(root, dict(common, name="llama-yarn", arch="llama",
                         rope={"type": "yarn", "base": 1000.0, "factor": 4.0,
                               "original": 256}), 303)
    make_case(root, dict(common, name="llama-linear", arch="llama", tied=True,
                         rope={"type": "linear", "base": 10000.0, "factor": 4.0}), 304)
    make_case(root, dict(common, name="gemma3-linear", arch="gemma3", tied=True, n_layer=7,
                         window=16,
                         rope={"type": "linear", "base": 1000000.0, "factor": 8.0},
                         rope_local={"base": 10000.0}), 305)


if __name__ == "__main__":
    main()

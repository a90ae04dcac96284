#!/usr/bin/env python3
"""Losses and gradients of gate training on the tiny llama, in f64: the case train-llama.

Written from docs/method.md, section 12, sharing no code with the engine: whole [T, T] matrices, one
head at a time.  Each gradient is checked here against differences of the loss along random
directions before it is stored.  Model and gates are those of the cases llama and dbtrimkv.
Usage: make-train-reference.py [folder, default cases/ beside this file].  Needs numpy only.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import struct
import sys

import numpy as np

SEED, BIAS = 71, 2.0
SIZES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


# ---- files ------------------------------------------------------------------------------------

class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, kind):
        value = struct.unpack_from("<" + kind, self.data, self.at)[0]
        self.at += struct.calcsize("<" + kind)
        return value

    def text(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, n = self.take("I"), self.take("Q")
            return [self.value(inner) for _ in range(n)]
        return self.take(SIZES[kind])


def read_gguf(path):
    with open(path, "rb") as f:
        r = Reader(f.read())
    r.at = 8
    n_tensor, n_key = r.take("Q"), r.take("Q")
    keys = {}
    for _ in range(n_key):
        name = r.text()
        keys[name] = r.value(r.take("I"))
    infos = []
    for _ in range(n_tensor):
        name, n_dim = r.text(), r.take("I")
        shape = [r.take("Q") for _ in range(n_dim)]
        kind, offset = r.take("I"), r.take("Q")
        assert kind == 0, "f32 only"
        infos.append((name, shape[::-1], offset))
    start = -(-r.at // 32) * 32
    return keys, {name: np.frombuffer(r.data, "<f4", int(np.prod(shape)), start + offset)
                  .reshape(shape).astype(np.float64) for name, shape, offset in infos}


def read_gate(path):
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack_from("<Q", data)[0]
    head = json.loads(data[8:8 + n])
    out = {}
    for name, about in head.items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            a = np.frombuffer(data[8 + n + begin:8 + n + end], "<f4").reshape(about["shape"])
            out[name.replace("model.layers.", "").replace("self_attn.retention_gate.", "")] = \
                a.astype(np.float64)
    return out


def write_gate(path, gate):
    head, blob = {"__metadata__": {"format": "keepsake-gate-1"}}, b""
    for name, a in gate.items():
        layer, rest = name.split(".", 1)
        begin, blob = len(blob), blob + a.astype("<f4").tobytes()
        head["model.layers.%s.self_attn.retention_gate.%s" % (layer, rest)] = {
            "dtype": "F32", "shape": list(a.shape), "data_offsets": [begin, len(blob)]}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)


# ---- pieces, each with its way back -------------------------------------------------------------

def norm(x, w, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * w


def norm_back(x, w, eps, dy):
    r = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    g = dy * w
    return r * g - x * r ** 3 * np.mean(g * x, axis=-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def silu_slope(x):
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Model:
    def __init__(self, keys, w):
        self.w = w
        self.n_layer = keys["llama.block_count"]
        self.n_head = keys["llama.attention.head_count"]
        self.n_kv = keys["llama.attention.head_count_kv"]
        self.eps = keys["llama.attention.layer_norm_rms_epsilon"]
        self.base = keys["llama.rope.freq_base"]
        self.dim = w["blk.0.attn_q.weight"].shape[0] // self.n_head
        self.out = w.get("output.weight", w["token_embd.weight"])

    def layer(self, i):
        p = "blk.%d." % i
        return {n[len(p):-len(".weight")]: a for n, a in self.w.items() if n.startswith(p)}

    def rotate(self, x, pos, sign):
        """Pairs of neighbours of [T, heads, dim] by pos times the pair's frequency."""
        freq = self.base ** (-np.arange(0, self.dim, 2) / self.dim)
        angle = sign * pos[:, None, None] * freq
        c, s = np.cos(angle), np.sin(angle)
        y = np.empty_like(x)
        y[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
        y[..., 1::2] = x[..., 0::2] * s + x[..., 1::2] * c
        return y


class Pack:
    """Documents one behind the other: who sees whom, and how old everything is."""

    def __init__(self, starts, n_tok):
        t = np.arange(n_tok)
        self.n_tok = n_tok
        self.doc = np.array([max(s for s in starts if s <= i) for i in t])
        self.pos = t - self.doc
        self.sees = (t[None, :] <= t[:, None]) & (self.doc[None, :] == self.doc[:, None])
        self.age = np.where(self.sees, t[:, None] - t[None, :], 0)


def attend(m, pack, q, k, v, log_beta):
    """[T, heads, dim] of each query head and the weights [heads, T, T]; log_beta None: plain."""
    out, weights = np.empty_like(q), []
    for h in range(m.n_head):
        g = h // (m.n_head // m.n_kv)
        s = q[:, h] @ k[:, g].T / np.sqrt(m.dim)
        if log_beta is not None:
            s = s + pack.age * log_beta[:, g]
        a = softmax(np.where(pack.sees, s, -np.inf))
        weights.append(a)
        out[:, h] = a @ v[:, g]
    return out, weights


def attend_back(m, pack, q, k, v, weights, d_out):
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    d_beta = np.zeros((pack.n_tok, m.n_kv))
    for h in range(m.n_head):
        g, a = h // (m.n_head // m.n_kv), weights[h]
        da = d_out[:, h] @ v[:, g].T
        ds = a * (da - np.sum(a * da, axis=1, keepdims=True))
        dv[:, g] += a.T @ d_out[:, h]
        dq[:, h] = ds @ k[:, g] / np.sqrt(m.dim)
        dk[:, g] += ds.T @ q[:, h] / np.sqrt(m.dim)
        d_beta[:, g] += np.sum(pack.age * ds, axis=0)
    return dq, dk, dv, d_beta


# ---- the gate -----------------------------------------------------------------------------------

def gate_names(gate, layer):
    local = "%d.linear3.weight" % layer not in gate
    names = ["linear1", "linear2"] if local else ["linear1", "linear2", "linear3"]
    return ["%d.%s" % (layer, n) for n in names], "%d.bias" % layer


def gate_forward(gate, layer, x):
    """log_beta and what the way back needs."""
    names, bias = gate_names(gate, layer)
    u, zs, us = x, [], [x]
    for n in names[:-1]:
        zs.append(u @ gate[n + ".weight"].T + gate[n + ".bias"])
        u = silu(zs[-1])
        us.append(u)
    z = u @ gate[names[-1] + ".weight"].T + gate[bias]
    return -np.logaddexp(0, -z), (names, bias, zs, us, z)


def gate_back(gate, kept, d_beta, grad):
    names, bias, zs, us, z = kept
    d = d_beta * sigmoid(-z)
    grad[bias] = grad.get(bias, 0) + d.sum(axis=0)
    for i in range(len(names) - 1, -1, -1):
        name = names[i] + ".weight"
        grad[name] = grad.get(name, 0) + d.T @ us[i]
        if i < len(names) - 1:
            grad[names[i] + ".bias"] = d.sum(axis=0)
        d = d @ gate[name]
        if i > 0:
            d = d * silu_slope(zs[i - 1])
    return d


# ---- capacity -----------------------------------------------------------------------------------

def capacity(c, pack, betas):
    """The term, its gradient in each layer's log_beta, and the mean soft size of a stream.
    betas: log_beta [T, heads] of each layer."""
    n_layer, n_kv = len(betas), betas[0].shape[1]
    powers = [[np.where(pack.sees, np.exp(pack.age * b[:, h]), 0) for h in range(n_kv)]
              for b in betas]
    size = np.array([[p.sum(axis=1) for p in layer] for layer in powers])
    mean_size = size.mean()
    n_stream = 1 if c["per_stream"] else n_layer * n_kv
    if not c["per_stream"]:
        size = size.sum(axis=(0, 1), keepdims=True)
    keep = n_stream * c["n_entry"]
    if c["capacity"] == "paper":
        divisor, counted = n_stream * (pack.pos + 1.0), np.ones_like(size)
    else:
        t = pack.pos + (1.0 if c["capacity"] == "next" else 0.0)
        divisor, counted = np.maximum(1.0, n_stream * t - keep), (size > keep) * 1.0
    n = max(counted.sum(), 1.0)
    term = np.sum(np.maximum(0, size - keep) / divisor) / n
    d_size = (size > keep) / divisor / n + np.zeros((n_layer, n_kv, 1))
    d_betas = [np.stack([(d_size[i, h][:, None] * pack.age * powers[i][h]).sum(axis=0)
                         for h in range(n_kv)], axis=1) for i in range(n_layer)]
    return term, d_betas, mean_size


# ---- passes -------------------------------------------------------------------------------------

def run(m, pack, ids, gate):
    """Final residual rows, and per layer everything that was met on the way; gate None: teacher."""
    x, kept = m.w["token_embd.weight"][ids], []
    for i in range(m.n_layer):
        w, k = m.layer(i), {"x": x}
        k["h"] = norm(x, w["attn_norm"], m.eps)
        shape = (pack.n_tok, -1, m.dim)
        k["q"] = m.rotate((k["h"] @ w["attn_q"].T).reshape(shape), pack.pos, 1)
        k["k"] = m.rotate((k["h"] @ w["attn_k"].T).reshape(shape), pack.pos, 1)
        k["v"] = (k["h"] @ w["attn_v"].T).reshape(shape)
        if gate is not None:
            k["beta"], k["gate"] = gate_forward(gate, i, k["h"])
        k["att"], k["weights"] = attend(m, pack, k["q"], k["k"], k["v"], k.get("beta"))
        k["mid"] = x + k["att"].reshape(pack.n_tok, -1) @ w["attn_output"].T
        h = norm(k["mid"], w["ffn_norm"], m.eps)
        k["a"], k["b"] = h @ w["ffn_gate"].T, h @ w["ffn_up"].T
        x = k["mid"] + (silu(k["a"]) * k["b"]) @ w["ffn_down"].T
        kept.append(k)
    return x, kept


def layer_back(m, pack, i, k, gate, dx, d_beta, grad):
    w = m.layer(i)
    df = dx @ w["ffn_down"]
    dh = (df * k["b"] * silu_slope(k["a"])) @ w["ffn_gate"] + (df * silu(k["a"])) @ w["ffn_up"]
    dx = dx + norm_back(k["mid"], w["ffn_norm"], m.eps, dh)
    d_att = (dx @ w["attn_output"]).reshape(k["att"].shape)
    dq, dk, dv, d_own = attend_back(m, pack, k["q"], k["k"], k["v"], k["weights"], d_att)
    dh = gate_back(gate, k["gate"], d_beta + d_own, grad)
    for name, d, sign in (("attn_q", dq, -1), ("attn_k", dk, -1), ("attn_v", dv, 0)):
        d = m.rotate(d, pack.pos, sign) if sign else d
        dh = dh + d.reshape(pack.n_tok, -1) @ w[name]
    return dx + norm_back(k["x"], w["attn_norm"], m.eps, dh)


def counted_rows(pack, weights):
    """Rows that foretell a token with weight, and their shares."""
    rows = [t for t in range(pack.n_tok - 1)
            if pack.doc[t + 1] == pack.doc[t] and weights[t + 1] > 0]
    share = np.array([weights[t + 1] for t in rows], dtype=np.float64)
    return rows, share / share.sum()


def method_loss(m, c, pack, ids, weights, gate, want_grad=True):
    rows, share = counted_rows(pack, weights)
    target = [ids[t + 1] for t in rows]
    norm_w = m.w["output_norm.weight"]
    logits_p = norm(run(m, pack, ids, None)[0][rows], norm_w, m.eps) @ m.out.T
    x, kept = run(m, pack, ids, gate)
    logits_q = norm(x[rows], norm_w, m.eps) @ m.out.T
    p, q = softmax(logits_p), softmax(logits_q)
    kl = share @ np.sum(p * (np.log(p) - np.log(q)), axis=1)
    ce = share @ -np.log(q[np.arange(len(rows)), target])
    cap, d_betas, size = capacity(c, pack, [k["beta"] for k in kept])
    stats = {"kl": kl, "ce": ce, "capacity": cap, "n_entry_soft": size,
             "mean_retention": np.mean([np.exp(k["beta"]).mean() for k in kept]),
             "loss": c["kl"] * kl + c["ce"] * ce + c["cap"] * cap}
    if not want_grad:
        return stats, None
    hot = np.zeros_like(q)
    hot[np.arange(len(rows)), target] = 1
    dz = share[:, None] * (c["kl"] * (q - p) + c["ce"] * (q - hot))
    dx, grad = np.zeros_like(x), {}
    dx[rows] = norm_back(x[rows], norm_w, m.eps, dz @ m.out)
    for i in reversed(range(m.n_layer)):
        dx = layer_back(m, pack, i, kept[i], gate, dx, c["cap"] * d_betas[i], grad)
    return stats, grad


def local_loss(m, c, pack, ids, weights, gate, want_grad=True):
    rows, share = counted_rows(pack, weights)
    kept, grad, total, betas = run(m, pack, ids, None)[1], {}, 0.0, []
    ways = []
    for i, k in enumerate(kept):
        wo = m.layer(i)["attn_output"]
        beta, gate_kept = gate_forward(gate, i, k["h"])
        att, a = attend(m, pack, k["q"], k["k"], k["v"], beta)
        off = ((att - k["att"]).reshape(pack.n_tok, -1) @ wo.T)[rows]
        energy = np.sum(k["mid"][rows] ** 2, axis=1)
        total += share @ (np.sum(off ** 2, axis=1) / energy)
        d_att = np.zeros((pack.n_tok, wo.shape[1]))
        d_att[rows] = c["local"] * (2 * share / energy)[:, None] * off @ wo
        own = attend_back(m, pack, k["q"], k["k"], k["v"], a, d_att.reshape(att.shape))[3]
        betas.append(beta)
        ways.append((gate_kept, own))
    cap, d_betas, size = capacity(c, pack, betas)
    stats = {"local": total, "capacity": cap, "n_entry_soft": size,
             "mean_retention": np.mean([np.exp(b).mean() for b in betas]),
             "loss": c["local"] * total + c["cap"] * cap}
    for (gate_kept, own), d in zip(ways, d_betas):
        if want_grad:
            gate_back(gate, gate_kept, own + c["cap"] * d, grad)
    return stats, grad


# ---- one case -----------------------------------------------------------------------------------

def tie(gate, grad):
    """Gradient of a last matrix and bias that all layers share, under the name of layer 0."""
    for name in ("linear3.weight", "bias"):
        if "0." + name in gate and "0.linear3.weight" in gate:
            grad["0." + name] = sum(grad.pop("%d.%s" % (i, name)) for i in range(2))
    return grad


def check_gradient(loss_of, gate, grad, rng, tied):
    """Differences along random directions, one tensor at a time."""
    worst = 0.0
    for name, g in grad.items():
        direction = rng.standard_normal(g.shape)
        step = 1e-5

        def at(sign):
            moved = dict(gate)
            for i in range(2):
                key = name if not tied or name[2:] not in ("linear3.weight", "bias") \
                    else "%d.%s" % (i, name[2:])
                moved[key] = gate[key] + sign * step * direction
            return loss_of(moved)
        want = (at(1) - at(-1)) / (2 * step)
        got = float(np.sum(g * direction))
        worst = max(worst, abs(got - want) / (abs(want) + 1e-6))
    assert worst < 1e-4, worst
    return worst


class Arrays:
    """expected.bin and the part of expected.json that describes it."""

    def __init__(self):
        self.blob, self.index = b"", {}

    def add(self, name, a, tol=None, whole=False):
        a = np.ascontiguousarray(a, dtype="<i4" if whole else "<f4")
        self.blob += b"\0" * (-len(self.blob) % 64)
        entry = {"dtype": "i32" if whole else "f32", "shape": list(a.shape),
                 "offset": len(self.blob), "nbytes": a.nbytes}
        if tol is not None:
            entry["tol_abs"] = tol
        self.index[name] = entry
        self.blob += a.tobytes()


def make_case(m, gates, c, arrays, rng):
    gate = gates[c["gate"]]
    tied = c["gate"] == "tied"
    n_tok, starts = c["n_tok"], c["starts"]
    pack = Pack(starts, n_tok)
    ids = [int(i) for i in rng.integers(0, m.out.shape[0], n_tok)]
    weights = rng.uniform(0.2, 2.0, n_tok).astype(np.float32) * (rng.uniform(size=n_tok) < 0.7)
    loss_of = method_loss if c["stage"] == "method" else local_loss
    stats, grad = loss_of(m, c, pack, ids, weights, gate)
    grad = tie(gate, grad) if tied else grad
    worst = check_gradient(lambda g: loss_of(m, c, pack, ids, weights, g, False)[0]["loss"], gate,
                           grad, rng, tied)
    largest = max(np.abs(g).max() for g in grad.values())
    arrays.add(c["name"] + ".ids", ids, whole=True)
    arrays.add(c["name"] + ".starts", starts, whole=True)
    arrays.add(c["name"] + ".weights", weights)
    for name, g in sorted(grad.items()):
        arrays.add("%s.grad.%s" % (c["name"], name), g, 1e-4 * largest)
    print("%s: %s, largest slope %.4g, against differences %.1e"
          % (c["name"], {k: round(float(v), 6) for k, v in stats.items()}, largest, worst))
    return dict(c, stats={k: float(v) for k, v in stats.items()})


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "cases")
    m = Model(*read_gguf(os.path.join(root, "llama", "model.gguf")))
    gates = {n: read_gate(os.path.join(root, "dbtrimkv", "gate_%s.safetensors" % n))
             for n in ("tied", "local")}
    folder = os.path.join(root, "train-llama")
    os.makedirs(folder, exist_ok=True)
    for n, gate in gates.items():
        for name in gate:  # the biases of the traces are near 0: everything would be forgotten
            if name.endswith(".bias") and name.count(".") == 1:
                gate[name] = (gate[name] + BIAS).astype(np.float32).astype(np.float64)
        write_gate(os.path.join(folder, "gate_%s.safetensors" % n), gate)
    common = {"gate": "tied", "stage": "method", "capacity": "next", "per_stream": False,
              "n_entry": 6, "kl": 0.5, "ce": 0.5, "local": 1.0, "cap": 1.0,
              "n_tok": 45, "starts": [0, 28]}
    cases = [dict(common, name="method"),
             dict(common, name="method_reference", capacity="reference", kl=0.7, ce=0.2, cap=1.5,
                  n_tok=33, starts=[0]),
             dict(common, name="method_paper", capacity="paper", n_tok=24, starts=[0, 7, 15]),
             dict(common, name="method_local_gate", gate="local", per_stream=True, n_tok=37),
             dict(common, name="local", stage="local"),
             dict(common, name="local_local_gate", stage="local", gate="local", local=0.8,
                  starts=[0])]
    rng, arrays = np.random.default_rng(SEED), Arrays()
    cases = [make_case(m, gates, c, arrays, rng) for c in cases]
    with open(os.path.join(folder, "expected.bin"), "wb") as f:
        f.write(arrays.blob)
    about = {"arch": "gate training over llama/model.gguf", "model": "../llama/model.gguf",
             "gates": "those of dbtrimkv with %g added to the last bias" % BIAS,
             "seed": SEED, "script": "make-train-reference.py",
             "computed": "numpy, float64 from the f32 weights", "train_cases": cases,
             "file": "expected.bin", "arrays": arrays.index}
    with open(os.path.join(folder, "expected.json"), "w") as f:
        json.dump(about, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()

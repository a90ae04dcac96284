#!/usr/bin/env python3
"""One step of gate training in PyTorch, as a peer to measure against: frozen llama in f32, a tied gate,
teacher and student, KL + next token + capacity, AdamW; nothing is recomputed, nothing checkpointed.

Reads a line with a number of steps, answers with their seconds, until the input ends.  Weights are
random and of the shape of SmolLM2-135M: the time does not depend on them.
Usage: peer-train.py THREADS TOKENS eager|compiled local|method.  Needs torch (a venv of its own).
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import math
import sys
import time

import torch
import torch.nn.functional as F

N_LAYER, N_EMBD, N_HEAD, N_KV, DIM, N_FF, N_VOCAB, N_GATE = 30, 576, 9, 3, 64, 1536, 49152, 64
M, EPS = 32, 1e-5


def matrix(n_out, n_in):
    return torch.randn(n_out, n_in) / math.sqrt(n_in)


class Base:
    """Frozen: nothing here has a gradient."""

    def __init__(self, n_tok):
        self.embd = torch.randn(N_VOCAB, N_EMBD) * 0.05
        self.layers = [dict(qkv=matrix((N_HEAD + 2 * N_KV) * DIM, N_EMBD), o=matrix(N_EMBD, N_HEAD * DIM),
                            up=matrix(2 * N_FF, N_EMBD), down=matrix(N_EMBD, N_FF),
                            n1=torch.ones(N_EMBD), n2=torch.ones(N_EMBD)) for _ in range(N_LAYER)]
        self.norm = torch.ones(N_EMBD)
        pos = torch.arange(n_tok, dtype=torch.float32)
        angle = pos[:, None] * (10000.0 ** (-torch.arange(0, DIM, 2) / DIM))
        self.cos, self.sin = torch.cat([angle.cos()] * 2, 1), torch.cat([angle.sin()] * 2, 1)
        self.age = (pos[:, None] - pos[None, :]).clamp(min=0)
        self.sees = torch.full((n_tok, n_tok), 0.0).masked_fill(pos[None, :] > pos[:, None], -math.inf)
        self.causal = (pos[None, :] <= pos[:, None]).float()


class Gate:
    def __init__(self):
        self.w1 = [matrix(N_GATE, N_EMBD).requires_grad_() for _ in range(N_LAYER)]
        self.b1 = [torch.zeros(N_GATE).requires_grad_() for _ in range(N_LAYER)]
        self.w2 = [matrix(N_GATE, N_GATE).requires_grad_() for _ in range(N_LAYER)]
        self.b2 = [torch.zeros(N_GATE).requires_grad_() for _ in range(N_LAYER)]
        self.w3, self.b3 = matrix(N_KV, N_GATE).requires_grad_(), torch.full((N_KV,), 6.0).requires_grad_()

    def all(self):
        return [*self.w1, *self.b1, *self.w2, *self.b2, self.w3, self.b3]

    def log_beta(self, layer, x):
        u = F.silu(F.linear(x, self.w1[layer], self.b1[layer]))
        u = F.silu(F.linear(u, self.w2[layer], self.b2[layer]))
        return F.logsigmoid(F.linear(u, self.w3, self.b3))


def rotate(base, x):
    half = torch.cat([-x[..., DIM // 2:], x[..., :DIM // 2]], -1)
    return x * base.cos + half * base.sin


def heads(base, w, h):
    qkv = F.linear(h, w["qkv"]).view(h.shape[0], N_HEAD + 2 * N_KV, DIM).transpose(0, 1)
    q, k, v = qkv.split([N_HEAD, N_KV, N_KV])
    return rotate(base, q), rotate(base, k), v


def biased(base, q, k, v, log_beta):
    """Attention with a bias by age, the heads of a group side by side."""
    group, n_tok = N_HEAD // N_KV, k.shape[1]
    bias = base.age * log_beta.t()[:, None, :] + base.sees
    s = q.reshape(N_KV, group * n_tok, DIM) @ k.transpose(1, 2) / math.sqrt(DIM)
    a = torch.softmax(s.view(N_KV, group, n_tok, n_tok) + bias[:, None], -1)
    return (a.view(N_KV, group * n_tok, n_tok) @ v).view(N_HEAD, n_tok, DIM)


def plain(q, k, v):
    group = N_HEAD // N_KV
    return F.scaled_dot_product_attention(q[None], k.repeat_interleave(group, 0)[None],
                                          v.repeat_interleave(group, 0)[None], is_causal=True)[0]


def merge(att):
    return att.transpose(0, 1).reshape(att.shape[1], N_HEAD * DIM)


def feed_forward(w, x):
    a, b = F.linear(F.rms_norm(x, (N_EMBD,), w["n2"], EPS), w["up"]).chunk(2, 1)
    return x + F.linear(F.silu(a) * b, w["down"])


def teacher(base, ids):
    x = base.embd[ids]
    for w in base.layers:
        x = x + F.linear(merge(plain(*heads(base, w, F.rms_norm(x, (N_EMBD,), w["n1"], EPS)))), w["o"])
        x = feed_forward(w, x)
    return F.linear(F.rms_norm(x, (N_EMBD,), base.norm, EPS), base.embd)


def capacity(base, betas):
    size = 0
    for b in betas:
        size = size + (torch.exp(base.age * b.t()[:, None, :]) * base.causal).sum((0, 2))
    n_stream, n_tok = N_LAYER * N_KV, base.age.shape[0]
    below = (n_stream * (torch.arange(n_tok) + 1.0) - n_stream * M).clamp(min=1)
    over = (size - n_stream * M).clamp(min=0)
    return (over / below).sum() / (over > 0).sum().clamp(min=1)


def method_loss(base, gate, ids):
    with torch.no_grad():
        log_p = F.log_softmax(teacher(base, ids)[:-1], -1)
    x, betas = base.embd[ids], []
    for i, w in enumerate(base.layers):
        h = F.rms_norm(x, (N_EMBD,), w["n1"], EPS)
        betas.append(gate.log_beta(i, h))
        x = x + F.linear(merge(biased(base, *heads(base, w, h), betas[-1])), w["o"])
        x = feed_forward(w, x)
    log_q = F.log_softmax(F.linear(F.rms_norm(x, (N_EMBD,), base.norm, EPS)[:-1], base.embd), -1)
    kl = F.kl_div(log_q, log_p, log_target=True, reduction="batchmean")
    return 0.5 * kl + 0.5 * F.nll_loss(log_q, ids[1:]) + capacity(base, betas)


def local_loss(base, gate, ids):
    """No gradient passes the network."""
    x, betas, loss = base.embd[ids], [], 0
    for i, w in enumerate(base.layers):
        h = F.rms_norm(x, (N_EMBD,), w["n1"], EPS)
        q, k, v = heads(base, w, h)
        betas.append(gate.log_beta(i, h))
        full = plain(q, k, v)
        x = x + F.linear(merge(full), w["o"])
        off = F.linear(merge(biased(base, q, k, v, betas[-1]) - full), w["o"])[:-1]
        loss = loss + (off.square().sum(1) / x[:-1].square().sum(1)).mean()
        if i + 1 < N_LAYER:
            x = feed_forward(w, x)
    return loss + capacity(base, betas)


def main():
    n_thread, n_tok, how, stage = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    torch.set_num_threads(n_thread)
    torch.manual_seed(1)
    base, gate = Base(n_tok), Gate()
    ids = torch.randint(0, N_VOCAB, (n_tok,))
    loss_of = method_loss if stage == "method" else local_loss
    if how == "compiled":
        loss_of = torch.compile(loss_of)
    optimiser = torch.optim.AdamW(gate.all(), lr=1.5e-3, betas=(0.9, 0.98), weight_decay=1e-6, foreach=True)

    def step():
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(base, gate, ids)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(gate.all(), 1.0)
        optimiser.step()
        return float(loss.detach())

    step()  # warms caches; compiles
    print("ready", torch.__version__, flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
        print(" ".join("%.4f" % t for t in times), flush=True)


if __name__ == "__main__":
    main()

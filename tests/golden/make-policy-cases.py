#!/usr/bin/env python3
"""Writes tests/unit/policy-cases-data.h: which entries the published policies keep.

A plain reference straight from the equations of docs/method.md, sections 3 and 6, in numpy and double
precision: no rings, no passes, no pages.  The numbers of a case come from a generator that the test
repeats (keys and queries are whole multiples of 1/1000), so that only the survivors are stored.
Run: python3 tests/golden/make-policy-cases.py > tests/unit/policy-cases-data.h, then clang-format on it.
"""
import math

import numpy as np

N_LAYER, N_KV_HEAD, GROUP, DIM, SCALE = 3, 2, 2, 8, 0.5
N_STREAM = N_LAYER * N_KV_HEAD
N_FIRST, N_SECOND, SHARE = 40, 13, 16  # tokens before either eviction, entries a stream
MIN_GAP = 1e-5  # between the last score that stays and the first that does not
GATED = ("dbtrimkv", "untied", "trimkv", "locret")  # the numbers of a case hold log_beta as well
GLOBAL = ("dbtrimkv", "untied", "keydiff-global")


class Numbers:
    """The test's generator: values between -1 and 1 in thousandths."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return (self.state >> 8) % 2001 / 1000.0 - 1.0

    def array(self, *shape):
        return np.array([self.next() for _ in range(math.prod(shape))]).reshape(shape)


def attention(query, keys, pos, at):
    """Softmax attention of one query at sequence index `at`."""
    logits = np.where(pos <= at, keys @ query * SCALE, -np.inf)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def pooled(values, width, kind):
    half = width // 2
    out = []
    for i in range(len(values)):
        part = values[max(0, i - half):i + half + 1]
        out.append(part.max() if kind == "max" else part.sum() / width)
    return np.array(out)


def redundancy(keys):
    unit = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    alike = unit @ unit.T
    np.fill_diagonal(alike, 0.0)
    for row in alike:
        close = np.nonzero(row > 0.5)[0]
        if len(close):
            row[close[-1]] = 0.0
    mean = np.exp(alike.mean(axis=0))
    return mean / mean.sum()


def best(scores, pos, count):
    """Indices of the `count` largest scores; of equal ones the newer."""
    order = sorted(range(len(scores)), key=lambda i: (scores[i], pos[i]), reverse=True)
    return sorted(order[:count])


class Stream:
    def __init__(self):
        self.pos = np.zeros(0, int)
        self.keys = np.zeros((0, DIM))
        self.sums = np.zeros(0)
        self.lb = np.zeros(0)

    def keep(self, chosen):
        self.pos, self.keys, self.sums = self.pos[chosen], self.keys[chosen], self.sums[chosen]
        self.lb = self.lb[chosen]


def worth(lb, pos, seen, n):
    """log of beta^a + ... over the next n steps; a = seen + 1 - pos, one more where n > 1."""
    age = seen + 1 - pos if n == 1 else seen + 2 - pos
    return math.log(sum(math.exp(lb * (age + k)) for k in range(n)))


def lot(seed, stream, pos):
    """24 bits of a hash: add the golden ratio, then multiply and shift three times."""
    def mix(x):
        x = (x + 0x9E3779B97F4A7C15) % 2**64
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        return x ^ x >> 31
    return mix(((mix(seed) ^ stream << 32) + pos) % 2**64) >> 40


def unlike(keys):
    """KeyDiff: minus the cosine with the mean of the unit keys."""
    unit = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    anchor = unit.mean(axis=0)
    return -(unit @ anchor) / np.linalg.norm(anchor)


def plain_scores(policy, s, stream, seen):
    """Scores of policies that look at no query."""
    name = policy["name"]
    if name == "locret":
        return stream.lb
    if name in GATED:
        return np.array([worth(b, p, seen, policy.get("lookahead", 1))
                         for b, p in zip(stream.lb, stream.pos)])
    if name == "random":
        return np.array([lot(0, s, int(p)) for p in stream.pos], float)
    if name == "streaming":
        return np.where(stream.pos < 4, 1e9, stream.pos)
    if name == "full":
        return np.zeros(len(stream.pos))
    value = unlike(stream.keys)
    return (value - value.mean()) / value.std() if name == "keydiff-global" else value


def evict_plainly(policy, streams, seen):
    name, floor = policy["name"], policy.get("floor", 0)
    scores = [plain_scores(policy, s, stream, seen) for s, stream in enumerate(streams)]
    counts = [SHARE] * N_STREAM
    if name == "full":
        counts = [len(stream.pos) for stream in streams]
    if name in GLOBAL:
        ranked = sorted(((v, p, -s) for s, stream in enumerate(streams)
                         for v, p in zip(scores[s], stream.pos)), reverse=True)
        cut = N_STREAM * (SHARE - floor)
        assert ranked[cut - 1][0] - ranked[cut][0] > MIN_GAP
        counts = [min(floor + sum(1 for r in ranked[:cut] if -r[2] == s), len(stream.pos))
                  for s, stream in enumerate(streams)]
    if name == "locret":  # the newest of a prompt read as a whole stay
        for s, stream in enumerate(streams):
            scores[s] = np.where(stream.pos >= seen - min(100, SHARE // 2), 1e9, scores[s])
    for s, stream in enumerate(streams):
        chosen = best(scores[s], stream.pos, counts[s])
        if policy.get("threshold"):
            limit = math.log(policy["threshold"])
            assert np.abs(scores[s] - limit).min() > MIN_GAP
            chosen = [i for i in chosen if scores[s][i] >= limit]
        stream.keep(np.array(chosen, int))


def counts_of(policy, scores, old, seen, newest):
    """Entries before the newest that each stream keeps, by the policy's rule."""
    rest = SHARE - newest
    counts = [rest] * N_STREAM
    if policy["name"] == "adakv":
        for layer in range(N_LAYER):
            heads = range(layer * N_KV_HEAD, (layer + 1) * N_KV_HEAD)
            ranked = sorted(((scores[s][i], old[s][i], -s) for s in heads
                             for i in range(len(old[s]))), reverse=True)
            for s in heads:
                fell = sum(1 for r in ranked[:N_KV_HEAD * rest] if -r[2] == s)
                f = policy["head_floor"]
                counts[s] = int(np.rint((1 - f) * fell + math.floor(f * rest)))
    if policy["name"] == "pyramidkv" and seen >= 2 * rest:
        least = rest // 20
        most = 2 * rest - least
        n = seen - newest
        if most >= n:
            most, least = n, 2 * rest - n
        for s in range(N_STREAM):
            layer = s // N_KV_HEAD
            counts[s] = math.floor(most - layer * (most - least) / (N_LAYER - 1) + 1e-9)
    return counts


def evict(policy, streams, queries, seen):
    if policy["name"] not in ("h2o", "snapkv", "adakv", "pyramidkv", "rkv"):
        evict_plainly(policy, streams, seen)
        return
    window = policy.get("window", 0)
    newest = SHARE // 2 if policy["name"] == "h2o" else min(window, SHARE // 2)
    scores, old = [], []
    for s, stream in enumerate(streams):
        layer, head = divmod(s, N_KV_HEAD)
        n_old = int((stream.pos < seen - newest).sum())
        old.append(stream.pos[:n_old])
        if policy["name"] == "h2o":
            scores.append(stream.sums[:n_old])
            continue
        received = np.zeros(len(stream.pos))
        for at in range(seen - window, seen):
            for g in range(GROUP):
                received += attention(queries[at][layer, head * GROUP + g], stream.keys, stream.pos,
                                      at)
        value = pooled(received[:n_old], policy["pool"], policy["kind"])
        if policy["name"] == "rkv":
            value = policy["mix"] * value / (window * GROUP) - \
                (1 - policy["mix"]) * redundancy(stream.keys)[:n_old]
        scores.append(value)
    counts = counts_of(policy, scores, old, seen, newest)
    for s, stream in enumerate(streams):
        chosen = best(scores[s], old[s], counts[s])
        stream.keep(np.array(chosen + list(range(len(old[s]), len(stream.pos))), int))


def run(policy):
    numbers = Numbers(policy["seed"])
    streams, queries, seen, out = [Stream() for _ in range(N_STREAM)], {}, 0, []
    for n in (N_FIRST, N_SECOND):
        keys = numbers.array(N_STREAM, n, DIM)
        new = numbers.array(n, N_LAYER, N_KV_HEAD * GROUP, DIM)
        lb = np.zeros((N_STREAM, n))
        if policy["name"] in GATED:
            lb = (numbers.array(N_STREAM, n) - 1.0) / 16.0
        for s, stream in enumerate(streams):
            stream.lb = np.append(stream.lb, lb[s])
            stream.pos = np.append(stream.pos, np.arange(seen, seen + n))
            stream.keys = np.append(stream.keys, keys[s], axis=0)
            stream.sums = np.append(stream.sums, np.zeros(n))
        for i in range(n):
            queries[seen + i] = new[i]
            for s, stream in enumerate(streams):
                layer, head = divmod(s, N_KV_HEAD)
                for g in range(GROUP):
                    stream.sums += attention(new[i][layer, head * GROUP + g], stream.keys,
                                             stream.pos, seen + i)
        seen += n
        evict(policy, streams, queries, seen)
        out.append(" | ".join(" ".join(str(p) for p in stream.pos) for stream in streams))
    return out


POLICIES = [
    dict(name="h2o", seed=1),
    dict(name="snapkv", seed=2, window=4, pool=5, kind="mean"),
    dict(name="snapkv", seed=3, window=6, pool=3, kind="max"),
    dict(name="adakv", seed=4, window=4, pool=7, kind="max", head_floor=0.2),
    dict(name="adakv", seed=5, window=3, pool=1, kind="max", head_floor=0.5),
    dict(name="pyramidkv", seed=6, window=4, pool=7, kind="max"),
    dict(name="pyramidkv", seed=7, window=2, pool=3, kind="mean"),
    dict(name="rkv", seed=8, window=4, pool=7, kind="max", mix=0.1),
    dict(name="rkv", seed=9, window=5, pool=3, kind="max", mix=0.5),
    dict(name="dbtrimkv", seed=10),
    dict(name="dbtrimkv", seed=11, lookahead=2),
    dict(name="dbtrimkv", seed=12, lookahead=64, floor=3),
    dict(name="dbtrimkv", seed=13, threshold=0.6),
    dict(name="untied", seed=14, floor=15),
    dict(name="trimkv", seed=15, lookahead=4),
    dict(name="trimkv", seed=16, threshold=0.7),
    dict(name="full", seed=17),
    dict(name="streaming", seed=18),
    dict(name="keydiff", seed=19),
    dict(name="keydiff-global", seed=20),
    dict(name="locret", seed=21),
    dict(name="random", seed=22),
]


def main():
    print("/* policy-cases-data.h - written by tests/golden/make-policy-cases.py, numpy "
          f"{np.__version__}. */")
    print("/* SPDX-License-Identifier: GPL-3.0-or-later */")
    print("#pragma once\n")
    print('#include "engine/evict.h"\n')
    for name, value in (("LAYER", N_LAYER), ("KV_HEAD", N_KV_HEAD), ("GROUP", GROUP),
                        ("FIRST", N_FIRST), ("SECOND", N_SECOND), ("SHARE", SHARE)):
        print(f"#define CASE_{name} {value}u")
    print(f"#define CASE_SCALE {SCALE}f\n")
    print("typedef struct policy_case {\n  ks_policy policy;\n  uint32_t seed, window, pool;\n"
          "  bool pool_max;\n  double head_floor, mix;\n  uint32_t lookahead, floor;\n"
          "  double threshold;\n  const char *want[2]; /* survivors of "
          "either eviction */\n} policy_case;\n")
    print("static const policy_case policy_cases[] = {")
    for policy in POLICIES:
        want = run(policy)
        name = policy["name"].upper().replace("-", "_")
        print(f"    {{KS_POLICY_{name}, {policy['seed']}, "
              f"{policy.get('window', 0)}, {policy.get('pool', 1)}, "
              f"{'true' if policy.get('kind') == 'max' else 'false'}, "
              f"{policy.get('head_floor', 0)}, {policy.get('mix', 0)}, "
              f"{policy.get('lookahead', 1)}, {policy.get('floor', 0)}, {policy.get('threshold', 0)},")
        print(f'     {{"{want[0]}",')
        print(f'      "{want[1]}"}}}},')
    print("};")


if __name__ == "__main__":
    main()

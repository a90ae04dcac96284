#!/usr/bin/env python3
"""Vision towers against llama.cpp's mtmd on the same files: pictures a second and memory while encoding.

  compare-vision.py --engine speed-vision --peer peer-mtmd --models FOLDER [--threads 2] [--json OUT]

Both sides get one picture of the size that the tower takes and encode it in turns; medians and their
ratio.  Scratch: largest resident size minus the size before the first encoding, for ours also minus the mapped
weights, which become resident by the first one; beside it the bound that the engine states.  mtmd runs
with and without flash attention, the faster one counts.
FOLDER: of make-vision.py.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import argparse
import json
import os
import statistics

from speedside import Side

# file name's beginning: picture in pixels, tokens
SHAPES = {"smolvlm": (512, 512, 64), "qwen2.5-vl": (896, 896, 1024)}


class TowerSide(Side):
    def __init__(self, command):
        super().__init__(os.path.basename(str(command[0])), command)
        self.before = self.ask("rss")["rss_kib"]

    def scratch_mib(self):
        return (self.ask("rss")["peak_kib"] - self.before) / 1024


def compare(args, path):
    name = os.path.basename(path)
    width, height, n_tok = next(v for k, v in SHAPES.items() if name.startswith(k))
    size = [args.threads, width, height]
    rounds = args.rounds or (7 if name.startswith("smolvlm") else 3)
    sides = {mode: TowerSide([args.engine, path, *size, mode]) for mode in ("exact", "fast")}
    sides |= {f"mtmd flash {flash}": TowerSide([args.peer, path, *size, flash]) for flash in (0, 1)}
    times = {key: [] for key in sides}
    answers = {}
    for i in range(rounds + 1):  # the first one warms up
        for key, side in sides.items():
            answers[key] = side.ask("encode")
            if answers[key]["tokens"] != n_tok:
                raise SystemExit(f"{name}: {key} made {answers[key]['tokens']} tokens, not {n_tok}")
            if i > 0:
                times[key].append(answers[key]["ms"])
    median = {key: statistics.median(t) for key, t in times.items()}
    peer = min((k for k in sides if k.startswith("mtmd")), key=median.get)
    rows = []
    for mode in ("exact", "fast"):
        row = {"file": name, "mode": mode, "threads": args.threads, "tokens": n_tok,
               "ours_per_s": 1e3 / median[mode], "peer_per_s": 1e3 / median[peer], "peer": peer,
               "ratio": median[peer] / median[mode],
               "ours_scratch_mib": sides[mode].scratch_mib() - answers[mode]["weight_bytes"] / 2**20,
               "stated_scratch_mib": answers[mode]["scratch_bytes"] / 2**20,
               "peer_scratch_mib": sides[peer].scratch_mib(), "load": os.getloadavg()[0]}
        rows.append(row)
        print(f"{name} {mode}: {row['ours_per_s']:.3f} pictures/s, {peer} {row['peer_per_s']:.3f}: "
              f"{row['ratio']:.2f}; scratch {row['ours_scratch_mib']:.0f} MiB (stated "
              f"{row['stated_scratch_mib']:.0f}), peer {row['peer_scratch_mib']:.0f}; "
              f"load {row['load']:.1f}", flush=True)
    for side in sides.values():
        side.close()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--engine", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--models", required=True, help="folder of make-vision.py")
    parser.add_argument("--only", default="", help="only files whose name contains this")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=0, help="measured rounds (default 7, 3 for the large tower)")
    parser.add_argument("--json")
    args = parser.parse_args()
    names = sorted(n for n in os.listdir(args.models) if n.endswith(".gguf") and args.only in n)
    rows = [row for n in names if n.startswith(tuple(SHAPES)) for row in compare(args, os.path.join(args.models, n))]
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump({"rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()

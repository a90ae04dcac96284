#!/usr/bin/env python3
"""Speed and memory against llama.cpp: same files, same ids, same threads, alternating in one run.

Long-lived processes (speed-engine and peer-llama) answer the line protocol of speed-server.h.  Each row is
measured in turns, so that what else the machine does hits both; medians, their ratio and the row's goal are
printed, with the spread of the rounds and the share of the processors that others took meanwhile.  A ratio
above 1 says that Keepsake is faster (smaller).  The peer runs at its best: flash attention and repacked
weights on or off as measured first.  A long state is read once and decoded from several times.

Usage: compare-peer.py --engine BUILD/tests/bench/speed-engine --peer DIR/peer-llama --models FOLDER
                       [--gate G.safetensors] [--only PART] [--mode fast] [--kv f16] [--quick] [--json OUT.json]
Takes 20 to 25 minutes for the files of make-models.py on two cores, with --quick five.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import argparse
import glob
import json
import os
import platform
import statistics
import sys
import time

from speedside import SpeedSide

ENTRIES = 1024
CONTEXT = 8192
QUESTION = "The city of Paris is the capital of France. The river that flows through it is called"
FIRST = "smollm2-135m-q4_1.gguf"  # the default model's type: measured first and with every row
ORDER = [FIRST, "smollm2-135m-q4_0.gguf", "smollm2-135m-q8_0.gguf", "smollm2-135m-q5_1.gguf",
         "smollm2-135m-q4_k.gguf", "gemma-3-270m-q4_k_m.gguf"]
GOALS = {"decode 0": 1.1, "decode 2048": 1.3, "decode 8192": 8.0, "decode 8192 q8_0": 8.0, "first token 8000": 2.0,
         "memory 16000": 2.0}


class Watch:
    """What others did on the machine while a row was measured, in processors."""

    def __init__(self, *sides):
        self.sides = sides
        self.start = self.read()

    def read(self):
        with open("/proc/stat", encoding="utf-8") as f:
            ticks = [int(t) for t in f.readline().split()[1:9]]
        busy = sum(ticks) - ticks[3] - ticks[4] - ticks[7]
        return time.monotonic(), busy - sum(s.cpu_ticks() for s in self.sides), ticks[7]

    def result(self):
        now = self.read()
        span = max(now[0] - self.start[0], 1e-3) * os.sysconf("SC_CLK_TCK")
        return {"others": round(max(0.0, (now[1] - self.start[1]) / span), 2),
                "steal": round((now[2] - self.start[2]) / span, 2), "load": round(os.getloadavg()[0], 2)}


def spread(values):
    return (max(values) - min(values)) / statistics.median(values)


class Bench:
    def __init__(self, args):
        self.args = args
        self.rows = []
        self.flash = {}

    def engine(self, path, threads, entries, context, mode=None, kv=None):
        gate = self.args.gate if entries and "smollm2" in os.path.basename(path) else "-"
        return SpeedSide("speed-engine", [self.args.engine, path, threads, kv or self.args.kv, entries, gate,
                                          context, mode or self.args.mode])

    def peer(self, path, threads, context, flash, repack):
        return SpeedSide("peer-llama", [self.args.peer, path, threads, context, flash, self.args.kv, repack])

    def best_peer(self, path):
        """Repacking by a prompt and a decode; flash attention at a longer state, once for each architecture."""
        family = os.path.basename(path).split("-q")[0]
        tried = []

        def try_one(flash, repack, depth):
            side = self.peer(path, 2, 4096, flash, repack)
            side.ms("prompt 64")
            prompt = side.ms(f"depth {depth}")
            side.ms("decode 4")
            decode = min(side.ms("decode 8") for _ in range(3)) / 8
            side.close()
            tried.append({"flash": flash, "repack": repack, "depth": depth, "prompt_tok_s": depth * 1e3 / prompt,
                          "decode_tok_s": 1e3 / decode})
            return prompt + 256 * decode

        if family not in self.flash:
            self.flash[family] = min((1, 0), key=lambda flash: try_one(flash, 1, 1024 if self.args.quick else 2048))
        flash = self.flash[family]
        repack = min((1, 0), key=lambda repack: try_one(flash, repack, 256))
        return {"flash": flash, "repack": repack, "tried": tried}

    def add(self, model, what, threads, mode, ours, peer, watch, note=""):
        """ours and peer: lists of (tokens, ms)."""
        speeds = [[n * 1e3 / ms for n, ms in side] for side in (ours, peer)]
        medians = [statistics.median(s) for s in speeds]
        goal = GOALS.get(what, 1.5 if model == FIRST else 1.0)
        row = {"model": model, "what": what, "threads": threads, "mode": mode, "ours_tok_s": medians[0],
               "peer_tok_s": medians[1], "ratio": medians[0] / medians[1], "goal": goal,
               "spread": max(spread(s) for s in speeds), "rounds": min(len(ours), len(peer)), "ours": ours,
               "peer": peer, "note": note, **watch.result()}
        self.rows.append(row)
        print_row(row)

    def alternate(self, model, what, threads, mode, ours, peer, rounds, steps):
        """steps: for ours and the peer a list of commands; the last one of each is timed, with its tokens."""
        times = ([], [])
        for side, commands in zip((ours, peer), steps):  # once to warm up
            for command in commands:
                side.ms(command)
        watch = Watch(ours, peer)
        for _ in range(rounds):
            for i, side in enumerate((ours, peer)):
                for command in steps[i]:
                    ms = side.ms(command)
                times[i].append((int(steps[i][-1].split()[1]), ms))
        self.add(model, what, threads, mode, *times, watch)

    def measure(self, path):
        model = os.path.basename(path)
        quick = self.args.quick
        is_first = model == FIRST
        with_long = is_first or not quick
        threads_list = (2,) if quick else (2, 1)
        settings = self.best_peer(path)
        peer = self.peer(path, 2, CONTEXT + 1024, settings["flash"], settings["repack"])
        full = {t: self.engine(path, t, 0, 2048 + 1024) for t in threads_list}
        result = {"model": model, "peer": settings, "info": full[2].ask("info"),
                  "greedy": self.compare_greedy(full[2], peer)}
        print_model(result)

        modes = [(self.args.mode, full)]
        if is_first and self.args.mode != "exact":
            modes.append(("exact", {2: self.engine(path, 2, 0, 2048, "exact")}))
        for mode, sides in modes:
            for threads, ours in sides.items():
                peer.ms(f"threads {threads}")
                self.alternate(model, "prompt 512", threads, mode, ours, peer, 2 if quick or threads == 1 else 3,
                               (["prompt 512"], ["prompt 512"]))
                self.alternate(model, "decode 0", threads, mode, ours, peer, 3 if quick else 5,
                               (["depth 1", "decode 32"], ["depth 1", "decode 32"]))
        for _, sides in modes[1:]:
            for side in sides.values():
                side.close()

        peer.ms("threads 2")
        peer_first = peer.ms("depth 2048")
        for threads, ours in full.items():
            ours.ms("depth 2048")
            peer.ms(f"threads {threads}")
            self.alternate(model, "decode 2048", threads, self.args.mode, ours, peer, 3 if quick else 5,
                           (["decode 32"], ["rewind 2048", "decode 16"]))
            peer.ms("rewind 2048")
        for side in full.values():
            side.close()
        if with_long:
            self.measure_long(path, model, threads_list, peer, peer_first)
        peer.close()
        if with_long:
            result["memory"] = self.measure_memory(path, model, settings)
        return result

    def measure_long(self, path, model, threads_list, peer, peer_first):
        budget = {t: self.engine(path, t, ENTRIES, CONTEXT) for t in threads_list}
        peer.ms("threads 2")
        watch = Watch(budget[2], peer)
        ours = [(8000, budget[2].ms("prompt 8000"))]
        peer_ms = peer_first + peer.ms("extend 8000")
        ours.append((8000, budget[2].ms("prompt 8000")))
        self.add(model, "first token 8000", 2, self.args.mode, ours, [(8000, peer_ms)], watch, "peer read once")
        if 1 in budget:
            budget[1].ms("depth 8000")
        peer.ms(f"extend {CONTEXT}")
        for threads, side in budget.items():
            side.ms(f"extend {CONTEXT}")
            peer.ms(f"threads {threads}")
            self.alternate(model, "decode 8192", threads, self.args.mode, side, peer, 3,
                           (["decode 32"], [f"rewind {CONTEXT}", "decode 16"]))
        # Our keys and values in 8 bits too: the peer keeps its own, with 8 bits it is slower (attention must be flash).
        for threads in threads_list:
            side = self.engine(path, threads, ENTRIES, CONTEXT, kv="q8_0")
            side.ms(f"depth {CONTEXT}")
            peer.ms(f"threads {threads}")
            self.alternate(model, "decode 8192 q8_0", threads, self.args.mode, side, peer, 3,
                           (["decode 32"], [f"rewind {CONTEXT}", "decode 16"]))
            side.close()
        if 1 in budget and model == FIRST:  # minutes on the peer's side: for one file
            watch = Watch(budget[1], peer)
            ours = [(8000, budget[1].ms("prompt 8000"))]
            self.add(model, "first token 8000", 1, self.args.mode, ours, [(8000, peer.ms("prompt 8000"))], watch,
                     "each read once")
        for side in budget.values():
            side.close()

    def measure_memory(self, path, model, settings):
        """Ours reads all 16,000 tokens; the peer takes its cache and buffers in full when it starts (checked by
        its resident size: it does not grow from a prompt of 512 to one of 1,024)."""
        ours = self.engine(path, 2, ENTRIES, 16384)
        peer = self.peer(path, 2, 16384, settings["flash"], settings["repack"])
        watch = Watch(ours, peer)
        ours.ms("prompt 16000")
        peer.ms("prompt 512")
        before = peer.ask("rss")["rss_kib"]
        peer.ms("extend 1024")
        after = peer.ask("rss")["rss_kib"]
        own = ours.ask("rss")
        memory = {"model": model, "what": "memory 16000", "threads": 2, "mode": self.args.mode,
                  "ours_kib": own["rss_kib"], "ours_peak_kib": own["peak_kib"], "peer_kib": after,
                  "peer_growth_kib": after - before, "ratio": after / own["rss_kib"], "goal": GOALS["memory 16000"],
                  **watch.result()}
        ours.close()
        peer.close()
        print(f"  memory of 16,000 tokens: ours {own['rss_kib'] / 1024:.0f} MiB (peak "
              f"{own['peak_kib'] / 1024:.0f}), peer {after / 1024:.0f} MiB (grows by {after - before} KiB for 512 "
              f"tokens): {memory['ratio']:.2f}, goal {memory['goal']}")
        return memory

    def compare_greedy(self, ours, peer, n=24):
        ids = ours.ask("tokens " + QUESTION)["ids"]
        line = f"greedy {n} " + " ".join(str(i) for i in ids)
        a, b = ours.ask(line)["ids"], peer.ask(line)["ids"]
        return {"of": n, "equal": next((i for i in range(n) if a[i] != b[i]), n), "ours": a, "peer": b}


def print_model(result):
    peer = result["peer"]
    print(f"{result['model']}: llama.cpp with flash attention {'on' if peer['flash'] else 'off'}, repacked weights "
          f"{'on' if peer['repack'] else 'off'}; first {result['greedy']['equal']} of {result['greedy']['of']} greedy "
          "ids equal")


def print_row(row):
    mark = "" if row["ratio"] >= row["goal"] else "  BELOW"
    print(f"  {row['what']:17} {row['threads']} thr {row['mode']:5} {row['ours_tok_s']:9.2f} {row['peer_tok_s']:9.2f} "
          f"tok/s {row['ratio']:6.2f} (goal {row['goal']}) spread {row['spread'] * 100:3.0f} % of {row['rounds']}, "
          f"others {row['others']:.2f}, steal {row['steal']:.2f}, load {row['load']:.1f}{mark}", flush=True)


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            return next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def find_models(folder, only):
    rank = {name: i for i, name in enumerate(ORDER)}
    paths = [p for p in glob.glob(os.path.join(folder, "*.gguf")) if only in os.path.basename(p)]
    if not paths:
        sys.exit(f"no model in {folder}: run make-models.py first")
    return sorted(paths, key=lambda p: (rank.get(os.path.basename(p), len(rank)), p))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--engine", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--models", required=True, help="folder of make-models.py")
    parser.add_argument("--gate", default="-", help="gate of the SmolLM2 files")
    parser.add_argument("--only", default="", help="only files whose name contains this")
    parser.add_argument("--mode", default="fast", choices=["exact", "fast"])
    parser.add_argument("--kv", default="f16", choices=["f32", "f16", "q8_0"])
    parser.add_argument("--quick", action="store_true", help="two threads, long states for the default file only")
    parser.add_argument("--json")
    args = parser.parse_args()

    start = time.monotonic()
    bench = Bench(args)
    print(f"{cpu_name()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}; our mode {args.mode}, KV {args.kv} on "
          "both sides; ours and peer in tokens/s", flush=True)
    models = [bench.measure(path) for path in find_models(args.models, args.only)]
    seconds = time.monotonic() - start
    below = [r for r in bench.rows + [m["memory"] for m in models if "memory" in m] if r["ratio"] < r["goal"]]
    print(f"{seconds / 60:.1f} minutes; {len(below)} rows below their goal")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump({"date": time.strftime("%Y-%m-%d"), "cpu": cpu_name(), "n_cpu": os.cpu_count(),
                       "quick": args.quick, "seconds": seconds, "mode": args.mode, "kv": args.kv,
                       "models": models, "rows": bench.rows}, out, indent=1)


if __name__ == "__main__":
    main()

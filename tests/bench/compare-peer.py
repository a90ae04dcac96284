#!/usr/bin/env python3
"""Speed and memory against llama.cpp: same file, same ids, same threads, alternating in one run.

Two long-lived processes (speed-engine and peer-llama) answer the line protocol of speed-server.h.  Each row
is measured in turns, so that what else the machine does hits both; medians and their ratio are printed.
A ratio above 1 says that Keepsake is faster.

Usage: compare-peer.py --engine BUILD/tests/bench/speed-engine --peer DIR/peer-llama --model M.gguf
                       [--gate G.safetensors] [--threads 2] [--mode exact] [--kv f16] [--entries 1024]
                       [--depths 0,2048,8192] [--rounds 3] [--json OUT.json]
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time


class Side:
    """One process that answers the protocol."""

    def __init__(self, name, argv):
        self.name = name
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not json.loads(self.process.stdout.readline() or "{}").get("ready"):
            sys.exit(f"{name} did not start")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{self.name} ended at '{line}'")
        return json.loads(answer)

    def close(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.flush()
        self.process.wait()


def measure(row, ours, peer, prepare, command, tokens, rounds, warm_up=True):
    """Alternates `command` on both sides; returns the row with medians in tokens per second."""
    for side in (ours, peer):
        if prepare:
            side.ask(prepare)
        if warm_up:
            side.ask(command)
    times = {"ours": [], "peer": []}
    for _ in range(rounds):
        times["ours"].append(ours.ask(command)["ms"])
        times["peer"].append(peer.ask(command)["ms"])
    ours_ms, peer_ms = (statistics.median(times[k]) for k in ("ours", "peer"))
    return {"row": row, "ours_tok_s": tokens * 1e3 / ours_ms, "peer_tok_s": tokens * 1e3 / peer_ms,
            "ratio": peer_ms / ours_ms, "ours_ms": times["ours"], "peer_ms": times["peer"]}


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            return next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--engine", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--gate", default="-")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mode", default="exact", choices=["exact", "fast"])
    parser.add_argument("--kv", default="f16", choices=["f32", "f16", "q8_0"])
    parser.add_argument("--entries", type=int, default=1024)
    parser.add_argument("--depths", default="0,2048,8192")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    args = parser.parse_args()

    depths = [int(d) for d in args.depths.split(",")]
    context = max(depths + [512]) + 2048

    def engine(entries):
        return Side("speed-engine", [args.engine, args.model, str(args.threads), args.kv, str(entries),
                                     args.gate, str(context), args.mode])

    def peer(flash):
        return Side("peer-llama", [args.peer, args.model, str(args.threads), str(context), str(flash), args.kv])

    # The peer at its best: flash attention on or off, whichever decodes faster at a middle depth.
    speed = {}
    for flash in (1, 0):
        side = peer(flash)
        side.ask("depth 1024")
        side.ask("decode 8")
        speed[flash] = min(side.ask("decode 16")["ms"] for _ in range(2))
        side.close()
    flash = min(speed, key=speed.get)
    full, budget, other = engine(0), engine(args.entries), peer(flash)

    rows = [measure("prompt 512", full, other, None, "prompt 512", 512, args.rounds)]
    for depth in depths:
        prepare = f"depth {max(depth, 1)}"
        rows.append(measure(f"decode at depth {depth}, full cache", full, other, prepare, "decode 32", 32,
                            args.rounds))
        if depth > args.entries:
            rows.append(measure(f"decode at depth {depth}, {args.entries} entries a stream", budget, other,
                                prepare, "decode 32", 32, args.rounds))
    if max(depths) >= 8000:
        rows.append(measure(f"first token of 8000, {args.entries} entries a stream", budget, other, None,
                            "prompt 8000", 8000, 1, warm_up=False))
    memory = {"full": full.ask("rss"), "budget": budget.ask("rss"), "peer": other.ask("rss")}
    for side in (full, budget, other):
        side.close()

    print(f"machine: {cpu_name()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}")
    print(f"model: {os.path.basename(args.model)}; {args.threads} threads; ours: {args.mode} mode, KV {args.kv}; "
          f"llama.cpp: flash attention {'on' if flash else 'off'}, KV {args.kv}")
    print(f"{'row':48} {'ours tok/s':>11} {'peer tok/s':>11} {'ratio':>7}")
    for row in rows:
        print(f"{row['row']:48} {row['ours_tok_s']:11.2f} {row['peer_tok_s']:11.2f} {row['ratio']:7.2f}")
    for name, value in memory.items():
        print(f"resident memory, {name}: {value['rss_kib'] / 1024:.0f} MiB (peak {value['peak_kib'] / 1024:.0f})")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump({"time": time.strftime("%Y-%m-%d"), "cpu": cpu_name(), "load": os.getloadavg(),
                       "arguments": vars(args), "flash": flash, "rows": rows, "memory": memory}, out, indent=1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures everything that docs/performance.md shows and writes that page from the results.

  report.py measure --build BUILD --peer DIR/peer-llama --models FOLDER --out RESULTS.json [--quick]
      runs bench-limits, compare-peer.py, bench-packed and the command line's memory, perplexity and recall
      benches one after the other; about 35 minutes on two cores, with --quick ten.  Nothing else should run.
  report.py write RESULTS.json        rewrites docs/performance.md
  report.py profile --build BUILD [--part decode|prefill|evict] [--mode fast|exact]
      instructions of a step by function (callgrind)

The page is never edited by hand but for what follows its line "## Kept by hand", which stays.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.path.join(ROOT, "docs", "performance.md")
BY_HAND = "## Kept by hand"
DEFAULT = "smollm2-135m-q4_1.gguf"
GATE = os.path.join(ROOT, "data", "gates", "smollm2-135m-instruct.safetensors")
PACKED_TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
PROGRAM_BENCHES = {
    "memory": "bench memory --tokens 16000 --kv-budget 24MiB",
    "perplexity": "bench perplexity --tokens 4096",
    "recall": "bench recall --entries 128",
}
ROWS = {"prompt 512": "prompt of 512", "decode 0": "decode, empty state", "decode 2048": "decode at 2,048, full cache",
        "decode 8192": "decode at 8,192, 1,024 entries a stream",
        "decode 8192 q8_0": "the same, Keepsake's keys and values in q8_0",
        "first token 8000": "first token of 8,000, 1,024 entries a stream"}


def run(command, **more):
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=True, text=True, **more)


def read_lines(command):
    """key=value lines of a bench program as dictionaries."""
    out = run(command, stdout=subprocess.PIPE).stdout
    return [dict(f.split("=", 1) for f in line.split() if "=" in f) | {"kind": line.split()[0]}
            for line in out.splitlines() if "=" in line]


def first_line(command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def measure(args):
    bench = os.path.join(args.build, "tests", "bench")
    program = os.path.join(args.build, "app", "keepsake-cli")
    model = os.path.join(args.models, DEFAULT)
    results = {"date": time.strftime("%Y-%m-%d"), "compiler": first_line(["cc", "--version"]),
               "kernel": os.uname().release, "load_before": os.getloadavg()[0],
               "commit": first_line(["git", "-C", ROOT, "log", "-1", "--format=%h"])}
    results["limits"] = json.loads(run([os.path.join(bench, "bench-limits"), "2"], stdout=subprocess.PIPE).stdout)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "peer.json")
        run([os.path.join(HERE, "compare-peer.py"), "--engine", os.path.join(bench, "speed-engine"), "--peer",
             args.peer, "--models", args.models, "--gate", GATE, "--json", out] + ["--quick"] * args.quick)
        with open(out, encoding="utf-8") as f:
            results["peer"] = json.load(f)
    packed = os.path.join(bench, "bench-packed")
    results["packed"] = [line for kind in (PACKED_TYPES[:2] if args.quick else PACKED_TYPES)
                         for line in read_lines([packed, "1", kind, "6"])] if os.path.exists(packed) else []
    results["program"] = {}
    for name, line in PROGRAM_BENCHES.items():
        if args.quick and name == "recall":
            continue
        # The verdicts of a bench are its exit status; the page shows the numbers either way.
        out = subprocess.run([program, *line.split(), "--threads", "2", "--model", model, "--gate", GATE, "--json"],
                             stdout=subprocess.PIPE, text=True, check=False).stdout
        results["program"][name] = json.loads(out)
    results["limits_after"] = json.loads(run([os.path.join(bench, "bench-limits"), "2"],
                                             stdout=subprocess.PIPE).stdout)
    results["load_after"] = os.getloadavg()[0]
    with open(args.out, "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)
        f.write("\n")


# --- the page ---

def best_limits(results, threads):
    """The better of both ends of the run: a limit is what the machine can do at most."""
    a, b = results["limits"][str(threads)], results["limits_after"][str(threads)]
    return {k: max(a[k], b[k]) for k in a}


def bold_below(row):
    text = f"{row['ratio']:.2f}"
    return text if row["ratio"] >= row["goal"] else f"**{text}**"


def peer_section(results):
    peer = results["peer"]
    out = ["## Against llama.cpp", "",
           "Same files, ids and threads, f16 keys and values on both sides, in turns, medians; "
           f"{peer['seconds'] / 60:.0f} minutes. llama.cpp runs with flash attention and "
           "repacked weights on or off, as measured to be faster on each file. "
           "Ratios above 1: Keepsake is faster; bold: below the goal. Spread: of the rounds of a row, "
           "from slowest to fastest; others: processors that other programs took meanwhile.", "",
           "| file | what | threads, mode | Keepsake, tokens/s | llama.cpp | ratio | goal | spread | others |",
           "|---|---|---|---|---|---|---|---|---|"]
    for row in peer["rows"]:
        note = f" ({row['note']})" if row["note"] else ""
        out.append(f"| {row['model'].removesuffix('.gguf')} | {ROWS[row['what']]}{note} | {row['threads']}, "
                   f"{row['mode']} | {row['ours_tok_s']:.1f} | {row['peer_tok_s']:.1f} | {bold_below(row)} | "
                   f"{row['goal']} | {row['spread'] * 100:.0f} % | {row['others']:.2f} |")
    out += ["", "| file | llama.cpp's best settings | greedy ids equal | loading, ms | resident after 16,000 tokens, "
            "MiB: Keepsake (1,024 entries a stream), llama.cpp | ratio, goal 2 |", "|---|---|---|---|---|---|"]
    for model in peer["models"]:
        best, memory, greedy = model["peer"], model.get("memory"), model["greedy"]
        settings = (f"flash attention {'on' if best['flash'] else 'off'}, repacked {'on' if best['repack'] else 'off'}")
        shown = (f"{memory['ours_kib'] / 1024:.0f}, {memory['peer_kib'] / 1024:.0f} | {bold_below(memory)}" if memory
                 else "not measured | ")
        out.append(f"| {model['model'].removesuffix('.gguf')} | {settings} | {greedy['equal']} of {greedy['of']} | "
                   f"{model['info']['load_ms']:.0f} | {shown} |")
    out += ["", "llama.cpp takes its cache for 16,384 tokens in full when it starts; Keepsake read all 16,000."]
    return out


def limits_section(results):
    out = ["", "## Share of the machine's limits", "",
           "| threads | read, GB/s | triad, GB/s | f32, GFLOP/s | byte products in 16 bits, in 32 bits, 10^9/s |",
           "|---|---|---|---|---|"]
    for n in sorted(results["limits"]):
        limit = best_limits(results, n)
        out.append(f"| {n} | {limit['read']:.1f} | {limit['triad']:.1f} | {limit.get('avx2_gflops', 0):.0f} | "
                   f"{limit.get('avx2_pair16_gmacs', 0):.0f}, {limit.get('avx2_pair32_gmacs', 0):.0f} |")
    out += ["", "Decode: bytes of the weights that a token passes through times tokens/s, over the faster of both "
            "bandwidths (aim 0.85). Prompt: products with weights times tokens/s, attention not counted, over the "
            "rate of byte products (`fast`, pairs of 16 bits) or of f32 (`exact`); aim 0.6 for the products alone.",
            "", "| file | threads, mode | decode, GB/s | share | prompt, 10^9 products/s | share |",
            "|---|---|---|---|---|---|"]
    info = {m["model"]: m["info"] for m in results["peer"]["models"]}
    speed = {(r["model"], r["threads"], r["mode"], r["what"]): r["ours_tok_s"] for r in results["peer"]["rows"]}
    for model, threads, mode in sorted({k[:3] for k in speed}, key=lambda k: (list(info).index(k[0]), -k[1], k[2])):
        i, limit = info[model], best_limits(results, threads)
        gigabytes = (i["layer_bytes"] + i["head_bytes"]) * speed[model, threads, mode, "decode 0"] * 1e-9
        products = i["layer_mul"] * speed[model, threads, mode, "prompt 512"] * 1e-9
        peak = limit.get("avx2_pair16_gmacs", 0) if mode == "fast" else limit.get("avx2_gflops", 0) / 2
        out.append(f"| {model.removesuffix('.gguf')} | {threads}, {mode} | {gigabytes:.1f} | "
                   f"{gigabytes / max(limit['read'], limit['triad']):.2f} | {products:.0f} | "
                   f"{products / peak if peak else 0:.2f} |")
    return out


def packed_section(results):
    if not results["packed"]:
        return []
    out = ["", "Kernels alone (`bench-packed`, one thread): rows times one token, from memory, over plain reading in "
           "the same rounds; tiles of 512 tokens over byte products, of the kind that the type's codes need.", "",
           "| type | rows `fast`, GB/s | share | rows `exact`, GB/s | share | tile, 10^9 products/s | share |",
           "|---|---|---|---|---|---|---|"]
    for kind in dict.fromkeys(line["type"] for line in results["packed"] if "type" in line):
        lines = [line for line in results["packed"] if line.get("type") == kind]
        rows = {r["mode"]: r for r in lines if r["kind"] == "rows" and r["tokens"] == "1"}
        tiles = [t for t in lines if t["kind"] == "tile" and t["n_in"] == "1536"]
        tile = f"{tiles[0]['gmacs']} | {tiles[0]['own_ratio']}" if tiles else " | "
        out.append(f"| {kind} | {rows['fast']['gbps']} | {rows['fast']['ratio']} | {rows['exact']['gbps']} | "
                   f"{rows['exact']['ratio']} | {tile} |")
    return out


def program_section(results):
    out = ["", "## The program", "", "| what | command | result |", "|---|---|---|"]
    program = results["program"]
    samples = program["memory"]["samples"]
    late = [s["resident_bytes"] for s in samples if s["tokens"] >= 4000]
    early = next(s for s in samples if s["tokens"] >= 1000)
    mib = 1 << 20
    out.append(f"| memory over 16,000 tokens | `keepsake-cli {PROGRAM_BENCHES['memory']}` | at most "
               f"{max(s['kv_used_bytes'] for s in samples) / mib:.2f} MiB used, "
               f"{max(s['kv_committed_bytes'] for s in samples) / mib:.2f} MiB committed of 24; process size from "
               f"4,000 tokens on within {(max(late) - min(late)) / mib:.2f} MiB; decode "
               f"{early['decode_tokens_per_second']:.1f} tokens/s at {early['tokens']:,} tokens, "
               f"{samples[-1]['decode_tokens_per_second']:.1f} at the end |")
    text = program["perplexity"]
    out.append(f"| perplexity of {text['tokens_foreseen']:,} tokens | `keepsake-cli {PROGRAM_BENCHES['perplexity']}` | "
               f"`exact` {text['exact']:.3f}, `fast` {text['fast']:.3f}: {text['difference_percent']:+.2f} % "
               "(goal: within 0.5 %) |")
    if "recall" in program:
        right = ", ".join(f"{p['policy']} {p['right']}" for p in program["recall"]["policies"])
        out.append(f"| recall, {program['recall']['policies'][0]['asked']} prompts of about 810 tokens | `keepsake-cli "
                   f"{PROGRAM_BENCHES['recall']}` | {right} |")
    return out


def write(args):
    with open(args.results, encoding="utf-8") as f:
        results = json.load(f)
    by_hand = ""
    if os.path.exists(PAGE):
        with open(PAGE, encoding="utf-8") as f:
            by_hand = f.read().partition(BY_HAND)[2]
    peer = results["peer"]
    page = ["# Measured speed and memory", "",
            "Written by `tests/bench/report.py` from the results of one run; changed by running it again, never by "
            "hand but for the last part.", "",
            f"Run of {results['date']} at {results['commit']}: {peer['cpu']}, {peer['n_cpu']} processors, Linux "
            f"{results['kernel']}, {results['compiler']}; load average {results['load_before']:.2f} before and "
            f"{results['load_after']:.2f} after.{' A short run (--quick).' if peer['quick'] else ''} Modes: `fast` is "
            "the default, `exact` computes with f32 activations (docs/adr/0010-precision.md). Commands: "
            "`tests/bench/README.md`.", ""]
    page += peer_section(results) + limits_section(results) + packed_section(results) + program_section(results)
    page = ["\n".join(textwrap.wrap(line, 120)) if line and line[0] not in "|#" else line for line in page]
    page += ["", BY_HAND + by_hand.rstrip("\n")]
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write("\n".join(page) + "\n")


def profile(args):
    """Where the instructions of a step go, on a layer and an output head with the default model's widths."""
    steps = os.path.join(args.build, "tests", "bench", "guard-steps")
    with tempfile.TemporaryDirectory() as folder:
        run(["valgrind", "--tool=callgrind", "--instr-atstart=no", "-q", f"--callgrind-out-file={folder}/out", steps,
             "shape", args.mode])
        for path in glob.glob(folder + "/out.*"):
            with open(path, encoding="utf-8") as f:
                wanted = f"Client Request: {args.part}\n" in f.read()
            if wanted:
                run(["callgrind_annotate", "--auto=no", "--threshold=97", path])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    sub = commands.add_parser("measure")
    sub.add_argument("--build", required=True)
    sub.add_argument("--peer", required=True)
    sub.add_argument("--models", required=True)
    sub.add_argument("--out", required=True)
    sub.add_argument("--quick", action="store_true")
    sub = commands.add_parser("profile")
    sub.add_argument("--build", required=True)
    sub.add_argument("--part", default="decode", choices=["prefill", "decode", "evict"])
    sub.add_argument("--mode", default="fast", choices=["exact", "fast"])
    commands.add_parser("write").add_argument("results")
    args = parser.parse_args()
    {"measure": measure, "write": write, "profile": profile}[args.command](args)


if __name__ == "__main__":
    sys.exit(main())

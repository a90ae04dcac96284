#!/usr/bin/env python3
"""Instructions of a step of decode and of a chunk of a prompt stay within their limits.

Usage: guard.py PROGRAM LIMITS.json COMPILER TINY.gguf [--renew]
PROGRAM is guard-steps, run under valgrind's callgrind: one thread, AVX2, two models, two modes.  Counts do
not depend on the machine's speed, but on the compiler: LIMITS.json has them for each COMPILER ("gcc 12
debugoptimized").  One that is not in it is skipped; --renew writes the counts of this one.  Evictions may
take 2 % of the instructions of decode.  Prints TAP.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

MARGIN = 1.05  # of the stored count
MODES = ("exact", "fast")
PARTS = {"tiny": ("prefill", "decode", "evict"),
         "shape": ("prefill", "decode", "evict", "full", "select", "pick")}
BETWEEN = 32       # steps of decode between two evictions, as in guard-steps
MOST_SHARE = 0.02  # of decode, for evictions
SKIPPED = 77


def count(program, model, mode):
    """Instructions of each part, or a reason why they cannot be counted here."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "-q",
                   f"--callgrind-out-file={folder}/out", program, model, mode]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if run.returncode == SKIPPED:
            return None, "no AVX2 here, or built without valgrind's header: " + run.stdout.strip()[-200:]
        if run.returncode != 0:
            raise RuntimeError(f"guard-steps ended with {run.returncode}: {run.stdout.strip()[-500:]}")
        counts = {}
        for path in glob.glob(folder + "/out.*"):
            with open(path, encoding="utf-8") as f:
                text = f.read()
            name = re.search(r"^desc: Trigger: Client Request: (\w+)", text, re.M)
            total = re.search(r"^(?:totals|summary): (\d+)", text, re.M)
            if name and total:
                counts[name.group(1)] = int(total.group(1))
        return counts, None


def measure(program, tiny):
    """{"shape fast decode": count}, or a reason."""
    counts = {}
    for label, model in (("tiny", tiny), ("shape", "shape")):
        for mode in MODES:
            parts, reason = count(program, model, mode)
            if reason:
                return None, reason
            for part in PARTS[label]:
                counts[f"{label} {mode} {part}"] = parts[part]
    return counts, None


def renew(limits_path, limits, compiler, counts):
    limits[compiler] = counts
    with open(limits_path, "w", encoding="utf-8") as f:
        json.dump(dict(sorted(limits.items())), f, indent=1)
        f.write("\n")
    for name, n in counts.items():
        print(f"{n:12,} {name}")


def check(limits, compiler, counts):
    """Prints TAP; true when every count is within its limit."""
    good = True
    print(f"1..{len(counts) + len(MODES)}")
    for i, (name, n) in enumerate(counts.items(), 1):
        limit = limits[compiler].get(name)
        ok = limit is not None and n <= limit * MARGIN
        good = good and ok
        change = f"{n / limit * 100 - 100:+.1f} %" if limit else "no limit stored"
        print(f"{'ok' if ok else 'not ok'} {i} - {name}: {n:,} instructions ({change})")
        if limit and n < limit * (2 - MARGIN):
            print(f"# {name} became cheaper by more than the margin: renew the limits so that it stays so")
    for i, mode in enumerate(MODES, len(counts) + 1):
        share = counts[f"shape {mode} select"] / (BETWEEN * counts[f"shape {mode} full"])
        good = good and share < MOST_SHARE
        print(f"{'ok' if share < MOST_SHARE else 'not ok'} {i} - evictions take {share * 100:.2f} % of decode, {mode}")
    if not good:
        print("# More instructions than stored for this compiler. If they are wanted (say why in the commit):\n"
              "#   ninja -C BUILD guard-renew")
    return good


def main():
    program, limits_path, compiler, tiny = sys.argv[1:5]
    with open(limits_path, encoding="utf-8") as f:
        limits = json.load(f)
    renewing = sys.argv[5:] == ["--renew"]
    reason = None
    if shutil.which("valgrind") is None:
        reason = "valgrind is not installed"
    elif compiler not in limits and not renewing:
        reason = f"no counts stored for '{compiler}'; `ninja -C BUILD guard-renew` stores them"
    if reason is None:
        counts, reason = measure(os.path.abspath(program), tiny)
    if reason is not None:
        print(f"1..0 # SKIP {reason}")
        return 1 if renewing else 0
    if renewing:
        renew(limits_path, limits, compiler, counts)
        return 0
    return 0 if check(limits, compiler, counts) else 1


if __name__ == "__main__":
    sys.exit(main())

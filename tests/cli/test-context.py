#!/usr/bin/env python3
"""keepsake-cli bench context, dilution: on a tiny model, with tables that agree with the rows.

Usage: test-context.py PROGRAM CASES.  Prints TAP.  Every check states a promise.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import sys

from clilib import GATE, HOME, MODEL, check, expect, expect_failure, main, run


def folder(name):
    return os.path.join(HOME.name, name)


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return lines[0]["run"], lines[1:]


@check
def context_grows_and_memory_does_not():
    out = folder("context")
    code, text, err = run("bench", "context", "--model", MODEL, "--gate", GATE, "--lengths", "64,256,1024", "--entries",
                          "64", "--decode", "2", "--rounds", "3", "--out", out, "--json")
    expect(code == 0, err)
    rows = json.loads(text)["rows"]
    size = {(r["policy"], r["tokens"]): r["kv_bytes"] for r in rows}
    expect(len(rows) == 9 and all(r["decode_tokens_per_second"] > 0 for r in rows), f"{rows}")
    expect(size["full", 1024] > 3.5 * size["full", 256], f"{size}")
    for policy in ("snapkv", "dbtrimkv"):
        expect(size[policy, 1024] < 1.5 * size[policy, 256], f"{size}")
    for name in ("context.json", "context-speed.svg", "context-memory.svg"):
        expect(os.path.getsize(os.path.join(out, name)) > 100, name)
    expect_failure(2, ["bench", "context", "--model", MODEL, "--lengths", "64,32"], "--lengths")


@check
def attention_is_shared_out():
    """The five parts add up to 1; the oracle keeps the evidence whole and little else."""
    out = folder("dilution")
    code, text, err = run("bench", "dilution", "--model", MODEL, "--gate", GATE, "--sentences", "4,8", "--items", "2",
                          "--entries", "24", "--out", out, "--json")
    expect(code == 0, err)
    _, rows = rows_of(os.path.join(out, "dilution.jsonl"))
    expect(len(rows) == 2 * 2 * 6, f"{len(rows)} rows")
    for row in rows:
        row.update(row["values"])
        parts = sum(row[p] for p in ("mass-evidence", "mass-question", "mass-sink", "mass-window", "mass-rest"))
        expect(abs(parts - 1) < 1e-4, f"{row['policy']}: the parts add up to {parts}")
        expect(0 <= row["evidence-recall"] <= 1 + 1e-9, f"{row}")
        if row["policy"] in ("full", "oracle"):
            expect(abs(row["evidence-recall"] - 1) < 1e-9, f"{row['policy']}: {row['evidence-recall']}")
        if row["policy"] == "oracle":
            expect(row["mass-rest"] < 1e-9, f"{row['mass-rest']}")
    slopes = [t for t in json.loads(text)["tables"] if t["metric"] == "slope"]
    expect(len(slopes) == 1 and len(slopes[0]["cells"]) >= 2, "slopes")


if __name__ == "__main__":
    sys.exit(main())

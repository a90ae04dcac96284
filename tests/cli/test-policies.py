#!/usr/bin/env python3
"""keepsake-cli bench policies: on a tiny model, resumed, with tables that agree with the rows.

Usage: test-policies.py PROGRAM CASES.  Prints TAP.  Every check states a promise.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import sys

from clilib import CASES, GATE, HOME, MODEL, check, expect, expect_failure, main, run, write

OTHER_GATE = os.path.join(CASES, "dbtrimkv", "gate_local.safetensors")
SMALL = ["--model", MODEL, "--gate", GATE, "--prompts", "2", "--words", "60", "--texts", "2", "--text-tokens", "200",
         "--scored-tokens", "20", "--answer-tokens", "2", "--at", "16,32"]


def folder(name):
    return os.path.join(HOME.name, name)


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return lines[0]["run"], lines[1:]


def text_file():
    sentences = b"".join(b"The keeper number %d walks to the lamp and back. " % i for i in range(400))
    return write("policies.txt", sentences)


@check
def every_policy_at_every_budget():
    """All that can run, in both modes; the full cache once; each row once; as many as the table says."""
    out = folder("proof")
    code, text, err = run("bench", "policies", *SMALL, "--out", out, "--text", text_file(), "--json")
    expect(code == 0, err)
    table = json.loads(text)
    header, rows = rows_of(os.path.join(out, "stage-1.jsonl"))
    expect(header["stage"] == "1" and len(header["model_sha256"]) == 64, f"{header}")
    names = [(r["policy"], r["M"], r["mode"], r["bench"], r["id"], r.get("turn", 0)) for r in rows]
    expect(len(set(names)) == len(names), "a row is there twice")
    full = [n for n in names if n[0] == "full"]
    expect(len(full) == 2 + 2 + 2, f"the full cache: {full}")
    for mode in ("faithful", "chunked"):
        policies = {n[0].split(":")[0] for n in names if n[2] == mode}
        expect(policies >= {"dbtrimkv", "trimkv", "streaming", "keydiff", "h2o", "snapkv", "adakv", "pyramidkv",
                            "rkv", "random"}, f"{mode}: {policies}")
    sheets = {t["bench"]: t for t in table["tables"]}
    expect(set(sheets) == {"recall", "recall-new", "loss"}, f"{set(sheets)}")
    for cell in sheets["loss"]["cells"]:
        own = [r["values"] for r in rows if r["bench"] == "loss" and r["policy"] == cell["policy"] and
               r["M"] == cell["entries"] and r["mode"] == cell["mode"]]
        nll = [v["nll"] / v["n_scored"] for v in own]
        expect(cell["n"] == 2 and abs(cell["mean"] - sum(nll) / 2) < 1e-9, f"{cell}")
        expect(0 < cell["mean"] < 20, f"{cell}")
    for name in ("stage-1.md", "stage-1.csv", "stage-1.json", "stage-1-loss-loss.svg", "stage-1-memory.svg"):
        expect(os.path.getsize(os.path.join(out, name)) > 100, name)


@check
def a_stopped_run_goes_on():
    """What is there is not measured again: a cut file ends up with the same rows, the cut line anew."""
    out = folder("resumed")
    args = ["bench", "policies", *SMALL, "--out", out, "--text", text_file(), "--policies", "full,dbtrimkv,random",
            "--modes", "faithful"]
    code, _, err = run(*args)
    expect(code == 0, err)
    path = os.path.join(out, "stage-1.jsonl")
    _, before = rows_of(path)
    with open(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    with open(path, "wb") as file:
        file.writelines(lines[:5])
        file.write(lines[5][:20])
    code, _, err = run(*args)
    expect(code == 0, err)
    _, after = rows_of(path)

    def plain(row):
        return {k: v for k, v in row.items() if not k.endswith("_s")}
    key = json.dumps
    expect(sorted(key(plain(r), sort_keys=True) for r in before) ==
           sorted(key(plain(r), sort_keys=True) for r in after), "other rows than without the stop")
    expect_failure(2, [*args, "--seed", "2"], "seed")


@check
def budgets_are_kept_and_peaks_told():
    """Chunked cells never hold more than M and one chunk a stream; faithful ones hold the text."""
    header, rows = rows_of(os.path.join(folder("proof"), "stage-1.jsonl"))
    streams, chunk = header["streams"], header["chunk"]
    for row in rows:
        limit = (row["M"] + chunk) * streams
        if row["policy"] != "full" and row["mode"] == "chunked":
            expect(row["peak_entries"] <= limit, f"{row['policy']}: {row['peak_entries']} of {limit}")
        if row["mode"] == "faithful":
            expect(row["peak_entries"] >= 60 * streams, f"{row['policy']}: {row['peak_entries']}")


@check
def forgetting_costs_what_it_must():
    """The full cache foresees the tiny model's text best or equal; an M above the text changes nothing."""
    out = folder("wide")
    args = ["bench", "policies", *SMALL[:-2], "--at", "400", "--out", out, "--text", text_file(), "--policies",
            "full,dbtrimkv,snapkv,h2o,streaming", "--modes", "faithful,chunked"]
    code, text, err = run(*args, "--json")
    expect(code == 0, err)
    cells = [c for t in json.loads(text)["tables"] if t["bench"] == "loss" for c in t["cells"]]
    full = [c for c in cells if c["policy"] == "full"][0]
    expect(len(cells) == 9, f"{len(cells)} cells")
    for cell in cells:
        expect(abs(cell["mean"] - full["mean"]) < 1e-3, f"{cell['policy']}: {cell['mean']} against {full['mean']}")


@check
def questions_about_one_text_start_alike():
    """Six questions about each long text, each from the same memory: a run cut among them ends up with the same."""
    out = folder("long")
    args = ["bench", "policies", *SMALL[:-2], "--at", "48", "--stage", "long", "--texts", "0", "--prompts", "1",
            "--answer-tokens", "4", "--policies", "full,dbtrimkv,h2o", "--modes", "faithful,chunked", "--out", out]
    code, _, err = run(*args)
    expect(code == 0, err)
    path = os.path.join(out, "stage-long.jsonl")
    _, before = rows_of(path)
    expect(len(before) == 5 * 6, f"{len(before)} rows")
    expect({r.get("turn", 0) for r in before} == set(range(6)) and len({r["group"] for r in before}) == 1, "questions")
    with open(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    with open(path, "wb") as file:
        file.writelines(lines[:4])
    code, _, err = run(*args)
    expect(code == 0, err)
    _, after = rows_of(path)

    def said(rows):
        return sorted((r["policy"], r["mode"], r.get("turn", 0), r["prediction"], r["peak_entries"]) for r in rows)
    expect(said(before) == said(after), "other answers than without the stop")
    with open(os.path.join(out, "stage-long.json"), encoding="utf-8") as file:
        cells = json.load(file)["tables"][0]["cells"]
    expect(len(cells) == 5 and all(c["n"] == 6 for c in cells), f"{cells}")


@check
def other_gates_have_names():
    out = folder("gates")
    args = ["bench", "policies", *SMALL, "--out", out, "--texts", "0", "--prompts", "1", "--modes", "chunked"]
    code, _, err = run(*args, "--policies", "trimkv:gate=local,dbtrimkv", "--with-gate", "local=" + OTHER_GATE)
    expect(code == 0, err)
    _, rows = rows_of(os.path.join(out, "stage-1.jsonl"))
    expect({r["policy"] for r in rows} == {"trimkv:gate=local", "dbtrimkv"}, "policies")
    expect_failure(2, [*args[:-4], "--out", folder("none"), "--policies", "trimkv:gate=other"], "other")
    expect_failure(2, [*args, "--with-gate", "nothing"], "NAME=FILE")


@check
def wrong_options_are_named():
    base = ["bench", "policies", *SMALL, "--out", folder("wrong")]
    expect_failure(2, [*base, "--stage", "3"], "stage")
    expect_failure(2, [*base, "--policies", "best"], "'best'")
    expect_failure(2, [*base, "--policies", "snapkv:window=0"], "window")
    expect_failure(2, [*base, "--policies", "snapkv:pool=4"], "pool=4")
    expect_failure(2, [*base, "--policies", "random:size=4"], "'size'")
    expect_failure(2, [*base, "--modes", "quick"], "'quick'")
    expect_failure(2, [*base, "--at", "0"], "--at")
    expect_failure(2, [*base, "--words", "5"], "--words")
    expect_failure(2, ["bench", "policies", *SMALL], "--out")
    expect_failure(1, [*base, "--stage", "2"], "stage 1")
    expect_failure(2, [*base, "--text", write("short.txt", b"A few words.")], "--text")


if __name__ == "__main__":
    sys.exit(main())

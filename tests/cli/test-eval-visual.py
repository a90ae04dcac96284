#!/usr/bin/env python3
"""keepsake-cli eval with drawn pictures on a tiny model with eyes, and tables with heat maps of what came of it.

Usage: test-eval-visual.py PROGRAM CASES.  Prints TAP.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import csv
import json
import os
import sys

from clilib import CASES, GATE, HOME, MODEL, check, expect, expect_failure, main, run

EYES = ("--model", os.path.join(CASES, "qwen2.5-vl", "model.gguf"), "--mmproj",
        os.path.join(CASES, "qwen2.5-vl", "mmproj.gguf"), "--threads", "1")


def path(name):
    return os.path.join(HOME.name, name)


def rows(name):
    with open(path(name), encoding="utf-8") as file:
        return [json.loads(line) for line in file][1:]


def done(*args):
    code, out, err = run("eval", *args)
    expect(code == 0, f"{args}: exit {code}: {err}")
    return out


@check
def pictures_are_counted_and_placed():
    """Every number of pictures at every place, once where places fall together; later questions too."""
    done("run", "visual-index", *EYES, "--counts", "1,3", "--depths", "0,50,100", "--samples", "1", "--side", "64",
         "--policies", "full,streaming", "--entries", "64", "--max-new", "2", "--context", "2000", "--out",
         path("visual.jsonl"))
    found = rows("visual.jsonl")
    parts = {r["part"] for r in found}
    expect(parts == {"1/0", "3/0", "3/50", "3/100"}, f"{parts}")
    expect(len(found) == 4 * 2 * 2, f"{len(found)} rows")
    expect({r["question"] for r in found} == {"with", "after"}, "both ways of asking")
    of = {r["part"]: r["expect"] for r in found}
    expect(of["3/0"] == ["1"] and of["3/100"] == ["3"], f"{of}")
    tokens = {p: min(r["prompt_tokens"] for r in found if r["part"] == p) for p in parts}
    expect(tokens["3/50"] > tokens["1/0"] + 10, f"more pictures, more tokens: {tokens}")


@check
def turns_bring_one_picture_each():
    done("run", "visual-turns", *EYES, "--counts", "3", "--samples", "1", "--side", "64", "--policies", "full",
         "--question", "with", "--max-new", "2", "--context", "2000", "--out", path("turns.jsonl"))
    found = rows("turns.jsonl")
    expect(len(found) == 1 and found[0]["question"] == "after", f"{found}")


@check
def tables_have_intervals_and_maps():
    """The CSV has a line for each cell and metric; lengths and places become a map."""
    folder = path("tables")
    done("table", path("visual.jsonl"), "--out", folder)
    with open(os.path.join(folder, "visual.csv"), encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    expect(len(lines) == 4 and {line["n"] for line in lines} == {"4"}, f"{lines}")
    files = os.listdir(folder)
    maps = [f for f in files if f.startswith("visual-visual-index-accuracy-") and f.endswith(".svg")]
    expect(len(maps) == 4, f"{files}")
    for name in ("visual.md", "visual.json", "visual-visual-index-accuracy.svg"):
        expect(name in files, f"{name} is not among {files}")
    text = done("table", path("visual.jsonl"), "--parts", "--json")
    expect({t["part"] for t in json.loads(text)["tables"]} == {"1/0", "3/0", "3/50", "3/100"}, "parts")


@check
def pictures_with_fewer_tokens_are_cells_of_their_own():
    """VisionZip and FastV alone and together, with each policy, beside what is whole, in one file."""
    base = ["run", "visual-yesno", *EYES, "--counts", "1", "--samples", "1", "--side", "112", "--policies",
            "full,streaming", "--entries", "64", "--max-new", "1", "--question", "with", "--context", "2000", "--out",
            path("fewer.jsonl")]
    zipped, fast = ["--visionzip", "3,1"], ["--fastv", "1,0.5"]
    for more in ([], zipped, fast, zipped + fast):
        done(*base, *more)
    found = {r["policy"]: r["prompt_tokens"] for r in rows("fewer.jsonl")}
    names = ("", "+visionzip-3-1", "+fastv-1-0.5", "+visionzip-3-1+fastv-1-0.5")
    expect(set(found) == {p + n for p in ("full", "streaming") for n in names}, f"{found}")
    expect(found["full+visionzip-3-1"] < found["full"] == found["full+fastv-1-0.5"], f"{found}")
    expect(found["full+visionzip-3-1+fastv-1-0.5"] == found["full+visionzip-3-1"], f"{found}")


@check
def wrong_options_are_named():
    base = ["eval", "run", "visual-index", *EYES, "--out", path("wrong.jsonl")]
    expect_failure(2, [*base, "--counts", "51"], "--counts")
    expect_failure(2, [*base, "--side", "5000", "--samples", "1"], "pixels")
    expect_failure(2, ["eval", "table"], "run file")
    expect_failure(2, ["eval", "table", path("visual.jsonl"), "--scorer", "kind"], "--scorer")
    expect_failure(4, ["eval", "run", "visual-index", "--model", MODEL, "--gate", GATE, "--samples", "1", "--counts",
                       "1", "--out", path("blind.jsonl")], "no eyes")


if __name__ == "__main__":
    sys.exit(main())

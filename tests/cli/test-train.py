#!/usr/bin/env python3
"""keepsake-cli train gates: a gate comes out that the program takes, a stopped run goes on as if nothing
had been, and what cannot work is refused before anything is computed.

Usage: test-train.py PROGRAM CASES.  Prints TAP.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import signal
import subprocess
import sys

import clilib
from clilib import CASES, ENV, HOME, MODEL, PROGRAM, check, expect, expect_failure, run, write

TEXT = write("words.txt", "\n\n".join(f"Paragraph {i} tells of things number {i * i}." for i in range(300)).encode())
SMALL = ["--model", MODEL, "--data", TEXT, "--tokens", "96", "--entries", "8", "--width", "8", "--threads", "1"]


def out(name):
    return os.path.join(HOME.name, name)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def train(name, *more):
    return run("train", "gates", *SMALL, "--out", out(name), *more)


@check
def makes_a_gate_that_is_used():
    code, text, err = train("a.safetensors", "--local-steps", "12", "--steps", "12", "--json", "--print-every", "1",
                            "--rate", "0.01", "--local-rate", "0.01")
    expect(code == 0, err)
    rows = [json.loads(line) for line in text.splitlines()]
    expect([r["step"] for r in rows] == list(range(1, 25)), "every step is told")
    expect([r["stage"] for r in rows] == ["local"] * 12 + ["method"] * 12, "the stages follow each other")
    expect(all(0 < r["mean_retention"] < 1 and r["capacity"] >= 0 and r["tokens"] <= 96 for r in rows), "figures")
    expect(rows[11]["entries"] < rows[0]["entries"], "the gate learns to hold less than it did at first")
    code, text, err = run("ask", "--model", MODEL, "--gate", out("a.safetensors"), "--entries", "16", "--policy",
                          "dbtrimkv", "--max-tokens", "2", "Hello")
    expect(code == 0, err)
    expect(read(out("a.svg")).startswith(b"<") and b"</svg>" in read(out("a.svg")), "the curve is drawn")


@check
def goes_on_as_if_it_had_not_stopped():
    more = ["--local-steps", "150", "--steps", "100", "--print-every", "1"]
    code, _, err = train("whole.safetensors", *more)
    expect(code == 0, err)
    stopped = subprocess.Popen([PROGRAM, "train", "gates", *SMALL, "--out", out("cut.safetensors"), *more], env=ENV,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in stopped.stdout:
        if line.startswith(b"step 20 "):
            stopped.send_signal(signal.SIGINT)
            break
    stopped.stdout.read()
    expect(stopped.wait(60) == 130, "Ctrl-C is told by the exit code")
    expect(read(out("cut.safetensors")) != read(out("whole.safetensors")), "it was not over")
    code, text, err = train("cut.safetensors", *more)
    expect(code == 0 and "going on from step" in text, text + err)
    expect(read(out("cut.safetensors")) == read(out("whole.safetensors")), "the same gate, byte for byte")


@check
def another_run_does_not_go_on():
    more = ["--local-steps", "3", "--steps", "0"]
    expect(train("b.safetensors", *more)[0] == 0, "trained")
    expect_failure(2, ["train", "gates", *SMALL, "--out", out("b.safetensors"), "--local-steps", "4", "--steps", "0"],
                   "stages", "--fresh")
    expect_failure(2, ["train", "gates", *SMALL, "--out", out("b.safetensors"), *more, "--seed", "2"], "seed")
    expect(train("b.safetensors", "--local-steps", "4", "--steps", "0", "--fresh")[0] == 0, "--fresh starts again")
    state = read(out("b.state"))
    write("b.state", state[:len(state) // 2])
    expect_failure(1, ["train", "gates", *SMALL, "--out", out("b.safetensors"), "--local-steps", "4", "--steps", "0"])


@check
def memory_is_told_and_bounded():
    code, text, err = train("c.safetensors", "--local-steps", "1", "--steps", "0")
    expect(code == 0 and "memory beside the model:" in text, text + err)
    expect_failure(3, ["train", "gates", *SMALL, "--out", out("d.safetensors"), "--max-memory", "10KiB"], "--tokens")
    expect(not os.path.exists(out("d.safetensors")), "nothing was written")


FAMILIES = {"idefics3": "idefics3", "qwen2.5-vl": "qwen2.5-vl", "qwen3-vl": "qwen3-vl", "gemma3-vision": "gemma3"}


@check
def pictures_are_seen_by_every_family():
    for family, base in FAMILIES.items():
        image = os.path.join(CASES, family, "img0.png")
        parts = [{"type": "text", "text": "Look: "}, {"type": "image", "image": image}, {"type": "text", "text": "?"}]
        chat = {"messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": "A red square."}]}
        data = write(f"{family}.jsonl", json.dumps(chat).encode() + b"\n")
        args = ["train", "gates", "--model", os.path.join(CASES, base, "model.gguf"), "--mmproj",
                os.path.join(CASES, family, "mmproj.gguf"), "--data", data, "--recall-share", "0", "--tokens", "1024",
                "--width", "4", "--threads", "1"]
        code, text, err = run(*args, "--show", "1")
        expect(code == 0 and "[picture]" in text and "A red square." in text, f"{family}: {text}{err}")
        code, text, err = run(*args, "--local-steps", "1", "--steps", "2", "--json", "--print-every", "1", "--out",
                              out(family + ".safetensors"))
        expect(code == 0, f"{family}: {err}")
        rows = [json.loads(line) for line in text.splitlines()]
        expect(len(rows) == 3 and rows[2]["next_token"] > 0, f"{family}: {text}")
    expect_failure(2, ["train", "gates", "--model", MODEL, "--data", out("idefics3.jsonl"), "--recall-share", "0",
                       "--local-steps", "1", "--steps", "0", "--tokens", "512", "--out", out("x.safetensors")],
                   "--mmproj")


@check
def stored_sessions_are_data():
    code, _, err = run("ask", "--model", MODEL, "--session", "new", "--max-tokens", "3", "The lamp is green.")
    expect(code == 0, err)
    code, text, err = run("train", "gates", "--model", MODEL, "--sessions", "--recall-share", "0", "--tokens", "512",
                          "--show", "1")
    expect(code == 0 and "The lamp is green." in text, text + err)
    code, text, err = run("train", "gates", "--model", MODEL, "--session", "1", "--recall-share", "0", "--tokens",
                          "512", "--local-steps", "1", "--steps", "1", "--out", out("s.safetensors"))
    expect(code == 0 and "data: 1 texts" in text, text + err)


@check
def data_can_be_looked_at():
    code, text, err = run("train", "gates", *SMALL, "--show", "6", "--tokens", "512", "--recall-share", "1")
    expect(code == 0 and text.count("=== sequence") >= 6 and "[[" in text, text + err)


@check
def what_cannot_work_is_refused():
    bad = write("bad.jsonl", b'{"text": "fine"}\n{"messages": 3}\n')
    expect_failure(2, ["train", "gates", "--model", MODEL, "--data", TEXT], "--out")
    expect_failure(2, ["train", "gates", "--model", MODEL, "--out", out("x.safetensors")], "--data")
    expect_failure(2, ["train", "gates", *SMALL, "--out", out("x.safetensors"), "--steps", "0", "--local-steps", "0"],
                   "nothing to do")
    expect_failure(2, ["train", "gates", *SMALL, "--out", out("x.safetensors"), "--capacity", "other"], "reference")
    expect_failure(4, ["train", "gates", "--model", MODEL, "--data", bad, "--out", out("x.safetensors")], "line 2")
    expect_failure(1, ["train", "gates", "--model", MODEL, "--data", out("none.txt"), "--out", out("x.safetensors")])
    expect_failure(1, ["train", "gates", "--model", MODEL, "--session", "no such", "--out", out("x.safetensors")],
                   "no such")


if __name__ == "__main__":
    sys.exit(clilib.main())

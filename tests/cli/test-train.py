#!/usr/bin/env python3
"""keepsake-cli train gates: a gate comes out that the program takes, a stopped run goes on as if nothing
had been, and what cannot work is refused before anything is computed.

Usage: test-train.py PROGRAM CASES.  Prints TAP.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

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
def a_stop_at_any_time_costs_nothing():
    """While the model is loaded, between steps, while a checkpoint is written: the same gate comes out."""
    more = ["--local-steps", "60", "--steps", "40", "--print-every", "1", "--checkpoint-minutes", "0.01"]
    code, _, err = train("calm.safetensors", *more)
    expect(code == 0, err)
    for i in range(12):
        program = subprocess.Popen([PROGRAM, "train", "gates", *SMALL, "--out", out("hurt.safetensors"), *more],
                                   env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(0.01 * 1.5 ** i)
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=60)
        expect(program.returncode in (0, 130, -signal.SIGINT), f"stop {i}: exit {program.returncode}: {err}")
    code, _, err = train("hurt.safetensors", *more)
    expect(code == 0, err)
    expect(read(out("hurt.safetensors")) == read(out("calm.safetensors")), "not the same gate")
    left = [name for name in os.listdir(HOME.name) if "hurt" in name]
    expect(sorted(left) == ["hurt.safetensors", "hurt.state", "hurt.svg"], f"left behind: {left}")


def no_room():
    """As a full disk has it: writing behind 20,000 bytes of a file fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))


@check
def a_full_disk_is_told_and_the_last_checkpoint_stays():
    more = ["--local-steps", "6", "--steps", "3", "--stop-minutes", "0.0001"]
    expect(train("full.safetensors", *more)[0] == 0, "the first step")
    before = {name: read(out(name)) for name in ("full.safetensors", "full.state")}
    expect_failure(1, ["train", "gates", *SMALL, "--out", out("full.safetensors"), *more], "full.state", "cannot write",
                   preexec_fn=no_room)
    expect({name: read(out(name)) for name in before} == before, "what was there is gone")
    left = [name for name in os.listdir(HOME.name) if "full" in name]
    expect(sorted(left) == ["full.safetensors", "full.state", "full.svg"], f"left behind: {left}")
    expect(train("full.safetensors", *more[:4])[0] == 0, "it goes on")


@check
def a_checkpoint_of_another_model_is_refused():
    """Also where only its numbers differ: every shape is the same."""
    with open(MODEL, "rb") as file:
        data = bytearray(file.read())
    for i in range(len(data) // 2, len(data), 4096):
        data[i] ^= 1
    other = write("other.gguf", bytes(data))
    more = ["--local-steps", "2", "--steps", "0"]
    expect(train("m.safetensors", *more)[0] == 0, "trained")
    args = ["train", "gates", *SMALL, "--out", out("m.safetensors"), *more]
    args[args.index(MODEL)] = other
    expect_failure(2, args, "model", "--fresh")
    args[args.index(other)] = os.path.join(CASES, "qwen2", "model.gguf")
    expect_failure(2, args, "model", "--fresh")
    state = read(out("m.state"))
    for damaged, code in ((b"", 1), (b"KSTRAIN1", 1), (state[:40], 1), (state[:-1], 1), (state + b"x", 1),
                          (state[:-200] + bytes([state[-200] ^ 1]) + state[-199:], 1), (b"\xff" * len(state), 1),
                          (b"KSTRAIN1" + b"\xff" * 100, 1)):
        write("m.state", damaged)
        expect_failure(code, ["train", "gates", *SMALL, "--out", out("m.safetensors"), *more], "m.state", "--fresh")


def little_memory():
    resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))


@check
def memory_is_told_and_bounded():
    code, text, err = train("c.safetensors", "--local-steps", "1", "--steps", "0")
    expect(code == 0 and "memory beside the model:" in text, text + err)
    expect_failure(3, ["train", "gates", *SMALL, "--out", out("d.safetensors"), "--max-memory", "10KiB"], "--tokens")
    expect(not os.path.exists(out("d.safetensors")), "nothing was written")
    if b"__asan_init" in read(PROGRAM):
        return  # a sanitizer's own memory is larger than any limit
    # Less than it takes: 8,192 tokens want hundreds of MiB beside the program's own.
    expect_failure(3, ["train", "gates", *SMALL, "--tokens", "8192", "--out", out("d.safetensors")], "8192 tokens",
                   "shorter", preexec_fn=little_memory)


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
        if family == "idefics3":  # another picture is another answer; a gate of pictures answers to pictures
            shutil.copy(os.path.join(CASES, family, "img1.png"), out("other.png"))
            write("other.jsonl", json.dumps(chat).replace(image, "other.png").encode())
            args[args.index(data)] = out("other.jsonl")
            code, text, err = run(*args, "--local-steps", "1", "--steps", "2", "--json", "--print-every", "1", "--out",
                                  out("other.safetensors"))
            expect(code == 0, err)
            expect(json.loads(text.splitlines()[1])["next_token"] != rows[1]["next_token"], "it is not looked at")
            code, _, err = run("ask", "--model", os.path.join(CASES, base, "model.gguf"), "--mmproj",
                               os.path.join(CASES, family, "mmproj.gguf"), "--gate", out("other.safetensors"),
                               "--entries", "48", "--policy", "dbtrimkv", "--attach", image, "--max-tokens", "2",
                               "Who?")
            expect(code == 0, err)
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
def a_picture_that_cannot_be_used_is_told():
    """One that is missing at once, with its line; one that is none when its turn comes, and what was learnt stays."""
    eyes = ["--model", os.path.join(CASES, "idefics3", "model.gguf"), "--mmproj",
            os.path.join(CASES, "idefics3", "mmproj.gguf"), "--tokens", "512", "--width", "4", "--threads", "1"]
    def line(name):
        return json.dumps({"messages": [{"role": "user", "content": [{"type": "image", "image": name}]},
                                        {"role": "assistant", "content": "A box."}]}).encode() + b"\n"
    shutil.copy(os.path.join(CASES, "idefics3", "img0.png"), out("there.png"))
    data = write("gone.jsonl", line("there.png") + line("gone.png"))
    expect_failure(1, ["train", "gates", *eyes, "--data", data, "--out", out("g.safetensors")], "line 2", "gone.png")
    write("fake.png", b"no picture at all")
    data = write("fake.jsonl", line("fake.png") + b'{"text": "A few words that stand for themselves."}\n' * 30)
    code, _, err = run("train", "gates", *eyes, "--data", data, "--out", out("g.safetensors"), "--recall-share", "0",
                       "--local-steps", "400", "--steps", "0")
    expect(code != 0 and "fake.png" in err and err.count("\n") == 1, f"exit {code}: {err}")


@check
def data_without_a_word_are_told():
    os.makedirs(out("nothing/below"), exist_ok=True)
    write("nothing/below/picture.bin", b"\0" * 100)
    write("nothing/empty.txt", b"")
    small = [word for word in SMALL if word not in ("--data", TEXT)]
    expect_failure(2, ["train", "gates", *small, "--data", out("nothing"), "--out", out("n.safetensors")], "no text")
    for text in (b"x", b" \n\n ", b"\xff\xfe\xff"):
        data = write("tiny.txt", text)
        code, _, err = run("train", "gates", *small, "--data", data, "--out", out("n.safetensors"), "--recall-share",
                           "0", "--local-steps", "1", "--steps", "1", "--fresh")
        expect(code in (0, 4) and err.count("\n") == (code != 0), f"{text}: exit {code}: {err}")
        code, _, err = run("train", "gates", *small, "--data", data, "--out", out("n.safetensors"), "--fresh",
                           "--local-steps", "2", "--steps", "1", "--recall-share", "1")
        expect(code == 0, f"{text}: exit {code}: {err}")
    write("nul.txt", b"words\0words")
    expect_failure(4, ["train", "gates", *small, "--data", out("nul.txt"), "--out", out("n.safetensors")], "no text")


@check
def hostile_settings_are_refused():
    for setting, value in (("--rate", "nan"), ("--rate", "-1"), ("--local-rate", "inf"), ("--clip", "nan"),
                           ("--beta2", "1"), ("--beta1", "-0.1"), ("--eps", "0"), ("--bias", "nan"), ("--tokens", "1"),
                           ("--tokens", "999999999"), ("--width", "0"), ("--entries", "0"), ("--recall-share", "nan"),
                           ("--recall-share", "1.5"), ("--checkpoint-minutes", "nan"), ("--stop-minutes", "inf"),
                           ("--weight-decay", "-1"), ("--kl-weight", "nan"), ("--capacity-weight", "inf"),
                           ("--local-steps", "-1"), ("--print-every", "0"), ("--max-memory", "much"),
                           ("--min-tokens", "97")):
        expect_failure(2, ["train", "gates", *SMALL, "--out", out("h.safetensors"), f"{setting}={value}"])
    os.makedirs(out("folder.safetensors"), exist_ok=True)
    for place, word in ((out("folder.safetensors"), "folder"), (out("none/h.safetensors"), "does not exist")):
        expect_failure(1, ["train", "gates", *SMALL, "--out", place], "cannot write", word)
    expect_failure(1, ["train", "gates", *SMALL, "--out", out("h.safetensors"), "--curve", out("none/c.svg")],
                   "cannot write")
    expect(not [name for name in os.listdir(HOME.name) if name.startswith("h.")], "something was written")


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

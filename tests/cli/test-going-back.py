#!/usr/bin/env python3
"""keepsake-cli bench snapshot, bench long, and --session over several starts: on a tiny model.

Usage: test-going-back.py PROGRAM CASES.  Prints TAP.  Every check states a promise.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import glob
import json
import os
import sys

from clilib import GATE, HOME, MODEL, check, expect, expect_failure, main, run, write

TINY = ["--model", MODEL, "--gate", GATE]


@check
def a_kept_state_goes_on_to_the_last_bit():
    text = write("keeper.txt", b"The keeper walks to the lamp and back. " * 100)
    for kv_type in ("f16", "q8_0"):
        code, out, err = run("bench", "snapshot", *TINY, "--file", text, "--tokens", "700", "--entries", "40",
                             "--answer", "12", "--kv-type", kv_type, "--json")
        expect(code == 0, err)
        result = json.loads(out)
        expect(result["equal"] is True and result["tokens_compared"] == 12, f"{result}")
        expect(result["bytes"] > result["entries"] * 32, f"{result}")
    expect_failure(2, ["bench", "snapshot", "--model", MODEL, "--tokens", "0"], "--tokens")


@check
def a_text_of_many_times_the_length_is_read():
    """Before the length is reached all three ways are the same; then positions move together."""
    text = write("words.txt", b"".join(b"Word %d stands before word %d. " % (i, i * 7 % 100) for i in range(900)))
    code, out, err = run("bench", "long", *TINY, "--file", text, "--times", "4", "--length", "256", "--entries", "32",
                         "--every", "1", "--json")
    expect(code == 0, err)
    result = json.loads(out)
    losses = {way: result[way]["loss"] for way in ("mapped", "unmapped", "fresh")}
    expect(all(len(loss) == 4 and all(0 < x < 50 for x in loss) for loss in losses.values()), f"{losses}")
    expect(losses["mapped"][0] == losses["unmapped"][0] == losses["fresh"][0], f"{losses}")
    expect(losses["mapped"][2] != losses["unmapped"][2], f"{losses}")
    expect(4 <= result["remaps"] <= 8, f"{result['remaps']} re-maps of 768 tokens, 128 gained each")
    expect_failure(2, ["bench", "long", *TINY, "--file", write("short.txt", b"too short"), "--length", "256"], "longer")


@check
def the_next_start_reads_nothing_again():
    """The state of the session lies on the disk, a damaged one is read again, and answers are the same."""
    words = ["--temperature", "0", "--max-tokens", "8", "--json"]
    code, out, err = run("ask", "--session", "new", *TINY, *words, "one two three")
    expect(code == 0, err)
    session = str(json.loads(out)["session"]["id"])
    pattern = os.path.join(HOME.name, "data", "keepsake", "snapshots", "*")
    files = glob.glob(pattern)
    expect(len(files) == 1 and os.stat(files[0]).st_mode & 0o777 == 0o600, f"{files}")
    answers = []
    for damage in (False, True):
        again = json.loads(run("ask", "--session", "new", *TINY, *words, "one two three")[1])
        other = str(again["session"]["id"])
        if damage:
            for path in glob.glob(os.path.join(os.path.dirname(pattern), f"{int(other):016x}-*")):
                with open(path, "r+b") as file:
                    file.seek(500)
                    file.write(b"damage")
        code, out, err = run("ask", "--session", other, *TINY, *words, "four five")
        expect(code == 0, err)
        answers.append(json.loads(out)["answer"])
    expect(answers[0] == answers[1], f"{answers}")
    code, out, err = run("sessions", "delete", session, "--yes")
    expect(code == 0, err)
    gone = glob.glob(os.path.join(os.path.dirname(pattern), f"{int(session):016x}-*"))
    expect(not gone, f"{gone}")


def talk(*lines, options=()):
    """What chat says of memory after each answer."""
    code, out, err = run("chat", *TINY, "--temperature", "0", "--max-tokens", "4", "--json", *options,
                         stdin="\n".join(lines).encode())
    expect(code == 0, err)
    found, at, decoder = [], 0, json.JSONDecoder()
    while out[at:].strip():
        value, end = decoder.raw_decode(out[at:].lstrip())
        at = len(out) - len(out[at:].lstrip()) + end
        found.append(value)
    return found, err


@check
def a_turn_that_is_pinned_stays_whole():
    """Inside the budget, while others go; with a session it is stored; what does not fit is refused."""
    long = "a" * 400
    free = talk("seven", long, long, options=("--entries", "128"))[0]
    held, err = talk("seven", "/pin 1", long, "/pin 2", "/pin 9", long, options=("--entries", "128"))
    expect(len(held) == 3 and held[-1]["memory"]["pinned"] == [{"turn": 1}], f"{held[-1]['memory']['pinned']}")
    memory = held[-1]["memory"]
    expect(memory["kv_used_bytes"] <= memory["kv_budget_bytes"], f"{memory}")
    kept = memory["entries_by_turn"]
    expect(kept[0] > free[-1]["memory"]["entries_by_turn"][0], f"{kept}")
    expect(err.count("unpin something or raise the target") == 1 and err.count("no such turn") == 1, err)
    faded = talk("seven", "/pin 1", "/unpin 1", long, options=("--entries", "128"))[0]
    expect(faded[-1]["memory"]["pinned"] == [], f"{faded[-1]['memory']['pinned']}")
    first = talk("seven", "/pin 1", "eight", options=("--session", "new"))[0][-1]
    again = talk("nine", options=("--session", str(first["session"]["id"])))[0][-1]
    expect(first["memory"]["pinned"] == again["memory"]["pinned"] == [{"turn": 1}], f"{again['memory']}")


sys.exit(main())

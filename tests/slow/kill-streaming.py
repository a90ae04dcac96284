#!/usr/bin/env python3
"""kill -9 at random moments while the real program streams an answer of the default model (KS_MODEL).

Usage: kill-streaming.py PROGRAM CASES.  Prints TAP.  KS_KILL_RUNS kills (10; the long run takes 200, about
20 minutes), KS_KILL_SEED another series.  After each kill: the database is sound (PRAGMA integrity_check,
foreign keys), the program opens it, the question is there, the answer is INTERRUPTED, and what is stored is
what was printed, but for the last two seconds by this script's clock.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from clilib import ENV, PROGRAM, check, expect, main, run  # noqa: E402

MODEL = os.environ.get("KS_MODEL", "")
RUNS = int(os.environ.get("KS_KILL_RUNS", "10"))
SEED = int(os.environ.get("KS_KILL_SEED", "1"))
MAX_LOSS_S = 2.0
MAX_DELAY_S = 5.5  # more than two rounds of storing
GIVE_UP_S = 60
MAX_TRIES = 5
QUESTIONS = ("Write a very long story about a lighthouse keeper. Do not stop.",
             "List as many facts about rivers as you can, in long sentences.",
             "Explain in great length how bread is made, step by step.")


class Reader(threading.Thread):
    """Takes what comes out, with the time at which it came."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.pieces, self.begun = stream, [], threading.Event()
        self.start()

    def run(self):
        while piece := os.read(self.stream.fileno(), 65536):
            self.pieces.append((time.monotonic(), piece))
            self.begun.set()
        self.begun.set()


def answer_and_kill(session, rng):
    """(question, [(time, bytes)], time of death); None when the answer ended before it could be killed"""
    question = rng.choice(QUESTIONS)
    process = subprocess.Popen(
        [PROGRAM, "ask", "--session", str(session), "--model", MODEL, "--kv-budget", "24MiB", "--max-tokens", "5000",
         "--temperature", "1.2", "--seed", str(rng.randrange(1 << 30)), question],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
    reader = Reader(process.stdout)
    reader.begun.wait(GIVE_UP_S)
    expect(reader.pieces, "no word of an answer came")
    time.sleep(rng.uniform(0, MAX_DELAY_S))
    ended = process.poll() is not None
    process.kill()
    died = time.monotonic()
    process.wait()
    reader.join()
    return None if ended else (question, reader.pieces, died)


def check_file():
    database = sqlite3.connect(os.path.join(ENV["XDG_DATA_HOME"], "keepsake", "sessions.db"))
    found = database.execute("PRAGMA integrity_check").fetchall()
    broken = database.execute("PRAGMA foreign_key_check").fetchall()
    database.close()
    expect(found == [("ok",)] and broken == [], f"{found} {broken}")


def get_loss(stored, pieces, died):
    """(seconds, bytes) from the first byte that is lost to the end."""
    n_stored, n = len(stored), 0
    total = sum(len(piece) for _, piece in pieces)
    for when, piece in pieces:
        n += len(piece)
        if n > n_stored:
            return died - when, total - n_stored
    return 0.0, 0


def run_once(session, rng):
    """(number of the session, seconds lost, bytes lost)"""
    killed = None
    for _ in range(MAX_TRIES):
        killed = killed or answer_and_kill(session, rng)
    expect(killed, "every answer ended by itself")
    question, pieces, died = killed
    check_file()
    code, out, err = run("sessions", "list", "--json", "--limit", "1")
    expect(code == 0, err)
    number = json.loads(out)[0]["id"]
    code, out, err = run("sessions", "show", "--json", str(number))
    expect(code == 0, err)
    asked, answer = json.loads(out)["transcript"][-2:]
    expect(asked["text"] == question and asked["state"] == "complete", f"the question: {asked}")
    expect(answer["state"] == "interrupted", f"the answer is {answer['state']}")
    stored = answer["text"].encode()
    expect(b"".join(piece for _, piece in pieces).startswith(stored), "something else was stored than was printed")
    return (number, *get_loss(stored, pieces, died))


@check
def no_kill_loses_more_than_two_seconds():
    rng = random.Random(SEED)
    seconds, n_bytes, session = [], [], "new"
    for number in range(RUNS):
        try:
            session, lost, lost_bytes = run_once(session, rng)
            expect(lost <= MAX_LOSS_S, f"{lost:.2f} s are lost ({lost_bytes} bytes)")
        except AssertionError as error:
            raise AssertionError(f"kill {number + 1} of {RUNS}, seed {SEED}: {error}") from error
        seconds.append(lost)
        n_bytes.append(lost_bytes)
        # Now and then the session goes on, so that reading again is killed near as well.
        if rng.random() < 0.7:
            session = "new"
    seconds.sort()
    print(f"# {RUNS} kills: lost {seconds[len(seconds) // 2]:.2f} s (median), {seconds[-1]:.2f} s (most), "
          f"{max(n_bytes)} bytes (most)", flush=True)
    check_file()
    expect(run("sessions", "search", "lighthouse")[0] == 0, "search still works")


if __name__ == "__main__":
    if not os.path.exists(MODEL):
        sys.exit("KS_MODEL names no file: packaging/fetch-model.py fetches it")
    sys.exit(main())

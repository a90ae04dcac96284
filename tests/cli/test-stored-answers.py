#!/usr/bin/env python3
"""Answers that are stored: ask and chat with --session, with the default model (KS_MODEL).

Usage: test-stored-answers.py PROGRAM CASES.  Prints TAP.  Every check states a promise.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import resource
import signal
import subprocess
import sys
import time

from clilib import ENV, HOME, PROGRAM, check, expect, expect_failure, main, run, write

MODEL = os.environ.get("KS_MODEL", "")
GREEDY = ["--model", MODEL, "--temperature", "0"]
NAME = "My name is Bartholomew and I live in Lisbon. Please greet me by my name."
WHICH = "What is my name?"
LONG = "Write a very long story about a lighthouse keeper and his dog. Do not stop."


def ask(session, *args, code=0, **more):
    """The JSON that ask prints."""
    got, out, err = run("ask", "--session", str(session), "--json", *GREEDY, *args, **more)
    expect(got == code, f"{args}: exit {got}: {err}")
    return json.loads(out)


def shown(session, *options):
    code, out, err = run("sessions", "show", "--json", *options, str(session))
    expect(code == 0, err)
    return json.loads(out)["transcript"]


def values(text):
    """The JSON values that stand in text one after the other."""
    decoder, found = json.JSONDecoder(), []
    text = text.lstrip()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].lstrip()
    return found


def start(*args, **more):
    return subprocess.Popen([PROGRAM, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=ENV, **more)


def older_than(pieces, when):
    return b"".join(piece for time_s, piece in pieces if time_s < when).decode(errors="ignore")


def read_until(process, n_chars, age_s):
    """[(time, bytes)] of what comes out, until so many characters are so old; machines differ in speed."""
    pieces, give_up = [], time.monotonic() + 90
    while len(older_than(pieces, time.monotonic() - age_s)) < n_chars and time.monotonic() < give_up:
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece:
            break
        pieces.append((time.monotonic(), piece))
    return pieces


@check
def a_second_process_goes_on_where_the_first_one_ended():
    first = ask("new", "--max-tokens", "30", NAME)
    session = first["session"]["id"]
    expect(first["session"]["title"].startswith("My name is Bartholomew"), first["session"])
    second = ask(session, "--max-tokens", "24", WHICH)
    expect("Bartholomew" in second["answer"], f"turn one is not known: {second['answer']!r}")
    alone = ask("new", "--max-tokens", "24", WHICH)
    expect("Bartholomew" not in alone["answer"], f"a new session knows it as well: {alone['answer']!r}")
    # Everything of turn one went through the second process's model.
    read_before = first["memory"]["tokens_seen"]
    expect(second["memory"]["tokens_seen"] >= read_before + alone["prompt_tokens"] // 2,
           f"{second['memory']['tokens_seen']} tokens, {read_before} of them of turn one")
    expect(second["prompt_tokens"] < read_before, "the question's own count holds no earlier turn")
    transcript = shown(session)
    expect([m["role"] for m in transcript] == ["user", "assistant"] * 2, "four messages")
    expect([m["text"] for m in transcript] == [NAME, first["answer"], WHICH, second["answer"]], "what was said")
    expect(all(m["state"] in ("complete", "limit") for m in transcript), "states")
    expect(transcript[1]["tokens"] == first["answer_tokens"], "tokens of the answer")


@check
def reading_again_gives_the_answer_of_one_conversation():
    lines = f"{NAME}\n{WHICH}\n".encode()
    code, out, err = run("chat", "--json", *GREEDY, "--max-tokens", "24", stdin=lines)
    expect(code == 0, err)
    live = [value["answer"] for value in values(out)]
    first = ask("new", "--max-tokens", "24", NAME)
    second = ask(first["session"]["id"], "--max-tokens", "24", WHICH)
    expect([first["answer"], second["answer"]] == live, f"{[first['answer'], second['answer']]} is not {live}")


@check
def attached_files_stay_when_their_source_goes():
    path = write("secret.txt", b"The secret word of the day is pumpernickel.\n" * 3)
    first = ask("new", "--max-tokens", "16", "--attach", path, "What is the secret word of the day?")
    expect("pumpernickel" in first["answer"], first["answer"])
    os.unlink(path)
    session = first["session"]["id"]
    expect(shown(session)[0]["attachments"][0]["name"] == "secret.txt", "the attachment is stored")
    second = ask(session, "--max-tokens", "16", "Say the secret word again.")
    expect(second["memory"]["tokens_seen"] > first["prompt_tokens"], "the document was read again")
    expect_failure(1, ["ask", "--session", "new", *GREEDY, "--attach", path, "x"], "secret.txt")


@check
def a_session_that_is_not_there_is_named():
    expect_failure(1, ["ask", "--session", "no such title", *GREEDY, "x"], "no such title")
    expect_failure(1, ["chat", "--session", "987654", *GREEDY], "987654")


@check
def a_second_process_is_told_that_one_answers():
    session = ask("new", "--max-tokens", "2", "Hello.")["session"]["id"]
    process = start("ask", "--session", str(session), *GREEDY, "--max-tokens", "3000", LONG)
    try:
        read_until(process, 1, 0)
        expect_failure(1, ["ask", "--session", str(session), *GREEDY, "x"], "answering")
        expect_failure(1, ["sessions", "delete", "--yes", str(session)], "answering")
        expect(len(shown(session)) == 4, "what is being answered is shown")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        expect(process.returncode == 130 and b"cancelled" in err, f"exit {process.returncode}: {err}")
    finally:
        process.kill()
    last = shown(session)[-1]
    expect(last["state"] == "stopped" and last["text"] != "", last)
    expect(len(shown(session)) == 4, "the second question left nothing behind")
    ask(session, "--max-tokens", "2", "And now?")  # the lock is gone


@check
def an_answer_that_cannot_be_stored_is_a_failure():
    session = ask("new", "--max-tokens", "2", "Hello.")["session"]["id"]
    # Signals as they are here: a file that is too large is an error then, as a full disk is.
    process = start("ask", "--session", str(session), *GREEDY, "--max-tokens", "60", LONG, restore_signals=False)
    try:
        read_until(process, 1, 0)
        hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, hard))
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    expect(process.returncode == 1, f"exit {process.returncode}: {err}")
    expect(b"keepsake-cli: the answer is not stored" in err, err)
    expect(shown(session)[1]["state"] == "limit", "what was stored before is unharmed")
    ask(session, "--max-tokens", "2", "And now?")


@check
def what_was_printed_is_what_was_stored_when_stopped():
    process = start("ask", "--session", "new", *GREEDY, "--max-tokens", "3000", LONG)
    printed = b"".join(piece for _, piece in read_until(process, 20, 0.5))
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=60)
    expect(process.returncode == 130, err)
    session = json.loads(run("sessions", "list", "--json")[1])[0]["id"]
    last = shown(session)[-1]
    expect(last["text"].rstrip("\n") == (printed + rest).decode().rstrip("\n"), "the same text")
    expect(last["state"] == "stopped", last["state"])


@check
def kill_9_loses_two_seconds_at_most_and_the_answer_goes_on():
    process = start("ask", "--session", "new", *GREEDY, "--max-tokens", "3000", LONG)
    pieces = read_until(process, 20, 2.3)
    process.kill()
    died = time.monotonic()
    process.communicate()
    session = json.loads(run("sessions", "list", "--json")[1])[0]["id"]
    question, answer = shown(session)
    expect(question["text"] == LONG and question["state"] == "complete", "the question is there")
    expect(answer["state"] == "interrupted", answer["state"])
    printed = b"".join(piece for _, piece in pieces).decode(errors="ignore")
    safe = older_than(pieces, died - 2.0)
    expect(printed.startswith(answer["text"]), "what is stored was printed")
    expect(len(safe) >= 20 and answer["text"].startswith(safe), f"lost more: {len(answer['text'])} of {len(safe)}")

    code, _, err = run("chat", "--session", str(session), "--json", *GREEDY, "--max-tokens", "12",
                       stdin=b"/continue\n/quit\n")
    expect(code == 0, err)
    longer = shown(session)[-1]
    expect(longer["text"].startswith(answer["text"]) and len(longer["text"]) > len(answer["text"]), "continued")
    expect(longer["id"] == answer["id"] and longer["state"] == "limit", longer["state"])

    code, _, err = run("chat", "--session", str(session), "--json", *GREEDY, "--max-tokens", "12",
                       stdin=b"/regenerate\n/quit\n")
    expect(code == 0, err)
    expect(len(shown(session)) == 2 and len(shown(session, "--all")) == 3, "a branch beside the first answer")
    expect(shown(session)[-1]["id"] != answer["id"], "the new answer is on the active path")


@check
def chat_has_commands_for_the_session():
    folder = os.path.join(HOME.name, "exports")
    os.mkdir(folder)
    path = os.path.join(folder, "talk.json")
    lines = ("/title too early\nHello.\n/title A quiet talk\n/sessions\n"
             f"/export json {path}\n/export json {path}\n/export docx\n/quit\n").encode()
    code, out, err = run("chat", "--session", "new", "--json", *GREEDY, "--max-tokens", "4", stdin=lines)
    expect(code == 0, err)
    expect("first message" in err, f"no session yet: {err}")
    answer, sessions = values(out)
    expect(sessions[0]["title"] == "A quiet talk" and sessions[0]["id"] == answer["session"]["id"], sessions[0])
    expect("not overwritten" in err and "md, json or html" in err, err)
    with open(path, encoding="utf-8") as file:
        expect(json.load(file)["title"] == "A quiet talk", "exported")
    code, _, err = run("chat", *GREEDY, stdin=b"/title x\n/regenerate\n/quit\n")
    expect(code == 0 and err.count("--session new") == 2, err)


@check
def a_new_session_keeps_what_it_was_begun_with():
    first = ask("new", "--max-tokens", "3", "--top-k", "7", "--kv-budget", "24MiB",
                "--system", "You are a pirate.", "Hello.")
    session = first["session"]["id"]
    path = os.path.join(HOME.name, "kept.json")
    expect(run("export", "--output", path, str(session))[0] == 0, "export")
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)["settings"]
    expect(settings["model"] == MODEL and settings["top_k"] == 7 and settings["max_tokens"] == 3, settings)
    expect(settings["kv_budget_bytes"] == 24 << 20, settings)
    expect(settings["system_prompt"] == "You are a pirate.", settings)
    code, out, err = run("ask", "--session", str(session), "--json", "Again.")  # no --model: the session's own
    expect(code == 0, err)
    result = json.loads(out)
    expect(result["model"] == MODEL and result["answer_tokens"] <= 3, out)
    expect(result["memory"]["kv_budget_bytes"] <= 24 << 20, "the session's memory target")


@check
def a_target_that_is_too_small_ends_with_3_and_stores_nothing():
    before = len(json.loads(run("sessions", "list", "--json")[1]))
    expect_failure(3, ["ask", "--session", "new", *GREEDY, "--budget", "1MiB", "x"])
    expect(len(json.loads(run("sessions", "list", "--json")[1])) == before, "no session of it")


if __name__ == "__main__":
    if not os.path.exists(MODEL):
        sys.exit("KS_MODEL names no file: packaging/fetch-model.py fetches it")
    sys.exit(main())

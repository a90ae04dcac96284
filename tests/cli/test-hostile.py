#!/usr/bin/env python3
"""keepsake-cli in bad company: closed and full streams, names with escapes, senseless numbers, pipes in
the place of files, and a parent that gives little memory.

Usage: test-hostile.py PROGRAM CASES.  Prints TAP.  Every check states a promise.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import pty
import resource
import shutil
import subprocess
import sys
import time

from clilib import ENV, GATE, HOME, MODEL, PROGRAM, check, expect, expect_failure, main, run_bytes as run

ASK = ["ask", "--model", MODEL, "--max-tokens", "2"]
ODD_NAME = b"b\xff\x1b[31m\nx.gguf"


@check
def output_that_cannot_be_written_is_a_failure():
    for args in (ASK + ["hi"], ["devices"], ["models", "--json"], ["--help"]):
        with open("/dev/full", "wb") as full:
            code, _, err = run(*args, stdout=full)
        expect(code == 1 and b"output" in err, f"{args}: exit {code}: {err}")


@check
def closed_streams_are_not_taken_by_files():
    shell = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", PROGRAM]
    for args in (["chat", "--model", MODEL], ASK + ["hi"]):
        code = subprocess.run(shell + args, env=ENV, timeout=60, check=False).returncode
        expect(code == 0, f"{args}: exit {code}")
    dump = os.path.join(HOME.name, "closed.bin")
    logits = ["inspect", "logits", "--model", MODEL, "--text", "a", "--dump", dump, "--json"]
    code = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", PROGRAM, *logits], env=ENV, timeout=60,
                          check=False).returncode
    expect(code == 0 and os.path.getsize(dump) % 4 == 0, "a result is written into the dump")


@check
def names_are_printed_without_control_characters():
    folder = os.path.join(HOME.name, "data", "keepsake", "models")
    os.makedirs(folder)
    path = os.path.join(os.fsencode(folder), ODD_NAME)
    shutil.copy(MODEL, path)
    for args in (["models"], ["models", "describe", "b"], ["models", "verify", "b"], ["inspect", "gguf", path],
                 ["inspect", "gguf", path + b"\x1b"], [b"a\x1b[31m"], ["ask", "--model", "\x1b[31m", "x"],
                 ["inspect", "tokens", "--model", MODEL, "--text", "a\x1b[31m\u009bx"]):
        _, out, err = run(*args)
        expect(b"\x1b" not in out + err and "\u009b".encode() not in out, f"{args}: {out + err!r}")
    for args in (["models"], ["models", "describe", "b"], ["models", "verify", "b"], ["inspect", "gguf", path],
                 ASK + ["hi"], ["inspect", "logits", "--text", "hi"]):
        code, out, err = run(*args, "--json")
        expect(code == 0, f"{args}: {err}")
        json.loads(out.decode("utf-8"))  # strict: bytes of a name that are no UTF-8 raise
    os.remove(path)


@check
def a_terminal_gets_no_escapes_from_a_model():
    piece = run("inspect", "tokens", "--model", MODEL, "--text", "a\x1b[31mb", "--json")[1]
    ids = ",".join(str(i) for i in json.loads(piece)["ids"])
    args = ["inspect", "tokens", "--model", MODEL, "--ids", ids]
    expect(run(*args)[1] == b"a\x1b[31mb\n", "a pipe gets the text as it is")
    ours, theirs = pty.openpty()
    run(*args, stdout=theirs)
    os.close(theirs)
    shown = os.read(ours, 1000)
    os.close(ours)
    expect(shown.strip() == b"a?[31mb", f"on the terminal: {shown!r}")


@check
def senseless_numbers_end_with_2():
    for option in ("--threads", "--entries", "--chunk", "--buffer", "--page-entries", "--lookahead", "--floor",
                   "--pin-first", "--top-k", "--max-tokens", "--seed"):
        expect_failure(2, ["ask", "--model", MODEL, option, "-1", "hi"], option)
    for option in ("--entries", "--chunk", "--buffer", "--page-entries", "--lookahead", "--max-tokens"):
        expect_failure(2, ["ask", "--model", MODEL, option, "0", "hi"], option)
    for option in ("--temperature", "--top-p", "--min-p", "--repeat-penalty"):
        expect_failure(2, ["ask", "--model", MODEL, option, "nan", "hi"], option)
    for option in ("--budget", "--kv-budget"):
        expect_failure(2, ["ask", "--model", MODEL, option, "0MiB", "hi"], "memory")
    expect_failure(2, ["bench", "recall", "--model", MODEL, "--entries", "-5"], "--entries")
    expect_failure(2, ["inspect", "logits", "--model", MODEL, "--text", "hi", "--rows", " "], "--rows")
    expect_failure(2, ["inspect", "tokens", "--model", MODEL, "--text", b"a\xff"], "UTF-8")
    expect_failure(2, ["models", "where", "there"], "there")
    expect_failure(2, ["models", "verify", MODEL, "more"], "more")


@check
def a_wrong_saved_setting_is_named_as_one():
    folder = os.path.join(HOME.name, "odd")
    os.makedirs(os.path.join(folder, "keepsake"))
    with open(os.path.join(folder, "keepsake", "settings.ini"), "w", encoding="utf-8") as file:
        file.write("[keepsake]\nbudget=plenty\n")
    expect_failure(2, ASK + ["hi"], "plenty", "settings", env=dict(ENV, XDG_CONFIG_HOME=folder))


@check
def pipes_and_devices_are_no_models():
    pipe = os.path.join(HOME.name, "pipe.gguf")
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero", HOME.name):
        for args in (["models", "verify", path], ["models", "describe", path], ["inspect", "gguf", path],
                     ["ask", "--model", path, "hi"], ["ask", "--model", MODEL, "--gate", path, "hi"]):
            expect_failure(1, args, "regular file")
    folder = os.path.join(HOME.name, "pipes", "keepsake", "models")
    os.makedirs(folder)
    os.mkfifo(os.path.join(folder, "manifest.json"))
    os.mkfifo(os.path.join(folder, "x.gguf"))
    env = dict(ENV, XDG_DATA_HOME=os.path.join(HOME.name, "pipes"))
    expect(run("models", env=env)[0] == 0, "list")
    expect(run("models", "verify", MODEL, env=env)[0] == 0, "verify")


@check
def the_environment_names_the_model_everywhere():
    env = dict(ENV, KEEPSAKE_MODEL=MODEL)
    for args in (ASK[:1] + ASK[3:] + ["hi"], ["inspect", "tokens", "--text", "hi"],
                 ["inspect", "logits", "--text", "hi"], ["models", "describe"], ["models", "verify"]):
        code, _, err = run(*args, env=env)
        expect(code == 0, f"{args}: {err}")


@check
def a_dump_never_overwrites_what_is_read():
    model, gate = os.path.join(HOME.name, "own.gguf"), os.path.join(HOME.name, "own.safetensors")
    shutil.copy(MODEL, model)
    shutil.copy(GATE, gate)
    base = ["--model", model, "--gate", gate, "--text", "hi there"]
    for path in (model, gate):
        size = os.path.getsize(path)
        expect_failure(2, ["inspect", "evict", "--entries", "2", "--dump", path] + base, "overwrite")
        expect(os.path.getsize(path) == size, f"{path} is gone")
    expect_failure(2, ["inspect", "logits", "--dump", model] + base, "overwrite")
    expect(os.path.getsize(model) == os.path.getsize(MODEL), "the model is gone")


@check
def standard_input_that_cannot_be_read_is_said():
    for args in (["ask", "--model", MODEL], ["chat", "--model", MODEL]):
        folder = os.open("/", os.O_RDONLY)
        done = subprocess.run([PROGRAM, *args], stdin=folder, capture_output=True, env=ENV, timeout=60, check=False)
        os.close(folder)
        expect(done.returncode == 1 and b"cannot read standard input" in done.stderr, f"{args}: {done.stderr}")


@check
def chat_reads_no_faster_than_it_answers():
    chat = subprocess.Popen([PROGRAM, "chat", "--model", MODEL, "--max-tokens", "1000000", "--kv-budget", "1MiB"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
    try:
        chat.stdin.write(b"hello\n")
        chat.stdin.flush()
        expect(chat.stdout.read(1), "no answer")
        os.set_blocking(chat.stdin.fileno(), False)
        taken, end = 0, time.monotonic() + 1
        while time.monotonic() < end and taken < 1 << 24:
            try:
                taken += os.write(chat.stdin.fileno(), b"y\n" * 2048)
            except BlockingIOError:
                time.sleep(0.05)
        expect(taken < 1 << 18, f"{taken} bytes are queued behind an answer that runs")
    finally:
        chat.kill()
        os.set_blocking(chat.stdin.fileno(), True)
        chat.stdout.close()
        chat.wait()


@check
def a_line_without_end_is_refused():
    with open("/dev/zero", "rb") as zeros:
        done = subprocess.run([PROGRAM, "chat", "--model", MODEL], stdin=zeros, capture_output=True, env=ENV,
                              timeout=60, check=False)
    expect(done.returncode == 1 and b"longer than" in done.stderr, f"{done.returncode}: {done.stderr}")


@check
def little_address_space_is_enough_for_a_small_budget():
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))

    if run("devices", preexec_fn=limit)[0] != 0:
        return  # a build with sanitizers needs more than that to start
    code, _, err = run(*ASK, "--threads", "1", "--kv-budget", "2MiB", "hi", preexec_fn=limit)
    expect(code == 0, err)


@check
def recall_has_room_for_a_tokenizer_of_short_pieces():
    code, _, err = run("bench", "recall", "--model", MODEL, "--prompts", "1", "--answer-tokens", "1", "--policies",
                       "full", "--json")
    expect(code == 0, err)


if __name__ == "__main__":
    sys.exit(main())

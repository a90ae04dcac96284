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
import struct
import subprocess
import sys
import tempfile

PROGRAM, CASES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL = os.path.join(CASES, "llama", "model.gguf")
GATE = os.path.join(CASES, "dbtrimkv", "gate_tied.safetensors")
HOME = tempfile.TemporaryDirectory(prefix="keepsake-cli-")
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("KS_", "KEEPSAKE_", "XDG_"))}
ENV.update(XDG_DATA_HOME=HOME.name + "/data", XDG_CONFIG_HOME=HOME.name + "/config",
           XDG_CACHE_HOME=HOME.name + "/cache", LC_ALL="C.UTF-8")
ASK = ["ask", "--model", MODEL, "--max-tokens", "2"]
ODD_NAME = b"b\xff\x1b[31m\nx.gguf"
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def run(*args, stdin=b"", env=None, **more):
    """(exit code, standard output, standard error) as bytes."""
    if "stdout" not in more:
        more["stdout"] = subprocess.PIPE
    done = subprocess.run([PROGRAM, *args], input=stdin, stderr=subprocess.PIPE, env=env or ENV, timeout=60,
                          check=False, **more)
    return done.returncode, done.stdout, done.stderr


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def expect_failure(code, args, *words, **more):
    """The command ends with code and one sentence that holds the words."""
    got, _, err = run(*args, **more)
    expect(got == code, f"{args}: exit {got}, want {code}: {err}")
    lines = [line for line in err.decode().splitlines() if line.startswith("keepsake-cli: ")]
    expect(len(lines) == 1, f"{args}: one sentence wanted, got {err!r}")
    for word in words:
        expect(word in lines[0], f"{args}: {word!r} is not in {lines[0]!r}")


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
    code = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", PROGRAM, "inspect", "logits", "--model", MODEL, "--text", "a",
                           "--dump", dump, "--json"], env=ENV, timeout=60, check=False).returncode
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


def main():
    failed = 0
    print(f"1..{len(CHECKS)}")
    for number, function in enumerate(CHECKS, 1):
        try:
            function()
            result = "ok"
        except (AssertionError, OSError, ValueError, KeyError, IndexError, subprocess.TimeoutExpired) as error:
            print(f"# {type(error).__name__}: {str(error)[:2000]}".replace("\n", "\n# "))
            result = "not ok"
            failed += 1
        print(f"{result} {number} - {function.__name__}", flush=True)
    HOME.cleanup()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

"""What the tests of keepsake-cli share: a home of their own, running the program, a list of promises.

The arguments of a test are PROGRAM CASES; it ends with sys.exit(clilib.main()).  Prints TAP.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import subprocess
import sys
import tempfile

PROGRAM, CASES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL = os.path.join(CASES, "llama", "model.gguf")
GATE = os.path.join(CASES, "dbtrimkv", "gate_tied.safetensors")
HOME = tempfile.TemporaryDirectory(prefix="keepsake-cli-")
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("KS_", "KEEPSAKE_", "XDG_", "GSETTINGS_"))}
ENV.update(XDG_DATA_HOME=HOME.name + "/data", XDG_CONFIG_HOME=HOME.name + "/config",
           XDG_CACHE_HOME=HOME.name + "/cache", LC_ALL="C.UTF-8", TZ="UTC")
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def run_bytes(*args, stdin=b"", env=None, **more):
    """(exit code, standard output, standard error) as bytes."""
    if "stdout" not in more:
        more["stdout"] = subprocess.PIPE
    done = subprocess.run([PROGRAM, *args], input=stdin, stderr=subprocess.PIPE, env=env or ENV, timeout=120,
                          check=False, **more)
    return done.returncode, done.stdout, done.stderr


def run(*args, **more):
    """The same, outputs as text."""
    code, out, err = run_bytes(*args, **more)
    return code, out.decode("utf-8"), err.decode("utf-8")


def write(name, data):
    path = os.path.join(HOME.name, name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def expect_failure(code, args, *words, **more):
    """The command ends with code and one sentence that holds the words."""
    got, _, err = run(*args, **more)
    expect(got == code, f"{args}: exit {got}, want {code}: {err}")
    lines = [line for line in err.splitlines() if line.startswith("keepsake-cli: ")]
    expect(len(lines) == 1, f"{args}: one sentence wanted, got {err!r}")
    for word in words:
        expect(word in lines[0], f"{args}: {word!r} is not in {lines[0]!r}")


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

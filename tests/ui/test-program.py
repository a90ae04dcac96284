#!/usr/bin/env python3
"""Promises of the program `keepsake` as a process: one instance, a clean end at any moment, options.

Usage: with-display.sh test-program.py KEEPSAKE.  Output is TAP; needs xdotool.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback

KEEPSAKE = sys.argv[1]
PATIENCE_S = 60


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {PATIENCE_S} s")


def start(*args):
    """Warnings are fatal: a program that says something ends by a signal."""
    env = dict(os.environ, G_DEBUG="fatal-warnings")
    return subprocess.Popen([KEEPSAKE, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def has_window(process):
    found = subprocess.run(["xdotool", "search", "--pid", str(process.pid), "--onlyvisible", "--name", "."],
                           capture_output=True, text=True)
    return bool(found.stdout.split()) and process.poll() is None


def end(process, sig=signal.SIGTERM):
    process.send_signal(sig)
    out = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 0, (process.returncode, out)


def test_version(base):
    """The version is printed without a display, and nothing else happens."""
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run([KEEPSAKE, "--version"], env=env, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0 and done.stdout.startswith("Keepsake "), done


def test_check_display(base):
    """run.sh learns here whether a window can be opened: a display that is named has to answer."""
    env = dict(os.environ)
    assert subprocess.run([KEEPSAKE, "--check-display"], env=env, timeout=PATIENCE_S).returncode == 0
    env["DISPLAY"] = ":8999"
    done = subprocess.run([KEEPSAKE, "--check-display"], env=env, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 1, done


def test_ends_at_any_moment(base):
    """Ended while it starts, loads or idles, the program leaves with status 0 and no word."""
    for delay in (0, 0.15, 0.3, 0.6, 1.2):
        process = start("--data-dir", os.path.join(base, "data"))
        if delay == 0:  # the handler stands when the display is asked for
            wait_for(lambda p=process: has_window(p), "window")
        else:
            wait_for(lambda p=process: os.path.exists(f"/proc/{p.pid}/fd/3"), "start")
            time.sleep(delay)
        process.send_signal(signal.SIGINT if delay == 0.6 else signal.SIGTERM)
        out = process.communicate(timeout=PATIENCE_S)[0]
        # Before main has put its handler there, the signal does what it always does.
        assert process.returncode == 0 or (process.returncode < 0 and not out), (delay, process.returncode, out)
    process = start("--data-dir", os.path.join(base, "data"))
    wait_for(lambda: has_window(process), "window")
    end(process)


def test_single_instance(base):
    """A second start hands its wish over and leaves; the first goes on."""
    first = start("--data-dir", os.path.join(base, "data"))
    wait_for(lambda: has_window(first), "window")
    note = os.path.join(base, "note.txt")
    with open(note, "w", encoding="utf-8") as f:
        f.write("A note.\n")
    for args in ((), ("--new",), (note,)):
        second = start(*args)
        out = second.communicate(timeout=PATIENCE_S)[0]
        assert second.returncode == 0 and first.poll() is None, (args, second.returncode, out)
    end(first)


def test_started_while_it_ends(base):
    """Started again while the last run still stores, there is one program with a window afterwards."""
    data = os.path.join(base, "data")
    for delay in (0, 0.015, 0.06):
        first = start("--data-dir", data)
        wait_for(lambda p=first: has_window(p), "window")
        first.send_signal(signal.SIGTERM)
        time.sleep(delay)
        second = start("--data-dir", data)
        pairs = (first, second), (second, first)
        try:
            left = wait_for(lambda both=pairs: next((p for p, o in both if o.poll() == 0 and has_window(p)), None),
                            "one program with a window")
        except AssertionError as error:
            ended = [(p.poll(), p.stdout.read() if p.poll() is not None else "runs") for p in (first, second)]
            raise AssertionError(f"after {delay} s: {ended}") from error
        end(left)


def test_wish_that_reached_nobody(base):
    """The run that a start found gives its name away before it hears the wish: the start opens the window itself."""
    leaving = subprocess.Popen(["/usr/bin/python3", os.path.join(os.path.dirname(__file__), "leaving-run.py")],
                               stdout=subprocess.PIPE, text=True)
    assert leaving.stdout.readline() == "ready\n"
    program = start("--data-dir", os.path.join(base, "data"))
    wait_for(lambda: program.poll() is not None or has_window(program), "window, or the end")
    assert program.poll() is None, program.stdout.read()
    end(program)
    assert leaving.wait(PATIENCE_S) == 0


def main():
    tests = [(name, f) for name, f in globals().items() if name.startswith("test_")]
    n_failed = 0
    print(f"1..{len(tests)}")
    for i, (name, f) in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as base:
            try:
                f(base)
            except Exception:  # a failed promise of any kind is this test's verdict
                for line in traceback.format_exc().splitlines():
                    print(f"# {line}")
                n_failed += 1
                print("not ", end="")
        print(f"ok {i} - program.{name[5:]}", flush=True)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())

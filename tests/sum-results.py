#!/usr/bin/env python3
"""Sums Meson test logs: every subtest of a TAP program counts, every other program counts once.

Usage: sum-results.py [--broken-steps N] [--want SUITE]... LABEL=testlog.json ...
Prints what failed and what was skipped, then the line `N passed, N failed`, alone and last.
Exit status 0 only when something passed and nothing failed.
A wanted suite without a test is a failure.
A program that dies, times out or returns an error beside subtests that are all ok counts one failure.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import argparse
import json
import re
import sys

TAP_LINE = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*(.*?)(?:\s*#\s*(SKIP)\b\s*(.*))?$", re.IGNORECASE)
GOOD = {"OK", "EXPECTEDFAIL", "SKIP"}


class Sums:
    def __init__(self):
        self.n_passed, self.failed, self.skipped, self.suites = 0, [], [], set()

    def add_program(self, label, test):
        name, result = f"{label}: {test['name']}", test["result"]
        # Meson writes "project:suite+suite / name".
        self.suites.update(test["name"].partition(" / ")[0].partition(":")[2].split("+"))
        lines = (test.get("stdout") or "").splitlines()
        if any(re.match(r"^1\.\.\d+", line) for line in lines):
            self.add_tap(name, lines, result)
        elif result == "SKIP":
            self.skipped.append(name)
        elif result in GOOD:
            self.n_passed += 1
        else:
            self.failed.append(f"{name} ({result.lower()})")

    def add_tap(self, name, lines, result):
        n_failed_before = len(self.failed)
        for line in lines:
            match = TAP_LINE.match(line)
            if not match:
                continue
            not_ok, title, directive, reason = match.groups()
            if directive and directive.upper() == "SKIP":
                self.skipped.append(f"{name}: {title} ({reason})")
            elif not_ok:
                self.failed.append(f"{name}: {title}")
            else:
                self.n_passed += 1
        if result not in GOOD and len(self.failed) == n_failed_before:
            self.failed.append(f"{name} ({result.lower()})")


def read_log(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def main():
    parser = argparse.ArgumentParser(description="Sums Meson test logs.")
    parser.add_argument("--broken-steps", type=int, default=0, help="steps that failed before any test ran")
    parser.add_argument("--want", action="append", default=[], metavar="SUITE")
    parser.add_argument("logs", nargs="*", metavar="LABEL=FILE")
    args = parser.parse_args()
    sums = Sums()
    n_failed = args.broken_steps
    for log in args.logs:
        label, _, path = log.partition("=")
        try:
            tests = read_log(path)
        except (OSError, ValueError) as e:
            sums.failed.append(f"{label}: no readable test log ({e})")
            continue
        for test in tests:
            sums.add_program(label, test)
    if args.logs:
        sums.failed += [f"suite {suite}: no test in it" for suite in args.want if suite not in sums.suites]
    for title, names in (("skipped", sums.skipped), ("FAILED", sums.failed)):
        for name in names:
            print(f"{title}: {name}")
    n_failed += len(sums.failed)
    if sums.n_passed == 0 and n_failed == 0:
        print("No test ran, which is a failure.")
        n_failed = 1
    print(f"{sums.n_passed} passed, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What decode costs beside its products: other programs on the same processors, and evictions.

  measure-costs.py --engine BUILD/tests/bench/speed-engine --model MODEL.gguf --gate G.safetensors [--threads 2]

Other programs: as many that compute without end as there are processors, in turns stopped and running; the
engine runs at nice 5, as in the program.  Printed: tokens/s and processor time of a token, the share of the
processors that the others get, how late a program wakes that sleeps for a frame (16.7 ms), and what an
engine that waits for its user takes.  Evictions: their share of decode's processor time at several numbers
of entries a stream.  About three minutes.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import argparse
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

from speedside import SpeedSide

FRAME_S = 1 / 60
ROUNDS = 4
N_DECODE = 64
ENTRIES = (128, 512, 2048, 8192)
BUSY = "while True: pass"


def engine(args, entries, context):
    command = ["nice", "-n", "5", args.engine, args.model, args.threads, "f16", entries, args.gate, context, "fast"]
    return SpeedSide("speed-engine", command)


class Frames(threading.Thread):
    """Sleeps for a frame again and again; late: by how many ms it woke too late."""

    def __init__(self):
        super().__init__(daemon=True)
        self.late, self.ends = [], False

    def run(self):
        while not self.ends:
            begin = time.monotonic()
            time.sleep(FRAME_S)
            self.late.append((time.monotonic() - begin - FRAME_S) * 1e3)

    def end(self):
        self.ends = True
        self.join()
        late = sorted(self.late)
        return statistics.median(late), late[int(0.99 * (len(late) - 1))]


def decode(side):
    cpu = side.cpu_seconds()
    ms = side.ms(f"decode {N_DECODE}")
    return N_DECODE * 1e3 / ms, (side.cpu_seconds() - cpu) * 1e3 / N_DECODE


def busy_seconds(programs):
    times = 0
    for program in programs:
        with open(f"/proc/{program.pid}/stat", encoding="utf-8") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        times += int(fields[11]) + int(fields[12])
    return times / os.sysconf("SC_CLK_TCK")


def other_programs(args):
    side = engine(args, 512, 2048)
    side.ms("depth 512")
    decode(side)
    cpu = side.cpu_seconds()
    time.sleep(3)
    idle = side.cpu_seconds() - cpu
    programs = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count())]
    speeds, costs, delays, shares = ([], []), ([], []), ([], []), []
    try:
        for _ in range(ROUNDS):
            for beside in (0, 1):
                for program in programs:
                    program.send_signal(signal.SIGCONT if beside else signal.SIGSTOP)
                frames, before, begin = Frames(), busy_seconds(programs), time.monotonic()
                frames.start()
                speed, cost = decode(side)
                delays[beside].append(frames.end())
                speeds[beside].append(speed)
                costs[beside].append(cost)
                if beside:
                    span = (time.monotonic() - begin) * os.cpu_count()
                    shares.append((busy_seconds(programs) - before) / span)
    finally:
        for program in programs:
            program.kill()
            program.wait()
    side.close()
    for beside, name in ((0, "alone"), (1, f"beside {os.cpu_count()} busy programs")):
        late = [statistics.median(x) for x in zip(*delays[beside])]
        print(f"{name}: {statistics.median(speeds[beside]):.1f} tokens/s, {statistics.median(costs[beside]):.2f} ms of "
              f"processors a token; a frame is {late[0]:.2f} ms late (median), {late[1]:.2f} ms (99th of 100)")
    print(f"the busy programs get {statistics.median(shares) * 100:.0f} % of all processors (nice 0 beside nice 5: 75 "
          "% where both want all)")
    print(f"an idle engine takes {idle * 1e3:.0f} ms of processors in 3 s")


def evictions(args):
    for entries in ENTRIES:
        side = engine(args, entries, entries)
        side.ms(f"depth {entries + 512}")
        side.ms(f"decode {max(160, entries // 16)}")
        info = side.ask("info")
        side.close()
        n, n_plain = info["evicting_tokens"], info["plain_tokens"]
        total = info["plain_cpu_s"] + info["evicting_cpu_s"]
        extra = info["evicting_cpu_s"] - n * info["plain_cpu_s"] / n_plain
        print(f"{entries} entries a stream: {n} evictions in {n + n_plain} tokens, {extra / n * 1e3:.2f} ms each, "
              f"{extra / total * 100:.2f} % of decode")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--engine", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--gate", required=True)
    parser.add_argument("--threads", default="2")
    args = parser.parse_args()
    print(f"{os.cpu_count()} processors, {args.threads} threads, load {os.getloadavg()[0]:.2f}")
    other_programs(args)
    evictions(args)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Steps of gate training: the engine beside PyTorch (eager and compiled), f32, the same threads.

All programs are started and warmed first, then they take turns, one step each, so that what disturbs
the machine disturbs all.  Prints medians, the ratio to PyTorch's better one, and the load.  On a busy
machine the CPU seconds of one thread are the better figure (threads that wait by spinning count too).
Usage: compare-train.py --engine BUILD/tests/bench/speed-train --model MODEL.gguf --python VENV/bin/python
  [--threads 2] [--tokens 512] [--stage method] [--rounds 8]
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import argparse
import os
import statistics

from speedside import Side


class StepSide(Side):
    def __init__(self, name, command):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        super().__init__(name, command, env=env)
        self.times, self.cpu = [], []

    def wait_ready(self):
        line = self.read()
        if not line.startswith("ready"):
            raise SystemExit("%s did not start: %r" % (self.name, line))
        print("# %s: %s" % (self.name, line.strip()), flush=True)

    def step(self):
        before = self.cpu_seconds()
        self.times += [float(t) for t in self.send("1").split()]
        self.cpu.append(self.cpu_seconds() - before)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--engine", required=True)
    p.add_argument("--model", required=True)
    p.add_argument("--python", required=True)
    p.add_argument("--threads", default="2")
    p.add_argument("--tokens", default="512")
    p.add_argument("--stage", default="method", choices=["method", "local"])
    p.add_argument("--rounds", type=int, default=8)
    p.add_argument("--no-compiled", action="store_true")
    a = p.parse_args()
    peer = [a.python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer-train.py"), a.threads, a.tokens]
    kinds = ["eager"] if a.no_compiled else ["eager", "compiled"]
    sides = []
    for name, command in [("engine", [a.engine, a.model, a.threads, a.tokens, a.stage])] + \
            [("torch " + kind, peer + [kind, a.stage]) for kind in kinds]:
        sides.append(StepSide(name, command))  # one after the other: compiling wants the cores
        sides[-1].wait_ready()
    print("# load %.2f %.2f %.2f" % os.getloadavg())
    for _ in range(a.rounds):
        for side in sides:
            side.step()
    medians = {s.name: statistics.median(s.times) for s in sides}
    for side in sides:
        print("%s,%s,%s tokens,%s threads,median %.3f s,best %.3f s,worst %.3f s,CPU median %.3f s" % (
            side.name, a.stage, a.tokens, a.threads, medians[side.name], min(side.times), max(side.times),
            statistics.median(side.cpu)))
        side.close()
    best = min(v for k, v in medians.items() if k != "engine")
    print("speed of the engine / PyTorch's better one: %.3f (goal 0.8); of the best steps %.3f; by CPU seconds %.3f" % (
        best / medians["engine"],
        min(min(s.times) for s in sides if s.name != "engine") / min(sides[0].times),
        min(statistics.median(s.cpu) for s in sides if s.name != "engine") / statistics.median(sides[0].cpu)))
    print("# load %.2f %.2f %.2f" % os.getloadavg())


if __name__ == "__main__":
    main()

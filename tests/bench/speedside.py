"""A process of a speed measurement that answers one line for each line it is asked."""
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import subprocess
import sys


class Side:
    def __init__(self, name, command, **more):
        self.name = name
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, **more)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended: {' '.join(self.process.args)}")
        return line

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.read()

    def ask(self, line):
        return json.loads(self.send(line))

    def ms(self, line):
        return self.ask(line)["ms"]

    def cpu_ticks(self):
        """Processor time of the process so far, in ticks of the system."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def cpu_seconds(self):
        return self.cpu_ticks() / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class SpeedSide(Side):
    """Of the protocol of speed-server.h."""

    def __init__(self, name, command, **more):
        super().__init__(name, command, **more)
        if not json.loads(self.read()).get("ready"):
            sys.exit(f"{name} did not start: {' '.join(self.process.args)}")

#!/usr/bin/env python3
"""Kernels built for an instruction set use its instructions only, and nothing of them leaks into common code.

Usage: check-kernels.py libkeepsake-SET.a...  Reads the machine code with `objdump`: a kernel that came to
use more than its set would stop the program on processors without it.  The only names that may leave such
a library are data, its table: an inline function that left it could be linked in place of another file's.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import re
import subprocess
import sys
import tempfile

import lintlib

AVX = re.compile(r"%[yz]mm")
EVEX = re.compile(r"%zmm|%k[0-7]\b|%[xy]mm(1[6-9]|2[0-9]|3[01])\b")
VNNI = re.compile(r"\bvpdp(busd|wssd)")
EVEX_VNNI = re.compile(r"(?<!\{vex\} )\bvpdp(busd|wssd)")
BF16 = re.compile(r"\bv(dpbf16|cvtne2?ps2?bf16)")
FORBIDDEN = {"scalar": [AVX, EVEX], "avx2": [EVEX, VNNI], "avxvnni": [EVEX, EVEX_VNNI], "avx512": [VNNI, BF16],
             "avx512vnni": [BF16], "avx512bf16": [VNNI]}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def check_library(name, path):
    complaints, functions = [], 0
    for line in run("objdump", "-d", "--no-show-raw-insn", path).splitlines():
        functions += line.endswith(">:")
        code = line.partition(":")[2].partition("<")[0]
        if any(pattern.search(code) for pattern in FORBIDDEN[name]):
            complaints.append(f"{name}: not of this instruction set: {code.strip()}")
    for line in run("nm", "--defined-only", "--extern-only", path).splitlines():
        if name != "scalar" and re.search(r" [TWtw] ", line):
            complaints.append(f"{name}: a function leaves the library: {line.split()[-1]}")
    return complaints[:5] if functions > 0 else [f"{name}: no code at all"]


def check(sources):
    """Planted cases are assembled first."""
    complaints = []
    if "" in sources:
        for path in sources[""]:
            complaints += check_library(os.path.basename(path)[len("libkeepsake-"):-len(".a")], path)
        return complaints
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            path = os.path.join(folder, "kernel.o")
            subprocess.run(["cc", "-c", "-x", "assembler", "-o", path, "-"], input=".text\nkernel:\n" + text + "\n",
                           text=True, check=True)
            complaints += check_library(name, path)
    return complaints


PLANTED = {
    "AVX in plain code": {"scalar": "vaddps %ymm1, %ymm2, %ymm3"},
    "AVX-512 in AVX2": {"avx2": "vaddps %zmm1, %zmm2, %zmm3"},
    "high registers in AVX2": {"avx2": "vaddps %ymm17, %ymm2, %ymm3"},
    "VNNI in AVX2": {"avx2": "{vex} vpdpbusd %ymm1, %ymm2, %ymm3"},
    "AVX-512 form in AVX-VNNI": {"avxvnni": "{evex} vpdpbusd %ymm1, %ymm2, %ymm3"},
    "VNNI in AVX-512": {"avx512": "vpdpbusd %zmm1, %zmm2, %zmm3"},
    "bfloat16 in VNNI": {"avx512vnni": "vdpbf16ps %zmm1, %zmm2, %zmm3"},
    "a function that leaves": {"avx2": ".globl leak\nleak: ret"},
    "a weak function": {"avx512": ".weak leak\nleak: ret"},
}
CLEAN = {"avx2": "vaddps %ymm1, %ymm2, %ymm3", "avxvnni": "{vex} vpdpbusd %ymm1, %ymm2, %ymm3",
         "avx512": "vaddps %zmm1, %zmm2, %zmm30", "avx512vnni": "vpdpbusd %zmm1, %zmm2, %zmm3",
         "avx512bf16": "vdpbf16ps %zmm1, %zmm2, %zmm3"}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: check-kernels.py libkeepsake-SET.a...")
    lintlib.run("kernels", check, PLANTED, CLEAN, {"": sys.argv[1:]})

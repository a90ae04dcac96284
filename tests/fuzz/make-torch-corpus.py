#!/usr/bin/env python3
"""Writes the kept inputs of fuzz-torch; run by hand when what is read changes.

Usage: make-torch-corpus.py (from anywhere).
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import collections
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
import torchfile as torch  # noqa: E402

GATE = "model.layers.0.self_attn.retention_gate."
TENSORS = {GATE + "linear1.weight": ([2, 3], [0.5, -1.0, 2.0, 0.25, 1.5, -0.125]), GATE + "bias": ([2], [1.0, 4.0])}


def write(name, data):
    path = os.path.join(HERE, "corpus", "torch")
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "wb") as file:
        file.write(data)


def main():
    calls = collections.OrderedDict((name, torch.tensor(str(i), kind, shape)) for i, (name, (shape, _), kind) in
                                    enumerate(zip(TENSORS, TENSORS.values(), ("F32", "BF16"))))
    wrapped = {"state": calls, "epoch": 3, "rate": 0.5, "list": [1, "two", None], "flag": True, "long": 2 ** 40,
               "half": torch.Call(torch.PARAMETER, torch.tensor("h", "F16", [2], 8, 1, (3,)), False,
                                  collections.OrderedDict())}
    for protocol in (2, 4):
        write(f"state-{protocol}.pkl", torch.dump(calls, protocol))
        write(f"wrapped-{protocol}.pkl", torch.dump(wrapped, protocol))
    write("itself.pkl", b"\x80\x02}q\x00(X\x01\x00\x00\x00ah\x00X\x01\x00\x00\x00bh\x00u.")
    write("system.pkl", torch.dump({"a": torch.Call(torch.Name("posix", "system"), "true")}))
    write("stored.pth", torch.save(TENSORS))
    write("packed.pth", torch.save(TENSORS, kind="BF16", method=zipfile.ZIP_DEFLATED))


main()

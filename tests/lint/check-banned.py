#!/usr/bin/env python3
"""Calls, words and paths that the tree does without."""
# SPDX-License-Identifier: GPL-3.0-or-later
import re

import lintlib

NEVER = re.compile(r"\b(strcpy|strcat|stpcpy|sprintf|vsprintf|strtok|atoi|atol|atoll|atof|gets|alloca|"
                   r"tmpnam|mktemp|rand|srand|system)\s*\(")
PRINTS = re.compile(r"\b(printf|vprintf|puts|putchar|perror|exit|_exit|quick_exit|abort|g_print|g_printerr|"
                    r"g_error|g_abort)\s*\(|\bv?fprintf\s*\(\s*std(?:out|err)\b|"
                    r"\bf(?:puts|putc|write)\s*\([^;]*\bstd(?:out|err)\b")
HEAP = re.compile(r"(?<![\w>.])(malloc|calloc|realloc|free|strdup|strndup|aligned_alloc|posix_memalign|asprintf|"
                  r"vasprintf)\s*\(")
# What libc allocated itself goes back to libc: scandir in backend.c.
HEAP_ALLOWED = {("engine/backend.c", "free")}
MACRO_JUMP = re.compile(r"^[ \t]*#[ \t]*define\b(?:[^\n]*\\\n)*[^\n]*\b(return|goto)\b", re.M)
LATER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
SPEAKS = ("app/cli-", "ui/main.c", "media/worker-main.c", "tests/")

# Put together from pieces, so that this file does not break its own rule.
MACHINE_PATHS = re.compile("|".join(a + b for a, b in (
    ("/wo", "rk/"), ("/tmp/w", "t/"), ("/tmp/pe", "er"), ("/roo", "t/"), ("/ho", r"me/\w"), ("/fa", "rm/"))))
REGISTRIES = re.compile("|".join(a + b for a, b in (
    ("py", r"pi\.org"), ("python", r"hosted\.org"), ("deb\\.", r"debian\.org"), ("snapshot\\.", r"debian\.org"),
    ("security\\.", r"debian\.org"), ("archive\\.", r"ubuntu\.com"), ("registry\\.", "npm"),
    ("hugging", r"face\.co"), ("crates", r"\.io"), ("ana", r"conda\.(?:org|com)"), ("proxy\\.", r"golang\.org"))))


def may_speak(path):
    return path.startswith(SPEAKS)


def check_code(path, text):
    code = lintlib.strip_c(text)
    rules = [(NEVER, "is not used here")]
    if not may_speak(path):
        rules.append((PRINTS, "belongs to the command line, the window's main and tests only"))
    if path.startswith("engine/") and path != "engine/alloc.c":
        rules.append((HEAP, "engine memory comes from ks_mem_*"))
    if path != "tests/ks-test.h":  # its KS_TEST_MAIN is a whole function
        rules.append((MACRO_JUMP, "a macro never hides it"))
    complaints = []
    for pattern, why in rules:
        for match in pattern.finditer(code):
            if pattern is HEAP and (path, match.group(1)) in HEAP_ALLOWED:
                continue
            word = re.sub(r"\s+", " ", match.group(0))[-40:].rstrip("(")
            complaints.append(f"{path}:{lintlib.line_of(code, match.start())}: {word}: {why}")
    return complaints


def check_text(path, text):
    complaints = []
    rules = [(MACHINE_PATHS, "a path of one machine"), (REGISTRIES, "the host name of a registry")]
    if not path.endswith("check-banned.py"):
        rules.append((LATER, "later is now, or an issue"))
    for pattern, why in rules:
        for match in pattern.finditer(text):
            complaints.append(f"{path}:{lintlib.line_of(text, match.start())}: {match.group(0)}: {why}")
    return complaints


def check(files):
    complaints = []
    for path, text in files.items():
        if lintlib.is_test_data(path) or path == "LICENSE":
            continue
        complaints += check_text(path, text)
        if lintlib.is_c(path) and not lintlib.is_generated(path):
            complaints += check_code(path, text)
    return complaints


PLANTED = {
    "strcpy": {"engine/a.c": "void f(void) { strcpy(a, b); }\n"},
    "sprintf in tests": {"tests/a.c": "void f(void) { sprintf (a, b); }\n"},
    "printf in the engine": {"engine/a.c": 'void f(void) { printf("x"); }\n'},
    "fprintf to stderr in app": {"app/ks-a.c": 'void f (void) { fprintf (stderr, "x"); }\n'},
    "exit in app": {"app/ks-a.c": "void f (void) { exit (1); }\n"},
    "malloc in the engine": {"engine/a.c": "void *p = malloc(3);\n"},
    "macro with return": {"engine/a.h": "#define F(x) \\\n  do { \\\n    if (x) return; \\\n  } while (0)\n"},
    "path of a machine": {"docs/a.md": "see /wo" + "rk/main\n"},
    "host name": {"run.sh": "pip --index-url https://py" + "pi.org/simple\n"},
    "left for later": {"engine/a.c": "/* TO" + "DO */\n"},
}
CLEAN = {"engine/a.c": '/* printf(x) exits */ void f(void) { st->free(p); snprintf(a, 3, "exit(1)"); }\n',
         "app/cli-a.c": 'int f (void) { printf ("x"); exit (1); }\n',
         "engine/alloc.c": "void *p = malloc(3);\n"}

if __name__ == "__main__":
    lintlib.run("banned", check, PLANTED, CLEAN)

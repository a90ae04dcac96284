#!/usr/bin/env python3
"""Translations: every source with sentences is listed, the list of sentences is fresh, every language has
all of them, none fuzzy, with the same formats and keys (the letter after _).

Runs po/update.sh over the tree, and over small planted trees first.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lint"))
import lintlib  # noqa: E402  (lies in the folder above)

MARKED_C = re.compile(r"\b(?:_|N_|C_|NC_|ngettext|g_dngettext|gettext)\s*\(\s*\"")
FOLDERS = ("ui/", "app/", "media/", "storage/", "data/")
TOOLS = ("xgettext", "msgmerge", "msgfmt", "msgcmp")


def is_marked(path, text):
    if path.endswith((".c", ".h")):
        return bool(MARKED_C.search(lintlib.strip_c(text, keep_strings=True)))
    if path.endswith(".ui"):
        return 'translatable="' in text
    return path.endswith((".desktop.in", ".metainfo.xml.in"))


def run(root, *command):
    return subprocess.run(command, cwd=root, capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "LANGUAGE": ""})


def read_entries(text):
    """(context, sentence, plural) of all entries but the header."""
    entries = set()
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if not line.startswith("#")]
        found = re.findall(r'^(msgctxt|msgid|msgid_plural) (".*"(?:\n".*")*)', "\n".join(lines), re.M)
        key = tuple((kind, "".join(re.findall(r'^(?:msg\w+ )?"(.*)"$', value, re.M))) for kind, value in found)
        if key and key != (("msgid", ""),):
            entries.add(key)
    return entries


def check_language(root, language, fresh):
    path = f"po/{language}.po"
    if not os.path.isfile(os.path.join(root, path)):
        return [f"{path}: missing, though po/LINGUAS names it"]
    complaints = []
    for command in (("msgfmt", "--check", "--check-accelerators=_", "--output-file=/dev/null", path),
                    ("msgcmp", path, fresh)):
        done = run(root, *command)
        if done.returncode != 0:
            complaints += (done.stdout + done.stderr).splitlines() or [f"{command[0]} {path} failed"]
    return complaints


def check_in(root, files):
    with open(os.path.join(root, "po/POTFILES"), encoding="utf-8") as f:
        listed = [line for line in f.read().split("\n") if line and not line.startswith("#")]
    marked = sorted(p for p, text in files.items() if p.startswith(FOLDERS) and is_marked(p, text))
    complaints = [f"po/POTFILES: {p} is missing" for p in marked if p not in listed]
    complaints += [f"po/POTFILES: {p} has no sentences" for p in listed if p not in marked]
    if listed != sorted(listed):
        complaints.append("po/POTFILES: not sorted")
    with tempfile.TemporaryDirectory() as folder:
        fresh = os.path.join(folder, "fresh.pot")
        done = run(root, "bash", "po/update.sh", "--pot", fresh)
        if done.returncode != 0:
            return complaints + done.stderr.splitlines() + ["po/update.sh failed"]
        with open(fresh, encoding="utf-8") as f, \
                open(os.path.join(root, "po/keepsake.pot"), encoding="utf-8") as g:
            new, old = read_entries(f.read()), read_entries(g.read())
        complaints += [f"po/keepsake.pot: run po/update.sh: {dict(e).get('msgid')}" for e in new ^ old]
        with open(os.path.join(root, "po/LINGUAS"), encoding="utf-8") as f:
            for language in f.read().split():
                complaints += check_language(root, language, fresh)
    return complaints


def check(files):
    if "" in files:
        return check_in(ROOT, lintlib.read_tree())
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        shutil.copy(os.path.join(ROOT, "po/update.sh"), os.path.join(root, "po/update.sh"))
        return check_in(root, files)


HEADER = 'msgid ""\nmsgstr ""\n"Project-Id-Version: x\\n"\n"PO-Revision-Date: 2026-01-01 00:00+0000\\n"\n' \
    '"Last-Translator: x\\n"\n"Language-Team: x\\n"\n"Language: de\\n"\n"MIME-Version: 1.0\\n"\n' \
    '"Content-Type: text/plain; charset=UTF-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n'
POT = HEADER + '\n#, c-format\nmsgid "_Open %s"\nmsgstr ""\n'
CLEAN = {
    "ui/a.c": 'int a (void) { return _ ("_Open %s"); }\n',
    "po/POTFILES": "ui/a.c\n", "po/LINGUAS": "de\n", "po/keepsake.pot": POT,
    "po/de.po": HEADER + '\n#, c-format\nmsgid "_Open %s"\nmsgstr "%s ö_ffnen"\n',
}
PLANTED = {
    "a source that is not listed": {**CLEAN, "ui/b.c": 'int b (void) { return _ ("_Open %s"); }\n'},
    "a template that is not listed": {**CLEAN, "ui/b.ui": '<a><b translatable="yes">_Open %s</b></a>\n'},
    "a listed source without sentences": {**CLEAN, "ui/b.c": "int b;\n", "po/POTFILES": "ui/a.c\nui/b.c\n"},
    "a new sentence": {**CLEAN, "ui/a.c": 'int a (void) { return _ ("_Open %s") + _ ("New"); }\n'},
    "an old sentence": {**CLEAN, "po/keepsake.pot": POT + '\nmsgid "Old"\nmsgstr ""\n'},
    "untranslated": {**CLEAN, "po/de.po": CLEAN["po/de.po"].replace("%s ö_ffnen", "")},
    "fuzzy": {**CLEAN, "po/de.po": CLEAN["po/de.po"].replace("#, c-format", "#, fuzzy, c-format")},
    "another format": {**CLEAN, "po/de.po": CLEAN["po/de.po"].replace("%s ö", "%d ö")},
    "no key": {**CLEAN, "po/de.po": CLEAN["po/de.po"].replace("ö_ffnen", "öffnen")},
    "a language without a file": {**CLEAN, "po/LINGUAS": "de\nko\n"},
}


def main():
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"1..1\n# missing: {' '.join(missing)}: packaging/install-deps.sh run\nnot ok 1 - translations")
        return 1
    return lintlib.main("translations", check, PLANTED, CLEAN, {"": ""})


if __name__ == "__main__":
    sys.exit(main())

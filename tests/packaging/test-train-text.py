#!/usr/bin/env python3
"""Promises of packaging/fetch-train-text.py: pages become paragraphs, R's data gives the books in it, the
same files are held out on every machine, and every source is written down with version and checksum.

No network: apt and dpkg are replaced by scripts.  Usage: test-train-text.py.  Prints TAP.
"""
# SPDX-License-Identifier: GPL-3.0-or-later
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "packaging", "fetch-train-text.py")
SPEC = importlib.util.spec_from_file_location("fetch_train_text", SCRIPT)
fetch = importlib.util.module_from_spec(SPEC)
sys.dont_write_bytecode = True
SPEC.loader.exec_module(fetch)
PAGE = (b"<html><head><title>x</title><style>p {}</style></head><body><nav>Menu</nav><p>Prev</p><p>One\n two &amp; "
        b"three.</p><pre>a  b\n  c</pre><ul><li>first</li></ul><script>var x;</script></body></html>")


def r_string(text):
    return b"\x00\x04\x00\x09" + len(text).to_bytes(4, "big") + text


def r_object(lines):
    packed = zlib.compress(b"X\n\x00\x00\x00\x10" + b"".join(r_string(line) for line in lines))
    return len(packed).to_bytes(4, "big") + packed


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def pages_become_paragraphs():
    text = fetch.tidy(fetch.read_html(PAGE)[0])
    expect(text == "One two & three.\n\na  b\n  c\n\nfirst\n", repr(text))


def books_are_found_in_r_data():
    book = [b"line %d" % i for i in range(1200)] + [b"", b"last"]
    texts = fetch.read_r_data(r_object([b"a", b"b"]) + r_object(book))
    expect(len(texts) == 1 and texts[0].startswith("line 0 line 1 ") and texts[0].endswith("line 1199\n\nlast"),
           [t[-40:] for t in texts])
    try:
        fetch.read_r_data(r_object([b"too short"]))
    except fetch.FetchError:
        return
    raise AssertionError("a package without a book is refused")


def books_are_cut_between_paragraphs():
    text = "\n\n".join("paragraph %d %s" % (i, "word " * 200) for i in range(500))
    pieces = fetch.cut(text)
    expect(len(pieces) > 1 and all(p.startswith("paragraph") for p in pieces), "each begins with a paragraph")
    expect("".join(p.rstrip("\n") for p in pieces).count("paragraph") == 500, "nothing is lost")


def a_tenth_is_held_out():
    names = [f"file-{i}.txt" for i in range(2000)]
    held = [n for n in names if fetch.is_held_out(n, 0.1)]
    expect(150 < len(held) < 250, len(held))
    expect(held == [n for n in names if fetch.is_held_out(n, 0.1)], "always the same")


def write_tool(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def run_with(tools, folder):
    env = dict(os.environ, PATH=tools + ":" + os.environ["PATH"])
    return subprocess.run([sys.executable, SCRIPT, folder], env=env, capture_output=True, text=True, check=False)


def sources_are_written_down():
    with tempfile.TemporaryDirectory() as base:
        tools, out = os.path.join(base, "tools"), os.path.join(base, "out")
        os.mkdir(tools)
        write_tool(tools, "apt-cache", "exit 0\n")
        write_tool(tools, "apt-get", 'for p; do :; done; echo "deb of $p" > "${p}_1.0_all.deb"\n')
        book = os.path.join(base, "book.rdb")
        with open(book, "wb") as f:
            f.write(r_object([b"A line of a long book, number %d." % i for i in range(3000)]))
        words = os.path.join(base, "words.txt")
        with open(words, "w", encoding="utf-8") as f:
            f.write("\n\n".join(f"<p>Paragraph {i} says something of some length.</p>" for i in range(200)))
        write_tool(tools, "dpkg-deb", f'''
[ "$1" = -f ] && {{ echo 1.0; exit 0; }}
d=$3/usr/share/doc/debian-handbook/html/en-US; mkdir -p $d; for i in 1 2 3 4 5 6 7 8; do cp {words} $d/page$i.html; done
d=$3/usr/share/debian-reference; mkdir -p $d; gzip -c {words} > $d/debian-reference.en.txt.gz
d=$3/usr/share/doc/python3.11/html/_sources/tutorial; mkdir -p $d; cp {words} $d/intro.rst.txt
cp {words} $d/classes.rst.txt
d=$3/usr/lib/R/site-library/janeaustenr/data; mkdir -p $d; cp {book} $d/Rdata.rdb
''')
        done = run_with(tools, out)
        expect(done.returncode == 0, done.stderr)
        with open(os.path.join(out, "sources.json"), encoding="utf-8") as f:
            sources = json.load(f)["sources"]
        expect([s["package"] for s in sources] == ["debian-handbook", "debian-reference-en", "python3.11-doc",
                                                   "r-cran-janeaustenr"], sources)
        for s in sources:
            deb = hashlib.sha256(f"deb of {s['package']}\n".encode()).hexdigest()
            expect(s["sha256"] == deb and s["version"] == "1.0" and s["licence"], s)
        expect(os.listdir(os.path.join(out, "train")), "there is text to train on")


def an_unknown_package_is_told():
    with tempfile.TemporaryDirectory() as base:
        write_tool(base, "apt-cache", "exit 100\n")
        done = run_with(base, os.path.join(base, "out"))
        expect(done.returncode == 1 and "debian-handbook" in done.stderr and done.stderr.count("\n") == 1, done.stderr)


def main():
    checks = [pages_become_paragraphs, books_are_found_in_r_data, books_are_cut_between_paragraphs,
              a_tenth_is_held_out, sources_are_written_down, an_unknown_package_is_told]
    failed = 0
    print(f"1..{len(checks)}")
    for number, function in enumerate(checks, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}")
        except AssertionError as error:
            print("# " + str(error)[:1500].replace("\n", "\n# "))
            print(f"not ok {number} - {function.__name__}")
            failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
